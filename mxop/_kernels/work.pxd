# What a compiled kernel is made ready as; see work.pyx.

cdef class Work:
    cdef Py_ssize_t run(self, char** data, int threads) except? -2
    cdef int kept_operand(self) noexcept
    cdef Work keeping(self, char** data)
