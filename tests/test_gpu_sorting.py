"""Sorting on a GPU: rows are sorted by blocks of threads, in the order of the CPU."""

import numpy as np
import pytest
from cuda_compilers import find_nvrtc, nvrtc_ptx

import mxop as mx
from mxop import nd
from mxop._gpu import compiled, sorting

RNG = np.random.default_rng(3)
TYPES = ["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool"]


def numbers(shape, dtype):
    """Return numbers, many of them equal; of floating types also NaN of both signs, infinities, zeros and subnormal numbers."""
    if dtype == "bool":
        return RNG.integers(0, 2, shape)
    if "float" not in dtype:
        limits = np.iinfo(dtype)
        some = np.array([limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1], dtype)
        return np.where(RNG.random(shape) < 0.4, RNG.choice(some, shape), RNG.integers(0, 20, shape).astype(dtype))
    some = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-7, -1e-7, 6e-5])
    return np.where(RNG.random(shape) < 0.4, RNG.choice(some, shape), RNG.normal(size=shape).round(1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3, 2), (5, 7), (2, 64), (1, 300), (70, 9), (2, 1025)])
def test_rows_are_in_the_order_of_the_cpu(gpu, dtype, shape):
    a = nd.array(numbers(shape, dtype), dtype=dtype)
    b = a.as_in_context(gpu)
    for ascend in (True, False):
        for k in {1, 2, min(3, shape[1]), shape[1] // 2, shape[1]}:
            found, wanted = (nd.topk(x, k=k, ret_typ="both", is_ascend=ascend, dtype="int64") for x in (b, a))
            for x, y in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(x.astype("float64").asnumpy(), y.astype("float64").asnumpy())
        for axis in (0, 1, None):
            for op in (nd.sort, nd.argsort):
                found, wanted = (op(x, axis=axis, is_ascend=ascend).astype("float64").asnumpy() for x in (b, a))
                np.testing.assert_array_equal(found, wanted)


def test_long_rows_are_sorted_by_cupy(simulated_gpu, kernels_made):
    for n, dtype, by_blocks in ((8192, "float32", True), (8193, "float32", False), (4096, "float64", True),
                                (4097, "int64", False), (8192, "uint8", True)):  # fmt: skip
        assert sorting.fits(n, mx.dtypes.code_of(np.dtype(dtype))) == by_blocks
        x = nd.array(RNG.integers(0, 50, (2, n)), dtype=dtype)
        before = len(compiled._modules)
        found = nd.argsort(x.as_in_context(simulated_gpu), dtype="int32")
        assert (len(compiled._modules) > before) == by_blocks
        np.testing.assert_array_equal(found.asnumpy(), nd.argsort(x, dtype="int32").asnumpy())


def test_views_and_outputs_that_lie_apart(gpu):
    a = nd.array(numbers((6, 5, 8), "float32"))
    b = a.as_in_context(gpu)
    for x, y in ((a, b), (a[1:4], b[1:4]), (a.transpose((2, 0, 1)), b.transpose((2, 0, 1))), (a[:, ::2], b[:, ::2])):
        for axis in (0, 1, 2):
            np.testing.assert_array_equal(nd.sort(y, axis=axis).asnumpy(), nd.sort(x, axis=axis).asnumpy())
            np.testing.assert_array_equal(nd.topk(y, k=2, axis=axis).asnumpy(), nd.topk(x, k=2, axis=axis).asnumpy())


@pytest.mark.parametrize("dtype", TYPES)
def test_nvrtc_compiles_the_kernels(dtype):
    path = find_nvrtc()
    if path is None:
        pytest.skip("nvidia-cuda-nvrtc is not installed (pip install nvidia-cuda-nvrtc)")
    for result in (None, mx.dtypes.INT64, mx.dtypes.FLOAT16, mx.dtypes.UINT8):
        for descending in (False, True):
            source = sorting.text(mx.dtypes.code_of(np.dtype(dtype) if dtype != "bfloat16" else dtype), result, descending)
            ptx = nvrtc_ptx(path, source, ("--gpu-architecture=compute_90",))
            assert ".entry mxop_sort" in ptx and "local" not in ptx.replace(".shared", "")
