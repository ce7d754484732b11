"""Copies between arrays, and whether their memory overlaps."""
from libc.string cimport memcpy, memset

from mxop._core.array cimport Array, extent, fill_operand, new_like, read_pointer, write_pointer
from mxop._kernels.instruction_sets cimport itemsize_of, store_of
from mxop._kernels.machine cimport MX_GIL_BYTES
from mxop._kernels.operands cimport REQ_ADD, REQ_NULL, REQ_WRITE, Operand, collapse
from mxop._kernels.interp cimport Program
from mxop._kernels.moves cimport move

from mxop.support.errors import OpValueError
from mxop.formula import compile_program, input_


cdef list _copies = [None] * 7


cdef bint same_dims(Array a, Array b) noexcept:
    cdef int i
    if a.ndim != b.ndim:
        return False
    for i in range(a.ndim):
        if a.shape_[i] != b.shape_[i]:
            return False
    return True


cpdef bint overlaps(Array a, Array b) except -1:
    """Return whether the memory of two arrays may overlap."""
    cdef char* x = read_pointer(a)
    cdef char* y = read_pointer(b)
    cdef Py_ssize_t a_low, a_high, b_low, b_high
    if x == NULL or y == NULL or a.size == 0 or b.size == 0:
        return False
    extent(a, &a_low, &a_high)
    extent(b, &b_low, &b_high)
    return x + a_low < y + b_high and y + b_low < x + a_high


def span(Array a):
    """Return the addresses at which the memory of an array begins and ends."""
    cdef char* x = read_pointer(a)
    cdef Py_ssize_t low, high
    if a.size == 0 or x == NULL:
        return 0, 0
    extent(a, &low, &high)
    return <size_t>(x + low), <size_t>(x + high)


cpdef bint same_layout(Array a, Array b) except -1:
    """Return whether element k of both arrays lies at the same address."""
    cdef int i
    if read_pointer(a) != read_pointer(b) or a.dtype != b.dtype or not same_dims(a, b):
        return False
    for i in range(a.ndim):
        if a.shape_[i] != 1 and a.strides_[i] != b.strides_[i]:
            return False
    return True


cdef Program copy_program(int dtype):
    """Return the program that copies elements of a type."""
    cdef int ctype = 0 if dtype == 2 or dtype == 12 else 3 if dtype == 7 else dtype
    found = _copies[ctype]
    if found is None:
        found = _copies[ctype] = Program(compile_program((input_(0),), 1, lambda name: True), (), ctype)
    return <Program>found


cdef int copy_into(Array source, Array target, int req) except -1:
    """Copy (or add, by `req`) one array into another of the same number of elements, converting types."""
    if req != REQ_NULL:
        target.device.copy(source, target, req)
    return 0


cdef int copy_on_host(Array source, Array target, int req) except -1:
    cdef Operand operands[2]
    write_pointer(target)
    if overlaps(source, target) and not same_layout(source, target):
        source = contiguous_copy(source)
    fill_operand(&operands[0], source)
    fill_operand(&operands[1], target)
    operands[1].req = req
    operands[1].staged = False
    if operands[0].contiguous and operands[1].contiguous and source.dtype == target.dtype and req != REQ_ADD:
        if source.size * itemsize_of(source.dtype) < MX_GIL_BYTES:
            memcpy(write_pointer(target), read_pointer(source), source.size * itemsize_of(source.dtype))
            return 0
    return move(source.size, &operands[0], &operands[1], copy_program(source.dtype))


cdef int gather_on_host(Array source, Py_ssize_t offset, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides,
                        Array target) except -1:
    cdef Operand operands[2]
    operands[0].data, operands[0].dtype, operands[0].staged = read_pointer(source) + offset, source.dtype, False
    collapse(&operands[0], ndim, shape, strides)
    if operands[0].contiguous and target.size * itemsize_of(target.dtype) < MX_GIL_BYTES:
        memcpy(write_pointer(target), operands[0].data, target.size * itemsize_of(target.dtype))
        return 0
    fill_operand(&operands[1], target)
    operands[1].req = REQ_WRITE
    return move(target.size, &operands[0], &operands[1], copy_program(source.dtype))


cdef int fill_on_host(Array target, double value) except -1:
    """Copy an element that lies everywhere."""
    cdef Operand operands[2]
    cdef unsigned long long element = 0
    cdef char* p = write_pointer(target)
    cdef Py_ssize_t done = itemsize_of(target.dtype), nbytes = target.size * done
    store_of(target.dtype, True)(1, &value, <char*>&element, 0, False)
    if target.contiguous and element == 0:
        if nbytes < MX_GIL_BYTES:
            memset(p, 0, nbytes)
        else:
            with nogil:
                memset(p, 0, nbytes)
        return 0
    if target.contiguous and 0 < nbytes < MX_GIL_BYTES:
        memcpy(p, &element, done)
        while done < nbytes:
            memcpy(p + done, p, min(done, nbytes - done))
            done *= 2
        return 0
    operands[0].data, operands[0].dtype, operands[0].staged, operands[0].contiguous = <char*>&element, target.dtype, False, False
    operands[0].ndim, operands[0].shape[0], operands[0].strides[0] = 1, target.size, 0
    fill_operand(&operands[1], target)
    operands[1].req, operands[1].staged = REQ_WRITE, False
    return move(target.size, &operands[0], &operands[1], copy_program(target.dtype))


cdef Array contiguous_copy(Array a):
    """Return a C-order copy."""
    cdef Array result = new_like(a, a)
    copy_into(a, result, REQ_WRITE)
    result.mask = a.mask
    return result


def copy(Array source, Array target, int req=REQ_WRITE):
    """Copy one array into another; see :func:`copy_into`."""
    if source.size != target.size:
        raise OpValueError(f"cannot copy an array of shape {source.shape_tuple()} to shape {target.shape_tuple()}")
    copy_into(source, target, req)


def contiguous(Array a):
    """Return the array itself when it is contiguous, else a C-order copy."""
    return a if a.contiguous else contiguous_copy(a)
