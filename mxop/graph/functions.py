"""Computations (symbols as functions of arrays) and derivatives of symbols."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._core import core
from ..context import current_context
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError, closest, ends_at_caller
from . import symbols
from .deferred import derivatives
from .executor import Executor
from .feeding import assign
from .infer import declared_type
from .ir import Entry, Graph, Node, describe

#: Most executors that a computation caches, one for each combination of shapes and types.
MOST = 16


class Computation:
    """A function of arrays, returned by :func:`computation`.

    Attributes
    ----------
    state : dict of str to NDArray
        The variables that keep their values between calls.
    """

    def __init__(self, outputs: Any, placeholders: Sequence[Any], state: Mapping[str, Any] | None, ctx: Any, passes: Any):
        self._many = isinstance(outputs, (list, tuple))
        if not outputs if self._many else outputs is None:
            raise OpTypeError(f"computation: outputs={outputs!r}; expected a Symbol or a list of them")
        self._symbol = symbols.symbol(symbols.entries_of(outputs))
        self._ctx, self._passes = ctx if ctx is not None else current_context(), passes
        graph = Graph(self._symbol._entries)
        self._arguments, self._states = graph.arguments()
        self._placeholders = [_variable(f"computation: placeholder {i}", p) for i, p in enumerate(placeholders)]
        self.state = _arrays(state or {}, self._ctx)
        self._check(graph)
        self._bound: OrderedDict[tuple, Any] = OrderedDict()

    def _check(self, graph: Graph) -> None:
        """Raise unless each variable has exactly one source."""
        names = [p.name for p in self._placeholders]
        for i, name in enumerate(names):
            if name in names[:i] or name in self.state:
                raise OpValueError(f"computation: {name!r} is given twice")
        by_name: dict[str, Node] = {}
        for node in graph.variables:
            if by_name.setdefault(node.name, node) is not node:
                raise OpValueError(f"computation: two variables are named {node.name!r}: {describe(by_name[node.name])} and "
                                   f"{describe(node)}")  # fmt: skip
        missing = [name for name in by_name if name not in names and name not in self.state]
        if missing:
            raise OpValueError(f"computation: the outputs depend on {', '.join(map(repr, missing))}; make each a placeholder, "
                               f"or give its value in state=")  # fmt: skip
        for p in self._placeholders:
            if by_name.get(p.name, p) is not p:
                raise OpValueError(f"computation: placeholder {p.name!r}, {describe(p)}, is not the variable of that name that "
                                   f"the outputs depend on, {describe(by_name[p.name])}")  # fmt: skip
        for node in self._states:
            if node.name in names:
                raise OpValueError(f"computation: {node.name!r} is assigned, so its value belongs in state=")
        for name in self.state:
            if name not in by_name:
                raise OpValueError(f"computation: state has {name!r}, which no output depends on{closest(name, by_name)}")

    def __call__(self, *values: Any) -> Any:
        """Return the outputs as new arrays.

        Parameters
        ----------
        *values : NDArray, array or number
            In the order of the placeholders.
        """
        names = [p.name for p in self._placeholders]
        if len(values) != len(names):
            raise OpTypeError(f"this computation takes {len(names)} values ({', '.join(names)}); {len(values)} are given")
        arrays = {p.name: _array(value, self._ctx, declared_type(p)) for p, value in zip(self._placeholders, values)}
        key = tuple([(a.shape, a.dtype_code) for a in arrays.values()])
        executor = self._bound.get(key)
        if executor is None:
            executor = self._bound[key] = self._bind(arrays)
            if len(self._bound) > MOST:
                self._bound.popitem(last=False)
        else:
            self._bound.move_to_end(key)
        held = executor.arg_dict
        assign((held[name], array, f"Placeholder {name}") for name, array in arrays.items() if name in held)
        found = [a.copy() for a in executor.forward()]
        return found if self._many else found[0]

    def _bind(self, arrays: dict[str, Any]) -> Executor:
        kept = {name: array.copy() for name, array in arrays.items()} | self.state
        args = [kept[n.name] for n in self._arguments]
        aux = [kept[n.name] for n in self._states]
        return Executor(self._symbol, self._ctx, args, [None] * len(args), ["null"] * len(args), aux, self._passes)

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self._placeholders)
        return f"<computation of {', '.join(self._symbol.list_outputs())} from ({names})>"


@ends_at_caller
def computation(
    outputs: Any, *placeholders: Any, state: Mapping[str, Any] | None = None, ctx: Any = None, passes: Any = None
) -> Computation:
    """Return a function of arrays that evaluates symbols.

    An executor is made for each new combination of shapes and types, and cached.  Autograd does not record calls: use
    :func:`deriv`.

    Parameters
    ----------
    outputs : Symbol, or list of Symbol
        The results: an array, or a list of arrays.
    *placeholders : Symbol
        Variables; a call gives their values in this order.
    state : dict of str to array, optional
        Values of variables that persist between calls, by name, such as assigned ones.  An NDArray is used without a copy, so
        computations can share it.
    ctx : Context, optional
    passes : optional
        As of ``simple_bind``.

    Raises
    ------
    OpValueError
        If the outputs depend on a variable that is neither a placeholder nor in `state`.

    Examples
    --------
    >>> import mxop as mx
    >>> x, y = mx.sym.Variable('x'), mx.sym.Variable('y')
    >>> f = mx.graph.computation([x * y, mx.graph.deriv(x * y, x)], x, y)
    >>> [a.asnumpy().tolist() for a in f([1, 2], [3, 4])]
    [[3.0, 8.0], [3.0, 4.0]]
    """
    return Computation(outputs, placeholders, state, ctx, passes)


@ends_at_caller
def deriv(y: Any, x: Any, error: Any = None) -> Any:
    """Return the derivative of a symbol (of the sum of its elements, weighted by `error`) with respect to another one.

    The result is a symbol, which can be differentiated again.

    Parameters
    ----------
    y : Symbol
    x : Symbol, or list of Symbol
        A variable, or any symbol that `y` was computed from.
    error : Symbol, optional
        Weights of the shape of `y`; ones by default.

    Returns
    -------
    Symbol
        Of the shape of `x` (a list for a list); zeros if `y` does not depend on it.

    Examples
    --------
    >>> import mxop as mx
    >>> x = mx.sym.Variable('x')
    >>> third = mx.graph.deriv(mx.graph.deriv(mx.graph.deriv(x ** 4, x), x), x)
    >>> mx.graph.computation(third, x)([1, 2]).asnumpy().tolist()
    [24.0, 48.0]
    """
    wanted = list(x) if isinstance(x, (list, tuple)) else [x]
    graph = Graph(symbols.entries_of(y))
    entries = [_one("deriv: x", item) for item in wanted]
    for node, _ in entries:
        _check_same(graph, node)
    weights = None if error is None else _weights(y, error)
    result = [symbols.symbol([e]) for e in derivatives("deriv", graph.outputs, weights, entries)]
    return result if isinstance(x, (list, tuple)) else result[0]


def _weights(y: Any, error: Any) -> Sequence[Entry]:
    """Return the weights of each output, with its shape inferred from the output."""
    if len(symbols.entries_of(y)) != len(symbols.entries_of(error)):
        raise OpTypeError(f"deriv: error has {len(symbols.entries_of(error))} outputs; y has {len(symbols.entries_of(y))}")
    F = symbols.namespace()
    return [F.elemwise_mul(F.ones_like(a), b)._entries[0] for a, b in zip(y, error, strict=True)]


def _check_same(graph: Graph, node: Node) -> None:
    """Raise if a graph has another variable of the same name."""
    other = next((n for n in graph.variables if n.name == node.name and n is not node), None)
    if node.op is None and other is not None:
        raise OpValueError(f"deriv: y depends on {describe(other)}, which is not the given {describe(node)}")


def _one(what: str, symbol: Any) -> Entry:
    entries = symbols.entries_of(symbol)
    if len(entries) != 1:
        raise OpTypeError(f"{what} is a group of {len(entries)} outputs; expected one")
    return entries[0]


def _variable(what: str, symbol: Any) -> Node:
    node, _ = _one(what, symbol)
    if node.op is not None:
        raise OpTypeError(f"{what} is {describe(node)}; expected a variable")
    return node


def _arrays(state: Mapping[str, Any], ctx: Any) -> dict[str, Any]:
    if not isinstance(state, Mapping):
        raise OpTypeError(f"computation: state={state!r}; expected a dict of names to arrays")
    found = {}
    for name, value in state.items():
        if not isinstance(name, str):
            raise OpTypeError(f"computation: state has the key {name!r}; expected the name of a variable")
        found[name] = _array(value, ctx, dtypes.UNKNOWN)
    return found


def _array(value: Any, ctx: Any, code: int) -> Any:
    """Return a value as an array of the declared type of its variable."""
    if isinstance(value, core.Dense):
        return value if code in (dtypes.UNKNOWN, value.dtype_code) else value.astype(dtypes.NAMES[code])
    from ..ndarray import array

    value = np.asarray(value)
    if value.dtype.kind in "OSUMm":
        raise OpTypeError(f"computation: {value!r} is not an array of numbers")
    return array(value, ctx=ctx, dtype=None if code == dtypes.UNKNOWN else dtypes.NAMES[code])


__all__ = ["Computation", "computation", "deriv"]
