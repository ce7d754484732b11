"""The words of the hybrid language, as plain Python on NumPy arrays: what a kernel does when it is run for debugging.

They are also its definition: the compiler asks them for the type of every expression (:mod:`.types`).  Numbers behave as
NumPy's scalars do; a function of Python numbers gives a Python number.  Tensors of float16 and bfloat16 hold float32 while
a kernel works on them and are rounded when it is done.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from ...support import dtypes
from ...support.errors import OpValueError


def held(code: int) -> int:
    """Return the type in which a kernel holds the elements of a tensor."""
    return dtypes.FLOAT32 if code in (dtypes.FLOAT16, dtypes.BFLOAT16) else code


def widened(array: Any) -> np.ndarray:
    """Return what a kernel works on: the array itself, or a float32 copy of a narrow one."""
    array = np.asarray(array)
    return array.astype(dtypes.numpy_dtype(held(dtypes.code_of(array.dtype))), copy=False)


# ---- memory ---------------------------------------------------------------------------------------------------------
def output_tensor(shape: Any, dtype: Any) -> np.ndarray:
    """Make an output: zeros of a shape (a tuple, a tensor's ``.shape``, one number) and a dtype.

    Examples
    --------
    >>> output_tensor((2,), 'float32')
    array([0., 0.], dtype=float32)
    """
    return np.zeros(sizes(shape), dtypes.numpy_dtype(held(dtypes.code_of(dtype))))


def allocate(shape: Any, dtype: Any, scope: str = "global") -> np.ndarray:
    """Make an intermediate tensor: zeros; `scope` is kept for the original's programs."""
    return output_tensor(shape, dtype)


def sizes(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of integers."""
    items = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if not all(isinstance(n, (int, np.integer)) and not isinstance(n, (bool, np.bool_)) and n >= 0 for n in items):
        raise OpValueError(f"a shape must be a tuple of integers from 0, got {shape!r}")
    return tuple(int(n) for n in items)


# ---- loops ----------------------------------------------------------------------------------------------------------
def grid(shape: Any) -> Iterator[tuple[int, ...]]:
    """Run through all indices of a shape, the last one fastest.

    Examples
    --------
    >>> list(grid((2, 2)))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return itertools.product(*(builtins.range(n) for n in sizes(shape)))


def _loop(name: str, doc: str) -> Callable[..., builtins.range]:
    def call(*bounds: int) -> builtins.range:
        return builtins.range(*bounds)

    call.__name__, call.__qualname__, call.__doc__ = name, name, doc
    return call


serial = _loop("serial", "A loop whose iterations run one after another, as ``range``.")
parallel = _loop("parallel", "A loop whose iterations, which must be independent, run on threads, or on a GPU's grid.")
vectorize = _loop("vectorize", "A loop for SIMD instructions; its iterations must not depend on each other.")
reduce = _loop("reduce", "A loop that accumulates, in order, into elements that stay in a register meanwhile.")


def attr(name: str, value: Any) -> AbstractContextManager[None]:
    """``with attr(name, value):`` marks statements for a compiler; it does nothing here."""
    return nullcontext()


def block_realize(tensor: Any) -> AbstractContextManager[None]:
    """``with block_realize(tensor):`` says where a tensor is computed; it does nothing here."""
    return nullcontext()


# ---- functions of numbers -------------------------------------------------------------------------------------------
def _word(name: str, function: Callable) -> Callable:
    """Make a function of NumPy scalars one that gives Python numbers for Python numbers, and no float16."""

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            found = function(*args)
            if isinstance(found, np.float16):  # NumPy's choice for int8
                found = function(*(np.float32(a) if isinstance(a, np.generic) else a for a in args))
        weak = all(type(a) in (int, float, bool) for a in args)
        return found.item() if weak and isinstance(found, (np.generic, np.ndarray)) else found

    call.__name__ = call.__qualname__ = name
    return call


def _erf(x: Any) -> Any:
    from scipy.special import erf

    return erf(x) if np.asarray(x).dtype.kind == "f" else erf(np.float64(x))


def _rsqrt(x: Any) -> Any:
    root = np.sqrt(x)
    return type(root)(1) / root


def _converter(name: str) -> Callable:
    dtype = np.dtype(name)

    def call(x: Any) -> Any:
        if name != "float16":
            return x.astype(dtype) if isinstance(x, np.generic) else dtype.type(x)
        with np.errstate(all="ignore"):
            return np.float32(np.asarray(x).astype(dtype))

    call.__name__ = call.__qualname__ = name
    call.dtype = dtype  # type: ignore[attr-defined]  so that it also names the type in output_tensor(shape, float32)
    return call


_ONE: dict[str, Callable] = {
    "sqrt": np.sqrt, "rsqrt": _rsqrt, "sign": np.sign, "log": np.log, "exp": np.exp, "expm1": np.expm1, "tanh": np.tanh,
    "abs": np.abs, "erf": _erf, "sin": np.sin, "cos": np.cos, "atan": np.arctan, "isnan": np.isnan, "isinf": np.isinf,
    "isfinite": np.isfinite, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint,
}  # fmt: skip
_TWO: dict[str, Callable] = {"power": np.power, "atan2": np.arctan2, "ceil_div": lambda a, b: -(-a // b)}
_MORE: dict[str, Callable] = {
    "max": lambda *args: functools.reduce(np.maximum, args), "min": lambda *args: functools.reduce(np.minimum, args),
}  # fmt: skip
_CONVERTERS = ("int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64")


class Word(NamedTuple):
    """A word of the language: what it does in a plain run, and how it may be used.

    Its kind says where it stands: in expressions, after ``for ... in``, alone on the right of ``=``, after ``with``.  It takes
    from `least` to `most` arguments (`takes`, in words), of which those in `names` may be given by name.
    """

    call: Callable
    kind: str
    least: int
    most: int
    takes: str
    names: tuple[str, ...] = ()


#: The language.
TABLE: dict[str, Word] = {
    **{name: Word(_word(name, f), "function", 1, 1, "one argument") for name, f in _ONE.items()},
    **{name: Word(_word(name, f), "function", 2, 2, "two arguments") for name, f in _TWO.items()},
    **{name: Word(_word(name, f), "function", 2, 255, "at least two arguments") for name, f in _MORE.items()},
    **{name: Word(_converter(name), "function", 1, 1, "one argument") for name in _CONVERTERS},
    "len": Word(len, "function", 1, 1, "one argument"),
    **{f.__name__: Word(f, "loop", 1, 3, "one to three numbers")
       for f in (builtins.range, serial, parallel, vectorize, reduce)},
    "grid": Word(grid, "loop", 1, 1, "one shape"),
    "output_tensor": Word(output_tensor, "memory", 2, 2, "a shape and a dtype", ("shape", "dtype")),
    "allocate": Word(allocate, "memory", 2, 3, "a shape and a dtype", ("shape", "dtype", "scope")),
    "attr": Word(attr, "block", 2, 2, "a string and a value"),
    "block_realize": Word(block_realize, "block", 1, 1, "one tensor"),
}  # fmt: skip

#: Everything that a kernel's text may name.
WORDS: dict[str, Any] = {name: word.call for name, word in TABLE.items()}

_PRIMITIVES = {
    "atan": "arctan", "atan2": "arctan2", "round": "nearest", "power": "pow", "max": "maximum", "min": "minimum",
}  # fmt: skip


def primitive(word: str) -> str:
    """Return what a word is called in the table of primitives."""
    return _PRIMITIVES.get(word, word)


#: Primitive -> NumPy's function.
NUMPY: dict[str, Callable] = {primitive(name): function for name, function in (_ONE | _TWO).items()}
#: Primitive -> what it is in plain Python.
OPERATIONS: dict[str, Callable] = {primitive(n): word.call for n, word in TABLE.items() if word.kind == "function"} | {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "floordiv", "mod", "pow", "neg")},
    **{name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    "div": operator.truediv, "land": operator.and_, "lor": operator.or_, "lnot": operator.not_, "square": lambda a: a * a,
    "real": float, "bool_": np.bool_,
}  # fmt: skip
