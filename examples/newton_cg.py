#!/usr/bin/env python
"""A small network is trained by Newton's method: conjugate gradients on products with the Hessian.

    python examples/newton_cg.py                   # some seconds; writes newton_cg.png

The Hessian is never formed.  Its product with a vector is the gradient of the gradient's product with that vector, which costs
about as much as two gradients.  A trust region (Steihaug's) keeps steps short where the function is not convex.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from helpers import save_plot, steps

import mxop as mx
from mxop import autograd, nd

Vector = np.ndarray


class Fit:
    """The mean square error of a network of one input and one output, as a function of a vector of all its weights."""

    def __init__(self, widths: tuple[int, ...] = (1, 16, 16, 1), points: int = 100, decay: float = 1e-5, seed: int = 0):
        rng = np.random.default_rng(seed)
        x = np.linspace(-1, 1, points)[:, None]
        self.x, self.y = nd.array(x, dtype="float64"), nd.array(np.sin(5 * x) * x, dtype="float64")
        self.decay, self.shapes = decay, []
        parts = []
        for fan_in, fan_out in pairwise(widths):
            self.shapes += [(fan_out, fan_in), (fan_out,)]
            parts += [rng.normal(0, 1.5 * fan_in**-0.5, fan_out * fan_in), rng.normal(0, 0.5, fan_out)]
        self.start = np.concatenate(parts)

    def predict(self, weights: nd.NDArray) -> nd.NDArray:
        """Evaluate the network at all points."""
        found, at, x = [], 0, self.x
        for shape in self.shapes:
            n = int(np.prod(shape))
            found.append(weights[at : at + n].reshape(shape))
            at += n
        for k in range(0, len(found), 2):
            x = nd.FullyConnected(x, *found[k : k + 2], num_hidden=self.shapes[k][0])
            x = nd.tanh(x) if k < len(found) - 2 else x
        return x

    def loss(self, weights: nd.NDArray) -> nd.NDArray:
        """Return the error, with a little weight decay."""
        return nd.mean(nd.square(self.predict(weights) - self.y)) + self.decay * nd.sum(nd.square(weights))

    def value(self, weights: Vector) -> float:
        """Return the error as a number."""
        return float(self.loss(nd.array(weights, dtype="float64")).asscalar())

    def derivatives(self, weights: Vector) -> tuple[Vector, Callable[[Vector], Vector]]:
        """Return the gradient, and the function that multiplies a vector by the Hessian."""
        w = nd.array(weights, dtype="float64")
        w.attach_grad()
        with autograd.record():
            (gradient,) = autograd.grad(self.loss(w), [w], create_graph=True)

        def product(vector: Vector) -> Vector:
            v = nd.array(vector, dtype="float64")
            return autograd.grad(gradient, [w], head_grads=[v], retain_graph=True)[0].asnumpy()

        return gradient.asnumpy(), product


def to_the_edge(p: Vector, d: Vector, radius: float) -> Vector:
    """Go from `p` along `d` until the trust region ends."""
    a, b, c = d @ d, p @ d, p @ p - radius**2
    return p + (np.sqrt(b * b - a * c) - b) / a * d


def newton_step(gradient: Vector, product: Callable[[Vector], Vector], radius: float, most: int) -> Vector:
    """Solve ``H p = -gradient`` by conjugate gradients, as far as curvature and `radius` allow."""
    p, r = np.zeros_like(gradient), -gradient
    d, goal = r.copy(), min(0.5, np.sqrt(np.linalg.norm(r))) * np.linalg.norm(r)
    for _ in range(most):
        hd = product(d)
        curvature = d @ hd
        if curvature <= 0:
            return to_the_edge(p, d, radius)
        alpha = (r @ r) / curvature
        if np.linalg.norm(p + alpha * d) >= radius:
            return to_the_edge(p, d, radius)
        p, new = p + alpha * d, r - alpha * hd
        if np.linalg.norm(new) < goal:
            break
        d, r = new + (new @ new) / (r @ r) * d, new
    return p


def newton(fit: Fit, rounds: int, most: int = 100, shown: bool = False) -> dict:
    """Minimize by Newton's method in a trust region."""
    w, radius, losses = fit.start, 1.0, [fit.value(fit.start)]
    for _ in steps(rounds, "Newton", shown):
        gradient, product = fit.derivatives(w)
        p = newton_step(gradient, product, radius, most)
        promised = -(gradient @ p + 0.5 * p @ product(p))
        value = fit.value(w + p)
        kept = (losses[-1] - value) / promised if promised > 0 else 0.0
        radius = 0.25 * np.linalg.norm(p) if kept < 0.25 else min(2 * radius, 10.0) if kept > 0.75 else radius
        w, value = (w + p, value) if kept > 1e-4 else (w, losses[-1])
        losses.append(value)
    return {"losses": losses, "weights": w, "gradient": float(np.linalg.norm(fit.derivatives(w)[0]))}


def adam(fit: Fit, rounds: int, learning_rate: float = 0.01) -> list[float]:
    """Minimize by Adam, to compare."""
    w = nd.array(fit.start, dtype="float64")
    w.attach_grad()
    update, losses = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=learning_rate)), []
    for _ in range(rounds):
        with autograd.record():
            value = fit.loss(w)
        value.backward()
        update(0, w.grad, w)
        losses.append(value.asscalar())
    return losses


def main() -> None:
    """Minimize both ways, and draw how the error falls."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100, help="steps of Newton's method")
    rounds, fit = parser.parse_args().rounds, Fit(widths=(1, 32, 32, 1), points=200)
    found, other = newton(fit, rounds, shown=True), adam(fit, 20 * rounds)
    print(f"loss after {rounds} steps of Newton's method {found['losses'][-1]:.2e}, gradient {found['gradient']:.1e}; "
          f"after {20 * rounds} steps of Adam {other[-1]:.2e}")  # fmt: skip

    def draw(axes) -> None:
        axes.plot(np.arange(len(found["losses"])), found["losses"], label="Newton-CG")
        axes.plot(np.arange(1, len(other) + 1), other, label="Adam")
        axes.set(xscale="symlog", yscale="log", xlabel="step", ylabel="loss")
        axes.legend()

    save_plot(draw, "newton_cg.png")


if __name__ == "__main__":
    main()
