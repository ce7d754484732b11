"""Names for symbols that were not given one."""

from __future__ import annotations

from typing import Any

from .missing import hooks
from .per_thread import Current, showing


class NameManager(metaclass=showing("current", lambda: _managers)):
    """Number the symbols of each kind: ``exp0``, ``exp1``...

    Used in a ``with`` block, it starts counting anew.  ``NameManager.current`` is the innermost manager of this thread; it
    can be assigned.

    Examples
    --------
    >>> with mx.name.NameManager():
    ...     mx.sym.exp(mx.sym.Variable('x')).name
    'exp0'
    """

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._before: list[Any] = []

    def get(self, name: str | None, hint: str) -> str:
        """Return `name`, or `hint` with the next number when there is none."""
        if name:
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
    >>> with mx.name.Prefix('mynet_'):
    ...     mx.sym.exp(mx.sym.Variable('x')).name
    'mynet_exp0'
    """

    def __init__(self, prefix: str):
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        return self._prefix + super().get(name, hint)


_managers = Current(NameManager)


def current() -> NameManager:
    """Return the innermost manager of this thread (each thread counts for itself)."""
    return _managers.value


__all__ = ["NameManager", "Prefix", "current"]

__getattr__, __dir__ = hooks(globals(), __all__)
