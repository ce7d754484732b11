"""What is done to arrays most often, without Python: plain indices, shapes, numbers.

A function here returns None (or False) for what is not plain, or wrong; :mod:`mxop.ndarray` then does it or says why not.
"""
cimport numpy as cnp
from cpython.exc cimport PyErr_Clear
from cpython.object cimport PyObject
from libc.string cimport memcpy

from mxop._core.array cimport (
    Array, HOST, alloc, alloc_tuple, has_history, is_making, new_array, read_pointer, settle_from_host, touch, view_at, wrapped,
)
from mxop._core.numbers cimport plain_number, plain_parameter
from mxop._core.profile cimport IMPERATIVE, watched
from mxop._core.recent cimport numpy_shapes
from mxop._core.record cimport is_recording
from mxop._core.transfer cimport copy_into, same_dims
from mxop._kernels.codes cimport BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8
from mxop._kernels.instruction_sets cimport itemsize_of, store_of
from mxop._kernels.machine cimport MX_GIL_BYTES
from mxop._kernels.operands cimport MAX_DIMS, REQ_WRITE
from mxop._kernels.memory cimport is_elsewhere

import numpy as np

from mxop.support import dtypes
from mxop.context import is_first

cdef extern from "Python.h":
    int PySlice_Unpack(object slice, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step)
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t step)
    Py_ssize_t PyNumber_AsSsize_t(object number, PyObject* error) except? -1
    PyObject** PySequence_Fast_ITEMS(object sequence)

cdef extern from "numpy/arrayobject.h":
    object PyArray_Scalar(void* data, cnp.dtype dtype, object base)

cnp.import_array()

cdef enum:
    SHORT = MX_GIL_BYTES // 16      # elements that are written one by one
    MOST = 1 << 23                  # whole numbers below it, and their sums with few others, are exact in float32

cdef double _EXACT = 2.0**53    # whole numbers below it are exact in float64


# ---- views ------------------------------------------------------------------------------------------------------------

cdef struct Places:
    int ndim
    Py_ssize_t shape[MAX_DIMS]
    Py_ssize_t strides[MAX_DIMS]    # in bytes
    Py_ssize_t offset


cdef inline void add(Places* made, Py_ssize_t size, Py_ssize_t stride) noexcept:
    made.shape[made.ndim], made.strides[made.ndim] = size, stride
    made.ndim += 1


cdef Array plain_view(Array x, object key):
    """Return the view that a key of integers, slices, None and ``...`` chooses; None for other keys, and for wrong ones."""
    cdef Places made
    cdef PyObject* alone = <PyObject*>key
    cdef bint several = type(key) is tuple
    cdef int k
    made.ndim, made.offset = 0, 0
    if not found_places(x, PySequence_Fast_ITEMS(key) if several else &alone, len(<tuple>key) if several else 1, &made):
        return None
    if made.ndim == 0 and x.ndim and not numpy_shapes():  # MXNet: one element has shape (1,)
        add(&made, 1, itemsize_of(x.dtype))
    for k in range(made.ndim):
        if made.shape[k] == 0:
            return None
    return view_at(x, made.ndim, made.shape, made.strides, made.offset)


cdef bint found_places(Array x, PyObject** items, Py_ssize_t n, Places* made) except -1:
    """Find out where the elements lie that a key chooses; False for keys that are not plain."""
    cdef Py_ssize_t at, start, stop, step, count, size, used = 0
    cdef Py_ssize_t k
    cdef int axis = 0
    cdef bint dots = False
    for k in range(n):
        used += <object>items[k] is not None and <object>items[k] is not Ellipsis
    if used > x.ndim or x.ndim + n > MAX_DIMS:
        return False
    for k in range(n):
        item = <object>items[k]
        if item is None:
            add(made, 1, 0)
            continue
        if item is Ellipsis:
            if dots:
                return False
            dots = True
            for _ in range(x.ndim - used):
                add(made, x.shape_[axis], x.strides_[axis])
                axis += 1
            continue
        size = x.shape_[axis]
        if type(item) is int:
            at = PyNumber_AsSsize_t(item, NULL)
            if at < -size or at >= size:
                return False
            made.offset += (at + size if at < 0 else at) * x.strides_[axis]
        elif type(item) is slice:
            if PySlice_Unpack(item, &start, &stop, &step) < 0:
                PyErr_Clear()
                return False
            count = PySlice_AdjustIndices(size, &start, &stop, step)
            made.offset += start * x.strides_[axis] if count else 0
            add(made, count, x.strides_[axis] * step if count > 1 else 0)
        else:
            return False
        axis += 1
    while axis < x.ndim:
        add(made, x.shape_[axis], x.strides_[axis])
        axis += 1
    return True


cdef Array plain_reshaped(Array x, tuple sizes):
    """Return the elements of a contiguous array in a shape of positive sizes, one of which may be -1; None for the others."""
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef Py_ssize_t total = 1, size, step = itemsize_of(x.dtype)
    cdef int k, open_ = -1, ndim = len(sizes)
    if not x.contiguous or ndim > MAX_DIMS or ndim == 0 or x.size == 0:
        return None
    for k in range(ndim):
        if type(sizes[k]) is not int:
            return None
        size = PyNumber_AsSsize_t(sizes[k], NULL)
        if size == -1 and open_ < 0:
            open_ = k
            continue
        if size <= 0 or size > x.size:
            return None
        shape[k] = size
        total *= size
        if total > x.size:
            return None
    if open_ >= 0:
        shape[open_] = x.size // total
        total *= shape[open_]
    if total != x.size:
        return None
    for k in range(ndim - 1, -1, -1):
        strides[k] = step
        step *= shape[k]
    return view_at(x, ndim, shape, strides, 0)


cdef Array plain_transposed(Array x, tuple axes):
    """Return a copy of a short array with its axes in an order, by default reversed; None for others, and while calls are watched."""
    cdef Places made
    cdef Array found
    cdef unsigned long long seen = 0
    cdef Py_ssize_t axis
    cdef int k
    if not 0 < x.size <= SHORT or x.ndim == 0 or watched(IMPERATIVE):
        return None
    if axes and len(axes) != x.ndim:
        return None
    made.ndim = 0
    for k in range(x.ndim):
        axis = x.ndim - 1 - k
        if axes:
            if type(axes[k]) is not int:
                return None
            axis = PyNumber_AsSsize_t(axes[k], NULL)
            axis += x.ndim if axis < 0 else 0
        if not 0 <= axis < x.ndim or seen >> axis & 1:
            return None
        seen |= 1ULL << axis
        add(&made, x.shape_[axis], x.strides_[axis])
    found = <Array>x.device.make(made.ndim, made.shape, x.dtype)
    found.device_id = x.device_id
    x.device.copy_from(x, 0, made.ndim, made.shape, made.strides, found)
    found.mask = x.mask
    return found


# ---- numbers ----------------------------------------------------------------------------------------------------------

cdef object element(Array x):
    """Return the only element as a Python number; None for types that are not plain."""
    x = <Array>x.device.to_host(x)
    cdef const char* p = read_pointer(x)
    if x.dtype == FLOAT32:
        return <double>(<const float*>p)[0]
    if x.dtype == FLOAT64:
        return (<const double*>p)[0]
    if x.dtype == INT32:
        return (<const int*>p)[0]
    if x.dtype == INT64:
        return (<const long long*>p)[0]
    if x.dtype == UINT8:
        return (<const unsigned char*>p)[0]
    if x.dtype == INT8:
        return (<const signed char*>p)[0]
    return p[0] != 0 if x.dtype == BOOL else None


cdef bint plain_assign(Array x, object key, object value) except -1:
    """Do ``x[key] = value`` for a plain key, and a number or an array of the same shape; tell whether it was done."""
    cdef Array part
    if type(value) is not float and type(value) is not int and not isinstance(value, Array):
        return False
    part = x if type(key) is slice and key.start is None and key.stop is None and key.step is None else plain_view(x, key)
    if part is None:
        return False
    if isinstance(value, Array):
        if (<Array>value).device is not x.device or (<Array>value).device_id != x.device_id or not same_dims(<Array>value, part):
            return False
        touch(x, "an assignment x[...] = value")
        copy_into(<Array>value, part, REQ_WRITE)
        return True
    if not -60000 < value < 60000 or not fits(value, part.dtype):
        return False
    touch(x, "an assignment x[...] = value")
    part.device.fill(part, value)
    return True


cdef bint fits(double value, int dtype) noexcept:
    """Return whether a number is plain in an element type: any in float32 and float64, in halves what both hold, in integers whole ones."""
    cdef double least = 0, most = 1
    if dtype <= FLOAT16 or dtype == BFLOAT16:
        return dtype <= FLOAT64 or -60000 < value < 60000
    if dtype == UINT8:
        most = 255
    elif dtype == INT8:
        least, most = -128, 127
    elif dtype == INT32:
        least, most = -2147483648.0, 2147483647.0
    elif dtype == INT64:
        least, most = -_EXACT, _EXACT
    return least <= value <= most and value == <long long>value


def plain_filled(shape, value, ctx, dtype):
    """Return a new array that holds one number everywhere, or whatever was there; None where it is empty or 0-d, or lies elsewhere,
    where the number is none of the type, and while calls are watched."""
    cdef Array made
    cdef int code = FLOAT32 if dtype is None else dtypes.code_of(dtype)
    shape, value = plain_parameter(shape), plain_number(value)
    if value is not None and type(value) is not float and (type(value) is not int or not -_EXACT < value < _EXACT):
        return None
    if (ctx is not None and not is_first(ctx)) or is_elsewhere() or watched(IMPERATIVE) or (
            value is not None and not fits(value, code)):
        return None
    if type(shape) is int:
        shape = (shape,)
    elif type(shape) is not tuple or not shape:
        return None
    for d in <tuple>shape:
        if type(d) is not int or not 0 < d:
            return None
    made = alloc_tuple(<tuple>shape, code)
    settle_from_host(made)
    if value is not None:
        HOST.fill(made, value)
    return made


# ---- from and to other memory -----------------------------------------------------------------------------------------

cdef int[64] _codes     # of element types, by NumPy's numbers; -1 for those that are not plain
for _number in range(64):
    _codes[_number] = -1
for _kind in "fdeBibq?l":
    _codes[np.dtype(_kind).num] = dtypes.code_of(np.dtype(_kind))


def plain_array(source, ctx, int dtype):
    """Return a new array with a copy of a NumPy array or a list of numbers; None where these are not plain in the type, or elsewhere."""
    cdef Array seen, made
    cdef cnp.ndarray given
    cdef Py_ssize_t* shape
    cdef int ndim, code
    if (ctx is not None and not is_first(ctx)) or is_elsewhere():
        return None
    if type(source) is list:
        return plain_list(<list>source, dtype)
    if not cnp.PyArray_CheckExact(source):
        return None
    given = <cnp.ndarray>source
    ndim, shape = cnp.PyArray_NDIM(given), <Py_ssize_t*>cnp.PyArray_DIMS(given)
    code = _codes[cnp.PyArray_TYPE(given)] if 0 <= cnp.PyArray_TYPE(given) < 64 else -1
    if code < 0 or (code != dtype and dtype > FLOAT64) or ndim > MAX_DIMS or not cnp.PyArray_ISBEHAVED_RO(given):
        return None
    made = alloc(ndim, shape, dtype)
    settle_from_host(made)
    if code == dtype and cnp.PyArray_IS_C_CONTIGUOUS(given):
        memcpy(made.data, cnp.PyArray_DATA(given), cnp.PyArray_NBYTES(given))
    elif made.size:
        seen = new_array()
        seen.set_dims(ndim)
        seen.dtype, seen.size, seen.contiguous = code, made.size, cnp.PyArray_IS_C_CONTIGUOUS(given)
        if ndim:  # an array of no dimensions has neither
            memcpy(seen.shape_, shape, ndim * sizeof(Py_ssize_t))
            memcpy(seen.strides_, cnp.PyArray_STRIDES(given), ndim * sizeof(Py_ssize_t))
        seen.data = <char*>cnp.PyArray_DATA(given)
        seen.block = wrapped(seen, None)
        copy_into(seen, made, REQ_WRITE)
    return made


cdef Array plain_list(list source, int dtype):
    """Return a new array of a list of numbers; None for other lists, and numbers that are not plain in the type."""
    cdef Py_ssize_t count = len(source), k
    cdef Array made
    cdef double value
    if not 0 < count <= SHORT:
        return None
    made = alloc(1, &count, dtype)
    settle_from_host(made)
    for k in range(count):
        item = source[k]
        if type(item) is not float and (type(item) is not int or not -_EXACT < item < _EXACT):
            return None
        value = item
        if dtype == FLOAT32:
            (<float*>made.data)[k] = <float>value
        elif dtype == FLOAT64:
            (<double*>made.data)[k] = value
        elif fits(value, dtype):
            store_of(dtype, True)(1, &value, made.data + k * itemsize_of(dtype), 0, False)
        else:
            return None
    return made


def converted(Array x, int dtype):
    """Return a copy in another element type; None for what autograd records."""
    cdef Array made
    if is_making() or (is_recording() and has_history(x)):
        return None
    made = <Array>x.device.make(x.ndim, x.shape_, dtype)
    made.device_id = x.device_id
    copy_into(x, made, REQ_WRITE)
    return made


def plain_range(start, stop, step):
    """Return whole numbers in a row, as float32; None where they are none, or not exact, or lie elsewhere."""
    cdef long long count
    cdef int first, by, k
    cdef float* numbers
    cdef Array made
    if is_elsewhere() or type(start) is not int or type(step) is not int or not (stop is None or type(stop) is int):
        return None
    if not (-MOST < start < MOST and -MOST < step < MOST and (stop is None or -MOST < stop < MOST)) or step == 0:
        return None
    count = len(range(start) if stop is None else range(start, stop, step)) if stop is not None or step == 1 else -1
    first, by = 0 if stop is None else start, step
    if count <= 0 or not -MOST < first + (count - 1) * by < MOST:
        return None
    made = alloc(1, <Py_ssize_t*>&count, FLOAT32)
    settle_from_host(made)
    numbers = <float*>made.data
    with nogil:
        for k in range(<int>count):
            numbers[k] = <float>(first + k * by)
    return made


cdef object plain_numpy(Array x):
    """Return a copy as a NumPy array; None for what is not contiguous, and for types that NumPy does not have."""
    if not x.contiguous or x.dtype > BOOL or x.size > SHORT:
        return None
    found = cnp.PyArray_EMPTY(x.ndim, <cnp.npy_intp*>x.shape_, _numbers[x.dtype], 0)
    memcpy(cnp.PyArray_DATA(<cnp.ndarray>found), read_pointer(x), x.size * itemsize_of(x.dtype))
    return found


cdef object plain_scalar(Array x):
    """Return the only element as a NumPy scalar; None for types that NumPy does not have."""
    if x.dtype > BOOL:
        return None
    x = <Array>x.device.to_host(x)
    return PyArray_Scalar(read_pointer(x), cnp.PyArray_DescrFromType(_numbers[x.dtype]), None)


cdef int[8] _numbers            # NumPy's of element types
_numbers = [dtypes.numpy_dtype(k).num for k in range(BOOL + 1)]
