"""Functions that make sparse arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ...support import dtypes
from ...support.errors import OpTypeError, OpValueError, translated
from ..blank import device, filled, shape_of
from .arrays import (
    BaseSparseNDArray,
    CSRNDArray,
    RowSparseNDArray,
    cast_storage,
    checked_stype,
    host,
    nothing,
    of_csr,
    of_rows,
)
from .memory import scipy_sparse


def _typed(values: Any, dtype: Any) -> np.ndarray:
    """Return values in a type: by default that of an array, and float32 of all else."""
    if dtype is None:
        dtype = values.dtype if isinstance(values, np.ndarray) or hasattr(values, "asnumpy") else "float32"
    found, code = host(values), dtypes.code_of(dtype)
    if not getattr(values, "ndim", 0):
        dtypes.check_numbers(found, code, "a sparse array")
    return found.astype(dtypes.numpy_dtype(code))


def _is_shape(arg: Any) -> bool:
    return isinstance(arg, tuple) and all(isinstance(d, (int, np.integer)) for d in arg)


def _telling(function: Callable) -> Callable:
    """Decorate a function that makes an array on the CPU: it goes to a device, and what NumPy and SciPy say names it."""

    @wraps(function)
    def told(arg1: Any, shape: Any = None, ctx: Any = None, dtype: Any = None) -> Any:
        with translated(function.__name__):
            return function(arg1, shape, ctx, dtype).as_in_context(device(ctx, f"sparse.{function.__name__}"))

    return told


@_telling
def csr_matrix(arg1: Any, shape: Any = None, ctx: Any = None, dtype: Any = None) -> CSRNDArray:
    """Make a csr matrix.

    Parameters
    ----------
    arg1 : array-like, sparse array, matrix of SciPy, or tuple
        ``(data, indices, indptr)``: values, their columns, and where each row begins; ``(data, (row, column))``; a shape,
        ``(rows, columns)``; or what holds all elements.
    shape : tuple of int, optional
    ctx : Context, optional
        The device; by default the current one.
    dtype : optional
        Element type; by default that of an array, and float32 of all else.

    Examples
    --------
    >>> x = mx.nd.sparse.csr_matrix(([5, 7], [1, 0], [0, 1, 1, 2]), shape=(3, 2))
    >>> x.asnumpy().tolist()
    [[0.0, 5.0], [0.0, 0.0], [7.0, 0.0]]
    """
    if _is_shape(arg1):
        if len(arg1) != 2 or tuple(shape or arg1) != arg1:
            raise OpValueError(f"csr_matrix: the shape {arg1} is not that of a matrix, or not shape={shape}")
        return zeros("csr", arg1, dtype=dtype)
    if isinstance(arg1, tuple) and len(arg1) == 3:
        data, indices, indptr = arg1
        values, indices, indptr = _typed(data, dtype), host(indices, np.int64), host(indptr, np.int64)
        if shape is None:
            if not len(indices):
                raise OpValueError("csr_matrix: invalid shape: without indices it cannot be inferred; say shape=")
            shape = (len(indptr) - 1, int(indices.max()) + 1)
        return of_csr(values, indices, indptr, tuple(shape))
    if isinstance(arg1, tuple) and len(arg1) == 2:
        data, (row, column) = arg1
        values = _typed(data, dtype)
        made = scipy_sparse().coo_matrix((values, (host(row, np.int64), host(column, np.int64))), shape=shape)
        return CSRNDArray(made.tocsr())
    if scipy_sparse().issparse(arg1):
        arg1 = arg1.tocsr(copy=True)
        arg1.sum_duplicates()
        made = of_csr(_typed(arg1.data, dtype), arg1.indices, arg1.indptr, arg1.shape)
    elif isinstance(arg1, BaseSparseNDArray):
        made = cast_storage(arg1, "csr")
        made = made if dtype is None else made.astype(dtype)
    else:
        made = cast_storage(_typed(arg1, dtype), "csr")
    if shape is not None and tuple(shape) != made.shape:
        raise OpValueError(f"csr_matrix: the source has shape {made.shape}, but shape={shape}")
    return made


@_telling
def row_sparse_array(arg1: Any, shape: Any = None, ctx: Any = None, dtype: Any = None) -> RowSparseNDArray:
    """Make a row_sparse array.

    Parameters
    ----------
    arg1 : array-like, sparse array, or tuple
        ``(data, indices)``: rows and their numbers; a shape; or what holds all elements.
    shape, ctx, dtype
        As of ``csr_matrix``.

    Examples
    --------
    >>> mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [2, 0]), shape=(3, 2)).asnumpy().tolist()
    [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]
    """
    if _is_shape(arg1) and len(arg1) != 2:
        return zeros("row_sparse", arg1, dtype=dtype)
    if isinstance(arg1, tuple):
        if len(arg1) != 2:
            raise OpValueError(f"row_sparse_array: a tuple of {len(arg1)} items; expected (data, indices) or a shape")
        if _is_shape(arg1):
            return zeros("row_sparse", arg1, dtype=dtype)
        values, rows = _typed(arg1[0], dtype), host(arg1[1], np.int64)
        if shape is None:
            if not len(rows):
                raise OpValueError("row_sparse_array: invalid shape: without indices it cannot be inferred; say shape=")
            shape = (int(rows.max()) + 1, *values.shape[1:])
        if values.shape != (len(rows), *shape[1:]):
            raise OpValueError(f"row_sparse_array: data of shape {values.shape} for {len(rows)} rows of shape {tuple(shape)}")
        return of_rows(values, rows, tuple(shape))
    made = cast_storage(arg1 if isinstance(arg1, BaseSparseNDArray) else _typed(arg1, dtype), "row_sparse")
    if shape is not None and tuple(shape) != made.shape:
        raise OpValueError(f"row_sparse_array: the source has shape {made.shape}, but shape={shape}")
    return made if dtype is None else made.astype(dtype)


def zeros(stype: str, shape: Any, ctx: Any = None, dtype: Any = None) -> Any:
    """Make zeros of a storage type, none of which is stored.

    Examples
    --------
    >>> x = mx.nd.sparse.zeros("csr", (2, 3))
    >>> x.stype, x.shape, x.data.shape
    ('csr', (2, 3), (0,))
    """
    sizes = shape_of(shape, "sparse.zeros")
    if checked_stype(stype, "sparse.zeros") == "default":
        return filled(sizes, dtypes.code_of("float32" if dtype is None else dtype), device(ctx, "sparse.zeros"), 0)
    return nothing(stype, sizes, "float32" if dtype is None else dtype, device(ctx, "sparse.zeros"))


def empty(stype: str, shape: Any, ctx: Any = None, dtype: Any = None) -> Any:
    """Make an array of which nothing is stored: zeros."""
    return zeros(stype, shape, ctx, dtype)


def array(source_array: Any, ctx: Any = None, dtype: Any = None) -> Any:
    """Make a copy of a sparse array or of a matrix of SciPy.

    Examples
    --------
    >>> mx.nd.sparse.array(mx.nd.sparse.zeros("csr", (2, 3))).stype
    'csr'
    """
    if isinstance(source_array, BaseSparseNDArray):
        return source_array.copy() if dtype is None else source_array.astype(dtype)
    if scipy_sparse().issparse(source_array):
        return csr_matrix(source_array, dtype=dtype)
    raise OpTypeError(
        f"sparse.array: expected a sparse array, got {type(source_array).__name__}; mx.nd.array makes a dense one"
    )
