"""Large calls: what is cut into blocks and pieces gives what small calls give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop import nd, sym

MANY, FEW = 300_007, 1_000  # elements: from memory, and in the cache


def program(x, y):
    """Costly instructions and cheap ones, two results."""
    m = 0.9 * x + 0.1 * y
    v = 0.999 * sym.square(x) + 0.001 * y * y
    return sym.Group([x - 0.01 * m / (sym.sqrt(v) + 1e-8), sym.tanh(sym.exp(-m) * y) + sym.sigmoid(v)])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_do_not_show(dtype, threads):
    mx.context.set_num_threads(threads)
    values = {k: np.random.default_rng(i).normal(size=MANY).astype(dtype) for i, k in enumerate("xy")}

    def results(part):
        bound = program(sym.Variable("x"), sym.Variable("y")).bind(
            mx.cpu(), {k: nd.array(v[part], dtype=dtype) for k, v in values.items()}
        )
        assert len(bound.explain().rows) == 1  # one fused program
        return [o.asnumpy() for o in bound.forward(is_train=False)]

    whole = results(slice(None))
    for begin in (0, 4_321, MANY - FEW):
        part = slice(begin, begin + FEW)
        for have, want in zip(whole, results(part), strict=True):
            np.testing.assert_array_equal(have[part], want)


SIZES = st.sampled_from([0, 1, 2, 31, 33, 64, 129, 200, 513])


@settings(max_examples=60, deadline=None)
@given(SIZES, SIZES, SIZES, st.sampled_from([None, 0, 1, 3]), st.booleans(), st.booleans(), st.sampled_from("fd"),
       st.sampled_from([1.0, -0.5]), st.sampled_from([None, "row", "column", "number"]), st.integers(1, 4))  # fmt: skip
def test_pieces_of_products(m, n, k, batch, transpose_a, transpose_b, code, alpha, bias, threads):
    mx.context.set_num_threads(threads)
    lead = () if batch is None else (batch,)
    rng = np.random.default_rng(m + 7 * n + 31 * k)
    left = rng.normal(size=(*lead, k, m) if transpose_a else (*lead, m, k)).astype(code)
    right = rng.normal(size=(*lead, n, k) if transpose_b else (*lead, k, n)).astype(code)
    arrays, flags = (
        [nd.array(a, dtype=code) for a in (left, right)],
        {"transpose_a": transpose_a, "transpose_b": transpose_b},
    )
    product = np.matmul(*(
        a.astype("d").swapaxes(-1, -2) if t else a.astype("d") for a, t in ((left, transpose_a), (right, transpose_b))
    ))  # fmt: skip
    if batch is None:
        added = rng.normal(size={None: (1,), "row": (n,), "column": (m, 1), "number": (1,)}[bias]).astype(code)
        more = [] if bias is None else [nd.array(added, dtype=code)]
        found = nd._internal._gemm(*arrays, *more, alpha=alpha, no_bias=bias is None, **flags)
        product = alpha * product + (0 if bias is None else added)
    else:
        found = nd.batch_dot(*arrays, **flags)
    tolerance = 1e-3 if code == "f" else 1e-9
    np.testing.assert_allclose(found.asnumpy(), product, rtol=tolerance, atol=tolerance)
