"""When what was prepared from operators and passes stops to hold: where one of them changes, another epoch begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..opdef import operator, registry
from .passes import on_change

_number = 0
_listeners: list[Callable[[], None]] = []


def epoch() -> int:
    """Return the number of this epoch."""
    return _number


def on_epoch(listener: Callable[[], None]) -> None:
    """Call ``listener()`` when another epoch has begun."""
    _listeners.append(listener)


def _begin(*_: Any) -> None:
    global _number
    _number += 1
    for listener in _listeners:
        listener()


registry.on_register(_begin)
operator.on_change(_begin)
on_change(_begin)
