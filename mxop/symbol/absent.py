"""What a ``symbol.json`` needs and mxop does not have: found before anything is made of it, and told at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..opdef import registry
from ..support import mxnet_names
from ..support.errors import NotYetError, OpLookupError
from ..support.missing import suggestion
from .json_format import GraphData

PACKAGES = "mxop_packages"  # attribute of a graph: operator=package, for each that is of neither MXNet nor mxop


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


def packages_of(graph: GraphData) -> dict[str, str]:
    """Return what a file says is needed for its operators, by their names: see :func:`mxop.opdef.plugins.needed`."""
    _, listed = graph.attrs.get(PACKAGES, ("", []))
    pairs = (str(item).partition("=") for item in (listed if isinstance(listed, list) else []))
    return {name: package for name, _, package in pairs if package}


def needs(absent: Counter[str], packages: Mapping[str, str]) -> OpLookupError:
    """Return the error that lists them all."""
    yet = {name: n for name, n in absent.items() if mxnet_names.is_operator(name)}
    public = registry.names(hidden=False)
    told = []
    if yet:
        told.append(", ".join(f"{name} ({n})" for name, n in yet.items()) + ", which MXNet has and mxop does not have yet")
    if others := {name: n for name, n in absent.items() if name not in yet}:
        listed = ", ".join(
            f"{name!r} ({n}) of package {packages[name]}" if name in packages else f"{name!r} ({n}{suggestion(name, public)})"
            for name, n in others.items()
        )
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
