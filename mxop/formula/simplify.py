"""Simplification of formulas while they are built: constants are folded, neutral operations are dropped.

Every rule keeps the value for every input, including NaN, infinities and the sign of zero, so ``x * 0`` stays, and so does
``x + 0``, which turns -0.0 into 0.0.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from .expr import CALL, CONST, PARAM, Expr, const, raw_call, simplify_with

_FOLD: dict[str, Callable[..., float]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "neg", "abs", "lt", "le", "gt", "ge", "eq", "ne")},
    "div": operator.truediv,  # by 0 it is left to the device: the sign and NaN rules are IEEE's
    "square": lambda a: a * a,
    "land": lambda a, b: bool(a) and bool(b),
    "lor": lambda a, b: bool(a) or bool(b),
    "lxor": lambda a, b: bool(a) != bool(b),
    "lnot": lambda a: not a,
    "maximum": lambda a, b: a if a >= b or a != a else b,
    "minimum": lambda a, b: a if a <= b or a != a else b,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
}


def _is(node: Expr, value: float) -> bool:
    return node.kind == CONST and node.label == value


def simplified(name: str, args: tuple[Expr, ...]) -> Expr:
    """Return ``name(*args)`` in its simplest equal form."""
    if name in _FOLD and all(a.kind == CONST and type(a.label) is float for a in args):  # integers may wrap: see const
        try:
            return const(float(_FOLD[name](*(a.label for a in args))))
        except (ArithmeticError, ValueError):
            return raw_call(name, args)
    rule = _RULES.get(name)
    found = rule(*args) if rule else None
    return raw_call(name, args) if found is None else found


def of_numbers(rounded: Callable[[float], float] | None) -> Callable[[str, tuple[Expr, ...]], Expr]:
    """Return :func:`simplified` for a compute type: numbers become what a program makes of the same parameters.

    `rounded` rounds a number to the type.  Without it (in integer types, which wrap), and for functions that the program
    approximates, calls of numbers are left to the program.
    """

    def build(name: str, args: tuple[Expr, ...]) -> Expr:
        if any(a.kind != CONST for a in args):
            return simplified(name, args)
        if rounded is None or name not in _FOLD or name in ("exp", "log"):
            return raw_call(name, args)
        found = simplified(name, tuple([const(rounded(a.label)) for a in args]))
        return const(rounded(found.label)) if found.kind == CONST else raw_call(name, args)

    return build


def _mul(a: Expr, b: Expr) -> Expr | None:
    if _is(a, 1):
        return b
    if _is(b, 1):
        return a
    if _is(a, -1) or _is(b, -1):
        return simplified("neg", (b if _is(a, -1) else a,))
    if a.kind == CALL and a.label == "neg" and b.kind == CALL and b.label == "neg":
        return simplified("mul", (a.args[0], b.args[0]))
    if a is b:
        return raw_call("square", (a,))
    # scalars first, so that equal products are the same expression
    if b.kind in (CONST, PARAM) and a.kind not in (CONST, PARAM):
        return simplified("mul", (b, a))
    return None


def _div(a: Expr, b: Expr) -> Expr | None:
    if _is(b, 1):
        return a
    if _is(b, -1):
        return simplified("neg", (a,))
    return None


def _neg(a: Expr) -> Expr | None:
    return a.args[0] if a.kind == CALL and a.label == "neg" else None


def _sub(a: Expr, b: Expr) -> Expr | None:
    if _is(b, 0) and math.copysign(1, b.label) > 0:  # keeps -0.0; adding 0.0 would not
        return a
    if b.kind == CALL and b.label == "neg":
        return simplified("add", (a, b.args[0]))
    return None


def _add(a: Expr, b: Expr) -> Expr | None:
    if b.kind == CALL and b.label == "neg":
        return simplified("sub", (a, b.args[0]))
    return None


def _pow(a: Expr, b: Expr) -> Expr | None:
    if _is(b, 1):
        return a
    if _is(b, 2):
        return raw_call("square", (a,))
    if _is(b, 3):
        return simplified("mul", (a, raw_call("square", (a,))))
    if _is(b, 0):
        return const(1)  # IEEE: pow(x, 0) is 1 for every x, NaN included
    return None


def _where(c: Expr, a: Expr, b: Expr) -> Expr | None:
    if c.kind == CONST:
        return a if c.label != 0 else b
    return a if a is b else None


_RULES: dict[str, Callable[..., Expr | None]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "neg": _neg, "pow": _pow, "where": _where,
}  # fmt: skip

simplify_with(simplified)
