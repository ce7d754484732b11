"""Write arrays to files and read them: ``nd.save`` and ``nd.load``, in MXNet's ``.params`` format.

The format itself is in :mod:`.params_format`.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import sys
from typing import Any

from .._core import core
from ..context import Context, current_context
from ..support import limits
from ..support.errors import MXNetError, OpTypeError, OpValueError, all_end_at_caller, shown
from ..support.files import contents, path_of, reporting
from . import creation
from .sparse.arrays import BaseSparseNDArray, restored

Dense = core.Dense
NDArray = core.NDArray

__all__ = ["load", "load_frombuffer", "save", "save_tobuffer"]


def save(fname: str | os.PathLike[str], data: Any) -> None:
    """Write one array, a list of arrays or a dict of them to a file that MXNet 1.x reads too.

    The file is complete or not there: data go to another file in the same folder first, which then takes its place.

    Parameters
    ----------
    fname : str or path
    data : NDArray, list of NDArray or dict of str to NDArray

    Examples
    --------
    >>> import os, tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "x.params")
    >>> mx.nd.save(name, {"w": mx.nd.ones((2,))})
    >>> mx.nd.load(name)["w"].asnumpy().tolist()
    [1.0, 1.0]
    """
    fname = path_of(fname, "nd.save")
    arrays, names = _listed(data)
    target = os.path.realpath(fname)
    import tempfile  # slow to import

    with reporting("nd.save", fname):
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


def save_tobuffer(data: Any) -> bytes:
    """Return as bytes what :func:`save` writes."""
    from . import params_format

    return params_format.dumps(*_listed(data))


def _listed(data: Any) -> tuple[list[Any], list[str]]:
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
            raise OpTypeError(f"nd.save: {names[at] if names else f'item {at}'} is not an NDArray but {type(a).__name__}")
    return [_stored(a) for a in arrays], names


def _stored(a: Any) -> Any:
    """Return what is written of an array."""
    if isinstance(a, BaseSparseNDArray):
        from .params_format import SparseRecord

        a = a.as_in_context(Context("cpu", 0))
        return SparseRecord(a.stype, a.shape, a._values, a._parts())
    return core.values(a)


def load(fname: str | os.PathLike[str], *, max_bytes: int | None = None) -> Any:
    """Read the arrays of a file: a list, or a dict when they were saved with names.

    Parameters
    ----------
    fname : str or path
        Of a ``.params`` file, or of one of NumPy's: of ``.npy`` a list of one array, of ``.npz`` a dict.
    max_bytes : int, optional
        How many bytes an ``.npz`` file may unpack to, and how many csr arrays of a ``.params`` file that were never
        filled may take for their rows: a few bytes can ask for any number. By default 64 times what the file takes, at
        least 256 MiB or what the environment variable ``MXOP_MAX_DENSE_BYTES`` says.

    Raises
    ------
    MXNetError
        When the file is missing, damaged, or holds more than `max_bytes` allow.
    """
    fname = path_of(fname, "nd.load")
    content = contents(fname, "nd.load")
    try:
        return load_frombuffer(content, max_bytes=max_bytes)
    except MXNetError as problem:
        raise type(problem)(f"nd.load: {fname!r}: {problem}") from None


def load_frombuffer(buf: Any, *, max_bytes: int | None = None) -> Any:
    """Read arrays from the bytes of a file; see :func:`load`."""
    from . import numpy_files, params_format

    try:
        content = memoryview(buf).cast("B")
    except (TypeError, ValueError, BufferError):
        raise OpTypeError(f"nd.load_frombuffer: buf must be bytes, got {type(buf).__name__}") from None
    if numpy_files.is_numpy(content):
        found, names = numpy_files.loads(content, _max_bytes(max_bytes))
    else:
        found, names = params_format.loads(content)
    _check_dense([r for r in found if isinstance(r, params_format.SparseRecord)], content.nbytes, max_bytes)
    place = current_context()
    arrays = []
    for at, record in enumerate(found):
        if isinstance(record, params_format.SparseRecord):
            arrays.append(restored(record.stype, record.shape, record.data, record.aux))
            continue
        try:
            arrays.append(None if record is None else creation.placed(record, place))
        except OpTypeError as problem:
            raise OpTypeError(f"array {names[at] if names else at}: {problem}") from None
    return dict(zip(names, arrays, strict=True)) if names else arrays


def of_record(record: bytes, max_bytes: int | None = None) -> Any:
    """Return the array of one record of a ``.params`` file, None where it says that there is none."""
    whole = struct.pack("<QQQ", 0x112, 0, 1) + record + struct.pack("<Q", 0)
    return load_frombuffer(whole, max_bytes=max_bytes)[0]  # type: ignore[index]


def of_state(state: Any, stype: str) -> Any:
    """Return the array whose state MXNet has pickled: ``{"handle": record}``; None where the record is.

    Raises
    ------
    MXNetError
        When that is no such state, or one of an array that is not stored as `stype` says.
    """
    record = state.get("handle", state) if isinstance(state, dict) else state
    if not isinstance(record, (bytes, bytearray, memoryview, type(None))) or record is state:
        raise OpTypeError(f"NDArray.__setstate__: {shown(state)} is not a state of an array: {{'handle': bytes}}")
    made = None if record is None else of_record(record)
    if made is not None and made.stype != stype:
        raise OpValueError(f"NDArray.__setstate__: the state is that of an array stored as {made.stype}, not as {stype}")
    return made


def _max_bytes(given: Any) -> int | None:
    """Return the limit that a call gives, None for the default."""
    if given is not None and (not isinstance(given, int) or given < 0):
        raise OpTypeError(f"nd.load: max_bytes={given!r} is not a number of bytes")
    return given


def _check_dense(records: list, nbytes: int, max_bytes: int | None) -> None:
    """Raise when the rows of csr arrays that were never filled take too much, in a file of `nbytes` bytes."""
    max_bytes = _max_bytes(max_bytes)
    needed = sum(8 * (r.shape[0] + 1) for r in records if r.stype == "csr" and not len(r.aux[0]))
    if needed and needed > (allowed := limits.dense_bytes(nbytes) if max_bytes is None else max_bytes):
        raise limits.too_dense(needed, allowed)


all_end_at_caller(sys.modules[__name__], __all__)
