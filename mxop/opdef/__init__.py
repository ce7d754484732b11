"""Operators: the five kinds, the registry, parameters, inference.  Users import this package as ``mxop.op``."""

from ..formula import Expr, with_rule
from ..formula import functions as F
from .combine import Reduction
from .composite import Composite, composite
from .dims import Of
from .docs import describe, info
from .elementwise import Elementwise, Formula, elementwise
from .external import External
from .kernel import Kernel, kernel
from .loops import Loops, loops
from .operator import Operator
from .params import AnyValue, Attrs, Bound, DType, Floats, Range, Scalar, Shape
from .parts import contiguous_strides
from .reduction import reduction
from .registry import alias, find, get, load_entry_points, names, namespace_of, operators, register, unregister

__all__ = [
    "AnyValue", "Attrs", "Bound", "Composite", "DType", "Elementwise", "Expr", "External", "F", "Floats", "Formula",
    "Kernel", "Loops", "Of", "Operator", "Range", "Reduction", "Scalar", "Shape", "alias", "composite", "contiguous_strides",
    "describe", "elementwise", "find", "get", "info", "kernel", "load_entry_points", "loops", "names", "namespace_of",
    "operators", "reduction", "register", "unregister", "with_rule",
]  # fmt: skip
