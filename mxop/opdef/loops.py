"""The kind *loops*: a Python function of explicit loops over arrays, in the language of :mod:`mxop.operator.hybrid`.

A *body* (:class:`mxop.operator.hybrid.Hybrid`) infers shapes and types, runs the function, and makes its gradient, which is the
body of another operator of this kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, overload

from ..support import dtypes
from ..support.errors import ends_at_caller
from . import infer, registry
from .above import ask
from .kernel import Kernel, Way
from .params import Attrs, Param, Spec


class Loops(Kernel):
    """An operator written with loops.

    Parameters
    ----------
    body : Hybrid, optional
        A body to use instead of a function.
    params : sequence of Param
        The parameters of the body.
    """

    kind = "loops"

    def __init__(self, function: Callable | None, *, body: Any = None, params: Sequence[Param] = (), **options: Any):
        if body is not None:
            options |= {"num_outputs": body.count, "active_inputs": body.inputs_of}
        super().__init__(function, **options)  # type: ignore[arg-type]
        self.clears = False
        if body is None:
            body = ask("loops_body")(self)
            self._num_outputs = body.n_outputs
        else:
            self.spec = Spec(self.name, tuple(params))
        self.body = body
        self._shape = lambda *shapes, **params: body.infer_shapes(shapes, params)
        self._infer = self._infer_inputs
        self._dtype = lambda *codes, **params: body.infer_types(codes, params)
        self.run_gpu = lambda xp, inputs, outputs, **params: body.run_gpu(inputs, outputs, params)

    @property
    def doc(self) -> str:
        return self.body.doc

    def _infer_inputs(self, ins: list, outs: list, **params: Any) -> tuple[list, list]:
        """Infer shapes of inputs from those of outputs that are made like them."""
        names = self.input_names(Attrs(tuple(params), tuple(params.values())))
        for k, at in self.body.alike("like", params):
            ins[at], outs[k] = infer.same_shape(self.name, [names[at], f"output {k}"], [ins[at], outs[k]])
        return ins, outs

    def way(self, inputs: list, outputs: list, attrs: Attrs) -> Way:
        known = self.body.known_of(inputs, attrs)  # raises for types and shapes that do not fit
        return Way(lambda inputs, outputs, **params: self.body.execute(known, inputs, outputs))

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        ins = list(ins)
        for k, at in self.body.alike("dtype", attrs):
            ins[at] = outs[k] if ins[at] == dtypes.UNKNOWN else ins[at]
        known = [t for t in ins if t != dtypes.UNKNOWN]
        if ins and not known:
            return ins, outs
        return super().infer_type(attrs, [known[0] if t == dtypes.UNKNOWN else t for t in ins], outs)

    # ---- gradient -------------------------------------------------------------------------------------------------------
    @property
    def differentiable(self) -> bool:
        return True

    def implied(self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]) -> Any:
        return self.body.gradients(self, F, attrs, heads, inputs, needed)

    @cached_property
    def _derivative(self) -> Loops:
        return self.body.gradient_operator(self)

    def backward_operator(self) -> Loops:
        return self._derivative

    def same_as(self, other: Any) -> bool:
        return self is other or (self.function is not None and super().same_as(other))


@overload
def loops(function: Callable[..., Any], /, *, override: bool = ..., **options: Any) -> Loops: ...
@overload
def loops(*, override: bool = ..., **options: Any) -> Callable[[Callable[..., Any]], Loops]: ...
@ends_at_caller
def loops(function: Callable | None = None, /, *, override: bool = False, **options: Any) -> Any:
    """Make an operator of a function with loops, which is compiled for each combination of types.

    Shapes, types and gradients of every order are derived from its source.  ``output_tensor(shape, dtype)`` makes the result,
    ``allocate`` intermediate tensors; loops run over ``range``, ``grid(shape)`` or ``parallel(n)``, whose iterations run in
    threads.  The page "Operators with loops" lists all functions and rules.

    Parameters
    ----------
    function : callable
        Positional arguments are arrays; keyword-only ones are parameters with types, as in the other kinds.
    override : bool
        Whether it may replace an operator of another module.
    **options
        ``name``, ``aliases`` and ``writes``, as for the other kinds.

    Raises
    ------
    HybridError
        If the source is not in the language, with file and line.

    Examples
    --------
    >>> from mxop.op import loops
    >>> @loops
    ... def running_product(data, *, start: float = 1.0):
    ...     \"\"\"The product of the elements so far.\"\"\"
    ...     result = output_tensor(data.shape, data.dtype)
    ...     so_far = start
    ...     for i in range(data.shape[0]):
    ...         so_far = so_far * data[i]
    ...         result[i] = so_far
    ...     return result
    >>> mx.nd.running_product(mx.nd.array([1, 2, 3]), start=2).asnumpy().tolist()
    [2.0, 4.0, 12.0]
    """

    @ends_at_caller
    def make(function: Callable) -> Loops:
        op = Loops(function, **options)
        registry.register(op, override=override)
        return op

    return make if function is None else make(function)
