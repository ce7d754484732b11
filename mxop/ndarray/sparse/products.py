"""Operators whose gradients have few rows: products with csr matrices, rows looked up in tables, sums of squares.

They record themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core import core, tape
from ..._kernels import csr
from ...opdef import registry
from ...support.dtypes import code_of
from .arrays import CSRNDArray, RowSparseNDArray, dense, host, rows_of
from .history import handle, involved, recorded, snapshot, stand_in
from .memory import at_home, csr_of, lib, on_gpu, raw, scipy_sparse, wrapped

Dense = core.Dense
NDArray = core.NDArray


def _call(name: str, *args: Any, **params: Any) -> Any:
    return core.op_function(registry.get(name))(*args, **params)


def _distinct(numbers: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which numbers below `size` there are, in order, and the place of each among them."""
    xp = lib(numbers)
    if numbers.size < size // 8:  # sorting few is faster than going through all that there could be
        rows, places = xp.unique(numbers, return_inverse=True)
        return rows, places.reshape(numbers.shape)
    there = xp.zeros(size, bool)
    there[numbers] = True
    rows = xp.flatnonzero(there)
    return rows, numbers if len(rows) == size else (xp.cumsum(there) - 1)[numbers]


# ---- products --------------------------------------------------------------------------------------------------------
def _dot(name: str, lhs: Any, rhs: Any, transpose_a: bool = False, transpose_b: bool = False, forward_stype: Any = None,
         **kwargs: Any) -> Any:  # fmt: skip
    if kwargs:
        return NotImplemented
    if not transpose_b and isinstance(lhs, CSRNDArray) and isinstance(rhs, (Dense, RowSparseNDArray)) and rhs.ndim <= 2:
        found = _product(lhs, rhs, transpose_a, transpose_a and forward_stype in (None, "row_sparse"))
        inputs = involved([lhs, rhs])
        return recorded(_OfProduct(lhs, rhs, transpose_a), inputs, found) if inputs else found
    plain = isinstance(lhs, Dense) and lhs.ndim == 2 and lhs.dtype == rhs.dtype and not involved([lhs, rhs])
    wanted = forward_stype == "csr" or (forward_stype is None and not transpose_a)
    if plain and wanted and isinstance(rhs, CSRNDArray) and not on_gpu(rhs._values):
        left, right = scipy_sparse().csr_matrix(host(lhs)), rhs._matrix
        return CSRNDArray(((left.T if transpose_a else left) @ (right.T if transpose_b else right)).tocsr())
    return NotImplemented


@at_home
def _product(lhs: CSRNDArray, rhs: Any, transpose: bool, by_rows: bool) -> Any:
    """Return the product of a csr matrix, or its transpose, with what is dense or row_sparse; `by_rows` as row_sparse."""
    matrix = lhs._matrix
    inner, outer = matrix.shape if transpose else matrix.shape[::-1]
    if len(rhs) != inner:
        raise ValueError(f"lhs has {inner} columns{', transposed' if transpose else ''}, and rhs has shape {rhs.shape}")
    if not transpose and isinstance(rhs, RowSparseNDArray):  # of which it reads few rows, perhaps
        rows, places = _distinct(matrix.indices, inner)
        matrix, values = _renumbered(matrix, places, len(rows)), rows_of(rhs, rows)
    else:
        values = raw(dense(rhs))
    if not by_rows:
        return wrapped(_ordered(matrix.T @ values)) if transpose else _times(matrix, values)
    rows, places = _distinct(matrix.indices, outer)
    narrow = matrix if len(rows) == outer else _renumbered(matrix, places, len(rows))
    return RowSparseNDArray(_ordered(narrow.T @ values), rows, (outer, *rhs.shape[1:]))


def _ordered(values: Any) -> Any:
    """Return an array whose elements lie row by row."""
    return lib(values).ascontiguousarray(values)


def _renumbered(matrix: Any, columns: np.ndarray, n: int) -> Any:
    """Return a matrix of SciPy with other numbers of its columns."""
    return csr_of((matrix.data, columns, matrix.indptr), (matrix.shape[0], n))


def _times(matrix: Any, values: np.ndarray) -> NDArray:
    """Multiply a matrix of SciPy by a dense one, or a vector."""
    if on_gpu(values) or values.ndim != 2 or values.dtype != matrix.dtype or values.dtype.char not in "fd":
        return wrapped(_ordered(matrix @ values))
    found = core.empty((matrix.shape[0], values.shape[1]), code_of(values.dtype))
    csr.dot(*map(np.ascontiguousarray, (matrix.indptr, matrix.indices, matrix.data, values)), core.as_numpy(found))
    return found


class _OfProduct:
    """The gradient of the product of a csr matrix, or its transpose, with another array."""

    def __init__(self, matrix: CSRNDArray, factor: Any, transposed: bool):
        self.matrix, self.factor, self.transposed = matrix._alias(), snapshot(factor), transposed
        self.by_rows = not transposed and isinstance(factor.grad, RowSparseNDArray)
        self.wanted = [handle(x) is not None for x in (matrix, factor)]

    def _backward(self, heads: list[NDArray]) -> list[Any]:
        made = self._of_matrix, self._of_factor
        return [make(heads[0]) for make, wanted in zip(made, self.wanted, strict=True) if wanted]

    def _of_matrix(self, head: NDArray) -> NDArray:
        factor = dense(self.factor)
        left, right = (x if x.ndim == 2 else x.reshape(-1, 1) for x in (head, factor))
        return _call("dot", *((right, left) if self.transposed else (left, right)), transpose_b=True)

    def _of_factor(self, head: NDArray) -> Any:
        if not tape.recording():
            return _product(self.matrix, head, not self.transposed, self.by_rows)
        if self.wanted[0]:
            return _call("dot", dense(self.matrix), head, transpose_a=not self.transposed)
        parts = [self.matrix.data, *map(wrapped, self.matrix._parts()[::-1])]
        return _call("_csr_dot", *parts, head, size=self.matrix.shape[1], transpose=not self.transposed)


# ---- tables ----------------------------------------------------------------------------------------------------------
def _embedding(name: str, data: Any, weight: Any, **params: Any) -> Any:
    if not isinstance(weight, RowSparseNDArray) or weight.ndim != 2 or not isinstance(data, Dense):
        return NotImplemented
    at = _numbers_of(data, len(weight))
    found = wrapped(rows_of(weight, at.ravel()).reshape(*data.shape, weight.shape[1]))
    inputs = involved([weight])
    return recorded(_OfTable(data, weight.shape), inputs, found) if inputs else found


def _numbers_of(data: NDArray, n: int) -> Any:
    """Return numbers of rows as ``take`` reads them: without fractions, the nearest row for what is out of range."""
    numbers = raw(data)
    xp = lib(numbers)
    if numbers.dtype.kind not in "iub":
        numbers = xp.nan_to_num(numbers.astype(np.float64), nan=0)
    return xp.clip(numbers, 0, n - 1).astype(np.int64)


@at_home
def rows_gradient(head: NDArray, data: NDArray, like: NDArray) -> Any:
    """Return the gradient of rows that were taken, ``like[data]``: row_sparse, unless it is to be differentiated."""
    if tape.recording():
        return _call("_take_grad", head, data, like)
    rows, places = _distinct(_numbers_of(data, len(like)), len(like))
    total = _call("_take_grad", head, wrapped(places), stand_in((len(rows), *like.shape[1:]), raw(head)))
    return RowSparseNDArray(raw(total), rows, like.shape)


class _OfTable:
    """The gradient of rows that were looked up in a row_sparse table."""

    def __init__(self, data: NDArray, shape: tuple[int, ...]):
        self.data, self.shape = data.copy(), shape

    def _backward(self, heads: list[NDArray]) -> list[Any]:
        return [rows_gradient(heads[0], self.data, stand_in(self.shape, raw(heads[0])))]


# ---- sums of squares -------------------------------------------------------------------------------------------------
def _square_sum(name: str, data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> Any:
    axis = axis[0] if isinstance(axis, (tuple, list)) and len(axis) == 1 else axis
    if not isinstance(data, RowSparseNDArray) or data.ndim != 2 or exclude or axis not in (1, -1):
        return NotImplemented
    sums = (data._values * data._values).sum(1, dtype=data.dtype, keepdims=True)
    found = RowSparseNDArray(sums, data._numbers, (len(data), 1))
    found = found if keepdims else found.todense().reshape(-1)
    inputs = involved([data])
    return recorded(_OfSquares(data), inputs, found) if inputs else found


class _OfSquares:
    """The gradient of sums of squares of rows: it has those rows of the data whose sums somebody used."""

    def __init__(self, data: RowSparseNDArray):
        self.data = data._alias()

    @at_home
    def _backward(self, heads: list[NDArray]) -> list[Any]:
        if tape.recording():
            return [2 * dense(self.data) * heads[0].reshape(-1, 1)]
        head = raw(heads[0]).ravel()[self.data._numbers]
        used = lib(head).flatnonzero(head)
        values = 2 * self.data._values[used] * head[used, None]
        return [RowSparseNDArray(values, self.data._numbers[used], self.data.shape)]


RULES: dict[str, Callable] = {"dot": _dot, "Embedding": _embedding, "_square_sum": _square_sum}
RECORDED = frozenset(RULES)
