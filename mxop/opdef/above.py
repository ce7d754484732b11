"""Functions of higher layers that this layer calls: they are provided when the package is imported.

The graph layer infers composites, and the symbol layer shows nodes to passes; lower layers may not import these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..support.errors import MXNetError

_given: dict[str, Callable] = {}


def provide(**functions: Callable) -> None:
    """Register functions of higher layers, by name."""
    _given.update(functions)


def ask(name: str) -> Callable[..., Any]:
    """Return a function of a higher layer.

    Raises
    ------
    MXNetError
        If ``mxop`` itself was not imported.
    """
    if name not in _given:
        raise MXNetError(f"{name} is a function of a higher layer, which is not loaded: import mxop")
    return _given[name]
