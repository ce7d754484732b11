"""Calls of a library's operators on fixed arrays, for executors: the C structures are filled once."""
from mxop._core.array cimport Array, HOST, alloc_like
from mxop._core.call cimport Call
from mxop._core.native cimport Bound, Frame
from mxop._core.record cimport is_training
from mxop._core.results cimport clear, deliver, work_for


cdef class NativeCall(Call):
    """A forward or backward call, ready to run."""

    cdef Bound bound
    cdef Frame frame                    # None while it is in use
    cdef bint backward
    cdef object op, attrs               # whose state the call has
    cdef list inputs, arguments         # of the call, and those that the operator's state is made of
    cdef list written                   # the outputs of the C call
    cdef list work, targets, reqs       # what is written, and where it goes if that is not the same array

    cdef int execute(self) except -1:
        cdef int k
        cdef Frame frame = self.frame
        self.frame = None
        if frame is None:  # another thread runs the same executor, or the last run failed
            frame = self.bound.take(self.backward)
            self.bound.begin(frame, self.inputs, self.written)
        for k in range(len(self.written)):
            clear(<Array>self.written[k])
        frame.renew()
        self.bound.launch(frame, self.op.state_of(self.attrs, self.arguments), is_training())
        self.frame = frame
        return deliver(self.work, self.targets, self.reqs)


def native_call(op, attrs, list inputs, list outputs, list reqs):
    """Return a prepared call, or None when the operator is no library's or its arrays need more than that.

    Parameters
    ----------
    op, attrs
        A library's operator, or its gradient.
    """
    lower = getattr(op, "gradient_of", None)
    if lower is None and getattr(op, "native", None) is None:
        return None
    if not all([(<Array?>a).contiguous and (<Array>a).device is HOST for a in (*inputs, *outputs)]):
        return None
    if lower is None:
        return forward_call(op, attrs, inputs, outputs, reqs)
    return backward_call(lower, attrs, inputs, outputs, reqs)


cdef object forward_call(object op, object attrs, list inputs, list outputs, list reqs):
    cdef Bound bound = op.bound_to(attrs)
    cdef NativeCall made = NativeCall.__new__(NativeCall)
    if not bound.on_cpu(False):
        return None
    made.op, made.attrs, made.bound, made.arguments = op, attrs, bound, inputs
    made.work = work_for(inputs, outputs, reqs, 0)
    return filled(made, False, inputs, made.work, outputs, reqs)


cdef object backward_call(object op, object attrs, list inputs, list outputs, list reqs):
    """The gradient: outputs are those that are wanted, the others are computed and dropped."""
    cdef Bound bound = op.bound_to(attrs.of)
    cdef NativeCall made = NativeCall.__new__(NativeCall)
    cdef int n_out = bound.n_outputs, k
    if not bound.on_cpu(True) or len(inputs) != 2 * n_out + bound.n_inputs:
        return None
    made.op, made.attrs, made.bound, made.arguments = op, attrs.of, bound, inputs[n_out:n_out + bound.n_inputs]
    work = work_for(inputs, outputs, reqs, 0)
    wanted = dict(zip(attrs.wanted, work))
    every = [wanted.get(k) for k in range(bound.n_inputs)]
    every = [alloc_like(<Array>a) if g is None else g for g, a in zip(every, made.arguments)]
    made.work = work
    return filled(made, True, inputs, every, outputs, reqs)


cdef object filled(NativeCall made, bint backward, list inputs, list written, list outputs, list reqs):
    """Give the call its structures, which point into arrays that it keeps."""
    made.frame, made.backward = made.bound.take(backward), backward
    made.inputs, made.written, made.targets, made.reqs = inputs, written, outputs, reqs
    if len(inputs) != made.frame.run.n_inputs or len(written) != made.frame.run.n_outputs:
        return None
    made.bound.begin(made.frame, inputs, written)
    return made
