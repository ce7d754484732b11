"""mxop: MXNet's operator framework made new.

An operator is defined once, as one short Python function; from it follow ``mx.nd.f``, ``mx.sym.f``, inference, gradients
of every order, CPU and GPU kernels, documentation and tests.  ``import mxop as mx``.
"""

import os as _os
import sys as _sys

from . import op
from .context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from .support import _loading, errors  # noqa: F401  what is compiled first
from .support import missing as _missing
from .support.distribution import VERSION as _VERSION
from .support.errors import MXNetError

__version__ = _VERSION  # after install_as_mxnet() it is MXNet's

from . import (
    autograd,
    context,
    ndarray,
)
from . import ndarray as nd
from .opdef.above import provide
from .operator import custom_op as _custom_op  # noqa: F401  registers the operator Custom


def _infer_inside(*arguments):
    from .graph.specs import infer_inside

    return infer_inside(*arguments)


def _infer_whole(*arguments):
    from .graph.specs import infer_whole

    return infer_whole(*arguments)


def _prepare(*arguments):
    from ._core.core import prepare

    return prepare(*arguments)


def _rule_reads(*arguments):
    from .graph.reads import rule_reads

    return rule_reads(*arguments)


def _make_plan(*arguments):
    from .graph.patterns import make_plan

    return make_plan(*arguments)


def _run_in_float32(*arguments):
    from .graph.traced import run_in_float32

    return run_in_float32(*arguments)


def _planned(on):
    from .graph.patterns import planned

    return planned(on)


def _loops_body(operator):
    from .operator.hybrid import Hybrid

    return Hybrid.of_operator(operator)


def _symbols():
    import mxop.symbol.operands  # what passes see; a `from` import would first ask the namespace for an operator
    import mxop.symbol.recorded  # noqa: F401  what autograd recorded

    package = _sys.modules["mxop.symbol"]
    for name in ("operands", "recorded"):  # another thread may have loaded them and not yet put them there
        vars(package).setdefault(name, _sys.modules[f"mxop.symbol.{name}"])
    return package


def _drawing(symbol):
    from .visualization import svg

    return svg(symbol)


def _cached_op(symbol, flags=()):
    from .symbol.cached_op import CachedOp

    return CachedOp(symbol, flags)


def _custom_of_sparse(operator, args, kwargs):
    from .operator import custom_sparse

    return custom_sparse.call(operator, args, kwargs)


def _call_operator(operator, args, kwargs):
    symbol = _sys.modules.get("mxop.symbol.symbol")  # where it is not loaded, nobody has symbols
    if symbol is not None and symbol.among((*args, *kwargs.values())):
        return symbol.invoke(operator, op.namespace_of(operator.name)[1], *args, **kwargs)
    return ndarray.register.function_of(operator)(*args, **kwargs)


def _is_recorded(array):
    return autograd.is_recording() and isinstance(array, nd.NDArray) and autograd.tape.tracked(array)


provide(infer_inside=_infer_inside, infer_whole=_infer_whole, prepare=_prepare, rule_reads=_rule_reads,
        make_plan=_make_plan, run_in_float32=_run_in_float32, symbols=_symbols, drawing=_drawing,
        planned=_planned, cached_op=_cached_op, loops_body=_loops_body,
        differentiate_run=autograd.differentiate_run, call_operator=_call_operator,
        custom_of_sparse=_custom_of_sparse, is_recorded=_is_recorded)  # fmt: skip

#: Modules that few programs need at once: imported when they are first used.
_LATER = {
    "base": "mxop.base", "sym": "mxop.symbol", "symbol": "mxop.symbol", "graph": "mxop.graph", "executor": "mxop.executor",
    "test_utils": "mxop.test_utils", "attribute": "mxop.attribute", "name": "mxop.name", "records": "mxop.records",
    "util": "mxop.util", "library": "mxop.library", "operator": "mxop.operator",
    "profiler": "mxop.profiler", "viz": "mxop.visualization", "visualization": "mxop.visualization",
    "axes": "mxop.axes", "random": "mxop.random", "rnd": "mxop.random", "registry": "mxop.registry", "log": "mxop.log",
    "engine": "mxop.engine", "runtime": "mxop.runtime", "libinfo": "mxop.libinfo", "contrib": "mxop.contrib",
    "initializer": "mxop.initializer", "init": "mxop.initializer", "lr_scheduler": "mxop.lr_scheduler",
    "optimizer": "mxop.optimizer", "metric": "mxop.metric", "io": "mxop.io", "model": "mxop.model",
    "callback": "mxop.callback", "rnn": "mxop.rnn", "recordio": "mxop.recordio", "rtc": "mxop.rtc", "monitor": "mxop.monitor",
    "mon": "mxop.monitor", "kv": "mxop.kvstore", "kvstore": "mxop.kvstore", "error": "mxop.error", "misc": "mxop.misc",
    "executor_manager": "mxop.executor_manager",
}  # fmt: skip
_NAMES = {"AttrScope": ("mxop.attribute", "AttrScope"), "Symbol": ("mxop.symbol", "Symbol"),
          "Executor": ("mxop.graph.executor", "Executor"), "is_np_shape": ("mxop.util", "is_np_shape"),
          "np_shape": ("mxop.util", "np_shape"), "set_np_shape": ("mxop.util", "set_np_shape"),
          "use_np_shape": ("mxop.util", "use_np_shape"), "get_include": ("mxop.library.headers", "get_include"),
          "install_as_mxnet": ("mxop.mxnet.as_mxnet", "install_as_mxnet"), "is_np_array": ("mxop.util", "is_np_array")}  # fmt: skip


def __getattr__(name: str):
    from importlib import import_module

    if name in _LATER:
        return import_module(_LATER[name])
    if name in _NAMES:
        module, attribute = _NAMES[name]
        return getattr(import_module(module), attribute)
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
_missing.watch_imports()

if _os.environ.get("MXOP_PROFILER_AUTOSTART", "0") not in ("", "0"):
    from . import profiler as _profiler

    _profiler.set_state("run")
