"""``x[key]`` and ``x[key] = value`` against NumPy, and the gradients of what they record."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mxop as mx
from mxop import autograd, nd
from mxop.ops.indexing import indexed_shape, read, written

QUICK = settings(max_examples=150, deadline=None)
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)


def numbered(shape, dtype="float32"):
    return np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape).astype(dtype)


def legacy(found):
    """MXNet shows one element as an array of shape (1,)."""
    found = np.asarray(found)
    return found.reshape(1) if found.ndim == 0 else found


@st.composite
def basic_keys(draw):
    shape = draw(SHAPES)
    key = draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=6))
    return shape, key


@st.composite
def advanced_keys(draw):
    """Draw keys that mix index arrays, masks, integers, slices, None and one ellipsis."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    common = draw(st.sampled_from([(), (1,), (3,), (2, 3)]))
    items, axis = [], 0
    mask_used = False
    while axis < len(shape):
        kind = draw(st.sampled_from(["array", "slice", "integer", "mask", "list"]))
        size = shape[axis]
        if kind == "array":
            part = draw(st.sampled_from([common, common[-1:], (1,)]))
            items.append(draw(hnp.arrays(np.int64, part, elements=st.integers(-size, size - 1))))
        elif kind == "list":
            items.append(draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=1)))
        elif kind == "mask" and not mask_used and common == ():
            rank = draw(st.integers(1, len(shape) - axis))
            items.append(draw(hnp.arrays(bool, shape[axis : axis + rank])))
            mask_used, axis = True, axis + rank - 1
        elif kind == "integer":
            items.append(draw(st.integers(-size, size - 1)))
        else:
            items.append(draw(st.slices(size)))
        axis += 1
        if draw(st.booleans()) and draw(st.booleans()):
            break
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if axis < len(shape) and draw(st.booleans()):
        items.append(Ellipsis)
    try:
        numbered(shape)[tuple(items)]
    except IndexError:  # arrays that do not broadcast together, such as a mask beside an array
        items = [draw(hnp.arrays(bool, shape))]
    return shape, tuple(items)


KEYS = st.one_of(basic_keys(), advanced_keys())


def as_ours(key, wrap):
    """Turn the arrays of a key into NDArrays where `wrap` says so."""
    return tuple(nd.array(i, dtype=i.dtype) if wrap and isinstance(i, np.ndarray) else i for i in key)


# ---- reading --------------------------------------------------------------------------------------------------------
@QUICK
@given(KEYS, st.booleans())
def test_reading_agrees_with_numpy(case, wrap):
    shape, key = case
    key = key if isinstance(key, tuple) else (key,)
    data = numbered(shape)
    want = legacy(data[key])
    found = nd.array(data)[as_ours(key, wrap)]
    assert found.shape == want.shape
    np.testing.assert_array_equal(found.asnumpy(), want)


@QUICK
@given(basic_keys(), st.permutations(range(4)))
def test_basic_indexing_shares_memory(case, order):
    shape, key = case
    axes = [a for a in order if a < len(shape)]
    host = np.ascontiguousarray(numbered(shape).transpose(np.argsort(axes)))
    x = nd.array(host)
    view = x._view(tuple(x.shape[a] for a in axes), tuple(x._strides[a] for a in axes), 0)  # a transposed view
    host = host.transpose(axes)
    part = view[key]
    assert part._shares_memory(x)
    np.testing.assert_array_equal(part.asnumpy(), legacy(host[key]))
    part[...] = -1
    host[key] = -1
    np.testing.assert_array_equal(view.asnumpy(), host)


def test_views_of_views_and_their_writes():
    x = nd.arange(12).reshape(3, 4)
    x[1][2] = 100
    x[::2][:, ::-1][0, 0] = 200
    row = x[2]
    row += 1000
    assert x.asnumpy().tolist() == [[0, 1, 2, 200], [4, 5, 100, 7], [1008, 1009, 1010, 1011]]


def test_advanced_indexing_copies():
    x = nd.arange(6)
    for key in ([0, 1], np.array([0, 1]), nd.array([0, 1]), np.array([True] * 6), nd.ones((6,), dtype="bool")):
        part = x[key]
        assert not part._shares_memory(x)
        part[:] = -1
    assert x.asnumpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_mxnet_conventions():
    x = nd.arange(12).reshape((3, 4))
    assert x[1, 2].shape == (1,) and x[1, 2].asscalar() == 6
    assert nd.arange(3)[1].shape == (1,)
    assert x[5:].shape == (0, 4) and x[0:10].shape == (3, 4) and x[2:1].shape == (0, 4)
    assert x[nd.array([0.0, 2.0])].shape == (2, 4)  # indices may be of a floating type
    assert nd.array(3.0)[()].shape == () and nd.array(3.0)[None].shape == (1,)
    number = nd.array(3.0)
    number[:] = np.ones(())
    assert number[:].shape == () and number.asscalar() == 1
    assert x[np.int64(1), np.uint8(2)].asscalar() == 6
    assert x[nd.array([1], dtype="int32")[0] : 3].shape == (2, 4)  # an integer array of one element bounds a slice
    assert x[True].shape == (1, 3, 4) and x[np.bool_(False)].shape == (0, 3, 4)
    assert x[[]].shape == (0, 4)


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (5, IndexError, "index 5 is out of bounds for axis 0 with size 3"),
        ((1, -5), IndexError, "index -5 is out of bounds for axis 1 with size 4"),
        ((0, 0, 0), IndexError, "too many indices"),
        ((..., ...), IndexError, "ellipsis"),
        (1.5, IndexError, "1.5"),
        ("a", IndexError, "'a'"),
        ({1: 2}, IndexError, "dict"),
        (object(), IndexError, "object"),
        (slice(None, None, 0), ValueError, "zero"),
        (slice(0.5, None), TypeError, "integers or None"),
        ([0, 7], IndexError, "index 7 is out of bounds"),
        ([0.5], IndexError, "not an integer"),
        (np.array(["a"]), IndexError, "not an integer"),
        (np.ones(2, bool), IndexError, "boolean index did not match"),
        (([0, 1], [0, 1, 2]), IndexError, "broadcast"),
        ([[0, 1], [2]], IndexError, "not an array of integers"),
    ],
)
def test_bad_keys(key, error, words):
    x = nd.zeros((3, 4))
    for attempt in (lambda: x[key], lambda: x.__setitem__(key, 1)):
        with pytest.raises(mx.MXNetError, match=words) as caught:
            attempt()
        assert isinstance(caught.value, error)
    assert not x.asnumpy().any()


# ---- writing --------------------------------------------------------------------------------------------------------
@QUICK
@given(KEYS, st.sampled_from(["scalar", "full", "row", "array", "ones"]), st.sampled_from(["float32", "int32", "float64"]))
def test_writing_agrees_with_numpy(case, kind, dtype):
    shape, key = case
    key = key if isinstance(key, tuple) else (key,)
    want = numbered(shape)
    part = want[key]
    goal = np.shape(part)
    value = {
        "scalar": 7,
        "full": -numbered(goal, dtype),
        "row": -numbered(goal[-1:], dtype),
        "array": -numbered(goal, dtype),
        "ones": -numbered((1, 1, *goal) if goal else (), dtype),
    }[kind]
    x = nd.array(want)
    want[key] = np.reshape(value, goal) if kind == "ones" else value
    x[key] = nd.array(value, dtype=dtype) if kind == "array" else value
    np.testing.assert_array_equal(x.asnumpy(), want)


def test_values_of_every_kind():
    y = nd.zeros((3, 4))
    y[:] = 2
    y[1] = np.array([1, 2, 3, 4])
    y[2, 1:3] = nd.array([7, 8])
    y[0] = [9, 9, 9, 8]
    assert y.asnumpy().tolist() == [[9, 9, 9, 8], [1, 2, 3, 4], [2, 7, 8, 2]]
    y[:] = nd.ones((4,))
    y[0, 0] = nd.array([3])
    y[0, 1] = nd.array([[4.0]])
    y[::-1] = nd.arange(12).reshape((3, 4))
    y[1] = True
    y[2] = np.float64(0.5)
    y[2, 3] = 2**70
    assert y.asnumpy().tolist() == [[8, 9, 10, 11], [1, 1, 1, 1], [0.5, 0.5, 0.5, float(2**70)]]


def test_values_are_converted_as_c_does():
    z = nd.zeros((3,), dtype="int32")
    z[0] = 2.7
    z[1:] = np.array([1.5, -1.5])
    assert z.asnumpy().tolist() == [2, 1, -1]
    u = nd.zeros((4,), dtype="uint8")
    u[:2] = -1
    u[[2, 3]] = 300
    assert u.asnumpy().tolist() == [255, 255, 44, 44]
    b = nd.zeros((3,), dtype="bool")
    b[:] = nd.array([0, 0.5, 2])
    assert b.asnumpy().tolist() == [False, True, True]
    h = nd.zeros((2,), dtype="float16")
    h[:] = nd.array([1.5, 70000.0])
    assert h.asnumpy().tolist() == [1.5, float("inf")]


def test_overlapping_assignment_reads_first():
    x = nd.arange(6)
    x[1:] = x[:-1]
    assert x.asnumpy().tolist() == [0, 0, 1, 2, 3, 4]
    x[::-1] = x
    assert x.asnumpy().tolist() == [4, 3, 2, 1, 0, 0]
    x[[0, 1, 2]] = x[3:]
    assert x.asnumpy().tolist() == [1, 0, 0, 1, 0, 0]
    x = nd.arange(5)
    x[[True, True, False, True, True]] = x[3::-1]
    assert x.asnumpy().tolist() == [3, 2, 2, 1, 0]
    x[:4][[True] * 4] = np.asarray(x)[1:]
    assert x.asnumpy().tolist() == [2, 2, 1, 0, 0]


def test_a_mask_that_is_the_array_itself_is_read_first():
    x = nd.array([True, False, False, True, True], dtype="bool")
    x[x[::-1]] = False
    assert x.asnumpy().tolist() == [False, False, False, True, False]
    x = nd.array([True, True, False, False, True], dtype="bool")
    x[x[::-1]] = [False, True, True]
    assert x.asnumpy().tolist() == [False, True, False, True, True]


@pytest.mark.parametrize(
    ("key", "value", "error", "words"),
    [
        (slice(None), np.ones((2, 2)), ValueError, r"\(2, 2\) to a part of shape \(3, 4\)"),
        (0, nd.ones((3,)), ValueError, r"\(3,\) to a part of shape \(4,\)"),
        ([0, 1], np.ones(3), ValueError, "cannot assign"),
        ([0, 1], nd.ones((2, 2, 4)), ValueError, "cannot assign"),
        (0, "abc", TypeError, "str 'abc' is not an array of numbers"),
        (0, None, TypeError, "None"),
        ([0], None, TypeError, "None"),
        (0, [1, None, 2, 3], TypeError, "not an array of numbers"),
        (0, [[1, 2], [3]], TypeError, "not an array of numbers"),
        (0, 1j, TypeError, "not an array of numbers"),
        (0, object(), TypeError, "not an array of numbers"),
    ],
)
def test_bad_values(key, value, error, words):
    x = nd.zeros((3, 4))
    with pytest.raises(mx.MXNetError, match=words) as caught:
        x[key] = value
    assert isinstance(caught.value, error)
    assert not x.asnumpy().any()


def test_read_only_memory_is_not_written():
    host = np.zeros(3, "float32")
    host.flags.writeable = False
    x = nd.from_numpy(host)
    for key, value in ((0, 1), ([0], 1), (slice(None), nd.ones((3,)))):
        with pytest.raises(mx.MXNetError, match="read-only"):
            x[key] = value
    assert not host.any()


def test_iteration_and_membership():
    x = nd.array([[1, 2], [3, 4]])
    assert [row.asnumpy().tolist() for row in x] == [[1, 2], [3, 4]]
    assert [e.shape for e in nd.arange(2)] == [(1,), (1,)]
    assert list(nd.empty((0, 2))) == []
    assert 3 in x and 5 not in x and nd.array([4]) in x
    with pytest.raises(TypeError, match="0-d"):
        iter(nd.array(1.0))
    for row in x:
        row *= 2  # rows are views
    assert x.asnumpy().tolist() == [[2, 4], [6, 8]]


# ---- gradients ------------------------------------------------------------------------------------------------------
@settings(max_examples=80, deadline=None)
@given(KEYS)
def test_recorded_reading_and_its_gradients(case):
    """The same elements come out, and each gives its gradient back, at first and second order."""
    shape, key = case
    key = key if isinstance(key, tuple) else (key,)
    data = numbered(shape)
    want = legacy(data[key])
    x = nd.array(data)
    x.attach_grad()
    with autograd.record():
        part = x[key]
        y = part * part * part
        dx = autograd.grad(y, [x], create_graph=True)[0]
        z = dx * dx
    assert part.shape == want.shape
    np.testing.assert_array_equal(part.asnumpy(), want)
    first = np.zeros_like(data)
    np.add.at(first, key, 3 * data[key] ** 2)
    np.testing.assert_allclose(dx.asnumpy(), first, rtol=1e-5)
    z.backward()
    # z = sum over places p of (count_p * 3 x_p^2)^2
    count = np.zeros_like(data)
    np.add.at(count, key, 1)
    np.testing.assert_allclose(x.grad.asnumpy(), 36 * count**2 * data**3, rtol=1e-4)


def test_repeated_indices_add_up():
    x = nd.array([1, 2, 3], dtype="float16")
    x.attach_grad()
    with autograd.record():
        y = x[[0, 0, 2]] * nd.array([1, 10, 100], dtype="float16")
    y.backward()
    assert x.grad.asnumpy().tolist() == [11, 0, 100]


def test_an_array_without_history_gives_views_while_recording():
    x = nd.arange(4)
    with autograd.record():
        x[1:][0] = 7
        assert x[1:]._shares_memory(x)
    assert x.asnumpy().tolist() == [0, 7, 2, 3]


def test_assigning_to_a_recorded_array():
    x = nd.arange(3)
    x.attach_grad()
    with autograd.record():
        y = x * 2
        for target in (x, y):
            for key in (0, slice(None), [0, 1]):
                with pytest.raises(mx.MXNetError, match=r"autograd.*x\[\.\.\.\] = value"):
                    target[key] = 1
    x[0] = 5  # outside the scope it is allowed
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 2, 2]


@pytest.mark.parametrize("key", [1, (slice(None), 1), slice(None), ([1, 0],), np.array([[True, False], [False, True]])])
def test_assigning_a_recorded_value_keeps_its_gradient(key):
    x, fresh = nd.array([2.0, 3.0]), np.zeros((2, 2), "float32")
    x.attach_grad()
    buffer = nd.zeros((2, 2))
    weights = nd.array([[1, 10], [100, 1000]])
    with autograd.record():
        buffer[key] = x * x
        loss = (buffer * weights).sum()
    loss.backward()
    fresh[key] = [4, 9]
    np.testing.assert_array_equal(buffer.asnumpy(), fresh)
    np.testing.assert_allclose(x.grad.asnumpy(), numeric_grad(key, weights.asnumpy()), rtol=1e-4)


def numeric_grad(key, weights):
    result = []
    for i in range(2):
        sides = []
        for step in (1e-4, -1e-4):
            v = np.array([2.0, 3.0])
            v[i] += step
            buffer = np.zeros((2, 2))
            buffer[key] = v * v
            sides.append((buffer * weights).sum())
        result.append((sides[0] - sides[1]) / 2e-4)
    return result


def test_assigning_a_recorded_value_twice_to_an_element():
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record(), pytest.raises(mx.MXNetError, match="twice"):
        nd.zeros((3,))[[0, 0]] = x * 1


# ---- keys as text ---------------------------------------------------------------------------------------------------
def test_keys_are_written_and_read():
    key = (slice(0, 3, 1), 2, None, "@", slice(4, None, -1))
    assert read(written(key)) == key
    assert read("") == ()


@QUICK
@given(advanced_keys())
def test_the_shape_rule_is_numpys(case):
    shape, key = case
    arrays = []
    items = []
    for i in key:
        if isinstance(i, (np.ndarray, list)):
            found = np.asarray(i)
            parts = found.nonzero() if found.dtype == bool else [found]
            arrays += [p.shape for p in parts]
            items += ["@"] * len(parts)
        elif i is not Ellipsis:
            items.append(i)
    assert indexed_shape("x", shape, tuple(items), arrays) == numbered(shape)[key].shape


@pytest.mark.parametrize("recorded", [False, True])
def test_one_element_is_a_scalar_where_shapes_are_numpy_s(recorded):
    with mx.np_shape():
        x = nd.array([[1, 2], [3, 4]])
        x.attach_grad()
        with autograd.record() if recorded else autograd.pause():
            found = [x[0, 1], x[(1, -1)], x[1][0], x[nd.array(1, dtype="int32"), nd.array(1, dtype="int32")]]
            y = sum(found[1:], 10 * found[0])
        assert [a.shape for a in found] == [a.shape for a in x[0]] + [()] * 2 == [()] * 4
        assert [a.item() for a in found] == [2, 4, 3, 4]
        if recorded:
            y.backward()
            assert x.grad.asnumpy().tolist() == [[0, 10], [1, 2]]
    assert x[0, 1].shape == (1,)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_rows_that_an_array_names_are_a_copy_of_them(dtype):
    x = nd.array(numbered((50, 3, 2)))
    rows = np.random.default_rng(0).integers(-50, 50, (4, 30))
    for index in (rows.astype(dtype), nd.array(rows, dtype=dtype), rows[:, ::-3].astype(dtype)):
        wanted = numbered((50, 3, 2))[np.array(index.asnumpy() if isinstance(index, nd.NDArray) else index, int)]
        found = x[index]
        np.testing.assert_array_equal(found.asnumpy(), wanted)
        np.testing.assert_array_equal(x[:, 1][index].asnumpy(), wanted[..., 1, :])  # of rows that are not neighbours
        found[:] = 0
    np.testing.assert_array_equal(x.asnumpy(), numbered((50, 3, 2)))
    for beyond in ([50], [-51]):
        with pytest.raises(IndexError, match=f"index {beyond[0]} is out of bounds for axis 0 with size 50"):
            x[nd.array(beyond, dtype=dtype)]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32"])
def test_rows_are_named_by_arrays_of_any_whole_numbers(dtype):
    a = np.arange(24.0, dtype="float32").reshape(4, 3, 2)
    for part in (a, a[:, 0, 0]):
        for places in ([2, 0, 2], [[1], [3]], [0, -1, -4], [-1]):
            if dtype == "uint8" and np.min(places) < 0:
                continue
            key = np.array(places, dtype)
            for index in (nd.array(key, dtype=dtype), places, *([] if dtype == "float32" else [key])):
                found = nd.array(part)[index]
                assert found.dtype == np.float32
                np.testing.assert_array_equal(found.asnumpy(), part[key.astype("int64")])
        for wrong in ([4], [-5], [0, 4]):
            with pytest.raises(IndexError, match="out of bounds"):
                nd.array(part)[nd.array(np.array(wrong, "int64"), dtype="int64")]
