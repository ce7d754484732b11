"""Reductions whose results have few neighbours: of columns side by side, of rows of a few elements, and of both."""

import numpy as np
import pytest
from comparing import path_of

import mxop as mx
from mxop import nd

#: Widths around those of vectors, and of what counts as narrow; and so many rows that several are added at a time, or one less.
WIDTHS = (2, 3, 5, 7, 8, 9, 15, 16, 17, 31)
NARROW = [((4, 8 * (64 // width) + more, width), (1,)) for width in WIDTHS for more in (0, 1, 64 // width + 1)]
FEW = [((4, 8 * (64 // width) - 1, width), (1,)) for width in WIDTHS]
PATHS = {
    "narrow columns": [*NARROW, ((3000, 3), (0,)), ((40000, 5), (0,))],
    "columns in place": [
        *FEW, ((300, 5, 20), (1,)), ((70, 17, 64), (1,)), ((9, 3, 65), (1,)), ((6, 5, 7, 3, 4), (1, 3)), ((2000, 10, 3), (1,)),
        ((9, 300, 32), (1,)), ((9, 300, 33), (1,)),
    ],
    "several rows": [
        ((40, 2, 33, 2), (1, 3)), ((11, 4, 6), (0, 2)), ((3, 2, 5, 2, 3), (0, 2, 4)),
        *(((n, width), (1,)) for n, width in ((500, 2), (300, 7), (17, 15), (16, 16), (15, 17), (9, 33))),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("path", "shape", "axes"), [(p, *case) for p, cases in PATHS.items() for case in cases])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("operator", ["sum", "max", "min"])
def test_of_few(path, shape, axes, dtype, operator, levels):
    """As NumPy's in float64, with NaN and infinite numbers; the same bits from every instruction set and number of threads."""
    symbol = getattr(mx.sym, operator)(mx.sym.Variable("x"), axis=axes)
    assert path_of(symbol, dtype, x=shape) == [f"ReductionRun, {path}"]
    rng = np.random.default_rng(0)
    values = rng.integers(-9, 9, shape).astype(dtype) if dtype == "int32" else rng.normal(size=shape).astype(dtype)
    if dtype != "int32":
        flat = values.reshape(-1)
        for odd in (np.nan, np.inf, -np.inf, -0.0):
            flat[rng.integers(0, flat.size, max(flat.size // 200, 1))] = odd
    with np.errstate(invalid="ignore"):
        want = getattr(np, operator)(values.astype("int64" if dtype == "int32" else "float64"), axis=axes)
    found = set()
    for _ in levels:
        for threads in (1, 2):
            mx.context.set_num_threads(threads)
            have = getattr(nd, operator)(nd.array(values, dtype=dtype), axis=axes).asnumpy()
            found.add(np.where(have == have, have, 0).tobytes())  # one NaN is as good as another
            rtol, atol = (1e-6, 1e-6) if dtype == "float32" else (1e-12, 1e-12)
            np.testing.assert_allclose(have, want, rtol=rtol, atol=atol)
    assert len(found) == 1
