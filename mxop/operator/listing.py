"""What is registered, as MXNet lists it."""

from __future__ import annotations

import inspect
from typing import NamedTuple

from ..opdef import docs, registry
from . import custom_op


class OperatorArguments(NamedTuple):
    """The arguments of an operator: how many, their names, and their types as MXNet's documentation writes them."""

    narg: int
    names: list[str]
    types: list[str]


def get_all_registered_operators() -> list[str]:
    """Return the names of all operators, hidden ones and those of :func:`mxop.operator.register` among them.

    Examples
    --------
    >>> "Custom" in mx.operator.get_all_registered_operators()
    True
    """
    return sorted({*registry.names(), *custom_op.registered()})


def get_all_registered_operators_grouped() -> dict[str, list[str]]:
    """Return for each operator its names: aliases of one operator are together.

    Examples
    --------
    >>> mx.operator.get_all_registered_operators_grouped()["elemwise_add"][:2]
    ['elemwise_add', '_Plus']
    """
    found = {op.name: [op.name, *op.aliases] for op in registry.operators()}
    return found | {name: [name] for name in custom_op.registered() if name not in found}


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """Return the arguments of an operator, inputs first.

    Raises
    ------
    OpLookupError
        For a name that is not registered.

    Examples
    --------
    >>> mx.operator.get_operator_arguments("quadratic").names
    ['data', 'a', 'b', 'c']
    """
    if registry.find(op_name) is None and op_name in custom_op.registered():
        return _of_custom(op_name)
    op = registry.get(op_name)
    signature = docs.signature(op)
    taken = {p.name for p in op.spec.params}
    own = ("out", "name", "kwargs", *taken)
    inputs = [n for n in signature.parameters if n not in own]
    kind = "NDArray-or-Symbol[]" if op.variadic or op.open_inputs else "NDArray-or-Symbol"
    params = {p.name: p.describe() for p in op.spec.params}
    return OperatorArguments(len(inputs) + len(params), [*inputs, *params], [kind] * len(inputs) + list(params.values()))


def _of_custom(op_type: str) -> OperatorArguments:
    """Return inputs and parameters of a class registered by the user."""
    prop = custom_op.prop_class(op_type)
    params = [p for p in inspect.signature(prop).parameters.values() if p.kind is not p.VAR_KEYWORD]
    inputs: list[str] = []
    if all(p.default is not p.empty for p in params):  # else the inputs may follow from what is required
        made = prop()
        inputs = [*made.list_arguments(), *made.list_auxiliary_states()]
    described = [
        "string, required" if p.default is p.empty else f"string, optional, default={str(p.default)!r}" for p in params
    ]
    names = inputs + [p.name for p in params]
    return OperatorArguments(len(names), names, ["NDArray-or-Symbol"] * len(inputs) + described)
