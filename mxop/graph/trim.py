"""What loops compute and nobody reads goes, before a graph is run.  Imports :mod:`.ir`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .ir import Entry, Graph, Node


def trimmed(graph: Graph) -> Graph:
    """Return a graph whose loops compute only what is read."""
    return trimmed_with_moves(graph)[0]


def trimmed_with_moves(graph: Graph) -> tuple[Graph, dict[Entry, Entry]]:
    """Return what :func:`trimmed` does, and where entries of the graph are in it that have moved."""
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
    values: dict[Entry, Entry] = {}
    made: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs = tuple(values.get(e, e) for e in node.inputs)
        control = tuple(made.get(n, n) for n in node.control)
        if node in changes:
            op, ins, outs = changes[node]
            if op is not node.op:
                made[node] = new = node.replaced(tuple(inputs[i] for i in ins), op=op, control=control)
                new._n_outputs = 0  # it has others
                values.update({(node, k): (new, at) for at, k in enumerate(outs)})
                continue
        if inputs != node.inputs or control != node.control:
            made[node] = new = node.replaced(inputs, control=control)
            values.update({(node, k): (new, k) for k in range(node.n_outputs)})
    return Graph([values.get(e, e) for e in graph.outputs]), values
