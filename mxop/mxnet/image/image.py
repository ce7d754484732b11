"""``mx.image.image``: MXNet's other path to what :mod:`mxop.image` has."""

from .augmenters import *  # noqa: F403
from .augmenters import __all__ as _augmenters
from .changes import *  # noqa: F403
from .changes import __all__ as _changes
from .changes import _method as _get_interp_method  # noqa: F401
from .decoding import *  # noqa: F403
from .decoding import __all__ as _decoding
from .iterator import ImageIter

__all__ = ["ImageIter", *_augmenters, *_changes, *_decoding]
