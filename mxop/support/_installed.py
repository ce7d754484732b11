"""Finds the installed package when this one is a source tree whose compiled modules were not built beside it.

``python -m`` puts the current folder first on the path.  In a fresh clone, ``python -m pip install .`` builds mxop into
site-packages, and ``python -m mxop`` or ``python -m pytest`` in that folder would then meet the sources, which cannot run.
So a source tree that was not built in place hands over to the copy that was installed.  A tree that was built in place
(``pip install -e .``) is used as it is, and an installed package never gets here.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from types import ModuleType


def compiled(folder: str) -> bool:
    """Return whether a package folder holds the compiled modules for this interpreter."""
    return any(os.path.exists(os.path.join(folder, "_kernels", f"interp{suffix}")) for suffix in EXTENSION_SUFFIXES)


def find() -> ModuleSpec | None:
    """Return the first package ``mxop`` on the path that has its compiled modules."""
    for entry in sys.path:
        spec = PathFinder.find_spec("mxop", [entry or os.getcwd()])
        if spec is not None and spec.origin is not None and compiled(os.path.dirname(spec.origin)):
            return spec
    return None


def hand_over(package: ModuleType, caller: str) -> None:
    """Let `package`, a source tree, take its modules from the installed copy.

    Parameters
    ----------
    caller : str
        The module that is being imported, and stays.

    Raises
    ------
    ModuleNotFoundError
        When there is no such copy; says how to make one.
    """
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = find()
    if spec is None or spec.submodule_search_locations is None:
        version = ".".join(map(str, sys.version_info[:2]))
        raise ModuleNotFoundError(
            f"mxop in {here} is a source tree without compiled modules for Python {version}, and no other copy is "
            f"installed; run in {os.path.dirname(here)}: python -m pip install .",
            name="mxop._kernels.interp",
        ) from None
    for name in [n for n in sys.modules if n.startswith("mxop.")]:
        if name not in (__name__, caller):
            del sys.modules[name]  # what the attempt to import from the source tree left
    vars(package).pop("_kernels", None)
    package.__path__ = list(spec.submodule_search_locations)
    package.__file__ = spec.origin
    package.__spec__ = spec
