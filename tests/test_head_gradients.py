"""Head gradients that an executor reads where the caller has them."""

import gc
import threading

import numpy as np
import pytest

import mxop as mx
from mxop.graph import feeding

N = 300_000  # elements: more than MX_GIL_BYTES, and enough for a product to wait until it is read


def bound(outputs, n=N, **kwargs):
    executor = outputs.simple_bind(mx.cpu(), x=(n,), **kwargs)
    executor.arg_dict["x"][:] = np.linspace(-1, 1, n)
    executor.forward(is_train=True)
    return executor


def is_read_in_place(executor):
    return executor._heads._places is not None


@pytest.fixture
def square():
    executor = bound(mx.sym.square(mx.sym.Variable("x")))
    assert is_read_in_place(executor)
    return executor


def gradient_of(executor, *heads):
    executor.backward(list(heads))
    return executor.grad_dict["x"].asnumpy()


def expected(executor, head):
    return 2 * executor.arg_dict["x"].asnumpy() * head


def test_every_run_reads_what_it_is_given(square):
    x = square.arg_dict["x"].asnumpy()
    for value in (1, 3, -2):
        head = mx.nd.full((N,), value)
        assert np.array_equal(gradient_of(square, head), 2 * x * value)
        head[:] = np.nan  # read by nobody any more
        del head
        gc.collect()


def test_a_small_one_is_copied():
    executor = bound(mx.sym.square(mx.sym.Variable("x")), 8)
    assert not is_read_in_place(executor)
    assert np.array_equal(gradient_of(executor, mx.nd.full((8,), 3)), expected(executor, 3))


@pytest.mark.parametrize("given", [
    lambda h: mx.nd.array(np.repeat(h, 2))[::2], lambda h: mx.nd.array(h[::-1])[::-1],
    lambda h: mx.nd.array(h, dtype="float64"),
    lambda h: h, lambda h: mx.nd.array(h) * 1,
    lambda h: mx.nd.concat(mx.nd.zeros(3), mx.nd.array(h), dim=0)[3:],
], ids=["stepped", "reversed", "float64", "numpy", "deferred", "misaligned"])  # fmt: skip
def test_whatever_it_lies_in(square, given):
    head = np.random.default_rng(0).normal(size=N).astype("float32")
    assert np.array_equal(gradient_of(square, given(head)), expected(square, head))


def test_it_may_lie_in_what_the_run_writes(square):
    head = np.arange(N, dtype="float32")
    square.grad_dict["x"][:] = head
    assert np.array_equal(gradient_of(square, square.grad_dict["x"]), expected(square, head))
    square.forward()  # so that backward runs forward first, which writes the outputs
    square.outputs[0][:] = head
    assert np.array_equal(gradient_of(square, square.outputs[0]), expected(square, head))


def test_it_may_be_an_argument(square):
    x = square.arg_dict["x"]
    assert np.array_equal(gradient_of(square, x), expected(square, x.asnumpy()))


def test_one_of_two_is_copied():
    x = mx.sym.Variable("x")
    executor = bound(mx.sym.Group([mx.sym.square(x), mx.sym.sin(x)]), grad_req="add")
    executor.grad_dict["x"][:] = 0
    a, b = np.random.default_rng(0).normal(size=(2, N)).astype("float32")
    at = executor.arg_dict["x"].asnumpy()
    total = 0
    for first, second in ((mx.nd.array(a), b), (a, mx.nd.array(b)), (mx.nd.array(a), mx.nd.array(b)), (a, b)):
        found = gradient_of(executor, first, second)
        total = total + 2 * at * a + np.cos(at) * b
        assert np.allclose(found, total, rtol=1e-5, atol=1e-5)


def test_a_wrong_one_leaves_everything_as_it_was(square):
    before = gradient_of(square, mx.nd.ones(N)).copy()
    for wrong in (mx.nd.ones(N + 1), mx.nd.ones((N, 1))):
        with pytest.raises(mx.MXNetError, match="Head gradient 0"):
            square.backward(wrong)
    assert np.array_equal(square.grad_dict["x"].asnumpy(), before)


def test_who_may_keep_it_gets_a_copy():
    kept = []

    class Scale(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            kept.append(out_grad[0])
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("head_gradients_scale")
    class ScaleProp(mx.operator.CustomOpProp):
        def __init__(self):
            super().__init__(need_top_grad=True)

        def create_operator(self, ctx, shapes, dtypes):
            return Scale()

    executor = bound(mx.sym.Custom(mx.sym.Variable("x"), op_type="head_gradients_scale"))
    assert not is_read_in_place(executor)
    head = mx.nd.ones(N)
    assert np.array_equal(gradient_of(executor, head), np.full(N, 2))
    head[:] = 5
    assert np.array_equal(kept[0].asnumpy(), np.ones(N))


def test_with_a_monitor_and_in_inference(square):
    names = []
    square.set_monitor_callback(lambda name, value: names.append(name))
    head = np.arange(N, dtype="float32")
    square.forward(is_train=True)
    assert np.array_equal(gradient_of(square, mx.nd.array(head)), expected(square, head))
    assert any("backward" in name for name in names)
    square.set_monitor_callback(None)
    executor = bound(mx.sym.Dropout(mx.sym.square(mx.sym.Variable("x")), p=0.5))
    executor.forward()
    executor.backward(mx.nd.array(head), is_train=False)
    assert np.array_equal(executor.grad_dict["x"].asnumpy(), expected(executor, head))


def test_its_own_arrays_are_read_again_after_an_error(square, monkeypatch):
    class Broken:
        def __init__(self, schedule):
            self.calls = schedule.calls

        def run(self):
            raise KeyboardInterrupt

    monkeypatch.setattr(square._heads, "_schedule", Broken(square._backward))
    with pytest.raises(KeyboardInterrupt):
        square.backward(mx.nd.zeros(N))
    monkeypatch.undo()
    square._heads.arrays[0][:] = 7
    square._backward.run()
    assert np.array_equal(square.grad_dict["x"].asnumpy(), expected(square, 7))


def test_threads_take_turns(square):
    found = {}

    def work(k):
        head = mx.nd.full((N,), k)
        for _ in range(20):
            square.backward(head)
        found[k] = True

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [1, 2, 3]
    gradient = square.grad_dict["x"].asnumpy()
    assert any(np.array_equal(gradient, expected(square, k)) for k in found)  # of one run, from beginning to end


def test_layers(monkeypatch):
    data = mx.sym.Variable("x")
    out = mx.sym.FullyConnected(mx.sym.reshape(data, shape=(-1, 64)), num_hidden=512, name="fc")
    out = mx.sym.softmax(mx.sym.BatchNorm(mx.sym.tanh(out), name="bn"))
    rng = np.random.default_rng(0)
    found = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(feeding, "MX_GIL_BYTES", least)
        executor = out.simple_bind(mx.cpu(), x=(64, 64), grad_req="write")
        assert is_read_in_place(executor) == (least == 0)
        rng = np.random.default_rng(0)
        for array in executor.arg_arrays:
            array[:] = rng.normal(size=array.shape)
        executor.forward(is_train=True)
        executor.backward(mx.nd.array(rng.normal(size=(64, 512))))
        found.append([g.asnumpy() for g in executor.grad_arrays])
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b)
