"""Partially known shapes and types, and the rules by which operators complete them in both directions.

A shape is a tuple with ``None`` for unknown dimensions; an unknown rank is ``None``; an unknown type is ``dtypes.UNKNOWN``.
MXNet's forms (0, -1, ``()``) are converted at the boundary by :func:`from_legacy`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError

Shape = tuple[int | None, ...] | None


class Conflict(ValueError):
    """Two shapes or types that cannot both hold."""


def known(shape: Shape) -> bool:
    """Return whether rank and all dimensions are known."""
    return shape is not None and None not in shape


def from_legacy(shape: Sequence[int] | None, np_shape: bool = False) -> Shape:
    """Return a shape in MXNet's form as ours: ``()`` and None are unknown, as is a dimension 0 (or -1 with `np_shape`)."""
    if shape is None or (len(shape) == 0 and not np_shape):
        return None
    unknown = (-1, None) if np_shape else (0, -1, None)
    result = tuple([None if d in unknown else d if isinstance(d, int) else int(d) for d in shape])
    if any(d is not None and d < 0 for d in result):
        raise OpValueError(f"the shape {tuple(shape)} holds a negative size")
    return result


def to_legacy(shape: Shape, np_shape: bool = False) -> tuple[int, ...] | None:
    """Return a shape in MXNet's form: an unknown rank is ``()`` (None with `np_shape`), an unknown dimension 0 (-1)."""
    if shape is None:
        return None if np_shape else ()
    return tuple((-1 if np_shape else 0) if d is None else d for d in shape)


def unify(a: Shape, b: Shape) -> Shape:
    """Return the shape known from two partial descriptions of it.

    Raises
    ------
    Conflict
        If they disagree.
    """
    if a is None or a is b:
        return b
    if b is None:
        return a
    if a == b:
        return a
    if len(a) != len(b):
        raise Conflict
    result = []
    for x, y in zip(a, b, strict=True):
        if x is not None and y is not None and x != y:
            raise Conflict
        result.append(y if x is None else x)
    return tuple(result)


def show(shape: Shape) -> str:
    """Return a shape as text for messages, with ``?`` for unknown dimensions."""
    if shape is None:
        return "(unknown)"
    inner = ", ".join("?" if d is None else str(d) for d in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def same_shape(op_name: str, names: Sequence[str], shapes: list[Shape]) -> list[Shape]:
    """Return equal shapes for all, completed from each other; raise if they disagree.

    The last name may begin with "expected": its shape follows from other inputs or from parameters, which the rest names.
    """
    result: Shape = None
    for i, shape in enumerate(shapes):
        try:
            result = unify(result, shape)
        except Conflict:
            j = next(j for j in range(i) if not compatible(shapes[j], shape))
            other = f" but {names[i]} has shape {show(shape)}; expected equal shapes"
            if names[i].startswith("expected"):
                other = f"; expected {show(shape)}{names[i][8:]}"
            raise OpValueError(f"operator {op_name}: {names[j]} has shape {show(shapes[j])}{other}") from None
    return [result] * len(shapes)


def compatible(a: Shape, b: Shape) -> bool:
    """Return whether two descriptions can be of the same shape."""
    try:
        unify(a, b)
    except Conflict:
        return False
    return True


def check_sizes(who: str, shape: Sequence | None) -> None:
    """Raise unless a user's rule returned sizes: non-negative integers, or None if unknown."""
    for d in shape or ():
        if (type(d) is not int or d < 0) and d is not None and (isinstance(d, bool) or not hasattr(d, "__index__") or d < 0):
            raise OpValueError(f"{who} returned {tuple(shape)}; expected sizes that are whole numbers and not negative")


def agreed(op_name: str, names: Sequence[str], found: Sequence[Shape], given: Sequence[Shape],
           source: str = " but the inputs give") -> list[Shape]:  # fmt: skip
    """Return the output shapes that a rule inferred, completed by those that were given; `source` says whose rule it was.

    Raises
    ------
    OpValueError
        If they disagree.
    """
    result = []
    for name, want, have in zip(names, found, given, strict=True):
        try:
            result.append(unify(want, have))
        except Conflict:
            raise OpValueError(f"operator {op_name}: {name} has shape {show(have)}{source} {show(want)}") from None
    return result


def check_inputs(op_name: str, names: Sequence[str], found: Sequence[Shape], given: Sequence[Shape]) -> None:
    """Raise unless the inputs of a call have the shapes that a rule inferred for them."""
    for name, want, have in zip(names, found, given, strict=True):
        if not compatible(want, tuple(have)):
            raise OpValueError(f"operator {op_name}: argument {name} has {show(tuple(have))}; expected {show(want)}")


def broadcast_shape(op_name: str, names: Sequence[str], shapes: Sequence[Shape]) -> Shape:
    """Return the shape to which `shapes` broadcast by NumPy's rule, as far as known."""
    if any(s is None for s in shapes):
        return None
    rank = max((len(s) for s in shapes), default=0)
    result: list[int | None] = []
    for axis in range(-rank, 0):
        sizes = [s[axis] for s in shapes if len(s) >= -axis]
        fixed = {d for d in sizes if d is not None and d != 1}
        if len(fixed) > 1 and any(d != e for d in fixed for e in fixed):  # symbolic sizes may be equal
            listed = ", ".join(f"{n} {show(s)}" for n, s in zip(names, shapes, strict=True))
            raise OpValueError(
                f"operator {op_name}: shapes do not broadcast: {listed}; axis {axis} has sizes "
                f"{sorted(fixed)}, expected equal sizes or 1"
            )
        if fixed:
            result.append(fixed.pop())
        else:
            result.append(None if None in sizes else 1)
    return tuple(result)


def same_type(op_name: str, names: Sequence[str], types: list[int]) -> list[int]:
    """Return equal types for all, completed from each other; raise if they disagree."""
    result = dtypes.UNKNOWN
    first = 0
    for i, t in enumerate(types):
        if t == dtypes.UNKNOWN:
            continue
        if result == dtypes.UNKNOWN:
            result, first = t, i
        elif t != result:
            raise OpTypeError(
                f"operator {op_name}: {names[first]} has dtype {dtypes.NAMES[result]} but {names[i]} has dtype "
                f"{dtypes.NAMES[t]}; expected equal dtypes (use astype or Cast)"
            )
    return [result] * len(types)


def normal_axis(op_name: str, axis: int, rank: int, what: str = "axis") -> int:
    """Return `axis` counted from the front."""
    from ..support.errors import OpIndexError

    if axis is None or not -rank <= axis < rank:
        raise OpIndexError(
            f"operator {op_name}: {what}={axis} is out of range for an array of {rank} dimensions; "
            f"expected {f'a value from {-rank} to {rank - 1}' if rank else 'one that has axes'}"
        )
    return axis + rank if axis < 0 else axis


def distinct_axes(op_name: str, axis: Sequence[int], rank: int) -> list[int]:
    """Return axes counted from the front; an axis that is named twice is an error."""
    axes = [normal_axis(op_name, a, rank) for a in axis]
    if len(set(axes)) != len(axes):
        raise OpValueError(f"operator {op_name}: axis={axis} names an axis twice")
    return axes


def reduced_axes(op_name: str, axis: tuple[int, ...] | None, exclude: bool, rank: int) -> tuple[int, ...]:
    """Return the sorted axes of a reduction: all if none are given; `exclude` inverts the choice."""
    if axis is None or axis == ():
        return () if exclude and axis == () and rank == 0 else tuple(range(rank))
    axes = set(distinct_axes(op_name, axis, rank))
    chosen = set(range(rank)) - axes if exclude else axes
    return tuple(sorted(chosen))
