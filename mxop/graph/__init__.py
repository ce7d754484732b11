"""Graphs: the representation, inference, gradients, passes, fusion, memory plan and executor.

``infer -> gradient -> passes -> fuse -> plan -> schedule -> executor``; see each module's first lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..support.missing import hooks

if TYPE_CHECKING:
    from .assignment import assign
    from .backend_table import backends, register_backend, unregister_backend
    from .executor import Executor
    from .expansion import expand
    from .functions import Computation, computation, deriv
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
    from .patterns import planned
    from .traced import compiled
    from .verification import verify

#: The module of each name; it is imported when the name is first used.  Nothing is imported at once: a thread that waited here
#: for a module, which another thread imports, would be waited for by that module.
_MODULES = {
    "assignment": ("assign",),
    "backend_table": ("backends", "register_backend", "unregister_backend"),
    "executor": ("Executor",),
    "expansion": ("expand",),
    "functions": ("Computation", "computation", "deriv"),
    "gradient": ("gradients",),
    "infer": ("Known", "Shapes", "Types"),
    "ir": ("Graph", "Node", "location", "topological", "variable"),
    "ordering": ("after", "control_dependencies", "do_all", "sequential"),
    "partition": ("Backend",),
    "passes": ("Pass", "PeepholePass", "RewritePass", "label", "list_passes", "optimize", "register_pass", "skip",
               "switch_passes", "unregister_pass", "visit"),
    "patterns": ("planned",),
    "traced": ("compiled",),
    "verification": ("verify",),
}  # fmt: skip
_LATER = {name: f"{__name__}.{module}:{name}" for module, names in _MODULES.items() for name in names}
__all__ = [
    "Backend", "Computation", "Executor", "Graph", "Known", "Node", "Pass", "PeepholePass", "RewritePass", "Shapes", "Types",
    "after", "assign", "backends", "compiled", "computation", "control_dependencies", "deriv", "do_all", "expand",
    "gradients", "label", "list_passes", "location", "optimize", "planned", "register_backend", "register_pass",
    "sequential", "skip", "switch_passes", "topological", "unregister_backend", "unregister_pass", "variable", "verify",
    "visit",
]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__, _LATER)
