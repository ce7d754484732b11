"""Runs an operator from outside: requests, overlap, layout and history are dealt with around it.

May import :mod:`.array`, :mod:`.record`, :mod:`.transfer`.
"""
from libc.string cimport memset

from mxop._core.array cimport Array, alloc_like, detached, touch, write_pointer
from mxop._core.record cimport is_training, set_recording
from mxop._core.transfer cimport contiguous_copy, copy_into, overlaps
from mxop._kernels.interp cimport REQ_ADD, REQ_NULL, REQ_WRITE, itemsize_of


cdef Array fresh_like(Array a, bint zeros):
    """Return a new array of the same shape, type and device."""
    cdef Array b
    if a.gpu is not None:
        b = contiguous_copy(a)
        if zeros:
            b.gpu.fill(0)
        return b
    b = alloc_like(a)
    b.device_id = a.device_id
    if zeros:
        memset(write_pointer(b), 0, b.size * itemsize_of(b.dtype))
    return b


cdef int execute_external(object op, object attrs, list inputs, list outputs, list reqs) except -1:
    """Run an operator's function on arrays.

    It gets arrays without history, so that what it does with autograd is its own affair.  It may write what it was asked
    to add: an output to add to is a new array of zeros, which is added here.
    """
    cdef list ready = [], work = [], names = [], states
    cdef Array a, target
    cdef int k, req
    cdef bint before
    for a in inputs:
        ready.append(contiguous_copy(a) if op.contiguous and not a.contiguous else detached(a))
    for k in range(len(outputs)):
        target, req = <Array>outputs[k], reqs[k]
        if req == REQ_ADD:
            work.append(fresh_like(target, True))
        elif (op.contiguous and not target.contiguous) or any([overlaps(<Array>a, target) for a in inputs]):
            work.append(fresh_like(target, False))
        else:
            work.append(target)
        names.append("null" if req == REQ_NULL else "add" if req == REQ_ADD else "write")
    state = op.state_of(attrs, ready)
    before = set_recording(False)
    try:
        op.run(attrs, state, is_training(), names, ready, [detached(<Array>a) for a in work])
    finally:
        set_recording(before)
    for k in range(len(outputs)):
        if work[k] is not outputs[k]:
            copy_into(<Array>work[k], <Array>outputs[k], reqs[k])
    deliver_states(op, attrs, ready, inputs)
    return 0


cdef int deliver_states(object op, object attrs, list ready, object inputs) except -1:
    """Say that a call wrote its states, and copy those that it was handed copies of."""
    cdef Array state, copied
    for k in states_of(op, attrs, len(inputs)):
        state, copied = <Array>inputs[k], <Array>ready[k]
        touch(state, op.name)
        if copied.data != state.data or copied.gpu is not state.gpu:
            copy_into(copied, state, REQ_WRITE)
    return 0


cdef list states_of(object op, object attrs, int n):
    """Return the positions of the inputs that the operator writes."""
    written = op.aux_names(attrs)
    return [k for k, name in enumerate(op.input_names(attrs, n)) if name in written] if written else []
