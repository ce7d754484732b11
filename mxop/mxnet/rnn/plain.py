"""Cells of dense layers: plain, LSTM and GRU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import symbol as sym
from ...symbol import Symbol
from ..initializer import GATES, LSTMBias
from .base import BaseRNNCell, RNNParams


class _Dense(BaseRNNCell):
    """A cell whose gates are sums of a dense layer of the input and one of the first state."""

    _states = 1

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None, **i2h_bias: Any):
        super().__init__(prefix, params)
        self._num_hidden = num_hidden
        get = self.params.get
        self._iW, self._iB = get("i2h_weight"), get("i2h_bias", **i2h_bias)
        self._hW, self._hB = get("h2h_weight"), get("h2h_bias")

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"} for _ in range(self._states)]

    def _layer(self, group: str, inputs: Symbol, name: str) -> Symbol:
        units = self._num_hidden * self._num_gates
        return sym.FullyConnected(inputs, **self._weights(group), num_hidden=units, name=f"{name}{group}")

    def _sums(self, inputs: Symbol, state: Symbol, name: str) -> Symbol:
        return self._layer("i2h", inputs, name) + self._layer("h2h", state, name)


class RNNCell(_Dense):
    """A plain recurrent cell.

    Parameters
    ----------
    num_hidden : int
    activation : str or callable
        Of ``Activation``, or a function of a symbol with the keyword ``name``.
    prefix : str
    params : RNNParams, optional

    Examples
    --------
    >>> outputs, states = mx.rnn.RNNCell(5).unroll(3, mx.sym.Variable("x"), merge_outputs=True)
    >>> outputs.infer_shape(x=(2, 3, 4))[1]
    [(2, 3, 5)]
    """

    _gate_names = GATES["rnn_tanh"]

    def __init__(self, num_hidden: int, activation: Any = "tanh", prefix: str = "rnn_", params: RNNParams | None = None):
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._next()
        output = self._get_activation(self._sums(inputs, states[0], name), self._activation, name=f"{name}out")
        return output, [output]


def lstm(sums: Symbol, cell: Symbol, name: str, activated: Any) -> tuple[Symbol, list[Symbol]]:
    """Return output and states of an LSTM from the sums of its four gates; `activated` is its tanh."""
    i, f, c, o = sym.SliceChannel(sums, num_outputs=4, name=f"{name}slice")
    i = sym.Activation(i, act_type="sigmoid", name=f"{name}i")
    f = sym.Activation(f, act_type="sigmoid", name=f"{name}f")
    c = activated(c, name=f"{name}c")
    o = sym.Activation(o, act_type="sigmoid", name=f"{name}o")
    cell = sym.elemwise_add(f * cell, i * c, name=f"{name}state")
    output = sym.elemwise_mul(o, activated(cell), name=f"{name}out")
    return output, [output, cell]


def gru(i2h: Symbol, h2h: Symbol, state: Symbol, name: str, activated: Any) -> tuple[Symbol, list[Symbol]]:
    """Return output and state of a GRU from the sums of its three gates; `activated` is its tanh."""
    i_reset, i_update, i_new = sym.SliceChannel(i2h, num_outputs=3, name=f"{name}_i2h_slice")
    h_reset, h_update, h_new = sym.SliceChannel(h2h, num_outputs=3, name=f"{name}_h2h_slice")
    reset = sym.Activation(i_reset + h_reset, act_type="sigmoid", name=f"{name}_r_act")
    update = sym.Activation(i_update + h_update, act_type="sigmoid", name=f"{name}_z_act")
    new = activated(i_new + reset * h_new, name=f"{name}_h_act")
    output = sym.elemwise_add((1.0 - update) * new, update * state, name=f"{name}out")
    return output, [output]


def tanh(inputs: Symbol, **name: str) -> Symbol:
    """Return the activation of LSTM and GRU."""
    return sym.Activation(inputs, act_type="tanh", **name)


class LSTMCell(_Dense):
    """A cell of long short-term memory; its states are the output and the memory.

    Parameters
    ----------
    num_hidden : int
    prefix : str
    params : RNNParams, optional
    forget_bias : float
        With which the biases of the forget gates begin.
    """

    _gate_names = GATES["lstm"]
    _states = 2

    def __init__(self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None, forget_bias: float = 1.0):
        super().__init__(num_hidden, prefix, params, init=LSTMBias(forget_bias=forget_bias))

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._next()
        return lstm(self._sums(inputs, states[0], name), states[1], name, tanh)


class GRUCell(_Dense):
    """A gated recurrent unit, whose reset gate acts after the product, as cuDNN's does.

    Parameters
    ----------
    num_hidden : int
    prefix : str
    params : RNNParams, optional
    """

    _gate_names = GATES["gru"]

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None):
        super().__init__(num_hidden, prefix, params)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._next()
        i2h, h2h = self._layer("i2h", inputs, f"{name}_"), self._layer("h2h", states[0], f"{name}_")
        return gru(i2h, h2h, states[0], name, tanh)
