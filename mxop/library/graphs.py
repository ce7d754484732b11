"""Graphs as compiled libraries get and return them: MXNet's JSON, with shapes and types where they are known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .._core import native_graph
from ..context import Context
from ..graph import symbols
from ..graph.infer import Known
from ..graph.ir import Graph
from ..opdef import infer
from ..support import dtypes
from ..support.errors import MXNetError, OpValueError

#: Attributes of nodes that tell libraries shapes and types: lists, one item for each output.
SHAPE, DTYPE = "__ext_shape__", "__ext_dtype__"
_GPU = 2


def given(graph: Graph, args: Any, aux: Any) -> Known | None:
    """Return what arrays say about the shapes and types in a graph, None without arrays."""
    arrays = {**(args or {}), **(aux or {})}
    if not arrays:
        return None
    known = {n: (arrays[n.name].shape, arrays[n.name].dtype_code) for n in graph.variables if n.name in arrays}
    return Known.solve(graph, known, partial=True)


def to_json(graph: Graph, known: Known | None) -> str:
    """Return a graph as JSON; its nodes are numbered as in ``graph.nodes``."""
    text = symbols.to_json(graph.outputs)
    if known is None:
        return text
    data = json.loads(text)
    for node, item in zip(graph.nodes, data["nodes"], strict=True):
        entries = [(node, k) for k in range(node.n_outputs)]
        shapes, types = [known.shape(e) for e in entries], [known.dtype(e) for e in entries]
        attrs = item.setdefault("attrs", {})
        if all(infer.known(shape) for shape in shapes):
            attrs[SHAPE] = "[" + ",".join("[" + ",".join(map(str, shape)) + "]" for shape in shapes) + "]"
        if dtypes.UNKNOWN not in types:
            attrs[DTYPE] = "[" + ",".join(map(str, types)) + "]"
    return json.dumps(data)


def from_json(text: str, what: str) -> Any:
    """Return the symbol that a library wrote."""
    try:
        data = json.loads(text)
        for node in data["nodes"]:
            for name in (SHAPE, DTYPE):
                node.get("attrs", {}).pop(name, None)
        return symbols.from_json(json.dumps(data))
    except MXNetError as problem:
        raise type(problem)(f"{what} returned a graph that cannot be used: {problem}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise MXNetError(f"{what} returned no graph: {problem!r}") from None


def arrays(given_arrays: Any) -> dict[str, Any]:
    """Return parameters as libraries want them: in C order."""
    return {name: a if a._contiguous else a.copy() for name, a in (given_arrays or {}).items()}


def texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as libraries get them."""
    return {str(name): str(value) for name, value in options.items()}


class Pass:
    """A library's graph pass, as a backend of ``Symbol.optimize_for``."""

    def __init__(self, of: native_graph.NativePass):
        self.of, self.name = of, of.name

    def __call__(self, symbol: Any, args: Any, aux: Any, ctx: Any, options: dict[str, Any]) -> Any:
        graph = Graph(symbol._entries)
        new: dict[bool, dict[str, Any]] = {False: {}, True: {}}

        def new_param(name: str, shape: tuple, dtype: int, device: int, device_id: int, is_aux: bool) -> Any:
            made = _empty(shape, dtype, "gpu" if device == _GPU else "cpu", device_id)
            new[is_aux][name] = made
            return made

        text = to_json(graph, given(graph, args, aux))
        found = self.of.run(native_graph.GivenGraph(text, texts(options), arrays(args), arrays(aux), new_param))
        what = f"graph pass {self.name} of library {self.of.library}"
        result = from_json(found, what)
        for kind, target, added in (("args", args, new[False]), ("aux", aux, new[True])):
            if added and target is None:
                raise OpValueError(f"{what} makes new parameters ({', '.join(added)}); give optimize_for a dict as {kind}=, "
                                   f"to which they are added")  # fmt: skip
            if added:
                target.update(added)
        return result


def _empty(shape: tuple, dtype: int, device: str, device_id: int) -> Any:
    from ..ndarray import full

    if dtype not in dtypes.NAMES or any(d < 0 for d in shape):
        raise OpValueError(f"a new parameter of shape {shape} and type {dtype}")
    return full(shape, 0, Context(device, device_id), dtypes.NAMES[dtype])
