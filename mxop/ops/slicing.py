"""Slices as views, their gradients, and assignment to a slice."""

from ..opdef import Scalar, Shape, infer, kernel
from ..support.errors import OpIndexError, OpValueError
from ._shared import both_ways, element, equal_shapes, taken, typed_by_first


# ---- ranges: one ``(start, step, count)`` for each axis -------------------------------------------------------------
def _ranges(op, shape, begin, end, step):
    """Return the elements that MXNet's ``begin``, ``end``, ``step`` choose along each axis, by Python's slice rules."""
    if len(begin) != len(end) or len(step) not in (0, len(begin)) or len(begin) > len(shape):
        raise OpValueError(
            f"operator {op}: begin={begin}, end={end}, step={step} do not fit the {len(shape)} dimensions of the data"
        )
    result = []
    for axis, size in enumerate(shape):
        b, e = (begin[axis], end[axis]) if axis < len(begin) else (None, None)
        s = step[axis] if axis < len(step) and step[axis] is not None else 1
        if s == 0:
            raise OpValueError(f"operator {op}: step={step} holds 0")
        if size is None:  # only a slice that takes everything keeps what is unknown
            result.append((0, 1, None))
            continue
        start, _, count = taken(b, e, s, size)
        result.append((start, s if count > 1 else 1, count))
    return result


def _axis_range(op, shape, axis, begin, end):
    """Return the ranges of ``slice_axis``, which refuses what lies outside, as MXNet does."""
    at = infer.normal_axis(op, axis, len(shape))
    size = shape[at]
    result = [(0, 1, d) for d in shape]
    if size is None:  # MXNet leaves the part unknown, too, though its size may follow from `begin` and `end`
        return result
    b = begin + size if begin < 0 else begin
    e = size if end is None else end + size if end < 0 else end
    if not 0 <= b <= e <= size:
        raise OpIndexError(f"operator {op}: begin={begin}, end={end} is not a range of axis {axis}, which has size {size}")
    result[at] = (b, 1, e - b)
    return result


def _like_ranges(op, shape, like, axes):
    """Return the ranges of ``slice_like``: the leading part of the size of `like` along `axes`."""
    if not axes and len(shape) != len(like):
        raise OpValueError(f"operator {op}: shapes {shape} and {like} differ in rank; name the axes to slice")
    result = [(0, 1, d) for d in shape]
    for axis in axes or range(len(shape)):
        at = infer.normal_axis(op, axis, len(shape), "axes")
        if at >= len(like):
            raise OpIndexError(f"operator {op}: axes={axes} names axis {axis}, which {infer.show(like)} does not have")
        size = like[at]
        if size is not None and shape[at] is not None and size > shape[at]:
            raise OpValueError(f"operator {op}: axis {axis} of size {shape[at]} is too short for a slice of {size}")
        result[at] = (0, 1, size)
    return result


def _counts(ranges):
    return tuple(count for _, _, count in ranges)


def _slices(ranges):
    """Return Python slices for arrays."""
    return tuple(
        slice(start, None if start + step * count < 0 else start + step * count, step) if count else slice(0, 0)
        for start, step, count in ranges
    )


def _whole(op, shape, name, part, ranges):
    """Return the shape of the whole, of which `part` must have the one that is chosen."""
    if tuple(part) != _counts(ranges):
        raise OpValueError(f"operator {op.name}: {name} has shape {part}, expected {_counts(ranges)}")
    return shape


def _slice_operator(op, grad, ranges, axes_params):
    """Make a view of `op` and its adjoint of `grad`; ``ranges(name, shape, *others, **params)`` says what is chosen."""

    @op.view
    def _(shape, strides, /, *others, **params):
        chosen = ranges(op.name, shape, *others, **params)
        offset = sum(start * s for (start, _, _), s in zip(chosen, strides, strict=True)) if 0 not in _counts(chosen) else 0
        return _counts(chosen), tuple(step * s for (_, step, _), s in zip(chosen, strides, strict=True)), offset

    both_ways(op, lambda *ins, **params: None if None in ins else _counts(ranges(op.name, *ins, **params)))

    @op.gradient
    def _(F, heads, inputs, outputs, **params):
        g = getattr(F, grad.name)(heads[0], inputs[0], **params)
        return [g] + [None] * (len(inputs) - 1)

    op.picks = True

    @grad.shape
    def _(head, like, **params):
        return _whole(grad, like, "head", head, ranges(grad.name, like, *([head] if axes_params else []), **params))

    typed_by_first(grad)

    @grad.rearrange
    def _(xp, inputs, outputs, **params):
        others = [inputs[0].shape] if axes_params else []
        outputs[0][...] = 0
        outputs[0][_slices(ranges(grad.name, outputs[0].shape, *others, **params))] = inputs[0]

    @grad.gradient
    def _(F, heads, inputs, outputs, **params):
        others = [inputs[0]] if axes_params else []
        return [getattr(F, op.name)(heads[0], *others, **params), None]


def _adder(added, op, grad, ranges, axes_params):
    """Make of `added` what adds to an array where `grad` would put elements into zeros, as in sums of gradients of slices."""
    equal_shapes(added)

    @added.shape
    def _(data, part, **params):
        return _whole(added, data, "part", part, ranges(added.name, data, *([part] if axes_params else []), **params))

    @added.rearrange
    def _(xp, inputs, outputs, **params):
        others = [inputs[1].shape] if axes_params else []
        outputs[0][...] = inputs[0]
        outputs[0][_slices(ranges(added.name, outputs[0].shape, *others, **params))] += inputs[1]

    @added.gradient
    def _(F, heads, inputs, outputs, **params):
        return [heads[0], getattr(F, op.name)(heads[0], *([inputs[1]] if axes_params else []), **params)]

    added.overwrites = True
    grad.added = added


# ---- slices ---------------------------------------------------------------------------------------------------------
@kernel(name="slice", aliases=("_npi_slice", "_npx_slice", "_sparse_slice", "crop"))
def slice_(data, *, begin: Shape, end: Shape, step: Shape = ()):
    """Take a part of the data, by Python's slice rules along each axis.

    Parameters
    ----------
    begin, end : tuple of (int or None)
        For the first axes; the others are taken whole.
    step : tuple of (int or None), optional
        Steps other than 0; 1 by default.

    >>> x = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    >>> mx.nd.slice(x, begin=(0, None), end=(2, None), step=(1, -2)).asnumpy().tolist()
    [[3.0, 1.0], [6.0, 4.0]]
    """


@kernel(name="_slice_grad", shape_only=(1,))
def slice_grad(head, like, *, begin: Shape, end: Shape, step: Shape = ()):
    """Put `head` into that slice of zeros of the shape of `like`: the gradient of ``slice``."""


@kernel(name="_slice_added")
def slice_added(data, part, *, begin: Shape, end: Shape, step: Shape = ()):
    """Copy of the data with `part` added to what ``slice`` takes of them."""


_slice_operator(slice_, slice_grad, _ranges, False)
_adder(slice_added, slice_, slice_grad, _ranges, False)


@kernel
def slice_axis(data, *, axis: int, begin: int, end: int | None):
    """Take ``begin:end`` along one axis; negative positions count from the end, and `end` may be None.

    >>> mx.nd.slice_axis(mx.nd.array([[1, 2, 3], [4, 5, 6]]), axis=1, begin=-2, end=None).asnumpy().tolist()
    [[2.0, 3.0], [5.0, 6.0]]
    """


@kernel(name="_slice_axis_grad", shape_only=(1,))
def slice_axis_grad(head, like, *, axis: int, begin: int, end: int | None):
    """Put `head` into that part of zeros of the shape of `like`: the gradient of ``slice_axis``."""


@kernel(name="_slice_axis_added")
def slice_axis_added(data, part, *, axis: int, begin: int, end: int | None):
    """Copy of the data with `part` added to what ``slice_axis`` takes of them."""


_slice_operator(slice_axis, slice_axis_grad, _axis_range, False)
_adder(slice_axis_added, slice_axis, slice_axis_grad, _axis_range, False)


@kernel
def slice_like(data, shape_like, *, axes: Shape = ()):
    """Take the leading part of the data that has the shape of another array, along all axes or those given.

    >>> mx.nd.slice_like(mx.nd.array([[1, 2, 3], [4, 5, 6]]), mx.nd.zeros((1, 2))).asnumpy().tolist()
    [[1.0, 2.0]]
    """


@kernel(name="_slice_like_grad", shape_only=(1,))
def slice_like_grad(head, like, *, axes: Shape = ()):
    """Put `head` into the leading part of zeros of the shape of `like`: the gradient of ``slice_like``."""


@kernel(name="_slice_like_added")
def slice_like_added(data, part, *, axes: Shape = ()):
    """Copy of the data with `part` added to what ``slice_like`` takes of them."""


_slice_operator(slice_like, slice_like_grad, _like_ranges, True)
_adder(slice_like_added, slice_like, slice_like_grad, _like_ranges, True)
typed_by_first(slice_like)


# ---- assignment -----------------------------------------------------------------------------------------------------
@equal_shapes
@kernel(name="_slice_assign", aliases=("_crop_assign", "_npi_slice_assign"))
def slice_assign(lhs, rhs, *, begin: Shape, end: Shape, step: Shape = ()):
    """Copy of `lhs` in which a slice, chosen as by ``slice``, holds `rhs`.

    >>> mx.nd._internal._slice_assign(mx.nd.zeros((3,)), mx.nd.ones((2,)), begin=1, end=3).asnumpy().tolist()
    [0.0, 1.0, 1.0]
    """


@slice_assign.shape
def _(lhs, rhs, **where):
    part = _counts(_ranges("_slice_assign", lhs, **where))
    if rhs != part:
        raise OpValueError(f"operator _slice_assign: rhs has shape {rhs} but the slice has shape {part}")
    return lhs


@slice_assign.rearrange
def _(xp, inputs, outputs, **where):
    outputs[0][...] = inputs[0]
    outputs[0][_slices(_ranges("_slice_assign", outputs[0].shape, **where))] = inputs[1]


slice_assign.overwrites = True


@slice_assign.gradient
def _(F, heads, inputs, outputs, **where):
    return [F._slice_assign_scalar(heads[0], scalar=0, **where), F.slice(heads[0], **where)]


@equal_shapes
@kernel(name="_slice_assign_scalar", aliases=("_crop_assign_scalar", "_npi_slice_assign_scalar"))
def slice_assign_scalar(data, *, scalar: Scalar = 0, begin: Shape, end: Shape, step: Shape = ()):
    """Copy of the data in which a slice, chosen as by ``slice``, holds a number.

    >>> mx.nd._internal._slice_assign_scalar(mx.nd.zeros((3,)), scalar=2, begin=1, end=3).asnumpy().tolist()
    [0.0, 2.0, 2.0]
    """


@slice_assign_scalar.rearrange
def _(xp, inputs, outputs, *, scalar, **where):
    outputs[0][...] = inputs[0]
    part = _slices(_ranges("_slice_assign_scalar", outputs[0].shape, **where))
    outputs[0][part] = element(scalar, outputs[0].dtype, "_slice_assign_scalar")


slice_assign_scalar.overwrites = True


@slice_assign_scalar.gradient
def _(F, heads, inputs, outputs, *, scalar, **where):
    return [F._slice_assign_scalar(heads[0], scalar=0, **where)]
