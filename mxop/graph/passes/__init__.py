"""Passes: transformations from a graph to a graph, listed in a table; each result is verified.

:mod:`.base` defines passes, :mod:`.peephole` and :mod:`.pattern` are front ends for most of them, and :mod:`.table` holds their
order and runs them.
"""

from __future__ import annotations

from .algebra import Algebra
from .base import STAGES, Pass
from .choices import Choices
from .common import CommonSubexpressions
from .dead import DeadNodes
from .folding import FoldConstants
from .pattern import Labels, RewritePass, label, skip
from .peephole import PeepholePass, visit
from .products import ScaleAndBiasIntoProducts, TransposesIntoProducts
from .scheduling import Fuse, Mirror, Recompute, ShareMemory, Strips
from .simplify import Simplify
from .stable import Stable
from .table import (
    list_passes,
    module_of,
    of_stage,
    on_change,
    optimize,
    register_pass,
    run_passes,
    selected,
    switch_passes,
    unregister_pass,
)

for _pass in (Stable, Algebra, FoldConstants, Choices, Simplify, TransposesIntoProducts, ScaleAndBiasIntoProducts,
              CommonSubexpressions, DeadNodes, Mirror, Recompute, Strips, Fuse, ShareMemory):  # fmt: skip
    register_pass(_pass)

__all__ = [
    "STAGES", "Labels", "Pass", "PeepholePass", "RewritePass", "label", "list_passes", "module_of", "of_stage", "on_change",
    "optimize", "register_pass", "run_passes", "selected", "skip", "switch_passes", "unregister_pass", "visit",
]  # fmt: skip
