"""What the examples share: progress bars and plots where the packages for them are installed, and the digits.

Imports NumPy alone; tqdm, matplotlib and scikit-learn when they are asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def steps(n: int, what: str, shown: bool = True) -> Iterator[int]:
    """Count to `n`, with a progress bar when it is wanted and tqdm is installed."""
    try:
        from tqdm import trange
    except ImportError:
        return iter(range(n))
    return iter(trange(n, desc=what, disable=not shown))


def save_plot(draw: Callable[[Any], None], path: str, size: tuple[float, float] = (7, 4.5)) -> None:
    """Write the picture that `draw` makes on the axes it is given; without matplotlib, say so."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no plot: python -m pip install matplotlib", file=sys.stderr)
        return
    figure = Figure(figsize=size, layout="constrained")
    draw(figure.add_subplot())
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def digits(seed: int = 0, held_out: int = 360) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return scikit-learn's digits, 1797 images of 8x8: data and labels to train with, data and labels to test with."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SystemExit("the digits come with scikit-learn: python -m pip install scikit-learn") from None
    data, label = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(data))
    data, label = (data[order] / 16).astype("float32"), label[order].astype("float32")
    return data[held_out:], label[held_out:], data[:held_out], label[:held_out]
