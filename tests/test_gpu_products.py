"""Products on a GPU: cuBLAS reads matrices where they lie, transposed or not, and halves are not widened before."""

import fake_kernels
import numpy as np
import pytest

import mxop as mx
from mxop import nd
from mxop._gpu import products

RNG = np.random.default_rng(2)
TYPES = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


def lying(cupy, shape, dtype, how):
    """Return an array of random numbers that lies in a way."""
    x = RNG.normal(size=shape)
    turned = {"plain": x, "turned": x.swapaxes(-1, -2).copy(), "rows": x, "backwards": x}[how].astype(dtype)
    if how == "rows":  # of longer rows
        turned = np.concatenate([turned, turned], axis=-1)
    with cupy.cuda.Device(0):
        a = cupy.array(turned[..., ::-1].copy() if how == "backwards" else turned)
    a = {"plain": a, "turned": a.swapaxes(-1, -2), "rows": a[..., : shape[-1]], "backwards": a[..., ::-1]}[how]
    return a, x.astype(dtype).astype(np.float64)


@pytest.fixture
def cupy(simulated_gpu):
    import cupy

    return cupy


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("stacks", [((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((2, 3), (3,)), ((1,), (4,)), ((3,), ()),
                                    ((2, 1, 2), (1, 3, 2))])  # fmt: skip
def test_products_of_matrices_however_they_lie(cupy, dtype, stacks):
    for m, k, n in ((2, 3, 4), (1, 3, 1), (3, 1, 2), (1, 1, 1), (5, 4, 1), (1, 5, 3)):
        for left in ("plain", "turned", "rows", "backwards"):
            for right in ("plain", "turned", "rows", "backwards"):
                (a, x), (b, y) = lying(cupy, (*stacks[0], m, k), dtype, left), lying(cupy, (*stacks[1], k, n), dtype, right)
                with cupy.cuda.Device(0):
                    found = products.product(cupy, a, b)
                wanted = x @ y
                assert found.dtype == np.dtype(dtype) and found.shape == wanted.shape
                room = TYPES[dtype] * (np.abs(x) @ np.abs(y)) + (3e-8 if dtype == "float16" else 0)  # a half of the least half
                assert (np.abs(found.get() - wanted) <= room).all(), (m, k, n, left, right)


def test_one_call_multiplies_a_stack(simulated_gpu):
    for dtype in ("float16", "bfloat16", "float32"):
        x = nd.array(RNG.normal(size=(6, 4, 5)), ctx=simulated_gpu).astype(dtype)
        for flags in ({"transpose_b": True}, {"transpose_a": True}):
            before = dict(fake_kernels.counts)
            found = nd.batch_dot(x, x, **flags)
            launched = {name: fake_kernels.counts[name] - before[name] for name in before}
            assert launched == {"kernels": 0, "graphs": 0, "products": 1}
            on_cpu = nd.batch_dot(x.as_in_context(mx.cpu()), x.as_in_context(mx.cpu()), **flags)
            np.testing.assert_allclose(
                found.astype("float32").asnumpy(), on_cpu.astype("float32").asnumpy(), rtol=1e-2, atol=1e-2
            )


def test_float32_is_rounded_where_the_environment_asks(simulated_gpu, cupy, monkeypatch):
    asked, x = [], nd.ones((2, 2), ctx=simulated_gpu)
    monkeypatch.setattr(cupy.cuda.cublas, "gemmStridedBatchedEx", lambda *args: asked.append(args[-2]))
    for setting in ("0", "1"):
        monkeypatch.setenv("CUPY_TF32", setting)
        nd.dot(x, x)
    assert asked == [68, 77]


def test_products_without_terms_are_zero(simulated_gpu):
    for shapes in (((2, 0), (0, 3)), ((0, 2), (2, 3)), ((2, 3), (3, 0))):
        a, b = (nd.array(np.ones(shape), ctx=simulated_gpu) for shape in shapes)
        found = nd.dot(a, b)
        assert found.shape == (shapes[0][0], shapes[1][1]) and not found.asnumpy().any()
