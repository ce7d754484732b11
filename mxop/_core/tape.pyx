"""The tape: walks recorded calls backwards.

Calls are visited from the latest to the earliest (their serial numbers are a topological order), each when all gradients
of its outputs have been added up.  Elementwise calls run their backward program directly; others ask their operator for
its rule.  With ``create_graph`` the gradient's own calls are recorded, which gives every higher order.
"""
from mxop._core.array cimport (
    Array, Node, Reading, changed_by, detached, has_history, host_reads, new_like, place_of, reading_of, stamp_now, touch,
)
from mxop._core.chain cimport checked, gradients_at
from mxop._core.dispatch cimport OpFunction, call_two, function_of, invoke
from mxop._core.elementwise cimport BackwardPlan, ElementwiseCall, filled_attrs, run_elementwise
from mxop._core.kinds cimport picked
from mxop._core.plans cimport Recorded
from mxop._core.profile cimport API, IMPERATIVE, abandon, begin, clock, note_api, note_call, watched
from mxop._core.record cimport is_recording, is_training, set_recording, set_training
from mxop._core.transfer cimport copy_into, same_dims
from mxop._kernels.codes cimport FLOAT64
from mxop._kernels.operands cimport REQ_ADD, REQ_NULL, REQ_WRITE
from mxop._kernels.memory cimport Block

import warnings

from mxop.support import dtypes
from mxop._core.array import become, note_cut
from mxop._core.record import make_node
from mxop.support.errors import GradientWarning, MXNetError, OpTypeError, OpValueError
from mxop.opdef import External, registry

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object o)

cdef unsigned long long _visit = 0
cdef OpFunction _add = None, _unbroadcast = None, _ones_like = None, _zeros_like = None, _copy = None
cdef object _F = None


def start(F):
    """Give the tape the namespace that gradient rules see."""
    global _add, _unbroadcast, _ones_like, _zeros_like, _copy, _F
    _F = F
    _add = function_of(registry.get("elemwise_add"))
    _unbroadcast = function_of(registry.get("_unbroadcast"))
    _ones_like = function_of(registry.get("ones_like"))
    _zeros_like = function_of(registry.get("zeros_like"))
    _copy = function_of(registry.get("_copy"))


_REQ = {"null": REQ_NULL, "write": REQ_WRITE, "add": REQ_ADD}


def mark_variable(Array x, grad, grad_req="write"):
    """Make an array a variable: a leaf whose gradient backward stores in `grad`, which may be sparse."""
    cdef Node node
    req = _REQ.get(grad_req) if isinstance(grad_req, str) else None
    if req is None:
        raise OpValueError(f"grad_req={grad_req!r} is not allowed; expected 'write', 'add' or 'null'")
    if grad is not None and grad.shape != x.shape_tuple():
        raise OpValueError(f"the gradient array has shape {grad.shape}, the variable {x.shape_tuple()}")
    if grad is not None and grad.dtype_code != x.dtype:
        raise OpTypeError(f"the gradient array has dtype {dtypes.NAMES[grad.dtype_code]}, the variable {dtypes.NAMES[x.dtype]}")
    if x.node is not None or reading_of(x) is not None:
        note_cut()
    node = Node.__new__(Node)
    node.op = None
    node.n_outputs = 1
    node.grad = grad
    node.grad_req = req
    x.node = node if req != REQ_NULL or grad is not None else None
    x.output = 0


cdef Node leaf_of(Array x):
    """Return the node of a variable, None for any other array."""
    return x.node if x.node is not None and x.node.op is None and x.node.user is None else None


def gradient_of(Array x):
    """Return the gradient array of a variable, or None."""
    cdef Node leaf = leaf_of(x)
    return None if leaf is None else leaf.grad


def is_fresh(Array x):
    """Return whether backward wrote a variable's gradient since that was last denied."""
    cdef Node leaf = leaf_of(x)
    return leaf is not None and leaf.fresh


def set_fresh(Array x, bint fresh):
    """Say whether a variable's gradient counts as written."""
    cdef Node leaf = leaf_of(x)
    if leaf is None:
        raise MXNetError("_fresh_grad: the array is not a variable and has no gradient; call attach_grad() on it")
    leaf.fresh = fresh


def tracked(Array x):
    """Return whether an array is a variable, was recorded, or was made in a forward whose backward is being recorded."""
    return has_history(x)


def known(Array x):
    """Return whether an array is a variable or was recorded."""
    return x.node is not None


def is_variable(Array x):
    """Return whether an array is a variable."""
    return leaf_of(x) is not None


def replace(Array x, Array made, str writer):
    """Let a recorded array stand for another of its shape and type, with that one's history; what calls keep of it stays as it is."""
    become(x, made)
    touch(x, writer)
    x.node, x.output = made.node, made.output


def arrays_of(given):
    """Return a list of arrays that nobody need look at again: of one, or of a list of them; None for anything else."""
    if isinstance(given, Array):
        return [given]
    if type(given) is not list:
        return None
    for a in <list>given:
        if not isinstance(a, Array):
            return None
    return list(given)


def reads_by_host():
    """Return how often this thread handed memory of recorded arrays to code that is not recorded, such as NumPy's."""
    return host_reads()


def moment():
    """Return a number of this moment, for :func:`changed_since`."""
    return stamp_now()


def changed_since(Array x, unsigned long long then):
    """Return who wrote to an array after a moment, or None."""
    return changed_by(x, then)


def origin(Array x):
    """Return the node that an array came from and which of its outputs it is; for tools."""
    return x.node, x.output


def parts(Node n):
    """Return (operator, attributes, parents, parents' outputs) of a recorded call, None for a variable; for tools.

    Of what ran as a plan, the run takes the place of the operator.
    """
    if n.op is None:
        if n.user is None:
            return None
        op, attrs = n.user, None
        if not hasattr(op, "plan"):
            op, attrs = getattr(n.user, "call", (None, None))
        if op is None:
            raise MXNetError(f"{type(n.user).__name__} is a Function of the user, not an operator")
        return op, attrs, list(n.parents), list(n.parent_outputs)
    attrs = filled_attrs(<ElementwiseCall>n.call, n.values) if isinstance(n.call, ElementwiseCall) else n.call
    return n.op, attrs, list(n.parents), list(n.parent_outputs)


def record_user(function, list inputs, list outputs):
    """Record a call of an autograd.Function."""
    cdef Node node
    cdef Array a
    if not any([has_history(<Array>a) for a in inputs]):
        return
    node = make_node(inputs, len(outputs))
    node.user = function
    node.inputs = inputs
    node.outputs = [detached(<Array>a) for a in outputs]
    for k, a in enumerate(outputs):
        a.node, a.output = node, k


cdef list leading_to(list order, list variables, list asked):
    """Return the recorded calls between heads and variables: of the others, nobody asks for the gradients.

    To `asked` goes, for each of them, which of its parents are asked for theirs.
    """
    global _visit
    cdef Node node, parent
    cdef Array x
    cdef list found = []
    cdef Py_ssize_t i
    _visit += 1
    for x in variables:
        x.node.visit = _visit
    for i in range(len(order) - 1, -1, -1):
        node = <Node>order[i]
        needed = [parent is not None and (<Node>parent).visit == _visit for parent in node.parents]
        if True in needed and not is_constant(node):
            node.visit = _visit
            found.append(node)
            asked.append(needed)
    found.reverse()
    asked.reverse()
    return found


cdef inline bint is_constant(Node node):
    """Return whether a call's result is made like its input, whose gradient is zero: an infinite slope makes that NaN."""
    return node.op is not None and (node.op is _ones_like.op or node.op is _zeros_like.op)


cdef inline list asked_of(Node node, list needed):
    """Return which parents of a node are asked for their gradients: by default all that are no constants."""
    return [parent is not None and not is_constant(<Node>parent) for parent in node.parents] if needed is None else needed


cdef list ordered(list heads):
    """Return the recorded calls below `heads`, latest first.

    Whose history an earlier backward freed counts as a constant, unless it is a head.
    """
    global _visit
    cdef Node node, parent, freed = None
    cdef list stack = [], found = []
    cdef Py_ssize_t i
    _visit += 1
    for node in heads:
        if node.visit != _visit:
            node.visit = _visit
            stack.append(node)
    while stack:
        node = <Node>stack.pop()
        if node.op is None and node.user is None:
            continue
        found.append(node)
        for parent in node.parents:
            if parent is not None and parent.visit != _visit:
                parent.visit = _visit
                if parent.freed and not node.freed:  # a freed head is an error, which says so
                    freed = parent
                else:
                    stack.append(parent)
    if freed is not None:
        warnings.warn(f"the result of {owner(freed)} counts as a constant: an earlier backward() freed its history; pass "
                      "retain_graph=True to that one, or say with detach() that it is meant", GradientWarning, stacklevel=3)
    for i in range(1, len(found)):
        if (<Node>found[i]).serial > (<Node>found[i - 1]).serial:
            found.sort(key=_serial_of, reverse=True)
            break
    return found


cdef list leaves_of(list order, list heads):
    """Return the variables below the recorded calls, each once."""
    global _visit
    cdef Node node, parent
    cdef list found = []
    _visit += 1
    for node in heads:
        if node.op is None and node.user is None and node.visit != _visit:
            node.visit = _visit
            found.append(node)
    for node in order:
        for parent in node.parents:
            if parent is not None and parent.op is None and parent.user is None and parent.visit != _visit:
                parent.visit = _visit
                found.append(parent)
    return found


def gradients_below(list arrays):
    """Return the gradient arrays of the variables that recorded arrays descend from."""
    cdef Array x
    cdef Node leaf
    heads = [x.node for x in arrays if x.node is not None]
    return [leaf.grad for leaf in leaves_of(ordered(heads), heads) if leaf.grad is not None]


def _serial_of(Node node):
    return node.serial


cdef object plus(object x, object y):
    cdef Array a, b
    if not isinstance(x, Array) or not isinstance(y, Array):
        return x + y  # one is row_sparse
    a, b = <Array>x, <Array>y
    if a.shape_tuple() != b.shape_tuple():
        raise OpValueError(f"gradients of shapes {a.shape_tuple()} and {b.shape_tuple()} meet; a gradient rule returned "
                           "an array of the wrong shape")
    return call_two(_add, a, b, None)


cdef int push(Node node, int output, object grad, bint alone=False) except -1:
    """Add a gradient, which nobody else has if it is `alone`, to those that a node's output has received.

    Only what variables receive stays sparse.
    """
    cdef list pending = node.pending
    if node.freed:
        return 0
    if not isinstance(grad, Array) and (node.op is not None or node.user is not None):
        grad = grad.todense()
    if pending is None:
        pending, node.alone = [None] * node.n_outputs, 0
        node.pending = pending
    if pending[output] is not None:
        grad, alone = plus(pending[output], grad), True
    pending[output] = grad
    if alone and output < 64:
        node.alone |= 1ULL << output
    return 0


cdef Array reattached(Node node, int k):
    """Return an output that was kept, as the output of its node."""
    cdef Array a = detached(<Array>node.outputs[k])
    a.node = node
    a.output = k
    return a


cdef int check_unchanged(Node node, int k, Array kept, bint is_output) except -1:
    """Raise when somebody wrote to an array after it was kept for this node's gradient."""
    cdef str writer = changed_by(kept, node.stamp)
    if writer is None:
        return 0
    attrs = filled_attrs(<ElementwiseCall>node.call, node.values) if isinstance(node.call, ElementwiseCall) else node.call
    n = len(node.parents)
    what = (f"its output {node.op.output_names(attrs, n)[k]!r}" if is_output else
            f"its argument {node.op.input_names(attrs, n)[k]!r}")
    raise MXNetError(f"cannot differentiate operator {node.op.name}: {what} was changed after it was recorded, by "
                     f"{writer}; change it after backward(), or let the operator have a copy")


cdef int back_elementwise(Node node, list needed, bint create) except -1:
    """Run the backward program of an elementwise call."""
    cdef ElementwiseCall call = <ElementwiseCall>node.call
    cdef BackwardPlan plan
    cdef list operands = [], pending = node.pending
    cdef int k, i, n = call.n_in
    cdef Array g
    cdef object found
    cdef tuple wanted
    if n == 1:
        wanted = (0,)
    else:
        needed = asked_of(node, needed)
        wanted = tuple([k for k in range(n) if needed[k]])
    plan = call.backward(wanted, tuple([k for k in range(call.n_out) if pending[k] is None]) if call.n_out > 1 else ())
    for i, k in plan.passed:
        push(<Node>node.parents[i], node.parent_outputs[i], fitting(call, node, i, <Array>pending[k]))
    if not plan.wanted:
        return 0
    for k in plan.heads:
        operands.append(pending[k])
    for k in plan.inputs:
        check_unchanged(node, k, <Array>node.inputs[k], False)
        operands.append(node.inputs[k])
    for k in plan.outputs:
        check_unchanged(node, k, <Array>node.outputs[k], True)
        operands.append(reattached(node, k) if create else node.outputs[k])
    found = run_elementwise(plan.call, operands, node.values, None, REQ_WRITE)
    for i in range(len(plan.wanted)):
        k = plan.wanted[i]
        g = <Array>(found if plan.call.n_out == 1 else found[i])
        push(<Node>node.parents[k], node.parent_outputs[k], fitting(call, node, k, g), True)
    return 0


cdef Array fitting(ElementwiseCall call, Node node, int k, Array g):
    """Return a gradient of input `k`, summed over what that was broadcast along."""
    if not call.broadcast or same_dims(g, <Array>node.inputs[k]):
        return g
    return <Array>invoke(_unbroadcast.op, [g, node.inputs[k]], _unbroadcast.op.parse({}), None)


cdef Array ones_like(Array h):
    """Return ones of the shape and type of an array, without history."""
    cdef Array g
    if h.dtype > FLOAT64 or h.size > 4096:
        return call_one(_ones_like, h)
    g = new_like(h, h)
    g.device.fill(g, 1)
    return g


cdef Array call_one(OpFunction f, Array a):
    return <Array>f(a)


cdef bint takes_absent(Node node):
    """Return whether a rule wants None, and no zeros, for outputs without a head gradient."""
    return isinstance(node.user, Recorded) if node.op is None else node.op.absent_heads


cdef list rule_of(Node node, list needed, list nodes):
    """Ask the operator (or the user's Function) for the gradients of its inputs; `nodes` are those of the heads."""
    cdef list heads = [], outputs, inputs = node.inputs
    cdef int k
    for k in range(node.n_outputs):
        if node.pending[k] is None and not takes_absent(node):
            node.pending[k] = call_one(_zeros_like, reattached(node, k))
        heads.append(node.pending[k])
    if node.user is not None:
        if is_recording():
            found = recorded_by_user(node, heads)
        else:
            found = node.user._backward(heads if isinstance(node.user, Recorded) else [own(node, k) for k in range(node.n_outputs)])
        return checked(owner(node), found, inputs, needed, "")
    call = node.call
    if isinstance(call, ElementwiseCall):
        call = filled_attrs(<ElementwiseCall>node.call, node.values)
    if isinstance(node.op, External):
        _, read_inputs, read_outputs = node.op.backward_reads(call, len(inputs))
        states = node.op.aux_names(call)
        if states:  # which calls do change
            names = node.op.input_names(call, len(inputs))
            read_inputs = [k for k in read_inputs if names[k] not in states]
    else:
        read_inputs, read_outputs = node.reads or (range(len(inputs)), range(node.n_outputs))
    for k in read_inputs:
        check_unchanged(node, k, <Array>inputs[k], False)
    for k in read_outputs:
        check_unchanged(node, k, <Array>node.outputs[k], True)
    outputs = [reattached(node, k) for k in range(node.n_outputs)]
    return gradients_at(node.op, _F, call, heads, inputs, outputs, needed,
                        lambda: (node.op.name.count("_backward_") + 1, path_to(node, nodes), ""))


cdef Array own(Node node, int k):
    """Return a head gradient for code of the user, which may write to it: a copy, where somebody else may have it, too."""
    return <Array>node.pending[k] if k < 64 and node.alone >> k & 1 else call_one(_copy, <Array>node.pending[k])


cdef str path_to(Node node, list heads):
    """Describe how a head depends on a node, for messages."""
    cdef list queue = list(heads), names
    cdef dict came = {id(h): None for h in heads}
    cdef Node at, parent
    while queue:
        at = <Node>queue.pop(0)
        if at is node:
            names = []
            while at is not None:
                names.append(at.op.name if at.op is not None else "variable")
                at = came[id(at)]
            return " <- ".join(reversed(names))
        for parent in at.parents or []:
            if parent is not None and id(parent) not in came and parent.op is not None:
                came[id(parent)] = at
                queue.append(parent)
    return node.op.name


class Lost:
    """The end of what can be differentiated: what was computed, in part, by code that records nothing."""

    def __init__(self, name, reason):
        self.name, self.reason = name, reason

    def error(self):
        return MXNetError(f"the gradient of {self.name} cannot be differentiated: {self.reason}")

    def _backward(self, heads):
        raise self.error()


#: Why a gradient of a user's cannot be differentiated.
BY_HOST = ("its rule handed a recorded array to NumPy (asnumpy, np.asarray), and what was computed from it there has no "
           "gradient; compute it with operators of mx.nd instead")
KEPT_BY_HOST = ("its forward handed an array to NumPy (asnumpy, np.asarray) and keeps numbers for its backward, which have no "
                "gradient; compute them with operators of mx.nd in backward, from the inputs and outputs of forward")
MADE = ("its backward reads an array that its forward made, or a view, copy or detach() of an input, and forward is not "
        "recorded; make it an output of forward, or compute it in backward from the inputs and outputs of forward (BlockGrad "
        "says that a gradient is zero)")
CUT = ("its backward differentiates a detached copy, or without create_graph=True, and what it finds has no gradient; call "
       "autograd.grad(..., create_graph=True) on arrays computed from the inputs themselves")


cdef list recorded_by_user(Node node, list heads):
    """Ask a Function for its gradients, which may be differentiated; what its forward made is no constant there."""
    cdef list given, found
    cdef Reading reading
    forward = getattr(node.user, "_made", None)
    if forward is None:
        return node.user._backward(heads)
    given = [a for a in node.inputs if has_history(<Array>a)]
    with Reading(forward, [*node.inputs, *heads], given, given, Lost(owner(node), MADE)) as reading:
        found = node.user._backward(heads)
    if reading.cut or node.user._kept:
        found = closed(node, found, CUT if reading.cut else KEPT_BY_HOST)
    return found


class _Constant:
    """The end of a gradient that does not depend on the variables: its own gradient is zero."""

    def __init__(self, n):
        self.n = n

    def _backward(self, heads):
        return [None] * self.n


cdef Array constant(Array gradient, list variables):
    """Return a gradient without history as one that can be differentiated."""
    cdef Array found = detached(gradient)  # it may be an array of the caller's
    record_user(_Constant(len(variables)), variables, [found])
    return found


cdef str owner(Node node):
    """Return the name of what a node's gradient rule belongs to."""
    if isinstance(node.user, Recorded):
        return f"operator {(<Recorded>node.user).plan.described()[0]}"
    return f"operator {node.op.name}" if node.op is not None else type(node.user).__name__


cdef list closed(Node node, list grads, str reason):
    """Return gradients that say, when they are differentiated, that they cannot be."""
    cdef Array a
    cdef list found = [None if a is None else detached(a) for a in grads]
    sources = [*node.pending, *node.inputs, *[reattached(node, k) for k in range(node.n_outputs)]]
    record_user(Lost(owner(node), reason), [a for a in sources if a is not None], [a for a in found if a is not None])
    return found


cdef int back_general(Node node, list needed, bint create, list heads) except -1:
    """Give the inputs of a call their gradients, by its operator's rule."""
    cdef long long reads = host_reads()
    cdef bint picks = node.op is not None and not create and getattr(node.op, "picks", False)
    cdef list grads
    cdef int k
    if picks and added_where_picked(node):
        return 0
    grads = rule_of(node, asked_of(node, needed), heads)
    if create and host_reads() != reads:
        grads = closed(node, grads, BY_HOST)
    for k in range(len(grads)):
        if grads[k] is not None:
            push(<Node>node.parents[k], node.parent_outputs[k], grads[k], picks)
    return 0


cdef bint added_where_picked(Node node) except -1:
    """Add the gradient of a slice to where it was taken from, in what its input has received; tell whether that was possible.

    The rule would make an array of the input's size for each slice: for all steps of a sequence, one by one, the square of it.
    """
    cdef Node parent = <Node>node.parents[0]
    cdef int k = node.parent_outputs[0]
    if parent is None or parent.pending is None or k >= 64 or not parent.alone >> k & 1:
        return False
    if not isinstance(parent.pending[k], Array):  # a variable's, which is sparse
        return False
    copy_into(<Array>node.pending[0], picked(node.op, node.call, [parent.pending[k], *node.inputs[1:]]), REQ_ADD)
    return True


cdef int back_timed(Node node, list needed, bint create, list heads) except -1:
    """As :func:`back_general`, for the profiler."""
    cdef str name = f"_backward_{node.op.name if node.op is not None else type(node.user).__name__}"
    cdef int place = place_of([g for g in node.pending if g is not None])
    cdef long long begun = begin(name)
    try:
        back_general(node, needed, create, heads)
    except BaseException:
        abandon(name)
        raise
    note_call(name, begun, place)
    return 0


cdef bint exchange(Node leaf, Array g) noexcept:
    """Let a variable's gradient have the memory of a new one, where nobody but the variable has the old one."""
    cdef Array old = <Array>leaf.grad
    cdef Block* block = g.block
    cdef char* data = g.data
    if Py_REFCNT(old) > 2:  # the variable's, and `old`
        return False
    if g.dtype != old.dtype or not same_dims(g, old) or not (whole(g) and whole(old)) or old.readonly_ or g.readonly_:
        return False
    g.block, g.data, old.block, old.data = old.block, old.data, block, data
    return True


cdef inline bint whole(Array a) noexcept:
    """Return whether an array is all there is of its memory, and nobody else knows that."""
    return (a.contiguous and a.data == a.block.data and a.block.refs == 1 and a.block.size_class >= 0 and a.watch is None
            and not a.block.exports)


cdef int store(Node leaf, object g, bint alone) except -1:
    """Store a gradient (None for zero) in a variable, as its request says; nobody else has one that is `alone`."""
    if leaf.grad is None or leaf.grad_req == REQ_NULL:
        return 0
    if not isinstance(leaf.grad, Array):
        leaf.grad._receive(g, leaf.grad_req == REQ_ADD)
        leaf.fresh = True
        return 0
    if g is not None and not isinstance(g, Array):
        g, alone = g.todense(), False
    if g is None:
        if leaf.grad_req == REQ_ADD:
            leaf.fresh = True
            return 0
        g, alone = call_one(_zeros_like, <Array>leaf.grad), False
    if leaf.grad_req != REQ_WRITE or not (alone and exchange(leaf, <Array>g)):
        copy_into(<Array>g, <Array>leaf.grad, leaf.grad_req)
    touch(<Array>leaf.grad, "backward()")
    leaf.fresh = True
    return 0


cdef int own_memory(list found, head_grads) except -1:
    """Let no gradient that is returned be a head gradient of the caller's, or another one: each may be changed."""
    cdef Py_ssize_t k
    cdef set taken = {memory_of(<Array>a) for a in head_grads or () if isinstance(a, Array)}
    for k in range(len(found)):
        if isinstance(found[k], Array):
            place = memory_of(<Array>found[k])
            if place in taken:
                found[k] = call_one(_copy, <Array>found[k])
            taken.add(place)
    return 0


cdef inline size_t memory_of(Array a) noexcept:
    """Return what arrays that share memory have in common; on a GPU the array itself."""
    return <size_t>a.block if a.block != NULL else <size_t><void*>a


def run(list heads, head_grads, variables=None, bint retain_graph=False, bint create_graph=False, bint train_mode=True):
    """Compute gradients of `heads`.

    Parameters
    ----------
    heads : list of NDArray
    head_grads : list of (NDArray or None), or None for ones
    variables : list of NDArray, optional
        Return gradients with respect to these instead of storing them in the variables found.
    """
    cdef Array h, g, x
    cdef Node node, leaf, parent
    cdef list nodes = [], order = [], steps, found = [], leaves = [], outer = [], asked = [], needed
    cdef bint was_recording, was_training
    cdef long long begun = clock() if watched(API) else 0
    cdef Py_ssize_t i
    cdef int k = 0
    global _visit
    if not create_graph:
        note_cut()
    if head_grads is not None and len(head_grads) != len(heads):
        raise OpValueError(f"{len(heads)} heads but {len(head_grads)} head gradients")
    for h in heads:
        if h.node is None:
            raise MXNetError("cannot differentiate: the array was not computed from variables inside autograd.record(); "
                             "call attach_grad() on an input and compute inside 'with autograd.record():'; "
                             "w = w - w.grad makes a new array, which is no variable: write w[:] = w - w.grad")
        nodes.append(h.node)
    was_recording = set_recording(create_graph)
    was_training = set_training(train_mode)
    try:
        order = ordered(nodes)
        for node in order:
            if node.freed:
                raise MXNetError(f"cannot differentiate {owner(node)} again: its saved arrays were freed by an earlier "
                                 "backward; pass retain_graph=True to that one")
        steps, leaves = order, leaves_of(order, nodes)
        if variables is None and leaves and all([(<Node>leaf).grad_req == REQ_NULL for leaf in leaves]):
            raise MXNetError("cannot differentiate: every variable that the array was computed from has grad_req='null'")
        for node in (*order, *leaves):
            if node.pending is not None:  # of a pass around this one, in whose middle a rule differentiates something
                outer.append((node, node.pending))
                node.pending = None
        for h in heads:
            if head_grads is None or head_grads[k] is None:
                g = call_one(_ones_like, h) if create_graph else ones_like(h)
            else:
                if not isinstance(head_grads[k], Array):
                    raise OpTypeError(f"head gradient {k} must be an NDArray, got {type(head_grads[k]).__name__}")
                g = <Array>head_grads[k]
                if g.shape_tuple() != h.shape_tuple() or g.dtype != h.dtype:
                    raise OpValueError(f"head gradient {k} has shape {g.shape_tuple()} and dtype {dtypes.NAMES[g.dtype]}; "
                                       f"the head has shape {h.shape_tuple()} and dtype {dtypes.NAMES[h.dtype]}")
            push(h.node, h.output, g)
            k += 1
        if variables is not None:
            for x in variables:
                if x.node is None:
                    raise MXNetError("autograd.grad: a variable is not part of the graph; call attach_grad() on it, or "
                                     "compute the heads from it inside autograd.record()")
                found.append(None)
            steps = leading_to(order, variables, asked)
        for i in range(len(steps)):
            node, needed = <Node>steps[i], None if variables is None else <list>asked[i]
            if node.pending is None:
                continue
            if variables is not None:
                k = 0
                for x in variables:
                    if x.node is node and node.pending[x.output] is not None:
                        found[k] = node.pending[x.output]
                    k += 1
            if node.user is None and isinstance(node.call, ElementwiseCall):
                back_elementwise(node, needed, create_graph)
            elif watched(IMPERATIVE):
                back_timed(node, needed, create_graph, nodes)
            else:
                back_general(node, needed, create_graph, nodes)
            node.pending = None
        if variables is not None:
            k = 0
            for x in variables:
                if found[k] is None and x.node.pending is not None:
                    found[k] = x.node.pending[x.output]
                k += 1
            own_memory(found, head_grads)
        else:
            set_recording(False)
            if not retain_graph and not create_graph:  # before the results are read: dead ones need not be computed
                for node in order:
                    release(node)
            for leaf in leaves:
                made = None if leaf.pending is None else leaf.pending[0]
                leaf.pending = None
                store(leaf, made, Py_REFCNT(made) == 1)
                if leaf.grad_req == REQ_NULL and not retain_graph and not create_graph:
                    leaf.grad = None  # as MXNet, which forgets what was no variable with the history
            made = None
    finally:
        set_recording(was_recording)
        set_training(was_training)
        for node in leaves:
            node.pending = None
        for node in nodes:
            node.pending = None
        for node in order:
            node.pending = None
        for node, pending in outer:
            (<Node>node).pending, (<Node>node).alone = pending, 0  # of those, nothing is known
    if variables is not None and not retain_graph and not create_graph:
        for node in order:
            release(node)
    if begun:
        note_api("autograd.backward", begun)
    if variables is None:
        return None
    for k in range(len(found)):
        if found[k] is None:
            found[k] = call_one(_zeros_like, <Array>variables[k])
        if create_graph and isinstance(found[k], Array) and (<Array>found[k]).node is None:
            found[k] = constant(<Array>found[k], variables)
    return found


cdef int release(Node node) except -1:
    """Free what a node kept; its place in the graph stays, so that a second backward can say what happened."""
    node.inputs = None
    node.outputs = None
    node.freed = True
    return 0


cdef class Scope:
    """Sets recording and training mode inside a ``with`` block; None leaves one alone."""

    cdef int record, train, was_recording, was_training

    def __cinit__(self, record, train):
        self.record = -1 if record is None else bool(record)
        self.train = -1 if train is None else bool(train)

    def __enter__(self):
        if self.record >= 0:
            self.was_recording = set_recording(self.record)
        if self.train >= 0:
            self.was_training = set_training(self.train)

    def __exit__(self, kind, value, trace):
        if self.record >= 0:
            set_recording(self.was_recording)
        if self.train >= 0:
            set_training(self.was_training)


def recording():
    """Return whether this thread records."""
    return bool(is_recording())


def training():
    """Return whether this thread is in training mode."""
    return bool(is_training())


def switch_recording(bint value):
    """Set recording; return what it was."""
    return bool(set_recording(value))


def switch_training(bint value):
    """Set training mode; return what it was."""
    return bool(set_training(value))
