"""The executor: binding, running, requests, monitoring.  Expected behaviour was observed in MXNet 1.9.1."""

import itertools
import json

import numpy as np
import pytest

import mxop as mx
from mxop import nd, sym
from mxop.op import composite, kernel, unregister

a, b = sym.Variable("a"), sym.Variable("b")


def values(arrays):
    return [None if x is None else x.asnumpy().tolist() for x in arrays]


def bound(symbol, grad_req="write", **arrays):
    args = {k: nd.array(v) for k, v in arrays.items()}
    return symbol.bind(mx.cpu(), args, {k: nd.full(v.shape, 0) for k, v in args.items()}, grad_req)


# ---- attributes -----------------------------------------------------------------------------------------------------
def test_attributes_of_an_executor():
    y = sym.Group([a * b, sym.exp(a, name="e")])
    ex = bound(y, a=[1, 2], b=[3, 4])
    outputs = ex.forward()
    assert [o.shape for o in outputs] == [(2,), (2,)] and ex.outputs[0] is outputs[0]
    assert list(ex.output_dict) == y.list_outputs() and ex.output_dict["e_output"] is outputs[1]
    assert values(ex.arg_arrays) == [[1, 2], [3, 4]] and list(ex.arg_dict) == list(ex.grad_dict) == ["a", "b"]
    assert ex.arg_dict["a"] is ex.arg_arrays[0] and ex.grad_dict["b"] is ex.grad_arrays[1]
    assert ex.aux_arrays == [] and ex.aux_dict == {}


def test_the_tutorial_binds_quadratic_without_inputs():
    with mx.name.NameManager():
        ex = mx.sym.quadratic(a=1, b=2, c=3).simple_bind(ctx=mx.cpu(), quadratic0_data=(1,))
    assert values(ex.forward(is_train=True, quadratic0_data=nd.array([2]))) == [[11]]
    ex.backward(nd.ones((1,)))
    assert values(ex.grad_arrays) == [[6]]


def test_outputs_keep_their_arrays_from_run_to_run():
    ex = bound(a + b, a=[1, 2], b=[3, 4])
    first = ex.forward()[0]
    ex.arg_dict["a"][:] = 5
    assert ex.forward()[0] is first and values([first]) == [[8, 9]]
    assert values(ex.forward(is_train=True)) == [[8, 9]]


def test_variables_and_duplicates_as_outputs():
    x = nd.array([1, 2])
    outputs = sym.Group([a, a, sym.exp(a) * 0 + a]).bind(mx.cpu(), [x]).forward()
    assert values(outputs) == [[1, 2]] * 3
    outputs[0][:] = 7
    assert x.asnumpy().tolist() == [1, 2] and values(outputs[1:]) == [[1, 2]] * 2


def test_no_arguments():
    assert values(sym.zeros((2,)).bind(mx.cpu(), {}).forward()) == [[0, 0]]
    assert values((sym.ones((2,)) + 1).eval()) == [[2, 2]]


def test_new_values_by_keyword():
    ex = bound(a * b, a=[1, 2], b=[3, 4])
    assert values(ex.forward(a=nd.array([5, 6]))) == [[15, 24]]
    assert values(ex.forward(a=np.array([1, 1]), b=[2, 2])) == [[2, 2]]
    assert values([ex.arg_dict["a"]]) == [[1, 1]]


def test_executors_share_arrays():
    x = nd.array([1.0, 2.0])
    one, two = (a * 2).bind(mx.cpu(), [x]), sym.exp(a).bind(mx.cpu(), [x])
    x[:] = 0
    assert values(one.forward()) == [[0, 0]] and values(two.forward()) == [[1, 1]]


def test_strided_arrays_are_read_and_written_in_place():
    base, grads = nd.arange(6).reshape((2, 3)), nd.zeros((2, 3))
    views = [x._view((3, 2), (1, 3)) for x in (base, grads)]
    ex = sym.Group([sym.sum(a * a, axis=1), sym.reshape(a, shape=(-1,))]).bind(mx.cpu(), views[:1], views[1:])
    outputs = ex.forward(is_train=True)
    assert values(outputs) == [[9, 17, 29], [0, 3, 1, 4, 2, 5]]
    ex.backward([nd.ones((3,)), nd.zeros((6,))])
    assert values([grads]) == [[[0, 2, 4], [6, 8, 10]]]


# ---- gradients ------------------------------------------------------------------------------------------------------
def test_backward_can_run_again_with_other_head_gradients():
    ex = bound(sym.exp(a) * b, a=[0, 0], b=[5, 7])
    ex.forward(is_train=True)
    ex.backward(nd.ones((2,)))
    assert values(ex.grad_arrays) == [[5, 7], [1, 1]]
    ex.backward(out_grads=[nd.ones((2,)) * 10])
    assert values(ex.grad_arrays) == [[50, 70], [10, 10]]
    ex.backward({ex._symbol.list_outputs()[0]: nd.ones((2,))})
    assert values(ex.grad_arrays) == [[5, 7], [1, 1]]


def test_backward_after_inference_runs_forward_again():
    ex = bound(sym.sin(sym.exp(a)), a=[0.5])
    ex.forward()
    ex.backward(nd.ones((1,)))
    expected = values(ex.grad_arrays)
    ex.forward(is_train=True)
    ex.forward(is_train=False, a=[0.25])
    ex.forward(is_train=False, a=[0.5])
    ex.backward(nd.ones((1,)))
    assert values(ex.grad_arrays) == expected
    np.testing.assert_allclose(expected, [[np.cos(np.exp(0.5)) * np.exp(0.5)]], rtol=1e-5)


@pytest.mark.parametrize("net", [
    lambda: sym.LeakyReLU(a, act_type="elu"), lambda: sym.Dropout(a, p=0.0),
    lambda: sym.BatchNorm(a, b, sym.zeros_like(b), use_global_stats=True),
    lambda: sym.RNN(sym.reshape(a, shape=(3, 1, 2)), b, sym.zeros((1, 1, 2)), mode="rnn_tanh", num_layers=1, state_size=2),
])  # fmt: skip
def test_backward_after_inference_where_nothing_is_drawn_and_no_state_changes(net):
    """These operators do one or the other with other parameters."""
    executor = net().simple_bind(mx.cpu(), a=(3, 2))
    for array in executor.arg_arrays:
        array[:] = np.random.default_rng(0).normal(size=array.shape)
    expected = []
    for is_train in (True, False):
        head = nd.ones(executor.forward(is_train=is_train)[0].shape)
        executor.backward(head)
        expected.append([g.asnumpy() for g in executor.grad_arrays])
    for trained, inferred in zip(*expected, strict=True):
        np.testing.assert_array_equal(trained, inferred)


def test_losses_need_no_head_gradients():
    @kernel
    def test_executor_loss(data):
        """The data; its gradient is 2 whatever follows."""

    test_executor_loss.infer(lambda ins, outs: ([ins[0] or outs[0]], [ins[0] or outs[0]]))
    test_executor_loss.shape(lambda data: data)
    test_executor_loss.cpu(lambda inputs, outputs: np.copyto(np.asarray(outputs[0]), np.asarray(inputs[0])))
    test_executor_loss.gradient(lambda F, heads, inputs, outputs: [F.ones_like(inputs[0]) * 2.0])
    try:
        ex = bound(sym.test_executor_loss(a * 3), a=[1, 2])
        ex.forward(is_train=True)
        ex.backward()
        assert values(ex.grad_arrays) == [[6, 6]]
        ex = bound(sym.Group([sym.test_executor_loss(a * 3), a * b]), a=[1, 2], b=[1, 1])
        ex.forward(is_train=True)
        with pytest.raises(mx.MXNetError, match=r"_mul.*output' is not that of a loss function"):
            ex.backward()
        ex.backward([None, nd.ones((2,))])
        assert values(ex.grad_arrays) == [[7, 7], [1, 2]]
    finally:
        unregister("test_executor_loss")


def test_a_gradient_that_is_zero_is_written():
    ex = bound(sym.Group([sym.stop_gradient(a) * 2, b]), a=[1, 2], b=[1, 1])
    ex.grad_dict["a"][:] = 7
    ex.forward(is_train=True)
    ex.backward([nd.ones((2,)), nd.ones((2,))])
    assert values(ex.grad_arrays) == [[0, 0], [1, 1]]


@pytest.mark.parametrize("uses", range(1, 7))
def test_add_with_one_to_six_uses_of_a_variable(uses):
    x = np.array([0.5, -1.0], "float32")
    y = sym.sin(a)
    for k in range(uses - 1):
        y = y + sym.sin(a * (k + 2.0))
    expected = sum((k + 1) * np.cos((k + 1) * x) for k in range(uses))
    for req, start in itertools.product(("write", "add"), (0.0, 3.0)):
        ex = bound(y, req, a=x)
        ex.grad_dict["a"][:] = start
        ex.forward(is_train=True)
        ex.backward(nd.ones((2,)))
        ex.backward(nd.ones((2,)))
        total = expected if req == "write" else start + 2 * expected
        np.testing.assert_allclose(ex.grad_dict["a"].asnumpy(), total, rtol=1e-5)


@pytest.mark.parametrize("reqs", list(itertools.product(("null", "write", "add"), repeat=3)))
def test_every_combination_of_requests(reqs):
    """Whatever is asked for, what is asked for is right (MXNet issue 20293), also of two identical uses."""
    c = sym.Variable("c")
    y = sym.Group([a * b + sym.exp(c), a + a, b * b])
    x = {"a": [1.0, 2.0], "b": [3.0, 4.0], "c": [0.0, 0.0]}
    ex = bound(y, dict(zip("abc", reqs, strict=True)), **x)
    for grad in ex.grad_arrays:
        grad[:] = 10
    ex.forward(is_train=True)
    ex.backward([nd.ones((2,))] * 3)
    gradients = {"a": [5.0, 6.0], "b": [7.0, 10.0], "c": [1.0, 1.0]}
    for name, req in zip("abc", reqs, strict=True):
        expected = {"null": [10, 10], "write": gradients[name], "add": [10 + g for g in gradients[name]]}[req]
        assert ex.grad_dict[name].asnumpy().tolist() == expected


def test_one_gradient_for_two_arguments_and_a_head():
    ex = bound(a + b, "add", a=[1, 2], b=[3, 4])
    ex.forward(is_train=True)
    ex.backward(nd.array([5, 6]))
    ex.backward(nd.array([5, 6]))
    assert values(ex.grad_arrays) == [[10, 12]] * 2
    ex = bound(a, a=[1, 2])
    ex.forward(is_train=True)
    ex.backward(nd.array([5, 6]))
    assert values(ex.grad_arrays) == [[5, 6]]


def test_broadcasting_is_undone():
    ex = bound(sym.broadcast_mul(a, b), a=np.ones((2, 1)), b=np.arange(3.0))
    ex.forward(is_train=True)
    ex.backward(nd.ones((2, 3)))
    assert values(ex.grad_arrays) == [[[3], [3]], [2, 2, 2]]


def test_composites_and_kernels_differentiate():
    @composite
    def test_executor_net(F, data, weight):
        """A layer and the sum of its squares."""
        return F.sum(F.square(F.FullyConnected(data, weight, num_hidden=2, no_bias=True)))

    try:
        random = np.random.default_rng(0)
        x, w = random.normal(size=(3, 4)).astype("float32"), random.normal(size=(2, 4)).astype("float32")
        ex = bound(sym.test_executor_net(a, b), a=x, b=w)
        ex.forward(is_train=True)
        ex.backward(nd.ones((1,)))
        y = x @ w.T
        np.testing.assert_allclose(ex.grad_dict["a"].asnumpy(), 2 * y @ w, rtol=1e-5)
        np.testing.assert_allclose(ex.grad_dict["b"].asnumpy(), 2 * y.T @ x, rtol=1e-5)
    finally:
        unregister("test_executor_net")


def test_no_rule():
    @kernel
    def test_executor_opaque(data):
        """No gradient."""

    test_executor_opaque.shape(lambda data: data)
    test_executor_opaque.cpu(lambda inputs, outputs: np.copyto(np.asarray(outputs[0]), np.asarray(inputs[0])))
    try:
        y = sym.exp(sym.test_executor_opaque(a * 2, name="o"), name="e")
        assert y.eval(a=nd.zeros((1,)))[0].asscalar() == 1
        with pytest.raises(mx.MXNetError) as caught:
            y.simple_bind(mx.cpu(), a=(2,))
        for part in (
            "test_executor_opaque",
            "order 1",
            "e (exp) <- o (test_executor_opaque)",
            ".gradient",
            "test_executor.py",
        ):
            assert part in str(caught.value)
        y.simple_bind(mx.cpu(), grad_req="null", a=(2,)).forward()
    finally:
        unregister("test_executor_opaque")


# ---- shapes and types -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8", "int8"])
def test_types(dtype):
    ex = (sym.square(a) + b * 2).simple_bind(mx.cpu(), type_dict={"a": dtype}, a=(3,))
    assert {x.dtype for x in [*ex.arg_arrays, *ex.grad_arrays, *ex.outputs]} == {np.dtype(dtype).type}
    ex.forward(is_train=True, a=[1, 2, 3], b=[1, 1, 1])
    ex.backward(nd.array([1, 1, 1], dtype=dtype))
    assert values(ex.outputs) == [[3, 6, 11]] and values(ex.grad_arrays) == [[2, 4, 6], [2, 2, 2]]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3)])
def test_any_shape(shape):
    x = np.full(shape, 2.0, "float32")
    ex = bound(sym.exp(a) * a + a, a=x)
    ex.forward(is_train=True)
    assert ex.outputs[0].shape == shape
    ex.backward(nd.array(np.ones(shape)))
    np.testing.assert_allclose(ex.grad_dict["a"].asnumpy(), np.full(shape, 3 * np.exp(2) + 1), rtol=1e-5)


def test_eval_takes_states_by_name():
    net = mx.sym.BatchNorm(mx.sym.Variable("a"), name="bn", fix_gamma=False, eps=0)
    given = {"a": mx.nd.array([[1.0, 5.0]]), "bn_gamma": mx.nd.array([2, 2]), "bn_beta": mx.nd.array([1, 0])}
    found = net.eval(**given, bn_moving_mean=mx.nd.array([0, 1]), bn_moving_var=mx.nd.array([1, 4]))
    assert found[0].asnumpy().tolist() == [[3.0, 4.0]]


def test_simple_bind_fills_with_zeros_and_knows_requests():
    fc = sym.FullyConnected(a, num_hidden=4, name="f")
    ex = fc.simple_bind(mx.cpu(), a=(2, 3), grad_req={"a": "null", "f_weight": "add", "other": "null"})
    assert all(not x.asnumpy().any() for x in ex.arg_arrays)
    assert ex.grad_dict["a"] is None and ex.grad_dict["f_bias"] is None and ex.grad_dict["f_weight"].shape == (4, 3)
    assert fc.simple_bind(mx.cpu(), a=(2, 3), grad_req="null").grad_arrays == [None] * 3
    ex = fc.simple_bind(mx.cpu(), a=(2, 3), grad_req=["write", "null", "add"])
    assert [g is None for g in ex.grad_arrays] == [False, True, False]


def test_reshape():
    ex = sym.FullyConnected(a, num_hidden=4, name="f").simple_bind(mx.cpu(), a=(5, 3))
    small = ex.reshape(a=(2, 3))
    assert small.arg_dict["a"].shape == (2, 3) and small.arg_dict["f_weight"] is ex.arg_dict["f_weight"]
    ex.arg_dict["f_weight"][:] = 1
    assert values(small.forward(a=nd.ones((2, 3)))) == [[[3] * 4] * 2]
    with pytest.raises(ValueError, match=r"'a' would grow from \(5, 3\) to \(6, 3\)"):
        ex.reshape(a=(6, 3))
    with pytest.raises(ValueError, match=r"'f_weight' would change.*partial_shaping"):
        ex.reshape(a=(5, 2))
    large = ex.reshape(partial_shaping=True, allow_up_sizing=True, a=(6, 4))
    assert {k: v.shape for k, v in large.arg_dict.items()} == {"a": (6, 4), "f_weight": (4, 4), "f_bias": (4,)}
    assert large.forward()[0].shape == (6, 4)


def test_copy_params_from():
    ex = bound(a + b, a=[1, 2], b=[3, 4])
    ex.copy_params_from({"a": nd.array([9, 9], dtype="float64")})
    assert values(ex.arg_arrays) == [[9, 9], [3, 4]]
    with pytest.raises(ValueError, match=r"'aa' is not in the arguments; did you mean 'a'\?; allow_extra_params=True"):
        ex.copy_params_from({"b": nd.zeros((2,)), "aa": nd.zeros((2,))})
    assert values(ex.arg_arrays) == [[9, 9], [3, 4]]  # nothing was written before the error
    ex.copy_params_from({"zz": nd.zeros((2,))}, allow_extra_params=True)


def test_arrays_by_name_are_those_of_all_variables_of_the_name():
    def head(name):  # as a second classifier has it, whose label is written down again
        scores = sym.FullyConnected(a, num_hidden=3, no_bias=True, name=f"fc_{name}")
        return sym.SoftmaxOutput(scores, sym.Variable("label", shape=(2,) if name == "x" else None), name=name)

    arrays = {"a": nd.array([[1, 2], [3, 5]]), "label": nd.array([0, 2]), "fc_x_weight": nd.ones((3, 2))}
    arrays["fc_y_weight"] = nd.array([[1, 0], [0, 1], [2, -1]])
    gradient = nd.zeros((3, 2))
    ex = sym.Group([head("x"), head("y")]).bind(mx.cpu(), arrays, {"fc_y_weight": gradient})
    first, second = ex.forward(is_train=True)
    ex.backward()
    assert list(ex.arg_dict) == ["a", "fc_x_weight", "label", "fc_y_weight"]
    np.testing.assert_allclose(first.asnumpy(), np.full((2, 3), 1 / 3), rtol=1e-6)
    expected = (second.asnumpy() - [[1, 0, 0], [0, 0, 1]]).T @ [[1, 2], [3, 5]]
    np.testing.assert_allclose(gradient.asnumpy(), expected, rtol=1e-5)
    ex.forward(label=nd.array([1, 1]))
    assert values([ex.reshape(a=(1, 2), label=(1,), partial_shaping=True).arg_dict["label"]]) == [[1]]


def test_the_gradient_of_variables_of_one_name_is_the_sum():
    square = a * sym.Variable("a")
    ex = bound(square, a=[2, 3])
    ex.forward(is_train=True)
    ex.backward(nd.ones((2,)))
    assert values([ex.grad_dict["a"], *square.eval(a=nd.array([2, 3]))]) == [[4, 6], [4, 9]]
    assert square.list_arguments() == ["a", "a"]


# ---- what can be wrong ----------------------------------------------------------------------------------------------
ONE, TWO, THREE = nd.ones((1,)), nd.ones((2,)), nd.ones((3,))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: (a + b).bind(mx.cpu(), [TWO]), ValueError, "Length of args .* 1 given, the symbol has 2: a, b"),
        (lambda: (a + b).bind(mx.cpu(), {"a": TWO, "bb": TWO}), ValueError, "key `b` is missing in `args`; did you mean 'bb'"),
        (lambda: (a + b).bind(mx.cpu(), {"a": TWO, "b": THREE}), ValueError, r"lhs has shape \(2,\) but rhs has shape \(3,\)"),
        (lambda: (a + b).bind(mx.cpu(), {"a": 1, "b": TWO}), TypeError, "'a' is 1; only NDArrays"),
        (lambda: (a + b).bind(mx.cpu(), 3), TypeError, "args is 3"),
        (lambda: (a + b).bind("cpu", [TWO, TWO]), TypeError, "Context type error: 'cpu'"),
        (lambda: (a + b).simple_bind(mx.cpu(), group2ctx=[mx.cpu()], a=2, b=2), TypeError, "group2ctx=.*expected a dictionary"),
        (lambda: (a + b).bind(mx.cpu(), [TWO, TWO], [TWO]), ValueError, "Length of args_grad"),
        (lambda: (a + b).bind(mx.cpu(), [TWO, TWO], [TWO, THREE]), ValueError, "gradient array of 'b' has shape"),
        (lambda: (a + b).bind(mx.cpu(), [TWO, TWO], {"a": nd.ones((2,), dtype="float64")}), ValueError, "float64.*float32"),
        (lambda: (a + b).bind(mx.cpu(), [TWO, TWO], grad_req="wrte"), ValueError, "did you mean 'write'"),
        (lambda: (a + b).bind(mx.cpu(), [TWO, TWO], grad_req=["write"]), ValueError, "grad_req has 1 items"),
        (lambda: (a + b).bind(mx.cpu(), [TWO, TWO], grad_req=3), TypeError, "grad_req=3"),
        (lambda: (a + sym.Variable("a")).bind(mx.cpu(), [TWO, TWO]), ValueError, "two arguments are named 'a'"),
        (lambda: (a + sym.Variable("a")).simple_bind(mx.cpu(), a=(2,)), ValueError, "two arguments are named 'a'"),
        (lambda: (a + b).simple_bind(mx.cpu()), ValueError, r"do not follow.*a: \(unknown\), b: \(unknown\)"),
        (lambda: (a + b).simple_bind(mx.cpu(), type_dict={"a": "int32", "b": "int64"}, a=(2,)), TypeError, "lhs has dtype"),
        (lambda: bound(a, a=[1, 2]).forward(b=TWO), TypeError, "Unknown argument b"),
        (lambda: bound(a, a=[1, 2]).forward(TWO), TypeError, r"is_train is an NDArray.*by name: forward\(data=x\)"),
        (lambda: bound(a, a=[1, 2]).forward(ONE), TypeError, "is_train is an NDArray"),
        (lambda: bound(a, a=[1, 2]).forward(a=THREE), ValueError, r"Argument a: expected shape \(2,\), got \(3,\)"),
        (lambda: (a + b).eval(a=TWO), ValueError, "key `b` is missing"),
        (lambda: (a + b).gradient(["c"]), ValueError, "'c' is not an argument"),
        (lambda: bound(a, a=[1, 2]).reshape(b=(1,)), ValueError, "'b' not found"),
    ],
)  # fmt: skip
def test_wrong_binding_says_what_is_wrong(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, mx.MXNetError)


@pytest.mark.parametrize(
    ("grads", "message"),
    [(None, "head gradients are required"), ([TWO], "_output' is not that of a loss"), ([TWO, THREE], "Head gradient 1"),
     ({"y": TWO}, "'y', which is not an output")],
)  # fmt: skip
def test_wrong_head_gradients(grads, message):
    ex = bound(sym.Group([a * 2, b * 3]), a=[2, 3], b=[5, 7])
    ex.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match=message):
        ex.backward(grads)


# ---- looking inside -------------------------------------------------------------------------------------------------
def test_monitor():
    seen = []
    y = sym.exp(sym.FullyConnected(a, num_hidden=2, name="fc"), name="e")
    ex = y.simple_bind(mx.cpu(), a=(1, 3))
    plain = values(ex.forward(is_train=True, a=nd.ones((1, 3))))
    ex.set_monitor_callback(lambda name, array: seen.append((name, array.shape)))
    assert values(ex.forward(is_train=True)) == plain
    assert seen == [("fc_output", (1, 2)), ("e_output", (1, 2))]
    seen.clear()
    ex.set_monitor_callback(lambda name, array: seen.append(name), monitor_all=True)
    ex.forward(is_train=True)
    assert seen == ["a", "fc_data", "fc_weight", "fc_weight", "fc_bias", "fc_bias", "fc_output", "e_input0", "e_output"]
    ex.backward(nd.ones((1, 2)))
    assert seen[9:] == ["e_backward_output", "fc_backward_output0", "fc_backward_output1", "fc_backward_output2"]
    watched = values(ex.grad_arrays)
    ex.set_monitor_callback(None)
    seen.clear()
    ex.forward(is_train=True)
    ex.backward(nd.ones((1, 2)))
    assert seen == [] and values(ex.grad_arrays) == watched


_DATA = sym.Variable("data")


@pytest.mark.parametrize("net, shape, names", [  # MXNet's, without what it computes for nobody
    (sym.SoftmaxOutput(sym.FullyConnected(sym.exp(_DATA, name="e"), num_hidden=2, name="fc"), name="softmax"), (2, 3),
     ["softmax_backward_output0", "fc_backward_output0", "fc_backward_output1", "fc_backward_output2", "e_backward_output"]),
    (sym.elemwise_add(sym.sin(_DATA, name="s"), sym.exp(_DATA, name="e"), name="a"), (2,),
     ["e_backward_output", "s_backward_output"]),
    (sym.BatchNorm(_DATA, name="bn", fix_gamma=False), (2, 3), [f"bn_backward_output{k}" for k in range(3)]),
    (sym.LayerNorm(_DATA, name="ln"), (2, 3), [f"ln_backward_output{k}" for k in range(3)]),
    (sym.Pooling(sym.Convolution(_DATA, kernel=(2, 2), num_filter=2, name="c"), kernel=(2, 2), name="p"), (1, 1, 4, 4),
     ["p_backward_output", *(f"c_backward_output{k}" for k in range(3))]),
    (sym.sum(sym.elemwise_mul(_DATA, _DATA, name="m"), name="sum"), (2, 3),
     ["sum_backward_output", "m_backward_output0", "m_backward_output1"]),
    (sym.tanh(sym.transpose(sym.Reshape(_DATA, shape=(3, 2), name="r"), name="t"), name="tanh"), (2, 3),
     ["tanh_backward_output", "t_backward_output", "r_backward_output"]),
    (sym.dot(_DATA, _DATA, name="d"), (2, 2), ["d_backward_output0", "d_backward_output1"]),
])  # fmt: skip
def test_monitor_shows_the_gradients_of_what_calls_take(net, shape, names):
    ex = net.simple_bind(mx.cpu(), data=shape)
    random = np.random.RandomState(0)
    for array in ex.arg_arrays:
        array[:] = nd.array(random.uniform(0.5, 1, array.shape))
    seen = {}
    ex.set_monitor_callback(lambda name, array: seen.setdefault(name, array.asnumpy()))
    ex.forward(is_train=True)
    forward = len(seen)
    ex.backward([nd.ones(o.shape) for o in ex.outputs])
    assert list(seen)[forward:] == names
    last = [value for name, value in list(seen.items())[forward:] if value.shape == shape]
    parts = 2 if net.name in ("a", "sum", "d") else 1  # that data are taken
    total = sum(last[-parts:])
    np.testing.assert_allclose(total, ex.grad_dict["data"].asnumpy(), rtol=1e-5)
    for place, name in enumerate(("weight", "bias"), 1):
        if f"fc_backward_output{place}" in seen:
            np.testing.assert_allclose(seen[f"fc_backward_output{place}"], ex.grad_dict[f"fc_{name}"].asnumpy(), rtol=1e-6)


def test_monitor_shows_composites_by_their_name():
    @composite(num_outputs=2)
    def test_executor_pair(F, data):
        """Two things."""
        return F.exp(data), F.sin(F.exp(data))

    try:
        seen = []
        y = sym.add_n(*sym.test_executor_pair(a, name="p"), name="y")
        ex = y.bind(mx.cpu(), [nd.zeros((1,))])
        ex.set_monitor_callback(lambda name, array: seen.append(name))
        ex.forward()
        assert seen == ["p_output0", "p_output1", "y_output"]
    finally:
        unregister("test_executor_pair")


@pytest.mark.parametrize("kind, inputs, outputs", [
    ("Convolution", ["weight", "bias"], ["output"]), ("LRN", [], ["output"]), ("softmax", [], ["output"]),
    ("LayerNorm", ["gamma", "beta"], ["output"]), ("Dropout", [], ["output"]),
    ("SliceChannel", [], ["output0", "output1", "output2"]),
    ("BatchNorm", ["gamma", "beta", "moving_mean", "moving_var"], ["output", "mean"]),
])  # fmt: skip
def test_monitor_shows_what_composites_take_and_give(kind, inputs, outputs):
    """Not the steps they are made of; of an output that is its input, here Dropout's, the names of both."""
    params = {"Convolution": {"kernel": (2, 2), "num_filter": 1}, "LRN": {"nsize": 1}, "SliceChannel": {"num_outputs": 3}}
    params = params.get(kind, {})
    data = sym.exp(sym.Variable("data", shape=(2, 3, 4, 4)), name="e")
    ex = getattr(sym, kind)(data, name="n", **params).simple_bind(mx.cpu(), "null")
    seen = []
    ex.set_monitor_callback(lambda name, array: seen.append(name), monitor_all=True)
    ex.forward()
    expected = ["n_data", *(f"n_{name}" for name in inputs for _ in "12"), *(f"n_{name}" for name in outputs)]
    assert sorted(seen) == sorted(["data", "e_input0", "e_output", *expected])
    seen.clear()
    ex.set_monitor_callback(lambda name, array: seen.append(name))
    ex.forward()
    assert seen == ["e_output", *(f"n_{name}" for name in outputs)]


def test_monitor_shows_statistics_that_are_asked_for():
    """The values are MXNet's; without output_mean_var, the result itself was shown as mean and std."""
    seen = {False: {}, True: {}}
    for asked, to in seen.items():
        ex = sym.LayerNorm(a, name="ln", output_mean_var=asked).simple_bind(mx.cpu(), a=(2, 3))
        ex.arg_dict["a"][:], ex.arg_dict["ln_gamma"][:], ex.arg_dict["ln_beta"][:] = [[0, 1, 2], [3, 4, 5]], 1, 0
        ex.set_monitor_callback(lambda name, array, to=to: to.update({name: array.asnumpy()}))
        ex.forward()
    assert list(seen[False]) == ["ln_output"] and list(seen[True]) == ["ln_output", "ln_mean", "ln_std"]
    assert seen[True]["ln_mean"].tolist() == [[1.0], [4.0]]
    np.testing.assert_allclose(seen[True]["ln_std"], [[0.8165027]] * 2, rtol=1e-6)


def test_optimized_symbol():
    y = sym.log(sym.softmax(a), name="y") * 1
    ex = sym.BatchNorm(y, name="bn").simple_bind(mx.cpu(), a=(2, 3))
    found = ex.get_optimized_symbol()
    assert found.list_arguments() == ["a", "bn_gamma", "bn_beta"] and found.name == "bn"
    assert [n["op"] for n in json.loads(found.tojson())["nodes"] if n["op"] != "null"] == ["log_softmax", "BatchNorm"]
    ex.arg_dict["a"][:] = [[1, 2, 3], [0, 0, 1]]
    again = found.bind(mx.cpu(), ex.arg_dict, aux_states=ex.aux_dict)
    np.testing.assert_allclose(again.forward()[0].asnumpy(), ex.forward()[0].asnumpy(), rtol=1e-6)
    plain = y.bind(mx.cpu(), [nd.ones((2, 3))], passes=[])
    assert plain.get_optimized_symbol().tojson() == y.tojson()


def test_debug_str(monkeypatch):
    executor = bound(a * b, a=[1], b=[2])
    # Programs ask after each binding, so the graph must not be prepared a second time.
    monkeypatch.setattr(type(executor._structure), "_pattern", lambda *_, **__: pytest.fail("lowered again"))
    text = executor.debug_str()
    assert "Op:elemwise_mul" in text and "_head_grad_0" in text
    assert text.split("\n")[-3:] == ["Total 0 MB allocated", "Total 0 TempSpace resource requested", ""]  # programs read the 0


def test_running_does_not_record():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    ex = sym.sum(sym.transpose(a) * 2).bind(mx.cpu(), [x])
    with mx.autograd.record():
        y = ex.forward(is_train=True)[0]
        z = (x * 3).sum()
    z.backward()
    assert x.grad.asnumpy().tolist() == [3, 3] and y.asscalar() == 6


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda F, heads, inputs, outputs: [F.sum(heads[0])], r"gradient of 'a' has shape \(1,\).*argument \(2,\)"),
        (
            lambda F, heads, inputs, outputs: [F.cast(heads[0], dtype="float16")],
            "dtype float16, the argument .* float32",
        ),
    ],
)
def test_a_rule_that_gives_another_shape_or_type(rule, message):
    @kernel
    def test_executor_rule(data):
        """An operator with a wrong gradient."""

    test_executor_rule.shape(lambda data: data)
    test_executor_rule.cpu(lambda inputs, outputs: np.copyto(np.asarray(outputs[0]), np.asarray(inputs[0])))
    test_executor_rule.gradient(rule)
    try:
        with pytest.raises(mx.MXNetError, match=message):
            sym.test_executor_rule(a, name="wrong").simple_bind(mx.cpu(), a=(2,))
    finally:
        unregister("test_executor_rule")


def test_arrays_of_another_device():
    with pytest.raises(mx.MXNetError, match="'a' is on cpu"):
        (a * 2).bind(mx.gpu(0), [nd.ones((2,))])


def test_operators_see_whether_the_run_is_for_training():
    @kernel
    def test_executor_mode(data):
        """Ones in training, zeros otherwise."""

    test_executor_mode.shape(lambda data: data)
    test_executor_mode.cpu(lambda inputs, outputs: np.asarray(outputs[0]).fill(float(mx.autograd.is_training())))
    test_executor_mode.gradient(lambda F, heads, inputs, outputs: [None])
    test_executor_mode.stateful, test_executor_mode.repeatable = True, False
    try:
        y = sym.test_executor_mode(a) + sym.test_executor_mode(a)
        for ex in (y.bind(mx.cpu(), [nd.ones((1,))]), bound(y, a=[1])):
            assert [ex.forward(is_train=t)[0].asscalar() for t in (True, False, True)] == [2, 0, 2]
            assert not mx.autograd.is_training()
        ex.forward(is_train=False)
        with pytest.raises(mx.MXNetError, match=r"other random numbers.*forward\(is_train=True\) before"):
            ex.backward(nd.ones((1,)))
    finally:
        unregister("test_executor_mode")


# ---- devices --------------------------------------------------------------------------------------------------------
def test_arrays_lie_on_the_device_of_their_group():
    with mx.AttrScope(ctx_group="front"):
        h = sym.BatchNorm(sym.FullyConnected(sym.Variable("x"), num_hidden=3, name="f"), name="b")
    y = sym.FullyConnected(h, num_hidden=2, name="g")
    ex = y.simple_bind(mx.cpu(1), x=(4, 5), group2ctx={"front": mx.cpu(2), "elsewhere": mx.gpu(0)})
    for name, array in [*ex.arg_dict.items(), *ex.grad_dict.items(), *ex.aux_dict.items()]:
        assert array.context == mx.cpu(1 if name.startswith("g_") else 2), name
    assert ex.forward(is_train=True)[0].context == mx.cpu(1)
    ex.backward(nd.ones((4, 2), ctx=mx.cpu(1)))
    assert sym.exp(a).eval(mx.cpu_pinned(), a=nd.ones(2))[0].context == mx.cpu_pinned()
    with pytest.raises(TypeError, match="'cpu'"):
        y.simple_bind(mx.cpu(), x=(4, 5), group2ctx={"front": "cpu"})


def test_the_monitor_shows_what_the_symbol_calls():
    """In its order, inputs before outputs, and nothing of what a composite is made of."""
    x = sym.Variable("x", shape=(2, 1, 4, 4))
    h = sym.Convolution(x, kernel=(2, 2), num_filter=3, name="c")
    y = sym.Group([sym.concat(h, h, dim=1, name="j"), sym.softmax(h, name="s")])
    expected = ["x", "c_data", "c_weight", "c_weight", "c_bias", "c_bias", "c_output", "j_arg0", "j_arg1", "j_output",
                "s_data", "s_output"]  # fmt: skip
    for grad_req in ("null", "write"):
        seen = []
        ex = y.simple_bind(mx.cpu(), grad_req=grad_req)
        ex.set_monitor_callback(lambda name, array, seen=seen: seen.append(name), monitor_all=True)
        for is_train in (False, True):
            ex.forward(is_train=is_train)
            assert seen == expected
            seen.clear()
    ex.set_monitor_callback(lambda name, array: seen.append(name))
    ex.forward()
    assert seen == [n for n in expected if n.endswith("_output")]


@pytest.mark.parametrize(
    ("what", "given"),
    [("simple_bind", {"label": (2,)}), ("type_dict", {"type_dict": {"label": "float32"}}),
     ("grad_req", {"grad_req": {"a": "write", "label": "null"}})],
)  # fmt: skip
def test_what_is_said_of_no_argument_is_left_out(what, given):
    """As in MXNet: a program that trains and predicts says the shape of the label in both cases."""
    with pytest.warns(UserWarning, match=f"{what}: 'label' is not an argument; it is ignored") as seen:
        executor = sym.exp(a).simple_bind(mx.cpu(), a=(2,), **given)
    assert seen[0].filename == __file__
    assert list(executor.arg_dict) == ["a"]
    assert executor.grad_dict["a"] is not None
    with pytest.warns(UserWarning, match="'label'") as seen:
        sym.exp(a).bind(mx.cpu(), [TWO], grad_req={"label": "null"})
    assert seen[0].filename == __file__
