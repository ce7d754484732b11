"""From a symbol's graph to one that can be scheduled: in one mode, without composites and states, with gradients, optimized."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..opdef import infer, registry
from ..support.shape_mode import numpy_shape
from .assignment import settled
from .expand import expand
from .gradient import gradients
from .infer import Known
from .ir import Entry, Graph, Node, variable
from .passes import of_stage, run_passes
from .rewrite import rewrite
from .specs import Specs
from .states import Effects, in_mode
from .trim import trimmed_with_moves


@dataclass(frozen=True)
class Call:
    """A node of the symbol, and where the lowered graph has its inputs and outputs."""

    node: Node
    inputs: tuple[Entry, ...]
    outputs: tuple[Entry, ...]


@dataclass(frozen=True)
class Slope:
    """A call whose gradient rule was applied: its first output, its inputs, and what the rule gave for these."""

    output: Entry
    inputs: tuple[Entry, ...]
    gradients: tuple[Entry | None, ...]


@dataclass(frozen=True)
class Lowered:
    """A graph that is ready for the passes.

    Attributes
    ----------
    graph : Graph
        Its outputs are those of the symbol, then the assignments of states, then gradients.
    given : dict
        Shape and type of each variable.
    n_outputs, n_forward : int
        How many outputs the symbol has, and how many outputs come before the gradients.
    calls : list of Call
        What the symbol calls, in its order.
    heads : list of Node
        The variables that stand for head gradients, None where no gradient depends on one.
    again : Graph, optional
        The gradients alone, with operators that have rules of their own as they are: what can be differentiated again.
    variables : list of Node
        For that, what stands for each head gradient.
    slopes : callable
        Returns a :class:`Slope` for each call that was differentiated, from the last to the first; monitors ask.
    """

    graph: Graph
    given: dict[Node, tuple]
    n_outputs: int
    n_forward: int
    calls: Sequence[Call]
    heads: Sequence[Node | None] = ()
    again: Graph | None = None
    variables: Sequence[Node] = ()
    slopes: Callable[[], Sequence[Slope]] = tuple

    @property
    def gradients(self) -> tuple[Entry, ...]:
        """The gradients."""
        return self.graph.outputs[self.n_forward :]


def lower_inference(source: Graph, given: Mapping[Node, tuple], is_train: bool) -> Lowered:
    """Return what computes the outputs alone; `is_train` is what operators are told."""
    source = _sized(in_mode(source, is_train), given)
    graph, moved = expand(source, effects=Effects(), specs=Specs(given, is_train))
    graph, trim = trimmed_with_moves(graph)
    return Lowered(graph, dict(given), len(source.outputs), len(graph.outputs), _calls(source, moved, trim))


def lower_training(
    source: Graph,
    given: Mapping[Node, tuple],
    wanted: Sequence[Node],
    is_train: bool = True,
    absent: Sequence[int] = (),
) -> Lowered:
    """Return what computes the outputs and the gradients of the `wanted` variables.

    `absent` are outputs without a head gradient.
    """
    effects, specs, n = Effects(), Specs(given, is_train), len(source.outputs)
    source = _sized(in_mode(source, is_train), given)
    graph, first = expand(source, everything=False, effects=effects, specs=specs)
    assigned = graph.outputs[n:]
    headed = [i for i in range(n) if i not in absent]
    ends, variables = [graph.outputs[i] for i in headed], [variable(f"_head_grad_{i}") for i in headed]
    specs.same.update(zip(variables, ends, strict=True))
    entries = [(node, 0) for node in wanted]
    applied: list = []
    found = gradients(ends, [(h, 0) for h in variables], entries, specs, applied)
    grads = [_zeros_like(e) if g is None else g for g, e in zip(found, entries, strict=True)]
    whole, second = expand(Graph([*graph.outputs[:n], *assigned, *grads]), effects=effects, specs=specs)
    at = n + len(assigned)  # what a gradient rule with states assigned comes last
    late = whole.outputs[at + len(grads) :]
    graph, third = trimmed_with_moves(Graph([*whole.outputs[:at], *late, *whole.outputs[at : at + len(grads)]]))
    present, known = set(graph.variables), dict(given)
    heads: list[Node | None] = [None] * n
    for i, node in zip(headed, variables, strict=True):
        heads[i] = node if node in present else None  # None: the gradient of a loss function
    known.update(dict.fromkeys(filter(None, heads)))  # type: ignore[arg-type]
    calls, slopes = _calls(source, first, second, third), partial(_slopes, applied, second, third)
    return Lowered(graph, known, n, at + len(late), calls, heads, Graph(grads), variables, slopes)


def _sized(graph: Graph, given: Mapping[Node, tuple]) -> Graph:
    """Return a graph whose sources have whole shapes, which ``zeros(shape=(0, 8))`` gets from where it is used."""
    partial = {
        node
        for node in graph.nodes
        for name in (node.op.zero_is_unknown if node.op is not None else ())
        if not infer.known(infer.from_legacy(node.attrs[name], numpy_shape()))
    }
    if not partial:
        return graph
    known = Known.solve(graph, dict(given))

    def replace(node: Node) -> list[Entry] | None:
        if node not in partial:
            return None
        shapes = dict.fromkeys(node.op.zero_is_unknown, known.shape((node, 0)))
        return [(node.replaced(attrs=node.attrs.replaced(**shapes)), 0)]

    return rewrite(graph, replace)[0]


def optimized(lowered: Lowered, passes: Sequence[Any], on_cpu: bool) -> tuple[Graph, Known]:
    """Return a graph that is ready to be scheduled, and its shapes and types."""
    known = Known.solve(lowered.graph, dict(lowered.given))
    known.n_forward, known.on_cpu = lowered.n_forward, on_cpu
    graph = run_passes(lowered.graph, known, of_stage(passes, "graph") + of_stage(passes, "schedule"))
    return settled(graph, known), known


def _calls(source: Graph, *moves: dict[Entry, Entry]) -> list[Call]:
    """Return what a graph calls, and where it was moved when the graph was expanded."""
    moved = partial(_moved, moves)
    return [
        Call(node, tuple(map(moved, node.inputs)), tuple(moved((node, k)) for k in range(node.n_outputs)))
        for node in source.nodes
        if node.op is not None
    ]


def _slopes(applied: list[tuple[Node, list[Entry | None]]], *moves: dict[Entry, Entry]) -> list[Slope]:
    """Return what was differentiated, as :func:`_calls` does for what is called."""
    moved = partial(_moved, moves)
    return [
        Slope(moved((node, 0)), tuple(map(moved, node.inputs)), tuple(None if g is None else moved(g) for g in given))
        for node, given in applied
    ]


def _moved(moves: Sequence[dict[Entry, Entry]], entry: Entry) -> Entry:
    for values in moves:
        entry = values.get(entry, entry)
    return entry


def _zeros_like(entry: Entry) -> Entry:
    op = registry.get("zeros_like")
    node = entry[0]
    return Node(op, op.parse({}), (entry,), f"{node.name}_no_gradient", None, node.source), 0
