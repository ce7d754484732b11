"""Passes made of visitors: functions that are called for each node of an operator or kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...opdef import Operator, registry
from ...support.errors import OpTypeError
from .. import symbols
from ..infer import Known
from ..ir import Graph, Node
from .base import Rewriting

KINDS = ("elementwise", "reduction", "kernel", "composite", "external", "subgraph")

Rule = tuple[tuple[Any, ...], Callable]


class Visit:
    """Collects visitors: ``@visit.on('prod')``."""

    def __init__(self, rules: tuple[Rule, ...] = ()):
        self.rules = rules

    def on(self, *keys: Any) -> Callable[[Callable], Visit]:
        """Decorate a method ``visitor(self, node, *inputs)`` of a :class:`PeepholePass`.

        Parameters
        ----------
        *keys : str, Operator or subclass of Operator
            Names (or aliases) of operators, kinds such as ``'reduction'``, operators, or their classes; none for all nodes.
        """
        for key in keys:
            known = isinstance(key, (str, Operator)) or (isinstance(key, type) and issubclass(key, Operator))
            if not known:
                raise OpTypeError(f"visit.on: {key!r} is neither the name of an operator, nor a kind, nor an operator")

        def decorate(function: Callable) -> Visit:
            return Visit((*self.rules, (keys, function)))

        return decorate


visit = Visit()


class _Prepared(type):
    """Adds the name ``visit`` to the body of each peephole pass."""

    @classmethod
    def __prepare__(mcs, name: str, bases: tuple, **kwargs: Any) -> dict[str, Any]:
        return {"visit": visit}


class PeepholePass(Rewriting, metaclass=_Prepared):
    """A pass made of visitors, each for nodes of an operator or kind.

    A visitor receives the node and its inputs as symbols with ``shape``, ``dtype``, ``attrs``, and, for constants, ``value``
    and ``fill``.  Nodes are visited after their inputs, until nothing is replaced.  Visitors for a node's operator are
    called first, then those for its kind, then those for all nodes.

    Examples
    --------
    >>> import mxop as mx
    >>> class SquareRoots(mx.graph.PeepholePass):
    ...     @visit.on('sqrt')
    ...     def root_of_square(self, node, x):
    ...         if x.op_name == 'square':
    ...             self.replace(node, mx.sym.abs(x.inputs[0]))
    >>> y = mx.sym.sqrt(mx.sym.square(mx.sym.Variable('x')), name='root')
    >>> y.optimize([SquareRoots]).get_internals().list_outputs()
    ['x', 'root_output']
    """

    _rules: tuple[Rule, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = [rule for found in cls.__dict__.values() if isinstance(found, Visit) for rule in found.rules]
        cls._rules = tuple(dict.fromkeys([*own, *cls._rules]))

    def begin_pass(self, graph: Graph, known: Known) -> None:
        super().begin_pass(graph, known)
        self._of_op: dict[Operator, list[Callable]] = {}
        self._names: dict[Operator, list[Callable]] = {}
        for keys, function in self._rules:
            for key in keys:
                if isinstance(key, str) and key not in KINDS:
                    op = registry.find(key)
                    if op is None:
                        raise registry.not_registered(key, f"it visits operator {key!r}, which is not registered")
                    self._names.setdefault(op, []).append(function)
                elif isinstance(key, Operator):
                    self._names.setdefault(key, []).append(function)

    def _visitors(self, op: Operator) -> list[Callable]:
        """Return the visitors of an operator, the most specific first."""
        found = self._of_op.get(op)
        if found is None:
            by_kind = [f for keys, f in self._rules if any(self._is_kind(key, op) for key in keys)]
            rest = [f for keys, f in self._rules if not keys]
            found = self._of_op[op] = [*self._names.get(op, ()), *by_kind, *rest]
        return found

    @staticmethod
    def _is_kind(key: Any, op: Operator) -> bool:
        return op.kind == key if isinstance(key, str) else isinstance(key, type) and isinstance(op, key)

    def looks_at(self, op: Operator) -> bool:
        return bool(self._visitors(op))

    def visit_node(self, node: Node) -> None:
        visitors = self._visitors(node.op)  # type: ignore[arg-type]
        if not visitors:
            return
        seen = symbols.operand([(node, k) for k in range(node.n_outputs)], self.known)
        inputs = [symbols.operand([e], self.known) for e in node.inputs]
        for function in visitors:
            function(self, seen, *inputs)
            if node in self._replacement:
                return
