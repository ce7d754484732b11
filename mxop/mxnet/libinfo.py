"""``mx.libinfo``: the version of MXNet whose names and meaning these are, and where headers lie."""

from __future__ import annotations

from ..library.headers import get_include
from ..support.missing import hooks

#: Of MXNet, whose names these are; that of this package is ``mxop.distribution.VERSION``.
__version__ = "1.9.1"


def find_include_path() -> str:
    """Return the folder of the C headers."""
    return get_include()


__all__ = ["find_include_path"]

__getattr__, __dir__ = hooks(globals(), __all__)
