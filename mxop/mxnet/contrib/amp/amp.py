"""``mx.contrib.amp.amp``: MXNet's other path to what :mod:`mxop.contrib.amp` has."""

from . import *  # noqa: F403
from . import __all__ as __all__
from .arrays import is_on


def __getattr__(name: str) -> bool:
    if name == "_amp_initialized":  # what programs look at
        return is_on()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
