"""Order between nodes that do not read each other: control dependencies.

Most graphs need none: a node comes after what it reads.  What has effects (an assignment, an operator from outside) may
need more.  A node with control dependencies runs after them, and no pass merges, folds or fuses it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..opdef import registry
from ..support.errors import OpTypeError, OpValueError
from . import symbols
from .ir import Entry, Graph, Node, caller
from .rewrite import Moved, rebuilt

_scopes = threading.local()


def current() -> tuple[Node, ...]:
    """Return what nodes that are made now run after."""
    return getattr(_scopes, "nodes", ())


@contextmanager
def control_dependencies(before: Any) -> Iterator[None]:
    """Let the nodes that are made in a ``with`` block run after others.

    Parameters
    ----------
    before : Symbol, or list of Symbol
        In a block within a block, those of the outer one count too.

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
    """Let the nodes that are made in a ``with`` block run whenever they can."""
    outer = current()
    _scopes.nodes = ()
    try:
        yield
    finally:
        _scopes.nodes = outer


def after(symbol: Any, *before: Any) -> Any:
    """Return a symbol of the same value whose last node runs after others.

    Parameters
    ----------
    symbol : Symbol
        Of a variable, it is read then.
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

    What an item shares with earlier items is computed once, with them.  A variable that an earlier item assigns has its new
    value in later ones.

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
        last = heads if set(heads) <= set(new) else _together(last, heads)  # what is shared does not wait for the last
    return symbols.symbol(found)


def do_all(items: Sequence[Any], value: Any = None) -> Any:
    """Return a symbol that is computed after all of several others, in whatever order those are.

    Parameters
    ----------
    items : sequence of Symbol
    value : Symbol, optional
        What it is; by default an array of one zero.

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
    """Return the nodes that compute symbols; a variable is there from the start."""
    return tuple(dict.fromkeys(node for node, _ in _entries(what, given) if node.op is not None))


def _together(a: tuple[Node, ...], b: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(dict.fromkeys((*a, *b)))


def later(node: Node, before: tuple[Node, ...]) -> Node:
    """Return a node that does the same after others; what it reads of variables is read then, too."""
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
    """Return entries of which the heads, and what reads variables that were written, come after the last items."""
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
