"""Rearranging elements: diagonals, padding, depth to space."""

from typing import Literal

from ..opdef import Shape, composite, infer, kernel
from ..opdef.parts import Part
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import Count, adjoint, both_ways, divided, element, in_steps, on_both, shaped_like, times, typed_by_first


def forward_and_back(op, forward, backward):
    """Let shapes of a composite of one input follow in both directions: ``forward(data, **params)`` and back."""

    @op.infer
    def _(ins, outs, **params):
        if outs[0] is not None:
            names = ("data", "expected by its output")
            ins[0] = infer.same_shape(op.name, names, [ins[0], backward(outs[0], **params)])[0]
        if ins[0] is not None:
            names = ("output", "expected by the data")
            outs = infer.same_shape(op.name, names, [outs[0], forward(ins[0], **params)])[:1]
        return ins, outs


# ---- diagonals ------------------------------------------------------------------------------------------------------
def _diagonal_of(name, shape, k, axis1, axis2):
    """Return the axes, their place of the first element, and the length of a diagonal."""
    a, b = (infer.normal_axis(name, v, len(shape), n) for v, n in ((axis1, "axis1"), (axis2, "axis2")))
    if a == b:
        raise OpValueError(f"operator {name}: axis1={axis1} and axis2={axis2} are the same axis of {infer.show(shape)}")
    first, second = (max(-k, 0), max(k, 0))
    if None in (shape[a], shape[b]):
        return a, b, first, second, None
    length = min(shape[a] - first, shape[b] - second)
    if length < 0:
        raise OpValueError(f"operator {name}: data of shape {infer.show(shape)} has no diagonal {k} of axes {axis1}, {axis2}")
    return a, b, first, second, length


def _diagonal_shape(shape, *, k, axis1, axis2):
    a, b, _, _, length = _diagonal_of("diag", shape, k, axis1, axis2)
    return (*(d for i, d in enumerate(shape) if i not in (a, b)), length)


@kernel(name="_diagonal")
def diagonal(data, *, k: int = 0, axis1: int = 0, axis2: int = 1):
    """Diagonals of two axes, along a new last axis."""


@diagonal.view
def _(shape, strides, *, k, axis1, axis2):
    a, b, first, second, length = _diagonal_of("diag", shape, k, axis1, axis2)
    rest = [i for i in range(len(shape)) if i not in (a, b)]
    offset = first * strides[a] + second * strides[b] if length else 0
    return (*(shape[i] for i in rest), length), (*(strides[i] for i in rest), strides[a] + strides[b]), offset


both_ways(diagonal, lambda data, **params: None if data is None else _diagonal_shape(data, **params))


@kernel(name="_diagonal_grad", shape_only=(1,))
def diagonal_grad(head, like, *, k: int = 0, axis1: int = 0, axis2: int = 1):
    """Put `head` on the diagonals of zeros like `like`: the gradient of ``_diagonal``."""


shaped_like(diagonal_grad, _diagonal_shape)
both_ways(diagonal_grad, lambda head, like, **params: like)
typed_by_first(diagonal_grad)
adjoint(diagonal, diagonal_grad)
diagonal.picks = True


@on_both(diagonal_grad)
def _(xp, inputs, outputs, *, k, axis1, axis2):
    out = xp.moveaxis(outputs[0], (axis1, axis2), (-2, -1))
    places = xp.arange(inputs[0].shape[-1])
    outputs[0].fill(0)
    out[..., places + max(-k, 0), places + max(k, 0)] = inputs[0]


@kernel(name="_linalg_makediag", aliases=("linalg_makediag",))
def makediag(A, *, offset: int = 0):
    """Square matrices with the data's rows as diagonals, and zeros elsewhere.

    Parameters
    ----------
    A : NDArray or Symbol
        Rows along the last axis, of any number of dimensions.
    offset : int
        Which diagonal: above the main one, or below when it is negative.

    >>> mx.nd.linalg.makediag(mx.nd.array([1, 2]), offset=1).asnumpy().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    """


def _makediag_shape(A, *, offset):
    if not A:
        raise OpValueError("operator _linalg_makediag: A has no dimensions; expected one at least")
    n = None if A[-1] is None else A[-1] + abs(offset)
    return (*A[:-1], n, n)


def square(name, shape):
    """Return the batch and the size of square matrices, or say that they are none."""
    if len(shape) < 2 or (None not in shape[-2:] and shape[-2] != shape[-1]):
        raise OpValueError(f"operator {name}: A has shape {infer.show(shape)}; expected square matrices, (..., n, n)")
    return shape[:-2], shape[-1] if shape[-2] is None else shape[-2]


def _extractdiag_shape(A, *, offset):
    batch, n = square("_linalg_extractdiag", A)
    if n is not None and abs(offset) > n:
        raise OpValueError(f"operator _linalg_extractdiag: A of shape {infer.show(A)} has no diagonal {offset}")
    return (*batch, None if n is None else n - abs(offset))


both_ways(makediag, lambda A, **params: None if A is None else _makediag_shape(A, **params),
          lambda out, A, *, offset: _extractdiag_shape(out, offset=offset))  # fmt: skip


@makediag.rearrange
def _(xp, inputs, outputs, *, offset):
    (data,), (out,) = inputs, outputs
    n, size = data.shape[-1], out.shape[-1]
    first = max(-offset, 0) * size + max(offset, 0)
    out[...] = 0
    out.reshape(*data.shape[:-1], size * size)[..., first : first + n * (size + 1) : size + 1] = data


@makediag.gradient
def _(F, heads, inputs, outputs, *, offset):
    return [F._diagonal(heads[0], k=offset, axis1=-2, axis2=-1)]


@composite(name="_linalg_extractdiag", aliases=("linalg_extractdiag",))
def extractdiag(F, A, *, offset: int = 0):
    """Diagonals of square matrices.

    Parameters
    ----------
    A : NDArray or Symbol
        ``(..., n, n)``.
    offset : int
        Which diagonal: above the main one, or below when it is negative.

    >>> mx.nd.linalg.extractdiag(mx.nd.array([[1, 2], [3, 4]])).asnumpy().tolist()
    [1.0, 4.0]
    """
    return F._diagonal(A, k=offset, axis1=-2, axis2=-1)


forward_and_back(extractdiag, _extractdiag_shape, lambda out, *, offset: _makediag_shape(out, offset=offset))


@typed_by_first
@composite
def diag(F, data, *, k: int = 0, axis1: int = 0, axis2: int = 1):
    """Matrix with the data as diagonal, or diagonals of the data.

    Parameters
    ----------
    data : NDArray or Symbol
        A vector becomes the diagonal of a square matrix; of an array of more dimensions, the diagonals of two axes are
        returned, along a new last axis.
    k : int
        Which diagonal: above the main one, or below when it is negative.
    axis1, axis2 : int
        Rows and columns; of a vector they do not matter.

    >>> mx.nd.diag(mx.nd.array([[1, 2, 3], [4, 5, 6]]), k=1).asnumpy().tolist()
    [2.0, 6.0]
    >>> mx.nd.diag(mx.nd.array([1, 2])).asnumpy().tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    if data.ndim == 1:
        return F._linalg_makediag(data, offset=k)
    return F._diagonal(data, k=k, axis1=axis1, axis2=axis2)


@diag.infer
def _(ins, outs, *, k, axis1, axis2):
    if ins[0] is not None:
        found = (
            _makediag_shape(ins[0], offset=k) if len(ins[0]) == 1 else _diagonal_shape(ins[0], k=k, axis1=axis1, axis2=axis2)
        )
        outs = infer.same_shape("diag", ("output", "expected by the data"), [outs[0], found])[:1]
    return ins, outs


# ---- margins --------------------------------------------------------------------------------------------------------
def _margins(name, shape, pad_width):
    """Return (before, after) of each axis."""
    if len(pad_width) != 2 * len(shape) or any(p < 0 for p in pad_width):
        raise OpValueError(f"operator {name}: pad_width={pad_width}; expected {2 * len(shape)} numbers from 0 on, two for "
                           f"each dimension of data of shape {infer.show(shape)}")  # fmt: skip
    return list(zip(pad_width[::2], pad_width[1::2], strict=True))


def _padded(shape, pad_width):
    margins = _margins("Pad", shape, pad_width)
    return tuple(None if d is None else b + d + a for d, (b, a) in zip(shape, margins, strict=True))


def _unpadded(shape, pad_width):
    margins = _margins("Pad", shape, pad_width)
    return tuple(None if d is None or d < b + a else d - b - a for d, (b, a) in zip(shape, margins, strict=True))


def _inside(shape, pad_width):
    """Return where the data of this shape are between their margins."""
    return tuple(slice(b, b + d) for b, d in zip(pad_width[::2], shape, strict=True))


@kernel(name="_pad_constant")
def pad_constant(data, *, pad_width: Shape, constant_value: float = 0.0):
    """Surround the data by a number."""


both_ways(pad_constant, lambda data, *, pad_width, **params: None if data is None else _padded(data, pad_width),
          lambda out, data, *, pad_width, **params: _unpadded(out, pad_width))  # fmt: skip


@pad_constant.rearrange
def _(xp, inputs, outputs, *, pad_width, constant_value):
    (data,), (out,) = inputs, outputs
    number = element(constant_value, out.dtype, "pad")
    inside = _inside(data.shape, pad_width)
    for axis, part in enumerate(inside):
        for margin in (slice(0, part.start), slice(part.stop, None)):
            out[(*inside[:axis], margin)] = number
    out[inside] = data


@pad_constant.gradient
def _(F, heads, inputs, outputs, *, pad_width, constant_value):
    begin, after = pad_width[::2], pad_width[1::2]
    end = tuple(d - a for d, a in zip(heads[0].shape, after, strict=True))
    return [F.slice(heads[0], begin=begin, end=end)]


Border = Literal["edge", "reflect"]


@kernel(name="_pad_border")
def pad_border(data, *, mode: Border, pad_width: Shape):
    """Surround the data by what is at their borders."""


@kernel(name="_pad_border_grad")
def pad_border_grad(head, *, mode: Border, pad_width: Shape):
    """Add margins to what they were made of, and cut them off: the gradient of ``_pad_border``."""


def _checked_border(name, data, mode, pad_width):
    """Return the shape of data that may have such margins; refuse others."""
    for axis, (size, margins) in enumerate(zip(data, _margins(name, data, pad_width), strict=True)):
        if size is None or not max(margins):
            continue
        if mode == "reflect" and max(margins) >= size:
            raise OpValueError(f"operator {name}: mode='reflect' needs margins below the size of the axis; axis {axis} of size "
                               f"{size} has margins {margins[0]} and {margins[1]}")  # fmt: skip
        if not size:
            raise OpValueError(f"operator {name}: mode='edge' of data of shape {data}, whose axis {axis} has no edge")
    return data


def _bordered(data, *, mode, pad_width):
    return None if data is None else _padded(_checked_border("_pad_border", data, mode, pad_width), pad_width)


def _unbordered(head, *, mode, pad_width):
    return None if head is None else _checked_border("_pad_border_grad", _unpadded(head, pad_width), mode, pad_width)


both_ways(pad_border, _bordered, lambda out, data, *, pad_width, **params: _unpadded(out, pad_width))
both_ways(pad_border_grad, _unbordered, lambda out, head, *, pad_width, **params: _padded(out, pad_width))
adjoint(pad_border, pad_border_grad)


def _borders(shape, mode, pad_width):
    """Yield where margins are, and where what they hold is, that is there before them: margins of earlier axes have it too."""
    inside = _inside(shape, pad_width)
    for axis, (part, after) in enumerate(zip(inside, pad_width[1::2], strict=True)):
        before, last = part.start, part.stop - 1
        if mode == "reflect":
            pairs = [(slice(0, before), slice(2 * before, before, -1)),
                     (slice(last + 1, None), slice(last - 1, last - 1 - after if last > after else None, -1))]  # fmt: skip
        else:
            pairs = [(slice(0, before), slice(before, before + 1)), (slice(last + 1, None), slice(last, last + 1))]
        for (margin, source), size in zip(pairs, (before, after), strict=True):
            if size:
                yield *((*[slice(None)] * axis, at, *inside[axis + 1 :]) for at in (margin, source)), axis, size


@pad_border.rearrange
def _(xp, inputs, outputs, *, mode, pad_width):
    (data,), (out,) = inputs, outputs
    out[_inside(data.shape, pad_width)] = data
    for margin, source, *_ in _borders(data.shape, mode, pad_width):
        out[margin] = out[source]


def _fold_margins(total, shape, mode, pad_width):
    """Add margins to what they were made of, the last ones first."""
    for margin, source, axis, size in reversed(list(_borders(shape, mode, pad_width))):
        if mode == "reflect":
            total[source] += total[margin]
            continue
        first = margin[axis].start
        for k in range(first, first + size):
            total[source] += total[(*margin[:axis], slice(k, k + 1), *margin[axis + 1 :])]


@in_steps(pad_border_grad)
def _(steps, inputs, outputs, **params):
    (head,), (out,) = inputs, outputs
    memory = steps.temporary(head.shape, dtypes.summed_in(head.dtype_code))
    steps.move(head, memory)
    total = Part(steps, memory)
    _fold_margins(total, out.shape, **params)
    Part(steps, out)[...] = total[_inside(out.shape, params["pad_width"])]


@composite(name="Pad", aliases=("pad",))
def pad(F, data, *, mode: Literal["constant", "edge", "reflect"], pad_width: Shape, constant_value: float = 0.0):
    """Pad the data.

    Parameters
    ----------
    data : NDArray or Symbol
        Of any number of dimensions.
    mode : str
        Padding values: ``constant`` a number, ``edge`` the nearest element, ``reflect`` the data mirrored at
        their first and last element.
    pad_width : tuple of int
        Widths before and after the data, two numbers for each axis.

    >>> x = mx.nd.array([[1, 2, 3]])
    >>> mx.nd.pad(x, mode='constant', pad_width=(0, 0, 1, 2), constant_value=9).asnumpy().tolist()
    [[9.0, 1.0, 2.0, 3.0, 9.0, 9.0]]
    >>> mx.nd.pad(x, mode='reflect', pad_width=(0, 0, 2, 1)).asnumpy().tolist()
    [[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]]
    """
    if mode == "constant":
        return F._pad_constant(data, pad_width=pad_width, constant_value=constant_value)
    return F._pad_border(data, mode=mode, pad_width=pad_width)


forward_and_back(
    pad,
    lambda data, *, pad_width, **params: _padded(data, pad_width),
    lambda out, *, pad_width, **params: _unpadded(out, pad_width),
)
typed_by_first(pad)


@composite(name="Crop", num_args_param="num_args")
def crop(F, *data, num_args: int = 1, offset: Shape = (0, 0), h_w: Shape = (0, 0), center_crop: bool = False):
    """Cut a rectangle out of images.

    Parameters
    ----------
    *data : NDArray or Symbol
        Images, ``(batch, channels, height, width)``, and optionally others that give height and width of the result.
    offset : tuple of int
        First row and column.
    h_w : tuple of int
        Height and width, where there is one input.
    center_crop : bool
        Cut out of the middle instead.

    >>> x = mx.nd.array([[[[1, 2, 3], [4, 5, 6]]]])
    >>> mx.nd.Crop(x, offset=(0, 1), h_w=(1, 2)).asnumpy().tolist()
    [[[[2.0, 3.0]]]]
    """
    wanted = data[1].shape[2:] if len(data) == 2 else h_w
    found = data[0]
    for axis, o, n in zip((2, 3), _corner(found.shape[2:], wanted, offset, center_crop), wanted, strict=True):
        found = F.slice_axis(found, axis=axis, begin=o, end=o + n)
    return found


def _corner(sizes, wanted, offset, center_crop):
    """Return the first row and column."""
    if center_crop and len(wanted) == 2:
        offset = tuple((d - n) // 2 for d, n in zip(sizes, wanted, strict=True))
    inside = len(wanted) == len(offset) == 2 and all(
        n > 0 <= o and o + n <= d for o, n, d in zip(offset, wanted, sizes, strict=True)
    )
    if not inside:
        raise OpValueError(f"operator Crop: h_w={tuple(wanted)} at offset={tuple(offset)} is not part of images of {sizes}")
    return offset


typed_by_first(crop, others=True)


@crop.infer
def _(ins, outs, *, offset, h_w, center_crop, **params):
    if len(ins) > 2 or any(s is not None and len(s) != 4 for s in ins):
        shapes = ", ".join(map(infer.show, ins))
        raise OpValueError(f"operator Crop: shapes {shapes}; expected one or two arrays of 4 dimensions")
    if None in ins:
        return ins, outs
    sizes, wanted = ins[0][2:], ins[1][2:] if len(ins) == 2 else h_w
    if None not in (*sizes, *wanted):
        _corner(sizes, wanted, offset, center_crop)
    return ins, [(*ins[0][:2], *wanted)]


# ---- blocks of pixels -----------------------------------------------------------------------------------------------
def _images(name, shape):
    if len(shape) != 4 or 0 in shape:
        raise OpValueError(f"operator {name}: data has shape {infer.show(shape)}; expected 4 dimensions, (batch, channels, "
                           "height, width), of 1 or more")  # fmt: skip
    return shape


def _split(name, shape, size, by):
    if size is not None and size % by:
        raise OpValueError(f"operator {name}: data of shape {infer.show(shape)}; {size} cannot be split into blocks of {by}")
    return divided(size, by)


def _to_space(shape, *, block_size):
    n, c, h, w = _images("depth_to_space", shape)
    return (n, _split("depth_to_space", shape, c, block_size**2), times(h, block_size), times(w, block_size))


def _to_depth(shape, *, block_size):
    n, c, h, w = _images("space_to_depth", shape)
    small = (_split("space_to_depth", shape, d, block_size) for d in (h, w))
    return (n, times(c, block_size**2), *small)


@composite
def depth_to_space(F, data, *, block_size: Count):
    """Rearrange channels into blocks of pixels.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, height, width)``, with a number of channels that ``block_size**2`` divides.
    block_size : int
        Height and width of a block.

    >>> x = mx.nd.array([1, 2, 3, 4]).reshape((1, 4, 1, 1))
    >>> mx.nd.depth_to_space(x, block_size=2).asnumpy().tolist()
    [[[[1.0, 2.0], [3.0, 4.0]]]]
    """
    b = block_size
    blocks = F.Reshape(F.Reshape(data, shape=(0, -4, b * b, -1, 0, 0)), shape=(0, -4, b, b, 0, 0, 0))
    return F.Reshape(F.transpose(blocks, axes=(0, 3, 4, 1, 5, 2)), shape=(0, 0, -3, -3))


@composite
def space_to_depth(F, data, *, block_size: Count):
    """Rearrange blocks of pixels into channels: the inverse of ``depth_to_space``.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, height, width)``; `block_size` divides height and width.
    block_size : int
        Height and width of a block.

    >>> mx.nd.space_to_depth(mx.nd.array([[[[1, 2], [3, 4]]]]), block_size=2).asnumpy().ravel().tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    blocks = F.Reshape(data, shape=(0, 0, -4, -1, block_size, -4, -1, block_size))
    moved = F.transpose(blocks, axes=(0, 3, 5, 1, 2, 4))
    return F.Reshape(F.Reshape(moved, shape=(0, -3, 0, 0, 0)), shape=(0, -3, 0, 0))


forward_and_back(depth_to_space, _to_space, _to_depth)
forward_and_back(space_to_depth, _to_depth, _to_space)
