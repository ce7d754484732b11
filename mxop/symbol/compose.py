"""Making nodes: the call of an operator on symbols, and the composition of a symbol with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..graph.calls import active_inputs, parse_with_count
from ..graph.ir import HIDDEN_KEYS, Entry, Graph, Node, caller, variable
from ..graph.ordering import current, later
from ..graph.rewrite import Moved, rebuilt
from ..opdef import Attrs, Operator
from ..opdef.params import DType, Param, to_string
from ..support import attribute
from ..support import name as naming
from ..support.errors import OpTypeError, OpValueError, closest
from .json_format import _INITIALIZERS as INITIALIZERS


def hidden(key: str) -> bool:
    """Return whether an attribute is for the framework: ``__init__``, ``lr_mult``..."""
    return key in HIDDEN_KEYS or (key.startswith("__") and key.endswith("__"))


def is_attribute(op: Operator, key: str) -> bool:
    """Return whether a string of a node is an attribute rather than a parameter.

    All are where the operator has no parameters, as MXNet's scopes and files have them.
    """
    spec = op.spec
    return key not in spec.by_name and (hidden(key) or not (spec.params or spec.takes_others))


def marked(attrs: Mapping[str, str]) -> dict[str, str]:
    """Return attributes under the keys that MXNet stores: ``lr_mult`` is ``__lr_mult__``."""
    return {f"__{k}__" if k in HIDDEN_KEYS else k: v for k, v in attrs.items()}


def listed(strings: Mapping[str, str]) -> dict[str, str]:
    """Return attributes as MXNet lists them: ``__lr_mult__`` under both its names."""
    result = dict(strings)
    for key in HIDDEN_KEYS:
        if f"__{key}__" in strings:
            result[key] = strings[f"__{key}__"]
    return result


def make_node(
    op: Operator, hint: str, inputs: Sequence[Entry | None], given: Mapping[str, Any], name: str | None = None,
    attr: dict[str, str] | None = None,
) -> Node:  # fmt: skip
    """Add a call of an operator; inputs that are None become new variables.

    Parameters
    ----------
    op : Operator
    hint : str
        What the node is called, with a number, when it has no name.
    inputs : sequence of (Node, int) or None
        One per declared input.
    given : dict
        Parameters, and attributes such as ``__lr_mult__``.
    name : str, optional
    attr : dict of str to str, optional
        Attributes.
    """
    around = attribute.current().get(attr)
    given = {**around, **given}
    keys = [k for k in given if hidden(k) or (k in around and is_attribute(op, k))]
    # MXNet takes ``lr_mult=2`` in a call, though attributes are strings elsewhere
    attributes = {k: str(+v if isinstance(v, bool) else v) for k, v in ((k, given.pop(k)) for k in keys)}
    if name is not None and not isinstance(name, str):
        raise OpTypeError(f"operator {op.name}: name={name!r} is not a string")
    attrs = parse_with_count(op, given, len(inputs) if op.variadic else 0)
    names, inputs = active_inputs(op, attrs, inputs)
    op.check_arity(attrs, len(inputs))
    name = naming.current().get(name, hint)
    strings = {**as_strings(op, attrs, given), **marked(attributes)}
    source = caller()
    starts = INITIALIZERS.get(op.name, {})  # by position
    entries = []
    for at, (argument, entry) in enumerate(zip(names, inputs, strict=True)):
        if entry is None:
            entry = variable(f"{name}_{argument}", strings, source), 0
        if at in starts and entry[0].op is None and "__init__" not in entry[0].strings:
            entry[0].strings = {**entry[0].strings, "__init__": starts[at]}
        entries.append(entry)
    node = Node(op, attrs, tuple(entries), name, strings, source)
    return later(node, current()) if current() else node


def as_strings(op: Operator, attrs: Attrs, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters that were given, as MXNet's JSON holds them: as written where that is possible."""
    result = {}
    for key, value in given.items():
        if isinstance(value, str):
            result[key] = str.__str__(value)  # not an enumeration's own text
        elif key not in op.spec.by_name:  # an operator from outside takes any parameters, one without any ignores them
            result[key] = attrs.get(key, str(value))
        else:
            result[key] = _as_written(op.spec.by_name[key], value, attrs[key])
    return result


def _as_written(param: Param, given: Any, value: Any) -> str:
    """Return the text of a parameter: a number as it was given, if it is read as the same value again; types have names."""
    with suppress(ValueError):  # no such text, or more digits than Python writes
        if type(given) in (int, float) and param.kind is not DType and param.parse(str(given)) == value:
            return str(given)
    return to_string(param, value)


def outputs_of(node: Node) -> tuple[Entry, ...]:
    """Return the visible outputs of a node."""
    return tuple((node, k) for k in range(node.visible_outputs))


def compose(entries: tuple[Entry, ...], replace: Mapping[str, Entry], name: str | None) -> tuple[Entry, ...]:
    """Exchange variables, found by name, for other entries; nodes above them are made anew.

    Raises
    ------
    OpValueError
        For a name that is no argument.
    """
    graph = Graph(entries)
    known = [n.name for n in graph.variables]
    for key in replace:
        if key not in known:
            raise OpValueError(f"composition: argument name {key!r} not found{closest(key, known)}; candidate arguments: "
                               f"{', '.join(known)}")  # fmt: skip
    moved: Moved = {}
    for node in graph.nodes:
        if node.op is None:
            if node.name in replace:
                moved[node, 0] = replace[node.name]
            continue
        new = rebuilt(node, moved)
        if new is not node:
            for k in range(node.n_outputs):
                moved[node, k] = (new, k)
    entries = tuple(moved.get(e, e) for e in entries)
    return entries if name is None else _renamed(entries, name)


def _renamed(entries: tuple[Entry, ...], name: str) -> tuple[Entry, ...]:
    head = entries[0][0]
    if head.op is None or any(node is not head for node, _ in entries):
        return entries
    new = head.replaced(name=name)
    return tuple((new, k) for _, k in entries)


def copied(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return the same entries over new nodes, so that attributes set on the copy stay there."""
    made: dict[Node, Node] = {}
    for node in Graph(entries).nodes:
        strings = None if node.strings is None else dict(node.strings)
        inputs = tuple((made[n], k) for n, k in node.inputs)
        made[node] = node.replaced(inputs, strings=strings, control=tuple(made[n] for n in node.control))
    return tuple((made[n], k) for n, k in entries)
