"""A derived kernel with fewer statements, so that it is compiled, and derived again, in less time.

Numbers that are copies of others, or are used once, are put where they are used; assignments that nothing reads go; each value
of a number has a name of its own where that is possible, so that the next derivative need not keep it; a value that is stored
twice is stored once; parallel loops over the same range become one.  Only the sign of a zero may change: zero plus a gradient
is the gradient.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...formula import Expr, walk
from ...formula.expr import CONST, INPUT
from . import ir
from .ir import Allocate, Assign, For, If, Routine, Scopes, Statement, Variable, names_in, node
from .races import meeting
from .types import Types

Values = dict[Variable, Expr]


def simplified(types: Types) -> Routine:
    """Return the routine of these types, simplified."""
    return _Simplifier(types).routine


class _Simplifier:
    def __init__(self, types: Types):
        self.types, self.old = types, types.routine
        body, size = self.old.body, 0
        while size != (size := sum(len(list(walk(ir.expressions(s)))) for s in ir.statements(body))):
            body = self.stored_once(self.read_later(body))
            self.ends: dict[int, set[Variable]] = {}  # what is read after a block, of numbers
            body, _ = self.live(body, set())
            every = ir.assignments(body)
            self.times = Counter(s.variable for s in every)
            body = self.renamed(body, {})
            self.uses = Counter(a.label for s in ir.statements(body) for e in ir.expressions(s) if e is not _place(s)
                                for n in (node("real", e), *walk([e])) for a in n.args if a.kind == INPUT)  # fmt: skip
            self.times = Counter(s.variable for s in ir.assignments(body))
            body, _ = self.live(self.put(body, {}), set())
        self.routine = replace(self.old, body=_fused(body))

    # ---- what is read later -------------------------------------------------------------------------------------------
    def read_later(self, body: list[Statement]) -> list[Statement]:
        """Return the routine without what is stored in tensors of its own that nothing reads."""
        read = {ir.variable_of(a) for s in ir.statements(body) for a in ir.loads(*ir.other_than_sum(s))}
        read |= {*self.old.arguments, *self.old.results}
        return _without(body, {s.variable for s in ir.assignments(body) if s.target.kind != INPUT} - read)

    def live(self, body: Sequence[Statement], after: set[Variable]) -> tuple[list[Statement], set[Variable]]:
        """Return a block without assignments to numbers that nothing reads, and the numbers that are read from its begin on."""
        found, later = list[Statement](), set(after)
        for s in reversed(body):
            inner: list[list[Statement]] = []
            if isinstance(s, Assign) and s.target.kind == INPUT:
                if s.variable not in later:
                    continue
                later -= {s.variable}
            elif isinstance(s, For):
                while True:  # what an iteration leaves to the next
                    block, begin = self.live(s.body, later)
                    if begin - {s.variable} <= later:
                        break
                    later |= begin - {s.variable}
                inner = [block]
            elif isinstance(s, If):
                inner, begins = map(list, zip(*(self.live(block, later) for block in ir.blocks(s))))
                later = set().union(*begins)
            if any(inner) or not ir.blocks(s):
                found.append(_with(s, inner))
                later |= names_in(*(e for e in ir.expressions(s) if e is not _place(s)))
        found.reverse()
        self.ends[id(found)] = set(after)
        return found, later

    # ---- names --------------------------------------------------------------------------------------------------------
    def renamed(self, body: list[Statement], names: Values) -> list[Statement]:
        """Return a block in which values that only its own statements read have names of their own."""
        names, found = dict(names), list[Statement]()
        for k, s in enumerate(body):
            blocks = [self.renamed(block, names) for block in ir.blocks(s)]
            change = self.filled(names)
            if isinstance(s, Assign) and s.target.kind == INPUT:
                v, value = s.variable, change(s.value)
                names.pop(v, None)
                typed = self.typed(value, self.types.kinds[v], None)
                if self.times[v] > 1 and typed is not None and self.is_own(v, body, k):
                    new = self.old.new(v.unique, "scalar", s.line)
                    self.types.kinds[new] = self.types.kinds[v]
                    names[v], value = new.leaf, typed
                found.append(Assign(names.get(v, s.target), value, s.line))
            else:
                found.append(_with(s, blocks, change))
        return found

    def is_own(self, v: Variable, body: list[Statement], k: int) -> bool:
        """Return whether a block alone reads what its k-th statement assigns to a number."""
        for s in body[k + 1 :]:
            if isinstance(s, Assign) and s.variable is v:
                return True
            if any(a.variable is v for a in ir.assignments([s])):
                return False
        return v not in self.ends[id(body)]

    # ---- values -------------------------------------------------------------------------------------------------------
    def put(self, body: Sequence[Statement], known: Values) -> list[Statement]:
        """Return a block with the values of numbers in their place: copies, fixed numbers, and what is used once."""
        known, once, found = dict(known), Values(), list[Statement]()
        for s in body:
            change = self.filled(known | once)
            changed = {a.variable for a in ir.assignments([s])} | ({s.variable} if isinstance(s, For) else set())
            done = _with(s, ir.blocks(s), change)
            for values in (known, once):
                for v in [v for v, value in values.items() if v in changed or names_in(value) & changed]:
                    del values[v]
            blocks = [self.put(block, known) for block in ir.blocks(s)]
            if isinstance(done, Assign) and done.target.kind == INPUT and done.variable not in names_in(done.value):
                part = done.value if done.value.label not in ("real", *ir.CASTS) else done.value.args[0]
                if part.kind in (CONST, INPUT):
                    known[done.variable] = done.value
                elif self.times[done.variable] == self.uses[done.variable] == 1:
                    once[done.variable] = done.value
            if not (isinstance(done, Assign) and done.value is done.target):
                if _adds_to_zero(found, done):
                    found[-1] = Assign(done.target, done.value.args[1], done.line)  # type: ignore[union-attr]
                else:
                    found.append(_with(done, blocks))
        return found

    def filled(self, values: Values):
        """Return a function that puts values into an expression."""
        built: dict[Expr, Expr] = {}

        def change(e: Expr) -> Expr:
            for n in walk([e]):
                if n not in built:
                    v = n.label if n.kind == INPUT else None
                    if v in values:
                        built[n] = self.typed(values[v], self.types.kinds[v], n)
                    else:
                        args = [built[a] for a in n.args]
                        built[n] = self.fold(n if all(map(operator.is_, args, n.args)) else node(n.label, *args))
            return built[e]

        return change

    def typed(self, value: Expr, kind: str, otherwise: Expr | None) -> Expr | None:
        """Return a value as a number of a type holds it."""
        if self.types.of(value) == kind:
            return value
        return node(kind, value) if kind in ("float32", "float64") else otherwise

    def fold(self, e: Expr) -> Expr:
        """Return a sum or product without what leaves the other operand as it is."""
        if e.label not in ("add", "sub", "mul", "neg"):
            return e
        a, b = e.args[0], e.args[-1]
        nothing, found = 1 if e.label == "mul" else 0, e
        if e.label == "neg":
            found = a.args[0] if a.label == "neg" else e
        elif _number(b) == nothing:
            found = a
        elif _number(a) == nothing:
            found = node("neg", b) if e.label == "sub" else b
        elif b.label == "neg" and e.label != "mul":
            found = node("sub" if e.label == "add" else "add", a, b.args[0])
        return found if self.types.of(found) == self.types.of(e) else e

    # ---- stores -------------------------------------------------------------------------------------------------------
    def stored_once(self, body: list[Statement]) -> list[Statement]:
        """Return the routine with one tensor for several that are stored the same values beside each other."""
        times = Counter(s.variable for s in ir.assignments(body))
        made = {s.variable for s in body if isinstance(s, Allocate)} - set(self.old.results)
        same: dict[Expr, Expr] = {}
        for block in [body, *(b for s in ir.statements(body) for b in ir.blocks(s))]:
            stores: dict[tuple, Variable] = {}
            for s in block:
                if isinstance(s, Assign) and s.variable in made and times[s.variable] == 1:
                    v = s.variable
                    first = stores.setdefault((s.value, s.target.args[1:], v.shape, self.types.codes[v]), v)
                    if first is not v:
                        same[v.leaf] = first.leaf
                else:
                    stores = {}
        body = _without(body, {e.label for e in same})  # type: ignore[misc]
        for s in body:
            if isinstance(s, Allocate):
                s.variable.shape = tuple([_exchanged(n, same) for n in s.variable.shape])
        return _all(body, lambda e: _exchanged(e, same)) if same else body


def _place(s: Statement) -> Expr | None:
    """Return the number that a statement assigns, which it does not read."""
    return s.target if isinstance(s, Assign) and s.target.kind == INPUT else None


def _number(e: Expr) -> float | None:
    while e.label in ("real", *ir.FLOATS):
        e = e.args[0]
    return e.label if e.kind == CONST else None  # type: ignore[return-value]


def _adds_to_zero(before: list[Statement], s: Statement) -> bool:
    """Return whether a statement adds to what the one before it makes zero."""
    last = before[-1] if before else None
    if not (isinstance(last, Assign) and isinstance(s, Assign) and last.target is s.target and _number(last.value) == 0):
        return False
    added = ir.adds(s) and s.value.label == "add"
    return added and s.variable not in names_in(s.value.args[1], *s.target.args[1:])


def _exchanged(e: Expr, values: dict[Expr, Expr]) -> Expr:
    built: dict[Expr, Expr] = {}
    for n in walk([e]):
        args = [built[a] for a in n.args]
        built[n] = values[n] if n in values else node(n.label, *args) if n.args else n
    return built[e]


def _with(s: Statement, blocks: Sequence[list[Statement]], change=lambda e: e) -> Statement:
    """Return a statement with other blocks, and with changed expressions."""
    match s:
        case Assign():
            return Assign(s.target if s.target.kind == INPUT else change(s.target), change(s.value), s.line)
        case For():
            return replace(s, bounds=tuple([change(b) for b in s.bounds]), body=blocks[0])
        case If():
            return If(change(s.test), *blocks, s.line)
    return s


def _all(body: Iterable[Statement], change) -> list[Statement]:
    return [_with(s, [_all(block, change) for block in ir.blocks(s)], change) for s in body]


def _without(body: Iterable[Statement], tensors: set[Variable]) -> list[Statement]:
    """Return a block without assignments to tensors."""
    kept = [s for s in body if not (isinstance(s, Assign) and s.variable in tensors)]
    return [_with(s, [_without(block, tensors) for block in ir.blocks(s)]) for s in kept]


def _fused(body: list[Statement]) -> list[Statement]:
    """Return the routine with one parallel loop for several over the same range, where no iteration needs another's results."""
    found: list[Statement] = []
    for s in body:
        for k in range(len(found) - 1, -1, -1):
            before, between = found[k], found[k + 1 :]
            if isinstance(s, For) and isinstance(before, For) and s.word == before.word == "parallel" and (
                    s.variable is before.variable and all(map(operator.is_, s.bounds, before.bounds))):  # fmt: skip
                both = replace(s, body=[*before.body, *s.body])
                if _independent([before], between) and meeting(both, Scopes([*found[:k], *between, both])) is not None:
                    found[k:] = [*between, both]
                    break
        else:
            found.append(s)
    return found


def _independent(a: Sequence[Statement], b: Sequence[Statement]) -> bool:
    """Return whether blocks may change places."""
    named, written = zip(*(_names(block) for block in (a, b)))
    return not (written[0] & named[1] or written[1] & named[0])


def _names(block: Sequence[Statement]) -> tuple[set[Variable], set[Variable]]:
    """Return the variables that a block names, and those of which it changes values."""
    every = list(ir.statements(block))
    written = {s.variable for s in every if not isinstance(s, If)}
    return written | names_in(*(e for s in every for e in ir.expressions(s))), written
