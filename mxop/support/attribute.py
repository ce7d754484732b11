"""Attributes that symbols made inside a ``with`` block get."""

from __future__ import annotations

from typing import Any

from .errors import OpTypeError, OpValueError
from .missing import hooks
from .per_thread import Current, showing


class AttrScope(metaclass=showing("current", lambda: _scopes)):
    """Give every symbol made inside a ``with`` block the same attributes.

    ``AttrScope.current`` is the innermost scope of this thread; it can be assigned.

    Parameters
    ----------
    **kwargs
        Attributes; the values are strings.  Inner scopes override outer ones.

    Examples
    --------
    >>> with mx.AttrScope(ctx_group='dev1'):
    ...     x = mx.sym.Variable('x')
    >>> x.attr('ctx_group')
    'dev1'
    """

    def __init__(self, **kwargs: str):
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise OpValueError(f"AttrScope: {key}={value!r} is not a string; attributes are strings")
        self._attr = kwargs
        self._before: list[Any] = []

    def get(self, attr: dict[str, str] | None = None) -> dict[str, str]:
        """Return the scope's attributes, with `attr` (which wins) added."""
        if attr is not None and not (isinstance(attr, dict) and all(isinstance(k, str) for k in attr)):
            raise OpTypeError(f"attr={attr!r} is not a dict of strings")
        return {**self._attr, **(attr or {})} if self._attr else dict(attr or {})

    def __enter__(self) -> AttrScope:
        outer = current()
        self._before.append((outer, self._attr))
        self._attr = {**outer._attr, **self._attr}
        _scopes.value = self
        return self

    def __exit__(self, *exception: Any) -> None:
        _scopes.value, self._attr = self._before.pop()


_scopes = Current(AttrScope)


def current() -> AttrScope:
    """Return the innermost scope of this thread."""
    return _scopes.value


__all__ = ["AttrScope", "current"]

__getattr__, __dir__ = hooks(globals(), __all__)
