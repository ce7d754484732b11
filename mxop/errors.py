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


class OpArithmeticError(OpValueError, OverflowError):
    """Numbers whose result is too large."""


class OpZeroDivisionError(OpArithmeticError, ZeroDivisionError):
    """A division of numbers by zero."""


class DeprecatedError(MXNetError, DeprecationWarning):
    """What MXNet refuses with a DeprecationWarning."""


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


class OutOfMemoryError(MXNetError, MemoryError):
    """Arrays of a size that the machine has no memory for."""


class BufferRefusedError(MXNetError, BufferError):
    """An array whose memory cannot be handed out as a buffer."""


class DeviceError(MXNetError, NotImplementedError):
    """A device or optional package that this machine does not have."""


class MissingPackageError(DeviceError, ImportError):
    """An optional Python package that is not installed."""


def shown(value: object, width: int = 200) -> str:
    """Return how a message shows a value that may be anything: its repr, cut short, or its class where it has none.

    Examples
    --------
    >>> shown("x" * 1000, 10)
    "'xxxxxxxxx..."
    """
    try:
        text = repr(value)
    except Exception:  # a number of 5000 digits has none, and a user's class may raise anything
        text = f"<a value of type {type(value).__name__}>"
    return text if len(text) <= width else text[:width] + "..."


def fitting(problem: Exception, text: str) -> MXNetError:
    """Return the error of mxop that is also the kind of Python error that `problem` is, with its own text."""
    kinds = {
        MemoryError: OutOfMemoryError, TypeError: OpTypeError, IndexError: OpIndexError,
        ZeroDivisionError: OpZeroDivisionError, ArithmeticError: OpArithmeticError,
        (AttributeError, KeyError): OpLookupError, ValueError: OpValueError, BufferError: BufferRefusedError,
    }  # fmt: skip
    return next((ours for kind, ours in kinds.items() if isinstance(problem, kind)), MXNetError)(text)


class translated:
    """A scope in which errors of Python and NumPy about arguments become mxop's, with the original as their cause.

    For what hands arguments on as they came; exceptions of other kinds pass.

    Examples
    --------
    >>> import mxop as mx
    >>> with mx.errors.translated("nd.eye"):
    ...     int("many")
    Traceback (most recent call last):
    ...
    mxop.errors.OpValueError: nd.eye: invalid literal for int() with base 10: 'many'
    """

    KINDS = (MemoryError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError, BufferError, SyntaxError)

    def __init__(self, who: str):
        self.who = who

    def __enter__(self) -> translated:
        return self

    def __exit__(self, kind: type | None, problem: BaseException | None, where: object) -> None:
        if isinstance(problem, self.KINDS) and not isinstance(problem, MXNetError):
            raise self.error(problem, self.who)

    @staticmethod
    def error(problem: Exception, who: str) -> Exception:
        """Return one error, translated; an error of mxop stays what it is."""
        if isinstance(problem, MXNetError):
            return problem
        found = fitting(problem, f"{who}: {problem}")
        found.__cause__ = problem
        return found


def items(value: object, what: str) -> list:
    """Return the items of a list or another iterable."""
    try:
        return list(value)  # type: ignore[call-overload]
    except TypeError:
        raise OpTypeError(f"{what}={shown(value)} is not a list") from None


def closest(name: str, known) -> str:
    """Return ``"; did you mean 'x'?"`` for the known name nearest to `name`, or an empty string.

    Examples
    --------
    >>> closest("sigmod", ["sigmoid", "tanh"])
    "; did you mean 'sigmoid'?"
    """
    import difflib

    text = name if isinstance(name, str) else shown(name)
    match = difflib.get_close_matches(text[:100], [str(k) for k in known], n=1, cutoff=0.6)
    return f"; did you mean {match[0]!r}?" if match else ""
