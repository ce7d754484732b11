"""MXNet's other path to the cells: ``mx.rnn.rnn_cell``."""

from ...support.missing import hooks
from .base import BaseRNNCell, RNNParams
from .base import sequence as _normalize_sequence  # noqa: F401  # programs with cells of their own use it
from .combined import BidirectionalCell, DropoutCell, ModifierCell, ResidualCell, SequentialRNNCell, ZoneoutCell
from .convolved import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell
from .fused import FusedRNNCell
from .plain import GRUCell, LSTMCell, RNNCell

__all__ = [
    "BaseConvRNNCell", "BaseRNNCell", "BidirectionalCell", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell", "DropoutCell",
    "FusedRNNCell", "GRUCell", "LSTMCell", "ModifierCell", "RNNCell", "RNNParams", "ResidualCell", "SequentialRNNCell",
    "ZoneoutCell",
]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
