"""Records of matrix products (``mxop/ops/matrix.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal


def _dot(lhs, rhs, transpose_a=False, transpose_b=False):
    left, right = 0 if transpose_a else lhs.ndim - 1, rhs.ndim - 1 if transpose_b else 0
    result = np.tensordot(lhs, rhs, axes=(left, right))
    return result.reshape(1) if result.ndim == 0 else result


def _batch_dot(lhs, rhs, transpose_a=False, transpose_b=False):
    return np.matmul(lhs.swapaxes(-1, -2) if transpose_a else lhs, rhs.swapaxes(-1, -2) if transpose_b else rhs)


def _gemm(lhs, rhs, bias=0.0, transpose_a=False, transpose_b=False, alpha=1.0, no_bias=False):
    return alpha * (lhs.T if transpose_a else lhs) @ (rhs.T if transpose_b else rhs) + bias


_A, _B, _BOTH = {"transpose_a": True}, {"transpose_b": True}, {"transpose_a": True, "transpose_b": True}

#: MXNet, too, infers these products forward alone.
_FORWARD = {"shapes back": "a factor's shape is not inferred from the product's"}

RECORDS: dict[str, Record] = {
    "dot": Record(
        _dot, dtypes="f", unchecked=_FORWARD, refuses=[Refusal(r"\(2, 3\)", shapes=((2, 3), (2, 3)))],
        params=[{}, _A, _B, _BOTH, {}, {}, {}, {}, _B, {}, {}],
        shapes=[
            ((2, 3), (3, 4)), ((3, 2), (3, 4)), ((2, 3), (4, 3)), ((3, 2), (4, 3)), ((3,), (3,)), ((3,), (3, 2)),
            ((2, 3), (3,)), ((2, 2, 3), (3, 1, 2)), ((2, 2, 3), (1, 2, 3)), ((2, 0), (0, 3)), ((0, 2), (2, 3)),
        ],
    ),
    "_gemm": Record(
        _gemm, dtypes="f", unchecked=_FORWARD,
        params=[{"no_bias": True, "alpha": 0.5}, {}, {"alpha": -2.0, **_A}, {"no_bias": True, **_B}, {"alpha": 3.0, **_BOTH},
                {}],
        shapes=[((2, 3), (3, 4)), ((2, 3), (3, 4), (4,)), ((3, 2), (3, 4), (2, 1)), ((2, 3), (4, 3)), ((3, 2), (4, 3), (2, 4)),
                ((2, 0), (0, 3), (3,))],
    ),
    "batch_dot": Record(
        _batch_dot, dtypes="f", params=[{}, _A, _B, _BOTH, {}, {}],
        shapes=[((2, 2, 3), (2, 3, 1)), ((2, 3, 2), (2, 3, 1)), ((2, 2, 3), (2, 1, 3)), ((2, 3, 2), (2, 1, 3)),
                ((2, 1, 2, 3), (2, 1, 3, 2)), ((0, 2, 3), (0, 3, 2))],
    ),
}  # fmt: skip
