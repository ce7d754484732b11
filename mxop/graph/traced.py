"""Plans without arrays: a graph prepared for shapes and types, and run on whatever arrays come.

Composites that are called on arrays run this way, and functions that a user marks with :func:`compiled`: the passes fuse
them as they do in an executor.  A plan is kept for each combination of shapes, types, modes and wanted gradients.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from operator import itemgetter
from threading import local
from typing import Any

from .._core import core, plans, tape
from .._core.array import switch_tracing
from ..errors import MXNetError, OpTypeError, OpValueError, shown, translated
from ..generators import no_draws
from ..memo import keep
from ..opdef import Attrs, External, Operator
from ..opdef.symbolic import Trace, Values, numbers_of
from ..shape_mode import numpy_shape
from .builder import Builder, Value
from .calls import replayed
from .draws import in_turn
from .epoch import on_epoch
from .expand import expand
from .garbage import collected_later
from .halves import HALVES, widened
from .infer import Known
from .ir import Entry, Graph, Node, variable
from .lowering import Lowered, lower_inference, lower_training, optimized
from .outside import Outside
from .passes import of_stage, run_passes, selected
from .plan import Phase, Result, phases_of
from .schedule import Buffers, build
from .specs import Specs, inside
from .states import has_mode
from .symbolic import has_numbers

Dense = core.Dense
NDArray = core.NDArray


# ---- plans -------------------------------------------------------------------------------------------------------------
class _Ready(plans.Prepared):
    """The calls of a plan, prepared for stand-ins, and what they need besides."""

    def __init__(self, plan: Plan):
        table = core.Places(gpu=plan.place)
        lowered, graph, known = plan.lowered, plan.graph, plan.known
        inputs = [table.stand_in(shape, code) for shape, code in plan.specs]
        self.results = [table.stand_in(*spec) for spec in plan.outputs]
        heads = [None if h is None else table.stand_in(*lowered.given[h]) for h in lowered.heads]
        self.grads = [table.stand_in(*plan.specs[i]) for i in plan.sought]
        bound = dict(zip(plan.variables, inputs, strict=True))
        bound |= {h: a for h, a in zip(lowered.heads, heads, strict=True) if h is not None}
        forward, backward = phases_of(graph, lowered.n_forward)
        made = graph.outputs[: lowered.n_outputs]
        phases = [Phase(forward, [Result(e, a) for e, a in zip(made, self.results, strict=True)])]
        if plan.sought:
            late = graph.outputs[lowered.n_forward :]
            phases.append(Phase(backward, [Result(e, a) for e, a in zip(late, self.grads, strict=True)]))
        buffers = Buffers(table, next(iter([*inputs, *self.results]), None))
        schedules, memory = build(phases, known, bound, buffers, bool(of_stage(plan.passes, "plan")))
        self.buffers, self.carried = buffers.sizes, memory.carried()
        parts = []
        for schedule in schedules:
            places = core.Places()
            places.note(schedule.calls)
            parts.append((places, schedule.calls))
        self.needed = parts[-1][0].used()  # which arrays the last part points into
        self.used = self.needed.union(*(places.used() for places, _ in parts))
        super().__init__(parts)


class Plan(plans.Plan):
    """A graph for inputs of certain shapes and types.

    Parameters
    ----------
    source : Graph
    variables : sequence of Node
        Those that the inputs are values of.
    specs : tuple of (shape, type code)
    sought : tuple of int
        Inputs whose gradients are wanted.
    is_train : bool
        What operators are told.
    described : callable
        ``described()`` returns what is called and the names of its inputs, for messages.
    n_visible : int
        How many outputs a call of the operator returns.
    shown : list of (int or None), optional
        For each output of the operator, which output of the graph it is.
    draws : bool, default False
        Whether random numbers may be drawn: for what has no gradient, and lies on the CPU's device number 0.
    gpu : int
        Number of the GPU on which the inputs lie; -1 for the CPU.
    trace : Trace, optional
        Of the numbers for which the plan is to hold: they are its last inputs.
    """

    @collected_later()
    def __init__(
        self,
        source: Graph,
        variables: Sequence[Node],
        specs: tuple,
        sought: tuple[int, ...],
        is_train: bool,
        described: Callable,
        n_visible: int = 1,
        shown: list | None = None,
        draws: bool = False,
        gpu: int = -1,
        trace: Trace | None = None,
    ):
        self.trace = trace
        self.draws, self.source, on_cpu = draws, source, gpu < 0
        self.variables, self.specs, self.sought, self.described = variables, specs, sought, described
        self.passes = selected()
        # Once: what runs forward and what runs backward may have been prepared by two threads, and share their buffers.
        self.lowered = self._lower(source, is_train, on_cpu)
        if trace is not None:
            self._take_numbers(trace)
            specs = self.specs
        self.graph, self.known = optimized(self.lowered, self.passes, on_cpu)
        made = self.graph.outputs[: self.lowered.n_outputs]
        self.outputs = [(self.known.shape(e), self.known.dtype(e)) for e in made]
        heads = [h is not None for h in self.lowered.heads]
        self.place = gpu
        self._first = first = _Ready(self)
        self._derivatives: dict[tuple, Derivative] = {}
        self.reads = [k in first.used for k in range(len(specs))]
        at = len(specs) + len(self.outputs) + sum(heads) + len(sought)  # where buffers begin in a table
        scratch = {at + k for k in range(len(first.buffers)) if k not in first.carried}
        super().__init__(first, first.results, heads, first.grads, first.buffers, first.needed - scratch,
                         sorted(first.needed & scratch), sought, is_train, len(specs), n_visible, shown, gpu)  # fmt: skip

    def _lower(self, source: Graph, is_train: bool, on_cpu: bool, absent: tuple[int, ...] = ()) -> Lowered:
        """Return the graph before the passes, with gradients of all outputs but the `absent`."""
        given = dict(zip(self.variables, self.specs, strict=True))
        known = Known.solve(source, dict(given))
        source = run_passes(source, known, of_stage(self.passes, "symbol"))
        if self.sought:
            lowered = lower_training(source, given, [self.variables[i] for i in self.sought], is_train, absent)
        else:
            lowered = lower_inference(source, given, is_train)
        for op in [n.op for n in lowered.graph.nodes if n.op is not None]:
            if op.aux or (op.stateful if op.repeatable else not self.draws):
                raise _NoPlan("a plan holds functions only")
            if isinstance(op, External) and not on_cpu:
                raise _NoPlan("a plan for a GPU holds kernels only")
        for head, entry in zip(lowered.heads, source.outputs, strict=False):
            if head is not None:
                lowered.given[head] = known.shape(entry), known.dtype(entry)
        if self.trace is not None:
            lowered.given.update({v: ((), code) for (_, code), (v, _) in self.trace.inputs.items()})
        return lowered

    def _take_numbers(self, trace: Trace) -> None:
        """Let what became of the numbers be the last inputs."""
        again = self.lowered.again
        if again is not None and any(has_numbers(n.attrs) for n in again.nodes):
            raise MXNetError("a gradient rule of its own may read the numbers when it is differentiated")
        trace.closed = True
        self.variables = [*self.variables, *(v for v, _ in trace.inputs.values())]
        self.specs = (*self.specs, *(((), code) for _, code in trace.inputs))
        name, names = self.described()
        names = [*names, *(repr(number) for _, number in trace.inputs.values())]
        self.described = lambda: (name, names)

    @collected_later()
    def prepared_again(self) -> _Ready:
        found = _Ready(self)
        if (found.buffers, found.needed) != (self._first.buffers, self._first.needed):
            raise AssertionError("a plan was prepared twice, with different buffers")
        return found

    def derivative_without(self, absent: tuple[int, ...]) -> Derivative:
        found = self._derivatives.get(absent)
        if found is None:
            found = self._derivatives.setdefault(absent, Derivative(self, absent))
        return found


class Derivative:
    """The gradients of a plan, a function of its inputs and head gradients: what runs where they are differentiated again.

    It runs as a plan itself, so the order of a gradient is how often this was done.

    Parameters
    ----------
    first : Plan
        Whose gradients these are.
    absent : tuple of int
        Outputs without a head gradient.  They are left out: 0 times an infinite slope would be NaN.
    """

    @collected_later()
    def __init__(self, first: Plan, absent: tuple[int, ...]):
        name, names = first.described()
        lowered = first._lower(first.source, first.is_train, first.place < 0, absent) if absent else first.lowered
        self.variables, self.graph = [*first.variables, *lowered.variables], lowered.again
        heads = [k for k in range(len(first.outputs)) if k not in absent]
        self._described = f"_backward_{name}", [*names, *(f"head gradient {k}" for k in heads)]

    @property
    def reads(self) -> list[bool]:
        """What is read where there is no plan; of some of it perhaps the shape alone."""
        named = set(self.graph.variables)
        return [v in named for v in self.variables]

    def plan(self, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int) -> Plan:
        """Return the plan for inputs of certain shapes and types: those of the first, and its outputs'."""
        return Plan(self.graph, self.variables, specs, wanted, is_train, lambda: self._described, gpu=gpu)

    def operator_by_operator(self, arrays: list[Any]) -> list[Any]:
        """Compute the gradients by recorded calls: a plan's own steps have no derivatives."""
        with planned(False):
            return replayed(core.namespace(), self.graph, dict(zip(self.variables, arrays, strict=True)))


@contextmanager
def planned(on: bool):
    """Within the block, calls of composites in this thread run as plans, or operator by operator."""
    before = plans.switch_off(not on)
    try:
        yield
    finally:
        plans.switch_off(before)


#: What the author of a function may raise in it: operator by operator, the call then says what is wrong.
_REFUSED = (MXNetError, NotImplementedError, *translated.KINDS)


def make_plan(
    owner: Any, attrs: Attrs | None, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int
) -> tuple[Plan, tuple] | None:
    """Return the plan of a composite, a :class:`CompiledFunction` or a :class:`Derivative`; None where there can be none.

    It is for arrays on a GPU of this number, or, of -1, on the CPU.  With it come the numbers that are its last inputs.

    Raises
    ------
    MemoryError, RecursionError
        Where there may be one at another time.
    """
    try:
        if isinstance(owner, Operator):
            return _composite_plan(owner, attrs, specs, wanted, is_train, gpu)
        return owner.plan(specs, wanted, is_train, gpu), ()
    except (MemoryError, RecursionError):
        raise
    except _REFUSED:
        return None


class _NoPlan(MXNetError):
    """A call that runs operator by operator, whatever its numbers are."""


#: What holds for any numbers, by all else that a call of a composite is made for: what was asked of the numbers, and the plan,
#: None where there can be none.  Empty where there was one call so far.
_for_numbers: dict[tuple, list[tuple[Trace, Plan | None]]] = {}
_MOST_ALIKE = 8  # plans that differ only in what their functions asked of the numbers


def forget() -> None:
    """Drop all plans."""
    plans.forget()
    _for_numbers.clear()


on_epoch(forget)


def _composite_plan(
    op: Operator, attrs: Attrs, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int
) -> tuple[Plan, tuple] | None:
    """Return the plan of a call: for its numbers, or, where they are not the first of their kind, for any.

    A plan for its numbers has them as constants.  Those that change are likely to change again.
    """
    numbers = {} if gpu >= 0 else numbers_of(op, attrs)
    if numbers:
        key = (op, attrs.replaced(**dict.fromkeys(numbers)), specs, wanted, is_train, numpy_shape())
        found = _for_numbers.get(key)
        if found is None:
            keep(_for_numbers, key, [])
        else:
            if not any(trace.holds(numbers) for trace, _ in found) and len(found) < _MOST_ALIKE:
                found += _plan_for_any(op, attrs, numbers, specs, wanted, is_train)
            for trace, plan in found:
                if trace.holds(numbers):
                    return None if plan is None else (plan, trace.computed(numbers))
    return _plan_of_call(op, attrs, specs, wanted, is_train, gpu), ()


def _plan_for_any(
    op: Operator, attrs: Attrs, numbers: Values, specs: tuple, wanted: tuple[int, ...], is_train: bool
) -> list[tuple[Trace, Plan | None]]:
    """Return a plan that holds for the numbers of a call, and for others; nothing where its function has no use for such."""
    trace = Trace(numbers)
    try:
        return [(trace, _plan_of_call(op, attrs.replaced(**trace.numbers), specs, wanted, is_train, -1, trace))]
    except (MemoryError, RecursionError):
        raise
    except _NoPlan:
        return [(trace, None)]
    except Exception:  # whatever it is, the numbers themselves show whether it is the call's fault
        return []


def _plan_of_call(
    op: Operator,
    attrs: Attrs,
    specs: tuple,
    wanted: tuple[int, ...],
    is_train: bool,
    gpu: int,
    trace: Trace | None = None,
) -> Plan:
    """Return the plan of a composite: without the outputs that neither a call returns nor a state takes."""
    total = op.num_outputs(attrs, len(specs))
    read = _read_outputs(op, attrs, len(specs), total)
    names = op.input_names(attrs, len(specs))
    variables = [variable(name) for name in names]
    node = Node(op.pure if op.writes else op, attrs, tuple((v, 0) for v in variables), op.name.lstrip("_"))

    shown = None if len(read) == total else [read.index(k) if k in read else None for k in range(total)]
    n_visible = total if op.writes else op.num_visible_outputs(attrs, len(specs))
    graph = Graph([(node, k) for k in read])
    draws = not specs and not attrs.get("ctx")
    return Plan(graph, variables, specs, wanted, is_train, lambda: (op.name, names), n_visible, shown, draws, gpu, trace)


def _read_outputs(op: Operator, attrs: Attrs, n_inputs: int, total: int) -> list[int]:
    """Return the outputs that somebody can read: those that a call returns, and the new values of states."""
    if op._gradient is not None:  # its rule may ask for any
        return list(range(total))
    return [*range(op.num_visible_outputs(attrs, n_inputs)), *(k for _, k in op.written_inputs(attrs, n_inputs))]


def run_in_float32(op: Operator, attrs: Attrs, inputs: Sequence[Any]) -> list | None:
    """Call a composite on float16 arrays operator by operator, with float32 in between as in a plan; None for other arrays."""
    if not op.in_float32 or not any(a.dtype_code in HALVES for a in inputs):  # type: ignore[attr-defined]
        return None
    specs = tuple([(a.shape, a.dtype_code) for a in inputs])
    found = inside(op, attrs, len(inputs), specs)
    if found is None:
        return None
    graph, variables = found
    F = Builder()
    F.work_for(variable(op.name.lstrip("_")), "_inside")
    sources = [(v, 0) for v in variables]
    known = Specs(dict(zip(variables, specs, strict=True)))
    graph = Graph(widened(F, graph.outputs, sources, known))
    loops = any(node.op is not None and node.op.bodies for node in graph.nodes)
    graph = expand(graph, everything=False, specs=known)[0] if loops else in_turn(graph)[0]
    return replayed(core.namespace(), graph, dict(zip(variables, inputs, strict=True)))


class _Traced(Builder):
    """Builds the graph of a function, which has one mode."""

    def __init__(self, specs: Specs, is_train: bool):
        super().__init__(specs)
        self._trained, self._recorded = is_train, tape.recording()
        self._others: list[Entry] = []
        self._views: set[Entry] = set()  # what arrays would share memory with others in

    def add(self, op: Operator, inputs: Sequence[Entry], attrs: Attrs) -> Node:
        # Before the graph is lowered: a gradient may be taken inside the function.
        node = super().add(op, inputs, attrs.training(self._trained))
        if tape.training() != self._trained:
            self._others.append((node, 0))
        return node

    def _invoke(self, op: Operator, inputs: Sequence[Value], attrs: Attrs) -> Any:
        found = super()._invoke(op, inputs, attrs)
        if tape.recording():
            self._recorded = True
        elif self._recorded:  # paused: what is not recorded is a constant
            found = [v.detach() for v in found] if isinstance(found, list) else found.detach()
        return found

    def viewed(self, value: Value, part: Value) -> Value:
        self._views |= {value.entry, part.entry}
        return part

    def changed(self, value: Value, new: Value) -> Value:
        """Let a value that the function made be another one from now on, under all its names, as an array would be."""
        node = value.entry[0]
        alone = (
            node.op is not None and value.entry not in self._views and (not self._scopes or node in self._scopes[-1])
        )
        if not alone or self.specs(value.entry) != self.specs(new.entry):  # type: ignore[misc]
            raise OpTypeError("a compiled function changes an argument, or a part of an array, in place")
        value.entry = new.entry
        return value

    def check_mode(self) -> None:
        """Raise where the function calls what depends on the mode in another one than it is called in."""
        if has_mode(Graph(self._others)):
            raise OpValueError("a compiled function calls an operator in another mode than it is called in itself")


#: What makes the result of a function of the list of what it consists of.
_forms: dict[type, Callable] = {Value: itemgetter(0), list: list, tuple: tuple}


class _Calling(local):
    function: Callable | None = None
    changed: tuple | None = None  # what the function reads outside, after it was traced


_calling = _Calling()  # the compiled function, or method of an instance, that this thread calls


class CompiledFunction:
    """A function of arrays that runs as a plan; see :func:`compiled`."""

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self._function, self._reads, self._owner = function, Outside(function), self
        self._outside: tuple | None = None  # of the last call
        self._same: dict[tuple, tuple] = {}  # what the function itself made of it, and what that was before
        self._refused, self._told = "", False  # why calls run as the function is written, and whether that was said

    def __get__(self, instance: Any, owner: type | None = None) -> CompiledFunction:
        if instance is None or not hasattr(self._function, "__get__"):
            return self
        found = CompiledFunction.__new__(CompiledFunction)
        found.__dict__.update(self.__dict__)  # plans and warnings are those of the owner
        found._function = self._function.__get__(instance, owner)
        found._reads = Outside(found._function)
        return found

    def __call__(self, *arrays: Any) -> Any:
        for i, a in enumerate(arrays):
            if not isinstance(a, Dense):
                raise OpTypeError(f"{self._name}: argument {i} must be an NDArray, got {shown(a)}")
        owner = self._owner
        try:
            read = self._reads.now()
        except OpTypeError as problem:
            owner._refused, found = owner._refused or str(problem), None
        else:
            if read is not owner._outside and read == owner._outside:
                read = owner._outside  # which is found faster
            owner._outside = read
            before, _calling.function, _calling.changed = _calling.function, self._function, None
            try:
                found = plans.run_function(owner, owner._same.get(read, read), list(arrays))
            finally:
                _calling.function = before
            if _calling.changed not in (None, read):  # by the function, as it was traced
                keep(owner._same, _calling.changed, owner._same.get(read, read))
        if found is None:
            found = self._function(*arrays)
            if owner._refused and not owner._told:
                owner._told = True
                warnings.warn(f"{self._name} runs as it is written, not compiled: {owner._refused}", RuntimeWarning, 2)
        return found

    @property
    def _name(self) -> str:
        return getattr(self._function, "__qualname__", repr(self._function))

    def plan(self, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int) -> Plan:
        """Return the plan for inputs of certain shapes and types."""
        try:
            return self._traced(_calling.function or self._function, specs, wanted, is_train, gpu)
        except _REFUSED as problem:
            self._refused = str(problem)
            raise

    def _traced(self, function: Callable, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int) -> Plan:
        variables = [variable(f"x{i}") for i in range(len(specs))]
        F = _Traced(Specs(dict(zip(variables, specs, strict=True))), is_train)
        before = switch_tracing(True)
        try:
            with no_draws():
                found = function(*[F.value((v, 0)) for v in variables])
            _calling.changed = Outside(function).now()
        finally:
            switch_tracing(before)
        F.check_mode()
        form = _forms.get(type(found)) or getattr(type(found), "_make", None)  # of a namedtuple
        values = [found] if isinstance(found, Value) else [] if form is None else list(found)
        if not values or not all(isinstance(v, Value) for v in values):
            raise OpTypeError(f"{self._name} returned {found!r}; expected what operators return")
        entries: list[Entry] = [v.entry for v in values]
        names = [f"argument {i}" for i in range(len(specs))]
        plan = Plan(Graph(entries), variables, specs, wanted, is_train, lambda: (self._name, names), gpu=gpu)
        plan.form = form
        return plan

    def __repr__(self) -> str:
        return f"<compiled {self._name}>"


def compiled(function: Callable) -> CompiledFunction:
    """Let a function of arrays run as one plan: its operators fused, its temporaries shared, without Python between them.

    The function is called once, with placeholders, for each combination of shapes, types, wanted gradients, and what it reads
    from outside (numbers and objects in closures, globals, attributes); so it must do nothing but call operators.  A function
    that looks at its arrays (their elements, ``asnumpy``), changes its arguments in place, or computes with an array that is
    no argument, runs as it is, and warns once.  It may be a method.
    Gradients of every order are those of the function, in which ``mx.autograd.grad`` may be called as well.
    Results are new arrays, also where the function returns an argument, or a part of one.

    Parameters
    ----------
    function : callable
        Takes arrays, returns an array or a list or tuple of arrays.

    Examples
    --------
    >>> import mxop as mx
    >>> @mx.graph.compiled
    ... def normalized(x):
    ...     x = x - x.mean(axis=-1, keepdims=True)
    ...     return x / mx.nd.sqrt(mx.nd.square(x).mean(axis=-1, keepdims=True))
    >>> normalized(mx.nd.array([[1, 2, 3], [2, 4, 6]])).asnumpy().astype("float64").round(3).tolist()
    [[-1.225, 0.0, 1.225], [-1.225, 0.0, 1.225]]
    """
    return CompiledFunction(function)


__all__ = ["CompiledFunction", "compiled", "planned"]
