"""Chains of eager calls: whatever is done in between, every array holds what it would hold if each call had run at once."""

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import mxop as mx
from mxop import autograd, nd
from mxop._core import lazy
from mxop.op import F, elementwise, unregister

SHAPE = (17, 1024)  # above what small calls compute at once


@pytest.fixture(autouse=True)
def from_small_arrays_on():
    before = lazy.set_least(1), mx.engine.set_bulk_size(15)
    yield
    lazy.set_least(before[0])
    mx.engine.set_bulk_size(before[1])


def made(seed=0, shape=SHAPE):
    return nd.array(np.random.default_rng(seed).standard_normal(shape), dtype="float32")


def at_once(function):
    with mx.engine.bulk(0):
        return function()


def chain(x, y, z):
    return nd.sigmoid(x * y + z) * x


def test_a_chain_waits_and_gives_the_same_bits():
    x, y, z = made(0), made(1), made(2)
    want = at_once(lambda: chain(x, y, z).asnumpy())
    assert lazy.waiting() == 0
    found = chain(x, y, z)
    assert lazy.waiting() == 4
    assert np.array_equal(found.asnumpy(), want)
    assert lazy.waiting() == 0


@pytest.mark.parametrize("shape", [(1024,), (17, 1), (1, 1024), (1,)])
def test_operands_of_other_shapes(shape):
    x, y = made(0), made(1, shape)
    assert np.array_equal(((x - y) * y + y).asnumpy(), at_once(lambda: ((x - y) * y + y).asnumpy()))


def test_operands_of_other_layouts():
    x, y = made(0, (1024, 3)), made(1, (2, 1024, 6))
    a, b = nd.from_dlpack(x.asnumpy().T), y[1].slice(begin=(0, 0), end=(1024, 6), step=(1, 2))
    want = at_once(lambda: ((x + b) * x).asnumpy())
    assert np.array_equal(((x + b) * x).asnumpy(), want)
    assert np.array_equal((a * a + a).asnumpy(), at_once(lambda: (a * a + a).asnumpy()))


def test_what_nobody_has_is_not_computed():
    x = made()
    y = x + 1
    del y
    assert lazy.waiting() == 0
    y = (x + 1) * 2  # of which one is needed, but nobody has it
    assert lazy.waiting() == 2
    del y
    assert lazy.waiting() == 0


def test_what_somebody_still_has_is_stored():
    x = made()
    y = x + 1
    z = y * 2
    assert np.array_equal(z.asnumpy(), (x.asnumpy() + 1) * 2)
    assert lazy.waiting() == 0
    assert np.array_equal(y.asnumpy(), x.asnumpy() + 1)


def test_a_temporary_of_two_chains_is_computed_once():
    x = made()
    want = at_once(lambda: nd.exp(x)).asnumpy()
    y = nd.exp(x)
    a, b = y + 1, y * 2
    del y
    assert np.array_equal(a.asnumpy(), want + 1)
    assert lazy.waiting() == 0  # b is done with it
    x[:] = 0
    assert np.array_equal(b.asnumpy(), want * 2)


def test_a_temporary_of_too_many_chains_is_computed_once():
    x = made()
    want = at_once(lambda: nd.exp(x)).asnumpy()
    y = nd.exp(x)
    kept = [y * k for k in range(60)]
    del y
    assert np.array_equal(kept[0].asnumpy(), want * 0)
    assert 0 < lazy.waiting() < 60
    x[:] = 0
    for k, a in enumerate(kept):
        assert np.array_equal(a.asnumpy(), want * np.float32(k))


def test_one_operator_twice():
    x = made()
    (y,) = (x + 1,)
    assert np.array_equal((y * y).asnumpy(), (x.asnumpy() + 1) ** 2)
    a, b = x * 3, x * 3  # the same values, in two places
    (a + b).wait_to_read()
    a[:] = 0
    assert np.array_equal(b.asnumpy(), x.asnumpy() * np.float32(3))


def test_long_chains_are_cut():
    x = made()
    y, want = x, x.asnumpy()
    for k in range(100):
        y, want = y * 1.0078125 + k % 3, want * np.float32(1.0078125) + np.float32(k % 3)
        assert lazy.waiting() <= 15
    assert np.array_equal(y.asnumpy(), want)


@contextmanager
def of_many_values(n):
    """Define an operator whose program has that many registers, and some."""

    @elementwise(name="test_lazy_long")
    def long(data):
        """Many values at a time."""
        parts = [F.exp(data * (k / 512)) for k in range(1, n)]
        total = sum(parts)
        return sum(p * total for p in parts) / 1e5

    try:
        yield long
    finally:
        unregister("test_lazy_long")


def test_chains_too_large_for_one_program():
    with of_many_values(236) as long:
        mx.engine.set_bulk_size(28)
        x = made()
        want = at_once(lambda: long(x)).asnumpy()
        y = long(x)
        kept = [y * k for k in range(24)]
        for k, a in enumerate(kept):
            assert np.array_equal(a.asnumpy(), want * np.float32(k))
        assert np.array_equal(y.asnumpy(), want)
        y = long(x)
        kept = [y * k for k in range(24)]
        del y
        kept.reverse()
        for k, a in enumerate(kept):
            assert np.array_equal(a.asnumpy(), want * np.float32(23 - k))


def test_many_arrays_are_read_together():
    x = made()
    total, want = x, x.asnumpy()
    for k in range(40):
        y = made(k)
        total, want = total + y * y, want + y.asnumpy() ** 2
    np.testing.assert_allclose(total.asnumpy(), want, rtol=1e-6)


def writes():
    def out(x):
        nd.negative(x, out=x)

    def sliced(x):
        x[1:2] = 7

    def buffer(x):
        np.asarray(x)[:] = 4

    def updated(x):
        nd.sgd_update(x, nd.ones_like(x), lr=0.5, out=x)

    def copied(x):
        made(9).copyto(x)

    def filled(x):
        nd.array([[1.0]]).broadcast_to(SHAPE).copyto(x)

    return [
        lambda x: x.__iadd__(1),
        lambda x: x.__setitem__(slice(None), 3),
        out,
        sliced,
        buffer,
        updated,
        copied,
        filled,
    ]


@pytest.mark.parametrize("write", writes())
def test_who_writes_to_an_input_comes_later(write):
    x, y = made(0), made(1)
    want, part = x.asnumpy() * y.asnumpy() + x.asnumpy(), x.asnumpy().ravel()[5:2000] * 2
    z, view = x * y + x, x.reshape((-1,))[5:2000] * 2
    write(x)
    assert np.array_equal(z.asnumpy(), want)
    assert np.array_equal(view.asnumpy(), part)


@pytest.mark.parametrize("write", writes())
def test_who_writes_to_a_result_comes_later(write):
    x, y = made(0), made(1)
    a = x * y
    b = a + 1
    want = x.asnumpy() * y.asnumpy() + 1
    write(a)
    assert np.array_equal(b.asnumpy(), want)
    c = nd.array(x.asnumpy() * y.asnumpy())
    write(c)
    assert np.array_equal(a.asnumpy(), c.asnumpy())


def test_memory_that_others_may_write_unseen():
    host = np.ones(SHAPE, "float32")
    x = nd.from_dlpack(host)
    y = x + 1
    host[:] = 5
    assert (y.asnumpy() == 2).all()
    x = made()
    before = x.asnumpy()
    memory = np.asarray(x)
    y = x + 1
    memory[:] = 5
    assert np.array_equal(y.asnumpy(), before + 1)
    assert (x.asnumpy() == 5).all()
    del memory
    gc.collect()
    y = x + 1
    assert lazy.waiting() == 1
    other = nd.from_dlpack(x.__dlpack__())
    z = x + 2
    other[:] = 0
    assert (y.asnumpy() == 6).all()
    assert (z.asnumpy() == 7).all()


def test_views_of_what_waits():
    x = made()
    y = x * 2
    flat, row, turned = y.reshape((-1,)), y[1], y.T
    want = x.asnumpy() * 2
    assert np.array_equal((row + 1).asnumpy(), want[1] + 1)
    assert np.array_equal(flat.asnumpy(), want.ravel())
    assert np.array_equal(turned.asnumpy(), want.T)
    y = x * 2
    row = y[1]
    row[:] = 0
    want = x.asnumpy() * 2
    want[1] = 0
    assert np.array_equal(y.asnumpy(), want)


def test_executors_write_what_calls_have_to_read():
    a = mx.sym.var("a")
    x = made()
    executor = (a * 2).bind(mx.cpu(), {"a": x}, args_grad={"a": nd.zeros(SHAPE)})
    (out,) = executor.forward()
    y = out + 1
    want = out.asnumpy() + 1
    y = out + 1
    x[:] = 0
    executor.forward(is_train=True)
    assert np.array_equal(y.asnumpy(), want)
    executor.backward([nd.ones(SHAPE)])
    g = executor.grad_dict["a"] * 3
    executor.backward([nd.zeros(SHAPE)])
    assert (g.asnumpy() == 6).all()
    bound = (a + 1).bind(mx.cpu(), {"a": x + 4})  # bound to what waits
    assert (bound.forward()[0].asnumpy() == 5).all()
    bound.set_monitor_callback(lambda name, array: None)  # which runs each call by itself
    bound.forward()
    y = bound.outputs[0] * 2
    bound.arg_dict["a"][:] = 0
    bound.forward()
    assert (y.asnumpy() == 10).all()
    y = bound.outputs[0] * 2
    bound.arg_dict["a"][:] = 7
    bound.set_monitor_callback(None)
    assert bound.explain(measure=True).measured > 0
    assert (y.asnumpy() == 2).all()


class _Keeps(mx.operator.CustomOp):
    kept: ClassVar[list] = []

    def forward(self, is_train, req, in_data, out_data, aux):
        self.kept.append(in_data[0] * 10)
        self.assign(out_data[0], req[0], in_data[0] * 2 + 1)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("later_keeps")
class _KeepsProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return _Keeps()


def test_what_a_custom_operator_keeps():
    del _Keeps.kept[:]
    x = made()
    inner = mx.sym.exp(mx.sym.var("a")) + 1
    net = mx.sym.exp(mx.sym.Custom(inner, op_type="later_keeps") * 0.1) + 2
    executor = net.bind(mx.cpu(), {"a": x})
    executor.forward()
    x[:] = 0
    executor.forward()
    assert np.allclose(_Keeps.kept[1].asnumpy(), 20)
    assert np.array_equal(nd.Custom(x + 1, op_type="later_keeps").asnumpy(), np.full(SHAPE, 3))


def test_gradients_have_the_same_bits():
    def gradients():
        x, y, z = made(0), made(1), made(2)
        for v in (x, y, z):
            v.attach_grad()
        with autograd.record():
            loss = nd.log(1 + nd.exp(chain(x, y, z))) * y
        loss.backward(retain_graph=True)
        first = [v.grad.asnumpy() for v in (x, y, z)]
        x.attach_grad(grad_req="add")
        with autograd.record():
            g = autograd.grad(nd.tanh(x * y) * x, x, create_graph=True)[0]
            again = g * g
        again.backward()
        return [*first, x.grad.asnumpy(), again.asnumpy()]

    for found, want in zip(gradients(), at_once(gradients), strict=True):
        assert np.array_equal(found, want)


def test_a_variable_that_changed_is_still_found():
    x = made()
    x.attach_grad()
    with autograd.record():
        y = x * x
        z = y * y
    y[:] = 0
    with pytest.raises(mx.MXNetError, match="was changed after"):
        z.backward()


def test_errors_come_with_the_call():
    with pytest.raises(mx.MXNetError, match=r"elemwise_add|broadcast_add"):
        made() + made(1, (2, 1024))
    assert lazy.waiting() == 0


def test_threads_may_read_the_same():
    for _ in range(20):
        x = made()
        y = x
        for _ in range(5):
            y = nd.tanh(y) + x
        found = [None] * 4
        gate = threading.Barrier(4)

        def read(k, y=y, found=found, gate=gate):
            gate.wait()
            found[k] = (y * k).asnumpy()

        threads = [threading.Thread(target=read, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        want = y.asnumpy()
        for k in range(4):
            assert np.array_equal(found[k], want * np.float32(k))


def test_what_is_being_computed_may_be_read_by_calls_of_other_threads():
    x = nd.full((20_000_000,), 2.5)
    x.wait_to_read()
    y = nd.gamma(x)
    assert lazy.waiting() == 1
    begun = threading.Event()

    def read():
        begun.set()
        y.wait_to_read()

    reader = threading.Thread(target=read)
    reader.start()
    begun.wait()
    time.sleep(0.002)
    results = [y + 1, y * 2]  # its memory is being filled: they come after it
    reader.join()
    for found, wanted in zip(results, (y.asnumpy() + 1, y.asnumpy() * 2), strict=True):
        assert np.array_equal(found.asnumpy(), wanted)


def _read_in_child(queue, y):
    queue.put(float(y.asnumpy().sum()))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_computes_for_itself():
    y = nd.ones(SHAPE) * 2 + 1
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_read_in_child, args=(queue, y))
    child.start()
    assert queue.get(timeout=60) == 3 * y.size
    child.join()
    assert (y.asnumpy() == 3).all()


def _look_in_child(queue, y):
    queue.put((gc.isenabled(), float(y[0].asscalar()), float(y[-1].asscalar())))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_process_in_the_middle_of_it():
    """It evaluates what the other thread of its parent was at, and collects garbage as its parent does."""
    x = nd.full((20_000_000,), 2.5)
    x.wait_to_read()
    y = nd.gamma(x)
    reader = threading.Thread(target=y.wait_to_read)
    reader.start()
    while gc.isenabled() and reader.is_alive():
        pass
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_look_in_child, args=(queue, y))
    child.start()
    middle = reader.is_alive()
    collects, first, last = queue.get(timeout=60)
    child.join()
    reader.join()
    assert collects
    assert gc.isenabled()
    assert first == last == float(y[0].asscalar())
    if not middle:
        pytest.skip("the machine was done before there was a child")


class _Garbage:
    """A cycle; who collects it lets some of what waits run, in the middle of whatever made an object, and drops the rest."""

    def __init__(self, read, dropped):
        self.read, self.dropped, self.me = read, dropped, self

    def __del__(self):
        for a in self.read:
            a.asnumpy()


@pytest.mark.parametrize("reads", [[], [0], [1, 3], [2], [4]])
def test_garbage_may_be_collected_at_any_moment(reads):
    thresholds = gc.get_threshold()

    def chains(collects):
        x, y = made(0), made(1)
        a = x * y
        b = nd.sin(a) + x
        c = b * b - a
        d = c * 2
        made_of = [a, b, c, d, a + b]
        kept = [d + k * b for k in range(3)] + [nd.cos(a) * c]
        if collects:
            _Garbage([made_of[k] for k in reads], made_of)
            del a, b, c, d, made_of
            gc.set_threshold(collects, 1, 1)
        x[:] = 0
        gc.set_threshold(*thresholds)
        return [k.asnumpy() for k in kept]

    want = at_once(lambda: chains(0))
    gc.collect()
    try:
        for collects in range(1, 120):
            for got, value in zip(chains(collects), want, strict=True):
                assert np.array_equal(got, value)
    finally:
        gc.set_threshold(*thresholds)


class _Drops(_Garbage):
    """As it, but drops the arrays once some are read."""

    def __del__(self):
        super().__del__()
        del self.dropped[:]


@contextmanager
def collections_at_will():
    """Let a test say when garbage is collected; what other tests left alive is set aside for good: it takes long to look at."""
    enabled, thresholds = gc.isenabled(), gc.get_threshold()
    gc.collect()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        if enabled:
            gc.enable()


def test_garbage_may_evaluate_and_drop_what_is_being_prepared():
    """A list of results was filled from a batch that a finalizer had evaluated meanwhile: two arrays got one block."""
    x = made()
    with collections_at_will():
        for later in range(1, 60):
            gc.set_threshold(100_000, 1, 1)
            gc.collect()
            held = [nd.zeros(1) for _ in range(200)]  # so that array objects are made, and none is used again
            kept = [x * k for k in range(1, 13)]
            first = x + 7
            _Drops(kept[:1], kept)
            del kept
            gc.set_threshold(gc.get_count()[0] + later, 1, 1)
            gc.enable()
            first.wait_to_read()
            gc.disable()
            new = [nd.full(SHAPE, k) for k in range(20)]
            assert not any(a._shares_memory(b) for i, a in enumerate(new) for b in new[:i])
            assert np.array_equal(first.asnumpy(), x.asnumpy() + 7)
            assert len(held) == 200


def test_a_formula_that_is_too_long_is_refused_by_its_call():
    """It became pending, and nothing could be evaluated any more."""
    with of_many_values(300) as long:
        x = made()
        kept = x * 3
        with pytest.raises(mx.MXNetError, match="its formula is too long"):
            long(x[:, ::2])
        assert np.array_equal(kept.asnumpy(), x.asnumpy() * 3)


class _Reads:
    """A cycle; who collects it reads an array."""

    def __init__(self, array, seen):
        self.array, self.seen, self.me = array, seen, self

    def __del__(self):
        self.seen.append(self.array.asnumpy())


def test_garbage_is_not_collected_while_a_program_is_compiled_for_shapes():
    """A finalizer got what was not computed yet: the first run with a column beside long rows compiles, in the middle."""
    x, column = made(), made(1, (SHAPE[0], 1))
    want = at_once(lambda: nd.broadcast_add(x * 3, column).asnumpy())
    collected = 0
    with collections_at_will():
        for later in range(1, 120):
            gc.set_threshold(1_000_000, 1, 1)
            gc.collect()
            seen, y = [], nd.broadcast_mul(x * 3, column)
            for k in range(later % 10 + 1):
                y = (nd.sin(y), nd.cos(y), y + 1, y * 2)[later >> k & 3]
            _Reads(nd.broadcast_add(x * 3, column), seen)
            gc.set_threshold(gc.get_count()[0] + later, 1, 1)
            gc.enable()
            y.wait_to_read()
            assert gc.isenabled()
            gc.disable()
            assert all(np.array_equal(a, want) for a in seen)
            collected += len(seen)
        assert collected  # some of these collections came while it was computed


def test_constants_are_not_folded_across_calls():
    """They were, in double: another last bit than by call after call."""

    @elementwise(name="test_lazy_tenth")
    def tenth(data):
        """A tenth."""
        return data * 0.1

    def gradient(x):
        x.attach_grad()
        with autograd.record():
            y = tenth(tenth(x))
        y.backward()
        return x.grad

    def third(x):
        one = nd.ones_like(x)
        return one / (one + one + one)

    try:
        x = nd.abs(made())
        for f in (
            gradient,
            lambda x: nd.power(x, nd.ones_like(x) * 0.5),
            lambda x: third(x) + third(x) * third(x),
        ):
            assert np.array_equal(f(x).asnumpy(), at_once(lambda f=f: f(x).asnumpy()))
    finally:
        unregister("test_lazy_tenth")


def test_the_profiler_sees_each_call(tmp_path):
    x = made()
    mx.profiler.set_config(profile_imperative=True, aggregate_stats=True, filename=str(tmp_path / "profile.json"))
    mx.profiler.set_state("run")
    y = x * 2 + 1
    assert lazy.waiting() == 0
    mx.profiler.set_state("stop")
    table = mx.profiler.dumps(reset=True)
    assert "_mul_scalar" in table
    assert "_plus_scalar" in table
    assert np.array_equal(y.asnumpy(), x.asnumpy() * 2 + 1)


def test_waiting_for_all():
    x = made()
    kept = [x * k for k in range(5)]
    assert lazy.waiting() == 5
    nd.waitall()
    assert lazy.waiting() == 0
    kept.append(x + 1)
    kept[-1].wait_to_read()
    assert lazy.waiting() == 0


def test_the_number_of_pending_calls_is_bounded():
    x, kept = made(), []
    for k in range(1000):
        kept.append(x + k)
        assert lazy.waiting() <= 15
    for k, a in enumerate(kept):
        assert np.array_equal(a.asnumpy(), x.asnumpy() + np.float32(k))


BOUNDED = """
import mxop as mx
from mxop._core import lazy
x, kept = mx.nd.ones((1024, 1024)), []
for k in range(32):
    kept.append(x * k)
    assert lazy.waiting() <= 4, lazy.waiting()
assert [float(a[5, 5].asscalar()) for a in kept] == list(range(32))
"""


def test_the_bytes_of_pending_results_are_bounded():
    environment = os.environ | {"MXOP_POOL_BYTES": str(32 << 20)}
    subprocess.run([sys.executable, "-c", BOUNDED], check=True, env=environment)


class Calls(RuleBasedStateMachine):
    """Arrays of mxop beside those of NumPy; all that is done here rounds once in both."""

    @initialize()
    def begin(self):
        self.before = lazy.set_least(1)
        self.pairs = [(a, a.asnumpy()) for a in (made(k) for k in range(2))]

    def teardown(self):
        lazy.set_least(self.before)
        for a, want in self.pairs:
            assert np.array_equal(a.asnumpy(), want, equal_nan=True)

    def pick(self, k):
        return self.pairs[k % len(self.pairs)]

    @rule(i=st.integers(0, 99), j=st.integers(0, 99), f=st.sampled_from(["add", "subtract", "multiply", "maximum"]))
    def of_two(self, i, j, f):
        (a, x), (b, y) = self.pick(i), self.pick(j)
        with np.errstate(all="ignore"):
            self.pairs.append((getattr(nd, f)(a, b), getattr(np, f)(x, y)))

    @rule(i=st.integers(0, 99), number=st.sampled_from([0.5, -1.0, 3.0]))
    def of_a_number(self, i, number):
        a, x = self.pick(i)
        with np.errstate(all="ignore"):
            self.pairs.append((a * number, x * np.float32(number)))

    @rule(i=st.integers(0, 99), k=st.integers(0, 2))
    def broadcast(self, i, k):
        a, x = self.pick(i)
        with np.errstate(all="ignore"):
            self.pairs.append((nd.broadcast_add(a, a[k : k + 1]), x + x[k : k + 1]))

    @rule(i=st.integers(0, 99), j=st.integers(0, 99))
    def in_place(self, i, j):
        (a, x), (b, y) = self.pick(i), self.pick(j)
        a += b
        with np.errstate(all="ignore"):
            x += y

    @rule(i=st.integers(0, 99), j=st.integers(0, 99), k=st.integers(0, 2))
    def a_row(self, i, j, k):
        (a, x), (b, y) = self.pick(i), self.pick(j)
        a[k] = b[2 - k]
        x[k] = y[2 - k]

    @rule(i=st.integers(0, 99))
    def buffer(self, i):
        a, x = self.pick(i)
        np.asarray(a)[0, 5] = x[0, 5] = 2

    @rule(i=st.integers(0, 99))
    def view(self, i):
        a, x = self.pick(i)
        self.pairs.append((a.reshape(SHAPE), x.view()))

    @rule(i=st.integers(0, 99), j=st.integers(0, 99))
    def into(self, i, j):
        (a, x), (b, y) = self.pick(i), self.pick(j)
        nd.negative(b, out=a)
        np.negative(y, out=x)

    @rule(i=st.integers(0, 99))
    def drop(self, i):
        if len(self.pairs) > 2:
            del self.pairs[i % len(self.pairs)]

    @rule(i=st.integers(0, 99))
    def read(self, i):
        a, x = self.pick(i)
        assert np.array_equal(a.asnumpy(), x, equal_nan=True)

    @invariant()
    def bounded(self):
        assert lazy.waiting() <= 28


Calls.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestCalls = Calls.TestCase
