"""What a node does to rows: a formula on all their elements, or a reduction of each row.

Rows are leading dimensions of a shape, or of the shape turned: with an axis from the middle, the channels of images, put first.
Beside formulas and reductions, gradients are made of operators that do the same by another name: ``_unbroadcast`` may be a sum
of each row, ``_broadcast_reduced`` gives a number of each row to all its elements, which is a formula that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from ..formula import Expr, input_, keys_of, substitute
from ..opdef import Elementwise, Kernel, Reduction, contiguous_strides, infer
from ..opdef.symbolic import leaf_of
from ..support import dtypes
from .formulas import seeks_equals, specialised
from .infer import Known
from .ir import Entry, Graph, Node
from .traits import strided

#: Fewest rows that are worth it, most bytes of one row of one array, and fewest elements of a part of a row that is turned.
#: Rows that no cache holds are read again for each stage, but what is between stages of formulas is never written.
FEWEST_ROWS, LONGEST_ROW, SHORTEST_PART = 16, 16 << 20, 32
#: Shortest and longest rows that are added up; these are sums in float64, which a cache should hold.
SHORTEST_SUMS, LONGEST_SUMS = 64, 16384
#: Fewest rows that keep a GPU busy, and elements of which all that counts is how many kernels there are.
FEWEST_ON_GPU, SMALL = 256, 1 << 16

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """How shapes are seen: those of as many dimensions as `order` has with their dimensions in that order."""

    order: Shape = ()

    def __call__(self, shape: Shape) -> Shape:
        return tuple([shape[i] for i in self.order]) if len(shape) == len(self.order) else shape

    def back(self, shape: Shape) -> Shape:
        """Return the shape that is seen as `shape`, of as many dimensions as the order."""
        return tuple([d for _, d in sorted(zip(self.order, shape, strict=True))])


AS_THEY_ARE = Turn()


@dataclass(frozen=True, slots=True)
class Read:
    """A value that a step reads.

    Attributes
    ----------
    entry : (Node, int)
    shape : tuple of int
        That of the entry, with dimensions of size 1 added or left out, so that it has those of the step's space, or 1; turned
        after that.
    """

    entry: Entry
    shape: Shape


@dataclass(frozen=True, slots=True)
class Step:
    """What a node does to rows.

    Attributes
    ----------
    reads : tuple of Read
    roots : tuple of Expr
        Formulas over the elements that are read, ``input_(i)`` for each.
    space : tuple of int
        What is gone through: of a formula, the shape of the results.
    rows : tuple of int, optional
        Of a reduction, the leading dimensions that it keeps.  It has these in the next attributes too:
    combine : str, optional
        How the elements of a row are combined.
    final : Expr, optional
        What is made of the combined value, ``input_(0)``; of `columns`, outside of the strip.
    wide : bool
        Whether this is computed in float64.
    columns : bool
        Whether the rows are added up instead, element by element.
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
        """Whether this gives what it reads another shape, or to more elements, and does nothing else."""
        return self.combine is None and len(self.roots) == 1 and self.roots[0] is input_(0)

    @property
    def repeats(self) -> bool:
        """Whether this gives what it reads to more elements, and does nothing else."""
        return self.only_reads and prod(self.reads[0].shape) != prod(self.space)

    @property
    def only_reshapes(self) -> bool:
        """Whether this gives what it reads another shape, and does nothing else."""
        return self.only_reads and not self.repeats

    def through_views(self, steps: Mapping[Node, Step]) -> Step:
        """Return a step that does not read the results of views, but what they are views of."""
        reads = tuple([_source(r, steps.get(r.entry[0])) for r in self.reads])
        return self if reads == self.reads else replace(self, reads=reads)


def _source(read: Read, step: Step | None) -> Read:
    if step is None or not step.only_reads:
        return read
    origin = step.reads[0]  # the others, if any, are not in the formula
    missing = (1,) * (len(read.shape) - len(step.space))
    return Read(origin.entry, missing + origin.shape) if read.shape == missing + step.space else read


def turns(graph: Graph, known: Known) -> list[Turn]:
    """Return how to see shapes, so that reductions of a graph are reductions of rows; first as they are."""
    found = {AS_THEY_ARE: None}
    for node in graph.nodes if known.on_cpu else ():  # a GPU has more room for threads than there are channels
        kept = _kept(node, known)
        if kept is not None and len(kept) == 1 and kept[0] > 0:
            (axis,), shape = kept, known.shape(node.inputs[0])
            if prod(shape[axis + 1 :]) >= SHORTEST_PART:
                found[Turn((axis, *[i for i in range(len(shape)) if i != axis]))] = None
    return list(found)


def _kept(node: Node, known: Known) -> Shape | None:
    """Return the axes that a reduction keeps; None for what is no reduction."""
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
    """Tell whether a node reduces each row: without one, no other step matters."""
    if isinstance(node.op, Reduction) or (node.op is not None and node.op.name == "_unbroadcast"):
        step = step_of(node, known, turn)
        return step is not None and step.combine is not None
    return False


def step_of(node: Node, known: Known, turn: Turn) -> Step | None:
    """Return what a node does to rows; None when it is nothing of the kind, or not computed in one type of real numbers."""
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
    if roots is None or seeks_equals(node, known) or keys_of(roots):  # an element of a row has another index
        return None
    space = known.shape((node, 0))
    return Step(tuple([_broadcast(e, known.shape(e), space, turn) for e in node.inputs]), roots, turn(space))


def _broadcast(entry: Entry, shape: Shape, space: Shape, turn: Turn) -> Read:
    """Return a read as broadcasting has it: dimensions are aligned at the end."""
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
    """Return the sum of each row, or of all, which the gradient of a number for each row, or of a row for all, is."""
    space, kept = turn(known.shape(node.inputs[0])), turn(known.shape((node, 0)))
    n = next((i for i, (a, b) in enumerate(zip(space, kept, strict=False)) if a != b), len(space))
    if len(space) == len(kept) and all(d == 1 for d in kept[n:]):
        return _of_rows(node, known, turn, n, (input_(0),), "add")
    kept = (1,) * (len(space) - len(kept)) + kept
    n = next((i for i, d in enumerate(kept) if d != 1), len(space))
    return _columns(node, known, turn, n, (input_(0),)) if kept[n:] == space[n:] else None


def _columns(
    node: Node, known: Known, turn: Turn, n: int, roots: tuple[Expr, ...], divided: bool = False
) -> Step | None:
    """Return a sum, or mean, over the first `n` dimensions, if there are enough rows, and these are neither short nor long."""
    space = known.shape(node.inputs[0])
    final = input_(0) / leaf_of(prod(space[:n])) if divided else None
    while n and space[n - 1] == 1:
        n -= 1
    enough = prod(space[:n]) >= FEWEST_ROWS and SHORTEST_SUMS <= prod(space[n:]) <= LONGEST_SUMS
    if not enough or turn != AS_THEY_ARE or not known.on_cpu:
        return None
    if known.dtype(node.inputs[0]) not in (dtypes.FLOAT32, dtypes.FLOAT64):
        return None
    return Step((Read(node.inputs[0], space),), roots, space, space[:n], "add", final, columns=True)


def runs_on_gpu(rows: int, space: Shape, turn: Turn) -> bool:
    """Tell whether a GPU has a strip of so many rows, by which it goes through as many elements as `space` has."""
    return turn == AS_THEY_ARE and (rows >= FEWEST_ON_GPU or prod(space) <= SMALL)


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
    """Return a reduction that keeps the first `n` dimensions, if there are enough rows, and not too long ones."""
    space = turn(known.shape(node.inputs[0]))
    while n and space[n - 1] == 1:  # it makes no difference which of the dimensions of size 1 are rows'
        n -= 1
    rows, row = prod(space[:n]), prod(space[n:])
    enough = rows >= FEWEST_ROWS if known.on_cpu else runs_on_gpu(rows, space, turn)
    if not enough or row < 2 or row * dtypes.SIZES[known.dtype(node.inputs[0])] > LONGEST_ROW:
        return None
    return Step((Read(node.inputs[0], space),), roots, space, space[:n], combine, final, wide)


def _divided(node: Node, known: Known, turn: Turn) -> Step | None:
    """Return what divides by the number of elements that a mean is made of, which is a constant."""
    if node.op.name != "_divide_by_count":  # type: ignore[union-attr]
        return None
    space, like = known.shape(node.inputs[0]), known.shape(node.inputs[1])
    axes = infer.reduced_axes("_divide_by_count", node.attrs["axis"], node.attrs["exclude"], len(like))
    count = max(prod([like[a] for a in axes]), 1)
    return Step((Read(node.inputs[0], turn(space)),), (input_(0) / leaf_of(count),), turn(space))


def _view(node: Node, known: Known, turn: Turn) -> Step | None:
    """Return a view that only adds and leaves out dimensions of size 1, and repeats along such, as a formula that reads."""
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
    """Return the dimensions that are longer than 1, with their strides."""
    return [(d, s) for d, s in zip(shape, strides, strict=True) if d != 1]
