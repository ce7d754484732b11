"""Checks at the edges: shapes with sizes of 0 and 1, NaN and infinities, signed zeros and denormals, bad input."""

from __future__ import annotations

import functools
import itertools
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._core import dispatch
from ..opdef.registry import public_name
from ..records import Refusal
from ..support.errors import MXNetError
from . import cases as c
from .cases import Case, Mismatch
from .values import against_reference, slack

Shapes = tuple[tuple[int, ...], ...]


#: Causes of errors that are meant: a refusal.  A function that breaks raises others.
_MEANT = (MXNetError, ValueError, TypeError, type(None))


# ---- small shapes -------------------------------------------------------------------------------------------------------
def small_shapes(case: Case, types: Sequence[str]) -> int | str:
    """Empty and 0-d arrays, dimensions of 1 and other ranks give what the reference gives, or are refused (MXNetError)."""
    if not case.shapes:
        return "it has no inputs"
    n = 0
    for dtype in c.among(types, "float32", "int32"):
        n += sum(_as_referred(case, dtype, shapes, case.sample(dtype, shapes)) for shapes in reduced(case))
        n += sum(_as_referred(case, dtype, shapes, values) for shapes, values in of_other_ranks(case.aside(), dtype))
    return n


def _as_referred(case: Case, dtype: str, shapes: Shapes, values: list[np.ndarray]) -> bool:
    """Compare with the reference; return False where that, or the operator, refuses these shapes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of means of nothing
            expected = case.expected(values)
    except (ValueError, IndexError, ZeroDivisionError, TypeError):
        return False  # the reference is not defined for them, as NumPy's max of nothing
    try:
        results = case.where(shapes).run(values)
    except MXNetError as problem:
        same_ranks = [len(s) for s in shapes] == [len(s) for s in case.shapes]
        if case.op.kind == "elementwise" or (same_ranks and not isinstance(problem.__cause__, _MEANT)):
            raise
        return False  # the parameters, or another input, want other sizes
    against_reference(case, dtype, f"{dtype}, shapes {shapes}", values, results, expected)
    return True


def reduced(case: Case) -> Iterator[Shapes]:
    """Yield the shapes of the case with equal sizes replaced by 0 and by 1; of equal shapes, empty and 0-d ones too."""
    if case.op.kind == "elementwise" and len(set(case.shapes)) == 1:
        for shape in ((), (0,), (2, 0, 3), (1, 1, 1)):
            yield (shape,) * len(case.shapes)
        return
    sizes = sorted({d for shape in case.shapes for d in shape if d > 1})
    seen = {case.shapes}
    for gone in [*([d] for d in sizes), sizes]:
        for size in (0, 1):
            shapes = tuple(tuple(size if d in gone else d for d in shape) for shape in case.shapes)
            if shapes not in seen:
                seen.add(shapes)
                yield shapes


def of_other_ranks(case: Case, dtype: str) -> Iterator[tuple[Shapes, list[np.ndarray]]]:
    """Yield 0-d shapes for inputs of one shape, with values; others where the reference is a function of elements."""
    if case.op.kind != "elementwise" and len(set(case.shapes)) == 1 and not case.params:
        ranks = ((), (5,), (2, 3), (3, 1, 4), (2, 3, 1, 2)) if isinstance(case.record.reference, np.ufunc) else ((),)
        for shapes in ((shape,) * len(case.shapes) for shape in ranks):
            try:
                yield shapes, case.sample(dtype, shapes)
            except (ValueError, IndexError):  # what prepares the inputs wants matrices
                continue


# ---- special values -----------------------------------------------------------------------------------------------------
def special_values(case: Case, types: Sequence[str], first: bool) -> int | str:
    """NaN and infinities are treated as the reference does.

    Formulas of one or two real inputs meet signed zeros, denormals and the largest numbers as well, in every pair and every
    lane of the vector loops.  Other operators meet one special number at a time: then no order of summing matters.
    """
    if not case.shapes:
        return "it has no inputs"
    floats = [t for t in types if t in c.FLOATS]
    if not floats:
        return "none of the types is a float"
    if all(k in case.record.whole for k in range(len(case.shapes))):
        return "its inputs hold whole numbers"
    real = all(case.type_of(k, floats[0]) in c.FLOATS and k not in case.record.whole for k in range(len(case.shapes)))
    if case.op.kind == "elementwise" and len(case.shapes) <= 2 and real:
        return sum(_pairs(case, dtype) for dtype in floats)
    return sum(_one_at_a_time(case, dtype) for dtype in (floats if first else floats[:1]))


def _pairs(case: Case, dtype: str) -> int:
    tiny, largest = c.DENORMAL[dtype], c._largest(dtype)
    # np.array of Python floats is float64: all of these are exact in it
    # next to the largest number an ULP makes it infinite, so infinity passes there; a 64th of it is finite, and so is what a
    # formula multiplies it by a little on the way
    points = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 1000 * tiny, 1.0, -1.0, 0.5, largest, -largest,
                       largest / 64, -largest / 64])  # fmt: skip
    if len(case.shapes) == 2:
        pairs = list(itertools.product(points, points))
        values = [np.array([p[i] for p in pairs]).astype(c.numpy_dtype(dtype)) for i in range(2)]
    else:
        values = [np.tile(points, 6)[:-1].astype(c.numpy_dtype(dtype))]  # 89: the loops' tails as well
    results, expected = case.run(values), case.expected(values)
    what = f"{dtype}, special values"
    against_reference(case, dtype, what, values, results, expected, 2.0)
    for k, (got, want) in enumerate(zip([*results[0], *results[1]], expected, strict=True)):
        if c.name_of(got) == dtype and want.dtype.kind == "f":
            _small_results(f"{what}: output {k}", got, want, dtype, slack(case, dtype, got), values)
    return 1


def _one_at_a_time(case: Case, dtype: str) -> int:
    n = 0
    for k, shape in enumerate(case.shapes):
        if 0 in shape or case.type_of(k, dtype) not in c.FLOATS or k in case.record.whole:
            continue
        for point in (np.nan, np.inf, -np.inf):
            values = case.sample(dtype)
            values[k].reshape(-1)[case.rng.integers(values[k].size)] = point
            with np.errstate(all="ignore"):  # an operator may be a function in NumPy
                results, expected = case.run(values), case.expected(values)
            against_reference(case, dtype, f"{dtype}, {point} in input {k}", values, results, expected, 2.0)
            n += 1
    return n


def _small_results(what: str, got: Any, want: np.ndarray, dtype: str, slack: float, values: Sequence[np.ndarray]) -> None:
    """Near zero only relative errors, and the sign of zero, say whether denormals and -0.0 are kept."""
    found = got.asnumpy().astype(np.float64)
    with np.errstate(all="ignore"):
        zero = (want == 0) & (found == 0)
        if len(values) == 2:  # of 0.0 and -0.0 together NumPy's own loops pick now the one, now the other
            zero &= ~((values[0] == 0) & (values[1] == 0) & (np.signbit(values[0]) != np.signbit(values[1])))
        small = np.isfinite(want) & np.isfinite(found) & (np.abs(want) < 1e-6)
        allowed = 2 * slack * (c.EPSILON[dtype] * np.abs(want) + c.DENORMAL[dtype])
        wrong = (zero & (np.signbit(want) != np.signbit(found))) | (small & (np.abs(found - want) > allowed))
    if wrong.any():
        raise Mismatch(f"{what} near zero: {c._where(found, want, wrong, values)}")


# ---- bad input ----------------------------------------------------------------------------------------------------------
def refusals(case: Case, types: Sequence[str]) -> int:
    """Bad calls raise an MXNetError whose message names the operator and says what the record expects."""
    spare = case.arrays([np.zeros((2, 3), np.float32)])
    inputs = case.arrays(case.sample(types[0]))
    n = 0
    if not case.op.spec.takes_others:
        value = spare[0] if case.op.spec.ignores else 1
        n += _refused(case, "a parameter that there is not", "parameter", lambda: case.op.parse({"no_such_parameter": value}))
    if not case.op.variadic:
        n += _refused(case, "an input too many", "", lambda: dispatch.invoke(case.op, inputs + spare, case.attrs))
    for k, shape in enumerate(case.shapes if public_name(case.op) else ()):  # others are no name that people know
        values = case.sample(types[0])
        values[k] = np.resize(values[k], (*shape, 2)).astype(values[k].dtype)
        n += _named_if_refused(case, values)
    for bad in case.record.refuses:
        n += _refused(case, f"a call that it must refuse ({bad})", bad.match, lambda bad=bad: _call(case, types[0], bad))
    return n


def _call(case: Case, dtype: str, bad: Refusal) -> Any:
    shapes = case.shapes if bad.shapes is None else bad.shapes
    names = [case.type_of(k, dtype) for k in range(len(shapes))] if bad.dtypes is None else list(bad.dtypes)
    values = [case.draw(k, shape, name) for k, (shape, name) in enumerate(zip(shapes, names, strict=True))]
    params = case.params if bad.params is None else dict(bad.params)
    return dispatch.invoke(case.op, case.arrays(values), case.op.parse(params))


def _named_if_refused(case: Case, values: list[np.ndarray]) -> int:
    """Call with shapes that may not be valid: an error must be an MXNetError that names the operator, also if it is inside."""
    call, shapes = functools.partial(dispatch.invoke, case.op, case.arrays(values), case.attrs), [v.shape for v in values]
    try:
        call()
    except Exception:
        return _refused(case, f"a call of shapes {shapes}", "", call)
    return 0


def _refused(case: Case, what: str, match: str, call: Any) -> int:
    try:
        call()
    except MXNetError as problem:
        told = str(problem)
        if not any(name in told for name in (case.op.name, *case.op.aliases)):
            raise Mismatch(f"{what}: the error does not name the operator: {told}") from None
        if not re.search(match, told):
            raise Mismatch(f"{what}: the error is {told!r}, expected {match!r}") from None
        return 1
    except Exception as problem:
        raise Mismatch(f"{what}: raises {type(problem).__name__} ({problem}), expected an MXNetError") from problem
    raise Mismatch(f"{what} is taken")
