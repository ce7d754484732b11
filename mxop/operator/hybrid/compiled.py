"""Kernels compiled by numba for the CPU: one per types and schedule, kept for as long as their operator, and on disk.

numba is imported when a kernel is compiled.  Threads are as many as the other kernels use; a forked child has one.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import linecache
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property, lru_cache, partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import numpy as np

from ..._kernels import team
from ...formula.expr import CONST
from ...support.distribution import install
from ...support.errors import DeviceError, OpIndexError
from ...support.files import cache_folder, write_whole
from . import numbers
from .bounds import Shapes
from .ir import For, Variable, accesses, statements
from .races import written_whole
from .translate import Translator
from .types import Types

_lock = threading.RLock()
_parallel_lock = threading.Lock()
_serial = itertools.count(1)
_DIGITS = 20
_SMALL = 8  # elements of an axis whose length is compiled in


def require_numba(name: str) -> Any:
    """Return numba, or raise with what to install."""
    try:
        import numba
    except ImportError as problem:
        raise DeviceError(
            f"kernel {name} is compiled by numba, which cannot be imported ({problem}): {install('hybrid')}; without it, "
            "func_type='pyfunc' or the environment variable MXOP_HYBRID=python runs a kernel as plain Python, which is slow"
        ) from None
    return numba


#: numba turns nothing but prange into threads: array expressions do not occur in kernels.
_PARALLEL = dict.fromkeys(("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion"), False) | {
    "prange": True
}


class Compiled:
    """A kernel for certain types, in the forms in which it has been needed: for numba, and for a GPU."""

    def __init__(self, types: Types):
        self.types, self.source = types, types.source
        self.parallel = any(isinstance(s, For) and s.word == "parallel" for s in statements(types.routine.body))
        self.whole = written_whole(types.routine)
        self.forms: dict[tuple, Any] = {}
        found = accesses(types.routine.body)
        #: axes that are indexed by numbers of the text alone, as points[i, 0] and points[i, 1] do: position, tensor, axis
        self.small = [(k, v, axis) for k, v in enumerate(types.taken) for axis in range(1, v.rank or 0)
                      if v in found and all(a.args[1 + axis].kind == CONST for a in found[v])]  # fmt: skip

    @cached_property
    def as_python(self) -> Callable:
        """A function of NumPy arrays."""
        return define(self.source.name, Translator(self.types).text, numbers.plain())

    def form(self, threads: bool, checked: bool, sizes: tuple[int, ...] = ()) -> Callable:
        """Return it with or without threads and checks of indices, compiled when it is first called.

        `sizes` are the lengths of its small axes, for loops that are vectorised: they make distances of elements constants.
        """
        found = self.forms.get((threads, checked, sizes))
        if found is None:
            numba = require_numba(self.source.name)
            with _lock:
                options: dict[str, Any] = {"error_model": "numpy", "nogil": True}
                options |= {"parallel": dict(_PARALLEL)} if threads else {}  # numba empties what it is given
                lengths = {(v, axis): n for (_, v, axis), n in zip(self.small, sizes)}
                text = Translator(self.types, checked, lengths).text
                file = kept(self.source.name, text, options)
                function = define(self.source.name, text, numbers.compiled(), file)
                found = numba.njit(function, cache=file is not None, pipeline_class=unaliased(), **options)
                found = self.forms.setdefault((threads, checked, sizes), found)
        return found

    def __call__(self, safe: bool, *arguments: Any) -> None:
        """Run on arrays; `safe` says that no index can be outside."""
        threads = team.get_num_threads() if self.parallel else 1
        sizes = tuple([arguments[k].shape[axis] for k, _, axis in self.small]) if safe else ()
        function = self.form(threads > 1, not safe, sizes if max(sizes, default=0) <= _SMALL else ())
        outside = np.zeros(1, np.int64)  # takes the line of an index that is outside
        given = arguments if safe else (*arguments, outside)
        run = function if threads == 1 else partial(_with_threads, require_numba(self.source.name), threads, function)
        try:
            run(*given)
        except (EOFError, UnpicklingError):  # no loop raises these: what was kept on disk is damaged
            function._cache.flush()  # type: ignore[attr-defined]
            run(*given)
        if outside[0]:
            raise OpIndexError(self.source.message(int(outside[0]), "an index is outside of its tensor"))


@lru_cache(maxsize=1)
def unaliased() -> Any:
    """Return numba's compiler of functions whose arguments share no memory that is written: those who call see to it."""
    from numba.core.compiler import CompilerBase, DefaultPassBuilder

    class Unaliased(CompilerBase):
        def define_pipelines(self) -> list:
            self.state.flags.noalias = True
            return [DefaultPassBuilder.define_nopython_pipeline(self.state)]

    return Unaliased


class Known(NamedTuple):
    """What follows from shapes, types and attributes of a call."""

    shapes: Shapes
    compiled: Compiled
    out_shapes: list[tuple[int, ...]]
    out_codes: list[int]
    attributes: tuple


def call(run: Callable[..., None], known: Known, inputs: Sequence[Any], outputs: Sequence[Any],
         held: Callable[[Any], Any]) -> None:  # fmt: skip
    """Run a translated kernel on what `held` makes of arrays, outputs for inputs that it assigns, and deliver that."""
    routine = known.compiled.types.routine
    values: dict[Variable, Any] = dict(zip(routine.attributes, known.attributes, strict=True))
    values |= {v: held(a) for v, a in zip(routine.inputs, inputs, strict=True)}
    for v, target in zip(routine.results, outputs, strict=True):
        start, values[v] = values.get(v, 0), held(target)
        if v not in known.compiled.whole:
            values[v][...] = start
    run(*[values[v] for v in known.compiled.types.taken])
    for v, target in zip(routine.results, outputs, strict=True):
        if values[v] is not target:
            target[...] = values[v]


def _with_threads(numba: Any, threads: int, function: Callable, *arguments: Any) -> None:
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    try:  # numba's portable pool takes one caller at a time, OpenMP and TBB several
        alone = numba.threading_layer() == "workqueue"
    except ValueError:  # not known before the first parallel call
        alone = True
    with _parallel_lock if alone else nullcontext():
        function(*arguments)


def define(name: str, text: str, names: dict[str, Any], file: Path | None = None) -> Callable:
    """Make a function of a kernel's text, which tracebacks and debuggers can show for as long as it lives."""
    where = str(file or f"<mxop kernel {name} {next(_serial)}>")
    namespace = dict(names)
    exec(compile(text, where, "exec"), namespace)  # text that this package wrote
    found = namespace[f"{name}_kernel"]  # a kernel may be called range
    if file is None:
        linecache.cache[where] = (len(text), None, text.splitlines(True), where)
        weakref.finalize(found, linecache.cache.pop, where, None)
    else:  # the names of numba's symbols are made of it
        found.__qualname__ += f"_{file.stem[-_DIGITS:]}"
    return found


def kept(name: str, text: str, options: dict[str, Any]) -> Path | None:
    """Return the file with a kernel's text beside which numba keeps what it compiles, None where it cannot.

    numba itself tells processors, its own versions and types of arguments apart.  The file's name says all else of which
    the result is made: the text, the options, the functions that it calls, and the versions of what compiles.
    """
    import llvmlite
    import numba

    versions = [sys.version, numba.__version__, llvmlite.__version__, np.__version__]
    try:
        made_of = "\0".join([text, repr(options), inspect.getsource(numbers), *versions])
        file = cache_folder("loops") / f"{name}-{hashlib.sha256(made_of.encode()).hexdigest()[:_DIGITS]}.py"
        if not file.is_file():
            write_whole(file, text)
    except OSError:
        return None
    return file
