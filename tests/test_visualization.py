"""Pictures and tables of graphs: MXNet's output where MXNet has it, sound SVG elsewhere."""

import re
import time
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

import mxop as mx
from mxop.visualization.layout import layered

DATA = Path(__file__).parent / "data"
SVG = "{http://www.w3.org/2000/svg}"


pytestmark = pytest.mark.usefixtures("fresh_names")


def layers():
    data = mx.sym.Variable("data")
    n = mx.sym.FullyConnected(data=data, name="fc1", num_hidden=128)
    n = mx.sym.Activation(data=n, name="relu1", act_type="relu")
    n = mx.sym.FullyConnected(data=n, name="fc2", num_hidden=10, no_bias=True)
    m = mx.sym.LeakyReLU(n, act_type="leaky", name="lr")
    k = mx.sym.Concat(n, m, dim=1, name="cc")
    s = mx.sym.SliceChannel(k, num_outputs=2, name="sp")
    return mx.sym.broadcast_add(s[0], mx.sym.Reshape(mx.sym.Flatten(s[1], name="fl"), shape=(-1, 10), name="rs"), name="out")


# ---- MXNet's functions ------------------------------------------------------------------------------------------------
def test_summaries_are_those_of_mxnet(capsys):
    """The file holds what MXNet 1.9.1 prints."""
    y, a, b = layers(), mx.sym.Variable("a"), mx.sym.Variable("b")
    for options in ({}, {"shape": {"data": (5, 20)}}, {"shape": {"data": (5, 20)}, "line_length": 80},
                    {"positions": [30, 60, 80, 100]}):  # fmt: skip
        mx.viz.print_summary(y, **options)
    for s in (a + b, a, mx.sym.Group([a * b, a - b]), mx.sym.exp(a, name="e"),
              mx.sym.SliceChannel(a, num_outputs=2, name="q")):  # fmt: skip
        mx.viz.print_summary(s)
        mx.viz.print_summary(s, shape=dict.fromkeys(s.list_arguments(), (4, 6)))
    assert capsys.readouterr().out == (DATA / "print_summary.txt").read_text()


def test_summary_of_shapes_that_mxnet_fails_on(capsys):
    mx.viz.print_summary(layers(), shape={"data": (5, 1)})
    x = mx.sym.Variable("x")
    mx.viz.print_summary(mx.sym.exp(x) + 1, shape={"x": (5,)})
    assert "exp0(exp)" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:Cannot decide shape")
def test_arguments_of_the_summary():
    x = mx.sym.Variable("x")
    for wrong in (3, None, "x"):
        with pytest.raises(TypeError, match="symbol must be Symbol"):
            mx.viz.print_summary(wrong)
    with pytest.raises(ValueError, match="Input shape is incomplete"):
        mx.viz.print_summary(x + x, shape={})
    with pytest.raises(ValueError, match="must hold 4 numbers"):
        mx.viz.print_summary(x, positions=[0.5, 1])


def test_networks_are_those_of_mxnet():
    """The file holds what MXNet 1.9.1 gives to Graphviz; our boxes grow with their labels."""
    pytest.importorskip("graphviz")
    y, a, b = layers(), mx.sym.Variable("a"), mx.sym.Variable("b")
    graphs = [mx.viz.plot_network(y, **options) for options in (
        {}, {"shape": {"data": (5, 20)}},
        {"shape": {"data": (5, 20)}, "dtype": {"data": "float32"}, "hide_weights": False, "title": "t",
         "node_attrs": {"shape": "oval", "fixedsize": "false"}, "save_format": "png"},
    )]  # fmt: skip
    graphs.append(mx.viz.plot_network(a + b))
    group = mx.sym.Group([a * b, a - b, mx.sym.softmax(a)])
    graphs.append(mx.viz.plot_network(group, shape={"a": (2, 3), "b": (2, 3)}))
    found = "\n".join(g.source.rstrip() for g in graphs) + "\n"
    theirs = (DATA / "plot_network.txt").read_text().replace("fixedsize=true", "fixedsize=false")
    assert found == theirs and graphs[2].format == "png"


@pytest.mark.filterwarnings("ignore:Cannot decide shape")
def test_arguments_of_plot_network():
    pytest.importorskip("graphviz")
    with pytest.raises(TypeError, match="symbol must be a Symbol"):
        mx.viz.plot_network(3)
    x = mx.sym.Variable("x")
    with pytest.raises(ValueError, match="Input shape is incomplete"):
        mx.viz.plot_network(x + mx.sym.Variable("y"), shape={})
    with pytest.warns(RuntimeWarning, match="Repeated names: x"):
        mx.viz.plot_network(x + mx.sym.Variable("x"))


def test_plot_network_without_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "graphviz", None)
    with pytest.raises(
        ImportError, match=r'requires the Python package graphviz \(pip install "mxop-ndarray\[plot\]"\)'
    ) as told:
        mx.viz.plot_network(mx.sym.Variable("x"))
    assert isinstance(told.value, mx.MXNetError)


# ---- SVG --------------------------------------------------------------------------------------------------------------
def parsed(drawing):
    """Return the root of a drawing, all of whose shapes must lie inside."""
    root = ET.fromstring(drawing)
    width, height = float(root.get("width")), float(root.get("height"))

    def visit(item, x, y):
        moved = re.match(r"translate\((.*),(.*)\)", item.get("transform", ""))
        x, y = (x + float(moved[1]), y + float(moved[2])) if moved else (x, y)
        if item.tag == SVG + "rect":
            left, top = x + float(item.get("x")), y + float(item.get("y"))
            assert -0.1 <= left <= left + float(item.get("width")) <= width + 0.1
            assert -0.1 <= top <= top + float(item.get("height")) <= height + 0.1
        for child in item:
            visit(child, x, y)

    visit(root, 0, 0)
    return root


def words(root):
    return [t.text for t in root.iter(SVG + "text")]


def test_a_symbol_as_a_picture(tmp_path):
    drawing = mx.viz.svg(layers(), shape={"data": (5, 20)}, title="<net> & more")
    root = parsed(drawing)
    shown = words(root)
    assert {"data", "fc1_weight", "FullyConnected", "fc1", "(5, 128)", "broadcast_add", "<net> & more"} <= set(shown)
    assert len(list(root.iter(SVG + "rect"))) == 1 + 13
    assert any("fc1 = FullyConnected(data, fc1_weight, fc1_bias" in t.text for t in root.iter(SVG + "title"))
    assert any("test_visualization.py" in t.text for t in root.iter(SVG + "title"))
    hidden = words(parsed(mx.viz.svg(layers(), hide_weights=True)))
    assert "fc1_weight" not in hidden and "fc1" in hidden
    drawing.save(tmp_path / "net.svg")
    assert (tmp_path / "net.svg").read_text(encoding="utf-8") == drawing == drawing._repr_svg_()


def test_an_executor_as_a_picture():
    x = mx.sym.Variable("x")
    executor = (mx.sym.tanh(x * 2) + x).simple_bind(mx.cpu(), "null", x=(2,))
    assert "3 operators fused" in words(parsed(mx.viz.svg(executor)))
    with pytest.raises(TypeError, match="expected a symbol, a graph or an executor"):
        mx.viz.svg(3)
    axis = mx.axes.make_axis(2, "H")
    assert "exp" in words(parsed(mx.viz.svg(mx.axes.exp(mx.axes.placeholder(axis)))))


def test_before_and_after_a_pass():
    from mxop.visualization.graphs import ADDED, REMOVED

    x = mx.sym.Variable("x")
    graph = mx.graph.Graph((mx.sym.exp(x, name="p") + mx.sym.exp(x, name="q"))._entries)
    known = mx.graph.Known.solve(graph, {graph.variables[0]: ((2,), 0)})
    root = parsed(mx.viz.compare(graph, mx.graph.optimize(graph, known, ["common_subexpressions"]), titles=("all", "once")))
    framed = [r.get("stroke") for r in root.iter(SVG + "rect")]
    assert framed.count(REMOVED) == 1 and framed.count(ADDED) == 0 and {"all", "once"} <= set(words(root))
    root = parsed(mx.viz.compare(x + 1, x * 1))
    assert [r.get("stroke") for r in root.iter(SVG + "rect")].count(ADDED) == 1


def test_memory_over_time():
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    executor = mx.sym.softmax(mx.sym.tanh(mx.sym.dot(x, w)) * 2).simple_bind(mx.cpu(), x=(2, 3), w=(3, 4))
    told = executor.explain()
    root = parsed(mx.viz.memory_chart(executor))
    tips = [t.text for t in root.iter(SVG + "title")]
    for buffer in told.buffers:
        for tenant in buffer.tenants:
            assert any(t.startswith(f"{tenant.name}: ") for t in tips)
    assert "backward" in words(root) and sum(t.startswith("step ") for t in tips) == len(told)
    assert mx.viz.memory_chart(told) == mx.viz.memory_chart(executor)
    assert parsed(mx.viz.memory_chart(x.simple_bind(mx.cpu(), "null", x=(2,)))) is not None
    with pytest.raises(TypeError, match="expected an executor"):
        mx.viz.memory_chart(x)


# ---- layout -----------------------------------------------------------------------------------------------------------
def test_boxes_do_not_overlap_and_edges_go_down():
    import random

    draw = random.Random(1)
    for count in (1, 2, 30, 200):
        sizes = [(draw.uniform(5, 90), draw.uniform(5, 40)) for _ in range(count)]
        edges = [(draw.randrange(b), b) for b in range(1, count) for _ in range(draw.randrange(1, 3))]
        place = layered(sizes, sorted(set(edges)))
        rows = {}
        for (x, y), (w, h) in zip(place.centers, sizes, strict=True):
            rows.setdefault(round(y, 3), []).append((x - w / 2, x + w / 2))
            assert x - w / 2 >= 0 and x + w / 2 <= place.width + 1e-6 and y + h / 2 <= place.height + 1e-6
        for row in rows.values():
            for (_, right), (left, _) in pairwise(sorted(row)):
                assert right < left
        for points in place.lines:
            assert all(a[1] <= b[1] for a, b in pairwise(points))
    assert layered([], []).width == 0


def test_large_graphs_are_drawn_in_reasonable_time():
    x = mx.sym.Variable("x")
    for _ in range(2000):
        x = mx.sym.tanh(x) + x
    start = time.perf_counter()
    assert len(mx.viz.svg(x)) > 1e5
    assert time.perf_counter() - start < 30
