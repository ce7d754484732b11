"""Workloads of eight elements: what a call costs beside its work.  Imports `systems` and `timing`."""

from __future__ import annotations

from typing import Any

import numpy as np
from systems import Prepared, jax, mx, torch
from timing import Workload

nd, autograd = mx.nd, mx.autograd
ROUNDS = 31


def eight() -> list[np.ndarray]:
    """Return two arrays of eight numbers."""
    values = np.linspace(0.1, 0.8, 8, dtype=np.float32)
    return [values, values[::-1].copy()]


def one() -> list[np.ndarray]:
    """Return an array of eight numbers."""
    return eight()[:1]


def every(program: Any, *written: str) -> dict[str, Any]:
    """Return one program that all systems understand alike."""
    return dict.fromkeys(written or ("mxop", "numpy", "torch", "jax"), program)


def view(program: Any) -> dict[str, Any]:
    """Return a program that makes a view, which torch cannot compile: it is only called."""
    return every(program) | {"torch": Prepared(lambda x: lambda: program(x))}


def quadratic(x: Any) -> Any:
    """Evaluate the polynomial that the package has an operator for."""
    return x * x + 2.0 * x + 3.0


def recorded(order: int, f: Any) -> Prepared:
    """Return the recording and backward of a function, with the gradient's gradient at the second order."""

    def make(x: Any) -> Any:
        x.attach_grad()

        def run() -> Any:
            with autograd.record():
                y = f(nd, x)
                for _ in range(order - 1):
                    (y,) = autograd.grad(y, [x], create_graph=True)
            y.backward()
            return x.grad

        return run

    return Prepared(make)


def recorded_torch(order: int, f: Any) -> Prepared:
    """Return the same in torch."""

    def make(x: Any) -> Any:
        x.requires_grad_()
        ones = torch.ones(8)

        def run() -> Any:
            x.grad = None
            y = f(torch, x)
            for _ in range(order - 1):
                (y,) = torch.autograd.grad(y, x, ones, create_graph=True)
            y.backward(ones)
            return x.grad

        return run

    return Prepared(make)


def derived(order: int, f: Any) -> Any:
    """Return the same in JAX."""

    def program(x: Any) -> Any:
        g = lambda x: f(jax.numpy, x)  # noqa: E731
        for _ in range(order):
            g = jax.grad(lambda x, g=g: g(x).sum())
        return g(x)

    return program


def derived_compiled(order: int, f: Any) -> Prepared:
    """Return the derivative as one compiled function."""

    def program(x: Any) -> Any:
        y = f(nd, x)
        for _ in range(order):
            (y,) = autograd.grad(y, [x], create_graph=True)
        return y

    def make(x: Any) -> Any:
        function = mx.graph.compiled(program)
        return lambda: function(x)

    return Prepared(make)


def orders(name: str, what: str, order: int, f: Any) -> list[Workload]:
    """Return the rows of a derivative: recorded calls beside recorded calls, compiled functions beside compiled ones."""
    calls = {"mxop": recorded(order, f), "torch": recorded_torch(order, f)}
    compiled = {"mxop": derived_compiled(order, f), "jax": derived(order, f)}
    return [
        Workload(name, f"{what}, recorded", calls, one, rounds=ROUNDS, bound=0.2),
        Workload(f"{name}c", f"{what}, compiled", compiled, one, rounds=ROUNDS),
    ]


CHAIN = ("sin", "exp", "tanh", "sigmoid", "square", "sqrt", "log1p", "arctan", "cos", "expm1")


def chain(F: Any, x: Any) -> Any:
    """Ten operators, one after the other."""
    for name in CHAIN:
        if F is torch and name == "arctan":
            x = torch.atan(x)
        elif jax is not None and F is jax.numpy and name == "sigmoid":
            x = jax.nn.sigmoid(x)
        else:
            x = getattr(F, name)(x)
    return x


def chain_bound() -> Prepared:
    """Return forward and backward of the ten, bound."""

    def make(x: Any) -> Any:
        grad, head = nd.zeros((8,)), nd.ones((8,))
        executor = chain(mx.sym, mx.sym.Variable("x")).bind(mx.cpu(), {"x": x}, args_grad={"x": grad})

        def run() -> Any:
            executor.forward(is_train=True)
            executor.backward(head)
            return [*executor.outputs, grad]

        return run

    return Prepared(make)


def chain_torch(x: Any) -> Any:
    """Return the same in torch."""
    x.requires_grad_()
    head = torch.ones(8)

    def run() -> Any:
        y = chain(torch, x)
        return y, *torch.autograd.grad(y, x, head)

    return run


def chain_jax(x: Any) -> Any:
    """Return the same in JAX."""
    y, backward = jax.vjp(lambda x: chain(jax.numpy, x), x)
    return y, *backward(jax.numpy.ones_like(y))


def matrix() -> list[np.ndarray]:
    """Return an array of three dimensions."""
    return [np.arange(120, dtype=np.float32).reshape(4, 6, 5)]


def square() -> list[np.ndarray]:
    """Return a matrix of 8 x 8."""
    return [np.arange(64, dtype=np.float32).reshape(8, 8)]


def assign(x: Any) -> Any:
    """Write into a slice."""
    x[1:5] = 0
    return x


def add_one(x: Any) -> Any:
    """Add in place."""
    x += 1
    return x


def call(name: str, ours: Any, numpy: Any = None, arrays: Any = one) -> Workload:
    """Return a row of the small calls beside NumPy."""
    return Workload(f"call.{name}", f"{name}, 8 float32" if arrays is one else name, {"mxop": ours, "numpy": numpy or ours},
                    arrays, bound=1.5, rounds=ROUNDS, tolerance=1e-5)  # fmt: skip


VALUES = eight()[0]
OUT = nd.zeros((8,)), np.zeros(8, np.float32)
MODULES = (("mxop", nd), ("numpy", np), ("torch", torch))
WORKLOADS = [
    Workload("s.add", "x + y, 8 float32", every(lambda x, y: x + y), eight, rounds=ROUNDS, bounds={"numpy": 0.5}),
    Workload("s.sin", "sin(x), 8 float32", {n: (lambda x, f=m.sin: f(x)) for n, m in MODULES if m is not None}, one,
             rounds=ROUNDS),
    Workload("s.quad", "quadratic, 8 float32",
             every(quadratic) | {"mxop": lambda x, f=nd.quadratic: f(x, a=1.0, b=2.0, c=3.0),
                                 "numexpr": "x * x + 2.0 * x + 3.0"},
             one, rounds=ROUNDS, bounds={"numpy": 0.3}),
    Workload("s.sum", "sum(x), 8 float32", every(lambda x: x.sum()), one, rounds=ROUNDS),
    Workload("s.reshape", "x.reshape(2, 4), 8 float32", view(lambda x: x.reshape((2, 4))), one, rounds=ROUNDS, bound=1.5),
    Workload("s.slice", "x[1:5], 8 float32", view(lambda x: x[1:5]), one, rounds=ROUNDS, bound=1.5),
    *orders("s.rec1", "gradient of sin(x)*x, 8 float32", 1, lambda F, x: F.sin(x) * x),
    *orders("s.rec2", "second order of sin(x)*x, 8 float32", 2, lambda F, x: F.sin(x) * x),
    *orders("s.rec2s", "second order of sin(x), 8 float32", 2, lambda F, x: F.sin(x)),
    Workload("s.chain10", "10-operator chain, forward and backward, 8 float32",
             {"mxop": chain_bound(), "torch": Prepared(chain_torch), "jax": chain_jax}, one, rounds=ROUNDS,
             bounds={"torch": 0.1}, claims=2),
    call("x[3]", lambda x: x[3]),
    call("m[1,:,2]", lambda m: m[1, :, 2], arrays=matrix),
    call("m[:, None]", lambda m: m[:, None], arrays=matrix),
    call("m.T", lambda m: m.T, arrays=matrix),
    call("sum axis", lambda m: m.sum(axis=1), arrays=matrix),
    call("concat", lambda x, y: nd.concat(x, y, dim=0), lambda x, y: np.concatenate((x, y)), eight),
    call("stack", lambda x, y: nd.stack(x, y), lambda x, y: np.stack((x, y)), eight),
    call("astype", lambda x: x.astype("float64")),
    call("asnumpy", lambda x: x.asnumpy(), lambda x: x.copy()),
    call("shape", lambda x: x.shape),
    call("zeros", lambda x: nd.zeros((8,)), lambda x: np.zeros(8, np.float32)),
    call("array", lambda x: nd.array(VALUES), lambda x: np.array(x)),
    call("dot 8x8", lambda m: nd.dot(m, m), lambda m: np.dot(m, m), square),
    call("exp", lambda x: nd.exp(x), lambda x: np.exp(x)),
    call("exp, out=", lambda x: nd.exp(x, out=OUT[0]), lambda x: np.exp(x, out=OUT[1])),
    call("x > 0", lambda x: x > 0),
    call("maximum", lambda x, y: nd.maximum(x, y), lambda x, y: np.maximum(x, y), eight),
    call("where", lambda x, y: nd.where(x, x, y), lambda x, y: np.where(x, x, y), eight),
    call("transpose", lambda m: nd.transpose(m), lambda m: np.transpose(m), matrix),
    call("softmax", lambda x: nd.softmax(x), lambda x: (e := np.exp(x - x.max())) / e.sum()),
    call("x[1:5] = 0", assign),
    call("x += 1", add_one),
    call("item", lambda x: x[:1].item()),
]  # fmt: skip
