"""Modules that people import by the names that MXNet gives them, or by those of where they once were.

The package imports this module first, since other threads may import such names meanwhile; so it imports nothing large.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

#: The folder in which a module lies that is imported as ``mxop.NAME``: by MXNet's name, or from where it was before.
FOLDERS = {name: folder for folder, names in {
    "mxnet": "base callback checkpoints contrib engine error executor executor_manager feed_forward image initializer io "
             "kvstore libinfo log lr_scheduler metric misc model monitor optimizer recordio registry rnn rtc runtime util "
             "as_mxnet",
    "support": "attribute distribution dtypes errors files generators handles limits memo missing mxnet_names name nested "
               "per_thread shape_mode",
    "_core": "nans", "ndarray": "sampling",
}.items() for name in names.split()}  # fmt: skip


def public(module: str) -> str:
    """Return the name that people import a module by: ``mxop.optimizer`` for ``mxop.mxnet.optimizer``."""
    top, *parts = module.split(".")
    return ".".join([top, *parts[1:]]) if parts[:1] == [FOLDERS.get("".join(parts[1:2]))] else module


class Moved:
    """Gives a module under a further name: :data:`FOLDERS` has those of ``mxop``, and all of ``mxnet`` are of mxop.

    It comes first on ``sys.meta_path``, before an installed MXNet, and before Python looks beside a module for a second copy.
    """

    tops = ("mxop",)  # install_as_mxnet() adds mxnet
    _specs: dict[str, ModuleSpec | None] = {}  # noqa: RUF012  the modules' own ones

    @classmethod
    def home(cls, name: str) -> str:
        """Return the name of where a module lies that is imported by this one."""
        top, *parts = name.split(".")
        if top not in cls.tops:
            return name
        return ".".join(["mxop", *[FOLDERS[p] for p in parts[:1] if p in FOLDERS], *parts])

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return what makes the module known under `fullname`; None where that is its own name, or there is none."""
        name = cls.home(fullname)
        if name == fullname:
            return None
        if name in sys.modules:
            own = sys.modules[name].__spec__ or ModuleSpec(name, None)
        else:  # nothing is imported here, where Python holds a lock
            first, *below = fullname.split(".")[1:]
            own = PathFinder.find_spec(name, path if below else [f"{p}/{FOLDERS.get(first, '')}" for p in path or ()])
        if own is None:
            return None
        spec = ModuleSpec(fullname, cls, origin=own.origin)  # type: ignore[arg-type]
        spec.submodule_search_locations = own.submodule_search_locations
        return spec

    @classmethod
    def create_module(cls, spec: ModuleSpec) -> ModuleType:
        """Return the one module there is, which from now on lies in ``sys.modules`` under this name, too."""
        import_module("mxop")  # another thread may be importing the package: wait, as no module of it can be used before
        module = import_module(cls.home(spec.name))
        cls._specs.setdefault(module.__name__, module.__spec__)
        return module

    @classmethod
    def exec_module(cls, module: ModuleType) -> None:
        """Give the module its own specification back: Python has just written that of the further name into it."""
        module.__spec__ = cls._specs[module.__name__]


# At the beginning of the import system's list, once, however often the package is imported.
sys.meta_path[:] = [Moved, *(f for f in sys.meta_path if getattr(f, "__module__", None) != __name__)]  # type: ignore[list-item]
