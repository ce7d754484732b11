"""Composites become what they call.  Imports :mod:`.ir`, :mod:`.builder`, :mod:`.infer`, :mod:`.rewrite`."""

from __future__ import annotations

from ..errors import MXNetError
from ..opdef import Composite
from .builder import Builder, entries_of
from .infer import located
from .ir import Entry, Graph, Node
from .rewrite import Moved, rewrite

_MAX_NESTING = 64


def expand(graph: Graph, everything: bool = True) -> tuple[Graph, Moved]:
    """Replace composites by what they call.

    Parameters
    ----------
    everything : bool
        Also those with a gradient rule of their own (before gradients are taken they stay).

    Returns
    -------
    graph : Graph
    moved : dict
        Where each entry that changed went.
    """
    F = Builder()

    def replace(node: Node) -> list[Entry] | None:
        if not isinstance(node.op, Composite) or (not everything and node.op._gradient is not None):
            return None
        F.work_for(node, "_inside", node.order)
        inputs = [F.value(e) for e in node.inputs]
        try:
            result = node.op.function(F, *inputs, **node.attrs)
            return entries_of(result, node.n_outputs, f"composite operator {node.op.name}")
        except MXNetError as problem:
            raise located(problem, node) from None

    if not any(isinstance(node.op, Composite) for node in graph.nodes):
        return graph, {}
    total: Moved = {}
    for _ in range(_MAX_NESTING):
        graph, moved = rewrite(graph, replace)
        if not moved:
            return graph, total
        total = {old: moved.get(new, new) for old, new in total.items()} | {
            old: new for old, new in moved.items() if old not in total
        }
    raise MXNetError(f"composite operators are nested more than {_MAX_NESTING} deep; does one call itself?")
