"""``mx.engine``: how many calls run as one.

What a large elementwise call returns is computed when somebody reads it, in one pass with the calls that it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .._core import lazy
from ..support.missing import hooks


def set_bulk_size(size: int) -> int:
    """Set how many elementwise calls on large arrays may become one; return how many might before.

    With 0 or 1 each call runs where it is made.  Results are the same, to the last bit.

    Parameters
    ----------
    size : int
        At most 28 are used.  The environment variable ``MXOP_BULK_SIZE`` says what a program begins with, else it is 28.

    Examples
    --------
    >>> before = mx.engine.set_bulk_size(10)
    >>> mx.engine.set_bulk_size(before)
    10
    """
    return lazy.set_most(int(size))


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
