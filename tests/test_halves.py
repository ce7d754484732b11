"""One instruction on arrays of float16: the bits of float32 rounded once, wherever a little at a time ends."""

from __future__ import annotations

import numpy as np
import pytest

from mxop import nd

SIZES = (1, 7, 8, 191, 192, 193, 383, 4097, 100_003)


def halves(n, seed):
    x = np.random.default_rng(seed).standard_normal(n).astype("float16")
    x[: n // 50] = np.resize(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 6e-8, 65504.0], "float16"), n // 50)
    return x


def rounded(function, *arrays):
    with np.errstate(all="ignore"):
        return function(*[a.astype("float32") for a in arrays]).astype("float16")


@pytest.mark.parametrize("past", [False, True], ids=["cached", "past the caches"])
@pytest.mark.parametrize("n", SIZES)
def test_results_are_rounded_once(level, tune, n, past):
    tune(stream_bytes=0 if past else 1 << 40)
    x, y = halves(n, 1), halves(n, 2)
    a, b = nd.array(x, dtype="float16"), nd.array(y, dtype="float16")
    for found, wanted in (
        (a + b, rounded(np.add, x, y)),
        (a * a, rounded(np.square, x)),
        (3 - a, rounded(lambda x: 3 - x, x)),
        (nd.sqrt(a), rounded(np.sqrt, x)),
        (nd.where(a > b, a, b), np.where(x > y, x, y)),
        (a[1:] - b[:-1], rounded(np.subtract, x[1:], y[:-1])),
    ):
        np.testing.assert_array_equal(found.asnumpy(), wanted)


def test_where_the_result_lies(level):
    x, y = halves(1000, 3), halves(1000, 4)
    a, b = nd.array(x, dtype="float16"), nd.array(y, dtype="float16")
    wanted = rounded(np.add, x, y)
    a += b
    np.testing.assert_array_equal(a.asnumpy(), wanted)
    nd.elemwise_add(a[:-1], b[:-1], out=a[1:])  # what is read lies one place before what is written
    np.testing.assert_array_equal(a[1:].asnumpy(), rounded(np.add, wanted[:-1], y[:-1]))
    np.testing.assert_array_equal(a[:1].asnumpy(), wanted[:1])
