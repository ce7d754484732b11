"""Workloads of whole steps of training: a perceptron, a critic with gradient penalty, an LSTM, a convolutional network.

Imports `large`, `systems` and `timing`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from large import normal
from systems import Prepared, jax, mx, torch
from timing import Workload

nd, sym, autograd = mx.nd, mx.sym, mx.autograd

# ---- perceptron ------------------------------------------------------------------------------------------------------
BATCH, WIDTHS = 128, (784, 512, 512, 10)
RATE = 0.01


def perceptron() -> list[np.ndarray]:
    """Return data, labels and weights."""
    rng, shapes = np.random.default_rng(0), []
    for a, b in pairwise(WIDTHS):
        shapes += [(b, a), (b,)]
    label = rng.integers(0, 10, BATCH).astype("f4")
    return [*normal((BATCH, 784))(), label, *((rng.normal(size=s) * 0.04).astype("f4") for s in shapes)]


def perceptron_bound(x: Any, label: Any, *weights: Any) -> Callable:
    """Return a step of a bound perceptron: forward, backward, gradient descent."""
    h, names = sym.Variable("data"), []
    for k, width in enumerate(WIDTHS[1:]):
        h = sym.FullyConnected(h, num_hidden=width, name=f"layer{k}")
        h = sym.Activation(h, act_type="relu") if k < 2 else h
        names += [f"layer{k}_weight", f"layer{k}_bias"]
    symbol = sym.SoftmaxOutput(h, sym.Variable("label"), normalization="batch")
    given = dict(zip(names, weights, strict=True))
    gradients = {n: nd.zeros(w.shape) for n, w in given.items()}
    executor = symbol.bind(mx.cpu(), {"data": x, "label": label} | given, args_grad=gradients)

    def run() -> Any:
        executor.forward(is_train=True)
        executor.backward()
        for name, w in given.items():
            nd.sgd_update(w, gradients[name], lr=RATE, out=w)
        return list(weights)

    return run


def perceptron_torch(x: Any, label: Any, *weights: Any) -> Callable:
    """Return the same in torch."""
    values, label = [w.requires_grad_() for w in weights], label.long()
    f = torch.nn.functional

    def run() -> Any:
        h = f.linear(f.relu(f.linear(f.relu(f.linear(x, *values[:2])), *values[2:4])), *values[4:])
        gradients = torch.autograd.grad(f.cross_entropy(h, label), values)
        with torch.no_grad():
            torch._foreach_add_(values, gradients, alpha=-RATE)
        return list(values)

    return run


def perceptron_jax(x: Any, label: Any, *weights: Any) -> Callable:
    """Return the same in JAX, which makes new weights."""
    label = label.astype(int)

    def loss(weights: Any) -> Any:
        h = x
        for k in (0, 2, 4):
            h = h @ weights[k].T + weights[k + 1]
            h = jax.nn.relu(h) if k < 4 else h
        return -jax.numpy.take_along_axis(jax.nn.log_softmax(h), label[:, None], 1).mean()

    @jax.jit
    def step(weights: Any) -> Any:
        return [w - RATE * g for w, g in zip(weights, jax.grad(loss)(weights), strict=True)]

    return lambda: step(list(weights))


# ---- gradient penalty ------------------------------------------------------------------------------------------------
def critic() -> list[np.ndarray]:
    """Return data and weights of a critic."""
    rng = np.random.default_rng(1)
    shapes = ((64, 256), (256,), (256, 256), (256,), (256, 1), (1,))
    return [*normal((256, 64))(), *((rng.normal(size=s) * 0.06).astype("f4") for s in shapes)]


def score(F: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    """Evaluate the critic."""
    dot, add = (F.dot, F.broadcast_add) if F is nd else (F.matmul, F.add)
    row = lambda b: b.reshape((1, -1))  # noqa: E731
    h = F.tanh(add(dot(x, w1), row(b1)))
    return add(dot(F.tanh(add(dot(h, w2), row(b2))), w3), row(b3))


def penalized(x: Any, *weights: Any) -> Any:
    """Return ``mean(score) + 10 mean((|d score / dx| - 1)^2)``."""
    y = score(nd, x, *weights)
    (g,) = autograd.grad(y, [x], create_graph=True)
    slope = nd.sqrt(nd.sum(g * g, axis=1) + 1e-12)
    return nd.mean(y) + 10.0 * nd.mean(nd.square(slope - 1.0))


def penalty(x: Any, *weights: Any) -> Callable:
    """Return the gradients of that by the weights."""
    for w in (x, *weights):
        w.attach_grad()

    def run() -> Any:
        with autograd.record():
            loss = penalized(x, *weights)
        return autograd.grad(loss, list(weights))[:5]

    return run


def penalty_compiled(x: Any, *weights: Any) -> Callable:
    """Return the same, as one compiled function."""

    @mx.graph.compiled
    def gradients(x: Any, *weights: Any) -> Any:
        return autograd.grad(penalized(x, *weights), list(weights[:5]))

    return lambda: gradients(x, *weights)


def penalty_torch(x: Any, *weights: Any) -> Callable:
    """Return the same in torch."""
    x, values = x.requires_grad_(), [w.requires_grad_() for w in weights]

    def run() -> Any:
        y = score(torch, x, *values)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        slope = torch.sqrt((g * g).sum(1) + 1e-12)
        return torch.autograd.grad(y.mean() + 10.0 * ((slope - 1.0) ** 2).mean(), values)[:5]

    return run


def penalty_jax(x: Any, *weights: Any) -> Any:
    """Return the same, by JAX."""

    def loss(weights: Any) -> Any:
        g = jax.grad(lambda x: score(jax.numpy, x, *weights).sum())(x)
        slope = jax.numpy.sqrt((g * g).sum(1) + 1e-12)
        return score(jax.numpy, x, *weights).mean() + 10.0 * ((slope - 1.0) ** 2).mean()

    return jax.grad(loss)(weights)[:5]


# ---- LSTM ------------------------------------------------------------------------------------------------------------
STEPS, SEQUENCES, HIDDEN = 50, 32, 256


def lstm() -> list[np.ndarray]:
    """Return data, all weights of two layers in MXNet's order, and a head gradient."""
    count = 2 * (4 * HIDDEN * 2 * HIDDEN + 2 * 4 * HIDDEN)
    return normal((STEPS, SEQUENCES, HIDDEN), (count,), (STEPS, SEQUENCES, HIDDEN), scale=0.05)()


def lstm_bound(x: Any, parameters: Any, head: Any) -> Callable:
    """Return forward and backward of two layers, bound."""
    names = ("x", "parameters", "state", "state_cell")
    symbol = sym.RNN(*map(sym.Variable, names), state_size=HIDDEN, num_layers=2, mode="lstm")
    zeros = nd.zeros((2, SEQUENCES, HIDDEN))
    given = dict(zip(names, (x, parameters, zeros, zeros.copy()), strict=True))
    gradients = {"x": nd.zeros(x.shape), "parameters": nd.zeros(parameters.shape)}
    executor = symbol.bind(
        mx.cpu(), given, args_grad=gradients, grad_req={n: "write" if n in gradients else "null" for n in names}
    )

    def run() -> Any:
        executor.forward(is_train=True)
        executor.backward(head)
        return [*executor.outputs, *gradients.values()]

    return run


def lstm_torch(x: Any, parameters: Any, head: Any) -> Callable:
    """Return the same in torch."""
    layer, at = torch.nn.LSTM(HIDDEN, HIDDEN, 2), 0
    order = [f"{w}_{p}_l{k}" for w in ("weight", "bias") for k in (0, 1) for p in ("ih", "hh")]
    for name in order:
        value = getattr(layer, name)
        value.data.copy_(parameters[at : at + value.numel()].reshape(value.shape))
        at += value.numel()
    values = [x.requires_grad_(), *(getattr(layer, name) for name in order)]

    def run() -> Any:
        y = layer(x)[0]
        gx, *rest = torch.autograd.grad(y, values, head)
        return y, gx, torch.cat([g.ravel() for g in rest])

    return run


# ---- a convolutional network -------------------------------------------------------------------------------------------
IMAGES, PLANES, FILTERS = 64, (20, 50), (5, 5)


def digits() -> list[np.ndarray]:
    """Return images, labels and the weights of two convolutions and two layers, without biases."""
    rng = np.random.default_rng(2)
    shapes = ((PLANES[0], 1, *FILTERS), (*PLANES[::-1], *FILTERS), (500, 800), (10, 500))
    label = rng.integers(0, 10, IMAGES).astype("f4")
    return [*normal((IMAGES, 1, 28, 28))(), label, *((rng.normal(size=s) * 0.05).astype("f4") for s in shapes)]


def digits_bound(x: Any, label: Any, *weights: Any) -> Callable:
    """Return forward and backward of that network, bound."""
    h, names = sym.Variable("x"), ["conv0_weight", "conv1_weight", "layer0_weight", "layer1_weight"]
    for k, planes in enumerate(PLANES):
        h = sym.Convolution(h, kernel=FILTERS, num_filter=planes, no_bias=True, name=f"conv{k}")
        h = sym.Pooling(sym.tanh(h), kernel=(2, 2), stride=(2, 2), pool_type="max")
    h = sym.tanh(sym.FullyConnected(h, num_hidden=500, no_bias=True, name="layer0"))
    h = sym.FullyConnected(h, num_hidden=10, no_bias=True, name="layer1")
    symbol = sym.SoftmaxOutput(h, sym.Variable("label"), normalization="batch")
    given = dict(zip(names, weights, strict=True))
    gradients = {n: nd.zeros(w.shape) for n, w in given.items()}
    executor = symbol.bind(mx.cpu(), {"x": x, "label": label} | given, args_grad=gradients)

    def run() -> Any:
        executor.forward(is_train=True)
        executor.backward()
        return [*executor.outputs, *gradients.values()]

    return run


def digits_torch(x: Any, label: Any, *weights: Any) -> Callable:
    """Return the same in torch."""
    values, label, f = [w.requires_grad_() for w in weights], label.long(), torch.nn.functional

    def run() -> Any:
        h = x
        for w in values[:2]:
            h = f.max_pool2d(torch.tanh(f.conv2d(h, w)), 2)
        h = f.linear(torch.tanh(f.linear(h.flatten(1), values[2])), values[3])
        return [f.softmax(h, -1), *torch.autograd.grad(f.cross_entropy(h, label), values)]

    return run


def images() -> list[np.ndarray]:
    """Return images, filters and a head gradient."""
    return normal((8, 16, 64, 64), (32, 16, 3, 3), (8, 32, 64, 64), scale=0.1)()


def channels() -> list[np.ndarray]:
    """Return images, a filter for each channel, and a head gradient."""
    return normal((8, 64, 56, 56), (64, 1, 3, 3), (8, 64, 56, 56), scale=0.1)()


def convolution(x: Any, w: Any, head: Any, groups: int = 1) -> Callable:
    """Return a convolution and its gradients, recorded."""
    for a in (x, w):
        a.attach_grad()
    more = {"kernel": (3, 3), "pad": (1, 1), "num_filter": len(w), "num_group": groups, "no_bias": True}

    def run() -> Any:
        with autograd.record():
            y = nd.Convolution(x, w, **more)
        y.backward(head)
        return [y, x.grad, w.grad]

    return run


def convolution_torch(x: Any, w: Any, head: Any, groups: int = 1) -> Callable:
    """Return the same in torch."""
    values = [x.requires_grad_(), w.requires_grad_()]

    def run() -> Any:
        y = torch.nn.functional.conv2d(*values, padding=1, groups=groups)
        return [y, *torch.autograd.grad(y, values, head)]

    return run


WORKLOADS = [
    Workload("t.mlp", "training step, MLP 784-512-512-10, batch 128",
             {"mxop": Prepared(perceptron_bound), "torch": Prepared(perceptron_torch), "jax": Prepared(perceptron_jax)},
             perceptron, flops=6.0 * BATCH * sum(a * b for a, b in pairwise(WIDTHS)), bound=0.8, claims=6),
    Workload("t.gp", "gradients of a critic with gradient penalty, MLP 64-256-256-1, batch 256",
             {"mxop": Prepared(penalty), "torch": Prepared(penalty_torch)}, critic, bound=0.6, claims=5),
    Workload("t.gpc", "the same, compiled",
             {"mxop": Prepared(penalty_compiled), "jax": penalty_jax}, critic, bound=0.8, claims=5),
    Workload("t.lstm", "LSTM, 2 layers, T=50, batch 32, hidden 256, forward and backward",
             {"mxop": Prepared(lstm_bound), "torch": Prepared(lstm_torch)}, lstm,
             flops=3.0 * 2 * STEPS * SEQUENCES * 2 * 8 * HIDDEN * HIDDEN, bound=1.0, claims=3),
    Workload("t.conv", "convolution of 8x16x64x64 by 32 filters 3x3, forward and backward",
             {"mxop": Prepared(convolution), "torch": Prepared(convolution_torch)}, images,
             flops=3.0 * 2 * 8 * 32 * 16 * 9 * 64 * 64, bound=1.0, claims=3),
    Workload("t.apart", "convolution of each of 64 channels by a filter of its own, 8x64x56x56, 3x3, forward and backward",
             {"mxop": Prepared(partial(convolution, groups=64)), "torch": Prepared(partial(convolution_torch, groups=64))},
             channels, bound=1.0, claims=3),
    Workload("t.digits", "two convolutions, pooling and two layers, batch 64, forward and backward",
             {"mxop": Prepared(digits_bound), "torch": Prepared(digits_torch)}, digits, bound=1.0, claims=5),
]  # fmt: skip
