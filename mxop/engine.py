"""``mx.engine``: MXNet's switch for running operators in bulk.  Calls run where they are made, so it changes nothing.

Imports :mod:`.missing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .missing import hooks

_size = 0


def set_bulk_size(size: int) -> int:
    """Set how many operators MXNet would run as one; return what it was.

    Examples
    --------
    >>> import mxop as mx
    >>> before = mx.engine.set_bulk_size(10)
    >>> mx.engine.set_bulk_size(before)
    10
    """
    global _size
    before, _size = _size, int(size)
    return before


@contextmanager
def bulk(size: int) -> Iterator[None]:
    """Return a scope with another bulk size."""
    before = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(before)


__all__ = ["bulk", "set_bulk_size"]

__getattr__, __dir__ = hooks(globals(), __all__)
