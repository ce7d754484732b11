"""Names for symbols that were not given one.  Imports :mod:`.missing` only."""

from __future__ import annotations

import threading
from typing import Any

from .missing import hooks

_managers = threading.local()


class NameManager:
    """Number the symbols of each kind: ``exp0``, ``exp1``...

    Used in a ``with`` block, it starts counting anew.

    Examples
    --------
    >>> import mxop as mx
    >>> with mx.name.NameManager():
    ...     mx.sym.exp(mx.sym.Variable('x')).name
    'exp0'
    """

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._before: list[Any] = []

    def get(self, name: str | None, hint: str) -> str:
        """Return `name`, or `hint` with the next number when it is None."""
        if name is not None:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> NameManager:
        self._before.append(current())
        _managers.value = self
        return self

    def __exit__(self, *exception: Any) -> None:
        _managers.value = self._before.pop()


class Prefix(NameManager):
    """Put a prefix before all names, given ones too.

    Examples
    --------
    >>> import mxop as mx
    >>> with mx.name.Prefix('mynet_'):
    ...     mx.sym.exp(mx.sym.Variable('x')).name
    'mynet_exp0'
    """

    def __init__(self, prefix: str):
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        return self._prefix + super().get(name, hint)


def current() -> NameManager:
    """Return the innermost manager of this thread (each thread counts for itself)."""
    found = getattr(_managers, "value", None)
    if found is None:
        found = _managers.value = NameManager()
    return found


__all__ = ["NameManager", "Prefix", "current"]

__getattr__, __dir__ = hooks(globals(), __all__)
