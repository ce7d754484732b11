"""Packages that provide operators: they declare the entry point group ``mxop.operators``.

Each is imported when a name is not found, or when all names are listed.  A package that fails causes a warning and does not
affect others.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

from ..support.errors import PackageWarning

GROUP = "mxop.operators"


class Package:
    """A package that declares operators.

    Attributes
    ----------
    name, version : str
        Of the distribution.
    points : list of importlib.metadata.EntryPoint
    problems : list of str
        Errors so far: modules that cannot be imported, names that were taken.
    """

    def __init__(self, name: str, version: str):
        self.name, self.version = name, version
        self.points: list[Any] = []
        self.problems: list[str] = []

    def __str__(self) -> str:
        return f"package {self.name} ({', '.join(sorted({p.module for p in self.points}))})"

    def has(self, module: str) -> bool:
        """Return whether a module belongs to the package."""
        return any(_folder(p.module) == module or module.startswith(_folder(p.module) + ".") for p in self.points)

    def complain(self, problem: str) -> None:
        """Warn of a problem once; while packages are loaded, warnings wait, so that one raised as an error stops no other."""
        if problem in self.problems:
            return
        self.problems.append(problem)
        waiting = getattr(_here, "waiting", None)
        if waiting is None:
            _warn(self, problem)
        else:
            waiting.append((self, problem))


def _warn(package: Package, problem: str) -> None:
    warnings.warn(f"package {package.name}: {problem}", PackageWarning, stacklevel=3)


def _folder(module: str) -> str:
    """Return the top-level package of an entry point's module."""
    return module.partition(".")[0]


_packages: dict[str, Package] | None = None
_loaded = False
_here = threading.local()


def announced() -> dict[str, Package]:
    """Return the packages of this environment that declare operators, sorted by name."""
    global _packages
    if _packages is None:
        from importlib.metadata import entry_points

        found: dict[str, Package] = {}
        for point in entry_points(group=GROUP):
            name = point.dist.name if point.dist is not None else _folder(point.module)
            package = found.setdefault(name, Package(name, point.dist.version if point.dist is not None else ""))
            package.points.append(point)
        _packages = dict(sorted(found.items()))
    return _packages


def of(module: str) -> Package | None:
    """Return the package that declares the operators of a module, or None."""
    return next((p for p in announced().values() if p.has(module)), None)


def named(module: str) -> str:
    """Return the name of an operator's origin, for messages: its package or module.

    Examples
    --------
    >>> named("mxop.ops.math")
    'mxop.ops.math'
    """
    package = None if module.startswith("mxop.") else of(module)
    return module if package is None else str(package)


def needed(module: str) -> str | None:
    """Return the distribution or module that a file lists as required for an operator of a module; None if none is."""
    if module.startswith(("mxop.", "__main__", "<")):
        return None
    package = of(module)
    return _folder(module) if package is None else package.name


def load_entry_points() -> None:
    """Import the packages that declare the entry point group ``mxop.operators``, once."""
    global _loaded
    if _loaded or getattr(_here, "waiting", None) is not None:  # a package under import may look names up
        return
    waiting = _here.waiting = []
    try:
        # No lock: imports take Python's own locks, and a thread that holds one of those may get here too.
        for package in announced().values():
            for point in package.points:
                _load(package, point)
    finally:
        _here.waiting = None
    _loaded = True
    for package, problem in waiting:
        _warn(package, problem)


def _load(package: Package, point: Any) -> None:
    try:
        point.load()
    except (Exception, SystemExit) as problem:
        package.complain(f"{point.value} cannot be imported: {type(problem).__name__}: {problem}")
