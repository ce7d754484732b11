"""Dead nodes: values that are read for their shapes only are not computed."""

from __future__ import annotations

from collections.abc import Sequence

from ..infer import Known
from ..ir import Entry, Graph, Node
from ..reads import unread_inputs
from ..rewrite import rewrite
from ..traits import is_pure
from .base import Pass


class DeadNodes(Pass):
    """Replace an input of which only the shape is read by a variable of the same shape and type.

    ::

        x -- exp -- sum -- y           x -- exp -- sum -- y
              |                  ->
        g -- broadcast_like -- dx      g -- broadcast_like(x) -- dx

    A graph holds only nodes that its outputs need, so nodes without readers are dropped anyway.  This pass keeps gradients
    from holding values alive for their shapes.
    """

    def run(self, graph: Graph, known: Known) -> Graph:
        forward = Graph(graph.outputs[: known.n_forward])
        early = set(forward.nodes)  # they run before head gradients are given
        in_forward = _by_type(forward.variables, known)
        anywhere = _by_type(graph.variables, known) | in_forward

        def replace(node: Node) -> list[Entry] | None:
            unread = unread_inputs(node) if is_pure(node) else ()
            placeholders = in_forward if node in early else anywhere
            inputs = list(node.inputs)
            for at in unread:
                entry = inputs[at]
                if entry[0].op is not None and known.is_known(entry):
                    inputs[at] = placeholders.get((known.shape(entry), known.dtype(entry)), entry)
            if tuple(inputs) == node.inputs:
                return None
            new = node.replaced(tuple(inputs))
            known.copy(node, new)
            return [(new, k) for k in range(new.n_outputs)]

        return rewrite(graph, replace, known)[0]


def _by_type(variables: Sequence[Node], known: Known) -> dict[tuple, Entry]:
    """Return the first variable of each shape and type."""
    found: dict[tuple, Entry] = {}
    for node in variables:
        found.setdefault((known.shape((node, 0)), known.dtype((node, 0))), (node, 0))
    return found
