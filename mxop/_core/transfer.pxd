from mxop._core.array cimport Array
from mxop._kernels.interp cimport Program

cdef bint same_dims(Array a, Array b) noexcept
cpdef bint overlaps(Array a, Array b) except -1
cpdef bint same_layout(Array a, Array b) except -1
cdef Program copy_program(int dtype)
cdef int copy_into(Array source, Array target, int req) except -1
cdef int copy_on_host(Array source, Array target, int req) except -1
cdef int gather_on_host(Array source, Py_ssize_t offset, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides,
                        Array target) except -1
cdef int fill_on_host(Array target, double value) except -1
cdef Array contiguous_copy(Array a)
