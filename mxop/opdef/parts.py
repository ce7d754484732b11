"""Arrays as kernels that only move elements see them: parts, and assignments to parts.

One function, written as for NumPy's or CuPy's arrays, so serves every device.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError, shown, translated
from . import infer
from .places import place


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return C-order strides in elements."""
    strides, step = [], 1
    for d in reversed(shape):
        strides.append(step)
        step *= max(d, 1)
    return tuple(reversed(strides))


def reviewed(array: Any, shape: tuple[int, ...]) -> Any:
    """Return a view of a contiguous array in another shape."""
    if array.size != prod(shape):
        raise OpValueError(f"an array of shape {array.shape} cannot be viewed in shape {tuple(shape)}: sizes differ")
    return array._view(tuple(shape), contiguous_strides(tuple(shape)), 0)


class Part:
    """An array or a part of an array.

    Parameters
    ----------
    steps : mxop._core.steps.Steps
        Records assignments to the part as steps.
    array : NDArray
    """

    def __init__(self, steps: Any, array: Any, place: Any = None):
        self._steps, self._array, self._place = steps, array, place
        self.shape: tuple[int, ...] = array.shape
        self.ndim = len(self.shape)

    @property
    def dtype(self) -> Any:
        """NumPy's type of the elements; that of bfloat16 needs ml_dtypes."""
        return dtypes.numpy_dtype(self._array.dtype_code)

    def reshape(self, *shape: Any) -> Part:
        """Return a view of the array, which must be contiguous, in another shape."""
        if not self._array._contiguous:
            raise OpValueError("a part that is not contiguous cannot be viewed in another shape")
        return Part(self._steps, reviewed(self._array, shape[0] if isinstance(shape[0], tuple) else shape))

    def transpose(self, *axes: int) -> Part:
        """Return a view of the array with its dimensions in another order, by default reversed."""
        shape, strides = self.shape, self._array._strides
        axes = axes or tuple(reversed(range(self.ndim)))
        if sorted(axes) != list(range(self.ndim)):
            raise OpValueError(f"a part of shape {shape} has no dimensions {axes}; expected each of them once, from 0 on")
        return Part(self._steps, self._array._view(tuple(shape[a] for a in axes), tuple(strides[a] for a in axes), 0))

    def __getitem__(self, key: Any) -> Part:
        shape, strides, offset = [], [], 0
        for chosen, size, step in zip(self._expanded(key), self.shape, self._array._strides, strict=True):
            places = range(size)[chosen]
            if isinstance(places, range):
                shape.append(len(places))
                strides.append(step * places.step)
                places = places.start if len(places) else 0
            offset += places * step
        return Part(self._steps, self._array._view(tuple(shape), tuple(strides), offset), (self, key))

    def _expanded(self, key: Any) -> tuple:
        """Return a key with an item for each dimension."""
        key = key if isinstance(key, tuple) else (key,)
        at = key.index(Ellipsis) if Ellipsis in key else len(key)
        missing = self.ndim - len(key) + (at < len(key))
        return (*key[:at], *[slice(None)] * missing, *key[at + 1 :])

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self[key]._array
        if isinstance(value, Part) and value._place == (self, key):
            return  # same part, as in ``part[key] += other``
        if isinstance(value, Part):
            self._steps.move(_broadcast(value._array, target.shape), target)
        else:
            self._steps.fill(target, value)

    def __iadd__(self, other: Part) -> Part:
        if not isinstance(other, Part):
            raise OpTypeError(f"{shown(other)} cannot be added to a part of an array; expected a part of an array")
        self._steps.add(_broadcast(other._array, self.shape), self._array)
        return self


def _broadcast(array: Any, shape: tuple[int, ...]) -> Any:
    """Return a view of an array, broadcast to a shape."""
    if array.shape == shape:
        return array
    lead = len(shape) - len(array.shape)
    if lead < 0 or any(d not in (1, wanted) for d, wanted in zip(array.shape, shape[lead:], strict=True)):
        raise OpValueError(f"a part of shape {array.shape} does not broadcast to one of shape {shape}")
    strides = [0 if d == 1 else step for d, step in zip(array.shape, array._strides, strict=True)]
    return array._view(shape, (*[0] * lead, *strides), 0)


def within(op: Any, make: Callable) -> Callable:
    """Return an author's view rule with a check that all elements are inside of the input."""
    who = f"operator {op.name}{place(make)}: its view rule"

    def view(shape: tuple, strides: tuple, *others: Any, **params: Any) -> tuple:
        with translated(who):
            found = make(shape, strides, *others, **params)
            sizes, steps, offset = found
            if steps is None:  # no view with these strides
                return found
            sizes, steps, offset = tuple(sizes), tuple(map(operator.index, steps)), operator.index(offset)
        infer.check_sizes(who, sizes)
        if len(sizes) != len(steps):
            raise OpValueError(f"{who} returned {shown(found)}; expected a shape, as many strides, and an offset")
        first, last = _reach(shape, strides, 0)
        low, high = _reach(sizes, steps, offset)
        if low <= high and (low < first or high > last):
            raise OpValueError(f"{who} reads elements {low} to {high} for an input of shape {tuple(shape)}, whose elements are "
                               f"{first} to {last}")  # fmt: skip
        return sizes, steps, offset

    return view


def _reach(shape: Sequence[int], strides: Sequence[int], offset: int) -> tuple[int, int]:
    """Return the first and the last offset of a view's elements; the last is less than the first if it is empty."""
    if 0 in shape:
        return 0, -1
    spans = [(d - 1) * s for d, s in zip(shape, strides, strict=True)]
    return offset + sum(s for s in spans if s < 0), offset + sum(s for s in spans if s > 0)
