"""Deformable convolution: windows whose pixels are moved by offsets, sampled between pixels, then multiplied with filters.

And means of samples in bins of regions that are moved.
"""

from typing import Annotated, Literal

from ..opdef import Of, Range, Shape, composite, kernel
from ..opdef.dims import rule_of
from ..support.errors import OpValueError
from ._shared import IN_IMAGES, Count, device_of, divided, float_types, in_loops, loops, size_of
from .convolution import _shares
from .regions import Scale, image_of, plane_of, rounded, weighed
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


# ---- regions ---------------------------------------------------------------------------------------------------------------
@kernel(name="_moved_regions")
def moved_regions(
    data, rois, moves, *, spatial_scale: Scale, group_size: Count, sample_per_part: Count, trans_std: float, down: bool = False,
    across: bool = False,
):  # fmt: skip
    """Mean of samples in each bin of regions, or the derivatives of that.

    Bins are moved by `moves`, ``(regions, classes, 2, bins, bins)``: to the right and down, times `trans_std`, in sizes of the
    region.
    """


@kernel(name="_moved_regions_grad", shape_only=(3,))
def moved_regions_grad(
    head, rois, moves, like, *, spatial_scale: Scale, group_size: Count, sample_per_part: Count, trans_std: float,
    down: bool = False, across: bool = False,
):  # fmt: skip
    """Add the elements of regions up in images of the shape of `like`: the gradient of ``_moved_regions``."""


def _regions_dims(images, bins, images_too="", /, *, group_size, **params):
    planes = group_size**2
    data = ("batch", Of("channels", lambda n: n * planes, lambda n: divided(n, planes)), "height", "width")
    found = {bins: ("regions", "channels", "bins", "bins"), "moves": ("regions", "classes", 2, "bins", "bins")}
    return {images: data, "rois": ("regions", 5), images_too: data} | found


moved_regions.infer(rule_of(moved_regions, lambda **params: _regions_dims("data", "output", **params)))
moved_regions_grad.infer(rule_of(moved_regions_grad, lambda **params: _regions_dims("like", "head", "output", **params)))
float_types(moved_regions)
float_types(moved_regions_grad)


def _bins(xp, op, rois, moves, shape, spatial_scale, group_size, sample_per_part, trans_std, down, across):
    """Return the image of each bin, its first plane, and what ``blend`` takes: each bin is a region of its own."""
    bins, real, planes = moves.shape[-1], rois.dtype.type, group_size**2
    images = image_of(xp, op, rois, shape[0])
    images = xp.broadcast_to(images[:, None, None, None], (*moves.shape[:2], bins, bins))
    at, share = plane_of(xp, bins, group_size), shape[1] // moves.shape[1] if moves.shape[1] else 0
    first = images * shape[1] + xp.arange(moves.shape[1])[:, None, None] * share + at[:, None] * group_size + at
    found = []
    for k, slope in enumerate((down, across)):
        start = rounded(xp, rois[:, 2 - k]) * real(spatial_scale) - real(0.5)
        size = xp.maximum((rounded(xp, rois[:, 4 - k]) + 1) * real(spatial_scale) - real(0.5) - start, real(0.1))
        place = start[:, None] + xp.arange(bins, dtype=rois.dtype) * (size / real(bins))[:, None]
        place, size = place[:, None, :, None] if k == 0 else place[:, None, None], size[:, None, None, None]
        place = (place + moves[:, :, 1 - k] * real(trans_std) * size).reshape(-1, 1)
        size = xp.broadcast_to(size, images.shape).reshape(-1, 1)
        samples, limit = xp.full(place.shape, sample_per_part), shape[2 + k]
        spans, weights = weighed(xp, place, size / real(bins), samples, 0, -0.5, limit - 0.5, limit, True, slope)
        found += [spans, weights * (real(trans_std) * size[..., None]) if slope else weights]
    own = xp.zeros(1, xp.int64)
    return images.ravel(), xp.where(images < 0, -1, first).ravel(), (*found, own, own, planes)


@in_loops(moved_regions, waits=IN_IMAGES)
def _(xp, inputs, outputs, **params):
    data, rois, moves = inputs
    out, classes = outputs[0], moves.shape[1]
    _, first, parts = _bins(xp, "_contrib_DeformablePSROIPooling", rois, moves, data.shape, **params)
    share = out.shape[1] // classes if classes else 0
    found = xp.zeros((first.size, share, 1, 1), data.dtype)
    loops(xp, "regions").blend(data, first, *parts, found)
    out[...] = xp.moveaxis(found.reshape(len(rois), classes, *out.shape[2:], share), -1, 2).reshape(out.shape)


@in_loops(moved_regions_grad)
def _(xp, inputs, outputs, **params):
    head, rois, moves, like = inputs
    images, first, parts = _bins(xp, None, rois, moves, like.shape, **params)
    classes, total = moves.shape[1], xp.zeros(like.shape, head.dtype)
    share = head.shape[1] // classes if classes else 0
    each = xp.moveaxis(head.reshape(len(rois), classes, share, *head.shape[2:]), 2, -1).reshape(first.size, share, 1, 1)
    loops(xp, "regions").spread(xp.ascontiguousarray(each), images, first, *parts, total)
    outputs[0][...] = total


def _along_moves(F, head, data, rois, moves, *, down, across, **params):
    """Return the gradient with respect to the moves; between pixels, samples are linear along each axis."""

    def along(**ways):
        each = head * F._moved_regions(data, rois, moves, **ways, **params)
        return F.sum(F.reshape(each, shape=(0, -4, moves.shape[1], -1, 0, 0)), axis=2, keepdims=True)

    zeros = F.zeros_like(F.slice_axis(moves, axis=2, begin=0, end=1))
    return F.concat(
        zeros if across else along(down=down, across=True), zeros if down else along(down=True, across=across), dim=2
    )


@moved_regions.gradient
def _(F, heads, inputs, outputs, **params):
    (data, rois, moves), (head,) = inputs, heads
    return [lambda: F._moved_regions_grad(head, rois, moves, data, **params), None,
            lambda: _along_moves(F, head, data, rois, moves, **params)]  # fmt: skip


@moved_regions_grad.gradient
def _(F, heads, inputs, outputs, **params):
    (head, rois, moves, _), (new,) = inputs, heads
    return [lambda: F._moved_regions(new, rois, moves, **params), None,
            lambda: _along_moves(F, head, new, rois, moves, **params), None]  # fmt: skip


@float_types
@composite(
    name="_contrib_DeformablePSROIPooling",
    active_inputs=lambda *, no_trans, **params: ("data", "rois") + ("trans",) * (not no_trans),
)
def DeformablePSROIPooling(
    F, data, rois, trans=None, *, spatial_scale: Scale, output_dim: Count, group_size: Count, pooled_size: Count,
    part_size: Annotated[int, Range(0)] = 0, sample_per_part: Count = 1, trans_std: Annotated[float, Range(0, 1)] = 0.0,
    no_trans: bool = False,
):  # fmt: skip
    """Mean of samples in each bin of regions, which is moved, and reads channels of its own (Dai et al., 2017).

    Corners are rounded to whole pixels of the unscaled image, and the last one belongs to the region.  Samples more than half a
    pixel outside of the image do not count; a bin without others gives 0.  Regions have no gradient.

    Parameters
    ----------
    data : NDArray or Symbol
        Images, ``(batch, output_dim * group_size ** 2, height, width)``, of a floating-point type.
    rois : NDArray or Symbol
        ``(regions, 5)``: the image that each is of, left, top, right, bottom.  Those of an image below 0 give zeros.
    trans : NDArray or Symbol
        ``(regions, classes * 2, part_size, part_size)``: by how much parts of a region are moved to the right, and down, in
        its sizes; the channels of the result are shared among the classes.  Not taken with `no_trans`.
    spatial_scale : float
        What the corners are multiplied by, from 0 to 1.
    output_dim : int
        The channels of the result.
    group_size : int
        How many planes of a channel there are, down and across.
    pooled_size, part_size : int
        The numbers of bins, and of parts, down and across; 0 parts: as many as bins.
    sample_per_part : int
        How many samples a bin has in each direction.
    trans_std : float
        What `trans` is multiplied by, from 0 to 1.

    Returns
    -------
    NDArray or Symbol
        ``(regions, output_dim, pooled_size, pooled_size)``.

    >>> x, region = mx.nd.arange(16).reshape((1, 1, 4, 4)), mx.nd.array([[0, 0, 0, 1, 1]])
    >>> one = {"spatial_scale": 1.0, "output_dim": 1, "group_size": 1, "pooled_size": 1, "sample_per_part": 2}
    >>> moved = mx.nd.array([[[[0.5]], [[0]]]])
    >>> mx.nd.contrib.DeformablePSROIPooling(x, region, moved, trans_std=1.0, **one).asnumpy().tolist()
    [[[[2.0]]]]
    """
    regions, parts = rois.shape[0], part_size or pooled_size
    if no_trans:
        moves = F.zeros(shape=(regions, 1, 2, pooled_size, pooled_size), dtype=data.dtype, ctx=device_of(data))
    else:
        for axis in (2, 3) if parts != pooled_size else ():
            at = [k * parts // pooled_size for k in range(pooled_size)]
            trans = F.concat(*(F.slice_axis(trans, axis=axis, begin=k, end=k + 1) for k in at), dim=axis)
        moves = F.reshape(trans, shape=(regions, trans.shape[1] // 2, 2, pooled_size, pooled_size))
    return F._moved_regions(data, rois, moves, spatial_scale=spatial_scale, group_size=group_size,
                            sample_per_part=sample_per_part, trans_std=trans_std)  # fmt: skip


@DeformablePSROIPooling.dims
def _(*, output_dim, group_size, pooled_size, part_size, **params):
    parts = part_size or pooled_size

    def twice(n):
        if n == 0 or output_dim % n:
            raise OpValueError(f"operator _contrib_DeformablePSROIPooling: trans has {2 * n} channels; expected twice a "
                               f"divisor of output_dim={output_dim}")  # fmt: skip
        return 2 * n

    return {
        "data": ("batch", output_dim * group_size**2, "height", "width"), "rois": ("regions", 5),
        "trans": ("regions", Of("classes", twice, lambda n: divided(n, 2)), parts, parts),
        "output": ("regions", output_dim, pooled_size, pooled_size),
    }  # fmt: skip
