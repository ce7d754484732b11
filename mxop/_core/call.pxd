cdef class Call:
    cdef int execute(self) except -1
