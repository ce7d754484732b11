"""Arrays on a GPU, against the CPU: on a CUDA device (``python -m pytest -m gpu``), and on every machine in a simulation.

The simulation (:mod:`fake_cupy`) puts a stand-in for CuPy in its place, which keeps arrays in host memory and compiles the
kernels for the host.  It runs everything that mxop does around CuPy; of CUDA itself it shows nothing.
"""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop import autograd, dtypes, nd
from mxop._core import core
from mxop.errors import DeviceError, MXNetError, OpTypeError, OpValueError


def simulated(request):
    return "simulated" in request.node.name


RNG = np.random.default_rng(11)


def both(shape, gpu, dtype="float32", low=0.3, high=2.0):
    """Return equal arrays on both devices."""
    x = RNG.uniform(low, high, shape)
    x = x.astype(dtype) if np.dtype(dtype).kind == "f" else np.round(x * 5).astype(dtype)
    return nd.array(x, dtype=dtype), nd.array(x, dtype=dtype, ctx=gpu)


def same(on_gpu, on_cpu, rtol=None, atol=None):
    """Assert that arrays are equal within what their type allows, and that the first is on a GPU."""
    assert on_gpu.context.is_gpu and not on_cpu.context.is_gpu
    assert on_gpu.shape == on_cpu.shape and on_gpu.dtype == on_cpu.dtype
    assert on_gpu._contiguous == on_gpu._memory.flags.c_contiguous
    unit = {np.float32: 2e-5, np.float64: 1e-12, np.float16: 3e-3}.get(on_cpu.dtype, 0)
    rtol, atol = unit if rtol is None else rtol, unit if atol is None else atol
    np.testing.assert_allclose(on_gpu.asnumpy(), on_cpu.asnumpy(), rtol=rtol, atol=atol)


# ---- arrays ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool"])
def test_transfers_keep_every_type(gpu, dtype):
    for shape in ((3, 4), (), (0, 2), (5,)):
        x = (RNG.uniform(0, 3, shape) * 2).astype(dtype)
        a = nd.array(x, dtype=dtype, ctx=gpu)
        assert a.context == gpu and a.dtype == np.dtype(dtype).type and a.shape == shape
        np.testing.assert_array_equal(a.asnumpy(), x)
        back = a.as_in_context(mx.cpu())
        assert back.context == mx.cpu() and a.as_in_context(gpu) is a
        np.testing.assert_array_equal(back.asnumpy(), x)
        np.testing.assert_array_equal(back.as_in_context(gpu).asnumpy(), x)


def test_creation(gpu):
    assert mx.num_gpus() >= 1
    same(nd.zeros((2, 3), ctx=gpu), nd.zeros((2, 3)))
    same(nd.ones((2, 3), ctx=gpu, dtype="int32"), nd.ones((2, 3), dtype="int32"))
    same(nd.full((2,), 7.5, ctx=gpu), nd.full((2,), 7.5))
    assert nd.empty((2, 2), ctx=gpu).context == gpu
    with gpu:
        same(nd.arange(5), nd.arange(5, ctx=mx.cpu()))
    same(nd.zeros_like(nd.ones((2,), ctx=gpu)), nd.zeros((2,)))
    assert "@gpu(0)" in repr(nd.ones((2,), ctx=gpu))


def test_masks(gpu):
    a, b = both((4, 6), gpu, low=-1)
    for x in (a, b):
        x[(x < 0) & ~(x < -0.5)] = 0
        x[x[:, 0] > 1, 2] = nd.array([7], ctx=x.context)
        x[(x > 1).T.reshape((6, 4)).T] = np.float32(9)
        x.attach_grad()
    same(b, a)
    same(b[b > 0], a[a > 0])
    same(b[(b > 1).any(axis=1)], a[(a > 1).any(axis=1)])
    for found in (
        (b > 0).copy(),
        (b > 0).as_in_context(mx.cpu()).as_in_context(gpu),
        nd.concat(b > 0, b < 0, dim=0)[:4],
    ):
        same(b[found], a[a > 0])
    for x in (a, b):
        with autograd.record():
            y = x * 2
            y[y > 1] = 0
            z = (y[y < 0] * 3).sum() + nd.where(y < 0, y, 5).sum()
        z.backward()
    same(b.grad, a.grad)


def test_views_share_memory(gpu):
    a, b = both((4, 6), gpu)
    for key in (1, slice(1, 3), (slice(None), slice(None, None, -2)), (Ellipsis, None, 2), (slice(3, 0, -1), 4)):
        same(b[key], a[key])
    for x in (a, b):
        x[1:3, ::2] = 5
        x[:, 1] = nd.array([1, 2, 3, 4], ctx=x.context)
        x[0] += 1
    same(b, a)
    same(b.T.reshape((-1,)), a.T.reshape((-1,)))
    same(b[:, 1:][:, ::2], a[:, 1:][:, ::2])
    same(b.reshape((2, 12))[1, 3:5], a.reshape((2, 12))[1, 3:5])


@given(st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_operands_lie_anyhow(gpu, data):
    """Dimensions left out, given to all, in another order, backwards, with gaps, and begun in the middle of a word."""
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4), label="shape")
    operands = []
    for k in range(2):
        sizes = [1 if data.draw(st.booleans()) and data.draw(st.booleans()) else d for d in shape]
        order = data.draw(st.permutations(range(len(shape))), label=f"order {k}")
        steps = data.draw(st.lists(st.sampled_from((1, 1, 2, -1)), min_size=len(shape), max_size=len(shape)))
        offset = data.draw(st.integers(0, 2))
        large = [sizes[i] * abs(s) + offset for i, s in zip(order, steps, strict=True)]
        whole = RNG.normal(size=large).astype(data.draw(st.sampled_from(("float32", "float16"))))
        cut = tuple(slice(offset, None, s) if s > 0 else slice(None, None if not offset else offset - 1, s) for s in steps)
        back = tuple(order.index(i) for i in range(len(shape)))
        operands.append((whole, cut, back))
    found = []
    for place in (mx.cpu(), gpu):
        x, y = (nd.array(w, dtype=w.dtype, ctx=place)[cut].transpose(back) for w, cut, back in operands)
        if x.dtype != y.dtype:
            y = y.astype(x.dtype)
        out = nd.ones(np.broadcast_shapes(x.shape, y.shape), dtype=x.dtype, ctx=place)
        out[:] = nd.broadcast_add(x, y)
        found.append([out.asnumpy(), nd.sum(nd.broadcast_mul(x, y), axis=0).asnumpy(), nd.max(x, axis=-1).asnumpy()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(
            b, a, rtol=1e-2 if a.dtype == np.float16 else 1e-5, atol=1e-2 if a.dtype == np.float16 else 1e-5
        )


def test_overlapping_copies_read_before_they_write(gpu):
    a, b = both((9,), gpu)
    for x in (a, b):
        x[1:] = x[:-1]
        x[:] = x[::-1]
    same(b, a)


def test_copies_convert_and_add(gpu):
    source = RNG.uniform(0, 50, (3, 4))
    for s in ("float32", "float16", "int32", "uint8"):
        for t in ("float64", "float16", "int64"):
            host, there = nd.array(source, dtype=s), nd.array(source, dtype=s, ctx=gpu)
            expected = nd.ones((3, 4), dtype=t)
            core.copy(host, expected, 3)
            for from_, place in ((host, gpu), (there, gpu), (there, mx.cpu())):
                target = nd.ones((3, 4), dtype=t, ctx=place)
                core.copy(from_, target, 3)
                np.testing.assert_array_equal(target.asnumpy(), expected.asnumpy())


def test_host_arrays_do_not_mix_in_silently(gpu):
    a, b = both((2,), gpu)
    with pytest.raises(OpValueError, match=r"different devices \(gpu\(0\), cpu\(0\)\); use as_in_context"):
        b + a
    with pytest.raises(OpValueError, match="different devices"):
        nd.dot(a, b)
    with pytest.raises(OpValueError, match="different devices"):
        nd.concat(b, a, dim=0)
    with pytest.raises(DeviceError, match="asnumpy"):
        np.asarray(b)
    with pytest.raises(OpValueError, match=r"out lies on cpu\(0\)"):
        nd.exp(b, out=a)


def test_memory_and_synchronization(gpu):
    free, total = mx.gpu_memory_info(0)
    assert 0 < free <= total
    stats = mx.context.memory_stats(gpu)
    assert stats["in_use"] >= 0 and stats["cached"] >= 0
    gpu.empty_cache()
    nd.waitall()
    nd.ones((2,), ctx=gpu).wait_to_read()


def test_two_devices(gpu):
    if mx.num_gpus() < 2:
        with pytest.raises(DeviceError, match=r"gpu\(1\) does not exist"):
            nd.zeros((2,), ctx=mx.gpu(1))
        return
    a, b = both((2, 3), gpu)
    other = b.as_in_context(mx.gpu(1))
    assert other.context == mx.gpu(1) and (other + 1).context == mx.gpu(1)
    same(other.sum(axis=0), a.sum(axis=0))
    with pytest.raises(OpValueError, match=r"gpu\(0\), gpu\(1\)"):
        b + other
    core.copy(other, b, 3)
    same(b, a + a)


# ---- elementwise -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_elementwise(gpu, dtype):
    a, b = both((3, 4), gpu, dtype)
    c, d = both((4,), gpu, dtype)
    for f in (nd.exp, nd.sigmoid, nd.gammaln, lambda x: x * 2.5 + 1, lambda x: 2 - x / 3, lambda x: x**2.5, abs):
        same(f(b), f(a))
    for f in (lambda x, y: x + y, nd.broadcast_maximum, nd.broadcast_mod, nd.broadcast_hypot, lambda x, y: x < y):
        same(f(b, d), f(a, c))
    same(nd.broadcast_power(b.T, b.T), nd.broadcast_power(a.T, a.T))
    same(nd.add_n(b, b, b), nd.add_n(a, a, a))
    same(nd.clip(b, 0.5, 1.0), nd.clip(a, 0.5, 1.0))
    same(b.astype("int32"), a.astype("int32"))
    same(b.astype("float16"), a.astype("float16"))
    same(nd.ones_like(b), nd.ones_like(a))


def test_elementwise_shapes(gpu):
    for shape in ((), (0, 3), (1,), (2, 1, 2, 1, 2)):
        a, b = both(shape, gpu)
        same(nd.exp(b) * b, nd.exp(a) * a)
    a, b = both((2, 3), gpu)
    with pytest.raises(OpValueError, match="broadcast_add"):
        nd.broadcast_add(b, nd.ones((4, 2), ctx=gpu))
    with pytest.raises(OpValueError, match="elemwise_add"):
        nd.elemwise_add(b, nd.ones((3, 2), ctx=gpu))
    with pytest.raises(OpTypeError):
        b + nd.ones((2, 3), ctx=gpu, dtype="float64")


def test_integers(gpu):
    for dtype in ("int32", "uint8", "int64", "int8"):
        a, b = both((3, 4), gpu, dtype)
        zero = nd.array([0, 1, 2, 3], dtype=dtype)
        for f in (
            lambda x, y: x + y,
            lambda x, y: x / y,
            lambda x, y: x % y,
            nd.broadcast_minimum,
            lambda x, y: x * 2.75,
        ):
            same(f(b, zero.as_in_context(gpu)), f(a, zero))
        same(nd.sqrt(b), nd.sqrt(a))
        same(nd.smooth_l1(b, scalar=1.5), nd.smooth_l1(a, scalar=1.5))
    flag = nd.array([True, False], dtype="bool")
    same(nd.logical_not(flag.as_in_context(gpu)), nd.logical_not(flag))


def test_requests_and_outputs(gpu):
    a, b = both((3, 4), gpu)
    op = mx.op.get("exp")
    for req in (1, 3, 0):
        outs = [nd.ones((3, 4), ctx=x.context) for x in (a, b)]
        for x, out in zip((a, b), outs, strict=True):
            core.invoke_req(op, [x], op.parse({}), out, req)
        same(outs[1], outs[0])
    for x in (a, b):
        nd.broadcast_mul(x, x, out=x)  # the memory of its inputs, element by element
        nd.exp(x[:, ::2], out=x[:, 1::2])
        nd.broadcast_add(x[:2], x[1:], out=x[1:])  # the memory of its inputs, moved
        x += 1
        x *= x
    same(b, a)
    with pytest.raises(OpValueError, match="out has shape"):
        nd.exp(b, out=nd.ones((2, 4), ctx=gpu))
    with pytest.raises(OpTypeError, match="out has dtype float64"):
        nd.exp(b, out=nd.ones((3, 4), ctx=gpu, dtype="float64"))
    b.attach_grad()
    with autograd.record(), pytest.raises(MXNetError, match="autograd has recorded"):
        nd.exp(b, out=b)


def test_a_kernel_is_made_once(gpu, own, kernels_made):
    @mx.op.elementwise
    def _made_once(data, *, scale: float = 1.0):  # whose kernels no other test has
        return data * scale + 0.37

    own(_made_once)
    b, wide = (nd.ones((3,), ctx=gpu, dtype=t) for t in ("float32", "float64"))
    before = kernels_made()
    for k in range(4):
        same(nd._internal._made_once(b, scale=k), nd.ones((3,)) * k + 0.37)
        nd._internal._made_once(b.reshape((3, 1)), scale=3)
    assert kernels_made() == before + 1
    nd._internal._made_once(wide)
    assert kernels_made() == before + 2


@pytest.mark.parametrize("req", ["write", "add"])
def test_fused_formulas(gpu, req):
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    symbol, found = mx.sym.Group([mx.sym.broadcast_mul(x, y) + 2, mx.sym.broadcast_sub(x, y)]), []
    given = {"x": both((3, 4), gpu), "y": both((1, 4), gpu)}
    for k, place in enumerate((mx.cpu(), gpu)):
        arrays = {name: pair[k] for name, pair in given.items()}
        grads = {name: nd.ones(a.shape, ctx=place) for name, a in arrays.items()}
        executor = symbol.bind(place, arrays, grads, req)
        assert "fused" in [row.kind for row in executor.explain()]
        outputs = executor.forward(is_train=True)
        executor.backward([o.copy() for o in outputs])
        found.append([*outputs, *executor.grad_arrays])
    for on_cpu, on_gpu in zip(*found, strict=True):
        same(on_gpu, on_cpu)
    (a, b), (c, d) = both((3, 4), gpu), both((1, 4), gpu)
    nd.broadcast_mul(a, c, out=a)
    nd.broadcast_mul(b, d, out=b)
    same(b, a)


# ---- reductions ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "norm", "nansum"])
def test_reductions(gpu, name):
    a, b = both((3, 1, 4), gpu)
    if name == "nansum":
        a[1, 0, 2] = b[1, 0, 2] = float("nan")
    for params in ({}, {"axis": 1}, {"axis": (0, 2)}, {"axis": -1, "keepdims": True}, {"axis": (0, 1, 2)}):
        same(getattr(nd, name)(b, **params), getattr(nd, name)(a, **params))
    if name != "norm":
        same(getattr(nd, name)(b, axis=1, exclude=True), getattr(nd, name)(a, axis=1, exclude=True))
    same(getattr(nd, name)(b.T[1:], axis=0), getattr(nd, name)(a.T[1:], axis=0))
    for dtype in ("float16", "int32"):
        c, d = both((2, 5), gpu, dtype)
        same(getattr(nd, name)(d, axis=1), getattr(nd, name)(c, axis=1))


def test_sums_of_more_integers_than_their_type_counts(gpu):
    for dtype in ("uint8", "int8", "int32", "int64"):
        a, b = (nd.ones((2, 300), dtype=dtype, ctx=place) for place in (mx.cpu(), gpu))
        same(b.sum(axis=1), a.sum(axis=1))
        same(b.max(), a.max())
        same(b + 200, a + 200)


def test_reductions_of_nothing_and_of_one(gpu):
    for name in ("sum", "prod", "max", "min"):
        for dtype in ("float32", "int64"):
            for shape, axis in (((0, 3), 0), ((0, 3), 1), ((2, 0, 3), (0, 1)), ((2, 1), 1)):
                a, b = both(shape, gpu, dtype)
                if name in ("max", "min") and np.prod(shape) == 0 and axis != 1:
                    for x in (a, b):
                        with pytest.raises(ValueError, match="have no elements"):
                            getattr(nd, name)(x, axis=axis)
                else:
                    same(getattr(nd, name)(b, axis=axis), getattr(nd, name)(a, axis=axis))
    a, b = nd.empty((0, 2)), nd.empty((0, 2), ctx=gpu)
    same(nd.mean(b, axis=0), nd.mean(a, axis=0))
    a, b = both((2, 3), gpu)
    same(nd.norm(b, axis=()), nd.norm(a, axis=()))


def test_norms_of_large_and_small_numbers(gpu):
    for dtype, size in (("float64", 1e200), ("float64", 1e-200), ("float32", 1e30), ("float16", 1e4), ("int32", 5)):
        a = nd.array(np.array([[3, 4], [0, 1]]) * size, dtype=dtype)
        same(nd.norm(a.as_in_context(gpu), axis=1), nd.norm(a, axis=1), 1e-15 if dtype == "float64" else None, 0)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_numbers_take_the_type_of_integers_as_on_the_cpu(gpu, dtype):
    a = nd.array([3, 5, 100], dtype=dtype)
    b = a.as_in_context(gpu)
    internal = nd._internal
    for scalar in (300, -1, 2.75, 2**53 + 1, 1e30):
        for name in ("_hypot_scalar", "_plus_scalar", "_maximum_scalar", "_power_scalar", "_floor_divide_scalar",
                     "_rfloor_divide_scalar", "_mod_scalar", "_rdiv_scalar"):  # fmt: skip
            if scalar < 2**63:
                same(getattr(internal, name)(b, scalar=scalar), getattr(internal, name)(a, scalar=scalar), 0, 0)
                continue
            with pytest.raises(mx.MXNetError, match="does not fit"):
                getattr(internal, name)(b, scalar=scalar)
        same(nd.clip(b, -scalar, scalar), nd.clip(a, -scalar, scalar), 0, 0)
    for scalar in (
        300,
        -1,
        3,
        5.5,
        2**63,
        -(2**70),
        float("inf"),
        float("nan"),
        5,
    ):  # some as before, some compared in float64
        for f in (operator.lt, operator.ge, operator.eq, operator.ne):
            same(f(b, scalar), f(a, scalar), 0, 0)
    x = mx.sym.Variable("x")
    for made in (x + (2**53 + 1) - 1, x // 3 * 3, mx.sym.clip(x, -300, 300) + 1, x < 300, (x * 2 != 2**63) + 1):
        same(made.eval(x=b, ctx=gpu)[0], made.eval(x=a)[0], 0, 0)


def test_float64_becomes_half_with_one_rounding(gpu):
    a = nd.array([1 + 2**-11 + 2**-40, 65519.9999, 65520, 1e300, 2**-25 * (1 + 2**-50), float("nan"), -0.0], dtype="float64")
    same(a.as_in_context(gpu).astype("float16"), a.astype("float16"), 0, 0)


def test_reductions_into_given_arrays(gpu):
    a, b = both((3, 4), gpu)
    op = mx.op.get("sum")
    for req in (1, 3):
        outs = [nd.ones((4, 2), ctx=x.context) for x in (a, b)]
        for x, out in zip((a, b), outs, strict=True):
            core.invoke_req(op, [x], op.parse({"axis": 0}), out[:, 1], req)
        same(outs[1], outs[0])
    nan = nd.array([1, float("nan"), 3], ctx=gpu)
    assert np.isnan(nan.max().asscalar()) and np.isnan(nan.min().asscalar())


def test_float16_sums_do_not_lose_bits(gpu):
    assert nd.ones((4096,), dtype="float16", ctx=gpu).sum().asscalar() == 4096


# ---- kernels, views and composites -----------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_products(gpu, dtype):
    a, b = both((3, 4), gpu, dtype)
    c, d = both((4, 2), gpu, dtype)
    same(nd.dot(b, d), nd.dot(a, c))
    same(nd.dot(b, b, transpose_b=True), nd.dot(a, a, transpose_b=True))
    same(nd.dot(b, b, transpose_a=True), nd.dot(a, a, transpose_a=True))
    same(nd.dot(b[0], d[:, 1]), nd.dot(a[0], c[:, 1]))
    same(b.T @ b, a.T @ a)
    e, f = both((2, 3, 4), gpu, dtype)
    same(nd.batch_dot(f, f, transpose_b=True), nd.batch_dot(e, e, transpose_b=True))
    g, h = both((5, 12), gpu, dtype)
    out = nd.ones((2, 5), dtype=dtype, ctx=gpu)
    nd.FullyConnected(f, h, no_bias=True, num_hidden=5, out=out)
    same(out, nd.FullyConnected(e, g, no_bias=True, num_hidden=5))


KERNELS = {
    "softmax": lambda x: nd.softmax(x, axis=1),
    "log_softmax": lambda x: nd.log_softmax(x),
    "transpose": lambda x: nd.transpose(x, axes=(1, 0)),
    "slice": lambda x: nd.slice(x, begin=(1, None), end=(3, None), step=(1, -2)),
    "broadcast_to": lambda x: nd.broadcast_to(x[:, :1], shape=(3, 5)),
    "tile": lambda x: nd.tile(x, reps=(2, 2)),
    "repeat": lambda x: nd.repeat(x, repeats=2, axis=1),
    "concat": lambda x: nd.concat(x, x, dim=1),
    "stack": lambda x: nd.stack(x, x),
    "where": lambda x: nd.where(x > 1, x, -x),
    "Activation": lambda x: nd.Activation(x, act_type="tanh"),
    "cumsum": lambda x: nd.cumsum(x, axis=1),
    "argmax": lambda x: nd.argmax(x, axis=1),
    "take": lambda x: x[nd.array([2, 0], ctx=x.context)],
    "mask": lambda x: x[(x > 1).astype("bool")].size * nd.ones((1,), ctx=x.context),
    "reshape": lambda x: nd.Reshape(x.T, shape=(2, -1)),
    "Flatten": lambda x: nd.Flatten(nd.transpose(x.reshape((3, 2, 2)), axes=(0, 2, 1))),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(gpu, name):
    a, b = both((3, 4), gpu)
    same(KERNELS[name](b), KERNELS[name](a))


def test_kernels_without_inputs(gpu):
    op, out = mx.op.get("_full"), nd.ones((2, 3), ctx=gpu)
    attrs = op.parse({"shape": (2, 3), "value": 2.5})
    assert core.invoke_req(op, [], attrs, [out], 3) is out
    same(out, nd.full((2, 3), 3.5))


def test_kernels_into_given_arrays(gpu):
    a, b = both((4, 4), gpu)
    for name, params in (("transpose", {}), ("dot", {}), ("softmax", {}), ("tile", {"reps": (1, 1)})):
        op = mx.op.get(name)
        for req in (1, 3):
            outs = []
            for x in (a, b):
                out = x.copy()
                n = len(op.input_names(op.parse(params)))
                core.invoke_req(op, [out] * n, op.parse(params), out, req)
                outs.append(out)
            same(outs[1], outs[0])


def test_a_kernel_without_gpu_function_says_so(gpu):
    @mx.op.kernel(name="only_on_the_cpu")
    def only(data):
        """For this test."""

    try:
        only.shape(lambda data: data)
        with pytest.raises(DeviceError, match=r"only_on_the_cpu has no GPU function; give one with @only_on_the_cpu.gpu"):
            nd.only_on_the_cpu(nd.ones((2,), ctx=gpu))
    finally:
        mx.op.unregister("only_on_the_cpu")


# ---- gradients -------------------------------------------------------------------------------------------------------
FUNCTIONS = {
    "sigmoid": lambda x: nd.sigmoid(x) * 3,
    "power": lambda x: x**2.5,
    "broadcast": lambda x: x * x[:, :1] + nd.exp(-x),
    "quadratic": lambda x: nd.contrib.quadratic(x, a=2, b=-3, c=1),
    "dot": lambda x: nd.dot(nd.dot(x, x.T), x),
    "mean": lambda x: nd.mean(x * x * x, axis=0),
    "softmax": lambda x: nd.softmax(x) * x,
    "prod": lambda x: nd.prod(x, axis=1),
    "max": lambda x: nd.max(x * x, axis=1),
    "slice": lambda x: x[1:, ::2] ** 3,
    "concat": lambda x: nd.concat(x, x * x, dim=0) ** 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_three_orders(gpu, name):
    a, b = both((3, 4), gpu, "float64")
    found = []
    for x in (a, b):
        x.attach_grad()
        with autograd.record():
            y = FUNCTIONS[name](x)
            orders = [y]
            for _ in range(2):
                y = autograd.grad(y.sum(), [x], create_graph=True, retain_graph=True)[0]
                orders.append(y)
            last = (y * y).sum()
        last.backward()
        found.append([*orders, x.grad])
    for on_cpu, on_gpu in zip(*found, strict=True):
        same(on_gpu, on_cpu, rtol=1e-9, atol=1e-9)


def test_gradients_add_up_and_stay_on_their_device(gpu):
    a, b = both((3, 4), gpu)
    for x in (a, b):
        x.attach_grad(grad_req="add")
        for _ in range(2):
            with autograd.record():
                y = x * 2 + x.sum() * nd.ones((3, 4), ctx=x.context)
            y.backward(nd.ones((3, 4), ctx=x.context) * 0.5)
    assert b.grad.context == gpu
    same(b.grad, a.grad)


def test_gradients_pass_through_transfers(gpu):
    x = nd.array([1, 2, 3])
    x.attach_grad()
    with autograd.record():
        y = (x.as_in_context(gpu) * 3).as_in_context(mx.cpu()).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [3, 3, 3]


def test_function_of_the_user(gpu):
    class Double(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, g):
            return g * 2

    b = nd.ones((3,), ctx=gpu)
    b.attach_grad()
    with autograd.record():
        y = Double()(b)
    y.backward()
    assert b.grad.asnumpy().tolist() == [2, 2, 2] and b.grad.context == gpu


# ---- graphs ----------------------------------------------------------------------------------------------------------
def test_executor(gpu):
    data, weight, bias = (mx.sym.Variable(n) for n in ("data", "weight", "bias"))
    net = mx.sym.FullyConnected(data, weight, bias, num_hidden=5)
    net = mx.sym.softmax(mx.sym.Activation(net * 2 + 1, act_type="tanh"))
    a, b = both((3, 4), gpu)
    results = []
    for place, x in ((mx.cpu(), a), (gpu, b)):
        executor = net.simple_bind(ctx=place, data=(3, 4), grad_req="add")
        for name, scale in (("weight", 0.1), ("bias", 0.2)):
            shape = executor.arg_dict[name].shape
            executor.arg_dict[name][:] = nd.arange(int(np.prod(shape)), ctx=place).reshape(shape) * scale
        for _ in range(2):
            executor.forward(is_train=True, data=x)
            assert all(row.measured > 0 for row in executor.explain(measure=True))  # and changes nothing
            executor.backward(out_grads=nd.arange(15, ctx=place).reshape((3, 5)))
        results.append([*executor.outputs, *(executor.grad_dict[n] for n in ("data", "weight", "bias"))])
    for on_cpu, on_gpu in zip(*results, strict=True):
        same(on_gpu, on_cpu, rtol=1e-4, atol=1e-5)


# ---- every operator --------------------------------------------------------------------------------------------------
#: The simulation compiles every kernel with the host's slow compiler: a few operators of each kind, one type, two orders.
SAMPLE = ("tanh", "broadcast_div", "_plus_scalar", "sum", "max", "transpose", "slice", "dot", "softmax", "where",
          "sgd_mom_update", "SoftmaxOutput", "SequenceMask", "_linalg_trsm", "_linalg_syevd")  # fmt: skip


@pytest.mark.parametrize("gpu", ["simulated"], indirect=True)
@pytest.mark.parametrize("name", SAMPLE)
def test_check_op_in_the_simulation(gpu, name):
    mx.test_utils.check_op(name, device=gpu, orders=2, dtypes=["float64"])


@pytest.mark.parametrize("gpu", ["simulated"], indirect=True)
@pytest.mark.parametrize("name", ("SequenceMask", "RNN", "batch_dot", "_onehot_encode", "_random_normal_like", "_np_cumsum"))
def test_check_op_of_halves_in_the_simulation(gpu, name):
    halves = ["float16", "bfloat16"] if dtypes.has_bfloat16() else ["float16"]
    mx.test_utils.check_op(name, device=gpu, orders=1, dtypes=["float64", *halves])


def test_consistency(gpu):
    data = mx.sym.Variable("data")
    net = mx.sym.exp(data) + mx.sym.broadcast_mul(data, mx.sym.sum(data, axis=1, keepdims=True))
    mx.test_utils.check_consistency(
        net,
        [{"ctx": gpu, "data": (3, 4), "type_dict": {"data": np.float32}},
         {"ctx": mx.cpu(), "data": (3, 4), "type_dict": {"data": np.float64}}],
    )  # fmt: skip


def test_bfloat16(gpu, request):
    if not dtypes.has_bfloat16():
        pytest.skip("ml_dtypes is not installed")
    a = nd.array([1.5, 2.25, -3], dtype="bfloat16")
    try:
        b = a.as_in_context(gpu)
    except OpTypeError as problem:
        assert "bfloat16" in str(problem) and not simulated(request)
        return
    for f in (nd.exp, lambda x: x * x + 1, lambda x: x.sum(), lambda x: x.astype("float32")):
        left, right = f(b).asnumpy().astype("float32"), f(a).asnumpy().astype("float32")
        np.testing.assert_allclose(left, right, rtol=1e-2)
