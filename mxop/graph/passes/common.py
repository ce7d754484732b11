"""Common subexpression elimination: equal calls are merged."""

from __future__ import annotations

from ..infer import Known
from ..ir import Entry, Graph, Node
from ..rewrite import rewrite
from ..traits import is_pure
from .base import Pass


class CommonSubexpressions(Pass):
    """Evaluate equal calls once.

    ::

        x -- exp -- mul -- y      becomes      x -- exp == mul -- y
        x -- exp ----+

    Calls are equal if their operators, parameters and inputs are.  Random operators, external operators and those that write
    states are never merged.
    """

    def run(self, graph: Graph, known: Known) -> Graph:
        first: dict[tuple, Node] = {}

        def replace(node: Node) -> list[Entry] | None:
            if not is_pure(node):
                return None
            found = first.setdefault((node.op, node.attrs, node.inputs), node)
            return None if found is node else [(found, k) for k in range(node.n_outputs)]

        return rewrite(graph, replace, known)[0]
