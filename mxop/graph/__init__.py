"""Graphs: the representation, inference, gradients, passes, fusion, memory plan and executor.

``infer -> gradient -> passes -> fuse -> plan -> schedule -> executor``; see each module's first lines.
May import :mod:`mxop.opdef`, :mod:`mxop.formula` and :mod:`mxop._core`; the executor is loaded on first use.
"""

from __future__ import annotations

from typing import Any

from .backends import backends, register_backend, unregister_backend
from .expand import expand
from .gradient import gradients
from .infer import Known, Shapes, Types
from .ir import Graph, Node, location, topological, variable
from .partition import Backend
from .passes import (
    Pass,
    PeepholePass,
    RewritePass,
    label,
    list_passes,
    optimize,
    register_pass,
    skip,
    switch_passes,
    unregister_pass,
    visit,
)
from .verify import verify

__all__ = [
    "Backend", "Executor", "Graph", "Known", "Node", "Pass", "PeepholePass", "RewritePass", "Shapes", "Types", "backends",
    "expand", "gradients", "label", "list_passes", "location", "optimize", "register_backend", "register_pass", "skip",
    "switch_passes", "topological", "unregister_backend", "unregister_pass", "variable", "verify", "visit",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "Executor":
        from .executor import Executor

        return Executor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
