"""Operators, graph passes and partitioners from compiled libraries, as MXNet's ``mx.library`` has them.

A library is a shared object compiled with the headers in :func:`mxop.get_include`; ``docs/libraries.md`` shows how to write
one.  :func:`load` makes what it registers available, :func:`build` compiles one, :func:`load_inline` does both.
"""

from ..support.missing import hooks
from .compile import build, load_inline
from .headers import get_include
from .loader import load, load_op_lib, loaded
from .random import seed

__all__ = ["build", "get_include", "load", "load_inline", "load_op_lib", "loaded", "seed"]

__getattr__, __dir__ = hooks(globals(), __all__)
