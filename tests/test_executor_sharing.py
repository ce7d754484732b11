"""What executors do in MXNet 1.9.1 beyond one forward and one backward: runs left out, memory shared by reshaping.

Expected behaviour was observed there.
"""

import itertools

import mxnet_answers
import numpy as np
import pytest

import mxop as mx
from mxop import nd, sym

a, b = sym.Variable("a"), sym.Variable("b")


def values(arrays):
    return [None if x is None else x.asnumpy().tolist() for x in arrays]


def bound(symbol, grad_req="write"):
    args = {"a": nd.array([1, 2, 3]), "b": nd.array([4, 5, 6])}
    return symbol.bind(mx.cpu(), args, {k: nd.zeros(3) for k in args}, grad_req)


def memory(x):
    return np.asarray(x).__array_interface__["data"][0]


def shared(old, new):
    return [memory(x) == memory(y) for x, y in zip(old, new, strict=True)]


# ---- backward without a forward in training mode --------------------------------------------------------------------
RUNS = list(itertools.product([None, False, True], ["write", "add", "null"]))


@pytest.mark.parametrize(("mode", "req"), RUNS)
def test_backward_reads_the_bound_arrays_whatever_ran_before(mode, req):
    ex = bound(sym.sigmoid(a) * b, req)
    if mode is not None:
        ex.forward(is_train=mode, a=nd.array([7, 8, 9]))
        ex.arg_dict["a"][:] = nd.array([1, 2, 3])
        ex.forward(is_train=mode)
    for _ in range(2):
        ex.backward(nd.ones(3))
    y = 1 / (1 + np.exp(-np.array([1.0, 2, 3])))
    times = {"write": 1, "add": 2, "null": 0}[req]
    np.testing.assert_allclose(ex.grad_dict["a"].asnumpy(), times * y * (1 - y) * [4, 5, 6], rtol=1e-5)
    np.testing.assert_allclose(ex.grad_dict["b"].asnumpy(), times * y, rtol=1e-5)


def test_backward_after_inference_sees_what_was_written_since():
    ex = bound(a * b)
    ex.forward(is_train=True)
    ex.forward(is_train=False, b=nd.array([1, 1, 1]))
    ex.backward(nd.ones(3))
    assert values(ex.grad_arrays) == [[1, 1, 1], [1, 2, 3]]


def test_without_gradients_backward_does_nothing():
    ex = (a * b).bind(mx.cpu(), [nd.ones(3)] * 2)
    ex.backward()
    ex.backward(nd.ones(3))
    assert ex.grad_arrays == [None, None]


@pytest.mark.parametrize("number", range(4))
def test_random_programs_do_what_they_do_in_mxnet(number):
    """See ``mxnet_answers.py``: forward, backward, reshape and copies in any order, and the arrays after each."""
    programs = mxnet_answers.read("executors.json")[number::4]
    assert len(programs) == 10
    for program, seen in programs:
        assert mxnet_answers.run_executor(mx, np, program) == seen, program


# ---- head gradients -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "heads",
    [
        lambda name: nd.ones(3),
        lambda name: [nd.ones(3)],
        lambda name: (nd.ones(3), nd.ones(3), nd.ones((7, 2))),
        lambda name: {name: nd.ones(3)},
        lambda name: {name: nd.ones(3), "another": nd.ones(2)},
        lambda name: [nd.ones(3, dtype="float64")],
    ],
)
def test_head_gradients_beyond_the_outputs_are_ignored(heads):
    y = a * b
    ex = bound(y)
    ex.forward(is_train=True)
    ex.backward(heads(y.list_outputs()[0]))
    assert values(ex.grad_arrays) == [[4, 5, 6], [1, 2, 3]]


# ---- reshape --------------------------------------------------------------------------------------------------------
def layer(rows=6, **options):
    ex = sym.FullyConnected(a, num_hidden=4, name="f").simple_bind(mx.cpu(), a=(rows, 3), **options)
    for x in ex.arg_arrays:
        x[:] = 1
    return ex


RESHAPED = [
    ({"a": (2, 3)}, [1, 1, 1], [1]),
    ({"a": (6, 3)}, [1, 1, 1], [1]),
    ({"a": (3, 3), "allow_up_sizing": True}, [1, 1, 1], [1]),
    ({"a": (8, 3), "allow_up_sizing": True}, [0, 1, 1], [0]),
    ({"a": (6, 2), "partial_shaping": True}, [1, 1, 1], [1]),
    ({"a": (6, 5), "partial_shaping": True, "allow_up_sizing": True}, [0, 0, 1], [1]),
]


@pytest.mark.parametrize(("asked", "arrays", "outputs"), RESHAPED)
def test_what_reshape_shares(asked, arrays, outputs):
    ex = layer()
    ex.forward(is_train=True)
    new = ex.reshape(**asked)
    assert new.arg_dict["a"].shape == asked["a"] and new.outputs[0].shape == (asked["a"][0], 4)
    assert shared(ex.arg_arrays, new.arg_arrays) == arrays == shared(ex.grad_arrays, new.grad_arrays)
    assert shared(ex.outputs, new.outputs) == outputs


def test_a_reshaped_executor_writes_into_the_arrays_of_the_first():
    ex = layer()
    first = ex.forward()[0]
    new = ex.reshape(a=(2, 3))
    new.arg_dict["a"][:] = 5
    new.forward(is_train=True)
    assert ex.arg_dict["a"].asnumpy()[:, 0].tolist() == [5, 5, 1, 1, 1, 1]
    assert first.asnumpy()[:, 0].tolist() == [16, 16, 4, 4, 4, 4]
    new.backward(nd.ones((2, 4)))
    assert ex.grad_dict["f_weight"].asnumpy().tolist() == [[10] * 3] * 4
    assert ex.forward()[0].asnumpy()[:, 0].tolist() == [16, 16, 4, 4, 4, 4]


def test_reshaping_down_and_up_again():
    ex = layer()
    small = ex.reshape(a=(2, 3))
    with pytest.raises(ValueError, match=r"'a' would grow from \(2, 3\) to \(6, 3\)"):
        small.reshape(a=(6, 3))
    large = small.reshape(a=(6, 3), allow_up_sizing=True)
    assert shared(small.arg_arrays, large.arg_arrays) == [0, 1, 1]
    again = large.reshape(a=(2, 3))
    assert shared(large.arg_arrays, again.arg_arrays) == [1, 1, 1] == [*shared(large.outputs, again.outputs), 1, 1]


def test_reshape_keeps_requests_gradients_and_monitor():
    ex = (a * b).simple_bind(mx.cpu(), a=(4, 3), b=(4, 3), grad_req={"a": "add"})
    seen = []
    ex.set_monitor_callback(lambda name, array: seen.append(array.shape))
    ex.forward(is_train=True, a=nd.ones((4, 3)), b=nd.ones((4, 3)))
    ex.backward(nd.ones((4, 3)))
    new = ex.reshape(a=(3, 4), b=(3, 4))
    new.forward(is_train=True)
    new.backward(nd.ones((3, 4)))
    assert (3, 4) in seen and new.grad_dict["b"] is None
    assert new.grad_dict["a"].asnumpy().tolist() == [[2] * 4] * 3


def test_reshape_of_a_graph_that_returns_its_arguments():
    x = nd.array([[1, 2], [3, 4]])
    ex = sym.Group([a, a * 2]).bind(mx.cpu(), [x])
    ex.forward()
    new = ex.reshape(a=(1, 2))
    assert values(new.forward()) == [[[1, 2]], [[2, 4]]]
    assert shared(ex.outputs, new.outputs) == [1, 1]


# ---- whether backward wrote a gradient ------------------------------------------------------------------------------
def variable(req="write"):
    x = nd.ones(3)
    x.attach_grad(req)
    return x


@pytest.mark.parametrize(("req", "fresh"), [("write", True), ("add", True), ("null", False)])
def test_fresh_grad(req, fresh):
    x, other = variable(req), variable()
    assert x._fresh_grad is False
    with mx.autograd.record():
        y = x * 2 + other
    assert x._fresh_grad is False
    y.backward()
    assert x._fresh_grad is fresh and other._fresh_grad is True
    x._fresh_grad = other._fresh_grad = False
    x[:] = 4
    with mx.autograd.record():
        y = x * 2
    mx.autograd.grad(y, [x]) if req != "null" else y
    assert x._fresh_grad is False and other._fresh_grad is False


def test_fresh_grad_is_about_variables():
    x = variable()
    with mx.autograd.record():
        y = mx.nd.BlockGrad(x) + variable()
    y.backward()
    assert x._fresh_grad  # zeros were written
    for other in (x[:2], x.reshape((1, 3)), x.copy(), x.grad, x.detach(), y, nd.ones(3)):
        assert other._fresh_grad is False
        with pytest.raises(mx.MXNetError, match="_fresh_grad: the array is not a variable"):
            other._fresh_grad = True
    x.attach_grad()
    assert x._fresh_grad is False
    x._fresh_grad = True
    assert x._fresh_grad is True


def test_an_executor_leaves_fresh_grad_alone():
    x = variable()
    ex = (a * 2).bind(mx.cpu(), [x], [x.grad])
    ex.forward(is_train=True)
    ex.backward(nd.ones(3))
    assert x.grad.asnumpy().tolist() == [2, 2, 2] and x._fresh_grad is False


# ---- what is prepared once for a symbol ---------------------------------------------------------------------------------
def test_executors_of_equal_shapes_share_what_the_passes_made():
    graph = sym.tanh(sym.dot(a, b)) + 1
    shapes = {"a": (3, 4), "b": (4, 5)}
    one, other = (graph.simple_bind(mx.cpu(), **shapes) for _ in range(2))
    small = one.reshape(a=(2, 4), b=(4, 5))
    large = small.reshape(a=(3, 4), b=(4, 5), allow_up_sizing=True)
    assert len({id(e._ready(True, e._wanted).pattern) for e in (one, other, small, large)}) == 1
    rng = np.random.default_rng(0)
    for executor in (one, other, small, one):
        host = {k: rng.normal(size=v.shape).astype("f") for k, v in executor.arg_dict.items()}
        found = executor.forward(is_train=True, **host)[0].asnumpy()
        want = np.tanh(host["a"] @ host["b"]) + 1
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
        head = rng.normal(size=found.shape)
        executor.backward(nd.array(head))
        slope = (head * (1 - (want - 1) ** 2)) @ host["b"].T
        np.testing.assert_allclose(executor.grad_dict["a"].asnumpy(), slope, rtol=1e-4, atol=1e-5)


def test_an_operator_defined_anew_is_bound_anew(own):
    def define(factor):
        @mx.op.elementwise
        def test_sharing_anew(x):
            """A multiple."""
            return factor * x

        return test_sharing_anew

    own(define(2))
    graph = sym.test_sharing_anew(a)
    assert graph.bind(mx.cpu(), {"a": nd.ones(2)}).forward()[0].asnumpy().tolist() == [2, 2]
    define(3)
    again = sym.test_sharing_anew(a)
    assert again.bind(mx.cpu(), {"a": nd.ones(2)}).forward()[0].asnumpy().tolist() == [3, 3]
    assert graph.bind(mx.cpu(), {"a": nd.ones(2)}).forward()[0].asnumpy().tolist() == [2, 2]  # it holds the old one


def test_states_of_custom_operators_are_their_executors_own():
    class Count(mx.operator.CustomOp):
        calls = 0

        def forward(self, is_train, req, in_data, out_data, aux):
            self.calls += 1
            self.assign(out_data[0], req[0], in_data[0] * 0 + self.calls)

    @mx.operator.register("test_sharing_count")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Count()

    graph = sym.Custom(a, op_type="test_sharing_count")
    one, other = (graph.simple_bind(mx.cpu(), "null", a=(1,)) for _ in range(2))
    assert [one.forward()[0].asscalar() for _ in range(2)] == [1, 2]
    assert other.forward()[0].asscalar() == 1


# ---- buckets: executors of different sizes with the same parameters ---------------------------------------------------
PARAMETERS = ["fc_weight", "fc_bias", "bn_gamma", "bn_beta"]


def bucket(length, **kwargs):
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc", flatten=False)
    net = sym.Reshape(sym.BatchNorm(net, name="bn", axis=-1), shape=(-1, 3))
    return sym.SoftmaxOutput(net, name="softmax").simple_bind(
        mx.cpu(), data=(2, length, 4), softmax_label=(2 * length,), **kwargs
    )


def test_parameters_gradients_and_states_are_another_executor_s():
    large = bucket(8)
    small = bucket(5, shared_arg_names=PARAMETERS, shared_exec=large)
    for name in PARAMETERS:
        assert small.arg_dict[name] is large.arg_dict[name] and small.grad_dict[name] is large.grad_dict[name]
    assert shared([large.aux_dict["bn_moving_mean"]], [small.aux_dict["bn_moving_mean"]]) == [True]
    assert shared([large.arg_dict["softmax_label"]], [small.arg_dict["softmax_label"]]) == [False]
    for alone in (bucket(5, shared_exec=large), bucket(5, shared_arg_names=PARAMETERS)):
        assert shared([large.arg_dict["fc_bias"]], [alone.arg_dict["fc_bias"]]) == [False]
        assert shared([large.aux_dict["bn_moving_mean"]], [alone.aux_dict["bn_moving_mean"]]) == [False]
    quiet = bucket(5, shared_arg_names=PARAMETERS, shared_exec=large, grad_req="null")
    assert set(quiet.grad_dict.values()) == {None}


def test_data_are_parts_of_a_buffer():
    buffer = {"data": nd.ones((2, 8, 4))}
    small = bucket(5, shared_buffer=buffer)
    assert sorted(buffer) == sorted(n for name in small.arg_dict for n in (name, f"grad of {name}"))
    small.arg_dict["data"][:] = 2
    assert values([buffer["data"].reshape((-1,))[[0, 39, 40]]]) == [[2, 2, 1]]
    larger = bucket(9, shared_buffer=buffer)
    assert buffer["data"] is larger.arg_dict["data"] and buffer["fc_bias"] is small.arg_dict["fc_bias"]


def test_what_cannot_be_shared():
    large = bucket(8)
    with pytest.raises(mx.MXNetError, match=r"'softmax_label' is float32 \(16,\) in shared_exec.* needs float32 \(10,\)"):
        bucket(5, shared_arg_names=["softmax_label"], shared_exec=large)
    other = sym.exp(sym.Variable("data")).simple_bind(mx.cpu(), data=(2,))
    with pytest.raises(mx.MXNetError, match="'fc_bias', which is not an argument of shared_exec"):
        bucket(5, shared_arg_names=["fc_bias"], shared_exec=other)


# ---- gradients where arguments lie --------------------------------------------------------------------------------------
NETS = [
    lambda x, y: sym.sin(x) * y, lambda x, y: sym.softmax(x * y, axis=-1) * sym.exp(y),
    lambda x, y: sym.dot(x, sym.dot(y, x, True)), lambda x, y: sym.sum(sym.square(x) * y, axis=1),
    lambda x, y: sym.broadcast_sub(x, sym.mean(y, axis=1, keepdims=True)) * sym.tanh(x),
]  # fmt: skip


def with_gradients_at(net, shape, places, req):
    """Return the array of twice as many numbers whose halves are the arguments, after backward into its parts."""
    rng, size = np.random.default_rng(0), np.prod(shape)
    memory = nd.array(rng.normal(size=2 * size + 3), dtype="float64")
    x, y = (memory[k * size : (k + 1) * size].reshape(shape) for k in range(2))
    grads = dict(zip("ab", [nd.zeros(shape, dtype="float64") for _ in "ab"], strict=True))
    if places is not None:
        grads = {n: memory[at(size) : at(size) + size].reshape(shape) for n, at in places.items()}
    executor = net(a, b).bind(mx.cpu(), {"a": x, "b": y}, grads, req)
    head = rng.normal(size=executor.forward(is_train=True)[0].shape)
    executor.backward(nd.array(head, dtype="float64"))
    return memory.asnumpy(), grads


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("shape", [(3, 4), (64, 33)])
@pytest.mark.parametrize("places", [
    {"a": lambda n: 0, "b": lambda n: n}, {"a": lambda n: n, "b": lambda n: 0}, {"a": lambda n: 3}, {"b": lambda n: n - 2},
])  # fmt: skip
def test_gradients_in_the_memory_of_arguments_are_written_last(net, shape, places, req):
    expected, grads = with_gradients_at(net, shape, None, "write")
    for name, at in places.items():
        part = expected[at(np.prod(shape)) :][: np.prod(shape)]
        part[:] = grads[name].asnumpy().ravel() + (part if req == "add" else 0)
    found, _ = with_gradients_at(net, shape, places, req)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_contexts_of_groups():
    with mx.AttrScope(ctx_group="first"):
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=4, name="one")
    with mx.AttrScope(ctx_group="second"):
        net = sym.FullyConnected(net, num_hidden=4, name="two")
    ex = net.simple_bind(mx.cpu(3), group2ctx={"second": mx.cpu(1), "first": mx.gpu(0)}, data=(2, 3))
    assert [x.context.device_id for x in ex.arg_arrays] == [3, 3, 3, 1, 1]
    assert ex.grad_dict["two_bias"].context == mx.cpu(1) and ex.forward()[0].shape == (2, 4)
