"""The values that a function reads from outside: numbers and objects in closures, globals and ``self``."""

from __future__ import annotations

import sys
import weakref
from array import array
from collections import UserList, deque
from collections.abc import Callable, Iterable, Mapping, MappingView
from functools import lru_cache, partial
from itertools import count
from random import Random
from types import CellType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from .._core import core
from ..support.errors import OpTypeError

_MOST = 4096  # bytes of a NumPy array that is compared at each call
_PLAIN = (int, bool, str, bytes, type(None), type(Ellipsis))
_BINARY = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor", "lshift", "rshift")
_IMPLIED = frozenset({  # methods that are called without their names, except those that make, copy or show an object
    *(f"__{side}{name}__" for name in _BINARY for side in ("", "r", "i")),
    *(f"__{name}__" for name in (
        "call", "get", "getattr", "getattribute", "getitem", "missing", "len", "iter", "next", "reversed", "contains", "enter",
        "exit", "bool", "int", "float", "complex", "index", "neg", "pos", "abs", "invert", "round", "trunc", "floor", "ceil",
        "eq", "ne", "lt", "le", "gt", "ge", "hash", "str", "format", "bytes", "array", "array_ufunc", "array_function",
    )),
})  # fmt: skip
_MAKING = {"__init__", "__new__"}  # and of classes, these
_CONTAINERS = (tuple, list, set, frozenset, deque, bytearray, array, UserList, MappingView)
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

    def __init__(self, function: Callable, names: dict[str, None] | None = None):
        self._function, self._found = function, ()
        self._watched: list[tuple[Any, Any, Any]] | None = None
        self.names = {} if names is None else names  # that code mentions; they only become more

    def now(self) -> tuple:
        """Return the values that the function reads.

        Raises
        ------
        OpTypeError
            If one is a NumPy array too large to be compared at each call.
        """
        if self._watched is None or not _unchanged(self._watched):
            walk = None
            while walk is None or len(self.names) > len(walk.names):  # attributes with a name that was found meanwhile
                walk = _Walk(self.names)
                walk.value(self._function)
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

    An object may be handed to any function, so of each object all attributes are visited that some code mentions.

    Parameters
    ----------
    met : dict
        The names that code mentions; those of functions that are visited are added.

    Attributes
    ----------
    found : list
        Values, and identities of objects.
    watched : list of (dict or cell, name, value), or None
        The names whose values determine `found`; None if that also depends on a container, or on another object that changes
        in other ways.
    """

    def __init__(self, met: dict[str, None]) -> None:
        self.found: list = []
        self.watched: list[tuple[Any, Any, Any]] | None = []
        self._met, self.names = met, tuple(met)
        self._seen: dict[int, Any] = {}  # by id, kept so that no other object gets it

    def value(self, value: Any) -> None:
        """Add a value, and everything that code can reach through it."""
        kind = type(value)
        if kind in _PLAIN:
            self.found += kind, value
        elif kind is float or kind is complex or isinstance(value, np.generic):  # tells 0.0 from -0.0; NaN equals itself
            self.found += kind, repr(value)
        elif id(value) not in self._seen:
            self._seen[id(value)] = value
            if kind is FunctionType:
                self._function(value)
            elif kind is ModuleType:
                self.found.append(_number(value))
                if not _is_library(value.__name__):
                    self._named(vars(value), self.names)
            elif kind is tuple:
                self.found += kind, len(value)
                for item in value:
                    self.value(item)
            else:
                self._other(value, kind)

    def _other(self, value: Any, kind: type) -> None:
        if kind is MethodType:
            self.value(value.__func__)
            self.value(value.__self__)
            return
        known, self.watched = self.watched, None
        if isinstance(value, core.Dense):
            self.found += value.shape, value.dtype_code
        elif isinstance(value, np.ndarray):
            if value.nbytes > _MOST or value.dtype.hasobject:
                raise OpTypeError(f"the function reads a NumPy array of shape {value.shape} from outside; make it an argument")
            self.found += value.shape, value.dtype.str, value.tobytes()
        elif isinstance(value, _CONTAINERS):
            self.found += kind, len(value)
            for item in value:
                self.value(item)
        elif isinstance(value, Mapping):
            self.found += kind, len(value)
            for item in value.items():
                self.value(item[0])
                self.value(item[1])
        elif isinstance(value, (np.random.Generator, np.random.RandomState, Random)):
            raise OpTypeError("the function has a generator of random numbers from outside, which a plan does not draw from")
        elif isinstance(value, partial):
            for item in (value.func, value.args, value.keywords):
                self.value(item)
        elif isinstance(value, weakref.ref):
            self.value(value())
        else:
            self.watched = known
            self._object(value)
            return
        if not _is_library(kind.__module__):  # a container of a class of one's own may have attributes
            self._object(value)

    def _function(self, function: FunctionType) -> None:
        self.found.append(_number(function.__code__))
        if _is_library(function.__module__):
            return
        names = _names(function.__code__)
        self._met.update(dict.fromkeys(names))
        for cell in function.__closure__ or ():
            found = _content(cell)
            self._watch(cell, None, found)
            self.value(found)
        for defaults in (function.__defaults__, function.__kwdefaults__):
            if defaults:
                self.value(defaults)
        self._named(function.__globals__, names)
        self._named(vars(function), ("__wrapped__",))

    def _watch(self, place: Any, name: str | None, value: Any) -> None:
        if self.watched is not None:
            self.watched.append((place, name, value))

    def _named(self, values: Any, names: Iterable[str]) -> None:
        for name in names:
            found = values.get(name, _ABSENT)
            self._watch(values, name, found)
            if found is not _ABSENT:
                self.found.append(name)
                self.value(found)

    def _object(self, value: Any) -> None:
        """Add the identity of an object, its attributes of the names, and the values that its methods of the names read."""
        self.found.append(_number(value))
        own: Any = {} if isinstance(value, type) else getattr(value, "__dict__", {})
        self._named(own, self.names)
        if "__wrapped__" in own:
            self.value(own["__wrapped__"])
        for c in value.__mro__ if isinstance(value, type) else type(value).__mro__:
            if _is_library(c.__module__):
                continue
            there = vars(c)
            implied = _IMPLIED | _MAKING if isinstance(value, type) else _IMPLIED
            for name in (*self.names, *implied.intersection(there)):
                found = there.get(name, _ABSENT)
                self._watch(there, name, found)
                if found is not _ABSENT and name not in own:
                    self.found.append(name)
                    self._of_class(value, found)

    def _of_class(self, value: Any, found: Any) -> None:
        """Add an attribute of a class: a method, a property, a slot, or a value."""
        if isinstance(found, (MemberDescriptorType, GetSetDescriptorType)):
            self.watched = None
            found = getattr(value, found.__name__, None)
        for part in ("__wrapped__", "fget", "func", "__func__"):
            found = getattr(found, part, found)
        self.value(found)


__all__ = ["Outside"]
