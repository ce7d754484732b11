"""The generators of random numbers, one for each device: what is kept of one is a seed and how many draws it gave.

A call of an operator that draws takes one key when it runs; all its numbers follow from that key by counting (see
``mxop_random.h``).  Keys of one seed are all different.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import active_count, local

import numpy as np

_BITS = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15  # odd, so that its multiples by different counts are different


def _mixed(x: int) -> int:
    """Return 64 bits that look unlike `x` and others' (the finalizer of SplitMix64): it maps one to one."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _BITS
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _BITS
    return x ^ (x >> 31)


class Generator:
    """A seed and the number of the next draw; threads may draw at once."""

    __slots__ = ("_numbers", "_start")

    def __init__(self, seed: int):
        self._start = _mixed((seed ^ _GOLDEN) & _BITS)
        self._numbers = count(1)  # whose next is one step, for threads too

    def draw(self) -> int:
        """Return a new key, as the bits of an int64."""
        key = _mixed(self._start + next(self._numbers) * _GOLDEN & _BITS)
        return key - (1 << 64) if key >> 63 else key


class _Thread(local):
    draws = True


_thread = _Thread()


@contextmanager
def no_draws() -> Iterator[None]:
    """Refuse draws of this thread: of a function that is called to see what it does, and will be called again.

    Draws of Python's and NumPy's generators are seen when it has returned, and undone where this thread is alone.
    """
    before, _thread.draws = _thread.draws, False
    states = pickle.dumps([random.getstate(), np.random.get_state(legacy=False)])
    try:
        yield
    finally:
        _thread.draws = before
    if pickle.dumps([random.getstate(), np.random.get_state(legacy=False)]) != states:
        if active_count() == 1:  # else another thread may have drawn, whose numbers would come again
            for put_back, state in zip((random.setstate, np.random.set_state), pickle.loads(states)):
                put_back(state)
        raise NotImplementedError("random numbers cannot be drawn here")


_seed = 0  # of devices without one of their own
_of_device: dict[tuple[str, int], Generator] = {}


def seed_all(seed: int) -> None:
    """Seed the generators of all devices, each differently; those of the devices number 0 alike."""
    global _seed, _of_device
    _seed, _of_device = seed, {}


def seed_device(seed: int, device_type: str, device_id: int) -> None:
    """Seed the generator of one device: every device gives the same numbers from then on."""
    _of_device[device_type, device_id] = Generator(seed)


def draw(device_type: str, device_id: int) -> int:
    """Return a new key of a device's generator.

    Raises
    ------
    NotImplementedError
        Inside of :func:`no_draws`.
    """
    if not _thread.draws:
        raise NotImplementedError("random numbers cannot be drawn here")
    generators = _of_device
    found = generators.get((device_type, device_id))
    if found is None:
        found = generators.setdefault((device_type, device_id), Generator(_seed + device_id * _GOLDEN))
    return found.draw()
