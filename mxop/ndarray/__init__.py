"""``mx.nd``: arrays, the functions that make them, and a function for every operator."""

import sys as _sys

from .. import context as _context
from .. import ops as _ops  # noqa: F401  registers the operators
from .._core import core as _core
from .._core import dispatch as _dispatch
from .._core import lazy as _lazy
from .._core import tape as _tape
from .._core.core import NDArray  # noqa: F401
from ..opdef import operator as _operator
from ..opdef import registry as _registry
from . import register as _register
from .register import F as _F

_dispatch.set_namespace(_F)
_registry.on_register(_F.forget)
_operator.on_change(_dispatch.forget)
_tape.start(_F)

from . import interop as _interop  # noqa: E402

_core.start(_context.of_array, _interop.foreign)

from . import methods as _methods  # noqa: E402
from .creation import *  # noqa: F403, E402
from .functions import *  # noqa: F403, E402
from .interop import *  # noqa: F403, E402
from .io import *  # noqa: F403, E402
from .sparse import cast_storage  # noqa: F401, E402
from .updates import *  # noqa: F403, E402

_methods.install()
_register.fill(_sys.modules[__name__], {n for n in globals() if not n.startswith("_")})


def waitall() -> None:
    """Wait until all arrays are computed."""
    _lazy.run_all()
    if "cupy" in _sys.modules:
        from .._gpu import device

        device.synchronize()


__all__ = [n for n in _register.visible(_sys.modules[__name__]) if not n.startswith("_")]

from .ndarray import _DTYPE_MX_TO_NP, _DTYPE_NP_TO_MX, _GRAD_REQ_MAP  # noqa: F401, E402  where programs find MXNet's
