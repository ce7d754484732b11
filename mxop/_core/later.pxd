from mxop._core.array cimport Array, Value

cdef object defer(object call, int n_in, int n_out, object inputs, const Value* values, int dtype, int ndim,
                  const Py_ssize_t* shape, Py_ssize_t size)
cdef bint may_wait(Py_ssize_t size) noexcept
cdef bint hand_on(Array made, Array target) except -1
cpdef int run_all() except -1
