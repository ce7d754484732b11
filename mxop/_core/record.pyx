"""Recording: the state of each thread, and the nodes that note where arrays came from."""
from mxop._core.array cimport (
    Array, Node, Reading, detached, has_history, is_making, reading_of, settle_results, shape_of, stamp_now,
)

cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) int mx_recording = 0, mx_training = 0;
    #else
    static __thread int mx_recording = 0, mx_training = 0;
    #endif
    """
    bint mx_recording
    bint mx_training

cdef unsigned long long _serial = 0


cdef bint is_recording() noexcept nogil:
    return mx_recording


cdef bint is_noted() noexcept:
    """Return whether calls must say what they made of what: they are recorded, or belong to a user's forward."""
    return mx_recording or is_making()


cdef bint is_training() noexcept nogil:
    return mx_training


cdef bint set_recording(bint value) noexcept nogil:
    global mx_recording
    cdef bint before = mx_recording
    mx_recording = value
    return before


cdef bint set_training(bint value) noexcept nogil:
    global mx_training
    cdef bint before = mx_training
    mx_training = value
    return before


cdef bint any_node(object inputs) noexcept:
    cdef Array a
    for a in inputs:
        if has_history(a):
            return True
    return False


cdef Node new_node(object op, object inputs, list outputs):
    """Record a call: link it to where its inputs came from."""
    global _serial
    cdef Node node = Node.__new__(Node)
    cdef Array a
    node.op = op
    node.parents = [source_of(<Array>a) for a in inputs]
    _serial += 1
    node.serial = _serial
    node.parent_outputs = [(<Array>a).output for a in inputs]
    node.n_outputs = len(outputs)
    node.stamp = stamp_now()
    return node


cdef Node source_of(Array a):
    """Return the node that an array came from: of one that a user's forward made, a node that raises when it is asked."""
    cdef Reading reading = None if a.node is not None else reading_of(a)
    cdef Node lost
    if reading is None:
        return a.node
    lost = new_node(None, reading.sources, [None])
    lost.user, lost.inputs, lost.outputs = reading.lost, [], []
    return lost


def make_node(list inputs, int n_outputs):
    """Return a node without operator, for calls that the user differentiates (autograd.Function)."""
    return new_node(None, inputs, [None] * n_outputs)


cdef int link_outputs(Node node, list outputs) except -1:
    cdef Array a
    cdef int k = 0
    for a in outputs:
        if a is not None:
            a.node = node
            a.output = k
        k += 1
    return 0


cdef int note_overwritten(Node node, list outputs) noexcept:
    """See to it that a call which wrote over an input that its gradient reads is found out."""
    cdef Array a, b
    for a in node.inputs:
        if a is not None and a.block != NULL:
            for b in outputs:
                if b is not None and b.block == a.block:
                    node.stamp = 0
    return 0


cdef int record_general(object op, object attrs, object inputs, list outputs) except -1:
    """Record a reduction, kernel or composite with a rule; of what the rule does not read, the shape is kept."""
    cdef Node node
    cdef Array a
    cdef int k
    if is_making():
        settle_results(inputs, outputs, op.zero_gradient)
    if not mx_recording or not any_node(inputs):
        return 0
    found = op.rule_reads(attrs, inputs, outputs)
    node = new_node(op, inputs, outputs)
    node.call, node.reads = attrs, found
    if found is None:
        node.inputs = list(inputs)
        node.outputs = [detached(<Array>a) for a in outputs]
    else:
        node.inputs = [inputs[k] if k in found[0] else shape_of(<Array>inputs[k]) for k in range(len(inputs))]
        node.outputs = [detached(<Array>outputs[k]) if k in found[1] else shape_of(<Array>outputs[k])
                        for k in range(len(outputs))]
    note_overwritten(node, outputs)
    link_outputs(node, outputs)
    return 0
