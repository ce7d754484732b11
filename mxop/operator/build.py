"""Compile a source file to a shared library, once for each content: for operators compiled ahead of time.

Libraries are kept in a folder of the user's, named after everything that went in, and appear there whole or not at all, so
any number of processes may compile the same file.  Imports :mod:`mxop.errors` only.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from ..errors import DeviceError, MXNetError, OpLookupError

INCLUDE = Path(__file__).resolve().parent.parent / "include"
SOURCES = (".c", ".cc", ".cpp", ".cxx", ".cu")
_MESSAGE = 6000


def cpp_compiler(what: str) -> list[str]:
    """Return the command of the system's C++ compiler (``$CXX``, c++, g++, clang++).

    Raises
    ------
    DeviceError
        When there is none; `what` says what for.
    """
    given = os.environ.get("CXX", "").split()
    if given and shutil.which(given[0]):
        return given
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise DeviceError(f"{what} needs a C++ compiler, and none is found (c++, g++, clang++, or what $CXX names)")


def _nvcc(what: str) -> list[str]:
    found = shutil.which("nvcc")
    if found is None:
        raise DeviceError(f"{what} needs CUDA's compiler nvcc, which is not on the path; install the CUDA toolkit")
    return [found]


@lru_cache(maxsize=16)
def _version(compiler: tuple[str, ...]) -> str:
    done = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def shared_library(source: Path, what: str) -> Path:
    """Return the library made from a source file, compiling it if it has not been.

    Parameters
    ----------
    source : Path
        ``.c``, ``.cc``, ``.cpp``, ``.cxx`` or ``.cu``.
    what : str
        Who asks, for messages.

    Raises
    ------
    OpLookupError
        When there is no such file.
    MXNetError
        When it does not compile, with what the compiler said.
    """
    if not source.is_file():
        raise OpLookupError(f"{what}: there is no file {str(source)!r} (current folder: {os.getcwd()})")
    command = _command(source, what)
    inputs = [_version(tuple(command[:1])), *command[1:], *_texts(source)]
    digest = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:32]
    target = _folder() / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', source.stem)}_{digest}.so"
    if not target.exists():
        _compile([*command, str(source)], target, what)
    return target


def _command(source: Path, what: str) -> list[str]:
    includes = [f"-I{INCLUDE}", f"-I{INCLUDE / 'mxop'}"]
    if source.suffix == ".cu":
        return [*_nvcc(what), "-std=c++17", "-O2", "--shared", "-Xcompiler", "-fPIC", *includes]
    compiler = cpp_compiler(what)
    if source.suffix == ".c":
        return [*compiler, "-x", "c++", "-O2", "-std=c++17", "-shared", "-fPIC", *includes]
    return [*compiler, "-std=c++17", "-O2", "-shared", "-fPIC", *includes]


def _texts(source: Path) -> list[str]:
    """Return the texts of a source and of the headers beside it, which it includes in quotes, and mxop's own."""
    found: dict[Path, str] = {}
    queue = [source.resolve()]
    while queue:
        path = queue.pop()
        if path in found:
            continue
        found[path] = path.read_text(encoding="utf-8", errors="replace")
        for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', found[path], re.M):
            for folder in (path.parent, INCLUDE / "mxop", INCLUDE):
                if (folder / name).is_file():
                    queue.append((folder / name).resolve())
                    break
    return [text for _, text in sorted(found.items())]


def _folder() -> Path:
    """Return the folder of compiled libraries, which only this user can write."""
    given = os.environ.get("MXOP_CACHE")
    base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mxop"
    folder = base / "aot"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass
    return _private_folder()


@lru_cache(maxsize=1)
def _private_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="mxop_aot_"))


def _compile(command: list[str], target: Path, what: str) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, suffix=".part")
    os.close(handle)
    try:
        done = subprocess.run([*command, "-o", name], capture_output=True, text=True, check=False)
        if done.returncode:
            told = (done.stderr + done.stdout)[:_MESSAGE]
            raise MXNetError(f"{what}: compiling failed: {' '.join(command)}\n{told}")
        os.replace(name, target)
    except OSError as problem:
        raise MXNetError(f"{what}: cannot run the compiler {command[0]!r}: {problem}") from None
    finally:
        if os.path.exists(name):
            os.unlink(name)
