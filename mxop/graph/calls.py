"""How ``f(*args, **kwargs)`` calls an operator: its inputs and parameters; and how a graph is called on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..opdef import Attrs, Operator
from ..opdef.binding import bind_open
from ..opdef.operator import carrier
from ..opdef.params import NULL
from ..support.errors import OpTypeError, closest, shown
from .ir import Entry, Graph, Node


def replayed(F: Any, graph: Graph, given: Mapping[Node, Any]) -> list[Any]:
    """Call the operators of a graph one by one in the namespace `F`, with values for its variables; return its outputs.

    Arrays that depend on no input are created on the device of the values.
    """
    values: dict[Entry, Any] = {(v, 0): value for v, value in given.items()}
    place = next((str(value.context) for value in given.values() if hasattr(value, "context")), "")
    for node in graph.nodes:
        if node.op is not None:
            attrs = node.attrs
            if place and not node.inputs and attrs.get("ctx") == "":
                attrs = attrs.replaced(ctx=place)
            found = F._invoke(node.op, [values[e] for e in node.inputs], attrs)
            found = found if isinstance(found, (list, tuple)) else [found]
            values.update({(node, k): value for k, value in enumerate(found)})
    return [values[e] for e in graph.outputs]


def split_call(op: Operator, args: Sequence[Any], kwargs: Mapping[str, Any], kind: type) -> tuple[list[Any], dict[str, Any]]:
    """Separate the arguments of a call into inputs and parameters.

    Parameters
    ----------
    op : Operator
    args, kwargs
        Inputs come first, then parameters, in the order of the operator's signature.
    kind : type
        The class of inputs.

    Returns
    -------
    inputs : list
        One item per declared input, None if not given; of a variadic operator the given ones.
    params : dict
    """
    inputs, params = _split(op, args, kwargs, kind)
    return inputs, {name: value for name, value in params.items() if value is not NULL}


def _split(op: Operator, args: Sequence[Any], kwargs: Mapping[str, Any], kind: type) -> tuple[list[Any], dict[str, Any]]:
    if op.open_inputs:
        return bind_open(op, args, kwargs, kind, optional=True)
    if op.variadic:
        return _split_variadic(op, args, kwargs, kind)
    names = op.arguments
    n = len(names) - len(op.by_keyword)
    inputs: list[Any] = [None] * len(names)
    params: dict[str, Any] = {}
    if len(args) > n + len(op.spec.names):
        raise OpTypeError(f"operator {op.name} takes at most {n} inputs ({', '.join(names)}) and "
                          f"{len(op.spec.names)} parameters; {len(args)} arguments were given")  # fmt: skip
    for i, value in enumerate(args):
        if i < n:
            inputs[i] = _checked(op, names[i], value, kind)
        else:
            params[op.spec.names[i - n]] = value
    for name, value in kwargs.items():
        if name in names:
            at = names.index(name)
            if at < min(n, len(args)) and args[at] is not None:
                raise OpTypeError(f"operator {op.name}: input {name!r} is given twice")
            inputs[at] = _checked(op, name, value, kind)
        elif name in params:
            raise OpTypeError(f"operator {op.name}: parameter {name!r} is given twice")
        elif isinstance(value, kind):
            raise _no_input(op, name)
        else:
            params[name] = value
    return inputs, params


def _split_variadic(op, args, kwargs, kind):
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    named = [name for name, value in kwargs.items() if isinstance(value, kind)]
    if named:
        raise OpTypeError(f"operator {op.name} takes any number of inputs, by position; {named[0]!r} is given by name")
    inputs = [_checked(op, f"{op.arguments[0]}[{i}]", value, kind) for i, value in enumerate(args)]
    for i, value in enumerate(inputs):
        if value is None:
            raise OpTypeError(f"operator {op.name}: input {i} is None; expected a {kind.__name__}")
    return inputs, dict(kwargs)


def _checked(op: Operator, name: str, value: Any, kind: type) -> Any:
    if value is None or isinstance(value, kind):
        return value
    raise OpTypeError(f"operator {op.name}: argument {name} must be a {kind.__name__}, got {shown(value)}"
                      f"{getattr(kind, '_advice', lambda given: '')(value)}")  # fmt: skip


def _no_input(op: Operator, name: str) -> OpTypeError:
    known = ", ".join(op.arguments)
    return OpTypeError(f"operator {op.name} has no input {name!r}; its inputs are: {known}{closest(name, op.arguments)}")


def parse_with_count(op: Operator, params: dict[str, Any], n_inputs: int) -> Attrs:
    """Parse parameters; set the number of inputs of a variadic operator if it is not given."""
    count = op.num_args_param
    if op.variadic and count and count in op.spec.names and params.get(count) is None and n_inputs:
        params[count] = n_inputs
    return op.parse(params)


def active_inputs(op: Operator, attrs: Attrs, inputs: Sequence[Any]) -> tuple[tuple[str, ...], list[Any]]:
    """Return names and values of the inputs that a call with `attrs` takes; None for a missing one.

    Raises
    ------
    OpTypeError
        If an input is given that the parameters turn off.
    """
    if op.variadic:
        count = attrs[op.num_args_param] if op.num_args_param in attrs.names else None
        names = op.input_names(attrs, max(len(inputs), count or 0))
        return names, [*inputs, *[None] * (len(names) - len(inputs))]
    names = op.input_names(attrs)
    if op.open_inputs or names is op.arguments:
        return names, list(inputs)
    first = [value is not None for value in inputs]
    if first == [k < len(names) for k in range(len(first))]:  # by position, in the order of the active ones
        return names, list(inputs[: len(names)])
    given = dict(zip(op.arguments, inputs, strict=True))
    for name, value in given.items():
        if value is not None and name not in names:
            raise OpTypeError(f"operator {op.name} takes no input {name!r} with these parameters: {dict(attrs)}; "
                              f"its inputs are {', '.join(names)}")  # fmt: skip
    return names, [given[name] for name in names]


def by_kind(choice: Any, two: str, call: Callable, kind: type) -> Callable:
    """Return a function that takes arrays or numbers, such as ``maximum``.

    Parameters
    ----------
    choice : mxop.ops.binary.Choice
    two : str
        Name of the operator of two inputs.
    call : callable
        ``call(op_name, hint, inputs, params)``.
    """

    def function(lhs: Any, rhs: Any, **options: Any) -> Any:
        if isinstance(lhs, kind):
            if isinstance(rhs, kind):
                return call(two, two, [lhs, rhs], options)
            return call(choice.scalar, _hint(choice.scalar), [lhs], {"scalar": rhs, **options})
        if isinstance(rhs, kind):
            return call(choice.rscalar, _hint(choice.rscalar), [rhs], {"scalar": lhs, **options})
        by_name = carrier((lhs, rhs))
        if by_name is not None:
            return by_name.__mxop_operator__(two, (lhs, rhs), options)
        return choice.numbers(lhs, rhs)

    return function


def _hint(name: str) -> str:
    return "_" + name.replace("_", "")  # MXNet's alias for these is _MaximumScalar
