"""``print_summary``: a table of layers, as MXNet prints it."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..support.errors import OpValueError, ends_at_caller, translated
from .network import plain_symbol, shapes_of

_HEADER = ("Layer (type)", "Output Shape", "Param #", "Previous Layer")


@ends_at_caller
def print_summary(
    symbol: Any, shape: Mapping[str, tuple[int, ...]] | None = None, line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:  # fmt: skip
    """Print the layers of a symbol, their output shapes without the batch, and how many parameters each has.

    Parameters are counted, as in MXNet, for ``FullyConnected``, ``Convolution``, ``BatchNorm`` and ``Embedding``.

    Parameters
    ----------
    symbol : Symbol
    shape : dict of str to tuple, optional
        Shapes of inputs; without them, neither output shapes nor the numbers of parameters are known.
    line_length : int
    positions : sequence of float
        Where each column ends, in characters, or as fractions of the line.

    Examples
    --------
    >>> net = mx.sym.FullyConnected(mx.sym.Variable('data'), num_hidden=4, name='fc')
    >>> mx.viz.print_summary(net, shape={'data': (5, 3)}, line_length=60)
    ____________________________________________________________
    Layer (type)              Output ShapeParam Previous Layer
    ============================================================
    data(null)                3           0
    ____________________________________________________________
    fc(FullyConnected)        4           16    data
    ============================================================
    Total params: 16
    ____________________________________________________________
    """
    symbol = plain_symbol(symbol, "symbol must be Symbol")
    if not positions or len(positions) != len(_HEADER):
        raise OpValueError(f"print_summary: positions={positions!r} must hold {len(_HEADER)} numbers")
    with translated("print_summary: line_length and positions"):
        ends = [int(operator.index(line_length) * p) if positions[-1] <= 1 else int(p) for p in positions]
    graph = json.loads(symbol.tojson())
    shapes = None if shape is None else shapes_of(symbol, shape)
    rows = _rows(graph, shapes)
    print("_" * line_length)
    print(_line(_HEADER, ends))
    print("=" * line_length)
    for k, (lines, _) in enumerate(rows):
        for fields in lines:
            print(_line(fields, ends))
        print(("=" if k == len(rows) - 1 else "_") * line_length)
    print(f"Total params: {sum(count for _, count in rows)}")
    print("_" * line_length)


def _line(fields: Sequence[Any], ends: Sequence[int]) -> str:
    """Return fields in columns; what is too long is cut."""
    line = ""
    for text, end in zip(fields, ends, strict=True):
        line = (line + str(text))[:end].ljust(end)
    return line


def _rows(graph: dict, shapes: Mapping[str, tuple[int, ...]] | None) -> list[tuple[list[tuple], int]]:
    """Return the lines of each layer, and how many parameters it has."""
    nodes = graph["nodes"]
    # MXNet takes all three numbers of the first head (node, output, version) for nodes, so node 0 is always shown
    shown = set(graph["heads"][0])
    rows = []
    for i, node in enumerate(nodes):
        if node["op"] == "null" and i > 0:
            continue
        before = [nodes[j] for j, *_ in node["inputs"] if nodes[j]["op"] != "null" or j in shown]
        count = _parameters(node, before, shapes)
        dims = (shapes or {}).get(_output(node), ())[1:] if node["op"] != "null" or i in shown else ()
        names = [b["name"] for b in before] or [""]
        first = (f"{node['name']}({node['op']})", "x".join(map(str, dims)), count, names[0])
        rows.append(([first, *(("", "", "", name) for name in names[1:])], count))
    return rows


def _output(node: dict) -> str:
    """Return what MXNet calls the output of a node here; one of several outputs is not found by it."""
    return node["name"] if node["op"] == "null" else node["name"] + "_output"


def _parameters(node: dict, before: list[dict], shapes: Mapping[str, tuple[int, ...]] | None) -> int:
    """Return how many parameters a layer has, counted as MXNet does, from the second dimension of what comes before."""
    attrs = node.get("attrs", {})
    known = [shapes[_output(b)] for b in before if shapes is not None and _output(b) in shapes]
    inputs = sum(s[1] for s in known if len(s) > 1)
    no_bias = attrs.get("no_bias") in ("True", "true", "1")
    if node["op"] == "Convolution":
        count = inputs * int(attrs["num_filter"]) // int(attrs.get("num_group", "1"))
        for k in re.findall(r"\d+", attrs["kernel"]):
            count *= int(k)
        return count if no_bias else count + int(attrs["num_filter"])
    if node["op"] == "FullyConnected":
        return (inputs if no_bias else inputs + 1) * int(attrs["num_hidden"])
    if node["op"] == "BatchNorm":
        own = (shapes or {}).get(_output(node), ())
        return 2 * own[1] if len(own) > 1 else 0
    if node["op"] == "Embedding":
        return int(attrs["input_dim"]) * int(attrs["output_dim"])
    return 0
