"""Operators as methods: ``x.exp()`` of arrays and of symbols."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from . import registry
from .operator import Operator

#: MXNet's methods, and some that NumPy users expect.
NAMES = (
    "abs", "all", "any", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "argmax", "argmax_channel", "argmin",
    "argsort", "broadcast_axes", "broadcast_axis", "broadcast_like",
    "broadcast_to", "cbrt", "ceil", "clip", "cos", "cosh", "degrees",
    "depth_to_space", "diag", "dot", "erf", "exp", "expm1", "fix", "flip", "floor", "gamma", "gammaln", "log",
    "log10", "log1p", "log2", "log_sigmoid", "log_softmax", "logical_not", "max", "mean", "min", "nanprod",
    "nansum", "norm", "one_hot", "ones_like", "pad", "pick", "prod", "radians", "rcbrt", "reciprocal", "relu",
    "repeat", "reshape_like", "rint", "round", "rsqrt", "shape_array", "sigmoid", "sign", "sin", "sinh", "size_array",
    "slice", "slice_axis", "slice_like", "softmax", "softmin", "softsign", "sort", "space_to_depth", "split", "sqrt",
    "square", "std", "sum", "swapaxes", "take", "tan", "tanh", "tile", "topk", "trunc", "var", "zeros_like",
)  # fmt: skip


def operator_of(name: str) -> Operator | None:
    """Return the operator of a method: that of its name, or of its hidden form."""
    return registry.find(name) or registry.find(f"_{name}")


class Fluent:
    """An operator as a method of symbols, looked up at each use, since operators can be defined and replaced at any time.

    On the class, the attribute is the operator's function, so that tools see its signature.
    """

    __slots__ = ("find", "name")

    def __init__(self, name: str, find: Callable[[str], Any]):
        self.name, self.find = name, find

    def __get__(self, x: Any, owner: type | None = None) -> Any:
        function = self.find(self.name)
        return function if x is None else MethodType(function, x)

    def __repr__(self) -> str:
        return f"<operator {self.name} as a method>"
