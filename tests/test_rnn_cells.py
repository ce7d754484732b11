"""``mx.rnn``: cells as symbols, their graphs, parameters and checkpoints, sentences in batches."""

import random

import numpy as np
import pytest

import mxop as mx
from mxop import rnn


def _bound(outputs, seed=0, **shapes):
    """Return an executor with parameters drawn by name, whatever the graph."""
    names = outputs.list_arguments()
    found = dict(zip(names, outputs.infer_shape(**shapes)[0]))
    rng = np.random.RandomState(seed)
    args = {name: mx.nd.array(rng.uniform(-1, 1, found[name])) for name in sorted(names)}
    return args, outputs.bind(mx.cpu(), args, args_grad={n: mx.nd.zeros(s) for n, s in found.items()})


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _lstm_by_numpy(args, x, prefix="lstm_"):
    a = {k: v.asnumpy().astype("float64") for k, v in args.items()}
    h = c = np.zeros((x.shape[0], a[f"{prefix}h2h_weight"].shape[1]))
    outputs = []
    for t in range(x.shape[1]):
        sums = x[:, t] @ a[f"{prefix}i2h_weight"].T + a[f"{prefix}i2h_bias"]
        i, f, g, o = np.split(sums + h @ a[f"{prefix}h2h_weight"].T + a[f"{prefix}h2h_bias"], 4, axis=1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs, axis=1)


def test_lstm_and_gradient():
    outputs, states = rnn.LSTMCell(3).unroll(4, mx.sym.Variable("x"), merge_outputs=True)
    args, executor = _bound(outputs, x=(2, 4, 5))
    expected = _lstm_by_numpy(args, args["x"].asnumpy().astype("float64"))
    np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert [s.name for s in states] == ["lstm_t3_out", "lstm_t3_state"]
    mx.test_utils.check_numeric_gradient(outputs, args, rtol=1e-2, atol=1e-3)


def test_the_first_forget_bias_is_a_parameter_of_the_initializer():
    outputs, _ = rnn.LSTMCell(2, forget_bias=3.0).unroll(1, [mx.sym.Variable("x")])
    bias = next(v for v in outputs[0].get_internals() if v.name == "lstm_i2h_bias")
    array = mx.nd.ones((8,))
    mx.init.Xavier()(mx.init.InitDesc("lstm_i2h_bias", bias.list_attr()), array)
    assert array.asnumpy().tolist() == [0, 0, 3, 3, 0, 0, 0, 0]


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layout", ["NTC", "TNC"])
def test_fused_and_unfused_are_the_same(mode, bidirectional, layout):
    fused = rnn.FusedRNNCell(3, num_layers=2, mode=mode, bidirectional=bidirectional, get_next_state=True, prefix="f_")
    outputs, states = fused.unroll(4, mx.sym.Variable("x"), layout=layout, merge_outputs=True)
    shape = (2, 4, 5) if layout == "NTC" else (4, 2, 5)
    args, executor = _bound(mx.sym.Group([outputs, *states]), x=shape)
    x = args.pop("x")
    stack = fused.unfuse()
    same, last = stack.unroll(4, mx.sym.Variable("x"), layout=layout, merge_outputs=True)
    parameters = stack.pack_weights(fused.unpack_weights(args))
    assert sorted([*parameters, "x"]) == sorted(same.list_arguments())
    expected = same.bind(mx.cpu(), {**parameters, "x": x}).forward()[0].asnumpy()
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert len(last) == (4 if bidirectional else len(states) * 2)
    back = fused.pack_weights(stack.unpack_weights(parameters))
    np.testing.assert_array_equal(back["f_parameters"].asnumpy(), args["f_parameters"].asnumpy())


def test_names_of_the_graph():
    x = [mx.sym.Variable(f"x{t}") for t in range(2)]
    with mx.name.NameManager():
        (_, last), (state,) = rnn.GRUCell(2, prefix="g_").unroll(2, x)
    assert last is state or last.name == state.name == "g_t1_out"
    assert "g_t0__i2h_output" in last.get_internals().list_outputs()
    stack = rnn.SequentialRNNCell()
    stack.add(rnn.BidirectionalCell(rnn.RNNCell(2, prefix="l_"), rnn.RNNCell(2, prefix="r_")))
    stack.add(rnn.ResidualCell(rnn.RNNCell(4, prefix="res_")))
    outputs, states = stack.unroll(2, x)
    assert [o.name for o in outputs] == ["res_t0_out_plus_residual", "res_t1_out_plus_residual"]
    assert "bi_t0_output" in outputs[0].get_internals().list_outputs() and len(states) == 3
    assert mx.sym.Group(outputs).infer_shape(x0=(3, 5), x1=(3, 5))[1] == [(3, 4), (3, 4)]


@pytest.mark.parametrize("kind", [rnn.RNNCell, rnn.LSTMCell, rnn.GRUCell])
def test_a_derived_cell_finds_its_parameters(kind):
    cell = kind(4, prefix="c_")
    symbols = [cell._iW, cell._iB, cell._hW, cell._hB]
    assert [s.name for s in symbols] == ["c_i2h_weight", "c_i2h_bias", "c_h2h_weight", "c_h2h_bias"]
    assert cell._iW is cell.params.get("i2h_weight")


class _OwnCell(rnn.BaseRNNCell):
    """A plain cell as programs write their own, by what MXNet's cells take from the class they derive from."""

    def __init__(self, num_hidden, activation, prefix="own_", params=None):
        super().__init__(prefix=prefix, params=params)
        self._num_hidden, self._activation = num_hidden, activation
        self._iW, self._iB = self.params.get("i2h_weight"), self.params.get("i2h_bias")
        self._hW, self._hB = self.params.get("h2h_weight"), self.params.get("h2h_bias")

    @property
    def state_info(self):
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    @property
    def _gate_names(self):
        return ("",)

    def __call__(self, inputs, states):
        self._counter += 1
        name = f"{self._prefix}t{self._counter}_"
        i2h = mx.sym.FullyConnected(inputs, self._iW, self._iB, num_hidden=self._num_hidden, name=f"{name}i2h")
        h2h = mx.sym.FullyConnected(states[0], self._hW, self._hB, num_hidden=self._num_hidden, name=f"{name}h2h")
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        self.reset()
        steps, _ = rnn.rnn_cell._normalize_sequence(length, inputs, layout, False)
        states, outputs = begin_state or self.begin_state(), []
        for step in steps:
            output, states = self(step, states)
            outputs.append(output)
        return rnn.rnn_cell._normalize_sequence(length, outputs, layout, merge_outputs)[0], states


@pytest.mark.parametrize("activation", ["relu", mx.sym.tanh])
def test_cells_of_one_s_own(activation):
    same = rnn.RNNCell(5, activation, prefix="own_")
    values = []
    for cell in (same, _OwnCell(5, activation)):
        outputs, states = cell.unroll(3, mx.sym.Variable("data"), merge_outputs=True)
        assert states[0].name == "own_t2_out"
        ex = outputs.simple_bind(mx.cpu(), data=(2, 3, 4))
        for name in sorted(ex.arg_dict):
            ex.arg_dict[name][:] = np.random.RandomState(len(name)).uniform(-1, 1, ex.arg_dict[name].shape)
        values.append(ex.forward()[0].asnumpy())
    np.testing.assert_array_equal(*values)
    stacked = rnn.SequentialRNNCell()
    stacked.add(rnn.ResidualCell(_OwnCell(4, activation, "a_")))
    stacked.add(rnn.ZoneoutCell(_OwnCell(4, activation, "b_"), 0.1, 0.1))
    assert stacked.unroll(2, mx.sym.Variable("x"), merge_outputs=True)[0].infer_shape(x=(2, 2, 4))[1] == [(2, 2, 4)]


def test_states_of_the_caller_s():
    cell = rnn.LSTMCell(2)
    first = cell.begin_state(func=mx.sym.Variable)
    assert [s.name for s in first] == ["lstm_begin_state_0", "lstm_begin_state_1"]
    outputs, _ = cell.unroll(2, mx.sym.Variable("x"), begin_state=first, merge_outputs=True)
    shapes = dict(zip(outputs.list_arguments(), outputs.infer_shape(x=(3, 2, 4), lstm_begin_state_0=(3, 2))[0]))
    assert shapes["lstm_begin_state_1"] == (3, 2)


def test_zoneout_keeps_states_by_chance_while_training():
    cell = rnn.ZoneoutCell(rnn.RNNCell(50, prefix="z_"), zoneout_states=0.5)
    state = mx.sym.Variable("state")
    _, (after,) = cell(mx.sym.Variable("x"), [state])
    args, executor = _bound(after, x=(2, 3), state=(2, 50))
    mx.random.seed(3)
    kept = executor.forward(is_train=True)[0].asnumpy() == args["state"].asnumpy()
    assert 0.2 < kept.mean() < 0.8
    assert not (executor.forward(is_train=False)[0].asnumpy() == args["state"].asnumpy()).any()


@pytest.mark.parametrize("kind, states", [(rnn.ConvRNNCell, 1), (rnn.ConvLSTMCell, 2), (rnn.ConvGRUCell, 1)])
def test_convolved_cells(kind, states):
    cell = kind((1, 3, 8, 6), 4, i2h_stride=(2, 1))
    assert cell.state_shape == [(0, 4, 4, 6)] * states
    outputs, last = cell.unroll(2, [mx.sym.Variable("x0"), mx.sym.Variable("x1")])
    _, shapes, _ = mx.sym.Group(outputs + last).infer_shape(x0=(2, 3, 8, 6), x1=(2, 3, 8, 6))
    assert shapes == [(2, 4, 4, 6)] * (2 + states)
    with pytest.raises(mx.MXNetError, match="odd sizes"):
        kind((1, 3, 8, 6), 4, h2h_kernel=(2, 2))


def test_checkpoints(tmp_path):
    prefix = str(tmp_path / "net")
    fused = rnn.FusedRNNCell(3, num_layers=2, prefix="f_")
    outputs, _ = fused.unroll(2, mx.sym.Variable("x"), merge_outputs=True)
    args, _ = _bound(outputs, x=(1, 2, 4))
    del args["x"]
    rnn.do_rnn_checkpoint(fused, prefix, period=2)(0, outputs, args, {})
    assert not list(tmp_path.iterdir())
    rnn.do_rnn_checkpoint(fused, prefix, period=2)(1, outputs, args, {})
    assert "arg:f_l1_h2h_c_weight" in mx.nd.load(prefix + "-0002.params")
    symbol, found, states = rnn.load_rnn_checkpoint([fused], prefix, 2)
    assert symbol.list_arguments() == outputs.list_arguments() and not states
    np.testing.assert_array_equal(found["f_parameters"].asnumpy(), args["f_parameters"].asnumpy())
    with pytest.raises(mx.MXNetError, match=r"net-0002.params' is not of these cells: 'lstm_i2h_i_weight'"):
        rnn.load_rnn_checkpoint(rnn.LSTMCell(3), prefix, 2)


def test_shared_parameters():
    params = rnn.RNNParams("both_")
    one, other = rnn.RNNCell(2, prefix="a_", params=params), rnn.RNNCell(2, prefix="b_", params=params)
    x = [mx.sym.Variable("x")]
    both = mx.sym.Group(one.unroll(1, x)[0] + other.unroll(1, x)[0])
    assert both.list_arguments() == ["x", "both_i2h_weight", "both_i2h_bias", "both_h2h_weight", "both_h2h_bias"]
    with pytest.raises(mx.MXNetError, match="not to both"):
        rnn.SequentialRNNCell(params=params).add(one)


def test_misuse_is_told():
    with pytest.raises(mx.MXNetError, match="unfuse"):
        rnn.ZoneoutCell(rnn.FusedRNNCell(2))
    with pytest.raises(NotImplementedError, match="unroll it"):
        rnn.FusedRNNCell(2)(mx.sym.Variable("x"), [])
    base = rnn.RNNCell(2)
    rnn.ResidualCell(base)
    with pytest.raises(mx.MXNetError, match="modifies this one"):
        base.begin_state()
    with pytest.raises(mx.MXNetError, match="2 inputs for length=3"):
        rnn.RNNCell(2).unroll(3, [mx.sym.Variable("a"), mx.sym.Variable("b")])
    with pytest.raises(mx.MXNetError, match="no T"):
        rnn.RNNCell(2).unroll(3, mx.sym.Variable("a"), layout="NC")
    with pytest.raises(mx.MXNetError, match="expected a Symbol"):
        rnn.RNNCell(2).unroll(2, [1, 2])


def test_encode_sentences():
    assert rnn.encode_sentences([["a", "b"], ["b"]], invalid_label=0)[1] == {"\n": 0, "a": 1, "b": 2}
    assert rnn.encode_sentences([["a", "q"]], {"a": 1}, unknown_token="?", start_label=5)[0] == [[1, 5]]
    with pytest.raises(mx.MXNetError, match="'q' is not in vocab"):
        rnn.encode_sentences([["q"]], {"a": 1})


@pytest.mark.parametrize("layout", ["NT", "TN"])
def test_bucket_sentence_iter(layout, caplog):
    random.seed(0)
    sentences = [list(range(1, n + 1)) for n in (2, 3, 3, 5, 5, 5, 9)]
    batches = rnn.BucketSentenceIter(sentences, 2, buckets=[5, 3], invalid_label=0, layout=layout)
    assert "1 sentences are longer" in caplog.text and batches.default_bucket_key == 5
    assert batches.provide_data[0].shape == ((2, 5) if layout == "NT" else (5, 2))
    assert batches.provide_data[0].dtype is np.float32
    seen = 0
    for batch in batches:
        data, label = (a[0].asnumpy() for a in (batch.data, batch.label))
        data, label = (data, label) if layout == "NT" else (data.T, label.T)
        assert data.shape == (2, batch.bucket_key) and batch.provide_data[0].shape == batch.data[0].shape
        np.testing.assert_array_equal(label, np.pad(data[:, 1:], ((0, 0), (0, 1))))
        seen += 1
    assert seen == 2
    batches.reset()
    assert len(list(batches)) == 2
    with pytest.raises(mx.MXNetError, match="give buckets"):
        rnn.BucketSentenceIter([[1], [1, 2]], 2)
