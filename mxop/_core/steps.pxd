from mxop._core.array cimport Array
from mxop._core.call cimport Call, Places
from mxop._kernels.interp cimport Operand, Program

# A copy of elements that lie elsewhere: transposed, sliced, broadcast.
cdef class Move(Call):
    cdef Array source, result
    cdef Program program
    cdef Operand operands[2]

cdef class Steps(Call):
    cdef readonly list calls
    cdef readonly bint adds     # whether the output, which then is one, is to be added to
    cdef bint checks            # whether shapes are looked at: an author of operators may be wrong
    cdef list temporaries
    cdef Places places
    cdef Steps finished(self)

cdef Move move_of(Array source, Array result, int req)
