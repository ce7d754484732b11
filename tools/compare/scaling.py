"""How much faster a workload is with all threads than with one.  Imports `systems` and `timing`."""

from __future__ import annotations

from systems import OURS, THREADS, calls, set_threads
from timing import Workload, in_turn


def told(work: Workload) -> str:
    """Return mxop's times with one thread and with all, and the efficiency: 100 % is a thread's worth for each thread."""
    made = {name: call for name, call in calls(work.programs, work.arrays()).items() if name in OURS}
    seconds = {}
    for threads in (1, THREADS, 1, THREADS):  # twice in turn: what disturbs the machine disturbs both
        set_threads(threads)
        found = in_turn(made, max(work.rounds // 2, 3), 2e-3)
        seconds[threads] = min(seconds.get(threads, float("inf")), *found.values())
    one, all_ = seconds[1], seconds[THREADS]
    return f"{one * 1e3:.3g} ms with one thread, {all_ * 1e3:.3g} with {THREADS}: {one / all_ / THREADS:.0%}"
