# What a compiled kernel is made ready as; see work.pyx.
from mxop._kernels.interp cimport Program
from mxop._kernels.operands cimport Operand, Value

# A formula of a result, which is computed of parts of it while these are near.
cdef class Finish:
    cdef Program program
    cdef const Operand* inputs
    cdef const Operand* outputs
    cdef char* scalars
    cdef Py_ssize_t block, room     # elements at a time, and bytes of scratch memory that each thread needs for them
    cdef Py_ssize_t itemsize        # of the result
    cdef bint past                  # results are written by non-temporal stores
    cdef const char* result         # in a run: where the result begins; which inputs are it, as bits; whether an output takes its place
    cdef unsigned read
    cdef bint replaces
    cdef void rows(self, const char* first, Py_ssize_t count, Py_ssize_t step, Py_ssize_t length, const char* block, Py_ssize_t stride,
                   char* scratch) noexcept nogil

cdef Finish finish_of(Program program, const Operand* operands, const Value* params, Py_ssize_t size, Py_ssize_t itemsize)

cdef class Work:
    cdef Py_ssize_t run(self, char** data, int threads) except? -2
    cdef int kept_operand(self) noexcept
    cdef Work keeping(self, char** data)
    cdef bint finishes(self, bint costly) noexcept
    cdef int run_finishing(self, char** data, int threads, Finish finish) except -1
