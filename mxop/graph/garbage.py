"""Switches Python's garbage collector off while a graph is made.

The nodes of a graph stay alive, and each automatic collection visits all of them: the cost grows faster than the graph.
Collections find nothing, since nodes have no reference cycles.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()  # reentrant: a signal handler may bind a graph itself
_inside: dict[int, int] = {}  # nesting depth of collected_later() by thread
_was_on = False


@contextmanager
def collected_later() -> Iterator[None]:
    """Return a scope without automatic garbage collections; usable as a decorator.

    Scopes may be nested, and open in several threads: when the last one ends, the collector is as before the first one.

    Examples
    --------
    >>> import gc
    >>> with collected_later():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    global _was_on
    thread = threading.get_ident()
    with _lock:
        if not _inside:
            _was_on = gc.isenabled()
            gc.disable()
        _inside[thread] = _inside.get(thread, 0) + 1
    try:
        yield
    finally:
        with _lock:
            _inside[thread] -= 1
            if not _inside[thread]:
                _leave([thread])


def _leave(threads: list[int]) -> None:
    """Remove threads from the count; after the last one, restore the collector."""
    for thread in threads:
        del _inside[thread]
    if threads and not _inside and _was_on:
        gc.enable()


def _after_fork() -> None:
    """Remove the threads that do not exist in the child process."""
    global _lock
    _lock = threading.RLock()
    _leave([thread for thread in _inside if thread != threading.get_ident()])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
