"""Sampling from distributions whose parameters are arrays, random choices, shuffling.

As in :mod:`.random`, a public operator draws a key, and the rest are formulas of it.  A parameter no distribution has gives
NaN: a value cannot be refused where a graph runs, and in MXNet some never come to an end.
"""

import math
from inspect import signature

from ..opdef import DType, F, Shape, composite, elementwise, infer, kernel
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError
from ..support.shape_mode import numpy_shape
from ._shared import device_of, equal_shapes, on_both, size_of, zero_gradient
from .random import code_for, key_for

#: Rounding to a type moves a number up by less than this part of it, where it is computed in a wider one.
_ROUNDED = {dtypes.FLOAT16: 2.0**-11, dtypes.BFLOAT16: 2.0**-8}


# ---- formulas of parameters and a key: `like` has the shape that parameters of fewer dimensions broadcast to ------------
@elementwise(name="_uniform_from", broadcast=True)
def uniform_from(low, high, like, key, *, rounded: float):
    """Numbers between `low` and `high`, which are not `high` even after rounding."""
    x = low + (high - low) * F.random(key)
    return F.where(F.abs(high - x) <= F.abs(high) * rounded, low, x)


@elementwise(name="_normal_from", broadcast=True)
def normal_from(mu, sigma, like, key):
    """Numbers of normal distributions."""
    return mu + sigma * (math.sqrt(2) * F.erfinv(F.random_signed(key)))


@elementwise(name="_exponential_from", broadcast=True)
def exponential_from(lam, like, key):
    """Numbers of exponential distributions."""
    return -F.log1p(-F.random(key)) / lam


@elementwise(name="_gamma_from", broadcast=True)
def gamma_from(alpha, beta, like, key):
    """Numbers of gamma distributions."""
    return beta * F.random_gamma(key, alpha)


@elementwise(name="_poisson_from", broadcast=True)
def poisson_from(lam, like, key):
    """Numbers of Poisson distributions."""
    return F.random_poisson(key, lam)


@elementwise(name="_negative_binomial_from", broadcast=True)
def negative_binomial_from(k, p, like, key):
    """Numbers of negative binomial distributions: Poisson's, of means that have gamma distributions."""
    mean = F.random_gamma(key, k) * F.maximum(1 - p, 0) / p
    return F.random_poisson(key, F.where(k == 0, 0, mean))


@elementwise(name="_generalized_negative_binomial_from", broadcast=True)
def generalized_negative_binomial_from(mu, alpha, like, key):
    """The same, by mean and dispersion; without dispersion they are Poisson's."""
    return F.random_poisson(key, F.where(alpha == 0, mu, F.random_gamma(key, 1 / alpha) * (alpha * mu)))


for _op in (uniform_from, normal_from, exponential_from, gamma_from, poisson_from, negative_binomial_from,
            generalized_negative_binomial_from):  # fmt: skip
    zero_gradient(_op)  # as in MXNet


# ---- operators: so many numbers for each parameter ----------------------------------------------------------------------
def _check_sizes(name, shape):
    if any(d < 1 for d in shape):
        raise OpValueError(f"operator {name}: shape={shape}; expected sizes above 0")


def _sampler(declared):
    """Make an operator of a function without a body: its arguments are the parameters of a distribution, arrays of one shape.

    It draws `shape` numbers for each of their elements, by the formula of the same name.
    """
    name, formula = f"_{declared.__name__}", declared.__name__.replace("sample", "") + "_from"

    def sample(F, *parameters, shape: Shape = (), dtype: DType | None = None):
        code, first = code_for(name, dtype), parameters[0]
        _check_sizes(name, shape)
        parameters = [F.Cast(p, dtype=code) for p in parameters]
        if shape:  # a dimension of size 1 in the place of each of `shape`
            parameters = [F.Reshape(p, shape=(-2, *(1,) * len(shape))) for p in parameters]
        key = key_for(F, first)
        like = F._zeros(shape=shape, dtype=code, ctx=device_of(first)) if shape else parameters[0]
        options = {"rounded": _ROUNDED.get(code, 0.0)} if formula == "_uniform_from" else {}
        return getattr(F, formula)(*parameters, like, key, **options)

    sample.__doc__ = declared.__doc__
    arguments = "F", *signature(declared).parameters
    op = composite(sample, name=name, aliases=(declared.__name__,), arguments=arguments, random=True)

    @op.infer
    def _(ins, outs, *, shape, dtype):
        out, n = outs[0], len(shape)
        if out is not None and len(out) >= n:
            names = [*op.arguments, "what is left of the output without shape"]
            ins = infer.same_shape(name, names, [*ins, out[: len(out) - n]])[:-1]
        ins = infer.same_shape(name, op.arguments, ins)
        whole = None if ins[0] is None else (*ins[0], *shape)
        return ins, infer.same_shape(name, ("its parameters and shape", "output"), [whole, out])[1:]

    return op


@_sampler
def sample_uniform(low, high):
    """Draw numbers of uniform distributions, `shape` of them for each `low` and `high`.

    Parameters
    ----------
    low, high : NDArray or Symbol
        Of one shape; each interval includes `low`, and not `high`.
    shape : tuple of int
        Appended to the shape of the parameters; by default one number is drawn for each.
    dtype : {'float16', 'float32', 'float64'}
        Of the result; float32 by default, whatever the parameters are.

    >>> x = mx.nd.sample_uniform(mx.nd.array([0, 10]), mx.nd.array([1, 20]), shape=(3,))
    >>> x.shape, bool((x[1] >= 10).min() * (x[1] < 20).min())
    ((2, 3), True)
    """


@_sampler
def sample_normal(mu, sigma):
    """Draw numbers of normal distributions, `shape` of them for each mean `mu` and standard deviation `sigma`.

    >>> mx.nd.sample_normal(mx.nd.array([0, 5]), mx.nd.array([1, 0]), shape=(2,))[1].asnumpy().tolist()
    [5.0, 5.0]
    """


@_sampler
def sample_exponential(lam):
    """Draw numbers of exponential distributions, `shape` of them for each rate `lam`.

    >>> mx.nd.sample_exponential(mx.nd.array([1, 10]), shape=(2, 3)).shape
    (2, 2, 3)
    """


@_sampler
def sample_gamma(alpha, beta):
    """Draw numbers of gamma distributions, `shape` of them for each shape `alpha` and scale `beta`.

    A shape of 0 gives 0, one below NaN.

    >>> mx.nd.sample_gamma(mx.nd.array([1, 0, -1]), mx.nd.array([2, 2, 2])).asnumpy()[1:]
    array([ 0., nan], dtype=float32)
    """


@_sampler
def sample_poisson(lam):
    """Draw numbers of Poisson distributions, `shape` of them for each mean `lam`; NaN for a negative one.

    >>> mx.nd.sample_poisson(mx.nd.array([0, 4]), shape=(3,))[0].asnumpy().tolist()
    [0.0, 0.0, 0.0]
    """


@_sampler
def sample_negative_binomial(k, p):
    """Draw the number of failures before `k` successes of probability `p`, `shape` times for each.

    `k` need not be whole, `p` above 1 counts as 1, and NaN is drawn for negative ones.

    >>> mx.nd.sample_negative_binomial(mx.nd.array([3, 3]), mx.nd.array([0.5, 1]), shape=(2,))[1].asnumpy().tolist()
    [0.0, 0.0]
    """


@_sampler
def sample_generalized_negative_binomial(mu, alpha):
    """Draw numbers of negative binomial distributions, `shape` of them for each mean `mu` and dispersion `alpha`.

    NaN is drawn for negative ones.

    >>> mx.nd.sample_generalized_negative_binomial(mx.nd.array([0, 4]), mx.nd.array([1, 0.5]), shape=(2,)).shape
    (2, 2)
    """


# ---- choices ----------------------------------------------------------------------------------------------------------------
@elementwise(name="_unit_from", broadcast=True)
def unit_from(like, wide, key):
    """Numbers in [0, 1) in the shape of both inputs together."""
    return F.random(key)


@kernel(name="_first_above")
def first_above(sums, value):
    """Position along the last axis of the first of the (ascending) `sums` above each value; the last one, if there is none.

    >>> mx.nd._internal._first_above(mx.nd.array([0.1, 0.3, 1]), mx.nd.array([0, 0.2, 0.1, 2])).asnumpy().tolist()
    [0, 1, 1, 2]
    """


@first_above.infer
def _(ins, outs):
    sums, value = ins
    value, out = infer.same_shape("_first_above", ("value", "output"), [value, *outs])
    if sums is not None and sums[-1:] in ((), (0,)):
        raise OpValueError(
            f"operator _first_above: sums have shape {infer.show(sums)}; expected one at least along the last axis"
        )
    if None not in (sums, value):
        names = ("sums without the last axis", "value without it")
        lead = infer.same_shape("_first_above", names, [sums[:-1], value[:-1]])[0]
        sums, value = (*lead, *sums[-1:]), (*lead, *value[-1:])
    return [sums, value], [out]


first_above.infer_types(lambda ins, outs, **params: (ins, [dtypes.INT64]))
zero_gradient(first_above)


_MANY = 64  # values of a row, from which searching row by row is quicker than all rows at once


@on_both(first_above)
def _(xp, inputs, outputs):
    sums, value = inputs
    last = sums.shape[-1] - 1
    if value.shape[-1] >= _MANY:
        rows = sums.reshape(-1, last + 1), value.reshape(-1, value.shape[-1]), outputs[0].reshape(-1, value.shape[-1])
        for row, wanted, found in zip(*rows, strict=True):
            found[...] = xp.minimum(xp.searchsorted(row, wanted, side="right"), last)
        return
    low, high = xp.zeros(value.shape, xp.int64), xp.full(value.shape, last, xp.int64)
    for _ in range(last.bit_length()):  # halves what is left
        middle = (low + high) // 2
        below = xp.take_along_axis(sums, middle, axis=-1) <= value
        low, high = xp.where(below, xp.minimum(middle + 1, high), low), xp.where(below, high, middle)
    outputs[0][...] = low


_CHOICES = dtypes.UINT8, dtypes.INT32, dtypes.FLOAT16, dtypes.FLOAT32, dtypes.FLOAT64


@composite(
    name="_sample_multinomial",
    aliases=("sample_multinomial",),
    random=True,
    num_outputs=lambda *, get_prob, **params: 1 + get_prob,
)
def sample_multinomial(F, data, *, shape: Shape = (), get_prob: bool = False, dtype: DType = dtypes.INT32):
    """Draw indices along the last axis of `data`, which holds their probabilities.

    If probabilities sum to less than 1, the last index gets the rest.

    Parameters
    ----------
    data : NDArray or Symbol
        A row of probabilities, or an array of rows.
    shape : tuple of int
        Number of draws for each row; it replaces the last axis.  One by default.
    get_prob : bool
        Also return the log-probability of each draw, with a gradient for `data`, as for policy gradients.
    dtype : {'float16', 'float32', 'float64', 'int32', 'uint8'}
        Of the positions.

    >>> data = mx.nd.array([[0, 0, 1], [0.5, 0.5, 0]])
    >>> mx.nd.sample_multinomial(data, shape=(4,))[0].asnumpy().tolist()
    [2, 2, 2, 2]
    >>> position, log_prob = mx.nd.sample_multinomial(data, get_prob=True)
    >>> print(log_prob.asnumpy().round(3))
    [ 0.    -0.693]
    """
    if dtype not in _CHOICES:
        names = ", ".join(dtypes.NAMES[t] for t in _CHOICES)
        raise OpTypeError(f"operator _sample_multinomial: dtype={dtypes.NAMES[dtype]!r}; expected one of {names}")
    sums = F.cumsum(F.Cast(F.BlockGrad(data), dtype=dtypes.FLOAT64), axis=-1)
    wide = F._zeros(shape=(size_of(shape),), dtype=dtypes.FLOAT64, ctx=device_of(data))
    at = F._first_above(sums, F._unit_from(F.slice_axis(sums, axis=-1, begin=0, end=1), wide, key_for(F, data)))
    found = [F.Cast(at, dtype=dtype)]
    if get_prob:
        found.append(F.log(F._take_lanes(data, at, axis=-1)))
    if not shape:
        return [F.squeeze(x, axis=(-1,)) for x in found]
    if len(shape) == 1:
        return found
    like = F._zeros(shape=shape, ctx=device_of(data))
    return [F.reshape_like(x, like, lhs_begin=-1, rhs_begin=0) for x in found]


@sample_multinomial.infer
def _(ins, outs, *, shape, **params):
    _check_sizes("_sample_multinomial", shape)
    if ins[0] is None:
        lead = next((o[: len(o) - len(shape)] for o in outs if o is not None and (shape or len(o) > 1)), None)
        return ins if lead is None else [(*lead, None)], outs
    if not ins[0] or ins[0][-1] == 0:
        raise OpValueError(f"operator _sample_multinomial: data has shape {infer.show(ins[0])}; expected probabilities along "
                           "the last axis")  # fmt: skip
    whole = (*ins[0][:-1], *shape) or (() if numpy_shape() else (1,))
    return ins, [infer.same_shape("_sample_multinomial", ("data and shape", "output"), [whole, o])[1] for o in outs]


# ---- orders -----------------------------------------------------------------------------------------------------------------
@elementwise(name="_bits_as")
def bits_as(data, key):
    """Random bits in the shape and type of the data."""
    return F.random(key)


@zero_gradient
@equal_shapes
@kernel(name="_order_of_bits")
def order_of_bits(bits):
    """Order of random integers of 63 bits: their lowest bits give way to their positions, so that all are different.

    >>> mx.nd._internal._order_of_bits(mx.nd.array([512, 256, 0], dtype='int64')).asnumpy().tolist()
    [2, 1, 0]
    """


@on_both(order_of_bits)
def _(xp, inputs, outputs):
    mask = (1 << inputs[0].size.bit_length()) - 1
    outputs[0][...] = xp.sort((inputs[0] & ~mask) | xp.arange(inputs[0].size)) & mask


@equal_shapes
@composite(name="_shuffle", aliases=("_npi_shuffle", "shuffle"), random=True)
def shuffle(F, data):
    """Shuffle along the first axis; all orders are equally likely.

    The gradient is shuffled back.

    >>> x = mx.nd.shuffle(mx.nd.array([[0, 0], [1, 1], [2, 2]]))
    >>> x.shape, sorted(x[:, 0].asnumpy().tolist()), bool((x[:, 0] == x[:, 1]).min())
    ((3, 2), [0.0, 1.0, 2.0], True)
    """
    rows = F.Cast(F._contrib_arange_like(F.BlockGrad(data), axis=0), dtype=dtypes.INT64)
    return F.take(data, F._order_of_bits(F._bits_as(rows, key_for(F, data))), axis=0)


# ---- classes that differ -----------------------------------------------------------------------------------------------
@kernel(name="_unique_zipfian_of", num_outputs=2)
def unique_zipfian_of(key, *, range_max: int, shape: Shape):
    """Different classes of a distribution like Zipf's in each row, and how many were drawn until they were that many."""


unique_zipfian_of.shape(lambda key, *, range_max, shape: [shape, shape[:1]])
unique_zipfian_of.dtype(lambda key, **params: [dtypes.INT64, dtypes.INT64])
zero_gradient(unique_zipfian_of)


@on_both(unique_zipfian_of)
def _(xp, inputs, outputs, *, range_max, shape):
    import numpy as np

    made = np.random.Generator(np.random.Philox(key=int(inputs[0][0]) % 2**64))
    for row in range(shape[0]):
        classes, tries = _first_different(np, made, shape[1], range_max)
        outputs[0][row], outputs[1][row] = xp.asarray(classes), tries


def _first_different(np, made, n, range_max):
    """Draw until `n` classes differ; return them in the order in which they came, and how many were drawn."""
    drawn = np.zeros(0, np.int64)
    while True:
        more = np.exp(made.random(max(2 * n, drawn.size)) * math.log(range_max + 1)) - 1
        drawn = np.concatenate([drawn, more.astype(np.int64) % range_max])
        first = np.sort(np.unique(drawn, return_index=True)[1])[:n]
        if first.size == n:
            return drawn[first], first[-1] + 1 if n else 0


@composite(name="_sample_unique_zipfian", random=True, num_outputs=2)
def sample_unique_zipfian(F, *, range_max: int, shape: Shape = ()):
    """Draw classes that differ in each row; class ``c`` has the probability ``log((c + 2) / (c + 1)) / log(range_max + 1)``.

    Parameters
    ----------
    range_max : int
        How many classes there are.
    shape : tuple of int
        ``(rows, classes in each)``.

    Returns
    -------
    classes, tries : tuple of NDArray or Symbol
        The classes, int64, and how many had to be drawn for each row.

    >>> classes, tries = mx.nd._internal._sample_unique_zipfian(range_max=4, shape=(1, 4))
    >>> sorted(classes.asnumpy()[0].tolist()), tries.item() >= 4
    ([0, 1, 2, 3], True)
    """
    if len(shape) != 2 or not 0 <= shape[1] <= range_max:
        raise OpValueError(f"operator _sample_unique_zipfian: shape={shape}, range_max={range_max}; expected two dimensions, "
                           "the second not larger than range_max")  # fmt: skip
    return list(F._unique_zipfian_of(F._draw_key(), range_max=range_max, shape=shape))
