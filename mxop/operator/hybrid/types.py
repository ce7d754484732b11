"""The type of every expression of a kernel, for the dtypes of one call.

A type is a NumPy dtype's name (``'float32'``, ``'bool_'``), or ``'int'``, ``'float'``, ``'bool'`` for Python's numbers, which
take the type of the other operand.  What an operation gives is not written here: it is asked of the plain words and of
NumPy, on samples, so the compiled kernel has the types of the plain run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from ...formula import Expr, readable, walk
from ...formula.expr import CONST, INPUT
from ...support import dtypes
from ...support.errors import MXNetError
from .ir import For, Routine, Variable, assignments, expressions, statements, variable_of
from .words import OPERATIONS, held

WEAK = {"int": 1, "float": 1.0, "bool": True}
#: What holds a type while it is computed.
MACHINE = {"int": "int64", "float": "float64", "bool": "bool_"}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOGICAL = ("land", "lor", "lnot")
_BOOLS = ("bool", "bool_")


def machine(kind: str) -> str:
    """Return the type in which a type is computed."""
    return MACHINE.get(kind, kind)


def kind_of(value: Any) -> str:
    """Return the type of a value."""
    if type(value) in (int, float, bool):
        return type(value).__name__
    return "bool_" if isinstance(value, np.bool_) else np.asarray(value).dtype.name


@lru_cache(maxsize=4096)
def applied(primitive: str, *kinds: str) -> str:
    """Return the type that a primitive gives: that of its result for samples."""
    with np.errstate(all="ignore"):
        return kind_of(OPERATIONS[primitive](*(WEAK[k] if k in WEAK else getattr(np, k)(1) for k in kinds)))


def joined(a: str, b: str) -> str | None:
    """Return the type of a variable that is assigned both, None when they differ."""
    found, strong = a if a == b else applied("add", a, b), {a, b} - set(WEAK)
    return found if strong in (set(), {found}) else None


def common(kinds: Sequence[str]) -> str:
    """Return the type in which values are compared."""
    if set(kinds) <= set(_BOOLS):
        return "bool_"
    return "int64" if all(is_integer(k) or k in _BOOLS for k in kinds) else machine(applied("add", *kinds))


def is_integer(kind: str) -> bool:
    """Return whether a type can be an index."""
    return kind.startswith(("int", "uint"))


def element_kind(code: int) -> str:
    """Return the type of a tensor's elements while a kernel works on them."""
    return "bool_" if code == dtypes.BOOL else dtypes.NAMES[held(code)]


class Types:
    """Types of a kernel's names and expressions, from the type codes of its inputs and the values of its attributes.

    `codes` are those of tensors, `kinds` those of numbers; `taken` is what a compiled function takes, arguments before results.
    """

    def __init__(self, routine: Routine, in_types: Sequence[int], attributes: Sequence[Any]):
        self.routine, self.source = routine, routine.source
        self.codes = declared_codes(routine, in_types)
        given = zip(routine.attributes, attributes, strict=True)
        self.kinds = {v: kind_of(a) for v, a in given if type(a) in (int, float, bool)}
        self.kinds |= {s.variable: "int" for s in statements(routine.body) if isinstance(s, For)}
        self.line = 0
        self._of: dict[Expr, str] = {}
        while self._numbers(final=False):  # ends: a type that has been joined with another is never left again
            pass
        self._numbers(final=True)
        self._check()
        taken = dict.fromkeys((*routine.arguments, *routine.results))
        self.taken = [v for v in taken if v.is_tensor or v in self.kinds]

    def _numbers(self, final: bool) -> bool:
        """Go once through all assignments of numbers; tell whether a variable's type has changed since the last time."""
        found: dict[Variable, str] = {}
        for s in assignments(self.routine.body):
            if s.target.kind != INPUT:
                continue
            self.line = s.line
            kind = self.of(s.value)
            old = found.get(s.variable, kind)
            new = joined(old, kind)
            if new is None and final:
                how = f"convert, as in {old}(...)"
                self.fail(f"variable {s.variable.name!r} changes its type from {old} to {kind}; {how}")
            found[s.variable] = new or common([old, kind])
            self.kinds.setdefault(s.variable, found[s.variable])
        changed = any(self.kinds[v] != kind for v, kind in found.items())
        self.kinds |= found
        self._of.clear()
        return changed

    def _check(self) -> None:
        for s in statements(self.routine.body):
            self.line = s.line
            for e in expressions(s):
                kind = self.of(e)
                if isinstance(s, For) and not is_integer(kind):
                    self.fail(f"{described(e)} is of type {kind}; a loop runs over integers")

    def fail(self, problem: str) -> NoReturn:
        self.source.fail(self.line, problem)

    def of_variable(self, variable: Variable) -> str | None:
        """Return the type of a number, or of a tensor's elements."""
        return element_kind(self.codes[variable]) if variable.is_tensor else self.kinds.get(variable)

    def of(self, expression: Expr) -> str:
        """Return the type of an expression."""
        for part in walk([expression]):  # operands first
            if part not in self._of and not (part.kind == INPUT and part.label.is_tensor):  # type: ignore[union-attr]
                self._of[part] = self._kind(part)
        return self._of[expression]

    def machine(self, expression: Expr) -> str:
        """Return the type in which an expression is computed."""
        return machine(self.of(expression))

    def _kind(self, e: Expr) -> str:
        label, kinds = e.label, [self._of.get(a) for a in e.args]
        if e.kind == CONST:
            return "int" if float(label).is_integer() else "float"
        if e.kind == INPUT:
            if label not in self.kinds:
                self.fail(f"attribute {label.name!r} is not a number")
            return self.kinds[label]
        if label == "load":
            for index, kind in zip(e.args[1:], kinds[1:]):
                if not is_integer(kind):
                    self.fail(f"index {described(index)} is of type {kind}, not an integer")
            return element_kind(self.codes[variable_of(e)])
        if label == "size":
            return "int"
        if label in ("land", "lor") and not set(kinds) <= set(_BOOLS):
            self.fail("'and' and 'or' take comparisons")
        try:
            return joined(*kinds[1:]) or common(kinds[1:]) if label == "where" else applied(label, *kinds)
        except (TypeError, ValueError) as problem:
            self.fail(f"{label} of {', '.join(kinds)}: {str(problem).splitlines()[0]}")

    def operands(self, e: Expr) -> list[str | None]:
        """Return the types in which a call takes its operands, None of a tensor."""
        label, kind = e.label, self.machine(e)
        if label in ("load", "size"):
            return [None] + ["int64"] * (len(e.args) - 1)
        if label in COMPARISONS:
            return [common([self.of(a) for a in e.args])] * 2
        if label in LOGICAL:
            return ["bool_"] * len(e.args)
        return ["bool_", kind, kind] if label == "where" else [kind] * len(e.args)


def declared_codes(routine: Routine, in_types: Sequence[int]) -> dict[Variable, int]:
    """Return the type code of every tensor, from those of the inputs."""
    found = dict(zip(routine.inputs, in_types))
    for variable in routine.variables.values():
        if variable.is_tensor and variable not in found:
            try:
                dtype = variable.dtype
                found[variable] = found[dtype] if isinstance(dtype, Variable) else dtypes.code_of(dtype)
            except MXNetError as problem:
                routine.source.fail(variable.line, str(problem))
    return found


def described(expression: Expr) -> str:
    """Return an expression as a person writes it."""
    names = {n: n.label.name for n in walk([expression]) if n.kind == INPUT}  # type: ignore[union-attr]
    return readable([expression], names, [""])[-1].removeprefix(" = ")
