"""Slices that elementwise steps alone read are read where they lie, in executors and compiled functions."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd

RNG = np.random.default_rng(4)


def part(F, x, axis, begin, end):
    return F.slice_axis(x, axis=axis, begin=begin, end=end)


def laplacian(F, x, h=7, w=231):
    def at(i, j):
        return F.slice(x, begin=(i, j), end=(h - 2 + i, w - 2 + j))

    return at(0, 1) + at(2, 1) + at(1, 0) + at(1, 2) - 4 * at(1, 1)


def bound(net, x, req="null", grad=None):
    return net(mx.sym, mx.sym.Variable("x")).bind(mx.cpu(), {"x": x}, None if grad is None else {"x": grad}, req)


def same(found, wanted):
    np.testing.assert_array_equal(found.asnumpy(), wanted.asnumpy())


def test_a_stencil_copies_nothing():
    x = nd.array(RNG.normal(size=(7, 231)))
    executor = bound(laplacian, x)
    told = executor.explain()
    assert [row.kind for row in told] == ["fused"] and len(told.views) == 5 and told.memory["planned"] == 0
    same(executor.forward()[0], laplacian(nd, x))
    x[:] = RNG.normal(size=(7, 231))
    same(executor.forward()[0], laplacian(nd, x))


@pytest.mark.parametrize("shape", [(3, 5, 14, 15), (2, 6, 210, 1), (1, 7, 1, 200), (2, 4, 193)])
def test_images_of_some_channels_are_rows(shape):
    def net(F, x):
        end = shape[1] - 1
        return F.exp(part(F, x, 1, 0, end)) * part(F, x, 1, 1, end + 1)

    x = nd.array(RNG.normal(size=shape))
    executor = bound(net, x)
    assert len(executor.explain().views) == 2
    same(executor.forward()[0], net(nd, x))


def test_short_rows_and_other_readers_get_copies():
    def both(F, x):
        y = part(F, x, 1, 1, 300)
        return F.broadcast_add(F.exp(y), F.sum(y, axis=0, keepdims=True))

    for net, shape in ((lambda F, x: F.exp(part(F, x, 1, 1, 9)), (3, 10)), (both, (3, 301)),
                       (lambda F, x: F.exp(part(F, x, 1, 1, 2)), (2, 5, 14, 13)),
                       (lambda F, x: F.exp(F.transpose(x)), (200, 250))):  # fmt: skip
        x = nd.array(RNG.normal(size=shape))
        executor = bound(net, x)
        assert not any(name.startswith("slice") for name, _ in executor.explain().views)
        same(executor.forward()[0], net(nd, x))


#: Each could be computed in the memory of `y`, were that not read elsewhere at the same time.
NETS = {
    "row": lambda F, y: F.broadcast_add(y, part(F, y, 0, 1, 2)),
    "row and column": lambda F, y: F.broadcast_sub(F.broadcast_mul(y, part(F, y, 0, 2, 3)), part(F, y, 1, 3, 4)),
    "rows": lambda F, y: part(F, y, 0, 0, 4) - part(F, y, 0, 1, 5),
    "columns": lambda F, y: part(F, y, 1, 0, 240) * part(F, y, 1, 2, 242),
    "twice": lambda F, y: part(F, F.sin(part(F, y, 1, 1, 241)), 0, 1, 3),
    "halves": lambda F, y: F.sigmoid(part(F, y, 1, 0, 200)) * F.tanh(part(F, y, 1, 42, 242)),
    "reshaped": lambda F, y: F.exp(part(F, F.reshape(y, shape=(2, 605)), 1, 1, 300)),
    "same rows": lambda F, y: F.relu(y) + F.relu(part(F, y, 0, 0, 5)),
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("req", ["null", "write", "add"])
def test_a_result_does_not_overwrite_what_its_slices_read(name, req):
    def net(F, x):
        return NETS[name](F, F.exp(x) * 2)

    x = nd.array(RNG.normal(size=(5, 242)))
    grad = None if req == "null" else nd.ones((5, 242))
    executor = bound(net, x, req, grad)
    (found,) = executor.forward(is_train=req != "null")
    x.attach_grad()
    with autograd.record():
        wanted = net(nd, x)
    np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-6)
    if req != "null":
        head = nd.array(RNG.normal(size=found.shape))
        executor.backward(head)
        wanted.backward(head)
        np.testing.assert_allclose(grad.asnumpy(), x.grad.asnumpy() + (req == "add"), rtol=1e-5, atol=1e-5)


def random_net(rng, h, w):
    """Return a function of random elementwise steps on slices, of `h` rows and `w` columns at first."""
    steps, shapes = [], [(h, w)]
    for _ in range(int(rng.integers(3, 9))):
        source = int(rng.integers(len(shapes)))
        rows, columns = shapes[source]
        kind = rng.choice(["slice", "slice", "function", "pair", "own"])
        if kind == "slice":
            axis = int(rng.integers(2))
            size = shapes[source][axis]
            begin = int(rng.integers(0, max(size // 3, 1)))
            end = int(rng.integers(size - size // 3, size + 1))
            steps.append(("slice", source, axis, begin, end))
            shapes.append((end - begin, columns) if axis == 0 else (rows, end - begin))
        elif kind == "pair":
            twins = [k for k, shape in enumerate(shapes) if shape == shapes[source]]
            steps.append(("pair", source, int(rng.choice(twins)), str(rng.choice(["elemwise_add", "elemwise_mul"]))))
            shapes.append(shapes[source])
        elif kind == "own" and rows > 1:  # every row with one of its own
            k = int(rng.integers(rows))
            steps.append(("own", source, k))
            shapes.append(shapes[source])
        else:
            steps.append(("function", source, str(rng.choice(["exp", "sin", "negative", "square"]))))
            shapes.append(shapes[source])

    def net(F, x):
        values = [F.tanh(x)]
        for what, source, *rest in steps:
            y = values[source]
            if what == "slice":
                values.append(part(F, y, *rest))
            elif what == "pair":
                values.append(getattr(F, rest[1])(y, values[rest[0]]))
            elif what == "own":
                values.append(F.broadcast_sub(y, part(F, y, 0, rest[0], rest[0] + 1)))
            else:
                values.append(getattr(F, rest[0])(F.tanh(y)))
        return values[-1]

    return net


@pytest.mark.parametrize("seed", range(60))
def test_random_nets_of_slices(seed):
    rng = np.random.default_rng(seed)
    h, w = int(rng.integers(2, 9)), int(rng.integers(300, 500))
    net = random_net(rng, h, w)
    x = nd.array(rng.normal(size=(h, w)))
    grad = nd.zeros((h, w))
    executor = bound(net, x, "write", grad)
    function = mx.graph.compiled(lambda x: net(nd, x))
    for _ in range(2):
        x[:] = rng.normal(size=(h, w))
        x.attach_grad()
        with autograd.record():
            wanted = net(nd, x)
        head = nd.array(rng.normal(size=wanted.shape))
        wanted.backward(head)
        expected = x.grad.asnumpy()
        room = {"rtol": 1e-5, "atol": 1e-5 * max(np.abs(expected).max(), 1)}
        for train in (False, True):
            np.testing.assert_allclose(executor.forward(is_train=train)[0].asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)
        executor.backward(head)
        np.testing.assert_allclose(grad.asnumpy(), expected, **room)
        with autograd.record():
            found = function(x)
        found.backward(head)
        np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(x.grad.asnumpy(), expected, **room)


@pytest.mark.parametrize("name", NETS)
def test_slices_on_a_gpu(simulated_gpu, name):
    def net(F, x):
        return NETS[name](F, F.exp(x) * 2)

    x = nd.array(RNG.normal(size=(5, 242)))
    executor = net(mx.sym, mx.sym.Variable("x")).bind(simulated_gpu, {"x": x.as_in_context(simulated_gpu)}, grad_req="null")
    for _ in range(3):  # the second run makes a CUDA graph
        found, wanted = executor.forward()[0].asnumpy(), net(nd, x).asnumpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=5e-6)  # sin of 40, whose last bit is 4e-6


def test_other_sizes_take_the_same_program():
    def net(x):
        return nd.sigmoid(x[:, :-2]) * x[:, 2:] + x[:, 1:-1]

    function = mx.graph.compiled(net)
    for h, w in ((3, 200), (5, 333), (3, 9), (1, 231), (2, 200)):
        x = nd.array(RNG.normal(size=(h, w)))
        same(function(x), net(x))


def test_slices_of_what_a_loop_or_a_state_changes():
    x = nd.array(RNG.normal(size=(4, 600)))

    def body(row, state):
        y = state[0:300] * row[300:600] + state[300:600]
        return y, nd.concat(y, row[0:300], dim=0)

    outputs, _ = nd.contrib.foreach(body, x, x[0])
    compiled, _ = mx.graph.compiled(lambda x: nd.contrib.foreach(body, x, x[0]))(x)
    np.testing.assert_allclose(compiled.asnumpy(), outputs.asnumpy(), rtol=1e-5, atol=1e-6)
    data, weight, moved = (mx.sym.Variable(name) for name in ("data", "weight", "moved"))
    step = mx.sym.sgd_mom_update(weight, part(mx.sym, data, 1, 1, 251) * part(mx.sym, weight, 0, 0, 2), moved, lr=0.1,
                                 momentum=0.9)  # fmt: skip
    arrays = {"data": nd.array(RNG.normal(size=(2, 252))), "weight": nd.ones((2, 250)), "moved": nd.zeros((2, 250))}
    executor = step.bind(mx.cpu(), {k: v.copy() for k, v in arrays.items() if k != "moved"}, grad_req="null",
                         aux_states={"moved": arrays["moved"].copy()})  # fmt: skip
    executor.forward()
    wanted = 1 - 0.1 * arrays["data"][:, 1:251].asnumpy()
    np.testing.assert_allclose(executor.outputs[0].asnumpy(), wanted, rtol=1e-6)
