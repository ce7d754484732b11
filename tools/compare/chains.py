"""Workloads of chains of eager calls, beside the same bound, and beside the peers.  Imports `large`, `systems` and `timing`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from large import LARGE, normal
from systems import Prepared, jax, mx, torch
from timing import Workload


def three(F: Any, x: Any, y: Any) -> Any:
    """Three operators."""
    return F.tanh(x * y) + x


def five(F: Any, x: Any, y: Any) -> Any:
    """Five operators."""
    return F.tanh(x * y + x) * y - x


def ten(F: Any, x: Any, y: Any) -> Any:
    """Ten operators."""
    h = F.tanh(x * y + x)
    return F.exp(h * h * -0.5) * y + F.sqrt(h * h + 1)


CHAINS = {3: three, 5: five, 10: ten}


def forward(n: int, chain: Callable) -> Workload:
    """Return the row of a chain."""
    programs: dict[str, Any] = {name: _of(chain, F) for name, F in _spaces().items()}
    programs["executor"] = programs.pop("sym")
    return Workload(f"h.chain{n}", f"{n} eager calls, 1e7 float32", programs, normal(LARGE, LARGE), moved=1.2e8,
                    bounds={"executor": 1.2})  # fmt: skip


def differentiated(n: int, chain: Callable) -> Workload:
    """Return the row of a chain that is recorded and differentiated."""

    def ours(*arrays: Any) -> Callable:
        for a in arrays:
            a.attach_grad()

        def step() -> list[Any]:
            with mx.autograd.record():
                loss = chain(mx.nd, *arrays)
            loss.backward()
            return [loss, *(a.grad for a in arrays)]

        return step

    def executor(*arrays: Any) -> Callable:
        x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
        grads = {k: mx.nd.zeros_like(a) for k, a in zip("xy", arrays, strict=True)}
        bound = chain(mx.sym, x, y).bind(mx.cpu(), dict(zip("xy", arrays, strict=True)), grads)
        head = mx.nd.ones_like(arrays[0])

        def step() -> list[Any]:
            bound.forward(is_train=True)
            bound.backward([head])
            return [*bound.outputs, *grads.values()]

        return step

    def torchs(*arrays: Any) -> Callable:
        given = [a.requires_grad_() for a in arrays]
        head = torch.ones_like(arrays[0])

        def step() -> list[Any]:
            loss = chain(torch, *given)
            return [loss, *torch.autograd.grad(loss, given, head)]

        return step

    def jaxs(x: Any, y: Any) -> list[Any]:
        loss, backward = jax.vjp(lambda x, y: chain(jax.numpy, x, y), x, y)
        return [loss, *backward(jax.numpy.ones_like(loss))]

    programs: dict[str, Any] = {"mxop": Prepared(ours), "executor": Prepared(executor)}
    if torch is not None:
        programs["torch"] = Prepared(torchs)
    if jax is not None:
        programs["jax"] = jaxs
    return Workload(f"h.gradient{n}", f"{n} eager calls, recorded and differentiated, 1e7 float32", programs,
                    normal(LARGE, LARGE), moved=2e8, bounds={"executor": 1.5}, claims=3)  # fmt: skip


def _spaces() -> dict[str, Any]:
    """Return where each system has its functions."""
    import numpy as np

    found = {"mxop": mx.nd, "sym": mx.sym, "numpy": np, "torch": torch}
    if jax is not None:
        found["jax"] = jax.numpy
    return {name: F for name, F in found.items() if F is not None}


def _of(chain: Callable, F: Any) -> Callable:
    return lambda x, y: chain(F, x, y)


WORKLOADS = [make(n, chain) for make in (forward, differentiated) for n, chain in CHAINS.items()]
