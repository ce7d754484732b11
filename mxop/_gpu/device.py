"""GPU arrays: finding CuPy and a device, making arrays there, and moving them.

CuPy is imported on first use; :func:`require` says exactly what is missing.  Functions that take or return an ``NDArray``
say so, all others deal in CuPy's arrays.
"""

from __future__ import annotations

import os
from math import copysign
from typing import Any

import numpy as np

from .._core import launched
from ..support import dtypes
from ..support.distribution import install
from ..support.errors import DeviceError, OpTypeError, of_gpu

_INSTALL = f"{install('cuda13')} for CUDA 13, or {install('cuda12')} for CUDA 12"
_cupy: Any = None
_checked: set[int] = set()
_forked = False  # from a process that had used a GPU


def _in_child() -> None:
    """Use no GPU of the process that this one was forked from, and launch nothing as before."""
    global _forked
    if _checked:
        _forked = True
        _checked.clear()
        launched.forget()


os.register_at_fork(after_in_child=_in_child)


# ---- finding it ------------------------------------------------------------------------------------------------------
def _load(what: str) -> Any:
    """Import CuPy, or raise DeviceError for `what`."""
    global _cupy
    if _cupy is None:
        try:
            import cupy
        except ImportError as problem:
            missing = isinstance(problem, ModuleNotFoundError) and problem.name == "cupy"  # or of another CUDA
            why = "which is not installed" if missing else f"whose import failed ({problem}); reinstall it"
            raise DeviceError(f"{what} needs CuPy, {why}: {_INSTALL}") from None
        _cupy = cupy
    return _cupy


def require(device_id: int = 0) -> Any:
    """Return CuPy, or raise when arrays cannot be made on a GPU.

    Raises
    ------
    DeviceError
        Names what is missing (CuPy, a visible CUDA device, or the device of this number) and how to get it.
    """
    if device_id in _checked:
        return _cupy
    what = f"gpu({device_id})"
    if _forked:
        raise DeviceError(f"{what}: this process was forked from one that had used a GPU, which CUDA does not allow; start it "
                          'by multiprocessing.get_context("spawn"), or use a GPU in the new processes alone')  # fmt: skip
    xp = _load(what)
    try:
        found = xp.cuda.runtime.getDeviceCount()
    except Exception as problem:  # CuPy has an error class of its own for each library
        raise DeviceError(
            f"{what}: CuPy is installed, but no CUDA device is visible ({problem}); see whether nvidia-smi lists a GPU, "
            "whether its driver is new enough for CuPy's CUDA, and whether CUDA_VISIBLE_DEVICES hides it"
        ) from None
    if not 0 <= device_id < found:
        listed = ", ".join(f"gpu({k})" for k in range(found)) or "none; see whether CUDA_VISIBLE_DEVICES hides it"
        raise DeviceError(f"{what} does not exist; CUDA devices visible here: {listed}")
    _checked.add(device_id)
    return xp


def in_use() -> list[int]:
    """Return the numbers of the GPUs that were used in this process."""
    return sorted(_checked)


def count() -> int:
    """Return the number of usable GPUs: 0 without CuPy or without a visible device."""
    try:
        return int(_load("a GPU").cuda.runtime.getDeviceCount())
    except Exception:  # whatever is wrong, there is no usable GPU
        return 0


class using:
    """A scope in which a device is CuPy's current one, and which errors of CuPy and CUDA leave as errors of mxop.

    Its current stream comes after that of the last call (:func:`follow`), and later calls after what runs in the scope.
    """

    __slots__ = ("device", "number")

    def __init__(self, device_id: int):
        self.number, self.device = device_id, require(device_id).cuda.Device(device_id)

    def __enter__(self) -> Any:
        self.device.__enter__()
        try:
            follow(self.number)
        except BaseException:
            self.device.__exit__()
            raise
        return self.device

    def __exit__(self, kind: type | None, problem: Any, trace: Any) -> None:
        try:
            if problem is None:
                follow(self.number)  # another thread may have come in between, whose stream is another
        finally:
            self.device.__exit__(kind, problem, trace)
        if problem is not None and (found := of_gpu(problem, f"gpu({self.number})")) is not problem:
            raise found


def id_of(array: Any) -> int:
    """Return the number of the device of a CuPy array."""
    return int(array.device.id)


# ---- streams ---------------------------------------------------------------------------------------------------------
def follow(number: int) -> None:
    """Let the current stream of a device, which is the current one, wait for the stream of the last call, if that was another.

    All calls on a device have one order, then: an array can be used on any stream, and memory that was given back is not
    written before its last reader is done.  A stream that is captured waits for nothing outside, and nothing for it.
    """
    stream, before = _cupy.cuda.get_current_stream(number), launched.followed.get(number)
    if stream is before or stream.is_capturing():
        return
    if before is not None and before != stream:
        stream.wait_event(_moment(before))
    launched.followed[number] = stream  # at last: other threads launch on a stream that is followed without waiting


def _moment(stream: Any) -> Any:
    """Return an event of all that was launched on a stream of the current device."""
    return stream.record(_cupy.cuda.Event(disable_timing=True))


def wait_for(other: int, number: int) -> None:
    """Let what is launched on a device from now on wait for what was launched on another."""
    with using(other):
        event = _moment(stream(other))
    with using(number):
        stream(number).wait_event(event)


def stream(number: int) -> Any:
    """Return the stream of CuPy on which this thread's calls on a device are launched."""
    return require(number).cuda.get_current_stream(number)


# ---- memory and time -------------------------------------------------------------------------------------------------
def memory_info(device_id: int = 0) -> tuple[int, int]:
    """Return the (free, total) bytes of a device."""
    with using(device_id) as device:
        free, total = device.mem_info
    return int(free), int(total)


def memory_stats(device_id: int = 0) -> dict[str, int]:
    """Return the bytes of CuPy's pool: ``in_use``, ``cached``, ``peak`` and ``limit`` (0: none); it counts nothing else."""
    with using(device_id):
        pool = _cupy.get_default_memory_pool()
        figures = {"in_use": pool.used_bytes(), "cached": pool.free_bytes(), "limit": pool.get_limit()}
        return figures | {"peak": _peak(pool, device_id)}


_peaks: dict[int, int] = {}  # by device


def _peak(pool: Any, device_id: int) -> int:
    """Return the most bytes that a pool has had: it takes what it lacks, and gives nothing back unasked."""
    found = _peaks[device_id] = max(_peaks.get(device_id, 0), pool.total_bytes())
    return found


def empty_cache(device_id: int = 0) -> None:
    """Give the memory that CuPy's pools keep for reuse back to the device."""
    with using(device_id):
        pool = _cupy.get_default_memory_pool()
        _peak(pool, device_id)
        pool.free_all_blocks()
        _cupy.get_default_pinned_memory_pool().free_all_blocks()


def synchronize(device_id: int | None = None) -> None:
    """Wait until a device (all that were used, if None: a first look at one takes memory there) has done its work."""
    for k in in_use() if device_id is None else (device_id,):
        with using(k) as device:
            device.synchronize()


# ---- making arrays ---------------------------------------------------------------------------------------------------
def allocate(shape: tuple[int, ...], code: int, device_id: int) -> Any:
    """Return a new CuPy array in C order whose elements are not set."""
    xp = require(device_id)
    with using(device_id):
        try:
            return xp.empty(tuple(shape), dtypes.numpy_dtype(code))
        except (KeyError, TypeError, ValueError) as problem:
            if code != dtypes.BFLOAT16:
                raise
            raise OpTypeError(f"this version of CuPy has no bfloat16 arrays ({problem})") from None


def fill(memory: Any, number: Any) -> None:
    """Set all elements of a CuPy array of the current device; CuPy's own function takes -0.0 for 0."""
    if number == 0 and copysign(1, number) < 0:
        memory, number = memory.view(f"u{memory.itemsize}"), 1 << 8 * memory.itemsize - 1
    memory.fill(number)


def uploaded(host: np.ndarray, device_id: int) -> Any:
    """Return a copy of a NumPy array on a device."""
    result = allocate(host.shape, dtypes.code_of(host.dtype), device_id)
    if host.size:
        host = np.asarray(host, order="C")
        with using(device_id):
            result.set(host)
            if _cupy.cuda.runtime.pointerGetAttributes(host.ctypes.data).type:  # pinned: it is read later
                stream(device_id).synchronize()
    return result
