"""What follows from the shapes of one call: the shapes of a kernel's tensors, and whether every index stays inside them.

Integers are followed as intervals, whose ends are infinite where nothing is known: after an operation that may wrap around
in its type, too.  Where all indices are proven to lie inside, the kernel runs without checks; otherwise it runs with them, and
raises IndexError as plain Python would.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...formula import Expr
from ...formula.expr import CALL, INPUT
from . import ir
from .ir import INTEGERS, Allocate, Assign, For, If, Routine, Statement, Variable, fixed, loads, variable_of
from .types import Types

Interval = tuple[float, float]
ANY = (-math.inf, math.inf)
_MOST = 2**32  # elements of a tensor
_RANGES = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in INTEGERS} | {None: ANY}


class Shapes:
    """Shapes of one call: the sizes of tensors (`of`), and what follows.

    `safe` says that no index can be outside of its tensor, or negative, if integers are of these `types`, or never wrap around
    where they are None; and that 32 bits hold how far an element is from the first; `empty` that a tensor may have no elements.
    """

    def __init__(
        self, routine: Routine, shapes: Sequence[tuple[int, ...]], attributes: Sequence[Any], types: Types | None = None
    ):
        self.routine, self.types, self.safe = routine, types, True
        self.of: dict[Variable, list[Interval]] = {v: [(n, n) for n in s] for v, s in zip(routine.inputs, shapes)}
        self.numbers: dict[Variable, Interval | None] = {
            v: (int(a), int(a)) for v, a in zip(routine.attributes, attributes) if type(a) in (int, bool)
        }
        self.assigned: dict[Variable, set[Expr]] = {}  # values, of which a number may have one
        for s in ir.assignments(routine.body):
            self.assigned.setdefault(s.variable, set()).add(s.value)
        self.block(routine.body)
        self.safe &= all(math.prod(n[1] for n in sizes) < _MOST for sizes in self.of.values())
        self.empty = any(-math.inf < n[0] <= 0 for sizes in self.of.values() for n in sizes)

    def results(self) -> list[tuple[int, ...]]:
        """Return the shapes of the outputs.

        Raises
        ------
        HybridError
            When one depends on more than shapes and attributes.
        """
        for v in self.routine.results:
            if any(n[0] != n[1] or n[0] < 0 for n in self.of[v]):
                self.routine.source.fail(v.line, f"the shape of output {v.name!r} does not follow from the shapes of the "
                                         "inputs and the attributes")  # fmt: skip
        return [tuple([int(n) for n, _ in self.of[v]]) for v in self.routine.results]

    # ---- statements -------------------------------------------------------------------------------------------------
    def block(self, body: list[Statement]) -> None:
        for s in body:
            for access in loads(*ir.expressions(s)):
                self.element(access)
            match s:
                case Allocate():
                    self.allocate(s.variable)
                case Assign() if s.target.kind == INPUT:
                    self.numbers[s.variable] = self.value(s.value) if len(self.assigned[s.variable]) == 1 else None
                case For():
                    found = self.range(*map(self.size, s.bounds))
                    self.numbers[s.variable] = found
                    if found[0] <= found[1]:
                        self.block(s.body)
                case If():
                    self.block(s.body)
                    self.block(s.orelse)

    def allocate(self, variable: Variable) -> None:
        sizes = self.of[variable] = [self.size(n) for n in variable.shape]
        self.safe &= all(n[0] >= 0 for n in sizes)

    def range(self, start: Interval, stop: Interval, step: Interval) -> Interval:
        """Return the values of a loop's variable; (0, -1) of a loop that never runs."""
        if step[0] <= 0 <= step[1]:
            return ANY
        low, high = (start[0], stop[1] - 1) if step[0] > 0 else (stop[0] + 1, start[1])
        return (low, high) if low <= high else (0, -1)

    def element(self, access: Expr) -> None:
        places = list(zip(map(self.size, access.args[1:]), self.of[variable_of(access)], strict=True))
        self.safe &= all(at[0] >= 0 and at[1] < n[0] for at, n in places)

    # ---- expressions ------------------------------------------------------------------------------------------------
    def size(self, e: Expr) -> Interval:
        """Return the interval of what must be an integer."""
        return self.value(e) or ANY

    def value(self, e: Expr) -> Interval | None:
        """Return the interval of an expression, None of what may be no integer."""
        whole = fixed(e)
        if whole is not None:
            return whole, whole
        if e.kind == INPUT:
            return self.numbers.get(e.label)  # type: ignore[call-overload]
        if e.kind != CALL or e.label == "load":
            return None
        if e.label == "size":
            return self.of[variable_of(e)][fixed(e.args[1])]  # type: ignore[index]
        operands = [self.value(a) for a in e.args]
        if e.label in INTEGERS:
            operands = [operands[0] or ANY]
        if None in operands:
            return None
        kind = self.types and self.types.machine(e)
        found = _interval(str(e.label), *(_held(o, kind) for o in operands))  # type: ignore[arg-type]
        return found and _held(found, kind)


#: Functions whose least and greatest values are at the ends of their operands.
_BY_ENDS: dict[str, Callable[..., float]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "floordiv": operator.floordiv,
    "maximum": max, "minimum": min,
}  # fmt: skip
_OF_ANY = ("maximum", "minimum")  # which have ends where one operand has


def _held(found: Interval, kind: str | None) -> Interval:
    """Return an interval in a type, in which what does not fit would wrap around; None is a type that holds all."""
    least, most = _RANGES.get(kind, (0, -1))
    return found if all(least <= end <= most for end in found if math.isfinite(end)) else ANY


def _interval(label: str, *operands: Interval) -> Interval | None:
    (low, high), last = operands[0], operands[-1]
    if label in INTEGERS:
        return _held(operands[0], label)
    if label == "mod" and last[0] > 0:
        return (low % last[0],) * 2 if low == high and last[0] == last[1] else (0, last[1] - 1)
    if label not in _OF_ANY and not all(map(math.isfinite, itertools.chain(*operands))):
        return ANY if label in _BY_ENDS else None
    if label == "pow":
        return (low ** last[0],) * 2 if low == high and last[0] == last[1] and 0 <= last[0] < 64 else None
    if label not in _BY_ENDS or (label == "floordiv" and last[0] <= 0 <= last[1]):
        return None
    found = [_BY_ENDS[label](*ends) for ends in itertools.product(*operands)]
    return min(found), max(found)
