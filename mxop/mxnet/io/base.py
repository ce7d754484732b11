"""What iterators of data give: batches and their description; an iterator of another length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ...ndarray import NDArray
from ...support.errors import OpTypeError, OpValueError, all_end_at_caller, shown


class _NameAndShape(NamedTuple):
    name: str
    shape: tuple[int, ...]


class DataDesc(_NameAndShape):
    """Name, shape, type and layout of an array in each batch; a tuple of the first two.

    Examples
    --------
    >>> DataDesc("data", (2, 3))
    DataDesc[data,(2, 3),<class 'numpy.float32'>,NCHW]
    """

    dtype: Any
    layout: str

    def __new__(cls, name: str, shape: tuple[int, ...], dtype: Any = np.float32, layout: str = "NCHW") -> DataDesc:
        made = super().__new__(cls, name, shape)
        made.dtype, made.layout = dtype, layout
        return made

    def __getnewargs__(self) -> tuple:  # type: ignore[override]
        return self.name, self.shape, self.dtype, self.layout

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Return the axis of the batch in a layout, -1 where it has none."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Iterable[Sequence], types: Iterable[Sequence] | None) -> list[DataDesc]:
        """Return descriptions from pairs of name and shape, and of name and type."""
        found = dict(types or ())
        return [DataDesc(name, shape, found[name]) if types is not None else DataDesc(name, shape) for name, shape in shapes]


class DataBatch:
    """Data and labels of a batch, lists of arrays.

    Parameters
    ----------
    data, label : list of NDArray, or None
    pad : int, optional
        How many elements at the end only fill the batch up.
    index : array, optional
        Which elements these are.
    bucket_key : object, optional
        Of which size the net for the batch is.
    provide_data, provide_label : list of DataDesc, optional
        Describe the arrays.
    """

    def __init__(self, data: Sequence | None, label: Sequence | None = None, pad: int | None = None, index: Any = None,
                 bucket_key: Any = None, provide_data: Any = None, provide_label: Any = None):  # fmt: skip
        for what, value in (("data", data), ("label", label)):
            if value is not None and not isinstance(value, (list, tuple)):
                raise OpTypeError(f"DataBatch: {what} is a {type(value).__name__}; expected a list of NDArrays")
        self.data: list[NDArray] | Any = data  # Any, so that what may be None can be indexed
        self.label: list[NDArray] | Any = label
        self.pad: int | Any = pad
        self.provide_data: list[DataDesc] | Any = provide_data
        self.provide_label: list[DataDesc] | Any = provide_label
        self.index, self.bucket_key = index, bucket_key

    def __str__(self) -> str:
        data, label = ([x.shape for x in arrays] if arrays else None for arrays in (self.data, self.label))
        return f"{type(self).__name__}: data shapes: {data} label shapes: {label}"


def checked_size(batch_size: Any, function: str) -> int:
    """Return the size of a batch, or raise: of nothing, batches would not end."""
    if not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise OpValueError(f"{function}: batch_size={shown(batch_size)}; expected a positive integer")
    return int(batch_size)


class DataIter:
    """Base of iterators; derive, and define ``iter_next`` and the methods that give its parts, or ``next``.

    Parameters
    ----------
    batch_size : int
    """

    provide_data: Any  # a list of DataDesc; Any, so that a class may have properties of these names
    provide_label: Any

    def __init__(self, batch_size: int = 0):
        self.batch_size = batch_size

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("mxop."):
            all_end_at_caller(cls)

    def __iter__(self) -> DataIter:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def reset(self) -> None:
        """Go back to the first batch."""

    def next(self) -> DataBatch:
        """Return the next batch."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def iter_next(self) -> bool:
        """Go to the next batch; return False where there is none."""
        return False

    def getdata(self) -> Any:
        """Return the batch's data."""

    def getlabel(self) -> Any:
        """Return the batch's labels."""

    def getindex(self) -> Any:
        """Return which elements the batch has."""

    def getpad(self) -> Any:
        """Return how many elements only fill the batch up."""


class MXDataIter(DataIter):
    """What iterators over files derive from: programs ask ``isinstance(data, mx.io.MXDataIter)``."""


class Current(DataIter):
    """An iterator whose parts are those of ``current_batch``."""

    current_batch: Any = None

    def getdata(self) -> Any:
        return self.current_batch.data

    def getlabel(self) -> Any:
        return self.current_batch.label

    def getindex(self) -> Any:
        return self.current_batch.index

    def getpad(self) -> Any:
        return self.current_batch.pad


class ResizeIter(Current):
    """Give `size` batches of another iterator, which begins again where it ends.

    Parameters
    ----------
    data_iter : DataIter
    size : int
    reset_internal : bool
        Whether ``reset`` resets the other iterator, too.
    """

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True):
        super().__init__(data_iter.batch_size)
        self.data_iter, self.size, self.reset_internal = data_iter, size, reset_internal
        self.cur = 0
        for name in ("provide_data", "provide_label", "default_bucket_key"):
            if hasattr(data_iter, name):
                setattr(self, name, getattr(data_iter, name))

    def reset(self) -> None:
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        if self.cur == self.size:
            return False
        try:
            self.current_batch = self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            self.current_batch = self.data_iter.next()
        self.cur += 1
        return True


__all__ = ["Current", "DataBatch", "DataDesc", "DataIter", "MXDataIter", "ResizeIter"]
