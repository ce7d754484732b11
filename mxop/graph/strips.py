"""Strips: reductions over the last axes and the formulas around them go down their rows together.

A layer normalization reads its input for the mean, again for the variance, and again for the result.  As a strip it does
all three on a few rows at a time, which stay in the cache, and what only the next stage reads never reaches memory.  Its
gradient gives sums of each row back to the row: another strip.

A strip is a region of nodes over the same rows: the leading dimensions, which no reduction of the region runs over.
:mod:`.rowwise` says what a node does to rows, and :mod:`.stages` writes the region as one operator.
Imports these, :mod:`.ir`, :mod:`.infer`, :mod:`.regions`, :mod:`.traits`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

from .. import dtypes
from .infer import Known
from .ir import Graph, Node
from .regions import convex_regions, in_order
from .rewrite import Moved, rebuilt
from .rowwise import LONGEST_ROW, Read, Shape, Step, reduces_rows, step_of
from .stages import Writer
from .traits import states_of

MAX_MEMBERS = 64

Steps = dict[Node, Step]
Phase = Callable[[Node], Any]


def strips(graph: Graph, known: Known, phase: Phase = lambda node: 0) -> Graph:
    """Return the graph with its regions around row reductions made strips.

    Parameters
    ----------
    phase : callable
        Nodes of different phases (forward, backward) do not share a strip.
    """
    if not any(reduces_rows(node, known) for node in graph.nodes):
        return graph
    states = states_of(graph)
    steps: Steps = {}
    for node in graph.nodes:
        step = step_of(node, known)
        if step is None or (step.only_reads and node.inputs[0][0] in states):  # it says when the state is read
            continue
        steps[node] = step.through_views(steps)
    kind = _kinds(graph, steps, known, phase)
    units = [_without_reshapes(region[:MAX_MEMBERS], steps) for region in convex_regions(graph, kind)]
    units = [unit for unit in units if len(unit) > 1 and any(steps[n].combine or steps[n].repeats for n in unit)]
    if not units:
        return graph
    readers = _readers(graph, units, steps)
    moved: Moved = {}
    for unit in in_order(graph, units):
        if len(unit) > 1:
            Writer(unit, steps, kind[unit[0]][0], readers, known).write(moved)
            continue
        new = rebuilt(unit[0], moved)
        if new is not unit[0]:
            known.copy(unit[0], new)
            for k in range(new.n_outputs):
                moved[unit[0], k] = (new, k)
    return Graph(moved.get(e, e) for e in graph.outputs)


def _readers(graph: Graph, units: list[tuple[Node, ...]], steps: Steps) -> Counter:
    """Count the readers of each entry; what members of strips ask the shape of is not read."""
    members = {node for unit in units for node in unit}
    readers = Counter(r.entry for node in members for r in steps[node].reads)
    readers.update(e for node in graph.nodes if node not in members for e in node.below())
    readers.update(graph.outputs)
    return readers


def _kinds(graph: Graph, steps: Steps, known: Known, phase: Phase) -> dict[Node, Any]:
    """Return rows, type and phase of each node that goes down rows which some reduction has; None for others."""
    kind: dict[Node, Any] = dict.fromkeys(graph.nodes)
    found = sorted({step.rows for step in steps.values() if step.rows is not None}, key=len, reverse=True)
    for node in graph.nodes:
        step = steps.get(node)
        if step is None:
            continue
        code = known.dtype((node, 0))
        rows = next((r for r in ([step.rows] if step.combine else found) if _goes_down(r, step, code)), None)
        if rows is None:
            continue
        mine = (rows, code, phase(node))
        if not any(kind[r.entry[0]] == mine and _turns(r, known.shape(r.entry), len(rows)) for r in step.reads):
            kind[node] = mine
    return kind


def _goes_down(rows: Shape, step: Step, code: int) -> bool:
    """Tell whether a step goes down rows, and what it reads has a row for each, or the same for all."""
    n = len(rows)
    if step.space[:n] != rows or prod(step.space[n:]) * dtypes.SIZES[code] > LONGEST_ROW:
        return False
    return all(r.shape[:n] == rows or all(d == 1 for d in r.shape[:n]) for r in step.reads)


def _turns(read: Read, shape: Shape, n: int) -> bool:
    """Tell whether a value of the rows is read along other axes than its own: then each row needs all of them."""
    return read.shape[:n] != shape[:n] or _without_ones(read.shape[n:]) != _without_ones(shape[n:])


def _without_ones(row: Shape) -> Shape:
    """Return the shape of a row without the leading dimensions of size 1, which broadcasting adds anyway."""
    return next((row[i:] for i, d in enumerate(row) if d != 1), ())


def _without_reshapes(region: list[Node], steps: Steps) -> tuple[Node, ...]:
    """Leave out what only gives a value another shape at the ends of a region: outside, that costs nothing."""
    inside: dict[Node, None] = {}
    for node in region:
        if not steps[node].only_reshapes or any(n in inside for n, _ in node.inputs):
            inside[node] = None
    wanted: set[Node] = set()
    for node in reversed(list(inside)):
        if steps[node].only_reshapes and node not in wanted:
            del inside[node]
        else:
            wanted.update(n for n, _ in node.inputs)
    return tuple(inside)
