"""What operators do with sparse arrays: those that keep the storage, products, updates of rows; all others take dense ones.

A dense fallback says so once for each operator (not where the environment variable ``MXNET_STORAGE_FALLBACK_LOG_VERBOSE`` is
0).  While autograd records, gradients are those of the dense operators, but for products with a csr matrix.
Imports NumPy, :mod:`.arrays`, :mod:`mxop.autograd` on use and SciPy on use.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core import core
from ...errors import translated
from ...opdef import registry
from ...ops.binary import PYTHON_NAMES
from .arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, cast_storage, host, scipy_sparse

NDArray = core.NDArray
NAMES = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}
#: Operators of one array that are zero at zero.
_OF_ONE = (
    "BlockGrad", "_copy", "abs", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "clip", "degrees", "expm1", "fix",
    "floor", "log1p", "make_loss", "negative", "radians", "relu", "rint", "round", "sign", "sin", "sinh", "sqrt", "square",
    "tan", "tanh", "trunc",
)  # fmt: skip
#: Operators of an array and a number that keep the storage where they are zero at zero.
_OF_NUMBERS = ("_mul_scalar", "_div_scalar", "_equal_scalar", "_not_equal_scalar", "_greater_scalar", "_greater_equal_scalar",
               "_lesser_scalar", "_lesser_equal_scalar")  # fmt: skip
_BINARY = {f"{form}_{short}": name for form in ("broadcast", "elemwise")
           for short, name in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("div", "divide"))}  # fmt: skip
_told: set[str] = set()


def is_recording() -> bool:
    """Tell whether autograd records."""
    from ... import autograd

    return autograd.is_recording()


# ---- the way in ------------------------------------------------------------------------------------------------------
def apply(name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Apply an operator, or a function of ``mx.nd`` that takes arrays and numbers, to arguments of which one is sparse."""
    if name in PYTHON_NAMES:
        return binary(name, *args)
    rule = RULES.get(name)
    found = NotImplemented
    if rule is not None and (not is_recording() or name == "dot"):
        with translated(f"operator {name}"):
            found = rule(name, *args, **kwargs)
    return _dense_call(name, args, kwargs) if found is NotImplemented else found


def _dense_call(name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Apply an operator to dense arrays instead."""
    if name not in _told and os.environ.get("MXNET_STORAGE_FALLBACK_LOG_VERBOSE") != "0":
        _told.add(name)
        warnings.warn(f"operator {name} has no form for sparse arrays: it runs on dense ones, from now on silently",
                      UserWarning, stacklevel=4)  # fmt: skip
    function = _function(name)
    return function(*map(_dense, args), **{k: v if k == "out" else _dense(v) for k, v in kwargs.items()})


def _function(name: str) -> Callable:
    from ... import ndarray as nd

    return getattr(nd, name) if name in PYTHON_NAMES else core.op_function(registry.get(name))


def _dense(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_dense, value))
    return value.todense() if isinstance(value, BaseSparseNDArray) else value


def _applied(name: str, values: np.ndarray, **kwargs: Any) -> np.ndarray:
    """Return what a dense operator makes of values."""
    return _function(name)(core.from_numpy(values, False), **kwargs).asnumpy()


# ---- element by element ----------------------------------------------------------------------------------------------
def _of_one(name: str, data: Any, *args: Any, **kwargs: Any) -> Any:
    params = dict(zip(registry.get(name).spec.names, args, strict=False)) | kwargs
    if params.pop("out", None) is not None or _at_zero(name, data, params) != 0:
        return NotImplemented
    return data._with(_applied(name, data._values, **params))


def _at_zero(name: str, data: Any, params: dict[str, Any]) -> Any:
    return _applied(name, np.zeros(1, data.dtype), **params)[0]


def binary(name: str, lhs: Any, rhs: Any) -> Any:
    """Apply ``add``, ``multiply``, ``greater``... to a sparse array and another, or a number."""
    found = NotImplemented
    if not is_recording():
        numbers = [np.ndim(v) == 0 and not isinstance(v, (NDArray, BaseSparseNDArray)) for v in (lhs, rhs)]
        choice = PYTHON_NAMES.get(name)
        if numbers[1] and choice is not None and choice.scalar in _OF_NUMBERS:
            found = _of_one(choice.scalar, lhs, scalar=rhs)
        elif numbers[0] and name == "multiply":
            found = _of_one("_mul_scalar", rhs, scalar=lhs)
        elif not any(numbers) and name in NAMES:
            with translated(f"operator {PYTHON_NAMES[name].arrays}"):
                found = _of_two(name, lhs, rhs)
    return _dense_call(name, (lhs, rhs), {}) if found is NotImplemented else found


def _of_two(name: str, lhs: Any, rhs: Any) -> Any:
    if isinstance(lhs, CSRNDArray):
        return _csr_and(name, lhs, rhs)
    if not isinstance(lhs, RowSparseNDArray) or lhs.shape != rhs.shape:
        return NotImplemented
    if isinstance(rhs, RowSparseNDArray) and name != "divide":
        rows = np.union1d(lhs._numbers, rhs._numbers)
        a, b = (_rows_of(x, rows) for x in (lhs, rhs))
        return RowSparseNDArray(NAMES[name](a, b), rows, lhs.shape)
    if isinstance(rhs, NDArray) and name == "multiply":
        return lhs._with(lhs._values * host(rhs)[lhs._numbers])
    return NotImplemented


def _csr_and(name: str, lhs: CSRNDArray, rhs: Any) -> Any:
    if isinstance(rhs, CSRNDArray) and lhs.shape == rhs.shape and name != "divide":
        a, b = lhs._matrix, rhs._matrix
        return CSRNDArray(a + b if name == "add" else a - b if name == "subtract" else a.multiply(b).tocsr())
    if isinstance(rhs, NDArray) and name in ("multiply", "divide"):
        other = np.broadcast_to(host(rhs), lhs.shape)[lhs._rows(), lhs._matrix.indices]
        with np.errstate(all="ignore"):
            return lhs._with(NAMES[name](lhs._values, other))
    return NotImplemented


def _rows_of(data: RowSparseNDArray, rows: np.ndarray) -> np.ndarray:
    """Return these rows, of which some may not be stored."""
    found = np.zeros((len(rows), *data.shape[1:]), data.dtype)
    found[np.searchsorted(rows, data._numbers)] = data._values
    return found


def _two(name: str, lhs: Any, rhs: Any, **kwargs: Any) -> Any:
    return NotImplemented if kwargs else _of_two(_BINARY[name], lhs, rhs)


# ---- products --------------------------------------------------------------------------------------------------------
def _dot(name: str, lhs: Any, rhs: Any, transpose_a: bool = False, transpose_b: bool = False, forward_stype: Any = None,
         **kwargs: Any) -> Any:  # fmt: skip
    if kwargs or transpose_b:
        return NotImplemented
    if isinstance(lhs, CSRNDArray) and isinstance(rhs, (NDArray, RowSparseNDArray)) and rhs.ndim <= 2:
        if is_recording():
            parts = [lhs.data, *(core.from_numpy(part, False) for part in lhs._parts()[::-1])]
            return _function("_csr_dot")(*parts, _dense(rhs), size=lhs.shape[1], transpose=transpose_a)
        matrix = lhs._matrix.T if transpose_a else lhs._matrix
        if transpose_a and forward_stype in (None, "row_sparse"):
            rows = np.unique(lhs._matrix.indices)
            return RowSparseNDArray(
                np.asarray(matrix.tocsr()[rows] @ host(rhs)), rows, (matrix.shape[0], *rhs.shape[1:])
            )
        return core.from_numpy(np.ascontiguousarray(matrix @ host(rhs)), False)
    plain = isinstance(lhs, NDArray) and lhs.ndim == 2 and not transpose_a and not is_recording()
    if plain and isinstance(rhs, CSRNDArray) and forward_stype in (None, "csr"):
        return CSRNDArray((scipy_sparse().csr_matrix(host(lhs)) @ rhs._matrix).tocsr())
    return NotImplemented


# ---- sums, parts, joins ----------------------------------------------------------------------------------------------
def _sum(name: str, data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, **kwargs: Any) -> Any:
    axis = axis[0] if isinstance(axis, (tuple, list)) and len(axis) == 1 else axis
    if not isinstance(data, CSRNDArray) or kwargs or keepdims or exclude or axis not in (None, 0, 1, -1, -2):
        return NotImplemented
    found = np.asarray(data._matrix.sum(axis)).ravel().astype(data.dtype)
    if name == "mean":
        found = (found / (data.size if axis is None else data.shape[axis])).astype(data.dtype)
    return core.from_numpy(found, False)


def _add_n(name: str, *args: Any, **kwargs: Any) -> Any:
    arrays = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    if not all(isinstance(a, RowSparseNDArray) for a in arrays):
        return NotImplemented
    total = arrays[0]
    for a in arrays[1:]:
        total = _of_two("add", total, a)
    return total


def _concat(name: str, *args: Any, dim: int = 1, **kwargs: Any) -> Any:
    arrays = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    if dim != 0 or not all(isinstance(a, CSRNDArray) for a in arrays):
        return NotImplemented
    return CSRNDArray(scipy_sparse().vstack([a._matrix for a in arrays], format="csr"))


def _take(name: str, a: Any, indices: Any, axis: int = 0, mode: str = "clip") -> Any:
    if not isinstance(a, CSRNDArray) or axis != 0 or mode == "raise" or np.ndim(host(indices)) != 1:
        return NotImplemented
    rows = host(indices, np.int64)
    return CSRNDArray(a._matrix[np.clip(rows, 0, a.shape[0] - 1) if mode == "clip" else rows % a.shape[0]])


def _zeros_like(name: str, data: Any, **kwargs: Any) -> Any:
    from .creation import zeros

    return zeros(data.stype, data.shape, dtype=data.dtype)


def _retain(name: str, data: Any, indices: Any, **kwargs: Any) -> Any:
    return data.retain(indices) if isinstance(data, RowSparseNDArray) and not kwargs else NotImplemented


def _getnnz(name: str, data: Any, axis: Any = None, **kwargs: Any) -> Any:
    if not isinstance(data, CSRNDArray) or kwargs or axis not in (None, 0, 1):
        return NotImplemented
    matrix = data._matrix
    counts = (
        [matrix.nnz]
        if axis is None
        else np.diff(matrix.indptr)
        if axis
        else np.bincount(matrix.indices, minlength=matrix.shape[1])
    )
    return core.from_numpy(np.asarray(counts, np.int64), False)


def _edge_id(name: str, data: Any, u: Any, v: Any, **kwargs: Any) -> Any:
    if not isinstance(data, CSRNDArray) or kwargs:
        return NotImplemented
    matrix, places = data._matrix, (host(u, np.int64), host(v, np.int64))
    marks = scipy_sparse().csr_matrix((np.ones_like(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    values, there = (np.asarray(m[places]).ravel() for m in (matrix, marks))
    return core.from_numpy(np.where(there != 0, values, np.asarray(-1, values.dtype)), False)


def _cast_storage(name: str, data: Any, stype: str) -> Any:
    return cast_storage(data, stype)


# ---- updates of the rows of a gradient ---------------------------------------------------------------------------------
def _update(
    name: str, weight: Any, grad: Any, *states: Any, lazy_update: bool = True, out: Any = None, **params: Any
) -> Any:
    """Update the rows that the gradient has, of the weight and of the states, and leave the others as they are."""
    dense = all(isinstance(a, NDArray) for a in (weight, *states))
    if not dense or not isinstance(grad, RowSparseNDArray) or not lazy_update:
        return NotImplemented
    rows = core.from_numpy(grad._numbers.astype(np.int64), False)
    parts = [a.take(rows, axis=0) for a in (weight, *states)]
    new = _function(name)(parts[0], grad.data, *parts[1:], **params)
    target = weight.copy() if out is None else out
    if out is not None and out is not weight:
        out[:] = weight
    for array, part in zip((target, *states), (new, *parts[1:]), strict=True):
        array[rows] = part
    return target


RULES: dict[str, Callable] = {
    **dict.fromkeys((*_OF_ONE, *_OF_NUMBERS), _of_one),
    **dict.fromkeys(_BINARY, _two),
    **dict.fromkeys(("sgd_update", "sgd_mom_update", "adam_update", "_sparse_adagrad_update", "ftrl_update"), _update),
    "dot": _dot, "sum": _sum, "mean": _sum, "add_n": _add_n, "Concat": _concat, "take": _take, "zeros_like": _zeros_like,
    "_sparse_retain": _retain, "_contrib_getnnz": _getnnz, "_contrib_edge_id": _edge_id, "cast_storage": _cast_storage,
}  # fmt: skip


# ---- functions of mx.nd.sparse -----------------------------------------------------------------------------------------
def _of_python(name: str) -> Callable:
    def function(lhs: Any, rhs: Any) -> Any:
        sparse = isinstance(lhs, BaseSparseNDArray) or isinstance(rhs, BaseSparseNDArray)
        return binary(name, lhs, rhs) if sparse else _function(name)(lhs, rhs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Apply ``mx.nd.{name}``, which keeps the storage where it can."
    return function


add, subtract, multiply, divide = map(_of_python, NAMES)


def retain(data: Any, indices: Any) -> Any:
    """Keep the rows of a row_sparse array that `indices` names.

    Examples
    --------
    >>> import mxop as mx
    >>> x = mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 2]), shape=(3, 2))
    >>> mx.nd.sparse.retain(x, mx.nd.array([2])).indices.asnumpy().tolist()
    [2]
    """
    return (
        _retain("_sparse_retain", data, indices) if isinstance(data, RowSparseNDArray) else _rows_alone(data, indices)
    )


def _rows_alone(data: Any, indices: Any) -> Any:
    return core.op_function(registry.get("_sparse_retain"))(data, indices)


__all__: Sequence[str] = ("add", "divide", "multiply", "retain", "subtract")
