"""``mx.op``: define operators, and look into the registry.

``elementwise``, ``reduction``, ``composite``, ``loops`` and ``kernel`` make operators; ``F`` holds the functions of formulas;
``info(name)`` and ``describe(name)`` say what is registered.  The same objects as :mod:`mxop.opdef`.
"""

from .opdef import *  # noqa: F403
from .opdef import F, __all__  # noqa: F401
from .support.missing import hooks

__getattr__, __dir__ = hooks(globals(), __all__)
