"""Batches of a text file whose lines are ``label column:value column:value ...``, as csr.

May import :mod:`.base`, :mod:`mxop.files`, :mod:`mxop.ndarray`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..errors import OpTypeError, OpValueError, translated
from ..files import path_of, reporting
from .base import DataDesc, DataIter


def _width(shape: Any, what: str) -> int:
    """Return the number of columns, which is given as a shape of one dimension."""
    with translated(f"LibSVMIter: {what}"):
        found = tuple(map(operator.index, shape)) if isinstance(shape, (tuple, list)) else (operator.index(shape),)
    if len(found) != 1 or found[0] < 1:
        raise OpValueError(f"LibSVMIter: {what}={shape}; expected one positive size, such as (100,)")
    return found[0]


def _read(path: Any, width: int, what: str) -> tuple[np.ndarray, Any]:
    """Return the labels of a file, and its rows as csr."""
    name = path_of(path, f"LibSVMIter: {what}")
    with reporting("LibSVMIter", name), open(name, encoding="utf-8") as lines:
        return _parsed(lines, width, str(name))


def _parsed(lines: Iterable[str], width: int, name: str) -> tuple[np.ndarray, Any]:
    labels: list[float] = []
    columns: list[int] = []
    values: list[float] = []
    starts = [0]
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            labels.append(float(words[0].partition(":")[0]))
            for word in words[1:]:
                column, _, value = word.partition(":")
                columns.append(int(column))
                values.append(float(value))
        except ValueError:
            raise OpValueError(f"{name}, line {number}: {line.strip()!r} is not 'label column:value ...'") from None
        if len(columns) > starts[-1] and not 0 <= min(columns[starts[-1] :]) <= max(columns[starts[-1] :]) < width:
            raise OpValueError(f"{name}, line {number}: {line.strip()!r} has a column beyond 0...{width - 1}")
        starts.append(len(columns))
    made = nd.sparse.csr_matrix((np.array(values, "float32"), columns, starts), shape=(len(labels), width))
    return np.array(labels, "float32"), made


class LibSVMIter(DataIter):
    """Batches of the rows of a file in LibSVM's format; columns count from 0.

    The last batch is filled up with the first rows, which the next epoch leaves out.

    Parameters
    ----------
    data_libsvm : path
        Lines of a label, columns and values: ``1.0 0:0.5 7:-2``.
    data_shape : tuple of int
        ``(columns,)``.
    batch_size : int
    label_libsvm : path, optional
        A second file, whose rows are the labels, csr too, in place of the first words in the first file.
    label_shape : tuple of int, optional
        The columns of the second file.
    num_parts, part_index : int
        Read one of several parts of equal size.
    data_name, label_name : str
    round_batch : bool
        False is refused, as MXNet does.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mxop as mx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = pathlib.Path(folder, "rows.txt")
    ...     _ = rows.write_text("1 0:0.5 2:2\\n-1 1:3\\n")
    ...     batch = next(mx.io.LibSVMIter(data_libsvm=rows, data_shape=(3,), batch_size=2))
    >>> batch.data[0].stype, batch.data[0].asnumpy().tolist(), batch.label[0].asnumpy().tolist()
    ('csr', [[0.5, 0.0, 2.0], [0.0, 3.0, 0.0]], [1.0, -1.0])
    """

    def __init__(self, data_libsvm: Any, data_shape: Any, batch_size: int, label_libsvm: Any = None, label_shape: Any = None,
                 num_parts: int = 1, part_index: int = 0, data_name: str = "data", label_name: str = "softmax_label",
                 round_batch: bool = True):  # fmt: skip
        with translated("LibSVMIter: batch_size, num_parts, part_index"):
            batch_size, parts, part = map(operator.index, (batch_size, num_parts, part_index))
        if batch_size < 1 or not 0 <= part < parts:
            given = f"batch_size={batch_size}, num_parts={parts}, part_index={part}"
            raise OpValueError(f"LibSVMIter: {given}; expected a positive size, and a part from 0 to num_parts - 1")
        if not round_batch:
            raise OpTypeError(
                "LibSVMIter: round_batch=False is not supported, nor by MXNet; batch.pad says what fills up"
            )
        super().__init__(batch_size)
        labels, data = _read(data_libsvm, _width(data_shape, "data_shape"), "data_libsvm")
        label: Any = nd.array(labels)
        if label_libsvm is not None:
            label = _read(label_libsvm, _width(label_shape, "label_shape"), "label_libsvm")[1]
            if len(label) != len(data):
                raise OpValueError(f"LibSVMIter: {data_libsvm} has {len(data)} rows and {label_libsvm} {len(label)}")
        rows = slice(len(data) * part // parts, len(data) * (part + 1) // parts)
        self.data, self.label = data[rows], label[rows]
        if not len(self.data):
            raise OpValueError(f"LibSVMIter: {data_libsvm} has {len(data)} rows, and part {part} of {parts} none")
        self.data_name, self.label_name = data_name, label_name
        self.cursor = -batch_size

    @property
    def provide_data(self) -> list[DataDesc]:
        """What the data of each batch are."""
        return [DataDesc(self.data_name, (self.batch_size, *self.data.shape[1:]), self.data.dtype)]

    @property
    def provide_label(self) -> list[DataDesc]:
        """What the labels of each batch are."""
        return [DataDesc(self.label_name, (self.batch_size, *self.label.shape[1:]), self.label.dtype)]

    def reset(self) -> None:
        over = max(self.cursor - len(self.data), 0)  # rows that filled the last batch up
        self.cursor = over % len(self.data) - self.batch_size

    def iter_next(self) -> bool:
        self.cursor += self.batch_size
        return self.cursor < len(self.data)

    def getindex(self) -> np.ndarray:
        return (self.cursor + np.arange(self.batch_size)) % len(self.data)

    def getdata(self) -> list[Any]:
        return [nd.take(self.data, nd.array(self.getindex(), dtype="int64"))]

    def getlabel(self) -> list[Any]:
        return [nd.take(self.label, nd.array(self.getindex(), dtype="int64"))]

    def getpad(self) -> int:
        return max(self.cursor + self.batch_size - len(self.data), 0)


__all__ = ["LibSVMIter"]
