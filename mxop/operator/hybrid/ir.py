"""What a kernel is after its text has been read: loops, conditions and assignments over scalar expressions.

Expressions are those of :mod:`mxop.formula`: a number or an index is a leaf that holds a :class:`Variable`, an element is
``load(tensor, index...)``, a length ``size(tensor, axis)``.  Being interned, equal ones are the same object.  Types are not
in them: :mod:`.types` finds them for each call.  :data:`ROWS` is the primitive table with what only kernels have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ...formula import TABLE, Expr, input_, leaves, walk
from ...formula.expr import CALL, CONST, INPUT, as_expr, raw_call
from ...formula.primitives import Primitive
from .source import Source

FLOATS = ("float", "float32", "float64")
CASTS = ("bool_", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64")


@dataclass(eq=False)
class Variable:
    """A name of a kernel within the scope that declares it.

    Attributes
    ----------
    kind : {'input', 'output', 'local', 'attribute', 'scalar', 'loop', 'grid', 'number'}
        The first three are tensors; 'grid' stands for several loop variables; 'number' is an integer in the text that is
        too large for a constant of a formula.
    unique : str
        A name that no other variable of the kernel has.
    shape, dtype
        How a tensor was allocated: expressions, and a name or a tensor.
    rank : int or None
        Number of indices, as far as it is known.
    loops : tuple of Variable
        What a grid's variable stands for.
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

    @property
    def is_tensor(self) -> bool:
        return self.kind in ("input", "output", "local")

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
    """Run through ``range(start, stop, step)``; `word` says how."""

    variable: Variable
    word: str
    start: Expr
    stop: Expr
    step: Expr
    body: list[Statement]
    line: int

    @property
    def bounds(self) -> tuple[Expr, Expr, Expr]:
        return self.start, self.stop, self.step


@dataclass(eq=False)
class If:
    """Run one of two blocks."""

    test: Expr
    body: list[Statement]
    orelse: list[Statement]
    line: int


Statement: TypeAlias = Allocate | Assign | For | If


@dataclass(eq=False)
class Routine:
    """A kernel.

    Attributes
    ----------
    arguments, results : list of Variable
        Tensors and attributes; what is returned, in order.
    variables : list of Variable
        All of them.
    """

    source: Source
    arguments: list[Variable] = field(default_factory=list)
    results: list[Variable] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    body: list[Statement] = field(default_factory=list)
    single: bool = True

    @property
    def inputs(self) -> list[Variable]:
        """The arguments that are tensors."""
        return [v for v in self.arguments if v.is_tensor]

    @property
    def attributes(self) -> list[Variable]:
        """The arguments that are numbers."""
        return [v for v in self.arguments if not v.is_tensor]

    @property
    def made(self) -> list[Variable]:
        """The outputs that are no inputs."""
        return [v for v in self.results if v not in self.arguments]

    @property
    def locals(self) -> list[Variable]:
        """The tensors that are neither."""
        return [v for v in self.variables if v.is_tensor and v not in self.arguments and v not in self.results]


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


def loads(*roots: Expr) -> list[Expr]:
    """Return the elements that expressions read, those inside of indices first."""
    return [n for n in walk(roots) if n.kind == CALL and n.label == "load"]


def fixed(expression: Expr) -> Any:
    """Return the value of an integer that stands in the text, else None."""
    whole = expression.kind == CONST and float(expression.label).is_integer()
    return int(expression.label) if whole else None


# ---- statements -----------------------------------------------------------------------------------------------------
def statements(block: Iterable[Statement]) -> Iterator[Statement]:
    """Yield all statements of a block, those inside others too, in the order of the text."""
    for statement in block:
        yield statement
        if isinstance(statement, For):
            yield from statements(statement.body)
        elif isinstance(statement, If):
            yield from statements(statement.body)
            yield from statements(statement.orelse)


def assignments(block: Iterable[Statement]) -> list[Assign]:
    """Return all assignments of a block."""
    return [s for s in statements(block) if isinstance(s, Assign)]


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """Return the expressions of a statement, without those of the statements inside."""
    match statement:
        case Assign():
            return statement.value, statement.target
        case For():
            return statement.bounds
        case If():
            return (statement.test,)
    return statement.variable.shape


class Scopes:
    """Where numbers are declared.

    Attributes
    ----------
    top : set of Variable
        Those of the function's own block.
    first : set of Assign
        Those before which the variable had no value.
    known : dict of For to set of Variable
        What has been declared before a loop.
    fixed : set of Variable
        Those of the function's own block that are assigned once.
    """

    def __init__(self, body: Sequence[Statement]):
        self.first: set[Assign] = set()
        self.known: dict[Statement, set[Variable]] = {}
        self._of: dict[tuple[Statement, bool], set[Variable]] = {}
        self.top = self._block(body, set())
        targets = [s.variable for s in assignments(body)]
        self.fixed = {v for v in self.top if targets.count(v) == 1}

    def of(self, owner: Statement, orelse: bool = False) -> set[Variable]:
        """Return the numbers that live in a block of a loop or a condition."""
        return self._of[owner, orelse]

    def _block(self, body: Sequence[Statement], known: set[Variable]) -> set[Variable]:
        new: set[Variable] = set()
        for s in body:
            match s:
                case Assign() if s.target.kind == INPUT and s.variable not in known | new:
                    self.first.add(s)
                    new.add(s.variable)
                case For():
                    self.known[s] = known | new
                    self._of[s, False] = self._block(s.body, known | new)
                case If():
                    yes, no = self._block(s.body, known | new), self._block(s.orelse, known | new)
                    self._of[s, False], self._of[s, True] = yes - no, no - yes
                    new |= yes & no
        return new


# ---- what only kernels have -----------------------------------------------------------------------------------------
def _nothing(g: Expr, *operands_and_result: Expr) -> tuple[None, ...]:
    return (None,) * (len(operands_and_result) - 1)


def _through(g: Expr, a: Expr, y: Expr) -> tuple[Expr]:
    return (g,)


def _arctan2(g: Expr, a: Expr, b: Expr, y: Expr) -> tuple[Expr, Expr]:
    return g * b / (a * a + b * b), -g * a / (a * a + b * b)


def _row(name: str, cuda: str, rule: Any = _nothing, integer: str | None = None) -> Primitive:
    return Primitive(name, 2, "", cuda, rule, integer, costly=rule is _arctan2)


#: Primitives by name: those of formulas, and Python's division, rounding and integer power, conversions, elements.
ROWS: dict[str, Primitive] = TABLE | {
    row.name: row
    for row in (
        _row("floordiv", "mx_floordiv({0}, {1})", integer="mx_ifloordiv({T}, {0}, {1})"),
        _row("ipow", "", integer="mx_ipow<{T}>({0}, {1})"),
        _row("nearest", "rint({0})", integer="({0})"),
        _row("arctan2", "atan2({0}, {1})", _arctan2),
        _row("half", "(float)float16({0})", _through),
        _row("real", "({0})", _through),
        _row("load", ""), _row("size", "", integer=""),
        *(_row(name, "", _through if name.startswith("float") else _nothing) for name in CASTS),
    )
}  # fmt: skip
