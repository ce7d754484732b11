"""Symbols for passes: how nodes are shown to authors of passes.

The symbol layer lies above this one and is reached through :mod:`mxop.opdef.above`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..opdef.above import ask
from ..support.errors import OpTypeError
from .infer import Known
from .ir import Entry


def operand(entries: Sequence[Entry], known: Known) -> Any:
    """Return entries as a symbol with known shape and type."""
    return namespace().operands.Operand(entries, known)


def symbol(entries: Sequence[Entry]) -> Any:
    """Return a plain symbol."""
    return namespace().Symbol(entries)


def namespace() -> Any:
    """Return ``mx.sym``."""
    return ask("symbols")()


def to_json(entries: Sequence[Entry]) -> str:
    """Return a graph as MXNet's JSON."""
    return symbol(entries).tojson(remove_amp_cast=False)


def from_json(text: str) -> Any:
    """Return the symbol of a JSON text."""
    return namespace().load_json(text)


def entries_of(what: Any) -> list[Entry]:
    """Return the entries of a symbol, a value of a builder, or a list of them."""
    if isinstance(what, (list, tuple)) and not (len(what) == 2 and isinstance(what[1], int)):
        return [e for item in what for e in entries_of(item)]
    if isinstance(what, tuple):
        return [what]  # an entry itself
    found = getattr(what, "_entries", None)
    if found is None:
        raise OpTypeError(f"expected a Symbol, or a list of them; got {what!r}")
    return list(found)
