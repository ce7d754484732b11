"""Records of operators on regions of images (``mxop/ops/regions.py``), which the references take bin by bin."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal

#: What these operators read as numbers of images and places of bins, so that nothing follows for infinite ones.
UNREAD = {"special": "rois that are infinite or NaN are refused, or of no pixel"}
BACK = {"shapes back": "the result does not say of which images"}


# ---- the largest pixels ----------------------------------------------------------------------------------------------------
def _rounded_bins(first, last, count, limit):
    """Return where bins begin and end."""
    first, last = away(first), away(last)
    size = max(last - first + 1, 1) / count
    return [np.clip([np.floor(i * size) + first, np.ceil((i + 1) * size) + first], 0, limit).astype(int) for i in range(count)]


def _pooling(data, rois, pooled_size, spatial_scale):
    found = np.zeros((len(rois), data.shape[1], *pooled_size))
    for k, (image, *corners) in enumerate(rois):
        left, top, right, bottom = (c * spatial_scale for c in corners)
        rows = _rounded_bins(top, bottom, pooled_size[0], data.shape[2])
        columns = _rounded_bins(left, right, pooled_size[1], data.shape[3])
        for c, i, j in np.ndindex(found.shape[1:]):
            part = data[int(image), c, slice(*rows[i]), slice(*columns[j])]
            if image >= 0 and part.size:
                found[k, c, i, j] = part.max()
    return found


def _taken(data, rois, places):
    found = np.zeros(places.shape)
    for k, c, i, j in np.argwhere(places >= 0):
        if rois[k, 0] >= 0:
            found[k, c, i, j] = data[int(rois[k, 0]), c].ravel()[int(places[k, c, i, j])]
    return found


def _put(head, rois, places, like):
    total = np.zeros((*like.shape[:2], like.shape[2] * like.shape[3]))
    for k, c, i, j in np.argwhere(places >= 0):
        if rois[k, 0] >= 0:
            total[int(rois[k, 0]), c, int(places[k, c, i, j])] += head[k, c, i, j]
    return total.reshape(like.shape)


# ---- means -----------------------------------------------------------------------------------------------------------------
def _align_weights(first, last, count, limit, ratio, aligned):
    """Return the matrix of weights, ``(bins, pixels)``."""
    size = (last - first if aligned else max(last - first, 1)) / count
    found, n = np.zeros((count, limit)), ratio if ratio > 0 else int(np.ceil(size))
    for i in range(count if size > 0 else 0):
        for at in first + size * (i + (np.arange(n) + 0.5) / n):
            if -1 <= at <= limit:
                at = np.clip(at, 0, limit - 1)
                found[i] += np.maximum(1 - abs(np.arange(limit) - at), 0) / n
    return found


def _align_parts(rois, sizes, pooled_size, spatial_scale, sample_ratio=-1, position_sensitive=False, aligned=False):
    for image, *corners in rois:
        left, top, right, bottom = (c * spatial_scale - 0.5 * aligned for c in corners)
        rows = _align_weights(top, bottom, pooled_size[0], sizes[0], sample_ratio, aligned)
        yield int(image), rows, _align_weights(left, right, pooled_size[1], sizes[1], sample_ratio, aligned)


def _by_bin(planes, grid, position_sensitive):
    """Return images ``(channels * planes, ...)`` as ``(channels, *grid, ...)``: what each bin reads."""
    if position_sensitive:
        return planes.reshape(-1, *grid, *planes.shape[-2:])
    return np.broadcast_to(planes[:, None, None], (len(planes), *grid, *planes.shape[-2:]))


def _align(data, rois, **params):
    grid, own = params["pooled_size"], params.get("position_sensitive", False)
    found = np.zeros((len(rois), data.shape[1] // (grid[0] * grid[1] if own else 1), *grid))
    for k, (image, rows, columns) in enumerate(_align_parts(rois, data.shape[2:], **params)):
        if image >= 0:
            found[k] = np.einsum("iy,jx,cijyx->cij", rows, columns, _by_bin(data[image], grid, own))
    return found


def _align_grad(head, rois, like, **params):
    total, own = np.zeros(like.shape), params.get("position_sensitive", False)
    for part, (image, rows, columns) in zip(head, _align_parts(rois, like.shape[2:], **params), strict=True):
        if image >= 0:
            each = np.einsum("iy,jx,cij->cijyx", rows, columns, part)
            total[image] += each.reshape(-1, *like.shape[2:]) if own else each.sum((1, 2))
    return total


def away(value):
    """Return the nearest whole number; halves are rounded away from 0."""
    return np.floor(abs(value) + 0.5) * np.sign(value)


def _psroi_weights(first, last, count, limit, scale):
    first, last = away(first) * scale, (away(last) + 1) * scale
    size, found = max(last - first, 0.1) / count, np.zeros((count, limit))
    for i in range(count):
        begin, end = np.clip([np.floor(i * size + first), np.ceil((i + 1) * size + first)], 0, limit).astype(int)
        found[i, begin:end] = 1 / max(end - begin, 1)
    return found


def planes_of(images, bins, group):
    """Return images ``(channels * group ** 2, ...)`` as ``(channels, bins, bins, ...)``: what each bin reads."""
    at = np.arange(bins) * group // bins
    return images.reshape(-1, group, group, *images.shape[-2:])[:, at][:, :, at]


def _psroi_parts(rois, sizes, spatial_scale, pooled_size):
    for image, *corners in rois:
        rows = _psroi_weights(corners[1], corners[3], pooled_size, sizes[0], spatial_scale)
        yield int(image), rows, _psroi_weights(corners[0], corners[2], pooled_size, sizes[1], spatial_scale)


def _psroi(data, rois, spatial_scale, output_dim, pooled_size, group_size=0):
    found = np.zeros((len(rois), output_dim, pooled_size, pooled_size))
    for k, (image, rows, columns) in enumerate(_psroi_parts(rois, data.shape[2:], spatial_scale, pooled_size)):
        if image >= 0:
            found[k] = np.einsum(
                "iy,jx,cijyx->cij", rows, columns, planes_of(data[image], pooled_size, group_size or pooled_size)
            )
    return found


def _psroi_grad(head, rois, like, spatial_scale, output_dim, pooled_size, group_size=0):
    total, group = np.zeros(like.shape), group_size or pooled_size
    at = np.arange(pooled_size) * group // pooled_size
    for part, (image, rows, columns) in zip(head, _psroi_parts(rois, like.shape[2:], spatial_scale, pooled_size), strict=True):
        if image >= 0:
            planes = total[image].reshape(output_dim, group, group, *like.shape[2:])
            for i, j in np.ndindex(pooled_size, pooled_size):
                planes[:, at[i], at[j]] += np.einsum("y,x,c->cyx", rows[i], columns[j], part[:, i, j])
    return total


def _turned(rois, sizes, pooled_size, spatial_scale, sampling_ratio=-1):
    """Yield, of each region, its image and the weights of pixels in each bin, ``(*bins, height, width)``."""
    for image, *numbers, angle in rois:
        x, y, width, height = (v * spatial_scale for v in numbers)
        lengths, turn = (max(height, 1), max(width, 1)), np.deg2rad(angle)
        steps = [v / n for v, n in zip(lengths, pooled_size, strict=True)]
        counts = [sampling_ratio if sampling_ratio > 0 else int(np.ceil(v)) for v in steps]
        found = np.zeros((*pooled_size, *sizes))
        for i, j, k, m in np.ndindex(*pooled_size, *counts):
            down = -lengths[0] / 2 + steps[0] * (i + (k + 0.5) / counts[0])
            across = -lengths[1] / 2 + steps[1] * (j + (m + 0.5) / counts[1])
            at = down * np.cos(turn) - across * np.sin(turn) + y, across * np.cos(turn) + down * np.sin(turn) + x
            if all(-1 <= v <= n for v, n in zip(at, sizes, strict=True)):
                lines = [np.maximum(1 - abs(np.arange(n) - np.clip(v, 0, n - 1)), 0) for v, n in zip(at, sizes, strict=True)]
                found[i, j] += np.outer(*lines) / (counts[0] * counts[1])
        yield int(image), found


def _rroi(data, rois, **params):
    found = np.zeros((len(rois), data.shape[1], *params["pooled_size"]))
    for k, (image, weights) in enumerate(_turned(rois, data.shape[2:], **params)):
        if image >= 0:
            found[k] = np.einsum("ijyx,cyx->cij", weights, data[image])
    return found


def _rroi_grad(head, rois, like, **params):
    total = np.zeros(like.shape)
    for part, (image, weights) in zip(head, _turned(rois, like.shape[2:], **params), strict=True):
        if image >= 0:
            total[image] += np.einsum("ijyx,cij->cyx", weights, part)
    return total


# ---- records ---------------------------------------------------------------------------------------------------------------
def regions(rois, batch, size, scale=1.0, small=0.3):
    """Return regions of drawn numbers from 0 to 1: some of no image, some that reach out of the images, of `size` pixels."""
    rois = rois.copy()
    if rois.ndim != 2 or rois.shape[-1] != 5:
        return rois
    rois[:, 0] = np.floor(rois[:, 0] * (batch + 0.5)) - (rois[:, 0] > 0.9) * (batch + 1)
    rois[:, 0] = np.clip(rois[:, 0], -1, batch - 1)
    rois[:, 1:3] = (rois[:, 1:3] * 1.4 - 0.4) * size / scale + 0.03
    rois[:, 3:5] = rois[:, 1:3] + (rois[:, 3:5] * 0.9 + small) * size / scale
    return rois


def _of_images(*arrays):
    """Return images first, or last, with the regions made of the second array."""
    images = arrays[0] if len(arrays) == 2 else arrays[-1]
    return (arrays[0], regions(arrays[1], len(images), images.shape[-1]), *arrays[2:])


def _placed(first, rois, places, *like):
    """Return the same with places in the images, some of which are -1."""
    images = like[0] if like else first
    if images.ndim != 4:
        return first, rois, places, *like
    limit = images.shape[2] * images.shape[3]
    return first, regions(rois, len(images), 4), np.floor(places * (limit + 0.99)) - 1, *like


def _rotated(*arrays):
    """Return the same with regions of six numbers, made of drawn ones from 0 to 1: the last is an angle."""
    first, rois, *like = arrays
    if rois.ndim != 2 or rois.shape[-1] != 6:
        return arrays
    images, found = like[0] if like else first, rois.copy()
    found[:, 0] = np.clip(np.floor(rois[:, 0] * (len(images) + 1)) - 1, -1, len(images) - 1)
    found[:, 1:] = rois[:, 1:] * [*[images.shape[-1]] * 4, 400]
    return first, found, *like


_UNIT = ((-2, 2), (0, 1))
_PLACES = ((3, 5), (3, 2, 2, 3))
_IMAGES = (2, 2, 4, 5)
_TWO = {"pooled_size": (2, 3), "spatial_scale": 1.0}
_ALIGNED = [
    ([(2, 2, 5, 4), (3, 5)], _TWO), ([(1, 1, 3, 6), (4, 5)], {**_TWO, "sample_ratio": 2, "spatial_scale": 0.5}),
    ([(2, 12, 4, 4), (2, 5)], {**_TWO, "position_sensitive": True}),
    ([(1, 2, 5, 5), (3, 5)], {**_TWO, "aligned": True, "sample_ratio": 1}),
]  # fmt: skip
_SENSITIVE = {"pooled_size": 2, "output_dim": 2, "spatial_scale": 1.0}
_WRONG = [
    Refusal("two sizes above 0", params={**_TWO, "pooled_size": (2,)}),
    Refusal("two sizes above 0", params={**_TWO, "pooled_size": (0, 2)}),
    Refusal("spatial_scale", params={**_TWO, "spatial_scale": 2.0}),
    Refusal("rois has shape", shapes=((2, 2, 5, 4), (3, 4))), Refusal("floating-point", dtypes=("int32", "int32")),
]  # fmt: skip


def _means(reference, cases, prepare=_of_images, **details):
    return Record(
        reference, shapes=[tuple(s) for s, _ in cases], params=[p for _, p in cases], prepare=prepare, grad_inputs=(0,),
        dtypes="f", unchecked={**UNREAD, **BACK}, **details,
    )  # fmt: skip


def _both(name, grad_name, reference, grad_reference, cases, refuses, prepare=_of_images):
    """Return the records of an operator and of its gradient; the head's shape is that of the result."""

    def head(data, rois, params):
        return [_with_head(data, rois, params), rois, data]

    return {
        name: _means(reference, cases, prepare, domain=_UNIT, refuses=refuses),
        grad_name: _means(grad_reference, [(head(*s, p), p) for s, p in cases], prepare, domain=((-2, 2), (0, 1), (-2, 2))),
    }


def _with_head(data, rois, params):
    """Return the shape of what an operator makes of these."""
    if "output_dim" in params:
        return rois[0], params["output_dim"], params["pooled_size"], params["pooled_size"]
    return rois[0], data[1] // (6 if params.get("position_sensitive") else 1), *params["pooled_size"]


RECORDS: dict[str, Record] = {
    "ROIPooling": Record(
        _pooling, shapes=[((2, 2, 5, 4), (3, 5)), ((1, 1, 3, 6), (4, 5))], domain=_UNIT, distinct=True, prepare=_of_images,
        params=[_TWO, {"pooled_size": (3, 2), "spatial_scale": 0.5}], dtypes="f", grad_inputs=(0,), refuses=_WRONG,
        unchecked={**UNREAD, **BACK},
    ),
    "_roi_pooling_grad": Record(
        _put, shapes=[(_PLACES[1], *_PLACES, _IMAGES)], domain=((-2, 2), (0, 1), (0, 1), (-2, 2)), prepare=_placed,
        whole=(2,), input_types={2: "int64"}, dtypes="f", grad_inputs=(0,), unchecked=UNREAD,
    ),
    "_roi_pooling_taken": Record(
        _taken, shapes=[(_IMAGES, *_PLACES)], domain=((-2, 2), (0, 1), (0, 1)), prepare=_placed, whole=(2,),
        input_types={2: "int64"}, dtypes="f", grad_inputs=(0,), unchecked={**UNREAD, **BACK},
    ),
    **_both(
        "_contrib_ROIAlign", "_roi_align_grad", _align, _align_grad, _ALIGNED,
        [*_WRONG, Refusal("expected a multiple of 6", params={**_TWO, "position_sensitive": True})],
    ),
    **_both(
        "_contrib_PSROIPooling", "_psroi_pooling_grad", _psroi, _psroi_grad,
        [([(2, 8, 5, 4), (3, 5)], _SENSITIVE), ([(1, 9, 4, 4), (4, 5)], {**_SENSITIVE, "output_dim": 1, "group_size": 3}),
         ([(1, 4, 4, 4), (2, 5)], {**_SENSITIVE, "output_dim": 1, "pooled_size": 3, "group_size": 2, "spatial_scale": 0.5})],
        [Refusal("data has shape", shapes=((2, 7, 5, 4), (3, 5))), Refusal("rois has shape", shapes=((2, 8, 5, 4), (3, 4))),
         Refusal("pooled_size", params={**_SENSITIVE, "pooled_size": 0})],
    ),
    **_both(
        "_contrib_RROIAlign", "_rroi_align_grad", _rroi, _rroi_grad,
        [([(2, 2, 5, 5), (3, 6)], _TWO), ([(1, 1, 4, 4), (4, 6)], {**_TWO, "sampling_ratio": 2, "spatial_scale": 0.5})],
        [Refusal("rois has shape", shapes=((2, 2, 5, 5), (3, 5))), _WRONG[0]], _rotated,
    ),
}  # fmt: skip
