"""Arrays and symbols that carry axes.

A tensor is a plain value (``NDArray`` or ``Symbol``) beside the axes of its dimensions.  Whatever is done to it is done at
once by ordinary operators on the plain value, so nothing of the axes is left in what is executed.
The two kinds are in :mod:`.named_array` and :mod:`.named_symbol`.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import partial
from numbers import Number
from typing import Any

import numpy as np

from .._core.core import Dense
from ..graph import arithmetic
from ..graph.arithmetic import Row
from ..support.errors import OpLookupError, OpTypeError
from ..symbol import Symbol
from .axis import Axes, make_axes
from .layout import aligned, ordered, union


def not_a_tensor(other: Any) -> Any:
    """Refuse an operand whose axes nobody knows; let Python try others."""
    if isinstance(other, (Dense, Symbol, np.ndarray)):
        raise OpTypeError(f"a {type(other).__name__} has no axes: give it some with mx.axes.tensor(value, axes)")
    return NotImplemented


def mixed(a: Any, b: Any) -> OpTypeError:
    """Return the error of an array that meets a symbol."""
    return OpTypeError(f"a {type(a).__name__} and a {type(b).__name__} do not mix: use arrays, or symbols, for both")


def _method(function: Callable, row: Row) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return self._binary(function, row, other)

    return method


def _reflected(function: Callable) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, Number):
            return self._new(function(other, self.value), self.axes)
        return not_a_tensor(other)

    return method


_blank = object.__new__


class Tensor:
    """A value with axes; see :class:`NamedArray` and :class:`NamedSymbol`.

    Attributes
    ----------
    axes : Axes
        One axis per dimension.
    value : NDArray or Symbol
        The plain value. Without axes, its shape is ``(1,)``, or ``()`` under ``mx.util.np_shape``.
    """

    __slots__ = ("__weakref__", "axes", "value")
    __array_ufunc__ = None  # NumPy's numbers leave the operation to us

    #: The namespace of operators of plain values.
    F: Any = None
    #: Whether plain values are arrays; their arithmetic broadcasts.
    _holds_data = False

    def __init__(self, value: Any, axes: Any):
        self.value, self.axes = value, make_axes(axes)

    def _new(self, value: Any, axes: Axes) -> Any:
        made = _blank(type(self))
        made.value, made.axes = value, axes
        return made

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The lengths of the axes."""
        return self.axes.lengths

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @property
    def T(self) -> Any:
        """The same with its axes in reverse order, which changes nothing but the layout."""
        axes = self.axes.T
        return self._new(ordered(self.F, self.value, self.axes, axes), axes)

    def with_order(self, axes: Any) -> Any:
        """Return the plain value with its dimensions in the order of `axes`."""
        return ordered(self.F, self.value, self.axes, make_axes(axes))

    def astype(self, dtype: Any) -> Any:
        """Convert to another element type."""
        return self._new(self.value.astype(dtype), self.axes)

    def __getattr__(self, name: str) -> Any:
        """Return a function of ``mx.axes`` as a method: ``x.exp()`` is ``mx.axes.exp(x)``."""
        if not name.startswith("_"):
            try:
                return partial(getattr(sys.modules[__package__], name), self)
            except OpLookupError as problem:
                raise OpLookupError(f"{type(self).__name__!r} object has no attribute {name!r}: {problem}") from None
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getitem__(self, key: Any) -> Any:
        """Slice: by position, as ``x[0, 1:3]``, or by axis, as ``x[{W: 0}]``; a number takes its axis away."""
        return sys.modules[__package__].tensor_slice(self, key)  # a function of the package, as other methods are

    def __iter__(self) -> Any:
        if not self.axes:
            raise OpTypeError("iteration over a tensor without axes")
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        if not self.axes or self.axes[0].length is None:
            raise OpTypeError(f"a tensor with {self.axes!r} has no len()")
        return self.axes[0].length

    def __mxop_operator__(self, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Apply a function of ``mx.nd`` or ``mx.sym`` that was called with a tensor."""
        return getattr(sys.modules[__package__], name)(*args, **kwargs)

    # ---- arithmetic -------------------------------------------------------------------------------------------------
    def _meet(self, other: Tensor) -> tuple[Any, Any, Axes]:
        """Return both plain values such that they broadcast, and the axes of the result."""
        if type(other) is not type(self):
            raise mixed(self, other)
        axes = union(self.axes, other.axes)
        return aligned(self.F, self.value, self.axes, axes), aligned(self.F, other.value, other.axes, axes), axes

    def _binary(self, function: Callable, row: Row, other: Any) -> Any:
        if isinstance(other, Tensor):
            if (other.axes is self.axes or other.axes == self.axes) and type(other) is type(self):
                return self._new(function(self.value, other.value), self.axes)
            a, b, axes = self._meet(other)
            if self._holds_data:
                return self._new(function(a, b), axes)
            return self._new(getattr(self.F, row.arrays)(a, b), axes)
        if isinstance(other, Number):
            return self._new(function(self.value, other), self.axes)
        return not_a_tensor(other)

    # fmt: off
    __add__, __radd__ = _method(operator.add, arithmetic.ADD), _reflected(operator.add)
    __sub__, __rsub__ = _method(operator.sub, arithmetic.SUB), _reflected(operator.sub)
    __mul__, __rmul__ = _method(operator.mul, arithmetic.MUL), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _method(operator.truediv, arithmetic.DIV), _reflected(operator.truediv)
    __mod__, __rmod__ = _method(operator.mod, arithmetic.MOD), _reflected(operator.mod)
    __floordiv__, __rfloordiv__ = _method(operator.floordiv, arithmetic.FLOORDIV), _reflected(operator.floordiv)
    __pow__, __rpow__ = _method(operator.pow, arithmetic.POW), _reflected(operator.pow)
    __eq__ = _method(operator.eq, arithmetic.EQ)  # type: ignore[assignment]
    __ne__ = _method(operator.ne, arithmetic.NE)  # type: ignore[assignment]
    __lt__, __gt__ = _method(operator.lt, arithmetic.LT), _method(operator.gt, arithmetic.GT)
    __le__, __ge__ = _method(operator.le, arithmetic.LE), _method(operator.ge, arithmetic.GE)
    # fmt: on

    def __matmul__(self, other: Any) -> Any:
        return sys.modules[__package__].dot(self, other) if isinstance(other, Tensor) else NotImplemented

    def __neg__(self) -> Any:
        return self._new(-self.value, self.axes)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._new(abs(self.value), self.axes)

    __hash__ = object.__hash__
