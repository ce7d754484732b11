"""Reductions, views and kernels made ready: what can be found out when an executor is bound is not asked again.

Kernels that say what they do in steps are made ready for calls on arrays, too: once for arrays of the same shapes and types.
"""
from mxop._core.array cimport Array, HOST, alloc_like, detached, host_reads, view_of, write_pointer
from mxop._core.call cimport Call, Places
from mxop._core.device cimport wait_if_asked
from mxop._core.external cimport deliver_states, run_users_kernel
from mxop._core.recent cimport MISSING, Plans
from mxop._core.record cimport set_recording
from mxop._core.reductions cimport ReductionCall, reduction_call
from mxop._core.results cimport ADDS, DENSE, common_device, deliver, goes_beside, output_like, work_for
from mxop._core.steps cimport Steps
from mxop._core.transfer cimport contiguous_copy, overlaps, same_layout
from mxop._kernels.operands cimport REQ_ADD, REQ_NULL, REQ_WRITE

from mxop.support.errors import of_gpu, translated
from mxop.opdef import Kernel, Reduction

cdef tuple _KINDS = translated.KINDS


cdef class KernelRun(Call):
    """A kernel's function on fixed arrays; what it cannot read or write itself is copied."""

    cdef object op, attrs, function
    cdef dict params
    cdef list inputs, outputs, reqs, ready, work, copied

    cdef int execute(self) except -1:
        cdef bint before = set_recording(False)
        cdef long long reads = host_reads()
        cdef int k
        try:
            for k in self.copied:
                self.ready[k] = contiguous_copy(<Array>self.inputs[k])
            if self.op.clears:
                run_users_kernel(self.op, self.function, self.ready, self.work, self.params)
            else:
                self.function(self.ready, self.work, **self.params)
            if self.op.aux:
                deliver_states(self.op, self.attrs, self.ready, self.inputs)
            deliver(self.work, self.outputs, self.reqs)
            wait_if_asked()
        except Exception as problem:
            who = f"operator {self.op.name}"
            found = of_gpu(problem, who)
            raise translated.error(found, who) if found is problem and isinstance(found, _KINDS) else found
        finally:
            set_recording(before)
            host_reads(reads)  # the function computes what has a gradient: its own reads lose none
        return 0

    cdef int point(self, Places places) except -1:
        for a in (*self.inputs, *self.outputs, *self.ready, *self.work):
            places.add_array(<Array>a)
        return 0


cdef Call prepare_operator(object op, object attrs, list inputs, list outputs, list reqs):
    """Return a prepared reduction, view or kernel; None for anything else."""
    cdef Array source = <Array>inputs[0] if inputs else None
    cdef ReductionCall call
    if isinstance(op, Reduction):
        op.check_arity(attrs, len(inputs))
        if reqs[0] == REQ_NULL or overlaps(source, <Array>outputs[0]):
            return None
        call = reduction_call(op, attrs)
        return source.device.reduction(op, attrs, source, call.axes_of(source.ndim), outputs[0], reqs[0])
    if isinstance(op, Kernel):
        op.check_arity(attrs, len(inputs))
        if op.make_view is None:
            return prepare_kernel(op, attrs, inputs, outputs, reqs)
        return prepare_view(op, attrs, inputs, outputs, reqs)
    return None


cdef Call prepare_view(object op, object attrs, list inputs, list outputs, list reqs):
    cdef Array source = <Array>inputs[0], a
    shapes = [(<Array>a).shape_tuple() for a in inputs]
    shape, strides, offset = op.make_view(shapes[0], source._strides, *shapes[1:], **attrs)
    if strides is None or tuple(shape) != (<Array>outputs[0]).shape_tuple() or overlaps(source, <Array>outputs[0]):
        return None
    view = view_of(source, tuple(shape), tuple(strides), offset)
    return source.device.move(view, outputs[0], reqs[0])


# ---- kernels ----------------------------------------------------------------------------------------------------------

cdef Call prepare_kernel(object op, object attrs, list inputs, list outputs, list reqs):
    """Return a kernel on arrays of one device; requests, overlap and strides are dealt with here, for all kernels."""
    way = (<Array>outputs[0]).device.way(op, inputs, outputs, attrs)
    if way.prepared:
        return prepare_steps(op, way, attrs, inputs, outputs, reqs)
    return prepare_function(op, way, attrs, inputs, outputs, reqs)


cdef Call prepare_steps(object op, object way, object attrs, list inputs, list outputs, list reqs):
    """Return the steps of a kernel, with copies before and after where they cannot have the arrays themselves."""
    cdef Steps steps = Steps((<Array>outputs[0]).device)
    cdef list ready = list(inputs), work = [], read = read_by(op, inputs)
    cdef Array target
    cdef int k
    for k in must_copy(op, way, inputs):
        ready[k] = steps.temporary((<Array>inputs[k]).shape_tuple(), (<Array>inputs[k]).dtype)
        steps.move(inputs[k], ready[k])
    if op.overwrites and same_layout(inputs[0], outputs[0]):
        read = read[1:]
    steps.checks = op.clears  # the operator is a user's
    steps.adds = op.adds and reqs[0] == REQ_ADD and not goes_beside(<Array>outputs[0], read, REQ_ADD, DENSE | ADDS)
    for k in range(len(outputs)):
        target = <Array>outputs[k]
        beside = goes_beside(target, read, reqs[k], DENSE | (ADDS if steps.adds else 0))
        work.append(steps.temporary(target.shape_tuple(), target.dtype) if beside else target)
    try:
        way.run(steps, ready, work, **attrs)
    except _KINDS as problem:
        raise translated.error(problem, f"operator {op.name}")
    for k in range(len(outputs)):
        if work[k] is not outputs[k] and reqs[k] != REQ_NULL:
            steps.move(work[k], outputs[k], reqs[k])
    return steps.finished()


cdef Call prepare_function(object op, object way, object attrs, list inputs, list outputs, list reqs):
    """Return the call of a kernel's function."""
    cdef KernelRun run = KernelRun()
    cdef Array a
    run.op, run.attrs, run.params, run.inputs, run.outputs, run.reqs = op, attrs, dict(attrs), inputs, outputs, reqs
    run.function = way.run
    run.ready = [a if a.node is None else detached(a) for a in inputs]
    run.copied = must_copy(op, way, inputs)
    run.work = work_for(read_by(op, inputs), outputs, reqs, DENSE)
    return run


cdef list must_copy(object op, object way, list inputs):
    """Return the positions of the inputs that a kernel cannot read as they lie."""
    cdef Py_ssize_t k
    if (op.strided and way.strided) or all([(<Array>a).contiguous for a in inputs]):
        return []
    unread = op.shape_only(len(inputs))
    return [k for k in range(len(inputs)) if not (<Array>inputs[k]).contiguous and k not in unread]


cdef list read_by(object op, list inputs):
    """Return the inputs that a kernel looks into."""
    unread = op.shape_only(len(inputs))
    return [a for k, a in enumerate(inputs) if k not in unread] if unread else inputs


# ---- kernels called on arrays -----------------------------------------------------------------------------------------

cdef class KernelPlan:
    """A kernel made ready for arrays of certain shapes, types and strides, whatever their memory."""

    cdef list run(self, object op, object inputs, list targets):
        """Return the results for these arrays; None while another thread runs the plan, or where an output needs a temporary."""
        cdef list results = [None] * len(self.outputs)
        cdef Array a
        cdef Py_ssize_t k
        if self.busy:
            return None
        self.busy = True  # at once: whatever allocates may collect garbage, and let other threads in
        try:
            for k in range(len(self.outputs)):
                a = <Array>self.outputs[k]
                if targets is not None and targets[k] is not None:
                    a = output_like(op, targets[k], a, <Array>inputs[0] if inputs else None)
                    if goes_beside(a, inputs, REQ_WRITE, DENSE):
                        return None
                    write_pointer(a)  # noted by whoever watches the array
                else:
                    a = alloc_like(a)
                    if inputs:
                        a.device_id = (<Array>inputs[0]).device_id
                results[k] = a
            self.places.put(inputs, results)
            self.call.execute()
        finally:
            self.busy = False
        return results


cdef Plans _plans = Plans()


cdef KernelPlan plan_for(object op, object attrs, object inputs):
    """Return the plan of a kernel of steps for CPU arrays; None where it takes another way."""
    if common_device(inputs) is not HOST:
        return None
    found = _plans.find(op, attrs, inputs, True)
    if found is MISSING:
        found = _plans.put(op, attrs, inputs, True, make_plan(op, attrs, inputs))
    return <KernelPlan>found


cdef KernelPlan make_plan(object op, object attrs, object given):
    cdef KernelPlan plan = KernelPlan()
    cdef list inputs = []
    cdef Array a
    if op.sized_by is not None or (not given and attrs.get("ctx")):  # made where a parameter says
        return None
    out_shapes, out_types = op.infer_outputs(attrs, [(<Array>a).shape_tuple() for a in given], [(<Array>a).dtype for a in given])
    plan.places = Places()
    try:
        for a in given:
            inputs.append(plan.places.stand_in(a.shape_tuple(), a.dtype, None if a.contiguous else a._strides))
        plan.outputs = [plan.places.stand_in(tuple(shape), code) for shape, code in zip(out_shapes, out_types)]
    except OverflowError:  # more arrays, or larger ones, than a plan can tell apart
        return None
    way = op.way(inputs, plan.outputs, attrs)
    if way is None or not way.prepared:
        return None
    plan.call = prepare_steps(op, way, attrs, inputs, plan.outputs, [REQ_WRITE] * len(plan.outputs))
    plan.places.note([plan.call])
    plan.n_visible = <int>len(plan.outputs) if op.writes else op.num_visible_outputs(attrs, len(inputs))
    return plan


def forget():
    """Drop what is kept for operators, one of which was unregistered or replaced."""
    _plans.clear()
