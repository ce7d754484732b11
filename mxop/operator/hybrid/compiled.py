"""Kernels compiled by numba for the CPU: one per types and schedule, kept for as long as their operator.

numba is imported when a kernel is compiled.  Threads are as many as the other kernels use; a forked child has one.
Imports :mod:`.numbers`, :mod:`mxop._kernels.interp`.
"""

from __future__ import annotations

import linecache
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._kernels import interp
from ...distribution import install
from ...errors import DeviceError, OpIndexError
from . import numbers
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
                function = define(self.source.name, self._texts[checked], numbers.compiled())
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


def define(name: str, text: str, names: dict[str, Any]) -> Callable:
    """Make a function of a text, which tracebacks and debuggers can show."""
    global _serial
    with _lock:
        _serial += 1
        file = f"<mxop kernel {name} {_serial}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = dict(names)
    exec(compile(text, file, "exec"), namespace)  # text that this package wrote
    return namespace[name]
