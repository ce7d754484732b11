#!/usr/bin/env python
"""A recurrent network (LSTM) learns to write, letter by letter, from the text beside it.

    python examples/language_model.py              # some minutes; writes language_model.png
    python examples/language_model.py --text FILE  # from another text

A symbol with MXNet's fused ``RNN``, bound twice: once to train with many letters at a time, and once to write with one.  Both
executors use the same arrays of weights.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from helpers import save_plot, steps

import mxop as mx

TEXT = Path(__file__).with_name("language_model.txt")
STATES = ("state", "state_cell")


def network(letters: int, hidden: int, layers: int) -> mx.sym.Symbol:
    """Return probabilities of the next letter after each, and the states after the last."""
    data = mx.sym.Variable("data")  # (steps, batch)
    x = mx.sym.Embedding(data, input_dim=letters, output_dim=hidden, name="letters")
    x, *after = mx.sym.RNN(x, mx.sym.Variable("rnn_parameters"), *map(mx.sym.Variable, STATES), state_size=hidden,
                           num_layers=layers, mode="lstm", state_outputs=True, name="rnn")  # fmt: skip
    x = mx.sym.FullyConnected(mx.sym.reshape(x, shape=(-1, hidden)), num_hidden=letters, name="scores")
    label = mx.sym.reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
    chances = mx.sym.SoftmaxOutput(x, label, normalization="batch", name="softmax")
    return mx.sym.Group([chances, *map(mx.sym.BlockGrad, after)])


class Model:
    """The network with its weights; an executor for each shape of input."""

    def __init__(self, text: str, hidden: int, layers: int):
        self.letters = sorted(set(text))
        self.numbers = {letter: k for k, letter in enumerate(self.letters)}
        self.symbol, self.state = network(len(self.letters), hidden, layers), (layers, hidden)
        self.weights: dict[str, mx.nd.NDArray] = {}
        self.gradients: dict[str, mx.nd.NDArray] = {}

    def bind(self, length: int, batch: int) -> mx.Executor:
        """Return an executor for `batch` texts of `length` letters, with the weights of all the others."""
        layers, hidden = self.state
        shapes = {"data": (length, batch), "softmax_label": (length, batch)}
        shapes |= dict.fromkeys(STATES, (layers, batch, hidden))
        names = self.symbol.list_arguments()
        found = dict(zip(names, self.symbol.infer_shape(**shapes)[0], strict=True))
        if not self.weights:
            for name in [n for n in names if n not in shapes]:
                self.weights[name] = mx.nd.random.uniform(-0.1, 0.1, shape=found[name])
                self.gradients[name] = mx.nd.zeros(found[name])
        given = self.weights | {name: mx.nd.zeros(shape) for name, shape in shapes.items()}
        requests = {n: "write" if n in self.weights else "null" for n in names}
        return self.symbol.bind(mx.cpu(), given, args_grad=self.gradients, grad_req=requests)

    def encode(self, text: str) -> np.ndarray:
        """Return the number of each letter."""
        return np.array([self.numbers[letter] for letter in text], "float32")

    def write(self, beginning: str, length: int, temperature: float = 0.7, seed: int = 0) -> str:
        """Continue a text letter by letter, each drawn by the probabilities that the network gives."""
        executor, draw = self.bind(1, 1), np.random.default_rng(seed)
        given, written = list(self.encode(beginning)), beginning
        for k in range(len(beginning) + length - 1):
            chances, *states = executor.forward(is_train=False, data=mx.nd.array([[given[k]]]))
            for name, state in zip(STATES, states, strict=True):
                state.copyto(executor.arg_dict[name])
            if k + 1 == len(given):
                sharpened = chances.asnumpy()[0].astype("float64") ** (1 / temperature)
                given.append(draw.choice(len(self.letters), p=sharpened / sharpened.sum()))
                written += self.letters[given[-1]]
        return written


def rows(numbers: np.ndarray, length: int, batch: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cut a text into `batch` columns, read side by side; return pieces of `length` letters and those that follow each."""
    usable = (len(numbers) - 1) // (batch * length) * length
    columns = [numbers[k : k + batch * usable].reshape(batch, usable).T for k in (0, 1)]
    return [tuple(c[at : at + length] for c in columns) for at in range(0, usable, length)]


def train(text: str, epochs: int = 60, hidden: int = 128, layers: int = 2, length: int = 32, batch: int = 8,
          learning_rate: float = 5e-3, seed: int = 0, shown: bool = False) -> tuple[Model, list[float]]:  # fmt: skip
    """Train a model; return it, and the perplexity after each epoch: among how many letters it hesitates."""
    mx.random.seed(seed)
    model = Model(text, hidden, layers)
    executor = model.bind(length, batch)
    parts = rows(model.encode(text), length, batch)
    schedule = mx.lr_scheduler.CosineScheduler(epochs * len(parts), learning_rate, final_lr=learning_rate / 20)
    adam = mx.optimizer.Adam(learning_rate=learning_rate, lr_scheduler=schedule, clip_gradient=1.0)
    update = mx.optimizer.get_updater(adam)
    metric, found = mx.metric.Perplexity(ignore_label=None), []
    for _ in steps(epochs, "epochs", shown):
        metric.reset()
        for name in STATES:
            executor.arg_dict[name][:] = 0
        for data, label in parts:
            chances, *states = executor.forward(is_train=True, data=mx.nd.array(data), softmax_label=mx.nd.array(label))
            executor.backward([mx.nd.ones_like(chances), *map(mx.nd.zeros_like, states)])
            metric.update([mx.nd.array(label.ravel())], [chances])
            for k, (name, weight) in enumerate(model.weights.items()):
                update(k, executor.grad_dict[name], weight)
            for name, state in zip(STATES, states, strict=True):
                state.copyto(executor.arg_dict[name])  # the next piece goes on where this one ended
        found.append(metric.get()[1])
    return model, found


def main() -> None:
    """Train, let the network write, and draw the perplexity."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, default=TEXT, help="the text to learn from")
    parser.add_argument("--epochs", type=int, default=60, help="times that the text is read")
    given = parser.parse_args()
    model, found = train(given.text.read_text(encoding="utf-8"), given.epochs, shown=True)
    print(f"perplexity {found[0]:.1f} after the first epoch, {found[-1]:.2f} after the last\n")
    print(model.write("In the ", 400))

    def draw(axes) -> None:
        axes.plot(range(1, len(found) + 1), found)
        axes.set(xlabel="epoch", ylabel="perplexity of the text, a letter", yscale="log")

    save_plot(draw, "language_model.png")


if __name__ == "__main__":
    main()
