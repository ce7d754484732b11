"""Streams of GPUs: calls follow CuPy's current stream, and wait for calls on other streams before they touch memory.

The simulated CuPy (:func:`fake_kernels.used`) lets nothing run on a stream that does not come after all that ran before.
"""

import fake_kernels
import numpy as np
import pytest

import mxop as mx
from mxop import nd


@pytest.fixture
def cupy(simulated_gpu):
    import cupy

    return cupy


def waits_of(run):
    """Return how many events streams wait for while a function runs."""
    found = []
    before = fake_kernels.Stream.wait_event
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake_kernels.Stream, "wait_event", lambda self, event: (found.append(event), before(self, event)))
        run()
    return len(found)


def test_a_stream_waits_for_the_one_before(simulated_gpu, cupy):
    x = nd.array([[1.0, 2.0], [3.0, 4.0]], ctx=simulated_gpu)
    stream = cupy.cuda.Stream(non_blocking=True)

    def work(results):
        results.append(nd.exp(x))
        with cupy.cuda.Device(0), stream:
            assert simulated_gpu.stream is stream
            y = nd.softmax(x) + results[0]
            z = nd.dot(y, x)
            z[:, 0] = 7
            results += [y.sum(axis=0), z, nd.take(z, nd.array([1, 0], ctx=simulated_gpu))]
        results.append(results[-1] * 2)

    results = []
    assert waits_of(lambda: work(results)) == 2  # there and back, however many calls there are
    x = nd.array(x.asnumpy())
    e = nd.exp(x)
    y = nd.softmax(x) + e
    z = nd.dot(y, x)
    z[:, 0] = 7
    on_cpu = [e, y.sum(axis=0), z, z[::-1], z[::-1] * 2]
    for a, b in zip(on_cpu, results, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_a_stream_that_could_not_wait_is_not_followed(simulated_gpu, cupy, monkeypatch):
    x, stream = nd.ones((3,), ctx=simulated_gpu), cupy.cuda.Stream()
    with monkeypatch.context() as patch:
        patch.setattr(fake_kernels.Stream, "wait_event", lambda self, event: 1 / 0)
        with cupy.cuda.Device(0), stream, pytest.raises(ZeroDivisionError):
            nd.exp(x)
    with cupy.cuda.Device(0), stream:
        assert waits_of(lambda: nd.exp(x)) == 1


def test_calls_on_one_stream_wait_for_nothing(simulated_gpu, cupy):
    with cupy.cuda.Device(0), cupy.cuda.Stream():
        x = nd.ones((3,), ctx=simulated_gpu)
        assert waits_of(lambda: [nd.exp(x) for _ in range(3)]) == 0


def test_an_executor_may_run_on_another_stream(simulated_gpu, cupy):
    x = mx.sym.Variable("x")
    net = mx.sym.broadcast_sub(mx.sym.exp(x), mx.sym.sum(x, axis=1, keepdims=True)).sum(axis=0)
    executor = net.simple_bind(simulated_gpu, x=(4, 3))
    executor.arg_dict["x"][:] = np.arange(12).reshape(4, 3)
    (first,) = executor.forward()
    first = first.asnumpy()
    for _ in range(3):  # the second run captures, the third launches the graph
        with cupy.cuda.Device(0), cupy.cuda.Stream():
            executor.forward()
        np.testing.assert_array_equal(executor.outputs[0].asnumpy(), first)


def test_a_captured_stream_waits_for_nothing_outside(simulated_gpu, cupy):
    x = nd.array([1.0, 2.0], ctx=simulated_gpu)
    y = nd.exp(x)
    nd.exp(x, out=y)
    stream = cupy.cuda.Stream(non_blocking=True)
    with cupy.cuda.Device(0), stream:
        stream.begin_capture()
        nd.exp(x, out=y)
        graph = stream.end_capture()
    x[:] = 3
    with cupy.cuda.Device(0), stream:  # what is launched by hand is ordered by hand
        stream.wait_event(fake_kernels.NULL.record())
        graph.launch()
        fake_kernels.NULL.wait_event(stream.record())
    np.testing.assert_allclose(y.asnumpy(), np.exp([3.0, 3.0]), rtol=1e-6)


def test_a_capture_changes_nothing_for_those_who_follow(simulated_gpu, cupy):
    x, other = nd.array([1.0, 2.0], ctx=simulated_gpu), cupy.cuda.Stream()
    y = nd.exp(x)
    with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        nd.exp(x, out=y)
        stream.end_capture()
    with cupy.cuda.Device(0), other:  # it waits for what ran before the capture
        assert waits_of(lambda: nd.exp(x, out=y)) == 1
    assert waits_of(lambda: nd.exp(x)) == 1


def test_copies_between_devices_follow_both_streams(simulated_gpu, cupy):
    x = nd.array(np.arange(6).reshape(2, 3), ctx=mx.gpu(0))
    with cupy.cuda.Device(0), cupy.cuda.Stream():
        y = nd.exp(x).T
        with cupy.cuda.Device(1), cupy.cuda.Stream():
            moved = y.as_in_context(mx.gpu(1))
            assert waits_of(lambda: y.as_in_context(mx.gpu(1))) == 2  # before the copy, and before the source is written again
            result = (moved * 2).asnumpy()
    np.testing.assert_array_equal(result, (nd.exp(nd.arange(6).reshape((2, 3))).T * 2).asnumpy())


def chain(place):
    x = mx.sym.Variable("x")
    net = mx.sym.broadcast_sub(mx.sym.exp(x), mx.sym.sum(x, axis=1, keepdims=True)).sum(axis=0)
    return net.bind(place, {"x": nd.ones((4, 3), ctx=place)}, grad_req="null")


@pytest.mark.parametrize("how", ["first", "again", "executor", "graph"])
def test_a_call_of_another_thread_between_the_wait_and_the_launch(simulated_gpu, cupy, monkeypatch, how):
    """CuPy's current stream is the thread's own, but the order is that of all threads: both take part in it afterwards."""
    x, z = nd.ones((4, 3), ctx=simulated_gpu), nd.ones((2,), ctx=simulated_gpu)
    executor, (mine, others) = chain(simulated_gpu), [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    call, launch = executor.forward if how in ("executor", "graph") else lambda: nd.exp(x), fake_kernels.used
    came = []

    def other_thread(work):
        with cupy.cuda.Device(0), others:
            return work()

    def between():
        monkeypatch.setattr(fake_kernels, "used", launch)
        came.append(other_thread(lambda: nd.exp(z)))
        fake_kernels._last.clear()  # this call has waited, and does not wait again
        launch()

    with cupy.cuda.Device(0), mine:
        for _ in range({"first": 0, "graph": 3}.get(how, 1)):
            call()
        nd.exp(z)
        monkeypatch.setattr(fake_kernels, "used", between)
        found = call()
    found = found[0] if isinstance(found, list) else found
    assert len(came) == 1
    other_thread(lambda: found * 2)  # the simulated CuPy checks the order


def test_the_stream_of_a_context(simulated_gpu, cupy):
    assert mx.gpu(0).stream is cupy.cuda.get_current_stream(0)
    with pytest.raises(mx.errors.DeviceError, match=r"cpu\(0\) has no stream"):
        _ = mx.cpu().stream


# ---- stores ------------------------------------------------------------------------------------------------------------
def test_a_device_store_stays_on_the_device(simulated_gpu, cupy):
    import fake_cupy

    for name, place in (("device", simulated_gpu), ("local", mx.cpu())):
        store = mx.kv.create(name)
        store.init("w", nd.ones((2,)))
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
        gradients, out = [nd.ones((2,), ctx=mx.gpu(k)) for k in (0, 1)], nd.zeros((2,), ctx=simulated_gpu)
        store.pushpull("w", gradients, out=out)
        assert store._value("w").context == place
        fake_cupy.waits.clear()
        store.pushpull("w", gradients, out=out)
        assert bool(fake_cupy.waits) == (name == "local")  # nothing went over the host
        np.testing.assert_allclose(out.asnumpy(), [-1.9, -1.9], rtol=1e-6)
