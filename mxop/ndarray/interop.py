"""Arrays of other libraries: NumPy's functions on NDArrays, operands that are no NDArrays, DLPack, pickle."""

from __future__ import annotations

import operator
import pickle
import sys
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._core import core, tape
from ..context import Context
from ..ops.binary import PYTHON_NAMES
from ..support import dtypes
from ..support.errors import GradientWarning, MissingPackageError, MXNetError, OpTypeError, OpValueError, translated
from . import creation, indexing
from .register import F

Dense = core.Dense
NDArray = core.NDArray

__all__ = ["from_dlpack", "to_dlpack_for_read", "to_dlpack_for_write"]


# ---- operands -------------------------------------------------------------------------------------------------------
def foreign(x: NDArray, other: Any) -> Any:
    """Convert the other operand of an arithmetic operator on `x`, or return NotImplemented.

    Numbers of any kind become Python numbers; a NumPy array becomes an NDArray on the device of `x` and, as a number
    would, takes the element type of `x`.
    """
    if isinstance(other, np.ndarray):
        if other.ndim == 0:
            other = other[()]
        elif other.dtype.kind in "biuf":
            code = x.dtype_code
            dtypes.check_numbers(other, code, f"an operand of an NDArray, a numpy.ndarray of {other.dtype}")
            found = creation.placed(np.asarray(indexing.converted(other, code), order="C"), x.context)
            found._is_mask = other.dtype.kind == "b"
            return found
        else:
            return NotImplemented
    if isinstance(other, (bool, np.bool_, Integral)):
        return int(other)
    if isinstance(other, (Real, np.floating)):
        return float(other)
    return NotImplemented


# ---- NumPy's ufuncs -------------------------------------------------------------------------------------------------
_ARITHMETIC = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "true_divide": operator.truediv, "power": operator.pow, "remainder": operator.mod, "mod": operator.mod,
    "floor_divide": operator.floordiv, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
}  # fmt: skip
#: Ufuncs of two operands that are functions of ``mx.nd`` under the same name.
_TWO = ("maximum", "minimum", "hypot", "logical_and", "logical_or", "logical_xor")
_ONE = {name: name for name in (
    "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "reciprocal", "sin", "cos", "tan", "arcsin", "arccos",
    "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "degrees", "radians", "floor", "ceil", "trunc",
)} | {"rad2deg": "degrees", "deg2rad": "radians", "rint": "_round_half_even"}  # fmt: skip
#: These give integers for integers in NumPy too.
_ONE_ANY = {"absolute": "abs", "fabs": "abs", "negative": "negative", "sign": "sign", "square": "square"}


def array_ufunc(self: NDArray, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Apply a NumPy ufunc to NDArrays; the result is an NDArray.

    Ufuncs that have an operator (arithmetic, comparison, exp, sin, maximum...) run as that operator, with its rules for
    element types, and are differentiable. All others, and calls with options such as ``where=``, are computed by NumPy
    on the arrays' memory; in ``autograd.record()`` these refuse arrays with a history, for the gradient would be lost.
    Results of a type that NDArrays do not have stay NumPy arrays. ``out=`` may be an NDArray or a NumPy array.
    """
    out = kwargs.pop("out", ())
    if method == "__call__" and not kwargs and all(isinstance(o, Dense) for o in out):
        found = _as_operator(self, ufunc, inputs)
        if found is not NotImplemented:
            if not out:
                return found
            if isinstance(found, tuple):
                return _by_numpy(ufunc, method, inputs, out, kwargs)
            if out[0].shape != found.shape:
                raise OpValueError(f"numpy.{ufunc.__name__}: out has shape {out[0].shape}, the result has shape {found.shape}")
            out[0][...] = found
            return out[0]
    return _by_numpy(ufunc, method, inputs, out, kwargs)


def _as_operator(x: NDArray, ufunc: Any, inputs: tuple) -> Any:
    name = ufunc.__name__
    if name == "divmod":
        parts = [_as_operator(x, part, inputs) for part in (np.floor_divide, np.remainder)]
        return NotImplemented if NotImplemented in parts else tuple(parts)
    if ufunc.nin == 1:
        op = _ONE_ANY.get(name) or (_ONE.get(name) if inputs[0].dtype_code in dtypes.FLOATS else None)
        return NotImplemented if op is None else getattr(F, op)(inputs[0])
    if ufunc.nin != 2 or ufunc.nout != 1 or not (name in _ARITHMETIC or name in _TWO):
        return NotImplemented
    operands = []
    for given in inputs:
        converted = given if isinstance(given, Dense) or type(given) in (int, float) else foreign(x, given)
        if converted is NotImplemented:
            return NotImplemented
        operands.append(converted)
    left, right = operands
    if name in _ARITHMETIC:
        return _ARITHMETIC[name](left, right)
    choice = PYTHON_NAMES[name]
    if isinstance(left, Dense):
        dense = isinstance(right, Dense)
        return getattr(F, choice.arrays)(left, right) if dense else getattr(F, choice.scalar)(left, scalar=right)
    return getattr(F, choice.rscalar)(right, scalar=left)


def _by_numpy(ufunc: Any, method: str, inputs: tuple, out: tuple, kwargs: dict) -> Any:
    if tape.recording() and any(isinstance(a, Dense) and tape.tracked(a) for a in (*inputs, *out)):
        raise MXNetError(
            f"numpy.{ufunc.__name__} ({method}) on an array that autograd records would lose the gradient; use an "
            "operator of mx.nd, or detach() the array first"
        )

    def host(a: Any) -> Any:
        return core.as_numpy(a) if isinstance(a, Dense) else a

    if out:
        kwargs["out"] = tuple(host(o) for o in out)
    kwargs = {k: host(v).astype(bool) if k == "where" and isinstance(v, Dense) else host(v) for k, v in kwargs.items()}
    with translated(f"numpy.{ufunc.__name__}"):
        found = getattr(ufunc, method)(*map(host, inputs), **kwargs)
    if not isinstance(found, tuple):
        return out[0] if out else _from_host(found)
    given = out or (None,) * len(found)
    return tuple(_from_host(f) if o is None else o for f, o in zip(found, given, strict=True))


def _from_host(found: Any) -> Any:
    if not isinstance(found, np.ndarray):
        return found
    try:
        dtypes.code_of(found.dtype)
    except OpTypeError:
        return found
    return core.from_numpy(np.asarray(found, order="C"), False)


#: Libraries whose own lines are not the user's.
_LIBRARIES = ("jax", "mxop", "numpy")


def leaving(x: NDArray) -> None:
    """Warn, once for each line of the user's, that NumPy or its like reads a recorded array: what it computes has no gradient.

    ``asnumpy()``, ``item()``, ``print`` and the like say what they do, and do not come here.
    """
    if not tape.recording():
        return
    frame = sys._getframe(1)
    while frame.f_back is not None and (frame.f_globals.get("__name__") or "").split(".")[0] in _LIBRARIES:
        frame = frame.f_back
    warnings.warn_explicit(
        "NumPy reads an array that autograd records: what it computes has no gradient.  Use an operator of mx.nd, or say "
        "that it is meant, with asnumpy() or detach()",
        GradientWarning, frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )  # fmt: skip


# ---- DLPack ---------------------------------------------------------------------------------------------------------
def dlpack(
    self: NDArray, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """Return a DLPack capsule over the array's memory (see :func:`from_dlpack`); NumPy and CuPy make it."""
    memory, named = self._memory, self.dtype_code != dtypes.BFLOAT16
    options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    given = {k: v for k, v in options.items() if v is not None}
    source = memory if named else memory.view(np.uint16)
    with self._device.current(), translated("DLPack"):
        try:
            capsule = source.__dlpack__(stream=stream, **given)
        except TypeError:  # an old NumPy: stream is all it knows
            if not given.keys() <= {"max_version"}:
                raise
            capsule = source.__dlpack__(stream=stream)
    if not named:
        _tensor_of(capsule).code = _BFLOAT
    return capsule


#: NumPy before 2.1 knows only capsules that cannot say whether they may be written.
_OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.1.0"
#: DLPack's codes of kinds of elements, and of devices: memory of CUDA, and memory that CUDA manages.
_UINT, _BFLOAT = 1, 4
_CUDA = 2, 13


def _tensor_of(capsule: Any) -> Any:
    """Return the fields of a DLPack capsule that hold the device and the element type; NumPy cannot name bfloat16."""
    import ctypes

    class Tensor(ctypes.Structure):
        _fields_ = (
            ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
            ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        )  # fmt: skip

    api = ctypes.pythonapi
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    versioned = "dltensor_versioned" in repr(capsule)
    tensor = pointer(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    return Tensor.from_address(tensor + (32 if versioned else 0))  # behind version, context, deleter and flags


def dlpack_device(self: NDArray) -> tuple[int, int]:
    """Return DLPack's (device type, device id)."""
    return self._memory.__dlpack_device__()


@property
def cuda_array_interface(self: NDArray) -> dict[str, Any]:
    """What CuPy, Numba and PyTorch read to share the memory of an array on a GPU; others do not have it."""
    with self._device.current():
        found = self._memory.__cuda_array_interface__
    if tape.tracked(self):
        leaving(self)
    return found


class _Capsule:
    """A bare capsule as an object of the array API."""

    def __init__(self, capsule: Any, device: tuple[int, int]):
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class _Memory:
    """Writable memory of another owner, for NumPy."""

    def __init__(self, found: np.ndarray):
        self.owner = found
        self.__array_interface__ = found.__array_interface__ | {"data": (found.__array_interface__["data"][0], False)}


def from_dlpack(dlpack: Any) -> NDArray:
    """Return an array over the memory of an object with ``__dlpack__``, or of a capsule; nothing is copied.

    The owner lives as long as the array. An exporter that marks its memory read-only gives a read-only array.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.zeros(2, "float32")
    >>> mx.nd.from_dlpack(a)[:] = 5
    >>> a.tolist()
    [5.0, 5.0]
    """
    is_capsule = type(dlpack).__name__ == "PyCapsule"
    if not is_capsule and not hasattr(dlpack, "__dlpack__"):
        raise OpTypeError(f"nd.from_dlpack: {type(dlpack).__name__} has no __dlpack__ and is no DLPack capsule")
    if is_capsule and '"dltensor' not in repr(dlpack):
        raise OpValueError(f"nd.from_dlpack: {dlpack!r} is no DLPack capsule, or was used: each gives its memory to one array")
    kind, place = tuple(_tensor_of(dlpack).device) if is_capsule else map(int, dlpack.__dlpack_device__())
    if not is_capsule and "bfloat16" in str(getattr(dlpack, "dtype", "")):
        dlpack, is_capsule = _exported(dlpack), True
    tells = not _OLD_NUMPY and not (is_capsule and "versioned" not in repr(dlpack))
    tensor = _tensor_of(dlpack) if is_capsule else None
    bits = tensor is not None and tensor.code == _BFLOAT
    if bits:
        tensor.code = _UINT  # NumPy reads integers of the same bits
    source = _Capsule(dlpack, (kind, place)) if is_capsule else dlpack
    if kind in _CUDA:
        return _of_gpu(source, Context("gpu", place)._device, bits)
    with translated("nd.from_dlpack"):
        found = np.from_dlpack(source)
    if not tells and not found.flags.writeable and found.size:
        found = np.asarray(_Memory(found))  # old capsules cannot say whether they may be written; MXNet's may
    if bits:
        found = found.view(dtypes.numpy_dtype(dtypes.BFLOAT16))
    return creation.over(found)


def _of_gpu(source: Any, device: Any, bits: bool) -> NDArray:
    """Return an array over memory of a GPU; `bits` says that integers stand for bfloat16."""
    if isinstance(source, device.library.ndarray) and any(step % source.itemsize for step in source.strides):
        raise OpValueError(f"nd.from_dlpack: strides of {source.strides} bytes are not multiples of the {source.itemsize} "
                           "bytes of an element, as DLPack requires; pass a copy")  # fmt: skip
    with device.current(), translated("nd.from_dlpack"):
        found = device.library.from_dlpack(source)
        return device.wrap(found.view(dtypes.numpy_dtype(dtypes.BFLOAT16)) if bits else found)


def _exported(owner: Any) -> Any:
    """Return an object's DLPack capsule, of the newest version that it and NumPy know."""
    try:
        if _OLD_NUMPY:
            return owner.__dlpack__()
        return owner.__dlpack__(max_version=(1, 0))
    except TypeError:
        return owner.__dlpack__()


def to_dlpack_for_read(data: NDArray) -> Any:
    """Return a DLPack capsule over the array's memory, not to be written."""
    return dlpack(_array(data))


def to_dlpack_for_write(data: NDArray) -> Any:
    """Return a DLPack capsule over the array's memory, which may be written."""
    return dlpack(_array(data))


def _array(data: Any) -> NDArray:
    if not isinstance(data, Dense):
        raise OpTypeError(f"a DLPack capsule is made of an NDArray, got {type(data).__name__}")
    return data


def jax_array(self: NDArray) -> Any:
    """Return a JAX array of a copy; ``jnp.asarray(x)`` and JAX's arithmetic call this."""
    try:
        import jax
    except ImportError:
        raise MissingPackageError('a JAX array needs JAX: pip install "jax"') from None
    if tape.tracked(self):
        leaving(self)
    return jax.numpy.asarray(self.asnumpy())


# ---- pickle ---------------------------------------------------------------------------------------------------------
def reduce_ex(self: NDArray, protocol: int) -> tuple:
    """Pickle values, element type and device, but no history or gradient; out of band where protocol 5 lets it."""
    ctx = self.context
    host = core.contiguous(self._device.to_host(self))
    if isinstance(protocol, int) and protocol >= 5 and host.size:
        data: Any = pickle.PickleBuffer(core.as_numpy(host).reshape(-1).view(np.uint8))  # bfloat16 has no buffer format
    else:
        data = core.as_numpy(host).tobytes()
    return rebuild, (data, dtypes.NAMES[self.dtype_code], self.shape, ctx.device_type, ctx.device_id)


def set_state(self: NDArray, state: dict[str, Any]) -> None:
    """Become the array whose state MXNet has pickled: ``{"handle": ...}``, a record of a ``.params`` file or None."""
    from .io import of_state

    made = of_state(state, "default")
    if made is not None:
        core.become(self, made, False)


def rebuild(data: Any, dtype: str, shape: tuple, device_type: str, device_id: int) -> NDArray:
    """Make an array of pickled parts: over the buffer itself when it is writable, else of a copy."""
    with translated("a pickled array"):
        found = np.frombuffer(data, dtypes.numpy_dtype(dtypes.code_of(dtype))).reshape(shape)
    if not found.flags.writeable or not found.flags.aligned:
        found = found.copy()
    return creation.placed(found, Context(device_type, device_id))


def copy(self: NDArray) -> NDArray:
    """Return a copy on the same device."""
    return F._copy(self)


def deepcopy(self: NDArray, memo: Any = None) -> NDArray:
    """Return a copy without history."""
    made = creation.blank(self.shape, self.dtype_code, self.context)
    core.copy(self, made)
    made._is_mask = self._is_mask
    return made
