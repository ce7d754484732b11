"""Log-likelihood of marked Hawkes processes (self-exciting point processes) with exponential decay.

A loop over the points; its gradient, of every order, follows.
"""

from ..opdef import F, composite, elementwise
from ..support import dtypes
from ._shared import float_types


@elementwise(name="_hawkes_point", broadcast=True)
def hawkes_point(rate, alpha, beta, state, waited, chosen):
    """What a point of the chosen mark adds to the logarithm of the likelihood, and the mark's state after it.

    `waited` is the time since the last point of the mark, to which its compensator is counted.
    """
    decay = F.exp(-beta * waited)
    intensity = F.where(chosen, rate + alpha * beta * state * decay, 1)
    gain = F.log(intensity) - rate * waited - alpha * state * (1 - decay)
    return F.where(chosen, gain, 0), F.where(chosen, 1 + state * decay, state)


@elementwise(name="_hawkes_rest", broadcast=True)
def hawkes_rest(rate, alpha, beta, state, waited):
    """The compensator since the last point of a mark, and the state at the end."""
    decay = F.exp(-beta * waited)
    return rate * waited + alpha * state * (1 - decay), decay * state


@composite(name="_contrib_hawkesll", num_outputs=2, output_names=("output", "out_state"))
def hawkesll(F, lda, alpha, beta, state, lags, marks, valid_length, max_time):
    """Logarithm of the likelihood of marked Hawkes processes, and their states at the end.

    Parameters
    ----------
    lda : NDArray or Symbol
        ``(batch, marks)``: the rate of points of each mark without excitement.
    alpha, beta : NDArray or Symbol
        ``(marks,)``: mean number of points that a point excites, and decay rate of its excitement.
    state : NDArray or Symbol
        ``(batch, marks)``: the excitement at time 0.
    lags : NDArray or Symbol
        ``(batch, points)``: the time since the point before.
    marks : NDArray or Symbol
        ``(batch, points)``: numbers of marks, int32.
    valid_length : NDArray or Symbol
        ``(batch,)``: how many points there are.
    max_time : NDArray or Symbol
        ``(batch,)``: the time at which observation ended.

    >>> one, none = mx.nd.ones((1, 1)), mx.nd.zeros((1, 1))
    >>> marks, n, end = mx.nd.zeros((1, 1), dtype="int32"), mx.nd.array([1]), mx.nd.array([3])
    >>> found = mx.nd.contrib.hawkesll(2 * one, mx.nd.zeros((1,)), mx.nd.ones((1,)), none, one, marks, n, end)
    >>> [x.asnumpy().ravel().round(4).tolist() for x in found]  # log(2) - 2 * 3, and exp(-2)
    [[-5.3069000244140625], [0.13529999554157257]]
    """
    alpha, beta = (F.expand_dims(v, axis=0) for v in (alpha, beta))
    inside = F.one_hot(marks, depth=lda.shape[1], dtype=lda.dtype)
    inside = F.SequenceMask(F.transpose(inside, axes=(1, 0, 2)), valid_length, use_sequence_length=True)

    def step(given, old):
        lag, chosen = given
        state, last, time, total = old
        time = time + F.expand_dims(lag, axis=1)
        gain, state = F._hawkes_point(lda, alpha, beta, state, F.broadcast_sub(time, last), chosen)
        return total, [
            state,
            F._where_inside(chosen, F.broadcast_like(time, last), last),
            time,
            total + F.sum(gain, axis=1),
        ]

    start = [state, F.zeros_like(lda), F.expand_dims(F.zeros_like(max_time), axis=1), F.zeros_like(max_time)]
    _, (state, last, _, total) = F.contrib.foreach(step, [F.transpose(lags), inside], start)
    rest, state = F._hawkes_rest(lda, alpha, beta, state, F.broadcast_sub(F.expand_dims(max_time, axis=1), last))
    return [total - F.sum(rest, axis=1), state]


@hawkesll.dims
def _():
    of = {"lda": "nk", "alpha": "k", "beta": "k", "state": "nk", "lags": "nt", "marks": "nt", "valid_length": "n",
          "max_time": "n", "output": "n", "out_state": "nk"}  # fmt: skip
    sizes = {"n": "batch", "k": "marks", "t": "points"}
    return {name: [sizes[c] for c in letters] for name, letters in of.items()}


float_types(hawkesll, marks=dtypes.INT32)
