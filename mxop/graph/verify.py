"""The verifier: what holds of every graph, looked at after each pass.  Imports :mod:`.ir` and :mod:`.infer`."""

from __future__ import annotations

from ..errors import MXNetError
from ..opdef import Operator, infer
from .infer import Known
from .ir import Graph, Node, describe


def verify(graph: Graph, known: Known | None = None, after: str | None = None) -> None:
    """Check that a graph is one.

    Parameters
    ----------
    graph : Graph
    known : Known, optional
        Shapes and types, which are inferred again and compared.
    after : str, optional
        The pass that made the graph, for the message.

    Raises
    ------
    MXNetError
        For a cycle, a missing output, a wrong number of inputs, or a shape or type that does not follow.
    """
    blame = f"the graph is damaged after pass {after!r}: " if after else "the graph is damaged: "
    place = {node: i for i, node in enumerate(graph.nodes)}
    answers: dict[tuple, tuple] = {}
    for i, node in enumerate(graph.nodes):
        if node.op is None:
            if node.inputs:
                raise MXNetError(f"{blame}{describe(node)} has inputs")
            continue
        if not isinstance(node.op, Operator):
            raise MXNetError(f"{blame}{node.name!r} calls {node.op!r}, which is no operator")
        for source, k in node.inputs:
            if place[source] >= i:
                raise MXNetError(f"{blame}{describe(node)} and {describe(source)} need each other")
            if not 0 <= k < source.n_outputs:
                raise MXNetError(
                    f"{blame}{describe(node)} reads output {k} of {describe(source)}; it has {source.n_outputs}"
                )
        try:
            node.op.check_arity(node.attrs, len(node.inputs))
        except MXNetError as problem:
            raise MXNetError(f"{blame}{problem}; at {describe(node)}") from None
        if known is not None:
            _check_known(node, known, answers, blame)
    for node, k in graph.outputs:
        if not 0 <= k < node.n_outputs:
            raise MXNetError(f"{blame}output {k} of {describe(node)} is asked for; it has {node.n_outputs}")


def _check_known(node: Node, known: Known, answers: dict[tuple, tuple], blame: str) -> None:
    if node not in known:
        raise MXNetError(f"{blame}nothing is known of the shape of {describe(node)}")
    shapes = tuple(known.shape(e) for e in node.inputs)
    types = tuple(known.dtype(e) for e in node.inputs)
    key = (node.op, node.attrs, shapes, types)
    if key not in answers:
        answers[key] = node.op.infer_outputs(node.attrs, list(shapes), list(types))
    for k, (shape, code) in enumerate(zip(*answers[key], strict=True)):
        have = known.shape((node, k)), known.dtype((node, k))
        if (tuple(shape), code) != have and infer.known(shape):
            raise MXNetError(
                f"{blame}output {k} of {describe(node)} is said to be {have}; its inputs give {(shape, code)}"
            )
