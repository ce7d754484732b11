"""Constant folding: what depends on numbers only is computed once, when the graph is prepared."""

from __future__ import annotations

import numpy as np

from ... import dtypes
from ..constants import LARGEST, evaluated, fill_of, is_literal, is_small, literal, size_of, value_of
from ..infer import Known
from ..ir import Entry, Graph, Node
from ..rewrite import rewrite
from ..traits import is_pure
from .base import Pass


class FoldConstants(Pass):
    """Compute calls on constants once: ``arange(3) * 2`` is the constant ``[0, 2, 4]``, ``zeros_like(x)`` is ``zeros``.

    ::

        ones(2) --+
                  add -- mul -- y      becomes      x --- mul -- y
        full(2) --+       |                  full(3) ------+
        x ----------------+

    The operators themselves compute the values, so they are those that an executor would have found.  Arrays of one value
    stay calls of ``zeros``, ``ones`` or ``full``; others are kept up to 16,384 elements.
    """

    def run(self, graph: Graph, known: Known) -> Graph:
        def replace(node: Node) -> list[Entry] | None:
            if not node.inputs or not _can_be_folded(node) or not all(known.is_known(e) for e in _outputs(node)):
                return None
            values = _folded(node, known)
            if values is None:
                return None
            made = [literal(v, f"{node.name}_constant", node.source, node.order) for v in values]
            for new in made:
                known.add(new)
            return [(new, 0) for new in made]

        return rewrite(graph, replace, known)[0]


def _can_be_folded(node: Node) -> bool:
    """Tell whether an operator may run now: a user's kernel may be meant to run every time."""
    op = node.op
    return is_pure(node) and (op.kind in ("elementwise", "reduction") or op.module.startswith("mxop."))  # type: ignore[union-attr]


def _outputs(node: Node) -> list[Entry]:
    return [(node, k) for k in range(node.n_outputs)]


def _folded(node: Node, known: Known) -> list[np.ndarray] | None:
    """Return the outputs of a node as arrays, or None when they are not constant."""
    shape = known.shape((node, 0))
    if node.op.kind == "elementwise" and shape and 0 not in shape:  # type: ignore[union-attr]
        fills = [fill_of(e, known) for e in _outputs(node)]
        if None not in fills:  # whatever the inputs are
            return [_filled(e, f, known) for e, f in zip(_outputs(node), fills, strict=True)]
        if not is_small(shape):
            return _uniform(node, known)
    unread = node.op.shape_only(len(node.inputs))  # type: ignore[union-attr]
    read = [k for k in range(len(node.inputs)) if k not in unread]
    if not all(is_literal(node.inputs[k][0]) for k in read) or not all(
        is_small(known.shape(e)) for e in _outputs(node)
    ):
        return None
    if not all(known.is_known(e) and size_of(known.shape(e)) <= LARGEST for e in node.inputs):
        return None
    values = [value_of(e, known) if k in read else np.zeros(()) for k, e in enumerate(node.inputs)]
    if any(v is None for v in values):
        return None
    return evaluated(node, values, known)  # type: ignore[arg-type]


def _filled(entry: Entry, fill: float | None, known: Known) -> np.ndarray:
    """Return an array of one value without memory behind it."""
    one = np.asarray(fill).astype(dtypes.numpy_dtype(known.dtype(entry)))
    return np.broadcast_to(one, known.shape(entry))


def _uniform(node: Node, known: Known) -> list[np.ndarray] | None:
    """Return the outputs of an elementwise node on large arrays of one value each."""
    fills = [fill_of(e, known) for e in node.inputs]
    if None in fills:
        return None
    small = Known()
    inputs = []
    for source, k in node.inputs:
        if source not in small:
            n = source.n_outputs
            small.put(source, [(1,)] * n, [known.dtype((source, i)) for i in range(n)])
        inputs.append(np.full((1,), 0, dtypes.numpy_dtype(known.dtype((source, k)))))
    small.put(node, [(1,)] * node.n_outputs, [known.dtype(e) for e in _outputs(node)])
    for array, fill in zip(inputs, fills, strict=True):
        array[:] = fill
    return [np.broadcast_to(v[0], known.shape(e)) for v, e in zip(evaluated(node, inputs, small), _outputs(node))]
