"""Composites called on arrays, and compiled functions: one plan for each combination of shapes and types, on any arrays."""

import threading
from collections import namedtuple

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd
from mxop.op import composite, kernel


def traced_layer_norm(F, data, gamma, beta, *, eps: float = 1e-5):
    """Layer normalisation from small operators."""
    centred = F.broadcast_sub(data, F.mean(data, axis=-1, keepdims=True))
    scale = F.rsqrt(F.mean(F.square(centred), axis=-1, keepdims=True) + eps)
    return F.broadcast_add(F.broadcast_mul(F.broadcast_mul(centred, scale), gamma), beta)


def traced_two(F, data, *, times: float = 2.0):
    """Two results."""
    return F.exp(data) * times, F.sum(data, axis=0)


@pytest.fixture(scope="module", autouse=True)
def registered():
    norm = composite(traced_layer_norm)
    norm.infer(lambda ins, outs, **_: ([ins[0], *[ins[0] and ins[0][-1:]] * 2], [ins[0]]))
    composite(traced_two, num_outputs=2)
    yield
    mx.op.unregister("traced_layer_norm")
    mx.op.unregister("traced_two")


def arrays(*shapes, dtype="float32", seed=5):
    rng = np.random.default_rng(seed)
    return [nd.array(rng.normal(size=s), dtype=dtype) for s in shapes]


def results(on, given, orders=1):
    """Return the output and gradients of increasing order, as plans or operator by operator."""
    given = [a.copy() for a in given]
    for a in given:
        a.attach_grad()
    with mx.graph.planned(on), autograd.record():
        y = nd.traced_layer_norm(*given)
        found, head = [y], (y * y * y).sum()
        for _ in range(orders):
            grads = autograd.grad(head, given, create_graph=True)
            found += grads
            head = sum(((g * g * g).sum() for g in grads[1:]), (grads[0] * grads[0]).sum())
    return [a.asnumpy() for a in found]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4), (1, 1), (40, 300)])
def test_a_plan_is_what_the_operators_do(shape, dtype):
    given = arrays(shape, shape[-1:], shape[-1:], dtype=dtype)
    slack = {"float32": 2e-4, "float64": 1e-9}[dtype]
    for got, want in zip(results(True, given, 2), results(False, given, 2), strict=True):
        np.testing.assert_allclose(got, want, rtol=slack, atol=slack * max(1, np.abs(want).max()))


def test_backward_writes_gradients_of_the_variables_alone():
    x, g, b = arrays((4, 6), (6,), (6,))
    x.attach_grad()
    b.attach_grad(grad_req="add")
    b.grad[:] = 1
    with autograd.record():
        y = nd.traced_layer_norm(x * 2, g, b)
    y.backward()
    np.testing.assert_allclose(b.grad.asnumpy(), [5.0] * 6)
    assert g.grad is None
    np.testing.assert_allclose(x.grad.asnumpy().sum(-1), 0, atol=1e-5)


def test_two_calls_before_one_backward():
    x, g, b = arrays((4, 6), (6,), (6,))
    x.attach_grad()
    with autograd.record():
        y = [nd.traced_layer_norm(x * k, g, b) for k in (1, 2, 3)]
        total = y[0] * y[1] + y[2]
    with mx.graph.planned(False), autograd.record():
        again = [nd.traced_layer_norm(x * k, g, b) for k in (1, 2, 3)]
        wanted = again[0] * again[1] + again[2]
    total.backward()
    got = x.grad.asnumpy()
    wanted.backward()
    np.testing.assert_allclose(got, x.grad.asnumpy(), rtol=1e-4, atol=1e-5)


def test_plans_are_kept_by_shape_type_and_mode(kept):
    for shape in ((3, 4), (3, 4), (5, 4), (3, 4)):
        nd.traced_layer_norm(*arrays(shape, (4,), (4,)))
    assert len(kept()) == 2
    nd.traced_layer_norm(*arrays((3, 4), (4,), (4,), dtype="float64"))
    nd.traced_layer_norm(*arrays((3, 4), (4,), (4,)), eps=0.5)
    assert len(kept()) == 4
    made = []
    for n in range(1, 400):
        nd.traced_two(nd.zeros((n,)))
        made.append(len(kept()))
    assert made[:50] == [*range(5, 55)] and made[-1] == made[-50] == max(made)  # up to a number, which stays


@pytest.mark.parametrize("kind", [MemoryError, RecursionError, mx.errors.OutOfMemoryError])
def test_want_of_memory_is_not_remembered(kind, monkeypatch, kept):
    def fails(*arguments):
        raise kind("now")

    given = arrays((3, 4), (4,), (4,))
    with monkeypatch.context() as at_first:
        at_first.setattr(mx.graph.passes.scheduling, "fuse", fails)
        found = nd.traced_layer_norm(*given)  # operator by operator
    assert kept() == []
    np.testing.assert_allclose(found.asnumpy(), nd.traced_layer_norm(*given).asnumpy(), rtol=1e-5, atol=1e-6)
    assert len(kept()) == 1


@pytest.mark.parametrize("train", [True, False])
def test_a_gradient_inside_is_of_the_mode(train):
    @composite
    def traced_mode(F, x, *, is_train):
        """Of one slope while training and of another one otherwise."""
        return x * x * 3 if is_train else x * x * 5

    def with_gradient(x):
        y = nd.traced_mode(x)
        dropped = nd.Dropout(x, p=0.5)
        slopes = autograd.grad([y.sum(), dropped.sum()], [x], create_graph=True)[0]
        return y + slopes - dropped  # what Dropout keeps is its slope where the data are ones

    try:
        x = nd.ones((8,))
        x.attach_grad()
        for function in (with_gradient, mx.graph.compiled(with_gradient)):
            with autograd.record(train):
                assert function(x).asnumpy().tolist() == [9 if train else 15] * 8
    finally:
        mx.op.unregister("traced_mode")


def test_a_plan_is_of_one_meaning_of_shapes():
    @mx.graph.compiled
    def twice_the_sum(x):
        return nd.sum(x) * 2

    x = nd.ones((2, 3))
    assert twice_the_sum(x).shape == (1,)
    with mx.util.np_shape(True):
        assert twice_the_sum(x).shape == ()
    assert twice_the_sum(x).shape == (1,)


def test_a_plan_follows_operators_that_are_registered_again():
    def traced_again(F, data):
        return data * 2

    composite(traced_again)

    @mx.graph.compiled
    def outer(x):
        return nd.traced_again(x) + 1

    x = nd.ones((3,))
    try:
        assert outer(x).asnumpy().tolist() == [3, 3, 3]
        mx.op.unregister("traced_again")

        def traced_again(F, data):
            return data * 5

        composite(traced_again)
        assert outer(x).asnumpy().tolist() == [6, 6, 6]
    finally:
        mx.op.unregister("traced_again")


def test_a_plan_follows_the_passes():
    seen = []

    class TracedLook(mx.graph.Pass):
        def do_pass(self, graph):
            seen.append(len(graph))

    @mx.graph.compiled
    def outer(x):
        return nd.exp(x) + 1

    x = nd.ones((3,))
    outer(x)
    mx.graph.register_pass(TracedLook)
    try:
        outer(x)
        outer(x)
        assert len(seen) == 1
        with mx.graph.switch_passes(traced_look=False):
            outer(x)
        assert len(seen) == 1
    finally:
        mx.graph.unregister_pass("traced_look")


def test_inputs_of_any_layout():
    whole = nd.array(np.random.default_rng(1).normal(size=(6, 8)))
    views = whole.T[:, ::2], whole[1, ::2][:3], whole[:3, 2]
    got = nd.traced_layer_norm(*views)
    want = nd.traced_layer_norm(*[nd.array(v.asnumpy()) for v in views])
    assert got.asnumpy().tolist() == want.asnumpy().tolist()


def test_several_results_and_given_outputs():
    (x,) = arrays((3, 4))
    x.attach_grad()
    out = [nd.zeros((3, 4)), nd.zeros((4,))]
    found = nd.traced_two(x, times=3, out=out)
    assert found[0] is out[0] and found[1] is out[1]
    np.testing.assert_allclose(out[0].asnumpy(), 3 * np.exp(x.asnumpy()), rtol=1e-6)
    with autograd.record():
        a, b = nd.traced_two(x, times=3)
    autograd.backward([b])  # of one result only
    np.testing.assert_allclose(x.grad.asnumpy(), 1)
    with autograd.record():
        a, b = nd.traced_two(x, times=3)
    autograd.backward([a, b])
    np.testing.assert_allclose(x.grad.asnumpy(), 3 * np.exp(x.asnumpy()) + 1, rtol=1e-6)


def test_a_kept_input_that_changed():
    x, g, b = arrays((4, 6), (6,), (6,))
    x.attach_grad()
    with autograd.record():
        y = nd.traced_layer_norm(x, g, b)
    b[:] = 0  # which no gradient reads
    g[:] = 0
    with pytest.raises(mx.MXNetError, match="traced_layer_norm: its argument 'gamma' was changed after it was recorded, by"):
        y.backward()


def test_a_second_backward_is_refused_or_repeated():
    x, g, b = arrays((4, 6), (6,), (6,))
    x.attach_grad()
    with autograd.record():
        y = nd.traced_layer_norm(x, g, b)
    y.backward(retain_graph=True)
    first = x.grad.asnumpy()
    y.backward()
    assert x.grad.asnumpy().tolist() == first.tolist()
    with pytest.raises(mx.MXNetError, match="retain_graph"):
        y.backward()


def test_threads_share_plans():
    given = arrays((64, 300), (300,), (300,))
    want, found = nd.traced_layer_norm(*given).asnumpy(), []

    def work():
        for _ in range(20):
            found.append((nd.traced_layer_norm(*given).asnumpy() == want).all())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True] * 160


def test_no_memory_is_kept_between_runs():
    given = arrays((256, 1024), (1024,), (1024,))
    nd.traced_layer_norm(*given)
    before = mx.context.memory_stats()["in_use"]
    for _ in range(3):
        nd.traced_layer_norm(*given)
    assert mx.context.memory_stats()["in_use"] == before


def test_wrong_arguments_are_told_as_ever():
    with pytest.raises(mx.MXNetError, match=r"argument gamma has \(5,\); expected \(4,\); .*broadcast_mul"):
        nd.traced_layer_norm(nd.ones((3, 4)), nd.ones((5,)), nd.ones((4,)))


def test_what_looks_at_its_arrays_runs_as_it_is():
    @composite
    def traced_looking(F, data):
        """Scale by the largest, which is looked at."""
        return data / float(data.max().asscalar())

    try:
        for largest in (4.0, 8.0):
            assert nd.traced_looking(nd.array([1.0, largest])).asnumpy().tolist() == [1 / largest, 1]
    finally:
        mx.op.unregister("traced_looking")


def test_what_draws_runs_as_it_is():
    @mx.op.kernel(random=True)
    def traced_draw(data):
        """Count up."""

    count = iter(range(100))
    traced_draw.shape(lambda data: data)
    traced_draw.cpu(lambda inputs, outputs: np.asarray(outputs[0]).fill(next(count)))

    @composite
    def traced_drawing(F, data):
        """Two draws."""
        return F.traced_draw(data) + 100 * F.traced_draw(data)

    try:
        assert nd.traced_drawing(nd.zeros((1,))).item() == 100
        assert nd.traced_drawing(nd.zeros((1,))).item() == 302
    finally:
        mx.op.unregister("traced_drawing")
        mx.op.unregister("traced_draw")


# ---- compiled functions --------------------------------------------------------------------------------------------------
def test_a_compiled_function():
    calls = []

    @mx.graph.compiled
    def step(w, x, y):
        calls.append(1)
        error = nd.dot(x, w) - y
        return [(error * error).mean(), error.tanh()]

    w, x, y = arrays((3, 1), (5, 3), (5, 1))
    w.attach_grad()
    for _ in range(3):
        with autograd.record():
            loss, other = step(w, x, y)
        loss.backward()
    assert len(calls) == 1
    error = x.asnumpy() @ w.asnumpy() - y.asnumpy()
    np.testing.assert_allclose(loss.asnumpy(), (error**2).mean(), rtol=1e-5)
    np.testing.assert_allclose(other.asnumpy(), np.tanh(error), rtol=1e-5)
    np.testing.assert_allclose(w.grad.asnumpy(), 2 * x.asnumpy().T @ error / 5, rtol=1e-5)
    assert repr(step) == "<compiled test_a_compiled_function.<locals>.step>"


def test_higher_orders_of_a_compiled_function():
    @mx.graph.compiled
    def cube(x):
        return x**3

    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        first = autograd.grad(cube(x * 1), x, create_graph=True)[0]
        second = autograd.grad(first, x, create_graph=True)[0]
    second.backward()
    assert [a.asnumpy().tolist() for a in (first, second, x.grad)] == [[3, 12], [6, 12], [6, 6]]


def test_gradients_of_gradients_are_plans(kept):
    """Nothing is called operator by operator, at any order; the numbers are those of such calls."""

    def tilted(x, w):
        return nd.tanh(nd.dot(x, w)) * nd.exp(x).sum(axis=1, keepdims=True)

    def derivatives(f):
        x, w = arrays((3, 4), (4, 2), dtype="float64")
        x.attach_grad(), w.attach_grad()
        with autograd.record():
            first = autograd.grad(f(x, w), [x, w], create_graph=True)
            second = autograd.grad((first[0] ** 2).sum() + first[1].sum(), [x, w], create_graph=True)
            loss = (second[0] * second[0]).sum() + second[1].sum()
        loss.backward()
        return [a.asnumpy() for a in (*first, *second, x.grad, w.grad)]

    calls = []

    def counted(x, w):
        calls.append(type(x).__name__)
        return tilted(x, w)

    found = derivatives(mx.graph.compiled(counted))
    for got, wanted in zip(found, derivatives(tilted), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-13)
    assert calls == ["Value"]  # by the plan, and by nobody afterwards
    assert "_backward__backward_" in "".join(p.described()[0] for p in kept())


@pytest.mark.parametrize("compiled", [False, True])
def test_rules_hold_at_every_order(compiled):
    """A composite's own rule is its derivative wherever it is met, in gradients as well; here it is a wrong one."""

    @composite
    def traced_ruled(F, x):
        return F.square(x)

    traced_ruled.gradient(lambda F, heads, inputs, outputs: [heads[0] * inputs[0] * 3])

    def cubed(x):
        return nd.traced_ruled(x) * x

    def second(x):
        (first,) = autograd.grad(cubed(x), [x], create_graph=True)
        return autograd.grad(first, [x], create_graph=True)[0]

    try:
        x = nd.array([1.0, 2.0])
        x.attach_grad()
        with autograd.record():
            f = mx.graph.compiled(cubed) if compiled else cubed
            (first,) = autograd.grad(f(x), [x], create_graph=True)  # x**2 + 3 x**2
        first.backward()  # 3 x + 6 x
        assert first.asnumpy().tolist() == [4, 16] and x.grad.asnumpy().tolist() == [9, 18]
        with autograd.record():
            assert (mx.graph.compiled(second) if compiled else second)(x).asnumpy().tolist() == [9, 18]
    finally:
        mx.op.unregister("traced_ruled")


def test_an_input_that_changed_before_its_gradient_is_differentiated():
    @mx.graph.compiled
    def scaled(x, y, z):
        return x * x * y + z

    x, y, z = arrays((3,), (3,), (3,))
    for a in (x, y, z):
        a.attach_grad()
    with autograd.record():
        result = scaled(x, y, z)
    z[:] = 0  # no gradient reads it
    with autograd.record():
        (first,) = autograd.grad(result, [x], create_graph=True)
    first.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * y.asnumpy(), rtol=1e-6)
    with autograd.record():
        result = scaled(x, y, z)
    y[:] = 0
    with (
        autograd.record(),
        pytest.raises(mx.MXNetError, match="its argument 'argument 1' was changed after it was recorded"),
    ):
        autograd.grad(result, [x], create_graph=True)


def test_a_result_that_changed_before_its_gradient():
    """What backward reads of the results must be what forward gave."""
    grown, doubled = mx.graph.compiled(nd.exp), mx.graph.compiled(lambda x: x * 2)
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y, unread = grown(x), doubled(x)
    unread[:] = 0
    unread.backward()
    assert x.grad.asnumpy().tolist() == [2, 2]
    y[:1] = 0
    with pytest.raises(mx.MXNetError, match="its output 0 was changed after it was recorded, by an assignment"):
        y.backward()


def constants():
    def paused(x, w):
        with autograd.pause():
            factor = nd.exp(x * w)
            parts = nd.split(x, 2, axis=0)
        return factor * x + nd.concat(*parts, dim=0) * w

    def paused_inside(x, w):
        with autograd.record():
            y = x * x
            with autograd.pause():
                factor = nd.exp(y)
            (g,) = autograd.grad(y * factor, x, create_graph=True)
        return g * w

    def not_recorded(x, w):
        with autograd.record():
            (g,) = autograd.grad(nd.sin(x), x)
        return g * x * w

    return [paused, paused_inside, not_recorded]


@pytest.mark.parametrize("function", constants())
def test_what_a_compiled_function_does_not_record_is_a_constant(function):
    found = []
    for f in (function, mx.graph.compiled(function)):
        x, w = arrays((4, 3), (4, 3), dtype="float64")
        x.attach_grad()
        w.attach_grad()
        with autograd.record():
            loss = (f(x, w) ** 2).sum()
        loss.backward()
        found.append([loss.asnumpy(), x.grad.asnumpy(), w.grad.asnumpy()])
    for want, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


Pair = namedtuple("Pair", "one other")


def changing():
    def argument(x):
        x -= 0.5
        return x * 2

    def temporary(x):
        y = x * 2
        z = same = y
        y += 1
        z *= x
        return Pair(same, +y)

    def view(x):
        y = x * 2
        part = y[:1]
        part += 1
        return y * 1, part

    def viewed(x):
        y = x * 2
        flat = y.reshape((-1,))
        y /= 4
        return y * 1, flat * 1

    def loop(x):
        total = x * 0

        def body(row, state):
            nonlocal total
            total += 1
            return row * 2, [state[0] + row]

        return nd.contrib.foreach(body, x, [x[0] * 0])[0], total

    return [(argument, False), (temporary, True), (view, False), (viewed, False), (loop, False)]


@pytest.mark.parametrize(("function", "planned_in_full"), changing())
def test_arrays_that_a_compiled_function_changes(function, planned_in_full, kept):
    """What is changed in place is so under all its names, and in the caller's array."""
    found = []
    for f in (function, mx.graph.compiled(function)):
        (x,) = arrays((4, 3))
        made = len(kept())
        result = f(x)
        found.append([a.asnumpy() for a in (result if isinstance(result, tuple) else [result])] + [x.asnumpy()])
    assert type(result) is type(function(x))
    assert (len(kept()) > made) == planned_in_full
    for want, got in zip(*found, strict=True):
        assert np.array_equal(got, want)


def test_a_sum_in_place_is_part_of_a_plan(kept):
    @mx.graph.compiled
    def powers(x):
        total = 0
        for k in range(1, 4):
            total += x**k
        return total

    x = nd.array([1.0, 2.0])
    x.attach_grad()
    made = len(kept())
    with autograd.record():
        y = powers(x)
    y.backward()
    assert len(kept()) == made + 1
    assert (y.asnumpy().tolist(), x.grad.asnumpy().tolist()) == ([3, 14], [6, 17])


def test_results_of_another_form_for_other_shapes():
    @mx.graph.compiled
    def parts(x):
        return x * 2 if x.ndim == 1 else [x * 3] if x.shape[0] == 1 else Pair(x * 4, x * 5)

    one, row, table = nd.array([1.0]), nd.array([[1.0]]), nd.array([[1.0], [1.0]])
    for _ in range(2):
        assert parts(one).asnumpy().tolist() == [2]
        assert [a.asnumpy().tolist() for a in parts(row)] == [[[3]]] and type(parts(row)) is list
        assert parts(table).other.asnumpy().tolist() == [[5], [5]]


def test_gradients_inside_a_compiled_function():
    def penalty(x, w):
        with autograd.record():
            y = nd.softmax(nd.dot(x, w))
            hidden = y * y
            of_x, of_hidden = autograd.grad([hidden.sum(), (hidden * hidden).sum()], [x, hidden], create_graph=True)
            (given,) = autograd.grad(y, x, head_grads=y * 2, create_graph=True)
            (none,) = autograd.grad(w * 1, [w], create_graph=True)
            return nd.sqrt((of_x * of_x).sum()) + of_hidden.sum() + (given * of_x).sum() + none.sum()

    calls = []

    @mx.graph.compiled
    def once(*arrays):
        calls.append(1)
        return penalty(*arrays)

    found = []
    for function in (once, penalty):
        x, w = arrays((3, 4), (4, 5), dtype="float64")
        x.attach_grad(), w.attach_grad()
        with autograd.record():
            loss = function(x, w)
        loss.backward()
        found.append([a.asnumpy() for a in (loss, x.grad, w.grad)])
    assert len(calls) == 1
    for got, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-13)


def test_parts_of_arrays_in_compiled_functions():
    def parts(x):
        rows = [row * k for k, row in enumerate(x)]
        pieces = [
            x[1],
            x[-1, 2],
            x[:, ::-2].sum(axis=1),
            x[None, ..., 1:3],
            x.T[0],
            x[2:2],
            x[...],
            x.astype("float64"),
        ]
        return [*rows, *pieces, nd.zeros_like(x) + len(x)]

    calls = []

    @mx.graph.compiled
    def once(x):
        calls.append(1)
        return parts(x)

    (x,) = arrays((3, 4))
    x.attach_grad()
    with autograd.record():
        found = once(x)
        loss = sum((piece.sum() * (k + 1)).astype("float32") for k, piece in enumerate(found) if piece.size)
    loss.backward()
    got, wanted = x.grad.asnumpy(), parts(x)
    assert len(calls) == 1
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    with autograd.record():
        loss = sum((piece.sum() * (k + 1)).astype("float32") for k, piece in enumerate(parts(x)) if piece.size)
    loss.backward()
    np.testing.assert_allclose(got, x.grad.asnumpy(), rtol=1e-6)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
        mx.graph.compiled(lambda x: x[5])(x)


def test_one_element_in_a_compiled_function_is_what_it_is_outside():
    first = mx.graph.compiled(lambda x: x[1] * 2)
    x = nd.array([1.0, 2.0])
    assert first(x).shape == x[1].shape == (1,)
    with mx.util.np_shape(True):
        assert first(x).shape == x[1].shape == ()
    assert first(x).item() == 4


def test_a_gradient_that_a_compiled_function_does_not_depend_on_is_zero():
    double = mx.graph.compiled(lambda x, y: autograd.grad(x * x, [x, y]))
    x, y = nd.array([1.0, 2.0]), nd.array([[3.0]])
    assert [a.asnumpy().tolist() for a in double(x, y)] == [[2, 4], [[0]]]


def test_what_a_compiled_function_says_of_wrong_gradients():
    x = nd.array([1.0])
    outside = nd.array([2.0])
    with pytest.raises(mx.MXNetError, match="autograd"):  # as it is, which says what an array says
        mx.graph.compiled(lambda a: autograd.grad(a * 2, [outside])[0])(x)
    with pytest.raises(mx.MXNetError, match="1 heads but 2 head gradients"):
        mx.graph.compiled(lambda a: autograd.grad(a * 2, [a], head_grads=[a, a])[0])(x)


def test_a_compiled_function_with_operators_of_two_modes_runs_as_it_is():
    def trains(x):
        with autograd.train_mode():
            return nd.BatchNorm(x, *[nd.ones((2,))] * 4)

    x = nd.array([[1.0, 2.0], [3.0, 5.0]])
    assert mx.graph.compiled(trains)(x).asnumpy().tolist() == trains(x).asnumpy().tolist()
    centred = mx.graph.compiled(lambda x, *more: nd.BatchNorm(x, *more, fix_gamma=False))
    states = [nd.ones((2,)) for _ in range(4)]

    @mx.graph.compiled
    def trained(x, *states):
        with autograd.train_mode():
            return nd.BatchNorm(x, *states)

    for function in (centred, trained):
        got = function(x, *states).asnumpy()
        with autograd.train_mode() if function is trained else autograd.predict_mode():
            want = nd.BatchNorm(x, *[nd.ones((2,)) for _ in range(4)]).asnumpy()
        np.testing.assert_array_equal(got, want)


def test_a_gradient_that_has_none_says_so():
    @kernel
    def traced_end(x):
        """No gradient."""

    @composite
    def traced_once(F, x):
        return F._copy(x)

    traced_end.shape(lambda x: x)
    traced_end.cpu(prepared=True)(lambda steps, inputs, outputs: steps.call("_copy", {}, inputs, outputs))
    traced_once.gradient(lambda F, heads, inputs, outputs: [F.traced_end(heads[0] * inputs[0])])
    try:
        x = nd.array([1.0, 2.0])
        x.attach_grad()
        with autograd.record():
            (first,) = autograd.grad(mx.graph.compiled(lambda x: nd.traced_once(x) * x)(x), [x], create_graph=True)
            with pytest.raises(mx.MXNetError, match="operator traced_end has no gradient rule"):
                autograd.grad(first, [x], create_graph=True)
        with autograd.record():
            y = mx.graph.compiled(lambda x: nd.traced_once(nd.exp(x * 2)))(x)  # backward reads what exp gave, and not x
        x[:] = 0
        with autograd.record(), pytest.raises(mx.MXNetError, match="'argument 0' was changed after it was recorded"):
            autograd.grad(y, [x], create_graph=True)
    finally:
        mx.op.unregister("traced_once")
        mx.op.unregister("traced_end")


def test_a_compiled_function_that_looks_at_its_arrays():
    @mx.graph.compiled
    def doubled(x):
        return x * 2 if x.asnumpy()[0] > 0 else x

    assert doubled(nd.array([1.0])).item() == 2
    assert doubled(nd.array([-1.0])).item() == -1
    with pytest.raises(mx.MXNetError, match="doubled: argument 0 must be an NDArray, got 3"):
        doubled(3)


def test_a_gradient_inside_a_gradient_leaves_the_outer_one_alone():
    """The second order of a plan differentiates while the tape is in the middle of a pass over the same arrays."""
    (x,) = arrays((3, 4), dtype="float64")
    g, b = nd.ones((4,), dtype="float64"), nd.zeros((4,), dtype="float64")
    x.attach_grad()

    def second(on):
        with mx.graph.planned(on), autograd.record():
            h = nd.tanh(x) * 2
            y = nd.traced_layer_norm(h, g, b) * h + nd.traced_layer_norm(h * h, g, b)
            first = autograd.grad((y * y).sum(), x, create_graph=True)[0]
            total = (first * first).sum() + y.sum()
        total.backward()
        return x.grad.asnumpy()

    np.testing.assert_allclose(second(True), second(False), rtol=1e-9)


def test_sizes_beyond_all_memory_are_refused_by_the_operator_that_makes_them():
    x = nd.ones((1, 2, 5, 5))
    for call in (
        lambda: nd.UpSampling(x, scale=2**40, sample_type="nearest"),
        lambda: nd.Convolution(x, nd.ones((1, 2, 1, 1)), kernel=(1, 1), num_filter=1, no_bias=True, pad=(2**40, 2**40)),
        lambda: nd.contrib.AdaptiveAvgPooling2D(x, output_size=(2**40, 2**40)),
    ):
        with pytest.raises(mx.MXNetError, match=r"too large|memory"):
            call()


def test_a_forward_pass_does_not_wait_for_head_gradients():
    """What is asked for its shape alone is let go of; a head gradient of that shape is no stand-in before backward."""

    @composite
    def traced_as_narrow(F, data, wide):
        """The means of `wide`, in the type of `data`."""
        like = F.mean(data, axis=1, keepdims=True)
        return F._cast_like(F.mean(wide, axis=1, keepdims=True), like)

    try:
        x, y = arrays((2, 3), dtype="float16")[0], nd.array([[1, 2, 3], [4, 5, 6]])
        x.attach_grad()
        y.attach_grad()
        with autograd.record():
            z = nd.traced_as_narrow(x, y)
        z.backward()
        assert (z.dtype, z.asnumpy().tolist()) == (np.float16, [[2], [5]])
        np.testing.assert_allclose(y.grad.asnumpy(), np.full((2, 3), 1 / 3), rtol=1e-3)
    finally:
        mx.op.unregister("traced_as_narrow")


def test_what_nobody_can_read_is_not_computed(kept):
    @composite(num_outputs=3, visible_outputs=1, writes={"state": 2})
    def traced_hidden(F, data, state):
        """A result, something that nobody sees, and a state."""
        return F.exp(data), F.sin(data), state + 1

    try:
        x, state = arrays((3,), (3,))
        x.attach_grad()
        before = state.asnumpy()
        with autograd.record():
            y = nd.traced_hidden(x, state)
        y.backward()
        plan = kept()[-1]
        assert len(plan.outputs) == 2
        assert not any(n.op is not None and n.op.name == "sin" for n in plan.pattern.graph.nodes)
        np.testing.assert_allclose(x.grad.asnumpy(), np.exp(x.asnumpy()), rtol=1e-6)
        np.testing.assert_allclose(state.asnumpy(), before + 1, rtol=1e-6)
    finally:
        mx.op.unregister("traced_hidden")


# ---- given outputs ----------------------------------------------------------------------------------------------------------
def test_given_outputs_are_written_where_they_lie_if_nothing_is_in_the_way():
    x = mx.nd.array(np.random.default_rng(0).normal(size=(40, 50)))
    want = mx.nd.softmax(x).asnumpy()
    out, wide = mx.nd.zeros((40, 50)), mx.nd.zeros((40, 100))
    mx.nd.softmax(x, out=out)  # the plan is there now
    before = mx.context.memory_stats()
    assert mx.nd.softmax(x, out=out) is out
    after = mx.context.memory_stats()
    assert after["hits"] + after["misses"] - before["hits"] - before["misses"] <= 1, "no array for a result that is copied"
    assert np.array_equal(out.asnumpy(), want)
    mx.nd.softmax(x, out=wide[:, ::2])
    assert np.array_equal(wide.asnumpy()[:, ::2], want) and not wide.asnumpy()[:, 1::2].any()
    for shared in (x, x.reshape((50, 40)).reshape((40, 50))):
        kept = x.copy()
        mx.nd.softmax(x, out=shared)
        assert np.array_equal(x.asnumpy(), want)
        x[:] = kept
    with pytest.raises(mx.MXNetError, match="out has shape"):
        mx.nd.softmax(x, out=mx.nd.zeros((50, 40)))
    with pytest.raises(mx.MXNetError, match="out has dtype"):
        mx.nd.softmax(x, out=mx.nd.zeros((40, 50), dtype="float64"))


def test_of_several_given_outputs_each_goes_its_way():
    x = mx.nd.array([[3.0, 1.0, 2.0]])
    values, places = mx.nd.topk(x, k=2, ret_typ="both")
    out = [mx.nd.zeros((1, 2)), mx.nd.zeros((1, 2))]
    assert mx.nd.topk(x, k=2, ret_typ="both", out=out)[1] is out[1]
    assert [a.asnumpy().tolist() for a in out] == [values.asnumpy().tolist(), places.asnumpy().tolist()]
    one = mx.nd.zeros((1, 2))
    mx.nd.topk(x, k=2, ret_typ="both", out=[one, one])
    assert one.asnumpy().tolist() == places.asnumpy().tolist(), "the last is what stays"
    x.attach_grad()
    with autograd.record():
        y = mx.nd.zeros((1, 3))
        mx.nd.softmax(x, out=y)
        z = (y * y).sum()
    z.backward()
    assert x.grad.asnumpy().any()
