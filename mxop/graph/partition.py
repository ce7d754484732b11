"""Partitioning: nodes that a backend selects become operators that the backend runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..opdef import registry
from ..support.errors import MXNetError, OpValueError
from . import symbols
from .backend_table import get_backend
from .infer import Known, located
from .ir import Entry, Graph, Node, describe, variable
from .ordering import own_names
from .regions import connected, convex_regions, cycle, in_order
from .rewrite import Moved, rebuilt
from .subgraph import NAME, remember


class Backend:
    """A backend that runs parts of a graph; subclasses select nodes and run them.

    Attributes
    ----------
    on_cycle : {'error', 'split'}
        What to do if a connected set of selected nodes cannot run as one, because a path leaves it and enters it again: raise,
        or make several subgraphs.

    Examples
    --------
    >>> import mxop as mx
    >>> class Chains(mx.graph.Backend):
    ...     def select(self, node):
    ...         return node.op_name in ('exp', 'sin')
    ...     def run(self, subgraph, inputs, outputs):
    ...         print(subgraph.list_outputs(), [a.shape for a in inputs])
    ...         return subgraph.eval(**dict(zip(subgraph.list_inputs(), inputs)))
    >>> mx.graph.register_backend('doc_chains', Chains())
    <...Chains object at ...>
    >>> x = mx.sym.Variable('x')
    >>> y = mx.sym.exp(mx.sym.sin(x), name='e') * 2
    >>> y.optimize_for('doc_chains').eval(x=mx.nd.zeros((2,)))[0].asnumpy().tolist()
    ['e_output'] [(2,)]
    [2.0, 2.0]
    >>> mx.graph.unregister_backend('doc_chains')
    """

    on_cycle = "error"

    def select(self, node: Any, **options: Any) -> Any:
        """Return whether to take a node.

        Parameters
        ----------
        node : Symbol
            With ``op_name``, ``attrs``, ``inputs``, and if arrays were given ``shape`` and ``dtype``.
        **options
            The options of ``optimize_for``.

        Returns
        -------
        bool or hashable
            True takes it into the subgraph of its selected neighbours; any other true value takes it into the subgraph of all
            nodes with the same value, connected or not.
        """
        return False

    def connect(self, node: Any, input: Any, **options: Any) -> bool:
        """Return whether two selected neighbours may be in one subgraph."""
        return True

    def accept(self, subgraph: Any, **options: Any) -> bool:
        """Return whether to run a subgraph, given as a symbol; False leaves its nodes in the graph."""
        return True

    def run(self, subgraph: Any, inputs: list, outputs: list) -> Any:
        """Run a subgraph.

        Parameters
        ----------
        subgraph : Symbol
            Its inputs are in the order of ``list_inputs()``.
        inputs, outputs : list of NDArray
            In C order.

        Returns
        -------
        None, or the outputs
            Results are either written into `outputs` or returned.
        """
        return subgraph.eval(**dict(zip(subgraph.list_inputs(), inputs, strict=True)))

    def __call__(self, symbol: Any, args: Any, aux: Any, ctx: Any, options: dict[str, Any]) -> Any:
        name = options.pop("_backend")
        graph = Graph(symbol._entries)
        known = Known.solve(graph, _given(graph, {**(args or {}), **(aux or {})}), partial=True)
        with own_names():
            groups = _groups(self, name, graph, known, options)
            return symbols.symbol(_partitioned(self, name, graph, groups, options).outputs)


def _given(graph: Graph, arrays: Mapping[str, Any]) -> dict[Node, tuple]:
    return {n: (arrays[n.name].shape, arrays[n.name].dtype_code) for n in graph.variables if n.name in arrays}


def _groups(backend: Backend, name: str, graph: Graph, known: Known, options: dict[str, Any]) -> list[Sequence[Node]]:
    """Return the sets of nodes that become one operator each."""

    def operand(node: Node) -> Any:
        return symbols.operand([(node, k) for k in range(node.n_outputs)], known)

    def choice(node: Node) -> Any:
        try:
            return (None if node.op is None else backend.select(operand(node), **options)) or None
        except MXNetError as problem:
            raise located(problem, node) from problem.__cause__

    chosen = {node: choice(node) for node in graph.nodes}
    neighbours = {node: mark if mark is True else None for node, mark in chosen.items()}
    if backend.on_cycle == "split":
        groups = convex_regions(graph, neighbours)
    else:
        groups = connected(graph, neighbours, lambda a, b: backend.connect(operand(a), operand(b), **options))
    named: dict[Any, list[Node]] = {}
    for node, mark in chosen.items():
        if mark is not None and mark is not True:
            named.setdefault(mark, []).append(node)
    groups += named.values()
    _check_cycle(name, graph, groups)
    return groups


def _check_cycle(name: str, graph: Graph, groups: list[list[Node]]) -> None:
    path = cycle(graph, groups)
    if path is not None:
        inside = next(g for g in groups if path[0] in g)
        shown = " -> ".join(f"{n.name} ({n.op.name})" for n in path)  # type: ignore[union-attr]
        raise OpValueError(
            f"optimize_for {name!r}: the subgraph of {', '.join(n.name for n in inside)} would need itself, a cycle: {shown} "
            f"leaves it and comes back; at {describe(path[-1])}.  Take all of these nodes, leave one end out, or set "
            f"on_cycle = 'split'"
        )


def _partitioned(backend: Backend, name: str, graph: Graph, groups: list[Sequence[Node]], options: dict[str, Any]) -> Graph:
    count = 0

    def operator(unit: Sequence[Node], results: list[Entry], moved: Moved) -> Node | None:
        nonlocal count
        inside, inner = cut_out(unit, results, lambda entry, k: f"input{k}")
        if not backend.accept(symbols.symbol(inside.outputs), **options):
            return None
        text = symbols.to_json(inside.outputs)
        remember(text, inside)
        count += 1
        params = {"backend": name, "graph": text}
        return joined(registry.get(NAME), params, f"{name}_subgraph{count - 1}", unit, inside, inner, moved)

    return with_units(graph, groups, operator)


# ---- nodes that become one ------------------------------------------------------------------------------------------------
def with_units(
    graph: Graph, groups: Sequence[Sequence[Node]], operator: Callable[[Sequence[Node], list[Entry], Moved], Node | None]
) -> Graph:
    """Return a graph in which groups of nodes are one node each.

    Parameters
    ----------
    operator : callable
        ``operator(unit, results, moved)`` returns the node whose outputs are the results, the entries that others read; or
        None, which leaves the nodes as they are.  `moved` has what became of other groups.
    """
    member: dict[Node | None, int] = {node: i for i, group in enumerate(groups) for node in group}
    results: list[dict[Entry, None]] = [{} for _ in groups]
    for reader, entry in [*((node, e) for node in graph.nodes for e in node.inputs), *((None, e) for e in graph.outputs)]:
        if entry[0] in member and member.get(reader) != member[entry[0]]:
            results[member[entry[0]]][entry] = None
    moved: Moved = {}
    controls: dict[Node, Node] = {}
    for unit in in_order(graph, groups):
        read = list(results[member[unit[0]]]) if unit[0] in member else []
        new = operator(unit, read, moved) if unit[0] in member else None
        if new is not None:
            moved.update({entry: (new, k) for k, entry in enumerate(read)})
            controls.update(dict.fromkeys(unit, new))
            continue
        for node in unit:
            again = node if node.op is None else rebuilt(node, moved, controls)
            if again is not node:
                moved.update({(node, k): (again, k) for k in range(node.n_outputs)})
                controls[node] = again
    return Graph(moved.get(e, e) for e in graph.outputs)


def cut_out(unit: Sequence[Node], results: list[Entry], named: Callable[[Entry, int], str]) -> tuple[Graph, Moved]:
    """Return nodes as a graph, and its variables for what they read; ``named(entry, k)`` returns the name of the k-th one."""
    members = set(unit)
    inner: Moved = {}
    copies: Moved = {}
    for node in unit:
        for entry in node.inputs:
            if entry[0] not in members and entry not in inner:
                inner[entry] = variable(named(entry, len(inner))), 0
        new = node.replaced(tuple(copies.get(e) or inner[e] for e in node.inputs), control=())
        copies.update({(node, k): (new, k) for k in range(node.n_outputs)})
    return Graph(copies[e] for e in results), inner


def joined(
    op: Any, params: dict[str, str], label: str, unit: Sequence[Node], inside: Graph, inner: Moved, moved: Moved
) -> Node:
    """Return the node that runs the graph of a unit, as :func:`cut_out` returned it."""
    outer = {v: entry for entry, (v, _) in inner.items()}
    inputs = tuple(moved.get(outer[v], outer[v]) for v in inside.variables)
    members = set(unit)
    control = tuple(dict.fromkeys(n for node in unit for n in node.control if n not in members))
    return Node(op, op.parse(params), inputs, label, params, unit[-1].source, unit[-1].order, control)


def optimize_for(symbol: Any, backend: str, args: Any, aux: Any, ctx: Any, options: dict[str, Any]) -> Any:
    """See ``Symbol.optimize_for``."""
    run = get_backend(backend)
    if isinstance(run, Backend):
        options = {**options, "_backend": backend}
    return run(symbol, args, aux, ctx, options)
