"""The functions of formulas: ``F.exp(x)``, ``F.where(c, a, b)`` and the rest of the primitive table.

``from mxop.op import F``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..support.errors import closest
from . import draws as _draws  # noqa: F401  adds rows to the table
from .expr import Expr, TraceError, UnknownFunction, call
from .primitives import TABLE


def _function(name: str, arity: int) -> Callable[..., Expr]:
    def function(*args: Any) -> Expr:
        if len(args) != arity:
            raise TraceError(f"F.{name} takes {arity} operand{'s' if arity > 1 else ''}, {len(args)} given")
        return call(name, *args)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The primitive ``{name}`` ({arity} operand{'s' if arity > 1 else ''})."
    return function


for _name, _row in TABLE.items():
    globals()[_name] = _function(_name, _row.arity)

#: Other names of functions and operators, and how a formula writes these.
_WRITTEN = {
    "multiply": "a * b", "subtract": "a - b", "divide": "a / b", "true_divide": "a / b", "power": "a ** b",
    "negative": "-a", "equal": "a == b", "not_equal": "a != b", "greater": "a > b", "greater_equal": "a >= b",
    "less": "a < b", "lesser": "a < b", "less_equal": "a <= b", "lesser_equal": "a <= b", "floor_divide": "F.floor(a / b)",
    "remainder": "a % b", "fmod": "a % b", "modulo": "a % b",
    "logical_and": "F.land(a, b)", "logical_or": "F.lor(a, b)", "logical_xor": "F.lxor(a, b)", "logical_not": "F.lnot(a)",
    "absolute": "F.abs(a)", "fabs": "F.abs(a)", "fix": "F.trunc(a)", "lgamma": "F.gammaln(a)", "psi": "F.digamma(a)",
    "asin": "F.arcsin(a)", "acos": "F.arccos(a)", "atan": "F.arctan(a)", "asinh": "F.arcsinh(a)",
    "acosh": "F.arccosh(a)", "atanh": "F.arctanh(a)", "radians": "a * (math.pi / 180)", "degrees": "a * (180 / math.pi)",
    "clip": "F.minimum(F.maximum(x, low), high)", "relu": "F.maximum(x, 0)", "silu": "x * F.sigmoid(x)",
    "softsign": "x / (1 + F.abs(x))", "erfc": "1 - F.erf(x)", "exp2": "2 ** x", "pi": "math.pi", "e": "math.e",
    "inf": "math.inf", "nan": "math.nan", "if_else": "F.where(condition, a, b)", "select": "F.where(condition, a, b)",
}  # fmt: skip
#: Functions of whole arrays, and the corresponding combination of a reduction.
_COMBINED = {"sum": "add", "mean": "add", "average": "add", "prod": "mul", "max": "max", "min": "min", "amax": "max",
             "amin": "min"}  # fmt: skip


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):  # looked up by Python's own tools
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _COMBINED:
        two = f" (of two, F.{name}imum is the one)" if name in ("max", "min") else ""
        raise UnknownFunction(f"F.{name} combines elements, and a formula sees one at a time{two}: make a "
                              f"@reduction({_COMBINED[name]!r}), or call the operator in a @composite")  # fmt: skip
    if name in _WRITTEN:
        raise UnknownFunction(f"F has no function {name!r}: write {_WRITTEN[name]}")
    hint = closest(name, TABLE) or f"; it has {', '.join(sorted(TABLE))}"
    raise UnknownFunction(f"F has no function {name!r}{hint}; other operators are called in a @composite")


__all__ = list(TABLE)
