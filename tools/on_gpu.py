"""Measure mxop on a GPU, beside torch and CuPy: all in turn, as medians of rounds, with the share of the bandwidth of a copy.

    python tools/on_gpu.py                      # every row; a minute
    python tools/on_gpu.py softmax "sum, rows"  # some
    python tools/on_gpu.py --markdown figures.md --chart figures.svg

Results are compared after they were timed.  A time is that of as many calls as take 50 ms, waited for once at their end: of
large arrays that of the device, of small ones that of the call.  Needs CuPy and a GPU; torch is left out where it is missing,
and matplotlib draws the chart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import mxop as mx
from mxop.cli.timing import JUDGED, Way, each, host, timed

try:
    import torch
except ImportError:
    torch = None
else:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

ROUNDS, LEAST = 5, 0.05  # and the seconds of a round's calls
DRAWN = 1 << 20  # numbers that are drawn, and repeated; of a result so many are compared
nd, sym = mx.nd, mx.sym
Program = Callable[..., Any]


@dataclass
class Row:
    """A workload: what each system computes of its own arrays.

    Attributes
    ----------
    shapes : sequence of shapes
    moved : float
        Bytes that must be read and written, for each of the first array.
    """

    name: str
    shapes: Sequence[tuple[int, ...]]
    mxop: Program
    torch: Program | None = None
    cupy: Program | None = None
    moved: float = 0.0
    dtype: str = "float32"
    tolerance: float | None = 1e-4  # None: random numbers, which are not compared
    found: dict[str, float] = field(default_factory=dict)
    doubted: list[str] = field(default_factory=list)

    def measure(self) -> None:
        """Time, then compare the results."""
        rng = np.random.default_rng(0)
        arrays = [np.resize(rng.uniform(0.1, 1.1, DRAWN + k).astype(self.dtype), s) for k, s in enumerate(self.shapes)]
        calls = {"mxop": bound(self.mxop, [nd.array(a, dtype=a.dtype, ctx=mx.gpu(0)) for a in arrays])}
        if self.torch is not None and torch is not None:
            calls["torch"] = bound(self.torch, [torch.from_numpy(a).cuda() for a in arrays])
        if self.cupy is not None:
            calls["cupy"] = bound(self.cupy, [cupy.asarray(a) for a in arrays])
        ways = {name: Way(call, read=on_host) for name, call in calls.items()}
        expected = on_host(list(calls.values())[-1]())
        if self.tolerance is None:  # of random numbers, how many there are and about where
            for way in ways.values():
                way.read = moments
            expected = moments(list(calls.values())[-1]())
        moved = self.moved * np.prod(self.shapes[0])
        probes = {"copy": copy_of(int(moved))} if moved >= JUDGED else {}
        found = timed(ways, expected, tolerance=self.tolerance or 1e-2, rounds=ROUNDS, least=LEAST, probes=probes,
                      wait=cupy.cuda.runtime.deviceSynchronize)  # fmt: skip
        if found.wrong:
            raise AssertionError("; ".join(f"{name} {told}" for name, told in found.wrong.items()))
        self.found, self.doubted = {name: found.seconds[name] for name in ways}, found.too_fast

    def line(self, copied: float) -> str:
        """Return the row of the table; `copied` are the bytes that a copy moves in a second."""
        own = self.found["mxop"]
        share = f"{self.moved * np.prod(self.shapes[0]) / own / copied:.0%}" if self.moved else ""
        share += f" (too fast: {', '.join(self.doubted)})" if self.doubted else ""
        peers = [f"{own / self.found[p]:.2f}" if p in self.found else "" for p in ("torch", "cupy")]
        return f"| {self.name} | {own * 1e6:.1f} | {share} | {' | '.join(peers)} |"


def bound(program: Program, arrays: Sequence[Any]) -> Callable[[], Any]:
    """Return the call of a program on arrays."""
    return lambda: program(*arrays)


def on_host(results: Any) -> list[np.ndarray]:
    """Return a part of each result, as NumPy arrays of float64."""
    found = []
    for a in each(results):
        flat = host(a).ravel()
        found.append(flat[:: max(flat.size // DRAWN, 1)].astype(np.float64))
    return found


def moments(results: Any) -> list[np.ndarray]:
    """Return how many random numbers there are, their mean and their deviation."""
    (x,) = (host(a) for a in each(results))
    return [np.array([x.size]), np.array([x.mean(), x.std()])]


def copy_of(nbytes: int) -> Callable[[], Any]:
    """Return what copies on the device, half of so many bytes read and half written."""
    half, to_device = nbytes // 2, 3
    buffer = cupy.empty(2 * half, cupy.uint8)
    copy = cupy.cuda.runtime.memcpyAsync
    return lambda: copy(buffer.data.ptr, buffer.data.ptr + half, half, to_device, 0)


def bandwidth() -> float:
    """Return the bytes that a copy reads and writes in a second."""
    nbytes = 1 << 30
    found = timed({}, None, rounds=ROUNDS, least=LEAST, probes={"copy": copy_of(nbytes)},
                  wait=cupy.cuda.runtime.deviceSynchronize)  # fmt: skip
    return nbytes / found.seconds["copy"]


# ---- programs -----------------------------------------------------------------------------------------------------------
def chain(F: Any) -> Program | None:
    """Return ``sigmoid(x * y + z) * x``; None of a system that is missing."""
    return None if F is None else lambda x, y, z: F.sigmoid(x * y + z) * x


def uniform(x: Any) -> Any:
    """Return as many random numbers."""
    return nd.random.uniform(shape=x.shape, ctx=mx.gpu(0))


def normal(x: Any) -> Any:
    """Return as many random numbers of the normal distribution."""
    return nd.random.normal(shape=x.shape, ctx=mx.gpu(0))


def small_operators(x: Any) -> Any:
    """Run an executor of 100 operators that are not fused: each other one is a sum."""
    key = id(x)
    if key not in _executors:
        y = sym.Variable("x")
        for _ in range(50):
            y = sym.broadcast_sub(y, sym.mean(y, axis=1, keepdims=True))
        _executors[key] = y.bind(mx.gpu(0), {"x": x})
    return _executors[key].forward()


def torch_small_operators(x: Any) -> Any:
    """Do the same in torch, call by call."""
    for _ in range(50):
        x = x - x.mean(1, keepdim=True)
    return x


def chain_gradient(x: Any) -> Any:
    """Return the gradient of a chain of small calls."""
    x.attach_grad()
    with mx.autograd.record():
        y = (nd.tanh(x) * x + 1).exp().sum()
    y.backward()
    return x.grad


def torch_chain_gradient(x: Any) -> Any:
    """Do the same in torch."""
    x = x.detach().requires_grad_()
    (torch.tanh(x) * x + 1).exp().sum().backward()
    return x.grad


def convolved(x: Any, w: Any) -> Any:
    """Return a convolution of 3 x 3."""
    return nd.Convolution(x, w, no_bias=True, kernel=(3, 3), pad=(1, 1), num_filter=w.shape[0])


def fused(x: Any, y: Any, z: Any) -> Any:
    """Run the chain as an executor."""
    key = id(x)
    if key not in _executors:
        names = dict(zip("xyz", (x, y, z), strict=True))
        _executors[key] = chain(sym)(*map(sym.Variable, names)).bind(mx.gpu(0), names)
    return _executors[key].forward()


_executors: dict[int, Any] = {}


def gradient(x: Any) -> Any:
    """Return a softmax, and the gradient of its squares."""
    x.attach_grad()
    with mx.autograd.record():
        y = nd.softmax(x)
    y.backward(y)
    return y, x.grad


def torch_gradient(x: Any) -> Any:
    """Do the same in torch."""
    x = x.detach().requires_grad_()
    y = torch.softmax(x, -1)
    y.backward(y.detach())
    return y, x.grad


def rows(n: int = 1 << 27, m: tuple[int, int] = (16384, 8192), tall: int = 1 << 20, square: int = 8192,
         images: tuple[int, ...] = (32, 64, 56, 56)) -> list[Row]:  # fmt: skip
    """Return the workloads; of other sizes, for a test."""
    n, tall, row, column, few = (n,), (tall, 100), (m[1],), (m[0], 1), (8,)
    square, batch, filters = (square, square), (64, square // 8, square // 8), (images[1], images[1], 3, 3)
    T = torch
    call = (lambda f: f) if T is not None else (lambda f: None)
    convolved_by_torch = call(lambda x, w: T.nn.functional.conv2d(x, w, padding=1))
    normalized = call(lambda x, g: T.nn.functional.layer_norm(x, x.shape[-1:], g, g))
    return [
        Row("copy", [n], lambda x: x.copy(), call(lambda x: x.clone()), lambda x: x.copy(), 8),
        Row("x + y", [n, n], lambda x, y: x + y, call(lambda x, y: x + y), lambda x, y: x + y, 12),
        Row("exp(x)", [n], nd.exp, call(lambda x: T.exp(x)), cupy.exp, 8),
        Row("x + y, float16", [n, n], lambda x, y: x + y, call(lambda x, y: x + y), None, 6, "float16", 1e-2),
        Row("to float16", [n], lambda x: x.astype("float16"), call(lambda x: x.half()), None, 6),
        Row("matrix + row", [m, (1, m[1])], nd.broadcast_add, call(lambda x, y: x + y), lambda x, y: x + y, 8),
        Row("matrix + column", [m, column], nd.broadcast_add, call(lambda x, y: x + y), lambda x, y: x + y, 8),
        Row("x * 2", [n], lambda x: x * 2, call(lambda x: x * 2), lambda x: x * 2, 8),
        Row("clip", [n], lambda x: nd.clip(x, 0.2, 0.8), call(lambda x: x.clamp(0.2, 0.8)), lambda x: x.clip(0.2, 0.8), 8),
        Row("sigmoid(x * y + z) * x, call by call", [n] * 3, chain(nd), chain(T), None, 16),
        Row("the same, bound", [n] * 3, fused, chain(T), None, 16),
        Row("where", [m] * 3, nd.where, call(lambda c, x, y: T.where(c != 0, x, y)), None, 16),
        Row("sum, all", [m], lambda x: x.sum(), call(lambda x: x.sum()), lambda x: x.sum(), 4),
        Row("sum, columns", [m], lambda x: x.sum(axis=0), call(lambda x: x.sum(0)), lambda x: x.sum(0), 4),
        Row("sum, rows", [m], lambda x: x.sum(axis=1), call(lambda x: x.sum(1)), lambda x: x.sum(1), 4),
        Row("max, rows", [m], lambda x: x.max(axis=1), call(lambda x: x.amax(1)), lambda x: x.max(1), 4),
        Row("norm", [m], lambda x: x.norm(), call(lambda x: x.double().norm().float()), None, 4),
        Row("softmax", [m], nd.softmax, call(lambda x: T.softmax(x, -1)), None, 8),
        Row("softmax, rows of 100", [tall], nd.softmax, call(lambda x: T.softmax(x, -1)), None, 8),
        Row("log_softmax", [m], nd.log_softmax, call(lambda x: T.log_softmax(x, -1)), None, 8),
        Row("LayerNorm", [m, row], lambda x, g: nd.LayerNorm(x, g, g), normalized, None, 8, tolerance=1e-3),
        Row("LayerNorm, rows of 100", [tall, (100,)], lambda x, g: nd.LayerNorm(x, g, g), normalized, None, 8, tolerance=1e-3),
        Row("softmax and its gradient", [m], gradient, call(torch_gradient), None, 20),
        Row("concat", [m, m], lambda x, y: nd.concat(x, y, dim=1), call(lambda x, y: T.cat([x, y], 1)), None, 16),
        Row("flip", [m], lambda x: nd.flip(x, axis=1), call(lambda x: x.flip(1)), None, 8),
        Row("transpose", [m], lambda x: nd.transpose(x), call(lambda x: x.t().contiguous()), None, 8),
        Row("uniform random numbers", [n], uniform, call(lambda x: T.rand_like(x)), None, 4, tolerance=None),
        Row("normal random numbers", [n], normal, call(lambda x: T.randn_like(x)), None, 4, tolerance=None),
        Row("take of rows", [m, column], lambda x, i: nd.take(x, i.reshape((-1,)) * 100),
            call(lambda x, i: x[(i.reshape(-1) * 100).long()]), None, 8),
        Row("cumsum", [m], lambda x: nd.cumsum(x, axis=1), call(lambda x: x.cumsum(1)), lambda x: x.cumsum(1), 8),
        Row("sort", [m], lambda x: nd.sort(x, axis=1), call(lambda x: x.sort(1).values), None, 8),
        Row("topk of 10", [m], lambda x: nd.topk(x, k=10, ret_typ="value"), call(lambda x: x.topk(10).values), None, 4),
        Row("dot", [square] * 2, nd.dot, call(lambda x, y: x @ y), lambda x, y: x @ y, tolerance=1e-3),
        Row("dot, float16", [square] * 2, nd.dot, call(lambda x, y: x @ y), lambda x, y: x @ y, 0, "float16", 1e-2),
        Row("batched products, float16", [batch] * 2, nd.batch_dot, call(lambda x, y: x @ y), None, 0, "float16", 1e-2),
        Row("convolution, 3 x 3", [images, filters], convolved, convolved_by_torch, None, tolerance=1e-3),
        Row("executor of 100 small operators", [(64, 64)], small_operators, call(torch_small_operators), tolerance=1e-3),
        Row("gradient of a chain, 8 elements", [few], chain_gradient, call(torch_chain_gradient)),
        Row("x + y, 8 elements", [few, few], lambda x, y: x + y, call(lambda x, y: x + y), lambda x, y: x + y),
        Row("sum, 8 elements", [few], lambda x: x.sum(), call(lambda x: x.sum()), lambda x: x.sum()),
        Row("softmax, 8 elements", [few], nd.softmax, call(lambda x: T.softmax(x, -1))),
    ]  # fmt: skip


def draw(measured: Sequence[Row], title: str, path: Path) -> None:
    """Draw how long each row takes as a multiple of torch and of CuPy, and write the picture."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 1 + 0.25 * len(measured)), layout="constrained")
    for marker, peer in zip("o<", ("torch", "cupy"), strict=True):
        found = [(row.found["mxop"] / row.found[peer], k) for k, row in enumerate(measured) if peer in row.found]
        if found:
            axes.plot(*zip(*found, strict=True), marker, label=f"of {peer}")
    axes.axvline(1, color="gray", linewidth=1)
    axes.set(xscale="log", title=title, yticks=range(len(measured)), yticklabels=[row.name for row in measured])
    axes.title.set_size(8)
    axes.invert_yaxis()
    axes.legend()
    figure.savefig(path)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="on_gpu", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="rows; all by default")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw the ratios (.svg, .png)")
    given = parser.parse_args(arguments)
    if not mx.num_gpus():
        print("on_gpu: no GPU; python -m mxop doctor says what is missing", file=sys.stderr)
        return 1
    chosen = [row for row in rows() if not given.names or row.name in given.names]
    copied = bandwidth()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    driver = cupy.cuda.runtime.driverGetVersion()
    lines = [f"{name}; {date.today()}; CUDA driver {driver // 1000}.{driver % 1000 // 10}; CuPy {cupy.__version__}"
             + (f", torch {torch.__version__}" if torch is not None else "") + f"; a copy moves {copied / 1e12:.2f} TB/s", "",
             "| what | µs | of a copy | of torch | of CuPy |", "|---|---|---|---|---|"]  # fmt: skip
    print("\n".join(lines))
    for row in chosen:
        try:
            row.measure()
        except AssertionError as problem:
            print(f"{row.name}: {str(problem).strip().splitlines()[:3]}", file=sys.stderr)
            continue
        lines.append(row.line(copied))
        print(lines[-1], flush=True)
        cupy.get_default_memory_pool().free_all_blocks()
        _executors.clear()
    if given.chart:
        draw([row for row in chosen if row.found], lines[0], given.chart)
    if given.markdown:
        given.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
