"""Workloads that fit into the cache, one thread, beside NumPy: functions, layouts, reductions and movement.

Imports `systems` and `timing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from systems import mx
from timing import Workload

nd = mx.nd
COUNT = 200_000
#: Functions that NumPy has, and where they are defined.
FUNCTIONS = {
    "exp": (0.05, 3), "log": (0.05, 3), "sin": (-3, 3), "cos": (-3, 3), "tan": (-1.5, 1.5), "tanh": (-3, 3), "sinh": (-3, 3),
    "cosh": (-3, 3), "arcsin": (-1, 1), "arccos": (-1, 1), "arctan": (-3, 3), "arcsinh": (-3, 3), "arctanh": (-0.99, 0.99),
    "arccosh": (1.01, 3), "cbrt": (-3, 3), "expm1": (-3, 3), "log1p": (-0.9, 3), "log2": (0.05, 3), "log10": (0.05, 3),
    "sqrt": (0.05, 3), "square": (-3, 3), "abs": (-3, 3), "floor": (-3, 3),
}  # fmt: skip


def between(low: float, high: float, dtype: str, count: int = 1) -> Callable[[], list[np.ndarray]]:
    """Return what makes arrays of uniform numbers."""
    return lambda: [np.random.default_rng(k).uniform(low, high, COUNT).astype(dtype) for k in range(count)]


def row(name: str, what: str, ours: Callable, numpy: Callable, arrays: Callable, with_out: bool = False,
        moved: int = 0, reads: bool = False) -> Workload:  # fmt: skip
    """Return a row of one thread beside NumPy."""
    programs: dict[str, Any] = {"mxop": ours, "numpy": numpy}
    if with_out:
        programs |= {"mxop out": lambda *a: ours(*a[:-1], out=a[-1]), "numpy out": lambda *a: numpy(*a[:-1], out=a[-1])}
    return Workload(f"c.{name}", what, programs, arrays, threads=1, rounds=21, moved=moved, reads=reads, cached=moved > 0)


def short(dtype: str) -> str:
    """Return f32 of float32."""
    return f"{dtype[0]}{dtype[5:]}"


def functions() -> list[Workload]:
    """Return a row of each function, of both types."""
    return [
        row(
            f"{name}.{dtype[0]}{dtype[5:]}",
            f"{name}, 2e5 {dtype}",
            getattr(nd, name),
            getattr(np, name),
            between(*ends, dtype),
            True,
            moved=2 * COUNT * np.dtype(dtype).itemsize,
        )
        for name, ends in FUNCTIONS.items()
        for dtype in ("float32", "float64")
        for both in [(getattr(nd, name), getattr(np, name))]
    ]


def arithmetic() -> list[Workload]:
    """Return rows of powers, remainders and limits."""
    found = []
    for dtype in ("float32", "float64"):
        one, moved = between(0.05, 3, dtype), 2 * COUNT * np.dtype(dtype).itemsize
        for name, f in (("x**2", lambda x: x**2), ("x**3", lambda x: x**3), ("x**0.5", lambda x: x**0.5),
                        ("x**1.7", lambda x: x**1.7), ("x%0.7", lambda x: x % 0.7)):  # fmt: skip
            found.append(row(f"{name}.{short(dtype)}", f"{name}, 2e5 {dtype}", f, f, one, moved=moved))
        found.append(
            row(
                f"clip.{short(dtype)}",
                f"clip, 2e5 {dtype}",
                lambda x: nd.clip(x, 1, 2),
                lambda x: np.clip(x, 1, 2),
                one,
                moved=moved,
            )
        )
        two = between(0.05, 3, dtype, 2)
        found.append(row(f"power.{short(dtype)}", f"x**y, 2e5 {dtype}", nd.power, np.power, two))
        found.append(row(f"mod.{short(dtype)}", f"x % y, 2e5 {dtype}", nd.modulo, np.mod, two))
    return found


# ---- layouts, reductions, movement -----------------------------------------------------------------------------------
def square(dtype: str = "float32") -> list[np.ndarray]:
    """Return a matrix of 512 x 512."""
    return [(np.random.default_rng(0).standard_normal((512, 512)) * 8).astype(dtype)]


def pair() -> list[np.ndarray]:
    """Return two of them."""
    return [*square(), np.random.default_rng(1).standard_normal((512, 512)).astype("f4")]


def cube() -> list[np.ndarray]:
    """Return an array of 64 x 64 x 64."""
    return [np.random.default_rng(0).standard_normal((64, 64, 64)).astype("f4")]


def with_part(make: Callable, *cuts: Any) -> Callable[[], list[np.ndarray]]:
    """Return what makes an array and pieces of it."""

    def arrays() -> list[np.ndarray]:
        (x,) = make()
        return [x, *(np.ascontiguousarray(x[c]) for c in cuts)]

    return arrays


def layout(name: str, ours: Callable, numpy: Callable | None = None, arrays: Callable = square, moved: int = 0,
           reads: bool = False) -> Workload:  # fmt: skip
    """Return a row of the table of layouts, reductions and movement."""
    return row(name.replace(" ", "_"), f"{name}, in cache", ours, numpy or ours, arrays, moved=moved, reads=reads)


def halves(dtype: str) -> Callable[[], Sequence[np.ndarray]]:
    """Return what makes a matrix of a type."""
    return lambda: square(dtype)


def sum_of(*axes: int) -> tuple[Callable, Callable]:
    """Return sums over axes."""
    return lambda x: nd.sum(x, axis=axes), lambda x: np.sum(x, axis=axes)


def picked(x: Any) -> Any:
    """Assign to a block."""
    x[10:200, 10:200] = 1.0
    return x


def softmax(x: Any) -> Any:
    """Evaluate softmax by NumPy."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(x: Any) -> Any:
    """Evaluate its logarithm by NumPy."""
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


BYTES = 512 * 512 * 4
PLACES = np.random.default_rng(3).integers(0, 512, 512)
INDICES = mx.nd.array(PLACES, dtype="int32")
LAYOUTS = [
    layout("add row", nd.broadcast_add, np.add, with_part(square, np.s_[:1]), 2 * BYTES),
    layout("add column", nd.broadcast_add, np.add, with_part(square, np.s_[:, :1])),
    layout("outer", nd.broadcast_add, np.add, lambda: [square()[0][:1].copy(), square()[0][:, :1].copy()]),
    layout("add transposed", lambda x: x + x.T),
    layout("step", lambda x: x[:, ::2] + x[:, 1::2]),
    layout("add flipped", lambda x: x + x[:, ::-1]),
    layout("middle", nd.broadcast_add, np.add, with_part(cube, np.s_[:, :1])),
    layout("last", nd.broadcast_add, np.add, with_part(cube, np.s_[:, :, :1])),
    *(layout(f"to {t}", lambda x, t=t: x.astype(t), moved=BYTES + BYTES // 4 * np.dtype(t).itemsize)
      for t in ("float64", "float16", "int32")),
    layout("to uint8", lambda x: x.astype("uint8"), arrays=lambda: [np.abs(square()[0])]),
    layout("sum all", lambda x: x.sum(), moved=BYTES, reads=True),
    layout("sum 0", lambda x: x.sum(axis=0)), layout("sum 1", lambda x: x.sum(axis=1)),
    layout("sum middle", *sum_of(1), cube), layout("sum 0 and 2", *sum_of(0, 2), cube),
    layout("max all", lambda x: x.max(), moved=BYTES, reads=True),
    layout("max 0", lambda x: x.max(axis=0)), layout("max 1", lambda x: x.max(axis=1)),
    layout("prod all", lambda x: x.prod(), arrays=lambda: [np.full((512, 512), 1.00001, "f4")]),
    layout("mean 0", lambda x: x.mean(axis=0)), layout("argmax 0", lambda x: x.argmax(axis=0)),
    layout("argmax 1", lambda x: x.argmax(axis=1), moved=BYTES, reads=True),
    layout("norm", nd.norm, np.linalg.norm, moved=BYTES, reads=True),
    layout("cumsum 1", lambda x: nd.cumsum(x, axis=1), lambda x: np.cumsum(x, 1)),
    layout("cumsum 0", lambda x: nd.cumsum(x, axis=0), lambda x: np.cumsum(x, 0)),
    layout("sum float16", lambda x: x.sum(axis=1), lambda x: x.sum(axis=1, dtype="f4"), halves("float16")),
    layout("sum int32", lambda x: x.sum(), arrays=halves("int32")),
    layout("max int32", lambda x: x.max(), arrays=halves("int32"), moved=BYTES, reads=True),
    layout("transpose", nd.transpose, lambda x: np.ascontiguousarray(x.T)),
    layout("transpose 0 2 1", lambda x: nd.transpose(x, axes=(0, 2, 1)), lambda x: x.transpose(0, 2, 1).copy(), cube),
    layout("concat 1", lambda x, y: nd.concat(x, y, dim=1), lambda x, y: np.concatenate((x, y), 1), pair, 4 * BYTES),
    layout("stack last", lambda x, y: nd.stack(x, y, axis=-1), lambda x, y: np.stack((x, y), -1), pair),
    layout("tile", lambda x: nd.tile(x, reps=(2, 2)), lambda x: np.tile(x, (2, 2))),
    layout("repeat", lambda x: nd.repeat(x, repeats=2, axis=1), lambda x: np.repeat(x, 2, 1)),
    layout("flip", lambda x: nd.flip(x, axis=1), lambda x: np.flip(x, 1).copy()),
    layout("slice", lambda x: nd.slice(x, begin=(10, 10), end=(200, 200)),
           lambda x: x[10:200, 10:200].copy(), moved=2 * 190 * 190 * 4),
    layout("take", lambda x: nd.take(x, INDICES), lambda x: np.take(x, PLACES, 0), moved=2 * BYTES),
    layout("where", lambda x: nd.where(x > 0, x, x * 0), lambda x: np.where(x > 0, x, x * 0)),
    layout("assign", picked), layout("softmax", nd.softmax, softmax), layout("log_softmax", nd.log_softmax, log_softmax),
]  # fmt: skip
WORKLOADS = [*functions(), *arithmetic(), *LAYOUTS]
