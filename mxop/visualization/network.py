"""``plot_network``: the graph of a symbol for Graphviz, as MXNet draws it."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..support.distribution import install
from ..support.errors import MissingPackageError, OpTypeError, OpValueError, ends_at_caller
from ..symbol import Symbol

#: Colours by kind of layer.
INPUT, DENSE, ACTIVATION, NORM, POOL, SHAPE, SOFTMAX, OTHER = (
    "#8dd3c7", "#fb8072", "#ffffb3", "#bebada", "#80b1d3", "#fdb462", "#b3de69", "#fccde5",
)  # fmt: skip
_COLORS = {
    "null": INPUT, "Convolution": DENSE, "FullyConnected": DENSE, "BatchNorm": NORM, "Activation": ACTIVATION,
    "LeakyReLU": ACTIVATION, "Pooling": POOL, "Concat": SHAPE, "Flatten": SHAPE, "Reshape": SHAPE, "Softmax": SOFTMAX,
}  # fmt: skip
#: MXNet's, but that boxes are as wide as their labels at least: its own cut "FullyConnected" on both sides.
_NODE = {"shape": "box", "fixedsize": "false", "width": "1.3", "height": "0.8034", "style": "filled"}
_WEIGHTS = ("_weight", "_bias", "_beta", "_gamma", "_moving_var", "_moving_mean", "_running_var", "_running_mean")


@ends_at_caller
def plot_network(
    symbol: Any, title: str = "plot", save_format: str = "pdf", shape: Mapping[str, tuple[int, ...]] | None = None,
    dtype: Mapping[str, Any] | None = None, node_attrs: Mapping[str, str] | None = None, hide_weights: bool = True,
) -> Any:  # fmt: skip
    """Return the graph of a symbol as a ``graphviz.Digraph``; :func:`mxop.viz.svg` needs no other package.

    Parameters
    ----------
    symbol : Symbol
    title : str
        Name of the graph, and of files that it is saved to.
    save_format : str
        File format for ``render`` and ``view``.
    shape : dict of str to tuple, optional
        Shapes of inputs; edges show shapes then, without the batch.
    dtype : dict of str to type, optional
        Types of inputs; edges show types then.
    node_attrs : dict of str to str, optional
        Graphviz attributes for all nodes, such as ``{"shape": "oval"}``.
    hide_weights : bool
        Leave out weights and biases, by their names.

    Raises
    ------
    MissingPackageError
        Without the package graphviz; it is an ``ImportError``.
    """
    try:
        from graphviz import Digraph
    except ImportError:
        raise MissingPackageError(
            f"plot_network requires the Python package graphviz ({install('plot')}), and drawing its result the "
            "program dot; mx.viz.svg(symbol) needs neither"
        ) from None
    symbol = plain_symbol(symbol, "symbol must be a Symbol")
    nodes = json.loads(symbol.tojson())["nodes"]
    _warn_of_equal_names(nodes)
    labels = _edge_labels(symbol, shape, dtype)
    dot = Digraph(name=title, format=save_format)
    hidden = {n["name"] for n in nodes if n["op"] == "null" and n["name"].endswith(_WEIGHTS)}
    for node in nodes:
        if node["name"] not in hidden or node["op"] != "null":
            colors = {"fillcolor": _COLORS.get(node["op"], OTHER)}
            oval = {"shape": "oval"} if node["op"] == "null" else {}
            dot.node(name=node["name"], label=label_of(node), **(_NODE | dict(node_attrs or {}) | oval | colors))
    for node in nodes:
        # without hide_weights, the end of an edge is drawn though it was not declared
        for source, k, *_ in node["inputs"]:
            name = nodes[source]["name"]
            if not (hide_weights and name in hidden):
                label = labels(nodes[source], k)
                dot.edge(tail_name=node["name"], head_name=name, dir="back", arrowtail="open", label=label)
    return dot


def plain_symbol(symbol: Any, message: str) -> Symbol:
    """Return a symbol; of a tensor with axes, the symbol inside."""
    inside = symbol if isinstance(symbol, Symbol) else getattr(symbol, "value", None)
    if not isinstance(inside, Symbol):
        raise OpTypeError(f"{message}, got {type(symbol).__name__}")
    return inside


def shapes_of(symbol: Symbol, shape: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Return the shape of every value by MXNet's name of it.

    Raises
    ------
    OpValueError
        When shapes remain unknown.
    """
    if not isinstance(shape, Mapping):
        raise OpTypeError(f"shape must be a dict of shapes by name, got {type(shape).__name__}")
    internals = symbol.get_internals()
    _, shapes, _ = internals.infer_shape(**shape)
    if shapes is None:
        raise OpValueError(f"Input shape is incomplete: not all shapes follow from {dict(shape)}")
    return dict(zip(internals.list_outputs(), shapes, strict=True))


def label_of(node: Mapping[str, Any]) -> str:
    """Return what a layer is called in a drawing: its name, or what kind of layer it is."""
    attrs = node.get("attrs", {})

    def numbers(name: str, default: str) -> str:
        return "x".join(re.findall(r"\d+", attrs[name])) if name in attrs else default

    match node["op"]:
        case "Convolution":
            return f"Convolution\n{numbers('kernel', '')}/{numbers('stride', '1')}, {attrs['num_filter']}"
        case "FullyConnected":
            return f"FullyConnected\n{attrs['num_hidden']}"
        case "Activation":
            return f"Activation\n{attrs['act_type']}"
        case "LeakyReLU":
            return f"LeakyReLU\n{attrs.get('act_type', 'Leaky')}"
        case "Pooling":
            kind = attrs.get("pool_type", "max")
            return f"Pooling\n{kind}, {numbers('kernel', '[]')}/{numbers('stride', '1')}"
        case "Custom":
            return attrs["op_type"]
    return node["name"]


def _edge_labels(symbol: Symbol, shape: Any, dtype: Any) -> Any:
    """Return a function ``(node, output) -> text`` of a value's shape and type, as far as they are asked for."""
    shapes = {} if shape is None else shapes_of(symbol, shape)
    types: dict[str, Any] = {}
    if dtype is not None:
        internals = symbol.get_internals()
        found = internals.infer_type(**dtype)[1]
        if found is None:
            raise OpValueError(f"Input type is incomplete: not all types follow from {dict(dtype)}")
        types = dict(zip(internals.list_outputs(), found, strict=True))

    def label(node: Mapping[str, Any], k: int) -> str:
        name = node["name"]
        names = [name] if node["op"] == "null" else [f"{name}_output", f"{name}_output{k}"]
        text = next(("x".join(map(str, shapes[n][1:])) for n in names if n in shapes), "")
        return text + next((f"({types[n].__name__})" for n in names if n in types), "")

    return label


def _warn_of_equal_names(nodes: list[dict]) -> None:
    repeated = [name for name, count in Counter(n["name"] for n in nodes).items() if count > 1]
    if repeated:
        warnings.warn(
            "There are multiple variables with the same name in your graph, this may result in cyclic graph. "
            f"Repeated names: {','.join(repeated)}",
            RuntimeWarning,
            stacklevel=3,
        )
