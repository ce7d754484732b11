"""Symbols as ``symbol.json``, and back."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from ..graph.control_files import strings
from ..graph.ir import Entry, Graph, Node, describe, variable
from ..graph.loops import Loop
from ..graph.rewrite import rebuilt, rewrite
from ..opdef import AnyValue, infer, plugins, registry
from ..opdef.absent import Absent
from ..opdef.params import Bad, parse_shape
from ..support import limits
from ..support.errors import MXNetError, OpLookupError, OpTypeError, OpValueError
from ..support.shape_mode import numpy_shape
from .absent import PACKAGES, absent_operators, needs, packages_of, read_outputs
from .compose import is_attribute
from .json_format import GraphData, NodeData, dumps, loads

#: Casts that automatic mixed precision inserts; files leave them out, but as outputs, unless asked.
_AMP = ("amp_cast", "amp_multicast")


def to_json(entries: tuple[Entry, ...], remove_amp_cast: bool = True) -> str:
    """Return the text of a graph."""
    graph = Graph(entries)
    if remove_amp_cast:
        _, moved = rewrite(graph, lambda node: list(node.inputs) if node.op.name in _AMP else None)
        kept = {n: rebuilt(n, moved) for n, _ in entries if n.op is not None and n.op.name in _AMP}
        graph = Graph((kept[n], k) if n in kept else moved.get((n, k), (n, k)) for n, k in entries)
    data = _data(graph)
    data.attrs = {"is_np_shape": ["int", 1]} if numpy_shape() else {}
    if packages := sorted(_packages(graph)):
        data.attrs[PACKAGES] = ["list_str", packages]
    return dumps(data)


def _packages(graph: Graph) -> set[str]:
    """Return what is needed for the operators of a graph, and of those inside it."""
    found = set()
    for op in {node.op for node in graph.nodes if node.op is not None}:
        package = op.package if isinstance(op, Absent) else plugins.needed(op.module)
        found |= set() if package is None else {f"{op.name}={package}"}
        found = found.union(*map(_packages, op.bodies))
    return found


def _data(graph: Graph) -> GraphData:
    """Return a graph, or that inside an operator, as records."""
    nodes = graph.nodes
    at = {node: i for i, node in enumerate(nodes)}
    writes: dict[Node, int] = {}  # how often each auxiliary state was written so far
    data = []
    row_ptr, told = [0], True
    for node in nodes:
        for i in node.mutated_inputs():
            state = node.inputs[i][0]
            writes[state] = writes.get(state, 0) + 1
        inputs = [(at[n], k, writes.get(n, 0)) for n, k in node.inputs]
        op = "null" if node.op is None else node.op.name
        bodies = [] if node.op is None else [_data(body) for body in node.op.bodies]
        data.append(NodeData(op, node.name, _sorted(node), inputs, [at[n] for n in node.control], bodies))
        if isinstance(node.op, Absent):
            _as_written(data[-1], node.op.written)
            told = told and node.op.counted
        states = node.op.states(node.attrs) if node.op is not None else ()  # their new values are no outputs there
        row_ptr.append(row_ptr[-1] + node.n_outputs - len(states))
    variables = [i for i, node in enumerate(nodes) if node.op is None]
    heads = [(at[n], k, 0) for n, k in graph.outputs]
    return GraphData(data, variables, heads, row_ptr if told else [])


def _as_written(item: NodeData, before: NodeData) -> None:
    """Give a node what its file had and the graph does not hold: the versions of its inputs, and subgraphs."""
    item.subgraphs = before.subgraphs
    if len(item.inputs) == len(before.inputs):
        versions = (version for _, _, version in before.inputs)
        item.inputs = [(n, k, version) for (n, k, _), version in zip(item.inputs, versions, strict=True)]


def _sorted(node: Node) -> dict[str, str]:
    text = node.text()
    if isinstance(node.op, Loop):
        text = strings(node.op)
    for p in node.op.spec.params if node.op is not None else ():
        if p.kind is AnyValue and p.name in text and node.attrs[p.name] is not None:
            raise OpTypeError(f"a symbol with {describe(node)} cannot be written: its parameter {p.name!r} is a Python object")
    return dict(sorted(text.items()))


def from_json(text: str | bytes, allow_missing: bool = False) -> tuple[Entry, ...]:
    """Return the entries that a text describes.

    Parameters
    ----------
    allow_missing : bool
        Put an :class:`~mxop.opdef.absent.Absent` in the place of each operator that is not registered.

    Raises
    ------
    MXNetError
        For a text that is no graph, operators that are not registered, or parameters that they do not take.
    """
    if _budget.outputs is not None:  # a graph inside the one that is being read
        return _entries(text, allow_missing)
    _budget.outputs = limits.graph_outputs(len(text))
    try:
        return _entries(text, allow_missing)
    finally:
        _budget.outputs = None


class _Budget(threading.local):
    """How many outputs the nodes of what is being read may still have."""

    outputs: int | None = None


_budget = _Budget()


def _entries(text: str | bytes, allow_missing: bool) -> tuple[Entry, ...]:
    data = loads(text, _input_names)
    absent = absent_operators(data)
    packages = packages_of(data)
    if absent and not allow_missing:
        raise needs(absent, packages)
    return _read(
        data,
        {name: packages.get(name) for name in absent},
        numpy_shape() and data.attrs.get("is_np_shape", ["int", 0])[1] != 1,
    )


def _read(data: GraphData, absent: Mapping[str, str | None], legacy: bool) -> tuple[Entry, ...]:
    """Return the entries of a graph, or of that inside a node."""
    visible = read_outputs(data)
    nodes: list[Node] = []
    for i, item in enumerate(data.nodes):
        try:
            nodes.append(
                _absent(data, i, visible[i], nodes, absent[item.op])
                if item.op in absent
                else _node(item, nodes, legacy, absent)
            )
            _budget.outputs -= nodes[-1].n_outputs
            if _budget.outputs < 0:
                raise limits.too_many("the graph up to this node", "more outputs than its text explains")
        except MXNetError as problem:
            raise type(problem)(f"symbol.json, node {i} ({item.name!r}): {problem}") from None
    entries = tuple((nodes[n], k) for n, k, _ in data.heads)
    for node, k in entries:
        if k >= node.n_outputs:
            raise OpValueError(f"symbol.json: a head asks for output {k} of {node.name!r}, which has {node.n_outputs}")
    return entries


def _node(item: NodeData, nodes: list[Node], legacy: bool, absent: Mapping[str, str | None]) -> Node:
    if item.op == "null":
        return variable(item.name, _in_numpy_words(item.attrs, ["__shape__"]) if legacy else item.attrs)
    op = registry.get(item.op)
    if legacy and op.zero_is_unknown:
        item.attrs = _in_numpy_words(item.attrs, op.zero_is_unknown)
    attrs = op.parse({k: v for k, v in item.attrs.items() if not is_attribute(op, k)})
    if hasattr(op, "of"):
        op = op.of(attrs, [Graph(_read(body, absent, legacy)) for body in item.subgraphs])
    elif item.subgraphs:
        raise OpLookupError(f"operator {item.op} has {len(item.subgraphs)} subgraphs, and takes none")
    inputs = tuple((nodes[n], k) for n, k, _ in item.inputs)
    for source, k in inputs:
        if k >= source.n_outputs:
            raise OpValueError(f"it reads output {k} of {source.name!r}, which has {source.n_outputs}")
    op.check_arity(attrs, len(inputs))
    return Node(op, attrs, inputs, item.name, dict(item.attrs), control=tuple(nodes[n] for n in item.control_deps))


def _absent(data: GraphData, i: int, n_visible: int, nodes: list[Node], package: str | None) -> Node:
    """Return what stands for a call of an operator that is not registered."""
    item, rows = data.nodes[i], data.node_row_ptr
    n = rows[i + 1] - rows[i] if rows else None
    inputs = tuple((nodes[k], output) for k, output, _ in item.inputs)
    control = tuple(nodes[k] for k in item.control_deps)
    op = Absent(item.op, n, n_visible, item, package)
    return Node(op, op.parse({}), inputs, item.name, dict(item.attrs), control=control)


def _in_numpy_words(strings: dict[str, str], keys: Sequence[str]) -> dict[str, str]:
    """Return the strings of a node with shapes as ``np_shape`` writes them: an unknown size is -1, an unknown rank None."""
    found = dict(strings)
    for key in [k for k in keys if k in found]:
        try:
            found[key] = str(infer.to_legacy(infer.from_legacy(parse_shape(found[key])), True))
        except Bad:
            continue  # whoever reads it says what is wrong
    return found


def _input_names(op_name: str, strings: dict[str, str]) -> tuple[str, ...]:
    op = registry.find(op_name)
    if op is None or op.variadic:
        return ()
    try:
        return tuple(op.input_names(op.parse({k: v for k, v in strings.items() if k in op.spec.names})))
    except MXNetError:
        return ()
