"""``mx.nd.ndarray``: the path at which MXNet keeps what ``mx.nd`` has, for programs that import from there.

May import :mod:`mxop.dtypes`.
"""

import sys as _sys
from typing import Any as _Any

from .. import dtypes as _dtypes
from .._core.core import NDArray as NDArray
from .creation import *  # noqa: F403
from .creation import __all__ as _made

_DTYPE_MX_TO_NP = {-1: None} | {
    code: _dtypes.numpy_dtype(code).type for code in _dtypes.NAMES if code != _dtypes.BFLOAT16
}
_DTYPE_NP_TO_MX = {dtype: code for code, dtype in _DTYPE_MX_TO_NP.items()}
_GRAD_REQ_MAP = {"null": 0, "write": 1, "add": 3}
py_slice = slice  # programs write it where ``slice`` is the operator

__all__ = ["NDArray", "py_slice", *_made]


def __getattr__(name: str) -> _Any:
    return getattr(_sys.modules[__package__], name)  # waitall, maximum... and the error for what is not there


def __dir__() -> list[str]:
    return dir(_sys.modules[__package__])
