"""Parts of tensors, and tensors put together: slices, concatenation, stacks, padding.

A slice of an axis has a variant of the axis: slices of equal length of one axis have one axis, so ``x[1:] - x[:-1]`` are
differences by name.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from ..support.errors import (
    IncompatibleAxesError,
    OpIndexError,
    OpTypeError,
    OpValueError,
    UnmatchedAxesError,
    items,
    shown,
    translated,
)  # fmt: skip
from .axis import Axes, Axis, known_lengths, label, make_axes, unmatched
from .layout import ordered, plain_shape
from .tensor import Tensor, mixed


# ---- slices ---------------------------------------------------------------------------------------------------------
def tensor_slice(x: Tensor, slices: Any, axes: Any = None) -> Any:
    """Return a part of a tensor.

    Parameters
    ----------
    x : Tensor
    slices : sequence of (int or slice), or dict
        One item per axis, those at the end may be missing; or items by axis (or its name). A number takes its axis away.
    axes : Axes, optional
        Axes of the result; by default the same ones, and a variant of an axis where its length changes.

    Examples
    --------
    >>> H, W = mx.axes.make_axis(2, 'H'), mx.axes.make_axis(3, 'W')
    >>> x = mx.axes.array([[1, 2, 3], [4, 5, 6]], [H, W])
    >>> mx.axes.tensor_slice(x, [1, slice(0, 2)])
    <BLANKLINE>
    [4. 5.]
    <NamedArray Axes(W: 2) @cpu(0)>
    """
    key, found = sliced_axes(x.axes, slices)
    value = x.value
    if x.axes:
        value = value[key] if x._holds_data else _sliced_symbol(x.F, value, key)
        if not found and x._holds_data and value.shape != plain_shape(()):
            value = value.reshape(plain_shape(()))
    if axes is not None:
        axes = make_axes(axes)
        if axes.lengths != found.lengths:
            raise UnmatchedAxesError(f"tensor_slice: the slice has {found!r}, its axes are to be {axes!r}")
        found = axes
    return x._new(value, found)


def slice_along_axis(x: Tensor, axis: Axis | str, idx: int | slice) -> Any:
    """Return a part of a tensor along one axis, which a number takes away."""
    if not isinstance(axis, (Axis, str)):
        raise OpTypeError(f"slice_along_axis: {shown(axis)} is neither an axis nor the name of one")
    return tensor_slice(x, {axis: idx})


def sliced_axes(axes: Axes, slices: Any) -> tuple[tuple[int | slice, ...], Axes]:
    """Return the positional key of a slice, one item per axis, and the axes that remain."""
    key = tuple(_item(axis, item) for axis, item in zip(axes, _items(axes, slices), strict=True))
    kept = [
        axis.variant(length=_length(axis, item)) if item != slice(None) else axis
        for axis, item in zip(axes, key, strict=True)
        if isinstance(item, slice)
    ]
    return key, Axes(kept)


def _items(axes: Axes, slices: Any) -> list[Any]:
    """Return one item per axis."""
    found: list[Any] = [slice(None)] * len(axes)
    if isinstance(slices, Mapping):
        for axis, item in slices.items():
            found[axes.index(axis)] = item
        return found
    items = list(slices) if isinstance(slices, (list, tuple)) else [slices]
    at = next((k for k, item in enumerate(items) if item is Ellipsis), None)
    if at is not None:
        items[at : at + 1] = [slice(None)] * (len(axes) - len(items) + 1)
    if len(items) > len(axes):
        raise OpIndexError(f"{len(items)} indices {tuple(slices)} for {axes!r}")
    found[: len(items)] = items
    return found


def _item(axis: Axis, item: Any) -> int | slice:
    """Check one index."""
    if isinstance(item, slice):
        if item.step is not None and item.step == 0:
            raise OpValueError(f"axis ({label(axis)}): a slice of step 0")
        return item
    try:
        at = operator.index(item)
    except TypeError:
        raise OpTypeError(f"axis ({label(axis)}) is indexed by {item!r}; expected an integer or a slice") from None
    if axis.length is not None and not -axis.length <= at < axis.length:
        raise OpIndexError(f"index {at} is out of range for axis ({label(axis)})")
    return at


def _length(axis: Axis, item: slice) -> int | None:
    if axis.length is None:
        raise OpValueError(f"slice: the length of axis {axis.name} is not known; set axis.length")
    return len(range(*item.indices(axis.length)))


def _sliced_symbol(F: Any, value: Any, key: tuple[int | slice, ...]) -> Any:
    """Slice by operators: one for the slices, one that takes away dimensions."""
    spans = [i if isinstance(i, slice) else slice(i, None if i == -1 else i + 1) for i in key]
    if any(s != slice(None) for s in spans):
        step = tuple(s.step for s in spans) if any(s.step not in (None, 1) for s in spans) else ()
        value = F.slice(value, begin=tuple(s.start for s in spans), end=tuple(s.stop for s in spans), step=step)
    gone = tuple(at for at, i in enumerate(key) if not isinstance(i, slice))
    return F.squeeze(value, axis=gone) if gone else value


# ---- together -------------------------------------------------------------------------------------------------------
def concat_along_axis(x_list: Sequence[Tensor], axis: Axis | str | Sequence[Axis], out_axis: Axis | None = None) -> Any:
    """Put tensors one after the other along an axis.

    Parameters
    ----------
    x_list : sequence of Tensor
        Their axes are the same, in any order, but for the one that they are concatenated along.
    axis : Axis, or one Axis for each tensor
        A tensor that does not have it is concatenated along the one axis that the others do not have.
    out_axis : Axis, optional
        The axis of the result; by default the variant of the first tensor's axis that has the length of all.

    Raises
    ------
    UnmatchedAxesError
        When the other axes differ.

    Examples
    --------
    >>> H, W = mx.axes.make_axis(2, 'H'), mx.axes.make_axis(3, 'W')
    >>> mx.axes.concat_along_axis([mx.axes.ones([H, W]), mx.axes.ones([W, H])], W).axes
    Axes(H: 2, W: 6)
    """
    x_list = _tensors(x_list, "concat_along_axis")
    first = x_list[0]
    several = isinstance(axis, (list, tuple, Axes))
    given: list[Any] = list(axis) if several else [axis] * len(x_list)  # type: ignore[arg-type]
    if len(given) != len(x_list):
        raise OpValueError(f"concat_along_axis: {len(given)} axes for {len(x_list)} tensors")
    at = first.axes.index(given[0])
    others = first.axes - first.axes[at]
    along, values = [], []
    for x, wanted in zip(x_list, given, strict=True):
        own = x.axes - others
        named = wanted in x.axes
        if len(own) != 1 or not others.is_sub_set(x.axes) or (named and x.axes.index(wanted) != x.axes.index(own[0])):
            text = f"concat_along_axis: {x.axes!r} is not {others!r} with one axis to concatenate"
            raise unmatched(text, others, x.axes)
        along.append(own[0])
        values.append(ordered(x.F, x.value, x.axes, others[:at] + own + others[at:]))
    total = sum(known_lengths(make_axes(a), "concat_along_axis")[0] for a in along)
    if out_axis is None:
        out_axis = along[0].variant(length=total)
    _settle(out_axis, total, "concat_along_axis")
    return first._new(first.F.Concat(*values, dim=at), others[:at] + out_axis + others[at:])


def stack(x_list: Sequence[Tensor], axis: Axis, pos: int = 0) -> Any:
    """Put tensors of the same axes beside each other, along a new axis.

    Parameters
    ----------
    x_list : sequence of Tensor
        Their axes are the same, in any order.
    axis : Axis
        As long as the list; an unknown length is set.
    pos : int
        Position of the new axis.
    """
    x_list = _tensors(x_list, "stack")
    first = x_list[0]
    if axis in first.axes:
        raise IncompatibleAxesError(f"stack: the new axis ({label(axis)}) is one of {first.axes!r}")
    _settle(axis, len(x_list), "stack")
    at = position(pos, len(first.axes) + 1, "stack")
    values = [ordered(x.F, x.value, x.axes, first.axes) for x in x_list]
    axes = first.axes[:at] + axis + first.axes[at:]
    if not first.axes:  # plain values of shape (1,) have the new dimension already
        return first._new(first.F.Concat(*[x.F.Reshape(v, shape=(1,)) for x, v in zip(x_list, values)], dim=0), axes)
    return first._new(first.F.stack(*values, axis=at), axes)


def pad(x: Tensor, paddings: Sequence[Any], axes: Any = None) -> Any:
    """Put zeros around a tensor.

    Parameters
    ----------
    x : Tensor
    paddings : sequence of (int or tuple of two ints)
        For each axis, how many zeros on both sides, or before and after.
    axes : Axes, optional
        Axes of the result; by default a variant of each axis that grows.
    """
    paddings = items(paddings, "pad: paddings")
    if len(paddings) != len(x.axes):
        raise OpValueError(f"pad: {len(paddings)} paddings for {x.axes!r}")
    with translated("pad"):
        both = [tuple(map(operator.index, p if isinstance(p, (tuple, list)) else (p, p))) for p in paddings]
    if any(len(p) != 2 for p in both):
        raise OpValueError(f"pad: paddings={paddings} must hold numbers and pairs of numbers")
    lengths = known_lengths(x.axes, "pad")
    value = x.value
    for at, (before, after) in enumerate(both):
        if before < 0 or after < 0:
            raise OpValueError(f"pad: a negative padding in {paddings}")
        value = _padded(x.F, value, at, before, after)
    grown = [n + before + after for n, (before, after) in zip(lengths, both, strict=True)]
    found = Axes(a.variant(length=n) for a, n in zip(x.axes, grown, strict=True))
    if axes is not None:
        found = make_axes(axes)
        if found.lengths != tuple(grown):
            raise UnmatchedAxesError(f"pad: the result has lengths {tuple(grown)}, its axes are to be {found!r}")
    return x._new(value, found)


def _padded(F: Any, value: Any, at: int, before: int, after: int) -> Any:
    if not (before or after):
        return value
    # zeros of the data's type and of its other lengths, whatever they are
    zero = F.zeros_like(F.sum(value, axis=(at,), keepdims=True))
    sides = [F.broadcast_axis(zero, axis=(at,), size=(n,)) if n != 1 else zero for n in (before, after) if n]
    parts = [value, sides[-1]] if not before else [sides[0], value, *sides[1:]]
    return F.Concat(*parts, dim=at)


def one_hot(x: Tensor, axis: Axis) -> Any:
    """Return 1 where the position along a new first axis is the value of `x`, otherwise 0; the gradient is zero."""
    if axis in x.axes:
        raise IncompatibleAxesError(f"one_hot: the new axis ({label(axis)}) is one of {x.axes!r}")
    F, (n,) = x.F, known_lengths(make_axes(axis), "one_hot")
    zero = F.Reshape(F.zeros_like(F.sum(x.value)), shape=(1,))  # of the data's type
    places = F._contrib_arange_like(F.broadcast_axis(zero, axis=(0,), size=(n,)), axis=0)
    for k in range(1, 1 + len(x.axes)):
        places = F.expand_dims(places, axis=k)
    return x._new(F.broadcast_equal(places, x.value), axis + x.axes)


def position(at: int, count: int, what: str) -> int:
    """Return a position counted from the front."""
    if not -count <= at < count:
        raise OpIndexError(f"{what}: position {at} is out of range; expected a value from {-count} to {count - 1}")
    return at + count if at < 0 else at


def _settle(axis: Axis, length: int, what: str) -> None:
    """Give an axis its length, or check it."""
    if axis.length is None:
        axis.length = length
    elif axis.length != length:
        raise UnmatchedAxesError(f"{what}: axis ({label(axis)}) stands for {length} elements")


def _tensors(x_list: Any, what: str) -> list[Tensor]:
    x_list = items(x_list, f"{what}: the tensors")
    if not x_list:
        raise OpValueError(f"{what}: no tensors")
    for x in x_list:
        if not isinstance(x, Tensor):
            raise OpTypeError(f"{what}: {x!r} is not a tensor; see mx.axes.tensor(value, axes)")
        if type(x) is not type(x_list[0]):
            raise mixed(x_list[0], x)
    return x_list
