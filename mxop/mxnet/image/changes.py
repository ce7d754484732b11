"""Images in other sizes, and parts of them: functions of arrays ``(height, width, channels)``.

What is drawn comes from Python's module ``random``, as in MXNet: one seed gives the same parts in both.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...ndarray import NDArray
from ...support.errors import AssertedError, OpTypeError, OpValueError, shown

_Place = tuple[int, int, int, int]


def imresize(src: NDArray, w: int, h: int, interp: int = 1, out: NDArray | None = None) -> NDArray:
    """Return an image of another size.

    Parameters
    ----------
    src : NDArray
        ``(height, width, channels)``, of uint8, float32 or float64; or a batch of such images.
    w, h : int
        Width and height of the result.
    interp : int
        0: nearest pixel, 1: bilinear, 2: bicubic, 3: mean of the area, 4: Lanczos of 8 x 8 pixels; 9: bicubic for larger
        images, areas for smaller ones, else bilinear; 10: one of the first five, at random.
    out : NDArray, optional

    Examples
    --------
    >>> mx.image.imresize(mx.nd.array([[[1], [3]]]), w=4, h=1).asnumpy().ravel().tolist()
    [1.0, 1.5, 2.5, 3.0]
    """
    height, width, _ = _size(src, "imresize")
    return nd._internal._cvimresize(src, w=w, h=h, interp=_method(interp, (height, width, h, w)), out=out)


def copyMakeBorder(src: NDArray, top: int, bot: int, left: int, right: int, type: int = 0, value: float = 0.0,
                   values: Sequence[float] = (), out: NDArray | None = None) -> NDArray:  # fmt: skip
    """Surround an image.

    Parameters
    ----------
    src : NDArray
        ``(height, width, channels)``.
    top, bot, left, right : int
        How many rows and columns.
    type : int
        0: of one colour, 1: the last pixel repeated, 2: mirrored (``cba|abc|cba``), 3: from the other side (``abc|abc|abc``),
        4: mirrored without the last pixel (``cb|abc|ba``).
    value, values : float, tuple of float
        The colour, one number for all channels or, which goes before, one for each.
    out : NDArray, optional

    Examples
    --------
    >>> mx.image.copyMakeBorder(mx.nd.array([[[1], [2]]]), 0, 0, 1, 1, type=1).asnumpy().ravel().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    return nd._internal._cvcopyMakeBorder(
        src, top=top, bot=bot, left=left, right=right, type=type, value=value, values=values, out=out
    )


def _size(src: Any, function: str) -> tuple[int, int, int]:
    """Return height, width and channels of an image."""
    if not isinstance(src, NDArray):
        raise OpTypeError(f"{function}: src is a {type(src).__name__}; expected an NDArray")
    if src.ndim not in (3, 4):
        raise OpValueError(f"{function}: src has shape {src.shape}; expected an image (height, width, channels)")
    height, width, channels = src.shape[-3:]
    return height, width, channels


def _method(interp: int, sizes: Sequence[int] = ()) -> int:
    """Return how to interpolate, for old height and width and new ones."""
    if interp == 9:
        if not sizes:
            return 2
        larger = [new > old for old, new in zip(sizes[:2], sizes[2:], strict=True)]
        smaller = [new < old for old, new in zip(sizes[:2], sizes[2:], strict=True)]
        return 2 if all(larger) else 3 if all(smaller) else 1
    if interp == 10:
        return random.randint(0, 4)
    if interp not in range(5):
        raise OpValueError(f"interp={shown(interp)} is no way to interpolate; expected 0 to 4, 9 or 10")
    return interp


def scale_down(src_size: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """Return the largest size, width and height, of the ratio of `size` that fits into `src_size` and `size`.

    Examples
    --------
    >>> mx.image.scale_down((640, 480), (720, 120))
    (640, 106)
    """
    (w, h), (width, height) = map(float, size), map(float, src_size)
    if height < h:
        w, h = w * height / h, height
    if width < w:
        w, h = width, h * width / w
    return int(w), int(h)


def resize_short(src: NDArray, size: int, interp: int = 2) -> NDArray:
    """Return an image whose shorter side has a size, and whose ratio is that of `src`.

    Examples
    --------
    >>> mx.image.resize_short(mx.nd.zeros((20, 30, 3)), 10).shape
    (10, 15, 3)
    """
    height, width, _ = _size(src, "resize_short")
    w, h = (size, size * height // width) if height > width else (size * width // height, size)
    return imresize(src, w, h, interp)


def fixed_crop(src: NDArray, x0: int, y0: int, w: int, h: int, size: tuple[int, int] | None = None, interp: int = 2) -> NDArray:
    """Return the part of an image that begins at column `x0` and row `y0`, of width `w` and height `h`.

    Parameters
    ----------
    size : tuple of int, optional
        The width and height that it gets.

    Examples
    --------
    >>> mx.image.fixed_crop(mx.nd.zeros((20, 30, 3)), 2, 4, 10, 5, size=(40, 20)).shape
    (20, 40, 3)
    """
    _size(src, "fixed_crop")
    out = src[y0 : y0 + h, x0 : x0 + w]
    if size is None or (w, h) == tuple(size):
        return out.copy()  # a view would change with the image; MXNet's is none
    return imresize(out, *size, interp=_method(interp, (h, w, size[1], size[0])))


def _cropped(src: NDArray, place: _Place, size: Any, interp: int) -> tuple[NDArray, _Place]:
    return fixed_crop(src, *place, tuple(size), interp), place


def random_crop(src: NDArray, size: tuple[int, int], interp: int = 2) -> tuple[NDArray, _Place]:
    """Return a part of an image, at random, and its place ``(x, y, width, height)``.

    An image that is smaller than `size`, width and height, gives a part of that ratio, which is enlarged.
    """
    height, width, _ = _size(src, "random_crop")
    w, h = scale_down((width, height), size)
    return _cropped(src, (random.randint(0, width - w), random.randint(0, height - h), w, h), size, interp)


def center_crop(src: NDArray, size: tuple[int, int], interp: int = 2) -> tuple[NDArray, _Place]:
    """Return the middle of an image and its place ``(x, y, width, height)``; :func:`random_crop` says of which size.

    Examples
    --------
    >>> part, place = mx.image.center_crop(mx.nd.zeros((20, 30, 3)), (10, 8))
    >>> part.shape, place
    ((8, 10, 3), (10, 6, 10, 8))
    """
    height, width, _ = _size(src, "center_crop")
    w, h = scale_down((width, height), size)
    return _cropped(src, (int((width - w) / 2), int((height - h) / 2), w, h), size, interp)


def random_size_crop(src: NDArray, size: tuple[int, int], area: Any, ratio: tuple[float, float], interp: int = 2,
                     **kwargs: Any) -> tuple[NDArray, _Place]:  # fmt: skip
    """Return a part of an image, of a random size and ratio, in another size, and its place ``(x, y, width, height)``.

    Parameters
    ----------
    size : tuple of int
        Width and height of the result.
    area : float or tuple of float
        The least and the largest part of the image's area; a number is the least, and the largest is then 1.
    ratio : tuple of float
        The least and the largest ratio of width to height.
    """
    height, width, _ = _size(src, "random_size_crop")
    area = _area(area, kwargs, "random_size_crop")
    low, high = (area, 1.0) if isinstance(area, (int, float)) else area
    for _ in range(10):
        wanted = random.uniform(low, high) * (height * width)
        shape = np.exp(random.uniform(np.log(ratio[0]), np.log(ratio[1])))
        w, h = round(float(np.sqrt(wanted * shape))), round(float(np.sqrt(wanted / shape)))
        if w <= width and h <= height:
            return _cropped(src, (random.randint(0, width - w), random.randint(0, height - h), w, h), size, interp)
    return center_crop(src, size, interp)


def _area(area: Any, kwargs: dict[str, Any], function: str) -> Any:
    """Return the area that is meant by it or by its old name."""
    if "min_area" in kwargs:
        warnings.warn(f"{function}: `min_area` is deprecated, use `area`", DeprecationWarning, stacklevel=3)
        area = kwargs.pop("min_area")
    if kwargs:
        raise AssertedError(f"{function}: there is no parameter {next(iter(kwargs))!r}")
    return area


def color_normalize(src: NDArray, mean: Any, std: Any = None) -> NDArray:
    """Subtract a mean from an image, in place, divide by a standard deviation, and return it.

    Examples
    --------
    >>> mx.image.color_normalize(mx.nd.array([[[1, 2, 3]]]), mx.nd.array([1, 1, 1]), mx.nd.array([1, 2, 4])).asnumpy().tolist()
    [[[0.0, 0.5, 0.5]]]
    """
    if mean is not None:
        src -= mean
    if std is not None:
        src /= std
    return src


# ---- rotations, of float32 images with channels first ---------------------------------------------------------------------
def imrotate(src: NDArray, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """Return rotated images, of the same size, by interpolation; outside of the image there are zeros.

    Parameters
    ----------
    src : NDArray
        ``(channels, height, width)`` or ``(batch, channels, height, width)``, of float32.
    rotation_degrees : float or NDArray
        One angle, or one for each image of a batch.
    zoom_in, zoom_out : bool
        Enlarge the image until no zeros are seen, or shrink it until nothing is cut off.
    """
    if zoom_in and zoom_out:
        raise OpValueError("imrotate: zoom_in and zoom_out cannot both be True")
    if not isinstance(src, NDArray) or src.dtype is not np.float32:
        raise OpTypeError(f"imrotate: src is {getattr(src, 'dtype', type(src))}; expected an NDArray of float32")
    if src.ndim not in (3, 4):
        raise OpValueError(f"imrotate: src has shape {src.shape}; expected (channels, height, width), or a batch of that")
    single, alone = isinstance(rotation_degrees, (int, float, np.number)), src.ndim == 3
    if alone and not single:
        raise OpTypeError("imrotate: rotation_degrees of a single image is a number")
    images = src.expand_dims(axis=0) if alone else src
    given = rotation_degrees.asnumpy() if isinstance(rotation_degrees, NDArray) else rotation_degrees
    angles = np.full(len(images), given, np.float32) if single else np.asarray(given, np.float32)
    if angles.shape != (len(images),):
        raise OpValueError(f"imrotate: {angles.size} angles for {len(images)} images; expected one number, or one for each")
    found = nd.BilinearSampler(images, nd.array(_grid(angles, *src.shape[-2:], zoom_in, zoom_out), ctx=src.context))
    return found[0] if alone else found


def _grid(angles: np.ndarray, height: int, width: int, zoom_in: bool, zoom_out: bool) -> np.ndarray:
    """Return for each image and pixel where it comes from, x and y from -1 to 1."""
    angles = (np.pi * angles / 180).astype(np.float32)[:, None, None]
    y, x = (np.arange(n, dtype=np.float32) - np.float32((n - 1) / 2) for n in (height, width))
    cos, sin = np.cos(angles), np.sin(angles)
    right, down = (max(n - 1, 1) / 2 for n in (width, height))
    grid = np.stack([(x * cos - y[:, None] * sin) / right, (x * sin + y[:, None] * cos) / down], axis=1)
    if not (zoom_in or zoom_out):
        return grid
    far, angle = np.hypot(height, width), np.arctan(height / width)
    corners = [angle + abs(angles), angle - abs(angles)]
    reach_x, reach_y = (np.max([abs(far * f(c)) for c in corners], axis=0) for f in (np.cos, np.sin))
    if zoom_out:
        return grid * np.maximum(reach_x / width, reach_y / height)[:, None]
    return grid * np.minimum(width / reach_x, height / reach_y)[:, None]


def random_rotate(src: NDArray, angle_limits: tuple[float, float], zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """Return images rotated by angles between two limits, which NumPy's global generator draws; see :func:`imrotate`."""
    angles = np.random.uniform(*angle_limits) if src.ndim == 3 else nd.array(np.random.uniform(*angle_limits, size=len(src)))
    return imrotate(src, angles, zoom_in=zoom_in, zoom_out=zoom_out)


__all__ = ["center_crop", "color_normalize", "copyMakeBorder", "fixed_crop", "imresize", "imrotate", "random_crop",
           "random_rotate", "random_size_crop", "resize_short", "scale_down"]  # fmt: skip
