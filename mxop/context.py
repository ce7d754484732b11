"""Devices: where arrays live and operators run; memory statistics and threads."""

from __future__ import annotations

import functools
import operator
import re
import sys

from ._kernels import memory, team
from .support.errors import DeviceError, OpTypeError, OpValueError, all_end_at_caller, shown, translated
from .support.missing import hooks
from .support.per_thread import Current, showing

_TYPES = {"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5}
_NAMES = {code: name for name, code in _TYPES.items()}


class Context(metaclass=showing("default_ctx", lambda: _defaults)):
    """A device, such as ``cpu(0)`` or ``gpu(1)``; as a context manager it becomes the default.

    ``Context.default_ctx`` is the default device of this thread; it can be assigned.

    Parameters
    ----------
    device_type : {'cpu', 'gpu', 'cpu_pinned', 'cpu_shared'} or Context
    device_id : int, default 0

    Examples
    --------
    >>> with mx.cpu(1):
    ...     print(mx.current_context())
    cpu(1)
    """

    devtype2str = _NAMES
    devstr2type = _TYPES
    __slots__ = ("_before", "device_id", "device_typeid")

    def __init__(self, device_type: str | Context, device_id: int = 0):
        if isinstance(device_type, Context):
            self.device_typeid, self.device_id = device_type.device_typeid, device_type.device_id
        else:
            if not isinstance(device_type, str) or device_type not in _TYPES:
                raise OpValueError(f"device type {shown(device_type)} is not one of {', '.join(_TYPES)}")
            try:
                self.device_typeid, self.device_id = _TYPES[device_type], operator.index(device_id)
            except TypeError:
                raise OpTypeError(f"{device_type}: device_id={shown(device_id)} is not an integer") from None
            if not 0 <= self.device_id < 2**31:
                raise OpValueError(f"{device_type}: device_id={device_id} is not the number of a device; expected 0 or more")
        self._before: list[Context] = []

    @property
    def device_type(self) -> str:
        """``'cpu'`` or ``'gpu'``."""
        return _NAMES[self.device_typeid]

    def __hash__(self) -> int:
        return hash((self.device_typeid, self.device_id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and self.device_typeid == other.device_typeid and self.device_id == other.device_id

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __enter__(self) -> Context:
        self._before.append(current_context())
        _defaults.value = self
        return self

    def __exit__(self, *exception: object) -> None:
        _defaults.value = self._before.pop()

    def __reduce__(self):
        return Context, (self.device_type, self.device_id)

    def __setstate__(self, state: dict[str, int]) -> None:
        """Take the state that MXNet pickles."""
        with translated("Context.__setstate__"):
            Context.__init__(self, _NAMES[state["device_typeid"]], state["device_id"])

    @property
    def is_gpu(self) -> bool:
        """Whether arrays of this device live on a GPU."""
        return self.device_typeid == 2

    @property
    def _device(self):
        """What allocates, copies and computes there: :class:`mxop._core.device.Device`."""
        from ._core.device import device_of

        return device_of(self.device_id if self.is_gpu else -1)

    @property
    def stream(self):
        """The ``cupy.cuda.Stream`` that this thread's calls on this GPU are launched on: CuPy's current one.

        Raises
        ------
        DeviceError
            On the CPU, where calls are done when they return.
        """
        if not self.is_gpu:
            raise DeviceError(f"{self} has no stream: calls on the CPU are done when they return")
        return _gpus().stream(self.device_id)

    @property
    def place(self) -> int:
        """The number that an array keeps of a CPU device: below 0, even ones are of shared memory and odd ones of pinned."""
        at = (3, 5).index(self.device_typeid) if self.device_typeid > 2 else None
        return self.device_id if at is None else -1 - 2 * self.device_id - at

    def empty_cache(self) -> None:
        """Give the memory that waits for reuse on this device back to the system."""
        if self.is_gpu:
            _gpus().empty_cache(self.device_id)
        else:
            memory.empty_cache()


def _gpus():
    """Return what allocates and computes on GPUs; it is loaded when it is asked for."""
    from ._gpu import device

    return device


CPU0 = Context("cpu", 0)


class _Default(Current):
    """The device in force in each thread, of which what makes small arrays is told."""

    def __setattr__(self, name: str, value: Context) -> None:
        super().__setattr__(name, value)
        memory.set_elsewhere(value != CPU0)


_defaults = _Default(lambda: CPU0)
_contexts: dict[tuple[int, int], Context] = {(-1, 0): CPU0}


def of_array(gpu: int, place: int) -> Context:
    """Return the context of an array, the same object each time; `gpu` is the number of a GPU, or -1."""
    key = (gpu, place)
    if key not in _contexts:
        number, at = divmod(-1 - place, 2) if place < 0 else (place, None)
        _contexts[key] = Context("gpu" if gpu >= 0 else "cpu" if at is None else ("cpu_pinned", "cpu_shared")[at], number)
    return _contexts[key]


@functools.lru_cache(64)
def of_text(text: str) -> Context:
    """Return the context that a parameter names, such as ``gpu(1)``."""
    found = re.fullmatch(r"(\w+)(?:\((\d+)\))?", text.strip())
    if found is None:
        raise OpValueError(f"ctx={text!r} names no device; expected something like cpu(0)")
    return Context(found[1], int(found[2] or 0))


def cpu(device_id: int = 0) -> Context:
    """Return the CPU; all CPU contexts share memory and threads."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Return the CPU, as the place for buffers exchanged with a GPU."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """Return a GPU; arrays on it need CuPy and a CUDA device."""
    return Context("gpu", device_id)


def is_first(ctx: Context | None) -> bool:
    """Return whether arrays lie on ``cpu(0)`` where `ctx` is given, if that is not changed for all."""
    return ctx is None or (type(ctx) is Context and ctx.device_typeid == 1 and not ctx.device_id)


def current_context() -> Context:
    """Return the default device of this thread."""
    return _defaults.value


def num_gpus() -> int:
    """Return the number of usable GPUs (0 without CuPy)."""
    return _gpus().count()


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Return (free, total) bytes of a GPU."""
    return _gpus().memory_info(device_id)


def memory_stats(ctx: Context | None = None) -> dict[str, int]:
    """Return the figures of the memory pool.

    Returns
    -------
    dict
        Bytes ``in_use`` by arrays, ``cached`` (waiting for reuse), ``peak`` and ``limit`` (of the cached ones), and the
        counts ``hits`` and ``misses`` of requests that the pool could and could not serve.  On a GPU, ``peak`` is the most that
        CuPy's pool has had, in use or cached, and there are no counts.
    """
    if ctx is not None and ctx.is_gpu:
        return _gpus().memory_stats(ctx.device_id)
    return memory.stats()


def empty_cache(ctx: Context | None = None) -> None:
    """Give the memory that waits for reuse back to the system."""
    (ctx or CPU0).empty_cache()


def set_memory_limit(nbytes: int) -> None:
    """Bound the bytes that wait for reuse on the CPU (also by the environment variable ``MXOP_POOL_BYTES``)."""
    memory.set_limit(nbytes)


def set_num_threads(n: int) -> int:
    """Set the number of CPU threads of all operators (also by ``MXOP_NUM_THREADS``); return what it was."""
    if isinstance(n, bool) or not isinstance(n, int):
        raise OpTypeError(f"set_num_threads: n={n!r} must be an integer")
    before = team.get_num_threads()
    team.set_num_threads(n)
    return before


def get_num_threads() -> int:
    """Return the number of CPU threads that operators use."""
    return team.get_num_threads()


def check_available(ctx: Context) -> None:
    """Raise DeviceError, saying what to install, when arrays cannot be made on a device."""
    if ctx.is_gpu:
        _gpus().require(ctx.device_id)


__all__ = [
    "Context", "DeviceError", "cpu", "cpu_pinned", "current_context", "empty_cache", "get_num_threads", "gpu",
    "gpu_memory_info", "memory_stats", "num_gpus", "set_memory_limit", "set_num_threads",
]  # fmt: skip

all_end_at_caller(Context, ["__init__"])
all_end_at_caller(sys.modules[__name__], [name for name in __all__ if name.islower()])
__getattr__, __dir__ = hooks(globals(), __all__)
