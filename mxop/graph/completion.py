"""Graphs whose sizes are symbolic: made once, and completed for the sizes of each call."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ..opdef import Attrs, Operator
from ..opdef.symbolic import Trace, Values, concrete, with_constants
from .fuse import Fused
from .infer import Known
from .ir import Graph, Node
from .stages import Strip

Op = TypeVar("Op", bound=Operator)


def completed(graph: Graph, known: Known, trace: Trace, values: Values) -> tuple[Graph, Known]:
    """Return a graph, and its shapes, for the sizes and numbers of one call."""
    new: dict[Node, Node] = {}
    found = Known()
    found.n_forward, found.on_cpu = known.n_forward, known.on_cpu
    for node in graph.nodes:
        new[node] = mine = _completed_node(node, new, trace, values)
        if node in known:
            found.put(mine, *known.completed(node, values))
    return Graph([(new[node], k) for node, k in graph.outputs]), found


def with_values(graph: Graph, trace: Trace, values: Values) -> Graph:
    """Return a graph that the passes have not seen with the parameters of one call."""
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        new[node] = _completed_node(node, new, trace, values)
    return Graph([(new[node], k) for node, k in graph.outputs])


def _completed_node(node: Node, new: dict[Node, Node], trace: Trace, values: Values) -> Node:
    if node.op is None:
        return node
    op, attrs = node.op, concrete(node.attrs.values_, values)
    if isinstance(op, Fused):
        op = _completed_fused(op, trace, values)
    elif isinstance(op, Strip):
        op = _completed_strip(op, trace, values)
    inputs = tuple([(new[source], k) for source, k in node.inputs])
    control = tuple([new[n] for n in node.control])
    attrs = node.attrs if attrs is node.attrs.values_ else Attrs(node.attrs.names, attrs)
    return node.replaced(inputs, op=op, attrs=attrs, control=control)


def _again(op: Op) -> Op:
    """Return an operator object like another: operators are not copied otherwise, for they are what they are by identity."""
    new = object.__new__(type(op))
    new.__dict__.update(op.__dict__)
    return new


def _completed_fused(op: Fused, trace: Trace, values: Values) -> Fused:
    new = _again(op)
    new.roots, new.shape = with_constants(op.roots, trace, values), concrete(op.shape, values)
    return new


def _completed_strip(op: Strip, trace: Trace, values: Values) -> Strip:
    new = _again(op)
    new.stages = [
        replace(s, roots=with_constants(s.roots, trace, values), shape=concrete(s.shape, values)) for s in op.stages
    ]
    for name in ("rows", "locals_", "shapes", "seen", "results"):
        setattr(new, name, concrete(getattr(op, name), values))
    return new


def may_be_completed(graph: Graph) -> bool:
    """Tell whether :func:`completed` knows where the sizes of all operators of a graph are."""
    return not any(node.op is not None and (node.op.bodies or node.op.sized_by is not None) for node in graph.nodes)


__all__ = ["completed", "may_be_completed", "with_values"]
