"""What a function reads besides its arguments: numbers and objects from closures, globals and ``self``.

May import :mod:`mxop._core`.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from itertools import count
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from .._core import core
from ..errors import OpTypeError

_MOST = 4096  # bytes of a NumPy array that are compared at each call
_PLAIN = (int, bool, str, bytes, type(None), type(Ellipsis))
_IMPLIED = frozenset({"__call__", "__getattr__", "__getitem__"})  # of methods, what code calls without their names
_LIBRARIES = {"mxop", "numpy", "scipy", *sys.stdlib_module_names} - {"__main__"}
_numbers = count()
_number_of: dict[int, tuple[Any, int]] = {}  # by id, with what tells that the object is gone


def outside(function: Callable) -> tuple:
    """Return what a function reads besides its arguments, so that equal tuples mean equal results.

    Followed are closures, globals, default arguments, attributes that are mentioned by name, containers, and the functions and
    methods that are called, except those of libraries.

    Raises
    ------
    OpTypeError
        When it reads a NumPy array that is too large to be compared at each call.

    Examples
    --------
    >>> rate = {"now": 2}
    >>> before = outside(lambda x: x * rate["now"])
    >>> rate["now"] = 3
    >>> before == outside(lambda x: x * rate["now"])
    False
    """
    walk = _Walk()
    walk.value(function, frozenset())
    return tuple(walk.found)


@lru_cache(1024)
def _names(code: CodeType) -> frozenset[str]:
    """Return the names that code mentions: of globals and attributes, in inner functions too, and words for ``getattr``."""
    words = (c for c in code.co_consts if isinstance(c, str) and c.isidentifier())
    return frozenset(code.co_names).union(words, *(_names(c) for c in code.co_consts if isinstance(c, CodeType)))


def _is_library(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES


def _number(value: Any) -> int:
    """Return a number that no other object has, nor one made later."""
    found = _number_of.get(id(value))
    if found is None:
        key = id(value)
        try:
            alive: Any = weakref.ref(value, lambda _: _number_of.pop(key, None))
        except TypeError:
            alive = value
        found = _number_of[key] = alive, next(_numbers)
    return found[1]


class _Walk:
    """Goes over what a function can reach; `found` is what it came by."""

    def __init__(self) -> None:
        self.found: list = []
        self._seen: set[tuple[int, frozenset[str]]] = set()

    def value(self, value: Any, names: frozenset[str]) -> None:
        """Note a value, and what code that mentions these names can reach through it."""
        kind = type(value)
        if kind in _PLAIN:
            self.found += kind, value
        elif kind in (float, complex) or isinstance(value, np.generic):  # 0.0 is not -0.0, and NaN is itself
            self.found += kind, repr(value)
        elif isinstance(value, core.Dense):
            self.found += value.shape, value.dtype_code
        elif isinstance(value, np.ndarray):
            if value.nbytes > _MOST or value.dtype.hasobject:
                raise OpTypeError(
                    f"the function reads a NumPy array of shape {value.shape} from outside; make it an argument"
                )
            self.found += value.shape, value.dtype.str, value.tobytes()
        elif (id(value), names) not in self._seen:
            self._seen.add((id(value), names))
            self._inside(value, kind, names)

    def _inside(self, value: Any, kind: type, names: frozenset[str]) -> None:
        if isinstance(value, (tuple, list, set, frozenset)):
            self.found += kind, len(value)
            for item in value:
                self.value(item, names)
        elif isinstance(value, Mapping):
            self.found += kind, len(value)
            for item in value.items():
                self.value(item[0], names)
                self.value(item[1], names)
        elif isinstance(value, ModuleType):
            self.found.append(_number(value))
            if not _is_library(value.__name__):
                self._named(vars(value), names)
        elif isinstance(value, MethodType):
            self.value(value.__func__, names)
            code = getattr(value.__func__, "__code__", None)
            self.value(value.__self__, names if code is None else _names(code))
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, partial):
            for item in (value.func, value.args, value.keywords):
                self.value(item, names)
        else:
            self._object(value, names)

    def _function(self, function: FunctionType) -> None:
        self.found.append(_number(function.__code__))
        if _is_library(function.__module__):
            return
        names = _names(function.__code__)
        for cell in function.__closure__ or ():
            try:
                self.value(cell.cell_contents, names)
            except ValueError:  # it is empty
                self.found.append(None)
        self.value((function.__defaults__, function.__kwdefaults__), names)
        self._named(function.__globals__, names)

    def _named(self, values: dict[str, Any], names: frozenset[str]) -> None:
        for name in names:
            if name in values:
                self.found.append(name)
                self.value(values[name], names)

    def _object(self, value: Any, names: frozenset[str]) -> None:
        """Note which object it is, its attributes of these names, and what methods and properties of these names read."""
        self.found.append(_number(value))
        own: Any = {} if isinstance(value, type) else getattr(value, "__dict__", {})
        self._named(own, names)
        if "__wrapped__" in own:
            self.value(own["__wrapped__"], names)
        for c in value.__mro__ if isinstance(value, type) else type(value).__mro__:
            if _is_library(c.__module__):
                continue
            for name in (names | _IMPLIED) & vars(c).keys() - own.keys():
                self.found.append(name)
                self._of_class(value, vars(c)[name], names)

    def _of_class(self, value: Any, found: Any, names: frozenset[str]) -> None:
        """Note what a class has under a name: a method or property, a slot, or a value."""
        if isinstance(found, (MemberDescriptorType, GetSetDescriptorType)):
            self.value(getattr(value, found.__name__, None), names)
            return
        for part in ("__wrapped__", "fget", "func", "__func__"):
            found = getattr(found, part, found)
        self.value(found, names)
        inner = _names(found.__code__) if isinstance(found, FunctionType) else names
        if (id(value), inner) not in self._seen:
            self._seen.add((id(value), inner))
            self._object(value, inner)


__all__ = ["outside"]
