"""Workloads of programs that are written from small operators, beside one loop written by hand.

The hand-written operators are one C++ loop each, compiled here and loaded as a library; those of the perceptron are the
package's own layers.  Imports `large`, `systems` and `timing`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.special
from large import LARGE, normal
from systems import jax, mx, torch
from timing import Workload

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


TOKENS, WIDTH = 512, (768, 3072)


def written(name: str) -> Callable:
    """Return a program with an operator of the library, which is compiled when it is first used."""

    def program(*symbols: Any) -> Any:
        if not hasattr(mx.sym, name):
            flags = ["-O3", "-march=native", "-fno-math-errno", "-fopenmp"]
            mx.library.load_inline("written", HAND_WRITTEN, flags=flags)
        result = getattr(mx.sym, name)(*symbols)
        return tuple(result) if len(result.list_outputs()) > 1 else result

    return program


def norm_torch(x: Any, gamma: Any, beta: Any) -> Any:
    """Normalize rows in torch."""
    return layer_norm(lambda a: torch.mean(a, -1, keepdim=True), torch.rsqrt, x, gamma, beta)


def norm_numpy(x: Any, gamma: Any, beta: Any) -> Any:
    """Normalize rows by NumPy."""
    return layer_norm(lambda a: a.mean(-1, keepdims=True), lambda a: 1 / np.sqrt(a), x, gamma, beta)


def norm_jax(x: Any, gamma: Any, beta: Any) -> Any:
    """Normalize rows in JAX."""
    return layer_norm(lambda a: a.mean(-1, keepdims=True), jax.lax.rsqrt, x, gamma, beta)


def in_each(program: Callable) -> dict[str, Callable]:
    """Return a program of a module's functions in torch and JAX."""
    modules = {"torch": torch, "jax": None if jax is None else jax.numpy}
    return {n: (lambda *a, m=m: program(m, *a)) for n, m in modules.items() if m is not None}


def perceptron_theirs() -> dict[str, Callable]:
    """Return the two layers in torch and JAX."""
    found: dict[str, Callable] = {}
    if torch is not None:
        found["torch"] = lambda *a: perceptron(torch, *a, torch.erf)
    if jax is not None:
        found["jax"] = lambda *a: perceptron(jax.numpy, *a, jax.scipy.special.erf)
    return found


def adam_arrays() -> list[np.ndarray]:
    """Return weights, gradients and states."""
    w, g, m, v = normal(*[4_000_000] * 4)()
    return [w, g, m, v * v]


BOUND = {"hand-written": 1.1}
WORKLOADS = [
    Workload("f.chain", "chain of 10 elementwise operators, 1e7",
             {"sym": lambda x: chain(mx.sym, x), "numpy": lambda x: chain(np, x)} | in_each(chain), normal(LARGE), moved=8e7,
             bound=0.8, bounds={"torch": 0.35}),
    Workload("f.norm", "LayerNorm of 4096 x 1024",
             {"sym": layer_norm_symbol, "hand-written": written("written_layer_norm"), "torch": norm_torch, "jax": norm_jax},
             normal((4096, 1024), 1024, 1024), moved=3.4e7, bound=0.8, bounds=BOUND, rounds=41, reference=norm_numpy),
    Workload("f.gelu", f"GELU-MLP of {TOKENS} x {WIDTH[0]}, {WIDTH[1]} hidden",
             {"sym": perceptron_symbol, "hand-written": layers} | perceptron_theirs(),
             normal((TOKENS, WIDTH[0]), WIDTH[::-1], WIDTH[1], WIDTH, WIDTH[0], scale=0.05),
             flops=4.0 * TOKENS * WIDTH[0] * WIDTH[1], bound=0.8, bounds=BOUND,
             reference=lambda *a: perceptron(np, *a, scipy.special.erf)),
    Workload("f.adam", "Adam step of 4e6",
             {"sym": lambda *s: adam(mx.sym, *s), "hand-written": written("written_adam")} | in_each(adam), adam_arrays,
             moved=1.12e8, bound=0.8, bounds=BOUND, rounds=41, claims=3, reference=partial(adam, np)),
]  # fmt: skip
