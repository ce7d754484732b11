"""What is in force in a thread: the current scope of attributes, manager of names, device.

MXNet lets programs read and assign it at the class (``AttrScope.current``, ``Context.default_ctx``, and
``AttrScope._current.value``); :func:`showing` makes the metaclass that does so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .errors import OpTypeError


class Current(threading.local):
    """The object in force in each thread, which begins with what `first` returns.

    Examples
    --------
    >>> current = Current(list)
    >>> current.value.append(1)
    >>> current.value
    [1]
    """

    def __init__(self, first: Callable[[], Any]):  # once in every thread that looks
        self.value = first()


def showing(name: str, current: Callable[[], Current]) -> type:
    """Return a metaclass whose classes show the value of ``current()`` as the attribute `name`, to be read and assigned.

    Examples
    --------
    >>> class Mode(metaclass=showing("mode", lambda: modes)):
    ...     pass
    >>> modes = Current(Mode)
    >>> Mode.mode = new = Mode()
    >>> Mode.mode is new
    True
    """

    def read(cls: type) -> Any:
        return current().value

    def assign(cls: type, value: Any) -> None:
        base = [c for c in cls.__mro__ if isinstance(c, metaclass)][-1]
        if not isinstance(value, base):
            raise OpTypeError(f"{base.__name__}.{name} is assigned {value!r}; expected a {base.__name__}")
        current().value = value

    shown = property(read, assign, doc="What is in force in this thread; it can be assigned.")
    held = property(lambda cls: current(), doc="What holds it for each thread, as ``value``.")
    metaclass = type(f"Showing_{name}", (type,), {name: shown, f"_{name}": held})
    return metaclass


__all__ = ["Current", "showing"]
