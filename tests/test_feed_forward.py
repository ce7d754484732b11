"""``mx.model.FeedForward`` and ``mx.monitor``; the numbers of :func:`test_training` are MXNet 1.9.1's."""

import logging

import numpy as np
import pytest

import mxop as mx

RNG = np.random.RandomState(0)
X = RNG.randn(100, 5).astype("float32")
Y = (X[:, 0] + X[:, 1] > 0).astype("float32")


def _net():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn", fix_gamma=False), act_type="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=2, name="fc2"), name="softmax")


def _parameters(net):
    shapes = zip(net.list_arguments(), net.infer_shape(data=(20, 5))[0])
    rng = np.random.RandomState(1)
    drawn = {n: mx.nd.array(rng.uniform(-0.5, 0.5, s)) for n, s in shapes}
    return {n: a for n, a in drawn.items() if n not in ("data", "softmax_label")}


def _learner(**kwargs):
    net = _net()
    states = {"bn_moving_mean": mx.nd.zeros((8,)), "bn_moving_var": mx.nd.ones((8,))}
    return mx.model.FeedForward(net, arg_params=_parameters(net), aux_params=states, **kwargs)


def test_training(tmp_path):
    prefix, log = str(tmp_path / "net"), []
    learner = _learner(num_epoch=2, learning_rate=0.2, momentum=0.9, wd=1e-3)
    learner.fit(mx.io.NDArrayIter(X, Y, 20), eval_data=mx.io.NDArrayIter(X[:50], Y[:50], 20),
                batch_end_callback=lambda p: log.append((p.epoch, p.nbatch)),
                epoch_end_callback=[mx.callback.do_checkpoint(prefix), lambda e, s, a, x: log.append(sorted(x))],
                eval_end_callback=lambda p: log.append((p.nbatch, round(p.eval_metric.get()[1], 4))))  # fmt: skip
    one = [(0, n) for n in range(1, 6)], [(1, n) for n in range(1, 6)]
    ends = [["bn_moving_mean", "bn_moving_var"]]
    assert log == [*one[0], *ends, (3, 0.8667), *one[1], *ends, (3, 0.9833)]
    assert abs(float(learner.arg_params["fc1_weight"].sum().asscalar()) + 0.25787) < 1e-4
    same = mx.model.FeedForward.load(prefix, 2, num_epoch=3, learning_rate=0.1)
    np.testing.assert_allclose(same.predict(X), learner.predict(X), rtol=1e-5)
    before = same.score(mx.io.NDArrayIter(X, Y, 20), "ce")
    same.fit(mx.io.NDArrayIter(X, Y, 20))
    assert same.begin_epoch == 2 and same.score(mx.io.NDArrayIter(X, Y, 20), "ce") < before


def test_predictions_have_no_padding():
    learner = _learner()
    whole = learner.predict(X)
    assert whole.shape == (100, 2) and isinstance(whole, np.ndarray)
    np.testing.assert_allclose(learner.predict(mx.io.NDArrayIter(X, batch_size=30)), whole, rtol=1e-5)
    outputs, data, labels = learner.predict(mx.io.NDArrayIter(X, Y, 30), num_batch=2, return_data=True)
    np.testing.assert_array_equal(data, X[:60])
    np.testing.assert_array_equal(labels, Y[:60])
    assert outputs.shape == (60, 2)


def test_epochs_of_a_size():
    seen = []
    learner = _learner(num_epoch=2, epoch_size=7)
    learner.fit(mx.io.NDArrayIter(X, Y, 20), batch_end_callback=[lambda p: seen.append(p.nbatch), None])
    assert seen == [1, 2, 3, 4, 5, 6, 7] * 2


def test_create_from_arrays():
    np.random.seed(0)
    mx.random.seed(0)
    net = mx.sym.LogisticRegressionOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1), name="softmax")
    made = mx.model.FeedForward.create(
        net, X, Y[:, None], num_epoch=20, numpy_batch_size=10, learning_rate=1.0, eval_metric="mse", eval_data=(X, Y)
    )
    assert ((made.predict(X)[:, 0] > 0.5) == Y).mean() > 0.95


def test_extra_parameters():
    net = _net()
    extra = {**_parameters(net), "more": mx.nd.ones((1,))}
    assert "more" not in mx.model.FeedForward(net, arg_params=extra, allow_extra_params=True).arg_params


@pytest.mark.parametrize("call, message", [
    (lambda: mx.model.FeedForward(3), "expected a Symbol"), (lambda: mx.model.FeedForward(_net()).fit(X, Y), "num_epoch"),
    (lambda: mx.model.FeedForward(_net(), num_epoch=1).fit(X), "no y"),
    (lambda: mx.model.FeedForward(_net(), num_epoch=1).fit([1], [2]), "an array or an iterator"),
    (lambda: mx.model.FeedForward(_net()).save("x"), "num_epoch"),
    (lambda: mx.model.FeedForward(_net(), num_epoch=1).fit(mx.io.NDArrayIter(X, Y, label_name="y")),
     "'softmax_label'.* data, y"),
])  # fmt: skip
def test_misuse(call, message):
    with pytest.raises(mx.MXNetError, match=message):
        call()


# ---- monitors -----------------------------------------------------------------------------------------------------------
def _executor():
    net = mx.sym.FullyConnected(mx.sym.Variable("a"), num_hidden=2, name="fc")
    executor = mx.sym.softmax(net, name="sm").simple_bind(mx.cpu(), a=(2, 3))
    executor.arg_dict["a"][:], executor.arg_dict["fc_weight"][:] = 1, 2
    return executor


def test_monitor_every_second_batch(caplog):
    executor, monitor = _executor(), mx.mon.Monitor(2, pattern="fc_.*|sm_out", sort=True)
    monitor.install(executor)
    found = []
    for _ in range(3):
        monitor.tic()
        executor.forward()
        found.append(monitor.toc())
    names = [(name, text) for _, name, text in found[0]]
    assert names == [("fc_bias", "0.0\t"), ("fc_output", "6.0\t"), ("fc_weight", "2.0\t"), ("sm_output", "0.5\t")]
    assert not found[1] and [step for step, *_ in found[2]] == [3] * 4
    monitor.tic(), monitor.tic()
    executor.forward()
    with caplog.at_level(logging.INFO):
        monitor.toc_print()
    assert "Batch:       5 fc_output" in caplog.text


def test_monitor_with_a_statistic_of_one_s_own():
    executor, monitor = _executor(), mx.mon.Monitor(1, lambda x: [x.max(), x.min()], pattern="fc_out")
    monitor.install(executor)
    monitor.tic()
    executor.forward()
    assert monitor.toc() == [(1, "fc_output", "6.0\t6.0\t")]
    wrong = mx.mon.Monitor(1, lambda x: 3)
    wrong.install(executor)
    wrong.tic()
    executor.forward()
    with pytest.raises(TypeError, match="stat_func gave 3"):
        wrong.toc()
