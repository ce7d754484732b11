"""Strips: reductions over the last axes and the formulas around them go down their rows together.

A layer normalization reads its input for the mean, again for the variance, and again for the result.  As a strip it does
all three on a few rows at a time, which stay in the cache, and what only the next stage reads never reaches memory.

A strip is a region of nodes over the same rows: the leading dimensions, which no reduction of the region runs over.  Its
stages are programs over all elements of the rows, and reductions of each row whose elements are a program themselves.
Imports :mod:`.ir`, :mod:`.infer`, :mod:`.fuse`, :mod:`.regions`, :mod:`mxop.formula` and :mod:`mxop.opdef`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from .. import dtypes
from ..formula import TABLE, Expr, const, input_, leaves, substitute, walk
from ..opdef import Attrs, Operator, Reduction
from .formulas import seeks_equals, specialised
from .fuse import outside
from .infer import Known
from .ir import NO_ATTRS, Entry, Graph, Node
from .recompute import calls_of
from .regions import convex_regions, in_order
from .rewrite import Moved, rebuilt

#: Fewest rows that are worth it, and most bytes of one row of one array.
FEWEST_ROWS, LONGEST_ROW = 16, 65536
#: Longest formula without costly parts that is computed again by each reader, and longest of all.
MAX_AGAIN, MAX_CALLS, MAX_OPERANDS, MAX_MEMBERS = 4, 48, 12, 64

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Stage:
    """One step on each block of rows.

    Attributes
    ----------
    roots : tuple of Expr
    inputs, outputs : tuple of int
        ``k`` is input `k` of the strip and, from the number of inputs on, its outputs; ``~k`` is local `k`.
    combine : str or None
        How a row is reduced to the (only) output; None for a program.
    shape : tuple of int
        What is gone through.
    """

    roots: tuple[Expr, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    combine: str | None
    shape: Shape


class Strip(Operator):
    """A region of a graph as one operator.

    Attributes
    ----------
    rows : int
    locals_ : list of (shape, type)
    stages : list of Stage
    members : tuple of Node
    entries : tuple of (Node, int)
        The entry of a member that each output stands for.
    """

    kind = "strip"
    entries: tuple[Entry, ...] = ()

    def __init__(self, rows: int, members: tuple[Node, ...]):
        super().__init__(None, name="_strip", arguments=(), module=__name__)
        self.rows, self.members = rows, members
        self.locals_: list[tuple[Shape, int]] = []
        self.stages: list[Stage] = []
        self.results: list[tuple[Shape, int]] = []

    def input_names(self, attrs: Attrs, n: int | None = None) -> tuple[str, ...]:
        return tuple(f"input{i}" for i in range(n or 0))

    def check_arity(self, attrs: Attrs, n: int) -> None:
        """Any number is right."""

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return len(self.results)

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        return ins, [shape for shape, _ in self.results]

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        return ins, [code for _, code in self.results]


def strips(graph: Graph, known: Known, phase: Callable[[Node], Any] = lambda node: 0) -> Graph:
    """Return the graph with its regions around row reductions made strips.

    Parameters
    ----------
    phase : callable
        Nodes of different phases (forward, backward) do not share a strip.
    """
    reduced = {node: _rows_of(node, known) for node in graph.nodes}
    prefixes = sorted({p for p in reduced.values() if p}, key=len, reverse=True)
    if not prefixes:
        return graph
    kind = {}
    for node in graph.nodes:
        prefix = reduced[node] or _rows_of_formula(node, known, prefixes)
        mine = (prefix, known.dtype((node, 0)), phase(node)) if prefix else None
        kind[node] = None if mine and _turns_rows(node, known, kind, mine) else mine
    found = [tuple(region[:MAX_MEMBERS]) for region in convex_regions(graph, kind)]
    units = [unit for unit in found if len(unit) > 1 and any(reduced[n] for n in unit)]
    readers = Counter(e for node in graph.nodes for e in node.inputs)
    readers.update(graph.outputs)
    moved: Moved = {}
    for unit in in_order(graph, units):
        if len(unit) > 1:
            _Writer(unit, kind[unit[0]][0], outside(unit, readers), readers, known).write(moved)
            continue
        new = rebuilt(unit[0], moved)
        if new is not unit[0]:
            known.copy(unit[0], new)
            for k in range(new.n_outputs):
                moved[unit[0], k] = (new, k)
    return Graph(moved.get(e, e) for e in graph.outputs)


def _rows_of(node: Node, known: Known) -> Shape | None:
    """Return the dimensions of the rows of a reduction over the last axes; None for any other node."""
    op = node.op
    if not isinstance(op, Reduction) or op.wide or node.control:
        return None
    shape, code = known.shape(node.inputs[0]), known.dtype(node.inputs[0])
    axes = op.axes(node.attrs, len(shape))
    n = len(shape) - len(axes)
    if code not in dtypes.FLOATS or known.dtype((node, 0)) != code or axes != tuple(range(n, len(shape))):
        return None
    rows, row = prod(shape[:n]), prod(shape[n:])
    if rows < FEWEST_ROWS or row < 2 or row * dtypes.SIZES[code] > LONGEST_ROW:
        return None
    return shape[:n]


def _rows_of_formula(node: Node, known: Known, prefixes: list[Shape]) -> Shape | None:
    """Return the rows that an elementwise node goes down, if its operands do."""
    if node.op is None or node.control or node.op.stateful or specialised(node, known) is None:
        return None
    if seeks_equals(node, known):
        return None
    shape = known.shape((node, 0))
    found = next((p for p in prefixes if shape[: len(p)] == p), None)
    if found is None or known.dtype((node, 0)) not in dtypes.FLOATS or 0 in shape:
        return None
    if prod(shape[len(found) :]) * dtypes.SIZES[known.dtype((node, 0))] > LONGEST_ROW:
        return None
    fits = all(_aligned(known.shape(e), shape, len(found)) for e in node.inputs)
    return found if fits else None


def _aligned(shape: Shape, space: Shape, n: int) -> bool:
    """Tell whether an operand has a row for each row of the space, or the same for all."""
    missing = len(space) - len(shape)
    leading = (1,) * min(missing, n) + shape[: max(n - missing, 0)]
    return leading == space[:n] or all(d == 1 for d in leading)


def _turns_rows(node: Node, known: Known, kind: dict[Node, Any], mine: Any) -> bool:
    """Tell whether a formula reads what has the same rows along another of its axes: then each row needs all of them."""
    if isinstance(node.op, Reduction):
        return False
    ndim = len(known.shape((node, 0)))
    return any(kind[e[0]] == mine and len(known.shape(e)) < ndim for e in node.inputs)


class _Writer:
    """Writes the stages of one strip.

    Every value of the region is an expression over leaves ``input_(i)``, where ``leaf[i]`` is an entry from outside, or a
    value that was stored.  A value is stored when others than one formula over its own elements read it and it is not
    cheap to compute again.
    """

    def __init__(self, unit: tuple[Node, ...], prefix: Shape, results: list[Entry], readers: Counter, known: Known):
        self.unit, self.results, self.readers, self.known = unit, results, readers, known
        self.op = Strip(prod(prefix), unit)
        self.value: dict[Entry, Expr] = {}
        self.leaf: list[Any] = []  # an entry, or ("local", number)
        self.inputs: list[Entry] = []
        self.stages: list[tuple[list[Expr], list[Any], str | None, Shape]] = []
        self.code = known.dtype((unit[0], 0))
        self.inner = {(node, k) for node in unit for k in range(node.n_outputs)}

    def write(self, moved: Moved) -> None:
        """Make the strip's node and note where the entries that others read went."""
        for node in self.unit:
            if isinstance(node.op, Reduction):
                self._reduction(node)
            else:
                self._formula(node)
        for entry in self.results:
            self._store(entry)
        op, last = self.op, self.unit[-1]
        op.entries = tuple(self.results)
        op.results = [(self.known.shape(e), self.known.dtype(e)) for e in self.results]
        self._number()
        inputs = tuple(moved.get(e, e) for e in self.inputs)
        new = Node(op, NO_ATTRS, inputs, f"{last.name}_strip", None, last.source, last.order)
        self.known.put(new, [s for s, _ in op.results], [c for _, c in op.results])
        for k, entry in enumerate(self.results):
            moved[entry] = (new, k)

    # ---- values -----------------------------------------------------------------------------------------------------
    def _formula(self, node: Node) -> None:
        space = self.known.shape((node, 0))
        operands = {input_(i): self._operand(e, space) for i, e in enumerate(node.inputs)}
        roots = substitute(specialised(node, self.known), operands)
        for k, root in enumerate(roots):
            self.value[node, k] = root
            if self._is_worth_storing((node, k), root):
                self._store((node, k))

    def _reduction(self, node: Node) -> None:
        """Reduce each row; the result is what the final formula makes of it."""
        op: Reduction = node.op  # type: ignore[assignment]
        map_, final = op.formulas(node.attrs)
        space = self.known.shape(node.inputs[0])
        root = substitute(map_.roots, {input_(0): self._operand(node.inputs[0], space)})[0]
        local = self._local(self.known.shape((node, 0)), dtypes.COMPUTED_AS.get(self.code, self.code))
        self.stages.append(([root], [local], op.combine.name, space))
        value = self._leaf(local)
        if final is not None:
            count = prod(space) // self.op.rows
            value = substitute(final.roots, {input_(0): value, input_(1): const(float(count))})[0]
        self.value[node, 0] = value

    def _operand(self, entry: Entry, space: Shape) -> Expr:
        """Return an entry as a formula over `space` reads it."""
        if entry not in self.value:
            return self._leaf(entry)
        value = self.value[entry]
        if self.known.shape(entry) != space and value.args:
            self._store(entry)
        return self.value[entry]

    def _leaf(self, what: Any) -> Expr:
        if what not in self.leaf:
            self.leaf.append(what)
        return input_(self.leaf.index(what))

    def _is_worth_storing(self, entry: Entry, root: Expr) -> bool:
        calls = calls_of((root,))
        if calls > MAX_CALLS or len(set(leaves((root,)))) > MAX_OPERANDS:
            return True
        if self.readers[entry] <= 1:
            return False
        return calls > MAX_AGAIN or any(n.args and TABLE[n.label].costly for n in walk((root,)))

    # ---- storing ----------------------------------------------------------------------------------------------------
    def _local(self, shape: Shape, code: int) -> Any:
        self.op.locals_.append((shape, code))
        return ("local", len(self.op.locals_) - 1)

    def _store(self, entry: Entry) -> None:
        """Compute a value now, into a result of the strip or a local; from now on it is read from there."""
        root, shape = self.value[entry], self.known.shape(entry)
        target: Any = ("result", entry) if entry in self.results else self._local(shape, self.code)
        if root.kind == "input" and self.leaf[root.label] == target:  # stored before
            return
        read = {self.leaf[n.label] for n in leaves((root,)) if n.kind == "input"}
        if self.stages:
            roots, outputs, combine, space = self.stages[-1]
            if combine is None and space == shape and not read & set(outputs) and len(outputs) < 8:
                roots.append(root)
                outputs.append(target)
                self.value[entry] = self._leaf(target)
                return
        self.stages.append(([root], [target], None, shape))
        self.value[entry] = self._leaf(target)

    def _number(self) -> None:
        """Say in numbers what each stage reads and writes."""
        used = {n.label for roots, *_ in self.stages for n in leaves(tuple(roots)) if n.kind == "input"}
        self.inputs = [what for i, what in enumerate(self.leaf) if i in used and isinstance(what[0], Node)]
        place: dict[Any, int] = {entry: i for i, entry in enumerate(self.inputs)}
        place |= {("result", e): len(self.inputs) + i for i, e in enumerate(self.results)}
        place |= {("local", i): ~i for i in range(len(self.op.locals_))}
        for roots, outputs, combine, shape in self.stages:
            read = sorted({n.label for n in leaves(tuple(roots)) if n.kind == "input"})
            renumbered = {input_(old): input_(new) for new, old in enumerate(read)}
            self.op.stages.append(
                Stage(
                    tuple(substitute(tuple(roots), renumbered)),
                    tuple(place[self.leaf[label]] for label in read),
                    tuple(place[target] for target in outputs),
                    combine,
                    shape,
                )
            )
