"""Augmenters: functions of one image that keep their parameters, and lists of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...ndarray import NDArray
from ...support.errors import AssertedError, OpTypeError, OpValueError
from .changes import _area, _method, center_crop, color_normalize, imresize, random_crop, random_size_crop, resize_short

_LIGHT = (0.299, 0.587, 0.114)
#: The principal components of the colours of photographs, and their eigenvalues.
_EIGENVALUES = (55.46, 4.794, 1.148)
_EIGENVECTORS = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))


def _listed(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of which JSON can be made."""
    found = {key: v.asnumpy() if isinstance(v, NDArray) else v for key, v in parameters.items()}
    return {key: v.tolist() if isinstance(v, np.ndarray) else v for key, v in found.items()}


class Described:
    """Keeps the parameters of an augmenter."""

    def __init__(self, **kwargs: Any):
        self._kwargs = _listed(kwargs)

    def dumps(self) -> Any:
        """Return name and parameters as JSON."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])


class Augmenter(Described):
    """Base of augmenters; derive, define ``__call__(src)``, and give the parameters to this class for ``dumps``."""

    def __call__(self, src: NDArray) -> NDArray:
        """Return the changed image."""
        raise NotImplementedError(f"{type(self).__name__} has no __call__")


class SequentialAug(Augmenter):
    """Several augmenters, one after the other."""

    def __init__(self, ts: Sequence[Augmenter]):
        super().__init__()
        self.ts = ts

    def dumps(self) -> Any:
        """Return the names and parameters of all."""
        return [type(self).__name__.lower(), [t.dumps() for t in self.ts]]

    def __call__(self, src: NDArray) -> NDArray:
        for t in self.ts:
            src = t(src)
        return src


class RandomOrderAug(SequentialAug):
    """Several augmenters, in a random order: the list is shuffled in each call."""

    def __call__(self, src: NDArray) -> NDArray:
        random.shuffle(self.ts)  # type: ignore[arg-type]
        return super().__call__(src)


# ---- sizes and parts ------------------------------------------------------------------------------------------------------
class _Sized(Augmenter):
    """Base of those that a size, and how to interpolate, are given to."""

    def __init__(self, size: Any, interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp


class ResizeAug(_Sized):
    """Give the shorter side a size."""

    def __call__(self, src: NDArray) -> NDArray:
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(_Sized):
    """Give the image a width and a height."""

    def __call__(self, src: NDArray) -> NDArray:
        return imresize(src, *self.size, interp=_method(self.interp, (*src.shape[:2], self.size[1], self.size[0])))


class RandomCropAug(_Sized):
    """Take a part at random, of a width and a height."""

    def __call__(self, src: NDArray) -> NDArray:
        return random_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """Take a part of random size and ratio; :func:`random_size_crop` describes the parameters."""

    def __init__(self, size: tuple[int, int], area: Any, ratio: tuple[float, float], interp: int = 2, **kwargs: Any):
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.area = _area(area, kwargs, "RandomSizedCropAug")
        self.size, self.ratio, self.interp = size, ratio, interp

    def __call__(self, src: NDArray) -> NDArray:
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class CenterCropAug(_Sized):
    """Take the middle, of a width and a height."""

    def __call__(self, src: NDArray) -> NDArray:
        return center_crop(src, self.size, self.interp)[0]


class HorizontalFlipAug(Augmenter):
    """Exchange left and right, with a probability."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray) -> NDArray:
        return nd.flip(src, axis=1) if random.random() < self.p else src


# ---- colours, of images of a floating-point type, some of them in place -----------------------------------------------------
class CastAug(Augmenter):
    """Convert to another type."""

    def __init__(self, typ: str = "float32"):
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src: NDArray) -> NDArray:
        return src.astype(self.typ)


class BrightnessJitterAug(Augmenter):
    """Multiply by a factor from ``1 - brightness`` to ``1 + brightness``, in place."""

    def __init__(self, brightness: float):
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src: NDArray) -> NDArray:
        src *= 1.0 + random.uniform(-self.brightness, self.brightness)
        return src


class ContrastJitterAug(Augmenter):
    """Move away from the mean light, or to it, by a factor from ``1 - contrast`` to ``1 + contrast``, in place."""

    def __init__(self, contrast: float):
        super().__init__(contrast=contrast)
        self.contrast = contrast
        self.coef = nd.array([[_LIGHT]])

    def __call__(self, src: NDArray) -> NDArray:
        alpha = 1.0 + random.uniform(-self.contrast, self.contrast)
        light = src * self.coef
        src *= alpha
        src += (3.0 * (1.0 - alpha) / light.size) * nd.sum(light)
        return src


class SaturationJitterAug(Augmenter):
    """Move away from grey of the same light, or to it, by a factor from ``1 - saturation`` to ``1 + saturation``, in place."""

    def __init__(self, saturation: float):
        super().__init__(saturation=saturation)
        self.saturation = saturation
        self.coef = nd.array([[_LIGHT]])

    def __call__(self, src: NDArray) -> NDArray:
        alpha = 1.0 + random.uniform(-self.saturation, self.saturation)
        grey = nd.sum(src * self.coef, axis=2, keepdims=True) * (1.0 - alpha)
        src *= alpha
        src += grey
        return src


class HueJitterAug(Augmenter):
    """Turn the hues by a part of half a turn, at most `hue`, by a product with a matrix (the model YIQ)."""

    def __init__(self, hue: float):
        super().__init__(hue=hue)
        self.hue = hue
        self.tyiq = np.array([_LIGHT, [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
        self.ityiq = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])

    def __call__(self, src: NDArray) -> NDArray:
        angle = random.uniform(-self.hue, self.hue) * np.pi
        u, w = np.cos(angle), np.sin(angle)
        turn = np.array([[1.0, 0.0, 0.0], [0.0, u, -w], [0.0, w, u]])
        return nd.dot(src, nd.array((self.ityiq @ turn @ self.tyiq).T))


class ColorJitterAug(RandomOrderAug):
    """Change brightness, contrast and saturation in random order; what is 0 is not changed."""

    def __init__(self, brightness: float, contrast: float, saturation: float):
        kinds = ((BrightnessJitterAug, brightness), (ContrastJitterAug, contrast), (SaturationJitterAug, saturation))
        super().__init__([kind(most) for kind, most in kinds if most > 0])


class LightingAug(Augmenter):
    """Add principal components of colours in place, each as much as a normal distribution says (by NumPy's global generator).

    Parameters
    ----------
    alphastd : float
        Its standard deviation.
    eigval, eigvec : array
        Three eigenvalues, and the matrix of the eigenvectors.
    """

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any):
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd, self.eigval, self.eigvec = alphastd, eigval, eigvec

    def __call__(self, src: NDArray) -> NDArray:
        alpha = np.random.normal(0, self.alphastd, size=(3,))
        src += nd.array(np.dot(self.eigvec * alpha, self.eigval))
        return src


class ColorNormalizeAug(Augmenter):
    """Subtract a mean and divide by a standard deviation, in place."""

    def __init__(self, mean: Any, std: Any):
        super().__init__(mean=mean, std=std)
        self.mean, self.std = (v if v is None or isinstance(v, NDArray) else nd.array(v) for v in (mean, std))

    def __call__(self, src: NDArray) -> NDArray:
        return color_normalize(src, self.mean, self.std)


class RandomGrayAug(Augmenter):
    """Make the image grey, with a probability; there are still three channels."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p
        self.mat = nd.array([[0.21] * 3, [0.72] * 3, [0.07] * 3])

    def __call__(self, src: NDArray) -> NDArray:
        return nd.dot(src, self.mat) if random.random() < self.p else src


# ---- lists ------------------------------------------------------------------------------------------------------------------
def _statistic(given: Any, default: Sequence[float], name: str, make: Callable) -> NDArray | None:
    """Return a mean or a standard deviation: the default for True, None for None."""
    if given is True:
        return make(default)
    if given is None:
        return None
    if not isinstance(given, (np.ndarray, NDArray)):
        raise AssertedError(f"CreateAugmenter: {name} is a {type(given).__name__}; expected an array, True or None")
    if given.shape[:1] not in ((1,), (3,)):
        raise AssertedError(f"CreateAugmenter: {name} has shape {given.shape}; expected one or three numbers")
    return given  # type: ignore[return-value]


def _colours(brightness: float, contrast: float, saturation: float, hue: float, pca_noise: float, rand_gray: float,
             mean: Any, std: Any, make: Callable = nd.array) -> list[Augmenter]:  # fmt: skip
    """Return the augmenters of colours, which detection has, too; `make` makes arrays of numbers."""
    steps: list[Augmenter] = [CastAug()]
    if brightness or contrast or saturation:
        steps.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        steps.append(HueJitterAug(hue))
    if pca_noise > 0:
        steps.append(LightingAug(pca_noise, np.array(_EIGENVALUES), np.array(_EIGENVECTORS)))
    if rand_gray > 0:
        steps.append(RandomGrayAug(rand_gray))
    mean = _statistic(mean, (123.68, 116.28, 103.53), "mean", make)
    std = _statistic(std, (58.395, 57.12, 57.375), "std", make)
    if mean is not None or std is not None:
        steps.append(ColorNormalizeAug(mean, std))
    return steps


def CreateAugmenter(data_shape: tuple[int, int, int], resize: int = 0, rand_crop: bool = False, rand_resize: bool = False,
                    rand_mirror: bool = False, mean: Any = None, std: Any = None, brightness: float = 0, contrast: float = 0,
                    saturation: float = 0, hue: float = 0, pca_noise: float = 0, rand_gray: float = 0,
                    inter_method: int = 2) -> list[Augmenter]:  # fmt: skip
    """Return a list of augmenters.

    Parameters
    ----------
    data_shape : tuple of int
        Channels, height and width of the result.
    resize : int
        The size that the shorter side gets first; 0: none.
    rand_crop, rand_resize : bool
        Take a part at random, of random size; otherwise the middle.
    rand_mirror : bool
        Exchange left and right of one image in two.
    mean, std : array, True or None
        What is subtracted, and divided by; True: those of ImageNet.
    brightness, contrast, saturation, hue, pca_noise : float
        How much they change at most; of the last one, the standard deviation.
    rand_gray : float
        The probability of a grey image.
    inter_method : int
        How to interpolate, as :func:`imresize` describes it.

    Examples
    --------
    >>> steps = mx.image.CreateAugmenter((3, 24, 24), resize=32, rand_mirror=True, mean=True, std=True)
    >>> [type(step).__name__ for step in steps]
    ['ResizeAug', 'CenterCropAug', 'HorizontalFlipAug', 'CastAug', 'ColorNormalizeAug']
    >>> mx.image.SequentialAug(steps)(mx.nd.zeros((40, 50, 3), dtype="uint8")).shape
    (24, 24, 3)
    """
    if len(data_shape) != 3:
        raise OpTypeError(f"CreateAugmenter: data_shape={data_shape}; expected channels, height and width")
    size = (data_shape[2], data_shape[1])
    steps: list[Augmenter] = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if rand_resize:
        if not rand_crop:
            raise AssertedError("CreateAugmenter: rand_resize=True takes random parts, so it needs rand_crop=True")
        steps.append(RandomSizedCropAug(size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        steps.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if rand_mirror:
        steps.append(HorizontalFlipAug(0.5))
    return steps + _colours(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)


def shifted_colours(src: NDArray, hue: int, light: int, saturation: int, contrast: float = 1) -> NDArray:
    """Return an image of bytes with other hue, light and saturation, by levels as OpenCV counts them, and other contrast."""
    pixels = src.asnumpy()
    if pixels.shape[2] != 3:
        raise OpValueError(f"hue, light and saturation: an image has shape {src.shape}; expected three channels")
    if hue or light or saturation:
        x = pixels * np.float32(1 / 255)
        most, least, (r, g, b) = x.max(axis=2), x.min(axis=2), x.transpose(2, 0, 1)
        span, total = most - least, most + least
        part = np.where(span > 0, span, 1)
        h = np.where(most == r, (g - b) / part % 6, np.where(most == g, (b - r) / part + 2, (r - g) / part + 4))
        s = span / np.where(span > 0, np.minimum(total, 2 - total), 1)
        levels = np.add(np.rint([h * 30, total * np.float32(0.5) * 255, s * 255]), [[[hue]], [[light]], [[saturation]]])
        h, v, s = (levels.clip(0, [[[180]], [[255]], [[255]]]) / [[[30]], [[255]], [[255]]])[..., None]
        places = (np.array([0, 8, 4]) + 2 * h) % 12
        pixels = np.rint(255 * (v - s * np.minimum(v, 1 - v) * np.minimum(places - 3, 9 - places).clip(-1, 1)))
    return nd.array(np.rint(pixels * np.float32(contrast)).clip(0, 255), dtype="uint8")


__all__ = ["Augmenter", "BrightnessJitterAug", "CastAug", "CenterCropAug", "ColorJitterAug", "ColorNormalizeAug",
           "ContrastJitterAug", "CreateAugmenter", "ForceResizeAug", "HorizontalFlipAug", "HueJitterAug", "LightingAug",
           "RandomCropAug", "RandomGrayAug", "RandomOrderAug", "RandomSizedCropAug", "ResizeAug", "SaturationJitterAug",
           "SequentialAug"]  # fmt: skip
