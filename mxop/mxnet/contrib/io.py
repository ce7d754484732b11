"""``mx.contrib.io``: a loader of batches as an iterator of ``mx.io``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import ndarray as nd
from ...support.errors import OpTypeError, OpValueError, shown
from ...support.missing import hooks
from ..io import DataDesc, DataIter


class DataLoaderIter(DataIter):
    """The pairs (data, label) of a loader as batches; the last one is filled up with zeros.

    Parameters
    ----------
    loader : iterable
        Gives pairs of arrays, whenever it is iterated over.
    data_name, label_name : str
        What the arguments of the network are called.
    dtype : str or type

    Examples
    --------
    >>> loader = [(mx.nd.ones((2, 3)), mx.nd.zeros(2)), (mx.nd.ones((1, 3)), mx.nd.zeros(1))]
    >>> for batch in DataLoaderIter(loader):
    ...     print(batch.data[0].shape, batch.pad)
    (2, 3) 0
    (2, 3) 1
    """

    _current_batch: Any

    def __init__(self, loader: Iterable, data_name: str = "data", label_name: str = "softmax_label", dtype: Any = "float32"):
        super().__init__()
        self._loader, self.dtype = loader, dtype
        self.reset()
        if not self.iter_next():
            raise OpValueError("DataLoaderIter: the loader gives no batch")
        data, label = self._current_batch
        self.batch_size = data.shape[0]
        self.provide_data = [DataDesc(data_name, data.shape, dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, dtype)]
        self.reset()

    def reset(self) -> None:
        self._iter, self._current_batch = iter(self._loader), None

    def iter_next(self) -> bool:
        batch = next(self._iter, None)
        if batch is not None and (not isinstance(batch, (list, tuple)) or len(batch) != 2):
            raise OpTypeError(f"DataLoaderIter: the loader gives {shown(batch)}; expected (data, label)")
        self._current_batch = batch
        return batch is not None

    def _whole(self, array: Any) -> list:
        found = array.astype(self.dtype) if isinstance(array, nd.NDArray) else nd.array(array, dtype=self.dtype)
        if not self.getpad():
            return [found]
        return [nd.concat(found, nd.zeros((self.getpad(), *found.shape[1:]), dtype=self.dtype), dim=0)]

    def getdata(self) -> list:
        return self._whole(self._current_batch[0])

    def getlabel(self) -> list:
        return self._whole(self._current_batch[1])

    def getpad(self) -> int:
        return self.batch_size - self._current_batch[0].shape[0]


__all__ = ["DataLoaderIter"]

__getattr__, __dir__ = hooks(globals(), __all__)
