"""Anchors, and what detectors make of them: targets to learn, detections, and regions that may hold objects.

``boxes.py`` has what these share, and says where they run.  Equal scores keep their order.
"""

import math
from typing import Annotated

from ..opdef import Floats, Of, Range, kernel
from ..opdef.dims import rule_of
from ..support.errors import OpValueError
from ._shared import Count, compiled, divided, float_types, on_host, zero_gradient
from .boxes import survivors

_Size = Annotated[int, Range(0)]
_FOUR = Of("n", lambda n: 4 * n, lambda n: divided(n, 4))
_VARIANCES = (0.1, 0.1, 0.2, 0.2)


def _check_count(op, name, numbers, count, least=False):
    """Raise unless a parameter has so many numbers, or at `least` so many."""
    if len(numbers) < count or (len(numbers) > count and not least):
        raise OpValueError(f"operator {op}: {name} has {len(numbers)} numbers; expected {count}{' or more' if least else ''}")


def _by_table(op, table):
    """Let the shapes of a kernel follow from a table, in both directions."""
    op.infer(rule_of(op, table))


# ---- anchors ---------------------------------------------------------------------------------------------------------------
@zero_gradient
@float_types
@kernel(name="_contrib_MultiBoxPrior", aliases=("_npx_multibox_prior",), shape_only=(0,))
def MultiBoxPrior(data, *, sizes: Floats = (1.0,), ratios: Floats = (1.0,), clip: bool = False,
                  steps: Floats = (-1.0, -1.0), offsets: Floats = (0.5, 0.5)):  # fmt: skip
    """Anchors around the middle of each cell of a feature map, in units of the image (SSD: Liu et al., 2016).

    First there is one of each size, with the first ratio, then one of each other ratio, with the first size.  A width is
    ``size * height / width * sqrt(ratio)`` of the map, a height ``size / sqrt(ratio)``.  Of a ratio of 0 or below they are
    infinite or NaN.

    Parameters
    ----------
    data : NDArray or Symbol
        The feature map, ``(batch, channels, height, width)``, of a floating-point type; only its shape is read.
    sizes, ratios : tuple of float
        At least one of each; ratios are widths by heights.
    clip : bool
        Whether to limit the anchors to the image, 0 to 1.
    steps : tuple of float
        Distances of the cells, down and to the right; not positive: one over the height and one over the width.
    offsets : tuple of float
        Where in its cell an anchor's middle lies, from the top and from the left, in steps.

    Returns
    -------
    NDArray or Symbol
        ``(1, height * width * (len(sizes) + len(ratios) - 1), 4)``: left, top, right, bottom.

    >>> mx.nd.contrib.MultiBoxPrior(mx.nd.zeros((1, 1, 2, 1)), sizes=(0.5,)).asnumpy().tolist()
    [[[0.0, 0.0, 1.0, 0.5], [0.0, 0.5, 1.0, 1.0]]]
    """


@MultiBoxPrior.shape
def _(data, *, sizes, ratios, steps, offsets, **params):
    for name, numbers in (("sizes", sizes), ("ratios", ratios)):
        _check_count("_contrib_MultiBoxPrior", name, numbers, 1, least=True)
    for name, numbers in (("steps", steps), ("offsets", offsets)):
        _check_count("_contrib_MultiBoxPrior", name, numbers, 2)
    if (steps[0] > 0) != (steps[1] > 0):
        raise OpValueError(f"operator _contrib_MultiBoxPrior: steps={steps}; expected two positive numbers, or none")
    if len(data) != 4:
        raise OpValueError(f"operator _contrib_MultiBoxPrior: data has shape {data}; expected (batch, channels, height, width)")
    return (1, data[2] * data[3] * (len(sizes) + len(ratios) - 1), 4)


@MultiBoxPrior.both
def _(xp, inputs, outputs, *, sizes, ratios, clip, steps, offsets):
    height, width = inputs[0].shape[2:]
    if outputs[0].size == 0:
        return
    real = xp.float64 if outputs[0].dtype == xp.float64 else xp.float32
    step = [real(s) if s > 0 else real(1) / real(n) for s, n in zip(steps, (height, width), strict=True)]
    middle = [(xp.arange(n, dtype=real) + real(o)) * s for n, o, s in zip((height, width), offsets, step, strict=True)]
    size = xp.asarray([*sizes, *[sizes[0]] * (len(ratios) - 1)], real)
    root = xp.sqrt(xp.asarray([*[ratios[0]] * len(sizes), *ratios[1:]], real))
    half = [size / root / 2, size * real(height) / real(width) * root / 2]
    found = xp.empty((height, width, len(size), 4), real)
    for k, at in ((0, middle[1][None, :, None]), (1, middle[0][:, None, None])):
        found[..., k], found[..., k + 2] = at - half[1 - k], at + half[1 - k]
    outputs[0][...] = (xp.clip(found, 0, 1) if clip else found).reshape(outputs[0].shape)


# ---- targets ---------------------------------------------------------------------------------------------------------------
@kernel(
    name="_contrib_MultiBoxTarget", aliases=("_npx_multibox_target",), num_outputs=3,
    output_names=("loc_target", "loc_mask", "cls_target"),
)  # fmt: skip
def MultiBoxTarget(
    anchor, label, cls_pred, *, overlap_threshold: float = 0.5, ignore_label: float = -1.0, negative_mining_ratio: float = -1.0,
    negative_mining_thresh: float = 0.5, minimum_negative_samples: int = 0, variances: Floats = _VARIANCES,
):  # fmt: skip
    """What a detector is to learn for each anchor: the object that it matches, and the offset of that (SSD: Liu et al., 2016).

    Each object is matched with an anchor of its own, pairs of large overlaps first; then further anchors with the object that
    they overlap most.  Overlaps are intersections over unions; one of 1e-6 or less, or NaN, matches nothing.  The gradient is
    zero.

    Parameters
    ----------
    anchor : NDArray or Symbol
        ``(1, n, 4)``: left, top, right, bottom, of a floating-point type.
    label : NDArray or Symbol
        ``(batch, labels, width)``, of width 5 at least: class, left, top, right, bottom of each object; class -1 ends the
        objects.
    cls_pred : NDArray or Symbol
        ``(batch, classes, n)``: scores before softmax, of the background first; read for mining.
    overlap_threshold : float
        What further anchors overlap an object by more than; if not positive, there are none.
    ignore_label : float
        The class of anchors that count neither as an object nor as background.
    negative_mining_ratio : float
        If positive, so many anchors for each that matches are background, those least probable to be it; the others are
        ignored.
    negative_mining_thresh : float
        Only anchors that overlap all objects by less can be mined.
    minimum_negative_samples : int
        Not used, as in MXNet.
    variances : tuple of float
        What the four offsets are divided by.

    Returns
    -------
    tuple of NDArray or Symbol
        Offsets of middles and logarithms of ratios of sizes, ``(batch, 4 * n)``; a mask of the same shape, 1 for anchors that
        match; and classes, ``(batch, n)``: 0 for background, 1 more than the label's for objects.  Without objects, all are
        ignored.

    >>> anchor, label = mx.nd.array([[[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]]), mx.nd.array([[[3, 0.5, 0.5, 1, 1]]])
    >>> offsets, mask, classes = mx.nd.contrib.MultiBoxTarget(anchor, label, mx.nd.zeros((1, 5, 2)))
    >>> offsets.asnumpy().tolist(), classes.asnumpy().tolist()
    ([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], [[0.0, 4.0]])
    """


def _label_width(width):
    if width < 5:
        raise OpValueError(f"operator _contrib_MultiBoxTarget: label has {width} numbers for each object; expected 5 at least: "
                           "class, left, top, right, bottom")  # fmt: skip
    return width


def _target_dims(*, variances, negative_mining_ratio, negative_mining_thresh, **params):
    _check_count("_contrib_MultiBoxTarget", "variances", variances, 4)
    if negative_mining_ratio > 0 and negative_mining_thresh <= 0:
        raise OpValueError(
            f"operator _contrib_MultiBoxTarget: negative_mining_thresh={negative_mining_thresh}; expected a positive number"
        )
    return {"anchor": (1, "n", 4), "label": ("batch", "labels", Of("width", _label_width, _label_width)),
            "cls_pred": ("batch", "classes", "n"), "loc_target": ("batch", _FOUR), "loc_mask": ("batch", _FOUR),
            "cls_target": ("batch", "n")}  # fmt: skip


_by_table(MultiBoxTarget, _target_dims)
float_types(MultiBoxTarget)
zero_gradient(MultiBoxTarget)


def _mined(np, matched, overlaps, scores, ratio, limit):
    """Return which anchors are background: of those that match and overlap no object, the ones least probable to be it."""
    chosen = np.zeros(matched.shape, bool)
    if scores.size == 0:
        return chosen
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    background = odds[:, 0] / odds.sum(axis=1)
    for k, free in enumerate(~matched & (overlaps < limit)):
        places = np.flatnonzero(free)
        wanted = int(np.float32(ratio) * matched[k].sum())
        chosen[k, places[np.argsort(background[k, places], kind="stable")[:wanted]]] = True
    return chosen


@on_host(MultiBoxTarget)
def _(np, inputs, outputs, *, overlap_threshold, ignore_label, negative_mining_ratio, negative_mining_thresh,
      minimum_negative_samples, variances):  # fmt: skip
    anchors, labels, scores = inputs
    sides, batch, n = anchors[0].T, len(labels), anchors.shape[1]
    counts = np.cumprod(labels[:, :, 0] != -1, axis=1).sum(axis=1)
    matches, nearest = np.zeros((2, batch, n), np.int64)
    overlaps, best = (np.zeros((batch, m), labels.dtype) for m in (n, labels.shape[1]))
    packed = np.stack([*sides, (sides[2] - sides[0]) * (sides[3] - sides[1])])
    compiled("boxes").match(packed, labels, counts, overlap_threshold, matches, overlaps, nearest, best, best.astype(np.int64))
    matched = matches >= 0
    if negative_mining_ratio > 0:
        negative = _mined(np, matched, overlaps, scores, negative_mining_ratio, negative_mining_thresh)
    else:
        negative = counts[:, None] > 0
    row, at = np.nonzero(matched)
    found, anchor = labels[row, matches[row, at]], anchors[0, at]
    size, wanted = anchor[:, 2:] - anchor[:, :2], found[:, 3:5] - found[:, 1:3]
    offset = ((found[:, 1:3] + found[:, 3:5]) / 2 - (anchor[:, :2] + anchor[:, 2:]) / 2) / size
    classes = np.where(negative, 0, ignore_label).astype(labels.dtype) * np.ones_like(overlaps)
    classes[row, at] = found[:, 0] + 1
    targets, mask = np.zeros((2, batch, n, 4), labels.dtype)
    targets[row, at] = np.concatenate([offset, np.log(wanted / size)], axis=1) / np.asarray(variances, labels.dtype)
    mask[row, at] = 1
    outputs[0][...], outputs[1][...], outputs[2][...] = targets.reshape(batch, -1), mask.reshape(batch, -1), classes


# ---- detections ------------------------------------------------------------------------------------------------------------
@kernel(name="_contrib_MultiBoxDetection", aliases=("_npx_multibox_detection",))
def MultiBoxDetection(
    cls_prob, loc_pred, anchor, *, clip: bool = True, threshold: float = 0.01, background_id: int = 0,
    nms_threshold: float = 0.5, force_suppress: bool = False, variances: Floats = _VARIANCES, nms_topk: int = -1,
):  # fmt: skip
    """Objects that a detector found, from the largest score to the smallest, without what overlaps them.

    This is the output of SSD (Liu et al., 2016).  Each anchor is of the class with the largest score, the background aside.
    The gradient is zero.

    Parameters
    ----------
    cls_prob : NDArray or Symbol
        ``(batch, classes, n)``: scores, of the background first, of a floating-point type.
    loc_pred : NDArray or Symbol
        ``(batch, 4 * n)``: offsets, as ``MultiBoxTarget`` has them.
    anchor : NDArray or Symbol
        ``(1, n, 4)``: left, top, right, bottom.
    clip : bool
        Whether to limit the boxes to the image, 0 to 1.
    threshold : float
        Anchors of smaller scores hold no object; nor do those of scores of -1 or less, or NaN.
    background_id : int
        Not used, as in MXNet: the background is class 0.
    nms_threshold : float
        What overlaps a box of a larger score, of the same class, by that intersection over union or more, is dropped.  If it is
        not above 0 and at most 1, nothing is dropped, and objects keep the order of the anchors.
    force_suppress : bool
        Whether boxes of other classes are dropped as well.
    variances : tuple of float
        What the four offsets are multiplied by.
    nms_topk : int
        If positive, how many boxes of large scores are kept at most.

    Returns
    -------
    NDArray or Symbol
        ``(batch, n, 6)``: class (without the background), score, left, top, right, bottom.  The class of what was dropped is
        -1; behind the objects all is -1.

    >>> anchor = mx.nd.array([[[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.75], [0.5, 0.5, 1, 1]]])
    >>> scores = mx.nd.array([[[0, 0, 1], [0.5, 0.75, 0], [0.25, 0.125, 0]]])
    >>> mx.nd.contrib.MultiBoxDetection(scores, mx.nd.zeros((1, 12)), anchor).asnumpy()[0, :, :2].tolist()
    [[0.0, 0.75], [-1.0, 0.5], [-1.0, -1.0]]
    """


def _detection_dims(*, variances, **params):
    _check_count("_contrib_MultiBoxDetection", "variances", variances, 4)
    return {
        "cls_prob": ("batch", "classes", "n"),
        "loc_pred": ("batch", _FOUR),
        "anchor": (1, "n", 4),
        "output": ("batch", "n", 6),
    }


_by_table(MultiBoxDetection, _detection_dims)
float_types(MultiBoxDetection)
zero_gradient(MultiBoxDetection)


@on_host(MultiBoxDetection)
def _(np, inputs, outputs, *, clip, threshold, background_id, nms_threshold, force_suppress, variances, nms_topk):
    scores, offsets, anchors = inputs
    batch, n = len(scores), anchors.shape[1]
    found, counts = np.zeros((batch, n, 6), scores.dtype), np.zeros(batch, np.int64)
    scratch = np.zeros((batch, n), np.int64), np.zeros((batch, n), scores.dtype)
    numbers = np.asarray(variances, scores.dtype)
    compiled("boxes").detect(scores, offsets, anchors[0], numbers, threshold, clip, found, counts, *scratch)
    if 0 < nms_threshold <= 1 and found.size:
        keys = np.where(np.arange(n) < counts[:, None], -found[..., 1], math.inf)[:, : counts.max()]
        among = counts if nms_topk <= 0 else np.minimum(counts, nms_topk)
        order = np.argsort(keys, axis=1, kind="stable")[:, : among.max()]
        taken = (np.arange(order.shape[1]) < among[:, None])[..., None]
        ranked = np.where(taken, np.take_along_axis(found, order[..., None], axis=1), found[:, : order.shape[1]])
        found[:, : counts.max(), 0], found[:, : order.shape[1]] = -1, ranked  # the others stay, in their order, as in MXNet
        sides = [ranked[..., k] for k in range(2, 6)]
        kinds = np.zeros_like(ranked[..., 0]) if force_suppress else ranked[..., 0]
        limit = np.nextafter(scores.dtype.type(nms_threshold), scores.dtype.type(-1))  # what equals the threshold is dropped
        kept = survivors(np, sides, (sides[2] - sides[0]) * (sides[3] - sides[1]), kinds, among, limit)
        found[:, : order.shape[1], 0][~kept] = -1
    outputs[0][...] = found


# ---- proposals -------------------------------------------------------------------------------------------------------------
_PROPOSALS = """Regions that may hold objects: boxes at offsets from anchors, without those that overlap better ones (Faster
R-CNN:
    Ren et al., 2015).

    Regions smaller than `rpn_min_size` times the scale of the image, and those outside of it, count after all others, with the
    score -1.  The last pixel belongs to a region: its width is ``right - left + 1``.  The gradient is zero.

    Parameters
    ----------
    cls_prob : NDArray or Symbol
        ``({batch}, 2 * anchors, height, width)``: scores, of the background first, of a floating-point type.
    bbox_pred : NDArray or Symbol
        ``({batch}, 4 * anchors, height, width)``: for each anchor offsets of the middle and logarithms of ratios of sizes.
    im_info : NDArray or Symbol
        ``({batch}, 3)``: height, width and scale of the image.
    rpn_pre_nms_top_n : int
        How many regions of large scores take part; not positive: all.
    rpn_post_nms_top_n : int
        How many are returned.  If fewer are left, these are repeated.
    threshold : float
        What overlaps a region of a larger score by more, as intersection over union, is dropped.
    rpn_min_size : int
        The smallest width and height, in pixels of the image before it was scaled.
    scales, ratios : tuple of float
        There is an anchor of each of the ratios of height to width, in each of the scales.
    feature_stride : int
        How many pixels of the image a place of the feature map stands for.
    output_score : bool
        Whether to return the scores, too, ``(regions, 1)``.
    iou_loss : bool
        Whether the offsets are those of the four sides.

    Returns
    -------
    NDArray or Symbol, or tuple of them
        ``({batch} * rpn_post_nms_top_n, 5)``: number of the image, left, top, right, bottom.

    >>> scores, offsets = mx.nd.array([[[[0.5]], [[0.5]]]]), mx.nd.zeros((1, 4, 1, 1))
    >>> image, small = mx.nd.array([[16, 16, 1]]), {{"scales": (1,), "ratios": (1,), "rpn_post_nms_top_n": 1}}
    >>> mx.nd.contrib.{name}(scores, offsets, image, **small).asnumpy().tolist()
    [[0.0, 0.0, 0.0, 15.0, 15.0]]
    """


def _proposal(name, batch):
    """Define an operator of MXNet's: proposals of one image, or of a batch of images."""

    def regions(
        cls_prob, bbox_pred, im_info, *, rpn_pre_nms_top_n: int = 6000, rpn_post_nms_top_n: _Size = 300, threshold: float = 0.7,
        rpn_min_size: int = 16, scales: Floats = (4.0, 8.0, 16.0, 32.0), ratios: Floats = (0.5, 1.0, 2.0),
        feature_stride: Count = 16, output_score: bool = False, iou_loss: bool = False,
    ):  # fmt: skip
        pass

    def dims(*, rpn_post_nms_top_n, scales, ratios, output_score, **params):
        n, count = rpn_post_nms_top_n, len(scales) * len(ratios)
        if count == 0:
            raise OpValueError(f"operator _contrib_{name}: scales={scales}, ratios={ratios}; expected at least one of each")
        rows = n if batch == 1 else Of("batch", lambda size: size * n, lambda size: divided(size, n))
        found = {"cls_prob": (batch, 2 * count, "height", "width"), "bbox_pred": (batch, 4 * count, "height", "width"),
                 "im_info": (batch, 3), "output": (rows, 5)}  # fmt: skip
        return {**found, "score": (rows, 1)} if output_score else found

    regions.__doc__ = _PROPOSALS.format(name=name, batch=batch)
    op = kernel(
        regions, name=f"_contrib_{name}", output_names=("output", "score"),
        num_outputs=lambda *, output_score, **params: 1 + output_score,
    )  # fmt: skip
    _by_table(op, dims)
    float_types(op)
    zero_gradient(op)
    on_host(op)(_propose)
    return op


def _shifted_anchors(np, size, stride, scales, ratios):
    """Return the anchors of each place of a feature map, ``(height, width, anchors, 4)``; their sizes are whole pixels."""
    base, real = [], np.float32
    for ratio in ratios:
        width = np.floor(np.sqrt(np.floor(real(stride * stride) / real(ratio))) + real(0.5))
        height = np.floor(width * real(ratio) + real(0.5))
        for scale in scales:
            half = (np.asarray([width, height]) * real(scale) - 1) / 2
            base.append([*((stride - 1) / 2 - half), *((stride - 1) / 2 + half)])
    found = np.zeros((*size, 1, 1), real) + np.asarray(base, real)
    found[..., 0::2] += (np.arange(size[1]) * stride)[:, None, None]
    found[..., 1::2] += (np.arange(size[0]) * stride)[:, None, None, None]
    return found


def _propose(np, inputs, outputs, *, rpn_pre_nms_top_n, rpn_post_nms_top_n, threshold, rpn_min_size, scales, ratios,
             feature_stride, output_score, iou_loss):  # fmt: skip
    scores, offsets, info = inputs
    batch, height, width = len(scores), *scores.shape[2:]
    n = scores.shape[1] // 2 * height * width
    if n == 0 or outputs[0].size == 0:  # without places there are no regions
        for place in outputs:
            place[...] = 0
        return
    anchors = _shifted_anchors(np, (height, width), feature_stride, scales, ratios).astype(scores.dtype)
    offsets = offsets.reshape(batch, -1, 4, height, width).transpose(0, 3, 4, 1, 2)
    if iou_loss:
        boxes = anchors + offsets
    else:
        size = anchors[..., 2:] - anchors[..., :2] + 1
        middle = offsets[..., :2] * size + (anchors[..., :2] + (size - 1) / 2)
        half = (np.exp(offsets[..., 2:]) * size - 1) / 2
        boxes = np.concatenate([middle - half, middle + half], axis=-1)
    image, scale = info[:, [1, 0, 1, 0]][:, None, None, None], info[:, 2][:, None, None, None]
    boxes = np.maximum(np.minimum(boxes, image - 1), 0)
    least = rpn_min_size * scale
    small = (boxes[..., 2:] - boxes[..., :2] + 1 < least[..., None]).any(axis=-1)
    boxes += np.where(small, least / 2, 0)[..., None] * np.asarray([-1, -1, 1, 1], boxes.dtype)
    real = np.trunc(image[..., :2] / np.asarray(feature_stride, boxes.dtype))
    outside = (np.arange(height)[:, None, None] >= real[..., 1]) | (np.arange(width)[:, None] >= real[..., 0])
    scores = np.where(small | outside, -1, scores[:, scores.shape[1] // 2 :].transpose(0, 2, 3, 1)).reshape(batch, n)
    among = min(rpn_pre_nms_top_n, n) if rpn_pre_nms_top_n > 0 else n
    order, rows = np.argsort(-scores, axis=1, kind="stable")[:, :among], np.arange(batch)[:, None]
    boxes, scores = boxes.reshape(batch, n, 4)[rows, order], scores[rows, order]
    size = boxes[..., 2:] - boxes[..., :2] + 1
    kept = survivors(np, np.moveaxis(boxes, -1, 0), size[..., 0] * size[..., 1], np.zeros_like(scores), np.full(batch, among),
                     threshold, 1, rpn_post_nms_top_n)  # fmt: skip
    first = np.argsort(~kept, axis=1, kind="stable")  # those that are kept, then all others
    chosen = first[rows, np.arange(rpn_post_nms_top_n) % kept.sum(axis=1, keepdims=True)]
    found = np.concatenate([rows[..., None] + np.zeros_like(boxes[rows, chosen, :1]), boxes[rows, chosen]], axis=-1)
    for place, result in zip(outputs, (found, scores[rows, chosen]), strict=False):
        place[...] = result.reshape(place.shape)


Proposal, MultiProposal = _proposal("Proposal", 1), _proposal("MultiProposal", "batch")
