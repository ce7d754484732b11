"""Numbers that are not known yet: sizes and parameters, where what is made of them is to hold for any.

Arithmetic with such a number gives another.  Whatever asks for a value (a comparison, ``float(n)``, ``range(n)``) gets the
answer for the value of this call, and the question is noted as a *guard*: what was made holds for all values with the same
answers.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import RLock, local
from typing import Any

from ..formula import Expr, const, param
from ..support.errors import MXNetError

Values = Mapping[str, float]
_serials = itertools.count()
_PLAIN = frozenset({int, float, bool, str, type(None)})

#: How Python writes a function of numbers.
_WRITTEN: dict[Callable, str] = {
    operator.add: "({} + {})", operator.sub: "({} - {})", operator.mul: "({} * {})", operator.truediv: "({} / {})",
    operator.floordiv: "({} // {})", operator.mod: "({} % {})", operator.pow: "({} ** {})", operator.neg: "(-{})",
    operator.abs: "abs({})", operator.lt: "{} < {}", operator.le: "{} <= {}", operator.gt: "{} > {}", operator.ge: "{} >= {}",
    operator.eq: "{} == {}", operator.ne: "{} != {}", operator.truth: "bool({})", repr: "repr({})",
}  # fmt: skip
_WHOLE = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg, operator.abs)


class Guards:
    """What was asked of the numbers of a call: expressions, and what they were found to be."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.asked: dict[
            str, tuple[Any, tuple[SymbolicNumber, ...]]
        ] = {}  # the answers, and the numbers that it was about
        self._check: Callable | None = None

    def note(self, text: str, operands: tuple, answer: Any) -> None:
        """Note a question about numbers, and its answer."""
        self.asked[text] = answer, tuple([a for a in operands if type(a) is SymbolicNumber])
        self._check = None

    def hold(self, values: Values) -> bool:
        """Tell whether all answers are the same for other values, once all has been asked; False where one is missing."""
        if self._check is None:
            asked = [f"({text}) == {answer!r}" for text, (answer, _) in self.asked.items()]
            numbers = [n for _, of in self.asked.values() for n in of]
            self._check = self.trace.compiled(" and ".join(asked) or "True", numbers)
        try:
            return self._check(**values)
        except (MXNetError, ArithmeticError, ValueError, TypeError):  # which the call shall meet itself
            return False


_completion = local()


@contextmanager
def no_questions() -> Iterator[None]:
    """Within the block, it is an error of this package to ask for the value of a number whose trace is closed."""
    before, _completion.on = getattr(_completion, "on", False), True
    try:
        yield
    finally:
        _completion.on = before


class Trace:
    """The numbers of one call, and what was asked of them.

    Parameters
    ----------
    values : dict of str to float
        The numbers, by names that are Python's, and their values in the call.
    sizes : dict of str to int
        Those that are whole in any call.

    Attributes
    ----------
    numbers : dict of str to SymbolicNumber
    sizes : dict of str to int
    guards : Guards
    leaves : dict
        Numbers in formulas: the leaves that stand for them.
    inputs : dict
        For the numbers that became inputs of a graph, and their type codes: the variable, and the number.
    closed, complete : bool
        Whether nothing is being made of the numbers now; whether no further one becomes an input.
    """

    def __init__(self, values: Values, sizes: Mapping[str, int] | None = None):
        self.guards = Guards(self)
        self.leaves: dict[Expr, SymbolicNumber] = {}
        self.inputs: dict[tuple, tuple[Any, SymbolicNumber]] = {}
        self.closed = self.complete = False
        self.sizes = dict(sizes or {})
        self.serial = next(_serials)
        self._asked: dict[str, tuple] = {}  # all that was ever asked, whose answers may have been kept
        self._scope: dict[str, Any] = {}  # what expressions name besides
        self._made: dict[str, SymbolicNumber] = {}  # by what they were made of
        self._extension: tuple[tuple, Callable] | None = None
        self._lock = RLock()
        self.numbers = {name: SymbolicNumber(self, name, v) for name, v in values.items()}
        self.numbers |= {name: SymbolicNumber(self, name, v, whole=True, least=2) for name, v in self.sizes.items()}

    def made(self, function: Callable, operands: tuple, value: Any) -> Any:
        """Return the number that a function makes of numbers: the same for what is made in the same way."""
        whole = function in _WHOLE and all(a.whole if type(a) is SymbolicNumber else type(a) is int for a in operands)
        if whole and (simpler := _simpler(function, operands)) is not None:
            return simpler
        base, offset = _sum(function, operands) if whole else (None, 0)
        if base is not None:
            if not offset:
                return base
            function, operands = operator.add, (base, offset)
        product = whole and function is operator.mul
        written = self._product(operands) if product else self._written(function, operands)
        with self._lock:
            if written not in self._made:
                least = _least(function, operands) if whole else None
                parts, name = tuple([a for a in operands if type(a) is SymbolicNumber]), f"_t{len(self._made)}"
                self._made[written] = SymbolicNumber(self, name, value, written, parts, whole, least, (base, offset))
        return self._made[written]

    def asked(self, function: Callable, operands: tuple, answer: Any) -> Any:
        """Note a question, and return its answer."""
        if self.closed:
            if getattr(_completion, "on", False):
                raise RuntimeError("a number was asked for its value after all that depends on it was made")
            return answer  # to who has kept a number of a call that was traced
        text = self._written(function, operands)
        self._asked[text] = operands, answer
        self.guards.note(text, operands, answer)
        return answer

    @contextmanager
    def asking_more(self) -> Iterator[Guards]:
        """Within the block, let more be made of the numbers.

        The guards are what is asked there, and what was asked ever before: answers may have been kept.
        """
        with self._lock:
            before, self.guards, self.closed = self.guards, Guards(self), False
            for text, (operands, answer) in self._asked.items():
                self.guards.note(text, operands, answer)
            try:
                yield self.guards
            finally:
                self.guards, self.closed = before, True

    def _product(self, operands: tuple) -> str:
        """Write a product of whole numbers in one way, in whatever order it was made."""
        count, factors = 1, []
        for a in operands:
            count *= a.count if type(a) is SymbolicNumber else a
            factors += a.factors if type(a) is SymbolicNumber else []
        return f"({' * '.join([*([str(count)] if count != 1 else []), *sorted(factors)])})"

    def _written(self, function: Callable, operands: tuple) -> str:
        written = _WRITTEN.get(function)
        if written is None:
            written = f"{self._named(function)}({', '.join(['{}'] * len(operands))})"
        return written.format(*map(self._operand, operands))

    def _operand(self, a: Any) -> str:
        if type(a) is SymbolicNumber:
            return a.text
        return f"({a!r})" if type(a) in (int, float, bool) and math.isfinite(a) else self._named(a)

    def _named(self, value: Any) -> str:
        name = next((n for n, v in self._scope.items() if v is value), f"_{len(self._scope)}")
        self._scope[name] = value
        return name

    def compiled(self, text: str, numbers: Iterable[SymbolicNumber]) -> Callable[..., Any]:
        """Return an expression of numbers as a function of those of the call, by name."""
        needed, names, stack = {}, set(), list(numbers)
        while stack:
            number = stack.pop()
            if number.text not in needed:
                needed[number.text] = number
                names |= number.names
                stack += number.parts
        made = [
            n for n in list(self._made.values()) if n.text in needed
        ]  # in which each comes after what it is made of
        lines = [f"    {n.text} = {n.written}\n" for n in made]
        own: dict[str, Any] = {}
        exec(f"def f({', '.join([*sorted(names), '**_'])}):\n{''.join(lines)}    return {text}", self._scope, own)
        return own["f"]  # written here, of numbers and their names

    def extended(self, values: Values) -> dict[str, Any]:
        """Return values of numbers of the call together with those of the numbers that are made of these."""
        key = frozenset(values), len(self._made)
        found = self._extension  # which another thread may exchange
        if found is None or found[0] != key:
            made = [n for n in list(self._made.values()) if n.names <= values.keys()]
            text = f"{{{', '.join([f'{n.text!r}: {n.text}' for n in made])}}}"
            found = self._extension = key, self.compiled(text, made)
        return {**values, **found[1](**values)}

    def computed(self, values: Values) -> tuple:
        """Return the inputs that numbers became, for other values, with their type codes."""
        return tuple([(float(number.at(values)), code) for (_, code), (_, number) in self.inputs.items()])

    def holds(self, values: Values) -> bool:
        """Tell whether what was made holds for other values, and all inputs can be computed."""
        try:
            self.computed(values)
        except (MXNetError, ArithmeticError, ValueError, TypeError):
            return False
        return self.guards.hold(values)


def _simpler(function: Callable, operands: tuple) -> Any:
    """Return what 0 and 1 do to whole numbers; None where the result is another number."""
    if len(operands) != 2:
        return None
    a, b = operands
    if function is operator.mul and 1 in (one := [x if type(x) is int else None for x in operands]):
        return b if one[0] == 1 else a
    if function is operator.mul and 0 in one:
        return 0
    if function is operator.add and type(a) is int and a == 0:
        return b
    if function in (operator.add, operator.sub) and type(b) is int and b == 0:
        return a
    return a if function is operator.floordiv and type(b) is int and b == 1 else None


def _sum(function: Callable, operands: tuple) -> tuple[SymbolicNumber | None, int]:
    """Return a sum of a number and integers as the number and one integer; None where it is something else."""
    if function not in (operator.add, operator.sub):
        return None, 0
    a, b = operands
    if function is operator.add and type(a) is int:
        a, b = b, a
    if type(b) is not int:
        return None, 0
    base, offset = a.sum if a.sum[0] is not None else (a, 0)
    return base, offset + (b if function is operator.add else -b)


def _least(function: Callable, operands: tuple) -> int | None:
    """Return what a whole number is at least, from what its parts are; None where that is not known."""
    low = [a.least if type(a) is SymbolicNumber else a for a in operands]
    if function in (operator.mod, operator.floordiv) and type(operands[1]) is int and operands[1] > 0:
        return 0 if function is operator.mod else None if low[0] is None else low[0] // operands[1]
    if None in low or function not in (operator.add, operator.mul):
        return None
    return low[0] + low[1] if function is operator.add else low[0] * low[1] if min(low) >= 0 else None


def _always(function: Callable, operands: tuple) -> bool:
    """Tell whether the answer to a question is the same in any call, since a number is at least something."""
    a, b = operands if len(operands) == 2 else (operands[0], 0)
    if type(a) is not SymbolicNumber or a.least is None or type(b) is not int:
        return False
    return a.least >= b if function in (operator.lt, operator.ge) else function is not repr and a.least > b


class SymbolicNumber:
    """A number of a call, or one that is made of such.

    It is no float and no int, for then functions of C would read its value without asking.

    Attributes
    ----------
    trace : Trace
    text : str
        Its name.
    value : float or int
        In this call.
    written : str
        The expression that it is of its `parts`; empty for a number of the call.
    parts : tuple of SymbolicNumber
    names : frozenset of str
        The numbers of the call that it depends on.
    whole : bool
        Whether it is an integer in any call.
    least : int, optional
        What it is at least in any call, where that is known.
    sum : (SymbolicNumber, int)
        Of a sum with an integer: that, and what it was added to.
    """

    __slots__ = (
        "_compute",
        "count",
        "factors",
        "least",
        "names",
        "parts",
        "sum",
        "text",
        "trace",
        "value",
        "whole",
        "written",
    )

    def __init__(
        self,
        trace: Trace,
        text: str,
        value: Any,
        written: str = "",
        parts: tuple[SymbolicNumber, ...] = (),
        whole: bool = False,
        least: int | None = None,
        sum_: tuple[SymbolicNumber | None, int] = (None, 0),
    ):
        self.trace, self.text, self.value, self.written, self.parts = trace, text, value, written, parts
        self.whole, self.least, self.sum = whole, least, sum_
        self.names = frozenset().union(*[n.names for n in parts]) if parts else frozenset([text])
        self._compute: Callable | None = None
        product = whole and " * " in written
        factors = written[1:-1].split(" * ") if product else [text]
        self.count = int(factors[0]) if factors[0].isdigit() else 1  # of a product: the constant factor, and the others
        self.factors = factors[1:] if factors[0].isdigit() else factors

    @property
    def __class__(self) -> type:  # type: ignore[misc]
        """What it stands for: functions may ask whether a parameter is a number."""
        return type(self.value)

    def at(self, values: Values) -> Any:
        """Return its value for values of the numbers of a call."""
        if self._compute is None:
            self._compute = self.trace.compiled(self.text, [self])
        return self._compute(**values)

    def read(self) -> Any:
        """Return the value; what is made of it holds for no other."""
        self.trace.asked(repr, (self,), repr(self.value))
        return self.value

    def _make(self, function: Callable, *operands: Any) -> Any:
        values = [a.value if type(a) is SymbolicNumber else a for a in operands]
        if not all(isinstance(v, (int, float)) for v in values):
            return NotImplemented
        return self.trace.made(function, operands, function(*values))

    def _ask(self, function: Callable, *operands: Any) -> Any:
        values = [a.value if type(a) is SymbolicNumber else a for a in operands]
        if not all(isinstance(v, (int, float)) for v in values):
            return NotImplemented
        answer = function(*values)
        return answer if _always(function, operands) else self.trace.asked(function, operands, answer)

    # fmt: off
    def __add__(self, other: Any) -> Any: return self._make(operator.add, self, other)
    def __radd__(self, other: Any) -> Any: return self._make(operator.add, other, self)
    def __sub__(self, other: Any) -> Any: return self._make(operator.sub, self, other)
    def __rsub__(self, other: Any) -> Any: return self._make(operator.sub, other, self)
    def __mul__(self, other: Any) -> Any: return self._make(operator.mul, self, other)
    def __rmul__(self, other: Any) -> Any: return self._make(operator.mul, other, self)
    def __truediv__(self, other: Any) -> Any: return self._make(operator.truediv, self, other)
    def __rtruediv__(self, other: Any) -> Any: return self._make(operator.truediv, other, self)
    def __floordiv__(self, other: Any) -> Any: return self._make(operator.floordiv, self, other)
    def __rfloordiv__(self, other: Any) -> Any: return self._make(operator.floordiv, other, self)
    def __mod__(self, other: Any) -> Any: return self._make(operator.mod, self, other)
    def __rmod__(self, other: Any) -> Any: return self._make(operator.mod, other, self)
    def __pow__(self, other: Any) -> Any: return self._make(operator.pow, self, other)
    def __rpow__(self, other: Any) -> Any: return self._make(operator.pow, other, self)
    def __divmod__(self, other: Any) -> Any: return self // other, self % other
    def __rdivmod__(self, other: Any) -> Any: return other // self, other % self
    def __neg__(self) -> Any: return self._make(operator.neg, self)
    def __pos__(self) -> Any: return self
    def __abs__(self) -> Any: return self._make(operator.abs, self)
    def __lt__(self, other: Any) -> Any: return self._ask(operator.lt, self, other)
    def __le__(self, other: Any) -> Any: return self._ask(operator.le, self, other)
    def __gt__(self, other: Any) -> Any: return self._ask(operator.gt, self, other)
    def __ge__(self, other: Any) -> Any: return self._ask(operator.ge, self, other)
    def __ne__(self, other: Any) -> Any: return False if self is other else self._ask(operator.ne, self, other)
    def __bool__(self) -> bool: return self._ask(operator.truth, self)
    def __float__(self) -> float: return float(self.read())
    def __int__(self) -> int: return int(self.read())
    def __format__(self, how: str) -> str: return format(self.read(), how)
    def __str__(self) -> str: return str(self.read())
    # fmt: on

    def __index__(self) -> int:
        if not isinstance(self.value, int):
            raise TypeError(f"{type(self.value).__name__!r} object cannot be interpreted as an integer")
        return self.read()

    def __eq__(self, other: object) -> Any:
        return True if self is other else self._ask(operator.eq, self, other)

    def __hash__(self) -> int:
        return id(self)  # shapes and parameters are keys; numbers that are made in the same way are one

    def __repr__(self) -> str:
        return f"<{self.value!r}: {self.text} of call {self.trace.serial}>"  # texts are keys, too: no other number has this one


def concrete(value: Any, values: Values) -> Any:
    """Return a value, or a tuple or list of such, with the numbers in it computed that these values say."""
    if type(value) is SymbolicNumber:
        if value.text in values:
            return values[value.text]
        return value.at(values) if value.names <= values.keys() else value
    if type(value) in (tuple, list) and not _PLAIN.issuperset(map(type, value)):
        found = [concrete(v, values) for v in value]
        if all(map(operator.is_, found, value)):
            return value
        return tuple(found) if type(value) is tuple else found
    return value


def completing(value: Any) -> Callable[[Values], Any] | None:
    """Return a function that does what :func:`concrete` does for a value; None where there are no symbolic numbers in it."""
    if type(value) is SymbolicNumber:
        return partial(concrete, value)
    if type(value) not in (tuple, list) or _PLAIN.issuperset(map(type, value)):
        return None
    parts = [(k, part) for k, part in enumerate(map(completing, value)) if part is not None]

    def completed(values: Values) -> Any:
        found = list(value)
        for k, part in parts:
            found[k] = part(values)
        return found if type(value) is list else tuple(found)

    return completed if parts else None


def is_concrete(shape: Iterable[Any]) -> bool:
    """Tell whether no size is symbolic."""
    return SymbolicNumber not in map(type, shape)


def leaf_of(number: Any) -> Expr:
    """Return a number as a leaf of a formula."""
    if type(number) is not SymbolicNumber:
        return const(float(number))
    leaf = param(number.text)
    number.trace.leaves[leaf] = number
    return leaf


def computed(function: Callable[..., float], *numbers: Any) -> Any:
    """Return ``function(*numbers)``, for composites that compute with their parameters in a way of their own.

    The function is called again for each new value; it may raise for one that is wrong.

    >>> computed(math.hypot, 3.0, 4.0)
    5.0
    """
    trace = next((n.trace for n in numbers if type(n) is SymbolicNumber), None)
    if trace is None:
        return function(*numbers)
    values = [n.value if type(n) is SymbolicNumber else n for n in numbers]
    return trace.made(function, numbers, function(*values))


def numbers_of(op: Any, attrs: Any) -> dict[str, float]:
    """Return the numeric parameters of a call that may be any number; infinities and NaN are cases of their own.

    Names that begin with an underscore are those of sizes.
    """
    found = {p.name: attrs[p.name] for p in op.spec.params if p.is_number and not p.name.startswith("_")}
    return {name: v for name, v in found.items() if v is not None and math.isfinite(v)}


__all__ = [
    "Guards", "SymbolicNumber", "Trace", "completing", "computed", "concrete", "is_concrete", "leaf_of", "no_questions",
    "numbers_of",
]  # fmt: skip
