"""The operator of a row kernel, and the writer of its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

from .._core.row_kernels import overwritable
from .._kernels.machine import MX_L1_BYTES, MX_LONG_ROW
from ..formula import SCALAR_OPS, TABLE, Expr, input_, leaves, substitute, walk
from ..opdef import Attrs, Operator, registry
from ..support import dtypes
from .infer import Known
from .ir import NO_ATTRS, Entry, Node
from .recompute import calls_of
from .rewrite import Moved
from .rowwise import Read, Shape, Step, Turn

#: Most calls of primitives in a formula without costly parts that each reader recomputes: of rows that fit in the L1 cache,
#: and of longer ones.  Then the most calls and operands of any formula.
MAX_RECOMPUTED, MAX_RECOMPUTED_LONG, MAX_CALLS, MAX_OPERANDS = 4, 12, 48, 12
#: Most parts of a scalar that is computed apart from the elements of a long row.
MAX_SCALAR = 12


class Stage(NamedTuple):
    """A formula or reduction that a row kernel applies to each block of rows.

    Attributes
    ----------
    roots : tuple of Expr
    inputs, outputs : tuple of int
        ``k`` is an operand of the row kernel: its inputs, then its outputs.  ``~k`` is local `k`.
    combine : str or None
        How a row is reduced to the (only) output; None for a formula.  ``"columns"``: all rows are added up to the second
        output; the first, a local, is workspace.
    shape : tuple of int
        The iteration space.
    """

    roots: tuple[Expr, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    combine: str | None
    shape: Shape


class Strip(Operator):
    """A row kernel: a region of a graph as one operator.

    All its values have the same number of dimensions: first those of the rows.

    Attributes
    ----------
    rows : int
    locals_ : list of (shape, type code)
    stages : list of Stage
    turn : Turn
        The permutation of axes through which shapes are read.
    shapes : list of tuple
        Shapes of the inputs and outputs for the stages.
    seen : list of tuple
        The same shapes without the dimensions of size 1 that align them: permuted by `turn`.
    members : tuple of Node
    entries : tuple of (Node, int)
        The entry of a member that is the value of each output.
    overwrites : tuple of list of int
        For each output the inputs in whose place it may be computed, if nothing else reads them later.
    """

    kind = "strip"
    entries: tuple[Entry, ...] = ()
    overwrites: tuple[list[int], ...] = ()

    def __init__(self, rows: int, members: tuple[Node, ...], turn: Turn):
        super().__init__(None, name="_strip", arguments=(), module=__name__)
        self.rows, self.members, self.turn = rows, members, turn
        self.locals_: list[tuple[Shape, int]] = []
        self.stages: list[Stage] = []
        self.shapes: list[Shape] = []
        self.seen: list[Shape] = []
        self.results: list[tuple[Shape, int]] = []

    def input_names(self, attrs: Attrs, n: int | None = None) -> tuple[str, ...]:
        return tuple(f"input{i}" for i in range(n or 0))

    def check_arity(self, attrs: Attrs, n: int) -> None:
        """Accept any number of inputs."""

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return len(self.results)

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        return ins, [shape for shape, _ in self.results]

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        return ins, [code for _, code in self.results]


def _mentioned(step: Step) -> Iterator[Entry]:
    """Yield the entries that each formula of a step reads."""
    for root in step.roots:
        yield from [step.reads[n.label].entry for n in leaves((root,)) if n.kind == "input"]


class Writer:
    """Writes the stages of one row kernel.

    Each value of the region is an expression over leaves ``input_(i)``, where ``leaf[i]`` is a read from outside or a stored
    value.  A value is stored if it has other readers than one formula over its elements, and is not cheap to recompute.

    Parameters
    ----------
    unit : tuple of Node
    steps : dict of Node to Step
    rows : tuple of int
        The dimensions of the rows.
    readers : Counter
        The number of readers of each entry in the graph.  Entries that nodes outside of the unit read are results.
    """

    def __init__(
        self, unit: tuple[Node, ...], steps: dict[Node, Step], rows: Shape, readers: Counter, known: Known, turn: Turn
    ):
        self.unit, self.steps, self.known, self.turn = unit, steps, known, turn
        inside = Counter(r.entry for node in unit for r in steps[node].reads)
        values = [(node, k) for node in unit for k in range(node.n_outputs)]
        self.results = [e for e in values if readers[e] > inside[e]]
        self.uses = Counter(e for node in unit for e in _mentioned(steps[node]))  # by formulas
        self.uses.update(self.results)
        self.n_rows = len(rows)
        self.n_inner = max(len(steps[node].space) for node in unit) - len(rows)
        self.op = Strip(prod(rows), unit, turn)
        self.code = known.dtype((unit[0], 0))
        row = max(prod(self._aligned(steps[node].space)[self.n_rows :]) for node in unit)
        self.long = row >= MX_LONG_ROW and self.code in (dtypes.FLOAT32, dtypes.FLOAT64)
        self.value: dict[Entry, Expr] = {}
        self.leaf: list[Any] = []  # a Read, ("local", number) or ("result", entry)
        self.stages: list[tuple[list[Expr], list[Any], str | None, Shape]] = []

    def write(self, moved: Moved) -> None:
        """Make the node of the row kernel, and map the results of the region to its outputs in `moved`."""
        for node in self.unit:
            if self.steps[node].combine is None:
                self._formula(node, self.steps[node])
            elif self.steps[node].columns:
                self._columns(node, self.steps[node])
            else:
                self._reduction(node, self.steps[node])
        for entry in self.results:
            if not self.steps[entry[0]].columns:
                self._store(entry)
        self._put_results_last()
        op, last = self.op, self.unit[-1]
        op.entries = tuple(self.results)
        op.results = [(self.known.shape(e), self.known.dtype(e)) for e in self.results]
        read = self._number_operands()
        op.seen = [r.shape for r in read] + [self.turn(self.known.shape(e)) for e in self.results]
        op.shapes = [self._aligned(r.shape) for r in read] + [self._result_shape(e) for e in self.results]
        if self.known.on_cpu:
            n = len(read)
            op.overwrites = tuple(sorted(i for i in overwritable(op.stages, n + k) if i < n) for k in range(len(op.results)))
        inputs = tuple(moved.get(r.entry, r.entry) for r in read)
        new = Node(op, NO_ATTRS, inputs, f"{last.name}_strip", None, last.source, last.order)
        self.known.put(new, [s for s, _ in op.results], [c for _, c in op.results])
        for k, entry in enumerate(self.results):
            moved[entry] = self._mean((new, k), entry) if self.steps[entry[0]].columns else (new, k)

    def _mean(self, total: Entry, entry: Entry) -> Entry:
        """Return a sum of rows, divided by their number if the reduction is a mean."""
        if self.steps[entry[0]].final is None:
            return total
        op, node = registry.get("_div_scalar"), entry[0]
        attrs = op.parse({"scalar": self.op.rows})
        mean = Node(op, attrs, (total,), f"{node.name}_mean", None, node.source, node.order)
        self.known.put(mean, [self.known.shape(entry)], [self.known.dtype(entry)])
        return mean, 0

    # ---- shapes -----------------------------------------------------------------------------------------------------
    def _aligned(self, shape: Shape) -> Shape:
        """Return a shape with the rank of the row kernel: dimensions of the rows first, those within a row last."""
        n = self.n_rows
        return shape[:n] + (1,) * (self.n_rows + self.n_inner - len(shape)) + shape[n:]

    def _shape_of(self, entry: Entry) -> Shape:
        return self._aligned(self.turn(self.known.shape(entry)))

    def _result_shape(self, entry: Entry) -> Shape:
        """Return the shape of a result; a sum over all rows has the shape of one row."""
        step = self.steps[entry[0]]
        return (1,) * self.n_rows + self._aligned(step.space)[self.n_rows :] if step.columns else self._shape_of(entry)

    # ---- values -----------------------------------------------------------------------------------------------------
    def _formula(self, node: Node, step: Step) -> None:
        for k, root in enumerate(self._over_leaves(step)):
            self.value[node, k] = root
            if self._is_worth_storing((node, k), root) and not self._is_scalar((node, k)):
                self._store((node, k))

    def _reduction(self, node: Node, step: Step) -> None:
        """Add a stage that reduces each row; the value is the final formula of its result."""
        (root,) = self._over_leaves(step)
        negated = self.long and step.combine == "add" and root.args and root.label == "neg"
        if negated:  # negate the sum, not each element
            root = root.args[0]
        entry = (node, 0)
        compute = dtypes.FLOAT64 if step.wide else dtypes.COMPUTED_AS.get(self.code, self.code)
        local = self._local(self._shape_of(entry), compute)
        self.stages.append(([root], [local], step.combine, self._aligned(step.space)))
        value = -self._leaf(local) if negated else self._leaf(local)
        self.value[entry] = value if step.final is None else substitute((step.final,), {input_(0): value})[0]
        if step.wide and self.code != compute:  # else formulas that read it would be computed in float64 too
            self._store(entry)

    def _columns(self, node: Node, step: Step) -> None:
        """Add up all rows."""
        space = self._aligned(step.space)
        self.stages.append((self._over_leaves(step), [self._local(space, self.code), ("result", (node, 0))], "columns", space))

    def _over_leaves(self, step: Step) -> list[Expr]:
        """Return a step's formulas over leaves."""
        space = self._aligned(step.space)
        return substitute(step.roots, {input_(i): self._operand(r, space) for i, r in enumerate(step.reads)})

    def _operand(self, read: Read, space: Shape) -> Expr:
        """Return the expression by which a formula over `space` reads a value."""
        if read.entry not in self.value:
            return self._leaf(read if self.turn.order else Read(read.entry, self._aligned(read.shape)))
        if self._shape_of(read.entry) != space and self.value[read.entry].args and not self._is_scalar(read.entry):
            self._store(read.entry)
        return self.value[read.entry]

    def _is_scalar(self, entry: Entry) -> bool:
        """Return whether a value is a scalar of each row that readers recompute once a row, by short arithmetic of scalars."""
        parts = list(walk((self.value[entry],)))
        if not self.long or entry in self.results or len(parts) > MAX_SCALAR:
            return False
        if any(n.args and n.label not in SCALAR_OPS for n in parts):
            return False
        return all(prod(self._leaf_shape(n)[self.n_rows :]) == 1 for n in parts if n.kind == "input")

    def _leaf_shape(self, leaf: Expr) -> Shape:
        what = self.leaf[leaf.label]
        if isinstance(what, Read):
            return self._aligned(what.shape)
        return self.op.locals_[what[1]][0] if what[0] == "local" else self._shape_of(what[1])

    def _leaf(self, what: Any) -> Expr:
        if what not in self.leaf:
            self.leaf.append(what)
        return input_(self.leaf.index(what))

    def _is_worth_storing(self, entry: Entry, root: Expr) -> bool:
        calls = calls_of((root,))
        if calls > MAX_CALLS or len(set(leaves((root,)))) > MAX_OPERANDS:
            return True
        if self.uses[entry] <= 1:
            return False
        row = prod(self._shape_of(entry)[self.n_rows :]) * dtypes.SIZES[self.code]
        limit = MAX_RECOMPUTED_LONG if row > 2 * MX_L1_BYTES else MAX_RECOMPUTED
        return calls > limit or any(n.args and TABLE[n.label].costly for n in walk((root,)))

    # ---- storing ----------------------------------------------------------------------------------------------------
    def _local(self, shape: Shape, code: int) -> Any:
        self.op.locals_.append((shape, code))
        return ("local", len(self.op.locals_) - 1)

    def _store(self, entry: Entry) -> None:
        """Add a stage that computes a value into a result or a local; later formulas read it there."""
        root, shape = self.value[entry], self._shape_of(entry)
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

    def _put_results_last(self) -> None:
        """Move the formulas whose values no other stage reads to the end: results may then overwrite what the others read."""
        read = {self.leaf[n.label] for roots, *_ in self.stages for n in leaves(tuple(roots)) if n.kind == "input"}
        self.stages.sort(key=lambda stage: stage[2] is None and read.isdisjoint(stage[1]))

    def _number_operands(self) -> list[Read]:
        """Set `op.stages`, whose operands are numbers; return the reads from outside."""
        used = {n.label for roots, *_ in self.stages for n in leaves(tuple(roots)) if n.kind == "input"}
        inputs = [what for i, what in enumerate(self.leaf) if i in used and isinstance(what, Read)]
        place: dict[Any, int] = {read: i for i, read in enumerate(inputs)}
        place |= {("result", e): len(inputs) + i for i, e in enumerate(self.results)}
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
        return inputs
