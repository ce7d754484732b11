"""``x[key]`` and ``x[key] = value``, as NumPy's.

Integers, slices, None and ``...`` give views that share memory; arrays of integers and masks give copies.  Two things
are MXNet's: a single element has shape ``(1,)``, and index arrays may be of a floating type (``nd.array`` makes those)
when they hold whole numbers.  While autograd records, indexing an array that has a history calls operators
(:mod:`mxop.ops.slicing` and :mod:`mxop.ops.indexing`), which gives gradients of every order; the result is then a copy.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

from .._core import core, tape
from .._core.views import plain_array
from ..ops import indexing as ops
from ..support import dtypes
from ..support.errors import MXNetError, OpArithmeticError, OpIndexError, OpTypeError, OpValueError, translated
from ..support.shape_mode import numpy_shape
from .register import F

Dense = core.Dense
NDArray = core.NDArray
_ROWS = dtypes.INT32, dtypes.INT64  # what names rows without a look at it


# ---- keys -----------------------------------------------------------------------------------------------------------
def _items(x: NDArray, key: Any) -> tuple:
    """Return a key as a tuple; ``:`` of a 0-d array is all of it, as in MXNet."""
    if type(key) is tuple:
        return key
    return () if type(key) is slice and not x.ndim and key == slice(None) else (key,)


def _basic(items: tuple) -> bool:
    """Return whether a key holds nothing but integers, slices, None and ``...``."""
    for item in items:
        kind = type(item)
        if not (kind is int or kind is slice or item is None or item is Ellipsis) and (
            kind is bool or not isinstance(item, (int, np.integer))
        ):
            return False
    return True


def view_of(x: NDArray, items: tuple) -> NDArray:
    """Return the view that a basic key chooses."""
    shape, strides = x.shape, x._strides
    used = sum(item is not None and item is not Ellipsis for item in items)
    new_shape, new_strides, offset, axis = [], [], 0, 0
    for item in ops.expanded(items, len(shape), used):
        if item is None:
            new_shape.append(1)
            new_strides.append(0)
            continue
        size, step = shape[axis], strides[axis]
        if type(item) is slice:
            start, stop, by = ops.slice_of(item, size)
            count = len(range(start, stop, by))
            offset += start * step if count else 0
            new_shape.append(count)
            new_strides.append(step * by)
        else:
            offset += ops.integer(item, axis, size) * step
        axis += 1
    if not new_shape and shape and not numpy_shape():  # MXNet: one element is an array of shape (1,)
        new_shape, new_strides = [1], [1]
    if 0 in new_shape:
        return x._view(tuple(new_shape), (0,) * len(new_shape), 0)
    return x._view(tuple(new_shape), tuple(new_strides), offset)


def _index_array(item: Any, xp: Any) -> Any:
    """Return one array of a key as NumPy (or CuPy) wants it: integers or a mask."""
    if isinstance(item, Dense):
        if item._is_mask and item.dtype_code != dtypes.BOOL:
            return item._memory != 0
        item = item._memory
    elif isinstance(item, (list, tuple)) and any(isinstance(part, Dense) and part._is_mask for part in item):
        raise OpIndexError("a list of masks is not an index: index with one mask, or with mx.nd.stack(...) of them != 0")
    try:
        found = xp.asarray(item)
    except (TypeError, ValueError):
        raise OpIndexError(f"index {_short(item)} is not an array of integers or booleans") from None
    kind = found.dtype.kind
    if kind in "iub":
        return found
    if found.size == 0 and kind == "f":
        return found.astype(np.int64)
    # MXNet's arrays are float32 unless told otherwise, so those are indices too; a bare 1.5 is a mistake
    if (kind == "f" or found.dtype.name == "bfloat16") and not isinstance(item, (float, np.generic)):
        whole = found.astype(np.int64)
        if (whole == found).all():
            return whole
    raise OpIndexError(
        f"index {_short(item)} ({type(item).__name__}) is not an integer; an array is indexed with integers, slices, "
        "None, ..., and arrays of integers or booleans"
    )


def _numpy_key(x: NDArray, items: tuple, xp: Any) -> tuple:
    """Return a key in which arrays are NumPy's (or CuPy's, on the device of `x`)."""
    if x.context.is_gpu:
        items = tuple(item.as_in_context(x.context) if isinstance(item, Dense) else item for item in items)
    return tuple(
        item if item is None or item is Ellipsis or isinstance(item, slice) or _basic((item,)) else _index_array(item, xp)
        for item in items
    )


def _is_mask(item: Any, xp: Any) -> bool:
    return isinstance(item, xp.ndarray) and item.dtype.kind == "b"


def _chooses_by_mask(items: tuple) -> bool:
    """Return whether a key is basic but for one mask, so that it names no element twice."""
    rest = [item for item in items if not _basic((item,))]
    if len(rest) != 1 or not isinstance(rest[0], (Dense, np.ndarray)):
        return False
    return getattr(rest[0], "_is_mask", False) or rest[0].dtype in (bool, np.bool_)


def _rows(x: NDArray, key: Any) -> NDArray | None:
    """Return the rows that an array of whole numbers names, copied as they are; None for other keys, and wrong ones."""
    if x._device is not core.HOST or not x._contiguous or not x.ndim or _tracked(x):
        return None
    if isinstance(key, Dense) and key._is_mask:
        return _masked(x, key)
    try:
        key = _row_numbers(key)
        if key is None or not key.ndim or not key.size:
            return None
        try:
            return F.take(x, key, mode="raise")
        except OpIndexError:
            return F.gather_nd(x, key._view((1, *key.shape), (0, *key._strides), 0))  # some are counted from the end
    except OpIndexError:  # NumPy says better what is wrong
        return None


def _masked(x: NDArray, mask: NDArray) -> NDArray | None:
    """Return what a mask chooses of a contiguous array, by the places of what is true: half of the time of NumPy's mask."""
    if mask.shape != x.shape[: mask.ndim] or mask.context != x.context:
        return None
    places = np.flatnonzero(_index_array(mask, np))
    if not places.size:
        return None
    rows = x.reshape((mask.size, *x.shape[mask.ndim :]))
    return F.take(rows, core.from_numpy(places, False), mode="raise")


def _row_numbers(key: Any) -> NDArray | None:
    """Return an array, or a list, of whole numbers as an array of integers; None for masks and what has other types."""
    if isinstance(key, Dense) and key.dtype_code in _ROWS:
        return key
    found = plain_array(key, None, dtypes.INT64) if type(key) is list else None
    if found is not None:
        return found
    rows = _index_array(key, np)
    return core.from_numpy(np.ascontiguousarray(rows, np.int64), False) if rows.dtype.kind == "i" and rows.ndim else None


def _tracked(x: NDArray) -> bool:
    return tape.recording() and tape.tracked(x)


def _memory(x: NDArray) -> tuple[Any, Any]:
    """Return an array's memory as NumPy's or CuPy's, and that module."""
    return x._memory, x._device.library


def _wrapped(found: Any, x: NDArray) -> NDArray:
    """Return a result of NumPy or CuPy as an array on the device of `x`."""
    result = x._device.wrap(found)
    x._device.place(result, x.context.place)
    return result


def _on_its_device(function: Any) -> Any:
    """Run a function of an array while the array's device is the current one."""

    @wraps(function)
    def run(x: NDArray, *args: Any) -> Any:
        with x._device.current():
            return function(x, *args)

    return run


# ---- reading --------------------------------------------------------------------------------------------------------
def getitem(x: NDArray, key: Any) -> NDArray:
    """Return ``x[key]``: a view for basic keys, a copy for arrays of integers and masks.

    Examples
    --------
    >>> x = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    >>> x[1, ::-1].asnumpy().tolist(), x[:, [0, 0]].asnumpy().tolist(), x[0, 1].shape
    ([6.0, 5.0, 4.0], [[1.0, 1.0], [4.0, 4.0]], (1,))
    """
    if type(key) is int and x.ndim > 1 and not tape.recording():  # a row: the most frequent key, without detours
        shape, strides = x.shape, x._strides
        at = ops.integer(key, 0, shape[0])
        return x._view(shape[1:], strides[1:], at * strides[0])
    found = _rows(x, key) if isinstance(key, (Dense, list, np.ndarray)) else None
    if found is not None:
        return found
    items = _items(x, key)
    if _basic(items):
        return ops.part_of(F, x, items) if _tracked(x) else view_of(x, items)
    return _recorded(x, items) if _tracked(x) else _chosen(x, items)


@_on_its_device
def _chosen(x: NDArray, items: tuple) -> NDArray:
    """Return a copy of the elements that a key with arrays names."""
    memory, xp = _memory(x)
    try:
        key = _numpy_key(x, items, xp)
        ops.check_places(xp, key, x.shape)
        found = memory[key]
    except MXNetError:
        raise
    except (IndexError, TypeError, ValueError, OverflowError) as problem:
        raise OpIndexError(str(problem)) from None
    return _wrapped(found.reshape(1) if found.ndim == 0 and x.ndim and not numpy_shape() else found, x)


@_on_its_device
def _recorded_key(x: NDArray, items: tuple) -> tuple[str, list[NDArray]]:
    """Return a key with arrays as text, and its index arrays; masks become arrays of indices."""
    xp = _memory(x)[1]
    found = _numpy_key(x, items, xp)
    if any(_is_mask(i, xp) and i.ndim == 0 for i in found):
        raise OpIndexError("indexing with a single boolean is not differentiable; use x[None] or detach()")
    used = sum(i.ndim if _is_mask(i, xp) else i is not None and i is not Ellipsis for i in found)
    place, arrays, axis = [], [], 0
    for item in ops.expanded(found, x.ndim, used):
        if not isinstance(item, xp.ndarray):
            place.append(item)
            axis += item is not None
        elif item.dtype.kind == "b":
            want = x.shape[axis : axis + item.ndim]
            if item.shape != want:
                raise OpIndexError(
                    f"a mask of shape {item.shape} does not fit the dimensions {want} of the array of shape {x.shape}"
                )
            arrays += [_wrapped(a.astype(np.int64), x) for a in item.nonzero()]
            place += [ops.ARRAY] * item.ndim
            axis += item.ndim
        else:
            arrays.append(_wrapped(item.astype(np.int64), x))
            place.append(ops.ARRAY)
            axis += 1
    return ops.written(ops.exact(place, x.shape)[0]), arrays


def _recorded(x: NDArray, items: tuple) -> NDArray:
    key, arrays = _recorded_key(x, items)
    found = F._getitem(x, *arrays, key=key)
    return F.Reshape(found, shape=(1,)) if found.ndim == 0 and not numpy_shape() else found


# ---- writing --------------------------------------------------------------------------------------------------------
def setitem(x: NDArray, key: Any, value: Any) -> None:
    """Do ``x[key] = value``; the value is converted to the array's type and broadcast to the part that `key` names.

    Inside ``autograd.record()`` an array with a history cannot be changed. Assigning a value with a history to a part
    of an array without one gives the array that history.

    Examples
    --------
    >>> x = mx.nd.zeros((2, 3))
    >>> x[0, ::2] = [1, 2]
    >>> x.asnumpy().tolist()
    [[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    """
    items = _items(x, key)
    if tape.recording():
        if tape.known(x) and (tape.is_variable(x) or not _chooses_by_mask(items)):
            raise MXNetError(
                "assigning to an array that autograd has recorded (x[...] = value) is not supported inside "
                "autograd.record(), except through a mask (x[x < 0] = value) to one that is not a variable; assign outside "
                "the scope, or make a new array with nd.concat, nd.stack or nd.where"
            )
        if tape.known(x) or (isinstance(value, Dense) and tape.tracked(value)):
            _recorded_assign(x, items, value)
            return
    core.touch(x, _WRITER)
    if _fills_by_mask(x, items, value) and x.size > _MANY and not x._readonly:
        F.where(items[0].detach(), value, x, out=x)
        return
    if not _basic(items):
        _assign_advanced(x, items, value)
        return
    part = view_of(x, items)
    if isinstance(value, Dense):
        if value.context != x.context:
            value = value.as_in_context(x.context)
        core.copy(_broadcast(value, part.shape), part)
        return
    memory, xp = _memory(part)
    _check_writable(memory)
    if type(value) in _PLAIN and -60000 < value < 60000 and memory.dtype.kind == "f":  # fits every floating type
        part._device.fill(part, value)
    else:
        with x._device.current():
            memory[...] = _numpy_value(value, part, xp)


def _fills_by_mask(x: NDArray, items: tuple, value: Any) -> bool:
    """Return whether a mask of the array's shape, on its device, is to be filled with a number of its type."""
    mask = items[0] if len(items) == 1 else None
    fits = type(value) in _PLAIN and x.dtype_code in (dtypes.FLOAT32, dtypes.FLOAT64)
    return fits and isinstance(mask, Dense) and mask._is_mask and mask.shape == x.shape and mask.context == x.context


_PLAIN = frozenset({int, float})
_MANY = 4096  # elements of which ``where`` fills some in less time than NumPy: a twentieth for a million
_WRITER = "an assignment x[...] = value"


def _check_writable(memory: Any) -> None:
    if isinstance(memory, np.ndarray) and not memory.flags.writeable:
        raise OpValueError("the array's memory is read-only (an operator's input, or made from a read-only buffer)")


def _fitting(shape: tuple, goal: tuple) -> tuple:
    """Return a value's shape without leading ones that the part of the array does not have; it must broadcast."""
    found = shape
    while len(found) > len(goal) and found[0] == 1:
        found = found[1:]
    lead = len(goal) - len(found)
    if lead < 0 or any(d not in (1, g) for d, g in zip(found, goal[lead:], strict=True)):
        raise OpValueError(f"cannot assign a value of shape {shape} to a part of shape {goal}: it does not broadcast")
    return found


def _broadcast(value: NDArray, goal: tuple) -> NDArray:
    """Return a view of a value in the shape of the part that it is assigned to."""
    if value.shape == goal:
        return value
    shape = _fitting(value.shape, goal)
    lead = len(goal) - len(shape)
    strides = value._strides[value.ndim - len(shape) :]
    steps = tuple(0 if d == 1 else s for d, s in zip(shape, strides, strict=True))
    return value._view(goal, (0,) * lead + steps, 0)


def numeric(value: Any, code: int, who: str, xp: Any = np) -> Any:
    """Return something array-like as NumPy's array of numbers, to become elements of a type; raise where it is none.

    An array is converted as C does; a number, or a list of numbers, has to fit.
    """
    try:
        found = xp.asarray(value)
        if found.dtype.kind == "O" and not any(v is None for v in found.flat):  # integers beyond 64 bits
            real = found.astype(np.float64)
            dtypes.check_numbers(found, code, who)
            found = real
    except OverflowError as problem:
        raise (problem if isinstance(problem, MXNetError) else OpArithmeticError(f"{who}: a number is too large")) from None
    except (TypeError, ValueError) as problem:
        raise OpTypeError(f"{who}: {type(value).__name__} {_short(value)} is not an array of numbers: {problem}") from None
    if found.dtype.kind not in "biuf" and found.dtype.name != "bfloat16":
        raise OpTypeError(
            f"{who}: {type(value).__name__} {_short(value)} is not an array of numbers (its dtype is {found.dtype})"
        )
    if not getattr(value, "ndim", 0):
        dtypes.check_numbers(found, code, who)
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def converted(found: Any, code: int) -> Any:
    """Return numbers in an element type, wrapping integers and cutting fractions as C does, without warnings."""
    with np.errstate(invalid="ignore", over="ignore"):
        return prepared(found, code).astype(dtypes.numpy_dtype(code), copy=False)


def prepared(found: Any, code: int) -> Any:
    """Return numbers that become elements of a type with one rounding.

    ``ml_dtypes`` makes bfloat16 of float32, so others become such first, rounded to odd, which the second rounding sees.
    """
    if code != dtypes.BFLOAT16 or found.dtype.kind not in "fi" or found.dtype.itemsize < 4 or found.dtype == np.float32:
        return found
    found = found.astype(np.float64)
    near = found.astype(np.float32)
    back, bits = near.astype(np.float64), near.view(np.uint32)
    bits = (bits - (abs(back) > abs(found)).astype(np.uint32)) | (back != found).astype(np.uint32)
    return bits.view(np.float32)


def _numpy_value(value: Any, x: NDArray, xp: Any) -> Any:
    """Return a value in the type of `x` and in a shape that broadcasts to that of `x`."""
    found = numeric(value, x.dtype_code, "x[key] = value", xp)
    return converted(found, x.dtype_code).reshape(_fitting(found.shape, x.shape))


@_on_its_device
def _assign_advanced(x: NDArray, items: tuple, value: Any) -> None:
    memory, xp = _memory(x)
    if isinstance(value, Dense) and value.context != x.context:
        value = value.as_in_context(x.context)
    _check_writable(memory)
    try:
        key = tuple(_apart(k, memory, xp) if isinstance(k, xp.ndarray) else k for k in _numpy_key(x, items, xp))
        numbers = _memory(value)[0] if isinstance(value, Dense) else numeric(value, x.dtype_code, "x[key] = value", xp)
        found = converted(numbers, x.dtype_code)
        found = _apart(found, memory, xp)
        if len(key) == 1 and found.ndim > 1 and _is_mask(key[0], xp) and key[0].shape == x.shape:
            found = found.reshape(_fitting(found.shape, (int(key[0].sum()),)))  # NumPy does not drop leading ones here
        memory[key] = ops.decided(xp, key, x.shape, found)
    except MXNetError:
        raise
    except IndexError as problem:
        raise OpIndexError(str(problem)) from None
    except (TypeError, ValueError, OverflowError) as problem:
        raise OpValueError(f"cannot assign: {problem}") from None


def _apart(found: Any, memory: Any, xp: Any) -> Any:
    """Return what does not lie where it is assigned to: NumPy writes through a mask without a look at what overlaps."""
    return found.copy() if xp.may_share_memory(found, memory) else found


def _recorded_assign(x: NDArray, items: tuple, value: NDArray) -> None:
    """Assign what has a history, or to what has one: then the array gets one in which the value's gradient is the part's."""
    known = tape.known(x)
    if known and _fills_by_mask(x, items, value):
        tape.replace(x, F.where(items[0], value, x), _WRITER)
        return
    key, arrays = _recorded_key(x, items)
    if not isinstance(value, Dense):
        value = _wrapped(converted(numeric(value, x.dtype_code, "x[key] = value", _memory(x)[1]), x.dtype_code), x)
    if arrays and not _chooses_by_mask(items) and not _distinct(x, ops.read(key), arrays):
        raise OpIndexError("assigning a recorded value through indices that name an element twice is not differentiable")
    goal = ops.indexed_shape("x[key] = value", x.shape, ops.read(key), [a.shape for a in arrays])
    if value.context != x.context:
        value = value.as_in_context(x.context)
    if value.dtype != x.dtype:
        value = F.Cast(value, dtype=x.dtype_code)
    shape = _fitting(value.shape, goal)
    if shape != value.shape:
        value = value.reshape(shape)
    if value.shape != goal:
        value = value.reshape((1,) * (len(goal) - value.ndim) + value.shape)
        if 0 in goal:  # which broadcast_to takes for a size that stays
            value = ops.part_of(F, value, tuple(slice(0, d) for d in goal))
        value = F.broadcast_to(value, shape=goal)
    if known:
        tape.replace(x, F._setitem(x, value, *arrays, key=key), _WRITER)
    else:
        F._setitem(x, value, *arrays, key=key, out=x)


@_on_its_device
def _distinct(x: NDArray, items: tuple, arrays: list) -> bool:
    """Return whether a key with arrays names every element at most once."""
    xp = _memory(x)[1]
    places = xp.arange(x.size).reshape(x.shape)
    rest = iter([_memory(a)[0] for a in arrays])
    key = tuple(next(rest) if isinstance(i, str) else i for i in items)
    try:
        ops.check_places(xp, key, x.shape)
        named = places[key]
    except IndexError as problem:
        raise OpIndexError(str(problem)) from None
    return xp.unique(named).size == named.size


# ---- iteration ------------------------------------------------------------------------------------------------------
def iterate(x: NDArray):
    """Yield ``x[0], x[1], ...``."""
    if x.ndim == 0:
        raise OpTypeError("iteration over a 0-d array")
    return (x[i] for i in range(x.shape[0]))


def contains(x: NDArray, value: Any) -> bool:
    """Return whether an element equals a value, as NumPy does."""
    memory = x.asnumpy()
    with translated("NDArray.__contains__"):
        return bool((memory == (value.asnumpy() if isinstance(value, Dense) else value)).any())
