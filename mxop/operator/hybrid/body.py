"""A kernel as the body of a Custom operator: what is known of its calls, how it runs, and the body of its gradient.

Imports the other modules of this package, and :mod:`..body`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ... import dtypes
from ..._core import core
from ...errors import MXNetError, OpTypeError, OpValueError, raised
from ..body import Body, no_bprop, on_gpu
from .bounds import Shapes
from .checks import lower
from .compiled import Compiled, Known, call
from .derive import Underivable, gradient
from .function import Kernel
from .ir import Routine
from .source import HybridError, Source
from .types import WEAK, Types, declared_codes, kind_of
from .words import NARROW

_MANY = 512  # shapes, or types, of which a body keeps what it knows


class Hybrid(Body):
    """Runs a kernel on the memory of arrays.

    Parameters
    ----------
    source : Source or Routine
        A text, which is read again for each combination of ranks; or what was derived, for certain types.
    plain : callable or None
        Runs the text as plain Python: a list of arguments, as in the text, to results.
    declared : frozenset of str
        Arguments that are known to be attributes.
    as_python : bool
        Whether to run as plain Python.
    doc : str
    """

    def __init__(self, source: Source | Routine, plain: Callable | None = None, declared: frozenset[str] = frozenset(),
                 as_python: bool = False, doc: str = ""):  # fmt: skip
        self._derived = isinstance(source, Routine)
        routine = self.routine = source if isinstance(source, Routine) else lower(source, declared)
        self._plain, self._declared, self._as_python = plain, declared, as_python
        self.name, self.doc = routine.source.name, doc
        self.input_names = tuple(v.name for v in routine.inputs)
        self.attributes = tuple(v.name for v in routine.attributes)
        self.n_outputs, self.multiple = len(routine.results), not routine.single
        self.assigned = tuple((k, routine.inputs.index(v)) for k, v in enumerate(routine.results) if v.kind == "input")
        self._of_ranks, self._of_types, self._of_shapes, self._of_calls = map(
            lru_cache(_MANY), (self._lowered, self._typed, self._shaped, self._known)
        )

    @classmethod
    def of_function(cls, function: Any, declared: Sequence[str] = (), as_python: bool = False) -> Hybrid:
        """Return the body of a :class:`Kernel`, or of a function that becomes one; an info declares its attributes."""
        if not callable(function):
            raise OpTypeError(f"Custom: func_type='hybrid' takes a function of the hybrid language, got {function!r}")
        held = function if isinstance(function, Kernel) else Kernel(function)
        names = frozenset({*declared, *(v.name for v in held.routine.attributes)})
        return cls(held.source, held.run, names, as_python, held.__doc__ or "")

    # ---- what is known of a call ----------------------------------------------------------------------------------------
    def _lowered(self, ranks: tuple[int, ...], attributes: tuple, text: str = "") -> Routine:
        if self._derived:
            return self.routine
        lists = dict(zip(self.attributes, attributes))
        return lower(self.routine.source, self._declared, dict(zip(self.input_names, ranks)), lists)

    def _typed(self, codes: tuple[int, ...], ranks: tuple[int, ...], attributes: tuple, text: str) -> Compiled:
        return Compiled(Types(self._of_ranks(ranks, attributes, text), codes, attributes))

    def _shaped(self, shapes: tuple[tuple[int, ...], ...], attributes: tuple, text: str) -> Shapes:
        return Shapes(self._of_ranks(tuple(map(len, shapes)), *_general(attributes)), shapes, attributes)

    def _known(
        self, shapes: tuple[tuple[int, ...], ...], codes: tuple[int, ...], attributes: tuple, text: str
    ) -> Known:
        found, compiled = self.shapes(shapes, attributes), self.compiled(codes, list(map(len, shapes)), attributes)
        types = compiled.types
        return Known(found, compiled, found.results(), [types.codes[v] for v in types.routine.results], attributes)

    def shapes(self, shapes: Sequence[tuple[int, ...]], attributes: Sequence[Any]) -> Shapes:
        """Return what follows from the shapes of a call."""
        return self._of_shapes(tuple(shapes), *_keyed(attributes))

    def compiled(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Compiled:
        """Return what follows from the types of a call."""
        return self._of_types(tuple(codes), tuple(ranks), *_general(attributes))

    def known(self, shapes: Sequence[tuple[int, ...]], codes: Sequence[int], attributes: Sequence[Any]) -> Known:
        """Return all that follows from a call."""
        return self._of_calls(tuple(shapes), tuple(codes), *_keyed(attributes))

    def infer_shapes(self, shapes: Sequence[tuple[int, ...]], attributes: Any) -> list[tuple[int, ...]]:
        return self.shapes(shapes, self._values(attributes)).results()

    def infer_types(self, codes: Sequence[int], attributes: Any) -> list[int]:
        found = declared_codes(self.routine, codes)
        return [found[v] for v in self.routine.results]

    def _values(self, attributes: Any) -> tuple:
        return tuple([attributes[name] for name in self.attributes])

    # ---- running --------------------------------------------------------------------------------------------------------
    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], attributes: Any) -> None:
        known = self.known([a.shape for a in inputs], [a.dtype_code for a in inputs], self._values(attributes))
        self._check(known, outputs)
        if on_gpu(inputs):
            from . import cuda

            cuda.run(known, [a._gpu for a in inputs], [a._gpu for a in outputs])
            return
        as_python = self._as_python or os.environ.get("MXOP_HYBRID") == "python"
        try:
            self.compute(known, [core.as_numpy(a) for a in inputs], [core.as_numpy(a) for a in outputs], as_python)
        except MXNetError:
            raise
        except Exception as problem:
            raise raised(f"Custom {self.name}: the kernel", problem) from problem

    def _check(self, known: Known, outputs: Sequence[Any]) -> None:
        """Raise unless the outputs are what the kernel makes: out_shape and out_dtype may have said something else."""
        for k, (target, shape, code) in enumerate(zip(outputs, known.out_shapes, known.out_codes, strict=True)):
            if target.shape != shape or target.dtype_code != code:
                raise OpValueError(
                    f"Custom {self.name}: output {k} of the kernel has shape {shape} and dtype {dtypes.NAMES[code]}; out_shape "
                    f"and out_dtype say {target.shape} and {dtypes.NAMES[target.dtype_code]}"
                )

    def compute(self, known: Known, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray],
                as_python: bool = False) -> None:  # fmt: skip
        """Compute outputs, C-contiguous arrays of the inferred shapes and types.

        An input that the kernel assigns is left as it is: the output is what it would become.
        """
        compiled, safe = known.compiled, known.shapes.safe
        # of an index into a tensor without elements, nothing could stand in for the element
        if not (as_python or (known.shapes.empty and not safe)):
            call(lambda arrays: compiled(safe, *arrays), known, inputs, outputs, _wide)
        elif self._plain is None:
            with np.errstate(all="ignore"):
                call(lambda arrays: compiled.as_python(*arrays), known, inputs, outputs, _wide)
        else:
            arrays, numbers = iter(inputs), iter(known.attributes)
            given = [np.array(next(arrays)) if v.is_tensor else next(numbers) for v in self.routine.arguments]
            found = self._plain(given)
            for target, result in zip(outputs, found if self.multiple else (found,), strict=True):
                target[...] = result

    # ---- gradient -------------------------------------------------------------------------------------------------------
    def gradient(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Hybrid:
        """Return the body of the gradients for types, which becomes the owner of a kernel that nobody else has."""
        derived = gradient(Types(self._lowered(tuple(ranks), tuple(attributes)), codes, attributes))
        return Hybrid(derived, as_python=self._as_python, doc=f"The gradient of kernel {self.name}.")

    def derive(self, make: Callable) -> Callable:
        @lru_cache(_MANY)
        def operator(codes: tuple[int, ...], ranks: tuple[int, ...], attributes: tuple, text: str) -> Any:
            try:
                return make(self.gradient(codes, ranks, attributes))
            except (Underivable, HybridError) as problem:
                raise no_bprop(self.name, str(problem)) from None

        def bprop(*arguments: Any) -> tuple:
            n = len(self.input_names)
            inputs, values, dout = arguments[:n], arguments[n:-2], arguments[-1]
            codes, ranks = tuple([a.dtype_code for a in inputs]), tuple([a.ndim for a in inputs])
            heads, given = dout if self.multiple else (dout,), dict(zip(self.attributes, values, strict=True))
            found = operator(codes, ranks, *_general(values))(*inputs, *heads, **given)
            return found if isinstance(found, tuple) else (found,)

        return bprop


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if dtypes.code_of(array.dtype) in NARROW else array


def _general(attributes: Sequence[Any]) -> tuple[tuple, str]:
    """Return what a text depends on, as a key: types of numbers, values of lists and strings."""
    return _keyed([WEAK[kind_of(a)] if type(a) in (int, float, bool) else a for a in attributes])


def _keyed(values: Sequence[Any]) -> tuple[tuple, str]:
    """Return values with their text, which tells 1, 1.0 and True apart where they are a key."""
    return tuple(values), repr(values)
