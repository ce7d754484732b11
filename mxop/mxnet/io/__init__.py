"""``mx.io``: data in batches."""

from importlib import import_module
from typing import Any

from ...support.missing import attribute, names_shown
from .arrays import NDArrayIter
from .base import DataBatch, DataDesc, DataIter, MXDataIter, ResizeIter
from .files import CSVIter, LibSVMIter, MNISTIter
from .prefetching import PrefetchingIter

__all__ = ["CSVIter", "DataBatch", "DataDesc", "DataIter", "ImageDetRecordIter", "ImageRecordIter", "LibSVMIter", "MNISTIter",
           "MXDataIter", "NDArrayIter", "PrefetchingIter", "ResizeIter"]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "io":  # MXNet's other path to the same names
        return import_module(f"{__name__}.io")
    if name in ("ImageRecordIter", "ImageDetRecordIter"):  # they build on mx.image, which builds on this
        return getattr(import_module("..image.box_records" if "Det" in name else "..image.records", __name__), name)
    raise attribute(__name__, name, lambda: __all__)


def __dir__() -> list[str]:
    return names_shown(globals(), __all__)
