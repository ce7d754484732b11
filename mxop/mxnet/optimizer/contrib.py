"""``mx.optimizer.contrib``: where MXNet has GroupAdaGrad."""

from .adaptive import GroupAdaGrad
from .base import register

__all__ = ["GroupAdaGrad", "register"]
