"""``mx.image``: images from files, in other sizes, changed at random, and in batches."""

from ...support.missing import hooks
from . import detection, image
from . import detection as det
from .detection import *  # noqa: F403
from .detection import __all__ as _of_boxes
from .image import *  # noqa: F403
from .image import __all__ as _names

__all__ = ["det", "detection", "image", *_names, *_of_boxes]

__getattr__, __dir__ = hooks(globals(), __all__)
