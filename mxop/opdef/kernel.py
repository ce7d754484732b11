"""The kind *kernel*: an operator that is neither a formula, nor a reduction, nor a composite.

Its parts are decorated functions after the definition::

    @kernel
    def dot(lhs, rhs, *, transpose_a: bool = False, transpose_b: bool = False):
        \"\"\"Documentation; the body stays empty.\"\"\"

    @dot.shape
    def _(lhs, rhs, *, transpose_a, transpose_b): ...      # shapes of the inputs -> shape of the output

    @dot.cpu
    def _(inputs, outputs, *, transpose_a, transpose_b): ...    # contiguous NDArrays, already allocated

    @dot.cpu(prepared=True)                                     # the same, prepared once for each set of shapes
    def _(steps, inputs, outputs, *, transpose_a, transpose_b): ...

    @dot.gpu
    def _(xp, inputs, outputs, *, transpose_a, transpose_b): ...    # the same on CuPy arrays

    @dot.gradient
    def _(F, heads, inputs, outputs, *, transpose_a, transpose_b): ...    # written with operators of F

There may be several CPU implementations: for a library (``backend='onednn'``), under a condition (``when=rule``).  The first
one that fits a call runs.  A prepared implementation calls methods of *steps* (:class:`mxop._core.steps.Steps`) for copies,
compiled work and other operators; the recorded steps run without Python, in calls on arrays and in executors.

If a size depends on the values of the inputs, the shape rule returns None for it, and another rule computes it in each call,
before memory is allocated::

    @boolean_mask.size
    def _(data, index, *, axis): ...      # NumPy's or CuPy's arrays -> shape of the output

An operator that only moves elements (concat, tile) is defined once for both devices by ``@op.rearrange``.  A *view* operator
(transpose, slice, broadcast_to) only returns shape, strides and offset; the framework copies, for every type, ``req`` and
device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, NamedTuple, overload

from ..support import dtypes
from ..support.errors import OpTypeError, ends_at_caller, shown, translated
from . import compiled, infer, two_way
from .operator import Operator, P, defined
from .params import Attrs
from .parts import Part, contiguous_strides, within
from .places import place
from .rules import check_rule, with_common_options


class Way(NamedTuple):
    """A CPU implementation of a kernel.

    Attributes
    ----------
    run : callable
        ``run(inputs, outputs, **params)``; if prepared, ``run(steps, inputs, outputs, **params)``.
    prepared : bool
    backend : str or None
        The library that it uses.
    when : callable or None
        ``when(inputs, outputs, **params)`` returns from shapes and types whether it fits; None if it always does.
    strided : bool
        False if it needs contiguous arrays, even if the operator's functions accept any strides.
    """

    run: Callable
    prepared: bool = False
    backend: str | None = None
    when: Callable | None = None
    strided: bool = True


def _as_shape(found: Any) -> tuple | None:
    """Return a rule's result as a tuple; None if it is not a shape."""
    try:
        return None if isinstance(found, str) else tuple(found)
    except TypeError:
        return None


class _Written(tuple):
    """The outputs of a function, which must write into them and cannot replace them."""

    def __setitem__(self, k: int, value: Any) -> None:
        raise OpTypeError(f"outputs[{k}] = value puts another array in the place of the output; write into it, with "
                          f"outputs[{k}][...] = value")  # fmt: skip


class Kernel(Operator[P]):
    """An operator with hand-written implementations.

    Attributes
    ----------
    ways : list of Way
        CPU implementations; the first that fits runs.
    run_gpu : callable or None
        The GPU function.
    moves : callable or None
        The function of a kernel that only moves elements, prepared on both devices.
    make_view : callable or None
        ``make_view(shape, strides, *other_shapes, **params) -> (shape, strides, offset)`` of a view operator, with strides
        and offset in elements.
    picks : bool
        Whether its view consists of some of the elements, each once, and its gradient puts the heads there, in zeros.
    overwrites : bool
        Whether its output is its first input with another content in places: in a graph, it can take that one's memory.
    added : Kernel or None
        What adds to other data what this operator would put into zeros: ``added(data, head)``.
    strided : bool
        Whether CPU functions accept inputs of any strides; other functions get contiguous copies.
    adds : bool
        Whether its steps, for one output, can add to the output's values (``steps.adds``).
    at_once : callable or None
        ``at_once(*input_shapes, **params)`` returns whether a sum of results of many calls equals one call on their inputs,
        joined along the first axis.
    clears : bool
        Whether outputs are zeroed before user-defined functions run, which may leave them unwritten.
    waits : str or callable
        What the GPU function waits for; see :meth:`gpu`.
    """

    kind = "kernel"

    def __init__(self, function: Callable, *, strided: bool = False, adds: bool = False, at_once: Callable | None = None,
                 **options: Any):  # fmt: skip
        super().__init__(function, **options)
        self.strided, self.adds, self.at_once = strided, adds, at_once
        self.clears = not self.module.startswith("mxop.")
        self.ways: list[Way] = []
        self.run_gpu: Callable | None = None
        self.waits: str | Callable[..., str] = ""
        self.moves: Callable | None = None
        self.make_view: Callable | None = None
        self.picks = self.overwrites = False
        self.added: Kernel | None = None
        self._shape: Callable | None = None
        self._infer: Callable | None = None
        self._dtype: Callable | None = None

    @property
    def _how_to_say_shapes(self) -> str:  # type: ignore[override]
        if self.module.startswith("mxop."):
            return ""
        part = "shape" if self._shape is None and self.make_view is None else "size"
        return f"; give it a rule with @{self.name}.{part}{place(self.function)}"

    def shape_only(self, n: int) -> tuple[int, ...]:
        return tuple(range(1, n)) if self.make_view is not None else super().shape_only(n)

    # ---- decorators -------------------------------------------------------------------------------------------------------
    def gradient(self, rule: Callable) -> Callable:
        self.picks = False  # until whoever gives the rule says so of it
        return super().gradient(rule)

    def shape(self, rule: Callable) -> Callable:
        """Decorate ``rule(*input_shapes, **params) -> shape`` (a list of shapes for several outputs)."""
        return self.ruled("_shape", "shape rule", rule, ("*shape",))

    def size(self, rule: Callable) -> Callable:
        """Decorate ``rule(*arrays, **params) -> shape`` (or a list), for sizes that the shape rule leaves open (None).

        It receives NumPy's or CuPy's arrays.  In a graph, the result can only be an output, or be read by kernels whose shapes
        do not depend on it, since its memory cannot be planned.
        """
        return self.ruled("sized_by", "size rule", rule, ("*array",))

    def infer(self, rule: Callable) -> Callable:
        """Decorate the two-way rule ``rule(ins, outs, **params) -> (ins, outs)``; unknown shapes are None."""
        return self.ruled("_infer", "infer rule", rule, ("ins", "outs"))

    def dtype(self, rule: Callable) -> Callable:
        """Decorate ``rule(*input_types, **params) -> type``: a name, a NumPy type or a code; a list for several outputs.

        The input types are codes, such as ``mxop.dtypes.FLOAT32``.
        """
        return self.ruled("_dtype", "dtype rule", rule, ("*type",))

    def cpu(self, run: Callable | None = None, *, prepared: bool = False, backend: str | None = None,
            when: Callable | None = None) -> Callable:  # fmt: skip
        """Decorate a CPU implementation ``run(inputs, outputs, **params)``.

        It may also be a C function: its address, a ctypes function, or a capsule; ``mxop/kernel.h`` declares its signature.

        Parameters
        ----------
        prepared : bool
            The function takes *steps* first, and records the steps for arrays of given shapes and types.
        backend : str, optional
            The library that it uses; a later function for the same library without `when` replaces this one.
        when : callable, optional
            ``when(inputs, outputs, **params)`` returns whether it fits.  Conditional functions are tried first.
        """

        def add(run: Callable) -> Callable:
            in_steps, function = prepared, run
            address = compiled.address_of(f"operator {self.name}: its CPU function", run)
            if address is not None:
                in_steps, function = True, compiled.steps_of(self, address, run)
            check_rule(self, "CPU function", function, ("steps", "inputs", "outputs") if in_steps else ("inputs", "outputs"))
            kept = [w for w in self.ways if w.when is not None or when is not None or w.backend != backend]
            ways = [Way(function, in_steps, backend, when, address is None), *kept]
            self.ways = sorted(ways, key=lambda w: w.when is None)
            self.changed()
            return run

        if when is not None:
            check_rule(self, "condition", when, ("inputs", "outputs"))
        return add if run is None else add(run)

    def both(self, run: Callable | None = None, *, waits: str | Callable[..., str] = "") -> Callable:
        """Decorate ``run(xp, inputs, outputs, **params)`` for both devices.

        `xp` is NumPy or CuPy.  The arrays are its arrays, of any strides, and share the memory of the operator's.  Outputs are
        written in place: ``xp.exp(inputs[0], out=outputs[0])`` or ``outputs[0][...] = value``.  `waits` is that of :meth:`gpu`.
        """
        if run is None:
            return partial(self.both, waits=waits)
        check_rule(self, "function for both devices", run, ("xp", "inputs", "outputs"))

        def run_cpu(inputs: list, outputs: list, **params: Any) -> Any:
            import numpy as np

            return run(np, [np.asarray(a) for a in inputs], _Written([np.asarray(a) for a in outputs]), **params)

        self.strided = True
        self.cpu(run_cpu)
        self.gpu(run, waits=waits)
        return run

    def rearrange(self, run: Callable) -> Callable:
        """Decorate ``run(xp, inputs, outputs, **params)``, which assigns or adds parts of inputs to parts of outputs.

        It uses NumPy's basic indices, ``shape``, ``ndim``, ``dtype``, ``transpose``, ``reshape`` and ``+=``, and serves both
        devices.  Its steps are recorded once, with `xp` None.
        """

        check_rule(self, "function that moves elements", run, ("xp", "inputs", "outputs"))

        def steps_of(steps: Any, inputs: list, outputs: list, **params: Any) -> None:
            run(None, [Part(steps, a) for a in inputs], [Part(steps, a) for a in outputs], **params)

        self.cpu(prepared=True)(steps_of)
        self.run_gpu, self.moves, self.waits = steps_of, steps_of, ""
        return run

    def way(self, inputs: list, outputs: list, attrs: Attrs) -> Way | None:
        """Return the CPU implementation for a call; None if none fits."""
        with translated(f"operator {self.name}: the condition of a CPU function"):
            return next((w for w in self.ways if w.when is None or w.when(inputs, outputs, **attrs)), None)

    def gpu(self, run: Callable | None = None, *, waits: str | Callable[..., str] = "") -> Callable:
        """Decorate the GPU function ``run(xp, inputs, outputs, **params)`` on CuPy arrays.

        Parameters
        ----------
        waits : str or callable
            What the function waits for, if it copies values to the host, such as ``"the largest index"``, or
            ``waits(**params)`` that returns it.  ``explain()`` of an executor shows it.
        """
        if run is None:
            return partial(self.gpu, waits=waits)
        check_rule(self, "GPU function", run, ("xp", "inputs", "outputs"))
        self.run_gpu, self.waits = run, waits
        self.changed()
        return run

    def waits_for(self, attrs: Attrs) -> str:
        """Return what a call on a GPU waits for before it returns; empty if for nothing."""
        if self.sized_by is not None:
            return "the size of the result"
        return self.waits(**attrs) if callable(self.waits) else self.waits

    def view(self, make: Callable) -> Callable:
        """Decorate the view rule of an operator that only rearranges elements."""
        check_rule(self, "view rule", make, ("shape", "strides", *(f"shape_{a}" for a in self.arguments[1:])))
        self.make_view = make if self.module.startswith("mxop.") else within(self, make)
        self.changed()
        return make

    # ---- inference --------------------------------------------------------------------------------------------------------
    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        with translated(f"operator {self.name}"):
            if self._infer is not None:
                ins, outs = two_way.by_rule(self, self._infer, ins, outs, attrs)
            if self._shape is not None and not all(infer.known(s) for s in ins):
                names = (self.name, *self.input_names(attrs, len(ins)), *self.output_names(attrs, len(ins)))
                ins, outs = two_way.shapes(self._shape, names, ins, outs, attrs)
            if not all(infer.known(s) for s in ins) or (self._shape is None and self.make_view is None):
                return ins, outs
            if self._shape is not None:
                found = self._shape(*ins, **attrs)
            else:
                found = self.make_view(ins[0], contiguous_strides(ins[0]), *ins[1:], **attrs)[0]  # type: ignore[misc]
            found = self._shapes("shape rule", self._shape or self.make_view, found, len(outs))
            if any(o is not None for o in outs):
                found = infer.agreed(self.name, self.output_names(attrs, len(ins)), found, outs)
            return ins, found

    def sized_shapes(self, attrs: Attrs, arrays: list, shapes: list) -> list:
        """Return the shapes of the outputs of a call; `shapes` are their known parts."""
        with translated(f"operator {self.name}"):
            found = self._shapes("size rule", self.sized_by, self.sized_by(*arrays, **attrs), len(shapes))  # type: ignore[misc]
        return infer.agreed(self.name, self.output_names(attrs, len(arrays)), found, shapes)

    def _shapes(self, what: str, rule: Any, found: Any, n: int) -> list:
        """Return the shapes that a rule returned for `n` outputs, as a list."""
        several = isinstance(found, list) or (isinstance(found, tuple) and any(isinstance(d, (list, tuple)) for d in found))
        shapes = [_as_shape(f) for f in (found if several else [found])]
        if len(shapes) != n or None in shapes:
            raise OpTypeError(f"operator {self.name}{place(rule)}: its {what} returned {shown(found)}; expected the shape of "
                              f"{'its output' if n == 1 else f'each of its {n} outputs, in a list'}")  # fmt: skip
        for shape in shapes:
            infer.check_sizes(f"operator {self.name}{place(rule)}: its {what}", shape)
        return shapes

    def implied_types(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        if self._dtype is not None:
            return two_way.typed(self, "dtype rule", self._dtype, ins, outs, attrs)
        if not ins:
            return ins, [dtypes.FLOAT32 if t == dtypes.UNKNOWN else t for t in outs]
        return super().implied_types(attrs, ins, outs)


@overload
def kernel(function: Callable[Concatenate[Any, Any, P], Any], /, **options: Any) -> Kernel[Concatenate[Any, P]]: ...
@overload
def kernel(function: Callable[Concatenate[Any, P], Any], /, **options: Any) -> Kernel[P]: ...
@overload
def kernel(*, override: bool = ..., **options: Any) -> Callable[[Callable[..., Any]], Kernel[...]]: ...
@with_common_options
@ends_at_caller
def kernel(function: Callable | None = None, /, *, override: bool = False, **options: Any) -> Any:
    """Make an operator from decorated functions.

    Each function gets the parameters by keyword; ``docs/kinds.md`` has an example of each.

    - ``@op.shape``: ``rule(*shapes, **params) -> shape``, a list for several; None for a size that depends on values
    - ``@op.dtype``: ``rule(*types, **params) -> type``, or a list: names, NumPy's types or codes; by default that of the inputs
    - ``@op.infer``: ``rule(ins, outs, **params) -> (ins, outs)`` completes shapes in both directions
    - ``@op.infer_types``: ``rule(ins, outs, **params) -> (ins, outs)`` completes types in both directions
    - ``@op.size``: ``rule(*arrays, **params) -> shape`` computes in each call the sizes that the shape rule leaves open
    - ``@op.both``: ``run(xp, inputs, outputs, **params)`` computes on NumPy's and CuPy's arrays that share memory
    - ``@op.cpu``: ``run(inputs, outputs, **params)`` computes on contiguous NDArrays, without a result; or a C function
    - ``@op.cpu(prepared=True)``: ``run(steps, inputs, outputs, **params)`` records steps; ``backend=``, ``when=``: one of
      several implementations
    - ``@op.gpu``: ``run(xp, inputs, outputs, **params)`` computes on CuPy's arrays
    - ``@op.rearrange``: ``run(xp, inputs, outputs, **params)`` assigns parts of inputs to parts of outputs
    - ``@op.view``: ``rule(shape, strides, *other_shapes, **params) -> (shape, strides, offset)`` returns the layout of a view
    - ``@op.gradient``: ``rule(F, heads, inputs, outputs, **params)`` returns a list of one gradient, or None, for each input

    Parameters
    ----------
    function : callable
        Only its signature and documentation are used; its body is empty.  With the keyword ``is_train``, parts get the mode.
    strided : bool, default False
        Whether ``cpu`` and ``gpu`` functions accept inputs of any strides; others get contiguous copies.
    aux : tuple of str
        Inputs that the function itself writes; prefer `writes`.
    {common}

    Examples
    --------
    >>> from mxop.op import kernel
    >>> @kernel
    ... def sorted_rows(data):
    ...     \"\"\"The data, each row in order.\"\"\"
    >>> @sorted_rows.shape
    ... def _(data):
    ...     return data
    >>> @sorted_rows.both
    ... def _(xp, inputs, outputs):
    ...     outputs[0][...] = xp.sort(inputs[0], axis=-1)
    >>> sorted_rows(mx.nd.array([[3, 1, 2]])).asnumpy().tolist()
    [[1.0, 2.0, 3.0]]
    """

    @ends_at_caller
    def make(function: Callable) -> Kernel:
        return defined(Kernel, function, override=override, options=options)

    return make if function is None else make(function)
