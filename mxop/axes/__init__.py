"""``mx.axes``: arrays and symbols whose dimensions have names.

An optional layer over the ordinary operators: it puts dimensions in order and calls them, so that nothing of it is left in
what is executed.  Every operator that is elementwise or a reduction is a function here, built-in or a user's.
"""

from __future__ import annotations

from typing import Any

from ..support.errors import IncompatibleAxesError, UnmatchedAxesError
from ..support.missing import names_shown
from .axis import BATCH, RECURRENT, Axes, Axis, AxisRole, FlattenedAxis, make_axes, make_axis, make_axis_role
from .create import array, constant, deriv, full, grad, ones, placeholder, variable, zeros
from .moves import (
    Transpose,
    axes_with_order,
    broadcast,
    cast_axes,
    cast_role,
    expand_dims,
    flatten,
    flatten_at,
    map_roles,
    transpose,
    unflatten,
)
from .named_array import NamedArray
from .named_symbol import NamedSymbol, tensor
from .operators import find, moments, names, variance
from .product import dot
from .slicing import concat_along_axis, one_hot, pad, slice_along_axis, stack, tensor_slice
from .tensor import Tensor

__all__ = [
    "BATCH", "RECURRENT", "Axes", "Axis", "AxisRole", "FlattenedAxis", "IncompatibleAxesError", "NamedArray",
    "NamedSymbol", "Tensor", "Transpose", "UnmatchedAxesError", "array", "axes_with_order", "broadcast", "cast_axes",
    "cast_role", "concat_along_axis", "constant", "deriv", "dot", "expand_dims", "flatten", "flatten_at", "full", "grad",
    "make_axes", "make_axis", "make_axis_role", "map_roles", "moments", "one_hot", "ones", "pad", "placeholder",
    "slice_along_axis", "stack", "tensor", "tensor_slice", "transpose", "unflatten", "variable", "variance", "zeros",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'mxop.axes' has no attribute {name!r}")
    return find(name)


def __dir__() -> list[str]:
    return names_shown(globals(), __all__, names())
