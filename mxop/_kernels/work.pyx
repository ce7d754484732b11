"""What a compiled kernel is made ready as: sizes, types and parameters are settled, and a run is given memory only.

The memory is a table of pointers, inputs first and the output last, each to elements in C order.  A work holds nothing of
one run: several threads may run it at a time.  May import nothing of mxop.
"""


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
