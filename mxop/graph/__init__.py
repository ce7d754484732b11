"""Graphs: the representation, inference, gradients, passes, fusion, memory plan and executor.

``infer -> gradient -> passes -> fuse -> plan -> schedule -> executor``; see each module's first lines.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..support.missing import attribute, names_shown
from . import control_files as _control_files  # noqa: F401  registers operators that only files name
from . import control_flow as _control_flow  # noqa: F401  registers MXNet's operators
from . import loop_gradient as _loop_gradient  # noqa: F401  defines Loop.grad
from . import value_control as _value_control  # noqa: F401  loops inside composites
from . import value_gradient as _value_gradient  # noqa: F401  gradients inside compiled functions
from .assignment import assign
from .backends import backends, register_backend, unregister_backend
from .expand import expand
from .gradient import gradients
from .infer import Known, Shapes, Types
from .ir import Graph, Node, location, topological, variable
from .ordering import after, control_dependencies, do_all, sequential
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
    "Backend", "Computation", "Executor", "Graph", "Known", "Node", "Pass", "PeepholePass", "RewritePass", "Shapes", "Types",
    "after", "assign", "backends", "compiled", "computation", "control_dependencies", "deriv", "do_all", "expand",
    "gradients", "label", "list_passes", "location", "optimize", "planned", "register_backend", "register_pass",
    "sequential", "skip", "switch_passes", "topological", "unregister_backend", "unregister_pass", "variable", "verify",
    "visit",
]  # fmt: skip

_LATER = {
    "Executor": "executor",
    "compiled": "traced",
    "planned": "patterns",
    "Computation": "functions",
    "computation": "functions",
    "deriv": "functions",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise attribute(__name__, name, lambda: __all__)


def __dir__() -> list[str]:
    return names_shown(globals(), __all__)
