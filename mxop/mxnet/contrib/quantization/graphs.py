"""The rewriting of networks: operators with an int8 counterpart are replaced, and conversions are put around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ....graph.ir import Entry, Graph, Node, topological, variable
from ....graph.rewrite import rewrite
from ....opdef import registry

#: Layers, for which quantization pays; a mode of MXNet quantizes others only between two of them.
LAYERS = ("Convolution", "FullyConnected")
#: The counterparts of operators.
COUNTERPARTS = {
    "Activation": "act", "BatchNorm": "batch_norm", "Concat": "concat", "Convolution": "conv", "Embedding": "embedding",
    "Flatten": "flatten", "FullyConnected": "fully_connected", "Pooling": "pooling", "elemwise_add": "elemwise_add",
    "elemwise_mul": "elemwise_mul",
}  # fmt: skip
#: Those whose results are int32, and become int8 again.
WIDE = ("Convolution", "FullyConnected", "elemwise_add", "elemwise_mul")
#: Inputs that remain what they are, by position.
KEPT = {"BatchNorm": (1, 2, 3, 4), "Embedding": (0,)}
#: Conditions on parameters.
CONDITIONS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "Activation": lambda attrs: attrs["act_type"] == "relu",
    "BatchNorm": lambda attrs: attrs["axis"] == 1 and not attrs["output_mean_var"],
    "Pooling": lambda attrs: attrs["pool_type"] in ("max", "avg"),
}

PREFIX, SUFFIX = "quantized_", "_quantize"
Levels = tuple[Entry, Entry, Entry]  # levels, their lower limit, their upper limit


def chosen(graph: Graph, names: Iterable[str], operators: Iterable[Any], mode: str) -> set[Node]:
    """Return the nodes to be quantized.

    Parameters
    ----------
    names, operators : sequence of str, and of Operator
        What is left out.
    mode : {'full', 'smart'}
        ``smart`` leaves out nodes that are not on a path between layers.
    """
    names, operators = set(names), set(operators)
    found = {n for n in graph.nodes if n.op is not None and n.name not in names and n.op not in operators and _can(n)}
    if mode == "full":
        return found
    layers = {n for n in found if n.op.name in LAYERS}  # type: ignore[union-attr]
    above = topological(layers, lambda n: [source for source, _ in n.inputs if source in found])
    below = topological(layers, lambda n: [r for k in range(n.n_outputs) for r in graph.uses.get((n, k), ()) if r in found])
    return {*above} & {*below}


def _can(node: Node) -> bool:
    name = node.op.name  # type: ignore[union-attr]
    return name in COUNTERPARTS and (name not in CONDITIONS or CONDITIONS[name](node.attrs))


class Quantizer:
    """Rewrites a graph.

    Parameters
    ----------
    nodes : set of Node
        What is quantized.
    offline : set of str
        Parameters that are replaced by their levels; other variables are quantized in each run.
    out_type : str
        The type of levels: int8, uint8 or auto.
    """

    def __init__(self, nodes: set[Node], offline: Iterable[str], out_type: str):
        self._nodes, self._offline, self._out_type = nodes, set(offline), out_type
        self._floats: dict[Entry, Entry] = {}
        self._levels: dict[Entry, Levels] = {}

    def graph(self, graph: Graph) -> Graph:
        """Return the graph with levels where they can be, and float32 outputs."""
        for node in graph.nodes:
            if node in self._nodes:
                self._levels[node, 0] = self._counterpart(node)
            else:
                inputs = tuple([self._as_floats(e) for e in node.inputs])
                new = node if inputs == node.inputs else node.replaced(inputs)
                self._floats.update({(node, k): (new, k) for k in range(node.n_outputs)})
        return Graph([self._as_floats(e) for e in graph.outputs])

    def _counterpart(self, node: Node) -> Levels:
        """Return the result of a node's counterpart."""
        name, kept = node.op.name, KEPT.get(node.op.name, ())  # type: ignore[union-attr]
        inputs, limits = [], []
        for k, entry in enumerate(node.inputs):
            if k in kept:
                inputs.append(self._as_floats(entry))
            else:
                levels, *of_entry = self._as_levels(entry)
                inputs.append(levels)
                limits += of_entry
        made = _made(f"_contrib_quantized_{COUNTERPARTS[name]}", PREFIX + node.name, [*inputs, *limits], node.text())
        if name in WIDE:
            made = _made("_contrib_requantize", f"requantize_{node.name}", _outputs(made), {"out_type": self._out_type})
        return _outputs(made)

    def _as_levels(self, entry: Entry) -> Levels:
        if entry not in self._levels:
            node, k = entry
            name = node.output_name(k) + SUFFIX
            if node.op is None and node.name in self._offline:
                low, levels, high = ((variable(name + end), 0) for end in ("_min", "", "_max"))
                self._levels[entry] = levels, low, high
            else:
                made = _made("_contrib_quantize_v2", name, [self._as_floats(entry)], {"out_type": self._out_type})
                self._levels[entry] = _outputs(made)
        return self._levels[entry]

    def _as_floats(self, entry: Entry) -> Entry:
        if entry not in self._floats:
            made = _made("_contrib_dequantize", f"{entry[0].name}_dequantize", self._levels[entry], {})
            self._floats[entry] = made, 0
        return self._floats[entry]


def _outputs(node: Node) -> Levels:
    return (node, 0), (node, 1), (node, 2)


def _made(op_name: str, name: str, inputs: Iterable[Entry], strings: Mapping[str, str]) -> Node:
    """Return a node with the parameters among `strings` that its operator has."""
    op = registry.get(op_name)
    known = {p.name for p in op.spec.params}
    return Node(op, op.parse({k: v for k, v in strings.items() if k in known}), tuple(inputs), name, dict(strings))


# ---- calibration -----------------------------------------------------------------------------------------------------
def calibrated_by(node: Node) -> str | None:
    """Return the name of the float32 output whose range a node of a quantized graph needs; None: none."""
    name = "" if node.op is None else node.op.name
    if name == "_contrib_quantized_batch_norm":
        found = node.output_name(0)
    elif name in ("_contrib_quantize_v2", "_contrib_requantize"):
        source, k = node.inputs[0]
        found = source.output_name(k)
    else:
        return None
    return found.removeprefix(PREFIX)


def with_ranges(graph: Graph, ranges: Mapping[str, tuple[float, float]]) -> Graph:
    """Return a quantized graph with ranges, by the names of outputs, as parameters of the nodes that need them."""

    def calibrated(node: Node) -> list[Entry] | None:
        name = calibrated_by(node)
        if name is None or name not in ranges:
            return None
        limits = (f"{float(v):f}" for v in ranges[name])  # six digits, as MXNet has them
        strings = node.text() | dict(zip(("min_calib_range", "max_calib_range"), limits, strict=True))
        return list(_outputs(_made(node.op.name, node.name, node.inputs, strings)))  # type: ignore[union-attr]

    return rewrite(graph, lambda node: _all_outputs(node, calibrated(node)))[0]


def _all_outputs(node: Node, visible: list[Entry] | None) -> list[Entry] | None:
    """Return entries for all outputs of a replaced node, states' new values among them."""
    return None if visible is None else [(visible[0][0], k) for k in range(node.n_outputs)]
