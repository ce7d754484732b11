"""Where the results of a call go, for all kinds of operators and on both devices.

Arrays that are given are checked, others are made.  What cannot be written where it belongs (it is to be added, it overlaps
what is read, or lies in no order) is written *beside*, and copied or added afterwards.
"""
from mxop._core.array cimport Array, HOST, new_like, touch
from mxop._core.device cimport Device
from mxop._core.record cimport is_recording
from mxop._core.transfer cimport copy_into, overlaps, same_dims, same_layout
from mxop._kernels.operands cimport REQ_ADD, REQ_NULL, REQ_WRITE

from mxop.support import dtypes
from mxop.support.errors import MXNetError, OpTypeError, OpValueError


# ---- which arrays -----------------------------------------------------------------------------------------------------

cpdef list output_list(object op, object out, int n, int shown=-1):
    """Return the given outputs, all or those `shown` that a call returns, as a list of `n`, None where there is none."""
    cdef list given
    if out is None:
        return [None] * n
    if n == 1 and isinstance(out, Array):
        return [out]
    given = list(out) if isinstance(out, (list, tuple)) else [out]
    for a in given:
        if a is not None and not isinstance(a, Array):
            raise OpTypeError(f"operator {op.name}: out must be an NDArray, got {type(a).__name__}")
    if len(given) != n and len(given) != shown:
        shown = n if shown < 0 else shown
        raise OpTypeError(f"operator {op.name} has {shown} output{'s' if shown > 1 else ''}, out holds {len(given)}")
    return given + [None] * (n - len(given))


cpdef Device common_device(object arrays):
    """Return the device on which all arrays lie, that of new ones where there are none; None where they lie on several."""
    cdef Device found = None
    for a in arrays:
        if found is None:
            found = (<Array>a).device
        elif (<Array>a).device is not found:
            return None
    return HOST if found is None else found


cdef int check_device(object op, object inputs) except -1:
    """Raise unless one device computes with all inputs."""
    if common_device(inputs) is None:
        raise_devices(op, inputs)
    return 0


cdef int raise_devices(object op, object inputs) except -1:
    devices = ", ".join([str(a.context) for a in inputs])
    raise OpValueError(f"operator {op.name}: inputs lie on different devices ({devices}); use as_in_context")


cdef Array prepared_output(object op, object out, object shape, int dtype, Array beside=None):
    """Check an array given as ``out``, and that it lies on the device of another; without a shape, that is right already."""
    if not isinstance(out, Array):
        raise OpTypeError(f"operator {op.name}: out must be an NDArray, got {type(out).__name__}")
    cdef Array a = <Array>out
    if beside is not None and a.device is not beside.device:
        raise OpValueError(f"operator {op.name}: out lies on {out.context}, the inputs on {(<object>beside).context}; use "
                           "as_in_context")
    if shape is not None and a.shape_tuple() != shape:
        raise OpValueError(f"operator {op.name}: out has shape {a.shape_tuple()}, the result has shape {shape}")
    if a.dtype != dtype:
        raise OpTypeError(f"operator {op.name}: out has dtype {dtypes.NAMES[a.dtype]}, the result has dtype "
                          f"{dtypes.NAMES[dtype]}")
    if a.readonly_:
        raise OpValueError(f"operator {op.name}: out is read-only")
    if is_recording() and a.node is not None:
        raise MXNetError(f"operator {op.name}: writing into an array that autograd has recorded (inplace operations, out=, "
                         "x[:]=) is not supported inside autograd.record(); use a new array, or write outside the scope")
    touch(a, op.name)
    return a


cdef Array output_like(object op, object out, Array like, Array beside=None):
    """Check an array given as ``out`` for one of the shape and type of `like`."""
    shape = None if isinstance(out, Array) and same_dims(<Array>out, like) else like.shape_tuple()
    return prepared_output(op, out, shape, like.dtype, beside)


cpdef list results_for(object op, object inputs, list targets, object shapes, object types):
    """Return the results of a call: the targets that are given, checked, and new arrays on the device of the inputs."""
    cdef list results = []
    cdef Array first = None, target
    cdef int k
    for a in (*inputs, *targets):  # without inputs, what is given tells the device
        if a is not None:
            first = <Array>a
            break
    check_device(op, inputs)
    for k in range(len(shapes)):
        if targets[k] is not None:
            target = prepared_output(op, targets[k], tuple(shapes[k]), types[k], first)
        else:
            target = new_at(tuple(shapes[k]), types[k], HOST if first is None else first.device,
                            0 if first is None else first.device_id)
        results.append(target)
    return results


cdef Array one_result(object op, object inputs, object out, Array like, int* req):
    """Return the result of a call that has one, of the shape and type of `like`; `req` becomes its request."""
    cdef Array first = <Array>inputs[0], result
    cdef list targets
    if out is None:
        req[0], result = REQ_WRITE, new_like(like, first)
        return result
    if isinstance(out, Array):
        check_device(op, inputs)
        return output_like(op, out, like, first)
    targets = output_list(op, out, 1)
    req[0] = requests_of(targets, req[0])[0]
    return <Array>results_for(op, inputs, targets, (like.shape_tuple(),), (like.dtype,))[0]


cdef int hand_over(object op, list results, list targets, int req) except -1:
    """Bring results that were computed apart to the arrays that are given for them, which take their places."""
    cdef Array made
    cdef int k
    for k in range(len(targets)):
        if targets[k] is not None and results[k] is not targets[k]:
            made = <Array>results[k]
            copy_into(made, output_like(op, targets[k], made), req)
            results[k] = targets[k]
    return 0


cdef list requests_of(list targets, int req):
    """Return the request of each result: new arrays are written."""
    return [REQ_WRITE if a is None else req for a in targets]


# ---- memory -----------------------------------------------------------------------------------------------------------

cpdef Array new_at(tuple shape, int dtype, Device device, int place):
    """Return a new array on a device; its elements are not set."""
    cdef Array a = <Array>device.empty(shape, dtype)
    a.device_id = place
    return a


cdef Array fresh_like(Array a, bint zeros):
    """Return a new array of the same shape, type and device."""
    cdef Array b = new_at(a.shape_tuple(), a.dtype, a.device, a.device_id)
    if zeros:
        clear(b)
    return b


cpdef int clear(Array a) except -1:
    """Set all elements to zero."""
    a.device.fill(a, 0)
    return 0


# ---- what is written --------------------------------------------------------------------------------------------------

cpdef list work_for(object read, list outputs, list reqs, int ways):
    """Return the arrays to write: the outputs, or others beside them.

    Parameters
    ----------
    read : sequence of NDArray
        What is read while the outputs are written.
    outputs : list of NDArray
    reqs : list of int
    ways : int
        What whoever writes can do, and needs; see :class:`Ways`.
    """
    cdef list work = []
    cdef Array target
    cdef int k
    for k in range(len(outputs)):
        target = <Array>outputs[k]
        if goes_beside(target, read, reqs[k], ways):
            target = fresh_like(target, ways & CLEARED)
        elif ways & CLEARED:
            clear(target)
        work.append(target)
    return work


cdef bint goes_beside(Array target, object read, int req, int ways) except -1:
    """Return whether an output needs a temporary: its request, its strides or an overlap forbid writing it in place."""
    if (req == REQ_ADD or req == REQ_NULL) and not ways & ADDS:
        return True
    if ways & DENSE and not target.contiguous:
        return True
    for a in read:
        if overlaps(<Array>a, target) and not (ways & SAME_PLACE and same_layout(<Array>a, target)):
            return True
    return False


cpdef int deliver(list work, list outputs, list reqs, object unwritten=()) except -1:
    """Bring what was written beside the outputs there; nothing is added of what nobody wrote."""
    cdef int k
    for k in range(len(outputs)):
        if work[k] is not outputs[k] and not (reqs[k] == REQ_ADD and k in unwritten):
            copy_into(<Array>work[k], <Array>outputs[k], reqs[k])
    return 0
