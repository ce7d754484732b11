"""mxop: MXNet's operator framework made new.

An operator is defined once, as one short Python function; from it follow ``mx.nd.f``, ``mx.sym.f``, inference, gradients
of every order, CPU and GPU kernels, documentation and tests.  ``import mxop as mx``.
"""

import os as _os
import sys as _sys

from . import _loading, errors, op  # noqa: F401  what is compiled first
from .context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from .errors import MXNetError

__version__ = "0.1.0"

from . import (
    autograd,
    context,
    ndarray,
)
from . import ndarray as nd
from .opdef.above import provide
from .operator import custom_op as _custom_op  # noqa: F401  registers the operator Custom


def _infer_inside(*arguments):
    from .graph.infer import expand_infer

    return expand_infer(*arguments)


def _symbols():
    from .symbol import operands, recorded  # noqa: F401  what passes see; what autograd recorded

    return _sys.modules["mxop.symbol"]


provide(infer_inside=_infer_inside, differentiate_run=autograd.differentiate_run, symbols=_symbols)

#: Modules that few programs need at once: imported when they are first used.
_LATER = {
    "base": "mxop.base", "sym": "mxop.symbol", "symbol": "mxop.symbol", "graph": "mxop.graph", "executor": "mxop.executor",
    "test_utils": "mxop.test_utils", "attribute": "mxop.attribute", "name": "mxop.name", "records": "mxop.records",
    "util": "mxop.util", "random": "mxop.random", "library": "mxop.library", "operator": "mxop.operator",
    "profiler": "mxop.profiler", "viz": "mxop.visualization", "visualization": "mxop.visualization",
    "axes": "mxop.axes",
}  # fmt: skip
_NAMES = {"AttrScope": ("mxop.attribute", "AttrScope"), "Symbol": ("mxop.symbol", "Symbol"),
          "Executor": ("mxop.graph.executor", "Executor"), "is_np_shape": ("mxop.util", "is_np_shape"),
          "np_shape": ("mxop.util", "np_shape"), "set_np_shape": ("mxop.util", "set_np_shape"),
          "use_np_shape": ("mxop.util", "use_np_shape"), "get_include": ("mxop.library.include", "get_include")}  # fmt: skip


def __getattr__(name: str):
    from importlib import import_module

    if name in _LATER:
        try:
            return import_module(_LATER[name])
        except ModuleNotFoundError as missing:
            if missing.name != _LATER[name]:
                raise
    if name in _NAMES:
        module, attribute = _NAMES[name]
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'mxop' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_LATER, *_NAMES})


__all__ = [
    "Context", "MXNetError", "autograd", "context", "cpu", "cpu_pinned", "current_context", "errors", "gpu",
    "gpu_memory_info", "nd", "ndarray", "num_gpus", "op",
]  # fmt: skip
_sys.modules.setdefault(__name__ + ".nd", nd)

if _os.environ.get("MXOP_PROFILER_AUTOSTART", "0") not in ("", "0"):
    from . import profiler as _profiler

    _profiler.set_state("run")
