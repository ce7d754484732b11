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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from systems import Call, mx, optional, torch
from timing import Row, in_turn

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
def row(name: str, what: str, bound: float, systems: Systems, ours: str, other: str) -> Row:
    """Compare one system with another."""
    seconds = in_turn(systems, ROUNDS, LEAST)
    ratio = seconds[ours] / seconds[other]
    return Row(name, what, f"<= {bound:g}", ratio, ratio <= bound, other, seconds=seconds)


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
    return [row("u.formula", "a user's @elementwise operator, 8 float32", 1.2, systems, "a user's", "built-in")]


def trivial_torch_operator() -> Callable[[], Any]:
    """Return a call of a torch custom operator that does nothing but allocate."""

    def body(x):
        return torch.empty_like(x)

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
    what = "an operator of a loaded library, 8 float32"
    rows = [row("u.library", what, 2.0, systems, "library", "built-in")]
    if torch is not None:
        systems = {"library": lambda: mine(x), "torch custom_op": trivial_torch_operator()}
        rows.append(row("u.library", what, 0.3, systems, "library", "torch custom_op"))
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
    np.testing.assert_array_equal(op(x, x).asnumpy(), plain(values, values))
    systems = {"hybrid": lambda: op(x, x), "numba": lambda: plain(values, values)}
    return [row("u.hybrid", "hybrid kernel of three loops, (200, 200) float32", 1.1, systems, "hybrid", "numba")]


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
                module.call(x, label)
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

    def trained(call: Callable[..., Any]) -> Callable[[], None]:
        def run() -> None:
            with autograd.record():
                y = call(x, label)
            y.backward()

        return run

    for name in DOORS:
        module = example(name)
        if module is not None:
            forward[name] = lambda call=module.call: call(x, label)
            both[name] = trained(module.call)
    once, twice = in_turn(forward, ROUNDS, LEAST), in_turn(both, ROUNDS, LEAST)
    lines = ["| way | lines | call, us | with backward, us |", "|---|---|---|---|"]
    for name in forward:
        lines.append(f"| {DOORS[name]} | {lines_of(name)} | {once[name] * 1e6:.2f} | {twice[name] * 1e6:.1f} |")
    return "\n".join(lines)


#: Measures by name; `beside_mxnet` needs an interpreter, and `ways` is a table of its own.
FIGURES = {"u.formula": elementwise, "u.library": library, "u.hybrid": hybrid}
