"""Elements at indices, and sorting: what records do not say."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd
from mxop.check import check_op

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def array(values, dtype="float32"):
    return nd.array(np.asarray(values), dtype=dtype)


# ---- out of range -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode, rows", [("clip", [0, 0, 3, 3, 1, 0]), ("wrap", [3, 3, 0, 1, 1, 0])])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "int32", "int64"])
def test_take_out_of_range(mode, rows, dtype):
    indices = np.array([-1, -5, 4, 5, 1.9, -0.9]).astype(dtype)
    assert nd.take(array(X), array(indices, dtype), mode=mode).asnumpy().tolist() == X[rows].tolist()


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_rows_of_a_few_elements_begin_anywhere(columns, dtype):
    """Short rows are copied as one number where addresses allow it (a sanitizer of undefined behaviour says where not)."""
    for from_, to in ((0, 1), (1, 0), (1, 1), (2, 3)):
        memory, out = array(np.arange(40) % 100, dtype), nd.zeros((5 * columns + 3,), dtype=dtype)
        rows = memory[from_ : from_ + 4 * columns].reshape((4, columns))
        nd.take(rows, array([3, 0, 2, 2, 1]), out=out[to : to + 5 * columns].reshape((5, columns)))
        expected = np.zeros(out.shape, dtype)
        expected[to : to + 5 * columns] = rows.asnumpy()[[3, 0, 2, 2, 1]].ravel()
        np.testing.assert_array_equal(out.asnumpy(), expected)


@pytest.mark.parametrize("columns", [17, 1000, 3000])
def test_rows_of_a_table_that_no_cache_holds(columns, tune):
    """They are fetched some rows before they are copied, the last of them, too."""
    rows = 200_000 // columns
    table = np.arange(rows * columns, dtype="float32").reshape(rows, columns)
    indices = np.random.default_rng(columns).integers(0, rows, 300)
    tune(stream_bytes=table.nbytes)
    for many in (1, 2, 300):
        found = nd.take(array(table), array(indices[:many], "int32")).asnumpy()
        np.testing.assert_array_equal(found, table[indices[:many]])


def test_take_refuses_and_writes_nothing():
    out = nd.full((3, 3), 7)
    for bad in (4, -1, np.nan, np.inf):
        with pytest.raises(mx.MXNetError, match=rf"take: index {bad}\S* at position 1 .*size 4") as caught:
            nd.take(array(X), array([1, bad, 2]), mode="raise", out=out)
        assert isinstance(caught.value, IndexError)
    assert (out.asnumpy() == 7).all()


@pytest.mark.parametrize("huge", [1e30, np.inf, 2.0**63])
def test_indices_beyond_all_integers_count_as_the_nearest(huge):
    assert nd.take(array(X), array([huge, -huge], "float64")).asnumpy().tolist() == [X[3].tolist(), X[0].tolist()]


def test_coordinates_count_from_the_end_and_are_refused_beyond():
    assert nd.gather_nd(array(X), array([[-1, 0], [0, -3]])).asnumpy().tolist() == [9, 0]
    for op, data, more in ((nd.gather_nd, X, {}), (nd.scatter_nd, [1, 2], {"shape": (4, 3)})):
        with pytest.raises(IndexError, match=r"index 3\.0 at position 3 .*dimension 1, of size 3"):
            op(array(data), array([[0, 1], [0, 3]]), **more)


def test_an_empty_axis_has_no_place():
    with pytest.raises(IndexError, match="of size 0"):
        nd.take(nd.empty((0, 3)), array([0]))
    assert nd.take(nd.empty((0, 3)), nd.empty((0,))).shape == (0, 3)


@pytest.mark.parametrize("call, said", [
    (lambda: nd.pick(array(X), nd.zeros((3,))), "index has shape (3,)"),
    (lambda: nd.pick(array(X), nd.zeros((4,)), axis=None), "axis=None"),
    (lambda: nd.take(array(X), nd.zeros((4,)), axis=2), "operator take: axis=2"),
    (lambda: nd.gather_nd(array(X), nd.zeros((2,))), "expected (m, ...)"),
    (lambda: nd.gather_nd(array(X), nd.zeros((3, 1))), "hold 3 coordinates"),
    (lambda: nd.scatter_nd(nd.zeros((2,)), nd.zeros((2, 3)), shape=(2, 2)), "data has shape (2,), expected (3,)"),
    (lambda: nd.Embedding(nd.zeros((2,)), nd.zeros((3, 2)), input_dim=4, output_dim=2), "(3, 2); expected (4, 2) by input_dim"),
    (lambda: nd.topk(array(X), k=4), "operator topk: k=4 is more than the 3 elements of axis 1"),
    (lambda: nd.argsort(array(X), dtype="int8"), "operator argsort: dtype=int8"),
])  # fmt: skip
def test_messages(call, said):
    with pytest.raises(mx.MXNetError) as caught:
        call()
    assert said in str(caught.value)


# ---- exact, and the same each time ------------------------------------------------------------------------------------------
def test_indices_above_two_to_the_24_are_exact():
    n = (1 << 24) + 10
    x = nd.zeros((n,), dtype="int8")
    x[n - 3] = 7
    for dtype in ("int32", "int64", "float64"):
        assert nd.take(x, array([n - 3, n - 2], dtype)).asnumpy().tolist() == [7, 0]
    assert nd.gather_nd(x, array([[n - 3]], "int64")).asscalar() == 7
    assert nd.topk(x, k=1, dtype="int64").asscalar() == n - 3


def test_sums_are_the_same_with_any_number_of_threads():
    rng = np.random.default_rng(0)
    cases = [
        (lambda w, i: nd.Embedding(i, w, input_dim=1000, output_dim=64), (1000, 64), rng.integers(0, 9, 5000)),
        (lambda w, i: nd.take(w, i, axis=1), (70, 500, 3), rng.integers(0, 5, 2000)),
        (lambda w, i: nd.take(w, i), (100_000,), rng.integers(0, 50, 400_000)),
        (lambda w, i: nd.sort(w, axis=0), (2000, 300), np.zeros(1)),
    ]
    before = mx.context.get_num_threads()
    try:
        for call, shape, index in cases:
            found = []
            for threads in (1, 2, 3, 4):
                mx.context.set_num_threads(threads)
                w = array(np.random.default_rng(1).normal(size=shape))
                w.attach_grad()
                with autograd.record():
                    y = call(w, array(index, "int32"))
                y.backward(array(np.random.default_rng(2).normal(size=y.shape)))
                found.append((y.asnumpy(), w.grad.asnumpy()))
            for y, g in found[1:]:
                assert np.array_equal(y, found[0][0]) and np.array_equal(g, found[0][1])
    finally:
        mx.context.set_num_threads(before)


def test_sums_of_halves_are_rounded_once():
    w = nd.zeros((2,), dtype="float16")
    w.attach_grad()
    with autograd.record():
        y = nd.take(w, nd.ones((4000,)))
    y.backward()
    assert w.grad.asnumpy().tolist() == [0, 4000]  # in float16 alone the sum would stop at 2048


def test_bool():
    x = nd.array(np.array([True, False, True]), dtype="bool")
    assert nd.take(x, array([2, 1])).asnumpy().tolist() == [True, False]
    for name in ("scatter_nd", "_backward_gather_nd"):
        found = mx.nd.array(np.array([True, True, False]), dtype="bool")
        found = mx.op.get(name)(found, array([[1, 1, 0]]), shape=(3,)).asnumpy()
        assert found.tolist() == [False, True, False]


def test_of_parts_with_one_place_the_last_stays():
    found = nd.scatter_nd(array([[1, 2], [3, 4], [5, 6]]), array([[1, 0, 1]]), shape=(2, 2))
    assert found.asnumpy().tolist() == [[3, 4], [5, 6]]


# ---- the other device's functions, run by NumPy ---------------------------------------------------------------------------
_RNG = np.random.default_rng(3)
ON_GPU = [
    ("take", [X, [[1, -9], [2, 2]]], {}),
    ("take", [X, [-4, 5]], {"axis": 1, "mode": "wrap"}),
    ("_take_grad", [_RNG.normal(size=(4, 500)), _RNG.integers(0, 3, 500), X], {"axis": 1}),
    ("_take_grad", [np.ones((0, 3)), np.ones(0), X], {}),
    ("pick", [X, [0, 7, -2, 1]], {}),
    ("_pick_grad", [[1, 2, 3, 4], [0, 7, -2, 1], X], {}),
    ("_take_lanes_grad", [_RNG.normal(size=(4, 50)), _RNG.integers(0, 3, (4, 50)), X], {"axis": 1}),
    ("gather_nd", [X, [[-1, 2], [0, -3]]], {}),
    ("_gather_nd_grad", [_RNG.normal(size=300), _RNG.integers(0, 3, (2, 300)), X], {}),
    ("scatter_nd", [[[1, 2], [3, 4], [5, 6]], [[1, 0, 1]]], {"shape": (2, 2)}),
    ("_backward_gather_nd", [[[1, 2], [3, 4], [5, 6]], [[1, 0, 1]]], {"shape": (2, 2)}),
    ("_contrib_boolean_mask", [X, [0, 2, 1, np.nan]], {}),
    ("_boolean_mask_grad", [X[:, :2], [1, 0, -1], X], {"axis": 1}),
    ("one_hot", [[0, -1, 1.9, 5]], {"depth": 3, "on_value": 2, "dtype": "int32"}),
]


@pytest.mark.parametrize("name, values, params", ON_GPU, ids=[f"{n}{i}" for i, (n, *_) in enumerate(ON_GPU)])
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_the_function_for_gpus_gives_the_same(name, values, params, dtype, simulated_gpu):
    op = mx.op.get(name)
    values = [np.asarray(v, dtype if k == 0 else "float64") for k, v in enumerate(values)]
    want = op(*(array(v, v.dtype) for v in values), **params).asnumpy()
    found = op(*(array(v, v.dtype).as_in_context(mx.gpu(0)) for v in values), **params)
    np.testing.assert_array_equal(found.asnumpy(), want)


@pytest.mark.parametrize("name", sorted({n for n, *_ in ON_GPU} | {"topk", "sort", "_take_lanes"}))
def test_on_a_simulated_gpu(name, simulated_gpu):
    check_op(name, device="gpu", dtypes=["float64", "float32", "int32"])


def test_the_function_for_gpus_refuses_too():
    for name, params in (("take", {"mode": "raise"}), ("gather_nd", {})):
        op, indices = mx.op.get(name), np.array([[0.0, 9.0]])
        shape = (1, 2, 3) if name == "take" else (2, 3)
        with pytest.raises(IndexError, match=r"index 9\.0 at position 1"):
            op.run_gpu(np, [X, indices], [np.empty(shape, X.dtype)], **op.parse(params))


# ---- sorting ----------------------------------------------------------------------------------------------------------------
def _expected(x, ascending):
    keys = x if ascending else -x.astype(np.float64)
    found = np.argsort(keys, -1, kind="stable")
    if not ascending:  # NaN counts as the largest
        isnan = np.isnan(x.astype(np.float64))
        found = np.stack([np.concatenate([np.flatnonzero(m), f[~m[f]]]) for f, m in zip(found, isnan, strict=True)])
    return found


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("ascending", [True, False])
def test_equal_elements_keep_their_order_and_nan_is_the_largest(dtype, ascending):
    x = np.random.default_rng(0).integers(0, 20, (3, 400)).astype(dtype)
    if x.dtype.kind == "f":
        x[0, 3], x[0, 9], x[1, 5], x[1, 7], x[2, :9], x[2, 11] = np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0
    want = _expected(x, ascending)
    given = array(x, dtype)
    assert np.array_equal(nd.argsort(given, is_ascend=ascending, dtype="int32").asnumpy(), want)
    for k in (1, 7, 399):  # by selection, and by sorting all
        found = nd.topk(given, k=k, is_ascend=ascending, ret_typ="both", dtype="int64")
        assert np.array_equal(found[1].asnumpy(), want[:, :k])
        assert np.array_equal(found[0].asnumpy(), np.take_along_axis(x, want[:, :k], 1), equal_nan=x.dtype.kind == "f")
        mask = nd.topk(given, k=k, is_ascend=ascending, ret_typ="mask").asnumpy()
        assert mask.sum() == 3 * k and np.take_along_axis(mask, want[:, :k], 1).all()


@pytest.mark.parametrize("ascending", [True, False])
def test_few_of_many_where_some_are_nan(ascending):
    """A NaN is before the largest number, also where the numbers that are no less than the k-th are k without it."""
    x = np.random.default_rng(1).choice([np.nan, -np.inf, np.inf, 0.5, 1.5, 2.5, 3.5], (500, 7))
    want = _expected(x, ascending)
    for dtype in ("float16", "float32", "float64"):
        for k in (1, 2, 3):
            found = nd.topk(array(x, dtype), k=k, is_ascend=ascending, dtype="int64").asnumpy()
            assert np.array_equal(found, want[:, :k])


def test_extremes_of_integers_are_sorted():
    x = np.array([0, 2**63 - 1, -(2**63), -1])
    assert nd.argsort(array(x, "int64"), is_ascend=False, dtype="int32").asnumpy().tolist() == [1, 0, 3, 2]
    y = np.array([0, 2**31 - 1, -(2**31), -1])
    assert nd.sort(array(y, "int32")).asnumpy().tolist() == sorted(y.tolist())


def test_methods_and_positions_of_parameters():
    x = array(X)
    assert x.take(array([1])).shape == (1, 3) and x.topk(-1, 2).shape == (4, 2)
    assert x.argsort(is_ascend=False).asnumpy()[0].tolist() == [2, 1, 0]
    assert x.pick(array([0, 1, 2, 0])).shape == (4,)
    assert mx.sym.topk(mx.sym.Variable("x"), ret_typ="both", k=2).list_outputs() == ["topk0_output0", "topk0_output1"]


def test_embedding_infers_its_weight():
    y = mx.sym.Embedding(mx.sym.Variable("i"), name="e", input_dim=10, output_dim=4, dtype="float16")
    assert y.infer_shape(i=(2, 3)) == ([(2, 3), (10, 4)], [(2, 3, 4)], [])
    assert y.infer_type(i="int32")[0][1] == np.float16


def test_a_scalar_picks_of_a_vector():
    x = mx.nd.array([1, 2, 3])
    x.attach_grad()
    with mx.np_shape():
        with mx.autograd.record():
            y = x.pick(mx.nd.array(1))
        y.backward()
        assert (y.shape, y.item(), x.grad.asnumpy().tolist()) == ((), 2, [0, 1, 0])
        assert x.pick(mx.nd.array([2])).item() == 3


@pytest.mark.parametrize(("shape", "params", "index"), [((3,), {}, (1,)), ((2, 3, 4), {"keepdims": True}, (2, 3)),
                                                        ((2, 3, 4), {"axis": 0}, (3, 4))])  # fmt: skip
def test_the_index_of_pick_follows_from_the_data(shape, params, index):
    """As in MXNet: a program that picks the probabilities of labels binds with the shape of the data."""
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    assert mx.sym.pick(x, y, **params).infer_shape(x=shape)[0] == [shape, index]
    if shape == (2, 3, 4):
        assert mx.sym.batch_take(mx.sym.Reshape(x, shape=(-3, 0)), y).infer_shape(x=shape)[0] == [shape, (6,)]


def test_one_hot_of_numbers_that_a_type_does_not_hold():
    for dtype, row in (("uint8", [255, 44]), ("int8", [-1, 44]), ("int64", [-1, 300]), ("float16", [-1, 300])):
        assert nd.one_hot(nd.array([1]), 2, on_value=300, off_value=-1, dtype=dtype).asnumpy().tolist() == [row]
