"""Symbols: composition, names, attributes, listing, files.  Expected values were observed in MXNet 1.9.1."""

import copy
import errno
import inspect
import json
import os
import pickle
import threading

import numpy as np
import pytest

import mxop as mx
from mxop import sym
from mxop.op import composite, elementwise, kernel, unregister

pytestmark = pytest.mark.usefixtures("fresh_names")


def last_node(symbol):
    node = [n for n in json.loads(symbol.tojson())["nodes"] if n["op"] != "null"][-1]
    return node["name"], node["op"], node.get("attrs")


# ---- names ----------------------------------------------------------------------------------------------------------
OPERATORS = {
    "a.__rsub__(b)": ("_minus0", "elemwise_sub", None), "a.__rpow__(b)": ("_power0", "_power", None),
    "a + b": ("_plus0", "elemwise_add", None), "a + 1": ("_plusscalar0", "_plus_scalar", {"scalar": "1"}),
    "1.0 + a": ("_plusscalar0", "_plus_scalar", {"scalar": "1.0"}), "a - b": ("_minus0", "elemwise_sub", None),
    "a - 1": ("_minusscalar0", "_minus_scalar", {"scalar": "1"}),
    "1 - a": ("_rminusscalar0", "_rminus_scalar", {"scalar": "1"}), "a * b": ("_mul0", "elemwise_mul", None),
    "2 * a": ("_mulscalar0", "_mul_scalar", {"scalar": "2"}), "a / b": ("_div0", "elemwise_div", None),
    "a / 2": ("_divscalar0", "_div_scalar", {"scalar": "2"}), "2 / a": ("_rdivscalar0", "_rdiv_scalar", {"scalar": "2"}),
    "a % b": ("_mod0", "_mod", None), "a % 2": ("_modscalar0", "_mod_scalar", {"scalar": "2"}),
    "2 % a": ("_rmodscalar0", "_rmod_scalar", {"scalar": "2"}), "a ** b": ("_power0", "_power", None),
    "a ** 2": ("_powerscalar0", "_power_scalar", {"scalar": "2"}),
    "2 ** a": ("_rpower_scalar0", "_rpower_scalar", {"scalar": "2"}),
    "-a": ("_mulscalar0", "_mul_scalar", {"scalar": "-1.0"}), "a == b": ("_equal0", "_equal", None),
    "a == 1": ("_equal_scalar0", "_equal_scalar", {"scalar": "1"}), "a != b": ("_not_equal0", "_not_equal", None),
    "a > b": ("_greater0", "_greater", None), "1 > a": ("_lesser_scalar0", "_lesser_scalar", {"scalar": "1"}),
    "a >= 1": ("_greater_equal_scalar0", "_greater_equal_scalar", {"scalar": "1"}),
    "a <= b": ("_lesser_equal0", "_lesser_equal", None), "abs(a)": ("abs0", "abs", None),
    "np.float32(2) * a": ("_mulscalar0", "_mul_scalar", {"scalar": "2.0"}),
    "sym.exp(a)": ("exp0", "exp", None), "a.exp()": ("exp0", "exp", None),
    "sym.contrib.quadratic(a, a=1, b=2., c='3')": (
        "quadratic0", "_contrib_quadratic", {"a": "1", "b": "2.0", "c": "3"}),
    "sym.quadratic(a)": ("quadratic0", "_contrib_quadratic", None),
    "sym.FullyConnected(a, num_hidden=3)": ("fullyconnected0", "FullyConnected", {"num_hidden": "3"}),
    "sym.reshape(a, shape=[2, -1])": ("reshape0", "Reshape", {"shape": "(2, -1)"}),
    "a.reshape(2, -1)": ("reshape0", "Reshape", {"shape": "(2, -1)"}),
    "a.reshape((2, -1))": ("reshape0", "Reshape", {"shape": "(2, -1)"}),
    "sym.concat(a, b, dim=0)": ("concat0", "Concat", {"dim": "0", "num_args": "2"}),
    "sym.ElementWiseSum(a, b)": ("elementwisesum0", "add_n", {"num_args": "2"}),
    "sym.cast(a, np.float16)": ("cast0", "Cast", {"dtype": "float16"}),
    "a.astype('int32')": ("cast0", "Cast", {"dtype": "int32"}),
    "sym.clip(a, 0, 1)": ("clip0", "clip", {"a_max": "1", "a_min": "0"}),
    "sym.stop_gradient(a)": ("stop_gradient0", "BlockGrad", None), "sym.identity(a)": ("identity0", "_copy", None),
    "sym.sum(a, axis=(0, 1), keepdims=True)": ("sum0", "sum", {"axis": "(0, 1)", "keepdims": "True"}),
    "sym.sum(a, axis=None)": ("sum0", "sum", {"axis": "None"}),
    "sym.maximum(a, b)": ("_maximum0", "_maximum", None),
    "sym.maximum(2, a)": ("_maximumscalar0", "_maximum_scalar", {"scalar": "2"}),
    "sym.pow(2, a)": ("_rpowerscalar0", "_rpower_scalar", {"scalar": "2"}),
    "sym._internal._plus(a, b)": ("_plus0", "elemwise_add", None),
    "sym.op.exp(a)": ("exp0", "exp", None), "sym._plus_scalar(a, scalar=2)": ("_plus_scalar0", "_plus_scalar", {"scalar": "2"}),
    "sym.zeros((2, 3))": ("_zeros0", "_zeros", {"dtype": "float32", "shape": "(2, 3)"}),
    "sym.full((2,), 3)": ("_full0", "_full", {"dtype": "float32", "shape": "(2,)", "value": "3.0"}),
    "sym.arange(5)": ("_arange0", "_arange", {"dtype": "float32", "infer_range": "False", "repeat": "1", "start": "5",
                                              "step": "1.0", "stop": "None"}),
}  # fmt: skip


@pytest.mark.parametrize("text", OPERATORS)
def test_automatic_names_and_json_attributes(text):
    scope = {"a": sym.Variable("a"), "b": sym.Variable("b"), "sym": sym, "np": np}
    assert last_node(eval(text, scope)) == OPERATORS[text]


def test_a_name_does_not_depend_on_who_asked_for_the_operator_before():
    a = sym.Variable("a")
    assert (sym._contrib_quadratic(a).name, sym.contrib.quadratic(a).name) == ("_contrib_quadratic0", "quadratic0")
    assert sym._internal._contrib_quadratic(a).name == "_contrib_quadratic1"


def test_numbers_count_up_for_each_kind():
    a = sym.Variable("a")
    assert [sym.exp(a).name, sym.exp(a).name, (a + a).name, sym.exp(a, name="mine").name, sym.exp(a).name] == [
        "exp0", "exp1", "_plus0", "mine", "exp2"]  # fmt: skip


def test_prefix_is_put_before_all_names():
    a = sym.Variable("a")
    with mx.name.Prefix("pre_"):
        fc = sym.FullyConnected(a, num_hidden=2)
        assert (sym.exp(a).name, (a + a).name, sym.exp(a, name="given").name) == ("pre_exp0", "pre__plus0", "pre_given")
        assert fc.list_arguments() == ["a", "pre_fullyconnected0_weight", "pre_fullyconnected0_bias"]
        assert sym.Variable("v").name == "v"
    assert sym.exp(a).name == "exp0"


def test_each_thread_counts_for_itself():
    a, names = sym.Variable("a"), []
    sym.exp(a)
    thread = threading.Thread(target=lambda: names.append(sym.exp(a).name))
    thread.start()
    thread.join()
    assert names == ["exp0"]


def test_repr():
    a, b = sym.Variable("a"), sym.Variable("b")
    assert repr(a) == str(a) == "<Symbol a>"
    assert repr(sym.Group([a + b, b])) == "<Symbol group [_plus0, b]>"


# ---- automatic variables and listing --------------------------------------------------------------------------------
def test_missing_inputs_become_variables():
    assert sym.quadratic().list_arguments() == ["quadratic0_data"]
    assert sym.broadcast_add(sym.Variable("a")).list_arguments() == ["a", "broadcast_add0_rhs"]
    assert sym.concat(sym.Variable("a"), num_args=3, name="cc").list_arguments() == ["a", "cc_arg1", "cc_arg2"]
    assert sym.where(name="w").list_arguments() == ["w_condition", "w_x", "w_y"]


def test_inputs_that_parameters_turn_off():
    x = sym.Variable("x")
    assert sym.FullyConnected(x, num_hidden=3, name="f").list_arguments() == ["x", "f_weight", "f_bias"]
    assert sym.FullyConnected(x, num_hidden=3, no_bias=True, name="f").list_arguments() == ["x", "f_weight"]
    with pytest.raises(mx.MXNetError, match="takes no input 'bias'"):
        sym.FullyConnected(x, bias=x, num_hidden=3, no_bias=True)


def small_net():
    x = sym.Variable("x")
    fc = sym.FullyConnected(x, name="fc1", num_hidden=4)
    return sym.FullyConnected(sym.Activation(fc, name="relu1", act_type="relu"), name="fc2", num_hidden=2)


def test_listing():
    net = small_net()
    assert net.list_arguments() == net.list_inputs() == ["x", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
    assert net.list_outputs() == ["fc2_output"] and net.list_auxiliary_states() == [] and net.name == "fc2"
    internals = net.get_internals()
    assert internals.list_outputs() == ["x", "fc1_weight", "fc1_bias", "fc1_output", "relu1_output", "fc2_weight", "fc2_bias",
                                        "fc2_output"]  # fmt: skip
    assert internals["fc1_output"].name == "fc1" and internals["x"].name == "x" and len(internals) == 8
    assert net.get_children().list_outputs() == ["relu1_output", "fc2_weight", "fc2_bias"]
    assert sym.Variable("x").get_children() is None


def test_outputs_as_a_list():
    sp = sym.SliceChannel(sym.Variable("x"), num_outputs=3, name="sp")
    assert sp.list_outputs() == ["sp_output0", "sp_output1", "sp_output2"] and len(sp) == 3 and sp.name == "sp"
    assert sp["sp_output1"].list_outputs() == sp[1].list_outputs() == ["sp_output1"]
    assert [s.list_outputs() for s in sp] == [["sp_output0"], ["sp_output1"], ["sp_output2"]]
    assert sp[0:2].list_outputs() == ["sp_output0", "sp_output1"] and sp[-1].list_outputs() == ["sp_output2"]
    with pytest.raises(IndexError, match="output 5"):
        sp[5]
    with pytest.raises(ValueError, match=r'name "sp_output4".*did you mean'):
        sp["sp_output4"]
    with pytest.raises(ValueError, match="several"):
        sym.Group([sp, sp])["sp_output1"]
    with pytest.raises(TypeError, match=r"index of a symbol chooses outputs: .* not \(slice.*mx.sym.slice or"):
        sp[:-1, 2:]


def test_group():
    a, b = sym.Variable("a"), sym.Variable("b")
    group = sym.Group([a + b, b])
    assert group.list_outputs() == ["_plus0_output", "b"] and group.name is None and group.list_attr() == {}
    assert group[0].name == "_plus0" and sym.Group([a]).name == "a"
    assert sym.Group([a + 2, b]).list_attr() == {"scalar": "2"}  # MXNet: those of the first output
    for wrong in ([], [a, 1], None):
        with pytest.raises(TypeError, match="Expected a list of symbols"):
            sym.Group(wrong)


# ---- composition ----------------------------------------------------------------------------------------------------
def test_composition_by_call_leaves_the_original_alone():
    net = sym.FullyConnected(sym.Variable("data"), name="n1", num_hidden=2)
    before = net.tojson()
    composed = net(data=sym.exp(sym.Variable("q"), name="e"), name="renamed")
    assert composed.list_arguments() == ["q", "n1_weight", "n1_bias"]
    assert composed.list_outputs() == ["renamed_output"]
    assert net(data=sym.Variable("z")).list_outputs() == ["n1_output"]
    assert net.tojson() == before


def test_composition_reaches_every_use():
    a, b = sym.Variable("a"), sym.Variable("b")
    y = (a * a + b)(a=b + 1)
    assert y.list_arguments() == ["b"]
    assert y.eval(b=mx.nd.array([2.0]))[0].asscalar() == 11


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net, a: net(dta=a), "'dta' not found; did you mean 'data'.*n1_weight"),
        (lambda net, a: net(a), "by argument name only"),
        (lambda net, a: net(data=1), "data=1 is not a Symbol"),
        (lambda net, a: net(data=sym.Group([a, a])), "group of 2 outputs"),
        (lambda net, a: sym.exp(a, a, a), "at most 1 inputs"),
        (lambda net, a: sym.exp(mx.nd.ones((1,))), "argument data must be a Symbol"),
        (lambda net, a: sym.exp(dta=a), "no input 'dta'.*did you mean 'data'"),
        (lambda net, a: sym.exp(a, data=a), "'data' is given twice"),
        (lambda net, a: sym.clip(a, 1, a_min=2, a_max=3), "'a_min' is given twice"),
        (lambda net, a: sym.clip(a, a_min=2), "required parameter 'a_max'"),
        (lambda net, a: sym.quadratic(a, aa=2), "no parameter 'aa'.*did you mean 'a'"),
        (lambda net, a: sym.quadratic(a, a="x"), "a='x' is not allowed; expected a number"),
        (lambda net, a: sym.concat(a, arg1=a), "by position; 'arg1' is given by name"),
        (lambda net, a: sym.concat(a, None), "is None"),
        (lambda net, a: sym.Activation(a, act_type="rlu"), "act_type='rlu'.*did you mean 'relu'"),
        (lambda net, a: sym.exp(sym.SliceChannel(a, num_outputs=2)), "group of 2 outputs"),
        (lambda net, a: sym.exp(a, name=3), "name=3 is not a string"),
        (lambda net, a: a + None, "NoneType"),
        (lambda net, a: a + np.ones(2), "expected Symbol or a number"),
        (lambda net, a: sym.Variable(3), "Expect a string"),
        (lambda net, a: sym.Variable("v", foo="x"), "__yourattr__"),
        (lambda net, a: sym.Variable("v", stype="cs"), "stype='cs'"),
        (lambda net, a: sym.Variable("v", dtype="flot32"), "did you mean 'float32'"),
        (lambda net, a: mx.AttrScope(a=1), "not a string"),
        (lambda net, a: net._set_attr(mood="x"), "no parameter 'mood'"),
        (lambda net, a: net._set_attr(num_hidden=3), "string values"),
        (lambda net, a: sym.sigmod(a), "did you mean 'sigmoid'"),
        (lambda net, a: a.sigmod(), "did you mean 'sigmoid'"),
        (lambda net, a: sym.contrib.quadratc(a), "did you mean 'quadratic'"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, message):
    net = sym.FullyConnected(sym.Variable("data"), name="n1", num_hidden=2)
    with pytest.raises(mx.MXNetError, match=message):
        call(net, sym.Variable("a"))


def max_of_two(s):
    return max(s, s + 1)


def test_a_symbol_has_no_value():
    a = sym.Variable("a")
    for use in (
        bool, lambda s: s.asnumpy(), lambda s: s.backward(), lambda s: s.copy(), lambda s: s and s, lambda s: s in [a + 1],
        max_of_two, lambda s: s.__iadd__(2), lambda s: s.__isub__(2), lambda s: s.__imul__(2), lambda s: s.__itruediv__(2),
        np.asarray, lambda s: mx.nd.array(s), lambda s: s.as_in_context(mx.cpu()), lambda s: s.wait_to_read(),
    ):  # fmt: skip
        with pytest.raises(mx.base.NotImplementedForSymbol, match="not implemented for Symbol") as caught:
            use(a)
        assert isinstance(caught.value, mx.MXNetError) and isinstance(caught.value, NotImplementedError)
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


def test_the_error_says_what_was_called():
    a = sym.Variable("a")
    with pytest.raises(mx.base.NotImplementedForSymbol) as caught:
        a += 2
    error = caught.value
    assert (error.function, error.alias, error.args) == ("__iadd__", "+=", ("<class 'int'>",))
    assert str(error).startswith("Function __iadd__ (namely operator \"+=\") with arguments (<class 'int'>) is not implemented")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    made = mx.base.NotImplementedForSymbol(len, None)
    assert str(made).startswith("Function len is not implemented for Symbol")


# ---- attributes -----------------------------------------------------------------------------------------------------
def test_variable_attributes():
    v = sym.Variable("v", shape=(2, 3), dtype="float16", lr_mult=2, wd_mult=0.5, init='["one", {}]', attr={"__foo__": "bar"},
                     stype="default", profiler_scope="p", __k__="z")  # fmt: skip
    assert v.list_attr() == {
        "__storage_type__": "0", "__init__": '["one", {}]', "__wd_mult__": "0.5", "wd_mult": "0.5", "__k__": "z",
        "__lr_mult__": "2", "lr_mult": "2", "__shape__": "(2, 3)", "__dtype__": "2", "__foo__": "bar",
        "__profiler_scope__": "p",
    }  # fmt: skip
    assert v.attr("lr_mult") == v.attr("__lr_mult__") == "2" and v.attr("nope") is None
    assert json.loads(v.tojson())["nodes"][0]["attrs"].keys() == v.list_attr().keys() - {"lr_mult", "wd_mult"}


def test_automatic_variables_get_the_attributes_of_their_node():
    fc = sym.FullyConnected(sym.Variable("x"), num_hidden=3, name="f", lr_mult="3", attr={"__a__": "1"})
    own = {"num_hidden": "3", "__lr_mult__": "3", "lr_mult": "3", "__a__": "1"}
    assert fc.attr_dict() == {"f": own, "f_weight": own, "f_bias": own}


def test_attributes_of_an_operator_and_its_argument_of_one_name():
    scale = sym.Variable("s", shape=(3, 1), init=mx.init.Constant(2))
    own = {"__init__": '["constant", {"value": 2}]', "__shape__": "(3, 1)"}
    assert sym.broadcast_mul(scale, sym.Variable("x"), name="s").attr_dict() == {"s": own}
    assert sym.FullyConnected(scale, num_hidden=2, name="s").attr_dict()["s"] == {**own, "num_hidden": "2"}


def test_attribute_scopes_nest():
    with mx.AttrScope(ctx_group="dev1", __data__="1"):
        with mx.AttrScope(__data__="2", __more__="3"):
            inner = sym.exp(sym.Variable("q"), name="e")
        outer = sym.exp(sym.Variable("r", attr={"__data__": "own"}), name="f")
    assert inner.list_attr() == {"ctx_group": "dev1", "__ctx_group__": "dev1", "__data__": "2", "__more__": "3"}
    assert outer.attr_dict()["r"]["__data__"] == "own" and outer.attr("__data__") == "1"
    assert sym.exp(sym.Variable("q")).list_attr() == {}


def test_attributes_set_on_a_copy_stay_there():
    s = sym.exp(sym.Variable("a"), name="e")
    s._set_attr(__foo__="1")
    c = copy.copy(s)
    c._set_attr(__foo__="2")
    assert (s.attr("__foo__"), c.attr("__foo__")) == ("1", "2")
    q = sym.Variable("q") * 2
    q._set_attr(scalar="3")
    assert q.eval(q=mx.nd.array([5]))[0].asscalar() == 15


# ---- text and files -------------------------------------------------------------------------------------------------
def test_debug_str():
    assert sym.Group([sym.Variable("x"), sym.Variable("x") + 1]).debug_str() == (
        "Symbol Outputs:\n\toutput[0]=x(0)\n\toutput[1]=_plusscalar0(0)\nVariable:x\nVariable:x\n--------------------\n"
        "Op:_plus_scalar, Name=_plusscalar0\nInputs:\n\targ[0]=x(0) version=0\nAttrs:\n\tscalar=1\n"
    )


def test_json_is_that_of_mxnet():
    assert (
        sym.FullyConnected(sym.Variable("x"), name="fc1", num_hidden=4).tojson()
        == """{
  "nodes": [
    {
      "op": "null", 
      "name": "x", 
      "inputs": []
    }, 
    {
      "op": "null", 
      "name": "fc1_weight", 
      "attrs": {"num_hidden": "4"}, 
      "inputs": []
    }, 
    {
      "op": "null", 
      "name": "fc1_bias", 
      "attrs": {"num_hidden": "4"}, 
      "inputs": []
    }, 
    {
      "op": "FullyConnected", 
      "name": "fc1", 
      "attrs": {"num_hidden": "4"}, 
      "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    }
  ], 
  "arg_nodes": [0, 1, 2], 
  "node_row_ptr": [0, 1, 2, 3, 4], 
  "heads": [[3, 0, 0]], 
  "attrs": {"mxnet_version": ["int", 10901]}
}"""
    )


def many_symbols():
    a, b = sym.Variable("a", shape=(2, 0)), sym.Variable("b", lr_mult=2)
    yield a
    yield small_net()
    yield sym.Group([2 * a - b, sym.SliceChannel(a, num_outputs=2)[1], b])
    yield sym.concat(a, b, dim=0).sum(axis=0).reshape((-1,)) ** 2
    yield (sym.sin(a) * b).gradient(["a", "b"])
    yield (sym.quadratic(a, a=1, b=2) * b).gradient(["a"]).gradient(["a", "b"])


@pytest.mark.parametrize("position", range(6))
def test_round_trips(position, tmp_path):
    symbol = list(many_symbols())[position]
    text = symbol.tojson()
    symbol.save(str(tmp_path / "s.json"))
    for other in (sym.load_json(text), sym.load(str(tmp_path / "s.json")), copy.deepcopy(symbol),
                  pickle.loads(pickle.dumps(symbol)), sym.fromjson(text.encode())):  # fmt: skip
        assert other.tojson() == text
        assert other.list_arguments() == symbol.list_arguments() and other.list_outputs() == symbol.list_outputs()


def test_a_gradient_that_was_loaded_computes_the_same():
    x = sym.Variable("x")
    gradient = sym.quadratic(sym.sin(x), a=1.5, b=2).gradient(["x"])
    value = mx.nd.array([0.3, -2.0])
    again = sym.load_json(gradient.tojson())
    np.testing.assert_array_equal(again.eval(x=value)[0].asnumpy(), gradient.eval(x=value)[0].asnumpy())


def test_casts_of_mixed_precision_are_left_out_of_files():
    y = sym.exp(sym.amp_cast(sym.Variable("x"), dtype="float16"), name="e")
    assert [n["op"] for n in json.loads(y.tojson())["nodes"]] == ["null", "exp"]
    assert [n["op"] for n in json.loads(y.tojson(remove_amp_cast=False))["nodes"]] == ["null", "amp_cast", "exp"]
    both = sym.amp_multicast(sym.exp(y), sym.Variable("z"), num_outputs=2, name="m")
    assert sym.load_json(both.tojson()).list_outputs() == both.list_outputs() == ["m_output0", "m_output1"]
    assert "amp_cast" not in both.tojson()


def node(op, name, inputs=(), **attrs):
    return {"op": op, "name": name, "attrs": attrs, "inputs": list(inputs)}


@pytest.mark.parametrize(
    ("nodes", "head", "message"),
    [
        (
            [node("null", "a"), node("exq", "e", [[0, 0, 0]])],
            [1, 0, 0],
            r"'exq' \(1; did you mean 'exp'\?\), which is not",
        ),
        ([node("null", "a"), node("sum", "e", [[0, 0, 0]], foo="1")], [1, 0, 0], "no parameter 'foo'"),
        ([node("null", "a"), node("clip", "e", [[0, 0, 0]], a_min="x", a_max="1")], [1, 0, 0], "a_min='x'"),
        ([node("null", "a"), node("exp", "e", [[0, 0, 0], [0, 0, 0]])], [1, 0, 0], "1 input"),
        (
            [node("null", "a"), node("exp", "e", [[0, 0, 0]]), node("exp", "f", [[1, 3, 0]])],
            [2, 0, 0],
            "output 3 of 'e'",
        ),
        ([node("null", "a"), node("exp", "e", [[0, 0, 0]])], [1, 7, 0], "output 7 of 'e'"),
    ],
)
def test_files_that_are_no_graph(nodes, head, message):
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [head]})
    with pytest.raises(mx.MXNetError, match=message):
        sym.load_json(text)


def test_wrong_files(tmp_path):
    for text in ("{}", "garbage"):
        with pytest.raises(mx.MXNetError, match=r"invalid symbol\.json"):
            sym.load_json(text)
    with pytest.raises(TypeError):
        sym.load_json(3)
    with pytest.raises(mx.MXNetError, match=os.strerror(errno.ENOENT)):
        sym.load(str(tmp_path / "absent"))


# ---- functions made from the registry -------------------------------------------------------------------------------
def test_functions_have_signatures_and_documentation():
    text = str(inspect.signature(sym.clip))
    assert text.startswith("(data") and "a_min" in text and "name=None" in text
    assert sym.clip.__name__ == "clip" and "Limit values" in sym.clip.__doc__ and "a_min : float, required" in sym.clip.__doc__
    assert str(inspect.signature(sym.concat)).startswith("(*data")
    assert sym.exp is sym.exp and "exp" in dir(sym) and "quadratic" in dir(sym.contrib) and "exp" in dir(sym.Variable("a"))
    assert not hasattr(sym, "no_such_operator") and not hasattr(sym, "__wrapped__")


def test_operators_of_a_user_are_there_at_once():
    @elementwise
    def test_symbol_halve(data, *, times: float = 1.0):
        """Halve."""
        return data / (2 * times)

    try:
        y = sym.test_symbol_halve(sym.Variable("x"), times=2)
        assert y.list_outputs() == ["test_symbol_halve0_output"]
        assert y.eval(x=mx.nd.array([8]))[0].asscalar() == 2

        @elementwise(override=True, name="test_symbol_halve")
        def other(data):
            return data * 3

        assert sym.test_symbol_halve(sym.Variable("x")).eval(x=mx.nd.array([8]))[0].asscalar() == 24
    finally:
        unregister("test_symbol_halve")
    assert not hasattr(sym, "test_symbol_halve")


def test_auxiliary_states():
    @kernel(aux=("seen",))
    def test_symbol_count(data, seen):
        """Return the data; the number of calls is counted in `seen`."""

    test_symbol_count.infer(lambda ins, outs: ([ins[0] or outs[0], (1,)], [ins[0] or outs[0]]))
    test_symbol_count.shape(lambda data, seen: data)

    @test_symbol_count.cpu
    def _(inputs, outputs):
        np.asarray(inputs[1])[...] += 1
        np.asarray(outputs[0])[...] = np.asarray(inputs[0])

    @test_symbol_count.gradient
    def _(F, heads, inputs, outputs):
        return [heads[0], None]

    try:
        y = sym.test_symbol_count(sym.test_symbol_count(sym.Variable("x"), name="c"), seen=sym.Variable("c_seen2"), name="d")
        assert y.list_arguments() == ["x"] and y.list_auxiliary_states() == ["c_seen", "c_seen2"]
        assert y.list_inputs() == ["x", "c_seen", "c_seen2"]
        assert y.infer_shape(x=(2, 3)) == ([(2, 3)], [(2, 3)], [(1,), (1,)])
        assert [n["inputs"] for n in json.loads(y.tojson())["nodes"] if n["op"] != "null"] == [
            [[0, 0, 0], [1, 0, 1]], [[2, 0, 0], [3, 0, 1]]]  # fmt: skip
        executor = y.simple_bind(mx.cpu(), x=(2,))
        executor.forward(is_train=True)
        executor.forward(is_train=True)
        assert {k: v.asscalar() for k, v in executor.aux_dict.items()} == {"c_seen": 2, "c_seen2": 2}
        with pytest.raises(ValueError, match="key `c_seen` is missing in `aux_states`; did you mean 'c_see'"):
            y.bind(mx.cpu(), {"x": mx.nd.ones((2,))}, aux_states={"c_see": mx.nd.ones((1,))})
    finally:
        unregister("test_symbol_count")


def test_composites_are_one_node_until_they_run():
    @composite
    def test_symbol_distance(F, lhs, rhs):
        """Sum of squared differences."""
        return F.sum(F.square(lhs - rhs))

    try:
        y = sym.test_symbol_distance(sym.Variable("a"), sym.Variable("b"), name="d")
        assert [n["op"] for n in json.loads(y.tojson())["nodes"]] == ["null", "null", "test_symbol_distance"]
        assert y.infer_shape(a=(2, 3), b=(2, 1)) == ([(2, 3), (2, 1)], [(1,)], [])
        assert y.eval(a=mx.nd.array([[1, 2]]), b=mx.nd.array([[3]]))[0].asscalar() == 5
    finally:
        unregister("test_symbol_distance")


# ---- CachedOp -------------------------------------------------------------------------------------------------------
def test_a_symbol_as_a_function_of_arrays():
    net = sym.BatchNorm(sym.Dropout(sym.Variable("x") * 2 + 1, p=0.5), fix_gamma=False, name="b")
    op = mx.nd.CachedOp(net)
    assert net.list_inputs() == ["x", "b_gamma", "b_beta", "b_moving_mean", "b_moving_var"]
    arrays = [mx.nd.array(np.arange(6.0).reshape(3, 2)), *(mx.nd.full((2,), v) for v in (1, 3, 0, 1))]
    arrays[0].attach_grad()
    plain = op(*arrays)
    np.testing.assert_allclose(plain.asnumpy(), (2 * arrays[0].asnumpy() + 1) / np.sqrt(1.001) + 3, rtol=1e-5)
    out = mx.nd.zeros((3, 2))
    assert op(*arrays, out=out) is out and (out == plain).asnumpy().all()
    mx.random.seed(1)  # of 64 seeds, one drops all elements
    with mx.autograd.record():
        op(*arrays).sum().backward()
    assert arrays[3].asnumpy().any() and arrays[0].grad.shape == (3, 2)  # the moving mean followed
    x = sym.Variable("x")
    pair = mx.nd.CachedOp(sym.Group([x + 1, x]), flags=[("static_alloc", True)])
    assert [a.asscalar() for a in pair(mx.nd.ones(1))] == [2, 1]
    for wrong in ((), (1,), tuple(arrays)):
        with pytest.raises(TypeError, match="CachedOp takes an NDArray for each of x; got"):
            pair(*wrong)
    with pytest.raises(TypeError, match="CachedOp takes a symbol"):
        mx.nd.CachedOp(3)


def test_arguments_by_mxnets_names():
    x, v = mx.nd.array([2, 3]), sym.Variable("v")
    assert mx.nd.power(base=x, exp=2).asnumpy().tolist() == mx.nd.power(x, exp=2).asnumpy().tolist() == [4, 9]
    for f in (sym.pow, sym.power):
        assert f(base=v, exp=2).eval(v=x)[0].asnumpy().tolist() == [4, 9]
    assert sym.maximum(left=v, right=2.5).eval(v=x)[0].asnumpy().tolist() == [2.5, 3]
    assert sym.minimum(v, right=v, name="least").name == "least" and sym.hypot(left=3, right=v) is not None
    assert mx.nd.random_uniform(0, 1, (2,), "cpu(1)", "float64").context == mx.cpu(1)
    assert mx.autograd.set_recording(is_recording=False) is False
    y, v = mx.nd.array([[3, -4], [0, 2]]), sym.Variable("v")
    found = (
        mx.nd.norm(y, 1, 0),
        y.norm(1, 0),
        sym.norm(v, 1, 0).eval(v=y)[0],
        sym.load_json(v.norm(1, 0).tojson()).eval(v=y)[0],
    )
    assert [a.asnumpy().tolist() for a in found] == [[3, 6]] * 4


def test_the_head_alone_is_over_open_inputs():
    x = sym.Variable("x")
    head = sym.split(sym.exp(x), num_outputs=2, name="two")._gen_atomic_symbol()
    assert head.list_arguments() == ["two_data"] and head.list_outputs() == ["two_output0", "two_output1"]
    assert x._gen_atomic_symbol().list_arguments() == ["x"]


def test_astype_takes_a_name_and_attributes():
    assert sym.Variable("x").astype("float16", name="half").list_outputs() == ["half_output"]
    assert sym.Variable("x").astype(dtype="int32", attr={"__kind__": "c"}).attr("__kind__") == "c"


@pytest.mark.parametrize("method, options, shape", [
    ("expand_dims", {"axis": 1}, (1, 1, 2, 3)), ("flatten", {}, (1, 6)),
    ("squeeze", {}, (2, 3)), ("squeeze", {"axis": 0}, (2, 3)),
])  # fmt: skip
def test_methods_that_reshape_take_inplace_as_in_mxnet(method, options, shape):
    """MXNet's methods of symbols accept it, so that a function serves arrays and symbols; it has no effect on the graph."""
    x = mx.sym.Variable("x")
    found = getattr(x, method)(inplace=True, name="y", **options)
    assert found.tojson() == getattr(x, method)(name="y", **options).tojson()
    assert found.infer_shape(x=(1, 2, 3))[1] == [shape]


def test_methods_that_reshape_like_another_take_its_mxnet_name():
    x, like = mx.nd.zeros((2, 6)), mx.nd.zeros((3, 4))
    assert x.reshape_like(rhs=like).shape == (3, 4)
    assert sym.Variable("x").reshape_like(rhs=sym.Variable("y")).infer_shape(x=(2, 6), y=(3, 4))[1] == [(3, 4)]


@pytest.mark.parametrize(
    ("name", "params", "inputs", "outputs"),
    [
        ("sort", {}, 1, ["output0"]),
        ("topk", {"ret_typ": "value"}, 1, ["output0"]),
        ("topk", {"ret_typ": "both"}, 1, ["output0", "output1"]),
        ("topk", {"ret_typ": "indices"}, 1, ["output"]),
        ("CTCLoss", {}, 2, ["output0"]),
        ("linalg.det", {}, 1, ["output0"]),
        ("contrib.quantize", {}, 3, ["output0", "output1", "output2"]),
        ("contrib.hawkesll", {}, 8, ["output", "out_state"]),
        ("contrib.calibrate_entropy", {}, 2, ["threshold", "divergence"]),
        ("_internal._histogram", {"bin_cnt": 2}, 1, ["output0", "output1"]),
    ],
)
def test_output_names_are_those_of_mxnet(name, params, inputs, outputs):
    """Programs find layers by them: ``net.get_internals()["sort0_output0"]``."""
    call = mx.sym
    for part in name.split("."):
        call = getattr(call, part)
    made = call(*[mx.sym.Variable(f"v{k}") for k in range(inputs)], **params, name="n")
    assert made.list_outputs() == [f"n_{k}" for k in outputs]


def test_variables_learn_how_they_begin():
    slope, variance, own = mx.sym.Variable("a"), mx.sym.Variable("v"), mx.sym.Variable("m", init=mx.init.One())
    net = mx.sym.LeakyReLU(mx.sym.Variable("x"), slope, act_type="prelu")
    net = mx.sym.BatchNorm(net, moving_mean=own, moving_var=variance)
    starts = {k: v["__init__"] for k, v in net.attr_dict().items() if "__init__" in v}
    assert starts == {"a": '["Constant", {"value": 0.25}]', "m": '["one", {}]', "v": '["one", {}]'}
    made = mx.nd.zeros((2,))
    mx.init.Xavier()(mx.init.InitDesc("a", net.attr_dict()["a"]), made)
    assert made.asnumpy().tolist() == [0.25, 0.25]


def test_numbered_inputs_are_counted_in_files():
    made = mx.sym.khatri_rao(mx.sym.Variable("x"), mx.sym.Variable("y"), name="n")
    assert made.attr_dict() == {"n": {"num_args": "2"}}
    assert mx.sym.amp_multicast(num_outputs=2, name="n").list_arguments() == ["n_data_0", "n_data_1"]


def test_parameters_are_written_as_given():
    """As MXNet writes them, whose exporters read ``int(attrs["axis"])``."""
    x = sym.Variable("x")
    total = sym.sum(x, axis=1, keepdims=1)
    assert (total.attr("axis"), total.attr("keepdims"), sym.sum(x, axis=(1,)).attr("axis")) == ("1", "1", "(1,)")
    again = sym.load_json(total.tojson())
    assert again.attr("axis") == "1" and again.infer_shape(x=(2, 3))[1] == [(2, 1)]
    assert sym.tile(x, reps=2).attr("reps") == "2" and sym.cast(x, dtype="float16").attr("dtype") == "float16"


def test_attributes_of_a_call_are_written_as_text():
    """As MXNet writes them; attributes of variables and of scopes are strings in both."""
    net = sym.FullyConnected(sym.Variable("x"), num_hidden=2, attr={"lr_mult": 2, "__k__": [1, 2]}, __n__=None, wd_mult=0.5)
    assert [net.attr(k) for k in ("lr_mult", "__lr_mult__", "__k__", "__n__", "wd_mult")] == ["2", "2", "[1, 2]", "None", "0.5"]
    assert sym.load_json(net.tojson()).attr_dict() == net.attr_dict()
    with pytest.raises(mx.errors.OpTypeError, match="is not a dict of strings"):
        sym.exp(sym.Variable("x"), attr={3: "a"})
