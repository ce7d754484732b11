"""Every error that mxop raises on purpose.  Imports nothing.

``MXNetError`` is what MXNet 1.x code catches.  The subclasses are also the Python error that fits, so that
``except TypeError`` works as well as ``except mx.MXNetError``.
"""

from __future__ import annotations


class MXNetError(RuntimeError):
    """Base class of all errors raised by mxop."""


class OpTypeError(MXNetError, TypeError):
    """A wrong Python type, dtype or number of arguments."""


class OpValueError(MXNetError, ValueError):
    """A value, shape or parameter that the operator does not allow."""


class IncompatibleAxesError(OpValueError):
    """Named axes that cannot go together: one twice, or both reduced and kept."""


class UnmatchedAxesError(IncompatibleAxesError):
    """Named axes (or lengths) of one side that have no counterpart on the other."""


class OpIndexError(MXNetError, IndexError):
    """An index or axis out of range."""


class OpLookupError(MXNetError, AttributeError, KeyError):
    """An operator, parameter or symbol name that does not exist."""

    __str__ = Exception.__str__  # KeyError would print the repr of the message

    def __init__(self, *args: object):
        super().__init__(*args)
        self.obj = None  # else Python adds a "Did you mean" of its own to ours


class DeviceError(MXNetError, NotImplementedError):
    """A device or optional package that this machine does not have."""


class MissingPackageError(DeviceError, ImportError):
    """An optional Python package that is not installed."""


#: Which of ours is raised in the place of Python's.
_OURS = {
    TypeError: OpTypeError, ValueError: OpValueError, IndexError: OpIndexError, AttributeError: OpLookupError,
    LookupError: OpLookupError,
}  # fmt: skip


def raised(where: str, problem: Exception) -> MXNetError:
    """Return what to raise, from `problem`, for an exception in code of a user: the MXNetError that is also of its class.

    Examples
    --------
    >>> raised("operator Custom: Scale.forward", ZeroDivisionError("division by zero"))
    MXNetError('operator Custom: Scale.forward raised ZeroDivisionError: division by zero')
    """
    text = f"{where} raised {type(problem).__name__}: {problem}"
    for cls in type(problem).__mro__:
        if cls.__module__ == __name__:  # it is one of ours
            return cls(text)
        if cls in _OURS:
            return _OURS[cls](text)
    return MXNetError(text)


def run_users(where: str, function, *args, **kwargs):
    """Call code of a user; what it raises reaches the caller as an MXNetError with the original as its cause.

    ``KeyboardInterrupt``, ``SystemExit`` and the like pass as they are.

    Examples
    --------
    >>> run_users("the operator's function", max, 1, 2)
    2
    """
    try:
        return function(*args, **kwargs)
    except Exception as problem:
        raise raised(where, problem) from problem


def closest(name: str, known) -> str:
    """Return ``"; did you mean 'x'?"`` for the known name nearest to `name`, or an empty string.

    Examples
    --------
    >>> closest("sigmod", ["sigmoid", "tanh"])
    "; did you mean 'sigmoid'?"
    """
    import difflib

    match = difflib.get_close_matches(str(name), [str(k) for k in known], n=1, cutoff=0.6)
    return f"; did you mean {match[0]!r}?" if match else ""
