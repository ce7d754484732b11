"""The registry of backends for ``Symbol.optimize_for``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..support.errors import OpLookupError, OpTypeError, OpValueError, closest, shown

#: ``run(symbol, args, aux, ctx, options) -> Symbol``
Run = Callable[[Any, Any, Any, Any, dict[str, Any]], Any]

_backends: dict[str, Run] = {}


def register_backend(name: str, run: Run) -> Run:
    """Register a function that ``sym.optimize_for(name)`` calls with the symbol.

    Parameters
    ----------
    name : str
    run : callable
        ``run(symbol, args, aux, ctx, options) -> Symbol``.  `args` and `aux` are dicts of str to NDArray, or None if not given;
        entries that the function adds to them are new parameters.  A :class:`~mxop.graph.Backend` is such a function, which
        runs parts of the graph itself.

    Raises
    ------
    OpValueError
        If another module has registered the name.

    Examples
    --------
    >>> import mxop as mx
    >>> mx.graph.register_backend('doc_simple', lambda symbol, args, aux, ctx, options: symbol.optimize())
    <function ...>
    >>> x = mx.sym.Variable('x')
    >>> (x * 1).optimize_for('doc_simple').list_outputs()
    ['x']
    >>> mx.graph.unregister_backend('doc_simple')
    """
    if not isinstance(name, str) or not name:
        raise OpTypeError(f"register_backend: name={name!r}; expected a string")
    if not callable(run):
        raise OpTypeError(f"register_backend: {run!r} is not callable")
    old = _backends.get(name)
    if old is not None and getattr(old, "__module__", None) != getattr(run, "__module__", None):
        raise OpValueError(f"backend name {name!r} is taken by {old!r}; unregister it first")
    _backends[name] = run
    return run


def unregister_backend(name: str) -> None:
    """Remove a backend from the registry."""
    get_backend(name)
    del _backends[name]


def backends() -> list[str]:
    """Return the names of all backends."""
    return sorted(_backends)


def get_backend(name: str) -> Run:
    """Return the function of a backend.

    Raises
    ------
    OpLookupError
        With the closest known name.
    """
    if not isinstance(name, str) or name not in _backends:
        listed = f"; backends: {', '.join(backends())}" if _backends else "; none is registered"
        raise OpLookupError(f"there is no backend {shown(name)}{closest(name, _backends)}{listed}")
    return _backends[name]
