from mxop._kernels.operands cimport Operand
from mxop._kernels.interp cimport Program

cdef int move(Py_ssize_t n, Operand* source, Operand* target, Program convert) except -1
cdef str way_of(Py_ssize_t n, const Operand* source, const Operand* target)
