"""mxop: MXNet's operator framework made new.

An operator is defined once, as one short Python function; from it follow ``mx.nd.f``, ``mx.sym.f``, inference, gradients
of every order, CPU and GPU kernels, documentation and tests.  ``import mxop as mx``.
"""

import os as _os
import sys as _sys
from functools import cache as _cache
from importlib import import_module as _import_module

from mxop.support import _loading  # noqa: F401  what is compiled, before all else

from . import op
from .context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from .support import errors
from .support import missing as _missing
from .support import moved as _moved
from .support.distribution import VERSION as _VERSION
from .support.errors import MXNetError

__version__ = _VERSION  # after install_as_mxnet() it is MXNet's

from . import autograd, context, ndarray
from . import ndarray as nd
from .opdef.above import provide
from .operator import custom_op as _custom_op  # noqa: F401  registers the operator Custom


def _late(module, name):
    """Return a function of a module that is imported when the function is called, after its package."""

    @_cache
    def found():
        _import_module(module.rpartition(".")[0] or module, __name__)
        return _import_module(module, __name__)

    return lambda *args, **kwargs: getattr(found(), name)(*args, **kwargs)


def _loops_body(operator):
    from .operator.hybrid import Hybrid

    return Hybrid.of_operator(operator)


@_cache  # passes ask for each node
def _symbols():
    package = _import_module("mxop.symbol")  # whole, before its modules: another thread may be importing it
    vars(package).update({name: _import_module(f"mxop.symbol.{name}") for name in ("operands", "recorded")})
    return package


def _call_operator(operator, args, kwargs):
    package = _sys.modules.get("mxop.symbol")
    symbol = package and vars(package).get("symbol")  # until it is there, whole, nobody has symbols
    if symbol is not None and symbol.among((*args, *kwargs.values())):
        return symbol.invoke(operator, op.namespace_of(operator.name)[1], *args, **kwargs)
    return ndarray.register.function_of(operator)(*args, **kwargs)


def _is_recorded(array):
    return autograd.is_recording() and isinstance(array, nd.NDArray) and autograd.tape.tracked(array)


provide(infer_inside=_late(".graph.specs", "infer_inside"), infer_whole=_late(".graph.specs", "infer_whole"),
        prepare=_late("._core.core", "prepare"), rule_reads=_late(".graph.reads", "rule_reads"),
        make_plan=_late(".graph.patterns", "make_plan"), planned=_late(".graph.patterns", "planned"),
        run_in_float32=_late(".graph.traced", "run_in_float32"), drawing=_late(".visualization", "svg"),
        cached_op=_late(".symbol.cached_op", "CachedOp"), custom_of_sparse=_late(".operator.custom_sparse", "call"),
        symbols=_symbols, loops_body=_loops_body, call_operator=_call_operator, is_recorded=_is_recorded,
        differentiate_run=autograd.differentiate_run)  # fmt: skip

#: Modules that few programs need at once: imported when they are first used.
_LATER = {name: f"mxop.{name}" for name in (
    "attribute", "axes", "base", "callback", "contrib", "engine", "error", "executor", "executor_manager", "graph",
    "image", "initializer", "io", "kvstore", "libinfo", "library", "log", "lr_scheduler", "metric", "misc", "model", "monitor",
    "name", "operator", "optimizer", "profiler", "random", "recordio", "records", "registry", "rnn", "rtc", "runtime", "symbol",
    "test_utils", "util", "visualization",
)} | {"img": "mxop.image", "init": "mxop.initializer", "kv": "mxop.kvstore", "mon": "mxop.monitor", "rnd": "mxop.random",
      "sym": "mxop.symbol", "viz": "mxop.visualization"}  # fmt: skip
_NAMES = {"AttrScope": "mxop.attribute", "Executor": "mxop.graph.executor", "Symbol": "mxop.symbol",
          "get_include": "mxop.library", "install_as_mxnet": "mxop.as_mxnet",
          **dict.fromkeys(("is_np_array", "is_np_shape", "np_shape", "set_np_shape", "use_np_shape"), "mxop.util")}  # fmt: skip


@errors.ends_at_caller
def __getattr__(name: str):
    if name in _LATER or name in _moved.FOLDERS:
        return _import_module(_LATER.get(name, f"mxop.{name}"))
    if name in _NAMES:
        return getattr(_import_module(_NAMES[name]), name)
    there = f"mx.nd.{name}" if callable(vars(ndarray).get(name)) else None
    raise _missing.attribute(__name__, name, __dir__, there)


def __dir__():
    return _missing.names_shown(globals(), __all__, _LATER, _NAMES)


__all__ = [
    "Context", "MXNetError", "autograd", "context", "cpu", "cpu_pinned", "current_context", "errors", "gpu",
    "gpu_memory_info", "nd", "ndarray", "num_gpus", "op",
]  # fmt: skip
for _space in ("", *(f".{_name}" for _name in ndarray.register.SPACES)):
    _sys.modules.setdefault(f"{__name__}.nd{_space}", _sys.modules[f"{__name__}.ndarray{_space}"])
_sys.modules.setdefault(errors.__name__, errors)
_missing.watch_imports()

if _os.environ.get("MXOP_PROFILER_AUTOSTART", "0") not in ("", "0"):
    from . import profiler as _profiler

    _profiler.set_state("run")
