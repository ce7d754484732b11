"""Executors that are bound once and thrown away: graphs that differ in names and sizes alone are prepared once.

Each is compared with the executor that is prepared for its names and sizes alone, bit by bit.
"""

import gc

import numpy as np
import pytest

import mxop as mx
from mxop import nd, sym
from mxop.graph import patterns, structure

RNG = np.random.default_rng(3)
SIZES = [(3, 4), (5, 7), (4, 4), (1, 6), (6, 1), (15, 33), (16, 33), (17, 33), (64, 256), (65, 257), (9, 9), (128, 129),
         (2, 16385), (5, 7), (3, 4)]  # fmt: skip


def dense(x, prefix):
    h = sym.Activation(sym.FullyConnected(x, num_hidden=9, name=f"{prefix}fc"), act_type="tanh", name=f"{prefix}act")
    return sym.SoftmaxOutput(h, sym.Variable(f"{prefix}label"), name=f"{prefix}out")


def normalized(x, prefix):
    h = sym.LayerNorm(x, name=f"{prefix}norm")
    return sym.Group([sym.sum(h * x, axis=1, name=f"{prefix}sum"), sym.softmax(h, name=f"{prefix}soft")])


def batched(x, prefix):
    return sym.broadcast_mul(sym.BatchNorm(x, fix_gamma=False, name=f"{prefix}bn"), sym.Variable(f"{prefix}w", shape=(1, 1)))


def sliced(x, prefix):
    half = sym.slice_axis(sym.Reshape(x, shape=(-1,), name=f"{prefix}flat"), axis=0, begin=0, end=2, name=f"{prefix}part")
    return sym.broadcast_mul(sym.sin(x, name=f"{prefix}sin"), sym.sum(half, keepdims=True, name=f"{prefix}s").reshape((1, 1)))


def begun(x, prefix):
    state = sym.zeros(shape=(0, 5), name=f"{prefix}begin")
    return sym.elemwise_add(sym.FullyConnected(x, num_hidden=5, name=f"{prefix}i2h"), state, name=f"{prefix}h")


def dropped(x, prefix):
    return sym.Dropout(x, p=0.4, name=f"{prefix}drop") + sym.exp(x, name=f"{prefix}exp")


NETS = [dense, normalized, batched, sliced, begun, dropped]


def ran(executor, seed):
    """Return outputs and gradients of all modes, and the states afterwards."""
    rng = np.random.default_rng(seed)
    for array in (*executor.arg_arrays, *executor.aux_arrays):
        array[:] = rng.uniform(0.5, 1.5, array.shape)
    for grad in executor.grad_arrays:
        if grad is not None:
            grad[:] = 1
    mx.random.seed(seed)
    found = [*executor.forward(), *executor.forward(is_train=True)]
    found = [a.asnumpy().copy() for a in found]
    executor.backward([nd.array(rng.uniform(-1, 1, a.shape)) for a in executor.outputs])
    return found + [a.asnumpy().copy() for a in (*executor.grad_arrays, *executor.aux_arrays) if a is not None]


def alone(symbol, grad_req, shape):
    """Return what an executor gives that is prepared for its sizes and names alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure.Structure, "_symbolic_sizes", False)
        return ran(symbol.simple_bind(mx.cpu(), grad_req, data=shape), sum(shape))


@pytest.mark.parametrize("grad_req", ["write", "add", "null"])
@pytest.mark.parametrize("net", NETS)
def test_any_sizes_and_names_in_turn(net, grad_req, anew):
    for i, shape in enumerate(SIZES):
        symbol = net(sym.Variable("data"), f"n{i}_")
        found = ran(symbol.simple_bind(mx.cpu(), grad_req, data=shape), sum(shape))
        for a, b in zip(found, alone(symbol, grad_req, shape), strict=True):
            np.testing.assert_array_equal(a, b)
    assert not any(cache.concrete_only for cache in patterns._pattern_caches.values())


@pytest.mark.parametrize("net", NETS)
def test_structures_are_prepared_once(net, anew):
    for i, shape in enumerate([(18, 34), (19, 35), (20, 36), (18, 34), (40, 37)]):
        net(sym.Variable("data"), f"n{i}_").simple_bind(mx.cpu(), data=shape)
    caches = patterns._pattern_caches.values()
    made = [pattern for cache in caches for _, _, pattern in cache.found if pattern is not None]
    assert len([p for p in made if p.bound]) == 1


@pytest.mark.parametrize("net", NETS)
def test_reshaped_executors_are_what_others_are(net, anew):
    symbol = net(sym.Variable("data"), "")
    executor = symbol.simple_bind(mx.cpu(), data=(33, 257))
    for rows in (17, 33, 5, 16):
        executor = executor.reshape(data=(rows, 257), partial_shaping=True, allow_up_sizing=True)
        for a, b in zip(ran(executor, rows + 257), alone(symbol, "write", (rows, 257)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_differs_is_not_shared(anew):
    x = sym.Variable("x")
    ways = [
        x * 0.0,
        x * -0.0,
        x * 1.0,
        sym.clip(x, 0, 1),
        sym.clip(x, 0, 2),
        x + 1,
        x * 2,
        sym.sum(x, axis=0),
        sym.sum(x, axis=1),
    ]
    given = nd.array([[-1.0, 3.0], [0.25, -0.5]])
    for y in ways + ways[::-1]:
        found = y.bind(mx.cpu(), [given]).forward()[0].asnumpy()
        np.testing.assert_array_equal(np.signbit(found), np.signbit(y.eval(x=given)[0].asnumpy()))
    assert len({tuple(y.bind(mx.cpu(), [given]).forward()[0].asnumpy().ravel().tolist()) for y in ways}) == len(ways) - 1
    assert np.signbit(ways[1].bind(mx.cpu(), [given]).forward()[0].asnumpy()).tolist() == [[False, True], [True, False]]


def test_messages_name_the_nodes_of_the_symbol_that_is_run():
    for name in ("first", "second"):
        symbol = sym.exp(
            sym.Embedding(sym.Variable("i"), sym.Variable("w"), input_dim=4, output_dim=2, name=name), name=f"{name}_e"
        )
        told = symbol.simple_bind(mx.cpu(), "null", i=(3,)).explain()
        assert [n for row in told for n in row.members] == [name, f"{name}_e"] and f"{name}_e = exp" in str(told)
        assert all(__file__ in row.made_at for row in told)
        executor = symbol.simple_bind(mx.cpu(), i=(3,))
        seen = []
        executor.set_monitor_callback(lambda n, _, seen=seen: seen.append(n))
        executor.forward()
        assert seen == [f"{name}_output", f"{name}_e_output"]


def test_an_error_of_a_run_names_its_node(own_operator):
    for name in ("here", "there"):
        executor = own_operator(sym.Variable("data"), name=name).simple_bind(mx.cpu(), "null", data=(2, 3))
        with pytest.raises(ValueError, match="no") as caught:
            executor.forward()
        assert name in str(caught.value)


@pytest.fixture
def own_operator():
    @mx.op.kernel
    def test_bindings_fails(data):
        """Nothing."""

    def fails(inputs, outputs):
        raise ValueError("no")

    test_bindings_fails.shape(lambda data: data)
    test_bindings_fails.cpu(fails)

    yield sym.test_bindings_fails
    mx.op.unregister("test_bindings_fails")


def test_arrays_that_overlap_or_have_strides(anew):
    x, w = sym.Variable("x"), sym.Variable("w")
    symbol = sym.sin(x) * w
    for n in (3, 4, 5):
        memory = nd.array(RNG.uniform(size=(n, 2)), dtype="float64")
        given = [memory[:, 0], memory[:, 1]]
        host = memory.asnumpy().copy()
        executor = symbol.bind(mx.cpu(), given, [memory[:, 0], memory[:, 1]])
        np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), np.sin(host[:, 0]) * host[:, 1], rtol=1e-12)
        executor.backward(nd.ones(n, dtype="float64"))
        want = np.stack([np.cos(host[:, 0]) * host[:, 1], np.sin(host[:, 0])], axis=1)
        np.testing.assert_allclose(memory.asnumpy(), want, rtol=1e-12)


def test_nothing_of_an_executor_is_kept(anew):

    def bound(rows):
        return normalized(sym.Variable("data"), "n_").simple_bind(mx.cpu(), data=(rows, 4096))

    held = []
    for rows in range(2, 40):
        executor = bound(rows)
        executor.forward(is_train=True)
        held.append([id(a) for a in executor.arg_arrays])
        del executor
    gc.collect()
    alive = [a for a in gc.get_objects() if type(a) is nd.NDArray and a.shape[1:] == (4096,)]
    assert not alive
