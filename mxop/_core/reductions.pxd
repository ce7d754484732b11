from mxop._core.array cimport Array
from mxop._core.call cimport Call
from mxop._kernels.operands cimport Operand
from mxop._kernels.interp cimport Program
from mxop._kernels.reduce cimport Reduced

cdef class ReductionCall:
    cdef object op, attrs, map_formula, final_formula
    cdef int combine
    cdef dict axes              # rank -> axes
    cdef list programs          # by compute type: for each element, for each result
    cdef dict types             # type of the data -> compute type
    cdef int compute_type(self, int dtype) except -1
    cdef tuple programs_of(self, int ctype)
    cdef tuple axes_of(self, int rank)

# A reduction of one array into another.
cdef class ReductionRun(Call):
    cdef ReductionCall call
    cdef Program map_, final
    cdef Array source, result
    cdef Reduced reduced
    cdef Operand operands[3]    # of the final program: the combined values, their number if it asks, the result
    cdef double count
    cdef Py_ssize_t kept
    cdef int ctype
    cdef bint direct            # the result has room for the combined values

cdef ReductionCall reduction_call(object op, object attrs)
cdef ReductionRun reduction_run(ReductionCall call, Array source, tuple axes, Array result, int req)
