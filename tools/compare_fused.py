"""Measure what fusion makes of programs written from small operators; groups of ``compare_graphs.py``.

Each program is written once for every system.  The hand-written operators are one C++ loop each, compiled here and loaded
as a library; those of the perceptron are the package's own layers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from compare import LARGE, Row, Systems, in_turn, jax, mx, torch

REST = 0.04  # seconds; OpenBLAS' threads wait for about 25 ms
PEERS = ("torch.compile", "jax.jit")

HAND_WRITTEN = r"""
#include <cmath>
#include "mxnet/lib_api.h"

using namespace mxnet::ext;
using Attributes = std::unordered_map<std::string, std::string>;
using Tensors = std::vector<MXTensor>;

template <int in, int out>
MXReturnValue count(const Attributes&, int* num_in, int* num_out) {
  *num_in = in;
  *num_out = out;
  return MX_SUCCESS;
}
template <int out>
MXReturnValue types(const Attributes&, std::vector<int>*, std::vector<int>* outs) {
  for (int k = 0; k < out; ++k) outs->at(k) = kFloat32;
  return MX_SUCCESS;
}
template <int out>
MXReturnValue shapes(const Attributes&, std::vector<std::vector<unsigned>>* ins, std::vector<std::vector<unsigned>>* outs) {
  for (int k = 0; k < out; ++k) outs->at(k) = ins->at(0);
  return MX_SUCCESS;
}

MXReturnValue layer_norm(const Attributes&, Tensors* ins, Tensors* outs, const OpResource&) {
  const float *x = ins->at(0).data<float>(), *gamma = ins->at(1).data<float>(), *beta = ins->at(2).data<float>();
  float* y = outs->at(0).data<float>();
  const long rows = ins->at(0).shape[0], n = ins->at(0).shape[1];
#pragma omp parallel for schedule(static)
  for (long r = 0; r < rows; ++r) {
    const float* row = x + r * n;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < n; ++i) sum += row[i];
    const float mean = sum / n;
#pragma omp simd reduction(+ : squares)
    for (long i = 0; i < n; ++i) squares += (row[i] - mean) * (row[i] - mean);
    const float scale = 1 / std::sqrt(squares / n + 1e-5f);
#pragma omp simd
    for (long i = 0; i < n; ++i) y[r * n + i] = (row[i] - mean) * scale * gamma[i] + beta[i];
  }
  return MX_SUCCESS;
}

MXReturnValue adam(const Attributes&, Tensors* ins, Tensors* outs, const OpResource&) {
  const float *w = ins->at(0).data<float>(), *g = ins->at(1).data<float>(), *m = ins->at(2).data<float>(),
              *v = ins->at(3).data<float>();
  float *w2 = outs->at(0).data<float>(), *m2 = outs->at(1).data<float>(), *v2 = outs->at(2).data<float>();
  const long n = ins->at(0).size();
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; ++i) {
    const float mean = 0.9f * m[i] + 0.1f * g[i], square = 0.999f * v[i] + 0.001f * g[i] * g[i];
    m2[i] = mean;
    v2[i] = square;
    w2[i] = w[i] - 0.001f * mean / (std::sqrt(square) + 1e-8f);
  }
  return MX_SUCCESS;
}

REGISTER_OP(written_layer_norm).setForward(layer_norm, "cpu").setParseAttrs(count<3, 1>).setInferType(types<1>)
    .setInferShape(shapes<1>);
REGISTER_OP(written_adam).setForward(adam, "cpu").setParseAttrs(count<4, 3>).setInferType(types<3>).setInferShape(shapes<3>);

MXReturnValue initialize(int version) { return MX_SUCCESS; }
"""


# ---- programs --------------------------------------------------------------------------------------------------------
def chain(F: Any, x: Any) -> Any:
    """Ten elementwise operators; `F` is any of the systems."""
    return F.sqrt(F.exp(F.tanh(F.sin(x) * 0.5 + 0.25) * x) + x * x)


def adam(F: Any, w: Any, g: Any, m: Any, v: Any) -> Any:
    """Make one step of Adam, without correction of its bias."""
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - 0.001 * m / (F.sqrt(v) + 1e-8), m, v


def layer_norm(mean: Callable, rsqrt: Callable, x: Any, gamma: Any, beta: Any) -> Any:
    """Normalize each row to mean 0 and variance 1, then scale and shift its elements."""
    centred = x - mean(x)
    return centred * rsqrt(mean(centred * centred) + 1e-5) * gamma + beta


def layer_norm_symbol(x: Any, gamma: Any, beta: Any) -> Any:
    """Normalize rows; arithmetic of symbols wants equal shapes, as MXNet's does, so its broadcasting has names."""
    s = mx.sym
    centred = s.broadcast_sub(x, s.mean(x, axis=-1, keepdims=True))
    scale = s.rsqrt(s.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)
    return s.broadcast_add(s.broadcast_mul(s.broadcast_mul(centred, scale), gamma), beta)


def perceptron(F: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, erf: Callable) -> Any:
    """Two layers with the Gaussian error linear unit between them."""
    h = F.matmul(x, w1.T) + b1
    return F.matmul(h * 0.5 * (1 + erf(h * 0.7071067811865476)), w2.T) + b2


def perceptron_symbol(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """Two layers of symbols."""
    s = mx.sym
    h = s.broadcast_add(s.dot(x, s.transpose(w1)), b1)
    return s.broadcast_add(s.dot(h * 0.5 * (1 + s.erf(h * 0.7071067811865476)), s.transpose(w2)), b2)


def layers(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """Two layers by the operators that are made for them."""
    s = mx.sym
    h = s.LeakyReLU(s.FullyConnected(x, w1, b1, num_hidden=WIDTH[1]), act_type="gelu")
    return s.FullyConnected(h, w2, b2, num_hidden=WIDTH[0])


# ---- systems ---------------------------------------------------------------------------------------------------------
def bound(program: Callable, arrays: Sequence[np.ndarray]) -> Any:
    """Bind a program of symbols to arrays."""
    names = [f"x{k}" for k in range(len(arrays))]
    result = program(*map(mx.sym.Variable, names))
    symbol = mx.sym.Group(list(result)) if isinstance(result, tuple) else result
    return symbol.bind(mx.cpu(), dict(zip(names, map(mx.nd.array, arrays), strict=True)))


def systems(ours: Callable, theirs: Callable, arrays: Sequence[np.ndarray], written: Callable | None = None) -> Systems:
    """Return a program in every system that is there.

    Parameters
    ----------
    ours, written : callable
        The program of symbols from small operators, and with an operator written by hand.
    theirs : callable
        Takes the module of torch or JAX first.
    """
    executor = bound(ours, arrays)
    found: Systems = {"mxop": lambda: executor.forward(is_train=False)}
    results = {"mxop": [o.asnumpy() for o in executor.forward(is_train=False)]}
    if written is not None:
        whole = bound(written, arrays)
        found["hand-written"] = lambda: whole.forward(is_train=False)
        results["hand-written"] = [o.asnumpy() for o in whole.forward(is_train=False)]
    if torch is not None:
        tensors = [torch.from_numpy(a.copy()) for a in arrays]
        eager = torch.inference_mode()(lambda *tensors: theirs(torch, *tensors))
        found["torch eager"] = lambda: eager(*tensors)
        results["torch eager"] = as_arrays(eager(*tensors))
        try:
            compiled = torch.compile(eager)
            results["torch.compile"] = as_arrays(compiled(*tensors))
            found["torch.compile"] = lambda: compiled(*tensors)
        except Exception as problem:  # it needs a compiler
            print(f"torch.compile: {str(problem).splitlines()[0]}", file=sys.stderr)
    if jax is not None:
        values = [jax.numpy.asarray(a) for a in arrays]
        jitted = jax.jit(lambda *values: theirs(jax.numpy, *values))
        found["jax.jit"] = lambda: jax.block_until_ready(jitted(*values))
        results["jax.jit"] = as_arrays(jitted(*values))
    for name, arrays in results.items():  # who computes something else is not compared
        for got, want in zip(arrays, results["mxop"], strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3, err_msg=name)
    return found


def as_arrays(result: Any) -> list[np.ndarray]:
    """Return results of torch or JAX as NumPy arrays."""
    return [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]


# ---- figures ---------------------------------------------------------------------------------------------------------
TOKENS, WIDTH = 512, (768, 3072)


def fused() -> list[Row]:
    """Programs from small operators, bound."""
    rng = np.random.default_rng(0)
    (x,) = normal(rng, LARGE)
    rows = compared("chain of 10 elementwise operators, 1e7", 15, systems(lambda x: chain(mx.sym, x), chain, [x]),
                    {"torch eager": 0.35, "torch.compile": 0.8, "jax.jit": 0.8})  # fmt: skip
    mx.library.load_inline("written", HAND_WRITTEN, flags=["-O3", "-march=native", "-fno-math-errno", "-fopenmp"])
    bounds = {"hand-written": 1.1, "best": 0.8}

    def norm_theirs(F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        if F is torch:
            return layer_norm(lambda a: torch.mean(a, -1, keepdim=True), torch.rsqrt, x, gamma, beta)
        return layer_norm(lambda a: F.mean(a, -1, keepdims=True), jax.lax.rsqrt, x, gamma, beta)

    arrays = normal(rng, (4096, 1024), 1024, 1024)
    rows += compared("LayerNorm of 4096 x 1024", 41,
                     systems(layer_norm_symbol, norm_theirs, arrays, mx.sym.written_layer_norm), bounds)  # fmt: skip

    def perceptron_theirs(F: Any, *values: Any) -> Any:
        return perceptron(F, *values, torch.erf if F is torch else jax.scipy.special.erf)

    arrays = normal(rng, (TOKENS, WIDTH[0]), WIDTH[::-1], WIDTH[1], WIDTH, WIDTH[0], scale=0.05)
    rows += compared(f"GELU-MLP of {TOKENS} x {WIDTH[0]}, {WIDTH[1]} hidden", 15,
                     systems(perceptron_symbol, perceptron_theirs, arrays, layers), bounds)  # fmt: skip
    w, g, m, v = normal(rng, *[4_000_000] * 4)
    rows += compared("Adam step of 4e6", 41, systems(lambda *s: adam(mx.sym, *s), adam, [w, g, m, v * v],
                     lambda *s: tuple(mx.sym.written_adam(*s))), bounds)  # fmt: skip
    return rows


def normal(rng: np.random.Generator, *shapes: Any, scale: float = 1.0) -> list[np.ndarray]:
    """Return float32 of a normal distribution."""
    return [(rng.normal(size=shape) * scale).astype(np.float32) for shape in shapes]


def compared(what: str, rounds: int, programs: Systems, bounds: dict[str, float]) -> list[Row]:
    """Compare mxop with each system that there is a bound for; ``best`` is the best of the compilers."""
    seconds = in_turn(programs, rounds, 0.0, REST)
    there = [p for p in PEERS if p in seconds]
    rows = []
    for name, most in bounds.items():
        against = min(there, key=seconds.__getitem__) if name == "best" and there else name
        if against not in seconds:
            rows.append(
                Row("fused", what, f"<= {most:g}", float("nan"), False, f"{name}: not installed", seconds=seconds)
            )
            continue
        ratio = seconds["mxop"] / seconds[against]
        rows.append(Row("fused", what, f"<= {most:g}", ratio, ratio <= most, against, seconds=seconds))
    return rows


# ---- nodes -----------------------------------------------------------------------------------------------------------
def nodes() -> list[Row]:
    """What an executor spends on a node of 8 elements, its work included: graphs of 200 nodes, not fused."""
    s, n = mx.sym, 200
    kinds: dict[str, tuple[float, Callable[[Any], Any]]] = {
        "elementwise": (0.3, s.sin),
        "reductions and broadcasts": (0.3, lambda x: s.broadcast_to(s.sum(x, keepdims=True), shape=(8,))),
        "softmax, a kernel": (0.6, s.softmax),
    }
    rows = []
    for name, (most, step) in kinds.items():
        x = s.Variable("x")
        for _ in range(n):
            x = step(x)
        executor = x.simple_bind(mx.cpu(), "null", passes={"fuse": False, "strips": False}, x=(8,))
        seconds = in_turn({"mxop": lambda e=executor: e.forward(is_train=False)}, 41, 2e-3)["mxop"]
        count = len(executor.explain().rows)
        each = seconds / count * 1e6
        rows.append(Row("nodes", f"a node of 8 elements: {name}", f"<= {most:g}" if most < 1e9 else "", each, each <= most,
                        f"{count} nodes", unit="us"))  # fmt: skip
    return rows
