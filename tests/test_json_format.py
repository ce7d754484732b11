"""The ``symbol.json`` format: files of MXNet 1.9.1 in ``data/``, old files, round trips, and damaged files.

``data/make_golden.py`` made the files. ``NAME.upgraded.json`` is what MXNet makes of an old ``NAME.json``.
"""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxop.errors import MXNetError
from mxop.symbol.json_format import GraphData, NodeData, dumps, loads

DATA = Path(__file__).parent / "data"
CURRENT = [
    "many.json",
    "mlp.json",
    "loop.json",
    "while_loop.json",
    "cond.json",
    "nested_loops.json",
    "np_shape.json",
    "v08.upgraded.json",
    "v093.upgraded.json",
]
OLD = ["v08.json", "v093.json"]


def text_of(name):
    return (DATA / name).read_text(encoding="utf-8")


def small():
    """A graph as JSON that every damage below starts from: exp(a) + b."""
    nodes = [
        {"op": "null", "name": "a", "inputs": []},
        {"op": "null", "name": "b", "attrs": {"__lr_mult__": "2"}, "inputs": []},
        {"op": "exp", "name": "e", "inputs": [[0, 0, 0]]},
        {"op": "elemwise_add", "name": "sum", "inputs": [[2, 0, 0], [1, 0, 0]]},
    ]
    rest = {"arg_nodes": [0, 1], "node_row_ptr": [0, 1, 2, 3, 4], "heads": [[3, 0, 0]]}
    return {"nodes": nodes, **rest, "attrs": {"mxnet_version": ["int", 10901]}}


# ---- files of MXNet


@pytest.mark.parametrize("name", CURRENT)
def test_same_text_as_mxnet(name):
    assert dumps(loads(text_of(name))) == text_of(name)


@pytest.mark.parametrize("name", OLD)
def test_upgraded_as_by_mxnet(name):
    found = json.loads(dumps(loads(text_of(name))))
    expected = json.loads(text_of(name.replace(".json", ".upgraded.json")))
    # It depends on the number of outputs, which an old file does not tell.
    if "node_row_ptr" not in found:
        del expected["node_row_ptr"]
    assert found == expected


def test_records():
    graph = loads(text_of("np_shape.json"))
    assert graph == GraphData(
        nodes=[NodeData("null", "data"), NodeData("exp", "exp", inputs=[(0, 0, 0)])],
        arg_nodes=[0],
        heads=[(1, 0, 0)],
        node_row_ptr=[0, 1, 2],
        attrs={"is_np_shape": ["int", 1], "mxnet_version": ["int", 10901]},
    )


def test_subgraphs():
    node = next(node for node in loads(text_of("loop.json")).nodes if node.op == "_foreach")
    assert [inner.op for inner in node.subgraphs[0].nodes if inner.op != "null"]
    assert len(node.subgraphs[0].heads) == 2


def test_attributes_and_escapes():
    nodes = {node.name: node for node in loads(text_of("mlp.json")).nodes}
    assert nodes["fc1"].attrs["__remark__"] == 'a "quoted" \\ remark\tin é漢'
    assert nodes["fc1"].attrs["__lr_mult__"] == "2"
    assert nodes["bn1"].inputs[3][2] == 1  # an auxiliary state, written once before


# ---- old spellings


@pytest.mark.parametrize("key", ["attr", "param", "attrs"])
def test_attributes_under_any_key(key):
    graph = small()
    graph["nodes"][1][key] = graph["nodes"][1].pop("attrs")
    assert dumps(loads(json.dumps(graph))) == dumps(loads(json.dumps(small())))


def test_param_and_attr_are_joined():
    graph = small()
    graph["nodes"][2].update(param={"x": "1", "y": "2"}, attr={"y": "3", "__z__": "4"})
    assert loads(json.dumps(graph)).nodes[2].attrs == {"x": "1", "y": "3", "__z__": "4"}


def test_what_may_be_missing_or_short():
    graph = small()
    del graph["node_row_ptr"], graph["attrs"]
    graph["heads"] = [[3, 0]]
    for node in graph["nodes"]:
        node["inputs"] = [entry[:2] for entry in node["inputs"]]
        node["backward_source_id"] = -1
    loaded = loads(json.dumps(graph).encode())
    assert loaded.node_row_ptr == [] and loaded.attrs == {"mxnet_version": ["int", 10901]}
    complete = loads(json.dumps(small()))
    assert (loaded.nodes, loaded.heads) == (complete.nodes, complete.heads)
    assert '"node_row_ptr"' not in dumps(loaded)


@pytest.mark.parametrize("row_ptr", [[7], [0, 1, 2, 3], [1, 2, 3, 4, 5], [0, 2, 1, 3, 4]])
def test_unfit_row_ptr_is_dropped(row_ptr):
    assert loads(json.dumps(dict(small(), node_row_ptr=row_ptr))).node_row_ptr == []


@pytest.mark.parametrize("version", [800, 903, 10000, 10900, 10901, 20000])
def test_hidden_keys(version):
    graph = dict(small(), attrs={"mxnet_version": ["int", version]})
    attr = {"lr_mult": "1", "lhs_wd_mult": "2", "rhs_wd_mult": "3", "nothing_wd_mult": "4", "__ctx_group__": "g"}
    graph["nodes"][3]["attr"] = attr
    nodes = loads(json.dumps(graph), lambda op, attrs: ["lhs", "rhs"] if op == "elemwise_add" else ()).nodes
    if version >= 10901:  # nothing is upgraded
        assert nodes[3].attrs == attr
        return
    # The left input is no variable, so the attribute stays where an unknown parameter will be noticed.
    assert nodes[3].attrs == {"__lr_mult__": "1", "lhs_wd_mult": "2", "nothing_wd_mult": "4", "__ctx_group__": "g"}
    assert nodes[1].attrs == {"__lr_mult__": "2", "__wd_mult__": "3"}


@pytest.mark.parametrize(("version", "initial"), [(903, '["Constant", {"value": 0.25}]'), (904, None)])
def test_initializers(version, initial):
    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "null", "name": "gamma", "inputs": []},
        {"op": "LeakyReLU", "name": "prelu", "attr": {"act_type": "prelu"}, "inputs": [[0, 0], [1, 0]]},
        {"op": "LeakyReLU", "name": "leaky", "attr": {"act_type": "leaky"}, "inputs": [[2, 0], [0, 0]]},
    ]
    attrs = {"mxnet_version": ["int", version]}
    graph = loads(json.dumps({"nodes": nodes, "arg_nodes": [0, 1], "heads": [[3, 0]], "attrs": attrs}))
    assert [node.attrs.get("__init__") for node in graph.nodes] == [None, initial, None, None]


def test_missing_inputs_by_name():
    """Before 0.9 any input that a node lacks is made; the names of the inputs come from the caller."""
    graph = small()
    del graph["attrs"], graph["node_row_ptr"]
    graph["nodes"][2]["attr"] = {"ctx_group": "g"}
    graph["nodes"][2]["name"] = ""
    loaded = loads(json.dumps(graph), lambda op, attrs: ["data", "state"] if op == "exp" else None)
    assert [node.name for node in loaded.nodes] == ["a", "b", "state", "", "sum"]
    assert loaded.nodes[2].attrs == {"__ctx_group__": "g"}
    assert loaded.nodes[3].inputs == [(0, 0, 0), (2, 0, 0)] and loaded.nodes[4].inputs == [(3, 0, 0), (1, 0, 0)]
    assert (loaded.arg_nodes, loaded.heads) == ([0, 1, 2], [(4, 0, 0)])


# ---- round trips

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
attributes = st.dictionaries(anything, anything, max_size=3)


@st.composite
def graphs(draw, depth=0):
    nodes = []
    for index in range(draw(st.integers(1, 14))):
        before = st.integers(0, index - 1)
        if index and draw(st.booleans()):
            operators = [i for i, node in enumerate(nodes) if node.op != "null"]
            entry = st.tuples(before, st.just(0), st.integers(0, 1))
            if operators:
                entry = st.one_of(entry, st.tuples(st.sampled_from(operators), st.integers(0, 3), st.just(0)))
            subgraphs = st.lists(graphs(depth=depth + 1), max_size=1) if depth < 2 else st.just([])
            inputs, deps = draw(st.lists(entry, max_size=12)), draw(st.lists(before, max_size=2))
            nodes.append(NodeData("op", draw(anything), draw(attributes), inputs, deps, draw(subgraphs)))
        else:
            nodes.append(NodeData("null", draw(anything), draw(attributes)))
    variables = [i for i, node in enumerate(nodes) if node.op == "null"]
    heads = draw(st.lists(st.integers(0, len(nodes) - 1), min_size=1, max_size=12))
    row_ptr = draw(st.sampled_from([[], list(range(len(nodes) + 1))]))
    return GraphData(nodes, variables, [(node, 0, 0) for node in heads], row_ptr)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_round_trip(graph):
    graph.attrs = {"mxnet_version": ["int", 10901], "other": ["list_str", ["x", "y"]]}
    text = dumps(graph)
    assert loads(text) == graph
    assert dumps(loads(text)) == text


def test_version_is_added():
    graph = GraphData([NodeData("null", "x")], [0], [(0, 0, 0)])
    assert loads(dumps(graph)).attrs == {"mxnet_version": ["int", 10901]}
    assert graph.attrs == {}


# ---- damaged files


def damaged(path, value):
    """The small graph with the item at `path` replaced, or removed if the value is Ellipsis."""
    graph = small()
    *parents, last = path
    target = graph
    for step in parents:
        target = target[step]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return json.dumps(graph)


@pytest.mark.parametrize(("path", "value", "message"), [
    (["nodes"], ..., "symbol.json: found .*, expected the field 'nodes' too"),
    (["heads"], ..., "expected the field 'heads' too"),
    (["arg_nodes"], ..., "expected the field 'arg_nodes' too"),
    (["more"], 1, "found 'more', expected no field but arg_nodes, attrs, heads"),
    (["nodes"], {}, "field 'nodes': found {}, expected a list"),
    (["nodes", 2], [], r"node 2: found \[\], expected an object"),
    (["nodes", 2, "name"], ..., "node 2: found .*, expected the field 'name' too"),
    (["nodes", 2, "name"], 3, "node 2, field 'name': found 3, expected a string"),
    (["nodes", 2, "op"], None, r"node 2 \('e'\), field 'op': found None, expected a string"),
    (["nodes", 2, "color"], "red", "node 2: found 'color', expected no field but attr, attrs"),
    (["nodes", 2, "attrs"], {"p": 1}, r"node 2 \('e'\), field 'attrs'\['p'\]: found 1, expected a string"),
    (["nodes", 2, "attr"], [], r"node 2 \('e'\), field 'attr': found \[\], expected an object"),
    (["nodes", 2, "backward_source_id"], "x", "field 'backward_source_id': found 'x', expected an integer"),
    (["nodes", 2, "inputs"], 0, "field 'inputs': found 0, expected a list"),
    (["nodes", 2, "inputs", 0], [0], r"'e'\), field 'inputs'\[0\]: found \[0\], expected \[node, output\] or"),
    (["nodes", 2, "inputs", 0], [0, 0, 0, 0], "expected .node, output. or"),
    (["nodes", 2, "inputs", 0], [-1, 0, 0], r"field 'inputs'\[0\]: found -1, expected an integer from 0"),
    (["nodes", 2, "inputs", 0], [0.0, 0, 0], "found 0.0, expected an integer from 0"),
    (["nodes", 2, "inputs", 0], [True, 0, 0], "found True, expected an integer from 0"),
    (["nodes", 2, "inputs", 0], [2**31, 0, 0], "found 2147483648, expected an integer from 0 to 2147483647"),
    (["nodes", 2, "inputs", 0], [2, 0, 0], r"field 'inputs'\[0\]: found \(2, 0, 0\), expected a node below 2"),
    (["nodes", 2, "inputs", 0], [9, 0, 0], r"found \(9, 0, 0\), expected a node below 2"),
    (["nodes", 2, "inputs", 0], [0, 1, 0], "expected output 0, as that node is a variable"),
    (["nodes", 0, "inputs"], [[0, 0, 0]], r"node 0 \('a'\), field 'inputs': .* expected none, as it is a variable"),
    (["nodes", 2, "control_deps"], [2], r"field 'control_deps'\[0\]: found 2, expected a node before this one"),
    (["nodes", 2, "subgraphs"], [{}], r"node 2 \('e'\), subgraph 0: found \[\], expected the field"),
    (["arg_nodes"], [0, 2], r"field 'arg_nodes'\[1\]: found 2, expected a variable among the 4 nodes"),
    (["arg_nodes"], [0, 4], r"field 'arg_nodes'\[1\]: found 4, expected a variable"),
    (["arg_nodes"], [0, 0], r"field 'arg_nodes': found \[0, 0\], expected no node twice"),
    (["heads"], [], r"field 'heads': found \[\], expected at least one"),
    (["heads"], [[4, 0, 0]], r"field 'heads'\[0\]: found \(4, 0, 0\), expected a node below 4"),
    (["heads"], [[0, 1, 0]], "expected output 0, as that node is a variable"),
    (["node_row_ptr"], ["x"], r"field 'node_row_ptr'\[0\]: found 'x', expected an integer"),
    (["attrs"], [], r"field 'attrs': found \[\], expected an object"),
    (["attrs", "mxnet_version"], 10901, r"'mxnet_version'\]: found 10901, expected a list"),
    (["attrs", "mxnet_version"], ["str", "x"], "expected a list such as ..int., 10901."),
    (["attrs", "mxnet_version"], ["int", "x"], "found 'x', expected an integer"),
    (["attrs", "mxnet_version"], ["int", -1], "found -1, expected an integer"),
    (["attrs", "other"], ["list", [[[1]]]], r"'other'\]: found \[1\], expected a string, an integer or a list"),
    (["nodes", 2, "name"], "\ud800", "field 'name': found '.ud800', expected a string that UTF-8 can represent"),
    (["nodes", 2, "attrs"], {"\ud800": ""}, "a key: found '.ud800', expected a string that UTF-8"),
    (["attrs", "other"], ["float", 1.5], "found 1.5, expected a string, an integer or a list"),
], ids=str)  # fmt: skip
def test_what_is_wrong_is_named(path, value, message):
    with pytest.raises(MXNetError, match=message):
        loads(damaged(path, value))


@pytest.mark.parametrize(("text", "message"), [
    ("", "Expecting value: line 1 column 1"),
    ("{", "Expecting property name"),
    ("[]", r"symbol.json: found \[\], expected an object"),
    ('{"nodes": [], "nodes": []}', "the key 'nodes' occurs twice"),
    (json.dumps(dict(small(), arg_nodes=[float("nan")])), "found NaN, which is not JSON"),
    ("1" * 5000, "symbol.json"),
    (b"\xff\xfe", "can't decode byte 0xff"),
    ("[" * 100_000, "nested too deeply"),
    ('{"nodes":' * 100_000, "nested too deeply"),
], ids=lambda value: repr(value)[:20])  # fmt: skip
def test_text_that_is_no_graph(text, message):
    with pytest.raises(MXNetError, match=message):
        loads(text)


def test_subgraphs_are_not_nested_without_end():
    graph = small()
    for _ in range(40):
        outer = small()
        outer["nodes"][2]["subgraphs"] = [graph]
        graph = outer
    with pytest.raises(MXNetError, match="found 'subgraphs nested 33 deep', expected at most 32"):
        loads(json.dumps(graph))


@pytest.mark.parametrize("text", ["[" + "1," * 10_000 + "1]", "[" * 500 + "]" * 500, '"' + "x" * 10_000 + '"'], ids=len)
def test_messages_are_short(text):
    with pytest.raises(MXNetError) as raised:
        loads(damaged(["nodes", 2, "inputs"], "?").replace('"?"', text))
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(("change", "message"), [
    (lambda graph: graph.nodes[2].inputs.append((3, 0, 0)), "expected a node below 2"),
    (lambda graph: graph.nodes[2].attrs.update(axis=1), "'axis'.: found 1, expected a string"),
    (lambda graph: graph.node_row_ptr.append(9), "field 'node_row_ptr'"),
    (lambda graph: graph.heads.clear(), "expected at least one"),
    (lambda graph: setattr(graph.nodes[2], "name", None), "field 'name': found None"),
])  # fmt: skip
def test_what_cannot_be_written(change, message):
    graph = loads(json.dumps(small()))
    change(graph)
    with pytest.raises(MXNetError, match=message):
        dumps(graph)


def parse_or_error(text):
    """Read what may be damaged. Whatever is no error has to survive being written again."""
    try:
        graph = loads(text)
    except MXNetError:
        return
    assert loads(dumps(graph)) == graph


@pytest.mark.parametrize("name", ["mlp.json", "v08.json"])
def test_truncated_anywhere(name):
    content = (DATA / name).read_bytes()
    for size in range(len(content.rstrip()) - 1):
        with pytest.raises(MXNetError):
            loads(content[:size])


changed_bytes = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=4)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CURRENT + OLD), changed_bytes)
def test_bytes_changed(name, changes):
    content = bytearray((DATA / name).read_bytes())
    for offset, value in changes:
        content[offset % len(content)] = value
    parse_or_error(bytes(content))


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 5), st.floats(allow_nan=False), st.text(max_size=2)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(["v08.json", "loop.json"]), json_values)
def test_values_changed(data, name, value):
    """Replace one value anywhere in the tree, which keeps the text valid JSON."""
    graph = json.loads(text_of(name))
    target = graph
    while True:
        key = data.draw(st.sampled_from(sorted(target) if isinstance(target, dict) else range(len(target))))
        if not isinstance(target[key], (dict, list)) or not target[key] or data.draw(st.integers(0, 3)) == 0:
            target[key] = value
            break
        target = target[key]
    parse_or_error(json.dumps(graph))


def test_long_names_take_no_quadratic_time():
    """A node with a name of 200 kB and 50,000 inputs, and an object of 50,000 keys, the last of which occurs twice."""
    name, inputs = "x" * 200_000, ",".join(["[0,0,0]"] * 50_000)
    nodes = f'[{{"op":"null","name":"a","inputs":[]}},{{"op":"add_n","name":"{name}","inputs":[{inputs}]}}]'
    begun = time.process_time()
    assert len(loads(f'{{"nodes":{nodes},"arg_nodes":[0],"heads":[[1,0,0]]}}').nodes[1].inputs) == 50_000
    keys = ",".join(f'"{k}":0' for k in [*range(50_000), 49_999])
    with pytest.raises(MXNetError, match="the key '49999' occurs twice"):
        loads("{" + keys + "}")
    assert time.process_time() - begun < 10  # 1 s; minutes where each input is named in full
