"""Records of sequences (``mxop/ops/sequence.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal


def _ends(data, length, axis):
    """Return the data with the sequences first, and the length of each."""
    return np.array(data.swapaxes(0, axis)), np.trunc(length[0]).astype(int) if length else None


def _mask(data, *length, use_sequence_length=False, value=0.0, axis=0):
    steps, ends = _ends(data, length, axis)
    for k, end in enumerate([] if ends is None else ends):
        steps[max(end, 0) :, k] = np.asarray(value).astype(data.dtype)
    return steps.swapaxes(0, axis)


def _last(data, *length, use_sequence_length=False, axis=0):
    steps, ends = _ends(data, length, axis)
    if ends is None:
        return steps[-1]
    return steps[np.clip(ends - 1, 0, len(steps) - 1), np.arange(steps.shape[1])]


def _reverse(data, *length, use_sequence_length=False, axis=0):
    steps, ends = _ends(data, length, axis)
    for k in range(steps.shape[1]):
        end = len(steps) if ends is None else max(min(ends[k], len(steps)), 0)
        steps[:end, k] = steps[:end, k][::-1]
    return steps.swapaxes(0, axis)


def _rows(data, length, axis=0, last=False):
    numbers = np.arange(data.shape[0] * data.shape[1]).reshape(data.shape[:2])
    return (_last if last else _reverse)(numbers, length, axis=axis).astype(np.int64)


_USED = {"use_sequence_length": True}
_CASES = ({}, _USED, {**_USED, "axis": 1}, {"axis": 1})
_SHAPES = [((4, 3),), ((4, 3), (3,)), ((2, 5, 2), (2,)), ((3, 2),)]
_REFUSED = [
    Refusal("axis=2; expected 0 or 1", params={"axis": 2}, shapes=((4, 3),)),
    Refusal("expected at least two dimensions", shapes=((4,),)),
    Refusal(r"sequence_length has shape \(2,\)", shapes=((4, 3), (2,)), params=_USED),
]
_COMMON = {
    "shapes": _SHAPES,
    "domain": ((-2, 2), (-1, 6)),
    "whole": (1,),
    "grad_inputs": (0,),
    "refuses": _REFUSED,
    "order": 2,  # linear: what is above is zero
}
_BACK = {"shapes back": "forward alone: the output of the last steps does not say how many there were"}

RECORDS: dict[str, Record] = {
    "SequenceMask": Record(
        _mask, params=[{}, {**_USED, "value": -1.5}, {**_USED, "axis": 1}, {"axis": 1}], **_COMMON
    ),
    "_keep_or": Record(
        lambda data, kept, value: np.where(kept, data, np.asarray(value).astype(data.dtype)), params=[{"value": 1.5}],
        shapes=[((2, 3), (2, 3)), ((3, 2, 2), (3, 1, 2))], domain=((-2, 2), (0, 1)), whole=(1,), grad_inputs=(0,), order=2,
    ),
    "SequenceLast": Record(_last, params=_CASES, unchecked=_BACK, **_COMMON),
    "SequenceReverse": Record(_reverse, params=_CASES, **_COMMON),
    "_sequence_rows": Record(
        _rows, params=[{}, {"axis": 1, "last": True}], shapes=[((4, 3), (3,)), ((2, 5, 2), (2,))],
        domain=((-2, 2), (-1, 6)), whole=(1,), order=0, grad_inputs=(), returns="int64", unchecked=_BACK,
    ),
}  # fmt: skip
