"""Batches that other threads make ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ...support.errors import OpValueError
from .base import Current, DataBatch, DataDesc, DataIter


class PrefetchingIter(Current):
    """Give the batches of one iterator, or those of several side by side, and make the next ones in the meantime.

    Parameters
    ----------
    iters : DataIter or list of DataIter
    rename_data, rename_label : list of dict of str to str, optional
        Other names for the arrays of each iterator.
    """

    def __init__(self, iters: Any, rename_data: Sequence[Mapping[str, str]] | None = None,
                 rename_label: Sequence[Mapping[str, str]] | None = None):  # fmt: skip
        self.iters: list[DataIter] = iters if isinstance(iters, list) else [iters]
        if not self.iters:
            raise OpValueError("PrefetchingIter: there is no iterator")
        self.n_iter, self.rename_data, self.rename_label = len(self.iters), rename_data, rename_label
        super().__init__(self.provide_data[0][1][0])
        self._threads = ThreadPoolExecutor(self.n_iter, "mxop-prefetch")
        self._waiting: list[Future] = []
        self._start()

    def _start(self) -> None:
        self._waiting = [self._threads.submit(_next, one) for one in self.iters]

    def _described(self, which: str, renamed: Sequence[Mapping[str, str]] | None) -> list[DataDesc]:
        found = []
        for at, one in enumerate(self.iters):
            for entry in getattr(one, which):
                desc = entry if isinstance(entry, DataDesc) else DataDesc(*entry)
                name = renamed[at][desc.name] if renamed is not None else desc.name
                found.append(DataDesc(name, desc.shape, desc.dtype, desc.layout))
        return found

    @property
    def provide_data(self) -> list[DataDesc]:
        """What the data of each batch are."""
        return self._described("provide_data", self.rename_data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """What the labels of each batch are."""
        return self._described("provide_label", self.rename_label)

    def reset(self) -> None:
        for future in self._waiting:
            future.exception()  # no iterator may still be at work
        for one in self.iters:
            one.reset()
        self._start()

    def iter_next(self) -> bool:
        found = [future.result() for future in self._waiting]
        over = [batch is None for batch in found]
        if any(over):
            if not all(over):
                raise OpValueError("PrefetchingIter: the iterators do not have equally many batches")
            return False
        if len({batch.pad for batch in found}) > 1:
            raise OpValueError("PrefetchingIter: the iterators fill their batches up differently")
        self._start()
        self.current_batch = DataBatch(
            [array for batch in found for array in batch.data], [array for batch in found for array in batch.label or ()],
            found[0].pad, found[0].index, provide_data=self.provide_data, provide_label=self.provide_label,
        )  # fmt: skip
        return True

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return self.current_batch


def _next(one: DataIter) -> DataBatch | None:
    try:
        return one.next()
    except StopIteration:
        return None


__all__ = ["PrefetchingIter"]
