"""Algebra of real numbers: rewrites that hold except for rounding, overflow and the sign of zero.

Not automatic: an executor computes what was written.  ``Symbol.optimize()`` runs it, and ``switch_passes(algebra=True)``
lets executors do so.
"""

from __future__ import annotations

from typing import Any

from ...support import dtypes
from .. import symbols
from .peephole import PeepholePass, visit
from .stable import is_real

#: A constant made from two others must lie within these limits, so that it neither overflows nor underflows.
_BOUNDS = {dtypes.FLOAT64: (1e-300, 1e300), dtypes.FLOAT32: (1e-36, 1e36), dtypes.BFLOAT16: (1e-36, 1e36)}
_NARROW = (1e-4, 6e4)
_SMALL_INTEGER = 100


class Algebra(PeepholePass):
    """Simplify by the rules of real numbers.

    =========================================  =======================
    before                                     after
    =========================================  =======================
    ``x + 0``                                  ``x``
    ``log(exp(x))``                            ``x``
    ``sqrt(square(x))``                        ``abs(x)``
    ``(x + a) + b``, ``(x - a) + b``...        ``x + (a + b)``
    ``(x * a) * b``, ``(x * a) / b``           ``x * (a * b)``
    =========================================  =======================

    NaN gives NaN; shapes and types stay.  ``log(exp(1000))`` becomes 1000 where it was infinite, ``-0.0 + 0`` stays -0.0,
    and sums and products round once instead of twice.
    """

    stage = "symbol"
    automatic = False

    @visit.on("log")
    def log_of_exp(self, node: Any, x: Any) -> None:
        if x.op_name == "exp" and is_real(node):
            self.replace(node, x.inputs[0])

    @visit.on("sqrt")
    def root_of_square(self, node: Any, x: Any) -> None:
        if x.op_name == "square" and is_real(node):
            self.replace(node, symbols.namespace().abs(x.inputs[0]))

    @visit.on("_plus_scalar", "_minus_scalar")
    def sum_of_numbers(self, node: Any, x: Any) -> None:
        number = _added(node)
        if number == 0:
            self.replace(node, x)
        elif x.op_name in ("_plus_scalar", "_minus_scalar"):
            total = _added(x) + number
            if _may_combine(node, _added(x), number, total):
                self.replace(node, symbols.namespace()._internal._plus_scalar(x.inputs[0], scalar=total))

    @visit.on("_mul_scalar", "_div_scalar")
    def product_of_numbers(self, node: Any, x: Any) -> None:
        if x.op_name not in ("_mul_scalar", "_div_scalar") or 0 in (node.attrs["scalar"], x.attrs["scalar"]):
            return
        divides = [y.op_name == "_div_scalar" for y in (node, x)]
        parts = [1 / y.attrs["scalar"] if d else y.attrs["scalar"] for y, d in zip((node, x), divides, strict=True)]
        if node._known.dtype(node._entries[0]) in dtypes.FLOATS and _bounded(node, parts[0] * parts[1]):
            self.replace(node, symbols.namespace()._internal._mul_scalar(x.inputs[0], scalar=parts[0] * parts[1]))


def _added(x: Any) -> float:
    return x.attrs["scalar"] if x.op_name == "_plus_scalar" else -x.attrs["scalar"]


def _bounded(node: Any, number: float) -> bool:
    low, high = _BOUNDS.get(node._known.dtype(node._entries[0]), _NARROW)
    return low < abs(number) < high


def _may_combine(node: Any, a: float, b: float, total: float) -> bool:
    """Return whether adding `a`, then `b`, equals adding `total` in the data's type, but for rounding."""
    if node._known.dtype(node._entries[0]) in dtypes.FLOATS:
        return total == 0 or _bounded(node, total)
    return all(v == int(v) and abs(v) < _SMALL_INTEGER for v in (a, b, total))
