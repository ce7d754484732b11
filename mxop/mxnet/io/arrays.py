"""Batches of arrays in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...ndarray import NDArray
from ...support.errors import MXNetError, OpTypeError, OpValueError, UnsupportedError, shown, warn
from .base import DataBatch, DataDesc, DataIter, checked_size

_LAST = ("pad", "discard", "roll_over")


def _named(data: Any, name: str, empty: bool) -> list[tuple[str, NDArray]]:
    """Return arrays with their names, sorted by these."""
    if data is None and empty:
        return []
    if isinstance(data, (np.ndarray, NDArray, nd.sparse.BaseSparseNDArray)) or hasattr(type(data), "tocsr"):  # SciPy's
        data = [data]
    if isinstance(data, (list, tuple)) and (data or empty):
        many = len(data) > 1
        data = {f"_{at}_{name}" if many else name: array for at, array in enumerate(data)}
    if not isinstance(data, Mapping) or (not data and not empty):
        raise OpTypeError(f"NDArrayIter: {name} is {shown(data)}; expected an array, a list of arrays or a dict of them")
    found = []
    for key, array in sorted(data.items()):
        try:
            kept = isinstance(array, (NDArray, nd.sparse.CSRNDArray))
            found.append((key, array if kept else nd.array(array)))
        except MXNetError as problem:
            raise OpTypeError(f"NDArrayIter: {key!r} is not an array: {problem}") from problem
        if not found[-1][1].shape:
            raise OpTypeError(f"NDArrayIter: {key!r} is {shown(array)}, a number; expected an array of examples")
    return found


class NDArrayIter(DataIter):
    """Batches of arrays.

    Parameters
    ----------
    data : array, list or dict of arrays
        NDArrays, NumPy arrays, or csr matrices, whose batches are csr, too; their elements lie along the batch axis of
        `layout`.  Those after the first array may be longer; what they have more is left out.
    label : array, list or dict of arrays, optional
    batch_size : int
    shuffle : bool
        Mix the elements before each epoch, by NumPy's global generator.
    last_batch_handle : {'pad', 'discard', 'roll_over'}
        Fill a last batch that is short up with the first elements, leave it out, or keep it for the next epoch.
    data_name, label_name : str
        Names of arrays that come without.
    layout : str
        Its ``N`` is the batch axis.

    Examples
    --------
    >>> batches = mx.io.NDArrayIter(mx.nd.arange(5), mx.nd.arange(5), batch_size=3)
    >>> [(batch.data[0].asnumpy().tolist(), batch.pad) for batch in batches]
    [([0.0, 1.0, 2.0], 0), ([3.0, 4.0, 0.0], 1)]
    """

    def __init__(self, data: Any, label: Any = None, batch_size: int = 1, shuffle: bool = False,
                 last_batch_handle: str = "pad", data_name: str = "data", label_name: str = "softmax_label",
                 layout: str = "NCHW"):  # fmt: skip
        super().__init__(checked_size(batch_size, "NDArrayIter"))
        if last_batch_handle not in _LAST:
            raise OpValueError(f"NDArrayIter: last_batch_handle={shown(last_batch_handle)} is none of {', '.join(_LAST)}")
        self.data, self.label = _named(data, data_name, False), _named(label, label_name, True)
        if last_batch_handle != "discard" and any(a.stype == "csr" for _, a in (*self.data, *self.label)):
            raise UnsupportedError(f"NDArrayIter: last_batch_handle={last_batch_handle!r} must be 'discard' for csr matrices")
        self.layout, self._axis = layout, max(layout.find("N"), 0)
        self.num_data = self._counted()
        self.idx = np.arange(self.num_data)
        self.shuffle, self.last_batch_handle = shuffle, last_batch_handle
        self._kept: tuple[list, list] | None = None  # a short last batch, for the next epoch
        self.cursor = -self.batch_size
        self.reset()

    def _counted(self) -> int:
        """Return how many elements the first array has; all others need as many."""
        sizes = {name: a.shape[self._axis] if self._axis < a.ndim else 0 for name, a in [*self.data, *self.label]}
        n, text = next(iter(sizes.values())), f"different numbers of elements along axis {self._axis}: {sizes}"
        if min(sizes.values()) < n:
            raise OpValueError(f"NDArrayIter: the arrays have {text}")
        if max(sizes.values()) > n:
            warn(f"NDArrayIter: the arrays have {text}; the first {n} of each are used")
        return n

    @property
    def data_list(self) -> list[NDArray]:
        """All arrays, data first."""
        return [array for _, array in [*self.data, *self.label]]

    @property
    def num_source(self) -> int:
        """How many arrays there are."""
        return len(self.data) + len(self.label)

    @property
    def provide_data(self) -> list[DataDesc]:
        """What the data of each batch are."""
        return self._described(self.data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """What the labels of each batch are."""
        return self._described(self.label)

    def _described(self, arrays: list[tuple[str, NDArray]]) -> list[DataDesc]:
        at, size = self._axis, self.batch_size
        return [DataDesc(name, (*a.shape[:at], size, *a.shape[at + 1 :]), a.dtype, layout=self.layout) for name, a in arrays]

    # ---- where it stands ----------------------------------------------------------------------------------------------
    def hard_reset(self) -> None:
        """Go back to the first element, also of a batch that was kept."""
        self._mix()
        self.cursor, self._kept = -self.batch_size, None

    def reset(self) -> None:
        self._mix()
        short = self.num_data - self.batch_size < self.cursor < self.num_data
        if self.last_batch_handle == "roll_over" and short:
            self.cursor -= self.num_data + self.batch_size
        else:
            self.cursor = -self.batch_size

    def _mix(self) -> None:
        if self.shuffle:
            np.random.shuffle(self.idx)
            self.data, self.label = ([(name, self._in_order(a)) for name, a in arrays] for arrays in (self.data, self.label))

    def _in_order(self, array: NDArray) -> NDArray:
        """Return an array's elements as they are mixed."""
        if array.stype == "csr":
            return nd.take(array, nd.array(self.idx, dtype="int64"), axis=self._axis)
        return nd.array(array.asnumpy().take(self.idx, self._axis), ctx=array.context, dtype=array.dtype)

    def iter_next(self) -> bool:
        self.cursor += self.batch_size
        return self.cursor < self.num_data

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        data, label = self.getdata(), self.getlabel()
        if data[0].shape[self._axis] != self.batch_size:
            self._kept = (data, label) if self.last_batch_handle == "roll_over" else None
            raise StopIteration
        if self.cursor < 0:
            self._kept = None
        return DataBatch(data, label, self.getpad(), None)

    # ---- a batch ------------------------------------------------------------------------------------------------------
    def getdata(self) -> list[NDArray]:
        return self._batch(self.data, 0)

    def getlabel(self) -> list[NDArray]:
        return self._batch(self.label, 1)

    def getpad(self) -> int:
        end = self.cursor + self.batch_size
        if self.last_batch_handle == "pad" and end > self.num_data:
            return end - self.num_data
        return -self.cursor if self.last_batch_handle == "roll_over" and -self.batch_size < self.cursor < 0 else 0

    def _batch(self, arrays: list[tuple[str, NDArray]], which: int) -> list[NDArray]:
        if self.cursor >= self.num_data:
            raise OpValueError("NDArrayIter: the epoch is over; call reset()")
        end = self.cursor + self.batch_size
        if -self.batch_size < self.cursor < 0:
            if self._kept is None:
                raise OpValueError("NDArrayIter: no batch was kept for this epoch; call hard_reset()")
            return self._joined(self._kept[which], self._part(arrays, 0, end))
        parts = [self._part(arrays, self.cursor, min(end, self.num_data))]
        missing = end - self.num_data if self.last_batch_handle == "pad" else 0
        while missing > 0:
            parts.append(self._part(arrays, 0, min(missing, self.num_data)))
            missing -= self.num_data
        return self._joined(*parts)

    def _part(self, arrays: list[tuple[str, NDArray]], begin: int, end: int) -> list[NDArray]:
        return [
            a[begin:end] if a.stype == "csr" else nd.slice_axis(a, axis=self._axis, begin=begin, end=end) for _, a in arrays
        ]

    def _joined(self, *parts: list[NDArray]) -> list[NDArray]:
        return [nd.concat(*arrays, dim=self._axis) if len(arrays) > 1 else arrays[0] for arrays in zip(*parts)]


__all__ = ["NDArrayIter"]
