"""Operators that write states, that ask whether they train, and that draw: in calls on arrays, symbols and executors."""

import numpy as np
import pytest
from comparing import ADD, into

import mxop as mx
from mxop import autograd, nd, sym
from mxop.op import F, composite, elementwise, kernel


def states_momentum(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0, clip: float = -1.0):
    """Step of gradient descent with momentum."""
    if clip >= 0:
        grad = F.maximum(F.minimum(grad, clip), -clip)
    mom = momentum * mom - lr * (grad + wd * weight)
    return weight + mom, mom


def states_adam(weight, grad, mean, var, *, lr: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8):
    """Step of Adam."""
    mean = beta1 * mean + (1 - beta1) * grad
    var = beta2 * var + (1 - beta2) * F.square(grad)
    return weight - lr * mean / (F.sqrt(var) + epsilon), mean, var


def states_norm(S, data, gamma, beta, moving_mean, moving_var, *, eps: float = 1e-3, momentum: float = 0.9, is_train):
    """Batch normalisation over all but the second axis."""
    if is_train:
        mean, centred = S.mean(data, axis=1, exclude=True), None
        centred = S.broadcast_sub(data, S.reshape(mean, shape=(1, -1, 1)))
        var = S.mean(S.square(centred), axis=1, exclude=True)
        new_mean = momentum * moving_mean + (1 - momentum) * S.BlockGrad(mean)
        new_var = momentum * moving_var + (1 - momentum) * S.BlockGrad(var)
    else:
        mean, var, new_mean, new_var = moving_mean, moving_var, moving_mean, moving_var
        centred = S.broadcast_sub(data, S.reshape(mean, shape=(1, -1, 1)))
    scale = S.reshape(gamma * S.rsqrt(var + eps), shape=(1, -1, 1))
    return S.broadcast_add(S.broadcast_mul(centred, scale), S.reshape(beta, shape=(1, -1, 1))), new_mean, new_var


def states_twice_in_training(data, *, times: float = 2.0, is_train):
    """Multiply, in training."""
    return data * times if is_train else data


def states_draw(data):
    """Uniform numbers of the data's shape."""


GENERATOR = np.random.default_rng(3)


def momentum_of(w, g, m, lr, momentum=0.0, wd=0.0, clip=-1.0):
    g = np.clip(g, -clip, clip) if clip >= 0 else g
    m = momentum * m - lr * (g + wd * w)
    return w + m, m


def arrays(*shapes, seed=5):
    rng = np.random.default_rng(seed)
    return [nd.array(rng.normal(size=s)) for s in shapes]


@pytest.fixture(scope="module", autouse=True)
def registered():
    """Other tests look at all operators that are registered while tests are collected."""
    elementwise(states_momentum, writes={"mom": 1})
    elementwise(states_adam, writes={"mean": 1, "var": 2})
    elementwise(states_twice_in_training)
    norm = composite(states_norm, num_outputs=3, writes={"moving_mean": 1, "moving_var": 2})
    norm.infer(lambda ins, outs, **_: ([ins[0], *[ins[0] and (ins[0][1],)] * 4], [ins[0], *[ins[0] and (ins[0][1],)] * 2]))
    draw = kernel(states_draw, random=True)
    draw.shape(lambda data: data)
    draw.gradient(lambda S, heads, inputs, outputs: [None])
    draw.cpu(lambda inputs, outputs: np.copyto(np.asarray(outputs[0]), GENERATOR.random(outputs[0].shape)))
    yield
    for name in ("momentum", "adam", "norm", "twice_in_training", "draw"):
        mx.op.unregister(f"states_{name}")


# ---- calls on arrays -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(3,), (2, 3), (), (0, 2), (5000,)])
@pytest.mark.parametrize("into", ["new", "weight", "other"])
def test_a_state_is_updated(shape, into):
    w, g, m = arrays(shape, shape, shape)
    want, want_m = momentum_of(w.asnumpy(), g.asnumpy(), m.asnumpy(), 0.5, 0.9, 0.1, 0.7)
    out = {"new": None, "weight": w, "other": nd.full(shape, 0)}[into]
    found = nd.states_momentum(w, g, m, lr=0.5, momentum=0.9, wd=0.1, clip=0.7, out=out)
    assert out is None or found is out
    np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(m.asnumpy(), want_m, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_states_that_are_views(dtype):
    whole = nd.array(np.arange(24).reshape(4, 6), dtype=dtype)
    w, g = nd.ones((4, 3), dtype=dtype), nd.ones((4, 3), dtype=dtype)
    mean, var = whole[:, ::2], whole[:, 1::2]
    before = whole.asnumpy().astype("float64")
    nd.states_adam(w, g, mean, var, lr=0.1, out=w)
    after = whole.asnumpy()
    np.testing.assert_allclose(after[:, ::2], 0.9 * before[:, ::2] + 0.1, rtol=2e-3 if dtype == "float16" else 1e-6)
    np.testing.assert_allclose(after[:, 1::2], 0.999 * before[:, 1::2] + 0.001, rtol=2e-3 if dtype == "float16" else 1e-6)


def test_a_kernels_state_may_be_a_view():
    @kernel(aux=("count",))
    def states_counting(data, count):
        """The data; calls are counted."""

    states_counting.shape(lambda data, count: data)

    @states_counting.cpu
    def _(inputs, outputs):
        np.asarray(inputs[1])[...] += 1
        np.asarray(outputs[0])[...] = np.asarray(inputs[0])

    try:
        counts = nd.zeros((4, 2))
        view = counts[:, 1]
        for _ in range(3):
            nd.states_counting(nd.ones((2,)), view)
        executor = sym.states_counting(sym.Variable("x"), sym.Variable("n")).bind(
            mx.cpu(), {"x": nd.ones((2,))}, aux_states={"n": view}
        )
        executor.forward()
        assert counts.asnumpy().tolist() == [[0, 4]] * 4
    finally:
        mx.op.unregister("states_counting")


def test_only_what_is_returned_is_added():
    w, g, m = arrays((3,), (3,), (3,))
    want, want_m = momentum_of(w.asnumpy(), g.asnumpy(), m.asnumpy(), 0.5, 0.9)
    out = nd.ones((3,))
    into("states_momentum", [w, g, m], [out], ADD, lr=0.5, momentum=0.9)
    np.testing.assert_allclose(out.asnumpy(), 1 + want, rtol=1e-6)
    np.testing.assert_allclose(m.asnumpy(), want_m, rtol=1e-6)


def test_a_learning_rate_that_is_always_new_makes_no_formulas():
    w, g, m = arrays((8,), (8,), (8,))
    for step in range(500):
        nd.states_momentum(w, g, m, lr=0.1 / (step + 1), momentum=0.9, clip=0.5, out=w)
    assert len(mx.op.get("states_momentum")._formulas) < 8


def test_states_have_no_history():
    w, g, m = arrays((3,), (3,), (3,))
    g.attach_grad()
    with autograd.record():
        y = nd.states_momentum(w, g, m, lr=0.5)
    assert m.grad is None
    y.backward()
    np.testing.assert_allclose(g.grad.asnumpy(), [-0.5] * 3)
    m.attach_grad()
    with (
        autograd.record(),
        pytest.raises(mx.MXNetError, match="writes its input 'mom', which is a variable"),
    ):
        nd.states_momentum(w, g, m, lr=0.5)


# ---- symbols and executors ---------------------------------------------------------------------------------------------
def test_states_of_a_symbol_are_auxiliary():
    y = sym.states_momentum(sym.Variable("w"), sym.Variable("g"), lr=0.5, momentum=0.9, name="step")
    assert y.list_arguments() == ["w", "g"]
    assert y.list_auxiliary_states() == ["step_mom"]
    assert y.list_outputs() == ["step_output"]
    assert y.infer_shape(w=(3,)) == ([(3,), (3,)], [(3,)], [(3,)])
    again = mx.sym.load_json(y.tojson())
    assert again.tojson() == y.tojson()
    w, g, m = arrays((3,), (3,), (3,))
    want, want_m = w.asnumpy(), m.asnumpy()
    executor = again.bind(mx.cpu(), {"w": w, "g": g}, aux_states={"step_mom": m})
    for _ in range(3):
        expected, want_m = momentum_of(want, g.asnumpy(), want_m, 0.5, 0.9)
        np.testing.assert_allclose(executor.forward()[0].asnumpy(), expected, rtol=1e-5)
        np.testing.assert_allclose(m.asnumpy(), want_m, rtol=1e-5)


@pytest.mark.parametrize("passes", [None, []])
def test_a_whole_optimizer_in_a_graph(passes):
    """Weights are states as well; what reads them elsewhere sees the old ones."""
    w, g = sym.Variable("w"), sym.Variable("g")
    y = sym.states_adam(w * 1, sym.tanh(g) * 2, sym.Variable("m"), sym.Variable("v"), lr=0.1)
    y = mx.sym.Group([mx.graph.assign(w, y), w + 1])
    rng = np.random.default_rng(2)
    values = {n: nd.array(rng.normal(size=(4,))) for n in "gwmv"}
    values["v"] = nd.abs(values["v"])
    state = {n: v.asnumpy().astype("float64") for n, v in values.items()}
    executor = y.bind(mx.cpu(), {"g": values["g"]}, aux_states={n: values[n] for n in "wmv"}, passes=passes)
    for _ in range(4):
        new, old = executor.forward()
        grad = np.tanh(state["g"]) * 2
        np.testing.assert_allclose(old.asnumpy(), state["w"] + 1, rtol=1e-4)
        state["m"] = 0.9 * state["m"] + 0.1 * grad
        state["v"] = 0.999 * state["v"] + 0.001 * grad**2
        state["w"] = state["w"] - 0.1 * state["m"] / (np.sqrt(state["v"]) + 1e-8)
        for n in "wmv":
            np.testing.assert_allclose(values[n].asnumpy(), state[n], rtol=1e-4)
        np.testing.assert_allclose(new.asnumpy(), state["w"], rtol=1e-4)


def norm_of(x, gamma, beta, mean, var, is_train, eps=1e-3, momentum=0.9):
    if is_train:
        m, v = x.mean((0, 2)), x.var((0, 2))
        new = momentum * mean + (1 - momentum) * m, momentum * var + (1 - momentum) * v
    else:
        m, v, new = mean, var, (mean, var)
    y = (x - m[:, None]) / np.sqrt(v + eps)[:, None] * gamma[:, None] + beta[:, None]
    return y, *new


def norm_values():
    rng = np.random.default_rng(7)
    return {
        "x": rng.normal(size=(4, 3, 5)), "gamma": rng.uniform(1, 2, 3), "beta": rng.normal(size=3),
        "moving_mean": rng.normal(size=3), "moving_var": rng.uniform(1, 2, 3),
    }  # fmt: skip


NORM = ("x", "gamma", "beta", "moving_mean", "moving_var")


def test_a_composite_with_states_on_arrays():
    values = norm_values()
    given = {n: nd.array(values[n], dtype="float64") for n in NORM}
    for is_train in (False, True, True, False):
        with autograd.train_mode() if is_train else autograd.predict_mode():
            found = nd.states_norm(*given.values())
        want, values["moving_mean"], values["moving_var"] = norm_of(*[values[n] for n in NORM], is_train)
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-9)
        for n in ("moving_mean", "moving_var"):
            np.testing.assert_allclose(given[n].asnumpy(), values[n], rtol=1e-9)


@pytest.mark.parametrize("req", ["null", "write"])
@pytest.mark.parametrize("passes", [None, []])
def test_a_composite_with_states_in_an_executor(req, passes):
    values = norm_values()
    y = sym.states_norm(sym.Variable("x"), name="bn") * 2
    assert y.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    executor = y.simple_bind(
        mx.cpu(),
        grad_req=req,
        x=(4, 3, 5),
        type_dict=dict.fromkeys(["x", "bn_gamma", "bn_beta"], "float64"),
        passes=passes,
    )
    held = {**executor.arg_dict, **executor.aux_dict}
    for n in NORM:
        held[n if n == "x" else f"bn_{n}"][:] = values[n]
    for is_train in (False, True, True, False, True):
        found = executor.forward(is_train=is_train)[0]
        want, values["moving_mean"], values["moving_var"] = norm_of(*[values[n] for n in NORM], is_train)
        np.testing.assert_allclose(found.asnumpy(), 2 * want, rtol=1e-9)
        for n in ("moving_mean", "moving_var"):
            np.testing.assert_allclose(held[f"bn_{n}"].asnumpy(), values[n], rtol=1e-9)
        if req == "write" and is_train:
            head = np.random.default_rng(1).normal(size=want.shape)
            executor.backward(nd.array(head, dtype="float64"))
            given = [nd.array(values[n], dtype="float64") for n in NORM]
            for a in given[:3]:
                a.attach_grad()
            with autograd.record():
                z = nd.states_norm(*given) * 2
            z.backward(nd.array(head, dtype="float64"))
            for n, a in zip(NORM[:3], given, strict=False):
                got = executor.grad_dict[n if n == "x" else f"bn_{n}"].asnumpy()
                np.testing.assert_allclose(got, a.grad.asnumpy(), rtol=1e-9, atol=1e-12)


def test_a_new_value_is_made_where_the_state_lies():
    y = sym.states_momentum(sym.Variable("w") * 2, sym.tanh(sym.Variable("g")), lr=0.5, momentum=0.9, name="step")
    executor = y.simple_bind(mx.cpu(), grad_req="null", w=(100,))
    executor.forward()
    assert len(executor._infer) == 1
    assert executor.explain().memory["planned"] == 0


def test_who_reads_a_state_beside_sees_the_old_value():
    w, m = sym.Variable("w"), sym.Variable("m")
    y = mx.sym.Group([sym.states_momentum(w, w, m, lr=1.0, momentum=0.5), sym.sum(m), m * 3, sym.reverse(m, axis=0)])
    for passes in (None, []):
        executor = y.bind(mx.cpu(), {"w": nd.array([1.0, 2.0])}, aux_states={"m": nd.array([4.0, 1.0])}, passes=passes)
        found = [a.asnumpy().tolist() for a in executor.forward()]
        assert found == [[2.0, 0.5], [5.0], [12.0, 3.0], [1.0, 4.0]]
        assert executor.aux_dict["m"].asnumpy().tolist() == [1.0, -1.5]


def test_two_calls_on_one_state_take_turns():
    w, m = sym.Variable("w"), sym.Variable("m")
    first = sym.states_momentum(w, w, m, lr=1.0, momentum=0.5)
    y = sym.states_momentum(first, first, m, lr=1.0, momentum=0.5)
    executor = y.bind(mx.cpu(), {"w": nd.array([1.0])}, aux_states={"m": nd.array([4.0])})
    one, mom = momentum_of(1.0, 1.0, 4.0, 1.0, 0.5)
    two, mom = momentum_of(one, one, mom, 1.0, 0.5)
    assert executor.forward()[0].asscalar() == two
    assert executor.aux_dict["m"].asscalar() == mom


def test_a_state_that_is_computed_is_not_kept():
    w, m = sym.Variable("w"), sym.Variable("m")
    y = sym.states_momentum(w, w, m * 2, lr=1.0, momentum=0.5)
    found = y.bind(mx.cpu(), {"w": nd.array([1.0]), "m": nd.array([4.0])}).forward()[0]
    assert found.asscalar() == momentum_of(1.0, 1.0, 8.0, 1.0, 0.5)[0]


# ---- modes -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("req", ["null", "write"])
def test_the_mode_of_a_run(req):
    x = sym.Variable("x")
    executor = sym.states_twice_in_training(x, times=3).simple_bind(mx.cpu(), grad_req=req, x=(2,))
    executor.arg_dict["x"][:] = 5
    assert [executor.forward(is_train=t)[0].asnumpy()[0] for t in (False, True, False, True)] == [5, 15, 5, 15]
    if req == "write":
        executor.backward(nd.ones((2,)))
        assert executor.grad_dict["x"].asnumpy().tolist() == [3, 3]
    seen = []
    executor.set_monitor_callback(lambda name, array: seen.append(float(array.asnumpy()[0])))
    assert [executor.forward(is_train=t)[0].asnumpy()[0] for t in (False, True)] == [5, 15]
    assert seen == [5, 15]


def test_the_mode_of_a_call():
    x = nd.array([5.0])
    x.attach_grad()
    assert nd.states_twice_in_training(x).item() == 5
    with autograd.record():
        y = nd.states_twice_in_training(x, times=4)
    y.backward()
    assert (y.item(), x.grad.item()) == (20, 4)
    with autograd.record(train_mode=False):
        assert nd.states_twice_in_training(x).item() == 5


def states_four_times(F, x):
    """Call what asks for the mode."""
    return F.states_twice_in_training(F.states_twice_in_training(x))


def states_by_steps(F, x):
    """Call that in a loop."""
    start = F.zeros_like(F.sum(x))
    steps = F.contrib.foreach(lambda a, s: (F.states_four_times(a), s + a), x, start)[0]
    return F.reshape(steps, shape=(-1,))  # a step over a vector has one element


def states_chosen(F, x):
    """Call that in a branch."""
    return F.contrib.cond(F.sum(x) < 1000, lambda: F.states_by_steps(x), lambda: x)


@pytest.mark.parametrize("name", ["states_four_times", "states_by_steps", "states_chosen"])
def test_the_mode_reaches_what_composites_call(name):
    """In plans and executors, through loops and branches, as in calls operator by operator."""
    made = [composite(function) for function in (states_four_times, states_by_steps, states_chosen)]
    try:
        x = nd.array([5.0, 6])
        x.attach_grad()
        call = getattr(nd, name)
        assert call(x).asnumpy().tolist() == [5, 6]
        with autograd.train_mode():
            assert call(x).asnumpy().tolist() == [20, 24]
        with autograd.record():
            y = call(x)
        y.backward()
        assert (y.asnumpy().tolist(), x.grad.asnumpy().tolist()) == ([20, 24], [4, 4])
        executor = getattr(sym, name)(sym.Variable("x")).bind(mx.cpu(), [x], [nd.zeros((2,))])
        assert [executor.forward(is_train=t)[0].asnumpy()[0] for t in (False, True, False, True)] == [5, 20, 5, 20]
        executor.backward(nd.ones((2,)))
        assert executor.grad_arrays[0].asnumpy().tolist() == [4, 4]
    finally:
        for op in made:
            mx.op.unregister(op.name)


def test_the_mode_is_no_parameter():
    x = sym.Variable("x")
    y = sym.states_twice_in_training(x, times=3)
    assert "is_train" not in y.tojson()
    assert mx.op.info("states_twice_in_training")["parameters"].keys() == {"times"}
    with pytest.raises(mx.MXNetError, match="no parameter 'is_train'"):
        nd.states_twice_in_training(nd.ones((1,)), is_train=True)


# ---- drawing -----------------------------------------------------------------------------------------------------------
def test_calls_that_draw_are_not_merged():
    x = sym.Variable("x")
    y = sym.states_draw(x) - sym.states_draw(x)
    found = y.bind(mx.cpu(), {"x": nd.zeros((64,))}).forward()[0].asnumpy()
    assert (found != 0).all()
