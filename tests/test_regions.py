"""Samples and regions of images: what MXNet 1.9.1 gives; places outside of images, regions reversed or of no image."""

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym

contrib = nd.contrib
D = np.reshape([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4], (1, 1, 4, 5)).astype(np.float32)
ROIS = [[0, 1, 0.4, 3.6, 2.5], [0, -3, -2, 1, 8], [0, 4, 3, 1, 1], [0, 2, 2, 2, 2]]


def answers(op, arrays, **params):
    """Return the result, and the gradients with respect to the arrays for the head gradients 1/8, 2/8..."""
    given = [nd.array(a, dtype="float32") for a in arrays]
    for x in given:
        x.attach_grad()
    with autograd.record():
        y = op(*given, **params)
    y.backward(nd.array(np.arange(1, y.size + 1).reshape(y.shape) / 8))
    return [a.asnumpy().ravel() for a in (y, *(x.grad for x in given))]


def agree(found, want):
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


# ---- samples between pixels --------------------------------------------------------------------------------------------------
S = D[:, :, :3, :4].copy()
S[0, 0] = [[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]]
GRID = np.reshape([-1.2, -1, -0.4, 0.1, 0.3, 1, 1.1, 1.9, -1, -1.3, 0.2, 0.5, 0.7, 1, 1.2, 0], (1, 2, 2, 4))
LOC = [[0.9, 0.2, 0.1, -0.3, 1.1, 0.2]]
AFFINE = {"transform_type": "affine", "target_shape": (2, 3)}


def test_samples_are_mxnet_s():
    agree(answers(nd.BilinearSampler, [S, GRID]), [
        [2.1, 2.1, 7.52, 4.375, 4.135, 8, 5.44, 0],
        [0.2625, 0, 0, 0, 0.03, 0.36687, 0.34062, 0, 0.0075, 0.17688, 0.57812, 1.345],
        [0.5625, -0.525, 1.575, -1.875, -0.65625, -9, -8.4, 0, 0.175, 0.75, -2.025, -0.075, 1.59375, -6, -5.95, 0],
    ])  # fmt: skip
    agree(answers(nd.SpatialTransformer, [S, LOC], sampler_type="bilinear", **AFFINE), [
        [3.8, 2.5, 1.52, 1.52, 3.43, 5.6],
        [0.075, 0.14625, 0.16875, 0.21, 0.05, 0.01625, 0.00875, 0, 0.08, 0.14187, 0.41562, 0.525],
        [-9.825, -7.7625, -8.8125, -1.8375, -11.25, -7.075],
    ])  # fmt: skip


def test_grids_are_mxnet_s():
    agree(answers(nd.GridGenerator, [LOC], **AFFINE), [
        [-1, -0.1, 0.8, -0.6, 0.3, 1.2, -0.6, -0.9, -1.2, 1.6, 1.3, 1], [0.5, 1.125, 2.625, 0.5, 1.125, 7.125],
    ])  # fmt: skip
    agree(answers(nd.GridGenerator, [GRID], transform_type="warp"), [
        [-1.8, -1, 0.06667, 1.06667, -0.8, 0.33333, 1.06667, 2.26667, -3, -3.6, -0.6, 0, 2.4, 3, 3.4, 1],
        [0.08333, 0.16667, 0.25, 0.33333, 0.41667, 0.5, 0.58333, 0.66667, 2.25, 2.5, 2.75, 3, 3.25, 3.5, 3.75, 4],
    ])  # fmt: skip


def test_places_far_away_or_unknown_give_zeros():
    places = np.reshape([np.inf, -np.inf, np.nan, 1e30, 0, 0, 0, 0], (1, 2, 1, 4))
    found, *grads = answers(nd.BilinearSampler, [S, places])
    assert not found.any() and not any(g.any() for g in grads)


def test_only_pixels_that_have_a_weight_are_read():
    """MXNet has NaN where an infinite pixel has the weight 0."""
    pixels, places = [[[[np.inf, 1], [np.nan, 2]]]], np.reshape([1, 0.5, 3, -1.5, -1, -1, 0, 1], (1, 2, 1, 4))
    found, of_pixels, of_places = answers(nd.BilinearSampler, [pixels, places])
    np.testing.assert_array_equal(found, [1, np.inf, 0, np.nan])
    assert of_pixels.tolist() == [0.0625, 0.3125, 0.375, 0]
    np.testing.assert_array_equal(of_places, [-0.0625, -np.inf, 0, np.nan, 0.0625, np.nan, 0, np.nan])


@pytest.mark.parametrize("width", [1, 2, 3, 17])
@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 11, 255, 256, 257, 263])
def test_places_together_are_places_alone(count, width):
    """Four places are looked at together where so many are left, and 256 share a block."""
    rng = np.random.default_rng(count)
    data, head = rng.standard_normal((1, 3, 5, width)), rng.standard_normal((1, 3, 1, count))
    for values in (data, head):
        values[rng.random(values.shape) < 0.1] = rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0])
    grid = rng.uniform(-1.5, 1.5, (1, 2, 1, count)).round(rng.integers(3))
    data, head, grid = (nd.array(a, dtype="float32") for a in (data, head, grid))

    def found(head, grid):
        return nd.BilinearSampler(data, grid).asnumpy(), nd._internal._sampled_slopes(head, data, grid).asnumpy()

    together = found(head, grid)
    for j in range(count):
        part = (slice(None), slice(None), slice(None), slice(j, j + 1))
        for all_, alone in zip(together, found(head[part], grid[part]), strict=True):
            np.testing.assert_array_equal(all_[part], alone)
            assert (np.signbit(all_[part]) == np.signbit(alone))[~np.isnan(alone)].all()


def test_a_row_of_one_pixel_is_finite():
    """MXNet has NaN for affine maps, and infinity for moved pixels."""
    grid = nd.GridGenerator(nd.array([[1, 0, 0.5, 0, 1, 0]]), transform_type="affine", target_shape=(1, 3)).asnumpy()
    assert grid.ravel().tolist() == [-0.5, 0.5, 1.5, -1, -1, -1]
    assert nd.GridGenerator(nd.ones((1, 2, 1, 1)), transform_type="warp").asnumpy().ravel().tolist() == [1, 1]


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_grids_have_every_floating_point_type(dtype):
    found = nd.GridGenerator(nd.array(LOC, dtype=dtype), **AFFINE)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(found.asnumpy().ravel()[:3], [-1, -0.1, 0.8], rtol=1e-3)


# ---- deformable convolution -------------------------------------------------------------------------------------------------
MOVES = np.reshape([-0.5, 0, 1.25, 2, 0.5, -3, 0.25, 1, 0, -1, 0.75, 0.5] * 2, (1, 4, 2, 3))
FILTERS = np.reshape([2, -1, 0.5, 1], (2, 1, 1, 2))


def test_deformable_convolutions_are_mxnet_s():
    params = {"kernel": (1, 2), "num_filter": 2, "stride": (2, 1)}
    agree(answers(contrib.DeformableConvolution, [S, MOVES, FILTERS, [1, -2]], **params), [
        [1, 8, 0, 1, 2.75, 1, -2, 1, 5.875, -2, 7.5, -2],
        [0, 0, 1, 0.75, 0, 0, 0.98438, 0.5625, 0, 0.48438, 1.96875, 0.75],
        [0, -2, 3.9375, 0, 0, 0, 0, -3, 4.92188, 0, 3.875, 0, 0, 3.75, 1.5, 0, 0, 0, 0, 0, 0, 0, 2.25, 0],
        [4.84375, 7.21875, 13.28125, 18.28125], [2.625, 7.125],
    ])  # fmt: skip


def test_without_offsets_it_is_a_convolution():
    params = {"kernel": (2, 2), "num_filter": 4, "pad": (1, 0), "stride": (1, 2), "num_group": 2, "no_bias": True}
    data, weight = np.arange(72).reshape(2, 4, 3, 3) % 7, np.arange(32).reshape(4, 2, 2, 2) % 5
    offset, mask = np.zeros((2, 16, 4, 1)), np.ones((2, 8, 4, 1))
    want = answers(nd.Convolution, [data, weight], **params)
    found = answers(contrib.DeformableConvolution, [data, offset, weight], num_deformable_group=2, **params)
    agree([found[0], found[1], found[3]], want)
    masked = answers(contrib.ModulatedDeformableConvolution, [data, offset, mask, weight], num_deformable_group=2, **params)
    agree([masked[0], masked[1], masked[4]], want)


def test_a_mask_multiplies_pixels_and_edges_are_interpolated_with_zeros():
    data, offset, mask = [[[[1, 2, 4]]]], np.reshape([0, 0.5, 0, 0.5, 0, -0.5], (1, 2, 1, 3)), [[[[1, 2, 0.5]]]]
    params = {"kernel": (1, 1), "num_filter": 1, "no_bias": True}
    agree(answers(contrib.ModulatedDeformableConvolution, [data, offset, mask, [[[[2]]]]], **params), [
        [3, 4, 3], [0.125, 0.8125, 0.1875],  # the samples: 1.5 between 1 and 2, 1 between 2 and 0 below, 3 between 2 and 4
        [-0.375, -2, -1.125, 0.25, 1, 0.75], [0.375, 0.5, 2.25], [1.25],
    ])  # fmt: skip


# ---- correlation -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("params, want", [
    ({"pad_size": 1}, [
        [0, 0, 0, 7, 0, 0, 6, 27.5, 0, 0, 22, 0, 0, 10, 0, 3.5, 8, 39.5, 3, 28, 30.5, 0, 24, 0, 0, 5, 0, 0, 4, 40, 0, 0, 32,
         0, 0, 0],
        [29.625, 26.25, 18.375, 15, 30.9375, 27.375, 19.0625, 15.5],
        [6.0625, 8.3125, 12.8125, 15.0625, 15.5625, 21.0625, 32.0625, 37.5625],
    ]),
    ({"pad_size": 1, "is_multiply": False}, [
        [4, 5, 3, 2.5, 4, 5, 1, 4, 4, 5, 4.5, 3.5, 4, 4, 3, 2.5, 2, 3.5, 2, 4.5, 3.5, 5, 5, 3.5, 4, 4, 3, 3.5, 3, 4, 3, 3.5,
         4, 5, 3, 3.5],
        [2.8125, 2.375, 6.4375, 7.25, 2.8125, 10.125, 6.4375, 7.75],
        [-0.375, 3.625, -5.625, 6.625, -2.625, 1.375, -5.625, 2.875],
    ]),
    ({"kernel_size": 3, "max_displacement": 2, "stride1": 2, "stride2": 2, "pad_size": 3}, [
        [0, 0, 0, 0, 8.72222, 0, 0, 0, 0],
        [0.06944, 0.24306, 0.03472, 0.27778, 0.06944, 0.27778, 0.03472, 0.27778],
        [0.10417, 0.03472, 0.13889, 0.03472, 0.17361, 0.3125, 0.06944, 0.20833],
    ]),
])  # fmt: skip
def test_correlations_are_mxnet_s(params, want):
    maps = np.reshape([3, 1, 4, 1, 5, 9, 2, 6], (1, 2, 2, 2)), np.reshape([2, 7, 1, 8, 2, 8, 1, 8], (1, 2, 2, 2))
    agree(answers(nd.Correlation, maps, **params), want)


# ---- the largest pixels ----------------------------------------------------------------------------------------------------
def test_the_largest_pixels_are_mxnet_s():
    agree(answers(nd.ROIPooling, [D, ROIS], pooled_size=(2, 2), spatial_scale=1.0), [
        [6, 5, 9, 9, 0, 9, 0, 3, 4, 4, 4, 4, 9, 9, 9, 9],
        [0, 0, 0, 0, 0.25, 0.75, 0, 0.125, 0, 0, 0, 0, 7.625, 0, 0.5, 1, 0, 0, 0, 5.25], [0] * 20,
    ])  # fmt: skip
    agree(answers(nd.ROIPooling, [D, ROIS], pooled_size=(2, 3), spatial_scale=0.5), [
        [1, 4, 4, 2, 6, 6, 0, 9, 9, 0, 5, 8, 9, 9, 9, 9, 9, 9, 2, 2, 2, 2, 2, 2],
        [0, 0.125, 0.625, 0, 0, 2.125, 16.625, 1.375, 0, 0, 1.375, 1.5, 11.625, 0, 0, 0, 0, 0, 0, 0], [0] * 20,
    ])  # fmt: skip


def test_halves_of_pixels_are_rounded_away_from_zero():
    row = nd.arange(6).reshape((1, 1, 1, 6))
    found = [nd.ROIPooling(row, nd.array([[0, 0, 0, x, 0]]), pooled_size=(1, 1), spatial_scale=0.5).item() for x in (1, 3, 5)]
    assert found == [1.0, 2.0, 3.0]
    below = np.nextafter(np.float64(0.5), 0)  # to add a half to it gives 1
    data, region = row.astype("float64"), nd.array([[0, 0, 0, below, 0]], dtype="float64")
    assert nd.ROIPooling(data, region, pooled_size=(1, 1), spatial_scale=1.0).item() == 0.0


def test_nan_is_the_largest_and_infinite_pixels_count():
    data = np.array([[[[-np.inf, -np.inf, np.nan, 1.0]]]], np.float32)
    found, grad, _ = answers(nd.ROIPooling, [data, [[0, 0, 0, 3, 0]]], pooled_size=(1, 2), spatial_scale=1.0)
    np.testing.assert_array_equal(found, [-np.inf, np.nan])
    assert grad.tolist() == [0.125, 0, 0.25, 0]


def test_equal_pixels_give_the_gradient_to_the_first():
    found, grad, _ = answers(nd.ROIPooling, [np.ones((1, 1, 3, 3)), [[0, 0, 0, 2, 2]]], pooled_size=(1, 1), spatial_scale=1.0)
    assert found.tolist() == [1] and grad.tolist() == [0.125] + [0] * 8


# ---- means of samples ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rois, params, want, grad", [
    (ROIS, {"spatial_scale": 1.0}, [4.70125, 4.69664, 7.35531, 7.12141, 0, 3.625, 0, 0.55, 4, 4, 4, 4, 7.4375, 7.3125,
     5.3125, 6.9375],
     [0.16875, 0.06363, 0.02162, 0.02848, 0.0058, 0.1125, 0.08863, 0.14301, 0.17297, 0.03523, 0.1125, 0.1384, 1.97967, 2.04598,
      0.05393, 0.20625, 0.08434, 1.88383, 1.94633, 5.25816]),
    (ROIS, {"spatial_scale": 0.5, "sample_ratio": 2},
     [2.21719, 3.10719, 3.34258, 4.06562, 2.8125, 5.10156, 1.9375, 3.96875, 7.8125, 6.9375, 7.4375, 7.3125, 4.3125, 5.9375,
      6.9375,
      7.8125],
     [0.5614, 0.21981, 0.0809, 0, 0, 0.49096, 2.36498, 2.33156, 0.30469, 0, 0.57812, 1.93239, 3.84223, 2.01562, 0, 0.73828,
      0.07031,
      0.35156, 0.36719, 0]),
    (ROIS[:2], {"spatial_scale": 0.5, "sample_ratio": 1, "aligned": True},
     [2.35, 1.05, 4.48281, 1.59844, 0, 3, 0, 4.5],
     [0.97676, 0.59668, 0, 0, 0, 0.12949, 0.29707, 0, 0, 0, 0.75, 0, 0, 0, 0, 0.25, 0, 0, 0, 0]),
])  # fmt: skip
def test_means_of_samples_are_mxnet_s(rois, params, want, grad):
    agree(answers(contrib.ROIAlign, [D, rois], pooled_size=(2, 2), **params), [want, grad, [0] * 5 * len(rois)])


def test_bins_may_read_channels_of_their_own():
    data = np.concatenate([D, 2 * D[:, :, ::-1]], axis=1)
    params = {"pooled_size": (1, 2), "spatial_scale": 1.0, "position_sensitive": True}
    agree(answers(contrib.ROIAlign, [data, ROIS[:2]], **params), [
        [6.12, 12.18417, 0, 4.175],
        [0, 0.00365, 0.00677, 0, 0, 0, 0.01896, 0.03521, 0, 0, 0, 0.01896, 0.03521, 0, 0, 0, 0.00219, 0.00406, 0, 0, 0.05625,
         0.01875,
         0.00391, 0.01406, 0.00286, 0.0375, 0.0125, 0.02031, 0.07313, 0.0149, 0.0375, 0.0125, 0.02031, 0.07312, 0.0149, 0.05625,
         0.01875, 0.00234, 0.00844, 0.00172], [0] * 10,
    ])  # fmt: skip


@pytest.mark.parametrize("ratio", [-1, 2])
def test_an_aligned_region_without_a_size_gives_zeros(ratio):
    """MXNet ends its process."""
    rois = nd.array([[0, 1, 1, 1, 1], [0, 3, 3, 1, 1], [0, 0, 2, 4, 2]])
    found = contrib.ROIAlign(nd.array(D), rois, pooled_size=(2, 2), spatial_scale=1.0, sample_ratio=ratio, aligned=True)
    assert found.shape == (3, 1, 2, 2) and not found.asnumpy().any()


# ---- channels for each bin, and regions that are turned ----------------------------------------------------------------------
MAPS = np.concatenate([D, 2 * D[:, :, ::-1], D[:, :, :, ::-1], 1 - D], axis=1)
TRANS = np.reshape([0.5, -0.25, 1, 0, -0.5, 0.75, 0.25, -1], (1, 2, 2, 2))


def test_means_of_pixels_in_channels_of_their_own_are_mxnet_s():
    params = {"spatial_scale": 1.0, "output_dim": 1, "pooled_size": 2}
    agree(answers(contrib.PSROIPooling, [MAPS, ROIS[:3]], **params), [
        [3.25, 14, 6.75, -6, 0, 8.25, 0, -1.5, 4, 10, 3, -3],
        [0, 0.03125, 0.03125, 0, 0, 0, 0.03125, 0.03125, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1.125, 0.09375, 0.09375, 0, 0.0625,
         0.0625, 0.09375, 0.09375, 0, 0.0625, 0.0625, 0.09375, 0.09375, 0, 0, 0, 0.09375, 0.09375, 0, 0, 1.25, 0, 0, 0, 0, 0,
         0, 0, 0, 0, 0, 0, 0.09375, 0.09375, 0, 0, 0, 0.09375, 0.09375, 0, 1.375, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
         0.125, 0.125, 0.5, 0.5, 0, 0.125, 1.625],
        [0] * 15,
    ])  # fmt: skip
    params = {"spatial_scale": 0.5, "output_dim": 1, "pooled_size": 3, "group_size": 2}
    assert answers(contrib.PSROIPooling, [MAPS, ROIS[:2]], **params)[0] == pytest.approx(
        [2, 1, 5, 3.75, 1.5, 11, 4, 5, -3, 0, 3, 6, 0, 5.66667, 11.33333, 0, 6.5, -3], abs=1e-5
    )


def test_moved_regions_are_mxnet_s():
    params = {"spatial_scale": 1.0, "output_dim": 1, "pooled_size": 2, "group_size": 2, "trans_std": 0.3, "sample_per_part": 2}
    agree(answers(contrib.DeformablePSROIPooling, [MAPS, ROIS[:2], np.concatenate([TRANS, -TRANS])], **params), [
        [2.5, 13.44, 5.98, -3.5375, 0, 0, 0, 0],
        [0, 0.05625, 0.0625, 0.00625, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.03, 0.0375, 0.0075, 0, 0, 0.05,
         0.0625, 0.0125, 0, 0, 0.02, 0.025, 0.005, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.00563, 0.01875, 0.01313, 0, 0, 0.02812,
         0.09375, 0.06563, 0, 0, 0.0225, 0.075, 0.0525, 0, 0, 0, 0.04375, 0.0875, 0.04375, 0, 0, 0.0625, 0.125, 0.0625, 0, 0,
         0.01875, 0.0375, 0.01875, 0, 0, 0, 0, 0],
        [0] * 10,
        [0, -0.09, -0.495, 0.345, 0, -0.12, -0.23625, -1.575, 0, 0, 0, 0, 0, 0, 0, 0],
    ])  # fmt: skip
    params = {"spatial_scale": 0.5, "output_dim": 4, "pooled_size": 2, "group_size": 1, "no_trans": True, "sample_per_part": 3}
    assert answers(contrib.DeformablePSROIPooling, [MAPS, ROIS[:2]], **params)[0] == pytest.approx(
        [2.57407, 2.07407, 5.66667, 3.31482, 5.7037, 5.33333, 10.59259, 13.44444, 3.66667, 2.18519, 3.92593, 4.72222,
         -1.57407, -1.07407, -4.66667, -2.31481, 0, 4.84722, 0, 5.17824, 0, 7.36111, 0, 11.12037, 0, 4.25, 0, 5.61111, 0,
         -3.84722, 0, -4.17824], abs=1e-5)  # fmt: skip


def test_turned_regions_are_mxnet_s_and_have_a_gradient():
    rois = [[0, 2, 1.5, 3, 2, 30], [0, 1, 1, 2.5, 4, -75], [0, 4, 3, 0.2, 9, 200]]
    found, grad, none = answers(contrib.RROIAlign, [D, rois], pooled_size=(2, 2), spatial_scale=1.0)
    assert found == pytest.approx(
        [5.41915, 4.61656, 6.7524, 6.42907, 2.96245, 6.14419, 5.83151, 5.85577, 0.8, 0.86481, 4.03877, 4.71673], abs=1e-5
    )
    assert (grad * D.ravel()).sum() == pytest.approx((found * np.arange(1, 13) / 8).sum()) and not none.any()
    found = answers(contrib.RROIAlign, [D, rois[:2]], pooled_size=(1, 2), spatial_scale=0.5, sampling_ratio=2)[0]
    assert found == pytest.approx([4.09024, 2.7313, 3.15129, 4.74632], abs=1e-5)


def test_too_many_samples_of_turned_regions_are_refused():
    with pytest.raises(mx.MXNetError, match=r"a bin of region 1 of rois, .* has 1025 samples along an axis; expected 1024 at"):
        contrib.RROIAlign(nd.array(D), nd.array([[0] * 6, [0, 1, 1, 1025, 1, 0]]), pooled_size=(1, 1), spatial_scale=1.0)


# ---- all -------------------------------------------------------------------------------------------------------------------
EACH = [
    (nd.ROIPooling, {"pooled_size": (2, 2), "spatial_scale": 1.0}), (contrib.ROIAlign, {"pooled_size": (2, 2),
     "spatial_scale": 1.0}),
]  # fmt: skip


@pytest.mark.parametrize("op, params", EACH)
def test_regions_of_no_image_are_zeros_and_wrong_images_are_refused(op, params):
    found, grad, _ = answers(op, [D, [[-1, 0, 0, 3, 3], [0, 0, 0, 3, 3]]], **params)
    assert not found[:4].any() and found[4:].all() and grad.sum() == pytest.approx((5 + 6 + 7 + 8) / 8)
    for image in (1, float("nan"), float("inf")):
        with pytest.raises(mx.MXNetError, match=r"region 1 of rois is of image .*; expected a number below 1"):
            op(nd.array(D), nd.array([[0, 0, 0, 3, 3], [image, 0, 0, 3, 3]]), **params)


@pytest.mark.parametrize("op, params", EACH)
@pytest.mark.parametrize(
    "data, rois", [((1, 2, 4, 4), (0, 5)), ((0, 2, 4, 4), (0, 5)), ((1, 0, 4, 4), (2, 5)), ((1, 2, 0, 4), (2, 5))]
)
def test_nothing_has_a_result(op, params, data, rois):
    with mx.np_shape():
        found = op(nd.zeros(data), nd.zeros(rois), **params)
    assert found.shape == (rois[0], data[1], 2, 2) and not found.asnumpy().any()


@pytest.mark.parametrize("op, params", EACH)
@pytest.mark.parametrize("req, want", [("write", 1), ("add", 3), ("null", 2)])
def test_requests_of_a_bound_symbol(op, params, req, want):
    make = getattr(sym, op.__name__, None) or getattr(sym.contrib, op.__name__)
    net = make(sym.Variable("data"), sym.Variable("rois"), name="r", **params)
    assert net.list_outputs() == ["r_output"]
    given = {"data": nd.array(D), "rois": nd.array([[0, 1, 1, 1, 1]])}
    bound = net.bind(mx.cpu(), given, {k: nd.full(v.shape, 2) for k, v in given.items()}, grad_req=req)
    bound.forward(is_train=True)
    bound.backward(nd.full((1, 1, 2, 2), 0.25))
    if req == "null":
        return
    found, start = bound.grad_dict["data"].asnumpy(), 0 if req == "write" else 2
    assert found.sum() == pytest.approx(20 * start + 1) and (bound.grad_dict["rois"].asnumpy() == start).all()


def test_too_many_samples_are_refused():
    with pytest.raises(mx.MXNetError, match=r"operator _contrib_ROIAlign: a bin of region 0 of rois, .* has inf samples"):
        contrib.ROIAlign(nd.array(D), nd.array([[0, 0, 0, 1e39, 3]]), pooled_size=(2, 2), spatial_scale=1.0)


def test_places_outside_of_the_image_are_left_out():
    rois, places = nd.array([[0, 0, 0, 3, 3]]), nd.array([[[[-7, 3], [4, 10**12]]]], dtype="int64")
    head, image = nd.array([[[[1, 2], [3, 4]]]]), nd.ones((1, 1, 2, 2))
    assert nd._internal._roi_pooling_grad(head, rois, places, image).asnumpy().ravel().tolist() == [0, 0, 0, 2]
    assert nd._internal._roi_pooling_taken(image, rois, places).asnumpy().ravel().tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("ratio", [-1, 1, 3])
def test_many_turned_regions_are_what_each_is_alone(ratio):
    """The samples of several regions of an image are taken together, in the order of the images."""
    rng = np.random.default_rng(ratio + 5)
    data = rng.normal(size=(3, 2, 9, 11))
    rois = np.concatenate([rng.integers(-1, 3, (150, 1)), rng.uniform(-2, 11, (150, 2)), rng.uniform(0.5, 9, (150, 2)),
                           rng.uniform(-180, 180, (150, 1))], axis=1)  # fmt: skip
    params = {"pooled_size": (3, 2), "spatial_scale": 1.0, "sampling_ratio": ratio}
    x, head = nd.array(data, dtype="float64"), nd.array(rng.normal(size=(150, 2, 3, 2)), dtype="float64")
    x.attach_grad()
    with autograd.record():
        together = contrib.RROIAlign(x, nd.array(rois, dtype="float64"), **params)
    together.backward(head)
    total = np.zeros(data.shape)
    for k, roi in enumerate(rois):
        y = nd.array(data, dtype="float64")
        y.attach_grad()
        with autograd.record():
            alone = contrib.RROIAlign(y, nd.array(roi[None], dtype="float64"), **params)
        alone.backward(head[k : k + 1])
        np.testing.assert_array_equal(together[k : k + 1].asnumpy(), alone.asnumpy())
        total += y.grad.asnumpy()
    np.testing.assert_allclose(x.grad.asnumpy(), total, rtol=1e-12, atol=1e-12)
