"""Formulas that are computed of each part of a large product while it is near: the bits of products, and then formulas."""

import numpy as np
import pytest
from comparing import steps_of

import mxop as mx

S = mx.sym
X, Y = S.var("x"), S.var("y")


def _dense(n=96, **params):
    return S.FullyConnected(X, num_hidden=n, name="f", **params)


def _conv(filters, k, **params):
    return S.Convolution(X, kernel=(k, k), num_filter=filters, pad=(k // 2, k // 2), name="c", **params)


TWICE = _dense()
TRANSPOSED = S.dot(X, Y)
#: What is computed, the shapes of the variables, and whether the formula is part of the product.
CASES = {
    "relu": (S.relu(_dense()), {"x": (70, 33)}, True),
    "an activation that reads its input again": (S.tanh(_dense()), {"x": (70, 33)}, True),
    "one summand": (S.relu(_dense()), {"x": (70, 1)}, True),
    "tiles": (S.relu(_dense(1100)), {"x": (600, 5)}, True),
    "more than a formula is worth": (S.tanh(_dense()), {"x": (70, 65)}, False),
    "parts of sums": (S.relu(_dense()), {"x": (70, 257)}, False),
    "a row": (S.relu(_dense(5000)), {"x": (1, 33)}, False),
    "rows and columns": (
        S.broadcast_mul(S.broadcast_add(_dense(no_bias=True), S.var("r", shape=(1, 96))), S.var("z", shape=(70, 1))),
        {"x": (70, 33)},
        True,
    ),
    "another large array": (_dense() + S.var("r", shape=(70, 96)), {"x": (70, 33)}, False),
    "the result twice": (TWICE * 2 + S.relu(TWICE), {"x": (70, 33)}, True),
    "a batch": (
        S.broadcast_add(S.batch_dot(X, Y) / 5, S.var("r", shape=(1, 40, 50))),
        {"x": (9, 40, 16), "y": (9, 16, 50)},
        True,
    ),
    "transposed": (S.relu(S.dot(X, Y, transpose_a=True)), {"x": (16, 80), "y": (16, 90)}, True),
    "the transposed result": (TRANSPOSED + S.transpose(TRANSPOSED), {"x": (80, 16), "y": (16, 80)}, False),
    "one window each": (S.relu(_conv(72, 1)), {"x": (3, 8, 12, 13)}, True),
    "windows": (S.relu(_conv(72, 3)), {"x": (3, 8, 14, 15)}, True),
    "windows of small images": (S.relu(_conv(72, 3)), {"x": (9, 8, 5, 6)}, True),
    "few filters": (S.relu(_conv(16, 3)), {"x": (3, 3, 33, 40)}, True),
    "few filters of groups": (S.relu(_conv(16, 3, num_group=2)), {"x": (3, 4, 33, 40)}, True),
    "statistics between": (S.relu(S.BatchNorm(_conv(72, 3, no_bias=True), name="b")), {"x": (3, 8, 14, 15)}, True),
}


@pytest.fixture
def sizes(tune):
    """Let small results count as large."""
    return lambda past: tune(stream_bytes=512 if past else 1 << 50)


@pytest.fixture(params=[1, 2])
def threads(request):
    before = mx.context.set_num_threads(request.param)
    yield request.param
    mx.context.set_num_threads(before)


def _bound(symbol, shapes, dtype, grad_req="null"):
    executor = symbol.simple_bind(mx.cpu(), grad_req=grad_req, type_dict=dict.fromkeys(shapes, dtype), **shapes)
    rng = np.random.RandomState(7)
    for array in executor.arg_arrays:
        array[:] = rng.rand(*array.shape) - 0.25
    for array in executor.aux_arrays:
        array[:] = rng.rand(*array.shape) + 0.25
    return executor


def _finishes(executor):
    return any("epilogue" in step for step in steps_of(executor))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_formulas_of_parts_have_the_same_bits(name, dtype, sizes, threads):
    symbol, shapes, joined = CASES[name]
    found = []
    for past in (False, True):
        sizes(past)
        executor = _bound(symbol, shapes, dtype)
        for _ in range(2):
            result = executor.forward()[0].asnumpy()
        found.append(result)
        assert _finishes(executor) == (past and joined and (dtype != "float16" or name.startswith("few")))
    assert np.isfinite(found[0]).all() and found[0].astype("float64").std() > 0
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[2] and name != "statistics between"])
def test_what_gradients_read_is_there(name, sizes):
    symbol, shapes, _ = CASES[name]
    found = []
    for past in (False, True):
        sizes(past)
        executor = _bound(symbol, shapes, "float32", "write")
        result = executor.forward(is_train=True)[0]
        executor.backward(result * 2)
        found.append([result.asnumpy(), *(g.asnumpy() for g in executor.grad_arrays)])
        assert _finishes(executor) == past
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("rows, columns, summands", [(300, 200, 40), (13, 33, 7), (65, 97, 63), (193, 127, 64)])
def test_all_instruction_sets_finish(rows, columns, summands, level, sizes):
    """Also where rows and columns leave a remainder of every tile."""
    found = []
    for past in (False, True):
        sizes(past)
        executor = _bound(S.relu(_dense(columns)), {"x": (rows, summands)}, "float32")
        assert _finishes(executor) == past
        found.append(executor.forward()[0].asnumpy())
    np.testing.assert_array_equal(*found)


def test_infinity_and_nan_come_through(sizes):
    sizes(True)
    executor = _bound(S.relu(_dense()), {"x": (70, 33)}, "float32")
    executor.arg_dict["x"][3, 4] = np.inf
    executor.arg_dict["x"][5, 6] = np.nan
    got = executor.forward()[0].asnumpy()
    x, w, b = (executor.arg_dict[k].asnumpy().astype("float64") for k in ("x", "f_weight", "f_bias"))
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(got, np.maximum(x @ w.T + b, 0), rtol=1e-5, atol=1e-5)


def test_a_result_that_lies_where_the_product_reads_waits(sizes):
    """The output's array is the product's operand: then the formula runs when all of it was read."""
    found = []
    for past in (False, True):
        sizes(past)
        x, w = mx.nd.array(np.random.RandomState(1).rand(64, 64)), mx.nd.array(np.random.RandomState(2).rand(64, 64))

        @mx.graph.compiled
        def layer(x, w):
            return mx.nd.relu(mx.nd.dot(x, w) - 16)

        with mx.autograd.pause():
            x[:] = layer(x, w)
        mx.nd.relu(mx.nd.dot(x, w) - 16, out=x)
        found.append(x.asnumpy())
    np.testing.assert_array_equal(*found)


def test_random_numbers_are_those_of_their_elements(sizes):
    found = []
    for past in (False, True):
        sizes(past)
        mx.random.seed(5)
        executor = _bound(S.Dropout(_dense(no_bias=True), p=0.5), {"x": (70, 33)}, "float32")
        found.append(executor.forward(is_train=True)[0].asnumpy())
    assert (found[0] == 0).mean() > 0.3
    np.testing.assert_array_equal(*found)


def test_steps_of_a_loop_finish(sizes):
    """A loop packs the matrix that all steps share; states go to and fro."""
    found, w = [], S.var("w", shape=(64, 64))
    for past in (False, True):
        sizes(past)
        _, last = S.contrib.foreach(lambda x, s: (s, S.relu(S.broadcast_add(S.dot(s, w) * 0.03, x))), X, Y)
        executor = _bound(last, {"x": (5, 1, 1), "y": (48, 64)}, "float32")
        assert _finishes(executor) == past
        found.append(executor.forward()[0].asnumpy())
    assert found[0].std() > 0
    np.testing.assert_array_equal(*found)
