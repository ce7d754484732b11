from cpython.object cimport PyObject

from mxop._core.array cimport Array

cdef class Room:
    cdef object shape, dtype, current, using, make
    cdef Array like
    cdef int place
    cdef Array new(self)

cdef bint begins_a_word(Array a) except -1
cdef list relaunched(dict launches, PyObject** inputs, int n, bint numpy, list values)
cdef int keep_launch(dict launches, PyObject** inputs, int n, bint numpy, object plan, list results) except -1
