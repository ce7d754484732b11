"""Random arrays in sparse storage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..support.errors import OpValueError
from .defaults import default_context, default_dtype
from .generate import assign_each, sparse_pattern


def rand_sparse_ndarray(shape: tuple[int, ...], stype: str, density: float | None = None, dtype: Any = None,
                        distribution: str | None = None, data_init: float | None = None,
                        rsp_indices: Sequence[int] | None = None, modifier_func: Callable[[float], float] | None = None,
                        shuffle_csr_indices: bool = False, ctx: Any = None) -> tuple[Any, tuple]:  # fmt: skip
    """Return a random sparse array, and what it is made of.

    Parameters
    ----------
    shape : tuple of int
    stype : {'row_sparse', 'csr'}
    density : float, optional
        Share of the rows, or elements, that are stored; random by default.
    dtype : dtype, optional
    distribution : {'uniform', 'powerlaw'}, optional
    data_init : float, optional
        The value of all elements that are stored.
    rsp_indices : list of int, optional
        The rows that are stored.
    modifier_func : callable, optional
        Is applied to each element that is stored.
    shuffle_csr_indices : bool
        Mix the columns of each row in the list of what is stored.
    ctx : Context, optional

    Returns
    -------
    NDArray
    tuple of arrays
        Values and rows; or for csr pointers, columns and values.
    """
    dtype, ctx = dtype or default_dtype(), ctx or default_context()
    density = np.random.rand() if density is None else density
    stored = np.zeros(shape, bool)
    if stype == "row_sparse" and rsp_indices is not None:
        stored[np.asarray(rsp_indices, int)] = True
    else:
        stored = np.broadcast_to(sparse_pattern(shape, stype, density, distribution or "uniform"), shape)
    values = np.full(shape, data_init, dtype) if data_init is not None else np.random.rand(*shape).astype(dtype)
    values = assign_each(values, modifier_func) if modifier_func is not None else values
    if stype == "row_sparse":
        rows = np.flatnonzero(stored.reshape(shape[0], -1).any(axis=1))
        parts: tuple = (values[rows], rows)
        made = nd.sparse.row_sparse_array(parts, shape=shape, dtype=dtype, ctx=ctx)
        return made, parts
    rows, columns = np.nonzero(stored)
    if shuffle_csr_indices:
        order = np.lexsort((np.random.rand(len(rows)), rows))
        columns = columns[order]
    pointers = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    made = nd.sparse.csr_matrix((values[rows, columns], columns, pointers), shape=shape, dtype=dtype, ctx=ctx)
    return made, (made.indptr, made.indices, made.data)


def create_sparse_array(shape: tuple[int, ...], stype: str, data_init: float | None = None,
                        rsp_indices: Sequence[int] | None = None, dtype: Any = None,
                        modifier_func: Callable[[float], float] | None = None, density: float = 0.5,
                        shuffle_csr_indices: bool = False) -> Any:  # fmt: skip
    """Return a random sparse array; parameters as for :func:`rand_sparse_ndarray`."""
    if stype not in ("row_sparse", "csr"):
        raise OpValueError(f"create_sparse_array: stype={stype!r} is neither 'row_sparse' nor 'csr'")
    rows = None if rsp_indices is None else sorted(rsp_indices)
    return rand_sparse_ndarray(shape, stype, density, dtype, None, data_init, rows, modifier_func, shuffle_csr_indices)[0]


def create_sparse_array_zd(shape: tuple[int, ...], stype: str, density: float, data_init: float | None = None,
                           rsp_indices: Sequence[int] | None = None, dtype: Any = None,
                           modifier_func: Callable[[float], float] | None = None,
                           shuffle_csr_indices: bool = False) -> Any:  # fmt: skip
    """Return a random sparse array, a row-sparse one without random rows."""
    density = 0.0 if stype == "row_sparse" else density
    return create_sparse_array(shape, stype, data_init, rsp_indices, dtype, modifier_func, density, shuffle_csr_indices)


def shuffle_csr_column_indices(csr: Any) -> None:
    """Mix the columns of each row in the list of what a csr matrix stores, in place."""
    for begin, end in zip(csr.indptr, csr.indptr[1:], strict=False):
        np.random.shuffle(csr.indices[int(begin) : int(end)])
