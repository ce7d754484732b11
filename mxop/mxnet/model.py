"""``mx.model``: checkpoints, and :class:`FeedForward`, where MXNet has them."""

from __future__ import annotations

from ..support.missing import hooks
from .callback import BatchEndParam
from .checkpoints import load_checkpoint, load_params, save_checkpoint

#: Whether :class:`FeedForward` is one of scikit-learn's estimators.
SKLEARN_INSTALLED = False

__all__ = ["BatchEndParam", "FeedForward", "load_checkpoint", "load_params", "save_checkpoint"]  # noqa: F822

#: It needs optimizers, metrics and iterators, which checkpoints do not.
_LATER = {"FeedForward": f"{__package__}.feed_forward:FeedForward"} | {
    name: f"{__package__}.kvstore.parameters:{name}"
    for name in ("_create_kvstore", "_initialize_kvstore", "_update_params", "_update_params_on_kvstore")
}

__getattr__, __dir__ = hooks(globals(), __all__, _LATER)
