"""Expansion: composites are replaced by their calls, operators with states by pure functions and assignments."""

from __future__ import annotations

from ..opdef import Composite, Elementwise, External
from ..opdef.elementwise import MOST_INPUTS
from ..support.errors import MXNetError, OpValueError, translated
from .builder import Builder, entries_of
from .draws import in_turn
from .halves import widened
from .infer import located
from .ir import Entry, Graph, Node
from .rewrite import Moved, rewrite
from .specs import Specs
from .states import Effects, has_mode, in_mode

_MAX_NESTING = 64
#: Part of the names of nodes inside a composite.
INSIDE = "_inside"


def expand(
    graph: Graph, everything: bool = True, effects: Effects | None = None, specs: Specs | None = None
) -> tuple[Graph, Moved]:
    """Return a graph with composites replaced by their calls.

    Parameters
    ----------
    everything : bool
        Expand composites with a gradient rule, too; they stay until gradients are taken.
    effects : Effects, optional
        Collects the assignments of states, for a graph that will run; without it, operators with states stay.
    specs : Specs, optional
        Shapes and types, for functions that read them.

    Returns
    -------
    graph : Graph
        Assignments are further outputs.
    moved : dict
        Maps changed entries to new ones.
    """
    F = Builder(specs)

    def replace(node: Node) -> list[Entry] | None:
        if node.op.bodies:
            return node.op.expanded(node, everything, effects, specs)
        if (found := cast(node) or fold(node)) is not None:
            return found
        composite = isinstance(node.op, Composite) and (everything or node.op._gradient is None)
        if effects is None or not node.op.writes:
            return inside(node, node.control) if composite else None
        control = effects.control_of(node)
        if composite:
            found = inside(node, control)
        else:
            new = node.replaced(op=node.op.pure, control=control)
            found = [(new, k) for k in range(node.n_outputs)]
        effects.deliver(node, found)
        return found

    def cast(node: Node) -> list[Entry] | None:
        """Return the node with casts of inputs that must be integers, such as labels; None if none are needed."""
        if specs is None or not _takes_integers(node):
            return None
        casts = node.op.casts(node.attrs, [specs(e)[1] for e in node.inputs])
        F.work_for(node, "_cast", node.order, node.control)
        inputs = [F.Cast(F.value(e), dtype=casts[k]).entry if k in casts else e for k, e in enumerate(node.inputs)]
        new = node.replaced(tuple(inputs)) if casts else None
        return None if new is None else [(new, k) for k in range(node.n_outputs)]

    def fold(node: Node) -> list[Entry] | None:
        """Return the node with sums of what is too many for one formula; None if it is not."""
        if not _folds(node):
            return None
        F.work_for(node, "_part", node.order, node.control)
        inputs, attrs = node.op.folded(F._invoke, [F.value(e) for e in node.inputs], node.attrs)
        return [(node.replaced(tuple(v.entry for v in inputs), attrs=attrs), 0)]

    def inside(node: Node, control: tuple[Node, ...]) -> list[Entry]:
        F.work_for(node, INSIDE, node.order, control)
        inputs = [F.value(e) for e in node.inputs]
        try:
            with translated(f"operator {node.op.name}"):
                result = node.op.called(F, inputs, node.attrs)
            found = entries_of(result, node.n_outputs, f"composite operator {node.op.name}")
            if specs is not None and node.op.in_float32:
                found = widened(F, found, node.inputs, specs)
        except MXNetError as problem:
            raise located(problem, node) from problem.__cause__
        first = found[0][0]
        if first not in {source for source, _ in node.inputs}:
            first.name = node.name  # the user's name belongs to the result
        return found

    if not any(isinstance(n.op, Composite) or _has_more(n, effects) for n in graph.nodes):
        return _with_states(graph, {})
    total: Moved = {}
    for _ in range(_MAX_NESTING):
        graph, moved = rewrite(graph, replace)
        if effects is not None:
            effects.follow(moved)
            graph = Graph([*graph.outputs, *effects.take()])
        if not moved:
            return _with_states(graph, total)
        total = {old: moved.get(new, new) for old, new in total.items()} | {
            old: new for old, new in moved.items() if old not in total
        }
    raise MXNetError(f"composite operators are nested more than {_MAX_NESTING} deep; does one call itself?")


def expand_ahead(who: str, graph: Graph) -> tuple[Graph, Moved]:
    """Return an expanded graph for a gradient taken before the mode of its runs is known.

    Raises
    ------
    OpValueError
        If the graph depends on the mode, or on random draws: the gradient would be that of another run.
    """
    found = expand(graph, everything=False)
    forms = [_form(expand(in_mode(graph, mode), everything=False)[0]) for mode in (True, False) if has_mode(graph)]
    if forms[:1] != forms[1:] or any(n.op is not None and not n.op.repeatable for n in found[0].nodes):
        refuse_modes(who, graph, True)
    return found


def refuse_modes(who: str, graph: Graph, sure: bool = False) -> None:
    """Raise for the first call that depends on the mode or draws; if `sure`, for the last call if no such call is found."""
    calls = [n for n in graph.nodes if n.op is not None]
    asking = [n for n in calls if not n.op.repeatable or n.op.spec.has_mode or any(map(has_mode, n.op.bodies))]
    for node in asking or calls[-1:] * sure:
        raise OpValueError(
            f"{who}: operator {node.op.name} ({node.name!r}) depends on the mode of a run, or draws numbers, so its "
            "gradient belongs to a run: use executor.backward(), or autograd.grad in mx.graph.compiled"
        )


def _form(graph: Graph) -> list[tuple]:
    """Return a key that is equal for two graphs of equal calls."""
    at = {node: k for k, node in enumerate(graph.nodes)}

    def called(node: Node) -> object:
        return node.name if node.op is None else (list(map(_form, node.op.bodies)) or node.op, node.attrs)

    return [(called(node), [(at[source], k) for source, k in node.inputs]) for node in graph.nodes]


def _has_more(node: Node, effects: Effects | None) -> bool:
    more = _takes_integers(node) or _folds(node) or (effects is not None and node.op is not None and node.op.writes)
    return node.op is not None and bool(node.op.bodies or more)


def _takes_integers(node: Node) -> bool:
    return isinstance(node.op, Elementwise) and bool(node.op.integers)


def _folds(node: Node) -> bool:
    return isinstance(node.op, Elementwise) and node.op.folds and len(node.inputs) > MOST_INPUTS


def _with_states(graph: Graph, total: Moved) -> tuple[Graph, Moved]:
    """Give each call of an operator with a state an own state, which its backward shares; order random calls."""
    graph, moved = in_turn(graph)
    if moved:
        total = {old: moved.get(new, new) for old, new in total.items()} | moved
    if not any(isinstance(node.op, External) for node in graph.nodes):
        return graph, total
    graph, moved = rewrite(graph, give_state)
    return graph, {old: moved.get(new, new) for old, new in total.items()} | moved


def give_state(node: Node) -> list[Entry] | None:
    """Return the outputs of the node with a state of its own; None if it has one, or needs none."""
    attrs = node.op.call_attrs(node.attrs) if isinstance(node.op, External) else node.attrs
    if attrs is node.attrs:
        return None
    new = node.replaced(attrs=attrs)
    return [(new, k) for k in range(node.n_outputs)]
