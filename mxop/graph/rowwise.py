"""Row steps: a node as a formula on the elements of rows, or as a reduction of each row.

Rows are the leading dimensions of a shape, or of a permuted shape, as when the channels of images are put first.  Operators of
gradients are row steps too: ``_unbroadcast`` can be a sum of each row, and ``_broadcast_reduced``, which repeats a value
of each row for its elements, is a formula.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NamedTuple

from .._kernels.machine import MX_STREAM_BYTES, MX_SUM_CHUNK, MX_SUM_NARROW, MX_SUM_TASKS
from ..formula import Expr, input_, keys_of, substitute
from ..opdef import Elementwise, Kernel, Reduction, contiguous_strides, infer
from ..opdef.symbolic import leaf_of
from ..support import dtypes
from .formulas import seeks_equals, specialised
from .infer import Known
from .ir import Entry, Graph, Node
from .traits import strided

#: Fewest rows, most bytes of one row of one array, and fewest elements of a contiguous part of a permuted row.  Rows larger
#: than the caches are read again for each stage, but values between stages of formulas are never written to memory.
FEWEST_ROWS, LONGEST_ROW, SHORTEST_PART = MX_SUM_TASKS, MX_STREAM_BYTES, MX_SUM_NARROW
#: Least and most elements of rows that are added up: their sums, in float64, should fit in a cache.
SHORTEST_SUMS, LONGEST_SUMS = 2 * MX_SUM_NARROW, MX_SUM_CHUNK // 2
#: Fewest rows that occupy a GPU; for at most so many elements only the number of kernels matters.
FEWEST_ON_GPU, SMALL = 256, 1 << 16

Shape = tuple[int, ...]


class Turn(NamedTuple):
    """A permutation of axes, applied to shapes of as many dimensions as `order` has; other shapes stay as they are."""

    order: Shape = ()

    def __call__(self, shape: Shape) -> Shape:
        return tuple([shape[i] for i in self.order]) if len(shape) == len(self.order) else shape

    def back(self, shape: Shape) -> Shape:
        """Return the shape whose permutation is `shape`."""
        return tuple([d for _, d in sorted(zip(self.order, shape, strict=True))])


IDENTITY = Turn()


class Read(NamedTuple):
    """A value that a step reads.

    Attributes
    ----------
    entry : (Node, int)
    shape : tuple of int
        The entry's shape with dimensions of size 1 added or removed, so that each dimension is that of the step's space or 1;
        then permuted.
    """

    entry: Entry
    shape: Shape


class Step(NamedTuple):
    """A node as a formula or reduction over rows.

    Attributes
    ----------
    reads : tuple of Read
    roots : tuple of Expr
        Formulas; ``input_(i)`` is an element of read `i`.
    space : tuple of int
        The iteration space; for a formula the shape of the results.
    rows : tuple of int, optional
        For a reduction, the leading dimensions that it keeps.  The attributes below are set for reductions only.
    combine : str, optional
        How the elements of a row are combined.
    final : Expr, optional
        The formula of the result, where ``input_(0)`` is the combined value; for `columns`, computed outside of the row kernel.
    wide : bool
        Whether the reduction is computed in float64.
    columns : bool
        Whether the rows are added to each other instead, element by element.
    """

    reads: tuple[Read, ...]
    roots: tuple[Expr, ...]
    space: Shape
    rows: Shape | None = None
    combine: str | None = None
    final: Expr | None = None
    wide: bool = False
    columns: bool = False

    @property
    def only_reads(self) -> bool:
        """Whether this is a copy with another shape, reshaped or broadcast."""
        return self.combine is None and len(self.roots) == 1 and self.roots[0] is input_(0)

    @property
    def repeats(self) -> bool:
        """Whether this only broadcasts its operand to more elements."""
        return self.only_reads and prod(self.reads[0].shape) != prod(self.space)

    @property
    def only_reshapes(self) -> bool:
        """Whether this only reshapes its operand."""
        return self.only_reads and not self.repeats

    def through_views(self, steps: Mapping[Node, Step]) -> Step:
        """Return the step with each read of a view replaced by a read of its operand."""
        reads = tuple([_source(r, steps.get(r.entry[0])) for r in self.reads])
        return self if reads == self.reads else self._replace(reads=reads)


def _source(read: Read, step: Step | None) -> Read:
    if step is None or not step.only_reads:
        return read
    origin = step.reads[0]  # the formula uses no other
    missing = (1,) * (len(read.shape) - len(step.space))
    return Read(origin.entry, missing + origin.shape) if read.shape == missing + step.space else read


def turns(graph: Graph, known: Known) -> list[Turn]:
    """Return the permutations under which reductions of a graph reduce rows; the identity first."""
    found = {IDENTITY: None}
    for node in graph.nodes if known.on_cpu else ():  # channels are too few for a GPU's threads
        kept = _kept(node, known)
        if kept is not None and len(kept) == 1 and kept[0] > 0:
            (axis,), shape = kept, known.shape(node.inputs[0])
            if prod(shape[axis + 1 :]) >= SHORTEST_PART:
                found[Turn((axis, *[i for i in range(len(shape)) if i != axis]))] = None
    return list(found)


def _kept(node: Node, known: Known) -> Shape | None:
    """Return the axes that a reduction keeps; None for other nodes."""
    if isinstance(node.op, Reduction):
        rank = len(known.shape(node.inputs[0]))
        axes = node.op.axes(node.attrs, rank)
        return tuple([i for i in range(rank) if i not in axes])
    if node.op is not None and node.op.name == "_unbroadcast":
        shape, after = known.shape(node.inputs[0]), known.shape((node, 0))
        if len(shape) == len(after):
            return tuple([i for i, (a, b) in enumerate(zip(shape, after, strict=True)) if a == b != 1])
    return None


def reduces_rows(node: Node, known: Known, turn: Turn) -> bool:
    """Return whether a node reduces each row; a graph without such nodes has no row kernels."""
    if isinstance(node.op, Reduction) or (node.op is not None and node.op.name == "_unbroadcast"):
        step = step_of(node, known, turn)
        return step is not None and step.combine is not None
    return False


def step_of(node: Node, known: Known, turn: Turn) -> Step | None:
    """Return the row step of a node; None if it has none, or its operands and results are not of one float type."""
    op = node.op
    if op is None or not node.inputs or node.control or op.stateful:
        return None
    if isinstance(op, Reduction):
        step = _reduction(node, known, turn)
    elif isinstance(op, Elementwise):
        step = _formula(node, known, turn)
    elif isinstance(op, Kernel) and op.make_view is not None:
        step = _view(node, known, turn)
    elif op.module.startswith("mxop."):
        step = _unbroadcast(node, known, turn) if op.name == "_unbroadcast" else _divided(node, known, turn)
    else:
        return None
    if step is None or 0 in step.space:
        return None
    types = {known.dtype(r.entry) for r in step.reads} | {known.dtype((node, k)) for k in range(node.n_outputs)}
    return step if len(types) == 1 and types <= dtypes.FLOATS else None


def _formula(node: Node, known: Known, turn: Turn) -> Step | None:
    roots = specialised(node, known)
    if roots is None or seeks_equals(node, known) or keys_of(roots):  # draws use indices of the full array
        return None
    space = known.shape((node, 0))
    return Step(tuple([_broadcast(e, known.shape(e), space, turn) for e in node.inputs]), roots, turn(space))


def _broadcast(entry: Entry, shape: Shape, space: Shape, turn: Turn) -> Read:
    """Return a read aligned to `space` at the last dimension, as broadcasting does."""
    return Read(entry, turn((1,) * (len(space) - len(shape)) + shape))


def _reduction(node: Node, known: Known, turn: Turn) -> Step | None:
    op, space = node.op, known.shape(node.inputs[0])
    axes = op.axes(node.attrs, len(space))  # type: ignore[union-attr]
    map_, final = op.formulas(node.attrs)  # type: ignore[union-attr]
    n = len(space) - len(axes)
    if {*turn(tuple(range(len(space))))[n:]} != {*axes}:
        k = len(axes)
        divided = final is not None and final.roots[0] is input_(0) / input_(1)
        adds = (final is None or divided) and not op.wide and op.combine_of(node.attrs).name == "add"  # type: ignore[union-attr]
        return _columns(node, known, turn, k, map_.roots, divided) if adds and {*axes} == {*range(k)} else None
    space = turn(space)
    last = None
    if final is not None:
        last = substitute(final.roots, {input_(1): leaf_of(prod(space[n:]))})[0]
    return _of_rows(node, known, turn, n, map_.roots, op.combine_of(node.attrs).name, last, op.wide)  # type: ignore[union-attr]


def _unbroadcast(node: Node, known: Known, turn: Turn) -> Step | None:
    """Return the sum of each row, or of all rows: the gradient of a scalar broadcast to its row, or of a row to all rows."""
    space, kept = turn(known.shape(node.inputs[0])), turn(known.shape((node, 0)))
    n = next((i for i, (a, b) in enumerate(zip(space, kept, strict=False)) if a != b), len(space))
    if len(space) == len(kept) and all(d == 1 for d in kept[n:]):
        return _of_rows(node, known, turn, n, (input_(0),), "add")
    kept = (1,) * (len(space) - len(kept)) + kept
    n = next((i for i, d in enumerate(kept) if d != 1), len(space))
    return _columns(node, known, turn, n, (input_(0),)) if kept[n:] == space[n:] else None


def _columns(node: Node, known: Known, turn: Turn, n: int, roots: tuple[Expr, ...], divided: bool = False) -> Step | None:
    """Return a sum or mean over the first `n` dimensions; None if rows are too few, too short or too long."""
    space = known.shape(node.inputs[0])
    final = input_(0) / leaf_of(prod(space[:n])) if divided else None
    while n and space[n - 1] == 1:
        n -= 1
    enough = prod(space[:n]) >= FEWEST_ROWS and SHORTEST_SUMS <= prod(space[n:]) <= LONGEST_SUMS
    if not enough or turn != IDENTITY or not known.on_cpu:
        return None
    if known.dtype(node.inputs[0]) not in (dtypes.FLOAT32, dtypes.FLOAT64):
        return None
    return Step((Read(node.inputs[0], space),), roots, space, space[:n], "add", final, columns=True)


def runs_on_gpu(rows: int, space: Shape, turn: Turn) -> bool:
    """Return whether row kernels run on a GPU for this many rows, over as many elements as `space` has."""
    return turn == IDENTITY and (rows >= FEWEST_ON_GPU or prod(space) <= SMALL)


def _of_rows(
    node: Node,
    known: Known,
    turn: Turn,
    n: int,
    roots: tuple[Expr, ...],
    combine: str,
    final: Expr | None = None,
    wide: bool = False,
) -> Step | None:
    """Return a reduction that keeps the first `n` dimensions; None if rows are too few or too long."""
    space = turn(known.shape(node.inputs[0]))
    while n and space[n - 1] == 1:  # dimensions of size 1 count as part of a row
        n -= 1
    rows, row = prod(space[:n]), prod(space[n:])
    enough = rows >= FEWEST_ROWS if known.on_cpu else runs_on_gpu(rows, space, turn)
    if not enough or row < 2 or row * dtypes.SIZES[known.dtype(node.inputs[0])] > LONGEST_ROW:
        return None
    return Step((Read(node.inputs[0], space),), roots, space, space[:n], combine, final, wide)


def _divided(node: Node, known: Known, turn: Turn) -> Step | None:
    """Return the step of ``_divide_by_count``: a division by a constant, the number of elements in a mean."""
    if node.op.name != "_divide_by_count":  # type: ignore[union-attr]
        return None
    space, like = known.shape(node.inputs[0]), known.shape(node.inputs[1])
    axes = infer.reduced_axes("_divide_by_count", node.attrs["axis"], node.attrs["exclude"], len(like))
    count = max(prod([like[a] for a in axes]), 1)
    return Step((Read(node.inputs[0], turn(space)),), (input_(0) / leaf_of(count),), turn(space))


def _view(node: Node, known: Known, turn: Turn) -> Step | None:
    """Return the step of a view that only adds or removes dimensions of size 1 and broadcasts along such; None for others."""
    shapes = tuple([known.shape(e) for e in node.inputs])
    before = contiguous_strides(shapes[0])
    space, strides, offset = strided(node.op, node.attrs, shapes, before)  # type: ignore[arg-type]
    if strides is None or offset or 0 in shapes[0]:
        return None
    kept = tuple([1 if s == 0 else d for d, s in zip(space, strides, strict=True)])
    if _longer(kept, strides) != _longer(shapes[0], before):
        return None
    return Step((Read(node.inputs[0], turn(kept)),), (input_(0),), turn(space))


def _longer(shape: Shape, strides: Shape) -> list[tuple[int, int]]:
    """Return the dimensions longer than 1, with their strides."""
    return [(d, s) for d, s in zip(shape, strides, strict=True) if d != 1]
