"""Products and layers of numbers in eight bits: exact in 32 bits, whatever the sizes, strides and instruction set."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import mxop as mx

EIGHT = {"int8": (-128, 127), "uint8": (0, 255)}
layer = mx.nd._internal._integer_layer


def _exact(x, w):
    return (x.astype("int64") @ w.astype("int64").T).astype("int32")


@pytest.mark.parametrize("types", [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")])
@pytest.mark.parametrize(
    "sizes",
    [
        (1, 1, 1),
        (1, 5, 7),
        (3, 70, 33),
        (4, 32, 64),
        (13, 33, 65),
        (200, 100, 257),
        (50, 600, 1800),
        (5, 5, 0),
        (0, 3, 4),
    ],
)
def test_all_sizes_are_exact(sizes, types, level):
    (m, n, k), rng = sizes, np.random.RandomState(1)
    x = rng.randint(EIGHT[types[0]][0], EIGHT[types[0]][1] + 1, (m, k)).astype(types[0])
    w = rng.randint(EIGHT[types[1]][0], EIGHT[types[1]][1] + 1, (n, k)).astype(types[1])
    x[:1], w[:1] = (EIGHT[t][0] or EIGHT[t][1] for t in types)  # the largest products
    found = layer(mx.nd.array(x, dtype=types[0]), mx.nd.array(w, dtype=types[1]), num_hidden=n)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found.asnumpy(), _exact(x, w))


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 80), st.integers(1, 150)), st.booleans(), st.booleans(), st.integers(1, 3),
    st.integers(1, 2), st.randoms(use_true_random=False),
)  # fmt: skip
def test_any_strides_and_threads(sizes, x_turned, w_turned, step, threads, random):
    m, n, k = sizes
    rng = np.random.RandomState(random.randrange(1 << 30))

    def made(rows, columns, turned):
        values = rng.randint(-128, 128, (columns, rows * step) if turned else (rows * step, columns)).astype("int8")
        array = mx.nd.array(values, dtype="int8")
        return (array.T[::step], values.T[::step]) if turned else (array[::step], values[::step])

    (x, x_values), (w, w_values) = made(m, k, x_turned), made(n, k, w_turned)
    before = mx.context.set_num_threads(threads)
    try:
        np.testing.assert_array_equal(layer(x, w, num_hidden=n).asnumpy(), _exact(x_values, w_values))
    finally:
        mx.context.set_num_threads(before)


def test_what_does_not_fit_wraps_around(level):
    """2**31 / 2**14 summands of -128 * -128 are one too many."""
    k = 1 << 17
    for rows in (1, 5):
        x = mx.nd.array(np.full((rows, k), -128), dtype="int8")
        assert layer(x, x[:1], num_hidden=1).asnumpy().tolist() == [[-(1 << 31)]] * rows


X, W, B = [[100, -128, 7], [-3, 127, 55]], [[-128, 5, 9], [127, -77, 64]], [90, -101]


@pytest.mark.parametrize(
    ("dtype", "no_bias", "expected", "high"),
    [
        ("int8", True, [[-13377, 23004], [1514, -6640]], 179744.73),
        ("int8", False, [[-13122, 22718], [1769, -6926]], 179744.73),
        ("uint8", True, [[-12097, 3292], [746, -5878]], 119359.91),
        ("uint8", False, [[-11714, 2862], [1129, -6308]], 119359.91),
    ],
)
def test_answers_of_mxnet(dtype, no_bias, expected, high):
    one = [mx.nd.array([v]) for v in ((-1.5, 1.2) if dtype == "int8" else (0, 2))]
    limits = [*one, mx.nd.array([-0.7]), mx.nd.array([0.9])]
    arrays = [mx.nd.array(X if dtype == "int8" else np.abs(X), dtype=dtype), mx.nd.array(W, dtype="int8")]
    if not no_bias:
        arrays.append(mx.nd.array(B, dtype="int8"))
        limits += [mx.nd.array([-0.01]), mx.nd.array([0.03])]
    names = ["data", "weight", "bias", "low", "high", "w_low", "w_high", "b_low", "b_high"]
    if no_bias:
        names = names[:2] + names[3:7]
    found = mx.nd.contrib.quantized_fully_connected(*arrays, *limits, num_hidden=2, no_bias=no_bias)
    symbol = mx.sym.contrib.quantized_fully_connected(*map(mx.sym.var, names), num_hidden=2, no_bias=no_bias, name="q")
    assert symbol.list_outputs() == ["q_output", "q_min_output", "q_max_output"]
    executor = symbol.bind(mx.cpu(), dict(zip(names, arrays + limits, strict=True)), grad_req="null")
    for levels, low, top in (found, executor.forward()):
        assert levels.asnumpy().tolist() == expected and levels.dtype == np.int32
        np.testing.assert_allclose([-low.item(), top.item()], high, rtol=1e-6)


def test_shapes_and_types_follow():
    symbol = mx.sym.contrib.quantized_fully_connected(*map(mx.sym.var, "xwbcdefgh"), num_hidden=4)
    shapes = symbol.infer_shape(x=(2, 5))
    assert shapes == ([(2, 5), (4, 5), (4,), *[(1,)] * 6], [(2, 4), (1,), (1,)], [])
    types = symbol.infer_type(x="uint8")
    assert types == ([np.uint8, np.int8, np.int8, *[np.float32] * 6], [np.int32, np.float32, np.float32], [])


def test_a_quantized_layer_is_near_the_layer():
    """The way of MXNet's guide: quantize, multiply, requantize, dequantize."""
    nd, rng = mx.nd, np.random.RandomState(3)
    x, w, b = (nd.array(rng.uniform(-1, 1, shape)) for shape in ((16, 100), (8, 100), (8,)))
    parts = [nd.contrib.quantize_v2(a) for a in (x, w, b)]
    found = nd.contrib.quantized_fully_connected(*(p[0] for p in parts), *(v for p in parts for v in p[1:]), num_hidden=8)
    result = nd.contrib.dequantize(*nd.contrib.requantize(*found))
    wanted = nd.FullyConnected(x, w, b, num_hidden=8)
    assert abs(result - wanted).max().item() < 0.15 < abs(wanted).max().item() / 10


@pytest.mark.parametrize(
    ("types", "match"),
    [
        (("float32", "int8"), "data has dtype float32; expected int8 or uint8"),
        (("int8", "int32"), "weight has dtype int32"),
    ],
)
def test_other_types_are_refused(types, match):
    with pytest.raises(mx.errors.OpTypeError, match=match):
        layer(mx.nd.ones((2, 3), dtype=types[0]), mx.nd.ones((2, 3), dtype=types[1]), num_hidden=2)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(mx.errors.OpValueError, match=r"_contrib_quantized_fully_connected.*weight"):
        mx.nd.contrib.quantized_fully_connected(
            mx.nd.ones((2, 3), dtype="int8"),
            mx.nd.ones((2, 4), dtype="int8"),
            *[mx.nd.ones((1,))] * 4,
            num_hidden=2,
            no_bias=True,
        )
