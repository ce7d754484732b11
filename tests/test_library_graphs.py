"""Graph passes, partitioners and subgraph operators of compiled libraries, through ``Symbol.optimize_for``."""

import json
import re

import numpy as np
import pytest
from libraries_util import library, needs_compiler, variant  # noqa: F401

import mxop as mx

pytestmark = needs_compiler


@pytest.fixture
def subgraphs(library):  # noqa: F811
    return library("subgraph_lib.cc")


@pytest.fixture
def passes(library):  # noqa: F811
    return library("pass_lib.cc")


def chain():
    """Return log(exp(a + b)) with arrays for a and b."""
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    out = mx.sym.log(mx.sym.exp(a + b, name="e"), name="l")
    args = {"a": mx.nd.array([[1, 2], [3, 4]]), "b": mx.nd.ones((2, 2))}
    return out, args


def ops(symbol):
    return [node["op"] for node in json.loads(symbol.tojson())["nodes"] if node["op"] != "null"]


def value(symbol, args):
    return symbol.bind(mx.cpu(), args).forward()[0].asnumpy()


def test_loading_prints_passes_and_partitioners(library, capsys):  # noqa: F811
    mx.library.load(library("subgraph_lib.cc"))
    said = capsys.readouterr().out
    assert "Found 1 operators in library\n\tOp[0] _custom_subgraph_op isSubgraphOp\n" in said
    assert "Found 2 partitioners in library\n\tPartitioner[0] myProp\n\t\tStrategy[0] strategy1 subgraphOp: '_custom_" in said
    assert "Found 1 graph passes in library\n\tGraph Pass [0] addInputPass\n" in said
    assert {"myProp", "mySelect", "addInputPass"} <= set(mx.graph.backends())


@pytest.mark.parametrize("backend", ["myProp", "mySelect"])
def test_a_partitioner_makes_a_subgraph_operator(subgraphs, backend, capfd):
    out, args = chain()
    found = out.optimize_for(backend, args)
    assert ops(found) == ["elemwise_add", "_custom_subgraph_op"] and ops(out) == ["elemwise_add", "exp", "log"]
    assert found.list_arguments() == ["a", "b"] and found.list_outputs() == ["_op0_output"]
    np.testing.assert_allclose(value(found, args), args["a"].asnumpy() + 1, rtol=1e-6)
    said = capfd.readouterr().out
    assert "accepting subgraph" in said and "subgraphOp attributes: myKey ==> myVal" in said
    assert "stateful operator created" in said
    again = mx.sym.load_json(found.tojson())
    assert again.tojson() == found.tojson()
    np.testing.assert_array_equal(value(again, args), value(found, args))
    assert found.infer_shape(a=(5,), b=(5,))[1] == [(5,)]


def test_options_shapes_and_types_reach_the_library(subgraphs, capfd):
    out, args = chain()
    assert ops(out.optimize_for("myProp", args, reqFloat=True)) == ["elemwise_add", "_custom_subgraph_op"]
    said = capfd.readouterr().out
    assert "option: reqFloat ==> True" in said and "shape of e: [2,2]" in said
    assert ops(out.optimize_for("myProp", reqFloat=True)) == ["elemwise_add", "exp", "log"]  # types are not known
    wide = {name: a.astype("float64") for name, a in args.items()}
    assert ops(out.optimize_for("myProp", wide, reqFloat=True)) == ["elemwise_add", "exp", "log"]
    assert ops(out.optimize_for("myProp", args, reject=True)) == ["elemwise_add", "exp", "log"]
    a = mx.sym.Variable("a")
    capfd.readouterr()
    mx.sym.exp(a).optimize_for("myProp", {"a": args["a"][:, 1:]})  # not contiguous
    assert "input a known: 1" in capfd.readouterr().out


def test_numbers_of_supported_nodes_keep_apart(subgraphs):
    out, args = chain()
    found = out.optimize_for("myProp", args, colour=1)
    assert ops(found) == ["elemwise_add", "_custom_subgraph_op", "_custom_subgraph_op"]
    np.testing.assert_allclose(value(found, args), value(out, args), rtol=1e-6)


def test_a_selector_filters(subgraphs):
    out, args = chain()
    found = out.optimize_for("mySelect", args, most=1)
    assert ops(found) == ["elemwise_add", "_custom_subgraph_op", "_custom_subgraph_op"]
    assert ops(out.optimize_for("mySelect", args, most=0)) == ops(out)
    with pytest.raises(mx.MXNetError, match=r"mySelect.*strategy1.*Filter.*no filter today"):
        out.optimize_for("mySelect", args, throw=1)


@pytest.mark.parametrize("backend", ["myProp", "mySelect"])
def test_subgraphs_that_would_need_themselves(subgraphs, backend):
    x = mx.sym.Variable("x")
    e = mx.sym.exp(x, name="e")
    out = mx.sym.Group([mx.sym.log(e, name="l1"), mx.sym.log(e + mx.sym.sqrt(e), name="l2"), e])
    args = {"x": mx.nd.array([1, 2, 3])}
    found = out.optimize_for(backend, args)
    assert "exp" not in ops(found) and "sqrt" in ops(found)
    for got, want in zip(found.bind(mx.cpu(), args).forward(), out.bind(mx.cpu(), args).forward()):
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-6)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "backend, options", [("myProp", {}), ("myProp", {"colour": 1}), ("mySelect", {}), ("mySelect", {"most": 2})]
)
def test_random_graphs_compute_the_same(subgraphs, seed, backend, options):
    rng = np.random.default_rng(seed)
    values = [mx.sym.Variable("x"), mx.sym.Variable("y")]
    for _ in range(25):
        a, b = (values[i] for i in rng.integers(0, len(values), 2))
        kind = rng.integers(4)
        safe = a * a + 1
        values.append([mx.sym.exp(a * 0.1), mx.sym.log(safe), mx.sym.exp(mx.sym.log(safe) * 0.1), a * 0.5 + b * 0.25][kind])
    out = mx.sym.Group([values[i] for i in rng.integers(5, len(values), 3)])
    args = {"x": mx.nd.array(rng.uniform(-1, 1, (2, 3))), "y": mx.nd.array(rng.uniform(-1, 1, (2, 3)))}
    args = {name: a for name, a in args.items() if name in out.list_arguments()}
    found = out.optimize_for(backend, args, **options)
    assert "exp" not in ops(found) or options.get("most")
    for got, want in zip(found.bind(mx.cpu(), args).forward(), out.bind(mx.cpu(), args).forward()):
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-4, atol=1e-5)


def test_a_pass_adds_an_input(subgraphs):
    out, args = chain()
    first = out.optimize_for("myProp", args)
    found = first.optimize_for("addInputPass", args)
    assert found.list_arguments() == ["a", "b", "_op0_input"] and set(args) == {"a", "b", "_op0_input"}
    assert args["_op0_input"].asnumpy().tolist() == [7]
    np.testing.assert_allclose(value(found, args), args["a"].asnumpy() + 1 + 700, rtol=1e-6)
    with pytest.raises(mx.MXNetError, match=r"addInputPass.*_op0_input.*dict as args="):
        first.optimize_for("addInputPass")


def test_a_subgraph_operator_needs_its_subgraph(subgraphs):
    with pytest.raises(mx.MXNetError, match=r"_custom_subgraph_op.*optimize_for.*subgraph_sym_json"):
        mx.nd._internal._custom_subgraph_op(mx.nd.ones((2,)))
    out, args = chain()
    found = out.optimize_for("myProp", args)
    executor = found.bind(mx.cpu(), args, {"a": mx.nd.zeros((2, 2))})
    executor.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match=r"_custom_subgraph_op(.|\n)*does not support backward"):
        executor.backward(mx.nd.ones((2, 2)))


def test_passes_that_change_nothing(passes, capfd):
    out, args = chain()
    assert out.optimize_for("myPass", args, myOption=3).tojson() == out.tojson()
    said = capfd.readouterr().out
    assert "option: myOption ==> 3" in said and re.search(r"exp e\( _plus\d+\[0\] \)", said)
    awkward = mx.sym.exp(mx.sym.Variable('ä "quoted" \\ \n\t name', attr={"__note__": "{}[]\"',\x01é😀"}), name="e")
    big = mx.sym.Group([out * 2, mx.sym.reshape(out, shape=(-1, 0)), mx.sym.split(out, num_outputs=2, axis=1)[1], awkward])
    for sym in (out, big):
        assert sym.optimize_for("jsonPass").tojson() == sym.tojson()
    assert out.optimize_for("jsonPass", args).tojson() == out.tojson()  # shapes and types are taken out again


def test_passes_that_exchange_operators(passes):
    out, args = chain()
    found = out.optimize_for("exchange", args, **{"from": "exp", "to": "square"})
    assert ops(found) == ["elemwise_add", "square", "log"]
    np.testing.assert_allclose(value(found, args), 2 * np.log(args["a"].asnumpy() + 1), rtol=1e-6)


def test_passes_that_make_parameters(passes):
    out, args = chain()
    found = out.optimize_for("fold", args)
    assert found.list_arguments() == ["a_twice", "b_twice"]
    assert args["a_twice"].asnumpy().tolist() == [[2, 4], [6, 8]]
    np.testing.assert_allclose(value(found, args), 2 * (args["a"].asnumpy() + 1), rtol=1e-6)


@pytest.mark.parametrize(
    "how, message",
    [
        ("throw", "no pass today"),
        ("fail", "a reason"),
        ("unknown", "cannot be used"),
        ("cut", "operator log takes 1 input"),
        ("cycle", "cycle through node"),
        ("node", "1000"),
        ("alloc", r"no new parameter 'a'.*\(-1,\)"),
        ("type", r"no new parameter 'a'.*type 100"),
        ("no heads", "heads"),
    ],
)
def test_passes_that_fail(passes, how, message):
    out, args = chain()
    with pytest.raises(mx.MXNetError, match=f"(?s)graph pass fails of library pass_lib.*{message}"):
        out.optimize_for("fails", args, how=how)
    assert set(args) == {"a", "b"}
    assert out.optimize_for("fails", args).tojson() == out.tojson()


def test_names_that_are_taken(passes, variant):  # noqa: F811
    source = """
    MXReturnValue nothing(mxnet::ext::Graph* g, const std::unordered_map<std::string, std::string>& options) {
      return MX_SUCCESS;
    }
    static bool announce() {
      if (is("taken")) { REGISTER_PASS(myPass).setBody(nothing); }
      if (is("bodiless")) { REGISTER_PASS(lonely); }
      if (is("empty")) { REGISTER_PARTITIONER(empty); }
      if (is("idle")) { REGISTER_PARTITIONER(idle).addStrategy("s", "op"); }
      return true;
    }
    static bool announced = announce();
    """
    for name, message in (
        ("taken", r"'myPass', but that name is taken"),
        ("bodiless", r"lonely.*setBody"),
        ("empty", r"empty.*addStrategy"),
        ("idle", r"idle.*setSupportedOps"),
    ):
        with pytest.raises(mx.MXNetError, match=message):
            mx.library.load(variant(source, name), verbose=False)
