"""What autograd keeps for backward: only what a gradient rule reads, and unchanged."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd

MEGABYTE = 1 << 20


def made(*shape):
    return nd.array(np.random.default_rng(3).uniform(1, 2, shape))


# ---- unchanged -------------------------------------------------------------------------------------------------------
def recorded(function, *arrays):
    for a in arrays:
        a.attach_grad()
    with autograd.record():
        return function(*arrays)


def pulled_to(w):
    store = mx.kv.create()
    store.init("w", nd.array([5.0, 6.0]))
    store.pull("w", out=w)


CHANGES = {
    "_plus_scalar": lambda w: w.__iadd__(1),
    "_mul_scalar": lambda w: w.__imul__(2),
    "an assignment": lambda w: w.__setitem__(slice(None), 5),
    "an assignment ": lambda w: w.__setitem__(slice(1, None), nd.array([5.0])),
    "an assignment  ": lambda w: w.__setitem__(np.array([0]), 5),
    "sin": lambda w: nd.sin(nd.array([1.0, 2.0]), out=w),
    "_plus_scalar ": lambda w: w[1:].__iadd__(1),  # through a view
    "copyto": lambda w: nd.array([5.0, 6.0]).copyto(w),
    "copyto ": lambda w: pulled_to(w),
    "an executor": lambda w: mx.sym.exp(mx.sym.Variable("w")).bind(mx.cpu(), {"w": w}).forward(w=nd.zeros((2,))),
}


@pytest.mark.parametrize("by", CHANGES)
def test_a_kept_array_that_changed_is_an_error(by):
    w = nd.array([3.0, 4.0])
    y = recorded(lambda w: w * w, w)
    CHANGES[by](w)
    with pytest.raises(
        mx.MXNetError, match=r"operator \w*mul: its argument '\w+' was changed after it was recorded, by " + by.strip()
    ):
        y.backward()


def test_every_order_and_kind_is_checked():
    w, v = made(3, 3), made(3, 3)
    y = recorded(lambda w, v: nd.dot(w, v), w, v)
    v[:] = 0
    with pytest.raises(mx.MXNetError, match="operator dot: its argument 'rhs' was changed"):
        y.backward()
    w = made(3)
    w.attach_grad()
    with autograd.record():
        first = autograd.grad(nd.sin(w), w, create_graph=True)[0]
    w += 1
    with pytest.raises(mx.MXNetError, match="_backward_sin: its argument 'data' was changed"):
        first.backward()


def test_an_output_that_changed():
    w = made(3)
    y = recorded(nd.exp, w)
    y[:] = 0
    with pytest.raises(mx.MXNetError, match="operator exp: its output 'output' was changed after it was recorded, by an as"):
        y.backward()


def test_a_call_that_writes_over_what_it_reads():
    x, y = made(3), made(3)
    x.attach_grad()
    with autograd.record():
        z = nd.broadcast_mul(x, y, out=y)
    with pytest.raises(mx.MXNetError, match="operator broadcast_mul: its argument 'rhs' was changed"):
        z.backward()


def test_what_is_not_read_may_change():
    w, b = made(4, 3), made(3)
    head = made(3)
    y = recorded(lambda w, b: (nd.sum(w, axis=0) + b).reshape((3, 1)), w, b)
    w[:] = 0
    b += 1
    y.backward(head.reshape((3, 1)))
    np.testing.assert_array_equal(w.grad.asnumpy(), np.tile(head.asnumpy(), (4, 1)))
    np.testing.assert_array_equal(b.grad.asnumpy(), head.asnumpy())


def test_a_step_of_an_optimizer_after_backward():
    w = made(3)
    w.attach_grad()
    for _ in range(3):
        with autograd.record():
            y = nd.sum(w * w)
        y.backward()
        w -= 0.1 * w.grad
    assert w.asnumpy().shape == (3,)


def test_what_was_written_before_is_no_change():
    w = made(2)
    w += 1
    w[:] = w * 2
    y = recorded(lambda w: w * w, w)
    y.backward()
    np.testing.assert_allclose(w.grad.asnumpy(), 2 * w.asnumpy())


def test_executors_say_that_they_wrote():
    x = mx.sym.Variable("x")
    executor = mx.sym.exp(x).bind(mx.cpu(), {"x": nd.zeros((2,))}, args_grad={"x": nd.zeros((2,))})
    out = executor.forward(is_train=True)[0]
    for run in (lambda: executor.forward(is_train=True), lambda: executor.backward([nd.ones((2,))])):
        w = nd.ones((2,))
        w.attach_grad()
        with autograd.record():
            y = w * out * executor.grad_dict["x"]
        run()
        with pytest.raises(mx.MXNetError, match="by an executor"):
            y.backward()


# ---- only what is read -----------------------------------------------------------------------------------------------
def kept_bytes(function, *arrays):
    """Return the bytes that a recorded call keeps beside its inputs and output, when nobody else holds them."""
    for a in arrays:
        a.attach_grad()
    with autograd.record():
        temporary = [a * 1 for a in arrays]  # their backward reads nothing
        before = mx.context.memory_stats()["in_use"]
        y = function(*temporary)
    nd.waitall()  # a call that waits keeps its inputs
    size, out = sum(a.nbytes for a in temporary), y.nbytes
    del temporary
    return mx.context.memory_stats()["in_use"] - before + size - out


@pytest.mark.parametrize(
    "function",
    [
        nd.sum, nd.mean, lambda x: nd.sum(x, axis=1), lambda x: nd.mean(x, axis=0, keepdims=True), nd.transpose,
        lambda x: x.reshape((-1,)), lambda x: nd.broadcast_add(x, x[0:1]), lambda x: nd.concat(x, x, dim=0),
        lambda x: nd.slice_axis(x, axis=0, begin=1, end=3), lambda x: x[2], lambda x: x[:, ::2], lambda x: nd.tile(x, (2, 1)),
        lambda x: nd.repeat(x, 2), lambda x: nd.flip(x, axis=0), lambda x: nd.stack(x, x), lambda x: nd.expand_dims(x, 0),
        lambda x: x.astype("float64"), lambda x: nd.broadcast_sub(x, nd.ones((1, 1024))), lambda x: x + 1,
        lambda x: nd.elemwise_add(x, x), lambda x: nd.add_n(x, x, x), lambda x: nd.split(x, 2)[0] + nd.split(x, 2)[1],
    ],
)  # fmt: skip
def test_what_no_rule_reads_is_not_kept(function):
    x = made(1024, 1024)
    kept_bytes(function, x)
    assert kept_bytes(function, x) < MEGABYTE


@pytest.mark.parametrize(
    "function", [nd.sin, nd.square, lambda x: nd.broadcast_mul(x, x[0:1]), lambda x: nd.dot(x, x), nd.norm]
)
def test_what_a_rule_reads_is_kept(function):
    x = made(1024, 1024)
    assert kept_bytes(function, x) >= 4 * MEGABYTE
