"""``mx.nd.CachedOp``: a symbol as a function of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import core
from ..graph.calls import replayed
from ..graph.ir import Graph
from ..support.errors import OpTypeError
from .symbol import Symbol


class CachedOp:
    """A symbol as a function of arrays, which autograd records as it does the operators in it.

    Parameters
    ----------
    sym : Symbol
    flags : sequence of (str, Any), optional
        Taken for MXNet's sake.

    Examples
    --------
    >>> op = mx.nd.CachedOp(mx.sym.Variable("x") * 2 + mx.sym.Variable("y"))
    >>> op(mx.nd.array([1, 2]), mx.nd.array([3, 4])).asnumpy().tolist()
    [5.0, 8.0]
    """

    def __init__(self, sym: Symbol, flags: Sequence[tuple[str, Any]] = ()):
        if not isinstance(sym, Symbol):
            raise OpTypeError(f"CachedOp takes a symbol, got {type(sym).__name__}")
        self._graph = Graph(sym._entries)
        self._variables = list(self._graph.variables)

    def __call__(self, *args: Any, out: Any = None, default_ctx: Any = None) -> Any:
        """Evaluate the symbol: `args` are the arrays of ``list_inputs``, arguments and states, in this order."""
        if len(args) != len(self._variables) or not all(isinstance(a, core.Dense) for a in args):
            found = ", ".join(type(a).__name__ for a in args)
            names = ", ".join(v.name for v in self._variables)
            raise OpTypeError(f"CachedOp takes an NDArray for each of {names}; got {found or 'none'}")
        found = replayed(core.namespace(), self._graph, dict(zip(self._variables, args, strict=True)))
        if out is not None:
            found = [_written(a, to) for a, to in zip(found, [out] if isinstance(out, core.Dense) else out, strict=True)]
        return found[0] if len(found) == 1 else found


def _written(value: Any, target: Any) -> Any:
    target[:] = value
    return target
