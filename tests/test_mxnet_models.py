"""Small models that MXNet 1.9.1 wrote, and ran: normalisation and output layers."""

import json

import mxnet_answers
import numpy as np
import pytest

import mxop as mx
from mxop import sym

ANSWERS = mxnet_answers.read("models.json")


@pytest.mark.parametrize("row", range(len(ANSWERS)))
def test_models_of_mxnet(row):
    """Names, outputs in both modes, gradients and states are MXNet's; and the file comes out as it went in."""
    text, arrays, expected = ANSWERS[row]
    found = mxnet_answers.run_model(mx, text, arrays)
    assert found[0] == expected[0]
    for got, want in zip(found[1:], expected[1:], strict=True):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    assert json.loads(mx.sym.load_json(text).tojson()) == json.loads(text)


@pytest.mark.parametrize("row", range(len(ANSWERS)))
def test_symbols_are_mxnets(row):
    make, _ = mxnet_answers.MODELS[row]
    with mx.name.NameManager():
        made = json.loads(make(sym, sym.Variable("data")).tojson())
    assert made == json.loads(ANSWERS[row][0])


def test_recurrent_layers_of_gluon():
    """Their exports join the parameters by ``_rnn_param_concat``, and make first states of a batch size to be found."""
    sizes = {"l0_i2h_weight": (12, 0), "r0_i2h_weight": (12, 0), "l0_h2h_weight": (12, 3), "r0_h2h_weight": (12, 3)}
    names = ["l0_i2h_weight", "l0_h2h_weight", "r0_i2h_weight", "r0_h2h_weight"]
    names += [f"{way}0_{part}" for way in "lr" for part in ("i2h_bias", "h2h_bias")]
    flat = [sym.reshape(sym.Variable(name, shape=sizes.get(name, (12,))), shape=(-1,)) for name in names]
    joined = sym._internal._rnn_param_concat(*flat, dim=0, num_args=8)
    options = {"mode": "lstm", "state_size": 3, "num_layers": 1, "bidirectional": True}
    net = sym.RNN(sym.Variable("data"), joined, *[sym.zeros(shape=(2, 0, 3)) for _ in range(2)], **options, name="rnn")
    assert '"op": "_rnn_param_concat"' in net.tojson()
    executor = sym.load_json(net.tojson()).simple_bind(mx.cpu(), data=(5, 4, 2))
    assert executor.arg_dict["r0_i2h_weight"].shape == (12, 2)
    random = np.random.RandomState(0)
    for array in executor.arg_dict.values():
        array[:] = random.normal(size=array.shape)
    (out,) = executor.forward(is_train=True)
    executor.backward(mx.nd.ones(out.shape))
    vector = mx.nd.concat(*[executor.arg_dict[n].reshape((-1,)) for n in names], dim=0)
    first = mx.nd.zeros((2, 4, 3))
    expected = mx.nd.RNN(executor.arg_dict["data"], vector, first, first, **options)
    np.testing.assert_allclose(out.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)
    assert all(np.abs(executor.grad_dict[n].asnumpy()).max() > 0 for n in names)
