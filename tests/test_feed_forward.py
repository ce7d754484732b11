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


def test_learners_that_mxnet_has_pickled_go_on():
    """MXNet's ``fit`` leaves a symbol and names among the learner's settings, and so in its pickles."""
    iterator = mx.io.NDArrayIter(X, Y, 20)
    learner, pickled = (_learner(num_epoch=1, learning_rate=0.2, initializer=mx.init.Zero()) for _ in range(2))
    vars(pickled).update(argument_checked=True, _pred_exec=None)
    pickled.kwargs.update(sym=pickled.symbol, param_idx2name={0: "another"})
    for one in (learner, pickled):
        one.fit(iterator)
    np.testing.assert_array_equal(pickled.predict(X), learner.predict(X))


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


class _Counted(mx.io.DataIter):
    """Batches by ``yield`` alone, as in programs of 2016; it counts."""

    def __init__(self, n):
        super().__init__(batch_size=20)
        self.n, self.given, self.resets = n, 0, 0
        self.provide_data, self.provide_label = [("data", (20, 5))], [("softmax_label", (20,))]

    def __iter__(self):
        for k in range(self.n):
            self.given += 1
            part = slice(20 * k, 20 * k + 20)
            yield mx.io.DataBatch([mx.nd.array(X[part])], [mx.nd.array(Y[part])], pad=0)

    def reset(self):
        self.resets += 1


@pytest.mark.parametrize("size, given, resets", [(None, 6, 3), (2, 4, 1), (5, 10, 3), (3, 6, 1)])
def test_an_iterator_that_yields(size, given, resets):
    train, tried = _Counted(3), _Counted(2)
    learner = _learner(num_epoch=2, epoch_size=size, learning_rate=0.1)
    learner.fit(train, eval_data=tried)
    assert (train.given, train.resets) == (given, resets)
    assert (tried.given, tried.resets) == (4, 4)  # before and after each evaluation
    learner.predict(train, num_batch=2, reset=False)
    learner.score(train, num_batch=1, reset=False)
    assert train.resets == resets and train.given - given == 4  # a score looks at the next one, too, as MXNet's


def test_create_from_arrays():
    np.random.seed(0)
    mx.random.seed(0)
    net = mx.sym.LogisticRegressionOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1), name="softmax")
    made = mx.model.FeedForward.create(
        net, X, Y[:, None], num_epoch=20, numpy_batch_size=10, learning_rate=1.0, eval_metric="mse", eval_data=(X, Y)
    )
    assert ((made.predict(X)[:, 0] > 0.5) == Y).mean() > 0.95


@pytest.mark.parametrize("size", [7, 30])
def test_evaluation_in_batches_of_another_size(size):
    seen = []
    learner = _learner(num_epoch=2, learning_rate=0.2, initializer="xavier", numpy_batch_size=20)
    learner.fit(X, Y, eval_data=(X[:size], Y[:size]) if size < 20 else mx.io.NDArrayIter(X[:size], Y[:size], size),
                eval_end_callback=lambda p: seen.append(p.eval_metric.get()[1]))  # fmt: skip
    assert len(seen) == 2 and seen[-1] == (learner.predict(X[:size]).argmax(1) == Y[:size]).mean()


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
    (lambda: mx.model.FeedForward(_net(), num_epoch=1).fit(X, Y, eval_data=X), r"no y: write .*eval_data=\(X, y\)"),
    (lambda: _learner().score(X), "no y"),
    (lambda: mx.model.FeedForward(_net(), ctx="cpu"), "ctx='cpu'; expected a context"),
    (lambda: mx.model.FeedForward(_net(), initializer=mx.init.Xavier), "neither a name nor of class Initializer"),
    (lambda: _learner().predict(X[:, :3]), r"parameter fc1_weight and these data: expected .*\(8, 3\), got \(8, 5\)"),
    (lambda: mx.model.FeedForward(_net()).predict(X), "no parameters to predict or score with: call fit, or pass arg_params"),
    (lambda: mx.model.FeedForward(_net()).score(mx.io.NDArrayIter(X, Y)), "no parameters to predict or score with"),
    (lambda: mx.model.FeedForward(_net().get_internals()["fc2_output"], num_epoch=1).fit(X, Y), "as SoftmaxOutput"),
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


def test_monitor_of_an_executor_that_is_bound_within_the_batch():
    """A module that meets a new length binds one then, and installs its monitor on it."""
    monitor, executor = mx.mon.Monitor(50, pattern="fc_out"), _executor()
    monitor.tic()
    monitor.install(executor)
    executor.forward()
    assert monitor.toc() == [(1, "fc_output", "6.0\t")]
    monitor.tic()
    executor.forward()
    assert monitor.toc() == []


def test_monitor_with_a_statistic_of_one_s_own():
    executor, monitor = _executor(), mx.mon.Monitor(1, lambda x: [x.max(), x.min()], pattern="fc_out")
    monitor.install(executor)
    monitor.tic()
    executor.forward()
    assert monitor.toc() == [(1, "fc_output", "6.0\t6.0\t")]
    monitor.stat_func = lambda x: x.mean() * 0 + 0.4
    monitor.tic()
    executor.forward()
    assert monitor.toc() == [(2, "fc_output", "0.4\t")]  # in float32
    wrong = mx.mon.Monitor(1, lambda x: 3)
    wrong.install(executor)
    wrong.tic()
    executor.forward()
    with pytest.raises(TypeError, match="stat_func gave 3"):
        wrong.toc()


class _Buckets(mx.io.DataIter):
    """Batches of sequences of lengths 4, 2 and 3, as the iterators of MXNet's old LSTM programs give them."""

    default_bucket_key = 4

    def __init__(self):
        super().__init__(5)
        rng = np.random.RandomState(2)
        self.batches = [self._batch(rng.randint(0, 7, (5, length))) for length in (4, 2, 3, 2, 4)]
        self.provide_data, self.provide_label = self.batches[0].provide_data, self.batches[0].provide_label
        self.reset()

    @staticmethod
    def _batch(tokens):
        data = {"start": np.full((5, 3), 0.25), **{f"t{at}_data": step for at, step in enumerate(tokens.T)}}
        labels = {f"t{at}_label": (step + 1) % 7 for at, step in enumerate(tokens.T)}
        arrays = ([mx.nd.array(value) for value in some.values()] for some in (data, labels))
        described = ([(name, value.shape) for name, value in some.items()] for some in (data, labels))
        return mx.io.DataBatch(*arrays, 0, None, tokens.shape[1], *described)

    def reset(self):
        self.at = iter(self.batches)

    def next(self):
        return next(self.at)


def _of_length(length):
    table, weight, bias = (mx.sym.Variable(name) for name in ("embed_weight", "h2h_weight", "h2h_bias"))
    h, hidden = mx.sym.Variable("start"), []
    for at in range(length):
        step = mx.sym.Embedding(mx.sym.Variable(f"t{at}_data"), table, input_dim=7, output_dim=3)
        h = mx.sym.tanh(step + mx.sym.FullyConnected(h, weight, bias, num_hidden=3))
        hidden.append(h)
    scores = mx.sym.FullyConnected(mx.sym.Concat(*hidden, dim=0), num_hidden=7, name="out")
    labels = mx.sym.Concat(*(mx.sym.Variable(f"t{at}_label") for at in range(length)), dim=0)
    return mx.sym.SoftmaxOutput(scores, labels, name="softmax")


class _Loss(mx.metric.EvalMetric):
    def update(self, labels, preds):
        labels, scores = np.concatenate([label.asnumpy() for label in labels]).astype(int), preds[0].asnumpy()
        self.sum_metric -= np.log(scores[np.arange(len(labels)), labels]).sum()
        self.num_inst += len(labels)


def test_a_function_makes_the_symbol_of_each_bucket():
    asked, seen = [], []
    learner = mx.model.FeedForward(
        lambda key: asked.append(key) or _of_length(key), num_epoch=3, learning_rate=0.3, momentum=0.9, wd=1e-3,
        initializer=mx.init.Constant(0.1), allow_extra_params=True,
        arg_params={"embed_weight": mx.nd.arange(21).reshape((7, 3)) / 20, "no": X},
    )  # fmt: skip
    learner.fit(_Buckets(), eval_data=_Buckets(), eval_metric=_Loss("loss"),
                batch_end_callback=lambda p: seen.append((p.nbatch, p.locals["executor"].outputs[0].shape)),
                eval_end_callback=lambda p: seen.append(round(p.eval_metric.get()[1], 4)))  # fmt: skip
    assert asked == [4, 2, 3] and learner.symbol.list_arguments() == _of_length(4).list_arguments()
    assert seen[:5] == [(1, (20, 7)), (2, (10, 7)), (3, (15, 7)), (4, (10, 7)), (5, (20, 7))]
    assert seen[5::6] == [1.6749, 1.3212, 0.9]
    assert abs(learner.arg_params["embed_weight"].sum().asscalar() - 9.628838) < 1e-4


def test_a_function_of_buckets_makes_nothing_before_fit():
    learner = mx.model.FeedForward(_of_length, num_epoch=1)
    with pytest.raises(mx.MXNetError, match="function of bucket keys"):
        learner.predict(X)
    with pytest.raises(mx.MXNetError, match="expected a Symbol, or a function"):
        mx.model.FeedForward("net")


def test_names_begin_as_in_old_programs():
    """``upsampling...`` is bilinear unless the variable says how to begin."""
    net = mx.sym.Variable("data")
    for name, init in (("upsampling", None), ("upsampling_own", mx.init.Constant(3))):
        weight = mx.sym.Variable(f"{name}_weight", init=init)
        net = mx.sym.Deconvolution(net, weight, num_filter=1, kernel=(4, 4), stride=(2, 2), pad=(1, 1), name=name)
    net = mx.sym.LinearRegressionOutput(mx.sym.mean(net, axis=(1, 2, 3)), name="softmax")
    learner = mx.model.FeedForward(net, num_epoch=1, learning_rate=0.0)
    learner.fit(mx.io.NDArrayIter(np.ones((2, 1, 2, 2)), np.ones(2), 2), eval_metric="mse")
    row = np.array([0.25, 0.75, 0.75, 0.25])
    np.testing.assert_array_equal(learner.arg_params["upsampling_weight"].asnumpy()[0, 0], np.outer(row, row))
    assert (learner.arg_params["upsampling_own_weight"].asnumpy() == 3).all()
