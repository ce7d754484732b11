"""The kind *kernel*: an operator that is neither a formula, a reduction nor a composition.

Its parts are small decorated functions beside the definition::

    @kernel
    def dot(lhs, rhs, *, transpose_a: bool = False, transpose_b: bool = False):
        \"\"\"Documentation; the body stays empty.\"\"\"

    @dot.shape
    def _(lhs, rhs, *, transpose_a, transpose_b): ...      # shapes of the inputs -> shape of the output

    @dot.cpu
    def _(inputs, outputs, *, transpose_a, transpose_b): ...    # contiguous NDArrays, already allocated

    @dot.gpu
    def _(xp, inputs, outputs, *, transpose_a, transpose_b): ...    # the same on CuPy arrays

    @dot.gradient
    def _(F, heads, inputs, outputs, *, transpose_a, transpose_b): ...    # written with operators of F

A *view* operator (transpose, slice, broadcast_to) only says where its elements lie; the framework copies them, for every
type, ``req`` and device.  Imports :mod:`.operator` and :mod:`.registry`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from .. import dtypes
from ..errors import translated
from . import infer, registry
from .operator import Operator
from .params import Attrs


class Kernel(Operator):
    """An operator with hand-written parts.

    Attributes
    ----------
    run_cpu, run_gpu : callable or None
        The device functions.
    make_view : callable or None
        ``make_view(shape, strides, *other_shapes, **params) -> (shape, strides, offset)`` of a view operator, with strides
        and offset in elements.
    strided : bool
        Whether the CPU function takes inputs of any strides (others get contiguous copies where needed).
    clears : bool
        Whether outputs are zero before the device functions run, and must be written: those of users may forget it.
    """

    kind = "kernel"

    def __init__(self, function: Callable, *, strided: bool = False, **options: Any):
        super().__init__(function, **options)
        self.strided = strided
        self.clears = not self.module.startswith("mxop.")
        self.run_cpu: Callable | None = None
        self.run_gpu: Callable | None = None
        self.make_view: Callable | None = None
        self._shape: Callable | None = None
        self._infer: Callable | None = None
        self._dtype: Callable | None = None

    def shape_only(self, n: int) -> tuple[int, ...]:
        return tuple(range(1, n)) if self.make_view is not None else super().shape_only(n)

    # ---- decorators -------------------------------------------------------------------------------------------------------
    def shape(self, rule: Callable) -> Callable:
        """Decorate ``rule(*input_shapes, **params) -> shape`` (a list of shapes for several outputs)."""
        self._shape = rule
        return rule

    def infer(self, rule: Callable) -> Callable:
        """Decorate the two-way rule ``rule(ins, outs, **params) -> (ins, outs)``; unknown shapes are None."""
        self._infer = rule
        return rule

    def dtype(self, rule: Callable) -> Callable:
        """Decorate ``rule(*input_types, **params) -> type`` (codes; a list for several outputs)."""
        self._dtype = rule
        return rule

    def cpu(self, run: Callable) -> Callable:
        """Decorate the CPU function ``run(inputs, outputs, **params)``."""
        self.run_cpu = run
        return run

    def gpu(self, run: Callable) -> Callable:
        """Decorate the GPU function ``run(xp, inputs, outputs, **params)`` on CuPy arrays."""
        self.run_gpu = run
        return run

    def view(self, make: Callable) -> Callable:
        """Decorate the view rule of an operator that only rearranges elements."""
        self.make_view = make
        return make

    # ---- inference --------------------------------------------------------------------------------------------------------
    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        try:
            return self._infer_shape(attrs, ins, outs)
        except translated.KINDS as problem:
            raise translated.error(problem, f"operator {self.name}")  # noqa: B904

    def _infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        if self._infer is not None:
            ins, outs = self._infer(list(ins), list(outs), **attrs)
        if all(infer.known(s) for s in ins):
            if self.make_view is not None and self._shape is None:
                first = ins[0]
                found = self.make_view(first, contiguous_strides(first), *ins[1:], **attrs)[0]
            elif self._shape is not None:
                found = self._shape(*ins, **attrs)
            else:
                return ins, outs
            found = list(found) if isinstance(found, list) else [tuple(found)]
            outs = infer.agreed(self.name, self.output_names(attrs, len(ins)), found, outs)
        return ins, outs

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        if self._dtype is None:
            if not ins:
                return ins, [dtypes.FLOAT32 if t == dtypes.UNKNOWN else t for t in outs]
            return super().infer_type(attrs, ins, outs)
        try:
            found = self._dtype(*ins, **attrs)
        except translated.KINDS as problem:
            raise translated.error(problem, f"operator {self.name}")  # noqa: B904
        return ins, list(found) if isinstance(found, (list, tuple)) else [found] * len(outs)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return C-order strides in elements."""
    strides, step = [], 1
    for d in reversed(shape):
        strides.append(step)
        step *= max(d, 1)
    return tuple(reversed(strides))


@overload
def kernel(function: Callable[..., Any], /, *, override: bool = ..., **options: Any) -> Kernel: ...
@overload
def kernel(*, override: bool = ..., **options: Any) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(function: Callable | None = None, /, *, override: bool = False, **options: Any) -> Any:
    """Register an operator whose parts are given one by one; see the module's documentation."""

    def make(function: Callable) -> Kernel:
        op = Kernel(function, **options)
        registry.register(op, override=override)
        return op

    return make if function is None else make(function)
