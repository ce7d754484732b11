"""``mx.image``: images from files, in other sizes, changed at random, and in batches."""

from ...support.missing import hooks
from . import image
from .image import *  # noqa: F403
from .image import __all__ as _names

__all__ = ["image", *_names]

__getattr__, __dir__ = hooks(globals(), __all__)
