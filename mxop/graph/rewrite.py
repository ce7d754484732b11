"""Rebuild a graph node by node: the one loop behind every pass.  Imports :mod:`.ir` and :mod:`.infer`."""

from __future__ import annotations

from collections.abc import Callable

from .infer import Known
from .ir import Entry, Graph, Node

Moved = dict[Entry, Entry]


def rewrite(
    graph: Graph, replace: Callable[[Node], list[Entry] | None], known: Known | None = None
) -> tuple[Graph, Moved]:
    """Return a graph with nodes exchanged; the old one stays as it is.

    Parameters
    ----------
    replace : callable
        Gets each operator node, after its inputs were exchanged, and returns an entry for each of its outputs, or None to
        keep it.
    known : Known, optional
        Shapes and types; those of rebuilt nodes are added.

    Returns
    -------
    graph : Graph
    moved : dict
        Where each entry that changed went.
    """
    moved: Moved = {}
    controls: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op is None:
            continue
        new = rebuilt(node, moved, controls)
        if new is not node and known is not None:
            known.copy(node, new)
        entries = replace(new)
        if entries is None and new is node:
            continue
        for k in range(node.n_outputs):
            moved[node, k] = (new, k) if entries is None else entries[k]
        controls[node] = moved[node, 0][0]
    return Graph(moved.get(e, e) for e in graph.outputs), moved


def rebuilt(node: Node, moved: Moved, controls: dict[Node, Node] | None = None) -> Node:
    """Return the node with its inputs exchanged: the node itself when none was."""
    inputs = tuple([moved.get(e, e) for e in node.inputs])
    control = node.control
    if control and controls:
        control = tuple(controls.get(n, n) for n in control)
    if inputs == node.inputs and control == node.control:
        return node
    return node.replaced(inputs, control=control)
