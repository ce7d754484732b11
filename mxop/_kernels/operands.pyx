"""Arrays as programs see them: elements in the order of an iteration, wherever they lie and of whatever type.

A run of them is read where it is, or loaded into a register (strides, broadcasting and casts happen there and nowhere else),
and stored from one.
"""
from mxop._kernels.instruction_sets cimport BULK, ISA, itemsize_of, mx_load, mx_store
from mxop._kernels.machine cimport MX_LONG_ROW

cdef extern from "mxop_bulk.h" nogil:
    enum:
        MX_ROWS

cdef extern from "mxop_random.h" nogil:
    ctypedef struct mx_draw:
        unsigned long long key
        unsigned long long start


cdef void collapse(Operand* operand, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept nogil:
    """Describe an array by as few dimensions as its strides allow; one dense dimension makes it contiguous."""
    cdef int i, top = -1
    cdef Py_ssize_t size = itemsize_of(operand.dtype)
    for i in range(ndim):
        if shape[i] == 1:
            continue
        if top >= 0 and operand.strides[top] == strides[i] * shape[i]:
            operand.shape[top] *= shape[i]
            operand.strides[top] = strides[i]
        else:
            top += 1
            operand.shape[top] = shape[i]
            operand.strides[top] = strides[i]
    operand.ndim = top + 1
    operand.contiguous = top < 0 or (top == 0 and operand.strides[0] == size)


cdef bint was_read(const Operand* output, const Operand* inputs, int n) noexcept nogil:
    """Return whether an output lies where an input does, so that it is in the cache when it is written."""
    cdef int k
    for k in range(n):
        if inputs[k].data == output.data and inputs[k].contiguous and inputs[k].dtype == output.dtype:
            return True
    return False


cdef inline char* place_of(const Operand* operand, Py_ssize_t at, Py_ssize_t* index) noexcept nogil:
    """Return where an element lies; `index` becomes its place in each dimension."""
    cdef char* p = operand.data
    cdef int d
    for d in range(operand.ndim - 1, -1, -1):
        index[d] = at % operand.shape[d]
        at = at // operand.shape[d]
        p = p + index[d] * operand.strides[d]
    return p


cdef inline char* carried(const Operand* operand, int d, char* p, Py_ssize_t* index) noexcept nogil:
    """Return where the next element lies when dimension `d` has come to its end, or has not."""
    while d > 0 and index[d] == operand.shape[d]:
        p = p + operand.strides[d - 1] - operand.shape[d] * operand.strides[d]
        index[d] = 0
        index[d - 1] += 1
        d -= 1
    return p


cdef void load_block(const Operand* operand, int ctype, Py_ssize_t start, Py_ssize_t length, char* dst) noexcept nogil:
    """Load elements ``start`` to ``start + length`` into a register."""
    cdef mx_load load = ISA.loads[operand.dtype][ctype]
    cdef Py_ssize_t size = itemsize_of(ctype), run, inner, at, rows
    cdef Py_ssize_t index[MAX_DIMS]
    cdef int last = operand.ndim - 1, d
    cdef char* p
    cdef bint every_other  # or backwards: there are vector loops for that
    if operand.contiguous:
        load(length, operand.data + start * itemsize_of(operand.dtype), itemsize_of(operand.dtype), dst)
        return
    p = place_of(operand, start, index)
    inner = operand.shape[last]
    every_other = operand.dtype == ctype and operand.strides[last] in (2 * size, -size)
    at = 0
    while at < length:
        run = inner - index[last]
        d = last
        if last and run == inner and length - at >= 2 * inner and operand.dtype == ctype:  # whole rows, all at once
            d -= 1
            rows = min((length - at) // inner, operand.shape[d] - index[d])
            BULK.move(MX_ROWS, <int>size, inner, rows, p, operand.strides[last], operand.strides[d], dst + at * size, size,
                      inner * size, 0)
            at += rows * inner
            index[d] += rows
            p = p + rows * operand.strides[d]
        else:
            if run > length - at:
                run = length - at
            if every_other:
                BULK.move(MX_ROWS, <int>size, run, 1, p, operand.strides[last], 0, dst + at * size, size, 0, 0)
            else:
                load(run, p, operand.strides[last], dst + at * size)
            at += run
            index[d] += run
            p = p + run * operand.strides[d]
        p = carried(operand, d, p, index)


cdef const char* block_in_place(const Operand* operand, int ctype, Py_ssize_t start, Py_ssize_t length) noexcept nogil:
    """Return where elements ``start`` to ``start + length`` lie one after the other, NULL when they do not.

    A row that is broadcast over others, as a bias is, is read in place by every block that keeps within it.
    """
    cdef int last = operand.ndim - 1
    cdef Py_ssize_t index[MAX_DIMS]
    if (operand.dtype != ctype or last < 0 or operand.strides[last] != itemsize_of(ctype)
            or start % operand.shape[last] + length > operand.shape[last]):
        return NULL
    return place_of(operand, start, index)


cdef bint converts(const Operand* outputs, int n, int ctype) noexcept nogil:
    """Return whether some results are of another type than what is computed, as float16 is."""
    cdef int k
    for k in range(n):
        if outputs[k].dtype != ctype:
            return True
    return False


cdef bint is_value(const Operand* operand) noexcept nogil:
    """Return whether elements come in long rows, each of one number."""
    return (not operand.contiguous and operand.ndim > 0 and operand.strides[operand.ndim - 1] == 0
            and operand.shape[operand.ndim - 1] >= MX_LONG_ROW)


cdef Py_ssize_t period_of(const Operand* operand) noexcept nogil:
    """Return after how many elements the same ones come again, as those of a bias do for each row; 0: never."""
    cdef Py_ssize_t n = 1
    cdef int d
    if operand.contiguous or operand.ndim == 0 or operand.strides[0] != 0:
        return 0
    for d in range(1, operand.ndim):
        n *= operand.shape[d]
    return n


cdef const char* place_in_order(const Operand* operand, Py_ssize_t start, Py_ssize_t length) noexcept nogil:
    """Return the same of any operand, in its own type."""
    if not operand.contiguous:
        return block_in_place(operand, operand.dtype, start, length)
    return operand.data + start * itemsize_of(operand.dtype)


cdef void store_block(const Operand* operand, int ctype, Py_ssize_t start, Py_ssize_t length, const char* src) noexcept nogil:
    """Store a register to elements ``start`` to ``start + length``, adding when the request says so."""
    cdef mx_store store = ISA.stores[operand.dtype][ctype]
    cdef Py_ssize_t size = itemsize_of(ctype), run, inner, at
    cdef Py_ssize_t index[MAX_DIMS]
    cdef int last = operand.ndim - 1, add = operand.req == REQ_ADD
    cdef char* p
    if operand.contiguous:
        store(length, src, operand.data + start * itemsize_of(operand.dtype), itemsize_of(operand.dtype), add)
        return
    p = place_of(operand, start, index)
    inner = operand.shape[last]
    at = 0
    while at < length:
        run = inner - index[last]
        if run > length - at:
            run = length - at
        store(run, src + at * size, p, operand.strides[last], add)
        at += run
        index[last] += run
        p = p + run * operand.strides[last]
        p = carried(operand, last, p, index)


cdef void load_key(const Operand* operand, Py_ssize_t start, char* dst) noexcept nogil:
    """Tell an instruction that draws random numbers what they follow from: the key and the index of its first element."""
    (<mx_draw*>dst).key = (<const unsigned long long*>operand.data)[0]
    (<mx_draw*>dst).start = <unsigned long long>start
