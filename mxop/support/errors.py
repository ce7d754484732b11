"""Every error that mxop raises on purpose.

``MXNetError`` is what MXNet 1.x code catches.  The subclasses are also the Python error that fits, so that
``except TypeError`` works as well as ``except mx.MXNetError``.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from types import FunctionType, TracebackType
from typing import Any, TypeVar

__name__ = "mxop.errors"  # what tracebacks say, and pickles


class MXNetError(RuntimeError):
    """Base class of all errors raised by mxop."""


class NaNError(MXNetError):
    """A result holds NaN."""


class OpTypeError(MXNetError, TypeError):
    """A wrong Python type, dtype or number of arguments."""


class OpValueError(MXNetError, ValueError):
    """A value, shape or parameter that the operator does not allow."""


class OpArithmeticError(OpValueError, OverflowError):
    """Numbers whose result is too large."""


class OpZeroDivisionError(OpArithmeticError, ZeroDivisionError):
    """A division of numbers by zero."""


class OpNameError(MXNetError, NameError):
    """A name that code of a user uses and nobody defined."""


class OpRecursionError(MXNetError, RecursionError):
    """Code of a user that calls itself without an end."""


class DeprecatedError(MXNetError, DeprecationWarning):
    """What MXNet refuses with a DeprecationWarning."""


class WarnedValueError(OpValueError, UserWarning):
    """What MXNet refuses with a UserWarning."""


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


class OpParameterError(OpLookupError, OpTypeError):
    """A parameter that an operator does not have; a TypeError as well, after which NumPy's functions convert an array."""


class Later:
    """A message that is made when somebody reads it: nobody reads those of the errors that ``hasattr`` takes for an answer."""

    def __init__(self, make: Callable[[], str]):
        self._make = make

    def __str__(self) -> str:
        return self._make()

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self) -> tuple:
        return str, (str(self),)


class UnsupportedError(MXNetError, NotImplementedError):
    """What an object cannot do, or what its class leaves to derived ones."""


class AssertedError(OpValueError, OpTypeError, AssertionError):
    """A value that MXNet refuses with an ``assert`` statement, which programs may catch."""


class UnregisteredError(OpLookupError, ValueError, AssertionError):
    """A name for which no optimizer, metric or initializer is registered, or a value by which none can be chosen."""


class NotYetError(OpLookupError):
    """A name that MXNet 1.x has and mxop does not have yet."""


class NotYetImportError(MXNetError, ModuleNotFoundError):
    """A module, or what is imported from one, that MXNet 1.x has and mxop does not have yet."""


class UnknownShapeError(MXNetError):
    """A composite or a gradient rule asked for a shape or type that is not known yet.

    No AttributeError: Python takes one in a property for an attribute that is not there.
    """


class _NotForThese(MXNetError, NotImplementedError):
    """What was asked of an object whose class cannot do it.

    Parameters
    ----------
    function : callable
        What was called.
    alias : str, optional
        How it is written in a program, such as ``+=``.
    *args
        What it was given; the types are kept.
    """

    reason = ""

    def __init__(self, function, alias=None, *args):
        super().__init__()
        self.function = getattr(function, "__name__", str(function))
        self.alias = alias
        self.args = [str(type(a)) for a in args]

    def __str__(self):
        alias = f' (namely operator "{self.alias}")' if self.alias else ""
        given = f" with arguments ({', '.join(self.args)})" if self.args else ""
        return f"Function {self.function}{alias}{given} is not {self.reason}"

    def __reduce__(self):
        return _again, (type(self), self.function, self.alias, self.args)


class NotImplementedForSymbol(_NotForThese):
    """What only an array can do, asked of a symbol."""

    reason = "implemented for Symbol and only available in NDArray: a symbol has no value before it is bound"


class NotSupportedForSparseNDArray(_NotForThese):
    """What only a dense array can do, asked of a sparse one."""

    reason = "supported for SparseNDArray and only available in NDArray"


def _again(kind, function, alias, args):
    """Return an error of :class:`_NotForThese` that was pickled."""
    found = kind(function, alias)
    found.args = args
    return found


class OutOfMemoryError(MXNetError, MemoryError):
    """Arrays of a size that the machine has no memory for."""


class FileError(MXNetError, OSError):
    """A file that cannot be read or written."""


class MissingFileError(FileError, FileNotFoundError):
    """A file or folder that is not there."""


class BufferRefusedError(MXNetError, BufferError):
    """An array whose memory cannot be handed out as a buffer."""


class DeviceError(MXNetError, NotImplementedError):
    """A device or optional package that this machine does not have."""


class MissingPackageError(DeviceError, ImportError):
    """An optional Python package that is not installed."""


class GradientWarning(RuntimeWarning):
    """A gradient is lost: NumPy computes from an array that autograd records."""


class PackageWarning(RuntimeWarning):
    """A package of operators cannot be imported, or an operator of it has a name that is taken."""


#: Words of NumPy, PyTorch and Gluon, without capitals and underscores, and what they may be called where they are not known.
OTHER_WORDS = {word: targets for words, *targets in (
    ("axis", "dim", "axes"), ("axes", "axis", "dim"), ("dim", "axis", "axes"), ("size", "shape"), ("lr", "learning_rate"),
    ("mm", "dot"), ("bmm", "batch_dot"), ("inv", "inverse"), ("outer", "broadcast_mul"), ("absolute fabs", "abs"),
    ("cat concatenate vstack hstack", "concat"), ("view ravel", "reshape"), ("permute", "transpose"), ("amax", "max"),
    ("amin", "min"), ("unsqueeze", "expand_dims"), ("numpy", "asnumpy"), ("tensor asarray", "array"), ("clone", "copy"),
    ("maskedfill", "where"), ("to", "as_in_context", "astype"), ("cpu cuda", "as_in_context"), ("requiresgrad", "attach_grad"),
    ("nograd", "pause"), ("rand", "uniform"), ("permutation", "shuffle"), ("choice", "multinomial"), ("nllloss", "pick"),
    ("conv1d conv2d conv3d", "Convolution"), ("convtranspose2d", "Deconvolution"), ("maxpool2d avgpool2d", "Pooling"),
    ("linear dense", "FullyConnected"), ("elu selu prelu gelu", "LeakyReLU"), ("softplus", "Activation"), ("lstm gru", "RNN"),
    ("interpolate", "UpSampling"), ("mseloss", "LinearRegressionOutput"), ("crossentropy", "softmax_cross_entropy"),
) for word in words.split()}  # fmt: skip


def nearest(name: str, known) -> list[str]:
    """Return what an unknown name may stand for: other words for it, the shortest name that has it, or the most similar."""
    import difflib

    name = name if isinstance(name, str) else shown(name)
    names, bare = [k for k in map(str, known) if k != name], name.casefold().replace("_", "")
    words = [word for word in OTHER_WORDS.get(bare, ()) if word in names]
    parts = [k for k in names if k.casefold().replace("_", "") == bare or k.endswith(f"_{name}")]
    parts += [k for k in names if len(name) > 2 and k.casefold().startswith(name.casefold())]
    return words or sorted(parts, key=len)[:1] or difflib.get_close_matches(name[:100], names, n=1, cutoff=0.6)


def shown(value: object, width: int = 200) -> str:
    """Return how a message shows a value that may be anything: its repr, cut short, or its class where it has none.

    Arrays whose repr has several lines are shown by class and shape.

    Examples
    --------
    >>> shown("x" * 1000, 10)
    "'xxxxxxxxx..."
    """
    try:
        text = repr(value)
    except Exception:  # a number of 5000 digits has none, and a user's class may raise anything
        text = f"<a value of type {type(value).__name__}>"
    shape = getattr(value, "shape", None)
    if "\n" in text and isinstance(shape, tuple):
        return f"<{type(value).__name__} of shape {shape}>"
    return text if len(text) <= width else text[:width] + "..."


def fitting(problem: Exception, text: str) -> MXNetError:
    """Return the error of mxop that is also the kind of Python error that `problem` is, with its own text."""
    kinds = {
        MemoryError: OutOfMemoryError, TypeError: OpTypeError, IndexError: OpIndexError,
        ZeroDivisionError: OpZeroDivisionError, ArithmeticError: OpArithmeticError,
        (AttributeError, LookupError): OpLookupError, ValueError: OpValueError, BufferError: BufferRefusedError,
        NameError: OpNameError, RecursionError: OpRecursionError,
    }  # fmt: skip
    return next((ours for kind, ours in kinds.items() if isinstance(problem, kind)), MXNetError)(text)


_LIBRARY = os.path.dirname(os.__file__) + os.sep  # Python's own modules


def of_gpu(problem: Exception, who: str) -> Exception:
    """Return the error to raise for one of CuPy's or CUDA's, which says what ran; any other error as it is."""
    ours = isinstance(problem, MXNetError)
    cause = problem.__cause__ if ours else problem
    if type(cause).__module__.partition(".")[0] not in ("cupy", "cupy_backends") or str(problem).startswith(("operator ", who)):
        return problem
    text = str(problem) if ours else f"{type(problem).__name__}: {problem}"
    full = isinstance(cause, MemoryError) or any(word in str(cause) for word in ("out of memory", "ALLOC_FAILED"))
    if not (ours or full) and type(problem).__name__ == "CUDARuntimeError":
        text += " (a kernel's fault is told by a later call, unless the environment variable MXOP_GPU_WAIT is 1)"
    found = (OutOfMemoryError if full else DeviceError)(f"{who}: {text}")
    found.__cause__ = cause
    return found


def users_frames(trace: TracebackType | None, ours: tuple[str, ...] = ("mxop.",), alone: bool = False) -> list:
    """Return the entries of a traceback without those of mxop, and of Python, NumPy, CuPy and SciPy where mxop called them.

    Parameters
    ----------
    trace : traceback or None
    ours : tuple of str
        How names of modules of mxop begin.
    alone : bool
        Leave out those of Python, NumPy, CuPy and SciPy that others called, too.
    """
    found, inside = [], False
    while trace is not None:
        name, path = f"{trace.tb_frame.f_globals.get('__name__')}.", trace.tb_frame.f_code.co_filename
        library = name.startswith(("numpy.", "cupy.", "scipy.")) or (
            path.startswith(("<frozen", _LIBRARY)) and "site-packages" not in path
        )
        inside = name.startswith(ours) or ((inside or alone) and library)
        if not inside:
            found.append(trace)
        trace = trace.tb_next
    return found


def users_line(trace: TracebackType | None, *ours: str) -> str:
    """Return ``path:line, in `text` `` of the code of a user that an error comes out of; "" if there is none."""
    import linecache

    entries = users_frames(trace, ours or ("mxop.",), alone=True)
    if not entries:
        return ""
    frame, line = entries[-1].tb_frame, entries[-1].tb_lineno
    text = linecache.getline(frame.f_code.co_filename, line, frame.f_globals).strip()
    return f"{frame.f_code.co_filename}:{line}" + (f", in `{text}`" if text else "")


def shorten(problem: BaseException | None) -> None:
    """Drop mxop's own frames from the tracebacks of an error and its causes, unless ``MXOP_FULL_TRACEBACK`` is set.

    A function that people call does so before it raises the error again, so the traceback ends at their line: a bare ``raise``
    adds no frame.
    """
    for _ in range(0 if _FULL else 9):  # the longest chain of causes
        if problem is None:
            break
        following = None
        for entry in reversed(users_frames(problem.__traceback__)):
            entry.tb_next, following = following, entry
        problem.__traceback__ = following
        problem = problem.__cause__ or problem.__context__


_FULL = os.environ.get("MXOP_FULL_TRACEBACK", "0") not in ("", "0")
in_compiled_code = None if _FULL else shorten  # mxop_traceback.h
try:
    raise MXNetError
except MXNetError as _problem:
    nowhere = _problem.__traceback__


Call = TypeVar("Call", bound=Callable[..., Any])


def ends_at_caller(function: Call) -> Call:
    """Decorate a function that people call: the traceback of an MXNetError ends at the line of the call.

    Functions that take about a microsecond have the handler in their own body, where it costs nothing; they are returned as
    they are.
    """
    if "shorten" in function.__code__.co_names:
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except MXNetError as problem:
            shorten(problem)
            raise

    return call  # type: ignore[return-value]


def all_end_at_caller(owner: Any, names: Iterable[str] = ()) -> None:
    """Decorate functions of a module or class; those that are public or special by default."""
    for name in names or [n for n in vars(owner) if n.startswith("_") == n.startswith("__")]:
        if isinstance(vars(owner)[name], FunctionType):
            setattr(owner, name, ends_at_caller(vars(owner)[name]))


def warn(text: str, kind: type[Warning] = UserWarning) -> None:
    """Warn about the line, of code that is not mxop's, that called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("mxop."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level)


class translated:
    """A scope in which errors of Python and NumPy about arguments become mxop's, with the original as their cause.

    For what hands arguments on as they came, and for functions of operators' authors: the line of theirs is told, also in
    mxop's own errors.  Exceptions of other kinds pass.

    Examples
    --------
    >>> with mx.errors.translated("nd.eye"):
    ...     int("many")
    Traceback (most recent call last):
    ...
    mxop.errors.OpValueError: nd.eye: invalid literal for int() with base 10: 'many'
    """

    KINDS = (MemoryError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError, BufferError, SyntaxError,
             NameError, RecursionError)  # fmt: skip

    def __init__(self, who: str):
        self.who = who

    def __enter__(self) -> translated:
        return self

    def __exit__(self, kind: type | None, problem: BaseException | None, where: object) -> None:
        if isinstance(problem, MXNetError):
            self.error(problem, self.who)
        elif isinstance(problem, self.KINDS):
            raise self.error(problem, self.who)

    @staticmethod
    def error(problem: Exception, who: str) -> Exception:
        """Return one error, translated; an error of mxop stays what it is, and says in what it was, and the user's line."""
        line = users_line(problem.__traceback__)
        if isinstance(problem, MXNetError):
            text = str(problem)
            untold = [part for part in (who, line) if part not in text]
            if untold and problem.args == (text,):
                problem.args = (f"{text} (in {', '.join(untold)})",)
            return problem
        found = fitting(problem, f"{who}: {problem}" + (f" ({line})" if line else ""))
        found.__cause__ = problem
        return found


def items(value: object, what: str) -> list:
    """Return the items of a list or another iterable."""
    try:
        return list(value)  # type: ignore[call-overload]
    except TypeError:
        raise OpTypeError(f"{what}={shown(value)} is not a list") from None


def names_given(value: object, what: str) -> list[str]:
    """Return the items of a list of names; none for None."""
    if value is None:
        return []
    if not isinstance(value, (list, tuple, set)) or not all(isinstance(name, str) for name in value):
        raise OpTypeError(f"{what}={shown(value)}; expected a list of names")
    return list(value)


def raised(where: str, problem: Exception) -> MXNetError:
    """Return what to raise, from `problem`, for an exception in code of a user: the MXNetError that is also of its class.

    Examples
    --------
    >>> raised("operator Custom: Scale.forward", ZeroDivisionError("division by zero"))
    OpZeroDivisionError('operator Custom: Scale.forward raised ZeroDivisionError: division by zero')
    """
    line = users_line(problem.__traceback__)
    text = f"{where} raised {type(problem).__name__}: {problem}" + (f" ({line})" if line else "")
    return type(problem)(text) if type(problem).__module__ == __name__ else fitting(problem, text)


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
    >>> closest("sigmod", ["sigmoid", "tanh"]), closest("axis", ["dim", "axes", "stack"])
    ("; did you mean 'sigmoid'?", "; did you mean 'dim' or 'axes'?")
    """
    found = nearest(name, known)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


__all__ = [
    "DeviceError", "IncompatibleAxesError", "MXNetError", "MissingPackageError", "NotYetError", "NotYetImportError",
    "OpIndexError", "OpLookupError", "OpTypeError", "OpValueError", "UnmatchedAxesError",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*__all__, *(n for n in globals() if n.startswith("__"))})
