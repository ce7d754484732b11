"""``mx.sym.contrib.foreach``, ``while_loop`` and ``cond``: a Python function that is called once becomes a subgraph.

What the function makes is told by the attribute ``__subgraph_name__``, as MXNet tells it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from ..graph import captured
from ..graph.ir import Entry, Node, variable
from ..support import attribute
from ..support.attribute import AttrScope
from ..support.errors import OpTypeError, all_end_at_caller
from .compose import make_node
from .symbol import Symbol

_INSIDE = "__subgraph_name__"
_numbers: dict[str, Any] = {}  # of each name of a subgraph


class _Symbols(captured.Api):
    kind = Symbol
    named = True  # as in MXNet

    def wrap(self, entry: Entry) -> Symbol:
        return Symbol([entry])

    def one(self, value: Symbol) -> Entry:
        if len(value._entries) != 1:
            raise OpTypeError(f"{value!r} has {len(value._entries)} outputs; control flow takes values of one output, or lists "
                              "of them")  # fmt: skip
        return value._entries[0]

    def begin(self, name: str) -> str:
        outer = attribute.current().get().get(_INSIDE)
        name = f"{outer}${name}" if outer else name
        return f"{name}{next(_numbers.setdefault(name, count()))}"

    def variable(self, scope: str, name: str, of: Entry, is_slice: bool) -> Node:
        return variable(name, self.call(scope, attribute.current().get))

    def call(self, scope: str, function: Callable, *args: Any) -> Any:
        with AttrScope(**{_INSIDE: scope}):
            return function(*args)

    def made(self, scope: str, node: Node) -> bool:
        return (node.strings or {}).get(_INSIDE) == scope

    def node(self, op: Any, hint: str, inputs: Sequence[Entry], strings: dict[str, str]) -> Node:
        return make_node(op, hint, inputs, strings)


_symbols = _Symbols()


def foreach(body: Callable, data: Any, init_states: Any, name: str = "foreach") -> tuple[Any, Any]:
    """Run a function over the slices of arrays along axis 0, with states that go from step to step.

    ``body(slice, states)`` is called once, with symbols; it returns an output and new states.  What it reads from outside
    becomes an argument of the result.  The loop runs as one prepared body, and has gradients of every order.

    Parameters
    ----------
    body : callable
        Takes a slice and states in the form of `data` and `init_states`; returns the outputs of a step, and states.
    data, init_states : Symbol or (nested) list of Symbol
        All data have the same number of slices; each data array and state must be used by the body.
    name : str
        Begins the name of the subgraph.

    Returns
    -------
    outputs, states
        The outputs of all steps, stacked along a new axis 0, and the states after the last one.

    Examples
    --------
    >>> data, total = mx.sym.Variable('data'), mx.sym.Variable('total')
    >>> sums, last = mx.sym.contrib.foreach(lambda x, s: (x + s, x + s), data, total)
    >>> sums.eval(data=mx.nd.array([[1], [2], [3]]), total=mx.nd.array([10]))[0].asnumpy().ravel().tolist()
    [11.0, 13.0, 16.0]
    """
    return captured.foreach(_symbols, body, data, init_states, name)


def while_loop(
    cond: Callable, func: Callable, loop_vars: Any, max_iterations: int | None = None, name: str = "while_loop"
) -> tuple[Any, Any]:
    """Run a function as long as a condition holds.

    ``cond(*loop_vars)`` returns one number, ``func(*loop_vars)`` the output of a step and new loop variables; both are
    called once, with symbols.

    Parameters
    ----------
    cond, func : callable
        `func` may return None or ``[]`` as output.
    loop_vars : Symbol or (nested) list of Symbol
    max_iterations : int
        Most steps; the outputs have that many slices, of which those that were not computed are zero.
    name : str
        Begins the names of the subgraphs.

    Returns
    -------
    outputs, loop_vars
        The outputs of the steps, stacked, and the loop variables after the last one.

    Examples
    --------
    >>> i, s = mx.sym.Variable('i'), mx.sym.Variable('s')
    >>> out, (i, s) = mx.sym.contrib.while_loop(lambda i, s: i <= 3, lambda i, s: (s, [i + 1, s + i]), [i, s], 5)
    >>> [x.asnumpy().ravel().tolist() for x in mx.sym.Group([out, s]).eval(i=mx.nd.array([1]), s=mx.nd.array([0]))]
    [[0.0, 1.0, 3.0, 0.0, 0.0], [6.0]]
    """
    return captured.while_loop(_symbols, cond, func, loop_vars, max_iterations, name)


def cond(pred: Any, then_func: Callable, else_func: Callable, name: str = "cond") -> Any:
    """Run one of two functions, by a number that is found when the symbol is run.

    Parameters
    ----------
    pred : Symbol, or callable that returns one
        One number.
    then_func, else_func : callable
        Take nothing and return as many symbols, of equal shapes; both are called once.
    name : str
        Begins the names of the subgraphs.

    Returns
    -------
    Symbol or (nested) list of Symbol
        In the form that `then_func` returned.

    Examples
    --------
    >>> x = mx.sym.Variable('x')
    >>> y = mx.sym.contrib.cond(x > 0, lambda: x * 2, lambda: x / 2)
    >>> [y.eval(x=mx.nd.array([v]))[0].item() for v in (3, -3)]
    [6.0, -1.5]
    """
    return captured.cond(_symbols, pred, then_func, else_func, name)


__all__ = ["cond", "foreach", "while_loop"]
all_end_at_caller(sys.modules[__name__], __all__)
