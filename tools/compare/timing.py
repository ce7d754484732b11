"""Workloads and their rows: calls are checked against each other, then timed in turn, round by round.  Imports `systems`."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from systems import NO_PEERS, OURS, THREADS, Call, as_arrays, calls, set_threads

REST = 0.04  # seconds
STEP, MOST_STEPS = 0.01, 100  # seconds, and how often they are waited for
WARM = 0.02  # seconds until cores that rested are as fast as they get: some take 12 ms
AT_THE_LIMIT = 0.85  # a share of the bandwidth or of the peak from which on a ratio of 1 is enough


@dataclass
class Workload:
    """What is computed, in every system that can.

    Attributes
    ----------
    programs : dict
        By the way it is written (`systems.System.written`): a function of the system's arrays, a text for numexpr, or
        `systems.Prepared`.
    arrays : callable
        Makes the inputs, by NumPy.
    moved, flops : float
        Bytes that must be read and written, and multiplications and additions; they make shares of the machine.
    reads : bool
        Nearly nothing is written, so that the bandwidth of reading counts.
    cached : bool
        What is moved is in the caches: the bandwidth is that of one thread that copies, or reads, as many bytes there.
    bound : float
        What the ratio to the best peer may be.
    bounds : dict of str to float
        Further bounds, by peer.
    tolerance : float or None
        How far the results of peers may be from each other, relative to their size; None does not compare.
    """

    name: str
    what: str
    programs: dict[str, Any]
    arrays: Callable[[], Sequence[np.ndarray]]
    moved: float = 0.0
    flops: float = 0.0
    reads: bool = False
    cached: bool = False
    bound: float = 0.9
    bounds: dict[str, float] = field(default_factory=dict)
    tolerance: float | None = 2e-3
    rounds: int = 11
    threads: int = THREADS

    def measure(self, probes: dict[str, Call], brief: bool) -> list[Row]:
        """Check and time; return the row against the best peer, then those of `bounds`."""
        set_threads(self.threads)
        try:
            systems = calls(self.programs, self.arrays())
            wrong = self.check(systems)
            if set(systems) <= set(wrong) or not any(name in systems for name in OURS):
                return [Row(self.name, self.what, "", float("nan"), False, "not comparable")]
            wanted = {} if not (self.moved or self.flops) else probes
            least = 2e-4 if brief else 2e-3
            seconds = in_turn({**systems, **wanted}, 2 if brief else self.rounds, least)
        finally:
            set_threads(THREADS)
        return self.rows({n: s for n, s in seconds.items() if n in systems}, seconds)

    def check(self, systems: dict[str, Call]) -> list[str]:
        """Leave out peers whose results are others than mxop's; fail when no peer agrees with mxop."""
        if self.tolerance is None:
            return []
        results = {name: as_arrays(call()) for name, call in systems.items()}
        ours = next(name for name in OURS if name in results)
        wrong = [n for n in results if not _alike(results[n], results[ours], self.tolerance)]
        peers = [n for n in results if n not in NO_PEERS]
        if any(n in OURS for n in wrong) or (peers and all(n in wrong for n in peers)):
            raise AssertionError(f"{self.name}: the results of mxop are not those of {', '.join(wrong)}")
        for name in wrong:
            print(f"{self.name}: {name} computes something else, and is left out", file=sys.stderr)
            del systems[name]
        return wrong

    def rows(self, seconds: dict[str, float], all_seconds: dict[str, float]) -> list[Row]:
        """Make rows of medians."""
        ours = min((n for n in OURS if n in seconds), key=seconds.__getitem__)
        peers = [n for n in seconds if n not in NO_PEERS]
        shares = self.shares(seconds[ours], all_seconds)
        if not peers:
            return [Row(self.name, self.what, "", seconds[ours] * 1e6, True, "no peer", "us", seconds, **shares)]
        best = min(peers, key=seconds.__getitem__)
        limit = max(self.bound, 1.0) if max([v or 0 for v in shares.values()]) >= AT_THE_LIMIT else self.bound
        pairs = {best: limit} | {p: b for p, b in self.bounds.items() if p in seconds}
        rows = []
        for peer, most in pairs.items():
            ratio = seconds[ours] / seconds[peer]
            rows.append(Row(self.name, self.what, f"<= {most:g}", ratio, ratio <= most, peer, "x", seconds, **shares))
        return rows

    def shares(self, ours: float, seconds: dict[str, float]) -> dict[str, float | None]:
        """Return the shares of the bandwidth and of the peak that were measured in the same rounds."""
        ways = [n for n in seconds if n.startswith("read" if self.reads else ("copy", "triad"))]
        found: dict[str, float | None] = {"bandwidth": None, "peak": None}
        if self.moved and ways:
            speed = max(PROBED[n] / seconds[n] for n in ways)
            found["bandwidth"] = self.moved / ours / speed
        if self.flops and "multiply-add" in seconds:
            found["peak"] = self.flops / ours / (PROBED["multiply-add"] / seconds["multiply-add"])
        return found


#: Bytes or operations of each probe; `probes` fills it.
PROBED: dict[str, float] = {}


@dataclass
class Row:
    """One line of the table: a ratio of times, or another measure with its unit.

    Attributes
    ----------
    seconds : dict of str to float
        Median of every system.
    bandwidth, peak : float or None
        Shares of what the machine can do.
    """

    name: str
    what: str
    bound: str
    measured: float
    ok: bool
    against: str = ""
    unit: str = "x"
    seconds: dict[str, float] = field(default_factory=dict)
    bandwidth: float | None = None
    peak: float | None = None


def _alike(results: Sequence[np.ndarray], wanted: Sequence[np.ndarray], tolerance: float) -> bool:
    if len(results) != len(wanted):
        return False
    for got, want in zip(results, wanted, strict=True):
        if got.size != want.size:
            return False
        got, want = (np.asarray(a, np.float64).ravel() for a in (got, want))
        size = max(float(np.abs(want[np.isfinite(want)]).max(initial=0)), 1e-6)
        if not np.allclose(got, want, rtol=tolerance, atol=tolerance * size, equal_nan=True):
            return False
    return True


def rest() -> None:
    """Wait until threads that wait for more work have fallen asleep: those of OpenBLAS take 25 ms, or 110."""
    time.sleep(REST)
    for _ in range(MOST_STEPS):
        used = time.process_time()
        time.sleep(STEP)
        if time.process_time() - used < STEP / 4:
            return


def warmed(call: Call, seconds: float) -> int:
    """Call for so long, once at least; return how often that was."""
    start, n = time.perf_counter(), 0
    while not n or time.perf_counter() - start < seconds:
        call()
        n += 1
    return n


def in_turn(systems: dict[str, Call], rounds: int, least: float) -> dict[str, float]:
    """Time every system once a round, in an order that rotates; return medians of seconds for one call.

    Before each measurement the threads of the system before fall asleep: waiting, they would hold the cores.  Calls that are
    not timed follow, which wake the system's own, and the cores.

    Parameters
    ----------
    least : float
        Seconds that one measurement takes at least; short calls are repeated.
    """
    repeats = {}
    for name, call in systems.items():
        warmed(call, WARM)
        repeats[name] = warmed(call, least)
    found: dict[str, list[float]] = {name: [] for name in systems}
    names = list(systems)
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for k in range(rounds):
            for name in names[k % len(names) :] + names[: k % len(names)]:
                call, n = systems[name], repeats[name]
                rest()
                warmed(call, WARM)
                start = time.perf_counter()
                for _ in range(n):
                    call()
                found[name].append((time.perf_counter() - start) / n)
    finally:
        if was_enabled:
            gc.enable()
    return {name: statistics.median(times) for name, times in found.items()}
