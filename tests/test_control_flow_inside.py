"""Control flow in graphs: random numbers, states, files, explanations, errors; inside composites and compiled functions."""

import _thread
import json
import signal
import threading

import numpy as np
import pytest
from comparing import heads
from loop_programs import (
    ARGS,
    DATA,
    V,
    again,
    bound,
    close,
    loss_of,
    powers,
    recorded,
    rnn,
    unrolled,
    values,
    with_loop,
)

import mxop as mx
from mxop import autograd, nd, sym
from mxop.graph.bodies import Bodied
from mxop.op import composite


# ---- random numbers, train mode, states ----------------------------------------------------------------------------------
def dropping(F, x, h):
    def body(xs, state):
        new = F.Dropout(xs * state, p=0.5)
        return [new, F.random.uniform(shape=(8,)) * new], new + state

    out, last = F.contrib.foreach(body, x, h)
    return out, last


def test_random_operators_draw_in_each_step_as_arrays_do():
    arrays = values({"x": (3, 8), "h": (8,)}, "float32")
    out, last = dropping(sym, V("x"), V("h"))
    grads = {n: nd.zeros(a.shape) for n, a in arrays.items()}
    executor = sym.Group([*out, last]).bind(mx.cpu(), arrays, args_grad=grads)
    mx.random.seed(5)
    found = [o.asnumpy() for o in executor.forward(is_train=True)]
    given = heads(executor.outputs)
    executor.backward(given)
    masks = found[0] != 0
    assert not np.array_equal(masks[0], masks[1]) and 0 < masks.mean() < 1
    for a in arrays.values():
        a.attach_grad()
    mx.random.seed(5)
    with autograd.record():
        outs, end = dropping(nd, **arrays)
    autograd.backward([*outs, end], given)
    for one, other in zip(found, [*outs, end], strict=True):
        np.testing.assert_array_equal(one, other.asnumpy())
    for n, g in grads.items():
        np.testing.assert_allclose(g.asnumpy(), arrays[n].grad.asnumpy(), rtol=1e-5)
    assert not np.array_equal(executor.forward(is_train=True)[0].asnumpy(), found[0])  # the next run draws anew


def test_what_is_drawn_after_a_loop_waits_for_what_is_left_of_it():
    """Its first output, a state that nobody reads, is taken away; it runs once all the same."""

    def program(F, x, s):
        out, _ = F.contrib.foreach(lambda a, s: (a + F.random.uniform(shape=(2,)), s + a), x, s)
        return [out, F.random.uniform(shape=(2,)), F.random.uniform(shape=(2,))]

    x, s = nd.zeros((3, 2)), nd.zeros(2)
    group = sym.Group(program(sym, V("x"), V("s")))
    executor = group.bind(mx.cpu(), {"x": x, "s": s}, args_grad={"x": nd.zeros((3, 2))})
    for is_train in (False, True):
        mx.random.seed(5)
        wanted = [a.asnumpy() for a in program(nd, x, s)]
        mx.random.seed(5)
        for value, expected in zip(executor.forward(is_train), wanted, strict=True):
            np.testing.assert_array_equal(value.asnumpy(), expected)


def test_bodies_know_whether_they_train():
    out, _ = sym.contrib.foreach(lambda x, s: (sym.Dropout(x, p=0.5), s + x), V("x"), V("h"))
    executor = out.bind(mx.cpu(), {"x": nd.ones((3, 8)), "h": nd.ones(8)})
    assert (executor.forward()[0].asnumpy() == 1).all() and (executor.forward(is_train=True)[0].asnumpy() != 1).all()
    x = V("x")
    branch = sym.contrib.cond(V("c"), lambda: sym.Dropout(x, p=0.5), lambda: x * 3)
    executor = branch.bind(mx.cpu(), {"c": nd.ones(1), "x": nd.ones(8)})
    assert (executor.forward()[0].asnumpy() == 1).all() and (executor.forward(is_train=True)[0].asnumpy() != 1).all()


def test_random_branches_are_differentiated_with_the_numbers_they_drew():
    x = V("x")
    branch = sym.contrib.cond(V("c"), lambda: sym.Dropout(x, p=0.5), lambda: x * sym.random.uniform(shape=(64,)))
    executor = branch.bind(mx.cpu(), {"c": nd.ones(1), "x": nd.ones(64)}, args_grad={"x": nd.zeros(64)})
    for c in (1, 0):
        out = executor.forward(is_train=True, c=nd.array([c]))[0].asnumpy()
        executor.backward(nd.ones(64))
        np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), out, rtol=1e-6)


def flow_centred(F, data, mean, *, is_train):
    """Subtract the mean of the batch, or the moving one."""
    if is_train:
        found = F.mean(data, axis=0)
        return F.broadcast_sub(data, found), 0.5 * mean + 0.5 * F.BlockGrad(found)
    return F.broadcast_sub(data, mean), mean


@pytest.fixture
def centred():
    yield composite(flow_centred, writes={"mean": 1}, num_outputs=2)
    mx.op.unregister("flow_centred")


def test_auxiliary_states_go_from_step_to_step(centred):
    x = np.random.default_rng(2).normal(size=(3, 4, 2))
    mean = V("mean")

    def body(xs, s):
        return sym.flow_centred(sym.flow_centred(xs * s, mean), mean) * 2, s * 2

    out, _ = sym.contrib.foreach(body, V("x"), V("s"))
    assert out.list_arguments() == ["x", "s"] and out.list_auxiliary_states() == ["mean"]
    assert out.infer_shape(x=x.shape, mean=(2,))[0] == [x.shape, (4, 2)]
    args, aux = {"x": nd.array(x), "s": nd.ones((4, 2))}, {"mean": nd.ones(2)}
    executor = out.bind(mx.cpu(), args, args_grad={"x": nd.zeros(x.shape)}, aux_states=aux)
    executor.forward()
    assert executor.aux_dict["mean"].asnumpy().tolist() == [1, 1]
    found = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(nd.array(x))
    wanted, scale = np.ones(2), 1.0
    for step in x:
        centre = (step * scale).mean(axis=0)
        wanted = 0.25 * wanted + 0.25 * centre  # the second call finds a mean of 0
        scale *= 2
    np.testing.assert_allclose(executor.aux_dict["mean"].asnumpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(found[0], 2 * (x[0] - x[0].mean(axis=0)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy()[0], 2 * (x[0] - x[0].mean(axis=0)), rtol=1e-4, atol=1e-5)


def test_auxiliary_states_in_loops_in_loops_and_branches(centred):
    mean = V("mean")

    def inner(y, s):
        return sym.flow_centred(y, mean), s + y

    def outer(x, s):
        out, s = sym.contrib.foreach(inner, x, s)
        return out, sym.contrib.cond(V("c"), lambda: sym.flow_centred(s, mean), lambda: s)

    out, _ = sym.contrib.foreach(outer, V("x"), V("s"))
    x = np.random.default_rng(2).normal(size=(2, 3, 4, 2))
    for c in (0, 1):
        args = {"x": nd.array(x), "s": nd.zeros((4, 2)), "c": nd.array([c])}
        executor = out.bind(mx.cpu(), args, aux_states={"mean": nd.zeros(2)})
        executor.forward(is_train=True)
        wanted, s = np.zeros(2), np.zeros((4, 2))
        for step in x:
            for y in step:
                wanted = 0.5 * wanted + 0.5 * y.mean(axis=0)
                s = s + y
            if c:
                wanted, s = 0.5 * wanted + 0.5 * s.mean(axis=0), s - s.mean(axis=0)
        np.testing.assert_allclose(executor.aux_dict["mean"].asnumpy(), wanted, rtol=1e-5, atol=1e-6)


# ---- files ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["loop", "while_loop", "cond", "nested_loops"])
def test_files_of_mxnet(name):
    """What MXNet wrote is written again, and computes what MXNet computed."""
    text = (DATA / f"{name}.json").read_text()
    loaded = sym.load_json(text)
    assert loaded.tojson() == text and sym.load_json(loaded.tojson()).tojson() == text
    if name != "loop":
        case = json.loads((DATA / "control_flow_answers.json").read_text())[name]
        assert loaded.list_arguments() == list(case["args"])
        args = {n: nd.array(v) for n, v in case["args"].items()}
        grads = {n: nd.zeros(a.shape) for n, a in args.items() if n in case["grads"]}
        executor = loaded.bind(mx.cpu(), args, args_grad=grads)
        for found, wanted in zip(executor.forward(is_train=True), case["outputs"], strict=True):
            wanted = np.array(wanted)
            np.testing.assert_allclose(found.asnumpy()[: len(wanted)], wanted, rtol=1e-5)
        executor.backward([nd.ones(o.shape) for o in executor.outputs])
        for n, wanted in case["grads"].items():
            np.testing.assert_allclose(grads[n].asnumpy(), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_what_is_written_is_read_again(order):
    total = with_loop(rnn, True)(sym, **{n: V(n) for n in ARGS})
    i = sym.zeros((1,), dtype="float64")
    out, _ = sym.contrib.while_loop(lambda i, s: i < 2, lambda i, s: (s, [i + 1, s * V("v")]), [i, total.reshape((1,))], 3)
    total = total + sym.sum(sym.contrib.cond(sym.sum(out) > 0, lambda: sym.exp(out * 0.01), lambda: out + V("q")))
    arrays = values({**ARGS, "v": (1,), "q": (3, 1)})
    names = list(ARGS)
    for _ in range(order):
        again_total = sym.load_json(total.tojson())
        assert again_total.tojson() == total.tojson() and again_total.list_arguments() == total.list_arguments()
        given = {n: arrays[n] for n in total.list_arguments()}
        np.testing.assert_array_equal(again_total.eval(**given)[0].asnumpy(), total.eval(**given)[0].asnumpy())
        total = again(sym, list(again_total.gradient(names)))


def test_damaged_files_are_refused():
    graph = json.loads((DATA / "loop.json").read_text())
    loop = next(n for n in graph["nodes"] if n["op"] == "_foreach")
    for change, match in [
        ({"in_data_locs": "[7]"}, "expected each number once"),
        ({"num_out_data": "5"}, "the body has 2 outputs"),
        ({"num_args": "9"}, "takes 8 inputs, 3 given"),
        ({"num_outputs": "3"}, "the body has 2 outputs"),
    ]:
        damaged = json.loads(json.dumps(graph))
        next(n for n in damaged["nodes"] if n["op"] == "_foreach")["attrs"].update(change)
        with pytest.raises(mx.MXNetError, match=match):
            sym.load_json(json.dumps(damaged))
    loop["subgraphs"] = []
    with pytest.raises(mx.MXNetError, match="_foreach has 1 subgraphs, 0 given"):
        sym.load_json(json.dumps(graph))


def changed(graph, rng):
    """Change something in a graph, anywhere."""
    places = []
    waiting = [graph]
    while waiting:
        at = waiting.pop()
        places += [(at, key) for key in (at if isinstance(at, dict) else range(len(at)))]
        waiting += [at[key] for key in (at if isinstance(at, dict) else range(len(at))) if isinstance(at[key], (dict, list))]
    at, key = places[rng.integers(len(places))]
    if isinstance(at[key], str):
        at[key] = str(rng.choice(["[0]", "[1, 0]", "[]", "[None]", "5", "x", "[9]", "(1, 2, 1, 3, 1)", "-1", "True", "dot"]))
    elif isinstance(at[key], int):
        at[key] = int(rng.choice([0, 1, 2, 3, 50]))
    elif isinstance(at[key], list):
        at[key] = [at[key][:-1], at[key] * 2, at[key][::-1]][rng.integers(3)]


def test_whatever_a_file_holds_the_errors_are_ours():
    out, _ = sym.contrib.foreach(lambda x, s: (sym.tanh(x + s * V("w")), s * x), V("d"), V("s"))
    chosen = sym.contrib.cond(sym.sum(out) > 0, lambda: out * 2, lambda: sym.exp(out))
    texts = [(DATA / f"{name}.json").read_text() for name in ("loop", "while_loop", "cond", "nested_loops")]
    texts.append(sym.sum(chosen).gradient(["d"]).tojson())
    rng, loaded = np.random.default_rng(4), 0
    for k in range(400):
        graph = json.loads(texts[k % len(texts)])
        changed(graph, rng)
        try:
            symbol = sym.load_json(json.dumps(graph))
            executor = symbol.simple_bind(
                mx.cpu(), **{n: [(3,), (3, 2), (1,)][rng.integers(3)] for n in symbol.list_arguments()}
            )
            loaded += 1
            outputs = executor.forward(is_train=True)
            executor.backward([nd.ones(o.shape) for o in outputs])
        except mx.MXNetError:
            pass
    assert loaded > 20


# ---- looking inside, errors ----------------------------------------------------------------------------------------------
def test_executors_can_be_looked_at():
    arrays = values()
    total = with_loop(rnn, True)(sym, **{n: V(n) for n in ARGS})
    executor = total.bind(mx.cpu(), arrays, args_grad={n: nd.zeros(a.shape, dtype="float64") for n, a in arrays.items()})
    assert "_loop" in str(executor.explain()) and "_loop" in executor.debug_str()
    seen = {}
    executor.set_monitor_callback(lambda name, array: seen.update({name: array.shape}))
    value = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(nd.ones((1,), dtype="float64"))
    wanted = recorded(with_loop(rnn, False), arrays, 1)
    close((value, {n: g.asnumpy() for n, g in executor.grad_dict.items()}), wanted)
    assert any("_foreach" in name for name in seen)
    longer = executor.reshape(x=(7, 2, 3), h=(2, 3), w=(3, 3), u=(3, 3), allow_up_sizing=True)
    assert longer.forward()[0].shape == (1,) and longer.arg_dict["x"].shape == (7, 2, 3)


def test_arguments_may_be_exchanged():
    out, _ = sym.contrib.foreach(lambda x, s: (x * V("w"), s + x), V("d"), V("s"))
    other = out(w=V("z") * 2)
    assert other.list_arguments() == ["d", "s", "z"]
    assert other.eval(d=nd.ones((2, 1)), s=nd.ones(1), z=nd.array([4]))[0].asnumpy().tolist() == [[8], [8]]


def number(x):
    """A condition that holds."""
    return x.sum() if isinstance(x, nd.NDArray) else x


@pytest.mark.parametrize("F, one", [(nd, nd.ones((3, 2))), (sym, V("d"))], ids=["nd", "sym"])
@pytest.mark.parametrize("call, match", [
    (lambda c, d: c.foreach(lambda x, s: (x, s), 3, d), r"foreach: data must be a (NDArray|Symbol) or a .nested. list .*got 3"),
    (lambda c, d: c.foreach(lambda x, s: (x, s), d, [d, "a"]), "foreach: init_states must be .* got 'a'"),
    (lambda c, d: c.foreach(lambda x, s: (3, s), d, d), "foreach: the output of the body must be .* got 3"),
    (lambda c, d: c.foreach(lambda x, s: (x, 3), d, d), "foreach: the states that the body returns must be .* got 3"),
    (lambda c, d: c.foreach(lambda x, s: x, d, d), "foreach: the body must return two values, outputs and new states"),
    (lambda c, d: c.foreach(lambda x, s: (x, [s, s]), d, d), "foreach: the states that the body returns, (?s:.*) another form"),
    (lambda c, d: c.foreach(lambda x, s: (s, s), [], d), "foreach: data is an empty list"),
    (lambda c, d: c.while_loop(lambda i: i < 3, lambda i: (i, i), d), "max_iterations should be specified"),
    (lambda c, d: c.while_loop(lambda i: i < 3, lambda i: (i, i), d, "x"), "while_loop: max_iterations"),
    (lambda c, d: c.while_loop(lambda: 1, lambda: ([], []), [], 3), "at least one element"),
    (lambda c, d: c.while_loop(lambda i: "x", lambda i: (i, i), d, 3), "while_loop: cond .*'x'"),
    (lambda c, d: c.while_loop(lambda i: number(i), lambda i: i, d, 3), "func must return two"),
    (lambda c, d: c.while_loop(lambda i: number(i), lambda i: (i, [i, i]), [d], 3),
     "should be consistent during the loop: 1 given, func returned 2"),
    (lambda c, d: c.cond("x", lambda: d, lambda: d), "cond: pred .*'x'"),
    (lambda c, d: c.cond(lambda: number(d), lambda: 3, lambda: d), r"cond: what then.* returns must"),
])  # fmt: skip
def test_what_is_wrong_is_told(F, one, call, match):
    with pytest.raises(mx.MXNetError, match=match):
        call(F.contrib, one)


def test_more_that_is_wrong():
    d, s = V("d"), V("s")
    with pytest.raises(ValueError, match="the data array 'd-0' is not used by the body"):
        sym.contrib.foreach(lambda x, st: (st + 1, st), d, s)
    with pytest.raises(ValueError, match="the state array 's-0' is not used"):
        sym.contrib.foreach(lambda x, st: (x + 1, x), d, s)
    with pytest.raises(ValueError, match=r"func does not use loop_vars\[1\], 's-0'"):
        sym.contrib.while_loop(lambda i, j: i < 3, lambda i, j: (i, [i + 1, i + 1]), [d, s], 3)
    with pytest.raises(ValueError, match="then_func, 2, and else_func, 1"):
        sym.contrib.cond(d < s, lambda: [d + 1, s], lambda: [s])
    with pytest.raises(mx.MXNetError, match=r"'s-0' has .2,. before a step and .1, 2. after it"):
        sym.contrib.foreach(lambda x, st: (x, sym.expand_dims(st, axis=0)), d, s)[0].infer_shape(d=(3, 2), s=(2,))
    with pytest.raises(mx.MXNetError, match=r"output 0 has .2,. in the first branch and .3,. in the second"):
        sym.contrib.cond(V("c"), lambda: d * 2, lambda: s * 2).infer_shape(d=(2,), s=(3,))
    with pytest.raises(mx.MXNetError, match="data have 3 and 4 steps along axis 0"):
        sym.contrib.foreach(lambda x, st: (x[0] + x[1], st + x[0]), [d, V("e")], s)[0].infer_shape(d=(3, 2), e=(4, 2))
    with pytest.raises(TypeError, match=r"operator _foreach has bodies, which a call cannot give: use contrib.foreach"):
        sym._internal._foreach(num_args=1, num_outputs=1, num_out_data=1, in_state_locs=(), in_data_locs=(), remain_locs=())
    given = {"num_args": 1, "num_outputs": 1, "cond_input_locs": (), "then_input_locs": (), "else_input_locs": ()}
    for space in (nd._internal, sym._internal):
        with pytest.raises(TypeError, match=r"operator _cond has bodies, which a call cannot give: use contrib\.cond"):
            space._cond(**given)
        with pytest.raises(TypeError, match="operator _loop has bodies"):
            space._loop(num_given=0, first_locs=(), counts=())
    with pytest.raises(ValueError, match=r"data of shape .0, 2. have no slices"):
        nd.contrib.foreach(lambda x, st: (x, st), nd.zeros((3, 2))[0:0], nd.zeros(2))
    with pytest.raises(ValueError, match=r"data have shapes .3, 2., .4, 2."):
        nd.contrib.foreach(lambda x, st: (x[0], st), [nd.zeros((3, 2)), nd.zeros((4, 2))], nd.zeros(2))
    with pytest.raises(ValueError, match=r"cond is an array of shape .2,.; expected one number"):
        nd.contrib.while_loop(lambda i: i < 3, lambda i: (i, i), nd.zeros(2), 3)
    with pytest.raises(ValueError, match=r"array 0, has shape .1,. in the first step and .2,. in step 1"):
        nd.contrib.while_loop(lambda i: i < 3, lambda i: (nd.ones(int(i.item()) + 1), i + 1), nd.zeros(1), 3)


def test_an_error_in_a_step_is_told_with_its_operator():
    out, _ = sym.contrib.foreach(lambda x, s: (sym.take(s, x, mode="raise"), s + 0 * x), V("d"), V("s"))
    executor = out.bind(mx.cpu(), {"d": nd.array([[0], [5]]), "s": nd.zeros(1)})
    with pytest.raises(mx.MXNetError, match="_foreach"):
        executor.forward()


@pytest.fixture
def interruptible():
    """Let SIGINT raise KeyboardInterrupt: processes that a shell starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_long_loop_can_be_interrupted_and_lets_other_threads_run(interruptible):
    i, s = V("i"), V("s")
    _, (_, s) = sym.contrib.while_loop(lambda i, s: i >= 0, lambda i, s: ([], [i + 1, s + 1]), [i, s], 2_000_000_000)
    executor = s.bind(mx.cpu(), {"i": nd.zeros(1, dtype="float64"), "s": nd.zeros(1)})
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        executor.forward()
    timer.join()


# ---- where the bodies are not prepared --------------------------------------------------------------------------------------
@pytest.fixture
def not_prepared(monkeypatch):
    monkeypatch.setattr(Bodied, "prepared", lambda *given: None)


@pytest.mark.parametrize("order", [1, 2])
def test_bodies_run_operator_by_operator_where_they_must(not_prepared, order):
    arrays = values()
    close(bound(with_loop(rnn, True), arrays, order), recorded(with_loop(rnn, False), arrays, order))
    small = values({"s": (1,), "w": (1,)})
    close(bound(powers(6, 3), small, order), recorded(unrolled(3), small, order))
    s = V("s")
    branch = sym.contrib.cond(sym.sum(s) > 9, lambda: s * 2, lambda: sym.sin(s))
    np.testing.assert_allclose(branch.eval(s=small["s"])[0].asnumpy(), np.sin(small["s"].asnumpy()))


def test_on_a_gpu(gpu):
    arrays = values(dtype="float32")
    wanted = recorded(with_loop(rnn, False), arrays, 1)
    total = with_loop(rnn, True)(sym, **{n: V(n) for n in arrays})
    on_gpu = {n: a.as_in_context(gpu) for n, a in arrays.items()}
    grads = {n: nd.zeros(a.shape, ctx=gpu) for n, a in arrays.items()}
    executor = total.bind(gpu, on_gpu, args_grad=grads)
    value = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(nd.ones((1,), ctx=gpu))
    close((value, {n: g.asnumpy() for n, g in grads.items()}), wanted, 1e-4)


# ---- loops of one step ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("c", [1, 0])
def test_gradients_of_loops_of_one_step_are_added_where_asked(c):
    x, w, b = V("x"), V("w"), V("b")
    out, _ = sym.contrib.foreach(lambda a, s: (a * w + s, s + a), x, V("s"))
    total = sym.contrib.cond(V("c"), lambda: out * b, lambda: out + b)
    args = {
        "x": nd.ones((1, 2)) * 3,
        "s": nd.ones(2),
        "w": nd.ones(2) * 2,
        "b": nd.ones((1, 2)) * 5,
        "c": nd.array([c]),
    }
    grads = {n: nd.ones(args[n].shape) for n in "xwb"}
    executor = total.bind(mx.cpu(), args, args_grad=grads, grad_req="add")
    for _ in range(2):
        assert executor.forward(is_train=True)[0].asnumpy().tolist() == [[35, 35] if c else [12, 12]]
        executor.backward(nd.ones((1, 2)))
    wanted = {"x": 2 * 5, "w": 3 * 5, "b": 7} if c else {"x": 2, "w": 3, "b": 1}
    for n, g in grads.items():
        assert (g.asnumpy() == 1 + 2 * wanted[n]).all(), n


def test_a_choice_by_nan_and_minus_zero_hands_on_what_was_made():
    chosen = sym.contrib.cond(V("c"), lambda: V("x") * -1, lambda: V("x") + 1)
    for c, wanted in ((np.nan, -0.0), (0.5, -0.0), (-0.0, 1.0), (0.0, 1.0)):
        found = chosen.eval(c=nd.array([c]), x=nd.zeros(2))[0].asnumpy()
        assert found.tobytes() == np.full(2, wanted, "float32").tobytes()


@pytest.mark.parametrize("c", [1, -1])
def test_what_a_choice_hands_on_stays_where_it_is(c):
    """What the first branch makes lies in the place of the result, and backward reads the head gradient itself."""
    x = V("x")
    chosen = sym.contrib.cond(V("c") > 0, lambda: x * 2, lambda: x / 2)
    last = sym.contrib.cond(V("c") > 0, lambda: chosen + 1, lambda: chosen - 1)
    a, head = np.arange(-500, 500, dtype="float32"), np.arange(1000, dtype="float32")
    for total, wanted, slope, forward, both in (
        (chosen, a * 2 if c > 0 else a / 2, 2 if c > 0 else 0.5, 0, 2),
        (sym.sin(chosen), np.sin(a * 2 if c > 0 else a / 2), None, 1, 4),
        (last, a * 2 + 1 if c > 0 else a / 2 - 1, 2 if c > 0 else 0.5, 1, 3),
    ):
        arrays = {"c": nd.array([c]), "x": nd.array(a)}
        grads = {"x": nd.zeros(1000)}
        executor = total.bind(mx.cpu(), arrays, args_grad=grads)
        for is_train, most in ((False, forward), (True, both)):
            assert executor.explain(is_train).memory["planned"] < 4000 * most + 100
            np.testing.assert_allclose(executor.forward(is_train)[0].asnumpy(), wanted, rtol=1e-5, atol=1e-6)
        given = nd.array(head)
        executor.backward(given)
        assert (given.asnumpy() == head).all() and (arrays["x"].asnumpy() == a).all()
        np.testing.assert_allclose(executor.outputs[0].asnumpy(), wanted, rtol=1e-5, atol=1e-6)
        if slope is not None:
            assert (grads["x"].asnumpy() == head * slope).all()


@pytest.mark.parametrize("c", [1, -1])
def test_what_others_read_is_not_written_over(c):
    """An argument, and what is read after the choice or twice by it, keeps its memory."""
    x, y = V("x"), sym.sin(V("x"))
    total = sym.contrib.cond(V("c") > 0, lambda: [x * 1, y * 1, y], lambda: [y + x, y, x * 3])
    arrays = {"c": nd.array([c]), "x": nd.array([1, 2])}
    executor = sym.Group([*total, y * 5, x + 1]).bind(mx.cpu(), arrays)
    a, b = np.array([1, 2], "float32"), np.sin(np.array([1, 2], "float32"))
    for _ in range(2):
        found = executor.forward()
        for value, wanted in zip(found, [*((a, b, b) if c > 0 else (b + a, b, a * 3)), b * 5, a + 1], strict=True):
            np.testing.assert_allclose(value.asnumpy(), wanted, rtol=1e-6)
    assert arrays["x"].asnumpy().tolist() == [1, 2]


def test_a_choice_runs_operator_by_operator_on_a_gpu(simulated_gpu):
    x = V("x")
    chosen = sym.contrib.cond(sym.sum(x) > 0, lambda: x * 2, lambda: sym.sin(x))
    for sign in (1, -1):
        a = nd.ones(3, ctx=simulated_gpu) * sign
        executor = chosen.bind(simulated_gpu, {"x": a}, args_grad={"x": nd.zeros(3, ctx=simulated_gpu)})
        found = executor.forward(is_train=True)[0].asnumpy()
        executor.backward(nd.ones(3, ctx=simulated_gpu))
        np.testing.assert_allclose(found, [2] * 3 if sign > 0 else np.sin([-1] * 3), rtol=1e-6)
        np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), [2] * 3 if sign > 0 else np.cos([-1] * 3), rtol=1e-6)


# ---- inside composites and compiled functions -----------------------------------------------------------------------------
def flow_rnn(F, x, h, w, u):
    """A loop, a loop in it, and a choice."""

    def step(xs, state):
        def twice(i, s):
            return None, [i + 1, F.tanh(F.dot(s, u))]

        _, (_, state) = F.contrib.while_loop(lambda i, s: i < 2, twice, [F.zeros_like(F.sum(state)), state], 3)
        new = F.contrib.cond(F.sum(state) < 1000, lambda: state + F.dot(xs, w), lambda: state * 2)
        return new, new

    out, last = F.contrib.foreach(step, x, h)
    return F.sum(out * out) * 0.1 + F.sum(last)


def written_out(F, x, h, w, u):
    total = None
    for t in range(ARGS["x"][0]):
        for _ in range(2):
            h = F.tanh(F.dot(h, u))
        h = h + F.dot(F.slice_axis(x, axis=0, begin=t, end=t + 1).reshape((2, 3)), w)
        total = F.sum(h * h) * 0.1 if total is None else total + F.sum(h * h) * 0.1
    return total + F.sum(h)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_composites_may_loop(order):
    arrays = values()
    wanted = recorded(written_out, arrays, order)
    composite(flow_rnn)
    try:
        close(recorded(lambda F, **given: F.flow_rnn(*given.values()), arrays, order), wanted)
        close(bound(lambda F, **given: F.flow_rnn(*given.values()), arrays, order), wanted)
    finally:
        mx.op.unregister("flow_rnn")


def test_compiled_functions_may_loop():
    arrays = values()
    calls = []

    def function(*given):
        calls.append(given)
        return flow_rnn(nd, *given)

    compiled = mx.graph.compiled(function)
    close(recorded(lambda F, **given: compiled(*given.values()), arrays, 1), recorded(written_out, arrays, 1))
    compiled(*arrays.values())
    made = len(calls)
    assert not any(isinstance(x, nd.NDArray) for x in calls[0])
    compiled(*arrays.values())
    assert len(calls) == made  # it is a plan, and the function is not called


def test_composites_with_loops_that_draw():
    def flow_noise(F, x):
        """Draw in a loop."""
        out, _ = F.contrib.foreach(lambda xs, s: (F.random.uniform(shape=(4,)) * xs, s), x, F.zeros_like(F.sum(x)))
        return out

    composite(flow_noise, random=True)
    try:
        x = nd.ones((3, 4))
        mx.random.seed(2)
        found = nd.flow_noise(x)
        mx.random.seed(2)
        assert np.array_equal(found.asnumpy(), sym.flow_noise(V("x")).eval(x=x)[0].asnumpy())
        assert len(np.unique(found.asnumpy())) == 12
    finally:
        mx.op.unregister("flow_noise")


def flow_shaped(F, x, h, w, u):
    """A function that asks for shapes, in a loop."""
    return F.tanh(F.dot(x, w) + F.dot(h, u)) / x.shape[0]


def flow_loop_of_shaped(F, x, h, w, u):
    """The same, asked in the body itself too."""

    def step(xs, state):
        new = F.flow_shaped(xs, state, w, u) * xs.shape[1]
        return new, new

    out, last = F.contrib.foreach(step, x, h)
    return loss_of(F, [out], [last])


@pytest.mark.parametrize("order", [1, 2])
def test_bodies_know_their_shapes(order):
    arrays = values()

    def plain(F, x, h, w, u):
        outs = []
        for t in range(4):
            h = F.tanh(F.dot(x[t], w) + F.dot(h, u)) / 2 * 3
            outs.append(h)
        return loss_of(F, [nd.stack(*outs, axis=0)], [h])

    made = [composite(flow_shaped), composite(flow_loop_of_shaped)]
    try:
        wanted = recorded(plain, arrays, order)
        close(recorded(lambda F, **given: F.flow_loop_of_shaped(*given.values()), arrays, order), wanted)
        if order == 1:
            close(bound(lambda F, **given: F.flow_loop_of_shaped(*given.values()), arrays, order), wanted)

            def loop(F, x, h, w, u):
                out, last = F.contrib.foreach(lambda a, b: (F.flow_shaped(a, b, w, u) * 3,) * 2, x, h)
                return loss_of(F, [out], [last])

            close(bound(loop, arrays, order), wanted)
    finally:
        for op in made:
            mx.op.unregister(op.name)
