"""Python's collector of garbage waits while a graph is made.

What a graph is made of lives on, and a collector that comes again and again looks at all of it each time: that grows faster
than the graph, and finds nothing, since nothing here refers to itself in a cycle.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()  # a handler of signals may come in between, and bind a graph itself
_inside: dict[int, int] = {}  # how deep each thread is in blocks of collected_later()
_was_on = False


@contextmanager
def collected_later() -> Iterator[None]:
    """Let no automatic collection happen within a block (or a function, as a decorator).

    Blocks may be nested and run in several threads: with the last of them the collector is as it was before the first.

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
    """Take threads out of the count; after the last one the collector goes on."""
    for thread in threads:
        del _inside[thread]
    if threads and not _inside and _was_on:
        gc.enable()


def _after_fork() -> None:
    """Go on without the threads that a child process does not have."""
    global _lock
    _lock = threading.RLock()
    _leave([thread for thread in _inside if thread != threading.get_ident()])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
