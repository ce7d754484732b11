"""Plans: graphs prepared for given shapes, types and scalar parameters, which run on any arrays of those shapes and types.

Composites called on arrays run as plans, and so do functions marked with :func:`mxop.graph.compiled`: the passes fuse them as
they do in an executor.  The first call makes a :class:`Pattern`, whose sizes are symbolic.  The first call with other scalar
parameters makes a second pattern, in which these are symbolic too.  A plan is a pattern completed for the values of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from .._core import core, plans
from ..opdef import Attrs, Composite, External, Operator
from ..opdef.symbolic import (
    Guards,
    Part,
    SymbolicNumber,
    Trace,
    Values,
    completed,
    no_new_guards,
    numbers_of,
)
from ..support.errors import MXNetError, translated
from ..support.memo import keep
from ..support.shape_mode import numpy_shape
from .calls import replayed
from .completion import Completed, Completer, NamedNodes, may_be_completed, with_values
from .constants import is_literal
from .epoch import on_epoch
from .garbage import collected_later
from .halves import HALF_TYPES
from .infer import Known
from .ir import Entry, Graph, Node, variable
from .lowering import Lowered, lower_inference, lower_training, optimized, sized
from .passes import of_stage, run_passes, selected
from .plan import Phase, Result, Sharing, phases_of
from .recipe import Recipe, recipe_of
from .schedule import constants_of, is_constant
from .symbolic import has_numbers
from .traits import is_mask


class _Ready(plans.Prepared):
    """The prepared calls of a plan, on placeholders instead of arrays, and the buffers that they need."""

    def __init__(self, plan: Plan):
        pattern = plan.pattern
        table = core.Places(gpu=plan.place)
        inputs, self.results, heads, self.grads = [
            [None if spec is None else table.stand_in(*spec) for spec in specs] for specs in plan.specs_of
        ]
        bound = dict(zip((*pattern.variables, *pattern.lowered.heads), (*inputs, *heads), strict=True))
        if plan.constants:
            bound |= constants_of(plan.constants, plan.known, core.device_of(plan.place))
        buffers = [table.stand_in((size,), code) for code, size in plan.sharing.buffers]
        results = [*self.results, *self.grads]
        super().__init__(plan.recipe.prepare(plan.parts, bound, results, buffers, plan.sharing, plan.named))


#: A plan, its inputs that hold scalar parameters, with their type codes, and the values of these parameters.
Found = tuple["Plan", tuple, dict[str, float]]


T = TypeVar("T")


class _NoPlan(MXNetError):
    """A composite runs operator by operator, for all sizes and parameters."""


class Pattern:
    """A lowered and optimized graph for inputs of given types, whose sizes are given or symbolic.

    Parameters
    ----------
    source : Graph
    variables : sequence of Node
        Of the inputs.
    specs : tuple of (shape, type code)
    sought : tuple of int
        Indices of the inputs whose gradients are wanted.
    is_train : bool
        The mode that operators with `is_train` receive.
    described : callable
        ``described()`` returns the name of what is called and the names of its inputs, for messages.
    n_visible : int
        Number of outputs that a call of the operator returns.
    positions : list of (int or None), optional
        The index of each output of the operator in the outputs of the graph.
    draws : bool, default False
        Whether random numbers may be drawn: in a call that has no inputs and is on CPU 0.
    gpu : int
        Number of the GPU on which the inputs lie; -1 for the CPU.
    trace : Trace, optional
        Of the symbolic sizes and parameters.  Parameters that became inputs are the last ones.
    derived : bool, default False
        Whether the parameters are among the inputs already: the pattern is a :class:`Derivative` of another.
    passes : sequence of Pass, optional
        By default the enabled ones.
    bound : bool, default False
        Whether the pattern is for executors, whose graphs may hold states and draw.
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
        positions: list | None = None,
        draws: bool = False,
        gpu: int = -1,
        trace: Trace | None = None,
        derived: bool = False,
        passes: Sequence[Any] | None = None,
        bound: bool = False,
    ):
        self.source, self.variables, self.specs, self.sought = source, variables, specs, sought
        self.is_train, self.described, self.draws, self.place, self.trace = is_train, described, draws, gpu, trace
        self.n_visible, self.positions, self.bound = n_visible, positions, bound
        self.passes = selected() if passes is None else passes
        self.form: Callable | None = None
        # Lowered once: two threads may prepare the two parts, forward and backward, which share buffers.
        self.lowered = self.lower()
        outputs = [] if derived else zip(source.outputs, self.lowered.graph.outputs, strict=False)
        self.masks = tuple(k for k, (e, lowered) in enumerate(outputs) if is_mask(e) or is_mask(self._uncast(lowered)))
        if trace is not None and not derived:
            self._take_numbers(trace)
        self.graph, self.known = optimized(self.lowered, self.passes, gpu < 0)
        if trace is not None:
            self.known.completer = Completer(trace)
            self._lay_out(trace)
            trace.closed = trace.complete = True
            self.guards = trace.noting
        self._completed: dict[tuple, Completed] = {}  # the most recent ones
        self._plans: WeakValueDictionary[tuple, Plan] = WeakValueDictionary()  # callers hold the references
        self.derivatives: dict[tuple, tuple[Guards, Pattern] | None] = {}

    def _uncast(self, entry: Entry) -> Entry:
        """Return what an output of a composite on float16 or bfloat16 data is before it is converted to that type."""
        node = entry[0]
        cast = node.op is not None and node.op.name == "Cast" and any(code in HALF_TYPES for _, code in self.specs)
        return node.inputs[0] if cast else entry

    def lower(self, absent: tuple[int, ...] = (), source: Graph | None = None, specs: tuple = ()) -> Lowered:
        """Return `source` before the passes, with gradients of all outputs but the `absent`.

        By default, `source` and `specs` are those of the pattern; they are given to lower it for concrete sizes.
        """
        given = dict(zip(self.variables, specs or self.specs, strict=True))
        source = self.source if source is None else source
        known = Known.solve(source, dict(given))
        source = sized(run_passes(source, known, of_stage(self.passes, "symbol")), known)
        if self.sought:
            lowered = lower_training(source, given, [self.variables[i] for i in self.sought], self.is_train, absent)
        else:
            lowered = lower_inference(source, given, self.is_train)
        if not self.bound:
            self._check_functions(lowered.graph)
        if self.trace is not None and not may_be_completed(lowered.graph):
            raise MXNetError("the attributes of an operator that hold sizes are unknown")
        for head, entry in zip(lowered.heads, source.outputs, strict=False):
            if head is not None:
                lowered.given[head] = known.shape(entry), known.dtype(entry)
        if self.trace is not None:
            lowered.given.update({v: ((), code) for (_, code), (v, _) in self.trace.inputs.items()})
        return lowered

    @property
    def shares(self) -> bool:
        """Whether values that have disjoint lifetimes share memory."""
        return bool(of_stage(self.passes, "plan"))

    def phases(self, results: Sequence[Result]) -> list[Phase]:
        """Return the forward phase, and the backward phase if gradients are wanted; `results`: of outputs, then gradients."""
        n, late = self.lowered.n_outputs, self.graph.outputs[self.lowered.n_forward :]
        for result, entry in zip(results, (*self.graph.outputs[:n], *late), strict=True):
            result.entry = entry
        parts = [results[:n], results[n:]] if self.sought else [results]
        return [Phase(nodes, list(own)) for nodes, own in zip(self._parts, parts, strict=True)]

    @cached_property
    def _parts(self) -> Sequence[list[Node]]:
        """The nodes of each phase."""
        return phases_of(self.graph, self.lowered.n_forward) if self.sought else [self.graph.nodes]

    @cached_property
    def literals(self) -> list[Node]:
        """The nodes that become constants in plans, if they are small."""
        return [node for node in self.graph.nodes if is_literal(node)]

    def recipe(self, known: Known, sizes: Known) -> tuple[list[Node], Recipe]:
        """Return the constants for `sizes`, and the recipe for contiguous arrays, cached in `sizes`."""
        constants = [node for node in self.literals if is_constant(node, sizes)]
        n_results = self.lowered.n_outputs + len(self.graph.outputs) - self.lowered.n_forward
        phases = self.phases([Result(None) for _ in range(n_results)])  # type: ignore[arg-type]
        return constants, recipe_of(phases, known, sizes, self.shares, frozenset(constants), frozenset())

    @cached_property
    def first(self) -> tuple[list[Node], Recipe]:
        """The constants and the recipe for the sizes that the pattern was made for."""
        return self.recipe(self.known, self.known)

    def _lay_out(self, trace: Trace) -> None:
        """Choose the memory layout for contiguous arrays of any size."""
        sizes = Completed(self.known, trace, {name: n.value for name, n in trace.numbers.items()})
        self.first = self.recipe(self.known, sizes)
        self.known.recipes = sizes.recipes

    @cached_property
    def specs_of(self) -> Part:
        """Shapes and types of the variables, of the outputs, of the head gradients that are read, and of the gradients."""
        of, lowered = self.known, self.lowered
        outputs = tuple([(of.shape(e), of.dtype(e)) for e in self.graph.outputs[: lowered.n_outputs]])
        heads = tuple([None if h is None else lowered.given[h] for h in lowered.heads])
        found = self.specs, outputs, heads, tuple([self.specs[i] for i in self.sought])
        return (-1, found) if self.trace is None else self.known.completer.parts.add(found)

    def completed(self, values: Values) -> Known:
        """Return shapes and calls for the sizes and parameters of a call."""
        if self.trace is None:
            return self.known
        of = tuple(values.values())
        found = self._completed.get(of)
        if found is None:
            found = keep(self._completed, of, Completed(self.known, self.trace, values), 8)
        return found

    def _check_functions(self, graph: Graph) -> None:
        for op in [n.op for n in graph.nodes if n.op is not None]:
            if op.aux or (op.stateful if op.repeatable else not self.draws):
                raise _NoPlan("a plan holds pure functions only")
            if isinstance(op, External) and self.place >= 0:
                raise _NoPlan("a plan for a GPU holds kernels only")

    def _take_numbers(self, trace: Trace) -> None:
        """Append the inputs that hold scalar parameters."""
        again = self.lowered.again
        if again is not None and any(isinstance(n.op, Composite) and has_numbers(n.attrs) for n in again.nodes):
            raise MXNetError("a composite's own gradient rule may read the parameters when it is differentiated")
        self.variables = [*self.variables, *(v for v, _ in trace.inputs.values())]
        self.specs = (*self.specs, *(((), code) for _, code in trace.inputs))
        name, names = self.described()
        names = [*names, *(repr(number) for _, number in trace.inputs.values())]
        self.described = lambda: (name, names)

    def plan(self, values: Values) -> Plan:
        """Return the plan for the sizes and parameters of a call."""
        of = tuple(values.values())
        found = self._plans.get(of)
        if found is None:
            found = self._plans[of] = Plan(self, values)
        return found

    def call(self, values: Values) -> Found:
        """Return the plan for a call, its inputs that hold scalar parameters, and the values that these are computed from."""
        if self.trace is None:
            return self.plan({}), (), {}
        return self.plan({n: values[n] for n in self.read}), self.trace.computed(values), dict(values)

    @cached_property
    def read(self) -> list[str]:
        """Names of the values that a plan depends on: all sizes, and the parameters that are not only inputs."""
        graphs = [self.graph, *([self.lowered.again] if self.lowered.again is not None else [])]
        numbers = [v for g in graphs for n in g.nodes for v in n.attrs.values_ if type(v) is SymbolicNumber]
        sizes = self.trace.sizes  # type: ignore[union-attr]
        return sorted({*sizes, *(name for v in numbers for name in v.names)})


class Plan(plans.Plan):
    """A schedule for inputs of given shapes and types.

    Parameters
    ----------
    pattern : Pattern
    values : dict of str to float
        The sizes, and the parameters that are not inputs.
    """

    @no_new_guards()
    def __init__(self, pattern: Pattern, values: Values):
        self.pattern, self.values, self.place = pattern, values, pattern.place
        self.constants, self.recipe = pattern.first if not pattern.literals else pattern.recipe(self.known, self.known)
        specs_of = pattern.specs_of  # and the recipe before it: both may add to what is completed
        self.parts = () if pattern.trace is None else pattern.known.completer.parts.of(values)
        self.specs_of = completed(specs_of, self.parts)
        self.specs, self.outputs, heads, _ = self.specs_of
        self.sharing = self.recipe.sharing(self.known) if self.recipe.buffered else Sharing()
        first, reads_head = _Ready(self), [h is not None for h in heads]
        carried = self.recipe.carried(self.sharing) if self.recipe.buffered else set()
        super().__init__(first, first.results, reads_head, first.grads, self.sharing.buffers, carried, pattern.sought,
                         pattern.is_train, len(self.specs), pattern.n_visible, pattern.positions, self.place)  # fmt: skip
        self.form, self.masks = pattern.form, pattern.masks
        self._derivatives: dict[tuple, Derivative] = {}

    def described(self) -> tuple[str, Sequence[str]]:
        return self.pattern.described()

    def source(self, values: Values | None) -> Graph:
        """Return the graph that a call with these parameters evaluates."""
        pattern = self.pattern
        return (
            pattern.source
            if pattern.trace is None
            else with_values(pattern.source, pattern.trace, {**(values or {}), **self.values})
        )

    @cached_property
    def known(self) -> Known:
        """Shapes and calls of the graph for the sizes and parameters."""
        return self.pattern.completed(self.values)

    @cached_property
    def _names(self) -> NamedNodes:
        return NamedNodes(self.pattern.graph, self.known)

    def named(self, node: Node) -> Node:
        """Return a node with its name, and with its sizes and parameters, for messages."""
        return self._names(node)

    @no_new_guards()
    def prepared_again(self) -> _Ready:
        return _Ready(self)

    def derivative_without(self, absent: tuple[int, ...]) -> Derivative:
        found = self._derivatives.get(absent)
        if found is None:
            found = self._derivatives.setdefault(absent, Derivative(self, absent))
        return found


class Derivative:
    """The gradients of a plan as a function of its inputs and cotangents, for differentiating them again.

    It runs as a plan itself, whose gradients are a `Derivative` again, and so on for each order.

    Parameters
    ----------
    first : Plan
        The plan whose gradients these are.
    absent : tuple of int
        Outputs without a cotangent.  They are left out: a cotangent of 0 times an infinite derivative would be NaN.
    """

    def __init__(self, first: Plan, absent: tuple[int, ...]):
        self.first, self.absent = first, absent

    @cached_property
    def _source(self) -> tuple[Graph, list[Node]]:
        """The graph of the gradients, with the sizes and parameters of the first plan, and its variables."""
        pattern, values = self.first.pattern, self.first.values
        if pattern.trace is None:
            return self._lowered()
        if not self.absent:
            graph, variables = self._lowered()
            return with_values(graph, pattern.trace, values), variables
        source = with_values(pattern.source, pattern.trace, {n: values[n] for n in pattern.trace.sizes})
        with pattern.trace.more_guards() as guards:
            lowered = pattern.lower(self.absent, source, self.first.specs)
        known = pattern.guards.answers
        if any(
            text not in known and not all(n.names <= values.keys() for n in numbers)
            for text, (_, numbers) in guards.answers.items()
        ):
            raise MXNetError("a gradient rule compares parameters only if some outputs have no head gradient")
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
        """Which inputs the graph reads, if no plan can be made; it may need no more than the shape of some."""
        graph, variables = self._source
        named = set(graph.variables)
        return [v in named for v in variables]

    def call(self, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int) -> Found:
        """Return the plan for given shapes and types of the inputs of the first plan and of its cotangents."""
        pattern, values = self.first.pattern, self.first.values
        if pattern.trace is not None:
            key = self.absent, wanted, is_train, tuple([code for _, code in specs])
            if key not in pattern.derivatives:
                pattern.derivatives[key] = self._for_any(specs, wanted, is_train)
            found = pattern.derivatives[key]
            if found is not None and found[0].hold(values):
                with suppress(RuntimeError, MXNetError):  # then it is made for these sizes
                    return found[1].plan(values), (), {}
        graph, variables = self._source
        return Pattern(graph, variables, specs, wanted, is_train, self.described, gpu=gpu).plan({}), (), {}

    def _for_any(self, specs: tuple, wanted: tuple[int, ...], is_train: bool) -> tuple[Guards, Pattern] | None:
        """Return a pattern for all sizes of the first plan's pattern, and its guards; None if it needs given sizes."""
        first = self.first.pattern
        trace, described = first.trace, self.described()
        try:
            with trace.more_guards() as guards:  # type: ignore[union-attr]
                graph, variables = self._lowered()
                outputs = [(first.known.shape(e), first.known.dtype(e)) for e in first.graph.outputs]
                symbolic = (*first.specs, *(outputs[k] for k in range(len(self.first.outputs)) if k not in self.absent))
                if [code for _, code in symbolic] != [code for _, code in specs]:
                    raise MXNetError("head gradients and outputs have different types")
                found = Pattern(graph, variables, symbolic, wanted, is_train, lambda: described, gpu=first.place,
                                trace=trace, derived=True)  # fmt: skip
                if not {*found.read} <= {*self.first.values}:
                    raise MXNetError("parameters are read that the plan does not depend on")
        except (MemoryError, RecursionError):
            raise
        except Exception:  # the call with its own sizes raises errors that the caller made
            return None
        # those of the first plan hold, and it may not have kept all numbers that they read
        return guards.beyond(first.guards), found

    def operator_by_operator(self, arrays: list[Any]) -> list[Any]:
        """Compute the gradients by recorded calls: a plan's own calls have no derivatives."""
        with planned(False):
            graph, variables = self._source
            return replayed(core.namespace(), graph, dict(zip(variables, arrays, strict=True)))


@contextmanager
def planned(on: bool):
    """Return a scope in which this thread runs composites as plans, or operator by operator."""
    before = plans.switch_off(not on)
    try:
        yield
    finally:
        plans.switch_off(before)


#: Exceptions that a function may raise while a plan is made: the call then runs operator by operator, and raises them itself.
REFUSED = (MXNetError, NotImplementedError, *translated.KINDS)


def make_plan(owner: Any, attrs: Attrs | None, specs: tuple, wanted: tuple[int, ...], is_train: bool, gpu: int) -> Found | None:
    """Return the plan of a composite, a :class:`CompiledFunction` or a :class:`Derivative`; None if none can be made.

    `gpu` is the number of the GPU that holds the arrays, or -1.  The last inputs of the plan, scalar parameters, come with it.

    Raises
    ------
    MemoryError, RecursionError
        A later attempt may succeed.
    """
    try:
        if isinstance(owner, Derivative):
            return owner.call(specs, wanted, is_train, gpu)
        return use_pattern(owner, attrs, specs, wanted, is_train, gpu, Pattern.call)
    except (MemoryError, RecursionError):
        raise
    except REFUSED:
        return None


class _PatternCache:
    """The patterns of calls that differ in sizes and scalar parameters only.

    Attributes
    ----------
    found : list of (str, Trace, Pattern or None)
        The parameters that are constants, as text; the guards; and the pattern, None if none can be made.
    concrete_only : bool
        Whether each plan is made for its own sizes and parameters: the function does not run with symbolic numbers.
    """

    LIMIT = 8

    def __init__(self) -> None:
        self.found: list[tuple[str, Trace, Pattern | None]] = []
        self.concrete_only = False

    def has_constants(self, numbers: Values) -> bool:
        """Return whether a pattern has these parameters as constants: that another is needed is not for their sake."""
        return any(text == repr(numbers) for text, _, _ in self.found if text)

    def call(self, numbers: Values, sizes: Values, use: Callable[[Pattern, Values], T]) -> tuple[bool, T | None]:
        """Return whether a pattern in `found` holds for a call, and ``use(pattern, values)`` of it."""
        values = {**numbers, **sizes}
        for constants, trace, pattern in self.found:
            if (not constants or constants == repr(numbers)) and trace.holds(values):
                try:
                    return True, None if pattern is None else use(pattern, values)
                except (MemoryError, RecursionError):
                    raise
                except Exception:  # the call with its own values raises errors that the caller made
                    return False, None
        return False, None


_pattern_caches: dict[tuple, _PatternCache] = {}


def forget() -> None:
    """Drop all plans."""
    plans.forget()
    _pattern_caches.clear()


on_epoch(forget)


def use_pattern(
    owner: Any,
    attrs: Attrs | None,
    specs: tuple,
    wanted: tuple[int, ...],
    is_train: bool,
    gpu: int,
    use: Callable[[Pattern, Values], T],
) -> T | None:
    """Return ``use(pattern, values)`` for the pattern of a call; None if none can be made.

    The first patterns hold the parameters as constants: they run faster, and most parameters never change.  Once one has
    changed, a pattern for all values is made, because it is likely to change again.  On a GPU, where each text takes long to
    compile, the first is for all values.
    """
    call = _Call(owner, attrs, specs, wanted, is_train, gpu)
    numbers = numbers_of(owner, attrs) if isinstance(owner, Operator) else {}
    shapes, _, sizes = _sizes_of(specs)
    if not (numbers or sizes):
        return use(_pattern(*call), {})
    without = attrs
    if numbers:
        items = zip(attrs.names, attrs.values_, strict=True)  # type: ignore[union-attr]
        without = tuple([type(v) if n in numbers else v for n, v in items])
    key = owner, without, shapes, *call[3:], numpy_shape()
    cache, constants = _pattern_caches.get(key), None
    failed: list[_PatternCache] = []
    if cache is None:
        known, found = _of_any_integers(call, numbers, use, failed)
        if known:
            return found
        cache, constants = keep(_pattern_caches, key, _PatternCache()), numbers if gpu < 0 else {}
    known = False
    if not (cache.concrete_only or (constants and not sizes)):
        known, found = _found_in(cache, call, numbers, constants, sizes, use, failed)
    if not known:
        found = use(_pattern(*call), {})
    for one in failed:
        one.concrete_only = len(one.found) < _PatternCache.LIMIT  # a plan works, a pattern fails
    return found


class _Call(NamedTuple):
    owner: Any
    attrs: Attrs | None
    specs: tuple
    wanted: tuple[int, ...]
    is_train: bool
    gpu: int


def _found_in(
    cache: _PatternCache, call: _Call, numbers: Values, constants: Values | None, sizes: dict[str, int], use: Callable,
    failed: list[_PatternCache], integers: Sequence[str] = (),
) -> tuple[bool, Any]:  # fmt: skip
    """Return whether a pattern of a cache holds for a call, and ``use`` of it, after making one if none did.

    A cache that has none is added to `failed`; that may be the call's mistake.  Without `constants`, parameters are constants
    if they are in an earlier pattern.
    """
    known, found = cache.call(numbers, sizes, use)
    if not known and len(cache.found) < _PatternCache.LIMIT:
        if constants is None:
            constants = numbers if cache.has_constants(numbers) else {}
        made = _for_any(call, Trace({} if constants else numbers, sizes), integers)
        if made is not None:
            cache.found.append((repr(constants) if constants else "", *made))
            known, found = cache.call(numbers, sizes, use)
    if not known:
        failed.append(cache)
    return known, found


def _of_any_integers(call: _Call, numbers: Values, use: Callable, failed: list[_PatternCache]) -> tuple[bool, Any]:
    """Return whether a pattern holds whose integer parameters are symbolic sizes, too, and ``use`` of it.

    It is made by the second call that differs from an earlier one in such parameters, for most never change.
    """
    integers = call.owner.spec.integers if isinstance(call.owner, Operator) else ()
    given = [call.attrs[n] for n in integers]  # type: ignore[index]
    shapes, named, sizes = _sizes_of(call.specs, given)
    if named == given:
        return False, None
    values = {**call.attrs, **dict(zip(integers, named, strict=True)), **{n: type(v) for n, v in numbers.items()}}  # type: ignore
    key = call.owner, tuple(values.values()), shapes, *call[3:], numpy_shape()
    cache = _pattern_caches.get(key)
    if cache is None:
        keep(_pattern_caches, key, _PatternCache())
    if cache is None or cache.concrete_only:
        return False, None
    constants = numbers if call.gpu < 0 and not cache.found else None
    return _found_in(cache, call, numbers, constants, sizes, use, failed, integers)


def _sizes_of(specs: tuple, integers: Sequence[Any] = ()) -> tuple[tuple, list, dict[str, int]]:
    """Return `specs` and integers with names for sizes, and the size of each name: equal sizes share one; 0 and 1 have none."""
    names: dict[int, Any] = {0: 0, 1: 1}
    for shape, _ in specs:
        for d in shape:
            if d not in names:
                names[d] = f"_d{len(names)}"
    shapes = tuple([(tuple([names[d] for d in shape]), code) for shape, code in specs])

    def named(d: Any) -> Any:
        return names.setdefault(d, f"_d{len(names)}") if type(d) is int and d > 1 else d

    found = [tuple(map(named, v)) if type(v) is tuple else named(v) for v in integers]
    return shapes, found, {name: d for d, name in names.items() if d > 1}


def _for_any(call: _Call, trace: Trace, integers: Sequence[str]) -> tuple[Trace, Pattern | None] | None:
    """Return a pattern whose sizes, and the parameters in `trace`, are symbolic; None if the function does not run so.

    Integer parameters named in `integers` are sizes.
    """
    names = {d: trace.numbers[name] for name, d in trace.sizes.items()}

    def symbolic(value: Any) -> Any:
        return tuple(map(symbolic, value)) if type(value) is tuple else names.get(value, value) if type(value) is int else value

    attrs = call.attrs
    numbers = {n: v for n, v in trace.numbers.items() if n not in trace.sizes}
    if numbers or integers:
        attrs = attrs.replaced(**{n: symbolic(attrs[n]) for n in integers}, **numbers)  # type: ignore[union-attr, index]
    given = call._replace(attrs=attrs, specs=tuple([(symbolic(shape), code) for shape, code in call.specs]))
    try:
        return trace, _pattern(*given, trace)
    except (MemoryError, RecursionError):
        raise
    except _NoPlan:
        return trace, None
    except Exception:  # the call with its own values raises errors that the caller made
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
    """Return the pattern of a composite, without outputs that neither a call returns nor a state takes."""
    total = op.num_outputs(attrs, len(specs))
    read = _read_outputs(op, attrs, len(specs), total)
    names = op.input_names(attrs, len(specs))
    variables = [variable(name) for name in names]
    node = Node(op.pure if op.writes else op, attrs, tuple((v, 0) for v in variables), op.name.lstrip("_"))

    positions = None if len(read) == total else [read.index(k) if k in read else None for k in range(total)]
    n_visible = total if op.writes else op.num_visible_outputs(attrs, len(specs))
    graph = Graph([(node, k) for k in read])
    draws = not specs and not attrs.get("ctx")
    return Pattern(graph, variables, specs, wanted, is_train, lambda: (op.name, names), n_visible, positions, draws, gpu, trace)


def _read_outputs(op: Operator, attrs: Attrs, n_inputs: int, total: int) -> list[int]:
    """Return the outputs that can be read: those that a call returns, and the new values of states."""
    if op._gradient is not None:  # its rule may read all
        return list(range(total))
    return [*range(op.num_visible_outputs(attrs, n_inputs)), *(k for _, k in op.written_inputs(attrs, n_inputs))]


__all__ = ["REFUSED", "Pattern", "Plan", "forget", "make_plan", "planned", "use_pattern"]
