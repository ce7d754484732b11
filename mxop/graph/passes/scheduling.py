"""What is done to a graph while its schedule is made: recomputation, fusion, sharing of memory.

Imports :mod:`.base`, :mod:`mxop.graph.fuse`, :mod:`mxop.graph.recompute`, :mod:`mxop.graph.plan`.
"""

from __future__ import annotations

from ..fuse import fuse
from ..infer import Known
from ..ir import Graph
from ..plan import phases_of
from ..recompute import recompute
from .base import Pass


class Recompute(Pass):
    """Let backward compute cheap forward values again, inside its formulas, instead of reading them from memory.

    ::

        a -- add -- exp -- y                 a -- add -- exp -- y
              |                      ->      a -- add_again -- mul -- da
              mul -- da
    """

    stage = "schedule"

    def run(self, graph: Graph, known: Known) -> Graph:
        n = known.n_forward
        return graph if n is None or n >= len(graph.outputs) else recompute(graph, n, known)


class Fuse(Pass):
    """Make one formula of each region of elementwise nodes: one pass over memory.

    ::

        x -- mul -- add -- sigmoid -- y      becomes      x -- _fused: sigmoid(x0 * x1 + x2) -- y
    """

    stage = "schedule"

    def run(self, graph: Graph, known: Known) -> Graph:
        forward = set(phases_of(graph, len(graph.outputs) if known.n_forward is None else known.n_forward)[0])
        return fuse(graph, known, lambda node: node in forward)


class ShareMemory(Pass):
    """Let values that live at different times share memory, and results overwrite operands that nobody reads again.

    The graph stays as it is; the memory plan (:mod:`mxop.graph.plan`) looks whether this is on.
    """

    stage = "plan"

    def run(self, graph: Graph, known: Known) -> Graph:
        return graph
