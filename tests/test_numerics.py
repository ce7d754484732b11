"""Exactness at the edges: floor division, integers that no float holds, lengths near the ends of the range, conversions to
half the size, ranges of integers, extrema of nothing.  NumPy is the reference."""

from __future__ import annotations

import itertools
import math
import operator

import numpy as np
import pytest

import mxop as mx

INTEGERS = ("int8", "uint8", "int32", "int64")
BEYOND = 2**53 + 1  # the first integer that no float64 holds


def same(found, wanted):
    """Compare bits, but for those of NaN."""
    found = found.asnumpy() if isinstance(found, mx.nd.NDArray) else found
    wanted = np.asarray(wanted)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    if found.dtype.kind == "f":
        number = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(wanted[number]))


# ---- floor division --------------------------------------------------------------------------------------------------
def integer_pairs(dtype):
    limits = np.iinfo(dtype)
    values = [v for v in (0, 1, -1, 2, -2, 3, -3, 7, -7, limits.min, limits.max, limits.min + 1) if limits.min <= v]
    return np.array(list(itertools.product(values, repeat=2))).astype(dtype).T


def float_pairs(dtype):
    special = [0.0, -0.0, 1, -1, 2.5, -2.5, 7, 0.1, 0.3, np.inf, -np.inf, np.nan]
    special += [np.finfo(dtype).tiny / 4, np.finfo(dtype).max, -np.finfo(dtype).max]
    rng = np.random.default_rng(3)
    near, far = rng.normal(0, 30, (2, 3000)), rng.normal(0, 1, (2, 3000)) * 10.0 ** rng.uniform(-30, 30, (2, 3000))
    return np.concatenate([np.array(list(itertools.product(special, repeat=2))).T, near, far], axis=1).astype(dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_floor_division_of_integers_is_numpys(dtype):
    a, b = integer_pairs(dtype)
    x, y = mx.nd.array(a, dtype=dtype), mx.nd.array(b, dtype=dtype)
    with np.errstate(all="ignore"):
        same(x // y, a // b)
        same(np.floor_divide(x, y), a // b)
        same(mx.sym.Variable("x").__floordiv__(mx.sym.Variable("y")).eval(x=x, y=y)[0], a // b)
        for number in (3, np.iinfo(dtype).max, *((-1, -2) if np.iinfo(dtype).min else ())):
            same(x // number, a // np.array(number, dtype))
            same(number // x, np.array(number, dtype) // a)
            same((mx.sym.Variable("x") // number).eval(x=x)[0], a // np.array(number, dtype))
            same((number // mx.sym.Variable("x")).eval(x=x)[0], np.array(number, dtype) // a)
    divides = b != 0
    if np.iinfo(dtype).min:
        divides &= (b != -1) | (a != np.iinfo(dtype).min)
    q, r = (x // y).asnumpy().astype(object), (x % y).asnumpy().astype(object)
    np.testing.assert_array_equal((q * b + r)[divides], a[divides].astype(object))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floor_division_of_floats_is_numpys(dtype):
    a, b = float_pairs(dtype)
    x, y = mx.nd.array(a, dtype=dtype), mx.nd.array(b, dtype=dtype)
    with np.errstate(all="ignore"):
        same(x // y, a // b)
        for number in (2.5, -0.1, np.inf):
            same(x // number, a // np.array(number, dtype))
            same(number // x, np.array(number, dtype) // a)


def test_floor_division_broadcasts_and_has_gradient_zero():
    x, y = mx.nd.array([[-7.5], [7.5]]), mx.nd.array([2.0, -2.0])
    x.attach_grad("add")
    with mx.autograd.record():
        z = x // y + x // 2 + 7 // x
    z.backward()
    a, b = x.asnumpy(), y.asnumpy()
    same(z, a // b + a // 2 + np.float32(7) // a)
    same(x.grad, np.zeros_like(a))


def test_floor_division_of_tensors_with_named_axes():
    w, h = mx.axes.make_axis(2, name="W"), mx.axes.make_axis(3, name="H")
    a, b = np.array([-7.0, 7.0], "float32"), np.array([2.0, -2.0, 4.0], "float32")
    x, y = mx.axes.array(a, w), mx.axes.array(b, h)
    same((x // y).asnumpy(), a[:, None] // b)
    same((x // 2).asnumpy(), a // 2)
    same((7 // x).asnumpy(), 7 // a)
    p, q = mx.axes.placeholder(w, name="p"), mx.axes.placeholder(h, name="q")
    same((p // q).value.eval(p=x.value, q=y.value)[0], a[:, None] // b)


# ---- integers that no float holds ------------------------------------------------------------------------------------
def test_integers_beyond_the_floats_stay_exact():
    values = np.array([2**62 + 1, BEYOND, 5])
    x, v = mx.nd.array(values, dtype="int64"), mx.sym.Variable("v")
    for number in (BEYOND, -BEYOND, 2**60 + 1):
        same(x + number, values + number)
        same(number - x, number - values)
        same(mx.nd.broadcast_maximum(x, mx.nd.full((1,), number, dtype="int64")), np.maximum(values, number))
        same(mx.nd.maximum(x, number), np.maximum(values, number))
        same(mx.nd.clip(x, number, 2**61 + 1), np.clip(values, number, 2**61 + 1))
        same(mx.sym.clip(v, number, 2**61 + 1).eval(v=x)[0], np.clip(values, number, 2**61 + 1))
        same(((v + number) * 1 - (number - 2)).eval(v=x)[0], values + 2)  # a fused group, with constants
        same(mx.nd.full((2,), number, dtype="int64"), np.full(2, number))
        same(mx.sym.full((2,), number, dtype="int64").eval()[0], np.full(2, number))
        same((mx.sym.full((2,), number, dtype="int64") + 1).eval()[0], np.full(2, number + 1))
        same(mx.nd.arange(number, number + 3, dtype="int64"), np.arange(number, number + 3))
        same(mx.sym.arange(number, number + 3, dtype="int64").eval()[0], np.arange(number, number + 3))
        same((mx.sym.fromjson((v + number).tojson())).eval(v=x)[0], values + number)
        x[1] = number
        assert x.asnumpy()[1] == number
        x[:] = values


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [-3, -2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4])
def test_a_power_has_the_same_bits_by_number_by_array_and_in_graphs(exponent, dtype):
    values = np.concatenate([np.geomspace(1e-30, 1e30, 700), np.linspace(0.1, 3, 1000), [0.0, np.inf, np.nan]])
    values = values.astype(dtype)
    x, s = mx.nd.array(values, dtype=dtype), mx.sym.Variable("x")
    wanted = (x**exponent).asnumpy()
    same((s**exponent).eval(x=x)[0], wanted)
    same((s**exponent + mx.sym.zeros_like(s)).eval(x=x)[0], wanted + np.zeros((), dtype))
    if exponent in (1, 2, 3):
        same(x ** mx.nd.full(x.shape, exponent, dtype=dtype), wanted)
        mixed = np.full(x.shape, exponent, dtype)
        mixed[::7] = 0.3
        found = (x ** mx.nd.array(mixed, dtype=dtype)).asnumpy()
        same(found[mixed == exponent], wanted[mixed == exponent])


def test_powers_of_integers_are_exact_and_wrap():
    a = np.array([3, 2, -2, -7, 0, 1, 10])
    for number in (0, 1, 2, 3, 4, 18, 39, 63):
        with np.errstate(all="ignore"):
            same(mx.nd.array(a, dtype="int64") ** number, a**number)
    same(3 ** mx.nd.array([39, 2], dtype="int64"), np.array([3**39, 9]))
    same(mx.nd.power(mx.nd.array([3, 2], dtype="int64"), mx.nd.array([39, 62], dtype="int64")), np.array([3**39, 2**62]))
    same(mx.nd.array([1, -1, 2, 0], dtype="int32") ** -3, np.array([1, -1, 0, 0], "int32"))
    same(mx.nd.array([3, 7], dtype="uint8") ** 5, np.array([3, 7], "uint8") ** 5)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_bound_stops_at_the_ends_of_the_type(dtype):
    """MXNet compares with the bound itself; a scalar wraps."""
    a = np.array([3, 5, 100], dtype)
    x = mx.nd.array(a, dtype=dtype)
    for low, high in ((-500, 300), (4.5, 1e30), (-1e30, 4.5), (-np.inf, np.inf), (4, 90)):
        wanted = np.trunc(np.clip(a.astype("float64"), low, high)).astype(dtype)
        same(mx.nd.clip(x, low, high), wanted)
        same(mx.sym.clip(mx.sym.Variable("x"), low, high).eval(x=x)[0], wanted)
    wraps = np.array(300).astype(dtype)
    same(mx.nd.hypot(x, 300), np.trunc(np.hypot(a.astype("float64"), wraps)).astype(dtype))


# ---- numbers that do not fit -----------------------------------------------------------------------------------------
LIMITS = {d: (int(np.iinfo(d).min), int(np.iinfo(d).max)) for d in INTEGERS}
FAR = [
    2**63,
    -(2**63) - 1,
    2**64 + 5,
    2**70,
    -(2**70),
    10**400,
    np.uint64(2**63),
    1e20,
    -1e300,
    math.inf,
    -math.inf,
    math.nan,
]
ARITHMETIC = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod,
    "**": operator.pow, "//": operator.floordiv, "+=": operator.iadd, "*=": operator.imul,
}  # fmt: skip
COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def ways(f, x, number):
    """Yield functions that compute ``f(x, number)``, and ``f(number, x)`` where it is an operator of Python, in every way."""
    v, a = mx.sym.Variable("x"), x.copy()
    yield lambda: f(x, number)
    yield lambda: f(v, number).eval(x=x)[0]
    yield lambda: f(v, number).bind(mx.cpu(), {"x": x}).forward()[0]
    yield lambda: (f(v * 1, number) * 1).eval(x=x)[0]  # within a chain, which is fused
    yield lambda: mx.graph.compiled(lambda y: f(y, number))(x)

    def recorded():
        a.attach_grad()
        with mx.autograd.record():
            return f(a, number)

    if f not in (operator.iadd, operator.imul):
        yield recorded


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("number", FAR, ids=lambda n: f"{n:.4g}" if abs(n) < 1e308 or n != n else "10**400")
def test_what_64_bits_do_not_hold_is_no_operand_of_integers(dtype, number):
    x = mx.nd.array([5, 0, 7], dtype=dtype)
    for sign, f in ARITHMETIC.items():
        for way in ways(f, x, number) if not sign.endswith("=") else [lambda f=f: f(x, number)]:
            with pytest.raises((mx.MXNetError, OverflowError), match=r"fit|large|number"):
                way()
        if not sign.endswith("="):
            with pytest.raises((mx.MXNetError, OverflowError), match=r"fit|large|number"):
                f(number, x)
    assert x.asnumpy().tolist() == [5, 0, 7]  # a refused call writes nothing
    floats = mx.nd.array([5.0], dtype="float64") + number if abs(number) < 1e308 else None
    assert floats is None or floats.item() == 5 + float(number)


@pytest.mark.parametrize("dtype", (*INTEGERS, "bool"))
def test_integers_are_compared_with_any_number(dtype):
    low, high = LIMITS.get(dtype, (0, 1))
    values = [low, 0, 1, high] if low else [0, 1, high]
    x = mx.nd.array(np.array(values, dtype), dtype=dtype)
    exact = [int(v) for v in x.asnumpy()]
    for number in [*FAR, -1, 255, 256, 300, -129, 2**31, 2**40, -(2**40), 2**63 - 1, -(2**63), float(2**31), 1e10]:
        if number == 10**400:
            continue
        for f in COMPARISONS.values():
            wanted = [float(f(v, number)) for v in exact]
            for way in ways(f, x, number):
                assert way().asnumpy().astype(float).tolist() == wanted, (f, number)
            assert f(number, x).asnumpy().astype(float).tolist() == [float(f(number, v)) for v in exact], (f, number)
        assert mx.nd.logical_and(x, number).asnumpy().tolist() == [bool(v) and bool(number) for v in exact]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_limit_beyond_the_type_is_its_last_integer_or_refused(dtype):
    low, high = LIMITS[dtype]
    x = mx.nd.array(np.array([low, 0, high], dtype), dtype=dtype)
    for beyond, no_limit, limit in ((1, mx_minimum, mx_maximum), (-1, mx_maximum, mx_minimum)):
        for number in (beyond * 2**63 - (beyond < 0), beyond * 2**70, beyond * 1e30, beyond * math.inf):
            for way in ways(no_limit, x, number):
                same(way(), x.asnumpy())
            for f in (limit, lambda a, b, beyond=beyond: a.clip(*((b, 1e30) if beyond > 0 else (-1e30, b)))):
                for way in ways(f, x, number):
                    with pytest.raises(mx.MXNetError, match="does not fit"):
                        way()
    if dtype != "int64":
        for f, number, last in ((mx_maximum, high + 1, high), (mx_minimum, low - 1, low)):
            for way in ways(f, x, number):
                same(way(), np.full(3, last, dtype))
    for f in (mx.nd.minimum, mx.nd.maximum, mx.nd.clip):
        with pytest.raises(mx.MXNetError, match="nan does not fit"):
            f(x, *[math.nan] * (1 + (f is mx.nd.clip)))


@pytest.mark.parametrize("far", [np.array([2**63], "uint64"), np.array([np.nan]), np.array([1, -np.inf]), np.float32([1e30])])
def test_arrays_of_numpy_as_operands_are_held_to_it_too(far):
    x = mx.nd.array([5] * far.size, dtype="int64")
    for f in (operator.add, operator.lt, operator.eq, np.multiply, operator.iadd):
        with pytest.raises(mx.MXNetError, match=r"operand.*does not fit dtype int64"):
            f(x, far)
    assert np.isfinite(x.asnumpy()).all() and (x.astype("float32") + far).size == far.size


def mx_minimum(a, b):
    return (mx.nd if isinstance(a, mx.nd.NDArray) else mx.sym).minimum(a, b)


def mx_maximum(a, b):
    return (mx.nd if isinstance(a, mx.nd.NDArray) else mx.sym).maximum(a, b)


def assigned(key):
    def assign(number, dtype):
        x = mx.nd.zeros((3,), dtype=dtype)
        x[key] = number
        return x

    return assign


MADE = {
    "array": lambda n, d: mx.nd.array([n], dtype=d),
    "array of a tuple": lambda n, d: mx.nd.array((0, n), dtype=d),
    "array of lists": lambda n, d: mx.nd.array([[1, 2], [3, n]], dtype=d),
    "array of a number": lambda n, d: mx.nd.array(n, dtype=d),
    "array of a 0-d array": lambda n, d: mx.nd.array(np.array(n), dtype=d),
    "full": lambda n, d: mx.nd.full((2,), n, dtype=d),
    "full_like": lambda n, d: mx.nd.full_like(mx.nd.zeros((2,), dtype=d), n),
    "full, a symbol": lambda n, d: mx.sym.full((2,), n, dtype=d).eval()[0],
    "_full": lambda n, d: mx.nd._internal._full(shape=(2,), value=n, dtype=d),
    "arange": lambda n, d: mx.nd.arange(n, n + 3, dtype=d),
    "arange, a symbol": lambda n, d: mx.sym.arange(n, n + 3, dtype=d).eval()[0],
    "linspace": lambda n, d: mx.nd.linspace(n, n, 2, dtype=d),
    "_linspace": lambda n, d: mx.nd._internal._linspace(start=n, stop=n, num=2, dtype=d),
    "x[:]": assigned(slice(None)),
    "x[0]": assigned(0),
    "x[[0, 2]]": assigned([0, 2]),
    "x[mask]": assigned(np.array([True, False, True])),
    "a list to x[:2]": lambda n, d: assigned(slice(2))([1, n], d),
    "pad": lambda n, d: mx.nd.pad(mx.nd.ones((1, 1, 2, 2), dtype=d), mode="constant", pad_width=(0, 0, 0, 0, 1, 1, 1, 1),
                                  constant_value=n),
    "slice_assign_scalar": lambda n, d: mx.nd.zeros((2,), dtype=d).slice_assign_scalar(n, (0,), (1,), (1,)),
    "one_hot": lambda n, d: mx.nd.one_hot(mx.nd.array([0]), 2, on_value=n, dtype=d),
    "csr": lambda n, d: mx.nd.sparse.csr_matrix(([n], [0], [0, 1]), shape=(1, 2), dtype=d),
    "row_sparse": lambda n, d: mx.nd.sparse.row_sparse_array(([[n]], [0]), shape=(2, 1), dtype=d),
}  # fmt: skip


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("make", MADE)
def test_what_64_bits_do_not_hold_becomes_no_integer(make, dtype):
    for number in FAR:
        if number != -(2**63) - 1 or make not in (
            "pad",
            "one_hot",
            "linspace",
            "_linspace",
        ):  # of which float64 makes -2**63
            with pytest.raises((mx.MXNetError, OverflowError)):
                MADE[make](number, dtype)
    if "arange" not in make and "linspace" not in make:
        assert 1 in MADE[make](1, dtype).asnumpy()
        for number, wrapped in ((300, 300), (-1, -1), (2**40, 2**40)):  # as in MXNet, low bits stay
            if make not in ("csr", "row_sparse"):
                assert np.array(wrapped).astype(dtype) in MADE[make](number, dtype).asnumpy()


@pytest.mark.parametrize("make", [m for m in MADE if "arange" not in m and "linspace" not in m])
def test_floats_hold_large_integers(make):
    for number in (2**63, -(2**70), 1e20):
        assert np.float32(number) in MADE[make](number, "float32").asnumpy()
    with pytest.raises((mx.MXNetError, OverflowError)):
        MADE[make](10**400, "float32")


# ---- lengths ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1e200, 1e-200, 1e300, 1e-310, 1.0])
@pytest.mark.parametrize("order", [1, 2])
def test_norm_neither_overflows_nor_vanishes(size, order):
    a = np.array([[3.0, -4.0, 0.0], [0.0, 0.0, 0.0]]) * size
    wanted = np.array([5.0 if order == 2 else 7.0, 0.0]) * size
    x = mx.nd.array(a, dtype="float64")
    rtol = 1e-15 if size > 1e-300 else 1e-13
    np.testing.assert_allclose(mx.nd.norm(x, ord=order, axis=1).asnumpy(), wanted, rtol)
    np.testing.assert_allclose(mx.nd.norm(x.T, ord=order, axis=0).asnumpy(), wanted, rtol)
    np.testing.assert_allclose(mx.nd.norm(x, ord=order).asnumpy(), wanted[:1], rtol)
    bound = mx.sym.norm(mx.sym.Variable("x"), ord=order, axis=1)
    np.testing.assert_allclose(bound.eval(x=x)[0].asnumpy(), wanted, rtol)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.norm(x, ord=order, axis=1)
        (slope,) = mx.autograd.grad(y, [x], create_graph=True)
        total = (slope * mx.nd.array([[1, 2, 3], [1, 2, 3]], dtype="float64")).sum()
    total.backward()
    direction = np.array([[0.6, -0.8, 0.0] if order == 2 else [1, -1, 0], [0, 0, 0]])
    np.testing.assert_allclose(slope.asnumpy(), direction, rtol)
    u, w = direction[0], np.array([1.0, 2.0, 3.0])
    with np.errstate(over="ignore"):
        second = (w - u * (u @ w)) / wanted[0] if order == 2 else np.zeros(3)
    if np.isfinite(second).all():
        np.testing.assert_allclose(x.grad.asnumpy(), [second, np.zeros(3)], 1e-14)


@pytest.mark.parametrize("shape", [(70, 3000), (4, 40000), (2, 200000)])
def test_norm_of_mixed_sizes_along_both_axes(shape):
    rng = np.random.default_rng(0)
    a = rng.normal(size=shape) * 10.0 ** rng.uniform(-300, 300, (shape[0], 1))
    x = mx.nd.array(a, dtype="float64")
    for axis in (0, 1):
        top = np.abs(a).max(axis, keepdims=True)
        wanted = np.sqrt(np.square(a / top).sum(axis)) * top.squeeze(axis)
        np.testing.assert_allclose(mx.nd.norm(x, axis=axis).asnumpy(), wanted, 1e-14)
        np.testing.assert_allclose(mx.nd.norm(x.T.copy(), axis=1 - axis).asnumpy(), wanted, 1e-14)


def test_norm_keeps_nan_infinity_and_narrow_types():
    for values, wanted in (([np.inf, 1], np.inf), ([np.nan, np.inf], np.nan), ([0, 0], 0)):
        same(mx.nd.norm(mx.nd.array(values, dtype="float64")), np.array([wanted], "float64"))
    same(mx.nd.norm(mx.nd.array([3e30, 4e30])), np.array([5e30], "float32"))
    same(mx.nd.norm(mx.nd.array([3e-30, 4e-30])), np.array([5e-30], "float32"))
    same(mx.nd.norm(mx.nd.array([30000, 40000], dtype="float16")), np.array([50000], "float16"))
    x = mx.nd.array([30000, 40000, 60000], dtype="float16")  # its norm is no float16
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.norm(x, out_dtype="float32")
    y.backward()
    a = x.asnumpy().astype("float64")
    np.testing.assert_allclose(x.grad.asnumpy(), a / np.sqrt(a @ a), 1e-3)


# ---- conversions to half the size ------------------------------------------------------------------------------------
def halfway(rng, n):
    """Return numbers a little to either side of the middle between neighbouring float16."""
    found = rng.normal(0, 1, n).astype("float16")
    middle = (found.astype("float64") + np.nextafter(found, np.float16(np.inf)).astype("float64")) / 2
    return middle * (1 + rng.choice([-1, 0, 1], n) * 2.0**-45)


def test_float64_becomes_float16_with_one_rounding():
    edges = [65519.999999, 65520, 1e300, -1e300, 2**-25, 2**-25 * (1 + 2**-50), 1e-320, 0, -0.0, np.inf, np.nan]
    values = np.concatenate([edges, halfway(np.random.default_rng(5), 5000)])
    with np.errstate(over="ignore"):
        wanted = values.astype("float16")
    x = mx.nd.array(values, dtype="float64")
    same(x.astype("float16"), wanted)
    same(mx.nd.cast(x, dtype="float16"), wanted)
    same(mx.sym.cast(mx.sym.Variable("x"), dtype="float16").eval(x=x)[0], wanted)
    y = mx.nd.zeros(values.shape, dtype="float16")
    y[:] = x
    same(y, wanted)
    z = mx.nd.zeros((values.size, 2), dtype="float16")
    z[:, 1] = x  # with strides
    same(z[:, 1], wanted)
    same(mx.nd.array(values, dtype="float16"), wanted)


def test_what_is_stored_as_bfloat16_is_rounded_once():
    """Without ``ml_dtypes`` there are no such arrays in NumPy: the bits are looked at."""
    pytest.importorskip("ml_dtypes")
    values = np.array([1 + 2**-8 + 2**-40, -(1 + 2**-8 + 2**-40), 1 + 3 * 2**-8 - 2**-40, 1e300, 0.0])
    found = mx.nd.array(values, dtype="float64").astype("bfloat16").astype("float64")
    same(found, np.array([1 + 2**-7, -(1 + 2**-7), 1 + 2**-7, np.inf, 0.0]))
    whole = np.array([2**24 + 2**16 + 1, 2**62 + 2**54 + 1])
    found = mx.nd.array(whole, dtype="int64").astype("bfloat16").astype("float64")
    same(found, np.array([2.0**24 + 2.0**17, 2.0**62 + 2.0**55]))
    x = mx.nd.zeros((5,), dtype="bfloat16")
    x[:] = values
    for found in (x, mx.nd.array(values, dtype="bfloat16")):
        same(found.astype("float64"), np.array([1 + 2**-7, -(1 + 2**-7), 1 + 2**-7, np.inf, 0.0]))


# ---- ranges ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("interval", [(1.3, 10, 1.3), (1.7, 9, 0.7), (0.5, 4, 0.4), (10, 0, -2.5), (3.5,), (2, 9, 3), (5, 6)])
def test_ranges_of_integers_step_as_numpys(interval, dtype):
    wanted = np.arange(*interval, dtype="int64").astype(dtype)
    same(mx.nd.arange(*interval, dtype=dtype), wanted)
    same(mx.sym.arange(*interval, dtype=dtype).eval()[0], wanted)
    same(mx.nd.arange(*interval, repeat=2, dtype=dtype), np.repeat(wanted, 2))


# ---- extrema of nothing ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extrema_of_nothing_raise(name):
    x = mx.nd.empty((3, 0))
    for params in ({}, {"axis": 1}, {"axis": -1, "keepdims": True}):
        with pytest.raises(mx.MXNetError, match=rf"operator {name}: data of shape \(3, 0\) have no elements along axis="):
            getattr(mx.nd, name)(x, **params)
        with mx.util.np_shape(True), pytest.raises(mx.MXNetError, match=f"operator {name}.*no elements along axis="):
            getattr(mx.sym, name)(mx.sym.Variable("x"), **params).simple_bind(mx.cpu(), x=(3, 0))
    with pytest.raises(ValueError, match="no elements"):
        getattr(x, name)(axis=1)
    assert getattr(mx.nd, name)(x, axis=0).shape == (0,)  # no result, hence none that has no value
    assert getattr(mx.nd, name)(mx.nd.empty((0, 3)), axis=1).shape == (0,)


def test_extrema_of_nothing_raise_for_excluded_axes():
    for name in ("max", "min"):
        with pytest.raises(mx.MXNetError, match=rf"{name}: data of shape \(0, 3\) have no elements along axis=\(0,\)"):
            getattr(mx.nd, name)(mx.nd.empty((0, 3)), axis=1, exclude=True)


def test_a_logarithm_of_a_sum_over_nothing_is_minus_infinity():
    x = mx.sym.Variable("x")
    with mx.util.np_shape(True):
        bound = mx.sym.log(mx.sym.sum(mx.sym.exp(x), axis=1)).simple_bind(mx.cpu(), x=(3, 0))
        bound.forward()
        np.testing.assert_array_equal(bound.outputs[0].asnumpy(), [-np.inf] * 3)


@pytest.mark.parametrize("shape", [(3, 5, 700), (20, 6, 5000), (2, 3, 300, 2), (40, 2, 256)])
def test_long_runs_that_lie_apart_are_combined_where_they_are(shape):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    x[1, 1, 17] = np.nan
    given, found, before = mx.nd.array(x), {}, mx.context.get_num_threads()
    axes = (0, *range(2, x.ndim))
    try:
        for threads in (1, 2, 3):
            mx.context.set_num_threads(threads)
            for name in ("sum", "max", "min", "prod", "nansum"):
                result = getattr(mx.nd, name)(given, axis=axes).asnumpy()
                want = getattr(np, name)(x.astype("float64"), axis=axes)
                np.testing.assert_allclose(result, want, rtol=2e-5, atol=1e-4)
                assert np.array_equal(found.setdefault(name, result), result, equal_nan=True)
    finally:
        mx.context.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_wide_rows_are_summed_as_they_lie(dtype, step):
    """Columns side by side are combined where they are, in long stretches; others go through blocks that are shorter."""
    values = np.random.default_rng(5).integers(0, 8, (24, 20000)).astype(dtype)
    part = mx.nd.array(values, dtype=dtype)[:, ::step]
    want = values[:, ::step].astype("float64")
    assert np.array_equal(part.sum(axis=0).asnumpy(), want.sum(0))
    assert np.array_equal(part.max(axis=0).asnumpy(), want.max(0))
    assert np.array_equal((part * 1).sum(axis=0).asnumpy(), want.sum(0))
    assert np.allclose(part.astype("float32").norm(axis=0).asnumpy(), np.sqrt((want * want).sum(0)), rtol=1e-6)
