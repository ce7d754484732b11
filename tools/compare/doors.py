"""Operators that users write: every door beside a built-in, torch, numba and MXNet's own CustomOp.

torch, numba and a C++ compiler are used when they are there.  Imports `systems` and `timing`.
"""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from systems import Call, mx, optional, torch
from timing import Row, in_turn

from mxop.cli.timing import Way, finish

nd = mx.nd
Systems = dict[str, Call]
EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "squared_hinge"
DOORS = {
    "own": "mxop: @elementwise",
    "library": "MXNet: compiled library",
    "aot": "MindSpore: Custom, aot",
    "hybrid": "MindSpore: Custom, hybrid",
    "pyfunc": "MindSpore: Custom, pyfunc",
    "custom_op": "MXNet: CustomOp",
}
ROUNDS, LEAST = 31, 3e-3

#: What the other interpreter runs: the example's own source, and calls on demand.
_REMOTE = """
import sys, time
import mxnet as mx
source = open(sys.argv[1]).read().replace("import mxop as mx", "").replace("from mxop import nd", "nd = mx.nd")
names = {"mx": mx}
exec(source, names)
x, label = mx.nd.arange(8), mx.nd.ones((8,))
for line in sys.stdin:
    n = int(line)
    start = time.perf_counter()
    for _ in range(n):
        names["call"](x, label).wait_to_read()
    print((time.perf_counter() - start) / n, flush=True)
"""


def example(name: str) -> Any:
    """Import one of the examples, or return None when the machine lacks what it needs."""
    spec = importlib.util.spec_from_file_location(f"squared_hinge_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        module.call(nd.ones((2,)), nd.ones((2,)))
    except Exception as problem:
        print(f"{name}: {str(problem).splitlines()[0]}", file=sys.stderr)
        return None
    return module


def lines_of(name: str) -> int:
    """Return how many lines of code an example has: no blank lines, comments or docstrings, and not its ``call``."""
    count = 0
    for path in (EXAMPLES / f"{name}.py", EXAMPLES / f"{name}.cc"):
        if not path.exists():
            continue
        text = path.read_text()
        if path.suffix == ".py":
            text = text.split("def call(")[0].split('"""', 2)[2]
        count += sum(bool(s.strip()) and not s.strip().startswith(("#!", "# ", "//", '"""')) for s in text.splitlines())
    return count


# ---- figures ---------------------------------------------------------------------------------------------------------
def seconds_of(systems: Systems, expected: Sequence[Any], nbytes: float = 0.0) -> tuple[dict[str, float], list[str]]:
    """Return the median seconds of systems that return what is expected, and those that are too fast to be believed."""
    ways = {name: Way(call) for name, call in systems.items()}
    found = in_turn(ways, [np.asarray(e) for e in expected], nbytes=nbytes, rounds=ROUNDS, least=LEAST)
    if found.wrong:
        raise AssertionError("; ".join(f"{name} {told}" for name, told in found.wrong.items()))
    return {name: found.seconds[name] for name in systems}, found.too_fast


def row(name: str, what: str, bound: float, systems: Systems, ours: str, other: str, expected: Sequence[Any],
        nbytes: float = 0.0) -> Row:  # fmt: skip
    """Compare one system with another, and both with what is expected."""
    seconds, doubted = seconds_of(systems, expected, nbytes)
    ratio = seconds[ours] / seconds[other]
    return Row(name, what, f"<= {bound:g}", ratio, ratio <= bound, other, seconds=seconds, doubted=doubted)


def elementwise() -> list[Row]:
    """A user's formula is as fast as a built-in."""
    from mxop.op import elementwise

    @elementwise(name="compare_custom_formula", override=True)
    def formula(data, *, a: float = 0.0, b: float = 0.0, c: float = 0.0):
        """The built-in quadratic under another name."""
        return (a * data + b) * data + c

    x, mine, builtin = nd.arange(8), nd.compare_custom_formula, nd.quadratic
    systems = {
        "a user's": lambda: mine(x, a=1.0, b=2.0, c=3.0),
        "built-in": lambda: builtin(x, a=1.0, b=2.0, c=3.0),
    }
    expected = [np.arange(8.0) ** 2 + 2 * np.arange(8) + 3]
    return [row("u.formula", "a user's @elementwise operator, 8 float32", 1.2, systems, "a user's", "built-in", expected)]


def trivial_torch_operator() -> Callable[[], Any]:
    """Return a call of a torch custom operator that does what the library's does."""

    def body(x):
        return torch.relu(x)

    body.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    op = torch.library.custom_op("mxop_compare::trivial", body, mutates_args=())
    x = torch.arange(8, dtype=torch.float32)
    return lambda: op(x)


RELU = """
    #include "mxnet/lib_api.h"
    using namespace mxnet::ext;
    using Attributes = std::unordered_map<std::string, std::string>;
    MXReturnValue forward(const Attributes&, std::vector<MXTensor>* in, std::vector<MXTensor>* out, const OpResource&) {
      const float* x = in->at(0).data<float>();
      float* y = out->at(0).data<float>();
      for (int64_t i = 0; i < in->at(0).size(); ++i) y[i] = x[i] > 0 ? x[i] : 0;
      return MX_SUCCESS;
    }
    MXReturnValue parse(const Attributes&, int* n_in, int* n_out) { *n_in = *n_out = 1; return MX_SUCCESS; }
    MXReturnValue type(const Attributes&, std::vector<int>* in, std::vector<int>* out) {
      out->at(0) = in->at(0);
      return MX_SUCCESS;
    }
    MXReturnValue shape(const Attributes&, std::vector<std::vector<unsigned int>>* in,
                        std::vector<std::vector<unsigned int>>* out) {
      out->at(0) = in->at(0);
      return MX_SUCCESS;
    }
    REGISTER_OP(compare_custom_relu).setForward(forward, "cpu").setParseAttrs(parse).setInferType(type)
        .setInferShape(shape);
    MXReturnValue initialize(int) { return MX_SUCCESS; }
"""


def library() -> list[Row]:
    """An operator of a loaded library beside the built-in that does the same, and beside torch's custom operators."""
    try:
        mx.library.load_inline("compare_custom_relu", textwrap.dedent(RELU), verbose=False)
    except mx.MXNetError as problem:
        print(f"library: {str(problem).splitlines()[0]}", file=sys.stderr)
        return []
    x, mine, builtin = nd.arange(8), nd.compare_custom_relu, nd.relu
    systems = {"library": lambda: mine(x), "built-in": lambda: builtin(x)}
    what, expected = "an operator of a loaded library, 8 float32", [np.arange(8)]
    rows = [row("u.library", what, 2.0, systems, "library", "built-in", expected)]
    if torch is not None:
        systems = {"library": lambda: mine(x), "torch custom_op": trivial_torch_operator()}
        rows.append(row("u.library", what, 0.3, systems, "library", "torch custom_op", expected))
    return rows


def hybrid() -> list[Row]:
    """A product of matrices in three loops, compiled by us and by numba alone."""
    numba = optional("numba")
    if numba is None:
        return []
    from mxop.operator import kernel, output_tensor, parallel, serial

    @kernel
    def product(a, b):
        c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
        for i in parallel(a.shape[0]):
            for j in serial(b.shape[1]):
                c[i, j] = 0.0
                for k in serial(a.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]
        return c

    @numba.njit(parallel=True)
    def plain(a, b):
        c = np.empty((a.shape[0], b.shape[1]), a.dtype)
        for i in numba.prange(a.shape[0]):
            for j in range(b.shape[1]):
                c[i, j] = 0.0
                for k in range(a.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]
        return c

    op = mx.operator.Custom(product, func_type="hybrid")
    numba.set_num_threads(2)
    values = np.random.default_rng(0).normal(size=(200, 200)).astype("float32")
    x = nd.array(values)
    systems = {"hybrid": lambda: op(x, x), "numba": lambda: plain(values, values)}
    what = "hybrid kernel of three loops, (200, 200) float32"
    return [row("u.hybrid", what, 1.1, systems, "hybrid", "numba", [values @ values])]


def sampling() -> list[Row]:
    """Grid sampling and bucketize written as loops, 1e6 points, beside torch's own."""
    if torch is None or optional("numba") is None:
        return []
    from mxop.op import loops
    from mxop.operator import output_tensor, parallel
    from mxop.operator.hybrid.words import WORDS

    floor, float32, int32 = (WORDS[n] for n in ("floor", "float32", "int32"))

    @loops(override=True)
    def compare_grid(data, points):
        """Values of a picture at points from -1 to 1."""
        result = output_tensor((points.shape[0], points.shape[1]), data.dtype)
        h = data.shape[0]
        w = data.shape[1]
        for i in parallel(points.shape[0]):
            for j in range(points.shape[1]):
                x = (points[i, j, 0] + 1) * (w - 1) / 2
                y = (points[i, j, 1] + 1) * (h - 1) / 2
                x0 = max(min(int32(floor(x)), w - 2), 0)
                y0 = max(min(int32(floor(y)), h - 2), 0)
                u = min(max(x - float32(x0), 0), 1)
                v = min(max(y - float32(y0), 0), 1)
                top = data[y0, x0] * (1 - u) + data[y0, x0 + 1] * u
                low = data[y0 + 1, x0] * (1 - u) + data[y0 + 1, x0 + 1] * u
                result[i, j] = top * (1 - v) + low * v
        return result

    @loops(override=True)
    def compare_bucketize(data, edges):
        """The number of edges below each element."""
        found = output_tensor(data.shape, "int64")
        for i in parallel(data.shape[0]):
            n = 0
            for k in range(len(edges)):
                n += 1 if edges[k] < data[i] else 0
            found[i] = n
        return found

    rng = np.random.default_rng(0)
    angle = np.linspace(-0.9, 0.9, 1000, dtype="float32")
    turned = np.stack(np.meshgrid(angle, angle), -1) @ np.array([[0.96, 0.29], [-0.29, 0.96]], "float32")
    places = {
        "random": rng.uniform(-1, 1, (1000, 1000, 2)).astype("float32"),
        "turned": turned.clip(-0.999, 0.999),
    }  # at the edge each has its own slope
    rows = [_sampled(kind, rng.normal(size=(1000, 1000)).astype("float32"), at) for kind, at in places.items()]
    x, edges = rng.normal(size=10**6).astype("float32"), np.linspace(-2, 2, 9, dtype="float32")
    mine, theirs = (nd.array(x), nd.array(edges)), (torch.tensor(x), torch.tensor(edges))
    systems = {"loops": lambda: nd.compare_bucketize(*mine), "torch": lambda: torch.bucketize(*theirs)}
    what = "bucketize by loops, 1e6, 9 edges"
    return [*rows, row("u.loops", what, 0.6, systems, "loops", "torch", [np.searchsorted(edges, x)], 12 * x.size)]


def _sampled(kind: str, picture: np.ndarray, points: np.ndarray) -> Row:
    a, b, head = nd.array(picture), nd.array(points), nd.ones(points.shape[:2])
    x, y = torch.tensor(picture[None, None], requires_grad=True), torch.tensor(points[None], requires_grad=True)
    a.attach_grad(), b.attach_grad()
    torch_head = torch.ones((1, 1, *points.shape[:2]))

    def loops() -> Any:
        with mx.autograd.record():
            found = nd.compare_grid(a, b)
        found.backward(head)
        return found, a.grad, b.grad

    def peer() -> Any:
        x.grad = y.grad = None
        found = torch.nn.functional.grid_sample(x, y, padding_mode="border", align_corners=True)
        found.backward(torch_head)
        return found, x.grad, y.grad

    expected = [r.detach().numpy().copy() for r in peer()]
    what = f"grid sampling by loops, forward and backward, 1e6 {kind} points"
    return row("u.loops", what, 0.6, {"loops": loops, "torch": peer}, "loops", "torch", expected, 36 * points.size // 2)


def beside_mxnet(python: str) -> list[Row]:
    """CustomOp and Custom beside MXNet's CustomOp, which another interpreter runs, in turn."""
    remote = subprocess.Popen([python, "-c", _REMOTE, str(EXAMPLES / "custom_op.py")], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)  # fmt: skip

    def theirs(n: int) -> float:
        remote.stdin.write(f"{n}\n")
        remote.stdin.flush()
        return float(remote.stdout.readline())

    x, label, n = nd.arange(8), nd.ones((8,)), 200
    rows = []
    for name, what in (("custom_op", "CustomOp, 8 float32"), ("pyfunc", "Custom, pyfunc, 8 float32")):
        module = example(name)
        if module is None:
            continue
        times: dict[str, list[float]] = {what: [], "MXNet": []}
        theirs(n)
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(n):
                finish(module.call(x, label))
            times[what].append((time.perf_counter() - start) / n)
            times["MXNet"].append(theirs(n))
        seconds = {k: statistics.median(v) for k, v in times.items()}
        ratio = seconds[what] / seconds["MXNet"]
        rows.append(Row("u.mxnet", what, "<= 0.3", ratio, ratio <= 0.3, "MXNet's CustomOp", seconds=seconds))
    remote.stdin.close()
    remote.wait()
    return rows


# ---- the five ways ---------------------------------------------------------------------------------------------------
def ways() -> str:
    """Return the table of examples/squared_hinge: lines of code, and microseconds of a call, forward and both ways."""
    from mxop import autograd

    x, label = nd.arange(8) / 4, nd.ones((8,))
    x.attach_grad()
    forward: Systems = {}
    both: Systems = {}

    def trained(call: Callable[..., Any]) -> Callable[[], Any]:
        def run() -> Any:
            with autograd.record():
                y = call(x, label)
            y.backward()
            return y, x.grad

        return run

    for name in DOORS:
        module = example(name)
        if module is not None:
            forward[name] = lambda call=module.call: call(x, label)
            both[name] = trained(module.call)
    gap = np.maximum(1 - np.arange(8) / 4, 0)
    once, twice = seconds_of(forward, [gap**2])[0], seconds_of(both, [gap**2, -2 * gap])[0]
    lines = ["| way | lines | call, us | with backward, us |", "|---|---|---|---|"]
    for name in forward:
        lines.append(f"| {DOORS[name]} | {lines_of(name)} | {once[name] * 1e6:.2f} | {twice[name] * 1e6:.1f} |")
    return "\n".join(lines)


#: Measures by name; `beside_mxnet` needs an interpreter, and `ways` is a table of its own.
FIGURES = {"u.formula": elementwise, "u.library": library, "u.hybrid": hybrid, "u.loops": sampling}
