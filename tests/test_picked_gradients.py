"""Gradients of recorded calls that are passed on, or added where a slice was taken from, instead of being made anew."""

import json

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, profiler

RNG = np.random.default_rng(31)

#: What is taken of an array of shape (7, 6): a key, or a function of operators and the array.
PARTS = {
    "rows": np.s_[1:5],
    "steps": np.s_[::3, ::2],
    "backwards": np.s_[5:1:-2, ::-1],
    "row": np.s_[-1],
    "element": np.s_[2, 3],
    "new axis": np.s_[:, None, 2:4],
    "nothing": np.s_[3:3],
    "all": np.s_[:],
    "slice_axis": lambda F, x: F.slice_axis(x, axis=1, begin=-3, end=None),
    "slice_like": lambda F, x: F.slice_like(x, F.zeros((3, 2))),
    "diagonal": lambda F, x: F.diag(x, k=-1),
}


def taken(part, x):
    return part(nd, x) if callable(part) else x[part]


@pytest.fixture
def counts(tmp_path):
    """A function that runs another and returns how often each operator ran in it."""

    def counted(run):
        profiler.set_config(aggregate_stats=True, filename=str(tmp_path / "profile.json"))
        profiler.dumps(reset=True)
        profiler.set_state("run")
        run()
        profiler.set_state("stop")
        return {
            name: row["Count"]
            for name, row in json.loads(profiler.dumps(reset=True, format="json"))["Time"]["operator"].items()
        }

    yield counted
    profiler.set_state("stop")
    profiler.set_config(filename=str(tmp_path / "profile.json"))  # what is left is written when the process ends


def gradient(f, x, head=None, req="write"):
    x.attach_grad(grad_req=req)
    with autograd.record():
        y = f(x)
    y.backward(head)
    return x.grad.asnumpy()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", PARTS)
def test_many_slices_of_one_array(name, dtype):
    x = nd.array(RNG.integers(-4, 5, (7, 6)), dtype=dtype)
    wanted = np.zeros((7, 6))
    places = nd.array(np.arange(42).reshape(7, 6), dtype="float64")
    factors = (1, -2, 3)
    np.add.at(wanted.reshape(-1), taken(PARTS[name], places).asnumpy().astype(int).reshape(-1), sum(factors))

    def slices(x):
        return sum((taken(PARTS[name], x) * k).sum() for k in factors)

    np.testing.assert_array_equal(gradient(slices, x), wanted)
    np.testing.assert_array_equal(gradient(lambda x: slices(x) + (x * x).sum(), x), wanted + 2 * x.asnumpy())
    np.testing.assert_array_equal(gradient(lambda x: (x * x).sum() + slices(x), x), wanted + 2 * x.asnumpy())
    np.testing.assert_array_equal(gradient(lambda x: slices(x * 2) + slices(x), x), wanted * 3)


def test_steps_of_a_sequence_are_added_where_they_lie(counts):
    x = nd.ones((20, 3))

    def run():
        gradient(lambda x: sum((x[k] * (k + 1)).sum() for k in range(20)), x)

    found = counts(run)
    assert found["slice"] == 20 and found["_slice_grad"] == 1
    np.testing.assert_array_equal(x.grad.asnumpy(), np.repeat(np.arange(1.0, 21)[:, None], 3, 1))


@pytest.mark.parametrize("name", PARTS)
def test_many_slices_on_a_gpu(gpu, name):
    x = RNG.integers(-4, 5, (7, 6)).astype("float32")

    def slices(x):
        with x.context:
            return sum((taken(PARTS[name], x) * k).sum() for k in (1, -2, 3)) + (x * x).sum()

    found = gradient(slices, nd.array(x, ctx=gpu))
    np.testing.assert_array_equal(found, gradient(slices, nd.array(x)))


def test_sums_pass_gradients_on(counts):
    x, y = nd.ones((3, 4)), nd.ones((3, 4))
    x.attach_grad()
    y.attach_grad()

    def run():
        with autograd.record():
            z = x + y - 1
        z.backward()

    assert not [name for name in counts(run) if "backward_elemwise" in name or "backward_broadcast" in name]
    np.testing.assert_array_equal(x.grad.asnumpy(), np.ones((3, 4)))
    x.grad[:] = 5  # each variable has memory of its own
    np.testing.assert_array_equal(y.grad.asnumpy(), np.ones((3, 4)))


@pytest.mark.parametrize("req", ["write", "add"])
def test_a_head_gradient_of_the_caller_stays_as_it_is(req):
    x, head = nd.array(RNG.normal(size=(5, 4))), nd.array(RNG.normal(size=(5, 4)))
    kept = head.asnumpy()
    found = gradient(lambda x: x + 0, x, head, req)
    np.testing.assert_array_equal(found, kept)
    x.grad[:] = 0
    with autograd.record():
        y, part = x + x, x[1:3]
    autograd.backward([y, part], [head, head[1:3].copy()])
    np.testing.assert_array_equal(head.asnumpy(), kept)
    twice = 2 * kept
    twice[1:3] += kept[1:3]
    np.testing.assert_allclose(x.grad.asnumpy(), twice, rtol=1e-6)


def test_a_head_that_is_also_what_slices_add_to():
    """The gradient of `x` begins as the caller's head gradient, which no slice may add to."""
    x, head = nd.array(RNG.normal(size=(4, 4))), nd.array(RNG.normal(size=(4, 4)))
    kept = head.asnumpy()
    x.attach_grad()
    with autograd.record():
        h = x * 1
        part = h[:2]
        late = h + 0  # its gradient comes first, and is the head gradient itself
    autograd.backward([late, part], [head, nd.ones((2, 4))])
    wanted = kept.copy()
    wanted[:2] += 1
    np.testing.assert_array_equal(x.grad.asnumpy(), wanted)
    np.testing.assert_array_equal(head.asnumpy(), kept)


class Within(autograd.Function):
    """Differentiates something else of the same graph in its backward."""

    def __init__(self, inner, x):
        super().__init__()
        self.inner, self.x = inner, x

    def forward(self, w):
        return w * 1

    def backward(self, dw):
        autograd.grad([self.inner], [self.x], retain_graph=True)
        return dw


def test_a_pass_within_another_says_nothing_of_its_gradients():
    """The inner pass makes a gradient of `h` that nobody else has; in the outer one, that is the caller's head gradient."""
    x, w, head = nd.array(RNG.normal(size=(4, 4))), nd.ones((1,)), nd.array(RNG.normal(size=(4, 4)))
    kept = head.asnumpy()
    x.attach_grad()
    w.attach_grad()
    with autograd.record():
        h = x * 1
        inner = h[:3].sum() + h[1:].sum()
        part = h[:2]
        middle = Within(inner, x)(w)
        late = h + 0
    autograd.backward([late, part, middle], [head, nd.ones((2, 4)), nd.ones((1,))])
    np.testing.assert_array_equal(head.asnumpy(), kept)
    kept[:2] += 1
    np.testing.assert_array_equal(x.grad.asnumpy(), kept)


def test_a_second_backward_starts_anew():
    x = nd.array(RNG.normal(size=(6,)))
    x.attach_grad()
    with autograd.record():
        y = x[:4] + x[2:]
    for _ in range(3):
        y.backward(retain_graph=True)
        np.testing.assert_array_equal(x.grad.asnumpy(), [1, 1, 2, 2, 1, 1])


def test_gradients_of_gradients_are_recorded():
    x = nd.array([1.0, 2, 3, 4])
    x.attach_grad()
    with autograd.record():
        y = (x[:3] * x[1:]).sum() + x[0] * x[0]
        g = autograd.grad([y.sum()], [x], create_graph=True)[0]
        z = (g * g).sum()
    np.testing.assert_array_equal(g.asnumpy(), [4, 4, 6, 3])
    z.backward()
    # g = (2 x0 + x1, x0 + x2, x1 + x3, x2)
    np.testing.assert_array_equal(x.grad.asnumpy(), [2 * (2 * 4 + 4), 2 * (4 + 6), 2 * (4 + 3), 2 * 6])


class Halved(autograd.Function):
    """Writes to the head gradient that it is given."""

    def forward(self, x):
        return x + 1

    def backward(self, dy):
        dy[:] = dy * 0.5
        return dy


def test_functions_may_write_to_their_head_gradients():
    x, y = nd.array([1.0, 2]), nd.array([3.0, 4])
    x.attach_grad()
    y.attach_grad()
    with autograd.record():
        z = Halved()(x) + y
    head = nd.array([1.0, 10])
    z.backward(head)
    assert x.grad.asnumpy().tolist() == [0.5, 5] and y.grad.asnumpy().tolist() == [1, 10] and head.asnumpy().tolist() == [1, 10]


def test_broadcast_sums():
    x, b = nd.array(RNG.integers(0, 9, (3, 4))), nd.array(RNG.integers(0, 9, (4,)))
    x.attach_grad()
    b.attach_grad()
    head = RNG.integers(0, 9, (3, 4)).astype("float32")
    with autograd.record():
        z = nd.broadcast_add(x, b.reshape((1, 4)))
    z.backward(nd.array(head))
    np.testing.assert_array_equal(x.grad.asnumpy(), head)
    np.testing.assert_array_equal(b.grad.asnumpy(), head.sum(0))


def test_variables_of_one_gradient_have_memory_of_their_own():
    x, y = mx.nd.ones((2, 2)), mx.nd.ones((2, 2))
    x.attach_grad()
    y.attach_grad()
    with autograd.record():
        z = x + y
    a, b = autograd.grad([z], [x, y])
    a[:] = 7
    np.testing.assert_array_equal(b.asnumpy(), np.ones((2, 2)))


def test_slices_of_what_receives_sparse_gradients():
    w = nd.array(RNG.integers(-3, 4, (6, 2)))
    w.attach_grad(stype="row_sparse")
    with autograd.record():
        y = w[1:3].sum()
        for k in (0, 4, 4):
            y = y + nd.Embedding(nd.array([k]), w, input_dim=6, output_dim=2, sparse_grad=True).sum()
    y.backward()
    np.testing.assert_array_equal(w.grad.asnumpy(), np.repeat([[1.0], [1], [1], [0], [2], [0]], 2, 1))


# ---- in graphs ------------------------------------------------------------------------------------------------------
def allocations():
    """Return how often memory was asked for."""
    told = mx.context.memory_stats()
    return told["hits"] + told["misses"]


def steps_of_a_sequence(x, n):
    return mx.sym.add_n(*(mx.sym.slice_axis(x, axis=0, begin=k, end=k + 1) * (k + 1) for k in range(n)))


@pytest.mark.parametrize("req, before", [("write", 0), ("add", 2)])
def test_gradients_of_slices_are_added_up_in_one_array(req, before):
    n, x, grad = 20, nd.array(RNG.normal(size=(20, 300))), nd.full((20, 300), before)
    executor = steps_of_a_sequence(mx.sym.Variable("x"), n).bind(mx.cpu(), {"x": x}, {"x": grad}, req)
    executor.forward(is_train=True)
    executor.backward(nd.ones((1, 300)))
    np.testing.assert_array_equal(grad.asnumpy(), np.repeat(np.arange(1.0, n + 1)[:, None], 300, 1) + before)
    told = executor.explain()
    made = [line for line in str(told).splitlines() if "_slice_axis_" in line]
    assert sum("_slice_axis_added(" in what for what in made) == n - 1 and len(made) == n
    assert told.memory["planned"] < 4 * x.size * 4  # it was one array of the size of `x` for each slice
    head, before = nd.ones((1, 300)), allocations()
    executor.forward(is_train=True)
    executor.backward(head)
    assert allocations() - before < n / 2  # nor is a part added in memory beside, and copied back


@pytest.mark.parametrize("req, before", [("write", 0), ("add", 2)])
def test_gradients_of_slices_are_added_up_on_a_gpu(gpu, req, before):
    with gpu:
        grad, given = nd.full((6, 4), before), nd.array(RNG.normal(size=(6, 4)))
        executor = steps_of_a_sequence(mx.sym.Variable("x"), 6).bind(gpu, {"x": given}, {"x": grad}, req)
        for _ in range(2):
            executor.forward(is_train=True)
            executor.backward(nd.ones((1, 4)))
    runs = 2 if req == "add" else 1
    np.testing.assert_array_equal(grad.asnumpy(), np.repeat(np.arange(1.0, 7)[:, None], 4, 1) * runs + before)


@pytest.mark.parametrize("name", PARTS)
def test_slices_of_a_compiled_function(name):
    x = nd.array(RNG.integers(-4, 5, (7, 6)))

    def slices(x):
        return sum((taken(PARTS[name], x) * k).sum() for k in (1, -2, 3)) + (x * x).sum()

    if name != "slice_like":  # whose second input is made by nd.zeros
        np.testing.assert_array_equal(gradient(mx.graph.compiled(slices), x), gradient(slices, x))


def test_what_is_assigned_to_parts_has_no_copies():
    x = mx.sym.Variable("x")
    y = x * 2
    for k in range(10):
        y = mx.sym._internal._slice_assign(y, mx.sym.slice_axis(x, axis=0, begin=k, end=k + 1), begin=(k,), end=(k + 1,))
    given = nd.array(RNG.normal(size=(12, 200)))
    executor = y.bind(mx.cpu(), {"x": given})
    wanted = given.asnumpy()
    wanted[10:] *= 2
    for _ in range(2):
        np.testing.assert_array_equal(executor.forward()[0].asnumpy(), wanted)
    assert executor.explain().memory["planned"] < given.size * 4


def test_parts_that_are_read_again_are_copied():
    x = mx.sym.Variable("x")
    y = x * 2
    first = mx.sym._internal._slice_assign_scalar(y, scalar=7, begin=(0,), end=(1,))
    second = mx.sym._internal._slice_assign_scalar(y, scalar=8, begin=(1,), end=(2,))
    executor = mx.sym.Group([first + 0, second + y]).bind(mx.cpu(), {"x": nd.ones((3, 1))})
    for _ in range(2):
        one, two = executor.forward()
        assert one.asnumpy().ravel().tolist() == [7, 2, 2] and two.asnumpy().ravel().tolist() == [4, 10, 4]
    assert executor.arg_dict["x"].asnumpy().ravel().tolist() == [1, 1, 1]


def test_the_data_of_an_assignment_may_be_its_result():
    x, part = nd.array([1.0, 2, 3]), nd.array([9.0])
    nd._internal._slice_assign(x, part, begin=(1,), end=(2,), out=x)
    assert x.asnumpy().tolist() == [1, 9, 3]
    nd._internal._slice_assign(x, x[1:2], begin=(0,), end=(1,), out=x)
    assert x.asnumpy().tolist() == [9, 9, 3]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("axis, mode", [(0, "clip"), (1, "wrap"), (-1, "clip")])
def test_rows_that_are_taken_several_times(axis, mode, dtype):
    """Rows repeat within an index array and between two, and some are never taken."""
    x = RNG.integers(-4, 5, (6, 5, 4)).astype(dtype)
    places = [RNG.integers(-2, 8, shape).astype("int32") for shape in ((7,), (3, 2), (1,))]
    head = nd.array(np.arange(1, 4), dtype=dtype)
    net = mx.sym.concat(*(
        mx.sym.sum(mx.sym.take(mx.sym.Variable("x"), mx.sym.Variable(f"at{k}"), axis=axis, mode=mode)).reshape((1,))
        for k in range(3)
    ), dim=0)  # fmt: skip
    given = {"x": nd.array(x, dtype=dtype), **{f"at{k}": nd.array(p, dtype="int32") for k, p in enumerate(places)}}
    executor = net.bind(
        mx.cpu(), given, {"x": nd.zeros(x.shape, dtype=dtype)}, {"x": "write", **dict.fromkeys(list(given)[1:], "null")}
    )
    executor.forward(is_train=True)
    executor.backward(head)
    wanted, size = np.zeros(x.shape), x.shape[axis]
    for k, p in enumerate(places):
        at = np.clip(p, 0, size - 1) if mode == "clip" else p % size
        counts = np.bincount(at.ravel(), minlength=size) * (k + 1)
        wanted += counts.reshape([-1 if a == axis % 3 else 1 for a in range(3)])
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), wanted)


def test_an_embedding_for_each_step_adds_up_rows():
    w, steps, size = mx.sym.Variable("w"), 12, (300, 50)
    at = [mx.sym.Variable(f"at{k}") for k in range(steps)]
    net = mx.sym.add_n(*(mx.sym.Embedding(a, w, input_dim=size[0], output_dim=size[1]) * (k + 1) for k, a in enumerate(at)))
    places = RNG.integers(0, 9, (steps, 8)).astype("float32")
    given = {"w": nd.array(RNG.normal(size=size)), **{f"at{k}": nd.array(p) for k, p in enumerate(places)}}
    executor = net.bind(mx.cpu(), given, {"w": nd.zeros(size)}, {"w": "write", **dict.fromkeys(list(given)[1:], "null")})
    executor.forward(is_train=True)
    executor.backward(nd.ones((8, size[1])))
    wanted = np.zeros(size[0])
    np.add.at(wanted, places.astype(int), np.repeat(np.arange(1, steps + 1)[:, None], 8, 1))
    np.testing.assert_array_equal(executor.grad_dict["w"].asnumpy(), np.repeat(wanted[:, None], size[1], 1))
    told = str(executor.explain())
    assert told.count("_take_added(") == steps - 1 and executor.explain().memory["planned"] < size[0] * size[1] * 4


def test_rows_taken_twice_on_a_gpu(gpu):
    x = mx.sym.Variable("x")
    net = mx.sym.take(x, mx.sym.Variable("a"), mode="clip") + mx.sym.take(x, mx.sym.Variable("b"), mode="wrap")
    with gpu:
        given = {"x": nd.ones((4, 3)), "a": nd.array([1, 1, 3]), "b": nd.array([9, -1, 2])}
        executor = net.bind(gpu, given, {"x": nd.zeros((4, 3))}, {"x": "add", "a": "null", "b": "null"})
        executor.forward(is_train=True)
        executor.backward(nd.ones((3, 3)))
    assert executor.grad_dict["x"].asnumpy()[:, 0].tolist() == [0, 3, 1, 2]
