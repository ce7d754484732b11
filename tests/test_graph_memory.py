"""Memory of a training step: the order of execution, and mirroring."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest
from comparing import heads

import mxop as mx
from mxop import nd


def layers(n, width=8, act_type="tanh"):
    s = mx.sym.Variable("data")
    for k in range(n):
        s = mx.sym.FullyConnected(s, num_hidden=width, name=f"layer{k}")
        s = mx.sym.Activation(s, act_type=act_type, name=f"act{k}")
    return mx.sym.sum(s, name="total")


def step(symbol, passes=None, batch=64, **shapes):
    """Bind, train one step; return the executor and all that it computed."""
    executor = symbol.simple_bind(mx.cpu(), "write", passes=passes, data=(batch, 8), **shapes)
    rng = np.random.default_rng(0)
    for array in executor.arg_arrays:
        array[:] = rng.normal(size=array.shape) / 3
    executor.backward(heads(executor.forward(is_train=True)))
    return executor, [a.asnumpy() for a in (*executor.outputs, *executor.grad_arrays)]


def planned(executor):
    return executor.explain(is_train=True).memory["planned"]


# ---- order ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("act_type", ["tanh", "relu"])
def test_a_step_keeps_one_value_a_layer(act_type):
    executor, _ = step(layers(20, act_type=act_type))
    one = 64 * 8 * 4
    assert planned(executor) <= 24 * one
    assert executor.explain().memory["unshared"] >= 75 * one


def test_weights_get_their_gradients_when_they_can():
    executor, _ = step(layers(10))
    order = [row.outputs[0].place for row in executor.explain().rows if row.phase == "backward" and row.outputs]
    places = [order.index(f"gradient of layer{k}_weight") for k in range(10)]
    assert places == sorted(places, reverse=True)


def test_order_never_needs_more_than_that_of_the_graph():
    rng = np.random.default_rng(1)
    for _ in range(30):
        x = mx.sym.Variable("data")
        values = [x, mx.sym.softmax(x)]
        for _ in range(15):
            a, b = (values[i] for i in rng.integers(0, len(values), 2))
            values.append(mx.sym.softmax(a) if rng.random() < 0.5 else mx.sym.dot(a, b, transpose_b=True))
        symbol = mx.sym.add_n(*[mx.sym.sum(v) for v in values[-4:]])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mxop.graph.plan.early_release", lambda nodes, *rest: list(nodes))
            executor, plain = step(symbol, batch=8)
        again, found = step(symbol, batch=8)
        assert max(again.explain().live_bytes) <= max(executor.explain().live_bytes)
        for a, b in zip(found, plain, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert mx.sym.Variable("x").simple_bind(mx.cpu(), x=(2,)).explain().buffers == []  # nothing is ordered


class Note(mx.operator.CustomOp):
    """Notes that it runs, and by how much its results differ from run to run."""

    def __init__(self, tag):
        self.tag = tag

    def forward(self, is_train, req, in_data, out_data, aux):
        noted.append(self.tag)
        self.assign(out_data[0], req[0], in_data[0] * (1 + len(noted)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * out_data[0] / in_data[0])


@mx.operator.register("graph_memory_note")
class NoteProp(mx.operator.CustomOpProp):
    def __init__(self, tag):
        super().__init__()
        self.tag = tag

    def create_operator(self, ctx, shapes, dtypes):
        return Note(self.tag)


noted = []


def test_what_has_effects_keeps_its_order():
    x = mx.sym.Variable("data")
    parts = [mx.sym.Custom(mx.sym.softmax(x), op_type="graph_memory_note", tag=str(k)) for k in range(6)]
    symbol = mx.sym.Group([mx.sym.sum(p) for p in parts] + [mx.sym.dot(p, x, transpose_a=True) for p in parts[::-1]])
    for passes in ({"share_memory": False}, {}):
        executor = symbol.simple_bind(mx.cpu(), "null", passes=passes, data=(64, 8))
        noted.clear()
        executor.forward()
        assert noted == list("012345")


# ---- mirroring ------------------------------------------------------------------------------------------------------
def same(found, plain):
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_mirroring_gives_the_same_in_less_memory():
    symbol = layers(50)
    plain, expected = step(symbol)
    mirrored, found = step(symbol, {"mirror": True})
    same(found, expected)
    assert planned(mirrored) <= 0.4 * planned(plain)
    assert planned(mirrored) <= 0.35 * plain.explain().memory["unshared"]


def test_a_choice_of_segments_leaves_nothing_behind():
    """Sums of sizes, of which there are as many as cuts times values, were kept for as long as the pattern."""

    def kept(width, passes):
        gc.collect()
        before = len(gc.get_objects())
        step(layers(40, width), passes)
        gc.collect()
        return len(gc.get_objects()) - before

    kept(3, {"mirror": True})  # what is made once
    assert kept(5, {"mirror": True}) < 2 * kept(7, {"mirror": False})


def test_backward_may_run_again():
    executor, found = step(layers(12), {"mirror": True})
    executor.backward(heads(executor.outputs))
    same([a.asnumpy() for a in executor.grad_arrays], found[1:])


def test_mxnets_environment_variable(monkeypatch):
    symbol = layers(30)
    plain, _ = step(symbol)
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    assert planned(step(symbol)[0]) < planned(plain)
    assert planned(step(symbol, {"mirror": False})[0]) == planned(plain)
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "0")
    assert planned(step(symbol)[0]) == planned(plain)


def test_gradients_of_layers_take_the_place_of_their_operands():
    """Sums of rows, such as gradients of biases, make no strip of what is stored anyway: a strip overwrites nothing."""
    s = mx.sym.Variable("data")
    for k in range(3):
        s = mx.sym.Activation(mx.sym.FullyConnected(s, num_hidden=96, name=f"layer{k}"), act_type="relu")
    s = mx.sym.log_softmax(mx.sym.FullyConnected(s, num_hidden=10, name="last"))
    loss = mx.sym.sum(s * mx.sym.Variable("label"))
    shapes = {"data": (256, 96), "label": (256, 10)}
    requests = {name: "null" if name in shapes else "write" for name in loss.list_arguments()}
    strips, none = (
        planned(loss.simple_bind(mx.cpu(), requests, passes={"mirror": True, "strips": on}, **shapes)) for on in (True, False)
    )
    assert strips <= 1.01 * none


def test_mxnets_attribute():
    def build(**attr):
        s = mx.sym.Variable("data")
        for k in range(10):
            s = mx.sym.FullyConnected(s, num_hidden=8, name=f"layer{k}")
            s = mx.sym.sin(mx.sym.softmax(s, attr=attr), attr=attr)
        return mx.sym.sum(s)

    plain, expected = step(build())
    forced, found = step(build(force_mirroring="True"))
    same(found, expected)
    assert planned(forced) < 0.8 * planned(plain)
    assert any("again" in name for row in forced.explain().rows for name in row.members)
    assert planned(step(build(force_mirroring="False"))[0]) == planned(plain)


def test_what_is_not_repeatable_runs_once():
    s = mx.sym.Variable("data")
    for k in range(12):
        s = mx.sym.softmax(mx.sym.Custom(s, op_type="graph_memory_note", tag=str(k)))
    found = []
    for passes in ({}, {"mirror": True}):
        noted.clear()
        found.append(step(mx.sym.sum(mx.sym.square(s)), passes)[1])
        assert noted == [str(k) for k in range(12)]
    same(*found)


def test_what_reads_states_is_not_computed_again():
    s, w = mx.sym.Variable("data"), mx.sym.Variable("w")
    new = mx.graph.assign(w, w + 100)
    for _ in range(10):
        s = mx.sym.softmax(mx.sym.broadcast_mul(s, w))
    symbol = mx.sym.Group([mx.sym.sum(s), new])
    found = []
    for passes in ({}, {"mirror": True}):
        executor = symbol.simple_bind(mx.cpu(), "write", passes=passes, data=(64, 8), w=(1, 8))
        executor.arg_dict["data"][:] = np.random.default_rng(0).normal(size=(64, 8))
        executor.aux_dict["w"][:] = 2
        executor.forward(is_train=True)
        executor.backward(heads(executor.outputs))
        found.append(executor.grad_dict["data"].asnumpy())
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_inference_is_left_alone():
    symbol = layers(5)
    executor = symbol.simple_bind(mx.cpu(), "null", passes={"mirror": True}, data=(64, 8))
    assert not any("again" in name for row in executor.explain().rows for name in row.members)


# ---- what is large beside what it is made of -----------------------------------------------------------------------
def convolutions(n):
    s = mx.sym.Variable("data")
    for k in range(n):
        columns = mx.sym.im2col(s, kernel=(3, 3), pad=(1, 1))
        rows = mx.sym.broadcast_like(mx.sym.Variable(f"w{k}", shape=(1, 8, 72)), columns, lhs_axes=(0,), rhs_axes=(0,))
        s = mx.sym.relu(mx.sym.reshape(mx.sym.batch_dot(rows, columns), shape=(0, 0, -4, 12, 12)))
    return mx.sym.sum(s)


def trained(symbol, shape=(2, 8, 12, 12)):
    executor = symbol.simple_bind(mx.cpu(), "write", data=shape)
    rng = np.random.default_rng(0)
    for array in executor.arg_arrays:
        array[:] = rng.normal(size=array.shape) / 3
    executor.backward(heads(executor.forward(is_train=True)))
    return executor, [a.asnumpy() for a in (*executor.outputs, *executor.grad_arrays)]


def test_windows_are_made_again(monkeypatch, anew):
    image, windows, n = 4 * 2 * 8 * 144, 4 * 2 * 72 * 144, 8
    executor, found = trained(convolutions(n))
    assert planned(executor) < 2 * windows + (n + 4) * image  # not n times the windows
    monkeypatch.setattr(mx.op.get("_windows"), "made_again", False)
    anew()
    kept, expected = trained(convolutions(n))
    assert planned(kept) > n * windows
    same(found, expected)
    with mx.AttrScope(force_mirroring="False"):
        assert planned(trained(convolutions(n))[0]) > n * windows


def test_windows_are_not_kept_by_a_tape():
    x, w = nd.ones((2, 8, 12, 12)), nd.ones((8, 8, 3, 3))
    x.attach_grad()
    w.attach_grad()
    before = mx.context.memory_stats()["in_use"]
    with mx.autograd.record():
        y = nd.Convolution(x, w, kernel=(3, 3), pad=(1, 1), num_filter=8, no_bias=True)
    assert mx.context.memory_stats()["in_use"] - before <= 1.2 * 4 * y.size
    for _ in range(2):
        y.backward(retain_graph=True)
        assert w.grad[0, 0, 1, 1].item() == 2 * 144 and x.grad[0, 0, 5, 5].item() == 72


def test_what_only_lends_its_shape_is_not_kept():
    """The gradient of a slice asks for the shape of what was sliced."""
    s = mx.sym.Variable("data")
    for k in range(4):
        wide = mx.sym.dot(s, mx.sym.Variable(f"w{k}", shape=(2, 100)), name=f"wide{k}")
        s = mx.sym.sin(mx.sym.slice_axis(wide, axis=1, begin=0, end=2))
    executor, _ = trained(mx.sym.sum(s), (64, 2))
    wide = [t for b in executor.explain().buffers for t in b.tenants if t.name in [f"wide{k}" for k in range(4)]]
    assert len(wide) == 4 and all(t.last - t.first == 1 for t in wide)


def test_a_small_value_does_not_keep_a_large_buffer():
    s = mx.sym.Variable("data")
    values = []
    for _ in range(6):
        s = mx.sym.softmax(mx.sym.tile(s, reps=(1, 64)))
        s = mx.sym.softmax(mx.sym.slice_axis(s, axis=1, begin=0, end=8))
        values.append(s)
    executor = mx.sym.Group([mx.sym.add_n(*[mx.sym.square(v) for v in values])]).bind(mx.cpu(), {"data": nd.ones((4, 8))})
    executor.forward()
    assert planned_of(executor) < 4 * 4 * (2 * 512 + 16 * 8)


def planned_of(executor):
    return executor.explain(is_train=False).memory["planned"]


# ---- results ----------------------------------------------------------------------------------------------------------
def test_a_result_of_another_shape_is_made_where_it_belongs():
    x = mx.sym.Variable("x")
    made = mx.sym.exp(x * 2)
    shaped = mx.sym.Reshape(made, shape=(0, -1))
    executor = shaped.simple_bind(mx.cpu(), "null", x=(2, 3, 4))
    assert len(executor.explain().rows) == 1 and not executor.explain().memory["planned"]
    executor = mx.sym.Reshape(shaped, shape=(-1,)).simple_bind(mx.cpu(), "null", x=(2, 3, 4))
    assert len(executor.explain().rows) == 1


@pytest.mark.parametrize("rest, planned", [
    (lambda made: [made * 2 + 1], 0),
    (lambda made: [made * 2 + 1, made], 0),                                         # it belongs elsewhere itself
    (lambda made: [made * 2 + 1, mx.sym.max(made, axis=1)], 256),                   # somebody else reads it
    (lambda made: [mx.sym.cast(made, dtype="float64") * 2], 256),                   # there is no room for two types
    (lambda made: [mx.sym.broadcast_mul(made, mx.sym.dot(made * 2, made))], 256),
    (lambda made: [mx.sym.dot(made, made) * mx.sym.cumsum(made, axis=0)], 512),             # one of both
])  # fmt: skip
def test_a_value_is_made_where_what_takes_its_place_belongs(rest, planned):
    x = mx.sym.Variable("x")
    outputs = rest(mx.sym.dot(x, x))
    executor = mx.sym.Group(outputs).simple_bind(mx.cpu(), "null", x=(8, 8))
    assert executor.explain().memory["planned"] == planned
    executor.arg_arrays[0][:] = np.random.default_rng(0).standard_normal((8, 8))
    apart = mx.sym.Group(outputs).simple_bind(mx.cpu(), "null", passes={"fuse": False}, shared_buffer={}, x=(8, 8))
    apart.arg_arrays[0][:] = executor.arg_arrays[0]
    for _ in range(2):
        for found, wanted in zip(executor.forward(), apart.forward(), strict=True):
            np.testing.assert_array_equal(found.asnumpy(), wanted.asnumpy())


def test_no_value_is_made_where_an_argument_lies():
    x = nd.array(np.random.default_rng(0).standard_normal((8, 8)))
    made = mx.sym.dot(mx.sym.Variable("x"), mx.sym.Variable("x")) * 2
    executor = made.bind(mx.cpu(), {"x": x}, {"x": x})
    executor.forward(is_train=True)
    before = x.asnumpy().astype("float64")
    head = heads(executor.outputs)
    executor.backward(head)
    head = head[0].asnumpy() * 2.0
    np.testing.assert_allclose(x.asnumpy(), head @ before.T + before.T @ head, 1e-5, 1e-5)


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("passes", [None, {"fuse": False, "strips": False}])
def test_results_of_another_shape_hold_what_their_values_do(req, passes):
    x = mx.sym.Variable("x")
    made = mx.sym.exp(mx.sym.Reshape(x, shape=(-1, 4)))
    shaped = mx.sym.Reshape(made, shape=(2, -1))
    groups = ([shaped], [shaped, shaped], [shaped, made], [shaped, mx.sym.sum(shaped * 3)], [mx.sym.Flatten(shaped)],
              [shaped, mx.sym.Reshape(shaped, shape=(-1,))])  # fmt: skip
    a = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("float32")
    for outputs in groups:
        executor = mx.sym.Group(outputs).simple_bind(mx.cpu(), req, passes=passes, x=a.shape)
        executor.arg_arrays[0][:] = a
        executor.grad_arrays[0][:] = 5
        for _ in range(2):  # what was handed out stays as it was
            found = executor.forward(is_train=True)
            before = [o.asnumpy() for o in found]
        given = heads(found)
        executor.backward(given)
        whole = np.exp(a)
        for output, o in zip(before, found, strict=True):
            np.testing.assert_array_equal(o.asnumpy(), output)
            expected = (whole * 3).sum() if output.size == 1 else whole
            np.testing.assert_allclose(output.ravel(), np.ravel(expected), 1e-5)
        slope = sum(h.item() * 3 if h.size == 1 else h.asnumpy().reshape(a.shape) for h in given)
        np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), whole * slope + 5 * (req == "add"), 1e-5, 1e-5)


# ---- parts of computed values -----------------------------------------------------------------------------------------
def first(value):
    return mx.sym.slice_axis(value, axis=0, begin=0, end=1)


def states_of(kind):
    x, s = mx.sym.Variable("x"), mx.sym.Variable("s")
    if kind == "foreach":
        return mx.sym.contrib.foreach(lambda a, b: (a * b, a + b), x, s)[0]
    made = mx.sym.contrib.while_loop(lambda b: mx.sym.sum(b) < 1e9, lambda b: (b * 1, [b * 1.5]), [s], 40)[0]
    return made[0] if isinstance(made, list) else made


def parts():
    """Return graphs whose result is the first part of a value, and of the value."""
    x, s = mx.sym.Variable("x"), mx.sym.Variable("s")
    softmax = mx.sym.softmax(x)
    return {
        "sin": (first(mx.sym.sin(x)), mx.sym.sin(x)),
        "dot": (first(mx.sym.dot(x, mx.sym.ones((64, 64)))), mx.sym.dot(x, mx.sym.ones((64, 64)))),
        "cumsum": (first(mx.sym.cumsum(x, axis=0)), mx.sym.cumsum(x, axis=0)),
        "sort": (first(mx.sym.sort(x, axis=0)), mx.sym.sort(x, axis=0)),
        "concat": (first(mx.sym.concat(x, x, dim=0)), mx.sym.concat(x, x, dim=0)),
        "transpose": (first(mx.sym.transpose(x)), mx.sym.transpose(x)),
        "slice": (mx.sym.slice(softmax, begin=(0, 0), end=(1, None)), softmax),
        "slice_like": (mx.sym.slice_like(softmax, s.reshape((1, 64)), axes=(0,)), softmax),
        "Crop": (mx.sym.Crop(softmax.reshape((1, 1, 40, 64)), h_w=(1, 64), num_args=1), softmax.reshape((1, 1, 40, 64))),
        "reshaped": (first(mx.sym.exp(x)).reshape((8, 8)), mx.sym.exp(x)),
        "part of a part": (mx.sym.slice_axis(first(mx.sym.exp(x)), axis=1, begin=0, end=8), mx.sym.exp(x)),
        "both": (mx.sym.Group([first(mx.sym.exp(x)), mx.sym.exp(x)]), mx.sym.exp(x)),
        "foreach": (first(states_of("foreach")), states_of("foreach")),
        "while_loop": (first(states_of("while_loop")), states_of("while_loop")),
    }  # fmt: skip


def arrays_for(symbol):
    rng = np.random.default_rng(0)
    shapes = {"x": (40, 64), "s": (64,)}
    return {name: nd.array(rng.uniform(0.5, 1.5, shapes[name])) for name in symbol.list_arguments()}


def check_part(name, how):
    """Compare a part of a value, and its gradients, with the part of the whole value."""
    part, whole = parts()[name]
    arrays = arrays_for(part)
    if how == "eval":
        found, grads = part.eval(**arrays)[0], {}
    else:
        grads = {k: nd.full(a.shape, 7) for k, a in arrays.items()} if how == "train" else {}
        executor = part.bind(mx.cpu(), arrays, args_grad=grads or None, grad_req="write" if grads else "null")
        for _ in range(3):
            found = executor.forward(is_train=bool(grads))[0]
        found = found.copy()
    all_grads = {k: nd.zeros(a.shape) for k, a in arrays.items()}
    apart = whole.bind(mx.cpu(), arrays, args_grad=all_grads)
    everything = apart.forward(is_train=True)[0]
    np.testing.assert_array_equal(found.asnumpy().ravel(), everything.asnumpy().ravel()[: found.size])
    if grads and len(executor.outputs) == 1:
        head = np.random.default_rng(1).standard_normal(found.size)
        executor.backward(nd.array(head.reshape(found.shape)))
        heads = np.zeros(everything.size)
        heads[: found.size] = head
        apart.backward(nd.array(heads.reshape(everything.shape)))
        for k, grad in grads.items():
            np.testing.assert_allclose(grad.asnumpy(), all_grads[k].asnumpy(), 1e-5, 1e-6)


@pytest.mark.parametrize("how", ["infer", "train", "eval"])
@pytest.mark.parametrize("name", parts())
def test_the_first_part_of_a_value(name, how):
    """No value is made in the array of a result that is only a part of it."""
    check_part(name, how)


def test_the_first_part_of_a_compiled_value():
    f = mx.graph.compiled(lambda a: nd.slice_axis(nd.sin(a), axis=0, begin=0, end=1))
    x = arrays_for(mx.sym.Variable("x"))["x"]
    x.attach_grad()
    for _ in range(3):
        with mx.autograd.record():
            y = f(x)
        y.backward(nd.array(np.arange(64.0).reshape(1, 64)))
        np.testing.assert_allclose(y.asnumpy(), np.sin(x.asnumpy()[:1]), 1e-6)
        wanted = np.zeros((40, 64))
        wanted[0] = np.cos(x.asnumpy()[0]) * np.arange(64)
        np.testing.assert_allclose(x.grad.asnumpy(), wanted, 1e-5, 1e-6)


def test_parts_write_nothing_beside_their_arrays():
    """The same, with guard bytes around every block."""
    program = (
        "import gc, test_graph_memory as t\nfor name in t.parts():\n"
        "    for how in ('infer', 'train', 'eval'): t.check_part(name, how)\n"
        "t.test_the_first_part_of_a_compiled_value()\ngc.collect()\nt.mx.context.empty_cache()\nprint('done')"
    )
    environment = dict(os.environ, MXOP_DEBUG_MEMORY="1")
    environment["PYTHONPATH"] = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n" and done.returncode == 0, done.stderr
