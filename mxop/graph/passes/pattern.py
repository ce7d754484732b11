"""Passes that search a graph for patterns, which are symbols over labels."""

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
    """The operator of :func:`label`, which matches any value."""

    def __init__(self, name: str, constraint: Callable | None):
        super().__init__(_anything, name="_label", module=__name__)
        self.label, self.constraint = name, constraint


class _Skip(Kernel):
    """The operator of :func:`skip`, which matches its pattern, or a node with the pattern below it."""

    def __init__(self, when: Callable):
        super().__init__(_anything, name="_skip", module=__name__)
        self.when = when


def _anything(data):
    """A part of a pattern."""


def label(name: str, constraint: Callable[[Any], bool] | None = None, pattern: Any = None) -> Any:
    """Return a symbol that matches any value in a pattern, under a name.

    Parameters
    ----------
    name : str
        Key of the match in the callback's `labels`.  A label used twice in a pattern must match the same value twice.
    constraint : callable, optional
        ``constraint(x)`` returns whether `x`, a symbol with ``shape``, ``dtype``, ``fill``..., may match.
    pattern : Symbol, optional
        A pattern that the value has to match.

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
    """Return a symbol that matches `pattern`, also below nodes for which ``when(node)`` holds.

    The first input of such nodes is searched.

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
    """Return one name for all forms of a function of two arrays: ``broadcast_add`` is ``elemwise_add``."""
    from ...ops.binary import TABLE

    found = {"_grad_add": "elemwise_add"}
    for row in TABLE:
        names = [text.split()[0] for text in (row.elemwise, row.broadcast) if text]
        found.update(dict.fromkeys(names, names[0]) if names else {})
    return found


def _form(op: Operator) -> str:
    return _forms().get(op.name, op.name)


class Labels(Mapping):
    """The matches of a pattern's labels, by name or by label."""

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
    """A pass made of patterns, each with a function that is called for its matches.

    A pattern is any symbol over :func:`label` and :func:`skip`.  Parameters of a pattern must be equal in a match; others are
    ignored.  Inputs of commutative operators match in any order, and ``a + b`` matches ``broadcast_add`` too.  If several
    patterns match a node, the first one that replaces it wins.

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
            The node of its first output may be replaced.
        callback : callable
            ``callback(node, labels)`` may call :meth:`replace`, or leave the node.
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
        """Yield each match of a pattern with an entry that extends the matches `found`."""
        (wanted, k), (node, output) = pattern, entry
        if isinstance(wanted.op, _Label):
            yield from self._matches_label(wanted, entry, found)
        elif isinstance(wanted.op, _Skip):
            yield from self._matches(wanted.inputs[0], entry, found)
            if node.inputs and wanted.op.when(symbols.operand([entry], self.known)):
                yield from self._matches(pattern, node.inputs[0], found)
        elif wanted.op is None:  # variables match by name
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
    """Return whether a node has the parameters that a pattern gives."""
    given = [name for name in wanted.strings or () if name in wanted.attrs.names]
    if wanted.op is not node.op:
        return all(node.attrs.get(name) == wanted.attrs[name] for name in given)
    return all(node.attrs[name] == wanted.attrs[name] for name in given)


def _orders(wanted: Node, node: Node) -> Iterator[tuple[Entry, ...]]:
    """Yield the orders of a node's inputs in which they are matched with those of a pattern."""
    if len(wanted.inputs) != len(node.inputs):
        return
    if _form(node.op) in _COMMUTATIVE and 1 < len(node.inputs) <= _MOST_PERMUTED:  # type: ignore[arg-type]
        yield from permutations(node.inputs)
    else:
        yield node.inputs


__all__ = ["Labels", "RewritePass", "label", "skip"]
