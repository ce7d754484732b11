"""Records of copies in which some elements are others (``mxop/ops/replace.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal


def _set(lhs, rhs, indices, shape):
    result = lhs.copy()
    result[tuple(indices.astype(np.int64))] = rhs
    return result


def _chosen(index, like):
    return np.trunc(index)[:, None] == np.arange(like.shape[1])


_ROWS = [Refusal("the rows|one element a row", shapes=((2, 3), (3,), (2,)))]

RECORDS: dict[str, Record] = {
    "_scatter_set_nd": Record(
        _set, params=[{"shape": (3, 4)}, {"shape": (3, 2)}], shapes=[((3, 4), (1,), (2, 1)), ((3, 2), (1, 2), (1, 1))],
        domain=((-2.0, 2.0), (-2.0, 2.0), (-3.0, 2.0)), whole=(2,), grad_inputs=(0, 1), order=2,
        unchecked=dict.fromkeys(("small shapes", "small gradients"), "its shape is a parameter")
        | {"shapes back": "coordinates have another shape"},
    ),
    "fill_element_0index": Record(
        lambda lhs, mhs, rhs: np.where(_chosen(rhs, lhs), mhs[:, None], lhs), shapes=[((2, 3), (2,), (2,))],
        domain=((-2.0, 2.0), (-2.0, 2.0), (-1, 4)), whole=(2,), grad_inputs=(0, 1), order=2, refuses=_ROWS,
    ),
    "_onehot_encode": Record(
        lambda lhs, rhs: _chosen(lhs, rhs).astype(rhs.dtype), shapes=[((2,), (2, 3))], domain=((-1, 4), (-2.0, 2.0)),
        whole=(0,), order=0, grad_inputs=(),
    ),
}  # fmt: skip
