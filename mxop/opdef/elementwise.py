"""The kind *elementwise*: a scalar formula, applied to each element.

Everything follows from the formula: inference, the CPU program, the CUDA text, and the backward operator, which is
elementwise again.  Imports :mod:`mxop.formula` and :mod:`.operator`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .. import dtypes
from ..errors import OpTypeError, OpValueError
from ..formula import TABLE, Backward, Expr, NeedsValue, TraceError, backward, const, input_, param, walk
from . import infer, registry
from .operator import Operator
from .params import Attrs, Scalar, Spec

_MOST_INPUTS = 256  # each takes a register of the interpreter, and there are no more


@dataclass(frozen=True)
class Formula:
    """A traced function: one expression per output, and the parameters that vary from call to call.

    Attributes
    ----------
    roots : tuple of Expr
    params : tuple of str
        Names of the numeric parameters that are leaves of the formula.
    """

    roots: tuple[Expr, ...]
    params: tuple[str, ...]

    @cached_property
    def integer(self) -> bool:
        """Whether integer data can be computed as integers."""
        return not any(
            (n.kind == "call" and TABLE[n.label].integer is None) or (n.kind in ("param", "const") and n.real)
            for n in walk(self.roots)
        )

    def compute_type(self, dtype: int) -> int:
        """Return the type in which data of `dtype` are computed."""
        if dtype in dtypes.FLOATS or self.integer:
            return dtypes.COMPUTED_AS.get(dtype, dtype)
        return dtypes.FLOAT64


class Elementwise(Operator):
    """An operator made of a scalar formula.

    Parameters
    ----------
    broadcast : bool
        Whether inputs of different shapes broadcast; otherwise they are equal.
    out_dtype : callable, optional
        ``out_dtype(*input_types, **params)`` gives the output's type where it is not the inputs' type.
    rule : callable, optional
        Formula-level gradient ``rule(g, *inputs, *outputs, **params)`` where it is not the derivative.
    """

    kind = "elementwise"

    def __init__(
        self, function, *, broadcast=False, out_dtype=None, rule=None, differentiable=True, checks=None, **options
    ):
        options.setdefault("inplace", ((0, 0),))
        super().__init__(function, **options)
        self.broadcast = broadcast
        self.out_dtype = out_dtype
        self.rule = rule
        self.checks = checks
        self._differentiable = differentiable
        self._formulas: dict[Any, Formula] = {}
        self._backwards: dict[Any, Backward] = {}
        self._by_value = False

    @property
    def has_backward_operator(self) -> bool:  # type: ignore[override]
        return self._differentiable and self._gradient is None

    @property
    def differentiable(self) -> bool:
        return self._differentiable

    # ---- the formula ----------------------------------------------------------------------------------------------------
    def static_key(self, attrs: Attrs) -> tuple:
        """Return the parameters that need a formula of their own."""
        values = attrs.values_
        if self._by_value:
            return values
        return tuple([values[i] for i in self._static]) if self._static else ()

    @cached_property
    def _static(self) -> tuple[int, ...]:
        """Positions of the parameters that are no leaves of the formula."""
        return tuple(i for i, p in enumerate(self.spec.params) if not p.numeric)

    def formula(self, attrs: Attrs, n_inputs: int) -> Formula:
        """Trace the function (once for each set of static parameters)."""
        key = (n_inputs, self.static_key(attrs))
        found = self._formulas.get(key)
        if found is None:
            try:
                found = self._trace(attrs, n_inputs)
            except NeedsValue:
                self._by_value = True
                key = (n_inputs, self.static_key(attrs))
                found = self._trace(attrs, n_inputs)
            self._formulas[key] = found
        return found

    def _trace(self, attrs: Attrs, n_inputs: int) -> Formula:
        inputs = [input_(i) for i in range(n_inputs)]
        values, names = {}, []
        for p, value in zip(self.spec.params, attrs.values_, strict=True):
            if p.numeric and not self._by_value:
                values[p.name] = param(p.name, real=p.kind is not Scalar)
                names.append(p.name)
            else:
                values[p.name] = value
        try:
            result = self.function(*inputs, **values)
        except (NeedsValue, OpTypeError, OpValueError):
            raise
        except TraceError as problem:
            raise OpTypeError(f"operator {self.name}: {problem}") from None
        roots = result if isinstance(result, (tuple, list)) else (result,)
        try:
            roots = tuple(r if isinstance(r, Expr) else const(float(r)) for r in roots)
        except (TypeError, ValueError):
            raise OpTypeError(f"operator {self.name}: its function returned {result!r}; expected a formula") from None
        return Formula(roots, tuple(names))

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return len(self.formula(attrs, self._count(attrs, n_inputs)).roots)

    def _count(self, attrs: Attrs, n_inputs: int | None) -> int:
        return n_inputs if n_inputs is not None else len(self.input_names(attrs))

    # ---- inference --------------------------------------------------------------------------------------------------------
    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        names = [*self.input_names(attrs, len(ins)), *self.output_names(attrs, len(ins))]
        if not self.broadcast:
            done = infer.same_shape(self.name, names, [*ins, *outs])
            return done[: len(ins)], done[len(ins) :]
        result = infer.broadcast_shape(self.name, names[: len(ins)], ins)
        return ins, infer.same_shape(self.name, ["the inputs together", *names[len(ins) :]], [result, *outs])[1:]

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        if self.out_dtype is None:
            return super().infer_type(attrs, ins, outs)
        result = self.out_dtype(*ins, **attrs)
        return ins, list(result) if isinstance(result, (tuple, list)) else [result] * len(outs)

    # ---- gradient ---------------------------------------------------------------------------------------------------------
    def backward_formula(self, attrs: Attrs, n_inputs: int) -> Backward:
        """Return the derivative of the formula, with the operands that it was found to need."""
        formula = self.formula(attrs, n_inputs)
        key = (n_inputs, self.static_key(attrs))
        found = self._backwards.get(key)
        if found is None:
            rule = None
            if self.rule is not None:
                values = dict(attrs)
                values.update({n: param(n, self.spec.by_name[n].kind is not Scalar) for n in formula.params})

                def rule(heads, inputs, outputs):
                    grads = self.rule(*heads, *inputs, *outputs, **values)
                    return list(grads) if isinstance(grads, (tuple, list)) else [grads]

            found = self._backwards[key] = backward(formula.roots, n_inputs, rule)
        return found

    def dependencies(self, attrs: Attrs | None = None, n_inputs: int | None = None) -> str:
        """Return what the backward formula mentions beside the head gradient: ``in``, ``out``, ``inout`` or ``none``."""
        attrs = attrs if attrs is not None else self.parse({p.name: 1 for p in self.spec.params if p.required})
        found = self.backward_formula(attrs, self._count(attrs, n_inputs))
        return ("in" if found.inputs else "") + ("out" if found.outputs else "") or "none"

    @cached_property
    def _backward(self) -> BackwardOperator:
        return BackwardOperator(self)

    def backward_operator(self) -> Operator | None:
        return self._backward if self.has_backward_operator else None

    def grad(
        self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]
    ) -> list | None:
        if not self._differentiable:
            return None
        if self._gradient is not None:  # a rule of operators, for what no formula can say: the type of a cast
            return super().grad(F, attrs, heads, inputs, outputs, needed)
        rule = self.backward_formula(attrs, len(inputs))
        wanted = tuple(i for i, g in enumerate(rule.roots) if g is not None and needed[i])
        grads: list = [None] * len(inputs)
        if not wanted:
            return grads
        operands = (
            [heads[k] for k in rule.heads] + [inputs[i] for i in rule.inputs] + [outputs[k] for k in rule.outputs]
        )
        found = F._invoke(self._backward, operands, self._backward.attrs_for(attrs, wanted, len(inputs)))
        for i, g in zip(wanted, found if isinstance(found, (list, tuple)) else [found], strict=True):
            grads[i] = F._unbroadcast(g, inputs[i]) if self.broadcast else g
        return grads


class BackwardOperator(Elementwise):
    """The derivative of an elementwise operator: an elementwise operator itself.

    Its parameters are the forward operator's, and which gradients are wanted.
    """

    def __init__(self, forward: Elementwise):
        self.forward = forward
        super().__init__(
            forward.function,
            name=registry.BACKWARD + forward.name,
            broadcast=forward.broadcast,
            is_backward=True,
            module=forward.module,
        )
        self.variadic = True
        self.arguments = ("args",)
        self._rules: dict[Any, tuple[Formula, Backward]] = {}

    @cached_property
    def spec(self) -> Spec:  # type: ignore[override]
        from .params import Param, _parse_int, _parse_shape

        forward = self.forward.spec
        extra = (
            Param(self._own_names[0], tuple, (), False, (), None, "Shape(tuple)", _parse_shape),
            Param(self._own_names[1], int, 1, False, (), None, "int", _parse_int),
        )
        return Spec(self.name, forward.params + extra)

    def attrs_for(self, attrs: Attrs, wanted: tuple[int, ...], forward_inputs: int) -> Attrs:
        """Return the parameters of the call that computes the gradients of the `wanted` inputs."""
        return Attrs((*attrs.names, *self._own_names), (*attrs.values_, wanted, forward_inputs))

    @cached_property
    def _own_names(self) -> tuple[str, str]:
        """Names of the two parameters that are not the forward operator's; they differ from order to order."""
        order = self.name.count(registry.BACKWARD)
        suffix = str(order) if order > 1 else ""
        return f"wanted{suffix}", f"forward_inputs{suffix}"

    def _rule(self, attrs: Attrs) -> tuple[Formula, Backward]:
        n = attrs.values_[-1]
        found = self._rules.get((n, self.forward.static_key(attrs)))  # the forward operator's parameters come first
        if found is None:
            self._check_forward_inputs(attrs)
            inner = Attrs(attrs.names[:-2], attrs.values_[:-2])
            found = self.forward.formula(inner, n), self.forward.backward_formula(inner, n)
            self._rules[n, self.forward.static_key(attrs)] = found
        return found

    def _check_forward_inputs(self, attrs: Attrs) -> None:
        """Raise unless the forward call can have had so many inputs; a file may say anything."""
        n = attrs.values_[-1]
        if not self.forward.variadic:
            names = self.forward.input_names(Attrs(attrs.names[:-2], attrs.values_[:-2]))
            if n != len(names):
                raise OpValueError(
                    f"operator {self.name}: {self._own_names[1]}={n}, but {self.forward.name} has {len(names)} inputs"
                )
        elif not 1 <= n <= _MOST_INPUTS:
            raise OpValueError(
                f"operator {self.name}: {self._own_names[1]}={n}; expected a number from 1 to {_MOST_INPUTS}"
            )

    def _trace(self, attrs: Attrs, n_inputs: int) -> Formula:
        formula, rule = self._rule(attrs)
        wanted = attrs.values_[-2] or tuple(i for i, g in enumerate(rule.roots) if g is not None)
        if any(i is None or not 0 <= i < len(rule.roots) for i in wanted):
            raise OpValueError(
                f"operator {self.name}: {self._own_names[0]}={wanted}; {self.forward.name} has {len(rule.roots)} inputs"
            )
        roots = []
        for i in wanted:
            g = rule.roots[i]
            roots.append(const(0) if g is None else g)
        return Formula(tuple(roots), formula.params)

    def formula(self, attrs: Attrs, n_inputs: int) -> Formula:
        self._by_value = self.forward._by_value
        return super().formula(attrs, n_inputs)

    def input_names(self, attrs: Attrs, n: int | None = None) -> tuple[str, ...]:
        rule = self._rule(attrs)[1]
        names = self.forward.arguments if not self.forward.variadic else [f"arg{i}" for i in range(attrs.values_[-1])]
        return (
            *(f"head_grad{k or ''}" for k in rule.heads),
            *(names[i] for i in rule.inputs),
            *(f"output{k or ''}" for k in rule.outputs),
        )

    def check_arity(self, attrs: Attrs, n: int) -> None:
        rule = self._rule(attrs)[1]
        if n != len(rule.heads) + len(rule.inputs) + len(rule.outputs):
            names = self.input_names(attrs)
            raise OpTypeError(f"operator {self.name} takes {len(names)} inputs {names}, {n} given")

    def same_as(self, other: Operator) -> bool:
        return isinstance(other, BackwardOperator) and self.forward.same_as(other.forward)


def elementwise(function: Callable | None = None, /, *, override: bool = False, **options: Any) -> Any:
    """Make an operator of a function of scalars.

    Parameters
    ----------
    function : callable
        Inputs are positional, parameters keyword-only and typed; it returns a formula (or a tuple of formulas).  It may
        use Python's arithmetic and the functions of :mod:`mxop.op.F`.
    name : str, optional
        Registered name; the function's name by default.
    aliases : sequence of str, optional
    broadcast : bool, default False
        Whether inputs of different shapes broadcast.
    override : bool, default False
        Replace an operator of the same name.

    Returns
    -------
    Elementwise
        The registered operator; it is callable through ``mx.nd.<name>`` and ``mx.sym.<name>``.

    Examples
    --------
    >>> import mxop as mx
    >>> from mxop.op import elementwise
    >>> @elementwise
    ... def cube_plus(data, *, shift: float = 0.0):
    ...     \"\"\"Evaluate ``data**3 + shift``.\"\"\"
    ...     return data**3 + shift
    >>> mx.nd.cube_plus(mx.nd.array([1, 2]), shift=1).asnumpy().tolist()
    [2.0, 9.0]
    """

    def make(function: Callable) -> Elementwise:
        op = Elementwise(function, **options)
        registry.register(op, override=override)
        return op

    return make if function is None else make(function)
