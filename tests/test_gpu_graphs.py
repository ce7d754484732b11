"""CUDA graphs of executors: kernels that follow each other are launched together, from the second run on."""

import sys

import fake_kernels
import numpy as np
import pytest

import mxop as mx
from mxop import nd


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


def test_what_cupy_computes_is_between_graphs(bound):
    executors = bound(chain(lambda y: mx.sym.dot(y, mx.sym.transpose(y))))
    for number in (0.5, 0.25, 0.75):
        agree(executors, number)
    kernels, graphs = launched_by(lambda: executors[0].forward(is_train=True))
    assert graphs >= 1 and kernels <= 1


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
print(fake_kernels.counts["graphs"])
"""


@pytest.mark.parametrize(("value", "graphs"), [("1", "2"), ("0", "0")])
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
