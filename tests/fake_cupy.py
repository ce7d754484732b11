"""A simulation of CuPy's small part that mxop uses: arrays in host memory, kernels compiled by the host's C++ compiler.

It lets every machine run mxop's GPU paths (dispatch, requests, views, transfers, autograd).  It says nothing of CUDA, of
streams or of speed; ``pytest -m gpu`` does that.  As in CuPy, arrays do not mix with NumPy's and are not converted to them
silently.  :func:`module` makes the module.
"""

from __future__ import annotations

import types

import fake_kernels
import numpy as np

_current = [0]
made = fake_kernels.made


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
        pass

    mem_info = (1 << 30, 1 << 31)


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


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    """``cupy.ndarray`` over host memory."""

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        if memptr is None:
            host = np.empty(shape, dtype, order)
        else:
            host = np.asarray(_Interface(memptr, tuple(shape), np.dtype(dtype), strides)).view(dtype)
        self._host, self.device = host, Device()

    @property
    def data(self):
        return MemoryPointer(
            UnownedMemory(self._host.__array_interface__["data"][0], self.nbytes, self._host, _current[-1]), 0
        )

    shape = property(lambda self: self._host.shape)
    strides = property(lambda self: self._host.strides)
    dtype = property(lambda self: self._host.dtype)
    size = property(lambda self: self._host.size)
    ndim = property(lambda self: self._host.ndim)
    nbytes = property(lambda self: self._host.nbytes)
    flags = property(lambda self: self._host.flags)
    T = property(lambda self: _wrap(self._host.T))

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return _wrap(getattr(ufunc, method)(*map(_plain, inputs), **{k: _plain(v) for k, v in kwargs.items()}))

    def __getattr__(self, name):  # sum, reshape, astype...
        if name.startswith("__"):
            raise AttributeError(name)
        return _delegate(getattr(self._host, name))

    def __getitem__(self, key):
        return _wrap(self._host[_plain(key)], always=True)

    def __setitem__(self, key, value):
        self._host[_plain(key)] = _plain(value)

    def __len__(self):
        return len(self._host)

    def __float__(self):
        return float(self._host)

    def __int__(self):
        return int(self._host)

    def __bool__(self):
        return bool(self._host)

    def get(self):
        return self._host.copy()

    def set(self, host):
        assert type(host) is np.ndarray and host.shape == self.shape and host.dtype == self.dtype, (
            "set() does not convert"
        )
        self._host[...] = host

    def fill(self, value):
        self._host.fill(_plain(value))

    def copy(self, order="C"):
        return _wrap(self._host.copy(order))


def _plain(value):
    """Return an argument for NumPy; NumPy's own arrays are refused, as CuPy does."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    return value


def _wrap(value, always=False):
    """Return a result of NumPy; its scalars are CuPy's arrays without dimensions."""
    if isinstance(value, tuple):
        return tuple(map(_wrap, value))
    if isinstance(value, list):
        return list(map(_wrap, value))
    if isinstance(value, np.ndarray) or (always and isinstance(value, np.generic)) or isinstance(value, np.number):
        found = ndarray.__new__(ndarray)
        found._host, found.device = np.asarray(value), Device()
        return found
    return value


def _delegate(function):
    def run(*args, **kwargs):
        return _wrap(function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()}))

    return run


# ---- cupyx.scipy.sparse ------------------------------------------------------------------------------------------------
class csr_matrix:
    """``cupyx.scipy.sparse.csr_matrix`` over SciPy's: made of its parts, which lie on the device."""

    def __init__(self, parts, shape=None):
        import scipy.sparse

        assert all(isinstance(part, ndarray) for part in parts), "CuPy's matrices are made of CuPy's arrays"
        self._matrix = scipy.sparse.csr_matrix(tuple(part._host for part in parts), shape=shape)

    data = property(lambda self: _wrap(self._matrix.data))
    indices = property(lambda self: _wrap(self._matrix.indices))
    indptr = property(lambda self: _wrap(self._matrix.indptr))
    shape = property(lambda self: self._matrix.shape)
    T = property(lambda self: _sparse(self._matrix.T))

    def __matmul__(self, other):
        return _wrap(self._matrix @ _plain(other))

    def __getitem__(self, key):
        return _sparse(self._matrix[key])

    def toarray(self):
        return _wrap(self._matrix.toarray())

    def copy(self):
        return _sparse(self._matrix.copy())


def _sparse(matrix):
    found = csr_matrix.__new__(csr_matrix)
    found._matrix = matrix
    return found


def sparse_modules():
    """Return ``cupyx`` and what it holds, by name."""
    sparse = types.ModuleType("cupyx.scipy.sparse")
    sparse.csr_matrix = csr_matrix
    scipy, cupyx = types.ModuleType("cupyx.scipy"), types.ModuleType("cupyx")
    scipy.sparse, cupyx.scipy = sparse, scipy
    return {module.__name__: module for module in (cupyx, scipy, sparse)}


class _Pool:
    def used_bytes(self):
        return 1024

    def free_bytes(self):
        return 512

    def get_limit(self):
        return 0

    def free_all_blocks(self):
        pass


class _Module(types.ModuleType):
    """``cupy``: what is not here is NumPy's function on the arrays above."""

    def __getattr__(self, name):
        found = getattr(np, name)
        return _delegate(found) if callable(found) and not isinstance(found, type) else found


def module(devices=2):
    """Return the simulated ``cupy`` with this many devices."""
    cupy = _Module("cupy")
    runtime = types.SimpleNamespace(getDeviceCount=lambda: devices, getDevice=lambda: _current[-1])
    cupy.cuda = types.SimpleNamespace(runtime=runtime, Device=Device, MemoryPointer=MemoryPointer,
                                       UnownedMemory=UnownedMemory)  # fmt: skip
    cupy.cuda.compiler = types.SimpleNamespace(_NVRTCProgram=type("_NVRTCProgram", (fake_kernels.NVRTCProgram,), {}))
    cupy.cuda.Stream, cupy.cuda.get_current_stream = fake_kernels.Stream, fake_kernels.Stream
    cupy.ElementwiseKernel, cupy.RawModule = fake_kernels.ElementwiseKernel, fake_kernels.RawModule
    cupy.ndarray = ndarray
    cupy.asarray = lambda a, dtype=None: _wrap(
        np.asarray(_plain(a) if not isinstance(a, np.ndarray) else a, dtype), True
    )
    cupy.array = lambda a, dtype=None: _wrap(np.array(_plain(a) if not isinstance(a, np.ndarray) else a, dtype), True)
    cupy.asnumpy = lambda a: a.get()
    cupy.add = _delegate(np.add)
    cupy.add.at = lambda a, key, values: np.add.at(_plain(a), tuple(map(_plain, key)), _plain(values))
    cupy.linalg = types.SimpleNamespace(
        **{
            n: _delegate(getattr(np.linalg, n))
            for n in ("cholesky", "det", "eigh", "inv", "qr", "slogdet", "solve", "svd")
        }
    )
    pool = _Pool()
    cupy.get_default_memory_pool = cupy.get_default_pinned_memory_pool = lambda: pool
    return cupy
