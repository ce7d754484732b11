"""Dead nodes: what is computed for its shape alone is not computed.

Imports :mod:`.base` and :mod:`mxop.opdef`.
"""

from __future__ import annotations

from functools import lru_cache

from ...formula import Expr, leaves
from ...opdef import Elementwise, Kernel
from ..infer import Known
from ..ir import Entry, Graph, Node
from ..rewrite import rewrite
from ..traits import is_pure
from .base import Pass

#: Of kernels that are no views: inputs that are never read, only their shape and type.
_SHAPE_ONLY = {
    "_unbroadcast": (1,), "_reduce_like": (1,), "_divide_by_count": (1,), "_dot_grad": (2,), "shape_array": (0,),
    "size_array": (0,),
}  # fmt: skip


class DeadNodes(Pass):
    """Let go of values of which only the shape is asked: an argument of that shape takes their place.

    ::

        x -- exp -- sum -- y           x -- exp -- sum -- y
              |                  ->
        g -- broadcast_like -- dx      g -- broadcast_like(x) -- dx

    Nodes that nobody reads are no part of a graph: it is what its outputs need.  What this adds is that gradients do not
    keep values alive to look at their shapes.
    """

    def run(self, graph: Graph, known: Known) -> Graph:
        stand_in: dict[tuple, Entry] = {}
        for node in graph.variables:
            stand_in.setdefault((known.shape((node, 0)), known.dtype((node, 0))), (node, 0))

        def replace(node: Node) -> list[Entry] | None:
            unread = unread_inputs(node) if is_pure(node) else ()
            inputs = list(node.inputs)
            for at in unread:
                entry = inputs[at]
                if entry[0].op is not None and known.is_known(entry):
                    inputs[at] = stand_in.get((known.shape(entry), known.dtype(entry)), entry)
            if tuple(inputs) == node.inputs:
                return None
            new = node.replaced(tuple(inputs))
            known.copy(node, new)
            return [(new, k) for k in range(new.n_outputs)]

        return rewrite(graph, replace, known)[0]


def unread_inputs(node: Node) -> tuple[int, ...]:
    """Return the positions of inputs of which an operator looks at nothing but shape and type."""
    op = node.op
    if isinstance(op, Kernel):
        if op.make_view is not None:
            return tuple(range(1, len(node.inputs)))
        return _SHAPE_ONLY.get(op.name, ()) if op.module.startswith("mxop.") else ()
    if isinstance(op, Elementwise):
        return _unmentioned(op.formula(node.attrs, len(node.inputs)).roots, len(node.inputs))
    return ()


@lru_cache(4096)
def _unmentioned(roots: tuple[Expr, ...], n_inputs: int) -> tuple[int, ...]:
    used = {leaf.label for leaf in leaves(roots) if leaf.kind == "input"}
    return tuple(i for i in range(n_inputs) if i not in used)
