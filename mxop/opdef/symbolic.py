"""Numbers that are not known yet: what a composite's function is given for its parameters where a plan is to hold for any.

Arithmetic with such a number gives another.  Whatever asks for its value (a comparison, ``float(number)``) gets the answer for
the value of this call, and the question is noted as a *guard*: what was made holds for the values for which all answers are the
same.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import MXNetError

Values = Mapping[str, float]


class Trace:
    """What was asked of the numbers of one call.

    Parameters
    ----------
    values : dict of str to float
        Parameters, and their values in the call.

    Attributes
    ----------
    guards : dict
        What was asked: the question as a function of the values, and its answer.
    inputs : dict
        For the numbers that became inputs of a graph, and their type codes: the variable, and the number.
    """

    def __init__(self, values: Values):
        self.guards: dict[tuple, tuple[Callable[[Values], Any], Any]] = {}
        self.inputs: dict[tuple, tuple[Any, SymbolicNumber]] = {}
        self._numbers: dict[tuple, SymbolicNumber] = {}
        self.closed = False
        self.numbers = {name: self._number((name,), operator.itemgetter(name), v) for name, v in values.items()}

    def _number(self, key: tuple, compute: Callable[[Values], Any], value: Any) -> SymbolicNumber:
        found = self._numbers.get(key)
        return self._numbers.setdefault(key, SymbolicNumber(self, key, compute, value)) if found is None else found

    def made(self, function: Callable, operands: tuple, value: Any) -> SymbolicNumber:
        """Return the number that a function makes of numbers."""
        return self._number(*_applied(function, operands), value)

    def asked(self, function: Callable, operands: tuple, answer: Any) -> Any:
        """Note a question, and return its answer."""
        if self.closed:
            raise RuntimeError("a number was asked for its value after all that depends on it was made")
        key, compute = _applied(function, operands)
        self.guards[key] = compute, answer
        return answer

    def computed(self, values: Values) -> tuple:
        """Return the inputs that numbers became, for other values, with their type codes."""
        return tuple([(number.compute(values), code) for (_, code), (_, number) in self.inputs.items()])

    def holds(self, values: Values) -> bool:
        """Tell whether all answers are the same for other values, and all inputs can be computed."""
        try:
            self.computed(values)
            return all([compute(values) == answer for compute, answer in self.guards.values()])
        except (MXNetError, ArithmeticError, ValueError, TypeError):  # such as a division by 0, which the function shall meet itself
            return False


def _applied(function: Callable, operands: tuple) -> tuple[tuple, Callable[[Values], Any]]:
    """Return a name for a function of operands, and the function of the values of the parameters that it is."""
    symbolic = [type(a) is SymbolicNumber for a in operands]
    key = function, *[a.key if s else (type(a), repr(a)) for a, s in zip(operands, symbolic, strict=True)]
    of_each = [a.compute if s else None for a, s in zip(operands, symbolic, strict=True)]

    def compute(values: Values) -> Any:
        return function(*[a if f is None else f(values) for a, f in zip(operands, of_each, strict=True)])

    return key, compute


def _exactly(value: float) -> str:
    """Return a text that tells numbers apart, 0.0 and -0.0 included."""
    return repr(value)


class SymbolicNumber:
    """A number of a call, or one that is made of such.

    It is no float, for then functions of C would read its value without asking.

    Attributes
    ----------
    trace : Trace
    key : tuple
        Equal for numbers that are made in the same way.
    compute : callable
        Its value as a function of those of the parameters.
    value : float or int
        In this call.
    """

    __slots__ = ("compute", "key", "trace", "value")

    def __init__(self, trace: Trace, key: tuple, compute: Callable[[Values], Any], value: Any):
        self.trace, self.key, self.compute, self.value = trace, key, compute, value

    @property
    def __class__(self) -> type:  # type: ignore[override]
        """What it stands for: composites may ask whether a parameter is a number."""
        return type(self.value)

    def read(self) -> Any:
        """Return the value; what is made of it holds for no other."""
        self.trace.asked(_exactly, (self,), _exactly(self.value))
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
        return self.trace.asked(function, operands, function(*values))

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
    def __neg__(self) -> Any: return self._make(operator.neg, self)
    def __pos__(self) -> Any: return self
    def __abs__(self) -> Any: return self._make(operator.abs, self)
    def __lt__(self, other: Any) -> Any: return self._ask(operator.lt, self, other)
    def __le__(self, other: Any) -> Any: return self._ask(operator.le, self, other)
    def __gt__(self, other: Any) -> Any: return self._ask(operator.gt, self, other)
    def __ge__(self, other: Any) -> Any: return self._ask(operator.ge, self, other)
    def __ne__(self, other: Any) -> Any: return self._ask(operator.ne, self, other)
    def __bool__(self) -> bool: return self._ask(operator.truth, self)
    def __float__(self) -> float: return float(self.read())
    def __int__(self) -> int: return int(self.read())
    def __format__(self, how: str) -> str: return format(self.read(), how)
    def __str__(self) -> str: return str(self.read())
    # fmt: on

    def __eq__(self, other: object) -> Any:
        return True if self is other else self._ask(operator.eq, self, other)

    def __hash__(self) -> int:
        return id(self)  # parameters are keys; who finds a number so has found this one

    def __repr__(self) -> str:
        return f"<number {self.key[0] if len(self.key) == 1 else 'computed'}>"


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
    """Return the numeric parameters of a call that may be any number; infinities and NaN are cases of their own."""
    found = {p.name: attrs[p.name] for p in op.spec.params if p.is_number}
    return {name: v for name, v in found.items() if v is not None and math.isfinite(v)}


__all__ = ["SymbolicNumber", "Trace", "computed", "numbers_of"]
