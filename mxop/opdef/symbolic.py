"""Symbolic numbers: sizes and parameters whose values are unknown while a graph is made that shall hold for any of them.

Arithmetic with a symbolic number gives another one.  An operation that needs the value (a comparison, ``float(n)``,
``range(n)``) gets the result for the current call, which is recorded as a *guard*: the graph holds for all values for which
every guard has the same result.
"""

from __future__ import annotations

import itertools
import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ContextDecorator, contextmanager
from threading import RLock, local
from types import FrameType
from typing import Any

from ..formula import Expr, const, param
from ..support.errors import MXNetError

Values = Mapping[str, float]
_serials = itertools.count()
_own_hash = object.__hash__
_PLAIN = frozenset({int, float, bool, str, type(None)})

#: Python expressions for functions of numbers.
_WRITTEN: dict[Callable, str] = {
    operator.add: "({} + {})", operator.sub: "({} - {})", operator.mul: "({} * {})", operator.truediv: "({} / {})",
    operator.floordiv: "({} // {})", operator.mod: "({} % {})", operator.pow: "({} ** {})", operator.neg: "(-{})",
    operator.abs: "abs({})", operator.lt: "{} < {}", operator.le: "{} <= {}", operator.gt: "{} > {}", operator.ge: "{} >= {}",
    operator.eq: "{} == {}", operator.ne: "{} != {}", operator.truth: "bool({})", repr: "repr({})",
}  # fmt: skip
_BITS = (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift)
_INTEGRAL = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg, operator.abs, *_BITS)
_ROUNDED = (math.trunc, math.floor, math.ceil, round)


class Guards:
    """Conditions on the numbers of a call: expressions, and their results in that call."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.answers: dict[str, tuple[Any, tuple[SymbolicNumber, ...]]] = {}  # results, operands
        self.asked: dict[tuple, Any] = {}  # results again, by function and operands
        self._check: Callable | None = None

    def note(self, text: str, operands: tuple, answer: Any) -> None:
        """Record the result of an expression."""
        self.answers[text] = answer, tuple([a for a in operands if type(a) is SymbolicNumber])
        self._check = None

    def beyond(self, others: Guards) -> Guards:
        """Return the conditions that are not among others."""
        found = Guards(self.trace)
        found.answers = {text: answer for text, answer in self.answers.items() if text not in others.answers}
        return found

    def hold(self, values: Values) -> bool:
        """Return whether all expressions have the same results for other values; False if one cannot be evaluated."""
        if self._check is None:
            checks = [f"({text}) == {answer!r}" for text, (answer, _) in self.answers.items()]
            numbers = [n for _, of in self.answers.values() for n in of]
            self._check = self.trace.compiled(" and ".join(checks) or "True", numbers)
        try:
            return self._check(**values)
        except (MXNetError, ArithmeticError, ValueError, TypeError):  # the call itself raises it again
            return False


_completion = local()


class no_new_guards(ContextDecorator):
    """A scope in which reading the value of a number with a closed trace raises: it is an error of this package."""

    def __enter__(self) -> None:
        _completion.depth = getattr(_completion, "depth", 0) + 1

    def __exit__(self, *_: object) -> None:
        _completion.depth -= 1


class Trace:
    """The symbolic numbers of one call, and their guards.

    Parameters
    ----------
    values : dict of str to float
        Names, which are Python identifiers, and values of the numbers in the call.
    sizes : dict of str to int
        Names and values of sizes, which are integers of 2 or more in every call.

    Attributes
    ----------
    numbers : dict of str to SymbolicNumber
    sizes : dict of str to int
    guards : Guards
    noting : Guards
        Those that are recorded now: `guards`, or those of another graph, which other threads must not ask.
    leaves : dict
        The numbers of the leaves of formulas.
    inputs : dict
        The variable and the number of each graph input that holds a number, by that number and the type code.
    closed, complete : bool
        Whether no graph is being made with the numbers now; whether no more numbers can become inputs.
    """

    def __init__(self, values: Values, sizes: Mapping[str, int] | None = None):
        self.guards = self.noting = Guards(self)
        self.leaves: dict[Expr, SymbolicNumber] = {}
        self.inputs: dict[tuple, tuple[Any, SymbolicNumber]] = {}
        self.closed = self.complete = False
        self.sizes = dict(sizes or {})
        self.serial = next(_serials)
        self._answers: dict[str, tuple] = {}  # operands and results of all guards so far, which may have been cached
        self._scope: dict[str, Any] = {}  # objects that expressions name
        self._names: dict[int, str] = {}  # of these, by their identity
        self._made: dict[str, SymbolicNumber] = {}  # by expression
        self.results: dict[tuple, Any] = {}  # by function and operands: most are asked for again and again
        self._extension: tuple[tuple, Callable] | None = None
        self._lock = RLock()
        self.numbers = {name: SymbolicNumber(self, name, v) for name, v in values.items()}
        for name, v in self.sizes.items():
            self.numbers[name] = SymbolicNumber(self, name, v, integral=True, minimum=2)

    def made(self, function: Callable, operands: tuple, value: Any) -> Any:
        """Return the number that a function makes of numbers; the same expression gives the same object."""
        integral = function in _INTEGRAL and all(a.integral if type(a) is SymbolicNumber else type(a) is int for a in operands)
        integral = integral or (function in _ROUNDED and len(operands) == 1)
        if integral and (simpler := _simpler(function, operands)) is not None:
            return simpler
        base, offset = _sum(function, operands) if integral else (None, 0)
        if base is not None:
            if not offset:
                return base
            function, operands = operator.add, (base, offset)
        product = integral and function is operator.mul
        written = self._product(operands) if product else self._written(function, operands)
        with self._lock:
            if written not in self._made:
                low = _minimum(function, operands) if integral else None
                parts, name = tuple([a for a in operands if type(a) is SymbolicNumber]), f"_t{len(self._made)}"
                self._made[written] = SymbolicNumber(self, name, value, written, parts, integral, low, (base, offset))
        return self._made[written]

    def guarded(self, function: Callable, operands: tuple, answer: Any) -> Any:
        """Record the result of a function as a guard, and return it."""
        if self.closed:
            if getattr(_completion, "depth", 0):
                raise RuntimeError("the value of a symbolic number was read after its graph was completed")
            return answer  # the author of a function may have kept one of its numbers
        text = self._written(function, operands)
        self._answers[text] = operands, answer
        self.noting.note(text, operands, answer)
        return answer

    @contextmanager
    def more_guards(self) -> Iterator[Guards]:
        """Return a scope in which another graph is made with the numbers.

        Its guards include all earlier ones, whose results may have been cached.
        """
        with self._lock:
            before, self.noting, self.closed = self.noting, Guards(self), False
            for text, (operands, answer) in self._answers.items():
                self.noting.note(text, operands, answer)
            try:
                yield self.noting
            finally:
                self.noting, self.closed = before, True

    def _product(self, operands: tuple) -> str:
        """Return one expression for all products of the same factors."""
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
        with self._lock:
            name = self._names.setdefault(id(value), f"_{len(self._scope)}")
            self._scope[name] = value  # which keeps it alive
        return name

    def compiled(self, text: str, numbers: Iterable[SymbolicNumber], first: str = "") -> Callable[..., Any]:
        """Return a function that evaluates an expression; its keyword arguments are values of the numbers of a call.

        `first` are lines of code that precede the expression.
        """
        needed, names, stack = {}, set(), list(numbers)
        while stack:
            number = stack.pop()
            if number.text not in needed:
                needed[number.text] = number
                names |= number.names
                stack += number.parts
        made = [n for n in list(self._made.values()) if n.text in needed]  # each after its parts
        lines = [f"    {n.text} = {n.written}\n" for n in made]
        own: dict[str, Any] = {}
        exec(f"def f({', '.join([*sorted(names), '**_'])}):\n{''.join(lines)}{first}    return {text}", self._scope, own)
        return own["f"]  # the text is generated here, from names and numbers only

    def extended(self, values: Values) -> dict[str, Any]:
        """Return the values of a call's numbers, with the values of all numbers computed from them."""
        key = frozenset(values), len(self._made)
        found = self._extension  # read once: another thread may replace it
        if found is None or found[0] != key:
            made = [n for n in list(self._made.values()) if n.names <= values.keys()]
            text = f"{{{', '.join([f'{n.text!r}: {n.text}' for n in made])}}}"
            found = self._extension = key, self.compiled(text, made)
        return {**values, **found[1](**values)}

    def computed(self, values: Values) -> tuple:
        """Return the values of the inputs that hold numbers, with their type codes, for the values of a call."""
        return tuple([(float(number.at(values)), code) for (_, code), (_, number) in self.inputs.items()])

    def holds(self, values: Values) -> bool:
        """Return whether the graph holds for other values: the guards do, and the inputs can be computed."""
        try:
            self.computed(values)
        except (MXNetError, ArithmeticError, ValueError, TypeError):
            return False
        return self.guards.hold(values)


def _simpler(function: Callable, operands: tuple) -> Any:
    """Return the result of an operation with 0 or 1 if it is an operand or 0; else None."""
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
    """Return ``(n, k)`` if the result is ``n + k`` for a symbolic `n` and an integer `k`; else ``(None, 0)``."""
    if function not in (operator.add, operator.sub):
        return None, 0
    a, b = operands
    if function is operator.add and type(a) is int:
        a, b = b, a
    if type(b) is not int:
        return None, 0
    base, offset = a.sum if a.sum[0] is not None else (a, 0)
    return base, offset + (b if function is operator.add else -b)


def _minimum(function: Callable, operands: tuple) -> int | None:
    """Return a lower bound of an integral number from those of its parts; None if unknown."""
    low = [a.minimum if type(a) is SymbolicNumber else a for a in operands]
    if function in (operator.mod, operator.floordiv) and type(operands[1]) is int and operands[1] > 0:
        return 0 if function is operator.mod else None if low[0] is None else low[0] // operands[1]
    if None in low or function not in (operator.add, operator.mul):
        return None
    return low[0] + low[1] if function is operator.add else low[0] * low[1] if min(low) >= 0 else None


def _always(function: Callable, operands: tuple) -> bool:
    """Return whether a comparison has the same result in every call, by the lower bound of a number."""
    a, b = operands if len(operands) == 2 else (operands[0], 0)
    if type(a) is not SymbolicNumber or a.minimum is None or type(b) is not int:
        return False
    return a.minimum >= b if function in (operator.lt, operator.ge) else function is not repr and a.minimum > b


class SymbolicNumber:
    """A number of a call, or one computed from such numbers.

    It is neither a float nor an int: C functions would read the value of one without a guard.

    Attributes
    ----------
    trace : Trace
    text : str
        The name, an identifier.
    value : float or int
        The value in the current call.
    written : str
        The expression in terms of `parts`; empty for a number of the call.
    parts : tuple of SymbolicNumber
    names : frozenset of str
        Names of the call's numbers that it depends on.
    integral : bool
        Whether it is an integer in every call.
    minimum : int, optional
        A lower bound in every call, if known.
    sum : (SymbolicNumber, int)
        The terms of a sum of a number and an integer.
    """

    __slots__ = (
        "_compute", "count", "factors", "integral", "minimum", "names", "parts", "sum", "text", "trace", "value",
        "written",
    )  # fmt: skip

    def __init__(self, trace: Trace, text: str, value: Any, written: str = "", parts: tuple[SymbolicNumber, ...] = (),
                 integral: bool = False, minimum: int | None = None,
                 sum_: tuple[SymbolicNumber | None, int] = (None, 0)):  # fmt: skip
        self.trace, self.text, self.value, self.written, self.parts = trace, text, value, written, parts
        self.integral, self.minimum, self.sum = integral, minimum, sum_
        self.names = frozenset().union(*[n.names for n in parts]) if parts else frozenset([text])
        self._compute: Callable | None = None
        product = integral and " * " in written
        factors = written[1:-1].split(" * ") if product else [text]
        self.count = int(factors[0]) if factors[0].isdigit() else 1  # the constant factor of a product
        self.factors = factors[1:] if factors[0].isdigit() else factors

    @property
    def __class__(self) -> type:  # type: ignore[misc]
        """The class of the value: functions may check whether a parameter is a number."""
        return type(self.value)

    def at(self, values: Values) -> Any:
        """Return the value for given values of the call's numbers."""
        if self._compute is None:
            self._compute = self.trace.compiled(self.text, [self])
        return self._compute(**values)

    def read(self) -> Any:
        """Return the value, guarded: the graph holds for no other."""
        self.trace.guarded(repr, (self,), repr(self.value))
        return self.value

    def _make(self, function: Callable, *operands: Any) -> Any:
        key = function, *[a.text if type(a) is SymbolicNumber else a for a in operands if type(a) in _SIZES]
        if len(key) > len(operands) and (found := self.trace.results.get(key)) is not None:
            return found
        values = [a.value if type(a) is SymbolicNumber else a for a in operands]
        if not all(isinstance(v, (int, float)) for v in values):
            return NotImplemented
        found = self.trace.made(function, operands, function(*values))
        if len(key) > len(operands):
            self.trace.results[key] = found
        return found

    def _query(self, function: Callable, *operands: Any) -> Any:
        key = function, *[a.text if type(a) is SymbolicNumber else a for a in operands if type(a) in _SIZES]
        asked = None if self.trace.closed or len(key) <= len(operands) else self.trace.noting.asked
        if asked is not None and key in asked:
            return asked[key]
        values = [a.value if type(a) is SymbolicNumber else a for a in operands]
        if not all(isinstance(v, (int, float)) for v in values):
            return NotImplemented
        answer = function(*values)
        if not ((len(operands) == 2 and operands[0] is operands[1]) or _always(function, operands)):
            self.trace.guarded(function, operands, answer)
        if asked is not None:
            asked[key] = answer
        return answer

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
    def __lt__(self, other: Any) -> Any: return self._query(operator.lt, self, other)
    def __le__(self, other: Any) -> Any: return self._query(operator.le, self, other)
    def __gt__(self, other: Any) -> Any: return self._query(operator.gt, self, other)
    def __ge__(self, other: Any) -> Any: return self._query(operator.ge, self, other)
    def __ne__(self, other: Any) -> Any: return False if self is other else self._query(operator.ne, self, other)
    def __bool__(self) -> bool: return self._query(operator.truth, self)
    def __trunc__(self) -> Any: return self if self.integral else self._make(math.trunc, self)
    def __floor__(self) -> Any: return self if self.integral else self._make(math.floor, self)
    def __ceil__(self) -> Any: return self if self.integral else self._make(math.ceil, self)
    def __float__(self) -> float: return float(self.read())
    def __int__(self) -> int: return int(self.read())
    def __format__(self, how: str) -> str: return format(self.read(), how)
    def __str__(self) -> str: return str(self.read())
    # fmt: on

    def __round__(self, digits: int | None = None) -> Any:
        return self if self.integral and digits is None else self._make(round, self, *([] if digits is None else [digits]))

    def __getattr__(self, name: str) -> Any:
        """Let functions use what numbers have, such as ``bit_length()``."""
        if name[:1] == "_" or not hasattr(self.value, name):
            raise AttributeError(f"{type(self.value).__name__!r} object has no attribute {name!r}")
        return getattr(self.read(), name)

    def __index__(self) -> int:
        if not isinstance(self.value, int):
            raise TypeError(f"{type(self.value).__name__!r} object cannot be interpreted as an integer")
        return self.read()

    def __eq__(self, other: object) -> Any:
        return self is other or (other is not None and self._query(operator.eq, self, other))

    def __hash__(self) -> int:
        """The package's own keys hold the object, as equal expressions are one; anybody else asks for the value."""
        return _own_hash(self) if self.trace.closed or _is_own(sys._getframe(1)) else hash(self.read())

    def __repr__(self) -> str:
        """The package's own texts, which are cache keys, name the object; anybody else's, as of a shape, show the value."""
        if self.trace.closed or _is_own(sys._getframe(1)):
            return f"<{self.value!r}: {self.text} of call {self.trace.serial}>"
        return repr(self.read())


#: Types of operands whose results are remembered.
_SIZES = frozenset({int, SymbolicNumber})
for _function in _BITS:
    _name = _function.__name__.strip("_")
    setattr(SymbolicNumber, f"__{_name}__", lambda self, other, f=_function: self._make(f, self, other))
    setattr(SymbolicNumber, f"__r{_name}__", lambda self, other, f=_function: self._make(f, other, self))


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame is the package's."""
    return (frame.f_globals.get("__name__") or "")[:5] == "mxop."


def concrete(value: Any, values: Values) -> Any:
    """Return a value, or a nested tuple or list, with symbolic numbers replaced by their values, where `values` suffice."""
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


#: A value whose symbolic numbers are completed: its index in a :class:`Completions`, or -1 if it has none; and the value.
Part = tuple[int, Any]


class Completions:
    """Values with symbolic numbers inside, such as shapes and parameters: one compiled function completes them all."""

    def __init__(self, trace: Trace):
        self._trace = trace
        self._texts: dict[str, int] = {}  # expressions, and their indices
        self._numbers: set[SymbolicNumber] = set()
        self._function: tuple[tuple, Callable] | None = None

    def add(self, value: Any) -> Part:
        """Add a number, or a nested tuple or list; see :func:`completed`."""
        if not is_symbolic(value):
            return -1, value
        with self._trace._lock:  # one index for each expression, whoever adds them
            return self._texts.setdefault(self._text(value), len(self._texts)), value

    def of(self, values: Values) -> tuple:
        """Return all completed values for the values of a call's numbers; a number that does not follow from them remains."""
        if not self._texts:
            return ()
        key = len(self._texts), len(values)
        found = self._function  # read once: another thread may replace it
        if found is None or found[0] != key:
            with self._trace._lock:
                found = self._function = key, self._compiled(values)
        return found[1](**values)

    def _compiled(self, values: Values) -> Callable[..., tuple]:
        numbers = [n for n in self._numbers if n.names <= values.keys()]
        others = {n.text: self._trace._named(n) for n in self._numbers if not n.names <= values.keys()}
        lines = "".join([f"    {text} = {name}\n" for text, name in others.items()])
        return self._trace.compiled(f"({', '.join(self._texts)},)", numbers, lines)

    def _text(self, value: Any) -> str:
        if type(value) is SymbolicNumber:
            self._numbers.add(value)
            return value.text
        if isinstance(value, (tuple, list)):
            inner = "".join([f"{self._text(v)}, " for v in value])
            if type(value) is list:
                return f"[{inner}]"
            named = "" if type(value) is tuple else self._trace._named(type(value))  # of a NamedTuple
            return f"{named}({inner})"
        return repr(value) if type(value) in (int, bool, str, type(None)) else self._trace._named(value)


def completed(part: Part, found: tuple) -> Any:
    """Return the value of a part, given what :meth:`Completions.of` returned."""
    return part[1] if part[0] < 0 else found[part[0]]


def is_symbolic(value: Any) -> bool:
    """Return whether a value, or a nested tuple or list, contains a symbolic number."""
    if type(value) is SymbolicNumber:
        return True
    return isinstance(value, (tuple, list)) and not _PLAIN.issuperset(map(type, value)) and any(map(is_symbolic, value))


def is_concrete(shape: Iterable[Any]) -> bool:
    """Return whether no size is symbolic."""
    return SymbolicNumber not in map(type, shape)


def leaf_of(number: Any) -> Expr:
    """Return the leaf of formulas for a number."""
    if type(number) is not SymbolicNumber:
        return const(float(number))
    leaf = param(number.text)
    number.trace.leaves[leaf] = number
    return leaf


def computed(function: Callable[..., float], *numbers: Any) -> Any:
    """Return ``function(*numbers)``, for composites that compute a scalar from their parameters by any function.

    The function is called again for each new combination of values, and may raise for a wrong one.

    >>> computed(math.hypot, 3.0, 4.0)
    5.0
    """
    trace = next((n.trace for n in numbers if type(n) is SymbolicNumber), None)
    if trace is None:
        return function(*numbers)
    values = [n.value if type(n) is SymbolicNumber else n for n in numbers]
    return trace.made(function, numbers, function(*values))


def answered(function: Callable[..., Any], *numbers: Any) -> Any:
    """Return ``function(*numbers)`` as a guard: the graph holds for all values for which the function returns the same."""
    trace = next((n.trace for n in numbers if type(n) is SymbolicNumber), None)
    values = [n.value if type(n) is SymbolicNumber else n for n in numbers]
    return function(*values) if trace is None else trace.guarded(function, numbers, function(*values))


def numbers_of(op: Any, attrs: Any) -> dict[str, float]:
    """Return the parameters of a call that may be symbolic: finite numbers.  Infinities and NaN remain constants.

    Parameters whose names begin with an underscore hold sizes, and are left out.
    """
    found = {name: attrs[name] for name in op.spec.numbers}
    return {name: v for name, v in found.items() if v is not None and math.isfinite(v)}
