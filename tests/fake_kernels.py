"""CuPy's makers of kernels, simulated: the host's C++ compiler compiles their text, and blocks of threads run in turn.

``ElementwiseKernel`` and ``RawModule`` check what CuPy checks; :data:`compiled` counts what CuPy would compile.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections import Counter

import numpy as np
from cuda_compilers import OPTIONS, host_library, kernel_parameters, launcher, pointer
from cupy_text import TYPES, elementwise_text, joined, launch_text, parameters

#: Sources of the kernels made, by name: tests look at it.
made: dict[str, str] = {}
#: Texts that were compiled, each once: as CuPy's files on disk have them.
compiled: set[str] = set()
_CTYPES = {
    "float": ctypes.c_float, "double": ctypes.c_double, "int": ctypes.c_int, "unsigned char": ctypes.c_ubyte,
    "signed char": ctypes.c_byte, "long long": ctypes.c_longlong, "bool": ctypes.c_bool, "short": ctypes.c_short,
    "unsigned int": ctypes.c_uint, "unsigned long long": ctypes.c_ulonglong, "unsigned short": ctypes.c_ushort,
}  # fmt: skip


def _is_array(value):
    import fake_cupy

    return isinstance(value, fake_cupy.ndarray)


def _library(source, launch):
    import fake_cupy

    if source not in compiled:
        fake_cupy.fail("compilation")
    compiled.add(source)
    return host_library(source + launch)


class Graph:
    """``cupy.cuda.Graph``: kernels that were launched while a stream was captured."""

    def __init__(self, launches):
        self.launches = launches

    def launch(self, stream=None):
        assert not _capturing, "a graph is launched while a stream is captured"
        used()
        counts["graphs"] += 1
        for launch, arguments in self.launches:
            launch(*arguments)


class Stream:
    """``cupy.cuda.Stream``: kernels run at once, but for those of a stream that is captured; :func:`used` checks the order."""

    def __init__(self, null=False, non_blocking=False):
        self.captured = None
        self.ptr = 0 if null else id(self)

    def __eq__(self, other):
        return isinstance(other, Stream) and self.ptr == other.ptr

    __hash__ = object.__hash__

    def __enter__(self):
        _streams.append((_device(), self))
        return self

    def __exit__(self, *exception):
        _streams.pop()

    def is_capturing(self):
        return self.captured is not None

    def begin_capture(self):
        assert not _capturing
        self.captured = []
        _capturing.append(self.captured)

    def end_capture(self):
        self.captured = None
        return Graph(_capturing.pop())

    def record(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        assert not self.is_capturing(), "a stream that is captured waits for nothing outside"
        here = (_device(), self.ptr)
        _seen[here] = _seen.get(here, Counter()) | event.comes_after

    def synchronize(self):
        import fake_cupy

        assert not _capturing, "a stream that is captured does not wait"
        fake_cupy.waited(_device())


NULL = Stream(null=True)
_streams: list[tuple[int, Stream]] = []  # made current, by device
_uses: Counter = Counter()  # of each stream, which is a device and an address
_seen: dict[tuple[int, int], Counter] = {}  # by stream: how many uses of others come before what it does next
_last: dict[int, tuple[int, int]] = {}  # by device: the stream of the last use


def _device():
    import fake_cupy

    return fake_cupy._current[-1]


def current_stream(device=-1):
    """``cupy.cuda.get_current_stream``."""
    device = _device() if device == -1 else device
    return next((stream for place, stream in reversed(_streams) if place == device), NULL)


def used():
    """Note that something runs on the current stream: it has to come after all that ran on this device before.

    CuPy does not ask for that, mxop promises it.
    """
    if _capturing:
        return
    device = _device()
    here, last = (device, current_stream().ptr), _last.get(device)
    if last not in (None, here):
        assert _seen.get(here, Counter())[last] >= _uses[last], f"stream {here} does not wait for stream {last}"
    _uses[here] += 1
    _last[device] = here


def forget_streams():
    """Let all that ran be done."""
    _last.clear()
    _streams.clear()


class Event:
    """``cupy.cuda.Event``: a moment on a stream of the device that was the current one."""

    def __init__(self, block=False, disable_timing=False):
        self.timed = not disable_timing

    def record(self, stream=None):
        self.moment, self.device = time.perf_counter(), _device()
        here = (self.device, (current_stream() if stream is None else stream).ptr)
        self.comes_after = Counter({here: _uses[here]}) | _seen.get(here, Counter())

    def synchronize(self):
        import fake_cupy

        fake_cupy.waited(self.device)


def elapsed(begin, end):
    """Return milliseconds between two events, as ``cupy.cuda.get_elapsed_time`` does."""
    assert begin.device == end.device and begin.timed and end.timed
    return (end.moment - begin.moment) * 1e3


_capturing: list[list] = []
#: How many kernels, graphs and products were launched.
counts = {"kernels": 0, "graphs": 0, "products": 0}


def _launch(function, *arguments):
    """Launch a kernel, or note it where a stream is captured."""
    import fake_cupy

    if _capturing:
        _capturing[-1].append((function, arguments))
    else:
        fake_cupy.fail("launch")
        used()
        counts["kernels"] += 1
        function(*arguments)


def multiply(handle, turn_a, turn_b, m, n, k, alpha, a, a_type, a_row, a_step, b, b_type, b_row, b_step, beta, c, c_type,
             c_row, c_step, batch, summed, algorithm):  # fmt: skip
    """``cublas.gemmStridedBatchedEx``: products of matrices that lie column by column."""
    used()
    counts["products"] += 1
    assert handle and algorithm == -1 and a_type == b_type == c_type and m and n and k and batch
    dtype, wide = {2: ("e", "f"), 14: ("H", "f"), 0: ("f", "f"), 1: ("d", "d")}[c_type]
    assert summed in {"f": (68, 77), "d": (70,)}[wide] and all(x < 2**31 for x in (m, n, k, a_row, b_row, c_row))
    numbers = [ctypes.cast(p, ctypes.POINTER(_CTYPES["double" if wide == "d" else "float"]))[0] for p in (alpha, beta)]
    assert numbers == [1, 0] and c_step >= m * n

    def matrices(address, rows, columns, row, step):
        assert row >= rows, "the leading dimension is too small"
        size = np.dtype(dtype).itemsize
        reach = max(step, 0) * (batch - 1) + row * (columns - 1) + rows
        memory = np.frombuffer((ctypes.c_char * (reach * size)).from_address(address), dtype)
        return np.lib.stride_tricks.as_strided(memory, (batch, rows, columns), (step * size, size, row * size))

    def number(x):
        return (x.astype(np.uint32) << 16).view(np.float32) if dtype == "H" else x.astype(wide)

    left = matrices(a, k if turn_a else m, m if turn_a else k, a_row, a_step)
    right = matrices(b, n if turn_b else k, k if turn_b else n, b_row, b_step)
    left, right = (x.swapaxes(1, 2) if turned else x for x, turned in ((left, turn_a), (right, turn_b)))
    found = number(left) @ number(right)
    if dtype == "H":
        bits = found.view(np.uint32)
        found = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    matrices(c, m, n, c_row, c_step)[...] = found


class NVRTCProgram:
    """``cupy.cuda.compiler._NVRTCProgram``: what is compiled, and with which options; nothing is."""

    def __init__(self, source):
        self.source = source

    def compile(self, options=(), log_stream=None):
        return options, None


class ElementwiseKernel:
    """``cupy.ElementwiseKernel`` with parameters of fixed types."""

    def __init__(self, in_params, out_params, operation, name="kernel", reduce_dims=True, preamble="", no_return=False,
                 return_tuple=False, options=()):  # fmt: skip
        assert re.fullmatch(r"[a-zA-Z_]\w*", name) and no_return and options == OPTIONS
        self.inputs, self.outputs = parameters(in_params), parameters(out_params)
        self.operation, self.name, self.preamble = operation, name, preamble

    def __call__(self, *args, size=-1, block_size=128):
        params = [*self.inputs, *self.outputs]
        assert len(args) == len(params), f"{self.name}: {len(args)} arguments for {len(params)}"
        arrays = [_is_array(a) for a in args]
        shape = self._shape(params, args, arrays, size)
        if 0 in shape:
            return
        plain = [k for k, p in enumerate(params) if arrays[k] and not p.raw]
        seen = {k: np.broadcast_to(args[k]._host, shape) for k in plain}
        dims, strides = joined(shape, [list(seen[k].strides) for k in plain])
        lies = {k: (dims, steps) for k, steps in zip(plain, strides, strict=True)}
        given, counts = [], []
        for k, (p, value) in enumerate(zip(params, args, strict=True)):
            if arrays[k]:
                of, steps = lies.get(k) or (list(value.shape), list(value.strides))
                counts.append(len(of))
                given += [pointer(value._host), *((ctypes.c_longlong * (len(d) + 1))(*d) for d in (of, steps))]
            else:
                counts.append(None)
                given.append(_number(self.name, p, value))
        source = elementwise_text(self.inputs, self.outputs, counts, len(dims), self.operation, self.name, self.preamble)
        made[self.name] = source
        waits = "__syncthreads" in source or "__shfl" in source
        library = _library(source, launch_text(self.inputs, self.outputs, counts, len(dims), self.name, waits))
        n = int(np.prod(shape))
        grid, block = -(-n // block_size), min(block_size, n)
        _launch(getattr(library, f"launch_{self.name}"), ctypes.c_uint(grid), ctypes.c_uint(block), *given,
                (ctypes.c_longlong * (len(dims) + 1))(*dims))  # fmt: skip

    def _shape(self, params, args, arrays, size):
        """Return the shape that the kernel goes through, as CuPy finds it."""
        import fake_cupy

        plain = []
        for k, (p, value) in enumerate(zip(params, args, strict=True)):
            if arrays[k]:
                fake_cupy.check_device(value)
                if value.dtype != np.dtype(p.dtype):
                    raise TypeError(f"Type is mismatched. {p.name} {value.dtype} {p.dtype}")
                plain += [value] if not p.raw else []
            else:
                assert k < len(self.inputs) and not p.raw, f"{self.name}: {p.name} = {value!r}"
        if size != -1:
            assert not plain, "size is for kernels all of whose arrays are raw"
            return (size,)
        if not plain:
            raise ValueError("Loop size is undecided.")
        shape = np.broadcast_shapes(*[a.shape for a in plain])
        for p, value in zip(self.outputs, args[len(self.inputs) :], strict=True):
            if not p.raw and value.shape != shape:
                raise ValueError("Out shape is mismatched")
        return shape


def _number(name, p, value):
    """Return a number for C, converted as CuPy does it: what the type does not hold is an error."""
    assert isinstance(value, (int, float, np.generic)) and not isinstance(value, bool), f"{name}: {p.name} = {value!r}"
    return _CTYPES[TYPES[p.dtype]](np.array(value, p.dtype).item())


class RawModule:
    """``cupy.RawModule``."""

    def __init__(self, *, code, options=(), backend="nvrtc"):
        assert isinstance(options, tuple) and "--use_fast_math" not in options
        self._source = code

    def get_function(self, name):
        source = made[name] = self._source
        launch = getattr(_library(source, launcher(source)), f"launch_{name}")
        wide = "typedef unsigned long long mx_index" in source
        types = _CTYPES | {"mx_index": ctypes.c_ulonglong if wide else ctypes.c_uint}
        kinds = kernel_parameters(source)[name]

        def run(grid, block, args, shared_mem=0):
            assert 0 <= shared_mem <= 48 << 10
            assert len(args) == len(kinds), f"{name} takes {kinds}, got {len(args)} arguments"
            given = [_argument(name, value, kind, types) for value, kind in zip(args, kinds, strict=True)]
            _launch(launch, *map(ctypes.c_uint, (grid[0], grid[1] if len(grid) > 1 else 1, block[0])), *given)

        return run


def _argument(name, value, kind, types):
    """Return an argument of a function of a module for C; CuPy passes the bytes of numbers as they are."""
    import fake_cupy

    if kind.endswith("*"):
        if type(value) is int:
            return ctypes.c_void_p(value)
        assert _is_array(value), f"{name}: {value!r} for {kind}"
        fake_cupy.check_device(value)
        return pointer(value._host)
    assert isinstance(value, (int, np.generic)) and not isinstance(value, bool), f"{name}: {value!r} for {kind}"
    scalar = types[kind]
    if isinstance(value, np.generic):
        assert value.dtype == np.dtype(scalar), f"{name}: {value.dtype} for {kind}"
        return scalar(value.item())
    assert scalar not in (ctypes.c_float, ctypes.c_double), f"{name}: {value!r} for {kind}"
    return scalar(value)
