"""What a kernel is after its text has been read: loops, conditions and assignments over scalar expressions.

Expressions are those of :mod:`mxop.formula`: a number or an index is a leaf that holds a :class:`Variable`, an element is
``load(tensor, index...)``, a length ``size(tensor, axis)``.  Being interned, equal ones are the same object.  Types are not in
them: :mod:`.types` finds them for each call.  :data:`ROWS` is the primitive table with what only kernels have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, TypeAlias

from ...formula import TABLE, Expr, const, input_, leaves, walk
from ...formula.expr import CALL, CONST, INPUT, as_expr, raw_call
from ...formula.primitives import Primitive
from .source import Source

FLOATS = ("float", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
CASTS = ("bool_", *INTEGERS, "float16", "float32", "float64")

_THROUGH = {"rule": lambda g, a, y: (g,)}
#: Makes a row, of what has no gradient unless it says so.
_row = Primitive("", 2, "", "", TABLE["sign"].rule, costly=False)._replace
#: Primitives by name: those of formulas, and Python's remainder and rounding, conversions, elements.
ROWS: dict[str, Primitive] = TABLE | {
    row.name: row
    for row in (
        TABLE["mod"]._replace(cuda="({1} == 0 ? NAN : mx_mod({0}, {1}))"),
        _row(name="nearest", cuda="rint({0})", integer="({0})"),
        _row(name="arctan2", cuda="atan2({0}, {1})", costly=True,
             rule=lambda g, a, b, y: (g * b / (a * a + b * b), -g * a / (a * a + b * b))),
        _row(name="real", cuda="{0}", integer="{0}", **_THROUGH),
        _row(name="float16", cuda="(float)mx_half({0})", **_THROUGH),
        _row(name="float32", **_THROUGH), _row(name="float64", **_THROUGH),
        *[_row(name=name) for name in ("bool_", *INTEGERS, "load", "size")],
        _row(name="cube", cuda="({0} * ({0} * {0}))"),
    )
}  # fmt: skip


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


# ---- expressions ----------------------------------------------------------------------------------------------------
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


def read_in(*roots: Expr) -> set[Variable]:
    """Return the variables whose values expressions read: not tensors of which they take the length."""
    return {n.label for n in leaves(roots) if n.kind == INPUT and not n.label.is_tensor} | {  # type: ignore[union-attr,misc]
        variable_of(n) for n in loads(*roots)
    }


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


def sum_of(a: Expr, b: Expr | int, sign: int = 1) -> Expr:
    """Return ``a + sign * b`` of integers with equal terms joined."""
    terms, number = Counter[Expr](), 0
    stack = [(as_expr(a), 1), (as_expr(b), sign)]
    while stack:
        e, by = stack.pop()
        if (whole := fixed(e)) is not None:
            number += by * whole
        elif e.label in ("add", "sub", "neg"):
            signs = (-by,) if e.label == "neg" else (by, by if e.label == "add" else -by)
            stack += reversed(list(zip(e.args, signs, strict=True)))
        else:
            terms[e] += by
    found = None
    for e, by in sorted(terms.items(), key=lambda term: -term[1]):  # those that are added first
        part = e if abs(by) == 1 else node("mul", e, abs(by))
        if by:
            found = (part if by > 0 else node("neg", part)) if found is None else node("add" if by > 0 else "sub", found, part)
    if found is None or number:
        return const(number) if found is None else node("add" if number > 0 else "sub", found, abs(number))
    return found


def upto(n: Expr) -> tuple[Expr, Expr, Expr]:
    """Return the bounds of ``range(n)``."""
    return const(0), n, const(1)


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
    """Return whether a statement adds to what it assigns, as ``x[i] += value`` and ``x[i] -= value`` do."""
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

    `top` are those of the function's own block, `fixed` those of them that are assigned once; `known` has what has been
    declared before a statement, and `of` what lives in a block (the position of one in a statement) and ends with it.
    """

    def __init__(self, body: Sequence[Statement]):
        self.known: dict[Statement, set[Variable]] = {}
        self.of: dict[tuple[Statement, int], set[Variable]] = {}
        self.top = self._block(body, set())
        times = Counter(s.variable for s in assignments(body))
        self.fixed = {v for v in self.top if times[v] == 1}

    def _block(self, body: Sequence[Statement], before: set[Variable]) -> set[Variable]:
        new: set[Variable] = set()
        for s in body:
            known = self.known[s] = before | new
            if isinstance(s, Assign) and s.target.kind == INPUT:
                new |= {s.variable} - known
            found = [self._block(inner, known) for inner in blocks(s)]
            both = found[0] & found[1] if isinstance(s, If) else set()
            self.of |= {(s, k): declared - both for k, declared in enumerate(found)}
            new |= both
        return new
