"""Loops of single functions, in every set of instructions: the same numbers at every place of an array, C's special cases."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import special as functions

import mxop as mx
from mxop._kernels import generate, instruction_sets
from mxop.op import F, elementwise, unregister

#: Where each function is tried.
DOMAINS = {
    "tan": (-9, 9), "arcsin": (-1, 1), "arccos": (-1, 1), "arctan": (-40, 40), "sinh": (-9, 9), "cosh": (-9, 9),
    "tanh": (-9, 9), "arcsinh": (-40, 40), "arccosh": (1, 40), "arctanh": (-1, 1), "cbrt": (-40, 40), "expm1": (-9, 20),
    "exp": (-110, 95), "log": (0, 9), "log1p": (-1, 9), "log2": (0, 9), "log10": (0, 9), "sqrt": (0, 9),
    "sin": (-40, 40), "cos": (-40, 40), "sigmoid": (-40, 20), "erf": (-5, 5), "normcdf": (-15, 9), "gelu": (-15, 9),
    "softplus": (-110, 20), "log_sigmoid": (-20, 110), "rsqrt": (0, 9), "softsign": (-9, 9), "reciprocal": (-9, 9),
    "rint": (-9, 9), "round": (-9, 9), "gamma": (-9, 30), "gammaln": (-9, 30), "digamma": (-9, 30),
}  # fmt: skip


def phi(x):
    """Return the normal distribution; SciPy's is 12 units off at -5, where the argument of erfc was rounded."""
    exact = -x.astype(np.longdouble) / np.sqrt(np.longdouble(2))
    rounded = exact.astype("f8")
    lost = np.where(np.isfinite(rounded), exact - rounded, 0).astype("f8")
    slope = 2 / np.sqrt(np.pi) * np.exp(-(rounded**2))
    return (0.5 * (np.vectorize(math.erfc)(rounded) - slope * lost)).astype(x.dtype)


def log_gamma(x):
    """Return what C does; SciPy's is another at -inf, and infinite for denormal numbers."""
    small = np.where(abs(x) < np.finfo(x.dtype).tiny, abs(x), 1)
    found = np.where(small != 1, -np.log(small), functions.gammaln(x))
    return np.where(x == -np.inf, np.inf, found).astype(x.dtype)


def gamma(x):
    """Return what C does; SciPy's is another at -inf, and that of old versions at poles."""
    found = np.where((x < 0) & (x == np.floor(x)), np.nan, functions.gamma(x))
    return np.where(x == 0, np.copysign(np.inf, x), found).astype(x.dtype)


def away_from_zero(x):
    return np.copysign(np.floor(abs(x) + np.where(abs(x) < 2.0**20, x.dtype.type(0.5), 0)), x)


THEIRS = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "softsign": lambda x: x / (1 + abs(x)),
    "rint": lambda x: np.copysign(np.ceil(x - np.where(abs(x) < 2.0**20, x.dtype.type(0.5), 0)), x),
    "round": away_from_zero,
    "gamma": gamma,
    "gammaln": log_gamma,
    "digamma": functions.digamma,
    "sigmoid": functions.expit,
    "erf": functions.erf,
    "normcdf": phi,
    "gelu": lambda x: x * phi(x),
    "softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
    "log_sigmoid": lambda x: -np.logaddexp(-x, x.dtype.type(0)),
}


def normcdf(x):
    elementwise(lambda x: F.normcdf(x), name="wide_normcdf")
    try:
        return mx.nd.wide_normcdf(x)
    finally:
        unregister("wide_normcdf")


OURS = {
    "gelu": lambda x: mx.nd.LeakyReLU(x, act_type="gelu"),
    "softplus": lambda x: mx.nd.Activation(x, act_type="softrelu"),
    "normcdf": normcdf,
}
SPECIAL = [0.0, -0.0, 1, -1, 1.5, 2, -2, 3, -3, 0.5, -0.5, 5, 2.0**30, -(2.0**30), np.inf, -np.inf, np.nan]
REALS = ("float32", "float64")


def numbers(low, high, dtype, n=203):
    return np.random.default_rng(3).uniform(low, high, n).astype(dtype)


def special(dtype):
    info = np.finfo(dtype)
    return np.array([*SPECIAL, info.max, -info.max, info.tiny, info.smallest_subnormal, -info.smallest_subnormal], dtype)


def bits(x):
    return x.view(f"u{x.itemsize}")


def test_every_such_function_is_tried():
    assert set.union(*generate.ALONE.values()) <= {*DOMAINS}


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("name", DOMAINS)
def test_a_number_does_not_depend_on_its_place(name, dtype):
    f = OURS.get(name) or getattr(mx.nd, name)
    x = numbers(*DOMAINS[name], dtype)
    x[77], x[150] = np.nan, 1e6  # what is beside it does not count either
    whole = f(mx.nd.array(x, dtype=dtype)).asnumpy()
    for n in (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 47, 48, 49, 70):
        for start in (0, 5):
            part = f(mx.nd.array(x[start : start + n], dtype=dtype)).asnumpy()
            np.testing.assert_array_equal(bits(part), bits(whole[start : start + n]))


@pytest.mark.parametrize("dtype", REALS)
def test_a_power_does_not_depend_on_its_place(dtype):
    x, y = numbers(0.01, 9, dtype), numbers(-9, 9, dtype)
    x[50], y[60], y[70], y[80] = -2, 2, 3, np.inf
    whole = mx.nd.power(mx.nd.array(x, dtype=dtype), mx.nd.array(y, dtype=dtype)).asnumpy()
    by, of = (mx.nd.array(x, dtype=dtype) ** 1.75).asnumpy(), (1.75 ** mx.nd.array(y, dtype=dtype)).asnumpy()
    seven = mx.nd.full(x.shape, 1.75, dtype=dtype)
    np.testing.assert_array_equal(bits(mx.nd.power(mx.nd.array(x, dtype=dtype), seven).asnumpy()), bits(by))
    np.testing.assert_array_equal(bits(mx.nd.power(seven, mx.nd.array(y, dtype=dtype)).asnumpy()), bits(of))
    for n in (1, 2, 7, 8, 17, 33, 49, 70):
        a, b = (mx.nd.array(v[5 : 5 + n], dtype=dtype) for v in (x, y))
        np.testing.assert_array_equal(bits(mx.nd.power(a, b).asnumpy()), bits(whole[5 : 5 + n]))
        np.testing.assert_array_equal(bits((a**1.75).asnumpy()), bits(by[5 : 5 + n]))


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("name", DOMAINS)
def test_special_values_are_those_of_c(name, dtype):
    x = special(dtype)
    with np.errstate(all="ignore"):
        wanted = THEIRS.get(name, getattr(np, name, None))(x)
    found = (OURS.get(name) or getattr(mx.nd, name))(mx.nd.array(x, dtype=dtype)).asnumpy()
    np.testing.assert_array_max_ulp(found, wanted, 4)
    sure = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[sure]), np.signbit(wanted[sure]))


@pytest.mark.parametrize("dtype", REALS)
def test_powers_have_the_cases_of_c(dtype):
    x, y = (v.ravel() for v in np.meshgrid(special(dtype), special(dtype)))
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.longdouble), y.astype(np.longdouble)).astype(dtype)
    found = mx.nd.power(mx.nd.array(x, dtype=dtype), mx.nd.array(y, dtype=dtype)).asnumpy()
    np.testing.assert_array_max_ulp(found, wanted, 2)
    sure = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[sure]), np.signbit(wanted[sure]))


@pytest.mark.parametrize("dtype", REALS)
def test_powers_are_within_two_units(dtype):
    """Next to 1 and far out, where an error of the logarithm counts most."""
    rng, top = np.random.default_rng(4), 120 if dtype == "float32" else 1000
    x = np.concatenate([rng.uniform(0.5, 2, 4000), rng.uniform(0.9, 1.1, 4000), rng.uniform(0.999, 1.001, 4000)]).astype(dtype)
    y = (rng.uniform(-top, top, x.size) / np.maximum(abs(np.log2(x.astype("f8"))), 1e-6)).astype(dtype)
    exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    found = mx.nd.power(mx.nd.array(x, dtype=dtype), mx.nd.array(y, dtype=dtype)).asnumpy()
    error = abs(found.astype(np.longdouble) - exact) / np.spacing(exact.astype(dtype)).astype(np.longdouble)
    assert error.max() <= 2


@pytest.mark.parametrize("dtype", REALS)
def test_quotients_by_a_number_have_the_bits_of_a_division(dtype):
    rng, info = np.random.default_rng(6), np.finfo(dtype)
    far = info.maxexp - 4
    x = np.concatenate([np.ldexp(rng.uniform(1, 2, 20_000), e) for e in (0, rng.integers(-far - 20, far, 20_000))])
    x = np.concatenate([x * rng.choice([-1, 1], x.size), special(dtype)]).astype(dtype)
    by = [*np.ldexp(rng.uniform(-2, 2, 40), rng.integers(-30, 30, 40)), 3, 255, np.nextafter(1, 2), *special(dtype)]
    for y in np.array(by, dtype):
        with np.errstate(all="ignore"):
            wanted = x / y
        for n in (x.size, 19):
            found = (mx.nd.array(x[-n:], dtype=dtype) / float(y)).asnumpy()
            sure = ~np.isnan(wanted[-n:])
            np.testing.assert_array_equal(bits(found[sure]), bits(wanted[-n:][sure]))
            assert np.isnan(found[~sure]).all()


@pytest.mark.parametrize("name", ["exp", "sigmoid", "softplus", "log_sigmoid", "gelu"])
def test_what_vanishes_takes_no_longer(name):
    """Processors take a hundred cycles for a product that vanishes; softmax has masks that do: exp took 26 times as long."""
    f, out = OURS.get(name) or getattr(mx.nd, name), {}
    denormal = (-13.6,) if name == "gelu" and instruction_sets.in_use() == "v4" else ()
    for at in (0, -1e9, 1e9, -1000, 1000, *denormal):
        x, times = mx.nd.full((20_000,), at, dtype="float32"), []
        for _ in range(60):
            start = time.perf_counter()
            f(x).wait_to_read()
            times.append(time.perf_counter() - start)
        out[at] = min(times)
    assert max(out.values()) < 6 * out[0]


@pytest.mark.parametrize("name", ["divide", "modulo"])
def test_quotients_of_64_bits_are_exact(name):
    """Python's integers tell; the sizes of both operands vary, and the quotient may be next to a whole number."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-(2**63), 2**63 - 1, 3000) >> rng.integers(0, 64, 3000) for _ in range(2))
    b[:1000] = a[:1000] // rng.integers(1, 9, 1000) + rng.integers(-2, 3, 1000)
    a[1000:1500] = (b[1000:1500] >> 33) * (a[1000:1500] >> 33) + rng.integers(-2, 3, 500)
    b[1000:1500] >>= 33
    a[1500:1600], b[1500:1600] = -(2**63), rng.integers(-3, 4, 100)
    a[1600:1700], b[1600:1700] = 2**63 - 1, rng.integers(-3, 4, 100)
    found = getattr(mx.nd, name)(mx.nd.array(a, dtype="int64"), mx.nd.array(b, dtype="int64")).asnumpy()

    def exact(p, q):
        if q == 0:
            return 0
        if name == "modulo":
            return p % q
        return (abs(p) // abs(q)) * (1 if (p < 0) == (q < 0) else -1)

    wanted = [exact(int(p), int(q)) for p, q in zip(a, b, strict=True)]
    assert found.tolist() == [w - 2**64 if w >= 2**63 else w for w in wanted]


@pytest.mark.skipif("MXOP_CPU" in os.environ, reason="this is the process of one set")
def test_all_this_holds_in_other_sets(levels):
    """In a process of its own, since programs keep the loops that they found."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    for level in [*levels][1:]:  # the best is in use
        done = subprocess.run(command, env=os.environ | {"MXOP_CPU": level}, capture_output=True, text=True)
        assert done.returncode == 0, level + done.stdout[-3000:]
