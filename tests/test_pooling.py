"""The largest element of windows: without windows in memory, whatever is in the padding, in rows of any length."""

import numpy as np
import pytest

import mxop as mx


def place_of_largest(x, kernel, stride, pad, found):
    """Return where the first of the largest elements of each window is in its plane; NaN is larger than all."""
    places = np.zeros((*x.shape[:2], *found), "int64")
    for b, c, i, j in np.ndindex(places.shape):
        rows = [r for r in range(i * stride[0] - pad[0], i * stride[0] - pad[0] + kernel[0]) if 0 <= r < x.shape[2]]
        columns = [k for k in range(j * stride[1] - pad[1], j * stride[1] - pad[1] + kernel[1]) if 0 <= k < x.shape[3]]
        window = x[b, c][np.ix_(rows, columns)]
        r, k = np.unravel_index(np.argmax(window), window.shape)
        places[b, c, i, j] = rows[r] * x.shape[3] + columns[k]
    return places


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    "shape, kernel, stride, pad, convention",
    [
        ((2, 3, 7, 9), (3, 3), (2, 2), (1, 1), "valid"),
        ((1, 2, 5, 300), (2, 3), (1, 1), (1, 2), "valid"),
        ((2, 1, 3, 1100), (3, 2), (3, 1), (0, 1), "valid"),
        ((1, 1, 40, 41), (17, 16), (3, 5), (8, 7), "valid"),
        ((2, 2, 8, 8), (3, 3), (2, 2), (0, 1), "full"),
        ((3, 1, 6, 5), (2, 3), (2, 4), (0, 0), "same"),
    ],
)
def test_the_first_largest_element_of_each_window(shape, kernel, stride, pad, convention, dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 3, shape).astype(dtype)  # many are equal
    x[rng.random(shape) < 0.1], x[rng.random(shape) < 0.3] = np.nan, -np.inf
    given = mx.nd.array(x, dtype=dtype)
    given.attach_grad()
    with mx.autograd.record():
        found = mx.nd.Pooling(given, kernel=kernel, stride=stride, pad=pad, pooling_convention=convention, pool_type="max")
    head = rng.integers(1, 5, found.shape).astype(dtype)
    found.backward(mx.nd.array(head, dtype=dtype))
    places = place_of_largest(x, kernel, stride, pad, found.shape[2:]).reshape(*shape[:2], -1)
    flat, total = x.reshape(*shape[:2], -1), np.zeros((*shape[:2], shape[2] * shape[3]))
    np.testing.assert_array_equal(found.asnumpy().reshape(places.shape), np.take_along_axis(flat, places, -1))
    for b, c in np.ndindex(shape[:2]):
        np.add.at(total[b, c], places[b, c], head[b, c].ravel().astype("float64"))
    np.testing.assert_array_equal(given.grad.asnumpy(), total.reshape(shape))


def test_windows_of_padding_only_have_no_largest_element():
    x = mx.nd.array([[[1, 2, 3]]])
    found = mx.nd.Pooling(x, kernel=(1,), stride=(3,), pooling_convention="full", pool_type="max")
    assert found.asnumpy().tolist() == [[[1, -np.inf]]]
    found = mx.nd.Pooling(x, kernel=(2,), pad=(2,), pool_type="max").asnumpy()
    assert found.tolist() == [[[-np.inf, 1, 2, 3, 3, -np.inf]]]
    with mx.util.np_shape(True), pytest.raises(mx.MXNetError, match="padding only"):
        mx.nd.Pooling(mx.nd.zeros((1, 1, 0)), kernel=(3,), pad=(2,), pool_type="max")


def test_a_step_makes_no_windows():
    """Overlapping windows have more elements than all else together: neither pass makes them."""
    symbol = mx.sym.Pooling(mx.sym.Variable("data"), kernel=(5, 5), pad=(2, 2), pool_type="max")
    executor = symbol.simple_bind(mx.cpu(), data=(2, 8, 32, 32), grad_req="write")
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((2, 8, 32, 32)))
    image, told = 4 * 2 * 8 * 32 * 32, executor.explain(is_train=True)
    assert not any("_windows" in row.operator.replace("_largest_in_windows", "") for row in told)
    assert told.memory["planned"] <= 6 * image  # two of them are the place of each window's element


@pytest.mark.parametrize("kernel, stride, pad", [((3, 3), (2, 2), (1, 1)), ((2, 3), (1, 2), (0, 1)), ((4,), (2,), (2,))])
def test_a_gpu_finds_the_same(simulated_gpu, kernel, stride, pad):
    rng = np.random.default_rng(1)
    x = rng.integers(-2, 3, (2, 3, 6, 7)[: 2 + len(kernel)]).astype("float32")
    x[rng.random(x.shape) < 0.3] = -np.inf
    found = []
    for ctx in (mx.cpu(), simulated_gpu):
        given = mx.nd.array(x, ctx=ctx)
        given.attach_grad()
        with mx.autograd.record():
            y = mx.nd.Pooling(given, kernel=kernel, stride=stride, pad=pad, pool_type="max")
        y.backward()
        found.append((y.asnumpy(), given.grad.asnumpy()))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("pool_type", ["avg", "sum"])
@pytest.mark.parametrize("shape, kernel, stride, pad", [
    ((2, 3, 17, 19), (5, 4), (1, 2), (2, 1)), ((3, 1, 9, 9), (9, 9), (1, 1), (0, 0)), ((1, 40, 33), (7,), (3,), (0,)),
    ((2, 2, 6, 7, 8), (3, 2, 5), (2, 1, 1), (1, 0, 2)), ((4, 5, 8, 16), (2, 2), (2, 2), (0, 0)),
])  # fmt: skip
def test_sums_of_windows_make_no_windows(pool_type, shape, kernel, stride, pad):
    values = np.random.default_rng(5).normal(size=shape).astype("float32")
    params = {"kernel": kernel, "stride": stride, "pad": pad, "pool_type": pool_type}
    net = mx.sym.Pooling(mx.sym.Variable("x"), **params)
    executor = net.bind(mx.cpu(), {"x": mx.nd.array(values)}, {"x": mx.nd.zeros(shape)})
    told = executor.explain(is_train=True)
    assert not any("_windows" in row.operator for row in told)
    assert told.memory["planned"] <= 4 * 4 * values.size
    padded = np.pad(values.astype("float64"), [(0, 0), (0, 0), *[(p, p) for p in pad]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=tuple(range(2, len(shape))))
    windows = windows[(slice(None), slice(None), *[slice(None, None, s) for s in stride])]
    want = windows.sum(axis=tuple(range(-len(kernel), 0)))
    want = want / np.prod(kernel) if pool_type == "avg" else want
    np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(executor.outputs[0].asnumpy(), mx.nd.Pooling(mx.nd.array(values), **params).asnumpy())


def test_sums_of_windows_of_no_channels_and_of_what_is_infinite():
    assert mx.nd.Pooling(mx.nd.array(np.zeros((2, 0, 4, 4))), kernel=(2, 2), pool_type="avg").shape == (2, 0, 3, 3)
    x = np.zeros((1, 1, 3, 5))
    x[0, 0, 0, 0], x[0, 0, 2, 4] = np.inf, np.nan
    found = mx.nd.Pooling(mx.nd.array(x), kernel=(2, 2), pad=(1, 1), pool_type="sum").asnumpy()[0, 0]
    assert np.isinf(found[:2, :2]).all() and np.isnan(found[2:, 4:]).all()
    assert (found[:, 2:4] == 0).all() and (found[2:, :4] == 0).all() and (found[:2, 4:] == 0).all()


def test_the_largest_of_three_dimensions_makes_no_windows():
    values = np.random.default_rng(6).integers(-2, 3, (2, 3, 5, 6, 7)).astype("float32")
    net = mx.sym.Pooling(mx.sym.Variable("x"), kernel=(2, 3, 3), stride=(1, 2, 1))
    executor = net.bind(mx.cpu(), {"x": mx.nd.array(values)}, {"x": mx.nd.zeros(values.shape)})
    assert not any("_windows" in row.operator.replace("_largest_in_windows", "") for row in executor.explain(is_train=True))
    windows = np.lib.stride_tricks.sliding_window_view(values, (2, 3, 3), axis=(2, 3, 4))[:, :, :, ::2]
    windows = windows.reshape(2, 3, 4, 2, 5, 18)
    np.testing.assert_array_equal(executor.forward(is_train=True)[0].asnumpy(), windows.max(axis=-1))
    executor.backward([mx.nd.ones(windows.shape[:-1])])
    want = np.zeros(values.shape)
    for *at, i, j, k in np.ndindex(windows.shape[:-1]):
        place = np.unravel_index(windows[(*at, i, j, k)].argmax(), (2, 3, 3))  # the first of equal ones
        want[(*at, i + place[0], 2 * j + place[1], k + place[2])] += 1
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), want)


@pytest.mark.parametrize("how", ["bins", "corners", "pixels"])
def test_images_are_resized_to_none(how):
    with mx.util.np_shape(True):
        like = mx.nd.zeros((1, 2, 0, 4))
        found = mx.nd._internal._resized(mx.nd.ones((1, 2, 3, 4)), like, axis=2, mode="like", how=how)
        assert found.asnumpy().shape == (1, 2, 0, 4)
