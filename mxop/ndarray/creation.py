"""Functions that make arrays: ``nd.array``, ``nd.zeros``, ``nd.arange``...

Every one takes ``ctx`` (the current context by default) and ``dtype`` (float32 by default).
"""

from __future__ import annotations

import operator
import sys
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import core
from .._core.views import plain_array, plain_filled, plain_range
from ..context import Context, is_first
from ..ops.create import range_length, spaced
from ..support import dtypes
from ..support.errors import MXNetError, OpTypeError, OpValueError, all_end_at_caller, items, shorten, translated
from ..support.shape_mode import numpy_shape
from . import indexing, sparse
from .blank import blank, device, filled, placed, shape_of
from .register import F

Dense = core.Dense
NDArray = core.NDArray
_FLOAT32 = dtypes.FLOAT32

__all__ = [
    "arange", "array", "concatenate", "empty", "eye", "from_numpy", "full", "full_like", "histogram", "linspace", "moveaxis",
    "onehot_encode", "ones", "split_v2", "zeros",
]  # fmt: skip


def _size_given(shape: Any, function: str) -> tuple[int, ...]:
    """Return a shape in which nothing is left open, as 0 and ``()`` are without ``mx.np_shape``."""
    found = shape_of(shape, function)
    if (not found or 0 in found) and not numpy_shape():
        hint = "in 'with mx.util.np_shape(True):' 0 and () are sizes"
        raise OpValueError(f"{function}: shape={found} means unknown sizes, as in MXNet; {hint}")
    return found


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """Make an array of a copy of the data.

    Parameters
    ----------
    source_array : NDArray, array-like or number
        Of a sparse array, or a matrix of SciPy, a sparse array is made.
    ctx : Context, optional
    dtype : optional
        Element type; by default that of an NDArray, and float32 for everything else, NumPy arrays included.

    Examples
    --------
    >>> mx.nd.array([[1, 2], [3, 4]])
    <BLANKLINE>
    [[1. 2.]
     [3. 4.]]
    <NDArray 2x2 @cpu(0)>
    """
    try:
        quick = plain_array(source_array, ctx, _FLOAT32 if dtype is None else dtypes.code_of(dtype))
        if quick is not None:
            return quick
        place = device(ctx, "nd.array")
        if isinstance(source_array, Dense):
            code = source_array.dtype_code if dtype is None else dtypes.code_of(dtype)
            made = blank(source_array.shape, code, place)
            core.copy(source_array, made)
            made._is_mask = source_array._is_mask and dtype is None
            return made
        if isinstance(source_array, sparse.BaseSparseNDArray) or hasattr(type(source_array), "tocsr"):
            return sparse.array(source_array, ctx, dtype)
        code = dtypes.code_of(dtype)
        found = indexing.numeric(source_array, code, "nd.array")
        if type(source_array) in (list, tuple):
            quick = plain_array(found, ctx, code)
            if quick is not None:
                return quick
        if place.is_gpu:
            return placed(indexing.converted(found, code), place)
        made = blank(found.shape, code, place)
        with np.errstate(invalid="ignore", over="ignore"):
            np.copyto(core.as_numpy(made), indexing.prepared(found, code), casting="unsafe")
        return made
    except MXNetError as problem:
        shorten(problem)
        raise


def empty(shape: Any, ctx: Context | None = None, dtype: Any = None, stype: str | None = None) -> Any:
    """Make an array whose elements are not set."""
    try:
        if stype is None:
            found = plain_filled(shape, None, ctx, dtype)
            if found is not None:
                return found
        if stype not in (None, "default"):
            return sparse.empty(stype, shape, ctx, dtype)
        return blank(shape_of(shape, "nd.empty"), dtypes.code_of(dtype), device(ctx, "nd.empty"))
    except MXNetError as problem:
        shorten(problem)
        raise


def zeros(shape: Any, ctx: Context | None = None, dtype: Any = None, stype: str | None = None, **kwargs: Any) -> Any:
    """Make an array of zeros.

    Parameters
    ----------
    shape : int or tuple of int
        Sizes from 1 on; under :class:`mx.util.np_shape`, 0 and ``()`` are taken, too.
    ctx : Context, optional
    dtype : optional
    stype : {'default', 'csr', 'row_sparse'}, optional

    Examples
    --------
    >>> mx.nd.zeros((2, 2)).asnumpy().tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    try:
        if stype is None and not kwargs:
            found = plain_filled(shape, 0.0, ctx, dtype)
            if found is not None:
                return found
        if stype not in (None, "default"):
            return sparse.zeros(stype, shape, ctx, dtype)
        return _given_out(
            filled(_size_given(shape, "nd.zeros"), dtypes.code_of(dtype), device(ctx, "nd.zeros"), 0),
            kwargs,
            "nd.zeros",
        )
    except MXNetError as problem:
        shorten(problem)
        raise


def ones(shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """Make an array of ones; see :func:`zeros`."""
    try:
        if not kwargs:
            found = plain_filled(shape, 1.0, ctx, dtype)
            if found is not None:
                return found
        return _given_out(
            filled(_size_given(shape, "nd.ones"), dtypes.code_of(dtype), device(ctx, "nd.ones"), 1), kwargs, "nd.ones"
        )
    except MXNetError as problem:
        shorten(problem)
        raise


def full(shape: Any, val: Any, ctx: Context | None = None, dtype: Any = np.float32, out: NDArray | None = None) -> NDArray:
    """Make an array filled with one number.

    Examples
    --------
    >>> mx.nd.full((3,), 7, dtype="int32").asnumpy().tolist()
    [7, 7, 7]
    """
    try:
        found = None if out is not None or val is None else plain_filled(shape, val, ctx, dtype)
        if found is not None:
            return found
        made = blank(shape_of(shape, "nd.full"), dtypes.code_of(dtype), device(ctx, "nd.full"))
        made[:] = val
        return _given_out(made, {"out": out}, "nd.full")
    except MXNetError as problem:
        shorten(problem)
        raise


def _given_out(made: NDArray, kwargs: dict[str, Any], function: str) -> NDArray:
    """Copy a result to the array given as ``out``, if any."""
    out = kwargs.pop("out", None)
    kwargs.pop("name", None)
    if kwargs:
        raise OpTypeError(f"{function} has no argument {next(iter(kwargs))!r}")
    return made if out is None else copied_to(made, out, function)


def copied_to(made: NDArray, out: NDArray, function: str) -> NDArray:
    """Copy a result to the array that the caller gave as ``out``, which must have its shape; return that one."""
    if not isinstance(out, Dense) or out.shape != made.shape:
        raise OpValueError(f"{function}: out must be an NDArray of shape {made.shape}, got {getattr(out, 'shape', out)}")
    out[...] = made
    return out


def full_like(
    a: NDArray, fill_value: Any, ctx: Context | None = None, dtype: Any = None, out: NDArray | None = None
) -> NDArray:
    """Make an array of the shape and type of another, filled with one number."""
    try:
        if not isinstance(a, Dense):
            raise OpTypeError(f"nd.full_like: argument a must be an NDArray, got {type(a).__name__}")
        return full(a.shape, fill_value, a.context if ctx is None else ctx, a.dtype if dtype is None else dtype, out)
    except MXNetError as problem:
        shorten(problem)
        raise


def arange(start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1, infer_range: bool | None = None,
           ctx: Context | None = None, dtype: Any = np.float32) -> NDArray:  # fmt: skip
    """Make evenly spaced numbers from `start` to before `stop` (from 0 to before `start`, when there is no `stop`).

    Parameters
    ----------
    start, stop, step : number
    repeat : int
        How often each number stands in the result.
    infer_range : deprecated
    ctx, dtype
        Device and element type.  Integers are spaced as NumPy's: the first two are cut to integers, and the others follow
        in steps of their difference.

    Examples
    --------
    >>> mx.nd.arange(3, repeat=2).asnumpy().tolist()
    [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    """
    try:
        if is_first(ctx) and infer_range is None and dtype is np.float32 and type(repeat) is int and repeat == 1:
            quick = plain_range(start, stop, int(step) if step == 1 else step)
            if quick is not None:
                return quick
        if infer_range is not None:
            warnings.warn("nd.arange: infer_range has no effect", DeprecationWarning, stacklevel=2)
        if stop is None:
            start, stop = 0, start
        try:
            if step == 0 or operator.index(repeat) < 1:
                raise OpValueError(f"nd.arange: step={step} and repeat={repeat}; expected a step other than 0 and repeat >= 1")
            count = range_length("nd.arange", start, stop, step)
        except OpValueError:
            raise
        except (ValueError, OverflowError):
            raise OpValueError(f"nd.arange: the range from {start} to {stop} has no finite length") from None
        except TypeError:
            given = f"start={start!r}, stop={stop!r}, step={step!r}, repeat={repeat!r}"
            raise OpTypeError(f"nd.arange: {given} must be numbers") from None
        with translated("nd.arange"):
            code = dtypes.code_of(dtype)
            values = spaced(np, count, start, step, code not in dtypes.FLOATS and code != dtypes.BOOL)
            repeated = np.broadcast_to(values[:, None], (count, repeat)).flatten()  # np.repeat crashes if sizes overflow
            return placed(_contiguous(repeated, code, "nd.arange"), device(ctx, "nd.arange"))
    except MXNetError as problem:
        shorten(problem)
        raise


def _contiguous(values: np.ndarray, code: int, who: str) -> np.ndarray:
    dtypes.check_numbers(values, code, who)
    return np.asarray(indexing.converted(values, code), order="C")


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, ctx: Context | None = None, dtype: Any = np.float32
) -> NDArray:
    """Make `num` evenly spaced numbers from `start` to `stop`, with or without the latter.

    Examples
    --------
    >>> mx.nd.linspace(0, 1, 5).asnumpy().tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    count = shape_of(num, "nd.linspace (num)")
    if len(count) != 1:
        raise OpTypeError(f"nd.linspace: num={num!r} must be an integer")
    with translated("nd.linspace"):
        values = np.linspace(start, stop, count[0], endpoint=endpoint)
        if values.ndim != 1:
            raise OpTypeError(f"nd.linspace: start={start!r} and stop={stop!r} must be numbers")
        return placed(_contiguous(values, dtypes.code_of(dtype), "nd.linspace"), device(ctx, "nd.linspace"))


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """Make an `N` by `M` matrix (square by default) with ones on diagonal `k` (above the main one when positive)."""
    rows, columns = shape_of((N, N if not M or (isinstance(M, int) and M < 0) else M), "nd.eye")
    with translated("nd.eye"):
        k = min(max(operator.index(k), -rows), columns)  # these are beside the matrix, as is what lies farther away
        place = device(ctx, "nd.eye")
        where = {} if is_first(place) else {"ctx": str(place)}
        made = F._eye(N=rows, M=columns, k=k, dtype=dtypes.code_of(dtype), **where)
    return _given_out(made, kwargs, "nd.eye")


def over(host: np.ndarray) -> NDArray:
    """Return an array over the memory of a NumPy array, of any strides."""
    code = dtypes.code_of(host.dtype)
    size = dtypes.SIZES[code]
    if not host.dtype.isnative or not host.flags.aligned or any(s % size for s in host.strides):
        raise OpValueError("nd.from_numpy: the array's byte order or alignment needs a copy; pass zero_copy=False")
    return core.from_numpy(host, False)


#: Arrays that :func:`from_numpy` has made read-only, by their id; arrays of further calls may write to their memory, too.
_CONSUMED: weakref.WeakValueDictionary[int, np.ndarray] = weakref.WeakValueDictionary()


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True) -> NDArray:
    """Return an array over the memory of a NumPy array, which is read-only from then on; a read-only one stays so in both.

    What an earlier call has made read-only is taken for what it was before.

    Parameters
    ----------
    ndarray : numpy.ndarray
        Of a supported type, in native byte order and C order; ``mx.nd.from_dlpack`` takes any strides.
    zero_copy : bool, default True
        False makes a copy.
    """
    if not isinstance(ndarray, np.ndarray):
        raise OpTypeError(f"nd.from_numpy: expected a numpy.ndarray, got {type(ndarray).__name__}")
    if not zero_copy:
        dtypes.code_of(ndarray.dtype)
        return core.from_numpy(ndarray, True)
    made = over(ndarray)
    if not ndarray.flags.c_contiguous:
        raise OpValueError("nd.from_numpy: the array is not in C order; pass zero_copy=False, or use nd.from_dlpack")
    locked = [a for a in (ndarray.base, ndarray) if isinstance(a, np.ndarray) and not a.flags.writeable]
    if locked and any(np.may_share_memory(ndarray, a) for a in list(_CONSUMED.values())):
        for a in locked:
            a.flags.writeable = True
        made = over(ndarray)
    if ndarray.flags.writeable:
        _CONSUMED[id(ndarray)] = ndarray
    for a in (ndarray, *locked):
        a.flags.writeable = False  # only the new array changes the memory, as in MXNet
    return made


# ---- functions of arrays --------------------------------------------------------------------------------------------
def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Join a list of arrays along an axis; a single one is returned as it is unless `always_copy`."""
    arrays = [] if isinstance(arrays, Dense) else items(arrays, "nd.concatenate: arrays")
    if not arrays or any(not isinstance(a, Dense) for a in arrays):
        raise OpTypeError("nd.concatenate takes a list of at least one NDArray")
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return F.Concat(*arrays, dim=axis)


def moveaxis(tensor: NDArray, source: int | Sequence[int], destination: int | Sequence[int]) -> NDArray:
    """Move axes to other places; the others keep their order.

    Examples
    --------
    >>> mx.nd.moveaxis(mx.nd.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """

    def axes(given: Any, name: str) -> list[int]:
        found = [operator.index(a) for a in (given if hasattr(given, "__iter__") else [given])]
        if any(not -tensor.ndim <= a < tensor.ndim for a in found) or len({a % tensor.ndim for a in found}) != len(found):
            raise OpValueError(f"nd.moveaxis: {name}={given!r} are not distinct axes of an array of {tensor.ndim} dimensions")
        return [a % tensor.ndim for a in found]

    with translated("nd.moveaxis"):
        origin, goal = axes(source, "source"), axes(destination, "destination")
    if len(origin) != len(goal):
        raise OpValueError(f"nd.moveaxis: source={source!r} and destination={destination!r} differ in length")
    order = [a for a in range(tensor.ndim) if a not in origin]
    for to, a in sorted(zip(goal, origin, strict=True)):
        order.insert(to, a)
    return F.transpose(tensor, axes=tuple(order))


def split_v2(
    ary: NDArray, indices_or_sections: int | Sequence[int], axis: int = 0, squeeze_axis: bool = False
) -> list[NDArray]:
    """Split an array into equal sections, or before the given indices.

    Examples
    --------
    >>> [part.shape for part in mx.nd.split_v2(mx.nd.zeros((3, 4)), (1, 3), axis=1)]
    [(3, 1), (3, 2), (3, 1)]
    """
    if hasattr(indices_or_sections, "__iter__"):
        indices = items(indices_or_sections, "nd.split_v2: indices_or_sections")
        return F._split_v2(ary, indices=(0, *indices), axis=axis, squeeze_axis=squeeze_axis)
    return F._split_v2(ary, sections=indices_or_sections, indices=(), axis=axis, squeeze_axis=squeeze_axis)


def histogram(a: NDArray, bins: int | NDArray = 10, range: Sequence[float] | None = None) -> list[NDArray]:
    """Count the numbers in each of some bins; return the counts and the edges of the bins.

    Parameters
    ----------
    a : NDArray
    bins : int or NDArray
        How many bins of one width there are, or their edges.
    range : (float, float), optional
        The limits of so many bins; by default the least and the largest number, and float32 for counts and edges.

    Examples
    --------
    >>> counts, edges = mx.nd.histogram(mx.nd.array([0, 1, 3, 4]), bins=2)
    >>> counts.asnumpy().tolist(), edges.asnumpy().tolist()
    ([2.0, 2.0], [0.0, 2.0, 4.0])
    """
    if isinstance(bins, Dense):
        return F._histogram(a, bins)
    if range is None:
        low, high = (float(x.item()) for x in (a.min(), a.max())) if a.size else (0.0, 1.0)
        limits = (low, high) if low < high else (low - 0.5, high + 0.5)
        data = a if a.dtype in (np.float32, np.float64) else a.astype("float64")
        return [found.astype("float32") for found in F._histogram(data, bin_cnt=bins, range=limits)]
    return F._histogram(a, bin_cnt=bins, range=items(range, "nd.histogram: range"))


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Write to each row of `out` zeros, and a one at its index; ``one_hot`` does the same.

    Examples
    --------
    >>> mx.nd.onehot_encode(mx.nd.array([1, 0]), mx.nd.zeros((2, 3))).asnumpy().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    return F._onehot_encode(indices, out, out=out)


all_end_at_caller(sys.modules[__name__], __all__)
