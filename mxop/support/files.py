"""Names of files, where files are kept, the system's errors about files as errors of mxop."""

from __future__ import annotations

import errno
import os
import stat
import sys
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any

from .errors import FileError, MissingFileError, MXNetError, OpTypeError, OpValueError, OutOfMemoryError, shown

if TYPE_CHECKING:
    from pathlib import Path


def path_of(fname: Any, function: str) -> str:
    """Return the name of a file as a string.

    Raises
    ------
    OpTypeError, OpValueError
        For what is no name of a file.
    """
    if not isinstance(fname, (str, os.PathLike)):
        raise OpTypeError(f"{function}: fname must be a string or a path, got {type(fname).__name__}")
    path = os.fspath(fname)
    if not isinstance(path, str):
        raise OpTypeError(f"{function}: fname must be a string or a path of one, got {shown(path)}")
    try:
        if "\0" in path:
            raise OpValueError(f"{function}: {shown(path)} has a zero character, which no name of a file has")
        os.fsencode(path)
    except UnicodeEncodeError:
        raise OpValueError(f"{function}: {shown(path)} has characters that no name of a file has here") from None
    return path


class reporting:
    """A scope in which errors of the system become mxop's, with the file's name."""

    def __init__(self, function: str, path: str):
        self.function, self.path = function, path

    def __enter__(self) -> reporting:
        return self

    def __exit__(self, kind: type | None, problem: BaseException | None, where: object) -> None:
        if isinstance(problem, OSError) and not isinstance(problem, MXNetError):
            error = MissingFileError if isinstance(problem, FileNotFoundError) else FileError
            raise error(f"{self.function}: {self.path!r}: {problem.strerror or problem}") from None
        if isinstance(problem, MemoryError) and not isinstance(problem, MXNetError):
            raise OutOfMemoryError(f"{self.function}: {self.path!r} does not fit in memory") from problem


def reading(path: str, mode: str = "rb", **how: Any) -> IO[Any]:
    """Open a file to read it.

    Raises
    ------
    OSError
        For a device, which may have no end (``/dev/zero``), and for a pipe, which may wait for a writer for ever.
    """
    kind = os.stat(path).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise OSError(errno.EINVAL, "a device or a pipe, which may have no end; expected a file")
    return open(path, mode, **how)


def contents(path: str, function: str) -> bytes:
    """Return what is in a file."""
    with reporting(function, path), reading(path) as file:
        return file.read()


def cache_folder(what: str, given: str | os.PathLike | None = None) -> Path:
    """Return the folder in which things of a kind are kept for later processes; a new one where the usual cannot be written.

    It is in `given`, or what the environment variable ``MXOP_CACHE_DIR`` names, or ``mxop`` in the user's cache folder.
    """
    from pathlib import Path  # which takes milliseconds

    below = {"darwin": "Library/Caches", "win32": "AppData/Local"}.get(sys.platform, ".cache")
    users = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    try:
        folder = Path(given or os.environ.get("MXOP_CACHE_DIR") or Path(users or Path.home() / below, "mxop")) / what
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder.resolve()
    except (OSError, RuntimeError):  # the second where nobody knows the user's home
        pass
    return _own_folder(what)


@lru_cache(None)
def _own_folder(what: str) -> Path:
    """Return a folder of this process."""
    import tempfile
    from pathlib import Path

    return Path(tempfile.mkdtemp(prefix="mxop-"))


def write_whole(file: Path, text: str) -> None:
    """Write a file so that others see all of it or nothing."""
    import tempfile

    file.parent.mkdir(parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(fresh, file)
