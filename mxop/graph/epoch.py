"""Epochs: a new one begins, and invalidates everything prepared, when an operator or the set of passes changes.

A name that is registered for the first time changes nothing: what is prepared was made without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..opdef import operator, registry
from .passes import on_change

_number = 0
_listeners: list[Callable[[], None]] = []
_names: set[str] = set()  # registered at some time


def epoch() -> int:
    """Return the number of the current epoch."""
    return _number


def on_epoch(listener: Callable[[], None]) -> None:
    """Call ``listener()`` when a new epoch begins."""
    _listeners.append(listener)


def _begin(*_: Any) -> None:
    global _number
    _number += 1
    for listener in _listeners:
        listener()


def _registered(name: str, _: Any) -> None:
    again = name in _names
    _names.add(name)  # first: whatever interrupts what follows, the next definition begins an epoch
    if again:
        _begin()


registry.on_register(_registered)
operator.on_change(_begin)
on_change(_begin)
