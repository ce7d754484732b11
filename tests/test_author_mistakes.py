"""Operators of users that are wrong: they say so, and name themselves, instead of giving wrong numbers."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.op import composite, kernel

X = np.array([1.0, 2.0], "float32")


def kernel_with(own, **parts):
    """Make the operator ``test_mistake`` of one input."""

    @kernel
    def test_mistake(x):
        """An operator."""

    test_mistake.shape(parts.get("shape", lambda x: x))
    test_mistake.cpu(parts.get("cpu", lambda inputs, outputs: outputs[0].__setitem__(slice(None), inputs[0])))
    if "gradient" in parts:
        test_mistake.gradient(parts["gradient"])
    return own(test_mistake)


# ---- gradients by NumPy -------------------------------------------------------------------------------------------------
def by_numpy(F, heads, inputs, outputs):
    return [nd.array(heads[0].asnumpy() * 2 * inputs[0].asnumpy())]


class Square(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return nd.square(x)

    def backward(self, head):
        (x,) = self.saved_tensors
        return nd.array(head.asnumpy() * 2 * x.asnumpy())


@pytest.mark.parametrize("kind", ["rule", "Function"])
@pytest.mark.parametrize("around", [lambda y, x: y, lambda y, x: y + x**3, lambda y, x: y * x])
def test_a_gradient_by_numpy_has_no_gradient(own, kind, around):
    """At first order it is right; at second it was 0, beside whatever had one."""
    square = lambda x: x * x  # noqa: E731
    if kind == "rule":
        kernel_with(own, cpu=lambda i, o: o[0].__setitem__(slice(None), i[0].asnumpy() ** 2), gradient=by_numpy)
        function, name = (lambda x: nd.test_mistake(x)), "operator test_mistake"
    else:
        function, name = (lambda x: Square()(x)), "Square"
    x, same = nd.array(X), nd.array(X)
    x.attach_grad()
    same.attach_grad()
    with autograd.record():
        y, want = around(function(x), x), around(square(same), same)
    y.backward(retain_graph=True)
    want.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), same.grad.asnumpy(), rtol=1e-6)
    with autograd.record():
        (g,) = autograd.grad(around(function(x), x), [x], create_graph=True)
    np.testing.assert_allclose(g.asnumpy(), same.grad.asnumpy(), rtol=1e-6)
    with pytest.raises(mx.MXNetError, match=f"the gradient of {name} cannot be differentiated.*NumPy"):
        g.backward()


def test_a_rule_may_look_at_one_number(own):
    def rule(F, heads, inputs, outputs):
        return [heads[0] * inputs[0] * (2 if inputs[0][0].asscalar() > 0 else 3)]

    kernel_with(own, cpu=lambda i, o: o[0].__setitem__(slice(None), i[0].asnumpy() ** 2), gradient=rule)
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        (g,) = autograd.grad(nd.test_mistake(x), [x], create_graph=True)
    g.backward()
    assert x.grad.asnumpy().tolist() == [2, 2]


# ---- outputs ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [0, 2, 3])
def test_a_composite_returns_what_it_has(own, count):
    @composite
    def test_mistake(F, x):
        """Returns several arrays."""
        return [F.square(x)] * count

    own(test_mistake)
    with pytest.raises(mx.MXNetError, match=f"test_mistake returned {count} arrays, but has 1 output"):
        nd.test_mistake(nd.array(X))
    with pytest.raises(mx.MXNetError, match="test_mistake"):
        sym.test_mistake(sym.var("x")).bind(mx.cpu(), {"x": nd.array(X)})


def test_a_composite_returns_arrays(own):
    @composite
    def test_mistake(F, x):
        """Returns a NumPy array."""
        return np.ones(2)

    own(test_mistake)
    with pytest.raises(mx.MXNetError, match="test_mistake returned a ndarray; expected what operators return"):
        nd.test_mistake(nd.array(X))


MISTAKES = {
    "writes nothing": (lambda inputs, outputs: None, "wrote nothing into output 0"),
    "writes into a copy": (lambda inputs, outputs: outputs[0].asnumpy().fill(3), "wrote nothing into output 0"),
    "returns": (lambda inputs, outputs: inputs[0] * 2, "returned a NDArray, which nobody reads"),
    "writes its input": (lambda inputs, outputs: inputs[0].__setitem__(slice(None), 7), "read-only"),
    "writes its input's buffer": (lambda inputs, outputs: np.asarray(inputs[0]).fill(7), "read-only"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("bound", [False, True])
def test_a_cpu_function_that_is_wrong(own, mistake, bound):
    run, message = MISTAKES[mistake]
    kernel_with(own, cpu=run)
    x = nd.array(X)
    with pytest.raises(mx.MXNetError, match=f"(?s)test_mistake.*{message}"):
        if bound:
            sym.test_mistake(sym.var("x")).bind(mx.cpu(), {"x": x}).forward()
        else:
            nd.test_mistake(x)
    assert x.asnumpy().tolist() == X.tolist()


@pytest.mark.parametrize("shape", [(-1,), (2.5,), (True, 2), ("2",)])
def test_a_shape_rule_that_returns_no_shape(own, shape):
    kernel_with(own, shape=lambda x: shape)
    with pytest.raises(mx.MXNetError, match="test_mistake: its shape rule returned"):
        nd.test_mistake(nd.array(X))
    with pytest.raises(mx.MXNetError, match="test_mistake: its shape rule returned"):
        sym.test_mistake(sym.var("x")).infer_shape(x=(2,))
