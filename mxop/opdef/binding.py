"""Arguments of calls whose inputs depend on the parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..support.errors import OpTypeError, closest, shown
from .operator import Operator


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOUN' else 'a'} {kind.__name__}"


def bind_open(
    op: Operator, args: Sequence[Any], kwargs: Mapping[str, Any], kind: type, optional: bool
) -> tuple[list[Any], dict[str, Any]]:
    """Separate the arguments of a call into inputs and parameters, if its inputs depend on its parameters.

    Parameters
    ----------
    kind : type
        The class of inputs; all other arguments are parameters.
    optional : bool
        Whether inputs may be missing, as when a symbol is made; they are None.

    Returns
    -------
    inputs : list
    params : dict
    """
    named = {name: value for name, value in kwargs.items() if isinstance(value, kind)}
    params = {name: value for name, value in kwargs.items() if name not in named}
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    names = op.input_names(op.parse(params), len(args))
    takes = f"operator {op.name} takes {len(names)} input{'s' if len(names) != 1 else ''} ({', '.join(names)})"
    for name, value in zip(names, args):
        if value is not None and not isinstance(value, kind):
            raise OpTypeError(f"operator {op.name}: argument {name} must be {_a(kind)}, got {shown(value)}")
    if len(args) > len(names):
        raise OpTypeError(f"{takes} with these parameters; {len(args)} were given")
    inputs: list[Any] = [*args, *[None] * (len(names) - len(args))]
    for name, value in named.items():
        if name not in names:
            raise OpTypeError(f"operator {op.name} has no input {name!r} with these parameters; its inputs are "
                              f"{', '.join(names)}{closest(name, names)}")  # fmt: skip
        at = names.index(name)
        if inputs[at] is not None:
            raise OpTypeError(f"operator {op.name}: input {name!r} is given twice")
        inputs[at] = value
    missing = [name for name, value in zip(names, inputs, strict=True) if value is None]
    if missing and not optional:
        raise OpTypeError(f"{takes}; missing: {', '.join(missing)}")
    return inputs, params
