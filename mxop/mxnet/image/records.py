"""``mx.io.ImageRecordIter``: batches of images from a file of records, which threads decode ahead."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...ndarray import NDArray
from ...support.dtypes import code_of, numpy_dtype
from ...support.errors import MXNetError, OpLookupError, OpTypeError, OpValueError, shown
from .. import recordio
from ..io.base import DataBatch, DataDesc, MXDataIter, checked_size
from ..io.files import as_written
from .augmenters import _EIGENVALUES, _EIGENVECTORS, CastAug, ColorJitterAug, HorizontalFlipAug, LightingAug, ResizeAug
from .augmenters import shifted_colours as _shifted
from .changes import copyMakeBorder, fixed_crop, imresize, random_size_crop
from .decoding import decoded
from .iterator import _list_file

_WHO = "ImageRecordIter"
_CHANNELS = {1: 0, 3: 1, 4: -1}  # and how they are decoded
_TYPES = ("float32", "uint8", "int8")
#: What says how fast MXNet reads, and has no effect here.
_WITHOUT_EFFECT = {"verbose", "prefetch_buffer", "device_id", "ctx", "shuffle_chunk_size", "shuffle_chunk_seed"}
#: What there is not, and the values that ask for nothing.
_ABSENT = {
    "aug_seq": "aug_default", "mean_img": "", "rotate": -1, "max_rotate_angle": 0, "max_shear_ratio": 0, "max_random_scale": 1,
    "min_random_scale": 1, "max_img_size": 1e10, "min_img_size": 0,
}  # fmt: skip


class RecordIter(MXDataIter):
    """Base of what makes batches of the images of a file of records; derive, and define ``_place``."""

    provide_data: list[DataDesc]
    provide_label: list[DataDesc]

    def __init__(self, batch_size: Any, data_shape: Any, records: tuple, imglist: Any, round_batch: bool, threads: int):
        self._who = type(self).__name__
        super().__init__(checked_size(batch_size, self._who))
        self.data_shape, self.round_batch = _shape(data_shape, self._who), round_batch
        self._records = _Records(self._who, *records)
        self._labels = _list_file(imglist, "float32", self._who) if imglist else None
        self._threads = ThreadPoolExecutor(max(1, threads), "mxop-decode")
        self._order: Iterator[bytes] = iter(())
        self._next: Iterator[bytes] | None = None  # of the next epoch, whose first images fill the last batch up
        self._ahead: list[Future] = []

    def _place(self, data: np.ndarray, labels: np.ndarray, at: int, image: NDArray, label: np.ndarray, who: str) -> None:
        """Write what becomes of an image, and its labels, into a batch."""
        raise NotImplementedError

    def reset(self) -> None:
        """Begin the next epoch, behind the images with which the last batch was filled up."""
        self._order, self._next = self._next or iter(()), None
        self._ahead = self._fetched(self._order, self.batch_size)
        if not self._ahead:
            self._order = self._records.epoch()
            self._ahead = self._fetched(self._order, self.batch_size)

    def _fetched(self, order: Iterator[bytes], most: int) -> list[Future]:
        """Let threads decode the next images, as many as are left."""
        return [self._threads.submit(self._decoded, record) for record in islice(order, most)]

    def next(self) -> DataBatch:
        """Return the next batch."""
        if not self._ahead:
            raise StopIteration
        found = self._ahead
        pad = self.batch_size - len(found)
        self._ahead = [] if pad else self._fetched(self._order, self.batch_size)
        while self.round_batch and len(found) < self.batch_size:  # more than once where there are fewer images than a batch has
            self._next = self._records.epoch()
            found += self._fetched(self._next, self.batch_size - len(found))
        data, labels = (np.zeros(x.shape, x.dtype) for x in (*self.provide_data, *self.provide_label))
        for k, future in enumerate(found):
            pixels, label, who = future.result()
            self._place(data, labels, k, nd.array(pixels, dtype="uint8"), label, who)
        return DataBatch([nd.array(data, dtype=data.dtype)], [nd.array(labels)], pad=pad)

    def _decoded(self, record: bytes) -> tuple[np.ndarray, np.ndarray, str]:
        """Return pixels and labels of a record, and how errors about it begin."""
        label, image, who = self._unpacked(record)
        pixels = decoded(image, _CHANNELS[self.data_shape[0]], who)
        if (channels := (*pixels.shape, 1)[2]) != self.data_shape[0]:  # of light alone there are two dimensions
            raise OpValueError(f"{who} has {channels} channels; data_shape={self.data_shape}")
        return pixels, label, who

    def _unpacked(self, record: bytes) -> tuple[np.ndarray, bytes, str]:
        """Return labels and image of a record, and how errors about it begin."""
        header, image = recordio.unpack(record)
        who = f"{self._who}: record {header.id} of {self._records.file.uri!r}"
        if self._labels is not None and header.id not in self._labels:
            raise OpLookupError(f"{who} is not in the list of images")
        return np.asarray(header.label if self._labels is None else self._labels[header.id][0]), image, who


class ImageRecordIter(RecordIter):
    """Batches of images from a file of records, ``(batch, channels, height, width)``, and of their labels.

    What is drawn comes from Python's module ``random``.

    Parameters
    ----------
    path_imgrec : str
        A file of records, as ``mx.recordio`` writes it.
    data_shape : tuple of int
        Channels (1, 3 or 4), height and width.
    batch_size : int
    path_imgidx : str, optional
        Its index; without, the whole file is looked through where records are mixed or divided into parts.
    path_imglist : str, optional
        A file with a line for each image: its number, the labels, and a path, separated by tabs. These labels count.
    label_width : int
        How many labels an image has.
    shuffle, seed : bool, int
        Mix the records before each epoch.
    num_parts, part_index : int
        Into how many parts the records are divided, and which one is meant.
    round_batch : bool
        Fill the last batch up with the first images, after which the next epoch begins; otherwise with zeros.
    dtype : {'float32', 'uint8', 'int8'}
        Of images; from int8 only the mean is subtracted, and what is above 127 becomes that; uint8 stays as it is.
    preprocess_threads : int
        How many threads decode images.
    resize : int
        The size that the shorter side gets first; -1: none.
    pad, fill_value : int
        How many pixels of which value are put around the image then.
    rand_crop, min_crop_size, max_crop_size : bool, int
        Take a part at random, or the middle: of the size of `data_shape`, or a square of one of these sizes, then resized.
    random_resized_crop, min_random_area, max_random_area, min_aspect_ratio, max_aspect_ratio : bool, float
        Take a part of random size, a share of the image's area, and ratio instead.
    mirror, rand_mirror : bool
        Exchange left and right, of all images or of one in two.
    inter_method : int
        How to interpolate, as ``mx.image.imresize`` describes it.
    brightness, contrast, saturation, pca_noise : float
        How much they change at most; of the last one, the standard deviation.
    random_h, random_s, random_l : int
        How much hue (of 180), saturation and light (of 255) change at most.
    mean_r, mean_g, mean_b, mean_a, std_r, std_g, std_b, std_a, scale, max_random_contrast, max_random_illumination : float
        The image x becomes ``((x - mean) * c + i) * scale / std``: c is drawn from 1 - max_random_contrast to 1 +
        max_random_contrast, i from -max_random_illumination to max_random_illumination.
    seed_aug : int, optional
        What ``random`` is seeded with.

    Examples
    --------
    >>> import os, tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "images.rec")
    >>> writer = mx.recordio.MXRecordIO(name, "w")
    >>> for k in range(3):
    ...     pixels = np.full((8, 8, 3), 10 * k, "uint8")
    ...     writer.write(mx.recordio.pack_img(mx.recordio.IRHeader(0, k, k, 0), pixels, img_fmt=".png"))
    >>> writer.close()
    >>> batches = mx.io.ImageRecordIter(path_imgrec=name, data_shape=(3, 4, 4), batch_size=2)
    >>> [(batch.label[0].asnumpy().tolist(), batch.data[0][:, 0, 0, 0].asnumpy().tolist(), batch.pad) for batch in batches]
    [([0.0, 1.0], [0.0, 10.0], 0), ([2.0, 0.0], [20.0, 0.0], 1)]
    """

    @as_written
    def __init__(self, path_imgrec: Any, data_shape: tuple[int, int, int], batch_size: int, path_imgidx: Any = None,
                 path_imglist: Any = None, label_width: int = 1, shuffle: bool = False, seed: int = 0, num_parts: int = 1,
                 part_index: int = 0, round_batch: bool = True, dtype: str | None = None, preprocess_threads: int = 4,
                 data_name: str = "data", label_name: str = "softmax_label", seed_aug: int | None = None,
                 **kwargs: Any):  # fmt: skip
        self.dtype = numpy_dtype(code_of(dtype or "float32")).name
        if self.dtype not in _TYPES:
            raise OpValueError(f"{_WHO}: dtype={shown(dtype)}; expected one of {', '.join(_TYPES)}")
        given = path_imgrec, path_imgidx, num_parts, part_index, random.Random(seed) if shuffle else None
        super().__init__(batch_size, data_shape, given, path_imglist, round_batch, preprocess_threads)
        self.label_width = label_width
        self._change = _changes(self.data_shape, self.dtype, **present(kwargs, _WHO, _ABSENT))
        if seed_aug is not None:
            random.seed(seed_aug)
        self.provide_data = [DataDesc(data_name, (batch_size, *self.data_shape), self.dtype)]
        self.provide_label = [DataDesc(label_name, (batch_size, label_width) if label_width > 1 else (batch_size,))]
        self.reset()

    def _place(self, data: np.ndarray, labels: np.ndarray, at: int, image: NDArray, label: np.ndarray, who: str) -> None:
        if self._labels is not None:
            label = label[: self.label_width]
        if label.size != self.label_width:
            raise OpValueError(f"{who} has {label.size} labels; label_width={self.label_width}")
        data[at], labels[at] = self._change(image), label.reshape(labels.shape[1:])


class _Records:
    """Records of a file, or a part of them, which are mixed before each epoch if there is a generator."""

    def __init__(self, who: str, path: Any, index: Any, parts: int, part: int, mixed: random.Random | None):
        if not 0 <= part < parts:
            raise OpValueError(f"{who}: part_index={shown(part)} is none of {shown(parts)} parts")
        self.who, self.mixed, self.file = who, mixed, recordio.MXRecordIO(path, "r")
        if index:  # MXNet divides records that are indexed by their number, others by their place
            places = sorted(recordio.MXIndexedRecordIO(index, path, "r").idx.values())
            size = -(-len(places) // parts)
            self.places = places[part * size : (part + 1) * size]
        else:
            size = -(-self.file._size() // parts)
            size += -size % 4
            self.places = [at for at in self.file._places() if part * size <= at < (part + 1) * size]
        if not self.places:
            raise OpValueError(f"{who}: there are no images")

    def epoch(self) -> Iterator[bytes]:
        """Return the records of an epoch."""
        if self.mixed is not None:
            self.mixed.shuffle(self.places)
        return self.all()

    def all(self) -> Iterator[bytes]:
        """Yield the records in their present order."""
        for place in list(self.places):
            record = self.file._read_at(place)
            if record is None:
                raise MXNetError(f"{self.who}: {self.file.uri!r} has no record at byte {place}")
            yield record


def _literal(given: Any) -> Any:
    """Return the number or tuple that a string may stand for, as in MXNet; other strings stay."""
    try:
        return ast.literal_eval(given) if isinstance(given, str) else given
    except (SyntaxError, ValueError):
        return given


def _shape(given: Any, who: str) -> tuple[int, int, int]:
    """Return the shape of an image."""
    given = _literal(given)
    if not isinstance(given, (tuple, list)) or len(given) != 3 or given[0] not in (1, 3, 4) or min(given) < 1:
        raise OpValueError(f"{who}: data_shape={shown(given)}; expected channels (1, 3 or 4), height and width")
    return tuple(given)  # type: ignore[return-value]


def present(given: dict[str, Any], who: str, absent: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that say what becomes of an image; raise for those that there are not."""
    found = {}
    for name, text in given.items():
        value = _literal(text)
        if name in absent and value not in (absent[name], None):
            raise OpValueError(f"{who}: {name}={shown(value)}; mxop's {who} has no {name}; mx.image.ImageIter takes any "
                               "changes, as aug_list")  # fmt: skip
        if name not in absent and name not in _WITHOUT_EFFECT:
            found[name] = value
    return found


def _changes(shape: tuple[int, int, int], dtype: str, *, resize: int = -1, pad: int = 0, fill_value: int = 255,
             rand_crop: bool = False, min_crop_size: int = -1, max_crop_size: int = -1, random_resized_crop: bool = False,
             min_random_area: float = 1.0, max_random_area: float = 1.0, min_aspect_ratio: float | None = None,
             max_aspect_ratio: float = 0.0, mirror: bool = False, rand_mirror: bool = False, inter_method: int = 1,
             brightness: float = 0.0, contrast: float = 0.0, saturation: float = 0.0, pca_noise: float = 0.0, random_h: int = 0,
             random_s: int = 0, random_l: int = 0, **normal: float) -> Callable[[NDArray], np.ndarray]:  # fmt: skip
    """Return the function that makes of a decoded image what a batch has."""
    _, height, width = shape
    ratios = (1 - max_aspect_ratio, 1 + max_aspect_ratio) if min_aspect_ratio is None else (min_aspect_ratio, max_aspect_ratio)
    steps: list[Callable] = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if pad > 0:
        steps.append(lambda x: copyMakeBorder(x, pad, pad, pad, pad, 0, fill_value))
    if random_resized_crop:
        areas = min_random_area, max_random_area
        steps.append(lambda x: random_size_crop(x, (width, height), areas, ratios, inter_method)[0])
    else:
        steps.append(lambda x: _cropped(x, width, height, rand_crop, min_crop_size, max_crop_size, inter_method))
    if mirror or rand_mirror:
        steps.append(HorizontalFlipAug(1 if mirror else 0.5))
    if random_h or random_s or random_l:
        steps.append(lambda x: _shifted(x, *(int(random.uniform(-v, v)) for v in (random_h, random_l, random_s))))
    if brightness or contrast or saturation or pca_noise:
        steps += [CastAug(), ColorJitterAug(brightness, contrast, saturation)]
    if pca_noise:
        steps.append(LightingAug(pca_noise, np.array(_EIGENVALUES), np.array(_EIGENVECTORS)))
    finish = _normalizing(shape[0], dtype, **normal)

    def change(image: NDArray) -> np.ndarray:
        for step in steps:
            image = step(image)
        return finish(image.asnumpy().transpose(2, 0, 1))

    return change


def _cropped(image: NDArray, width: int, height: int, at_random: bool, least: int, most: int, interp: int) -> NDArray:
    """Return a part of an image, which is enlarged first where it is too small."""
    h, w, _ = image.shape
    if most != -1 or least != -1:
        size = random.randint(least, most) if 0 < least <= most else max(least, most)
        if not 0 < size <= min(h, w):
            raise OpValueError(f"{_WHO}: min_crop_size={least}, max_crop_size={most}; an image has shape {image.shape}")
        part_w = part_h = size
    else:
        if h < height:  # first one side, then the other, as MXNet does
            image = imresize(image, w * height // h, height, interp)
        if image.shape[1] < width:
            image = imresize(image, width, image.shape[0] * width // image.shape[1], interp)
        part_w, part_h = width, height
    h, w, _ = image.shape
    x, y = (random.randint(0, free) if at_random else free // 2 for free in (w - part_w, h - part_h))
    return fixed_crop(image, x, y, part_w, part_h, (width, height), interp)


def _normalizing(channels: int, dtype: str, scale: float = 1.0, max_random_contrast: float = 0.0,
                 max_random_illumination: float = 0.0, **given: float) -> Callable[[np.ndarray], np.ndarray]:  # fmt: skip
    """Return the function that normalizes an image, channels first."""
    mean, std = normals(_WHO, channels, **given)
    if dtype == "uint8":
        return lambda x: x
    if dtype == "int8":
        return lambda x: (x - mean).clip(-128, 127)

    def normalized(x: np.ndarray) -> np.ndarray:
        factor = 1 + random.uniform(-max_random_contrast, max_random_contrast)
        more = random.uniform(-max_random_illumination, max_random_illumination)
        return ((x - mean) * np.float32(factor) + np.float32(more)) * np.float32(scale) / std

    return normalized


def normals(who: str, channels: int, **given: float) -> list[np.ndarray]:
    """Return mean and standard deviation of each channel."""
    unknown = set(given) - {f"{kind}_{c}" for kind in ("mean", "std") for c in "rgba"}
    if unknown:
        raise OpTypeError(f"{who}: unknown parameter {', '.join(sorted(unknown))}")
    return [np.array([[[given.get(f"{kind}_{c}", fill)]] for c in "rgba"[:channels]], "float32")
            for kind, fill in (("mean", 0), ("std", 1))]  # fmt: skip


__all__ = ["ImageRecordIter", "RecordIter"]
