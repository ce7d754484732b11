"""Products of matrices: sizes at the edges of blocks, strides, types, requests, instruction sets, threads, bits."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from comparing import ADD, WRITE, into, steps_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop import nd

ROUNDING = {"e": 2.0**-11, "f": 2.0**-24, "d": 2.0**-53}

#: Sizes around multiples of 16 and 32 rows, columns and summands.
TILED = st.sampled_from([(64, 1000), (128, 128), (129, 145), (193, 200), (208, 95), (400, 72)])
STEPS = st.sampled_from([32, 33, 63, 64, 65, 127, 130, 257, 1100])
#: Blocks of registers have 4, 6 or 12 rows, panels 2 to 32 columns, tiles 192 rows; sums are cut every 256 summands.  From 12
#: panels on, rows are packed while they meet the first.
ROWS = st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 24, 25, 191, 193])
COLUMNS = st.sampled_from([0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 97, 199, 385, 417])
SUMMANDS = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 15, 33, 63, 64, 65, 255, 256, 257, 385, 769])
LAYOUTS = st.sampled_from(["plain", "transposed", "every second", "backwards", "broadcast"])


def laid_out(rng, shape, layout, code):
    """Return an array of normal numbers whose elements lie so."""
    *lead, m, n = shape
    whole = (*lead, *{"transposed": (n, m), "every second": (2 * m, 2 * n), "broadcast": (1, n)}.get(layout, (m, n)))
    a = nd.array(rng.normal(size=whole), dtype=code)
    steps, places = a._strides[:-2], np.arange(a.size).reshape(whole)
    if a.size == 0 or layout == "plain":
        return nd.empty(shape, dtype=code) if a.size == 0 else a
    if layout == "transposed":
        return a._view(shape, (*steps, 1, m))
    if layout == "every second":
        return a._view(shape, (*steps, 4 * n, 2))
    if layout == "backwards":
        return a._view(shape, (*steps, -n, -1), int(places[(0,) * len(lead) + (-1, -1)]))
    return a._view(shape, (*steps, 0, 1))


def wide(a):
    return a.asnumpy().astype("d")


def check(found, want, magnitude, k, code, slack=0.0):
    """Compare with the exact product; every summand, and the result, may be rounded."""
    computed = ROUNDING["f" if code == "e" else code]
    bound = (k + 4) * computed * magnitude + 2 * ROUNDING[code] * np.abs(want) + slack
    if code == "e":
        bound = bound + 2.0**-24  # below that, float16 is not spaced any closer
    assert found.shape == want.shape
    assert (np.abs(found - want) <= bound).all()


@settings(max_examples=90, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, COLUMNS, SUMMANDS, LAYOUTS, LAYOUTS, st.sampled_from("fde"), st.sampled_from([1.0, -0.5]),
       st.sampled_from([None, "row", "column", "number", "full"]), st.sampled_from([WRITE, ADD]),
       st.integers(1, 3), st.booleans(), st.booleans())  # fmt: skip
@example(13, 33, 385, "plain", "plain", "f", 1.0, "row", ADD, 2, False, False)
@example(1, 65, 769, "plain", "transposed", "f", -0.5, "row", ADD, 1, False, False)
@example(193, 1, 769, "transposed", "plain", "d", -0.5, "column", ADD, 1, False, False)
@example(193, 417, 257, "plain", "transposed", "f", -0.5, "row", ADD, 2, False, False)
@example(5, 40, 0, "plain", "plain", "f", 1.0, None, WRITE, 1, False, False)
@example(5, 40, 0, "plain", "plain", "e", 1.0, "row", ADD, 1, False, False)
def test_products(level, m, n, k, left, right, code, alpha, bias, req, threads, transpose_a, transpose_b):
    mx.context.set_num_threads(threads)
    rng = np.random.default_rng(m + 7 * n + 31 * k)
    a = laid_out(rng, (k, m) if transpose_a else (m, k), left, code)
    b = laid_out(rng, (n, k) if transpose_b else (k, n), right, code)
    shape = {None: None, "row": (n,), "column": (m, 1), "number": (1,), "full": (m, n)}[bias]
    more = [] if bias is None else [nd.array(rng.normal(size=shape), dtype=code)]
    out = nd.array(rng.normal(size=(m, n)), dtype=code)
    before = wide(out)
    attrs = {"alpha": alpha, "no_bias": bias is None, "transpose_a": transpose_a, "transpose_b": transpose_b}
    into("_gemm", [a, b, *more], [out], req, **attrs)
    x, y = (wide(v).T if t else wide(v) for v, t in ((a, transpose_a), (b, transpose_b)))
    added = [wide(v) for v in more] + [before] * (req == ADD)
    magnitude = sum(map(np.abs, added), abs(alpha) * (np.abs(x) @ np.abs(y)))
    check(wide(out), sum(added, alpha * (x @ y)), magnitude, k, code)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([(2,), (3, 2), (1, 4), (0,)]), ROWS, COLUMNS, SUMMANDS, LAYOUTS, LAYOUTS, st.sampled_from("fde"),
       st.booleans(), st.integers(1, 3))  # fmt: skip
def test_batches(lead, m, n, k, left, right, code, apart, threads):
    mx.context.set_num_threads(threads)
    rng = np.random.default_rng(m + 7 * n + 31 * k)
    a, b = laid_out(rng, (*lead, m, k), left, code), laid_out(rng, (*lead, k, n), right, code)
    if apart:  # batches that are not one step apart
        a, last = nd.concat(*[a] * 3, dim=-1), (1, 0) if len(lead) == 2 else (0,)
        order = (*last, *range(len(lead), a.ndim))
        a = nd.transpose(a, axes=order)
        a = a._view((*lead, m, k), tuple(a._strides[order.index(i)] for i in range(a.ndim)), k)
    want, magnitude = np.matmul(wide(a), wide(b)), np.matmul(np.abs(wide(a)), np.abs(wide(b)))
    check(wide(nd.batch_dot(a, b)), want, magnitude, k, code)


SCALES = {"plain": 1, "tiny": 2.0**-126, "small": 2.0**-60, "smaller": 2.0**-72, "large": 2.0**50, "huge": 2.0**100}
KINDS = st.sampled_from([*SCALES, "any", "rows apart", "zeros"])


def of_kind(rng, shape, kind):
    """Return float32 of such magnitudes: parts of them, or products, are below or above what a type of 16 bits holds."""
    with np.errstate(over="ignore", under="ignore"):
        x = rng.normal(size=shape)
        if kind == "any":
            return (x * 2.0 ** rng.integers(-140, 60, shape)).astype("f")
        if kind == "rows apart":
            return (x * 2.0 ** rng.integers(-140, 60, (*shape[:-1], 1))).astype("f")
        if kind == "zeros":
            return (x * (rng.random(shape) < 0.1)).astype("f")
        return (x * SCALES[kind]).astype("f")


@settings(max_examples=80, deadline=None)
@given(TILED, STEPS, KINDS, KINDS, st.booleans(), st.booleans(), st.sampled_from([None, "row", "full"]),
       st.sampled_from([WRITE, ADD]), st.sampled_from([1.0, -0.5]), st.integers(0, 1000))  # fmt: skip
@example((128, 128), 65, "small", "smaller", False, False, None, WRITE, 1.0, 0)
@example((193, 200), 130, "rows apart", "any", False, True, "row", ADD, 1.0, 0)
def test_products_of_any_magnitude(size, k, left, right, transpose_a, transpose_b, bias, req, alpha, seed):
    """Beside sums in float64; nothing is lost below 2^-126, and nothing but what must be is infinite."""
    (m, n), rng = size, np.random.default_rng(seed)
    x, y = of_kind(rng, (m, k), left), of_kind(rng, (k, n), right)
    a, b = nd.array(x.T if transpose_a else x), nd.array(y.T if transpose_b else y)
    more = [] if bias is None else [nd.array(rng.normal(size={"row": (n,), "full": (m, n)}[bias]))]
    out = nd.array(rng.normal(size=(m, n)))
    added = [wide(v) for v in more] + [wide(out)] * (req == ADD)
    attrs = {"alpha": alpha, "no_bias": bias is None, "transpose_a": transpose_a, "transpose_b": transpose_b}
    into("_gemm", [a, b, *more], [out], req, **attrs)
    want = sum(added, alpha * (x.astype("d") @ y.astype("d")))
    magnitude = sum(map(np.abs, added), np.abs(x.astype("d")) @ np.abs(y.astype("d")))
    within = magnitude < 1e38  # elsewhere a sum on the way may be infinite
    found = np.where(within, wide(out), 0)
    check(found, np.where(within, want, 0), np.where(within, magnitude, 0), k, "f", (k + 4) * 2.0**-149)


@pytest.mark.parametrize("layout", ["plain", "transposed"])
def test_a_product_with_ones_and_zeros_moves_numbers(layout, level):
    """All of float32, but what is not finite: every bit arrives."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, (160, 192), dtype=np.uint32)
    x = np.where((bits & 0x7F800000) == 0x7F800000, 0, bits.view("f")).astype("f")
    x.reshape(-1)[:6] = 3.4028235e38, -3.4028235e38, 1e-45, 1.1754944e-38, 3.3895314e38, -1e-40
    for kind in (x, np.where(np.abs(x) > 1e-30, np.clip(x, -1e37, 1e37), 0).astype("f")):
        a = nd.array(kind) if layout == "plain" else nd.array(kind.T)._view(kind.shape, (1, len(kind)))
        places = rng.permutation(192)
        b = nd.array(np.eye(192)[:, places])
        np.testing.assert_array_equal(nd.dot(a, b).asnumpy(), kind[:, places])
        np.testing.assert_array_equal(nd.dot(b, a, transpose_a=True, transpose_b=True).asnumpy(), kind.T[places])


@pytest.mark.parametrize("req", [WRITE, ADD])
def test_sums_below_the_smallest_normal_number_stay(req, level):
    """Whatever is added to them later: nothing, here."""
    x, y = np.zeros((128, 200), "f"), np.ones((200, 160), "f")
    x[:, 3], x[5, 3], x[7, 70] = 1e-39, 1.0, 3e-42
    before = np.full((128, 160), 2e-41, "f")
    out = nd.array(before)
    into("dot", [nd.array(x), nd.array(y)], [out], req)
    want = np.broadcast_to(x.sum(axis=1)[:, None], out.shape) + (before if req == ADD else 0)
    np.testing.assert_allclose(wide(out), want, rtol=1e-6, atol=2 * 2.0**-149)


@pytest.mark.parametrize("code", ["float16", "bfloat16", "float32"])
def test_products_of_integers_are_exact(code, level):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-8, 8, (150, 200)), rng.integers(-8, 8, (200, 140))
    found = nd.dot(nd.array(a, dtype=code), nd.array(b, dtype=code)).astype("float32").asnumpy()
    np.testing.assert_array_equal(found, nd.array(a @ b, dtype=code).astype("float32").asnumpy())
    large = rng.integers(-(1 << 11), 1 << 11, (150, 200))
    if code == "float32":
        np.testing.assert_array_equal(nd.dot(nd.array(large), nd.array(b)).asnumpy(), large @ b)


@pytest.mark.parametrize("m, n, k, code", [
    (600, 1100, 70, "f"), (1100, 40, 70, "f"), (128, 128, 128, "f"), (300, 200, 900, "d"), (200, 300, 500, "e"),
    (3, 5, 40000, "f"), (128, 128, 20000, "f"), (700, 300, 1100, "f"), (64, 48, 20000, "d"), (64, 48, 8449, "f"),
    (1, 3000, 900, "f"), (3000, 1, 900, "f"), (1, 1, 1000000, "f"),
])  # fmt: skip
def test_bits_do_not_depend_on_threads(m, n, k, code, level):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(m, k)).astype(code), rng.normal(size=(k, n)).astype(code)
    turned = [nd.array(x.T, dtype=code)._view(x.shape, (1, len(x))) for x in (a, b)]
    for x, y in ((nd.array(a, dtype=code), nd.array(b, dtype=code)), turned):
        found = []
        for threads in (1, 2, 3, 7):
            mx.context.set_num_threads(threads)
            found.append(nd.dot(x, y).asnumpy())
        assert all((f.view(np.uint8) == found[0].view(np.uint8)).all() for f in found)
        p, q = a.astype("d"), b.astype("d")
        check(found[0].astype("d"), p @ q, np.abs(p) @ np.abs(q), k, code)


@pytest.mark.parametrize("code", "fde")
@pytest.mark.parametrize("m, n", [(13, 33), (1, 40), (40, 1), (1, 1), (30, 70), (140, 150)])
@pytest.mark.parametrize("k", [3, 400])
def test_nan_and_infinity_stay_in_their_rows_and_columns(m, n, k, code):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 1, (m, k)), rng.uniform(0.5, 1, (k, n))
    a[m - 1, k - 1], b[1, n - 1] = np.inf, np.nan
    want = np.where(np.arange(m)[:, None] == m - 1, np.inf, 0) + np.where(np.arange(n) == n - 1, np.nan, 0)
    x, y = nd.array(a, dtype=code), nd.array(b, dtype=code)
    flags = {"transpose_a": True, "transpose_b": True}
    for found in (nd.dot(x, y), nd.dot(nd.array(a.T, dtype=code), nd.array(b.T, dtype=code), **flags)):
        found = found.asnumpy()
        assert (np.isnan(found) == np.isnan(want)).all() and (np.isinf(found) == np.isinf(want)).all()


def test_a_product_of_zeros_and_infinity_is_nan():
    a, b = nd.zeros((3, 4)), nd.array(np.full((4, 5), np.inf))
    assert np.isnan(nd.dot(a, b).asnumpy()).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_nothing_is_copied(transpose_a, transpose_b, req, dtype):
    """Products read any strides, convert, and add, also those that are gradients."""
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    symbol = mx.sym.dot(x, y, transpose_a=transpose_a, transpose_b=transpose_b)
    arrays = [nd.ones((4, 6) if t else (6, 4), dtype=dtype).T for t in (transpose_a, not transpose_b)]
    grads = [nd.zeros(a.shape, dtype=dtype) for a in arrays]
    executor = symbol.bind(mx.cpu(), dict(zip("xy", arrays, strict=True)), dict(zip("xy", grads, strict=True)), req)
    assert steps_of(executor) == ["Product"] * 3


def test_gradients_are_added():
    rng = np.random.default_rng(0)
    x, w = nd.array(rng.normal(size=(20, 30))), nd.array(rng.normal(size=(7, 30)))
    b = nd.array(rng.normal(size=7))
    args = {"data": x, "weight": w, "bias": b}
    grads = {name: nd.ones(a.shape) for name, a in args.items()}
    net = mx.sym.FullyConnected(*map(mx.sym.Variable, args), num_hidden=7)
    executor = net.bind(mx.cpu(), args, args_grad=grads, grad_req="add")
    head = rng.normal(size=(20, 7)).astype("f")
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward(nd.array(head))
    np.testing.assert_allclose(grads["weight"].asnumpy(), 1 + 2 * head.T @ x.asnumpy(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(grads["data"].asnumpy(), 1 + 2 * head @ w.asnumpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("k", [100, 1100])
def test_what_a_loop_multiplies_by_is_packed_for_all_steps(k, level):
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(3, 130, k)), "w": rng.normal(size=(k, 150)), "s": np.zeros((130, 150))}
    arrays["w"][3, 40] = 1e-35

    def body(x, s):
        y = mx.sym.dot(x, mx.sym.Variable("w")) + s
        return y, y

    sums, last = mx.sym.contrib.foreach(body, mx.sym.Variable("x"), mx.sym.Variable("s"))
    executor = mx.sym.Group([sums, last]).bind(mx.cpu(), {name: nd.array(a) for name, a in arrays.items()}, grad_req="null")
    assert [step for step in steps_of(executor) if "Product" in step] == ["Product, packed once"]
    found = executor.forward()
    want = np.cumsum(arrays["x"] @ arrays["w"], axis=0)
    np.testing.assert_allclose(wide(found[0]), want, rtol=1e-5, atol=1e-5 * k**0.5)
    np.testing.assert_array_equal(wide(found[1]), wide(found[0])[-1])


def test_results_over_their_operands():
    rng = np.random.default_rng(0)
    a = nd.array(rng.normal(size=(40, 40)))
    want = wide(a) @ wide(a)
    nd.dot(a, a, out=a)
    np.testing.assert_allclose(wide(a), want, atol=1e-4)


def test_threads_of_python_multiply_at_a_time():
    a, b = nd.array(np.random.rand(300, 200)), nd.array(np.random.rand(200, 700))
    want, found = np.dot(a.asnumpy(), b.asnumpy()), []

    def multiply():
        found.extend(np.abs(nd.dot(a, b).asnumpy() - want).max() for _ in range(20))

    others = [threading.Thread(target=multiply) for _ in range(8)]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()
    assert len(found) == 160
    assert max(found) < 1e-3


def test_no_blas_is_loaded():
    code = "import sys, mxop as mx; mx.nd.dot(mx.nd.ones((90, 90)), mx.nd.ones((90, 90))); print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
