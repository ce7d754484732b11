"""Operators on images: what MXNet 1.9.1 gives, distributions of what is drawn, and what the records do not say."""

from itertools import permutations

import numpy as np
import pytest

import mxop as mx
from mxop import autograd, nd, sym

image = nd.image
PIXELS = (np.arange(4 * 5 * 3) * 37 % 256).astype(np.uint8).reshape(4, 5, 3)


def pixels(dtype="uint8"):
    return nd.array(PIXELS, dtype=dtype)


# ---- sizes ----------------------------------------------------------------------------------------------------------------
#: The middle channel of PIXELS in other sizes (width, height), for each way to interpolate.
RESIZED = {
    (3, 3): [
        [[37, 148, 114], [80, 191, 157], [123, 234, 200]], [[81, 10, 167], [139, 68, 82], [125, 125, 139]],
        [[85, 8, 176], [153, 68, 69], [122, 127, 144]], [[92, 65, 153], [146, 119, 92], [123, 134, 145]],
        [[90, 8, 187], [165, 67, 74], [126, 127, 147]],
    ],
    (7, 6): [
        [[37, 37, 148, 3, 3, 114, 225], [37, 37, 148, 3, 3, 114, 225], [80, 80, 191, 46, 46, 157, 12],
         [123, 123, 234, 89, 89, 200, 55], [123, 123, 234, 89, 89, 200, 55], [166, 166, 21, 132, 132, 243, 98]],
        [[37, 100, 106, 3, 82, 161, 225], [59, 122, 128, 25, 104, 128, 119], [87, 151, 157, 53, 132, 102, 19],
         [116, 179, 185, 82, 161, 131, 48], [145, 135, 123, 111, 190, 159, 77], [166, 83, 53, 132, 211, 181, 98]],
        [[25, 113, 113, 0, 60, 178, 254], [46, 134, 134, 20, 98, 136, 113], [80, 172, 173, 55, 149, 108, 0],
         [103, 209, 213, 80, 171, 140, 30], [150, 140, 120, 115, 211, 176, 69], [183, 59, 14, 136, 239, 197, 90]],
        [[37, 104, 119, 3, 92, 158, 225], [59, 125, 140, 25, 113, 129, 119], [80, 147, 162, 46, 135, 99, 12],
         [123, 190, 205, 89, 178, 142, 55], [145, 134, 124, 111, 199, 164, 77], [166, 79, 43, 132, 221, 185, 98]],
        [[20, 123, 120, 0, 52, 189, 250], [43, 135, 123, 21, 93, 147, 109], [73, 186, 171, 54, 141, 118, 0],
         [99, 222, 209, 81, 166, 151, 20], [147, 147, 112, 113, 211, 184, 78], [184, 62, 3, 135, 250, 189, 85]],
    ],
    (2, 4): [
        [[37, 3], [80, 46], [123, 89], [166, 132]], [[120, 142], [163, 121], [206, 164], [57, 207]],
        [[138, 151], [181, 136], [224, 179], [42, 222]], [[75, 136], [118, 77], [161, 120], [101, 163]],
        [[143, 158], [190, 145], [233, 188], [47, 217]],
    ],
}  # fmt: skip


@pytest.mark.parametrize("size", RESIZED)
@pytest.mark.parametrize("interp", range(5))
def test_bytes_in_other_sizes_are_those_of_mxnet(size, interp):
    found = image.resize(pixels(), size=size, interp=interp).asnumpy()
    assert found.dtype == np.uint8 and found[:, :, 1].tolist() == RESIZED[size][interp]
    width, height = size
    assert (nd._internal._cvimresize(pixels(), w=width, h=height, interp=interp).asnumpy() == found).all()
    real = image.resize(pixels("float32"), size=size, interp=interp).asnumpy()
    assert abs(np.clip(real, 0, 255) - found).max() < 1.01  # weights of 11 bits
    batch = nd.array(np.stack([PIXELS, PIXELS[::-1]]), dtype="uint8")
    both = image.resize(batch, size=size, interp=interp).asnumpy()
    assert (both[0] == found).all() and (both[1] == image.resize(batch[1], size=size, interp=interp).asnumpy()).all()


def test_bytes_at_half_the_size_are_rounded_up():
    halved = image.resize(pixels()[:, :4], size=(2, 2)).asnumpy()
    assert halved.ravel().tolist() == [77, 114, 151, 107, 80, 117, 163, 136, 109, 129, 166, 139]


def test_sizes_follow_the_shorter_side():
    assert image.resize(pixels(), size=8, keep_ratio=True).shape == (8, 10, 3)
    assert image.resize(nd.zeros((2, 6, 4, 1)), size=3, keep_ratio=True).shape == (2, 4, 3, 1)
    assert image.resize(pixels(), size=2).shape == image.resize(pixels(), size=(2, 2), keep_ratio=True).shape == (2, 2, 3)
    net = sym.image.resize(sym.Variable("x"), size=(7, 6))
    assert net.infer_shape(x=(4, 5, 3))[1] == [(6, 7, 3)]


def test_threads_do_not_change_a_large_image():
    x = np.random.default_rng(0).integers(0, 256, (700, 900, 3), dtype=np.uint8)
    for interp in range(5):
        whole = image.resize(nd.array(x, dtype="uint8"), size=(500, 800), interp=interp).asnumpy()
        lines = image.resize(nd.array(np.repeat(x[None], 3, axis=0), dtype="uint8"), size=(500, 800), interp=interp).asnumpy()
        assert (lines == whole).all()


# ---- from and to tensors, mirror images, parts ------------------------------------------------------------------------------
def test_normalized_bytes_wrap_as_in_mxnet():
    x = nd.array(PIXELS.transpose(2, 0, 1)[:, :1], dtype="uint8")
    found = image.normalize(x, mean=(10, 20, 30), std=(2, 3, 4)).asnumpy()
    assert found.ravel().tolist() == [251, 50, 106, 33, 89, 5, 42, 251, 31, 68, 11, 38, 2, 30, 250]
    assert (image.normalize(x).asnumpy() == x.asnumpy()).all()  # MXNet refuses its own defaults


def test_images_become_tensors_with_gradients():
    x = pixels("float64")
    x.attach_grad()
    with autograd.record():
        y = image.to_tensor(x)
        z = image.normalize(image.crop(image.flip_left_right(x), x=0, y=1, width=2, height=2).transpose((2, 0, 1)), std=2)
    assert y.dtype == np.float32 and y.shape == (3, 4, 5) and y[1, 2, 3].item() == np.float32(PIXELS[2, 3, 1]) / 255
    autograd.backward([y, z])
    want = np.full((4, 5, 3), np.float64(np.float32(1) / 255))
    want[1:3, 3:] += 0.5
    np.testing.assert_allclose(x.grad.asnumpy(), want, rtol=1e-7)


def test_columns_in_the_middle_stay_and_batches_are_mirrored():
    """MXNet leaves the middle of an odd number of columns unwritten, and refuses batches."""
    assert (image.flip_left_right(pixels()).asnumpy() == PIXELS[:, ::-1]).all()
    assert (image.flip_top_bottom(nd.array(PIXELS[None])).asnumpy() == PIXELS[None, ::-1]).all()


@pytest.mark.parametrize("call", [
    lambda x: image.to_tensor(x), lambda x: image.flip_left_right(x), lambda x: image.random_flip_top_bottom(x),
    lambda x: image.random_hue(x, min_factor=0, max_factor=1), lambda x: image.random_lighting(x),
    lambda x: image.random_contrast(x, min_factor=0, max_factor=1),
])  # fmt: skip
@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (0, 2, 2, 3)])
def test_nothing_has_a_result(call, shape):
    with mx.np_shape():
        assert call(nd.zeros(shape)).size == 0


# ---- borders ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("params, want", [
    ({"value": 300.7}, [255, 255, 1, 2, 3, 255]), ({"value": 3.5}, [4, 4, 1, 2, 3, 4]), ({"value": 2.5}, [2, 2, 1, 2, 3, 2]),
    ({"values": (9,), "value": 1}, [9, 9, 1, 2, 3, 9]), ({"type": 1}, [1, 1, 1, 2, 3, 3]), ({"type": 2}, [2, 1, 1, 2, 3, 3]),
    ({"type": 3}, [2, 3, 1, 2, 3, 1]), ({"type": 17}, [1, 1, 1, 2, 3, 3]), ({"type": 4}, [3, 2, 1, 2, 3, 2]),
])  # fmt: skip
def test_borders(params, want):
    row = nd.array([[[1], [2], [3]]], dtype="uint8")
    assert nd._internal._cvcopyMakeBorder(row, 0, 0, 2, 1, **params).asnumpy().ravel().tolist() == want


@pytest.mark.parametrize("type_, mode", [(1, "edge"), (2, "symmetric"), (3, "wrap"), (4, "reflect")])
@pytest.mark.parametrize("shape, sides", [((1, 4, 3), (3, 0, 2, 1)), ((2, 3, 2, 1), (1, 7, 5, 4)), ((3, 5, 2), (0, 0, 9, 12))])
def test_borders_wider_than_images_on_both_devices(simulated_gpu, type_, mode, shape, sides):
    import fake_cupy

    x = np.arange(np.prod(shape)).reshape(shape).astype("uint8")
    want = np.pad(x, [(0, 0)] * (len(shape) - 3) + [sides[:2], sides[2:], (0, 0)], mode=mode)
    for place in (mx.cpu(), simulated_gpu):
        data = nd.array(x, dtype="uint8", ctx=place)
        fake_cupy.waits.clear()
        found = nd._internal._cvcopyMakeBorder(data, *sides, type=type_)
        assert not fake_cupy.waits  # nothing went over the host
        np.testing.assert_array_equal(found.asnumpy(), want)


# ---- colours ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name, factor, want", [
    ("brightness", 1.3, [0, 48, 96, 144, 192, 240, 255, 3, 52, 100, 148, 196, 244, 255, 7]),
    ("contrast", 1.3, [0, 15, 63, 111, 159, 208, 255, 0, 19, 67, 115, 163, 211, 255, 0]),
    ("hue", 0.3, [74, 0, 51, 185, 111, 162, 83, 222, 2, 151, 77, 128, 5, 225, 218]),
])  # fmt: skip
def test_colours_are_those_of_mxnet(name, factor, want):
    change = getattr(image, f"random_{name}")
    found = change(pixels()[:1], min_factor=factor, max_factor=factor)
    assert found.dtype == np.uint8 and found.asnumpy().ravel().tolist() == want
    real = change(pixels("float32")[:1], min_factor=factor, max_factor=factor).asnumpy().ravel()
    assert np.trunc(np.clip(real, 0, 255)).tolist() == want
    grey = change(nd.array(PIXELS[:, :, :1]), min_factor=1, max_factor=1).asnumpy()
    np.testing.assert_allclose(grey, PIXELS[:, :, :1], atol=1e-5)


def test_saturation_keeps_the_light_better():
    """MXNet mixes with 0.114 times the last channel, which makes grey pixels darker."""
    x = nd.array([[[10, 10, 10], [200, 30, 40]]], dtype="uint8")
    assert image.random_saturation(x, min_factor=0, max_factor=0).asnumpy().tolist() == [[[10] * 3, [81] * 3]]
    assert image.random_saturation(x, min_factor=2, max_factor=2).asnumpy().tolist() == [[[10] * 3, [255, 0, 0]]]


def test_light_is_that_of_mxnet():
    want = [0, 19, 62, 92, 130, 173, 203, 0, 28, 58, 96, 139, 169, 207, 0]
    assert image.adjust_lighting(pixels()[:1], alpha=(0.5, -1, 2)).asnumpy().ravel().tolist() == want
    mx.random.seed(1)
    drawn = image.random_lighting(nd.zeros((4000, 1, 1, 3)), alpha_std=0.1).asnumpy().reshape(-1, 3)
    components = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]) * 0.1
    components *= [55.46, 4.794, 1.148]
    np.testing.assert_allclose(np.cov(drawn.T), components @ components.T, rtol=0.08)
    assert abs(drawn.mean(axis=0)).max() < 0.2


@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation"])
def test_factors_are_drawn_evenly_for_each_image(name):
    from scipy import stats

    mx.random.seed(2)
    x = nd.array(np.broadcast_to([[[[0, 0, 100], [100, 50, 0]]]], (3000, 1, 2, 3)))
    found = getattr(image, f"random_{name}")(x, min_factor=0.5, max_factor=2).asnumpy()
    factors = (found[:, 0, 1, 0] - found[:, 0, 1, 1]) / 50
    assert stats.kstest(factors, stats.uniform(0.5, 1.5).cdf).pvalue > 1e-3
    again = (found[:, 0, 0, 2] - found[:, 0, 0, 1]) / 100
    np.testing.assert_allclose(again, factors, rtol=1e-4)


@pytest.mark.parametrize("flip, axis", [(image.random_flip_left_right, 1), (image.random_flip_top_bottom, 0)])
def test_half_of_the_images_are_mirrored(flip, axis):
    mx.random.seed(3)
    found = flip(nd.array(np.broadcast_to(PIXELS, (1000, 4, 5, 3)), dtype="uint8")).asnumpy()
    mirrored = (found == np.flip(PIXELS, axis)).all(axis=(1, 2, 3))
    assert (mirrored | (found == PIXELS).all(axis=(1, 2, 3))).all() and 440 < mirrored.sum() < 560
    assert {flip(pixels()).asnumpy()[0, 0, 0].item() for _ in range(40)} == {0, int(np.flip(PIXELS, axis)[0, 0, 0])}


def test_jitter_has_every_order():
    """Hues turn before contrast and saturation change, or behind both, or between them: each order as often as the others."""
    from scipy import stats

    x = nd.array(np.broadcast_to([[[[200.0, 60, 20], [30, 90, 50]]]], (6000, 1, 2, 3)))
    mx.random.seed(4)
    found = image.random_color_jitter(x, brightness=0, contrast=0.8, saturation=0.8, hue=0.4).asnumpy()
    steps = {"contrast": (0.2, 1.8), "saturation": (0.2, 1.8), "hue": (0.6, 1.4)}  # a whole turn more
    parts = []
    for order in permutations(steps):
        part = x[:1000]
        for name in order:
            part = getattr(image, f"random_{name}")(part, min_factor=steps[name][0], max_factor=steps[name][1])
        parts.append(part.asnumpy())
    want = np.concatenate(parts)
    for pixel in range(2):
        for channel in range(3):
            assert stats.ks_2samp(found[:, 0, pixel, channel], want[:, 0, pixel, channel]).pvalue > 1e-3
    still = image.random_color_jitter(x[:2], brightness=0, contrast=0, saturation=0, hue=0)
    assert (still.asnumpy() == x[:2].asnumpy()).all()


# ---- GPUs, symbols ----------------------------------------------------------------------------------------------------------
def _calls(ctx):
    x = nd.array(PIXELS, ctx=ctx, dtype="float32")
    yield image.to_tensor(x)
    yield image.normalize(x, mean=(1, 2, 3, 4) if x.shape[0] == 4 else 0, std=2)
    yield image.crop(x, x=1, y=0, width=2, height=3)
    yield image.flip_left_right(x)
    for interp in range(5):
        yield image.resize(x, size=(7, 3), interp=interp)
    for type_ in range(5):
        yield nd._internal._cvcopyMakeBorder(x, 1, 2, 1, 0, type=type_, value=7)
    yield image.adjust_lighting(x, alpha=(0.1, 0.2, 0.3))
    mx.random.seed(7)
    yield image.random_hue(x, min_factor=0.1, max_factor=0.2)
    yield image.random_color_jitter(x, brightness=0.1, contrast=0.2, saturation=0.3, hue=0.1)
    yield image.random_flip_left_right(nd.concat(*[x.expand_dims(0)] * 6, dim=0))
    x.attach_grad()
    with autograd.record():
        y = image.resize(nd._internal._cvcopyMakeBorder(x, 1, 1, 1, 1, type=2), size=(3, 9), interp=2)
    y.backward()
    yield x.grad


@pytest.mark.parametrize("gpu", ["simulated"], indirect=True)
def test_gpus_give_the_same(gpu):
    for found, want in zip(list(_calls(gpu)), list(_calls(mx.cpu())), strict=True):
        assert found.context == gpu
        np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=2e-5, atol=1e-4)


def test_symbols_run_as_calls_do():
    x = sym.Variable("x")
    net = sym.image.normalize(sym.image.to_tensor(sym.image.resize(x, size=(3, 3))), mean=(0.1, 0.2, 0.3), std=(2, 3, 4))
    found = net.bind(mx.cpu(), {"x": pixels()}).forward()[0]
    want = image.normalize(image.to_tensor(image.resize(pixels(), size=(3, 3))), mean=(0.1, 0.2, 0.3), std=(2, 3, 4))
    assert net.infer_shape(x=(4, 5, 3))[1] == [(3, 3, 3)] and (found.asnumpy() == want.asnumpy()).all()
    again = mx.sym.load_json(net.tojson()).bind(mx.cpu(), {"x": pixels()}).forward()[0]
    assert (again.asnumpy() == want.asnumpy()).all()
