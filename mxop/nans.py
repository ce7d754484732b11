"""Where a NaN came from: results are looked at, call by call, and the first that holds one is an error.

May import :mod:`mxop._core`, :mod:`mxop.errors` and :mod:`mxop.opdef`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dtypes
from ._core import profile
from .errors import MXNetError
from .opdef.above import ask

_here = threading.local()
_count = 0
_counting = threading.Lock()


class NaNError(MXNetError):
    """A result holds NaN."""


class detect_nan:
    """A scope in which the first call of an operator whose result holds NaN is an error, forward and backward.

    The error names the operator, where the NaN is, and what the inputs are there; its traceback shows the line. Composites run
    operator by operator in the scope, so that the one inside is named; operators of gradients are called ``_backward_...``.
    Calls take longer in it, and nothing outside of it. It holds for its own thread. For a bound graph there is
    :meth:`Executor.detect_nan`.

    Raises
    ------
    mxop.nans.NaNError
        From the call that made the NaN, or was the first to be given it.

    Examples
    --------
    >>> import mxop as mx
    >>> x = mx.nd.array([1.0, -4.0])
    >>> with mx.autograd.detect_nan():
    ...     y = mx.nd.sqrt(x) + 1
    Traceback (most recent call last):
    ...
    mxop.nans.NaNError: operator sqrt made NaN of what has none: output 0 at (1,), where input 0 is -4.0
    """

    def __enter__(self) -> detect_nan:
        global _count
        self._before, _here.active = getattr(_here, "active", False), True
        _here.around = getattr(_here, "around", [])
        self._planned = ask("planned")(False)
        self._planned.__enter__()
        with _counting:
            _count += 1
            profile.look_at_results(_look)
        return self

    def __exit__(self, *problem: object) -> None:
        global _count
        with _counting:
            _count -= 1
            if _count == 0:
                profile.look_at_results(None)
        self._planned.__exit__(None, None, None)
        _here.active = self._before


def _look(name: str | None, inputs: list | None, outputs: list | None) -> None:
    """Look at the results of a call; without results, a composite begins or (without name) ends."""
    if not getattr(_here, "active", False):
        return
    if name is None:
        _here.around.pop()
    elif inputs is None or outputs is None:
        _here.around.append(name)
    else:
        around = _here.around
        check(f"operator {around[0]}: its {' of '.join([name, *around[:0:-1]])}" if around else f"operator {name}",
              inputs, outputs)  # fmt: skip


def check(who: str, inputs: Sequence[Any], outputs: Sequence[Any], where: str = "") -> None:
    """Raise when an output holds NaN."""
    for k, out in enumerate(outputs):
        at = None if out is None else _first(out)
        if at is None:
            continue
        given = [i for i, a in enumerate(inputs) if _first(a) is not None]
        if given:
            raise NaNError(
                f"{who} was given NaN: input {given[0]} at {_first(inputs[given[0]])}; output {k} holds NaN{where}"
            )
        there = [f"input {i} is {_values(a)[at]}" for i, a in enumerate(inputs) if a.shape == out.shape]
        raise NaNError(f"{who} made NaN of what has none: output {k} at {at}{', where ' if there else ''}{', '.join(there)}"
                       f"{where}")  # fmt: skip


def _values(array: Any) -> np.ndarray:
    return array.detach().asnumpy()  # looking is no part of what is recorded


def _first(array: Any) -> tuple[int, ...] | None:
    """Return where the first NaN is."""
    if array.dtype_code not in dtypes.FLOATS:
        return None
    found = np.argwhere(np.isnan(_values(array)))
    return tuple(found[0].tolist()) if len(found) else None


__all__ = ["NaNError", "check", "detect_nan"]
