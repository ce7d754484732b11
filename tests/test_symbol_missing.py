"""Symbol files whose operators are not all there: the error lists them, and the file can be looked at."""

import copy
import json
import pickle
from pathlib import Path

import pytest

import mxop as mx
from mxop.errors import NotYetError, OpLookupError

DATA = Path(__file__).parent / "data"
WRITTEN_BY_MXNET = ["mlp.json", "loop.json", "many.json", "v08.upgraded.json", "v093.upgraded.json"]


def text_of(*nodes, heads, row_ptr=()):
    made = [{"op": op, "name": name, "inputs": [[k, out, 0] for k, out in inputs], "attrs": attrs}
            for op, name, inputs, attrs in nodes]  # fmt: skip
    variables = [i for i, node in enumerate(made) if node["op"] == "null"]
    graph = {"nodes": made, "arg_nodes": variables, "heads": [[*head, 0] for head in heads]}
    return json.dumps(graph | ({"node_row_ptr": list(row_ptr)} if row_ptr else {}))


NET = text_of(
    ("null", "data", [], {}), ("null", "w", [], {"__shape__": "(4, 3, 3, 3)"}),
    ("_npi_percentile", "c", [(0, 0), (1, 0)], {"kernel": "(3, 3)", "num_filter": "4", "no_bias": "True"}),
    ("_npi_polyval", "t", [(2, 0)], {"output_score": "True"}), ("exp", "e", [(3, 0)], {}), ("Dropout", "d", [(4, 0)], {}),
    ("_npi_percentile", "c2", [(2, 0), (1, 0)], {"kernel": "(1, 1)", "num_filter": "4", "no_bias": "True"}),
    heads=[(5, 0), (3, 1), (6, 0)], row_ptr=[0, 1, 2, 3, 5, 6, 8, 9],
)  # fmt: skip


def test_the_error_lists_all_with_their_number():
    with pytest.raises(NotYetError) as caught:
        mx.sym.load_json(NET)
    assert "_npi_percentile (2), _npi_polyval (1), which MXNet has and mxop does not have yet" in str(caught.value)
    assert "allow_missing=True" in str(caught.value)


def test_those_of_subgraphs_and_of_others_are_listed_too():
    graph = json.loads((DATA / "loop.json").read_text())
    loop = next(node for node in graph["nodes"] if node["op"] == "_foreach")
    first, second = [node for node in loop["subgraphs"][0]["nodes"] if node["op"] != "null"][:2]
    first["op"], second["op"] = "exq", "_npi_polyval"
    with pytest.raises(NotYetError, match=r"_npi_polyval \(1\), which MXNet has .*; and 'exq' \(1; did you mean 'exp'\?\)"):
        mx.sym.load_json(json.dumps(graph))
    with pytest.raises(OpLookupError, match=r"'my_op_of_yesterday' \(1\), which is not registered: import") as caught:
        mx.sym.load_json(text_of(("null", "a", [], {}), ("my_op_of_yesterday", "m", [(0, 0)], {}), heads=[(1, 0)]))
    assert not isinstance(caught.value, NotYetError)


def counted(text):
    """Return the text of a file with the versions of BatchNorm's states, which MXNet leaves 0 when it upgrades an old one."""
    return text.replace("[6, 0, 0], [7, 0, 0]]", "[6, 0, 1], [7, 0, 1]]")


@pytest.mark.parametrize("name", WRITTEN_BY_MXNET)
def test_what_mxnet_wrote_is_written_again(name, tmp_path):
    text = counted((DATA / name).read_text(encoding="utf-8"))
    symbol = mx.sym.load(DATA / name, allow_missing=True)
    assert symbol.tojson() == text
    for other in (pickle.loads(pickle.dumps(symbol)), copy.deepcopy(symbol)):
        assert other.tojson() == text
    symbol.save(str(tmp_path / "again.json"))
    assert (tmp_path / "again.json").read_text(encoding="utf-8") == text


def test_an_old_file_is_upgraded():
    symbol = mx.sym.load(DATA / "v08.json", allow_missing=True)
    assert json.loads(symbol.tojson()) == json.loads(counted((DATA / "v08.upgraded.json").read_text()))


def test_it_can_be_looked_at(capsys):
    symbol = mx.sym.load_json(NET, allow_missing=True)
    assert symbol.list_arguments() == ["data", "w"] and symbol.list_auxiliary_states() == []
    assert symbol.list_outputs() == ["d_output", "t_output1", "c2_output"]
    internals = ["data", "w", "c_output", "t_output0", "t_output1", "e_output", "d_output", "c2_output"]
    assert symbol.get_internals().list_outputs() == internals
    assert symbol.attr_dict()["c"]["num_filter"] == "4"
    assert "Op:_npi_percentile, Name=c2" in symbol.debug_str()
    assert symbol(data=mx.sym.Variable("image")).list_arguments() == ["image", "w"]
    assert (symbol[0] + 1).list_outputs()[0].startswith("_plusscalar")
    mx.viz.print_summary(symbol)
    assert "c(_npi_percentile)" in capsys.readouterr().out
    assert "_npi_percentile" in str(mx.viz.svg(symbol))


def test_states_are_told_from_arguments():
    symbol = mx.sym.load(DATA / "mlp.json", allow_missing=True)
    assert [n.endswith(("moving_mean", "moving_var")) for n in symbol.list_auxiliary_states()] == [True, True]
    assert not any("moving" in n for n in symbol.list_arguments())


@pytest.mark.parametrize("use", [
    lambda s: s.infer_shape(data=(1, 3, 8, 8)), lambda s: s.infer_shape_partial(data=(1, 3, 8, 8)),
    lambda s: s.infer_type(data="float32"), lambda s: s.simple_bind(mx.cpu(), data=(1, 3, 8, 8)),
    lambda s: s.bind(mx.cpu(), {"data": mx.nd.ones((1, 3, 8, 8)), "w": mx.nd.ones((4, 3, 3, 3))}),
    lambda s: s.eval(data=mx.nd.ones((1, 3, 8, 8)), w=mx.nd.ones((4, 3, 3, 3))), lambda s: s.optimize(),
    lambda s: mx.viz.print_summary(s, shape={"data": (1, 3, 8, 8)}),
])  # fmt: skip
def test_what_would_have_to_know_the_operator_names_it(use):
    with pytest.raises(NotYetError, match=r"'(_npi_percentile|_npi_polyval|Dropout)'.*MXNet has it, mxop does not have it yet"):
        use(mx.sym.load_json(NET, allow_missing=True))


def test_a_gradient_names_it():
    with pytest.raises(NotYetError, match="'_npi_percentile'"):
        mx.sym.load_json(NET, allow_missing=True)[2].gradient(["data"])


def test_known_operators_are_checked_as_ever():
    text = text_of(("null", "a", [], {}), ("Dropout", "d", [(0, 0)], {}), ("sum", "e", [(1, 0)], {"foo": "1"}), heads=[(2, 0)])
    with pytest.raises(mx.MXNetError, match="no parameter 'foo'"):
        mx.sym.load_json(text, allow_missing=True)
