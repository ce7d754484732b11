"""Connected regions of a graph that can run as one node.

No path leaves a *convex* region and enters it again.  All its nodes have one level.  Levels never fall along an edge, and rise
along each edge that leaves a region, so regions can run one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Any

from .ir import Graph, Node, topological

Kinds = dict[Node, Any]
Unit = Sequence[Node]


def convex_regions(graph: Graph, kind: Kinds) -> list[list[Node]]:
    """Return the convex regions: connected nodes of one kind.

    Parameters
    ----------
    kind : dict of Node to hashable
        The kind of each node; None for nodes that are in no region.
    """
    level = _levels(graph, kind)
    return connected(graph, kind, lambda above, below: level[above] == level[below])


def connected(
    graph: Graph, kind: dict[Node, Hashable], together: Callable[[Node, Node], bool] = lambda above, below: True
) -> list[list[Node]]:
    """Return the components of nodes of one kind, connected by edges for which ``together(node, input)`` holds."""
    parent = {node: node for node in graph.nodes}

    def root(node: Node) -> Node:
        while parent[node] is not node:
            parent[node] = node = parent[parent[node]]
        return node

    for node in graph.nodes:
        mine = kind[node]
        if mine is None:
            continue
        for n, _ in node.inputs:
            if kind[n] == mine and together(node, n):
                parent[root(n)] = root(node)
    regions: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if kind[node] is not None:
            regions.setdefault(root(node), []).append(node)
    return list(regions.values())


def _levels(graph: Graph, kind: Kinds) -> dict[Node, int]:
    """Return a level for each node that rises along edges that leave a region, and falls along none."""
    level: dict[Node, int] = {}
    for node in graph.nodes:
        mine, here = kind[node], 0
        for source, _ in node.below():
            here = max(here, level[source] + (kind[source] is not None and kind[source] != mine))
        level[node] = here
    latest: dict[Node, int] = {}  # the highest level that the readers of a node allow
    joined: dict[Node, int] = {}  # the lowest level of its readers of the same kind
    for node in reversed(graph.nodes):
        if node in joined and level[node] < latest[node] == joined[node]:
            level[node] = joined[node]  # join a reader of the same kind, if no reader is delayed
        mine, here = kind[node], level[node]
        for source, _ in node.below():
            if mine is None or kind[source] != mine:
                latest[source] = min(latest.get(source, here - 1), here - 1)
            else:
                latest[source] = min(latest.get(source, here), here)
                joined[source] = min(joined.get(source, here), here)
    return level


def in_order(graph: Graph, units: Sequence[Unit]) -> list[Unit]:
    """Return units, with all other nodes as units of one node, in an order of execution."""
    every, needs, heads = _as_units(graph, units)
    return [every[i] for i in topological(heads, needs)]


def _as_units(graph: Graph, units: Sequence[Unit]) -> tuple[list[Unit], Callable[[int], list[int]], list[int]]:
    every: list[Unit] = [*units]
    unit_of = {node: i for i, unit in enumerate(every) for node in unit}
    for node in graph.nodes:
        if node not in unit_of:
            unit_of[node] = len(every)
            every.append((node,))

    def needs(i: int) -> list[int]:
        return [unit_of[n] for node in every[i] for n in node.needs() if unit_of[n] != i]

    return every, needs, [unit_of[n] for n, _ in graph.outputs]


def cycle(graph: Graph, units: Sequence[Unit]) -> list[Node] | None:
    """Return the nodes along a cycle that arises if each unit runs as one node; None if none does.

    The first and the last node belong to one unit; each node needs the one before it, directly or through its unit.
    """
    every, needs, heads = _as_units(graph, units)
    done: set[int] = set()
    for head in heads:
        if head in done:
            continue
        path, on_path = [(head, iter(needs(head)))], {head: 0}
        while path:
            i, below = path[-1]
            found = next((n for n in below if n not in done), None)
            if found is None:
                done.add(i)
                on_path.pop(i, None)
                path.pop()
            elif found in on_path:
                return _along([every[u] for u, _ in path[on_path[found] :]])
            else:
                on_path[found] = len(path)
                path.append((found, iter(needs(found))))
    return None


def _along(units: list[Unit]) -> list[Node]:
    """Return a path of nodes through `units`, each of which needs the next unit, and the last one the first."""
    order = [*units, units[0]][::-1]
    path: list[Node] = []
    for below, above in pairwise(order):
        members = set(below)
        above_nodes = [n for n in above if any(s in members for s in n.needs())]
        path += [n for n in above_nodes[0].needs() if n in members][:1] if not path or path[-1] not in members else []
        path.append(above_nodes[0])
    return path
