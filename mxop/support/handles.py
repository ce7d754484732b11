"""What ``x.handle`` of arrays, symbols and executors is, for programs that compare and hand it on."""

from __future__ import annotations

import ctypes
from typing import Any


class Handle(ctypes.c_void_p):
    """Stands for an object, as the pointers do that MXNet's C functions take; ``value`` is a number of its own.

    Handles of one object are equal.  A handle keeps its object.

    Examples
    --------
    >>> x = mx.nd.ones((2,))
    >>> x.handle == x.handle, x.handle == x.copy().handle, x.handle.value == x.handle.value
    (True, False, True)
    """

    def __init__(self, target: Any):
        super().__init__(id(target))
        self.target = target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.target is self.target

    def __hash__(self) -> int:
        return hash(self.value)


@property
def handle(self: Any) -> Any:
    """What stands for the object where MXNet's C functions would take it; classes say ``handle = handle``."""
    return Handle(self)
