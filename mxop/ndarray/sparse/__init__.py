"""``mx.nd.sparse``: matrices of which few elements are not zero (csr), and arrays of which few rows are not (row_sparse).

The operators of the namespace are put here by :mod:`..register`.
"""

from .arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, cast_storage
from .creation import array, csr_matrix, empty, row_sparse_array, zeros
from .operators import add, divide, multiply, retain, subtract
from .products import rows_gradient as _rows_gradient  # noqa: F401  for the namespace of gradient rules


def _ndarray_cls(handle, writable=True, stype=-1):
    """Return the array of a handle."""
    return handle.target


#: What is written by hand here, and stays whatever operators are called.
__all__ = [
    "BaseSparseNDArray", "CSRNDArray", "RowSparseNDArray", "add", "array", "cast_storage", "csr_matrix", "divide", "empty",
    "multiply", "retain", "row_sparse_array", "subtract", "zeros",
]  # fmt: skip
