"""Composites of float16 and bfloat16: float32 in between, whatever runs them and whatever is fused."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.graph.traced import planned
from mxop.op import composite


@pytest.fixture(autouse=True)
def operators(own):
    @composite
    def test_halves_slope(F, x):
        """One over the root of the mean of squares, which is beyond half types for 300."""
        return F.rsqrt(F.mean(F.square(x), axis=-1, keepdims=True))

    @composite
    def test_halves_scaled(F, x, w):
        """``x`` over its root mean square, turned, times a matrix."""
        y = F.transpose(F.broadcast_mul(x, F.test_halves_slope(x)))
        return F.dot(y, w), F.sum(F.square(F.square(x)) / 1e12)

    test_halves_scaled._num_outputs = 2
    own(test_halves_slope)
    own(test_halves_scaled)


def reference(x, w):
    x = x.astype("d")
    y = x / np.sqrt(np.mean(x**2, -1, keepdims=True))
    return y.T.astype(w.dtype).astype("d") @ w.astype("d"), np.sum(x**4 / 1e12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(2, 4), (64, 1024), (3, 1), (1, 700)])
def test_every_way_has_the_same_value(dtype, shape):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(1)
    x = nd.array(300 * (1 + rng.random(shape)), dtype=dtype)
    w = nd.array(rng.normal(size=(shape[0], 3)), dtype=dtype)
    want = reference(x.astype("float32").asnumpy(), w.astype("float32").asnumpy())
    graph = sym.test_halves_scaled(sym.var("x"), sym.var("w"))
    found = {"bound": graph.bind(mx.cpu(), {"x": x, "w": w}).forward(), "called": nd.test_halves_scaled(x, w)}
    with planned(False):
        found["in steps"] = nd.test_halves_scaled(x, w)
    x.attach_grad()
    with autograd.record():
        found["recorded"] = nd.test_halves_scaled(x, w)
    tolerance = (2e-3 if dtype == "float16" else 2e-2) * np.sqrt(shape[0])  # what is multiplied is rounded
    for way in ("called", "recorded"):  # the same plan
        for have, same in zip(found[way], found["bound"], strict=True):
            np.testing.assert_array_equal(have.astype("float32").asnumpy(), same.astype("float32").asnumpy())
    for way, outputs in found.items():
        assert [o.dtype for o in outputs] == [x.dtype] * 2, way
        for have, expected in zip(outputs, want, strict=True):
            have = have.astype("float32").asnumpy()
            np.testing.assert_allclose(
                have, np.reshape(expected, have.shape), rtol=tolerance, atol=tolerance, err_msg=way
            )


def test_gradients_of_both_orders_agree():
    x = nd.array([[300.0, 400.0, 310.0]], dtype="float16")
    same = x.copy()
    for a in (x, same):
        a.attach_grad()
    with autograd.record():
        (g,) = autograd.grad(nd.test_halves_slope(x), [x], create_graph=True)
    with autograd.record(), planned(False):
        (h,) = autograd.grad(nd.test_halves_slope(same), [same], create_graph=True)
    wide = x.astype("float64")
    wide.attach_grad()
    with autograd.record():
        (k,) = autograd.grad(nd.test_halves_slope(wide), [wide], create_graph=True)
    for found in (g, h):
        np.testing.assert_allclose(found.asnumpy(), k.asnumpy().astype("float16"), rtol=2e-2, atol=1e-6)
    executor = sym.test_halves_slope(sym.var("x")).bind(mx.cpu(), {"x": x}, {"x": nd.zeros((1, 3), dtype="float16")})
    executor.forward(is_train=True)
    executor.backward(nd.ones((1, 1), dtype="float16"))
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), g.asnumpy(), rtol=2e-2, atol=1e-6)


def test_types_that_a_composite_asks_for(own):
    @composite
    def test_halves_cast(F, x):
        """A cast inside is a cast: what follows sees its rounding."""
        return F.Cast(F.Cast(F.square(x), dtype="float16"), dtype="float32") * F.Cast(x > 2, dtype="float32")

    own(test_halves_cast)
    x = nd.array([300.0, 2.5, 1.0], dtype="float16")
    want = [np.inf, 6.25, 0.0]
    assert nd.test_halves_cast(x).asnumpy().tolist() == want
    with planned(False):
        assert nd.test_halves_cast(x).asnumpy().tolist() == want


def test_other_types_are_left_alone():
    x = nd.array([[3.0, 4.0]])
    executor = sym.test_halves_slope(sym.var("x")).bind(mx.cpu(), {"x": x})
    assert "Cast" not in executor.debug_str()
    assert nd.test_halves_slope(x).asnumpy()[0, 0] == np.float32(1 / np.sqrt(12.5))
