"""Measurement of the time of each step of an executor.

The schedules run as they do for users, so each step finds its operands in the caches or in memory as in a run.  All arrays that
they write are restored.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from .._core import core, profile, tape
from ..opdef import External
from .plan import Plan

FEWEST, MOST = 5, 500  # runs
ENOUGH_SECONDS = 0.5


def measured(executor: Any, plan: Plan, schedules: list[Any], train: bool) -> tuple[list[float], int]:
    """Return the median seconds of each step, and the number of runs.

    Parameters
    ----------
    schedules : list of Schedule
        Forward, and backward in training.
    train : bool
        Whether operators run in training mode.
    """
    wait = executor._device.synchronize
    cost = profile.clock_cost()
    with _unchanged(_written(executor, plan)), tape.Scope(False, train):
        for head in executor._heads.arrays:
            if head is not None:  # uninitialized memory may hold denormal numbers, which are slow
                head[:] = 1
        runs: list[list[int]] = []
        _run(schedules, wait)  # not counted: caches may be cold
        end = time.perf_counter() + ENOUGH_SECONDS
        while len(runs) < FEWEST or (len(runs) < MOST and time.perf_counter() < end):
            runs.append(_run(schedules, wait))
    return [max(median(times) - cost, 0) * 1e-9 for times in zip(*runs, strict=True)], len(runs)


def lasting(plan: Plan) -> list[str]:
    """Return the nodes whose calls may change a state outside of arrays: external functions, and random ones."""
    nodes = [node for phase in plan.phases for node in phase.nodes if node.op is not None]
    return [n.name for n in nodes if _outside(n.op) or not n.op.repeatable]


def _run(schedules: list[Any], wait: Any) -> list[int]:
    return [t for schedule in schedules for t in schedule.times(wait)]


def _written(executor: Any, plan: Plan) -> list[Any]:
    """Return the arrays that a run writes: outputs, gradients, buffers, assigned variables."""
    assigned = {node.inputs[i][0] for phase in plan.phases for node in phase.nodes for i in node.mutated_inputs()}
    buffers = [a for arrays in executor._arena.arrays.values() for a in arrays]
    variables = [executor._bound[n] for n in assigned if n in executor._bound]
    found = [*executor._outputs, *executor.grad_arrays, *executor._heads.arrays, *buffers, *variables]
    return [a for a in found if a is not None]


@contextmanager
def _unchanged(arrays: list[Any]) -> Iterator[None]:
    """Return a scope after which arrays have their present values again, also after an error."""
    kept = [a.detach().copy() for a in arrays]
    try:
        yield
    finally:
        for array, before in zip(arrays, kept, strict=True):
            core.copy(before, array)


def _outside(op: Any) -> bool:
    return isinstance(op, External) and (op.stateful or not op.bodies)
