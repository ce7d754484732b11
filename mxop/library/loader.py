"""Loading a compiled library: look at the file, open it, read what it has, register all of it or nothing."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from threading import RLock
from typing import Any

from .._core import dispatch, native_host, native_library
from ..graph.backend_table import backends as known_backends
from ..graph.backend_table import register_backend, unregister_backend
from ..opdef import registry
from ..support.distribution import VERSION
from ..support.errors import MXNetError, ends_at_caller
from ..support.files import path_of, reporting
from . import binary
from .graphs import Pass
from .headers import get_include
from .operator import LibraryOperator
from .partition import Partitioner
from .subgraph import SubgraphOperator

_ENTRY, _MXNET_ENTRY = "mxop_library_v1", "_opRegSize"
_HOW = f"-I{get_include()} (mxop.get_include()), or by mx.library.build"


@dataclass
class Library:
    """A library that was loaded."""

    path: Path
    identity: tuple
    handle: Any  # ctypes keeps it open: libraries are never unloaded
    native: native_library.NativeLibrary
    operators: list[LibraryOperator] = field(default_factory=list)
    backends: list[str] = field(default_factory=list)


_loaded: dict[Path, Library] = {}
_lock = RLock()


@ends_at_caller
def load(path: str | os.PathLike, verbose: bool = True) -> None:
    """Load a compiled library; its operators are then in ``mx.nd`` and ``mx.sym``.

    Loading the same file again does nothing.  A library stays loaded until the process ends.

    Parameters
    ----------
    path : str or path
        The library (``.so``, ``.dylib``, ``.dll``), absolute or relative to the current folder.
    verbose : bool, default True
        Print what was found.

    Raises
    ------
    MXNetError
        When the file is missing, damaged, of another machine, not a library of operators, of an incompatible version, or
        takes a name that is taken; or when its ``initialize`` fails.  Nothing is registered then.

    Examples
    --------
    >>> mx.library.load("no_such_library.so")
    Traceback (most recent call last):
    ...
    mxop.errors.MXNetError: load path no_such_library.so does NOT exist
    """
    file = _existing(path)
    with _lock:
        known = _loaded.get(file)
        if known is not None:
            _check_unchanged(known, file)
        else:
            known = _loaded[file] = _open(file)
    if verbose:
        _show(known)


load_op_lib = load


def loaded() -> list[str]:
    """Return the paths of the libraries that are loaded.

    Examples
    --------
    >>> isinstance(mx.library.loaded(), list)
    True
    """
    return [str(path) for path in _loaded]


# ---- the file -----------------------------------------------------------------------------------------------------------


def _existing(path: str | os.PathLike) -> Path:
    given = Path(path_of(path, "library.load"))
    with reporting("library.load", str(given)):
        try:
            mode = given.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            raise MXNetError(f"load path {path} does NOT exist") from None
        if not S_ISREG(mode):
            raise MXNetError(f"load path {path} is NOT a library file")
        return given.resolve()


def _identity(file: Path) -> tuple:
    stat = file.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _check_unchanged(known: Library, file: Path) -> None:
    if known.identity != _identity(file):
        raise MXNetError(f"library {file} was loaded before and has changed since; a process cannot load a library twice: "
                         f"start a new one, or give the new library another file name and other operator names")  # fmt: skip


def _open(file: Path) -> Library:
    identity = _identity(file)
    binary.check(file)
    try:
        handle = ctypes.CDLL(str(file))  # its symbols stay its own (RTLD_LOCAL), and all are resolved now
    except OSError as problem:
        raise MXNetError(f"library {file} cannot be loaded: {problem}") from None
    found = Library(file, identity, handle, native_library.NativeLibrary(_entry(handle, file), file.name))
    found.native.initialize()
    _register(found)
    return found


def _entry(handle: Any, file: Path) -> int:
    """Return the address of a library's entry point."""
    try:
        return ctypes.cast(getattr(handle, _ENTRY), ctypes.c_void_p).value or 0
    except AttributeError:
        pass
    if hasattr(handle, _MXNET_ENTRY):
        raise MXNetError(f"library {file} was compiled with MXNet's own lib_api.h, whose binary interface is MXNet's; its "
                         f"source compiles unchanged with {_HOW}")  # fmt: skip
    raise MXNetError(f"library {file} is not a library of operators: it exports no {_ENTRY}; does it include "
                     f'"mxnet/lib_api.h" (or "mxop/lib_api.h"), and was it compiled with {_HOW}?')  # fmt: skip


# ---- the registry -------------------------------------------------------------------------------------------------------


def _register(found: Library) -> None:
    _check_names(found.path, [native.name for native in found.native.operators])
    operators = [SubgraphOperator(n) if n.is_subgraph else LibraryOperator(n) for n in found.native.operators]
    backends = [*map(Partitioner, found.native.partitioners), *map(Pass, found.native.passes)]
    _check_backends(found.path, [backend.name for backend in backends])
    for op in operators:
        if op.native.gradient is not None:
            _check_gradient(op, operators)
    try:
        for op in operators:
            registry.register(op)
            found.operators.append(op)
        for backend in backends:
            register_backend(backend.name, backend)
            found.backends.append(backend.name)
    except Exception:
        forget(found)
        raise


def _check_names(path: Path, names: list[str]) -> None:
    seen = set()
    for name in names:
        if not name.isidentifier():
            raise MXNetError(f"library {path} registers an operator named {name!r}, which is not a name for a function")
        if name in seen:
            raise MXNetError(f"library {path} registers operator {name} twice")
        taken = registry.find(name)
        if taken is not None:
            raise MXNetError(f"library {path} registers operator {name}, but that name is taken by an operator of "
                             f"{taken.module}; choose another name")  # fmt: skip
        seen.add(name)


def _check_backends(path: Path, names: list[str]) -> None:
    taken = set(known_backends())
    for name in names:
        if name in taken:
            raise MXNetError(f"library {path} registers the pass or partitioner {name!r}, but that name is taken")
        taken.add(name)


def _check_gradient(op: LibraryOperator, operators: list[LibraryOperator]) -> None:
    name = op.native.gradient
    if name not in {other.name for other in operators} and registry.find(name) is None:
        raise MXNetError(f"operator {op.name} of library {op.native.library}: setGradient names {name!r}, which is no "
                         f"operator")  # fmt: skip


def forget(library: Library) -> None:
    """Take what a library registered out of the registry; the library itself stays in memory."""
    for op in library.operators:
        registry.unregister(op.name)
        dispatch.forget(op)
    for name in library.backends:
        unregister_backend(name)
    library.operators, library.backends = [], []


def _show(library: Library) -> None:
    print(f"Found {len(library.operators)} operators in library")
    for k, op in enumerate(library.operators):
        print(f"\tOp[{k}] {op.name}{' isSubgraphOp' if op.native.is_subgraph else ''}")
    print(f"Found {len(library.native.partitioners)} partitioners in library")
    for k, partitioner in enumerate(library.native.partitioners):
        print(f"\tPartitioner[{k}] {partitioner.name}")
        for j, strategy in enumerate(partitioner.strategies):
            print(f"\t\tStrategy[{j}] {strategy.name} subgraphOp: '{strategy.subgraph_op}'")
    print(f"Found {len(library.native.passes)} graph passes in library")
    for k, graph_pass in enumerate(library.native.passes):
        print(f"\tGraph Pass [{k}] {graph_pass.name}")


native_host.set_version(VERSION)
