"""Are two arrays equal, and if not, where and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .defaults import get_etol, get_tols

_TINY = np.finfo(np.float64).tiny


def to_numpy(array: Any) -> np.ndarray:
    """Return `array`, an NDArray or anything NumPy takes, as a NumPy array."""
    return array.asnumpy() if hasattr(array, "asnumpy") else np.asarray(array)


@dataclass(frozen=True)
class _Mismatch:
    """An element-by-element comparison: all arrays have the common broadcast shape."""

    a: np.ndarray
    b: np.ndarray
    error: np.ndarray  # |a - b|, float64
    violation: np.ndarray  # the error as a multiple of what is allowed; inf where NaN or infinity is at fault, else 0
    wrong: np.ndarray  # bool

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.wrong))

    @property
    def fraction(self) -> float:
        return self.count / max(self.wrong.size, 1)

    def worst(self, limit: int) -> list[tuple[int, ...]]:
        """Return where the wrong elements are, the worst first, at most `limit` of them."""
        flat = np.flatnonzero(self.wrong)
        order = flat[np.argsort(-self.violation.ravel()[flat], kind="stable")][:limit]
        return [tuple(int(i) for i in np.unravel_index(at, self.wrong.shape)) for at in order]


def _compare(a: np.ndarray, b: np.ndarray, rtol: float, atol: float, equal_nan: bool = False) -> _Mismatch:
    a, b = np.broadcast_arrays(a, b)
    # float64 also for float16 (whose differences overflow) and unsigned integers (whose differences wrap).
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    identical = a == b  # before widening: int64 values beyond 2**53 differ only here
    with np.errstate(all="ignore"):
        error = np.abs(wide_a - wide_b)
        if a.dtype.kind in "iub" and b.dtype.kind in "iub":
            error = np.maximum(error, ~identical)  # large integers that differ are at least 1 apart
        allowed = atol + rtol * np.abs(wide_b)
        finite = np.isfinite(wide_a) & np.isfinite(wide_b)
        # An infinity is matched by itself alone, whatever tolerance its size would give.
        wrong = ~identical
        if rtol or atol:
            wrong &= ~(finite & (error <= allowed))
        if equal_nan:
            wrong &= ~(np.isnan(wide_a) & np.isnan(wide_b))
        ratio = np.where(finite, error / np.maximum(allowed, _TINY), np.inf)
    error = np.where(identical, 0.0, error)  # inf - inf is no error
    return _Mismatch(a, b, error, np.where(identical, 0.0, ratio), wrong)


def _report(found: _Mismatch, a: np.ndarray, b: np.ndarray, tols: tuple, names: Sequence[str], shown: int) -> str:
    """Say where `a` and `b` differ, by how much, and how much of them does."""
    rtol, atol = tols
    name_a, name_b = names

    def line(at: tuple[int, ...]) -> str:
        values = f"{name_a}={found.a[at]!s}, {name_b}={found.b[at]!s}"
        times = f", {found.violation[at]:.6g} times the tolerance" if rtol or atol else ""
        return f"{at}: {values}, error {found.error[at]:.6g}{times}"

    places = found.worst(max(shown, 1))
    with np.errstate(all="ignore"):
        relative = found.error / np.maximum(np.abs(found.b.astype(np.float64)), _TINY)
    lines = [
        f"Items are not equal: {found.count} of {found.wrong.size} elements ({100 * found.fraction:.4g}%) "
        f"exceed the tolerance rtol={rtol:.6g}, atol={atol:.6g}",
        f"Location of maximum error: {line(places[0])}",
        f"Maximum absolute error {_largest(found.error):.6g}, relative {_largest(relative):.6g}",
        f"{name_a} is {a.dtype}{a.shape}, {name_b} is {b.dtype}{b.shape}",
    ]
    if shown and len(places) > 1:
        lines += ["Next worst:", *(f"  {line(at)}" for at in places[1:])]
    lines += [f"{name_a}: {a!r}", f"{name_b}: {b!r}"]
    return "\n".join(lines)


def _largest(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else float("nan")


def same(a: Any, b: Any) -> bool:
    """Return whether two arrays have the same shape and exactly the same values."""
    return bool(np.array_equal(to_numpy(a), to_numpy(b)))


def same_array(array1: Any, array2: Any) -> bool:
    """Return whether two NDArrays are the same memory, seen by writing to one and reading the other."""
    if array1.shape != array2.shape:
        return False
    before = array1.asnumpy()
    for probe in (before + 1, before + 2):  # twice: the first could equal by chance what the other array holds
        array1[:] = probe
        if not same(array2, array1):
            array1[:] = before
            return False
    array1[:] = before
    return True


def find_max_violation(
    a: Any, b: Any, rtol: float | Mapping | None = None, atol: float | Mapping | None = None
) -> tuple[tuple[int, ...], float]:
    """Return where ``|a - b| <= atol + rtol * |b|`` is violated most, and how many times the tolerance that is."""
    tols = get_tols(a, b, rtol, atol)
    found = _compare(to_numpy(a), to_numpy(b), *tols)
    at = np.unravel_index(int(np.argmax(found.violation)), found.violation.shape)
    return tuple(int(i) for i in at), float(found.violation[at])


def almost_equal(a: Any, b: Any, rtol: float | Mapping | None = None, atol: float | Mapping | None = None,
                 equal_nan: bool = False, use_broadcast: bool = True) -> bool:  # fmt: skip
    """Return whether ``|a - b| <= atol + rtol * |b|`` everywhere; parameters as for `assert_almost_equal`.

    Raises
    ------
    AssertionError
        When `use_broadcast` is False and the shapes differ.
    """
    tols = get_tols(a, b, rtol, atol)
    a, b = to_numpy(a), to_numpy(b)
    _check_shapes(a, b, ("a", "b"), use_broadcast)
    return _compare(a, b, *tols, equal_nan).count == 0


def assert_almost_equal(a: Any, b: Any, rtol: float | Mapping | None = None, atol: float | Mapping | None = None,
                        names: Sequence[str] = ("a", "b"), equal_nan: bool = False, use_broadcast: bool = True,
                        mismatches: Sequence[int] = (10, 10)) -> None:  # fmt: skip
    """Assert that ``|a - b| <= atol + rtol * |b|`` everywhere; otherwise tell where it is not, and by how much.

    Parameters
    ----------
    a, b : NDArray or array_like
        What was computed, and what it should be.
    rtol, atol : float, dict of dtype to float, or None
        The tolerances; by default those of the less precise of the two dtypes.
    names : pair of str
        What to call the two in the message.
    equal_nan : bool
        Whether a NaN equals a NaN.
    use_broadcast : bool
        Whether shapes may differ if they broadcast.
    mismatches : pair of int
        The first is the number of wrong elements to list.

    Raises
    ------
    AssertionError
        With the worst location, both values there, how far beyond the tolerance they are, how many elements are
        wrong, and the largest absolute and relative error.

    Examples
    --------
    >>> assert_almost_equal(mx.nd.ones((2, 2)), np.ones((2, 2)))
    """
    assert_almost_equal_with_err(a, b, rtol, atol, 0, names, equal_nan, mismatches, use_broadcast)


def assert_almost_equal_with_err(a: Any, b: Any, rtol: float | Mapping | None = None, atol: float | Mapping | None = None,
                                 etol: float | None = None, names: Sequence[str] = ("a", "b"), equal_nan: bool = False,
                                 mismatches: Sequence[int] = (10, 10), use_broadcast: bool = True) -> None:  # fmt: skip
    """Assert that at most a fraction `etol` of the elements differ; parameters as for `assert_almost_equal`."""
    tols = get_tols(a, b, rtol, atol)
    a, b = to_numpy(a), to_numpy(b)
    _check_shapes(a, b, names, use_broadcast)
    found = _compare(a, b, *tols, equal_nan)
    if found.fraction > get_etol(etol):
        raise AssertionError(_report(found, a, b, tols, names, mismatches[0]))


def _check_shapes(a: np.ndarray, b: np.ndarray, names: Sequence[str], use_broadcast: bool) -> None:
    if a.shape == b.shape:
        return
    message = f"Items are not equal: {names[0]}.shape = {a.shape} and {names[1]}.shape = {b.shape}"
    if not use_broadcast:
        raise AssertionError(f"{message} differ\n{names[0]}: {a!r}\n{names[1]}: {b!r}")
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise AssertionError(f"{message} do not broadcast\n{names[0]}: {a!r}\n{names[1]}: {b!r}") from None


def assert_almost_equal_ignore_nan(a: Any, b: Any, rtol: float | Mapping | None = None, atol: float | Mapping | None = None,
                                   names: Sequence[str] = ("a", "b")) -> None:  # fmt: skip
    """Assert `almost_equal` wherever neither `a` nor `b` is NaN."""
    a, b = (np.array(to_numpy(x)) for x in (a, b))
    _check_shapes(a, b, names, use_broadcast=False)
    nan = np.isnan(a) | np.isnan(b)
    a[nan] = b[nan] = 0
    assert_almost_equal(a, b, rtol, atol, names)


def assert_allclose(a: Any, b: Any, rtol: float = 1e-07, atol: float = 0, equal_nan: bool = True) -> None:
    """Assert closeness with NumPy's fixed tolerances instead of the dtype's."""
    assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: float | Mapping | None = None, atol: float | Mapping | None = None) -> None:
    """Assert that two (nested) tuples of arrays, such as optimizer states, are almost equal; None matches anything."""
    if t1 is None or t2 is None:
        return
    if isinstance(t1, (tuple, list)):
        assert len(t1) == len(t2), f"tuples of length {len(t1)} and {len(t2)}"
        for s1, s2 in zip(t1, t2, strict=True):
            compare_ndarray_tuple(s1, s2, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def checkShapes(a: Any, b: Any) -> None:
    """Raise unless two arrays have the same shape."""
    if a.shape != b.shape:
        raise AssertionError(f"the shapes {a.shape} and {b.shape} are not equal")


def locationError(a: Any, b: Any, index: Any, names: tuple[str, str], maxError: bool = False) -> str:
    """Return a text that says how two arrays differ at an index."""
    what = "maximum error" if maxError else "error"
    return f"Location of {what}: {index}, {names[0]}={a[index]:.8f}, {names[1]}={b[index]:.8f}"
