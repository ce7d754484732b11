"""NDArrays and other libraries: NumPy's functions, foreign operands, buffers, DLPack, pickle."""

import copy
import gc
import operator
import pickle
import sys
import warnings
import weakref

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd

DTYPES = ["float16", "float32", "float64", "uint8", "int8", "int32", "int64", "bool"]


# ---- operands -------------------------------------------------------------------------------------------------------
def test_numbers_of_every_kind_are_operands():
    x = nd.array([1, 2, 3])
    for two in (2, 2.0, np.float32(2), np.float64(2), np.int64(2), np.uint8(2), np.array(2), np.array(2.0)):
        for found, want in ((x + two, [3, 4, 5]), (two * x, [2, 4, 6]), (two - x, [1, 0, -1]), (x**two, [1, 4, 9])):
            assert isinstance(found, nd.NDArray) and found.dtype is np.float32
            assert found.asnumpy().tolist() == want
    assert (x + True).asnumpy().tolist() == (np.True_ + x).asnumpy().tolist() == [2, 3, 4]


def test_numpy_arrays_are_operands():
    x = nd.array([1, 2, 3])
    host = np.array([10, 20, 30])
    for found, want in (
        (x + host, [11, 22, 33]),
        (host + x, [11, 22, 33]),
        (host - x, [9, 18, 27]),
        (host / x, [10, 10, 10]),
        (x < host, [1, 1, 1]),
        (host <= x, [0, 0, 0]),
        (np.array([[1], [2]]) * x, [[1, 2, 3], [2, 4, 6]]),
        (host[::-1] + x, [31, 22, 13]),
    ):
        assert isinstance(found, nd.NDArray) and found.dtype is np.float32
        assert found.asnumpy().tolist() == want
    x += host
    assert x.asnumpy().tolist() == [11, 22, 33]
    host = host.astype("float32")
    host += x  # the NumPy array stays one
    assert type(host) is np.ndarray and host.tolist() == [21, 42, 63]


def test_numpy_operands_are_differentiated_around():
    x = nd.array([1, 2, 3])
    x.attach_grad()
    with autograd.record():
        y = np.array([1, 10, 100]) * x + np.sin(x) - np.multiply(x, x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.array([1, 10, 100]) + np.cos([1, 2, 3]) - 2 * np.arange(1, 4), rtol=1e-5)


@pytest.mark.parametrize("other", [[1, 2, 3], "abc", object(), {}, np.array(["a", "b", "c"]), 1j])
def test_other_operands_are_refused(other):
    x = nd.array([1, 2, 3])
    with pytest.raises(TypeError):
        x + other
    with pytest.raises(TypeError):
        other + x
    assert (x == None) is False and (x != None) is True  # noqa: E711


@pytest.mark.parametrize("other", [[1, 2, 3], (1, 2, 3), []])
def test_lists_are_not_compared(other):
    """Python's answer, False whatever the list holds, would pass for a result; MXNet refuses, too."""
    x = nd.array([1, 2, 3])
    for compare in (operator.eq, operator.ne):
        with pytest.raises(TypeError, match=rf"NDArray [!=]= {type(other).__name__} is not supported: make an array of it"):
            compare(x, other)
        with pytest.raises(TypeError, match=r"mx\.nd\.array"):
            compare(other, x)


# ---- ufuncs ---------------------------------------------------------------------------------------------------------
UFUNCS = """
absolute add arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh deg2rad degrees divide equal exp expm1 fabs floor
floor_divide greater greater_equal hypot less less_equal log log10 log1p log2 logical_and logical_or logical_xor maximum
minimum mod multiply negative not_equal power rad2deg radians reciprocal remainder rint sign sin sinh sqrt square subtract tan
tanh true_divide trunc
"""


@pytest.mark.parametrize("name", UFUNCS.split())
def test_ufuncs_that_are_operators(name):
    ufunc = getattr(np, name)
    low = 1.1 if name == "arccosh" else 0.1
    a = np.linspace(low, low + 0.8, 6, dtype="float32").reshape(2, 3)
    b = np.array([0.3, 0.5, 0.9], "float32")
    arguments = (a,) if ufunc.nin == 1 else (a, b)
    found = ufunc(*(nd.array(v) for v in arguments))
    assert isinstance(found, nd.NDArray)
    np.testing.assert_allclose(found.asnumpy(), ufunc(*arguments), rtol=2e-5, atol=1e-6)
    if ufunc.nin == 2:
        for left, right in (
            (nd.array(a), b),
            (a, nd.array(b)),
            (nd.array(a), 0.5),
            (0.5, nd.array(b)),
            (nd.array(a), np.float32(2)),
        ):
            found = ufunc(left, right)
            assert isinstance(found, nd.NDArray)
            want = ufunc(*(v.asnumpy() if isinstance(v, nd.NDArray) else v for v in (left, right)))
            np.testing.assert_allclose(found.asnumpy(), want, rtol=2e-5, atol=1e-6)


def test_ufuncs_that_are_not():
    x = nd.array([1.5, -2.5])
    found = np.copysign(x, nd.array([-1, 1]))
    assert isinstance(found, nd.NDArray) and found.asnumpy().tolist() == [-1.5, 2.5]
    fraction, whole = np.modf(x)
    assert isinstance(fraction, nd.NDArray) and whole.asnumpy().tolist() == [1, -2]
    assert isinstance(np.isnan(x), nd.NDArray) and np.isnan(x).dtype is np.bool_
    assert np.exp(nd.array([0, 1], dtype="int32")).dtype is np.float64  # as NumPy does for integers
    assert np.add.reduce(nd.array([1, 2, 3])) == 6
    assert np.add.outer(x, x).shape == (2, 2)
    assert np.add(x, 1, where=np.array([True, True])).asnumpy().tolist() == [2.5, -1.5]
    assert np.sqrt(x, where=x > 0, out=np.full(2, 7.0)).tolist() == [np.sqrt(np.float32(1.5)), 7]
    assert type(np.spacing(x)) is nd.NDArray and type(np.signbit(x)) is nd.NDArray


def test_ufuncs_with_out():
    x, out = nd.array([1, 2]), nd.zeros((2,))
    assert np.add(x, 1, out=out) is out and out.asnumpy().tolist() == [2, 3]
    assert np.copysign(x, -1, out=out) is out and out.asnumpy().tolist() == [-1, -2]
    host = np.zeros(2, "float32")
    assert np.add(x, 1, out=host) is host and host.tolist() == [2, 3]
    with pytest.raises(mx.MXNetError, match=r"out has shape \(3,\)"):
        np.add(x, 1, out=nd.zeros((3,)))


def test_numpy_does_not_lose_a_gradient_silently():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        with pytest.raises(mx.MXNetError, match=r"copysign.*gradient"):
            np.copysign(x, -1)
        assert np.copysign(x.detach(), -1).asnumpy().tolist() == [-1, -2]


def test_numpy_functions_take_arrays():
    x = nd.array([[1, 2], [3, 4]])
    assert np.asarray(x).tolist() == np.array(x).tolist() == [[1, 2], [3, 4]]
    assert np.sum(x).item() == 10 and np.mean(x, axis=0).tolist() == [2, 3]
    assert np.concatenate([x, x]).shape == (4, 2) and np.reshape(x, 4).shape == (4,) and np.transpose(x).shape == (2, 2)
    assert np.argsort(-x, axis=1, kind="stable").tolist() == [[1, 0], [1, 0]]  # NumPy's own, for the method has no `kind`
    np.testing.assert_array_equal(x, [[1, 2], [3, 4]])


# ---- buffers --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", DTYPES)
def test_buffers_share_memory(dtype):
    x = nd.zeros((2, 3), dtype=dtype)
    view = np.asarray(x)
    view[0, 1] = 1
    assert x.asnumpy()[0, 1] == 1 and memoryview(x).shape == (2, 3)
    assert np.asarray(x.T).T.tolist() == x.asnumpy().tolist()
    assert np.shares_memory(np.asarray(x), np.asarray(x[:, ::-1]))


def test_array_protocol():
    x = nd.array([1, 2])
    assert x.__array__(dtype="int32").dtype == np.int32
    copied = x.__array__(copy=True)
    copied[:] = 0
    assert x.asnumpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="without a copy"):
        x.__array__(dtype="int32", copy=False)


def test_a_cast_that_numpy_refuses():
    pytest.importorskip("ml_dtypes")
    with pytest.raises(mx.errors.OpTypeError, match=r"datetime64|M8"):
        np.asarray(nd.array([1, 2], dtype="bfloat16"), dtype="M8[s]")


def test_from_numpy():
    host = np.arange(6, dtype="float32").reshape(2, 3)
    for source in (host.T, host[:, ::-1], host[:, 1:]):
        x = nd.from_dlpack(source)
        assert x.shape == source.shape
        np.testing.assert_array_equal(x.asnumpy(), source)
        assert np.shares_memory(np.asarray(x), host)
        with pytest.raises(ValueError, match="not in C order"):
            nd.from_numpy(source)
    assert not np.shares_memory(np.asarray(nd.from_numpy(host, zero_copy=False)), host)
    x = nd.from_numpy(host)
    with pytest.raises(ValueError, match="read-only"):
        host[0, 0] = 1
    x[0, 0] = 100
    assert host[0, 0] == 100
    for part, at in (
        (host, (0, 1)),
        (host[1:], (1, 0)),
        (host.reshape(-1), (0, 0)),
    ):  # a second array over the same memory
        again = nd.from_numpy(part, zero_copy=True)
        assert again.writable
        again[:] = 7
        assert host[at] == 7 == x[at].item()
        for fixed in (host, part):
            with pytest.raises(ValueError, match="read-only"):
                fixed[...] = 1
    part = np.zeros(4, "float32")[1:]
    for _ in range(2):
        nd.from_numpy(part)[:] = 5
    assert part.base.tolist() == [0, 5, 5, 5] and part.base.flags.writeable and not part.flags.writeable
    fixed = np.frombuffer(bytes(8), "float32")
    assert not nd.from_numpy(fixed).writable and not nd.from_numpy(fixed).writable
    for bad, error in (
        (np.zeros(2, ">f4"), ValueError),
        (np.zeros(2, "int16"), TypeError),
        (np.zeros(2, "complex64"), TypeError),
        ([1, 2], TypeError),
        (np.zeros(3, dtype=[("a", "u1"), ("b", "f4")])["b"], ValueError),
    ):
        with pytest.raises(mx.MXNetError) as caught:
            nd.from_numpy(bad)
        assert isinstance(caught.value, error)


def test_memory_outlives_its_owner():
    host = np.arange(4, dtype="float32")
    alive = weakref.ref(host)
    x = nd.from_numpy(host)[1:]
    del host
    gc.collect()
    assert alive() is not None and x.asnumpy().tolist() == [1, 2, 3]
    del x
    gc.collect()
    assert alive() is None
    view = np.asarray(nd.arange(3))
    gc.collect()
    nd.zeros((3,))  # would reuse the memory if it had been given back
    assert view.tolist() == [0, 1, 2]


# ---- DLPack ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_dlpack_with_numpy_copies_nothing(dtype):
    x = nd.array([[1, 2, 3], [4, 5, 6]], dtype=dtype)
    host = np.from_dlpack(x)
    assert host.dtype == dtype and np.shares_memory(host, np.asarray(x))
    source = np.arange(6, dtype=dtype).reshape(2, 3)[:, ::2]
    y = nd.from_dlpack(source)
    assert y.dtype is np.dtype(dtype).type and np.shares_memory(np.asarray(y), source)
    y[:] = 7
    assert (source == 7).all()
    np.testing.assert_array_equal(np.from_dlpack(x[:, ::-1]), x.asnumpy()[:, ::-1])
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_capsules_and_lifetime():
    x = nd.arange(3)
    for make in (
        nd.to_dlpack_for_read,
        nd.to_dlpack_for_write,
        lambda a: a.to_dlpack_for_read(),
        lambda a: a.__dlpack__(max_version=(1, 0)),
    ):
        y = nd.from_dlpack(make(x))
        y[0] = 5
        assert x.asnumpy().tolist() == [5, 1, 2]
        x[0] = 0
    y = nd.from_dlpack(nd.from_dlpack(nd.arange(3)).to_dlpack_for_write())
    gc.collect()
    nd.zeros((3,))
    assert y.asnumpy().tolist() == [0, 1, 2]
    assert nd.from_dlpack(nd.empty((0, 2))).shape == (0, 2)


def test_dlpack_keeps_memory_read_only():
    host = np.zeros(2, "float32")
    host.flags.writeable = False
    try:
        y = nd.from_dlpack(host)
    except BufferError:  # older NumPy refuses to export it
        return
    with pytest.raises(mx.MXNetError, match="read-only"):
        y[:] = 1
    assert not host.any()


def test_an_exporter_without_keywords():
    class Old:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    assert nd.from_dlpack(Old(np.arange(3.0))).asnumpy().tolist() == [0, 1, 2]


def test_bad_dlpack():
    with pytest.raises(mx.MXNetError, match="list"):
        nd.from_dlpack([1, 2])
    with pytest.raises(mx.MXNetError, match="int16"):
        nd.from_dlpack(np.zeros(2, "int16"))


def test_torch_shares_memory():
    torch = pytest.importorskip("torch")
    x = nd.arange(3)
    t = torch.from_dlpack(x)
    t += 1
    assert x.asnumpy().tolist() == [1, 2, 3]
    y = nd.from_dlpack(torch.ones(2))
    assert y.asnumpy().tolist() == [1, 1]


# ---- pickle and copy ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", DTYPES)
def test_pickle(protocol, dtype):
    for x in (
        nd.array([[0, 1, 2], [3, 4, 5]], dtype=dtype),
        nd.array([[0, 1, 2], [3, 4, 5]], dtype=dtype)[:, ::-1],
        nd.array(1, dtype=dtype),
        nd.empty((0, 3), dtype=dtype),
        nd.ones((1,), ctx=mx.cpu(1), dtype=dtype),
    ):
        y = pickle.loads(pickle.dumps(x, protocol=protocol))
        assert y.dtype is x.dtype and y.shape == x.shape and y.context == x.context
        np.testing.assert_array_equal(y.asnumpy(), x.asnumpy())
        y[...] = 1  # may be written


def test_states_as_mxnet_pickles_them():
    def state(array):
        return {"handle": bytearray(nd.save_tobuffer([array])[24:-8])}

    for like in (nd.zeros((2,)), nd.NDArray(None), nd.zeros((1,) * 9, dtype="int32")):
        for value in (nd.array([[1, 2], [3, 4]], dtype="float64"), nd.ones((1,) * 10, dtype="uint8"), nd.array([5])):
            like.attach_grad()
            like.__setstate__(state(value))
            assert like.shape == value.shape and like.dtype is value.dtype and like.grad is None
            np.testing.assert_array_equal(like.asnumpy(), value.asnumpy())
            np.testing.assert_array_equal((like + like).asnumpy(), 2 * value.asnumpy())
    rows = nd.sparse.row_sparse_array((nd.ones((1, 3)), [2]), shape=(4, 3))
    for value, other in ((rows, nd.sparse.zeros("csr", (2, 2))), (rows.tostype("default").tostype("csr"), rows)):
        like = type(value)(None)
        like.__setstate__(state(value))
        assert like.shape == (4, 3) and like.asnumpy().tolist() == rows.asnumpy().tolist()
        with pytest.raises(mx.MXNetError, match=f"stored as {other.stype}, not as {value.stype}"):
            like.__setstate__(state(other))
    x = nd.ones((2,))
    x.__setstate__({"handle": None})
    assert x.shape == (2,)
    for wrong in ({}, {"handle": 3}, b"", None, {"handle": b"abc"}, {"handle": b""}):
        with pytest.raises(mx.MXNetError, match=r"__setstate__: .* is not a state of an array|invalid .params data"):
            x.__setstate__(wrong)
    with memoryview(x), pytest.raises(mx.MXNetError, match="buffer is in use"):
        x.__setstate__(state(rows.tostype("default")))
    assert x.asnumpy().tolist() == [1, 1]


def test_pickle_out_of_band_copies_nothing():
    x = nd.arange(1000)
    buffers = []
    data = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(data) < 300 and len(buffers) == 1
    assert np.shares_memory(np.frombuffer(buffers[0], "float32"), np.asarray(x))
    y = pickle.loads(data, buffers=buffers)
    y[0] = 7
    assert x[0].asscalar() == 7
    z = pickle.loads(data, buffers=[bytes(b) for b in map(memoryview, buffers)])  # read-only buffers are copied
    z[0] = 8
    assert x[0].asscalar() == 7


def test_copy_and_deepcopy():
    x = nd.arange(3)
    for y in (copy.copy(x), copy.deepcopy(x), copy.deepcopy({"a": [x]})["a"][0]):
        y[:] = 9
        assert x.asnumpy().tolist() == [0, 1, 2]
    x.attach_grad()
    assert copy.deepcopy(x).grad is None
    assert pickle.loads(pickle.dumps(x)).grad is None


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = nd.array([1, 2, 3.5], dtype="bfloat16")
    assert x.dtype is ml_dtypes.bfloat16 and x[[0, 2]].asnumpy().tolist() == [1, 3.5]
    x[1:] = [5, 6]
    x[[0]] = nd.array([4])
    assert x.asnumpy().tolist() == [4, 5, 6]
    assert pickle.loads(pickle.dumps(x, 5)).asnumpy().tolist() == [4, 5, 6]
    assert nd.load_frombuffer(nd.save_tobuffer([x]))[0].asnumpy().tolist() == [4, 5, 6]


# ---- rounding and remainders ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("decimals", [0, 1, 3, -1])
def test_round_is_numpys(dtype, decimals):
    host = np.array([0.5, 1.5, 2.5, -0.5, -3.5, 0.0625, 17.3499, -25.0, 35.0, np.inf, np.nan, -0.0], dtype)
    x = nd.array(host, dtype=dtype)
    want = np.round(host, decimals)
    for found in (np.round(x, decimals), round(x, decimals), x.round(decimals), np.around(x, decimals=decimals)):
        assert isinstance(found, nd.NDArray) and found.dtype is host.dtype.type
        np.testing.assert_array_equal(found.asnumpy(), want)
        np.testing.assert_array_equal(np.signbit(found.asnumpy()), np.signbit(want))


def test_round_into_an_array():
    x, out = nd.array([1.26, 2.5]), nd.zeros(2)
    assert x.round(1, out=out) is out and out.asnumpy().tolist() == np.float32([1.3, 2.5]).tolist()
    for wrong in (nd.zeros((2, 2)), nd.zeros(3), np.zeros(2), [1, 2]):
        with pytest.raises(mx.MXNetError, match=r"round: out must be an NDArray of shape \(2,\)"):
            x.round(1, out=wrong)


def test_round_without_decimals():
    x = nd.array([0.5, 1.5, 2.5, -2.5])
    assert np.rint(x).asnumpy().tolist() == round(x).asnumpy().tolist() == np.round(x).asnumpy().tolist() == [0, 2, 2, -2]
    assert x.round().asnumpy().tolist() == nd.round(x).asnumpy().tolist() == [1, 2, 3, -3]  # MXNet's
    assert nd.rint(x).asnumpy().tolist() == [0, 1, 2, -3]
    for dtype in ("int64", "int32", "uint8"):
        whole = nd.array([15, 25, 104], dtype=dtype)
        assert round(whole, 2).asnumpy().tolist() == round(whole).asnumpy().tolist() == [15, 25, 104]
        assert round(whole, -1).asnumpy().tolist() == np.round(whole.asnumpy(), -1).tolist() == [20, 20, 100]
        assert round(whole, -1).dtype is whole.dtype
    big = nd.array([2**53 + 1], dtype="int64")
    assert round(big).item() == round(big, 1).item() == 2**53 + 1
    out = nd.zeros(4)
    assert np.round(x, 0, out=out) is out and out.asnumpy().tolist() == [0, 2, 2, -2]
    with pytest.raises(TypeError):
        round(x, 1.5)


def test_divmod():
    x = nd.array([7, -7, 7.5])
    for found in (divmod(x, 2), np.divmod(x, 2), divmod(x, nd.array([2, 2, 2])), divmod(x, np.array([2.0, 2, 2]))):
        assert [type(f) for f in found] == [nd.NDArray] * 2
        assert [f.asnumpy().tolist() for f in found] == [[3, -4, 3], [1, 1, 1.5]]
    assert [f.asnumpy().tolist() for f in divmod(9, nd.array([2, 4]))] == [[4, 2], [1, 1]]
    a = mx.sym.Variable("a")
    assert [s.eval(a=x)[0].asnumpy().tolist() for s in divmod(a, 2)] == [[3, -4, 3], [1, 1, 1.5]]
    with pytest.raises(TypeError):
        divmod(x, "a")
    x.attach_grad()
    with autograd.record():
        np.divmod(x, 2)[1].backward()
    assert x.grad.asnumpy().tolist() == [1, 1, 1]


# ---- bfloat16 through DLPack ----------------------------------------------------------------------------------------
class Bfloat16Owner:
    """An owner of bfloat16 memory in another library, which knows old capsules only, or new ones too."""

    dtype = "torch.bfloat16"

    def __init__(self, source, versions):
        self.source, self.versions, self.asked = source, versions, None

    def __dlpack_device__(self):
        return self.source.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versions and options:
            raise TypeError("no options are known")
        self.asked = options
        return self.source.__dlpack__(**options)


def test_bfloat16_goes_out_as_dlpack_says():
    from mxop.ndarray.interop import _tensor_of

    x = nd.array([[1, 2, 3.5], [4, 5, 6]]).astype("bfloat16")
    for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), x.T.__dlpack__(), nd.to_dlpack_for_read(x)):
        kind = _tensor_of(capsule)
        assert (kind.code, kind.bits, kind.lanes) == (4, 16, 1)
    kind = _tensor_of(nd.ones(2).__dlpack__())
    assert (kind.code, kind.bits, kind.lanes) == (2, 32, 1)


@pytest.mark.parametrize("versions", [False, True])
def test_bfloat16_comes_in_without_a_copy(versions):
    x = nd.array([[1, 2, 3.5], [4, 5, 6]]).astype("bfloat16")
    strided = x[:, ::2]
    assert strided._shares_memory(x) and not strided._contiguous
    owner = Bfloat16Owner(strided, versions)
    y = nd.from_dlpack(owner)
    assert y.shape == (2, 2) and y.dtype is x.dtype
    assert bool(owner.asked) == (versions and np.lib.NumpyVersion(np.__version__) >= "2.1.0")
    assert y.astype("float32").asnumpy().tolist() == [[1, 3.5], [4, 6]]
    y[0, 1] = 9
    assert x.astype("float32").asnumpy()[0, 2] == 9
    nd.from_dlpack(nd.to_dlpack_for_write(x))[1, 1] = 8
    assert nd.from_dlpack(x).astype("float32").asnumpy()[1, 1] == 8
    alive = nd.from_dlpack(nd.array([3, 4]).astype("bfloat16"))  # the owner is gone
    gc.collect()
    assert alive.astype("float32").asnumpy().tolist() == [3, 4]


# ---- gradients that are lost ----------------------------------------------------------------------------------------
def lost(action, recorded=True):
    """Return the warnings of an action on a recorded array."""
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if recorded:
            with autograd.record():
                action(x * x)
        else:
            action(x)
    return [w for w in told if issubclass(w.category, mx.errors.GradientWarning)]


@pytest.mark.parametrize(
    "action",
    [
        np.cumsum,
        np.asarray,
        np.array,
        np.median,
        memoryview,
        lambda y: np.where(y > 1, y, 0),
        lambda y: np.concatenate([y, y]),
        lambda y: nd.array([1, 2]) * np.cumsum(y),
        lambda y: np.asarray(y.astype("bfloat16")),
        lambda y: np.asarray(mx.axes.tensor(y, [mx.axes.make_axis(2, name="W")])),
        lambda y: [np.sin(v) for v in memoryview(y)],
    ],
)
def test_a_recorded_array_that_numpy_reads_is_told(action):
    told = lost(action)
    assert told and all(w.filename == __file__ for w in told)
    assert "asnumpy() or detach()" in str(told[0].message)
    assert not lost(action, recorded=False)


@pytest.mark.parametrize(
    "action",
    [
        lambda y: y.asnumpy(),
        lambda y: (print(y), str(y), f"{y}", repr(y), y._repr_html_()),
        lambda y: (float(y.sum()), y[0].item(), y[0].asscalar(), bool(y[0] > 0), y.tolist(), y.to_numpy()),
        lambda y: np.asarray(y.detach()),
        lambda y: (np.shape(y), np.ndim(y), np.size(y), len(y)),
        lambda y: (
            np.sum(y),
            np.mean(y),
            np.max(y),
            np.clip(y, 0, 1),
            np.exp(y),
            np.round(y),
            np.transpose(y),
            np.add(y, y),
        ),
        lambda y: (nd.dot(y, y), nd.cumsum(y), nd.softmax(y), nd.argmax(y, axis=0), y[nd.array([0])], y[np.array([1])]),
        lambda y: (nd.array(y), y.copy(), y.astype("float64"), pickle.dumps(y), copy.deepcopy(y)),
        lambda y: (nd.save_tobuffer([y]), mx.test_utils.assert_almost_equal(y, y.detach())),
        lambda y: np.cumsum(nd.ones(3)),
    ],
)
def test_what_loses_no_gradient_or_says_so_is_not_told(action):
    assert lost(action) == []


def test_the_loss_is_told_once_for_each_line_and_thread_of_recording():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with warnings.catch_warnings(record=True) as told, autograd.record():
        warnings.simplefilter("default")
        for _ in range(5):
            np.cumsum(x)
        np.cumsum(x)
        with autograd.pause():
            np.cumsum(x)
    assert len(told) == 2
    with warnings.catch_warnings(), autograd.record():
        warnings.simplefilter("error", mx.errors.GradientWarning)
        with pytest.raises(mx.errors.GradientWarning):
            np.cumsum(x)


def test_a_gradient_through_a_kernel_and_a_custom_operator_is_not_told_of():
    class Double(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], nd.array(2 * np.asarray(in_data[0])))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], nd.array(2 * np.asarray(out_grad[0])))

    @mx.operator.register("interop_double")
    class DoubleProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Double()

    def action(y):
        (nd.Custom(y, op_type="interop_double") + nd.cumsum(y)).backward()

    assert lost(action) == []


def test_jax_takes_arrays():
    jax = pytest.importorskip("jax", reason="needs JAX")
    x = nd.array([[1, 2], [3, 4]])
    found = x.__jax_array__()
    assert isinstance(found, jax.Array)
    np.testing.assert_array_equal(np.asarray(found), x.asnumpy())


def test_without_jax_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.setitem(sys.modules, "jax.numpy", None)
    with pytest.raises(mx.errors.MissingPackageError, match="pip install"):
        nd.ones((2,)).__jax_array__()
