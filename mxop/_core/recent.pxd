from mxop._core.array cimport Array

cdef class Entry:
    cdef object op, attrs, plan
    cdef bytes signature

# Plans by operator (or whose they are), parameters, and the shapes and types of the arrays.
cdef class Plans:
    cdef dict kept
    cdef list latest
    cdef object find(self, object op, object attrs, object inputs, int mode, bint strides)
    cdef object put(self, object op, object attrs, object inputs, int mode, bint strides, object plan)

# Parameters by the keyword arguments that they were parsed from.
cdef class Parsed:
    cdef dict kept
    cdef list latest
    cdef object find(self, dict kwargs)
    cdef object note(self, tuple names, tuple values, object attrs)

cdef object MISSING
