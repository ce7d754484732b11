from cpython.object cimport PyObject

from mxop._core.array cimport MAX_VALUES, Array, Value
from mxop._core.elementwise cimport ElementwiseCall
from mxop._core.native cimport NativeOp
from mxop._core.recent cimport Forms

cdef class ShortWay:
    cdef ElementwiseCall call           # the formula where every parameter that is no number has its default
    cdef dict slots                     # parameter -> slot of its value
    cdef tuple written                  # positions of the states, in the order of the outputs that are their new values
    cdef unsigned int required          # slots that a call must give
    cdef Value defaults[MAX_VALUES]

ctypedef PyObject* (*vectorcallfunc)(PyObject*, PyObject**, size_t, PyObject*)

cdef class OpFunction:
    cdef vectorcallfunc vectorcall  # what the interpreter calls
    cdef readonly object op
    cdef NativeOp native            # a library's functions, for a shorter way
    cdef Forms forms                # how calls were written lately
    cdef dict parsed                # parameters -> Attrs
    cdef ShortWay short             # None where there is none, or `searched` is not set
    cdef int n_in, kind
    cdef bint searched, fixed_inputs, open_inputs, writes
    cdef tuple arguments            # of the operator
    cdef tuple names                # of its parameters; None until they are asked for
    cdef str number                 # the parameter that counts inputs, or None
    cdef int has_mode               # whether its function asks if the call trains; -1: not looked at yet
    cdef bint is_view               # whether its results lie in its input; known when has_mode is
    cdef tuple named(self, tuple args, dict kwargs)
    cdef Py_ssize_t first_arrays(self, PyObject** args, Py_ssize_t n)
    cdef bint takes_first(self, object attrs, Py_ssize_t n)
    cdef int note_form(self, tuple args, tuple names, tuple values, object inputs, object attrs) except -1
    cdef bint shadowed(self, dict kwargs)
    cdef dict __dict__
    cdef tuple parameters(self)
    cdef ShortWay short_way(self)
    cdef object call_short(self, ShortWay short, PyObject** args, Py_ssize_t n, tuple names)
    cdef object call(self, tuple args, dict kwargs)
    cdef object call_bound(self, tuple args, dict kwargs)

cdef object call_two(OpFunction f, Array a, Array b, object out)
cdef object call_scalar(OpFunction f, Array a, object number, object out)
cpdef object invoke(object op, object inputs, object attrs, object out=*)
cdef object invoke_with(object op, object inputs, object attrs, object out, int req)
cdef OpFunction function_of(object op)
