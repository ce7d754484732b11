"""Batches of rows of files: CSV, LibSVM, MNIST.

MXNet reads such files piece by piece in a thread of its own; here they are read once and stay in memory.
"""

from __future__ import annotations

import gzip
import inspect
import io
import math
import os
import struct
import zlib
from array import array
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...opdef.params import REQUIRED, Bad, param_from, parse_shape
from ...support import limits
from ...support.errors import OpTypeError, OpValueError, shown
from ...support.files import path_of, reading, reporting
from .base import DataBatch, DataDesc, MXDataIter, checked_size


def as_written(init: Callable) -> Callable:
    """Let numbers and switches be strings, as those of MXNet's iterators may be: ``batch_size="32"``, ``shuffle="False"``."""
    signature = inspect.signature(init)
    kinds = {"int": int, "bool": bool}
    typed = {
        name: param_from(name, kinds[p.annotation], REQUIRED if p.default is p.empty else p.default, init)
        for name, p in signature.parameters.items()
        if p.annotation in kinds
    }

    @wraps(init)
    def parsed(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        for name in typed.keys() & bound.arguments.keys():
            bound.arguments[name] = _parsed(typed[name].parse, bound.arguments[name], f"{type(self).__name__}: {name}")
        init(*bound.args, **bound.kwargs)

    return parsed


def _parsed(parse: Callable, given: Any, what: str) -> Any:
    try:
        return parse(given)
    except Bad as expected:
        raise OpValueError(f"{what}={shown(given)}; expected {expected}") from None


def _contents(fname: Any, function: str, expected: Callable[[bytes], int] | None = None) -> bytes | bytearray:
    """Return what is in a file, unpacked if its name ends so.

    What a packed file grows to is limited.  `expected` returns by the first bytes how many it has, or raises; one that has more
    is not read further.
    """
    path = path_of(fname, function)
    with reporting(function, path), reading(path) as file:
        if not path.endswith(".gz"):
            return file.read()
        most = limits.dense_bytes(os.fstat(file.fileno()).st_size)
        found, unpacking, size = bytearray(), gzip.GzipFile(fileobj=file), most
        try:
            while len(found) <= size <= most and (part := unpacking.read(1 << 16)):
                size = expected(part) if expected is not None and not found else size
                found += part
        except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
            raise OpValueError(f"{function}: {path!r} is not a whole gzip file: {problem}") from None
        if size > most or (expected is None and len(found) > most):
            raise limits.too_packed(f"{function}: {path!r}", most)
        return found


def read_idx(fname: Any, function: str = "read_idx") -> np.ndarray:
    """Return the array of unsigned bytes of a file in MNIST's format (idx), which may be packed (``.gz``)."""

    def shape_of(head: bytes) -> tuple[int, ...]:
        dims = head[3] if len(head) > 3 else 0
        if len(head) < 4 + 4 * dims or head[:3] != b"\0\0\x08":
            raise OpValueError(f"{function}: {fname!r} is not an idx file of bytes, as MNIST's files are")
        return struct.unpack(f">{dims}I", head[4 : 4 + 4 * dims])

    data = _contents(fname, function, lambda head: 4 + 4 * len(shape := shape_of(head)) + math.prod(shape))
    shape = shape_of(data)
    start = 4 + 4 * len(shape)
    if len(data) != start + math.prod(shape) or len(shape) > 32:
        raise OpValueError(f"{function}: {fname!r} has {len(data) - start} bytes for an array of shape {shape}")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


class RowsIter(MXDataIter):
    """Batches of rows in memory.

    Parameters
    ----------
    data, label : array or SciPy matrix
    batch_size : int
    last : {'round', 'pad', 'discard'}
        Fill the last batch up with the first rows; after ``'round'``, the next epoch goes on behind these.
    """

    def __init__(self, data: Any, label: Any, batch_size: int, last: str, data_name: str, label_name: str):
        super().__init__(checked_size(batch_size, type(self).__name__))
        if data.shape[0] == 0:
            raise OpValueError(f"{type(self).__name__}: there are no rows")
        self._data, self._label, self._last = data, label, last
        self._at = self._next = 0  # the batch's first row, the next one's
        names = ((data_name, data), (label_name, label))
        self.provide_data, self.provide_label = (
            [DataDesc(name, (batch_size, *a.shape[1:]), a.dtype.type)] for name, a in names
        )

    def reset(self) -> None:
        rows = self._data.shape[0]
        self._next = self._next - rows if self._last == "round" and self._next > rows else 0

    def iter_next(self) -> bool:
        rows = self._data.shape[0]
        if self._next >= rows or (self._last == "discard" and self._next + self.batch_size > rows):
            return False
        self._at, self._next = self._next, self._next + self.batch_size
        return True

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())

    def getindex(self) -> np.ndarray:
        return np.arange(self._at, self._at + self.batch_size) % self._data.shape[0]

    def getpad(self) -> int:
        return max(0, self._at + self.batch_size - self._data.shape[0])

    def getdata(self) -> Any:
        return self._part(self._data)  # no list, as of MXNet's iterators over files

    def getlabel(self) -> Any:
        return self._part(self._label)

    def _part(self, rows: Any) -> Any:
        found = rows[self.getindex()]
        return nd.array(found, dtype=found.dtype) if isinstance(found, np.ndarray) else nd.sparse.csr_matrix(found)


def _shape(given: Any, what: str) -> tuple[int, ...]:
    sizes = _parsed(parse_shape, given, what)
    if not all(n is not None and n > 0 for n in sizes):
        raise OpValueError(f"{what}={shown(given)}; expected positive sizes")
    return tuple(sizes)


class CSVIter(RowsIter):
    """Batches of the rows of a CSV file.

    Parameters
    ----------
    data_csv : str
        The name of the file: numbers between commas, no heading.
    data_shape : tuple of int
        Of a row, which has as many numbers.
    label_csv : str, optional
        Labels, in another file; without, they are 0.
    label_shape : tuple of int
    batch_size : int
    round_batch : bool
        Fill the last batch up with the first rows, and go on behind them in the next epoch.
    dtype : str, optional
        ``'float32'`` (the default), ``'int32'`` or ``'int64'``.
    data_name, label_name : str
    **kwargs
        What says how MXNet reads ahead.

    Examples
    --------
    >>> import os, tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "x.csv")
    >>> with open(name, "w") as file:
    ...     _ = file.write("1,2\\n3,4\\n5,6\\n")
    >>> batches = mx.io.CSVIter(data_csv=name, data_shape=(2,), batch_size=2)
    >>> [(batch.data[0].asnumpy().tolist(), batch.pad) for batch in batches]
    [([[1.0, 2.0], [3.0, 4.0]], 0), ([[5.0, 6.0], [1.0, 2.0]], 1)]
    """

    @as_written
    def __init__(self, data_csv: Any, data_shape: Any, label_csv: Any = "NULL", label_shape: Any = (1,),
                 batch_size: int = 1, round_batch: bool = True, dtype: Any = None, data_name: str = "data",
                 label_name: str = "softmax_label", **kwargs: Any):  # fmt: skip
        kind = np.dtype(dtype or "float32")
        if kind.name not in ("float32", "int32", "int64"):
            raise OpTypeError(f"CSVIter: dtype={shown(dtype)} is none of float32, int32, int64")
        data = _csv(data_csv, _shape(data_shape, "CSVIter: data_shape"), kind)
        shape = _shape(label_shape, "CSVIter: label_shape")
        named = label_csv not in (None, "", "NULL")
        label = _csv(label_csv, shape, kind) if named else np.zeros((len(data), *shape), kind)
        if len(label) != len(data):
            raise OpValueError(f"CSVIter: {data_csv!r} has {len(data)} rows, {label_csv!r} has {len(label)}")
        label = label[:, 0] if label.shape[1:] == (1,) else label
        super().__init__(data, label, batch_size, "round" if round_batch else "pad", data_name, label_name)


def _csv(fname: Any, shape: tuple[int, ...], kind: np.dtype) -> np.ndarray:
    data = _contents(fname, "CSVIter")
    if not data.strip():
        raise OpValueError(f"CSVIter: {fname!r} is empty")
    try:
        rows = _numbers(data, kind)
    except (ValueError, OverflowError) as problem:
        raise OpValueError(f"CSVIter: {fname!r}: {problem}") from None
    if rows.shape[1] != math.prod(shape):
        raise OpValueError(f"CSVIter: the rows of {fname!r} have {rows.shape[1]} numbers, which do not make shape {shape}")
    return rows.reshape(-1, *shape)


def _numbers(data: bytes, kind: np.dtype) -> np.ndarray:
    """Return the numbers of a CSV file; whole ones may be written as `np.savetxt` does: ``3.0e+00``."""
    read = kind  # NumPy 2.0 would cut 1.5 to 1, and 300 to 44
    if kind.kind in "iu":
        read = np.dtype(np.float64 if any(mark in data for mark in b".eEnN") else np.int64)
    rows = np.loadtxt(io.BytesIO(data), read, delimiter=",", ndmin=2, comments=None)
    with np.errstate(invalid="ignore"):  # of what is no number or too large, which is not equal then
        found = rows.astype(kind, copy=False)
    if read != kind and (found != rows).any():
        raise ValueError(f"{rows[found != rows][0]} is no {kind}")
    return found


class LibSVMIter(RowsIter):
    """Batches of the rows of a LibSVM file (``label column:value column:value``), as csr matrices.

    Parameters
    ----------
    data_libsvm : str
        The name of the file; columns count from 0.
    data_shape : tuple of int
        The number of columns.
    label_libsvm : str, optional
        Labels in another file, of the same form; without, they are the numbers at the beginning of each row.
    label_shape : tuple of int
        The number of columns of that file.
    batch_size : int
    round_batch : bool
        False is refused, as MXNet does: the last batch is filled up with the first rows, which the next epoch leaves out.
    num_parts, part_index : int
        Into how many parts the rows are divided, and which one is meant.
    data_name, label_name : str
    **kwargs
        What says how MXNet reads ahead.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = pathlib.Path(folder, "rows.txt")
    ...     _ = rows.write_text("1 0:0.5 2:2\\n-1 1:3\\n")
    ...     batch = next(mx.io.LibSVMIter(data_libsvm=rows, data_shape=(3,), batch_size=2))
    >>> batch.data[0].stype, batch.data[0].asnumpy().tolist(), batch.label[0].asnumpy().tolist()
    ('csr', [[0.5, 0.0, 2.0], [0.0, 3.0, 0.0]], [1.0, -1.0])
    """

    @as_written
    def __init__(self, data_libsvm: Any, data_shape: Any, label_libsvm: Any = "NULL", label_shape: Any = (1,),
                 batch_size: int = 1, round_batch: bool = True, num_parts: int = 1, part_index: int = 0,
                 data_name: str = "data", label_name: str = "softmax_label", **kwargs: Any):  # fmt: skip
        if not round_batch:
            raise OpTypeError("LibSVMIter: round_batch=False is not supported, nor by MXNet; batch.pad says what fills up")
        data, label = _libsvm(data_libsvm, _columns(data_shape, "LibSVMIter: data_shape"))
        if label_libsvm not in (None, "", "NULL"):
            label = _libsvm(label_libsvm, _columns(label_shape, "LibSVMIter: label_shape"))[0]
        if label.shape[0] != data.shape[0]:
            raise OpValueError(f"LibSVMIter: {data_libsvm!r} has {data.shape[0]} rows, {label_libsvm!r} {label.shape[0]}")
        part = _part(data.shape[0], num_parts, part_index, "LibSVMIter")
        super().__init__(data[part], label[part], batch_size, "round", data_name, label_name)


def _columns(given: Any, what: str) -> int:
    """Return a number of columns, which is given as a shape of one dimension."""
    shape = _shape(given, what)
    if len(shape) != 1:
        raise OpValueError(f"{what}={shown(given)}; expected one positive size, such as (100,)")
    return shape[0]


def _libsvm(fname: Any, width: int) -> tuple[Any, np.ndarray]:
    """Return the matrix and the labels of a file, whose lines may end with a remark (``#``)."""
    from scipy.sparse import csr_matrix

    values, columns, ends, labels = array("f"), array("q"), array("q", [0]), array("f")
    text = _contents(fname, "LibSVMIter").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for number, line in enumerate(io.BytesIO(text), 1):
        words = line.partition(b"#")[0].split()
        if not words:
            continue
        try:
            labels.append(float(words[0]))
            pairs = [word.split(b":") for word in words[1:]]
            columns.extend(int(column) for column, _ in pairs)
            values.extend(float(value) for _, value in pairs)
        except (ValueError, OverflowError) as problem:
            raise OpValueError(f"LibSVMIter: {fname!r}, line {number}: {problem}") from None
        if any(not 0 <= c < width for c in columns[ends[-1] :]):
            raise OpValueError(
                f"LibSVMIter: {fname!r}, line {number}: a column is beyond 0...{width - 1}, which the shape says"
            )
        ends.append(len(values))
    if not labels:
        raise OpValueError(f"LibSVMIter: {fname!r} has no rows")
    arrays = (np.asarray(values), np.asarray(columns), np.asarray(ends))
    return csr_matrix(arrays, shape=(len(labels), width)), np.array(labels)


def _part(rows: int, parts: int, index: int, function: str) -> slice:
    if not 0 <= index < parts:
        raise OpValueError(f"{function}: part_index={shown(index)} is none of {shown(parts)} parts")
    size = rows // parts
    return slice(index * size, (index + 1) * size if parts > 1 else rows)


class MNISTIter(RowsIter):
    """Batches of images and labels in MNIST's files; what does not fill a batch is left out.

    Parameters
    ----------
    image, label : str
        The names of the files, which may be packed (``.gz``).
    batch_size : int
    shuffle : bool
        Mix the images, once.
    flat : bool
        Images as vectors, instead of ``(1, height, width)``.
    seed : int
        Of the mixing.
    num_parts, part_index : int
        Into how many parts the images are divided, and which one is meant.
    data_name, label_name : str
    **kwargs
        What else MXNet takes: how it reads ahead, whether it says so.
    """

    @as_written
    def __init__(self, image: Any = "./train-images-idx3-ubyte", label: Any = "./train-labels-idx1-ubyte",
                 batch_size: int = 128, shuffle: bool = True, flat: bool = False, seed: int = 0, num_parts: int = 1,
                 part_index: int = 0, data_name: str = "data", label_name: str = "softmax_label", **kwargs: Any):  # fmt: skip
        images, labels = read_idx(image, "MNISTIter"), read_idx(label, "MNISTIter")
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise OpValueError(f"MNISTIter: {image!r} has shape {images.shape}, {label!r} {labels.shape}")
        part = _part(len(images), num_parts, part_index, "MNISTIter")
        order: Sequence[int] | slice = np.random.RandomState(seed).permutation(len(images))[part] if shuffle else part  # type: ignore[assignment]
        data = np.multiply(images[order], np.float32(1 / 256), dtype="float32")
        data = data.reshape(len(data), -1) if flat else data[:, None]
        if batch_size > len(data):
            raise OpValueError(f"MNISTIter: batch_size={batch_size} for {len(data)} images")
        super().__init__(data, labels[order].astype("float32"), batch_size, "discard", data_name, label_name)


__all__ = ["CSVIter", "LibSVMIter", "MNISTIter", "RowsIter", "read_idx"]
