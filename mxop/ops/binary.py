"""Binary operators: arrays of one shape, arrays that broadcast, or an array and a scalar.

A formula is written once, as a row of :data:`TABLE`; from a row come up to four operators, say ``elemwise_sub``,
``broadcast_sub``, ``_minus_scalar`` and ``_rminus_scalar``.  To add a function of two operands, add a row, and its
record to ``mxop/records/binary.py``.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from ..opdef import F, Scalar, elementwise
from ..support.errors import shown, translated


class Row(NamedTuple):
    """One function of two operands and the operators that are made of it.

    Attributes
    ----------
    formula : callable
        The function of two scalars.
    summary : str
        What it is, in a few words.
    text : str
        The formula for people, over ``{0}`` and ``{1}``.
    example, swapped : str
        What ``[1, 2, 4]`` and 2 give, and what 2 and ``[1, 2, 4]`` give (where there is a `rscalar` form).
    elemwise, broadcast, scalar, rscalar : str
        Registered names of each form, canonical name first, aliases after it; empty where MXNet has no such form.
    """

    formula: Callable[[Any, Any], Any]
    summary: str
    text: str
    example: str
    swapped: str = ""
    elemwise: str = ""
    broadcast: str = ""
    scalar: str = ""
    rscalar: str = ""


def _truth(name: str, formula: Callable, text: str, example: str) -> Row:
    """Return the row of a function that is true or not."""
    old = "_".join(word.capitalize() for word in name.split("_"))
    summary = "1 where {} holds, otherwise 0, in the type of the operands; the gradient is zero"
    return Row(formula, summary, text, example, "", f"_{name} _{old}", f"broadcast_{name}",
               f"_{name}_scalar _{old.replace('_', '')}Scalar")  # fmt: skip


TABLE = (
    # ---- arithmetic --------------------------------------------------------------------------------------------------
    Row(
        lambda a, b: a + b, "Sum", "{0} + {1}", "[3. 4. 6.]",
        elemwise="elemwise_add _Plus _add _plus _sparse_elemwise_add",
        broadcast="broadcast_add broadcast_plus _sparse_broadcast_add _sparse_broadcast_plus",
        scalar="_plus_scalar _PlusScalar",
    ),
    Row(
        lambda a, b: a - b, "Difference", "{0} - {1}", "[-1.  0.  2.]", "[ 1.  0. -2.]",
        elemwise="elemwise_sub _Minus _minus _sparse_elemwise_sub _sub",
        broadcast="broadcast_sub broadcast_minus _sparse_broadcast_minus _sparse_broadcast_sub",
        scalar="_minus_scalar _MinusScalar",
        rscalar="_rminus_scalar _RMinusScalar",
    ),
    Row(
        lambda a, b: a * b, "Product", "{0} * {1}", "[2. 4. 8.]",
        elemwise="elemwise_mul _Mul _mul _sparse_elemwise_mul",
        broadcast="broadcast_mul _sparse_broadcast_mul",
        scalar="_mul_scalar _MulScalar",
    ),
    Row(
        lambda a, b: a / b, "Quotient (of integers, as in C: towards zero, and 0 where the divisor is 0)", "{0} / {1}",
        "[0.5 1.  2. ]", "[2.  1.  0.5]",
        elemwise="elemwise_div _Div _div _sparse_elemwise_div",
        broadcast="broadcast_div _sparse_broadcast_div",
        scalar="_div_scalar _DivScalar",
        rscalar="_rdiv_scalar _RDivScalar",
    ),
    Row(
        lambda a, b: a % b, "Remainder with the sign of the divisor, as in Python (0 where the divisor is 0)",
        "{0} % {1}", "[1. 0. 0.]", "[0. 0. 2.]",
        elemwise="_mod _Mod",
        broadcast="broadcast_mod",
        scalar="_mod_scalar _ModScalar",
        rscalar="_rmod_scalar _RModScalar",
    ),
    Row(
        lambda a, b: a // b,
        "Quotient rounded down, as in Python (of integers, 0 where the divisor is 0); the gradient is zero",
        "{0} // {1}", "[0. 1. 2.]", "[2. 1. 0.]",
        elemwise="_floor_divide",
        broadcast="_broadcast_floor_divide _npi_floor_divide",
        scalar="_floor_divide_scalar _npi_floor_divide_scalar",
        rscalar="_rfloor_divide_scalar _npi_rfloor_divide_scalar",
    ),
    Row(
        lambda a, b: a**b, "Power", "{0} ** {1}", "[ 1.  4. 16.]", "[ 2.  4. 16.]",
        elemwise="_power _Power",
        broadcast="broadcast_power",
        scalar="_power_scalar _PowerScalar",
        rscalar="_rpower_scalar _RPowerScalar",
    ),
    Row(
        F.maximum, "The larger one (NaN if either is NaN; the gradient of a tie goes to the first)", "max({0}, {1})",
        "[2. 2. 4.]",
        elemwise="_maximum _Maximum",
        broadcast="broadcast_maximum _npi_maximum",
        scalar="_maximum_scalar _MaximumScalar _npi_maximum_scalar",
    ),
    Row(
        F.minimum, "The smaller one (NaN if either is NaN; the gradient of a tie goes to the first)", "min({0}, {1})",
        "[1. 2. 2.]",
        elemwise="_minimum _Minimum",
        broadcast="broadcast_minimum _npi_minimum",
        scalar="_minimum_scalar _MinimumScalar _npi_minimum_scalar",
    ),
    Row(
        F.hypot, "Hypotenuse, without overflow", "sqrt({0}**2 + {1}**2)", "[2.236 2.828 4.472]",
        elemwise="_hypot _Hypot",
        broadcast="broadcast_hypot",
        scalar="_hypot_scalar _HypotScalar _npi_hypot_scalar",
    ),
    # ---- comparison, and logic: whatever is not zero is true ---------------------------------------------------------
    _truth("equal", F.eq, "{0} == {1}", "[0. 1. 0.]"), _truth("not_equal", F.ne, "{0} != {1}", "[1. 0. 1.]"),
    _truth("greater", F.gt, "{0} > {1}", "[0. 0. 1.]"), _truth("greater_equal", F.ge, "{0} >= {1}", "[0. 1. 1.]"),
    _truth("lesser", F.lt, "{0} < {1}", "[1. 0. 0.]"), _truth("lesser_equal", F.le, "{0} <= {1}", "[1. 1. 0.]"),
    _truth("logical_and", F.land, "{0} and {1}", "[1. 1. 1.]"), _truth("logical_or", F.lor, "{0} or {1}", "[1. 1. 1.]"),
    _truth("logical_xor", F.lxor, "either {0} or {1}", "[0. 0. 0.]"),
)  # fmt: skip


# ---- from a row to its operators -------------------------------------------------------------------------------------
# These make real functions: an operator reads its inputs and parameters from the signature.
def _of_arrays(formula: Callable) -> Callable:
    def function(lhs, rhs):
        return formula(lhs, rhs)

    return function


def _of_array_and_number(formula: Callable) -> Callable:
    def function(data, *, scalar: Scalar = 1.0, is_int: bool = True):
        return formula(data, scalar)

    return function


def _of_number_and_array(formula: Callable) -> Callable:
    def function(data, *, scalar: Scalar = 1.0, is_int: bool = True):
        return formula(scalar, data)

    return function


_SAME_SHAPE = "Both arrays have one shape; ``{broadcast}`` broadcasts."
_BROADCAST = "Arrays broadcast as in NumPy: axes count from the last, and an axis of size 1 (or a missing one) is repeated."
_NUMBER = "`scalar` is converted to the type of `data` first, so integers stay integers."

#: Of each form: how its function is made, operands in the text, what its documentation adds, an example's arguments.
_FORMS = {
    "elemwise": (_of_arrays, ("lhs", "rhs"), _SAME_SHAPE, "mx.nd.array([1, 2, 4]), mx.nd.array([2, 2, 2])"),
    "broadcast": (_of_arrays, ("lhs", "rhs"), _BROADCAST, "mx.nd.array([1, 2, 4]), mx.nd.array([2])"),
    "scalar": (_of_array_and_number, ("data", "scalar"), _NUMBER, "mx.nd.array([1, 2, 4]), scalar=2"),
    "rscalar": (_of_number_and_array, ("scalar", "data"), _NUMBER, "mx.nd.array([1, 2, 4]), scalar=2"),
}


def _documentation(row: Row, form: str, name: str) -> str:
    _, operands, remark, arguments = _FORMS[form]
    text = f"``{row.text.format(*operands)}``"
    summary = row.summary.format(text) if "{}" in row.summary else f"{row.summary}: {text}"
    space = "mx.nd._internal" if name.startswith("_") else "mx.nd"
    return f"""{summary}.

    {remark.format(broadcast=row.broadcast.split()[0])}

    >>> print({space}.{name}({arguments}).asnumpy().round(3))
    {row.swapped if form == "rscalar" else row.example}
    """


def _register(row: Row) -> None:
    for form, (make, *_) in _FORMS.items():
        names = getattr(row, form).split()
        if names:
            function = make(row.formula)
            function.__name__ = function.__qualname__ = names[0]
            function.__doc__ = _documentation(row, form, names[0])
            elementwise(function, aliases=names[1:], broadcast=form == "broadcast")


for _row in TABLE:
    _register(_row)


# ---- sums that are not in the table ----------------------------------------------------------------------------------
@elementwise(name="_grad_add")
def grad_add(lhs, rhs):
    """Sum of two gradients of one array, ``lhs + rhs``.

    >>> mx.nd._internal._grad_add(mx.nd.array([1, 2]), mx.nd.array([3, 4])).asnumpy().tolist()
    [4.0, 6.0]
    """
    return lhs + rhs


@elementwise(aliases=("ElementWiseSum", "_sparse_ElementWiseSum", "_sparse_add_n"), num_args_param="num_args", folds=True)
def add_n(*args, num_args: int = 0):
    """Sum of all arrays, which have one shape; float16 is summed in float32.

    `num_args` is their number, optional in calls.

    >>> mx.nd.add_n(mx.nd.array([1, 2]), mx.nd.array([3, 4]), mx.nd.array([5, 6])).asnumpy().tolist()
    [9.0, 12.0]
    """
    total = args[0]
    for arg in args[1:]:
        total = total + arg
    return total


# ---- functions that take arrays or numbers ---------------------------------------------------------------------------
class Choice(NamedTuple):
    """Which operator a Python function such as ``mx.nd.subtract`` calls.

    Attributes
    ----------
    arrays : str
        Of two arrays (``mx.nd``).
    symbols : str
        Of two symbols (``mx.sym``), which do not broadcast.
    scalar : str
        Of an array and a number.
    rscalar : str
        Of a number and an array, with the array as input.
    numbers : callable
        Of two numbers.
    """

    arrays: str
    symbols: str
    scalar: str
    rscalar: str
    numbers: Callable[[Any, Any], Any]

    @staticmethod
    def named(function: Callable, first: str, second: str) -> Callable:
        """Return a function of `lhs` and `rhs` that takes them by other names, too."""

        @wraps(function)
        def renamed(*args: Any, **options: Any) -> Any:
            for name, own in ((first, "lhs"), (second, "rhs")):
                if name in options:
                    options[own] = options.pop(name)
            return function(*args, **options)

        return renamed


_MOST_BITS = 1 << 20  # of a power of two integers: Python would work on it for days


def _of_numbers(name, function):
    """Return a function of two Python numbers whose errors are mxop's."""

    def call(a, b):
        with translated(f"{name}({shown(a)}, {shown(b)})"):
            return function(a, b)

    return call


def _power_of(a, b):
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() * b > _MOST_BITS:
        raise OverflowError("the result is too large")
    return a**b


def _hypot(a, b):
    return (a * a + b * b) ** 0.5


_divide = Choice("broadcast_div", "elemwise_div", "_div_scalar", "_rdiv_scalar", lambda a, b: a / b)
_power = Choice("broadcast_power", "_power", "_power_scalar", "_rpower_scalar", _power_of)

#: The Python-level functions of ``mx.nd`` and ``mx.sym``.  A comparison with the number in front is its mirror image.
PYTHON_NAMES = {
    "add": Choice("broadcast_add", "elemwise_add", "_plus_scalar", "_plus_scalar", lambda a, b: a + b),
    "subtract": Choice("broadcast_sub", "elemwise_sub", "_minus_scalar", "_rminus_scalar", lambda a, b: a - b),
    "multiply": Choice("broadcast_mul", "elemwise_mul", "_mul_scalar", "_mul_scalar", lambda a, b: a * b),
    "divide": _divide,
    "true_divide": _divide,
    "modulo": Choice("broadcast_mod", "_mod", "_mod_scalar", "_rmod_scalar", lambda a, b: a % b),
    "power": _power,
    "pow": _power,
    "maximum": Choice("broadcast_maximum", "_maximum", "_maximum_scalar", "_maximum_scalar", max),
    "minimum": Choice("broadcast_minimum", "_minimum", "_minimum_scalar", "_minimum_scalar", min),
    "hypot": Choice("broadcast_hypot", "_hypot", "_hypot_scalar", "_hypot_scalar", _hypot),
}
for _name, _mirror, _numbers in (
    ("equal", "equal", lambda a, b: int(a == b)),
    ("not_equal", "not_equal", lambda a, b: int(a != b)),
    ("greater", "lesser", lambda a, b: int(a > b)),
    ("greater_equal", "lesser_equal", lambda a, b: int(a >= b)),
    ("lesser", "greater", lambda a, b: int(a < b)),
    ("lesser_equal", "greater_equal", lambda a, b: int(a <= b)),
    ("logical_and", "logical_and", lambda a, b: int(bool(a) and bool(b))),
    ("logical_or", "logical_or", lambda a, b: int(bool(a) or bool(b))),
    ("logical_xor", "logical_xor", lambda a, b: int(bool(a) != bool(b))),
):
    PYTHON_NAMES[_name] = Choice(f"broadcast_{_name}", f"_{_name}", f"_{_name}_scalar", f"_{_mirror}_scalar", _numbers)
PYTHON_NAMES = {n: choice._replace(numbers=_of_numbers(n, choice.numbers)) for n, choice in PYTHON_NAMES.items()}
