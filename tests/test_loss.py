"""Output layers: their gradient is that of a loss, of any order.  MXNet's models are in ``test_mxnet_models.py``."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym

RNG = np.random.default_rng(4)
X, H = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
LABEL = np.array([0, 2, 1, 2])


def gradient(f, x, head=None, square=False):
    """Return the gradient of an output layer; with `square`, that of the sum of the squares of the gradient."""
    x = nd.array(x, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = f(x)
        if square:
            y = nd.square(autograd.grad(y, x, create_graph=True)[0]).sum()
    y.backward(None if head is None else nd.array(head, dtype="float64"))
    return x.grad.asnumpy()


LAYERS = {
    "softmax": lambda x: nd.SoftmaxOutput(x, nd.array(LABEL, dtype="float64"), smooth_alpha=0.2, normalization="batch"),
    "ignoring": lambda x: nd.SoftmaxOutput(x, nd.array(LABEL, dtype="float64"), use_ignore=True, ignore_label=2),
    "places": lambda x: nd.SoftmaxOutput(
        x.reshape((2, 3, 2)), nd.array(LABEL.reshape(2, 2), dtype="float64"), multi_output=True
    ),
    "logistic": lambda x: nd.LogisticRegressionOutput(x, nd.array(H, dtype="float64")),
    "linear": lambda x: nd.LinearRegressionOutput(x, nd.array(H, dtype="float64"), grad_scale=3),
    "svm": lambda x: nd.SVMOutput(x, nd.array(LABEL, dtype="float64"), margin=0.5),
}  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS)
def test_the_gradient_does_not_depend_on_the_head(layer):
    plain = gradient(LAYERS[layer], X)
    shape = LAYERS[layer](nd.array(X, dtype="float64")).shape
    assert gradient(LAYERS[layer], X, np.full(shape, 7.0)).tolist() == plain.tolist()
    assert np.abs(plain).sum() > 0


@pytest.mark.parametrize("layer", LAYERS)
def test_the_second_derivative_is_the_gradients_own(layer):
    found = gradient(LAYERS[layer], X, square=True)
    step, want = 1e-5, np.zeros_like(X)
    for place in np.ndindex(X.shape):
        values = []
        for sign in (1, -1):
            moved = X.copy()
            moved[place] += sign * step
            values.append(np.square(gradient(LAYERS[layer], moved)).sum())
        want[place] = (values[0] - values[1]) / (2 * step)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-8)


def test_labels_have_no_gradient():
    x, label = nd.array(X), nd.array(LABEL)
    label.attach_grad()
    with autograd.record():
        y = nd.SoftmaxOutput(x, label)
    y.backward()
    assert label.grad.asnumpy().tolist() == [0] * 4


def test_out_grad_multiplies_by_the_head_gradient_better():
    """MXNet multiplies by the output."""
    label = nd.array(LABEL, dtype="float64")
    plain = gradient(lambda x: nd.SoftmaxOutput(x, label), X)
    np.testing.assert_allclose(gradient(lambda x: nd.SoftmaxOutput(x, label, out_grad=True), X, H), plain * H, rtol=1e-12)


def test_labels_of_places_are_smoothed_better():
    """MXNet does not smooth with multi_output."""
    x, label = X.T.reshape(1, 3, 4), nd.array(LABEL.reshape(1, 4), dtype="float64")
    params = {"smooth_alpha": 0.25, "normalization": "batch"}
    flat = gradient(lambda a: nd.SoftmaxOutput(a, label.reshape((4,)), **params), X)
    found = gradient(lambda a: nd.SoftmaxOutput(a, label, multi_output=True, **params), x)
    np.testing.assert_allclose(found[0].T, flat, rtol=1e-12)


@pytest.mark.parametrize(("shape", "rows"), [((4,), 1), ((2, 3), 2), ((2, 3, 4), 6), ((2, 1, 3, 2), 6)])
def test_make_loss_divides_by_the_rows_of_a_batch(shape, rows):
    np.testing.assert_allclose(gradient(lambda a: nd.MakeLoss(a, normalization="batch"), nd.ones(shape)), 1 / rows, rtol=1e-6)


def test_absolute_error_pulls_down_where_the_label_is_reached_too():
    label = nd.array([0, 5, 1, 2])
    found = gradient(lambda a: nd.MAERegressionOutput(a, label, grad_scale=3), nd.array([1, 1, 1, np.nan]))
    assert found.tolist() == [3, -3, -3, -3]


def test_counts_of_float16_are_exact():
    x = nd.full((3000,), 2, dtype="float16")
    x.attach_grad()
    with autograd.record():
        y = nd.MakeLoss(x, grad_scale=3000, normalization="valid")
    y.backward()
    assert x.grad.asnumpy().tolist() == [1] * 3000


@pytest.mark.parametrize(
    ("shape", "label", "params", "wanted"),
    [
        ((2, 3, 4), (2, 3), {}, r"\(2,\)"),
        ((2, 3, 4), (8, 1), {"multi_output": True}, r"\(2, 4\)"),
        ((2, 3, 4), (2, 4), {"preserve_shape": True}, r"\(2, 3\)"),
    ],
)
def test_labels_that_do_not_fit(shape, label, params, wanted):
    with pytest.raises(mx.MXNetError, match=rf"SoftmaxOutput: label has shape .*expected {wanted}, or the data's shape"):
        nd.SoftmaxOutput(nd.ones(shape), nd.ones(label), **params)


def test_shapes_of_labels_follow():
    x = sym.Variable("x")
    for params, label in (({}, (2,)), ({"multi_output": True}, (2, 20)), ({"preserve_shape": True}, (2, 3, 4))):
        y = sym.SoftmaxOutput(x, name="softmax", **params)
        assert y.list_arguments() == ["x", "softmax_label"]
        assert y.infer_shape(x=(2, 3, 4, 5))[0] == [(2, 3, 4, 5), label]
    y = sym.LinearRegressionOutput(x, name="lro")
    assert y.infer_shape(x=(5, 1))[0] == [(5, 1), (5,)]
    assert y.infer_shape(lro_label=(5, 2), x=(5, 2))[0] == [(5, 2), (5, 2)]


def test_an_executor_begins_backward_at_the_loss():
    """A perceptron on two classes, by sgd_mom_update on the executor's arrays; no head gradient is given."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(64, 2))
    label = (points[:, 0] * points[:, 1] > 0).astype("float32")
    net = sym.Activation(sym.FullyConnected(sym.Variable("data"), num_hidden=16, name="fc1"), act_type="tanh")
    net = sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=2, name="fc2"), name="softmax", normalization="batch")
    executor = net.simple_bind(mx.cpu(), data=(64, 2))
    for name, array in executor.arg_dict.items():
        array[:] = points if name == "data" else label if name == "softmax_label" else rng.normal(0, 0.7, array.shape)
    moments = {n: nd.zeros(executor.arg_dict[n].shape) for n in net.list_arguments() if n.startswith("fc")}
    for _ in range(150):
        executor.forward(is_train=True)
        executor.backward()
        for n, mom in moments.items():
            w = executor.arg_dict[n]
            nd.sgd_mom_update(w, executor.grad_dict[n], mom, lr=0.5, momentum=0.9, out=w)
    assert (executor.forward()[0].asnumpy().argmax(1) == label).mean() > 0.95


@pytest.mark.parametrize("params", [{}, {"use_ignore": True, "ignore_label": 0}])
def test_labels_are_cut_to_whole_numbers(params):
    given, whole = (nd.array(a, dtype="float64") for a in ([-0.2, 0.7, 1.9, 2.0], [0, 0, 1, 2]))
    x = np.arange(12).reshape(4, 3) * 0.3
    layers = [lambda x, label: nd.SoftmaxOutput(x, label, **params)]
    if not params:
        layers += [nd.SVMOutput, nd.softmax_cross_entropy]
    for layer in layers:
        found, wanted = (gradient(lambda a, f=layer, n=label: f(a, n), x) for label in (given, whole))
        np.testing.assert_array_equal(found, wanted)
        assert found.any()


@pytest.mark.parametrize(("shape", "rows"), [((4,), 1), ((2, 3), 2), ((2, 3, 5), 6), ((1, 2, 3, 4), 6)])
def test_the_batch_of_a_loss_is_its_rows(shape, rows):
    """As in MXNet, where all sizes but the last are the batch."""
    x = nd.ones(shape)
    x.attach_grad()
    with autograd.record():
        y = nd.MakeLoss(x, grad_scale=2.0, normalization="batch")
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 / rows)


def test_a_label_of_which_the_rank_is_known_gets_its_sizes():
    for loss in (mx.sym.SoftmaxOutput, mx.sym.SVMOutput):
        net = loss(mx.sym.Variable("x"), mx.sym.Variable("y"))
        assert net.infer_shape(x=(2, 3), y=(0,))[0] == [(2, 3), (2,)]
