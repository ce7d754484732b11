"""``mx.optimizer``: optimizers, which update weights from their gradients."""

from __future__ import annotations

from ...support.missing import hooks
from .adaptive import AdaDelta, AdaGrad, Adam, Adamax, Ftrl, GroupAdaGrad, Nadam, RMSProp
from .base import Optimizer, Test, create, register
from .layerwise import LAMB, LARS, LBSGD
from .rules import DCASGD, FTML, NAG, SGD, SGLD, Signum, ccSGD
from .updater import Updater, get_updater

__all__ = [
    "DCASGD", "FTML", "LAMB", "LARS", "LBSGD", "NAG", "SGD", "SGLD", "AdaDelta", "AdaGrad", "Adam", "Adamax", "Ftrl",
    "GroupAdaGrad", "Nadam", "Optimizer", "RMSProp", "Signum", "Test", "Updater", "ccSGD", "create", "get_updater", "register",
]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__, {name: f"{__name__}.{name}" for name in ("contrib", "optimizer")})
