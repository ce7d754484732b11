"""Plans: what a graph became for inputs of certain shapes and types, run on whatever arrays come.

Composites that are called on arrays run this way, and functions marked with ``mx.graph.compiled``.  :mod:`mxop.graph.traced`
makes the plans; from the call to the work of the operators inside there is no Python.
"""
from collections import OrderedDict

from mxop._core.array cimport (
    Array, Node, changed_by, detached, has_history, is_making, settle_results, shape_of, stamp_now,
    write_pointer,
)
from mxop._core.call cimport Places
from mxop._core.device cimport Device, device_of, wait_if_asked
from mxop._core.launched cimport begins_a_word, by_graphs
from mxop._core.recent cimport MISSING, Entry, Latest, numpy_shapes
from mxop._core.record cimport is_recording, is_training, link_outputs, new_node, set_training
from mxop._core.results cimport DENSE, common_device, goes_beside, output_like, output_list
from mxop._core.transfer cimport contiguous_copy
from mxop._kernels.operands cimport REQ_WRITE

from mxop._core.finishing import finishing
from mxop.support.errors import MXNetError, of_gpu
from mxop.opdef.above import ask

MOST = 256              # plans that are kept
cdef enum:
    MOST_IDLE = 4       # prepared calls of one plan that wait for their next run

cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) int mx_unplanned = 0;
    #else
    static __thread int mx_unplanned = 0;
    #endif
    """
    bint mx_unplanned


def switch_off(bint value):
    """Let calls of this thread run operator by operator; return whether they did."""
    global mx_unplanned
    cdef bint before = mx_unplanned
    mx_unplanned = value
    return before


# ---- plans ------------------------------------------------------------------------------------------------------------

cdef class Prepared:
    """The calls of a plan: for one run at a time.

    Parameters
    ----------
    phases : list of list of Call
        Forward, and backward if there is one.
    """

    def __init__(self, list phases):
        cdef Places places
        self.parts = []
        for calls in phases:
            places, calls = Places(), finishing(calls)
            places.note(calls)
            self.parts.append((places, by_graphs(calls)[0]))

    cdef list used(self, Py_ssize_t first, Py_ssize_t n):
        """Return, for each of the `n` placeholders, whether the calls from phase `first` on point into it."""
        cdef list found = [False] * n
        cdef Places places
        cdef Py_ssize_t i
        for places, _ in self.parts[first:]:
            for i in range(places.count):
                found[places.places[i].base] = True
        return found


cdef class Bound:
    """A plan for the numbers of a call, which are the last of its inputs."""

    cdef list run(self, object inputs, list targets=None):
        """Run on arrays, as :meth:`Plan.run` does."""
        return self.plan.run(inputs if self.numbers is None else [*inputs, *self.numbers], targets, self.values)


cdef Bound bound_to(Plan plan, tuple numbers, dict values):
    """Return a plan for numbers that are given with their type codes; the arrays are its own, and nobody writes them.

    `values` are what these are made of.
    """
    cdef Bound found = Bound.__new__(Bound)
    cdef Array a
    found.plan, found.numbers, found.values = plan, [] if numbers else None, values
    for number, code in numbers:
        a = <Array>plan.device.make(0, NULL, <int>code)
        plan.device.fill(a, number)
        found.numbers.append(a)
    return found


cdef class Plan:
    """What runs: prepared calls, and which arrays they need.

    The *table* of a run holds its arrays in the order of the calls' placeholders: inputs, results, gradients of the results that
    backward reads, gradients of the wanted inputs, buffers.
    """

    def __init__(self, Prepared first, list results, list read_heads, list grads, list sizes, set carried, tuple wanted,
                 bint is_train, Py_ssize_t n_inputs, int n_visible, list shown, int gpu):
        cdef Py_ssize_t k
        self.idle, self.masks = [first], ()
        self.results, self.grads, self.sizes, self.read_heads = results, grads, sizes, read_heads
        self.n_inputs, self.wanted, self.is_train, self.n_visible, self.shown = n_inputs, wanted, is_train, n_visible, shown
        self.n_table = n_inputs + len(results) + sum(read_heads) + len(grads)
        self.kept, self.reads = first.used(-1, self.n_table + len(sizes)), first.used(0, self.n_table + len(sizes))[:n_inputs]
        self.device, self.scratch = device_of(gpu), []
        for k in range(self.n_table, len(self.kept)):  # buffers that hold nothing between the phases
            if self.kept[k] and k - self.n_table not in carried:
                self.kept[k] = False
                self.scratch.append(k)

    cdef list fresh(self, list templates, list inputs):
        """Return new arrays like these, on the device of the inputs."""
        cdef list found = [None] * len(templates)
        cdef Array a
        cdef Py_ssize_t k
        for k in range(len(templates)):
            a = <Array>templates[k]
            a = <Array>self.device.make(a.ndim, a.shape_, a.dtype)
            if inputs:
                a.device_id = (<Array>inputs[0]).device_id
            found[k] = a
        return found

    cdef Array buffer(self, Py_ssize_t k):
        """Return new memory for a run: buffer number `k`."""
        cdef Py_ssize_t size = (<tuple>self.sizes[k])[1]
        return <Array>self.device.make(1, &size, (<tuple>self.sizes[k])[0])

    cdef Array readable(self, Array a):
        """Return an array, or a copy of it that lies as the calls are prepared for."""
        if a.contiguous and begins_a_word(a):
            return a
        return contiguous_copy(a)

    cdef int execute(self, int part, list table) except -1:
        """Run forward (0) or backward (1)."""
        cdef Prepared ready
        try:
            ready = <Prepared>self.idle.pop()
        except IndexError:  # in a thread that comes in the middle of a run
            ready = <Prepared?>self.prepared_again()
        places, calls = <tuple>ready.parts[part]
        (<Places>places).run(calls, table)
        wait_if_asked()
        if len(self.idle) < MOST_IDLE:
            self.idle.append(ready)
        return 0

    cdef list targets(self, object op, object out, object inputs):
        """Return of the arrays given for the outputs those that a run can write where they lie, None for the others."""
        cdef Py_ssize_t n = len(self.results) if self.shown is None else len(self.shown), k, at
        cdef list given, found = [None] * len(self.results), read = list(inputs)
        cdef Array a
        if is_recording():
            return None
        given = output_list(op, out, <int>n, self.n_visible)
        if self.shown is not None:
            for k in range(n):
                if given[k] is not None and self.shown[k] is None:  # an error: nothing may be written
                    return None
        for k in range(n):
            if given[k] is None:
                continue
            at = k if self.shown is None else <Py_ssize_t>self.shown[k]
            if found[at] is not None:
                continue
            a = output_like(op, given[k], <Array>self.results[at])
            if a.device is self.device and begins_a_word(a) and not goes_beside(a, read, REQ_WRITE, DENSE):
                write_pointer(a)  # noted by whoever watches the array
                read.append(a)
                found[at] = a
        return found

    cdef list forward(self, list inputs, list table, list targets):
        """Return the results, in the targets where there are any; `table`, as long as a table is, gets the arrays of the run."""
        cdef list results = self.fresh(self.results, inputs) if targets is None else list(targets)
        cdef Array a
        cdef Py_ssize_t k
        for k in range(len(inputs)):
            a = <Array>inputs[k]
            table[k] = self.readable(a)
        for k in range(len(results)):
            if results[k] is None:
                results[k] = self.fresh([self.results[k]], inputs)[0]
            table[self.n_inputs + k] = results[k]
        for k in range(len(self.sizes)):
            table[self.n_table + k] = self.buffer(k)
        self.execute(0, table)
        return results

    cdef list run(self, object inputs, list targets=None, dict values=None):
        """Run on arrays and record the run; return the outputs of the operator, None for those that nobody can see."""
        cdef list given = list(inputs), table = [None] * len(self.kept), results
        try:
            results = self.forward(given, table, targets)
        except Exception as problem:
            raise of_gpu(problem, f"operator {self.described()[0]}")
        if targets is None:
            for k in self.masks:
                (<Array>results[k]).mask = True
        if is_making():
            settle_results(given, results, False)
        if self.wanted:
            record(self, given, table, results, values)
        if self.shown is None:
            return results
        return [None if k is None else results[k] for k in self.shown]

    def backward(self, list table, list heads):
        """Return the gradient of each wanted input."""
        try:
            return self.gradients(table, heads)
        except Exception as problem:
            raise of_gpu(problem, f"operator {self.described()[0]}")

    cdef list gradients(self, list table, list heads):
        cdef list arrays = list(table), grads = self.fresh(self.grads, table[:1])
        cdef Py_ssize_t at = self.n_inputs + len(self.results), k, size
        cdef Array g
        for g, read in zip(heads, self.read_heads):
            if read:
                arrays[at] = self.readable(g)
                at += 1
        arrays[at:self.n_table] = grads
        for k in self.scratch:
            arrays[k] = self.buffer(k - self.n_table)
        self.execute(1, arrays)
        return grads

    def prepared_again(self):
        """Return the calls once more, prepared."""
        raise NotImplementedError

    def derivative_without(self, tuple absent):
        """Return the gradients as a function of inputs and head gradients, where these outputs have none."""
        raise NotImplementedError

    def described(self):
        """Return what is called, and the names of its inputs, for messages."""
        raise NotImplementedError


# ---- on the tape ------------------------------------------------------------------------------------------------------

cdef class Recorded:
    """A run of a plan on the tape: a :class:`Node` asks it as it asks a Function of the user."""

    def _backward(self, list heads):
        cdef list found = [None] * self.plan.n_inputs, grads
        cdef tuple absent = tuple([k for k in range(len(heads)) if heads[k] is None])
        cdef Py_ssize_t k
        if is_recording() or any([self.plan.read_heads[k] for k in absent]):
            grads = self.recorded_gradients([h for h in heads if h is not None], self.plan.derivative_without(absent))
        else:
            self.check_unchanged(self.table, len(self.table))
            grads = self.plan.backward(self.table, heads)
        for k in range(len(grads)):
            found[self.plan.wanted[k]] = grads[k]
        return found

    cdef list recorded_gradients(self, list heads, object derivative):
        """Return gradients that can be differentiated: as another plan, where there is one, or operator by operator."""
        cdef list arrays = [*self.inputs, *heads]
        cdef Bound found
        cdef bint was_training = set_training(self.plan.is_train)
        try:
            found = plan_of(derivative, None, arrays)
            reads = derivative.reads if found is None else found.plan.reads
            self.check_unchanged([a if read else None for a, read in zip(arrays, reads)], self.plan.n_inputs)
            return derivative.operator_by_operator(arrays) if found is None else found.run(arrays)
        finally:
            set_training(was_training)

    cdef int check_unchanged(self, list kept, Py_ssize_t n) except -1:
        """Raise when somebody wrote to one of the first `n` of those that are kept, after that: to an input, or a result."""
        cdef Py_ssize_t k, n_inputs = self.plan.n_inputs
        cdef str writer
        for k in range(n):
            writer = None if kept[k] is None else changed_by(<Array>kept[k], self.stamp)
            if writer is not None:
                name, names = self.plan.described()
                what = f"its argument {names[k]!r}" if k < n_inputs else f"its output {k - n_inputs}"
                raise MXNetError(f"cannot differentiate operator {name}: {what} was changed after it was "
                                 f"recorded, by {writer}; change it after backward(), or let the operator have a copy")
        return 0


cdef int record(Plan plan, list inputs, list table, list results, dict values) except -1:
    """Put a run on the tape; what its gradient reads it keeps itself."""
    cdef Recorded run = Recorded.__new__(Recorded)
    cdef Node node = new_node(None, inputs, results)
    cdef Py_ssize_t k
    run.plan, run.inputs, run.stamp, run.values = plan, inputs, stamp_now(), values
    run.table = [table[k] if plan.kept[k] else None for k in range(len(table))]
    for k in range(len(inputs), len(inputs) + len(results)):  # a result that knew this run would keep itself alive
        if run.table[k] is not None:
            run.table[k] = detached(<Array>run.table[k])
    node.user = run
    node.inputs = [shape_of(<Array>a) for a in inputs]
    node.outputs = [shape_of(<Array>a) for a in results]
    return link_outputs(node, results)


# ---- which plan -------------------------------------------------------------------------------------------------------

cdef object _plans = OrderedDict()      # Bound, or None where there can be no plan
cdef Latest _latest = Latest()
cdef object _unknown = object()
cdef unsigned long long _epoch = 0


def forget():
    """Drop all plans: an operator or a pass is another one now."""
    global _epoch
    _epoch += 1
    _plans.clear()
    _latest.clear()


def kept():
    """Return the plans that there are, the latest last."""
    return list(dict.fromkeys([(<Bound>b).plan for b in _plans.values() if b is not None]))


cdef Bound plan_of(object owner, object attrs, object inputs):
    """Return the plan of a composite (with its parameters) or a function for these arrays; None where there is none."""
    cdef Array a
    cdef Entry entry
    cdef tuple key
    cdef Device device
    cdef int mode
    cdef unsigned long long begun = _epoch
    if mx_unplanned:
        return None
    device = common_device(inputs)
    if device is None:
        return None
    mode = is_training() | (2 if numpy_shapes() else 0) | (device.number + 1) << 2
    entry = _latest.entry(owner, attrs, inputs, mode, False, is_recording())
    if entry.plan is not MISSING:
        return <Bound>entry.plan
    key = (owner, attrs, entry.signature)
    found = _plans.get(key, _unknown)
    if found is _unknown:
        try:
            found = made(owner, attrs, inputs)
        except (MemoryError, RecursionError):  # of this moment: the next call asks again
            return None
        if begun == _epoch:
            _plans[key] = found
            if len(_plans) > MOST:
                try:
                    _plans.popitem(last=False)
                except KeyError:  # another thread took the last
                    pass
    elif 2 * len(_plans) > MOST:
        try:
            _plans.move_to_end(key)
        except KeyError:  # another thread took it
            pass
    if begun == _epoch:
        _latest.keep(entry, inputs, found)
    return <Bound>found


cdef object made(object owner, object attrs, object inputs):
    """Let a plan be made, or found among those that hold for any numbers."""
    cdef Array a
    cdef bint records = is_recording()
    specs = tuple([(a.shape_tuple(), a.dtype) for a in inputs])
    wanted = tuple([k for k, a in enumerate(inputs) if records and has_history(<Array>a)])
    before = switch_off(True)
    try:
        found = ask("make_plan")(owner, attrs, specs, wanted, bool(is_training()), common_device(inputs).number)
        return None if found is None else bound_to(<Plan>found[0], <tuple>found[1], <dict>found[2])
    finally:
        switch_off(before)


def run_function(owner, outside, list inputs):
    """Run a function of arrays as a plan and return its result; None where it has none.

    `outside` is what else it reads, which may be hashed: a plan is made for these values.
    """
    cdef Bound found = plan_of(owner, outside, inputs)
    return None if found is None else found.plan.form(found.run(inputs))
