"""What all stores have, and their making by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...support.errors import OpTypeError, OpValueError, UnsupportedError, shown

#: What makes the stores of one process, by the names that MXNet has for them; :mod:`.kvstore` puts them here.
LOCAL: dict[str, Callable[[str], KVStoreBase]] = {}


class KVStoreBase:
    """Base of stores; derive, and :meth:`register` the class.

    Examples
    --------
    >>> @mx.kv.KVStoreBase.register
    ... class Mine(mx.kv.KVStoreBase):
    ...     type = "mine"
    >>> mx.kv.create("mine").type
    'mine'
    """

    OPTIMIZER = "optimizer"
    kv_registry: ClassVar[dict[str, type]] = {}

    @staticmethod
    def register(klass: type) -> type:
        """Make a class one of those that :func:`create` finds, by its name in small letters; usable as a decorator."""
        KVStoreBase.kv_registry[klass.__name__.lower()] = klass
        return klass

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return whether the store can do something: ``'optimizer'``."""
        return False

    @property
    def type(self) -> str:
        """The store's name."""
        raise self._absent("type")

    @property
    def rank(self) -> int:
        """Which of the processes this one is."""
        raise self._absent("rank")

    @property
    def num_workers(self) -> int:
        """How many processes there are."""
        raise self._absent("num_workers")

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Put values of one process into arrays of all."""
        raise self._absent("broadcast")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Put the sums of values of all processes into arrays."""
        raise self._absent("pushpull")

    def set_optimizer(self, optimizer: Any) -> None:
        """Let an optimizer change the values."""
        raise self._absent("set_optimizer")

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the states of the optimizer to a file."""
        raise self._absent("save_optimizer_states")

    def load_optimizer_states(self, fname: str) -> None:
        """Read the states of the optimizer from a file."""
        raise self._absent("load_optimizer_states")

    def _absent(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"{type(self).__name__} defines no {what}")


def create(name: str = "local") -> Any:
    """Return a store: ``'local'``, ``'device'``, which mean the same here, or one that was registered.

    Parameters
    ----------
    name : str
    """
    if not isinstance(name, str):
        raise OpTypeError(f"mx.kv.create: name={shown(name)} is a {type(name).__name__}; expected a str")
    if name.lower() in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[name.lower()]()
    if name in LOCAL:
        return LOCAL[name](name)
    known = sorted({*LOCAL, *KVStoreBase.kv_registry})
    raise OpValueError(f"mx.kv.create: {name!r} is none of {', '.join(known)}; mxop runs in one process")
