"""``mx.base``: where MXNet code looks for the error class; it lives in :mod:`mxop.errors`."""

from .errors import MXNetError
from .missing import hooks

__all__ = ["MXNetError"]

__getattr__, __dir__ = hooks(globals(), __all__)
