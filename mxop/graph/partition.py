"""Partitioning: nodes that a backend selects become operators that the backend runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..opdef import registry
from ..support.errors import MXNetError, OpValueError
from . import symbols
from .backends import get_backend
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
    member = {node: i for i, group in enumerate(groups) for node in group}
    read_outside: dict[Entry, None] = {}
    for node in graph.nodes:
        for entry in node.inputs:
            if entry[0] in member and member.get(node) != member[entry[0]]:
                read_outside[entry] = None
    read_outside.update(dict.fromkeys(e for e in graph.outputs if e[0] in member))
    moved: Moved = {}
    controls: dict[Node, Node] = {}
    count = 0
    for unit in in_order(graph, groups):
        if unit[0] in member:
            outside = [e for e in read_outside if member[e[0]] == member[unit[0]]]
            new = _operator(backend, name, unit, outside, moved, f"{name}_subgraph{count}", options)
            if new is not None:
                count += 1
                moved.update({entry: (new, k) for k, entry in enumerate(outside)})
                controls.update(dict.fromkeys(unit, new))
                continue
        for node in unit:
            if node.op is None:
                continue
            again = rebuilt(node, moved, controls)
            if again is not node:
                moved.update({(node, k): (again, k) for k in range(node.n_outputs)})
                controls[node] = again
    return Graph(moved.get(e, e) for e in graph.outputs)


def _operator(
    backend: Backend, name: str, unit: Sequence[Node], outside: list[Entry], moved: Moved, label: str,
    options: dict[str, Any],
) -> Node | None:  # fmt: skip
    """Return the node that replaces a unit, or None if the backend does not accept it."""
    members = set(unit)
    inner: dict[Entry, Entry] = {}  # outer entry -> variable of the subgraph
    copies: Moved = {}
    for node in unit:
        for entry in node.inputs:
            if entry[0] not in members and entry not in inner:
                inner[entry] = variable(f"input{len(inner)}"), 0
        new = node.replaced(tuple(copies.get(e) or inner[e] for e in node.inputs), control=())
        copies.update({(node, k): (new, k) for k in range(node.n_outputs)})
    graph = Graph(copies[e] for e in outside)
    if not backend.accept(symbols.symbol(graph.outputs), **options):
        return None
    text = symbols.to_json(graph.outputs)
    remember(text, graph)
    op = registry.get(NAME)
    outer = {v: e for e, (v, _) in inner.items()}
    inputs = tuple(moved.get(outer[v], outer[v]) for v in graph.variables)
    control = tuple(dict.fromkeys(n for node in unit for n in node.control if n not in members))
    params = {"backend": name, "graph": text}
    return Node(op, op.parse(params), inputs, label, params, unit[-1].source, unit[-1].order, control)


def optimize_for(symbol: Any, backend: str, args: Any, aux: Any, ctx: Any, options: dict[str, Any]) -> Any:
    """See ``Symbol.optimize_for``."""
    run = get_backend(backend)
    if isinstance(run, Backend):
        options = {**options, "_backend": backend}
    return run(symbol, args, aux, ctx, options)
