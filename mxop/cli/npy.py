"""Reads the user's ``.npy`` file, and says what is wrong with it when something is."""

from __future__ import annotations

import os

import numpy as np

from ..support.files import reading
from . import BadInput

_MAGIC = b"\x93NUMPY"
_TYPES = ("float16", "float32", "float64")


def read_floats(path: str) -> np.ndarray:
    """Return the array of a file, in the machine's byte order; integers and truth values are converted, which is printed.

    Raises
    ------
    BadInput
        When the file is missing or damaged, is something else than an ``.npy`` file, or holds no real floating-point numbers.
    """
    _check_kind(path)
    try:
        with np.errstate(over="ignore"):  # a header may claim any size; mapped, it is compared with the file's first
            data = np.load(path, allow_pickle=False, mmap_mode="r")
    except MemoryError:
        raise
    except Exception as problem:  # damaged headers and short files give errors of many classes
        if "allow_pickle" in str(problem) or "Python objects" in str(problem):
            raise BadInput(f"{path} holds Python objects, which are not loaded; numbers are needed") from None
        raise BadInput(f"{path} is damaged and cannot be read as .npy: {problem}") from None
    name = data.dtype.newbyteorder("=").name
    if data.dtype.kind in "biu":
        exact = data.dtype.kind == "b" or np.abs(data.astype("float64")).max(initial=0) <= 1 << 24  # as in float32
        print(f"{path} holds {name}, which was converted to {'float32' if exact else 'float64'}")
        return np.array(data, dtype="float32" if exact else "float64", order="C")
    if name not in _TYPES:
        raise BadInput(f"{path} has dtype {data.dtype}; expected integers, or one of {', '.join(_TYPES)}")
    return np.array(data, dtype=data.dtype.newbyteorder("="), order="C")


def _check_kind(path: str) -> None:
    if os.path.isdir(path):
        raise BadInput(f"{path} is a folder; expected an .npy file")
    try:
        with reading(path) as file:
            start, version, size = file.read(len(_MAGIC)), file.read(2)[:1], os.fstat(file.fileno()).st_size
            header = int.from_bytes(file.read(2 if version == b"\1" else 4), "little")
    except OSError as problem:
        raise BadInput(f"cannot read {path}: {problem.strerror or problem}") from None
    except ValueError as problem:  # a zero byte in the name
        raise BadInput(f"cannot read {path!r}: {problem}") from None
    if start.startswith(b"PK"):
        raise BadInput(f"{path} is an archive (.npz?), not an .npy file; save one array with numpy.save")
    if start != _MAGIC:
        raise BadInput(f"{path} is not an .npy file; save an array with numpy.save")
    if header > size:  # for which numpy.load would take memory before it looks
        raise BadInput(f"{path} is damaged and cannot be read as .npy: a header of {header} bytes in a file of {size}")
