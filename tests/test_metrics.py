"""``mx.metric``: values by NumPy's formulas, over several batches, local and global."""

import math

import numpy as np
import pytest

import mxop as mx
from mxop.errors import OpIndexError, OpLookupError, OpTypeError, OpValueError

RANDOM = np.random.RandomState(5)


def classes(n=4, k=6):
    return RANDOM.randint(0, n, k), RANDOM.dirichlet(np.ones(n), k).astype("float32")


def values(shape=(6,)):
    return RANDOM.normal(size=shape).astype("float32"), RANDOM.normal(size=shape).astype("float32")


def fill(metric, batches):
    for label, pred in batches:
        metric.update([mx.nd.array(label)], [mx.nd.array(pred)])
    return metric


def joined(batches):
    return np.concatenate([b[0] for b in batches]), np.concatenate([b[1] for b in batches])


def correlation(label, pred):
    return np.corrcoef(label.astype("float64").ravel(), pred.astype("float64").ravel())[0, 1]


def log_of_labels(label, pred, eps=0.0):
    return -np.log(pred[np.arange(len(label)), label] + eps)


def f1(label, answer):
    true = ((label == 1) & (answer == 1)).sum()
    return 2 * true / ((label == 1).sum() + (answer == 1).sum()) if true else 0


OF_ALL = [  # a metric, what batches are made of, and its value for all of them together
    ("acc", {}, classes, lambda y, p: (p.argmax(1) == y).mean()),
    ("top_k_acc", {"top_k": 2}, classes, lambda y, p: (np.argsort(p, 1)[:, -2:] == y[:, None]).any(1).mean()),
    ("ce", {}, classes, lambda y, p: log_of_labels(y, p, 1e-12).mean()),
    ("nll_loss", {}, classes, lambda y, p: log_of_labels(y, p, 1e-12).mean()),
    ("perplexity", {"ignore_label": None}, classes, lambda y, p: np.exp(log_of_labels(y, p).mean())),
    ("perplexity", {"ignore_label": 2}, classes, lambda y, p: np.exp(log_of_labels(y, p)[y != 2].mean())),
    ("pearsonr", {"average": "micro"}, values, correlation), ("loss", {}, values, lambda y, p: p.mean()),
    ("torch", {}, values, lambda y, p: p.mean()), ("caffe", {}, values, lambda y, p: p.mean()),
    ("f1", {"average": "micro"}, lambda: classes(2), lambda y, p: f1(y, p.argmax(1))),
    ("mcc", {"average": "micro"}, lambda: classes(2), lambda y, p: correlation(y, p.argmax(1))),
    ("pcc", {}, lambda: classes(2, 40), lambda y, p: correlation(y, p.argmax(1))),
]  # fmt: skip
OF_BATCHES = [  # a metric whose value is the mean of the batches' values
    ("mae", {}, values, lambda y, p: np.abs(y - p).mean()), ("mse", {}, values, lambda y, p: np.square(y - p).mean()),
    ("rmse", {}, values, lambda y, p: math.sqrt(np.square(y - p).mean())), ("pearsonr", {}, values, correlation),
    ("mse", {}, lambda: values((3, 4)), lambda y, p: np.square(y - p).mean()),
    ("f1", {}, lambda: classes(2), lambda y, p: f1(y, p.argmax(1))),
    ("mcc", {}, lambda: classes(2, 40), lambda y, p: correlation(y, p.argmax(1))),
]  # fmt: skip


@pytest.mark.parametrize("name, kwargs, make, formula, of_all", [(*case, cases is OF_ALL) for cases in (OF_ALL, OF_BATCHES)
                                                                 for case in cases])  # fmt: skip
def test_values(name, kwargs, make, formula, of_all):
    batches = [make() for _ in range(3)]

    def expected(some):
        return formula(*joined(some)) if of_all else np.mean([formula(*one) for one in some])

    metric = mx.metric.create(name, **kwargs)
    assert math.isnan(metric.get()[1]) and math.isnan(metric.get_global()[1])
    fill(metric, batches[:2])
    assert metric.get()[1] == pytest.approx(expected(batches[:2]), rel=1e-5)
    if kwargs.get("average") != "micro" or name != "pearsonr":  # which goes on
        metric.reset_local()
    fill(metric, batches[2:])
    assert metric.get_global()[1] == pytest.approx(expected(batches), rel=1e-5)
    if name != "pearsonr":
        assert metric.get()[1] == pytest.approx(expected(batches[2:]), rel=1e-5)
    metric.reset()
    assert math.isnan(metric.get()[1])


def test_pcc_grows_with_the_classes():
    label, pred = np.array([0, 1, 2, 2, 1]), np.array([0, 2, 2, 2, 1])
    metric = fill(mx.metric.PCC(), [(label[:2], pred[:2]), (label[2:], pred[2:])])
    table = np.zeros((3, 3))
    np.add.at(table, (pred, label), 1)
    x, y, n = table.sum(1), table.sum(0), 5
    expected = (table.trace() * n - x @ y) / math.sqrt((n * n - x @ x) * (n * n - y @ y))
    assert metric.k == 3 and metric.get()[1] == pytest.approx(expected)
    with pytest.raises(mx.errors.OpValueError, match="of the labels is 5, that of the predictions 4"):
        metric.update([label], [np.eye(4)])


def test_composites_names_and_configurations():
    metric = mx.metric.create(["acc", mx.metric.MSE(), lambda y, p: 3.0])
    label, pred = np.array([0, 1]), np.array([0, 3])
    fill(metric, [(label, pred)])
    assert metric.get() == (["accuracy", "mse", "custom(<lambda>)"], [0.5, 2.0, 3.0])
    assert metric.get_name_value() == [("accuracy", 0.5), ("mse", 2.0), ("custom(<lambda>)", 3.0)]
    assert str(metric.metrics[0]) == "EvalMetric: {'accuracy': 0.5}" and metric.get_metric(1).name == "mse"
    with pytest.raises(OpValueError):
        metric.get_metric(3)
    metric.add("mae")
    metric.reset()
    assert len(metric.get()[0]) == 4 and math.isnan(metric.get()[1][0])
    again = mx.metric.create(mx.metric.Accuracy(axis=2, name="a").get_config())
    assert (again.axis, again.name) == (2, "a")
    counted = fill(mx.metric.Accuracy(), [(label, pred)])
    assert mx.metric.CompositeEvalMetric([counted]).get() == (["accuracy"], [0.5]) and counted.get()[1] == 0.5
    two = mx.metric.create([mx.metric.Accuracy(), mx.metric.MSE()])
    assert [c["metric"] for c in two.get_config()["metrics"]] == ["Accuracy", "MSE"]


def test_outputs_by_name():
    metric = mx.metric.Accuracy(output_names=["b"], label_names=["y"])
    arrays = {"a": mx.nd.array([0, 0]), "b": mx.nd.array([1, 0])}
    metric.update_dict({"x": arrays["a"], "y": arrays["b"]}, arrays)
    assert metric.get()[1] == 1
    both = mx.metric.CompositeEvalMetric([mx.metric.Accuracy()], output_names=["a"], label_names=["y"])
    both.update_dict({"x": arrays["a"], "y": arrays["b"]}, arrays)
    assert both.get()[1] == [0.5]


def test_functions():
    def spread(label, pred):
        return float(np.ptp(pred)), 2

    metric = fill(mx.metric.np(spread), [([1, 2], [3, 9])])
    assert metric.get() == ("spread", 3.0)
    with pytest.raises(NotImplementedError, match="a metric of a function"):
        metric.get_config()
    extra = mx.metric.np(spread, allow_extra_outputs=True)
    extra.update([mx.nd.ones(2)], [mx.nd.array([1, 3]), mx.nd.ones(5)])
    assert extra.get() == ("spread", 1.0)
    with pytest.raises(OpValueError, match="number of arrays of the labels is 1, that of the predictions 2"):
        metric.update([mx.nd.ones(2)], [mx.nd.ones(2)] * 2)


@pytest.mark.parametrize("name, kwargs, label, pred", [
    ("acc", {}, [0, 1, 2], [0, 1]), ("top_k_acc", {"top_k": 2}, [0], np.ones((1, 2, 2))),
    ("f1", {}, [0, 1, 2], np.ones((3, 2))), ("perplexity", {"ignore_label": None}, [0, 1], np.ones((3, 2))),
    ("ce", {}, [0, 1], np.ones((3, 2))), ("pearsonr", {}, [0, 1], np.ones(3)), ("mse", {}, [0, 1], np.ones(3)),
])  # fmt: skip
def test_what_does_not_fit(name, kwargs, label, pred):
    with pytest.raises(OpValueError):
        fill(mx.metric.create(name, **kwargs), [(label, pred)])


@pytest.mark.parametrize("name, label, pred, kind, text", [
    ("acc", [0, 1, 2], [[0, 1], [1, 0]], OpValueError, "metric: the length of the labels is 3, that of the predictions 2"),
    ("rmse", [0, 1], [0, 1, 2], OpValueError, "metric rmse: .*shapes"),
    ("f1", [0, 1], [0, 1], OpIndexError, "metric f1: axis 1"),
])  # fmt: skip
def test_what_does_not_fit_is_named(name, label, pred, kind, text):
    with pytest.raises(kind, match=text):
        mx.metric.create(name).update([mx.nd.array(label)], [mx.nd.array(pred)])


def test_names():
    with pytest.raises(OpLookupError, match="metric 'acuracy' is not registered; did you mean 'accuracy'"):
        mx.metric.create("acuracy")
    with pytest.raises(OpValueError, match="use Accuracy"):
        mx.metric.create("top_k_acc", top_k=1)
    with pytest.raises(OpTypeError, match="not a function"):
        mx.metric.CustomMetric("acc")


def test_sums_are_python_s_numbers():
    metric = mx.metric.np(lambda label, pred: (np.float32(1e-3), 1))
    for _ in range(100):
        metric.update([mx.nd.ones((1,))], [mx.nd.ones((1,))])
    assert type(metric.get()[1]) is float and abs(metric.sum_metric - 100 * float(np.float32(1e-3))) < 1e-12
