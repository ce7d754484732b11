"""Sparse storage: what is made, what operators keep, products and their gradients, updates of rows, files."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from comparing import stored

import mxop as mx
from mxop import autograd, nd
from mxop.nd import sparse

DENSE = np.array([[0, 1, 0], [0, 0, 0], [2, 0, -3]], "float32")
OTHER = np.array([[0, 4, 5], [0, 0, 0], [0, 0, 6]], "float32")


pytestmark = pytest.mark.usefixtures("quiet")


# ---- making them -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "made",
    [
        lambda: sparse.csr_matrix(([1, 2, -3], [1, 0, 2], [0, 1, 1, 3]), shape=(3, 3)),
        lambda: sparse.csr_matrix(([1, 2, -3], ([0, 2, 2], [1, 0, 2])), shape=(3, 3)),
        lambda: sparse.csr_matrix(DENSE),
        lambda: sparse.csr_matrix(scipy.sparse.csc_matrix(DENSE)),
        lambda: sparse.array(scipy.sparse.coo_matrix(DENSE)),
        lambda: nd.array(scipy.sparse.csr_matrix(DENSE)),
        lambda: nd.array(sparse.row_sparse_array(DENSE)),
        lambda: sparse.row_sparse_array(([[2, 0, -3], [0, 1, 0]], [2, 0]), shape=(3, 3)),
        lambda: sparse.row_sparse_array(DENSE),
        lambda: nd.cast_storage(nd.array(DENSE), stype="csr"),
        lambda: sparse.row_sparse_array(DENSE).tostype("csr"),
        lambda: sparse.csr_matrix(DENSE).tostype("row_sparse"),
    ],
)
def test_making(made):
    x = made()
    assert x.shape == (3, 3) and x.dtype is np.float32 and x.size == 9 and len(x) == 3
    np.testing.assert_array_equal(x.asnumpy(), DENSE)
    np.testing.assert_array_equal(x.tostype("default").asnumpy(), DENSE)
    assert x.indices.dtype is np.int64 and x.indices.asnumpy().tolist() == ([1, 0, 2] if x.stype == "csr" else [0, 2])
    if x.stype == "csr":
        assert x.indptr.asnumpy().tolist() == [0, 1, 1, 3]
        np.testing.assert_array_equal(x.asscipy().toarray(), DENSE)
    for again in (x.copy(), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again.stype == x.stype
        np.testing.assert_array_equal(again.asnumpy(), DENSE)
    assert repr(x).endswith(f"<{type(x).__name__} 3x3 @cpu(0)>")
    x.check_format()


def test_sources_and_arrays_share_nothing():
    source = scipy.sparse.csr_matrix((np.array([1, 2, 3], "float32"), np.array([2, 0, 1]), np.array([0, 2, 3])), (2, 3))
    want = source.toarray()
    x = sparse.csr_matrix(source)  # whose columns are brought into order
    np.testing.assert_array_equal(source.toarray(), want)
    y = x * 1
    source.data[:], source.indices[:] = 9, 0
    x.asscipy().data[:] = 7
    for made in (x, y):
        np.testing.assert_array_equal(made.asnumpy(), want)
    values, rows = np.ones((2, 2), "float32"), np.array([0, 1])
    r = sparse.row_sparse_array((values, rows), shape=(3, 2))
    values[:], rows[:] = 5, 2
    assert r.asnumpy().tolist() == [[1, 1], [1, 1], [0, 0]]


def test_zeros():
    assert sparse.zeros("csr", (2, 3)).asnumpy().tolist() == [[0] * 3] * 2
    x = nd.zeros((4, 2, 2), stype="row_sparse", dtype="float64")
    assert x.stype == "row_sparse" and x.data.shape == (0, 2, 2) and x.dtype is np.float64
    assert sparse.csr_matrix((2, 3)).data.shape == (0,)
    assert nd.zeros((2,), stype="default").shape == (2,)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: sparse.csr_matrix(([1.0], [5], [0, 1]), shape=(1, 3)), "out of range"),
        (lambda: sparse.row_sparse_array(([[1.0]], [3]), shape=(2, 1)), "out of range"),
        (lambda: sparse.row_sparse_array(([[1.0], [2.0]], [0, 0]), shape=(2, 1)), "not in order, or name a row twice"),
        (lambda: sparse.csr_matrix(([1.0, 2.0], [1, 1], [0, 2]), shape=(1, 2)), "name a column twice"),
        (lambda: nd.ones((2, 2, 2)).tostype("csr"), "expected a matrix"),
        (lambda: nd.ones((2, 2)).tostype("coo"), "expected one of default, row_sparse, csr"),
        (lambda: nd.ones((2, 2), dtype="float16").tostype("csr"), "float16"),
        (lambda: sparse.array(np.ones(3)), "expected a sparse array"),
        (lambda: stored(DENSE, "csr").no_such_name, "no_such_name"),
        (lambda: nd.dot(stored(DENSE, "csr"), nd.ones((2, 2))), "operator dot"),
        (lambda: stored(DENSE, "csr") * nd.ones((2, 2)), "operator broadcast_mul"),
        (lambda: stored(DENSE, "csr")[7], "out of range"),
        (lambda: stored(DENSE, "csr")["a"], "CSRNDArray"),
        (lambda: stored(DENSE, "csr")[0, 1, 2], "at most 2"),
        (lambda: stored(DENSE, "csr")[::-1], "not positive"),
        (lambda: stored(DENSE, "csr")[0, 5], "out of range"),
        (lambda: stored(DENSE, "csr")._aux_data(2), "_aux_data"),
        (lambda: nd.square(nd.ones((2, 2)), out=stored(DENSE, "csr")), "shape"),
        (lambda: stored(DENSE, "csr") + "a", "_plus_scalar.*'a'"),
        (lambda: nd.take(stored(DENSE, "csr"), "a"), "operator take"),
        (lambda: sparse.csr_matrix(([1], [0], [0, 1]), shape="a"), "shape"),
        (lambda: sparse.zeros("csr", (2, -3)), "negative|-3"),
        (lambda: sparse.zeros("coo", (2, 3)), "coo"),
        (lambda: sparse.csr_matrix((2, 3), shape=(3, 3)), "or not shape=\\(3, 3\\)"),
        (lambda: sparse.csr_matrix("text"), "csr_matrix"),
        (lambda: sparse.csr_matrix(([1], 2, 3)), "csr_matrix"),
        (lambda: sparse.row_sparse_array(([1], None)), "row_sparse_array"),
        (lambda: sparse.row_sparse_array(([1, 2], [0]), shape=(3, 2)), "for 1 rows"),
    ],
)
def test_refused(call, match):
    with pytest.raises(mx.MXNetError, match=match):
        call()


def test_assignment_and_parts():
    x = stored(DENSE, "csr")
    np.testing.assert_array_equal(x[1:].asnumpy(), DENSE[1:])
    assert x[2].stype == "csr" and x[2].shape == (1, 3)
    np.testing.assert_array_equal(x[2, 0:2].asnumpy(), DENSE[2:, 0:2])
    for stype in ("csr", "row_sparse"):
        y = stored(DENSE, stype)
        y[:] = nd.array(OTHER)
        np.testing.assert_array_equal(y.asnumpy(), OTHER)
        with pytest.raises(mx.MXNetError, match="as a whole alone"):
            y[0] = 1
    target = nd.zeros((3, 3))
    x.copyto(target)
    np.testing.assert_array_equal(target.asnumpy(), DENSE)


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_copies_between_storages(stype):
    x, d = stored(DENSE, stype), nd.array(DENSE)
    for kind in ("default", "csr", "row_sparse"):
        target = stored(OTHER, kind)
        assert x.copyto(target) is target and target.stype == kind
        np.testing.assert_array_equal(target.asnumpy(), DENSE)
    assert d.copyto(x) is x and x.copyto(mx.cpu()) is not x and x.as_in_context(mx.cpu()) is x
    assert x.copyto(mx.cpu()).stype == stype


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_results_into_sparse_arrays(stype):
    x, out, flat = stored(DENSE, stype), stored(OTHER, stype), nd.zeros((3, 3))
    assert nd.square(x, out=out) is out and nd.square(x, out=flat) is flat
    for found in (out, flat):
        np.testing.assert_array_equal(found.asnumpy(), DENSE**2)
    assert nd.square(nd.array(OTHER), out=out) is out and nd.exp(x, out=flat) is flat
    np.testing.assert_array_equal(out.asnumpy(), OTHER**2)
    assert nd.cast_storage(nd.array(DENSE), stype=stype, out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), DENSE)
    before = x
    x += x
    x *= 2
    assert x is before and x.stype == stype
    np.testing.assert_array_equal(x.asnumpy(), 4 * DENSE)


def test_parts_and_what_methods_give():
    x, r = stored(DENSE, "csr"), stored(DENSE, "row_sparse")
    assert x._aux_types == [np.int64] * 2 and r._num_aux == 1 and r._aux_data(0).asnumpy().tolist() == [0, 2]
    np.testing.assert_array_equal(x.T.asnumpy(), DENSE.T)
    assert nd.slice(x, begin=(1,), end=(3,)).stype == "csr" and x.slice(begin=(0, 1), end=(2, 3)).shape == (2, 2)
    assert x[-1].shape == (1, 3) and x[0:0].shape == (0, 3) and x[::2].asnumpy().tolist() == DENSE[::2].tolist()
    squares = nd._internal._square_sum(r, axis=1, keepdims=True)
    assert squares.stype == "row_sparse" and squares.asnumpy().ravel().tolist() == [1, 0, 13]
    assert nd._internal._square_sum(r, axis=1).asnumpy().tolist() == [1, 0, 13]
    large = sparse.csr_matrix(([1, 2, 3], [40, 0, 900], [0, 1, 1, 3]), shape=(3, 1000))
    product = nd.dot(large, nd.ones((3, 2)), transpose_a=True)
    assert product.indices.asnumpy().tolist() == [0, 40, 900] and product.data.asnumpy().tolist() == [
        [2, 2],
        [1, 1],
        [3, 3],
    ]
    table = sparse.row_sparse_array(([[1, 1], [5, 5]], [40, 900]), shape=(1000, 2))
    assert nd.dot(large, table).asnumpy().tolist() == [[1, 1], [0, 0], [15, 15]]


# ---- operators ---------------------------------------------------------------------------------------------------------
#: What MXNet 1.9.1 says of the storage of results: a letter for each operand (csr, row_sparse, dense, vector), then the result.
KEPT = {
    "add": "cc:c cr:d cd:d rr:r rd:d", "subtract": "cc:c cr:d rr:r dc:d", "multiply": "cc:c cd:c cv:c rr:r rd:r rv:d dc:c dr:r",
    "divide": "cc:d cd:d cv:c rr:d rd:d",
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_storage_of_two(name):
    kinds = {"c": "csr", "r": "row_sparse", "d": "default", "v": "default"}
    for row in KEPT[name].split():
        a, b = DENSE, np.array([1, 2, 4], "float32") if row[1] == "v" else OTHER
        found = getattr(sparse, name)(stored(a, kinds[row[0]]), stored(b, kinds[row[1]]))
        assert getattr(found, "stype", "default") == kinds[row[3]], row
        if row[3] != "c" or name != "divide":  # what is not stored stays zero, where 0 / 0 is NaN
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(found.asnumpy(), getattr(np, name)(a, b), err_msg=row)


@pytest.mark.parametrize("name", ["maximum", "minimum", "hypot"])
def test_two_row_sparse_arrays_give_one(name):
    x, y = (mx.sym.Variable(n, stype="row_sparse") for n in "xy")
    for dtype in ("float32", "int32"):
        a, b = (nd.array(v, dtype=dtype) for v in (DENSE, OTHER))
        sparse_ones = a.tostype("row_sparse"), b.tostype("row_sparse")
        found = [getattr(nd, name)(*sparse_ones), getattr(nd._internal, f"_{name}")(*sparse_ones)]
        found += getattr(mx.sym, name)(x, y).bind(mx.cpu(), dict(zip("xy", sparse_ones, strict=True))).forward()
        for f in found:
            assert f.stype == "row_sparse" and f.dtype == a.dtype and f.indices.asnumpy().tolist() == [0, 2]
            np.testing.assert_array_equal(f.asnumpy(), getattr(nd, name)(a, b).asnumpy())
    a, b = stored(DENSE, "csr"), stored(OTHER, "csr")
    np.testing.assert_array_equal(getattr(nd, name)(a, b).asnumpy(), getattr(nd, name)(a.todense(), b.todense()).asnumpy())


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_storage_of_one(stype):
    x = stored(DENSE, stype)
    for name in ("abs", "sign", "square", "sin", "tanh", "expm1", "floor", "negative", "relu", "stop_gradient"):
        found = getattr(nd, name)(x)
        assert found.stype == stype
        np.testing.assert_array_equal(found.asnumpy(), getattr(nd, name)(nd.array(DENSE)).asnumpy(), err_msg=name)
    assert (x * 2).stype == (2 * x).stype == (x / 2).stype == (-x).stype == (x > 0).stype == x.square().stype == stype
    for found, want in ((x + 1, DENSE + 1), (x >= 0, DENSE >= 0), (nd.exp(x), np.exp(DENSE)), (x**2, DENSE**2)):
        assert found.stype == "default"
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-6)
    assert nd.clip(x, 0, 1).stype == stype and getattr(nd.clip(x, 1, 2), "stype", "default") == "default"


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_operators_on_what_is_stored_alone(stype):
    there = DENSE != 0 if stype == "csr" else (DENSE != 0).any(1, keepdims=True)
    x = stored(DENSE, stype)
    for name, want in (("_scatter_plus_scalar", DENSE + 3), ("_scatter_minus_scalar", DENSE - 3)):
        graph = getattr(mx.sym._internal, name)(mx.sym.Variable("x", stype=stype), scalar=3)
        for found in (getattr(nd._internal, name)(x, scalar=3), graph.bind(mx.cpu(), {"x": x}).forward()[0]):
            assert found.stype == stype
            np.testing.assert_array_equal(found.asnumpy(), np.where(there, want, 0))
        np.testing.assert_array_equal(getattr(nd._internal, name)(nd.array(DENSE), scalar=3).asnumpy(), want)
    assert (x + 3).stype == "default"


@pytest.mark.parametrize("divisor", ["default", "row_sparse"])
def test_rows_that_are_not_stored_are_divided_by_nothing(divisor):
    found = nd._internal._scatter_elemwise_div(stored(DENSE, "row_sparse"), stored(OTHER, divisor))
    assert found.stype == "row_sparse" and found.indices.asnumpy().tolist() == [0, 2]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found.data.asnumpy(), (DENSE / OTHER)[[0, 2]])


def test_a_dense_fallback_says_so_once(own, monkeypatch):
    first, second = (own(mx.op.elementwise(lambda data: data + 1, name=f"test_sparse_{name}")) for name in ("first", "second"))
    x = stored(DENSE, "csr")
    with pytest.warns(UserWarning, match="operator test_sparse_first has no form for sparse arrays"):
        first(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first(x)
        monkeypatch.setenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")
        second(x)


def test_other_operators():
    x, r = stored(DENSE, "csr"), stored(DENSE, "row_sparse")
    assert nd.sum(x).asnumpy().tolist() == [0] and nd.sum(x, axis=1).asnumpy().tolist() == [1, 0, -1]
    np.testing.assert_allclose(nd.mean(x, axis=0).asnumpy(), DENSE.mean(0), rtol=1e-6)
    assert nd.concat(x, x, dim=0).stype == "csr" and nd.concat(x, x, dim=0).shape == (6, 3)
    assert nd.add_n(r, r).stype == "row_sparse"
    assert nd.take(x, nd.array([2, 0])).asnumpy().tolist() == DENSE[[2, 0]].tolist()
    kept = sparse.retain(r, nd.array([1, 2]))
    assert kept.indices.asnumpy().tolist() == [2] and r.retain(nd.array([0])).indices.asnumpy().tolist() == [0]
    assert nd.zeros_like(r).stype == "row_sparse"
    counts = [nd.contrib.getnnz(x, **axis) for axis in ({}, {"axis": 0}, {"axis": 1})]
    assert [c.asnumpy().tolist() for c in counts] == [[3], [1, 1, 1], [1, 0, 2]]
    places = nd.array([0, 0, 2]), nd.array([1, 2, 0])
    assert nd.contrib.edge_id(x, *places).asnumpy().tolist() == [1, -1, 2]
    assert nd.contrib.edge_id(nd.array(DENSE), *places).asnumpy().tolist() == [1, -1, 2]
    symbol = mx.sym.sparse.retain(mx.sym.Variable("x"), mx.sym.Variable("i"))
    assert symbol.eval(x=nd.array(DENSE), i=nd.array([2]))[0].asnumpy().tolist() == [[0] * 3, [0] * 3, [2, 0, -3]]


# ---- products ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(3, 2), (3,)])
@pytest.mark.parametrize("transpose", [False, True])
def test_products(shape, transpose):
    rng = np.random.default_rng(0)
    w, left = rng.normal(size=shape).astype("float32"), DENSE.T if transpose else DENSE
    found = nd.dot(stored(DENSE, "csr"), nd.array(w), transpose_a=transpose)
    assert getattr(found, "stype", "default") == ("row_sparse" if transpose else "default")
    np.testing.assert_allclose(found.asnumpy(), left @ w, rtol=1e-6)
    found = nd.dot(nd.array(OTHER), stored(DENSE, "csr"))
    assert found.stype == "csr"
    np.testing.assert_array_equal(found.asnumpy(), OTHER @ DENSE)


@pytest.mark.parametrize("options, stype", [
    ({"transpose_b": True}, "csr"), ({"transpose_b": True, "forward_stype": "default"}, "default"),
    ({"transpose_a": True}, "default"), ({"transpose_a": True, "forward_stype": "csr"}, "csr"),
])  # fmt: skip
def test_storage_of_products_with_a_csr_matrix_on_the_right(options, stype):
    """As MXNet 1.9.1 stores them."""
    x = nd.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4]])
    found = nd.dot(x, x.tostype("csr"), **options)
    assert getattr(found, "stype", "default") == stype
    assert found.asnumpy().tolist() == (
        [[5, 0, 8], [0, 0, 0], [8, 0, 25]]
        if "transpose_b" in options
        else [[9, 0, 0, 12], [0, 1, 0, 2], [0] * 4, [12, 2, 0, 20]]
    )


def test_products_of_two_types_are_refused():
    """As of dense arrays; with a csr matrix on the right, the result was of the wider type."""
    with pytest.raises(mx.MXNetError, match="float64"):
        nd.dot(nd.array(OTHER, dtype="float64"), stored(DENSE, "csr"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 3, 16, 63, 64, 65, 150])
def test_products_of_every_width(dtype, width):
    rng = np.random.default_rng(2)
    left = scipy.sparse.random(300, 70, 0.05, "csr", dtype, rng)
    left = scipy.sparse.vstack([left, scipy.sparse.csr_matrix((3, 70), dtype=dtype)]).tocsr()  # rows without elements
    right = rng.normal(size=(70, width)).astype(dtype)
    found = nd.dot(sparse.csr_matrix(left), nd.array(right, dtype=dtype))
    assert found.shape == (303, width) and found.dtype.__name__ == dtype
    np.testing.assert_allclose(found.asnumpy(), left.toarray() @ right, rtol=1e-5, atol=1e-6)
    assert (
        nd.dot(sparse.zeros("csr", (2, 70), dtype=dtype), nd.array(right, dtype=dtype)).asnumpy().tolist() == [[0] * width] * 2
    )


def test_gradients_of_products():
    x, w = stored(DENSE, "csr"), nd.array([[1, 2], [3, 4], [5, 6]])
    w.attach_grad()
    with autograd.record():
        y = nd.square(nd.dot(x, w)).sum()
        first = autograd.grad(y, w, create_graph=True)[0]
        total = nd.square(first).sum()
    total.backward()
    gram = 2 * DENSE.T @ DENSE
    np.testing.assert_allclose(first.asnumpy(), gram @ w.asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(w.grad.asnumpy(), 2 * gram @ gram @ w.asnumpy(), rtol=1e-6)


def test_gradients_through_a_fallback():
    x, w = stored(DENSE, "csr"), nd.array([1, 2, 3])
    w.attach_grad()
    with autograd.record():
        y = (x * w + x).sum()
    y.backward()
    np.testing.assert_array_equal(w.grad.asnumpy(), DENSE.sum(0))


# ---- updates -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "states", "params"),
    [("sgd_update", 0, {"wd": 0.1}), ("sgd_mom_update", 1, {"momentum": 0.5}), ("adam_update", 2, {})],
)
def test_updates_of_rows(name, states, params):
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.5, 1, (4, 2)).astype("float32") for _ in range(states + 1)]
    grad = np.zeros((4, 2), "float32")
    grad[[1, 3]] = rng.normal(size=(2, 2))
    lazy, dense, whole = ([nd.array(v) for v in values] for _ in range(3))
    update = getattr(nd, name)
    for arrays, g, options in ((lazy, stored(grad, "row_sparse"), {}), (dense, nd.array(grad), {}),
                               (whole, stored(grad, "row_sparse"), {"lazy_update": False})):  # fmt: skip
        found = update(arrays[0], g, *arrays[1:], lr=0.1, out=arrays[0], **params, **options)
        assert found is arrays[0]
    for a, b, c, before in zip(lazy, dense, whole, values, strict=True):
        np.testing.assert_allclose(a.asnumpy()[[1, 3]], b.asnumpy()[[1, 3]], rtol=1e-6)
        np.testing.assert_array_equal(a.asnumpy()[[0, 2]], before[[0, 2]])
        np.testing.assert_array_equal(c.asnumpy(), b.asnumpy())


# ---- files -------------------------------------------------------------------------------------------------------------
def test_files(tmp_path):
    path = str(tmp_path / "x.params")
    nd.save(path, {"c": stored(DENSE, "csr"), "r": stored(DENSE, "row_sparse"), "d": nd.array(DENSE)})
    found = nd.load(path)
    assert {k: getattr(v, "stype", "default") for k, v in found.items()} == {
        "c": "csr",
        "r": "row_sparse",
        "d": "default",
    }
    for x in found.values():
        np.testing.assert_array_equal(x.asnumpy(), DENSE)
    nd.save(path, stored(DENSE, "csr"))
    assert nd.load(path)[0].stype == "csr"


def test_what_is_too_large_to_be_dense_is_an_error_of_memory():
    matrix = mx.nd.sparse.csr_matrix((3, 1 << 45))
    for dense in (matrix.asnumpy, lambda: np.asarray(matrix), lambda: matrix.tostype("default")):
        with pytest.raises(MemoryError) as caught:
            dense()
        assert isinstance(caught.value, mx.MXNetError)


def test_sparse_arrays_are_arrays():
    csr, rows, plain = nd.zeros((2, 2), stype="csr"), nd.zeros((2, 2), stype="row_sparse"), nd.zeros((2, 2))
    for x in (csr, rows, plain):
        assert isinstance(x, nd.NDArray) and issubclass(type(x), nd.NDArray)
    assert isinstance(csr, nd.sparse.CSRNDArray) and not isinstance(plain, nd.sparse.BaseSparseNDArray)

    class Own(nd.NDArray):
        pass

    assert not isinstance(csr, Own) and not isinstance(3, nd.NDArray) and not issubclass(int, nd.NDArray)
    assert pickle.loads(pickle.dumps(nd.NDArray)) is nd.NDArray


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_a_device_of_the_cpu_stays(stype):
    place = mx.cpu(1)
    x = nd.array([[1, 0], [0, 2]], ctx=place).tostype(stype)
    y = nd.zeros((2, 2), stype=stype, ctx=place)
    for found in (x, y, x * 2, x + y, x.copy(), x.detach(), x.astype("int32"), x.data, x.indices, x.tostype("default"),
                  nd.exp(x), y.tostype(stype)):  # fmt: skip
        assert found.context == place
    x.attach_grad()
    assert x.grad.context == place
    moved = x.as_in_context(mx.cpu(0))
    moved[:] = 7
    assert moved.context == mx.cpu(0) and x.context == place and x.data.asnumpy().tolist() != moved.data.asnumpy().tolist()
    assert x.copyto(mx.cpu(2)).context == mx.cpu(2) and x.as_in_context(place) is x
    with mx.AttrScope(ctx_group="there"):
        symbol = mx.sym.Variable("x", stype=stype) * 1
    bound = symbol.simple_bind(mx.cpu(), group2ctx={"there": place}, x=(2, 2))
    assert bound.arg_dict["x"].context == place


def test_parts_that_make_no_array():
    doubled = scipy.sparse.csr_matrix(([1.0, 2.0, 3.0], [1, 0, 1], [0, 3]), shape=(1, 2))
    x = sparse.csr_matrix(doubled)
    assert x.indices.asnumpy().tolist() == [0, 1] and x.data.asnumpy().tolist() == [2, 4] and doubled.nnz == 3
    for make in (
        lambda: sparse.csr_matrix(([], [], [0, 0])),
        lambda: sparse.row_sparse_array((np.zeros((0, 3)), [])),
    ):
        with pytest.raises(ValueError, match="invalid shape"):
            make()
    with pytest.raises(mx.MXNetError, match="indptr does not rise"):  # SciPy would read beside the arrays
        sparse.csr_matrix(([7, 8, 9], [0, 2, 1], [0, 5, 2, 3]), shape=(3, 4))
    with pytest.warns(UserWarning, match="invalid_arg='no' is ignored"), pytest.raises(mx.MXNetError, match="missing: indices"):
        sparse.retain(nd.ones((2, 2)), invalid_arg="no")


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_adding_nothing_keeps_the_storage(stype):
    x = nd.array([[1, 0], [0, 2]]).tostype(stype)
    assert nd.contrib.quadratic(x, a=1, b=2).stype == stype and nd.contrib.quadratic(x, a=1, c=3).stype == "default"
    assert (x + 0).stype == (0 + x).stype == (x - 0).stype == stype
    assert (x + 1).stype == (0 - x).stype == "default"


def test_names_of_arguments():
    assert nd.cast_storage(data=nd.ones((1, 2)), stype="csr").stype == "csr"
    assert nd.sparse.cast_storage(data=nd.ones((1, 2)), stype="row_sparse").writable


@pytest.mark.parametrize("call", [
    lambda x, rows, out: nd.cast_storage(x, "csr", out=out),
    lambda x, rows, out: nd.sgd_update(x, rows, lr=0.1, out=out),
    lambda x, rows, out: nd.sgd_update(rows, rows, lr=0.1, out=out),
    lambda x, rows, out: nd.sparse.dot(x.tostype("csr"), x, out=out),
])  # fmt: skip
@pytest.mark.parametrize("out", [5, "x", [nd.ones((2, 2))]])
def test_out_is_an_array(call, out):
    x = nd.ones((2, 2))
    with pytest.raises(mx.MXNetError, match=f"out must be an array, got {type(out).__name__}"):
        call(x, x.tostype("row_sparse"), out)
