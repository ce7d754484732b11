"""Lets programs written for MXNet import mxop under MXNet's name.

After :func:`install_as_mxnet`, ``import mxnet as mx``, ``from mxnet import nd`` and ``from mxnet.metric import Accuracy`` give
the modules of mxop themselves.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..support.errors import MXNetError
from . import libinfo

NAME = "mxnet"


class _Finder:
    """Answers imports of ``mxnet`` and of what is in it; it comes first on ``sys.meta_path``, before one that is installed."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != NAME and not fullname.startswith(f"{NAME}."):
            return None
        return ModuleSpec(fullname, cls, is_package=True)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Leave the making of a module, which is then replaced, to Python."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Put mxop's module in the place of the new one."""
        name = module.__name__
        sys.modules[name] = import_module("mxop" + name[len(NAME) :])


def install_as_mxnet() -> None:
    """Let ``import mxnet`` mean mxop in this process, from now on.

    ``__version__`` is then MXNet's, which programs compare; that of mxop is ``mxop.distribution.VERSION``.

    Raises
    ------
    MXNetError
        When the real MXNet was imported before: its objects and mxop's would mix.

    Examples
    --------
    >>> import mxop
    >>> mxop.install_as_mxnet()
    >>> import mxnet as mx
    >>> from mxnet import nd
    >>> mx is mxop and nd.exp is mxop.nd.exp, mx.__version__
    (True, '1.9.1')
    """
    there = sys.modules.get(NAME)
    if there is not None and there is not sys.modules["mxop"]:
        raise MXNetError(
            f"install_as_mxnet: mxnet is imported already, from {getattr(there, '__file__', '?')}; call it before that"
        )
    sys.modules["mxop"].__version__ = libinfo.__version__  # type: ignore[attr-defined]
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]
