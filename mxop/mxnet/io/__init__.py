"""``mx.io``: data in batches."""

from ...support.missing import hooks
from .arrays import NDArrayIter
from .base import DataBatch, DataDesc, DataIter, MXDataIter, ResizeIter
from .files import CSVIter, LibSVMIter, MNISTIter
from .prefetching import PrefetchingIter

__all__ = ["CSVIter", "DataBatch", "DataDesc", "DataIter", "ImageDetRecordIter", "ImageRecordIter", "LibSVMIter", "MNISTIter",
           "MXDataIter", "NDArrayIter", "PrefetchingIter", "ResizeIter"]  # fmt: skip

#: MXNet's other path to the same names, and what builds on mx.image, which builds on this.
_LATER = {"io": f"{__name__}.io", "ImageRecordIter": "mxop.mxnet.image.records:ImageRecordIter",
          "ImageDetRecordIter": "mxop.mxnet.image.box_records:ImageDetRecordIter"}  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__, _LATER)
