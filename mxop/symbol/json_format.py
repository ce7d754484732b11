"""Read and write MXNet's ``symbol.json``, the text of ``Symbol.tojson``.

This module knows the text and nothing of operators: it turns the text into plain records (`GraphData`), and back into
the very characters that MXNet 1.9.1 writes. Whether an operator exists, takes these parameters or has that many outputs
is for the symbol that is made from the records.

Files of every MXNet from 0.8 on are read. What changed since is upgraded as MXNet does it: the names of keys, entries
of two numbers instead of three, attributes such as ``lr_mult`` that are ``__lr_mult__`` today, auxiliary states that
were not inputs yet, initializers of those states, and ``argmax(axis=-1)``.

A file is not trusted: every type, index and reference is checked, and what is wrong raises `MXNetError` with the node,
the field, what was found there and what was expected.
"""

from __future__ import annotations

import json
import reprlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from mxop.support.errors import MXNetError

VERSION = 10901  # of the MXNet whose files these are: 10000 * major + 100 * minor + patch
_FIRST_VERSION = 800  # files did not name a version then

# Attributes for the framework rather than the operator. Before they were marked by underscores, they stood among the
# parameters, and one for an input had the name of the input in front: weight_lr_mult.
_HIDDEN_KEYS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")

# The operators that had auxiliary states when those were not among the inputs in a file.
_BATCH_NORM_INPUTS = ("data", "gamma", "beta", "moving_mean", "moving_var")
_INPUT_NAMES = {
    "BatchNorm": _BATCH_NORM_INPUTS,
    "BatchNorm_v1": _BATCH_NORM_INPUTS,
    "CuDNNBatchNorm": _BATCH_NORM_INPUTS,
    "IdentityAttachKLSparseReg": ("data", "moving_avg"),
}

# What an operator says on composition about the initial values of a variable, by operator and position of the input.
_ZERO, _ONE, _QUARTER = '["zero", {}]', '["one", {}]', '["Constant", {"value": 0.25}]'
_BILINEAR = '["bilinear", {}]'
_INITIALIZERS = {
    "BatchNorm": {3: _ZERO, 4: _ONE}, "BatchNorm_v1": {3: _ZERO, 4: _ONE}, "CuDNNBatchNorm": {3: _ZERO, 4: _ONE},
    "_contrib_BatchNormWithReLU": {3: _ZERO, 4: _ONE}, "_contrib_SyncBatchNorm": {3: _ZERO, 4: _ONE},
    "IdentityAttachKLSparseReg": {1: _ZERO}, "LeakyReLU": {1: _QUARTER}, "UpSampling": {1: _BILINEAR},
}  # fmt: skip

_MAX_INDEX = 2**31 - 1
_MAX_SUBGRAPH_DEPTH = 32
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})

Entry = tuple[int, int, int]
InputNames = Callable[[str, dict[str, str]], Sequence[str]]


@dataclass
class NodeData:
    """One node of a graph.

    Attributes
    ----------
    op : str
        The registered name of the operator, or ``'null'`` for a variable.
    name : str
    attrs : dict of str to str
        Parameters and attributes, as text.
    inputs : list of (node, output, version)
        The version counts how often an auxiliary state was written before; it has no effect.
    control_deps : list of int
        Nodes that run before this one without being inputs.
    subgraphs : list of GraphData
        The bodies of ``_foreach``, ``_while_loop`` and ``_cond``.
    """

    op: str
    name: str
    attrs: dict[str, str] = field(default_factory=dict)
    inputs: list[Entry] = field(default_factory=list)
    control_deps: list[int] = field(default_factory=list)
    subgraphs: list[GraphData] = field(default_factory=list)


@dataclass
class GraphData:
    """A graph as ``symbol.json`` has it.

    Attributes
    ----------
    nodes : list of NodeData
        Every node after its inputs.
    arg_nodes : list of int
        The variables, auxiliary states among them.
    heads : list of (node, output, version)
        The outputs of the graph.
    node_row_ptr : list of int
        The number of outputs of all nodes before each node, and at last of all nodes. It is implied by the operators,
        and may be empty: then it is not written.
    attrs : dict
        Attributes of the graph, each a list of a type name and a value: ``{'mxnet_version': ['int', 10901]}``.
    """

    nodes: list[NodeData]
    arg_nodes: list[int]
    heads: list[Entry]
    node_row_ptr: list[int] = field(default_factory=list)
    attrs: dict[str, list] = field(default_factory=dict)


def loads(text: str | bytes, input_names: InputNames | None = None) -> GraphData:
    """Read a ``symbol.json``, upgrading it to the present form if it is from an older MXNet.

    Parameters
    ----------
    text : str or bytes
        The file. Bytes are taken as UTF-8.
    input_names : callable, optional
        ``input_names(op, attrs)`` returns the names of all inputs of an operator, auxiliary states included, or nothing
        if it does not know. Two upgrades need them: inputs that a file from before 0.9 leaves out, and attributes such
        as ``weight_lr_mult`` that belong to an input. Without it only ``BatchNorm`` and its like get their missing
        states, and an input is known by its variable having the usual name.

    Returns
    -------
    GraphData
        ``node_row_ptr`` is empty if it was missing or does not fit the nodes; MXNet does not look at it either.

    Raises
    ------
    MXNetError
        If the text is not a valid graph.
    """
    graph = _graph(_parse_json(text), "symbol.json", depth=0)
    _check(graph)
    version = graph.attrs.get("mxnet_version", ["int", _FIRST_VERSION])[1]
    if version < VERSION:
        _upgrade(graph, version, input_names)
        graph.attrs = dict(graph.attrs, mxnet_version=["int", VERSION])
    return graph


def dumps(graph: GraphData) -> str:
    """Return the text of a graph, as MXNet 1.9.1 writes it.

    Parameters
    ----------
    graph : GraphData
        If its attributes name no version of MXNet, 1.9.1 is written.

    Returns
    -------
    str

    Raises
    ------
    MXNetError
        If the graph is not valid.
    """
    _check(graph)
    attrs = graph.attrs if "mxnet_version" in graph.attrs else dict(graph.attrs, mxnet_version=["int", VERSION])
    return _graph_text(graph, attrs, 0)


# ---- reading: JSON -> records, with the type of everything checked


def _parse_json(text: str | bytes):
    def unique(pairs):
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise MXNetError(f"invalid symbol.json: the key {reprlib.repr(twice)} occurs twice in one object")
        return found

    def refuse(constant):
        raise MXNetError(f"invalid symbol.json: found {constant}, which is not JSON")

    try:
        if isinstance(text, (bytes, bytearray, memoryview)):
            text = str(text, "utf-8-sig")
        # strict=False: MXNet writes control characters other than newline and tab as they are.
        return json.loads(text, strict=False, object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError:
        raise MXNetError("invalid symbol.json: it is nested too deeply") from None
    except ValueError as error:  # bad JSON, bad UTF-8, or an integer of thousands of digits
        hint = "; mx.nd.load reads .params files" if text[:2] in (b"\x12\x01", "\x12\x01") else ""
        raise MXNetError(f"invalid symbol.json: {error}{hint}") from None


def _fail(where: str, found, expected: str):
    # reprlib: what was found may be of any size, and nested too deeply for repr.
    raise MXNetError(f"invalid {where}: found {reprlib.repr(found)}, expected {expected}")


def _typed(value, kind: type, where: str, expected: str):
    if type(value) is not kind:  # not isinstance: JSON's true is no integer
        _fail(where, value, expected)
    return value


def _text(value, where: str) -> str:
    _typed(value, str, where, "a string")
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can express and no file can hold
        _fail(where, value, "a string that UTF-8 can represent")
    return value


def _index(value, where: str) -> int:
    if type(value) is not int or not 0 <= value <= _MAX_INDEX:
        _fail(where, value, f"an integer from 0 to {_MAX_INDEX}")
    return value


def _indices(value, where: str) -> list[int]:
    items = _typed(value, list, where, "a list of integers")
    return [_index(item, f"{where}[{position}]") for position, item in enumerate(items)]


def _entries(value, where: str) -> list[Entry]:
    entries = []
    for position, item in enumerate(_typed(value, list, where, "a list of [node, output, version]")):
        if type(item) not in (list, tuple) or len(item) not in (2, 3):
            _fail(f"{where}[{position}]", item, "[node, output] or [node, output, version]")
        node, output, version = (_index(number, f"{where}[{position}]") for number in (*item, 0)[:3])
        entries.append((node, output, version))
    return entries


def _strings(value, where: str) -> dict[str, str]:
    _typed(value, dict, where, "an object")
    for key, item in value.items():
        _text(key, f"{where}, a key")
        _text(item, f"{where}[{key!r}]")
    return dict(value)


def _fields(value, where: str, required: set[str], optional: set[str]) -> dict:
    _typed(value, dict, where, "an object")
    missing, unknown = required - value.keys(), value.keys() - required - optional
    if missing:
        _fail(where, sorted(value), f"the field {min(missing)!r} too")
    if unknown:
        _fail(where, min(unknown), f"no field but {', '.join(sorted(required | optional))}")
    return value


def _graph(value, where: str, depth: int) -> GraphData:
    if depth > _MAX_SUBGRAPH_DEPTH:
        _fail(where, f"subgraphs nested {depth} deep", f"at most {_MAX_SUBGRAPH_DEPTH}")
    fields = _fields(value, where, {"nodes", "arg_nodes", "heads"}, {"node_row_ptr", "attrs"})
    nodes = _typed(fields["nodes"], list, f"{where}, field 'nodes'", "a list")
    graph = GraphData(
        nodes=[_node(node, f"{where}, node {index}", depth) for index, node in enumerate(nodes)],
        arg_nodes=_indices(fields["arg_nodes"], f"{where}, field 'arg_nodes'"),
        heads=_entries(fields["heads"], f"{where}, field 'heads'"),
        attrs=_typed(fields.get("attrs", {}), dict, f"{where}, field 'attrs'", "an object"),
    )
    row_ptr = _indices(fields.get("node_row_ptr", []), f"{where}, field 'node_row_ptr'")
    if _fits(row_ptr, graph):
        graph.node_row_ptr = row_ptr
    return graph


def _fits(row_ptr: list[int], graph: GraphData) -> bool:
    rising = all(left <= right for left, right in pairwise(row_ptr))
    return len(row_ptr) == len(graph.nodes) + 1 and row_ptr[0] == 0 and rising


def _node(value, where: str, depth: int) -> NodeData:
    old = {"attr", "param", "backward_source_id"}
    fields = _fields(value, where, {"op", "name", "inputs"}, {"attrs", "control_deps", "subgraphs"} | old)
    name = _text(fields["name"], f"{where}, field 'name'")
    where = f"{where} ({reprlib.repr(name)})"  # short: it is put together again for each input
    # Which of the three keys a file has depends on its age; an old one has parameters and attributes apart.
    attrs = {}
    for key in ("param", "attr", "attrs"):
        attrs.update(_strings(fields.get(key, {}), f"{where}, field {key!r}"))
    _typed(fields.get("backward_source_id", -1), int, f"{where}, field 'backward_source_id'", "an integer")
    subgraphs = _typed(fields.get("subgraphs", []), list, f"{where}, field 'subgraphs'", "a list")
    return NodeData(
        op=_text(fields["op"], f"{where}, field 'op'"),
        name=name,
        attrs=attrs,
        inputs=_entries(fields["inputs"], f"{where}, field 'inputs'"),
        control_deps=_indices(fields.get("control_deps", []), f"{where}, field 'control_deps'"),
        subgraphs=[_graph(graph, f"{where}, subgraph {i}", depth + 1) for i, graph in enumerate(subgraphs)],
    )


# ---- checking: what makes the records a graph


def _check(graph: GraphData, where: str = "symbol.json", depth: int = 0) -> None:
    """Raise unless all references are to what is there. Types are checked too: `dumps` gets records from anywhere."""
    if depth > _MAX_SUBGRAPH_DEPTH:
        _fail(where, f"subgraphs nested {depth} deep", f"at most {_MAX_SUBGRAPH_DEPTH}")
    for index, node in enumerate(graph.nodes):
        _check_node(graph, index, node, f"{where}, node {index} ({reprlib.repr(node.name)})", depth)

    at = f"{where}, field 'arg_nodes'"
    arg_nodes = _indices(graph.arg_nodes, at)
    for position, index in enumerate(arg_nodes):
        if index >= len(graph.nodes) or graph.nodes[index].op != "null":
            _fail(f"{at}[{position}]", index, f"a variable among the {len(graph.nodes)} nodes")
    if len(set(arg_nodes)) != len(arg_nodes):
        _fail(at, arg_nodes, "no node twice")

    at = f"{where}, field 'heads'"
    heads = _entries(graph.heads, at)
    if not heads:
        _fail(at, [], "at least one")
    for position, head in enumerate(heads):
        _check_entry(graph, head, len(graph.nodes), f"{at}[{position}]")

    at = f"{where}, field 'node_row_ptr'"
    if _indices(graph.node_row_ptr, at) and not _fits(graph.node_row_ptr, graph):
        _fail(at, graph.node_row_ptr, f"{len(graph.nodes) + 1} numbers that rise from 0")
    _check_graph_attrs(graph.attrs, f"{where}, field 'attrs'")


def _check_node(graph: GraphData, index: int, node: NodeData, where: str, depth: int) -> None:
    _text(node.op, f"{where}, field 'op'")
    _text(node.name, f"{where}, field 'name'")
    _strings(node.attrs, f"{where}, field 'attrs'")
    inputs = _entries(node.inputs, f"{where}, field 'inputs'")
    if node.op == "null" and inputs:
        _fail(f"{where}, field 'inputs'", inputs, "none, as it is a variable")
    for position, entry in enumerate(inputs):
        _check_entry(graph, entry, index, f"{where}, field 'inputs'[{position}]")
    for position, before in enumerate(_indices(node.control_deps, f"{where}, field 'control_deps'")):
        if before >= index:
            _fail(f"{where}, field 'control_deps'[{position}]", before, f"a node before this one, below {index}")
    for position, subgraph in enumerate(node.subgraphs):
        _check(subgraph, f"{where}, subgraph {position}", depth + 1)


def _check_entry(graph: GraphData, entry: Entry, stop: int, where: str) -> None:
    node, output, _ = entry
    if node >= stop:
        _fail(where, entry, f"a node below {stop}")
    if output and graph.nodes[node].op == "null":
        _fail(where, entry, "output 0, as that node is a variable")


def _check_graph_attrs(attrs: dict, where: str) -> None:
    for key, value in _typed(attrs, dict, where, "an object").items():
        _text(key, f"{where}, a key")
        if type(value) is not list or len(value) != 2 or type(value[0]) is not str:
            _fail(f"{where}[{key!r}]", value, 'a list such as ["int", 1]')
        _check_value(value, f"{where}[{key!r}]", depth=3)
        if key == "mxnet_version":
            if value[0] != "int":
                _fail(f"{where}[{key!r}]", value, f'a list such as ["int", {VERSION}]')
            _index(value[1], f"{where}[{key!r}]")


def _check_value(value, where: str, depth: int) -> None:
    """Raise unless the value of a graph attribute is a string, an integer, a list of those, or a list of such lists."""
    if type(value) is list and depth:
        for item in value:
            _check_value(item, where, depth - 1)
    elif type(value) is str:
        _text(value, where)
    elif type(value) is not int:
        _fail(where, value, "a string, an integer or a list of them")


# ---- upgrading: the changes that MXNet made since 0.8, in its order


def _upgrade(graph: GraphData, version: int, input_names: InputNames | None) -> None:
    def names_of(node: NodeData) -> Sequence[str]:
        names = input_names(node.op, node.attrs) if input_names else None
        return names or _INPUT_NAMES.get(node.op, ())

    for node in graph.nodes:
        _mark_hidden_keys(graph, node, names_of(node))
    if version < 900:
        _add_missing_inputs(graph, names_of)
    if version < 904:
        _add_initializers(graph)
    if version < 905:
        for node in graph.nodes:
            # -1 meant all axes, as a missing axis does today; now it means the last one.
            if node.op in ("argmax", "argmin") and node.attrs.get("axis") == "-1":
                del node.attrs["axis"]


def _mark_hidden_keys(graph: GraphData, node: NodeData, names: Sequence[str]) -> None:
    """Rename ``lr_mult`` to ``__lr_mult__``, and move ``weight_lr_mult`` to the variable that is the weight."""
    for key in list(node.attrs):
        if key in _HIDDEN_KEYS:
            node.attrs[f"__{key}__"] = node.attrs.pop(key)
            continue
        hidden = next((hidden for hidden in _HIDDEN_KEYS if key.endswith("_" + hidden)), None)
        if hidden is None:
            continue
        variable = _input_variable(graph, node, key[: -len(hidden) - 1], names)
        if variable:
            variable.attrs[f"__{hidden}__"] = node.attrs.pop(key)


def _input_variable(graph: GraphData, node: NodeData, argument: str, names: Sequence[str]) -> NodeData | None:
    sources = [graph.nodes[index] for index, _, _ in node.inputs]
    if argument in names:
        position = list(names).index(argument)
        found = sources[position : position + 1]
    else:
        found = [source for source in sources if source.name == f"{node.name}_{argument}"]
    return found[0] if found and found[0].op == "null" else None


def _add_missing_inputs(graph: GraphData, names_of: Callable[[NodeData], Sequence[str]]) -> None:
    """Make variables for the inputs that a node lacks, and renumber everything after them."""
    nodes, new_index, added = [], [], []
    for node in graph.nodes:
        node.inputs = [(new_index[index], output, version) for index, output, version in node.inputs]
        node.control_deps = [new_index[index] for index in node.control_deps]
        if node.op != "null":
            for argument in names_of(node)[len(node.inputs) :]:
                # MXNet gives the variable what the node has, so that a device group or multiplier reaches it.
                added.append(len(nodes))
                node.inputs.append((len(nodes), 0, 0))
                nodes.append(NodeData("null", f"{node.name}_{argument}" if node.name else argument, dict(node.attrs)))
        new_index.append(len(nodes))
        nodes.append(node)
    if added:
        graph.nodes = nodes
        graph.arg_nodes = sorted([new_index[index] for index in graph.arg_nodes] + added)
        graph.heads = [(new_index[index], output, version) for index, output, version in graph.heads]
        graph.node_row_ptr = []


def _add_initializers(graph: GraphData) -> None:
    """Write down what the variables of some operators start as; before, initializers guessed it from the name."""
    for node in graph.nodes:
        if node.op == "LeakyReLU" and node.attrs.get("act_type") != "prelu":
            continue
        for position, initializer in _INITIALIZERS.get(node.op, {}).items():
            if position < len(node.inputs):
                variable = graph.nodes[node.inputs[position][0]]
                if variable.op == "null":
                    variable.attrs.setdefault("__init__", initializer)


# ---- writing: what MXNet's JSON writer does
#
# An array or object takes one line, or one line per item. It depends on what it holds: nodes, and maps of more than one
# key, are spread out; numbers and entries only beyond ten. A comma is followed by a blank even at the end of a line.


def _graph_text(graph: GraphData, attrs: dict, level: int) -> str:
    fields = {
        "nodes": _array([_node_text(node, level + 2) for node in graph.nodes], level + 1, spread=True),
        "arg_nodes": _numbers(graph.arg_nodes, level + 1),
    }
    if graph.node_row_ptr:
        fields["node_row_ptr"] = _numbers(graph.node_row_ptr, level + 1)
    fields["heads"] = _entries_text(graph.heads, level + 1)
    if attrs:
        texts = {key: _value_text(attrs[key], level + 2) for key in sorted(attrs)}
        fields["attrs"] = _object(texts, level + 1, spread=len(texts) > 1)
    return _object(fields, level, spread=True)


def _node_text(node: NodeData, level: int) -> str:
    fields = {"op": _string(node.op), "name": _string(node.name)}
    if node.attrs:
        # By code point, which is the order of UTF-8 bytes too.
        texts = {key: _string(node.attrs[key]) for key in sorted(node.attrs)}
        fields["attrs"] = _object(texts, level + 1, spread=len(texts) > 1)
    fields["inputs"] = _entries_text(node.inputs, level + 1)
    if node.control_deps:
        fields["control_deps"] = _numbers(node.control_deps, level + 1)
    if node.subgraphs:
        texts = [_graph_text(subgraph, subgraph.attrs, level + 2) for subgraph in node.subgraphs]
        fields["subgraphs"] = _array(texts, level + 1, spread=True)
    return _object(fields, level, spread=True)


def _value_text(value, level: int) -> str:
    """Return the text of a graph attribute. MXNet itself writes integers only; others are kept as they came."""
    if type(value) is list:
        return _array([_value_text(item, level + 1) for item in value], level, spread=len(value) > 10)
    return _string(value) if type(value) is str else str(value)


def _entries_text(entries: Sequence[Entry], level: int) -> str:
    texts = [_numbers(entry if len(entry) == 3 else (*entry, 0), level + 1) for entry in entries]
    return _array(texts, level, spread=len(texts) > 10)


def _numbers(numbers: Sequence[int], level: int) -> str:
    return _array([str(number) for number in numbers], level, spread=len(numbers) > 10)


def _string(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _array(items: list[str], level: int, spread: bool) -> str:
    return "[" + _join(items, level, spread) + "]"


def _object(items: dict[str, str], level: int, spread: bool) -> str:
    return "{" + _join([f"{_string(key)}: {text}" for key, text in items.items()], level, spread) + "}"


def _join(items: list[str], level: int, spread: bool) -> str:
    """Join the items of an array or object whose own line is indented by `level` steps."""
    if not spread or not items:
        return ", ".join(items)
    inner, outer = "\n" + "  " * (level + 1), "\n" + "  " * level
    return inner + (", " + inner).join(items) + outer
