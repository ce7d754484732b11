"""Memory for new arrays, on a device and of a shape that are checked here."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import core, profile
from ..context import Context, current_context
from ..opdef.params import Bad, as_shape
from ..support.dtypes import CODES
from ..support.errors import OpTypeError, OpValueError

NDArray = core.NDArray


def device(ctx: Context | None, function: str) -> Context:
    """Return the device that an argument ``ctx`` names."""
    if ctx is None:
        return current_context()
    if not isinstance(ctx, Context):
        hint = f"; a shape is one tuple: {function}((2, 3))" if isinstance(ctx, int) else ""
        if isinstance(ctx, type) or str(ctx) in CODES:
            hint = "; a type is given as dtype="
        raise OpTypeError(f"{function}: ctx={ctx!r} is not a context; expected something like mx.cpu() or mx.gpu(0){hint}")
    return ctx


def placed(host: np.ndarray, ctx: Context) -> NDArray:
    """Return an array with the elements of a NumPy array that nobody else has."""
    made = ctx._device.from_numpy(host)
    made._device.place(made, ctx.place)
    return made


def blank(shape: tuple[int, ...], code: int, ctx: Context) -> NDArray:
    """Return an array whose elements are not set."""
    return core.new_at(shape, code, ctx._device, ctx.place)


def filled(shape: tuple[int, ...], code: int, ctx: Context, value: Any) -> NDArray:
    """Return an array filled with 0 or 1."""
    begun, made = profile.now(), blank(shape, code, ctx)
    made._device.fill(made, value)
    profile.call_event("_ones" if value else "_zeros", begun)
    return made


def shape_of(shape: Any, function: str) -> tuple[int, ...]:
    """Return a shape given as a number or a sequence."""
    try:
        found = as_shape(shape)
    except Bad:
        raise OpTypeError(f"{function}: shape={shape!r} is not an integer or a sequence of integers") from None
    if None in found:
        raise OpTypeError(f"{function}: shape={shape!r} holds None, and the size of an array is known")
    if any(d < 0 for d in found):
        raise OpValueError(f"{function}: shape={shape!r} holds a negative size")
    return found
