"""Attributes as MindSpore's infos declare them, as parameters of an operator."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..opdef.params import REQUIRED, Bad, Param, Shape, param_from
from ..support.errors import OpValueError

_PLAIN: dict[str, Any] = {"int": int, "float": float, "bool": bool, "str": str, "listInt": Shape}
_ITEMS: dict[str, type | tuple[type, ...]] = {"listFloat": (int, float), "listStr": str, "listBool": bool}


def parameters(name: str, declared: Sequence[dict[str, Any]]) -> tuple[Param, ...]:
    """Return the parameters that attributes of an info stand for."""
    return tuple(_parameter(name, attr) for attr in declared)


def _parameter(name: str, attr: dict[str, Any]) -> Param:
    default = attr.get("value", attr.get("defaultValue", attr.get("default_value", REQUIRED)))
    if default is REQUIRED and attr.get("paramType") == "optional":
        default = None
    kind = attr.get("type", "all")
    try:
        if kind in _PLAIN:
            return param_from(attr["name"], _PLAIN[kind], default, parameters)
        parse: Callable = _parse_any if kind == "all" else _parse_list(kind)
        found = Param(attr["name"], object, REQUIRED, default is None, (), None, kind, parse)
        return found if default is REQUIRED else found._replace(default=found.parse(default))
    except Bad as problem:
        raise OpValueError(f"Custom {name}: the default {default!r} of attribute {attr['name']!r} is not {problem}") from None


def _literal(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
    return value


def _parse_any(value: Any) -> Any:
    """A number, string or list of those; text that reads as one becomes it, as when it comes from JSON."""
    found = _literal(value)
    found = found.item() if hasattr(found, "item") else found
    found = _frozen(found)
    if not isinstance(found, (int, float, bool, str, tuple, type(None))):
        raise Bad("a number, a string or a list of those")
    return found


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def _parse_list(kind: str) -> Callable[[Any], Any]:
    items = _ITEMS[kind]

    def parse(value: Any) -> tuple:
        found = _literal(value)
        if not isinstance(found, (list, tuple)) or not all(isinstance(v, items) for v in found):
            raise Bad(f"a {kind}")
        return tuple(found)

    return parse
