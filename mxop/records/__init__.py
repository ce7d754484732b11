"""Test records: for each operator what to feed it, and what NumPy says in float64.

A record drives every check of :func:`mxop.test_utils.check_op` and every benchmark; an operator without one fails the
suite.  One module a family, each a table ``RECORDS``.  Users give theirs with :func:`record`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import cleandoc
from typing import Any

from ..support.errors import OpTypeError
from ..support.missing import hooks

FAMILIES = (
    "math", "binary", "reduce", "shape", "matrix", "nn", "rnn", "norm", "loss", "convolution", "pooling", "resize", "create",
    "gather", "order", "sequence", "layout", "linalg", "positions", "random", "sample", "density", "optimizer", "helpers",
    "attention", "counting", "ctc", "hawkes", "quantize", "quantized", "quantized_parts", "replace", "spectrum", "storage",
    "einsum", "boxes", "anchors", "regions", "sampling", "deformable", "correlation", "image", "image_random",
)  # fmt: skip


@dataclass(frozen=True)
class Refusal:
    """A call that an operator must refuse, and what the error says.

    Attributes
    ----------
    match : str
        A regular expression that the message holds.  Every message names the operator as well.
    shapes : tuple of shapes, optional
        One for each input; those of the record's first case by default.
    params : dict
        Parameters, in the place of those of the first case.
    dtypes : sequence of str, optional
        The type of each input; the first type of the record by default.
    """

    match: str
    shapes: tuple[tuple[int, ...], ...] | None = None
    params: Mapping[str, Any] | None = None
    dtypes: Sequence[str] | None = None


@dataclass(frozen=True)
class Record:
    """How to test one operator.

    Attributes
    ----------
    reference : callable or None
        ``reference(*arrays, **params)`` in NumPy or SciPy; gets float64 (or integer) arrays, returns one array or a tuple.
        Of an operator with states it gets the states before the call, among the inputs, and returns their new values
        after the results, in the order in which the operator takes them.  None with `distribution`.
    domain : sequence of (float, float), or one pair for all inputs
        Interval from which each input is drawn; of a state, before the call.
    shapes : sequence of tuple of shapes
        Cases; each gives the shape of every input.  None: ``(2, 3)`` for each input.
    params : sequence of dict
        Cases of parameters, each combined with every case of shapes of the same position, or with all when there is one.
        ``is_train`` may be among them: the call, and the reference, are then in that mode.  An operator that takes
        ``is_train`` is checked in both modes where a case does not say.
    dtypes : str
        ``'f'`` float types, ``'n'`` those of them that float32 holds, ``'l'`` float64 and float32 (linear algebra), ``'i'``
        integer types, ``'b'`` bool.
    input_types : dict of int to str or callable
        Inputs, by position, that have a type of their own, whatever that of the others: indices, lengths, labels; or the type
        that follows from it, ``type(type_of_the_others)``.
    returns : str, sequence of str or callable, optional
        The type of the results (of each, in a sequence), or ``returns(type_of_the_inputs, **params)``, which gives it.
        None: that of the inputs, and float32 where there are none.
    order : int
        Highest order of derivative compared with numeric differentiation; 0 when the gradient is zero or undefined.
    avoid : sequence of float
        Points where the operator is not smooth; samples keep 0.05 away.
    grad_inputs : sequence of int or None
        Inputs that have a gradient (None: all but states).
    whole : sequence of int
        Inputs that hold whole numbers in every type: indices, masks.
    distinct : bool
        Whether real values are drawn far from each other: what sorts has a kink where two are equal.
    exact_integer : bool
        Whether integer results equal the reference exactly (after a cast with C's truncation).
    prepare : callable, optional
        ``prepare(*arrays)`` makes inputs of what is drawn, where an interval does not say what is valid: positive definite
        matrices.  Returns one array, or a tuple.
    tolerance : float
        Multiplies the tolerances, with the reason in a comment beside the record.
    reference_dtype : bool
        Whether the reference wants the test's own dtype instead of float64.
    distribution : callable, optional
        Of an operator that draws random numbers, ``distribution(*arrays, **params)``: the distribution of the elements of
        its result (a list for several results), all of them one.  What has a method ``cdf`` and no ``pmf``, as SciPy's
        continuous distributions, is held against the numbers by the test of Kolmogorov and Smirnov; a dictionary of
        values and their probabilities, or what has a ``pmf``, by the chi-square test.
    dependent : bool
        Whether elements of one result depend on each other, as those of a softmax do: the `distribution` is then that of one
        element, and one of each of many calls is held against it.
    seed : callable, optional
        Of an operator that draws: ``seed(n)`` makes its draws repeat.  It is called before each call, and with it all checks
        run that compare two calls, gradients among them.  Without a `distribution`, results are those of the reference.
    refuses : sequence of Refusal
        Bad input, with the message expected.
    unchecked : dict of str to str
        Checks that are left out, by their names in the report of :func:`mxop.test_utils.check_op`, and why.  A check that
        runs zero times without such a word, and for no reason that the other fields give, fails.
    """

    reference: Callable[..., Any] | None = None
    domain: Any = (-2.0, 2.0)
    shapes: Sequence[tuple[tuple[int, ...], ...]] | None = None
    params: Sequence[dict[str, Any]] = field(default_factory=lambda: [{}])
    dtypes: str = "fi"
    input_types: Mapping[int, Any] = field(default_factory=dict)
    returns: Any = None
    order: int = 3
    avoid: Sequence[float] = ()
    grad_inputs: Sequence[int] | None = None
    whole: Sequence[int] = ()
    distinct: bool = False
    exact_integer: bool = True
    prepare: Callable[..., Any] | None = None
    tolerance: float = 1.0
    reference_dtype: bool = False
    distribution: Callable[..., Any] | None = None
    dependent: bool = False
    seed: Callable[[int], Any] | None = None
    refuses: Sequence[Refusal] = ()
    unchecked: Mapping[str, str] = field(default_factory=dict)


_users: dict[str, Record] = {}


def record(name: str, reference: Callable[..., Any] | None = None, **details: Any) -> Record:
    """Give the test record of an operator of your own.

    Parameters
    ----------
    name : str
        Of the operator, or an alias.
    reference : callable
        What it computes, in NumPy; None for an operator that draws random numbers, which has a `distribution`.
    **details
        The other fields of :class:`Record`, which says what each means.

    Examples
    --------
    >>> from mxop.records import Refusal, record
    >>> _ = record("cube_plus", lambda data, shift=0.0: data**3 + shift, params=[{"shift": 0.5}],
    ...            refuses=[Refusal("expected a number", params={"shift": "far"})])
    """
    if reference is None and "distribution" not in details and "seed" not in details:
        raise OpTypeError(f"record({name!r}): reference= is missing, a function of NumPy that computes the same; an operator "
                          "that draws random numbers may have distribution= in its place")  # fmt: skip
    unknown = sorted(set(details) - {f.name for f in fields(Record)})
    if unknown:
        raise OpTypeError(f"record({name!r}): there is no field {unknown[0]!r}; there are: "
                          f"{', '.join(f.name for f in fields(Record))}")  # fmt: skip
    named = [k for k in details.get("input_types", ()) if not isinstance(k, int)]
    if named:
        raise OpTypeError(
            f"record({name!r}): input_types names {named[0]!r}; inputs are named by position, as in {{1: 'int32'}}"
        )
    _users[name] = Record(reference, **details)
    return _users[name]


if record.__doc__ and Record.__doc__:  # all fields, where they are looked for
    _fields = "domain : " + cleandoc(Record.__doc__).partition("domain : ")[2]
    record.__doc__ = re.sub(r"\*\*details\n.*", lambda _: _fields, cleandoc(record.__doc__))


def record_of(reference: Callable[..., Any], *cases: tuple[dict, Any], **details: Any) -> Record:
    """Make a record of pairs of parameters and shapes (one shape, or a list of one for each input)."""
    shapes = [tuple(s) if isinstance(s, list) else (s,) for _, s in cases]
    return Record(reference, params=[params for params, _ in cases], shapes=shapes, **details)


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


__all__ = ["FAMILIES", "Record", "Refusal", "find", "record"]

__getattr__, __dir__ = hooks(globals(), __all__)
