"""Operators written with loops in Python: MindSpore's hybrid language, compiled by numba (CPU) or as CUDA (GPU).

``kernel`` reads a function's text; called directly it runs as plain Python, inside :class:`mxop.operator.Custom` it is
compiled (:mod:`.body`).  :mod:`.words` are the language; :mod:`.checks` makes a text an :mod:`.ir`, whose expressions are those
of :mod:`mxop.formula`; :mod:`.races` is what is refused; :mod:`.types` and :mod:`.bounds` are what is known of a call;
:mod:`.derive` is the gradient, which :mod:`.simplify` makes short; :mod:`.translate` and :mod:`.cuda` write
the texts that are compiled, the first of them by :mod:`.compiled`.
"""

from .body import Hybrid
from .function import Kernel, kernel
from .source import HybridError
from .words import WORDS, allocate, attr, block_realize, grid, output_tensor, parallel, reduce, serial, vectorize

__all__ = [
    "WORDS", "Hybrid", "HybridError", "Kernel", "allocate", "attr", "block_realize", "grid", "kernel", "output_tensor",
    "parallel", "reduce", "serial", "vectorize",
]  # fmt: skip
