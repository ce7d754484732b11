"""What the formulas of unary and binary operators leave to convention: kinks, ties, zero divisors, types, surrogates.

Values are those of MXNet 1.9.1; where mxop differs on purpose, the test says so.
"""

import numpy as np
import pytest

import mxop as mx

nan, inf = float("nan"), float("inf")


def value_and_grads(function, *inputs, dtype="float32"):
    arrays = [mx.nd.array(x, dtype=dtype) for x in inputs]
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        result = function(*arrays)
    result.backward()
    return [result.asnumpy().tolist(), *(a.grad.asnumpy().tolist() for a in arrays)]


@pytest.mark.parametrize(
    ("function", "data", "value", "grad"),
    [
        (mx.nd.relu, [-1, 0, 1], [0, 0, 1], [0, 0, 1]),
        (mx.nd.abs, [-1, 0, 1], [1, 0, 1], [-1, 0, 1]),
        (lambda x: mx.nd.clip(x, -1, 1), [-2, -1, 0, 1, 2], [-1, -1, 0, 1, 1], [0, 1, 1, 1, 0]),
        (lambda x: mx.nd.hard_sigmoid(x, alpha=1, beta=0), [-1, 0, 0.5, 1, 2], [0, 0, 0.5, 1, 1], [0, 0, 1, 0, 0]),
        (mx.nd.softsign, [-3, 0, 3], [-0.75, 0, 0.75], [0.0625, 1, 0.0625]),
        (mx.nd.smooth_l1, [-3, -1, 0, 0.5, 1], [2.5, 0.5, 0, 0.125, 0.5], [-1, -1, 0, 0.5, 1]),
        (mx.nd.sqrt, [0, 4], [0, 2], [inf, 0.25]),
        (mx.nd.reciprocal, [0, 2], [inf, 0.5], [-inf, -0.25]),
        (mx.nd.logical_not, [0, 2, nan], [1, 0, 0], [0, 0, 0]),
        (mx.nd.round, [0.5, 1.5, -0.5, -2.5], [1, 2, -1, -3], [0, 0, 0, 0]),
        (mx.nd.rint, [0.5, 1.5, -0.5, -1.5, -2.5], [0, 1, -1, -2, -3], [0, 0, 0, 0, 0]),
        (mx.nd.contrib.round_ste, [0.5, -2.5], [1, -3], [1, 1]),
        (mx.nd.contrib.sign_ste, [0.5, 0, -2], [1, 0, -1], [1, 1, 1]),
        (lambda x: mx.nd.contrib.gradientmultiplier(x, scalar=-2.5), [1, 2], [1, 2], [-2.5, -2.5]),
        (lambda x: mx.nd.stop_gradient(x) + 0 * x, [1, 2], [1, 2], [0, 0]),
        (lambda x: mx.nd.maximum(x, 2), [1, 2, 3], [2, 2, 3], [0, 1, 1]),
        (lambda x: mx.nd.minimum(x, 2), [1, 2, 3], [1, 2, 2], [1, 1, 0]),
        (lambda x: mx.nd.cumsum(x), [[1, 2], [3, 4]], [1, 3, 6, 10], [[4, 3], [2, 1]]),
        (lambda x: mx.nd.cumsum(x, axis=1, dtype="float64"), [[1, 2], [3, 4]], [[1, 3], [3, 7]], [[2, 1], [2, 1]]),
    ],
)
def test_kinks_and_surrogates(function, data, value, grad):
    assert value_and_grads(function, data) == [value, grad]


@pytest.mark.parametrize("n", [1, 15, 16, 17, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extrema_of_nan_and_infinities(n, dtype):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(20, n)).astype(dtype)
    x[np.arange(16), rng.integers(n, size=16)] = [nan] * 8 + [inf] * 4 + [-inf] * 4
    x[16], x[17], x[18] = -inf, inf, nan
    for axis in (0, 1):
        for name in ("max", "min"):
            found = getattr(mx.nd, name)(mx.nd.array(x, dtype=dtype), axis=axis).asnumpy()
            np.testing.assert_array_equal(found, getattr(x, name)(axis))


@pytest.mark.parametrize(
    ("function", "value", "lhs_grad", "rhs_grad"),
    [
        (mx.nd.broadcast_maximum, [2, 2, 3], [0, 1, 1], [1, 0, 0]),
        (mx.nd.broadcast_minimum, [1, 2, 2], [1, 1, 0], [0, 0, 1]),
    ],
)
def test_tie_goes_to_lhs(function, value, lhs_grad, rhs_grad):
    assert value_and_grads(function, [1, 2, 3], [2, 2, 2]) == [value, lhs_grad, rhs_grad]


def test_gradient_of_broadcast_operand_is_summed():
    value, lhs, rhs = value_and_grads(lambda a, b: mx.nd.broadcast_mul(a, b), [[1, 2], [3, 4]], [10, 20])
    assert value == [[10, 40], [30, 80]] and lhs == [[10, 20], [10, 20]] and rhs == [4, 6]


def test_modulo_has_the_sign_of_the_divisor_and_zero_divisor_gives_zero():
    lhs, rhs = [5, -5, 5, -5, 5], [3, 3, -3, -3, 0]
    for dtype in ("float32", "float64"):
        found = mx.nd.broadcast_mod(mx.nd.array(lhs, dtype=dtype), mx.nd.array(rhs, dtype=dtype))
        assert found.asnumpy().tolist() == [2, 1, -1, -2, 0]
    found = mx.nd.broadcast_mod(mx.nd.array(lhs[:4], dtype="int32"), mx.nd.array(rhs[:4], dtype="int32"))
    assert found.asnumpy().tolist() == [2, 1, -1, -2]


def test_scalar_takes_the_type_of_the_data_first():
    i = mx.nd.array([7, -7, 3], dtype="int32")
    for found, expected in [
        (i / 2, [3, -3, 1]), (i * 1.5, [7, -7, 3]), (i > 1.5, [1, 0, 1]), (i + 1.9, [8, -6, 4]), (10 / i, [1, -1, 3]),
        (i**-1, [0, 0, 0]), (2.5 ** mx.nd.array([2, 3, 0], dtype="int32"), [4, 8, 1]),
    ]:  # fmt: skip
        assert found.dtype == np.int32 and found.asnumpy().tolist() == expected
    assert (mx.nd.array([5, 7], dtype="uint8") - 6).asnumpy().tolist() == [255, 1]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("sqrt", [16, 17], [4, 4]), ("degrees", [1, -2, 5], [57, -114, 286]), ("reciprocal", [1, -2, 5], [1, 0, 0]),
        ("gamma", [1, 5], [1, 24]), ("exp", [1, 2], [2, 7]), ("relu", [1, -2], [1, 0]),
    ],
)  # fmt: skip
def test_integers_stay_integers(name, data, expected):
    found = getattr(mx.nd, name)(mx.nd.array(data, dtype="int32"))
    assert found.dtype == np.int32 and found.asnumpy().tolist() == expected


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("target", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_cast_converts_as_c_does(source, target):
    data = np.array([0, 1.75, 3.25, 100]).astype(source)
    found = mx.nd.cast(mx.nd.array(data, dtype=source), dtype=target)
    assert found.dtype == np.dtype(target).type
    assert found.asnumpy().tolist() == data.astype(target).tolist()


@pytest.mark.parametrize("to", ["uint8", "int8"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bytes_of_large_numbers_are_their_low_ones(dtype, to):
    exponents = np.arange(63)[:, None]
    values = (2.0**exponents * [1, 1.00390625, 1.9999998807907104, -1, -1.00390625, -1.9999998807907104]).astype(dtype).ravel()
    values = values[np.abs(values) < 2.0**63]
    data = mx.nd.array(values, dtype=dtype)
    for some in (data, data[::3]):
        np.testing.assert_array_equal(some.astype(to).asnumpy(), some.asnumpy().astype(np.int64).astype(to))


@pytest.mark.parametrize("target", ["float16", "float64", "int32"])
def test_gradient_of_cast_has_the_type_of_the_data(target):
    x = mx.nd.array([1.5, 2.5])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.cast(x, dtype=target)
    y.backward()
    assert x.grad.dtype == np.float32 and x.grad.asnumpy().tolist() == [1, 1]


def test_amp_casts_leave_other_types_alone():
    def kind(x):
        return x.dtype.__name__

    half, single = mx.nd.ones((2,), dtype="float16"), mx.nd.ones((3,))
    double, integer = mx.nd.ones((4,), dtype="float64"), mx.nd.ones((1,), dtype="int32")
    assert [kind(mx.nd.amp_cast(x, dtype="float16")) for x in (half, single, double, integer)] == [
        "float16", "float16", "float64", "int32",
    ]  # fmt: skip
    for narrow, common in ((False, "float32"), (True, "float16")):
        found = mx.nd.amp_multicast(half, single, double, integer, num_outputs=4, cast_narrow=narrow)
        assert [kind(x) for x in found] == [common, common, "float64", "int32"]
        assert [x.shape for x in found] == [(2,), (3,), (4,), (1,)]


def test_better_than_mxnet():
    """MXNet dies of SIGFPE, or gives NaN, for the first three; the last two lack a second gradient there."""
    i = mx.nd.array([7, -7], dtype="int32")
    assert (i / 0).asnumpy().tolist() == [0, 0] and (i % 0).asnumpy().tolist() == [0, 0]
    assert value_and_grads(mx.nd.broadcast_hypot, [0, 3], [0, 4])[1:] == [[0, np.float32(0.6)], [0, np.float32(0.8)]]
    assert mx.nd.cumsum(mx.nd.array([[1, 2], [3, 4]]), axis=-1).asnumpy().tolist() == [[1, 3], [3, 7]]
    for function, expected in ((lambda x: mx.nd.clip(x, -1, 1) ** 2, 2.0), (mx.nd.square, 2.0)):
        x = mx.nd.array([0.5])
        x.attach_grad()
        with mx.autograd.record():
            first = mx.autograd.grad(function(x), [x], create_graph=True)[0]
        first.backward()
        assert x.grad.asnumpy().tolist() == [expected]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_the_gradient_of_remainders_of_integers_is_zero(dtype):
    """As in MXNet, by arrays and by numbers, in calls and in symbols."""
    x, y = [5, 6, 7], [3, 4, 0]
    assert value_and_grads(mx.nd.broadcast_mod, x, y, dtype=dtype) == [[2, 2, 0], [0] * 3, [0] * 3]
    assert value_and_grads(lambda x: x % 3, x, dtype=dtype) == [[2, 0, 1], [0] * 3]
    assert value_and_grads(lambda x: 7 % x, x, dtype=dtype) == [[2, 1, 0], [0] * 3]
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    given = {"a": mx.nd.array(x, dtype=dtype), "b": mx.nd.array(y, dtype=dtype)}
    found = (mx.sym.broadcast_mod(a, b) * b).bind(mx.cpu(), given, {n: mx.nd.zeros_like(v) for n, v in given.items()})
    found.forward(is_train=True)
    found.backward(mx.nd.ones(3, dtype=dtype))
    assert [found.grad_dict[n].asnumpy().tolist() for n in "ab"] == [[0] * 3, [2, 2, 0]]
