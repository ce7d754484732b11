#!/usr/bin/env python
"""Write the drawings of the documentation, as SVG.

    python tools/drawings.py                  # into docs/drawings
    python tools/drawings.py FOLDER

A call, a gradient and a bound graph are boxes and arrows that are laid out here; what an executor runs is drawn by ``mx.viz``,
and the curves of the start page are points that mxop computes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

import mxop as mx
from mxop.op import F, elementwise
from mxop.visualization.canvas import SVG, drawing, path, rectangle, text, width_of

ROOT = Path(__file__).resolve().parent.parent
PLAIN, DATA, KERNEL, NOTE, TAPE = "#eef3fb", "#8dd3c7", "#ffe08a", "#f6f6f6", "#bebada"
_LINE, _PADDING = 15.0, 9.0


class Box:
    """A box of lines of text, the first of them bold; `x` is its middle, `y` its top.

    Raises
    ------
    ValueError
        When a line is wider than the box.
    """

    def __init__(self, x: float, y: float, width: float, lines: Sequence[str], fill: str = PLAIN):
        wide = [line for line in lines if width_of(line, 11) > width]
        if wide:
            raise ValueError(f"wider than {width}: {wide}")
        self.x, self.y, self.width, self.lines, self.fill = x, y, width, lines, fill
        self.height = _LINE * len(lines) + 2 * _PADDING - 3

    def parts(self) -> list[str]:
        """Return the shapes."""
        found = [rectangle(self.x - self.width / 2, self.y, self.width, self.height, fill=self.fill, stroke="#777", round_=5)]
        for k, line in enumerate(self.lines):
            weight = "bold" if k == 0 else "normal"
            found.append(text(self.x, self.y + _PADDING + 9 + _LINE * k, line, weight=weight))
        return found

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def left(self) -> tuple[float, float]:
        return self.x - self.width / 2, self.y + self.height / 2

    @property
    def right(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


def down(upper: Box, lower: Box) -> str:
    """Return an arrow from a box to the one below it."""
    return path([(upper.x, upper.bottom), (lower.x, lower.y - 1)], arrow=True)


def across(start: tuple[float, float], end: tuple[float, float], dashes: str = "4 3") -> str:
    """Return an arrow to the side."""
    return path([start, end], arrow=True, dashes=dashes)


def column(x: float, y: float, width: float, boxes: Sequence[tuple[Sequence[str], str]], gap: float = 22) -> list[Box]:
    """Return boxes one below the other."""
    found: list[Box] = []
    for lines, fill in boxes:
        found.append(Box(x, found[-1].bottom + gap if found else y, width, lines, fill))
    return found


def shapes_of(boxes: Sequence[Box]) -> list[str]:
    """Return the shapes of all boxes."""
    return [part for box in boxes for part in box.parts()]


def flow(boxes: Sequence[Box]) -> list[str]:
    """Return boxes with arrows from each to the next."""
    return shapes_of(boxes) + [down(a, b) for a, b in pairwise(boxes)]


def call() -> SVG:
    """Draw what happens in one call of an operator."""
    main = column(205, 14, 376, [
        (["mx.nd.quadratic(x, a=1)", "_core/dispatch: parameters parsed once, then cached"], DATA),
        (["shapes and types", "_core/elementwise: compared, the result from the pool"], PLAIN),
        (["program", "formula/program: compiled once for each type"], PLAIN),
        (["blocks of some hundred elements", "_kernels/interp: threads take them; each instruction",
          "runs over a block while it lies in the first cache"], KERNEL),
        (["result"], DATA),
    ])  # fmt: skip
    tape = Box(570, main[1].y, 250, ["recording?", "_core/tape: a node that keeps", "what backward will read"], TAPE)
    gpu = Box(570, main[2].y + 36, 250, ["on a GPU", "_gpu/text: the formula as CUDA text,", "one CuPy kernel"], KERNEL)
    late = Box(570, main[3].y + 50, 250, ["a large result?", "_core/lazy: evaluated when read,", "fused with its neighbours"],
               KERNEL)  # fmt: skip
    sides = [across(main[1].right, tape.left), across(main[2].right, gpu.left), across(main[3].right, late.left)]
    return drawing(flow(main) + shapes_of([tape, gpu, late]) + sides, 710, main[-1].bottom + 14)


def gradient() -> SVG:
    """Draw what autograd notes of ``y = sin(x) * x``, and what backward makes of it."""
    places = {"x": 90, "sin": 300, "mul": 520}
    x = Box(places["x"], 51.5, 120, ["x", "a variable"], DATA)
    sine = Box(places["sin"], 44, 170, ["s = sin(x)", "node of the tape:", "keeps x"], TAPE)
    product = Box(places["mul"], 44, 170, ["y = s * x", "node of the tape:", "keeps s and x"], TAPE)
    head = Box(places["mul"], 189.5, 170, ["y.backward()", "head gradient 1"], PLAIN)
    back = Box(places["sin"], 182, 170, ["_backward_sin", "an operator: its formula", "is derived from sin's"], KERNEL)
    total = Box(places["x"], 189.5, 120, ["x.grad", "cos(x) * x + s"], DATA)
    again = Box(315, 288, 600, ["with create_graph=True these calls are recorded, too: gradients have gradients"], NOTE)
    parts = [text(310, 22, "forward, recorded", weight="bold"), text(310, 168, "backward", weight="bold")]
    parts += shapes_of([x, sine, product, head, back, total, again])
    parts += [across(x.right, sine.left, ""), across(sine.right, product.left, ""), across(head.left, back.right, "")]
    parts += [across(back.left, total.right, ""), down(product, head)]
    parts.append(path([(x.x, x.y), (x.x, 32), (product.x, 32), (product.x, product.y - 1)], arrow=True))
    parts.append(path([(head.x, head.bottom), (head.x, 262), (total.x, 262), (total.x, total.bottom + 1)], arrow=True))
    return drawing(parts, 630, again.bottom + 14)


def bound() -> SVG:
    """Draw what becomes of a symbol when it is bound."""
    left = column(190, 14, 320, [
        (["symbol", "an immutable graph"], DATA),
        (["inference", "graph/infer: shapes and types, both ways"], PLAIN),
        (["passes of the stage symbol", "stable forms in the place of others"], PLAIN),
        (["lowering", "graph/gradient: backward nodes", "graph/expansion: composites, call by call"], PLAIN),
        (["passes of the stage graph", "constants, algebra, equal nodes merged"], PLAIN),
    ])  # fmt: skip
    right = column(560, 14, 320, [
        (["passes of the stage schedule", "recompute, strips, fuse"], PLAIN),
        (["plan", "graph/plan: an order, and a place for each value"], PLAIN),
        (["schedule", "graph/schedule: prepared calls"], PLAIN),
        (["executor.forward(), executor.backward()", "a list of prepared calls, run in Cython:",
          "nothing is inferred, parsed or allocated"], KERNEL),
        (["outputs and gradients", "written where the user's arrays lie"], DATA),
    ])  # fmt: skip
    corner = [
        left[-1].right,
        (375, left[-1].right[1]),
        (375, right[0].left[1]),
        (right[0].left[0] - 1, right[0].left[1]),
    ]
    return drawing(flow(left) + flow(right) + [path(corner, arrow=True)], 740, max(left[-1].bottom, right[-1].bottom) + 14)


_EXECUTOR = """\
x, w, b = (mx.sym.Variable(name) for name in "xwb")
h = mx.sym.tanh(mx.sym.broadcast_add(mx.sym.dot(x, w, name="product"), b), name="h")
executor = mx.sym.sum(mx.sym.square(h), name="loss").simple_bind(mx.cpu(), x=(4, 5), w=(5, 3), b=(3,))
"""


def executor() -> SVG:
    """Draw what an executor runs."""
    names = {"mx": mx}
    with mx.name.NameManager():
        exec(compile(_EXECUTOR, "example.py", "exec"), names)
    return mx.viz.svg(names["executor"], title="what one training step runs")


def swish() -> SVG:
    """Draw the operator of the start page, and its derivatives."""

    @elementwise(name="_drawn_swish")
    def swish(data, *, beta: float = 1.0):
        return data * F.sigmoid(beta * data)

    x = mx.nd.array(np.linspace(-6, 6, 241), dtype="float64")
    v = mx.sym.Variable("v")
    curve, curves = swish(v), []
    for name, color in (("f", "#1f77b4"), ("f'", "#d62728"), ("f''", "#2ca02c"), ("f'''", "#9467bd")):
        curves.append((name, color, curve.eval(v=x)[0].asnumpy()))
        curve = mx.graph.deriv(curve, v)
    mx.op.unregister("_drawn_swish")
    return plot(x.asnumpy(), curves, "swish(x) = x * sigmoid(x), and its derivatives", low=-0.6, high=1.6)


def plot(x: np.ndarray, curves: Sequence[tuple[str, str, np.ndarray]], title: str, low: float, high: float) -> SVG:
    """Draw curves between two values; what is outside is left out."""
    left, top, width, height = 46.0, 34.0, 560.0, 260.0

    def place(a: float, b: float) -> tuple[float, float]:
        return left + (a - x[0]) / (x[-1] - x[0]) * width, top + (high - b) / (high - low) * height

    parts = [text(left + width / 2, 20, title, size=13, weight="bold"),
             rectangle(left, top, width, height, fill="none", stroke="#999")]  # fmt: skip
    for a in range(int(x[0]), int(x[-1]) + 1, 2):
        parts += [
            path([place(a, low), place(a, high)], stroke="#eee"),
            text(place(a, low)[0], top + height + 15, str(a)),
        ]
    for b in np.arange(np.ceil(low * 2) / 2, high, 0.5):
        parts += [path([place(x[0], b), place(x[-1], b)], stroke="#bbb" if b == 0 else "#eee"),
                  text(left - 6, place(0, b)[1] + 4, f"{b:g}", anchor="end")]  # fmt: skip
    for k, (name, color, y) in enumerate(curves):
        shown = (y >= low) & (y <= high)
        parts.append(path([place(a, b) for a, b in zip(x[shown], y[shown], strict=True)], stroke=color, width=2))
        line = top + 20 + 18 * k
        parts += [path([(left + 14, line), (left + 40, line)], stroke=color, width=2),
                  text(left + 48, line + 4, name, anchor="start", size=12)]  # fmt: skip
    return drawing(parts, left + width + 16, top + height + 26)


DRAWINGS = {"call": call, "gradient": gradient, "bound": bound, "executor": executor, "swish": swish}


def main(arguments: Sequence[str]) -> None:
    """Write all drawings."""
    folder = Path(arguments[0]) if arguments else ROOT / "docs" / "drawings"
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        draw().save(folder / f"{name}.svg")
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
