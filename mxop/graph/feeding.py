"""Inputs of a bound graph: values for its arrays, and head gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import RLock
from typing import Any

import numpy as np

from .._core import core
from .._kernels.machine import MX_GIL_BYTES
from ..support import dtypes
from ..support.errors import MXNetError, OpTypeError, OpValueError, closest, translated

WRITER = "an executor"  # in autograd's messages


class Heads:
    """The head gradients that a backward schedule reads: in the executor's arrays, or in the caller's.

    Parameters
    ----------
    arrays : list of (NDArray or None)
        The arrays that the schedule was prepared for; None for an output that needs no head gradient.
    schedule : Schedule
    written : sequence of NDArray
        Arrays that a run writes: head gradients that overlap them are copied.
    fixed : bool
        Whether the arrays have fixed sizes.
    """

    def __init__(self, arrays: list[Any], schedule: Any, written: Sequence[Any], fixed: bool):
        self.arrays, self._schedule = arrays, schedule
        self._own = [a for a in arrays if a is not None]
        self._places = self._pointed_at = None
        self._alone = RLock()  # while pointers refer to one caller's arrays, runs of other callers must wait
        large = sum(a.size * dtypes.SIZES[a.dtype_code] for a in self._own) >= MX_GIL_BYTES  # fewer are copied faster
        if fixed and large:
            places = core.PlacesWithin(self._own)
            try:
                places.note(schedule.calls)
            except NotImplementedError:  # a call cannot be moved to other arrays
                return
            self._written, self._places = [core.span(a) for a in written], places

    def taken(self, values: Sequence[tuple[Any, Any, str]], copy: bool) -> Callable[[], None]:
        """Return a function that runs the schedule on head gradients, after copying those that cannot be read in place."""
        if copy or self._places is None:
            assign(values)
            return self._schedule.run
        found = [value if self._is_readable(target, value) else target for target, value, _ in values]
        assign([v for v, a in zip(values, found, strict=True) if v[0] is a])
        return partial(self._run_on, found)

    def _is_readable(self, target: Any, value: Any) -> bool:
        """Return whether a run can read a value in place."""
        if not (isinstance(value, core.Dense) and value._device is target._device and core.fits(value)):
            return False
        if value.shape != target.shape or value.dtype_code != target.dtype_code:
            return False
        low, high = core.span(value)
        return not any(low < end and begin < high for begin, end in self._written)

    def _run_on(self, arrays: list[Any]) -> None:
        """Run the schedule on other arrays of the same shapes and types."""
        places: Any = self._places
        with self._alone:
            self._pointed_at = arrays  # keeps them alive while pointers refer to them, even after an interrupt
            try:
                places.put(arrays)
                self._schedule.run()
            finally:
                places.put(self._own)
                self._pointed_at = None


def listed_heads(out_grads: Any, symbol: Any) -> Sequence[Any]:
    """Return head gradients in the order of a symbol's outputs; a dict is read by their names."""
    if out_grads is None:
        return ()
    if isinstance(out_grads, core.Dense):
        return (out_grads,)
    if isinstance(out_grads, Mapping):
        return [out_grads.get(name) for name in symbol.list_outputs()]
    if not isinstance(out_grads, (list, tuple)):
        raise OpTypeError(f"out_grads must be an NDArray, or a list or dict of them, got {type(out_grads).__name__}")
    return out_grads


def head_missing(i: int, out_grads: Any, symbol: Any) -> MXNetError:
    """Return the error for a missing head gradient of output `i`."""
    names = symbol.list_outputs()
    text = (f"output {names[i]!r} is not that of a loss function (as SoftmaxOutput, LinearRegressionOutput, MakeLoss), so head "
            "gradients are required: backward(out_grads)")  # fmt: skip
    for name in out_grads if isinstance(out_grads, Mapping) else ():
        if name not in names:
            text += f"; out_grads has {name!r}, which is not an output{closest(name, names)}"
    return MXNetError(text)


def assign(values: Iterable[tuple[Any, Any, str]], hint: str = "") -> None:
    """Copy arrays, or array-likes, into bound arrays; all are checked before the first is written.

    Parameters
    ----------
    values : iterable of (NDArray, Any, str)
        Target, value, and a name for messages.
    hint : str
        What else to say of a wrong shape.
    """
    checked = []
    for target, value, what in values:
        if not isinstance(value, core.Dense) and (
            isinstance(target, core.Dense) or not hasattr(value, "_history")
        ):  # sparse arrays are copied without becoming dense
            with translated(what):
                value = np.asarray(value)
            if value.dtype.kind in "OSUMm":
                raise OpTypeError(f"{what}: {value!r} is not an array of numbers")
        if value.shape != target.shape:
            raise OpValueError(f"{what}: expected shape {target.shape}, got {value.shape}{hint}")
        checked.append((target, value))
    for target, value in checked:
        if not isinstance(target, core.Dense):  # a sparse one
            target[:] = value
            continue
        core.touch(target, WRITER)
        if isinstance(value, core.Dense):
            if value is not target:
                core.copy(value, target)
        else:
            target[:] = value
