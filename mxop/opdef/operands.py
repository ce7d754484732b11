"""Elementwise operators with numeric parameters as inputs, so that a graph holds for any values of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ..formula import input_, leaves, param, substitute, walk
from ..support import dtypes
from ..support.memo import keep
from .elementwise import Elementwise, Formula
from .operator import on_change
from .params import Attrs, Spec


class WithOperands(Elementwise):
    """An elementwise operator with some of its parameters as further inputs, arrays of one element.

    Parameters
    ----------
    inner : Elementwise
    names : tuple of str
        The parameters that are inputs.
    """

    def __init__(self, inner: Elementwise, names: tuple[str, ...]):
        self.inner, self.names = inner, names
        super().__init__(
            inner.function, name=f"{inner.name}_with_{'_'.join(names)}", broadcast=True, creates=inner.creates,
            rule=None if inner.rule is None else self._rule_of_inner, differentiable=inner.differentiable, module=inner.module,
        )  # fmt: skip
        self.arguments = (*inner.arguments, *names)

    @cached_property
    def spec(self) -> Spec:  # type: ignore[override]
        inner = self.inner.spec
        rest = tuple(p for p in inner.params if p.name not in self.names)
        return Spec(self.name, rest, tuple(n for n in inner.in_attrs if n not in self.names))

    def _inner_attrs(self, attrs: Attrs) -> Attrs:
        """Return the attributes of the inner call, with placeholders for inputs: the function does not read their values."""
        names = self.inner.spec.in_attrs
        return Attrs(names, tuple([attrs[n] if n in attrs else self.inner.spec.stand_in(n) for n in names]))

    def _trace(self, attrs: Attrs, n_inputs: int, by_value: Sequence[str] = ()) -> Formula:
        n = n_inputs - len(self.names)
        formula = self.inner.formula(self._inner_attrs(attrs), n)
        numbers = {param(name, self.inner.spec.by_name[name].real): input_(n + k) for k, name in enumerate(self.names)}
        roots = tuple(substitute(formula.roots, numbers))
        return Formula(roots, tuple(p for p in formula.params if p not in self.names))

    def _path(self, attrs: Attrs, n_inputs: int) -> tuple[tuple, list[str]]:
        return self.inner._path(self._inner_attrs(attrs), n_inputs - len(self.names))

    def _rule_of_inner(self, *operands: Any, **values: Any) -> list:
        """Evaluate the gradient rule of the inner operator, whose parameters are arrays here."""
        n = len(self.inner.arguments)
        heads = (len(operands) - len(self.arguments)) // 2  # one for each output
        inputs, rest = operands[heads : heads + n], operands[heads + n :]
        numbers = dict(zip(self.names, rest, strict=False))
        found = self.inner.rule(*operands[:heads], *inputs, *rest[len(self.names) :], **values, **numbers)
        return [*(found if isinstance(found, (tuple, list)) else [found]), *([None] * len(self.names))]

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        n = len(ins) - len(self.names)
        found, outs = self.inner.infer_shape(self._inner_attrs(attrs), list(ins[:n]), outs)
        return [*found, *([()] * len(self.names))], outs

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        n = len(ins) - len(self.names)
        found, outs = self.inner.infer_type(self._inner_attrs(attrs), list(ins[:n]), outs)
        return [*found, *(outs[:1] * len(self.names))], outs

    def same_as(self, other: Any) -> bool:
        return isinstance(other, WithOperands) and self.names == other.names and self.inner.same_as(other.inner)


_made: dict[tuple, WithOperands] = {}
on_change(lambda op: _made.clear())


def with_operands(op: Elementwise, names: tuple[str, ...]) -> WithOperands:
    """Return an operator with some of its parameters as inputs; the same object each time."""
    found = _made.get((op, names))
    return keep(_made, (op, names), WithOperands(op, names)) if found is None else found


def may_be_operands(op: Elementwise, attrs: Attrs, n_inputs: int, types: Sequence[int]) -> tuple[str, ...]:
    """Return the parameters of a call that can be inputs, of the data's type, which is float32, float64 or unknown.

    Excluded are parameters whose values the function reads, and those that select another formula, such as exponents.
    """
    if op.out_dtype is not None or op.integers or op.variadic or op._active_inputs is not None:
        return ()
    formula = op.formula(attrs, n_inputs)
    data = {t for k, t in enumerate(types) if k not in formula.keys} or {attrs.get("dtype", dtypes.UNKNOWN)}
    if len(data) != 1 or not data <= {dtypes.FLOAT32, dtypes.FLOAT64, dtypes.UNKNOWN}:
        return ()
    exponents = {leaf for n in walk(formula.roots) if n.label == "pow" for leaf in leaves(n.args)}
    return tuple(p for p in formula.params if param(p, op.spec.by_name[p].real) not in exponents)
