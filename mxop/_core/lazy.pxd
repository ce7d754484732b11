from mxop._core.array cimport Value
from mxop._core.elementwise cimport ElementwiseCall

cdef object defer(ElementwiseCall call, object inputs, const Value* values, int dtype, int ndim, const Py_ssize_t* shape,
                  Py_ssize_t size)
cpdef int run_all() except -1
