"""Workloads of large arrays, elementwise: functions, arithmetic, broadcasting, types, fused programs, sizes.

Imports `systems` and `timing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special
from systems import Prepared, jax, mx, torch
from timing import Workload

nd, sym, autograd = mx.nd, mx.sym, mx.autograd
LARGE = 10_000_000
SIDE = 4096


def normal(*shapes: Any, dtype: str = "float32", scale: float = 1.0) -> Callable[[], list[np.ndarray]]:
    """Return what makes arrays of a normal distribution."""
    return lambda: [
        (np.random.default_rng(k).standard_normal(s, "float32") * scale).astype(dtype) for k, s in enumerate(shapes)
    ]


def positive(n: int = LARGE) -> list[np.ndarray]:
    """Return numbers between 0.05 and 3."""
    return [np.random.default_rng(1).uniform(0.05, 3, n).astype(np.float32)]


def out_of(f: Callable) -> Callable:
    """Return a function that writes into its last argument."""
    return lambda x, o: f(x, out=o)


def function(name: str) -> Workload:
    """Return the row of a function of one argument."""
    ours = getattr(nd, name)
    programs: dict[str, Any] = {"mxop": ours, "mxop out": out_of(ours), "sym": getattr(sym, name)}
    if hasattr(np, name):
        programs |= {"numpy": getattr(np, name), "numpy out": out_of(getattr(np, name))}
        programs["numexpr"] = f"{name}(x)"
    if torch is not None:
        programs |= {"torch": getattr(torch, name), "torch out": out_of(getattr(torch, name))}
    if jax is not None:
        programs["jax"] = getattr(jax.numpy, name, None) or getattr(jax.scipy.special, {"sigmoid": "expit"}.get(name, name))
    return Workload(f"e.{name}", f"{name}, 1e7 float32", programs, positive, moved=8e7)


def polynomial(name: str, n: int, what: str = "") -> Workload:
    """Return the row of the quadratic function at a size."""
    formula = lambda x: x * x + 2.0 * x + 3.0  # noqa: E731
    ours: dict[str, Any] = {
        "mxop": lambda x: nd.quadratic(x, a=1.0, b=2.0, c=3.0),
        "mxop out": lambda x, o: nd.quadratic(x, a=1.0, b=2.0, c=3.0, out=o),
        "sym": lambda x: sym.quadratic(x, a=1.0, b=2.0, c=3.0),
    }
    peers = {"numpy": formula, "torch": formula, "jax": formula, "numexpr": "x * x + 2 * x + 3"}
    peers |= {"numpy out": lambda x, o: into(np, x, o)}
    if torch is not None:
        peers["torch out"] = lambda x, o: into(torch, x, o)
    return Workload(name, what or f"quadratic, {n:.0e} float32", ours | peers, lambda: positive(n), moved=8.0 * n,
                    rounds=5 if n > 2e7 else 11)  # fmt: skip


def into(F: Any, x: Any, out: Any) -> Any:
    """Evaluate the polynomial in a kept array, without another."""
    out = F.add(x, 2.0, out=out)
    F.multiply(out, x, out=out)
    return F.add(out, 3.0, out=out)


def backward(request: str) -> Prepared:
    """Return the backward pass of the polynomial, into the last array where there are three."""

    def make(x: Any, head: Any, gradient: Any = None) -> Any:
        gradient = nd.zeros(x.shape) if gradient is None else gradient
        symbol = sym.quadratic(sym.Variable("x"), a=1.0, b=2.0, c=3.0)
        executor = symbol.bind(mx.cpu(), {"x": x}, args_grad={"x": gradient}, grad_req=request)
        executor.forward(is_train=True)

        def run() -> Any:
            executor.backward(head)
            return gradient

        return run

    return Prepared(make)


def backward_out(F: Any) -> Callable:
    """Return ``(2x + 2) * head`` into a kept array."""

    def program(x: Any, head: Any, out: Any) -> Any:
        out = F.multiply(x, 2.0, out=out)
        F.add(out, 2.0, out=out)
        return F.multiply(out, head, out=out)

    return program


def add(name: str, what: str, arrays: Callable, moved: float, ours: Any = None) -> Workload:
    """Return the row of an addition."""
    plus = lambda x, y: x + y  # noqa: E731
    programs: dict[str, Any] = {"mxop": ours or plus, "numpy": plus, "torch": plus, "jax": plus}
    programs["numpy out"] = lambda x, y, o: np.add(x, y, out=o)
    if torch is not None:
        programs["torch out"] = lambda x, y, o: torch.add(x, y, out=o)
    if "f16" not in name:
        programs["numexpr"] = "x + y"
    return Workload(name, what, programs, arrays, moved=moved)


def clip() -> Workload:
    """Return the row of limits."""
    programs: dict[str, Any] = {
        "mxop": lambda x: nd.clip(x, -1, 1), "mxop out": lambda x, o: nd.clip(x, -1, 1, out=o),
        "numpy": lambda x: np.clip(x, -1, 1), "numpy out": lambda x, o: np.clip(x, -1, 1, out=o),
        "torch": lambda x: torch.clamp(x, -1, 1), "torch out": lambda x, o: torch.clamp(x, -1, 1, out=o),
        "jax": lambda x: jax.numpy.clip(x, -1, 1), "numexpr": "where(x < -1, -1, where(x > 1, 1, x))",
    }  # fmt: skip
    return Workload("e.clip", "clip(-1, 1), 1e7 float32", programs, normal(LARGE), moved=8e7)


def where() -> Workload:
    """Return the row of a choice."""

    def arrays() -> list[np.ndarray]:
        x, y = normal(LARGE, LARGE)()
        return [x > y, x, y]

    def ours(c: Any, x: Any, y: Any) -> Any:
        return nd.where(c, x, y)

    programs = {"mxop": ours, "numpy": np.where, "numexpr": "where(x, y, z)"}
    if torch is not None:
        programs |= {"torch": torch.where, "torch out": lambda c, x, y, o: torch.where(c, x, y, out=o)}
    if jax is not None:
        programs["jax"] = jax.numpy.where
    return Workload("e.where", "where(c, x, y), 1e7 float32, bool", programs, arrays, moved=1.3e8)


def gelu() -> Workload:
    """Return the row of the Gaussian error linear unit."""
    programs: dict[str, Any] = {
        "mxop": lambda x: nd.LeakyReLU(x, act_type="gelu"), "sym": lambda x: sym.LeakyReLU(x, act_type="gelu"),
        "torch": lambda x: torch.nn.functional.gelu(x), "jax": lambda x: jax.nn.gelu(x, approximate=False),
    }  # fmt: skip
    return Workload("e.gelu", "gelu (erf), 1e7 float32", programs, normal(LARGE), moved=8e7,
                    reference=lambda x: x * scipy.special.ndtr(x))  # fmt: skip


def gated() -> Workload:
    """Return the row of ``sigmoid(x*y+z)*x``, eager and bound."""

    def torch_out(x: Any, y: Any, z: Any, out: Any) -> Any:
        out = torch.mul(x, y, out=out)
        return out.add_(z).sigmoid_().mul_(x)

    programs: dict[str, Any] = {
        "mxop": lambda x, y, z: nd.sigmoid(x * y + z) * x, "sym": lambda x, y, z: sym.sigmoid(x * y + z) * x,
        "torch": lambda x, y, z: torch.sigmoid(x * y + z) * x, "torch out": torch_out,
        "jax": lambda x, y, z: jax.nn.sigmoid(x * y + z) * x, "numexpr": "x / (1 + exp(-(x * y + z)))",
        "numpy": lambda x, y, z: x / (1 + np.exp(-(x * y + z))),
    }  # fmt: skip
    return Workload("e.sigmul", "sigmoid(x*y+z)*x, 1e7 float32", programs, normal(LARGE, LARGE, LARGE), moved=1.6e8,
                    bounds={"torch.compile": 0.5, "jax.jit": 0.5, "numexpr out=": 0.5})  # fmt: skip


def accumulated() -> Workload:
    """Return the row of a gradient that is added to one."""

    def into_kept(F: Any) -> Prepared:
        def make(x: Any, head: Any, total: Any) -> Callable:
            kept = F.empty_like(x)

            def run() -> Any:
                F.multiply(x, 2.0, out=kept)
                F.add(kept, 2.0, out=kept)
                F.multiply(kept, head, out=kept)
                return F.add(total, kept, out=total)

            return run

        return Prepared(make)

    def added(x: Any, head: Any, total: Any) -> Any:
        return total + (2.0 * x + 2.0) * head

    programs: dict[str, Any] = {
        "mxop": backward("add"), "numpy": into_kept(np), "torch": added, "jax": added, "numexpr": "z + (2 * x + 2) * y",
    }  # fmt: skip
    if torch is not None:
        programs["torch out"] = into_kept(torch)
    return Workload("e.acc", "quadratic backward, grad_req='add', 1e7 float32", programs, normal(LARGE, LARGE, LARGE),
                    moved=1.6e8, reference=added)  # fmt: skip


def adam() -> Workload:
    """Return the row of Adam in place, with its states; torch's corrections of bias are those of a late step, which are 1."""
    b1, b2, eps, lr = 0.9, 0.999, 1e-8, 1e-3

    def ours(w: Any, g: Any, m: Any, v: Any) -> Any:
        return nd.adam_update(w, g, m, v, lr=lr, out=w), m, v

    def fused(w: Any, g: Any, m: Any, v: Any) -> Any:
        w.requires_grad_()
        w.grad = g
        optimizer = torch.optim.Adam([w], lr=lr, fused=True)
        optimizer.state[w] = {"step": torch.tensor(1e6), "exp_avg": m, "exp_avg_sq": v}
        return lambda: (optimizer.step(), (w, m, v))[1]

    def reference(w: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        return w - lr * m / (np.sqrt(v) + eps), m, v

    return Workload("e.adam", "Adam step in place, 1e7 float32", {"mxop": ours, "torch": Prepared(fused)},
                    lambda: [*(x := normal(LARGE, LARGE, LARGE)()), x[0] ** 2], moved=2.8e8, bound=1.0, claims=3,
                    reference=reference)  # fmt: skip


def momentum() -> Workload:
    """Return the row of gradient descent with momentum, in place; torch's momentum has another scale."""
    lr, factor = 1e-3, 0.9

    def fused(w: Any, g: Any, m: Any) -> Any:
        w.requires_grad_()
        w.grad = g
        optimizer = torch.optim.SGD([w], lr=lr, momentum=factor, fused=True)
        optimizer.state[w] = {"momentum_buffer": m}
        return lambda: (optimizer.step(), (w, m))[1]

    def reference(w: Any, g: Any, m: Any) -> Any:
        m = factor * m - lr * g
        return w + m, m

    programs = {
        "mxop": lambda w, g, m: (nd.sgd_mom_update(w, g, m, lr=lr, momentum=factor, out=w), m),
        "torch": Prepared(fused, lambda results: (results[0], -lr * results[1].detach())),
    }
    return Workload("e.sgdmom", "sgd_mom_update, 1e7 float32", programs,
                    lambda: [*normal(LARGE, LARGE)(), np.zeros(LARGE, "f4")], moved=2e8, bound=1.0, claims=2,
                    reference=reference)  # fmt: skip


def moments(results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return how many numbers were drawn, their mean, their deviation, and the share of those that are positive."""
    (x,) = results
    return [np.array([x.size]), np.array([x.mean(dtype="f8"), x.std(dtype="f8"), (x > 0).mean(), 1.0])]


def random(name: str, what: str, ours: Callable, numpy: Callable, theirs: Callable) -> Workload:
    """Return a row of random numbers, of whose results moments are compared."""
    programs = {"mxop": ours, "numpy": numpy} | ({"torch": theirs} if torch is not None else {})
    return Workload(name, what, programs, normal(LARGE), moved=4e7, bound=0.4, claims=2, compared=moments)


GENERATOR = np.random.default_rng(0)
WORKLOADS = [
    *map(function, ("exp", "tanh", "sin", "log", "erf", "sigmoid")),
    polynomial("e.quad", LARGE, "quadratic forward, 1e7 float32"),
    Workload("e.quadbwd", "quadratic backward, 1e7 float32",
             {"mxop": backward("write"), "numpy": lambda x, g: (2.0 * x + 2.0) * g, "numexpr": "(2 * x + 2) * y",
              "numpy out": backward_out(np), "torch": lambda x, g: (2.0 * x + 2.0) * g, "torch out": backward_out(torch),
              "jax": lambda x, g: (2.0 * x + 2.0) * g}, normal(LARGE, LARGE), moved=1.2e8),
    gelu(), gated(), accumulated(), adam(), momentum(),
    Workload("e.f16exp", "exp, 1e7 float16",
             {"mxop": nd.exp, "numpy": np.exp, "torch": lambda x: torch.exp(x), "jax": lambda x: jax.numpy.exp(x),
              "torch out": lambda x, o: torch.exp(x, out=o)}, normal(LARGE, dtype="float16"), moved=4e7, tolerance=1e-2),
    add("e.add", "x + y, 1e7 float32", normal(LARGE, LARGE), 1.2e8),
    add("e.f16add", "x + y, 1e7 float16", normal(LARGE, LARGE, dtype="float16"), 6e7),
    add("e.i32add", "x + y, 1e7 int32", normal(LARGE, LARGE, dtype="int32", scale=1e6), 1.2e8),
    where(), clip(),
    add("e.bcrow", "broadcast_add, 4096x4096 + 4096", normal((SIDE, SIDE), (1, SIDE)), 8.0 * SIDE**2, nd.broadcast_add),
    add("e.bcout", "broadcast_add, 4096x1 + 1x4096", normal((SIDE, 1), (1, SIDE)), 4.0 * SIDE**2, nd.broadcast_add),
    random("z.uniform", "random.uniform, 1e7", lambda x: nd.random.uniform(shape=x.shape),
           lambda x: GENERATOR.random(x.size, "f4"),
           lambda x: torch.rand(x.shape)),
    random("z.normal", "random.normal, 1e7", lambda x: nd.random.normal(shape=x.shape),
           lambda x: GENERATOR.standard_normal(x.size, "f4"), lambda x: torch.randn(x.shape)),
    random("z.dropout", "Dropout, 1e7", lambda x: nd.Dropout(x, p=0.5, mode="always"),
           lambda x: np.where(GENERATOR.random(x.size, "f4") < 0.5, x * 2, 0), lambda x: torch.nn.functional.dropout(x, 0.5)),
]  # fmt: skip
