"""``RNN``: against MXNet's answers, each sequence by itself, bound at the second order, in a network that learns."""

import json
from itertools import chain

import mxnet_rnn
import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym
from mxop.records.rnn import rnn as reference

CASES = json.loads(mxnet_rnn.DATA.read_text(encoding="utf-8"))
MODES = sorted(mxnet_rnn.GATES)


def arrays_for(data, dtype="float64", seed=0, **params):
    """Return the inputs of a call, but for lengths: random ones of the shapes that follow from the data's."""
    lengths = {"sequence_length": sym.var("lengths")} if params.get("use_sequence_length") else {}
    shapes = sym.RNN(sym.var("data"), **lengths, **params).infer_shape(data=data)[0]
    rng = np.random.default_rng(seed)
    return [nd.array(rng.uniform(-1, 1, s), dtype=dtype) for s in shapes[: len(shapes) - len(lengths)]]


def listed(found):
    return found if isinstance(found, list) else [found]


def gradients(arrays, call):
    """Return outputs and the gradients of the inputs, for head gradients that are random numbers."""
    for a in arrays:
        a.attach_grad()
    with autograd.record():
        outs = listed(call(*arrays))
    rng = np.random.default_rng(5)
    autograd.backward(outs, [nd.array(rng.uniform(-1, 1, y.shape), ctx=y.context, dtype=y.dtype) for y in outs])
    return [y.asnumpy() for y in outs], [a.grad.asnumpy() for a in arrays]


# ---- MXNet's answers --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES)
def test_mxnets_answers(mode):
    """See ``mxnet_rnn.py``: outputs, states and gradients for random parameters, 1 to 3 layers, both directions."""
    asked = [row for row in CASES if row[1]["mode"] == mode]
    assert len(asked) == 18
    for seed, params, shapes, answer in asked:
        found = mxnet_rnn.run(mx, seed, params, shapes)
        assert [shape for shape, _ in found] == [shape for shape, _ in answer], params
        np.testing.assert_allclose([v for _, v in found], [v for _, v in answer], rtol=1e-4, atol=1e-4, err_msg=str(params))


def test_names_and_inputs():
    params = {"state_size": 3, "num_layers": 2, "bidirectional": True, "name": "r", "state_outputs": True}
    wanted = [("gru", ["r_state"], ["r_output", "r_state_output"]),
              ("lstm", ["r_state", "r_state_cell"], ["r_output", "r_state_output", "r_statecell_output"])]  # fmt: skip
    for mode, states, outputs in wanted:
        net = sym.RNN(sym.var("data"), mode=mode, **params)
        assert net.list_arguments() == ["data", "r_parameters", *states] and net.list_outputs() == outputs
        net = sym.RNN(sym.var("data"), mode=mode, use_sequence_length=True, **params)
        assert net.list_arguments() == ["data", "r_parameters", *states, "r_sequence_length"]
        assert sym.load_json(net.tojson()).tojson() == net.tojson()
    assert sym.RNN(sym.var("data"), mode="gru", state_size=1, num_layers=1).list_outputs()[0].endswith("_output")


# ---- inference --------------------------------------------------------------------------------------------------------
PARAMS = {"state_size": 3, "num_layers": 2, "bidirectional": True, "state_outputs": True, "mode": "lstm"}


def test_shapes_follow_in_both_directions():
    net = sym.RNN(sym.var("data"), name="r", use_sequence_length=True, projection_size=2, **PARAMS)
    whole = [(4, 2, 5), (432,), (4, 2, 2), (4, 2, 3), (2,)], [(4, 2, 4), (4, 2, 2), (4, 2, 3)], []
    assert net.infer_shape(data=(4, 2, 5)) == whole
    assert net.infer_shape(data=(4, 0, 5), r_sequence_length=(2,)) == whole
    assert net.infer_shape(data=(4, 2, 0), r_parameters=(432,)) == whole
    assert net.infer_shape(data=(4, 0, 0), r_state_cell=(4, 2, 3), r_parameters=(432,)) == whole
    both = net[0] + sym.var("like")
    assert both.infer_shape_partial(like=(4, 2, 4))[0][0] == (4, 2, 0)


def test_types_follow():
    net = sym.RNN(sym.var("data"), name="r", use_sequence_length=True, **PARAMS)
    assert net.infer_type(r_state="float64")[0] == [np.float64] * 5
    assert net.infer_type(data="float16", r_sequence_length="int32")[0] == [np.float16] * 4 + [np.int32]
    executor = net.simple_bind(mx.cpu(), data=(4, 2, 5), type_dict={"data": "float16"})
    assert {a.dtype for a in (*executor.arg_arrays, *executor.outputs)} == {np.float16}


@pytest.mark.parametrize("shapes, message", [
    ({"data": (4, 5)}, r"data has shape \(4, 5\)"),
    ({"data": (4, 2, 5), "r_state": (4, 1, 3)}, r"state has shape \(4, 1, 3\); expected \(4, 2, 3\)"),
    ({"data": (4, 2, 5), "r_parameters": (7,)}, r"parameters has shape \(7,\); expected \(504,\)"),
    ({"r_parameters": (505,)}, "parameters has 505 elements; expected 384 and 24 more for each input"),
])  # fmt: skip
def test_shapes_that_do_not_fit(shapes, message):
    net = sym.RNN(sym.var("data"), name="r", **PARAMS)
    with pytest.raises(mx.MXNetError, match=message):
        net.infer_shape(**shapes)


def test_what_is_wrong_is_told():
    x, params, state = arrays_for((2, 1, 2), state_size=2, num_layers=1, mode="gru")
    for given, message in [
        ({"mode": "lst"}, "mode='lst'"), ({"mode": "gru", "p": 1.5}, "p=1.5"),
        ({"mode": "gru", "num_layers": 0}, "num_layers=0"),
        ({"mode": "gru", "projection_size": 1}, "projection_size=1 with mode='gru'"),
        ({"mode": "gru", "lstm_state_clip_max": 1.0}, "expected both or none"),
    ]:  # fmt: skip
        with pytest.raises(mx.MXNetError, match=message):
            nd.RNN(x, params, state, **{"state_size": 2, "num_layers": 1, **given})
    with pytest.raises(mx.MXNetError, match="missing: state_cell"):
        nd.RNN(x, params, state, state_size=2, num_layers=1, mode="lstm")
    with pytest.raises(mx.MXNetError, match="missing: sequence_length"):
        nd.RNN(x, params, state, state_cell=state, state_size=2, num_layers=1, mode="gru", use_sequence_length=True)
    with pytest.raises(mx.MXNetError, match="needs floating-point data, got int32"):
        nd.RNN(*(a.astype("int32") for a in (x, params, state)), state_size=2, num_layers=1, mode="gru")
    with pytest.raises(mx.MXNetError, match="no steps"):
        nd.RNN(x[0:0], params, state, state_size=2, num_layers=1, mode="gru")


# ---- sequences of their own lengths -------------------------------------------------------------------------------------
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_each_sequence_is_as_if_alone(mode, both):
    """Outputs, states and gradients; whatever lies beyond a sequence does not matter."""
    params = {"mode": mode, "state_size": 2, "num_layers": 2, "bidirectional": both, "state_outputs": True}
    arrays, lengths = arrays_for((4, 3, 2), **params), [4, 1, 3]
    for n, length in enumerate(lengths):
        arrays[0][length:, n] = np.nan
    given = nd.array(lengths, dtype="int32")
    outs, grads = gradients(arrays, lambda *a: nd.RNN(*a, given, use_sequence_length=True, **params))
    total = 0
    for n, length in enumerate(lengths):
        heads = np.random.default_rng(5)
        heads = [nd.array(heads.uniform(-1, 1, y.shape)[: length if k == 0 else None, n : n + 1], dtype="float64")
                 for k, y in enumerate(outs)]  # fmt: skip
        data, vector, *states = arrays
        alone = [data[:length, n : n + 1].copy(), vector.copy(), *(s[:, n : n + 1].copy() for s in states)]
        for a in alone:
            a.attach_grad()
        with autograd.record():
            wanted = nd.RNN(*alone, **params)
        autograd.backward(wanted, heads)
        found = [outs[0][:length, n : n + 1], *(s[:, n : n + 1] for s in outs[1:])]
        found += [grads[0][:length, n : n + 1], *(g[:, n : n + 1] for g in grads[2:])]
        for a, b in zip(found, [*wanted, alone[0].grad, *(a.grad for a in alone[2:])], strict=True):
            np.testing.assert_allclose(a, b.asnumpy(), rtol=1e-10, atol=1e-12)
        assert not outs[0][length:, n].any() and not grads[0][length:, n].any()
        total += alone[1].grad.asnumpy()
    np.testing.assert_allclose(grads[1], total, rtol=1e-10, atol=1e-12)


def test_lengths_by_name_and_by_position():
    params = {"mode": "gru", "state_size": 2, "num_layers": 1, "use_sequence_length": True}
    arrays, lengths = arrays_for((3, 2, 2), **params), nd.array([1, 3])
    found = [nd.RNN(*arrays, lengths, **params), nd.RNN(*arrays, None, lengths, **params),
             nd.RNN(*arrays, sequence_length=lengths, **params)]  # fmt: skip
    wanted = reference(*(a.asnumpy() for a in arrays), lengths.asnumpy(), **params)
    for y in found:
        np.testing.assert_allclose(y.asnumpy(), wanted, rtol=1e-12)


# ---- limits, dropout ----------------------------------------------------------------------------------------------------
def test_nan_in_the_cell():
    params = {"mode": "lstm", "state_size": 2, "num_layers": 1, "state_outputs": True}
    limits = {"lstm_state_clip_min": -0.25, "lstm_state_clip_max": 0.25}
    arrays = arrays_for((1, 1, 1), **params)
    arrays[3][0, 0, 0] = np.nan
    cell = nd.RNN(*arrays, **params, **limits)[2].asnumpy().ravel()
    assert np.isnan(cell[0]) and abs(cell[1]) <= 0.25
    cell = nd.RNN(*arrays, **params, **limits, lstm_state_clip_nan=True)[2].asnumpy().ravel()
    assert cell[0] == -0.25 and abs(cell[1]) <= 0.25


DROPS = {"mode": "lstm", "state_size": 8, "num_layers": 2, "state_outputs": True}


def test_dropout_is_between_layers_while_training():
    arrays = arrays_for((3, 4, 2), **DROPS)
    plain = nd.RNN(*arrays, **DROPS)
    for a, b in zip(plain, nd.RNN(*arrays, p=0.5, **DROPS), strict=True):
        assert (a.asnumpy() == b.asnumpy()).all()
    with autograd.train_mode():
        one, two = (nd.RNN(*arrays, p=0.5, **DROPS) for _ in range(2))
        nothing = nd.RNN(*arrays, p=1, **DROPS)
    assert (one[0].asnumpy() != two[0].asnumpy()).mean() > 0.9
    for a in (one, two, nothing):  # the first layer is not touched
        assert (a[1][0].asnumpy() == plain[1][0].asnumpy()).all()
    at, biases = 32 * (2 + 8), 2 * 64  # the second layer's W reads nothing
    arrays[1][at : at + 32 * 8] = 0
    assert len(arrays[1]) == at + 32 * 16 + biases
    np.testing.assert_allclose(nothing[0].asnumpy(), nd.RNN(*arrays, **DROPS)[0].asnumpy(), rtol=1e-12)


def test_dropout_bound_and_recorded_draw_the_same():
    arrays = arrays_for((3, 4, 2), **DROPS)
    mx.random.seed(3)
    outs, grads = gradients(arrays, lambda *a: nd.RNN(*a, p=0.5, **DROPS))
    net = sym.RNN(*map(sym.var, "abcd"), p=0.5, **DROPS)
    executor = net.bind(mx.cpu(), arrays, [nd.zeros(a.shape, dtype="float64") for a in arrays])
    mx.random.seed(3)
    found = executor.forward(is_train=True)
    rng = np.random.default_rng(5)
    executor.backward([nd.array(rng.uniform(-1, 1, y.shape), dtype="float64") for y in outs])
    for a, b in zip([*found, *executor.grad_arrays], [*outs, *grads], strict=True):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-10, atol=1e-12)


# ---- in other forms -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES)
def test_operator_by_operator(mode):
    """A call that is no plan gives the same values and gradients."""
    params = {"mode": mode, "state_size": 2, "num_layers": 2, "bidirectional": True, "state_outputs": True}
    arrays = arrays_for((3, 2, 2), **params)
    wanted = gradients(arrays, lambda *a: nd.RNN(*a, **params))
    with mx.graph.planned(False):
        found = gradients(arrays, lambda *a: nd.RNN(*a, **params))
    for a, b in zip(chain(*found), chain(*wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mode", ["gru", "lstm"])
def test_a_gradient_penalty(mode):
    """The second order in all inputs, bound and recorded."""
    params = {"mode": mode, "state_size": 2, "num_layers": 2, "bidirectional": True}
    arrays = arrays_for((3, 2, 2), **params)
    names = list("abcd"[: len(arrays)])
    out = sym.sum(sym.square(sym.RNN(*map(sym.var, names), **params)))
    penalty = sym.sum(sym.square(out.gradient(["a"])[0]))
    executor = penalty.bind(mx.cpu(), arrays, [nd.zeros(a.shape, dtype="float64") for a in arrays])
    value = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(nd.ones((1,), dtype="float64"))

    def recorded(*given):
        (slope,) = autograd.grad(nd.sum(nd.square(nd.RNN(*given, **params))), given[0], create_graph=True)
        return nd.sum(nd.square(slope))

    for a in arrays:
        a.attach_grad()
    with autograd.record():
        found = recorded(*arrays)
    found.backward()
    np.testing.assert_allclose(value, found.asnumpy(), rtol=1e-10)
    for a, g in zip(arrays, executor.grad_arrays, strict=True):
        np.testing.assert_allclose(g.asnumpy(), a.grad.asnumpy(), rtol=1e-9, atol=1e-12)


def test_on_a_simulated_gpu(simulated_gpu):
    arrays = arrays_for((3, 2, 2), dtype="float32", **PARAMS)
    wanted = gradients(arrays, lambda *a: nd.RNN(*a, **PARAMS))
    found = gradients([a.as_in_context(simulated_gpu) for a in arrays], lambda *a: nd.RNN(*a, **PARAMS))
    for a, b in zip(chain(*found), chain(*wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_lengths_on_a_simulated_gpu(simulated_gpu):
    params = {"mode": "gru", "state_size": 2, "num_layers": 1, "use_sequence_length": True}
    rng = np.random.default_rng(0)
    arrays = [nd.array(rng.normal(size=s)) for s in ((3, 2, 2), (36,), (1, 2, 2))] + [nd.array([1, 3])]
    wanted = nd.RNN(*arrays, **params)
    found = nd.RNN(*(a.as_in_context(simulated_gpu) for a in arrays), **params)
    np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-5)


# ---- learning -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["gru", "lstm"])
def test_it_learns_to_remember(mode):
    """The class of a sequence is told in its first step alone."""
    steps, batch, classes = 5, 30, 3
    layer = sym.RNN(sym.var("data"), mode=mode, state_size=12, num_layers=1, state_outputs=True, name="r")
    logits = sym.FullyConnected(sym.reshape(layer[1], shape=(-3, 0)), num_hidden=classes, name="out")
    loss = sym.softmax_cross_entropy(logits, sym.var("label"))
    fixed = {"data": (steps, batch, classes), "label": (batch,)}
    learnt = ("parameters", "weight", "bias")
    reqs = {n: "write" if n.endswith(learnt) else "null" for n in loss.list_arguments()}
    executor = loss.simple_bind(mx.cpu(), grad_req=reqs, **fixed)
    rng, label = np.random.default_rng(0), np.arange(batch) % classes
    data = rng.normal(size=fixed["data"]) * 0.1
    data[0, np.arange(batch), label] += 1
    executor.arg_dict["data"][:], executor.arg_dict["label"][:] = data, label
    weights = {n: (executor.arg_dict[n], g) for n, g in executor.grad_dict.items() if g is not None}
    momenta = {n: nd.zeros(w.shape) for n, (w, _) in weights.items()}
    for w, _ in weights.values():
        w[:] = rng.uniform(-0.5, 0.5, w.shape)
    losses = []
    for _ in range(80):
        losses.append(executor.forward(is_train=True)[0].item() / batch)
        executor.backward(nd.ones((1,)))
        for n, (w, g) in weights.items():
            nd.sgd_mom_update(w, g, momenta[n], out=w, lr=1 / batch, momentum=0.9)
    assert losses[0] > 0.9 and losses[-1] < 0.1
