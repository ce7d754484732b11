"""``mx.base``: where MXNet code looks for error classes, which live in :mod:`mxop.errors`, and for kinds of Python's types."""

import numpy as np

from .errors import MXNetError, NotImplementedForSymbol
from .missing import hooks

string_types = (str,)
integer_types = (int, np.int32, np.int64)
numeric_types = (float, int, np.generic)
mx_real_t = np.float32

__all__ = ["MXNetError", "NotImplementedForSymbol", "integer_types", "mx_real_t", "numeric_types", "string_types"]

__getattr__, __dir__ = hooks(globals(), __all__)
