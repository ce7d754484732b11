"""Graphs as pictures, drawn here: symbols, graphs, what executors run, and what a pass changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..graph.executor import Executor
from ..graph.fuse import Fused
from ..graph.ir import Graph, Node, location
from ..graph.listing import formula_of, members_of, operators_of
from ..graph.stages import Strip
from ..support.errors import ends_at_caller
from .canvas import SVG, drawing, group, path, rectangle, shortened, text, width_of
from .layout import layered
from .network import _WEIGHTS, plain_symbol, shapes_of

#: Colours by kind of operator.
COLORS = {
    "variable": "#8dd3c7", "elementwise": "#ffffb3", "fused": "#ffe08a", "reduction": "#b3de69", "kernel": "#fccde5",
    "composite": "#bebada", "external": "#80b1d3",
}  # fmt: skip
_EXPECTED = "expected a symbol, a graph or an executor"
ADDED, REMOVED, PLAIN = "#1a7f37", "#cf222e", "#555"
_LINE, _PADDING, _MARGIN, _LONGEST = 14.0, 8.0, 16.0, 36


@ends_at_caller
def svg(
    graph: Any, shape: Mapping[str, tuple[int, ...]] | None = None, title: str | None = None, hide_weights: bool = False
) -> SVG:
    """Draw a graph, with inputs at the top.  Pointing at a box shows its formula and the line that made it.

    Parameters
    ----------
    graph : Symbol, Graph or Executor
        Of an executor, what it runs, with its fused groups.
    shape : dict of str to tuple, optional
        Shapes of a symbol's inputs; boxes show shapes then.
    title : str, optional
    hide_weights : bool
        Leave out weights and biases, by their names.

    Examples
    --------
    >>> x = mx.sym.Variable('x')
    >>> drawing = mx.viz.svg(mx.sym.exp(x) + x, shape={'x': (2, 3)})
    >>> drawing.count('<rect') - 1, '(2, 3)' in drawing
    (3, True)
    """
    dims = None if shape is None else shapes_of(plain_symbol(graph, _EXPECTED), shape)
    parts, width, height = _drawn(graph_of(graph), dims, title, hide_weights, {})
    return drawing([group(parts, _MARGIN, _MARGIN)], width + 2 * _MARGIN, height + 2 * _MARGIN)


@ends_at_caller
def compare(before: Any, after: Any, titles: tuple[str, str] = ("before", "after")) -> SVG:
    """Draw two graphs side by side, such as those before and after a pass.

    What only the first has is framed red, what only the second has green.

    Parameters
    ----------
    before, after : Symbol, Graph or Executor
    titles : tuple of two str

    Examples
    --------
    >>> x = mx.sym.Variable('x')
    >>> drawing = mx.viz.compare(mx.sym.exp(x), mx.sym.tanh(x))
    >>> drawing.count(REMOVED), drawing.count(ADDED), 'after' in drawing
    (1, 1, True)
    """
    graphs = [graph_of(g) for g in (before, after)]
    known = [{_key(node) for node in g.nodes} for g in graphs]
    parts, left, tall = [], _MARGIN, 0.0
    for k, (graph, title, color) in enumerate(zip(graphs, titles, (REMOVED, ADDED), strict=True)):
        frames = {node: color for node in graph.nodes if _key(node) not in known[1 - k]}
        inner, width, height = _drawn(graph, None, title, False, frames)
        parts.append(group(inner, left, _MARGIN))
        left, tall = left + width + 2 * _MARGIN, max(tall, height + 2 * _MARGIN)
        parts.append(path([(left - _MARGIN, 0), (left - _MARGIN, tall)], stroke="#ccc"))
    return drawing(parts, left - _MARGIN, tall)


def graph_of(graph: Any) -> Graph:
    """Return the graph of a symbol, of a tensor with axes, or of what an executor runs."""
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, Executor):
        return graph.explain().graph
    return Graph(plain_symbol(graph, _EXPECTED)._entries)


def _key(node: Node) -> tuple:
    """Return what makes a node of one graph the same as one of another."""
    op = ""
    if node.op is not None:
        op = " ".join(m.name for m in members_of(node)) if isinstance(node.op, Fused) else node.op.name
    return node.name, op, repr(node.attrs.values_)


def _drawn(
    graph: Graph, dims: Mapping[str, tuple] | None, title: str | None, hide_weights: bool, frames: Mapping[Node, str]
) -> tuple[list[str], float, float]:
    """Return the shapes of a graph, its width and its height."""
    hidden = {n for n in graph.nodes if hide_weights and n.op is None and n.name.endswith(_WEIGHTS)}
    nodes = [n for n in graph.nodes if n not in hidden]
    at = {node: i for i, node in enumerate(nodes)}
    labels = [_lines(node, dims) for node in nodes]
    sizes = [(max(map(width_of, lines)) + 2 * _PADDING, len(lines) * _LINE + _PADDING) for lines in labels]
    edges = list(dict.fromkeys((at[n], at[node]) for node in nodes for n in node.needs() if n in at))
    place = layered(sizes, edges)
    top = 24.0 if title else 0.0
    parts = [path(points, arrow=True, smooth=True) for points in place.lines]
    outputs = {node for node, _ in graph.outputs}
    for node, lines, (w, h), (x, y) in zip(nodes, labels, sizes, place.centers, strict=True):
        frame = frames.get(node, PLAIN)
        wide = 2.5 if node in frames else 1.6 if node in outputs else 0.8
        parts.append(rectangle(x - w / 2, y - h / 2, w, h, fill=COLORS[_kind(node)], stroke=frame, stroke_width=wide,
                               round_=h / 2 if node.op is None else 4, tip=_tip(node)))  # fmt: skip
        for k, line in enumerate(lines):
            parts.append(text(x, y - h / 2 + _PADDING / 2 + (k + 0.75) * _LINE, line, weight="bold" if k == 0 else "normal"))
    if title:
        parts = [text(0, 14, title, size=14, anchor="start", weight="bold"), group(parts, 0, top)]
    return parts, max(place.width, width_of(title or "", 14)), place.height + top


def _kind(node: Node) -> str:
    if node.op is None:
        return "variable"
    member, *others = members_of(node)
    return "fused" if others else member.op.kind if member.op.kind in COLORS else "kernel"  # type: ignore[union-attr]


def _lines(node: Node, dims: Mapping[str, tuple] | None) -> list[str]:
    """Return what stands in a box."""
    if node.op is None:
        lines = [node.name]
    elif len(members_of(node)) > 1:
        lines = [
            f"{len(members_of(node))} operators {'by rows' if isinstance(node.op, Strip) else 'fused'}",
            *formula_of(node),
        ]
    else:
        lines = [operators_of(node), members_of(node)[0].name]
    if dims is not None:
        shapes = [dims.get(node.output_name(k)) for k in range(node.visible_outputs)]
        lines.append(" ".join(str(tuple(s)) for s in shapes if s is not None))
    return [shortened(line, _LONGEST) for line in lines]


def _tip(node: Node) -> str:
    """Return what shows when a box is pointed at."""
    place = location(node)
    lines = [] if node.op is None else formula_of(node)
    return "\n".join([*lines, *([f"made at {place}"] if place else [])])
