#!/usr/bin/env python
"""Digits are told apart by a symbol, bound with ``simple_bind`` and trained with ``sgd_mom_update``.

    python examples/digits_by_symbol.py            # some seconds; writes digits_by_symbol.png

The loop that MXNet's modules hide: an iterator, an executor, an update of every weight, a metric.
"""

from __future__ import annotations

import argparse

import numpy as np
from helpers import digits, save_plot, steps

import mxop as mx


def network(filters: int, hidden: int) -> mx.sym.Symbol:
    """Return a convolution, a pooling and two layers, with a softmax that knows its own gradient."""
    x = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=filters, name="conv")
    x = mx.sym.Pooling(mx.sym.Activation(x, act_type="relu"), kernel=(2, 2), stride=(2, 2), pool_type="max")
    x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=hidden, name="hidden"), act_type="relu")
    x = mx.sym.FullyConnected(x, num_hidden=10, name="scores")
    return mx.sym.SoftmaxOutput(x, mx.sym.Variable("softmax_label"), normalization="batch", name="softmax")


def initialize(executor: mx.Executor) -> None:
    """Fill the weights."""
    draw = mx.init.Xavier(factor_type="in", magnitude=2)
    for name, array in executor.arg_dict.items():
        if name not in ("data", "softmax_label"):
            draw(mx.init.InitDesc(name), array)


def accuracy(executor: mx.Executor, batches: mx.io.DataIter) -> float:
    """Return the share of images that are recognized."""
    metric = mx.metric.Accuracy()
    batches.reset()
    for batch in batches:
        out = executor.forward(is_train=False, data=batch.data[0])[0]
        seen = len(out) - batch.pad  # the last batch is filled up with images of the first
        metric.update([batch.label[0][:seen]], [out[:seen]])
    return metric.get()[1]


def train(epochs: int = 30, batch: int = 64, filters: int = 16, hidden: int = 64, learning_rate: float = 0.1,
          momentum: float = 0.9, seed: int = 0, shown: bool = False) -> dict:  # fmt: skip
    """Train, and return the accuracy after each epoch."""
    mx.random.seed(seed)
    np.random.seed(seed)  # NDArrayIter shuffles with it, as MXNet's does
    data, label, test_data, test_label = digits(seed)
    training = mx.io.NDArrayIter(data.reshape(-1, 1, 8, 8), label, batch, shuffle=True)
    testing = mx.io.NDArrayIter(test_data.reshape(-1, 1, 8, 8), test_label, batch)
    requests = {"data": "null", "softmax_label": "null"}
    symbol = network(filters, hidden)
    requests = {name: requests.get(name, "write") for name in symbol.list_arguments()}
    executor = symbol.simple_bind(mx.cpu(), requests, data=(batch, 1, 8, 8), softmax_label=(batch,))
    initialize(executor)
    weights = [(executor.arg_dict[n], executor.grad_dict[n]) for n in requests if requests[n] == "write"]
    states = [mx.nd.zeros_like(w) for w, _ in weights]
    found = []
    for epoch in steps(epochs, "epochs", shown):
        rate = learning_rate * (1 - epoch / epochs)
        training.reset()
        for part in training:
            executor.forward(is_train=True, data=part.data[0], softmax_label=part.label[0])
            executor.backward()
            for (weight, grad), state in zip(weights, states, strict=True):
                mx.nd.sgd_mom_update(weight, grad, state, lr=rate, momentum=momentum, wd=1e-4, out=weight)
        found.append(accuracy(executor, testing))
    return {"test": found, "train": accuracy(executor, training)}


def main() -> None:
    """Train, print, and draw the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30, help="times that every image is seen")
    found = train(epochs=parser.parse_args().epochs, shown=True)
    print(f"recognized: {found['test'][-1]:.1%} of the digits that were held out, {found['train']:.1%} of the others")

    def draw(axes) -> None:
        axes.plot(range(1, len(found["test"]) + 1), found["test"], "o-")
        axes.axhline(0.97, color="black", linewidth=1)
        axes.set(xlabel="epoch", ylabel="accuracy on held-out digits")

    save_plot(draw, "digits_by_symbol.png")


if __name__ == "__main__":
    main()
