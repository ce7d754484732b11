"""Source lines of authors' code, for messages."""

from __future__ import annotations

import sys
from typing import Any


def place(function: Any) -> str:
    """Return file and line of an author's function, for a message."""
    code = getattr(function, "__code__", None)
    return "" if code is None else f", {code.co_filename}:{code.co_firstlineno}"


def callers_line() -> str:
    """Return file and line of the author's code that is running, for a message about an object without a source."""
    frame: Any = sys._getframe(1)
    while frame is not None and f"{frame.f_globals.get('__name__')}.".startswith("mxop."):
        frame = frame.f_back
    return "" if frame is None else f", {frame.f_code.co_filename}:{frame.f_lineno}"
