"""Recomputation: backward recomputes cheap forward values instead of reading them from memory.

In a fused formula, whose operands are in registers, a value of a few additions costs less to compute than to store and load.
Values with costly parts (exp, tanh...) are kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence, Set
from functools import lru_cache
from math import prod
from typing import Any

from ..formula import TABLE, Expr, input_, leaves, walk
from ..opdef import Elementwise
from ..support import dtypes
from .formulas import seeks_equals
from .infer import Known
from .ir import Entry, Graph, Node
from .rewrite import Moved, rebuilt, with_copies
from .traits import elements_read, states_of

#: Most calls of primitives that are recomputed in backward.
MAX_COST = 24
#: Most calls of primitives that another region recomputes.
MAX_CHEAP = 8
#: An operand at least this many times smaller than the result is kept at no cost.
SMALL = 8


def recompute(graph: Graph, n_forward: int, known: Known) -> Graph:
    """Return the graph with copies of cheap forward nodes for its backward part.

    Parameters
    ----------
    graph : Graph
        Its first `n_forward` outputs are the forward pass.
    """
    heads = graph.outputs[:n_forward]
    forward = Graph(heads).nodes
    is_forward = set(forward)
    backward = [node for node in graph.nodes if node not in is_forward]
    elementwise_only: dict[Entry, bool] = {}  # forward values that backward reads: whether all readers can be fused
    for node in backward:
        fuses = isinstance(node.op, Elementwise) and not seeks_equals(node, known)
        for entry in node.inputs:
            if entry[0] in is_forward and entry[0].op is not None:
                elementwise_only[entry] = elementwise_only.get(entry, True) and fuses
    kept = {*graph.outputs, *(e for e, only in elementwise_only.items() if not only)}
    states = states_of(graph)
    again = [node for node in forward if not any(n in states for n, _ in node.inputs)]  # states may change
    costs = _costs(again, kept, set(elementwise_only), known)
    wanted = set(elementwise_only) - kept
    needed = {node for node, _ in wanted if node in costs}
    for node in reversed(forward):
        if node in needed:
            inputs = [e for e in node.inputs if e not in kept and not _is_small(e, node, known)]
            needed.update(n for n, _ in inputs if n in costs)
    return with_copies(graph, n_forward, needed, kept, known)


def recompute_per_region(
    graph: Graph, regions: Sequence[Sequence[Node]], repeats: Set[Node], known: Known, phase: Callable[[Node], Any]
) -> Graph:
    """Return the graph in which each region recomputes cheap values of other regions that depend on one array in memory.

    Such a value is never stored; regions read the array instead.

    Parameters
    ----------
    repeats : set of Node
        Nodes that only broadcast a smaller value.
    phase : callable
        Phase of a node; values that another phase reads are left to :func:`recompute`.
    """
    region = {node: i for i, nodes in enumerate(regions) for node in nodes}
    possible = _cheap_values(graph, region, repeats, known)
    readers: dict[Entry, set[int]] = {e: set() for e in possible}
    for node in graph.nodes:
        for entry in node.below():
            if entry in possible:
                readers[entry].add(region.get(node, -1) if phase(node) == phase(entry[0]) else -1)
    kept = set(graph.outputs)
    wanted = {e for e in possible if e not in kept and -1 not in readers[e] and readers[e] - {region[e[0]]}}
    if not wanted:
        return graph
    moved: Moved = {}
    copies: dict[tuple[Node, int], Node] = {}

    def inputs_for(node: Node, mine: int, first: Set[Entry]) -> Moved:
        """Return replacements for the inputs of a node in region `mine`: copies of `first` entries of other regions."""
        return {(n, k): (copied(n, mine), k) for n, k in node.inputs if (n, k) in first and region[n] != mine}

    def copied(node: Node, mine: int) -> Node:
        if (node, mine) not in copies:
            new = rebuilt(node, moved | inputs_for(node, mine, possible.keys()))
            copies[node, mine] = new.replaced(name=f"{node.name}_again")
            known.copy(node, copies[node, mine])
        return copies[node, mine]

    for node in graph.nodes:
        own = inputs_for(node, region[node], wanted) if node in region else {}
        new = rebuilt(node, moved | own if own else moved)
        if new is not node:
            known.copy(node, new)
            moved.update({(node, k): (new, k) for k in range(node.n_outputs)})
    return Graph([moved.get(e, e) for e in graph.outputs])


def _cheap_values(
    graph: Graph, region: Mapping[Node, int], repeats: Set[Node], known: Known
) -> dict[Entry, tuple[set[Entry], int]]:
    """Return, for values cheaply computed from at most one large array that no region makes, that array and the cost."""
    states = states_of(graph)
    found: dict[Entry, tuple[set[Entry], int]] = {}
    for node in graph.nodes:
        if node not in region or any(n in states for n, _ in node.inputs) or not (node in repeats or _cheap(node, known)):
            continue
        large = {e for e in elements_read(node) if not _is_small(e, node, known)}
        if any(e[0] in region and e not in found for e in large):
            continue
        roots = (input_(0),) if node in repeats else node.op.formula(node.attrs, len(node.inputs)).roots  # type: ignore[union-attr]
        for k, root in enumerate(roots):
            parts = [
                found.get(e, ({e}, 0)) for e in {node.inputs[n.label] for n in leaves((root,)) if n.kind == "input"} & large
            ]
            arrays, cost = {e for made, _ in parts for e in made}, calls_of((root,)) + sum(cost for _, cost in parts)
            if len(arrays) <= 1 and cost <= MAX_CHEAP:
                found[node, k] = arrays, cost
    return found


def _costs(forward: list[Node], kept: set[Entry], wanted: set[Entry], known: Known) -> dict[Node, int]:
    """Return the cost of recomputing nodes from values that are kept; nodes that cost more are left out."""
    costs: dict[Node, int] = {}
    for node in forward:
        if not _cheap(node, known):
            continue
        total, _ = weight(node.op.formula(node.attrs, len(node.inputs)).roots)
        for entry in node.inputs:
            source = entry[0]
            if source.op is None or entry in kept or _is_small(entry, node, known):
                continue
            if source in costs:
                total += costs[source]
            elif entry not in wanted:
                break
        else:
            if total <= MAX_COST:
                costs[node] = total
    return costs


def _cheap(node: Node, known: Known) -> bool:
    if not isinstance(node.op, Elementwise) or not node.inputs or node.op.stateful:
        return False
    shape = known.shape((node, 0))
    if known.dtype((node, 0)) not in dtypes.FLOATS:
        return False  # a copy of another type would not fuse with its reader
    if not all(known.shape(e) == shape or _is_small(e, node, known) for e in node.inputs):
        return False
    return not weight(node.op.formula(node.attrs, len(node.inputs)).roots)[1]


def _is_small(entry: Entry, node: Node, known: Known) -> bool:
    """Return whether an operand, such as a scalar for each row, is small enough to keep beside the result of its node."""
    shape, whole = known.shape(entry), known.shape((node, 0))
    if len(shape) == len(whole) and all(map(operator.is_, shape, whole)):  # nearly always: symbolic sizes take time to multiply
        return False
    return prod(shape) * SMALL <= prod(whole)


def calls_of(roots: tuple[Expr, ...]) -> int:
    """Return the number of calls of primitives in formulas."""
    return weight(roots)[0]


@lru_cache(4096)
def weight(roots: tuple[Expr, ...]) -> tuple[int, bool]:
    """Return the number of calls of primitives in formulas, and whether a costly one is among them."""
    calls = [n for n in walk(roots) if n.args]
    return len(calls), any(TABLE[n.label].costly for n in calls)
