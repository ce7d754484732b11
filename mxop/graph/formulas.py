"""Formulas of nodes, with parameters replaced by constants."""

from __future__ import annotations

from ctypes import c_float
from functools import lru_cache

from ..formula import Expr, const, leaves, of_numbers, param, substitute, walk
from ..opdef import Attrs, Elementwise, Formula
from ..opdef.operator import on_change
from ..opdef.symbolic import SymbolicNumber, leaf_of
from ..support import dtypes
from ..support.memo import keep
from .infer import Known
from .ir import Node

_ROUNDED = {dtypes.FLOAT32: lambda value: c_float(value).value, dtypes.FLOAT64: float}
_MANY = 1 << 15  # cached formulas, of about a kilobyte each: more than a graph has
_found: dict[tuple, tuple[Expr, ...] | None] = {}
on_change(lambda op: _found.clear())


def specialised(node: Node, known: Known) -> tuple[Expr, ...] | None:
    """Return the formulas of an elementwise node over its inputs.

    None if it is not computed in its data's type, or inputs and outputs have several types.  If the type is unknown, the
    formulas hold for every type.
    """
    op = node.op
    if not isinstance(op, Elementwise) or not node.inputs:
        return None
    code = known.only_type(node)
    if code is None or code == dtypes.BOOL:
        return None
    key = (op, node.attrs, len(node.inputs), code)
    try:
        return _found[key]
    except KeyError:
        return keep(_found, key, _filled_in(op, node.attrs, len(node.inputs), code), _MANY)


def _filled_in(op: Elementwise, attrs: Attrs, n_inputs: int, code: int) -> tuple[Expr, ...] | None:
    formula = op.formula(attrs, n_inputs)
    constants = _constants(op, attrs, formula, code)
    compute = dtypes.COMPUTED_AS.get(code, code)
    if constants is None or (code != dtypes.UNKNOWN and formula.compute_type(code) != compute):
        return None
    return tuple(substitute(formula.roots, constants, of_numbers(_ROUNDED.get(compute)))) if constants else formula.roots


def _constants(op: Elementwise, attrs: Attrs, formula: Formula, code: int) -> dict[Expr, Expr] | None:
    """Return constants for a formula's parameters; None if the type of the data cannot represent one."""
    values = {}
    for name in formula.params:
        real = op.spec.by_name[name].real
        value = attrs[name]
        if not real and code not in dtypes.FLOATS:
            low, high = dtypes.INTEGER_RANGES.get(code, (0, 127))
            if not low <= value <= high:  # NaN too
                return None
            if code == dtypes.UNKNOWN and value != int(value):
                return None
            value = int(value)
        size = type(value) is SymbolicNumber and value.integral and code in dtypes.FLOATS
        values[param(name, real)] = leaf_of(value) if size else const(value)
    return values


def seeks_equals(node: Node, known: Known) -> bool:
    """Return whether an elementwise node compares inputs for equality in a type that is computed in a wider one.

    Such a node must read rounded values: a product recomputed within a formula is not rounded, and so hardly ever equal to
    the largest product, which a reduction has stored.
    """
    code = known.dtype(node.inputs[0]) if node.inputs else None
    if code not in dtypes.FLOATS or code not in dtypes.COMPUTED_AS:
        return False
    return _compares_inputs(node.op.formula(node.attrs, len(node.inputs)).roots)


@lru_cache(4096)
def _compares_inputs(roots: tuple[Expr, ...]) -> bool:
    """Return whether formulas compare inputs for equality with each other, rather than with constants."""
    compared = [n.args for n in walk(roots) if n.args and n.label in ("eq", "ne")]
    return any(all(any(a.kind == "input" for a in leaves((side,))) for side in sides) for sides in compared)
