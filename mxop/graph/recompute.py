"""Recomputation: backward computes cheap forward values again instead of reading them from memory.

A value of a few additions costs less to compute, inside a fused formula that has its operands in registers, than to store
and load.  Values with costly parts (exp, tanh...) are kept.  Imports :mod:`.ir`, :mod:`.infer` and :mod:`mxop.opdef`.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from .. import dtypes
from ..formula import TABLE, Expr, walk
from ..opdef import Elementwise
from .formulas import seeks_equals
from .infer import Known
from .ir import Entry, Graph, Node
from .rewrite import Moved, rebuilt
from .traits import states_of

#: Longest computation that is repeated, in calls of primitives.
MAX_COST = 24
#: How many times smaller an operand is that is kept, whatever it was computed of.
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
    elementwise_only: dict[Entry, bool] = {}  # forward values that backward reads: whether only what fuses does
    for node in backward:
        fuses = isinstance(node.op, Elementwise) and not seeks_equals(node, known)
        for entry in node.inputs:
            if entry[0] in is_forward and entry[0].op is not None:
                elementwise_only[entry] = elementwise_only.get(entry, True) and fuses
    kept = {*graph.outputs, *(e for e, only in elementwise_only.items() if not only)}
    states = states_of(graph)
    again = [node for node in forward if not any(n in states for n, _ in node.inputs)]  # states are other ones later
    costs = _costs(again, kept, set(elementwise_only), known)
    copies = _copies(forward, set(elementwise_only) - kept, kept, costs, known)
    moved: Moved = dict(copies)
    for node in backward:
        new = rebuilt(node, moved)
        if new is not node:
            known.copy(node, new)
            for k in range(node.n_outputs):
                moved[node, k] = (new, k)
    return Graph([*heads, *(e if e in copies else moved.get(e, e) for e in graph.outputs[n_forward:])])


def _costs(forward: list[Node], kept: set[Entry], wanted: set[Entry], known: Known) -> dict[Node, int]:
    """Return what it costs to compute nodes again from values that are there anyway; others are left out."""
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
    """Tell whether an operand, as a number for each row is, costs nothing to keep beside what is computed of it."""
    return prod(known.shape(entry)) * SMALL <= prod(known.shape((node, 0)))


def calls_of(roots: tuple[Expr, ...]) -> int:
    """Return the number of calls of primitives in formulas."""
    return weight(roots)[0]


@lru_cache(4096)
def weight(roots: tuple[Expr, ...]) -> tuple[int, bool]:
    """Return the number of calls of primitives in formulas, and whether one of them is costly."""
    calls = [n for n in walk(roots) if n.args]
    return len(calls), any(TABLE[n.label].costly for n in calls)


def _copies(forward: list[Node], wanted: set[Entry], kept: set[Entry], costs: dict[Node, int], known: Known) -> Moved:
    """Copy the nodes of the wanted entries, and what they are computed from."""
    needed = {node for node, _ in wanted if node in costs}
    for node in reversed(forward):
        if node in needed:
            needed.update(
                e[0] for e in node.inputs if e[0] in costs and e not in kept and not _is_small(e, node, known)
            )
    copies: Moved = {}
    for node in forward:
        if node in needed:
            new = node.replaced(tuple(copies.get(e, e) for e in node.inputs), name=f"{node.name}_again")
            known.copy(node, new)
            for k in range(node.n_outputs):
                if (node, k) not in kept:
                    copies[node, k] = (new, k)
    return copies
