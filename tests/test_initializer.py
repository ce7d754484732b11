"""``mx.init``: what parameters are filled with, by their names and by their variables' attributes."""

import json
import logging

import numpy as np
import pytest

import mxop as mx
from mxop.errors import OpLookupError, OpTypeError, OpValueError

WEIGHT = mx.init.InitDesc("fc_weight")


def filled(init, shape, name=WEIGHT, dtype="float32"):
    mx.random.seed(3)
    array = mx.nd.zeros(shape, dtype=dtype) + 9
    init(name, array)
    return array.asnumpy()


@pytest.mark.parametrize("init, low, high, std", [
    (mx.init.Uniform(0.3), -0.3, 0.3, 0.3 / 3**0.5), (mx.init.Normal(0.2), -2, 2, 0.2),
    (mx.init.Xavier(), -0.0791, 0.0791, (3 / 480 / 3) ** 0.5), (mx.init.Xavier("gaussian", "in", 2), -1, 1, (2 / 320) ** 0.5),
    (mx.init.Xavier("uniform", "out", 3), -0.07, 0.07, (3 / 640 / 3) ** 0.5),
    (mx.init.MSRAPrelu("avg", 0.5), -1, 1, (1.6 / 480) ** 0.5),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_random_values(init, low, high, std, dtype):
    found = filled(init, (64, 32, 5, 2), dtype=dtype)
    assert found.dtype == dtype and low <= found.min() < found.max() <= high
    assert abs(found.astype("float64").std() / std - 1) < 0.02 and abs(found.astype("float64").mean()) < 0.02 * std * 3


@pytest.mark.parametrize("kind", ["uniform", "normal"])
@pytest.mark.parametrize("shape", [(8, 3, 2), (3, 8), (5, 5)])
def test_orthogonal(kind, shape):
    rows = filled(mx.init.Orthogonal(2.0, kind), shape).reshape(shape[0], -1)
    product = rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_fixed_values():
    assert (filled(mx.init.Zero(), (3,)) == 0).all() and (filled(mx.init.One(), (3,)) == 1).all()
    assert filled(mx.init.Constant(np.array([1, 2])), (2,)).tolist() == [1, 2]
    assert filled(mx.init.LSTMBias(2), (8,)).tolist() == [0, 0, 2, 2, 0, 0, 0, 0]
    assert filled(mx.init.Bilinear(), (1, 2, 4, 4))[0, 1].tolist() == [
        [0.0625, 0.1875, 0.1875, 0.0625], [0.1875, 0.5625, 0.5625, 0.1875], [0.1875, 0.5625, 0.5625, 0.1875],
        [0.0625, 0.1875, 0.1875, 0.0625],
    ]  # fmt: skip


@pytest.mark.parametrize("name, value", [
    ("a_weight", 5), ("a_bias", 0), ("a_gamma", 1), ("a_beta", 0), ("a_min", 0), ("a_max", 1), ("a_bias_quantize", 0),
])  # fmt: skip
def test_names_say_what(name, value):
    assert (filled(mx.init.Constant(5), (2,), mx.init.InitDesc(name)) == value).all()
    assert filled(mx.init.Constant(5), (50,), mx.init.InitDesc("w_weight_quantize")).min() < 0


def test_plain_names():
    for name, value in (("bn_moving_mean", 0), ("bn_moving_var", 1), ("stn_loc_weight", 0), ("fc_weight", 5)):
        with pytest.warns(DeprecationWarning, match="InitDesc"):
            assert (filled(mx.init.Constant(5), (6,), name) == value).all()
    with pytest.warns(DeprecationWarning):
        assert filled(mx.init.Zero(), (6,), "stn_loc_bias").tolist() == [1, 0, 0, 0, 1, 0]


def test_attributes_go_first():
    variable = mx.sym.Variable("x", init=mx.init.Constant(7))
    description = mx.init.InitDesc("x", variable.attr_dict()["x"])
    assert (filled(mx.init.Zero(), (2,), description) == 7).all()
    assert isinstance(description.global_init, mx.init.Zero)


def test_json():
    for init in (mx.init.Xavier("gaussian", "in", 2), mx.init.MSRAPrelu(), mx.init.Constant(2.5), mx.init.Zero(),
                 mx.init.FusedRNN(mx.init.Uniform(0.1), 3, 2, "gru", True)):  # fmt: skip
        assert mx.init.create(init.dumps()) == init and json.loads(init.dumps())[0] == type(init).__name__.lower()
    assert mx.init.create("zeros") == mx.init.Zero() != mx.init.One() and mx.init.create("ones") == mx.init.One()
    assert json.loads(mx.init.Constant(mx.nd.array([1, 2])).dumps()) == ["constant", {"value": [1, 2]}]
    with pytest.raises(OpLookupError, match="did you mean 'xavier'"):
        mx.init.create("xaver")


def test_parameters_of_recurrent_layers():
    for mode, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1)):
        hidden, width = 2, 5
        size = gates * hidden * ((width + hidden + 2) * 2 + (2 * hidden + hidden + 2) * 2)
        init = mx.init.FusedRNN(mx.init.One(), hidden, 2, mode, True, 3.0)
        values = filled(mx.init.Zero(), (size,), mx.init.InitDesc("p", {"__init__": init.dumps()}))
        weights = size - 2 * 2 * 2 * gates * hidden
        biases = values[weights:].reshape(8, gates, hidden)
        assert (values[:weights] == 1).all()
        assert (biases[:, 1] == 3).all() if mode == "lstm" else (biases == 0).all()
        assert gates == 1 or (np.delete(biases, 1, 1) == 0).all()
    with pytest.raises(OpValueError, match="has 11 elements"):
        filled(mx.init.FusedRNN(mx.init.One(), 2, 1, "gru"), (11,))


def test_loaded_and_mixed(tmp_path):
    name = str(tmp_path / "x.params")
    mx.nd.save(name, {"arg:a": mx.nd.ones((2,)), "aux:b": mx.nd.zeros((2,))})
    load = mx.init.Load(name, mx.init.Constant(4))
    assert [filled(load, (2,), mx.init.InitDesc(n)).tolist() for n in ("a", "b", "c_weight")] == [
        [1, 1],
        [0, 0],
        [4, 4],
    ]
    with pytest.raises(OpValueError, match=r"'a' has shape \(3,\)"):
        filled(load, (3,), "a")
    with pytest.raises(AssertionError, match="no default_init"):
        filled(mx.init.Load({}), (3,), "a")
    mixed = mx.init.Mixed(["fc", ".*bias"], [mx.init.One(), mx.init.Zero()])
    assert filled(mixed, (1,)).item() == 1 and filled(mixed, (1,), mx.init.InitDesc("b_bias")).item() == 0
    with pytest.raises(ValueError, match="no pattern fits 'x'"):
        mixed("x", mx.nd.ones(1))


def test_mistakes():
    for make in (lambda: mx.init.Xavier("cauchy"), lambda: mx.init.Xavier(factor_type="both"),
                 lambda: mx.init.Orthogonal(1, "x"), lambda: mx.init.FusedRNN(None, 1, 1, "rnn"),
                 lambda: filled(mx.init.Xavier(), (3,)), lambda: filled(mx.init.Bilinear(), (3,)),
                 lambda: filled(mx.init.Zero(), (3,), mx.init.InitDesc("what"))):  # fmt: skip
        with pytest.raises(OpValueError):
            make()
    with pytest.raises(OpTypeError):
        mx.init.Zero()(3, mx.nd.ones(1))
    with pytest.raises(NotImplementedError):
        filled(mx.init.Initializer(), (3,))


def test_own_initializers_and_logging(caplog):
    @mx.init.register
    class Halves(mx.init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = 0.5

        def _init_default(self, name, arr):
            arr[:] = 0.25

    caplog.set_level(logging.INFO)
    init = mx.init.create("halves").set_verbosity(True)
    assert filled(init, (2,)).tolist() == [0.5, 0.5] and "Initialized fc_weight as weight: 0.5" in caplog.text
    assert filled(init, (2,), mx.init.InitDesc("x")).tolist() == [0.25, 0.25]
