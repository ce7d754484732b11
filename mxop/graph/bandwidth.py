"""The bandwidth of copies on a device, measured once and cached."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

from ..context import Context
from ..support import dtypes

#: Bytes of the copied arrays; the size is chosen by the bytes that a call moves, since caches are faster than memory.
SIZES = (1 << 18, 1 << 21, 1 << 25)
SECONDS = 0.03  # for each size; the fastest copy counts, since other processes share the machine


def copy_bandwidth(context: Context, nbytes: int) -> float:
    """Return the bytes per second that a copy of at most `nbytes` (read and written) moves on a device.

    Examples
    --------
    >>> import mxop as mx
    >>> copy_bandwidth(mx.cpu(), 1 << 30) > 1e8
    True
    """
    own = max((size for size in SIZES if 2 * size <= nbytes), default=SIZES[0])
    return max(_measured(context.device_type, context.device_id, size) for size in SIZES if size >= own)


@lru_cache(64)
def _measured(device_type: str, device_id: int, size: int) -> float:
    from ..ndarray import full, waitall
    from .recipe import copy_call

    context = Context(device_type, device_id)
    source, target = (full((size // dtypes.SIZES[dtypes.FLOAT32],), value, ctx=context) for value in (1, 2))
    call = copy_call(source, target)
    end = time.perf_counter() + SECONDS
    best = min(_seconds(call, waitall) for _ in range(5))
    while time.perf_counter() < end:
        best = min(best, _seconds(call, waitall))
    return 2 * size / best


def _seconds(call: Any, wait: Any) -> float:
    wait()
    start = time.perf_counter()
    call.run()
    wait()
    return time.perf_counter() - start
