"""``mx.rnn``: recurrent networks as symbols: cells, their unrolling over time, batches of sentences."""

from __future__ import annotations

from ...support.missing import hooks
from . import io, rnn, rnn_cell
from .io import BucketSentenceIter, encode_sentences
from .rnn import do_rnn_checkpoint, load_rnn_checkpoint, rnn_unroll, save_rnn_checkpoint
from .rnn_cell import *  # noqa: F403

__all__ = ["BucketSentenceIter", "do_rnn_checkpoint", "encode_sentences", "io", "load_rnn_checkpoint", "rnn", "rnn_cell",
           "rnn_unroll", "save_rnn_checkpoint", *rnn_cell.__all__]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
