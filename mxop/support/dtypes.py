"""Element types: MXNet's type codes, NumPy's dtypes, and the type in which formulas are computed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .distribution import install
from .errors import OpArithmeticError, OpTypeError, closest, shown

FLOAT32, FLOAT64, FLOAT16, UINT8, INT32, INT8, INT64, BOOL = range(8)
BFLOAT16 = 12
UNKNOWN = -1

NAMES = {
    FLOAT32: "float32", FLOAT64: "float64", FLOAT16: "float16", UINT8: "uint8", INT32: "int32",
    INT8: "int8", INT64: "int64", BOOL: "bool", BFLOAT16: "bfloat16",
}  # fmt: skip
CODES = {name: code for code, name in NAMES.items()}
SIZES = {FLOAT32: 4, FLOAT64: 8, FLOAT16: 2, UINT8: 1, INT32: 4, INT8: 1, INT64: 8, BOOL: 1, BFLOAT16: 2}
FLOATS = frozenset({FLOAT16, FLOAT32, FLOAT64, BFLOAT16})

#: The smallest and the largest integer of each type.
INTEGER_RANGES = {
    UINT8: (0, 2**8 - 1), INT8: (-(2**7), 2**7 - 1), INT32: (-(2**31), 2**31 - 1), INT64: (-(2**63), 2**63 - 1),
}  # fmt: skip
#: Codes whose elements are computed in another type inside a formula.
COMPUTED_AS = {FLOAT16: FLOAT32, BFLOAT16: FLOAT32, BOOL: UINT8}


_mixed = False  # whether operators take float16, bfloat16 and float32 together


def mix_floats() -> None:
    """Let Python's operators take float16, bfloat16 and float32 together from now on, as automatic mixed precision does."""
    global _mixed
    _mixed = True


def promoted(a: int, b: int) -> int | None:
    """Return the type in which Python's operators take arrays of two types; None where these must be equal.

    Integers become the floating type that they meet, and truths any other type.
    """
    if (a in FLOATS) != (b in FLOATS):
        return a if a in FLOATS else b
    if _mixed and COMPUTED_AS.get(a, a) == COMPUTED_AS.get(b, b) == FLOAT32:
        return widest(a, b)
    return b if a == BOOL else a if b in (a, BOOL) else None


def widest(first: int, *others: int) -> int:
    """Return the type in which data of several types are computed: float32 holds float16 and bfloat16.

    >>> widest(FLOAT16, FLOAT32) == FLOAT32, widest(INT32, FLOAT32) == FLOAT64, widest(INT8, INT32) == INT64
    (True, True, True)
    """
    for t in others:
        if t != first:
            if COMPUTED_AS.get(t, t) == COMPUTED_AS.get(first, first) == FLOAT32:
                first = FLOAT32
            else:
                first = FLOAT64 if t in FLOATS or first in FLOATS else INT64
    return first


def summed_in(code: int) -> int:
    """Return the type in which elements are added up: sums of halves are rounded once, and truths are counted."""
    return INT64 if code == BOOL else COMPUTED_AS.get(code, code)


_numpy: dict[int, np.dtype] = {code: np.dtype(name) for code, name in NAMES.items() if code != BFLOAT16}
_known: dict[Any, int] = {}


def _remember() -> None:
    for code, dtype in _numpy.items():
        for spelling in (dtype, dtype.type, NAMES[code]):
            _known[spelling] = code
    _known[None] = FLOAT32  # MXNet's default
    _known[float] = FLOAT64  # NumPy's reading of Python's types, and MXNet's
    _known[int] = INT64
    _known[bool] = BOOL
    _known["bfloat16"] = BFLOAT16
    _known.update((code, code) for code in NAMES)


_remember()


def code_of(dtype: Any) -> int:
    """Return the type code of anything that names a supported element type.

    Parameters
    ----------
    dtype : str, numpy.dtype, type, int or None
        A name (``'float32'``), NumPy's or Python's type, or MXNet's code; None is float32.

    Raises
    ------
    OpTypeError
        When mxop has no arrays of this type.

    Examples
    --------
    >>> code_of('float16')
    2
    """
    try:
        return _known[dtype]
    except (KeyError, TypeError):
        pass
    try:
        found = np.dtype(dtype)
        if found.name == "bfloat16":
            _known[dtype] = BFLOAT16
            return BFLOAT16
        code = _known.get(found.newbyteorder("="))
        if code is not None and type(dtype) is str and len(dtype) < 8:
            _known[dtype] = code  # such as 'f4'
    except Exception:  # NumPy reads a small language here, and has an error for each mistake in it
        code = None
    if code is None:
        raise OpTypeError(f"dtype {shown(dtype)} is not supported; expected one of {', '.join(CODES)}{closest(dtype, CODES)}")
    return code


def numpy_dtype(code: int) -> np.dtype:
    """Return the NumPy dtype of a type code (bfloat16 needs ml_dtypes)."""
    try:
        return _numpy[code]
    except KeyError:
        pass
    if code == BFLOAT16:
        try:
            import ml_dtypes
        except ImportError:
            raise OpTypeError(f"bfloat16 arrays need ml_dtypes: {install('bfloat16')}") from None
        _numpy[BFLOAT16] = np.dtype(ml_dtypes.bfloat16)
        return _numpy[BFLOAT16]
    raise OpTypeError(f"unknown type code {code}")


def check_numbers(found: Any, code: int, who: str) -> None:
    """Raise where numbers are to become integers and are NaN, or 64 bits do not hold them; within those, narrow types wrap.

    Parameters
    ----------
    found : numpy.ndarray or cupy.ndarray
    code : int
        Of the type that they get.
    who : str
        What the message begins with.
    """
    if code in FLOATS or code == BOOL or found.dtype.kind in "ib":
        return
    with np.errstate(all="ignore"):
        exact = found if found.dtype.kind in "uO" else found.astype(np.float64)
        fits = (exact >= -(2**63)) & (exact < 2**63)
    if not fits.all():
        first = shown(found[~fits].tolist()[0])
        raise OpArithmeticError(
            f"{who}: {first} does not fit dtype {NAMES[code]}: expected numbers that integers of 64 bits hold"
        )


def type_of(code: int) -> Any:
    """Return what ``NDArray.dtype`` shows: the NumPy scalar type, as MXNet does."""
    return numpy_dtype(code).type


def has_bfloat16() -> bool:
    """Return whether bfloat16 arrays can be made on this machine."""
    if "ml_dtypes" in sys.modules:
        return True
    import importlib.util

    return importlib.util.find_spec("ml_dtypes") is not None
