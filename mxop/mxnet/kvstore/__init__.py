"""``mx.kv``: stores of parameters and gradients by key, of one process."""

from __future__ import annotations

from ...support.missing import hooks
from . import base, kvstore
from .base import KVStoreBase, create
from .kvstore import KVStore

__all__ = ["KVStore", "KVStoreBase", "base", "create", "kvstore"]

__getattr__, __dir__ = hooks(globals(), __all__)
