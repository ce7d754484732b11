"""Measure how far unary operators are from exact: the worst error in units in the last place, in float32 and float64.

    python tools/accuracy.py                 # every operator, as a table
    python tools/accuracy.py gamma tanh      # some
    python tools/accuracy.py --points 20     # twenty times as many points

Points lie in every binade of both signs, denormals included; in the intervals where most happens; and closely around zeros,
poles and the places where a function changes its method.  The unit is that of the exact value, at least the smallest
denormal.  Exact values come from the 64 bits of the machine's ``long double`` where NumPy has the function in that type, from
mpmath elsewhere.  The exit status tells whether all are within :data:`BOUNDS`.

Needs mpmath, and a ``long double`` of 64 bits or more.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath
import numpy as np

import mxop as mx
from mxop._kernels import instruction_sets

#: What every operator holds, and what those hold that multiply a rounded function by a constant.
BOUNDS = {"float32": 1.0, "float64": 2.0}
BOUNDS_OF = {"selu": {"float32": 1.5, "float64": 2.0}}
#: In float32 on processors without fused multiply-adds.
UNFUSED = {"exp": 1.1, "tanh": 1.1, "erf": 1.2, "sigmoid": 1.4}
WIDE = np.longdouble
_PRECISION = 160


def bounds_of(name: str) -> dict[str, float]:
    """Return what an operator holds with the instruction set that is in use, by type."""
    bounds = BOUNDS_OF.get(name, BOUNDS)
    return bounds | {"float32": UNFUSED[name]} if instruction_sets.in_use() == "v2" and name in UNFUSED else bounds


@dataclass(frozen=True)
class Row:
    """An operator and its exact function.

    Attributes
    ----------
    name : str
    run : callable
        The operator, a function of an NDArray.
    exact : callable
        The function, of an array of ``long double``.
    ranges : tuple of (float, float)
        Intervals of ordinary arguments.
    near : tuple of float
        Zeros, poles and seams.
    domain : (float, float)
        Where the function is measured.
    share : float
        How many points it gets: functions of mpmath are slow.
    """

    name: str
    run: Callable
    exact: Callable
    ranges: tuple = ((-10.0, 10.0),)
    near: tuple = (0.0,)
    domain: tuple = (-math.inf, math.inf)
    share: float = 1.0


# ---- exact functions -------------------------------------------------------------------------------------------------
def _slow(function: Callable) -> Callable:
    """Make a function of arrays of one of mpmath; a value is held in two doubles."""

    def exact(x: np.ndarray) -> np.ndarray:
        found = np.empty(x.size, WIDE)
        with mpmath.workprec(_PRECISION):
            for i, value in enumerate(x):
                try:
                    y = function(mpmath.mpf(float(value)))
                except (ValueError, ZeroDivisionError, OverflowError):
                    y = mpmath.nan
                if not mpmath.isfinite(y) or isinstance(y, mpmath.mpc):
                    found[i] = np.nan
                    continue
                # scaled, lest the second part vanish where the first is small
                mantissa, exponent = mpmath.frexp(y)
                high = float(mantissa)
                found[i] = np.ldexp(WIDE(high) + WIDE(float(mantissa - high)), int(exponent))
        return found

    return exact


def _gammaln(x):
    return mpmath.loggamma(x) if x > 0 else mpmath.log(abs(mpmath.gamma(x)))


def _normal(x):
    with mpmath.workprec(2 * _PRECISION):
        return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _erfinv(y):
    """Newton's steps from a start in double; mpmath's own takes longer."""
    if abs(y) >= 1:
        return mpmath.inf
    from scipy import special

    # next to 1, the complement holds the digits
    x = mpmath.mpf(special.erfinv(float(y)) if abs(y) < 0.9 else math.copysign(special.erfcinv(float(1 - abs(y))), y))
    for _ in range(4):
        x -= (mpmath.erf(x) - y) * mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(x * x)
    return x


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


_PI = WIDE(math.pi) + WIDE(1.2246467991473532e-16)
_SCALE, _ALPHA = WIDE("1.0507009873554804934193349852946"), WIDE("1.6732632423543772848170429916717")


def _leaky(kind: str) -> Callable:
    return lambda x: mx.nd.LeakyReLU(x, act_type=kind, slope=1.0)


def _away(x, low):
    """Round to an integer, halves away from zero or down."""
    whole = np.trunc(x)
    return (np.ceil(x - WIDE(0.5))) if low else whole + np.copysign(np.where(abs(x - whole) >= 0.5, 1, 0), x)


_UNIT, _FAR = ((-1.0, 1.0),), ((-3.0, 3.0), (-800.0, 800.0))
_HALVES = (0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 12.0)  # where the nearest integer changes
_ROOTS = (
    1.4,
    1.55,
    1.4616321449683623,
    -0.5040830082644554,
    -1.5734984731623904,
    -2.6107208684441446,
    -9.702672540001864,
)
_GAMMALN = (
    *_HALVES,
    1,
    2,
    -2.4570247382208006,
    -2.7476826467274127,
    -3.1435808883499798,
    -3.9552942848585978,
    -9.9999972556,
)
_SLOW = 0.12

#: Every unary operator of ``mxop/ops/math.py``, and the activations.  Those that only choose or round are exact.
ROWS = [
    Row("negative", mx.nd.negative, np.negative), Row("abs", mx.nd.abs, np.abs), Row("sign", mx.nd.sign, np.sign),
    Row("square", mx.nd.square, np.square), Row("reciprocal", mx.nd.reciprocal, lambda x: 1 / x),
    Row("round", mx.nd.round, lambda x: _away(x, False)), Row("rint", mx.nd.rint, lambda x: _away(x, True)),
    Row("ceil", mx.nd.ceil, np.ceil), Row("floor", mx.nd.floor, np.floor), Row("trunc", mx.nd.trunc, np.trunc),
    Row("fix", mx.nd.fix, np.trunc), Row("logical_not", mx.nd.logical_not, lambda x: (x == 0).astype(WIDE)),
    Row("degrees", mx.nd.degrees, lambda x: x * (180 / _PI)), Row("radians", mx.nd.radians, lambda x: x * (_PI / 180)),
    Row("sqrt", mx.nd.sqrt, np.sqrt), Row("rsqrt", mx.nd.rsqrt, lambda x: 1 / np.sqrt(x), ((0, 4),)),
    Row("cbrt", mx.nd.cbrt, np.cbrt), Row("rcbrt", mx.nd.rcbrt, lambda x: 1 / np.cbrt(x)),
    Row("exp", mx.nd.exp, np.exp, _FAR, (0, -708.4, 709.8, -745, -87.3, 88.7)),
    Row("expm1", mx.nd.expm1, np.expm1, _FAR, (0, 709.8, 88.7)), Row("log", mx.nd.log, np.log, ((0, 4),), (1, 0)),
    Row("log2", mx.nd.log2, np.log2, ((0, 4),), (1, 0)), Row("log10", mx.nd.log10, np.log10, ((0, 4),), (1, 0)),
    Row("log1p", mx.nd.log1p, np.log1p, ((-1, 4),), (0, -1)),
    Row("power 1.6875", lambda x: x**1.6875, lambda x: np.power(x, WIDE(1.6875)), ((0, 4),), (1,), (0, math.inf)),
    Row("power -37.25", lambda x: x**-37.25, lambda x: np.power(x, WIDE(-37.25)), ((0, 4),), (1,), (0, math.inf)),
    Row("sin", mx.nd.sin, np.sin, near=(0, math.pi, 2 * math.pi)),
    Row("cos", mx.nd.cos, np.cos, near=(0, math.pi / 2, 1.5 * math.pi)),
    Row("tan", mx.nd.tan, np.tan, near=(0, math.pi / 2, math.pi)),
    Row("arcsin", mx.nd.arcsin, np.arcsin, _UNIT, (0, 0.5, 1, -1)),
    Row("arccos", mx.nd.arccos, np.arccos, _UNIT, (0, 0.5, 1, -1)),
    Row("arctan", mx.nd.arctan, np.arctan), Row("sinh", mx.nd.sinh, np.sinh, _FAR, (0, 710.4, 89.4)),
    Row("cosh", mx.nd.cosh, np.cosh, _FAR, (0, 710.4, 89.4)),
    Row("tanh", mx.nd.tanh, np.tanh, ((-22, 22), (-1, 1)), (0, 0.625)),
    Row("arcsinh", mx.nd.arcsinh, np.arcsinh), Row("arccosh", mx.nd.arccosh, np.arccosh, ((1, 5),), (1,)),
    Row("arctanh", mx.nd.arctanh, np.arctanh, _UNIT, (0, 1, -1)),
    Row("erf", mx.nd.erf, _slow(mpmath.erf), ((-6, 6), (-1.5, 1.5)), (0, 1, 1.03305184841156), share=0.4),
    Row("erfinv", mx.nd.erfinv, _slow(_erfinv), _UNIT, (0, 0.5, 1, -1), (-1, 1), _SLOW),
    Row("gamma", mx.nd.gamma, _slow(mpmath.gamma), ((-5, 5), (-185, 172)), (*_HALVES, 0, 1, -1, -2, -33, 171.6),
        (-1e3, 1e3), _SLOW),
    Row("gammaln", mx.nd.gammaln, _slow(_gammaln), ((-5, 5), (-30, 30), (-300, 300)), _GAMMALN, (-1e5, math.inf), _SLOW),
    Row("digamma", mx.nd.digamma, _slow(mpmath.digamma), ((-5, 5), (-32, 32)), (*_HALVES, *_ROOTS), (-32, math.inf), _SLOW),
    Row("relu", mx.nd.relu, lambda x: np.maximum(x, 0)),
    Row("sigmoid", mx.nd.sigmoid, lambda x: 1 / (1 + np.exp(-x)), _FAR, (0, -708.4, -87.3, -37, -17)),
    Row("log_sigmoid", mx.nd.log_sigmoid, lambda x: -_softplus(-x), _FAR, (0, 37, 17)),
    Row("softrelu", lambda x: mx.nd.Activation(x, act_type="softrelu"), _softplus, _FAR, (0, -37, -17)),
    Row("softsign", mx.nd.softsign, lambda x: x / (1 + abs(x))),
    Row("gelu", _leaky("gelu"), _slow(lambda x: x * _normal(x)), ((-39, 9), (-3, 3)), (0, -5.3, 0.5, -14),
        (-39.5, math.inf), 0.3),
    Row("elu", _leaky("elu"), lambda x: np.where(x > 0, x, np.expm1(x))),
    Row("selu", _leaky("selu"), lambda x: _SCALE * np.where(x > 0, x, _ALPHA * np.expm1(x))),
]  # fmt: skip


# ---- measuring -------------------------------------------------------------------------------------------------------
def points(row: Row, dtype: str, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Return where an operator is measured."""
    info = np.finfo(dtype)
    n = max(int(3000 * scale * row.share), 60)
    binades = np.arange(info.minexp - info.nmant, info.maxexp)
    each = max(int(24 * scale * row.share), 1)
    sizes = np.ldexp(rng.uniform(1, 2, (binades.size, each)), binades[:, None]).ravel()
    parts = [sizes, -sizes]
    parts += [rng.uniform(low, high, 4 * n) for low, high in row.ranges]
    for spot in row.near:  # at all distances down to neighbouring numbers
        away = rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-17, -1, n)
        parts += [spot + away * max(abs(spot), 1), [spot]]
    with np.errstate(all="ignore"):
        x = np.concatenate(parts).astype(dtype)
    return np.unique(x[np.isfinite(x) & (x >= row.domain[0]) & (x <= row.domain[1])])


def errors(row: Row, dtype: str, x: np.ndarray) -> np.ndarray:
    """Return the errors in units in the last place; 0 where the exact value is not a finite number of the type."""
    found = row.run(mx.nd.array(x, dtype=dtype)).asnumpy()
    with np.errstate(all="ignore"):
        exact = row.exact(x.astype(WIDE))
        rounded = exact.astype(dtype)
        unit = np.spacing(np.abs(rounded))
        defined = np.isfinite(rounded) & np.isfinite(unit)
        wrong = np.abs(found.astype(WIDE) - exact) / unit.astype(WIDE)
    wrong = np.where(np.isfinite(found), wrong, np.inf)
    return np.where(defined, wrong, 0).astype(float)


def worst(row: Row, dtype: str, scale: float = 1.0, seed: int = 0) -> tuple[float, float]:
    """Return the largest error of an operator, and where it is."""
    x = points(row, dtype, scale, np.random.default_rng(seed))
    found = errors(row, dtype, x)
    at = int(np.argmax(found))
    return float(found[at]), float(x[at])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", help="operators; all by default")
    parser.add_argument("--points", type=float, default=1.0, help="how many times the usual number of points")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if np.finfo(WIDE).nmant < 63:
        parser.error("the long double of this machine has fewer than 64 bits")
    unknown = set(options.names) - {r.name for r in ROWS}
    if unknown:
        parser.error(f"no operator {', '.join(sorted(unknown))}; there are {', '.join(r.name for r in ROWS)}")
    beyond = []
    print("| operator | float32 | at | float64 | at |\n|---|---|---|---|---|")
    for row in ROWS:
        if options.names and row.name not in options.names:
            continue
        cells = []
        for dtype, bound in bounds_of(row.name).items():
            error, at = worst(row, dtype, options.points, options.seed)
            cells += [f"{error:.3g}", f"{at!r}"]
            if error > bound:
                beyond.append(f"{row.name}, {dtype}: {error:.3g} units at {at!r}, more than {bound}")
        print(f"| {row.name} | {' | '.join(cells)} |", flush=True)
    print("\n".join(beyond) or "all within " + ", ".join(f"{bound:g} in {dtype}" for dtype, bound in BOUNDS.items()))
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
