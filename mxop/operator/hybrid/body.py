"""A kernel as the body of a Custom operator.  Imports :mod:`.function`, :mod:`.program`, :mod:`..body`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ... import dtypes
from ..._core import core
from ...errors import MXNetError, OpTypeError, OpValueError, raised
from ..body import Body, no_bprop, on_gpu
from .derive import Underivable
from .function import Kernel
from .program import Known, Program, general
from .source import HybridError
from .types import declared_codes


class Hybrid(Body):
    """Runs a kernel on the memory of arrays.

    Parameters
    ----------
    function : callable or Program
        A :class:`Kernel`, a function that becomes one, or what was derived from one.
    declared : sequence of str
        Attributes that the info declares.
    as_python : bool
        Run it as plain Python.
    doc : str, optional
    """

    def __init__(self, function: Any, declared: Sequence[str] = (), as_python: bool = False, doc: str = ""):
        if not isinstance(function, Program):
            if not callable(function):
                raise OpTypeError(
                    f"Custom: func_type='hybrid' takes a function of the hybrid language, got {function!r}"
                )
            held = function if isinstance(function, Kernel) else Kernel(function)
            known = (v.name for v in held.routine.attributes)
            function, doc = Program(held.source, held.run, frozenset({*declared, *known})), held.__doc__ or ""
        routine = function.routine
        self.program, self.name, self.doc, self._as_python = function, routine.source.name, doc, as_python
        self.input_names = tuple(v.name for v in routine.inputs)
        self.attributes = tuple(v.name for v in routine.attributes)
        self.n_outputs, self.multiple = len(routine.results), not routine.single
        self.assigned = tuple((k, routine.inputs.index(v)) for k, v in enumerate(routine.results) if v.kind == "input")

    def _values(self, attributes: Any) -> tuple:
        return tuple([attributes[name] for name in self.attributes])

    def infer_shapes(self, shapes: Sequence[tuple[int, ...]], attributes: Any) -> list[tuple[int, ...]]:
        return self.program.shapes(shapes, self._values(attributes)).results()

    def infer_types(self, codes: Sequence[int], attributes: Any) -> list[int]:
        found = declared_codes(self.program.routine, codes)
        return [found[v] for v in self.program.routine.results]

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], attributes: Any) -> None:
        known = self._known(inputs, outputs, self._values(attributes))
        if on_gpu(inputs):
            from . import cuda

            cuda.run(self.program, known, [a._gpu for a in inputs], [a._gpu for a in outputs])
            return
        as_python = self._as_python or os.environ.get("MXOP_HYBRID") == "python"
        run = self.program.run_as_python if as_python else self.program.run
        try:
            run(known, [core.as_numpy(a) for a in inputs], [core.as_numpy(a) for a in outputs])
        except MXNetError:
            raise
        except Exception as problem:
            raise raised(f"Custom {self.name}: the kernel", problem) from problem

    def _known(self, inputs: Sequence[Any], outputs: Sequence[Any], values: tuple) -> Known:
        """Return what is known of a call, whose outputs must be that: out_shape and out_dtype may say something else."""
        known = self.program.known([a.shape for a in inputs], [a.dtype_code for a in inputs], values)
        for k, (target, shape, code) in enumerate(zip(outputs, known.out_shapes, known.out_codes, strict=True)):
            if target.shape != shape or target.dtype_code != code:
                raise OpValueError(
                    f"Custom {self.name}: output {k} of the kernel has shape {shape} and dtype {dtypes.NAMES[code]}; out_shape "
                    f"and out_dtype say {target.shape} and {dtypes.NAMES[target.dtype_code]}"
                )
        return known

    # ---- gradient -------------------------------------------------------------------------------------------------------
    def derive(self, make: Callable) -> Callable:
        @lru_cache(256)
        def operator(codes: tuple[int, ...], ranks: tuple[int, ...], attributes: tuple, text: str) -> Any:
            try:
                derived = self.program.gradient(codes, ranks, attributes)
            except (Underivable, HybridError) as problem:
                raise no_bprop(self.name, str(problem)) from None
            return make(Hybrid(derived, (), self._as_python, f"The gradient of kernel {self.name}."))

        def bprop(*arguments: Any) -> tuple:
            n = len(self.program.routine.inputs)
            inputs, values, dout = arguments[:n], arguments[n:-2], arguments[-1]
            codes, ranks = tuple([a.dtype_code for a in inputs]), tuple([a.ndim for a in inputs])
            heads, given = dout if self.multiple else (dout,), dict(zip(self.attributes, values, strict=True))
            found = operator(codes, ranks, *general(values))(*inputs, *heads, **given)
            return found if isinstance(found, tuple) else (found,)

        return bprop
