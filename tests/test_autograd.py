"""Recording, scopes, backward, grad of any order, Function, memory: the semantics of ``mx.autograd``."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd

try:
    import resource
except ImportError:  # Windows
    resource = None


def variable(values, dtype="float64", grad_req="write"):
    x = nd.array(values, dtype=dtype)
    x.attach_grad(grad_req)
    return x


def close(array, expected, rtol=1e-12, atol=1e-12):
    np.testing.assert_allclose(array.asnumpy(), expected, rtol=rtol, atol=atol)


# ---- scopes ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("reshaped", [
    lambda v: nd.Reshape(v, shape=(-1,)), lambda v: nd.Flatten(v.expand_dims(0)).reshape((-1,)), lambda v: v.reshape((-1,)),
])  # fmt: skip
def test_a_reshape_that_copies_keeps_the_history(reshaped):
    v = nd.from_dlpack(np.arange(24, dtype="float32").reshape(4, 6).T)  # no view of it is flat
    v.attach_grad()
    with autograd.record():
        y = (reshaped(v) * nd.arange(24)).sum()
    y.backward()
    np.testing.assert_array_equal(v.grad.asnumpy(), np.arange(24).reshape(6, 4))


def test_scopes_nest_and_are_put_back():
    assert not autograd.is_recording() and not autograd.is_training()
    with autograd.record():
        assert autograd.is_recording() and autograd.is_training()
        with autograd.pause():
            assert not autograd.is_recording() and not autograd.is_training()
            with autograd.train_mode():
                assert not autograd.is_recording() and autograd.is_training()
        with autograd.predict_mode():
            assert autograd.is_recording() and not autograd.is_training()
        assert autograd.is_recording() and autograd.is_training()
    with autograd.record(train_mode=False):
        assert autograd.is_recording() and not autograd.is_training()
    with autograd.pause(train_mode=True):
        assert not autograd.is_recording() and autograd.is_training()
    assert not autograd.is_recording() and not autograd.is_training()


def test_scopes_are_put_back_after_an_error():
    with pytest.raises(ZeroDivisionError), autograd.record():
        1 / 0  # noqa: B018
    assert not autograd.is_recording() and not autograd.is_training()


def test_switches_return_what_was():
    assert autograd.set_recording(True) is False
    assert autograd.set_recording(False) is True
    assert autograd.set_training(True) is False
    assert autograd.set_training(False) is True


def test_pause_leaves_calls_out():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
        with autograd.pause():
            z = y * 3
        w = y + z
    w.backward()
    close(x.grad, [2, 4])


def test_state_is_put_back_by_a_failing_backward():
    x = variable([1.0])
    with autograd.record():
        y = x * 2
        with pytest.raises(mx.MXNetError):
            y.backward(nd.ones((2,), dtype="float64"))
        assert autograd.is_recording() and autograd.is_training()


# ---- backward --------------------------------------------------------------------------------------------------------
def test_write_replaces_and_add_adds():
    a, b, c = variable([3.0]), variable([3.0], grad_req="add"), variable([3.0], grad_req="null")
    for array in (a, b):
        array.grad[:] = 10
    for round_ in (1, 2):
        with autograd.record():
            y = a * a + b * b + c * c
        y.backward()
        close(a.grad, [6])
        close(b.grad, [10 + 6 * round_])


def test_null_stores_nothing():
    x = nd.array([2.0])
    gradient = nd.array([7.0])
    autograd.mark_variables([x], [gradient], "null")
    z = variable([3.0], dtype="float32")
    with autograd.record():
        y = x * x * z
    assert x.grad is gradient
    y.backward(retain_graph=True)
    assert x.grad is gradient
    y.backward()
    close(gradient, [7])
    close(z.grad, [4])
    assert x.grad is None  # as in MXNet, where it goes with the history


def test_attached_null():
    x, z = nd.ones((2,)), nd.ones((2,))
    x.attach_grad("null")
    z.attach_grad()
    assert x.grad.asnumpy().tolist() == [0, 0]
    for _ in range(2):
        with autograd.record():
            y = x * z * 2
        y.backward()
        assert x.grad is None and z.grad.asnumpy().tolist() == [2, 2]
    x.attach_grad()
    assert x.grad.asnumpy().tolist() == [0, 0]


@pytest.mark.parametrize("uses", [1, 2, 3, 6])
@pytest.mark.parametrize("req", ["write", "add"])
def test_variable_used_several_times(uses, req):
    x = variable([1.5, -2.0], grad_req=req)
    x.grad[:] = 5
    with autograd.record():
        y = x * 1.0
        for _ in range(uses - 1):
            y = y * x
    y.backward()
    want = uses * np.array([1.5, -2.0]) ** (uses - 1)
    close(x.grad, want + (5 if req == "add" else 0))


@pytest.mark.parametrize("reqs", [(a, b) for a in ("null", "write", "add") for b in ("null", "write", "add")])
def test_one_output_into_two_inputs(reqs):
    """The result must not depend on which gradient is asked for (apache/mxnet#20293)."""
    a, b, stored = variable([2.0, 3.0]), variable([5.0, 7.0]), []
    for array, req in zip((a, b), reqs, strict=True):
        stored.append(nd.array([1.0, 1.0], dtype="float64"))
        autograd.mark_variables([array], [stored[-1]], req)
    with autograd.record():
        t = a * b
        y = t * t + t
    if reqs == ("null", "null"):
        with pytest.raises(mx.MXNetError, match="every variable that the array was computed from has grad_req='null'"):
            y.backward()
        return
    y.backward()
    t = np.array([10.0, 21.0])
    slopes = [(2 * t + 1) * np.array([5.0, 7.0]), (2 * t + 1) * np.array([2.0, 3.0])]
    for array, req, slope in zip(stored, reqs, slopes, strict=True):
        close(array, {"null": np.ones(2), "write": slope, "add": slope + 1}[req])


def test_gradient_that_is_zero_is_written():
    """A variable whose gradient is zero must not keep the gradient of an earlier call."""
    x = variable([1.0, -2.0])
    x.grad[:] = 7
    with autograd.record():
        y = nd.sign(x)
    y.backward()
    close(x.grad, [0, 0])


def test_variable_that_is_not_reached_is_left_alone():
    x, other = variable([1.0]), variable([1.0])
    other.grad[:] = 7
    with autograd.record():
        y = x * 2
        other * 3
    y.backward()
    close(x.grad, [2])
    close(other.grad, [7])


def test_head_gradients():
    x = variable([[1.0, 2.0], [3.0, 4.0]])
    head = nd.array([[10.0, 1.0], [0.1, 0.01]], dtype="float64")
    with autograd.record():
        y = x * x
    y.backward(head)
    close(x.grad, 2 * x.asnumpy() * head.asnumpy())


@pytest.mark.parametrize("layout", ["transposed", "stride 0", "negative"])
def test_head_gradient_of_any_strides(layout):
    x = variable(np.arange(6.0).reshape(2, 3))
    head = {
        "transposed": nd.array(np.arange(6.0).reshape(3, 2), dtype="float64")._view((2, 3), (1, 2), 0),
        "stride 0": nd.array([[2.0], [3.0]], dtype="float64")._view((2, 3), (1, 0), 0),
        "negative": nd.array(np.arange(6.0), dtype="float64")._view((2, 3), (-3, -1), 5),
    }[layout]
    with autograd.record():
        y = nd.sin(x) * x
    y.backward(head)
    v = x.asnumpy()
    close(x.grad, head.asnumpy() * (np.cos(v) * v + np.sin(v)))


def test_several_heads_add_up():
    x = variable([1.0, 2.0])
    with autograd.record():
        y, z = x * x, x * 3
    autograd.backward([y, z], [None, nd.array([10.0, 100.0], dtype="float64")])
    close(x.grad, [2 + 30, 4 + 300])


def test_same_head_twice():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
    autograd.backward([y, y])
    close(x.grad, [4, 8])


def test_head_that_is_a_variable():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
    autograd.backward([x, y])
    close(x.grad, [3, 5])


def test_unused_output_of_several():
    x = variable(np.arange(6.0).reshape(2, 3))
    with autograd.record():
        parts = nd.split(x, num_outputs=3, axis=1)
        y = parts[1] * 2
    y.backward()
    close(x.grad, [[0, 2, 0], [0, 2, 0]])


def test_retain_graph():
    x = variable([3.0])
    with autograd.record():
        y = x * x
    y.backward(retain_graph=True)
    close(x.grad, [6])
    y.backward()
    close(x.grad, [6])
    with pytest.raises(mx.MXNetError, match=r"freed.*retain_graph=True"):
        y.backward()


def test_a_second_backward_names_the_operator_of_a_plan():
    x = nd.array([[1, 2]])
    x.attach_grad()
    with autograd.record():
        y = nd.softmax_cross_entropy(x, nd.array([0]))
    y.backward()
    with pytest.raises(mx.MXNetError, match="cannot differentiate operator softmax_cross_entropy again"):
        y.backward()


def test_train_mode_of_backward():
    seen = []

    class Probe(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, g):
            seen.append((autograd.is_training(), autograd.is_recording()))
            return g * 2

    x = variable([1.0])
    for train in (True, False):
        with autograd.record():
            y = Probe()(x)
        y.backward(train_mode=train)
    assert seen == [(True, False), (False, False)]


def test_mark_variables():
    x, y = nd.array([1.0, 2.0]), nd.array([3.0])
    gx, gy = nd.zeros((2,)), nd.ones((1,))
    autograd.mark_variables([x, y], [gx, gy], ["write", "add"])
    with autograd.record():
        z = nd.sum(x * x) * y
    z.backward()
    close(gx, [6, 12])
    close(gy, [1 + 5])
    assert x.grad is gx or np.shares_memory(np.asarray(x.grad), np.asarray(gx))


def test_attach_grad_cuts_history():
    x = variable([2.0])
    with autograd.record():
        y = x * x
        y.attach_grad()
        z = y * 3
    z.backward()
    close(y.grad, [3])
    close(x.grad, [0])


def test_detach():
    x = variable([2.0, 3.0])
    with autograd.record():
        y = x * x
        z = y.detach() * x
    z.backward()
    close(x.grad, [4, 9])
    assert np.shares_memory(np.asarray(y), np.asarray(y.detach()))
    with autograd.record():
        z = nd.stop_gradient(x * x) * x
    z.backward()
    close(x.grad, [4, 9])


def test_non_variable_inputs_get_no_gradient():
    x, c = variable([2.0]), nd.array([5.0], dtype="float64")
    with autograd.record():
        y = x * c
    y.backward()
    close(x.grad, [5])
    assert c.grad is None


def test_different_dtypes_through_a_cast():
    x = variable([1.5, 2.5], dtype="float16")
    with autograd.record():
        y = nd.cast(x, dtype="float64") * 3
    y.backward()
    assert x.grad.dtype == np.float16
    close(x.grad, [3, 3])


# ---- grad ------------------------------------------------------------------------------------------------------------
def test_grad_returns_and_does_not_store():
    x = variable([2.0, 3.0])
    x.grad[:] = 7
    with autograd.record():
        y = x * x * x
    (g,) = autograd.grad(y, [x])
    close(g, [12, 27])
    close(x.grad, [7, 7])


def test_grad_of_an_intermediate():
    x = variable([2.0])
    with autograd.record():
        y = x * x
        z = y * y
    gx, gy = autograd.grad(z, [x, y], retain_graph=True)
    close(gy, [8])
    close(gx, [32])


def test_grad_of_what_does_not_depend_is_zero():
    x, other = variable([2.0]), variable([[1.0, 2.0]])
    with autograd.record():
        y = x * x
    g = autograd.grad(y, [other])[0]
    assert g.shape == (1, 2)
    close(g, [[0, 0]])


@pytest.fixture
def counted():
    """The gradients of a product of matrices that were computed, in order."""
    found = []

    @mx.op.composite
    def autograd_product(F, a, b):
        """A product."""
        return F.dot(a, b)

    @autograd_product.gradient
    def _(F, heads, inputs, outputs):
        def of_a():
            found.append("a")
            return F.dot(heads[0], inputs[1], transpose_b=True)

        def of_b():
            found.append("b")
            return F.dot(inputs[0], heads[0], transpose_a=True)

        return [of_a, of_b]

    yield found
    mx.op.unregister("autograd_product")


def test_gradients_that_nobody_asked_for_are_not_computed(counted):
    a, b, c = variable([[2.0]]), variable([[3.0]]), nd.array([[5.0]], dtype="float64")
    with autograd.record():
        y = nd.autograd_product(nd.autograd_product(a, b), c)
    counted.clear()  # what the rule reads was found out
    assert float(autograd.grad(y, [a], retain_graph=True)[0].asscalar()) == 15
    assert counted == ["a", "a"]
    counted.clear()
    y.backward()
    assert counted == ["a", "a", "b"] and a.grad.asscalar() == 15 and b.grad.asscalar() == 10


def test_only_what_leads_to_the_variables_is_differentiated(counted):
    a, b = variable([[2.0]]), variable([[3.0]])
    with autograd.record():
        y = nd.autograd_product(nd.autograd_product(a, b), nd.autograd_product(b, b) * a)  # a b b b a
        counted.clear()
        (g,) = autograd.grad(y, [a], create_graph=True)
        assert counted == ["a", "b", "a"]
    g.backward()
    assert g.asscalar() == 108 and a.grad.asscalar() == 54 and b.grad.asscalar() == 108


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("f", "derivatives"),
    [
        (nd.sin, [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin]),
        (nd.exp, [np.exp] * 4),
        (nd.log, [lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3, lambda x: -6 / x**4]),
        (lambda x: x * x * x * x, [lambda x: 4 * x**3, lambda x: 12 * x**2, lambda x: 24 * x, lambda x: 24 + 0 * x]),
        (nd.reciprocal, [lambda x: -1 / x**2, lambda x: 2 / x**3, lambda x: -6 / x**4, lambda x: 24 / x**5]),
    ],
    ids=["sin", "exp", "log", "fourth power", "reciprocal"],
)
def test_orders(f, derivatives, order):
    x = variable([0.3, 0.7, 1.9])
    with autograd.record():
        y = f(x)
        for _ in range(order - 1):
            y = autograd.grad(y, [x], create_graph=True, retain_graph=True)[0]
    y.backward()
    close(x.grad, derivatives[order - 1](x.asnumpy()), rtol=1e-10)


def test_gradient_with_respect_to_head_gradients():
    """It stayed 0 in MXNet (apache/mxnet#15120)."""
    x, head = variable([0.5, 2.0]), variable([3.0, 5.0])
    with autograd.record():
        y = nd.log(x)
        (g,) = autograd.grad(y, [x], head_grads=[head], create_graph=True)
        z = g * g
    z.backward()
    v, h = x.asnumpy(), head.asnumpy()
    close(head.grad, 2 * h / v**2)
    close(x.grad, -2 * h**2 / v**3)


def test_head_gradient_is_not_squared():
    """The second derivative of log used the head gradient's square (apache/mxnet#14992)."""
    x = variable([0.5, 2.0])
    head = nd.array([3.0, 5.0], dtype="float64")
    with autograd.record():
        y = nd.log(x)
        (g,) = autograd.grad(y, [x], head_grads=[head], create_graph=True)
    g.backward(nd.array([1.0, 10.0], dtype="float64"))
    close(x.grad, -np.array([3.0, 5.0]) / np.array([0.5, 2.0]) ** 2 * np.array([1, 10]))


def test_mixed_second_derivatives():
    a, b = variable([2.0]), variable([3.0])
    with autograd.record():
        y = a * a * b + nd.sin(a * b)
        ga, gb = autograd.grad(y, [a, b], create_graph=True)
    (gab,) = autograd.grad(ga, [b], retain_graph=True)
    (gba,) = autograd.grad(gb, [a])
    expected = 2 * 2 + np.cos(6) - 6 * np.sin(6)
    close(gab, [expected])
    close(gba, [expected])


def test_gradient_penalty():
    """A loss that holds the norm of a gradient, through layers."""
    rng = np.random.default_rng(0)
    x, w = variable(rng.normal(size=(4, 3))), variable(rng.normal(size=(2, 3)))
    bias = variable(np.zeros(2))

    def penalty(weight):
        with autograd.record():
            h = nd.tanh(nd.FullyConnected(x, weight, bias, num_hidden=2))
            (g,) = autograd.grad(nd.sum(h), [x], create_graph=True)
            return nd.sum(g * g)

    value = penalty(w)
    value.backward()
    step, direction = 1e-5, rng.normal(size=(2, 3))
    up = penalty(variable(w.asnumpy() + step * direction)).asscalar()
    down = penalty(variable(w.asnumpy() - step * direction)).asscalar()
    assert np.isclose((w.grad.asnumpy() * direction).sum(), (up - down) / (2 * step), rtol=1e-6)


# ---- documented subgradients and masked values -------------------------------------------------------------------------
def test_where_does_not_leak_from_the_dead_branch():
    x = variable([0.0, 4.0])
    one = nd.ones((2,), dtype="float64")
    with autograd.record():
        safe = nd.where(x > 0, nd.sqrt(nd.where(x > 0, x, one)), nd.zeros_like(x))
        (g,) = autograd.grad(safe, [x], create_graph=True)
    close(g, [0, 0.25])
    g.backward()
    close(x.grad, [0, -1 / 32])


def test_where_with_infinite_values_in_the_dead_branch():
    a, b = variable([1.0, np.inf]), variable([np.nan, 2.0])
    condition = nd.array([1.0, 0.0], dtype="float64")
    with autograd.record():
        y = nd.where(condition, a, b)
        ga, gb = autograd.grad(y, [a, b], create_graph=True)
    close(ga, [1, 0])
    close(gb, [0, 1])


def test_norm_at_zero():
    x = variable([0.0, 0.0])
    with autograd.record():
        y = nd.norm(x)
    y.backward()
    close(x.grad, [0, 0])


@pytest.mark.parametrize(
    ("f", "at", "slope"),
    [
        (nd.relu, 0.0, 0.0),
        (nd.relu, np.nan, np.nan),
        (nd.abs, 0.0, 0.0),
        (lambda x: nd.clip(x, a_min=-1, a_max=1), 1.0, 1.0),
        (lambda x: nd.clip(x, a_min=-1, a_max=1), -1.0, 1.0),
        (nd.sqrt, 0.0, np.inf),
    ],
)
def test_subgradients(f, at, slope):
    x = variable([at])
    with autograd.record():
        y = f(x)
    y.backward()
    close(x.grad, [slope])


def test_ties_of_max():
    x = variable([1.0, 3.0, 3.0])
    with autograd.record():
        y = nd.max(x)
    y.backward()
    close(x.grad, [0, 1, 1])
    a, b = variable([2.0]), variable([2.0])
    with autograd.record():
        y = nd.maximum(a, b)
    y.backward()
    close(a.grad, [1])
    close(b.grad, [0])


# ---- Function --------------------------------------------------------------------------------------------------------
class Sigmoid(autograd.Function):
    def forward(self, x):
        y = 1 / (1 + nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


class Cube(autograd.Function):
    """Differentiable again: its backward calls operators on an input that was saved."""

    def forward(self, x):
        self.save_for_backward(x)
        return x * x * x

    def backward(self, dy):
        (x,) = self.saved_tensors
        return 3 * x * x * dy


def test_function():
    x = variable([-1.0, 0.5])
    with autograd.record():
        y = Sigmoid()(x) * 2
    y.backward()
    s = 1 / (1 + np.exp(-x.asnumpy()))
    close(y, 2 * s)
    close(x.grad, 2 * s * (1 - s))


def test_function_twice_differentiable():
    x = variable([2.0, -3.0])
    with autograd.record():
        y = Cube()(x)
        (g,) = autograd.grad(y, [x], create_graph=True)
    close(g, [12, 27])
    g.backward()
    close(x.grad, [12, -18])


def test_function_of_several_inputs_and_outputs():
    class Both(autograd.Function):
        def forward(self, a, b):
            self.save_for_backward(a, b)
            return a * b, a + b

        def backward(self, g_product, g_sum):
            _, b = self.saved_tensors
            return g_product * b + g_sum, None

    a, b = variable([2.0]), variable([5.0])
    b.grad[:] = 7
    with autograd.record():
        product, total = Both()(a, b)
        y = product * 10 + total
    y.backward()
    close(a.grad, [51])
    close(b.grad, [0])


def test_function_outside_record_and_misuse():
    f = Cube()
    close(f(nd.array([2.0])), [8])
    with pytest.raises(mx.MXNetError, match="Cube instance can be called once"):
        f(nd.array([2.0]))

    class TooMany(Cube):
        def backward(self, dy):
            return dy, dy

    x = variable([1.0])
    with autograd.record():
        y = TooMany()(x)
    with pytest.raises(mx.MXNetError, match="TooMany returned 2 gradients for 1 inputs"):
        y.backward()

    class WrongShape(Cube):
        def backward(self, dy):
            return nd.ones((5,), dtype="float64")

    with autograd.record():
        y = WrongShape()(x)
    with pytest.raises(mx.MXNetError, match=r"WrongShape.*\(5,\).*\(1,\)"):
        y.backward()


def test_function_that_returns_its_input():
    class Same(autograd.Function):
        def forward(self, x):
            return x

        def backward(self, dy):
            return dy * 10

    x = variable([1.0])
    with autograd.record():
        y = Same()(x)
        z = y * 2
    z.backward()
    close(x.grad, [20])


def test_error_inside_a_function_passes():
    class Fails(Cube):
        def backward(self, dy):
            raise KeyError("mine")

    x = variable([1.0])
    with autograd.record():
        y = Fails()(x)
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    with autograd.record():
        y = x * 2
    y.backward()
    close(x.grad, [2])


@pytest.mark.parametrize("linear", [lambda x: x * 4, nd.radians, lambda x: nd.Dropout(x, p=0.5), nd.sum, lambda x: x + 1])
def test_the_gradient_of_a_constant_gradient_is_zero(linear):
    x, head = variable([1.0, 2.0]), nd.ones((2,), dtype="float64")
    with autograd.record():
        y = linear(x)
        first = autograd.grad(y, x, head_grads=head[: y.size], create_graph=True)[0]
        second = autograd.grad(first, x, create_graph=True)[0]
        third = autograd.grad(second, x)[0]
    close(second, [0, 0])
    close(third, [0, 0])
    assert first is not head
    with autograd.record(), pytest.raises(mx.MXNetError, match="not computed from variables"):
        autograd.grad(head, x)  # the caller's array is as it was


class _Through(autograd.Function):
    def forward(self, x):
        return x.clip(-1, 1)

    def backward(self, head):
        return head


@pytest.mark.parametrize("create", [False, True])
def test_gradients_that_are_returned_are_the_callers(create):
    """Whoever changes one changes neither a head gradient nor another one."""
    x, head = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
    x.attach_grad()
    with autograd.record():
        found = autograd.grad([_Through()(x)], [x, x], [head * 1], create_graph=create)
        itself = autograd.grad(x, x, head, create_graph=create)[0]
        through = autograd.grad(_Through()(x), x, head, create_graph=create)[0]
    for g in (found[0], itself, through):
        g[:] = 0
    assert (head.asnumpy().tolist(), found[1].asnumpy().tolist()) == ([3, 4], [3, 4])
    head.attach_grad()
    with autograd.record():
        g = autograd.grad(_Through()(x), x, head, create_graph=create)[0]
        if create:
            (g * g).backward()
            assert head.grad.asnumpy().tolist() == [6, 8]


@pytest.mark.parametrize("changes", ["argument", "output", "nothing"])
def test_what_a_function_saved_and_somebody_changed(changes):
    class Product(autograd.Function):
        def forward(self, x):
            x += 0  # not too late
            y = nd.exp(x)
            self.save_for_backward(x, y, "text")
            assert len(self.saved_tensors) == 3
            return y * x, y

        def backward(self, head, _):
            x, y, _ = self.saved_tensors
            return head * y * (x + 1)

    x = nd.array([0.0, 1.0])
    x.attach_grad()
    with autograd.record():
        product, y = Product()(x)
    product[:] = 0
    if changes == "nothing":
        product.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), [1, 2 * np.e], rtol=1e-6)
        return
    (x if changes == "argument" else y)[:] = 0
    with pytest.raises(mx.MXNetError, match=r"Product: array [01] of what it saved was changed after .* an assignment"):
        product.backward()
