"""A kernel as the body of a Custom operator.  Imports :mod:`.function`, :mod:`..body`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ..._core import core
from ...errors import MXNetError, OpTypeError, OpValueError, raised
from ..body import Body, no_bprop, on_gpu
from .derive import Underivable
from .function import Kernel, Program
from .source import HybridError
from .types import declared_codes


class Hybrid(Body):
    """Runs a kernel on the memory of arrays.

    Parameters
    ----------
    function : callable
        A :class:`Kernel`, or a function that becomes one.
    declared : sequence of str
        Attributes that the info declares.
    as_python : bool
        Run it as plain Python.
    """

    _as_python = False

    def __init__(self, function: Callable, declared: Sequence[str] = (), as_python: bool = False):
        if not callable(function):
            raise OpTypeError(f"Custom: func_type='hybrid' takes a function of the hybrid language, got {function!r}")
        if not isinstance(function, Kernel):
            function = Kernel(function)
        found = {v.name for v in function.routine.attributes}
        self._become(Program(function.source, function._plain, frozenset({*declared, *found})))
        self.doc = function.__doc__ or ""
        self._as_python = as_python

    def _become(self, program: Program) -> None:
        routine = program.routine
        self._agreed: set[tuple] = set()
        self.program, self.name = program, routine.source.name
        self.input_names = tuple(v.name for v in routine.inputs)
        self.attributes = tuple(v.name for v in routine.attributes)
        self.n_outputs, self.multiple = len(routine.results), not routine.single
        self.assigned = tuple((k, routine.inputs.index(v)) for k, v in enumerate(routine.results) if v.kind == "input")

    @classmethod
    def of_program(cls, program: Program, doc: str, as_python: bool) -> Hybrid:
        """Return the body of a program."""
        found = cls.__new__(cls)
        found._become(program)
        found.doc, found._as_python = doc, as_python
        return found

    def _values(self, attributes: Any) -> tuple:
        return tuple(attributes[name] for name in self.attributes)

    def infer_shapes(self, shapes: Sequence[tuple[int, ...]], attributes: Any) -> list[tuple[int, ...]]:
        return self.program.shapes(shapes, self._values(attributes)).results()

    def infer_types(self, codes: Sequence[int], attributes: Any) -> list[int]:
        found = declared_codes(self.program.routine, codes)
        return [found[v] for v in self.program.routine.results]

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], attributes: Any) -> None:
        values = self._values(attributes)
        self._agree(inputs, outputs, values)
        if on_gpu(inputs):
            from . import cuda

            cuda.run(self.program, [a._gpu for a in inputs], [a._gpu for a in outputs], values)
            return
        as_python = self._as_python or os.environ.get("MXOP_HYBRID") == "python"
        run = self.program.run_as_python if as_python else self.program.run
        try:
            run([core.as_numpy(a) for a in inputs], [core.as_numpy(a) for a in outputs], values)
        except MXNetError:
            raise
        except Exception as problem:
            raise raised(f"Custom {self.name}: the kernel", problem) from problem

    def _agree(self, inputs: Sequence[Any], outputs: Sequence[Any], values: tuple) -> None:
        """Raise unless the outputs are what the kernel makes: out_shape and out_dtype may have said something else."""
        key = (
            tuple([(a.shape, a.dtype_code) for a in inputs]),
            tuple([(a.shape, a.dtype_code) for a in outputs]),
            values,
        )
        if key in self._agreed:
            return
        shapes, types = self.program.infer([a.shape for a in inputs], [a.dtype_code for a in inputs], values)
        for k, (target, shape, code) in enumerate(zip(outputs, shapes, types, strict=True)):
            if target.shape != shape or target.dtype_code != code:
                raise OpValueError(
                    f"Custom {self.name}: output {k} of the kernel has shape {shape} and dtype {dtypes.NAMES[code]}; out_shape "
                    f"and out_dtype say {target.shape} and {dtypes.NAMES[target.dtype_code]}"
                )
        if len(self._agreed) > 1024:
            self._agreed.clear()
        self._agreed.add(key)

    # ---- gradient -------------------------------------------------------------------------------------------------------
    def derive(self, make: Callable) -> Callable:
        operators: dict[tuple, Any] = {}

        def bprop(*arguments: Any) -> tuple:
            n = len(self.program.routine.inputs)
            inputs, values, dout = arguments[:n], arguments[n:-2], arguments[-1]
            heads = dout if self.multiple else (dout,)
            key = tuple((a.dtype_code, a.ndim) for a in inputs), tuple(map(type, values))
            if key not in operators:
                operators[key] = make(self._gradient(inputs, values))
            found = operators[key](*inputs, *heads, **dict(zip(self.attributes, values, strict=True)))
            return found if isinstance(found, tuple) else (found,)

        return bprop

    def _gradient(self, inputs: Sequence[Any], values: Sequence[Any]) -> Hybrid:
        """Return the kernel that computes the gradients for types and numbers of dimensions."""
        try:
            derived = self.program.gradient([a.dtype_code for a in inputs], [a.ndim for a in inputs], values)
        except (Underivable, HybridError) as problem:
            raise no_bprop(self.name, str(problem)) from None
        return Hybrid.of_program(derived, f"The gradient of kernel {self.name}.", self._as_python)
