"""Reductions whose results have few neighbours: of columns side by side, of rows of a few elements, and of both."""

import itertools

import numpy as np
import pytest

import mxop as mx
from mxop import nd
from mxop._kernels import instruction_sets

SHAPES = [
    ((300, 5, 20), (1,)), ((70, 17, 64), (1,)), ((9, 3, 65), (1,)), ((40, 2, 33, 2), (1, 3)), ((6, 5, 7, 3, 4), (1, 3)),
    ((500, 2), (1,)), ((300, 7), (1,)), ((11, 4, 6), (0, 2)), ((3, 2, 5, 2, 3), (0, 2, 4)), ((2000, 10, 3), (1,)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "axes"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("operator", ["sum", "max", "min"])
def test_of_few(shape, axes, dtype, operator):
    """As NumPy's in float64, with NaN and infinite numbers; the same bits from every instruction set and number of threads."""
    rng = np.random.default_rng(0)
    values = rng.integers(-9, 9, shape).astype(dtype) if dtype == "int32" else rng.normal(size=shape).astype(dtype)
    if dtype != "int32":
        flat = values.reshape(-1)
        for odd in (np.nan, np.inf, -np.inf, -0.0):
            flat[rng.integers(0, flat.size, max(flat.size // 200, 1))] = odd
    with np.errstate(invalid="ignore"):
        want = getattr(np, operator)(values.astype("int64" if dtype == "int32" else "float64"), axis=axes)
    before, threads, found = instruction_sets.in_use(), mx.context.get_num_threads(), set()
    try:
        for isa, n in itertools.product(instruction_sets.available(), (1, 2)):
            instruction_sets.use(isa)
            mx.context.set_num_threads(n)
            have = getattr(nd, operator)(nd.array(values, dtype=dtype), axis=axes).asnumpy()
            found.add(np.where(have == have, have, 0).tobytes())  # one NaN is as good as another
            rtol, atol = (1e-6, 1e-6) if dtype == "float32" else (1e-12, 1e-12)
            np.testing.assert_allclose(have, want, rtol=rtol, atol=atol)
    finally:
        instruction_sets.use(before)
        mx.context.set_num_threads(threads)
    assert len(found) == 1
