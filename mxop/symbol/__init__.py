"""``mx.sym``: symbolic programming.

Every operator is a function here, in ``contrib``, ``linalg``, ``random``, ``image`` and ``sparse`` by its prefix, hidden
ones in ``_internal``; they are made when first asked for.
"""

from __future__ import annotations

import sys
from typing import Any

from ..opdef.registry import PREFIXES
from ..ops.binary import PYTHON_NAMES
from ..support.errors import ends_at_caller
from ..support.missing import names_shown
from . import register
from .creation import arange, eye, full, histogram, linspace, ones, split_v2, zeros
from .symbol import Group, NotImplementedForSymbol, Symbol, Variable, fromjson, load, load_json, var

register.make_namespaces(sys.modules[__name__])

__all__ = [
    "Group", "NotImplementedForSymbol", "Symbol", "Variable", "arange", "eye", "fromjson", "full", "histogram", "linspace",
    "load", "load_json", "ones", "split_v2", "var", "zeros",
]  # fmt: skip


@ends_at_caller
def __getattr__(name: str) -> Any:
    found = register.python_function(name) if not name.startswith("_") else None
    return found if found is not None else register.lookup(name, ("",), __name__)


def __dir__() -> list[str]:
    return names_shown(globals(), __all__, PYTHON_NAMES, {*PREFIXES.values(), "op"}, register.names_in(""))
