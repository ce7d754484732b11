"""Operators whose results have a size that follows from values: calls, gradients, graphs that end there."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd
from mxop.op import kernel

X = np.arange(12, dtype=np.float32).reshape(4, 3) / 12
MASKS = ([0, 1, 0, 1], [1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1])


def _symbol(inner=mx.sym.exp):
    return mx.sym.contrib.boolean_mask(inner(mx.sym.Variable("x")), mx.sym.Variable("m"), name="masked")


def _kept(mask):
    return np.flatnonzero(mask)


@pytest.mark.parametrize("mask", MASKS)
def test_gradients_of_calls_of_any_order(mask):
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = nd.contrib.boolean_mask(x * x * x, nd.array(mask))
        first = autograd.grad(y, x, create_graph=True)[0]
        second = autograd.grad(first, x, create_graph=True)[0]
    second.backward()
    chosen = np.array(mask)[:, None]
    assert y.shape == (sum(mask), 3)
    np.testing.assert_allclose(first.asnumpy(), chosen * 3 * X**2, rtol=1e-6)
    np.testing.assert_allclose(second.asnumpy(), chosen * 6 * X, rtol=1e-6)
    np.testing.assert_array_equal(x.grad.asnumpy(), chosen * 6 * np.ones_like(X))


def test_out_has_the_size_that_is_found():
    out = nd.zeros((2, 3))
    nd.contrib.boolean_mask(nd.array(X), nd.array(MASKS[0]), out=out)
    np.testing.assert_array_equal(out.asnumpy(), X[[1, 3]])
    with pytest.raises(mx.MXNetError, match=r"out has shape \(2, 3\), the result has shape \(3, 3\)"):
        nd.contrib.boolean_mask(nd.array(X), nd.array(MASKS[1]), out=out)


def test_an_executor_that_ends_there():
    bound = _symbol().simple_bind(mx.cpu(), x=(4, 3), m=(4,))
    held = []
    for mask in MASKS:
        out = bound.forward(is_train=True, x=nd.array(X), m=nd.array(mask))[0]
        held.append((out, out.asnumpy(), np.asarray(out)))
        np.testing.assert_allclose(out.asnumpy(), np.exp(X)[_kept(mask)], rtol=1e-6)
        heads = np.arange(1, out.size + 1, dtype=np.float32).reshape(out.shape)
        bound.backward(nd.array(heads))
        want = np.zeros_like(X)
        want[_kept(mask)] = heads * np.exp(X)[_kept(mask)]
        np.testing.assert_allclose(bound.grad_dict["x"].asnumpy(), want, rtol=1e-6)
        assert not bound.grad_dict["m"].asnumpy().any()
        with pytest.raises(mx.MXNetError, match="Head gradient 0: expected shape"):
            bound.backward(nd.ones((5, 3)))
    for out, values, seen in held:  # the next run changes no array that a user holds
        np.testing.assert_array_equal(out.asnumpy(), values)
        np.testing.assert_array_equal(seen, values)


def test_one_value_may_be_several_outputs():
    x, m = mx.sym.Variable("x"), mx.sym.Variable("m")
    y, again = (mx.sym.contrib.boolean_mask(mx.sym.exp(x), m) for _ in range(2))  # a pass finds that these are equal
    bound = mx.sym.Group([y, y, again, mx.sym.sum(x)]).simple_bind(mx.cpu(), grad_req="null", x=(4, 3), m=(4,))
    for mask in MASKS:
        found = bound.forward(x=nd.array(X), m=nd.array(mask))
        for a in found[:3]:
            np.testing.assert_allclose(a.asnumpy(), np.exp(X)[_kept(mask)], rtol=1e-6)
        assert found[3].shape == (1,)


@pytest.mark.parametrize("reader", [mx.sym.exp, mx.sym.sum, mx.sym.transpose, lambda y: mx.sym.take(y, y), mx.sym.softmax])
def test_what_needs_the_size_earlier_says_so(reader):
    symbol = reader(_symbol())
    with pytest.raises(mx.MXNetError, match=r"'masked_output', \(\?, 3\), follows from the values .*boolean_mask"):
        symbol.simple_bind(mx.cpu(), x=(4, 3), m=(4,))


def test_inference_leaves_the_size_open():
    assert _symbol().infer_shape_partial(x=(4, 3), m=(4,))[1] == [(0, 3)]
    with pytest.warns(UserWarning, match="Cannot decide shape"):
        assert _symbol().infer_shape(x=(4, 3), m=(4,)) == (None, None, None)


def test_looking_inside_and_reshaping():
    bound = _symbol().simple_bind(mx.cpu(), x=(4, 3), m=(4,))
    assert "boolean_mask" in str(bound.explain()) and "boolean_mask" in bound.debug_str()
    shapes = {}
    bound.set_monitor_callback(lambda name, a: shapes.setdefault(name, a.shape))
    out = bound.forward(is_train=True, x=nd.array(X), m=nd.array(MASKS[0]))[0]
    bound.backward(nd.ones((2, 3)))
    assert out.shape == shapes["masked_output"] == (2, 3)
    np.testing.assert_allclose(bound.grad_dict["x"].asnumpy(), np.exp(X) * np.array(MASKS[0])[:, None], rtol=1e-6)
    larger = bound.reshape(x=(5, 3), m=(5,), allow_up_sizing=True)
    larger.set_monitor_callback(None)
    assert larger.forward(x=nd.ones((5, 3)), m=nd.ones((5,)))[0].shape == (5, 3)
    assert _symbol().eval(x=nd.array(X), m=nd.array(MASKS[1]))[0].shape == (3, 3)


# ---- of one's own -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def distinct():
    @kernel(num_outputs=2)
    def distinct(data):
        """Sorted distinct elements, and how often each is there."""

    distinct.shape(lambda data: [(None,), (None,)])

    @distinct.size
    def _(data):
        return [(np.unique(data).size,)] * 2

    @distinct.cpu
    def _(inputs, outputs):
        np.asarray(outputs[0])[:], np.asarray(outputs[1])[:] = np.unique(np.asarray(inputs[0]), return_counts=True)

    distinct.gradient(lambda F, heads, inputs, outputs: [None])
    yield distinct
    mx.op.unregister("distinct")


def test_a_kernel_of_one_s_own(distinct):
    values, counts = nd.distinct(nd.array([3, 1, 3, 2]))
    assert values.asnumpy().tolist() == [1, 2, 3] and counts.asnumpy().tolist() == [1, 1, 2]
    bound = mx.sym.distinct(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(4,))
    for x in ([1, 1, 1, 1], [4, 3, 2, 1], [1, 2, 1, 2]):
        found = bound.forward(is_train=True, x=nd.array(x))
        assert [a.asnumpy().tolist() for a in found] == [a.tolist() for a in np.unique(x, return_counts=True)]


def test_outputs_with_and_without_a_size():
    @kernel(num_outputs=2)
    def positives(data):
        """How many elements are above zero, and which."""

    positives.shape(lambda data: [(1,), (None,)])
    positives.size(lambda data: [(1,), (int((data > 0).sum()),)])

    @positives.cpu
    def _(inputs, outputs):
        data = np.asarray(inputs[0])
        np.asarray(outputs[0])[:], np.asarray(outputs[1])[:] = (data > 0).sum(), data[data > 0]

    positives.gradient(lambda F, heads, inputs, outputs: [None])
    try:
        count, which = mx.sym.positives(mx.sym.exp(mx.sym.Variable("x")) - 1)
        bound = mx.sym.Group([count, which, mx.sym.exp(count) * 2]).simple_bind(mx.cpu(), grad_req="null", x=(4,))
        seen = np.asarray(bound.outputs[0])
        for x in ([1, -1, -1, 1], [1, 1, 1, 1], [-1, -1, -1, -1]):
            found = bound.forward(x=nd.array(x))
            n = sum(v > 0 for v in x)
            assert found[1].shape == (n,) and seen[0] == found[0].asscalar() == n  # written in place, as any other
            np.testing.assert_allclose(found[2].asscalar(), 2 * np.exp(n), rtol=1e-6)
    finally:
        mx.op.unregister("positives")


def test_a_size_that_contradicts_the_shape_rule_is_refused(distinct):
    distinct.shape(lambda data: [(2,), (None,)])
    with pytest.raises(mx.MXNetError, match=r"distinct.*\(2,\).*\(1,\)"):
        nd.distinct(nd.array([5, 5, 5]))


@pytest.mark.parametrize("call", [
    lambda: nd._internal._boolean_mask_as(nd.ones((2, 3)), nd.array([[0, 1, 2], [3, 4, 0]]), nd.ones((2, 3))),
    lambda: nd._internal._boolean_mask_as(nd.ones((2, 3)), nd.array([1, 1]), nd.ones((1, 3))),
    lambda: nd._internal._boolean_mask_grad(nd.ones((1, 3)), nd.array([1, 1]), nd.ones((2, 3))),
])  # fmt: skip
def test_what_a_mask_chooses_fits_what_was_asked_for(call):
    with pytest.raises(mx.MXNetError, match=r"index chooses \d parts"):
        call()


def test_a_gradient_of_another_shape_is_refused():
    with pytest.raises(mx.MXNetError, match="cannot be viewed in shape"):
        nd._internal._dot_grad(nd.ones((2,)), nd.ones((3,)), nd.ones((2, 3, 2)), side="lhs", transpose_b=True)
