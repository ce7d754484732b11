"""Operators of the user's own files, as commands name them: ``my.py:mish``, ``package.module:mish``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType

from .. import ndarray
from ..opdef import Operator, describe, registry
from ..support.errors import closest, users_line
from . import BadInput, Stop


def module_of(source: str) -> ModuleType:
    """Import a file or a module, as a program in the file's folder would.

    Raises
    ------
    BadInput
        When that fails; the line of the user's code is told.
    """
    if not source.endswith(".py"):
        folder, load = os.getcwd(), lambda: importlib.import_module(source)
    elif not os.path.isfile(source):
        raise BadInput(f"{source}: there is no such file")
    else:
        folder, load = os.path.dirname(os.path.abspath(source)), lambda: _of_file(source)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return load()
    except (Exception, SystemExit) as problem:
        line = users_line(problem.__traceback__)
        told = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise BadInput(f"{source} cannot be imported: {told}" + (f" ({line})" if line and line not in told else "")) from None


def _of_file(path: str) -> ModuleType:
    name = os.path.splitext(os.path.basename(path))[0]
    name = f"{name}_of_user" if name in sys.modules else name  # numpy.py must not be NumPy to others
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def operator_named(name: str) -> Operator:
    """Return a registered operator, or one of the user's as ``my.py:mish``; upper and lower case need not agree.

    Raises
    ------
    BadInput
        When a file has no such operator, or what it has is none.
    MXNetError
        When no operator has the name; names the closest.
    """
    source, colon, attribute = name.rpartition(":")
    if not colon and name.endswith(".py"):
        raise BadInput(f"{name}: which operator? write {name}:NAME; its operators: {_listed(module_of(name))}")
    if not colon:
        name = name.removeprefix("mx.").removeprefix("nd.").removeprefix("sym.")
        if registry.find(name) is None:
            registry.load_entry_points()
        forms = {n: (n.casefold(), ".".join(registry.namespace_of(n)).casefold()) for n in registry.names()}
        same = [n for n, written in forms.items() if name.casefold() in written]  # as ops lists it: linalg.gemm2
        if registry.find(name) is None and not same and callable(getattr(ndarray, name, None)):
            raise Stop(f"{name!r} is no operator; in Python, help(mx.nd.{name}) describes it")
        return registry.get(name if registry.find(name) is not None or not same else same[0])
    module = module_of(source)
    found, known = getattr(module, attribute, None), _listed(module)
    if found is None:
        raise BadInput(f"{source} has no {attribute!r}{closest(attribute, known.split(', '))}; its operators: {known}")
    if not isinstance(found, Operator):
        raise BadInput(f"{name} is no operator (its type is {type(found).__name__}): decorate a function with "
                       f"@mxop.op.elementwise, or name one of its operators: {known}")  # fmt: skip
    return found


def _listed(module: ModuleType) -> str:
    return ", ".join(n for n, value in vars(module).items() if isinstance(value, Operator)) or "none"


def info(name: str) -> None:
    """Print everything about one operator."""
    print(describe(operator_named(name).name))
