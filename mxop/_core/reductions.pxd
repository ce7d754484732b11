from mxop._core.array cimport Array

cdef class ReductionCall:
    cdef object op, attrs, map_formula, final_formula
    cdef int combine
    cdef dict axes              # rank -> axes
    cdef list maps, finals      # by compute type
    cdef int compute_type(self, int dtype) except -1
    cdef int make_programs(self, int ctype) except -1
    cdef tuple axes_of(self, int rank)

cdef ReductionCall reduction_call(object op, object attrs)
cdef int reduce_cpu(ReductionCall call, Array source, tuple axes, Array result, int req) except -1
