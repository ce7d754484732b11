"""Records of connectionist temporal classification (``mxop/ops/ctc.py``).

The reference tries all ways to write the labels.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import special

from . import Record, Refusal

_NEVER = -1e30


def _read(way, blank):
    """Return the labels that a class for each step spells."""
    return tuple(c for c, _ in itertools.groupby(way) if c != blank)


def _loss(logs, label, blank):
    steps, classes = logs.shape
    ways = [w for w in itertools.product(range(classes), repeat=steps) if _read(w, blank) == tuple(label)]
    return -special.logsumexp([sum(logs[t, c] for t, c in enumerate(w)) for w in ways]) if ways else 0.0


def _labels(label, lengths, blank_last):
    for k, row in enumerate(label.astype(int)):
        padding = np.flatnonzero(row == (-1 if blank_last else 0))
        end = int(lengths[k]) if lengths is not None else padding[0] if padding.size else row.size
        yield row[:end]


def _ctc(data, label, *lengths, use_data_lengths=False, use_label_lengths=False, blank_label="first"):
    rest = list(lengths)
    of_data = rest.pop(0) if use_data_lengths else np.full(data.shape[1], data.shape[0])
    of_label = rest.pop(0) if use_label_lengths else None
    logs, last = special.log_softmax(data, axis=-1), blank_label == "last"
    blank = data.shape[2] - 1 if last else 0
    return np.array([_loss(logs[: int(of_data[k]), k], row, blank)
                     for k, row in enumerate(_labels(label, of_label, last))])  # fmt: skip


def _paths(data, label, data_lengths, label_lengths, by_length=False, blank_last=False):
    blank, n = data.shape[2] - 1 if blank_last else 0, label.shape[1]
    places = np.full((len(label), 2 * n + 1), blank)
    places[:, 1::2] = np.clip(label, 0, data.shape[2] - 1)
    skip, ends = np.full(places.shape, _NEVER), np.full(places.shape, _NEVER)
    for k, row in enumerate(_labels(label, label_lengths if by_length else None, blank_last)):
        skip[k, [2 * j + 1 for j in range(1, n) if label[k, j] != label[k, j - 1]]] = 0
        ends[k, [j for j in (2 * len(row), 2 * len(row) - 1) if j >= 0]] = 0
    inside = np.arange(len(data))[:, None] < data_lengths
    return places.astype(np.int64), skip, ends, inside.astype(float)


def _start(skip):
    return np.where(np.arange(skip.shape[1]) == 0, 0, _NEVER) * np.ones(skip.shape)


_DATA, _LABEL = (-2.0, 2.0), (0.0, 2.0)
_COMMON = {"domain": (_DATA, _LABEL, (2.0, 3.0), (1.0, 2.0)), "whole": (1, 2, 3), "dtypes": "f"}
_SHAPES = ((3, 2, 3), (2, 2))
_LENGTHS = {"use_data_lengths": True, "use_label_lengths": True, "blank_label": "last"}

RECORDS: dict[str, Record] = {
    "CTCLoss": Record(
        _ctc, grad_inputs=(0,), shapes=[_SHAPES, _SHAPES, ((3, 2, 4), (2, 2), (2,), (2,)), ((3, 2, 4), (2, 2)),
                                                    ((3, 0, 4), (0, 2))],
        params=[{}, {}, _LENGTHS, {"blank_label": "last"}, {}], order=2,
        refuses=[Refusal("label has shape", shapes=((3, 2, 3), (3, 2))), Refusal("3 dimensions", shapes=((3, 2), (2, 2))),
                 Refusal("one label at least", shapes=((3, 2, 3), (2, 0)))],
        unchecked={"shapes back": "forward: the loss says how many sequences there are alone",
                   "small shapes": "labels are classes that there are",
                   "special": "infinite data have no probabilities, and steps that are skipped none to say so"}, **_COMMON,
    ),
    "_ctc_paths": Record(
        _paths, grad_inputs=(), order=0, shapes=[(*_SHAPES, (2,), (2,))],
        params=[{}, {"by_length": True}, {"blank_last": True}],
        returns=lambda given, **_: ("int64", *[{"float16": "float32", "bfloat16": "float32"}.get(given, given)] * 3),
        unchecked={"shapes back": "labels and steps have other shapes", "types back": "float32 may be of float16 data"},
        **_COMMON,
    ),
    "_ctc_start": Record(_start, grad_inputs=(), order=0, dtypes="l", reference_dtype=True),
    "_log_add": Record(lambda a, b, c: np.logaddexp(np.logaddexp(a, b), c), dtypes="f"),
    "_loss_of": Record(lambda data: np.where(data <= -5e29, 0, -data), dtypes="f"),
}  # fmt: skip
