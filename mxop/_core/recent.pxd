from cpython.object cimport PyObject

from mxop._core.array cimport Array

cdef class Entry:
    cdef object op, attrs, plan
    cdef bytes signature

# The latest plans by operator (or whose they are), parameters, and the shapes and types of the arrays.
cdef class Latest:
    cdef list latest
    cdef Entry entry(self, object op, object attrs, object inputs, int mode, bint strides, bint wants)
    cdef int keep(self, Entry entry, object inputs, object plan) except -1

cdef class Plans(Latest):
    cdef dict kept
    cdef object find(self, object op, object attrs, object inputs, bint strides)
    cdef object put(self, object op, object attrs, object inputs, bint strides, object plan)

# Parameters by the keyword arguments that they were parsed from, and by the number of inputs where that is one of them.
cdef class Parsed:
    cdef dict kept
    cdef list latest
    cdef object find(self, tuple names, PyObject** values, Py_ssize_t n_inputs)
    cdef object note(self, tuple names, tuple values, Py_ssize_t n_inputs, object attrs)

cdef object MISSING
cdef bint numpy_shapes() except -1
