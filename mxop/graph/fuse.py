"""Fusion: regions of elementwise nodes become one formula, computed in one pass over memory.

A region has one iteration space (the shape of its results) and one element type.  Limits keep a formula small enough for
the interpreter's registers and the cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from ..formula import Expr, composed, const, walk
from ..opdef import Attrs, Elementwise, Formula
from .constants import fill_of
from .formulas import seeks_equals, specialised
from .infer import Known
from .ir import NO_ATTRS, Entry, Graph, Node
from .recompute import calls_of
from .regions import convex_regions
from .rewrite import Moved, merged

MAX_INPUTS, MAX_OUTPUTS, MAX_INSTRUCTIONS = 12, 8, 64


def _inputs_of_region(*inputs):
    """Compute several elementwise operators as one."""


class Fused(Elementwise):
    """A region of elementwise nodes as one operator.

    Attributes
    ----------
    roots : tuple of Expr
    members : tuple of Node
        The nodes that were fused.
    shape : tuple of int
    code : int
        Shape and type of every output.
    entries : tuple of (Node, int)
        The entry of a member that is the value of each output.
    """

    entries: tuple[Entry, ...] = ()

    def __init__(self, roots: tuple[Expr, ...], members: tuple[Node, ...], shape: tuple[int, ...], code: int):
        super().__init__(_inputs_of_region, name="_fused", broadcast=True, differentiable=False, module=__name__)
        self.roots, self.members, self.shape, self.code = roots, members, shape, code

    def formula(self, attrs: Attrs, n_inputs: int) -> Formula:
        return Formula(self.roots, ())

    def check_arity(self, attrs: Attrs, n: int) -> None:
        """Accept any number of inputs: a region of constants has none."""

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        return ins, [self.shape] * len(self.roots)

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        return ins, [self.code] * len(self.roots)


class Piece(NamedTuple):
    """The formulas of a node that can be fused.

    Attributes
    ----------
    kind : tuple
        Shape, type and phase: equal for all nodes of a region.
    roots : tuple of Expr
        The formula of each output.
    calls : int
        Calls of primitives in these.
    """

    kind: tuple
    roots: tuple[Expr, ...]
    calls: int


Pieces = dict[Node, "Piece | None"]


def fuse(graph: Graph, known: Known, phase: Callable[[Node], int] = lambda node: 0) -> Graph:
    """Return the graph with its elementwise regions fused.

    Parameters
    ----------
    phase : callable
        Nodes of different phases (forward, backward) are not fused.
    """
    readers = readers_of(graph)
    pieces: Pieces = {node: _piece(node, known, phase) for node in graph.nodes}
    regions = convex_regions(graph, {node: piece and piece.kind for node, piece in pieces.items()})
    units = [members for region in regions for members in _chunks(region, readers, pieces)]
    if not units:
        return graph
    return merged(graph, units, lambda unit, moved: _merge(unit, outside(unit, readers), pieces, moved, known), known)


def readers_of(graph: Graph) -> Counter:
    """Count the readers of each entry; a control dependency counts as a reader of the first output."""
    readers = Counter(e for node in graph.nodes for e in node.below())
    readers.update(graph.outputs)
    return readers


def _piece(node: Node, known: Known, phase: Callable[[Node], int]) -> Piece | None:
    """Return the formulas of a node; None if it cannot be fused."""
    op = node.op
    if not isinstance(op, Elementwise) or not node.inputs or node.control or op.stateful or seeks_equals(node, known):
        return None
    shape, code = known.shape((node, 0)), known.dtype((node, 0))
    roots = specialised(node, known)
    return None if roots is None else Piece((shape, code, phase(node)), roots, calls_of(roots))


def _chunks(region: list[Node], readers: dict[Entry, int], pieces: Pieces) -> list[tuple[Node, ...]]:
    """Split a region, in order of execution, into chunks within the limits."""
    chunks: list[list[Node]] = [[]]
    size = _Size(readers)
    for node in region:
        if not size.admits(node, pieces[node].calls):
            chunks.append([])
            size = _Size(readers)
            size.admits(node, pieces[node].calls)
        chunks[-1].append(node)
    return [tuple(c) for c in chunks if len(c) > 1 or _has_another_formula(c[0], pieces)]


def _has_another_formula(node: Node, pieces: Pieces) -> bool:
    """Return whether parameter values simplify the formula of a node: ``x**a`` is ``square(x)`` for 2."""
    formula = node.op.formula(node.attrs, len(node.inputs))  # type: ignore[union-attr]
    return bool(formula.params) and _calls(formula.roots) != _calls(pieces[node].roots)  # type: ignore[union-attr]


@lru_cache(4096)
def _calls(roots: tuple[Expr, ...]) -> Counter:
    return Counter(n.label for n in walk(roots) if n.kind == "call")


class _Size:
    """Inputs, outputs and instructions of a chunk that grows up to the limits."""

    def __init__(self, readers: dict[Entry, int]) -> None:
        self.readers = readers
        self.inputs: set[Entry] = set()
        self.pending: dict[Entry, int] = {}  # results, with their numbers of readers outside of the chunk
        self.outputs = 0  # results with readers outside of the chunk
        self.instructions = 0

    def admits(self, node: Node, calls: int) -> bool:
        """Add a node; return whether the chunk is within the limits, as with its first node it always is."""
        first = not self.instructions
        for entry in node.inputs:
            left = self.pending.get(entry)
            if left is None:
                self.inputs.add(entry)
            else:
                self.pending[entry] = left - 1
                self.outputs -= left == 1
        for k in range(node.n_outputs):
            left = self.pending[node, k] = self.readers.get((node, k), 0)
            self.outputs += left > 0
        self.instructions += max(calls, 1)
        return first or (
            len(self.inputs) <= MAX_INPUTS and self.outputs <= MAX_OUTPUTS and self.instructions <= MAX_INSTRUCTIONS
        )


def outside(unit: tuple[Node, ...], readers: dict[Entry, int]) -> list[Entry]:
    """Return the entries of a chunk that nodes outside of it read."""
    inside = Counter(e for node in unit for e in node.inputs)
    results = [(node, k) for node in unit for k in range(node.n_outputs)]
    return [e for e in results if readers.get(e, 0) > inside[e]]


def _merge(unit: tuple[Node, ...], results: list[Entry], pieces: Pieces, moved: Moved, known: Known) -> None:
    """Fuse a chunk into one node, and map its results to the outputs of that node in `moved`."""
    inputs: list[Entry] = []
    number: dict[Entry, int] = {}  # of values: results of the unit are 0, 1, ..., its inputs -1, -2, ...
    calls = []
    made = 0
    last, shape, code = unit[-1], known.shape(results[0]), known.dtype(results[0])

    def inlined(entry: Entry) -> bool:
        """Make a constant array of equal elements a constant of the formula."""
        nonlocal made
        value = fill_of(entry, known) if known.dtype(entry) == code else None
        if value is not None:
            calls.append(((const(value),), ()))
            number[entry] = made
            made += 1
        return value is not None

    def operand(entry: Entry) -> int:
        entry = moved.get(entry, entry)
        if entry not in number and not inlined(entry):
            inputs.append(entry)
            number[entry] = -len(inputs)
        return number[entry]

    for node in unit:
        operands = tuple([operand(e) for e in node.inputs])
        calls.append((pieces[node].roots, operands))
        for k in range(node.n_outputs):
            number[node, k] = made
            made += 1
    roots, used, places = composed(tuple(calls), tuple([number[e] for e in results]))
    op = Fused(roots, unit, shape, code)
    op.entries = tuple(results[places.index(k)] for k in range(len(roots)))
    new = Node(op, NO_ATTRS, tuple(inputs[i] for i in used), f"{last.name}_fused", None, last.source, last.order)
    known.put(new, [shape] * len(roots), [code] * len(roots))
    for entry, place in zip(results, places, strict=True):
        moved[entry] = (new, place)
