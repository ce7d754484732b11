"""Times several ways of doing one thing, in turn, and refuses figures of work that was not done.

All benchmarks use it: the demonstration, ``tools/compare`` and ``tools/on_gpu.py``; those in ``asv_bench`` use parts of it.
A call ends when all that it returned is computed: mxop computes large results when somebody reads them, never if nobody does.
After the timed calls the inputs are put back, the results are overwritten, and one more call has to return everything that a
reference says.
"""

from __future__ import annotations

import gc
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from .. import nd
from .._core import lazy

TOO_FAST = 1.5  # times as fast as a copy of as many bytes: such a figure is marked
SMALL = 1 << 14  # elements up to which results are computed when a call returns
JUDGED = 1 << 20  # bytes from which on that is so: below, a call costs more than its memory


@dataclass
class Way:
    """One way of doing the work.

    Attributes
    ----------
    call : callable
        What is timed; returns every result that the figure claims, in the reference's order.
    restore : callable
        Puts the inputs back, for calls that change them.
    read : callable
        Turns what `call` returned into NumPy arrays, untimed.
    """

    call: Callable[[], Any]
    restore: Callable[[], Any] = lambda: None
    read: Callable[[Any], list[np.ndarray]] = lambda results: [host(a) for a in each(results)]

    def wrong(self, expected: Sequence[np.ndarray], tolerance: float) -> str | None:
        """Return what is wrong with the results of one more call, None when nothing is."""
        spoil(finish(self.call()))
        self.restore()
        nd.waitall()
        results = finish(self.call())
        if lazy.waiting():
            return f"leaves {lazy.waiting()} calls undone"
        return difference(self.read(results), expected, tolerance)


@dataclass
class Timed:
    """Median seconds by name, what is wrong with results by name, and the ways that are too fast to be believed."""

    seconds: dict[str, float]
    wrong: dict[str, str]
    too_fast: list[str]


def timed(ways: Mapping[str, Way], expected: Sequence[np.ndarray] | None, *, nbytes: float = 0.0, tolerance: float = 2e-3,
          rounds: int = 11, least: float = 0.0, limit: float = float("inf"), warm: float = 0.0,
          rest: Callable[[], Any] = lambda: None, wait: Callable[[], Any] | None = None,
          probes: Mapping[str, Callable[[], Any]] | None = None) -> Timed:  # fmt: skip
    """Time each way once a round, in an order that rotates, and compare its results.

    Parameters
    ----------
    ways : dict of str to Way
    expected : sequence of arrays, or None
        What each way has to return; None for what nobody can know.
    nbytes : float
        Bytes that the work reads and writes; from `JUDGED` on, the copy of as many is timed in the same rounds, as "copy",
        whose fastest time counts, because others share the machine.
    tolerance : float
        How far results may be from the expected ones, relative to the largest.
    rounds : int
    least : float
        Seconds that one measurement takes at least; short calls are repeated.
    limit : float
        Seconds after which no round begins; three are made.
    warm : float
        Seconds of calls that precede each measurement.
    rest : callable
        Called before that.
    wait : callable, optional
        Waits for a device, once after the calls of a measurement; without it, each call ends when its results are computed.
    probes : dict of str to callable
        Timed in the same rounds, and not compared.
    """
    calls = {name: ended(way.call) if wait is None else begun(way.call) for name, way in ways.items()} | dict(probes or {})
    wait = wait or (lambda: None)
    if nbytes >= JUDGED:
        calls |= copies(nbytes)
    repeats = {name: (warmed(call, warm, wait), warmed(call, least, wait))[1] for name, call in calls.items()}
    found: dict[str, list[float]] = {name: [] for name in calls}
    names, begin, collects = list(calls), perf_counter(), gc.isenabled()
    gc.disable()
    try:
        for k in range(rounds):
            if k >= 3 and perf_counter() - begin > limit:
                break
            for name in names[k % len(names) :] + names[: k % len(names)]:
                call, n = calls[name], repeats[name]
                rest()
                if warm:
                    warmed(call, warm, wait)
                start = perf_counter()
                for _ in range(n):
                    call()
                wait()
                found[name].append((perf_counter() - start) / n)
    finally:
        if collects:
            gc.enable()
    seconds = {name: statistics.median(times) for name, times in found.items()}
    if "copy" in found:
        seconds["copy"] = min([*found["copy"], *found.get("copy, one thread", ())])
    told = {name: way.wrong(expected, tolerance) for name, way in ways.items()} if expected is not None else {}
    fast = [name for name in ways if "copy" in seconds and seconds[name] * TOO_FAST < seconds["copy"]]
    return Timed(seconds, {name: text for name, text in told.items() if text is not None}, fast)


def warmed(call: Callable[[], Any], seconds: float, wait: Callable[[], Any]) -> int:
    """Call for so long, once at least; return how often that was."""
    start, n = perf_counter(), 0
    while not n or perf_counter() - start < seconds:
        call()
        wait()
        n += 1
    return n


def copies(nbytes: float) -> dict[str, Callable[[], Any]]:
    """Return what copies so many bytes, half of them read and half written, with all threads and with one."""
    source, target = (nd.full((int(nbytes) // 8,), value) for value in (1, 2))
    one, other = source.asnumpy(), target.asnumpy()
    return {"copy": ended(lambda: source.copyto(target)), "copy, one thread": lambda: np.copyto(other, one)}


# ---- results --------------------------------------------------------------------------------------------------------------
def each(results: Any) -> Iterator[Any]:
    """Yield every array and number in what a call returned."""
    if isinstance(results, (tuple, list)):
        for part in results:
            yield from each(part)
    else:
        yield results


def finish(results: Any) -> Any:
    """Wait until everything that a call returned is computed; return it."""
    for a in each(results):
        wait = getattr(a, "wait_to_read", None) or getattr(a, "block_until_ready", None)
        if wait is not None:
            wait()
    return results


def ended(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call that ends when its results are computed: the call itself where that is so when it returns."""
    nd.waitall()
    results = call()
    waits = [hasattr(a, "block_until_ready") or (hasattr(a, "wait_to_read") and a.size > SMALL) for a in each(results)]
    return (lambda: finish(call())) if any(waits) or lazy.waiting() else call


def begun(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call after which a device works on its results, at least."""

    def run() -> None:
        for a in each(call()):
            if hasattr(a, "_settle"):
                a._settle()

    return run


def host(a: Any) -> np.ndarray:
    """Return an array of any system as NumPy's."""
    if hasattr(a, "asnumpy"):
        return a.asnumpy()
    if hasattr(a, "detach"):
        return a.detach().cpu().numpy()
    return np.asarray(a.get() if hasattr(a, "get") else a)


def spoil(results: Any) -> None:
    """Overwrite what a call returned: who returns it again has not computed it."""
    for a in each(results):
        if not hasattr(a, "dtype") or isinstance(a, np.generic) or hasattr(a, "at") or getattr(a, "stype", "") == "csr":
            continue  # numbers, and what nobody can change
        if isinstance(a, np.ndarray) and not a.flags.writeable:
            continue
        torch = sys.modules["torch"] if hasattr(a, "requires_grad") else None
        with torch.inference_mode() if torch else nullcontext():
            (a.detach() if torch else a)[...] = np.nan if "float" in str(a.dtype) else 113


def difference(results: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float) -> str | None:
    """Return how results differ from the expected ones, None when they do not."""
    if len(results) != len(expected):
        return f"returns {len(results)} of {len(expected)} results"
    for k, (got, want) in enumerate(zip(results, expected, strict=True)):
        if got.size != want.size:
            return f"result {k} has {got.size} elements, not {want.size}"
        got, want = (np.asarray(a, np.float64).ravel() for a in (got, want))
        size = max(float(np.abs(want[np.isfinite(want)]).max(initial=0)), 1e-6)
        near = np.isclose(got, want, rtol=tolerance, atol=tolerance * size, equal_nan=True)
        if not near.all():
            return f"result {k}: {got[~near][0]:.6g} where {want[~near][0]:.6g} is right, {np.mean(~near):.0%} of it wrong"
    return None
