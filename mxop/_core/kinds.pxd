from cpython.object cimport PyObject

from mxop._core.array cimport Array
from mxop._core.recent cimport Form

cdef object run_reduction(object op, object attrs, Array source, object out, int req)
cdef object run_view(object op, object attrs, object inputs, object out, int req)
cdef Array picked(object op, object attrs, list inputs)
cdef object run_view_again(object op, Form form, PyObject** values)
cdef object run_kernel(object op, object attrs, object inputs, object out, int req)
cdef object run_external(object op, object attrs, object inputs, object out, int req)
cdef object run_composite(object op, object attrs, object inputs, object out, int req)
