"""``NamedArray``: an ``NDArray`` with axes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from .._core.core import Dense
from ..ndarray import NDArray
from ..ndarray.register import F as arrays
from ..support.errors import OpTypeError, UnmatchedAxesError
from .axis import Axes, make_axes, unmatched
from .layout import aligned, plain_shape, spread
from .slicing import sliced_axes
from .tensor import Tensor, mixed, not_a_tensor


class NamedArray(Tensor):
    """An ``NDArray`` with axes.

    Examples
    --------
    >>> H, W = mx.axes.make_axis(2, 'H'), mx.axes.make_axis(3, 'W')
    >>> x, y = mx.axes.ones([H, W]), mx.axes.array([1, 2, 3], W)
    >>> (y - x).axes, (x - y).asnumpy().tolist()
    (Axes(W: 3, H: 2), [[0.0, -1.0, -2.0], [0.0, -1.0, -2.0]])
    """

    __slots__ = ()

    F = arrays
    _holds_data = True

    def __init__(self, value: NDArray, axes: Any):
        if not isinstance(value, Dense):
            raise OpTypeError(f"a NamedArray needs an NDArray, got {type(value).__name__}")
        axes = make_axes(axes)
        super().__init__(matching(value, axes), axes)

    def asnumpy(self) -> np.ndarray:
        """Return a NumPy array, with dimensions in the order of the axes."""
        found = self.value.asnumpy()
        return found if self.axes else found.reshape(())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = np.array(self.value, dtype=dtype)
        return found if self.axes else found.reshape(())

    def tolist(self) -> Any:
        """Return the values as nested lists."""
        return self.asnumpy().tolist()

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self.value.item()

    asscalar = item

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"\n{self.asnumpy()!s}\n<NamedArray {self.axes!r} @{self.value.context}>"

    dtype = property(lambda self: self.value.dtype, doc="Element type.")
    size = property(lambda self: self.value.size, doc="Number of elements.")
    context = property(lambda self: self.value.context, doc="The device.")

    def as_in_context(self, context: Any) -> NamedArray:
        """Return the array itself when it is on the device, else a copy there."""
        return self._new(self.value.as_in_context(context), self.axes)

    def copy(self) -> NamedArray:
        """Return a copy."""
        return self._new(self.value.copy(), self.axes)

    def __setitem__(self, key: Any, other: Any) -> None:
        """Write elements; the axes of a tensor are matched by name, and repeated where it lacks one."""
        if not isinstance(other, Tensor):
            self.value[self._plain_key(key)] = other
            return
        if not isinstance(other, NamedArray):
            raise mixed(self, other)
        plain, axes = sliced_axes(self.axes, key)
        if not other.axes.is_sub_set(axes):
            raise unmatched(f"{other.axes!r} cannot be written to {axes!r}", other.axes, axes)
        self.value[plain if self.axes else slice(None)] = aligned(self.F, other.value, other.axes, axes)

    def _plain_key(self, key: Any) -> Any:
        return sliced_axes(self.axes, key)[0] if self.axes else slice(None)

    def _in_place(self, function: Callable, other: Any) -> Any:
        """Change this array; axes that it lacks cannot come in."""
        if isinstance(other, NamedArray):
            if not other.axes.is_sub_set(self.axes):
                text = f"in place: {other.axes!r} does not fit into {self.axes!r}"
                raise unmatched(text, other.axes, self.axes)
            other = aligned(self.F, other.value, other.axes, self.axes)
        elif not isinstance(other, Number):
            return not_a_tensor(other)
        self.value = function(self.value, other)
        return self

    # fmt: off
    def __iadd__(self, other: Any) -> Any: return self._in_place(operator.iadd, other)
    def __isub__(self, other: Any) -> Any: return self._in_place(operator.isub, other)
    def __imul__(self, other: Any) -> Any: return self._in_place(operator.imul, other)
    def __itruediv__(self, other: Any) -> Any: return self._in_place(operator.itruediv, other)
    def __imod__(self, other: Any) -> Any: return self._in_place(operator.imod, other)
    # fmt: on

    # ---- gradients --------------------------------------------------------------------------------------------------
    def attach_grad(self, grad_req: str = "write") -> None:
        """Make the array a variable; ``grad`` holds its gradient after ``backward``."""
        self.value.attach_grad(grad_req)

    @property
    def grad(self) -> NamedArray | None:
        """The gradient, with the same axes."""
        found = self.value.grad
        return None if found is None else self._new(found, self.axes)

    def backward(self, out_grad: NamedArray | None = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Compute the gradients of the variables that this was computed from."""
        head = None if out_grad is None else spread(self.F, out_grad.value, out_grad.axes, self.axes, "backward")
        self.value.backward(head, retain_graph, train_mode)

    def detach(self) -> NamedArray:
        """Return the same values without history."""
        return self._new(self.value.detach(), self.axes)


def matching(value: NDArray, axes: Axes) -> NDArray:
    """Return a value in the shape of its axes; an axis of unknown length gets the length that it has here.

    Raises
    ------
    UnmatchedAxesError
        When shape and axes differ.
    """
    if not axes and value.size == 1:
        shape = plain_shape(())
        return value if value.shape == shape else value.reshape(shape)
    agrees = len(value.shape) == len(axes) and all(a.length in (None, n) for a, n in zip(axes, value.shape, strict=True))
    if not agrees:
        raise UnmatchedAxesError(f"an array of shape {value.shape} does not fit {axes!r} of lengths {axes.lengths}")
    for axis, n in zip(axes, value.shape, strict=True):
        if axis.length is None:
            axis.length = n
    return value
