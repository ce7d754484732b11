"""Records of deformable convolution (``mxop/ops/deformable.py``): the references move windows pixel by pixel."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal, record_of
from .regions import BACK, UNREAD, away, regions
from .sampling import weights


def _pixels(data, offset, mask, kernel, stride, dilate, pad, groups, clamp):
    """Return the pixels of windows, ``(batch, channels, elements, down, across)``."""
    batch, channels, height, width = data.shape
    elements, (down, across) = kernel[0] * kernel[1], offset.shape[2:]
    offset = offset.reshape(batch, groups, elements, 2, down, across)
    of_each = []
    for group in range(groups):
        part = data.reshape(batch, groups, -1, height, width)[:, group]
        for k, (i, j) in enumerate(np.ndindex(*kernel)):
            y = offset[:, group, k, 0] + (np.arange(down) * stride[0] - pad[0] + i * dilate[0])[:, None]
            x = offset[:, group, k, 1] + np.arange(across) * stride[1] - pad[1] + j * dilate[1]
            found = np.einsum(
                "nijy,nijx,ncyx->ncij", weights(y, height, False, False, clamp), weights(x, width, False, False, clamp), part
            )
            of_each.append(found if mask is None else found * mask[:, group * elements + k][:, None])
    found = np.reshape(of_each, (groups, elements, batch, channels // groups, down, across))
    return found.transpose(2, 0, 3, 1, 4, 5).reshape(batch, channels, elements, down, across)


def _convolution(data, offset, *rest, kernel, num_filter, stride=(1, 1), dilate=(1, 1), pad=(0, 0), num_group=1,
                 num_deformable_group=1, no_bias=False, mask=None):  # fmt: skip
    weight, bias = rest[0], 0 if no_bias else rest[1][:, None, None]
    pixels = _pixels(data, offset, mask, kernel, stride, dilate, pad, num_deformable_group, mask is None)
    parts = np.split(pixels, num_group, axis=1)
    filters = np.split(weight.reshape(*weight.shape[:2], -1), num_group)
    found = [np.einsum("fck,nckij->nfij", f, p) for f, p in zip(filters, parts, strict=True)]
    return np.concatenate(found, axis=1) + bias


def _modulated(data, offset, mask, *rest, **params):
    return _convolution(data, offset, *rest, mask=mask, **params)


_PLAIN = {"kernel": (2, 2), "num_filter": 2, "no_bias": True}
_CASES = (
    (_PLAIN, [(1, 2, 4, 3), (1, 8, 3, 2), (2, 2, 2, 2)]),
    ({"kernel": (1, 2), "num_filter": 2, "stride": (2, 1), "dilate": (1, 2), "pad": (1, 1), "num_group": 2,
      "num_deformable_group": 2}, [(2, 2, 3, 4), (2, 8, 3, 4), (2, 1, 1, 2), (2,)]),
)  # fmt: skip


def _with_mask(shapes):
    data, (batch, twice, *size), *rest = shapes
    return [data, (batch, twice, *size), (batch, twice // 2, *size), *rest]


def _between(data, offset, *rest):
    """Return offsets that end between pixels: from -2.8 to 2.8, but for what is near whole numbers."""
    return (data, np.floor(offset) + 0.2 + 0.6 * (offset - np.floor(offset)), *rest)


def _refusals(masked):
    def shapes(*given):
        return tuple(_with_mask(given) if masked else given)

    return [
        Refusal("expected two sizes", params={**_PLAIN, "kernel": (2,)}),
        Refusal("expected two sizes", params={**_PLAIN, "layout": "NCW"}),
        Refusal("num_deformable_group=2 does not divide", params={**_PLAIN, "num_deformable_group": 2},
                shapes=shapes((1, 3, 4, 3), (1, 16, 3, 2), (2, 3, 2, 2))),
        Refusal("num_group=2 does not divide", params={**_PLAIN, "num_filter": 3, "num_group": 2}),
        Refusal("offset has shape", shapes=shapes((1, 2, 4, 3), (1, 8, 3, 3), (2, 2, 2, 2))),
        Refusal("floating-point", dtypes=("int32",) * (3 + masked)),
    ]  # fmt: skip


_INFINITE = {"special": "0 times an infinite pixel is NaN in the reference"}
_SMALL = dict.fromkeys(("small shapes", "small gradients"), "one of mask and offset would stay as it is")


def _record(reference, masked):
    return record_of(
        reference, *((p, _with_mask(s) if masked else s) for p, s in _CASES), prepare=_between, dtypes="f",
        unchecked=_INFINITE | (_SMALL if masked else {}), refuses=_refusals(masked),
        domain=((-1, 1), (-3, 2.9), *((-1, 1),) * (2 + masked)),
    )  # fmt: skip


# ---- regions ---------------------------------------------------------------------------------------------------------------
def _line(first, last, move, at, bins, limit, scale, samples, std, slope):
    """Return the weights of the pixels of one bin along one axis, in the mean of its samples or the derivative of that."""
    first, last = away(first) * scale - 0.5, (away(last) + 1) * scale - 0.5
    size = max(last - first, 0.1)
    places = first + at * size / bins + move * std * size + np.arange(samples) * size / bins / samples
    places, pixels = places[(places >= -0.5) & (places <= limit - 0.5)], np.arange(limit)
    near = pixels - np.clip(places, 0, limit - 1)[:, None]
    found = np.where((near > -1) & (near < 1), np.sign(near), 0) * std * size if slope else np.maximum(1 - abs(near), 0)
    return found.sum(0) / max(len(places), 1)


def _moved_bins(rois, moves, sizes, spatial_scale, group_size, sample_per_part, trans_std, down=False, across=False):
    """Yield which bin of a region and class, its image, the plane that it reads, and the weights of rows and columns."""
    bins, how = moves.shape[-1], (spatial_scale, sample_per_part, trans_std)
    for k, group, i, j in np.ndindex(*moves.shape[:2], bins, bins):
        (image, left, top, right, bottom), (x, y) = rois[k], moves[k, group, :, i, j]
        rows = _line(top, bottom, y, i, bins, sizes[0], *how, down)
        columns = _line(left, right, x, j, bins, sizes[1], *how, across)
        if image >= 0:
            plane = i * group_size // bins * group_size + j * group_size // bins
            yield (k, group, i, j), int(image), plane, np.outer(rows, columns)


def _moved(data, rois, moves, group_size, **params):
    channels, classes = data.shape[1] // group_size**2, moves.shape[1]
    found = np.zeros((len(rois), classes, channels // classes, *moves.shape[-2:]))
    images = data.reshape(len(data), classes, channels // classes, group_size**2, *data.shape[2:])
    for (k, group, i, j), image, plane, shares in _moved_bins(rois, moves, data.shape[2:], group_size=group_size, **params):
        found[k, group, :, i, j] = (images[image, group, :, plane] * shares).sum((1, 2))
    return found.reshape(len(rois), channels, *moves.shape[-2:])


def _moved_grad(head, rois, moves, like, group_size, **params):
    channels, classes = like.shape[1] // group_size**2, moves.shape[1]
    total = np.zeros((len(like), classes, channels // classes, group_size**2, *like.shape[2:]))
    heads = head.reshape(len(rois), classes, channels // classes, *moves.shape[-2:])
    for (k, group, i, j), image, plane, shares in _moved_bins(rois, moves, like.shape[2:], group_size=group_size, **params):
        total[image, group, :, plane] += heads[k, group, :, i, j, None, None] * shares
    return total.reshape(like.shape)


def _deformable_psroi(data, rois, trans=None, *, output_dim, pooled_size, part_size=0, no_trans=False, trans_std=0.0,
                      sample_per_part=1, **params):  # fmt: skip
    moves = np.zeros((len(rois), 1, 2, pooled_size, pooled_size))
    if not no_trans:
        at = np.arange(pooled_size) * (part_size or pooled_size) // pooled_size
        moves = trans.reshape(len(rois), -1, 2, *trans.shape[2:])[..., at, :][..., at]
    return _moved(data, rois, moves, trans_std=trans_std, sample_per_part=sample_per_part, **params)


def _smooth(first, rois, *rest):
    """Return regions of four pixels, whose samples lie halfway between pixels, in the image or far outside of it."""
    images = rest[1] if len(rest) > 1 else first
    found = regions(rois, len(images), 1)
    if rois.ndim == 2 and rois.shape[-1] == 5:
        found[:, 1:3] = np.where(rois[:, 1:3] > 0.9, 20, 1 + np.floor(rois[:, 1:3] * 2))
        found[:, 3:] = found[:, 1:3] + 3
    return first, found, *rest


_REGIONS = {"spatial_scale": 1.0, "group_size": 2, "sample_per_part": 2, "trans_std": 0.25}
_BINS = {"output_dim": 2, "pooled_size": 2, **_REGIONS}
_MAPS, _ROIS, _MOVES = (2, 8, 6, 6), (3, 5), (3, 1, 2, 2, 2)
_WAYS = [_REGIONS, {**_REGIONS, "down": True}, {**_REGIONS, "down": True, "across": True}]
_FEW = {**UNREAD, **BACK}


RECORDS: dict[str, Record] = {
    "_contrib_DeformableConvolution": _record(_convolution, False),
    "_contrib_ModulatedDeformableConvolution": _record(_modulated, True),
    "_moved_regions": Record(
        _moved, shapes=[(_MAPS, _ROIS, _MOVES), (_MAPS, _ROIS, (3, 2, 2, 2, 2)), (_MAPS, _ROIS, _MOVES)], params=_WAYS,
        domain=((-2, 2), (0, 1), (-0.3, 0.3)), prepare=_smooth, grad_inputs=(0, 2), dtypes="f", unchecked=_FEW,
    ),
    "_moved_regions_grad": Record(
        _moved_grad, shapes=[((3, 2, 2, 2), _ROIS, _MOVES, _MAPS)] * 3, params=_WAYS, prepare=_smooth, grad_inputs=(0, 2),
        domain=((-2, 2), (0, 1), (-0.3, 0.3), (-2, 2)), dtypes="f", unchecked=_FEW,
    ),
    "_contrib_DeformablePSROIPooling": record_of(
        _deformable_psroi, (_BINS, [_MAPS, _ROIS, (3, 4, 2, 2)]),
        ({**_BINS, "output_dim": 8, "pooled_size": 4, "group_size": 1, "part_size": 2, "sample_per_part": 1},
         [_MAPS, _ROIS, (3, 4, 2, 2)]),
        ({**_BINS, "no_trans": True}, [_MAPS, _ROIS]), domain=((-2, 2), (0, 1), (-0.3, 0.3)), prepare=_smooth,
        grad_inputs=(0, 2), dtypes="f", unchecked=_FEW,
        refuses=[
            Refusal("data has shape", shapes=((2, 7, 6, 6), _ROIS, (3, 4, 2, 2))),
            Refusal("trans has shape", shapes=(_MAPS, _ROIS, (3, 4, 3, 3))),
            Refusal("trans has 6 channels", shapes=(_MAPS, _ROIS, (3, 6, 2, 2))),
            Refusal("trans_std", params={**_BINS, "trans_std": 2.0}),
        ],
    ),
}  # fmt: skip
