"""The verifier: checks the invariants of a graph after each pass."""

from __future__ import annotations

from typing import Any

from ..opdef import Operator, infer
from ..support.errors import MXNetError
from .infer import Known
from .ir import Graph, Node, describe


def verify(
    graph: Graph, known: Known | None = None, after: str | None = None, verified: set[Node] | None = None,
    complete: bool = False,
) -> None:  # fmt: skip
    """Raise unless a graph is valid.

    Parameters
    ----------
    graph : Graph
    known : Known, optional
        Shapes and types, which are inferred again and compared.
    after : str, optional
        The pass that made the graph, for the message.
    verified : set of Node, optional
        Nodes that were verified before (they are immutable); those of this graph are added.
    complete : bool
        Infer shapes and types that are missing in `known`; otherwise missing ones are an error.

    Raises
    ------
    MXNetError
        For a cycle, a missing output, a wrong number of inputs, or a wrong shape or type.
    """
    blame = _blame(after)
    verified = set() if verified is None else verified
    for node in graph.nodes:  # in this order, a node comes before one that it needs only in a cycle
        if node in verified:
            continue
        for source, _ in node.below():
            if source not in verified:
                raise MXNetError(f"{blame}{describe(node)} and {describe(source)} need each other")
        if node.op is None:
            if node.inputs:
                raise MXNetError(f"{blame}{describe(node)} has inputs")
        else:
            _check_call(node, blame)
            if complete and node not in known:  # type: ignore[operator]
                _infer(node, known, blame)  # type: ignore[arg-type]
            elif known is not None:
                _check_known(node, known, blame)
        verified.add(node)
    for node, k in graph.outputs:
        if not 0 <= k < node.n_outputs:
            raise MXNetError(f"{blame}output {k} of {describe(node)} is asked for; it has {node.n_outputs}")


def _blame(after: str | None) -> str:
    return f"the graph is damaged after pass {after!r}: " if after else "the graph is damaged: "


def _check_call(node: Node, blame: str) -> None:
    if not isinstance(node.op, Operator):
        raise MXNetError(f"{blame}{node.name!r} calls {node.op!r}, which is not an operator")
    for source, k in node.inputs:
        if not 0 <= k < source.n_outputs:
            raise MXNetError(f"{blame}{describe(node)} reads output {k} of {describe(source)}; it has {source.n_outputs}")
    try:
        node.op.check_arity(node.attrs, len(node.inputs))
    except MXNetError as problem:
        raise MXNetError(f"{blame}{problem}; at {describe(node)}") from None


def _infer(node: Node, known: Known, blame: str) -> None:
    try:
        known.add(node)
    except MXNetError as problem:
        raise type(problem)(f"{blame}{problem}") from None


def _check_known(node: Node, known: Known, blame: str) -> None:
    if node not in known:
        raise MXNetError(f"{blame}nothing is known of the shape of {describe(node)}")
    found = known.answer(node)
    if found is None:
        return
    for k, (shape, code) in enumerate(zip(*found, strict=True)):
        have = known.shape((node, k)), known.dtype((node, k))
        if infer.known(shape) and (tuple(shape), code) != have:
            raise MXNetError(f"{blame}output {k} of {describe(node)} is said to be {have}; its inputs give {(shape, code)}")


def verify_arguments(before: Graph, graph: Graph, after: str) -> None:
    """Raise if a pass added a variable."""
    for node in set(graph.variables) - set(before.variables):
        raise MXNetError(f"{_blame(after)}{describe(node)} is new; a pass cannot ask for further arguments")


def verify_kept(before: Graph, graph: Graph, known: Known, after: str) -> None:
    """Raise unless a pass kept the number of outputs, their shapes and types."""
    blame = _blame(after)
    if len(graph.outputs) != len(before.outputs):
        raise MXNetError(f"{blame}it has {len(graph.outputs)} outputs; before it had {len(before.outputs)}")
    for i, (new, old) in enumerate(zip(graph.outputs, before.outputs, strict=True)):
        if known.conflict(new, old):
            have, want = (known.shape(new), known.dtype(new)), (known.shape(old), known.dtype(old))
            raise MXNetError(f"{blame}output {i}, {describe(new[0])}, has shape and type {have}; before they were {want}")


Snapshot = list[tuple[Node, tuple[Any, ...]]]


def snapshot(graph: Graph) -> Snapshot:
    """Return the attributes of a graph's nodes, before a user's pass receives them."""
    return [(n, (n.op, n.attrs, n.inputs, n.name, n.control)) for n in graph.nodes]


def verify_untouched(before: Snapshot, after: str) -> None:
    """Raise if a pass changed a node that it was given, after restoring it."""
    changed = None
    for node, parts in before:
        if any(a is not b for a, b in zip(parts, (node.op, node.attrs, node.inputs, node.name, node.control))):
            node.op, node.attrs, node.inputs, node.name, node.control = parts
            changed = changed or node
    if changed is not None:
        raise MXNetError(f"pass {after!r} changed {describe(changed)}, which belongs to the graph that it was given; a pass "
                         f"builds new nodes")  # fmt: skip
