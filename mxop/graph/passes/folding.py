"""Constant folding: values that depend on constants only are computed once, when the graph is prepared."""

from __future__ import annotations

from math import prod

import numpy as np

from ...opdef.symbolic import is_concrete
from ...support import dtypes
from ..constants import LARGEST, evaluated, fill_of, filled, is_literal, is_small, literal, value_of
from ..infer import Known
from ..ir import Entry, Graph, Node
from ..rewrite import rewrite
from ..traits import is_pure
from .base import Pass


class FoldConstants(Pass):
    """Evaluate calls on constants once: ``arange(3) * 2`` is the constant ``[0, 2, 4]``, ``zeros_like(x)`` is ``zeros``.

    ::

        ones(2) --+
                  add -- mul -- y      becomes      x --- mul -- y
        full(2) --+       |                  full(3) ------+
        x ----------------+

    The operators themselves compute the values, so results are those of an executor.  Arrays of equal elements become calls of
    ``zeros``, ``ones`` or ``full``; other arrays are folded up to 16,384 elements.
    """

    def run(self, graph: Graph, known: Known) -> Graph:
        def replace(node: Node) -> list[Entry] | None:
            if not node.inputs or not _can_be_folded(node) or not all(known.is_known(e) for e in _outputs(node)):
                return None
            values, name = _folded(node, known), f"{node.name}_constant"
            if values is None:
                return None
            made = [
                literal(v, name, node.source, node.order)
                if isinstance(v, np.ndarray)
                else filled(v, known.shape(e), name, node.source, node.order)
                for v, e in zip(values, _outputs(node), strict=True)
            ]
            for new in made:
                known.add(new)
            return [(new, 0) for new in made]

        return rewrite(graph, replace, known)[0]


def _can_be_folded(node: Node) -> bool:
    """Return whether an operator may be evaluated now; kernels of users may have to run every time."""
    op = node.op
    return is_pure(node) and (op.kind in ("elementwise", "reduction") or op.module.startswith("mxop."))  # type: ignore[union-attr]


def _outputs(node: Node) -> list[Entry]:
    return [(node, k) for k in range(node.n_outputs)]


def _folded(node: Node, known: Known) -> list | None:
    """Return each output of a node as an array, or as a scalar if its elements are equal; None if one is not constant."""
    shape = known.shape((node, 0))
    if node.op.kind == "elementwise" and shape and 0 not in shape:  # type: ignore[union-attr]
        fills = [fill_of(e, known) for e in _outputs(node)]
        if None not in fills:  # the formula is constant
            return [dtypes.numpy_dtype(known.dtype(e)).type(f) for e, f in zip(_outputs(node), fills, strict=True)]
        if not is_small(shape):
            return _uniform(node, known)
    unread = node.op.shape_only(len(node.inputs))  # type: ignore[union-attr]
    read = [k for k in range(len(node.inputs)) if k not in unread]
    if not all(is_literal(node.inputs[k][0]) for k in read) or not all(is_small(known.shape(e)) for e in _outputs(node)):
        return None
    shapes = [known.shape(e) for e in node.inputs]
    if not all(known.is_known(e) and is_concrete(d) and prod(d) <= LARGEST for e, d in zip(node.inputs, shapes)):
        return None
    values = [value_of(e, known) if k in read else np.zeros(()) for k, e in enumerate(node.inputs)]
    if any(v is None for v in values):
        return None
    return evaluated(node, values, known)  # type: ignore[arg-type]


def _uniform(node: Node, known: Known) -> list | None:
    """Return the outputs of an elementwise node as scalars, if the elements of each input are equal."""
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
    values = [v[0] for v in evaluated(node, inputs, small)]
    exact = [known.dtype(e) in dtypes.FLOATS or abs(int(v)) < 2**53 for e, v in zip(_outputs(node), values)]
    return values if all(exact) else None
