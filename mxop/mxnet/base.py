"""``mx.base``: kinds of Python's types, small helpers, and the error classes of :mod:`mxop.errors`, where MXNet has them."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..opdef.params import NULL as _Null  # noqa: F401
from ..support.errors import MXNetError, NotImplementedForSymbol, NotSupportedForSparseNDArray
from ..support.missing import KINDS, hooks
from .error import error_types, register_error  # noqa: F401

string_types, integer_types, numeric_types = KINDS.values()
mx_real_t = np.float32
mx_int, mx_uint, mx_float = ctypes.c_int, ctypes.c_uint, ctypes.c_float


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


# ---- what bindings of C functions are written with -------------------------------------------------------------------
def c_str(string: str) -> ctypes.c_char_p:
    """Return a string as C has it, in UTF-8."""
    return ctypes.c_char_p(string.encode("utf-8"))


def c_str_array(strings: Iterable[str]) -> ctypes.Array:
    """Return strings as an array of C's."""
    return c_array(ctypes.c_char_p, [s.encode("utf-8") for s in strings])


def check_call(ret: int) -> None:
    """Raise unless a function of C returned 0."""
    if ret != 0:
        raise MXNetError(f"a function of C returned {ret}; expected 0")


def c_array(ctype: type, values: Sequence[Any]) -> ctypes.Array:
    """Return values as an array of a type of ctypes."""
    return (ctype * len(values))(*values)  # type: ignore[operator]


def c_array_buf(ctype: type, buf: Any) -> ctypes.Array:
    """Return the memory of an ``array.array`` as an array of a type of ctypes."""
    return (ctype * len(buf)).from_buffer(buf)  # type: ignore[operator]


class classproperty:
    """A property of a class, for reading.

    >>> class Named:
    ...     @classproperty
    ...     def label(cls):
    ...         return cls.__name__.lower()
    >>> Named.label
    'named'
    """

    def __init__(self, function: Callable[[Any], Any]):
        self.function = function

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.function(owner)


__all__ = [
    "MXNetError", "NotImplementedForSymbol", "NotSupportedForSparseNDArray", "c_array", "c_array_buf", "c_str", "c_str_array",
    "check_call", "classproperty", "data_dir", "data_dir_default", "integer_types", "mx_real_t",
    "numeric_types", "py_str", "string_types",
]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
