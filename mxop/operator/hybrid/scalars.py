"""Scalar expressions of kernels: those of :mod:`mxop.formula`, with elements, lengths and conversions.

A number or an index is a leaf that holds a :class:`~.ir.Variable`, an element is ``load(tensor, index...)``, a length
``size(tensor, axis)``.  Being interned, equal ones are the same object.  Types are not in them: :mod:`.types` finds them for
each call.  :data:`ROWS` is the primitive table with what only kernels have.  Imports :mod:`mxop.formula`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...formula import TABLE, Expr, const, input_, leaves, walk
from ...formula.expr import CALL, CONST, INPUT, as_expr, raw_call
from ...formula.primitives import Primitive

FLOATS = ("float", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
CASTS = ("bool_", *INTEGERS, "float16", "float32", "float64")


@dataclass(eq=False)
class Variable:
    """A name of a kernel within the scope that declares it.

    Of the kinds, ``'input'``, ``'output'`` and ``'local'`` are tensors, ``'attribute'``, ``'scalar'`` and ``'loop'`` numbers,
    and ``'grid'`` stands for several loop variables, `loops`.  `unique` is a name that no other variable has.  A tensor was
    allocated with `shape` (expressions; that of the tensor `like`, if any) and `dtype` (a name or a tensor); `rank` is how many
    indices it has, as far as that is known.
    """

    name: str
    kind: str
    unique: str
    line: int = 0
    shape: tuple[Expr, ...] = ()
    dtype: Any = None
    rank: int | None = None
    written: bool = False
    loops: tuple[Variable, ...] = ()
    like: Variable | None = None

    @property
    def is_tensor(self) -> bool:
        return self.kind in ("input", "output", "local")

    @property
    def what(self) -> str:
        """What it is called in messages."""
        return {"loop": "loop variable", "grid": "loop variable", "scalar": "variable"}.get(self.kind, self.kind)

    @property
    def leaf(self) -> Expr:
        return input_(self)  # type: ignore[arg-type]  a leaf's label may be anything that is told apart


def node(label: str, *args: Any) -> Expr:
    """Make an expression as it is written: simplifying could change its type."""
    return raw_call(label, tuple([as_expr(a) for a in args]))


def load(tensor: Variable, indices: Sequence[Expr]) -> Expr:
    """Return an element."""
    return node("load", tensor.leaf, *indices)


def size(tensor: Variable, axis: int) -> Expr:
    """Return a length."""
    return node("size", tensor.leaf, axis)


def variable_of(target: Expr) -> Variable:
    """Return the variable of a leaf or an element."""
    return target.label if target.kind == INPUT else target.args[0].label  # type: ignore[return-value]


def names_in(*roots: Expr) -> set[Variable]:
    """Return the variables that expressions name."""
    return {n.label for n in leaves(roots) if n.kind == INPUT}  # type: ignore[misc]


def loads(*roots: Expr) -> list[Expr]:
    """Return the elements that expressions read, those inside of indices first."""
    return [n for n in walk(roots) if n.kind == CALL and n.label == "load"]


def fixed(expression: Expr) -> int | None:
    """Return the value of an integer that stands in the text, else None."""
    whole = expression.kind == CONST and (type(expression.label) is int or float(expression.label).is_integer())
    return int(expression.label) if whole else None


def literal(expression: Expr) -> Expr:
    """Return the number in an expression that says that it is no integer."""
    return expression.args[0] if expression.label == "real" else expression


def upto(n: Expr) -> tuple[Expr, Expr, Expr]:
    """Return the bounds of ``range(n)``."""
    return const(0), n, const(1)


_THROUGH = {"rule": lambda g, a, y: (g,)}
#: Makes a row, of what has no gradient unless it says so.
_row = partial(replace, Primitive("", 2, "", "", TABLE["sign"].rule, costly=False))
#: Primitives by name: those of formulas, and Python's remainder and rounding, conversions, elements.
ROWS: dict[str, Primitive] = TABLE | {
    row.name: row
    for row in (
        replace(TABLE["mod"], cuda="({1} == 0 ? NAN : mx_mod({0}, {1}))"),
        _row(name="nearest", cuda="rint({0})", integer="({0})"),
        _row(name="arctan2", cuda="atan2({0}, {1})", costly=True,
             rule=lambda g, a, b, y: (g * b / (a * a + b * b), -g * a / (a * a + b * b))),
        _row(name="real", cuda="{0}", integer="{0}", **_THROUGH),
        _row(name="float16", cuda="(float)float16({0})", **_THROUGH),
        _row(name="float32", **_THROUGH), _row(name="float64", **_THROUGH),
        *[_row(name=name) for name in ("bool_", *INTEGERS, "load", "size")],
        _row(name="cube", cuda="({0} * ({0} * {0}))"),
    )
}  # fmt: skip
