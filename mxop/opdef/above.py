"""What this layer asks of those above it: they are handed down when the package is imported.

A composite is inferred by the graph layer, and a pass shows nodes as symbols; neither may import what lies above it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..support.errors import MXNetError

_given: dict[str, Callable] = {}


def provide(**functions: Callable) -> None:
    """Hand functions of higher layers down, by name."""
    _given.update(functions)


def ask(name: str) -> Callable[..., Any]:
    """Return a function of a higher layer.

    Raises
    ------
    MXNetError
        When the package was not imported as a whole.
    """
    if name not in _given:
        raise MXNetError(f"{name} is a function of a higher layer, which is not loaded: import mxop")
    return _given[name]
