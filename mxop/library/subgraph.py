"""Operators of compiled libraries that run a part of a graph, which they get as JSON (``setIsSubgraphOp``)."""

from __future__ import annotations

from .._core import native
from ..graph.ir import Graph
from ..graph.specs import solved_inside
from ..graph.subgraph import inside
from ..opdef import Attrs
from ..opdef.params import Param, Range, _parse_int
from ..support.errors import MXNetError
from ..support.memo import keep
from .operator import LibraryOperator

#: The parameter that holds the subgraph, and the one that says how many more inputs a pass has added.
JSON, EXTRA = "subgraph_sym_json", "__ext_extra_inputs__"


class SubgraphOperator(LibraryOperator):
    """An operator that runs the subgraph in its parameter ``subgraph_sym_json``."""

    def __init__(self, of: native.NativeOp):
        super().__init__(of, params=(Param(EXTRA, int, 0, False, (), Range(0, 1 << 16), "int", _parse_int),))
        self._bounds: dict[Attrs, native.Bound] = {}

    def _graph(self, attrs: Attrs) -> Graph:
        if JSON not in attrs.names:
            raise MXNetError(f"operator {self.name} of library {self.native.library} runs a subgraph, which a partitioner "
                             f"gives it (Symbol.optimize_for) as the parameter {JSON}")  # fmt: skip
        return inside(attrs[JSON])

    def bound_to(self, attrs: Attrs) -> native.Bound:
        plain = self.plain_attrs(attrs)
        found = self._bounds.get(plain)
        if found is None:
            graph = self._graph(plain)
            given = {name: value for name, value in plain.items() if name != EXTRA or value}
            found = self.native.bind(Attrs(tuple(given), tuple(given.values())))
            found.set_counts(len(graph.variables) + plain[EXTRA], len(graph.outputs))
            keep(self._bounds, plain, found)
        return found

    def input_names(self, attrs: Attrs, n: int | None = None) -> tuple[str, ...]:
        return (*(v.name for v in self._graph(attrs).variables), *(f"extra{i}" for i in range(attrs[EXTRA])))

    def aux_names(self, attrs: Attrs) -> tuple[str, ...]:
        return tuple(v.name for v in self._graph(attrs).arguments()[1])

    def _solved(self, attrs: Attrs, ins: list, outs: list, what: str) -> tuple[list, list]:
        graph = self._graph(attrs)
        n = len(graph.variables)
        found, outs = solved_inside(graph, graph.variables, ins[:n], outs, what)
        return [*found, *ins[n:]], outs

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        return self._solved(attrs, ins, outs, "shape")

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        return self._solved(attrs, ins, outs, "type")
