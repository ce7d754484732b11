"""Turns ``where`` into an elementwise operator, which can be fused."""

from __future__ import annotations

from typing import Any

from .. import symbols
from .peephole import PeepholePass, visit


class Choices(PeepholePass):
    """Make ``where`` elementwise if its condition has the shape and the type of its operands.

    ::

        where(x > y, x * z, y)      becomes      _choose(x > y, x * z, y)
    """

    @visit.on("where")
    def choice(self, node: Any, condition: Any, x: Any, _: Any) -> None:
        if condition.shape == x.shape is not None and condition.dtype == x.dtype is not None:
            self.replace(node, symbols.namespace()._choose(*node.inputs))
