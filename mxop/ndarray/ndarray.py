"""``mx.nd.ndarray``: the path at which MXNet keeps what ``mx.nd`` has, for programs that import from there."""

import sys as _sys
from typing import Any as _Any

import numpy as _np

from .._core.core import NDArray as NDArray
from ..ops.indexing import expanded as _expanded
from ..support import dtypes as _dtypes
from ..support.errors import OpTypeError as _OpTypeError
from ..support.errors import OpValueError as _OpValueError
from ..support.errors import shown as _shown
from .creation import *  # noqa: F403
from .creation import __all__ as _made

_DTYPE_MX_TO_NP = {-1: None} | {code: _dtypes.numpy_dtype(code).type for code in _dtypes.NAMES if code != _dtypes.BFLOAT16}
_DTYPE_NP_TO_MX = {dtype: code for code, dtype in _DTYPE_MX_TO_NP.items()}
_GRAD_REQ_MAP = {"null": 0, "write": 1, "add": 3}
py_slice = slice  # programs write it where ``slice`` is the operator

_NDARRAY_BASIC_INDEXING, _NDARRAY_ADVANCED_INDEXING, _NDARRAY_EMPTY_TUPLE_INDEXING = 0, 1, 2
_NDARRAY_NO_ZERO_DIM_BOOL_ARRAY = -1


def get_indexing_dispatch_code(key: tuple) -> int:
    """Return 0 for a key of integers, slices and None, 1 where arrays are among them, 2 for an empty tuple in it."""
    if not isinstance(key, tuple):
        raise _OpTypeError(f"get_indexing_dispatch_code: key={_shown(key)} is not a tuple")
    for item in key:
        if isinstance(item, tuple) and not item:
            return _NDARRAY_EMPTY_TUPLE_INDEXING
        if isinstance(item, (NDArray, _np.ndarray, list, tuple, range)):
            return _NDARRAY_ADVANCED_INDEXING
        if not (item is None or isinstance(item, (slice, int, _np.int32, _np.int64))):
            raise _OpValueError(f"get_indexing_dispatch_code: {_shown(item)} is not an index of an NDArray")
    return _NDARRAY_BASIC_INDEXING


def indexing_key_expand_implicit_axes(key: _Any, shape: tuple[int, ...]) -> tuple[tuple, int]:
    """Return a key that names every axis, and -1, or 0 or 1 where it has a single False or True.

    Examples
    --------
    >>> indexing_key_expand_implicit_axes((slice(2), None, 0, ...), (3, 4, 5))
    ((slice(None, 2, None), None, 0, slice(None, None, None)), -1)
    """
    found: list[_Any] = []
    single = _NDARRAY_NO_ZERO_DIM_BOOL_ARRAY
    for item in key if isinstance(key, tuple) else (key,):
        mask = isinstance(item, (bool, _np.bool_)) or (isinstance(item, NDArray) and item.dtype == _np.bool_)
        if not mask:
            found.append(int(item.item()) if isinstance(item, NDArray) and not item.ndim else item)
        elif getattr(item, "ndim", 0):
            found += _np.nonzero(item.asnumpy())
        else:
            single = int(bool(item))
    used = sum(item is not None and item is not Ellipsis for item in found)
    return tuple(_expanded(found, len(shape), used)), single


def get_oshape_of_gather_nd_op(dshape: tuple[int, ...], ishape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of ``gather_nd`` of data and indices of these shapes."""
    return (*ishape[1:], *dshape[ishape[0] :])


__all__ = ["NDArray", "get_indexing_dispatch_code", "get_oshape_of_gather_nd_op", "indexing_key_expand_implicit_axes",
           "py_slice", *_made]  # fmt: skip


def __getattr__(name: str) -> _Any:
    return getattr(_sys.modules[__package__], name)  # waitall, maximum... and the error for what is not there


def __dir__() -> list[str]:
    return dir(_sys.modules[__package__])
