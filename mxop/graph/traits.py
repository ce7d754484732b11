"""What passes ask about a node."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from ..opdef import Attrs, Kernel, contiguous_strides
from ..opdef.infer import known as is_known
from ..support.shape_mode import numpy_shape
from .infer import Known
from .ir import Entry, Graph, Node


def is_pure(node: Node) -> bool:
    """Tell whether equal inputs give equal outputs and nothing else happens: what may be merged, folded or dropped.

    Variables are not; nor are random operators, operators from outside, those that write states, and nodes whose order a
    user fixed.
    """
    op = node.op
    return op is not None and not (op.stateful or op.aux or op.writes or node.control)


def elements_read(node: Node) -> list[Entry]:
    """Return the inputs that a node looks into: of others it wants the shape, and their memory may hold something else."""
    unread = node.op.shape_only(len(node.inputs)) if node.op is not None else ()
    return [entry for i, entry in enumerate(node.inputs) if i not in unread]


def states_of(graph: Graph) -> set[Node]:
    """Return the variables that operators write: what they hold changes while a graph runs."""
    return {node.inputs[i][0] for node in graph.nodes for i in node.mutated_inputs()}


def strided(op: Kernel, attrs: Attrs, shapes: tuple, strides: tuple) -> tuple[tuple, tuple | None, int]:
    """Return shape, strides and offset of a view operator's result, by the shapes of its inputs and first strides."""
    return _strided(op, attrs, shapes, strides, numpy_shape())


@lru_cache(4096)
def _strided(op: Kernel, attrs: Attrs, shapes: tuple, strides: tuple, np_shape: bool) -> tuple:
    shape, steps, offset = op.make_view(shapes[0], strides, *shapes[1:], **attrs)  # type: ignore[misc]
    return tuple(shape), None if steps is None else tuple(steps), offset


def is_plain_view(node: Node, known: Known) -> bool:
    """Tell whether a node gives the elements of its first input another shape, and nothing else."""
    op, attrs = known.call(node)
    if not isinstance(op, Kernel) or op.make_view is None or known.dtype(node.inputs[0]) != known.dtype((node, 0)):
        return False
    shapes = tuple([known.shape(e) for e in node.inputs])
    if not all(map(is_known, shapes)):
        return False
    shape, strides, offset = strided(op, attrs, shapes, contiguous_strides(shapes[0]))
    return prod(shape) == prod(shapes[0]) and is_plain(shape, strides, offset)  # a part is more than another shape


def is_plain(shape: tuple, strides: tuple | None, offset: int) -> bool:
    """Tell whether elements lie in C order from the start."""
    # an axis of one element has no step to compare
    steps = zip(shape, strides or (), contiguous_strides(shape))
    return strides is not None and offset == 0 and all(d <= 1 or a == b for d, a, b in steps)


def same_by_rule(node: Node, entry: Entry, known: Known) -> bool:
    """Tell whether output 0 of an elementwise node has the shape and type of one of its inputs, known or not."""
    op: Any = node.op
    return known.same(entry, (node, 0)) or (op.kind == "elementwise" and not op.broadcast and op.out_dtype is None)


def bare(entry: Entry, specs: Callable[[Entry], tuple] | None) -> Entry:
    """Return what an entry is a copy of: rules hand heads on, undo broadcasting and reshape, where shapes are the same.

    `specs` tells shapes and types; None: nobody knows them.
    """
    while specs is not None:
        source = _handed_on(*entry)
        if source is None or not is_known(specs(entry)[0]) or specs(source) != specs(entry):
            break
        entry = source
    return entry


def _handed_on(node: Node, k: int) -> Entry | None:
    """Return the input that an output of a node is if its shape is that input's; None where it is computed."""
    op: Any = node.op
    if op is None or op.name in ("_unbroadcast", "Flatten", "Reshape"):
        return node.inputs[0] if node.inputs else None
    if not (op.is_backward and op.kind == "elementwise"):  # others may hand on what has another gradient
        return None
    root = op.formula(node.attrs, len(node.inputs)).roots[k]
    return node.inputs[root.label] if root.kind == "input" else None
