"""Convolution, pooling and resizing: against MXNet's answers, on both devices, and in networks that are bound and trained."""

import json
import random
from pathlib import Path

import mxnet_layers
import numpy as np
import pytest
from comparing import heads, path_of, steps_of

import mxop as mx
from mxop import autograd, nd, sym
from mxop.records import convolution as records
from mxop.records import find
from mxop.test_utils import check_op

internal = nd._internal
DATA = Path(__file__).parent / "data"
CASES = json.loads(mxnet_layers.DATA.read_text(encoding="utf-8"))


# ---- MXNet's answers --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted({case[0] for _, case, _ in CASES}))
def test_mxnets_answers(name):
    """See ``mxnet_layers.py``: results and gradients for random parameters."""
    asked = [row for row in CASES if row[1][0] == name]
    assert len(asked) > 20
    for seed, case, answer in asked:
        found = mxnet_layers.run(mx, seed, case)
        assert [shape for shape, _ in found] == [shape for shape, _ in answer], case
        np.testing.assert_allclose([v for _, v in found], [v for _, v in answer], rtol=1e-4, atol=1e-4, err_msg=str(case))


@pytest.mark.parametrize("name", ["lenet", "residual"])
def test_networks_of_mxnet(name):
    """Graph, parameters, output and gradients were written by MXNet 1.9.1 (``data/make_golden.py``)."""
    net, kept = sym.load(DATA / f"{name}.json"), nd.load(str(DATA / f"{name}.params"))
    arrays = {k[4:]: a for k, a in kept.items() if k.startswith("arg:")}
    assert net.list_arguments() == list(arrays)
    assert net.infer_shape(data=arrays["data"].shape)[0] == [a.shape for a in arrays.values()]
    grads = {k: nd.zeros(a.shape) for k, a in arrays.items()}
    executor = net.bind(mx.cpu(), arrays, grads)
    output = executor.forward(is_train=True)[0]
    np.testing.assert_allclose(output.asnumpy(), kept["output"].asnumpy(), rtol=1e-4, atol=1e-5)
    executor.backward(kept["head"])
    for k, grad in grads.items():
        np.testing.assert_allclose(grad.asnumpy(), kept[f"grad:{k}"].asnumpy(), rtol=1e-4, atol=1e-5, err_msg=k)


# ---- a reference that shares nothing with the operators --------------------------------------------------------------
def slow_convolution(data, weight, stride, dilate, pad, groups):
    """Sum over everything, one product at a time."""
    spatial = [range((d + 2 * p - e * (k - 1) - 1) // s + 1) for d, k, s, e, p in
               zip(data.shape[2:], weight.shape[2:], stride, dilate, pad, strict=True)]  # fmt: skip
    result = np.zeros((data.shape[0], weight.shape[0], *map(len, spatial)))
    for place in np.ndindex(result.shape):
        n, f, *at = place
        group = f // (weight.shape[0] // groups)
        for c, *inside in np.ndindex(weight.shape[1:]):
            where = [a * s + i * e - p for a, s, i, e, p in zip(at, stride, inside, dilate, pad, strict=True)]
            if all(0 <= w < d for w, d in zip(where, data.shape[2:], strict=True)):
                result[place] += data[(n, group * weight.shape[1] + c, *where)] * weight[(f, c, *inside)]
    return result


@pytest.mark.parametrize("seed", range(40))
def test_random_convolutions_and_their_transposes(seed):
    """Values, and gradients by what defines them: the convolution is linear in data and in weight."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    n = rng.choice([1, 2, 2, 3])
    kernel, stride, dilate = ([rng.randint(1, 3 - (n == 3)) for _ in range(n)] for _ in range(3))
    pad = [rng.randint(0, 2) for _ in range(n)]
    sizes = [max(1, e * (k - 1) + 1 - 2 * p) + rng.randint(0, 3) for k, e, p in zip(kernel, dilate, pad, strict=True)]
    groups = rng.choice([1, 1, 2, 3])
    channels, filters = groups * rng.randint(1, 2), groups * rng.randint(1, 2)
    last = n > 1 and rng.random() < 0.4
    at = {"kernel": kernel, "stride": stride, "dilate": dilate, "pad": pad, "num_group": groups, "num_filter": filters,
          "layout": {2: "NHWC", 3: "NDHWC"}[n] if last else None}  # fmt: skip

    def array(x):
        return nd.array(np.moveaxis(x, 1, -1) if last else x, dtype="float64")

    def plain(x):
        return np.moveaxis(x.asnumpy(), -1, 1) if last else x.asnumpy()

    x, w = numbers.normal(size=(2, channels, *sizes)), numbers.normal(size=(filters, channels // groups, *kernel))
    want = slow_convolution(x, w, stride, dilate, pad, groups)
    b, head = numbers.normal(size=filters), numbers.normal(size=want.shape)
    inputs = [array(x), array(w), nd.array(b, dtype="float64")]
    for a in inputs:
        a.attach_grad()
    with autograd.record():
        y = nd.Convolution(*inputs, **at)
    y.backward(array(head))
    np.testing.assert_allclose(plain(y), want + b.reshape(-1, *(1,) * n), rtol=1e-12, atol=1e-12)
    dx, dw = numbers.normal(size=x.shape), numbers.normal(size=w.shape)
    along = [slow_convolution(dx, w, stride, dilate, pad, groups), slow_convolution(x, dw, stride, dilate, pad, groups)]
    found = [(plain(a.grad) * d).sum() for a, d in zip(inputs[:2], (dx, dw), strict=True)]
    np.testing.assert_allclose(found, [(head * c).sum() for c in along], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(inputs[2].grad.asnumpy(), head.sum((0, *range(2, n + 2))), rtol=1e-12)

    spare = [(d + 2 * p - e * (k - 1) - 1) % s for d, k, s, e, p in zip(sizes, kernel, stride, dilate, pad, strict=True)]
    back = nd.Deconvolution(array(head), array(w), adj=spare, **(at | {"num_filter": channels}))
    np.testing.assert_allclose(plain(back), plain(inputs[0].grad), rtol=1e-12, atol=1e-12)


# ---- what is special -------------------------------------------------------------------------------------------------
def gradient_of(function, x):
    x = nd.array(x)
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    return y.asnumpy().ravel().tolist(), x.grad.asnumpy().ravel().tolist()


def test_of_equal_elements_the_first_gets_the_gradient():
    assert gradient_of(lambda x: nd.Pooling(x, kernel=(3,)), [[[1, 1, 1, 2, 2, 0]]]) == (
        [1, 2, 2, 2],
        [1, 0, 0, 3, 0, 0],
    )
    assert gradient_of(lambda x: nd.Pooling(x, global_pool=True), np.ones((1, 1, 2, 2))) == ([1], [1, 0, 0, 0])
    found = gradient_of(lambda x: nd.Pooling_v1(x, kernel=(2, 2)), np.ones((1, 1, 3, 3)))[1]
    assert found == [1, 2, 1, 2, 4, 2, 1, 2, 1]  # all of them


def test_windows_beside_the_image():
    x, step = [[[1, 2, 3]]], {"kernel": (1,), "stride": (3,), "pooling_convention": "full"}
    assert gradient_of(lambda x: nd.Pooling(x, **step), x) == ([1, -np.inf], [1, 0, 0])
    assert gradient_of(lambda x: nd.Pooling(x, pool_type="avg", **step), x) == ([1, 0], [1, 0, 0])
    assert gradient_of(lambda x: nd.Pooling(x, pool_type="lp", p_value=3, **step), x) == ([1, 0], [1, 0, 0])


def test_nan_is_the_largest():
    assert np.isnan(nd.Pooling(nd.array([[[1, np.nan, 3, 2]]]), kernel=(2,)).asnumpy()).tolist() == [[[True, True, False]]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_halves_are_rounded_once(dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    head = nd.ones((1, 1, 9, 300), dtype=dtype)  # each element is in many windows
    x = nd.zeros((1, 1, 300 + 8), dtype=dtype)
    values = np.random.default_rng(0).uniform(0.9, 1.1, (1, 1, 9, 300))
    head[:] = nd.array(values, dtype="float32").astype(dtype)
    exact = nd._internal._windows_sum(head.astype("float64"), size=x.shape[2:], kernel=(9,))
    found = nd._internal._windows_sum(head, size=x.shape[2:], kernel=(9,))
    assert (found.astype("float64") == exact.astype(dtype).astype("float64")).asnumpy().all()


@pytest.mark.parametrize("count, size", [("valid", 2), ("full", 3), ("same", 3)])
def test_conventions(count, size):
    x = nd.array(np.arange(5.0).reshape(1, 1, 5))
    assert nd.Pooling(x, kernel=(2,), stride=(2,), pooling_convention=count).shape == (1, 1, size)


@pytest.mark.parametrize("count", ["valid", "full", "same"])
def test_pooling_ignores_more_strides_than_the_kernel_has_dimensions(count):
    x = nd.arange(10).reshape((1, 1, 10))
    found = nd.Pooling(x, kernel=2, stride=(2, 7), pad=(0, 0, 0), pooling_convention=count)
    assert found.asnumpy().tolist() == [[[1, 3, 5, 7, 9]]]


def test_pooling_ignores_more_padding_than_the_kernel_has_dimensions():
    found = nd.Pooling(nd.arange(10).reshape((1, 1, 10)), kernel=2, stride=3, pad=(1, 5))
    assert found.asnumpy().tolist() == [[[0, 3, 6, 9]]]


def test_shapes_that_are_known_in_part():
    x, partial = sym.Variable("x"), {"kernel": (2, 2), "num_filter": 2}
    c = sym.Convolution(x, **partial)
    assert c.infer_shape_partial(x=(0, 3, 0, 4)) == ([(0, 3, 0, 4), (2, 3, 2, 2), (2,)], [(0, 2, 0, 3)], [])
    assert c.infer_shape_partial(x=(0, 0, 5, 4)) == ([(0, 0, 5, 4), (2, 0, 2, 2), (2,)], [(0, 2, 4, 3)], [])
    back = (c + sym.Variable("o")).infer_shape_partial(x=(0, 3, 0, 0), o=(2, 2, 4, 4))
    assert back == ([(2, 3, 5, 5), (2, 3, 2, 2), (2,), (2, 2, 4, 4)], [(2, 2, 4, 4)], [])
    d = sym.Deconvolution(x, **partial)
    assert d.infer_shape_partial(x=(0, 3, 0, 4)) == ([(0, 3, 0, 4), (3, 2, 2, 2)], [(0, 2, 0, 5)], [])
    nhwc = sym.Convolution(x, kernel=(3, 3), num_filter=4, num_group=2, layout="NHWC")
    assert nhwc.infer_shape(x=(1, 5, 5, 2)) == ([(1, 5, 5, 2), (4, 3, 3, 1), (4,)], [(1, 3, 3, 4)], [])
    up = sym.UpSampling(x, scale=3, sample_type="bilinear", num_args=1, num_filter=4, name="u")
    assert up.list_arguments() == ["x", "u_weight"]
    assert up.infer_shape(x=(1, 4, 5, 5)) == ([(1, 4, 5, 5), (4, 1, 5, 5)], [(1, 4, 15, 15)], [])
    pooled = sym.Pooling(x, kernel=(2, 2), stride=(2, 1)).infer_shape_partial(x=(0, 3, 0, 4))
    assert pooled == ([(0, 3, 0, 4)], [(0, 3, 0, 3)], [])


def test_a_type_of_a_symbol_reaches_the_weights():
    types = sym.Convolution(sym.Variable("x"), kernel=(1,), num_filter=1).infer_type(x="float16")
    assert types == ([np.float16] * 3, [np.float16], [])
    with pytest.raises(TypeError, match="Convolution: data has dtype float64 but weight has dtype float32"):
        nd.Convolution(nd.ones((1, 1, 2), dtype="float64"), nd.ones((1, 1, 1)), kernel=(1,), num_filter=1, no_bias=True)


@pytest.mark.parametrize(("size", "groups"), [(20, 1), (14, 1), (14, 8), (60, 1)])  # products, and few filters
def test_results_are_the_same_with_any_number_of_threads(size, groups):
    x, w = nd.random.uniform(shape=(3, 8, size, size)), nd.random.uniform(shape=(8, 8 // groups, 3, 3))
    params, found = {"kernel": (3, 3), "num_filter": 8, "num_group": groups, "no_bias": True}, []
    (path,) = path_of(sym.Convolution(sym.Variable("x"), **params), x=x.shape)
    assert path.split(",")[0] == ("Product" if size == 20 else "FewFilters")
    for threads in (1, 2, 3):
        mx.context.set_num_threads(threads)
        x.attach_grad()
        w.attach_grad()
        with autograd.record():
            y = nd.Convolution(x, w, **params)
        y.backward(*heads([y]))
        found.append((y.asnumpy().tobytes(), x.grad.asnumpy().tobytes(), w.grad.asnumpy().tobytes()))
    assert len(set(found)) == 1


def check_products(image, filters, params, batch, dtypes=(("float64", 1e-12), ("float32", 2e-5))):
    """Compare the three operators of a convolution with sums over windows, one by one."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(batch, *image)), rng.normal(size=(*filters, *params["kernel"]))
    x, w = (v.astype(dtypes[-1][0]).astype("float64") for v in (x, w))
    h = rng.normal(size=records._convolution(x, w, **params).shape).astype(dtypes[-1][0]).astype("float64")
    wanted = (records._convolution(x, w, **params), records._convolved_data(h, w, size=image[1:], **params),
              records._convolved_weight(x, h, **params))  # fmt: skip
    for dtype, tolerance in dtypes:
        a, b, c = (nd.array(v, dtype=dtype) for v in (x, w, h))
        found = (internal._convolved(a, b, **params), internal._convolved_data(c, b, size=image[1:], **params),
                 internal._convolved_weight(a, c, **params))  # fmt: skip
        for have, want in zip(found, wanted, strict=True):
            assert np.dtype(have.dtype) == dtype
            have = have.asnumpy().astype("float64")
            np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance * abs(want).max())


@pytest.mark.parametrize("batch", [1, 7, 41])
@pytest.mark.parametrize(
    ("image", "filters", "params", "few"),  # and in which batches lines of the images are added up instead of a product
    [
        ((3, 9, 9), (4, 3), {"kernel": (3, 3), "pad": (1, 1)}, ()),  # small images together
        (
            (3, 40, 17),
            (4, 3),
            {"kernel": (3, 2), "pad": (2, 0), "stride": (1, 1)},
            (1, 7, 41),
        ),  # a product for each image
        ((3, 40, 17), (70, 3), {"kernel": (3, 2), "pad": (2, 0), "stride": (1, 1)}, ()),
        ((4, 20, 20), (6, 2), {"kernel": (3, 3), "stride": (2, 1), "num_group": 2}, ()),
        ((6, 12, 12), (6, 1), {"kernel": (3, 3), "pad": (1, 1), "dilate": (1, 2), "num_group": 6}, (1, 7, 41)),
        ((8, 14, 15), (16, 1), {"kernel": (3, 3), "pad": (1, 1), "stride": (2, 2), "num_group": 8}, (1, 7, 41)),
        ((9, 7, 7), (9, 1), {"kernel": (3, 3), "pad": (1, 1), "num_group": 9}, (1, 7, 41)),  # vectors of several lines
        ((9, 14, 13), (27, 1), {"kernel": (5, 3), "pad": (2, 1), "stride": (2, 2), "num_group": 9}, (1, 7, 41)),
        ((5, 16, 16), (7, 5), {"kernel": (1, 1)}, ()),  # the image is its windows
        ((5, 5, 5), (7, 5), {"kernel": (1, 1)}, ()),
        ((6, 5, 4), (9, 2), {"kernel": (5, 4), "num_group": 3, "stride": (2, 1)}, ()),  # one window
        ((2, 600), (3, 2), {"kernel": (5,), "pad": (4,), "stride": (2,)}, (41,)),
        ((2, 3, 9, 8), (3, 2), {"kernel": (2, 3, 3), "pad": (1, 0, 2), "stride": (1, 2, 1)}, ()),
    ],
)
def test_products_of_every_kind(image, filters, params, few, batch):
    symbol = sym.Convolution(sym.Variable("x"), num_filter=filters[0], no_bias=True, **params)
    (path,) = path_of(symbol, x=(batch, *image))
    assert path.split(",")[0] == ("FewFilters" if batch in few else "Product")  # with which lanes depends on how many there are
    check_products(image, filters, params, batch)


def some_convolution(rng):
    """Return shapes and parameters of a convolution that is allowed."""
    n = rng.choice([1, 2, 2, 2, 3])
    groups, each, channels = rng.choice([1, 1, 2, 5]), rng.choice([1, 2, 7, 13, 65]), rng.choice([1, 2, 5])
    params = {"kernel": tuple(rng.randint(1, 4) for _ in range(n)), "stride": tuple(rng.randint(1, 3) for _ in range(n)),
              "dilate": tuple(rng.randint(1, 3) for _ in range(n)), "pad": tuple(rng.randint(0, 5) for _ in range(n)),
              "num_group": groups}  # fmt: skip
    longest = {1: 90, 2: 40, 3: 7}[n]
    least = [max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(*(params[v] for v in ("kernel", "dilate", "pad")), strict=True)]
    sizes = tuple(m + rng.randint(0, longest) for m in least)
    return (channels * groups, *sizes), (each * groups, channels), params


@pytest.mark.parametrize("seed", range(40))
def test_products_of_windows_anywhere(seed, level):
    """Windows that begin and end beside images, are apart, and go on to the next line and image."""
    rng = random.Random(seed)
    check_products(*some_convolution(rng), rng.choice([1, 2, 3]))


@pytest.mark.parametrize("seed", range(6))
def test_products_of_windows_in_halves(seed):
    """Sums are rounded once."""
    rng = random.Random(100 + seed)
    check_products(*some_convolution(rng), 2, dtypes=[("float16", 1e-3)])


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [7, 14, 20])
def test_what_lies_between_short_lines_does_not_count(level, size, stride):
    """Vectors go on from line to line: an element meets what its windows have, and nothing of the line before or after."""
    params = {"kernel": (3, 3), "pad": (1, 1), "stride": (stride, stride), "num_group": 32}
    rng, operands = np.random.default_rng(0), [sym.Variable("x"), sym.Variable("w")]
    assert path_of(sym._internal._convolved(*operands, **params), x=(1, 32, size, size), w=(32, 1, 3, 3)) == [
        "FewFilters, lanes are channels"
    ]
    x, w = rng.normal(size=(1, 32, size, size)), rng.normal(size=(32, 1, 3, 3))
    h = rng.normal(size=records._convolution(x, w, **params).shape)
    x[0, :, 2, -1], x[0, :, 3, 0], h[0, :16, 1, -1], h[0, 16:, 1, 0] = np.inf, np.nan, np.inf, np.nan
    with np.errstate(invalid="ignore"):
        results, _, of_weight = leaving_out(x, w, h, **params, dilate=(1, 1))
    for dtype in ("float32", "float64"):
        a, b, c = (nd.array(v, dtype=dtype) for v in (x, w, h))
        found = internal._convolved(a, b, **params), internal._convolved_weight(a, c, **params)
        for have, want in zip(found, (results, of_weight), strict=True):
            np.testing.assert_allclose(have.asnumpy(), want, rtol=1e-4, atol=1e-4)


# ---- padding is left out, not multiplied ------------------------------------------------------------------------------
def leaving_out(data, weight, head, kernel, stride, dilate, pad, num_group):
    """Return results and both gradients in float64: what lies beside an image is in no product."""
    results, of_data, of_weight = np.zeros(head.shape), np.zeros(data.shape), np.zeros(weight.shape)

    def grouped(x):
        return x.reshape(x.shape[0], num_group, -1, *x.shape[2:])

    x, h, y, dx = (grouped(v) for v in (data, head, results, of_data))
    w, dw = (v.reshape(num_group, -1, *v.shape[1:]) for v in (weight, of_weight))
    axes = "xyz"[: len(kernel)]
    for place in np.ndindex(*kernel):
        inside, element = [..., *[None] * len(kernel)], [...]
        for axis, (k, s, d, p) in enumerate(zip(place, stride, dilate, pad, strict=True)):
            windows = [i for i in range(head.shape[axis + 2]) if 0 <= i * s - p + k * d < data.shape[axis + 2]]
            first, count = windows[0] if windows else 0, len(windows)
            inside[axis + 1] = slice(first, first + count)
            element.append(slice(first * s - p + k * d, first * s - p + k * d + count * s, s) if count else slice(0))
        inside, element, at = tuple(inside), tuple(element), (..., *place)
        y[inside] += np.einsum("bgc...,gfc->bgf...", x[element], w[at])
        dx[element] += np.einsum("bgf...,gfc->bgc...", h[inside], w[at])
        dw[at] = np.einsum(f"bgc{axes},bgf{axes}->gfc", x[element], h[inside])
    return results, of_data, of_weight


SPANNING = pytest.mark.parametrize(
    "image, filters, rest, params",
    [
        ((1, 9, 5), (3, 1), [0], {"kernel": (3, 5)}),  # words: a row of numbers each
        ((4, 9, 5), (6, 2), [0], {"kernel": (3, 5), "stride": (2, 3), "dilate": (2, 1), "pad": (1, 0), "num_group": 2}),
        ((3, 5, 11), (4, 3), [1], {"kernel": (5, 2), "pad": (0, 1)}),
        ((2, 6, 4, 5), (3, 2), [0], {"kernel": (2, 4, 5), "stride": (2, 1, 1)}),
        ((2, 4, 6, 5), (3, 2), [1, 2], {"kernel": (4, 3, 2), "pad": (0, 1, 0)}),
        ((2, 4, 3), (5, 2), [1], {"kernel": (4, 3)}),  # all of them: one remains
    ],
)


@SPANNING
@pytest.mark.parametrize("last", [False, True])
def test_axes_that_filters_span_are_channels(image, filters, rest, params, last):
    """Filters as long as images have one result along an axis: the gradient of the data as windows is mostly of zeros."""
    n, rng = len(params["kernel"]), np.random.default_rng(1)
    full = {"stride": (1,) * n, "dilate": (1,) * n, "pad": (0,) * n, "num_group": 1} | params
    x, w, b = rng.normal(size=(3, *image)), rng.normal(size=(*filters, *params["kernel"])), rng.normal(size=filters[0])
    h = rng.normal(size=records._convolution(x, w, **params).shape)
    results, *gradients = leaving_out(x, w, h, **full)
    results += b.reshape(1, -1, *(1,) * n)
    order = (0, *range(2, n + 2), 1) if last else tuple(range(n + 2))
    layout = {2: "NHWC", 3: "NDHWC"}[n] if last else None
    net = sym.Convolution(*map(sym.Variable, "xwb"), num_filter=filters[0], layout=layout, **params)
    values = {"x": x.transpose(order), "w": w.transpose(order), "b": b}
    arrays = {name: nd.array(v, dtype="float64") for name, v in values.items()}
    executor = net.bind(mx.cpu(), arrays, {name: nd.zeros(v.shape, dtype="float64") for name, v in values.items()})
    found = executor.forward(is_train=True)[0].asnumpy()
    np.testing.assert_allclose(found, results.transpose(order), rtol=1e-12, atol=1e-12)
    executor.backward(nd.array(h.transpose(order), dtype="float64"))
    for name, want in zip("xw", gradients, strict=True):
        np.testing.assert_allclose(executor.grad_dict[name].asnumpy(), want.transpose(order), rtol=1e-12, atol=1e-12)
    lines = [line for row in executor.explain() for line in row.formula if "_convolved" in line]
    kernel = f"kernel={tuple(params['kernel'][i] for i in rest)}"
    assert len(lines) == 3 and all(kernel in line for line in lines), lines


@SPANNING
def test_axes_that_filters_of_a_transpose_span_are_channels(image, filters, rest, params):
    rng = np.random.default_rng(2)
    w, shape = rng.normal(size=(*filters, *params["kernel"])), (3, *image)
    h = rng.normal(size=records._convolution(np.zeros(shape), w, **params).shape)
    net = sym.Deconvolution(*map(sym.Variable, "xw"), num_filter=image[0], **params)
    arrays = {"x": nd.array(h, dtype="float64"), "w": nd.array(w, dtype="float64")}
    executor = net.bind(mx.cpu(), arrays)
    found = executor.forward()[0].asnumpy()
    wanted = records._convolved_data(h, w, size=found.shape[2:], **params)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    (line,) = [line for row in executor.explain() for line in row.formula if "_convolved" in line]
    assert f"kernel={tuple(params['kernel'][i] for i in rest)}" in line
    mx.test_utils.check_numeric_gradient(net, arrays, rtol=1e-4, atol=1e-5, dtype=np.float64)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 2e-5), ("float16", 1e-3)])
@pytest.mark.parametrize(
    ("image", "filters", "params"),
    [
        *[((4, n, n), (4, 1), {"kernel": (3, 3), "pad": (1, 1), "stride": (s, s)}) for n in (7, 14, 17, 33) for s in (1, 2)],
        ((3, 5), (6, 1), {"kernel": (3,), "pad": (2,)}),
        ((3, 50), (3, 1), {"kernel": (7,), "pad": (9,), "dilate": (3,), "stride": (3,)}),
        ((4, 200), (12, 1), {"kernel": (4,), "pad": (3,)}),
        ((2, 19, 40), (4, 1), {"kernel": (2, 5), "pad": (4, 3), "stride": (3, 1), "dilate": (2, 4)}),
        ((6, 18, 45), (21, 2), {"kernel": (5, 4), "pad": (2, 3), "stride": (2, 3)}),
        ((3, 16, 32), (5, 3), {"kernel": (3, 3), "pad": (3, 3)}),  # one group
        ((2, 5, 6, 9), (2, 1), {"kernel": (3, 2, 3), "pad": (1, 1, 2), "stride": (1, 2, 1)}),
        ((3, 6, 7, 20), (6, 1), {"kernel": (2, 3, 3), "pad": (2, 1, 1), "stride": (2, 1, 2), "dilate": (2, 1, 1)}),
    ],
)  # fmt: skip
def test_padding_meets_no_infinite_filter(level, image, filters, params, dtype, tolerance):
    n = len(params["kernel"])
    params = {"stride": (1,) * n, "dilate": (1,) * n, "num_group": image[0] // filters[1], **params}
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(8, *image)), rng.normal(size=(*filters, *params["kernel"]))
    h = rng.normal(size=internal._convolved(nd.array(x), nd.array(w), **params).shape)
    x, w, h = (v.astype(dtype).astype("float64") for v in (x, w, h))
    for values in (w, h):
        flat = values.reshape(*values.shape[:2], -1)
        flat[0, 0, 0], flat[1, 0, -1], flat[-1, -1, -1], flat[-1, -1, 0] = np.inf, -np.inf, np.nan, np.inf
    with np.errstate(invalid="ignore"):
        wanted = leaving_out(x, w, h, **params)
    assert all(np.isfinite(v).any() for v in wanted)
    a, b, c = (nd.array(v, dtype=dtype) for v in (x, w, h))
    found = (internal._convolved(a, b, **params), internal._convolved_data(c, b, size=image[1:], **params),
             internal._convolved_weight(a, c, **params))  # fmt: skip
    for have, want in zip(found, wanted, strict=True):
        largest = abs(want[np.isfinite(want)]).max()
        np.testing.assert_allclose(have.asnumpy().astype("float64"), want, rtol=tolerance, atol=tolerance * largest)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 2e-5), ("float16", 1e-3)])
@pytest.mark.parametrize("seed", range(12))
def test_lanes_are_channels_of_any_number(level, seed, dtype, tolerance):
    """One filter for each channel: whole vectors of channels and a part of one, images that are views, short and long lines."""
    rng, random_ = np.random.default_rng(seed), random.Random(seed)
    n, groups, batch = random_.choice([1, 2, 2, 3]), random_.choice([16, 17, 23, 31, 32, 40, 67]), random_.choice([1, 2, 3])
    most = {"kernel": (1, 5 - n // 2), "stride": (1, 3), "dilate": (1, 2), "pad": (0, 3)}
    params = {k: tuple(random_.randint(*v) for _ in range(n)) for k, v in most.items()} | {"num_group": groups}
    sizes = [max(1, d * (k - 1) + 1 - 2 * p) + random_.choice([0, 1, 3, 6, 20, 70 // n])
             for k, d, p in zip(params["kernel"], params["dilate"], params["pad"], strict=True)]  # fmt: skip
    operands = sym.Variable("x"), sym.Variable("w")
    if batch * groups * int(np.prod(sizes[:-1])) >= 67:  # enough lines
        path = path_of(
            sym._internal._convolved(*operands, **params), x=(batch, groups, *sizes), w=(groups, 1, *params["kernel"])
        )
        assert path in (["FewFilters, lanes are channels"], ["Product"])  # of one window
        assert path != ["Product"] or tuple(sizes) == params["kernel"]
    wide = nd.array(rng.normal(size=(batch, groups + 3, *sizes)), dtype=dtype)
    a = wide[:, 2:-1] if seed % 2 else wide[:, :groups].transpose((0, 1, *range(n + 1, 1, -1)))
    x, w = a.asnumpy().astype("float64"), rng.normal(size=(groups, 1, *params["kernel"])).astype(dtype).astype("float64")
    if a.shape[2:] != tuple(sizes):  # turned
        params |= {k: params[k][::-1] for k in ("kernel", "stride", "dilate", "pad")}
        w = np.ascontiguousarray(w.transpose(0, 1, *range(n + 1, 1, -1)))
    h = rng.normal(size=internal._convolved(a, nd.array(w, dtype=dtype), **params).shape).astype(dtype).astype("float64")
    w.reshape(groups, -1)[[0, 5, groups - 1], [0, -1, 0]] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        wanted = leaving_out(x, w, h, **params)
    b, c = nd.array(w, dtype=dtype), nd.array(h, dtype=dtype)
    found = internal._convolved(a, b, **params), internal._convolved_data(c, b, size=x.shape[2:], **params)
    for have, want in zip(found, wanted, strict=False):
        largest = abs(want[np.isfinite(want)]).max(initial=0)
        np.testing.assert_allclose(have.asnumpy().astype("float64"), want, rtol=tolerance, atol=tolerance * largest)


def test_an_epilogue_of_channels_that_are_lanes(tune):
    """What follows is computed of each band's results: of whole vectors of channels, and of a part of one."""
    tune(stream_bytes=1)
    x, w = nd.random.normal(shape=(2, 37, 19, 23)), nd.random.normal(shape=(37, 1, 3, 3))
    scale = nd.random.normal(shape=(1, 37, 1, 1))
    params = {"kernel": (3, 3), "pad": (1, 1), "num_group": 37}
    operands = [sym.Variable(n) for n in "xws"]
    executor = sym.relu(sym.broadcast_mul(sym._internal._convolved(*operands[:2], **params), operands[2])).bind(
        mx.cpu(), {"x": x, "w": w, "s": scale}, grad_req="null"
    )
    found = executor.forward()[0].asnumpy()
    assert steps_of(executor) == ["FewFilters, lanes are channels, epilogue"]
    np.testing.assert_array_equal(found, nd.relu(nd.broadcast_mul(internal._convolved(x, w, **params), scale)).asnumpy())


def test_padding_meets_no_infinite_filter_of_many():
    """The gradient of images where a group has too many filters for the direct kernel."""
    params = {"kernel": (3, 3), "stride": (1, 1), "dilate": (1, 1), "pad": (1, 1), "num_group": 1}
    rng = np.random.default_rng(0)
    x, w, h = (rng.normal(size=size) for size in ((1, 5, 6, 7), (80, 5, 3, 3), (1, 80, 6, 7)))
    w[3, 2, 0, 0], w[70, 1, 2, 2] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        _, wanted, _ = leaving_out(x, w, h, **params)
    found = internal._convolved_data(nd.array(h), nd.array(w), size=(6, 7), **params)
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-4, atol=1e-4)


def test_sums_of_a_band_end_with_its_last_line():
    """The last band, of lines 150 to 198, has a line less than the one before it, of which there are still elements."""
    x, h = nd.ones((1, 8, 199, 201)), nd.ones((1, 8, 199, 201))
    symbol = sym._internal._convolved_weight(sym.Variable("x"), sym.Variable("h"), kernel=(3, 3), pad=(1, 1), num_group=8)
    assert path_of(symbol, x=x.shape, h=h.shape) == ["FewFilters"]
    x[:, :, 150, :5] = np.inf
    found = internal._convolved_weight(x, h, kernel=(3, 3), pad=(1, 1), num_group=8)
    assert (found.asnumpy() == np.inf).all()


def test_no_images():
    with mx.np_shape(True):
        x, w, y = nd.zeros((0, 2, 5, 5)), nd.ones((3, 2, 2, 2)), nd.zeros((0, 3, 4, 4))
        assert internal._convolved(x, w, kernel=(2, 2)).shape == y.shape
        assert internal._convolved_data(y, w, kernel=(2, 2), size=(5, 5)).shape == x.shape
        assert not internal._convolved_weight(x, y, kernel=(2, 2)).asnumpy().any()


# ---- the other device ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name",
    [
        "_windows",
        "_windows_sum",
        "_convolved",
        "_convolved_data",
        "_convolved_weight",
        "_window_shares",
        "_resized",
        "_resized_grad",
        "_repeated_to",
        "_centre",
    ],
)
def test_on_a_simulated_gpu(name, simulated_gpu):
    types = ["float64", "float32", *(["int32"] if "i" in find(name).dtypes else [])]
    check_op(name, device="gpu", dtypes=types)


@pytest.mark.parametrize("name", ["_windows", "_windows_sum"])
def test_halves_on_the_other_device(name, simulated_gpu):
    op, record = mx.op.get(name), find(name)
    for shapes, params in zip(record.shapes, record.params, strict=True):
        values = [np.random.default_rng(0).normal(size=s).astype("float16") for s in shapes]
        want, found = (op(*(nd.array(v, ctx, "float16") for v in values), **params) for ctx in (mx.cpu(), mx.gpu(0)))
        assert found.context == mx.gpu(0) and found.asnumpy().tobytes() == want.asnumpy().tobytes()


# ---- networks --------------------------------------------------------------------------------------------------------
def trained(net, data, label, steps, rate):
    """Train a network of logits with the cross entropy; return the losses."""
    loss = sym.softmax_cross_entropy(net, sym.Variable("label"))
    executor = loss.simple_bind(mx.cpu(), data=data.shape, label=label.shape, grad_req={
        k: "null" if k in ("data", "label") else "write" for k in loss.list_arguments()})  # fmt: skip
    rng = np.random.default_rng(2)
    for name, array in executor.arg_dict.items():
        if name not in ("data", "label"):
            array[:] = rng.normal(size=array.shape) / max(np.prod(array.shape[1:]), 1) ** 0.5
    executor.arg_dict["data"][:], executor.arg_dict["label"][:] = data, label
    losses = []
    for _ in range(steps):
        losses.append(executor.forward(is_train=True)[0].asnumpy().item() / len(label))
        executor.backward(nd.ones((1,)))
        for name, grad in executor.grad_dict.items():
            if grad is not None:
                executor.arg_dict[name][:] -= rate / len(label) * grad
    return losses


@pytest.mark.parametrize("name, size, classes", [("lenet", (1, 14, 14), 10), ("residual", (2, 11, 11), 5)])
def test_networks_learn(name, size, classes):
    rng = np.random.default_rng(1)
    label = np.arange(20) % classes
    data = rng.normal(size=(20, *size)) + rng.normal(size=(classes, *size))[label]
    losses = trained(sym.load(DATA / f"{name}.json"), nd.array(data), nd.array(label), 100, 0.2)
    assert losses[0] > 1 and losses[-1] < 0.2 * losses[0]


def test_a_gradient_penalty_through_a_network():
    """The second order in every parameter, against differences."""

    def penalty(x, w, v):
        x.attach_grad()
        with autograd.record():
            h = nd.Pooling(nd.tanh(nd.Convolution(x, w, kernel=(2, 2), num_filter=2, no_bias=True)), kernel=(2, 2),
                           pool_type="avg")  # fmt: skip
            y = nd.FullyConnected(nd.Flatten(h), v, num_hidden=1, no_bias=True).sum()
            slope = autograd.grad(y, x, create_graph=True)[0]
            return (slope * slope).sum()

    rng = np.random.default_rng(0)
    x, w, v = (nd.array(rng.normal(size=s), dtype="float64") for s in ((1, 1, 4, 4), (2, 1, 2, 2), (1, 8)))
    w.attach_grad()
    with autograd.record():
        value = penalty(x, w, v)
    value.backward()
    found, step = w.grad.asnumpy(), 1e-6
    for at in np.ndindex(w.shape):
        moved = [w.asnumpy(), w.asnumpy()]
        for sign, m in zip((1, -1), moved, strict=True):
            m[at] += sign * step
        up, down = (penalty(x, nd.array(m, dtype="float64"), v).item() for m in moved)
        assert found[at] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-7)


# ---- gradients of the data, where a last line has no window ------------------------------------------------------------
def add_filters(head, weight, sizes, stride, pad):
    """Add up filters in images of these sizes, each multiplied by an element of `head`, in float64."""
    found = np.zeros((len(head), weight.shape[1], *[n + 2 * p for n, p in zip(sizes, pad, strict=True)]))
    for at in np.ndindex(*head.shape[2:]):
        place = [slice(i * s, i * s + k) for i, s, k in zip(at, stride, weight.shape[2:], strict=True)]
        found[(..., *place)] += np.tensordot(head[(..., *at)], weight, (1, 0))
    return found[(..., *[slice(p, p + n) for n, p in zip(sizes, pad, strict=True)])]


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 1e-4), ("float16", 5e-2)])
@pytest.mark.parametrize("channels, filters", [(8, 8), (3, 5), (1, 4)])
@pytest.mark.parametrize(
    ("sizes", "kernel", "stride", "pad"),
    [((n, n), *rest) for n in (26, 27, 28, 29, 32, 33)
     for rest in (((3, 3), (2, 2), (0, 0)), ((2, 2), (2, 2), (0, 0)), ((4, 4), (3, 3), (1, 1)), ((1, 1), (2, 2), (0, 0)))]
    + [((400,), (3,), (2,), (0,)), ((401,), (2,), (2,), (0,)), ((12, 14, 14), (3, 3, 3), (2, 2, 2), (0, 0, 0)),
       ((40, 41), (5, 3), (3, 2), (0, 0))],
)  # fmt: skip
def test_gradients_of_data_beyond_the_last_window(sizes, kernel, stride, pad, channels, filters, dtype, tolerance):
    rng = np.random.default_rng(0)
    data, weight = rng.uniform(-1, 1, (2, channels, *sizes)), rng.uniform(-1, 1, (filters, channels, *kernel))
    x, w = nd.array(data, dtype=dtype), nd.array(weight, dtype=dtype)
    x.attach_grad()
    with autograd.record():
        y = nd.Convolution(x, w, kernel=kernel, stride=stride, pad=pad, num_filter=filters, no_bias=True)
    head = nd.array(rng.uniform(-1, 1, y.shape), dtype=dtype)
    y.backward(head)
    wanted = add_filters(head.asnumpy().astype("float64"), w.asnumpy().astype("float64"), sizes, stride, pad)
    np.testing.assert_allclose(x.grad.asnumpy(), wanted, tolerance, tolerance)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_largest_of_many_halves(dtype):
    """The type of the data does not hold all positions in a window; the gradient goes to the largest, too."""
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = np.linspace(-1, 0, 3 * 2 * 53 * 61).reshape(3, 2, 53, 61)
    for n, where in enumerate(np.ndindex(3, 2)):
        x[where].flat[(2049, 3231, 301, 3, 2777, 999)[n]] = n + 1
    data, head = nd.array(x, dtype=dtype), np.arange(2.0, 8).reshape(3, 2, 1, 1)
    data.attach_grad()
    with autograd.record():
        y = nd.Pooling(data, global_pool=True, kernel=(2, 2))
    y.backward(nd.array(head, dtype=dtype))
    np.testing.assert_array_equal(y.astype("float32").asnumpy().ravel(), range(1, 7))
    np.testing.assert_array_equal(data.grad.astype("float32").asnumpy(), (x > 0) * head)
