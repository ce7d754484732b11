"""What the methods of a :class:`mxop.operator.CustomOpProp` may answer: everything else is an error that names the method."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..opdef import infer
from ..opdef.params import as_shape
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError, raised, shown
from ..support.shape_mode import numpy_shape

_MOST = 2**63 - 1
#: The parts of what inference answers, in the words of messages.
PARTS = "inputs", "outputs", "auxiliary states"


def answer(prop: Any, method: str, *args: Any) -> Any:
    """Call a method of a user's object; what it raises is the cause of an MXNetError."""
    try:
        return getattr(prop, method)(*args)
    except Exception as problem:
        raise raised(said(prop, method), problem) from problem


def said(prop: Any, method: str) -> str:
    """Return how messages begin."""
    return f"operator Custom: {type(prop).__name__}.{method}"


def names(prop: Any, method: str) -> tuple[str, ...]:
    """Return the names that a method lists."""
    found = answer(prop, method)
    if not isinstance(found, (list, tuple)) or not all(isinstance(name, str) and name for name in found):
        raise OpTypeError(f"{said(prop, method)} returned {shown(found)}; expected a list of names (strings)")
    distinct(prop, method, found)
    return tuple(found)


def distinct(prop: Any, method: str, listed: Sequence[str], before: Sequence[str] = ()) -> None:
    """Raise when a name is there twice, or is one of those before."""
    for k, name in enumerate(listed):
        if name in before or name in listed[:k]:
            raise OpValueError(f"{said(prop, method)} returned {shown(list(listed))}: {name!r} is the name of two "
                               "inputs or outputs; expected different names")  # fmt: skip


def numbers(prop: Any, method: str, found: Any, allowed: Sequence[int]) -> set[int]:
    """Return what a method chose among some numbers."""
    chosen = integers(found)
    if chosen is None or not set(chosen) <= set(allowed):
        raise OpValueError(f"{said(prop, method)} returned {shown(found)}; expected some of {list(allowed)}")
    return set(chosen)


def integers(value: Any) -> tuple[int, ...] | None:
    """Return the integers of a sequence of any kind, None when it is no such thing."""
    try:
        return None if isinstance(value, (str, bytes)) else tuple([operator.index(value[k]) for k in range(len(value))])
    except Exception:  # of the user's object
        return None


def three_parts(prop: Any, method: str, found: Any, wanted: Sequence[Sequence[str]], convert: Callable) -> list[list]:
    """Return what inference answered of inputs, outputs and states, one item for each name in `wanted`.

    Parameters
    ----------
    convert : callable
        ``convert(where, value)`` returns one shape or type, checked.
    """
    where = said(prop, method)
    if not isinstance(found, (list, tuple)) or len(found) not in (2, 3):
        raise OpTypeError(f"{where} returned {shown(found)}; expected (inputs, outputs) or (inputs, outputs, states)")
    result: list[list] = []
    for what, listed, values in zip(PARTS, wanted, [*found, ()][:3], strict=True):
        if not isinstance(values, (list, tuple)):
            raise OpTypeError(f"{where} gave {shown(values)} for its {what}; expected a list with one item for each")
        if len(values) != len(listed):
            raise OpValueError(f"{where} gave {len(values)} {what}; the operator has {len(listed)}: {', '.join(listed)}")
        result.append([convert(f"{where} gave, for {n!r} of the {what},", v) for n, v in zip(listed, values)])
    return result


def shape(where: str, value: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of Python's integers; 0 may mean unknown."""
    try:
        found = as_shape(value) if hasattr(value, "__len__") or hasattr(value, "__index__") else (None,)
    except Exception:  # it is no shape; or of the user's object
        found = (None,)
    if None in found:
        raise OpTypeError(f"{where} {shown(value)}; expected a shape, a tuple of integers")
    unknown = -1 if numpy_shape() else 0
    if not all(unknown <= d <= _MOST for d in found):
        raise OpValueError(f"{where} the shape {found}; expected dimensions from 0 on")
    return found


def type_code(where: str, value: Any) -> int:
    """Return the code of an element type; None is one that is not known."""
    if value is None:
        return dtypes.UNKNOWN
    try:
        if not isinstance(value, int):
            return dtypes.code_of(value)
    except Exception:  # NumPy's, or of the user's object
        pass
    raise OpTypeError(f"{where} {shown(value)}; expected a type: np.float32, or one of {', '.join(dtypes.CODES)}")


# ---- what is known of the call already ----------------------------------------------------------------------------------
def agreed_shapes(prop: Any, listed: Sequence[str], found: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """Return the shapes of the inputs that a prop gave, completed by those that were known."""
    result = []
    for name, want, have in zip(listed, found, given, strict=True):
        try:
            result.append(infer.unify(want, have))
        except infer.Conflict:
            raise OpValueError(f"{said(prop, 'infer_shape')} gave {infer.show(want)} for {name!r}, which has shape "
                               f"{infer.show(have)}") from None  # fmt: skip
    return result


def agreed_types(prop: Any, listed: Sequence[str], found: Sequence[int], given: Sequence[int]) -> list[int]:
    """Return the types of the inputs that a prop gave, completed by those that were known."""
    for name, want, have in zip(listed, found, given, strict=True):
        if dtypes.UNKNOWN not in (want, have) and want != have:
            raise OpTypeError(f"{said(prop, 'infer_type')} gave {dtypes.NAMES[want]} for {name!r}, which has dtype "
                              f"{dtypes.NAMES[have]}; convert it with astype")  # fmt: skip
    return [have if want == dtypes.UNKNOWN else want for want, have in zip(found, given, strict=True)]
