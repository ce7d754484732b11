"""Large calls: what is cut into blocks and pieces gives what small calls give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop import nd, sym

MANY, FEW = 2_200_007, 1_000  # elements: from memory, and in the cache


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


@pytest.mark.parametrize("count", [FEW, 5_000, MANY])
@pytest.mark.parametrize("threads", [1, 3])
def test_results_may_lie_over_what_is_read(count, threads):
    mx.context.set_num_threads(threads)
    values = np.random.default_rng(0).normal(size=count + 1).astype("float32")
    for to, source in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None)), (slice(None, -1),) * 2):
        x = nd.array(values)
        other, target, wanted = nd.array(values[1:]), x[to], values.copy()
        wanted[to] = values[source] - values[1:]
        for _ in range(2):  # large calls begin now at the beginning, now at the end
            x[:] = values
            assert nd.elemwise_sub(x[source], other, out=target) is target
            np.testing.assert_array_equal(x.asnumpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_larger_of_two_where_neither_is(dtype):
    """NaN wins, and of zeros the left one; at any place of a vector."""
    nan, rng = np.nan, np.random.default_rng(0)
    a, b = (rng.choice([0.0, -0.0, 1.0, -1.0, nan, np.inf, -np.inf], 1_003).astype(dtype) for _ in "ab")
    for name, beyond in (("maximum", np.greater), ("minimum", np.less)):
        for left, right in (
            (a, b),
            (a, b[:1]),
            (a[:1], b),
            *((a, np.array([s], dtype)) for s in (0.0, -0.0, 1.0, nan)),
        ):
            found = getattr(nd, f"broadcast_{name}")(*(nd.array(v, dtype=dtype) for v in (left, right))).asnumpy()
            wanted = np.where(beyond(right, left), right, left)
            wanted[np.isnan(left) | np.isnan(right)] = nan
            np.testing.assert_array_equal(found, wanted)
            signs = ~np.isnan(wanted)
            assert (np.signbit(found) == np.signbit(wanted))[signs].all()
            if right.size == 1:
                number = getattr(nd, name)(nd.array(left, dtype=dtype), float(right[0])).asnumpy()
                np.testing.assert_array_equal(number, wanted)
                assert (np.signbit(number) == np.signbit(wanted))[signs].all()
