"""Records of operators on boxes (``mxop/ops/boxes.py``), which the references take one after the other."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal


def edges(box, center=False):
    """Return left, top, right, bottom and area of a box."""
    a, b, c, d = box
    width, height = (c, d) if center else (c - a, d - b)
    area = 0 if width < 0 or height < 0 else width * height
    return (a - c / 2, b - d / 2, a + c / 2, b + d / 2, area) if center else (a, b, c, d, area)


def overlap(box, other, center=False, extra=0):
    """Return the intersection over union of two boxes."""
    left, top, right, bottom, area = edges(box, center)
    left2, top2, right2, bottom2, area2 = edges(other, center)
    width, height = min(right, right2) - max(left, left2) + extra, min(bottom, bottom2) - max(top, top2) + extra
    if extra:
        area, area2 = ((right - left + 1) * (bottom - top + 1), (right2 - left2 + 1) * (bottom2 - top2 + 1))
    shared = max(width, 0) * max(height, 0)
    return shared / (area + area2 - shared) if shared > 0 else 0


def _iou(lhs, rhs, format="corner"):
    found = [overlap(a, b, format == "center") for a in lhs.reshape(-1, 4) for b in rhs.reshape(-1, 4)]
    return np.reshape(found, (*lhs.shape[:-1], *rhs.shape[:-1]))


def _nms(data, overlap_thresh=0.5, valid_thresh=0, topk=-1, coord_start=2, score_index=1, id_index=-1, background_id=-1,
         force_suppress=False, in_format="corner", out_format="corner"):  # fmt: skip
    def place(box):
        return box[coord_start : coord_start + 4]

    found = np.full(data.shape, -1.0)
    for rows, result in zip(data.reshape(-1, *data.shape[-2:]), found.reshape(-1, *data.shape[-2:]), strict=True):
        if topk == 0:
            result[...] = rows
            continue
        rows = [r for r in rows if r[score_index] > valid_thresh and (id_index < 0 or r[id_index] != background_id)]
        rows = sorted(rows, key=lambda r: -r[score_index])[: topk if topk > 0 else None]
        kept = []
        for row in rows:
            alike = [k for k in kept if id_index < 0 or force_suppress or int(k[id_index]) == int(row[id_index])]
            if all(overlap(place(k), place(row), in_format == "center") <= overlap_thresh for k in alike):
                kept.append(row)
        for k, row in enumerate(kept):
            result[k] = row
            if in_format != out_format:
                a, b, c, d = place(row)
                place(result[k])[...] = (
                    ((a + c) / 2, (b + d) / 2, c - a, d - b) if out_format == "center" else edges((a, b, c, d), True)[:4]
                )
    return found


def _matching(data, threshold, is_ascend=False, topk=-1):
    columns, rows = np.full(data.shape[:-1], -1), np.full((*data.shape[:-2], data.shape[-1]), -1)
    for at in np.ndindex(data.shape[:-2]):
        scores = data[at] if is_ascend else -data[at]
        pairs = sorted(np.ndindex(scores.shape), key=lambda pair: scores[pair])
        left = topk + 1 if topk > 0 else len(pairs)
        for i, j in pairs:
            good = data[at][i, j] < threshold if is_ascend else data[at][i, j] > threshold
            if good and left and columns[at][i] == rows[at][j] == -1:
                columns[at][i], rows[at][j], left = j, i, left - 1
    return columns, rows


def offset(anchor, box):
    """Return the offset of a box from an anchor."""
    anchor, box = np.asarray(anchor), np.asarray(box)
    size, wanted = anchor[2:] - anchor[:2], box[2:] - box[:2]
    with np.errstate(all="ignore"):
        return np.concatenate([(box[:2] + box[2:] - anchor[:2] - anchor[2:]) / 2 / size, np.log(wanted / size)])


def placed(anchor, moves):
    """Return the box at an offset from an anchor, left, top, right and bottom of both."""
    size = anchor[2:] - anchor[:2]
    middle, half = (anchor[:2] + anchor[2:]) / 2 + moves[:2] * size, np.exp(moves[2:]) * size / 2
    return np.concatenate([middle - half, middle + half])


def _encode(samples, matches, anchors, refs, means, stds):
    found = np.zeros(anchors.shape)
    for k, i in np.argwhere(samples > 0.5):
        found[k, i] = (offset(anchors[k, i], refs[k, int(np.clip(matches[k, i], 0, refs.shape[1] - 1))]) - means) / stds
    return found, np.repeat(samples[..., None] > 0.5, 4, axis=2)


def _decode(data, anchors, std0=1.0, std1=1.0, std2=1.0, std3=1.0, clip=-1.0, format="center"):
    moves = data * [std0, std1, std2, std3]
    moves[..., 2:] = np.minimum(moves[..., 2:], clip if clip > 0 else np.inf)
    corners = [edges(a, format == "center")[:4] for a in anchors[0]]
    return np.array([[placed(np.array(a), m) for a, m in zip(corners, row, strict=True)] for row in moves]).reshape(data.shape)


def _offset_parts(sample, low, high, wanted_low, wanted_high, mean, std, mean2, std2):
    length, wanted = high - low, wanted_high - wanted_low
    middle = ((wanted_low + wanted_high) / 2 - (low + high) / 2) / length
    return [np.where(sample > 0.5, v, 0) for v in ((middle - mean) / std, (np.log(wanted / length) - mean2) / std2)]


def _placed_parts(offset, ratio, a, c, std, std2, clip, center):
    low, high = (a - c / 2, a + c / 2) if center else (a, c)
    ratio = np.minimum(ratio * std2, clip if clip > 0 else np.inf)
    middle, half = (low + high) / 2 + offset * std * (high - low), np.exp(ratio) * (high - low) / 2
    return middle - half, middle + half


def _overlap_parts(*numbers, center):
    boxes = np.broadcast_arrays(*numbers)
    return np.reshape([overlap(v[:4], v[4:], center) for v in zip(*(b.ravel() for b in boxes), strict=True)], boxes[0].shape)


#: Intervals of the four numbers of a box: those that say where it ends come after those that say where it begins.
_LOW, _HIGH = (-1.0, 0.5), (0.75, 2.0)
FLAT = {"order": 0, "grad_inputs": (), "dtypes": "f"}
INFINITE = {"special": "an infinite box has no middle"}
UNORDERED = {"special": "comparisons with numbers that are infinite or NaN decide; tests/test_boxes.py has MXNet's results"}


def corners(*boxes):
    """Return boxes whose right and bottom are not less than left and top."""
    if boxes[0].shape[-1] != 4:
        return boxes
    parts = ((b[..., :2], b[..., 2:]) for b in boxes)
    return tuple(np.concatenate([np.minimum(a, b), np.maximum(a, b) + 0.25], axis=-1) for a, b in parts)


def _classed(data):
    """Return boxes whose class is no whole number, so that it stays the same when it changes a little."""
    data = data.copy()
    data[..., :1] = np.floor(data[..., :1]) + 0.5
    if data.shape[-1] >= 6:
        data[..., 2:6] = corners(data[..., 2:6])[0]
    return data


_BACK = {"shapes back": "forward: the result does not say of which axes"}

RECORDS: dict[str, Record] = {
    "_contrib_box_iou": Record(
        _iou, shapes=[((3, 4), (2, 4)), ((2, 2, 4), (1, 3, 4))], params=[{}, {"format": "center"}],
        refuses=[Refusal("expected boxes", shapes=((3, 3), (2, 4))), Refusal("expected boxes", shapes=((4,), (2, 4)))],
        unchecked={**_BACK, **UNORDERED}, **FLAT,
    ),
    "_contrib_box_nms": Record(
        _nms, shapes=[((6, 6),), ((2, 7, 6),), ((2, 2, 5, 6),), ((6, 7),), ((3, 6),)],
        params=[{}, {"id_index": 0, "background_id": 1, "overlap_thresh": 0.25},
                {"topk": 3, "valid_thresh": -1.0, "out_format": "center"},
                {"in_format": "center", "out_format": "corner", "id_index": 0, "force_suppress": True}, {"topk": 0}],
        prepare=_classed, grad_inputs=(0,), order=1, distinct=True, dtypes="f",
        refuses=[Refusal("four coordinates", params={"coord_start": 3}), Refusal("score_index=3", params={"score_index": 3}),
                 Refusal("id_index=6", params={"id_index": 6}), Refusal("id_index=1", params={"id_index": 1}),
                 Refusal("boxes, width", shapes=((6,),))],
        unchecked=UNORDERED,
    ),
    "_contrib_bipartite_matching": Record(
        _matching, shapes=[((3, 4),), ((2, 4, 3),), ((2, 2, 2, 3),)],
        params=[{"threshold": 0.25}, {"threshold": 1.0, "is_ascend": True}, {"threshold": -1.0, "topk": 1}],
        refuses=[Refusal("rows, columns", shapes=((3,),))], unchecked={**_BACK, "special": "NaN never matches"}, **FLAT,
    ),
    "_contrib_box_encode": Record(
        _encode, shapes=[((2, 3), (2, 3), (2, 3, 4), (2, 2, 4), (4,), (4,))], whole=(0, 1),
        domain=((-1, 1), (-1, 2), (0, 2), (0, 2), (0, 1), (0.5, 1)),
        prepare=lambda samples, matches, anchors, refs, *rest: (samples, matches, *corners(anchors, refs), *rest),
        unchecked={"special": "NaN that no anchor matches is not looked at"}, **FLAT,
    ),
    "_contrib_box_decode": Record(
        _decode, shapes=[((2, 3, 4), (1, 3, 4))], domain=((-1, 1), (0.5, 2)),
        params=[{}, {"format": "corner", "clip": 0.5, "std1": 0.5, "std2": 2.0}], unchecked=INFINITE, **FLAT,
    ),
    "_box_overlap": Record(
        _overlap_parts, shapes=[((3, 2),) * 8, ((3, 1),) * 4 + ((2,),) * 4], params=[{"center": False}, {"center": True}],
        domain=(_LOW, _LOW, _HIGH, _HIGH) * 2, unchecked=UNORDERED, **FLAT,
    ),
    "_box_offset": Record(
        _offset_parts, domain=((0, 1), _LOW, _HIGH, _LOW, _HIGH, (-1, 1), (0.5, 1), (-1, 1), (0.5, 1)), whole=(0,),
        unchecked=INFINITE, **FLAT,
    ),
    "_box_placed": Record(
        _placed_parts, domain=((-1, 1), (-1, 1), _LOW, _HIGH), unchecked=INFINITE, **FLAT,
        params=[{"std": 0.5, "std2": 2.0, "clip": -1.0, "center": False},
                {"std": 1.0, "std2": 1.0, "clip": 0.5, "center": True}],
    ),
}  # fmt: skip
