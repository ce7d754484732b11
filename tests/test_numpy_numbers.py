"""NumPy's numbers where Python's may stand: parameters, axes, shapes, indices, operands; the same results, in the same way."""

import numpy as np
import pytest

import mxop as mx
from mxop import nd

X = np.arange(24, dtype="float32").reshape(2, 3, 4)

#: Calls of a number, or some, which are given as Python's and as NumPy's.
CALLS = {
    "reshape of sizes": (lambda x, a, b: x.reshape(a, b), (4, 6)),
    "reshape of a tuple": (lambda x, a, b: x.reshape((a, b)), (4, -1)),
    "nd.reshape": (lambda x, a, b: nd.reshape(x, (a, b)), (4, 6)),
    "nd.reshape by name": (lambda x, a, b: nd.reshape(x, shape=(a, b)), (0, -1)),
    "transpose": (lambda x, a, b, c: x.transpose((a, b, c)), (2, 0, 1)),
    "transpose of axes": (lambda x, a, b, c: x.transpose(a, b, c), (1, 0, 2)),
    "sum": (lambda x, a: x.sum(axis=a), (1,)),
    "sum of axes": (lambda x, a, b: nd.sum(x, axis=(a, b)), (0, -1)),
    "softmax": (lambda x, a: nd.softmax(x, axis=a), (1,)),
    "slice_axis": (lambda x, a, b, e: nd.slice_axis(x, axis=a, begin=b, end=e), (2, 1, 3)),
    "expand_dims": (lambda x, a: x.expand_dims(a), (1,)),
    "concat": (lambda x, a: nd.concat(x, x, dim=a), (0,)),
    "one_hot": (lambda x, a: nd.one_hot(x, a), (5,)),
    "topk": (lambda x, a, k: nd.topk(x, axis=a, k=k), (2, 2)),
    "an index": (lambda x, a: x[a], (1,)),
    "indices": (lambda x, a, b: x[a, :, b], (1, -2)),
    "a list of indices": (lambda x, a, b: x[:, [a, b]], (2, 0)),
    "zeros": (lambda x, a, b: nd.zeros((a, b)), (2, 3)),
    "full": (lambda x, a, v: nd.full((a,), v), (3, 7)),
    "arange": (lambda x, a: nd.arange(a), (5,)),
    "clip": (lambda x, a, b: nd.clip(x, a, b), (2, 9)),
    "times": (lambda x, a: x * a, (3,)),
    "power": (lambda x, a: x**a, (2,)),
    "minus, from the left": (lambda x, a: a - x, (3,)),
    "compared": (lambda x, a: x > a, (7,)),
    "a float parameter": (lambda x, a: nd.LeakyReLU(-x, slope=a), (0.25,)),
    "update": (lambda x, a, m: nd.sgd_mom_update(x, x * 2, nd.zeros(x.shape), lr=a, momentum=m), (0.5, 0.25)),
}  # fmt: skip
WHOLE = ("int64", "int32", "uint8")
REAL = ("float64", "float32", "float16")


@pytest.mark.parametrize("call", CALLS)
def test_calls(call):
    function, numbers = CALLS[call]
    expected = function(nd.array(X), *numbers)
    for kind in WHOLE + REAL if call in ("times", "power", "compared", "clip", "full", "update") else WHOLE + REAL[:1]:
        whole = all(isinstance(n, int) for n in numbers)
        if kind in WHOLE and (not whole or (kind == "uint8" and min(numbers) < 0)):
            continue
        if kind in REAL and whole and call not in ("times", "power", "compared", "clip", "full"):
            continue
        given = [np.dtype(kind).type(n) for n in numbers]
        if call == "full":
            given[0] = numbers[0]
        found = function(nd.array(X), *given)
        assert found.dtype == expected.dtype and np.array_equal(found.asnumpy(), expected.asnumpy()), kind
        with mx.autograd.record():
            x = nd.array(X)
            x.attach_grad()
            assert np.array_equal(function(x, *given).asnumpy(), expected.asnumpy()), kind


def test_assignments():
    x, y = nd.array(X), X.copy()
    x[np.int64(1), np.int32(0)] = np.float32(-1)
    y[1, 0] = -1
    x[:, np.int64(2), :] = np.int64(5)
    y[:, 2, :] = 5
    x *= np.float64(2)
    y *= 2
    assert np.array_equal(x.asnumpy(), y)


def test_truths_and_long_doubles_are_taken_as_before():
    x = nd.array([1, 2])
    assert nd.sum(x, axis=0, keepdims=np.True_).shape == (1,)
    assert (x * np.True_).asnumpy().tolist() == [1, 2] and (x * np.longdouble(2)).asnumpy().tolist() == [2, 4]


def test_what_is_no_number_is_refused_as_before():
    x = nd.array([1, 2])
    for wrong in (np.str_("a"), np.datetime64("2020-01-01"), np.complex64(1)):
        with pytest.raises(mx.MXNetError):
            nd.clip(x, wrong, 1)
    with pytest.raises(mx.MXNetError, match="axis"):
        nd.sum(x, axis=np.float64(0.5))


def test_symbols_take_them():
    x = mx.sym.Variable("x")
    for symbol in (mx.sym.sum(x, axis=np.int64(1)), mx.sym.clip(x, np.float32(0), np.float64(2)), x * np.float32(0.5)):
        again = mx.sym.load_json(symbol.tojson())
        assert np.array_equal(again.eval(x=nd.array(X))[0].asnumpy(), symbol.eval(x=nd.array(X))[0].asnumpy())
