from mxop._core.array cimport MAX_VALUES, Array, Node, Value
from mxop._kernels.interp cimport Program

cdef class ElementwiseCall:
    cdef readonly object op, attrs, formula
    cdef readonly int n_in, n_out
    cdef bint broadcast, plain_types, has_rule
    cdef unsigned int scalar_mask     # mask of the parameters that take the data's type
    cdef list programs              # by compute type
    cdef dict backwards             # wanted inputs -> BackwardPlan
    cdef object rule                # the Backward formula
    cdef Program program(self, int ctype)
    cdef BackwardPlan backward(self, tuple wanted)
    cdef int load_values(self, attrs, Value* values) except -1

cdef class BackwardPlan:
    cdef ElementwiseCall call       # None when all wanted gradients are zero
    cdef tuple wanted, heads, inputs, outputs

cdef class OpFunction:
    cdef readonly object op
    cdef dict calls                 # (inputs, static parameters) -> ElementwiseCall
    cdef dict parsed                # keyword arguments -> Attrs
    cdef dict numeric               # parameter -> slot of its value
    cdef ElementwiseCall default
    cdef int n_in, kind
    cdef unsigned int required
    cdef bint fast
    cdef Value defaults[MAX_VALUES]
    cdef dict __dict__
    cdef int prepare(self) except -1
    cdef ElementwiseCall call_for(self, attrs, int n)
    cdef object call_bound(self, tuple args, dict kwargs)

cdef object run_elementwise(ElementwiseCall call, object inputs, const Value* values, object out, int req)
cdef object call_two(OpFunction f, Array a, Array b, object out)
cdef object call_scalar(OpFunction f, Array a, double d, long long i, object out)
cpdef object invoke(object op, object inputs, object attrs, object out=*)
cdef int copy_into(Array source, Array target, int req) except -1
cdef Array contiguous_copy(Array a)
cdef bint is_recording() noexcept nogil
cdef bint is_training() noexcept nogil
cdef bint set_recording(bint value) noexcept nogil
cdef bint set_training(bint value) noexcept nogil
cdef OpFunction function_of(object op)

cdef object invoke_with(object op, object inputs, object attrs, object out, int req)
cdef int compute_type(ElementwiseCall call, Array first, object inputs) except -1
cdef bint overlaps(Array a, Array b) noexcept
cdef bint same_dims(Array a, Array b) noexcept
