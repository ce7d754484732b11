"""Records of correlation (``mxop/ops/correlation.py``), whose references take one displacement after the other."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal, record_of


def _moves(limit, step):
    line = [k * step for k in range(-(limit // step), limit // step + 1)]
    return [(down, right) for down in line for right in line]


def _part(data, limit, stride, move=(0, 0)):
    """Return the places that are `limit` from the edges, displaced."""
    down, right = (slice(limit + m, n - limit + m, stride) for m, n in zip(move, data.shape[2:], strict=True))
    return data[:, :, down, right]


def _products(data1, data2, limit, step, stride):
    one = _part(data1, limit, stride)
    return np.stack([(one * _part(data2, limit, stride, move)).sum(1) for move in _moves(limit, step)], axis=1)


def _products_grad(head, other, like, limit, step, stride, displaced=False):
    total = np.zeros(like.shape)
    for d, move in enumerate(_moves(limit, step)):
        read, put = ((0, 0), move) if displaced else (move, (0, 0))
        _part(total, limit, stride, put)[...] += head[:, d, None] * _part(other, limit, stride, read)
    return total


def _correlation(data1, data2, kernel_size=1, max_displacement=1, stride1=1, stride2=1, pad_size=0, is_multiply=True):
    edges, found = ((0, 0), (0, 0), (pad_size,) * 2, (pad_size,) * 2), []
    one, other = _part(np.pad(data1, edges), max_displacement, 1), np.pad(data2, edges)
    for move in _moves(max_displacement, stride2):
        moved = _part(other, max_displacement, 1, move)
        each = (one * moved if is_multiply else abs(one - moved)).sum(1)
        patches = np.lib.stride_tricks.sliding_window_view(each, (kernel_size, kernel_size), (1, 2))
        found.append(patches[:, ::stride1, ::stride1].sum((-1, -2)) / (kernel_size**2 * max(data1.shape[1], 1)))
    return np.stack(found, axis=1)


_ONE = {"limit": 1, "step": 1, "stride": 1}
_TWO = {"limit": 2, "step": 2, "stride": 2}
_SMALL = dict.fromkeys(("small shapes", "small gradients"), "smaller maps have no place so far from their edges")
_BACK = {"shapes back": "with a stride, results do not say how large the maps are"}

RECORDS: dict[str, Record] = {
    "_displaced_products": record_of(
        _products, (_ONE, [(2, 2, 4, 3)] * 2), (_TWO, [(1, 3, 7, 6)] * 2), dtypes="f", unchecked=_BACK | _SMALL,
        refuses=[Refusal("have no place 2 from both edges", params={**_ONE, "limit": 2})],
    ),
    "_displaced_products_grad": record_of(
        _products_grad, (_ONE, [(2, 9, 2, 1), (2, 2, 4, 3), (2, 2, 4, 3)]),
        ({**_TWO, "displaced": True}, [(1, 9, 2, 1), (1, 3, 7, 6), (1, 3, 7, 6)]), dtypes="f", grad_inputs=(0, 1),
        unchecked=_BACK | _SMALL,
    ),
    "_distance": Record(lambda a, b: abs(a - b), domain=((-2, -0.1), (0.1, 2)), dtypes="f", unchecked={
        "special gradients": "where both are equal, the slope is that of MXNet", "special": "infinity minus infinity"}),
    "Correlation": record_of(
        _correlation, ({"pad_size": 1}, [(2, 2, 3, 4)] * 2),
        ({"kernel_size": 3, "max_displacement": 2, "stride1": 2, "stride2": 2, "pad_size": 3}, [(1, 2, 4, 3)] * 2),
        ({"is_multiply": False, "kernel_size": 3, "pad_size": 2}, [(1, 2, 3, 3)] * 2), dtypes="f", unchecked=_BACK | _SMALL,
        refuses=[
            Refusal("expected an odd number", params={"kernel_size": 2}),
            Refusal("have no patch", params={"max_displacement": 5}),
            Refusal("data2 has shape", shapes=((2, 2, 3, 4), (2, 1, 3, 4))), Refusal("floating-point", dtypes=("int32",) * 2),
        ],
    ),
}  # fmt: skip
