"""What users of NumPy type without thinking: all, any, std, var, matmul, einsum, mixed operands, NumPy's files."""

import io
import pickle
import zipfile

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd


def normal(*shape, dtype="float32", seed=3):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# ---- reductions ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["all", "any", "std", "var"])
@pytest.mark.parametrize("axes", [{}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (0, 2)}])
def test_methods_are_numpys(name, axes):
    data = normal(2, 3, 4)
    data[data < -1] = 0
    want = getattr(data, name)(**axes)
    x = nd.array(data)
    found = getattr(x, name)(**axes)
    assert found.shape == (np.shape(want) or (1,)) and found.dtype == x.dtype
    np.testing.assert_allclose(found.asnumpy().reshape(np.shape(want)), want, rtol=1e-5)
    np.testing.assert_allclose(getattr(np, name)(x, **axes).asnumpy().reshape(np.shape(want)), want, rtol=1e-5)
    net = getattr(mx.sym.Variable("x"), name)(**axes)
    np.testing.assert_allclose(net.eval(x=x)[0].asnumpy().reshape(np.shape(want)), want, rtol=1e-5)


def test_degrees_of_freedom():
    data = normal(3, 5)
    for name in ("std", "var"):
        for ddof in (0, 1, 0.5):
            want = getattr(data, name)(axis=1, ddof=ddof)
            np.testing.assert_allclose(getattr(nd.array(data), name)(axis=1, ddof=ddof).asnumpy(), want, rtol=1e-5)
        assert np.isnan(getattr(nd.array(data), name)(axis=1, ddof=5).asnumpy()).all()
        with pytest.raises(TypeError, match="floating-point"):
            getattr(nd.array([1, 2], dtype="int32"), name)()


def test_the_gradient_of_std_is_0_where_all_elements_are_equal():
    x = nd.array([[1.0, 1.0], [1.0, 3.0]])
    x.attach_grad()
    with autograd.record():
        y = x.std(axis=1)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [[0, 0], [-0.5, 0.5]], rtol=1e-6)


def test_truths_of_nothing_and_of_nan():
    assert nd.array([]).all().item() == 1
    assert nd.array([]).any().item() == 0
    assert nd.array([float("nan")]).any().item() == nd.array([float("nan")]).all().item() == 1
    rows = nd.array([[1, 0], [0, 0], [2, 3]])
    assert rows[rows.any(axis=1)].asnumpy().tolist() == [[1, 0], [2, 3]]
    assert nd.array([200] * 300, dtype="uint8").any().item() == 1


# ---- products --------------------------------------------------------------------------------------------------------
EINSUMS = [
    ("ij,jk", (2, 3), (3, 4)), ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("ij,jk,kl->il", (2, 30), (30, 3), (3, 40)),
    ("ab,ac,ad->bcd", (2, 3), (2, 4), (2, 5)), ("...i,...i->...", (2, 3, 4), (3, 4)), ("i...->...", (2, 3, 4)),
    (" i j -> j i ", (2, 3)), ("iij->j", (3, 3, 2)), ("i,ij,jk,k->", (2,), (2, 3), (3, 4), (4,)),
    ("ijk,ijk,ijk", (2, 3, 4), (2, 3, 4), (2, 3, 4)),
]  # fmt: skip


@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: case[0])
def test_einsum(case):
    subscripts, *shapes = case
    arrays = [normal(*shape, dtype="float64", seed=k) for k, shape in enumerate(shapes)]
    want = np.einsum(subscripts, *arrays)
    given = [nd.array(a, dtype="float64") for a in arrays]
    for a in given:
        a.attach_grad()
    symbols = [mx.sym.Variable(f"x{k}") for k in range(len(given))]
    results = [
        nd.einsum(subscripts, *given),
        nd.einsum(*given, subscripts=subscripts),
        nd.einsum(subscripts, *given, optimize=False),
        mx.sym.einsum(subscripts, *symbols).eval(**{f"x{k}": a for k, a in enumerate(given)})[0],
        mx.graph.compiled(lambda *arrays: nd.einsum(subscripts, *arrays))(*given),
    ]
    for found in results:
        assert found.shape == (want.shape or (1,))
        np.testing.assert_allclose(found.asnumpy().reshape(want.shape), want, rtol=1e-10, atol=1e-12)


def test_einsum_multiplies_in_a_good_order():
    """From left to right, this would make an array of 8 GB."""
    a, b, c = nd.ones((1000, 1)), nd.ones((1, 1000)), nd.ones((1000, 2000))
    d = nd.ones((2000, 1))
    assert nd.einsum("ij,jk,kl,lm->im", a, b, c, d).shape == (1000, 1)
    x, y = nd.ones((50_000,)), nd.ones((50_000,))
    assert nd.einsum("i,j,j,i->", x, y, y, x).item() == 2.5e9


@pytest.mark.parametrize("call", [nd.einsum, mx.sym.einsum])
def test_einsum_without_subscripts(call):
    with pytest.raises(mx.MXNetError, match="subscripts"):
        call(nd.ones((2, 2)) if call is nd.einsum else mx.sym.Variable("x"))


def test_matmul_of_symbols_and_compiled_functions():
    a, b = normal(2, 1, 3, 4), normal(5, 4, 2)
    want = np.matmul(a, b)
    found = mx.sym.matmul(mx.sym.Variable("a"), mx.sym.Variable("b")).eval(a=nd.array(a), b=nd.array(b))[0]
    np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5, atol=1e-6)
    found = mx.graph.compiled(lambda a, b: nd.matmul(a, b))(nd.array(a), nd.array(b))
    np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5, atol=1e-6)


# ---- mixed operands --------------------------------------------------------------------------------------------------
def test_numpy_arrays_as_operands():
    data = normal(2, 3)
    x, other = nd.array(data), normal(2, 3, dtype="float64", seed=4)
    for found in (x + other, other + x, nd.add(x, other), nd.add(other, x)):
        assert type(found) is nd.NDArray and found.dtype == np.float32
        np.testing.assert_allclose(found.asnumpy(), data + other.astype("float32"), rtol=1e-6)
    np.testing.assert_array_equal(nd.maximum(x, other).asnumpy(), np.maximum(data, other.astype("float32")))
    np.testing.assert_array_equal(nd.greater(other, x).asnumpy(), other.astype("float32") > data)
    assert x[nd.greater(other, x)].shape == ((other > data).sum(),)
    with pytest.raises(TypeError, match="takes NDArrays and numbers"):
        nd.maximum(x, np.array([object()]))


@pytest.mark.parametrize("real", ["float16", "float32", "float64"])
@pytest.mark.parametrize("whole", ["int8", "uint8", "int32", "int64", "bool"])
def test_integers_become_the_floating_type_that_they_meet(real, whole):
    x, i = nd.array([1.5, -2.5], dtype=real), nd.array([1, 3], dtype=whole)
    numbers = i.asnumpy().astype(real)
    for found, want in (
        (x + i, x.asnumpy() + numbers), (i - x, numbers - x.asnumpy()), (x * i, x.asnumpy() * numbers),
        (x / i, x.asnumpy() / numbers), (i > x, numbers > x.asnumpy()), (x**i, x.asnumpy() ** numbers),
        (mx.graph.compiled(lambda x, i: x * i)(x, i), x.asnumpy() * numbers),
    ):  # fmt: skip
        assert found.dtype == np.dtype(real)
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-3)
    x.attach_grad()
    with autograd.record():
        y = x * i
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), numbers)
    x += i
    assert x.dtype == np.dtype(real)


def test_types_that_do_not_meet():
    x32, x64 = nd.array([1.5]), nd.array([1.5], dtype="float64")
    i32, i64 = nd.array([1], dtype="int32"), nd.array([1], dtype="int64")
    for use in (lambda: x32 + x64, lambda: i32 * i64, lambda: nd.broadcast_add(x32, i32)):
        with pytest.raises(TypeError, match="expected equal dtypes"):
            use()
    with pytest.raises(TypeError, match="out has dtype int32"):
        i32 += x32
    truths = nd.array([True], dtype="bool")
    assert (truths + i64).dtype == np.int64


# ---- NumPy's files ---------------------------------------------------------------------------------------------------
ARRAYS = {
    "float64": np.arange(6.0).reshape(2, 3), "float32": np.float32([1, 2]), "float16": np.float16([[1]]), "ints": np.arange(4),
    "bool": np.array([True, False]), "Fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "0-d": np.array(3.5),
    "big-endian": np.arange(3, dtype=">f4"), "empty": np.zeros((0, 3)), "view": np.arange(10.0)[::2],
}  # fmt: skip


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_files_of_numpy(save, tmp_path):
    save(tmp_path / "all.npz", **ARRAYS)
    found = nd.load(tmp_path / "all.npz")
    assert list(found) == list(ARRAYS)
    for name, want in ARRAYS.items():
        assert found[name].dtype == want.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found[name].asnumpy().reshape(want.shape), want)
        np.save(tmp_path / "one.npy", want)
        (one,) = nd.load(str(tmp_path / "one.npy"))
        np.testing.assert_array_equal(one.asnumpy().reshape(want.shape), want)
        one[:] = 0
    np.savez(tmp_path / "none.npz")
    assert len(nd.load(tmp_path / "none.npz")) == 0


def written(save, *arrays, **named):
    file = io.BytesIO()
    save(file, *arrays, **named)
    return file.getvalue()


class Evil:
    def __reduce__(self):
        return pytest.fail, ("the file was executed",)


NPY, NPZ = written(np.save, np.arange(100.0)), written(np.savez_compressed, a=np.arange(100.0))
HUGE = NPY.replace(b"(100,), }", b"(1000000000000,), }".ljust(9))


def archive_of(name, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (NPY[:-1], "the .npy file is damaged"),
        (NPY[:20], "the .npy file is damaged"),
        (b"\x93NUMPY", "the .npy file is damaged"),
        (NPY[:6] + b"\x09" + NPY[7:], "the .npy file is damaged"),
        (HUGE, "the .npy file is damaged"),
        (NPZ[:-30], "the .npz file is damaged"),
        (NPZ[:60] + b"\xff" * 20 + NPZ[80:], "the .npz file is damaged"),
        (archive_of("a.txt", b"text"), "the .npz file is damaged: a member"),
        (written(np.save, np.array([Evil()]), allow_pickle=True), "holds Python objects, which are not loaded"),
        (written(np.savez, a=np.array([Evil()], dtype=object)), "holds Python objects, which are not loaded"),
        (written(np.save, np.array([1j])), "complex"),
        (pickle.dumps([1]), "magic number"),
    ],
)
def test_damaged_files_of_numpy(content, message, tmp_path):
    (tmp_path / "x").write_bytes(content)
    for use in (lambda: nd.load(tmp_path / "x"), lambda: nd.load_frombuffer(content)):
        with pytest.raises(mx.MXNetError, match=message):
            use()


def test_packed_files_have_a_limit():
    content = written(np.savez_compressed, a=np.zeros(100_000))
    assert nd.load_frombuffer(content)["a"].shape == (100_000,)
    with pytest.raises(mx.MXNetError, match="unpacks to more than 1000 bytes"):
        nd.load_frombuffer(content, max_bytes=1000)
