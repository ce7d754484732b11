"""``mx.registry``: classes that are made by name, as initializers, metrics and optimizers are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from ..support import errors
from ..support.errors import OpTypeError, OpValueError, UnregisteredError, closest, shown, translated
from ..support.missing import hooks

_REGISTRY: dict[type, dict[str, type]] = {}
Klass = TypeVar("Klass", bound=type)  # a decorated class keeps its type


def table_of(base_class: type) -> dict[str, type]:
    """Return the table of a base class itself, which registering changes."""
    return _REGISTRY.setdefault(base_class, {})


def get_registry(base_class: type) -> dict[str, type]:
    """Return the classes registered for a base class, by name."""
    return dict(_REGISTRY.get(base_class, {}))


def get_register_func(base_class: type, nickname: str) -> Callable[[Klass], Klass]:
    """Return the function that registers subclasses of a class, by default under their names in small letters.

    Examples
    --------
    >>> class Shape:
    ...     pass
    >>> register, create = get_register_func(Shape, "shape"), get_create_func(Shape, "shape")
    >>> @register
    ... class Circle(Shape):
    ...     def __init__(self, radius=1):
    ...         self.radius = radius
    >>> create("circle", radius=2).radius, create('["circle", {"radius": 3}]').radius
    (2, 3)
    """
    table = table_of(base_class)

    def register(klass: Klass, name: str | None = None) -> Klass:
        if not (isinstance(klass, type) and issubclass(klass, base_class)):
            raise OpTypeError(f"register: {shown(klass)} is not a subclass of {base_class.__name__}")
        key = (klass.__name__ if name is None else name).lower()
        before = table.get(key)
        if before is not None and before is not klass:
            now, then = (f"{k.__module__}.{k.__name__}" for k in (klass, before))
            errors.warn(f"{nickname} {key!r} is now {now}, no longer {then}")
        table[key] = klass
        for kind in klass.__mro__:
            if kind.__module__.startswith("mxop."):
                errors.all_end_at_caller(kind)
        return klass

    register.__doc__ = f"Register a class of {nickname}."
    return register


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Callable[[Klass], Klass]]:
    """Return the function whose decorators register a class under further names."""
    register: Callable[..., Any] = get_register_func(base_class, nickname)

    def alias(*aliases: str) -> Callable[[Klass], Klass]:
        def decorate(klass: Klass) -> Klass:
            for name in aliases:
                register(klass, name)
            return klass

        return decorate

    return alias


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Return the function that makes an object from a name and arguments, a dict, or JSON of either."""
    table = table_of(base_class)

    @errors.ends_at_caller
    def create(*args: Any, **kwargs: Any) -> Any:
        if not args and nickname not in kwargs:
            raise OpTypeError(f"create: which {nickname}? expected a name, or {nickname}=")
        what, args = (args[0], args[1:]) if args else (kwargs.pop(nickname), ())
        if isinstance(what, dict) or (isinstance(what, str) and what.startswith(("[", "{"))):
            _no_more(what, args, kwargs, nickname)
            given = _parsed(what, nickname) if isinstance(what, str) else what
            with translated(f"create: {nickname}={shown(what)}"):  # of a file, perhaps
                return create(given[0], **given[1]) if isinstance(given, list) else create(**given)
        if isinstance(what, base_class):
            _no_more(what, args, kwargs, nickname)
            return what
        if not isinstance(what, str):
            raise OpTypeError(f"create: {nickname}={shown(what)} is neither a name nor of class {base_class.__name__}")
        if what.lower() not in table:
            known = ", ".join(sorted(table))
            raise UnregisteredError(f"{nickname} {what!r} is not registered{closest(what.lower(), table)}; there are: {known}")
        return table[what.lower()](*args, **kwargs)

    create.__doc__ = f"Make the {nickname} of a name, a dict or JSON; one that is made already is returned."
    return create


def _parsed(text: str, nickname: str) -> Any:
    """Return what stands in JSON: a dict, or a list of a name and a dict."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise OpValueError(f"create: {nickname}={shown(text)} is not JSON: {problem}") from None
    name, more = given if isinstance(given, list) and len(given) == 2 else (nickname, given)
    if not (isinstance(name, str) and isinstance(more, dict)):
        raise OpValueError(f"create: {nickname}={shown(text)} is neither a dict nor a list of a name and a dict")
    return given


def _no_more(what: Any, args: tuple, kwargs: dict, nickname: str) -> None:
    if args or kwargs:
        raise OpTypeError(f"create: {nickname}={shown(what)} takes no more arguments")


__all__ = ["get_alias_func", "get_create_func", "get_register_func", "get_registry"]

__getattr__, __dir__ = hooks(globals(), __all__)
