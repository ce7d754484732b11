"""What a pass is: a function from a graph to a graph that means the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ...opdef import Operator
from ...support.errors import MXNetError, OpTypeError, OpValueError, fitting
from .. import symbols
from ..infer import Known, located
from ..ir import Entry, Graph, Node, describe
from ..rewrite import adopt, rewrite

#: When a pass runs: on the symbol as it was written, before gradients are taken; on the expanded graph with its
#: gradients; after that, while a schedule is made; or only as a choice that the memory plan looks at.
STAGES = ("symbol", "graph", "schedule", "plan")

_MAX_SWEEPS = 100


class Pass:
    """A transformation of graphs; subclasses write :meth:`do_pass`, or :meth:`run` when they need shapes.

    A pass builds new nodes beside the old ones and never changes the graph that it gets.  It keeps the number of outputs,
    their shapes and types, and NaN; :func:`~mxop.graph.verify` looks at the result.

    Attributes
    ----------
    name : str
        By default the class's name with underscores: ``FoldConstants`` is ``fold_constants``.
    stage : {'symbol', 'graph', 'schedule', 'plan'}
        Before gradients are taken, after, or later; see :data:`STAGES`.
    automatic : bool
        Whether executors run it unless told otherwise.  ``Symbol.optimize()`` runs the others too.

    Examples
    --------
    >>> import mxop as mx
    >>> class Count(mx.graph.Pass):
    ...     def do_pass(self, graph):
    ...         print(len(graph), 'nodes')
    ...         return graph
    >>> y = (mx.sym.Variable('x') * 2).optimize([Count])
    2 nodes
    """

    name = ""
    stage = "graph"
    automatic = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__.lstrip("_")).lower()

    @property
    def doc(self) -> str:
        return (type(self).__doc__ or "").strip()

    def run(self, graph: Graph, known: Known) -> Graph:
        """Return the new graph; what it makes may be added to `known`, or is inferred afterwards."""
        return self.do_pass(graph) or graph

    def do_pass(self, graph: Graph) -> Graph | None:
        """Return the new graph (None: it stays as it is)."""
        raise NotImplementedError(f"pass {self.name!r} has neither do_pass(graph) nor run(graph, known)")


class Rewriting(Pass):
    """Base of passes that look at one node after the other and put something else in its place."""

    #: Whether to begin again until nothing is left to replace.
    repeat = True

    def begin_pass(self, graph: Graph, known: Known) -> None:
        """Prepare for a sweep over `graph`."""
        self.graph, self.known = graph, known
        self._replacement: dict[Node, list[Entry]] = {}

    def looks_at(self, op: Operator) -> bool:
        """Tell whether the pass may replace calls of an operator; it is not run where no node is one of such."""
        return True

    def visit_node(self, node: Node) -> None:
        """Look at a node, whose inputs were visited; :meth:`replace` it or not."""
        raise NotImplementedError

    def run(self, graph: Graph, known: Known) -> Graph:
        for _ in range(_MAX_SWEEPS):
            self.begin_pass(graph, known)
            if not any(map(self.looks_at, {node.op for node in graph.nodes if node.op is not None})):
                return graph
            new, _ = rewrite(graph, self._visited, known)
            if not self._replacement or not self.repeat:
                return new
            graph = new
        raise MXNetError(f"it still replaces nodes after {_MAX_SWEEPS} sweeps; the last one was "
                         f"{describe(next(iter(self._replacement)))}")  # fmt: skip

    def _visited(self, node: Node) -> list[Entry] | None:
        if node.control:  # its place in time was asked for
            return None
        try:
            self.visit_node(node)
            found = self._replacement.get(node)
            return None if found is None else self._adopted(node, found)
        except MXNetError as problem:
            raise located(problem, node) from problem.__cause__
        except Exception as problem:
            text = f"{type(problem).__name__}: {problem}, at {describe(node)}"
            raise fitting(problem, text).with_traceback(problem.__traceback__) from problem

    def replace(self, node: Any, with_: Any) -> None:
        """Put something else in the place of a node.

        Parameters
        ----------
        node : Symbol or Node
            What the visitor was given.
        with_ : Symbol, or list of Symbol
            One entry per output, of the same shapes and types.
        """
        node = _node_of(node)
        entries = symbols.entries_of(with_)
        if len(entries) != node.n_outputs:
            raise OpValueError(f"it replaces {describe(node)} by {len(entries)} outputs; expected {node.n_outputs}")
        self._replacement[node] = entries

    def _adopted(self, node: Node, entries: list[Entry]) -> list[Entry]:
        """Check what a node is replaced by, and take it into the graph."""
        entries = adopt(entries, node, self.known)
        known = self.known
        for k, entry in enumerate(entries):
            old = (node, k)
            if known.conflict(old, entry):
                have, want = (known.shape(entry), known.dtype(entry)), (known.shape(old), known.dtype(old))
                raise OpValueError(f"it replaces output {k}, of shape and type {want}, by one of {have}")
        return entries


def _node_of(node: Any) -> Node:
    if isinstance(node, Node):
        return node
    entries: Iterable[Entry] = getattr(node, "_entries", ())
    found = {n for n, _ in entries}
    if len(found) != 1:
        raise OpTypeError(f"replace: {node!r} is no node that a visitor was given")
    return found.pop()
