"""The order in which a phase runs its nodes, chosen to free memory early.

A graph's nodes are in the order of its outputs: the gradient of the last layer's weight would run after all others, and keep
its operands alive.  Here a node runs as soon as it can if memory does not grow by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from .ir import Entry, Node


def early_release(
    nodes: Sequence[Node], needs: Callable[[Node], Sequence[Node]], root: Callable[[Entry], Entry],
    size: Callable[[Entry], int], kept: set[Entry],
) -> list[Node]:  # fmt: skip
    """Return nodes in an order that ends lifetimes early, or in the given order if that has no higher peak.

    Parameters
    ----------
    nodes : sequence of Node
        In a valid order of execution.
    needs : callable
        Returns the nodes that must run before a node.
    root : callable
        Returns the entry that owns the memory of an entry.
    size : callable
        Returns the bytes of an entry; 0 if it lives in a given array or was computed before.
    kept : set of (Node, int)
        Entries alive after these nodes.
    """
    reads = {node: tuple({root(e): None for e in node.inputs}) for node in nodes}
    found = _eager(nodes, needs, reads, size, kept)
    return found if _peak(found, reads, size, kept) < _peak(nodes, reads, size, kept) else list(nodes)


def _eager(nodes, needs, reads, size, kept) -> list[Node]:
    """Return the nodes in their order, except that those by which memory does not grow run as soon as they can."""
    place = {node: i for i, node in enumerate(nodes)}
    waiting = {node: {n for n in needs(node) if n in place} for node in nodes}
    after: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node, before in waiting.items():
        for n in before:
            after[n].append(node)
    readers: dict[Entry, set[Node]] = {}
    for node in nodes:
        for entry in reads[node]:
            readers.setdefault(entry, set()).add(node)
    free: list[int] = []  # places of ready nodes that free as much memory as they take
    done: set[Node] = set()
    order: list[Node] = []

    def offer(node: Node) -> None:
        made = sum(size((node, k)) for k in range(node.n_outputs))
        if made <= sum(size(e) for e in reads[node] if e not in kept and len(readers[e]) == 1):
            heappush(free, place[node])

    def run(node: Node) -> None:
        done.add(node)
        order.append(node)
        for entry in reads[node]:
            left = readers[entry]
            left.discard(node)
            if len(left) == 1:
                (last,) = left
                if not waiting[last]:
                    offer(last)
        for other in after[node]:
            waiting[other].discard(node)
            if not waiting[other]:
                offer(other)

    for node in nodes:
        if not waiting[node]:
            offer(node)
    for node in nodes:
        while free:
            first = nodes[heappop(free)]
            if first not in done:
                run(first)
        if node not in done:
            run(node)
    return order


def _peak(order, reads, size, kept) -> int:
    """Return the most bytes alive at once."""
    last = {entry: node for node in order for entry in reads[node]}
    dying: dict[Node, list[Entry]] = {}
    for entry, node in last.items():
        if entry not in kept:
            dying.setdefault(node, []).append(entry)
    now = most = 0
    for node in order:
        now += sum(size((node, k)) for k in range(node.n_outputs))
        most = max(most, now)
        now -= sum(size(e) for e in dying.get(node, ()))
        now -= sum(size((node, k)) for k in range(node.n_outputs) if (node, k) not in last and (node, k) not in kept)
    return most
