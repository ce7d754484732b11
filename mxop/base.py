"""``mx.base``: where MXNet code looks for the error class; it lives in :mod:`mxop.errors`."""

from .errors import MXNetError

__all__ = ["MXNetError"]
