"""Arrays and symbols that carry axes.

A tensor is a plain value (``NDArray`` or ``Symbol``) beside the axes of its dimensions.  Whatever is done to it is done at
once by ordinary operators on the plain value, so nothing of the axes is left in what is executed.
May import :mod:`.axis`, :mod:`.layout`, :mod:`mxop.ndarray` and :mod:`mxop.symbol`.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Number
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..errors import OpLookupError, OpTypeError, UnmatchedAxesError
from ..graph import arithmetic
from ..graph.arithmetic import Row
from ..ndarray import NDArray
from ..ndarray.register import F as arrays
from ..symbol import Symbol
from ..symbol.register import lookup
from .axis import Axes, Axis, make_axes, unmatched
from .layout import aligned, ordered, plain_shape, spread, union

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
    #: Whether Python's arithmetic on plain values broadcasts.
    _broadcasts = False

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
    def is_scalar(self) -> bool:
        """Whether there are no axes."""
        return not self.axes

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
        from .slicing import tensor_slice

        return tensor_slice(self, key)

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
            if self._broadcasts:
                return self._new(function(a, b), axes)
            return self._new(getattr(self.F, row.arrays)(a, b), axes)
        if isinstance(other, Number):
            return self._new(function(self.value, other), self.axes)
        return _not_a_tensor(other)

    def __floordiv__(self, other: Any) -> Any:
        return (self / other).floor()

    def __rfloordiv__(self, other: Any) -> Any:
        return (other / self).floor()

    def __matmul__(self, other: Any) -> Any:
        from .product import dot

        return dot(self, other) if isinstance(other, Tensor) else NotImplemented

    def __neg__(self) -> Any:
        return self._new(-self.value, self.axes)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._new(abs(self.value), self.axes)

    __hash__ = object.__hash__


def _not_a_tensor(other: Any) -> Any:
    """Refuse an operand whose axes nobody knows; let Python try others."""
    if isinstance(other, (NDArray, Symbol, np.ndarray)):
        raise OpTypeError(f"a {type(other).__name__} has no axes: give it some with mx.axes.tensor(value, axes)")
    return NotImplemented


def mixed(a: Any, b: Any) -> OpTypeError:
    """Return the error of an array that meets a symbol."""
    return OpTypeError(f"a {type(a).__name__} and a {type(b).__name__} do not mix: use arrays, or symbols, for both")


def _method(function: Callable, row: Row) -> Callable:
    def method(self: Tensor, other: Any) -> Any:
        return self._binary(function, row, other)

    return method


def _reflected(function: Callable) -> Callable:
    def method(self: Tensor, other: Any) -> Any:
        if isinstance(other, Number):
            return self._new(function(other, self.value), self.axes)
        return _not_a_tensor(other)

    return method


for _name, _row in (
    ("add", arithmetic.ADD), ("sub", arithmetic.SUB), ("mul", arithmetic.MUL), ("truediv", arithmetic.DIV),
    ("mod", arithmetic.MOD), ("pow", arithmetic.POW),
):  # fmt: skip
    setattr(Tensor, f"__{_name}__", _method(getattr(operator, _name), _row))
    setattr(Tensor, f"__r{_name}__", _reflected(getattr(operator, _name)))
for _name in ("eq", "ne", "lt", "gt", "le", "ge"):
    setattr(Tensor, f"__{_name}__", _method(getattr(operator, _name), getattr(arithmetic, _name.upper())))


# ---- arrays ---------------------------------------------------------------------------------------------------------
class NamedArray(Tensor):
    """An ``NDArray`` with axes.

    Examples
    --------
    >>> import mxop as mx
    >>> H, W = mx.axes.make_axis(2, 'H'), mx.axes.make_axis(3, 'W')
    >>> x, y = mx.axes.ones([H, W]), mx.axes.array([1, 2, 3], W)
    >>> (y - x).axes, (x - y).asnumpy().tolist()
    (Axes(W: 3, H: 2), [[0.0, -1.0, -2.0], [0.0, -1.0, -2.0]])
    """

    __slots__ = ()

    F = arrays
    _broadcasts = True

    def __init__(self, value: NDArray, axes: Any):
        if not isinstance(value, NDArray):
            raise OpTypeError(f"a NamedArray needs an NDArray, got {type(value).__name__}")
        axes = make_axes(axes)
        super().__init__(matching(value, axes), axes)

    def asnumpy(self) -> np.ndarray:
        """Return a NumPy array, with dimensions in the order of the axes."""
        found = self.value.asnumpy()
        return found if self.axes else found.reshape(())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.asnumpy(), dtype=dtype)

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
        from .slicing import sliced_axes

        plain, axes = sliced_axes(self.axes, key)
        if not other.axes.is_sub_set(axes):
            raise unmatched(f"{other.axes!r} cannot be written to {axes!r}", other.axes, axes)
        self.value[plain if self.axes else slice(None)] = aligned(self.F, other.value, other.axes, axes)

    def _plain_key(self, key: Any) -> Any:
        from .slicing import sliced_axes

        return sliced_axes(self.axes, key)[0] if self.axes else slice(None)

    def _in_place(self, function: Callable, other: Any) -> Any:
        """Change this array; axes that it lacks cannot come in."""
        if isinstance(other, NamedArray):
            if not other.axes.is_sub_set(self.axes):
                text = f"in place: {other.axes!r} does not fit into {self.axes!r}"
                raise unmatched(text, other.axes, self.axes)
            other = aligned(self.F, other.value, other.axes, self.axes)
        elif not isinstance(other, Number):
            return _not_a_tensor(other)
        self.value = function(self.value, other)
        return self

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


def _in_place_method(function: Callable) -> Callable:
    def method(self: NamedArray, other: Any) -> Any:
        return self._in_place(function, other)

    return method


for _name in ("iadd", "isub", "imul", "itruediv", "imod", "ipow"):
    if hasattr(NDArray, f"__{_name}__"):
        setattr(NamedArray, f"__{_name}__", _in_place_method(getattr(operator, _name)))


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
    agrees = len(value.shape) == len(axes) and all(
        a.length in (None, n) for a, n in zip(axes, value.shape, strict=True)
    )
    if not agrees:
        raise UnmatchedAxesError(f"an array of shape {value.shape} does not fit {axes!r} of lengths {axes.lengths}")
    for axis, n in zip(axes, value.shape, strict=True):
        if axis.length is None:
            axis.length = n
    return value


# ---- symbols --------------------------------------------------------------------------------------------------------
class _Symbols:
    """The operators of symbols, hidden ones too, by registered name."""

    def __getattr__(self, name: str) -> Any:
        return lookup(name, ("",), "mxop.symbol")


#: The axes of placeholders, so that arrays given for them can be put into their order.
_axes_of: WeakKeyDictionary = WeakKeyDictionary()


class NamedSymbol(Tensor):
    """A ``Symbol`` with axes.

    Examples
    --------
    >>> import mxop as mx
    >>> H, W = mx.axes.make_axis(2, 'H'), mx.axes.make_axis(3, 'W')
    >>> x, y = mx.axes.placeholder([H, W], name='x'), mx.axes.placeholder(W, name='y')
    >>> z = mx.axes.exp(x * y)
    >>> z, z.value.infer_shape()[1]
    (<NamedSymbol exp0 Axes(H: 2, W: 3)>, [(2, 3)])
    """

    __slots__ = ()

    F = _Symbols()

    def __init__(self, value: Symbol, axes: Any):
        if not isinstance(value, Symbol) or len(value) != 1:
            raise OpTypeError(f"a NamedSymbol needs a symbol of one output, got {value!r}")
        super().__init__(value, axes)

    @property
    def name(self) -> str | None:
        """Name of the symbol."""
        return self.value.name

    def __repr__(self) -> str:
        return f"<NamedSymbol {self.name} {self.axes!r}>"

    def list_arguments(self) -> list[str]:
        """Return the names of the arguments."""
        return self.value.list_arguments()

    def simple_bind(self, ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Bind the plain symbol; placeholders know their shapes."""
        return self.value.simple_bind(ctx, *args, **kwargs)

    def bind(self, ctx: Any, args: Any, args_grad: Any = None, *rest: Any, **kwargs: Any) -> Any:
        """Bind arrays to the plain symbol; tensors among them are put into the order of their placeholders."""
        args = self._plain(args, lambda given, axes: given.with_order(axes))
        return self.value.bind(ctx, args, self._plain(args_grad, _same_order), *rest, **kwargs)

    def eval(self, ctx: Any = None, **kwargs: Any) -> NamedArray:
        """Compute the value from tensors or arrays given by argument name."""
        found = self.value.eval(ctx, **self._plain(kwargs, lambda given, axes: given.with_order(axes)))[0]
        return NamedArray(found, self.axes)

    def _plain(self, given: Any, convert: Callable) -> Any:
        """Return a list or dict of arguments with plain arrays in place of tensors."""
        if not isinstance(given, (Mapping, list, tuple)):
            return given
        inputs = self.value.get_internals()._entries
        axes = {node.name: _axes_of[node] for node, _ in inputs if node.op is None and node in _axes_of}

        def one(name: str, value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            if name not in axes:
                return value.value
            if not value.axes.is_equal_set(axes[name]):
                text = f"{name!r} has {axes[name]!r}; it was given a tensor with {value.axes!r}"
                raise unmatched(text, axes[name], value.axes)
            return convert(value, axes[name])

        if isinstance(given, Mapping):
            return {name: one(name, value) for name, value in given.items()}
        return [one(name, value) for name, value in zip(self.list_arguments(), given)]


def _same_order(given: Tensor, axes: Axes) -> Any:
    """Return the plain array, which is written and so cannot be another one in another order."""
    if given.axes != axes:
        raise UnmatchedAxesError(f"an array with {given.axes!r} cannot take the gradient of an argument with {axes!r}")
    return given.value


def tensor(value: Any, axes: Any) -> Any:
    """Give axes to an array or a symbol, which is shared, not copied.

    Parameters
    ----------
    value : NDArray or Symbol
    axes : Axes, or sequence of Axis
        One axis per dimension.

    Raises
    ------
    UnmatchedAxesError
        When an array's shape is not that of the axes.
    """
    if isinstance(value, Tensor):
        raise OpTypeError("the tensor has axes already; see cast_axes and axes_with_order")
    return NamedSymbol(value, axes) if isinstance(value, Symbol) else NamedArray(value, axes)


def placeholder_axes(symbol: Symbol, axes: Axes) -> None:
    """Note the axes of a variable."""
    _axes_of[symbol._entries[0][0]] = axes


__all__ = ["Axis", "NamedArray", "NamedSymbol", "Tensor", "tensor"]
