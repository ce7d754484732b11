cdef Py_ssize_t PARALLEL_BYTES

cdef int threads_for(Py_ssize_t nbytes) noexcept nogil
cdef int threads_of(int most, Py_ssize_t parts) noexcept nogil
cdef int most_threads() noexcept nogil
cdef bint backwards(Py_ssize_t tasks, Py_ssize_t nbytes) noexcept nogil
