"""What is done to graphs: how long passes and binding take, how much memory a plan saves, what a node costs; resident memory.

Times of passes are of the processor, not of the clock: what else runs on the machine matters less.  Imports `systems` and
`timing`.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from systems import mx
from timing import Row, in_turn

from mxop.cli.timing import Way
from mxop.graph import Graph, Known, Node
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
            rows.append(Row("g.passes", text, f"<= {most:g}" if most < 1e9 else "", found[1], found[1] <= most,
                            f"1,000: {found[0]:.3g} s, 100,000: {found[2]:.3g} s", unit="s"))  # fmt: skip
            growth = found[2] / found[1]
            rows.append(Row("g.passes", f"{what}, {name}: from 10,000 nodes to 100,000", "<= 12", growth, growth <= 12,
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
            rows.append(Row("g.plans", f"training step, {name}: {what}", f"<= {most:g}", share, share <= most,
                            f"{without / 1e6:.3g} MB without"))  # fmt: skip
    return rows


# ---- nodes -------------------------------------------------------------------------------------------------------------
def nodes() -> list[Row]:
    """What an executor spends on a node of 8 elements, its work included: graphs of 200 nodes, not fused."""
    s, n = mx.sym, 200
    kinds: dict[str, tuple[float, Callable[[Any], Any], Callable[[Any], Any]]] = {
        "elementwise": (0.3, s.sin, np.sin),
        "reductions and broadcasts": (0.3, lambda x: s.broadcast_to(s.mean(x, keepdims=True), shape=(8,)),
                                 lambda x: np.full(8, x.mean())),
        "softmax, a kernel": (0.6, s.softmax, lambda x: (e := np.exp(x - x.max())) / e.sum()),
    }  # fmt: skip
    rows = []
    for name, (most, step, by_numpy) in kinds.items():
        x = s.Variable("x")
        for _ in range(n):
            x = step(x)
        executor = x.simple_bind(mx.cpu(), "null", passes={"fuse": False, "strips": False}, x=(8,))
        way = Way(lambda e=executor: e.forward(is_train=False))
        values = np.full(8, 0.5)
        for _ in range(n):
            values = by_numpy(values)
        executor.arg_dict["x"][:] = 0.5
        found = in_turn({"mxop": way}, [values], rounds=41, least=2e-3)
        if found.wrong:
            raise AssertionError(f"{name}: {found.wrong['mxop']}")
        seconds, count = found.seconds["mxop"], len(executor.explain().rows)
        each = seconds / count * 1e6
        rows.append(Row("g.nodes", f"a node of 8 elements: {name}", f"<= {most:g}" if most < 1e9 else "", each, each <= most,
                        f"{count} nodes", unit="us"))  # fmt: skip
    return rows


# ---- resident memory ---------------------------------------------------------------------------------------------------
def resident() -> int:
    """Return the bytes of memory that the process holds."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def leaks() -> list[Row]:
    """Resident memory over 1e4 rounds of recording, backward and create_graph."""
    x = mx.nd.array(np.linspace(0, 1, 4096, dtype=np.float32))
    x.attach_grad()

    def rounds(n: int) -> None:
        for _ in range(n):
            with mx.autograd.record():
                y = mx.nd.sin(x) * x
                (g,) = mx.autograd.grad(y, [x], create_graph=True)
                z = mx.nd.sum(g * g)
            z.backward()

    rounds(1000)
    before, used = resident(), mx.context.memory_stats()["in_use"]
    rounds(10_000)
    grown, more = resident() - before, mx.context.memory_stats()["in_use"] - used
    what = "resident memory over 1e4 rounds of record, backward, create_graph"
    return [Row("g.resident", what, "<= 1 MB", grown / 1e6, grown <= 1 << 20 and more == 0, f"pool in use {more:+d} bytes",
                unit="MB")]  # fmt: skip


#: Measures that are no ratio to a peer, by name.
FIGURES = {"g.passes": passes, "g.plans": memory, "g.nodes": nodes, "g.resident": leaks}
