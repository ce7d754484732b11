"""The kind *elementwise*: a scalar formula, applied to each element.

Inference, the CPU program, the CUDA text and the backward operator, which is elementwise too, are derived from the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Concatenate, overload

from ..formula import TABLE, Backward, Expr, NeedsValue, TraceError, backward, const, input_, keys_of, param, walk
from ..formula.expr import as_expr
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError, ends_at_caller, shown
from ..support.memo import keep
from ..support.shape_mode import numpy_shape
from . import infer, registry, two_way
from .above import ask
from .operator import Operator, P, defined
from .params import IS_TRAIN, Attrs, Spec
from .places import place
from .rules import check_rule, with_common_options
from .tracing import called, traced, tracing

MOST_INPUTS = 239  # of a formula with one output: they are registers of one program, which share the cache
#: Primitives whose result in narrow integers depends on the lowest bits of their operands only.
_WRAPPING = ("add", "sub", "mul", "neg", "square", "fma", "where")


@dataclass(frozen=True)
class Formula:
    """A traced function: one expression for each output, and the parameters that are leaves of them.

    Attributes
    ----------
    roots : tuple of Expr
    params : tuple of str
        Names of the numeric parameters that are leaves.
    """

    roots: tuple[Expr, ...]
    params: tuple[str, ...]

    @cached_property
    def integer(self) -> bool:
        """Whether integer data are computed as integers."""
        return not any(
            (n.kind == "call" and TABLE[n.label].integer is None) or (n.kind in ("param", "const") and n.real)
            for n in walk(self.roots)
        )

    @cached_property
    def keys(self) -> frozenset[int]:
        """Indices of the inputs that are keys of random numbers: int64 arrays of one element, whatever the data's type."""
        return keys_of(self.roots)

    @cached_property
    def _whole(self) -> tuple[int, ...]:
        """The constants of which more than the lowest bits count, as of those that data are compared with."""
        calls = [n for n in walk(self.roots) if n.kind == "call" and n.label not in _WRAPPING]
        return tuple({int(a.label) for n in calls for a in n.args if a.kind == "const"}) if self.integer else ()

    def compute_type(self, dtype: int) -> int:
        """Return the type that data of `dtype` are computed in."""
        if dtype not in dtypes.FLOATS and not self.integer:
            return dtypes.FLOAT64
        found = dtypes.COMPUTED_AS.get(dtype, dtype)
        low, high = dtypes.INTEGER_RANGES.get(found, (-math.inf, math.inf))
        return found if all(low <= value <= high for value in self._whole) else dtypes.INT64


MOST_FORMULAS = 1024  # cached for each operator


class Elementwise(Operator[P]):
    """An operator made of a scalar formula.

    Parameters
    ----------
    broadcast : bool
        Whether inputs of different shapes broadcast; otherwise shapes must be equal.
    out_dtype : callable, optional
        ``out_dtype(*input_types, **params)`` returns the output's type, if it is not the inputs' type.
    creates : bool
        Whether the result has the shape and type of the parameters `shape` and `dtype`; inputs are keys, or broadcast to it.
    rule : callable, optional
        Formulas of the gradients, ``rule(g, *inputs, *outputs, **params)``, if they are not the derivatives.
    differentiable : bool
        False if taking the gradient is an error.
    integers : tuple of str
        Inputs, such as labels, whose type may differ from the data's; they are cast to it.
    folds : bool
        Whether ``f(a, b, c)`` is ``f(f(a, b), c)``, for a function of ``*args``: there may then be any number of inputs.
    """

    kind = "elementwise"

    def __init__(self, function, *, broadcast=False, out_dtype=None, creates=False, rule=None, differentiable=True, integers=(),
                 folds=False, **options):  # fmt: skip
        super().__init__(function, **options)
        self.broadcast = broadcast or creates
        self.creates = creates
        self.out_dtype = out_dtype
        self.rule = rule
        self.integers, self.folds = tuple(integers), folds
        self._differentiable = differentiable
        self._formulas: dict[Any, Formula] = {}
        self._backwards: dict[Any, Backward] = {}
        self._asked: dict[tuple, str] = {}  # key of a trace that read the value of a parameter -> its name

    def check_definition(self) -> None:
        super().check_definition()
        example = None if callable(self._num_outputs) or self._num_outputs == 1 else self.spec.example()
        if example is not None and self.num_outputs(example) != self._num_outputs:
            raise OpTypeError(f"operator {self.name}{place(self.function)}: num_outputs={self._num_outputs}, but its function "
                              f"returns {self.num_outputs(example)}")  # fmt: skip
        if not self.arguments and not self.creates:
            raise OpTypeError(f"operator {self.name}{place(self.function)}: it has no input; inputs stand before the star, "
                              "as in def f(data, *, a: float = 1.0)")  # fmt: skip
        if unknown := set(self.integers) - set(self.arguments):
            raise OpTypeError(f"operator {self.name}: integers={self.integers} names {min(unknown)!r}; its inputs are: "
                              f"{', '.join(self.arguments)}")  # fmt: skip
        if self.folds and not self.variadic:
            raise OpTypeError(f"operator {self.name}{place(self.function)}: folds=True is for a function of *args")
        if self.out_dtype is not None:
            check_rule(self, "out_dtype", self.out_dtype, ("*type",))
        attrs = None if self.variadic else self.spec.example()
        if attrs is not None:
            n = len(self.formula(attrs, len(self.input_names(attrs))).roots)
            if self.rule is not None:
                heads, outputs = ([f"{what}{k or ''}" for k in range(n)] for what in ("g", "output"))
                check_rule(self, "rule", self.rule, (*heads, "*input", *outputs))
                self.backward_formula(attrs, len(self.input_names(attrs)))

    @property
    def has_backward_operator(self) -> bool:  # type: ignore[override]
        return self._differentiable and self._gradient is None

    @property
    def differentiable(self) -> bool:
        return self._differentiable

    def _applied(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Apply the operator; in another formula, insert its own formula."""
        if any(isinstance(v, Expr) for v in (*args, *kwargs.values())):
            return self._inlined(args, kwargs)
        return super()._applied(args, kwargs)

    def _inlined(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return the formula applied to expressions; parameters may be expressions too."""
        registry.note_use(tracing.get(), self.name)
        if self.rule is not None or not self.has_backward_operator or self.out_dtype is not None:
            what = "element type" if self.out_dtype is not None else "gradient"
            raise TraceError(f"operator {self.name} has a rule of its own for its {what}, which a formula would lose: call it "
                             "in a @composite")  # fmt: skip
        n = len(args) if self.variadic else len(self.arguments)
        if len(args) > n + len(self.spec.names):
            raise OpTypeError(f"operator {self.name} takes at most {n + len(self.spec.names)} arguments, {len(args)} given")
        named = dict(zip(self.spec.names, args[n:], strict=False)) | kwargs
        inputs = [*args[:n], *(named.pop(a) for a in self.arguments[len(args) :] if a in named)]
        open_ = {name: value for name, value in named.items() if isinstance(value, Expr)}
        attrs = self.parse({name: self.spec.stand_in(name) if name in open_ else v for name, v in named.items()})
        self.check_arity(attrs, len(inputs))
        for name in open_:
            if not self.spec.by_name[name].numeric:
                raise TraceError(f"operator {self.name}: parameter {name!r} must be a value; in a formula only parameters of "
                                 "type float are computed")  # fmt: skip
        found = tuple(traced(self.name, self.function, *map(as_expr, inputs), **{**attrs, **open_}))
        return found[0] if len(found) == 1 else found

    # ---- the formula ----------------------------------------------------------------------------------------------------
    def static_key(self, attrs: Attrs, n_inputs: int) -> tuple:
        """Return a key that is equal for calls with the same formula.

        It holds the number of inputs, the parameters that are not numbers, and in turn the numbers whose values the function
        was found to read; which one it reads next may depend on those before.
        """
        return self._path(attrs, n_inputs)[0]

    def _path(self, attrs: Attrs, n_inputs: int) -> tuple[tuple, list[str]]:
        """Return the key of a call's formula, and the names of the numbers in it."""
        key: tuple = (n_inputs, *[attrs.values_[i] for i in self._static])
        if self.spec.has_mode:
            key = (*key, attrs[IS_TRAIN])
        by_value: list[str] = []
        while (asked := self._asked.get(key)) is not None:
            by_value.append(asked)
            value = attrs[asked]
            key = (*key, value if value == value and value != 0 else repr(value))  # NaN == NaN, 0.0 != -0.0
        return key, by_value

    @cached_property
    def _static(self) -> tuple[int, ...]:
        """Positions of the parameters that are not numbers."""
        return tuple(i for i, p in enumerate(self.spec.params) if not p.numeric)

    def formula(self, attrs: Attrs, n_inputs: int) -> Formula:
        """Return the traced function; it is traced once for each :meth:`static_key`."""
        key, by_value = self._path(attrs, n_inputs)
        found = self._formulas.get(key)
        while found is None:
            try:
                found = self._trace(attrs, n_inputs, by_value)
            except NeedsValue as problem:
                self._asked[key] = problem.param
                key, by_value = self._path(attrs, n_inputs)
                continue
            if len(self._formulas) >= MOST_FORMULAS:
                self._formulas.clear()
                self._backwards.clear()
                self._asked.clear()
            self._formulas[key] = found
        return found

    def _trace(self, attrs: Attrs, n_inputs: int, by_value: Sequence[str] = ()) -> Formula:
        inputs = [input_(i) for i in range(n_inputs)]
        values, names = {}, []
        for p in self.spec.params:
            if p.numeric and p.name not in by_value:
                values[p.name] = param(p.name, real=p.real)
                names.append(p.name)
            else:
                values[p.name] = attrs[p.name]
        if self.spec.has_mode:
            values[IS_TRAIN] = attrs[IS_TRAIN]
        roots = traced(self.name, self.function, *inputs, **values)
        return Formula(roots, tuple(names))

    def folded(self, call: Callable, inputs: Sequence[Any], attrs: Attrs) -> tuple[list, Attrs]:
        """Return the inputs and parameters of the last call, after ``call(op, inputs, attrs)`` took what is too many for it."""
        count, inputs = self.num_args_param, list(inputs)
        while len(inputs) > MOST_INPUTS:
            first = attrs.replaced(**{count: MOST_INPUTS}) if count else attrs
            inputs[:MOST_INPUTS] = [call(self, inputs[:MOST_INPUTS], first)]
        return inputs, attrs.replaced(**{count: len(inputs)}) if count else attrs

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return len(self.formula(attrs, n_inputs if n_inputs is not None else len(self.input_names(attrs))).roots)

    # ---- inference --------------------------------------------------------------------------------------------------------
    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        keys = self.formula(attrs, len(ins)).keys
        if keys:
            return self._infer_shape_beside(keys, attrs, ins, outs)
        names = [*self.input_names(attrs, len(ins)), *self.output_names(attrs, len(ins))]
        return self._infer_data(attrs, names, ins, outs)

    def _infer_data(self, attrs: Attrs, names: list[str], ins: list, outs: list) -> tuple[list, list]:
        """Complete the shapes of data and outputs."""
        if self.creates:
            asked = infer.from_legacy(attrs["shape"], numpy_shape())
            return ins, infer.same_shape(self.name, ["the shape asked for", *names[len(ins) :]], [asked, *outs])[1:]
        if not self.broadcast:
            done = infer.same_shape(self.name, names, [*ins, *outs])
            return done[: len(ins)], done[len(ins) :]
        result = infer.broadcast_shape(self.name, names[: len(ins)], ins)
        return ins, infer.same_shape(self.name, ["the inputs together", *names[len(ins) :]], [result, *outs])[1:]

    def _infer_shape_beside(self, keys: frozenset[int], attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        """Complete the shapes of all but keys; a key has one element."""
        names = [*self.input_names(attrs, len(ins)), *self.output_names(attrs, len(ins))]
        n = len(ins)
        for k in keys:
            infer.same_shape(self.name, ["a key", names[k]], [(1,), ins[k]])
        data = [k for k in range(n) if k not in keys]
        found, outs = self._infer_data(attrs, [*(names[k] for k in data), *names[n:]], [ins[k] for k in data], outs)
        shapes = dict(zip(data, found, strict=True))
        return [shapes.get(k, (1,)) for k in range(n)], outs

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        keys = self.formula(attrs, len(ins)).keys
        if keys:
            return self._infer_type_beside(keys, attrs, ins, outs)
        if self.out_dtype is not None:
            return two_way.typed(self, "out_dtype", self.out_dtype, ins, outs, attrs)
        labels = self._labels(attrs, len(ins))
        found, done = super().infer_type(attrs, [dtypes.UNKNOWN if k in labels else t for k, t in enumerate(ins)], outs)
        if not labels:
            return found, done
        data = next(t for k, t in enumerate(found) if k not in labels)
        if data != dtypes.UNKNOWN and data not in dtypes.FLOATS and any(ins[k] in dtypes.FLOATS for k in labels):
            return super().infer_type(attrs, ins, outs)  # raises: real labels would be cut
        return [ins[k] if k in labels else t for k, t in enumerate(found)], done

    def _labels(self, attrs: Attrs, n: int) -> list[int]:
        """Return the positions of inputs whose type may differ from the data's; see `integers`."""
        if not self.integers:
            return []
        found = [k for k, name in enumerate(self.input_names(attrs, n)) if name in self.integers]
        return found if len(found) < n else []

    def casts(self, attrs: Attrs, types: Sequence[int]) -> dict[int, int]:
        """Return the inputs of a call that must be cast, with their new types; see `integers`."""
        labels = self._labels(attrs, len(types)) if len(set(types)) > 1 else []
        if not labels:
            return {}
        data = next(t for k, t in enumerate(types) if k not in labels)
        return {k: data for k in labels if types[k] != data and (data in dtypes.FLOATS or types[k] not in dtypes.FLOATS)}

    def cast(self, attrs: Attrs, inputs: Sequence[Any]) -> list[Any]:
        """Return the arrays of a call after :meth:`casts`; raise if types do not fit."""
        types = [a.dtype_code for a in inputs]
        casts = self.casts(attrs, types)
        if not casts:
            self.infer_type(attrs, types, [dtypes.UNKNOWN])
        cast, call = registry.get("Cast"), ask("call_operator")
        return [call(cast, [a], {"dtype": casts[k]}) if k in casts else a for k, a in enumerate(inputs)]

    def _infer_type_beside(self, keys: frozenset[int], attrs: Attrs, ins: list[int], outs: list[int]) -> tuple:
        """Complete the types of all but keys."""
        names = [*self.input_names(attrs, len(ins)), *self.output_names(attrs, len(ins))]
        infer.same_type(self.name, ["a key", *(names[k] for k in keys)], [dtypes.INT64, *(ins[k] for k in keys)])
        kept = [k for k in range(len(names)) if k not in keys]
        types = [t if k not in keys else dtypes.INT64 for k, t in enumerate([*ins, *outs])]
        asked = ["the dtype asked for"] if self.creates else []
        found = infer.same_type(
            self.name,
            [*asked, *(names[k] for k in kept)],
            [*(attrs["dtype"] for _ in asked), *(types[k] for k in kept)],
        )
        for k, t in zip(kept, found[len(asked) :], strict=True):
            types[k] = t
        return types[: len(ins)], types[len(ins) :]

    def infer_outputs(self, attrs: Attrs, shapes: list, types: list[int]) -> tuple[list, list[int]]:
        if not self.creates:
            return super().infer_outputs(attrs, shapes, types)
        n = self.num_outputs(attrs, len(shapes))  # readers of the result may determine sizes in `shape`
        found = self.infer_shape(attrs, list(shapes), [None] * n)[1]
        return found, self.infer_type(attrs, list(types), [dtypes.UNKNOWN] * n)[1]

    # ---- gradient ---------------------------------------------------------------------------------------------------------
    @property
    def absent_heads(self) -> bool:
        return self._gradient is None or self._absent_heads

    def backward_formula(self, attrs: Attrs, n_inputs: int, absent: tuple[int, ...] = ()) -> Backward:
        """Return the derivative of the formula, with the operands that it reads.

        `absent` are indices of outputs without a head gradient.
        """
        formula = self.formula(attrs, n_inputs)
        key = self.static_key(attrs, n_inputs), absent
        found = self._backwards.get(key)
        if found is None:
            rule = None
            if self.rule is not None:
                values = dict(attrs)
                values.update({n: param(n, self.spec.by_name[n].real) for n in formula.params})

                def rule(heads, inputs, outputs):
                    return self._ruled(called(self.name, self.rule, *heads, *inputs, *outputs, **values), n_inputs)

            try:
                found = backward(formula.roots, n_inputs, rule, absent)
            except NeedsValue as problem:
                raise OpTypeError(f"operator {self.name}: in its gradient rule {problem}; use where(condition, a, b)") from None
            self._backwards[key] = found
        return found

    def _ruled(self, found: Any, n_inputs: int) -> list[Expr | None]:
        """Return the formulas that a gradient rule returned, one for each input."""
        grads = list(found) if isinstance(found, (tuple, list)) else [found]
        who = f"operator {self.name}{place(self.rule)}: its gradient rule returned {shown(found)}"
        if len(grads) != n_inputs:
            raise OpTypeError(f"{who}; expected {n_inputs} formulas: one for each input, None where it is zero")
        try:
            return [None if g is None else as_expr(g) for g in grads]
        except (TraceError, ValueError) as problem:
            raise OpTypeError(f"{who}; expected formulas: {problem}") from None

    @property
    def _backward(self) -> BackwardOperator:
        found = self.__dict__.get("backward_")
        return found if found is not None else self.__dict__.setdefault("backward_", BackwardOperator(self))

    def backward_operator(self) -> Operator | None:
        return self._backward if self.has_backward_operator else None

    def implied(self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]) -> Any:
        absent = tuple([k for k in self.backward_formula(attrs, len(inputs)).heads if heads[k] is None])
        rule = self.backward_formula(attrs, len(inputs), absent)
        wanted = tuple(i for i, g in enumerate(rule.roots) if g is not None and needed[i])
        grads: list = [None] * len(inputs)
        if not wanted:
            return grads
        operands = [heads[k] for k in rule.heads] + [inputs[i] for i in rule.inputs] + [outputs[k] for k in rule.outputs]
        typed = self.out_dtype is not None and not _of_one_type(operands)
        if typed:
            operands = [F.cast(o, dtype="float64") for o in operands]
        found = F._invoke(self._backward, operands, self._backward.attrs_for(attrs, wanted, len(inputs), absent))
        for i, g in zip(wanted, found if isinstance(found, (list, tuple)) else [found], strict=True):
            g = F._unbroadcast(g, inputs[i]) if self.broadcast else g
            grads[i] = F._cast_like(g, inputs[i]) if typed else g
        return grads


def _of_one_type(operands: Sequence[Any]) -> bool:
    """Return whether arrays have the same type; False for symbols, whose type is unknown."""
    types = {getattr(o, "dtype_code", None) for o in operands}
    return len(types) == 1 and None not in types


class BackwardOperator(Elementwise):
    """The derivative of an elementwise operator, which is elementwise too.

    Its parameters: those of the forward operator, the wanted gradients, and the outputs without a head gradient.
    """

    def __init__(self, forward: Elementwise):
        self.forward = forward
        super().__init__(
            forward.function, name=registry.BACKWARD + forward.name, broadcast=forward.broadcast, is_backward=True,
            integers=forward.integers, module=forward.module,
        )  # fmt: skip
        self.variadic = True
        self.arguments = ("args",)
        self._rules: dict[Any, tuple[Formula, Backward]] = {}

    @cached_property
    def spec(self) -> Spec:  # type: ignore[override]
        from .params import Param, _parse_int, parse_shape

        forward = self.forward.spec
        extra = (
            Param(self._own_names[0], tuple, (), False, (), None, "Shape(tuple)", parse_shape),
            Param(self._own_names[1], int, 1, False, (), None, "int", _parse_int),
            Param(self._own_names[2], tuple, (), False, (), None, "Shape(tuple)", parse_shape),
        )
        return Spec(self.name, forward.params + extra, forward.in_attrs + self._own_names)

    def attrs_for(self, attrs: Attrs, wanted: tuple[int, ...], forward_inputs: int, absent: tuple[int, ...] = ()) -> Attrs:
        """Return the parameters of the call that computes the gradients of the `wanted` inputs."""
        return Attrs((*attrs.names, *self._own_names), (*attrs.values_, wanted, forward_inputs, absent))

    @cached_property
    def _own_names(self) -> tuple[str, str, str]:
        """Names of its own parameters, different for each order of derivative."""
        order = self.name.count(registry.BACKWARD)
        suffix = str(order) if order > 1 else ""
        return f"wanted{suffix}", f"forward_inputs{suffix}", f"absent{suffix}"

    def _rule(self, attrs: Attrs) -> tuple[Formula, Backward]:
        _, n, absent = self._own_values(attrs)
        key = self.forward.static_key(attrs, n), absent  # the forward operator's parameters come first
        found = self._rules.get(key)
        if found is None:
            self._check_forward_inputs(attrs)
            inner = self._forward_attrs(attrs)
            found = self.forward.formula(inner, n), self.forward.backward_formula(inner, n, absent)
            keep(self._rules, key, found, MOST_FORMULAS)
        return found

    def _forward_attrs(self, attrs: Attrs) -> Attrs:
        """Return the parameters of the forward call."""
        names = self.forward.spec.in_attrs
        return Attrs(names, attrs.values_[: len(names)])

    def _own_values(self, attrs: Attrs) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
        """Return the wanted gradients, the forward operator's number of inputs, and the outputs without a head gradient."""
        at = len(self.forward.spec.in_attrs)  # what follows may be parameters of derivatives of this one
        return attrs.values_[at : at + 3]

    def _check_forward_inputs(self, attrs: Attrs) -> None:
        """Raise unless the forward call can have this number of inputs, which may come from a file."""
        n = self._own_values(attrs)[1]
        if not self.forward.variadic:
            names = self.forward.input_names(self._forward_attrs(attrs))
            if n != len(names):
                raise OpValueError(
                    f"operator {self.name}: {self._own_names[1]}={n}, but {self.forward.name} has {len(names)} inputs"
                )
        elif not 1 <= n <= MOST_INPUTS:
            raise OpValueError(f"operator {self.name}: {self._own_names[1]}={n}; expected a number from 1 to {MOST_INPUTS}")

    def _trace(self, attrs: Attrs, n_inputs: int, by_value: Sequence[str] = ()) -> Formula:
        formula, rule = self._rule(attrs)
        wanted = self._own_values(attrs)[0] or tuple(i for i, g in enumerate(rule.roots) if g is not None)
        if any(i is None or not 0 <= i < len(rule.roots) for i in wanted):
            raise OpValueError(
                f"operator {self.name}: {self._own_names[0]}={wanted}; {self.forward.name} has {len(rule.roots)} inputs"
            )
        roots = []
        for i in wanted:
            g = rule.roots[i]
            roots.append(const(0) if g is None else g)
        return Formula(tuple(roots), formula.params)

    def _path(self, attrs: Attrs, n_inputs: int) -> tuple[tuple, list[str]]:
        wanted, n, absent = self._own_values(attrs)
        self._rule(attrs)  # finds the values that the forward operator reads
        key, by_value = self.forward._path(attrs, n)
        return (n_inputs, wanted, absent, *key), by_value

    def input_names(self, attrs: Attrs, n: int | None = None) -> tuple[str, ...]:
        rule = self._rule(attrs)[1]
        names = self.forward.arguments if not self.forward.variadic else [f"arg{i}" for i in range(self._own_values(attrs)[1])]
        return (
            *(f"head_grad{k or ''}" for k in rule.heads),
            *(names[i] for i in rule.inputs),
            *(f"output{k or ''}" for k in rule.outputs),
        )

    def _labels(self, attrs: Attrs, n: int) -> list[int]:
        if not self.integers:
            return []
        rule, inner = self._rule(attrs)[1], self._forward_attrs(attrs)
        labels = self.forward._labels(inner, self._own_values(attrs)[1])
        return [len(rule.heads) + k for k, i in enumerate(rule.inputs) if i in labels]

    def check_arity(self, attrs: Attrs, n: int) -> None:
        rule = self._rule(attrs)[1]
        if n != len(rule.heads) + len(rule.inputs) + len(rule.outputs):
            names = self.input_names(attrs)
            raise OpTypeError(f"operator {self.name} takes {len(names)} inputs {names}, {n} given")

    def same_as(self, other: Operator) -> bool:
        return isinstance(other, BackwardOperator) and self.forward.same_as(other.forward)


@overload
def elementwise(function: Callable[Concatenate[Any, Any, P], Any], /, **options: Any) -> Elementwise[Concatenate[Any, P]]: ...
@overload
def elementwise(function: Callable[Concatenate[Any, P], Any], /, **options: Any) -> Elementwise[P]: ...
@overload
def elementwise(*, override: bool = ..., **options: Any) -> Callable[[Callable[..., Any]], Elementwise[...]]: ...
@with_common_options
@ends_at_caller
def elementwise(function: Callable | None = None, /, *, override: bool = False, **options: Any) -> Any:
    """Make an operator of a function of scalars.

    Parameters
    ----------
    function : callable
        Inputs are positional, parameters keyword-only and typed; it returns a formula (or a tuple of formulas).  It may
        use Python's arithmetic, ``&``, ``|``, ``^`` and ``~`` of truth values, and the functions of :mod:`mxop.op.F`.
    broadcast : bool, default False
        Whether inputs of different shapes broadcast.
    out_dtype : callable, optional
        ``out_dtype(*types, **params)`` returns the type of the outputs, if it is not that of the inputs: a name, a NumPy
        type, a code, or a list.
    rule : callable, optional
        ``rule(*heads, *inputs, *outputs, **params)`` returns the gradients as formulas, if they are not the derivatives.
    differentiable : bool, default True
        False if taking the gradient is an error.
    integers : tuple of str, optional
        Inputs, such as labels, whose type may differ from the data's; they are cast to it.
    creates : bool, default False
        For random numbers: whether shape and type are the parameters `shape` and `dtype`.
    folds : bool, default False
        For a function of ``*args``: whether ``f(a, b, c)`` is ``f(f(a, b), c)``; there may then be any number of inputs.
    {common}

    Returns
    -------
    Elementwise
        The registered operator, a function of arrays and of symbols, as are ``mx.nd.<name>`` and ``mx.sym.<name>``.  In a
        formula it inserts its own formula.

    Examples
    --------
    >>> from mxop.op import elementwise
    >>> @elementwise
    ... def cube_plus(data, *, shift: float = 0.0):
    ...     \"\"\"Evaluate ``data**3 + shift``.\"\"\"
    ...     return data**3 + shift
    >>> mx.nd.cube_plus(mx.nd.array([1, 2]), shift=1).asnumpy().tolist()
    [2.0, 9.0]
    >>> cube_plus(mx.nd.array([1, 2]), shift=1).asnumpy().tolist()
    [2.0, 9.0]
    """

    @ends_at_caller
    def make(function: Callable) -> Elementwise:
        return defined(Elementwise, function, override=override, options=options)

    return make if function is None else make(function)
