"""Results that go past the caches: the same numbers as those that do not, of every type and layout."""

import numpy as np
import pytest

import mxop as mx
from mxop import nd
from mxop._kernels import interp


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("size", [1, 100, 4099, 70001])
def test_results_past_the_caches(dtype, size):
    x, y = (nd.array(np.random.default_rng(k).integers(0, 50, size + 9)).astype(dtype) for k in (0, 1))
    for begin, step in ((0, 1), (1, 1), (8, 1), (0, 2)):
        for function in (nd.elemwise_add, lambda a, b, out: nd.elemwise_mul(nd.exp(a * 0) + b, b, out=out)):
            found = []
            for stream in (1 << 40, 64):
                interp.tune(stream_bytes=stream)
                out = nd.full((size + 9,), 7, dtype=dtype)
                function(
                    x[begin : size + begin : step], y[begin : size + begin : step], out=out[begin : size + begin : step]
                )
                found.append(out.astype("float64").asnumpy())
            assert np.array_equal(*found)
            assert (found[1][size + begin :] == 7).all() and (found[1][:begin] == 7).all()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("req", ["write", "add"])
def test_bound_results_past_the_caches(dtype, req):
    v, found = mx.sym.Variable("x"), []
    symbol = mx.sym.cast(mx.sym.tanh(v) * v, dtype="float32" if dtype == "float16" else "float16")
    x = nd.array(np.random.default_rng(0).normal(size=(37, 501))).astype(dtype)
    for stream in (1 << 40, 64):
        interp.tune(stream_bytes=stream)
        grad = nd.ones(x.shape, dtype=dtype)
        executor = symbol.bind(mx.cpu(), {"x": x}, {"x": grad}, req)
        (out,) = executor.forward(is_train=True)
        executor.backward(out)
        found.append((out.asnumpy(), grad.asnumpy()))
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b)
