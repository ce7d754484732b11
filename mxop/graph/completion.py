"""Completion: a graph with symbolic sizes is made once, and its sizes and parameters are filled in for each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from ..formula import Expr, const, param, substitute, walk
from ..opdef import Attrs, Operator
from ..opdef.symbolic import Completions, Trace, Values, completed, concrete, is_symbolic, no_new_guards
from .fuse import Fused
from .infer import Known
from .ir import Entry, Graph, Node
from .stages import Strip

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
        self.n_forward, self.on_cpu, self.completer = known.n_forward, known.on_cpu, known.completer
        self.recipes = dict(known.recipes)
        self._symbolic, self.values, self._all = known, values, trace.extended(values)
        self._calls: dict[Node, tuple[Operator, Attrs]] = {}

    def _found(self, node: Node) -> tuple[list, list[int]]:
        found = self._of.get(node)
        if found is None:
            shapes, types = self._symbolic._found(node)
            found = self._of[node] = concrete(list(shapes), self._all), types
        return found

    def __contains__(self, node: Node) -> bool:
        return node in self._symbolic

    def call(self, node: Node) -> tuple[Operator, Attrs]:
        found = self._calls.get(node)
        if found is None:
            op, attrs, numbers = self.completer.call(node)(self.completer.parts.of(self.values))
            found = self._calls[node] = (_with_constants(op, numbers) if numbers else op), attrs
        return found


#: Given what :meth:`Completions.of` returned, returns the completed operator and parameters of a node, and the values of the
#: symbolic parameters that remain in formulas, by name.
CompletingCall = Callable[[tuple], tuple[Operator, Attrs, dict[str, float]]]
_SIZES = {Fused: ("shape",), Strip: ("rows", "locals_", "stages", "shapes", "seen", "results")}


class Completer:
    """Completes the calls of a graph with symbolic sizes and parameters.

    Attributes
    ----------
    parts : Completions
        Of shapes and parameters.
    """

    def __init__(self, trace: Trace):
        self.parts, self._leaves = Completions(trace), trace.leaves
        self._calls: dict[Node, CompletingCall] = {}

    def call(self, node: Node) -> CompletingCall:
        """Return a function that returns the completed operator and parameters of a node."""
        found = self._calls.get(node)
        if found is None:
            found = self._calls[node] = self._completing(node.op, node.attrs)
        return found

    def _completing(self, op: Any, attrs: Attrs) -> CompletingCall:
        names, values = _SIZES.get(type(op), ()), self.parts.add(attrs.values_)
        sizes = self.parts.add(tuple([getattr(op, name) for name in names]))
        leaves = [n for roots in _formulas(op) for n in walk(roots) if n in self._leaves]
        numbers = {leaf.label: self.parts.add(self._leaves[leaf]) for leaf in leaves}

        def complete(found: tuple) -> tuple[Operator, Attrs, dict[str, float]]:
            return (
                op if sizes[0] < 0 else _changed(op, **dict(zip(names, found[sizes[0]], strict=True))),
                attrs if values[0] < 0 else Attrs(attrs.names, found[values[0]]),
                {name: float(completed(n, found)) for name, n in numbers.items()},
            )

        return complete


def _formulas(op: Any) -> list[tuple[Expr, ...]]:
    """Return the formulas of a fused operator, for each stage."""
    return [s.roots for s in op.stages] if isinstance(op, Strip) else [op.roots] if isinstance(op, Fused) else []


def _with_constants(op: Any, numbers: Mapping[str, float]) -> Any:
    """Return a fused operator with parameters of its formulas replaced by constants."""
    constants = {param(name): const(value) for name, value in numbers.items()}
    formulas = [tuple(substitute(roots, constants)) for roots in _formulas(op)]
    if isinstance(op, Fused):
        return _changed(op, roots=formulas[0])
    return _changed(op, stages=[s._replace(roots=roots) for s, roots in zip(op.stages, formulas, strict=True)])


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
    calls = [node for node in graph.nodes if node.op is not None]
    return all(n.op.sized_by is None and all(_holds_no_sizes(b, n.op.given) for b in n.op.bodies) for n in calls)  # type: ignore


def _holds_no_sizes(body: Graph, given: Sequence[Node]) -> bool:
    """Return whether a loop's body, with variables `given`, is the same graph for all sizes: numbers are variables."""
    known = {*body.variables} <= {*given} and may_be_completed(body)
    return known and not any(n.op is not None and is_symbolic(n.attrs.values_) for n in body.nodes)


__all__ = ["Completed", "Completer", "NamedNodes", "may_be_completed", "with_values"]
