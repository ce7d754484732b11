"""Reductions, views and kernels made ready: what can be found out when an executor is bound is not asked again.

May import :mod:`.array`, :mod:`.reductions`, :mod:`.transfer`, :mod:`mxop.opdef`.
"""
from mxop._core.array cimport Array, view_of
from mxop._core.call cimport Call
from mxop._core.external cimport fresh_like
from mxop._core.record cimport set_recording
from mxop._core.reductions cimport ReductionCall, reduce_cpu, reduction_call
from mxop._core.transfer cimport contiguous_copy, copy_into, overlaps
from mxop._kernels.interp cimport REQ_INPLACE, REQ_WRITE

from mxop.opdef import Kernel, Reduction


cdef class ReductionRun(Call):
    """A reduction of one array into another."""

    cdef ReductionCall call
    cdef tuple axes
    cdef Array source, result
    cdef int req

    cdef int execute(self) except -1:
        return reduce_cpu(self.call, self.source, self.axes, self.result, self.req)


cdef class ViewRun(Call):
    """A copy of elements that lie elsewhere: transposed, sliced, broadcast."""

    cdef Array source, result
    cdef int req

    cdef int execute(self) except -1:
        return copy_into(self.source, self.result, self.req)


cdef class KernelRun(Call):
    """A kernel's CPU function on fixed arrays; what it cannot read or write itself is copied."""

    cdef object op
    cdef dict params
    cdef list inputs, outputs, reqs, ready, work, copied

    cdef int execute(self) except -1:
        cdef bint before = set_recording(False)
        cdef int k
        try:
            for k in self.copied:
                self.ready[k] = contiguous_copy(<Array>self.inputs[k])
            self.op.run_cpu(self.ready, self.work, **self.params)
            for k in range(len(self.outputs)):
                if self.work[k] is not self.outputs[k]:
                    copy_into(<Array>self.work[k], <Array>self.outputs[k], self.reqs[k])
        finally:
            set_recording(before)
        return 0


cdef Call prepare_operator(object op, object attrs, list inputs, list outputs, list reqs):
    """Return a prepared reduction, view or kernel on CPU arrays; None for anything else."""
    cdef ReductionRun reduction
    if isinstance(op, Reduction):
        op.check_arity(attrs, len(inputs))
        if overlaps(<Array>inputs[0], <Array>outputs[0]):
            return None
        reduction = ReductionRun()
        reduction.call, reduction.source, reduction.result = reduction_call(op, attrs), inputs[0], outputs[0]
        reduction.axes, reduction.req = reduction.call.axes_of((<Array>inputs[0]).ndim), reqs[0]
        return reduction
    if isinstance(op, Kernel):
        op.check_arity(attrs, len(inputs))
        return prepare_kernel(op, attrs, inputs, outputs, reqs) if op.make_view is None else prepare_view(
            op, attrs, inputs, outputs, reqs)
    return None


cdef Call prepare_view(object op, object attrs, list inputs, list outputs, list reqs):
    cdef ViewRun run
    cdef Array source = <Array>inputs[0], a
    shapes = [(<Array>a).shape_tuple() for a in inputs]
    shape, strides, offset = op.make_view(shapes[0], source._strides, *shapes[1:], **attrs)
    if strides is None or tuple(shape) != (<Array>outputs[0]).shape_tuple() or overlaps(source, <Array>outputs[0]):
        return None
    run = ViewRun()
    run.source, run.result, run.req = view_of(source, tuple(shape), tuple(strides), offset), outputs[0], reqs[0]
    return run


cdef Call prepare_kernel(object op, object attrs, list inputs, list outputs, list reqs):
    cdef KernelRun run
    cdef Array a, target
    cdef int k
    if op.run_cpu is None:
        return None
    run = KernelRun()
    run.op, run.params, run.inputs, run.outputs, run.reqs = op, dict(attrs), inputs, outputs, reqs
    run.ready = list(inputs)
    run.copied = [k for k in range(len(inputs)) if not op.strided and not (<Array>inputs[k]).contiguous]
    run.work = []
    for k in range(len(outputs)):
        target = <Array>outputs[k]
        plain = reqs[k] in (REQ_WRITE, REQ_INPLACE) and target.contiguous and not any(
            [overlaps(<Array>a, target) for a in inputs])
        run.work.append(target if plain else fresh_like(target, False))
    return run
