"""Scalar formulas: traced, simplified, differentiated, compiled to CPU programs, printed as C and CUDA."""

from .composed import composed
from .derive import Backward, backward, vjp
from .draws import DRAWS, keys_of
from .expr import Expr, NeedsValue, TraceError, const, input_, leaves, output, param, substitute, walk, with_rule
from .primitives import TABLE
from .program import SCALAR_OPS, Program, Step, compile_program
from .readable import readable
from .simplify import of_numbers
from .text import statements

__all__ = [
    "DRAWS", "SCALAR_OPS", "TABLE", "Backward", "Expr", "NeedsValue", "Program", "Step", "TraceError", "backward",
    "compile_program", "composed", "const", "input_", "keys_of", "leaves", "of_numbers", "output", "param", "readable",
    "statements", "substitute", "vjp", "walk", "with_rule",
]  # fmt: skip
