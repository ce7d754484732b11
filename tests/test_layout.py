"""Operators that lay elements out anew: what records do not say."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym

X = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)


@pytest.mark.parametrize("mode", ["edge", "reflect"])
@pytest.mark.parametrize("shape", [(5,), (2, 4), (2, 3, 2, 3, 4, 2)])
def test_margins_of_arrays_of_any_rank(mode, shape):
    """MXNet pads the last axes of four or five dimensions alone."""
    x, widths = np.random.default_rng(0).normal(size=shape).astype("float32"), (1, 0) * len(shape)
    want = np.pad(x, [(1, 0)] * len(shape), mode)
    assert (nd.pad(nd.array(x), mode=mode, pad_width=widths).asnumpy() == want).all()


def test_a_margin_takes_infinities_and_gives_them_no_gradient():
    x = nd.array([1, np.inf])
    x.attach_grad()
    with autograd.record():
        y = nd.pad(x, mode="constant", pad_width=(1, 1), constant_value=np.nan)
    y.backward(nd.array([np.nan, 2, 3, np.nan]))
    assert np.isnan(y.asnumpy()[[0, 3]]).all() and x.grad.asnumpy().tolist() == [2, 3]


def test_methods_and_symbols():
    x = nd.array(X)
    assert x.diag(axis1=2, axis2=3).shape == (1, 2, 3) and x.pad(mode="edge", pad_width=(0,) * 8).shape == X.shape
    assert x.space_to_depth(block_size=1).shape == X.shape
    net = sym.Variable("x", shape=X.shape).slice_axis(axis=2, begin=0, end=2).space_to_depth(block_size=2)
    assert net.infer_shape()[1] == [(1, 8, 1, 2)]
    back = sym.space_to_depth(sym.Variable("x"), block_size=2)
    assert back.infer_shape_partial(x=(0, 2, 4, 6))[1] == [(0, 8, 2, 3)]


def test_a_diagonal_beside_the_corner_is_empty():
    for k in (4, -3):
        assert nd.diag(nd.array(X[0, 0]), k=k).shape == (0,)


@pytest.mark.parametrize("call, said", [
    (lambda x: nd.pad(x, mode="edge", pad_width=(1, 1)), "operator Pad: pad_width=(1, 1); expected 8 numbers"),
    (lambda x: nd.pad(x, mode="wrap", pad_width=(0,) * 8), "parameter mode='wrap' is not allowed"),
    (lambda x: nd.pad(nd.empty((0, 2)), mode="edge", pad_width=(1, 1, 0, 0)), "has no edge"),
    (lambda x: nd.Crop(x, h_w=(4, 2)), "h_w=(4, 2) at offset=(0, 0) is not part of images of (3, 4)"),
    (lambda x: nd.Crop(x, x, x), "one or two arrays"),
    (lambda x: nd.diag(x, k=5), "has no diagonal 5"),
    (lambda x: nd.linalg.extractdiag(x), "expected square matrices"),
    (lambda x: nd.depth_to_space(x, block_size=2), "cannot be split into blocks of 4"),
])  # fmt: skip
def test_bad_input(call, said):
    with pytest.raises(mx.MXNetError) as caught:
        call(nd.array(X))
    assert said in str(caught.value) and isinstance(caught.value, ValueError)
