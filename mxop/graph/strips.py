"""Row kernels: reductions over the last axes, and the formulas around them, are fused into one operator (`Strip`).

A layer normalization reads its input for the mean, for the variance, and for the result.  A row kernel computes all three on
a few rows at a time, which stay in the cache, and values that only the next stage reads are never written to memory.  The
gradient of a layer normalization, which broadcasts sums over rows back to the rows, is a row kernel too.  A batch
normalization is one if its channels are seen as rows.

A row kernel is a region of nodes over the same rows: the leading dimensions that no reduction of the region removes, or
another dimension that is permuted to the front.  :mod:`.rowwise` analyzes nodes; :mod:`.stages` writes a region as an operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

from ..support import dtypes
from .infer import Known
from .ir import Graph, Node
from .recompute import recompute_per_region
from .regions import Unit, convex_regions
from .rewrite import Moved, merged
from .rowwise import IDENTITY, LONGEST_ROW, Read, Shape, Step, Turn, reduces_rows, step_of
from .stages import Writer
from .traits import states_of

MAX_MEMBERS = 64
MAX_SEARCHED = 200  # nodes that a search for a dependence visits

Steps = dict[Node, Step]
Phase = Callable[[Node], Any]


def strips(
    graph: Graph,
    known: Known,
    phases: Callable[[Graph], Phase] = lambda graph: lambda node: 0,
    turn: Turn = IDENTITY,
) -> Graph:
    """Return the graph with its regions around row reductions fused into row kernels.

    Parameters
    ----------
    phases : callable
        ``phases(graph)(node)`` returns the phase (forward, backward) of a node; a row kernel has nodes of one phase.
    turn : Turn
        A permutation of axes: shapes are read through it.
    """
    if not any(reduces_rows(node, known, turn) for node in graph.nodes):
        return graph
    steps, kind, regions = _analyzed(graph, known, phases(graph), turn)
    again = recompute_per_region(graph, regions, {n for n in steps if steps[n].repeats}, known, phases(graph))
    if again is not graph:
        graph = again
        steps, kind, regions = _analyzed(graph, known, phases(graph), turn)
    units = [unit for unit in regions if len(unit) > 1 and any(_is_of_rows(steps[n], len(kind[n][0])) for n in unit)]
    units = _with_siblings(graph, units, steps, kind)
    if not units:
        return graph
    readers = _readers(graph, units, steps)

    def write(unit: Unit, moved: Moved) -> None:
        Writer(tuple(unit), steps, kind[unit[0]][0], readers, known, turn).write(moved)

    return merged(graph, units, write, known)


def _analyzed(graph: Graph, known: Known, phase: Phase, turn: Turn) -> tuple[Steps, dict[Node, Any], list[list[Node]]]:
    """Return the row step of each node, its kind (rows, type, phase), and the regions of nodes of one kind."""
    states = states_of(graph)
    steps: Steps = {}
    for node in graph.nodes:
        step = step_of(node, known, turn)
        if step is None or (step.only_reads and node.inputs[0][0] in states):  # the node fixes when the state is read
            continue
        steps[node] = step.through_views(steps)
    kind = _kinds(graph, steps, known, phase, turn)
    # A sum over all rows is complete only after the last row, so its readers are outside of the region.
    inner = {node: None if node in steps and steps[node].columns else k for node, k in kind.items()}
    regions = [_without_reshapes(region[:MAX_MEMBERS], steps) for region in convex_regions(graph, inner)]
    return steps, kind, _with_columns(graph, regions, steps, kind)


def _with_columns(graph: Graph, units: list[list[Node]], steps: Steps, kind: dict[Node, Any]) -> list[list[Node]]:
    """Add sums over columns to the region that computes their operand, if it has a row reduction, or else no other reader.

    Reading a stored operand again costs little, and a formula can overwrite its operand, which a row kernel cannot.
    """
    unit_of = {node: unit for unit in units for node in unit}
    others = set(graph.outputs)  # entries with readers in other regions that are no column sums
    for node in graph.nodes:
        if node not in steps or not steps[node].columns:
            others.update(e for e in node.below() if unit_of.get(node, node) is not unit_of.get(e[0]))
    for node in graph.nodes:
        if node in steps and steps[node].columns and kind[node] is not None:
            entry = steps[node].reads[0].entry
            unit = unit_of.get(entry[0])
            if unit is None or kind[entry[0]] != kind[node]:
                continue
            if entry not in others or any(steps[n].combine and not steps[n].columns for n in unit):
                unit.append(node)
    return units


def _with_siblings(graph: Graph, units: list[list[Node]], steps: Steps, kind: dict[Node, Any]) -> list[tuple[Node, ...]]:
    """Add reductions that are in no region to those, or to regions, that read the same array."""
    members = {node: unit for unit in units for node in unit}
    joined = set(members)
    readers: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for n in node.needs():
            readers.setdefault(n, []).append(node)
    where: dict[Any, list[Node]] = {}  # the unit that reads an array by the same rows
    for node, unit in members.items():
        where |= {(kind[node], r.entry): unit for r in steps[node].reads if r.shape == steps[node].space}
    for node in graph.nodes:
        if node in members or kind[node] is None or not steps[node].combine:
            continue
        others = where.setdefault((kind[node], steps[node].reads[0].entry), [])
        alone = joined.isdisjoint(others)  # a unit of such readers only does not depend on it
        if len(others) < MAX_MEMBERS and (alone or not _leads_to(node, others, readers, members)):
            others.append(node)
            members[node] = others
    place = {node: i for i, node in enumerate(graph.nodes)}
    found = {id(unit): unit for unit in members.values() if len(unit) > 1}
    return [tuple(sorted(unit, key=place.__getitem__)) for unit in found.values()]


def _leads_to(node: Node, unit: list[Node], readers: dict[Node, list[Node]], members: dict[Node, list[Node]]) -> bool:
    """Return whether a unit may depend on a node; the search gives up after `MAX_SEARCHED` nodes and returns True."""
    waiting, seen = [node], {node}
    while waiting and len(seen) < MAX_SEARCHED:
        for reader in readers.get(waiting.pop(), ()):
            found = [n for n in members.get(reader, [reader]) if n not in seen]
            if members.get(reader) is unit:
                return True
            seen.update(found)
            waiting += found
    return bool(waiting)


def _readers(graph: Graph, units: list[tuple[Node, ...]], steps: Steps) -> Counter:
    """Count the readers of each entry, without the members of row kernels that need its shape only."""
    members = {node for unit in units for node in unit}
    readers = Counter(r.entry for node in members for r in steps[node].reads)
    readers.update(e for node in graph.nodes if node not in members for e in node.below())
    readers.update(graph.outputs)
    return readers


def _kinds(graph: Graph, steps: Steps, known: Known, phase: Phase, turn: Turn) -> dict[Node, Any]:
    """Return rows, type and phase of each node that can be computed by the rows of some reduction; None for others."""
    kind: dict[Node, Any] = dict.fromkeys(graph.nodes)
    found = sorted({step.rows for step in steps.values() if step.rows is not None}, key=len, reverse=True)
    for node in graph.nodes:
        step = steps.get(node)
        if step is None:
            continue
        code = known.dtype((node, 0))
        rows = next((r for r in ([step.rows] if step.combine else found) if _fits_rows(r, step, code, known.on_cpu)), None)
        if rows is None or (len(turn.order) not in (0, len(step.space)) and prod(step.space) != prod(rows)):
            continue  # shapes of other ranks are not permuted: only one value for each row is possible
        mine = (rows, code, phase(node))
        made = [r for r in step.reads if kind[r.entry[0]] == mine and not steps[r.entry[0]].columns]  # same kernel
        if not any(_reads_other_rows(r, turn(known.shape(r.entry)), len(rows)) for r in made):
            kind[node] = mine
    return kind


def _fits_rows(rows: Shape, step: Step, code: int, partial: bool) -> bool:
    """Return whether a step can be computed by `rows`: operands have one for each, for all, or, if `partial`, for some."""
    n = len(rows)
    if step.space[:n] != rows or prod(step.space[n:]) * dtypes.SIZES[code] > LONGEST_ROW:
        return False
    if partial:  # GPU kernels address a row by its index only
        return all(d in (1, e) for r in step.reads for d, e in zip(r.shape[:n], rows, strict=True))
    return all(r.shape[:n] == rows or all(d == 1 for d in r.shape[:n]) for r in step.reads)


def _is_of_rows(step: Step, n: int) -> bool:
    """Return whether a step reduces rows, of `n` dimensions, or repeats one value of each, or one row; other values are left to
    row kernels over theirs, such as channels."""
    return step.combine is not None or (
        step.repeats and step.reads[0].shape[n:] in (step.space[n:], (1,) * len(step.space[n:]))
    )


def _reads_other_rows(read: Read, shape: Shape, n: int) -> bool:
    """Return whether a value is read along other axes than it is computed along, so that a row depends on other rows."""
    return read.shape[:n] != shape[:n] or _without_ones(read.shape[n:]) != _without_ones(shape[n:])


def _without_ones(row: Shape) -> Shape:
    """Return the shape of a row without leading dimensions of size 1, which broadcasting adds."""
    return next((row[i:] for i, d in enumerate(row) if d != 1), ())


def _without_reshapes(region: list[Node], steps: Steps) -> list[Node]:
    """Return a region without the reshapes at its ends, which cost nothing outside of it."""
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
    return list(inside)
