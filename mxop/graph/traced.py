"""Plans without arrays: a graph prepared for shapes and types, and run on whatever arrays come.

Composites that are called on arrays run this way, and functions that a user marks with :func:`compiled`: the passes fuse
them as they do in an executor.  A plan is kept for each combination of shapes, types, modes and wanted gradients.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import cached_property
from operator import itemgetter
from threading import local
from typing import Any
from weakref import WeakValueDictionary

from .._core import core, plans, tape
from .._core.array import switch_tracing
from ..errors import MXNetError, OpTypeError, OpValueError, shown, translated
from ..generators import no_draws
from ..memo import keep
from ..opdef import Attrs, Composite, External, Operator
from ..opdef.symbolic import Guards, SymbolicNumber, Trace, Values, concrete, numbers_of
from ..shape_mode import numpy_shape
from .builder import Builder, Value
from .calls import replayed
from .completion import completed, may_be_completed, with_values
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
        lowered, graph, known = plan.pattern.lowered, plan.graph, plan.known
        inputs = [table.stand_in(shape, code) for shape, code in plan.specs]
        self.results = [table.stand_in(*spec) for spec in plan.outputs]
        heads = [None if h is None else table.stand_in(*concrete(lowered.given[h], plan.values)) for h in lowered.heads]
        self.grads = [table.stand_in(*plan.specs[i]) for i in plan.sought]
        bound = dict(zip(plan.pattern.variables, inputs, strict=True))
        bound |= {h: a for h, a in zip(lowered.heads, heads, strict=True) if h is not None}
        forward, backward = phases_of(graph, lowered.n_forward)
        made = graph.outputs[: lowered.n_outputs]
        phases = [Phase(forward, [Result(e, a) for e, a in zip(made, self.results, strict=True)])]
        if plan.sought:
            late = graph.outputs[lowered.n_forward :]
            phases.append(Phase(backward, [Result(e, a) for e, a in zip(late, self.grads, strict=True)]))
        buffers = Buffers(table, next(iter([*inputs, *self.results]), None))
        schedules, memory = build(phases, known, bound, buffers, bool(of_stage(plan.pattern.passes, "plan")))
        self.buffers, self.carried = buffers.sizes, memory.carried()
        parts = []
        for schedule in schedules:
            places = core.Places()
            places.note(schedule.calls)
            parts.append((places, schedule.calls))
        self.needed = parts[-1][0].used()  # which arrays the last part points into
        self.used = self.needed.union(*(places.used() for places, _ in parts))
        super().__init__(parts)


class _NoPlan(MXNetError):
    """What runs operator by operator, whatever its sizes and numbers are."""


class Pattern:
    """A graph that is ready to be scheduled, for inputs of certain types, and of certain sizes or of any.

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
        Of the numbers that are symbolic: sizes, and parameters.  Parameters that became inputs are the last ones.
    derived : bool, default False
        Whether these are among the inputs already, for the pattern is a :class:`Derivative` of another.
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
        derived: bool = False,
    ):
        self.source, self.variables, self.specs, self.sought = source, variables, specs, sought
        self.is_train, self.described, self.draws, self.place, self.trace = is_train, described, draws, gpu, trace
        self.n_visible, self.shown, self.passes = n_visible, shown, selected()
        self.form: Callable | None = None
        # Once: what runs forward and what runs backward may have been prepared by two threads, and share their buffers.
        self.lowered = self.lower()
        if trace is not None and not derived:
            self._take_numbers(trace)
        self.graph, self.known = optimized(self.lowered, self.passes, gpu < 0)
        if trace is not None:
            trace.closed = True
            if not may_be_completed(self.graph):
                raise MXNetError("an operator keeps its sizes to itself")
        self._plans: WeakValueDictionary[tuple, Plan] = WeakValueDictionary()  # whoever calls them keeps them
        self.derivatives: dict[tuple, tuple[Guards, Pattern] | None] = {}

    def lower(self, absent: tuple[int, ...] = (), source: Graph | None = None, specs: tuple = ()) -> Lowered:
        """Return the graph before the passes, with gradients of all outputs but the `absent`.

        Source and shapes may be given, for certain sizes.
        """
        given = dict(zip(self.variables, specs or self.specs, strict=True))
        source = self.source if source is None else source
        known = Known.solve(source, dict(given))
        source = run_passes(source, known, of_stage(self.passes, "symbol"))
        if self.sought:
            lowered = lower_training(source, given, [self.variables[i] for i in self.sought], self.is_train, absent)
        else:
            lowered = lower_inference(source, given, self.is_train)
        for op in [n.op for n in lowered.graph.nodes if n.op is not None]:
            if op.aux or (op.stateful if op.repeatable else not self.draws):
                raise _NoPlan("a plan holds functions only")
            if isinstance(op, External) and self.place >= 0:
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
        if again is not None and any(isinstance(n.op, Composite) and has_numbers(n.attrs) for n in again.nodes):
            raise MXNetError("a gradient rule of its own may read the numbers when it is differentiated")
        self.variables = [*self.variables, *(v for v, _ in trace.inputs.values())]
        self.specs = (*self.specs, *(((), code) for _, code in trace.inputs))
        name, names = self.described()
        names = [*names, *(repr(number) for _, number in trace.inputs.values())]
        self.described = lambda: (name, names)

    def plan(self, values: Values) -> Plan:
        """Return the plan for sizes and numbers of a call."""
        of = tuple(values.values())
        found = self._plans.get(of)
        if found is None:
            found = self._plans[of] = Plan(self, values)
        return found

    def call(self, values: Values) -> tuple[Plan, tuple]:
        """Return the plan for sizes and numbers of a call, and the inputs that the numbers are."""
        if self.trace is None:
            return self.plan({}), ()
        return self.plan({n: values[n] for n in self.read}), self.trace.computed(values)

    @cached_property
    def read(self) -> list[str]:
        """The numbers that a plan is made for: all sizes, and the parameters that are not inputs alone."""
        graphs = [self.graph, *([self.lowered.again] if self.lowered.again is not None else [])]
        numbers = [v for g in graphs for n in g.nodes for v in n.attrs.values_ if type(v) is SymbolicNumber]
        sizes = self.trace.sizes  # type: ignore[union-attr]
        return sorted({*sizes, *(name for v in numbers for name in v.names)})


class Plan(plans.Plan):
    """What runs, for inputs of certain shapes and types.

    Parameters
    ----------
    pattern : Pattern
    values : dict of str to float
        The sizes, and the numbers that are no inputs.
    """

    @collected_later()
    def __init__(self, pattern: Pattern, values: Values):
        self.pattern, self.values = pattern, values
        self.graph, self.known = pattern.graph, pattern.known
        self.specs, self.sought, self.place = pattern.specs, pattern.sought, pattern.place
        if pattern.trace is not None:
            self.graph, self.known = completed(self.graph, self.known, pattern.trace, values)
            self.specs = concrete(self.specs, values)
        made = self.graph.outputs[: pattern.lowered.n_outputs]
        self.outputs = [(self.known.shape(e), self.known.dtype(e)) for e in made]
        heads = [h is not None for h in pattern.lowered.heads]
        self._first = first = _Ready(self)
        self._derivatives: dict[tuple, Derivative] = {}
        n = len(self.specs)
        self.reads = [k in first.used for k in range(n)]
        at = n + len(self.outputs) + sum(heads) + len(self.sought)  # where buffers begin in a table
        scratch = {at + k for k in range(len(first.buffers)) if k not in first.carried}
        super().__init__(first, first.results, heads, first.grads, first.buffers, first.needed - scratch,
                         sorted(first.needed & scratch), self.sought, pattern.is_train, n, pattern.n_visible, pattern.shown,
                         self.place)  # fmt: skip
        self.form = pattern.form

    def described(self) -> tuple[str, Sequence[str]]:
        return self.pattern.described()

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

    def __init__(self, first: Plan, absent: tuple[int, ...]):
        self.first, self.absent = first, absent

    @cached_property
    def _source(self) -> tuple[Graph, list[Node]]:
        """The gradients, with the sizes and numbers of the first plan, and the variables that they are of."""
        pattern, values = self.first.pattern, self.first.values
        if pattern.trace is None:
            return self._lowered()
        if not self.absent:
            graph, variables = self._lowered()
            return with_values(graph, pattern.trace, values), variables
        source = with_values(pattern.source, pattern.trace, {n: values[n] for n in pattern.trace.sizes})
        with pattern.trace.asking_more(Guards(pattern.trace)) as guards:
            lowered = pattern.lower(self.absent, source, self.first.specs)
        if not guards.asked.items() <= pattern.trace.guards.asked.items():
            raise MXNetError("a gradient rule asks for numbers where some outputs have no head gradient")
        again: Graph = lowered.again  # type: ignore[assignment]
        return with_values(again, pattern.trace, values), [*pattern.variables, *lowered.variables]

    @collected_later()
    def _lowered(self) -> tuple[Graph, list[Node]]:
        pattern = self.first.pattern
        lowered = pattern.lower(self.absent) if self.absent else pattern.lowered
        return lowered.again, [*pattern.variables, *lowered.variables]  # type: ignore[return-value]

    def described(self) -> tuple[str, list[str]]:
        name, names = self.first.described()
        heads = [k for k in range(len(self.first.outputs)) if k not in self.absent]
        return f"_backward_{name}", [*names, *(f"head gradient {k}" for k in heads)]

    @property
    def reads(self) -> list[bool]:
        """What is read where there is no plan; of some of it perhaps the shape alone."""
        graph, variables = self._source
        named = set(graph.variables)
        return [v in named for v in variables]

    def call(self, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int) -> tuple[Plan, tuple]:
        """Return the plan for inputs of certain shapes and types: those of the first, and its outputs'."""
        pattern, values = self.first.pattern, self.first.values
        if pattern.trace is not None:
            key = self.absent, wanted, is_train, tuple([code for _, code in specs])
            if key not in pattern.derivatives:
                pattern.derivatives[key] = self._for_any(specs, wanted, is_train)
            found = pattern.derivatives[key]
            if found is not None and found[0].hold(values):
                return found[1].plan(values), ()
        graph, variables = self._source
        return Pattern(graph, variables, specs, wanted, is_train, self.described, gpu=gpu).plan({}), ()

    def _for_any(self, specs: tuple, wanted: tuple[int, ...], is_train: bool) -> tuple[Guards, Pattern] | None:
        """Return a pattern for all sizes of that of the first plan, and what was asked of them; None where there is none."""
        first = self.first.pattern
        trace, described = first.trace, self.described()
        try:
            with trace.asking_more() as guards:  # type: ignore[union-attr]
                known = len(trace.inputs)  # type: ignore[union-attr]
                graph, variables = self._lowered()
                outputs = [(first.known.shape(e), first.known.dtype(e)) for e in first.graph.outputs]
                symbolic = (*first.specs, *(outputs[k] for k in range(len(self.first.outputs)) if k not in self.absent))
                if [code for _, code in symbolic] != [code for _, code in specs]:
                    raise MXNetError("head gradients have other types than outputs")
                found = Pattern(graph, variables, symbolic, wanted, is_train, lambda: described, trace=trace, derived=True)
                if len(trace.inputs) != known or not {*found.read} <= {*self.first.values}:  # type: ignore[union-attr]
                    raise MXNetError("further numbers are read")
        except (MemoryError, RecursionError):
            raise
        except Exception:  # whatever it is, the sizes themselves show whether it is the call's fault
            return None
        return guards, found

    def operator_by_operator(self, arrays: list[Any]) -> list[Any]:
        """Compute the gradients by recorded calls: a plan's own steps have no derivatives."""
        with planned(False):
            graph, variables = self._source
            return replayed(core.namespace(), graph, dict(zip(variables, arrays, strict=True)))


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
        if isinstance(owner, Derivative):
            return owner.call(specs, wanted, is_train, gpu)
        return _for_call(owner, attrs, specs, wanted, is_train, gpu)
    except (MemoryError, RecursionError):
        raise
    except _REFUSED:
        return None


class _Alike:
    """Patterns of calls that differ in sizes and numbers alone.

    Attributes
    ----------
    found : list of (Trace, Pattern or None)
        What was asked of the numbers, and the pattern that follows; None where there can be none.
    hopeless : bool
        Whether patterns are made for each call by itself: its function has no use for symbolic numbers.
    """

    MOST = 8

    def __init__(self) -> None:
        self.found: list[tuple[Trace, Pattern | None]] = []
        self.hopeless = False

    def call(self, values: Values) -> tuple[bool, tuple[Plan, tuple] | None]:
        """Return whether there is an answer for the sizes and numbers of a call, and the answer."""
        for trace, pattern in self.found:
            if trace.holds(values):
                return True, None if pattern is None else pattern.call(values)
        return False, None


_alike: dict[tuple, _Alike] = {}


def forget() -> None:
    """Drop all plans."""
    plans.forget()
    _alike.clear()


on_epoch(forget)


def _for_call(
    owner: Any, attrs: Attrs | None, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int
) -> tuple[Plan, tuple] | None:
    """Return the plan of a call: for its sizes and numbers, or, where they are not the first of their kind, for any.

    What is made for the first has them as constants.  Those that change are likely to change again.
    """
    numbers = numbers_of(owner, attrs) if isinstance(owner, Operator) else {}
    shapes, sizes = _sizes_of(specs)
    if (numbers or sizes) and gpu < 0:
        without = attrs.replaced(**{n: type(v) for n, v in numbers.items()}) if numbers else attrs  # type: ignore[union-attr]
        key = owner, without, shapes, wanted, is_train, numpy_shape()
        alike = _alike.get(key)
        if alike is None:
            keep(_alike, key, _Alike())
        elif not alike.hopeless:
            values = numbers | sizes
            known, found = alike.call(values)
            if known:
                return found
            if len(alike.found) < _Alike.MOST:
                made = _for_any(owner, attrs, specs, wanted, is_train, Trace(numbers, sizes))
                if made is not None:
                    alike.found.append(made)
                    return alike.call(values)[1]
                alike.hopeless = True
    return _pattern(owner, attrs, specs, wanted, is_train, gpu).call({})


def _sizes_of(specs: tuple) -> tuple[tuple, dict[str, int]]:
    """Return shapes and types with names of sizes, and these sizes: equal ones have one name, 0 and 1 have none."""
    names: dict[int, Any] = {0: 0, 1: 1}
    for d in [d for shape, _ in specs for d in shape]:
        names.setdefault(d, f"d{len(names)}_")
    shapes = tuple([(tuple([names[d] for d in shape]), code) for shape, code in specs])
    return shapes, {name: d for d, name in names.items() if d > 1}


def _for_any(
    owner: Any, attrs: Attrs | None, specs: tuple, wanted: tuple[int, ...], is_train: bool, trace: Trace
) -> tuple[Trace, Pattern | None] | None:
    """Return a pattern that holds for the sizes and numbers of a call, and for others; None where there is none."""
    names = {d: trace.numbers[name] for name, d in trace.sizes.items()}
    symbolic = tuple([(tuple([names.get(d, d) for d in shape]), code) for shape, code in specs])
    numbers = {n: v for n, v in trace.numbers.items() if n not in trace.sizes}
    given = attrs.replaced(**numbers) if numbers else attrs  # type: ignore[union-attr]
    try:
        return trace, _pattern(owner, given, symbolic, wanted, is_train, -1, trace)
    except (MemoryError, RecursionError):
        raise
    except _NoPlan:
        return trace, None
    except Exception:  # whatever it is, sizes and numbers themselves show whether it is the call's fault
        return None


def _pattern(
    owner: Any,
    attrs: Attrs | None,
    specs: tuple,
    wanted: tuple[int, ...],
    is_train: bool,
    gpu: int,
    trace: Trace | None = None,
) -> Pattern:
    if isinstance(owner, Operator):
        return _pattern_of_call(owner, attrs, specs, wanted, is_train, gpu, trace)  # type: ignore[arg-type]
    return owner.pattern(specs, wanted, is_train, gpu, trace)


def _pattern_of_call(
    op: Operator, attrs: Attrs, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int, trace: Trace | None
) -> Pattern:
    """Return what a composite becomes: without the outputs that neither a call returns nor a state takes."""
    total = op.num_outputs(attrs, len(specs))
    read = _read_outputs(op, attrs, len(specs), total)
    names = op.input_names(attrs, len(specs))
    variables = [variable(name) for name in names]
    node = Node(op.pure if op.writes else op, attrs, tuple((v, 0) for v in variables), op.name.lstrip("_"))

    shown = None if len(read) == total else [read.index(k) if k in read else None for k in range(total)]
    n_visible = total if op.writes else op.num_visible_outputs(attrs, len(specs))
    graph = Graph([(node, k) for k in read])
    draws = not specs and not attrs.get("ctx")
    return Pattern(
        graph, variables, specs, wanted, is_train, lambda: (op.name, names), n_visible, shown, draws, gpu, trace
    )


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

    def pattern(
        self, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int, trace: Trace | None = None
    ) -> Pattern:
        """Return what runs for inputs of certain shapes and types."""
        try:
            return self._traced(_calling.function or self._function, specs, wanted, is_train, gpu, trace)
        except _REFUSED as problem:
            if trace is None:
                self._refused = str(problem)
            raise

    def _traced(
        self,
        function: Callable,
        specs: tuple,
        wanted: tuple[int, ...],
        is_train: bool,
        gpu: int,
        trace: Trace | None,
    ) -> Pattern:
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
        made = Pattern(
            Graph(entries), variables, specs, wanted, is_train, lambda: (self._name, names), gpu=gpu, trace=trace
        )
        made.form = form
        return made

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
