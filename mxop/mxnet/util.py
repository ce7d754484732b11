"""``mx.util``: NumPy's meaning of shapes, and small helpers, with the names of MXNet 1.x.

With NumPy shapes, ``()`` is the shape of a scalar, so that a full reduction gives ``()`` instead of MXNet's ``(1,)``.
Each thread has a switch of its own.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any

from .. import context
from ..support.errors import NotYetError, OpTypeError, UnsupportedError, shown
from ..support.missing import NOT_YET, hooks
from ..support.shape_mode import numpy_shape, set_numpy_shape


def is_np_shape() -> bool:
    """Return whether shapes have NumPy's meaning."""
    return numpy_shape()


def set_np_shape(active: bool) -> bool:
    """Switch NumPy's meaning of shapes on or off in this thread; return what it was.

    Examples
    --------
    >>> before = mx.util.set_np_shape(True)
    >>> mx.nd.ones((2, 3)).sum().shape
    ()
    >>> mx.util.set_np_shape(before)
    True
    """
    if active not in (True, False):
        raise OpTypeError(f"set_np_shape: active={active!r} is not True or False")
    return set_numpy_shape(bool(active))


class _NumpyShapeScope:
    """A scope with or without NumPy's meaning of shapes."""

    def __init__(self, active: bool):
        self._active = active
        self._before: list[bool] = []

    def __enter__(self) -> _NumpyShapeScope:
        self._before.append(set_np_shape(self._active))
        return self

    def __exit__(self, *exception: object) -> None:
        set_np_shape(self._before.pop())


def np_shape(active: bool = True) -> _NumpyShapeScope:
    """Return a scope in which shapes have NumPy's meaning (or MXNet's, with ``active=False``).

    Examples
    --------
    >>> with mx.util.np_shape():
    ...     mx.nd.ones((2, 3)).sum().shape
    ()
    >>> mx.nd.ones((2, 3)).sum().shape
    (1,)
    """
    return _NumpyShapeScope(active)


class _NumpyArrayScope:
    """A scope in which layers make ``mx.np`` arrays or not; there are none, and entering one that asks for them says so."""

    def __init__(self, is_np_array: bool):
        self._is_np_array = is_np_array

    def __enter__(self) -> _NumpyArrayScope:
        if self._is_np_array:
            raise NotYetError(f"mx.np arrays: MXNet has mx.np, {NOT_YET}")
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def use_np_shape(func: Any) -> Any:
    """Decorate a function, or all methods of a class, to run with NumPy's meaning of shapes.

    Examples
    --------
    >>> @mx.util.use_np_shape
    ... def total(x):
    ...     return x.sum()
    >>> total(mx.nd.ones(3)).shape
    ()
    """
    return run_within(np_shape, func, "use_np_shape")


def run_within(scope: Callable[[], Any], func: Any, who: str) -> Any:
    """Return a function, or a class with all of its methods, that runs in a scope; `who` decorates, for messages."""
    if inspect.isclass(func):
        for name, method in list(vars(func).items()):
            if inspect.isfunction(method):
                setattr(func, name, run_within(scope, method, who))
        return func
    if not callable(func):
        raise OpTypeError(f"{who} decorates functions and classes, not {type(func).__name__}")

    @functools.wraps(func)
    def within(*args: Any, **kwargs: Any) -> Any:
        with scope():
            return func(*args, **kwargs)

    return within


def is_np_array() -> bool:
    """Return whether layers make ``mx.np`` arrays; there are none."""
    return False


def reset_np() -> None:
    """Switch NumPy's meaning of shapes off in this thread."""
    set_np_shape(False)


# ---- functions of NumPy -----------------------------------------------------------------------------------------------
_OF_UFUNCS = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
_UFUNC_TYPES = ("int8", "uint8", "int32", "int64", "float16", "float32", "float64")


def np_ufunc_legal_option(key: str, value: Any) -> bool:
    """Return whether NumPy's elementwise functions take a keyword with a value.

    Examples
    --------
    >>> np_ufunc_legal_option("casting", "safe"), np_ufunc_legal_option("casting", "loose"), np_ufunc_legal_option("axis", 0)
    (True, False, False)
    """
    if key == "dtype":
        return value in _UFUNC_TYPES if isinstance(value, str) else getattr(value, "__name__", None) in _UFUNC_TYPES
    if key == "casting":
        return value in _CASTINGS
    return key == "where" or (key == "order" and isinstance(value, str)) or (key == "subok" and isinstance(value, bool))


def _check_options(func: Callable, options: dict[str, Any]) -> None:
    for key, value in options.items():
        if key not in _OF_UFUNCS:
            raise OpTypeError(f"{func.__name__}: there is no argument {key!r}; there are {', '.join(_OF_UFUNCS)}")
        if value != _OF_UFUNCS[key]:
            given = f"{func.__name__}: {key}={shown(value)}"
            if np_ufunc_legal_option(key, value):
                raise UnsupportedError(f"{given} is not implemented; only {_OF_UFUNCS[key]!r} is")
            raise OpTypeError(f"{given} is not what NumPy's functions take")


def wrap_np_unary_func(func: Callable) -> Callable:
    """Let a function of one array and ``out`` take the keywords of NumPy's, with their defaults alone.

    Examples
    --------
    >>> square = wrap_np_unary_func(lambda x, out: mx.nd.square(x, out=out))
    >>> square(mx.nd.array([3]), where=True).item()
    9.0
    """

    @functools.wraps(func)
    def wrapped(x: Any, out: Any = None, **kwargs: Any) -> Any:
        _check_options(func, kwargs)
        return func(x, out=out)

    return wrapped


def wrap_np_binary_func(func: Callable) -> Callable:
    """Let a function of two arrays and ``out`` take the keywords of NumPy's; see :func:`wrap_np_unary_func`."""

    @functools.wraps(func)
    def wrapped(x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Any:
        _check_options(func, kwargs)
        return func(x1, x2, out=out)

    return wrapped


# ---- this and that ----------------------------------------------------------------------------------------------------
def set_module(module: str) -> Callable[[Any], Any]:
    """Return a decorator that says where an object belongs, for its repr and for documentation."""

    def decorate(target: Any) -> Any:
        target.__module__ = module
        return target

    return decorate


def makedirs(d: str) -> None:
    """Make a folder and its parents, unless they exist."""
    os.makedirs(os.path.expanduser(d), exist_ok=True)


def get_gpu_count() -> int:
    """Return the number of usable GPUs."""
    return context.num_gpus()


def getenv(name: str) -> str | None:
    """Return an environment variable, None where it is not set."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable, or remove it where the value is None.

    Examples
    --------
    >>> mx.util.setenv("MXOP_DOC", "1"), mx.util.getenv("MXOP_DOC")
    (None, '1')
    >>> mx.util.setenv("MXOP_DOC", None), mx.util.getenv("MXOP_DOC")
    (None, None)
    """
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def get_cuda_compute_capability(ctx: context.Context) -> int:
    """Return the compute capability of a GPU, such as 90 for 9.0."""
    from .._gpu import device

    return int(device.require(ctx.device_id).cuda.Device(ctx.device_id).compute_capability)


def get_gpu_memory(gpu_dev_id: int = 0) -> tuple[int, int]:
    """Return (free, total) bytes of a GPU."""
    return context.gpu_memory_info(gpu_dev_id)


__all__ = [
    "get_cuda_compute_capability", "get_gpu_count", "get_gpu_memory", "getenv", "is_np_array", "is_np_shape", "makedirs",
    "np_shape", "np_ufunc_legal_option", "reset_np", "set_module", "set_np_shape", "setenv", "use_np_shape",
    "wrap_np_binary_func", "wrap_np_unary_func",
]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
