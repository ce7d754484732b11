"""A simulation of CuPy's small part that mxop uses: arrays in host memory, kernels compiled by the host's C++ compiler.

It lets every machine run mxop's GPU paths (dispatch, requests, views, transfers, autograd).  It says nothing of CUDA or of
speed; ``pytest -m gpu`` does that.  As in CuPy, arrays do not mix with NumPy's and are not converted to them silently, and
indices out of range wrap around.  It is stricter than CuPy where CuPy's answer depends on the machine: whatever computes
needs the device of its arrays to be the current one, and of equal indices that are assigned to, the first one wins.
:func:`module` makes the module; device 1 is current when it begins, as if another library had made it so.

Attributes
----------
waits : collections.Counter
    How often the host waited for a device, by its number.
errors : dict
    Errors that the next ``"allocation"``, ``"launch"``, ``"compilation"`` or ``"synchronization"`` raises, once.
ranges : list
    The names of NVTX ranges as they begin, None where one ends.
"""

from __future__ import annotations

import ctypes
import heapq
import types
from collections import Counter
from typing import ClassVar

import fake_kernels
import numpy as np

_current = [0]
made = fake_kernels.made
waits: Counter = Counter()
errors: dict[str, Exception] = {}
ranges: list[str | None] = []


class CUDARuntimeError(RuntimeError):
    """``cupy.cuda.runtime.CUDARuntimeError``, as an unfinished kernel's fault is reported."""

    def __init__(self, status=700):
        self.status = status
        super().__init__("cudaErrorIllegalAddress: an illegal memory access was encountered")


class OutOfMemoryError(MemoryError):
    """``cupy.cuda.memory.OutOfMemoryError``."""


class CompileException(Exception):
    """``cupy.cuda.compiler.CompileException``."""


CUDARuntimeError.__module__ = "cupy_backends.cuda.api.runtime"
OutOfMemoryError.__module__, CompileException.__module__ = "cupy.cuda.memory", "cupy.cuda.compiler"


def fail(where):
    """Raise the error that was planned for an action."""
    if where in errors:
        raise errors.pop(where)


def waited(device):
    """Count that the host waits for a device."""
    waits[device] += 1
    while _uploads:
        target, source = _uploads.pop()
        target[...] = source
    fail("synchronization")


#: Addresses of pinned memory, and copies from there that nobody waited for: they read it at the last moment.
pinned: set[int] = set()
_uploads: list = []


class Device:
    """``cupy.cuda.Device``."""

    def __init__(self, id=None):
        self.id = _current[-1] if id is None else id

    def __enter__(self):
        _current.append(self.id)
        return self

    def __exit__(self, *exception):
        _current.pop()

    def synchronize(self):
        assert _current[-1] == self.id
        waited(self.id)

    mem_info = (1 << 30, 1 << 31)


class PooledMemory:
    """Memory of CuPy's pool: of the blocks of a size that are free, the one of the lowest address, by its device and size."""

    free: ClassVar[dict[tuple[int, int], list]] = {}

    def __init__(self, nbytes):
        self.free_like_this = self.free.setdefault((_current[-1], -(-nbytes // 512)), [])
        self.block = heapq.heappop(self.free_like_this) if self.free_like_this else self._new(nbytes)
        self.__array_interface__ = {"data": (self.block[0], False), "shape": (nbytes,), "typestr": "|u1", "version": 3}

    @staticmethod
    def _new(nbytes):
        memory = np.empty(nbytes + 1024, "uint8")
        start = memory.ctypes.data
        return start + -start % 512, memory

    def __del__(self, push=heapq.heappush):  # also when the process ends
        push(self.free_like_this, self.block)


class UnownedMemory:
    """``cupy.cuda.UnownedMemory``: an address."""

    def __init__(self, ptr, size, owner, device_id):
        assert device_id == _current[-1] or owner is None
        self.ptr, self.owner = ptr, owner


class MemoryPointer:
    """``cupy.cuda.MemoryPointer``: an address in memory, and what keeps it alive."""

    def __init__(self, memory, offset):
        self.ptr, self.owner = memory.ptr + offset, memory.owner

    def __add__(self, nbytes):
        return MemoryPointer(self, nbytes)


class _Interface:
    def __init__(self, pointer, shape, dtype, strides):
        kind = dtype if dtype.kind != "V" else np.dtype("uint16")
        self.owner = pointer.owner
        self.__array_interface__ = {"data": (pointer.ptr, False), "shape": shape, "typestr": kind.str, "strides": strides,
                                    "version": 3}  # fmt: skip


def check_device(*arrays):
    """Raise unless arrays lie on the current device: CuPy's kernels run there."""
    for a in arrays:
        if isinstance(a, ndarray):
            here = _current[-1]
            assert a.device.id == here, f"an array of device {a.device.id} is used while device {here} is the current one"
            fake_kernels.used()
        elif isinstance(a, (list, tuple)):
            check_device(*a)


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    """``cupy.ndarray`` over host memory."""

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        if memptr is None:
            fail("allocation")
            dtype, shape = np.dtype(dtype), shape if isinstance(shape, tuple) else (shape,)
            memory = np.asarray(PooledMemory(dtype.itemsize * int(np.prod(shape))))
            host = np.ndarray(shape, dtype, memory, order=order)
        else:
            host = np.asarray(_Interface(memptr, tuple(shape), np.dtype(dtype), strides)).view(dtype)
        self._host, self.device = host, Device()

    @property
    def data(self):
        return MemoryPointer(UnownedMemory(self._host.__array_interface__["data"][0], self.nbytes, self._host, _current[-1]), 0)

    shape = property(lambda self: self._host.shape)
    strides = property(lambda self: self._host.strides)
    dtype = property(lambda self: self._host.dtype)
    size = property(lambda self: self._host.size)
    ndim = property(lambda self: self._host.ndim)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    flags = property(lambda self: self._host.flags)
    T = property(lambda self: _result(self._host.T, self))
    real, imag = (property(lambda self, part=part: _result(getattr(self._host, part), self)) for part in ("real", "imag"))

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        check_device(inputs, tuple(kwargs.values()))
        return _wrap(getattr(ufunc, method)(*map(_plain, inputs), **{k: _plain(v) for k, v in kwargs.items()}))

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.data.ptr, False), "version": 3,
                "strides": None if self.flags.c_contiguous else self.strides, "stream": 1}  # fmt: skip

    managed = False  # whether CUDA manages the memory

    def __dlpack__(self, stream=None, **options):
        check_device(self)
        exported.append(stream)
        capsule = self._host.__dlpack__()
        _device_field(capsule)[:] = self.__dlpack_device__()
        return capsule

    def __dlpack_device__(self):
        return (13 if self.managed else 2, self.device.id)

    def __getattr__(self, name):  # sum, reshape, astype...
        if name.startswith("__"):
            raise AttributeError(name)
        return _delegate(getattr(self._host, name), self)

    def __getitem__(self, key):
        if any(isinstance(k, ndarray) and k.dtype == bool for k in (key if isinstance(key, tuple) else (key,))):
            waited(_current[-1])
        return _result(self._host[_wrapping(key, self.shape, self)], self, always=True)

    def __setitem__(self, key, value):
        check_device(self, value)
        found, value = _wrapping(key, self.shape, self), _plain(value)
        if any(isinstance(k, np.ndarray) and k.dtype != bool for k in found):
            places = np.arange(self.size).reshape(self.shape)[found]
            each, first = np.unique(places, return_index=True)
            values = np.broadcast_to(value, places.shape).reshape(-1)[first]
            self._host[np.unravel_index(each, self.shape)] = values
        elif np.ndim(value) or any(isinstance(k, np.ndarray) for k in found):
            self._host[found] = value
        else:
            _wrap(self._host[found if any(k is Ellipsis for k in found) else (*found, ...)]).fill(value)

    def __len__(self):
        return len(self._host)

    def __float__(self):
        return float(self.get())

    def __int__(self):
        return int(self.get())

    def __index__(self):
        return self.get().__index__()

    def __bool__(self):
        return bool(self.get())

    def item(self, *at):
        return self.get().item(*at)

    def tolist(self):
        return self.get().tolist()

    def get(self):
        fake_kernels.used()
        waited(self.device.id)
        return self._host.copy()

    def set(self, host):
        assert type(host) is np.ndarray and host.shape == self.shape and host.dtype == self.dtype, "set() does not convert"
        check_device(self)
        if host.ctypes.data in pinned:
            _uploads.append((self._host, host))
        else:
            self._host[...] = host

    def fill(self, value):
        check_device(self)
        value = np.asarray(_plain(value), self.dtype)[()]
        self._host.fill(abs(value) if value == 0 and self.flags.c_contiguous else value)  # zeros are set byte by byte

    def copy(self, order="C"):  # CuPy copies between devices, to the current one
        return _wrap(self._host.copy(order))


#: Streams that arrays were exported for.
exported: list = []


def _plain(value):
    """Return an argument for NumPy; NumPy's own arrays are refused, as CuPy does."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    return value


def _wrapping(key, shape, of):
    """Return a key for NumPy, in which integer arrays name existing places: CuPy takes them modulo the size."""
    items = list(key) if isinstance(key, tuple) else [key]
    used = sum(k.ndim if isinstance(k, ndarray) and k.dtype == bool else k is not None and k is not Ellipsis for k in items)
    found, axis = [], 0
    for item in items:
        if isinstance(item, ndarray):
            check_device(item, of)
        if isinstance(item, ndarray) and item.dtype == bool:
            found.append(item._host)
            axis += item.ndim
            continue
        host = np.asarray(_plain(item)) if isinstance(item, (ndarray, list)) else None
        if host is not None and host.dtype.kind in "iu":
            found.append(host.astype(np.int64) % max(shape[axis], 1))
        else:
            found.append(_plain(item))
        if item is Ellipsis:
            axis += len(shape) - used
        elif item is not None:
            axis += 1
    return tuple(found)


def _result(value, *operands, always=False):
    """Return the result of a function of arrays: a view lies where its memory does, all else where it is computed."""
    hosts = [a for a in operands if isinstance(a, ndarray)]
    if isinstance(value, np.ndarray):
        for a in hosts:
            if value.base is not None and (np.may_share_memory(value, a._host) or not value.size):
                found = _wrap(value)
                found.device = a.device
                return found
    check_device(*operands)
    fail("allocation")
    return _wrap(value, always)


def _wrap(value, always=False):
    """Return a result of NumPy; its scalars are CuPy's arrays without dimensions."""
    if isinstance(value, tuple):
        return tuple(map(_wrap, value))
    if isinstance(value, list):
        return list(map(_wrap, value))
    if isinstance(value, (np.ndarray, np.number, np.bool_)) or (always and isinstance(value, np.generic)):
        found = ndarray.__new__(ndarray)
        found._host, found.device = np.asarray(value), Device()
        return found
    return value


#: Functions that wait for the device, as the shapes of their results are values there.
_WAITING = {"nonzero", "flatnonzero", "argwhere", "unique"}
#: Functions that look at no element.
_LOOKING = {"may_share_memory", "shares_memory", "broadcast_shapes", "result_type", "ndim", "shape", "size"}


def _delegate(function, *owner):
    """Return a function of NumPy, or a method of `owner`, for the arrays above."""
    name = getattr(function, "__name__", "")

    def run(*args, **kwargs):
        if name in _LOOKING:
            return function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})
        if name == "cumsum" and (owner or args)[0].dtype.kind == "f":
            assert len(args) + len(owner) > 1 or kwargs.get("axis") is not None, (
                "CUB's sums of a flat array vary from run to run"
            )
        if name in _WAITING:
            waited(_current[-1])
        if name == "take" and kwargs.get("mode") is None:
            kwargs["mode"] = "wrap"
        check_device(kwargs.get("out"))
        return _result(function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()}), *owner, *args)

    return run


# ---- cupyx.scipy.sparse ------------------------------------------------------------------------------------------------
class csr_matrix:
    """``cupyx.scipy.sparse.csr_matrix`` over SciPy's: made of its parts, which lie on the device."""

    def __init__(self, parts, shape=None):
        import scipy.sparse

        assert all(isinstance(part, ndarray) for part in parts), "CuPy's matrices are made of CuPy's arrays"
        check_device(*parts)
        self._matrix, self._device = (
            scipy.sparse.csr_matrix(tuple(p._host for p in parts), shape=shape),
            parts[0].device,
        )

    def _part(self, host):
        found = _wrap(host)
        found.device = self._device
        return found

    data = property(lambda self: self._part(self._matrix.data))
    indices = property(lambda self: self._part(self._matrix.indices))
    indptr = property(lambda self: self._part(self._matrix.indptr))
    shape = property(lambda self: self._matrix.shape)
    T = property(lambda self: self._like(self._matrix.T))

    def _like(self, matrix):
        assert self._device.id == _current[-1]
        found = csr_matrix.__new__(csr_matrix)
        found._matrix, found._device = matrix, self._device
        return found

    def __matmul__(self, other):
        check_device(self.data, other)
        return _wrap(self._matrix @ _plain(other))

    def __getitem__(self, key):
        return self._like(self._matrix[key])

    def toarray(self):
        check_device(self.data)
        return _wrap(self._matrix.toarray())

    def copy(self):
        return self._like(self._matrix.copy())


def sparse_modules():
    """Return ``cupyx`` and what it holds, by name."""
    sparse = types.ModuleType("cupyx.scipy.sparse")
    sparse.csr_matrix = csr_matrix
    scipy, cupyx = types.ModuleType("cupyx.scipy"), types.ModuleType("cupyx")
    scipy.sparse, cupyx.scipy = sparse, scipy
    return {module.__name__: module for module in (cupyx, scipy, sparse)}


class _Pool:
    """A pool that has other figures on each device."""

    def __init__(self):
        self.emptied, self.cached = [], 512

    def used_bytes(self):
        return 1024 + _current[-1]

    def free_bytes(self):
        return self.cached

    def total_bytes(self):
        return self.used_bytes() + self.cached

    def get_limit(self):
        return 0

    def free_all_blocks(self):
        self.emptied.append(_current[-1])
        self.cached = 0


def _device_field(capsule):
    """Return the field of a DLPack capsule that names the device."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return (ctypes.c_int32 * 2).from_address(pointer(capsule, b"dltensor") + 8)


def _from_dlpack(owner):
    kind, place = owner.__dlpack_device__()
    assert kind in (2, 13)
    capsule = owner.__dlpack__(stream=_current[-1])
    _device_field(capsule)[:] = (1, 0)
    proxy = type("Proxy", (), {"__dlpack__": lambda self, **options: capsule, "__dlpack_device__": lambda self: (1, 0)})
    found = _wrap(np.from_dlpack(proxy()))
    found.device = Device(place)
    return found


class _Module(types.ModuleType):
    """``cupy``: what is not here is NumPy's function on the arrays above."""

    def __getattr__(self, name):
        found = getattr(np, name)
        return _delegate(found) if callable(found) and not isinstance(found, type) else found


def module(devices=2):
    """Return the simulated ``cupy`` with this many devices."""
    _current[:] = [devices - 1]
    waits.clear()
    errors.clear()
    exported.clear()
    pinned.clear()
    cupy = _Module("cupy")
    runtime = types.SimpleNamespace(
        getDeviceCount=lambda: devices, getDevice=lambda: _current[-1], CUDARuntimeError=CUDARuntimeError,
        pointerGetAttributes=lambda ptr: types.SimpleNamespace(type=int(ptr in pinned)),
    )  # fmt: skip
    cupy.cuda = types.SimpleNamespace(runtime=runtime, Device=Device, MemoryPointer=MemoryPointer,
                                       UnownedMemory=UnownedMemory)  # fmt: skip
    cupy.cuda.compiler = types.SimpleNamespace(_NVRTCProgram=type("_NVRTCProgram", (fake_kernels.NVRTCProgram,), {}),
                                                CompileException=CompileException)  # fmt: skip
    cupy.cuda.Event, cupy.cuda.get_elapsed_time = fake_kernels.Event, fake_kernels.elapsed
    ranges.clear()
    cupy.cuda.nvtx = types.SimpleNamespace(RangePush=ranges.append, RangePop=lambda: ranges.append(None))
    cupy.cuda.memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    cupy.cuda.Stream, cupy.cuda.get_current_stream = fake_kernels.Stream, fake_kernels.current_stream
    fake_kernels.forget_streams()
    cupy.ElementwiseKernel, cupy.RawModule = fake_kernels.ElementwiseKernel, fake_kernels.RawModule
    cupy.ndarray = cupy.empty = ndarray
    cupy.asarray = lambda a, dtype=None: a if isinstance(a, ndarray) and dtype in (None, a.dtype) else cupy.array(a, dtype)
    cupy.array = lambda a, dtype=None: _result(
        np.array(_plain(a) if not isinstance(a, np.ndarray) else a, dtype), a, always=True
    )
    cupy.from_dlpack = _from_dlpack
    cupy.asnumpy = lambda a: a.get()
    cupy.linalg = types.SimpleNamespace(
        **{n: _delegate(getattr(np.linalg, n)) for n in ("cholesky", "det", "eigh", "inv", "qr", "slogdet", "solve", "svd")}
    )
    cupy.cuda.cublas = types.SimpleNamespace(gemmStridedBatchedEx=fake_kernels.multiply)
    cupy.cuda.get_cublas_handle = lambda: 1
    cupy.fft = types.SimpleNamespace(**{n: _delegate(getattr(np.fft, n)) for n in ("fft", "ifft")})
    pool = _Pool()
    cupy.get_default_memory_pool = cupy.get_default_pinned_memory_pool = lambda: pool
    return cupy
