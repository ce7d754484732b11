"""Programs with loops and branches, written once for arrays and symbols; what the tests of control flow share."""

from pathlib import Path

import numpy as np

import mxop as mx
from mxop import autograd, nd, sym

DATA = Path(__file__).parent / "data"
V = sym.Variable


# ---- programs, written once for arrays and symbols -----------------------------------------------------------------------
def stacked(F, items):
    return F.stack(*items, axis=0)


def each(F, loop, body, data, states):
    """Run a body over slices: by the operator, or unrolled."""
    if loop:
        return F.contrib.foreach(body, data, states)
    slices = [F.split(d, num_outputs=d_len, axis=0, squeeze_axis=True) for d, d_len in data]
    outs = []
    for step in zip(*slices, strict=True):
        out, states = body(list(step), states)
        outs.append(out)
    return [stacked(F, o) for o in zip(*outs, strict=True)], states


def rnn(F, x, h, w, u):
    def body(xs, states):
        new = F.tanh(F.dot(xs[0], w) + F.dot(states[0], u))
        return [new, new * xs[0]], [new]

    return body, [x], [h]


def two_states(F, x, h, w, u):
    def body(xs, states):
        a, b = states
        return [a * F.sin(b)], [a * xs[0] + b, F.broadcast_add(F.tanh(a), F.sum(b, axis=0, keepdims=True))]

    return (
        body,
        [x],
        [h, F.dot(h, w) + u[:1] if F is nd else F.broadcast_add(F.dot(h, w), F.slice_axis(u, axis=0, begin=0, end=1))],
    )


def linear(F, x, h, w, u):
    """Nothing but the number of steps is read of the data: neither by the body nor by its gradient."""
    return lambda xs, states: ([states[0] + xs[0]], [states[0] + xs[0]]), [x], [F.dot(h, w) + F.dot(h, u)]


def loss_of(F, outs, states):
    terms = [F.sum(o * o * (0.1 * k + 0.1)) for k, o in enumerate([*outs, *states])]
    total = terms[0]
    for t in terms[1:]:
        total = total + t
    return total


ARGS = {"x": (4, 2, 3), "h": (2, 3), "w": (3, 3), "u": (3, 3)}


def values(shapes=None, dtype="float64", seed=1):
    rng = np.random.default_rng(seed)
    return {n: nd.array(rng.normal(size=s) * 0.4, dtype=dtype) for n, s in (shapes or ARGS).items()}


def again(F, grads):
    total = F.sum(F.sin(grads[0]))
    for g in grads[1:]:
        total = total + F.sum(F.sin(g))
    return total


def recorded(program, arrays, order, names=None):
    """Return the value and the gradients of a program of arrays, of the given order."""
    arrays = {n: a.copy() for n, a in arrays.items()}
    names = list(names or arrays)
    wanted = [arrays[n] for n in names]
    for a in wanted:
        a.attach_grad()
    with autograd.record():
        total = program(nd, **arrays)
        for _ in range(order - 1):
            total = again(nd, autograd.grad(total, wanted, create_graph=True))
    total.backward()
    return total.asnumpy(), {n: arrays[n].grad.asnumpy() for n in names}


def bound(program, arrays, order, names=None, **options):
    """Return the same of a bound symbol."""
    names = list(names or arrays)
    total = program(sym, **{n: V(n) for n in arrays})
    for _ in range(order - 1):
        total = again(sym, list(total.gradient(names)))
    grads = {n: nd.zeros(arrays[n].shape, dtype=arrays[n].dtype) for n in names}
    executor = total.bind(mx.cpu(), {n: a.copy() for n, a in arrays.items()}, args_grad=grads, **options)
    value = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(nd.ones(value.shape, dtype=value.dtype))
    again_value = executor.forward(is_train=True)[0].asnumpy()  # nothing is left over from the first run
    np.testing.assert_array_equal(value, again_value)
    executor.backward(nd.ones(value.shape, dtype=value.dtype))
    np.testing.assert_array_equal(executor.forward(is_train=False)[0].asnumpy(), value)
    return value, {n: g.asnumpy() for n, g in grads.items()}


def close(found, wanted, tolerance=1e-9):
    np.testing.assert_allclose(found[0], wanted[0], rtol=tolerance, atol=tolerance)
    assert found[1].keys() == wanted[1].keys()
    for name, g in wanted[1].items():
        scale = max(1.0, np.abs(g).max())
        np.testing.assert_allclose(found[1][name] / scale, g / scale, rtol=tolerance, atol=tolerance, err_msg=name)


def with_loop(make, loop):
    def program(F, x, h, w, u):
        body, data, states = make(F, x, h, w, u)
        return loss_of(F, *each(F, loop, body, data if loop else [(d, ARGS["x"][0]) for d in data], states))

    return program


def powers(most, limit):
    def program(F, s, w):
        def cond(i, s):
            return i < limit

        def func(i, s):
            new = F.tanh(s * w) + i
            return [s * new, new], [i + 1, new]

        i = nd.zeros((1,), dtype="float64") if F is nd else sym.zeros((1,), dtype="float64")
        outs, states = F.contrib.while_loop(cond, func, [i, s], most)
        return loss_of(F, outs, states[1:])

    return program


def unrolled(steps):
    def program(F, s, w):
        outs = []
        for i in range(steps):
            new = F.tanh(s * w) + i
            outs.append((s * new, new))
            s = new
        return loss_of(F, [stacked(F, o) for o in zip(*outs, strict=True)], [s])

    return program
