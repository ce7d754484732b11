from mxop._core.array cimport MAX_VALUES, Array, Value
from mxop._core.elementwise cimport ElementwiseCall
from mxop._core.native cimport NativeOp

cdef class OpFunction:
    cdef readonly object op
    cdef NativeOp native            # a library's functions, for a shorter way
    cdef dict parsed                # keyword arguments -> Attrs
    cdef dict numeric               # parameter -> slot of its value
    cdef ElementwiseCall default
    cdef int n_in, kind
    cdef unsigned int required
    cdef bint fast, fixed_inputs
    cdef bint shadowed(self, dict kwargs)
    cdef Value defaults[MAX_VALUES]
    cdef dict __dict__
    cdef int prepare(self) except -1
    cdef object call_bound(self, tuple args, dict kwargs)

cdef object call_two(OpFunction f, Array a, Array b, object out)
cdef object call_scalar(OpFunction f, Array a, object number, object out)
cpdef object invoke(object op, object inputs, object attrs, object out=*)
cdef object invoke_with(object op, object inputs, object attrs, object out, int req)
cdef OpFunction function_of(object op)
