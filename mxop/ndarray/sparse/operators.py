"""What operators do with sparse arrays: those that keep the storage, products, updates of rows; all others take dense ones.

A dense fallback says so once for each operator (not where the environment variable ``MXNET_STORAGE_FALLBACK_LOG_VERBOSE`` is
0).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ..._core import core
from ...opdef import registry
from ...opdef.above import ask
from ...ops.binary import PYTHON_NAMES
from ...support.errors import MXNetError, OpLookupError, translated
from ...support.missing import error
from ...support.nested import leaves
from . import products, updates
from .arrays import (
    BaseSparseNDArray,
    CSRNDArray,
    RowSparseNDArray,
    cast_storage,
    dense,
    host,
    nothing,
    on_device,
    rows_of,
    written,
)
from .history import Again, involved, recorded
from .memory import at_home, lib, on_gpu, raw, scipy_sparse, wrapped

Dense = core.Dense
NDArray = core.NDArray
NAMES = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}
#: Operators of one array that are zero at zero.
_OF_ONE = (
    "BlockGrad", "_contrib_quadratic", "_copy", "abs", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "clip",
    "degrees", "expm1", "fix", "floor", "log1p", "make_loss", "negative", "radians", "relu", "rint", "round", "sign", "sin",
    "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip
#: Operators of an array and a number that keep the storage where they are zero at zero, or (scatter) always.
_OF_NUMBERS = (
    "_plus_scalar", "_minus_scalar", "_mul_scalar", "_div_scalar", "_equal_scalar", "_not_equal_scalar", "_greater_scalar",
    "_greater_equal_scalar", "_lesser_scalar", "_lesser_equal_scalar", "_scatter_plus_scalar", "_scatter_minus_scalar",
)  # fmt: skip
_BINARY = {f"{form}_{short}": name for form in ("broadcast", "elemwise")
           for short, name in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("div", "divide"))}  # fmt: skip
#: Of two row_sparse arrays alone.
_BINARY |= {form + name: name for form in ("broadcast_", "_") for name in ("maximum", "minimum", "hypot")}
#: Whose rules for csr matrices are SciPy's alone.
_ON_CPU = ("sum", "mean", "Concat", "take", "slice", "_contrib_getnnz", "_contrib_edge_id")
_told: set[str] = set()


# ---- the way in ------------------------------------------------------------------------------------------------------
def apply(name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Apply an operator, or a function of ``mx.nd`` that takes arrays and numbers, to arguments of which one is sparse."""
    return binary(name, *args) if name in PYTHON_NAMES else _by_rule(name, RULES.get(name), args, kwargs)


def _by_rule(name: str, rule: Callable | None, args: tuple, kwargs: dict[str, Any], shown: str = "") -> Any:
    """Apply the rule of an operator, where it has one for these arguments; autograd records what came out."""
    inputs = involved((*args, *kwargs.values()))
    out = None if rule is updates.update else kwargs.pop("out", None)
    found = NotImplemented
    if rule is not None and not (inputs and rule is updates.update) and _any_sparse(args, kwargs) and not _left_out(name, args):
        with translated(f"operator {shown or name}"):
            found = at_home(rule)(name, *args, **kwargs)
    if found is NotImplemented:
        found = _dense_call(name, args, kwargs)
        return found if out is None else written(found, out, shown or name)
    device = next((a._context for a in leaves(args) if isinstance(a, BaseSparseNDArray) and a._context), None)
    if device is not None and rule is not updates.update:
        on_device(found, device)
    if inputs and name not in products.RECORDED and name != "Custom":  # which record themselves
        recorded(Again(function_of(name), dense, args, kwargs), inputs, found)
    return found if out is None else written(found, out, shown or name)


def _left_out(name: str, args: tuple) -> bool:
    """Return whether a rule is one for csr matrices in the memory of the CPU, and one is on a GPU."""
    return name in _ON_CPU and any(isinstance(a, CSRNDArray) and on_gpu(a._values) for a in leaves(args))


def _any_sparse(args: tuple, kwargs: dict[str, Any]) -> bool:
    return any(isinstance(a, BaseSparseNDArray) for a in leaves((*args, *kwargs.values())))


def _dense_call(name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Apply an operator to dense arrays instead."""
    if name not in _told and _any_sparse(args, kwargs) and os.environ.get("MXNET_STORAGE_FALLBACK_LOG_VERBOSE") != "0":
        _told.add(name)
        warnings.warn(f"operator {name} has no form for sparse arrays: it runs on dense ones, from now on silently",
                      UserWarning, stacklevel=5)  # fmt: skip
    given, named = dense(args), {k: dense(v) for k, v in kwargs.items()}
    found = function_of(name)(*given, **named)
    if name == "Custom" or (name not in PYTHON_NAMES and registry.get(name).writes):
        for old, new in zip(args, given, strict=True):
            if isinstance(old, BaseSparseNDArray):  # a state, perhaps
                old[:] = new
    return found


def function_of(name: str) -> Callable:
    """Return the function of dense arrays, of an operator or of ``mx.nd``."""
    if name not in PYTHON_NAMES:
        return core.op_function(registry.get(name))
    return getattr(core.namespace(), name)


def _applied(name: str, values: np.ndarray, **kwargs: Any) -> np.ndarray:
    """Return what a dense operator makes of values."""
    return raw(function_of(name)(wrapped(values), **kwargs))


# ---- element by element ----------------------------------------------------------------------------------------------
def _of_one(name: str, data: Any, *args: Any, **kwargs: Any) -> Any:
    params = dict(zip(registry.get(name).spec.names, args, strict=False)) | kwargs
    if params.pop("out", None) is not None or (not name.startswith("_scatter") and _at_zero(name, data, params) != 0):
        return NotImplemented
    return data._with(_applied(name, data._values, **params))


def _at_zero(name: str, data: Any, params: dict[str, Any]) -> Any:
    return _applied(name, np.zeros(1, data.dtype), **params)[0]


def binary(name: str, lhs: Any, rhs: Any) -> Any:
    """Apply ``add``, ``multiply``, ``greater``... to a sparse array and another, or a number."""
    return _by_rule(name, _python, (lhs, rhs), {}, PYTHON_NAMES[name].arrays)


def _python(name: str, lhs: Any, rhs: Any) -> Any:
    left, right = (np.ndim(v) == 0 and not isinstance(v, NDArray) for v in (lhs, rhs))
    if right and PYTHON_NAMES[name].scalar in _OF_NUMBERS:
        return _of_one(PYTHON_NAMES[name].scalar, lhs, scalar=rhs)
    if left and name in ("add", "multiply"):
        return _of_one(PYTHON_NAMES[name].scalar, rhs, scalar=lhs)
    return _of_two(name, lhs, rhs) if not left and not right else NotImplemented


def _of_two(name: str, lhs: Any, rhs: Any) -> Any:
    if isinstance(lhs, Dense) and (name == "add" and isinstance(rhs, RowSparseNDArray)):
        lhs, rhs = rhs, lhs
    if isinstance(lhs, CSRNDArray):
        return _csr_and(name, lhs, rhs)
    if not isinstance(lhs, RowSparseNDArray) or lhs.shape != rhs.shape:
        return NotImplemented
    if isinstance(rhs, RowSparseNDArray) and name in _BINARY.values() and name != "divide":
        xp = lib(lhs._numbers)
        rows = xp.unique(xp.concatenate([lhs._numbers, rhs._numbers]))
        values = function_of(name)(*(wrapped(rows_of(x, rows)) for x in (lhs, rhs)))
        return RowSparseNDArray(raw(values), rows, lhs.shape)
    if isinstance(rhs, Dense) and name == "multiply":
        return lhs._with(lhs._values * raw(rhs)[lhs._numbers])
    if isinstance(rhs, Dense) and name == "add":
        total = raw(rhs).copy()
        total[lhs._numbers] += lhs._values
        return wrapped(total)
    return NotImplemented


def _csr_and(name: str, lhs: CSRNDArray, rhs: Any) -> Any:
    if on_gpu(lhs._values) or name not in NAMES:
        return NotImplemented
    if isinstance(rhs, CSRNDArray) and lhs.shape == rhs.shape and name != "divide":
        a, b = lhs._matrix, rhs._matrix
        return CSRNDArray(a + b if name == "add" else a - b if name == "subtract" else a.multiply(b).tocsr())
    if isinstance(rhs, Dense) and (name == "multiply" or (name == "divide" and lhs.shape != rhs.shape)):
        other = np.broadcast_to(host(rhs), lhs.shape)[lhs._rows(), lhs._matrix.indices]
        with np.errstate(all="ignore"):
            return lhs._with(NAMES[name](lhs._values, other))
    return NotImplemented


def _two(name: str, lhs: Any, rhs: Any, **kwargs: Any) -> Any:
    if kwargs or name == "elemwise_div":
        return NotImplemented
    if name == "elemwise_mul" and isinstance(lhs, Dense):
        lhs, rhs = rhs, lhs
    return _of_two(_BINARY[name], lhs, rhs)


def _divided(name: str, lhs: Any, rhs: Any) -> Any:
    if not isinstance(lhs, RowSparseNDArray) or lhs.shape != rhs.shape:
        return NotImplemented
    return lhs._with(raw(function_of(name)(wrapped(lhs._values), wrapped(raw(dense(rhs))[lhs._numbers]))))


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


def _slice(name: str, data: Any, begin: Any = (), end: Any = (), step: Any = ()) -> Any:
    begin, end = (v if isinstance(v, (tuple, list)) else (v,) for v in (begin, end))
    if not isinstance(data, CSRNDArray) or any(s not in (None, 1) for s in step or ()) or not 0 < len(begin) <= 2:
        return NotImplemented
    return CSRNDArray(data._matrix[tuple(map(slice, begin, end))])


def _zeros_like(name: str, data: Any, **kwargs: Any) -> Any:
    return nothing(data.stype, data.shape, data.dtype, data.context)


def _retain(name: str, data: Any, indices: Any, **kwargs: Any) -> Any:
    return data.retain(indices) if isinstance(data, RowSparseNDArray) and not kwargs else NotImplemented


def _getnnz(name: str, data: Any, axis: Any = None, **kwargs: Any) -> Any:
    if not isinstance(data, CSRNDArray) or kwargs or axis not in (None, 0, 1):
        return NotImplemented
    counts = np.reshape(data._matrix.getnnz(axis), -1)  # also of zeros that are stored
    return core.from_numpy(np.asarray(counts, np.int64), False)


def _edge_id(name: str, data: Any, u: Any, v: Any, **kwargs: Any) -> Any:
    if not isinstance(data, CSRNDArray) or kwargs:
        return NotImplemented
    matrix, places = data._matrix, (host(u, np.int64), host(v, np.int64))
    marks = scipy_sparse().csr_matrix((np.ones_like(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    values, there = (np.asarray(m[places]).ravel() for m in (matrix, marks))
    return core.from_numpy(np.where(there != 0, values, np.asarray(-1, values.dtype)), False)


RULES: dict[str, Callable] = {
    **dict.fromkeys((*_OF_ONE, *_OF_NUMBERS), _of_one),
    **dict.fromkeys(_BINARY, _two),
    **products.RULES,
    **dict.fromkeys(updates.NAMES, updates.update),
    "sum": _sum, "mean": _sum, "add_n": _add_n, "Concat": _concat, "take": _take, "slice": _slice,
    "zeros_like": _zeros_like, "_scatter_elemwise_div": _divided,
    "_sparse_retain": _retain, "_contrib_getnnz": _getnnz, "_contrib_edge_id": _edge_id,
    "cast_storage": lambda name, data, stype: cast_storage(data, stype),
    "Custom": lambda name, *args, **kwargs: ask("custom_of_sparse")(registry.get(name), args, kwargs),
}  # fmt: skip


# ---- functions of mx.nd.sparse -----------------------------------------------------------------------------------------
def _of_python(name: str) -> Callable:
    def function(lhs: Any, rhs: Any) -> Any:
        sparse = isinstance(lhs, BaseSparseNDArray) or isinstance(rhs, BaseSparseNDArray)
        if sparse and name == "multiply" and isinstance(lhs, Dense):
            return binary(name, rhs, lhs)
        return binary(name, lhs, rhs) if sparse else function_of(name)(lhs, rhs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Apply ``mx.nd.{name}``, which keeps the storage where it can."
    return function


add, subtract, multiply, divide = map(_of_python, NAMES)


def retain(data: Any, indices: Any = None, **kwargs: Any) -> Any:
    """Keep the rows of a row_sparse array that `indices` names.

    Examples
    --------
    >>> x = mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 2]), shape=(3, 2))
    >>> mx.nd.sparse.retain(x, mx.nd.array([2])).indices.asnumpy().tolist()
    [2]
    """
    return function_of("_sparse_retain")(*(a for a in (data, indices) if a is not None), **kwargs)


# ---- what this gives to the classes ------------------------------------------------------------------------------------
def _operator(self: Any, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Apply a function of ``mx.nd`` that was called with a sparse array."""
    return apply(name, args, kwargs)


def _method(self: Any, name: str) -> Any:
    """Return an operator as a method."""
    op = None if name.startswith("_") else registry.find(name)
    if op is None:
        told, known = (
            f"{type(self).__name__!r} object has no attribute {name!r}",
            partial(chain, dir(self), registry.names()),
        )
        if hasattr(core.NDArray, name):
            raise OpLookupError(f"{told}; a dense array has it: x.tostype('default').{name}")
        raise error(told, name, "NDArray", known)
    return lambda *args, **kwargs: apply(op.name, (self, *args), kwargs)


def _sign(name: str, swapped: bool = False) -> Callable:
    """Return the method of a sign, such as ``+``."""
    return lambda self, other: binary(name, other, self) if swapped else binary(name, self, other)


def _in_place(name: str) -> Callable:
    """Return the method of a sign such as ``+=``, which leaves the storage as it is."""

    def method(self: Any, other: Any) -> Any:
        if involved([self, other]):
            raise MXNetError(f"{type(self).__name__}: nothing that autograd records can be written in place")
        self[:] = binary(name, self, other)
        return self

    return method


def _install() -> None:
    """Put methods that are operators on the classes."""
    methods: dict[str, Any] = {"__mxop_operator__": _operator, "__getattr__": _method}
    for sign, name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power",
                       "mod": "modulo"}.items():  # fmt: skip
        methods |= {
            f"__{sign}__": _sign(name),
            f"__r{sign}__": _sign(name, swapped=True),
            f"__i{sign}__": _in_place(name),
        }
    for sign, name in {"gt": "greater", "ge": "greater_equal", "lt": "lesser", "le": "lesser_equal", "eq": "equal",
                       "ne": "not_equal"}.items():  # fmt: skip
        methods[f"__{sign}__"] = _sign(name)
    methods["T"] = property(lambda self: apply("transpose", (self,), {}), doc="The transposed array, dense.")
    methods["__neg__"] = lambda self: apply("negative", (self,), {})
    methods["__abs__"] = lambda self: apply("abs", (self,), {})
    for name, method in methods.items():
        setattr(BaseSparseNDArray, name, method)


_install()


__all__: Sequence[str] = ("add", "divide", "multiply", "retain", "subtract")
