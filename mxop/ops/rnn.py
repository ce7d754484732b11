"""Recurrent layers: the operator ``RNN`` (LSTM, GRU, plain), a composition over loops.

In each layer one product serves all steps' inputs; a loop over the steps does the recurrent product and the cell.
"""

from typing import Annotated, Literal

from ..opdef import F, Of, Range, composite, elementwise
from ..support.errors import OpValueError
from ._shared import float_types, size_of

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


# ---- the vector of parameters ----------------------------------------------------------------------------------------
def _weights(n_inputs, *, num_layers, state_size, mode, bidirectional, projection_size, **params):
    """Return the shapes of the weights of each cell, which is one layer in one direction; first the one for its input."""
    gates, out, ways = _GATES[mode] * state_size, projection_size or state_size, 1 + bidirectional
    own = [(gates, out), *[(out, state_size)] * (projection_size is not None)]
    return [[(gates, n_inputs if k < ways else ways * out), *own] for k in range(num_layers * ways)]


def _sizes(cells):
    """Return how many weights each cell has, and how many biases all have: two vectors each, for the gates."""
    return [sum(map(size_of, shapes)) for shapes in cells], sum(2 * shapes[0][0] for shapes in cells)


def _cut(F, vector, sizes):
    """Cut parts of these sizes off the end of a vector; what is before them comes first."""
    return F._split_v2(vector, indices=(0, *(-sum(sizes[k:]) for k in range(len(sizes)))), axis=0)


def _rows(F, data, n):
    """Return the `n` slices along the first axis."""
    return F.SliceChannel(data, num_outputs=n, axis=0, squeeze_axis=True) if n > 1 else [F.reshape(data, shape=(-3, -2))]


def _cells(F, parameters, cells, ways):
    """Return the weights and the biases of each cell; the size of the input is not asked for."""
    weights, biases = _sizes(cells)
    first, *later, biases = _cut(F, parameters, [*weights[ways:], biases])
    first = _rows(F, F.reshape(first, shape=(ways, -1)), ways)
    biases = _rows(F, F.reshape(biases, shape=(2 * len(cells), -1)), 2 * len(cells))
    for vector, (of_input, *own), *two in zip([*first, *later], cells, biases[::2], biases[1::2], strict=True):
        parts = _cut(F, vector, list(map(size_of, own)))
        yield [F.reshape(w, shape=s) for w, s in zip(parts, [(of_input[0], -1), *own], strict=True)], two


# ---- cells -----------------------------------------------------------------------------------------------------------
@elementwise(name="_clip_state")
def clip_state(data, *, low: float, high: float, stop_nan: bool):
    """Limit values to an interval; NaN become `low`, or stay."""
    limited = F.minimum(F.maximum(data, low), high)
    return F.where(F.isnan(data), low, limited) if stop_nan else limited


@elementwise(name="_where_inside", broadcast=True)
def where_inside(inside, data, other):
    """Return the data where the step is inside the sequence, and the other elsewhere."""
    return F.where(inside, data, other)


def _next_states(F, mode, x, states, weights, bias, clip):
    """Return the states after a step; `x` is what the input adds to the gates."""
    h, u = states[0], F.dot(states[0], weights[1], transpose_b=True)
    if mode == "gru":
        of_x = F.SliceChannel(x, num_outputs=3, axis=1)
        of_h = F.SliceChannel(F.broadcast_add(u, bias), num_outputs=3, axis=1)
        reset, update = (F.sigmoid(of_x[k] + of_h[k]) for k in range(2))
        new = F.tanh(of_x[2] + reset * of_h[2])
        return [(1 - update) * new + update * h]
    if mode != "lstm":
        return [F.Activation(x + u, act_type=mode[4:])]
    i, f, g, o = F.SliceChannel(x + u, num_outputs=4, axis=1)
    c = F.sigmoid(f) * states[1] + F.sigmoid(i) * F.tanh(g)
    c = F._clip_state(c, **clip) if clip else c
    h = F.sigmoid(o) * F.tanh(c)
    return [h if len(weights) == 2 else F.dot(h, weights[2], transpose_b=True), c]


def _run(F, data, inside, states, weights, biases, *, gates, mode, clip):
    """Run a cell over all steps; return the outputs and the last states."""
    bias = biases[0] if mode == "gru" else biases[0] + biases[1]  # a GRU's second one is for the recurrent part alone
    x = F.FullyConnected(data, weights[0], bias, num_hidden=gates, flatten=False)

    def step(given, old):
        new = _next_states(F, mode, given[0], old, weights, biases[1], clip)
        here = given[1] if inside is not None else None
        return _within(F, here, new[0]), [_within(F, here, *pair) for pair in zip(new, old, strict=True)]

    return F.contrib.foreach(step, [x] if inside is None else [x, inside], states)


def _inside(F, data, lengths):
    """Return which steps are inside their sequence, as 1 or 0 of shape ``(steps, batch, 1)``; None: all are."""
    if lengths is None:
        return None
    ones = F.ones_like(F.slice_axis(data, axis=2, begin=0, end=1))
    return F.SequenceMask(ones, F.Cast(lengths, dtype="int32"), use_sequence_length=True)


def _within(F, inside, data, other=None):
    """Return the data where they are inside, and elsewhere the other, zeros by default."""
    return data if inside is None else F._where_inside(inside, data, F.zeros_like(data) if other is None else other)


# ---- the operator ----------------------------------------------------------------------------------------------------
def _inputs(*, mode, use_sequence_length, **params):
    names = ["data", "parameters", "state", *["state_cell"] * (mode == "lstm")]
    return [*names, *["sequence_length"] * use_sequence_length]


@composite(
    aliases=("_npx_rnn",),
    random=True,
    active_inputs=_inputs,
    num_outputs=lambda *, mode, state_outputs, **params: 1 + (1 + (mode == "lstm")) * state_outputs,
    output_names=("output", "state_output", "statecell_output"),
)
def RNN(F, data, parameters, state, state_cell=None, sequence_length=None, *, state_size: Annotated[int, Range(1)],
        num_layers: Annotated[int, Range(1)], bidirectional: bool = False, mode: Literal["gru", "lstm", "rnn_relu", "rnn_tanh"],
        p: Annotated[float, Range(0, 1)] = 0.0, state_outputs: bool = False, projection_size: int | None = None,
        lstm_state_clip_min: float | None = None, lstm_state_clip_max: float | None = None, lstm_state_clip_nan: bool = False,
        use_sequence_length: bool = False, is_train):  # fmt: skip
    """Recurrent layers over sequences: plain, LSTM or GRU, of several layers, in one direction or both.

    With ``x`` the input and ``h`` the state of a step, each gate is ``W x + b + R h + d``.  Plain: ``h`` becomes ``relu`` or
    ``tanh`` of the one gate.  LSTM: ``c = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and ``h = sigmoid(o) * tanh(c)``.  GRU:
    ``n = tanh(W x + b + sigmoid(r) * (R h + d))`` and ``h = (1 - sigmoid(z)) * n + sigmoid(z) * h``.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(steps, batch, inputs)``.
    parameters : NDArray or Symbol
        One vector: ``W``, ``R`` and the projection of each layer and direction, then ``b`` and ``d`` of each. Gates are in
        the order ``i, f, g, o`` or ``r, z, n``.
    state : NDArray or Symbol
        First states, ``(layers * directions, batch, size)``, where size is `projection_size` if that is given.
    state_cell : NDArray or Symbol
        Only of an LSTM: first ``c``, ``(layers * directions, batch, state_size)``.
    sequence_length : NDArray or Symbol
        Only with `use_sequence_length`: the number of steps of each sequence, ``(batch,)``.  Outputs beyond are 0, the
        last state is that after the last valid step, and the backward direction begins at that step.
    bidirectional : bool
        Run each layer in both directions, and join their outputs.
    p : float
        Dropout between layers while training.
    state_outputs : bool
        Also return the last states.
    projection_size : int, optional
        Only of an LSTM: multiply ``h`` by a matrix, to vectors of this size.
    lstm_state_clip_min, lstm_state_clip_max : float, optional
        Limits of ``c`` in each step; both or none.
    lstm_state_clip_nan : bool
        With limits, replace NaN in ``c`` by the lower one.

    >>> x, h = mx.nd.ones((2, 1, 1)), mx.nd.zeros((1, 1, 1))
    >>> params = mx.nd.array([1, 10, 0.5, 0])  # W, R, b, d
    >>> mx.nd.RNN(x, params, h, state_size=1, num_layers=1, mode="rnn_relu").asnumpy().ravel().tolist()
    [1.5, 16.5]
    """
    shapes = _weights(0, num_layers=num_layers, state_size=state_size, mode=mode, bidirectional=bidirectional,
                      projection_size=projection_size)  # fmt: skip
    ways, gates = 1 + bidirectional, shapes[0][0][0]
    clip = {"low": lstm_state_clip_min, "high": lstm_state_clip_max, "stop_nan": lstm_state_clip_nan}
    clip = None if lstm_state_clip_min is None else clip
    states = zip(*(_rows(F, s, len(shapes)) for s in (state, state_cell) if s is not None), strict=True)
    cells = zip(states, _cells(F, parameters, shapes, ways), strict=True)
    inside, last = _inside(F, data, sequence_length), []
    data = _within(F, inside, data)  # whatever lies beyond, gradients are not NaN
    for layer in range(num_layers):
        if layer and p > 0:
            data = F.Dropout(data, p=p) if p < 1 or not is_train else F.zeros_like(data)  # where Dropout has NaN
        outs = []
        for backward, (old, cell) in zip(range(ways), cells, strict=False):
            x, within = (F.reverse(a, axis=0) if backward and a is not None else a for a in (data, inside))
            out, new = _run(F, x, within, list(old), *cell, gates=gates, mode=mode, clip=clip)
            outs.append(F.reverse(out, axis=0) if backward else out)
            last.append(new)
        data = F.concat(*outs, dim=2) if len(outs) > 1 else outs[0]
    return [data, *(F.stack(*s, axis=0) for s in zip(*last, strict=True))] if state_outputs else [data]


def _steps(n):
    if n == 0:
        raise OpValueError("operator RNN: data have no steps; expected at least one")
    return n


@RNN.dims
def _(*, mode, state_size, projection_size, lstm_state_clip_min, lstm_state_clip_max, **params):
    if projection_size is not None and (mode != "lstm" or projection_size < 1):
        raise OpValueError(f"operator RNN: projection_size={projection_size} with mode={mode!r}; expected a size from 1 "
                           f"on, and mode='lstm'")  # fmt: skip
    if (lstm_state_clip_min is None) != (lstm_state_clip_max is None):
        raise OpValueError(f"operator RNN: lstm_state_clip_min={lstm_state_clip_min}, lstm_state_clip_max="
                           f"{lstm_state_clip_max}; expected both or none")  # fmt: skip
    params |= {"mode": mode, "state_size": state_size, "projection_size": projection_size}
    fixed, one = (sum(weights) + biases for weights, biases in map(_sizes, (_weights(n, **params) for n in range(2))))
    each, cells = one - fixed, _weights(0, **params)
    out = cells[0][1][1]

    def inputs_of(n):
        if n < fixed or (n - fixed) % each:
            raise OpValueError(f"operator RNN: parameters has {n} elements; expected {fixed} and {each} more for each input")
        return (n - fixed) // each

    state, cell = ((len(cells), "batch", n) for n in (out, state_size))
    return {
        "data": ("steps", "batch", "inputs"),
        "parameters": (Of("inputs", lambda n: fixed + each * n, inputs_of),),
        "sequence_length": ("batch",),
        "output": (Of("steps", _steps, _steps), "batch", out * (1 + params["bidirectional"])),
        **{"state": state, "state_output": state, "state_cell": cell, "statecell_output": cell},
    }


float_types(RNN, sequence_length=None)
