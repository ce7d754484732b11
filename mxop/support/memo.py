"""What was computed once is kept, in dictionaries that stay bounded."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import TypeVar

Kept = TypeVar("Kept")

#: Entries of a cache of what calls need, one for each combination of parameters, or of parameters, shapes and types.  A program
#: has tens to hundreds; an entry takes about 1 KB (the shapes of a call) to 10 KB (prepared calls).
CALLS = 1024


def keep(cache: dict, key: Hashable, value: Kept, most: int = CALLS) -> Kept:
    """Put a value into a cache and return it; of a full one, the older half goes first.

    Where other threads change the cache at the same time, all of it may go.

    >>> cache = {}
    >>> [keep(cache, k, k * k, 4) for k in range(6)], cache
    ([0, 1, 4, 9, 16, 25], {2: 4, 3: 9, 4: 16, 5: 25})
    """
    if len(cache) >= most:
        try:
            for old in list(islice(cache, most // 2)):
                cache.pop(old, None)
        except RuntimeError:  # another thread changed it meanwhile
            cache.clear()
    cache[key] = value
    return value


__all__ = ["CALLS", "keep"]
