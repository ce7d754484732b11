"""``mx.executor``: where MXNet code looks for the executor; it lives in :mod:`mxop.graph.executor`."""

from .graph.executor import Executor

__all__ = ["Executor"]
