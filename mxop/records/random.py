"""Records of operators that draw random numbers (``mxop/ops/random.py``)."""

from __future__ import annotations

from itertools import product

from . import Record, Refusal


def _law(name, *parameters, **more):
    """Return a distribution of SciPy."""
    from scipy import stats  # slow to import

    return getattr(stats, name)(*parameters, **more)


def _uniform(low=0.0, high=1.0, **_):
    return _law("uniform", low, high - low)


def _normal(loc=0.0, scale=1.0, **_):
    return _law("norm", loc, scale)


def _exponential(lam=1.0, **_):
    return _law("expon", scale=1 / lam)


def _gamma(alpha=1.0, beta=1.0, **_):
    return _law("gamma", alpha, scale=beta)


def _poisson(lam=1.0, **_):
    return _law("poisson", lam)


def _negative_binomial(k=1, p=1.0, **_):
    return {0.0: 1.0} if k == 0 or p >= 1 else _law("nbinom", k, p)


def _generalized(mu=1.0, alpha=1.0, **_):
    return _negative_binomial(1 / alpha, 1 / (1 + mu * alpha)) if alpha else _poisson(mu)


def _integers(low, high, **_):
    if high - low < 100:
        return dict.fromkeys(range(low, high), 1 / (high - low))
    return _law("uniform", low, high - low)  # a step of the distribution function is too small to be seen


def _dropped(data, p, mode="training", is_train=False, **_):
    return {0.0: p, 1 / (1 - p): 1 - p} if p and (is_train or mode == "always") else {1.0: 1.0}


def seeded(number):
    from .. import random

    random.seed(number)


def _like(law, *params, bad=()):
    """Record an operator that draws in the shape and type of its input."""
    return Record(
        distribution=lambda data, **given: law(**given), seed=seeded, params=params, shapes=[((50, 41),)], dtypes="f", order=0,
        grad_inputs=(),
        refuses=[Refusal("expected", params=p) for p in bad],
    )  # fmt: skip


def _drawn(law, *params, types=("float32", "float64", "float16"), bad=()):
    return Record(
        refuses=[Refusal("expected", params={"shape": (2,), **p}) for p in bad], distribution=law, seed=seeded,
        params=[{**p, "dtype": t, "shape": (50, 41)} for p, t in product(params, types)], dtypes="f", order=0, grad_inputs=(),
        returns=lambda given, dtype, **_: dtype,
    )  # fmt: skip


RECORDS: dict[str, Record] = {
    "_random_uniform": _drawn(_uniform, {}, {"low": -3.0, "high": 5.0}, {"low": 0.5}),
    "_random_normal": _drawn(_normal, {}, {"loc": -2.0, "scale": 0.5}, {"scale": 30.0}),
    "_random_exponential": _drawn(_exponential, {}, {"lam": 4.0}, {"lam": 0.25}),
    "_random_randint": _drawn(
        _integers, {"low": 0, "high": 7}, {"low": -1000, "high": 1000}, {"low": -(2**30), "high": 2**30},
        types=("int32", "int64"),
    ),
    "_random_gamma": _drawn(
        _gamma, {}, {"alpha": 0.3, "beta": 2.0}, {"alpha": 7.5, "beta": 0.1}, {"alpha": 900.0},
        bad=[{"alpha": 0.0}, {"beta": -1.0}, {"alpha": float("nan")}, {"dtype": "int32"}],
    ),
    "_random_poisson": _drawn(
        _poisson, {}, {"lam": 0.0}, {"lam": 0.02}, {"lam": 30.0}, {"lam": 63.9}, {"lam": 64.0}, {"lam": 300.0},
        bad=[{"lam": -1.0}, {"lam": float("nan")}, {"dtype": "int32"}],
    ),
    "_random_negative_binomial": _drawn(
        _negative_binomial, {}, {"k": 3, "p": 0.4}, {"k": 40, "p": 0.25}, {"k": 0, "p": 0.5}, {"k": 2, "p": 1.5},
        bad=[{"k": -1, "p": 0.5}, {"p": -0.5}, {"k": 1.5}],
    ),
    "_random_generalized_negative_binomial": _drawn(
        _generalized, {}, {"mu": 6.0, "alpha": 0.3}, {"mu": 2.0, "alpha": 0.0}, {"mu": 0.0, "alpha": 2.0},
        bad=[{"mu": -1.0}, {"alpha": -1.0}],
    ),
    "_random_uniform_like": _like(_uniform, {}, {"low": -3.0, "high": 5.0}, bad=[{"low": 2.0}]),
    "_random_normal_like": _like(_normal, {}, {"loc": -2.0, "scale": 0.5}, bad=[{"scale": 0.0}]),
    "_random_exponential_like": _like(_exponential, {}, {"lam": 4.0}, bad=[{"lam": 0.0}]),
    "_random_gamma_like": _like(_gamma, {}, {"alpha": 0.3, "beta": 2.0}, bad=[{"alpha": 0.0}, {"beta": 0.0}]),
    "_random_poisson_like": _like(_poisson, {}, {"lam": 30.0}, {"lam": 200.0}, bad=[{"lam": -1.0}]),
    "_random_negative_binomial_like": _like(_negative_binomial, {}, {"k": 3, "p": 0.4}, bad=[{"k": -1}, {"p": -1.0}]),
    "_random_generalized_negative_binomial_like": _like(
        _generalized, {}, {"mu": 6.0, "alpha": 0.3}, {"mu": 2.0, "alpha": 0.0}, bad=[{"mu": -1.0}, {"alpha": -1.0}]
    ),
    "Dropout": Record(
        distribution=_dropped, seed=seeded, domain=(1.0, 1.0), shapes=[((60, 40),)], order=2, dtypes="f",
        params=[{"p": 0.5}, {"p": 0.75, "mode": "always"}, {"p": 0.0}],
        unchecked={"gradient dtypes": "each type draws its own numbers"},
        refuses=[Refusal("Dropout: axes=5 is out of range", shapes=((2, 3),), params={"axes": (5,)})],
    ),
}  # fmt: skip
