"""Copies between any strides, and reductions over any axes: against NumPy, with any number of threads."""

import contextlib

import numpy as np
import pytest
from comparing import steps_of
from hypothesis import given, settings
from hypothesis import strategies as st

import mxop as mx
from mxop import nd

TYPES = ["float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool"]
SIZES = st.sampled_from([1, 2, 3, 4, 5, 8, 16, 17, 33, 70])
SLICES = st.builds(slice, st.none(), st.none(), st.sampled_from([None, None, None, 2, 3, -1, -2]))


@pytest.fixture(scope="module")
def running(tune):
    """Return a context of so many threads, also for arrays that are too small to be worth it, and non-temporal stores."""

    @contextlib.contextmanager
    def context(threads, small=True):
        before, sizes = mx.context.set_num_threads(threads), tune()
        try:
            if small:
                tune(parallel_bytes=64, stream_bytes=64)
            yield
        finally:
            mx.context.set_num_threads(before)
            tune(**sizes)

    return context


@st.composite
def views(draw, types=TYPES):
    """Draw an array, a key of slices and a permutation of the axes."""
    shape = draw(st.lists(SIZES, min_size=1, max_size=5).map(tuple).filter(lambda s: np.prod(s) <= 70000))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = (rng.normal(size=shape) * 20).astype(draw(st.sampled_from(types)))
    return values, tuple([draw(SLICES) for _ in shape]), tuple(draw(st.permutations(range(len(shape)))))


def array(values):
    return nd.array(values, dtype=values.dtype)


@given(views(), st.sampled_from([1, 2, 3]), st.booleans())
@settings(deadline=None, max_examples=150)
def test_transposed_views_are_copied_and_written(running, case, threads, small):
    values, key, axes = case
    back = tuple(int(i) for i in np.argsort(axes))
    a, wanted = array(values), values[key].transpose(axes)
    with running(threads, small):
        np.testing.assert_array_equal(nd.transpose(a[key], axes=axes).asnumpy(), wanted)
        written = array(np.zeros_like(values))
        written[key] = nd.transpose(array(np.ascontiguousarray(wanted)), axes=back)
    expected = np.zeros_like(values)
    expected[key] = values[key]
    np.testing.assert_array_equal(written.asnumpy(), expected)


@given(views(["float32", "float16", "int32", "uint8"]), st.sampled_from(["float32", "float64", "int64"]), st.booleans())
@settings(deadline=None, max_examples=60)
def test_transposed_views_are_converted_and_added(running, case, dtype, small):
    values, key, axes = case
    x = mx.sym.transpose(mx.sym.Variable("x"), axes=axes).astype(dtype)
    total = nd.full(values[key].transpose(axes).shape, 3, dtype=dtype)
    with running(2, small):
        bound = x.bind(mx.cpu(), {"x": array(values)[key]}, grad_req="null")
        np.testing.assert_array_equal(bound.forward()[0].asnumpy(), values[key].transpose(axes).astype(dtype))
        total += nd.transpose(array(values)[key], axes=axes).astype(dtype)
    np.testing.assert_array_equal(total.asnumpy(), values[key].transpose(axes).astype(dtype) + np.asarray(3, dtype))


#: A copy's path, and slices and axes that take it.
PATHS = {
    "rows": [
        ((7, 40, 33), np.s_[:, 1:], (1, 0, 2)), ((9, 33, 65), np.s_[::2, :, 3:], (1, 0, 2)),
        ((3, 20, 700), np.s_[::-1, :, :-1], (1, 0, 2)),
    ],
    "transposed blocks": [
        ((70, 40), np.s_[:, :], (1, 0)), ((33, 65, 17), np.s_[:, :, :], (2, 0, 1)), ((9, 65), np.s_[:, 1:], (1, 0)),
    ],
    "strided": [
        ((70, 40), np.s_[:, ::2], (1, 0)), ((70, 40), np.s_[:, ::-3], (1, 0)), ((9, 33, 65), np.s_[:, :, ::2], (2, 0, 1)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("path", "shape", "key", "axes"), [(p, *case) for p, cases in PATHS.items() for case in cases])
def test_each_way_to_move(running, path, shape, key, axes, dtype):
    values = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    wanted = values[key].transpose(axes)
    symbol = mx.sym.transpose(mx.sym.Variable("x"), axes=axes)
    for threads in (1, 2, 3):
        with running(threads):
            executor = symbol.bind(mx.cpu(), {"x": array(values)[key]}, grad_req="null")
            assert steps_of(executor) == [f"Move, {path}"]
            np.testing.assert_array_equal(executor.forward()[0].asnumpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8"])
@pytest.mark.parametrize("shape", [(1100, 1030), (1031, 997), (3, 70001), (70001, 3), (2, 300, 5, 170)])
def test_large_transposes(running, shape, dtype):
    values = (np.arange(np.prod(shape)) % 251).astype(dtype).reshape(shape)
    wanted = values.transpose()
    for threads in (1, 2):
        for small in (False, True):
            with running(threads, small):
                np.testing.assert_array_equal(array(values).transpose().asnumpy(), wanted)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 255, 257, 2047, 2049, 32767, 32768, 32769, 70000])
def test_rows_of_all_lengths(n):
    """Short ones are copied by vectors, long ones by the C library; what lies beside them stays."""
    x = np.random.default_rng(n).integers(0, 256, (3, n + 9)).astype("uint8")
    out = nd.full((3, n + 2), 7, dtype="uint8")
    out[:, 1 : n + 1] = nd.array(x, dtype="uint8")[:, 5 : n + 5]
    expected = np.full((3, n + 2), 7, "uint8")
    expected[:, 1:-1] = x[:, 5 : n + 5]
    assert np.array_equal(out.asnumpy(), expected)
    assert np.array_equal(nd.concat(nd.array(x, dtype="uint8"), out, dim=1).asnumpy(), np.concatenate((x, expected), 1))


def test_copies_of_other_shapes():
    x = np.arange(24.0).reshape(4, 6)
    a = array(x)[:, ::-1]
    assert nd.reshape(a.T, shape=(8, 3)).asnumpy().tolist() == x[:, ::-1].T.reshape(8, 3).tolist()
    out = nd.zeros((8, 6), dtype="float64")
    out[::2, ::2] = nd.reshape(a, shape=(4, 6))[:, :3]
    assert out[::2, ::2].asnumpy().tolist() == x[:, ::-1][:, :3].tolist()


# ---- reductions -------------------------------------------------------------------------------------------------------------
TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-13}


@given(views(["float32", "float64", "float16", "int32", "uint8", "int8", "int64"]), st.data())
@settings(deadline=None, max_examples=150)
def test_reductions_of_any_axes(running, case, data):
    values, key, order = case
    a, x = nd.transpose(array(values), axes=order)[key], values.transpose(order)[key]
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, x.ndim - 1), min_size=1))))
    floats = x.dtype.kind == "f"
    with running(data.draw(st.sampled_from([1, 2, 3])), data.draw(st.booleans())):
        found = {n: getattr(nd, n)(a, axis=axes, keepdims=True).asnumpy() for n in ("sum", "max", "min", "mean")}
        norm = nd.norm(a, axis=axes, keepdims=True).asnumpy() if floats and len(axes) < 3 else None
    wide = x.astype("float64" if floats else "int64")
    assert np.array_equal(found["max"], x.max(axes, keepdims=True))
    assert np.array_equal(found["min"], x.min(axes, keepdims=True))
    if not floats:
        assert np.array_equal(found["sum"], wide.sum(axes, keepdims=True).astype(x.dtype))
        return
    tolerance = TOLERANCE[x.dtype.name]
    scale = np.abs(wide).sum(axes, keepdims=True) * tolerance
    assert (np.abs(found["sum"] - wide.sum(axes, keepdims=True)) <= scale).all()
    assert (np.abs(found["mean"] - wide.mean(axes, keepdims=True)) <= scale).all()
    if norm is not None:
        np.testing.assert_allclose(norm, np.sqrt((wide**2).sum(axes, keepdims=True)), rtol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape, axes", [((700, 900), 0), ((700, 900), 1), ((700, 900), (0, 1)), ((90, 7, 800), (0, 2)),
                                         ((50000, 5), 0), ((50000, 5), 1), ((3, 100000), 1), ((30, 40, 500), 1)])  # fmt: skip
def test_results_have_the_same_bits_with_any_number_of_threads(running, shape, axes, dtype):
    a = array(np.random.default_rng(0).normal(size=shape).astype(dtype))
    for name in ("sum", "prod", "max", "norm", "mean", "nansum"):
        bits = set()
        for threads in (1, 2, 3, 5):
            with running(threads):
                bits.add(getattr(nd, name)(a, axis=axes).asnumpy().tobytes())
        assert len(bits) == 1, name


@pytest.mark.parametrize("n", [1, 7, 8, 13, 64, 65, 200, 5000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_extremes_of_what_is_no_number(n, dtype):
    x = np.linspace(-3, 3, 3 * n).reshape(3, n).astype(dtype)
    x[1, n // 2] = np.nan
    x[2, :] = -np.inf
    for axis in (0, 1):
        for a, values in ((array(x), x), (array(np.ascontiguousarray(x.T)).T, x)):
            np.testing.assert_array_equal(nd.max(a, axis=axis).asnumpy(), values.max(axis))
            np.testing.assert_array_equal(nd.min(a, axis=axis).asnumpy(), values.min(axis))


@pytest.mark.parametrize("scale", [1e-30, 1e-21, 1e-18, 1e-15, 1, 1e17, 3e18, 1e20, 1e30])
def test_lengths_of_float32_whose_squares_go_out_of_range(scale):
    for n in (63, 64, 1000, 5000, 70_001):
        apart = np.arange(n) % 7 * 1e-4 ** (np.arange(n) % 3)
        for values in (np.random.default_rng(n).standard_normal(n), np.full(n, 0.1), apart):
            x = (values * scale).astype("f4")
            wanted = np.sqrt(np.sum(x.astype("f8") ** 2))
            found = mx.nd.norm(mx.nd.array(x)).asscalar()
            assert abs(found - wanted) <= 2 * np.spacing(np.float32(wanted)), (n, scale)
    x = np.full((3, 200), scale, "f4")
    x[0, 7], x[1, 100], x[2] = np.nan, np.inf, 0
    np.testing.assert_array_equal(mx.nd.norm(mx.nd.array(x), axis=1).asnumpy(), np.array([np.nan, np.inf, 0], "f4"))


def test_lengths_beyond_the_range_of_squares():
    for dtype, big in (("float32", 1e37), ("float64", 1e300)):
        x = np.full((3, 40), big, dtype)
        for factor in (1, big**-0.7, big**-1.02):
            scaled = (x.astype("float64") * factor).astype(dtype)
            wanted = scaled[0, 0].astype("float64") * np.sqrt([3.0, 40.0])
            np.testing.assert_allclose(nd.norm(array(scaled), axis=0).asnumpy(), wanted[0], rtol=1e-6)
            np.testing.assert_allclose(nd.norm(array(scaled), axis=1).asnumpy(), wanted[1], rtol=1e-6)


# ---- along an axis ----------------------------------------------------------------------------------------------------------
@given(views([t for t in TYPES if t != "bool"]), st.data())
@settings(deadline=None, max_examples=150)
def test_places_of_extremes_and_running_sums(running, case, data):
    values, key, order = case
    if values.dtype.kind == "f":
        odd = st.tuples(st.integers(0, values.size - 1), st.sampled_from([np.nan, np.inf, -np.inf]))
        for place, value in data.draw(st.lists(odd, max_size=4)):
            values.ravel()[place] = value
    a, x = nd.transpose(array(values), axes=order)[key], values.transpose(order)[key]
    axis = data.draw(st.sampled_from([None, *range(x.ndim)]))
    wide = "float32" if x.dtype == "float16" else x.dtype
    with running(data.draw(st.sampled_from([1, 2, 3]))), np.errstate(all="ignore"):
        for name in ("argmax", "argmin"):
            wanted = np.asarray(getattr(np, name)(x, axis=axis)).astype(x.dtype)
            np.testing.assert_array_equal(getattr(nd, name)(a, axis=axis).asnumpy().reshape(wanted.shape), wanted)
        wanted = np.cumsum(x, axis=axis, dtype=wide).astype(x.dtype)
        np.testing.assert_array_equal(nd.cumsum(a, axis=axis).asnumpy(), wanted)


@pytest.mark.parametrize("shape, axis", [((300, 700), 1), ((300, 700), 0), ((5, 40000), 1), ((40000, 5), 0), ((7, 90, 300), 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8"])
def test_places_in_large_arrays(running, shape, axis, dtype):
    x = (np.random.default_rng(1).normal(size=shape) * 40).astype(dtype)
    for threads in (1, 2):
        with running(threads):
            for name in ("argmax", "argmin"):
                wanted = getattr(np, name)(x, axis=axis).astype(dtype)
                np.testing.assert_array_equal(getattr(nd, name)(array(x), axis=axis).asnumpy(), wanted)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 31, 32, 33, 63, 255, 256, 257, 320, 1000, 16383, 16384, 16447, 16448, 40000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int8", "uint8"])
def test_places_in_rows_of_all_lengths(n, dtype):
    """The first of equals, and of NaN, wherever it is."""
    rng = np.random.default_rng(n)
    rows = rng.integers(0, 100, (6, n)).astype(dtype)
    rows[0], rows[1, -1], rows[2, rng.integers(n)], rows[3, n // 2 :] = 3, 101, 102, 103
    if dtype.startswith("float"):
        rows[4, rng.integers(n, size=3)], rows[5] = np.nan, -np.inf
        rows[3, : n // 2] *= -0.0
    for name in ("argmax", "argmin"):
        found = getattr(nd, name)(array(rows), axis=1).asnumpy()
        np.testing.assert_array_equal(found, getattr(np, name)(rows, axis=1).astype(dtype))


def test_a_running_sum_of_truths_stays_true():
    true = nd.array([False] + [True] * 300, dtype="bool")
    assert nd.cumsum(true, dtype="bool").asnumpy().tolist() == [False] + [True] * 300
    assert nd.cumsum(nd.array([0.0, 0.5, 0.0]), dtype="bool").asnumpy().tolist() == [False, True, True]


@pytest.mark.parametrize("key", [np.s_[::-1], np.s_[:, ::2], np.s_[1:3, 1:4], np.s_[::-2, ::-1]])
def test_parts_and_reversed_arrays_in_kernels(key):
    """A kernel's plan is made for an array that stands in for them, whose elements lie on both sides of its address."""
    x = np.arange(24.0).reshape(4, 6)
    part = nd.array(x, dtype="float64")[key]
    for _ in range(3):
        np.testing.assert_array_equal(nd.cumsum(part, axis=0).asnumpy(), x[key].cumsum(0))
        np.testing.assert_array_equal(nd.take(part, nd.array([1, 0, 1])).asnumpy(), x[key][[1, 0, 1]])
        np.testing.assert_allclose(nd.dot(part, part.T).asnumpy(), x[key] @ x[key].T)
