from mxop._core.call cimport Call

cdef Call prepare_operator(object op, object attrs, list inputs, list outputs, list reqs)
cdef Call prepare_kernel(object op, object attrs, list inputs, list outputs, list reqs)
cdef list run_planned(object op, object attrs, object inputs, list targets)
