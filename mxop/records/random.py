"""Records of operators that draw random numbers (``mxop/ops/random.py``).  Imports NumPy, and the rest on use."""

from __future__ import annotations

from itertools import product

import numpy as np

from . import Record


class _Law:
    """A continuous distribution."""

    def __init__(self, cdf):
        self.cdf = cdf


def _uniform(low=0.0, high=1.0, **_):
    return _Law(lambda x: np.clip((x - low) / (high - low), 0, 1))


def _normal(loc=0.0, scale=1.0, **_):
    from scipy.special import ndtr

    return _Law(lambda x: ndtr((x - loc) / scale))


def _exponential(lam=1.0, **_):
    return _Law(lambda x: -np.expm1(-lam * np.maximum(x, 0)))


def _integers(low, high, **_):
    if high - low < 100:
        return dict.fromkeys(range(low, high), 1 / (high - low))
    return _Law(lambda x: np.clip((np.floor(x) - low + 1) / (high - low), 0, 1))


def _dropped(data, p, mode="training", is_train=False, **_):
    return {0.0: p, 1 / (1 - p): 1 - p} if p and (is_train or mode == "always") else {1.0: 1.0}


def _seed(number):
    from .. import random

    random.seed(number)


def _drawn(law, *params, types=("float32", "float64", "float16")):
    return Record(
        distribution=law,
        seed=_seed,
        params=[{**p, "dtype": t, "shape": (50, 41)} for p, t in product(params, types)],
        dtypes="f",
        order=0,
        grad_inputs=(),
        returns=lambda given, dtype, **_: dtype,
    )


RECORDS: dict[str, Record] = {
    "_random_uniform": _drawn(_uniform, {}, {"low": -3.0, "high": 5.0}, {"low": 0.5}),
    "_random_normal": _drawn(_normal, {}, {"loc": -2.0, "scale": 0.5}, {"scale": 30.0}),
    "_random_exponential": _drawn(_exponential, {}, {"lam": 4.0}, {"lam": 0.25}),
    "_random_randint": _drawn(
        _integers, {"low": 0, "high": 7}, {"low": -1000, "high": 1000}, {"low": -(2**30), "high": 2**30},
        types=("int32", "int64"),
    ),
    "Dropout": Record(
        distribution=_dropped, seed=_seed, domain=(1.0, 1.0), shapes=[((60, 40),)], order=2, dtypes="f",
        params=[{"p": 0.5}, {"p": 0.75, "mode": "always"}, {"p": 0.0}],
        unchecked={"gradient dtypes": "each type draws its own numbers"},
    ),
}  # fmt: skip
