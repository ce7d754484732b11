"""``mx.random``: the seed of random numbers, and MXNet's functions that draw, which are those of ``mx.nd.random``."""

from __future__ import annotations

import operator

from .context import Context
from .ndarray import random as _functions
from .support import generators
from .support.errors import OpTypeError, OpValueError
from .support.missing import hooks


def seed(seed_state: int, ctx: Context | str = "all") -> None:
    """Seed the generators of random numbers.

    Parameters
    ----------
    seed_state : int
    ctx : Context, optional
        The device whose generator is seeded.  By default those of all devices, each differently, and with them what
        compiled libraries draw; with a device, its numbers do not depend on which one it is.

    Notes
    -----
    Random numbers follow from the seed and from the calls that draw, in their order; not from the number of threads, nor
    from whether a call is imperative or part of a bound graph, whose calls count in the order in which its JSON lists them
    (depth first).  The CPU and the GPU draw the same bits; what is computed from them, as normal or gamma numbers are, may
    differ in the last digit.

    Examples
    --------
    >>> mx.random.seed(3)
    >>> a = mx.nd.random.uniform(shape=(2, 2))
    >>> mx.random.seed(3)
    >>> bool((mx.nd.random.uniform(shape=(2, 2)) == a).min())
    True
    """
    try:
        number = operator.index(seed_state)
    except TypeError:
        raise OpValueError(f"random.seed: seed_state={seed_state!r} is not an integer") from None
    if isinstance(ctx, Context):
        generators.seed_device(number, "gpu" if ctx.is_gpu else "cpu", ctx.device_id)
        return
    if ctx != "all":
        raise OpTypeError(f"random.seed: ctx={ctx!r} is neither a context, such as mx.cpu(), nor 'all'")
    from .library import seed as seed_libraries

    generators.seed_all(number)
    seed_libraries(number)


exponential = _functions.exponential
gamma = _functions.gamma
generalized_negative_binomial = _functions.generalized_negative_binomial
multinomial = _functions.multinomial
negative_binomial = _functions.negative_binomial
normal = _functions.normal
poisson = _functions.poisson
randint = _functions.randint
randn = _functions.randn
shuffle = _functions.shuffle
uniform = _functions.uniform

__all__ = ["exponential", "gamma", "generalized_negative_binomial", "multinomial", "negative_binomial", "normal", "poisson",
           "randint", "randn", "seed", "shuffle", "uniform"]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
