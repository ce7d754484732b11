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
    (lambda: nd.sum(ONES, axis=(0, None)), IndexError, ["sum", "axis=None", "-2 to 1"]),
    (lambda: nd.transpose(ONES, axes=(None, 0)), IndexError, ["transpose", "=None", "-2 to 1"]),
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
    (lambda: sym.FullyConnected(a, num_hidden=0), ValueError, ["FullyConnected", "num_hidden=0", "1"]),
    (lambda: sym.Embedding(a, input_dim=0, output_dim=2), ValueError, ["Embedding", "input_dim=0", "1"]),
    (lambda: sym.Embedding(a, input_dim=2, output_dim=-1), ValueError, ["Embedding", "output_dim=-1", "1"]),
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
    (lambda: nd.concat(), TypeError, ["Concat", "one input or more, 0 given"]),
    (lambda: sym.exp(nd.ones((9, 9))), TypeError, ["exp", "data", "got <NDArray of shape (9, 9)>"]),
    (lambda: nd.exp([1] * 9999), TypeError, ["exp", "data", "[1, 1,", "..."]),
    (lambda: nd.concat(ONES, num_args=2), TypeError, ["Concat", "num_args=2"]),
    (lambda: nd.softmax_cross_entropy(nd.ones((2, 3)), nd.ones(5)), ValueError,
     ["operator softmax_cross_entropy", "label", "(5,)", "(2,)"]),
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
    (lambda: named_twice().bind(mx.cpu(), [ONES, ONES]), ValueError, ["x"]),
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

MANY = 100_000_000  # outputs that a few bytes ask for


def graph_of(op, inputs=1, **attrs):
    """Return the JSON of a graph of one operator."""
    attrs = {name: str(value) for name, value in attrs.items()}
    nodes = [{"op": "null", "name": "x", "inputs": []},
             {"op": op, "name": "n", "attrs": attrs, "inputs": [[0, 0, 0]] * inputs}]  # fmt: skip
    return json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]})


def many_splits():
    """Return the JSON of a graph whose nodes have the most outputs that one may have, each."""
    graph = json.loads(graph_of("SliceChannel", num_outputs=1 << 16))
    graph["nodes"] += [graph["nodes"][1]] * 50
    return json.dumps(graph)


def read_only_gradient():
    grad = np.zeros(2, "float32")
    grad.flags.writeable = False
    return sym.exp(a).bind(mx.cpu(), {"a": nd.ones(2)}, args_grad={"a": nd.from_numpy(grad)})


GROWTH = [
    (lambda: sym.load_json(graph_of("SliceChannel", num_outputs=MANY)), ValueError, ["'n'", str(MANY), "MXOP_MAX_OUTPUTS"]),
    (lambda: sym.load_json(graph_of("_split_v2", sections=MANY, indices="()")), ValueError, [str(MANY), "65536"]),
    (lambda: sym.load_json(graph_of("_backward_add_n", forward_inputs=MANY)), ValueError, [str(MANY), "239"]),
    (lambda: sym.load_json(graph_of("_backward_exp", forward_inputs=MANY)), ValueError, [str(MANY), "exp", "1"]),
    (lambda: sym.load_json(many_splits()), ValueError, ["more outputs than its text explains", "65536"]),
    (lambda: sym.split(a, num_outputs=MANY), ValueError, ["SliceChannel", str(MANY), "65536"]),
    (lambda: sym.load_json(graph_of("_backward_" * 10_000 + "exp")), AttributeError, ["is not registered"]),
    (lambda: sym.Concat(num_args=MANY), ValueError, ["Concat", str(MANY), "65536"]),
    (lambda: nd.split(nd.empty((2, 0)), num_outputs=MANY), ValueError, ["SliceChannel", str(MANY), "65536"]),
    (lambda: nd.split_v2(nd.empty((2, 0)), MANY, axis=1), ValueError, ["_split_v2", str(MANY), "65536"]),
    (lambda: nd._internal._concat_grad(ONES, parts=-1), ValueError, ["_concat_grad", "-1"]),
    (lambda: nd.zeros((2**50,)), MemoryError, ["4503599627370496"]),
    (lambda: nd.arange(2**50), MemoryError, ["nd.arange"]),
    (lambda: nd.zeros((2**63,)), ValueError, ["9223372036854775808", "too large"]),
    (lambda: nd.eye(3, 2**63 // 3 * 2 + 2), ValueError, ["(3, 6148914691236517206)", "too large"]),  # 2**64 + 2 elements
    (lambda: nd.tile(nd.ones((3, 3)), reps=(2**32, 2**32)), ValueError, ["(12884901888, 12884901888)", "too large"]),
    (lambda: nd.reshape(ONES, shape=(2**63, -1)), ValueError, ["Reshape", "9223372036854775808", "integers"]),
    (lambda: sym.exp(a).simple_bind(mx.cpu(), a=(2**40, 2**40)), ValueError, ["too large"]),
]  # fmt: skip

SPELLINGS = [
    (lambda: nd.sum(ONES, axis="1_0"), ValueError, ["sum", "axis", "'1_0'"]),
    (lambda: nd.reshape(ONES, shape="(1_0, -1)"), ValueError, ["Reshape", "shape", "(1_0, -1)"]),
    (lambda: nd.clip(ONES, a_min="1_0", a_max=11), ValueError, ["clip", "a_min", "'1_0'"]),
    (lambda: nd.reshape(ONES, shape="{2, 3}"), ValueError, ["Reshape", "shape", "{2, 3}"]),
    (lambda: nd.transpose(ONES, axes="0,,"), ValueError, ["transpose", "axes", "'0,,'"]),
    (lambda: nd.sum(ONES, axis="(" * 100_000), ValueError, ["sum", "axis", "((("]),
    (lambda: nd.cast(ONES, dtype="1_000"), ValueError, ["Cast", "dtype", "1_000"]),
    (lambda: nd._internal._zeros_without_dtype(shape=(2,), dtype=100), TypeError, ["dtype", "100"]),
    (lambda: nd._internal._zeros_without_dtype(shape=(2,), dtype=2**40), TypeError, ["dtype", "1099511627776"]),
    (lambda: nd.zeros((2,), dtype="f4,\0"), TypeError, ["dtype", "f4,"]),
    (lambda: nd._internal._getitem(ONES, key="0,,"), ValueError, ["'0,,'", "0:3:1"]),
    (lambda: nd.arange(float("inf")), ValueError, ["nd.arange", "inf", "finite"]),
    (lambda: nd.arange(0, 1, 1e-320), ValueError, ["nd.arange", "finite"]),
    (lambda: sym.arange(0, float("inf")).infer_shape(), ValueError, ["_arange", "inf", "finite"]),
    (lambda: sym.arange(0, "inf").infer_shape(), ValueError, ["_arange", "inf", "finite"]),
    (lambda: nd._internal._backward_exp(ONES, ONES, ONES), TypeError, ["_backward_exp", "2", "3"]),
    (lambda: nd._internal._backward_exp(ONES, ONES, wanted=(5,)), ValueError, ["_backward_exp", "(5,)", "1 inputs"]),
    (lambda: sym._internal._backward_exp(a, b, a), TypeError, ["_backward_exp", "2", "3"]),
    (lambda: mx.op.get(3), TypeError, ["3", "string"]),
    (lambda: nd.load("x\0y"), ValueError, ["nd.load", "zero character"]),
    (lambda: nd.save("x\0y", [ONES]), ValueError, ["nd.save", "zero character"]),
    (lambda: sym.load("x\0y"), ValueError, ["sym.load", "zero character"]),
    (lambda: a.save("\ud800"), ValueError, ["Symbol.save", "ud800"]),
    (lambda: mx.library.load("x\0y"), ValueError, ["library.load", "zero character"]),
    (lambda: ONES * 10**400, ArithmeticError, ["10000", "too large"]),
    (lambda: 10**400 - ONES, ArithmeticError, ["10000", "too large"]),
    (lambda: nd.power(10**5000, 10**400), ArithmeticError, ["power", "too large"]),
    (lambda: nd.divide(1, 0), ZeroDivisionError, ["divide(1, 0)", "division by zero"]),
    (lambda: len(nd.ones(2).sum().reshape(())), TypeError, ["len", "0-d"]),
    (lambda: bool(ONES), ValueError, ["truth value", "more than one", "use x.any() or x.all()"]),
    (lambda: nd.exp([1, 2]), TypeError, ["exp: argument data", "NDArray", "[1, 2]", "mx.nd.array()"]),
    (lambda: nd.take(ONES, np.ones(2)), TypeError, ["take: argument indices", "NDArray", "mx.nd.array()"]),
    (lambda: nd.concat(ONES, 3), TypeError, ["Concat: argument 1", "got 3", "mx.nd.array()"]),
    (lambda: nd.FullyConnected(ONES, ONES, num_hidden=2), TypeError, ["missing: bias; no_bias=True leaves it out"]),
    (lambda: nd.zeros((0, 3)), ValueError, ["nd.zeros", "(0, 3)", "with mx.util.np_shape(True):"]),
    (lambda: nd.zeros(2, 3), TypeError, ["nd.zeros: ctx=3", "a shape is one tuple: nd.zeros((2, 3))"]),
    (lambda: nd.ones(2, 3), TypeError, ["nd.ones: ctx=3", "a shape is one tuple: nd.ones((2, 3))"]),
    (lambda: nd.zeros(2, "float32"), TypeError, ["nd.zeros: ctx='float32'", "a type is given as dtype="]),
    (lambda: nd.zeros(2, np.dtype("int64")), TypeError, ["nd.zeros: ctx=", "a type is given as dtype="]),
    (lambda: nd.array([1], np.int32), TypeError, ["nd.array: ctx=", "a type is given as dtype="]),
    (lambda: nd.random.normal(0, 1, 2, 2), TypeError, ["nd.random.normal: dtype=2", "a shape is one tuple: shape=(2, 3)"]),
    (lambda: sym.random.uniform(0, 1, 2, 2), TypeError, ["sym.random.uniform: dtype=2", "a shape is one tuple"]),
    (lambda: nd.Activation(ONES), TypeError, ["parameter 'act_type' ({'relu', 'sigmoid', ", "}) is missing"]),
    (lambda: nd.clip(ONES, a_min=0, a_max=1, a_mid=2), TypeError, ["clip", "a_mid"]),
    (lambda: nd.take(ONES, ONES + 8, mode="raise"), IndexError, ["index 9.0 at position 0", "a dimension of size"]),
    (lambda: nd.FullyConnected(ONES, nd.ones((3, 7)), ONES, num_hidden=3), ValueError, ["; expected (3, ", "by the data"]),
    (lambda: nd.FullyConnected(ONES, nd.ones((2, 7)), ONES, num_hidden=3), ValueError, ["expected (3, ?) by num_hidden"]),
    (lambda: mx.optimizer.get_updater(mx.optimizer.SGD())(0, None, ONES), ValueError, ["gradient is None", "attach_grad()"]),
    (lambda: nd.Dense, AttributeError, ["did you mean 'FullyConnected'?"]),
    (lambda: nd.vstack, AttributeError, ["did you mean 'concat'?"]),
    (lambda: nd.random.rand, AttributeError, ["did you mean 'uniform'?"]),
    (lambda: mx.autograd.no_grad, AttributeError, ["did you mean 'pause'?"]),
    (lambda: nd.Conv, AttributeError, ["did you mean 'Convolution'?"]),
    (lambda: nd.Convolution(nd.ones((1, 1, 9, 9)), nd.ones((2, 1, 5)), kernel=5, pad=2, num_filter=2, no_bias=True), ValueError,
     ["(1, 1, 9, 9); expected 3 dimensions, (batch, channels, size0) for kernel=(5,), pad=(2,)"]),
    (lambda: ONES.numpy(), AttributeError, ["'NDArray' object has no attribute 'numpy'; did you mean 'asnumpy'?"]),
    (lambda: ONES.to("cuda"), AttributeError, ["did you mean 'as_in_context' or 'astype'?"]),
    (lambda: ONES.requires_grad_(), AttributeError, ["did you mean 'attach_grad'?"]),
    (lambda: nd.MaxPool2D, AttributeError, ["did you mean 'Pooling'?"]),
    (lambda: nd.avg_pool2d, AttributeError, ["did you mean 'Pooling'?"]),
    (lambda: nd.batch_norm, AttributeError, ["did you mean 'BatchNorm'?"]),
    (lambda: nd.masked_fill, AttributeError, ["did you mean 'where'?"]),
    (lambda: nd.tril, AttributeError, ["it is NumPy's np.tril, which takes NDArrays, too"]),
    (lambda: sym.tril, AttributeError, ["module 'mxop.symbol' has no operator 'tril'; did you mean"]),
    (lambda: a["a_"], ValueError, ["cannot find output"]),
    (lambda: sym.exp(a + b, name="e")["a"], ValueError, ["cannot find output", "which is one of get_internals()"]),
    (lambda: sym.exp(a, name="fc1").get_internals()["fc1"], ValueError, ["did you mean 'fc1_output'?"]),
    (lambda: sym.exp(a).eval(b=ONES), ValueError, ["'a' has no array", "key `a` is missing in `args`"]),
    (lambda: sym.exp(a).bind(mx.cpu(), [ONES]).forward(a=nd.ones((7, 2))), ValueError, ["(7, 2); reshape() returns"]),
    (lambda: bound_norm().copy_params_from({"bn_moving_var": nd.ones(2)}), ValueError, ["it belongs to aux_params"]),
    (lambda: bound_norm().copy_params_from({}, {"bn_beta": nd.ones(2)}), ValueError, ["it belongs to arg_params"]),
    (lambda: a.simple_bind(mx.cpu(), a=(2,)).backward(), mx.MXNetError, ["not that of a loss function (as SoftmaxOutput"]),
    (lambda: nd.load_frombuffer(a.tojson().encode()), mx.MXNetError, ["the magic number", "; mx.sym.load reads symbols"]),
    (lambda: nd.load_frombuffer(b"a, b, c, d"), mx.MXNetError, ["the magic number", "; mx.nd.load reads .params, .npy and"]),
    (lambda: sym.load_json(nd.save_tobuffer(ONES)), mx.MXNetError, ["invalid symbol.json", "; mx.nd.load reads .params"]),
    (lambda: [nd.from_dlpack(c) for c in [nd.to_dlpack_for_read(ONES)] * 2], ValueError, ["used_dltensor", "was used"]),
    (lambda: mx.optimizer.get_updater(mx.optimizer.SGD())(0, np.ones(2), ONES), TypeError, ["Updater", "mx.nd.array()"]),
    (lambda: mx.optimizer.get_updater("sgd"), TypeError, ["Updater", "mx.optimizer.create('sgd')"]),
    (lambda: (a + b).get_internals()["_plus"], ValueError, ["did you mean '_plus"]),
    (lambda: mx.metric.Accuracy().update([ONES], [ONES, ONES]), ValueError, ["number of arrays of the labels is 1, that"]),
    (lambda: mx.cpu(2**31), ValueError, ["cpu", "2147483648"]),
    (lambda: mx.cpu("0"), TypeError, ["cpu", "'0'"]),
    (lambda: np.add(ONES, ONES, out="x"), TypeError, ["add"]),
    (lambda: nd.exp(ONES, out="x"), TypeError, ["exp", "out", "str"]),
    (lambda: ONES[::0], ValueError, ["step"]),
    (lambda: read_only_gradient(), ValueError, ["Error in operator", "read-only"]),
    (lambda: ONES.__reduce_ex__(5)[0](b"123", "float32", (2,), "cpu", 0), ValueError, ["a pickled array"]),
    (lambda: ONES.__reduce_ex__(5)[0](3, "float32", (2,), "cpu", 0), TypeError, ["a pickled array"]),
    (lambda: ONES.__reduce_ex__(5)[0](bytes(8), "float32", (2**63,), "cpu", 0), Exception, ["a pickled array"]),
]  # fmt: skip


def bound_norm():
    return sym.BatchNorm(a, name="bn").simple_bind(mx.cpu(), a=(3, 2))


ALL = {
    "growth": GROWTH, "spelling": SPELLINGS,
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
        lambda x: x.__imul__(nd.ones((4,), dtype="float64")),
        lambda x: nd.ones((4,), dtype="int32").__imul__(x),
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


# --------------------------------------------------------------------------------------------------------------------
# What is allowed, and is near to what is not
# --------------------------------------------------------------------------------------------------------------------
def test_the_number_of_outputs_can_be_raised(monkeypatch):
    net = graph_of("SliceChannel", num_outputs=100_000, axis=0)
    monkeypatch.setenv("MXOP_MAX_OUTPUTS", "100000")
    assert len(sym.load_json(net).get_internals().list_outputs()) == 100_001  # not the square of it
    assert len(nd.split(nd.empty((2, 0)), num_outputs=70_000)) == 70_000
    monkeypatch.setenv("MXOP_MAX_OUTPUTS", "many")
    fails(lambda: sym.load_json(net))


def test_a_graph_that_uses_what_it_splits_is_loaded():
    """Several nodes with the most outputs: each output that is used takes more of the text than the budget needs."""
    parts = sym.split(a, num_outputs=1 << 16, axis=0)
    more = sym.split(parts[0], num_outputs=1 << 15, axis=0)
    net = sym.Group([parts, more])
    assert len(sym.load_json(net.tojson())) == (1 << 16) + (1 << 15)


def test_a_graph_inside_a_graph_counts():
    inner = graph_of("SliceChannel", num_outputs=1 << 16)
    graph = json.loads(graph_of("_subgraph", backend="none", graph=inner))
    second = json.loads(json.dumps(graph["nodes"][1]))
    second["attrs"]["graph"] = inner.replace('"n"', '"m"')
    sym.load_json(json.dumps(graph))
    graph["nodes"].append(second)
    fails(lambda: sym.load_json(json.dumps(graph).replace('\\"x\\"', '\\"y\\"')))
    assert len(sym.load_json(inner).list_arguments()) == 1  # the budget is as before


def test_numbers_as_c_writes_them():
    assert nd.clip(nd.array([-5, 5]), a_min="-1.5f", a_max="inf").asnumpy().tolist() == [-1.5, 5]
    assert nd.reshape(ONES, shape="(3L, 2L)").shape == nd.reshape(ONES, shape="[3, 2]").shape == (3, 2)
    assert nd.sum(ONES, axis="(0,)").shape == (3,) and nd.sum(ONES, axis="None").shape == (1,)
    net = sym.clip(a, a_min=0, a_max=float("inf"))
    assert sym.load_json(net.tojson()).eval(a=nd.array([-1, 2]))[0].asnumpy().tolist() == [0, 2]


def test_a_parameter_that_is_an_array_is_read_at_each_call():
    low = nd.array([0])
    assert nd.clip(nd.array([-5]), a_min=low, a_max=9).asscalar() == 0
    low[:] = 3
    assert nd.clip(nd.array([-5]), a_min=low, a_max=9).asscalar() == 3


def test_out_of_memory_is_both():
    with pytest.raises(MemoryError) as caught:
        nd.zeros((2**50,))
    assert isinstance(caught.value, mx.MXNetError)


def test_an_error_of_a_kernel_s_own_function_names_the_operator():
    from mxop.op import kernel, unregister

    @kernel
    def fails_in_python(data):
        """Fail."""

    fails_in_python.shape(lambda shape: shape)
    try:

        @fails_in_python.cpu
        def _(inputs, outputs):
            raise KeyError("not there")

        with pytest.raises(
            mx.MXNetError, match="operator fails_in_python: its CPU function raised KeyError: 'not there'"
        ) as caught:
            nd.fails_in_python(ONES)
        assert isinstance(caught.value.__cause__, KeyError)
        with pytest.raises(mx.MXNetError, match=r"not there.*made at .*test_bad_input\.py"):
            sym.fails_in_python(a).eval(a=ONES)
    finally:
        unregister("fails_in_python")


def zero_d(call):
    with mx.np_shape(True):
        return call(nd.zeros(()))


@pytest.mark.parametrize("call", [
    lambda: nd.multi_mp_sgd_update(*[nd.ones(2)] * 2, lrs=(1,), wds=(0,), num_weights=2),
    lambda: nd.multi_sgd_update(nd.ones(2), nd.ones(2), lrs=(), wds=(), num_weights=0),
    lambda: mx.sym.multi_mp_sgd_update(*map(mx.sym.var, "ab"), lrs=(1,), wds=(0,), num_weights=2).infer_type(a="float16"),
    lambda: mx.sym._internal._gamma_of(mx.sym.var("k"), alpha=1, beta=2).bind(mx.cpu(), {"k": nd.zeros(1, dtype="int64")}),
    lambda: nd.repeat(nd.ones(4), repeats=2**62),
    lambda: nd.tile(nd.ones(4), reps=(2**70,)),
    lambda: nd.ones(3).astype("int32").round(-400),
    lambda: nd.ones(3).round(400),
    lambda: mx.sym._internal._backward__poisson_of(lam=3, wanted=(0,), forward_inputs=1).simple_bind(mx.cpu()),
    lambda: nd.L2Normalization(nd.ones((2, 1)), out=[nd.ones((2, 1)), nd.ones((2, 1))]),
    lambda: zero_d(lambda x: nd.SoftmaxOutput(x, x, multi_output=True)),
    lambda: zero_d(lambda x: mx.sym.SoftmaxOutput(mx.sym.var("a"), multi_output=True).infer_shape(a=())),
    lambda: mx.sym.lamb_update_phase1(*map(mx.sym.var, "wgmv"), t=10**9, wd=0, beta1=3.0).simple_bind(mx.cpu(), w=(2,)),
])  # fmt: skip
def test_what_a_fuzz_found(call):
    with pytest.raises(mx.MXNetError):
        call()


@pytest.mark.parametrize(("call", "count", "held"), [
    (lambda x, one: nd.split(x, num_outputs=3, axis=1, out=one), 3, 1),
    (lambda x, one: nd.split(x, num_outputs=3, axis=1, out=[one, one]), 3, 2),
    (lambda x, one: nd.topk(x, ret_typ="both", out=one), 2, 1),
    (lambda x, one: nd.moments(x, axes=1, keepdims=True, out=one), 2, 1),
    (lambda x, one: nd.multi_sgd_update(x, x, x, x, lrs=(1, 1), wds=(0, 0), num_weights=2, out=x), 2, 1),
    (lambda x, one: nd.sgd_mom_update(x, x, nd.zeros((2, 3)), lr=1, out=[]), 1, 0),
    (lambda x, one: nd.sum(x, axis=1, keepdims=True, out=[]), 1, 0),
    (lambda x, one: nd.sin(x, out=[]), 1, 0),
])  # fmt: skip
@pytest.mark.parametrize("recording", [False, True])
def test_every_result_has_its_out(call, count, held, recording):
    """Results without a place were dropped: of several weights, only the first was updated."""
    x, one = nd.array([[1, 2, 3], [4, 5, 6]]), nd.zeros((2, 1))
    if recording:
        x.attach_grad()
    match = f"has {count} output.*out holds {held}|recorded"
    with mx.autograd.record() if recording else mx.autograd.pause(), pytest.raises(mx.MXNetError, match=match):
        call(x, one)
    assert x.asnumpy().tolist() == [[1, 2, 3], [4, 5, 6]] and one.asnumpy().tolist() == [[0], [0]]


def test_the_mode_of_a_run_may_be_any_truth():
    executor = mx.sym.Dropout(mx.sym.var("x")).bind(mx.cpu(), {"x": nd.ones(3)})
    assert executor.forward(is_train=[])[0].asnumpy().tolist() == [1, 1, 1]
    assert executor.forward(is_train=np.bool_(False))[0].asnumpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("call", [
    lambda: mx.nd.histogram(mx.nd.ones((3,)), bins=2, range=1),
    lambda: mx.nd.all_finite(mx.nd.ones((3,)), out="result"),
    lambda: mx.nd.multi_all_finite(mx.nd.ones((3,)), out=(mx.nd.ones((1,)),)),
])  # fmt: skip
def test_what_is_no_array_or_pair_is_named(call):
    with pytest.raises(mx.errors.OpTypeError, match=r"range=1|out="):
        call()


def test_labels_of_a_scalar_are_refused_by_name():
    with mx.util.np_shape(True), pytest.raises(mx.MXNetError, match="SoftmaxOutput"):
        mx.nd.SoftmaxOutput(mx.nd.array(1.0).reshape(()), mx.nd.ones((2,)), multi_output=True)


def test_a_step_beyond_all_arrays_takes_the_first_element_when_recorded():
    x = mx.nd.arange(6).reshape((3, 2))
    x.attach_grad()
    with mx.autograd.record():
        y = x[..., -1 : 100 : 2**63 - 1]
    y.backward()
    assert y.asnumpy().tolist() == [[1], [3], [5]] and x.grad.asnumpy().tolist() == [[0, 1]] * 3


@pytest.mark.parametrize("value, end", [
    (a, "got <Symbol a>"), ("x", "got 'x'"), (3, "got 3: use mx.nd.array()"),
    (np.ones(1), "got array([1.]): use mx.nd.array()"),
])  # fmt: skip
def test_an_argument_that_is_no_array(value, end):
    """Only what can be one is to be made an array."""
    with pytest.raises(TypeError) as caught:
        nd.exp(value)
    assert str(caught.value) == f"operator exp: argument data must be an NDArray, {end}"
