# What a compiled kernel is made ready as; see work.pyx.

cdef class Work:
    cdef Py_ssize_t run(self, char** data, int threads) except? -2
