"""Workloads and their rows: calls are timed in turn, round by round, then compared with a reference.  Imports `systems`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from systems import NO_PEERS, OURS, THREADS, Call, Prepared, as_arrays, set_threads, ways

from mxop.cli.timing import Timed, Way, each, finish, host, timed

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
    tolerance : float
        How far results may be from the reference's, relative to their size.
    claims : int
        How many arrays each program returns: all that `what` says is computed, results as well as gradients.
    reference : callable, optional
        A function of NumPy's arrays that returns them; by default the program for NumPy, or what a peer returns.
    compared : callable, optional
        Turns results into what is compared: moments of random numbers.
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
    tolerance: float = 2e-3
    claims: int = 1
    reference: Callable[..., Any] | None = None
    compared: Callable[[list[np.ndarray]], list[np.ndarray]] | None = None
    rounds: int = 11
    threads: int = THREADS

    def measure(self, probes: dict[str, Call], brief: bool) -> list[Row]:
        """Time, then compare; return the row against the best peer, then those of `bounds`."""
        set_threads(self.threads)
        try:
            arrays = list(self.arrays())
            found = ways(self.programs, arrays)
            if not any(name in found for name in OURS):
                return [Row(self.name, self.what, "", float("nan"), False, "not comparable")]
            wanted = {} if not (self.moved or self.flops) else probes
            timed = in_turn(found, self.expected(arrays, found), nbytes=self.nbytes(arrays, found), tolerance=self.tolerance,
                            rounds=2 if brief else self.rounds, least=2e-4 if brief else 2e-3, probes=wanted)  # fmt: skip
        finally:
            set_threads(THREADS)
        for name, told in timed.wrong.items():
            if name in OURS:
                raise AssertionError(f"{self.name}: {name} {told}")
            print(f"{self.name}: {name} is left out: it {told}", file=sys.stderr)
        kept = {n: s for n, s in timed.seconds.items() if n in found and n not in timed.wrong}
        if timed.wrong and all(name in NO_PEERS for name in kept):
            raise AssertionError(f"{self.name}: the results of mxop are not those of {', '.join(timed.wrong)}")
        return self.rows(kept, timed.seconds, timed.too_fast)

    def expected(self, arrays: Sequence[np.ndarray], found: dict[str, Way]) -> list[np.ndarray]:
        """Return what every system has to return: by the reference, by NumPy's program, or, where neither is, by any peer."""
        program = self.reference or self.programs.get("numpy")
        if program is not None and not isinstance(program, Prepared):
            results = as_arrays(program(*(a.copy() for a in arrays)))
        else:
            name = next((n for n in found if n not in NO_PEERS), None) or next(iter(found))
            found[name].restore()
            results = found[name].read(finish(found[name].call()))
        results = [a.copy() for a in (self.compared(results) if self.compared else results)]
        if len(results) != self.claims:
            raise AssertionError(f"{self.name}: claims {self.claims} results, and the reference has {len(results)}")
        for way in found.values() if self.compared else ():
            way.read = partial(lambda results, read: self.compared(read(results)), read=way.read)
        return results

    def nbytes(self, arrays: Sequence[np.ndarray], found: dict[str, Way]) -> float:
        """Return the bytes that are read and written at least: those of inputs and results where the workload does not say."""
        way = next(way for name, way in found.items() if name in OURS)
        return self.moved or float(sum(a.nbytes for a in (*arrays, *map(host, each(way.call())))))

    def rows(self, seconds: dict[str, float], all_seconds: dict[str, float], too_fast: Sequence[str] = ()) -> list[Row]:
        """Make rows of medians; one that is too fast to be believed says so."""
        ours = min((n for n in OURS if n in seconds), key=seconds.__getitem__)
        peers = [n for n in seconds if n not in NO_PEERS]
        shares = self.shares(seconds[ours], all_seconds)
        if not peers:
            return [
                Row(self.name, self.what, "", seconds[ours] * 1e6, True, "no peer", "us", seconds, **shares,
                    doubted=[n for n in too_fast if n == ours])
            ]  # fmt: skip
        best = min(peers, key=seconds.__getitem__)
        limit = max(self.bound, 1.0) if max([v or 0 for v in shares.values()]) >= AT_THE_LIMIT else self.bound
        pairs = {best: limit} | {p: b for p, b in self.bounds.items() if p in seconds}
        rows = []
        for peer, most in pairs.items():
            ratio = seconds[ours] / seconds[peer]
            doubted = [n for n in too_fast if n in (ours, peer)]
            rows.append(Row(self.name, self.what, f"<= {most:g}", ratio, ratio <= most, peer, "x", seconds, **shares,
                            doubted=doubted))  # fmt: skip
        return rows

    def shares(self, ours: float, seconds: dict[str, float]) -> dict[str, float | None]:
        """Return the shares of the bandwidth and of the peak that were measured in the same rounds."""
        probed = [n for n in seconds if n in PROBED and n.startswith("read" if self.reads else ("copy", "triad"))]
        found: dict[str, float | None] = {"bandwidth": None, "peak": None}
        if self.moved and probed:
            speed = max(PROBED[n] / seconds[n] for n in probed)
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
    doubted : list of str
        Systems whose rate no memory has: more than 1.5 times that of a copy of as many bytes in the same rounds.
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
    doubted: list[str] = field(default_factory=list)


def rest() -> None:
    """Wait until threads that wait for more work have fallen asleep: those of OpenBLAS take 25 ms, or 110."""
    time.sleep(REST)
    for _ in range(MOST_STEPS):
        used = time.process_time()
        time.sleep(STEP)
        if time.process_time() - used < STEP / 4:
            return


def in_turn(found: dict[str, Way], expected: Sequence[np.ndarray] | None, **more: Any) -> Timed:
    """Time every system once a round, and compare its results: `mxop.cli.timing.timed`.

    Before each measurement the threads of the system before fall asleep: waiting, they would hold the cores.  Calls that are
    not timed follow, which wake the system's own, and the cores.
    """
    return timed(found, expected, warm=WARM, rest=rest, **more)
