"""Sorting: the order of ties and of NaN, of all types, along any axis, of all elements and of the first ones."""

import ml_dtypes
import numpy as np
import pytest

import mxop as mx
from mxop import nd

TYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64"]
#: Arrays whose lanes are short, long, few, many, beside each other or not, and one for several threads.
LANES = [((7,), 0), ((1,), 0), ((3, 5), 1), ((37, 100), 1), ((100, 37), 0), ((4, 30, 5), 1), ((20, 600), 1), ((3, 3000), 1),
         ((3000, 3), 0), ((2, 5000, 3), 1), ((1, 1, 4), 1), ((300_000,), 0)]  # fmt: skip


def _numbers(kind, size, dtype):
    rng = np.random.default_rng(len(kind) + size)
    if kind == "ties":
        x = rng.integers(-3, 4, size)
    elif kind == "wide":
        x = rng.standard_normal(size) * 10.0 ** rng.integers(-4, 5, size)
    elif kind == "near":  # leading bits are equal, what tells them apart comes last
        x = 1.0 + rng.integers(0, 1000, size) * 2.0**-50 + rng.integers(0, 2, size) * 1e3
    elif kind == "most":  # nearly all are the largest that there is
        largest = np.iinfo(dtype).max if "int" in dtype else np.inf
        x = np.where(rng.random(size) < 0.9, np.array(largest), rng.integers(0, 3, size))
    elif kind == "special":
        x = rng.choice([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 1e-40], size)
    elif kind == "large":
        x = rng.integers(-(2**62), 2**62, size)
    else:
        x = np.arange(size) if kind == "ascending" else -np.arange(size)
    with np.errstate(all="ignore"):
        return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _expected(x, axis, ascending):
    """Return the stable order, by NumPy; NaN is the largest."""
    keys = x if x.dtype.kind in "iu" else x.astype(np.float64)
    if ascending:
        return np.argsort(keys, axis, kind="stable")
    last = keys.shape[axis] - 1
    return np.flip(last - np.argsort(np.flip(keys, axis), axis, kind="stable"), axis)


@pytest.mark.parametrize("kind", ["ties", "wide", "near", "most", "special", "large", "ascending", "descending"])
@pytest.mark.parametrize("dtype", TYPES)
def test_every_way_gives_the_stable_order(dtype, kind):
    if (kind in ("special", "near") and "float" not in dtype) or (kind == "large" and dtype != "int64"):
        kind = "ties"
    for shape, axis in LANES:
        x = _numbers(kind, int(np.prod(shape)), dtype).reshape(shape)
        given = nd.array(x, dtype=dtype)
        for ascending in (True, False):
            want = _expected(x, axis, ascending)
            values = np.take_along_axis(x, want, axis)
            assert np.array_equal(nd.argsort(given, axis=axis, is_ascend=ascending, dtype="int64").asnumpy(), want)
            found = nd.sort(given, axis=axis, is_ascend=ascending).asnumpy()
            assert found.dtype == x.dtype and np.array_equal(found, values, equal_nan=True)
            for k in {1, min(10, shape[axis]), min(100, shape[axis])}:
                found = nd.topk(given, axis=axis, k=k, is_ascend=ascending, dtype="int32").asnumpy()
                assert np.array_equal(found, np.take(want, np.arange(k), axis)), (shape, axis, ascending, k)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_rows_of_every_length(dtype):
    """Registers hold some words exactly, some with room left, and more are divided; the largest word fills what is left."""
    rng = np.random.default_rng(5)
    largest = np.inf if "float" in dtype else np.iinfo(dtype).max
    for n in [*range(2, 70), *range(120, 140), *range(250, 270), 511, 512, 513, 1025, 2500]:
        pipe = np.minimum(np.arange(n), np.arange(n)[::-1])
        rows = [rng.permutation(n), pipe, rng.integers(0, 2, n), np.zeros(n), rng.standard_normal(n) * 1e6]
        rows = np.stack([*rows, np.where(rng.integers(0, 3, n), rows[0], 0)]).astype(dtype)
        rows[-1][rows[-1] == 0] = largest
        for x in (rows, rows[:1]):  # several at once; one alone
            given = nd.array(x, dtype=dtype)
            assert np.array_equal(nd.sort(given, axis=1).asnumpy(), np.sort(x, 1)), n
            want = np.argsort(x, 1, kind="stable")
            assert np.array_equal(nd.argsort(given, axis=1, dtype="int32").asnumpy(), want), n


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float16", "float32", "float64"])
def test_places_are_numbers_of_any_type_that_is_asked_for(dtype):
    x = nd.array([[3, 1, 2], [9, 8, 7]])
    for call in (nd.argsort, nd.topk):
        found = call(x, axis=0, dtype=dtype, is_ascend=False)
        assert found.asnumpy().tolist() == [[1, 1, 1], [0, 0, 0]][: found.shape[0]] and found.asnumpy().dtype == dtype


def test_results_go_where_they_are_wanted():
    x = nd.array([[3, 1, 2], [9, 8, 7]])
    wide = nd.zeros((2, 6))
    nd.sort(x, out=wide[:, ::2])
    assert wide.asnumpy().tolist() == [[1, 0, 2, 0, 3, 0], [7, 0, 8, 0, 9, 0]]
    assert nd.sort(x.T, axis=0).asnumpy().tolist() == [[1, 7], [2, 8], [3, 9]]
    nd.sort(x, out=x)
    assert x.asnumpy().tolist() == [[1, 2, 3], [7, 8, 9]]
    data = mx.sym.Variable("x")
    bound = mx.sym.sort(data, is_ascend=False).simple_bind(mx.cpu(), grad_req="add", x=(2, 3))
    bound.arg_dict["x"][:] = x
    bound.forward(is_train=True)
    for _ in range(2):
        bound.backward(nd.array([[1, 2, 3], [4, 5, 6]]))
    assert bound.outputs[0].asnumpy().tolist() == [[3, 2, 1], [9, 8, 7]]
    assert bound.grad_dict["x"].asnumpy().tolist() == [[6, 4, 2], [12, 10, 8]]


def test_the_function_for_other_libraries_agrees():
    """Of rows that are too long for the kernel of GPUs."""
    x = np.random.default_rng(0).integers(0, 9, (1, 8200, 2)).astype("float32")
    for name in ("_sort_order", "_sorted"):
        op = mx.op.get(name)
        attrs = op.parse({"axis": 1, "is_ascend": False})
        found = np.empty(x.shape, "int64" if name == "_sort_order" else x.dtype)
        op.run_gpu(np, [x], [found], **attrs)
        given = getattr(nd._internal, name)(nd.array(x), axis=1, is_ascend=False)
        assert np.array_equal(found, given.asnumpy())
