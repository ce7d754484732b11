"""Random numbers: formulas of a key, drawn when a call runs, and of the index of the element.

What draws with parameters that are arrays stands in :mod:`.sample`.

A public operator is a composite of ``_draw_key``, which alone has an effect, and of a formula of that key.  So a value can be
computed again (in backward, in a fused formula, in another thread) and is the same; and two calls never share numbers.
"""

import math
from functools import lru_cache, partial
from typing import Annotated, Literal

from ..opdef import DType, F, Range, Scalar, Shape, composite, elementwise, infer, kernel
from ..opdef.params import Spec
from ..opdef.symbolic import computed
from ..support import dtypes, generators
from ..support.errors import OpTypeError, OpValueError
from ._shared import device_of, equal_shapes, typed_by_first, zero_gradient

_HALF_BITS = {dtypes.FLOAT16: 2.0**11, dtypes.BFLOAT16: 2.0**8}  # numbers in [0, 1), evenly spaced, that a type holds


# ---- the key --------------------------------------------------------------------------------------------------------
@kernel(name="_draw_key", random=True)
def draw_key(*, ctx: str = ""):
    """Draw a key from the device's generator: a new one each time.

    >>> mx.nd._internal._draw_key().shape
    (1,)
    """


draw_key.shape(lambda **params: (1,))
draw_key.dtype(lambda **params: dtypes.INT64)
zero_gradient(draw_key)


@draw_key.cpu
def _(inputs, outputs, **params):
    memoryview(outputs[0])[0] = generators.draw("cpu", outputs[0].context.device_id)


@draw_key.gpu
def _(xp, inputs, outputs, **params):
    outputs[0].fill(generators.draw("gpu", int(outputs[0].device.id)))


# ---- formulas of a key ----------------------------------------------------------------------------------------------
def _unit(key, dtype):
    """Return a number in [0, 1) that the element type holds."""
    steps = _HALF_BITS.get(dtype)
    return F.random(key) if steps is None else F.floor(F.random(key) * steps) * (1 / steps)


@elementwise(name="_uniform_of", creates=True)
def uniform_of(key, *, low: float, high: float, most: float, shape: Shape = (), dtype: DType = dtypes.FLOAT32):
    """Numbers from `low` to below `high`; `most` is the largest of the type's."""
    return F.minimum(low + (high - low) * _unit(key, dtype), most)


@elementwise(name="_normal_of", creates=True)
def normal_of(key, *, loc: float, scale: float, shape: Shape = (), dtype: DType = dtypes.FLOAT32):
    """Numbers of a normal distribution, by the inverse of its distribution function."""
    return loc + scale * (math.sqrt(2) * F.erfinv(F.random_signed(key)))


@elementwise(name="_exponential_of", creates=True)
def exponential_of(key, *, lam: float, shape: Shape = (), dtype: DType = dtypes.FLOAT32):
    """Numbers of an exponential distribution, by the inverse of its distribution function."""
    return -F.log1p(-F.random(key)) / lam


@elementwise(name="_integers_of", creates=True)
def integers_of(key, *, low: Scalar, count: Scalar, shape: Shape = (), dtype: DType = dtypes.INT64):
    """Integers from `low` on, one of `count`: the 63 bits that are drawn make all (nearly) equally likely."""
    return F.random(key) % count + low


@elementwise(name="_ranged_of", creates=True)
def ranged_of(key, *, low: float, count: float, shape: Shape = (), dtype: DType = dtypes.INT32):
    """Integers from `low` on, one of `count`: in float64, which holds all of them, and without a division."""
    return F.floor(F.random(key) * count) + low


@elementwise(name="_gamma_of", creates=True)
def gamma_of(key, *, alpha: float, beta: float, shape: Shape = (), dtype: DType = dtypes.FLOAT32):
    """Numbers of a gamma distribution of shape `alpha` and scale `beta`."""
    return beta * F.random_gamma(key, alpha)


@elementwise(name="_poisson_of", creates=True)
def poisson_of(key, *, lam: float, shape: Shape = (), dtype: DType = dtypes.FLOAT32):
    """Numbers of a Poisson distribution of mean `lam`."""
    return F.random_poisson(key, lam)


@elementwise(name="_mixed_poisson_of", creates=True)
def mixed_poisson_of(key, *, alpha: float, beta: float, shape: Shape = (), dtype: DType = dtypes.FLOAT32):
    """Numbers of Poisson distributions whose means have a gamma distribution of shape `alpha` and scale `beta`."""
    return F.random_poisson(key, beta * F.random_gamma(key, alpha))


# ---- dropout --------------------------------------------------------------------------------------------------------
@elementwise(name="_dropped")
def dropped(data, key, *, p: float, scale: float):
    """The data times `scale`, or 0 with probability `p`."""
    return F.where(F.random(key) >= p, data * scale, 0)


@elementwise(name="_dropping")
def dropping(data, key, *, p: float, scale: float):
    """`scale`, or 0 with probability `p`, in the shape and type of the data."""
    return F.where(F.random(key) >= p, scale, 0)


# ---- what operators are asked for -------------------------------------------------------------------------------------
def key_for(F, data):
    """Return a new key on the device of an array; a graph is on one device."""
    return F._draw_key(ctx=device_of(data))


_FLOATS = dtypes.FLOAT16, dtypes.FLOAT32, dtypes.FLOAT64


def code_for(name, dtype, allowed=_FLOATS, default=dtypes.FLOAT32):
    """Return the type code that a call asks for."""
    if dtype is not None and dtype not in allowed:
        names = ", ".join(dtypes.NAMES[t] for t in allowed)
        raise OpTypeError(f"operator {name}: dtype={dtypes.NAMES[dtype]!r}; expected one of {names}")
    return default if dtype is None else dtype


def _limit(name, dtype, which, low, high):
    return _interval(name, low, high, dtype)[which]


@lru_cache(256)
def _interval(name, low, high, dtype):
    """Return the ends of a half-open interval as an element type has them, and the largest number in it."""
    import numpy as np

    if not low <= high:
        raise OpValueError(f"operator {name}: low={low} and high={high}; expected low <= high")
    type_ = dtypes.numpy_dtype(dtype).type
    with np.errstate(over="ignore"):
        first, end = type_(low), type_(high)
        reach = type_(float(end) - float(first))
    if not np.isfinite(reach):
        raise OpValueError(f"operator {name}: from low={low} to high={high} is further than {np.dtype(type_).name} "
                           "reaches")  # fmt: skip
    return float(first), float(end), float(max(np.nextafter(end, type_(-np.inf)), first))


def _above(name, limit, **numbers):
    """Raise unless all numbers are above 0, or 0 where the limit is ``>=``."""
    for key, value in numbers.items():
        if not (value > 0 or (limit == ">=" and value == 0)):
            expected = "a number above 0" if limit == ">" else "0 or a number above"
            raise OpValueError(f"operator {name}: {key}={value}; expected {expected}")


# ---- operators ------------------------------------------------------------------------------------------------------
def _distribution(*aliases):
    """Make two operators of ``function(F, name, key, *, parameters..., **made)``, which draws what `made` says.

    One draws in a shape and type that are given, the other, whose name ends with ``_like``, in those of an array.
    """

    def decorate(function):
        title = f"_{function.__name__}"
        params = Spec.of(title, function).params

        def draw(F, *, shape: Shape = (), ctx: str = "", dtype: DType | None = None, **given):
            return function(F, title, F._draw_key(ctx=ctx), shape=shape, dtype=code_for(title, dtype), **given)

        def like(F, data, **given):
            return function(F, title + "_like", key_for(F, data), shape=data.shape, dtype=dtypes.code_of(data.dtype), **given)

        public = title.replace("_random_", "random.")
        draw.__doc__ = function.__doc__
        like.__doc__ = f"""Draw as ``{public}`` does, in the shape and type of `data`, whose values do not matter.

        >>> mx.nd.{public}_like(mx.nd.zeros((2, 3))).shape
        (2, 3)
        """
        made = composite(draw, name=title, aliases=(title[1:], *aliases), random=True, extra_params=params,
                         param_order=[*(p.name for p in params), "shape", "ctx", "dtype"])  # fmt: skip
        op = composite(like, name=title + "_like", random=True, extra_params=params)
        equal_shapes(op)
        typed_by_first(op)
        return made

    return decorate


@_distribution("uniform")
def random_uniform(F, name, key, *, low: float = 0.0, high: float = 1.0, **made):
    """Draw numbers of a uniform distribution over the interval from `low` (included) to `high` (excluded).

    A float32 has 24 random bits, a float64 53.

    >>> mx.random.seed(7)
    >>> x = mx.nd.random.uniform(-1, 1, shape=(2, 3))
    >>> x.shape, bool((x >= -1).min() * (x < 1).min())
    ((2, 3), True)
    """
    first, end, most = [computed(partial(_limit, name, made["dtype"], which), low, high) for which in range(3)]
    return F._uniform_of(key, low=first, high=end, most=most, **made)


@_distribution("normal")
def random_normal(F, name, key, *, loc: float = 0.0, scale: float = 1.0, **made):
    """Draw numbers of a normal distribution of mean `loc` and standard deviation `scale`.

    >>> mx.random.seed(7)
    >>> 4.95 < mx.nd.random.normal(5, 0.1, shape=(100,)).mean().item() < 5.05
    True
    """
    _above(name, ">", scale=scale)
    return F._normal_of(key, loc=loc, scale=scale, **made)


@_distribution()
def random_exponential(F, name, key, *, lam: float = 1.0, **made):
    """Draw numbers of an exponential distribution of rate `lam`.

    The first argument of ``mx.nd.random.exponential`` is MXNet's `scale`, which is ``1 / lam``.

    >>> bool(mx.nd.random.exponential(2, shape=(3,)).min() >= 0)
    True
    """
    _above(name, ">", lam=lam)
    return F._exponential_of(key, lam=lam, **made)


@_distribution()
def random_gamma(F, name, key, *, alpha: float = 1.0, beta: float = 1.0, **made):
    """Draw numbers of a gamma distribution of shape `alpha` and scale `beta`: their mean is ``alpha * beta``.

    >>> mx.random.seed(7)
    >>> 4.4 < mx.nd.random.gamma(9, 0.5, shape=(10000,)).mean().item() < 4.6
    True
    """
    _above(name, ">", alpha=alpha, beta=beta)
    return F._gamma_of(key, alpha=alpha, beta=beta, **made)


@_distribution()
def random_poisson(F, name, key, *, lam: float = 1.0, **made):
    """Draw numbers of a Poisson distribution of mean `lam`, as floating-point numbers.

    >>> mx.random.seed(7)
    >>> 3.9 < mx.nd.random.poisson(4, shape=(10000,)).mean().item() < 4.1
    True
    """
    _above(name, ">=", lam=lam)
    return F._poisson_of(key, lam=lam, **made)


@_distribution()
def random_negative_binomial(F, name, key, *, k: int = 1, p: float = 1.0, **made):
    """Draw the number of failures before `k` successes, each with probability `p`; above 1 that counts as 1.

    >>> mx.random.seed(7)
    >>> 2.9 < mx.nd.random.negative_binomial(3, 0.5, shape=(10000,)).mean().item() < 3.1
    True
    """
    _above(name, ">=", k=k, p=p)
    odds = max(1 - p, 0.0) / p if p else math.inf  # the scale of gamma numbers, which are the means of Poisson's
    return F._mixed_poisson_of(key, alpha=k * 1.0, beta=odds if k else 0.0, **made)


@_distribution()
def random_generalized_negative_binomial(F, name, key, *, mu: float = 1.0, alpha: float = 1.0, **made):
    """Draw numbers of a negative binomial distribution of mean `mu` and dispersion `alpha`.

    Their variance is ``mu + alpha * mu**2``; without dispersion it is the Poisson distribution.

    >>> mx.random.seed(7)
    >>> 2.8 < mx.nd.random.generalized_negative_binomial(3, 0.5, shape=(10000,)).mean().item() < 3.2
    True
    """
    _above(name, ">=", mu=mu, alpha=alpha)
    if not alpha:
        return F._poisson_of(key, lam=mu, **made)
    return F._mixed_poisson_of(key, alpha=1 / alpha, beta=alpha * mu, **made)


@composite(name="_random_randint", aliases=("_npi_random_randint", "random_randint"), random=True)
def random_randint(F, *, low: Scalar, high: Scalar, shape: Shape = (), ctx: str = "", dtype: DType | None = None):
    """Draw integers from `low` (included) to `high` (excluded), all equally likely.

    >>> x = mx.nd.random.randint(0, 3, shape=(50,))
    >>> x.dtype.__name__, sorted(set(x.asnumpy().tolist()))
    ('int32', [0, 1, 2])
    """
    if not (low < high and low == int(low) and high == int(high)):
        raise OpValueError(f"operator _random_randint: low={low} and high={high}; expected integers, low < high")
    code = code_for("_random_randint", dtype, (dtypes.INT32, dtypes.INT64), dtypes.INT32)
    limit = 2 ** (31 if code == dtypes.INT32 else 63)
    if low < -limit or high > limit or high - low >= 2**63:
        raise OpValueError(
            f"operator _random_randint: from low={low} to high={high} is further than {dtypes.NAMES[code]} reaches"
        )
    made = F._ranged_of if max(-low, high) <= 2**50 else F._integers_of
    return made(F._draw_key(ctx=ctx), low=int(low), count=int(high) - int(low), shape=shape, dtype=code)


@composite(
    name="Dropout", aliases=("_npx_dropout",), random=True, num_outputs=2, visible_outputs=1, output_names=("output", "mask"),
)  # fmt: skip
def dropout(F, data, *, p: Annotated[float, Range(0, 1)] = 0.5, mode: Literal["training", "always"] = "training",
            axes: Shape = (), cudnn_off: bool | None = False, is_train):  # fmt: skip
    """In training, set each element to zero with probability `p`, and divide the others by ``1 - p``.

    With ``p=1`` all are NaN, as in MXNet.  Backward draws the same numbers again: no mask is kept.

    Parameters
    ----------
    mode : {'training', 'always'}
        ``always`` drops in inference, too.
    axes : tuple of int
        Axes along which elements are dropped together.

    >>> x = mx.nd.ones((2, 3))
    >>> mx.nd.Dropout(x).asnumpy().tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    >>> sorted(set(mx.nd.Dropout(mx.nd.ones((50,)), mode="always").asnumpy().tolist()))
    [0.0, 2.0]
    """
    drops = p > 0 and (is_train or mode == "always")
    return [_some(F, data, p, axes) if drops else F.identity(data)] * 2  # MXNet counts a mask, which nobody can read


@dropout.infer
def _(ins, outs, *, axes, **params):
    shape = infer.same_shape("Dropout", ("data", "output", "mask"), [*ins, *outs])[0]
    for axis in axes if shape is not None else ():
        infer.normal_axis("Dropout", axis, len(shape), "axes")
    return [shape], [shape] * len(outs)


def _some(F, data, p, axes):
    """Return the data with some elements dropped."""
    chosen = {"p": p, "scale": 1 / (1 - p)} if p < 1 else {"p": 0.0, "scale": float("nan")}
    key = key_for(F, data)
    if not axes:
        return F._dropped(data, key, **chosen)
    kept = data
    for axis in axes:
        kept = F.slice_axis(kept, axis=axis, begin=0, end=1)
    return F.broadcast_mul(data, F._dropping(kept, key, **chosen))
