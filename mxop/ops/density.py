"""Probability densities, differentiable to every order.

`sample` has the shape of the parameters, and after it any number of dimensions: the samples of each.
"""

import math
from inspect import signature

from ..opdef import F, composite, elementwise, infer, kernel
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError
from ..support.shape_mode import numpy_shape
from ._shared import equal_shapes
from .shape import reshaping


@kernel(name="_spread_like")
def spread_like(data, like, *, keep: int = 0, of: str = ""):
    """The data with dimensions of size 1 put before the last `keep`, so that there are as many as in `like`.

    >>> mx.nd._internal._spread_like(mx.nd.ones((2, 5)), mx.nd.ones((2, 3, 4, 5)), keep=1).shape
    (2, 1, 1, 5)
    """


def _spread(data, like, *, keep, of):
    if data is None or like is None:
        return None
    lead, rank = len(data) - keep, len(like)
    parts = (data[:lead], like[:lead]), (data[lead:], like[rank - keep :])
    if lead < 0 or len(data) > rank or any(None not in (a, b) and a != b for p in parts for a, b in zip(*p, strict=True)):
        place = "ends" if keep else "first dimensions"
        raise OpValueError(f"operator {of}: a parameter has shape {infer.show(data)}, but the sample {infer.show(like)}; "
                           f"expected the {place} of the sample's shape")  # fmt: skip
    return (*data[:lead], *(1,) * (rank - len(data)), *data[lead:])


def _unspread(out, data, like, **params):
    """Return the data's shape: what the result and `like` have in common, where that says it."""
    if data is not None or like is None or None in (*out, *like) or 1 in like or len(out) != len(like):
        return data
    return tuple(d for d in out if d != 1)


reshaping(spread_like, _spread, _unspread)


@spread_like.infer_types
def _(ins, outs, *, of, **params):
    """The result has the type of the data, which is a floating-point type."""
    done = infer.same_type(of, ("a parameter", "a parameter"), [ins[0], *outs])
    if done[0] not in (*dtypes.FLOATS, dtypes.UNKNOWN):
        raise OpTypeError(f"operator {of}: a parameter has dtype {dtypes.NAMES[done[0]]}; expected a floating-point type")
    return [done[0], *ins[1:]], done[1:]


# ---- formulas -----------------------------------------------------------------------------------------------------------
def _of_log(log, is_log):
    return log if is_log else F.exp(log)


@elementwise(name="_uniform_density", broadcast=True)
def uniform_density(sample, low, high, *, is_log: bool = False):
    """One over the length of the interval."""
    return -F.log(high - low) if is_log else 1 / (high - low)


@elementwise(name="_normal_density", broadcast=True)
def normal_density(sample, mu, sigma, *, is_log: bool = False):
    """Gauss' bell."""
    away = -0.5 * F.square((sample - mu) / sigma)
    return away - F.log(math.sqrt(2 * math.pi) * sigma) if is_log else F.exp(away) / (math.sqrt(2 * math.pi) * sigma)


@elementwise(name="_gamma_density", broadcast=True)
def gamma_density(sample, alpha, beta, *, is_log: bool = False):
    """With `beta` as the rate."""
    return _of_log(alpha * F.log(beta) + (alpha - 1) * F.log(sample) - beta * sample - F.gammaln(alpha), is_log)


@elementwise(name="_exponential_density", broadcast=True)
def exponential_density(sample, lam, *, is_log: bool = False):
    """With `lam` as the rate."""
    return F.log(lam) - lam * sample if is_log else lam * F.exp(-lam * sample)


@elementwise(name="_poisson_density", broadcast=True)
def poisson_density(sample, lam, *, is_log: bool = False):
    """The probability of a whole number."""
    return _of_log(sample * F.log(lam) - F.gammaln(sample + 1) - lam, is_log)


def _binomial(x, k, p, is_log):
    ways = F.gammaln(x + k) - F.gammaln(x + 1) - F.gammaln(k)
    return _of_log(ways + k * F.log(p) + x * F.log1p(-p), is_log)


@elementwise(name="_negative_binomial_density", broadcast=True)
def negative_binomial_density(sample, k, p, *, is_log: bool = False):
    """The probability of a number of failures."""
    return _binomial(sample, k, p, is_log)


@elementwise(name="_generalized_negative_binomial_density", broadcast=True)
def generalized_negative_binomial_density(sample, mu, alpha, *, is_log: bool = False):
    """The same, by mean and dispersion."""
    return _binomial(sample, 1 / alpha, 1 / (mu * alpha + 1), is_log)


# ---- operators ------------------------------------------------------------------------------------------------------------
def _density(declared):
    """Make an operator of a function without a body: its arguments are samples and the parameters of a distribution."""
    name = f"_{declared.__name__}"
    formula = name.replace("random_pdf_", "") + "_density"
    whole = "poisson" in name or "binomial" in name  # the samples are whole numbers, without a gradient

    def density(F, sample, *parameters, is_log: bool = False):
        spread = [F._spread_like(p, sample, of=name) for p in parameters]
        return getattr(F, formula)(F.BlockGrad(sample) if whole else sample, *spread, is_log=is_log)

    density.__doc__ = declared.__doc__
    op = composite(density, name=name, aliases=(declared.__name__,), arguments=("F", *signature(declared).parameters))
    equal_shapes(op)
    return op


@_density
def random_pdf_uniform(sample, low, high):
    """Density of uniform distributions between `low` and `high`; samples are assumed to be inside.

    Parameters
    ----------
    sample : NDArray or Symbol
        Of the shape of the parameters and, after it, that of the samples of each.
    is_log : bool
        Return the logarithm.

    >>> sample = mx.nd.array([[1, 2, 3], [0, 5, 9]])
    >>> mx.nd.random_pdf_uniform(sample, mx.nd.array([0, 0]), mx.nd.array([4, 10])).asnumpy()[:, 0].tolist()
    [0.25, 0.10000000149011612]
    """


@_density
def random_pdf_normal(sample, mu, sigma):
    """Density of normal distributions of mean `mu` and standard deviation `sigma`.

    >>> print(mx.nd.random_pdf_normal(mx.nd.array([[0, 1]]), mx.nd.array([0]), mx.nd.array([1])).asnumpy().round(4))
    [[0.3989 0.242 ]]
    """


@_density
def random_pdf_gamma(sample, alpha, beta):
    """Density of gamma distributions of shape `alpha` and rate `beta`.

    As in MXNet, `beta` is the reciprocal of the `beta` of ``sample_gamma``.

    >>> print(mx.nd.random_pdf_gamma(mx.nd.array([[1, 2]]), mx.nd.array([2]), mx.nd.array([1])).asnumpy().round(4))
    [[0.3679 0.2707]]
    """


@_density
def random_pdf_exponential(sample, lam):
    """Density of exponential distributions of rate `lam`.

    >>> print(mx.nd.random_pdf_exponential(mx.nd.array([[0, 1]]), mx.nd.array([2])).asnumpy().round(4))
    [[2.     0.2707]]
    """


@_density
def random_pdf_poisson(sample, lam):
    """Probability under Poisson distributions of mean `lam`; the gradient with respect to `sample` is zero.

    >>> print(mx.nd.random_pdf_poisson(mx.nd.array([[0, 2]]), mx.nd.array([2])).asnumpy().round(4))
    [[0.1353 0.2707]]
    """


@_density
def random_pdf_negative_binomial(sample, k, p):
    """Probability of `sample` failures before `k` successes of probability `p`; the gradient with respect to `sample` is zero.

    >>> sample = mx.nd.array([[0, 1]])
    >>> mx.nd.random_pdf_negative_binomial(sample, mx.nd.array([1]), mx.nd.array([0.5])).asnumpy().round(4).tolist()
    [[0.5, 0.25]]
    """


@_density
def random_pdf_generalized_negative_binomial(sample, mu, alpha):
    """Probability under negative binomial distributions of mean `mu` and dispersion `alpha`.

    The gradient with respect to `sample` is zero.

    >>> sample, one = mx.nd.array([[0, 1]]), mx.nd.array([1])
    >>> mx.nd.random_pdf_generalized_negative_binomial(sample, one, one).asnumpy().round(4).tolist()
    [[0.5, 0.25]]
    """


@composite(name="_random_pdf_dirichlet", aliases=("random_pdf_dirichlet",))
def random_pdf_dirichlet(F, sample, alpha, *, is_log: bool = False):
    """Density of Dirichlet distributions; concentrations `alpha` and the parts of a sample are along the last axis.

    Parameters
    ----------
    sample : NDArray or Symbol
        Of the shape of `alpha`, with the dimensions of the samples of each before the last axis.
    is_log : bool
        Return the logarithm.

    >>> sample = mx.nd.array([[0.2, 0.8], [0.5, 0.5]])
    >>> mx.nd.random_pdf_dirichlet(sample, mx.nd.array([1, 1])).asnumpy().round(4).tolist()
    [1.0, 1.0]
    """
    alpha = F._spread_like(alpha, sample, keep=1, of="_random_pdf_dirichlet")
    scale = F.gammaln(F.sum(alpha, axis=-1)) - F.sum(F.gammaln(alpha), axis=-1)
    log = F.broadcast_add(F.sum(F.broadcast_mul(alpha - 1, F.log(sample)), axis=-1), scale)
    return log if is_log else F.exp(log)


@random_pdf_dirichlet.infer
def _(ins, outs, **params):
    sample, alpha = ins
    if sample is None and None not in (alpha, outs[0]) and (len(alpha) > 1 or numpy_shape()):
        sample = (*outs[0], alpha[-1])
    whole = None if sample is None else sample[:-1] or (() if numpy_shape() else (1,))
    outs = infer.same_shape("_random_pdf_dirichlet", ("sample without its last axis", "output"), [whole, *outs])[1:]
    return [sample, alpha], outs
