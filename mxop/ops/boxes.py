"""Boxes: overlaps, suppression of the weaker ones, matching, and offsets between boxes.

A box is four numbers: ``corner`` (left, top, right, bottom), or ``center`` (x, y, width, height).  What takes one decision
after the other is a compiled loop on the CPU; for arrays on a GPU, the data are copied there and the results back.
"""

import math
from typing import Literal

from ..opdef import F, composite, elementwise, infer, kernel
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import compiled, float_types, on_host, zero_gradient

Format = Literal["center", "corner"]


# ---- for this file and for anchors.py --------------------------------------------------------------------------------------
def survivors(np, sides, area, kinds, counts, threshold, extra=0, most=-1):
    """Return which boxes are kept: no stronger one of their kind that is kept overlaps them by more than a threshold.

    `sides` are four arrays ``(batch, n)``, from the strongest box to the weakest; see ``mxop/_kernels/boxes.pyx``.
    """
    packed = np.stack([*sides, area, kinds], axis=1)
    kept = np.zeros(area.shape, packed.dtype)
    compiled("boxes").suppress(packed, np.ascontiguousarray(counts, np.int64), threshold, extra, most, kept)
    return kept > 0


def check_width(op, name, shape):
    """Raise unless the last of some axes is that of the four numbers of boxes."""
    if shape is not None and (len(shape) < 2 or shape[-1] not in (4, None)):
        raise OpValueError(f"operator {op}: {name} has shape {infer.show(shape)}; expected boxes, of shape (..., 4)")


# ---- overlaps --------------------------------------------------------------------------------------------------------------
def _edges(a, b, c, d, center):
    """Return left, top, right and bottom of a box, and its area, 0 where a size is negative."""
    width, height = (c, d) if center else (c - a, d - b)
    left, top, right, bottom = (a - c / 2, b - d / 2, a + c / 2, b + d / 2) if center else (a, b, c, d)
    return left, top, right, bottom, F.where(width < 0, 0, F.where(height < 0, 0, width * height))


def _common(low, high, low2, high2):
    """Return the length of the intersection of two intervals."""
    length = F.where(high < high2, high, high2) - F.where(low > low2, low, low2)
    return F.where(length > 0, length, 0)


@elementwise(name="_box_overlap", broadcast=True, rule=lambda *args, **params: (None,) * 8)
def box_overlap(a, b, c, d, a2, b2, c2, d2, *, center: bool):
    """Intersection over union of two boxes of four numbers each; 0 where they do not intersect."""
    left, top, right, bottom, area = _edges(a, b, c, d, center)
    left2, top2, right2, bottom2, area2 = _edges(a2, b2, c2, d2, center)
    shared = _common(left, right, left2, right2) * _common(top, bottom, top2, bottom2)
    return F.where(shared <= 0, 0, shared / (area + area2 - shared))


def _numbers(F, boxes):
    """Return the four numbers of boxes ``(..., 4)``, as arrays ``(..., 1)``."""
    return [F.slice_axis(boxes, axis=-1, begin=k, end=k + 1) for k in range(4)]


@zero_gradient
@float_types
@composite(name="_contrib_box_iou")
def box_iou(F, lhs, rhs, *, format: Format = "corner"):
    """Intersection over union of each box in `lhs` with each in `rhs`; 0 where they do not intersect.

    The gradient is zero.  Where a size is negative, the area counts as 0.

    Parameters
    ----------
    lhs, rhs : NDArray or Symbol
        Boxes, ``(..., 4)``, of a floating-point type.
    format : {'corner', 'center'}
        Whether the numbers are left, top, right, bottom or x, y, width, height.

    Returns
    -------
    NDArray or Symbol
        Of shape ``lhs.shape[:-1] + rhs.shape[:-1]``.

    >>> x = mx.nd.array([[0.5, 0.5, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5]])
    >>> mx.nd.contrib.box_iou(x, mx.nd.array([[0.25, 0.25, 0.75, 0.75]])).asnumpy().round(4).tolist()
    [[0.1429000049829483], [0.1429000049829483]]
    """
    for name, boxes in (("lhs", lhs), ("rhs", rhs)):
        check_width("_contrib_box_iou", name, boxes.shape)
    ndims = len(lhs.shape), len(rhs.shape)
    for _ in range(ndims[1] - 1):
        lhs = F.expand_dims(lhs, axis=-2)
    for _ in range(ndims[0] - 1):
        rhs = F.expand_dims(rhs, axis=0)
    one, other = (lhs, rhs) if format == "corner" else (rhs, lhs)  # the order of comparisons with NaN in MXNet
    return F.squeeze(F._box_overlap(*_numbers(F, one), *_numbers(F, other), center=format == "center"), axis=-1)


# ---- suppression -----------------------------------------------------------------------------------------------------------
@kernel(
    name="_contrib_box_nms", aliases=("_contrib_box_non_maximum_suppression",), num_outputs=2, visible_outputs=1,
    output_names=("output0", "output1"),
)  # fmt: skip
def box_nms(
    data, *, overlap_thresh: float = 0.5, valid_thresh: float = 0.0, topk: int = -1, coord_start: int = 2, score_index: int = 1,
    id_index: int = -1, background_id: int = -1, force_suppress: bool = False, in_format: Format = "corner",
    out_format: Format = "corner",
):  # fmt: skip
    """Keep the boxes of large scores, and drop what overlaps them (non-maximum suppression).

    The boxes that are kept come first, from the largest score to the smallest, equal ones in their order; all other rows are
    -1. A box is kept unless its score is at most `valid_thresh` or NaN, it is of the background, it is not among the `topk`,
    or its intersection over union with a box that is kept is larger than `overlap_thresh`.  The gradient goes to the boxes that
    are kept.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(..., n, width)``, boxes with a score and further numbers, of a floating-point type.
    overlap_thresh, valid_thresh : float
        What overlaps and scores are compared with.
    topk : int
        How many boxes of large scores take part; all below 0.  With 0 the data are returned as they are.
    coord_start : int
        Where among the numbers of a box the four of its place begin.
    score_index : int
        Where its score stands.
    id_index : int
        Where its class stands, a whole number; -1: the classes do not count.
    background_id : int
        The class of boxes to drop, with `id_index`.
    force_suppress : bool
        Whether boxes of other classes are dropped as well, with `id_index`.
    in_format, out_format : {'corner', 'center'}
        How places are written: left, top, right, bottom or x, y, width, height.

    >>> x = mx.nd.array([[0, 0.5, 1, 1, 2, 2], [1, 0.4, 1, 1, 2, 2], [0, 0.25, 1, 1, 2, 1.75], [2, 0.75, 5, 5, 7, 8]])
    >>> mx.nd.contrib.box_nms(x, id_index=0).asnumpy()[:, :2].tolist()
    [[2.0, 0.75], [0.0, 0.5], [1.0, 0.4000000059604645], [-1.0, -1.0]]
    """


@box_nms.shape
def _(data, *, coord_start, score_index, id_index, **params):
    if len(data) < 2:
        raise OpValueError(f"operator _contrib_box_nms: data has shape {infer.show(data)}; expected (..., boxes, width)")
    width = data[-1]
    if not 0 <= coord_start <= width - 4:
        raise OpValueError(f"operator _contrib_box_nms: coord_start={coord_start}; expected four coordinates among the {width} "
                           "numbers of a box")  # fmt: skip
    for name, at in [("score_index", score_index), *[("id_index", id_index)] * (id_index >= 0)]:
        if not 0 <= at < width or coord_start <= at < coord_start + 4:
            raise OpValueError(f"operator _contrib_box_nms: {name}={at}; expected one of the {width} numbers of a box, but for "
                               f"its coordinates, which begin at {coord_start}")  # fmt: skip
    if id_index == score_index:
        raise OpValueError(f"operator _contrib_box_nms: id_index={id_index} is the score_index, too")
    return [data, (*data[:-1], 1)]


@box_nms.infer
def _(ins, outs, **params):
    one = infer.same_shape("_contrib_box_nms", ["data", "output0"], [ins[0], outs[0]])[0]
    return [one], [one, outs[1]]


float_types(box_nms, output1=dtypes.INT64)


def _converted(np, boxes, out_format):
    """Return the four numbers of boxes in the other format."""
    a, b, c, d = (boxes[..., k] for k in range(4))
    if out_format == "center":
        return np.stack([(a + c) / 2, (b + d) / 2, c - a, d - b], axis=-1)
    return np.stack([a - c / 2, b - d / 2, a + c / 2, b + d / 2], axis=-1)


@on_host(box_nms)
def _(np, inputs, outputs, *, overlap_thresh, valid_thresh, topk, coord_start, score_index, id_index, background_id,
      force_suppress, in_format, out_format):  # fmt: skip
    found, places = outputs
    n, width = found.shape[-2:]
    if topk == 0 or found.size == 0:
        found[...], places[...] = inputs[0], np.arange(n)[:, None]
        return
    data = inputs[0].reshape(-1, n, width)
    scores, at = data[..., score_index], slice(coord_start, coord_start + 4)
    valid = scores > valid_thresh
    if id_index >= 0:
        valid &= data[..., id_index] != background_id
    order = np.argsort(np.where(valid, -scores, math.inf), axis=1, kind="stable")
    counts = valid.sum(axis=1)
    counts = np.minimum(counts, topk) if topk > 0 else counts
    ranked = np.take_along_axis(data, order[..., None], axis=1)
    a, b, c, d = (ranked[..., coord_start + k] for k in range(4))
    sizes = (c, d) if in_format == "center" else (c - a, d - b)
    area = np.where((sizes[0] < 0) | (sizes[1] < 0), 0, sizes[0] * sizes[1])
    sides = (a - c / 2, b - d / 2, a + c / 2, b + d / 2) if in_format == "center" else (a, b, c, d)
    kinds = np.zeros_like(area)
    if id_index >= 0 and not force_suppress:
        kinds = np.nan_to_num(np.trunc(ranked[..., id_index]), nan=-math.inf)  # MXNet compares whole numbers
    kept = survivors(np, sides, area, kinds, counts, overlap_thresh)
    row, column = np.nonzero(kept)
    new = (np.cumsum(kept, axis=1) - 1)[row, column]
    chosen = ranked[row, column]
    if in_format != out_format:
        chosen[:, at] = _converted(np, chosen[:, at], out_format)
    result, back = np.full(data.shape, -1, data.dtype), np.full(order.shape, -1)
    result[row, new], back[row, order[row, column]] = chosen, new
    found[...], places[...] = result.reshape(found.shape), back.reshape(places.shape)


@box_nms.gradient
def _(F, heads, inputs, outputs, *, topk, coord_start, in_format, out_format, **params):
    head, places = heads[0], F.broadcast_like(outputs[1], inputs[0])
    if in_format != out_format and topk != 0:
        width, ends = head.shape[-1], (0, coord_start, coord_start + 2, coord_start + 4)
        parts = [F.slice_axis(head, axis=-1, begin=i, end=j) for i, j in zip(ends, (*ends[1:], width), strict=True) if i < j]
        at = int(coord_start > 0)
        low, high = parts[at : at + 2]
        parts[at : at + 2] = [low / 2 - high, low / 2 + high] if out_format == "center" else [low + high, (high - low) / 2]
        head = F.concat(*parts, dim=-1)
    inside = F.cast(places >= 0, dtype=head.dtype)
    return [F._where_inside(inside, F._take_lanes(head, places, axis=-2), F.zeros_like(inputs[0]))]


# ---- matching --------------------------------------------------------------------------------------------------------------
@zero_gradient
@float_types
@kernel(name="_contrib_bipartite_matching", num_outputs=2)
def bipartite_matching(data, *, is_ascend: bool = False, threshold: float, topk: int = -1):
    """Match each row with at most one column, the pairs of the best scores first.

    Equal scores are taken in their order, and NaN never.  The gradient is zero.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(..., rows, columns)``, the scores, of a floating-point type.
    is_ascend : bool
        Whether the smallest scores are the best.
    threshold : float
        Only scores above it match; with `is_ascend` those below it.
    topk : int
        If positive, ``topk + 1`` pairs are matched at most, as in MXNet.

    Returns
    -------
    tuple of NDArray or Symbol
        The column of each row, ``(..., rows)``, and the row of each column, ``(..., columns)``; -1 where there is none.

    >>> columns, rows = mx.nd.contrib.bipartite_matching(mx.nd.array([[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]]), threshold=1e-12)
    >>> columns.asnumpy().tolist(), rows.asnumpy().tolist()
    ([1.0, -1.0, 0.0], [2.0, 0.0])
    """


@bipartite_matching.shape
def _(data, **params):
    if len(data) < 2:
        raise OpValueError(f"operator _contrib_bipartite_matching: data has shape {infer.show(data)}; expected (..., rows, "
                           "columns)")  # fmt: skip
    return [data[:-1], (*data[:-2], data[-1])]


@on_host(bipartite_matching)
def _(np, inputs, outputs, *, is_ascend, threshold, topk):
    if inputs[0].size == 0:
        outputs[0][...], outputs[1][...] = -1, -1
        return
    scores = inputs[0].reshape(-1, *inputs[0].shape[-2:])
    flat = scores.reshape(len(scores), -1)
    order = np.argsort(flat if is_ascend else -flat, axis=1, kind="stable")
    found = [np.empty((len(scores), n), np.int64) for n in scores.shape[1:]]
    compiled("boxes").pair(scores, order, threshold, is_ascend, topk + 1 if topk > 0 else -1, *found)
    for place, result in zip(outputs, found, strict=True):
        place[...] = result.reshape(place.shape)


# ---- offsets ---------------------------------------------------------------------------------------------------------------
@elementwise(name="_box_offset", broadcast=True, rule=lambda *args: (None,) * 9)
def box_offset(sample, low, high, wanted_low, wanted_high, mean, std, mean2, std2):
    """Offset of the middle of an interval from that of an anchor, in its lengths, and the logarithm of the ratio of lengths.

    Both are normalized; they are 0 where the sample is at most 1 / 2.
    """
    length, wanted = high - low, wanted_high - wanted_low
    offset = (wanted_low + wanted / 2 - (low + length / 2)) / length
    return (F.where(sample > 0.5, (offset - mean) / std, 0),
            F.where(sample > 0.5, (F.log(wanted / length) - mean2) / std2, 0))  # fmt: skip


@zero_gradient
@float_types
@composite(name="_contrib_box_encode", num_outputs=2)
def box_encode(F, samples, matches, anchors, refs, means, stds):
    """Offsets of the boxes that anchors match: of the middles in sizes of the anchors, and logarithms of the ratios of sizes.

    All boxes are left, top, right, bottom, and all arrays of one floating-point type.  The gradient is zero.

    Parameters
    ----------
    samples : NDArray or Symbol
        ``(batch, n)``: 1 for anchors that match a box, 0 or -1 for others, which get zeros.
    matches : NDArray or Symbol
        ``(batch, n)``: which box each anchor matches; what is out of range counts as the nearest.
    anchors : NDArray or Symbol
        ``(batch, n, 4)``.
    refs : NDArray or Symbol
        ``(batch, m, 4)``, the boxes, at least one.
    means, stds : NDArray or Symbol
        ``(4,)``: what is subtracted from offsets, and what they are then divided by.

    Returns
    -------
    tuple of NDArray or Symbol
        The offsets, ``(batch, n, 4)``, and a mask of their shape, 1 where an anchor matches a box.

    >>> one = mx.nd.ones((1, 1))
    >>> anchors, refs = mx.nd.array([[[0, 0, 2, 2]]]), mx.nd.array([[[0, 0, 2, 2], [1, 1, 3, 3]]])
    >>> offsets, mask = mx.nd.contrib.box_encode(one, one, anchors, refs, mx.nd.zeros((4,)), mx.nd.ones((4,)))
    >>> offsets.asnumpy().tolist(), mask.asnumpy().tolist()
    ([[[0.5, 0.5, 0.0, 0.0]]], [[[1.0, 1.0, 1.0, 1.0]]])
    """
    at = F.broadcast_axis(F.expand_dims(F.cast(matches, dtype="int32"), axis=2), axis=2, size=4)
    inside = F.expand_dims(samples, axis=2)
    anchor, ref = _numbers(F, anchors), _numbers(F, F._take_lanes(refs, at, axis=1))
    mean, std = ([F.slice_axis(v, axis=0, begin=k, end=k + 1) for k in range(4)] for v in (means, stds))
    found = [F._box_offset(inside, anchor[k], anchor[k + 2], ref[k], ref[k + 2], mean[k], std[k], mean[k + 2], std[k + 2])
             for k in range(2)]  # fmt: skip
    offsets = F.concat(*(found[k][which] for which in range(2) for k in range(2)), dim=2)
    return [offsets, F.broadcast_axis(inside > 0.5, axis=2, size=4)]


@box_encode.dims
def _(**params):
    of = {"samples": ("batch", "n"), "matches": ("batch", "n"), "anchors": ("batch", "n", 4), "refs": ("batch", "m", 4),
          "means": (4,), "stds": (4,)}  # fmt: skip
    return {**of, **dict.fromkeys(box_encode.output_names(None), ("batch", "n", 4))}


@elementwise(name="_box_placed", broadcast=True, rule=lambda *args, **params: (None,) * 4)
def box_placed(offset, ratio, a, c, *, std: float, std2: float, clip: float, center: bool):
    """Ends of an interval that lies at an offset from an anchor; the inverse of ``_box_offset``."""
    length, middle = (c, a) if center else (c - a, a + (c - a) / 2)
    ratio = ratio * std2
    ratio = F.where(ratio > clip, clip, ratio) if clip > 0 else ratio
    middle, half = offset * std * length + middle, F.exp(ratio) * length / 2
    return middle - half, middle + half


@zero_gradient
@float_types
@composite(name="_contrib_box_decode")
def box_decode(F, data, anchors, *, std0: float = 1.0, std1: float = 1.0, std2: float = 1.0, std3: float = 1.0,
               clip: float = -1.0, format: Format = "center"):  # fmt: skip
    """Boxes (left, top, right, bottom) that lie at some offsets from anchors: the inverse of ``box_encode``.

    The gradient is zero.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, n, 4)``, the offsets, of a floating-point type.
    anchors : NDArray or Symbol
        ``(1, n, 4)``.
    std0, std1, std2, std3 : float
        What the offsets are multiplied by.
    clip : float
        If positive, the most that logarithms of ratios of sizes may be.
    format : {'center', 'corner'}
        Whether an anchor is x, y, width, height or left, top, right, bottom.

    >>> mx.nd.contrib.box_decode(mx.nd.array([[[0.5, 0.5, 0, 0]]]), mx.nd.array([[[1, 1, 2, 2]]])).asnumpy().tolist()
    [[[1.0, 1.0, 3.0, 3.0]]]
    """
    offset, anchor, stds = _numbers(F, data), _numbers(F, anchors), (std0, std1, std2, std3)
    found = [F._box_placed(offset[k], offset[k + 2], anchor[k], anchor[k + 2], std=stds[k], std2=stds[k + 2], clip=clip,
                           center=format == "center") for k in range(2)]  # fmt: skip
    return F.concat(*(found[k][which] for which in range(2) for k in range(2)), dim=2)


@box_decode.dims
def _(**params):
    return {"data": ("batch", "n", 4), "anchors": (1, "n", 4), "output": ("batch", "n", 4)}
