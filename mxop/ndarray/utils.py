"""``mx.nd.utils``: the path at which MXNet keeps functions that make, save and load arrays."""

from ..support.missing import hooks
from .creation import array, empty, zeros
from .io import load, load_frombuffer, save

__all__ = ["array", "empty", "load", "load_frombuffer", "save", "zeros"]

__getattr__, __dir__ = hooks(globals(), __all__)
