"""``mx.image.detection``: images with boxes around objects; augmenters change both alike.

A label is an array with a row for each object: class, left, top, right and bottom in parts of the image's size, and what else
there is.
"""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...ndarray import NDArray
from ...support.errors import AssertedError, MissingPackageError, OpTypeError, OpValueError, shown
from ...support.missing import hooks
from .augmenters import Augmenter, Described, ForceResizeAug, ResizeAug, _colours
from .changes import copyMakeBorder, fixed_crop
from .iterator import ImageIter

_Found = tuple[NDArray, np.ndarray]


# ---- augmenters -----------------------------------------------------------------------------------------------------------
class DetAugmenter(Described):
    """Base of augmenters of images with boxes; derive, and define ``__call__(src, label)``, which returns both."""

    def __call__(self, src: NDArray, label: np.ndarray) -> _Found:
        """Return the changed image and its label."""
        raise NotImplementedError(f"{type(self).__name__} has no __call__")


class DetBorrowAug(DetAugmenter):
    """An augmenter of images that leaves boxes where they are."""

    def __init__(self, augmenter: Augmenter):
        if not isinstance(augmenter, Augmenter):
            raise OpTypeError(f"DetBorrowAug: augmenter is a {type(augmenter).__name__}; expected an Augmenter")
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> Any:
        """Return name and augmenter."""
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: NDArray, label: np.ndarray) -> _Found:
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """One of several augmenters at random; none with the probability `skip_prob`."""

    def __init__(self, aug_list: Any, skip_prob: float = 0):
        super().__init__(skip_prob=skip_prob)
        self.aug_list = list(aug_list) if isinstance(aug_list, (list, tuple)) else [aug_list]
        if not all(isinstance(step, DetAugmenter) for step in self.aug_list):
            raise OpValueError(f"DetRandomSelectAug: aug_list={shown(aug_list)}; expected DetAugmenters")
        self.skip_prob = skip_prob if self.aug_list else 1

    def dumps(self) -> Any:
        """Return the names and parameters of all."""
        return [type(self).__name__.lower(), [step.dumps() for step in self.aug_list]]

    def __call__(self, src: NDArray, label: np.ndarray) -> _Found:
        if random.random() < self.skip_prob:
            return src, label
        random.shuffle(self.aug_list)
        return self.aug_list[0](src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Exchange left and right, with a probability; the label is changed in place."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray, label: np.ndarray) -> _Found:
        if random.random() < self.p:
            src = nd.flip(src, axis=1)
            label[:, (1, 3)] = 1.0 - label[:, (3, 1)]
        return src, label


def _range(given: Any) -> tuple[float, float]:
    """Return a range, where a number means that alone."""
    return tuple(given) if isinstance(given, (tuple, list)) else (given, given)  # type: ignore[return-value]


def _in_order(ranges: dict[str, tuple[float, float]], least: float, who: str) -> bool:
    """Return whether ranges, of area and ratio, are some; warn where an augmenter does nothing because they are not."""
    (_, area), (_, ratio) = ranges.items()
    if area[1] <= least or area[0] > area[1] or ratio[0] <= 0 or ratio[0] > ratio[1]:
        warnings.warn(f"{who} does nothing: no images have area_range={area} and aspect_ratio_range={ratio}", stacklevel=3)
        return False
    return True


def _areas(corners: np.ndarray) -> np.ndarray:
    """Return the areas of boxes (left, top, right, bottom), 0 where a size is negative."""
    return np.maximum(0, corners[:, 3] - corners[:, 1]) * np.maximum(0, corners[:, 2] - corners[:, 0])


class DetRandomCropAug(DetAugmenter):
    """Take a part at random that holds enough of the objects; the image stays as it is where none is found.

    Parameters
    ----------
    min_object_covered : float
        Of each object that the part meets, it holds more than this.
    aspect_ratio_range, area_range : tuple of float, or float
        The least and the largest ratio of width to height, and part of the area.
    min_eject_coverage : float
        Objects of which no more than this is left are dropped.
    max_attempts : int
    """

    def __init__(self, min_object_covered: float = 0.1, aspect_ratio_range: Any = (0.75, 1.33), area_range: Any = (0.05, 1.0),
                 min_eject_coverage: float = 0.3, max_attempts: int = 50):  # fmt: skip
        self.area_range, self.aspect_ratio_range = _range(area_range), _range(aspect_ratio_range)
        super().__init__(min_object_covered=min_object_covered, aspect_ratio_range=self.aspect_ratio_range,
                         area_range=self.area_range, min_eject_coverage=min_eject_coverage,
                         max_attempts=max_attempts)  # fmt: skip
        self.min_object_covered, self.min_eject_coverage = min_object_covered, min_eject_coverage
        self.max_attempts = max_attempts
        self.enabled = _in_order({"area": self.area_range, "ratio": self.aspect_ratio_range}, 0, type(self).__name__)

    def __call__(self, src: NDArray, label: np.ndarray) -> _Found:
        height, width = src.shape[:2]
        for _ in range(self.max_attempts if self.enabled and height and width else 0):
            size = self._size(height, width)
            if size is None:
                continue
            w, h = size
            y, x = random.randint(0, max(0, height - h)), random.randint(0, max(0, width - w))
            if w * h >= 2 and self._holds_enough(
                label, x / width, y / height, (x + w) / width, (y + h) / height, width * height
            ):
                found = self._label(label, x / width, y / height, w / width, h / height)
                if len(found):
                    return fixed_crop(src, x, y, w, h), found
        return src, label

    def _size(self, height: int, width: int) -> tuple[int, int] | None:
        """Return width and height of a part, None where those that were drawn do not fit."""
        least, most = (part * height * width for part in self.area_range)
        ratio = random.uniform(*self.aspect_ratio_range)
        h, highest = (round(sqrt(area / ratio)) for area in (least, most))
        if round(highest * ratio) > width:
            highest = int((width + 0.4999999) / ratio)
        highest = min(highest, height)
        h = random.randint(h, highest) if h < highest else highest
        if round(h * ratio) * h < least:
            h += 1
        if round(h * ratio) * h > most:
            h -= 1
        w = round(h * ratio)
        return (w, h) if least <= w * h <= most and 0 <= w <= width and 0 <= h <= height else None

    def _holds_enough(self, label: np.ndarray, left: float, top: float, right: float, bottom: float, pixels: int) -> bool:
        """Return whether a part holds enough of all objects, of more than two pixels, that it meets."""
        corners = label[:, 1:5]
        corners = corners[_areas(corners) * pixels > 2]
        shared = np.concatenate([np.maximum(corners[:, :2], (left, top)), np.minimum(corners[:, 2:], (right, bottom))], axis=1)
        parts = _areas(shared) / _areas(corners)
        parts = parts[parts > 0]
        return bool(parts.size and parts.min() > self.min_object_covered)

    def _label(self, label: np.ndarray, left: float, top: float, w: float, h: float) -> np.ndarray:
        """Return the boxes of objects in a part, in parts of its size."""
        found = label.copy()
        found[:, (1, 3)] = (found[:, (1, 3)] - left) / w
        found[:, (2, 4)] = (found[:, (2, 4)] - top) / h
        found[:, 1:5] = np.clip(found[:, 1:5], 0, 1)
        with np.errstate(all="ignore"):
            kept = _areas(found[:, 1:]) * w * h / _areas(label[:, 1:]) > self.min_eject_coverage
        return found[kept & (found[:, 3] > found[:, 1]) & (found[:, 4] > found[:, 2])]


class DetRandomPadAug(DetAugmenter):
    """Surround the image at random, which makes objects smaller; it stays as it is where no size is found.

    Parameters
    ----------
    aspect_ratio_range, area_range : tuple of float, or float
        The least and the largest ratio of width to height, and area, in areas of the image.
    max_attempts : int
    pad_val : tuple of float
        The colour around.
    """

    def __init__(self, aspect_ratio_range: Any = (0.75, 1.33), area_range: Any = (1.0, 3.0), max_attempts: int = 50,
                 pad_val: Any = (128, 128, 128)):  # fmt: skip
        self.area_range, self.aspect_ratio_range = _range(area_range), _range(aspect_ratio_range)
        super().__init__(aspect_ratio_range=self.aspect_ratio_range, area_range=self.area_range, max_attempts=max_attempts,
                         pad_val=pad_val)  # fmt: skip
        self.pad_val = pad_val if isinstance(pad_val, (list, tuple)) else (pad_val,) * 3
        self.max_attempts = max_attempts
        self.enabled = _in_order({"area": self.area_range, "ratio": self.aspect_ratio_range}, 1, type(self).__name__)

    def __call__(self, src: NDArray, label: np.ndarray) -> _Found:
        height, width, _ = src.shape
        for _ in range(self.max_attempts if self.enabled and height and width else 0):
            w, h = self._size(height, width)
            if h - height < 2 or w - width < 2:
                continue  # nearly nothing is added
            y, x = random.randint(0, h - height), random.randint(0, w - width)
            found = label.copy()
            found[:, (1, 3)] = (found[:, (1, 3)] * width + x) / w
            found[:, (2, 4)] = (found[:, (2, 4)] * height + y) / h
            return copyMakeBorder(src, y, h - y - height, x, w - x - width, 0, values=self.pad_val), found
        return src, label

    def _size(self, height: int, width: int) -> tuple[int, int]:
        """Return width and height of the result, which may be too small."""
        least, most = (part * height * width for part in self.area_range)
        ratio = random.uniform(*self.aspect_ratio_range)
        h, highest = (round(sqrt(area / ratio)) for area in (least, most))
        if round(h * ratio) < width:
            h = int((width + 0.499999) / ratio)
        h = min(max(h, height), highest)
        h = random.randint(h, highest) if h < highest else h
        return round(h * ratio), h


def CreateMultiRandCropAugmenter(min_object_covered: Any = 0.1, aspect_ratio_range: Any = (0.75, 1.33),
                                 area_range: Any = (0.05, 1.0), min_eject_coverage: Any = 0.3, max_attempts: Any = 50,
                                 skip_prob: float = 0) -> DetRandomSelectAug:  # fmt: skip
    """Return an augmenter that takes parts in one of several ways: parameters may be lists, with an element for each way."""
    given = [p if isinstance(p, list) else [p] for p in (min_object_covered, aspect_ratio_range, area_range, min_eject_coverage,
                                                         max_attempts)]  # fmt: skip
    count = max(map(len, given))
    if any(len(p) not in (1, count) for p in given):
        raise AssertedError(
            f"CreateMultiRandCropAugmenter: lists of {sorted({len(p) for p in given})} elements; expected one length"
        )
    ways = zip(*(p if len(p) == count else p * count for p in given), strict=True)
    return DetRandomSelectAug([DetRandomCropAug(*way) for way in ways], skip_prob=skip_prob)


def CreateDetAugmenter(data_shape: tuple[int, int, int], resize: int = 0, rand_crop: float = 0, rand_pad: float = 0,
                       rand_gray: float = 0, rand_mirror: bool = False, mean: Any = None, std: Any = None,
                       brightness: float = 0, contrast: float = 0, saturation: float = 0, pca_noise: float = 0, hue: float = 0,
                       inter_method: int = 2, min_object_covered: Any = 0.1, aspect_ratio_range: Any = (0.75, 1.33),
                       area_range: Any = (0.05, 3.0), min_eject_coverage: Any = 0.3, max_attempts: Any = 50,
                       pad_val: Any = (127, 127, 127)) -> list[DetAugmenter]:  # fmt: skip
    """Return a list of augmenters of images with boxes.

    Parameters
    ----------
    data_shape : tuple of int
        Channels, height and width of the result.
    rand_crop, rand_pad : float
        The probabilities that a part is taken, and that the image is surrounded; other parameters say how, as those of
        :class:`DetRandomCropAug` and :class:`DetRandomPadAug`.
    **others
        As those of :func:`mxop.image.CreateAugmenter`.

    Examples
    --------
    >>> steps = mx.image.detection.CreateDetAugmenter((3, 24, 24), rand_mirror=True)
    >>> image, label = mx.nd.zeros((40, 50, 3)), np.array([[0, 0.1, 0.2, 0.5, 0.6]])
    >>> for step in steps:
    ...     image, label = step(image, label)
    >>> image.shape, label.shape
    ((24, 24, 3), (1, 5))
    """
    steps: list[DetAugmenter] = [DetBorrowAug(ResizeAug(resize, inter_method))] if resize > 0 else []
    if rand_crop > 0:
        steps.append(CreateMultiRandCropAugmenter(min_object_covered, aspect_ratio_range, area_range, min_eject_coverage,
                                                  max_attempts, skip_prob=1 - rand_crop))  # fmt: skip
    if rand_mirror > 0:
        steps.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:
        pad = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        steps.append(DetRandomSelectAug([pad], 1 - rand_pad))
    steps.append(DetBorrowAug(ForceResizeAug((data_shape[2], data_shape[1]), inter_method)))
    colours = _colours(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std, np.array)
    return steps + [DetBorrowAug(step) for step in colours]


def header_and_objects(label: Any, who: str) -> _Found:  # type: ignore[valid-type]
    """Return what comes before the objects of a label, and the objects."""
    raw = np.array(label.asnumpy() if isinstance(label, NDArray) else label, dtype=np.float32).ravel()
    before, width = (int(raw[0]), int(raw[1])) if raw.size >= 7 and np.isfinite(raw[:2]).all() else (0, 0)
    if before < 2 or width < 5 or raw.size <= before or (raw.size - before) % width:
        raise OpValueError(f"{who} has {raw.size} labels, which begin with {raw[:2].tolist()}; expected how many numbers come "
                           "before the objects, how many each object has, and an object")  # fmt: skip
    return raw[:before], raw[before:].reshape(-1, width)


# ---- batches --------------------------------------------------------------------------------------------------------------
class ImageDetIter(ImageIter):
    """Batches of images with boxes; labels are ``(batch, objects, width)``, and -1 where an image has fewer objects.

    The numbers of an image in lists and records are: how many numbers come before the objects (two or more), how many each
    object has (five or more), and the objects.  Images without an object that is left are skipped.

    Parameters
    ----------
    batch_size, data_shape, ...
        As those of :class:`mxop.image.ImageIter`.
    aug_list : list of DetAugmenter, optional
        Without, ``CreateDetAugmenter(data_shape, **kwargs)``.
    """

    def __init__(self, batch_size: int, data_shape: tuple[int, int, int], path_imgrec: Any = None, path_imglist: Any = None,
                 path_root: Any = None, path_imgidx: Any = None, shuffle: bool = False, part_index: int = 0, num_parts: int = 1,
                 aug_list: Sequence | None = None, imglist: list | None = None, data_name: str = "data",
                 label_name: str = "label", last_batch_handle: str = "pad", **kwargs: Any):  # fmt: skip
        super().__init__(batch_size, data_shape, path_imgrec=path_imgrec, path_imglist=path_imglist, path_root=path_root,
                         path_imgidx=path_imgidx, shuffle=shuffle, part_index=part_index, num_parts=num_parts, aug_list=[],
                         imglist=imglist, data_name=data_name, label_name=label_name,
                         last_batch_handle=last_batch_handle)  # fmt: skip
        self.auglist = CreateDetAugmenter(self.data_shape, **kwargs) if aug_list is None else aug_list
        self.label_shape = self._label_shape()
        self._provide("label", self.label_shape)

    def _provide(self, which: str, shape: tuple[int, ...]) -> None:
        (desc,) = getattr(self, f"provide_{which}")
        setattr(self, f"provide_{which}", [type(desc)(desc.name, (self.batch_size, *shape))])

    def _label_shape(self) -> tuple[int, int]:
        """Return the largest number of objects, and how many numbers each has: all labels are read."""
        shapes = []
        self.reset()
        try:
            while True:
                shapes.append(self._parsed(self.next_sample()[0]).shape)
        except StopIteration:
            self.reset()
        if len({width for _, width in shapes}) != 1:
            raise OpValueError(
                f"ImageDetIter: objects have {sorted({width for _, width in shapes})} numbers; expected one number"
            )
        return max(shapes)

    def _parsed(self, label: Any) -> np.ndarray:
        """Return the objects of an image, without those whose boxes are empty."""
        _, found = header_and_objects(label, f"ImageDetIter: {self._where()}")
        found = found[(found[:, 3] > found[:, 1]) & (found[:, 4] > found[:, 2])]
        if not len(found):
            raise OpValueError(f"ImageDetIter: no box has a size above 0, {self._where()}")
        return found

    def _write(self, data: NDArray, labels: NDArray, at: int, pixels: NDArray, label: Any) -> int:
        image, found = self.augmentation_transform(pixels, self._parsed(label))
        if not ((found[:, 0] >= 0) & (found[:, 3] > found[:, 1]) & (found[:, 4] > found[:, 2])).any():
            logging.debug("ImageDetIter: no object is left, %s", self._where())
            return 0
        self._place(data, at, image)
        labels[at] = np.concatenate([found, np.full((max(labels.shape[1] - len(found), 0), found.shape[1]), -1)])
        return 1

    def _empty(self) -> tuple[NDArray, NDArray]:
        data, labels = super()._empty()
        labels[:] = -1
        return data, labels

    def augmentation_transform(self, data: NDArray, label: np.ndarray) -> _Found:  # type: ignore[override]
        """Return the image and the label that the augmenters make."""
        for step in self.auglist:
            data, label = step(data, label)  # type: ignore[call-arg, misc, assignment]
        return data, label

    def reshape(self, data_shape: Any = None, label_shape: Any = None) -> None:
        """Give images another size, and labels another number of objects, which is no smaller one."""
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = tuple(data_shape)
            self._provide("data", self.data_shape)
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = tuple(label_shape)
            self._provide("label", self.label_shape)

    def check_label_shape(self, label_shape: Any) -> None:
        """Raise for a shape in which the labels have no room."""
        if len(label_shape) != 2 or label_shape[0] < self.label_shape[0] or label_shape[1] != self.label_shape[1]:
            raise OpValueError(f"ImageDetIter: label_shape={shown(label_shape)}; expected {self.label_shape[0]} objects or "
                               f"more, and {self.label_shape[1]} numbers for each")  # fmt: skip

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Let two iterators have labels of the same number of objects; return the other one."""
        if not isinstance(it, ImageDetIter):
            raise AssertedError(f"ImageDetIter.sync_label_shape: it is a {type(it).__name__}; expected an ImageDetIter")
        if it.label_shape[1] != self.label_shape[1]:
            raise AssertedError(
                f"ImageDetIter: labels of shapes {self.label_shape} and {it.label_shape} have objects of two widths"
            )
        shape = max(self.label_shape, it.label_shape)
        for one in (self, it):
            one.reshape(label_shape=shape)
        if verbose:
            logging.info("Labels have shape %s", shape)
        return it

    def draw_next(self, color: Any = None, thickness: int = 2, mean: Any = None, std: Any = None, clip: bool = True,
                  waitKey: int | None = None, window_name: str = "draw_next",
                  id2labels: Any = None) -> Iterator[np.ndarray]:  # fmt: skip
        """Yield images, in blue, green and red, with their boxes; by OpenCV, which also shows them where `waitKey` is given.

        `mean` and `std` are those that the augmenters subtract and divide by; True: those of ImageNet.
        """
        try:
            import cv2
        except ImportError:
            raise MissingPackageError("ImageDetIter.draw_next needs the package opencv-python (cv2)") from None
        mean, std = (default if given is True else given for given, default in (
            (mean, (123.68, 116.28, 103.53)), (std, (58.395, 57.12, 57.375))))  # fmt: skip
        while True:
            try:
                label, data = self.next_sample()
            except StopIteration:
                return
            image, found = self.augmentation_transform(self.imdecode(data), self._parsed(label))
            pixels = image.asnumpy() * (1 if std is None else np.asarray(std)) + (0 if mean is None else np.asarray(mean))
            pixels = np.ascontiguousarray((np.clip(pixels, 0, 255) if clip else pixels)[:, :, ::-1].astype(np.uint8))
            corners = (found[:, 1:5] * np.array([pixels.shape[1], pixels.shape[0]] * 2, np.float32)).astype(int)
            for kind, (left, top, right, bottom) in zip(found[:, 0].tolist(), corners.tolist(), strict=True):
                ink = tuple(np.random.rand(3) * 255) if not color else tuple(color[::-1])
                cv2.rectangle(pixels, (left, top), (right, bottom), ink, thickness)
                if id2labels is not None and int(kind) in id2labels:
                    cv2.putText(
                        pixels, str(id2labels[int(kind)]), (left + 5, top + 15), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (255,) * 3, 2
                    )
            if waitKey is not None:
                cv2.imshow(window_name, pixels)
                cv2.waitKey(waitKey)
            yield pixels


__all__ = ["CreateDetAugmenter", "CreateMultiRandCropAugmenter", "DetAugmenter", "DetBorrowAug", "DetHorizontalFlipAug",
           "DetRandomCropAug", "DetRandomPadAug", "DetRandomSelectAug", "ImageDetIter"]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
