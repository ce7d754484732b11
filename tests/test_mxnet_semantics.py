"""Behaviour that MXNet 1.x code relies on and that NumPy users would not guess.

Every expectation was observed on MXNet 1.9.1, but for the tests named ``..._better``: there mxop differs on purpose.
"""

import json
from functools import partial

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd
from mxop.test_utils import assert_almost_equal

INT = partial(nd.array, [5, -5, 3], dtype="int32")
BYTE = partial(nd.array, [200, 250, 3], dtype="uint8")
FLOAT = partial(nd.array, [1, 2, 3])


def raises(match=None):
    return pytest.raises(mx.MXNetError, match=match)


def check(array, expected, dtype=None):
    """Compare values, shape and, if given, dtype."""
    expected = np.asarray(expected)
    assert array.shape == expected.shape
    assert dtype is None or np.dtype(array.dtype) == np.dtype(dtype)
    assert_almost_equal(array, expected, rtol=1e-6, atol=1e-7, equal_nan=True)


def gradients(f, *values):
    """Return the gradients of ``f(*values)`` for a head gradient of ones."""
    arrays = [nd.array(value) for value in values]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        y = f(*arrays)
    y.backward()
    return [array.grad.asnumpy().tolist() for array in arrays]


# --------------------------------------------------------------------------------------------------------------------
# Broadcasting and scalars
# --------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("lhs", "rhs", "out"),
    [((2, 3), (3,), (2, 3)), ((2, 1), (1, 3), (2, 3)), ((3,), (4, 2, 3), (4, 2, 3)), ((1,), (2, 3), (2, 3))],
)
def test_nd_operators_broadcast(lhs, rhs, out):
    assert (nd.ones(lhs) + nd.ones(rhs)).shape == out
    assert nd.broadcast_mul(nd.ones(lhs), nd.ones(rhs)).shape == out
    inferred = mx.sym.broadcast_add(mx.sym.Variable("a"), mx.sym.Variable("b")).infer_shape(a=lhs, b=rhs)
    assert inferred == ([lhs, rhs], [out], [])


def test_shapes_that_do_not_broadcast():
    with raises():
        nd.broadcast_add(nd.ones((2, 3)), nd.ones((2,)))
    with raises():
        nd.elemwise_add(nd.ones((2, 3)), nd.ones((1, 3)))


def test_sym_operators_do_not_broadcast():
    total = mx.sym.Variable("a") + mx.sym.Variable("b")
    assert json.loads(total.tojson())["nodes"][-1]["op"] == "elemwise_add"
    assert total.infer_shape(a=(2, 3), b=(2, 3)) == ([(2, 3), (2, 3)], [(2, 3)], [])
    with raises():
        total.infer_shape(a=(2, 3), b=(1, 3))


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda i: i * 1.5, [5, -5, 3]),
        (lambda i: 1.5 * i, [5, -5, 3]),
        (lambda i: i + 2.9, [7, -3, 5]),
        (lambda i: i - 2.9, [3, -7, 1]),
        (lambda i: 2.5 - i, [-3, 7, -1]),
        (lambda i: i - 0.5, [5, -5, 3]),
        (lambda i: i / 2, [2, -2, 1]),
        (lambda i: 2 / i, [0, 0, 0]),
        (lambda i: i % 3, [2, 1, 0]),
        (lambda i: -7 % i, [3, -2, 2]),
        (lambda i: i**2, [25, 25, 9]),
        (lambda i: i > 1.5, [1, 0, 1]),
        (lambda i: i >= 4.5, [1, 0, 0]),
        (lambda i: i < 4.5, [0, 1, 1]),
        (lambda i: i <= -4.5, [0, 1, 0]),
        (lambda i: i == 5.5, [1, 0, 0]),
        (lambda i: i != 5.5, [0, 1, 1]),
        (lambda i: nd.maximum(i, 0.5), [5, 0, 3]),
        (lambda i: nd.minimum(i, -0.5), [0, -5, 0]),
    ],
)
def test_a_scalar_is_cast_to_the_dtype_of_the_array(f, expected):
    check(f(INT()), expected, "int32")


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda u: u + 100, [44, 94, 103]),
        (lambda u: u - 201, [255, 49, 58]),
        (lambda u: u * 2, [144, 244, 6]),
        (lambda u: -u, [56, 6, 253]),
    ],
)
def test_unsigned_integers_wrap(f, expected):
    check(f(BYTE()), expected, "uint8")


def test_arrays_of_different_dtypes_raise():
    """But for Python's operators on a floating type and integers: see ``tests/test_conveniences.py``."""
    for f in (
        lambda: INT() + BYTE(),
        lambda: FLOAT() * FLOAT().astype("float64"),
        lambda: nd.broadcast_add(INT(), FLOAT()),
    ):
        with raises("int32|float32"):
            f()


# --------------------------------------------------------------------------------------------------------------------
# Dtypes
# --------------------------------------------------------------------------------------------------------------------
def test_comparisons_return_the_input_dtype():
    check(FLOAT() > 2, [0, 0, 1], "float32")
    check(FLOAT() == FLOAT(), [1, 1, 1], "float32")
    check(nd.broadcast_equal(INT(), INT()), [1, 1, 1], "int32")
    check(nd.broadcast_greater(BYTE(), BYTE()), [0, 0, 0], "uint8")
    check(nd.logical_and(INT(), INT()), [1, 1, 1], "int32")
    check(nd.logical_not(INT()), [0, 0, 0], "int32")


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (nd.exp, [148, 0, 20]),
        (nd.arctan, [1, -1, 1]),
        (nd.sigmoid, [0, 0, 0]),
        (nd.square, [25, 25, 9]),
        (nd.abs, [5, 5, 3]),
        (nd.sign, [1, -1, 1]),
        (nd.sum, [3]),
        (nd.mean, [1]),
        (nd.prod, [-75]),
        (nd.max, [5]),
        (nd.min, [-5]),
        (nd.norm, [7]),
    ],
)
def test_integers_stay_integers(f, expected):
    check(f(INT()), expected, "int32")


def test_a_sum_of_bytes_wraps():
    check(nd.sum(nd.ones((3,), dtype="uint8") * 200), [88], "uint8")


@pytest.mark.parametrize("f", [lambda i: nd.dot(i, i), nd.softmax, nd.log_softmax])
def test_operators_without_integers(f):
    with raises("int32|float"):
        f(INT())


def test_a_power_that_is_assigned_makes_a_new_array():
    x = FLOAT()
    y = x
    y **= 2
    check(x, [1, 2, 3])
    check(y, [1, 4, 9])
    x.attach_grad()
    with autograd.record():
        loss = x * 2
        loss **= 2  # MXNet computes this, where it refuses loss *= 2
    loss.backward()
    check(x.grad, [8, 16, 24])


def test_array_makes_float32():
    for source in ([1, 2], np.ones(2), np.ones(2, "int64")):
        assert nd.array(source).dtype == np.float32
    assert nd.array(nd.ones((2,), dtype="float64")).dtype == np.float64


def test_softmax_in_another_dtype_better():
    """float32 of float16 is computed from float16 and not rounded to it: MXNet's [0.08996582, 0.24462891, 0.66503906] is."""
    x = nd.array([1, 2, 3], dtype="float16")
    found = [f(x, dtype="float32").asnumpy() for f in (nd.softmax, nd.softmin, nd.log_softmax)]
    softmax, logarithm = [0.09003057, 0.24472848, 0.66524094], [-2.4076059, -1.4076059, -0.40760595]
    for got, want in zip(found, (softmax, softmax[::-1], logarithm), strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-7)


# --------------------------------------------------------------------------------------------------------------------
# Shapes: reshape
# --------------------------------------------------------------------------------------------------------------------
RESHAPES = [
    ((2, 3, 4), (4, 0, 2), (4, 3, 2)),
    ((2, 3, 4), (0, 0, 4), (2, 3, 4)),
    ((2, 3, 4), (6, 1, -1), (6, 1, 4)),
    ((2, 3, 4), (3, -1, 8), (3, 1, 8)),
    ((2, 3, 4), (-1,), (24,)),
    ((2, 3, 6), (-1, 0), (12, 3)),
    ((2, 3, 4), (-2,), (2, 3, 4)),
    ((2, 3, 4), (2, -2), (2, 3, 4)),
    ((2, 3, 4), (-2, 1, 1), (2, 3, 4, 1, 1)),
    ((2, 3, 4), (-3, 4), (6, 4)),
    ((2, 3, 4), (0, -3), (2, 12)),
    ((2, 3, 4), (-3, -2), (6, 4)),
    ((2, 3, 5, 5), (0, -3, -2), (2, 15, 5)),
    ((2, 3, 4), (-4, 1, 2, -2), (1, 2, 3, 4)),
    ((2, 3, 4), (2, -4, -1, 3, -2), (2, 1, 3, 4)),
    ((2, 3, 4), (-4, 1, -1, 0, 0), (1, 2, 3, 4)),
    ((2, 3, 6), (-4, -1, 2, -3), (1, 2, 18)),
]
REVERSED = [
    ((10, 5, 4), (-1, 0), (50, 4)),
    ((2, 3, 4), (0, -1), (3, 8)),
    ((2, 3, 4), (-3, 0), (6, 4)),
    ((2, 3, 6), (0, -3), (2, 18)),
    ((2, 3, 4), (-2,), (2, 3, 4)),
    ((2, 3, 6), (1, -2), (1, 2, 3, 6)),
    ((2, 3, 6), (3, 12), (3, 12)),
    ((8, 3, 3, 3, 4, 4), (0, 0, -1, 0), (3, 3, 96, 4)),
    ((2, 3, 6), (-2, -1, 3, -4), (2, 3, 2, 3)),  # the code stands to the right of its two parts, too
    ((2, 3, 6), (0, 0, 2, -1, -4), (2, 3, 2, 3)),
]


@pytest.mark.parametrize(("before", "codes", "after"), RESHAPES)
def test_reshape_codes(before, codes, after):
    values = np.arange(np.prod(before)).reshape(before)
    check(nd.array(values).reshape(codes), values.reshape(after))
    check(nd.reshape(nd.array(values), shape=codes), values.reshape(after))
    inferred = mx.sym.reshape(mx.sym.Variable("x"), shape=codes).infer_shape(x=before)
    assert inferred == ([before], [after], [])


@pytest.mark.parametrize(("before", "codes", "after"), REVERSED)
def test_reshape_codes_from_the_right(before, codes, after):
    values = np.arange(np.prod(before)).reshape(before)
    check(nd.array(values).reshape(codes, reverse=True), values.reshape(after))
    check(nd.reshape(nd.array(values), shape=codes, reverse=True), values.reshape(after))


@pytest.mark.parametrize("codes", [(5, 5), (-1, -1), (0, 0, 0, 0), (-4, 2, 2, -2), (-4, -1, -1, -2), (-3, -3), (7, -1), (-6,)])
def test_reshapes_that_do_not_fit(codes):
    with raises():
        nd.reshape(nd.zeros((2, 3, 4)), shape=codes)


def test_reshape_by_method():
    x = nd.zeros((2, 3, 4))
    assert x.reshape(4, 6).shape == x.reshape(shape=(4, 6)).shape == (4, 6)
    assert x.reshape(-1).shape == (24,)


# --------------------------------------------------------------------------------------------------------------------
# Shapes: reductions
# --------------------------------------------------------------------------------------------------------------------
ROWS = [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (nd.sum, [15]),
        (nd.max, [5]),
        (nd.min, [0]),
        (nd.mean, [2.5]),
        (nd.prod, [0]),
        (nd.norm, [55**0.5]),
        (partial(nd.sum, axis=()), [15]),
        (partial(nd.norm, axis=()), [55**0.5]),
        (partial(nd.sum, axis=(), exclude=True), [15]),
        (partial(nd.sum, axis=(0, 1)), [15]),
        (partial(nd.sum, axis=1), [3, 12]),
        (partial(nd.sum, axis=-1), [3, 12]),
        (partial(nd.sum, axis=0, exclude=True), [3, 12]),
        (partial(nd.sum, axis=1, keepdims=True), [[3], [12]]),
        (partial(nd.sum, keepdims=True), [[15]]),
        (partial(nd.min, axis=(1,)), [0, 3]),
        (partial(nd.mean, axis=0), [1.5, 2.5, 3.5]),
        (partial(nd.norm, ord=1), [15]),
        (partial(nd.norm, ord=1, axis=1), [3, 12]),
        (partial(nd.norm, axis=1, keepdims=True), [[5**0.5], [50**0.5]]),
        (partial(nd.norm, axis=(0, 1)), [55**0.5]),
    ],
)
def test_reductions(f, expected):
    check(f(nd.array(ROWS)), expected)


def test_a_full_reduction_has_one_element():
    assert nd.array(ROWS).sum().asscalar() == 15
    assert mx.sym.sum(mx.sym.Variable("x")).infer_shape(x=(2, 3, 4)) == ([(2, 3, 4)], [(1,)], [])


@pytest.mark.parametrize("arguments", [{"axis": (0, 0)}, {"axis": (0, -2)}, {"axis": 2}, {"axis": -3}])
def test_axes_that_do_not_fit(arguments):
    with raises():
        nd.sum(nd.array(ROWS), **arguments)


def test_norm_has_two_orders():
    with raises():
        nd.norm(nd.array(ROWS), ord=3)


# --------------------------------------------------------------------------------------------------------------------
# Shapes: the rest
# --------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("f", "after"),
    [
        (nd.transpose, (4, 3, 2)),
        (partial(nd.transpose, axes=()), (4, 3, 2)),
        (partial(nd.transpose, axes=(1, 0, 2)), (3, 2, 4)),
        (partial(nd.expand_dims, axis=0), (1, 2, 3, 4)),
        (partial(nd.expand_dims, axis=-1), (2, 3, 4, 1)),
        (partial(nd.expand_dims, axis=-4), (1, 2, 3, 4)),
        (partial(nd.slice, begin=(0, 1), end=(1, 3)), (1, 2, 4)),
        (partial(nd.slice, begin=(None, 0), end=(None, 2), step=(None, 2)), (2, 1, 4)),
    ],
)
def test_shapes(f, after):
    assert f(nd.zeros((2, 3, 4))).shape == after


def test_expand_dims_outside():
    with raises():
        nd.expand_dims(nd.zeros((2, 3, 4)), axis=4)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"begin": (0,), "end": (1,)}, [[0, 1, 2]]),
        ({"begin": (0, -2), "end": (2, None)}, [[1, 2], [4, 5]]),
        ({"begin": (0, 1), "end": (2, 100)}, [[1, 2], [4, 5]]),
        ({"begin": (None, -1), "end": (None, None), "step": (None, -1)}, [[2, 1, 0], [5, 4, 3]]),
        ({"begin": (None, None), "end": (None, None), "step": (-1, -2)}, [[5, 3], [2, 0]]),
    ],
)
def test_slice(arguments, expected):
    check(nd.slice(nd.array(ROWS), **arguments), expected)


def test_slice_with_step_zero():
    with raises():
        nd.slice(nd.array(ROWS), begin=(0, 0), end=(2, 2), step=(1, 0))


def test_broadcast_to():
    one = nd.array([[1, 2, 3]])
    check(nd.broadcast_to(one, shape=(2, 3)), [[1, 2, 3]] * 2)
    check(nd.broadcast_to(one, shape=(2, 0)), [[1, 2, 3]] * 2)  # 0 keeps the size
    check(nd.broadcast_to(nd.array([1, 2, 3]), shape=(2, 3)), [[1, 2, 3]] * 2)  # as NumPy; MXNet wants equal ranks
    with raises():
        nd.broadcast_to(nd.ones((2, 3)), shape=(4, 3))


def test_broadcast_like():
    assert nd.broadcast_like(nd.ones((1, 3)), nd.ones((4, 3))).shape == (4, 3)
    lhs, rhs = nd.ones((1, 2, 3)), nd.ones((5, 6, 7))
    assert nd.broadcast_like(lhs, rhs, lhs_axes=(0,), rhs_axes=(2,)).shape == (7, 2, 3)
    assert nd.broadcast_like(lhs, rhs, lhs_axes=(-3,), rhs_axes=(-1,)).shape == (7, 2, 3)


def test_broadcast_axis():
    x = nd.array([[[1], [2]]])
    check(nd.broadcast_axis(x, axis=(0, 2), size=(2, 3)), np.broadcast_to([[[1], [2]]], (2, 2, 3)))
    assert nd.broadcast_axes(x, axis=0, size=3).shape == (3, 2, 1)
    with raises():
        nd.broadcast_axis(x, axis=1, size=3)  # its size is 2, not 1


@pytest.mark.parametrize(
    ("lhs", "rhs", "arguments", "after"),
    [
        ((2, 3), (3, 4), {}, (2, 4)),
        ((3,), (3,), {}, (1,)),
        ((2, 3), (3,), {}, (2,)),
        ((3,), (3, 2), {}, (2,)),
        ((2, 3, 4), (4,), {}, (2, 3)),
        ((2, 3, 4), (4, 5, 6), {}, (2, 3, 5, 6)),
        ((3, 2), (3, 4), {"transpose_a": True}, (2, 4)),
        ((2, 3), (4, 3), {"transpose_b": True}, (2, 4)),
        ((2, 3, 4), (2, 5), {"transpose_a": True}, (3, 4, 5)),
        ((2, 3), (4, 5, 3), {"transpose_b": True}, (2, 4, 5)),
    ],
)
def test_dot_contracts_the_last_axis_with_the_first(lhs, rhs, arguments, after):
    a, b = np.random.rand(*lhs), np.random.rand(*rhs)
    # The first axis is moved behind the others, and the last one before them, by a transposition.
    a_axes = a.ndim - 1 if "transpose_a" not in arguments else 0
    b_axes = 0 if "transpose_b" not in arguments else b.ndim - 1
    expected = np.tensordot(a, b, axes=(a_axes, b_axes)).reshape(after)
    found = nd.dot(nd.array(a, dtype="float64"), nd.array(b, dtype="float64"), **arguments)
    assert found.shape == after
    assert_almost_equal(found, expected, rtol=1e-10)


def test_dot_shapes_that_do_not_fit():
    with raises():
        nd.dot(nd.ones((2, 3)), nd.ones((2, 3)))


def test_unknown_shapes_are_zero():
    x = mx.sym.exp(mx.sym.Variable("x"))
    assert x.infer_shape_partial(x=(0, 3)) == ([(0, 3)], [(0, 3)], [])
    assert x.infer_shape_partial() == ([()], [()], [])


# --------------------------------------------------------------------------------------------------------------------
# Layers
# --------------------------------------------------------------------------------------------------------------------
def test_fully_connected_shapes():
    data = mx.sym.Variable("data")
    flat = mx.sym.FullyConnected(data, num_hidden=5, name="fc")
    assert flat.list_arguments() == ["data", "fc_weight", "fc_bias"]
    assert flat.infer_shape(data=(2, 3, 4)) == ([(2, 3, 4), (5, 12), (5,)], [(2, 5)], [])
    last = mx.sym.FullyConnected(data, num_hidden=5, flatten=False, name="fc")
    assert last.infer_shape(data=(2, 3, 4)) == ([(2, 3, 4), (5, 4), (5,)], [(2, 3, 5)], [])


def test_a_bias_that_is_a_column():
    data, weight, bias = nd.ones((2, 3)), nd.ones((4, 3)), nd.arange(4).reshape((4, 1))
    found = nd.FullyConnected(data, weight, bias, num_hidden=4)
    assert found.asnumpy().tolist() == [[3, 4, 5, 6]] * 2
    found = nd.FullyConnected(nd.ones((2, 2, 3)), weight, bias, num_hidden=4, flatten=False)
    assert found.asnumpy().tolist() == [[[3, 4, 5, 6]] * 2] * 2
    net = mx.sym.FullyConnected(num_hidden=4, name="fc")
    assert net.infer_shape(fc_data=(2, 3), fc_bias=(4, 1)) == ([(2, 3), (4, 3), (4, 1)], [(2, 4)], [])
    executor = net.simple_bind(mx.cpu(), fc_data=(2, 3), fc_bias=(4, 1))  # whose backward fails in MXNet
    executor.forward(is_train=True)
    executor.backward(nd.ones((2, 4)))
    assert executor.grad_dict["fc_bias"].asnumpy().tolist() == [[2]] * 4
    for shape in ((1, 4), (2, 2), (4, 1, 1)):
        with pytest.raises(ValueError, match="bias has shape"):
            nd.FullyConnected(data, weight, nd.ones(shape), num_hidden=4)


def test_inferred_inputs():
    product = mx.sym.linalg.gemm(mx.sym.Variable("a"), mx.sym.Variable("b"), mx.sym.Variable("c"))
    assert product.infer_shape(a=(2, 3), b=(3, 4)) == ([(2, 3), (3, 4), (2, 4)], [(2, 4)], [])
    crossed = mx.sym.linalg.gemm(*(mx.sym.Variable(n) for n in "abc"), transpose_a=True, axis=-3)
    assert crossed.infer_shape(a=(3, 7, 2), b=(3, 7, 4)) == ([(3, 7, 2), (3, 7, 4), (2, 7, 4)], [(2, 7, 4)], [])
    with pytest.raises(ValueError, match="cannot be multiplied"):
        product.infer_shape(a=(2, 3), b=(4, 4))
    chosen = mx.sym.batch_take(mx.sym.Variable("a"), mx.sym.Variable("i"))
    assert chosen.infer_type(a="float32") == ([np.float32, np.int32], [np.float32], [])
    sums = mx.sym.multi_sum_sq(num_arrays=2, name="n")
    assert sums.list_arguments() == ["n_array_0", "n_array_1"]
    assert sums.infer_type(n_array_0="float16") == ([np.float16, np.float16], [np.float32], [])
    with pytest.raises(TypeError, match="array_0 has dtype float16 but array_1 has dtype float32"):
        nd.multi_sum_sq(nd.ones(2, dtype="float16"), nd.ones(2), num_arrays=2)
    with pytest.raises(TypeError, match="multi_sum_sq: needs floating-point data, got int32"):
        nd.multi_sum_sq(nd.ones(2, dtype="int32"), num_arrays=1)


def test_allclose_has_no_dimensions():
    found = nd.contrib.allclose(nd.ones((2,)), nd.ones((2,)))
    assert found.shape == () and found.dtype == np.uint8 and found.asscalar() == 1 and bool(found)
    a = mx.sym.Variable("a")
    assert mx.sym.contrib.allclose(a, a).eval(a=nd.ones(2))[0].shape == ()


def test_fully_connected_values():
    x, w, b = np.random.rand(2, 3, 4), np.random.rand(5, 12), np.random.rand(5)
    arrays = [nd.array(v, dtype="float64") for v in (x, w, b)]
    assert_almost_equal(nd.FullyConnected(*arrays, num_hidden=5), x.reshape(2, 12) @ w.T + b, rtol=1e-10)
    bare = nd.FullyConnected(*arrays[:2], num_hidden=5, no_bias=True)
    assert_almost_equal(bare, x.reshape(2, 12) @ w.T, rtol=1e-10)
    with raises():
        nd.FullyConnected(arrays[0], nd.ones((5, 4), dtype="float64"), num_hidden=5, no_bias=True)


@pytest.mark.parametrize(
    ("act_type", "expected"),
    [
        ("relu", [0, 0, 1]),
        ("sigmoid", [0.26894142, 0.5, 0.73105858]),
        ("tanh", [-0.76159416, 0, 0.76159416]),
        ("softrelu", [0.31326169, 0.69314718, 1.31326169]),
        ("softsign", [-0.5, 0, 0.5]),
    ],
)
def test_activation(act_type, expected):
    check(nd.Activation(nd.array([-1, 0, 1]), act_type=act_type), expected)


def test_activation_of_an_unknown_type():
    with raises("act_type"):
        nd.Activation(nd.array([-1, 0, 1]), act_type="swoosh")


def test_softmax():
    x = nd.array([[1, 2, 3], [0, 0, 0]])
    check(nd.softmax(x), [[0.09003057, 0.24472848, 0.66524095], [1 / 3] * 3])
    check(nd.softmax(x, axis=0), [[0.7310586, 0.8807970, 0.9525741], [0.2689414, 0.1192029, 0.0474259]])
    check(nd.softmax(x, temperature=2.0), [[0.18632373, 0.30719589, 0.50648040], [1 / 3] * 3])
    check(nd.log_softmax(x), [[-2.4076059, -1.4076059, -0.4076059], [-1.0986123] * 3])


def test_softmax_does_not_overflow():
    check(nd.softmax(nd.array([1e4, 0])), [1, 0])
    check(nd.log_softmax(nd.array([1e4, 0])), [0, -1e4])


def test_softmax_with_lengths():
    x = nd.array([[1, 2, 3], [0, 0, 0]])
    found = nd.softmax(x, length=nd.array([2, 3], dtype="int32"), use_length=True, axis=1)
    check(found, [[0.26894142, 0.73105858, 0], [1 / 3] * 3])


def test_relu_keeps_nan():
    check(nd.relu(nd.array([np.nan, -1, 1])), [np.nan, 0, 1])


# --------------------------------------------------------------------------------------------------------------------
# Gradients
# --------------------------------------------------------------------------------------------------------------------
def test_every_tie_of_a_reduction_gets_the_whole_gradient():
    assert gradients(nd.max, [1, 3, 3, 2]) == [[0, 1, 1, 0]]
    assert gradients(nd.min, [1, 1, 2]) == [[1, 1, 0]]
    assert gradients(partial(nd.max, axis=1), [[1, 1], [2, 3]]) == [[[1, 1], [0, 1]]]


@pytest.mark.parametrize("f", [nd.broadcast_maximum, nd.maximum])
def test_a_tie_of_maximum_goes_to_lhs(f):
    assert gradients(f, [1, 2, 3], [2, 2, 2]) == [[0, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize("f", [nd.broadcast_minimum, nd.minimum])
def test_a_tie_of_minimum_goes_to_lhs(f):
    assert gradients(f, [1, 2, 3], [2, 2, 2]) == [[1, 1, 0], [0, 0, 1]]


def test_a_tie_with_a_scalar_goes_to_the_array():
    assert gradients(lambda x: nd.maximum(x, 2), [1, 2, 3]) == [[0, 1, 1]]
    assert gradients(lambda x: nd.minimum(x, 2), [1, 2, 3]) == [[1, 1, 0]]


@pytest.mark.parametrize(
    ("f", "values", "expected"),
    [
        (partial(nd.clip, a_min=-1, a_max=1), [-2, -1, 0, 1, 2], [0, 1, 1, 1, 0]),
        (nd.relu, [-1, 0, 1], [0, 0, 1]),
        (partial(nd.Activation, act_type="relu"), [-1, 0, 1], [0, 0, 1]),
        (nd.abs, [-1, 0, 1], [-1, 0, 1]),
        (nd.sign, [-1, 0, 1], [0, 0, 0]),
        (nd.sqrt, [0, 1], [np.inf, 0.5]),
        (nd.cbrt, [0], [np.inf]),
        (nd.rsqrt, [0], [-np.inf]),
        (nd.log, [0, 1], [np.inf, 1]),
        (nd.reciprocal, [0, 1], [-np.inf, -1]),
        (nd.round, [0.5, 1], [0, 0]),
        (nd.floor, [0.5, 1], [0, 0]),
        (nd.ceil, [0.5, 1], [0, 0]),
        (nd.trunc, [0.5, 1], [0, 0]),
        (nd.BlockGrad, [1, 2], [0, 0]),
        (nd.arcsin, [0, 1], [1, np.inf]),
        (nd.arctanh, [0, 1], [1, np.inf]),
        (lambda x: x > 1, [0, 1], [0, 0]),
        (partial(nd.norm, ord=1), [0, -1, 2], [0, -1, 1]),
    ],
)
def test_subgradients(f, values, expected):
    assert gradients(f, values) == [expected]


def test_mod_gradients():
    assert gradients(nd.broadcast_mod, [5.5, -5.5], [2, 2]) == [[1, 1], [-2, 3]]


def test_gradients_of_a_broadcast_are_summed():
    assert gradients(nd.broadcast_mul, np.ones((2, 3)), np.full((1, 3), 2)) == [[[2, 2, 2]] * 2, [[2, 2, 2]]]
    assert gradients(partial(nd.broadcast_axis, axis=0, size=3), [[1, 2]]) == [[[3, 3]]]


def test_norm_at_zero_better():
    """MXNet gives NaN, which spreads; 0 is a subgradient."""
    assert gradients(nd.norm, [0, 0]) == [[0, 0]]


@pytest.mark.parametrize(("values", "expected"), [([0, 2, 3], [6, 0, 0]), ([0, 0, 3], [0, 0, 0]), ([1, 2, 3], [6, 3, 2])])
def test_prod_over_zeros_better(values, expected):
    """MXNet divides the product by each factor, and so gives NaN at a zero."""
    assert gradients(nd.prod, values) == [expected]


def test_integers_have_gradients():
    x = nd.array([1, 2], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = x * x
    y.backward()
    check(x.grad, [2, 4], "int32")


def _recorded_square(grad_req="write"):
    x = nd.array([1, 2])
    x.attach_grad(grad_req)
    with autograd.record():
        y = x * x
    return x, y


def test_backward_twice():
    x, y = _recorded_square()
    y.backward()
    with raises("retain_graph"):
        y.backward()
    x, y = _recorded_square()
    y.backward(retain_graph=True)
    y.backward()
    check(x.grad, [2, 4])


def test_backward_of_what_was_not_recorded():
    x = nd.array([1, 2])
    x.attach_grad()
    with raises("record"):
        (x * x).backward()


def test_head_gradients_and_accumulation():
    x, y = _recorded_square("add")
    y.backward(nd.array([10, 1]))
    with autograd.record():
        y = x * x
    y.backward()
    check(x.grad, [22, 8])


def test_detach_stops_the_gradient():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = (x * x).detach() * x
    y.backward()
    check(x.grad, [1, 4])


def _write_element(x, y):
    y[0] = 1


def _write_output(x, y):
    y[:] = 1


def _write_input(x, y):
    x[:] = 5


def _add_to_output(x, y):
    y += 1


def _add_to_input(x, y):
    x += 1


def _out_is_output(x, y):
    nd.exp(x, out=y)


def _out_is_input(x, y):
    nd.exp(y, out=x)


WRITES = [_write_element, _write_output, _write_input, _add_to_output, _add_to_input, _out_is_output, _out_is_input]


def _write_while_recording(write):
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = x * x
        with raises():
            write(x, y)
    return x, y


@pytest.mark.parametrize("write", WRITES)
def test_writing_in_place_to_a_recorded_array(write):
    _write_while_recording(write)


@pytest.mark.parametrize("write", WRITES)
def test_a_refused_write_writes_nothing_better(write):
    """MXNet has overwritten the array by the time it refuses to record that."""
    x, y = _write_while_recording(write)
    check(x, [1, 2])
    check(y, [1, 4])
    y.backward()
    check(x.grad, [2, 4])


def test_modes():
    def state():
        return autograd.is_recording(), autograd.is_training()

    assert state() == (False, False)
    with autograd.record():
        assert state() == (True, True)
        with autograd.pause():
            assert state() == (False, False)
        with autograd.predict_mode():
            assert state() == (True, False)
    with autograd.record(train_mode=False):
        assert state() == (True, False)
        with autograd.train_mode():
            assert state() == (True, True)
    assert state() == (False, False)


# --------------------------------------------------------------------------------------------------------------------
# Rounding
# --------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (nd.round, [-3, -2, -1, 1, 2, 3, 0, -1]),  # ties away from zero
        (nd.rint, [-3, -2, -1, 0, 1, 2, 0, -1]),  # ties down, not to even
        (nd.fix, [-2, -1, 0, 0, 1, 2, 0, 0]),
        (nd.trunc, [-2, -1, 0, 0, 1, 2, 0, 0]),
        (nd.floor, [-3, -2, -1, 0, 1, 2, 0, -1]),
        (nd.ceil, [-2, -1, 0, 1, 2, 3, 1, 0]),
    ],
)
def test_rounding(f, expected):
    check(f(nd.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.3, -0.7])), expected)


def test_mod_takes_the_sign_of_the_divisor():
    lhs, rhs = nd.array([5.5, -5.5, 5.5, -5.5]), nd.array([2, 2, -2, -2])
    check(lhs % rhs, [1.5, 0.5, -0.5, -1.5])
    check(nd.broadcast_mod(lhs, rhs), [1.5, 0.5, -0.5, -1.5])


def test_mod_by_zero_is_zero():
    check(FLOAT() % 0, [0, 0, 0])
    check(3 % nd.array([2, -2, 0]), [1, -1, 0])


def test_division_by_zero():
    check(nd.array([1, -1, 0]) / 0, [np.inf, -np.inf, np.nan])


# --------------------------------------------------------------------------------------------------------------------
# Found by running the same calls under both
# --------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("act_type", ["elu", "selu"])
def test_slopes_far_above_zero(act_type):
    """exp overflows there, in the branch that is not taken."""
    x = nd.array([90, 3e4, -200, 0])
    x.attach_grad()
    with autograd.record():
        y = nd.LeakyReLU(x, act_type=act_type, slope=0.25)
        (first,) = autograd.grad(y, [x], create_graph=True, retain_graph=True)
    first.backward()
    scale, alpha = (1, 0.25) if act_type == "elu" else (1.0507010, 1.7580993 / 1.0507010)
    check(first, [scale, scale, 0, scale * alpha])
    check(x.grad, [0, 0, 0, scale * alpha])


def test_prelu_of_a_vector():
    check(nd.LeakyReLU(nd.array([-1, 2, -3]), nd.array([0.1, 0.2, 0.3]), act_type="prelu"), [-0.1, 2, -0.9])


def test_python_functions_of_two_numbers():
    found = (nd.maximum(3, 4), nd.add(1, 2), nd.power(2, 3), nd.equal(1, 1), nd.greater(1, 2), mx.sym.hypot(3, 4))
    assert found == (4, 3, 8, 1, 0, 5)


def test_names_and_attributes_of_symbols():
    a = mx.sym.Variable("a")
    assert mx.sym.split(a, num_outputs=1, name="s").list_outputs() == ["s_output0"]
    with mx.name.NameManager():
        assert mx.sym.split_v2(a, 2).list_outputs() == ["_split_v20_output0", "_split_v20_output1"]
        assert mx.sym.split_v2(a, 1).list_outputs() == ["_split_v21_output"]
    assert a.transpose(1, 0).infer_shape(a=(2, 3))[1] == a.transpose((1, 0)).infer_shape(a=(2, 3))[1] == [(3, 2)]
    assert mx.sym.exp(a, name="q").attr("name") == "q" and a.attr("name") == "a"
    assert mx.sym.exp(a, name="q", lr_mult=2).attr_dict() == {"q": {"__lr_mult__": "2", "lr_mult": "2"}}


def test_executors_cast_scalars_as_calls_do():
    x, a = nd.array([-1, 2, 3], dtype="int8"), mx.sym.Variable("a")
    for f in (lambda v: v**1.5, lambda v: 1.5**v, lambda v: v % 2.5, lambda v: v / 1.9):
        check(f(a).bind(mx.cpu(), {"a": x}).forward()[0], f(x).asnumpy(), "int8")


# ---- calls -----------------------------------------------------------------------------------------------------------
def test_out_and_name_may_follow_the_parameters_by_position():
    x, y = nd.array([1.0, 4.0]), nd.zeros((2,))
    assert nd.sqrt(x, y) is y
    assert y.asnumpy().tolist() == [1, 2]
    nd.sqrt(x, y, "name")
    total = nd.zeros((1,))
    nd.sum(x, None, False, False, total)
    assert total.asscalar() == 5
    with pytest.raises(TypeError, match="out is given twice"):
        nd.sqrt(x, y, out=y)
    with pytest.raises(TypeError, match="out must be an NDArray"):
        nd.sqrt(x, 3)


@pytest.mark.parametrize("n", [63, 64, 200, 239, 240, 477, 478, 1000])
def test_a_sum_of_many_arrays(n):
    arrays = [nd.full((2, 3), i) for i in range(n)]
    total = (np.arange(n).sum() * np.ones((2, 3))).tolist()
    for a in arrays:
        a.attach_grad("add")
    with mx.autograd.record():
        found = nd.add_n(*arrays)
    found.backward()
    symbol = mx.sym.load_json(mx.sym.add_n(*[mx.sym.var(f"x{i}") for i in range(n)]).tojson())
    executor = symbol.bind(mx.cpu(), arrays, [a.grad for a in arrays], "add")
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == found.asnumpy().tolist() == total
    executor.backward(nd.ones((2, 3)))
    assert all(a.grad.asnumpy().tolist() == [[2] * 3] * 2 for a in arrays)
    assert nd.add_n(*arrays, num_args=n, out=arrays[-1]).asnumpy().tolist() == arrays[-1].asnumpy().tolist() == total


def test_many_arrays_are_checked_together():
    many = [nd.ones((2,))] * 500
    assert nd.multi_all_finite(*many, num_arrays=500).item() == 1
    assert nd.multi_all_finite(*many, nd.array([1, np.inf]), num_arrays=501).item() == 0
    for last in (nd.ones((3,)), nd.ones((2,), dtype="float64")):
        with pytest.raises(mx.MXNetError, match="arg500 has"):
            nd.add_n(*many, last)
