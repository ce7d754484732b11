"""Records of the operators of two operands (``mxop/ops/binary.py``), made from one row a function as the operators are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from . import Record, Refusal

_EQUAL = [((2, 3), (2, 3)), ((5,), (5,))]
_BROADCAST = [((2, 3), (2, 3)), ((2, 3), (3,)), ((1,), (2, 2)), ((2, 1, 3), (2, 1)), ((3,), (2, 2, 3))]
_UNEQUAL = Refusal(r"lhs has shape \(2, 3\) but rhs has shape \(3, 2\)", shapes=((2, 3), (3, 2)))
_UNFIT = Refusal("do not broadcast", shapes=((2, 3), (2,)))
_MANY_SHAPES = {"shapes back": "an operand has its own size, or 1"}


def _is_integer(x) -> bool:
    return np.asarray(x).dtype.kind in "iu"


def _divide(a, b):
    """Divide; integers as in C, and 0 by zero."""
    if not _is_integer(a):
        return a / b
    return np.where(b == 0, 0, np.trunc(a / np.where(b == 0, 1, b))).astype(np.result_type(a, b))


def _modulo(a, b):
    """Return the remainder with the divisor's sign; 0 by zero, unless `a` is NaN."""
    zero = np.zeros_like(a) if _is_integer(a) else np.where(np.isnan(a), a, 0)
    return np.where(b == 0, zero, np.mod(a, np.where(b == 0, 1, b)))


def _floor_divide(a, b):
    with np.errstate(all="ignore"):
        return np.floor_divide(a, b)


def _power(a, b):
    a = np.asarray(a, dtype=np.float64)  # NumPy has no negative powers of integers
    return np.power(a, b + np.zeros_like(a))  # and takes sqrt for a single 0.5, which differs at -inf


def _hypot(a, b):
    return np.hypot(np.asarray(a, dtype=np.float64), b)  # NumPy computes small integers in float16


def _truth(function):
    def reference(a, b):
        return function(a, b).astype(np.result_type(a, b))

    return reference


@dataclass(frozen=True)
class _Row:
    """One function: its reference, its operators' names, and what each form is tested with.

    Numbers are the `scalar` parameters of the scalar forms; `left` and `right` are the domains of the operands.  A number that
    the type of integer data does not hold `wraps`, is the `nearest` of the type, or is `compared` as it is.
    """

    reference: Any
    elemwise: str
    broadcast: str
    scalar: str
    rscalar: str = ""
    left: tuple[float, float] = (-3.0, 3.0)
    right: tuple[float, float] = (-3.0, 3.0)
    numbers: tuple[float, ...] = (2.5, -1.0)
    reverse_numbers: tuple[float, ...] = (2.5, -1.0)
    avoid: tuple[float, ...] = ()
    reverse_avoid: tuple[float, ...] = ()
    order: int = 3
    beyond: str = "wraps"
    scalar_domain: tuple[float, float] | None = None
    unchecked: dict[str, str] = field(default_factory=dict)


def _comparison(function, name: str) -> _Row:
    return _Row(
        _truth(function), f"_{name}", f"broadcast_{name}", f"_{name}_scalar", order=0, numbers=(1.0, -2.0, 0.0),
        left=(-2.0, 2.0), right=(-2.0, 2.0), beyond="compared",
    )  # fmt: skip


_ROWS = (
    _Row(np.add, "elemwise_add", "broadcast_add", "_plus_scalar", order=2),
    _Row(np.subtract, "elemwise_sub", "broadcast_sub", "_minus_scalar", "_rminus_scalar", order=2),
    _Row(np.multiply, "elemwise_mul", "broadcast_mul", "_mul_scalar"),
    _Row(
        _divide, "elemwise_div", "broadcast_div", "_div_scalar", "_rdiv_scalar",
        left=(-9, 9), right=(0.5, 3), reverse_numbers=(7.5, -4.0),
    ),
    # the quotient stays between two integers: its floor is the slope, and jumps
    _Row(
        _modulo, "_mod", "broadcast_mod", "_mod_scalar", "_rmod_scalar",
        left=(-1.9, -0.3), right=(2, 5), order=2,
        scalar_domain=(-6, 6), numbers=(2.5, -2.5), avoid=(-5, -2.5, 0, 2.5, 5),
        reverse_numbers=(7.0, -7.0), reverse_avoid=(7 / 3, 3.5),
        unchecked={"special gradients": "the remainder by 0 is 0, and its gradient is 1 as everywhere, as in MXNet"},
    ),
    _Row(
        _floor_divide, "_floor_divide", "_broadcast_floor_divide", "_floor_divide_scalar", "_rfloor_divide_scalar",
        left=(-9, 9), right=(2, 5), numbers=(2.5, -2.0), avoid=(-7.5, -5, -2.5, 0, 2.5, 5, 7.5, -8, -6, -4, -2, 2, 4, 6, 8),
        reverse_numbers=(7.0, -7.0), reverse_avoid=(0,), order=0,
    ),
    _Row(
        _power, "_power", "broadcast_power", "_power_scalar", "_rpower_scalar",
        left=(0.4, 2), right=(-2, 3), numbers=(2.0, 3.0, 0.5, -1.5, 0.0, 1.0), reverse_numbers=(2.0, 1.5),
    ),
    _Row(np.maximum, "_maximum", "broadcast_maximum", "_maximum_scalar", avoid=(2.5, -1), order=2, beyond="nearest"),
    _Row(np.minimum, "_minimum", "broadcast_minimum", "_minimum_scalar", avoid=(2.5, -1), order=2, beyond="nearest"),
    _Row(_hypot, "_hypot", "broadcast_hypot", "_hypot_scalar", left=(0.5, 3), right=(-3, -0.5)),
    _comparison(np.equal, "equal"),
    _comparison(np.not_equal, "not_equal"),
    _comparison(np.greater, "greater"),
    _comparison(np.greater_equal, "greater_equal"),
    _comparison(np.less, "lesser"),
    _comparison(np.less_equal, "lesser_equal"),
    _comparison(np.logical_and, "logical_and"),
    _comparison(np.logical_or, "logical_or"),
    _comparison(np.logical_xor, "logical_xor"),
)  # fmt: skip


def _number_like(scalar: float, data, beyond: str):
    """Convert a number to the type of the data, as the operators do."""
    if not _is_integer(data):
        return scalar
    limits = np.iinfo(data.dtype)
    number = int(scalar) if beyond == "wraps" else min(max(int(scalar), limits.min), limits.max)
    return np.asarray(number).astype(data.dtype)


def _with_number(reference, swapped: bool, beyond: str):
    def of_data(data, scalar=1.0, is_int=True):
        number = _number_like(scalar, data, beyond)
        if beyond == "compared" and _is_integer(data) and number != int(scalar):
            return reference(data.astype(np.float64), scalar).astype(data.dtype)
        return reference(number, data) if swapped else reference(data, number)

    return of_data


def _records_of(row: _Row) -> dict[str, Record]:
    common: dict[str, Any] = {"order": row.order}
    if row.order == 0:
        common["grad_inputs"] = ()
    domains = (row.left, row.right)
    found = {
        row.elemwise: Record(
            row.reference, domain=domains, shapes=_EQUAL, unchecked=row.unchecked, refuses=[_UNEQUAL], **common
        ),
        row.broadcast: Record(
            row.reference, domain=domains, shapes=_BROADCAST, unchecked=_MANY_SHAPES | row.unchecked, refuses=[_UNFIT], **common
        ),
        row.scalar: Record(
            _with_number(row.reference, False, row.beyond), domain=row.scalar_domain or row.left, avoid=row.avoid,
            params=[{"scalar": s} for s in row.numbers], **common,
        ),
    }  # fmt: skip
    if row.rscalar:
        found[row.rscalar] = Record(
            _with_number(row.reference, True, row.beyond), domain=row.right, avoid=row.reverse_avoid,
            params=[{"scalar": s} for s in row.reverse_numbers], **common,
        )  # fmt: skip
    return found


RECORDS: dict[str, Record] = {name: record for row in _ROWS for name, record in _records_of(row).items()}
RECORDS["_grad_add"] = Record(np.add, shapes=_EQUAL, order=2)
RECORDS["add_n"] = Record(lambda *args: reduce(np.add, args), shapes=[((2, 3),) * n for n in (1, 2, 4)], order=2)
