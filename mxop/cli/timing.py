"""Times several ways of doing one thing, in turn, so that what disturbs the machine disturbs them all."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from time import perf_counter


def finish(result: object) -> None:
    """Wait for what a call returned: large results are computed when somebody reads them."""
    if hasattr(result, "wait_to_read"):
        result.wait_to_read()


def medians(ways: Mapping[str, Callable[[], object]], seconds: float = 1.5, rounds: int = 30) -> dict[str, float]:
    """Return the median time of each way in seconds.

    Parameters
    ----------
    ways : mapping of str to callable
    seconds : float
        Stop after about this time, but not before three rounds.
    rounds : int
        Stop after this many rounds.
    """
    times: dict[str, list[float]] = {name: [] for name in ways}
    for call in ways.values():  # first calls fill caches and memory pools
        finish(call())
    begin = perf_counter()
    for done in range(rounds):
        if done >= 3 and perf_counter() - begin > seconds:
            break
        for name, call in ways.items():
            start = perf_counter()
            finish(call())
            times[name].append(perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}
