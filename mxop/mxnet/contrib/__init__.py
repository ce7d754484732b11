"""``mx.contrib``: ``nd.contrib`` and ``sym.contrib`` under MXNet's other names, and modules of its own.

:mod:`.amp` is automatic mixed precision, :mod:`.autograd` MXNet's first interface, :mod:`.text` has tokens and their vectors,
:mod:`.io` loaders as iterators, :mod:`.quantization` converts networks to int8.
"""

import sys as _sys

from ...ndarray import contrib as nd
from ...support.missing import hooks
from ...symbol import contrib as sym
from . import amp, autograd, io, quantization, text

ndarray, symbol = nd, sym
for _name in ("nd", "ndarray", "sym", "symbol"):  # for ``import mxop.contrib.ndarray``
    _sys.modules.setdefault(f"{__name__}.{_name}", globals()[_name])

__all__ = ["amp", "autograd", "io", "nd", "ndarray", "quantization", "sym", "symbol", "text"]

__getattr__, __dir__ = hooks(globals(), __all__)
