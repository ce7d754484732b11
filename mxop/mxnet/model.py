"""``mx.model``: checkpoints, and :class:`FeedForward`, where MXNet has them."""

from __future__ import annotations

from typing import Any

from ..support.missing import hooks
from .callback import BatchEndParam
from .checkpoints import load_checkpoint, load_params, save_checkpoint

#: Whether :class:`FeedForward` is one of scikit-learn's estimators.
SKLEARN_INSTALLED = False

__all__ = ["BatchEndParam", "FeedForward", "load_checkpoint", "load_params", "save_checkpoint"]  # noqa: F822

_absent, __dir__ = hooks(globals(), __all__)


def __getattr__(name: str) -> Any:
    if name == "FeedForward":  # it needs optimizers, metrics and iterators, which checkpoints do not
        from .feed_forward import FeedForward

        return FeedForward
    if name in ("_create_kvstore", "_initialize_kvstore", "_update_params", "_update_params_on_kvstore"):
        from .kvstore import parameters

        return getattr(parameters, name)
    return _absent(name)
