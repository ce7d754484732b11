"""``mx.io.io``: MXNet's other path to what :mod:`mxop.io` has."""

from . import *  # noqa: F403
from . import __all__ as __all__
