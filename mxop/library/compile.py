"""Compiling operator libraries with the system's compiler.

What was compiled is kept in the user's cache folder and found again by the contents of the sources, of the headers that they
include, the flags and the compiler.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..support.errors import DeviceError, MXNetError
from ..support.files import cache_folder, path_of, write_whole
from .headers import get_include
from .loader import load

_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
_COMPILERS = ("c++", "g++", "clang++")
_C_SUFFIXES = (".c",)
_HELP = "install g++ or clang++, or name a compiler in the environment variable CXX"


def build(sources: str | os.PathLike | Sequence[str | os.PathLike], name: str | None = None, flags: Sequence[str] = (), *,
          include_dirs: Sequence[str | os.PathLike] = (), compiler: str | None = None,
          cache_dir: str | os.PathLike | None = None, verbose: bool = False) -> str:  # fmt: skip
    """Compile sources to a library of operators, unless it was done before.

    Parameters
    ----------
    sources : path or sequence of paths
        C++ (or, with suffix ``.c``, C) files.  mxop's headers are found without a flag.
    name : str, optional
        How the library's file is called; by default like the first source.
    flags : sequence of str
        Further flags of the compiler, after ``-O3 -std=c++17 -shared -fPIC``.
    include_dirs : sequence of paths
        Further folders of headers.
    compiler : str, optional
        The command; by default that of the environment variable ``CXX``, or the first of c++, g++, clang++.
    cache_dir : path, optional
        Where libraries are kept; by default ``MXOP_CACHE_DIR``, or a folder ``mxop`` in the user's cache folder.
    verbose : bool, default False
        Print the command.

    Returns
    -------
    str
        The path of the library, for :func:`load`.

    Raises
    ------
    MXNetError
        When a source is missing or does not compile; with what the compiler said.
    DeviceError
        When there is no compiler.

    Examples
    --------
    >>> mx.library.build("no_such_source.cc")
    Traceback (most recent call last):
    ...
    mxop.errors.MXNetError: build: source no_such_source.cc does not exist
    """
    listed = [sources] if not isinstance(sources, (list, tuple)) else sources
    files = [Path(path_of(s, "library.build")) for s in listed]
    if not files:
        raise MXNetError("build: no sources are given")
    for file in files:
        if not file.is_file():
            raise MXNetError(f"build: source {file} does not exist")
    files = [file.resolve() for file in files]
    name = _checked_name(name if name is not None else files[0].stem)
    command = [*_compiler(compiler), "-O3", "-std=c++17", "-fPIC"]
    for folder in (get_include(), *include_dirs):
        command += ["-I", str(folder)]
    command += [str(f) for f in ([flags] if isinstance(flags, str) else flags)]
    folder = cache_folder("libraries", cache_dir) / f"{name}-{_key(command, files)}"
    found = _find(folder)
    return str(found if found is not None else _compile(folder, name, command, files, verbose))


def load_inline(
    name: str, source: str | Sequence[str], flags: Sequence[str] = (), *, verbose: bool = False, **options: object
) -> str:
    """Compile and load a library of operators that is given as text.

    Parameters
    ----------
    name : str
        How the library's file is called.
    source : str or sequence of str
        C++ text.  Where it does not include ``lib_api.h`` itself, that is done for it.
    flags, verbose, **options
        See :func:`build` and :func:`load`.

    Returns
    -------
    str
        The path of the library.

    Raises
    ------
    MXNetError, DeviceError
        As :func:`build` and :func:`load`; see ``docs/libraries.md`` for libraries that work.

    Examples
    --------
    >>> mx.library.load_inline("a/b", "")
    Traceback (most recent call last):
    ...
    mxop.errors.MXNetError: build: 'a/b' is not a name for a library
    """
    text = source if isinstance(source, str) else "\n".join(source)
    if "lib_api.h" not in text and "mxop/abi.h" not in text:
        text = f'#include "mxop/lib_api.h"\n#line 1 "{_checked_name(name)}.cc"\n{text}'
    cache = options.get("cache_dir")
    folder = cache_folder("libraries", cache) / "inline" / hashlib.sha256(text.encode()).hexdigest()[:16]  # type: ignore[arg-type]
    file = folder / f"{_checked_name(name)}.cc"
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        write_whole(file, text)
    path = build([file], name, flags, verbose=verbose, **options)  # type: ignore[arg-type]
    load(path, verbose=verbose)
    return path


# ---- the cache ----------------------------------------------------------------------------------------------------------


def _checked_name(name: str) -> str:
    if not name or any(c in name for c in '/\\:\0"\n') or name.startswith("."):
        raise MXNetError(f"build: {name!r} is not a name for a library")
    return name


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _key(command: list[str], files: list[Path]) -> str:
    """Return what the command and the contents of the sources come to."""
    about = [*command, _version(command[0]), *map(str, files), *map(_digest, files)]
    return hashlib.sha256("\0".join(about).encode()).hexdigest()[:20]


def _find(folder: Path) -> Path | None:
    """Return the library that was built of the same contents."""
    try:
        built = json.loads((folder / "built.json").read_text(encoding="utf-8"))
        library = folder / built["library"]
        if library.is_file() and all(_digest(Path(f)) == digest for f, digest in built["headers"].items()):
            return library
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


# ---- the compiler -------------------------------------------------------------------------------------------------------


def _compiler(given: str | None) -> list[str]:
    chosen = given or os.environ.get("CXX")
    if chosen:
        command = shlex.split(chosen)
        if shutil.which(command[0]) is None:
            raise DeviceError(f"build: there is no compiler {command[0]!r}; {_HELP}")
        return command
    for name in _COMPILERS:
        if shutil.which(name) is not None:
            return [name]
    raise DeviceError(f"build: there is no C++ compiler on this machine; {_HELP}")


def _version(compiler: str) -> str:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, errors="replace", check=False)
    return done.stdout or str(shutil.which(compiler))


def _sources(files: list[Path]) -> list[str]:
    result = []
    for file in files:
        c = file.suffix in _C_SUFFIXES
        result += [*(["-x", "c"] if c else []), str(file), *(["-x", "none"] if c else [])]
    return result


def _compile(folder: Path, name: str, command: list[str], files: list[Path], verbose: bool) -> Path:
    """Compile into the cache; what is half done is never seen there."""
    folder.mkdir(parents=True, exist_ok=True)
    if all(file.suffix in _C_SUFFIXES for file in files):
        command = [part for part in command if part != "-std=c++17"]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fresh = Path(scratch) / f"{name}{_SUFFIX}"
        linked = [flag for flag in command if flag.startswith(("-l", "-L"))]  # again: behind what uses them
        _run([*command, *_sources(files), "-shared", "-o", str(fresh), *linked], files, verbose)
        headers = {str(h): _digest(h) for h in _headers(command, files)}
        mark = hashlib.sha256(json.dumps(headers, sort_keys=True).encode()).hexdigest()[:8]
        library = folder / f"{name}-{mark}{_SUFFIX}"  # another one when headers changed: the old one may be loaded
        if not library.exists():
            os.replace(fresh, library)
        write_whole(folder / "built.json", json.dumps({"library": library.name, "headers": headers}))
    return library


def _headers(command: list[str], files: list[Path]) -> list[Path]:
    """Return the headers that the sources include, without the system's."""
    done = subprocess.run([*command, "-MM", *_sources(files)], capture_output=True, check=False)
    words = re.findall(r"(?:\\[ #]|\S)+", os.fsdecode(done.stdout).replace("\\\n", " "))  # quoted for make
    found = [Path(re.sub(r"\\([ #])|\$(?=\$)", r"\1", word)) for word in words if not word.endswith(":")]
    return sorted({path.resolve() for path in found if path.is_file()} - set(files))


def _run(command: list[str], files: list[Path], verbose: bool) -> None:
    if verbose:
        print(shlex.join(command))
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    said = (done.stdout + done.stderr).strip()
    if done.returncode:
        raise MXNetError(f"build: {', '.join(f.name for f in files)} did not compile (exit status {done.returncode})\n"
                         f"{shlex.join(command)}\n{said}")  # fmt: skip
    if verbose and said:
        print(said)
