"""``mx.executor``: where MXNet code looks for the executor; it lives in :mod:`mxop.graph.executor`."""

from ..graph.executor import Executor
from ..support.missing import hooks

__all__ = ["Executor"]

__getattr__, __dir__ = hooks(globals(), __all__)
