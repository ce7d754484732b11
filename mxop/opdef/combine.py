"""Reductions of one input: a formula on each element, an associative combination along axes, and a final formula.

All reductions have the parameters ``axis``, ``keepdims`` and ``exclude``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from ..formula import Expr, input_
from ..support.errors import OpTypeError, OpValueError, shown
from ..support.memo import keep
from ..support.shape_mode import numpy_shape
from . import infer, registry
from .elementwise import Elementwise, Formula
from .operator import Operator
from .params import IS_TRAIN, REQUIRED, Attrs, Param, Spec, _parse_bool, _parse_float, parse_shape
from .places import callers_line, place
from .rules import check_rule
from .tracing import traced


class Combine(NamedTuple):
    """An associative combination of two values.

    Attributes
    ----------
    name : str
        Its name in the CPU kernel.
    identity : float
        The value of an empty reduction.
    cuda : str
        CUDA text of `a` combined with `b`.
    """

    name: str
    identity: float
    cuda: str


COMBINES = {
    "add": Combine("add", 0.0, "a + b"),
    "mul": Combine("mul", 1.0, "a * b"),
    "max": Combine("max", float("-inf"), "mx_maximum(a, b)"),
    "min": Combine("min", float("inf"), "mx_minimum(a, b)"),
    "hypot": Combine("hypot", 0.0, "hypot(a, b)"),  # the length of a vector; wide reductions only
}

_AXIS = Param("axis", tuple, None, True, (), None, "Shape", parse_shape)
_KEEPDIMS = Param("keepdims", bool, False, False, (), None, "boolean", _parse_bool)
OWN = ("axis", "keepdims", "exclude")
_EXCLUDE = Param("exclude", bool, False, False, (), None, "boolean", _parse_bool)
COUNT = Param("count", float, REQUIRED, False, (), None, "float", _parse_float)
_READ = ("max", "min", "hypot")  # combinations whose derivative reads the combined value


def own_params(exclude: bool) -> list[Param]:
    """Return the parameters that all reductions have."""
    return [_AXIS, _KEEPDIMS] + ([_EXCLUDE] if exclude else [])


class Reduction(Operator):
    """An operator that combines elements along axes.

    Parameters
    ----------
    function : callable
        The formula of one element, ``function(data, **params)``.
    combine : {'add', 'mul', 'max', 'min', 'hypot'} or callable
        A combination, or ``combine(**params)``, which returns one.
    empty : bool
        Whether no elements may be combined, which gives the identity; by default unless it is an extremum.
    final : callable, optional
        ``final(value, count, **params)``, the formula applied to each combined value.
    wide : bool
        Whether to compute in float64 for all types, because intermediate values exceed the result (squares in a norm).
    """

    kind = "reduction"

    def __init__(self, function: Callable, combine: str | Callable[..., str], *, final: Callable | None = None,
                 exclude: bool = True, wide: bool = False, empty: bool | None = None, **options: Any):  # fmt: skip
        super().__init__(function, extra_params=own_params(exclude), **options)
        self.combine = combine
        self.empty = combine not in ("max", "min") if empty is None else empty
        self.final = final
        self.wide = wide
        self._formulas: dict[Any, tuple[Formula, Formula | None]] = {}
        self._parts: dict[str, Any] = {}

    def combine_of(self, attrs: Attrs) -> Combine:
        """Return the combination of a call."""
        if isinstance(self.combine, str):
            return COMBINES[self.combine]
        found = self.combine(**{n: attrs[n] for n in attrs if n not in OWN})
        if found not in COMBINES:
            raise OpValueError(f"operator {self.name}{place(self.combine)}: its combination is {shown(found)}; expected one "
                               f"of {', '.join(COMBINES)}")  # fmt: skip
        return COMBINES[found]

    def axes(self, attrs: Attrs, rank: int) -> tuple[int, ...]:
        """Return the sorted axes that a call reduces."""
        return infer.reduced_axes(self.name, attrs["axis"], attrs.get("exclude", False), rank)

    def formulas(self, attrs: Attrs) -> tuple[Formula, Formula | None]:
        """Return the traced formula of an element, and the final one (over the combined value and the count)."""
        found = self._formulas.get(attrs)
        if found is None:
            values = {n: attrs[n] for n in attrs if n not in OWN}
            first = self._traced(self.function, input_(0), **values)
            last = None if self.final is None else self._traced(self.final, input_(0), input_(1), **values)
            found = keep(self._formulas, attrs, (first, last))  # keyed by all parameters, of which axes change most
        return found

    def _traced(self, function: Callable, *args: Expr, **params: Any) -> Formula:
        roots = traced(self.name, function, *args, **params)
        if len(roots) != 1:
            raise OpTypeError(
                f"operator {self.name}{place(function)}: its function returned {len(roots)} formulas; expected one"
            )
        return Formula(roots, ())

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        shape = ins[0]
        if shape is None:
            return ins, outs
        axes = self.axes(attrs, len(shape))
        if not self.empty:
            self._check_not_empty(shape, axes)
        if attrs["keepdims"]:
            result = tuple(1 if i in axes else d for i, d in enumerate(shape))
        else:
            result = tuple(d for i, d in enumerate(shape) if i not in axes)
            if not result and not numpy_shape():
                result = (1,)  # MXNet's full reduction
        result = infer.same_shape(self.name, ["the input reduced", "output"], [result, outs[0]])[0]
        if None in shape:  # kept dimensions follow from the output
            kept = iter(result if not attrs["keepdims"] else [d for i, d in enumerate(result) if i not in axes])
            shape = tuple([d if i in axes else next(kept) for i, d in enumerate(shape)])
        return [shape], [result]

    def _check_not_empty(self, shape: tuple, axes: tuple[int, ...]) -> None:
        """Raise if a result is that of no elements."""
        if any(shape[i] == 0 for i in axes) and not any(d == 0 for i, d in enumerate(shape) if i not in axes):
            raise OpValueError(
                f"operator {self.name}: data of shape {tuple(shape)} have no elements along axis={axes}, and the {self.name} "
                "of nothing is not defined"
            )

    def implied_types(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        chosen = attrs.get("out_dtype")
        if chosen is not None:
            return ins, [chosen]
        return super().implied_types(attrs, ins, outs)

    # ---- gradient -----------------------------------------------------------------------------------------------------
    @property
    def differentiable(self) -> bool:
        return True

    def implied(self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]) -> Any:
        """Return the gradient through the final formula, the combination, and the element's formula."""
        x, g, value = inputs[0], heads[0], outputs[0]
        out_dtype = attrs.get("out_dtype")
        if out_dtype is not None:
            x = F.cast(x, dtype=out_dtype)
        if self.final is not None:
            g, value = self._before_final(F, attrs, g, x, value)
        found = self._of_elements(F, attrs, g, x, value)
        return [found if out_dtype is None else F._cast_like(found, inputs[0])]

    def _before_final(self, F: Any, attrs: Attrs, head: Any, x: Any, result: Any) -> tuple[Any, Any]:
        """Return the gradient of the combined value, and that value if a derivative reads it."""
        op, own = self.part("_final_"), {n: attrs[n] for n in attrs if n not in OWN}
        count = prod(x.shape[i] for i in self.axes(attrs, x.ndim))
        given = op.parse({"count": float(count), **own})
        value = result  # a placeholder: to recompute the combined value takes a pass over the data
        if self.combine_of(attrs).name in _READ or 0 in op.backward_formula(given, 1).inputs:
            value = F._invoke(self.part("_combined_"), [x], attrs)
        return op.grad(F, given, [head], [value], [result], [True])[0], value

    def _of_elements(self, F: Any, attrs: Attrs, head: Any, x: Any, value: Any) -> Any:
        """Return the gradient of the data, given that of the combined value."""
        axis, exclude = attrs["axis"], attrs.get("exclude", False)
        op = self.part("_map_")
        given = op.parse({n: attrs[n] for n in op.spec.names})
        plain = self.formulas(attrs)[0].roots[0] is input_(0)
        combine = self.combine_of(attrs).name
        elements = x
        if not plain and (combine != "add" or op.backward_formula(given, 1).outputs):
            elements = F._invoke(op, [x], given)
        if combine == "add":
            g = F._broadcast_reduced(head, x, axis=axis, keepdims=attrs["keepdims"], exclude=exclude)
        else:
            if not attrs["keepdims"]:  # the small arrays get their axes back, so that they broadcast
                head, value = (F._restore_dims(a, x, axis=axis, exclude=exclude) for a in (head, value))
            if combine == "mul":
                g = F.broadcast_mul(F._product_of_others(elements, axis=axis, exclude=exclude), head)
            elif combine == "hypot":
                g = F._norm_slope(head, elements, value)
            else:
                g = F._select_equal(head, elements, value)
        return g if plain else op.grad(F, given, [g], [x], [elements], [True])[0]

    def part(self, prefix: str) -> Any:
        """Return a hidden operator that the gradient calls; it belongs to this operator.

        ``_map_`` is the element's formula, ``_final_`` the final one, ``_combined_`` the reduction without the final one.
        """
        found = self._parts.get(prefix)
        if found is None:
            found = self._parts.setdefault(prefix, self._made(prefix))
            registry.find(found.name)  # makes it known by name, if this operator is
        return found

    def derived(self, prefix: str) -> Operator | None:
        own = ("_map_",) if self.final is None else ("_map_", "_final_", "_combined_")
        return self.part(prefix) if prefix in own else super().derived(prefix)

    def _made(self, prefix: str) -> Operator:
        if prefix == "_map_":
            return Elementwise(self.function, name=prefix + self.name, module=self.module)
        if prefix == "_final_":
            return Part(self, prefix, lambda value, *, count, **params: self.final(value, count, **params),  # type: ignore[misc]
                        ("value",), (COUNT,))  # fmt: skip
        return Reduction(self.function, self.combine, exclude="exclude" in self.spec.names, wide=self.wide, empty=self.empty,
                         name=prefix + self.name, module=self.module)  # fmt: skip

    def check_definition(self) -> None:
        super().check_definition()
        checked_parts(self, self.function, (self.combine,), self.final, ("value",))

    @staticmethod
    def check_combine(combines: tuple) -> None:
        """Raise unless there are one or two combinations, and each is known."""
        for combine in combines:
            if not callable(combine) and not (isinstance(combine, str) and combine in COMBINES):
                raise OpTypeError(f"reduction{callers_line()}: combine={combine!r} is not one of {', '.join(COMBINES)}, nor a "
                                "pair of them")  # fmt: skip
        if len(combines) not in (1, 2):
            raise OpTypeError(f"reduction{callers_line()}: combine={combines!r}; expected one combination or a pair")


class Part(Elementwise):
    """A formula of a reduction, whose parameters follow the formula's own."""

    def __init__(self, of: Any, prefix: str, function: Callable, arguments: Sequence[str], params: tuple = (),
                 **options: Any):  # fmt: skip
        super().__init__(function, name=prefix + of.name, arguments=arguments, module=of.module, **options)
        self.base, self._params = of, params

    @cached_property
    def spec(self) -> Spec:  # type: ignore[override]
        params = (*self._params, *(p for p in self.base.spec.params if p.name not in OWN))
        return Spec(self.name, params, (*(p.name for p in params), *([IS_TRAIN] if self.base.spec.has_mode else [])))


def checked_parts(op: Any, function: Callable, combines: tuple, final: Callable | None, values: Sequence[str]) -> None:
    """Raise for an invalid user-defined reduction: its parameters, combinations and formulas."""
    code = function.__code__
    own = [n for n in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount] if n in OWN]
    if own:
        raise OpTypeError(f"operator {op.name}{place(function)}: the parameter {own[0]!r} belongs to every reduction; give the "
                          "function's own another name")  # fmt: skip
    if not op.arguments:
        raise OpTypeError(f"operator {op.name}{place(function)}: it has no input")
    params = [n for n in op.spec.in_attrs if n not in OWN]
    for combine in combines:
        if callable(combine):
            check_rule(op, "combination", combine, (), params)
    if final is not None:
        check_rule(op, "final formula", final, (*values, "count"), params)
    example = op.spec.example()
    if example is None:
        return
    given = {n: example[n] for n in params}
    inputs = [input_(k) for k in range(len(op.arguments))]
    if len(combines) > 1:
        first, second = op._pair(tuple(inputs), given)
        traced(op.name, lambda: (first, second(input_(len(inputs)))))
    elif len(traced(op.name, function, *inputs, **given)) != 1:
        raise OpTypeError(f"operator {op.name}{place(function)}: its function returned several formulas; expected one")
    if final is not None:
        traced(op.name, final, *[input_(k) for k in range(len(values) + 1)], **given)
