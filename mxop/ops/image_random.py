"""Random changes of images ``(height, width, channels)``: mirror images, brightness, contrast, saturation, hue, light.

Each image of a batch is changed in its own way.  Bytes are computed as real numbers, then cut to 0...255 and truncated.
"""

from typing import Annotated

from ..opdef import F, Floats, Range, composite, elementwise, infer
from ..support.errors import OpValueError
from ._shared import device_of, equal_shapes, typed_by_first
from .image import as_given, axes_of, by_channel, real

_Factor = Annotated[float, Range(0)]
#: How much red, green and blue there is in the light of a pixel.
_LIGHT = (0.299, 0.587, 0.114)
#: Colours of light in photographs: the principal components of red, green and blue, and how much they vary.
_COMPONENTS = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))
_VARIATION = (55.46, 4.794, 1.148)


# ---- what they have in common ---------------------------------------------------------------------------------------------
def _coloured(op, data):
    """Return whether images have three channels; raise if they have neither three nor one."""
    channels = data.shape[axes_of(op, data.shape)[2]]
    if channels not in (1, 3):
        raise OpValueError(f"operator {op}: data of shape {infer.show(data.shape)} have {channels} channels; expected 1 or 3")
    return channels == 3


def _drawn(F, data, low, high):
    """Return a number for each image, drawn evenly from an interval."""
    low, high = min(low, high), max(low, high)
    return F._random_uniform(low=low, high=high, shape=_one_each(data), ctx=device_of(data), dtype=data.dtype)


def _one_each(data):
    """Return the shape of one number for each image."""
    return (*data.shape[:-3], 1, 1, 1)


def _light(F, data):
    """Return the light of each pixel, which is that of a grey one."""
    return F.sum(F.broadcast_mul(data, by_channel(F, data, _LIGHT, len(data.shape) - 1)), axis=-1, keepdims=True)


def _mixed(F, data, factor, other):
    """Return `factor` times the data, and the rest of another image."""
    return F.broadcast_add(F.broadcast_mul(data, factor), F.broadcast_mul(other, 1 - factor))


def _contrasted(F, data, factor):
    axes = tuple(range(len(data.shape) - 3, len(data.shape)))
    light = _light(F, data) if data.shape[-1] == 3 else data
    return _mixed(F, data, factor, F.mean(light, axis=axes, keepdims=True))


def _saturated(F, data, factor):
    return _mixed(F, data, factor, _light(F, data)) if data.shape[-1] == 3 else data


def _turned(F, data, turn):
    """Return an image whose hues are turned; 1 is a whole turn."""
    if data.shape[-1] != 3:
        return data
    channels = [F.slice_axis(data, axis=-1, begin=k, end=k + 1) for k in range(3)]
    return F.Concat(*F._hue_turned(*channels, F.broadcast_like(turn, channels[0])), dim=-1)


# ---- mirror images ----------------------------------------------------------------------------------------------------------
def _flipped_or_not(F, op, data, which):
    """Return images that are mirrored with probability 1/2."""
    axis = axes_of(op, data.shape)[which]
    chosen = F._random_uniform(shape=_one_each(data), ctx=device_of(data)) < 0.5
    return F.where(F.broadcast_like(chosen, data), F.reverse(data, axis=(axis,)), data)


@composite(name="_image_random_flip_left_right", aliases=("_npx__image_random_flip_left_right",), random=True)
def random_flip_left_right(F, data):
    """Exchange left and right of images with probability 1/2.

    >>> sorted({mx.nd.image.random_flip_left_right(mx.nd.array([[[1], [2]]])).asnumpy()[0, 0, 0].item() for _ in range(99)})
    [1.0, 2.0]
    """
    return _flipped_or_not(F, "_image_random_flip_left_right", data, 1)


@composite(name="_image_random_flip_top_bottom", aliases=("_npx__image_random_flip_top_bottom",), random=True)
def random_flip_top_bottom(F, data):
    """Exchange top and bottom of images with probability 1/2.

    >>> sorted({mx.nd.image.random_flip_top_bottom(mx.nd.array([[[1]], [[2]]])).asnumpy()[0, 0, 0].item() for _ in range(99)})
    [1.0, 2.0]
    """
    return _flipped_or_not(F, "_image_random_flip_top_bottom", data, 0)


# ---- colours ----------------------------------------------------------------------------------------------------------------
@composite(name="_image_random_brightness", aliases=("_npx__image_random_brightness",), random=True)
def random_brightness(F, data, *, min_factor: _Factor, max_factor: _Factor):
    """Multiply images by a factor that is drawn evenly between `min_factor` and `max_factor`.

    >>> mx.nd.image.random_brightness(mx.nd.array([[[1], [2]]]), min_factor=1.5, max_factor=1.5).asnumpy().tolist()
    [[[1.5], [3.0]]]
    """
    _coloured("_image_random_brightness", data)
    x = real(F, data)
    return as_given(F, data, F.broadcast_mul(x, _drawn(F, x, min_factor, max_factor)))


@composite(name="_image_random_contrast", aliases=("_npx__image_random_contrast",), random=True)
def random_contrast(F, data, *, min_factor: _Factor, max_factor: _Factor):
    """Move pixels away from the mean light of the image, by a factor between `min_factor` and `max_factor`; below 1, to it.

    >>> mx.nd.image.random_contrast(mx.nd.array([[[1], [3]]]), min_factor=0.5, max_factor=0.5).asnumpy().tolist()
    [[[1.5], [2.5]]]
    """
    _coloured("_image_random_contrast", data)
    x = real(F, data)
    return as_given(F, data, _contrasted(F, x, _drawn(F, x, min_factor, max_factor)))


@composite(name="_image_random_saturation", aliases=("_npx__image_random_saturation",), random=True)
def random_saturation(F, data, *, min_factor: _Factor, max_factor: _Factor):
    """Move pixels away from grey of the same light, by a factor between `min_factor` and `max_factor`; below 1, to it.

    Images of one channel stay as they are.

    >>> mx.nd.image.random_saturation(mx.nd.array([[[10, 0, 0]]]), min_factor=0, max_factor=0).asnumpy().round(2).tolist()
    [[[2.990000009536743, 2.990000009536743, 2.990000009536743]]]
    """
    _coloured("_image_random_saturation", data)
    x = real(F, data)
    return as_given(F, data, _saturated(F, x, _drawn(F, x, min_factor, max_factor)))


@elementwise(name="_hue_turned")
def hue_turned(red, green, blue, turn):
    """Turn the hue of a colour of 0...255, by the model of hue, lightness and saturation; 1 is a whole turn."""
    red, green, blue = red / 255, green / 255, blue / 255
    most, least = F.maximum(F.maximum(red, green), blue), F.minimum(F.minimum(red, green), blue)
    grey = most - least <= 2.0**-23
    light, apart = (most + least) * 0.5, F.where(grey, 1, most - least)
    saturation = apart / F.where(light < 0.5, most + least, 2 - most - least)
    sixth = 60 / apart
    hue = F.where(most == red, (green - blue) * sixth,
                  F.where(most == green, (blue - red) * sixth + 120, (red - green) * sixth + 240))  # fmt: skip
    hue = (F.where(hue < 0, hue + 360, hue) + turn * 360) * (1 / 60)
    hue = hue - 6 * F.floor(hue / 6)
    high = F.where(light <= 0.5, light * (1 + saturation), light + saturation - light * saturation)
    low = 2 * light - high
    sector = F.floor(hue)
    rest = hue - sector
    falling, rising = low + (high - low) * (1 - rest), low + (high - low) * rest
    found = []
    for levels in ((high, falling, low, low, rising, high), (rising, high, high, falling, low, low),
                   (low, low, rising, high, high, falling)):  # fmt: skip
        value = levels[5]
        for k in range(5):
            value = F.where(sector == k, levels[k], value)
        found.append(255 * F.where(grey, light, value))
    return tuple(found)


@composite(name="_image_random_hue", aliases=("_npx__image_random_hue",), random=True)
def random_hue(F, data, *, min_factor: _Factor, max_factor: _Factor):
    """Turn the hues of images of 0...255, by a part of the whole turn between `min_factor` and `max_factor`.

    Images of one channel stay as they are.

    >>> mx.nd.image.random_hue(mx.nd.array([[[200, 100, 100]]]), min_factor=0.5, max_factor=0.5).asnumpy().round().tolist()
    [[[100.0, 200.0, 200.0]]]
    """
    _coloured("_image_random_hue", data)
    x = real(F, data)
    return as_given(F, data, _turned(F, x, _drawn(F, x, min_factor, max_factor)))


@composite(name="_image_random_color_jitter", aliases=("_npx__image_random_color_jitter",), random=True)
def random_color_jitter(F, data, *, brightness: float, contrast: float, saturation: float, hue: float):
    """Change brightness, contrast, saturation and hue of images, in random order; what is 0 or less is not changed.

    The first three change by factors from ``1 - brightness`` to ``1 + brightness``, and so on; hues turn by at most `hue`, of a
    whole turn, to either side.

    >>> image = mx.nd.array([[[200, 100, 100]]])
    >>> mx.nd.image.random_color_jitter(image, brightness=0, contrast=0, saturation=0, hue=0).asnumpy().tolist()
    [[[200.0, 100.0, 100.0]]]
    """
    _coloured("_image_random_color_jitter", data)
    x = real(F, data)
    if brightness > 0:
        x = F.broadcast_mul(x, _drawn(F, x, 1 - brightness, 1 + brightness))
    steps = [(_contrasted, contrast, 4, 5), (_saturated, saturation, 5, 6)]
    steps = [(step, _drawn(F, x, 1 - most, 1 + most), *places) for step, most, *places in steps if most > 0]
    if hue <= 0:
        for step, factor, *_ in steps:
            x = step(F, x, factor)
        return as_given(F, data, x)
    # All but hues may be changed in any order. Of six orders of three, two have both other steps behind, and one each of them.
    order = _drawn(F, x, 0, 6)
    behind = [F.where(order < 2, order < 2, (order >= begin) * (order < end)) for *_, begin, end in steps]
    for (step, factor, *_), last in zip(steps, behind, strict=True):
        x = step(F, x, F.where(last, F.ones_like(factor), factor))
    x = _turned(F, x, _drawn(F, x, -hue, hue))
    for (step, factor, *_), last in zip(steps, behind, strict=True):
        x = step(F, x, F.where(last, factor, F.ones_like(factor)))
    return as_given(F, data, x)


# ---- the colour of light ----------------------------------------------------------------------------------------------------
def _weighted():
    """Return the components for each channel, by how much they vary."""
    return [[part * size for part, size in zip(row, _VARIATION, strict=True)] for row in _COMPONENTS]


@composite(name="_image_adjust_lighting", aliases=("_npx__image_adjust_lighting",))
def adjust_lighting(F, data, *, alpha: Floats):
    """Add the components of light in photographs to images of 0...255; those of one channel stay as they are.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(height, width, channels)`` or ``(batch, height, width, channels)``.
    alpha : tuple of float
        How much of each of the three components.

    >>> mx.nd.image.adjust_lighting(mx.nd.zeros((1, 1, 3)), alpha=(0.1, 0, 0)).asnumpy().round(2).tolist()
    [[[-3.1500000953674316, -3.2200000286102295, -3.240000009536743]]]
    """
    if len(alpha) != 3:
        raise OpValueError(f"operator _image_adjust_lighting: alpha={alpha}; expected three numbers")
    x = real(F, data)
    if not _coloured("_image_adjust_lighting", data):
        return as_given(F, data, x)
    values = [sum(part * much for part, much in zip(row, alpha, strict=True)) for row in _weighted()]
    return as_given(F, data, F.broadcast_add(x, by_channel(F, x, values, len(data.shape) - 1)))


@composite(name="_image_random_lighting", aliases=("_npx__image_random_lighting",), random=True)
def random_lighting(F, data, *, alpha_std: float = 0.05):
    """Add components of light to images as ``adjust_lighting`` does; how much is drawn, with standard deviation `alpha_std`.

    >>> mx.nd.image.random_lighting(mx.nd.ones((1, 1, 3)), alpha_std=0).asnumpy().tolist()
    [[[1.0, 1.0, 1.0]]]
    """
    x = real(F, data)
    if not _coloured("_image_random_lighting", data):
        return as_given(F, data, x)
    alpha = F._random_normal(shape=(*data.shape[:-3], 1, 1, 3), ctx=device_of(data), dtype=x.dtype) * alpha_std
    last = len(data.shape) - 1
    added = [F.sum(F.broadcast_mul(alpha, by_channel(F, x, row, last)), axis=-1, keepdims=True) for row in _weighted()]
    return as_given(F, data, F.broadcast_add(x, F.Concat(*added, dim=-1)))


for _op in (random_flip_left_right, random_flip_top_bottom, random_brightness, random_contrast, random_saturation, random_hue,
            random_color_jitter, adjust_lighting, random_lighting):  # fmt: skip
    typed_by_first(equal_shapes(_op))
