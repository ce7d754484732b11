"""States of optimizers as bytes: a ``.params`` file, in which JSON says what the arrays belong to; MXNet's pickles, read only.

Neither runs code that the bytes bring.  May import :mod:`.base`, :mod:`mxop.ndarray`, :mod:`mxop.lr_scheduler`.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
from typing import Any

import numpy as np

from .. import lr_scheduler
from .. import ndarray as nd
from ..errors import MXNetError, OpTypeError, OpValueError, shown
from ..ndarray import NDArray
from .base import Optimizer

_FORMAT = "mxop optimizer states 1"
_STRUCTURE = "structure"


# ---- written ---------------------------------------------------------------------------------------------------------
def dumps(states: dict[Any, Any], optimizer: Optimizer | None = None) -> bytes:
    """Return states, and an optimizer, as bytes.

    Raises
    ------
    OpTypeError
        For what is neither a number, a string, an array, an optimizer or scheduler, nor a collection of such.
    """
    arrays: dict[str, NDArray] = {}
    structure = {"format": _FORMAT, "states": _plain(states, arrays, "state"),
                 "optimizer": _plain(optimizer, arrays, "optimizer")}  # fmt: skip
    text = np.frombuffer(json.dumps(structure).encode(), np.uint8)
    return nd.save_tobuffer({_STRUCTURE: nd.array(text, dtype=np.uint8), **arrays})


def _plain(value: Any, arrays: dict[str, NDArray], where: str) -> Any:
    """Return a value as JSON has it: what is no plain number or string is ``{kind: content}``."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (NDArray, nd.sparse.BaseSparseNDArray)):
        name = str(len(arrays))
        arrays[name] = value
        return {"array": name}
    if isinstance(value, (tuple, list)):
        items = [_plain(item, arrays, f"{where}[{at}]") for at, item in enumerate(value)]
        return {type(value).__name__: items}
    if isinstance(value, dict):
        pairs = [[_plain(k, arrays, where), _plain(v, arrays, f"{where}[{k!r}]")] for k, v in value.items()]
        return {"dict": pairs}
    if isinstance(value, (Optimizer, lr_scheduler.LRScheduler)):
        kind = "optimizer" if isinstance(value, Optimizer) else "scheduler"
        own = value.__getstate__() if isinstance(value, Optimizer) else vars(value)
        return {kind: [type(value).__name__, _plain(own, arrays, f"{where} {type(value).__name__}")]}
    raise OpTypeError(f"get_states: {where} is {shown(value)}, of which no file is made; keep it apart")


# ---- read ------------------------------------------------------------------------------------------------------------
def loads(content: bytes) -> tuple[dict[Any, Any], Optimizer | None]:
    """Return the states that bytes hold, and the optimizer or None."""
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise OpTypeError(f"set_states: expected bytes, got {type(content).__name__}")
    content = bytes(content)
    if content[:1] in (b"\x80", b"(", b"c"):
        return _split(_unpickled(content))
    arrays = nd.load_frombuffer(content)
    try:
        structure = json.loads(bytes(arrays.pop(_STRUCTURE).asnumpy()))  # type: ignore[union-attr, call-overload]
        if structure["format"] != _FORMAT:
            raise OpValueError(f"set_states: the format is {structure['format']!r}, not {_FORMAT!r}")
        return _whole(structure["states"], arrays), _whole(structure["optimizer"], arrays)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as problem:
        if isinstance(problem, MXNetError):
            raise
        raise OpValueError(f"set_states: no states of an optimizer ({problem!r})") from problem


def _whole(value: Any, arrays: Any) -> Any:
    """Return the value that :func:`_plain` wrote."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        return arrays[content]
    if kind in ("tuple", "list"):
        items = [_whole(item, arrays) for item in content]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {_whole(k, arrays): _whole(v, arrays) for k, v in content}
    found = (_optimizer if kind == "optimizer" else _scheduler)(content[0])
    made = found.__new__(found)
    attributes = _whole(content[1], arrays)
    made.__setstate__(attributes) if kind == "optimizer" else vars(made).update(attributes)
    return made


def _optimizer(name: str) -> type:
    found = Optimizer.opt_registry.get(name.lower())
    if found is None:
        raise OpValueError(f"set_states: optimizer {name!r} is not registered; import the module that registers it")
    return found


def _scheduler(name: str) -> type:
    waiting = [lr_scheduler.LRScheduler]
    while waiting:
        one = waiting.pop()
        if one.__name__ == name:
            return one
        waiting += one.__subclasses__()
    raise OpValueError(f"set_states: there is no LRScheduler {name!r}; import the module that defines it")


# ---- MXNet's pickles -------------------------------------------------------------------------------------------------
class _Array:
    """An array in a pickle: the one record of a ``.params`` file."""

    def __init__(self, *nothing: Any):
        self.content: NDArray | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state.get("handle") is not None:
            whole = struct.pack("<QQQ", 0x112, 0, 1) + bytes(state["handle"]) + struct.pack("<Q", 0)
            self.content = nd.load_frombuffer(whole)[0]  # type: ignore[index]


def _scalar(dtype: np.dtype, content: bytes) -> Any:
    return np.frombuffer(content, dtype, 1)[0].item() if dtype.kind in "biuf" else None


#: What a pickle may call besides: numbers of NumPy's, and bytes as pickles of several ages have them.
_PLAIN = {
    ("builtins", "bytearray"): bytearray, ("__builtin__", "bytearray"): bytearray, ("numpy", "dtype"): np.dtype,
    ("numpy", "scalar"): _scalar, ("_codecs", "encode"): lambda text, encoding: text.encode("latin-1"),
}  # fmt: skip


class _Unpickler(pickle.Unpickler):
    """Makes arrays, optimizers and schedulers, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("mxnet.ndarray") and name in ("NDArray", "_ndarray_cls"):
            return _Array
        if module.startswith("mxnet.optimizer"):
            return _optimizer(name)
        if module == "mxnet.lr_scheduler":
            return _scheduler(name)
        if (module.partition(".")[0], name) in _PLAIN:
            return _PLAIN[module.partition(".")[0], name]
        raise OpValueError(f"set_states: the pickle asks for {module}.{name}, which states of an optimizer do not need")


def _unpickled(content: bytes) -> Any:
    try:
        return _Unpickler(io.BytesIO(content), encoding="latin-1").load()
    except MXNetError:
        raise
    except Exception as problem:  # what a damaged pickle raises can be anything
        raise OpValueError(f"set_states: a pickle that cannot be read ({problem!r})") from problem


def _split(found: Any) -> tuple[dict[Any, Any], Optimizer | None]:
    states, optimizer = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(states, dict) or not (optimizer is None or isinstance(optimizer, Optimizer)):
        raise OpValueError(f"set_states: the pickle holds {shown(found)}, no states of an optimizer")
    return {index: _arrays(state) for index, state in states.items()}, optimizer


def _arrays(state: Any) -> Any:
    if isinstance(state, (tuple, list)):
        return type(state)(_arrays(one) for one in state)
    return state.content if isinstance(state, _Array) else state
