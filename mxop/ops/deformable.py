"""Deformable convolution: windows whose pixels are moved by offsets, sampled between pixels, then multiplied with filters."""

from typing import Literal

from ..opdef import Of, Shape, composite
from ..support.errors import OpValueError
from ._shared import Count, float_types, size_of
from .convolution import _shares
from .sampling import numbers
from .windows import fitting, frame

Layout = Literal[None, "NCDHW", "NCHW", "NCW"]


def _frame(op, kernel, stride, dilate, pad, layout):
    """Return how windows lie, in two dimensions."""
    if len(kernel) != 2 or layout not in (None, "NCHW"):
        raise OpValueError(f"operator {op}: kernel={kernel}, layout={layout!r}; expected two sizes and 'NCHW': it is for "
                           "images of two dimensions")  # fmt: skip
    return frame(op, kernel, stride, dilate, pad)


def _starts(F, like, at, axis, n):
    """Return where the elements of `n` windows are along one axis, without offsets."""
    (down, across), last = at.kernel, axis == 1
    inside = numbers(F, like, at.kernel[axis], -at.pad[axis], at.dilate[axis])
    inside = F.reshape(inside, shape=(1, 1, 1, across) if last else (1, 1, down, 1))
    inside = F.reshape(F.broadcast_to(inside, shape=(1, 1, down, across)), shape=(1, 1, down * across, 1))
    windows = F.reshape(numbers(F, like, n, 0, at.stride[axis]), shape=(1, 1, 1, n))
    return F.expand_dims(F.broadcast_add(inside, windows), axis=3 if last else 4)


def _columns(F, data, offset, at, groups, clamp):
    """Return the pixels of windows at their offsets, ``(batch * groups, channels / groups, elements, windows)``."""
    n, channels, (down, across) = data.shape[0] * groups, data.shape[1] // groups, offset.shape[2:]
    places, found = size_of(at.kernel), []
    offset = F.reshape(offset, shape=(n, places, 2, down, across))
    for axis, count in ((1, across), (0, down)):  # x, then y
        moves = F.slice_axis(offset, axis=2, begin=axis, end=axis + 1)
        moves = F.reshape(moves, shape=(n, 1, places, down, across))
        moved = F.broadcast_add(moves, _starts(F, offset, at, axis, count))
        found.append(F.reshape(moved, shape=(n, 1, places, down * across)))
    data = F.reshape(data, shape=(n, channels, *data.shape[2:]))
    return F._sampled(data, F.concat(*found, dim=1), unit=False, clamp=clamp)


def _filtered(F, columns, size, weight, bias, num_filter, num_group):
    """Return the products of filters and windows, ``(batch, filters, *size)``."""
    batch, channels = size[0], weight.shape[1] * num_group
    places = size_of(weight.shape[2:])
    columns = F.reshape(columns, shape=(batch, channels * places, size[1] * size[2]))
    weight = F.reshape(weight, shape=(num_filter, weight.shape[1] * places, 1))
    given = (columns, weight) if bias is None else (columns, weight, bias)
    out = F.Convolution(*given, kernel=(1,), num_filter=num_filter, num_group=num_group, no_bias=bias is None)
    return F.reshape(out, shape=(batch, num_filter, *size[1:]))


def _dims(op):
    """Let the shapes follow from each other."""

    @op.dims
    def _(*, kernel, stride, dilate, pad, num_filter, num_group, num_deformable_group, layout, **params):
        at = _frame(op.name, kernel, stride, dilate, pad, layout)
        _shares(op.name, num_group, num_filter, "num_filter=")
        groups, places = num_deformable_group, size_of(kernel)

        def own(n):
            if n % groups:
                raise OpValueError(
                    f"operator {op.name}: num_deformable_group={groups} does not divide the channels of the data, {n}"
                )
            return _shares(op.name, num_group, n)

        found = tuple(fitting(op.name, at, axis) for axis in (0, 1))
        return {
            "data": ("batch", "channels", "size0", "size1"), "offset": ("batch", 2 * groups * places, *found),
            "mask": ("batch", groups * places, *found), "bias": (num_filter,), "output": ("batch", num_filter, *found),
            "weight": (num_filter, Of("channels", own, lambda n: n * num_group), *kernel),
        }  # fmt: skip

    float_types(op)


@composite(
    name="_contrib_DeformableConvolution",
    active_inputs=lambda *, no_bias, **params: ("data", "offset", "weight") + ("bias",) * (not no_bias),
)
def DeformableConvolution(
    F, data, offset, weight, bias=None, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (),
    num_filter: Count, num_group: Count = 1, num_deformable_group: Count = 1, workspace: int = 1024, no_bias: bool = False,
    layout: Layout = None,
):  # fmt: skip
    """Convolve images with filters whose pixels are moved by offsets (Dai et al., 2017).

    Pixels are interpolated linearly.  Those outside of the image are 0; after the middle of the last one, it counts up to where
    its next would be.

    Parameters
    ----------
    data : NDArray or Symbol
        Images, ``(batch, channels, height, width)``, of a floating-point type.
    offset : NDArray or Symbol
        ``(batch, num_deformable_group * elements of the kernel * 2, new height, new width)``: by how many pixels each element
        of each window is moved, down, then to the right.
    weight : NDArray or Symbol
        ``(num_filter, channels / num_group, *kernel)``.
    bias : NDArray or Symbol
        ``(num_filter,)``; not taken with `no_bias`.
    kernel, stride, dilate, pad, num_filter, num_group
        As for ``Convolution``, of two dimensions.
    num_deformable_group : int
        Number of groups of channels that have offsets of their own.

    Returns
    -------
    NDArray or Symbol
        ``(batch, num_filter, new height, new width)``.

    >>> x, one = mx.nd.array([[[[1, 2, 4]]]]), {"kernel": (1, 1), "num_filter": 1, "no_bias": True}
    >>> right = mx.nd.array([[[[0, 0, 0]], [[0.5, 0.5, 0.5]]]])
    >>> mx.nd.contrib.DeformableConvolution(x, right, mx.nd.ones((1, 1, 1, 1)), **one).asnumpy().tolist()
    [[[[1.5, 3.0, 4.0]]]]
    """
    at = _frame("_contrib_DeformableConvolution", kernel, stride, dilate, pad, layout)
    columns = _columns(F, data, offset, at, num_deformable_group, True)
    return _filtered(F, columns, (data.shape[0], *offset.shape[2:]), weight, bias, num_filter, num_group)


@composite(
    name="_contrib_ModulatedDeformableConvolution",
    active_inputs=lambda *, no_bias, **params: ("data", "offset", "mask", "weight") + ("bias",) * (not no_bias),
)
def ModulatedDeformableConvolution(
    F, data, offset, mask, weight, bias=None, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (),
    num_filter: Count, num_group: Count = 1, num_deformable_group: Count = 1, workspace: int = 1024, no_bias: bool = False,
    im2col_step: int = 64, layout: Layout = None,
):  # fmt: skip
    """Convolve images with filters whose pixels are moved by offsets, and multiplied by a mask (Zhu et al., 2019).

    Pixels are interpolated linearly, and those outside of the image are 0.

    Parameters
    ----------
    data, offset, weight, bias : NDArray or Symbol
        As for ``DeformableConvolution``.
    mask : NDArray or Symbol
        ``(batch, num_deformable_group * elements of the kernel, new height, new width)``.
    kernel, stride, dilate, pad, num_filter, num_group, num_deformable_group
        As for ``DeformableConvolution``.

    >>> x, one = mx.nd.array([[[[1, 2, 4]]]]), {"kernel": (1, 1), "num_filter": 1, "no_bias": True}
    >>> right, half = mx.nd.array([[[[0, 0, 0]], [[0.5, 0.5, 0.5]]]]), mx.nd.full((1, 1, 1, 3), 0.5)
    >>> mx.nd.contrib.ModulatedDeformableConvolution(x, right, half, mx.nd.ones((1, 1, 1, 1)), **one).asnumpy().tolist()
    [[[[0.75, 1.5, 1.0]]]]
    """
    at = _frame("_contrib_ModulatedDeformableConvolution", kernel, stride, dilate, pad, layout)
    columns = _columns(F, data, offset, at, num_deformable_group, False)
    shape = (data.shape[0] * num_deformable_group, 1, size_of(kernel), size_of(mask.shape[2:]))
    columns = F.broadcast_mul(columns, F.reshape(mask, shape=shape))
    return _filtered(F, columns, (data.shape[0], *offset.shape[2:]), weight, bias, num_filter, num_group)


_dims(DeformableConvolution)
_dims(ModulatedDeformableConvolution)
