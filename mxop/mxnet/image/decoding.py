"""Images in files and bytes become arrays, by Pillow, or by OpenCV where only that is installed.

What comes from outside is never trusted: a few bytes may say that they hold an image of any size, and may be damaged.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...ndarray import NDArray
from ...support import limits
from ...support.distribution import install
from ...support.errors import MissingPackageError, OpTypeError, OpValueError, ends_at_caller, shown
from ...support.files import contents, path_of

#: Formats that Pillow may try: no other one runs programs of others, or reads further files.
_FORMATS = ("BMP", "DIB", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")


@ends_at_caller
def imdecode(buf: Any, flag: int = 1, to_rgb: Any = True, out: NDArray | None = None) -> NDArray:
    """Decode an image: ``(height, width, channels)`` of uint8.

    JPEG, PNG, BMP, TIFF, GIF, WebP and PPM are decoded.  Of images with more than 8 bits a channel the upper ones are returned,
    and no transparency.  Which side the camera held up (EXIF) is not looked at, as in MXNet.

    Parameters
    ----------
    buf : bytes, bytearray, numpy.ndarray or NDArray
        What is in a file; arrays are of uint8.
    flag : {1, 0}
        1: three channels, 0: one, the light.
    to_rgb : bool
        Red, green, blue; otherwise blue, green, red.
    out : NDArray, optional
        Where the result is written.

    Raises
    ------
    OpValueError
        For what is no image, damaged, or larger than ``MXOP_MAX_DENSE_BYTES`` allows.
    MissingPackageError
        Without Pillow and OpenCV.
    """
    if isinstance(buf, NDArray):
        buf = buf.asnumpy()
    if isinstance(buf, np.ndarray):
        if buf.dtype != np.uint8:
            raise OpTypeError(f"imdecode: buf is an array of {buf.dtype}; expected the bytes of a file, as uint8")
        buf = buf.tobytes()
    if not isinstance(buf, (bytes, bytearray, memoryview)):
        raise OpTypeError(f"imdecode: buf is a {type(buf).__name__}; expected bytes or an array of uint8")
    return _array(decoded(bytes(buf), _checked(flag, "imdecode"), "imdecode", to_rgb=bool(to_rgb)), out)


@ends_at_caller
def imread(filename: Any, flag: int = 1, to_rgb: Any = True, out: NDArray | None = None) -> NDArray:
    """Decode an image in a file; :func:`imdecode` says how."""
    path = path_of(filename, "imread")
    return _array(decoded(contents(path, "imread"), _checked(flag, "imread"), f"imread: {path!r}", to_rgb=bool(to_rgb)), out)


def _checked(flag: Any, function: str) -> int:
    if flag not in (0, 1):
        raise OpValueError(f"{function}: flag={shown(flag)}; expected 1 for colours or 0 for light")
    return int(flag)


def _array(pixels: np.ndarray, out: NDArray | None) -> NDArray:
    """Return pixels as an array, in `out` if there is one."""
    found = nd.empty(pixels.shape, dtype="uint8") if out is None else out
    found[:] = pixels
    return found


def decoded(data: bytes, flag: int, who: str, to_rgb: bool = True) -> np.ndarray:
    """Return the pixels of an image.

    Parameters
    ----------
    data : bytes
    flag : {1, 0, -1}
        1: three channels, 0: one, -1: as they are, grey ones in two dimensions.
    who : str
        How errors begin.
    """
    if not data:
        raise OpValueError(f"{who}: there are no bytes, so there is no image")
    try:
        from PIL import Image
    except ImportError:
        return _by_opencv(data, flag, who, to_rgb)
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
            _limit(picture.size, len(data), who)
            return _ordered(_pixels(picture, flag), to_rgb)
    except OpValueError:
        raise
    except MemoryError:
        raise OpValueError(f"{who}: the image does not fit in memory") from None
    except Exception as problem:  # Pillow's readers raise errors of every kind
        told = (
            "no image that Pillow knows" if isinstance(problem, Image.UnidentifiedImageError) else f"no whole image: {problem}"
        )
        raise OpValueError(f"{who}: these {len(data)} bytes are {told}") from None


def _limit(size: tuple[int, int], nbytes: int, who: str) -> None:
    """Raise for images that are much larger than their files."""
    if 3 * size[0] * size[1] > (most := limits.dense_bytes(nbytes)):
        raise limits.too_packed(f"{who}: the image of {size[0]} x {size[1]} pixels", most)


def _pixels(picture: Any, flag: int) -> np.ndarray:
    """Return the pixels of an image of Pillow: grey ones in two dimensions, where they are to stay as they are."""
    if flag == 0:
        picture.draft("L", picture.size)  # a JPEG holds the light by itself
    mode = picture.mode
    if mode.startswith("I"):  # 16 bits
        found = np.asarray(picture)
        found = (found >> 8 if found.max(initial=0) > 255 or mode != "I" else found).clip(0, 255).astype(np.uint8)
        return found if flag == -1 else found[:, :, None] if flag == 0 else np.repeat(found[:, :, None], 3, axis=2)
    if flag == -1:
        kept = {"1": "L", "L": "L", "LA": "RGBA", "RGBA": "RGBA", "RGB": "RGB"}.get(mode)
        return np.asarray(picture.convert(kept or ("RGBA" if picture.has_transparency_data else "RGB")))
    if flag == 1:
        return np.asarray(picture if mode == "RGB" else picture.convert("RGB"))
    if mode in ("1", "L", "LA"):
        return np.asarray(picture if mode == "L" else picture.convert("L"))[:, :, None]
    pixels = np.asarray(picture.convert("RGB"), np.int32)  # OpenCV leaves a PNG to libpng, which cuts
    weights, half, bits = ([9797, 19234, 3737], 0, 15) if picture.format == "PNG" else ([4899, 9617, 1868], 1 << 13, 14)
    return (pixels @ np.array(weights, np.int32) + half >> bits).astype(np.uint8)[:, :, None]


def _ordered(pixels: np.ndarray, to_rgb: bool) -> np.ndarray:
    """Return pixels of red, green and blue (and transparency) in the order that is wanted."""
    if to_rgb or pixels.ndim < 3 or pixels.shape[2] < 3:
        return pixels
    return pixels[:, :, [2, 1, 0, 3][: pixels.shape[2]]]


def _by_opencv(data: bytes, flag: int, who: str, to_rgb: bool) -> np.ndarray:
    try:
        import cv2
    except ImportError:
        raise MissingPackageError(f"{who.partition(':')[0]} needs Pillow or OpenCV: {install('image')}") from None
    try:
        how = {1: cv2.IMREAD_COLOR, 0: cv2.IMREAD_GRAYSCALE, -1: cv2.IMREAD_UNCHANGED}[flag]
        found = cv2.imdecode(np.frombuffer(data, np.uint8), how | (cv2.IMREAD_IGNORE_ORIENTATION if flag >= 0 else 0))
    except cv2.error as problem:
        raise OpValueError(f"{who}: OpenCV cannot read these {len(data)} bytes: {problem}") from None
    if found is None:
        raise OpValueError(f"{who}: these {len(data)} bytes are no image that OpenCV knows")
    return _ordered(found[:, :, None] if flag == 0 else found, not to_rgb)


def encoded(pixels: np.ndarray, form: str, quality: int, who: str) -> bytes:
    """Return an image of blue, green and red, or of light alone, as a JPEG or a PNG; of that, `quality` is the effort."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingPackageError(f"{who} needs Pillow or OpenCV: {install('image')}") from None
    pixels = np.asarray(pixels)
    made, how = io.BytesIO(), {"quality": quality} if form == "JPEG" else {"compress_level": quality}
    try:
        Image.fromarray(_ordered(pixels[:, :, 0] if pixels.shape[2:] == (1,) else pixels, False)).save(made, form, **how)
    except Exception as problem:  # Pillow's writers raise errors of every kind
        told = f"pixels of shape {pixels.shape} and {pixels.dtype} cannot be written as {form} of quality {quality}: {problem}"
        raise OpValueError(f"{who}: {told}") from None
    return made.getvalue()


__all__ = ["imdecode", "imread"]
