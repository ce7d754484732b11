"""What a compiled kernel is made ready as: sizes, types and parameters are settled, and a run is given memory only.

The memory is a table of pointers, inputs first and the output last, each to elements in C order.  A work holds nothing of
one run: several threads may run it at a time.
"""
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from mxop._kernels.instruction_sets cimport mx_stream_fence
from mxop._kernels.interp cimport BLOCK_BYTES, Program, streams
from mxop._kernels.machine cimport MX_LONG_ROW
from mxop._kernels.operands cimport Operand, Value

cdef class Finish:
    """A formula of a result: a program on operands, of which inputs are the result or like it in their order of elements."""

    def __dealloc__(self):
        free(self.scalars)

    cdef void rows(self, const char* first, Py_ssize_t count, Py_ssize_t step, Py_ssize_t length, const char* block, Py_ssize_t stride,
                   char* scratch) noexcept nogil:
        """Compute rows of so many elements, which belong `step` bytes apart in the result; as one where they lie side by side.

        They lie in a block, `stride` bytes apart; or in the result itself, where that is NULL.
        """
        cdef Py_ssize_t at = (first - self.result) // self.itemsize, i
        cdef Operand* inputs = <Operand*>scratch
        cdef int k
        memcpy(inputs, self.inputs, self.program.n_inputs * sizeof(Operand))
        scratch += (self.program.n_inputs * sizeof(Operand) + 63) & -64
        if step == length * self.itemsize and (block == NULL or stride == step):
            length, count = length * count, 1
        for i in range(count):
            for k in range(self.program.n_inputs if block != NULL else 0):
                if self.read >> k & 1:
                    inputs[k].data = <char*>block + i * stride - at * self.itemsize
            self.program._range(at, at + length, inputs, self.outputs, self.scalars, scratch, min(self.block, length), self.past,
                                NULL)
            at += step // self.itemsize
        if self.past:
            mx_stream_fence()


cdef Finish finish_of(Program program, const Operand* operands, const Value* params, Py_ssize_t size, Py_ssize_t itemsize):
    """Return what finishes a result of so many elements of that size: a program on inputs, and outputs that lie behind them."""
    cdef Finish found = Finish()
    cdef Program by_values = program.by_values(size, operands, MX_LONG_ROW, 1)
    found.inputs, found.outputs, found.itemsize = operands, operands + program.n_inputs, itemsize
    found.program = program if by_values is None else by_values
    found.block = BLOCK_BYTES // program.itemsize // 2
    found.room = (program.n_inputs * sizeof(Operand) + 63) & -64
    found.room += ((found.block * program.itemsize + 63) & -64) * (found.program.n_registers + 1)
    found.past = streams(size * itemsize)
    found.scalars = <char*>malloc(found.program.n_scalars * 8 + 1)
    if found.scalars == NULL:
        raise MemoryError()
    found.program.fill_scalars(params, found.scalars)
    return found


cdef class Work:
    """A kernel for arrays of certain sizes and types."""

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        """Run on at most so many threads; return -1, or the position of an element that was refused before any was written."""
        raise NotImplementedError(type(self).__name__)

    cdef int kept_operand(self) noexcept:
        """Return the operand that can be made ready once for several runs, -1 where there is none."""
        return -1

    cdef Work keeping(self, char** data):
        """Return work that does the same for as long as the elements of that operand, which it has made ready, do not change."""
        raise NotImplementedError(type(self).__name__)

    cdef bint finishes(self, bint costly) noexcept:
        """Return whether a formula had better be computed of parts of a large result as soon as they are done."""
        return False

    cdef int run_finishing(self, char** data, int threads, Finish finish) except -1:
        """Run, and compute a formula of the result."""
        raise NotImplementedError(type(self).__name__)
