"""Completion: a graph with symbolic sizes is made once, and its sizes and parameters are filled in for each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from ..formula import Expr, const, substitute, walk
from ..opdef import Attrs, Operator
from ..opdef.symbolic import Trace, Values, completing, concrete, no_new_guards
from .fuse import Fused
from .infer import Known
from .ir import Entry, Graph, Node
from .stages import Stage, Strip

Kind = TypeVar("Kind")


class Completed(Known):
    """Shapes, types and calls of a graph for the sizes and parameters of one call.

    Parameters
    ----------
    known : Known
        Shapes and calls with symbolic sizes.
    trace : Trace
    values : dict of str to float
    """

    def __init__(self, known: Known, trace: Trace, values: Values):
        super().__init__()
        self.n_forward, self.on_cpu = known.n_forward, known.on_cpu
        self._symbolic, self._values = known, trace.extended(values)
        self._leaves = trace.leaves
        self._calls: dict[Node, tuple[Operator, Attrs]] = {}

    def _found(self, node: Node) -> tuple[list, list[int]]:
        found = self._of.get(node)
        if found is None:
            shapes, types = self._symbolic._found(node)
            found = self._of[node] = concrete(list(shapes), self._values), types
        return found

    def __contains__(self, node: Node) -> bool:
        return node in self._symbolic

    def call(self, node: Node) -> tuple[Operator, Attrs]:
        found = self._calls.get(node)
        if found is None:
            complete = self._symbolic.completing.get(node)
            if complete is None:
                complete = self._symbolic.completing[node] = _completing_call(node, self._leaves)
            found = self._calls[node] = complete(self._values)
        return found


#: A function that completes a value for the values of a call; None if the value has no symbolic parts.
Completing = Callable[[Values], Any] | None
_SIZES = {Fused: ("shape",), Strip: ("rows", "locals_", "shapes", "seen", "results")}


def _completing_call(node: Node, leaves: Mapping[Expr, Any]) -> Callable[[Values], tuple[Operator, Attrs]]:
    """Return a function that returns the completed operator and parameters of a node."""
    op, attrs = node.op, node.attrs
    parts = {name: completing(getattr(op, name)) for name in _SIZES.get(type(op), ())}
    if isinstance(op, Fused):
        parts["roots"] = _completing_roots(op.roots, leaves)
    elif isinstance(op, Strip):
        parts["stages"] = _completing_stages(op.stages, leaves)
    of_op, of_attrs = _completing_object(op, parts), completing(attrs.values_)
    return lambda values: (
        op if of_op is None else of_op(values),
        attrs if of_attrs is None else Attrs(attrs.names, of_attrs(values)),
    )


def _completing_stages(stages: Sequence[Stage], leaves: Mapping[Expr, Any]) -> Completing:
    parts = [
        _completing_object(s, {"roots": _completing_roots(s.roots, leaves), "shape": completing(s.shape)})
        for s in stages
    ]
    if not any(parts):
        return None
    return lambda values: [s if part is None else part(values) for s, part in zip(stages, parts, strict=True)]


def _completing_roots(roots: tuple[Expr, ...], leaves: Mapping[Expr, Any]) -> Completing:
    """Return a function that replaces symbolic parameters in formulas by constants."""
    numbers = {leaf: leaves[leaf] for leaf in walk(roots) if leaf.kind == "param" and leaf in leaves}
    if not numbers:
        return None
    return lambda values: tuple(
        substitute(roots, {leaf: const(float(concrete(n, values))) for leaf, n in numbers.items()})
    )


def _completing_object(template: Any, parts: Mapping[str, Completing]) -> Completing:
    """Return a function that returns a copy of `template` with the attributes in `parts` completed."""
    changes = [(name, part) for name, part in parts.items() if part is not None]
    return (lambda values: _changed(template, **{name: part(values) for name, part in changes})) if changes else None


def _changed(template: Kind, **changes: Any) -> Kind:
    """Return a copy of `template` with changed attributes; ``copy.copy`` returns operators themselves."""
    new = object.__new__(type(template))
    new.__dict__.update(template.__dict__, **changes)
    return new


class NamedNodes:
    """Maps the nodes of a pattern to completed nodes with names, for messages and tables.

    Parameters
    ----------
    graph : Graph
    known : Known
    given : dict, optional
        Replacements of variables.
    named : callable, optional
        Returns a node with its name.
    """

    def __init__(
        self,
        graph: Graph,
        known: Known,
        given: Mapping[Node, Node] | None = None,
        named: Callable[[Node], Node] | None = None,
    ):
        self._graph, self._known, self._given, self._named = graph, known, given or {}, named

    def __call__(self, node: Node) -> Node:
        return self._all[0].get(node, node)

    def entry(self, entry: Entry) -> Entry:
        return self(entry[0]), entry[1]

    @property
    def known(self) -> Known:
        return self._all[1]

    @cached_property
    @no_new_guards()
    def _all(self) -> tuple[dict[Node, Node], Known]:
        """The map from nodes, also members of fused nodes, to completed ones; and shapes and types of these."""
        if not isinstance(self._known, Completed):
            return {}, self._known
        new, found = dict(self._given), Known()
        for node in Graph([*((m, 0) for n in self._graph.nodes for m in _members(n)), *self._graph.outputs]).nodes:
            if node not in new:
                new[node] = self._completed(node, new)
            if node in self._known:
                found.put(new[node], *self._known._found(node))
        return new, found

    def _completed(self, node: Node, new: Mapping[Node, Node]) -> Node:
        if node.op is None:
            return node
        op, attrs = self._known.call(node)
        if isinstance(op, (Fused, Strip)):
            entries = tuple([(new[m], k) for m, k in op.entries])
            op = _changed(op, members=tuple([new[m] for m in op.members]), entries=entries)
        inputs = tuple([(new[n], k) for n, k in node.inputs])
        named = node if self._named is None else self._named(node)
        return named.replaced(inputs, op=op, attrs=attrs, control=tuple([new[n] for n in node.control]))


def _members(node: Node) -> Sequence[Node]:
    """Return the members of a fused node, and theirs."""
    own = node.op.members if isinstance(node.op, (Fused, Strip)) else ()
    return [n for m in own for n in (*_members(m), m)]


def with_values(graph: Graph, trace: Trace, values: Values) -> Graph:
    """Return a graph with symbolic parameters replaced by values; the passes have not run on it."""
    new: dict[Node, Node] = {}
    values = trace.extended(values)
    for node in graph.nodes:
        attrs = concrete(node.attrs.values_, values)
        inputs, control = tuple([(new[n], k) for n, k in node.inputs]), tuple([new[n] for n in node.control])
        own = node.attrs if attrs is node.attrs.values_ else Attrs(node.attrs.names, attrs)
        new[node] = node if node.op is None else node.replaced(inputs, attrs=own, control=control)
    return Graph([(new[node], k) for node, k in graph.outputs])


def may_be_completed(graph: Graph) -> bool:
    """Return whether the attributes that hold sizes are known for all operators of a graph."""
    return not any(node.op is not None and (node.op.bodies or node.op.sized_by is not None) for node in graph.nodes)


__all__ = ["Completed", "NamedNodes", "may_be_completed", "with_values"]
