"""Records of unary mathematics, copies and conversions (``mxop/ops/math.py`` and ``mxop/ops/convert.py``).

Domains keep away from poles, where numeric differentiation of third order says nothing.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from . import Record


def _zero(reference, domain=(-3.0, 3.0), **details):
    """Record of an operator whose gradient is zero."""
    return Record(reference, domain=domain, order=0, grad_inputs=(), **details)


def _straight_through(reference, **details):
    """Record of an operator whose gradient is, on purpose, not its derivative: differences cannot check it."""
    return Record(reference, order=0, grad_inputs=(0,), **details)


def _round(x):  # halves away from zero; -0.0 and what rounds to it keep their sign, as everywhere in IEEE 754
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _rint(x):  # halves down
    return np.copysign(np.ceil(x - 0.5), x)


def _smooth_l1(x, scalar=1.0, is_int=True):
    size = np.abs(x)
    return np.where(size < 1 / scalar**2, 0.5 * np.square(scalar * x), size - 0.5 / scalar**2)


def _mixed(given, dtype):
    """Return the type of what mixed precision converts: float64 and integers stay."""
    return dtype if given in ("float32", "float16", "bfloat16") else given


_POLES = {"special": "SciPy's gamma functions see no pole at -inf"}

RECORDS: dict[str, Record] = {
    # ---- arithmetic
    "negative": Record(np.negative),
    "abs": Record(np.abs, avoid=(0,), order=2),
    "sign": _zero(np.sign),
    "square": Record(np.square),
    "reciprocal": Record(lambda x: 1 / x, domain=(0.4, 3)),
    "clip": Record(
        lambda x, a_min, a_max: np.where(x < a_min, a_min, np.where(x > a_max, a_max, x)),  # np.clip before 2.1: other zeros
        domain=(-4, 4), params=[{"a_min": -0.5, "a_max": 1.25}, {"a_min": 0.0, "a_max": np.inf}],
        avoid=(-0.5, 1.25, 0), order=2,
    ),
    "degrees": Record(np.degrees),
    "radians": Record(np.radians, domain=(-180, 180)),
    "_contrib_quadratic": Record(
        lambda x, a=0.0, b=0.0, c=0.0: x * (a * x + b) + c, params=[{}, {"a": 1.5, "b": -2.0, "c": 0.5}]
    ),
    # ---- powers, exponentials, logarithms
    "sqrt": Record(np.sqrt, domain=(0.4, 9)),
    "rsqrt": Record(lambda x: 1 / np.sqrt(x), domain=(0.4, 4)),
    "cbrt": Record(np.cbrt, domain=(0.4, 9)),
    "rcbrt": Record(lambda x: 1 / np.cbrt(x), domain=(0.4, 4)),
    "exp": Record(np.exp, domain=(-3, 3)),
    "expm1": Record(np.expm1, domain=(-3, 3)),
    "log": Record(np.log, domain=(0.4, 5)),
    "log2": Record(np.log2, domain=(0.4, 9)),
    "log10": Record(np.log10, domain=(0.4, 12)),
    "log1p": Record(np.log1p, domain=(-0.6, 5)),
    # ---- trigonometric and hyperbolic
    "sin": Record(np.sin, domain=(-7, 7)),
    "cos": Record(np.cos, domain=(-7, 7)),
    "tan": Record(np.tan, domain=(-1.1, 1.1)),
    "arcsin": Record(np.arcsin, domain=(-0.8, 0.8)),
    "arccos": Record(np.arccos, domain=(-0.8, 0.8)),
    "arctan": Record(np.arctan, domain=(-4, 4)),
    "sinh": Record(np.sinh, domain=(-3, 3)),
    "cosh": Record(np.cosh, domain=(-3, 3)),
    "tanh": Record(np.tanh, domain=(-3, 3)),
    "arcsinh": Record(np.arcsinh, domain=(-4, 4)),
    "arccosh": Record(np.arccosh, domain=(1.4, 5)),
    "arctanh": Record(np.arctanh, domain=(-0.8, 0.8)),
    # ---- special functions
    "erf": Record(special.erf),
    "erfinv": Record(lambda x: np.copysign(special.erfinv(x), x), domain=(-0.8, 0.8)),  # SciPy drops the sign of -0.0
    "gamma": Record(special.gamma, domain=(0.6, 4.5), unchecked=_POLES),
    "gammaln": Record(special.gammaln, domain=(0.6, 4.5), unchecked=_POLES),
    "digamma": Record(special.digamma, domain=(0.6, 4.5), unchecked=_POLES),
    # ---- rounding and logic
    "round": _zero(_round),
    "rint": _zero(_rint),
    "ceil": _zero(np.ceil),
    "floor": _zero(np.floor),
    "trunc": _zero(np.trunc),
    "fix": _zero(np.trunc),
    "logical_not": _zero(lambda x: np.logical_not(x).astype(x.dtype), dtypes="fib"),
    # ---- activations
    # + 0: of 0 and -0.0 NumPy's maximum picks now the one, now the other
    "relu": Record(lambda x: np.maximum(x, 0) + 0, avoid=(0,), order=2),
    "sigmoid": Record(special.expit, domain=(-4, 4)),
    "log_sigmoid": Record(special.log_expit, domain=(-4, 4)),
    "hard_sigmoid": Record(
        lambda x, alpha=0.2, beta=0.5: np.clip(alpha * x + beta, 0, 1),
        domain=(-4, 4), params=[{}, {"alpha": 0.5, "beta": 0.25}], avoid=(-2.5, 2.5, -0.5, 1.5), order=2,
    ),
    "softsign": Record(lambda x: x / (1 + np.abs(x)), domain=(-4, 4), avoid=(0,)),
    "smooth_l1": Record(_smooth_l1, params=[{}, {"scalar": 2.0}], avoid=(-1, 1, -0.25, 0.25)),
    # ---- copies and conversions
    "_copy": Record(np.copy, order=2, dtypes="fib"),
    "_copyto": Record(np.copy, order=2, dtypes="fib"),
    "BlockGrad": _zero(np.copy, dtypes="fib"),
    "_contrib_gradientmultiplier": _straight_through(lambda x, scalar=1.0, is_int=True: x, params=[{"scalar": -0.5}]),
    "_round_half_even": _zero(np.rint),
    "_contrib_round_ste": _straight_through(_round, domain=(-3, 3)),
    "_contrib_sign_ste": _straight_through(np.sign, domain=(-3, 3)),
    # differences of a rounded result say nothing: the gradient is checked where the result is float64
    "Cast": Record(
        lambda x, dtype: x.astype(dtype), params=[{"dtype": "float64"}], order=2, dtypes="fib", returns="float64"
    ),
    "_cast_like": Record(
        lambda data, like: data, grad_inputs=(0,), order=2, unchecked={"types back": "only asked for where `like` exists"}
    ),
    "amp_cast": Record(
        lambda x, dtype: x, params=[{"dtype": "float64"}], order=2, returns=_mixed,
        unchecked={"types back": "float64 comes of each smaller float"},
    ),
    "amp_multicast": Record(
        lambda *data, num_outputs, cast_narrow=False: data,
        shapes=[((2, 3), (4,)), ((2, 3),)], params=[{"num_outputs": 2}, {"num_outputs": 1, "cast_narrow": True}],
        order=2, unchecked={"types back": "the type of a result is that of the widest input, whichever it is"},
    ),
    # ---- operators that look beyond one element
    "_contrib_div_sqrt_dim": Record(
        lambda x: x / np.sqrt(x.shape[-1]), domain=(-9, 9), shapes=[((2, 3),), ((5,),), ((2, 1, 4),)], order=2
    ),
    "_np_cumsum": Record(
        lambda a, axis=None, dtype=None: np.cumsum(a, axis=axis, dtype=dtype),
        params=[{}, {"axis": 0}, {"axis": -1}, {"axis": 1, "dtype": "float64"}], order=2,
        returns=lambda given, axis=None, dtype=None: dtype or given,
    ),
}  # fmt: skip
