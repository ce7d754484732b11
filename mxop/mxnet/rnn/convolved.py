"""Cells of convolutions (Shi et al., 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ... import symbol as sym
from ...support.errors import OpValueError
from ...symbol import Symbol
from ..initializer import GATES
from .base import BaseRNNCell, RNNParams
from .plain import gru, lstm

_LEAKY = partial(sym.LeakyReLU, act_type="leaky", slope=0.2)


class BaseConvRNNCell(BaseRNNCell):
    """Base of cells whose sums are convolutions of the input and of the first state.

    Parameters
    ----------
    input_shape : tuple of int
        The shape of an input, its batch included.
    num_hidden : int
        The number of filters.
    h2h_kernel, h2h_dilate : tuple of int
        Of the convolution of states, odd, so that their size stays.
    i2h_kernel, i2h_stride, i2h_pad, i2h_dilate : tuple of int
        Of the convolution of inputs.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer : Initializer or str
    activation : str or callable
    prefix : str
    params : RNNParams, optional
    conv_layout : {'NCHW', 'NHWC'}
    """

    _states = 1
    _name = ""

    def __init__(self, input_shape: Sequence[int], num_hidden: int, h2h_kernel: Sequence[int] = (3, 3),
                 h2h_dilate: Sequence[int] = (1, 1), i2h_kernel: Sequence[int] = (3, 3), i2h_stride: Sequence[int] = (1, 1),
                 i2h_pad: Sequence[int] = (1, 1), i2h_dilate: Sequence[int] = (1, 1), i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
                 h2h_bias_initializer: Any = "zeros", activation: Any = _LEAKY, prefix: str | None = None,
                 params: RNNParams | None = None, conv_layout: str = "NCHW"):  # fmt: skip
        if any(k % 2 == 0 for k in h2h_kernel):
            raise OpValueError(f"{type(self).__name__}: h2h_kernel={tuple(h2h_kernel)}; expected odd sizes")
        super().__init__(self._name if prefix is None else prefix, params)
        self._num_hidden, self._activation = num_hidden, activation
        same = tuple(d * (k - 1) // 2 for k, d in zip(h2h_kernel, h2h_dilate))
        self._windows = {
            "i2h": {"kernel": i2h_kernel, "stride": i2h_stride, "pad": i2h_pad, "dilate": i2h_dilate},
            "h2h": {"kernel": h2h_kernel, "stride": (1, 1), "pad": same, "dilate": h2h_dilate},
        }
        for window in self._windows.values():
            window["layout"] = conv_layout
        get = self.params.get
        self._iW, self._iB = get("i2h_weight", init=i2h_weight_initializer), get("i2h_bias", init=i2h_bias_initializer)
        self._hW, self._hB = get("h2h_weight", init=h2h_weight_initializer), get("h2h_bias", init=h2h_bias_initializer)
        of_input = sym.Convolution(sym.Variable("data"), num_filter=num_hidden, **self._windows["i2h"])
        self._state_shape = (0, *of_input.infer_shape(data=tuple(input_shape))[1][0][1:])
        self._conv_layout = conv_layout

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [{"shape": self._state_shape, "__layout__": self._conv_layout} for _ in range(self._states)]

    def _layer(self, group: str, inputs: Symbol, name: str) -> Symbol:
        filters = self._num_hidden * self._num_gates
        return sym.Convolution(
            inputs, **self._weights(group), **self._windows[group], num_filter=filters, name=f"{name}{group}"
        )

    def _act(self, inputs: Symbol, name: str = "") -> Symbol:
        return self._get_activation(inputs, self._activation, name=name or None)


class ConvRNNCell(BaseConvRNNCell):
    """A plain recurrent cell of convolutions; see :class:`BaseConvRNNCell`."""

    _gate_names, _name = GATES["rnn_tanh"], "ConvRNN_"

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._next()
        output = self._act(self._layer("i2h", inputs, name) + self._layer("h2h", states[0], name), f"{name}out")
        return output, [output]


class ConvLSTMCell(BaseConvRNNCell):
    """An LSTM of convolutions; see :class:`BaseConvRNNCell`."""

    _gate_names, _name, _states = GATES["lstm"], "ConvLSTM_", 2

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._next()
        sums = self._layer("i2h", inputs, name) + self._layer("h2h", states[0], name)
        return lstm(sums, states[1], name, self._act)


class ConvGRUCell(BaseConvRNNCell):
    """A gated recurrent unit of convolutions; see :class:`BaseConvRNNCell`."""

    _gate_names, _name = GATES["gru"], "ConvGRU_"

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._next()
        i2h, h2h = self._layer("i2h", inputs, name), self._layer("h2h", states[0], name)
        return gru(i2h, h2h, states[0], name, self._act)
