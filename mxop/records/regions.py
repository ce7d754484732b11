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
    first, last = (np.floor(abs(v) + 0.5) * np.sign(v) for v in (first, last))
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


_UNIT = ((-2, 2), (0, 1))
_PLACES = ((3, 5), (3, 2, 2, 3))
_IMAGES = (2, 2, 4, 5)
_TWO = {"pooled_size": (2, 3), "spatial_scale": 1.0}
_ALIGNED = [
    ([(2, 2, 5, 4), (3, 5)], _TWO), ([(1, 1, 3, 6), (4, 5)], {**_TWO, "sample_ratio": 2, "spatial_scale": 0.5}),
    ([(2, 12, 4, 4), (2, 5)], {**_TWO, "position_sensitive": True}),
    ([(1, 2, 5, 5), (3, 5)], {**_TWO, "aligned": True, "sample_ratio": 1}),
]  # fmt: skip
_WRONG = [
    Refusal("two sizes above 0", params={**_TWO, "pooled_size": (2,)}),
    Refusal("two sizes above 0", params={**_TWO, "pooled_size": (0, 2)}),
    Refusal("spatial_scale", params={**_TWO, "spatial_scale": 2.0}),
    Refusal("rois has shape", shapes=((2, 2, 5, 4), (3, 4))), Refusal("floating-point", dtypes=("int32", "int32")),
]  # fmt: skip


def _align_record(reference, shapes, **details):
    return Record(
        reference, shapes=[tuple(shapes(*s, params)) for s, params in _ALIGNED], params=[p for _, p in _ALIGNED],
        prepare=_of_images, grad_inputs=(0,), dtypes="f", unchecked={**UNREAD, **BACK}, **details,
    )  # fmt: skip


def _with_head(data, rois, params):
    planes = 6 if params.get("position_sensitive") else 1
    return (rois[0], data[1] // planes, *params["pooled_size"]), rois, data


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
    "_contrib_ROIAlign": _align_record(
        _align, lambda data, rois, params: (data, rois), domain=_UNIT,
        refuses=[*_WRONG, Refusal("expected a multiple of 6", params={**_TWO, "position_sensitive": True})],
    ),
    "_roi_align_grad": _align_record(_align_grad, _with_head, domain=((-2, 2), (0, 1), (-2, 2))),
}  # fmt: skip
