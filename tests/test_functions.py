"""Functions of floating-point numbers at the ends of their domains and of the type, in vectors and alone; powers by a number;
division of integers.  NumPy's ``long double`` is the reference."""

from __future__ import annotations

import numpy as np
import pytest

import mxop as mx

WIDE = np.longdouble
UNARY = (
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "exp",
    "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt",
)  # fmt: skip
ENDS = [
    0.0, 1, 0.5, 2, 3, np.inf, np.nan, 5e-324, 1e-310, 2.2250738585072014e-308, 1e-45, 1e-40, 1e-17, 1e-8, 20, 36.7, 40,
    88.7, 89.5, 104, 709.7, 709.79, 710.4758, 711, 746, 1 - 2**-53, 1 - 2**-24, 1 + 2**-52, 524288, 524289, 1048576, 1048577,
    1e19, 1e22, 1e37, 1e38, 2.0**60, 2.0**61, 1e120, 1e154, 1e155, 2.0**500, 2.0**501, 2.0**1000, 2.0**1001, 1e308,
    1.7976931348623157e308,
]  # fmt: skip
TYPES = ("float32", "float64")
if np.finfo(WIDE).nmant < 63:
    pytest.skip("the long double of this machine cannot serve as a reference", allow_module_level=True)


def ends(dtype):
    with np.errstate(all="ignore"):
        x = np.array(ENDS).astype(dtype)
    return np.concatenate([x, -x])


def compare(found, wanted, units=2):
    """Compare with what is exact: in units of the last place, and the sign of zero."""
    dtype = found.dtype
    with np.errstate(all="ignore"):
        near = wanted.astype(dtype)
        unit = np.spacing(np.abs(near)).astype(WIDE)
        good = (found == near) | (np.isnan(found) & np.isnan(near)) | (np.abs(found.astype(WIDE) - wanted) <= units * unit)
        good &= (np.signbit(found) == np.signbit(near)) | np.isnan(found)
    assert good.all(), [(np.flatnonzero(~good)[:5], found[~good][:5], near[~good][:5])]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", UNARY)
def test_ends_of_unary_functions(name, dtype):
    x = ends(dtype)
    run, exact = getattr(mx.nd, name), getattr(np, name)
    with np.errstate(all="ignore"):
        wanted = exact(x.astype(WIDE))
    together = run(mx.nd.array(x, dtype=dtype)).asnumpy()
    compare(together, wanted)
    # of one kind at a time, the shorter ways are taken: the bits are the same
    alone = np.array([run(mx.nd.array(np.full(40, v), dtype=dtype)).asnumpy()[19] for v in x], dtype)
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(np.signbit(alone), np.signbit(together) | (np.isnan(together) & np.signbit(alone)))


def pairs(dtype):
    a, b = (v.ravel() for v in np.meshgrid(ends(dtype), ends(dtype)))
    rng = np.random.default_rng(2)
    far = 10.0 ** rng.uniform(*((-30, 30) if dtype == "float32" else (-300, 300)), 2000)
    a = np.concatenate([a, rng.uniform(-5, 5, 2000), far, far]).astype(dtype)
    b = np.concatenate([b, rng.integers(-9, 9, 2000), rng.uniform(-1, 1, 2000), far[::-1]]).astype(dtype)
    return a, b


def exact_pairs(name, a, b):
    with np.errstate(all="ignore"):
        if name == "mod":  # NumPy's is exact, but for a zero divisor
            return np.where(b == 0, np.where(np.isnan(a), np.nan, 0), np.mod(a, b)).astype(WIDE)
        return {"power": np.power, "hypot": np.hypot}[name](a.astype(WIDE), b.astype(WIDE))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["power", "mod", "hypot"])
def test_ends_of_functions_of_two(name, dtype):
    a, b = pairs(dtype)
    run = getattr(mx.nd, f"_{name}")
    found = run(mx.nd.array(a, dtype=dtype), mx.nd.array(b, dtype=dtype)).asnumpy()
    compare(found, exact_pairs(name, a, b))
    ordinary = np.abs(np.log2(np.abs(a) + 1)) < 8
    ordinary &= np.isfinite(a) & np.isfinite(b) & (a > 0) & (b > 0.01)
    some = run(mx.nd.array(a[ordinary], dtype=dtype), mx.nd.array(b[ordinary], dtype=dtype)).asnumpy()
    np.testing.assert_array_equal(some, found[ordinary])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "exponent",
    [0, 1, 2, 3, 4, 5, 0.5, 1.5, 2.5, 2.7, -0.5, -1, -1.5, -2, -3, -2.7, np.inf, -np.inf, np.nan, 1e300, 1e-300],
)
def test_powers_by_a_number(exponent, dtype):
    a = np.concatenate([ends(dtype), np.random.default_rng(4).uniform(-4, 4, 500).astype(dtype)])
    with np.errstate(all="ignore"):
        number = float(np.array(exponent).astype(dtype))
        wanted = np.power(a.astype(WIDE), WIDE(number))
    compare((mx.nd.array(a, dtype=dtype) ** number).asnumpy(), wanted)
    compare((mx.nd.array(a, dtype=dtype) ** mx.nd.full(a.shape, number, dtype=dtype)).asnumpy(), wanted)


@pytest.mark.parametrize("dtype", TYPES)
def test_no_power_depends_on_what_stands_beside_it(dtype):
    rng = np.random.default_rng(8)
    a = rng.uniform(-9, 9, 6000).astype(dtype)
    for base in (a, abs(a)):
        x = mx.nd.array(base, dtype=dtype)
        for number in (1, 2, 3, 4, 0.5):
            b = np.full_like(base, number)
            alone = mx.nd._power(x, mx.nd.array(b, dtype=dtype)).asnumpy()
            b[::7] = rng.uniform(-1, 1, b[::7].size)
            mixed = mx.nd._power(x, mx.nd.array(b, dtype=dtype)).asnumpy()
            same = b == number
            np.testing.assert_array_equal(alone[same], mixed[same])


@pytest.mark.parametrize("exponent", [2, 3, -1, 0.5, 2.5])
def test_powers_by_a_number_have_gradients(exponent):
    x = mx.nd.array(np.random.default_rng(5).uniform(0.5, 3, 100), dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        y = x**exponent
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), exponent * x.asnumpy() ** (exponent - 1), 1e-13)


@pytest.mark.parametrize("number", [-2.5, 0.3, 7, np.inf, -0.0, np.nan])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
def test_remainders_and_bounds_by_a_number(n, dtype, number):
    a = np.random.default_rng(6).uniform(-90, 90, n).astype(dtype)
    number = float(np.array(number).astype(dtype))
    x, b = mx.nd.array(a, dtype=dtype), np.full_like(a, number)
    compare((x % number).asnumpy(), exact_pairs("mod", a, b), 0)
    compare((number % x).asnumpy(), exact_pairs("mod", b, a), 0)
    if not np.isnan(number):
        np.testing.assert_array_equal(mx.nd.clip(x, -1, number).asnumpy(), np.minimum(np.maximum(a, -1), b))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_quotients_of_integers(dtype):
    info = np.iinfo(dtype)
    near = np.array([info.min, info.min + 1, -7, -3, -2, -1, 0, 1, 2, 3, 7, 100, info.max - 1, info.max])
    values = np.unique(near.clip(info.min, info.max))
    rng = np.random.default_rng(7)
    a, b = (v.ravel() for v in np.meshgrid(values, values))
    a = np.concatenate([a, rng.integers(info.min, info.max, 3000, dtype)]).astype(dtype)
    b = np.concatenate([b, rng.integers(info.min, info.max, 1500, dtype), rng.integers(1, 9, 1500)]).astype(dtype)
    x, y = mx.nd.array(a, dtype=dtype), mx.nd.array(b, dtype=dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal((x % y).asnumpy(), np.mod(a, b))
        np.testing.assert_array_equal((x // y).asnumpy(), np.floor_divide(a, b))
        cut = [0 if v == 0 else abs(u) // abs(v) * (1 if (u < 0) == (v < 0) else -1) for u, v in zip(a.tolist(), b.tolist())]
        wanted = np.array([(c - info.min) % 2**info.bits + info.min for c in cut], dtype)
        np.testing.assert_array_equal((x / y).asnumpy(), wanted)
    for number in (1, 2, 3, 7, 31):
        np.testing.assert_array_equal((x**number).asnumpy(), a**number)
