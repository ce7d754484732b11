"""``mx.error``: the error classes that MXNet keeps apart; those of mxop are in :mod:`.errors`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..support.errors import MXNetError, NotImplementedForSymbol
from ..support.missing import hooks


def register_error(func_name: Any = None, cls: Any = None) -> Callable[[type], type] | type:
    """Keep an error class by its name, for programs that look it up in ``error_types``; mxop raises its own classes.

    Parameters
    ----------
    func_name : str or type, optional
        The name, or the class itself.
    cls : type, optional
        Without one, a decorator is returned.

    Examples
    --------
    >>> @register
    ... class LostError(RuntimeError):
    ...     pass
    >>> error_types["LostError"] is LostError
    True
    """
    if callable(func_name):
        func_name, cls = None, func_name

    def register(kept: type) -> type:
        error_types[func_name if isinstance(func_name, str) else kept.__name__] = kept
        return kept

    return register if cls is None else register(cls)


register = register_error


class InternalError(MXNetError):
    """A fault of the framework itself."""


#: Error classes by name.
error_types: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        InternalError, NotImplementedForSymbol, ValueError, TypeError, AttributeError, IndexError, NotImplementedError,
    )
}  # fmt: skip

__all__ = ["InternalError", "MXNetError", "register"]

__getattr__, __dir__ = hooks(globals(), __all__)
