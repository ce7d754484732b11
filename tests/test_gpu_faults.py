"""Faults that a GPU does not report, or reports late and elsewhere: another current device, indices, order, CUDA's errors."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd
from mxop.check import find_record
from mxop.check.cases import cases, types_of
from mxop.errors import DeviceError, MXNetError

RNG = np.random.default_rng(5)
KEYS = {
    "rows": lambda a: a([2, 0, 2, -1]),
    "columns": lambda a: (slice(None), a([[1, 1], [3, 0]])),
    "both": lambda a: (a([0, 1, 1, 0]), slice(None), a([3, 2, 2, 3])),
    "apart": lambda a: (a([0, 1, 0]), None, slice(0, 2), a([1, 1, 1])),
    "number": lambda a: (1, slice(None), a([4, 4, 0])),
    "broadcast": lambda a: (a([[0], [1]]), a([0, 2, 2])),
    "mask": lambda a: a([True, False, True]),
    "middle": lambda a: (Ellipsis, a([2, 2, 1]), slice(3, None)),
}


def key_on(place, name):
    """Return a key whose arrays lie on a device."""
    return KEYS[name](lambda v: nd.array(v, dtype="bool" if v[0] is True else "int64", ctx=place))


def both(values, gpu, dtype="float32"):
    return nd.array(values, dtype=dtype), nd.array(values, dtype=dtype, ctx=gpu)


def equal(on_cpu, on_gpu):
    assert on_gpu.context.is_gpu and on_gpu.dtype == on_cpu.dtype
    np.testing.assert_array_equal(on_gpu.asnumpy(), on_cpu.asnumpy())


# ---- the current device ----------------------------------------------------------------------------------------------
def test_another_device_may_be_current(gpu):
    """The simulated CuPy is asked for device 1 before mxop is, and lets nothing run on arrays of device 0 then."""
    a, b = both(RNG.normal(size=(3, 4)), gpu)
    for make in (nd.zeros, nd.ones):
        equal(make((2, 3)), make((2, 3), ctx=gpu))
    equal(nd.full((2, 2), 7), nd.full((2, 2), 7, ctx=gpu))
    for x in (a, b):
        x[1] = 5
        x[:, 1] = [1, 2, 3]
        x[0] = np.arange(4)
        x[nd.array([2], dtype="int64", ctx=x.context)] = 7
        x[nd.array([1.0, 2.0], ctx=x.context), 0] = 8
        x[:] = x[nd.array([2, 1, 0], dtype="int32", ctx=x.context)]
    equal(a, b)
    assert b[nd.array([0], dtype="int64", ctx=gpu)]._memory.device.id == gpu.device_id
    equal(a.tostype("csr").tostype("default"), b.tostype("csr").tostype("default"))
    equal(a.tostype("row_sparse") * 2, b.tostype("row_sparse") * 2)
    equal(nd.dot(a.tostype("csr"), nd.ones((4, 2))), nd.dot(b.tostype("csr"), nd.ones((4, 2), ctx=gpu)))


def test_indices_on_another_device(simulated_gpu):
    x = nd.array([1, 2, 3], ctx=mx.gpu(0))
    for place in (mx.gpu(1), mx.cpu()):
        at = nd.array([2, 0], dtype="int64", ctx=place)
        assert x[at].asnumpy().tolist() == [3, 1] and x[at].context == mx.gpu(0)
        y = x.copy()
        y[at] = nd.array([7, 8], ctx=mx.gpu(1))
        assert y.asnumpy().tolist() == [8, 2, 7]
        y.attach_grad()
        with autograd.record():
            z = y[at]
        z.backward()
        assert y.grad.asnumpy().tolist() == [1, 0, 1]


@pytest.fixture
def cupy(simulated_gpu):
    """The simulated CuPy."""
    import fake_cupy

    return fake_cupy


def test_only_devices_in_use_are_waited_for(cupy):
    x = nd.ones((2,), ctx=mx.gpu(0))
    cupy.waits.clear()
    nd.waitall()
    assert cupy.waits == {0: 1}
    x.wait_to_read()
    x.tostype("row_sparse").wait_to_read()
    assert cupy.waits[1] == 0
    nd.ones((2,), ctx=mx.gpu(1)).wait_to_read()
    cupy.waits.clear()
    nd.waitall()
    assert cupy.waits == {0: 1, 1: 1}


def test_memory_is_that_of_the_device_that_is_named(cupy):
    import cupy as module

    used = [mx.context.memory_stats(mx.gpu(k))["in_use"] for k in range(2)]
    assert used == [1024, 1025]
    pool = module.get_default_memory_pool()
    for empty in (mx.gpu(1).empty_cache, lambda: mx.context.empty_cache(mx.gpu(1))):
        empty()
        assert set(pool.emptied) == {1}


def test_peak_of_the_pool(cupy, monkeypatch):
    import cupy as module

    from mxop._gpu import device

    monkeypatch.setattr(device, "_peaks", {})
    pool, waits = module.get_default_memory_pool(), sum(cupy.waits.values())

    def figures(number):
        found = mx.context.memory_stats(mx.gpu(number))
        return found["in_use"] + found["cached"], found["peak"]

    assert [figures(k) for k in range(2)] == [(1536, 1536), (1537, 1537)]
    pool.cached = 4096
    mx.context.empty_cache(mx.gpu(0))  # nobody asked meanwhile
    assert [figures(k) for k in range(2)] == [(1024, 5120), (1025, 1537)]
    pool.cached = 2048
    assert [figures(k) for k in range(2)] == [(3072, 5120), (3073, 3073)]
    assert sum(cupy.waits.values()) == waits


# ---- keys ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", KEYS)
def test_keys_with_arrays(gpu, name):
    shape = (3, 4, 5)
    a, b = both(RNG.normal(size=shape), gpu)
    equal(a[key_on(mx.cpu(), name)], b[key_on(gpu, name)])
    grads = []
    for x in (a, b):
        key = key_on(x.context, name)
        x.attach_grad()
        with autograd.record():
            y = x[key]
        y.backward(nd.arange(y.size, ctx=x.context).reshape(y.shape) - 7)
        grads.append(x.grad)
        x = x.detach().copy()
        x[key] = nd.arange(y.size, ctx=x.context).reshape(y.shape)  # of equal indices, the last one's
        grads.append(x)
    equal(grads[0], grads[2])
    equal(grads[1], grads[3])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float64"])
def test_gradients_of_keys_are_exact(gpu, dtype):
    large = [2**53 + 1, 3, -5] if dtype == "int64" else [100, 100, 100]
    found = []
    for place in (mx.cpu(), gpu):
        at = nd.array([1, 1, 0], dtype="int64", ctx=place)
        head = nd.array(np.array(large, dtype), dtype=dtype, ctx=place)
        found.append(nd._internal._getitem_grad(head, nd.zeros((3,), dtype=dtype, ctx=place), at, key="@"))
    equal(*found)


@pytest.mark.parametrize("at", [3, -4, 10**12])
def test_indices_out_of_range(gpu, at):
    internal = nd._internal
    for place in (mx.cpu(), gpu):
        x = nd.zeros((3, 2), ctx=place)
        index = nd.array([0, at], dtype="int64", ctx=place)
        text = f"index {at} is out of bounds for axis 0 with size 3"
        with pytest.raises(IndexError, match=text):
            x[index]
        with pytest.raises(IndexError, match=text):
            x[index, 1]
        with pytest.raises(IndexError, match=text):
            x[index] = 1
        with pytest.raises(IndexError, match="axis 1 with size 2"):
            x[:, index] = 1
        with pytest.raises(IndexError, match=f"_getitem: {text}"):
            internal._getitem(x, index, key="@,0:2:1")
        with pytest.raises(IndexError, match=f"_setitem: {text}"):
            internal._setitem(x, x[:2], index, key="@")
        with pytest.raises(IndexError, match="operator take: index"):
            nd.take(x, index, mode="raise")
        x.attach_grad()
        with autograd.record(), pytest.raises(MXNetError, match=text):
            x[index]
        with autograd.record(), pytest.raises(IndexError, match=text):
            nd.zeros((3, 2), ctx=place)[index] = x[:2]
        assert not x.asnumpy().any()


# ---- sums ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int64"])
def test_gradients_of_broadcasting_add_up_as_on_the_cpu(gpu, dtype):
    large = {"float32": 1e8, "float64": 1e16, "float16": 2048}.get(dtype, 100)
    values = np.array([[large, 1], [1, large], [-large, -large], [1, 1]]).astype(dtype)
    internal, found = nd._internal, []
    for place in (mx.cpu(), gpu):
        x, ones = nd.array(values, dtype=dtype, ctx=place), nd.ones((1, 2), dtype=dtype, ctx=place)
        other = nd.ones((2,), dtype="float32", ctx=place)
        found.append([internal._unbroadcast(x, ones), internal._unbroadcast(x, ones[0]), internal._unbroadcast(x, x),
                      internal._reduce_like(x, ones[0], axis=0), internal._reduce_like(x, other, axis=0),
                      internal._unbroadcast(x[:0], ones)])  # fmt: skip
    for on_cpu, on_gpu in zip(*found, strict=True):
        equal(on_cpu, on_gpu)


def test_sums_of_more_elements_than_32_bits_count():
    """An array that broadcasting repeats reaches less far than it has elements."""
    from mxop._gpu.reductions import lay_rows

    assert lay_rows((2**17, 2**15), (0, 1), (0, 1))[0].wide and lay_rows((2**15, 2**15, 4), (0, 1, 0), (0, 2))[0].wide
    assert not lay_rows((2**15, 2**15), (0, 1), (0, 1))[0].wide


# ---- values ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "bfloat16", "int8", "bool"])
def test_zeros_keep_their_sign(gpu, dtype):
    """CuPy sets the bytes of zeros to 0."""
    pytest.importorskip("ml_dtypes")

    def made(ctx):
        assigned = [nd.ones((3, 4), dtype=dtype, ctx=ctx) for _ in range(4)]
        for x, key in zip(assigned, (slice(None), 1, (1, 2), (slice(None), slice(0, 4, 2))), strict=True):
            x[key] = -0.0
        ones, index = nd.ones((1, 1, 2, 2), dtype=dtype, ctx=ctx), nd.array([1], ctx=ctx)
        return [
            *assigned,
            nd.full((3,), -0.0, dtype=dtype, ctx=ctx),
            nd.one_hot(index, 3, off_value=-0.0, dtype=dtype),
            nd.one_hot(index, 3, on_value=-0.0, dtype=dtype),
            nd.pad(ones, mode="constant", constant_value=-0.0, pad_width=(0, 0, 0, 0, 1, 1, 1, 1)),
            nd._internal._slice_assign_scalar(ones, scalar=-0.0, begin=(0,), end=(1,)),
        ]

    for on_cpu, on_gpu in zip(made(mx.cpu()), made(gpu), strict=True):
        a, b = (x.astype("float64").asnumpy() for x in (on_cpu, on_gpu))
        np.testing.assert_array_equal(np.copysign(1, a), np.copysign(1, b))
        np.testing.assert_array_equal(a, b)


# ---- errors of CUDA --------------------------------------------------------------------------------------------------
CALLS = {
    "elementwise": (lambda x: nd.exp(x) * 2, "operator (exp|_mul_scalar)"),
    "reduction": (lambda x: nd.sum(x, axis=0), "operator sum"),
    "kernel": (lambda x: nd.dot(x, x), "operator dot"),
    "composite": (lambda x: nd.softmax(x), "operator softmax"),
    "out": (lambda x: nd.exp(x, out=x), "operator exp"),
}


@pytest.mark.parametrize("name", CALLS)
def test_errors_of_cuda_name_the_operator(cupy, name):
    call, named = CALLS[name]
    x = nd.ones((3, 3), ctx=mx.gpu(0))
    for again in range(2):  # the second time, the kernels are known
        if name != "out":
            cupy.errors["allocation"] = cupy.OutOfMemoryError("Out of memory allocating 36 bytes")
            with pytest.raises(MemoryError, match=f"{named}: .*Out of memory allocating 36") as found:
                call(x)
            assert isinstance(found.value, MXNetError)
        if name != "kernel":
            cupy.errors["launch"] = cupy.CUDARuntimeError()
            if not again:
                cupy.errors["compilation"] = cupy.CompileException("expected a ;")
            with pytest.raises(DeviceError, match=named):
                call(x)
            cupy.errors.clear()
        call(x)


def test_errors_of_cuda_outside_of_operators(cupy):
    x = nd.ones((3, 3), ctx=mx.gpu(0))
    for make in (lambda: nd.zeros((2,), ctx=mx.gpu(0)), lambda: nd.array([1], ctx=mx.gpu(0)), lambda: x[x > 0]):
        cupy.errors["allocation"] = cupy.OutOfMemoryError("Out of memory")
        with pytest.raises(MemoryError, match="Out of memory") as found:
            make()
            cupy.errors.clear()
        assert isinstance(found.value, MXNetError)
    for wait in (nd.waitall, x.wait_to_read, x.asnumpy, x[0, 0].asscalar):
        cupy.errors["synchronization"] = cupy.CUDARuntimeError()
        with pytest.raises(MXNetError, match=r"gpu.0.: CUDARuntimeError: .*illegal.*MXOP_GPU_WAIT"):
            wait()
        cupy.errors.clear()
    executor = mx.sym.exp(mx.sym.Variable("x"), name="named").bind(mx.gpu(0), {"x": x})
    cupy.errors["launch"] = cupy.CUDARuntimeError()
    with pytest.raises(DeviceError, match="named"):
        executor.forward()


def layered(x):
    y = nd.broadcast_sub(nd.exp(x), nd.sum(x, axis=1, keepdims=True))
    return nd.broadcast_mul(y, nd.mean(y, axis=0, keepdims=True))


def gradient(function, x):
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()


def bound(x):
    net = mx.sym.FullyConnected(mx.sym.softmax(mx.sym.Variable("x") + 1), num_hidden=3, name="layer")
    executor = net.simple_bind(mx.gpu(0), x=(4, 6))
    executor.forward(is_train=True, x=x)
    executor.backward(nd.ones((4, 3), ctx=mx.gpu(0)))


def assigned(x):
    x[nd.array([0, 1], dtype="int64", ctx=mx.gpu(0))] = x[2:]
    x[:] = x.asnumpy()


PROGRAMS = {
    "formula": lambda x: nd.exp(x.T, out=x.T), "reduction": lambda x: x.sum(axis=0),
    "parts": lambda x: nd.tile(x, (99, 99)).sum(),
    "kernel": lambda x: nd.dot(x, x.T), "rows": nd.softmax, "long": lambda x: nd.softmax(nd.tile(x, (1, 9000))),
    "copies": lambda x: [x.astype("float16"), x.T.reshape((-1,)), x[:, ::2].asnumpy(), x.as_in_context(mx.gpu(1))],
    "made": lambda x: [make(ctx=x.context) for make in (partial(nd.zeros, 3), partial(nd.random.normal, shape=3))],
    "keys": assigned, "order": lambda x: nd.topk(x, k=2, ret_typ="both"), "compiled": mx.graph.compiled(layered),
    "host": lambda x: nd.contrib.box_nms(x), "gradient": lambda x: gradient(lambda x: nd.dot(nd.softmax(x * 2), x.T), x),
    "gradient of compiled": lambda x: gradient(PROGRAMS["compiled"], x), "bound": bound, "sparse": lambda x: x.tostype("csr"),
}  # fmt: skip


NAMED = ("reduction", "rows", "order", "compiled", "host")  # that copy nothing themselves


@pytest.mark.parametrize("current", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_allocation_may_fail(cupy, monkeypatch, name, current):
    run, left, values = PROGRAMS[name], [-1], RNG.uniform(size=(4, 6))

    def allocate(where, fail=cupy.fail):
        left[0] -= where == "allocation"
        if where == "allocation" and left[0] == -1:
            raise cupy.OutOfMemoryError("Out of memory allocating 1,024 bytes")
        fail(where)

    monkeypatch.setattr(cupy, "fail", allocate)
    with cupy.Device(current):
        x = nd.array(values, ctx=mx.gpu(0))
        allocations, failed = 0, 0
        while left[0] < 0:
            left[0] = allocations
            try:
                run(x)
            except MXNetError as problem:
                assert isinstance(problem, MemoryError)
                who = r"operator \S+: (gpu\(0\): )?" if name in NAMED else r"(operator \S+: )?(gpu\(\d\): )?(?<=: )"
                assert re.match(f"{who}OutOfMemoryError: Out of memory allocating 1,024 bytes", str(problem)), problem
                failed += 1
            allocations += 1  # without memory to prepare a composite, it runs call by call
    assert failed


def test_allocations_of_cuda_itself(cupy):
    """Of a module, of a library: they have no MemoryError of CuPy's."""
    x = nd.ones((3, 3), ctx=mx.gpu(0))
    for text in ("cudaErrorMemoryAllocation: out of memory", "CUBLAS_STATUS_ALLOC_FAILED"):
        problem = cupy.CUDARuntimeError(2)
        problem.args = (text,)
        cupy.errors["launch"] = problem
        with pytest.raises(mx.errors.OutOfMemoryError, match=f"operator exp: gpu.0.: CUDARuntimeError: {text}$"):
            nd.exp(x)


WAITING = """
import sys
import fake_cupy
sys.modules["cupy"] = fake_cupy.module()
import mxop as mx
x = mx.nd.ones((3, 3), ctx=mx.gpu(0))
calls = {"exp": lambda: mx.nd.exp(x), "sum": lambda: x.sum(), "dot": lambda: mx.nd.dot(x, x),
         "softmax": lambda: mx.nd.softmax(x),
         "named": mx.sym.exp(mx.sym.Variable("x"), name="named").bind(mx.gpu(0), {"x": x}).forward}
for name, call in calls.items():
    fake_cupy.errors["synchronization"] = fake_cupy.CUDARuntimeError()
    try:
        call()
        print("nothing")
    except mx.errors.DeviceError as problem:
        print(name in str(problem))
    fake_cupy.errors.clear()
    call()
print(fake_cupy.waits[0] > 0)
"""


@pytest.mark.parametrize("asked", ["1", "0"])
def test_calls_wait_where_the_environment_asks(simulated_gpu, asked):
    tests = pathlib.Path(__file__).parent
    path = os.pathsep.join([str(tests), str(tests.parent)])
    ran = subprocess.run([sys.executable, "-c", WAITING], env=os.environ | {"MXOP_GPU_WAIT": asked, "PYTHONPATH": path},
                         capture_output=True, text=True, check=False, cwd=tests)  # fmt: skip
    assert ran.stdout.split() == (["True"] * 6 if asked == "1" else ["nothing"] * 5 + ["False"]), ran.stderr


# ---- other libraries -------------------------------------------------------------------------------------------------
def test_cuda_array_interface(gpu):
    x = nd.array(np.arange(12).reshape(3, 4), ctx=gpu)
    found = x[:, 1:].__cuda_array_interface__
    assert found["shape"] == (3, 3) and found["strides"] == (16, 4) and found["typestr"] == "<f4"
    assert found["data"] == (x.__cuda_array_interface__["data"][0] + 4, False)
    assert found["version"] == 3 and found["stream"]
    assert not hasattr(nd.ones((2,)), "__cuda_array_interface__")
    assert not hasattr(nd.ones((2,)).tostype("row_sparse"), "__cuda_array_interface__")


def test_dlpack_of_a_gpu(cupy):
    for device in (mx.gpu(0), mx.gpu(1)):
        x = nd.array([[1, 2], [3, 4]], ctx=device)
        assert x.__dlpack_device__() == (2, device.device_id)
        for given in (x, x[:, ::-1], x.__dlpack__(stream=7), nd.to_dlpack_for_write(x), x._memory):
            y = nd.from_dlpack(given)
            assert y.context == device and y.shape == (2, 2)
        assert 7 in cupy.exported
        nd.from_dlpack(x.__dlpack__())[0] = 9
        assert x.asnumpy().tolist() == [[9, 9], [3, 4]]
        memory = x._memory
        memory.managed = True
        y = nd.from_dlpack(memory)
        assert y.context == device and y.__dlpack_device__()[1] == device.device_id
        assert x.__dlpack_device__() == (13, device.device_id)
    pytest.importorskip("ml_dtypes")
    halves = nd.array([1.5, 2], dtype="bfloat16", ctx=mx.gpu(0))
    back = nd.from_dlpack(halves.__dlpack__())
    assert back.dtype == halves.dtype and back.asnumpy().astype("f4").tolist() == [1.5, 2]

    odd = np.zeros(4, np.dtype([("a", "f4"), ("b", "u1")]))["a"]
    strange = type(x._memory)(4, np.float32)
    strange._host = odd
    strange.device = x._memory.device
    with pytest.raises(ValueError, match="not multiples of the 4 bytes"):
        nd.from_dlpack(strange)


def test_pinned_memory_is_read_before_a_call_returns(cupy):
    host = np.arange(6, dtype="float32")
    cupy.pinned.add(host.ctypes.data)
    made = [nd.array(host, ctx=mx.gpu(0)), nd.zeros((6,), ctx=mx.gpu(0))]
    made[1][:] = host
    host[:] = -1
    for x in made:
        assert x.asnumpy().tolist() == list(range(6))


def test_a_forked_process_says_that_it_cannot_use_the_gpu(cupy):
    x = nd.ones((2, 2), ctx=mx.gpu(0))
    nd.exp(x)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        said = []
        for call in (lambda: nd.exp(x), lambda: nd.dot(x, x), lambda: nd.zeros((2,), ctx=mx.gpu(0)), x.asnumpy):
            try:
                call()
                said.append("nothing")
            except DeviceError as problem:
                said.append(str("forked" in str(problem) and "spawn" in str(problem)))
        os.write(write, " ".join(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.read().split() == ["True"] * 4
    nd.exp(x)


# ---- waits -----------------------------------------------------------------------------------------------------------
def test_calls_that_wait_for_the_device(cupy):
    x, at = nd.ones((3, 4), ctx=mx.gpu(0)), nd.array([0, 2], dtype="int64", ctx=mx.gpu(0))
    index = nd.array([[0, 1, 2, 0]], ctx=mx.gpu(0))
    calls = {
        lambda: nd.exp(x) + 1: 0, lambda: x.sum(axis=0): 0, lambda: nd.dot(x, x.T): 0, lambda: nd.one_hot(at, 3): 0,
        lambda: nd.take(x, at): 0, lambda: nd.take(x, at, mode="raise"): 1, lambda: x[at]: 1, lambda: x[1:, 0]: 0,
        lambda: nd.cumsum(x): 0, lambda: nd.gather_nd(x, nd.stack(at, at)): 1,
        lambda: nd.pick(x, index, axis=0): 0, lambda: nd._internal._take_grad(nd.ones((2, 4), ctx=mx.gpu(0)), at, x): 0,
        lambda: nd._internal._pick_grad(index[0], index[0], x, axis=0): 0,
    }  # fmt: skip
    for call, most in calls.items():
        call()
        cupy.waits.clear()
        call()
        assert cupy.waits[0] <= most


def test_products_are_written_where_they_belong(cupy):
    a, b = both(RNG.normal(size=(4, 4)), mx.gpu(0))
    for name, call in {"dot": lambda x, o: nd.dot(x, x, transpose_b=True, out=o),
                       "batch": lambda x, o: nd.batch_dot(x.reshape((1, 4, 4)), x.reshape((1, 4, 4)), out=o.reshape((1, 4, 4))),
                       "bias": lambda x, o: nd.FullyConnected(x, x, x[0], num_hidden=4, out=o),
                       "layer": lambda x, o: nd.FullyConnected(x, x, num_hidden=4, no_bias=True, out=o),
                       "part": lambda x, o: nd.dot(x, x[:, :2], out=o[:, 1:3]),
                       "own": lambda x, o: nd.dot(x, x, out=x)}.items():  # fmt: skip
        wanted, out = nd.zeros((4, 4)), nd.zeros((4, 4), ctx=mx.gpu(0))
        call(a, wanted)
        call(b, out)
        np.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(b.asnumpy(), a.asnumpy(), rtol=1e-5)


KERNELS = [op.name for op in mx.op.operators()
           if isinstance(op, mx.op.Kernel) and op.run_gpu and not op.make_view and find_record(op)]  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_say_what_they_wait_for(cupy, name):
    op = mx.op.get(name)
    record = find_record(op)
    for case in cases(op, record, np.random.default_rng(0), mx.gpu(0))[:4]:
        inputs = case.arrays(case.sample(types_of(record, None)[0]))
        case.call(inputs)
        cupy.waits.clear()
        case.call(inputs)
        assert bool(cupy.waits[0]) == bool(op.waits_for(case.attrs)), (case, op.waits_for(case.attrs))


def test_executors_tell_which_calls_wait(cupy):
    x, at = mx.sym.Variable("x"), mx.sym.Variable("at")
    net = mx.sym.take(mx.sym.exp(x), at, mode="raise", name="part") + mx.sym.take(x, at)
    told = net.simple_bind(mx.gpu(0), "null", x=(3, 2), at=(2,), type_dict={"at": "int64"}).explain()
    (row,) = [row for row in told if row.waits]
    assert (row.operator, row.waits) == ("take", "whether the indices are in range")
    assert f"step {row.step} (take: whether the indices are in range)" in str(told)
    on_cpu = net.simple_bind(mx.cpu(), "null", x=(3, 2), at=(2,), type_dict={"at": "int64"}).explain()
    assert not any(row.waits for row in on_cpu) and "wait" not in str(on_cpu)
