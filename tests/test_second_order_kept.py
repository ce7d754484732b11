"""Backward of Function and CustomOp that is differentiated again: what forward made is no constant there."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym

X = np.array([0.5, 1.5])
MADE = "cannot be differentiated: its backward reads an array that its forward made"
CONSTANT = nd.array([3.0, 3.0], dtype="float64")


def variable(values=X):
    x = nd.array(values, dtype="float64")
    x.attach_grad()
    return x


def orders(call):
    """Return the first and second derivative of the sum of a call."""
    x = variable()
    with autograd.record():
        (first,) = autograd.grad(call(x), [x], create_graph=True)
        total = (first * nd.array([1.0, 2.0], dtype="float64")).sum()
    total.backward()
    return first.asnumpy(), x.grad.asnumpy() / [1, 2]


elsewhere = {}


def kept(self, x):
    self.t = nd.exp(x)
    return self.t * 1


def saved(self, x):
    t = nd.exp(x)
    self.save_for_backward(t)
    return t * 1


def copied(self, x):
    self.t = nd.exp(x.copy())
    return nd.exp(x)


def in_a_list(self, x):
    self.t = [nd.exp(x)]
    return nd.exp(x)


def kept_elsewhere(self, x):
    elsewhere["t"] = nd.exp(x)
    return nd.exp(x)


def in_place(self, x):
    self.t = nd.zeros(x.shape, dtype="float64")
    self.t[:] = nd.exp(x)
    return nd.exp(x)


def by_parts(self, x):
    self.t = nd.zeros(x.shape, dtype="float64")
    for k in range(2):
        self.t[k : k + 1] = nd.exp(x[k])
    return nd.exp(x)


def into_out(self, x):
    self.t = nd.ones(x.shape, dtype="float64")
    nd.exp(x, out=self.t)
    return nd.exp(x)


def by_a_plan(self, x):
    self.t = nd.softmax(nd.stack(x, nd.zeros_like(x)), axis=0)[0] * (1 + nd.exp(x))
    return nd.exp(x)


def by_a_product(self, x):
    self.t = nd.dot(nd.diag(nd.exp(x)), nd.ones((2, 1), dtype="float64")).reshape(2)
    return nd.exp(x)


def by_another(self, x):
    class Inner(autograd.Function):
        def forward(self, x):
            return nd.exp(x)

    self.t = Inner()(x)
    return nd.exp(x)


def by_numpy(self, x):
    self.t = nd.array(np.exp(x.asnumpy()), dtype="float64")
    return nd.exp(x)


def by_numpy_elsewhere(self, x):
    elsewhere["t"] = nd.array(np.exp(x.asnumpy()), dtype="float64")
    return nd.exp(x)


def changed_later(self, x):
    self.t = nd.exp(x) / 2
    return nd.exp(x)


def in_first_order(forward):
    class Made(autograd.Function):
        def backward(self, dy):
            t = getattr(self, "t", elsewhere.get("t"))
            if forward is saved:
                (t,) = self.saved_tensors
            t = t[0] if isinstance(t, list) else t
            return dy * (t * 2 if forward is changed_later else t)

    Made.forward = forward
    return Made


WAYS = [
    kept, saved, copied, in_a_list, kept_elsewhere, in_place, by_parts, into_out, by_a_plan, by_a_product, by_another,
    by_numpy, by_numpy_elsewhere, changed_later,
]  # fmt: skip


@pytest.mark.parametrize("forward", WAYS)
def test_what_forward_made_is_no_constant(forward):
    made = in_first_order(forward)
    x = variable()
    with autograd.record():
        y = made()(x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.exp(X))  # first order is as ever
    with autograd.record():
        (first,) = autograd.grad(made()(x), [x], create_graph=True)
        other = first * x
    np.testing.assert_allclose(first.asnumpy(), np.exp(X))
    with pytest.raises(mx.MXNetError, match=MADE):
        first.backward(retain_graph=True)
    with pytest.raises(mx.MXNetError, match=MADE):
        other.backward()


@pytest.mark.parametrize("view", [
    lambda x: x[:], lambda x: x.reshape((-1,)), lambda x: x.detach(), lambda x: x.copy(), lambda x: x[::-1][::-1],
    lambda x: x.T, lambda x: x.astype("float64"), lambda x: nd.stack(x, x)[0],
])  # fmt: skip
def test_views_and_copies_of_an_input_are_no_constants(view):
    class Viewed(autograd.Function):
        def forward(self, x):
            self.x = view(x)
            return nd.exp(x)

        def backward(self, dy):
            return dy * nd.exp(self.x)

    with pytest.raises(mx.MXNetError, match=MADE):
        orders(lambda x: Viewed()(x))


def test_views_that_backward_takes_of_what_forward_made():
    class Made(autograd.Function):
        def forward(self, x):
            self.t = nd.exp(x)
            return self.t * 1

        def backward(self, dy):
            return dy * self.look(self.t)

    for look in (
        lambda t: t[:], lambda t: t.reshape((2, 1)).T.reshape(2), lambda t: t.copy(), lambda t: t.detach(),
        lambda t: t.astype("float64"), lambda t: nd.array(t.asnumpy(), dtype="float64"),
        lambda t: t[nd.array([0, 1], dtype="int32")], lambda t: t.as_in_context(mx.cpu()),
        lambda t: t.copyto(nd.zeros(2, dtype="float64")), lambda t: nd.L2Normalization(t.reshape((2, 1))).reshape(2) * t,
    ):  # fmt: skip
        Made.look = staticmethod(look)
        with pytest.raises(mx.MXNetError, match="cannot be differentiated"):
            orders(lambda x: Made()(x))


class Right(autograd.Function):
    """Reads its input, its output, and constants that were made in many ways."""

    def __init__(self, extra=None):
        super().__init__()
        self.extra, self.rate = extra, 2.0

    def forward(self, x):
        self.x, self.mask, self.draw = x, x > 1, nd.random.uniform(shape=(2,), dtype="float64") * 0 + 1
        self.like, self.kept, self.ones = (
            nd.zeros_like(x),
            nd.array([1.0, 1.0], dtype="float64"),
            nd.ones(2, dtype="float64"),
        )
        self.order, self.sign = nd.argsort(x, dtype="int32"), nd.sign(x)
        self.range, self.full = nd.arange(2, dtype="float64") * 0 + 1, nd.full((2,), 1.0, dtype="float64")
        self.stopped = nd.BlockGrad(x) * 0 + self.mask.T + (1 - self.mask)
        self.y = nd.exp(x)
        return self.y

    def backward(self, dy):
        given, dy = (
            dy,
            dy * self.y * (self.mask + 1) * self.draw * self.kept * self.ones * self.sign * self.range * self.full,
        )
        dy = dy * CONSTANT * self.stopped
        rest = self.like + nd.take(self.x, self.order) if self.extra is None else self.extra * self.x
        return dy + given * rest * self.rate


def test_constants_that_forward_makes_stay_constants():
    first, second = orders(lambda x: Right()(x))
    times = 3 * ((X > 1) + 1)
    np.testing.assert_allclose(first, times * np.exp(X) + 2 * X)
    np.testing.assert_allclose(second, times * first + 2)  # the output's derivative is what backward says


def test_what_does_not_depend_on_a_variable_is_not_refused():
    """A constant given as an input, and derivatives by other variables than those that forward read."""

    class Times(autograd.Function):
        def forward(self, x, c):
            self.c, self.t = c, nd.exp(c)
            self.c2 = c * c
            return x * x * c

        def backward(self, dy):
            return dy * self.head * self.c + 0 * self.c2, None

    Times.head = variable()
    c = nd.array([5.0, 7.0], dtype="float64")
    first, second = orders(lambda x: Times()(x, c))
    np.testing.assert_allclose(first, [2.5, 10.5])
    np.testing.assert_allclose(second, [0, 0])
    x = variable()
    first, second = orders(lambda y: Times()(x, y.detach()) * 1 + y**3)
    np.testing.assert_allclose(second, 6 * X)

    made = in_first_order(kept)
    x, head = variable(), variable([1.0, 1.0])
    with autograd.record():
        (first,) = autograd.grad(made()(x), [x], [head], create_graph=True, retain_graph=True)
        (by_head,) = autograd.grad(first, [head], retain_graph=True)
    np.testing.assert_allclose(by_head.asnumpy(), np.exp(X))  # which is linear in it
    with pytest.raises(mx.MXNetError, match=MADE):
        autograd.grad(first, [x])


def test_a_head_gradient_that_lies_over_an_input():
    class Square(autograd.Function):
        def forward(self, x):
            self.x = x
            return x * x

        def backward(self, dy):
            return 2 * self.x * dy

    x = variable()
    with autograd.record():
        (first,) = autograd.grad(Square()(x), [x], [x.detach()], create_graph=True)
    first.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * X)


def test_numbers_that_forward_keeps_of_its_arrays():
    class ByHost(autograd.Function):
        def forward(self, x):
            self.x, host = x, x.asnumpy()
            self.keep(host)
            return x * x * x

        def keep(self, host):
            """Look, and keep nothing."""

        def backward(self, dy):
            return 3 * self.x * self.x * dy + getattr(self, "numbers", 0) * 0

    np.testing.assert_allclose(orders(lambda x: ByHost()(x))[1], 6 * X)
    ByHost.keep = lambda self, host: setattr(self, "numbers", float(host[0]))
    with pytest.raises(mx.MXNetError, match="keeps numbers for its backward"):
        orders(lambda x: ByHost()(x))


@pytest.mark.parametrize("create", [False, True])
def test_a_checkpoint_of_detached_copies(create):
    class Checkpoint(autograd.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return nd.sin(x) * x

        def backward(self, dy):
            x = self.saved_tensors[0].detach()
            x.attach_grad()
            with autograd.record():
                y = nd.sin(x) * x
            if create:
                return autograd.grad(y, [x], [dy], create_graph=True)[0]
            y.backward(dy)
            return x.grad

    x = variable()
    with autograd.record():
        y = Checkpoint()(x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.cos(X) * X + np.sin(X))
    with pytest.raises(mx.MXNetError, match="its backward differentiates a detached copy, or without create_graph=True"):
        orders(lambda x: Checkpoint()(x))


def test_a_checkpoint_that_differentiates_the_inputs_themselves():
    class Checkpoint(autograd.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return nd.sin(x) * x

        def backward(self, dy):
            (x,) = self.saved_tensors
            if not autograd.is_recording():
                x = x.detach()
                x.attach_grad()
            with autograd.record():
                x = x * 1
                y = nd.sin(x) * x
            return autograd.grad(y, [x], [dy], create_graph=autograd.is_recording())[0]

    first, second = orders(lambda x: Checkpoint()(x))
    np.testing.assert_allclose(first, np.cos(X) * X + np.sin(X))
    np.testing.assert_allclose(second, 2 * np.cos(X) - np.sin(X) * X)


def test_arrays_that_forward_made_are_constants_elsewhere():
    """A running mean that forward updates does not depend on a variable."""

    class Centred(autograd.Function):
        mean = nd.zeros(2, dtype="float64")

        def forward(self, x):
            type(self).mean = 0.5 * self.mean + 0.5 * x
            return x - 1

        def backward(self, dy):
            return dy

    x = variable()
    with autograd.record():
        y = (Centred()(x) * Centred.mean).sum()
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), X / 2)
    with autograd.record():
        (first,) = autograd.grad(x * x * Centred.mean, [x], create_graph=True)
    first.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), X)


# ---- CustomOp --------------------------------------------------------------------------------------------------------
class Kept(mx.operator.CustomOp):
    """Keeps something of forward, as `keep` says."""

    def __init__(self, keep):
        super().__init__()
        self.keep = keep

    def forward(self, is_train, req, in_data, out_data, aux):
        (x,) = in_data
        y = nd.exp(x)
        self.t = {
            "made": y, "copy": nd.exp(x.copy()), "view": x[:], "input": x, "output": out_data[0], "mask": x > 1,
            "constant": nd.ones(x.shape, dtype="float64"), "numpy": np.exp(x.asnumpy()) if self.keep == "numpy" else None,
        }[self.keep]  # fmt: skip
        if aux:
            aux[0][:] = y
        self.assign(out_data[0], req[0], y)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        t, y, dy = self.t, out_data[0], out_grad[0]
        if self.keep in ("view", "input"):
            t = nd.exp(t)
        elif self.keep in ("mask", "constant"):
            t = y * (t + 1) / (t + 1)
        elif self.keep == "numpy":
            t = nd.array(t, dtype="float64")
        self.assign(in_grad[0], req[0], dy * (aux[0] if aux else t))


@mx.operator.register("test_kept")
class KeptProp(mx.operator.CustomOpProp):
    def __init__(self, keep, states="0"):
        super().__init__()
        self.kept, self.states = keep, int(states)

    def list_auxiliary_states(self):
        return ["state"] * self.states

    def infer_shape(self, shapes):
        return shapes, shapes, shapes[:1] * self.states

    def create_operator(self, ctx, shapes, dtypes):
        return Kept(self.kept)


def by_symbol(keep):
    head = sym.var("x", dtype="float64")
    graph = sym.sum(sym.Custom(head, op_type="test_kept", keep=keep)).gradient(["x"])
    e = graph.bind(mx.cpu(), {"x": nd.array(X, dtype="float64")}, args_grad={"x": nd.zeros(2, dtype="float64")})
    first = e.forward(is_train=True)[0].asnumpy()
    e.backward(nd.ones(2, dtype="float64"))
    return first, e.grad_dict["x"].asnumpy()


@pytest.mark.parametrize("run", [lambda keep: orders(lambda x: nd.Custom(x, op_type="test_kept", keep=keep)), by_symbol])
@pytest.mark.parametrize("keep", ["made", "copy", "view", "input", "output", "numpy", "mask", "constant"])
def test_what_a_custom_operator_keeps(run, keep):
    if keep in ("mask", "constant"):
        first, second = run(keep)
        np.testing.assert_allclose(first, np.exp(X))
        np.testing.assert_allclose(second, np.exp(X))
        return
    with pytest.raises(mx.MXNetError, match="keeps numbers" if keep == "numpy" else MADE):
        run(keep)


def test_a_state_that_a_custom_operator_writes():
    state = nd.zeros(2, dtype="float64")
    with pytest.raises(mx.MXNetError, match=MADE):
        orders(lambda x: nd.Custom(x, state, op_type="test_kept", keep="made", states=1))
