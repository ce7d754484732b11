"""A simulation of CuPy's small part that mxop uses: arrays in host memory, kernels compiled by the host's C++ compiler.

It lets every machine run mxop's GPU paths (dispatch, requests, views, transfers, autograd).  It says nothing of CUDA, of
streams or of speed; ``pytest -m gpu`` does that.  As in CuPy, arrays do not mix with NumPy's and are not converted to them
silently.  :func:`module` makes the module.
"""

from __future__ import annotations

import ctypes
import re
import types

import numpy as np
from cuda_compilers import CTYPES, host_library, pointer

_TYPES = {
    "float32": "float", "float64": "double", "float16": "float16", "uint8": "unsigned char", "int32": "int",
    "int8": "signed char", "int64": "long long", "bool": "bool", "uint16": "unsigned short",
}  # fmt: skip
_current = [0]
#: Sources of the kernels made, by name: tests look at it.
made: dict[str, str] = {}


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


class MemoryPointer:
    """``cupy.cuda.MemoryPointer``: an address, and what keeps it alive."""

    def __init__(self, ptr, owner):
        self.ptr, self.owner = ptr, owner

    def __add__(self, nbytes):
        return MemoryPointer(self.ptr + nbytes, self.owner)


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
        return MemoryPointer(self._host.__array_interface__["data"][0], self._host)

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


# ---- kernels ---------------------------------------------------------------------------------------------------------
def _params(text):
    return [tuple(p.split()) for p in text.split(",") if p.strip()]


def _prologue(preamble):
    from mxop._gpu import preamble as ours

    return ours.FLOAT16 + preamble


def _scalar(value, kind):
    return CTYPES[kind](float(value) if kind.startswith("float") else int(value))


class ElementwiseKernel:
    """``cupy.ElementwiseKernel`` with plain parameters of fixed types."""

    def __init__(self, in_params, out_params, operation, name="kernel", preamble="", options=()):
        assert re.fullmatch(r"\w+", name) and isinstance(options, tuple) and "--use_fast_math" not in options
        self.inputs, self.outputs, self.name = _params(in_params), _params(out_params), name
        arrays = [f"const char *p{k}, const long long *d{k}" for k in range(len(self.inputs) + len(self.outputs))]
        scalars = [f"{_TYPES[t]} v{k}" for k, (t, _) in enumerate(self.inputs)]
        lines = []
        for k, (t, n) in enumerate(self.inputs):
            at = " + ".join(["0", *(f"i{a} * d{k}[{a}]" for a in range(8))])
            lines.append(f"const {_TYPES[t]} {n} = p{k} ? *(const {_TYPES[t]} *)(p{k} + {at}) : ({_TYPES[t]})v{k};")
        for j, (t, n) in enumerate(self.outputs):
            k = len(self.inputs) + j
            at = " + ".join(["0", *(f"i{a} * d{k}[{a}]" for a in range(8))])
            lines.append(f"{_TYPES[t]} &{n} = *({_TYPES[t]} *)(p{k} + {at});")
        loops = "".join(f"for (long long i{a} = 0; i{a} < shape[{a}]; i{a}++) " for a in range(8))
        lines.append("i++;")
        body = "\n".join(lines)
        scalars = ", ".join(s.replace("float16", "float") for s in scalars)
        self.source = (
            f'{_prologue(preamble)}extern "C" void run(const long long *shape, {", ".join(arrays)}'
            f"{', ' if scalars else ''}{scalars})\n{{\nlong long i = -1;\n{loops} {{\n{body}\n{operation};\n}}\n}}\n"
        )
        made[name] = self.source

    def __call__(self, *args, size=None):
        assert len(args) == len(self.inputs) + len(self.outputs), "number of arguments"
        arrays = [a for a in args if isinstance(a, ndarray)]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        operands, scalars = [], []
        for k, (value, (kind, name)) in enumerate(zip(args, self.inputs + self.outputs, strict=True)):
            if isinstance(value, ndarray):
                assert value.device.id == _current[-1], "Array device must be same as the current device"
                if value.dtype != kind:
                    raise TypeError(f"Type is mismatched. {name} {value.dtype} {kind}")
                if k >= len(self.inputs) and value.shape != shape:
                    raise ValueError("Out shape is mismatched")
                seen = np.broadcast_to(value._host, shape)
                steps = (0,) * (8 - seen.ndim) + seen.strides
                operands += [pointer(value._host), (ctypes.c_longlong * 8)(*steps)]
            else:
                assert k < len(self.inputs) and isinstance(value, (int, float)), f"{name} = {value!r}"
                operands += [None, (ctypes.c_longlong * 8)()]
            if k < len(self.inputs):
                if kind in CTYPES:
                    scalars.append(_scalar(0 if isinstance(value, ndarray) else value, kind))
                else:
                    scalars.append(
                        {"float16": ctypes.c_float, "bool": ctypes.c_bool, "uint16": ctypes.c_ushort}[kind](0)
                    )
        full = (ctypes.c_longlong * 8)(*((1,) * (8 - len(shape)) + tuple(shape)))
        host_library(self.source).run(full, *operands, *scalars)


class ReductionKernel:
    """``cupy.ReductionKernel`` of one array and scalars; reduced in order."""

    def __init__(self, in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name="kernel", reduce_type=None,
                 preamble="", options=()):  # fmt: skip
        assert re.fullmatch(r"\w+", name) and isinstance(options, tuple)
        (self.data, *self.scalars), (self.out,) = _params(in_params), _params(out_params)
        kind, result = _TYPES[self.data[0]], _TYPES[self.out[0]]
        scalars = "".join(f", {_TYPES[t]} {n}" for t, n in self.scalars)
        self.source = (
            f"{_prologue(preamble)}typedef {reduce_type} _type_reduce;\n#define REDUCE(a, b) ({reduce_expr})\n"
            f"#define POST_MAP(a) ({post_map_expr})\n"
            f'extern "C" void run(const {kind} *data, {result} *results, long long rows, long long columns{scalars})\n{{\n'
            f"for (long long row = 0; row < rows; row++) {{\n_type_reduce _s = _type_reduce({identity});\n"
            f"for (long long k = 0; k < columns; k++) {{ const {kind} {self.data[1]} = data[row * columns + k];\n"
            f"    _type_reduce _a = static_cast<_type_reduce>({map_expr}); _s = REDUCE(_s, _a); }}\n"
            f"{result} &{self.out[1]} = results[row]; POST_MAP(_s);\n}}\n}}\n"
        )
        made[name] = self.source

    def __call__(self, data, *scalars, out=None, axis=None, keepdims=False):
        assert data.dtype == self.data[0] and out.dtype == self.out[0] and not keepdims and out.flags.c_contiguous
        assert data.device.id == _current[-1] == out.device.id
        kept = [k for k in range(data.ndim) if k not in axis]
        rows = np.ascontiguousarray(data._host.transpose([*kept, *axis])).reshape(out.size, -1)
        assert out.shape == tuple(data.shape[k] for k in kept)
        values = [_scalar(v, t) for v, (t, _) in zip(scalars, self.scalars, strict=True)]
        n = ctypes.c_longlong
        host_library(self.source).run(pointer(rows), pointer(out._host), n(rows.shape[0]), n(rows.shape[1]), *values)


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
    runtime = types.SimpleNamespace(getDeviceCount=lambda: devices)
    cupy.cuda = types.SimpleNamespace(runtime=runtime, Device=Device, MemoryPointer=MemoryPointer)
    cupy.ndarray, cupy.ElementwiseKernel, cupy.ReductionKernel = ndarray, ElementwiseKernel, ReductionKernel
    cupy.asarray = lambda a, dtype=None: _wrap(
        np.asarray(_plain(a) if not isinstance(a, np.ndarray) else a, dtype), True
    )
    cupy.array = lambda a, dtype=None: _wrap(np.array(_plain(a) if not isinstance(a, np.ndarray) else a, dtype), True)
    cupy.asnumpy = lambda a: a.get()
    cupy.linalg = types.SimpleNamespace(
        **{
            n: _delegate(getattr(np.linalg, n))
            for n in ("cholesky", "det", "eigh", "inv", "qr", "slogdet", "solve", "svd")
        }
    )
    pool = _Pool()
    cupy.get_default_memory_pool = cupy.get_default_pinned_memory_pool = lambda: pool
    return cupy
