"""Lowering: a symbol's graph becomes one that can be scheduled, in one mode, without composites and states, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..opdef import infer, registry
from ..support.shape_mode import numpy_shape
from .assignment import settled
from .expansion import expand
from .gradient import gradients
from .infer import Known
from .ir import Entry, Graph, Node, variable
from .passes import of_stage, run_passes
from .rewrite import rewrite
from .specs import Specs
from .states import Effects, in_mode
from .trim import trimmed_with_moves


class Call(NamedTuple):
    """A node of the symbol, with its inputs and outputs in the lowered graph."""

    node: Node
    inputs: tuple[Entry, ...]
    outputs: tuple[Entry, ...]


class Differentiated(NamedTuple):
    """A call whose gradient rule was applied: its first output, its inputs, and their gradients."""

    output: Entry
    inputs: tuple[Entry, ...]
    gradients: tuple[Entry | None, ...]


class Lowered(NamedTuple):
    """A graph that is ready for passes.

    Attributes
    ----------
    graph : Graph
        Its outputs: those of the symbol, the assignments of states, the gradients.
    given : dict
        Shape and type of each variable.
    n_outputs, n_forward : int
        The number of the symbol's outputs; the number of outputs before the gradients.
    calls : list of Call
        The symbol's calls, in its order.
    heads : list of Node
        The variables for head gradients; None where no gradient depends on one.
    again : Graph, optional
        The gradients with operators that have gradient rules unexpanded, for differentiating them again.
    variables : list of Node
        The variables of the cotangents in `again`.
    differentiated : callable
        Returns a :class:`Differentiated` for each differentiated call, from the last to the first; used by monitors.
    """

    graph: Graph
    given: dict[Node, tuple]
    n_outputs: int
    n_forward: int
    calls: Sequence[Call]
    heads: Sequence[Node | None] = ()
    again: Graph | None = None
    variables: Sequence[Node] = ()
    differentiated: Callable[[], Sequence[Differentiated]] = tuple

    @property
    def gradients(self) -> tuple[Entry, ...]:
        """The outputs that are gradients."""
        return self.graph.outputs[self.n_forward :]


def lower_inference(source: Graph, given: Mapping[Node, tuple], is_train: bool) -> Lowered:
    """Return the lowered graph of the outputs; `is_train` is the mode that operators receive."""
    source = in_mode(source, is_train)
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
    """Return the lowered graph of the outputs and of the gradients of the `wanted` variables.

    `absent` are indices of outputs without a head gradient.
    """
    effects, specs, n = Effects(), Specs(given, is_train), len(source.outputs)
    source = in_mode(source, is_train)
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
    at = n + len(assigned)  # assignments of gradient rules come last
    late = whole.outputs[at + len(grads) :]
    graph, third = trimmed_with_moves(Graph([*whole.outputs[:at], *late, *whole.outputs[at : at + len(grads)]]))
    present, known = set(graph.variables), dict(given)
    heads: list[Node | None] = [None] * n
    for i, node in zip(headed, variables, strict=True):
        heads[i] = node if node in present else None  # None for the output of a loss function
    known.update(dict.fromkeys(filter(None, heads)))  # type: ignore[arg-type]
    calls, rules = _calls(source, first, second, third), partial(_differentiated, applied, second, third)
    return Lowered(graph, known, n, at + len(late), calls, heads, Graph(grads), variables, rules)


def sized(graph: Graph, known: Known) -> Graph:
    """Return a graph whose sources have known shapes: ``zeros(shape=(0, 8))`` gets its size from its readers."""

    def replace(node: Node) -> list[Entry] | None:
        names = node.op.zero_is_unknown  # type: ignore[union-attr]
        if all(infer.known(infer.from_legacy(node.attrs[name], numpy_shape())) for name in names):
            return None
        new = node.replaced(attrs=node.attrs.replaced(**dict.fromkeys(names, known.shape((node, 0)))))
        known.copy(node, new)
        return [(new, k) for k in range(node.n_outputs)]

    return rewrite(graph, replace, known)[0]


def optimized(lowered: Lowered, passes: Sequence[Any], on_cpu: bool) -> tuple[Graph, Known]:
    """Return the graph after all passes, ready to be scheduled, with its shapes and types."""
    known = Known.solve(lowered.graph, dict(lowered.given))
    known.n_forward, known.on_cpu = lowered.n_forward, on_cpu
    graph = run_passes(lowered.graph, known, of_stage(passes, "graph") + of_stage(passes, "schedule"))
    return settled(graph, known), known


def _calls(source: Graph, *moves: dict[Entry, Entry]) -> list[Call]:
    """Return the calls of a graph, with their inputs and outputs in the expanded graph."""
    moved = partial(_moved, moves)
    return [
        Call(node, tuple(map(moved, node.inputs)), tuple(moved((node, k)) for k in range(node.n_outputs)))
        for node in source.nodes
        if node.op is not None
    ]


def _differentiated(applied: list[tuple[Node, list[Entry | None]]], *moves: dict[Entry, Entry]) -> list[Differentiated]:
    """Return the differentiated calls, with their entries in the expanded graph."""
    moved = partial(_moved, moves)
    return [
        Differentiated(moved((node, 0)), tuple(map(moved, node.inputs)), tuple(g and moved(g) for g in given))
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
