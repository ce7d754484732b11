#!/usr/bin/env python
"""Learning rates are learnt by gradient: training itself is differentiated, on scikit-learn's digits.

    python examples/learning_rates.py              # some seconds; writes learning_rates.png

A few steps of gradient descent are recorded, gradients included (``create_graph=True``).  What they reach, the loss on digits
that they have not seen, is then a function of the learning rate of each step and each layer, and has a gradient
("hypergradient") with respect to all of them.
"""

from __future__ import annotations

import argparse

import numpy as np
from helpers import digits, save_plot, steps

import mxop as mx
from mxop import autograd, nd

LAYERS = 2


def initial_weights(hidden: int, rng: np.random.Generator) -> list[nd.NDArray]:
    """Draw weights and biases of two layers."""
    shapes = [(hidden, 64), (hidden,), (10, hidden), (10,)]
    return [nd.array(rng.normal(0, shape[-1] ** -0.5 if len(shape) > 1 else 0, shape), dtype="float32") for shape in shapes]


def loss(weights: list[nd.NDArray], data: nd.NDArray, label: nd.NDArray) -> nd.NDArray:
    """Return the mean cross-entropy of the network."""
    w1, b1, w2, b2 = weights
    hidden = nd.tanh(nd.FullyConnected(data, w1, b1, num_hidden=len(b1)))
    scores = nd.log_softmax(nd.FullyConnected(hidden, w2, b2, num_hidden=10))
    return -nd.mean(nd.pick(scores, label))


def trained(weights: list[nd.NDArray], rates: nd.NDArray, batches: list) -> list[nd.NDArray]:
    """Descend once for each batch with the rates of its row, one for each layer; call it while recording."""
    for k, (data, label) in enumerate(batches):
        gradients = autograd.grad(loss(weights, data, label), weights, create_graph=True)
        weights = [w - rates[k, i // 2] * g for i, (w, g) in enumerate(zip(weights, gradients, strict=True))]
    return weights


class Problem:
    """Digits in three parts: to train with, to judge the learning rates by, to report on."""

    def __init__(self, hidden: int, inner_steps: int, batch: int, seed: int):
        self.rng = np.random.default_rng(seed)
        self.hidden, self.inner_steps, self.batch = hidden, inner_steps, batch
        data, label, *held_out = digits(seed)
        self.data, self.label = data[360:], label[360:]
        self.judges = nd.array(data[:360]), nd.array(label[:360])
        self.held_out = tuple(map(nd.array, held_out))

    def task(self) -> tuple[list[nd.NDArray], list]:
        """Draw new weights, and batches to train them with."""
        weights = initial_weights(self.hidden, self.rng)
        for w in weights:
            w.attach_grad()
        chosen = [self.rng.choice(len(self.data), self.batch, replace=False) for _ in range(self.inner_steps)]
        return weights, [(nd.array(self.data[c]), nd.array(self.label[c])) for c in chosen]

    def reached(self, log_rates: nd.NDArray, weights: list[nd.NDArray], batches: list, judges: tuple) -> nd.NDArray:
        """Return the loss that training with these rates leads to."""
        return loss(trained(weights, nd.exp(log_rates), batches), *judges)


def learn(rounds: int = 200, inner_steps: int = 10, hidden: int = 32, batch: int = 64, start: float = 0.05,
          learning_rate: float = 0.05, seed: int = 0, shown: bool = False) -> dict:  # fmt: skip
    """Learn the logarithms of the rates with Adam; return what the plot shows and the tests check."""
    problem = Problem(hidden, inner_steps, batch, seed)
    log_rates = nd.full((inner_steps, LAYERS), np.log(start))
    log_rates.attach_grad()
    update = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=learning_rate))
    losses = []
    for _ in steps(rounds, "rounds", shown):
        weights, batches = problem.task()
        with autograd.record():
            value = problem.reached(log_rates, weights, batches, problem.judges)
        value.backward()
        update(0, log_rates.grad, log_rates)
        losses.append(value.asscalar())
    fair = [problem.task() for _ in range(5)]  # the same weights and batches for both
    constant = nd.full((inner_steps, LAYERS), np.log(start))

    def mean_loss(rates: nd.NDArray) -> float:
        with autograd.record():  # training differentiates
            values = [problem.reached(rates, *task, problem.held_out) for task in fair]
        return float(np.mean([v.asscalar() for v in values]))

    return {"losses": losses, "rates": np.exp(log_rates.asnumpy()), "constant": mean_loss(constant),
            "learnt": mean_loss(log_rates), "start": start}  # fmt: skip


def main() -> None:
    """Learn the rates, print them, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200, help="updates of the learning rates")
    found = learn(rounds=parser.parse_args().rounds, shown=True)
    print(f"loss on held-out digits: {found['constant']:.3f} with {found['start']} everywhere, "
          f"{found['learnt']:.3f} with what was learnt")  # fmt: skip

    def draw(axes) -> None:
        for k in range(LAYERS):
            axes.plot(found["rates"][:, k], "o-", label=f"layer {k + 1}")
        axes.axhline(found["start"], color="black", linewidth=1, label="at first")
        axes.set_xlabel("step of training")
        axes.set_ylabel("learning rate")
        axes.set_yscale("log")
        axes.legend()

    save_plot(draw, "learning_rates.png")


if __name__ == "__main__":
    main()
