"""How fast memory can be copied here: measured once, and kept.  Imports :mod:`.schedule`."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

from .. import dtypes
from ..context import Context

#: What a copy of this many bytes moves stays in a cache; the two sizes that are measured.
IN_CACHE = 1 << 20
_SMALL, _LARGE = 1 << 18, 1 << 25


def copy_bandwidth(context: Context, nbytes: int) -> float:
    """Return how many bytes per second a copy that moves `nbytes` reads and writes on a device.

    Examples
    --------
    >>> import mxop as mx
    >>> copy_bandwidth(mx.cpu(), 1 << 30) > 1e8
    True
    """
    return _measured(context.device_type, context.device_id, nbytes <= IN_CACHE)


@lru_cache(64)
def _measured(device_type: str, device_id: int, cached: bool) -> float:
    from ..ndarray import full, waitall
    from .schedule import copy_call

    context = Context(device_type, device_id)
    n = (_SMALL if cached else _LARGE) // dtypes.SIZES[dtypes.FLOAT32]
    source, target = (full((n,), value, ctx=context) for value in (1, 2))
    call = copy_call(source, target)
    # the fastest of many short runs: others share the machine
    best = min(_seconds(call, 5 if cached else 1, waitall) for _ in range(100 if cached else 6))
    return 2 * n * dtypes.SIZES[dtypes.FLOAT32] / best


def _seconds(call: Any, times: int, wait: Any) -> float:
    wait()
    start = time.perf_counter()
    for _ in range(times):
        call.run()
    wait()
    return (time.perf_counter() - start) / times
