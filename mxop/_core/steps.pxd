from mxop._core.array cimport Array
from mxop._core.call cimport Call, Places
from mxop._core.device cimport Device
from mxop._kernels.operands cimport Operand
from mxop._kernels.interp cimport Program
from mxop._kernels.work cimport Work

cdef enum:
    MOST_ARRAYS = 4     # of a compiled work

# A copy of elements that lie elsewhere: transposed, sliced, broadcast.
cdef class Move(Call):
    cdef Array source, result
    cdef Program program
    cdef Operand operands[2]

# Compiled work on fixed arrays; what it makes ready once is used while `kept` is there.
cdef class WorkCall(Call):
    cdef readonly Work work
    cdef Work kept
    cdef list arrays
    cdef object refuse
    cdef char* data[MOST_ARRAYS]

cdef class Steps(Call):
    cdef readonly list calls
    cdef readonly bint adds     # whether the output, which then is one, is to be added to
    cdef bint checks            # whether shapes are looked at: an author of operators may be wrong
    cdef list temporaries
    cdef Places places
    cdef Device device
    cdef Steps finished(self)

cpdef Move move_of(Array source, Array result, int req)
cdef list works_of(list calls)
