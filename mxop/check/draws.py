"""Checks of random numbers: they have the distribution that the record says, and no call repeats another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special, stats

from .cases import Case, Mismatch

#: How many numbers are drawn, in at most so many calls; fewer than the second number say nothing.
DRAWN, LEAST, CALLS = 20_000, 1_000, 400
#: Number of calls that are made where the elements of one call depend on each other: one element of each is tested.
DEPENDENT = 2_000
#: The smallest probability of what was drawn, were all right, at which it passes.
PROBABILITY = 1e-7


def distribution(case: Case, types: Sequence[str]) -> int:
    """Numbers drawn in each type have their distribution, and neighbours and calls have nothing to do with each other."""
    for dtype in types:
        values = case.sample(dtype)
        assert case.record.distribution is not None
        laws = case.record.distribution(*values, **case.reference_params())
        laws = list(laws) if isinstance(laws, (list, tuple)) else [laws]
        for k, (law, calls) in enumerate(zip(laws, _drawn(case, values, len(laws)), strict=True)):
            what = f"{dtype}: output {k}"
            drawn = np.concatenate(calls)
            _unrelated(f"{what}: neighbours are", drawn, 1)
            _unrelated(f"{what}: numbers of one call and the next are", drawn, calls[0].size)
            _fits(what, law, drawn)
    return len(types)


def _drawn(case: Case, values: list[np.ndarray], n: int) -> list[list[np.ndarray]]:
    """Return for each output what each of several calls drew, flat, in float64."""
    inputs, found = case.arrays(values), [[] for _ in range(n)]  # type: list, list[list[np.ndarray]]
    dependent = case.record.dependent
    case.seed()
    for call in range(DEPENDENT if dependent else CALLS):
        outputs = case.call(inputs, seeded=False)
        if len(outputs) != n:
            raise Mismatch(f"{len(outputs)} outputs, the record has {n} distributions")
        for listed, output in zip(found, outputs, strict=True):
            flat = output.asnumpy().astype(np.float64).ravel()
            listed.append(np.roll(flat, -call)[:1] if dependent else flat)  # each element in its turn
        if call >= 3 and sum(a.size for a in found[0]) >= DRAWN:
            break
    if min(sum(a.size for a in listed) for listed in found) < LEAST:
        raise Mismatch(f"{CALLS} calls draw fewer than {LEAST} numbers; give larger shapes in the record")
    return found


def _fits(what: str, law: Any, drawn: np.ndarray) -> None:
    if isinstance(law, Mapping) or hasattr(law, "pmf"):
        test, chance = "chi-square", _chi_square(what, law, drawn)
    else:
        test, chance = "Kolmogorov-Smirnov", stats.kstest(drawn, law.cdf, mode="asymp").pvalue
    if not chance >= PROBABILITY:
        raise Mismatch(
            f"{what}: does not have the distribution of the record: by the {test} test the probability of these "
            f"{drawn.size} numbers is {chance:.1e} (mean {drawn.mean():.4g}, deviation {drawn.std():.4g}); of integer types, "
            "which dtypes='f' leaves out, they are whole numbers"
        )


def _chi_square(what: str, law: Any, drawn: np.ndarray) -> float:
    """Return the probability of counts as far from the expected ones; rare values are counted as one."""
    values, counts = np.unique(drawn, return_counts=True)
    if isinstance(law, Mapping):
        chances = {float(v): p for v, p in law.items()}
    else:
        chances = dict.fromkeys(values.tolist(), 0.0)
        chances |= dict.fromkeys(np.arange(np.floor(values[0]), np.ceil(values[-1]) + 1).tolist(), 0.0)
        chances = {v: float(law.pmf(v)) for v in chances}
    strange = [v for v in values.tolist() if not chances.get(v, 0.0) > 0]
    if strange:
        raise Mismatch(f"{what}: draws {strange[0]!r}, which its distribution does not have")
    expected = np.array([p * drawn.size for p in chances.values()])
    found = np.array([dict(zip(values.tolist(), counts, strict=True)).get(v, 0) for v in chances])
    often = expected >= 5
    expected = np.append(expected[often], max(drawn.size - expected[often].sum(), 0.0))
    found = np.append(found[often], drawn.size - found[often].sum())
    if expected[-1] < 5:  # hardly anything is rare: add it to the last of the others
        expected, found = np.append(expected[:-2], expected[-2:].sum()), np.append(found[:-2], found[-2:].sum())
    distance = np.sum((found - expected) ** 2 / expected)
    return float(special.chdtrc(expected.size - 1, distance)) if expected.size > 1 else 1.0


def _unrelated(what: str, drawn: np.ndarray, lag: int) -> None:
    """Raise Mismatch when the ranks of numbers and of those `lag` later are correlated."""
    ranks = np.unique(drawn, return_inverse=True)[1].astype(np.float64)
    a, b = ranks[:-lag], ranks[lag:]
    if a.size < LEAST or not a.std() or not b.std():
        return
    correlation = np.mean((a - a.mean()) * (b - b.mean())) / (a.std() * b.std())
    if abs(correlation) * np.sqrt(a.size) > 6:  # of a normal distribution, 2e-9
        raise Mismatch(f"{what} correlated ({correlation:.3f})")
