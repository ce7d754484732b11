"""Workloads of operators that users write: a loss as a formula, a kernel of NumPy, small calls of one.

Imports `large`, `systems` and `timing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from systems import Prepared, jax, mx, torch
from timing import Workload

from mxop.op import F, elementwise, kernel

nd, sym, autograd = mx.nd, mx.sym, mx.autograd
SMALL, LARGE = 8, 1_000_000
GAMMA = 2.0


# ---- focal loss ------------------------------------------------------------------------------------------------------
@elementwise(name="compare_focal", override=True)
def focal(data, label, *, gamma: float = GAMMA):
    """Focal loss of logits and labels 0 and 1."""
    z = F.where(label > 0.5, data, -data)
    return F.softplus(-z) * F.sigmoid(-z) ** gamma


def focal_torch(x: Any, label: Any, gamma: float = GAMMA) -> Any:
    """Return the same in torch."""
    z = torch.where(label > 0.5, x, -x)
    return torch.nn.functional.softplus(-z) * torch.sigmoid(-z) ** gamma


def focal_jax(x: Any, label: Any, gamma: float = GAMMA) -> Any:
    """Return the same in JAX."""
    z = jax.numpy.where(label > 0.5, x, -x)
    return jax.nn.softplus(-z) * jax.nn.sigmoid(-z) ** gamma


def focal_numpy(x: np.ndarray, label: np.ndarray, gamma: float = GAMMA) -> np.ndarray:
    """Return the same by NumPy."""
    z = np.where(label > 0.5, x, -x)
    return np.logaddexp(0, -z) / (1 + np.exp(z)) ** gamma


def focal_both_numpy(x: np.ndarray, label: np.ndarray, head: np.ndarray, gamma: float = GAMMA) -> list[np.ndarray]:
    """Return the loss and its gradient, by hand and by NumPy."""
    sign = np.where(label > 0.5, 1, -1)
    p = 1 / (1 + np.exp(sign * x))  # sigmoid(-z), whose derivative is -p(1 - p); that of softplus(-z) is -p
    slope = -(p ** (gamma + 1)) - np.logaddexp(0, -sign * x) * gamma * p**gamma * (1 - p)
    return [focal_numpy(x, label), sign * slope * head]


def logits() -> list[np.ndarray]:
    """Return logits and labels 0 and 1."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=LARGE).astype("f4"), rng.integers(0, 2, LARGE).astype("f4")]


# ---- a kernel of NumPy -----------------------------------------------------------------------------------------------
@kernel(name="compare_cumulated", override=True)
def cumulated(data):
    """Sum of the elements so far, in rows."""


@kernel(name="compare_cumulated_back", override=True)
def cumulated_back(head):
    """Sum of the elements from each on, in rows."""


cumulated.shape(lambda data: data)
cumulated_back.shape(lambda head: head)


@cumulated.both
def _cumulated_both(xp: Any, inputs: list, outputs: list) -> None:
    xp.cumsum(inputs[0], axis=-1, out=outputs[0])


@cumulated_back.both
def _cumulated_back_both(xp: Any, inputs: list, outputs: list) -> None:
    xp.cumsum(inputs[0][..., ::-1], axis=-1, out=outputs[0][..., ::-1])


@cumulated.gradient
def _cumulated_gradient(F: Any, heads: list, inputs: list, outputs: list) -> list:
    return [F.compare_cumulated_back(heads[0])]


def cumulated_numpy(x: np.ndarray) -> np.ndarray:
    """Return the same as a function of NumPy alone."""
    return np.cumsum(x, axis=-1)


def cumulated_both_numpy(x: np.ndarray, head: np.ndarray) -> list[np.ndarray]:
    """Return the result and the gradient, as functions of NumPy alone."""
    return [np.cumsum(x, axis=-1), np.cumsum(head[..., ::-1], axis=-1)[..., ::-1]]


def cumulated_function() -> Any:
    """Return torch's counterpart of a kernel: an ``autograd.Function`` around NumPy."""

    class Cumulated(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.from_numpy(np.cumsum(x.numpy(), axis=-1))

        @staticmethod
        def backward(ctx, head):
            return torch.from_numpy(np.cumsum(head.numpy()[..., ::-1], axis=-1)[..., ::-1].copy())

    return Cumulated.apply


# ---- forward and backward --------------------------------------------------------------------------------------------
def trained(call: Callable) -> Prepared:
    """Return a call that is recorded: its result, and its gradient by the first array; the last is the head's gradient."""

    def make(x: Any, *rest: Any) -> Callable:
        *given, head = rest
        x.attach_grad()

        def run() -> Any:
            with autograd.record():
                y = call(x, *given)
            y.backward(head)
            return y, x.grad

        return run

    return Prepared(make)


def trained_bound(call: Callable) -> Prepared:
    """Return the same, bound."""

    def make(x: Any, *rest: Any) -> Callable:
        *given, head = rest
        names = [f"x{k}" for k in range(len(given) + 1)]
        grad = nd.zeros(x.shape)
        executor = call(*map(sym.Variable, names)).bind(
            mx.cpu(), dict(zip(names, [x, *given], strict=True)), args_grad={"x0": grad},
            grad_req={n: "write" if n == "x0" else "null" for n in names})  # fmt: skip

        def run() -> Any:
            executor.forward(is_train=True)
            executor.backward(head)
            return [*executor.outputs, grad]

        return run

    return Prepared(make)


def trained_torch(call: Callable[[], Callable]) -> Prepared:
    """Return the same in torch; `call` makes the function when it is needed."""

    def make(x: Any, *rest: Any) -> Callable:
        *given, head = rest
        function, x = call(), x.requires_grad_()

        def run() -> Any:
            y = function(x, *given)
            return y, *torch.autograd.grad(y, x, head)

        return run

    return Prepared(make)


def compiled_focal() -> Callable:
    """Return the loss compiled by torch, for what is recorded."""
    torch.compiler.reset()
    return torch.compile(focal_torch)


def focal_trained_jax(x: Any, label: Any, head: Any) -> Any:
    """Return the loss and its gradient in JAX."""
    y, backward = jax.vjp(lambda x: focal_jax(x, label), x)
    return y, *backward(head)


def with_head(arrays: Callable) -> Callable:
    """Return arrays that end with the gradient of the result."""
    return lambda: [*(found := arrays()), np.random.default_rng(1).normal(size=found[0].shape).astype("f4")]


def rows_of(*shape: int) -> Callable:
    """Return what makes an array of normal numbers."""
    return lambda: [np.random.default_rng(0).normal(size=shape).astype("f4")]


def called_function(x: Any) -> Callable:
    """Return the call of torch's counterpart."""
    function = cumulated_function()
    return lambda: function(x)


TRAINED = {"mxop": trained(cumulated), "sym": trained_bound(cumulated), "torch": trained_torch(cumulated_function)}

WORKLOADS = [
    Workload("u.focal", "a user's focal loss, gamma a float, forward, 1e6",
             {"mxop": focal, "sym": focal, "torch": focal_torch, "jax": focal_jax}, logits, moved=1.2e7, bound=1.0,
             bounds={"torch.compile": 1.0}, rounds=21, reference=focal_numpy),
    Workload("u.focal.both", "the same, forward and backward",
             {"mxop": trained(focal), "sym": trained_bound(focal), "torch": trained_torch(lambda: focal_torch),
              "torch.compile": trained_torch(compiled_focal), "jax": focal_trained_jax}, with_head(logits), bound=1.25,
             bounds={"torch.compile": 0.4}, rounds=21, claims=2, reference=focal_both_numpy),
    Workload("u.numpy", "a user's kernel of NumPy, (1000, 1000)",
             {"mxop": cumulated, "numpy": cumulated_numpy}, rows_of(1000, 1000), bound=1.2),
    Workload("u.numpy.both", "the same, forward and backward",
             {"mxop": TRAINED["mxop"], "sym": TRAINED["sym"], "numpy": cumulated_both_numpy},
             with_head(rows_of(1000, 1000)), bound=1.2, claims=2),
    Workload("u.call", "a user's kernel of NumPy, 8 float32",
             {"mxop": cumulated, "torch": Prepared(called_function)}, rows_of(SMALL), bound=2.0, rounds=31, threads=1,
             reference=cumulated_numpy),
    Workload("u.call.both", "the same, forward and backward", TRAINED, with_head(rows_of(SMALL)), bound=2.0, rounds=31,
             threads=1, claims=2, reference=cumulated_both_numpy),
]  # fmt: skip
