"""Reductions, views and kernels made ready: what can be found out when an executor is bound is not asked again.

May import :mod:`.array`, :mod:`.reductions`, :mod:`.transfer`, :mod:`mxop.opdef`.
"""
from mxop._core.array cimport Array, fill_operand, view_of, write_pointer
from mxop._core.call cimport Call, Places
from mxop._core.external cimport deliver_states, fresh_like, run_users_kernel
from mxop._core.record cimport set_recording
from mxop._core.reductions cimport ReductionCall, reduction_call, reduction_run
from mxop._core.transfer cimport contiguous_copy, copy_into, copy_program, overlaps
from mxop._kernels.interp cimport REQ_INPLACE, REQ_NULL, REQ_WRITE, Operand, Program

from mxop.opdef import Kernel, Reduction


cdef class ViewRun(Call):
    """A copy of elements that lie elsewhere: transposed, sliced, broadcast."""

    cdef Array source, result
    cdef Program program
    cdef Operand operands[2]

    cdef int execute(self) except -1:
        write_pointer(self.result)
        return self.program.run(self.result.size, self.operands, &self.operands[1], NULL)

    cdef int point(self, Places places) except -1:
        places.add(&self.operands[0].data)
        places.add(&self.operands[1].data)
        return 0


cdef class KernelRun(Call):
    """A kernel's CPU function on fixed arrays; what it cannot read or write itself is copied."""

    cdef object op, attrs
    cdef dict params
    cdef list inputs, outputs, reqs, ready, work, copied

    cdef int execute(self) except -1:
        cdef bint before = set_recording(False)
        cdef int k
        try:
            for k in self.copied:
                self.ready[k] = contiguous_copy(<Array>self.inputs[k])
            if self.op.clears:
                run_users_kernel(self.op, self.ready, self.work, self.params)
            else:
                self.op.run_cpu(self.ready, self.work, **self.params)
            if self.op.aux:
                deliver_states(self.op, self.attrs, self.ready, self.inputs)
            for k in range(len(self.outputs)):
                if self.work[k] is not self.outputs[k]:
                    copy_into(<Array>self.work[k], <Array>self.outputs[k], self.reqs[k])
        finally:
            set_recording(before)
        return 0

    cdef int point(self, Places places) except -1:
        for a in (*self.inputs, *self.outputs, *self.ready, *self.work):
            places.add_array(<Array>a)
        return 0


cdef Call prepare_operator(object op, object attrs, list inputs, list outputs, list reqs):
    """Return a prepared reduction, view or kernel on CPU arrays; None for anything else."""
    cdef Array source = <Array>inputs[0] if inputs else None
    cdef ReductionCall call
    if isinstance(op, Reduction):
        op.check_arity(attrs, len(inputs))
        if reqs[0] == REQ_NULL or overlaps(source, <Array>outputs[0]):
            return None
        call = reduction_call(op, attrs)
        return reduction_run(call, source, call.axes_of(source.ndim), <Array>outputs[0], reqs[0])
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
    run.source, run.result = view_of(source, tuple(shape), tuple(strides), offset), outputs[0]
    run.program = copy_program(source.dtype)
    fill_operand(&run.operands[0], run.source)
    fill_operand(&run.operands[1], run.result)
    run.operands[1].req = reqs[0]
    return run


cdef Call prepare_kernel(object op, object attrs, list inputs, list outputs, list reqs):
    cdef KernelRun run
    cdef Array a, target
    cdef int k
    if op.run_cpu is None:
        return None
    run = KernelRun()
    run.op, run.attrs, run.params, run.inputs, run.outputs, run.reqs = op, attrs, dict(attrs), inputs, outputs, reqs
    run.ready = list(inputs)
    unread = op.shape_only(len(inputs))
    run.copied = [k for k in range(len(inputs))
                  if not op.strided and not (<Array>inputs[k]).contiguous and k not in unread]
    run.work = []
    for k in range(len(outputs)):
        target = <Array>outputs[k]
        plain = reqs[k] in (REQ_WRITE, REQ_INPLACE) and target.contiguous and not any(
            [overlaps(<Array>a, target) for a in inputs])
        run.work.append(target if plain else fresh_like(target, False))
    return run
