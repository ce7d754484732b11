"""Operators on eight bits: the numbers that MXNet 1.9.1 gives, and where the numbers here are others, why."""

import numpy as np
import pytest

import mxop as mx

C, S = mx.nd.contrib, mx.sym.contrib
VALUES = {
    "x": [[100, -128, 7, 25], [-3, 127, 55, -90]], "y": [[-77, 12, 127, 64], [9, -55, 33, -2]],
    "u": [[100, 255, 7, 25], [3, 127, 55, 190]], "v": [[77, 12, 127, 64], [9, 255, 33, 3]],
}  # fmt: skip
LIMITS = {"x": (-1.5, 1.2), "y": (-0.25, 2.0), "u": (0.0, 2.0), "v": (0.0, 1.25)}
CALIBRATED = {"min_calib_range": -2.5, "max_calib_range": 3.0}


def one(value):
    return mx.nd.array([value])


def levels(name, shape=(2, 4)):
    return mx.nd.array(VALUES[name], dtype="int8" if name in "xy" else "uint8").reshape(shape)


def limits(*names):
    return [one(v) for name in names for v in LIMITS[name]]


def check(found, expected, low, high, dtype):
    assert found[0].dtype == np.dtype(dtype) and found[0].asnumpy().ravel().tolist() == np.ravel(expected).tolist()
    np.testing.assert_allclose([found[1].item(), found[2].item()], [low, high], rtol=1e-6)


def test_relu_and_flatten():
    check(C.quantized_act(levels("x"), *limits("x"), act_type="relu"), [100, 0, 7, 25, 0, 127, 55, 0], -1.5, 1.2, "int8")
    found = C.quantized_act(levels("u"), *limits("u"), act_type="relu")  # MXNet: int8, in which these levels are negative
    check(found, VALUES["u"], 0, 2, "uint8")
    flat = C.quantized_flatten(levels("x", (1, 2, 4)), *limits("x"))
    assert flat[0].shape == (1, 8)
    check(flat, VALUES["x"], -1.5, 1.2, "int8")


PADDED = {"kernel": (2, 2), "stride": (1, 2), "pad": (1, 1), "pool_type": "avg"}


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("x", {"kernel": (2, 2)}, [127, 127, 55]),
        ("x", {"kernel": (1, 2), "stride": (1, 2), "pool_type": "avg"}, [-14, 16, 62, -18]),
        ("x", PADDED, [25, -30, 6, 24, 15, -16, -1, 46, -22]),
        ("x", PADDED | {"count_include_pad": False}, [100, -60, 25, 48, 15, -32, -3, 91, -90]),
        ("x", {"kernel": (1, 1), "global_pool": True, "pool_type": "avg"}, [12]),
        ("u", {"kernel": (2, 2)}, [255, 255, 190]),
        ("u", {"kernel": (1, 2), "stride": (1, 2), "pool_type": "avg"}, [178, 16, 65, 122]),
        ("u", PADDED, [25, 66, 6, 26, 111, 54, 1, 46, 48]),
        ("u", PADDED | {"count_include_pad": False}, [100, 131, 25, 52, 111, 108, 3, 91, 190]),
        ("u", {"kernel": (1, 1), "global_pool": True, "pool_type": "avg"}, [95]),
    ],
)
def test_pooling(name, params, expected):
    found = C.quantized_pooling(levels(name, (1, 1, 2, 4)), *limits(name), **params)
    check(found, expected, *LIMITS[name], "int8" if name == "x" else "uint8")


def test_average_pooling_divides_as_pooling_does():
    """The last window of ``full`` reaches beyond the image; MXNet divides by its whole size: 4 in place of 7."""
    x = mx.nd.array([[[3, 5, 7]]], dtype="int8")
    params = {"kernel": (2,), "stride": (2,), "pool_type": "avg", "pooling_convention": "full"}
    assert C.quantized_pooling(x, one(-1), one(1), **params)[0].asnumpy().tolist() == [[[4, 7]]]
    assert mx.nd.Pooling(x.astype("float32"), **params).asnumpy().tolist() == [[[4, 7]]]


@pytest.mark.parametrize(
    ("names", "joined", "low", "high", "added"),
    [
        ("xy", [75, -96, 5, 19, -2, 95, 41, -68, *VALUES["y"][0], *VALUES["y"][1]], -1.5, 2,
         [-1, -56, 88, 55, 4, 27, 50, -46]),
        # of two types, MXNet rounds the levels of uint8 before it adds: it has 116 for 117, and 5 for 6
        ("xv", [*VALUES["x"][0], *VALUES["x"][1], 32, 5, 53, 27, 4, 106, 14, 1], -1.5, 1.25,
         [66, -62, 30, 26, 0, 117, 34, -44]),
        ("uy", [50, 127, 3, 12, 1, 63, 27, 95, *VALUES["y"][0], *VALUES["y"][1]], -0.25, 2,
         [-18, 93, 87, 51, 7, 6, 40, 62]),
        ("uv", [*VALUES["u"][0], *VALUES["u"][1], 48, 8, 79, 40, 6, 159, 21, 2], 0, 2,
         [99, 175, 58, 43, 6, 191, 50, 128]),
    ],
)  # fmt: skip
def test_joined_and_added(names, joined, low, high, added):
    arrays, dtype = [levels(n) for n in names], "uint8" if names == "uv" else "int8"
    check(C.quantized_concat(*arrays, *limits(*names), num_args=2, dim=0), joined, low, high, dtype)
    check(C.quantized_elemwise_add(*arrays, *limits(*names), **CALIBRATED), added, -2.5, 3, dtype)


def test_sums_of_32_bits():
    """MXNet computes them in float32."""
    for names, high, expected in (
        ("xy", 3.5, [[-19249152, -808464448, 1272850304, 796433728], [64965896, 387389184, 714624832, -668908096]]),
        ("uv", 3.25, [[766150272, 1357734656, 446759360, 336200960], [44611280, 1481223808, 391156864, 992439360]]),
    ):
        found, *top = C.quantized_elemwise_add(*map(levels, names), *limits(*names))
        assert found.dtype == np.int32 and [v.item() for v in top] == [-high, high]
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=3e-7, atol=128)


def test_sums_of_two_types_in_32_bits():
    """MXNet leaves out the array of uint8."""
    found = C.quantized_elemwise_add(levels("x"), levels("v"), *limits("x", "v"))
    number = np.array(VALUES["x"]) / 127.5 * 1.5 + np.array(VALUES["v"]) / 255.5 * 1.25
    np.testing.assert_allclose(found[0].asnumpy() / (2.0**31 - 1) * found[2].asnumpy(), number, rtol=1e-6)


def test_products():
    arrays = [levels("x"), levels("y"), *limits("x", "y")]
    expected = [-7700, -1536, 889, 1600, -27, -6985, 1815, 180]
    check(C.quantized_elemwise_mul(*arrays), expected, -399432.75, 399432.75, "int32")
    check(C.quantized_elemwise_mul(*arrays, **CALIBRATED), [-60, -12, 6, 12, 0, -54, 14, 1], -2.5, 3, "int8")
    numbers = [-1.420991898, -0.2834602, 0.1640599817, 0.295271039, -0.004982699174, -1.289042711, 0.3349480927, 0.03321799263]
    for more in ({}, CALIBRATED):
        real = C.quantized_elemwise_mul(*arrays, enable_float_output=True, **more)
        assert real.dtype == np.float32
        np.testing.assert_allclose(real.asnumpy().ravel(), numbers, rtol=3e-7)
    # MXNet's wraps around: 21 and -21
    found = C.quantized_elemwise_mul(*arrays, min_calib_range=-1.0, max_calib_range=1.0)[0]
    assert found.asnumpy().ravel().tolist() == [-128, -36, 20, 37, 0, -128, 42, 4]


NORM = [mx.nd.array(v) for v in ([0.5, 1, 2, 1], [0.1, -0.2, 0.3, 0], [0.3, -0.4, 0, 0.1], [1, 0.5, 2, 1])]


def test_batch_norm():
    params = {"min_calib_range": -2.0, "max_calib_range": 3.0}
    for name, expected in (("x", [23, -75, 18, 8, -3, 105, 52, -49]), ("u", [15, 127, 16, 4, -2, 75, 38, 59])):
        found = C.quantized_batch_norm(levels(name), *NORM, *limits(name), fix_gamma=False, **params)
        check(found, expected, -2, 3, "int8")
    fixed = C.quantized_batch_norm(levels("x"), *NORM, *limits("x"), **params)[0]  # MXNet: as with fix_gamma=False
    gamma = C.quantized_batch_norm(levels("x"), mx.nd.ones((4,)), *NORM[1:], *limits("x"), fix_gamma=False, **params)[0]
    assert fixed.asnumpy().tolist() == gamma.asnumpy().tolist()
    np.testing.assert_allclose([a.asnumpy() for a in NORM[2:]], [[0.3, -0.4, 0, 0.1], [1, 0.5, 2, 1]], rtol=1e-6)
    symbol = S.quantized_batch_norm(**params, name="q")
    assert symbol.list_arguments() == ["q_data", "q_gamma", "q_beta", "q_min_data", "q_max_data"]
    assert symbol.list_auxiliary_states() == ["q_moving_mean", "q_moving_var"]
    assert symbol.infer_shape(q_data=(2, 3, 4)) == ([(2, 3, 4), (3,), (3,), (1,), (1,)], [(2, 3, 4), (1,), (1,)], [(3,), (3,)])


def test_lookup():
    table = mx.nd.array([[20, 81], [-78, 27], [-114, -87]], dtype="int8")
    found = C.quantized_embedding(mx.nd.array([[1, 0], [2, 7]]), table, *limits("x"), input_dim=3, output_dim=2)
    check(found, [-78, 27, 20, 81, -114, -87, -114, -87], -1.5, 1.2, "int8")


# ---- convolution -----------------------------------------------------------------------------------------------------
FILTERS = mx.nd.array([[[[-128, 5]]], [[[127, -77]]]], dtype="int8")
WIDE = {"stride": (1, 2), "pad": (1, 1)}
PLAIN = [-11525, -32605, -771, 251, -15981, -6090, -6935, 31846, -1036, -9398, 11894, -7645]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, PLAIN),
        (WIDE, [0, 0, 0, 500, -32605, -3200, 15, -15981, -24320, 0, 0, 0,
                0, 0, 0, -7700, 31846, 3175, -231, 11894, 24130, 0, 0, 0]),
    ],
)  # fmt: skip
def test_convolution(params, expected):
    """The limits are those of products of uint8 and int8; MXNet's are those of int8 and int8, 255 / 127 times as wide."""
    given = [levels("u", (1, 1, 2, 4)), FILTERS, *limits("u"), one(-0.7), one(0.9)]
    found = C.quantized_conv(*given, kernel=(1, 2), num_filter=2, no_bias=True, **params)
    check(found, expected, -239659.66 * 127 / 255, 239659.66 * 127 / 255, "int32")


def test_convolution_with_a_bias():
    """Its levels become those of the products, as in a fully connected layer; MXNet's CPU adds them as they are."""
    bias, of_bias = mx.nd.array([90, -101], dtype="int8"), [one(-0.01), one(0.03)]
    given = [levels("u", (1, 1, 2, 4)), FILTERS, bias, *limits("u"), one(-0.7), one(0.9), *of_bias]
    found = C.quantized_conv(*given, kernel=(1, 2), num_filter=2)[0].asnumpy().ravel().tolist()
    assert found == [v + 383 for v in PLAIN[:6]] + [v - 430 for v in PLAIN[6:]]
    symbol = S.quantized_conv(mx.sym.var("x"), kernel=(1, 2), num_filter=2, name="q")
    names = [f"q_{end}_{of}" for of in ("data", "weight", "bias") for end in ("min", "max")]
    assert symbol.list_arguments() == ["x", "q_weight", "q_bias", *names]
    assert symbol.infer_shape(x=(2, 3, 4, 5)) == (
        [(2, 3, 4, 5), (2, 3, 1, 2), (2,), *[(1,)] * 6], [(2, 2, 4, 4), (1,), (1,)], []
    )  # fmt: skip
    executor = symbol.bind(mx.cpu(), dict(zip(symbol.list_arguments(), given, strict=True)), grad_req="null")
    assert executor.forward()[0].asnumpy().ravel().tolist() == found


@pytest.mark.parametrize(
    ("data", "weight"), [((2, 3, 9), (4, 3, 3)), ((1, 2, 4, 3, 5), (3, 2, 2, 2, 2)), ((1, 70, 8), (2, 70, 8))]
)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_convolutions_of_any_rank_are_exact(data, weight, dtype):
    rng = np.random.RandomState(7)
    x, w = rng.randint(*((-128, 128) if dtype == "int8" else (0, 256)), data), rng.randint(-128, 128, weight)
    params = {"kernel": weight[2:], "num_filter": weight[0], "no_bias": True}
    found = C.quantized_conv(mx.nd.array(x, dtype=dtype), mx.nd.array(w, dtype="int8"), *[one(1)] * 4, **params)[0]
    wanted = mx.nd.Convolution(mx.nd.array(x, dtype="float64"), mx.nd.array(w, dtype="float64"), **params)
    assert found.asnumpy().tolist() == wanted.asnumpy().astype(int).tolist()


def test_sums_of_a_convolution_wrap_around():
    x = mx.nd.array(np.full((1, 1 << 17, 1), -128), dtype="int8")
    found = C.quantized_conv(x, x, *[one(1)] * 4, kernel=(1,), num_filter=1, no_bias=True)[0]
    assert found.asnumpy().tolist() == [[[-(1 << 31)]]]


def test_names_of_concat():
    symbol = S.quantized_concat(*map(mx.sym.var, "abcdef"), num_args=2, name="q")
    assert symbol.list_outputs() == ["q_output", "q_min_output", "q_max_output"]
    again = mx.sym.load_json(symbol.tojson())
    assert again.infer_shape(a=(2, 3), b=(2, 4))[1] == [(2, 7), (1,), (1,)]
    assert again.infer_type(a="int8", b="uint8")[1][0] == np.int8


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: C.quantized_act(levels("x"), *limits("x"), act_type="tanh"), "expected 'relu'"),
        (lambda: C.quantized_act(levels("x").astype("float32"), *limits("x"), act_type="relu"), "data has dtype float32"),
        (lambda: C.quantized_pooling(levels("x", (1, 2, 4)), *limits("x"), kernel=(2,), pool_type="lp", p_value=2),
         "expected 'max' or 'avg'"),
        (lambda: C.quantized_elemwise_mul(levels("u"), levels("v"), *limits("u", "v")), "lhs has dtype uint8; expected int8"),
        (lambda: C.quantized_elemwise_add(levels("x"), levels("y"), *limits("x")), "takes 6 inputs"),
        (lambda: C.quantized_elemwise_add(levels("x"), levels("y"), *limits("x", "y"), max_calib_range=1.0), "both or none"),
        (lambda: C.quantized_batch_norm(levels("x"), *NORM, *limits("x")), "expected both"),
        (lambda: C.quantized_concat(levels("x"), levels("y"), *limits("x"), num_args=2), "4 inputs, but num_args=2"),
        (lambda: C.quantized_concat(levels("x"), levels("y"), *limits("x", "y")), "num_args"),
        (lambda: C.quantized_conv(levels("u", (1, 1, 2, 4)), FILTERS.astype("uint8"), *limits("u", "x"), kernel=(1, 2),
                                  num_filter=2, no_bias=True), "weight has dtype uint8; expected int8"),
        (lambda: C.quantized_flatten(levels("x"), mx.nd.ones((2,)), one(1)), "min_data"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, match):
    with pytest.raises(mx.MXNetError, match=match):
        call()
