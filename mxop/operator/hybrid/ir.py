"""What a kernel is after its text has been read: loops, conditions and assignments over scalar expressions.

Imports :mod:`.scalars`, :mod:`.source`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, TypeAlias

from ...formula import Expr
from ...formula.expr import CALL, INPUT
from .scalars import Variable, loads, variable_of
from .source import Source


@dataclass(eq=False)
class Allocate:
    """Make a tensor of zeros."""

    variable: Variable
    line: int


@dataclass(eq=False)
class Assign:
    """Give a number (a leaf) or an element (a load) a value."""

    target: Expr
    value: Expr
    line: int

    @property
    def variable(self) -> Variable:
        return variable_of(self.target)


@dataclass(eq=False)
class For:
    """Run through ``range(*bounds)``; `word` says how."""

    variable: Variable
    word: str
    bounds: tuple[Expr, ...]  # three
    body: list[Statement]
    line: int


@dataclass(eq=False)
class If:
    """Run one of two blocks."""

    test: Expr
    body: list[Statement]
    orelse: list[Statement]
    line: int


Statement: TypeAlias = Allocate | Assign | For | If


def expressions(s: Statement) -> tuple[Expr, ...]:
    """Return the expressions of a statement itself."""
    match s:
        case Allocate():
            return s.variable.shape
        case Assign():
            return s.value, s.target
        case For():
            return s.bounds
    return (s.test,)


def blocks(s: Statement) -> tuple[list[Statement], ...]:
    """Return the blocks of statements inside a statement."""
    return (s.body,) if isinstance(s, For) else (s.body, s.orelse) if isinstance(s, If) else ()


@dataclass(eq=False)
class Routine:
    """A kernel: its arguments (tensors and attributes), what it returns, all its variables by unique name, its statements."""

    source: Source
    arguments: list[Variable] = field(default_factory=list)
    results: list[Variable] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    body: list[Statement] = field(default_factory=list)
    single: bool = True

    def new(self, name: str, kind: str, line: int, **more: Any) -> Variable:
        """Declare a variable."""
        others = (f"{name}__{k}" for k in count(len(self.variables)))
        unique = next(n for n in chain([name], others) if n not in self.variables)
        found = self.variables[unique] = Variable(name, kind, unique, line, **more)
        return found

    @property
    def inputs(self) -> list[Variable]:
        return [v for v in self.arguments if v.is_tensor]

    @property
    def attributes(self) -> list[Variable]:
        return [v for v in self.arguments if not v.is_tensor]

    @property
    def locals(self) -> list[Variable]:
        """The tensors that it makes for itself."""
        made = [s.variable for s in statements(self.body) if isinstance(s, Allocate)]
        return [v for v in made if v not in self.results]


# ---- statements -----------------------------------------------------------------------------------------------------
def statements(block: Iterable[Statement]) -> Iterator[Statement]:
    """Yield all statements of a block, those inside others too, in the order of the text."""
    for statement in block:
        yield statement
        for inner in blocks(statement):
            yield from statements(inner)


def assignments(block: Iterable[Statement]) -> list[Assign]:
    """Return all assignments of a block."""
    return [s for s in statements(block) if isinstance(s, Assign)]


def adds(s: Statement) -> bool:
    """Tell whether a statement adds to what it assigns, as ``x[i] += value`` and ``x[i] -= value`` do."""
    return isinstance(s, Assign) and s.value.label in ("add", "sub") and s.value.args[0] is s.target


def other_than_sum(s: Statement) -> Sequence[Expr]:
    """Return what a statement reads, but for what it adds to."""
    if not isinstance(s, Assign):
        return expressions(s)
    return [s.value.args[1] if adds(s) else s.value, *s.target.args[1:]]


def changing(block: Iterable[Statement]) -> set[Variable]:
    """Return what a block declares or gives values, but for elements: loop variables, numbers, tensors that it makes."""
    elements = {s for s in assignments(block) if s.target.kind == CALL}
    return {s.variable for s in statements(block) if not isinstance(s, If) and s not in elements}


def accesses(block: Iterable[Statement]) -> dict[Variable, list[Expr]]:
    """Return the elements that a block reads or writes, by tensor."""
    found: dict[Variable, list[Expr]] = {}
    for s in statements(block):
        for access in loads(*expressions(s)):
            found.setdefault(variable_of(access), []).append(access)
    return found


def nested(variables: Sequence[Variable], word: str, ranges: Sequence[tuple[Expr, ...]], body: list[Statement],
           line: int) -> list[Statement]:  # fmt: skip
    """Return loops inside each other, the last of them around a block."""
    for variable, bounds in reversed(list(zip(variables, ranges, strict=True))):
        body = [For(variable, word, bounds, body, line)]
    return body


class Builder:
    """Writes statements into the block that is `out`."""

    out: list[Statement]

    @contextmanager
    def collected(self) -> Iterator[list[Statement]]:
        """Give a new block, which takes what is written meanwhile."""
        before, self.out = self.out, []
        yield self.out
        self.out = before


class Scopes:
    """Where numbers are declared.

    `top` are those of the function's own block, `fixed` those of them that are assigned once; `first` has the assignments
    before which a variable had no value, `known` what has been declared before a statement, and `of` what lives in a block (the
    position of one in a statement) and ends with it.
    """

    def __init__(self, body: Sequence[Statement]):
        self.first: set[Assign] = set()
        self.known: dict[Statement, set[Variable]] = {}
        self.of: dict[tuple[Statement, int], set[Variable]] = {}
        self.top = self._block(body, set())
        times = Counter(s.variable for s in assignments(body))
        self.fixed = {v for v in self.top if times[v] == 1}

    def _block(self, body: Sequence[Statement], before: set[Variable]) -> set[Variable]:
        new: set[Variable] = set()
        for s in body:
            known = self.known[s] = before | new
            if isinstance(s, Assign) and s.target.kind == INPUT and s.variable not in known:
                self.first.add(s)
                new.add(s.variable)
            found = [self._block(inner, known) for inner in blocks(s)]
            both = found[0] & found[1] if isinstance(s, If) else set()
            self.of |= {(s, k): declared - both for k, declared in enumerate(found)}
            new |= both
        return new
