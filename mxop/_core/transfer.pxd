from mxop._core.array cimport Array
from mxop._kernels.interp cimport Program

cdef bint same_dims(Array a, Array b) noexcept
cdef bint overlaps(Array a, Array b) noexcept
cdef bint same_layout(Array a, Array b) noexcept
cdef Array prepared_output(object op, object out, object shape, int dtype)
cdef list output_list(object op, object out, int n)
cdef int raise_devices(object op, object inputs) except -1
cdef Program copy_program(int dtype)
cdef int copy_into(Array source, Array target, int req) except -1
cdef Array contiguous_copy(Array a)
