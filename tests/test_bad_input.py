"""What is wrong in a call is named by a clear error of the fitting Python type, and nothing is partly written.

The readers of files have their own tests (test_params_format.py, test_json_format.py), with damaged files of every kind.
"""

import json

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym

a, b = sym.Variable("a"), sym.Variable("b")
ONES = nd.ones((2, 3))


def recorded():
    """Return a variable and what was computed from it."""
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = x * x
    return x, y


def bound():
    """Return an executor of ``exp(a) * b`` with known arrays."""
    net = sym.elemwise_mul(sym.exp(a), b, name="m")
    args, grads = {"a": nd.zeros((2,)), "b": nd.ones((2,))}, {"a": nd.full((2,), 7), "b": nd.full((2,), 8)}
    return net.bind(mx.cpu(), args, args_grad=grads)


def named_twice():
    return sym.Variable("x") + sym.Variable("x")


def json_with(**changes):
    """Return the JSON of ``clip(a)`` with fields of its operator node changed."""
    graph = json.loads(sym.clip(a, a_min=0, a_max=1, name="c").tojson())
    graph["nodes"][1] |= changes
    return json.dumps(graph)


SHAPES = [
    (lambda: nd.elemwise_add(ONES, nd.ones((3, 2))), ValueError, ["elemwise_add", "lhs", "(2, 3)", "rhs", "(3, 2)"]),
    (lambda: ONES + nd.ones((2,)), ValueError, ["broadcast_add", "(2, 3)", "(2,)"]),
    (lambda: nd.dot(ONES, ONES), ValueError, ["dot", "(2, 3)"]),
    (lambda: nd.batch_dot(nd.ones((2, 2, 2)), nd.ones((3, 2, 2))), ValueError, ["batch_dot", "lhs", "(2,)", "rhs", "(3,)"]),
    (lambda: nd.concat(ONES, nd.ones((2, 4)), dim=0), ValueError, ["Concat", "(2, 3)", "(2, 4)"]),
    (lambda: nd.stack(ONES, nd.ones((3, 3))), ValueError, ["stack", "(2, 3)", "(3, 3)"]),
    (lambda: nd.reshape(ONES, shape=(4,)), ValueError, ["Reshape", "(2, 3)", "(4,)"]),
    (lambda: nd.broadcast_to(ONES, shape=(2, 4)), ValueError, ["broadcast_to", "(2, 3)", "(2, 4)"]),
    (lambda: nd.split(ONES, num_outputs=2, axis=1), ValueError, ["SliceChannel", "(2, 3)", "2"]),
    (lambda: nd.squeeze(ONES, axis=0), ValueError, ["squeeze", "(2, 3)"]),
    (lambda: nd.transpose(ONES, axes=(0, 0)), ValueError, ["transpose", "(0, 0)"]),
    (lambda: nd.sum(ONES, axis=2), IndexError, ["sum", "axis=2", "-2 to 1"]),
    (lambda: nd.sum(ONES, axis=(0, -2)), ValueError, ["sum", "(0, -2)"]),
    (lambda: nd.expand_dims(ONES, axis=4), IndexError, ["expand_dims", "axis=4"]),
    (lambda: nd.FullyConnected(ONES, nd.ones((4, 2)), num_hidden=4, no_bias=True), ValueError, ["weight", "(4, 2)", "(4, 3)"]),
    (lambda: nd.FullyConnected(ONES, nd.ones((4, 3)), nd.ones((3,)), num_hidden=4), ValueError, ["bias", "(3,)", "(4,)"]),
    (lambda: nd.where(nd.ones((3,)), ONES, ONES), ValueError, ["where", "(3,)", "(2, 3)"]),
    (lambda: nd.ones((2,)).broadcast_like(nd.ones((3,))), ValueError, ["broadcast_like", "(2,)", "(3,)"]),
]  # fmt: skip

TYPES = [
    (lambda: ONES + nd.ones((2, 3), dtype="float64"), TypeError, ["broadcast_add", "float32", "float64"]),
    (lambda: nd.concat(ONES, ONES.astype("int32"), dim=0), TypeError, ["Concat", "float32", "int32"]),
    (lambda: nd.dot(ONES.astype("int32"), ONES.T.astype("int32")), TypeError, ["dot", "int32"]),
    (lambda: nd.softmax(ONES.astype("int8")), TypeError, ["softmax", "int8"]),
    (lambda: nd.cast(ONES, dtype="float31"), ValueError, ["Cast", "dtype", "float31"]),
    (lambda: nd.zeros((2,), dtype="complex64"), TypeError, ["complex64"]),
    (lambda: nd.exp(np.ones(2)), TypeError, ["exp", "data", "NDArray"]),
    (lambda: nd.exp([1, 2]), TypeError, ["exp", "data", "[1, 2]"]),
    (lambda: nd.concat(ONES, 3), TypeError, ["Concat", "3"]),
    (lambda: sym.exp(ONES), TypeError, ["exp", "data", "Symbol"]),
    (lambda: nd.exp(a), TypeError, ["exp", "data", "Symbol a"]),
    (lambda: nd.maximum(ONES, "3"), TypeError, ["maximum", "str"]),
]  # fmt: skip

PARAMETERS = [
    (lambda: nd.clip(ONES, a_min=0), TypeError, ["clip", "a_max", "missing"]),
    (lambda: nd.clip(ONES, a_min="x", a_max=1), ValueError, ["clip", "a_min", "'x'"]),
    (lambda: nd.clip(ONES, a_min=0, a_max=1, a_mid=2), AttributeError, ["clip", "a_mid", "a_min", "a_max"]),
    (lambda: nd.clip(ONES, 0, 1, a_max=2), TypeError, ["clip", "a_max", "twice"]),
    (lambda: nd.Activation(ONES, act_type="rely"), ValueError, ["act_type", "rely", "relu"]),
    (lambda: nd.sum(ONES, axis="x"), ValueError, ["sum", "axis", "'x'"]),
    (lambda: nd.sum(ONES, keepdims="maybe"), ValueError, ["sum", "keepdims", "maybe"]),
    (lambda: nd.norm(ONES, ord=3), ValueError, ["norm", "ord=3", "1, 2"]),
    (lambda: nd.slice(ONES, begin=(0,), end=(1,), step=(0,)), ValueError, ["slice", "step"]),
    (lambda: nd.repeat(ONES, repeats=-1), ValueError, ["repeat", "repeats", "-1"]),
    (lambda: nd.split(ONES, num_outputs=0), ValueError, ["SliceChannel", "num_outputs=0", "1"]),
    (lambda: nd.FullyConnected(ONES, ONES, num_hidden=0, no_bias=True), ValueError, ["FullyConnected"]),
    (lambda: sym.clip(a, a_min=0), TypeError, ["clip", "a_max", "missing"]),
    (lambda: sym.Activation(a, act_type="rely"), ValueError, ["act_type", "rely", "relu"]),
]  # fmt: skip

NAMES_AND_ARITY = [
    (lambda: nd.sigmod(ONES), AttributeError, ["sigmod", "sigmoid"]),
    (lambda: sym.sigmod(a), AttributeError, ["sigmod", "sigmoid"]),
    (lambda: nd.contrib.quadratc(ONES), AttributeError, ["quadratc", "quadratic"]),
    (lambda: mx.op.get("sigmod"), KeyError, ["sigmod", "sigmoid"]),
    (lambda: nd.exp(), TypeError, ["exp", "data"]),
    (lambda: nd.exp(ONES, None, None, ONES), TypeError, ["exp", "1", "4"]),
    (lambda: nd.elemwise_add(ONES), TypeError, ["elemwise_add", "rhs"]),
    (lambda: nd.elemwise_add(ONES, ONES, lhs=ONES), TypeError, ["elemwise_add", "lhs", "twice"]),
    (lambda: nd.FullyConnected(ONES, ONES, ONES, num_hidden=2, no_bias=True), TypeError, ["FullyConnected", "bias"]),
    (lambda: nd.concat(), TypeError, ["Concat"]),
    (lambda: nd.concat(ONES, num_args=2), TypeError, ["Concat", "num_args=2"]),
    (lambda: sym.exp(a, a), TypeError, ["exp"]),
    (lambda: sym.exp(a)(c=b), ValueError, ["c", "a"]),
    (lambda: sym.Variable(3), TypeError, ["3"]),
    (lambda: sym.Group([a, 1]), TypeError, ["1"]),
    (lambda: sym.Group([a, b])["c"], ValueError, ["c"]),
    (lambda: sym.Group([a, b])[2], IndexError, ["2"]),
    (lambda: a.shapes, AttributeError, ["shapes"]),
]  # fmt: skip

DEVICES_AND_REQUESTS = [
    (lambda: mx.Context("tpu", 0), ValueError, ["tpu", "cpu", "gpu"]),
    (lambda: nd.zeros((2,), ctx="cpu"), TypeError, ["cpu"]),
    (lambda: sym.exp(a).simple_bind("cpu", a=(2,)), TypeError, ["cpu"]),
    (lambda: sym.exp(a).simple_bind(mx.cpu(), a=(2,), grad_req="writ"), ValueError, ["a", "writ", "write"]),
    (lambda: sym.exp(a).simple_bind(mx.cpu(), a=(2,), grad_req=["add", "add"]), ValueError, ["2", "a"]),
    (lambda: sym.exp(a).simple_bind(mx.cpu(), a=(2,), grad_req={"c": "add"}), ValueError, ["c"]),
    (lambda: sym.exp(a).simple_bind(mx.cpu(), a=(2,), grad_req=1), TypeError, ["grad_req", "1"]),
    (lambda: nd.ones((2,)).attach_grad("ad"), ValueError, ["ad", "add"]),
    (lambda: autograd.mark_variables([ONES], [ONES], "ad"), ValueError, ["ad", "add"]),
]  # fmt: skip

GRAPHS = [
    (lambda: (a + b).infer_shape(a=(2,), b=(3,)), ValueError, ["_plus", "(2,)", "(3,)", "a", "b"]),
    (lambda: (a + b).infer_type(a="float32", b="int32"), TypeError, ["float32", "int32"]),
    (lambda: (a + b).infer_shape(c=(2,)), ValueError, ["c", "a, b"]),
    (lambda: sym.exp(a).infer_shape(a="x"), TypeError, ["a", "str"]),
    (lambda: (sym.Variable("v", shape=(2,)) + b).infer_shape(b=(3,)), ValueError, ["v", "(2,)", "(3,)"]),
    (lambda: sym.exp(a).simple_bind(mx.cpu()), ValueError, ["simple_bind", "a"]),
    (lambda: (a + b).bind(mx.cpu(), {"a": ONES}), ValueError, ["b", "missing"]),
    (lambda: (a + b).bind(mx.cpu(), [ONES]), ValueError, ["1", "2", "a, b"]),
    (lambda: (a + b).bind(mx.cpu(), {"a": ONES, "b": nd.ones((3, 2))}), ValueError, ["(2, 3)", "(3, 2)"]),
    (lambda: (a + b).bind(mx.cpu(), {"a": ONES, "b": ONES.astype("int32")}), TypeError, ["float32", "int32"]),
    (lambda: (a + b).bind(mx.cpu(), {"a": ONES, "b": 1}), TypeError, ["b", "1"]),
    (lambda: sym.exp(a).bind(mx.cpu(), {"a": ONES}, args_grad={"a": nd.ones((3,))}), ValueError, ["a", "(3,)", "(2, 3)"]),
    (lambda: named_twice().bind(mx.cpu(), {"x": ONES}), ValueError, ["x"]),
    (lambda: named_twice().simple_bind(mx.cpu(), x=(2,)), ValueError, ["x"]),
    (lambda: bound().forward(c=nd.ones((2,))), TypeError, ["c"]),
    (lambda: bound().forward(a=nd.ones((3,))), ValueError, ["a", "(2,)", "(3,)"]),
    (lambda: bound().copy_params_from({"c": nd.ones((2,))}), ValueError, ["c"]),
    (lambda: bound().backward(), RuntimeError, ["head gradients"]),
    (lambda: bound().reshape(a=(5,)), ValueError, ["a"]),
    (lambda: bound().set_monitor_callback(3), TypeError, ["3"]),
]  # fmt: skip

FILES = [
    (lambda: sym.load_json("{"), Exception, ["symbol.json", "column 2"]),
    (lambda: sym.load_json(json_with(op="clap")), Exception, ["clap", "clip"]),
    (lambda: sym.load_json(json_with(inputs=[[7, 0, 0]])), Exception, ["7"]),
    (lambda: sym.load_json(json_with(attrs={"a_min": "0"})), Exception, ["clip", "a_max"]),
    (lambda: sym.load_json(json_with(attrs={"a_min": "0", "a_max": "one"})), Exception, ["clip", "a_max", "one"]),
    (lambda: sym.load("does not exist.json"), Exception, ["does not exist.json"]),
    (lambda: nd.load("does not exist.params"), FileNotFoundError, ["does not exist.params"]),
    (lambda: nd.load_frombuffer(b"no such file"), Exception, []),
    (lambda: nd.save("x.nd", [ONES, 2]), TypeError, ["1", "int"]),
    (lambda: nd.save("x.nd", {3: ONES}), TypeError, ["3"]),
]  # fmt: skip

ALL = {
    "shape": SHAPES, "type": TYPES, "parameter": PARAMETERS, "name": NAMES_AND_ARITY, "device": DEVICES_AND_REQUESTS,
    "graph": GRAPHS, "file": FILES,
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [pytest.param(*row, id=f"{name}{i}") for name, rows in ALL.items() for i, row in enumerate(rows)],
)
def test_an_error_names_what_is_wrong(call, kind, words):
    with pytest.raises(mx.MXNetError) as caught:
        call()
    assert isinstance(caught.value, kind), repr(caught.value)
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, f"{missing} not in: {caught.value}"


# --------------------------------------------------------------------------------------------------------------------
# Nothing is partly written
# --------------------------------------------------------------------------------------------------------------------
def fails(call):
    with pytest.raises(mx.MXNetError):
        call()


@pytest.mark.parametrize(
    "write",
    [
        lambda x: nd.exp(ONES, out=x),
        lambda x: nd.exp(nd.ones((4,), dtype="float64"), out=x),
        lambda x: nd.split(nd.ones((2, 4)), num_outputs=2, axis=0, out=[x, nd.zeros((5,))]),
        lambda x: nd.elemwise_add(x, ONES, out=x),
        lambda x: x.__iadd__(ONES),
        lambda x: x.__imul__(nd.ones((4,), dtype="int32")),
        lambda x: x.__setitem__(slice(0, 2), ONES),
        lambda x: x.__setitem__(slice(None), [1, 2, 3]),
        lambda x: x.__setitem__(slice(None), "text"),
        lambda x: x.__setitem__([0, 1, 9], 5),
        lambda x: x.__setitem__(nd.array([0, -9]), 5),
        lambda x: ONES.copyto(x),
        lambda x: nd.clip(x, a_min=0, a_max="one", out=x),
    ],
)
def test_a_refused_call_leaves_its_target_alone(write):
    x = nd.array([1, 2, 3, 4])
    fails(lambda: write(x))
    assert x.asnumpy().tolist() == [1, 2, 3, 4] and x.dtype == np.float32


def test_a_refused_backward_leaves_gradients_alone():
    x, y = recorded()
    x.grad[:] = 7
    fails(lambda: y.backward(nd.ones((3,))))
    fails(lambda: y.backward(nd.ones((2,), dtype="int32")))
    assert x.grad.asnumpy().tolist() == [7, 7]
    y.backward(nd.array([1, 10]))  # the graph is still there
    assert x.grad.asnumpy().tolist() == [2, 40]


def test_a_refused_forward_leaves_the_executor_alone():
    ex = bound()
    ex.forward(is_train=True)
    for wrong in ({"b": nd.ones((3,))}, {"c": nd.ones((2,))}, {"b": "text"}, {"b": nd.ones((2, 2))}):
        fails(lambda wrong=wrong: ex.forward(is_train=True, a=nd.full((2,), 5), **wrong))
        assert ex.arg_dict["a"].asnumpy().tolist() == [0, 0] and ex.arg_dict["b"].asnumpy().tolist() == [1, 1]
        assert ex.outputs[0].asnumpy().tolist() == [1, 1]
    for heads in ([nd.ones((3,))], ["text"]):
        fails(lambda heads=heads: ex.backward(heads))
        assert ex.grad_dict["a"].asnumpy().tolist() == [7, 7] and ex.grad_dict["b"].asnumpy().tolist() == [8, 8]
    for params in ({"a": nd.ones((2,)), "b": nd.ones((3,))}, {"a": nd.ones((2,)), "c": nd.ones((2,))}):
        fails(lambda params=params: ex.copy_params_from(params))
        assert ex.arg_dict["a"].asnumpy().tolist() == [0, 0]
    ex.backward([nd.ones((2,))])
    assert ex.grad_dict["b"].asnumpy().tolist() == [1, 1]


def test_a_refused_bind_writes_nothing():
    args, grads = {"a": nd.ones((2,)), "b": nd.ones((3,))}, {"a": nd.full((2,), 7)}
    fails(lambda: (a + b).bind(mx.cpu(), args, args_grad=grads))
    assert grads["a"].asnumpy().tolist() == [7, 7] and args["a"].asnumpy().tolist() == [1, 1]


def test_a_refused_save_keeps_the_file(tmp_path):
    path = str(tmp_path / "x.nd")
    nd.save(path, [ONES])
    before = (tmp_path / "x.nd").read_bytes()
    fails(lambda: nd.save(path, [ONES, 2]))
    fails(lambda: nd.save(path, {"a": ONES, 3: ONES}))
    assert (tmp_path / "x.nd").read_bytes() == before
    net = str(tmp_path / "x.json")
    sym.exp(a).save(net)
    assert sym.load(net).list_arguments() == ["a"]


def test_a_refused_composition_leaves_the_symbol_alone():
    net = sym.exp(a, name="e")
    before = net.tojson()
    fails(lambda: net(c=b))
    fails(lambda: net._compose(c=b))
    fails(lambda: net._set_attr(lr_mult=2))
    assert net.tojson() == before


def test_a_refused_operator_is_not_registered():
    from mxop.op import elementwise

    known = set(mx.op.names())
    with pytest.raises(mx.MXNetError, match="exp"):

        @elementwise(name="exp")
        def other_exp(data):
            return data

    assert nd.exp(nd.zeros((1,))).asscalar() == 1
    assert set(mx.op.names()) == known
