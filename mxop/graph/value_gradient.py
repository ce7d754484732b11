"""``mx.autograd.grad`` inside compiled functions: gradients are added to the graph under construction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..support.errors import OpTypeError, OpValueError
from .builder import CONTROL, Builder, Value
from .expansion import expand
from .gradient import gradients
from .ir import Graph


def _gradients(
    builder: Builder, heads: Sequence[Value], variables: Sequence[Value], head_grads: Sequence[Value | None] | None
) -> list[Value]:
    """Return the gradients of `heads` with respect to `variables`, which may be any values that the heads depend on."""
    given = [None] * len(heads) if head_grads is None else head_grads
    for what, values in (("heads", heads), ("variables", variables), ("head gradients", given)):
        for value in values:
            if not isinstance(value, Value) and not (value is None and values is given):
                raise OpTypeError(f"autograd: {what} must be arrays of the function that is compiled, got {value!r}")
    if len(given) != len(heads):
        raise OpValueError(f"autograd: {len(heads)} heads but {len(given)} head gradients")
    if builder._scopes:
        raise OpValueError("autograd.grad: the body of a loop is differentiated as a whole, and not inside")
    graph, moved = expand(Graph([h.entry for h in heads]), everything=False, specs=builder.specs)  # type: ignore[arg-type]
    wanted = [moved.get(v.entry, v.entry) for v in variables]
    found = gradients(graph.outputs, [None if g is None else g.entry for g in given], wanted, builder.specs)
    return [builder.zeros_like(v) if g is None else builder.value(g) for v, g in zip(variables, found, strict=True)]


def _function(builder: Builder) -> Callable:
    return partial(_gradients, builder)


CONTROL["_gradients"] = _function
