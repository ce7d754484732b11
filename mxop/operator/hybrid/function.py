"""``kernel``: a function in the hybrid language, as people hold it and as an operator runs it.

Called directly it runs as plain Python on NumPy arrays.  :class:`Program` is what an operator needs of it: shapes and types
of the outputs, and a run on the memory of arrays.  Imports the other modules of this package.
"""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import OpTypeError
from . import numbers, words
from .bounds import Shapes
from .checks import lower
from .compiled import Compiled, define
from .derive import gradient
from .ir import Routine, Variable
from .races import check_races
from .source import Source, read
from .translate import Translator
from .types import Types

_MANY = 512


class Kernel:
    """A function of the hybrid language.

    Parameters
    ----------
    function : callable
    reg_info : dict, str, CustomRegOp or list of those, optional
        What it supports, as by :func:`mxop.operator.custom_info_register`.
    compile_attrs : dict, optional
        Kept for programs written for MindSpore.

    Raises
    ------
    HybridError
        When it is not in the language; the message has file and line.
    """

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
        self.routine = checked(self.source, frozenset(declared))
        self._plain = _with_words(function, self.source)

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}>"

    def __call__(self, *arrays: Any) -> Any:
        """Run as plain Python; return a NumPy array, or a tuple of them."""
        words.check_arrays(self.__name__, arrays)
        return run_plain(self.routine, self._plain, arrays)


def kernel(fn: Callable | None = None, reg_info: Any = None, compile_attrs: dict | None = None) -> Any:
    """Make a function of the hybrid language: an operator written with loops.

    Parameters
    ----------
    fn : function
        Takes tensors (and attributes, which are numbers), and returns what ``output_tensor`` made, or inputs that it
        assigns. Its text is checked; the words of the language need no import.
    reg_info : dict, str, CustomRegOp or list of those, optional
    compile_attrs : dict, optional

    Returns
    -------
    Kernel
        For :class:`mxop.operator.Custom`; called with NumPy arrays, it runs as plain Python.

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


def checked(source: Source, attributes: frozenset[str] = frozenset()) -> Routine:
    """Run all checks that need the text only."""
    routine = lower(source, attributes)
    check_races(routine)
    return routine


def _with_words(function: Callable, source: Source) -> Callable:
    """Return the function with the words of the language as its globals."""
    modules = {n: v for n, v in source.globals.items() if isinstance(v, types.ModuleType)}
    code = function.__code__  # type: ignore[attr-defined]
    names = {"__builtins__": builtins, **modules, **words.WORDS}  # Python's warnings ask for the builtins
    return types.FunctionType(code, names, source.name, None, function.__closure__)  # type: ignore[attr-defined]


def run_plain(routine: Routine, function: Callable, arrays: Sequence[Any]) -> Any:
    """Run a kernel as plain Python; inputs that it assigns are assigned."""
    if len(arrays) != len(routine.arguments):
        names = ", ".join(v.name for v in routine.arguments)
        raise OpTypeError(
            f"kernel {routine.source.name} takes {len(routine.arguments)} arguments ({names}), {len(arrays)} given"
        )
    given = [
        words.widened(np.asarray(a)) if v.kind == "input" else a for v, a in zip(routine.arguments, arrays, strict=True)
    ]
    with np.errstate(all="ignore"):
        found = function(*given)
    results = []
    for variable, array in zip(routine.results, found if isinstance(found, tuple) else (found,), strict=True):
        result = words.narrowed(array)
        if variable.kind == "input":
            original = np.asarray(arrays[routine.arguments.index(variable)])
            if result is not original:
                original[...] = result
            result = original
        results.append(result)
    return results[0] if routine.single else tuple(results)


# ---- what an operator runs ------------------------------------------------------------------------------------------
class Program:
    """A kernel as the body of an operator.

    Parameters
    ----------
    source : Source or Routine
        A text, which is read again for each combination of ranks; or what was derived, for certain types.
    plain : callable or None
        The function of the text, for ``MXOP_HYBRID=python``.
    attributes : frozenset of str
        As in :func:`~.checks.lower`.
    """

    def __init__(
        self, source: Source | Routine, plain: Callable | None = None, attributes: frozenset[str] = frozenset()
    ):
        self.routine = source if isinstance(source, Routine) else checked(source, attributes)
        self._plain, self._derived = plain, isinstance(source, Routine)
        self._declared = attributes
        self._kept: dict[tuple, Any] = {}
        self._compiled: dict[tuple, Compiled] = {}

    def _once(self, key: tuple, make: Callable[[], Any]) -> Any:
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _MANY:
                self._kept.clear()
            found = self._kept[key] = make()
        return found

    # ---- inference ------------------------------------------------------------------------------------------------------
    def of_ranks(self, ranks: Sequence[int], attributes: Sequence[Any]) -> Routine:
        """Return the kernel for numbers of dimensions."""
        key = ("ranks", *ranks, _attribute_key(attributes))
        return self.routine if self._derived else self._once(key, lambda: self._lowered(ranks, attributes))

    def _lowered(self, ranks: Sequence[int], attributes: Sequence[Any]) -> Routine:
        lists = dict(zip((v.name for v in self.routine.attributes), attributes))
        by_name = dict(zip((v.name for v in self.routine.inputs), ranks))
        return lower(self.routine.source, self._declared, by_name, lists)

    def gradient(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Program:
        """Return the program of the gradients, for types: it becomes the owner of a kernel that nobody else has."""
        routine = self.routine if self._derived else self._lowered(ranks, attributes)
        return Program(gradient(Types(routine, codes, attributes)))

    def shapes(self, shapes: Sequence[tuple[int, ...]], attributes: Sequence[Any]) -> Shapes:
        """Return what follows from the shapes of a call."""
        routine = self.of_ranks([len(s) for s in shapes], attributes)
        key = ("shapes", *shapes, *zip(map(type, attributes), attributes))
        return self._once(key, lambda: Shapes(routine, shapes, attributes))

    def types(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Types:
        """Return what follows from the types of a call."""
        routine = self.of_ranks(ranks, attributes)
        return self._once(
            ("types", *codes, *ranks, _attribute_key(attributes)), lambda: Types(routine, codes, attributes)
        )

    def infer(
        self, shapes: Sequence[tuple[int, ...]], codes: Sequence[int], attributes: Sequence[Any]
    ) -> tuple[list[tuple[int, ...]], list[int]]:
        """Return shapes and type codes of the outputs."""
        known = self.types(codes, [len(s) for s in shapes], attributes)
        return self.shapes(shapes, attributes).results(), [known.codes[v] for v in known.routine.results]

    # ---- running --------------------------------------------------------------------------------------------------------
    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], attributes: Sequence[Any]) -> None:
        """Compute outputs, C-contiguous arrays of the inferred shapes and types.

        An input that the kernel assigns is left as it is: the output is what it would become.
        """
        shapes = self.shapes([a.shape for a in inputs], attributes)
        if shapes.empty and not shapes.safe:  # an index into a tensor without elements: nothing could stand in for it
            self.run_as_python(inputs, outputs, attributes)
            return
        codes, ranks = tuple(dtypes.code_of(a.dtype) for a in inputs), tuple(a.ndim for a in inputs)
        key = (codes, ranks, _attribute_key(attributes))
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = self._compile(self.types(codes, ranks, attributes))
        _call(functools.partial(compiled, shapes.safe), shapes.routine, inputs, outputs, attributes)

    def _compile(self, types: Types) -> Compiled:
        translated = Translator(types)
        return Compiled(self.routine.source, translated.text, Translator(types, checked=True).text, translated.parallel)

    def run_as_python(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], attributes: Sequence[Any]
    ) -> None:
        """Do what :meth:`run` does in plain Python."""
        if self._plain is None:
            self._run_derived(inputs, outputs, attributes)
            return
        arrays, numbers = iter(inputs), iter(attributes)
        given = [np.array(next(arrays)) if v.is_tensor else next(numbers) for v in self.routine.arguments]
        found = run_plain(self.routine, self._plain, given)
        for target, result in zip(outputs, (found,) if self.routine.single else found, strict=True):
            target[...] = result

    def _run_derived(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], attributes: Sequence[Any]
    ) -> None:
        types = self.types([dtypes.code_of(a.dtype) for a in inputs], [a.ndim for a in inputs], attributes)
        function = self._once(
            ("plain", types), lambda: define(types.source.name, Translator(types).text, numbers.plain())
        )
        with np.errstate(all="ignore"):
            _call(function, self.routine, inputs, outputs, attributes)


def _call(function: Callable, routine: Routine, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray],
          attributes: Sequence[Any]) -> None:  # fmt: skip
    """Run a translated kernel on arrays; narrow results are rounded from float32."""
    arrays, back = _arguments(routine, inputs, outputs, attributes)
    function(*arrays)
    for target, wide in back:
        target[...] = wide


def _arguments(
    routine: Routine, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], attributes: Sequence[Any]
) -> tuple[list[Any], list[tuple[np.ndarray, np.ndarray]]]:
    """Return the compiled function's arguments, and outputs to round from their float32 arrays."""
    written: dict[Variable, np.ndarray] = {}
    back: list[tuple[np.ndarray, np.ndarray]] = []
    given: dict[Variable, Any] = dict(zip(routine.inputs, inputs, strict=True))
    for variable, target in zip(routine.results, outputs, strict=True):
        start = given.get(variable)
        if dtypes.code_of(target.dtype) in words.NARROW:
            work = np.zeros(target.shape, np.float32) if start is None else start.astype(np.float32)
            back.append((target, work))
        else:
            work = target
            work[...] = 0 if start is None else start
        written[variable] = work
    narrow = {v: a.astype(np.float32) for v, a in given.items() if dtypes.code_of(a.dtype) in words.NARROW}
    values = given | narrow | written | dict(zip(routine.attributes, attributes, strict=True))
    arguments = [values[v] for v in routine.arguments if v.is_tensor or type(values[v]) in (int, float, bool)]
    return arguments + [written[v] for v in routine.made], back


def _attribute_key(attributes: Sequence[Any]) -> tuple:
    """Return what a compiled kernel depends on: types of numbers, values of lists and strings."""
    return tuple(type(a) if type(a) in (int, float, bool) else a for a in attributes)
