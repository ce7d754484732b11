"""Axes changed without changing elements: order, repetition, other axes of equal length, several as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..support.errors import IncompatibleAxesError, OpIndexError, OpTypeError, UnmatchedAxesError
from .axis import Axes, Axis, AxisRole, label, make_axes, unmatched
from .layout import merged, ordered, split, spread
from .slicing import position
from .tensor import Tensor


def axes_with_order(x: Tensor, axes: Any) -> Any:
    """Return the same tensor with its axes in another order.

    Raises
    ------
    UnmatchedAxesError
        When the axes differ by more than order.

    Examples
    --------
    >>> H, W = mx.axes.make_axis(1, 'H'), mx.axes.make_axis(2, 'W')
    >>> mx.axes.axes_with_order(mx.axes.array([[1, 2]], [H, W]), [W, H]).asnumpy().tolist()
    [[1.0], [2.0]]
    """
    axes = x.axes.select(axes)
    return x if axes == x.axes else x._new(ordered(x.F, x.value, x.axes, axes), axes)


def Transpose(x: Tensor) -> Any:
    """Return the tensor with its axes in reverse order."""
    return x.T


transpose = Transpose


def broadcast(x: Tensor, axes: Any) -> Any:
    """Repeat a tensor along axes that it does not have; the result has exactly `axes`, in that order.

    Raises
    ------
    UnmatchedAxesError
        When `axes` lack one of the tensor.
    """
    axes = make_axes(axes)
    if not x.axes.is_sub_set(axes):
        raise unmatched(f"broadcast: {axes!r} do not have all of {x.axes!r}", x.axes, axes)
    return x if axes == x.axes else x._new(spread(x.F, x.value, x.axes, axes), axes)


def expand_dims(x: Tensor, axis: Axis, dim: int = 0) -> Any:
    """Repeat a tensor along a new axis, at a position.

    Parameters
    ----------
    x : Tensor
    axis : Axis
    dim : int
        Position of the axis in the result.
    """
    if axis in x.axes:
        raise IncompatibleAxesError(f"expand_dims: ({label(axis)}) is an axis of {x.axes!r} already")
    at = position(dim, len(x.axes) + 1, "expand_dims")
    return broadcast(x, x.axes[:at] + axis + x.axes[at:])


def cast_axes(x: Tensor, axes: Any) -> Any:
    """Return the same values with other axes of the same lengths, position by position.

    Raises
    ------
    UnmatchedAxesError
        When lengths differ.

    Examples
    --------
    >>> samples, features = mx.axes.make_axis(2, 'N'), mx.axes.make_axis(2, 'F')
    >>> x = mx.axes.array([1, 2], samples)
    >>> (x + mx.axes.cast_axes(x, features)).asnumpy().tolist()
    [[2.0, 3.0], [3.0, 4.0]]
    """
    axes = make_axes(axes)
    if len(axes) != len(x.axes) or any(
        None not in (a.length, b.length) and a.length != b.length for a, b in zip(x.axes, axes, strict=True)
    ):
        raise UnmatchedAxesError(f"axes {x.axes!r} cannot be cast to {axes!r}: expected equal lengths, got "
                                 f"{x.axes.lengths} and {axes.lengths}")  # fmt: skip
    for old, new in zip(x.axes, axes, strict=True):
        if new.length is None and not new.is_flattened:
            new.length = old.length
    return x._new(x.value, axes)


def cast_role(x: Tensor, axes: Any) -> Any:
    """Return the same values with axes of other roles: ``cast_axes`` under the name of its purpose."""
    return cast_axes(x, axes)


def map_roles(x: Tensor, axes_map: Mapping[Any, Any]) -> Any:
    """Return the same values with some axes exchanged.

    Parameters
    ----------
    x : Tensor
    axes_map : dict
        From an axis, a name or a role, to an axis, or to the name or role that a variant of the axis gets: mapped twice
        in the same way, an axis becomes one and the same axis. Axes that are not mentioned stay.

    Examples
    --------
    >>> x = mx.axes.ones([mx.axes.make_axis(2, 'C'), mx.axes.make_axis(3, 'W')])
    >>> mx.axes.map_roles(x, {'C': 'K'}).axes
    Axes(K: 2, W: 3)
    """
    if not isinstance(axes_map, Mapping):
        raise OpTypeError(f"map_roles: axes_map must be a dict, got {type(axes_map).__name__}")
    for key in axes_map:
        if not isinstance(key, (Axis, str, AxisRole)):
            raise OpTypeError(f"map_roles: {key!r} is not an axis, name or role")
    return cast_axes(x, [_mapped(axis, axes_map) for axis in x.axes])


def _mapped(axis: Axis, axes_map: Mapping[Any, Any]) -> Axis:
    """Return what becomes of one axis."""
    for key, target in axes_map.items():
        hit = axis.has_role(key) if isinstance(key, AxisRole) else key in (axis, axis.name)
        if not hit:
            continue
        if isinstance(target, Axis):
            return target
        if isinstance(target, str):
            return axis.variant(name=target)
        if isinstance(target, AxisRole):
            gone = {key} if isinstance(key, AxisRole) else set()
            return axis.variant(roles=(axis.roles - gone) | {target})
        raise OpTypeError(f"map_roles: {target!r} is not an axis, name or role")
    return axis


# ---- several axes as one --------------------------------------------------------------------------------------------
def flatten(x: Tensor) -> Any:
    """Make one axis of all axes; ``unflatten`` undoes it.

    Examples
    --------
    >>> x = mx.axes.ones([mx.axes.make_axis(2, 'H'), mx.axes.make_axis(3, 'W')])
    >>> flat = mx.axes.flatten(x)
    >>> flat.axes, mx.axes.unflatten(flat).axes
    (Axes((H, W): 6), Axes(H: 2, W: 3))
    """
    if len(x.axes) == 1 and x.axes[0].is_flattened:
        return x
    return _grouped(x, [x.axes])


def flatten_at(x: Tensor, idx: int) -> Any:
    """Make one axis of those before a position, and one of the others: a matrix."""
    if not isinstance(idx, int) or not 0 < idx < len(x.axes):
        raise OpIndexError(f"flatten_at: position {idx} does not split {x.axes!r} into two parts")
    return _grouped(x, [x.axes[:idx], x.axes[idx:]])


def _grouped(x: Tensor, groups: list[Axes]) -> Any:
    if not x.axes:
        value = x.F.Reshape(x.value, shape=(1,))
    else:
        value = x.value
        for at, group in enumerate(groups):
            value = merged(x.F, value, at, len(group))
    return x._new(value, Axes(group.flatten(force=not group) for group in groups))


def unflatten(x: Tensor, axes: Any = None) -> Any:
    """Undo ``flatten``: flattened axes become the axes that they are made of.

    Parameters
    ----------
    x : Tensor
    axes : Axes, optional
        Axes of the result, among them the parts of each flattened axis; other axes of the same lengths are allowed.
    """
    parts = [a.axes if a.is_flattened else make_axes(a) for a in x.axes]
    natural = Axes(a for part in parts for a in part)
    value, after = x.value, 0
    for at, part in reversed(list(enumerate(parts))):
        value = split(x.F, value, at, at + 1 + after, part, "unflatten")
        after += len(part)
    if not natural:
        value = x.F.squeeze(value)
    found = x._new(value, natural)
    if axes is None:
        return found
    axes = make_axes(axes)
    return axes_with_order(found, axes) if axes.is_equal_set(natural) else cast_axes(found, axes)
