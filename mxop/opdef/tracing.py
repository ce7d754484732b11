"""Calls a user's formula with traced values; what is wrong in it is told with the operator's name and the user's line.

Imports :mod:`mxop.formula` and :mod:`mxop.errors`.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..errors import OpTypeError
from ..formula import Expr, NeedsValue, TraceError
from ..formula.expr import as_expr


def traced(name: str, function: Callable, *args: Any, **params: Any) -> tuple[Expr, ...]:
    """Return the expressions that a formula makes of traced inputs and parameters, one for each output.

    Parameters
    ----------
    name : str
        Of the operator, for messages.

    Raises
    ------
    OpTypeError
        Where the formula is not one, with the line that is to blame.
    NeedsValue
        When Python's control flow depends on the value of a parameter.
    """
    result = called(name, function, *args, **params)
    if result is None:
        raise OpTypeError(f"operator {name}: its function returned None; expected a formula: is there a return?")
    try:
        return tuple(as_expr(r) for r in (result if isinstance(result, (tuple, list)) else (result,)))
    except (TraceError, ValueError) as problem:
        raise OpTypeError(f"operator {name}: its function returned {result!r}; expected a formula: {problem}") from None


def called(name: str, function: Callable, *args: Any, **params: Any) -> Any:
    """Return what a function of an operator's author gives for traced values; see :func:`traced`."""
    try:
        return function(*args, **params)
    except NeedsValue:
        raise
    except TraceError as problem:
        problem.args = (f"operator {name}{_place(problem.__traceback__)}: {problem}",)
        raise


def _place(trace: TracebackType | None) -> str:
    """Return where the author's code was: the last line that is not ours, or of an operator of ours that is at fault."""
    frames = []
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    for ours in (("mxop.",), ("mxop.formula.", "mxop.opdef.")):
        for frame, line in reversed(frames):
            if not (frame.f_globals.get("__name__") or "").startswith(ours):
                path = frame.f_code.co_filename
                text = linecache.getline(path, line, frame.f_globals).strip()
                return f", {path}:{line}" + (f", in `{text}`" if text else "")
    return ""
