"""Loads the compiled modules, before anything else of the package."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from . import moved  # noqa: F401  first: other threads may import names that it finds

FIRST = "mxop._kernels.interp"


@contextmanager
def short_waits() -> Iterator[None]:
    """Let GNU's OpenMP read, while it is loaded, that its threads are to wait awake for a short time only.

    Otherwise they do so for milliseconds, and keep the cores from who has work: other libraries, or threads of the same team
    that share a core.
    """
    if os.environ.keys() & {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}:  # the user's choice
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "3000"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


with short_waits():
    try:
        import_module(FIRST)
    except ModuleNotFoundError as missing:
        if missing.name != FIRST:
            raise
        from ._installed import hand_over

        hand_over(sys.modules["mxop"], __name__)  # a source tree that was installed, but not built in place
        import_module(FIRST)
