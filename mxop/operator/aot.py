"""An operator compiled ahead of time: MindSpore's C functions ``Func``, ``FuncInit`` and ``FuncInferShape``.

``Func`` is C.  The two others speak C++ (``AotExtra``, ``std::vector``): a shim compiled against mxop's header stands between,
which also turns exceptions into errors.
"""

from __future__ import annotations

import ctypes
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._core import core
from ..library import build, get_include
from ..support import dtypes
from ..support.errors import DeviceError, MXNetError, OpLookupError, OpTypeError, OpValueError
from .body import Body

SOURCES = (".c", ".cc", ".cpp", ".cxx", ".cu")
_THREW = -2147483647
_ROOM = 4096
_MANY = 256
_lock = threading.Lock()
_loaded: dict[str, ctypes.CDLL] = {}


class Aot(Body):
    """Calls a function of a shared library.

    Parameters
    ----------
    func : str
        ``"lib.so:Func"``, or ``"file.cc:Func"`` to be compiled; ``file.cu`` by nvcc.

    Raises
    ------
    OpLookupError
        When the file or the function does not exist.
    MXNetError
        When a source does not compile or a library does not load.
    """

    writes_all = False

    def __init__(self, func: str):
        path, function = _split(func)
        self.name = function
        self.doc = f"``{function}`` of {Path(path).name}."
        self._who = f"Custom {function}"
        source = Path(path)
        self._cuda = source.suffix == ".cu"
        self._library = _load(_built(source, self._who) if source.suffix in SOURCES else source, self._who)
        self._run = self._symbol(function)
        if self._run is None:
            raise OpLookupError(f'{self._who}: {path} has no function {function!r}; is it declared extern "C"?')
        self._init, self._infer = self._symbol(function + "Init"), self._symbol(function + "InferShape")
        self._calls: dict[tuple, tuple[_Described, _Extra | None, list[int]]] = {}
        if self._init or self._infer:
            _shim(self._who)  # these two cannot be called without it

    def _symbol(self, name: str) -> ctypes.c_void_p | None:
        try:
            return ctypes.cast(getattr(self._library, name), ctypes.c_void_p)
        except AttributeError:
            return None

    # ---- inference ------------------------------------------------------------------------------------------------------
    def infer_shapes(self, shapes: Sequence[tuple[int, ...]], attributes: Any) -> list[tuple[int, ...]] | None:
        if self._infer is None:
            return None
        described = _Described(shapes, [])
        extra, found, error = _Extra(attributes), (ctypes.c_int64 * 64)(), ctypes.create_string_buffer(_ROOM)
        n = _shim(self._who).mxop_aot_infer(
            self._infer, described.ndims, described.shapes, extra.handle, found, len(found), error, _ROOM
        )
        if n == _THREW:
            raise MXNetError(f"{self._who}: {self.name}InferShape threw: {error.value.decode(errors='replace')}")
        if not 0 <= n <= len(found) or any(d < 0 for d in found[:n]):
            raise OpValueError(f"{self._who}: {self.name}InferShape returned {list(found[: max(n, 0)])}; expected a shape")
        return [tuple(found[:n])]

    # ---- running --------------------------------------------------------------------------------------------------------
    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], attributes: Any) -> None:
        arrays = [*inputs, *outputs]
        device = arrays[0]._device
        self._check_device(device.name)
        described, extra, sizes = self._prepared(arrays, attributes)
        spaces = [device.empty((n,), dtypes.UINT8) for n in sizes]
        pointers = [core.address(a) for a in (*arrays, *spaces)]
        with device.current():
            self._checked(self._called(described, pointers, extra, device.stream() or None))

    def _check_device(self, name: str) -> None:
        """Raise unless the library is for a device."""
        targets = ("GPU",) if self._cuda else ("CPU", "GPU") if self.for_gpu else ("CPU",)
        if name not in targets:
            what = "CUDA code" if self._cuda else "a library for the CPU, without an info with .target('GPU')"
            raise DeviceError(f"{self._who} is {what}, but its inputs are on the {name}; move them with as_in_context")

    def _prepared(self, arrays: Sequence[Any], attributes: Any) -> tuple[_Described, _Extra | None, list[int]]:
        """Return what a call hands over besides memory: made once for equal shapes, types and attributes."""
        key = (tuple([(a.shape, a.dtype_code) for a in arrays]), tuple(attributes.items()))
        found = self._calls.get(key)
        if found is None:
            shapes, names = [a.shape for a in arrays], [dtypes.NAMES[a.dtype_code] for a in arrays]
            extra, sizes = None, []
            if _shim_or_none() is not None:
                extra = _Extra(attributes)
                self._initialize(extra, _Described(shapes, names))
                sizes = extra.workspaces()
            described = _Described([*shapes, *((n,) for n in sizes)], [*names, *["uint8"] * len(sizes)])
            if len(self._calls) >= _MANY:
                self._calls.clear()
            found = self._calls[key] = described, extra, sizes
        return found

    def _initialize(self, extra: _Extra, described: _Described) -> None:
        if self._init is not None:
            error = ctypes.create_string_buffer(_ROOM)
            code = _shim(self._who).mxop_aot_init(
                self._init, described.ndims, described.shapes, described.dtypes, extra.handle, error, _ROOM
            )
            self._checked((code, error), "Init")

    def _called(self, described: _Described, pointers: list[int], extra: _Extra | None, stream: int | None) -> tuple[int, Any]:
        n = len(pointers)
        params, error = (ctypes.c_void_p * n)(*pointers), _error_room()
        shim = _shim_or_none()
        if shim is None:
            function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, *[ctypes.c_void_p] * 6)(self._run.value)  # type: ignore[union-attr]
            at = [ctypes.cast(p, ctypes.c_void_p) for p in (params, described.ndims, described.shapes, described.dtypes)]
            return function(n, *at, stream, None), error
        code = shim.mxop_aot_run(
            self._run, n, params, described.ndims, described.shapes, described.dtypes, stream,
            None if extra is None else extra.handle, error, _ROOM,
        )  # fmt: skip
        return code, error

    def _checked(self, result: tuple[int, Any], suffix: str = "") -> None:
        code, error = result
        if code == _THREW and error.value:
            raise MXNetError(f"{self._who}: {self.name}{suffix} threw: {error.value.decode(errors='replace')}")
        if code:
            raise MXNetError(f"{self._who}: {self.name}{suffix} returned the error code {code}")


def _split(func: Any) -> tuple[str, str]:
    if not isinstance(func, str):
        raise OpTypeError(f"Custom: func_type='aot' takes a text \"file:function\", got {func!r}")
    path, colon, function = func.rpartition(":")
    if not colon or not path or not function.isidentifier():
        raise OpValueError(f'Custom: func_type=\'aot\' takes "lib.so:Func" or "file.cc:Func", got {func!r}')
    return path, function


def _built(source: Path, who: str) -> Path:
    """Return the library of a source file, compiled now if it has not been."""
    if not source.is_file():
        raise OpLookupError(f"{who}: there is no file {str(source)!r}")
    options: dict[str, Any] = {"include_dirs": [Path(get_include()) / "mxop"]}
    if source.suffix == ".cu":
        if shutil.which("nvcc") is None:
            raise DeviceError(f"{who}: {source.name} needs CUDA's compiler nvcc, which is not on the path")
        options["compiler"] = "nvcc --forward-unknown-to-host-compiler"
    try:
        return Path(build(source, **options))
    except MXNetError as problem:
        raise type(problem)(f"{who}: {problem}") from None


def _load(path: Path, who: str) -> ctypes.CDLL:
    """Load a library; a path without folder is one in the current folder."""
    if not path.is_file():
        raise OpLookupError(f"{who}: there is no file {str(path)!r}")
    full = str(path.resolve())
    with _lock:
        if full not in _loaded:
            try:
                _loaded[full] = ctypes.CDLL(full)
            except OSError as problem:
                raise MXNetError(f"{who}: {str(path)!r} cannot be loaded: {problem}") from None
        return _loaded[full]


class _Described:
    """Shapes and types of arrays as C has them."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], names: Sequence[str]):
        n = len(shapes)
        self._sizes = [(ctypes.c_int64 * max(len(s), 1))(*s) for s in shapes]
        self.ndims = (ctypes.c_int * max(n, 1))(*map(len, shapes))
        pointer = ctypes.POINTER(ctypes.c_int64)
        self.shapes = (pointer * max(n, 1))(*(ctypes.cast(s, pointer) for s in self._sizes))
        self.dtypes = (ctypes.c_char_p * max(len(names), 1))(*(name.encode() for name in names))


_rooms = threading.local()


def _error_room() -> Any:
    """Return this thread's buffer for messages."""
    found = getattr(_rooms, "buffer", None)
    if found is None:
        found = _rooms.buffer = ctypes.create_string_buffer(_ROOM)
    found[0] = b"\0"
    return found


# ---- the shim -----------------------------------------------------------------------------------------------------------
_shim_loaded: list[ctypes.CDLL | None] = []


def _shim(who: str) -> Any:
    """Return the shim, compiled on first use."""
    found = _shim_or_none()
    if found is None:
        build_shim(f"{who}: calling its Init and InferShape, which are C++,")
    return found


def _shim_or_none() -> Any:
    if not _shim_loaded:
        try:
            _shim_loaded.append(build_shim("mxop's shim for operators compiled ahead of time"))
        except DeviceError:  # no compiler: Func can be called all the same
            _shim_loaded.append(None)
    return _shim_loaded[0]


def build_shim(who: str) -> ctypes.CDLL:
    """Compile and load the shim."""
    found = _load(_built(Path(__file__).with_name("native") / "aot_shim.cc", who), who)
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    ints, listed = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.POINTER(ctypes.c_int64))
    texts, longs = ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_int64)
    found.mxop_aot_extra_new.restype = pointer
    found.mxop_aot_extra_free.argtypes = [pointer]
    found.mxop_aot_extra_attr.argtypes = [pointer, text, ctypes.c_char, ctypes.c_int64, longs,
                                          ctypes.POINTER(ctypes.c_double), texts, ctypes.c_int64, longs]  # fmt: skip
    found.mxop_aot_extra_workspace.argtypes = [pointer, ctypes.POINTER(size), size]
    found.mxop_aot_extra_workspace.restype = size
    found.mxop_aot_init.argtypes = [pointer, ints, listed, texts, pointer, text, size]
    found.mxop_aot_infer.argtypes = [pointer, ints, listed, pointer, longs, ctypes.c_int, text, size]
    found.mxop_aot_run.argtypes = [pointer, ctypes.c_int, ctypes.POINTER(pointer), ints, listed, texts, pointer, pointer,
                                   text, size]  # fmt: skip
    return found


class _Extra:
    """An AotExtra with the attributes of a call; freed with this object."""

    def __init__(self, attributes: Any):
        self._library = _shim("attributes of an operator")
        self.handle = ctypes.c_void_p(self._library.mxop_aot_extra_new())
        for name, value in attributes.items():
            if value is not None:
                self._set(name, value)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._library.mxop_aot_extra_free(self.handle)

    def _set(self, name: str, value: Any) -> None:
        kind, flat, rows = _encoded(name, value)
        n = len(flat)
        ints = (ctypes.c_int64 * max(n, 1))(*map(int, flat)) if kind in "biBIJ" else None
        floats = (ctypes.c_double * max(n, 1))(*flat) if kind in "fFG" else None
        texts = (ctypes.c_char_p * max(n, 1))(*(t.encode() for t in flat)) if kind in "sS" else None
        lengths = (ctypes.c_int64 * max(len(rows), 1))(*rows) if kind in "JG" else None
        self._library.mxop_aot_extra_attr(self.handle, name.encode(), kind.encode(), n, ints, floats, texts, len(rows), lengths)

    def workspaces(self) -> list[int]:
        """Return the sizes that Init asked for, in bytes."""
        n = self._library.mxop_aot_extra_workspace(self.handle, None, 0)
        sizes = (ctypes.c_size_t * max(n, 1))()
        self._library.mxop_aot_extra_workspace(self.handle, sizes, n)
        return list(sizes[:n])


def _encoded(name: str, value: Any) -> tuple[str, list, list[int]]:
    """Return the kind, the flat values and the lengths of rows of an attribute."""
    scalars = {bool: "b", int: "i", float: "f", str: "s"}
    if type(value) in scalars:
        return scalars[type(value)], [value], []
    if isinstance(value, (tuple, list)):
        if value and all(isinstance(row, (tuple, list)) for row in value):
            flat = [v for row in value for v in row]
            whole = all(type(v) is int for v in flat)
            return ("J" if whole else "G"), flat if whole else [float(v) for v in flat], [len(row) for row in value]
        kinds = {type(v) for v in value}
        for kind, letter in ((bool, "B"), (int, "I"), (str, "S")):
            if kinds <= {kind}:
                return letter if value else "I", list(value), []
        if kinds <= {int, float}:
            return "F", [float(v) for v in value], []
    raise OpTypeError(f"attribute {name}={value!r} cannot be handed to a compiled operator")
