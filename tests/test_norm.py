"""Normalisation: states and modes, types, and a network that learns.  MXNet's models are in ``test_mxnet_models.py``."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym


# ---- states and modes --------------------------------------------------------------------------------------------------
def batch_norm(dtype="float32", shape=(4, 3)):
    rng = np.random.default_rng(3)
    wide = "float32" if dtype == "float16" else dtype
    c = shape[1]
    return [
        nd.array(rng.normal(size=shape), dtype=dtype),
        *(nd.array(rng.uniform(0.5, 1.5, c), dtype=wide) for _ in range(4)),
    ]


@pytest.mark.parametrize("recorded", [False, True])
def test_moving_statistics_follow_in_training_only(recorded):
    given = batch_norm("float64")
    x, mean, var = (a.asnumpy() for a in (given[0], *given[3:]))
    given[0].attach_grad()
    for is_train in (False, True, False, True):
        with autograd.record(is_train) if recorded else autograd.train_mode() if is_train else autograd.predict_mode():
            nd.BatchNorm(*given, momentum=0.75)
        if is_train:
            mean, var = 0.75 * mean + 0.25 * x.mean(0), 0.75 * var + 0.25 * x.var(0)
        np.testing.assert_allclose(given[3].asnumpy(), mean, rtol=1e-12)
        np.testing.assert_allclose(given[4].asnumpy(), var, rtol=1e-12)


def test_global_statistics_stay():
    given = batch_norm()
    before = [a.asnumpy() for a in given[3:]]
    with autograd.record():
        nd.BatchNorm(*given, use_global_stats=True)
    assert [a.asnumpy().tolist() for a in given[3:]] == [a.tolist() for a in before]


def test_a_fixed_gamma_stays_and_has_no_gradient_better():
    """MXNet writes 1 into it."""
    given = batch_norm()
    gamma = given[1].asnumpy()
    given[1].attach_grad()
    with autograd.record():
        y = nd.BatchNorm(*given)
    y.backward()
    assert given[1].grad.asnumpy().tolist() == [0, 0, 0]
    assert given[1].asnumpy().tolist() == gamma.tolist()


def test_the_mean_and_variance_have_gradients_better():
    """MXNet's are 0."""
    given = batch_norm("float64")
    given[0].attach_grad()
    with autograd.record():
        _, mean, std = nd.BatchNorm(*given, output_mean_var=True)
    mean.backward(nd.array([1, 2, -4], dtype="float64"), retain_graph=True)
    assert given[0].grad.asnumpy().tolist() == [[0.25, 0.5, -1]] * 4
    std.backward(nd.array([1, 2, -4], dtype="float64"))
    x, _, _, _, _ = (a.asnumpy() for a in given)
    slope = -(x - x.mean(0)) * std.asnumpy() ** 3 / 4 * [1, 2, -4]  # of 1 / sqrt(variance + eps)
    np.testing.assert_allclose(given[0].grad.asnumpy(), slope, rtol=1e-9)


@pytest.mark.parametrize("is_train", [False, True])
def test_float16_is_computed_in_float32(is_train):
    """The squares of these would be infinite, and their sum would lose the small ones."""
    given = batch_norm("float16", (64, 2))
    given[0][:] = nd.array(np.random.default_rng(1).normal(300, 5, (64, 2)))
    wide = [a.astype("float64") for a in given]
    with autograd.train_mode() if is_train else autograd.predict_mode():
        y, want = (nd.BatchNorm(*a, fix_gamma=False) for a in (given, wide))
    assert y.dtype == np.float16
    np.testing.assert_allclose(y.asnumpy(), want.asnumpy(), rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(given[4].asnumpy(), wide[4].asnumpy(), rtol=1e-5)


def test_results_go_where_out_says():
    rng = np.random.default_rng(0)
    x, gamma, beta = (nd.array(rng.normal(size=s)) for s in ((5, 300), 300, 300))
    wanted = [a.asnumpy() for a in nd.LayerNorm(x, gamma, beta, output_mean_var=True)]
    outs = [nd.zeros(a.shape) for a in wanted]
    found = nd.LayerNorm(x, gamma, beta, output_mean_var=True, out=outs)
    for have, given, want in zip(found, outs, wanted, strict=True):
        assert have is given and (have.asnumpy() == want).all()
    wide = nd.zeros((5, 600))
    nd.LayerNorm(x, gamma, beta, out=wide[:, :300])
    np.testing.assert_array_equal(wide.asnumpy(), np.pad(wanted[0], ((0, 0), (0, 300))))
    with pytest.raises(mx.MXNetError, match="out holds 3 arrays, but a call returns 1"):
        nd.LayerNorm(x, gamma, 2 * beta, out=outs)
    assert (outs[0].asnumpy() == wanted[0]).all()
    assert nd.LayerNorm(x, gamma, beta, out=x) is x and (x.asnumpy() == wanted[0]).all()


def test_inference_runs_both_ways():
    x = sym.Variable("x")
    y = sym.BatchNorm(x, sym.Variable("g", shape=(7,)), name="bn", axis=2)
    shapes = y.infer_shape_partial(x=(2, 3, 0, 4))
    assert shapes == ([(2, 3, 7, 4), (7,), (7,)], [(2, 3, 7, 4)], [(7,), (7,)])
    z = sym.LayerNorm(x, name="ln") + sym.Variable("other", shape=(5, 6))
    assert z.infer_shape()[0] == [(5, 6), (6,), (6,), (5, 6)]
    types = y.infer_type(x="float16")
    assert [np.dtype(t).name for part in types for t in part] == ["float16"] + ["float32"] * 2 + ["float16"] + ["float32"] * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, v: nd.BatchNorm(x, v, v, v, nd.ones((2,))), r"BatchNorm: .*moving_var has shape \(2,\)"),
        (lambda x, v: nd.BatchNorm(x, v, v, v, v, axis=2), "BatchNorm: axis=2 is out of range"),
        (lambda x, v: nd.LayerNorm(x, v, nd.ones((4,))), r"LayerNorm: .*beta has shape \(4,\)"),
        (lambda x, v: nd.BatchNorm(x.astype("int32"), v, v, v, v), "needs floating-point data, got int32"),
    ],
)
def test_bad_input(call, message):
    x, v = nd.ones((2, 3)), nd.ones((3,))
    with pytest.raises(mx.MXNetError, match=message):
        call(x, v)
    assert v.asnumpy().tolist() == [1, 1, 1]


def test_a_model_trained_on_several_devices_runs_on_one():
    bn = sym.contrib.SyncBatchNorm(sym.Variable("x"), name="bn", fix_gamma=False, eps=0, ndev=8, key="bn")
    exe = bn.simple_bind(mx.cpu(), x=(2, 1))
    for array, value in zip([*exe.arg_arrays, *exe.aux_arrays], ([[5], [1]], [1], [0], [1], [4]), strict=True):
        array[:] = nd.array(value)
    assert exe.forward()[0].asnumpy().tolist() == [[2], [0]]
    assert exe.forward(is_train=True)[0].asnumpy().tolist() == [[1], [-1]]


# ---- a network that learns ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_perceptron_with_batch_norm_learns(optimizer):
    """Points within a circle or outside, by updates on the arrays of a bound executor."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (128, 2))
    inside = (points**2).sum(1) < 0.5
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=16, name="fc1")
    net = sym.Activation(sym.BatchNorm(net, fix_gamma=False, name="bn"), act_type="relu")
    net = sym.FullyConnected(net, num_hidden=2, name="fc2")
    loss = sym.softmax_cross_entropy(net, sym.Variable("label"))
    both = sym.Group([loss, sym.BlockGrad(net)])
    executor = both.simple_bind(mx.cpu(), data=(128, 2), label=(128,), grad_req={
        n: "null" if n in ("data", "label") else "write" for n in both.list_arguments()})  # fmt: skip
    for array in executor.arg_dict.values():
        array[:] = rng.normal(0, 0.5, array.shape)
    executor.aux_dict["bn_moving_var"][:] = 1
    executor.arg_dict["data"][:], executor.arg_dict["label"][:] = points, inside.astype("float32")
    learnt = {n: g for n, g in executor.grad_dict.items() if g is not None}
    state = {n: (nd.zeros(g.shape), nd.zeros(g.shape)) for n, g in learnt.items()}
    losses = []
    for step in range(60):
        losses.append(executor.forward(is_train=True)[0].asscalar() / 128)
        executor.backward([nd.ones((1,)), nd.zeros((128, 2))])
        for n, g in learnt.items():
            w, (first, second) = executor.arg_dict[n], state[n]
            if optimizer == "sgd":
                nd.sgd_mom_update(w, g, first, lr=0.2 / (1 + 0.01 * step), momentum=0.9, rescale_grad=1 / 128, out=w)
            else:
                nd.adam_update(w, g, first, second, lr=0.05, rescale_grad=1 / 128, out=w)
    assert losses[-1] < 0.4 * losses[0]
    found = executor.forward(is_train=False)[1].asnumpy().argmax(1)
    assert (found == inside).mean() > 0.9
