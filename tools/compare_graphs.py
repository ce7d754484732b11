#!/usr/bin/env python
"""Measure what is done to graphs: how long passes and binding take, how much memory the plan saves, what fusion gains.

    python tools/compare_graphs.py                  # everything; prints the table of figures
    python tools/compare_graphs.py passes           # some groups: passes, memory, fused, nodes

The table is that of ``compare.py``.  Times of passes are of the processor, not of the clock: what else runs on the machine
matters less.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any

from compare import Row, machine, mx, show, write
from compare_fused import fused, nodes

from mxop.graph import Graph, Known, Node  # isort: skip  (compare sets the number of threads first)
from mxop.graph.passes import run_passes, selected

UNARY = ("sin", "tanh", "sigmoid", "square", "arctan", "softsign")
BINARY = ("elemwise_add", "elemwise_mul", "elemwise_sub", "_maximum", "_hypot")


# ---- graphs ----------------------------------------------------------------------------------------------------------
def chain(n: int, seed: int = 0) -> Any:
    """Return a chain of `n` elementwise operators, some of them with numbers; its pieces are alike."""
    s = mx.sym.Variable("x")
    for k in range(n):
        s = (s * 1.01, s + 0.1, getattr(mx.sym, UNARY[k // 3 % len(UNARY)])(s))[k % 3]
    return s


def tangle(n: int, seed: int = 0) -> Any:
    """Return a graph of `n` elementwise operators of which no two pieces are alike."""
    draw = random.Random(seed)
    values = [mx.sym.Variable("x"), mx.sym.Variable("y")]
    for _ in range(n):
        kind = draw.random()
        if kind < 0.4:
            new = getattr(mx.sym._internal, draw.choice(BINARY))(values[-1], draw.choice(values[-40:]))
        else:
            new = values[-1] * draw.random() if kind < 0.6 else getattr(mx.sym, draw.choice(UNARY))(values[-1])
        values.append(new)
    return values[-1]


# ---- time ------------------------------------------------------------------------------------------------------------
def seconds(works: Iterable[Callable[[], Any]]) -> float:
    """Return the least processor time, for the rest of a machine only adds to it, by what it does to the caches.

    Garbage is collected before, and as always meanwhile.
    """
    found = []
    for work in works:
        gc.collect()
        start = time.process_time()
        kept = work()
        found.append(time.process_time() - start)
        del kept
    return min(found)


def all_passes(symbol: Any) -> Callable[[], Any]:
    """Return the work of inferring a graph and running every pass of an executor over it, verifier included."""
    graph = Graph(symbol._entries)
    given: dict[Node, tuple] = dict.fromkeys(graph.variables, ((8,), 0))
    chosen = [p for p in selected() if p.stage != "plan"]
    return lambda: run_passes(graph, Known.solve(graph, given), chosen)


def bound(symbol: Any, request: str) -> Callable[[], Any]:
    """Return the work of binding a symbol to arrays of eight elements."""
    shapes = dict.fromkeys(symbol.list_arguments(), (8,))
    return lambda: symbol.simple_bind(mx.cpu(), request, **shapes)


def passes() -> list[Row]:
    """Passes and binding of graphs of 1,000, 10,000 and 100,000 nodes."""
    sizes = (1_000, 10_000, 100_000)
    works = {"passes": all_passes, "bind": partial(bound, request="null"),
             "bind with gradient": partial(bound, request="write")}  # fmt: skip
    seeds = count()  # each graph is new to all caches
    rows = []
    for name, make in (("chain", chain), ("tangle", tangle)):
        for what, work in works.items():
            tries = [3 if n < sizes[-1] else 2 for n in sizes]
            found = [seconds(work(make(n, next(seeds))) for _ in range(k)) for n, k in zip(sizes, tries, strict=True)]
            most = 2.0 if what == "passes" else float("inf")
            text = f"{what}, {name} of 10,000 nodes"
            rows.append(Row("passes", text, f"<= {most:g}" if most < 1e9 else "", found[1], found[1] <= most,
                            f"1,000: {found[0]:.3g} s, 100,000: {found[2]:.3g} s", unit="s"))  # fmt: skip
            growth = found[2] / found[1]
            rows.append(Row("passes", f"{what}, {name}: from 10,000 nodes to 100,000", "<= 12", growth, growth <= 12,
                            "10 is linear"))  # fmt: skip
    return rows


# ---- memory ----------------------------------------------------------------------------------------------------------
def perceptron(widths: Sequence[int], act_type: str) -> Any:
    """Return layers with an activation each, and a loss."""
    s = mx.sym.Variable("data")
    for k, width in enumerate(widths):
        s = mx.sym.FullyConnected(s, num_hidden=width, name=f"layer{k}")
        s = mx.sym.Activation(s, act_type=act_type) if k < len(widths) - 1 else mx.sym.log_softmax(s)
    return mx.sym.sum(mx.sym.elemwise_mul(s, mx.sym.Variable("label")))


def stages(n: int) -> Any:
    """Return a chain of operators without weights, of which every second one cannot be fused."""
    s = mx.sym.Variable("data")
    for k in range(n):
        s = mx.sym.sin(s) * 1.1 if k % 2 else mx.sym.softmax(s)
    return mx.sym.sum(s)


def planned(symbol: Any, shape: tuple[int, ...], **passes: bool) -> int:
    """Return the bytes of the buffers of a training step."""
    shapes = {"data": shape, "label": (shape[0], 10)}
    shapes = {n: shapes[n] for n in symbol.list_arguments() if n in shapes}
    requests = {n: "null" if n in ("data", "label") else "write" for n in symbol.list_arguments()}
    if set(requests) == {"data"}:
        requests["data"] = "write"
    executor = symbol.simple_bind(mx.cpu(), requests, passes=passes, **shapes)
    return executor.explain(is_train=True).memory["planned"]


def memory() -> list[Row]:
    """Buffers of a training step, planned and with mirroring, as a share of those of a plan that shares nothing."""
    rows = []
    models = (
        ("MLP of 4 layers", perceptron((512, 512, 512, 10), "relu"), (1024, 512)),
        ("50 layers", perceptron((256,) * 49 + (10,), "tanh"), (1024, 256)),
        ("chain of 50 operators", stages(50), (1024, 256)),
    )
    for name, symbol, shape in models:
        without = planned(symbol, shape, share_memory=False)
        for what, most, passes in (("planned", 0.6, {}), ("mirrored", 0.35, {"mirror": True})):
            share = planned(symbol, shape, **passes) / without
            rows.append(Row("memory", f"training step, {name}: {what}", f"<= {most:g}", share, share <= most,
                            f"{without / 1e6:.3g} MB without"))  # fmt: skip
    return rows


GROUPS: dict[str, Callable[[], list[Row]]] = {"passes": passes, "memory": memory, "fused": fused, "nodes": nodes}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", default=list(GROUPS), choices=[*GROUPS, []], metavar="group",
                        help=f"of {', '.join(GROUPS)}; all by default")  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON, for charts.py ('-' prints them)")
    given = parser.parse_args()
    about = machine()
    print(f"{about['cpu']}, {about['threads']} threads, instruction set {about['instruction_set']}")
    found = []
    for group in given.groups:
        for row in GROUPS[group]():
            found.append(row)
            print(show(row), flush=True)
    short = [row for row in found if row.bound and not row.ok]
    print(f"{sum(bool(row.bound) for row in found)} figures, {len(short)} short")
    if given.json:
        write(given.json, found)


if __name__ == "__main__":
    main()
