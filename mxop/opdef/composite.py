"""The kind *composite*: a function of ``F`` that calls other operators.

Gradients, devices and inference follow from the operators called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, overload

from ..support import dtypes
from ..support.errors import OpTypeError, ends_at_caller
from . import dims, infer, two_way
from .above import ask
from .operator import Operator, P, defined
from .params import Attrs
from .places import place
from .rules import check_rule, with_common_options

#: Names that a first input has, and no namespace.
_INPUTS = frozenset({"data", "x", "a", "lhs", "left", "input", "inputs", "array", "label", "weight"})


class Composite(Operator[P]):
    """An operator made of calls of other operators.

    `F` in ``function(F, *inputs, **params)`` is a namespace of operators, such as ``mx.nd`` or ``mx.sym``.

    Parameters
    ----------
    planned : bool
        Whether calls on arrays run as a plan.  Each combination of integers and tuples among the parameters needs a plan of its
        own: if these differ in each call, as lists of learning rates do, calling one operator after another is faster.
    in_float32 : bool
        Whether intermediate values of float16 and bfloat16 data are float32; False for a function that cannot overflow, and
        is to be fused with the operators around it into one row kernel.
    """

    kind = "composite"

    def __init__(self, function: Callable, *, planned: bool = True, in_float32: bool = True, **options: Any):
        super().__init__(function, **options)
        self.planned, self.in_float32 = planned, in_float32
        if not self.variadic:
            self.arguments = self.arguments[1:]
        self._infer: Callable | None = None

    def check_definition(self) -> None:
        super().check_definition()
        first = self.function.__code__.co_varnames[: self.function.__code__.co_argcount][:1]
        if not first or first[0] in _INPUTS:  # F may have any other name
            raise OpTypeError(f"operator {self.name}{place(self.function)}: a composite is a function of F and of its inputs, "
                              "as in def f(F, data)")  # fmt: skip

    def infer(self, rule: Callable) -> Callable:
        """Decorate a two-way rule ``rule(ins, outs, **params) -> (ins, outs)``, which runs before inference inside."""
        return self.ruled("_infer", "infer rule", rule, ("ins", "outs"))

    def dims(self, table: Callable) -> Callable:
        """Decorate ``table(**params) -> dict``: the dimensions of all inputs and outputs; see :mod:`.dims`."""
        check_rule(self, "table of dimensions", table, ())
        self._infer = dims.rule_of(self, table)
        self.changed()
        return table

    def called(self, F: Any, inputs: Sequence[Any], attrs: Attrs) -> Any:
        """Call the function, with None for inputs that a call with `attrs` does not take."""
        if self._active_inputs is None:
            return self.function(F, *inputs, **attrs)
        given = dict(zip(self.input_names(attrs), inputs, strict=True))
        return self.function(F, *map(given.get, self.arguments), **attrs)

    @property
    def has_rules(self) -> bool:
        """Whether the operator has a rule for shapes or types."""
        return self._infer is not None or self._types is not None

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        if self._infer is not None:
            ins, outs = two_way.by_rule(self, self._infer, ins, outs, attrs)
            if all(infer.known(s) for s in ins):
                sure = two_way.by_rule(self, self._infer, ins, [None] * len(outs), attrs)[1]  # from `ins` only
                outs = infer.agreed(self.name, self.output_names(attrs, len(ins)), sure, outs)
                if self.module.startswith("mxop.") and all(infer.known(s) for s in outs):
                    return ins, outs  # rules of users are checked against inference inside
        return self._inside(attrs, ins, outs, "shape")

    def implied_types(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        found, done = self._inside(attrs, ins, outs, "type")
        if dtypes.UNKNOWN in found:  # its function may have read the type
            known = two_way.types(lambda *codes: self._inside(attrs, list(codes), [dtypes.UNKNOWN] * len(outs), "type")[1],
                                  found, outs)  # fmt: skip
            return self._inside(attrs, known, outs, "type") if known != found else (found, done)
        return found, done

    def infer_outputs(self, attrs: Attrs, shapes: list, types: list[int]) -> tuple[list, list[int]]:
        whole = ask("infer_whole")(self, attrs, shapes, types)
        if whole is None:
            return super().infer_outputs(attrs, shapes, types)
        n = len(shapes)
        ins, outs = self.by_rules(attrs, shapes, types)
        infer.check_inputs(self.name, self.input_names(attrs, n), ins, shapes)
        return infer.agreed(self.name, self.output_names(attrs, n), outs, whole[0]), whole[1]

    def by_rules(self, attrs: Attrs, shapes: list, types: list[int]) -> tuple[list, list]:
        """Return the shapes of inputs and outputs, as far as the operator's own rules determine them."""
        n = self.num_outputs(attrs, len(shapes))
        ins, outs = shapes, [None] * n
        if self._infer is not None:
            ins, outs = two_way.by_rule(self, self._infer, shapes, outs, attrs)
        if self._types is not None:
            self._output_types(attrs, types, n)
        return ins, outs

    def _inside(self, attrs: Attrs, ins: list, outs: list, what: str) -> tuple[list, list]:
        return ask("infer_inside")(self, attrs, ins, outs, what)

    @property
    def differentiable(self) -> bool:
        return True


@overload
def composite(function: Callable[Concatenate[Any, Any, Any, P], Any], /, **options: Any) -> Composite[Concatenate[Any, P]]: ...
@overload
def composite(function: Callable[Concatenate[Any, Any, P], Any], /, **options: Any) -> Composite[P]: ...
@overload
def composite(*, override: bool = ..., **options: Any) -> Callable[[Callable[..., Any]], Composite[...]]: ...
@with_common_options
@ends_at_caller
def composite(function: Callable | None = None, /, *, override: bool = False, **options: Any) -> Any:
    """Make an operator of a function that calls other operators.

    ``@op.infer`` decorates ``rule(ins, outs, **params) -> (ins, outs)``, which completes shapes; ``@op.infer_types`` one for
    types; ``@op.gradient`` ``rule(F, heads, inputs, outputs, **params)``, if the gradient is not that of the calls.

    Parameters
    ----------
    function : callable
        ``function(F, *inputs, **params)`` returns an array, or a tuple of `num_outputs`.
    planned : bool, default True
        Whether calls on arrays run as a plan; False if integers or tuples differ in each call.
    in_float32 : bool, default True
        Whether intermediate values of float16 and bfloat16 data are float32.
    {common}

    Examples
    --------
    >>> from mxop.op import composite
    >>> @composite
    ... def squared_distance(F, lhs, rhs):
    ...     \"\"\"Sum of squared differences.\"\"\"
    ...     return F.sum(F.square(lhs - rhs))
    >>> mx.nd.squared_distance(mx.nd.array([1, 2]), mx.nd.array([3, 5])).item()
    13.0
    """

    @ends_at_caller
    def make(function: Callable) -> Composite:
        return defined(Composite, function, override=override, options=options)

    return make if function is None else make(function)
