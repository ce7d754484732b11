"""Passes that look for patterns: pieces of a graph, written as symbols over labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import permutations
from typing import Any

from ...opdef import Kernel, Operator
from ...support.errors import OpTypeError
from .. import symbols
from ..infer import Known
from ..ir import Entry, Graph, Node, caller, single, variable
from .base import Rewriting

#: Operators whose inputs may be exchanged (the two-input forms of each function count as one operator).
_COMMUTATIVE = {
    "elemwise_add", "elemwise_mul", "_maximum", "_minimum", "_hypot", "_equal", "_not_equal", "_logical_and", "_logical_or",
    "_logical_xor", "add_n",
}  # fmt: skip
_MOST_PERMUTED = 4


class _Label(Kernel):
    """What stands for "anything" in a pattern."""

    def __init__(self, name: str, constraint: Callable | None):
        super().__init__(_anything, name="_label", module=__name__)
        self.label, self.constraint = name, constraint


class _Skip(Kernel):
    """What stands for "this, or this behind nodes that do not matter"."""

    def __init__(self, when: Callable):
        super().__init__(_anything, name="_skip", module=__name__)
        self.when = when


def _anything(data):
    """A part of a pattern."""


def label(name: str, constraint: Callable[[Any], bool] | None = None, pattern: Any = None) -> Any:
    """Return a symbol that matches anything in a pattern, and remembers what.

    Parameters
    ----------
    name : str
        Under which the callback finds it.  A label that stands in a pattern twice matches one and the same value.
    constraint : callable, optional
        ``constraint(x)``, on a symbol that knows its ``shape``, ``dtype``, ``fill``..., says whether it may match.
    pattern : Symbol, optional
        What it has to look like.

    Examples
    --------
    >>> import mxop as mx
    >>> matrix = mx.graph.label('x', constraint=lambda x: x.ndim == 2)
    """
    if not isinstance(name, str):
        raise OpTypeError(f"label: name={name!r} is not a string")
    below = (variable(name), 0) if pattern is None else single(pattern._entries, "label: pattern")
    op = _Label(name, constraint)
    return symbols.symbol([(Node(op, op.parse({}), (below,), name, {}, caller()), 0)])


def skip(pattern: Any, when: Callable[[Any], bool]) -> Any:
    """Return a symbol that matches `pattern`, also behind nodes for which ``when(node)`` holds.

    Such nodes are passed through by their first input.

    Examples
    --------
    >>> import mxop as mx
    >>> through = mx.graph.skip(mx.graph.label('x'), lambda node: node.op_name in ('_copy', 'Cast'))
    """
    if not callable(when):
        raise OpTypeError(f"skip: when={when!r} is not callable")
    op = _Skip(when)
    below = single(pattern._entries, "skip: pattern")
    return symbols.symbol([(Node(op, op.parse({}), (below,), "skip", {}, caller()), 0)])


@lru_cache(1)
def _forms() -> dict[str, str]:
    """Return one name for the forms of each function of two arrays: ``broadcast_add`` is ``elemwise_add``."""
    from ...ops.binary import TABLE

    found = {"_grad_add": "elemwise_add"}
    for row in TABLE:
        names = [text.split()[0] for text in (row.elemwise, row.broadcast) if text]
        found.update(dict.fromkeys(names, names[0]) if names else {})
    return found


def _form(op: Operator) -> str:
    return _forms().get(op.name, op.name)


class Labels(Mapping):
    """What the labels of a pattern matched, by name or by the label itself."""

    def __init__(self, found: dict[str, Entry], known: Known):
        self._found, self._known = found, known

    def __getitem__(self, key: Any) -> Any:
        name = key if isinstance(key, str) else key._entries[0][0].op.label
        return symbols.operand([self._found[name]], self._known)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class RewritePass(Rewriting):
    """A pass of patterns, each with a function that is called where it matches.

    A pattern is written as any symbol, over :func:`label` and :func:`skip`.  Parameters that it gives must be equal where it
    matches; others may be anything.  Inputs of commutative operators match in any order, and ``a + b`` matches
    ``broadcast_add`` too.  Where several patterns match, the first one that replaces the node wins.

    Examples
    --------
    >>> import mxop as mx
    >>> class Squares(mx.graph.RewritePass):
    ...     def __init__(self):
    ...         x = mx.graph.label('x')
    ...         self.register_pattern(x * x, lambda node, found: self.replace(node, mx.sym.square(found[x])))
    >>> a = mx.sym.Variable('a')
    >>> y = mx.sym.elemwise_mul(a, a).optimize([Squares])
    >>> y.debug_str().count('Op:square')
    1
    """

    _patterns: tuple[tuple[Node, int, Callable], ...] = ()

    def register_pattern(self, pattern: Any, callback: Callable[[Any, Labels], None]) -> None:
        """Add a pattern.

        Parameters
        ----------
        pattern : Symbol
            Its head is the node that may be replaced.
        callback : callable
            ``callback(node, labels)``; it may call :meth:`replace`, or look closer and leave the node.
        """
        head, output = single(pattern._entries, "register_pattern: the pattern")
        if head.op is None or isinstance(head.op, (_Label, _Skip)):
            raise OpTypeError("register_pattern: a pattern begins with the call of an operator")
        self._patterns = (*self._patterns, (head, output, callback))

    def begin_pass(self, graph: Graph, known: Known) -> None:
        super().begin_pass(graph, known)
        self._by_head: dict[str, list[tuple[Node, int, Callable]]] = {}
        for row in self._patterns:
            self._by_head.setdefault(_form(row[0].op), []).append(row)  # type: ignore[arg-type]

    def looks_at(self, op: Operator) -> bool:
        return _form(op) in self._by_head

    def visit_node(self, node: Node) -> None:
        for head, output, callback in self._by_head.get(_form(node.op), ()):  # type: ignore[arg-type]
            found = next(self._matches((head, output), (node, output), {}), None)
            if found is None:
                continue
            callback(symbols.operand([(node, k) for k in range(node.n_outputs)], self.known), Labels(found, self.known))
            if node in self._replacement:
                return

    def _matches(self, pattern: Entry, entry: Entry, found: dict[str, Entry]) -> Iterator[dict[str, Entry]]:
        """Yield the ways in which a pattern fits an entry, given what its labels stand for already."""
        (wanted, k), (node, output) = pattern, entry
        if isinstance(wanted.op, _Label):
            yield from self._matches_label(wanted, entry, found)
        elif isinstance(wanted.op, _Skip):
            yield from self._matches(wanted.inputs[0], entry, found)
            if node.inputs and wanted.op.when(symbols.operand([entry], self.known)):
                yield from self._matches(pattern, node.inputs[0], found)
        elif wanted.op is None:  # a variable of the pattern is that variable
            if node.op is None and node.name == wanted.name:
                yield found
        elif node.op is not None and k == output and _form(node.op) == _form(wanted.op) and _same_params(wanted, node):
            for inputs in _orders(wanted, node):
                yield from self._match_all(wanted.inputs, inputs, found)

    def _matches_label(self, wanted: Node, entry: Entry, found: dict[str, Entry]) -> Iterator[dict[str, Entry]]:
        op: Any = wanted.op
        bound = found.get(op.label)
        if bound is not None:
            if bound == entry:
                yield found
            return
        if op.constraint is not None and not op.constraint(symbols.operand([entry], self.known)):
            return
        below = wanted.inputs[0]
        if below[0].op is None:
            yield {**found, op.label: entry}
            return
        for inner in self._matches(below, entry, found):
            yield {**inner, op.label: entry}

    def _match_all(self, patterns: tuple, entries: tuple, found: dict[str, Entry]) -> Iterator[dict[str, Entry]]:
        if not patterns:
            yield found
            return
        for one in self._matches(patterns[0], entries[0], found):
            yield from self._match_all(patterns[1:], entries[1:], one)


def _same_params(wanted: Node, node: Node) -> bool:
    """Tell whether the parameters that a pattern gives are equal in a node."""
    given = [name for name in wanted.strings or () if name in wanted.attrs.names]
    if wanted.op is not node.op:
        return all(node.attrs.get(name) == wanted.attrs[name] for name in given)
    return all(node.attrs[name] == wanted.attrs[name] for name in given)


def _orders(wanted: Node, node: Node) -> Iterator[tuple[Entry, ...]]:
    """Yield the orders in which a node's inputs may meet those of a pattern."""
    if len(wanted.inputs) != len(node.inputs):
        return
    if _form(node.op) in _COMMUTATIVE and 1 < len(node.inputs) <= _MOST_PERMUTED:  # type: ignore[arg-type]
        yield from permutations(node.inputs)
    else:
        yield node.inputs


__all__ = ["Labels", "RewritePass", "label", "skip"]
