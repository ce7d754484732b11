"""Properties of nodes that passes need."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from .._core.elementwise import truths_of
from .._kernels.machine import MX_LONG_ROW
from ..opdef import Attrs, Kernel, contiguous_strides
from ..opdef.infer import known as is_known
from ..support.shape_mode import numpy_shape
from .infer import Known
from .ir import Entry, Graph, Node


def is_pure(node: Node) -> bool:
    """Return whether a node may be merged, folded or dropped: equal inputs give equal outputs, without effects.

    Variables, random operators, external operators, operators that write states, and nodes with control dependencies are not
    pure.
    """
    op = node.op
    return op is not None and not (op.stateful or op.aux or op.writes or node.control)


def elements_read(node: Node) -> list[Entry]:
    """Return the inputs whose elements a node reads; it reads only the shapes of others, whose memory may be reused."""
    unread = node.op.shape_only(len(node.inputs)) if node.op is not None else ()
    return [entry for i, entry in enumerate(node.inputs) if i not in unread]


def states_of(graph: Graph) -> set[Node]:
    """Return the variables that operators write while a graph runs."""
    return {node.inputs[i][0] for node in graph.nodes for i in node.mutated_inputs()}


def strided(op: Kernel, attrs: Attrs, shapes: tuple, strides: tuple) -> tuple[tuple, tuple | None, int]:
    """Return shape, strides and offset of a view, for the shapes of its inputs and the strides of the first."""
    return _strided(op, attrs, shapes, strides, numpy_shape())


@lru_cache(4096)
def _strided(op: Kernel, attrs: Attrs, shapes: tuple, strides: tuple, np_shape: bool) -> tuple:
    shape, steps, offset = op.make_view(shapes[0], strides, *shapes[1:], **attrs)  # type: ignore[misc]
    return tuple(shape), None if steps is None else tuple(steps), offset


def _as_view(node: Node, known: Known) -> tuple[tuple, tuple, tuple | None, int] | None:
    """Return the shape of a contiguous first input, and shape, strides and offset of the view of it that a node is; None if it
    is none."""
    op, attrs = known.call(node)
    if not isinstance(op, Kernel) or op.make_view is None or known.dtype(node.inputs[0]) != known.dtype((node, 0)):
        return None
    shapes = tuple([known.shape(e) for e in node.inputs])
    if not all(map(is_known, shapes)):
        return None
    return shapes[0], *strided(op, attrs, shapes, contiguous_strides(shapes[0]))


def is_plain_view(node: Node, known: Known) -> bool:
    """Return whether a node only reshapes its first input."""
    found = _as_view(node, known)
    return found is not None and prod(found[1]) == prod(found[0]) and is_plain(*found[1:])  # not a slice


def has_rows(node: Node, known: Known) -> bool:
    """Return whether a node is a view of its first input whose rows are contiguous, and long."""
    found = _as_view(node, known)
    if found is None or found[2] is None or not found[1]:
        return False
    row = 1
    for size, stride in zip(found[1][::-1], found[2][::-1], strict=True):
        if size != 1 and stride != row:
            break
        row *= size
    return row >= MX_LONG_ROW


def is_plain(shape: tuple, strides: tuple | None, offset: int) -> bool:
    """Return whether elements are contiguous from the start."""
    # the stride of an axis of size 1 is irrelevant
    steps = zip(shape, strides or (), contiguous_strides(shape))
    return strides is not None and offset == 0 and all(d <= 1 or a == b for d, a, b in steps)


def is_mask(entry: Entry) -> bool:
    """Return whether an entry is a comparison's result, or rearranges such ones."""
    node, _ = entry
    op: Any = node.op
    if op is None:
        return False
    if op.kind == "elementwise" and op.out_dtype is None:
        found = truths_of(op.formula(node.attrs, len(node.inputs)).roots)
        return found == 1 or (found == 2 and all(map(is_mask, node.inputs)))
    moves = isinstance(op, Kernel) and (op.make_view is not None or op.moves is not None)
    return op.gives_mask or (moves and all(map(is_mask, elements_read(node))))


def same_by_rule(node: Node, entry: Entry, known: Known) -> bool:
    """Return whether output 0 of an elementwise node has the shape and type of one of its inputs, even if unknown."""
    op: Any = node.op
    return known.same(entry, (node, 0)) or (op.kind == "elementwise" and not op.broadcast and op.out_dtype is None)


def bare(entry: Entry, specs: Callable[[Entry], tuple] | None) -> Entry:
    """Return the source of an entry that rules handed on, unbroadcast or reshaped, if their shapes agree; else the entry.

    `specs` returns shapes and types; None if they are unknown.
    """
    while specs is not None:
        source = _handed_on(*entry)
        if source is None or not is_known(specs(entry)[0]) or specs(source) != specs(entry):
            break
        entry = source
    return entry


def _handed_on(node: Node, k: int) -> Entry | None:
    """Return the input that an output equals if their shapes agree; None if it is computed."""
    op: Any = node.op
    if op is None or op.name in ("_unbroadcast", "Flatten", "Reshape"):
        return node.inputs[0] if node.inputs else None
    if not (op.is_backward and op.kind == "elementwise"):  # others may hand on inputs with another gradient
        return None
    root = op.formula(node.attrs, len(node.inputs)).roots[k]
    return node.inputs[root.label] if root.kind == "input" else None
