"""The profiler on a (simulated) GPU: times by CUDA events, under a category of each GPU, and ranges of NVTX."""

import json
import sys

import numpy as np
import pytest

import mxop as mx
from mxop import nd


@pytest.fixture
def profiled(simulated_gpu, tmp_path):
    """Configure the profiler and run it; what is returned stops it, and gives the table and the events."""
    fake = sys.modules["fake_cupy"]
    path = tmp_path / "profile.json"
    mx.profiler.set_config(filename=str(path), aggregate_stats=True, continuous_dump=False)
    mx.profiler.set_state("run")

    def stop():
        mx.profiler.set_state("stop")
        table = json.loads(mx.profiler.dumps(reset=True, format="json"))["Time"]
        mx.profiler.dump()
        return table, json.loads(path.read_text())["traceEvents"], fake.ranges

    yield stop
    mx.profiler.set_state("stop")
    mx.profiler.dumps(reset=True)
    mx.profiler.set_config(filename=str(path))


def depth(ranges):
    """Return the deepest nesting of ranges; each of them must end."""
    deepest = now = 0
    for name in ranges:
        now += -1 if name is None else 1
        assert now >= 0
        deepest = max(deepest, now)
    assert now == 0
    return deepest


def test_calls_have_the_time_of_the_gpu_that_ran_them(profiled):
    x, y = nd.ones((3, 4), ctx=mx.gpu(0)), nd.ones((3, 4), ctx=mx.gpu(1))
    for _ in range(3):
        nd.exp(x)
    nd.sin(y)
    nd.cos(nd.ones(3))
    nd.dot(x, x.T)
    table, events, ranges = profiled()
    first, second = table["operator on gpu(0)"], table["operator on gpu(1)"]
    assert first["exp"]["Count"] == 3 and first["exp"]["Total"] > 0 and "dot" in first
    assert "sin" in second and "sin" not in first and "cos" not in first | second and "cos" in table["operator"]
    found = [e for e in events if e.get("cat") == "operator on gpu(0)" and e["name"] == "exp"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert len(found) == 3 and {names[e["tid"]] for e in found} == {"gpu(0)"} and all(e["dur"] > 0 for e in found)
    calls = sorted((e for e in events if e.get("cat") == "operator" and e["name"] == "exp"), key=lambda e: e["ts"])
    for call, run in zip(calls, sorted(found, key=lambda e: e["ts"]), strict=True):
        assert abs(run["ts"] - call["ts"]) < 1e5  # microseconds: both are on one axis
    assert depth(ranges) >= 1 and ranges.count("exp") == 3


def test_steps_of_executors_and_gradients(profiled):
    x = mx.sym.var("x")
    run = mx.sym.dot(mx.sym.exp(x) * 2, x).simple_bind(mx.gpu(0), x=(3, 3))
    run.forward(is_train=True)
    run.backward(nd.ones((3, 3), ctx=mx.gpu(0)))
    w = nd.ones((3, 3), ctx=mx.gpu(0))
    w.attach_grad()
    with mx.autograd.record():
        z = nd.dot(w, w)
    z.backward()
    table, _, ranges = profiled()
    names = table["operator on gpu(0)"]
    assert "dot" in names and "_backward_dot" in names and any("exp" in n or "fused" in n for n in names)
    depth(ranges)


def test_calls_that_raise_do_not_shift_the_others(profiled):
    x = nd.ones((3, 4), ctx=mx.gpu(0))
    for _ in range(2):
        with pytest.raises(mx.MXNetError):
            nd.dot(x, x)
        nd.exp(x)
    table, _, ranges = profiled()
    assert table["operator on gpu(0)"]["exp"]["Count"] == 2 and "dot" not in table["operator on gpu(0)"]
    depth(ranges)


def test_without_ranges(profiled, monkeypatch):
    monkeypatch.delattr(sys.modules["cupy"].cuda, "nvtx")
    np.testing.assert_array_equal(nd.square(nd.ones(2, ctx=mx.gpu(0)) * 3).asnumpy(), [9, 9])
    assert "square" in profiled()[0]["operator on gpu(0)"]


def test_pending_calls_are_bounded(profiled, monkeypatch):
    monkeypatch.setattr("mxop._gpu.timing._MOST", 4)
    x = nd.ones(2, ctx=mx.gpu(0))
    for _ in range(10):
        nd.exp(x)
    assert profiled()[0]["operator on gpu(0)"]["exp"]["Count"] == 10
