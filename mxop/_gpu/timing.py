"""How long GPUs take for what the profiler watches: CUDA events around each call, and its name as a range of NVTX."""

from __future__ import annotations

import threading
from typing import Any

from .._core import profile
from . import device

#: Calls that wait for the profiler to be read; with more, the host waits for the GPU.
_MOST = 1 << 14


class Timer:
    """Marks the begin and the end of calls on the streams that these are launched on."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._done: list[tuple[str, int, Any, Any]] = []
        self._origins: dict[int, tuple[int, Any]] = {}  # by device: the host's clock, and an event of that moment

    def begin(self, name: str) -> None:
        """A call of an operator begins in this thread."""
        events: dict[int, Any] = {}
        for number in device.in_use():
            with device.using(number):
                self._origins.get(number) or self._origin(number)
                events[number] = self._now(number)
        for ranges in _ranges():
            ranges.RangePush(name)
        self._open().append((name, events))

    def end(self, name: str, place: int) -> None:
        """The call that began last ends; its results lie on a GPU, or on the CPU (-1)."""
        waiting = self._open()
        while waiting:  # the first, but where the profiler was paused meanwhile
            begun, events = waiting.pop()
            for ranges in _ranges():
                ranges.RangePop()
            if begun != name:
                continue
            if place in events:
                with device.using(place):
                    self._done.append((name, place, events[place], self._now(place)))
                if len(self._done) == _MOST:
                    self.collect()
            return

    def collect(self) -> None:
        """Give the times of all calls that have ended to the profiler; waits for these."""
        done, self._done = self._done, []
        for name, place, begun, ended in done:
            cupy = device.require(place)
            clock, origin = self._origins[place]
            with device.using(place):
                ended.synchronize()
                since, took = (cupy.cuda.get_elapsed_time(a, b) for a, b in ((origin, begun), (begun, ended)))
            at = clock + int(since * 1e6)
            profile.device_event(f"gpu({place})", name, at, at + int(took * 1e6), place)

    def _open(self) -> list[tuple[str, dict[int, Any]]]:
        if not hasattr(self._local, "calls"):
            self._local.calls = []
        return self._local.calls

    def _origin(self, number: int) -> None:
        event = self._now(number)
        event.synchronize()
        self._origins[number] = profile.now(), event

    def _now(self, number: int) -> Any:
        event = device.require(number).cuda.Event()
        event.record()
        return event


def _ranges() -> list[Any]:
    """Return CuPy's module of NVTX, if it is there and a GPU is in use."""
    used = device.in_use()
    found = getattr(device.require(used[0]).cuda, "nvtx", None) if used else None
    return [] if found is None else [found]


__all__ = ["Timer"]
