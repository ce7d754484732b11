from mxop._core.array cimport MAX_VALUES, Value
from mxop._core.call cimport Call
from mxop._kernels.interp cimport Program
from mxop._kernels.operands cimport Operand

cdef enum:
    MOST_PLACES = 16        # arrays of a call that needs no set-up

# A program on fixed arrays.
cdef class ProgramCall(Call):
    cdef Program program
    cdef Operand* operands
    cdef Py_ssize_t size
    cdef Value values[MAX_VALUES]
    cdef list arrays
    cdef readonly str label
    cdef bint tiny                  # few elements of plain arrays: nothing to set up
