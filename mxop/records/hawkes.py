"""Records of Hawkes processes (``mxop/ops/hawkes.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal


def _process(lda, alpha, beta, state, lags, marks, valid_length, max_time):
    """Go through the points of each sequence one by one."""
    state, total = state.copy(), np.zeros(len(lda), lda.dtype)
    for i, (row, length) in enumerate(zip(lags, valid_length, strict=True)):
        time, last = 0.0, np.zeros(lda.shape[1], lda.dtype)
        for lag, k in list(zip(row, marks[i].astype(int), strict=True))[: int(np.ceil(length))]:
            time = time + lag
            waited, decay = time - last[k], np.exp(-beta[k] * (time - last[k]))
            total[i] += np.log(lda[i, k] + alpha[k] * beta[k] * state[i, k] * decay)
            total[i] -= lda[i, k] * waited + alpha[k] * state[i, k] * (1 - decay)
            state[i, k], last[k] = 1 + state[i, k] * decay, time
        decay = np.exp(-beta * (max_time[i] - last))
        total[i] -= np.sum(lda[i] * (max_time[i] - last) + alpha * state[i] * (1 - decay))
        state[i] *= decay
    return total, state


def _point(rate, alpha, beta, state, waited, chosen):
    decay = np.exp(-beta * waited)
    gain = np.log(rate + alpha * beta * state * decay) - rate * waited - alpha * state * (1 - decay)
    return np.where(chosen != 0, gain, 0), np.where(chosen != 0, 1 + state * decay, state)


def _rest(rate, alpha, beta, state, waited):
    decay = np.exp(-beta * waited)
    return rate * waited + alpha * state * (1 - decay), decay * state


_POSITIVE = (0.5, 1.5)
_SHAPES = ((2, 3), (3,), (3,), (2, 3), (2, 4), (2, 4), (2,), (2,))

RECORDS: dict[str, Record] = {
    "_contrib_hawkesll": Record(
        _process, shapes=[_SHAPES], whole=(5, 6), grad_inputs=(0, 1, 2, 3, 4, 7), order=2, dtypes="f",
        domain=(*[_POSITIVE] * 5, (0, 2), (2, 4), (7.0, 8.0)), input_types={5: "int32"},
        refuses=[Refusal("alpha has shape", shapes=(_SHAPES[0], (2,), *_SHAPES[2:]))],
    ),
    "_hawkes_point": Record(
        _point, shapes=[((2, 3), (1, 3), (1, 3), (2, 3), (2, 3), (2, 3))], whole=(5,), grad_inputs=range(5), dtypes="f",
        domain=(*[_POSITIVE] * 5, (0, 1)), order=2,
    ),
    "_hawkes_rest": Record(
        _rest, shapes=[((2, 3), (1, 3), (1, 3), (2, 3), (2, 3))], dtypes="f", domain=(_POSITIVE,) * 5, order=2,
    ),
}  # fmt: skip
