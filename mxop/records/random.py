"""Records of operators that draw random numbers (``mxop/ops/random.py``).  Imports NumPy, and SciPy on use."""

from __future__ import annotations

import numpy as np

from . import Draws, Record


def _uniform(x, low=0.0, high=1.0):
    return np.clip((x - low) / (high - low), 0, 1)


def _normal(x, loc=0.0, scale=1.0):
    from scipy.special import ndtr

    return ndtr((x - loc) / scale)


def _exponential(x, lam=1.0):
    return -np.expm1(-lam * np.maximum(x, 0))


def _integers(x, low, high):
    return np.clip((np.floor(x) - low + 1) / (high - low), 0, 1)


def _drawn(cdf, *params, dtypes=("float32", "float64", "float16"), kinds="f"):
    return Record(None, params=params, draws=Draws(cdf, dtypes), dtypes=kinds, order=0, grad_inputs=())


RECORDS: dict[str, Record] = {
    "_random_uniform": _drawn(_uniform, {}, {"low": -3.0, "high": 5.0}, {"low": 0.5}),
    "_random_normal": _drawn(_normal, {}, {"loc": -2.0, "scale": 0.5}, {"scale": 30.0}),
    "_random_exponential": _drawn(_exponential, {}, {"lam": 4.0}, {"lam": 0.25}),
    "_random_randint": _drawn(
        _integers, {"low": 0, "high": 7}, {"low": -1000, "high": 1000}, {"low": -(2**30), "high": 2**30},
        dtypes=("int32", "int64"), kinds="i",
    ),
    # gradients are checked while recording, which is training: only what drops nothing has one value (see test_random.py)
    "Dropout": Record(lambda data, p, **_: data, params=[{"p": 0.0}, {"p": 0.0, "mode": "always"}], dtypes="f"),
}  # fmt: skip
