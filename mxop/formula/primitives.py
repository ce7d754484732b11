"""The scalar primitives: a table with the C text, the CUDA text and the gradient rule of each.

The instructions of the CPU interpreter, the CUDA printer and the differentiator use this table; no other part of mxop defines
``sin``.

A gradient rule receives the head gradient ``g``, the operands and the result ``y``, and returns an expression for each operand;
``None`` means that the gradient is zero everywhere.  Subgradients: a tie of ``maximum``/``minimum`` goes to the first operand;
``abs`` and ``sign`` have derivative 0 at 0, as have ``hypot`` at the origin and ``pow`` at ``0**0``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .expr import CONST, Expr, call, const, raw_call, with_rule

Rule = Callable[..., "tuple[Expr | None, ...]"]


class Primitive(NamedTuple):
    """A scalar function.

    Attributes
    ----------
    name : str
        Name in formulas and in the instruction table.
    arity : int
        Number of operands.
    c : str
        C text with ``{0}``, ``{1}``... for the operands, ``{T}`` for the element type and ``{s}`` for the suffix of the
        functions in ``mxop_math.h`` (``f32`` or ``f64``).
    cuda : str
        CUDA text, with the same fields.
    rule : callable
        The gradient rule, ``rule(g, *operands, y)``.
    integer : str or None
        C text for integer types; None if the function exists for floating point only.
    guard : str
        Set if ``mx_<name>_fast_<s>`` is valid for ordinary operands only (``mxop_math_ordinary.h``), which are checked
        before: ``edges`` if ``mx_<name>_<s>``, valid for all, is a little slower, ``range`` if it is scalar.
    costly : bool
        Whether backward reads the result from forward instead of recomputing it.
    """

    name: str
    arity: int
    c: str
    cuda: str
    rule: Rule
    integer: str | None = None
    guard: str = ""
    costly: bool = True


TABLE: dict[str, Primitive] = {}


def _infix(name: str, text: str, rule: Rule, integer: str | None = "same") -> None:
    """Add a row for an operator of the C language, whose text is valid for every type and device."""
    arity = 1 + ("{1}" in text) + ("{2}" in text)
    TABLE[name] = Primitive(name, arity, text, text, rule, text if integer == "same" else integer, costly=False)


def _function(name: str, cuda: str, rule: Rule, *, integer: str | None = None, guard: str = "", cheap: bool = False):
    """Add a row for a function of ``mxop_math.h``, named ``mx_<name>_<suffix>`` there."""
    arity = 1 + ("{1}" in cuda) + ("{2}" in cuda)
    operands = ", ".join(f"{{{i}}}" for i in range(arity))
    text = f"mx_{name}_{{s}}({operands})"
    TABLE[name] = Primitive(name, arity, text, cuda, rule, integer, guard, costly=not cheap)


def _zero(g, *operands_and_result):
    return (None,) * (len(operands_and_result) - 1)


def _compared(a: Expr, b: Expr, y: Expr) -> Expr:
    """Return an operand for the comparison with `a` in the gradient of ``y = max(a, b)`` or ``min(a, b)``.

    It is `b`, or `y` if `a` is a constant: ``max(a, b) > a`` exactly where ``b > a``, and then `b` need not be kept.
    """
    return y if a.kind == CONST else b


def _where(condition, a, b):
    return call("where", condition, a, b)


def _not_zero(a: Expr) -> Expr:
    """Return a divisor for which a quotient and its derivatives are 0 where `a` is 0: infinity there, else `a`."""
    return _where(call("eq", a, const(0)), const(math.inf), a)


def _real_only(a: Expr) -> Expr:
    """Return `a` in floating-point types and 0 in integer types, where ``1 / 2`` is 0."""
    return _where(raw_call("div", (const(1), const(2))), a, const(0))


def _quotient(a: Expr, b: Expr) -> Expr:
    """Return ``floor(a / b)``, or 0 where `b` is 0."""
    zero = call("eq", b, const(0))
    return _where(zero, const(0), call("floor", a / _where(zero, const(1), b)))


def _power_derivative(g: Expr, a: Expr, b: Expr, m: int, n: int) -> Expr:
    """Return `g` times the derivative of ``a**b``, `m` times with respect to `a` and `n` times with respect to `b`.

    It is ``a**(b - m)`` times a polynomial of ``log(a)`` with the coefficients ``comb(n, k) * D^k [b (b-1) ... (b-m+1)]``.
    Each order has a formula of its own: derivatives of the cases would be 0 * inf or inf - inf where `a` or `b` is 0.
    """
    falling, factor = [1], const(1)  # b (b - 1) ... (b - m + 1): coefficients, and the product, exactly 0 at its zeros
    for j in range(m):
        falling = [low - j * high for low, high in zip([0, *falling], [*falling, 0], strict=True)]
        factor = factor * (b - const(j))
    found, power = factor, call("pow", a, b - const(m))
    for k in range(1, n + 1):
        falling = [i * c for i, c in enumerate(falling)][1:] or [0]  # the next derivative
        more = const(math.comb(n, k) * falling[-1])
        for c in reversed(falling[:-1]):
            more = more * b + const(math.comb(n, k) * c)
        raised = found * call("log", a)
        raised = raised + more if any(falling) else raised
        found = _where(call("eq", factor, const(0)), more, raised) if k == 1 and m else raised
    if n == 0:
        value = _where(call("eq", factor, const(0)), const(0), g * (factor * power))
    else:
        vanishes = call("land", call("eq", a, const(0)), call("gt" if m else "ge", b, const(m)))
        value = _where(vanishes, const(0), g * (power * found))
    return with_rule(value, _power_rule, g, a, b, const(m), const(n))


def _power_rule(h, g, a, b, m, n, y):
    i, j = int(m.label), int(n.label)
    by_base, by_exponent = _power_derivative(h * g, a, b, i + 1, j), _power_derivative(h * g, a, b, i, j + 1)
    return _power_derivative(h, a, b, i, j), by_base, by_exponent, None, None


# ---- arithmetic -----------------------------------------------------------------------------------------------------
_infix("add", "({0} + {1})", lambda g, a, b, y: (g, g), "({T})({0} + {1})")
_infix("sub", "({0} - {1})", lambda g, a, b, y: (g, -g), "({T})({0} - {1})")
_infix("mul", "({0} * {1})", lambda g, a, b, y: (g * b, g * a), "({T})({0} * {1})")
_infix("div", "({0} / {1})", lambda g, a, b, y: (g / b, -(g * y / b)), "mx_idiv({T}, {0}, {1})")
_infix("neg", "(-{0})", lambda g, a, y: (-g,), "({T})(-{0})")
_infix("square", "({0} * {0})", lambda g, a, y: (g * (const(2) * a),), "({T})({0} * {0})")
_infix("reciprocal", "(({T})1 / {0})", lambda g, a, y: (-(g * (y * y)),), None)
_function("abs", "fabs({0})", lambda g, a, y: (g * call("sign", a),), integer="(({T})({0} < 0 ? -{0} : {0}))", cheap=True)
_function("sign", "mx_sign({0})", _zero, integer="(({T})(({0} > 0) - ({0} < 0)))", cheap=True)
_function(
    "mod", "mx_mod({0}, {1})",
    lambda g, a, b, y: (_real_only(g), _real_only(-(g * _quotient(a, b)))),
    integer="mx_imod({T}, {0}, {1})", guard="range",
)  # fmt: skip
_function("floordiv", "mx_floordiv({0}, {1})", _zero, integer="mx_ifloordiv({T}, {0}, {1})", guard="range")
_function(
    "pow", "pow({0}, {1})", lambda g, a, b, y: (_power_derivative(g, a, b, 1, 0), _power_derivative(g, a, b, 0, 1)),
    integer="(({T})mx_ipow({0}, {1}))", guard="edges",
)  # fmt: skip
_function(
    "fma", "fma({0}, {1}, {2})",
    lambda g, a, b, c, y: (g * b, g * a, g),
    integer="({T})({0} * {1} + {2})", cheap=True,
)  # fmt: skip
_function(
    "hypot", "hypot({0}, {1})",
    lambda g, a, b, y: tuple(g * (v / _not_zero(y)) for v in (a, b)),
)  # fmt: skip

# ---- comparison and selection: results are 1 or 0 in the operands' type -----------------------------------------------
for _name, _c in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    _infix(_name, f"(({{T}})({{0}} {_c} {{1}}))", _zero)
_infix("land", "(({T})(({0} != 0) & ({1} != 0)))", _zero)
_infix("lor", "(({T})(({0} != 0) | ({1} != 0)))", _zero)
_infix("lxor", "(({T})(({0} != 0) ^ ({1} != 0)))", _zero)
_infix("lnot", "(({T})({0} == 0))", _zero)
_infix("isnan", "(({T})({0} != {0}))", _zero)
_infix(
    "where", "({0} != 0 ? {1} : {2})",
    lambda g, c, a, b, y: (None, _where(c, g, const(0)), _where(c, const(0), g)),
)  # fmt: skip
_function(
    "maximum", "mx_maximum({0}, {1})",
    lambda g, a, b, y: (_where(call("ge", a, b), g, const(0)), _where(call("lt", a, _compared(a, b, y)), g, const(0))),
    integer="({0} >= {1} ? {0} : {1})", cheap=True,
)  # fmt: skip
_function(
    "minimum", "mx_minimum({0}, {1})",
    lambda g, a, b, y: (_where(call("le", a, b), g, const(0)), _where(call("gt", a, _compared(a, b, y)), g, const(0))),
    integer="({0} <= {1} ? {0} : {1})", cheap=True,
)  # fmt: skip

# ---- rounding ---------------------------------------------------------------------------------------------------------
_function("floor", "floor({0})", _zero, integer="({0})", cheap=True)
_function("ceil", "ceil({0})", _zero, integer="({0})", cheap=True)
_function("trunc", "trunc({0})", _zero, integer="({0})", cheap=True)
_function("round", "round({0})", _zero, integer="({0})", cheap=True)
_function("rint", "mx_rint({0})", _zero, integer="({0})", cheap=True)

# ---- powers, exponentials, logarithms ---------------------------------------------------------------------------------
_LN2, _LN10, _SQRTPI = math.log(2), math.log(10), math.sqrt(math.pi)
_function("sqrt", "sqrt({0})", lambda g, a, y: (g * (const(0.5) / y),))
_function("rsqrt", "mx_rsqrt({0})", lambda g, a, y: (g * (const(-0.5) * (y * (y * y))),))
_function("cbrt", "cbrt({0})", lambda g, a, y: ((g / y) / (const(3) * y),))  # of y * y it is 0 * inf at 0
_function("rcbrt", "rcbrt({0})", lambda g, a, y: (-(g * (y / (const(3) * a))),))
_function("exp", "exp({0})", lambda g, a, y: (g * y,))
_function("expm1", "expm1({0})", lambda g, a, y: (g * (y + const(1)),))
_function("log", "log({0})", lambda g, a, y: (g / a,), guard="edges")
_function("log2", "log2({0})", lambda g, a, y: (g * const(1 / _LN2) / a,), guard="edges")
_function("log10", "log10({0})", lambda g, a, y: (g * const(1 / _LN10) / a,), guard="edges")
_function("log1p", "log1p({0})", lambda g, a, y: (g / (const(1) + a),), guard="edges")
_function("sigmoid", "mx_sigmoid({0})", lambda g, a, y: (g * (y * (const(1) - y)),))
_function("softsign", "mx_softsign({0})", lambda g, a, y: (g / call("square", const(1) + call("abs", a)),), cheap=True)
_function("softplus", "mx_softplus({0})", lambda g, a, y: (g * call("sigmoid", a),))
_function("log_sigmoid", "(-mx_softplus(-({0})))", lambda g, a, y: (g * call("sigmoid", -a),))

# ---- trigonometric and hyperbolic -------------------------------------------------------------------------------------
_function("sin", "sin({0})", lambda g, a, y: (g * call("cos", a),), guard="range")
_function("cos", "cos({0})", lambda g, a, y: (-(g * call("sin", a)),), guard="range")
_function("tan", "tan({0})", lambda g, a, y: (g * (const(1) + y * y),), guard="range")
_function("arcsin", "asin({0})", lambda g, a, y: (g / call("sqrt", (const(1) - a) * (const(1) + a)),))
_function("arccos", "acos({0})", lambda g, a, y: (-(g / call("sqrt", (const(1) - a) * (const(1) + a))),))
_function("arctan", "atan({0})", lambda g, a, y: (g / (const(1) + a * a),))
_function("sinh", "sinh({0})", lambda g, a, y: (g * call("cosh", a),))
_function("cosh", "cosh({0})", lambda g, a, y: (g * call("sinh", a),))
_function("tanh", "tanh({0})", lambda g, a, y: (g * (const(1) - y * y),))
_function("arcsinh", "asinh({0})", lambda g, a, y: (g / call("hypot", a, const(1)),))
_function("arccosh", "acosh({0})", lambda g, a, y: (g / call("sqrt", (a - const(1)) * (a + const(1))),))
_function("arctanh", "atanh({0})", lambda g, a, y: (g / ((const(1) - a) * (const(1) + a)),))

# ---- special ----------------------------------------------------------------------------------------------------------
_function("erf", "erf({0})", lambda g, a, y: (g * (const(2 / _SQRTPI) * call("exp", -(a * a))),))
_function("erfinv", "erfinv({0})", lambda g, a, y: (g * (const(_SQRTPI / 2) * call("exp", y * y)),))
_DENSITY = 1 / math.sqrt(2 * math.pi)  # of the normal distribution, at 0
_function("normcdf", "normcdf({0})", lambda g, a, y: (g * (const(_DENSITY) * call("exp", const(-0.5) * (a * a))),))
_function(
    "gelu", "({0} * normcdf({0}))",
    lambda g, a, y: (g * (call("normcdf", a) + a * (const(_DENSITY) * call("exp", const(-0.5) * (a * a)))),),
)  # fmt: skip
_function("gamma", "tgamma({0})", lambda g, a, y: (g * (y * call("digamma", a)),))
_function("gammaln", "lgamma({0})", lambda g, a, y: (g * call("digamma", a),))
_function("digamma", "mx_polygamma(0, {0})", lambda g, a, y: (g * call("polygamma", const(1), a),))
_function(
    "polygamma", "mx_polygamma((int)({0}), {1})",
    lambda g, n, a, y: (None, g * call("polygamma", n + const(1), a)),
)  # fmt: skip
