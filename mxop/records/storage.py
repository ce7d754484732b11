"""Records of sparse storage (``mxop/ops/storage.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal, binary


def _product(values, columns, starts, rhs, size, transpose=False):
    matrix = np.zeros((len(starts) - 1, size), rhs.dtype)
    for row, (first, end) in enumerate(zip(starts[:-1].astype(int), starts[1:].astype(int), strict=True)):
        matrix[row, columns[first:end].astype(int)] = values[first:end]
    return (matrix.T if transpose else matrix) @ rhs


def _matrix(values, columns, starts, rhs):
    """Put one value into each row, but for two in the first."""
    starts = np.minimum(np.arange(len(starts)) + (np.arange(len(starts)) > 0), len(values))
    return values, np.arange(len(columns)) % 3, starts, rhs


RECORDS: dict[str, Record] = {
    "cast_storage": Record(lambda data, stype: data, params=[{"stype": "default"}, {"stype": "csr"}]),
    "_sparse_retain": Record(
        lambda data, indices: np.where(np.isin(np.arange(len(data)), indices).reshape(-1, *(1,) * (data.ndim - 1)), data, 0),
        shapes=[((4, 2), (2,)), ((5,), (3,)), ((3, 2, 2), (1,))], domain=((-2.0, 2.0), (0, 2)), whole=(1,), grad_inputs=(0,),
        order=2, unchecked={"shapes back": "rows that are named say nothing of the others",
                   "small shapes": "rows that are named are there"},
    ),
    "_scatter_plus_scalar": binary.RECORDS["_plus_scalar"], "_scatter_minus_scalar": binary.RECORDS["_minus_scalar"],
    "_scatter_elemwise_div": binary.RECORDS["elemwise_div"],
    "_contrib_getnnz": Record(
        lambda data, axis=None: np.atleast_1d(np.count_nonzero(data, axis)),
        params=[{}, {"axis": 0}, {"axis": 1}], domain=(-1, 1), whole=(0,), returns="int64", order=0, grad_inputs=(),
        unchecked={"shapes back": "counts do not say of how many", "special": "an infinity counts as a number does",
                   "types back": "any type is counted"},
    ),
    "_contrib_edge_id": Record(
        lambda data, u, v: np.where((found := data[u.astype(int), v.astype(int)]) != 0, found, np.array(-1).astype(data.dtype)),
        whole=(1, 2), shapes=[((3, 3), (4,), (4,))], domain=((-2.0, 2.0), (0, 2), (0, 2)), grad_inputs=(0,), order=2,
        input_types={1: "int32", 2: "int32"}, unchecked={"shapes back": "places do not say of how many"},
    ),
    "_csr_dot": Record(
        _product, params=[{"size": 3}, {"size": 3, "transpose": True}, {"size": 3}], prepare=_matrix, grad_inputs=(3,), order=2,
        shapes=[((4,), (4,), (4,), (3, 2)), ((4,), (4,), (4,), (3, 2)), ((4,), (4,), (4,), (3,))], dtypes="f",
        refuses=[Refusal("the matrix has 3 columns", shapes=((4,), (4,), (4,), (2, 2)))],
        unchecked={"special": "what is stored is a number", "small shapes": "its parts depend on each other",
                   "small gradients": "its parts depend on each other", "one variable": "the parts of the matrix are no data",
                   "shapes back": "its parts depend on each other"},
    ),
}  # fmt: skip
