"""``NamedSymbol``: a ``Symbol`` with axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from ..support.errors import OpTypeError, UnmatchedAxesError
from ..symbol import Symbol
from ..symbol.register import lookup
from .axis import Axes, unmatched
from .named_array import NamedArray
from .tensor import Tensor


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
    >>> H, W = mx.axes.make_axis(2, 'H'), mx.axes.make_axis(3, 'W')
    >>> x, y = mx.axes.placeholder([H, W], name='x'), mx.axes.placeholder(W, name='y')
    >>> z = mx.axes.exp(x * y, name='z')
    >>> z, z.value.infer_shape()[1]
    (<NamedSymbol z Axes(H: 2, W: 3)>, [(2, 3)])
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
