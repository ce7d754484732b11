"""The functions that a formula may use: ``F.exp(x)``, ``F.where(c, a, b)`` and the rest of the primitive table.

``from mxop.op import F``.  Imports :mod:`.expr` and :mod:`.primitives`.
"""

from __future__ import annotations

from .expr import call
from .primitives import TABLE


def _function(name: str, arity: int):
    def function(*args):
        if len(args) != arity:
            raise TypeError(f"F.{name} takes {arity} operand{'s' if arity > 1 else ''}, {len(args)} given")
        return call(name, *args)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The primitive ``{name}`` ({arity} operand{'s' if arity > 1 else ''})."
    return function


for _name, _row in TABLE.items():
    globals()[_name] = _function(_name, _row.arity)

__all__ = list(TABLE)
