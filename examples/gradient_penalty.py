#!/usr/bin/env python
"""A generator learns a mixture in the plane; its critic is held to slope 1 by a gradient penalty (WGAN-GP).

    python examples/gradient_penalty.py            # about two minutes; writes gradient_penalty.png

The penalty is a function of the critic's gradient with respect to its input, and training differentiates it once more:
``autograd.grad(..., create_graph=True)`` inside of ``record``, then ``backward``.
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import numpy as np
from helpers import save_plot, steps

import mxop as mx
from mxop import autograd, nd

NOISE = 4


def mixture(n: int, rng: np.random.Generator, centres: int = 8) -> nd.NDArray:
    """Draw points of a mixture of round clouds on a circle."""
    angle = 2 * np.pi * rng.integers(centres, size=n) / centres
    points = 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(0, 0.1, (n, 2))
    return nd.array(points.astype("float32"))


class Network:
    """Layers with leaky rectifiers between them, and the optimizer of their weights."""

    def __init__(self, widths: list[int], learning_rate: float):
        self.weights = []
        for fan_in, fan_out in pairwise(widths):
            self.weights += [nd.random.normal(0, (2 / fan_in) ** 0.5, (fan_out, fan_in)), nd.zeros((fan_out,))]
        for w in self.weights:
            w.attach_grad()
        self.update = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=learning_rate, beta1=0.0, beta2=0.9))

    def __call__(self, x: nd.NDArray) -> nd.NDArray:
        """Evaluate the layers."""
        pairs = list(zip(self.weights[::2], self.weights[1::2], strict=True))
        for w, b in pairs[:-1]:
            x = nd.LeakyReLU(nd.FullyConnected(x, w, b, num_hidden=len(b)), act_type="leaky", slope=0.2)
        w, b = pairs[-1]
        return nd.FullyConnected(x, w, b, num_hidden=len(b))

    def step(self) -> None:
        """Update the weights by the gradients that ``backward`` left."""
        for k, w in enumerate(self.weights):
            self.update(k, w.grad, w)


def slopes(critic: Network, x: nd.NDArray, create_graph: bool = False) -> nd.NDArray:
    """Return the lengths of the critic's gradient at points `x`; call it while recording."""
    x.attach_grad()
    (gradient,) = autograd.grad(critic(x), [x], create_graph=create_graph, retain_graph=True)
    return nd.sqrt(nd.sum(nd.square(gradient), axis=1) + 1e-12)


def critic_step(critic: Network, real: nd.NDArray, fake: nd.NDArray, penalty: float) -> float:
    """Train the critic once; return its estimate of the distance between `real` and `fake`."""
    share = nd.random.uniform(shape=(len(real), 1))
    between = share * real + (1 - share) * fake
    with autograd.record():
        slope = slopes(critic, between, create_graph=True)
        distance = nd.mean(critic(real)) - nd.mean(critic(fake))
        loss = penalty * nd.mean(nd.square(slope - 1)) - distance
    loss.backward()
    critic.step()
    return distance.asscalar()


def generator_step(generator: Network, critic: Network, batch: int) -> None:
    """Train the generator once."""
    with autograd.record():
        loss = -nd.mean(critic(generator(nd.random.normal(shape=(batch, NOISE)))))
    loss.backward()
    generator.step()


def energy_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Return how far two samples are from having one distribution: 0 when they have."""

    def mean(p: np.ndarray, q: np.ndarray) -> float:
        return float(np.linalg.norm(p[:, None] - q[None], axis=2).mean())

    return 2 * mean(a, b) - mean(a, a) - mean(b, b)


def train(rounds: int = 2000, batch: int = 256, width: int = 128, critic_steps: int = 5, penalty: float = 1.0,
          learning_rate: float = 1e-3, seed: int = 0, shown: bool = False) -> dict:  # fmt: skip
    """Train both networks; return what the plot shows and the tests check."""
    mx.random.seed(seed)
    rng = np.random.default_rng(seed)
    generator = Network([NOISE, width, width, 2], learning_rate)
    critic = Network([2, width, width, 1], learning_rate)
    probe, noise = mixture(500, rng), nd.random.normal(shape=(500, NOISE))
    before = energy_distance(probe.asnumpy(), generator(noise).asnumpy())
    distances = []
    for _ in steps(rounds, "rounds", shown):
        for _ in range(critic_steps):
            fake = generator(nd.random.normal(shape=(batch, NOISE)))
            distance = critic_step(critic, mixture(batch, rng), fake, penalty)
        distances.append(distance)
        generator_step(generator, critic, batch)
    generated = generator(noise)
    with autograd.record():
        slope = slopes(critic, (probe + generated) / 2)
    after = energy_distance(probe.asnumpy(), generated.asnumpy())
    return {"before": before, "after": after, "slope": float(slope.mean().asscalar()), "distances": distances,
            "real": probe.asnumpy(), "generated": generated.asnumpy()}  # fmt: skip


def main() -> None:
    """Train, print, and draw what was learnt."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2000, help="steps of the generator")
    found = train(rounds=parser.parse_args().rounds, shown=True)
    print(f"energy distance {found['before']:.3f} before, {found['after']:.4f} after; slope {found['slope']:.2f}")

    def draw(axes) -> None:
        axes.scatter(*found["real"].T, s=8, label="mixture")
        axes.scatter(*found["generated"].T, s=8, label="generated")
        axes.set_aspect("equal")
        axes.legend()

    save_plot(draw, "gradient_penalty.png", (6, 6))


if __name__ == "__main__":
    main()
