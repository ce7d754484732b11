"""Kernels compiled by numba for the CPU: one per types and schedule, kept for as long as their operator.

numba is imported when a kernel is compiled.  Threads are as many as the other kernels use; a forked child has one.
Imports :mod:`.translate`, :mod:`.bounds`, :mod:`mxop._kernels.interp`.
"""

from __future__ import annotations

import linecache
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..._kernels import interp
from ...distribution import install
from ...errors import DeviceError, OpIndexError
from .source import Source

INSTALL = install("hybrid")
_lock = threading.RLock()
_parallel_lock = threading.Lock()


def require_numba(name: str) -> Any:
    """Return numba, or raise with what to install."""
    try:
        import numba
    except ImportError as problem:
        raise DeviceError(
            f"kernel {name} is compiled by numba, which cannot be imported ({problem}): {INSTALL}; without it, "
            "func_type='pyfunc' or the environment variable MXOP_HYBRID=python runs a kernel as plain Python, which is slow"
        ) from None
    return numba


@lru_cache(maxsize=1)
def _helpers() -> dict[str, Any]:
    """Return what translated kernels name besides their variables."""
    import math

    import numba

    def inline(function: Callable) -> Callable:
        return numba.njit(error_model="numpy", nogil=True)(function)

    @inline
    def ifloordiv(a, b):
        if b == 0:
            return 0 * a
        if b == -1:  # the hardware traps on the least integer
            return -a
        return a // b

    @inline
    def imod(a, b):
        if b == 0 or b == -1:
            return 0 * a
        return a % b

    @inline
    def ffloordiv(a, b):  # as NumPy: the quotient that goes with the remainder
        if b == 0:
            return a / b
        rest = np.fmod(a, b)
        found = (a - rest) / b
        if rest != 0 and (b < 0) != (rest < 0):
            found -= 1
        if found == 0:
            return np.copysign(0 * b, a / b)
        whole = np.floor(found)
        return whole + 1 if found - whole > 0.5 else whole

    @inline
    def fmod(a, b):
        rest = np.fmod(a, b)
        if b == 0:
            return rest
        if rest == 0:
            return np.copysign(rest, b)
        return rest + b if (b < 0) != (rest < 0) else rest

    @inline
    def at(index, size, line, outside):
        index = index + size if index < 0 else index
        if index < 0 or index >= size:
            outside[0] = line
            return 0 * index
        return index

    @inline
    def ipow(a, b):
        if b < 0:
            raise ValueError("Integers to negative integer powers are not allowed.")
        found = 1 + 0 * a
        while b > 0:
            if b & 1:
                found = found * a
            a = a * a
            b >>= 1
        return found

    @inline
    def maximum(a, b):
        return a if a >= b or a != a else b

    @inline
    def minimum(a, b):
        return a if a <= b or a != a else b

    @inline
    def half(x):
        bits = np.float32(x).view(np.uint32)
        sign = np.uint32(bits & np.uint32(0x80000000))
        size = np.uint32(bits ^ sign)
        if size > np.uint32(0x7F800000):
            return np.float32(x)
        if size >= np.uint32(0x477FF000):  # 65520 and more round to infinity
            size = np.uint32(0x7F800000)
        elif size < np.uint32(0x38800000):  # below the least normal number, in steps of 2**-24
            small = np.float32(np.float32(size.view(np.float32) + np.float32(0.5)) - np.float32(0.5))
            size = small.view(np.uint32)
        else:
            odd = np.uint32(size >> np.uint32(13)) & np.uint32(1)
            size = np.uint32(np.uint32(size + np.uint32(0xFFF) + odd) & np.uint32(0xFFFFE000))
        return np.uint32(sign | size).view(np.float32)

    names = {
        "sqrt": np.sqrt, "sign": np.sign, "log": np.log, "exp": np.exp, "expm1": np.expm1, "tanh": np.tanh, "abs": np.abs,
        "erf": math.erf, "sin": np.sin, "cos": np.cos, "atan": np.arctan, "atan2": np.arctan2, "isnan": np.isnan,
        "isinf": np.isinf, "isfinite": np.isfinite, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
        "round": np.rint, "pow": np.power, "zeros": np.zeros, "prange": numba.prange, "bool_": np.bool_,
        "inf": np.inf, "nan": np.nan, "ifloordiv": ifloordiv, "imod": imod, "ffloordiv": ffloordiv,
        "fmod": fmod, "ipow": ipow, "max": maximum, "min": minimum, "half": half, "at": at,
    }  # fmt: skip
    for kind in ("int8", "uint8", "int16", "int32", "int64", "float32", "float64"):
        names[kind] = getattr(np, kind)
    return {f"_mx_{name}": value for name, value in names.items()}


#: numba turns nothing but prange into threads: array expressions do not occur in kernels.
_PARALLEL = {
    "prange": True, "comprehension": False, "reduction": False, "inplace_binop": False, "setitem": False, "numpy": False,
    "stencil": False, "fusion": False,
}  # fmt: skip


class Compiled:
    """A translated kernel, with the forms in which it has been needed.

    Parameters
    ----------
    source : Source
    text : str
        Without index checks.
    checked : str
        With them: it takes an array more, where it writes the line of an index that was outside.
    parallel : bool
        Whether there is a parallel loop.
    """

    def __init__(self, source: Source, text: str, checked: str, parallel: bool):
        self.source, self.text, self.parallel = source, text, parallel
        self._texts = {False: text, True: checked}
        self._forms: dict[tuple[bool, bool], Callable] = {}

    def form(self, threads: bool, checked: bool) -> Callable:
        """Return one form, compiled when it is first called."""
        key = (threads, checked)
        found = self._forms.get(key)
        if found is None:
            numba = require_numba(self.source.name)
            with _lock:
                options: dict[str, Any] = {"parallel": _PARALLEL} if threads else {}
                function = _define(self.source.name, self._texts[checked])
                found = self._forms[key] = numba.njit(function, error_model="numpy", nogil=True, **options)
        return found

    def __call__(self, safe: bool, *arguments: Any) -> None:
        """Run on arrays; `safe` says that no index can be outside."""
        threads = interp.get_num_threads() if self.parallel else 1
        function = self.form(threads > 1, not safe)
        outside = np.zeros(1, np.int64)
        given = arguments if safe else (*arguments, outside)
        if threads == 1:
            function(*given)
        else:
            _with_threads(require_numba(self.source.name), threads, function, given)
        if outside[0]:
            raise OpIndexError(self.source.message(int(outside[0]), "an index is outside of its tensor"))


def _with_threads(numba: Any, threads: int, function: Callable, arguments: tuple) -> None:
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    if _needs_lock(numba):
        with _parallel_lock:
            function(*arguments)
    else:
        function(*arguments)


def _needs_lock(numba: Any) -> bool:
    """Tell whether numba's threads take one caller at a time (its portable pool does; OpenMP and TBB do not)."""
    try:
        return numba.threading_layer() == "workqueue"
    except ValueError:  # not known before the first parallel call
        return True


_serial = 0


def _define(name: str, text: str) -> Callable:
    """Make a function of a text, which tracebacks and debuggers can show."""
    global _serial
    require_numba(name)
    with _lock:
        _serial += 1
        file = f"<mxop kernel {name} {_serial}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace: dict[str, Any] = dict(_helpers())
    exec(compile(text, file, "exec"), namespace)  # text that this package wrote
    return namespace[name]
