"""Positions of elements, and rows at positions: what records do not say."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd

ROWS = nd.array([[1, 2], [3, 4], [5, 6]])


def test_flat_indices_and_back():
    flat = np.arange(2 * 3 * 5).reshape(6, 5)
    found = nd.unravel_index(nd.array(flat, dtype="int64"), shape=(2, 3, 5))
    assert found.shape == (3, 6, 5) and found.dtype == np.int64
    np.testing.assert_array_equal(found.asnumpy(), np.stack(np.unravel_index(flat, (2, 3, 5))))
    assert (nd.ravel_multi_index(found, shape=(-1, 3, 5)).asnumpy() == flat).all()


def test_large_flat_indices_are_exact_in_int64():
    big = nd.array([2**40 + 7], dtype="int64")
    found = nd.unravel_index(big, shape=(-1, 2**20))
    assert found.asnumpy().tolist() == [[2**20], [7]] and nd.ravel_multi_index(found, shape=(-1, 2**20)).item() == 2**40 + 7


def test_replaced_rows_get_the_gradient():
    old, new = nd.zeros((3, 2)), nd.ones((2, 2))
    for x in (old, new):
        x.attach_grad()
    with autograd.record():
        y = nd.contrib.index_copy(old, nd.array([2, 0]), new)
    y.backward(ROWS)
    assert old.grad.asnumpy().tolist() == [[0, 0], [3, 4], [0, 0]] and new.grad.asnumpy().tolist() == [[5, 6], [1, 2]]


@pytest.mark.parametrize("bad", [-1, 3])
def test_rows_that_are_not_there_are_refused_before_anything_is_written(bad):
    out = nd.full((3, 2), 7)
    with pytest.raises(mx.MXNetError, match="names rows that old_tensor of 3 does not have") as caught:
        nd.contrib.index_copy(ROWS, nd.array([0, bad]), nd.ones((2, 2)), out=out)
    assert isinstance(caught.value, IndexError) and (out.asnumpy() == 7).all()


@pytest.mark.parametrize("call, said", [
    (lambda: nd.contrib.index_copy(ROWS, nd.ones((2, 1)), nd.ones((2, 2))), "expected a vector, and rows"),
    (lambda: nd.contrib.index_copy(ROWS, nd.ones((2,)), nd.ones((1, 2))), "new_tensor has shape (1, 2)"),
    (lambda: nd.ravel_multi_index(nd.ones((2, 3)), shape=(4,)), "expected (1, ...)"),
    (lambda: nd.unravel_index(nd.ones((2,))), "shape=(); expected sizes"),
    (lambda: nd.khatri_rao(nd.ones((2, 3)), nd.ones((3,))), "expected matrices with equal numbers of columns"),
    (lambda: nd.contrib.index_array(ROWS, axes=(0, 5)), "axes=5"),
])  # fmt: skip
def test_bad_input(call, said):
    with pytest.raises(mx.MXNetError) as caught:
        call()
    assert said in str(caught.value) and isinstance(caught.value, (ValueError, IndexError))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    "shape", [(400_000,), (3, 200_000), (150_000, 4), (2, 100_000, 3), (300, 700), (70_000, 5), (5000, 33)]
)
def test_long_lanes_are_searched_in_parts_and_short_ones_at_once(shape, threads):
    rng, before = np.random.default_rng(0), mx.context.get_num_threads()
    whole = rng.integers(0, 50, shape).astype("float32")  # many equals: the first counts
    odd = whole.copy()
    odd.ravel()[rng.integers(0, odd.size, 5)] = np.nan
    try:
        mx.context.set_num_threads(threads)
        for x in (whole, odd, whole.astype("int32"), whole.astype("float64")):
            for name in ("argmax", "argmin"):
                for axis in (None, *range(x.ndim)):
                    found = getattr(mx.nd, name)(mx.nd.array(x, dtype=x.dtype), axis=axis).asnumpy()
                    assert np.array_equal(found.ravel(), np.ravel(getattr(np, name)(x, axis)).astype("float32"))
    finally:
        mx.context.set_num_threads(before)
