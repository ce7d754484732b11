"""Arrays: memory, shape, strides and type, and nothing that computes.

``Array`` is the base of :class:`mxop.nd.NDArray`; ``Node`` is where an array came from while autograd records.
Memory is reached through :func:`read_pointer` and :func:`write_pointer` only.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_FillInfo
from cpython.object cimport PyObject, PyTypeObject
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from mxop._core.device cimport Host, device_of
from mxop._kernels.codes cimport BFLOAT16, FLOAT16
from mxop._kernels.instruction_sets cimport itemsize_of
from mxop._kernels.operands cimport MAX_DIMS, Operand, collapse
from mxop._kernels.memory cimport FRESH_INTEGER, block_new, block_release, block_retain, block_wrap, fill_fresh

import numpy as np

from mxop.support import dtypes
from mxop.support.errors import BufferRefusedError, OpTypeError, OpValueError

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    Py_ssize_t PyNumber_AsSsize_t(object number, PyObject* error) except? -1

ARRAY_TYPE = Array
HOST = Host()
cdef object _key = object()
cdef tuple _with_key = (_key,)      # what makes new_array's call of the class one of ours
cdef object _leaving = None         # told of a recorded array that another library reads
FORMATS = b"fdeBibq?"           # of buffers, by type code
cdef dict _formats = {k: FORMATS[k:k + 1] for k in range(len(FORMATS))}


@cython.freelist(64)
cdef class Node:
    """A recorded call (or, with no operator, a variable)."""

    def __cinit__(self):
        self.grad_req = 1
        self.freed = False


cdef class Watch:
    """Tells whether memory was written, of arrays that are handed to code of users."""


@cython.freelist(64)
cdef class Array:
    """A block of memory on a device, with shape, strides and type."""

    def __cinit__(self, *given):
        self.block, self.device = NULL, HOST
        self.shape_ = self.dims
        self.strides_ = self.dims + INLINE_DIMS
        self.ndim = 0
        if len(given) == 1 and given[0] is None:  # what unpickling MXNet's arrays begins with: __setstate__ follows
            self.set_dims(1)
            self.shape_[0], self.strides_[0], self.contiguous = 0, itemsize_of(self.dtype), True
            self.block = block_new(0)
            self.data = self.block.data
        elif len(given) != 1 or given[0] is not _key:
            raise OpTypeError(f"{type(self).__name__}() would be an array without memory: make arrays with mx.nd.array(values), "
                              "mx.nd.zeros(shape), mx.nd.empty(shape) and the like")

    def __dealloc__(self):
        if self.block != NULL:
            block_release(self.block)
            self.block = NULL
        if self.shape_ != self.dims:
            free(self.shape_)

    cdef int set_dims(self, int ndim) except -1:
        """Make room for `ndim` dimensions."""
        if ndim > INLINE_DIMS:
            if ndim > MAX_DIMS:
                raise OpValueError(f"an array of {ndim} dimensions; at most {MAX_DIMS} are supported")
            self.shape_ = <Py_ssize_t*>malloc(2 * ndim * sizeof(Py_ssize_t))
            if self.shape_ == NULL:
                self.shape_ = self.dims
                raise MemoryError()
            self.strides_ = self.shape_ + ndim
        self.ndim = ndim
        return 0

    cdef tuple shape_tuple(self):
        if self.ndim == 1:
            return (self.shape_[0],)
        if self.ndim == 2:
            return (self.shape_[0], self.shape_[1])
        return tuple([self.shape_[i] for i in range(self.ndim)])

    @property
    def dtype_code(self):
        """MXNet's code of the element type."""
        return self.dtype

    @property
    def _strides(self):
        """Strides in elements."""
        cdef Py_ssize_t size = itemsize_of(self.dtype)
        return tuple([self.strides_[i] // size for i in range(self.ndim)])

    @property
    def _contiguous(self):
        """Whether elements lie in C order without gaps."""
        return self.contiguous

    @property
    def _readonly(self):
        """Whether nobody writes through the array."""
        return self.readonly_

    @property
    def _is_mask(self):
        """Whether the array is a comparison's result, which as an index is a mask."""
        return self.mask

    @_is_mask.setter
    def _is_mask(self, bint value):
        self.mask = value

    @property
    def _device(self):
        """What allocates, copies and computes where the array lies."""
        return self.device

    @property
    def _memory(self):
        """The elements where they lie, as an array of NumPy or CuPy."""
        return self.device.view(self)

    def _view(self, tuple shape, tuple strides, Py_ssize_t offset=0):
        """Return an array of other shape and strides (in elements) over the same memory."""
        return view_of(self, shape, strides, offset)

    def _settle(self):
        """Evaluate the pending call that writes the memory."""
        read_pointer(self)

    def _shares_memory(self, Array other):
        """Return whether both arrays are views of one block."""
        return self.block == other.block and self.block != NULL

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        cdef int i
        self.device.check_host()
        if self.dtype not in _formats:  # NumPy then asks __array__, which knows bfloat16
            raise BufferRefusedError(f"the buffer protocol has no format for {dtypes.NAMES[self.dtype]}")
        if flags & PyBUF_WRITABLE and self.readonly_:
            raise BufferRefusedError("the array's memory is read-only")
        if not mx_own_read:
            refuse_in_trace()
        note_host_read(self)
        if self.node is not None and _leaving is not None and not mx_own_read:
            _leaving(self)
        if self.watch is not None:
            self.watch.writes += 1
            self.watch.exports += 1
        if self.block.lazy or self.block.readers:
            settle(self.block, True)
        self.block.exports += 1
        buffer.buf = self.data
        buffer.obj = self
        buffer.itemsize = itemsize_of(self.dtype)
        buffer.len = self.size * buffer.itemsize
        buffer.readonly = self.readonly_
        buffer.ndim = self.ndim
        buffer.format = <char*><bytes>_formats[self.dtype]
        buffer.shape = self.shape_
        buffer.strides = self.strides_
        buffer.suboffsets = NULL
        buffer.internal = self.block

    def __releasebuffer__(self, Py_buffer* buffer):
        (<Block*>buffer.internal).exports -= 1
        if self.watch is not None:
            self.watch.exports -= 1


cdef Array new_array():
    """Return an array object without memory, of the class that users see."""
    return <Array>(<PyTypeObject*>ARRAY_TYPE).tp_new(ARRAY_TYPE, <PyObject*>_with_key, NULL)


def on_leaving(function):
    """Call ``function(array)`` when another library reads the memory of a recorded array that it was not handed."""
    global _leaving
    _leaving = function


def set_array_type(type cls):
    """Tell which class (a subclass of Array) new arrays have."""
    global ARRAY_TYPE
    ARRAY_TYPE = cls


cdef Array over(Block* block, int ndim, const Py_ssize_t* shape, int dtype):
    """Return a C-order array over a block; over a new one, with whatever was there before, where none is given."""
    cdef Array a
    if block != NULL:
        block_retain(block)  # before an object is made: that may begin a collection of garbage, which has the block
    a = in_c_order(ndim, shape, dtype)
    a.block = block
    if block == NULL:
        a.block = block_new(a.size * itemsize_of(dtype))
        if mx_making != NULL:
            mark_made(a.block)
        if not is_float(dtype):
            fill_fresh(a.block, FRESH_INTEGER)
    elif a.size * itemsize_of(dtype) > block.nbytes:
        raise_beyond(a, block)
    a.data = a.block.data
    return a


cdef Array in_c_order(int ndim, const Py_ssize_t* shape, int dtype):
    """Return an array without memory."""
    cdef Array a = new_array()
    cdef Py_ssize_t step = itemsize_of(dtype), size = 1
    cdef int i
    a.set_dims(ndim)
    for i in range(ndim - 1, -1, -1):
        a.shape_[i] = shape[i]
        a.strides_[i] = step
        if shape[i] > 0:
            if step > (<Py_ssize_t>1 << 56) // shape[i]:
                raise OpValueError(f"shape {tuple([shape[k] for k in range(ndim)])} is too large")
            step *= shape[i]
        size *= shape[i]
    a.dtype = dtype
    a.size = size
    a.contiguous = True
    return a


cdef inline bint is_float(int dtype) noexcept:
    return dtype <= FLOAT16 or dtype == BFLOAT16


cdef void extent(Array a, Py_ssize_t* low, Py_ssize_t* high) noexcept:
    """Give the bytes, from its first element on, that an array's elements lie in."""
    cdef int i
    low[0], high[0] = 0, itemsize_of(a.dtype) if a.size else 0
    for i in range(a.ndim if a.size else 0):
        if a.strides_[i] < 0:
            low[0] += (a.shape_[i] - 1) * a.strides_[i]
        else:
            high[0] += (a.shape_[i] - 1) * a.strides_[i]


cdef int raise_beyond(Array a, Block* block) except -1:
    raise OpValueError(f"a view of shape {a.shape_tuple()} and {dtypes.NAMES[a.dtype]} reaches beyond the {block.nbytes} bytes of "
                       "the memory that it views")


cdef Block* wrapped(Array a, object owner) except NULL:
    """Return a block of the memory that an array's elements lie in, which `owner` keeps alive."""
    cdef Py_ssize_t low, high
    extent(a, &low, &high)
    return block_wrap(a.data + low, high - low, owner)


cdef int adopt(Array a, char* data, object owner) except -1:
    """Let an array have the memory at an address, which `owner` keeps alive."""
    a.data = data
    a.block = wrapped(a, owner)
    if mx_making != NULL:
        mark_made(a.block)
    return 0


cdef Array alloc(int ndim, const Py_ssize_t* shape, int dtype):
    """Return a new C-order array; its elements are whatever was there before."""
    return over(NULL, ndim, shape, dtype)


cdef Array template(shape, int dtype):
    """Return an array of a shape and type without memory, for :func:`alloc_like`."""
    cdef Array a = new_array()
    cdef int i
    a.set_dims(len(shape))
    a.dtype = dtype
    for i in range(a.ndim):
        a.shape_[i] = PyNumber_AsSsize_t(shape[i], NULL)
    return a


cdef Array alloc_like(Array like):
    """Return a new C-order array of the shape and type of another."""
    return alloc(like.ndim, like.shape_, like.dtype)


cdef Array new_like(Array like, Array beside):
    """Return a new C-order array of the shape and type of an array, on the device of another."""
    cdef Array a = <Array>beside.device.make(like.ndim, like.shape_, like.dtype)
    a.device_id = beside.device_id
    return a


cdef Array alloc_tuple(tuple shape, int dtype):
    """Return a new C-order array of a shape given as a tuple."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef int i, ndim = len(shape)
    if not 0 <= dtype <= BFLOAT16 or itemsize_of(dtype) == 0:
        raise OpValueError(f"{dtype} is not the code of an element type")
    if ndim > MAX_DIMS:
        raise OpValueError(f"shape {shape} has {ndim} dimensions; at most {MAX_DIMS} are supported")
    for i in range(ndim):
        dims[i] = PyNumber_AsSsize_t(shape[i], NULL)  # the largest number for what is larger
        if dims[i] < 0:
            raise OpValueError(f"shape {shape} has a negative dimension")
        if dims[i] == PY_SSIZE_T_MAX:
            raise OpValueError(f"shape {shape} is too large")
    return alloc(ndim, dims, dtype)


cpdef Array empty(shape, int dtype):
    """Return an array of this shape and type code whose elements are not set."""
    return alloc_tuple(tuple(shape), dtype)


cdef Array view_of(Array base, tuple shape, tuple strides, Py_ssize_t offset):
    """Return a view; strides and offset count elements of `base`."""
    cdef Py_ssize_t size = itemsize_of(base.dtype)
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t steps[MAX_DIMS]
    cdef int i, ndim = len(shape)
    cdef Array a
    if ndim > MAX_DIMS:
        raise OpValueError(f"an array of {ndim} dimensions; at most {MAX_DIMS} are supported")
    for i in range(ndim):
        dims[i] = PyNumber_AsSsize_t(shape[i], NULL)
        steps[i] = PyNumber_AsSsize_t(strides[i], NULL)
        if dims[i] == PY_SSIZE_T_MAX or steps[i] == PY_SSIZE_T_MAX:
            raise OpValueError(f"a view of shape {shape} is too large")
        steps[i] *= size
    return view_at(base, ndim, dims, steps, offset * size)


cdef Array view_at(Array base, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t offset):
    """Return a view; strides and offset count bytes."""
    cdef Array a = new_array()
    cdef Py_ssize_t dense = itemsize_of(base.dtype), low, high
    cdef int i
    a.set_dims(ndim)
    a.size = 1
    for i in range(ndim):
        a.shape_[i], a.strides_[i] = shape[i], strides[i]
        a.size *= shape[i]
    a.contiguous = True
    for i in range(a.ndim - 1, -1, -1):
        if a.shape_[i] != 1:
            if a.strides_[i] != dense:
                a.contiguous = False
                break
            dense *= a.shape_[i]
    if a.size <= 1:
        a.contiguous = True
    a.dtype = base.dtype
    a.device, a.device_id = base.device, base.device_id
    a.readonly_ = base.readonly_
    a.watch, a.mask = base.watch, base.mask
    a.block = block_retain(base.block)
    a.data = base.data + offset
    extent(a, &low, &high)
    if high and not (a.block.data <= a.data + low and a.data + high <= a.block.data + a.block.nbytes):
        raise_beyond(a, a.block)
    return a


cdef Array detached(Array base):
    """Return another array object over the same memory, without history."""
    cdef Array a = new_array()
    a.set_dims(base.ndim)
    memcpy(a.shape_, base.shape_, base.ndim * sizeof(Py_ssize_t))
    memcpy(a.strides_, base.strides_, base.ndim * sizeof(Py_ssize_t))
    a.size, a.dtype, a.contiguous, a.device_id = base.size, base.dtype, base.contiguous, base.device_id
    a.readonly_ = base.readonly_
    a.watch, a.mask = base.watch, base.mask
    a.device, a.seen = base.device, base.seen
    if base.block != NULL:
        a.block = block_retain(base.block)
    a.data = base.data
    return a


def become(Array target, Array source, bint alike=True):
    """Let an array object stand for what another holds, elsewhere in memory: of another size, and type unless `alike`."""
    cdef Block* block = source.block
    if alike and (target.ndim != source.ndim or target.dtype != source.dtype):
        raise OpValueError(f"an array of {target.ndim} dimensions and {dtypes.NAMES[target.dtype]} cannot become one of "
                           f"{source.ndim} and {dtypes.NAMES[source.dtype]}")
    if not alike and target.block != NULL and target.block.exports:
        raise BufferRefusedError("an array whose buffer is in use cannot become another")
    read_pointer(source)
    if target.ndim != source.ndim:
        if target.shape_ != target.dims:
            free(target.shape_)
            target.shape_, target.strides_ = target.dims, target.dims + INLINE_DIMS
        target.set_dims(source.ndim)
    if not alike:
        target.dtype, target.device_id, target.readonly_ = source.dtype, source.device_id, source.readonly_
        target.node, target.output, target.watch = None, 0, source.watch
    if block != NULL:
        block_retain(block)
    if target.block != NULL:
        block_release(target.block)
    target.block, target.data, target.device, target.seen = block, source.data, source.device, source.seen
    memcpy(target.shape_, source.shape_, source.ndim * sizeof(Py_ssize_t))
    memcpy(target.strides_, source.strides_, source.ndim * sizeof(Py_ssize_t))
    target.size, target.contiguous, target.mask = source.size, source.contiguous, source.mask


cpdef Array from_numpy(source, bint copy=True):
    """Return an array over (or with a copy of) a NumPy array of a supported type."""
    cdef Array a
    if copy:
        a = alloc_tuple(source.shape, dtypes.code_of(source.dtype))
        if a.size:
            as_numpy(a)[...] = source
    else:
        a = over_foreign(source, source.__array_interface__["data"][0])
        a.readonly_ = not source.flags.writeable
    settle_from_host(a)
    return a


def from_gpu(source, int number):
    """Return an array over a CuPy array."""
    cdef Array a = over_foreign(source, source.data.ptr)
    a.device, a.device_id, a.seen = device_of(number), number, source
    return a


cdef Array over_foreign(object source, size_t address):
    """Return an array over the memory of one of NumPy or CuPy."""
    cdef Array a = new_array()
    cdef int i
    a.set_dims(source.ndim)
    a.dtype, a.size = dtypes.code_of(source.dtype), source.size
    for i in range(a.ndim):
        a.shape_[i] = source.shape[i]
        a.strides_[i] = source.strides[i]
    a.contiguous = source.flags.c_contiguous
    adopt(a, <char*>address, source)
    return a


cpdef object as_numpy(Array a):
    """Return a NumPy view of a CPU array's memory."""
    a.device.check_host()
    if a.dtype in _formats:
        return np.asarray(own_buffer(a))
    if a.size == 0:
        return np.empty(a.shape_tuple(), dtypes.numpy_dtype(a.dtype))
    cdef RawBytes raw = RawBytes(a)
    strides = tuple([a.strides_[i] for i in range(a.ndim)])
    return np.ndarray(a.shape_tuple(), dtypes.numpy_dtype(a.dtype), raw, a.data - raw.low, strides)


def values(Array a):
    """Return the elements as an array of NumPy: a view of memory of the CPU, or a copy."""
    note_host_read(a)
    return as_numpy(<Array>a.device.to_host(a))


def address(Array a):
    """Return the address of the first element, for code that may read and write the memory."""
    a.device.view(a)
    return <size_t>a.data


cdef object own_buffer(Array a):
    """Return the buffer of an array that we read ourselves, or that the user asked for by name."""
    global mx_own_read
    mx_own_read = True
    try:
        return memoryview(a)
    finally:
        mx_own_read = False


cdef class RawBytes:
    """The bytes that an array's elements lie in, for types that the buffer protocol cannot name."""

    cdef Array owner
    cdef char* low
    cdef Py_ssize_t nbytes

    def __init__(self, Array owner):
        cdef Py_ssize_t low, high
        extent(owner, &low, &high)
        self.owner, self.low, self.nbytes = owner, owner.data + low, high - low
        if owner.watch is not None:
            owner.watch.writes += 1
            owner.watch.exports += 1

    def __dealloc__(self):
        if self.owner is not None and self.owner.watch is not None:
            self.owner.watch.exports -= 1

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.low, self.nbytes, self.owner.readonly_, flags)


cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) long long mx_host_reads = 0;
    static __declspec(thread) int mx_own_read = 0, mx_tracing = 0;
    #else
    static __thread long long mx_host_reads = 0;
    static __thread int mx_own_read = 0, mx_tracing = 0;
    #endif
    """
    long long mx_host_reads
    bint mx_own_read
    bint mx_tracing


def switch_tracing(bint value):
    """Set whether a function is called in this thread to see what it does, with placeholders; return what it was."""
    global mx_tracing
    before, mx_tracing = mx_tracing, value
    return bool(before)


cdef int refuse_in_trace() except -1:
    """Raise where such a function reads elements: what follows from them would be kept for other calls."""
    if mx_tracing:
        raise OpTypeError("the function reads elements of an array (asnumpy, item, float and the like)")
    return 0


cdef int note_host_read(Array a) except -1:
    """Count that NumPy, or its like, gets the memory of an array with a history."""
    global mx_host_reads
    cdef PyObject* at = mx_making
    if has_history(a):
        mx_host_reads += 1
    if at != NULL and depends(a):
        while at != NULL:
            (<Forward>at).by_host = True
            at = (<Forward>at).outer
    return 0


cdef long long host_reads(long long back_to=-1) noexcept:
    """Return how often this thread handed the memory of a recorded array to code that is not recorded.

    A caller whose own read must not count sets the number back.
    """
    global mx_host_reads
    if back_to >= 0:
        mx_host_reads = back_to
    return mx_host_reads


cdef bytes signature(object inputs, int mode, bint strides=False, bint wants=False):
    """Return what tells calls apart that are prepared for arrays of certain shapes and types.

    Parameters
    ----------
    inputs : sequence of NDArray
    mode : int
        What else matters, in one byte.
    strides : bool
        Whether arrays that are not contiguous differ by their strides.
    wants : bool
        Whether it matters which arrays autograd knows.
    """
    cdef bytes found = PyBytes_FromStringAndSize(NULL, signature_size(inputs, strides))
    write_signature(PyBytes_AS_STRING(found), inputs, mode, strides, wants)
    return found


cdef Py_ssize_t signature_size(object inputs, bint strides) except -1:
    """Return how long a signature is."""
    cdef Py_ssize_t size = 1
    cdef Array a
    for a in inputs:
        size += 2 + a.ndim * <Py_ssize_t>sizeof(Py_ssize_t) * (2 if strides and not a.contiguous else 1)
    return size


cdef int write_signature(char* at, object inputs, int mode, bint strides, bint wants) except -1:
    """Write a signature there."""
    cdef Array a
    at[0] = <char>mode
    at += 1
    for a in inputs:
        at[0], at[1] = <char>a.dtype, <char>(a.ndim << 2)
        if wants and has_history(a):
            at[1] |= 1
        memcpy(at + 2, a.shape_, a.ndim * sizeof(Py_ssize_t))
        if strides and not a.contiguous:
            at[1] |= 2
            memcpy(at + 2 + a.ndim * sizeof(Py_ssize_t), a.strides_, a.ndim * sizeof(Py_ssize_t))
            at += a.ndim * sizeof(Py_ssize_t)
        at += 2 + a.ndim * sizeof(Py_ssize_t)
    return 0


# ---- who wrote an array again ----------------------------------------------------------------------------------------
# Arrays that autograd keeps for backward must not change.  Every call that writes to an array that exists already (not to a
# new one) says so; each is later than the one before.

cdef unsigned long long _writes = 0
cdef list _writers = []
cdef dict _writer_index = {}


cdef unsigned long long stamp_now() noexcept:
    return _writes


cpdef int touch(Array a, str writer) except -1:
    """Say that a call, named by `writer`, writes to an array that exists already."""
    global _writes
    a.mask = False
    if a.block == NULL:
        return 0
    found = _writer_index.get(writer)
    if found is None:
        _writers.append(writer)
        found = _writer_index.setdefault(writer, _writers.index(writer))
    _writes += 1
    a.block.stamp, a.block.writer = _writes, found
    return 0


cdef str changed_by(Array a, unsigned long long since):
    """Return who wrote to an array's memory after a moment, or None."""
    if a.block == NULL or a.block.stamp <= since or a.block.writer == MADE:
        return None
    return <str>_writers[a.block.writer]


# ---- what a user's forward makes -------------------------------------------------------------------------------------
# Nothing is recorded in the forward of a Function or of a CustomOp, so what it keeps for backward has no history.  Where backward
# is recorded, to be differentiated again, such an array is no constant: it gets a node that raises when its gradient is asked for.

cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) PyObject *mx_making = NULL, *mx_reading = NULL;
    #else
    static __thread PyObject *mx_making = NULL, *mx_reading = NULL;
    #endif
    """
    PyObject* mx_making     # the innermost scopes of this thread, which their `with` statements hold
    PyObject* mx_reading

cdef enum:
    MADE = -1               # stands for a writer: the block was new


cdef class Forward:
    """A scope for a user's forward, which tells later which arrays hold what was computed from its inputs.

    They lie over an input, or their memory was allocated or written in the scope: unless by a call of which it is known that no
    input hands a gradient on.
    """

    def __init__(self, list inputs):
        self.inputs = inputs

    def __enter__(self):
        global mx_making
        self.begun, self.outer, mx_making = _writes, mx_making, <PyObject*>self
        return self

    def __exit__(self, *exception):
        global mx_making
        mx_making, self.outer, self.inputs = self.outer, NULL, None


cdef class Reading:
    """A scope for a user's backward that is recorded, and may read what forward made.

    Parameters
    ----------
    forward : Forward
    given : list of NDArray
        Inputs of forward: those without history are constants.
    compared, sources : list of NDArray
        Inputs whose views are no constants; what takes the place of those with a history.
    lost : object
        The user of the node of an array that forward made.
    """

    def __init__(self, Forward forward, list given, list compared, list sources, lost):
        self.forward, self.given, self.compared, self.sources, self.lost = forward, given, compared, sources, lost

    def __enter__(self):
        global mx_reading
        self.begun, self.outer, mx_reading = _writes, mx_reading, <PyObject*>self
        return self

    def __exit__(self, *exception):
        global mx_reading
        mx_reading, self.outer = self.outer, NULL


def note_cut():
    """Say that a user's backward differentiates something on its own, without a record: what it finds are no constants."""
    if mx_reading != NULL:
        (<Reading>mx_reading).cut = True


def handed_to_host():
    """Return whether the user's forward that is running handed what it computed, or an input, to NumPy."""
    return mx_making != NULL and (<Forward>mx_making).by_host


cdef bint is_making() noexcept:
    """Return whether a user's forward is running in this thread."""
    return mx_making != NULL


cdef bint is_read_again() noexcept:
    """Return whether a user's forward, or backward that is recorded, is running in this thread."""
    return mx_making != NULL or mx_reading != NULL


cdef int mark_made(Block* block) noexcept:
    global _writes
    _writes += 1
    block.stamp, block.writer = _writes, MADE
    return 0


cdef bint belongs(Array a, list inputs, unsigned long long begun, unsigned long long ended) noexcept:
    """Return whether an array's memory was written between two moments, or holds a part of an input."""
    cdef Array b
    if a.block == NULL:
        return False
    if begun < a.block.stamp <= ended:
        return True
    for b in inputs:
        if a.block == b.block and not (a.contiguous and b.contiguous and (
                a.data >= b.data + b.size * itemsize_of(b.dtype) or b.data >= a.data + a.size * itemsize_of(a.dtype))):
            return True
    return False


cdef bint depends(Array a) noexcept:
    """Return whether an array may hold what the user's forward that is running, or one around it, computed from its inputs."""
    cdef PyObject* at = mx_making
    while at != NULL:
        if belongs(a, (<Forward>at).inputs, (<Forward>at).begun, _writes):
            return True
        at = (<Forward>at).outer
    return False


cdef Reading reading_of(Array a):
    """Return the recorded backward for which an array without a node is no constant; None for others."""
    cdef PyObject* at = mx_reading
    cdef Reading reading
    cdef Array b
    while at != NULL:
        reading = <Reading>at
        for b in reading.given:
            if b is a:
                return None
        if belongs(a, reading.compared, reading.forward.begun, reading.begun):
            return reading
        at = reading.outer
    return None


cdef bint has_history(Array a) noexcept:
    """Return whether autograd knows an array, or must not take it for a constant."""
    return a.node is not None or (mx_reading != NULL and reading_of(a) is not None)


cdef int place_of(object results) noexcept:
    """Return the number of the GPU on which results lie, or -1."""
    first = results[0] if isinstance(results, list) and results else results
    return (<Array>first).device.number if isinstance(first, Array) else -1


cdef int settle_results(object inputs, list outputs, bint constant) except -1:
    """Let results that a user's forward made be constants, if none of the inputs can hand a gradient on."""
    cdef Array a
    if not constant:
        for a in inputs:
            if (a.dtype <= FLOAT16 or a.dtype == BFLOAT16) and depends(a):
                return 0
    for a in outputs:
        if a is not None and a.block != NULL and a.block.writer == MADE:
            a.block.stamp = 0
    return 0


cpdef int settle_from_host(Array made) except -1:
    """Let a new array with numbers of the host's be a constant, unless the user's forward that makes it handed out its own."""
    if mx_making == NULL:
        return 0
    if (<Forward>mx_making).by_host:
        mark_made(made.block)
    else:
        made.block.stamp = 0
    return 0


cdef Array shape_of(Array a):
    """Return an array of the shape and type of another that keeps none of its memory; it reads as zeros."""
    cdef Array b = new_array(), nothing = <Array>a.device.nothing()
    cdef int i
    b.set_dims(a.ndim)
    for i in range(a.ndim):
        b.shape_[i], b.strides_[i] = a.shape_[i], 0
    b.size, b.dtype, b.device, b.device_id, b.readonly_ = a.size, a.dtype, a.device, a.device_id, True
    b.contiguous = a.size <= 1
    b.block = block_retain(nothing.block)
    b.data = nothing.data
    return b


cdef settle_function _settle = NULL


cdef void set_settle(settle_function function) noexcept:
    """Set the function that evaluates pending calls."""
    global _settle
    _settle = function


cdef int settle(Block* block, bint writes) except -1:
    """Evaluate the pending calls that write a block, before it is read, and also those that read it, before it is written."""
    return _settle(block, writes)


cdef int raise_readonly() except -1:
    raise OpValueError("the array's memory is read-only (an operator's input, or made from a read-only buffer)")


cdef int fill_operand(Operand* operand, Array a) except -1:
    """Describe an array in its own order of elements."""
    operand.data = read_pointer(a)
    operand.dtype = a.dtype
    operand.staged = False
    if a.contiguous:
        operand.contiguous = True
        operand.ndim = 0
    else:
        collapse(operand, a.ndim, a.shape_, a.strides_)
    return 0


cdef int broadcast_operand(Operand* operand, Array a, int ndim, const Py_ssize_t* shape) except -1:
    """Describe an array as broadcast to a larger shape."""
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef int i, at
    operand.data = read_pointer(a)
    operand.dtype = a.dtype
    operand.staged = False
    for i in range(ndim):
        at = i - (ndim - a.ndim)
        if at < 0 or a.shape_[at] == 1:
            strides[i] = 0
        else:
            strides[i] = a.strides_[at]
    collapse(operand, ndim, shape, strides)
    return 0
