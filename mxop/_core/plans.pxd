from mxop._core.array cimport Array
from mxop._core.call cimport Places
from mxop._core.device cimport Device

cdef class Prepared:
    cdef list parts                 # (Places, calls) of forward and of backward
    cdef list used(self, Py_ssize_t first, Py_ssize_t n)

cdef class Plan:
    cdef list idle                  # Prepared calls that wait for their next run
    cdef Py_ssize_t n_inputs, n_table
    cdef list results, grads, sizes     # arrays without memory of what a run makes; (type code, size) of its buffers
    cdef list read_heads            # for each output, whether backward reads its gradient
    cdef readonly list reads        # for each input, whether a call reads it
    cdef list kept, scratch         # by place in the table: whether the tape keeps it; which buffers backward needs anew
    cdef readonly tuple wanted      # inputs whose gradients backward computes
    cdef readonly bint is_train
    cdef readonly int n_visible     # outputs that a call returns
    cdef public object form         # of a function: what makes its result of the list of the outputs
    cdef readonly Device device     # on which all arrays lie
    cdef public tuple masks         # which results are masks
    cdef list shown                 # for each output of the operator, which result it is; None where it is not computed

    cdef list fresh(self, list templates, list inputs)
    cdef Array buffer(self, Py_ssize_t k)
    cdef Array readable(self, Array a)
    cdef int execute(self, int part, list table) except -1
    cdef list forward(self, list inputs, list table, list targets)
    cdef list targets(self, object op, object out, object inputs)
    cdef list run(self, object inputs, list targets=*, dict values=*)
    cdef list gradients(self, list table, list heads)

cdef class Bound:
    cdef readonly Plan plan
    cdef list numbers               # arrays of one number each; None where there are none
    cdef dict values                # the numeric parameters that are symbolic in the plan's pattern, by name
    cdef list run(self, object inputs, list targets=*)

cdef class Recorded:
    cdef readonly Plan plan
    cdef readonly dict values       # those of the call: see Bound
    cdef list table, inputs
    cdef unsigned long long stamp
    cdef list recorded_gradients(self, list heads, object derivative)
    cdef int check_unchanged(self, list kept, Py_ssize_t n) except -1

cdef Bound plan_of(object owner, object attrs, object inputs)
