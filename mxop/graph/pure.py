"""Bodies of loops as pure functions, whose outputs include the values that they assign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .assignment import NAME as ASSIGN
from .expansion import expand
from .ir import Entry, Graph, Node
from .specs import Specs
from .states import Effects


class Pure(NamedTuple):
    """A body without assignments.

    Attributes
    ----------
    graph : Graph
        Outputs of the body, then the new values of auxiliary states.
    states : tuple of int
        The inputs of the call that are these states.
    """

    graph: Graph
    states: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """The number of outputs of the body."""
        return len(self.graph.outputs) - len(self.states)


def pure(body: Graph, inner: Sequence[Node], at: Sequence[int], specs: Specs | None = None) -> Pure:
    """Return an expanded body with assigned values as outputs; readers after an assignment read its value."""
    n = len(body.outputs)
    graph, _ = expand(body, everything=False, effects=Effects(), specs=specs)
    value: dict[Node, Entry] = {}  # of each assignment
    latest: dict[Node, Entry] = {}  # of each variable
    made: dict[Entry, Entry] = {}
    for node in graph.nodes:
        if node.op is None:
            continue
        seen = {(a.inputs[0][0], 0): value[a] for a in node.control if a in value}
        inputs = tuple(seen.get(e) or made.get(e, e) for e in node.inputs)
        if node.op.name == ASSIGN:
            value[node] = latest[node.inputs[0][0]] = made[node, 0] = inputs[1]
            continue
        control = tuple(made.get((c, 0), (c, 0))[0] for c in node.control if c not in value)
        if inputs != node.inputs or control != node.control:
            new = node.replaced(inputs, control=control)
            made.update({(node, k): (new, k) for k in range(node.n_outputs)})
    place = dict(zip(inner, at, strict=True))
    outputs = [made.get(e, e) for e in graph.outputs[:n]]
    return Pure(Graph([*outputs, *latest.values()]), tuple(place[v] for v in latest))
