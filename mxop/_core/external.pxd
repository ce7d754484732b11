from mxop._core.array cimport Array

cdef int execute_external(object op, object attrs, list inputs, list outputs, list reqs) except -1
cdef int deliver_states(object op, object attrs, list ready, object inputs) except -1
cdef int run_users_kernel(object op, object run, list inputs, list work, dict params) except -1
