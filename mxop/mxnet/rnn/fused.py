"""All layers and steps in one operator, ``RNN``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from ... import ndarray as nd
from ... import symbol as sym
from ...ndarray import NDArray
from ...support.errors import UnsupportedError
from ...symbol import Symbol
from ..initializer import GATES, FusedRNN
from .base import BaseRNNCell, RNNParams, sequence
from .combined import BidirectionalCell, DropoutCell, SequentialRNNCell
from .plain import GRUCell, LSTMCell, RNNCell


class FusedRNNCell(BaseRNNCell):
    """Layers of recurrent cells as one operator, much faster than unrolled ones.

    Parameters
    ----------
    num_hidden, num_layers : int
    mode : {'lstm', 'gru', 'rnn_tanh', 'rnn_relu'}
    bidirectional : bool
    dropout : float
        Between layers.
    get_next_state : bool
        Whether ``unroll`` gives the last states, too.
    forget_bias : float
        With which the biases of an LSTM's forget gates begin.
    prefix : str, optional
        By default the mode and ``_``.
    params : RNNParams, optional

    Examples
    --------
    >>> cell = mx.rnn.FusedRNNCell(5, num_layers=2, prefix="net_")
    >>> outputs, states = cell.unroll(3, mx.sym.Variable("x"), layout="TNC", merge_outputs=True)
    >>> outputs.infer_shape(x=(3, 2, 4))
    ([(3, 2, 4), (460,)], [(3, 2, 5)], [])
    """

    def __init__(self, num_hidden: int, num_layers: int = 1, mode: str = "lstm", bidirectional: bool = False,
                 dropout: float = 0.0, get_next_state: bool = False, forget_bias: float = 1.0,
                 prefix: str | None = None, params: RNNParams | None = None):  # fmt: skip
        initializer = FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        super().__init__(f"{mode}_" if prefix is None else prefix, params)
        self._num_hidden, self._num_layers, self._mode, self._dropout = num_hidden, num_layers, mode, dropout
        self._bidirectional, self._get_next_state, self._forget_bias = bidirectional, get_next_state, forget_bias
        self._directions = "lr" if bidirectional else "l"
        self._gate_names, self._layout = GATES[mode], initializer
        self._parameter = self.params.get("parameters", init=initializer)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        shape = (self._num_layers * len(self._directions), 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"} for _ in range(1 + (self._mode == "lstm"))]

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        raise UnsupportedError("a FusedRNNCell has no single steps; unroll it, or take the cell of unfuse()")

    # ---- parameters ---------------------------------------------------------------------------------------------------
    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        args = dict(args)
        vector, at = args.pop(self._parameter.name), 0
        for name, shape in self._layout.parts(vector.size):
            args[self._prefix + name] = vector[at : at + prod(shape)].reshape(shape).copy()
            at += prod(shape)
        return args

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        args, h = dict(args), self._num_hidden
        width = args[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"].shape[1]
        d, layers = len(self._directions), self._num_layers
        size = d * h * self._num_gates * (width + h + 2 + (layers - 1) * (h + d * h + 2))
        parts = [args.pop(self._prefix + name).reshape((-1,)) for name, _ in self._layout.parts(size)]
        args[self._parameter.name] = nd.concat(*parts, dim=0)
        return args

    # ---- graphs -------------------------------------------------------------------------------------------------------
    def unroll(self, length: int, inputs: Any, begin_state: Sequence[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list]:  # fmt: skip
        self.reset()
        inputs, axis = sequence(length, inputs, layout, True)
        if axis == 1:  # the operator wants the time first
            inputs = sym.swapaxes(inputs, dim1=0, dim2=1)
        states = dict(zip(("state", "state_cell"), self._begin(begin_state)))
        made = sym.RNN(
            data=inputs, parameters=self._parameter, state_size=self._num_hidden, num_layers=self._num_layers,
            bidirectional=self._bidirectional, p=self._dropout, state_outputs=self._get_next_state, mode=self._mode,
            name=f"{self._prefix}rnn", attr={"__layout__": "LNC"} if self._get_next_state else None, **states,
        )  # fmt: skip
        outputs, *after = made if self._get_next_state else (made,)
        if axis == 1:
            outputs = sym.swapaxes(outputs, dim1=0, dim2=1)
        return sequence(length, outputs, layout, merge_outputs)[0], after

    def unfuse(self) -> SequentialRNNCell:
        """Return the same as a stack of cells, which can be changed and stepped; ``unpack_weights`` fits its parameters."""
        stack, p = SequentialRNNCell(), self._prefix
        for layer in range(self._num_layers):
            cells = [self._cell(f"{p}{way}{layer}_") for way in self._directions]
            one = BidirectionalCell(*cells, output_prefix=f"{p}bi_l{layer}_") if len(cells) == 2 else cells[0]
            stack.add(one)
            if self._dropout > 0 and layer != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{p}_dropout{layer}_"))
        return stack

    def _cell(self, prefix: str) -> BaseRNNCell:
        h = self._num_hidden
        made: dict[str, Callable[[], BaseRNNCell]] = {
            "lstm": lambda: LSTMCell(h, prefix=prefix, forget_bias=self._forget_bias),
            "gru": lambda: GRUCell(h, prefix=prefix),
        }
        return made.get(self._mode, lambda: RNNCell(h, activation=self._mode.removeprefix("rnn_"), prefix=prefix))()
