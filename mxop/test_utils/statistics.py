"""Do generators of random numbers draw from the distribution that they should?  SciPy knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..support.errors import OpValueError


def _drawn(generator: Callable[[int], Any], nsamples: int) -> np.ndarray:
    samples = generator(nsamples)
    return samples.asnumpy() if hasattr(samples, "asnumpy") else np.asarray(samples)


def gen_buckets_probs_with_ppf(ppf: Callable[[float], float], nbuckets: int) -> tuple[list[tuple], list[float]]:
    """Return intervals of equal probability, from the inverse of a distribution function, and the probabilities.

    Examples
    --------
    >>> gen_buckets_probs_with_ppf(lambda p: 4 * p, 2)
    ([(0.0, 2.0), (2.0, 4.0)], [0.5, 0.5])
    """
    if nbuckets < 1:
        raise OpValueError(f"gen_buckets_probs_with_ppf: nbuckets={nbuckets} is less than 1")
    edges = [ppf(i / nbuckets) for i in range(nbuckets + 1)]
    return list(pairwise(edges)), [1 / nbuckets] * nbuckets


def mean_check(generator: Callable[[int], Any], mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Return whether the mean of samples is within three of its standard deviations of `mu`."""
    return bool(abs(_drawn(generator, nsamples).mean() - mu) < 3 * sigma / np.sqrt(nsamples))


def var_check(generator: Callable[[int], Any], sigma: float, nsamples: int = 1000000) -> bool:
    """Return whether the variance of normal samples is within three of its standard deviations of ``sigma**2``."""
    away = _drawn(generator, nsamples).var(ddof=1) - sigma**2
    return bool(abs(away) < 3 * np.sqrt(2 * sigma**4 / (nsamples - 1)))


def chi_square_check(generator: Callable[[int], Any], buckets: Sequence[Any], probs: Sequence[float],
                     nsamples: int = 1000000) -> tuple[float, np.ndarray, np.ndarray]:  # fmt: skip
    """Hold samples against the probabilities of values or intervals.

    Parameters
    ----------
    generator : callable
        Returns so many samples.
    buckets : list of numbers, or of pairs of numbers
        The values of a discrete distribution, or intervals in growing order: the beginning of one belongs to it, as does what
        lies between the one before and it; what lies at the end of the last, or beyond, is not counted.
    probs : list of float
    nsamples : int

    Returns
    -------
    p : float
        How probable it is that chance alone brings counts as far from the expected ones as these.
    observed, expected : array
        The counts.
    """
    from scipy import stats  # slow to import

    if len(buckets) != len(probs):
        raise OpValueError(f"chi_square_check: {len(buckets)} buckets, {len(probs)} probabilities")
    samples = _drawn(generator, nsamples).ravel()
    if isinstance(buckets[0], (list, tuple)):
        edges = np.array(buckets, dtype=np.float32).ravel()
        if (np.diff(edges) < 0).any():
            raise OpValueError("chi_square_check: the intervals are not in growing order, each apart from the next")
        where = np.searchsorted(edges, samples, side="right") // 2  # MXNet: up to the next interval, its beginning excluded
        observed = np.array([(where == at).sum() for at in range(len(buckets))])
    else:
        observed = np.array([(samples == value).sum() for value in buckets])
    expected = nsamples * np.asarray(probs, dtype=np.float64)
    statistic = ((observed - expected) ** 2 / expected).sum()  # stats.chisquare wants sums that agree to the last digit
    return float(stats.chi2.sf(statistic, len(buckets) - 1)), observed, expected


def verify_generator(generator: Callable[[int], Any], buckets: Sequence[Any], probs: Sequence[float], nsamples: int = 1000000,
                     nrepeat: int = 5, success_rate: float = 0.2, alpha: float = 0.05) -> list[float]:  # fmt: skip
    """Raise unless enough of several :func:`chi_square_check` have a probability above `alpha`; return all of these."""
    found = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    chances = [chance for chance, _, _ in found]
    if sum(chance > alpha for chance in chances) < nrepeat * success_rate:
        counts = "; ".join(f"{observed.tolist()} for {expected.round().tolist()}" for _, observed, expected in found)
        raise AssertionError(f"the numbers are not from this distribution: probabilities {chances}, counts {counts}")
    return chances
