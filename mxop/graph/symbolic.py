"""Numeric parameters as inputs of a graph: formulas read them from arrays, so that a plan holds for any values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..opdef import Attrs, Composite, Elementwise, Kernel, Operator, Reduction
from ..opdef.operands import may_be_operands, with_operands
from ..opdef.symbolic import SymbolicNumber
from ..support import dtypes
from .ir import Entry, Node, variable


def has_numbers(attrs: Attrs) -> bool:
    """Return whether a parameter of a call is symbolic."""
    return SymbolicNumber in map(type, attrs.values_)


def numbers_as_inputs(op: Operator, inputs: list[Entry], attrs: Attrs, specs: Any) -> tuple[Operator, list[Entry], Attrs]:
    """Return a call whose symbolic parameters are inputs, as far as its operator allows.

    Composites keep them, since their functions can use them; kernels do until they are completed.  `specs` are those of the
    graph under construction, None if it is made for inference only.
    """
    if isinstance(op, (Composite, Kernel, Reduction)):
        return op, inputs, attrs
    numbers = {n: v for n, v in zip(attrs.names, attrs.values_, strict=True) if type(v) is SymbolicNumber}
    if not isinstance(op, Elementwise):
        return op, inputs, attrs.replaced(**{n: v.read() for n, v in numbers.items()})
    types = [dtypes.UNKNOWN if specs is None else specs(e)[1] for e in inputs]
    may = may_be_operands(op, attrs, len(inputs), types)
    taken = tuple(n for n in numbers if n in may)
    if not taken:
        return op, inputs, attrs
    found = with_operands(op, taken)
    rest = Attrs(found.spec.in_attrs, tuple([attrs[n] for n in found.spec.in_attrs]))
    code = _data_type(op, attrs, types)
    return found, [*inputs, *((_input_of(numbers[n], code), 0) for n in taken)], rest


def _data_type(op: Elementwise, attrs: Attrs, types: Sequence[int]) -> int:
    keys = op.formula(attrs, len(types)).keys
    return next((t for k, t in enumerate(types) if k not in keys), attrs.get("dtype", dtypes.UNKNOWN))


def _input_of(number: SymbolicNumber, code: int) -> Node:
    """Return the variable of a number in a type."""
    if code == dtypes.UNKNOWN:
        return variable("number")
    found = number.trace.inputs.get((number.text, code))
    if found is None:
        if number.trace.complete:
            raise RuntimeError("a number became an input after its graph was made")
        found = number.trace.inputs[number.text, code] = variable(repr(number)), number
    return found[0]


__all__ = ["has_numbers", "numbers_as_inputs"]
