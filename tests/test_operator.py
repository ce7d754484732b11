"""Operators as the tutorials use them: `quadratic` through every layer, and gradients of orders 1 to 4."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd
from mxop.test_utils import (
    assert_almost_equal,
    check_numeric_gradient,
    check_symbolic_backward,
    check_symbolic_forward,
    rand_shape_nd,
    with_seed,
)


# --------------------------------------------------------------------------------------------------------------------
# quadratic
# --------------------------------------------------------------------------------------------------------------------
@with_seed()
def test_quadratic_function():
    def f(x, a, b, c):
        return a * x**2 + b * x + c

    a = np.random.random_sample()
    b = np.random.random_sample()
    c = np.random.random_sample()
    data = mx.symbol.Variable("data")
    quad_sym = mx.sym.contrib.quadratic(data=data, a=a, b=b, c=c)
    for dtype in [np.float16, np.float32, np.float64]:
        tol = 1e-2 if dtype is np.float16 else 1e-5
        for ndim in range(1, 6):
            shape = rand_shape_nd(ndim, 5)
            data_np = np.random.randn(*shape).astype(dtype)
            expected = f(data_np, a, b, c)
            backward_expected = 2 * a * data_np + b

            # check imperative forward
            output = mx.nd.contrib.quadratic(mx.nd.array(data_np), a=a, b=b, c=c)
            assert_almost_equal(output.asnumpy(), expected, rtol=tol, atol=tol)
            # check forward
            check_symbolic_forward(quad_sym, [data_np], [expected], rtol=tol, atol=tol)
            # check backward
            check_symbolic_backward(quad_sym, [data_np], [np.ones(expected.shape)], [backward_expected], rtol=tol, atol=tol)
            # check backward using finite difference
            check_numeric_gradient(quad_sym, [data_np], atol=0.001)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@with_seed()
def test_quadratic_in_its_own_dtype(dtype):
    """The test above casts to float32, as MXNet's utilities do unless told; here each dtype computes as itself."""
    x = np.random.randn(3, 4).astype(dtype)
    wide = x.astype(np.float64)
    quad_sym = mx.sym.contrib.quadratic(mx.sym.Variable("data"), a=0.5, b=2.0, c=3.0)
    tol = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-14}[dtype]
    expected, backward_expected = 0.5 * wide**2 + 2 * wide + 3, wide + 2
    outputs = check_symbolic_forward(quad_sym, [x], [expected], tol, tol, dtype="asnumpy")
    grads = check_symbolic_backward(quad_sym, [x], [np.ones_like(x)], [backward_expected], tol, tol, dtype="asnumpy")
    assert outputs[0].dtype == grads["data"].dtype == dtype
    check_numeric_gradient(quad_sym, [x], dtype=dtype)


@pytest.mark.parametrize("namespace", [mx.nd, mx.nd.contrib])
def test_quadratic_example(namespace):
    y = namespace.quadratic(mx.nd.array([[1, 2], [3, 4]]), a=1, b=2, c=3)
    assert y.asnumpy().tolist() == [[6, 11], [18, 27]]


def test_mutual_inference_example():
    a = mx.sym.Variable("a", shape=(2, 0))
    b = mx.sym.Variable("b")
    c = mx.sym.Variable("c", shape=(0, 3))
    d = a * b + b * c
    assert d.infer_shape() == ([(2, 3), (2, 3), (2, 3)], [(2, 3)], [])


def test_quadratic_infers_its_input_from_its_output():
    x = mx.sym.Variable("x")
    y = mx.sym.contrib.quadratic(x, a=1.0) + mx.sym.Variable("y", shape=(4, 5))
    assert y.infer_shape() == ([(4, 5), (4, 5)], [(4, 5)], [])


def test_quadratic_simple_bind_with_automatic_names():
    with mx.name.NameManager():
        quad_func = mx.sym.quadratic()
        assert quad_func.list_arguments() == ["quadratic0_data"]
        quad_exe = quad_func.simple_bind(ctx=mx.cpu(), quadratic0_data=(1,))
    assert quad_exe.forward(quadratic0_data=mx.nd.array([2.0]))[0].asnumpy().tolist() == [0.0]


# --------------------------------------------------------------------------------------------------------------------
# Gradients of higher order
# --------------------------------------------------------------------------------------------------------------------
def test_second_order_example():
    x = nd.array([1, 2, 3])
    x.attach_grad()
    with autograd.record():
        y = nd.sin(x)
        # y_grad is first order gradient of y and should be cos(x)
        y_grad = autograd.grad(y, x, create_graph=True, retain_graph=True)[0]
    # this call should calculate the second order of y w.r.t x which should be -sin(x)
    y_grad.backward()
    assert_almost_equal(y_grad, np.cos([1, 2, 3]), rtol=1e-6)
    assert_almost_equal(x.grad, -np.sin([1, 2, 3]), rtol=1e-6)


def test_second_order_example_outside_record():
    """The page lost its indentation; `grad` records by itself, so it may as well stand after the block."""
    x = nd.array([1, 2, 3])
    x.attach_grad()
    with autograd.record():
        y = nd.sin(x)
    y_grad = autograd.grad(y, x, create_graph=True, retain_graph=True)[0]
    y_grad.backward()
    assert_almost_equal(x.grad, -np.sin([1, 2, 3]), rtol=1e-6)


def _away_from_zero(shape):
    x = np.random.uniform(0.3, 1.5, shape)
    return x * np.random.choice([-1, 1], shape)


# The nine operators that the second-order proposal lists, each with the shapes of its inputs.
NINE = {
    "exp": (nd.exp, [(2, 3)]),
    "elemwise_mul": (nd.elemwise_mul, [(2, 3), (2, 3)]),
    "sin": (nd.sin, [(2, 3)]),
    "cos": (nd.cos, [(2, 3)]),
    "relu": (nd.relu, [(2, 3)]),
    "dot": (nd.dot, [(2, 3), (3, 2)]),
    "negative": (nd.negative, [(2, 3)]),
    "softmax": (nd.softmax, [(2, 3)]),
    "sigmoid": (nd.sigmoid, [(2, 3)]),
}
# A gradient that is the same everywhere has no path back to its input, which MXNet refuses to differentiate. So the
# (piecewise) linear ones are taken to higher orders through a power only.
CURVED = ["exp", "sin", "cos", "softmax", "sigmoid"]


def _array(value):
    array = nd.array(value, dtype="float64")
    array.attach_grad()
    return array


def _fourth_power(f):
    """Return f**4: the head gradient of `f` depends on the input, and derivatives up to the fourth are not zero."""

    def powered(*xs):
        y = f(*xs)
        return y * y * y * y

    return powered


def _gradients(f, arrays, weights):
    """Return the gradients of orders 1, 2, ... with respect to all inputs: one list of NDArrays an order.

    Each order takes the `weights` of its own as head gradients, and differentiates what the order below returned.
    """
    orders = []
    with autograd.record():
        terms = [f(*arrays)]
        for heads in weights:
            terms = autograd.grad(terms, arrays, head_grads=heads, create_graph=True, retain_graph=True)
            orders.append(terms)
    return orders


def _check_against_differences(f, values, order):
    """Compare the gradients of one order with central differences of the order below."""
    shapes = [[f(*map(_array, values)).shape]] + [[v.shape for v in values]] * (order - 1)
    weights = [[nd.array(np.random.uniform(0.5, 1.5, s), dtype="float64") for s in some] for some in shapes]
    found = _gradients(f, list(map(_array, values)), weights)[-1]

    def below(at):
        """Return the scalar whose gradient is that of this order."""
        arrays = list(map(_array, at))
        terms = _gradients(f, arrays, weights[:-1])[-1] if order > 1 else [f(*arrays)]
        return sum((t.asnumpy() * w.asnumpy()).sum() for t, w in zip(terms, weights[-1], strict=True))

    for i, value in enumerate(values):
        numeric = np.zeros_like(value)
        for at in np.ndindex(value.shape):
            shift = np.zeros_like(value)
            shift[at] = 1e-4
            high, low = ([v + s * shift if j == i else v for j, v in enumerate(values)] for s in (1, -1))
            numeric[at] = (below(high) - below(low)) / 2e-4
        names = (f"order {order}, input {i}", "differences")
        assert_almost_equal(found[i], numeric, rtol=1e-5, atol=1e-5, names=names)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("name", CURVED)
@with_seed()
def test_higher_order_against_differences(name, order):
    f, shapes = NINE[name]
    _check_against_differences(f, [_away_from_zero(shape) for shape in shapes], order)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NINE)
@with_seed()
def test_higher_order_through_the_head_gradient(name, order):
    f, shapes = NINE[name]
    _check_against_differences(_fourth_power(f), [_away_from_zero(shape) for shape in shapes], order)


@pytest.mark.parametrize("given", ["in the graph", "as head_grads"])
@pytest.mark.parametrize("name", NINE)
@with_seed()
def test_gradient_with_respect_to_head_gradient(name, given):
    """The gradient J^T h is linear in h: what w pulls back from it to h is J w.

    The head gradient comes from the rest of the graph, or as `head_grads` (which MXNet does not differentiate).
    """
    f, shapes = NINE[name]
    values = [_away_from_zero(shape) for shape in shapes]
    directions = [np.random.randn(*shape) for shape in shapes]
    arrays = list(map(_array, values))
    head = _array(np.random.randn(*f(*arrays).shape))
    with autograd.record():
        y = f(*arrays)
        y, head_grads = (y * head, None) if given == "in the graph" else (y, head)
        grads = autograd.grad(y, arrays, head_grads=head_grads, create_graph=True, retain_graph=True)
    autograd.backward(grads, [nd.array(w, dtype="float64") for w in directions])
    eps = 1e-5
    high, low = (f(*[_array(v + s * eps * w) for v, w in zip(values, directions, strict=True)]).asnumpy() for s in (1, -1))
    assert_almost_equal(head.grad, (high - low) / (2 * eps), rtol=1e-6, atol=1e-7)


def _sigmoid_derivatives(x):
    s = 1 / (1 + np.exp(-x))
    t = s * (1 - s)
    return [t, t * (1 - 2 * s), t * (1 - 6 * t), t * (1 - 2 * s) * (1 - 12 * t)]


def _fourth_power_derivatives(x):
    return [4 * x**3, 12 * x**2, 24 * x, 24 + 0 * x]


def _two_class_softmax(x):
    """Return the first of two softmax classes, the other fixed at 0: the sigmoid of `x`.

    The second column comes by a product, so that the test needs no concatenation.
    """
    logits = nd.dot(x.reshape((-1, 1)), nd.array([[1.0, 0.0]], dtype="float64"))
    return nd.dot(nd.softmax(logits, axis=1), nd.array([[1.0], [0.0]], dtype="float64")).reshape((-1,))


ANALYTIC = {
    "exp": (nd.exp, lambda x: [np.exp(x)] * 4),
    "elemwise_mul": (
        lambda x: nd.elemwise_mul(nd.elemwise_mul(x, x), nd.elemwise_mul(x, x)),
        _fourth_power_derivatives,
    ),
    "sin": (nd.sin, lambda x: [np.cos(x), -np.sin(x), -np.cos(x), np.sin(x)]),
    "cos": (nd.cos, lambda x: [-np.sin(x), -np.cos(x), np.sin(x), np.cos(x)]),
    "relu": (_fourth_power(nd.relu), lambda x: [*_fourth_power_derivatives(np.maximum(x, 0))[:3], 24.0 * (x > 0)]),
    "dot": (
        _fourth_power(lambda x: nd.dot(x.reshape((-1, 1)), nd.ones((1, 1), dtype="float64")).reshape((-1,))),
        _fourth_power_derivatives,
    ),
    "negative": (_fourth_power(nd.negative), _fourth_power_derivatives),
    "softmax": (_two_class_softmax, _sigmoid_derivatives),
    "sigmoid": (nd.sigmoid, _sigmoid_derivatives),
}


@pytest.mark.parametrize("name", ANALYTIC)
@with_seed()
def test_higher_order_against_formulas(name):
    f, derivatives = ANALYTIC[name]
    value = _away_from_zero(7)
    x = _array(value)
    with autograd.record():
        y = f(x)
        for order, expected in enumerate(derivatives(value), start=1):
            y = autograd.grad(y, x, create_graph=True, retain_graph=True)[0]
            assert_almost_equal(y, expected, rtol=1e-10, atol=1e-10, names=(f"order {order}", "formula"))
