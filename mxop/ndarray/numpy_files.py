"""Arrays of NumPy's files, ``.npy`` and ``.npz``, of which nothing is executed and no size is trusted."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np

from ..support import limits
from ..support.errors import MXNetError, OpValueError


def is_numpy(content: memoryview) -> bool:
    """Return whether bytes begin as one of these files does."""
    return bytes(content[:6]) == b"\x93NUMPY" or bytes(content[:4]) in (b"PK\3\4", b"PK\5\6")


def loads(content: memoryview, max_bytes: int | None) -> tuple[list[np.ndarray], list[str]]:
    """Return the arrays of a file and their names; an ``.npy`` file has one array and no names.

    Raises
    ------
    MXNetError
        When the file is damaged, holds Python objects, or unpacks to more than `max_bytes`, by default what
        :func:`mxop.support.limits.dense_bytes` says.
    """
    kind = "npy" if content[0] == 0x93 else "npz"
    file = io.BytesIO(content)
    try:
        if kind == "npy":
            return [_native(np.load(file, allow_pickle=False))], []
        allowed = limits.dense_bytes(content.nbytes) if max_bytes is None else max_bytes
        if sum(member.file_size for member in zipfile.ZipFile(file).infolist()) > allowed:
            raise limits.too_packed("the archive", allowed)
        with np.load(file, allow_pickle=False) as archive:
            return [_native(archive[name]) for name in archive.files], list(archive.files)
    except MXNetError:
        raise
    except Exception as problem:  # damaged headers and streams give errors of many classes
        told = "holds Python objects, which are not loaded" if "allow_pickle" in str(problem) else f"is damaged: {problem}"
        raise OpValueError(f"the .{kind} file {told}") from None


def _native(found: Any) -> np.ndarray:
    """Return an array in C order and the byte order of the machine."""
    if not isinstance(found, np.ndarray):
        raise ValueError("a member of the archive is not an array")
    return np.asarray(found, found.dtype.newbyteorder("="), order="C")
