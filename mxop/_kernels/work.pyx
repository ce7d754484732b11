"""What a compiled kernel is made ready as: sizes, types and parameters are settled, and a run is given memory only.

The memory is a table of pointers, inputs first and the output last, each to elements in C order.  A work holds nothing of
one run: several threads may run it at a time.  May import nothing of mxop.
"""


cdef class Work:
    """A kernel for arrays of certain sizes and types."""

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        """Run on at most so many threads; return -1, or the position of an element that was refused before any was written."""
        raise NotImplementedError(type(self).__name__)
