"""``mx.base``: kinds of Python's types, small helpers, and the error classes of :mod:`mxop.errors`, where MXNet has them."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from .error import error_types, register_error  # noqa: F401
from .errors import MXNetError, NotImplementedForSymbol, NotSupportedForSparseNDArray
from .missing import KINDS, hooks
from .opdef.params import NULL as _Null  # noqa: F401

string_types, integer_types, numeric_types = KINDS.values()
mx_real_t = np.float32


def py_str(x: bytes | str) -> str:
    """Return bytes as a string; what is one, as the names that callbacks get here, stays."""
    return x if isinstance(x, str) else x.decode("utf-8")


def data_dir_default() -> str:
    """Return the folder for data where ``MXNET_HOME`` is not set."""
    home = os.environ.get("APPDATA") if sys.platform == "win32" else None
    return os.path.join(home, "mxnet") if home else os.path.join(os.path.expanduser("~"), ".mxnet")


def data_dir() -> str:
    """Return the folder for data: the environment variable ``MXNET_HOME``, else ``~/.mxnet``."""
    return os.environ.get("MXNET_HOME") or data_dir_default()


def _as_list(obj: Any) -> list | tuple:
    """Return a list or tuple as it is, anything else as the only item of a list."""
    return obj if isinstance(obj, (list, tuple)) else [obj]


__all__ = [
    "MXNetError", "NotImplementedForSymbol", "NotSupportedForSparseNDArray", "data_dir", "data_dir_default", "integer_types",
    "mx_real_t", "numeric_types", "py_str", "string_types",
]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
