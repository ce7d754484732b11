from cpython.object cimport PyObject

from mxop._core.device cimport Device
from mxop._kernels.operands cimport MAX_DIMS, Operand, Value
from mxop._kernels.memory cimport Block

ctypedef int (*settle_function)(Block* block, bint writes) except -1

cdef enum:
    INLINE_DIMS = 6
    MAX_VALUES = 16         # numeric parameters of one operator

cdef class Node
cdef class Array

# A run of a user's forward.
cdef class Forward:
    cdef list inputs
    cdef unsigned long long begun           # what it makes is allocated or written later
    cdef readonly bint by_host              # it handed what it computed, or an input, to NumPy
    cdef PyObject* outer

# A run of a user's backward that is recorded.
cdef class Reading:
    cdef Forward forward
    cdef list given, compared
    cdef unsigned long long begun
    cdef readonly list sources              # the inputs with a history
    cdef readonly object lost               # what is asked for the gradient of an array that has none
    cdef readonly bint cut                  # it differentiated something itself, and no record was made of that
    cdef PyObject* outer

# Counts writes to some memory; all arrays over it that descend from one share it.
cdef class Watch:
    cdef long long writes           # calls that wrote, and buffers handed out
    cdef long long exports          # buffers that are out now: who holds one may write unseen


# One recorded call, or a variable (a leaf) when `op` is None.
cdef class Node:
    cdef object op                  # the Operator
    cdef object call                # how to run its backward: an ElementwiseCall, or the parsed Attrs
    cdef list parents               # Node or None for each input
    cdef list parent_outputs        # which output of the parent each input was
    cdef list inputs                # arrays kept for backward, None where not needed
    cdef list outputs               # detached arrays kept for backward, None where not needed
    cdef object reads               # what the operator's rule reads: see Operator.rule_reads
    cdef int n_outputs
    cdef unsigned long long serial  # creation order: a topological order
    cdef unsigned long long stamp   # what is kept was last written before this, or somebody changed it
    cdef bint freed
    cdef Value values[MAX_VALUES]
    cdef object grad                # leaves only: an array, or a sparse one
    cdef int grad_req
    cdef bint fresh                 # backward wrote `grad` since this was last reset
    cdef object user                # autograd.Function instances
    # scratch of one backward pass
    cdef list pending
    cdef unsigned long long alone   # bits: which of them nobody else has
    cdef unsigned long long visit

cdef class Array:
    cdef Block* block
    cdef char* data
    cdef int dtype
    cdef int ndim
    cdef int device_id
    cdef bint contiguous
    cdef bint readonly_
    cdef bint mask                  # a comparison's result: as an index it is a mask
    cdef Py_ssize_t size
    cdef Py_ssize_t* shape_
    cdef Py_ssize_t* strides_       # in bytes
    cdef Py_ssize_t dims[2 * INLINE_DIMS]
    cdef Device device
    cdef object seen                # the CuPy array over the memory of a GPU, once somebody asked for it
    cdef Node node                  # where it came from, while recording
    cdef int output
    cdef Watch watch                # None unless somebody asks whether the memory is written
    cdef object __weakref__

    cdef tuple shape_tuple(self)
    cdef int set_dims(self, int ndim) except -1

cdef Device HOST

cdef Array new_array()
cdef Array over(Block* block, int ndim, const Py_ssize_t* shape, int dtype)
cdef Array in_c_order(int ndim, const Py_ssize_t* shape, int dtype)
cdef Array alloc(int ndim, const Py_ssize_t* shape, int dtype)
cdef Array alloc_like(Array like)
cdef Array new_like(Array like, Array beside)
cdef Array template(shape, int dtype)
cdef Array alloc_tuple(tuple shape, int dtype)
cdef Array view_at(Array base, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t offset)
cdef Array view_of(Array base, tuple shape, tuple strides, Py_ssize_t offset)
cdef Array detached(Array base)
cdef int fill_operand(Operand* operand, Array a) except -1
cdef int broadcast_operand(Operand* operand, Array a, int ndim, const Py_ssize_t* shape) except -1
cdef void extent(Array a, Py_ssize_t* low, Py_ssize_t* high) noexcept
cdef Block* wrapped(Array a, object owner) except NULL
cdef int adopt(Array a, char* data, object owner) except -1
cpdef object as_numpy(Array a)
cpdef Array from_numpy(source, bint copy=*)
cdef int raise_readonly() except -1
cdef long long host_reads(long long back_to=*) noexcept
cdef unsigned long long stamp_now() noexcept
cdef Array shape_of(Array a)
cdef bytes signature(object inputs, int mode, bint strides=*, bint wants=*)
cdef Py_ssize_t signature_size(object inputs, bint strides) except -1
cdef int write_signature(char* at, object inputs, int mode, bint strides, bint wants) except -1
cpdef int touch(Array a, str writer) except -1
cdef str changed_by(Array a, unsigned long long since)
cdef int refuse_in_trace() except -1
cdef bint is_making() noexcept
cdef bint is_read_again() noexcept
cdef bint depends(Array a) noexcept
cdef bint has_history(Array a) noexcept
cdef Reading reading_of(Array a)
cdef int note_host_read(Array a) except -1
cdef int place_of(object results) noexcept
cdef int settle_results(object inputs, list outputs, bint constant) except -1
cpdef int settle_from_host(Array made) except -1


cdef void set_settle(settle_function function) noexcept
cdef int settle(Block* block, bint writes) except -1


cdef inline char* read_pointer(Array a) except? NULL:
    """The one way to an array's memory for reading."""
    if a.block != NULL and a.block.lazy:
        settle(a.block, False)
    return a.data


cdef inline char* write_pointer(Array a) except? NULL:
    """The one way to an array's memory for writing."""
    if a.readonly_:
        raise_readonly()
    if a.watch is not None:
        a.watch.writes += 1
    if a.block != NULL and (a.block.lazy or a.block.readers):
        settle(a.block, True)
    return a.data


cdef type ARRAY_TYPE
cpdef Array empty(shape, int dtype)
