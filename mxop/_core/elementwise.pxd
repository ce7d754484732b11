from cpython.object cimport PyObject

from mxop._core.array cimport MAX_VALUES, Array, Value
from mxop._kernels.interp cimport Program

cdef class ElementwiseCall:
    cdef readonly object op, attrs, formula
    cdef readonly int n_in, n_out
    cdef readonly object keys       # inputs that are keys of random numbers; most have none
    cdef bint has_keys, creates, broadcast, plain_types, has_rule
    cdef unsigned char ways[MAX_VALUES]     # how a parameter takes integer data's type; 0: not at all
    cdef bint typed                 # whether one does
    cdef bint constant              # whether a result does not depend on the inputs
    cdef int truths                 # whether the result says where something holds: 1; 2: if all inputs do
    cdef list programs              # by compute type
    cdef dict backwards             # wanted inputs -> BackwardPlan
    cdef dict launches              # how operands lie on a GPU -> what was launched
    cdef dict types                 # types of the inputs -> types of the outputs, where these differ
    cdef object rule                # the Backward formula
    cdef Program program(self, int ctype)
    cdef object types_of(self, tuple codes)
    cdef BackwardPlan backward(self, tuple wanted, tuple absent=*)
    cdef int load_values(self, attrs, Value* values) except -1

cdef class BackwardPlan:
    cdef ElementwiseCall call       # None when none is computed
    cdef tuple wanted, heads, inputs, outputs
    cdef tuple passed               # (input, head): gradients that are a head gradient, as those of a sum

cdef ElementwiseCall call_for(object op, object attrs, int n)
cdef int set_value(Value* value, object number) except -1
cdef object run_elementwise(ElementwiseCall call, object inputs, const Value* values, object out, int req)
cdef object run_items(ElementwiseCall call, PyObject** items, object inputs, const Value* values, object out, int req)
cdef int compute_type(ElementwiseCall call, Array first, object inputs) except -1
cdef list gpu_values(ElementwiseCall call, const Value* values, int dtype, int* ctype)
cdef object filled_attrs(ElementwiseCall call, const Value* values)
cdef const Value* typed_values(ElementwiseCall call, const Value* values, int dtype, Value* typed, int* ctype) except NULL
cdef long long whole(double d) noexcept nogil
cdef tuple listed(PyObject** items, Py_ssize_t n)
