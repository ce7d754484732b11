"""Constants of a graph: values that depend on no variable."""

from __future__ import annotations

import base64
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .._core import core
from ..opdef import registry
from ..opdef.infer import known as is_known
from ..opdef.symbolic import is_concrete
from ..support import dtypes
from .infer import Known
from .ir import Entry, Node
from .traits import is_pure

#: Most elements of a constant that is stored in a graph instead of being computed.
LARGEST = 1 << 14

_FILLED = {"_zeros": 0.0, "_zeros_without_dtype": 0.0, "_ones": 1.0}

_values: WeakKeyDictionary[Node, np.ndarray] = WeakKeyDictionary()


def is_literal(node: Node) -> bool:
    """Return whether a node makes the same array each time, from parameters only: zeros, ones, full, arange..."""
    return node.op is not None and not node.inputs and node.n_outputs == 1 and is_pure(node)


def fill_of(entry: Entry, known: Known) -> float | None:
    """Return the value of all elements of an entry, or None if they may differ."""
    node, k = entry
    op: Any = node.op
    if op is None or known.dtype(entry) == dtypes.UNKNOWN:
        return None
    if is_literal(node):
        if op.name in _FILLED:
            return _FILLED[op.name]
        if op.name == "_full":
            return _in_type(node.attrs["value"], known.dtype(entry))
        value = value_of(entry, known) if op.name == "_constant" else None
        uniform = value is not None and _uniform(value)
        return _in_type(value.reshape(-1)[0].item(), known.dtype(entry)) if uniform else None  # type: ignore[union-attr]
    if op.kind == "elementwise" and len(node.inputs) == 1:
        root = op.formula(node.attrs, 1).roots[k]
        if root.kind == "const":
            return _in_type(root.label, known.dtype(entry))
    return None


def _in_type(value: float, code: int) -> float | None:
    """Return a number rounded to an element type; None if a float cannot represent the result."""
    if code not in dtypes.FLOATS and not abs(value) < 2**53:  # NaN too
        return None
    with np.errstate(all="ignore"):  # what the type does not hold
        return float(np.asarray(value).astype(dtypes.numpy_dtype(code)))


def _uniform(value: np.ndarray) -> bool:
    flat = np.ascontiguousarray(value).reshape(-1)
    bits = flat.view(f"V{flat.itemsize}")  # distinguishes -0.0 from 0.0; NaN equals itself
    return bool(flat.size) and bool((bits == bits[0]).all())


def value_of(entry: Entry, known: Known) -> np.ndarray | None:
    """Return the value of an entry if it is a constant of at most `LARGEST` elements, else None."""
    node, _ = entry
    shape = known.shape(entry)
    if not known.is_known(entry) or not is_concrete(shape) or prod(shape) > LARGEST:
        return None
    if is_literal(node):
        if node not in _values:
            _values[node] = evaluated(node, [], known)[0]
        return _values[node]
    fill = fill_of(entry, known)
    if fill is None:
        return None
    return np.full(shape, fill, dtypes.numpy_dtype(known.dtype(entry)))


def evaluated(node: Node, inputs: list[np.ndarray], known: Known) -> list[np.ndarray]:
    """Return the outputs of a node's operator on arrays, computed as an executor does."""
    outputs = [core.empty(known.shape((node, k)), known.dtype((node, k))) for k in range(node.n_outputs)]
    arrays = []
    for entry, value in zip(node.inputs, inputs, strict=True):
        array = core.empty(known.shape(entry), known.dtype(entry))
        core.as_numpy(array)[...] = value
        arrays.append(array)
    core.prepare(node.op, node.attrs, arrays, outputs, [1] * len(outputs)).run()
    return [np.array(core.as_numpy(a)) for a in outputs]


def literal(value: np.ndarray, name: str, source: Any = None, order: int = 0) -> Node:
    """Return a node for an array: zeros, ones, full, or a constant."""
    if value.ndim and _uniform(value) and _in_type(float(value.reshape(-1)[0]), dtypes.code_of(value.dtype)) is not None:
        return filled(value.reshape(-1)[0], value.shape, name, source, order)
    little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
    data = base64.b64encode(little.tobytes()).decode()
    return _made("_constant", {"shape": value.shape, "dtype": _name(value), "data": data}, name, source, order)


def filled(value: np.generic, shape: tuple[int, ...], name: str, source: Any = None, order: int = 0) -> Node:
    """Return a node for an array of one value that a float represents: zeros, ones or full."""
    number, params = float(value), {"shape": shape, "dtype": _name(value)}
    if number not in (0, 1) or np.signbit(number):
        return _made("_full", {**params, "value": number}, name, source, order)
    return _made("_ones" if number else "_zeros", params, name, source, order)


def _name(value: np.ndarray | np.generic) -> str:
    return dtypes.NAMES[dtypes.code_of(value.dtype)]


def _made(op_name: str, params: dict[str, Any], name: str, source: Any, order: int) -> Node:
    op = registry.get(op_name)
    attrs = op.parse(params)
    return Node(op, attrs, (), name, op.spec.to_strings(attrs, params), source, order)


def is_small(shape: tuple[int, ...] | None) -> bool:
    """Return whether a constant of this shape may be stored: it is known, not empty, and not too large."""
    return is_known(shape) and is_concrete(shape) and 0 < prod(shape) <= LARGEST  # type: ignore[arg-type]
