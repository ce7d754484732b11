"""Calls users' formulas on traced values; errors name the operator and the user's line."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ..formula import Expr, NeedsValue, TraceError
from ..formula.expr import as_expr
from ..support.errors import OpTypeError, shown, translated, users_line
from .places import place

#: The operator whose function is traced in this thread.
tracing: ContextVar[str | None] = ContextVar("tracing", default=None)


def traced(name: str, function: Callable, /, *args: Any, **params: Any) -> tuple[Expr, ...]:
    """Return the expressions of a function's results for traced inputs and parameters.

    Parameters
    ----------
    name : str
        The operator's name, for messages.

    Raises
    ------
    OpTypeError
        If a result is not a formula, with the user's line.
    NeedsValue
        If Python's control flow depends on the value of a parameter.
    """
    result = called(name, function, *args, **params)
    who = f"operator {name}{place(function)}"
    if result is None or (isinstance(result, (tuple, list)) and not result):
        raise OpTypeError(f"{who}: its function returned {result}; expected a formula: is there a return?")
    try:
        return tuple(as_expr(r) for r in (result if isinstance(result, (tuple, list)) else (result,)))
    except (TraceError, ValueError) as problem:
        raise OpTypeError(f"{who}: its function returned {shown(result)}; expected a formula: {problem}") from None


def called(name: str, function: Callable, /, *args: Any, **params: Any) -> Any:
    """Return the result of an author's function for traced values; see :func:`traced`."""
    token = tracing.set(name)
    try:
        return function(*args, **params)
    except NeedsValue:
        raise
    except TraceError as problem:
        trace = problem.__traceback__
        line = users_line(trace) or users_line(trace, "mxop.formula.", "mxop.opdef.")  # or a line of our own operators
        problem.args = (f"operator {name}{line and ', ' + line}: {problem}",)
        raise
    except translated.KINDS as problem:
        raise translated.error(problem, f"operator {name}")  # noqa: B904
    finally:
        tracing.reset(token)
