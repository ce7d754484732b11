"""The functions of ``mx.sym``: one per registered name, made when it is first asked for.

Nothing is made at import, so a thousand operators cost nothing, and an operator that a user registers is there at once.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from ..graph.calls import by_kind
from ..ndarray import sampling
from ..opdef import Operator, fluent, registry
from ..opdef.above import provide
from ..opdef.docs import documentation, signature
from ..support.errors import MXNetError, ends_at_caller, shorten
from ..support.missing import error, names_shown
from .control_flow import cond, foreach, while_loop
from .symbol import Symbol, create, invoke

_made: dict[tuple[str, str], Callable] = {}  # by registered name, and name in a namespace


def function_for(registered: str, op: Operator, name: str) -> Callable:
    """Return the function of one name of an operator: `registered` is ``_contrib_quadratic``, `name` that in its namespace.

    Symbols without a name are called after `name`.
    """
    found = _made.get((registered, name))
    if found is not None:
        return found
    hint = name.lower()

    def function(*args: Any, **kwargs: Any) -> Symbol:
        try:
            return invoke(op, hint, *args, **kwargs)
        except MXNetError as problem:
            shorten(problem)
            raise

    function.__name__ = name
    function.__qualname__ = name
    space = registry.namespace_of(registered)[0]  # pickle looks there
    function.__module__ = ".".join(filter(None, (__name__.rpartition(".")[0], space)))
    function.__doc__ = documentation(op, "Symbol")
    function.__signature__ = signature(op, symbol=True).replace(return_annotation=Symbol)  # type: ignore[attr-defined]
    _made[registered, name] = function
    return function


def lookup(name: str, prefixes: tuple[str, ...], where: str) -> Any:
    """Return the function of a name in the namespace `where`, whose registered names begin with one of `prefixes`."""
    for attempt in range(0 if name.startswith("__") else 2):
        for prefix in prefixes:
            op = registry.find(prefix + name)
            if op is not None:
                return function_for(prefix + name, op, name)
        if attempt == 0:
            registry.load_entry_points()
    raise registry.not_in_namespace(name, where, partial(dir, sys.modules[where]))


def operator_function(name: str) -> Callable | None:
    """Return the function behind a method of symbols: of an operator of that name, or of its hidden form."""
    for registered in (name, f"_{name}"):
        op = registry.find(registered)
        if op is not None:
            return function_for(registered, op, registered)
    return None


provide(operator_of_symbols=operator_function)


def _method(name: str) -> Callable:
    found = operator_function(name)
    if found is None:
        raise error(f"'Symbol' object has no attribute {name!r}", name, "Symbol", partial(dir, Symbol))
    return found


for _name in fluent.NAMES:
    setattr(Symbol, _name, fluent.Fluent(_name, _method))


def names_in(prefix: str) -> list[str]:
    """Return the names of a namespace."""
    registry.load_entry_points()
    if not prefix:
        return [n for n in registry.names(hidden=False) if registry.namespace_of(n)[0] == ""]
    return [n[len(prefix) :] for n in registry.names() if n.startswith(prefix)]


#: How MXNet calls the arguments of some functions.
_NAMED = dict.fromkeys(("pow", "power"), ("base", "exp")) | dict.fromkeys(("maximum", "minimum", "hypot"), ("left", "right"))


def python_function(name: str) -> Callable | None:
    """Return a function that takes symbols or numbers, such as ``maximum``, or None."""
    found = _made.get(("", name))
    if found is None:
        from ..ops.binary import PYTHON_NAMES

        choice = PYTHON_NAMES.get(name)
        if choice is None:
            return None

        def call(op_name: str, hint: str, inputs: list, options: dict[str, Any]) -> Symbol:
            label, attr = options.pop("name", None), options.pop("attr", None)
            return create(registry.get(op_name), hint, inputs, options, label, attr)

        found = ends_at_caller(by_kind(choice, choice.symbols, call, Symbol))
        found.__name__ = found.__qualname__ = name
        found.__doc__ = f"``{name}`` of two symbols, or of a symbol and a number."
        if name in _NAMED:
            found = choice.named(found, *_NAMED[name])
        _made["", name] = found
    return found


class Namespace(types.ModuleType):
    """A module such as ``mx.sym.contrib``, filled from the registry on demand."""

    def __init__(self, name: str, prefixes: tuple[str, ...]):
        super().__init__(name, f"Operators whose registered names begin with {prefixes[0]!r}.")
        self.__dict__["_prefixes"] = prefixes
        self.__path__: list[str] = []  # so that the import system asks about a name that is not there

    @ends_at_caller
    def __getattr__(self, name: str) -> Any:
        return lookup(name, self.__dict__["_prefixes"], self.__name__)

    def __dir__(self) -> list[str]:
        prefix = self.__dict__["_prefixes"][-1]
        written = [n for n, value in self.__dict__.items() if callable(value)]  # in Python: shuffle, foreach
        return names_shown(self.__dict__, written, (f"_{n}" if prefix == "_" else n for n in names_in(prefix)))


def _drawing(name: str) -> Callable:
    return function_for(name, registry.get(name), name)


def make_namespaces(parent: types.ModuleType) -> None:
    """Add ``contrib``, ``linalg`` and the others to a package."""
    spaces = {space: (prefix,) for prefix, space in registry.PREFIXES.items()}
    spaces |= {"op": ("",), "_internal": ("", "_")}
    draw = sampling.on_symbols(_drawing, Symbol)
    for space, prefixes in spaces.items():
        module = Namespace(f"{parent.__name__}.{space}", prefixes)
        if space == "random":
            vars(module).update(sampling.functions(_drawing, draw, get_prob=True))
        elif space == "contrib":
            vars(module).update(sampling.contrib_functions(draw))
            vars(module).update(cond=cond, foreach=foreach, while_loop=while_loop)
        sys.modules[module.__name__] = module
        setattr(parent, space, module)


def _forget(name: str, op: Operator | None) -> None:
    """Drop the function of a name that was registered anew."""
    for key in [key for key in list(_made) if key[0] == name]:
        _made.pop(key, None)


registry.on_register(_forget)
