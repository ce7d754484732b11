from mxop._core.call cimport Call, Places

cdef Call prepare_operator(object op, object attrs, list inputs, list outputs, list reqs)
cdef Call prepare_kernel(object op, object attrs, list inputs, list outputs, list reqs)

cdef class KernelPlan:
    cdef Call call
    cdef Places places
    cdef list outputs           # placeholders for the results
    cdef int n_visible          # of the results, those that a call returns
    cdef bint busy              # in a thread that has let others run
    cdef list run(self, object op, object inputs, list targets)

cdef KernelPlan plan_for(object op, object attrs, object inputs)
