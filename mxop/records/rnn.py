"""Records of recurrent layers (``mxop/ops/rnn.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _step(mode, x, h, c, cell, low, high, stop_nan):
    """Return the states after one step of one sequence."""
    w, r, project, b, d = cell
    gates = w @ x + b
    if mode == "gru":
        (xr, xz, xn), (hr, hz, hn) = np.split(gates, 3), np.split(r @ h + d, 3)
        z = _sigmoid(xz + hz)
        return (1 - z) * np.tanh(xn + _sigmoid(xr + hr) * hn) + z * h, c
    gates = gates + r @ h + d
    if mode != "lstm":
        return np.tanh(gates) if mode == "rnn_tanh" else np.where(gates <= 0, 0, gates), c
    i, f, g, o = np.split(gates, 4)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    if low is not None:
        c = np.clip(np.where(np.isnan(c), low, c) if stop_nan else c, low, high)
    h = _sigmoid(o) * np.tanh(c)
    return h if project is None else project @ h, c


def _cells(vector, n_inputs, cells, ways, gates, size, out, projected):
    """Cut the vector of parameters: all weights, then all biases."""
    at, found = 0, []

    def cut(*shape):
        nonlocal at
        at += int(np.prod(shape))
        return vector[at - int(np.prod(shape)) : at].reshape(shape)

    for k in range(cells):
        width = n_inputs if k < ways else ways * out
        found.append([cut(gates * size, width), cut(gates * size, out), cut(out, size) if projected else None])
    return [[*weights, cut(gates * size), cut(gates * size)] for weights in found]


def rnn(data, parameters, state, *more, state_size, num_layers, mode, bidirectional=False, p=0.0, state_outputs=False,
        projection_size=None, lstm_state_clip_min=None, lstm_state_clip_max=None, lstm_state_clip_nan=False,
        use_sequence_length=False, is_train=False):  # fmt: skip
    """Run each sequence, layer and direction by itself, step by step."""
    steps, batch, n_inputs = data.shape
    ways, out = 1 + bidirectional, projection_size or state_size
    lengths = np.asarray(more[-1]).astype(int) if use_sequence_length else [steps] * batch
    cells = _cells(parameters, n_inputs, num_layers * ways, ways, _GATES[mode], state_size, out, projection_size is not None)
    limits = lstm_state_clip_min, lstm_state_clip_max, lstm_state_clip_nan
    states = np.array(state)
    carries = np.array(more[0]) if mode == "lstm" else np.zeros((len(cells), batch, state_size))
    result = np.zeros((steps, batch, ways * out), parameters.dtype)
    for n, length in enumerate(lengths):
        x = data[:length, n]
        for layer in range(num_layers):
            y = np.zeros((length, ways * out), parameters.dtype)
            for way in range(ways):
                k = layer * ways + way
                for t in range(length)[:: -1 if way else 1]:
                    states[k, n], carries[k, n] = _step(mode, x[t], states[k, n], carries[k, n], cells[k], *limits)
                    y[t, way * out : (way + 1) * out] = states[k, n]
            x = y
        result[:length, n] = x
    if not state_outputs:
        return result
    return (result, states, carries) if mode == "lstm" else (result, states)


def _seed(n):
    from .. import random

    random.seed(n)


def _case(mode, data, size, layers=1, *, bidirectional=False, projection_size=None, **params):
    """Return the parameters of a case, and its shapes."""
    ways, out = 1 + bidirectional, projection_size or size
    columns = data[2] + (layers - 1) * ways * out + layers * (out + 2)
    count = ways * (_GATES[mode] * size * columns + layers * (out * size if projection_size else 0))
    params |= {"mode": mode, "state_size": size, "num_layers": layers, "bidirectional": bidirectional}
    states = [(layers * ways, data[1], n) for n in ([out, size] if mode == "lstm" else [out])]
    lengths = [(data[1],)] if params.get("use_sequence_length") else []
    return params | {"projection_size": projection_size}, (data, (count,), *states, *lengths)


_CASES = [
    _case("lstm", (2, 2, 1), 2, state_outputs=True), _case("rnn_tanh", (2, 1, 2), 2, layers=2),
    _case("rnn_relu", (2, 2, 1), 1), _case("gru", (2, 1, 2), 1, bidirectional=True, state_outputs=True),
    _case("gru", (3, 2, 1), 2), _case("lstm", (2, 1, 1), 2, layers=2, projection_size=1, state_outputs=True),
    _case("lstm", (2, 1, 1), 1, lstm_state_clip_min=-0.1, lstm_state_clip_max=0.4),
    _case("lstm", (3, 2, 1), 1, bidirectional=True, use_sequence_length=True, state_outputs=True),
]  # fmt: skip

RECORDS: dict[str, Record] = {
    "RNN": Record(
        rnn, params=[params for params, _ in _CASES], shapes=[shapes for _, shapes in _CASES], dtypes="f",
        domain=((-1.0, 1.0),) * 4 + ((1, 3),), whole=(4,), grad_inputs=(0, 1, 2, 3),
        seed=_seed,
        refuses=[Refusal("state has shape", shapes=((2, 2, 1), (40,), (1, 3, 2), (1, 2, 2))),
                 Refusal("parameters has shape", shapes=((2, 2, 1), (41,), (1, 2, 2), (1, 2, 2))),
                 Refusal("projection_size=2 with mode='gru'", params={"mode": "gru", "state_size": 2, "num_layers": 1,
                         "projection_size": 2}, shapes=((2, 2, 1), (40,), (1, 2, 2))),
                 Refusal("expected both or none", params={"mode": "lstm", "state_size": 2, "num_layers": 1,
                         "lstm_state_clip_min": 0.5})],
    ),
    "_clip_state": Record(
        lambda data, low, high, stop_nan: np.clip(np.where(np.isnan(data), low, data) if stop_nan else data, low, high),
        params=[{"low": -0.5, "high": 1.0, "stop_nan": stop} for stop in (False, True)], avoid=(-0.5, 1.0), dtypes="f",
    ),
    "_where_inside": Record(
        lambda inside, data, other: np.where(inside != 0, data, other), domain=((0, 1), (-2.0, 2.0), (-2.0, 2.0)),
        shapes=[((2, 1), (2, 3), (2, 3)), ((3,), (3,), (3,))], whole=(0,), grad_inputs=(1, 2), dtypes="f",
    ),
}  # fmt: skip
