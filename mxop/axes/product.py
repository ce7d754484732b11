"""``dot``: the product of two tensors, summed over the axes that they have in common.

It becomes one ``dot``, with transposes turned into its flags where that is possible; ``batch_dot`` where common axes are
kept; a product by name where nothing is summed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..support.errors import IncompatibleAxesError, OpTypeError
from .axis import Axes, unmatched
from .layout import merged, ordered, split
from .tensor import Tensor, mixed


def dot(x: Tensor, y: Tensor, reduction_axes: Any = None, out_axes: Any = None) -> Any:
    """Multiply two tensors and sum over axes.

    Parameters
    ----------
    x, y : Tensor
        Of floating-point numbers.
    reduction_axes : Axes, optional
        The axes to sum over, which both have; by default all common ones. Common axes that are not summed stay.
    out_axes : Axes, optional
        Axes of the result, in order. By default those of `x`, then those of `y`, without the summed ones.

    Raises
    ------
    UnmatchedAxesError
        For axes to sum over that are not common, or a result that does not have all others.

    Examples
    --------
    >>> H, W, N = mx.axes.make_axis(2, 'H'), mx.axes.make_axis(3, 'W'), mx.axes.make_axis(4, 'N')
    >>> mx.axes.dot(mx.axes.ones([H, W]), mx.axes.ones([N, W])).axes
    Axes(H: 2, N: 4)
    """
    for side in (x, y):
        if not isinstance(side, Tensor):
            raise OpTypeError(f"dot: {side!r} has no axes; see mx.axes.tensor(value, axes)")
    if type(x) is not type(y):
        raise mixed(x, y)
    given = [None if axes is None else (x.axes | y.axes).select(axes) for axes in (reduction_axes, out_axes)]
    summed, axes = _plan(x.axes, y.axes, *given)
    if not summed:
        product = x * y
    elif (x.axes & y.axes) == summed:
        product = _matrices(x, y, summed)
    else:
        product = _batched(x, y, summed)
    return product if product.axes is axes else product._new(ordered(x.F, product.value, product.axes, axes), axes)


@lru_cache(4096)
def _plan(x: Axes, y: Axes, summed: Axes | None, kept: Axes | None) -> tuple[Axes, Axes]:
    """Return the axes to sum over and those of the result."""
    common, every = x & y, x | y
    if summed is None:
        summed = common if kept is None else common - kept
    if not summed.is_sub_set(common):
        text = f"dot: reduction_axes={summed!r} are not all common to {x!r} and {y!r}"
        raise unmatched(text, summed, common)
    rest = every - summed
    if kept is None:
        return summed, rest
    if kept & summed:
        raise IncompatibleAxesError(f"dot: reduction_axes={summed!r} and out_axes={kept!r} overlap in {kept & summed!r}")
    if not kept.is_equal_set(rest):
        raise unmatched(f"dot: out_axes={kept!r}, but {x!r} and {y!r} without {summed!r} leave {rest!r}", kept, rest)
    return summed, kept


# ---- no axis is kept in common: matrices ----------------------------------------------------------------------------
def _matrices(x: Tensor, y: Tensor, summed: Axes) -> Tensor:
    """Multiply with one ``dot``, which sums over the last or first dimension of each side."""
    left, right, flags, axes = _sides(x.axes, y.axes, summed)
    a = merged(x.F, ordered(x.F, x.value, x.axes, left[0]), left[1], len(summed))
    b = merged(x.F, ordered(x.F, y.value, y.axes, right[0]), right[1], len(summed))
    return x._new(x.F.dot(a, b, **flags), axes)


@lru_cache(4096)
def _sides(x: Axes, y: Axes, summed: Axes) -> tuple[tuple[Axes, int], tuple[Axes, int], dict[str, bool], Axes]:
    """Return the order of each side and where its summed axes begin, the flags of ``dot``, the axes of the result."""
    orders = [x & summed, y & summed]
    order = min(orders, key=lambda o: (_place(x, o) is None) + (_place(y, o) is None))
    left, transpose_a = _side(x, order, "last")
    right, transpose_b = _side(y, order, "first")
    flags = {k: True for k, on in (("transpose_a", transpose_a), ("transpose_b", transpose_b)) if on}
    return left, right, flags, (x - summed) + (y - summed)


def _place(axes: Axes, order: Axes) -> str | None:
    """Return whether axes begin or end with `order`; None when they need a transpose."""
    n = len(order)
    return "last" if axes[len(axes) - n :] == order else "first" if axes[:n] == order else None


def _side(axes: Axes, order: Axes, wanted: str) -> tuple[tuple[Axes, int], bool]:
    """Return one side's order, where the summed axes begin in it, and whether ``dot`` is to transpose it."""
    rest, place = axes - order, _place(axes, order)
    if place is None:
        axes, place = (rest + order if wanted == "last" else order + rest), wanted
    # a vector's first dimension is its last
    return (axes, len(rest) if place == "last" else 0), bool(rest) and place != wanted


# ---- common axes that stay: stacks of matrices ----------------------------------------------------------------------
def _batched(x: Tensor, y: Tensor, summed: Axes) -> Tensor:
    """Multiply with one ``batch_dot`` over three dimensions: the common axes that stay, one side's own, the summed."""
    F, batch = x.F, (x.axes & y.axes) - summed
    left, right = x.axes - batch - summed, y.axes - batch - summed
    a = _stacked(x, (batch, left, summed))
    b = _stacked(y, (batch, summed, right))
    value = split(F, F.batch_dot(a, b), 2, 3, right, "dot")
    value = split(F, value, 1, 2 + len(right), left, "dot")
    value = split(F, value, 0, 1 + len(left) + len(right), batch, "dot")
    return x._new(value, batch + left + right)


def _stacked(x: Tensor, groups: tuple[Axes, ...]) -> Any:
    """Return the plain value with one dimension for each group of axes."""
    value = ordered(x.F, x.value, x.axes, groups[0] + groups[1] + groups[2])
    for at, group in enumerate(groups):
        value = merged(x.F, value, at, len(group))
    return value
