"""Whether shapes have NumPy's meaning: the switch behind ``mx.np_shape``, one for each thread, as in MXNet.

With it, ``()`` is the shape of a scalar and 0 a size; without, ``()`` and 0 are MXNet's words for "unknown".  Whoever asks
for a shape's meaning asks here.
"""

from __future__ import annotations

import threading


class _ShapeMode(threading.local):
    numpy = False  # what a thread begins with


#: What compiled code reads: ``mode.numpy``, once a thread has switched it on.
mode = _ShapeMode()
used: list[bool] = []  # empty until then


def numpy_shape() -> bool:
    """Return whether shapes have NumPy's meaning in this thread."""
    return mode.numpy


def set_numpy_shape(active: bool) -> bool:
    """Switch NumPy's meaning of shapes on or off in this thread; return what it was."""
    before, mode.numpy = mode.numpy, active
    if active and not used:
        used.append(True)
    return before


__all__ = ["mode", "numpy_shape", "set_numpy_shape"]
