"""Draws a function and its derivatives."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from ..support.distribution import install
from . import Stop

HOW_TO_GET = f"pictures need matplotlib: {install('plot')}"
_POINTS = 4000


def available() -> bool:
    """Return whether pictures can be drawn."""
    return find_spec("matplotlib") is not None


def draw(path: str, title: str, x: np.ndarray, curves: Sequence[tuple[str, np.ndarray]]) -> None:
    """Draw curves over the values of `x`, which may come in any order, into a file whose ending names its format.

    Raises
    ------
    Stop
        When the file cannot be written.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it warns of its own folders, which this does not need
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    x = np.ravel(x).astype(float)
    order = np.argsort(x, kind="stable")
    order = order[np.isfinite(x[order])]
    if order.size > _POINTS:
        order = order[np.linspace(0, order.size - 1, _POINTS).astype(int)]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    marker = "o" if order.size <= 20 else None
    with np.errstate(all="ignore"):
        for label, y in curves:
            axes.plot(x[order], np.ravel(y).astype(float)[order], label=label, marker=marker, markersize=4)
    axes.set_title(title)
    axes.set_xlabel("x")
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.legend()
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError, TypeError) as problem:  # ValueError: a format that matplotlib does not know
        raise Stop(f"cannot write the picture {path}: {getattr(problem, 'strerror', None) or problem}") from None
