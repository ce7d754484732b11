"""``mx.executor_manager``: slices of a batch, executors for each of them; what is expected is what MXNet 1.9.1 gives."""

import numpy as np
import pytest

import mxop as mx
from mxop.executor_manager import DataParallelExecutorManager, _check_arguments, _load_general, _split_input_slice


@pytest.mark.parametrize("size, loads, ends", [
    (10, [1, 4], [2, 10]), (7, [1, 1, 1], [2, 4, 7]), (5, [1, 2, 3], [1, 3, 5]), (11, [1, 1], [6, 11]),
    (100, [0.3, 0.7], [30, 100]),
])  # fmt: skip
def test_slices(size, loads, ends):
    found = _split_input_slice(size, loads)
    assert [part.stop for part in found] == ends and [part.start for part in found] == [0, *ends[:-1]]


def test_refused():
    with pytest.raises(ValueError, match=r"Too many slices: of a batch of 2, \[1, 1, 1, 1\]"):
        _split_input_slice(2, [1, 1, 1, 1])
    with pytest.raises(ValueError, match="more than one argument 'x'"):
        _check_arguments(mx.sym.Variable("x") + mx.sym.Variable("x"))
    with pytest.raises(ValueError, match="a batch of 2 was expected; this one has 3"):
        _load_general([mx.nd.ones(3)], [[(slice(0, 2), mx.nd.ones(2))]])


def test_training_on_slices():
    random = np.random.RandomState(0)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    x, y = random.rand(10, 4).astype("f"), random.randint(0, 3, 10).astype("f")
    params = {"fc_weight": mx.nd.array(random.rand(3, 4)), "fc_bias": mx.nd.array(random.rand(3))}
    batches = mx.io.NDArrayIter(x, y, 5)
    names = net.list_arguments()
    manager = DataParallelExecutorManager(net, [mx.cpu(0), mx.cpu(1)], batches, names, list(params), [], [2, 3])
    manager.set_params(params, {})
    whole = net.simple_bind(mx.cpu(), data=(5, 4))
    whole.copy_params_from(params)
    metric, expected = mx.metric.create("ce"), mx.metric.create("ce")
    for batch in batches:
        manager.load_data_batch(batch)
        manager.forward(is_train=True)
        manager.backward()
        manager.update_metric(metric, batch.label)
        expected.update(batch.label, whole.forward(is_train=True, data=batch.data[0], softmax_label=batch.label[0]))
        whole.backward()
        for name, gradients in zip(manager.execgrp.param_names, manager.grad_arrays):
            total = sum(g.as_in_context(mx.cpu()) for g in gradients)
            np.testing.assert_allclose(total.asnumpy(), whole.grad_dict[name].asnumpy(), rtol=1e-5, atol=1e-6)
    assert metric.get()[1] == pytest.approx(expected.get()[1], rel=1e-6)
    copied = {name: mx.nd.zeros(array.shape) for name, array in params.items()}
    manager.copy_to(copied, {})
    assert all((copied[name] == params[name]).asnumpy().all() for name in params)
    with pytest.raises(ValueError, match="are 2 devices"):
        DataParallelExecutorManager(net, [mx.cpu(), mx.cpu(1)], batches, names, list(params), [], [1])


def test_buckets_share_their_parameters():
    def net_of(key):
        rows = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=5, output_dim=2, name="rows")
        return mx.sym.SoftmaxOutput(mx.sym.sum(rows, axis=1), name="softmax")

    def batch_of(key):
        described = [mx.io.DataDesc("data", (2, key))], [mx.io.DataDesc("softmax_label", (2,))]
        return mx.io.DataBatch([mx.nd.ones((2, key))], [mx.nd.array([0, 1])], bucket_key=key, provide_data=described[0],
                               provide_label=described[1])  # fmt: skip

    default = batch_of(4)
    default.default_bucket_key, default.batch_size = 4, 2
    net = net_of(4)
    manager = DataParallelExecutorManager(net, [mx.cpu()], default, net.list_arguments(), ["rows_weight"], [], sym_gen=net_of)
    weight = manager.param_arrays[0][0]
    weight[:] = mx.nd.array(np.eye(5, 2))
    for key in (4, 2, 3, 6):  # a larger batch than the default's gets memory of its own
        manager.load_data_batch(batch_of(key))
        manager.forward(is_train=True)
        executor = manager.curr_execgrp.train_execs[0]
        assert executor.arg_dict["rows_weight"] is weight and executor.arg_dict["data"].shape == (2, key)
        np.testing.assert_allclose(executor.outputs[0].asnumpy()[0], np.exp([0, key]) / np.exp([0, key]).sum(), rtol=1e-5)
        manager.backward()
        assert manager.grad_arrays[0][0].asnumpy()[1].any()
    with pytest.raises(NotImplementedError, match="executors of buckets are made later"):
        manager.install_monitor(mx.mon.Monitor(1))
