"""Python's arithmetic for symbols, and for the values that gradient rules receive."""

from __future__ import annotations

from numbers import Number
from typing import Any, NamedTuple, Self

from ..support.errors import OpTypeError


class Row(NamedTuple):
    """The operators that implement one of Python's.

    Attributes
    ----------
    symbols : str
        For two symbols, which must have one shape, as in MXNet.
    arrays : str
        For two arrays, which broadcast.
    scalar, reflected : str
        For an array and a number; for a number and an array.
    hints : tuple of str
        MXNet's names for the three kinds of nodes.
    """

    symbols: str
    arrays: str
    scalar: str
    reflected: str
    hints: tuple[str, str, str]


def _arithmetic(symbols: str, arrays: str, name: str, commutes: bool = False) -> Row:
    reflected = name if commutes else "r" + name
    return Row(symbols, f"broadcast_{arrays}", f"_{name}_scalar", f"_{reflected}_scalar",
               (f"_{name}", f"_{name}scalar", f"_{reflected}scalar"))  # fmt: skip


def _comparison(name: str, mirror: str) -> Row:
    return Row(f"_{name}", f"broadcast_{name}", f"_{name}_scalar", f"_{mirror}_scalar",
               (f"_{name}", f"_{name}_scalar", f"_{mirror}_scalar"))  # fmt: skip


ADD = _arithmetic("elemwise_add", "add", "plus", commutes=True)
SUB = _arithmetic("elemwise_sub", "sub", "minus")
MUL = _arithmetic("elemwise_mul", "mul", "mul", commutes=True)
DIV = _arithmetic("elemwise_div", "div", "div")
MOD = _arithmetic("_mod", "mod", "mod")
FLOORDIV = Row("_floor_divide", "_broadcast_floor_divide", "_floor_divide_scalar", "_rfloor_divide_scalar",
               ("_floor_divide", "_floor_dividescalar", "_rfloor_dividescalar"))  # fmt: skip
POW = Row("_power", "broadcast_power", "_power_scalar", "_rpower_scalar", ("_power", "_powerscalar", "_rpower_scalar"))
EQ, NE = _comparison("equal", "equal"), _comparison("not_equal", "not_equal")
LT, GT = _comparison("lesser", "greater"), _comparison("greater", "lesser")
LE, GE = _comparison("lesser_equal", "greater_equal"), _comparison("greater_equal", "lesser_equal")
AND, OR, XOR = (_comparison(name, name) for name in ("logical_and", "logical_or", "logical_xor"))


class Arithmetic:
    """Mixin: arithmetic and comparisons by calls of operators."""

    __slots__ = ()
    __array_priority__ = 1000.0
    __array_ufunc__ = None  # NumPy's scalars leave the operation to us

    def _operate(self, op_name: str, hint: str, inputs: list, params: dict[str, Any]) -> Any:
        """Call an operator; subclasses define it."""
        raise NotImplementedError

    def _refused(self, other: Any) -> OpTypeError:
        kind, wanted = type(other).__name__, type(self).__name__
        return OpTypeError(f"type {kind} is not supported: expected {wanted} or a number{self._advice(other)}")

    @classmethod
    def _advice(cls, given: Any) -> str:
        """Return what to do about an operand of another class, for messages."""
        return ""

    def _two_op(self, row: Row) -> str:
        """Return the operator of a row for two operands of this class."""
        return row.arrays

    def _binary(self, row: Row, other: Any) -> Any:
        if isinstance(other, Arithmetic):
            return self._operate(self._two_op(row), row.hints[0], [self, other], {})
        if isinstance(other, Number):
            return self._operate(row.scalar, row.hints[1], [self], {"scalar": other})
        raise self._refused(other)

    def _reflected(self, row: Row, other: Any) -> Any:
        if isinstance(other, Arithmetic):
            return other._binary(row, self)
        if isinstance(other, Number):
            return self._operate(row.reflected, row.hints[2], [self], {"scalar": other})
        raise self._refused(other)

    @property
    def _is_mask(self) -> bool:
        """Whether it is a comparison's result, or one that was rearranged; subclasses define it."""
        raise NotImplementedError

    def _logical(self, sign: str, row: Row, other: Any = True) -> Any:
        for value in (self, other):
            if not (value._is_mask if isinstance(value, Arithmetic) else isinstance(value, Number) and value in (0, 1)):
                raise OpTypeError(f"{sign} is for masks (comparisons such as x > 0), not for {value!r}: logical_and, "
                                  "logical_or, logical_xor and logical_not take any numbers, and what is not 0 is true; "
                                  "there are no bitwise operators")  # fmt: skip
        return self._binary(row, other)

    def __and__(self, other: Any) -> Self:
        return self._logical("&", AND, other)

    def __or__(self, other: Any) -> Self:
        return self._logical("|", OR, other)

    def __xor__(self, other: Any) -> Self:
        return self._logical("^", XOR, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Self:
        return self._logical("~", XOR)

    def __add__(self, other: Any) -> Self:
        return self._binary(ADD, other)

    def __radd__(self, other: Any) -> Self:
        return self._reflected(ADD, other)

    def __sub__(self, other: Any) -> Self:
        return self._binary(SUB, other)

    def __rsub__(self, other: Any) -> Self:
        return self._reflected(SUB, other)

    def __mul__(self, other: Any) -> Self:
        return self._binary(MUL, other)

    def __rmul__(self, other: Any) -> Self:
        return self._reflected(MUL, other)

    def __truediv__(self, other: Any) -> Self:
        return self._binary(DIV, other)

    def __rtruediv__(self, other: Any) -> Self:
        return self._reflected(DIV, other)

    def __mod__(self, other: Any) -> Self:
        return self._binary(MOD, other)

    def __rmod__(self, other: Any) -> Self:
        return self._reflected(MOD, other)

    def __pow__(self, other: Any) -> Self:
        return self._binary(POW, other)

    def __rpow__(self, other: Any) -> Self:
        return self._reflected(POW, other)

    def __floordiv__(self, other: Any) -> Self:
        return self._binary(FLOORDIV, other)

    def __rfloordiv__(self, other: Any) -> Self:
        return self._reflected(FLOORDIV, other)

    def __divmod__(self, other: Any) -> tuple[Self, Self]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Self, Self]:
        return other // self, other % self

    def __matmul__(self, other: Any) -> Self:
        return self._operate("dot", "dot", [self, other], {})

    def __neg__(self) -> Self:
        return self._operate("_mul_scalar", "_mulscalar", [self], {"scalar": -1.0})

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return self._operate("abs", "abs", [self], {})

    def __eq__(self, other: Any) -> Self:  # type: ignore[override]
        return self._binary(EQ, other)

    def __ne__(self, other: Any) -> Self:  # type: ignore[override]
        return self._binary(NE, other)

    def __lt__(self, other: Any) -> Self:
        return self._binary(LT, other)

    def __gt__(self, other: Any) -> Self:
        return self._binary(GT, other)

    def __le__(self, other: Any) -> Self:
        return self._binary(LE, other)

    def __ge__(self, other: Any) -> Self:
        return self._binary(GE, other)

    __hash__ = None  # type: ignore[assignment]  # == builds a comparison
