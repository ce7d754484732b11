"""MXNet's functions that choose an operator by whether an operand is an array or a number: ``nd.add``, ``nd.maximum``...

The table is :data:`mxop.ops.binary.PYTHON_NAMES`.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from .._core import core
from ..opdef import registry
from ..opdef.operator import carrier
from ..ops import binary
from ..support.errors import MXNetError, OpTypeError, shorten
from .interop import foreign

__all__ = list(binary.PYTHON_NAMES)


def _two(name: str, choice: binary.Choice):
    def function(lhs: Any, rhs: Any) -> Any:
        try:
            left, right = isinstance(lhs, core.Dense), isinstance(rhs, core.Dense)
            if left and right:
                return core.op_function(registry.get(choice.arrays))(lhs, rhs)
            if left and isinstance(rhs, Number):
                return core.op_function(registry.get(choice.scalar))(lhs, scalar=rhs)
            if right and isinstance(lhs, Number):
                return core.op_function(registry.get(choice.rscalar))(rhs, scalar=lhs)
            if isinstance(lhs, Number) and isinstance(rhs, Number):
                return choice.numbers(lhs, rhs)
            by_name = carrier((lhs, rhs))
            if by_name is not None:
                return by_name.__mxop_operator__(name, (lhs, rhs), {})
            if left != right and isinstance(rhs if left else lhs, np.ndarray):
                converted = foreign(lhs, rhs) if left else foreign(rhs, lhs)
                if converted is not NotImplemented:
                    return function(lhs, converted) if left else function(converted, rhs)
            raise OpTypeError(f"nd.{name} takes NDArrays and numbers; got {type(lhs).__name__} and {type(rhs).__name__}")
        except MXNetError as problem:
            shorten(problem)
            raise

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Apply ``{choice.arrays}`` to arrays, ``{choice.scalar}`` to an array and a number, Python to two."
    return function


for _name, _row in binary.PYTHON_NAMES.items():
    globals()[_name] = _two(_name, _row)
power = binary.Choice.named(globals()["power"], "base", "exp")  # as MXNet calls them
