"""Nested lists of arrays or symbols, as the functions of control flow take and return them.  Imports :mod:`.errors`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import OpTypeError

Form = list | None  # None for one item, else the form of each


def flatten(value: Any, kind: type, what: str) -> tuple[list[Any], Form]:
    """Return the items of a nested list in order, and its form.

    Examples
    --------
    >>> flatten([1, [2, 3]], int, "f: data")
    ([1, 2, 3], [None, [None, None]])
    """
    if isinstance(value, kind):
        return [value], None
    if not isinstance(value, (list, tuple)):
        raise OpTypeError(f"{what} must be a {kind.__name__} or a (nested) list of them, got {value!r}, which is of type "
                          f"{type(value).__name__}")  # fmt: skip
    flat: list[Any] = []
    form = []
    for item in value:
        items, one = flatten(item, kind, what)
        flat += items
        form.append(one)
    return flat, form


def leaves(value: Any) -> list[Any]:
    """Return the items of a nested list, whatever they are.

    Examples
    --------
    >>> leaves([1, [2, "a"]])
    [1, 2, 'a']
    """
    return [item for one in value for item in leaves(one)] if isinstance(value, (list, tuple)) else [value]


def regroup(items: Sequence[Any], form: Form) -> Any:
    """Return items in a form: what :func:`flatten` undid.

    Examples
    --------
    >>> regroup([1, 2, 3], [None, [None, None]])
    [1, [2, 3]]
    """
    return _regrouped(iter(items), form)


def _regrouped(items: Any, form: Form) -> Any:
    return next(items) if form is None else [_regrouped(items, one) for one in form]


def pair(found: Any, what: str) -> tuple[Any, Any]:
    """Return the two values that a body returned."""
    if isinstance(found, (list, tuple)) and len(found) == 2:
        return found[0], found[1]
    raise OpTypeError(f"{what} must return two values, outputs and new states; it returned {found!r}")
