"""Batches of images from files: one file an image, or many in a file of records."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...ndarray import NDArray
from ...support.errors import AssertedError, MXNetError, OpLookupError, OpValueError, shown
from ...support.files import contents, path_of, reading, reporting
from .. import recordio
from ..io.base import DataBatch, DataDesc, DataIter, checked_size
from .augmenters import CreateAugmenter
from .decoding import imdecode

_LAST = ("pad", "discard", "roll_over")
_LABELS = ("int32", "float32", "int64", "float64")


class ImageIter(DataIter):
    """Batches of images, which augmenters bring to one size, ``(batch, channels, height, width)``, and of their labels.

    One of `path_imgrec`, `path_imglist` and `imglist` says where the images are.

    Parameters
    ----------
    batch_size : int
    data_shape : tuple of int
        Channels (three), height and width.
    label_width : int
        How many labels an image has.
    path_imgrec : str, optional
        A file of records, as ``mx.recordio`` writes it.
    path_imglist : str, optional
        A file with a line for each image: a number, the labels, and the path, separated by tabs.  With `path_imgrec`, its
        labels count.
    path_root : str, optional
        The folder below which the paths are.
    path_imgidx : str, optional
        The index of `path_imgrec`, which mixing and parts need.
    shuffle : bool
        Mix the images before each epoch, by Python's module ``random``.
    part_index, num_parts : int
        Into how many parts the images are divided, and which one is meant.
    aug_list : list of Augmenter, optional
        Without, ``CreateAugmenter(data_shape, **kwargs)``.
    imglist : list, optional
        ``[label, path]`` or ``[[label, ...], path]`` for each image.
    data_name, label_name : str
    dtype : str
        The type of labels in lists.
    last_batch_handle : {'pad', 'discard', 'roll_over'}
        What becomes of the last images: a batch that is filled up with the first ones, nothing, or the beginning of the next
        epoch.

    Examples
    --------
    An iterator of one's own makes the images itself, here of numbers, and needs no files:

    >>> class Numbers(mx.image.ImageIter):
    ...     def read_image(self, fname):
    ...         return int(fname)
    ...     def imdecode(self, s):
    ...         return mx.nd.full((4, 4, 3), s)
    >>> batches = Numbers(2, (3, 2, 2), imglist=[[0, "5"], [1, "7"], [2, "9"]])
    >>> [(batch.label[0].asnumpy().tolist(), batch.data[0][:, 0, 0, 0].asnumpy().tolist(), batch.pad) for batch in batches]
    [([0.0, 1.0], [5.0, 7.0], 0), ([2.0, 0.0], [9.0, 5.0], 1)]
    """

    def __init__(self, batch_size: int, data_shape: tuple[int, int, int], label_width: int = 1, path_imgrec: Any = None,
                 path_imglist: Any = None, path_root: Any = None, path_imgidx: Any = None, shuffle: bool = False,
                 part_index: int = 0, num_parts: int = 1, aug_list: Sequence | None = None, imglist: list | None = None,
                 data_name: str = "data", label_name: str = "softmax_label", dtype: str = "float32",
                 last_batch_handle: str = "pad", **kwargs: Any):  # fmt: skip
        who = type(self).__name__
        super().__init__(checked_size(batch_size, who))
        if not (path_imgrec or path_imglist or isinstance(imglist, list)):
            raise AssertedError(f"{who}: expected one of path_imgrec, path_imglist and imglist, a list")
        if dtype not in _LABELS or last_batch_handle not in _LAST:
            raise AssertedError(f"{who}: dtype={shown(dtype)}, last_batch_handle={shown(last_batch_handle)}; expected one of "
                                f"{', '.join(_LABELS)} and one of {', '.join(_LAST)}")  # fmt: skip
        self.check_data_shape(data_shape)
        channels, height, width = data_shape
        self.data_shape, self.label_width, self.path_root = (channels, height, width), label_width, path_root
        self.shuffle, self.last_batch_handle = shuffle, last_batch_handle
        self.imgrec, self.imgidx = _records(path_imgrec, path_imgidx)
        self.imglist = _listed(path_imglist, imglist, dtype, who)
        self.seq = self._sequence(part_index, num_parts, path_imgidx)
        self.num_image = None if self.seq is None else len(self.seq)
        self.provide_data = [DataDesc(data_name, (batch_size, *self.data_shape))]
        self.provide_label = [DataDesc(label_name, (batch_size, label_width) if label_width > 1 else (batch_size,))]
        self.auglist: Sequence = CreateAugmenter(self.data_shape, **kwargs) if aug_list is None else aug_list
        self.cur, self._allow_read = 0, True
        self._rest: tuple[NDArray, NDArray, int] | None = None
        self.reset()

    def _sequence(self, part_index: int, num_parts: int, path_imgidx: Any) -> list | None:
        """Return the keys of the images, None where they are read as they come."""
        who = type(self).__name__
        if self.imgrec is None:
            keys = list(self.imglist or ())
        elif self.shuffle or num_parts > 1 or path_imgidx:
            if self.imgidx is None:
                raise AssertedError(f"{who}: records are mixed, or divided into parts, with their index: give path_imgidx")
            keys = self.imgidx
        else:
            return None
        if not 0 <= part_index < num_parts:
            raise AssertedError(f"{who}: part_index={shown(part_index)} is none of {shown(num_parts)} parts")
        size = len(keys) // num_parts
        keys = keys[part_index * size : (part_index + 1) * size] if num_parts > 1 else keys
        if not keys:
            raise OpValueError(f"{who}: there are no images")
        return keys

    # ---- what a class of one's own may change -----------------------------------------------------------------------------
    def check_data_shape(self, data_shape: Any) -> None:
        """Raise for a shape that is not that of images of three channels."""
        if len(data_shape) != 3 or data_shape[0] != 3:
            raise OpValueError(f"{type(self).__name__}: data_shape={shown(data_shape)}; expected three channels, height, width")

    def check_valid_image(self, data: Any) -> None:
        """Raise for what is no image."""
        if len(data[0].shape) == 0:
            raise OpValueError(f"{type(self).__name__}: an image has shape {data.shape}")

    def read_image(self, fname: str) -> bytes:
        """Return what is in a file."""
        return contents(path_of(os.path.join(self.path_root or "", fname), "ImageIter"), "ImageIter")

    def imdecode(self, s: bytes) -> NDArray:
        """Return the image that bytes hold; the error for damaged ones says which image it is."""
        try:
            return imdecode(s)
        except MXNetError as problem:
            raise type(problem)(f"{type(self).__name__}: broken image, {self._where()}: {problem}") from problem

    def _where(self) -> str:
        """Return which image was read last."""
        if self.seq is None:
            return f"number {self.cur - 1} of {self.imgrec.uri!r}"
        key = self.seq[self.cur - 1]
        return f"index {key}" if self.imglist is None else f"filename {self.imglist[key][1]!r}"

    def augmentation_transform(self, data: NDArray) -> NDArray:
        """Return the image that the augmenters make."""
        for step in self.auglist:
            data = step(data)
        return data

    def postprocess_data(self, datum: NDArray) -> NDArray:
        """Return an image as batches have it: channels first."""
        return nd.transpose(datum, axes=(2, 0, 1))

    # ---- what an iterator does ----------------------------------------------------------------------------------------------
    def reset(self) -> None:
        """Go back to the first image; what rolls over stays."""
        if self.seq is not None and self.shuffle:
            random.shuffle(self.seq)
        if self.last_batch_handle != "roll_over" or self._rest is None:
            self._begin()

    def hard_reset(self) -> None:
        """Go back to the first image, and forget what rolls over."""
        self._rest = None
        self.reset()

    def _begin(self) -> None:
        if self.imgrec is not None:
            self.imgrec.reset()
        self.cur, self._allow_read = 0, True

    def next_sample(self) -> tuple[Any, Any]:
        """Return the label and the bytes of the next image."""
        if not self._allow_read:
            raise StopIteration
        if self.seq is None:
            record = self.imgrec.read()
            if record is None:
                if self.last_batch_handle != "discard":
                    self._begin()
                raise StopIteration
            self.cur += 1
            header, image = recordio.unpack(record)
            return header.label, image
        if self.cur >= len(self.seq):
            if self.last_batch_handle != "discard":
                self.cur = 0
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is None:
            label, name = self.imglist[key]  # type: ignore[index]
            return label, self.read_image(name)
        header, image = recordio.unpack(self.imgrec.read_idx(key))
        if self.imglist is None:
            return header.label, image
        if key not in self.imglist:
            raise OpLookupError(f"{type(self).__name__}: record {key} is not in the list of images")
        return self.imglist[key][0], image

    def _fill(self, data: NDArray, labels: NDArray, begin: int = 0) -> int:
        """Write images from a position on; return how many there are, or raise where there are none."""
        while begin < self.batch_size:
            try:
                label, image = self.next_sample()
            except StopIteration:
                break
            pixels = self.imdecode(image)
            self.check_valid_image(pixels)
            begin += self._write(data, labels, begin, pixels, label)
        if not begin:
            raise StopIteration
        return begin

    def _write(self, data: NDArray, labels: NDArray, at: int, pixels: NDArray, label: Any) -> int:
        """Write an image and its labels into a batch; return how many images that are."""
        self._place(data, at, self.augmentation_transform(pixels))
        given = label.asnumpy() if isinstance(label, NDArray) else np.asarray(label)
        if given.size != self.label_width:
            raise OpValueError(f"{type(self).__name__}: {given.size} labels, {self._where()}; label_width={self.label_width}")
        labels[at] = given.reshape(labels.shape[1:])
        return 1

    def _place(self, data: NDArray, at: int, pixels: NDArray) -> None:
        """Write an image into a batch."""
        found = self.postprocess_data(pixels)
        if found.shape != data.shape[1:]:
            raise OpValueError(f"{type(self).__name__}: the augmenters made an image of shape {found.shape}, {self._where()}; "
                               f"expected {data.shape[1:]}")  # fmt: skip
        data[at] = found

    def _empty(self) -> tuple[NDArray, NDArray]:
        return nd.zeros(self.provide_data[0].shape), nd.zeros(self.provide_label[0].shape)

    def next(self) -> DataBatch:
        """Return the next batch."""
        rolled, self._rest = self._rest, None
        data, labels, count = rolled or (*self._empty(), 0)
        if rolled is None:
            count = self._fill(data, labels)
        pad = self.batch_size - count
        if pad:
            if self.last_batch_handle == "discard":
                raise StopIteration
            if self.last_batch_handle == "roll_over" and rolled is None:
                self._rest = data, labels, count
                raise StopIteration
            while count < self.batch_size:  # more than once where there are fewer images than a batch has
                before, count = count, self._fill(data, labels, count)
                if count == before:
                    raise OpValueError(f"{type(self).__name__}: no image is left to fill a batch of {self.batch_size}")
            self._allow_read = self.last_batch_handle != "pad"
        return DataBatch([data], [labels], pad=pad)


def _records(path: Any, index: Any) -> tuple[Any, list | None]:
    """Return the file of records, and the keys of its index."""
    if not path:
        return None, None
    if not index:
        return recordio.MXRecordIO(path, "r"), None
    found = recordio.MXIndexedRecordIO(index, path, "r")
    return found, list(found.keys)


def _listed(path: Any, given: list | None, dtype: str, who: str) -> dict[Any, tuple[np.ndarray, str]] | None:
    """Return labels and path of each image of a list, by key."""
    if path:
        return _list_file(path_of(path, who), dtype, who)
    if not isinstance(given, list):
        return None
    found = {}
    for number, item in enumerate(given, 1):
        try:
            labels = item[:-1] if len(item) > 2 else item[0]
            found[str(number)] = np.array(labels, dtype).ravel(), os.fspath(item[-1])
        except (TypeError, ValueError, IndexError) as problem:
            raise OpValueError(f"{who}: imglist[{number - 1}] is {shown(item)}; expected [label, path]: {problem}") from None
    return found


def _list_file(path: str, dtype: str, who: str) -> dict[Any, tuple[np.ndarray, str]]:
    found = {}
    with reporting(who, path), reading(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                key, *labels, name = line.decode().strip().split("\t")
                found[int(key)] = np.array([float(v) for v in labels], dtype), name
            except ValueError as problem:
                raise OpValueError(f"{who}: {path!r}, line {number}: expected number, labels and path, separated by tabs: "
                                   f"{problem}") from None  # fmt: skip
    return found


__all__ = ["ImageIter"]
