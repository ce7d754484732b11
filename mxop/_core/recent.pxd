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

cdef enum:
    SLOTS = 32              # arguments of a call whose form is kept
    PARAMETER = -1
    OUTPUT = -2

# How one call was written: its arguments, of which the last have names.  An array is an input or the output, whatever it holds;
# everything else is a parameter, the same each time.
cdef class Form:
    cdef tuple names, values
    cdef int places[SLOTS]  # an argument's place among the inputs; PARAMETER or OUTPUT
    cdef int n_inputs, output_at
    cdef object attrs
    cdef object plan        # the plan of its last call, for callers that keep one
    cdef bint is_this(self, PyObject** values, Py_ssize_t n, tuple names, bint objects)
    cdef tuple inputs(self, PyObject** values)
    cdef object output(self, PyObject** values)

# The latest forms of calls of one operator.
cdef class Forms:
    cdef list latest
    cdef Form last          # the one that was found last: most calls are written like the one before
    cdef Form find(self, PyObject** values, Py_ssize_t n, tuple names)
    cdef int note(self, tuple values, tuple names, list places, object attrs) except -1

cdef object MISSING
cdef bint numpy_shapes() except -1
