from cpython.object cimport PyObject

from mxop._core.array cimport Array

cdef bint begins_a_word(Array a) noexcept
cdef list relaunched(dict launches, PyObject** inputs, int n, bint numpy, list values)
cdef int keep_launch(dict launches, PyObject** inputs, int n, bint numpy, object plan, list results) except -1
cdef tuple by_graphs(list calls)
