"""``kernel``: a function in the hybrid language, as people hold it and as an operator runs it.

Called directly it runs as plain Python on NumPy arrays.  :class:`Program` is what an operator needs of it: shapes and types
of the outputs, and a run on the memory of arrays.  Imports the other modules of this package.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import OpTypeError
from . import words
from .bounds import Shapes
from .checks import check
from .compiled import Compiled
from .races import check_races
from .source import Source, parse, read
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
        self.source = checked(read(function), frozenset(declared))
        self._plain = _with_words(function, self.source)

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}>"

    def __call__(self, *arrays: Any) -> Any:
        """Run as plain Python; return a NumPy array, or a tuple of them."""
        words.check_arrays(self.__name__, arrays)
        return run_plain(self.source, self._plain, arrays)


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


def checked(source: Source, attributes: frozenset[str] = frozenset()) -> Source:
    """Run all checks that need the text only."""
    check(source, attributes)
    check_races(source)
    return source


def _with_words(function: Callable, source: Source) -> Callable:
    """Return the function with the words of the language as its globals."""
    modules = {n: v for n, v in source.globals.items() if isinstance(v, types.ModuleType)}
    code = function.__code__  # type: ignore[attr-defined]
    return types.FunctionType(code, {**modules, **words.WORDS}, source.name, None, function.__closure__)  # type: ignore[attr-defined]


def run_plain(source: Source, function: Callable, arrays: Sequence[Any]) -> Any:
    """Run a kernel as plain Python; inputs that it assigns are assigned."""
    if len(arrays) != len(source.arguments):
        names = ", ".join(v.name for v in source.arguments)
        raise OpTypeError(
            f"kernel {source.name} takes {len(source.arguments)} arguments ({names}), {len(arrays)} given"
        )
    given = [
        words.widened(np.asarray(a)) if v.kind == "input" else a for v, a in zip(source.arguments, arrays, strict=True)
    ]
    with np.errstate(all="ignore"):
        found = function(*given)
    results = []
    for variable, array in zip(source.results, found if isinstance(found, tuple) else (found,), strict=True):
        result = words.narrowed(array)
        if variable.kind == "input":
            original = np.asarray(arrays[source.arguments.index(variable)])
            if result is not original:
                original[...] = result
            result = original
        results.append(result)
    return results[0] if source.single else tuple(results)


# ---- what an operator runs ------------------------------------------------------------------------------------------
class Program:
    """A kernel as the body of an operator.

    Parameters
    ----------
    source : Source
        Checked.
    plain : callable or None
        Its function, for ``MXOP_HYBRID=python``.
    """

    def __init__(self, source: Source, plain: Callable | None = None):
        self.source, self._plain = source, plain
        self._shapes: dict[tuple, Shapes] = {}
        self._types: dict[tuple, Types] = {}
        self._compiled: dict[tuple, Compiled] = {}

    @classmethod
    def of_text(cls, text: str, name: str, attributes: frozenset[str] = frozenset()) -> Program:
        """Return the program of a generated text."""
        source = checked(parse(text, name), attributes)
        namespace: dict[str, Any] = dict(words.WORDS)
        exec(compile(text, source.file, "exec"), namespace)  # text that this package wrote
        return cls(source, namespace[source.tree.name])

    # ---- inference ------------------------------------------------------------------------------------------------------
    def shapes(self, shapes: Sequence[tuple[int, ...]], attributes: Sequence[Any]) -> Shapes:
        """Return what follows from the shapes of a call."""
        key = (tuple(shapes), tuple(attributes))
        found = self._shapes.get(key)
        if found is None:
            if len(self._shapes) >= _MANY:
                self._shapes.clear()
            found = self._shapes[key] = Shapes(self.source, shapes, attributes)
        return found

    def types(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Types:
        """Return what follows from the types of a call."""
        key = (tuple(codes), tuple(ranks), _attribute_key(attributes))
        found = self._types.get(key)
        if found is None:
            if len(self._types) >= _MANY:
                self._types.clear()
            found = self._types[key] = Types(self.source, codes, ranks, attributes)
        return found

    def infer(
        self, shapes: Sequence[tuple[int, ...]], codes: Sequence[int], attributes: Sequence[Any]
    ) -> tuple[list[tuple[int, ...]], list[int]]:
        """Return shapes and type codes of the outputs."""
        known = self.types(codes, [len(s) for s in shapes], attributes)
        return self.shapes(shapes, attributes).results(), [known.codes[v] for v in self.source.results]

    # ---- running --------------------------------------------------------------------------------------------------------
    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], attributes: Sequence[Any]) -> None:
        """Compute outputs, C-contiguous arrays of the inferred shapes and types.

        An input that the kernel assigns is left as it is: the output is what it would become.
        """
        shapes = self.shapes([a.shape for a in inputs], attributes)
        if shapes.empty and not shapes.safe:  # an index into a tensor without elements: nothing could stand in for it
            self.run_as_python(inputs, outputs, attributes)
            return
        codes = tuple(dtypes.code_of(a.dtype) for a in inputs)
        ranks = tuple(a.ndim for a in inputs)
        key = (codes, ranks, _attribute_key(attributes))
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = self._compile(codes, ranks, attributes)
        arrays, back = self._arguments(inputs, outputs, attributes)
        compiled(shapes.safe, *arrays)
        for target, wide in back:
            target[...] = wide

    def _compile(self, codes: tuple, ranks: tuple, attributes: Sequence[Any]) -> Compiled:
        types = self.types(codes, ranks, attributes)
        translated = Translator(types)
        return Compiled(self.source, translated.text, Translator(types, checked=True).text, translated.parallel)

    def _arguments(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], attributes: Sequence[Any]
    ) -> tuple[list[Any], list[tuple[np.ndarray, np.ndarray]]]:
        """Return the compiled function's arguments, and outputs to round from their float32 arrays."""
        source = self.source
        written: dict[Any, np.ndarray] = {}
        back: list[tuple[np.ndarray, np.ndarray]] = []
        given = dict(zip(source.inputs, inputs, strict=True))
        for variable, target in zip(source.results, outputs, strict=True):
            start = given.get(variable)
            if dtypes.code_of(target.dtype) in words.NARROW:
                work = np.zeros(target.shape, np.float32) if start is None else start.astype(np.float32)
                back.append((target, work))
            else:
                work = target
                work[...] = 0 if start is None else start
            written[variable] = work
        values = dict(zip(source.attributes, attributes, strict=True))
        arguments: list[Any] = []
        for variable in source.arguments:
            if variable in written:
                arguments.append(written[variable])
            elif variable.kind == "input":
                array = given[variable]
                arguments.append(array.astype(np.float32) if dtypes.code_of(array.dtype) in words.NARROW else array)
            elif type(values[variable]) in (int, float, bool):
                arguments.append(values[variable])
        arguments += [written[v] for v in source.results if v.kind == "output"]
        return arguments, back

    def run_as_python(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], attributes: Sequence[Any]
    ) -> None:
        """Do what :meth:`run` does in plain Python."""
        arrays, numbers = iter(inputs), iter(attributes)
        given = [np.array(next(arrays)) if v.kind == "input" else next(numbers) for v in self.source.arguments]
        assert self._plain is not None
        found = run_plain(self.source, self._plain, given)
        for target, result in zip(outputs, (found,) if self.source.single else found, strict=True):
            target[...] = result


def _attribute_key(attributes: Sequence[Any]) -> tuple:
    """Return what a compiled kernel depends on: types of numbers, values of lists and strings."""
    return tuple(type(a) if type(a) in (int, float, bool) else a for a in attributes)
