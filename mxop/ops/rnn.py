"""Recurrent layers: the operator ``RNN``, a composition over loops.

In each layer one product serves all steps' inputs; a loop over the steps does the recurrent product and the cell.
Examples assume ``import mxop as mx``.  May import :mod:`mxop.opdef` and :mod:`mxop.dtypes` only.
"""

from typing import Annotated, Literal

from .. import dtypes
from ..errors import OpTypeError, OpValueError
from ..opdef import F, Range, composite, elementwise, infer
from ._shared import device_of, divided, size_of

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


# ---- the vector of parameters ----------------------------------------------------------------------------------------
def _sizes(state_size, bidirectional, mode, projection_size=None, **params):
    """Return the sizes of all gates together and of the output, and the number of directions."""
    return _GATES[mode] * state_size, projection_size or state_size, 1 + bidirectional


def _layout(n_inputs, *, num_layers, state_size, **params):
    """Return the shapes in the vector: for each layer and direction its weights, and after all of these its biases."""
    gates, out, ways = _sizes(state_size, **params)
    weights = []
    for layer in range(num_layers):
        of_one = [(gates, ways * out if layer else n_inputs), (gates, out)]
        weights += (of_one + [(out, state_size)] * (params["projection_size"] is not None)) * ways
    return weights + [(gates,)] * (2 * num_layers * ways)


def _cut(F, vector, shapes):
    """Return the parts of a vector that have these shapes, as vectors; the size of the first one follows."""
    sizes = list(map(size_of, shapes))
    return list(F._split_v2(vector, indices=(0, *(-sum(sizes[k:]) for k in range(1, len(sizes)))), axis=0))


def _cells(F, parameters, **params):
    """Return, for each layer and direction, its weights and its biases; the size of the input is not asked for."""
    shapes, ways = _layout(-1, **params), 1 + params["bidirectional"]
    n_cells = params["num_layers"] * ways
    n = len(shapes) // n_cells - 2  # weights of a cell
    first, *rest = _cut(F, parameters, [(), *shapes[n * ways :]])
    halves = F.SliceChannel(first, num_outputs=2, axis=0) if ways == 2 else [first]
    parts = [*(w for half in halves for w in _cut(F, half, shapes[:n])), *rest]
    weights, biases = parts[: n * n_cells], parts[n * n_cells :]
    weights = [F.reshape(w, shape=s) for w, s in zip(weights, shapes, strict=False)]
    return [(weights[n * k : n * k + n], biases[2 * k : 2 * k + 2]) for k in range(n_cells)]


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


def _next_states(F, x, states, weights, bias, *, mode, low, high, stop_nan, **params):
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
    if low is not None:
        c = F._clip_state(c, low=low, high=high, stop_nan=stop_nan)
    h = F.sigmoid(o) * F.tanh(c)
    return [h if len(weights) == 2 else F.dot(h, weights[2], transpose_b=True), c]


def _direction(F, data, inside, states, weights, biases, **params):
    """Run one layer in one direction; return the outputs of all steps and the last states."""
    both = params["mode"] != "gru"  # a GRU's reset gate is for the recurrent part and its bias alone
    bias = biases[0] + biases[1] if both else biases[0]
    x = F.FullyConnected(data, weights[0], bias, num_hidden=_sizes(**params)[0], flatten=False)

    def step(given, old):
        if inside is None:
            new = _next_states(F, given, old, weights, biases[1], **params)
            return new[0], new
        new = _next_states(F, given[0], old, weights, biases[1], **params)
        out = F._where_inside(given[1], new[0], F.zeros_like(new[0]))
        return out, [F._where_inside(given[1], a, b) for a, b in zip(new, old, strict=True)]

    return F.contrib.foreach(step, x if inside is None else [x, inside], states)


def _layer(F, data, inside, states, cells, **params):
    """Run one layer in its directions; return the outputs of all steps and the last states of each direction."""
    outs, lasts = [], []
    for k, (mine, cell) in enumerate(zip(states, cells, strict=True)):
        x, within = (a if k == 0 or a is None else F.reverse(a, axis=0) for a in (data, inside))
        out, last = _direction(
            F, x, within, mine, *cell, **params
        )  # backward, what lies beyond the sequence comes first
        outs.append(F.reverse(out, axis=0) if k else out)
        lasts.append(last)
    return F.concat(*outs, dim=2) if len(outs) > 1 else outs[0], lasts


def _inside(F, data, lengths):
    """Return which steps are inside their sequence, as 1 or 0 of shape ``(steps, batch, 1)``."""
    steps = F.reshape(F.arange(start=0, stop=data.shape[0], dtype="int32", ctx=device_of(data)), shape=(-1, 1, 1))
    lengths = F.reshape(F.Cast(lengths, dtype="int32"), shape=(1, -1, 1))
    return F.Cast(F.broadcast_lesser(steps, lengths), dtype=data.dtype)


# ---- the operator ----------------------------------------------------------------------------------------------------
def _inputs(*, mode, use_sequence_length, **params):
    names = ["data", "parameters", "state", *["state_cell"] * (mode == "lstm")]
    return [*names, *["sequence_length"] * use_sequence_length]


@composite(
    aliases=("_npx_rnn",),
    random=True,
    active_inputs=_inputs,
    num_outputs=lambda *, mode, state_outputs, **params: 1 + (1 + (mode == "lstm")) * state_outputs,
)
def RNN(
    F,
    data,
    parameters,
    state,
    state_cell=None,
    sequence_length=None,
    *,
    state_size: Annotated[int, Range(1)],
    num_layers: Annotated[int, Range(1)],
    bidirectional: bool = False,
    mode: Literal["gru", "lstm", "rnn_relu", "rnn_tanh"],
    p: Annotated[float, Range(0, 1)] = 0.0,
    state_outputs: bool = False,
    projection_size: int | None = None,
    lstm_state_clip_min: float | None = None,
    lstm_state_clip_max: float | None = None,
    lstm_state_clip_nan: bool = False,
    use_sequence_length: bool = False,
    is_train,
):
    """Recurrent layers over sequences: plain, LSTM or GRU, of several layers, in one direction or both.

    With ``x`` the input and ``h`` the state of a step, each gate is ``W x + b + R h + d``.  Plain: ``h`` becomes ``relu`` or
    ``tanh`` of the one gate.  LSTM: ``c = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and ``h = sigmoid(o) * tanh(c)``.  GRU:
    ``n = tanh(W x + b + sigmoid(r) * (R h + d))`` and ``h = (1 - sigmoid(z)) * n + sigmoid(z) * h``.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(steps, batch, inputs)``.
    parameters : NDArray or Symbol
        One vector: ``W``, ``R`` and the projection of each layer and direction, then ``b`` and ``d`` of each. Gates lie one
        after the other, ``i, f, g, o`` or ``r, z, n``.
    state : NDArray or Symbol
        First states, ``(layers * directions, batch, size)``, where size is `projection_size` if that is given.
    state_cell : NDArray or Symbol
        Only of an LSTM: first ``c``, ``(layers * directions, batch, state_size)``.
    sequence_length : NDArray or Symbol
        Only with `use_sequence_length`: the number of steps of each sequence, ``(batch,)``.  Outputs beyond are 0, the last
        state is that after the last step inside, and backward a sequence begins with its own last step.
    state_size, num_layers : int
    bidirectional : bool
        Run each layer in both directions, and join their outputs.
    mode : {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'}
    p : float
        Dropout between layers while training.
    state_outputs : bool
        Return the last states, too.
    projection_size : int, optional
        Only of an LSTM: multiply ``h`` by a matrix, to vectors of this size.
    lstm_state_clip_min, lstm_state_clip_max : float, optional
        Limits of ``c`` in each step; both or none.
    lstm_state_clip_nan : bool
        With limits, replace NaN in ``c`` by the lower one.
    use_sequence_length : bool

    >>> x, h = mx.nd.ones((2, 1, 1)), mx.nd.zeros((1, 1, 1))
    >>> params = mx.nd.array([1, 10, 0.5, 0])  # W, R, b, d
    >>> mx.nd.RNN(x, params, h, state_size=1, num_layers=1, mode="rnn_relu").asnumpy().ravel().tolist()
    [1.5, 16.5]
    """
    if use_sequence_length and mode != "lstm":  # inputs come in the order of those that there are
        state_cell, sequence_length = None, state_cell
    known = {"mode": mode, "state_size": state_size, "num_layers": num_layers, "bidirectional": bidirectional,
             "projection_size": projection_size, "low": lstm_state_clip_min, "high": lstm_state_clip_max,
             "stop_nan": lstm_state_clip_nan}  # fmt: skip
    ways, cells = 1 + bidirectional, _cells(F, parameters, **known)
    first = [list(F.SliceChannel(s, num_outputs=len(cells), axis=0, squeeze_axis=True)) if len(cells) > 1
             else [F.reshape(s, shape=(-3, 0))] for s in (state, state_cell) if s is not None]  # fmt: skip
    states, inside = [list(s) for s in zip(*first, strict=True)], None
    if use_sequence_length:
        inside = _inside(F, data, sequence_length)
        data = F._where_inside(inside, data, F.zeros_like(data))  # whatever lies beyond, gradients are not NaN
    last = []
    for k in range(0, len(cells), ways):
        if k and p > 0:
            data = F.Dropout(data, p=p) if p < 1 or not is_train else F.zeros_like(data)  # where Dropout has NaN
        data, found = _layer(F, data, inside, states[k : k + ways], cells[k : k + ways], **known)
        last += found
    return [data, *(F.stack(*s, axis=0) for s in zip(*last, strict=True))] if state_outputs else [data]


RNN.output_names = lambda attrs, n_inputs=None: ("output", "state_output", "statecell_output")[: RNN.num_outputs(attrs)]


def _check(*, mode, projection_size, lstm_state_clip_min, lstm_state_clip_max, **params):
    """Raise unless the parameters fit each other."""
    if projection_size is not None and (mode != "lstm" or projection_size < 1):
        raise OpValueError(f"operator RNN: projection_size={projection_size} with mode={mode!r}; expected a size from 1 "
                           f"on, and mode='lstm'")  # fmt: skip
    if (lstm_state_clip_min is None) != (lstm_state_clip_max is None):
        raise OpValueError(f"operator RNN: lstm_state_clip_min={lstm_state_clip_min}, lstm_state_clip_max="
                           f"{lstm_state_clip_max}; expected both or none")  # fmt: skip


def _fitting(steps, batch, n_inputs, params):
    """Return the shapes of all inputs and outputs, as far as they follow."""
    _, size, ways = _sizes(**params)
    state, cell = ((params["num_layers"] * ways, batch, n) for n in (size, params["state_size"]))
    return {
        "data": (steps, batch, n_inputs),
        "parameters": (None if n_inputs is None else sum(map(size_of, _layout(n_inputs, **params))),),
        "sequence_length": (batch,),
        "output": (steps, batch, ways * size),
        **{"state": state, "state_output": state, "state_cell": cell, "statecell_output": cell},
    }


def _inputs_of(n_parameters, params):
    """Return the size of the input that the number of parameters gives; None when that is not known."""
    gates, _, ways = _sizes(**params)
    rest = sum(map(size_of, _layout(0, **params)))
    if n_parameters is None:
        return None
    found = divided(n_parameters - rest, gates * ways)
    if found is None or found < 0:
        raise OpValueError(f"operator RNN: parameters has {n_parameters} elements; expected {rest} and {gates * ways} more for "
                           f"each input")  # fmt: skip
    return found


@RNN.infer
def _(ins, outs, **params):
    _check(**params)
    n, known = len(ins), (None, None, None)
    shapes = dict(zip([*_inputs(**params), *RNN.output_names(params)], [*ins, *outs], strict=True))
    for _ in range(2):  # the second round completes all by what the first one found
        fits = _fitting(*known, params)
        for name, shape in shapes.items():
            shapes[name] = infer.same_shape("RNN", (name, "the shape that fits"), [shape, fits[name]])[0]
        data, output = shapes["data"], shapes["output"]
        batches = [s[0 if name == "sequence_length" else 1] for name, s in shapes.items() if name != "parameters"]
        n_inputs = _inputs_of(shapes["parameters"][0], params) if data[2] is None else data[2]
        known = output[0] if data[0] is None else data[0], next((d for d in batches if d is not None), None), n_inputs
    if known[0] == 0:
        raise OpValueError("operator RNN: data have no steps; expected at least one")
    done = list(shapes.values())
    return done[:n], done[n:]


def _infer_type(attrs, ins, outs):
    """Let all have one floating-point type, but lengths, which may have another."""
    names = [*RNN.input_names(attrs), *RNN.output_names(attrs)]
    n = len(ins) - attrs["use_sequence_length"]
    done = infer.same_type("RNN", names[:n] + names[len(ins) :], [*ins[:n], *outs])
    if done[0] not in dtypes.FLOATS and done[0] != dtypes.UNKNOWN:
        raise OpTypeError(f"operator RNN: needs floating-point data, got {dtypes.NAMES[done[0]]}")
    return done[:n] + [done[0] if t == dtypes.UNKNOWN else t for t in ins[n:]], done[n:]


RNN.infer_type = _infer_type
