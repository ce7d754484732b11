"""``mx.optimizer.optimizer``: MXNet's other path to what :mod:`mxop.optimizer` has."""

from . import *  # noqa: F403
from . import __all__ as __all__
