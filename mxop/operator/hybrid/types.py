"""The type of every expression of a kernel, for the dtypes of one call, and expressions with their conversions.

A type is a NumPy dtype's name (``'float32'``, ``'bool_'``), or ``'int'``, ``'float'``, ``'bool'`` for Python's numbers, which
take the type of the other operand.  What an operation gives is not written here: it is asked of the plain words and of
NumPy, on samples, so the compiled kernel has the types of the plain run.  Imports :mod:`.ir`, :mod:`.words`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import MXNetError
from ...formula import Expr, const, readable, walk
from ...formula.expr import CALL, CONST, INPUT, call
from .ir import CASTS, FLOATS, For, Routine, Variable, expressions, node, statements, variable_of
from .words import NARROW, OPERATIONS

WEAK = {"int": 1, "float": 1.0, "bool": True}
#: What holds a type while it is computed.
MACHINE = {"int": "int64", "float": "float64", "bool": "bool_"}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOGICAL = ("land", "lor", "lnot")
_BOOLS = ("bool", "bool_")
_ROUNDING = ("floor", "ceil", "trunc", "nearest")


def machine(kind: str) -> str:
    """Return the type in which a type is computed."""
    return MACHINE.get(kind, kind)


def sample(kind: str) -> Any:
    """Return a value of a type."""
    return WEAK[kind] if kind in WEAK else getattr(np, kind)(1)


def kind_of(value: Any) -> str:
    """Return the type of a value."""
    if type(value) in (int, float, bool):
        return type(value).__name__
    return "bool_" if isinstance(value, np.bool_) else np.asarray(value).dtype.name


@lru_cache(maxsize=4096)
def applied(primitive: str, *kinds: str) -> str:
    """Return the type that a primitive gives."""
    with np.errstate(all="ignore"):
        return kind_of(OPERATIONS[primitive](*map(sample, kinds)))


def joined(a: str, b: str) -> str | None:
    """Return the type of a variable that is assigned both, None when they differ."""
    if a == b:
        return a
    if a in WEAK and b in WEAK:
        return applied("add", a, b)
    if a not in WEAK and b not in WEAK:
        return None
    weak, strong = (a, b) if a in WEAK else (b, a)
    return strong if applied("add", weak, strong) == strong else None


def is_integer(kind: str) -> bool:
    """Tell whether a type can be an index."""
    return kind.startswith(("int", "uint"))


def element_kind(code: int) -> str:
    """Return the type of a tensor's elements while a kernel works on them."""
    if code in NARROW:
        return "float32"
    return "bool_" if code == dtypes.BOOL else dtypes.NAMES[code]


class Types:
    """Types of a kernel's names and expressions.

    Parameters
    ----------
    routine : Routine
        For the ranks of the inputs.
    in_types : sequence of int
        Type codes of the inputs.
    attributes : sequence
        Values of the attributes.

    Attributes
    ----------
    codes : dict of Variable to int
        Of tensors.
    kinds : dict of Variable to str
        Of numbers.
    """

    def __init__(self, routine: Routine, in_types: Sequence[int], attributes: Sequence[Any]):
        self.routine, self.source = routine, routine.source
        self.codes = declared_codes(routine, in_types)
        given = zip(routine.attributes, attributes, strict=True)
        self.kinds = {v: kind_of(a) for v, a in given if type(a) in (int, float, bool)}
        self.line = 0
        self._of: dict[Expr, str] = {}
        self._typed: dict[Expr, Expr] = {}
        self._machine: dict[Expr, str | None] = {}
        while self._numbers():
            self._of.clear()
        self._check()

    def _numbers(self) -> bool:
        """Go once through all statements; tell whether a variable's type has changed."""
        changed = False
        for s in statements(self.routine.body):
            self.line = s.line
            if isinstance(s, For):
                self.kinds[s.variable] = "int"
            target = getattr(s, "target", None)
            if target is None or target.kind != INPUT:
                continue
            variable = variable_of(target)
            found, old = self.of(s.value), self.kinds.get(variable)
            new = found if old is None else joined(old, found)
            if new is None:
                self.source.fail(
                    s.line,
                    f"variable {variable.name!r} changes its type from {old} to {found}; convert, as in {old}(...)",
                )
            changed |= new != old
            self.kinds[variable] = new
        return changed

    def _check(self) -> None:
        for s in statements(self.routine.body):
            self.line = s.line
            kinds = [self.of(e) for e in expressions(s)]
            if isinstance(s, For) and not all(map(is_integer, kinds)):
                at = next(k for k, kind in enumerate(kinds) if not is_integer(kind))
                self.fail(f"{described(s.bounds[at])} is of type {kinds[at]}; a loop runs over integers")

    def fail(self, problem: str) -> None:
        self.source.fail(self.line, problem)

    def of_variable(self, variable: Variable) -> str | None:
        """Return the type of a number, or of a tensor's elements."""
        return element_kind(self.codes[variable]) if variable.is_tensor else self.kinds.get(variable)

    # ---- types ------------------------------------------------------------------------------------------------------
    def of(self, expression: Expr) -> str:
        """Return the type of an expression."""
        for part in walk([expression]):  # operands first
            if part not in self._of and not (part.kind == INPUT and part.label.is_tensor):  # type: ignore[union-attr]
                self._of[part] = self._kind(part)
        return self._of[expression]

    def _kind(self, e: Expr) -> str:
        if e.kind == CONST:
            return "int" if float(e.label).is_integer() else "float"
        if e.kind == INPUT:
            return "int" if e.label.kind == "number" else self.kinds[e.label]  # type: ignore[union-attr,index]
        label = e.label
        if label == "load":
            return self._element(e)
        if label in ("size", "real"):
            return "int" if label == "size" else "float"
        kinds = [self._of[a] for a in e.args]
        if label in CASTS:
            return "float32" if label == "float16" else str(label)
        if label in COMPARISONS:
            return "bool" if set(kinds) <= set(WEAK) else "bool_"
        if label in LOGICAL:
            if label != "lnot" and not set(kinds) <= set(_BOOLS):
                self.fail("'and' and 'or' take comparisons")
            return "bool_" if "bool_" in kinds and label != "lnot" else "bool"
        try:
            return joined(*kinds[1:]) or self._common(kinds[1:]) if label == "where" else applied(str(label), *kinds)
        except (TypeError, ValueError) as problem:
            self.fail(f"{label} of {', '.join(kinds)}: {str(problem).splitlines()[0]}")
            raise

    def _element(self, e: Expr) -> str:
        for index in e.args[1:]:
            if not is_integer(self._of[index]):
                self.fail(f"index {described(index)} is of type {self._of[index]}, not an integer")
        return element_kind(self.codes[variable_of(e)])

    def _common(self, kinds: Sequence[str]) -> str:
        """Return the type in which values are compared."""
        if set(kinds) <= set(_BOOLS):
            return "bool_"
        if all(is_integer(k) or k in _BOOLS for k in kinds):
            return "int64"
        return applied("add", *kinds)

    # ---- conversions ------------------------------------------------------------------------------------------------
    def typed(self, expression: Expr, kind: str | None = None) -> Expr:
        """Return an expression with all conversions, itself converted to a type."""
        have = self.of(expression)
        for part in walk([expression]):
            if part not in self._typed:
                self._typed[part] = self._converted(part)
        found = self._typed[expression]
        return found if kind is None else self._cast(found, have, kind)

    def _converted(self, e: Expr) -> Expr:
        if e.kind != CALL or e.label == "size":
            return e
        label, args = str(e.label), [self._typed[a] for a in e.args]
        if label == "load":
            return node("load", *args)
        if label == "real":
            return args[0]
        have = [self._of[a] for a in e.args]
        kind = self._of[e]
        if label == "float16":
            return self._made("half", [self._cast(args[0], have[0], kind)], kind)
        if label in CASTS:
            return self._cast(args[0], have[0], label)
        if label in COMPARISONS or label in LOGICAL:
            wanted = [self._common(have) if label in COMPARISONS else "bool_"] * len(args)
        else:
            wanted = ["bool_", kind, kind] if label == "where" else [kind] * len(args)
        return self._made(label, [self._cast(*given) for given in zip(args, have, wanted, strict=True)], kind)

    def _made(self, label: str, args: list[Expr], kind: str) -> Expr:
        """Return a call in one type."""
        real = kind in FLOATS
        if machine(kind) == "bool_" and label not in COMPARISONS:
            label = {"add": "lor", "mul": "land", "maximum": "lor", "minimum": "land"}.get(label, label)
        if label in _ROUNDING and not real:
            return args[0]
        if label == "pow" and not real:
            label = "ipow"
        if label == "mod" and real:  # Python's remainder, but of a division by zero
            return call("where", call("eq", args[1], 0), float("nan"), call("mod", *args))
        found = call(label, *args)
        if found.kind == CALL and all(a.kind == CONST for a in found.args):  # nothing else tells its type
            return node(str(found.label), node(machine(kind), found.args[0]), *found.args[1:])
        return found

    def _cast(self, e: Expr, have: str, want: str) -> Expr:
        have, want = machine(have), machine(want)
        if have == want and e.kind != CONST:
            return e
        if e.kind != CONST:
            return node(want, e)
        if want in FLOATS or np.isfinite(e.label):
            with np.errstate(all="ignore"):
                value = np.asarray(e.label if want in (*FLOATS, "bool_") else int(e.label)).astype(want)
            return const(float(value))
        return node(want, node("float64", e))

    def machine_kind(self, e: Expr) -> str | None:
        """Return the type in which a converted expression is computed, None of a constant, which takes any."""
        for part in walk([e]):
            if part not in self._machine:
                self._machine[part] = self._computed(part)
        return self._machine[e]

    def _computed(self, e: Expr) -> str | None:
        if e.kind == CONST:
            return None
        if e.kind == INPUT:
            return "int64" if e.label.kind == "number" else machine(self.of_variable(e.label) or "")  # type: ignore[union-attr,arg-type]
        if e.label in CASTS or e.label == "size":
            return "int64" if e.label == "size" else str(e.label)
        if e.label in COMPARISONS or e.label in LOGICAL:
            return "bool_"
        kinds = [self._machine[a] for a in (e.args[1:] if e.label == "where" else e.args)]
        return next((k for k in kinds if k is not None), "float64")

    def operand_kind(self, user: Expr) -> str:
        """Return the type of the operands of a converted call that are constants."""
        if user.label == "load":
            return "int64"
        if user.label in COMPARISONS or user.label in CASTS:
            return next((k for a in user.args if (k := self.machine_kind(a))), "float64")
        return self.machine_kind(user) or "float64"


def declared_codes(routine: Routine, in_types: Sequence[int]) -> dict[Variable, int]:
    """Return the type code of every tensor, from those of the inputs."""
    found = dict(zip(routine.inputs, in_types))
    for variable in routine.variables:
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
