"""The base classes of passes: functions from a graph to an equivalent graph."""

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

#: When a pass runs: on the symbol as written, before gradients are taken; on the expanded graph with its gradients; on that
#: graph while a schedule is made; or never, as an option of the memory plan.
STAGES = ("symbol", "graph", "schedule", "plan")

_MAX_SWEEPS = 100


class Pass:
    """A transformation of graphs; subclasses define :meth:`do_pass`, or :meth:`run` if they need shapes.

    A pass builds new nodes and never changes those it is given.  It keeps the number of outputs, their shapes and types, and
    NaN; :func:`~mxop.graph.verify` checks the result.

    Attributes
    ----------
    name : str
        By default the class's name with underscores: ``FoldConstants`` is ``fold_constants``.
    stage : {'symbol', 'graph', 'schedule', 'plan'}
        When the pass runs; see :data:`STAGES`.
    automatic : bool
        Whether executors run it by default.  ``Symbol.optimize()`` runs the others too.

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
        """Return the new graph; shapes of new nodes may be added to `known`, and are inferred afterwards if not."""
        return self.do_pass(graph) or graph

    def do_pass(self, graph: Graph) -> Graph | None:
        """Return the new graph, or None if it is unchanged."""
        raise NotImplementedError(f"pass {self.name!r} has neither do_pass(graph) nor run(graph, known)")


class Rewriting(Pass):
    """Base of passes that visit each node and may replace it."""

    #: Whether to sweep again until nothing is replaced.
    repeat = True

    def begin_pass(self, graph: Graph, known: Known) -> None:
        """Prepare for a sweep over `graph`."""
        self.graph, self.known = graph, known
        self._replacement: dict[Node, list[Entry]] = {}

    def looks_at(self, op: Operator) -> bool:
        """Return whether the pass may replace calls of an operator; it does not run on graphs without such operators."""
        return True

    def visit_node(self, node: Node) -> None:
        """Visit a node, after its inputs, and :meth:`replace` it or not."""
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
        if node.control:  # its order among other nodes is fixed
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
        """Replace a node by other entries.

        Parameters
        ----------
        node : Symbol or Node
            The node that the visitor received.
        with_ : Symbol, or list of Symbol
            One entry per output, of the same shapes and types.
        """
        node = _node_of(node)
        entries = symbols.entries_of(with_)
        if len(entries) != node.n_outputs:
            raise OpValueError(f"it replaces {describe(node)} by {len(entries)} outputs; expected {node.n_outputs}")
        self._replacement[node] = entries

    def _adopted(self, node: Node, entries: list[Entry]) -> list[Entry]:
        """Check the entries that replace a node, and copy them into the graph."""
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
        raise OpTypeError(f"replace: {node!r} is not a node that a visitor received")
    return found.pop()
