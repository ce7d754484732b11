"""``mx.optimizer``: optimizers, which update weights from their gradients."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...support.missing import attribute, names_shown
from .adaptive import AdaDelta, AdaGrad, Adam, Adamax, Ftrl, GroupAdaGrad, Nadam, RMSProp
from .base import Optimizer, Test, create, register
from .layerwise import LAMB, LARS, LBSGD
from .rules import DCASGD, FTML, NAG, SGD, SGLD, Signum, ccSGD
from .updater import Updater, get_updater

__all__ = [
    "DCASGD", "FTML", "LAMB", "LARS", "LBSGD", "NAG", "SGD", "SGLD", "AdaDelta", "AdaGrad", "Adam", "Adamax", "Ftrl",
    "GroupAdaGrad", "Nadam", "Optimizer", "RMSProp", "Signum", "Test", "Updater", "ccSGD", "create", "get_updater", "register",
]  # fmt: skip

_PATHS = ("contrib", "optimizer")


def __getattr__(name: str) -> Any:
    if name in _PATHS:
        return import_module(f"{__name__}.{name}")
    raise attribute(__name__, name, lambda: __all__)


def __dir__() -> list[str]:
    return names_shown(globals(), __all__)
