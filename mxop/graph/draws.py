"""Orders random calls as in the graph, so that a seed gives the same numbers in every schedule."""

from __future__ import annotations

from .ir import Entry, Graph, Node
from .rewrite import Moved, rewrite


def in_turn(graph: Graph) -> tuple[Graph, Moved]:
    """Return a graph in which each random call runs after the previous one, and the map of changed entries."""
    if sum(map(_draws, graph.nodes)) < 2:
        return graph, {}
    before: list[Node] = []

    def replace(node: Node) -> list[Entry] | None:
        if not _draws(node):
            return None
        new = node
        if before and before[-1] not in node.control:
            new = node.replaced(control=(*node.control, before[-1]))
        before.append(new)
        return None if new is node else [(new, k) for k in range(node.n_outputs)]

    return rewrite(graph, replace)


def _draws(node: Node) -> bool:
    return node.op is not None and not node.op.repeatable
