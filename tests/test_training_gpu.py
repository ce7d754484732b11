"""Optimizers, initializers, metrics and iterators with arrays on a GPU, simulated or real, against the CPU."""

import numpy as np
import pytest

import mxop as mx

NAMES = ["sgd", "nag", "signum", "ftml", "lars", "lbsgd", "lamb", "dcasgd", "adam", "adagrad", "rmsprop", "adadelta", "ftrl",
         "adamax", "nadam", "groupadagrad"]  # fmt: skip


def stepped(name, ctx, dtype):
    random = np.random.RandomState(2)
    more = {"momentum": 0.9} if name in ("sgd", "nag", "lars", "dcasgd") else {}
    optimizer = mx.optimizer.create(name, multi_precision=dtype == "float16", clip_gradient=0.5, **more)
    update = mx.optimizer.get_updater(optimizer)
    weight = mx.nd.array(random.normal(size=(3, 4)), ctx=ctx, dtype=dtype)
    for _ in range(3):
        update(0, mx.nd.array(random.normal(size=(3, 4)), ctx=ctx, dtype=dtype), weight)
    assert weight.context == ctx
    return weight.asnumpy()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_steps(name, dtype, gpu):
    tolerance = 1e-5 if dtype == "float32" else 2e-3
    np.testing.assert_allclose(stepped(name, gpu, dtype), stepped(name, mx.cpu(), dtype), rtol=tolerance, atol=tolerance)


def test_states_move_to_the_weights(gpu):
    first, second = (mx.optimizer.get_updater(mx.optimizer.create("adam")) for _ in range(2))
    first(0, mx.nd.ones((2,)), mx.nd.ones((2,)))
    second.set_states(first.get_states(dump_optimizer=True))
    second(0, mx.nd.ones((2,), ctx=gpu), mx.nd.ones((2,), ctx=gpu))
    assert [state.context for state in second.states[0]] == [gpu, gpu]
    again = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    again.set_states(second.get_states())
    assert (again.states[0][0].asnumpy() == second.states[0][0].asnumpy()).all()


def test_filling_counting_and_batches(gpu):
    for init in (mx.init.Xavier(), mx.init.Normal(), mx.init.Orthogonal(), mx.init.One(), mx.init.LSTMBias()):
        found = []
        for ctx in (gpu, mx.cpu()):
            mx.random.seed(1, ctx)
            mx.random.seed(1, mx.cpu())
            weight = mx.nd.zeros((8, 3), ctx=ctx)
            init(mx.init.InitDesc("w_weight"), weight)
            assert weight.context == ctx
            found.append(weight.asnumpy())
        np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)
    batches = mx.io.NDArrayIter(mx.nd.arange(5, ctx=gpu), mx.nd.arange(5, ctx=gpu), 3, shuffle=True)
    metric = mx.metric.create("acc")
    for batch in batches:
        assert batch.data[0].context == gpu
        metric.update(batch.label, batch.data)
    assert metric.get()[1] == 1
