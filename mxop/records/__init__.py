"""Test records: for each operator what to feed it, and what NumPy says in float64.

A record drives every check of :func:`mxop.test_utils.check_op` and every benchmark; an operator without one fails the
suite.  One module a family, each a table ``RECORDS``.  Users give theirs with :func:`record`.  Imports NumPy and
:mod:`mxop.missing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..missing import hooks

FAMILIES = ("math", "binary", "reduce", "shape", "matrix", "nn", "create", "random", "helpers")


@dataclass(frozen=True)
class Draws:
    """What an operator draws that has no inputs.

    Attributes
    ----------
    cdf : callable
        ``cdf(x, **params)``: the probability of a result of at most `x`.
    dtypes : tuple of str
        The types that it draws.
    """

    cdf: Callable[..., Any]
    dtypes: tuple[str, ...] = ("float32", "float64", "float16")


@dataclass(frozen=True)
class Record:
    """How to test one operator.

    Attributes
    ----------
    reference : callable
        ``reference(*arrays, **params)`` in NumPy or SciPy; gets float64 (or integer) arrays, returns one array or a tuple.
        None where `draws` says what results are like.
    domain : sequence of (float, float), or one pair for all inputs
        Interval from which each input is drawn.
    shapes : sequence of tuple of shapes
        Cases; each gives the shape of every input.  None: ``(2, 3)`` for each input.
    params : sequence of dict
        Cases of parameters, each combined with every case of shapes of the same position, or with all when there is one.
    dtypes : str
        ``'f'`` float types, ``'i'`` integer types, ``'b'`` bool.
    order : int
        Highest order of derivative compared with numeric differentiation; 0 when the gradient is zero or undefined.
    avoid : sequence of float
        Points where the operator is not smooth; samples keep 0.05 away.
    grad_inputs : sequence of int or None
        Inputs that have a gradient (None: all).
    exact_integer : bool
        Whether integer results equal the reference exactly (after a cast with C's truncation).
    special : bool
        Whether NaN and infinities are compared with the reference as well.
    tolerance : float
        Multiplies the tolerances, with the reason in a comment beside the record.
    reference_dtype : bool
        Whether the reference wants the test's own dtype instead of float64.
    draws : Draws, optional
        The distribution of random results.
    """

    reference: Callable[..., Any] | None
    domain: Any = (-2.0, 2.0)
    shapes: Sequence[tuple[tuple[int, ...], ...]] | None = None
    params: Sequence[dict[str, Any]] = field(default_factory=lambda: [{}])
    dtypes: str = "fi"
    order: int = 3
    avoid: Sequence[float] = ()
    grad_inputs: Sequence[int] | None = None
    exact_integer: bool = True
    special: bool = True
    tolerance: float = 1.0
    reference_dtype: bool = False
    draws: Draws | None = None


_users: dict[str, Record] = {}


def record(name: str, reference: Callable[..., Any], **details: Any) -> Record:
    """Give the test record of an operator of your own.

    Examples
    --------
    >>> from mxop.records import record
    >>> _ = record("cube_plus", lambda data, shift=0.0: data**3 + shift, params=[{"shift": 0.5}])
    """
    _users[name] = Record(reference, **details)
    return _users[name]


def find(name: str) -> Record | None:
    """Return the record of an operator, or None."""
    if name in _users:
        return _users[name]
    from importlib import import_module

    for family in FAMILIES:
        found = import_module(f"mxop.records.{family}").RECORDS.get(name)
        if found is not None:
            return found
    return None


__all__ = ["FAMILIES", "Draws", "Record", "find", "record"]

__getattr__, __dir__ = hooks(globals(), __all__)
