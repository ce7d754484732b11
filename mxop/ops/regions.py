"""Regions of images: each becomes a grid of bins, of their largest pixels or of means.

A region is five numbers: the image that it is of, then left, top, right and bottom.
"""

from itertools import groupby, islice
from typing import Annotated

from ..opdef import Of, Range, Shape, kernel
from ..opdef.dims import rule_of
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import IN_IMAGES, Count, adjoint, compiled, flat, float_types, in_loops, loops, on_host, size_of, two_sizes

Scale = Annotated[float, Range(0, 1)]
_Size = Annotated[int, Range(0)]
MOST_SAMPLES, MOST_TURNED = 2**20, 2**10


# ---- regions and their images ----------------------------------------------------------------------------------------------
def image_of(xp, op, rois, batch):
    """Return the image of each region, -1 for none.  A wrong one raises an error of `op`; if that is None, it is none, too."""
    first = rois[:, 0]
    wrong = ~(first < batch)
    if op and wrong.any():
        at = int(wrong.argmax())
        raise OpValueError(f"operator {op}: region {at} of rois is of image {float(first[at]):g}; expected a number below "
                           f"{batch}, as many as there are, or one below 0, for none")  # fmt: skip
    return xp.where(wrong, -1, xp.maximum(first, -1)).astype(xp.int64)


def _by_table(op, table, **apart):
    """Let the shapes of a kernel follow from a table, in both directions; `apart` names what has another type."""
    op.infer(rule_of(op, table))
    float_types(op, **apart)


# ---- the largest pixels ----------------------------------------------------------------------------------------------------
@kernel(aliases=("_npx_roi_pooling",), num_outputs=2, visible_outputs=1, output_names=("output", "maxidx"))
def ROIPooling(data, rois, *, pooled_size: Shape, spatial_scale: Scale):
    """Largest pixel of each bin of regions (Fast R-CNN: Girshick, 2015).

    Corners are rounded to whole pixels, and the last pixel belongs to the region.  Bins cover the region and may overlap by a
    pixel.  One without pixels of the image gives 0; NaN is larger than all.  The gradient goes to the largest pixel, the first
    of equal ones; regions have none.

    Parameters
    ----------
    data : NDArray or Symbol
        Images, ``(batch, channels, height, width)``, of a floating-point type.
    rois : NDArray or Symbol
        ``(regions, 5)``: the image that each is of, left, top, right, bottom.  Those of an image below 0 give zeros.
    pooled_size : tuple of int
        The numbers of bins, down and across.
    spatial_scale : float
        What the corners are multiplied by, from 0 to 1.

    Returns
    -------
    NDArray or Symbol
        ``(regions, channels, *pooled_size)``.

    >>> x, region = mx.nd.arange(16).reshape((1, 1, 4, 4)), mx.nd.array([[0, 0, 0, 3, 3]])
    >>> mx.nd.ROIPooling(x, region, pooled_size=(2, 2), spatial_scale=1.0).asnumpy().tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """


@kernel(name="_roi_pooling_grad", shape_only=(3,))
def roi_pooling_grad(head, rois, places, like):
    """Add the elements of regions up at their places in images of the shape of `like`: the gradient of ``ROIPooling``."""


@kernel(name="_roi_pooling_taken")
def roi_pooling_taken(data, rois, places):
    """Take the pixels of regions at places in their channels; outside of these there is 0."""


def _pooled(*, pooled_size, **params):
    found = ("regions", "channels", *two_sizes("ROIPooling", "pooled_size", pooled_size))
    return {"data": ("batch", "channels", "height", "width"), "rois": ("regions", 5), "output": found, "maxidx": found}


_IMAGES, _BINS = ("batch", "channels", "height", "width"), ("regions", "channels", "down", "across")
_PLACED = {"rois": ("regions", 5), "places": _BINS}
_by_table(ROIPooling, _pooled, maxidx=dtypes.INT64)
_by_table(roi_pooling_grad, lambda: {"head": _BINS, **_PLACED, "like": _IMAGES, "output": _IMAGES}, places=dtypes.INT64)
_by_table(roi_pooling_taken, lambda: {"data": _IMAGES, **_PLACED, "output": _BINS}, places=dtypes.INT64)


def rounded(xp, a):
    """Return the nearest whole numbers; halves are rounded away from 0."""
    return xp.trunc(a) + xp.sign(a) * (xp.abs(a - xp.trunc(a)) >= 0.5)


def _spans(xp, begin, end, limit):
    """Return the pixels, from 0 up to the limit, that bins cover: ``(regions, bins, 2)``."""
    return xp.nan_to_num(xp.clip(xp.stack([begin, end], axis=-1), 0, limit)).astype(xp.int64)


def _bins(xp, first, last, count, limit):
    """Return where the bins of regions begin and end along one axis; ends are rounded."""
    first, last = rounded(xp, first), rounded(xp, last)
    size = xp.maximum(last - first + 1, 1) / first.dtype.type(count)
    edges, first = xp.arange(count + 1, dtype=first.dtype) * size[:, None], first[:, None]
    return _spans(xp, xp.floor(edges[:, :-1]) + first, xp.ceil(edges[:, 1:]) + first, limit)


@in_loops(ROIPooling, waits=IN_IMAGES)
def _(xp, inputs, outputs, *, pooled_size, spatial_scale):
    data, rois = inputs
    found, places = xp.zeros(outputs[0].shape, data.dtype), xp.full(outputs[0].shape, -1)
    corners = rois[:, 1:] * data.dtype.type(spatial_scale)
    columns, rows = (_bins(xp, corners[:, k], corners[:, k + 2], pooled_size[1 - k], data.shape[3 - k]) for k in (0, 1))
    loops(xp, "regions").largest(data, image_of(xp, "ROIPooling", rois, len(data)), rows, columns, found, places)
    outputs[0][...], outputs[1][...] = found, places


@in_loops(roi_pooling_grad)
def _(xp, inputs, outputs):
    head, rois, places, like = inputs
    total, images = xp.zeros(like.shape, head.dtype), image_of(xp, None, rois, len(like))
    loops(xp, "regions").put(flat(head), images, flat(places.astype(xp.int64, copy=False)), flat(total))
    outputs[0][...] = total


@in_loops(roi_pooling_taken)
def _(xp, inputs, outputs):
    data, rois, places = inputs
    images, places = image_of(xp, None, rois, len(data))[:, None, None, None], places.astype(xp.int64, copy=False)
    channels, size = xp.arange(data.shape[1])[:, None, None], size_of(data.shape[2:])
    inside = (images >= 0) & (places >= 0) & (places < size)
    at = xp.where(inside, (images * data.shape[1] + channels) * size + places, data.size)
    outputs[0][...] = xp.append(data, data.dtype.type(0))[at]


@ROIPooling.gradient
def _(F, heads, inputs, outputs, **params):
    return [F._roi_pooling_grad(heads[0], inputs[1], outputs[1], inputs[0]), None]


@roi_pooling_grad.gradient
def _(F, heads, inputs, outputs):
    return [F._roi_pooling_taken(heads[0], inputs[1], inputs[2]), None, None, None]


@roi_pooling_taken.gradient
def _(F, heads, inputs, outputs):
    return [F._roi_pooling_grad(heads[0], inputs[1], inputs[2], inputs[0]), None, None]


# ---- means: each is linear in the data, and so is its gradient --------------------------------------------------------------
def _summed(op, grad, weights):
    """Let an operator sum up pixels times weights, and `grad`, its gradient, add elements up in images.

    ``weights(xp, rois, sizes, refuse, **params)`` returns the spans and weights of rows, those of columns, the planes that rows
    and columns of bins read, and how many belong to a channel: the arguments of ``blend`` in ``mxop/_kernels/regions.pyx``.
    """

    @in_loops(op, waits=IN_IMAGES)
    def _(xp, inputs, outputs, **params):
        data, rois = inputs
        found = xp.zeros(outputs[0].shape, data.dtype)
        first = image_of(xp, op.name, rois, len(data)) * data.shape[1]
        loops(xp, "regions").blend(data, first, *weights(xp, rois, data.shape[2:], True, **params), found)
        outputs[0][...] = found

    @in_loops(grad)
    def _(xp, inputs, outputs, **params):
        head, rois, like = inputs
        total = xp.zeros(like.shape, head.dtype)
        images = image_of(xp, None, rois, len(like))
        parts = weights(xp, rois, like.shape[2:], False, **params)
        loops(xp, "regions").spread(head, images, images * like.shape[1], *parts, total)
        outputs[0][...] = total

    adjoint(op, grad)


@kernel(name="_contrib_ROIAlign")
def ROIAlign(data, rois, *, pooled_size: Shape, spatial_scale: Scale, sample_ratio: int = -1,
             position_sensitive: bool = False, aligned: bool = False):  # fmt: skip
    """Mean of samples between the pixels of each bin of regions (Mask R-CNN: He et al., 2017).

    Samples are interpolated linearly; those more than a pixel outside of the image are 0.  Regions have no gradient.

    Parameters
    ----------
    data : NDArray or Symbol
        Images, ``(batch, channels, height, width)``, of a floating-point type.
    rois : NDArray or Symbol
        ``(regions, 5)``: the image that each is of, left, top, right, bottom.  Those of an image below 0 give zeros.
    pooled_size : tuple of int
        The numbers of bins, down and across.
    spatial_scale : float
        What the corners are multiplied by, from 0 to 1.
    sample_ratio : int
        How many samples a bin has in each direction; not positive: as many as it has pixels.
    position_sensitive : bool
        Whether each bin reads channels of its own: ``channels * bins`` become ``channels``.
    aligned : bool
        Whether the middle of a pixel is at 0.5; otherwise it is at 0, and regions are at least one pixel large.  An aligned
        region whose size is not positive gives zeros.

    Returns
    -------
    NDArray or Symbol
        ``(regions, channels, *pooled_size)``.

    >>> x, region = mx.nd.arange(16).reshape((1, 1, 4, 4)), mx.nd.array([[0, 0, 0, 3, 3]])
    >>> mx.nd.contrib.ROIAlign(x, region, pooled_size=(2, 2), spatial_scale=1.0).asnumpy().tolist()
    [[[[3.75, 5.25], [9.75, 11.25]]]]
    """


@kernel(name="_roi_align_grad", shape_only=(2,))
def roi_align_grad(head, rois, like, *, pooled_size: Shape, spatial_scale: Scale, sample_ratio: int = -1,
                   position_sensitive: bool = False, aligned: bool = False):  # fmt: skip
    """Add the elements of regions up in images of the shape of `like`: the gradient of ``ROIAlign``."""


def _align_dims(images, bins, images_too="", /, *, pooled_size, position_sensitive, **params):
    """Return the table of shapes; the arguments name what are images and what are bins."""
    grid = two_sizes("_contrib_ROIAlign", "pooled_size", pooled_size)
    n = size_of(grid) if position_sensitive else 1
    data = ("batch", Of("channels", lambda c: c * n, lambda c: divided_into("_contrib_ROIAlign", c, n)), "height", "width")
    return {images: data, bins: ("regions", "channels", *grid), "rois": ("regions", 5), images_too: data}


def divided_into(op, channels, planes):
    """Return how many channels of so many planes there are."""
    if channels % planes:
        raise OpValueError(
            f"operator {op}: data has {channels} channels; expected a multiple of {planes}, the planes of a channel"
        )
    return channels // planes


def _align_weights(xp, rois, sizes, refuse, *, pooled_size, spatial_scale, sample_ratio, position_sensitive, aligned):
    corners = rois[:, 1:] * rois.dtype.type(spatial_scale) - rois.dtype.type(0.5 if aligned else 0)
    found, planes = [], []
    for k, (count, limit) in enumerate(zip(pooled_size, sizes, strict=True)):
        first, size = corners[:, 1 - k], corners[:, 3 - k] - corners[:, 1 - k]
        size = (size if aligned else xp.maximum(size, 1)) / rois.dtype.type(count)
        samples = xp.full(len(rois), float(sample_ratio)) if sample_ratio > 0 else xp.ceil(size)
        many = ~(samples <= MOST_SAMPLES)
        if refuse and not 0 < sample_ratio <= MOST_SAMPLES and many.any():
            at = int(many.argmax())
            raise OpValueError(f"operator _contrib_ROIAlign: a bin of region {at} of rois, {rois[at].tolist()}, has "
                               f"{float(samples[at]):g} samples along an axis; expected {MOST_SAMPLES} at most")  # fmt: skip
        samples = xp.where((size > 0) & ~many, samples, 0).astype(xp.int64)
        bases = first[:, None] + xp.arange(count, dtype=rois.dtype) * size[:, None]
        found += weighed(xp, bases, *xp.broadcast_arrays(size[:, None], samples[:, None], bases)[:2], 0.5, -1, limit, limit)
        planes.append(xp.arange(count) * (position_sensitive * (pooled_size[1] if k == 0 else 1)))
    return *found, *planes, size_of(pooled_size) if position_sensitive else 1


def _room(xp, pixels, limit):
    """Return the most pixels of a bin; on a GPU the limit, because the number is not known without waiting."""
    return int(min(limit, pixels.max(initial=1))) if xp.__name__ == "numpy" else limit


def weighed(xp, bases, sizes, samples, half, low, high, limit, inside=False, slope=False):
    """Return the spans and weights of the pixels of bins ``(regions, bins)`` along one axis; see ``weigh`` in the kernels."""
    room = _room(xp, xp.maximum(sizes, 0) + 3, limit)
    spans, weights = xp.zeros((bases.size, 2), xp.int64), xp.zeros((bases.size, room), bases.dtype)
    how = half, low, high, limit, inside, slope
    loops(xp, "regions").weigh(bases.ravel(), sizes.ravel(), samples.ravel(), *how, spans, weights)
    return spans.reshape(*bases.shape, 2), weights.reshape(*bases.shape, room)


_by_table(ROIAlign, lambda **params: _align_dims("data", "output", **params))
_by_table(roi_align_grad, lambda **params: _align_dims("like", "head", "output", **params))
_summed(ROIAlign, roi_align_grad, _align_weights)


# ---- means of whole pixels, of channels for each bin -------------------------------------------------------------------------
@kernel(name="_contrib_PSROIPooling")
def PSROIPooling(data, rois, *, spatial_scale: Scale, output_dim: Count, pooled_size: Count, group_size: _Size = 0):
    """Mean of the pixels of each bin of regions, which reads channels of its own (R-FCN: Dai et al., 2016).

    Corners are rounded to whole pixels of the unscaled image, and the last one belongs to the region.  A bin without pixels of
    the image gives 0.  Regions have no gradient.

    Parameters
    ----------
    data : NDArray or Symbol
        Images, ``(batch, output_dim * group_size ** 2, height, width)``, of a floating-point type.
    rois : NDArray or Symbol
        ``(regions, 5)``: the image that each is of, left, top, right, bottom.  Those of an image below 0 give zeros.
    spatial_scale : float
        What the corners are multiplied by, from 0 to 1.
    output_dim : int
        The channels of the result.
    pooled_size : int
        The number of bins, down and across.
    group_size : int
        How many planes of a channel there are, down and across; 0: as many as bins.

    Returns
    -------
    NDArray or Symbol
        ``(regions, output_dim, pooled_size, pooled_size)``.

    >>> x, region = mx.nd.arange(64).reshape((1, 4, 4, 4)), mx.nd.array([[0, 0, 0, 3, 3]])
    >>> mx.nd.contrib.PSROIPooling(x, region, spatial_scale=1.0, output_dim=1, pooled_size=2).asnumpy().tolist()
    [[[[2.5, 20.5], [42.5, 60.5]]]]
    """


@kernel(name="_psroi_pooling_grad", shape_only=(2,))
def psroi_pooling_grad(head, rois, like, *, spatial_scale: Scale, output_dim: Count, pooled_size: Count, group_size: _Size = 0):
    """Add the elements of regions up in images of the shape of `like`: the gradient of ``PSROIPooling``."""


def _psroi_dims(images, bins, images_too="", /, *, output_dim, pooled_size, group_size, **params):
    data = ("batch", output_dim * (group_size or pooled_size) ** 2, "height", "width")
    return {images: data, bins: ("regions", output_dim, *(pooled_size,) * 2), "rois": ("regions", 5), images_too: data}


def plane_of(xp, bins, group_size):
    """Return the planes, along one axis, that bins read."""
    return xp.arange(bins) * group_size // bins


def _psroi_weights(xp, rois, sizes, refuse, *, spatial_scale, output_dim, pooled_size, group_size):
    real, found, group = rois.dtype.type, [], group_size or pooled_size
    for k, limit in enumerate(sizes):
        first = rounded(xp, rois[:, 2 - k]) * real(spatial_scale)
        size = (rounded(xp, rois[:, 4 - k]) + 1) * real(spatial_scale) - first
        edges = xp.arange(pooled_size + 1, dtype=rois.dtype) * (xp.maximum(size, real(0.1)) / real(pooled_size))[:, None]
        edges += first[:, None]
        spans = _spans(xp, xp.floor(edges[:, :-1]), xp.ceil(edges[:, 1:]), limit)
        count = xp.maximum(spans[..., 1] - spans[..., 0], 1)
        weights = xp.broadcast_to((1 / count)[..., None], (*count.shape, _room(xp, count, limit)))
        found += [spans, xp.ascontiguousarray(weights, rois.dtype)]
    at = plane_of(xp, pooled_size, group)
    return *found, at * group, at, group**2


_by_table(PSROIPooling, lambda **params: _psroi_dims("data", "output", **params))
_by_table(psroi_pooling_grad, lambda **params: _psroi_dims("like", "head", "output", **params))
_summed(PSROIPooling, psroi_pooling_grad, _psroi_weights)


# ---- regions that are turned -------------------------------------------------------------------------------------------------
@kernel(name="_contrib_RROIAlign")
def RROIAlign(data, rois, *, pooled_size: Shape, spatial_scale: Scale, sampling_ratio: int = -1):
    """Mean of samples between the pixels of each bin of rotated regions (Ma et al., 2018).

    As ``ROIAlign``, but for the regions.

    Parameters
    ----------
    data : NDArray or Symbol
        Images, ``(batch, channels, height, width)``, of a floating-point type.
    rois : NDArray or Symbol
        ``(regions, 6)``: the image that each is of, x and y of the middle, width, height, and the angle in degrees, from the
        right up.  Those of an image below 0 give zeros.
    pooled_size : tuple of int
        The numbers of bins, down and across.
    spatial_scale : float
        What places and sizes are multiplied by, from 0 to 1.
    sampling_ratio : int
        How many samples a bin has in each direction, 1024 at most; not positive: as many as it has pixels.

    Returns
    -------
    NDArray or Symbol
        ``(regions, channels, *pooled_size)``.

    >>> x, region = mx.nd.array([[[[1, 2], [3, 4]]]]), mx.nd.array([[0, 0.5, 0.5, 2, 1, 90]])
    >>> mx.nd.contrib.RROIAlign(x, region, pooled_size=(1, 2), spatial_scale=1.0).asnumpy().round(4).tolist()
    [[[[3.5, 1.5]]]]
    """


@kernel(name="_rroi_align_grad", shape_only=(2,))
def rroi_align_grad(head, rois, like, *, pooled_size: Shape, spatial_scale: Scale, sampling_ratio: int = -1):
    """Add the elements of regions up in images of the shape of `like`: the gradient of ``RROIAlign``."""


def _rroi_dims(images, bins, images_too="", /, *, pooled_size, **params):
    grid = two_sizes("_contrib_RROIAlign", "pooled_size", pooled_size)
    data = ("batch", "channels", "height", "width")
    return {images: data, bins: ("regions", "channels", *grid), "rois": ("regions", 6), images_too: data}


def _turned(np, rois, images, limits, *, pooled_size, spatial_scale, sampling_ratio):
    """Yield, of each region that has an image, its number and that, how many samples a bin has, and the grid of one sample of
    each bin after the other."""
    real = rois.dtype.type
    for k in np.argsort(images, kind="stable")[np.count_nonzero(images < 0) :]:
        x, y, width, height = rois[k, 1:5] * real(spatial_scale)
        lines = []
        for size, bins in ((np.maximum(height, 1), pooled_size[0]), (np.maximum(width, 1), pooled_size[1])):
            size, count = size / real(bins), sampling_ratio if sampling_ratio > 0 else np.ceil(size / real(bins))
            if not count <= MOST_TURNED:
                raise OpValueError(f"operator _contrib_RROIAlign: a bin of region {k} of rois, {rois[k].tolist()}, has "
                                   f"{count:g} samples along an axis; expected {MOST_TURNED} at most")  # fmt: skip
            inside = (np.arange(int(count), dtype=rois.dtype) + real(0.5)) * size / real(count)
            lines.append(-size * bins / 2 + np.arange(bins, dtype=rois.dtype) * size + inside[:, None])
        down, across = lines[0][:, None, :, None], lines[1][None, :, None, :]
        angle = rois[k, 5] * real(np.pi / 180)
        grid = np.stack([across * np.cos(angle) + down * np.sin(angle) + x, down * np.cos(angle) - across * np.sin(angle) + y])
        for at, limit in zip(grid, limits[::-1], strict=True):
            at[...] = np.where((at >= -1) & (at <= limit), np.clip(at, 0, limit - 1), np.nan)
        yield k, images[k], len(lines[0]) * len(lines[1]), grid.reshape(1, 2, -1)


def _together(np, *turned, **params):
    """Yield the numbers of some regions of one image that have equal numbers of samples, the image, these, and one grid."""
    for (image, n), found in groupby(_turned(np, *turned, **params), lambda region: region[1:3]):
        while some := list(islice(found, max(1, compiled("machine").MX_RUN // n))):
            yield [region[0] for region in some], image, n, np.concatenate([region[3] for region in some], axis=2)


@on_host(RROIAlign)
def _(np, inputs, outputs, **params):
    data, rois = inputs
    outputs[0][...] = 0
    if data.size:
        images = image_of(np, RROIAlign.name, rois, len(data))
        for some, image, n, grid in _together(np, rois, images, data.shape[2:], **params):
            found = np.zeros((1, data.shape[1], grid.shape[2]), data.dtype)
            compiled("sampling").sample(data[image : image + 1], grid, False, False, False, True, found)
            outputs[0][some] = found.reshape(-1, len(some), n, *outputs[0].shape[2:]).mean(axis=2).swapaxes(0, 1)


@on_host(rroi_align_grad)
def _(np, inputs, outputs, **params):
    head, rois, like = inputs
    total = np.zeros(like.shape, head.dtype)
    if head.size and like.size:
        for some, image, n, grid in _together(np, rois, image_of(np, None, rois, len(like)), like.shape[2:], **params):
            each = (head[some] / head.dtype.type(n)).swapaxes(0, 1).reshape(1, like.shape[1], len(some), 1, -1)
            each = np.repeat(each, n, axis=3).reshape(1, like.shape[1], -1)
            compiled("sampling").scatter(each, grid, False, False, False, True, total[image : image + 1])
    outputs[0][...] = total


_by_table(RROIAlign, lambda **params: _rroi_dims("data", "output", **params))
_by_table(rroi_align_grad, lambda **params: _rroi_dims("like", "head", "output", **params))
adjoint(RROIAlign, rroi_align_grad)
