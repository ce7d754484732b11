from libc.stdint cimport int64_t

from mxop._core.abi cimport MXOPOperator, MXOPRun, MXOPShape, MXOPTensor
from mxop._core.array cimport Array
from mxop._core.native_host cimport Memory

cdef class NativeOp
cdef class Bound

cdef NativeOp native_op(const MXOPOperator* given, str library)
cdef object failed_call(NativeOp native, str what)
cdef int put_shapes(list values, int64_t* dims, MXOPShape* shapes) except -1

# A library's operator.
cdef class NativeOp:
    cdef const MXOPOperator* given      # the library's own table: what its functions get
    cdef MXOPOperator table             # as far as the library knows it, zeros beyond
    cdef readonly str name, doc, gradient, library
    cdef readonly tuple input_names
    cdef public object op               # the registered operator
    cdef dict bounds                    # parsed parameters -> Bound
    cdef dict calls                     # keyword arguments -> Bound
    cdef Bound plain                    # without parameters
    cdef object call(self, tuple args, dict kwargs)
    cdef Bound bound_of(self, dict kwargs)

# Shapes and types of a call's inputs, and what they give for the outputs.
cdef class Plan:
    cdef int n_inputs, n_outputs
    cdef Py_ssize_t* forms              # for each input and output: ndim, dtype, dimensions
    cdef bint fits(self, tuple inputs) noexcept

# The C structures of one execution, used again and again.
cdef class Frame:
    cdef NativeOp native
    cdef Frame next                     # in the list of those that wait
    cdef MXOPTensor* tensors
    cdef MXOPTensor** pointers
    cdef MXOPRun run
    cdef void* kept                     # the library's
    cdef Memory memory
    cdef list gpu_memory
    cdef int fill(self, int k, Array a) except -1
    cdef void renew(self) noexcept

# An operator with its parameters.
cdef class Bound:
    cdef NativeOp native
    cdef object attrs
    cdef void* handle
    cdef readonly int n_inputs, n_outputs
    cdef readonly tuple mutated
    cdef public bint dense              # whether the library said that dense arrays will do
    cdef bint stateful
    cdef bint direct                    # whether calls may take the short way
    cdef list plans
    cdef Plan plan                      # the one that fitted last
    cdef Frame forward, backward        # frames that wait
    cdef bint on_cpu(self, bint backward) noexcept
    cdef object run_direct(self, tuple inputs, tuple given)
    cdef Plan find_plan(self, tuple inputs)
    cdef Frame take(self, bint backward)
    cdef int begin(self, Frame frame, list inputs, list outputs) except -1
    cdef int launch(self, Frame frame, object state, bint training) except -1
    cdef int execute(self, Frame frame, object state, bint training) except -1

cdef class State:
    cdef Bound bound
    cdef void* handle
