"""The values that a function reads from outside: numbers and objects in closures, globals and ``self``."""

from __future__ import annotations

import sys
import weakref
from array import array
from collections import UserList, deque
from collections.abc import Callable, Mapping, MappingView
from functools import lru_cache, partial
from itertools import count
from types import CellType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from .._core import core
from ..support.errors import OpTypeError

_MOST = 4096  # bytes of a NumPy array that is compared at each call
_PLAIN = (int, bool, str, bytes, type(None), type(Ellipsis))
_CONTAINERS = (tuple, list, set, frozenset, deque, bytearray, array, UserList, MappingView)
#: Methods that are called without their names; those of numbers, and what makes objects, are looked for where a class has them.
_IMPLIED = frozenset({"__call__", "__getattr__", "__getitem__"})
_SELDOM = {"__get__", "__enter__", "__iter__", "__next__", "__len__", "__contains__", *dir(int)}.difference(dir(object))
_MAKING = _SELDOM | {"__init__", "__new__"}
_LIBRARIES = {"mxop", "numpy", "scipy", *sys.stdlib_module_names} - {"__main__"}
_ABSENT = object()
_numbers = count()
_number_of: dict[int, tuple[Any, int]] = {}  # by id, with a weak reference, or the object itself


class Outside:
    """The values that a function reads from outside: :meth:`now` gives equal tuples if its results are the same.

    Followed are closures, globals, default arguments, attributes that code names, containers, and the functions and methods
    that are called, except those of libraries.

    Examples
    --------
    >>> rate = {"now": 2}
    >>> read = Outside(partial(print, rate))
    >>> before = read.now()
    >>> rate["now"] = 3
    >>> before == read.now()
    False
    """

    def __init__(self, function: Callable):
        self._function, self._found = function, ()
        self._watched: list[tuple[Any, Any, Any]] | None = None

    def now(self) -> tuple:
        """Return the values that the function reads.

        Raises
        ------
        OpTypeError
            If one is a NumPy array too large to be compared at each call.
        """
        if self._watched is None or not _unchanged(self._watched):
            walk = _Walk()
            walk.value(self._function, frozenset())
            self._found, self._watched = tuple(walk.found), walk.watched
        return self._found


def _unchanged(watched: list[tuple[Any, Any, Any]]) -> bool:
    """Return whether each name (None for a cell) still has the same value."""
    for place, name, value in watched:  # noqa: SIM110  (twice as fast as all())
        if (place.get(name, _ABSENT) if name is not None else _content(place)) is not value:
            return False
    return True


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT


@lru_cache(1024)
def _names(code: CodeType) -> frozenset[str]:
    """Return the names that code mentions: of globals and attributes, in inner functions too, and strings for ``getattr``."""
    words = (c for c in code.co_consts if isinstance(c, str) and c.isidentifier())
    return frozenset(code.co_names).union(words, *(_names(c) for c in code.co_consts if isinstance(c, CodeType)))


def _is_library(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES


def _number(value: Any) -> int:
    """Return a number that identifies an object, and is never used for another one."""
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
    """Visits everything that a function can reach.

    Attributes
    ----------
    found : list
        Values, and identities of objects.
    watched : list of (dict or cell, name, value), or None
        The names whose values determine `found`; None if that also depends on a container, or on another object that changes
        in other ways.
    """

    def __init__(self) -> None:
        self.found: list = []
        self.watched: list[tuple[Any, Any, Any]] | None = []
        self._seen: set[tuple[int, frozenset[str]]] = set()

    def value(self, value: Any, names: frozenset[str]) -> None:
        """Add a value, and everything that code with these names can reach through it."""
        kind = type(value)
        if kind in _PLAIN:
            self.found += kind, value
        elif kind is float or kind is complex:  # distinguishes 0.0 from -0.0; NaN equals itself
            self.found += kind, repr(value)
        elif (id(value), names) not in self._seen:
            self._seen.add((id(value), names))
            if kind is FunctionType:
                self._function(value)
            elif kind is ModuleType:
                self.found.append(_number(value))
                if not _is_library(value.__name__):
                    self._named(vars(value), names)
            elif kind is tuple:
                self.found += kind, len(value)
                for item in value:
                    self.value(item, names)
            else:
                self._other(value, kind, names)

    def _other(self, value: Any, kind: type, names: frozenset[str]) -> None:
        if kind is MethodType:
            code = getattr(value.__func__, "__code__", None)
            self.value(value.__func__, names)
            self.value(value.__self__, names if code is None else _names(code))
            return
        known, self.watched = self.watched, None
        if isinstance(value, np.generic):
            self.found += kind, repr(value)
        elif isinstance(value, core.Dense):
            self.found += value.shape, value.dtype_code
        elif isinstance(value, np.ndarray):
            if value.nbytes > _MOST or value.dtype.hasobject:
                raise OpTypeError(f"the function reads a NumPy array of shape {value.shape} from outside; make it an argument")
            self.found += value.shape, value.dtype.str, value.tobytes()
        elif isinstance(value, _CONTAINERS):
            self.found += kind, len(value)
            for item in value:
                self.value(item, names)
        elif isinstance(value, Mapping):
            self.found += kind, len(value)
            for item in value.items():
                self.value(item[0], names)
                self.value(item[1], names)
        elif isinstance(value, partial):
            for item in (value.func, value.args, value.keywords):
                self.value(item, names)
        elif isinstance(value, weakref.ref):
            self.value(value(), names)
        else:
            self.watched = known
            self._object(value, names)

    def _function(self, function: FunctionType) -> None:
        self.found.append(_number(function.__code__))
        if _is_library(function.__module__):
            return
        names = _names(function.__code__)
        for cell in function.__closure__ or ():
            found = _content(cell)
            self._watch(cell, None, found)
            self.value(found, names)
        for defaults in (function.__defaults__, function.__kwdefaults__):
            if defaults:
                self.value(defaults, names)
        self._named(function.__globals__, names)

    def _watch(self, place: Any, name: str | None, value: Any) -> None:
        if self.watched is not None:
            self.watched.append((place, name, value))

    def _named(self, values: Any, names: frozenset[str]) -> None:
        for name in names:
            found = values.get(name, _ABSENT)
            self._watch(values, name, found)
            if found is not _ABSENT:
                self.found.append(name)
                self.value(found, names)

    def _object(self, value: Any, names: frozenset[str]) -> None:
        """Add the identity of an object, its attributes of these names, and the values that its methods of these names read."""
        self.found.append(_number(value))
        own: Any = {} if isinstance(value, type) else getattr(value, "__dict__", {})
        self._named(own, names)
        if "__wrapped__" in own:
            self.value(own["__wrapped__"], names)
        for c in value.__mro__ if isinstance(value, type) else type(value).__mro__:
            if _is_library(c.__module__):
                continue
            there = vars(c)
            for name in names | _IMPLIED | (_MAKING if isinstance(value, type) else _SELDOM).intersection(there):
                found = there.get(name, _ABSENT)
                self._watch(there, name, found)
                if found is not _ABSENT and name not in own:
                    self.found.append(name)
                    self._of_class(value, found, names)

    def _of_class(self, value: Any, found: Any, names: frozenset[str]) -> None:
        """Add an attribute of a class: a method, a property, a slot, or a value."""
        if isinstance(found, (MemberDescriptorType, GetSetDescriptorType)):
            self.watched = None
            self.value(getattr(value, found.__name__, None), names)
            return
        for part in ("__wrapped__", "fget", "func", "__func__"):
            found = getattr(found, part, found)
        self.value(found, names)
        reader = found if isinstance(found, FunctionType) else getattr(type(found), "__get__", None)
        inner = _names(reader.__code__) if isinstance(reader, FunctionType) else names
        if (id(value), inner) not in self._seen:
            self._seen.add((id(value), inner))
            self._object(value, inner)


__all__ = ["Outside"]
