"""Names that are not there: what MXNet has and mxop does not have yet, else what may have been meant.

Every lookup that fails (in a module, a namespace of operators, an array, a symbol, a file) makes its error here.  No
suggestion is a name that MXNet gives to something else, nor hidden.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import Any

import numpy as np

from . import mxnet_names
from .errors import Later, NotYetError, NotYetImportError, OpLookupError, closest, ends_at_caller, nearest
from .moved import Moved, public

#: Names of :mod:`mxop.base` that MXNet's modules have, too, as they import them; programs import them from anywhere.
KINDS = {"string_types": (str,), "integer_types": (int, np.int32, np.int64), "numeric_types": (float, int, np.generic)}
NOT_YET = "mxop does not have it yet"


def error(
    told: str, name: str, module: str, known: Callable[[], Iterable[str]] = tuple, there: str | None = None
) -> OpLookupError:
    """Return the error for a name that is not there.

    Parameters
    ----------
    told : str
        How the message begins: where there is no such name.
    module : str
        A module of mxop, or the class ``'NDArray'`` or ``'Symbol'``.
    known : callable
        Returns the names that are there; it is called where a suggestion is to be made.
    there : str, optional
        Where mxop has an operator of this name instead.

    Examples
    --------
    >>> error("module 'mxop' has no attribute 'gluon'", "gluon", "mxop")
    NotYetError("module 'mxop' has no attribute 'gluon': MXNet has mx.gluon, mxop does not have it yet")
    """
    if name.startswith("__"):  # what Python and other packages look for in every object
        return OpLookupError(told)
    path = mxnet_names.path_of(module, name)
    if path is not None and is_elsewhere(path, module):
        there = path
    elif path is not None:
        return NotYetError(f"{told}: MXNet has {path}, {NOT_YET}" + (f"; there is {there}" if there else ""))
    if there:
        return OpLookupError(f"{told}; it is {there}")
    if name.startswith("_"):
        return OpLookupError(told)
    return OpLookupError(Later(lambda: told + suggestion(name, known(), mxnet_names.listed(module))))


def is_elsewhere(path: str, module: str) -> bool:
    """Return whether mxop has a name of MXNet's, in another module than the one where it was looked for.

    Examples
    --------
    >>> is_elsewhere("mx.nd.sparse.csr_matrix", "mxop.ndarray"), is_elsewhere("mx.gluon.nn", "mxop")
    (True, False)
    """
    place: Any = sys.modules["mxop"]
    *parents, name = path.split(".")[1:]
    for parent in parents:
        place = getattr(place, parent, None)
    return public(getattr(place, "__name__", module)) != public(module) and hasattr(place, name)


def suggestion(name: str, known: Iterable[str], of_mxnet: Iterable[str] = ()) -> str:
    """Return what may have been meant, as :func:`~mxop.errors.closest` does; that may be a name of MXNet's.

    Examples
    --------
    >>> suggestion("softmaxoutput", ["softmax"], ["softmax", "SoftmaxOutput"])
    "; did you mean 'SoftmaxOutput', which MXNet has and mxop does not have yet?"
    """
    hidden = name.startswith("_")
    known = {k for k in known if k.startswith("_") <= hidden}
    found = nearest(name, sorted(known.union(of_mxnet)))
    if found and found[0] not in known:
        return f"; did you mean {found[0]!r}, which MXNet has and mxop does not have yet?"
    return closest(name, sorted(known))


def attribute(module: str, name: str, known: Callable[[], Iterable[str]] = tuple, there: str | None = None) -> OpLookupError:
    """Return the error for an attribute that a module does not have; see :func:`error`."""
    module = public(module)
    return error(f"module {module!r} has no attribute {name!r}", name, module, known, there)


def names_shown(namespace: dict[str, Any], *names: Iterable[str]) -> list[str]:
    """Return what ``dir`` of a module shows: the given names, and what every module has."""
    own = (n for n in list(namespace) if n.startswith("__") and n not in ("__getattr__", "__dir__"))
    return sorted({*own, *(n for some in names for n in some)})


def hooks(
    namespace: dict[str, Any], names: Collection[str], later: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a public module by its ``globals()`` and ``__all__``; it has :data:`KINDS`.

    `later` says where names are that are imported when they are first used: ``module:name``, or a module.
    """
    places = later or {}
    namespace.setdefault("__path__", [])  # so that ``from mxop.util import use_np`` comes to the finder below

    @ends_at_caller
    def __getattr__(name: str) -> Any:
        if name in KINDS:
            return KINDS[name]
        if name in places:
            module, _, own = places[name].partition(":")
            found = namespace[name] = getattr(import_module(module), own) if own else import_module(module)
            return found
        raise attribute(namespace["__name__"], name, lambda: names)

    def __dir__() -> list[str]:
        return names_shown(namespace, names)

    return __getattr__, __dir__


class Finder:
    """Says of ``import mxop.gluon`` what Python would only call a module that is not there.

    It comes last on ``sys.meta_path``: all that can be found has been found before it is asked.
    """

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the specification of a name that MXNet has, which is looked into once it is loaded; None for all else.

        Nothing is imported here, where Python holds a lock that all imports need: other threads would wait for ever.
        """
        module, _, name = Moved.home(fullname).rpartition(".")
        package = sys.modules.get(module)
        if package is None or module.partition(".")[0] != "mxop" or name.startswith("__") or name in vars(package):
            return None
        return None if mxnet_names.path_of(public(module), name) is None else ModuleSpec(fullname, Finder)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> Any:
        """Raise the error for the name; return the module if another thread, which imports its package, has made it."""
        module, _, name = Moved.home(spec.name).rpartition(".")
        import_module(module)
        if spec.name in sys.modules:
            return sys.modules[spec.name]
        known = mxnet_names.path_of(public(module), name)
        if known is None or hasattr(sys.modules.get(module), name) or is_elsewhere(known, public(module)):
            raise ModuleNotFoundError(f"No module named {spec.name!r}", name=spec.name)
        # without its name in the error, which ``from mxop import gluon`` would take for a reason to go on
        raise NotYetImportError(f"cannot import {name!r} from {public(module)!r}: MXNet has {known}, {NOT_YET}")

    @staticmethod
    def exec_module(module: Any) -> None:
        """Do nothing: what comes so far has been made."""


def watch_imports() -> None:
    """Put the finder at the end of the import system's list, once, however often the package is imported."""
    sys.meta_path[:] = [f for f in sys.meta_path if getattr(f, "__module__", None) != __name__]
    sys.meta_path.append(Finder)  # type: ignore[arg-type]
