"""Runs code of users: operators from outside, and kernels.  History and what was left unwritten are dealt with around it.

What such code leaves unwritten is zero, never what lay in the memory before; where an output must be written, a
:class:`Watch` tells whether it was.
"""
from mxop._core.array cimport Array, Forward, Watch, detached, read_pointer, touch
from mxop._core.record cimport is_training, set_recording
from mxop._core.results cimport CLEARED, DENSE, clear, deliver, work_for
from mxop._core.transfer cimport contiguous_copy, copy_into
from mxop._kernels.instruction_sets cimport itemsize_of
from mxop._kernels.operands cimport REQ_ADD, REQ_NULL, REQ_WRITE

from mxop.support.errors import MXNetError, OpTypeError, run_users


# ---- what was written -------------------------------------------------------------------------------------------------

cdef bint cleared(Array a) except -1:
    """Return whether all bytes of an array on the CPU are zero."""
    cdef Array dense = a if a.contiguous else contiguous_copy(a)
    cdef const char* data = read_pointer(dense)
    cdef Py_ssize_t i
    for i in range(dense.size * itemsize_of(dense.dtype)):
        if data[i]:
            return False
    return True


cdef list watched(list arrays, list watches, list marks):
    """Return the arrays without history, each with a watch; `marks` gets what :func:`idle` needs to know."""
    cdef list result = []
    cdef Watch watch
    cdef Array a
    for a, watch in zip(arrays, watches):
        marks.append(-1 if watch.exports else watch.writes)  # who holds a buffer since an earlier call may write unseen
        a = detached(a)
        a.watch = watch
        result.append(a)
    return result


cdef list idle(list arrays, list watches, list marks):
    """Return the numbers of the cleared arrays that nobody has written since.

    Nothing that was written is among them: neither what a watch saw, nor what is not zero, nor what cannot be watched.
    """
    cdef list result = []
    cdef Py_ssize_t k
    cdef Array a
    for k in range(len(arrays)):
        a = <Array>arrays[k]
        if (<Watch>watches[k]).writes == marks[k] and a.size and cleared(<Array>a.device.to_host(a)):
            result.append(k)
    return result


cdef list watches_of(object attrs, Py_ssize_t n):
    """Return the watches of a call's outputs: the same for each run of one call, as a user may keep arrays of the last."""
    cell = getattr(attrs, "cell", None)
    if cell is None:
        return [Watch() for _ in range(n)]
    if cell.watches is None:
        cell.watches = [Watch() for _ in range(n)]
    return cell.watches


# ---- operators from outside -------------------------------------------------------------------------------------------

cdef int execute_external(object op, object attrs, list inputs, list outputs, list reqs) except -1:
    """Run an operator's function on arrays.

    It gets arrays without history, so that what it does with autograd is its own affair.  It may write what it was asked
    to add: an output to add to is a new array of zeros, which is added here.
    """
    cdef list ready = [], work, given, names = [], states, watches, marks = [], unwritten = []
    cdef Array a
    cdef int k, req
    cdef bint before, clears = op.clears
    for a in inputs:
        ready.append(contiguous_copy(a) if op.contiguous and not a.contiguous else detached(a))
    for req in reqs:
        names.append("null" if req == REQ_NULL else "add" if req == REQ_ADD else "write")
    work = work_for(inputs, outputs, reqs, (DENSE if op.contiguous else 0) | (CLEARED if clears else 0))
    if clears:
        watches = watches_of(attrs, len(work))
        given = watched(work, watches, marks)
    else:
        given = [detached(<Array>a) for a in work]
    state = op.state_of(attrs, ready)
    cell = getattr(attrs, "cell", None)
    before = set_recording(False)
    try:
        if cell is None:
            op.run(attrs, state, is_training(), names, ready, given)
        else:  # in a graph, nobody knows yet which inputs have a history
            cell.forward = Forward([b for a, b in zip(inputs, ready) if not before or (<Array>a).node is not None])
            with cell.forward:
                op.run(attrs, state, is_training(), names, ready, given)
    finally:
        set_recording(before)
    if clears:
        unwritten = idle(work, watches, marks)
        if unwritten:
            op.check_written(attrs, [k for k in unwritten if reqs[k] != REQ_NULL])
    deliver(work, outputs, reqs, unwritten)
    deliver_states(op, attrs, ready, inputs)
    return 0


cdef int deliver_states(object op, object attrs, list ready, object inputs) except -1:
    """Say that a call wrote its states, and copy those that it was handed copies of."""
    cdef Array state, copied
    for k in states_of(op, attrs, len(inputs)):
        state, copied = <Array>inputs[k], <Array>ready[k]
        touch(state, op.name)
        if copied.data != state.data:
            copy_into(copied, state, REQ_WRITE)
    return 0


cdef list states_of(object op, object attrs, int n):
    """Return the positions of the inputs that the operator writes."""
    written = op.aux_names(attrs)
    return [k for k, name in enumerate(op.input_names(attrs, n)) if name in written] if written else []


# ---- kernels of users -------------------------------------------------------------------------------------------------

cdef int run_users_kernel(object op, object run, list inputs, list work, dict params) except -1:
    """Run the function of a kernel that a user wrote, which may forget to write."""
    cdef str device = (<Array>work[0]).device.name
    cdef list given, watches = [Watch() for _ in work], marks = [], unwritten
    cdef Array a
    cdef int k
    for a in work:
        clear(a)
    given = watched(work, watches, marks)
    if not op.aux:
        inputs = [readonly(a) for a in inputs]
    refuse_result(op, device, run_users(f"operator {op.name}: its {device} function", run, inputs, given, **params))
    unwritten = idle(work, watches, marks)
    if unwritten:
        k = unwritten[0]
        raise MXNetError(f"operator {op.name}: its {device} function wrote nothing into output {k}, an array of shape "
                         f"{(<Array>work[k]).shape_tuple()}; write it with outputs[{k}][:] = value")
    return 0


cdef Array readonly(Array a):
    """Return an array over the same memory that nobody can write through."""
    a = detached(a)
    a.readonly_ = True
    return a


def refuse_result(op, str device, found):
    """Raise when a kernel's function returns what it should write."""
    if found is not None:
        raise OpTypeError(f"operator {op.name}: its {device} function returned a {type(found).__name__}, which nobody "
                          "reads; write the outputs, with outputs[0][:] = value, and return nothing")
