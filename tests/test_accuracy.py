"""How exact unary operators are: ``tools/accuracy.py`` on few points, and on many in a slow run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import mxop as mx

pytest.importorskip("mpmath")
_PATH = Path(__file__).resolve().parents[1] / "tools" / "accuracy.py"
if np.finfo(np.longdouble).nmant < 63:
    pytest.skip("the long double of this machine cannot serve as a reference", allow_module_level=True)
if not _PATH.exists():
    pytest.skip("needs the folder tools", allow_module_level=True)
_spec = importlib.util.spec_from_file_location("accuracy", _PATH)
accuracy = importlib.util.module_from_spec(_spec)
sys.modules["accuracy"] = accuracy
_spec.loader.exec_module(accuracy)


def check(row, dtype, scale):
    bound = accuracy.bounds_of(row.name)[dtype]
    error, at = accuracy.worst(row, dtype, scale, seed=7)
    assert error <= bound, f"{row.name}, {dtype}: {error} units at {at!r}"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", accuracy.ROWS, ids=lambda row: row.name)
def test_unary_operators_are_within_their_bounds(row, dtype):
    check(row, dtype, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", accuracy.ROWS, ids=lambda row: row.name)
def test_unary_operators_are_within_their_bounds_at_many_points(row, dtype):
    check(row, dtype, 30)


def test_every_unary_operator_is_measured():
    """Operators of one input and no parameters, that are not made to shape or type arrays."""
    exact = {
        "BlockGrad", "_copy", "make_loss", "zeros_like", "ones_like", "_contrib_isnan", "_contrib_isinf",
        "_contrib_isfinite", "round_ste", "sign_ste", "_contrib_round_ste", "_contrib_sign_ste", "size_array", "shape_array",
    }  # fmt: skip
    measured = {row.name for row in accuracy.ROWS}
    for op in mx.op.operators():
        if op.kind == "elementwise" and op.arguments == ("data",) and not op.spec.names and op.module == "mxop.ops.math":
            assert op.name in measured | exact, f"{op.name} is not in tools/accuracy.py"


def roots_of(name):
    row = next(r for r in accuracy.ROWS if r.name == name)
    return row, np.array([r for r in row.near if r % 0.5])


@pytest.mark.parametrize("name", ["digamma", "gammaln"])
def test_the_numbers_next_to_roots_are_exact(name):
    row, roots = roots_of(name)
    x = roots
    for _ in range(3):
        x = np.unique(np.concatenate([x, np.nextafter(x, -np.inf), np.nextafter(x, np.inf)]))
    assert accuracy.errors(row, "float64", x).max() < 1.5


@pytest.mark.parametrize("name", ["gamma", "gammaln", "digamma"])
def test_what_stands_beside_a_number_changes_no_bit(name):
    """A block of positive numbers is computed in vectors, one with others among them number by number."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 12, 3000), rng.uniform(0, 70, 1000), [1.0, 2.0, 8.0, 0.5, 1.5, 7.5, 2.0**-60, 60.0]])
    odd = np.stack([x, np.resize([-0.3, np.nan, 0.0, -7.9, np.inf], x.size)], 1).reshape(-1)
    f = getattr(mx.nd, name)
    alone, among = (f(mx.nd.array(a, dtype="float64")).asnumpy() for a in (x, odd))
    np.testing.assert_array_equal(alone, among[::2])


@pytest.mark.parametrize("name", ["gammaln", "digamma", "sigmoid", "gelu", "pow"])
def test_what_stands_beside_a_number_changes_no_bit_of_float32(name):
    """Numbers far out, and below 0, take another way, and so do their neighbours."""
    f = {
        "gelu": lambda a: mx.nd.LeakyReLU(a, act_type="gelu"),
        "pow": lambda a: mx.nd.abs(a) ** 1.7 * (a > 0) + a**-2.3,
    }.get(name) or getattr(mx.nd, name)
    x = np.concatenate([np.random.default_rng(0).uniform(0.01, 12, 3000), [1.0, 2.0, 0.5, 1.5, 12.25]])
    if name in ("sigmoid", "gelu"):
        x = np.concatenate([x, -x])
    odd = np.stack([x, np.resize([-0.3, np.nan, 0.0, -13.6, np.inf, 1e30, -90.0, -1e30], x.size)], 1).reshape(-1)
    alone, among = (f(mx.nd.array(a, dtype="float32")).asnumpy() for a in (x, odd))
    np.testing.assert_array_equal(alone, among[::2])


@pytest.mark.parametrize("dtype, bits, fraction", [("float32", np.uint32, 23), ("float64", np.uint64, 52)])
def test_inverses_are_right_to_the_last_bit(dtype, bits, fraction):
    given = np.random.default_rng(0).integers(0, np.iinfo(bits).max, 200_000, bits, True)
    given[:40] = np.arange(40)  # 0 and the least of denormals
    given[40::3] &= ~bits(2 ** (fraction - 8) - 1)  # fractions of few bits, too
    every = np.array(2 ** (np.dtype(dtype).itemsize * 8 - 1 - fraction), bits)  # exponents, with fractions of ones and of one
    ones = np.arange(every, dtype=bits) << bits(fraction) | bits(2**fraction - 1)
    for values in (given, ones, ones + bits(1), ones - bits(1), ones + bits(2)):
        x = values.view(dtype)
        with np.errstate(all="ignore"):
            wanted = 1 / x
        got = mx.nd.reciprocal(mx.nd.array(x, dtype=dtype)).asnumpy()
        same = (got.view(bits) == wanted.view(bits)) | (np.isnan(got) & np.isnan(wanted))
        assert same.all(), x[~same][:5]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_nearest_integers(dtype):
    half = np.arange(-40, 40) / 2.0
    most = 2.0 ** np.finfo(dtype).nmant
    far = [0.0, -0.0, np.inf, -np.inf, most - 0.5, most + 1, 1 - most, -most - 3, 2 * most + 2]
    x = np.concatenate([half, far]).astype(dtype)
    x = np.concatenate([x, np.nextafter(x, np.inf, dtype=dtype), np.nextafter(x, -np.inf, dtype=dtype)])
    whole = np.where(np.abs(x) >= most, x, 0)
    small = np.where(np.abs(x) >= most, 0, x).astype("longdouble")
    for name, wanted in (("rint", np.ceil(small - 0.5)), ("round", np.sign(small) * np.floor(np.abs(small) + 0.5))):
        got = getattr(mx.nd, name)(mx.nd.array(x, dtype=dtype)).asnumpy()
        np.testing.assert_array_equal(got, np.where(whole == 0, wanted, whole).astype(dtype))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


def _roots_near_a_middle() -> np.ndarray:
    """Return doubles whose root is next to the middle of two: 4 x = n^2 + c, n odd and c small.

    For each c, n is lifted from its last three bits to as many as x has.
    """
    found = []
    for c in range(-1025, 1025):
        if c % 8 != 7:  # odd squares are 1 more than a multiple of 8
            continue
        for bits in (54, 55):  # those of n^2 + c that are 0, in the two halves of a pair of binades
            solutions = [1, 3, 5, 7]
            for k in range(3, bits):
                solutions = [m for n in solutions for m in (n, n + (1 << k - 1)) if (m * m + c) % (1 << k + 1) == 0]
            for n in {m % (1 << 54) for s in solutions for m in (s, s + (1 << bits - 1))}:
                if n > 1 << 53:
                    x = (n * n + c) >> 2
                    if x == int(float(x)):
                        found.append(float(x))
    return np.array(found)


@pytest.mark.parametrize("dtype, bits, edge", [("float32", np.uint32, 0x0D800000), ("float64", np.uint64, 123 << 52)])
def test_roots_are_right_to_the_last_bit(dtype, bits, edge):
    number = np.dtype(dtype).type
    given = np.random.default_rng(0).integers(0, np.iinfo(bits).max, 200_000, bits, True)
    given[:40] = np.arange(40)  # 0 and the least of denormals
    given[40:80] = np.arange(edge - 20, edge + 20)  # around 2**-100 or 2**-900, from which on roots are estimated
    given[80:84] = np.array([np.finfo(dtype).max, np.inf, -0.0, -np.inf], dtype).view(bits)
    given = given.view(dtype)
    tests = [given, np.abs(given), np.where(given > 0, given, number(0))]
    if dtype == "float64":
        middles = _roots_near_a_middle()
        assert len(middles) > 500
        tests += [middles, middles * 2.0**-107, middles * 2.0**200]
    for values in tests:
        x = mx.nd.array(values, dtype=dtype)
        with np.errstate(invalid="ignore"):
            as_power = np.where(values == -np.inf, number(np.inf), values + number(0))  # as C's pow does
        for got, taken in ((mx.nd.sqrt(x), values), (x**0.5, as_power)):
            with np.errstate(invalid="ignore"):
                wanted = np.sqrt(taken)
            got = got.asnumpy()
            same = (got.view(bits) == wanted.view(bits)) | (np.isnan(got) & np.isnan(wanted))
            assert same.all(), values[~same][:5]


def test_gelu_keeps_its_tail():
    a = np.array([-5.3, -5.5, -8.0, -13.0, -20.0, -37.0])
    x = mx.nd.array(a, dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.LeakyReLU(x, act_type="gelu")
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), a * special.ndtr(a), 1e-12)
    slope = special.ndtr(a) + a * np.exp(-a * a / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(x.grad.asnumpy(), slope, 1e-12)
    narrow = mx.nd.LeakyReLU(mx.nd.array(a[:4]), act_type="gelu").asnumpy()
    np.testing.assert_allclose(narrow, a[:4] * special.ndtr(a[:4].astype("float32").astype("float64")), 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "arguments", "values"),
    [
        ("gamma", [0.0, -0.0, -1, -2.5, np.inf, -np.inf, np.nan, 1e-45, 200, -200.5],
         [np.inf, -np.inf, np.nan, -0.9453087204829419, np.inf, np.nan, np.nan, np.inf, np.inf, -0.0]),
        ("gammaln", [0.0, -1, 1, 2, np.inf, -np.inf, np.nan], [np.inf, np.inf, 0, 0, np.inf, np.inf, np.nan]),
        ("digamma", [0.0, -0.0, -1, np.inf, -np.inf, np.nan], [-np.inf, np.inf, np.nan, np.inf, np.nan, np.nan]),
        ("cbrt", [0.0, -0.0, np.inf, -np.inf, np.nan, -27], [0.0, -0.0, np.inf, -np.inf, np.nan, -3]),
        ("rcbrt", [0.0, -0.0, np.inf, -np.inf, np.nan, -8], [np.inf, -np.inf, 0.0, -0.0, np.nan, -0.5]),
        ("softsign", [0.0, -0.0, 1e30, np.nan, -1e38, np.inf, -np.inf], [0.0, -0.0, 1, np.nan, -1, np.nan, np.nan]),
        ("rsqrt", [0.0, -0.0, np.inf, -np.inf, np.nan, -1, 16, 2.0**-130],
         [np.inf, -np.inf, 0, np.nan, np.nan, np.nan, 0.25, 2.0**65]),
        ("erf", [0.0, -0.0, np.inf, -np.inf, np.nan], [0.0, -0.0, 1, -1, np.nan]),
    ],
)  # fmt: skip
def test_special_values(name, arguments, values, dtype):
    with np.errstate(all="ignore"):
        found = getattr(mx.nd, name)(mx.nd.array(arguments, dtype=dtype)).asnumpy()
        wanted = np.array(values).astype(dtype)
    if name == "gamma" and dtype == "float64":
        found, wanted = np.delete(found, 7), np.delete(wanted, 7)  # 1e-45 is no denormal there
    np.testing.assert_allclose(found, wanted, 1e-6)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(wanted[number]))
