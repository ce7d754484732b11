"""Tensors made of data, and placeholders; gradients with axes."""

from __future__ import annotations

from typing import Any

from .. import autograd, ndarray
from ..support import name as naming
from ..support.errors import OpTypeError
from ..symbol import Variable
from .axis import known_lengths, make_axes, make_axis, unmatched
from .layout import plain_shape, spread
from .named_array import NamedArray
from .named_symbol import NamedSymbol, placeholder_axes
from .tensor import Tensor, mixed


def array(data: Any, axes: Any = None, dtype: Any = None, ctx: Any = None) -> NamedArray:
    """Make an array with axes of a copy of the data.

    Parameters
    ----------
    data : array-like or number
    axes : Axes, or sequence of Axis, optional
        One axis per dimension, new ones by default. An axis of unknown length gets its length from the data.
    dtype : optional
        As for ``mx.nd.array``.
    ctx : Context, optional

    Raises
    ------
    UnmatchedAxesError
        When the shape is not that of the axes.

    Examples
    --------
    >>> axes = mx.axes.make_axes([mx.axes.make_axis(2), mx.axes.make_axis(2)])
    >>> x = mx.axes.array([[1, 2], [3, 4]], axes)
    >>> mx.axes.prod(x, reduction_axes=x.axes[1]).asnumpy().tolist()
    [2.0, 12.0]
    """
    if isinstance(data, Tensor):
        raise OpTypeError("array: the data have axes already; see cast_axes and axes_with_order")
    value = ndarray.array(data, ctx, dtype)
    if axes is None:
        axes = [make_axis(n) for n in value.shape]
    return NamedArray(value, axes)


constant = array


def zeros(axes: Any, dtype: Any = None, ctx: Any = None) -> NamedArray:
    """Return an array of zeros."""
    return full(axes, 0, dtype, ctx)


def ones(axes: Any, dtype: Any = None, ctx: Any = None) -> NamedArray:
    """Return an array of ones."""
    return full(axes, 1, dtype, ctx)


def full(axes: Any, value: float, dtype: Any = None, ctx: Any = None) -> NamedArray:
    """Return an array of one number."""
    axes = make_axes(axes)
    shape = plain_shape(known_lengths(axes, "full"))
    return NamedArray(ndarray.full(shape, value, ctx=ctx, dtype=dtype), axes)


def placeholder(axes: Any = (), name: str | None = None, dtype: Any = None, **attributes: Any) -> NamedSymbol:
    """Return a symbol with axes that stands for an argument.

    Parameters
    ----------
    axes : Axes, or sequence of Axis
    name : str, optional
    dtype : optional
        Element type, where it is to be known to inference.
    **attributes
        As for ``mx.sym.Variable``: ``init``, ``lr_mult``, ``__mine__``...

    Examples
    --------
    >>> C, N = mx.axes.make_axis(2, 'C'), mx.axes.make_axis(3, 'N')
    >>> x, w = mx.axes.placeholder([C, N], name='x'), mx.axes.variable([C], name='w')
    >>> executor = mx.axes.dot(w, x).simple_bind(mx.cpu())
    >>> executor.outputs[0].shape
    (3,)
    """
    if isinstance(axes, str):  # as mx.sym.Variable has it: the name first
        axes, name = name if name is not None else (), axes
    return _variable(axes, name, "placeholder", dtype, attributes)


def variable(axes: Any = (), name: str | None = None, dtype: Any = None, **attributes: Any) -> NamedSymbol:
    """Return a symbol with axes that stands for a parameter; to mxop, that is an argument like any other."""
    if isinstance(axes, str):
        axes, name = name if name is not None else (), axes
    return _variable(axes, name, "variable", dtype, attributes)


def _variable(axes: Any, name: str | None, hint: str, dtype: Any, attributes: dict[str, Any]) -> NamedSymbol:
    axes = make_axes(axes)
    shape = tuple(0 if n is None else n for n in axes.lengths) if axes else plain_shape(())
    symbol = Variable(naming.current().get(name, hint), shape=shape, dtype=dtype, **attributes)
    placeholder_axes(symbol, axes)
    return NamedSymbol(symbol, axes)


def deriv(dependent: Tensor, independent: Tensor, error: Tensor | None = None) -> Any:
    """Return the derivative of one tensor (summed, weighted by `error`) with respect to another one.

    Parameters
    ----------
    dependent : Tensor
        An array that was computed in ``mx.autograd.record()``, or a symbol.
    independent : Tensor
        A variable (see ``attach_grad``), or a placeholder.
    error : Tensor, optional
        Has the axes of `dependent`, in any order; ones by default.

    Returns
    -------
    Tensor
        It has the axes of `independent`, and a derivative itself where it was recorded.

    Examples
    --------
    >>> x = mx.axes.placeholder(mx.axes.make_axis(2, 'H'), name='x')
    >>> second = mx.axes.deriv(mx.axes.deriv(x * x * x, x), x)
    >>> second.eval(x=mx.nd.array([1, 2])).asnumpy().tolist()
    [6.0, 12.0]
    """
    for given in (independent, *((error,) if error is not None else ())):
        if type(given) is not type(dependent):
            raise mixed(dependent, given)
    if error is not None and not error.axes.is_equal_set(dependent.axes):
        text = f"deriv: error has {error.axes!r}; expected the axes of the dependent, {dependent.axes!r}"
        raise unmatched(text, error.axes, dependent.axes)
    if isinstance(dependent, NamedSymbol):
        return _symbolic(dependent, independent, error)
    head = None if error is None else spread(error.F, error.value, error.axes, dependent.axes)
    recording = autograd.is_recording()
    found = autograd.grad(dependent.value, independent.value, head, retain_graph=True, create_graph=recording)[0]
    return independent._new(found, independent.axes)


grad = deriv


def _symbolic(dependent: NamedSymbol, independent: Tensor, error: Tensor | None) -> NamedSymbol:
    if independent.value._head is None or independent.value._head.op is not None:
        raise OpTypeError(f"deriv: {independent!r} is not a placeholder or variable")
    weighted = dependent if error is None else dependent * error
    found = weighted.value.gradient([independent.name])
    return NamedSymbol(found, independent.axes)
