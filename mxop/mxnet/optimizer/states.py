"""States of optimizers as bytes: a ``.params`` file, in which JSON says what the arrays belong to; MXNet's pickles, read only.

Both are read as :class:`~.pickled.Node` objects, of which the values are made here.  No code that the bytes bring is run, and
their number bounds what they take.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...ndarray import NDArray
from ...ndarray.io import of_record
from ...support import limits
from ...support.errors import MXNetError, OpTypeError, OpValueError, shown
from .. import lr_scheduler
from . import pickled
from .base import Optimizer
from .pickled import Node

_FORMAT = "mxop optimizer states 1"
_STRUCTURE = "structure"


@dataclass
class Unmade:
    """What a file has of a state of a class of the optimizer's own: only the optimizer makes such objects."""

    name: str
    attributes: dict[str, Any]


def unmade(state: Any) -> bool:
    """Return whether there are objects in a state that the optimizer has to make."""
    return isinstance(state, Unmade) or (isinstance(state, (tuple, list)) and any(map(unmade, state)))


def completed(found: Any, new: Any) -> Any:
    """Return a state of a file, with the objects of a new state for those that are unmade, which get their attributes."""
    if isinstance(found, (tuple, list)) and isinstance(new, (tuple, list)) and len(found) == len(new):
        return type(found)(map(completed, found, new))
    if not isinstance(found, Unmade):
        return found
    if type(new).__name__ != found.name or not found.attributes.keys() <= getattr(new, "__dict__", {}).keys():
        raise OpValueError(f"set_states: a state is of class {found.name}, with {', '.join(map(str, found.attributes))}; the "
                           f"optimizer makes {shown(new)}")  # fmt: skip
    vars(new).update({name: completed(value, vars(new)[name]) for name, value in found.attributes.items()})
    return new


# ---- written ---------------------------------------------------------------------------------------------------------
def dumps(states: dict[Any, Any], optimizer: Optimizer | None = None) -> bytes:
    """Return states, and an optimizer, as bytes.

    Raises
    ------
    OpTypeError
        For what is neither a number, a string, an array, an optimizer or scheduler, a collection of such, nor
        (as a state) an object with such attributes.
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
    if isinstance(value, Unmade):
        return {"object": [value.name, _plain(value.attributes, arrays, where)]}
    if where.startswith("state") and hasattr(value, "__dict__") and not callable(value):
        return _plain(Unmade(type(value).__name__, vars(value)), arrays, f"{where} {type(value).__name__}")
    raise OpTypeError(f"get_states: {where} is {shown(value)}, of which no file is made; keep it apart")


# ---- read ------------------------------------------------------------------------------------------------------------
def loads(content: bytes) -> tuple[dict[Any, Any], Optimizer | None]:
    """Return the states that bytes hold, and the optimizer or None."""
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise OpTypeError(f"set_states: expected bytes, got {type(content).__name__}")
    content = bytes(content)
    try:
        if content[:1] in (b"\x80", b"(", b"c", b"}"):
            return _split(_Making({}, len(content)).value(pickled.read(content)))
        arrays = nd.load_frombuffer(content)
        text = bytes(arrays.pop(_STRUCTURE).asnumpy())  # type: ignore[union-attr, call-overload]
        structure = json.loads(text, object_pairs_hook=_node)
        if structure["format"] != _FORMAT:
            raise OpValueError(f"the format is {shown(structure['format'])}, not {_FORMAT!r}")
        make = _Making(arrays, len(content))
        return _split((make.value(structure["states"]), make.value(structure["optimizer"])))
    except MXNetError as problem:
        raise type(problem)(f"set_states: {problem}") from None
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError) as problem:
        raise OpValueError(f"set_states: no states of an optimizer ({shown(problem)})") from problem


def _node(pairs: list[tuple[str, Any]]) -> Any:
    """Return what :func:`_plain` wrote as an object of JSON."""
    return Node(*pairs[0]) if len(pairs) == 1 else dict(pairs)


class _Making:
    """Makes the values that nodes stand for, as many as a file of `nbytes` bytes may ask for.

    A part that a pickle refers to many times is made each time, so twenty bytes would be enough for a million values.
    """

    DEEPEST = 64  # MXNet's states have five levels
    COST = 16  # of a value, in the bytes that are counted

    def __init__(self, arrays: Any, nbytes: int):
        self.arrays = arrays
        self.left = 65536 + 32 * nbytes
        self.rows = limits.dense_bytes(nbytes)  # for csr arrays that were never filled
        self.loaded: dict[int, Any] = {}

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise OpValueError("what the bytes stand for is much larger than they are")

    def value(self, node: Any, depth: int = 0) -> Any:
        """Return a number or text as it is, and what a node stands for."""
        self.spend(self.COST + (len(node) if isinstance(node, (str, bytes)) else 0))
        if not isinstance(node, Node):
            if isinstance(node, (list, dict)):
                raise OpValueError("the structure is not that of states of an optimizer")
            return node
        if depth > self.DEEPEST:
            raise OpValueError(f"values that lie {depth} deep in each other; at most {self.DEEPEST} are expected")
        kind, content = node.kind, node.content
        if kind == "array":
            return self.array(node)
        if kind in ("tuple", "list"):
            items = [self.value(item, depth + 1) for item in content]
            return tuple(items) if kind == "tuple" else items
        if kind == "dict":
            return {_key(self.value(k, depth + 1)): self.value(v, depth + 1) for k, v in content}
        if kind in ("optimizer", "scheduler"):
            name, attributes = content
            return _made(kind, name, self.value(attributes, depth + 1))
        if kind == "object":
            return Unmade(content[0], dict(self.value(content[1], depth + 1)))
        raise OpValueError(f"{node} is among the values, which states of an optimizer do not have")

    def array(self, node: Node) -> NDArray | None:
        """Return an array of a file, or of a record in a pickle; the same one for the same node."""
        record = node.content
        if record is None:
            return None
        if isinstance(record, str):
            found = self.arrays[record]
            self.spend(getattr(found, "_values", found).nbytes)
            return found
        self.spend(len(record))
        if id(node) not in self.loaded:
            made = self.loaded[id(node)] = of_record(record, max_bytes=max(self.rows, 0))
            self.rows -= 8 * made.shape[0] if made is not None and made.stype == "csr" else 0
        return self.loaded[id(node)]


def _key(key: Any) -> Any:
    """Return a key of a dict; not an integer that others could be made to collide with, which takes quadratic time."""
    if isinstance(key, int) and abs(key) >= sys.hash_info.modulus:
        raise OpValueError(f"the key {shown(key)} is not an index")
    return key


def _made(kind: str, name: Any, attributes: Any) -> Any:
    """Return an optimizer or scheduler with attributes, which must not hide its methods."""
    found = (_optimizer if kind == "optimizer" else _scheduler)(name)
    for attribute in attributes:
        if not isinstance(attribute, str) or callable(getattr(found, attribute, None)):
            raise OpValueError(f"{shown(attribute)} is not an attribute of {found.__name__}")
    made = found.__new__(found)
    made.__setstate__(attributes) if kind == "optimizer" else vars(made).update(attributes)
    return made


def _optimizer(name: str) -> type:
    found = Optimizer.opt_registry.get(name.lower())
    if found is None:
        raise OpValueError(f"optimizer {shown(name)} is not registered; import the module that registers it")
    return found


def _scheduler(name: str) -> type:
    waiting = [lr_scheduler.LRScheduler]
    while waiting:
        one = waiting.pop()
        if one.__name__ == name:
            return one
        waiting += one.__subclasses__()
    raise OpValueError(f"there is no LRScheduler {shown(name)}; import the module that defines it")


def _split(found: Any) -> tuple[dict[Any, Any], Optimizer | None]:
    """Return states and optimizer: a pair of them, or as MXNet pickles them, the states alone."""
    states, optimizer = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(states, dict) or not (optimizer is None or isinstance(optimizer, Optimizer)):
        raise OpValueError(f"the bytes hold {shown(found)}, no states of an optimizer")
    return states, optimizer
