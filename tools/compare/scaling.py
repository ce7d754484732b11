"""How much faster a workload is with all threads than with one.  Imports `systems` and `timing`."""

from __future__ import annotations

from systems import OURS, THREADS, set_threads, ways
from timing import Workload, in_turn


def told(work: Workload) -> str:
    """Return mxop's times with one thread and with all, and the efficiency: 100 % is a thread's worth for each thread."""
    arrays = list(work.arrays())
    made = {name: way for name, way in ways(work.programs, arrays).items() if name in OURS}
    expected = work.expected(arrays, made)
    seconds = {}
    for threads in (1, THREADS, 1, THREADS):  # twice in turn: what disturbs the machine disturbs both
        set_threads(threads)
        found = in_turn(made, expected, tolerance=work.tolerance, rounds=max(work.rounds // 2, 3), least=2e-3)
        if found.wrong:
            raise AssertionError(f"{work.name}: {found.wrong}")
        seconds[threads] = min(seconds.get(threads, float("inf")), *found.seconds.values())
    one, all_ = seconds[1], seconds[THREADS]
    return f"{one * 1e3:.3g} ms with one thread, {all_ * 1e3:.3g} with {THREADS}: {one / all_ / THREADS:.0%}"
