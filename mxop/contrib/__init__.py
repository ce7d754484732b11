"""``mx.contrib``: ``nd.contrib`` and ``sym.contrib`` under MXNet's other names, and :mod:`.autograd`, its first interface.

May import :mod:`mxop.ndarray`, :mod:`mxop.symbol` and :mod:`mxop.autograd`.
"""

import sys as _sys

from ..missing import hooks
from ..ndarray import contrib as nd
from ..symbol import contrib as sym
from . import autograd

ndarray, symbol = nd, sym
for _name in ("nd", "ndarray", "sym", "symbol"):  # for ``import mxop.contrib.ndarray``
    _sys.modules.setdefault(f"{__name__}.{_name}", globals()[_name])

__all__ = ["autograd", "nd", "ndarray", "sym", "symbol"]

__getattr__, __dir__ = hooks(globals(), __all__)
