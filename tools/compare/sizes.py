"""Workloads of one operator of each kind, at ten to a hundred million elements: where a step is, and who is ahead there.

Imports `large`, `systems` and `timing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

import numpy as np
from large import normal
from systems import jax, mx, torch
from timing import Workload

SIZES = range(1, 9)  # powers of ten
ROW = 100
Arrays = Callable[[], Sequence[np.ndarray]]


def vector(n: int) -> Arrays:
    """Return what makes a vector."""
    return normal(n)


def two(n: int) -> Arrays:
    """Return what makes two vectors."""
    return normal(n, n)


def square(n: int) -> Arrays:
    """Return what makes a matrix of about as many elements."""
    return normal((isqrt(n), isqrt(n)))


def rows(n: int) -> Arrays:
    """Return what makes rows of up to a hundred elements."""
    return normal((max(n // ROW, 1), min(n, ROW)))


def places(n: int) -> Arrays:
    """Return what makes a table of rows and as many places in it."""

    def make() -> list[np.ndarray]:
        table = rows(n)()[0]
        return [table, np.random.default_rng(1).integers(0, len(table), len(table)).astype("int32")]

    return make


def _programs(ours: Any, numpy: Any, torchs: Any, jaxs: Any) -> dict[str, Any]:
    found = {"mxop": ours, "numpy": numpy}
    if torch is not None:
        found["torch"] = torchs
    if jax is not None:
        found["jax"] = jaxs
    return found


#: By the kind of operator: what is called, the largest power of ten, arrays, and the programs.
KINDS: dict[str, tuple[str, int, Callable, dict[str, Any]]] = {
    "add": ("x + y", 8, two, _programs(*[lambda x, y: x + y] * 4)),
    "tanh": ("tanh(x)", 8, vector, _programs(
        lambda x: mx.nd.tanh(x), np.tanh, lambda x: torch.tanh(x), lambda x: jax.numpy.tanh(x))),
    "sum": ("sum of all", 8, vector, _programs(
        lambda x: mx.nd.sum(x), np.sum, lambda x: torch.sum(x), lambda x: jax.numpy.sum(x))),
    "softmax": ("softmax of rows of 100", 8, rows, _programs(
        lambda x: mx.nd.softmax(x), lambda x: (e := np.exp(x - x.max(1, keepdims=True))) / e.sum(1, keepdims=True),
        lambda x: torch.softmax(x, 1), lambda x: jax.nn.softmax(x, 1))),
    "transpose": ("transpose of a square, copied", 8, square, _programs(
        lambda x: mx.nd.transpose(x), lambda x: x.T.copy(), lambda x: x.T.contiguous(), lambda x: x.T + 0)),
    "take": ("take of rows of 100", 8, places, _programs(
        lambda t, i: mx.nd.take(t, i), lambda t, i: t[i], lambda t, i: t.index_select(0, i), lambda t, i: t[i])),
    "dot": ("product of squares", 7, square, _programs(
        lambda x: mx.nd.dot(x, x), lambda x: x @ x, lambda x: x @ x, lambda x: x @ x)),
    "concat": ("concat of two", 8, two, _programs(
        lambda x, y: mx.nd.concat(x, y, dim=0), lambda x, y: np.concatenate([x, y]), lambda x, y: torch.cat([x, y]),
        lambda x, y: jax.numpy.concatenate([x, y]))),
}  # fmt: skip

WORKLOADS = [
    Workload(f"n.{kind}.1e{k}", f"{what}, 1e{k} float32", programs, arrays(10**k), bound=1.0, rounds=5 if k > 6 else 9)
    for kind, (what, most, arrays, programs) in KINDS.items()
    for k in SIZES
    if k <= most
]
