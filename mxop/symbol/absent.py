"""What a ``symbol.json`` needs and mxop does not have: found before anything is made of it, and told at once.

Imports :mod:`.json_format`, :mod:`mxop.opdef` and :mod:`mxop.missing`.
"""

from __future__ import annotations

from collections import Counter

from .. import mxnet_names
from ..errors import NotYetError, OpLookupError
from ..missing import suggestion
from ..opdef import registry
from .json_format import GraphData


def absent_operators(graph: GraphData) -> Counter[str]:
    """Count the nodes of each operator that is not registered, those of subgraphs too."""
    found: Counter[str] = Counter()
    graphs = [graph]
    while graphs:
        for node in graphs.pop().nodes:
            graphs += node.subgraphs
            if node.op != "null":
                found[node.op] += 1
    if any(registry.find(name) is None for name in found):
        registry.load_entry_points()
    return Counter({name: n for name, n in found.most_common() if registry.find(name) is None})


def needs(absent: Counter[str]) -> OpLookupError:
    """Return the error that lists them all."""
    yet = {name: n for name, n in absent.items() if mxnet_names.is_operator(name)}
    public = registry.names(hidden=False)
    told = []
    if yet:
        told.append(
            ", ".join(f"{name} ({n})" for name, n in yet.items()) + ", which MXNet has and mxop does not have yet"
        )
    if others := {name: n for name, n in absent.items() if name not in yet}:
        listed = ", ".join(f"{name!r} ({n}{suggestion(name, public)})" for name, n in others.items())
        told.append(f"{listed}, which is not registered: import the module or load the library that defines it")
    return (NotYetError if yet else OpLookupError)(
        f"this symbol.json needs operators (with their number of nodes): {'; and '.join(told)}. It can be looked at: "
        f"mx.sym.load and mx.sym.load_json take allow_missing=True"
    )


def read_outputs(graph: GraphData) -> list[int]:
    """Return for each node how many outputs the graph reads, counted up to the last of them."""
    found = [1] * len(graph.nodes)
    for entries in (graph.heads, *(node.inputs for node in graph.nodes)):
        for node, output, _ in entries:
            found[node] = max(found[node], output + 1)
    return found
