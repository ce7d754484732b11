from mxop._core.array cimport Array
from mxop._core.device cimport Device

cpdef enum Ways:
    DENSE = 1           # whoever writes needs C order
    CLEARED = 2         # what is written must be zero before
    SAME_PLACE = 4      # element k may be written where element k of an input lies
    ADDS = 8            # whoever writes adds where that is asked for

cpdef Device common_device(object arrays)
cdef int check_device(object op, object inputs) except -1
cdef int raise_devices(object op, object inputs) except -1
cdef Array prepared_output(object op, object out, object shape, int dtype, Array beside=*)
cdef Array output_like(object op, object out, Array like, Array beside=*)
cpdef list output_list(object op, object out, int n, int shown=*)
cpdef list results_for(object op, object inputs, list targets, object shapes, object types)
cdef Array one_result(object op, object inputs, object out, Array like, int* req)
cdef int hand_over(object op, list results, list targets, int req) except -1
cpdef Array new_at(tuple shape, int dtype, Device device, int place)
cdef list requests_of(list targets, int req)
cdef Array fresh_like(Array a, bint zeros)
cpdef int clear(Array a) except -1
cdef bint goes_beside(Array target, object read, int req, int ways) except -1
cpdef list work_for(object read, list outputs, list reqs, int ways)
cpdef int deliver(list work, list outputs, list reqs, object unwritten=*) except -1
