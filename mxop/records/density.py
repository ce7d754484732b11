"""Records of probability densities (``mxop/ops/density.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal

SHAPES = [((2, 3), (2,), (2,)), ((2, 2), (2, 2), (2, 2)), ((2, 3, 2), (2,), (2,))]
LOGS = [{}, {"is_log": True}]
_NO_RATE = {"special gradients": "by the sample, which the operator holds constant, it is 0 * log(0) at the rate 0"}
_POLES = {"special": "the log-gamma function of -inf is inf in C, -inf in SciPy"}


def _density(name, density, domain, *, unchecked=None, **details):
    """Record an operator and the formula that it is made of, of which ``density(sample, *parameters, is_log)`` is NumPy's."""
    n, whole = len(domain), details.pop("whole", ())
    of_whole = {"whole": whole, "grad_inputs": tuple(range(1, n))} if whole else {}

    def reference(sample, *parameters, is_log=False):
        beside = [p.reshape(*p.shape, *(1,) * (sample.ndim - p.ndim)) for p in parameters]
        with np.errstate(all="ignore"):  # intervals of no length, among the cases
            return np.broadcast_to(density(sample, *beside, is_log), sample.shape)

    formula = Record(
        reference, domain=domain, shapes=[((2, 3), (2, 1), (1, 3))[:n]], params=LOGS, dtypes="f",
        unchecked={"bad input": "is called with arrays that fit", **(unchecked or {})}, **details,
    )  # fmt: skip
    operator = Record(
        reference, domain=domain, shapes=[s[:n] for s in SHAPES for _ in LOGS], params=[p for _ in SHAPES for p in LOGS],
        dtypes="f", unchecked=unchecked or {}, **{**details, **of_whole},
        refuses=[
            Refusal("expected the first dimensions", shapes=((2, 3), (3,), (3,))[:n]),
            Refusal("expected the first dimensions", shapes=((2,), (2, 3), (2, 3))[:n]),
            Refusal("expected a floating-point type", dtypes=("int32",) * n),
        ],
    )  # fmt: skip
    return {f"_random_pdf_{name}": operator, f"_{name}_density": formula}


def _of_log(log):
    """Return a density whose logarithm is a function."""

    def density(*arrays):
        from scipy.special import gammaln

        *arrays, is_log = arrays
        return log(gammaln, *arrays) if is_log else np.exp(log(gammaln, *arrays))

    return density


def _uniform(x, low, high, is_log):
    return -np.log(high - low) if is_log else 1 / (high - low)


def _normal(x, mu, sigma, is_log):
    away, area = -0.5 * ((x - mu) / sigma) ** 2, np.sqrt(2 * np.pi) * sigma
    return away - np.log(area) if is_log else np.exp(away) / area


def _exponential(x, lam, is_log):
    return np.log(lam) - lam * x if is_log else lam * np.exp(-lam * x)


def _gamma(gammaln, x, alpha, beta):
    return alpha * np.log(beta) + (alpha - 1) * np.log(x) - beta * x - gammaln(alpha)


def _poisson(gammaln, x, lam):
    return x * np.log(lam) - gammaln(x + 1) - lam


def _binomial(gammaln, x, k, p):
    return gammaln(x + k) - gammaln(x + 1) - gammaln(k) + k * np.log(p) + x * np.log1p(-p)


def _generalized(gammaln, x, mu, alpha):
    return _binomial(gammaln, x, 1 / alpha, 1 / (1 + mu * alpha))


def _dirichlet(sample, alpha, is_log=False):
    from scipy.special import gammaln

    alpha = alpha.reshape(*alpha.shape[:-1], *(1,) * (sample.ndim - alpha.ndim), alpha.shape[-1])
    log = np.atleast_1d(np.sum((alpha - 1) * np.log(sample) - gammaln(alpha), -1) + gammaln(alpha.sum(-1)))
    return log if is_log else np.exp(log)


RECORDS: dict[str, Record] = {
    **_density("uniform", _uniform, [(0, 1), (-2, -1), (1, 3)], grad_inputs=(1, 2)),
    **_density("normal", _normal, [(-2, 2), (-1, 1), (1, 2)]),
    **_density("exponential", _exponential, [(0.1, 2), (0.5, 2)]),
    **_density("gamma", _of_log(_gamma), [(0.5, 2), (1.5, 3), (0.5, 2)], unchecked=_POLES),
    **_density("poisson", _of_log(_poisson), [(0, 4), (0.5, 3)], whole=(0,), unchecked=_POLES | _NO_RATE),
    **_density("negative_binomial", _of_log(_binomial), [(0, 4), (1, 3), (0.3, 0.7)], whole=(0,), unchecked=_POLES | _NO_RATE),
    **_density("generalized_negative_binomial", _of_log(_generalized), [(0, 4), (0.5, 2), (0.5, 1)], whole=(0,),
               unchecked=_POLES),
    "_random_pdf_dirichlet": Record(
        _dirichlet, domain=[(0.2, 0.8), (1, 3)], dtypes="f", unchecked=_POLES,
        tolerance=8,  # the logarithm is a sum of numbers that are rounded to the type, and e to its power is less exact
        shapes=[((2, 4, 3), (2, 3)), ((4, 3), (3,)), ((3,), (3,))], params=[{}, {"is_log": True}, {}],
        refuses=[
            Refusal("expected the ends", shapes=((2, 3), (4,))),
            Refusal("expected a floating-point type", dtypes=("int32", "int32")),
        ],
    ),
    "_spread_like": Record(
        lambda data, like, keep=0, of="": data.reshape(
            *data.shape[: data.ndim - keep], *(1,) * (like.ndim - data.ndim), *data.shape[data.ndim - keep :]
        ),
        shapes=[((2,), (2, 3)), ((2, 4), (2, 3, 4)), ((2, 3), (2, 3))], params=[{}, {"keep": 1, "of": "test"}, {}],
        dtypes="f", order=2, grad_inputs=(0,), unchecked={"shapes back": "of `like` only the first sizes matter"},
        refuses=[Refusal("expected the first dimensions", shapes=((3,), (2, 3)), params={"of": "_spread_like"})],
    ),
}  # fmt: skip
