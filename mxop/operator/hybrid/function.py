"""``kernel``: a function in the hybrid language, as people hold it and as it runs as plain Python on NumPy arrays."""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...support import dtypes
from ...support.errors import OpTypeError
from . import words
from .checks import lower
from .races import check_races
from .source import read
from .types import declared_codes


class Kernel:
    """A function of the hybrid language, made by :func:`kernel`."""

    def __init__(self, function: Callable, reg_info: Any = None, compile_attrs: dict | None = None):
        if isinstance(function, Kernel):
            function = function.__wrapped__
        if compile_attrs is not None and not isinstance(compile_attrs, dict):
            raise OpTypeError(f"kernel: compile_attrs must be a dict, got {compile_attrs!r}")
        if not callable(function):
            raise OpTypeError(f"kernel takes a function, got {function!r}")
        functools.update_wrapper(self, function)
        self.compile_attrs = dict(compile_attrs or {})
        if reg_info is not None:
            from ..reg_info import expand

            self.reg_info = tuple(expand(reg_info, f"kernel {self.__name__}"))
        declared = [a["name"] for info in getattr(self, "reg_info", ()) for a in info["attr"]]
        self.source = read(function)
        self.routine = lower(self.source, frozenset(declared))
        check_races(self.routine)
        # its globals are the words of the language, modules, and the builtins, which Python's warnings ask for
        modules = {n: v for n, v in self.source.globals.items() if isinstance(v, types.ModuleType)}
        names = {"__builtins__": builtins, **modules, **words.WORDS}
        code, cells = function.__code__, function.__closure__  # type: ignore[attr-defined]
        self._plain = types.FunctionType(code, names, self.source.name, None, cells)

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}>"

    def __call__(self, *arrays: Any) -> Any:
        """Run as plain Python; return a NumPy array, or a tuple of them."""
        for k, array in enumerate(arrays):
            if not isinstance(array, (np.ndarray, np.generic, int, float, bool, str, tuple, list)):
                raise OpTypeError(
                    f"kernel {self.__name__}: argument {k} is of type {type(array).__name__}; called directly, a kernel takes "
                    f"NumPy arrays (mx.operator.Custom({self.__name__}) takes NDArrays)"
                )
        return self.run(arrays)

    def run(self, arrays: Sequence[Any]) -> Any:
        """Run as plain Python; inputs that are assigned are assigned."""
        arguments = self.routine.arguments
        if len(arrays) != len(arguments):
            names = ", ".join(v.name for v in arguments)
            taken = f"{len(arguments)} arguments ({names})"
            raise OpTypeError(f"kernel {self.source.name} takes {taken}, {len(arrays)} given")
        given = dict(zip(arguments, arrays))
        with np.errstate(all="ignore"):
            found = self._plain(**{v.name: words.widened(a) if v.is_tensor else a for v, a in given.items()})
        tensors = {v: np.asarray(a) for v, a in given.items() if v.is_tensor}
        codes, results = declared_codes(self.routine, [dtypes.code_of(a.dtype) for a in tensors.values()]), []
        for v, array in zip(self.routine.results, found if isinstance(found, tuple) else (found,), strict=True):
            results.append(tensors[v] if v in tensors else np.empty(array.shape, dtypes.numpy_dtype(codes[v])))
            results[-1][...] = array
        return results[0] if self.routine.single else tuple(results)


def kernel(fn: Callable | None = None, reg_info: Any = None, compile_attrs: dict | None = None) -> Any:
    """Make a function of the hybrid language: an operator written with loops.

    Parameters
    ----------
    fn : function
        Takes tensors (and attributes, which are numbers), and returns what ``output_tensor`` made, or inputs that it
        assigns. Its text is checked; the words of the language need no import.
    reg_info : dict, str, CustomRegOp or list of those, optional
        What it supports, as by :func:`mxop.operator.custom_info_register`.
    compile_attrs : dict, optional
        Kept for programs written for MindSpore.

    Returns
    -------
    Kernel
        For :class:`mxop.operator.Custom`; called with NumPy arrays, it runs as plain Python.

    Raises
    ------
    HybridError
        When it is not in the language; the message has file and line.

    Examples
    --------
    >>> @kernel
    ... def outer(a, b):
    ...     c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    ...     for i, j in grid(c.shape):
    ...         c[i, j] = a[i] * b[j]
    ...     return c
    >>> outer(np.array([1., 2.]), np.array([3., 4.]))
    array([[3., 4.],
           [6., 8.]])
    """
    if fn is None:
        return lambda function: Kernel(function, reg_info, compile_attrs)
    return Kernel(fn, reg_info, compile_attrs)
