"""CUDA graphs: kernels that follow each other are launched together, from the second run on the same arrays on."""

import sys

import fake_kernels
import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd


def launched_by(run):
    """Return the numbers of kernels and of graphs that a function has launched."""
    before = dict(fake_kernels.counts)
    run()
    return tuple(fake_kernels.counts[name] - before[name] for name in ("kernels", "graphs"))


def chain(middle=None):
    """Return a symbol of several kernels: formulas are not fused over a sum."""
    x = mx.sym.Variable("x")
    y = mx.sym.broadcast_sub(mx.sym.exp(x), mx.sym.sum(x, axis=1, keepdims=True))
    y = y if middle is None else middle(y)
    return mx.sym.broadcast_mul(y, mx.sym.mean(y, axis=0, keepdims=True), name="last")


@pytest.fixture
def bound(simulated_gpu):
    def bind(symbol, shape=(6, 5), grad_req="write"):
        return [symbol.simple_bind(ctx, grad_req, x=shape) for ctx in (simulated_gpu, mx.cpu())]

    return bind


def agree(executors, number, heads=None):
    """Run executors on the same values; compare what they give."""
    found = []
    for executor in executors:
        x = executor.arg_dict["x"]
        x[:] = np.sin(np.arange(x.size) * number).reshape(x.shape)
        (y,) = executor.forward(is_train=True)
        head = np.cos(np.arange(y.size)).reshape(y.shape) if heads is None else heads
        executor.backward(nd.array(head, ctx=y.context))
        found.append([y.asnumpy(), executor.grad_dict["x"].asnumpy()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=5e-6 * np.abs(b).max())  # differences of larger terms


def test_kernels_are_launched_together_from_the_second_run_on(bound):
    executors = bound(chain())
    agree(executors, 0.5)
    for number in (0.25, 0.75, 1.5):
        agree(executors, number)
    kernels, graphs = launched_by(lambda: executors[0].forward(is_train=True))
    assert (kernels, graphs) == (0, 1)


def test_numbers_that_follow_from_sizes_are_on_the_device(bound):
    for shape in ((6, 5), (7, 5), (9, 4)):
        executors = bound(mx.sym._internal._std(mx.sym.Variable("x"), axis=1), shape)
        for number in (0.5, 0.25):
            agree(executors, number)


def test_what_cupy_computes_is_between_graphs(bound):
    executors = bound(chain(lambda y: mx.sym.dot(y, mx.sym.transpose(y))))
    for number in (0.5, 0.25, 0.75):
        agree(executors, number)
    kernels, graphs = launched_by(lambda: executors[0].forward(is_train=True))
    assert graphs >= 1 and kernels <= 1


def moved(y):
    """Return `y` between others and margins: what moves elements, by copies alone, copies of copies, and numbers."""
    y = mx.sym.expand_dims(mx.sym.stack(mx.sym.concat(y, y * y, dim=1), mx.sym.concat(y * y, y, dim=1), axis=0), axis=0)
    for mode in ("constant", "edge", "reflect"):
        y = mx.sym.pad(y, mode=mode, pad_width=(0, 0, 0, 0, 1, 2, 2, 1), constant_value=0.5)
    return mx.sym.tile(y, reps=(2, 1, 1, 1)).sum(axis=(0, 1))


@pytest.mark.parametrize("shape", [(6, 5), (512, 40)])  # for both forms of kernels that copy
def test_what_moves_elements_is_part_of_the_graph(bound, shape):
    executors = bound(chain(moved), shape)
    for number in (0.5, 0.25, 0.75):
        agree(executors, number)
    assert launched_by(lambda: executors[0].forward(is_train=True)) == (0, 1)
    agree(executors, 1.5)
    executors = [e.reshape(x=(9, 4), allow_up_sizing=True) for e in executors]
    for number in (0.5, 0.25, 0.75):
        agree(executors, number)
    assert launched_by(lambda: executors[0].forward(is_train=True)) == (0, 1)


def test_another_size_has_a_graph_of_its_own(bound):
    executors = bound(chain())
    for shape in ((6, 5), (3, 7), (6, 5)):
        executors = [e.reshape(x=shape, allow_up_sizing=True) for e in executors]
        for number in (0.5, 0.25, 0.75):
            agree(executors, number)


def test_head_gradients_in_other_arrays(bound):
    """Large ones are read where they lie, so a graph of other addresses would be wrong."""
    executors = bound(chain(), (512, 600))
    rng = np.random.default_rng(0)
    for number in (0.5, 0.25, 0.75, 1.0):
        agree(executors, number, rng.uniform(-1, 1, (512, 600)).astype("float32"))


def test_memory_that_is_written_after_the_first_run(bound):
    executors = bound(chain())
    agree(executors, 0.5)
    agree(executors, 0.5)
    for e in executors:
        e.copy_params_from({"x": nd.ones((6, 5)) * 2})
        e.forward(is_train=False)
    a, b = (e.outputs[0].asnumpy() for e in executors)
    np.testing.assert_allclose(a, b, rtol=1e-6)


def test_the_profiler_sees_each_kernel(bound, tmp_path):
    executors = bound(chain())
    agree(executors, 0.5)
    agree(executors, 0.25)
    mx.profiler.set_config(profile_all=True, filename=str(tmp_path / "profile.json"))
    mx.profiler.set_state("run")
    try:
        kernels, graphs = launched_by(lambda: executors[0].forward(is_train=True))
    finally:
        mx.profiler.set_state("stop")
        mx.profiler.dumps(reset=True)
    assert kernels > 1 and graphs == 0
    agree(executors, 0.75)


def test_a_device_without_graphs_is_told_once(bound, monkeypatch):
    def fail(stream):
        raise RuntimeError("no capture")

    monkeypatch.setattr(fake_kernels.Stream, "begin_capture", fail)
    executors = bound(chain(), grad_req="null")
    x = executors[0].arg_dict["x"]
    executors[0].forward()
    with pytest.warns(UserWarning, match="one by one on gpu.0.*no capture") as told:
        for k in range(3):
            x[:] = k
            executors[0].forward()
    assert len(told) == 1
    executors[1].arg_dict["x"][:] = 2
    np.testing.assert_allclose(executors[0].outputs[0].asnumpy(), executors[1].forward()[0].asnumpy(), rtol=1e-6)


SWITCHED = """
import sys
sys.path.insert(0, {tests!r})
import fake_cupy, fake_kernels
sys.modules["cupy"] = fake_cupy.module()
import mxop as mx
x = mx.sym.Variable("x")
executor = (mx.sym.exp(x) + mx.sym.sum(x)).simple_bind(mx.gpu(0), "null", x=(1,))
for k in range(3):
    executor.forward()
function, x = mx.graph.compiled(lambda x: mx.nd.exp(x) + x.sum()), mx.nd.ones((1,), ctx=mx.gpu(0))
for k in range(3):
    function(x)
print(fake_kernels.counts["graphs"])
"""


@pytest.mark.parametrize(("value", "graphs"), [("1", "4"), ("0", "0")])
def test_the_switch(simulated_gpu, value, graphs):
    from pathlib import Path

    from processes import run_python

    code = SWITCHED.format(tests=str(Path(__file__).parent))
    assert run_python(code, MXOP_GPU_GRAPHS=value) == graphs
    assert "fake_cupy" in sys.modules


def test_calls_that_launch_nothing_are_between_others(simulated_gpu):
    a, b, c = (mx.sym.Variable(name) for name in "abc")
    with mx.util.np_shape(True):
        symbol = mx.sym.Group([mx.sym.exp(a), mx.sym.exp(b), mx.sym.exp(c)])
        executor = symbol.simple_bind(simulated_gpu, "null", a=(2,), b=(0, 3), c=(4,))
        for k in range(3):
            executor.arg_dict["c"][:] = k
            _, empty, last = executor.forward()
            assert empty.shape == (0, 3)
            np.testing.assert_allclose(last.asnumpy(), np.full(4, np.exp(k)), rtol=1e-6)


# ---- compiled functions --------------------------------------------------------------------------------------------------
@pytest.fixture
def compiled(simulated_gpu):
    """A compiled function of several kernels."""

    @mx.graph.compiled
    def function(x):
        y = nd.broadcast_sub(nd.exp(x), nd.sum(x, axis=1, keepdims=True))
        return nd.broadcast_mul(y, nd.mean(y, axis=0, keepdims=True)), y

    return function


def values(number, shape=(6, 5)):
    return np.sin(np.arange(np.prod(shape)) * number).reshape(shape).astype("float32")


def on_both(function, number, shape=(6, 5)):
    """Return what a function gives of the same values on both devices."""
    return [function(nd.array(values(number, shape), ctx=place)) for place in (mx.gpu(0), mx.cpu())]


def close(on_gpu, on_cpu):
    for a, b in zip(on_gpu, on_cpu, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=2e-5, atol=2e-6)


def test_compiled_functions_are_launched_together(compiled):
    for number in (0.5, 0.25, 0.75, 1.5):
        close(*on_both(compiled, number))
    found = []
    assert launched_by(lambda: found.append(on_both(compiled, 1.25))) == (0, 1)  # the same memory is free again
    close(*found[0])


def test_results_of_a_graph_are_the_callers(compiled):
    """Whoever keeps results has the next ones elsewhere, which no graph knows."""
    kept = [on_both(compiled, number) for number in np.arange(1, 9) / 8]
    for a, b in kept:
        close(a, b)
    x = nd.array(values(0.5), ctx=mx.gpu(0))
    first = compiled(x)
    before = [y.asnumpy() for y in first]
    for number in (0.25, 0.75, 1.0, 1.25):
        x[:] = values(number)
        compiled(x)
    assert launched_by(lambda: compiled(x)) == (0, 1)
    for y, values_ in zip(first, before, strict=True):
        np.testing.assert_array_equal(y.asnumpy(), values_)


def test_no_more_than_some_graphs_are_kept(compiled):
    arrays = [nd.array(values(number), ctx=mx.gpu(0)) for number in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)]

    def each(of):
        for x in of:
            close(compiled(x), compiled(x.as_in_context(mx.cpu())))

    for _ in range(4):  # each time, all others come between
        assert launched_by(lambda: each(arrays))[1] == 0
    for _ in range(3):
        each(arrays[:3])
    assert launched_by(lambda: each(arrays[:3])) == (0, 3)


def test_graphs_of_other_sizes(compiled):
    for shape in ((6, 5), (3, 7), (70, 80), (6, 5), (3, 7), (70, 80), (0, 5)) * 2:
        close(*on_both(compiled, 0.5, shape))


def test_recorded_runs_and_their_gradients(compiled):
    def gradients(place, number):
        x = nd.array(values(number), ctx=place)
        x.attach_grad()
        with autograd.record():
            y, z = compiled(x)
            (first,) = autograd.grad([y, z], [x], create_graph=True)
            total = (first * first).sum()
        total.backward()
        return first, x.grad

    for number in (0.5, 0.25, 0.75, 1.5, 1.25):
        close(gradients(mx.gpu(0), number), gradients(mx.cpu(), number))
    _, graphs = launched_by(lambda: gradients(mx.gpu(0), 1.0))
    assert graphs >= 2


def with_functions_of_cupy():
    """Return a compiled function of kernels, products, and an operator that waits."""

    @mx.graph.compiled
    def function(x):
        y = nd.broadcast_sub(nd.exp(x), nd.sum(x, axis=1, keepdims=True))
        z = nd.concat(y, nd.dot(nd.dot(y, nd.transpose(y)), x), dim=0)
        return nd.take(z, nd.argmax(z, axis=0), mode="raise"), nd.broadcast_mul(z, nd.mean(z, axis=0, keepdims=True))

    return function


def test_functions_of_cupy_are_between_graphs(simulated_gpu):
    """They get the arrays of the run, of whatever memory."""
    function = with_functions_of_cupy()
    kept = []
    for number in (0.5, 0.25, 0.75, 1.5, 1.25):
        kept.append(on_both(function, number))
    for a, b in kept:
        close(a, b)
    kept.clear()
    for number in (0.5, 0.25):
        close(*on_both(function, number))
    products = fake_kernels.counts["products"]
    assert launched_by(lambda: on_both(function, 0.75))[1] == 2  # before and after the products
    assert fake_kernels.counts["products"] == products + 2


def test_explanations_name_the_graphs_and_what_waits(simulated_gpu, monkeypatch):
    function, x = with_functions_of_cupy(), nd.array(values(0.5), ctx=simulated_gpu)
    told = function.explain(x)
    assert [[row.operator for row in told.rows[g.start : g.stop]] for g in told.graphs] == [
        ["Concat"],
        ["mean", "broadcast_mul"],
    ]
    assert [(row.operator, row.waits) for row in told if row.waits] == [("take", "whether the indices are in range")]
    first, last = (g.start for g in told.graphs)
    assert f"CUDA graphs of steps, from the second run on: {first}-{first}, {last}-{last + 1}\n" in str(told)
    assert f"step {last - 1} (take: whether the indices are in range)" in str(told)
    assert told.as_dict()["graphs"] == [[first], [last, last + 1]]
    for _ in range(3):
        function(x)
    assert launched_by(lambda: function(x))[1] == len(told.graphs)  # the function runs as it says
    on_cpu = function.explain(x.as_in_context(mx.cpu()))
    assert on_cpu.graphs == [] and "CUDA" not in str(on_cpu) and len(on_cpu) >= len(told) - 1


def test_explanations_of_executors_name_graphs_of_both_phases(bound):
    x = mx.sym.Variable("x")
    executors = bound(mx.sym.concat(mx.sym.exp(x), x, dim=0))
    told, on_cpu = (e.explain() for e in executors)
    assert [row.phase for row in told] == ["forward"] * 2 + ["backward"] * 2
    assert told.graphs == [range(2), range(2, 4)] and on_cpu.graphs == []
    assert "CUDA graphs of steps, from the second run on: 0-1, 2-3" in str(told)
    assert "CUDA graphs of steps, from the second run on: none" in str(bound(mx.sym.exp(x))[0].explain(False))


def test_gradients_of_broadcasting_and_means_are_one_graph(bound):
    def chosen(y):
        return mx.sym.where(y > 0, y, mx.sym.broadcast_mul(y, mx.sym.mean(y, axis=1, keepdims=True)))

    executors = bound(chain(chosen))
    for number in (0.5, 0.25, 0.75):
        agree(executors, number)
    told = executors[0].explain()
    n = len([row for row in told if row.phase == "forward"])
    assert {"_unbroadcast", "_divide_by_count"} <= {row.operator for row in told}
    assert told.graphs == [range(n), range(n, len(told))]
    executors[0].forward(is_train=True)
    assert launched_by(lambda: executors[0].backward(nd.ones((6, 5), ctx=mx.gpu(0))))[1] == 1


def test_what_runs_as_written_is_not_explained(simulated_gpu):
    with pytest.raises(mx.errors.MXNetError, match="asnumpy is for arrays only"):
        mx.graph.compiled(lambda x: nd.array(x.asnumpy())).explain(nd.ones((2,)))
    with pytest.raises(mx.errors.OpTypeError, match="argument 1 must be an NDArray, got 3"):
        mx.graph.compiled(lambda x, y: x).explain(nd.ones((2,)), 3)


def test_random_numbers_are_drawn_anew(simulated_gpu):
    @mx.graph.compiled
    def function(x):
        return nd.broadcast_mul(nd.Dropout(x, p=0.5), nd.sum(x, axis=1, keepdims=True))

    x, net = values(0.5), mx.sym.Variable("x")
    net = mx.sym.broadcast_mul(mx.sym.Dropout(net, p=0.5), mx.sym.sum(net, axis=1, keepdims=True))
    found = []
    for place in (simulated_gpu, mx.cpu()):
        mx.random.seed(7)
        given, executor = nd.array(x, ctx=place), net.bind(place, {"x": nd.array(x, ctx=place)})
        with autograd.train_mode():
            found.append([function(given).asnumpy() for _ in range(5)])
        found[-1] += [executor.forward(is_train=True)[0].asnumpy() for _ in range(5)]
    np.testing.assert_allclose(*found, rtol=1e-6)
    assert len({y.tobytes() for y in found[0]}) == 10


def test_graphs_follow_the_stream(compiled, simulated_gpu):
    import cupy

    x = nd.array(values(0.5), ctx=simulated_gpu)
    want = [y.asnumpy() for y in compiled(x)]
    for _ in range(4):  # the simulated CuPy checks the order
        with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True):
            found = compiled(x)
        for a, b in zip(found, want, strict=True):
            np.testing.assert_array_equal(a.asnumpy(), b)


def test_a_graph_is_no_part_of_the_users(compiled, bound):
    import cupy

    (executor, _), stream = bound(chain(), grad_req="null"), cupy.cuda.Stream(non_blocking=True)
    x = executor.arg_dict["x"]
    for _ in range(3):
        executor.forward()
    with cupy.cuda.Device(0), stream:
        stream.begin_capture()
        executor.forward()
        graph = stream.end_capture()
    x[:] = 1
    with cupy.cuda.Device(0), stream:  # what is launched by hand is ordered by hand
        stream.wait_event(fake_kernels.NULL.record())
        graph.launch()
        fake_kernels.NULL.wait_event(stream.record())
    found = executor.outputs[0].asnumpy()
    np.testing.assert_array_equal(found, executor.forward()[0].asnumpy())


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_within_a_capture(compiled, monkeypatch, error):
    launch = fake_kernels._launch

    def fail(function, *arguments):
        if fake_kernels._capturing:
            raise error("within")
        launch(function, *arguments)

    x = nd.array(values(0.5), ctx=mx.gpu(0))
    want = [y.asnumpy() for y in compiled(x)]
    monkeypatch.setattr(fake_kernels, "_launch", fail)
    if error is RuntimeError:
        with pytest.warns(UserWarning, match="one by one on gpu.0.*within") as told:
            found = [compiled(x) for _ in range(5)][-1]
        assert len(told) == 1
    else:
        with pytest.raises(KeyboardInterrupt):
            for _ in range(5):
                compiled(x)
        monkeypatch.setattr(fake_kernels, "_launch", launch)
        found = compiled(x)
    assert not fake_kernels._capturing
    for a, b in zip(found, want, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b)


def test_composites_are_launched_together(simulated_gpu):
    """They run as compiled functions do, and write results where they are asked to."""
    x, scale = nd.array(values(0.5, (2, 3, 5)), ctx=simulated_gpu), nd.ones((3,), ctx=simulated_gpu)
    out = nd.zeros((2, 3, 5), ctx=simulated_gpu)
    for number in (0.5, 0.25, 0.75, 1.5):
        x[:] = values(number, (2, 3, 5))
        nd.InstanceNorm(x, scale, scale, out=out)
        close([out], [nd.InstanceNorm(*(a.as_in_context(mx.cpu()) for a in (x, scale, scale)))])
    assert launched_by(lambda: nd.InstanceNorm(x, scale, scale, out=out)) == (0, 1)
