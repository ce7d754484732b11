"""Whether the iterations of a loop may run at the same time.

The rule: of every tensor that a loop writes, one index must be the same in all places of the loop and tell its iterations
apart: the loop's variable, ``2*i + 1``, or ``i*n + j`` where ``j`` runs through ``range(n)``.  Numbers must not be carried
from one iteration to the next.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence

from ...formula import Expr, const, vjp, walk
from ...formula.expr import CALL, INPUT
from . import ir
from .ir import ROWS, Assign, For, Routine, Scopes, Statement, Variable, fixed, loads, names_in, size, upto, variable_of

#: Words whose iterations must be independent.
CONCURRENT = ("parallel", "vectorize")
_LINEAR = ("add", "sub", "neg", "mul")


def check_races(routine: Routine) -> None:
    """Raise for a parallel or vectorize loop whose iterations depend on each other."""
    scopes = Scopes(routine.body)
    for s in ir.statements(routine.body):
        if isinstance(s, For) and s.word in CONCURRENT and (found := conflict(s, scopes)):
            routine.source.fail(*found)


def conflict(loop: For, scopes: Scopes) -> tuple[int, str] | None:
    """Return where and why iterations of a loop depend on each other, None when they do not."""
    return next(((s.line, why) for s, why in _conflicts(loop, scopes)), None)


def meeting(loop: For, scopes: Scopes) -> set[Variable] | None:
    """Return the tensors in which iterations of a loop meet, but only to add; None when they depend on each other otherwise."""
    met = {s.variable for s, _ in _conflicts(loop, scopes)}
    inside = list(ir.statements(loop.body))
    read = {variable_of(a) for s in inside for a in loads(*ir.other_than_sum(s))}
    written = {s.variable for s in inside if isinstance(s, Assign) and not ir.adds(s)}
    return met if all(v.rank for v in met) and not met & (read | written) else None


def written_whole(routine: Routine) -> set[Variable]:
    """Return the outputs that the first loops that name them assign everywhere, whatever they held before."""
    return {v for v in routine.results if v.kind == "output" and v.rank and _assigns_all(routine.body, v, {})}


def _assigns_all(body: Sequence[Statement], v: Variable, around: Mapping[Expr, tuple[Expr, ...]]) -> bool:
    """Return whether the first statement that names a tensor does nothing else with it than assign all elements."""
    s = next((s for s in body if v in ir.accesses([s])), None)
    if s is None or len(set(ir.accesses([s])[v])) > 1:
        return False
    if isinstance(s, For):
        return _assigns_all(s.body, v, {**around, s.variable.leaf: s.bounds})
    if not isinstance(s, Assign) or s.variable is not v or v in names_in(s.value):
        return False
    indices = s.target.args[1:]
    return set(indices) == set(around) and len(indices) == len(around) and all(
        any(all(map(operator.is_, around[i], upto(n))) for n in (v.shape[k], size(v, k))) for k, i in enumerate(indices)
    )  # fmt: skip


def _conflicts(loop: For, scopes: Scopes) -> Iterator[tuple[Assign, str]]:
    """Yield assignments by which iterations depend on each other, with the reasons."""
    over = f"the {loop.word} loop over {loop.variable.name!r}"
    own, read = ir.changing(loop.body), ir.accesses(loop.body)
    for s in ir.assignments(loop.body):
        name = s.variable.name
        if s.variable in scopes.known[loop]:
            yield s, f"{name!r} is carried from one iteration of {over} to the next; use reduce or serial"
        elif s.target.kind == CALL and s.variable not in own and not told_apart(read[s.variable], loop, own):
            why = f"no index of {name!r} is a function of {loop.variable.name!r} alone in every place"
            yield s, (f"iterations of {over} may write the same elements of {name!r}, or read what others write: {why}; "
                      "use reduce or serial")  # fmt: skip


def told_apart(places: list[Expr], loop: For, own: set[Variable]) -> bool:
    """Return whether different iterations name different elements in these places, whatever else happens."""
    if len({len(a.args) for a in places}) > 1:
        return False
    indices = zip(*(a.args[1:] for a in places))
    return any(len(set(same)) == 1 and _injective(same[0], loop, own) for same in indices)


def _injective(index: Expr, loop: For, own: set[Variable]) -> bool:
    """Return whether different iterations give different values, whatever the loops inside do."""
    if _slope(index, loop.variable, own):
        return True
    if index.label != "add":
        return False
    for product, digit in (index.args, index.args[::-1]):
        if product.label == "mul" and digit.kind == INPUT:
            for high, size in (product.args, product.args[::-1]):
                if _digit(digit, size, loop, own) and _injective(high, loop, own):
                    return True
    return False


def _slope(index: Expr, variable: Variable, own: set[Variable]) -> int | None:
    """Return by how much an index grows with a loop's variable, None when that is no fixed number or depends on more."""
    curved = any(variable in names_in(n) for n in walk([index]) if n.kind == CALL and n.label not in _LINEAR)
    if curved or names_in(index) & own:
        return None
    (slope,) = vjp([index], [const(1)], [variable.leaf], ROWS)
    return 0 if slope is None else fixed(slope)


def _digit(digit: Expr, size: Expr, loop: For, own: set[Variable]) -> bool:
    """Return whether a variable runs through ``range(size)``, or a part of it, inside the loop."""
    if names_in(size) & (own | {loop.variable}):
        return False
    for s in ir.statements(loop.body):
        if isinstance(s, For) and s.variable is digit.label:
            (start, stop, step), least = map(fixed, s.bounds), fixed(size)
            within = stop is not None and least is not None and stop <= least
            return start == 0 and step == 1 and (s.bounds[1] is size or within)
    return False


# ---- order ----------------------------------------------------------------------------------------------------------------
def never_read_before(body: Sequence[Statement]) -> set[Assign]:
    """Return the stores of elements that nothing has read before in the same run of the routine."""
    found = list[tuple[int, tuple[For, ...], Statement]]()

    def visit(block: Sequence[Statement], around: tuple[For, ...]) -> None:
        for s in block:
            found.append((len(found), around, s))
            for inner in ir.blocks(s):
                visit(inner, (*around, s) if isinstance(s, For) else around)

    visit(body, ())
    reads = [(at, around, a) for at, around, s in found for a in loads(*(e for e in ir.expressions(s) if not _stored(s, e)))]
    return {
        s for at, around, s in found if isinstance(s, Assign) and s.target.kind == CALL and s.variable.kind != "input"
        and all(_after(place, loops, k, s.target, around, at) for k, loops, place in reads if variable_of(place) is s.variable)
    }  # fmt: skip


def _stored(s: Statement, e: Expr) -> bool:
    """Return whether an expression of a statement is the element that it assigns, whose indices are all that is read."""
    return isinstance(s, Assign) and e is s.target and not loads(*e.args[1:])


def _after(read: Expr, loops: tuple[For, ...], k: int, place: Expr, around: tuple[For, ...], at: int) -> bool:
    """Return whether an element that is read in one place, and stored in another, is always stored before it is read."""
    same = set[Variable]()  # loop variables of which both have the same value
    for loop in [a for a, b in zip(loops, around) if a is b]:
        steps = {_distance(i, j, loop.variable, same) for i, j in zip(read.args[1:], place.args[1:])} - {None}
        step = fixed(loop.bounds[2])
        if not steps or not step:
            return False
        if len(steps) > 1:  # never the same element
            return True
        if steps != {0}:
            return steps.pop() * step > 0  # type: ignore[operator]
        same.add(loop.variable)
    return k > at


def _distance(read: Expr, place: Expr, variable: Variable, same: set[Variable]) -> int | None:
    """Return by how much more a loop's variable is where an element is read than where it is stored, None if that varies."""
    offsets = [ir.sum_of(index, variable.leaf, -1) for index in (read, place)]
    certain = all(v.is_tensor or v.kind == "attribute" or v in same for v in names_in(*offsets))
    return fixed(ir.sum_of(offsets[1], offsets[0], -1)) if certain and not loads(*offsets) else None
