"""Random numbers: formulas of a key, drawn when a call runs, and of the index of the element.

A public operator is a composite of ``_draw_key``, which alone has an effect, and of a formula of that key.  So a value can be
computed again (in backward, in a fused formula, in another thread) and is the same; and two calls never share numbers.
May import :mod:`mxop.opdef` and :mod:`._shared`.
"""

import math
from functools import lru_cache
from typing import Annotated, Literal

from .. import dtypes
from ..errors import OpTypeError, OpValueError
from ..opdef import DType, F, Range, Scalar, Shape, composite, elementwise, kernel
from ._shared import zero_gradient

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
    import numpy as np

    from ..generators import draw

    np.asarray(outputs[0])[0] = draw("cpu", outputs[0].context.device_id)


@draw_key.gpu
def _(xp, inputs, outputs, **params):
    from ..generators import draw

    outputs[0].fill(draw("gpu", int(outputs[0].device.id)))


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


@elementwise(name="_dropped")
def dropped(data, key, *, p: float, scale: float):
    """The data times `scale`, or 0 with probability `p`."""
    return F.where(F.random(key) >= p, data * scale, 0)


@elementwise(name="_dropping")
def dropping(data, key, *, p: float, scale: float):
    """`scale`, or 0 with probability `p`, in the shape and type of the data."""
    return F.where(F.random(key) >= p, scale, 0)


# ---- operators ------------------------------------------------------------------------------------------------------
_FLOATS = dtypes.FLOAT16, dtypes.FLOAT32, dtypes.FLOAT64


def _code(name, dtype, allowed=_FLOATS, default=dtypes.FLOAT32):
    """Return the type code that a call asks for."""
    if dtype is not None and dtype not in allowed:
        names = ", ".join(dtypes.NAMES[t] for t in allowed)
        raise OpTypeError(f"operator {name}: dtype={dtypes.NAMES[dtype]!r}; expected one of {names}")
    return default if dtype is None else dtype


@lru_cache(256)
def _limits(low, high, dtype):
    """Return the ends of a half-open interval as an element type has them, and the largest number in it."""
    import numpy as np

    if not low <= high:
        raise OpValueError(f"operator _random_uniform: low={low} and high={high}; expected low <= high")
    type_ = dtypes.numpy_dtype(dtype).type
    with np.errstate(over="ignore"):
        first, end = type_(low), type_(high)
        reach = type_(float(end) - float(first))
    if not np.isfinite(reach):
        raise OpValueError(f"operator _random_uniform: from low={low} to high={high} is further than {np.dtype(type_).name} "
                           "reaches")  # fmt: skip
    return float(first), float(end), float(max(np.nextafter(end, type_(-np.inf)), first))


@composite(name="_random_uniform", random=True)
def random_uniform(
    F, *, low: float = 0.0, high: float = 1.0, shape: Shape = (), dtype: DType | None = None, ctx: str = ""
):
    """Draw numbers of a uniform distribution over the interval from `low` (included) to `high` (excluded).

    A float32 has 24 random bits, a float64 53.

    >>> mx.random.seed(7)
    >>> x = mx.nd.random.uniform(-1, 1, shape=(2, 3))
    >>> x.shape, bool((x >= -1).min() * (x < 1).min())
    ((2, 3), True)
    """
    code = _code("_random_uniform", dtype)
    first, end, most = _limits(low, high, code)
    return F._uniform_of(F._draw_key(ctx=ctx), low=first, high=end, most=most, shape=shape, dtype=code)


@composite(name="_random_normal", random=True)
def random_normal(
    F, *, loc: float = 0.0, scale: float = 1.0, shape: Shape = (), dtype: DType | None = None, ctx: str = ""
):
    """Draw numbers of a normal distribution of mean `loc` and standard deviation `scale`.

    >>> mx.random.seed(7)
    >>> abs(mx.nd.random.normal(5, 0.1, shape=(100,)).mean().item() - 5) < 0.05
    True
    """
    if not scale > 0:
        raise OpValueError(f"operator _random_normal: scale={scale}; expected a number above 0")
    return F._normal_of(F._draw_key(ctx=ctx), loc=loc, scale=scale, shape=shape, dtype=_code("_random_normal", dtype))


@composite(name="_random_exponential", random=True)
def random_exponential(F, *, lam: float = 1.0, shape: Shape = (), dtype: DType | None = None, ctx: str = ""):
    """Draw numbers of an exponential distribution of rate `lam`.

    The first argument of ``mx.nd.random.exponential`` is MXNet's `scale`, which is ``1 / lam``.

    >>> bool(mx.nd.random.exponential(2, shape=(3,)).min() >= 0)
    True
    """
    if not lam > 0:
        raise OpValueError(f"operator _random_exponential: lam={lam}; expected a number above 0")
    return F._exponential_of(F._draw_key(ctx=ctx), lam=lam, shape=shape, dtype=_code("_random_exponential", dtype))


@composite(name="_random_randint", random=True)
def random_randint(F, *, low: Scalar, high: Scalar, shape: Shape = (), dtype: DType | None = None, ctx: str = ""):
    """Draw integers from `low` (included) to `high` (excluded), all equally likely.

    >>> x = mx.nd.random.randint(0, 3, shape=(50,))
    >>> x.dtype.__name__, sorted(set(x.asnumpy().tolist()))
    ('int32', [0, 1, 2])
    """
    if not (low < high and low == int(low) and high == int(high)):
        raise OpValueError(f"operator _random_randint: low={low} and high={high}; expected integers, low < high")
    code = _code("_random_randint", dtype, (dtypes.INT32, dtypes.INT64), dtypes.INT32)
    limit = 2 ** (31 if code == dtypes.INT32 else 63)
    if low < -limit or high > limit or high - low >= 2**63:
        raise OpValueError(
            f"operator _random_randint: from low={low} to high={high} is further than {dtypes.NAMES[code]} reaches"
        )
    made = F._ranged_of if max(-low, high) <= 2**50 else F._integers_of
    return made(F._draw_key(ctx=ctx), low=int(low), count=int(high) - int(low), shape=shape, dtype=code)


@composite(name="Dropout", random=True, num_outputs=2, visible_outputs=1)
def dropout(
    F,
    data,
    *,
    p: Annotated[float, Range(0, 1)] = 0.5,
    mode: Literal["training", "always"] = "training",
    axes: Shape = (),
    cudnn_off: bool | None = False,
    is_train,
):
    """While training, set each element to zero with probability `p`, and divide the others by ``1 - p``.

    Backward draws the same numbers again: no mask is kept.

    Parameters
    ----------
    data
    p : float
    mode : {'training', 'always'}
        ``always`` drops in inference, too.
    axes : tuple of int
        Along these, elements are dropped together.
    cudnn_off : bool
        Is ignored.

    >>> x = mx.nd.ones((2, 3))
    >>> mx.nd.Dropout(x).asnumpy().tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    >>> sorted(set(mx.nd.Dropout(mx.nd.ones((50,)), mode="always").asnumpy().tolist()))
    [0.0, 2.0]
    """
    drops = p > 0 and (is_train or mode == "always")
    return [_some(F, data, p, axes) if drops else F.identity(data)] * 2  # MXNet counts a mask, which nobody can read


dropout.output_names = lambda attrs, n_inputs=None: ("output", "mask")


def _some(F, data, p, axes):
    """Return the data with some elements dropped."""
    chosen = {"p": p, "scale": 1 / (1 - p) if p < 1 else 0.0}
    place = getattr(data, "context", "")  # of an array; a graph is on one device
    key = F._draw_key(ctx=str(place))
    if not axes:
        return F._dropped(data, key, **chosen)
    kept = data
    for axis in axes:
        kept = F.slice_axis(kept, axis=axis, begin=0, end=1)
    return F.broadcast_mul(data, F._dropping(kept, key, **chosen))
