"""Records of anchors, and of what detectors make of them (``mxop/ops/anchors.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal
from .boxes import FLAT, UNORDERED, corners, offset, overlap, placed


def _prior(data, sizes=(1.0,), ratios=(1.0,), clip=False, steps=(-1.0, -1.0), offsets=(0.5, 0.5)):
    height, width = data.shape[2:]
    down, right = steps if steps[0] > 0 else (1 / height, 1 / width)
    found = []
    for i, j in np.ndindex(height, width):
        for size, ratio in [(s, ratios[0]) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]:
            y, x, h, w = (
                (i + offsets[0]) * down,
                (j + offsets[1]) * right,
                size / np.sqrt(ratio),
                size * height / width * np.sqrt(ratio),
            )
            found.append([x - w / 2, y - h / 2, x + w / 2, y + h / 2])
    found = np.reshape(found, (1, -1, 4))
    return np.clip(found, 0, 1) if clip else found


def _target(anchor, label, cls_pred, overlap_threshold=0.5, ignore_label=-1.0, negative_mining_ratio=-1.0,
            negative_mining_thresh=0.5, variances=(0.1, 0.1, 0.2, 0.2)):  # fmt: skip
    (anchors,), batch = anchor, len(label)
    offsets, mask = np.zeros((2, batch, len(anchors), 4))
    classes = np.full((batch, len(anchors)), ignore_label)
    for k in range(batch):
        ends = np.flatnonzero(label[k, :, 0] == -1)
        objects = label[k, : ends[0] if len(ends) else None]
        if not len(objects):
            continue
        of = np.array([[overlap(a, o[1:5]) for o in objects] for a in anchors])
        left, matches = of.copy(), np.full(len(anchors), -1)
        while left.max() > 1e-6:
            i, j = np.unravel_index(left.argmax(), left.shape)
            matches[i], left[i], left[:, j] = j, -1, -1
        if overlap_threshold > 0:
            matches = np.where((matches < 0) & (of.max(1) > overlap_threshold), of.argmax(1), matches)
        negative = matches < 0
        if negative_mining_ratio > 0:
            odds = np.exp(cls_pred[k])
            order = np.argsort(odds[0] / odds.sum(0), kind="stable")
            order = [i for i in order if negative[i] and of[i].max() < negative_mining_thresh]
            negative[...] = False
            negative[order[: int(negative_mining_ratio * (matches >= 0).sum())]] = True
        classes[k, negative] = 0
        for i in np.flatnonzero(matches >= 0):
            classes[k, i], mask[k, i] = objects[matches[i], 0] + 1, 1
            offsets[k, i] = offset(anchors[i], objects[matches[i], 1:5]) / variances
    return offsets.reshape(batch, -1), mask.reshape(batch, -1), classes


def _kept(boxes, kinds, drops, extra=0):
    """Return the positions of the boxes that are kept; `drops` says whether an overlap drops the weaker one."""
    kept = []
    for k, box in enumerate(boxes):
        if not any(kinds[i] == kinds[k] and drops(overlap(boxes[i], box, extra=extra)) for i in kept):
            kept.append(k)
    return kept


def _detection(cls_prob, loc_pred, anchor, clip=True, threshold=0.01, background_id=0, nms_threshold=0.5, force_suppress=False,
               variances=(0.1, 0.1, 0.2, 0.2), nms_topk=-1):  # fmt: skip
    batch, _, n = cls_prob.shape
    found = np.full((batch, n, 6), -1.0)
    for k in range(batch):
        rows = []
        for i in range(n):
            scores = cls_prob[k, 1:, i]
            if scores.size and scores.max() > -1 and scores.max() >= threshold:
                box = placed(anchor[0, i], loc_pred[k, 4 * i : 4 * i + 4] * variances)
                rows.append([scores.argmax(), scores.max(), *(np.clip(box, 0, 1) if clip else box)])
        found[k, : len(rows)] = np.reshape(rows, (-1, 6))
        if 0 < nms_threshold <= 1:
            ranked = sorted(rows, key=lambda row: -row[1])[: nms_topk if nms_topk > 0 else None]
            kinds = [0 if force_suppress else r[0] for r in ranked]
            kept = _kept([r[2:] for r in ranked], kinds, lambda of: of >= nms_threshold)
            found[k, : len(ranked)] = np.reshape(ranked, (-1, 6))
            found[k, [i for i in range(len(rows)) if i not in kept], 0] = -1
    return found


def _proposal(cls_prob, bbox_pred, im_info, rpn_pre_nms_top_n=6000, rpn_post_nms_top_n=300, threshold=0.7, rpn_min_size=16,
              scales=(4, 8, 16, 32), ratios=(0.5, 1, 2), feature_stride=16, output_score=False, iou_loss=False):  # fmt: skip
    (batch, _, height, width), count = cls_prob.shape, len(scales) * len(ratios)
    found = np.zeros((batch, rpn_post_nms_top_n, 6))
    for k in range(batch):
        rows, (high, wide, scale) = [], im_info[k]
        for i, j, a in np.ndindex(height, width, count):
            ratio, size = ratios[a // len(scales)], scales[a % len(scales)]
            w = np.floor(np.sqrt(np.floor(feature_stride**2 / ratio)) + 0.5)
            half = (np.array([w, np.floor(w * ratio + 0.5)]) * size - 1) / 2
            middle = (feature_stride - 1) / 2 + feature_stride * np.array([j, i])
            anchor, moves = np.concatenate([middle - half, middle + half]), bbox_pred[k, 4 * a : 4 * a + 4, i, j]
            middle, ends = middle + moves[:2] * (2 * half + 1), (np.exp(moves[2:]) * (2 * half + 1) - 1) / 2
            box = anchor + moves if iou_loss else np.concatenate([middle - ends, middle + ends])
            box = np.maximum(np.minimum(box, [wide - 1, high - 1] * 2), 0)
            score, least = cls_prob[k, count + a, i, j], rpn_min_size * scale
            if min(box[2] - box[0] + 1, box[3] - box[1] + 1) < least:
                box, score = box + np.array([-1, -1, 1, 1]) * least / 2, -1
            if i >= int(high / feature_stride) or j >= int(wide / feature_stride):
                score = -1
            rows.append([*box, score])
        rows = sorted(rows, key=lambda row: -row[4])[: rpn_pre_nms_top_n if rpn_pre_nms_top_n > 0 else None]
        kept = _kept([r[:4] for r in rows], [0] * len(rows), lambda of: of > threshold, extra=1)[
            : min(rpn_post_nms_top_n, len(rows))
        ]
        found[k, :, 0] = k
        found[k, :, 1:] = [rows[kept[i % len(kept)]] for i in range(rpn_post_nms_top_n)]
    found = found.reshape(-1, 6)
    return (found[:, :5], found[:, 5:]) if output_score else found[:, :5]


def _objects(anchor, label, cls_pred):
    """Return anchors and labels that are boxes; the classes are 0, 1 and -1, which ends them."""
    label = label.copy()
    if label.shape[-1] < 5:
        return anchor, label, cls_pred
    label[..., 0] = np.round(np.clip(label[..., 0], -1, 1))
    label[..., 1:5] = corners(label[..., 1:5])[0]
    return (*corners(anchor), label, cls_pred)


_SHAPES = ((1, 6, 4), (2, 3, 5), (2, 3, 6))
_FOUND = ((2, 3, 6), (2, 24), (1, 6, 4))
_ONE = ((1, 4, 2, 3), (1, 8, 2, 3), (1, 3))
_REGIONS = {"scales": (1.0, 2.0), "ratios": (1.0,), "feature_stride": 4, "rpn_min_size": 2, "rpn_post_nms_top_n": 4}
_INFO = ((0, 1), (-0.5, 0.5), (6, 14))


def _regions(batch):
    return Record(
        _proposal, shapes=[tuple((batch, *s[1:]) for s in _ONE)] * 3, domain=_INFO, distinct=True,
        params=[_REGIONS, {**_REGIONS, "output_score": True, "rpn_pre_nms_top_n": 3, "threshold": 0.1},
                {**_REGIONS, "iou_loss": True}],
        refuses=[Refusal("expected at least one of each", params={**_REGIONS, "scales": ()}),
                 Refusal("cls_prob has shape", params={**_REGIONS, "scales": (1.0,)})],
        unchecked=UNORDERED, **FLAT,
    )  # fmt: skip


RECORDS: dict[str, Record] = {
    "_contrib_MultiBoxPrior": Record(
        _prior, shapes=[((2, 1, 2, 3),), ((1, 3, 3, 2),), ((1, 1, 1, 2),)],
        params=[{}, {"sizes": (0.5, 0.25), "ratios": (2.0, 1.0, 0.5), "clip": True},
                {"steps": (0.5, 0.25), "offsets": (0.25, 0.75)}],
        refuses=[Refusal("sizes has 0 numbers", params={"sizes": ()}), Refusal("steps has 1", params={"steps": (1.0,)}),
                 Refusal("two positive numbers", params={"steps": (1.0, -1.0)}), Refusal("batch, channels", shapes=((2, 3),))],
        unchecked={"shapes back": "anchors do not say of which map"}, **FLAT,
    ),
    "_contrib_MultiBoxTarget": Record(
        _target, shapes=[_SHAPES] * 3, prepare=_objects,
        params=[{}, {"overlap_threshold": 0.25, "negative_mining_ratio": 1.0, "ignore_label": -7.0},
                {"overlap_threshold": 0.0, "variances": (1.0, 1.0, 0.5, 0.5)}],
        refuses=[Refusal("5 at least", shapes=(_SHAPES[0], (2, 3, 4), _SHAPES[2])),
                 Refusal("variances has 3", params={"variances": (1, 1, 1)}),
                 Refusal("anchor has shape", shapes=((2, 6, 4), *_SHAPES[1:])),
                 Refusal("cls_pred has shape", shapes=(*_SHAPES[:2], (2, 3, 5))),
                 Refusal("positive number", params={"negative_mining_ratio": 1.0, "negative_mining_thresh": 0.0})],
        unchecked=UNORDERED, **FLAT,
    ),
    "_contrib_MultiBoxDetection": Record(
        _detection, shapes=[_FOUND] * 4, domain=((0, 1), (-1, 1), (0, 1)), distinct=True,
        prepare=lambda scores, moves, anchor: (scores, moves, *corners(anchor)),
        params=[{}, {"threshold": 0.5, "nms_threshold": 0.25, "force_suppress": True}, {"nms_topk": 2, "clip": False},
                {"nms_threshold": 0.0}],
        refuses=[Refusal("loc_pred has shape", shapes=((2, 3, 6), (2, 20), (1, 6, 4))),
                 Refusal("variances has 2", params={"variances": (1, 1)})],
        unchecked=UNORDERED, **FLAT,
    ),
    "_contrib_Proposal": _regions(1),
    "_contrib_MultiProposal": _regions(2),
}  # fmt: skip
