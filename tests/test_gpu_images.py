"""Samples, regions and sizes of images on a GPU: their records, what the CPU finds, and what they wait for."""

from __future__ import annotations

import re
from collections import Counter

import fake_cupy
import fake_kernels
import numpy as np
import pytest
from cuda_compilers import find_nvrtc, nvrtc_ptx

import mxop as mx
from mxop import autograd, nd
from mxop._gpu import compiled, elements

contrib, internal = nd.contrib, nd._internal
OPERATORS = ("_sampled", "_sampled_grad", "_sampled_slopes", "BilinearSampler", "SpatialTransformer",
             "_contrib_DeformableConvolution", "ROIPooling", "_roi_pooling_grad", "_roi_pooling_taken", "_contrib_ROIAlign",
             "_roi_align_grad", "_contrib_PSROIPooling", "_psroi_pooling_grad", "_moved_regions", "_moved_regions_grad",
             "_cvimresize", "_cvimresize_grad", "_resized", "_resized_grad")  # fmt: skip
RNG = np.random.default_rng(17)
BINS = {"pooled_size": (3, 2), "spatial_scale": 0.5}
MOVED = {"spatial_scale": 0.5, "output_dim": 2, "group_size": 2, "pooled_size": 2, "sample_per_part": 2, "trans_std": 0.2}
#: Places between -1.6 and 1.6, some on pixels and edges, some that are no numbers.
GRID = np.concatenate(
    [RNG.uniform(-1.6, 1.6, (2, 2, 5, 8)), np.reshape([-1, 1, 0, 0.5, -1.4, 1.4, np.nan, np.inf] * 8, (2, 2, 2, 8))], 2
)
IMAGES = np.round(RNG.normal(0, 4, (2, 8, 9, 7)), 3)
#: Regions inside and outside of the images, reversed, of no image, far away, and some that are no numbers.
ROIS = np.array([[0, 1, 2, 9, 12], [1, -5, -8, 30, 40], [1, 9, 9, 2, 3], [0, 2.5, 3.5, 2.5, 3.5], [-1, 0, 0, 5, 5],
                 [1, 40, 50, 60, 70], [0, 3, 1, 12, 11], [1, 0.3, 0.7, 8.2, 13.9], [0, 1, 1, 2.01, 17]])  # fmt: skip
NO_NUMBERS = np.array([[0, np.nan, 0, 5, 5], [1, 2, -np.inf, 9, np.inf], [0, 1, 2, 9, 12]])
LOC = np.array([[0.9, 0.2, 0.1, -0.3, 1.1, 0.2], [1.4, 0, -0.2, 0, 0.6, 0.1]])
OFFSETS, WEIGHTS = RNG.uniform(-2.5, 2.5, (2, 16, 8, 6)), RNG.normal(size=(4, 4, 2, 2))
WINDOWS = {"kernel": (2, 2), "num_filter": 4, "num_group": 2, "num_deformable_group": 2, "no_bias": True}
#: Operator, inputs, how many of them have gradients, parameters.
CALLS = {
    "BilinearSampler": (nd.BilinearSampler, [IMAGES, GRID], 2, {}),
    "one row": (nd.BilinearSampler, [IMAGES[:, :, :1], GRID], 2, {}),
    "SpatialTransformer": (nd.SpatialTransformer, [IMAGES, LOC], 2,
                           {"target_shape": (5, 6), "transform_type": "affine", "sampler_type": "bilinear"}),
    "DeformableConvolution": (contrib.DeformableConvolution, [IMAGES, OFFSETS, WEIGHTS], 3, WINDOWS),
    "ModulatedDeformableConvolution": (contrib.ModulatedDeformableConvolution, [IMAGES, OFFSETS, OFFSETS[:, :8], WEIGHTS], 4,
                                       WINDOWS),
    "DeformableConvolution of a row": (contrib.DeformableConvolution,
                                       [IMAGES[:, :, :1], OFFSETS[:, :8, :1], WEIGHTS[:, :, :1]], 3,
                                       {**WINDOWS, "kernel": (1, 2)}),
    "ModulatedDeformableConvolution of a row": (contrib.ModulatedDeformableConvolution,
                                                [IMAGES[:, :, :1], OFFSETS[:, :8, :1], OFFSETS[:, :4, :1], WEIGHTS[:, :, :1]],
                                                4, {**WINDOWS, "kernel": (1, 2)}),
    "ROIPooling": (nd.ROIPooling, [IMAGES, np.concatenate([ROIS, NO_NUMBERS])], 1, BINS),
    "ROIAlign": (contrib.ROIAlign, [IMAGES, ROIS], 1, BINS),
    "ROIAlign, two samples": (contrib.ROIAlign, [IMAGES, np.concatenate([ROIS, NO_NUMBERS])], 1, {**BINS, "sample_ratio": 2}),
    "ROIAlign, aligned": (contrib.ROIAlign, [IMAGES, ROIS], 1, {**BINS, "aligned": True}),
    "ROIAlign, own channels": (contrib.ROIAlign, [IMAGES[:, :6], ROIS], 1, {**BINS, "position_sensitive": True}),
    "PSROIPooling": (contrib.PSROIPooling, [IMAGES, np.concatenate([ROIS, NO_NUMBERS])], 1,
                     {"spatial_scale": 0.5, "output_dim": 2, "pooled_size": 3, "group_size": 2}),
    "DeformablePSROIPooling": (contrib.DeformablePSROIPooling, [IMAGES, ROIS, RNG.uniform(-1, 1, (9, 4, 2, 2))], 3, MOVED),
    "BilinearResize2D": (contrib.BilinearResize2D, [IMAGES], 1, {"height": 13, "width": 4}),
    "BilinearResize2D, pixels": (contrib.BilinearResize2D, [IMAGES], 1, {"height": 4, "width": 17, "align_corners": False}),
    "AdaptiveAvgPooling2D": (contrib.AdaptiveAvgPooling2D, [IMAGES], 1, {"output_size": (4, 5)}),
    **{f"resize {interp}": (internal._cvimresize, [IMAGES.transpose(0, 2, 3, 1)], 1, {"w": w, "h": h, "interp": interp})
       for interp, (w, h) in enumerate([(5, 4), (11, 4), (14, 13), (3, 5), (6, 20)])},
}  # fmt: skip


def answers(name, place, dtype, waits=None):
    """Return the result of a call and its gradients; append to `waits` how often the forward and the backward waited."""
    op, arrays, count, params = CALLS[name]
    given = [nd.array(a, dtype=dtype, ctx=place) for a in arrays]
    for x in given[:count]:
        x.attach_grad()
    before = fake_cupy.waits[0]
    with autograd.record():
        y = op(*given, **params)
    between = fake_cupy.waits[0]
    y.backward(nd.array(np.arange(1, y.size + 1).reshape(y.shape) % 11 / 8, dtype=dtype, ctx=place))
    if waits is not None:
        waits += [between - before, fake_cupy.waits[0] - between]
    return [y, *(x.grad for x in given[:count])]


def agree(found, want):
    """Assert that arrays have the same values, but for the last bits of sums that the CPU adds up in another order."""
    unit = {np.float32: 3e-6, np.float64: 1e-14, np.float16: 1e-3}[want.dtype]
    with np.errstate(invalid="ignore"):
        size = np.nan_to_num(abs(want.asnumpy().astype("float64")), posinf=0).max(initial=1)
    np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=unit, atol=unit * size)


@pytest.mark.parametrize("gpu", ["simulated"], indirect=True)
@pytest.mark.parametrize("name", OPERATORS)
def test_records_hold_in_the_simulation(gpu, name):
    mx.test_utils.check_op(name, device=gpu, orders=2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", CALLS)
def test_a_gpu_finds_what_the_cpu_does(gpu, name, dtype):
    if name.startswith("resize") and dtype == "float16":
        pytest.skip("images have no such type")
    for found, want in zip(answers(name, gpu, dtype), answers(name, mx.cpu(), dtype), strict=True):
        assert found.context == gpu and found.dtype == want.dtype
        agree(found, want)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("clamp", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_places_on_pixels_and_at_edges(gpu, size, clamp, unit):
    """Derivatives jump there; the pixel before the first one is outside of the memory."""
    x = np.linspace(-3, 5, 65) if not unit else np.linspace(-3, 5, 65) * 2 / max(size - 1, 1) - 1
    grid = np.stack([x, np.full(x.shape, -1.0 if unit else 0.0)])[None, :, None]
    data, head = np.arange(1, 1 + size).reshape(1, 1, 1, size) ** 2.0, np.arange(x.size).reshape(1, 1, 1, -1) + 1.0
    for slope in (False, True):
        for op, first in ((internal._sampled, data), (internal._sampled_grad, head)):
            found, want = (
                op(*(nd.array(a, dtype="float64", ctx=place) for a in (first, grid, *([data] if first is head else []))),
                   across=slope, unit=unit, clamp=clamp).asnumpy() for place in (gpu, mx.cpu())
            )  # fmt: skip
            np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_copied_to_the_host(simulated_gpu, name):
    """Regions are checked, which is one number; the gradient with respect to moves evaluates the operator again."""
    waits = []
    answers(name, simulated_gpu, "float32", waits)
    checks = 1 if "ROI" in name else 0
    checks += 2 if name in ("ROIAlign", "ROIAlign, aligned", "ROIAlign, own channels") else 0  # how many samples there are
    assert waits == [checks, 2 if name.startswith("Deformable") and checks else 0]


@pytest.mark.parametrize("name", CALLS)
def test_sums_are_the_same_each_time_and_counted_by_64_bits(simulated_gpu, name, monkeypatch):
    first = answers(name, simulated_gpu, "float32")
    fake_kernels.made.clear()
    monkeypatch.setattr(elements, "SHORT_INDEX", 0)
    for a, b in zip(answers(name, simulated_gpu, "float32"), first, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    own = [text for text in fake_kernels.made.values() if "typedef float real;" in text]
    assert own and all("typedef unsigned long long mx_index;" in text for text in own)


def test_other_sizes_and_parameters_compile_nothing(simulated_gpu):
    def calls(size, ratio, interp):
        data, rois = nd.ones((2, 3, size, size + 1), ctx=simulated_gpu), nd.array(ROIS[:size], ctx=simulated_gpu)
        data.attach_grad()
        grid = nd.array(GRID[:, :, :size], ctx=simulated_gpu)
        with autograd.record():
            y = nd.BilinearSampler(data, grid).sum() + contrib.ROIAlign(data, rois, sample_ratio=ratio, **BINS).sum()
            y = y + nd.ROIPooling(data, rois, pooled_size=(ratio, 2), spatial_scale=0.25).sum()
        y.backward()
        internal._cvimresize(data, w=size, h=ratio, interp=interp)

    def texts():
        return {k for k in compiled._kernels if "real" in k.operation or k.name == "mxop_sums_at"}

    calls(4, 1, 0)
    before = texts()
    calls(5, 3, 2)
    assert texts() == before and len(before) == 9


@pytest.mark.parametrize("interp", range(5))
@pytest.mark.parametrize("size", [(3, 3), (7, 6), (2, 4), (10, 8), (5, 2), (30, 11)])
def test_bytes_are_those_of_the_cpu(simulated_gpu, interp, size):
    for channels in (1, 3, 5):
        x = (np.arange(2 * 4 * 5 * channels) * 37 % 256).astype(np.uint8).reshape(2, 4, 5, channels)
        before = fake_cupy.waits[0]
        found = mx.nd.image.resize(nd.array(x, dtype="uint8", ctx=simulated_gpu), size=size, interp=interp)
        assert fake_cupy.waits[0] == before and found.dtype == np.uint8
        want = mx.nd.image.resize(nd.array(x, dtype="uint8"), size=size, interp=interp)
        np.testing.assert_array_equal(found.asnumpy(), want.asnumpy())


def test_half_the_size_of_bytes_is_rounded_up(simulated_gpu):
    x = (np.arange(4 * 4 * 3) * 37 % 256).astype(np.uint8).reshape(4, 4, 3)
    found = [mx.nd.image.resize(nd.array(x, dtype="uint8", ctx=place), size=2).asnumpy() for place in (simulated_gpu, mx.cpu())]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("req, start", [("write", 0), ("add", 2), ("null", 2)])
@pytest.mark.parametrize("name", ["BilinearSampler", "ROIPooling", "ROIAlign", "PSROIPooling"])
def test_requests_of_a_bound_symbol(gpu, name, req, start):
    _, arrays, count, params = CALLS[name]
    net = getattr(mx.sym, name, None) or getattr(mx.sym.contrib, name)
    names = ["data", "grid" if name == "BilinearSampler" else "rois"]
    found = []
    for place in (gpu, mx.cpu()):
        given = {k: nd.array(a, dtype="float32", ctx=place) for k, a in zip(names, arrays, strict=True)}
        grads = {k: nd.full(v.shape, 2, ctx=place) for k, v in given.items()}
        bound = net(*map(mx.sym.Variable, names), **params).bind(place, given, grads, req)
        (y,) = bound.forward(is_train=True)
        bound.backward(nd.ones(y.shape, ctx=place))
        found.append(list(grads.values()))
    for k, (a, b) in enumerate(zip(*found, strict=True)):
        agree(a, b)
        assert (b.asnumpy() == start).all() == (req == "null" or k >= count)


@pytest.mark.parametrize("data, rois", [
    ((1, 4, 4, 4), (0, 5)), ((0, 4, 4, 4), (0, 5)), ((1, 0, 4, 4), (2, 5)), ((1, 4, 0, 4), (2, 5)), ((1, 4, 4, 0), (2, 5)),
])  # fmt: skip
def test_nothing_has_a_result(gpu, data, rois):
    with mx.np_shape():
        x, regions = nd.zeros(data, ctx=gpu), nd.zeros(rois, ctx=gpu)
        x.attach_grad()
        for op, params in ((nd.ROIPooling, BINS), (contrib.ROIAlign, BINS)):
            with autograd.record():
                found = op(x, regions, **params)
            found.backward()
            assert found.shape == (rois[0], data[1], 3, 2) and not found.asnumpy().any() and not x.grad.asnumpy().any()
        for places in (0, 3) if 0 in data else (0,):
            grid = nd.zeros((data[0], 2, 1, places), ctx=gpu)
            grid.attach_grad()
            with autograd.record():
                found = nd.BilinearSampler(x, grid)
            found.backward()
            assert found.shape == (*data[:2], 1, places) and not any(a.asnumpy().any() for a in (found, x.grad, grid.grad))


def test_nan_is_the_largest_of_a_bin_wherever_it_is(gpu):
    data, region = (
        nd.array([[[[1, np.nan, 9, np.nan], [2, 3, -np.inf, np.inf]]]], ctx=gpu),
        nd.array([[0, 0, 0, 3, 1]], ctx=gpu),
    )
    data.attach_grad()
    with autograd.record():
        found = nd.ROIPooling(data, region, pooled_size=(2, 1), spatial_scale=1.0)
    found.backward()
    np.testing.assert_array_equal(found.asnumpy().ravel(), [np.nan, np.inf])
    assert data.grad.asnumpy().ravel().tolist() == [0, 1, 0, 0, 0, 0, 0, 1]


def test_places_outside_of_the_image_are_left_out(gpu):
    rois, places = nd.array([[0, 0, 0, 3, 3]], ctx=gpu), nd.array([[[[-7, 3], [4, 10**12]]]], dtype="int64", ctx=gpu)
    head, images = nd.array([[[[1, 2], [3, 4]]]], ctx=gpu), nd.ones((2, 1, 2, 2), ctx=gpu)
    assert internal._roi_pooling_grad(head, rois, places, images).asnumpy().ravel().tolist() == [0, 0, 0, 2, 0, 0, 0, 0]
    assert internal._roi_pooling_taken(images, rois, places).asnumpy().ravel().tolist() == [0, 1, 0, 0]


def test_what_is_infinite_counts_where_it_has_a_weight(gpu):
    pixels, places = [[[[np.inf, 1], [np.nan, 2]]]], np.reshape([1, 0.5, 3, -1.5, -1, -1, 0, 1], (1, 2, 1, 4))
    x, grid = nd.array(pixels, ctx=gpu), nd.array(places, ctx=gpu)
    x.attach_grad()
    with autograd.record():
        y = nd.BilinearSampler(x, grid)
    y.backward(nd.array([[[[0.125, 0.25, np.nan, np.inf]]]], ctx=gpu))
    np.testing.assert_array_equal(y.asnumpy().ravel(), [1, np.inf, 0, np.nan])
    np.testing.assert_array_equal(x.grad.asnumpy().ravel(), [0.0625, 0.3125, np.inf, 0])
    data = np.array([[[[-np.inf, -np.inf, np.nan, 1.0]]]], np.float32)
    found = nd.ROIPooling(nd.array(data, ctx=gpu), nd.array([[0, 0, 0, 3, 0]], ctx=gpu), pooled_size=(1, 2), spatial_scale=1.0)
    np.testing.assert_array_equal(found.asnumpy().ravel(), [-np.inf, np.nan])


@pytest.mark.parametrize("op, params", [
    (nd.ROIPooling, BINS), (contrib.ROIAlign, BINS),
    (contrib.PSROIPooling, {"spatial_scale": 1.0, "output_dim": 2, "pooled_size": 2}),
])  # fmt: skip
def test_wrong_images_are_refused(gpu, op, params):
    for image in (2, float("nan"), float("inf")):
        with pytest.raises(mx.MXNetError, match=r"region 1 of rois is of image .*; expected a number below 2"):
            op(nd.array(IMAGES, ctx=gpu), nd.array([[0, 0, 0, 3, 3], [image, 0, 0, 3, 3]], ctx=gpu), **params)
    if op is contrib.ROIAlign:
        with pytest.raises(mx.MXNetError, match=r"a bin of region 0 of rois, .* has inf samples"):
            op(nd.array(IMAGES, ctx=gpu), nd.array([[0, 0, 0, 1e39, 3]], ctx=gpu), **params)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wide", [False, True])
def test_kernels_compile(simulated_gpu, dtype, wide, monkeypatch):
    path = find_nvrtc()
    if path is None:
        pytest.skip("needs the package nvidia-cuda-nvrtc")
    if wide:
        monkeypatch.setattr(elements, "SHORT_INDEX", 0)
    monkeypatch.setattr(fake_kernels, "compiled", set())
    for name in CALLS:
        answers(name, simulated_gpu, dtype)
    for interp in (0, 1, 2, 4) if dtype == "float32" else ():
        internal._cvimresize(nd.ones((4, 5, 3), dtype="uint8", ctx=simulated_gpu), w=7, h=3, interp=interp)
    sources = [text for text in fake_kernels.compiled if " real;" in text]
    names = Counter(re.search(r"__global__ void mxop_(\w+)\(", text)[1] for text in sources)
    more = {"mix": 8} if dtype == "float32" else {"mix": 2}
    assert names == {"sample": 1, "sample_grad": 1, "largest": 1, "weigh": 1, "blend": 1, "spread": 1, **more}
    for source in sources:
        ptx = nvrtc_ptx(path, source, ("--gpu-architecture=compute_80",))
        assert ptx.count(".entry") == 1 and ".local" not in ptx and "atom." not in ptx, source
