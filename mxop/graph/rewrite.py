"""Rebuilds graphs node by node: the loop behind every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set

from ..support.errors import OpValueError
from .infer import Known
from .ir import Entry, Graph, Node, describe, topological
from .regions import Unit, in_order

Moved = dict[Entry, Entry]


def rewrite(
    graph: Graph,
    replace: Callable[[Node], list[Entry] | None],
    known: Known | None = None,
    given: Moved | None = None,
) -> tuple[Graph, Moved]:
    """Return a graph with nodes replaced, or the graph itself if none was; its nodes are not changed.

    Parameters
    ----------
    replace : callable
        Receives each operator node, after its inputs were replaced; returns an entry for each of its outputs, or None to keep
        the node.
    known : Known, optional
        Shapes and types; those of rebuilt nodes are added.
    given : dict, optional
        Replacements of entries, which take precedence.

    Returns
    -------
    graph : Graph
    moved : dict
        Maps changed entries to new ones.
    """
    moved: Moved = dict(given or {})
    for node in graph.nodes:
        if node.op is None:
            continue
        new = rebuilt(node, moved)
        if new is not node and known is not None:
            known.copy(node, new)
        entries = replace(new)
        if entries is None and new is node:
            continue
        for k in range(node.n_outputs):
            moved.setdefault((node, k), (new, k) if entries is None else entries[k])
    return (Graph(moved.get(e, e) for e in graph.outputs) if moved else graph), moved


def exchanged(graph: Graph, values: Moved) -> Graph:
    """Return a graph with entries replaced; control dependencies follow them."""
    return rewrite(graph, lambda node: None, given=values)[0]


def rebuilt(node: Node, moved: Moved, controls: dict[Node, Node] | None = None) -> Node:
    """Return the node with its inputs and control dependencies replaced; the node itself if none was.

    Parameters
    ----------
    controls : dict, optional
        Replacements of nodes for control dependencies, in addition to `moved`.
    """
    control = node.control
    if control:
        after = {_moved_node(n, moved, controls or {}): n for n in control}
        control = tuple([new for new, n in after.items() if new is n or new.op is not None])  # variables need no order
    for entry in node.inputs:
        if entry in moved:
            break
    else:
        return node if control == node.control else node.replaced(control=control)
    return node.replaced(tuple([moved.get(e, e) for e in node.inputs]), control=control)


def _moved_node(node: Node, moved: Moved, controls: dict[Node, Node]) -> Node:
    places = [moved[node, k][0] for k in range(node.n_outputs) if (node, k) in moved]
    return controls.get(node) or next((n for n in places if n is not node), node)


def follow(node: Node, moved: Moved, known: Known) -> None:
    """Rebuild a node if its inputs were replaced, and add its outputs to `moved`."""
    new = rebuilt(node, moved)
    if new is not node:
        known.copy(node, new)
        moved.update({(node, k): (new, k) for k in range(node.n_outputs)})


def merged(graph: Graph, units: Sequence[Unit], merge: Callable[[Unit, Moved], None], known: Known) -> Graph:
    """Return a graph in which each unit is one node: ``merge(unit, moved)`` makes it and adds the unit's results to `moved`."""
    ids = {id(unit) for unit in units}
    moved: Moved = {}
    for unit in in_order(graph, units):
        if id(unit) in ids:
            merge(unit, moved)
        else:
            follow(unit[0], moved, known)
    return Graph(moved.get(e, e) for e in graph.outputs)


def with_copies(graph: Graph, n_forward: int, again: Set[Node], kept: Set[Entry], known: Known) -> Graph:
    """Return a graph whose backward nodes read copies of the forward nodes in `again`, but the originals' entries in `kept`."""
    forward = Graph(graph.outputs[:n_forward]).nodes
    is_forward = set(forward)
    moved: Moved = {}
    for node in forward:
        if node in again:
            new = rebuilt(node, moved).replaced(name=f"{node.name}_again")
            known.copy(node, new)
            moved.update({(node, k): (new, k) for k in range(node.n_outputs) if (node, k) not in kept})
    for node in graph.nodes:
        if node not in is_forward:
            follow(node, moved, known)
    return Graph([*graph.outputs[:n_forward], *(moved.get(e, e) for e in graph.outputs[n_forward:])])


def adopt(entries: Iterable[Entry], node: Node, known: Known) -> list[Entry]:
    """Return the entries with which a pass replaces a node, as copies that have the node's source.

    The outermost new node keeps the name of `node`, so that outputs keep theirs.  Shapes and types are added to `known`.

    Raises
    ------
    OpValueError
        If the pass used a variable that the graph does not have.
    """
    entries = list(entries)
    copies: dict[Node, Node] = {}
    for new in topological([n for n, _ in entries], lambda n: () if n in known else n.needs()):
        if new in known:
            continue
        if new.op is None:
            raise OpValueError(f"it put {describe(new)} in the place of {describe(node)}, but the graph has no such variable")
        inputs = tuple((copies.get(n, n), k) for n, k in new.inputs)
        name = node.name if new is entries[0][0] else f"{node.name}_{new.name}"
        control = tuple([copies.get(n, n) for n in new.control])
        copy = Node(new.op, new.attrs, inputs, name, new.strings, node.source, node.order, control)
        known.add(copy)
        copies[new] = copy
    return [(copies.get(n, n), k) for n, k in entries]
