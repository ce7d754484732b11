"""Sequences of different lengths: what records do not say."""

import difflib

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym

X = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
USED = {"use_sequence_length": True}


@pytest.mark.parametrize("dtype", ["float16", "int32", "int64", "float64"])
def test_lengths_have_a_type_of_their_own(dtype):
    lengths = nd.array([1, 4, 2], dtype=dtype)
    masked = nd.SequenceMask(nd.array(X), lengths, **USED)
    assert masked.dtype == np.float32
    assert (masked.asnumpy() != 0).sum() == 2 * (1 + 4 + 2) - 1  # the first element is 0 itself


def test_lengths_out_of_range_count_as_the_nearest():
    x, lengths = nd.array(X), nd.array([-2, 0, 9])
    assert nd.SequenceLast(x, lengths, **USED).asnumpy().tolist() == [
        X[0, 0].tolist(),
        X[0, 1].tolist(),
        X[3, 2].tolist(),
    ]
    back = nd.SequenceReverse(x, lengths, **USED).asnumpy()
    assert (back[:, :2] == X[:, :2]).all() and (back[:, 2] == X[::-1, 2]).all()
    masked = nd.SequenceMask(x, lengths, **USED).asnumpy()
    assert not masked[:, :2].any() and (masked[:, 2] == X[:, 2]).all()


def test_what_is_masked_gets_no_gradient_even_where_it_is_nan():
    x = nd.array(np.where(X > 11, np.nan, X))
    x.attach_grad()
    with autograd.record():
        y = nd.square(nd.SequenceMask(x, nd.array([2, 2, 2]), **USED))
        first = autograd.grad(y, x, create_graph=True)[0]
    first.backward()
    want = np.where(X > 11, 0, 1)
    assert (first.asnumpy() == 2 * np.where(X > 11, 0, X)).all() and (x.grad.asnumpy() == 2 * want).all()


def test_a_symbol_infers_the_lengths():
    data = sym.Variable("data", shape=(4, 3, 2))
    for op in (sym.SequenceMask, sym.SequenceLast, sym.SequenceReverse):
        net = op(data, use_sequence_length=True, name="s")
        assert net.list_arguments() == ["data", "s_sequence_length"]
        assert net.infer_shape()[0] == [(4, 3, 2), (3,)]


@pytest.mark.parametrize("op", [nd.SequenceMask, nd.SequenceLast, nd.SequenceReverse])
@pytest.mark.parametrize("shape, lengths, axis, said", [
    ((4, 3, 2), (2,), 0, r"sequence_length has shape \(2,\) but the batch of the data has shape \(3,\)"),
    ((4, 3, 2), (3,), 1, r"sequence_length has shape \(3,\) but the batch of the data has shape \(4,\)"),
    ((4, 3, 2), (3,), 2, "axis=2; expected 0 or 1"), ((4, 3, 2), (3,), -1, "axis=-1; expected 0 or 1"),
    ((4,), (4,), 0, "expected at least two dimensions"),
])  # fmt: skip
def test_bad_input(op, shape, lengths, axis, said):
    with pytest.raises(mx.MXNetError, match=said) as caught:
        op(nd.ones(shape), nd.ones(lengths), use_sequence_length=True, axis=axis)
    assert isinstance(caught.value, ValueError) and op.__name__ in str(caught.value)


def test_masked_integers_keep_all_digits():
    """Numbers of 64 bits were computed in float64."""
    ids = np.array([[2**53 + 1, 2**62 + 1], [-(2**53) - 1, 2**63 - 1]])
    x, lengths = nd.array(ids, dtype="int64"), nd.array([2, 1], dtype="int32")
    for number in (-1, 2**53 + 1):
        wanted = ids.copy()
        wanted[1, 1] = number
        found = nd.SequenceMask(x, lengths, use_sequence_length=True, value=number)
        assert found.dtype == np.int64 and found.asnumpy().tolist() == wanted.tolist()
        net = mx.sym.SequenceMask(mx.sym.Variable("x"), mx.sym.Variable("n"), use_sequence_length=True, value=number)
        assert net.eval(x=x, n=lengths)[0].asnumpy().tolist() == wanted.tolist()
    for number in (2**63, float("nan")):
        with pytest.raises(mx.MXNetError, match="does not fit"):
            nd.SequenceMask(x, lengths, use_sequence_length=True, value=number)


def test_binding_searches_no_similar_names(monkeypatch):
    """The device of a value in a graph was looked up like an operator; each error, with its suggestion, took 20 ms."""
    monkeypatch.setattr(difflib, "get_close_matches", lambda *_, **__: pytest.fail("a name was searched for"))
    x, n = mx.sym.Variable("x"), mx.sym.Variable("n")
    y = mx.sym.SequenceMask(x, n, use_sequence_length=True) + mx.sym.sample_normal(x, x, shape=2).sum(axis=-1)
    executor = y.bind(mx.cpu(), {"x": mx.nd.zeros((3, 2)), "n": mx.nd.array([1, 2])})
    assert executor.forward()[0].asnumpy().tolist() == [[0, 0]] * 3
