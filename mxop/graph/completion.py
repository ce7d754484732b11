"""Graphs whose sizes are symbolic: made once, and completed for the sizes and numbers of each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from ..formula import Expr, const, substitute, walk
from ..opdef import Attrs, Operator
from ..opdef.symbolic import Trace, Values, concrete, no_questions
from .fuse import Fused
from .infer import Known
from .ir import Entry, Graph, Node
from .stages import Strip

Op = TypeVar("Op", bound=Operator)


class Completed(Known):
    """Shapes, types and calls of a graph for the sizes and numbers of one call.

    Parameters
    ----------
    known : Known
        With symbolic sizes.
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
            found = self._calls[node] = self._completed(node)
        return found

    def _completed(self, node: Node) -> tuple[Operator, Attrs]:
        op: Any = node.op
        if isinstance(op, Fused):
            roots, shape = self._with_constants(op.roots), concrete(op.shape, self._values)
            op = op if roots is op.roots and shape is op.shape else _changed(op, roots=roots, shape=shape)
        elif isinstance(op, Strip):
            stages = [
                replace(s, roots=self._with_constants(s.roots), shape=concrete(s.shape, self._values))
                for s in op.stages
            ]
            sizes = ("rows", "locals_", "shapes", "seen", "results")
            op = _changed(op, stages=stages, **{name: concrete(getattr(op, name), self._values) for name in sizes})
        values = concrete(node.attrs.values_, self._values)
        return op, node.attrs if values is node.attrs.values_ else Attrs(node.attrs.names, values)

    def _with_constants(self, roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Return formulas with the numbers of the call as constants."""
        numbers = {leaf: self._leaves[leaf] for leaf in _parameters(roots) if leaf in self._leaves}
        if not numbers:
            return roots
        return tuple(substitute(roots, {leaf: const(float(concrete(n, self._values))) for leaf, n in numbers.items()}))


@lru_cache(4096)
def _parameters(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple([e for e in walk(roots) if e.kind == "param"])


def _changed(op: Op, **changes: Any) -> Op:
    """Return an operator object like another: operators are not copied otherwise, for they are what they are by identity."""
    new = object.__new__(type(op))
    new.__dict__.update(op.__dict__, **changes)
    return new


class Shown:
    """A graph's nodes as people see them: completed, with names.

    Parameters
    ----------
    graph : Graph
    known : Known
    given : dict, optional
        What stands in the place of variables.
    named : callable, optional
        Gives a node its name.
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
    @no_questions()
    def _all(self) -> tuple[dict[Node, Node], Known]:
        """The nodes, those that others were made of as well; and shapes and types of all."""
        if not isinstance(self._known, Completed):
            return {}, self._known
        new, found = dict(self._given), Known()
        for node in Graph([*((m, 0) for n in self._graph.nodes for m in _members(n)), *self._graph.outputs]).nodes:
            if node not in new:
                new[node] = self._shown(node, new)
            if node in self._known:
                found.put(new[node], *self._known._found(node))
        return new, found

    def _shown(self, node: Node, new: Mapping[Node, Node]) -> Node:
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
    """Return the nodes that a node was made of, and theirs."""
    own = node.op.members if isinstance(node.op, (Fused, Strip)) else ()
    return [n for m in own for n in (*_members(m), m)]


def with_values(graph: Graph, trace: Trace, values: Values) -> Graph:
    """Return a graph that the passes have not seen with the parameters of one call."""
    new: dict[Node, Node] = {}
    values = trace.extended(values)
    for node in graph.nodes:
        attrs = concrete(node.attrs.values_, values)
        inputs, control = tuple([(new[n], k) for n, k in node.inputs]), tuple([new[n] for n in node.control])
        own = node.attrs if attrs is node.attrs.values_ else Attrs(node.attrs.names, attrs)
        new[node] = node if node.op is None else node.replaced(inputs, attrs=own, control=control)
    return Graph([(new[node], k) for node, k in graph.outputs])


def may_be_completed(graph: Graph) -> bool:
    """Tell whether it is known where the sizes of all operators of a graph are."""
    return not any(node.op is not None and (node.op.bodies or node.op.sized_by is not None) for node in graph.nodes)


__all__ = ["Completed", "Shown", "may_be_completed", "with_values"]
