"""Results that go past the caches: the same numbers as those that do not, of every type and layout."""

import numpy as np
import pytest

import mxop as mx
from mxop import nd
from mxop.op import F, elementwise


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("size", [1, 100, 4099, 70001])
def test_results_past_the_caches(dtype, size, tune):
    x, y = (nd.array(np.random.default_rng(k).integers(0, 50, size + 9)).astype(dtype) for k in (0, 1))
    for begin, step in ((0, 1), (1, 1), (8, 1), (0, 2)):
        for function in (nd.elemwise_add, lambda a, b, out: nd.elemwise_mul(nd.exp(a * 0) + b, b, out=out)):
            found = []
            for stream in (1 << 40, 64):
                tune(stream_bytes=stream)
                out = nd.full((size + 9,), 7, dtype=dtype)
                function(x[begin : size + begin : step], y[begin : size + begin : step], out=out[begin : size + begin : step])
                found.append(out.astype("float64").asnumpy())
            assert np.array_equal(*found)
            assert (found[1][size + begin :] == 7).all() and (found[1][:begin] == 7).all()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("req", ["write", "add"])
def test_bound_results_past_the_caches(dtype, req, tune):
    v, found = mx.sym.Variable("x"), []
    symbol = mx.sym.cast(mx.sym.tanh(v) * v, dtype="float32" if dtype == "float16" else "float16")
    x = nd.array(np.random.default_rng(0).normal(size=(37, 501))).astype(dtype)
    for stream in (1 << 40, 64):
        tune(stream_bytes=stream)
        grad = nd.ones(x.shape, dtype=dtype)
        executor = symbol.bind(mx.cpu(), {"x": x}, {"x": grad}, req)
        (out,) = executor.forward(is_train=True)
        executor.backward(out)
        found.append((out.asnumpy(), grad.asnumpy()))
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b)


ONE = [op for op in mx.op.operators() if op.kind == "elementwise" and op.arguments == ("data",) and not op.spec.names]
STEPS = {
    "adam_update": {"lr": 0.1, "wd": 0.01}, "sgd_mom_update": {"lr": 0.1, "momentum": 0.9}, "ftml_update": {"lr": 0.1, "t": 2},
    "rmsprop_update": {"lr": 0.1}, "nag_mom_update": {"lr": 0.1, "momentum": 0.9},
    "signum_update": {"lr": 0.1, "momentum": 0.5},
}  # fmt: skip


@pytest.mark.parametrize("stream", [1 << 40, 64])
@pytest.mark.parametrize("size", [9, 3001, 70001])
@pytest.mark.parametrize("op", ONE, ids=lambda op: op.name)
def test_results_in_the_place_of_an_operand(op, size, stream, tune):
    """Also of loops that look at their operands for what is not ordinary: these must not find results there."""
    tune(stream_bytes=stream)
    values = np.random.default_rng(0).normal(size=size) * 3
    values[::7], values[3::11], values[5::13] = 3e6, -np.inf, np.nan
    for dtype in ("float32", "float64", "float16"):
        x = nd.array(values.astype(dtype), dtype=dtype)
        function = getattr(nd, op.name, None) or getattr(nd._internal, op.name)
        wanted = function(x)
        if wanted.dtype == x.dtype and wanted.shape == x.shape:
            wanted = wanted.asnumpy()
            function(x, out=x)
            np.testing.assert_array_equal(x.asnumpy(), wanted)


@pytest.mark.parametrize("stream", [1 << 40, 64])
@pytest.mark.parametrize("size", [9, 3001, 70001])
@pytest.mark.parametrize("name", STEPS)
def test_steps_in_the_place_of_weights(name, size, stream, tune):
    tune(stream_bytes=stream)
    function = getattr(nd, name)
    n_inputs = len(mx.op.get(name).arguments)
    arrays = [nd.array(np.abs(np.random.default_rng(k).normal(size=size)) + 0.1) for k in range(n_inputs)]
    beside, inside = [a.copy() for a in arrays], [a.copy() for a in arrays]
    found = function(*beside, **STEPS[name])
    function(*inside, **STEPS[name], out=inside[0])
    beside[0] = found
    for a, b in zip(beside, inside, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    again = [a.copy() for a in arrays]
    function(again[0], again[0], *again[2:], **STEPS[name], out=again[0])  # the weights are their own gradient
    first = arrays[0].copy()
    np.testing.assert_array_equal(
        again[0].asnumpy(), function(first, arrays[0], *[a.copy() for a in arrays[2:]], **STEPS[name]).asnumpy()
    )


@elementwise(name="_test_two_results", num_outputs=2)
def two_results(data):
    """Two results, of which the first is there before the second begins."""
    return data + 1, data * 3 - F.square(data)


@pytest.mark.parametrize("size", [9, 3001, 70001])
@pytest.mark.parametrize("place", [0, 1])
def test_one_of_two_results_in_the_place_of_the_operand(size, place):
    values = np.arange(size, dtype="f4")
    x = nd.array(values)
    out = [nd.zeros(size), nd.zeros(size)]
    out[place] = x
    nd._internal._test_two_results(x, out=out)
    np.testing.assert_array_equal(out[0].asnumpy(), values + 1)
    np.testing.assert_array_equal(out[1].asnumpy(), values * 3 - values * values)
