"""Partitioners of compiled libraries: the nodes that a library chooses become operators of that library."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .._core import native_graph
from ..graph import symbols
from ..graph.infer import Known
from ..graph.ir import Entry, Graph, Node
from ..graph.ordering import own_names
from ..graph.partition import cut_out, joined, with_units
from ..graph.regions import convex_regions
from ..graph.rewrite import Moved
from ..opdef import infer, registry
from ..support.errors import OpLookupError
from . import graphs
from .subgraph import JSON

_ANY = -1


class Partitioner:
    """A library's partitioner, as a backend of ``Symbol.optimize_for``: its strategies run one after the other."""

    def __init__(self, of: native_graph.NativePartitioner):
        self.of, self.name = of, of.name

    def __call__(self, symbol: Any, args: Any, aux: Any, ctx: Any, options: dict[str, Any]) -> Any:
        for strategy in self.of.strategies:
            graph = Graph(symbol._entries)
            known = graphs.given(graph, args, aux)
            work = _Work(strategy, graph, known, graphs.arrays(args), graphs.arrays(aux), graphs.texts(options))
            with own_names():
                symbol = symbols.symbol(work.partitioned().outputs)
        return symbol


class _Work:
    """One strategy on one graph."""

    def __init__(
        self, strategy: native_graph.NativeStrategy, graph: Graph, known: Known | None, args: dict, aux: dict,
        options: dict[str, str],
    ):  # fmt: skip
        self.strategy, self.graph, self.known, self.options = strategy, graph, known, options
        self.args, self.aux = args, aux
        self.op = registry.find(strategy.subgraph_op)
        if self.op is None:
            raise OpLookupError(f"{strategy.label}: its subgraph operator {strategy.subgraph_op!r} is not registered")

    # ---- choosing nodes -------------------------------------------------------------------------------------------------
    def groups(self) -> list[list[Node]]:
        """Return the sets of nodes that can run as one operator each."""
        text = graphs.to_json(self.graph, self.known)
        given = native_graph.GivenGraph(text, self.options, self.args, self.aux, None)
        if self.strategy.selects:
            kind = self._selected(lambda: self.strategy.selector(given))
        else:
            ids = self.strategy.supported(given, len(self.graph.nodes))
            kind = {n: None if n.op is None or i < _ANY else i for n, i in zip(self.graph.nodes, ids, strict=True)}
            _join_neighbours(self.graph, kind)
        return convex_regions(self.graph, kind)

    def _selected(self, new_selector: Callable[[], Any]) -> dict[Node, int | None]:
        """Let selectors grow subgraphs, each from the first node that one wants."""
        nodes = self.graph.nodes
        at = {node: i for i, node in enumerate(nodes)}
        readers: dict[Node, list[Node]] = {node: [] for node in nodes}
        for node in nodes:
            for source, _ in node.inputs:
                readers[source].append(node)
        kind: dict[Node, int | None] = dict.fromkeys(nodes)
        selector, count = new_selector(), 0
        for node in nodes:
            if node.op is None or kind[node] is not None or not selector.select(at[node]):
                continue
            grown = _grow(node, kind, readers, selector, at)
            selector.reset()
            kept = set(selector.filter([at[n] for n in grown]))
            kind.update({n: count for n in grown if at[n] in kept})
            selector, count = new_selector(), count + 1  # what it remembers is about this subgraph
        return kind

    # ---- putting operators in their place -------------------------------------------------------------------------------
    def partitioned(self) -> Graph:
        """Return the graph with an operator for each accepted group."""
        units, groups = itertools.count(), self.groups()
        return with_units(self.graph, groups, lambda unit, results, moved: self._operator(unit, results, moved, next(units)))

    def _operator(self, unit: Sequence[Node], results: list[Entry], moved: Moved, count: int) -> Node | None:
        """Return the node that stands for a group, or None when the library rejects it."""
        names: set[str] = set()

        def named(entry: Entry, k: int) -> str:
            name = entry[0].output_name(entry[1])
            while name in names:
                name += "_"
            names.add(name)
            return name

        graph, inner = cut_out(unit, results, named)
        attrs: dict[str, str] = {}
        if self.strategy.reviews:
            accept, attrs = self.strategy.review(self._given_subgraph(graph, inner), count)
            if not accept:
                return None
        taken = {node.name for node in self.graph.nodes}
        while (name := f"_op{count}") in taken:
            count += 1
        return joined(self.op, {**attrs, JSON: symbols.to_json(graph.outputs)}, name, unit, graph, inner, moved)

    def _given_subgraph(self, graph: Graph, inner: Moved) -> native_graph.GivenGraph:
        """Return a subgraph as its review gets it: with the parameters that are its inputs."""
        source = {v.name: entry[0] for entry, (v, _) in inner.items()}
        found: list[dict[str, Any]] = [
            {name: params[node.name] for name, node in source.items() if node.op is None and node.name in params}
            for params in (self.args, self.aux)
        ]
        known = None
        if self.known is not None:
            about = {v: (self.known.shape(entry), self.known.dtype(entry)) for entry, (v, _) in inner.items()}
            known = Known.solve(graph, {v: a for v, a in about.items() if infer.known(a[0])}, partial=True)
        return native_graph.GivenGraph(graphs.to_json(graph, known), self.options, *found, None)


def _join_neighbours(graph: Graph, kind: dict[Node, int | None]) -> None:
    """Let nodes that may be in any subgraph join a neighbour that is for a certain one."""
    if all(k in (None, _ANY) for k in kind.values()):
        return
    for node in graph.nodes:
        for source, _ in node.inputs:
            if kind[node] == _ANY and kind[source] is not None:
                kind[node] = kind[source]
    for node in reversed(graph.nodes):
        for source, _ in node.inputs:
            if kind[source] == _ANY and kind[node] is not None:
                kind[source] = kind[node]


def _grow(
    start: Node, kind: dict[Node, int | None], readers: dict[Node, list[Node]], selector: Any, at: dict[Node, int]
) -> list[Node]:
    """Return a node and the neighbours that a selector goes on to."""
    grown, pending = {start}, [start]
    while pending:
        node = pending.pop()
        for ask, neighbours in (
            (selector.select_input, [n for n, _ in node.inputs]), (selector.select_output, readers[node]),
        ):  # fmt: skip
            for other in neighbours:
                if other.op is None or other in grown or kind[other] is not None or not ask(at[node], at[other]):
                    continue
                grown.add(other)
                pending.append(other)
    return sorted(grown, key=at.__getitem__)
