"""Threads: one setting, one recording scope each, forks, instruction sets, environment variables."""

import gc
import json
import multiprocessing
import os
import threading

import numpy as np
import pytest
from processes import fails_python, run_python

import mxop as mx
from mxop import autograd, nd

LARGE = 1 << 20

needs_openmp = pytest.mark.skipif(
    not mx.runtime.Features().is_enabled("OPENMP"), reason="built without OpenMP: everything runs in one thread"
)


# ---- the setting -----------------------------------------------------------------------------------------------------
@needs_openmp
def test_set_num_threads():
    before = mx.context.get_num_threads()
    assert mx.context.set_num_threads(3) == before
    assert mx.context.get_num_threads() == 3
    assert mx.context.set_num_threads(1) == 3


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, None])
def test_wrong_number_of_threads(n):
    before = mx.context.get_num_threads()
    with pytest.raises(mx.MXNetError):
        mx.context.set_num_threads(n)
    assert mx.context.get_num_threads() == before


def test_import_leaves_the_environment_as_it_was():
    code = "import os; before = dict(os.environ); import mxop; print(dict(os.environ) == before)"
    assert run_python(code) == "True"
    assert run_python(code, GOMP_SPINCOUNT="7") == "True"


@needs_openmp
def test_environment_sets_threads():
    code = "import mxop as mx; print(mx.context.get_num_threads())"
    assert run_python(code, MXOP_NUM_THREADS="3") == "3"
    assert run_python(code, MXOP_NUM_THREADS="1") == "1"


@pytest.mark.parametrize("value", ["none", "0", "-2"])
def test_wrong_environment_is_named(value):
    assert f"MXOP_NUM_THREADS='{value}'" in fails_python("import mxop", MXOP_NUM_THREADS=value)


APART = """
import os
import numpy as np, mxop as mx
from mxop._kernels import team

def masks():  # of the threads that help, and whether any may run where this one does
    at = [os.sched_getaffinity(int(t)) for t in os.listdir("/proc/self/task") if int(t) != os.getpid()]
    return sorted(map(sorted, at))

started = masks()  # threads of NumPy, which stay as they are
before = set(map(int, os.listdir("/proc/self/task")))
x = mx.nd.ones(1 << 20)
"""


@needs_openmp
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not say where threads may run")
def test_helpers_stay_off_the_core_of_the_thread_they_help():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("there is one core")
    code = f"""{APART}
def work():
    assert (x * 2 + 1).sum().asscalar() == 3 << 20
    return team.times_told()

work()  # helpers may run wherever the thread may run that starts them
for core in {cores[:2]} * 2:
    os.sched_setaffinity(0, [core])
    told = work()
    assert work() == told > 0
    helpers = masks()
    for mask in started:
        helpers.remove(mask)
    helper, = set(map(int, os.listdir("/proc/self/task"))) - before
    assert helpers == [sorted({{*{cores}}} - {{core}})], helpers
    assert os.sched_getaffinity(0) == {{core}}
for core in {cores[:2]}:  # what somebody else says of a helper holds
    os.sched_setaffinity(helper, [core])
    os.sched_setaffinity(0, [{cores[0]} + {cores[1]} - core])
    work()
    assert os.sched_getaffinity(helper) == {{core}}
print("done")
"""
    assert run_python(code, MXOP_NUM_THREADS="2") == "done"


@needs_openmp
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not say where threads may run")
@pytest.mark.parametrize("chosen", [{}, {"OMP_PROC_BIND": "true"}])
def test_threads_stay_where_the_user_puts_them(chosen):
    code = f"""
import os
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
{APART}
for _ in range(3):
    assert (x * 2 + 1).sum().asscalar() == 3 << 20
assert all(m == masks()[0] for m in masks()) and masks()[0] == sorted(os.sched_getaffinity(0)), masks()
print("done")
"""
    assert run_python(code, MXOP_NUM_THREADS="2", **chosen) == "done"


@needs_openmp
def test_what_was_prepared_for_one_thread_runs_on_more():
    code = """
import os
import mxop as mx

def helped():  # nanoseconds that other threads have run
    return sum(int(open(f"/proc/self/task/{t}/schedstat").read().split()[0])
               for t in os.listdir("/proc/self/task") if int(t) != os.getpid())

mx.context.set_num_threads(1)
bound = mx.sym.softmax(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(2048, 1024), grad_req="null")
bound.forward()
mx.context.set_num_threads(2)
bound.forward()
before = helped()
for _ in range(40):
    bound.forward()
print(helped() - before > 2_000_000)
"""
    if not os.path.exists("/proc/self/schedstat") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core, or the system does not say how long threads run")
    assert run_python(code) == "True"


@needs_openmp
def test_import_starts_no_thread():
    code = """
import os
import mxop as mx
tasks = lambda: len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
before = tasks()
mx.nd.ones((4, 4)) + 1
print(before, tasks())
"""
    # OpenBLAS may have threads of its own; mxop adds none at import and none for small calls
    baseline = """
import os, numpy, scipy
print(len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1)
"""
    before, after = run_python(code).split()
    assert before == after == run_python(baseline)


# ---- results ---------------------------------------------------------------------------------------------------------
@needs_openmp
@pytest.mark.parametrize("size", [1, 2047, 2048, 2049, 32768, 100_003, LARGE])
@pytest.mark.parametrize("call", [
    lambda a, b: nd.exp(a) * b,
    lambda a, b: nd.broadcast_add(a.reshape((-1, 1)), b[:3].reshape((1, -1))),
    lambda a, b: nd.sum(a * b),
    lambda a, b: nd.mean(a.reshape((1, -1)), axis=1),
    lambda a, b: nd.max(a),
    lambda a, b: nd.norm(a),
    lambda a, b: nd.softmax(a.reshape((1, -1))),
    lambda a, b: nd.transpose(a.reshape((-1, 1))),
    lambda a, b: nd.cast(a, dtype="float16"),
], ids=["exp", "broadcast", "sum", "mean", "max", "norm", "softmax", "transpose", "cast"])  # fmt: skip
def test_same_bits_for_any_number_of_threads(call, size, rng):
    a, b = (nd.array(rng.normal(size=size).astype(np.float32)) for _ in range(2))
    found = []
    for n in (1, 2, 3, 4, 7, 2):
        mx.context.set_num_threads(n)
        found.append(call(a, b).asnumpy())
    for other in found[1:]:
        assert found[0].tobytes() == other.tobytes()


@needs_openmp
def test_twenty_runs_are_the_same(rng, tune):
    """Gradients that add up many contributions, too (apache/mxnet#11899)."""
    mx.context.set_num_threads(4)
    tune(parallel_bytes=1024)
    x, w = nd.array(rng.normal(size=(300, 40))), nd.array(rng.normal(size=(40,)))
    seen = set()
    for _ in range(20):
        x.attach_grad()
        w.attach_grad()
        with autograd.record():
            y = nd.sum(nd.tanh(nd.broadcast_mul(x, w)))
        y.backward()
        seen.add((y.asnumpy().tobytes(), x.grad.asnumpy().tobytes(), w.grad.asnumpy().tobytes()))
    assert len(seen) == 1


@needs_openmp
@pytest.mark.parametrize("threads", [3, 64, 65, 130])
def test_each_task_is_done_once(threads, rng, tune):
    """Tasks are dealt out to threads, to more of them than there are tasks, and to more than get tasks of their own."""
    tune(parallel_bytes=256)
    a, b = (nd.array(rng.normal(size=(401, 257))) for _ in range(2))
    sparse = (nd.abs(a) > 2).tostype("csr")
    calls = (
        lambda: nd.broadcast_add(a, b), lambda: nd.concat(a, b, dim=1), lambda: nd.transpose(a), lambda: nd.sum(a),
        lambda: nd.sum(a, axis=0), lambda: nd.max(a, axis=1), lambda: nd.softmax(a), lambda: nd.argmax(a, axis=1),
        lambda: nd.cumsum(a, axis=1), lambda: nd.dot(a, b, transpose_b=True), lambda: nd.sparse.dot(sparse, b.T),
    )  # fmt: skip
    mx.context.set_num_threads(1)
    expected = [call().asnumpy() for call in calls]
    mx.context.set_num_threads(threads)
    for _ in range(3):  # from the first task, and from the last
        for call, one in zip(calls, expected, strict=True):
            assert call().asnumpy().tobytes() == one.tobytes()


# ---- threads of Python -----------------------------------------------------------------------------------------------
def in_threads(n, work):
    """Run ``work(k)`` in n threads at once; raise what any of them raised."""
    errors, start = [], threading.Barrier(n)

    def run(k):
        try:
            start.wait(timeout=30)
            work(k)
        except BaseException as problem:
            errors.append(problem)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(timeout=120)
    assert not any(t.is_alive() for t in threads), "a thread hangs"
    if errors:
        raise errors[0]


def test_recording_belongs_to_a_thread():
    with autograd.record():
        in_threads(1, lambda k: [None for _ in [1] if autograd.is_recording() and pytest.fail("recording leaked")])
        assert autograd.is_recording()


def test_sixteen_threads_with_scopes_of_their_own(anew):
    def work(k):
        rng = np.random.default_rng(k)
        for i in range(60):
            size = int(rng.integers(1, 5000))
            values = rng.uniform(0.5, 2, size)
            x = nd.array(values, dtype="float64")
            if (k + i) % 3 == 0:
                y = nd.log(x) * x  # not recorded
                assert not autograd.is_recording()
                np.testing.assert_allclose(y.asnumpy(), np.log(values) * values, rtol=1e-12)
                continue
            x.attach_grad()
            with autograd.record(train_mode=bool(k % 2)):
                assert autograd.is_training() == bool(k % 2)
                y = nd.sin(x) * x
                (g,) = autograd.grad(nd.sum(y), [x], create_graph=True)
                z = nd.sum(g * g)
            z.backward()
            first = np.cos(values) * values + np.sin(values)
            second = 2 * np.cos(values) - values * np.sin(values)
            np.testing.assert_allclose(x.grad.asnumpy(), 2 * first * second, rtol=1e-9, atol=1e-9)

    in_threads(1, work)  # prepares what is kept
    gc.collect()  # what other tests left in cycles is not freed in between
    before = mx.context.memory_stats()["in_use"]
    in_threads(16, work)
    assert mx.context.memory_stats()["in_use"] == before


def test_threads_share_one_variable():
    x = nd.array([1.0, 2.0, 3.0], dtype="float64")
    x.attach_grad()
    found = [None] * 8

    def work(k):
        for _ in range(50):
            with autograd.record():
                y = x * x * float(k)
            found[k] = autograd.grad(y, [x])[0].asnumpy()

    in_threads(8, work)
    for k, g in enumerate(found):
        np.testing.assert_array_equal(g, [2.0 * k, 4.0 * k, 6.0 * k])


def test_pool_under_stress():
    """Arrays made in one thread and freed in another."""
    shelf, lock = [], threading.Lock()

    def work(k):
        rng = np.random.default_rng(k)
        for _ in range(300):
            n = int(rng.integers(1, 4000))
            a = nd.full((n,), float(n))
            with lock:
                shelf.append(a)
                other = shelf.pop(int(rng.integers(len(shelf)))) if len(shelf) > 20 else None
            if other is not None:
                assert (other.asnumpy() == other.shape[0]).all()

    before = mx.context.memory_stats()["in_use"]
    in_threads(8, work)
    shelf.clear()
    assert mx.context.memory_stats()["in_use"] == before


# ---- fork ------------------------------------------------------------------------------------------------------------
def _child(queue):
    import mxop as mx

    x = mx.nd.ones((1 << 20,)) * 2
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.sum(x * x)
    y.backward()
    w = mx.nd.dot(mx.nd.ones((64, 64)), mx.nd.ones((64, 64)))
    queue.put((y.asscalar().item(), x.grad.asnumpy().max().item(), w.asnumpy()[0, 0].item()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_after_a_parallel_call():
    """OpenMP's threads do not exist in a child: waiting for them would hang (apache/mxnet#12710)."""
    mx.context.set_num_threads(4)
    x = nd.ones((LARGE,))
    assert nd.sum(nd.exp(x) * x).asscalar() > 0
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        queue = context.Queue()
        child = context.Process(target=_child, args=(queue,))
        child.start()
        child.join(timeout=20)
        hangs = child.is_alive()
        if hangs:
            child.kill()
        assert not hangs and child.exitcode == 0
        assert queue.get(timeout=5) == (4.0 * LARGE, 4.0, 64.0)
    assert nd.sum(nd.exp(x) * x).asscalar() > 0  # and the parent still runs in parallel


# ---- instruction sets ------------------------------------------------------------------------------------------------
VALUES = """
import json
import numpy as np
import mxop as mx
from mxop.check import check_op

rng = np.random.default_rng(0)
found = {}
for name in ("exp", "log", "sin", "cos", "tanh", "erf", "sigmoid", "sqrt", "cbrt", "gammaln", "arctanh", "expm1"):
    x = rng.uniform(0.1, 0.9, 1003).astype(np.float32)
    found[name] = getattr(mx.nd, name)(mx.nd.array(x)).asnumpy().astype(float).tolist()
a, b = (mx.nd.array(rng.normal(size=(37, 53)).astype(np.float32)) for _ in range(2))
found["sum"] = [mx.nd.sum(a).asscalar().item()]
found["mean"] = mx.nd.mean(a, axis=1).asnumpy().astype(float).tolist()
for name in ("_contrib_quadratic", "broadcast_add", "broadcast_power", "tanh", "abs", "clip", "Cast", "broadcast_mod",
             "sum", "max", "rint", "sign", "logical_not", "erf"):
    check_op(name, orders=2)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def best():
    return json.loads(run_python(VALUES))


def test_every_instruction_set(level, best):
    """All that this machine has give the same values, within the last place (fused multiply-add rounds once)."""
    for name, values in json.loads(run_python(VALUES, MXOP_CPU=level)).items():
        np.testing.assert_allclose(values, best[name], rtol=5e-7, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("block_bytes", [64, 512, 8192])
@pytest.mark.parametrize("period", [2, 3, 8, 9, 50, 1000, 1024, 1500])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_rows_that_come_again_from_any_place_on(threads, period, block_bytes, tune):
    tune(parallel_bytes=4096, block_bytes=block_bytes)
    mx.context.set_num_threads(threads)
    row = np.arange(period, dtype="float32") * 7
    for rows in (1, 2, 7, 100 + 20_000 // period):
        x = np.arange(rows * period, dtype="float32").reshape(rows, period)
        np.testing.assert_array_equal(nd.broadcast_add(nd.array(x), nd.array(row)).asnumpy(), x + row)


@pytest.mark.parametrize("block_bytes", [64, 512, 8192])
@pytest.mark.parametrize("threads", [1, 2])
def test_columns_beyond_a_block(threads, block_bytes, tune):
    """Each thread has room for a block of values, and for the totals of a task's columns."""
    tune(parallel_bytes=4096, block_bytes=block_bytes)
    mx.context.set_num_threads(threads)
    base = np.random.default_rng(0).normal(size=(40, 2 * 1030))
    x = nd.array(base, dtype="float64")[:, ::2]
    for _ in range(20):
        np.testing.assert_allclose(nd.sum(x, axis=0).asnumpy(), base[:, ::2].sum(0), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(nd.max(x, axis=0).asnumpy(), base[:, ::2].max(0))
