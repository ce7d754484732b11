"""Removes dead outputs of loops before a graph runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .ir import Entry, Graph, Node
from .rewrite import rewrite


def trimmed(graph: Graph) -> Graph:
    """Return a graph whose loops compute only outputs that are read."""
    return trimmed_with_moves(graph)[0]


def trimmed_with_moves(graph: Graph) -> tuple[Graph, dict[Entry, Entry]]:
    """Return :func:`trimmed` of a graph, and the map of changed entries."""
    if not any(node.op is not None and node.op.bodies for node in graph.nodes):
        return graph, {}
    used: set[Entry] = set(graph.outputs)
    changes: dict[Node, tuple[Any, list[int], list[int]]] = {}
    for node in reversed(graph.nodes):
        keeps: Iterable[int] = range(len(node.inputs))
        if hasattr(node.op, "trimmed"):
            live = [k for k in range(node.n_outputs) if (node, k) in used]
            changes[node] = node.op.trimmed(live or [0])
            keeps = changes[node][1]
        used.update([node.inputs[i] for i in keeps])
    nodes = iter([node for node in graph.nodes if node.op is not None])

    def replace(new: Node) -> list[Entry] | None:
        node = next(nodes)
        op, ins, outs = changes.get(node, (node.op, [], []))
        if op is node.op:
            return None
        made = new.replaced(tuple([new.inputs[i] for i in ins]), op=op)
        made._n_outputs = 0  # recomputed: it has fewer
        return [(made, outs.index(k)) if k in outs else (node, k) for k in range(node.n_outputs)]

    return rewrite(graph, replace)
