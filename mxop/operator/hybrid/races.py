"""Whether the iterations of a loop may run at the same time.

The rule: of every tensor that a loop writes, one index must be the same in all places of the loop and tell its iterations
apart: the loop's variable, ``2*i + 1``, or ``i*n + j`` where ``j`` runs through ``range(n)``.  Numbers must not be carried
from one iteration to the next.  Imports :mod:`.ir`.
"""

from __future__ import annotations

from ...formula import Expr
from ...formula.expr import CALL, CONST, INPUT
from .ir import Allocate, Assign, For, Routine, Scopes, Statement, Variable, expressions, fixed, loads, statements

#: Words whose iterations must be independent.
CONCURRENT = ("parallel", "vectorize")


def check_races(routine: Routine) -> None:
    """Raise for a parallel or vectorize loop whose iterations depend on each other."""
    scopes = Scopes(routine.body)
    for s in statements(routine.body):
        if isinstance(s, For) and s.word in CONCURRENT:
            found = conflict(s, scopes)
            if found is not None:
                routine.source.fail(*found)


def conflict(loop: For, scopes: Scopes) -> tuple[int, str] | None:
    """Return where and why iterations of a loop depend on each other, None when they do not."""
    over = f"the {loop.word} loop over {loop.variable.name!r}"
    inner = list(statements(loop.body))
    assigned = [s for s in inner if isinstance(s, Assign)]
    for s in assigned:
        if s.target.kind == INPUT and s.variable in scopes.known[loop]:
            return (
                s.line,
                f"{s.variable.name!r} is carried from one iteration of {over} to the next; use reduce or serial",
            )
    inside = {s.variable for s in inner if isinstance(s, (For, Allocate))}
    inside |= {s.variable for s in assigned if s.target.kind == INPUT}
    accesses: dict[Variable, list[Expr]] = {}
    for s in inner:
        for access in loads(*expressions(s)):
            accesses.setdefault(access.args[0].label, []).append(access)  # type: ignore[arg-type]
    for s in assigned:
        if (
            s.target.kind == CALL
            and s.variable not in inside
            and not _told_apart(accesses[s.variable], loop, inner, inside)
        ):
            name = s.variable.name
            return s.line, (
                f"iterations of {over} may write the same elements of {name!r}, or read what others write: no index of "
                f"{name!r} is a function of {loop.variable.name!r} alone in every place; use reduce or serial"
            )
    return None


def _told_apart(accesses: list[Expr], loop: For, inner: list[Statement], inside: set[Variable]) -> bool:
    if len({len(a.args) for a in accesses}) > 1:
        return False
    places = zip(*(a.args[1:] for a in accesses))
    return any(len(set(same)) == 1 and _injective(same[0], loop, inner, inside) for same in places)


def _injective(index: Expr, loop: For, inner: list[Statement], inside: set[Variable]) -> bool:
    """Tell whether different iterations give different values, whatever the loops inside do."""
    if _step(index, loop.variable, inside) not in (None, 0):
        return True
    if index.label != "add":
        return False
    for product, digit in (index.args, index.args[::-1]):
        if product.label == "mul" and digit.kind == INPUT:
            for high, size in (product.args, product.args[::-1]):
                if _digit(digit, size, loop, inner, inside) and _injective(high, loop, inner, inside):
                    return True
    return False


def _step(index: Expr, variable: Variable, inside: set[Variable]) -> int | None:
    """Return by how much an index grows with a loop's variable, None when it depends on more than that."""
    if index.kind == INPUT:
        return 1 if index.label is variable else None if index.label in inside else 0
    if index.kind == CONST or index.label == "size":
        return 0
    if index.label not in ("neg", "add", "sub", "mul"):
        return None
    steps = [_step(a, variable, inside) for a in index.args]
    if any(s is None for s in steps):
        return None
    if index.label == "mul":
        return _scaled(index, *steps)  # type: ignore[arg-type]
    return -steps[0] if index.label == "neg" else steps[0] + (steps[1] if index.label == "add" else -steps[1])  # type: ignore[operator]


def _scaled(product: Expr, left: int, right: int) -> int | None:
    if left == right == 0:
        return 0
    for step, factor in ((left, fixed(product.args[1])), (right, fixed(product.args[0]))):
        if step and factor is not None:
            return step * factor
    return None


def _digit(digit: Expr, size: Expr, loop: For, inner: list[Statement], inside: set[Variable]) -> bool:
    """Tell whether a variable runs through ``range(size)`` inside the loop."""
    for s in inner:
        if isinstance(s, For) and s.variable is digit.label:
            known = fixed(s.start) == 0 and fixed(s.step) == 1 and _step(size, loop.variable, inside) == 0
            stop, n = fixed(s.stop), fixed(size)
            return known and (s.stop is size or (stop is not None and n is not None and stop <= n))
    return False
