"""The operator that replaces a part of a graph, which a backend runs.

It holds its graph: inference and gradients use it, and it can be written to a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..opdef import Attrs, External, registry
from ..opdef.params import REQUIRED, Param
from ..support.errors import OpTypeError
from ..support.memo import keep
from . import symbols
from .backend_table import get_backend
from .calls import replayed
from .expansion import expand
from .gradient import gradients
from .ir import Entry, Graph, Node, variable
from .specs import solved_inside

NAME = "_subgraph"


def _string(name: str) -> Param:
    return Param(name, str, REQUIRED, False, (), None, "string", str)


class Subgraph(External):
    """Runs a part of a graph by a backend; see ``Symbol.optimize_for``."""

    kind = "subgraph"
    open_inputs = True
    contiguous = True

    def __init__(self) -> None:
        super().__init__(NAME, doc=type(self).__doc__ or "", params=(_string("backend"), _string("graph")))
        self._gradient = self._rule  # by `gradient`, a definition would change, and all plans go

    # ---- inference ------------------------------------------------------------------------------------------------------
    def input_names(self, attrs: Attrs, n: int | None = None) -> tuple[str, ...]:
        return tuple(v.name for v in inside(attrs.graph).variables)

    def aux_names(self, attrs: Attrs) -> tuple[str, ...]:
        return tuple(v.name for v in inside(attrs.graph).arguments()[1])

    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return len(inside(attrs.graph).outputs)

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        graph = inside(attrs.graph)
        return solved_inside(graph, graph.variables, ins, outs, "shape")

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        graph = inside(attrs.graph)
        return solved_inside(graph, graph.variables, ins, outs, "type")

    # ---- running --------------------------------------------------------------------------------------------------------
    def run(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], inputs: list, outputs: list) -> None:
        backend: Any = get_backend(attrs.backend)
        if not hasattr(backend, "run"):
            raise OpTypeError(f"backend {attrs.backend!r} is {backend!r}, which has no run(subgraph, inputs, outputs)")
        found = backend.run(symbols.symbol(inside(attrs.graph).outputs), inputs, outputs)
        if found is None:
            return
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        if len(found) != len(outputs):
            raise OpTypeError(f"backend {attrs.backend!r} returned {len(found)} arrays for {len(outputs)} outputs")
        for value, output in zip(found, outputs, strict=True):
            output[:] = value

    # ---- gradient: through the graph ------------------------------------------------------------------------------------
    @staticmethod
    def _rule(F: Any, heads: list, inputs: list, outputs: list, *, backend: str, graph: str) -> list:
        gradient, head_nodes, inner = gradient_inside(graph)
        values = dict(zip(inner, inputs, strict=True)) | dict(zip(head_nodes, heads, strict=True))
        found = iter(replayed(F, gradient, values))
        return [None if e is None else next(found) for e in gradient.parts]


def inside(text: str) -> Graph:
    """Return the graph in the parameter ``graph``."""
    found = _graphs.get(text)
    if found is None:
        found = remember(text, Graph(symbols.from_json(text)._entries))
    return found


_graphs: dict[str, Graph] = {}  # graphs written by this process, whose nodes have sources


def remember(text: str, graph: Graph) -> Graph:
    """Cache the graph of a text."""
    return keep(_graphs, text, graph)


@lru_cache(256)
def gradient_inside(text: str) -> tuple[Graph, list[Node], list[Node]]:
    """Return the gradients of a graph's inputs, and the variables of head gradients and of inputs.

    The gradients are a :class:`Gradient`, with None for an input without gradient.
    """
    graph = inside(text)
    expanded, _ = expand(graph, everything=False)
    heads = [variable(f"_head_grad_{i}") for i in range(len(expanded.outputs))]
    inner = graph.variables
    states = set(graph.arguments()[1])
    wanted = [(v, 0) for v in inner if v not in states]
    found = dict(zip(wanted, gradients(expanded.outputs, [(h, 0) for h in heads], wanted), strict=True))
    return Gradient([found.get((v, 0)) for v in inner]), heads, inner


class Gradient(Graph):
    """A graph of gradients; ``parts`` has None for those that are zero."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Entry | None]):
        super().__init__([e for e in parts if e is not None])
        self.parts = parts


registry.register(Subgraph())
