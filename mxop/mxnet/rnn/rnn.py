"""Unrolling by a function, and checkpoints with the parameters of each gate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ...ndarray import NDArray
from ...support.errors import translated
from ...symbol import Symbol
from ..callback import every
from ..checkpoints import load_checkpoint, params_file, save_checkpoint
from .base import BaseRNNCell

_Cells = BaseRNNCell | Sequence[BaseRNNCell]


def rnn_unroll(cell: BaseRNNCell, length: int, inputs: Any = None, begin_state: Any = None, input_prefix: str = "",
               layout: str = "NTC") -> tuple[Any, list]:  # fmt: skip
    """Return ``cell.unroll(...)``, the name of today; without `inputs`, variables ``{input_prefix}t0_data``... are made."""
    from ...symbol import Variable

    warnings.warn("rnn_unroll is the old name of cell.unroll", DeprecationWarning, stacklevel=2)
    if inputs is None:
        inputs = [Variable(f"{input_prefix}t{at}_data") for at in range(length)]
    return cell.unroll(length, inputs, begin_state, layout)


def _each(cells: _Cells) -> Sequence[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else cells


def save_rnn_checkpoint(cells: _Cells, prefix: str, epoch: int, symbol: Symbol, arg_params: Mapping[str, NDArray],
                        aux_params: Mapping[str, NDArray]) -> None:  # fmt: skip
    """Write a checkpoint (:func:`mxop.model.save_checkpoint`) in which each gate of the cells has arrays of its own."""
    for cell in _each(cells):
        arg_params = cell.unpack_weights(arg_params)
    save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells: _Cells, prefix: str, epoch: int) -> tuple[Symbol, dict, dict]:
    """Read what :func:`save_rnn_checkpoint` wrote, for these cells, which need not be of the same kind, only alike."""
    symbol, arguments, states = load_checkpoint(prefix, epoch)
    with translated(f"load_rnn_checkpoint: {params_file(prefix, epoch)!r} is not of these cells"):
        for cell in _each(cells):
            arguments = cell.pack_weights(arguments)
    return symbol, arguments, states


def do_rnn_checkpoint(cells: _Cells, prefix: str, period: int = 1) -> Callable[..., None]:
    """Return a callback that calls :func:`save_rnn_checkpoint` after every `period` epochs."""
    return every(period, partial(save_rnn_checkpoint, cells, prefix))
