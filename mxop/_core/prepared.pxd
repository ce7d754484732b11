from mxop._core.call cimport Call

cdef Call prepare_operator(object op, object attrs, list inputs, list outputs, list reqs)
