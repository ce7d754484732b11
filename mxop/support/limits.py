"""How much a few bytes of a file, or one parameter of a call, may grow to.

A graph of 150 bytes can ask for a node of 100,000,000 outputs, a sparse array of 88 bytes for any number of rows; gzip packs
a thousand zeros into a byte, an image of one colour into nothing. Whoever means it raises the limit, by an environment
variable or, where a function has one, by an argument.
"""

from __future__ import annotations

import os

from .errors import OpValueError

_OUTPUTS, _OUTPUTS_DEFAULT, _FEW = "MXOP_MAX_OUTPUTS", 1 << 16, 256
_DENSE, _DENSE_DEFAULT = "MXOP_MAX_DENSE_BYTES", 1 << 28
_DENSE_GROWTH = 64  # of a file that is larger than the default allows for


def setting(name: str, default: int, kind: str = "whole number") -> int:
    """Return the number that an environment variable holds; `default` where it is not set.

    Raises
    ------
    OpValueError
        When it holds something else than digits.
    """
    text = os.environ.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise OpValueError(f"{name}={text!r} is not a {kind}")
    return int(text)


def max_outputs() -> int:
    """Return how many outputs one call of an operator may have."""
    return setting(_OUTPUTS, _OUTPUTS_DEFAULT)


def check_outputs(op_name: str, count: int, what: str = "outputs") -> int:
    """Return `count`, unless a call may not have so many outputs (or inputs that come from one parameter).

    Raises
    ------
    OpValueError
    """
    if count > _FEW and count > max_outputs():  # few are always allowed, and do not cost a look at the setting
        raise too_many(f"operator {op_name}", f"{count} {what}")
    return count


def too_many(who: str, what: str) -> OpValueError:
    """Return the error for a number of outputs that is not allowed."""
    return OpValueError(
        f"{who} asks for {what}; at most {max_outputs()} are allowed (the environment variable {_OUTPUTS} says how many)"
    )


def graph_outputs(nbytes: int) -> int:
    """Return how many outputs the nodes of a graph may have together that was written in so many bytes.

    What uses an output takes some bytes itself, so this is no limit to a graph that uses what it makes.
    """
    return max_outputs() + nbytes


def dense_bytes(nbytes: int) -> int:
    """Return to how many bytes a file of `nbytes` bytes may unpack, or empty rows of its sparse arrays take."""
    return max(setting(_DENSE, _DENSE_DEFAULT), _DENSE_GROWTH * nbytes)


def too_packed(who: str, allowed: int) -> OpValueError:
    """Return the error for a packed file that holds too much."""
    return OpValueError(f"{who} unpacks to more than {allowed} bytes, which are allowed; the environment variable {_DENSE} "
                        "says how many")  # fmt: skip


def too_dense(needed: int, allowed: int) -> OpValueError:
    """Return the error for sparse arrays that would take too much memory."""
    return OpValueError(
        f"the sparse arrays of this file that hold nothing take {needed} bytes for their rows; {allowed} are "
        f"allowed. Pass max_bytes={needed} or more, or set the environment variable {_DENSE}"
    )
