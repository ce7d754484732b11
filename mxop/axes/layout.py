"""From axes to positions: plain arrays or symbols, moved so that positions agree.

Everything here takes a plain value (NDArray or Symbol) and `F`, the namespace of its operators; values without axes have
shape ``(1,)``, or ``()`` under ``mx.util.np_shape``.  Lengths are used only where an operator needs them.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from ..support.shape_mode import numpy_shape
from .axis import Axes, known_lengths, unmatched


def plain_shape(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a plain value with axes of these lengths."""
    return lengths if lengths or numpy_shape() else (1,)


def ordered(F: Any, value: Any, have: Axes, want: Axes) -> Any:
    """Transpose a value into another order of its axes.

    Raises
    ------
    UnmatchedAxesError
        When the axes differ by more than order.
    """
    order = None if have is want else _order(have, want)
    return value if order is None else F.transpose(value, axes=order)


def aligned(F: Any, value: Any, have: Axes, want: Axes) -> Any:
    """Return a value that broadcasts to `want`: its axes in that order, with size 1 for those missing in between."""
    if have is want:
        return value
    order, places = _alignment(have, want)
    if order is not None:
        value = F.transpose(value, axes=order)
    for at in places:
        value = F.expand_dims(value, axis=at)
    return value


@lru_cache(4096)
def union(a: Axes, b: Axes) -> Axes:
    """Return ``a | b``."""
    return a if b.is_sub_set(a) else a | b


@lru_cache(4096)
def _order(have: Axes, want: Axes) -> tuple[int, ...] | None:
    """Return the permutation that leads from one order of axes to another; None for no change."""
    if have == want:
        return None
    if not have.is_equal_set(want):
        raise unmatched(f"axes {have!r} cannot be put into the order {want!r}: they are not the same axes", have, want)
    return tuple(have.index(a) for a in want)


@lru_cache(4096)
def _alignment(have: Axes, want: Axes) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """Return the permutation that brings axes into the order of `want`, and where dimensions of size 1 come in."""
    first = next((at for at, axis in enumerate(want) if axis in have), len(want))  # leading ones need not be there
    return _order(have, want & have), tuple(at for at, axis in enumerate(want[first:]) if axis not in have)


def spread(F: Any, value: Any, have: Axes, want: Axes, what: str = "broadcast") -> Any:
    """Return a value that is repeated along the axes of `want` that it does not have."""
    if have == want:
        return value
    missing = want - have
    if not missing:
        return ordered(F, value, have, want)
    lengths = known_lengths(missing, what)
    if not have:
        value = F.Reshape(value, shape=(1,) * len(want))
    else:
        value = ordered(F, value, have, want & have)
        for at, axis in enumerate(want):
            if axis not in have:
                value = F.expand_dims(value, axis=at)
    places = [(want.index(a), n) for a, n in zip(missing, lengths, strict=True) if n != 1]
    if not places:
        return value
    return F.broadcast_axis(value, axis=tuple(at for at, _ in places), size=tuple(n for _, n in places))


def merged(F: Any, value: Any, at: int, count: int) -> Any:
    """Merge `count` dimensions from a position on into one; of none make one of size 1."""
    if count == 0:
        return F.expand_dims(value, axis=at)
    for _ in range(count - 1):
        value = F.Reshape(value, shape=(0,) * at + (-3, -2))
    return value


def split(F: Any, value: Any, at: int, rank: int, axes: Axes, what: str) -> Any:
    """Undo :func:`merged`: give the dimension at a position of a value of `rank` the shape of axes."""
    if len(axes) == 1:
        return value
    if not axes:
        return F.squeeze(value, axis=(at,)) if rank > 1 else value
    lengths = known_lengths(axes, what)
    for k in range(len(axes) - 1):
        rest = -1 if all(lengths) else prod(lengths[k + 1 :])
        value = F.Reshape(value, shape=(0,) * (at + k) + (-4, lengths[k], rest, -2))
    return value
