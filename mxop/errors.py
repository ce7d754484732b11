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


class NotYetError(OpLookupError):
    """A name that MXNet 1.x has and mxop does not have yet."""


class NotYetImportError(MXNetError, ModuleNotFoundError):
    """A module, or what is imported from one, that MXNet 1.x has and mxop does not have yet."""


class NotImplementedForSymbol(MXNetError, NotImplementedError):
    """What only an array can do, asked of a symbol.

    Parameters
    ----------
    function : callable
        What was called.
    alias : str, optional
        How it is written in a program, such as ``+=``.
    *args
        What it was given; the types are kept.
    """

    def __init__(self, function, alias=None, *args):
        super().__init__()
        self.function = getattr(function, "__name__", str(function))
        self.alias = alias
        self.args = [str(type(a)) for a in args]

    def __str__(self):
        alias = f' (namely operator "{self.alias}")' if self.alias else ""
        given = f" with arguments ({', '.join(self.args)})" if self.args else ""
        return (f"Function {self.function}{alias}{given} is not implemented for Symbol and only available in NDArray: a "
                f"symbol has no value before it is bound")  # fmt: skip

    def __reduce__(self):
        return _again, (self.function, self.alias, self.args)


def _again(function, alias, args):
    """Return a NotImplementedForSymbol that was pickled."""
    found = NotImplementedForSymbol(function, alias)
    found.args = args
    return found


class DeviceError(MXNetError, NotImplementedError):
    """A device or optional package that this machine does not have."""


class MissingPackageError(DeviceError, ImportError):
    """An optional Python package that is not installed."""


class GradientWarning(RuntimeWarning):
    """A gradient is lost: NumPy computes from an array that autograd records."""


#: Words of NumPy, PyTorch and of MXNet's other operators, and what they may be called where they are not known.
_OTHER_WORDS = {
    "axis": ("dim", "axes"), "axes": ("axis", "dim"), "dim": ("axis", "axes"), "matmul": ("dot", "batch_dot"),
    "mm": ("dot",), "bmm": ("batch_dot",), "cat": ("concat",), "concatenate": ("concat",), "view": ("reshape",),
    "permute": ("transpose",), "unsqueeze": ("expand_dims",), "numpy": ("asnumpy",), "amax": ("max",), "amin": ("min",),
    "absolute": ("abs",), "fabs": ("abs",), "tensor": ("array",), "asarray": ("array",), "masked_fill": ("where",),
}  # fmt: skip


def nearest(name: str, known) -> list[str]:
    """Return what a name that is not known may stand for: other words for it, else the known name spelled most alike."""
    import difflib

    names = [k for k in map(str, known) if k != name]
    words = [word for word in _OTHER_WORDS.get(name, ()) if word in names]
    return words or difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)


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
    >>> closest("sigmod", ["sigmoid", "tanh"]), closest("matmul", ["dot", "batch_dot", "stack"])
    ("; did you mean 'sigmoid'?", "; did you mean 'dot' or 'batch_dot'?")
    """
    found = nearest(name, known)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


__all__ = [
    "DeviceError", "IncompatibleAxesError", "MXNetError", "MissingPackageError", "NotYetError", "NotYetImportError",
    "OpIndexError", "OpLookupError", "OpTypeError", "OpValueError", "UnmatchedAxesError",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*__all__, *(n for n in globals() if n.startswith("__"))})
