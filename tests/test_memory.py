"""The pool that array memory comes from: alignment, reuse, statistics, limit."""

import gc
import itertools

import numpy as np
import pytest
from processes import fails_python, python, run_python

import mxop as mx
from mxop import nd


def stats():
    return mx.context.memory_stats()


def address(array):
    return np.asarray(array).__array_interface__["data"][0]


@pytest.fixture(autouse=True)
def fresh():
    gc.collect()
    mx.context.empty_cache()
    yield


@pytest.mark.parametrize("size", [1, 3, 16, 17, 63, 64, 65, 1000, 4097, 1 << 16, (1 << 20) + 3, 3 << 20])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_alignment(size, dtype):
    arrays = [nd.empty((size,), dtype=dtype) for _ in range(3)]
    assert [address(a) % 64 for a in arrays] == [0, 0, 0]
    assert len({address(a) for a in arrays}) == 3


def test_results_are_aligned_too():
    x = nd.ones((1001,))
    for y in (x + 1, nd.sum(x), nd.exp(x), nd.transpose(x.reshape((7, 143))), nd.dot(x, x)):
        assert address(y) % 64 == 0


@pytest.mark.plain_pool
@pytest.mark.parametrize("nbytes", [32768, 800_000, 2_000_000])
def test_large_arrays_begin_far_from_each_other_in_their_pages(nbytes):
    """A processor takes a read for one of what was just written 1 to 256 bytes further in another page."""
    arrays = [nd.empty((nbytes,), dtype="uint8") for _ in range(9)]
    places = [address(a) % 4096 for a in arrays]
    assert all(place % 64 == 0 for place in places)
    for one, other in itertools.pairwise(places):
        assert 512 <= (other - one) % 4096 <= 3584
    assert len(set(places)) == 8


def test_in_use_counts_arrays():
    before = stats()["in_use"]
    a = nd.zeros((1000,))
    used = stats()["in_use"] - before
    assert 4000 <= used <= 5000  # rounded to a size class, at most a quarter more
    b = a.reshape((10, 100))
    view = a.detach()
    del a
    assert stats()["in_use"] >= before + 4000
    del view, b
    assert stats()["in_use"] == before


@pytest.mark.plain_pool
def test_freed_memory_is_reused():
    a = nd.zeros((1000,))
    place = address(a)
    before = stats()
    del a
    assert stats()["cached"] > before["cached"]
    b = nd.zeros((1010,))  # of the same size class
    after = stats()
    assert address(b) == place
    assert after["hits"] == before["hits"] + 1 and after["misses"] == before["misses"]
    assert after["cached"] == before["cached"]


@pytest.mark.plain_pool
def test_a_loop_misses_once():
    x = nd.ones((5000,))
    y = x + 1
    before = stats()["misses"]
    for _ in range(100):
        y = x + y
    assert stats()["misses"] <= before + 2


def test_size_classes_waste_at_most_a_quarter():
    for n in [1, 64, 65, 100, 1024, 1025, 1281, 5000, 65537, 1_000_000, (1 << 22) + 1]:
        before = stats()["in_use"]
        a = nd.empty((n,), dtype="uint8")
        used = stats()["in_use"] - before
        assert n <= used <= max(64, 1.25 * n + 64), n
        del a


@pytest.mark.plain_pool
def test_empty_cache_gives_memory_back():
    arrays = [nd.zeros((10_000,)) for _ in range(20)]
    del arrays
    assert stats()["cached"] >= 20 * 40_000
    in_use = stats()["in_use"]
    mx.context.empty_cache()
    assert stats()["cached"] == 0
    assert stats()["in_use"] == in_use
    del in_use
    mx.cpu().empty_cache()


@pytest.mark.plain_pool
def test_limit_bounds_what_waits():
    mx.context.set_memory_limit(100_000)
    assert stats()["limit"] == 100_000
    arrays = [nd.zeros((5000,)) for _ in range(20)]
    del arrays
    assert 0 < stats()["cached"] <= 100_000
    mx.context.set_memory_limit(0)
    assert stats()["cached"] == 0
    a = nd.zeros((5000,))
    del a
    assert stats()["cached"] == 0


def test_peak():
    before = stats()
    more = before["peak"] - before["in_use"] + (4 << 20)
    a = nd.zeros((more,), dtype="int8")
    top = stats()["peak"]
    assert top == stats()["in_use"] >= before["peak"] + (4 << 20)
    del a
    assert stats()["peak"] == top > stats()["in_use"] + more - (4 << 20)


def test_values_survive_reuse(rng):
    """Memory handed out twice would show as changed values."""
    kept = []
    for k in range(500):
        n = int(rng.integers(0, 3000))
        a = nd.full((n,), float(k))
        if k % 3:
            kept.append((k, a))
        if len(kept) > 30:
            kept.pop(int(rng.integers(len(kept))))
    for k, a in kept:
        assert (a.asnumpy() == k).all()


def test_views_keep_memory_alive():
    a = nd.array(np.arange(1000.0))
    b = a[500:503]
    host = np.asarray(a)
    del a
    noise = [nd.full((1000,), -1.0) for _ in range(20)]
    np.testing.assert_array_equal(b.asnumpy(), [500, 501, 502])
    np.testing.assert_array_equal(host[:3], [0, 1, 2])
    del noise


def test_numpy_memory_is_not_counted():
    values = np.ones(10_000, np.float32)
    before = stats()["in_use"]
    a = nd.from_numpy(values, zero_copy=True)
    assert stats()["in_use"] == before
    assert np.shares_memory(np.asarray(a), values)


def test_empty_arrays():
    arrays = [nd.empty(shape) for shape in ((0,), (3, 0), (0, 0, 5))]
    assert [a.size for a in arrays] == [0, 0, 0]
    assert (nd.exp(arrays[1]) + 1).shape == (3, 0)


def test_too_much_is_an_error():
    with pytest.raises((MemoryError, mx.MXNetError), match=r"too large|cannot be allocated|has no memory"):
        nd.empty((1 << 50,))
    with pytest.raises((MemoryError, mx.MXNetError)):
        nd.empty((1 << 62, 1 << 62))
    with pytest.raises(mx.MXNetError):
        nd.empty((-1,))


def test_environment_sets_the_limit():
    code = "import mxop as mx; print(mx.context.memory_stats()['limit'])"
    assert run_python(code, MXOP_POOL_BYTES="12345") == "12345"
    assert "MXOP_POOL_BYTES='much'" in fails_python("import mxop", MXOP_POOL_BYTES="much")


def test_exit_with_arrays_alive():
    """No destructor runs into a pool that is gone."""
    code = "import mxop as mx; a = mx.nd.ones((100,)); a.attach_grad(); b = a + 1; mx.kept = b"
    done = python(code)
    assert done.returncode == 0 and not done.stderr
