"""Passes that run while a schedule is made: recomputation, fusion, sharing of memory."""

from __future__ import annotations

from collections.abc import Callable

from ..fuse import fuse
from ..infer import Known
from ..ir import Graph, Node
from ..mirror import is_forced, mirror
from ..plan import phases_of
from ..recompute import recompute
from ..rowwise import turns
from ..strips import strips
from .base import Pass


def _phases(graph: Graph, known: Known) -> Callable[[Node], bool]:
    """Return a function that returns whether a node is part of forward."""
    forward = set(phases_of(graph, len(graph.outputs) if known.n_forward is None else known.n_forward)[0])
    return lambda node: node in forward


class Mirror(Pass):
    """Recompute forward values in backward, one segment at a time, instead of keeping them: less memory, more time.

    ::

        x -- f1 -- f2 -- f3 -- f4 -- y            x -- f1 -- f2 -- f3 -- f4 -- y
             |     |     |     |          ->                 |     |     |
        dx - b1 -- b2 -- b3 -- b4 -- dy                      |     b3 -- b4 -- dy
                                                  x -- f1_again -- b2, b1 ...

    Not automatic: turn it on by ``passes={'mirror': True}``, by ``switch_passes(mirror=True)``, or by MXNet's environment
    variable ``MXNET_BACKWARD_DO_MIRROR=1``.  Nodes with the attribute ``__force_mirroring__`` are always recomputed.
    """

    stage = "schedule"
    automatic = False

    def run(self, graph: Graph, known: Known) -> Graph:
        n = known.n_forward
        return graph if n is None or n >= len(graph.outputs) else mirror(graph, n, known)


class Recompute(Pass):
    """Recompute cheap forward values in backward, inside its formulas, instead of reading them from memory.

    ::

        a -- add -- exp -- y                 a -- add -- exp -- y
              |                      ->      a -- add_again -- mul -- da
              mul -- da
    """

    stage = "schedule"

    def run(self, graph: Graph, known: Known) -> Graph:
        n = known.n_forward
        if n is None or n >= len(graph.outputs):
            return graph
        if any(map(is_forced, graph.nodes)):
            graph = mirror(graph, n, known, forced_only=True)
        return recompute(graph, n, known)


class Strips(Pass):
    """Fuse reductions of rows or channels, and the formulas around them, into row kernels, which stay in the cache.

    ::

        x -- mean -- sub -- square -- mean -- ... -- y      becomes      x -- _strip: 3 stages -- y
    """

    stage = "schedule"

    def run(self, graph: Graph, known: Known) -> Graph:
        for turn in turns(graph, known):
            graph = strips(graph, known, lambda graph: _phases(graph, known), turn)
        return graph


class Fuse(Pass):
    """Fuse each region of elementwise nodes into one formula: one pass over memory.

    ::

        x -- mul -- add -- sigmoid -- y      becomes      x -- _fused: sigmoid(x0 * x1 + x2) -- y
    """

    stage = "schedule"

    def run(self, graph: Graph, known: Known) -> Graph:
        return fuse(graph, known, _phases(graph, known))


class ShareMemory(Pass):
    """Let values with disjoint lifetimes share memory, and results overwrite operands that are not read again.

    The graph is not changed; the memory plan (:mod:`mxop.graph.plan`) reads whether this pass is on.
    """

    stage = "plan"

    def run(self, graph: Graph, known: Known) -> Graph:
        return graph
