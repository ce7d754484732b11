"""Control dependencies: the order of nodes that do not read each other.

Most graphs need none, since a node runs after its inputs.  Nodes with effects (assignments, external operators) may need them.
A node with control dependencies runs after these, and no pass merges, folds or fuses it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..opdef import registry
from ..support import attribute
from ..support import name as naming
from ..support.errors import OpTypeError, OpValueError
from . import symbols
from .ir import Entry, Graph, Node, caller
from .rewrite import Moved, rebuilt

_scopes = threading.local()


def current() -> tuple[Node, ...]:
    """Return the nodes after which nodes made now will run."""
    return getattr(_scopes, "nodes", ())


@contextmanager
def control_dependencies(before: Any) -> Iterator[None]:
    """Return a scope in which new nodes run after given ones.

    Parameters
    ----------
    before : Symbol, or list of Symbol
        Nested scopes add to the outer ones.

    Examples
    --------
    >>> import mxop as mx
    >>> w = mx.sym.Variable('w')
    >>> with mx.graph.control_dependencies([mx.graph.assign(w, w + 1)]):
    ...     y = w * 10
    >>> mx.graph.computation(y, state={'w': [1, 2]})().asnumpy().tolist()
    [20.0, 30.0]
    """
    outer = current()
    _scopes.nodes = _together(outer, _heads("control_dependencies", before))
    try:
        yield
    finally:
        _scopes.nodes = outer


@contextmanager
def no_dependencies() -> Iterator[None]:
    """Return a scope without control dependencies."""
    outer = current()
    _scopes.nodes = ()
    try:
        yield
    finally:
        _scopes.nodes = outer


@contextmanager
def own_names() -> Iterator[None]:
    """Let symbols be made without counting the user's names on, and without the attributes of the user's scopes."""
    before = attribute.current()
    attribute.AttrScope.current = attribute.AttrScope()
    try:
        with naming.NameManager(), no_dependencies():
            yield
    finally:
        attribute.AttrScope.current = before


def after(symbol: Any, *before: Any) -> Any:
    """Return a symbol of the same value whose last node runs after `before`.

    Parameters
    ----------
    symbol : Symbol
        A variable is read at that time.
    *before : Symbol, or list of Symbol

    Examples
    --------
    >>> import mxop as mx
    >>> w = mx.sym.Variable('w')
    >>> again = mx.graph.after(w, mx.graph.assign(w, w + 1))
    >>> mx.graph.computation(again, state={'w': [1, 2]})().asnumpy().tolist()
    [2.0, 3.0]
    """
    nodes = _heads("after", list(before))
    made: dict[Node, Node] = {}
    found = []
    for node, k in _entries("after", symbol):
        if node not in made:
            made[node] = later(node, nodes)
        found.append((made[node], k))
    return symbols.symbol(found)


def sequential(items: Sequence[Any]) -> Any:
    """Return the last of several symbols, each computed after those before it.

    Nodes that an item shares with earlier items are computed once, with these.  Items after an assignment read the new value of
    its variable.

    Parameters
    ----------
    items : sequence of Symbol

    Examples
    --------
    >>> import mxop as mx
    >>> w = mx.sym.Variable('w')
    >>> twice = mx.graph.sequential([mx.graph.assign(w, w * 2), mx.graph.assign(w, w + 1), w])
    >>> mx.graph.computation(twice, state={'w': [1, 2]})().asnumpy().tolist()
    [3.0, 5.0]
    """
    items = _listed("sequential", items)
    earlier: set[Node] = set()
    written: set[Node] = set()
    last: tuple[Node, ...] = ()
    found: tuple[Entry, ...] = ()
    for item in items:
        found = _placed(_entries("sequential", item), last, earlier, written)
        new = [node for node in Graph(found).nodes if node not in earlier]
        earlier.update(new)
        written.update(node.inputs[i][0] for node in new for i in node.mutated_inputs())
        heads = tuple(dict.fromkeys(node for node, _ in found if node.op is not None))
        last = heads if set(heads) <= set(new) else _together(last, heads)  # shared nodes do not wait
    return symbols.symbol(found)


def do_all(items: Sequence[Any], value: Any = None) -> Any:
    """Return a symbol that is computed after all of several others, which may run in any order.

    Parameters
    ----------
    items : sequence of Symbol
    value : Symbol, optional
        The value of the result; by default an array of one zero.

    Examples
    --------
    >>> import mxop as mx
    >>> v, w = mx.sym.Variable('v'), mx.sym.Variable('w')
    >>> swap = mx.graph.computation(mx.graph.do_all([mx.graph.assign(v, w), mx.graph.assign(w, v)]),
    ...                             state={'v': [1.0], 'w': [2.0]})
    >>> _ = swap()
    >>> swap.state['v'].asnumpy(), swap.state['w'].asnumpy()
    (array([2.], dtype=float32), array([1.], dtype=float32))
    """
    items = _listed("do_all", items)
    return after(symbols.namespace().zeros((1,)) if value is None else value, items)


def _listed(what: str, items: Any) -> list[Any]:
    if not isinstance(items, (list, tuple)) or not items:
        raise OpTypeError(f"{what}: {items!r}; expected a list of symbols, at least one")
    return list(items)


def _entries(what: str, symbol: Any) -> list[Entry]:
    try:
        return symbols.entries_of(symbol)
    except OpTypeError as problem:
        raise OpTypeError(f"{what}: {problem}") from None


def _heads(what: str, given: Any) -> tuple[Node, ...]:
    """Return the nodes that compute symbols, without variables."""
    return tuple(dict.fromkeys(node for node, _ in _entries(what, given) if node.op is not None))


def _together(a: tuple[Node, ...], b: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(dict.fromkeys((*a, *b)))


def later(node: Node, before: tuple[Node, ...]) -> Node:
    """Return a copy of a node that runs after others, and reads its variables after them."""
    if node.op is None:
        copy = registry.get("_copy")
        return Node(copy, copy.parse({}), ((node, 0),), f"{node.name}_after", {}, caller(), control=before)
    if node in before:
        raise OpValueError(f"{node.name!r} cannot come after itself")
    written = node.mutated_inputs()
    read = {n: later(n, before) for i, (n, _) in enumerate(node.inputs) if n.op is None and i not in written}
    inputs = tuple((read.get(n, n) if i not in written else n, k) for i, (n, k) in enumerate(node.inputs))
    return node.replaced(inputs, control=_together(node.control, before))


def _placed(entries: list[Entry], last: tuple[Node, ...], earlier: set[Node], written: set[Node]) -> tuple[Entry, ...]:
    """Return entries whose heads, and readers of variables in `written`, run after `last`."""
    if not last:
        return tuple(entries)
    heads = {node for node, _ in entries}
    moved: Moved = {}
    read: Moved = {}  # heads that are variables
    for node in Graph(entries).nodes:
        if node.op is None:
            if node in heads:
                read[node, 0] = later(node, last), 0
        elif node not in earlier:
            new = rebuilt(node, moved)
            if node in heads or any(source in written for source, _ in node.inputs):
                new = later(new, last)
            if new is not node:
                moved.update({(node, k): (new, k) for k in range(node.n_outputs)})
    return tuple(read.get(e) or moved.get(e, e) for e in entries)
