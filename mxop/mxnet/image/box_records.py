"""``mx.io.ImageDetRecordIter``: batches of images with boxes, from a file of records."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...ndarray import NDArray
from ...support.errors import OpValueError, shown
from ..io.base import DataDesc
from ..io.files import as_written
from .augmenters import ResizeAug, shifted_colours
from .changes import _method, copyMakeBorder, imresize
from .detection import DetHorizontalFlipAug, header_and_objects
from .records import RecordIter, normals, present

_WHO = "ImageDetRecordIter"
_ABSENT = {"aug_seq": "det_aug_default", "mean_img": ""}
_Found, _Made = tuple[NDArray, np.ndarray], tuple[np.ndarray, tuple[int, int], np.ndarray]
#: Parameters of which every way to crop has its own, and their defaults: the first ones are limits, least and largest.
_LIMITS = {"crop_scales": (0, 1), "crop_aspect_ratios": (1, 1), "crop_overlaps": (0, 1), "crop_sample_coverages": (0, 1),
           "crop_object_coverages": (0, 1)}  # fmt: skip


class ImageDetRecordIter(RecordIter):
    """Batches of images with boxes around objects, ``(batch, channels, height, width)``, and of their labels.

    A label in the file is: how many numbers come before the objects (two or more), how many each object has (five or more),
    what else comes before the objects, and the objects: class, left, top, right, bottom in parts of the image's size, and what
    else there is.  In a batch, four numbers come before it: channels, height and width of the image, and how many numbers the
    label has; and `label_pad_value` fills it up.  What is drawn comes from Python's module ``random``.

    Parameters
    ----------
    path_imgrec, data_shape, batch_size, path_imglist, shuffle, seed, num_parts, part_index, round_batch, resize, inter_method
        As those of :class:`mxop.io.ImageRecordIter`, as ``preprocess_threads``, ``mean_r``, ``std_r``, ``scale``...
    label_width, label_pad_width : int
        How many numbers each label has, -1: any number; and to how many they are filled up, at least.
    random_hue_prob, random_saturation_prob, random_illumination_prob, random_contrast_prob, rand_mirror_prob : float
        How probable it is that colours change, by at most `max_random_hue` (of 180), `max_random_saturation`,
        `max_random_illumination` (of 255) and `max_random_contrast`; and that left and right are exchanged.
    rand_pad_prob, max_pad_scale, fill_value : float, float, int
        How probable it is that the image is put into a larger one, how many times larger at most, and the colour around.
    rand_crop_prob, num_crop_sampler, max_crop_trials : float, int, tuple of int
        How probable it is that a part is taken, in how many ways, and how many parts each tries.  All of the following have a
        value for each way, or one for all; ``max_`` has the largest.
    min_crop_scales, min_crop_aspect_ratios : tuple of float
        The root of the part's area, and its ratio of width to height.
    min_crop_overlaps, min_crop_sample_coverages, min_crop_object_coverages : tuple of float
        The area that the part shares with one object, of both together, of the part, and of the object.
    crop_emit_mode, emit_overlap_thresh : {'center', 'overlap'}, float
        Which objects a part keeps: those whose centre it has, or of which it has more than this.
    resize_mode : {'force', 'shrink', 'fit'}
        Whether the image gets the size of `data_shape`, or the largest that keeps its ratio; 'shrink' never enlarges it.

    Examples
    --------
    >>> import os, tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "boxes.rec")
    >>> writer, pixels = mx.recordio.MXRecordIO(name, "w"), np.zeros((8, 8, 3), "uint8")
    >>> header = mx.recordio.IRHeader(0, [2, 5, 1, 0.25, 0.5, 0.75, 1], 0, 0)
    >>> writer.write(mx.recordio.pack_img(header, pixels, img_fmt=".png"))
    >>> writer.close()
    >>> batches = mx.io.ImageDetRecordIter(path_imgrec=name, data_shape=(3, 4, 4), batch_size=1, label_pad_width=8)
    >>> batches.next().label[0].asnumpy().tolist()
    [[3.0, 4.0, 4.0, 7.0, 2.0, 5.0, 1.0, 0.25, 0.5, 0.75, 1.0, -1.0]]
    """

    @as_written
    def __init__(self, path_imgrec: Any, data_shape: tuple[int, int, int], batch_size: int, path_imglist: Any = None,
                 label_width: int = -1, label_pad_width: int = 0, label_pad_value: float = -1.0, shuffle: bool = False,
                 seed: int = 0, num_parts: int = 1, part_index: int = 0, round_batch: bool = True, dtype: str | None = None,
                 preprocess_threads: int = 4, data_name: str = "data", label_name: str = "softmax_label",
                 **kwargs: Any):  # fmt: skip
        if dtype not in (None, "None", "float32", np.float32):
            raise OpValueError(f"{_WHO}: dtype={shown(dtype)}; expected float32")
        given = path_imgrec, None, num_parts, part_index, random.Random(seed) if shuffle else None
        super().__init__(batch_size, data_shape, given, path_imglist, round_batch, preprocess_threads)
        self._change = _changes(self.data_shape, **present(kwargs, _WHO, _ABSENT))
        widths = {self._header_and_objects(*self._unpacked(record)[::2])[2] for record in self._records.all()}
        if 0 < label_pad_width < max(widths) or (label_width > 0 and widths != {label_width}):
            raise OpValueError(f"{_WHO}: {path_imgrec!r} has labels of {min(widths)} to {max(widths)} numbers; "
                               f"label_width={label_width}, label_pad_width={label_pad_width}")  # fmt: skip
        self.label_pad_value = label_pad_value
        self.provide_data = [DataDesc(data_name, (batch_size, *self.data_shape))]
        self.provide_label = [DataDesc(label_name, (batch_size, 4 + max(*widths, label_pad_width)))]
        self.reset()

    def _header_and_objects(self, label: np.ndarray, who: str) -> tuple[np.ndarray, np.ndarray, int]:
        """Return what comes before the objects, the objects, and how many numbers a label has."""
        header, objects = header_and_objects(label, who)
        if not ((size := objects[:, 3:5] - objects[:, 1:3]) > 0).all() or not np.isfinite(size).all():
            raise OpValueError(f"{who} has boxes without a size: {shown(objects[:, 1:5].tolist())}")
        return header, objects, label.size

    def _place(self, data: np.ndarray, labels: np.ndarray, at: int, image: NDArray, label: np.ndarray, who: str) -> None:
        header, objects, _ = self._header_and_objects(label, who)
        data[at], size, objects = self._change(image, objects)
        row = [len(data[at]), *size, header.size + objects.size, *header, *objects.ravel()]
        labels[at], labels[at, : len(row)] = self.label_pad_value, row


def _changes(shape: tuple[int, int, int], *, resize: int = -1, inter_method: int = 1, rand_mirror_prob: float = 0,
             rand_pad_prob: float = 0, max_pad_scale: float = 1, fill_value: int = 127, rand_crop_prob: float = 0,
             num_crop_sampler: int = 1, max_crop_trials: Any = 25, crop_emit_mode: str = "center",
             emit_overlap_thresh: float = 0.3, resize_mode: str = "force", max_random_hue: int = 0, random_hue_prob: float = 0,
             max_random_saturation: int = 0, random_saturation_prob: float = 0, max_random_illumination: int = 0,
             random_illumination_prob: float = 0, max_random_contrast: float = 0, random_contrast_prob: float = 0,
             scale: float = 1, **more: Any) -> Callable[[NDArray, np.ndarray], _Made]:  # fmt: skip
    """Return the function that makes of a decoded image and its objects what a batch has, and the size that the image gets."""
    if crop_emit_mode not in ("center", "overlap") or resize_mode not in ("force", "shrink", "fit"):
        raise OpValueError(f"{_WHO}: crop_emit_mode={shown(crop_emit_mode)}, resize_mode={shown(resize_mode)}; expected "
                           "'center' or 'overlap', and 'force', 'shrink' or 'fit'")  # fmt: skip
    limits = [_limits(name, [more.pop(f"{end}_{name}", default) for end, default in zip(("min", "max"), ends, strict=True)],
                      num_crop_sampler) for name, ends in _LIMITS.items()]  # fmt: skip
    trials = _each("max_crop_trials", max_crop_trials, num_crop_sampler)
    kept = None if crop_emit_mode == "center" else emit_overlap_thresh
    ways = [partial(_cropped, kept, *way) for way in zip(trials, *limits, strict=True)]
    first = [ResizeAug(resize, inter_method)] if resize > 0 else []
    hls = [(random_hue_prob, max_random_hue), (random_illumination_prob, max_random_illumination),
           (random_saturation_prob, max_random_saturation)]  # fmt: skip
    mean, std = normals(_WHO, shape[0], **{name: value for name, value in more.items() if name[:3] != "std" or value > 0})

    def change(image: NDArray, objects: np.ndarray) -> _Made:
        for step in first:
            image = step(image)
        if any(prob > 0 for prob, _ in (*hls, (random_contrast_prob, 0))):
            by = [int(random.uniform(-most, most)) if random.random() < prob else 0 for prob, most in hls]
            drawn = random.random() < random_contrast_prob
            image = shifted_colours(image, *by, 1 + random.uniform(-max_random_contrast, max_random_contrast) * drawn)
        image, objects = DetHorizontalFlipAug(rand_mirror_prob)(image, objects)
        if max_pad_scale > 1 and random.random() < rand_pad_prob:
            image, objects = _surrounded(image, objects, random.uniform(1, max_pad_scale), fill_value)
        if random.random() < rand_crop_prob:
            found = (way(image, objects) for way in random.sample(ways, len(ways)))
            image, objects = next(filter(None, found), (image, objects))
        image = _fitted(image, shape[1], shape[2], resize_mode, inter_method)
        canvas, (height, width, _) = np.zeros(shape, "float32"), image.shape
        canvas[:, :height, :width] = image.asnumpy().transpose(2, 0, 1)
        return (canvas - mean) / std * np.float32(scale), (height, width), objects

    return change


def _each(name: str, given: Any, count: int) -> Sequence:
    """Return a parameter's value for each way to crop."""
    found = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if len(found) not in (1, count):
        raise OpValueError(f"{_WHO}: {name}={shown(given)}; num_crop_sampler={count}, expected one value, or one for each")
    return found if len(found) == count else found * count


def _limits(name: str, given: list, count: int) -> list[tuple[float, float]]:
    """Return the least and the largest value for each way to crop."""
    found = list(zip(_each(f"min_{name}", given[0], count), _each(f"max_{name}", given[1], count), strict=True))
    if any(not 0 <= least <= most or not most or ("scales" in name and most > 1) for least, most in found):
        raise OpValueError(f"{_WHO}: min_{name}={shown(given[0])}, max_{name}={shown(given[1])}; expected limits in order")
    return found


def _projected(objects: np.ndarray, left: float, top: float, width: float, height: float) -> np.ndarray:
    """Return objects as parts of a part of the image, or of what surrounds it."""
    found = objects.copy()
    found[:, 1:5] = (found[:, 1:5] - np.float32([left, top] * 2)) / np.float32([width, height] * 2)
    found[:, 1:3], found[:, 3:5] = np.maximum(found[:, 1:3], 0), np.minimum(found[:, 3:5], 1)
    return found


def _surrounded(image: NDArray, objects: np.ndarray, scale: float, fill: int) -> _Found:
    """Put an image somewhere into a larger one, if it is larger by enough."""
    if scale < 1.05:
        return image, objects
    (height, width, _), x, y = image.shape, random.uniform(0, scale - 1), random.uniform(0, scale - 1)
    border = (int(y * height), int((scale - y - 1) * height), int(x * width), int((scale - x - 1) * width))
    return copyMakeBorder(image, *border, 0, min(max(fill, 0), 255)), _projected(objects, -x, -y, scale, scale)


def _cropped(emitted: float | None, trials: int, scales: Any, ratios: Any, overlaps: Any, samples: Any, covered: Any,
             image: NDArray, objects: np.ndarray) -> _Found | None:  # fmt: skip
    """Return a part of an image and its objects, None where no trial finds one."""
    height, width, _ = image.shape
    low, high = objects[:, 1:3].astype(np.float64), objects[:, 3:5].astype(np.float64)
    areas, middle = (high - low).prod(axis=1), (low + high) / 2
    for _ in range(trials):
        scale, shape = random.uniform(*scales) + 1e-12, width / height
        ratio = random.uniform(max(ratios[0] / shape, scale**2), min(ratios[1] / shape, 1 / scale**2)) ** 0.5
        size = w, h = min(1.0, scale * ratio), min(1.0, scale / ratio)
        begin = x, y = random.uniform(0, 1 - w), random.uniform(0, 1 - h)
        common = (np.minimum(high, np.add(begin, size)) - np.maximum(low, begin)).clip(0).prod(axis=1)
        shares = (overlaps, common / (w * h + areas - common)), (samples, common / (w * h)), (covered, common / areas)
        fits = [(share >= least) & (share <= most) for (least, most), share in shares]
        inside = (middle >= begin) & (middle < np.add(begin, size))
        kept = inside.all(axis=1) if emitted is None else common / areas > emitted
        left, top, columns, rows = (int(part * n) for part, n in ((x, width), (y, height), (w, width), (h, height)))
        if np.all(fits, axis=0).any() and kept.any() and rows and columns:
            return image[top : top + rows, left : left + columns], _projected(objects[kept], x, y, w, h)
    return None


def _fitted(image: NDArray, height: int, width: int, mode: str, interp: int) -> NDArray:
    """Return an image in the size of a batch, or in the largest that has its ratio."""
    h, w, _ = image.shape
    if mode != "force":
        ratio = np.minimum(np.float32(height) / np.float32(h), np.float32(width) / np.float32(w))
        height, width = (max(1, int(ratio * np.float32(n))) if mode == "fit" or ratio < 1 else n for n in (h, w))
    return imresize(image, width, height, _method(interp, (h, w, height, width)))


__all__ = ["ImageDetRecordIter"]
