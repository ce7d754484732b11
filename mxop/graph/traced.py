"""Plans without arrays: a graph prepared for shapes and types, and run on whatever arrays come.

Composites that are called on arrays run this way, and functions that a user marks with :func:`compiled`: the passes fuse
them as they do in an executor.  A plan is kept for each combination of shapes, types, modes and wanted gradients.
Imports the rest of :mod:`mxop.graph`, :mod:`mxop._core` and :mod:`mxop.opdef`.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import contextmanager
from typing import Any

from .._core import core, dispatch, tape
from ..errors import MXNetError, OpTypeError
from ..opdef import Attrs, Operator, registry
from ..shape_mode import mode as shape_mode
from .builder import Builder, Value
from .draws import in_turn
from .epoch import epoch, on_epoch
from .garbage import collected_later
from .halves import HALVES, widened
from .infer import Known
from .ir import Entry, Graph, Node, variable
from .lowering import Lowered, lower_inference, lower_training, optimized
from .passes import of_stage, run_passes, selected
from .plan import Phase, Result, phases_of
from .schedule import Buffers, build
from .specs import Specs, inside

#: Most plans that are kept.
MOST = 512
_MOST_IDLE = 4  # prepared calls of one plan that wait for their next run

NDArray = core.NDArray
_here = threading.local()


# ---- plans -------------------------------------------------------------------------------------------------------------
class _Ready:
    """The calls of a plan, prepared: for one run at a time."""

    def __init__(self, plan: Plan):
        table = core.Places()
        lowered, graph, known = plan.lowered, plan.graph, plan.known
        inputs = [table.stand_in(shape, code) for shape, code in plan.specs]
        results = [table.stand_in(*spec) for spec in plan.outputs]
        heads = [None if h is None else table.stand_in(*lowered.given[h]) for h in lowered.heads]
        grads = [table.stand_in(*plan.specs[i]) for i in plan.wanted]
        bound = dict(zip(plan.variables, inputs, strict=True))
        bound |= {h: a for h, a in zip(lowered.heads, heads, strict=True) if h is not None}
        forward, backward = phases_of(graph, lowered.n_forward)
        made = graph.outputs[: lowered.n_outputs]
        phases = [Phase(forward, [Result(e, a) for e, a in zip(made, results, strict=True)])]
        if plan.wanted:
            late = graph.outputs[lowered.n_forward :]
            phases.append(Phase(backward, [Result(e, a) for e, a in zip(late, grads, strict=True)]))
        buffers = Buffers(table)
        schedules, memory = build(phases, known, bound, buffers, bool(of_stage(plan.passes, "plan")))
        self.buffers, self.carried = buffers.sizes, memory.carried()
        self.parts = []
        for schedule in schedules:
            places = core.Places()
            places.note(schedule.calls)
            self.parts.append((places, schedule.calls))
        self.needed = self.parts[-1][0].used()  # which arrays the last part points into

    def run(self, part: int, arrays: list[Any]) -> None:
        """Run forward (0) or backward (1)."""
        places, calls = self.parts[part]
        places.run(calls, arrays)


class Plan:
    """A graph for inputs of certain shapes and types.

    Parameters
    ----------
    source : Graph
    variables : sequence of Node
        Those that the inputs are values of.
    specs : tuple of (shape, type code)
    wanted : tuple of int
        Inputs whose gradients are wanted.
    is_train : bool
        What operators are told.
    """

    @collected_later()
    def __init__(self, source: Graph, variables: Sequence[Node], specs: tuple, wanted: tuple[int, ...], is_train: bool):
        self.variables, self.specs, self.wanted, self.is_train = variables, specs, wanted, is_train
        self.passes = selected()
        # Once: what runs forward and what runs backward may have been prepared by two threads, and share their buffers.
        self.lowered = self._lower(source)
        self.graph, self.known = optimized(self.lowered, self.passes, True)
        made = self.graph.outputs[: self.lowered.n_outputs]
        self.outputs = [(self.known.shape(e), self.known.dtype(e)) for e in made]
        self.heads = [h is not None for h in self.lowered.heads]
        first = _Ready(self)
        self.buffers, self.needed = first.buffers, first.needed
        at = len(specs) + len(self.outputs) + sum(self.heads) + len(wanted)  # where buffers begin in a table
        scratch = {at + k for k in range(len(self.buffers)) if k not in first.carried}
        self.kept, self._scratch = self.needed - scratch, sorted(self.needed & scratch)
        self._idle = [first]

    def _lower(self, source: Graph) -> Lowered:
        """Return the graph before the passes."""
        given = dict(zip(self.variables, self.specs, strict=True))
        known = Known.solve(source, dict(given))
        source = run_passes(source, known, of_stage(self.passes, "symbol"))
        if self.wanted:
            wanted = [self.variables[i] for i in self.wanted]
            lowered = lower_training(source, given, wanted, self.is_train)
        else:
            lowered = lower_inference(source, given, self.is_train)
        if any(n.op is not None and (n.op.stateful or not n.op.repeatable or n.op.aux) for n in lowered.graph.nodes):
            raise MXNetError("a plan holds functions only")
        for head, entry in zip(lowered.heads, source.outputs, strict=False):
            if head is not None:
                lowered.given[head] = known.shape(entry), known.dtype(entry)
        return lowered

    @collected_later()
    def _another(self) -> _Ready:
        """Return the calls once more, for a thread that comes in the middle of a run."""
        found = _Ready(self)
        if (found.buffers, found.needed) != (self.buffers, self.needed):
            raise AssertionError("a plan was prepared twice, with different buffers")
        return found

    def run(self, part: int, arrays: list[Any]) -> None:
        """Run forward (0) or backward (1) on the arrays of the table."""
        try:
            ready = self._idle.pop()
        except IndexError:
            ready = self._another()
        ready.run(part, arrays)
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(ready)

    def forward(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return the outputs, and the table of arrays of the run."""
        inputs = [a if a._contiguous else core.contiguous(a) for a in inputs]
        outputs = [core.empty(shape, code) for shape, code in self.outputs]
        later = [None] * (sum(self.heads) + len(self.wanted))
        table = [*inputs, *outputs, *later, *(core.empty((size,), code) for code, size in self.buffers)]
        self.run(0, table)
        return outputs, table

    def backward(self, table: list[Any], heads: list[Any]) -> list[Any]:
        """Return the gradient of each wanted input."""
        at = len(self.specs) + len(self.outputs)
        given = [g if g._contiguous else core.contiguous(g) for g, read in zip(heads, self.heads, strict=True) if read]
        grads = [core.empty(*self.specs[i]) for i in self.wanted]
        arrays = list(table)
        arrays[at : at + len(given) + len(grads)] = [*given, *grads]
        at += len(given) + len(grads)
        for i in self._scratch:
            code, size = self.buffers[i - at]
            arrays[i] = core.empty((size,), code)
        self.run(1, arrays)
        return grads


# ---- calls -------------------------------------------------------------------------------------------------------------
class Recorded:
    """A run of a plan on the tape."""

    def __init__(
        self, name: str, plan: Plan, table: list[Any], inputs: list[Any], again: Callable, names: Sequence[str]
    ):
        self.name, self.plan, self.inputs, self.again, self.names = name, plan, inputs, again, names
        self.table = [a if i in plan.kept else None for i, a in enumerate(table)]
        self.stamp = core.stamp()

    def _backward(self, heads: list[Any]) -> list[Any]:
        for i, array in enumerate(self.table[: len(self.inputs)]):
            writer = None if array is None else core.writer_since(array, self.stamp)
            if writer is not None:
                raise MXNetError(
                    f"cannot differentiate operator {self.name}: its argument {self.names[i]!r} was changed after it was "
                    f"recorded, by {writer}; change it after backward(), or let the operator have a copy"
                )
        found: list[Any] = [None] * len(self.inputs)
        again = tape.recording()
        grads = self._differentiable(heads) if again else self.plan.backward(self.table, heads)
        for i, g in zip(self.plan.wanted, grads, strict=True):
            found[i] = g
        return found

    def _differentiable(self, heads: list[Any]) -> list[Any]:
        """Compute the gradients by recorded calls: the plan's own steps have no derivatives."""
        copy, train = core.op_function(registry.get("_copy")), self.plan.is_train
        variables = [copy(x) if i in self.plan.wanted else x for i, x in enumerate(self.inputs)]
        with planned(False):
            outputs = self.again(variables)
        tracked = [(o, h) for o, h in zip(outputs, heads, strict=True) if tape.tracked(o)]
        chosen = [variables[i] for i in self.plan.wanted]
        return tape.run([o for o, _ in tracked], [h for _, h in tracked], chosen, False, True, train)


_plans: OrderedDict[Hashable, Plan | None] = OrderedDict()
_publishing = threading.RLock()


def _forget() -> None:
    with _publishing:
        _plans.clear()


on_epoch(_forget)


@contextmanager
def planned(on: bool):
    """Within the block, calls of composites in this thread run as plans, or operator by operator."""
    before = getattr(_here, "off", False)
    _here.off = not on
    try:
        yield
    finally:
        _here.off = before


def _plan(key: Hashable, make: Callable[[], Plan]) -> Plan | None:
    """Return the plan of a key; None where there can be none."""
    try:
        found = _plans[key]
        _plans.move_to_end(key)
    except KeyError:
        try:
            with planned(False):
                found = make()
        except (
            MXNetError,
            NotImplementedError,
            TypeError,
            ValueError,
            AttributeError,
            IndexError,
            OverflowError,
            MemoryError,
        ):
            found = None  # operator by operator, the call says what is wrong
        with _publishing:
            _plans[key] = found
            while len(_plans) > MOST:
                _plans.popitem(last=False)
    return found


def _run(
    name: str, key: Hashable, source: Callable, inputs: list, again: Callable, names: Sequence[str]
) -> list | None:
    """Run a plan on arrays, and record it where that is asked for; None where there is no plan."""
    if getattr(_here, "off", False) or any(a._gpu is not None for a in inputs):
        return None
    specs = tuple([(a.shape, a.dtype_code) for a in inputs])
    wanted = tuple([i for i, a in enumerate(inputs) if tape.tracked(a)]) if tape.recording() else ()
    is_train = tape.training()
    plan = _plan(
        (epoch(), key, specs, wanted, is_train, shape_mode.numpy),
        lambda: Plan(*source(specs), specs, wanted, is_train),
    )
    if plan is None:
        return None
    outputs, table = plan.forward(inputs)
    if wanted:
        tape.record_plan(Recorded(name, plan, table, list(inputs), again, names), inputs, outputs)
    return outputs


def run_composite(op: Operator, attrs: Attrs, inputs: Sequence[Any]) -> list | None:
    """Call a composite on arrays as a plan; return its outputs, or None where it has no plan.

    Outputs that neither a call returns nor a state takes are not computed: None stands in their places.
    """
    if not op.planned:  # type: ignore[attr-defined]
        return None
    total = op.num_outputs(attrs, len(inputs))
    shown = _read_outputs(op, attrs, len(inputs), total)

    def source(specs: tuple) -> tuple[Graph, list[Node]]:
        variables = [variable(name) for name in op.input_names(attrs, len(specs))]
        pure = op.pure if op.writes else op
        node = Node(pure, attrs, tuple((v, 0) for v in variables), op.name.lstrip("_"))
        return Graph([(node, k) for k in shown]), variables

    def again(variables: list) -> list:
        found = run_in_float32(op, attrs, variables)
        if found is None:
            found = op.function(core.namespace(), *variables, **attrs)
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        return [found[k] for k in shown]

    found = _run(op.name, (op, attrs), source, list(inputs), again, op.input_names(attrs, len(inputs)))
    if found is None or len(shown) == total:
        return found
    results: list[Any] = [None] * total
    for k, array in zip(shown, found, strict=True):
        results[k] = array
    return results


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
    graph = in_turn(Graph(widened(F, graph.outputs, sources, Specs(dict(zip(variables, specs, strict=True))))))[0]
    values: dict[Entry, Any] = dict(zip(sources, inputs, strict=True))
    for node in graph.nodes:
        if node.op is not None:
            made = dispatch.invoke(node.op, [values[e] for e in node.inputs], node.attrs)
            values.update({(node, k): a for k, a in enumerate(made if isinstance(made, list) else [made])})
    return [values[e] for e in graph.outputs]


class CompiledFunction:
    """A function of arrays that runs as a plan; see :func:`compiled`."""

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self._function = function
        self._form: dict[int, type | None] = {}

    def __call__(self, *arrays: Any) -> Any:
        for i, a in enumerate(arrays):
            if not isinstance(a, NDArray):
                raise OpTypeError(f"{self._name}: argument {i} must be an NDArray, got {a!r}")
        names = [f"argument {i}" for i in range(len(arrays))]
        found = _run(self._name, self, self._source, list(arrays), self._again, names)
        if found is None:
            return self._function(*arrays)
        form = self._form[len(arrays)]
        return found[0] if form is None else form(found)

    @property
    def _name(self) -> str:
        return getattr(self._function, "__qualname__", repr(self._function))

    def _source(self, specs: tuple) -> tuple[Graph, list[Node]]:
        variables = [variable(f"x{i}") for i in range(len(specs))]
        F = Builder(Specs(dict(zip(variables, specs, strict=True))))
        found = self._function(*[F.value((v, 0)) for v in variables])
        values = list(found) if isinstance(found, (list, tuple)) else [found]
        if not values or not all(isinstance(v, Value) for v in values):
            raise OpTypeError(f"{self._name} returned {found!r}; expected what operators return")
        self._form[len(specs)] = type(found) if isinstance(found, (list, tuple)) else None
        entries: list[Entry] = [v.entry for v in values]
        return Graph(entries), variables

    def _again(self, variables: list) -> list:
        found = self._function(*variables)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    def __repr__(self) -> str:
        return f"<compiled {self._name}>"


def compiled(function: Callable) -> CompiledFunction:
    """Let a function of arrays run as one plan: its operators fused, its temporaries shared, without Python between them.

    The function is called once, with placeholders, for each combination of shapes, types and wanted gradients; so it must
    do nothing but call operators.  A function that looks at its arrays (their elements, ``asnumpy``) runs as it is.
    Gradients of every order are those of the function.

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
