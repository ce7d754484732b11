"""Operators with states and modes in graphs: pure functions, and assignments of new values of states."""

from __future__ import annotations

from ..opdef import registry
from .assignment import NAME
from .ir import Entry, Graph, Node
from .rewrite import Moved, rewrite


def in_mode(graph: Graph, is_train: bool) -> Graph:
    """Return a graph whose operators have a given mode."""

    def replace(node: Node) -> list[Entry] | None:
        attrs, op = node.attrs.training(is_train), node.op
        if op.bodies:
            op = op.with_bodies([in_mode(body, is_train) for body in op.bodies])
        if op is node.op and (attrs is node.attrs or attrs == node.attrs):
            return None
        new = node.replaced(attrs=attrs, op=op)
        return [(new, k) for k in range(node.n_outputs)]

    return rewrite(graph, replace)[0] if has_mode(graph) else graph


def has_mode(graph: Graph) -> bool:
    """Return whether an operator of a graph reads the mode."""
    calls = [node.op for node in graph.nodes if node.op is not None]
    return any(op.spec.has_mode or any(map(has_mode, op.bodies)) for op in calls)


class Effects:
    """The assignments of states in a graph while it is expanded.

    They are outputs of the graph, since a schedule must compute them.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._last: dict[Node, Node] = {}  # the latest assignment of each state

    def deliver(self, node: Node, results: list[Entry]) -> None:
        """Assign the new values of a node's states; `results` are the outputs of the pure function."""
        for at, k in node.op.written_inputs(node.attrs, len(node.inputs)):  # type: ignore[union-attr]
            self.assign(node, node.inputs[at], results[k])

    def assign(self, node: Node, state: Entry, value: Entry) -> None:
        """Assign a new value to a state of a node."""
        if state[0].op is not None or value == state:  # not a variable, or unchanged
            return
        op, earlier = registry.get(NAME), self._last.get(state[0])
        control = (*node.control, earlier) if earlier is not None else node.control
        name = f"{node.name}_{state[0].name}"
        made = Node(op, op.parse({}), (state, value), name, None, node.source, node.order, control)
        self._last[state[0]] = made
        self.entries.append((made, 0))

    def follow(self, moved: Moved) -> None:
        """Update the assignments after nodes were rebuilt."""
        self._last = {state: moved.get((node, 0), (node, 0))[0] for state, node in self._last.items()}

    def take(self) -> list[Entry]:
        """Return the assignments made since the last call."""
        found, self.entries = self.entries, []
        return found

    def control_of(self, node: Node) -> tuple[Node, ...]:
        """Return the control dependencies of a node with states: earlier assignments of these states."""
        found = [self._last[s] for s, _ in node.inputs if s in self._last]
        return tuple(dict.fromkeys((*node.control, *found)))
