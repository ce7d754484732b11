"""A kernel as the body of an operator: what is known of its calls, how it runs, and the body of its gradient."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..._core import core
from ...opdef import Attrs, Operator
from ...opdef.loops import Loops
from ...opdef.params import REQUIRED, Shape, param_from
from ...support import dtypes
from ...support.errors import MXNetError, OpTypeError, OpValueError, raised
from ..body import BPROP, Body, underived
from . import cuda
from .bounds import Shapes
from .checks import lower
from .compiled import Compiled, Known, call
from .derive import Underivable, gradient
from .function import Kernel
from .ir import Routine
from .simplify import simplified
from .source import HybridError
from .types import WEAK, Types, declared_codes, kind_of
from .words import widened

_MANY = 2048  # things that a body knows of calls


def remembered(method: Callable) -> Any:
    """Keep what a method of a body finds; the text of attributes, the last argument, tells 1, 1.0 and True apart."""

    def call(self: Hybrid, *given: Any) -> Any:
        key = (method, *map(tuple, given), repr(given[-1]))
        found = self.memo.get(key)
        if found is None:
            if len(self.memo) >= _MANY:
                self.memo.clear()
            found = self.memo[key] = method(self, *key[1:-1])
        return found

    return call


class Hybrid(Body):
    """Runs a kernel on the memory of arrays.

    Parameters
    ----------
    kernel : Kernel
        Its text is read again for each combination of ranks.
    declared : sequence of str
        Arguments that are known to be attributes.
    as_python : bool
        Whether to run as plain Python.
    """

    order = 0  # of derivative

    def __init__(self, kernel: Kernel, declared: Sequence[str] = (), as_python: bool = False):
        self._plain, self._as_python, self.doc = kernel.run, as_python, kernel.__doc__ or ""
        self._declared = frozenset({*declared, *(v.name for v in kernel.routine.attributes)})
        routine = self.routine = lower(kernel.source, self._declared)
        self.name = routine.source.name
        self.who, self.cure = f"Custom {self.name}", BPROP
        self.input_names = tuple(v.name for v in routine.inputs)
        self.attributes = tuple(v.name for v in routine.attributes)
        self.defaults = kernel.__wrapped__.__kwdefaults__ or {}  # type: ignore[attr-defined]
        self.n_outputs, self.multiple = len(routine.results), not routine.single
        self.assigned = tuple((k, routine.inputs.index(v)) for k, v in enumerate(routine.results) if v.kind == "input")
        self.memo: dict[tuple, Any] = {}

    @classmethod
    def of_operator(cls, op: Operator) -> Hybrid:
        """Return the body of an operator, whose function has parameters after a star."""
        found = cls(Kernel(op.function))
        found.who, found.cure = f"operator {op.name}", f"@{op.name}.gradient, a rule of operators of F"
        for v in found.routine.attributes:
            if v.name in op.arguments:
                how = f"parameters stand after a star, as in def {op.name}(data, *, {v.name}: float)"
                found.routine.source.fail(v.line, f"{v.name!r} is used as a number, so it is a parameter: {how}")
        return found

    @classmethod
    def of_function(cls, function: Any, declared: Sequence[str] = (), as_python: bool = False) -> Hybrid:
        """Return the body of a :class:`Kernel`, or of a function that becomes one; an info declares its attributes."""
        if not callable(function):
            raise OpTypeError(f"Custom: func_type='hybrid' takes a function of the hybrid language, got {function!r}")
        return cls(function if isinstance(function, Kernel) else Kernel(function), declared, as_python)

    # ---- what is known of a call ----------------------------------------------------------------------------------------
    @remembered
    def read(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Routine:
        """Return what the text does in calls of these ranks, and of these types where it is derived."""
        lists = dict(zip(self.attributes, attributes))
        return lower(self.routine.source, self._declared, dict(zip(self.input_names, ranks)), lists)

    @remembered
    def compiled(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Compiled:
        """Return what follows from the types of a call."""
        return Compiled(Types(self.read(codes, ranks, attributes), codes, attributes))

    @remembered
    def shapes(self, shapes: Sequence[tuple[int, ...]], codes: Sequence[int], attributes: Sequence[Any]) -> Shapes:
        """Return what follows from the shapes of a call; the types are those of which a gradient is derived."""
        return Shapes(self.read(codes, list(map(len, shapes)), _general(attributes)), shapes, attributes)

    @remembered
    def known(self, shapes: Sequence[tuple[int, ...]], codes: Sequence[int], attributes: Sequence[Any]) -> Known:
        """Return all that follows from a call."""
        compiled = self.compiled(codes, list(map(len, shapes)), _general(attributes))
        found = Shapes(compiled.types.routine, shapes, attributes, compiled.types)
        codes = [compiled.types.codes[v] for v in found.routine.results]
        return Known(found, compiled, found.results(), codes, attributes)

    def known_of(self, inputs: Sequence[Any], attributes: Any) -> Known:
        """Return all that follows from a call with arrays."""
        return self.known([a.shape for a in inputs], [a.dtype_code for a in inputs], self._values(attributes))

    def alike(self, what: str, attributes: Any) -> list[tuple[int, int]]:
        """Return pairs of an output and the input that has its shape (``'like'``) or ``'dtype'``, as the text says."""
        inputs, results = self.routine.inputs, [getattr(v, what) for v in self.routine.results]
        return [*self.assigned, *((k, inputs.index(v)) for k, v in enumerate(results) if v in inputs)]

    def infer_shapes(self, shapes: Sequence[tuple[int, ...]], attributes: Any) -> list[tuple[int, ...]]:
        return self.shapes(shapes, (), self._values(attributes)).results()

    def infer_types(self, codes: Sequence[int], attributes: Any) -> list[int]:
        found = declared_codes(self.routine, codes)
        return [found[v] for v in self.routine.results]

    def inputs_of(self, **attributes: Any) -> tuple[str, ...]:
        """Return the names of the inputs of a call."""
        return self.input_names

    def count(self, **attributes: Any) -> int:
        """Return the number of outputs of a call."""
        return self.n_outputs

    def _values(self, attributes: Any) -> tuple:
        return tuple([attributes[name] for name in self.attributes])

    # ---- running --------------------------------------------------------------------------------------------------------
    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], attributes: Any) -> None:
        known = self.known_of(inputs, attributes)
        self._check(known, outputs)
        outputs[0]._device.nest(self, known, inputs, outputs)

    def run_gpu(self, inputs: Sequence[Any], outputs: Sequence[Any], attributes: Any) -> None:
        """Compute on CuPy's arrays."""
        codes = [dtypes.code_of(a.dtype) for a in inputs]
        cuda.run(self.known([a.shape for a in inputs], codes, self._values(attributes)), inputs, outputs)

    def execute(self, known: Known, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Compute on arrays of the CPU."""
        as_python = self._as_python or os.environ.get("MXOP_HYBRID") == "python"
        try:
            self.compute(known, [core.as_numpy(a) for a in inputs], [core.as_numpy(a) for a in outputs], as_python)
        except MXNetError:
            raise
        except Exception as problem:
            raise raised(f"{self.who}: the kernel", problem) from problem

    def _check(self, known: Known, outputs: Sequence[Any]) -> None:
        """Raise unless the outputs are what the kernel makes: out_shape and out_dtype may have said something else."""
        for k, (target, shape, code) in enumerate(zip(outputs, known.out_shapes, known.out_codes, strict=True)):
            if target.shape != shape or target.dtype_code != code:
                raise OpValueError(
                    f"{self.who}: output {k} of the kernel has shape {shape} and dtype {dtypes.NAMES[code]}; out_shape "
                    f"and out_dtype say {target.shape} and {dtypes.NAMES[target.dtype_code]}"
                )

    def compute(self, known: Known, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray],
                as_python: bool = False) -> None:  # fmt: skip
        """Compute outputs, C-contiguous arrays of the inferred shapes and types.

        An input that the kernel assigns is left as it is: the output is what it would become.
        """
        safe = known.shapes.safe
        # of an index into a tensor without elements, nothing could stand in for the element
        if not (as_python or (known.shapes.empty and not safe)):
            call(partial(known.compiled, safe), known, inputs, outputs, widened)
        elif self._plain is None:
            with np.errstate(all="ignore"):
                call(known.compiled.as_python, known, inputs, outputs, widened)
        else:
            arrays, numbers = iter(inputs), iter(known.attributes)
            given = [np.array(next(arrays)) if v.is_tensor else next(numbers) for v in self.routine.arguments]
            found = self._plain(given)
            for target, result in zip(outputs, found if self.multiple else (found,), strict=True):
                target[...] = result

    # ---- gradient -------------------------------------------------------------------------------------------------------
    @cached_property
    def derived(self) -> Derived:
        """The body of the gradient."""
        return Derived(self)

    def gradient_operator(self, op: Operator) -> Loops:
        """Return the operator of the gradient of an operator with this body."""
        body = self.derived
        wanted = param_from(body.wanted, Shape, REQUIRED, gradient)
        return Loops(None, body=body, name=f"_backward_{op.name}", arguments=["data"], module=op.module,
                     params=(*op.spec.params, wanted), is_backward=True)  # fmt: skip

    def gradients(self, op: Operator, F: Any, attrs: Attrs, heads: list, inputs: list, needed: Sequence[bool]) -> list:
        wanted = tuple([k for k, need in enumerate(needed) if need])
        if not wanted:
            return [None] * len(inputs)
        given = Attrs((*attrs.names, self.derived.wanted), (*attrs.values_, wanted))
        results = F._invoke(op.backward_operator(), [*inputs, *heads], given)
        found = dict(zip(wanted, results if isinstance(results, (list, tuple)) else [results], strict=True))
        return [found.get(k) for k in range(len(inputs))]


class Derived(Hybrid):
    """The gradients of the inputs of a kernel: a kernel that is derived for each combination of types.

    It takes the inputs and attributes of the other, one attribute that says whose gradients are wanted, and the gradients of
    the outputs.
    """

    multiple, assigned = True, ()

    def __init__(self, of: Hybrid):
        self.of, self.order, self._as_python, self._plain = of, of.order + 1, of._as_python, None
        self.name, self.who, self.cure = f"{of.name}_grad", of.who, of.cure
        self.doc = f"The gradient of ``{of.name}``, derived from its loops."
        self.wanted = f"wanted_{self.order}"
        self.attributes = (*of.attributes, self.wanted)
        self.memo = {}

    def inputs_of(self, **attributes: Any) -> tuple[str, ...]:
        heads = (f"head_{self.order}_{k}" for k in range(self.of.count(**attributes)))
        return (*self.of.inputs_of(**attributes), *heads)

    def count(self, **attributes: Any) -> int:
        return len(attributes[self.wanted])

    @remembered
    def read(self, codes: Sequence[int], ranks: Sequence[int], attributes: Sequence[Any]) -> Routine:
        *before, wanted = attributes
        n = len(self.of.inputs_of(**dict(zip(self.attributes, attributes))))
        try:
            found = gradient(self.of.compiled(codes[:n], ranks[:n], before).types, wanted, self.wanted)
            return simplified(Types(found, codes, _general(attributes)))
        except (Underivable, HybridError) as problem:
            raise underived(self.who, str(problem), self.cure) from None

    def alike(self, what: str, attributes: Any) -> list[tuple[int, int]]:
        return list(enumerate(attributes[self.wanted]))

    def infer_shapes(self, shapes: Sequence[tuple[int, ...]], attributes: Any) -> list[tuple[int, ...]]:
        return [shapes[k] for k in attributes[self.wanted]]

    def infer_types(self, codes: Sequence[int], attributes: Any) -> list[int]:
        return [codes[k] for k in attributes[self.wanted]]


def _general(attributes: Sequence[Any]) -> tuple:
    """Return what a text depends on: types of numbers, values of lists and strings."""
    return tuple([WEAK[kind_of(a)] if type(a) in (int, float, bool) else a for a in attributes])
