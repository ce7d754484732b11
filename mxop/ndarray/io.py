"""Write arrays to files and read them: ``nd.save`` and ``nd.load``, in MXNet's ``.params`` format.

The format itself is in :mod:`.params_format`.  May import :mod:`mxop._core`.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Any

import numpy as np

from .._core import core
from ..context import current_context
from ..errors import MXNetError, OpTypeError
from . import creation

NDArray = core.NDArray

__all__ = ["load", "load_frombuffer", "save", "save_tobuffer"]


class FileError(MXNetError, OSError):
    """A file that cannot be read or written."""


class MissingFileError(FileError, FileNotFoundError):
    """A file or folder that is not there."""


def save(fname: str | os.PathLike[str], data: Any) -> None:
    """Write one array, a list of arrays or a dict of them to a file that MXNet 1.x reads too.

    The file is complete or not there: data go to another file in the same folder first, which then takes its place.

    Parameters
    ----------
    fname : str or path
    data : NDArray, list of NDArray or dict of str to NDArray

    Examples
    --------
    >>> import mxop as mx
    >>> import os, tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "x.params")
    >>> mx.nd.save(name, {"w": mx.nd.ones((2,))})
    >>> mx.nd.load(name)["w"].asnumpy().tolist()
    [1.0, 1.0]
    """
    if not isinstance(fname, (str, os.PathLike)):
        raise OpTypeError(f"nd.save: fname must be a string or a path, got {type(fname).__name__}")
    arrays, names = _listed(data)
    target = os.path.realpath(fname)
    import tempfile  # slow to import

    with _reporting("nd.save", fname):
        if os.path.exists(target) and not os.path.isfile(target):  # a pipe or a device cannot be replaced
            with open(target, "wb") as file:
                _dump(file, arrays, names)
            return
        descriptor, name = tempfile.mkstemp(prefix=".mxop-", suffix=".tmp", dir=os.path.dirname(target))
        try:
            with os.fdopen(descriptor, "wb") as file:
                _dump(file, arrays, names)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, _mode(target))
            os.replace(name, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


def _mode(target: str) -> int:
    """Return the permissions of the file that is replaced, or those of a new one."""
    try:
        return stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _dump(file: Any, arrays: list, names: list[str]) -> None:
    from . import params_format

    params_format.dump(file, arrays, names)


@contextlib.contextmanager
def _reporting(function: str, fname: Any):
    """Turn errors of the system into mxop's, with the file's name."""
    try:
        yield
    except MXNetError:
        raise
    except OSError as problem:
        error = MissingFileError if isinstance(problem, FileNotFoundError) else FileError
        raise error(f"{function}: {os.fspath(fname)!r}: {problem.strerror or problem}") from problem


def save_tobuffer(data: Any) -> bytes:
    """Return as bytes what :func:`save` writes."""
    from . import params_format

    return params_format.dumps(*_listed(data))


def _listed(data: Any) -> tuple[list[np.ndarray], list[str]]:
    if isinstance(data, NDArray):
        data = [data]
    if not isinstance(data, (list, tuple, dict)):
        raise OpTypeError(
            f"nd.save: data must be an NDArray, a list of them or a dict of str to NDArray, got {type(data).__name__}"
        )
    names = list(data) if isinstance(data, dict) else []
    arrays = list(data.values()) if isinstance(data, dict) else list(data)
    for name in names:
        if not isinstance(name, str):
            raise OpTypeError(f"nd.save: names must be strings, got {name!r}")
    for at, a in enumerate(arrays):
        if not isinstance(a, NDArray):
            raise OpTypeError(
                f"nd.save: {names[at] if names else f'item {at}'} is not an NDArray but {type(a).__name__}"
            )
    return [a.asnumpy() if a._gpu is not None else core.as_numpy(a) for a in arrays], names


def load(fname: str | os.PathLike[str]) -> list[NDArray] | dict[str, NDArray]:
    """Read the arrays of a ``.params`` file: a list, or a dict when they were saved with names."""
    if not isinstance(fname, (str, os.PathLike)):
        raise OpTypeError(f"nd.load: fname must be a string or a path, got {type(fname).__name__}")
    with _reporting("nd.load", fname), open(fname, "rb") as file:
        content = file.read()
    try:
        return load_frombuffer(content)
    except MXNetError as problem:
        raise type(problem)(f"nd.load: {os.fspath(fname)!r}: {problem}") from None


def load_frombuffer(buf: Any) -> list[NDArray] | dict[str, NDArray]:
    """Read arrays from the bytes of a ``.params`` file; see :func:`load`."""
    from . import params_format

    try:
        found, names = params_format.loads(buf)
    except TypeError:
        raise OpTypeError(f"nd.load_frombuffer: buf must be bytes, got {type(buf).__name__}") from None
    place = current_context()
    arrays = []
    for at, record in enumerate(found):
        if isinstance(record, params_format.SparseRecord):
            record = record.todense()
        try:
            arrays.append(None if record is None else creation.placed(record, place))
        except OpTypeError as problem:
            raise OpTypeError(f"array {names[at] if names else at}: {problem}") from None
    return dict(zip(names, arrays, strict=True)) if names else arrays
