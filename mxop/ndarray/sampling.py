"""MXNet's Python functions that draw random numbers: ``mx.nd.random.uniform``, ``mx.sym.random.randn``...

They differ from the operators in defaults and in names of parameters, and choose the operator by what they are given:
numbers, or arrays with a parameter for each element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Number
from typing import Any

from ..context import current_context, is_first
from ..opdef.params import NULL
from ..support.errors import OpTypeError, ends_at_caller

Draw = Callable[[str, dict, Any, Any, Any, Any, dict], Any]
_PLAIN = (int, float)


def _of_arrays(name: str, params: dict[str, Any], dtype: Any, kind: type, many: bool = True) -> bool:
    """Return whether the parameters are arrays (or symbols); they are all such, or all numbers."""
    if type(dtype) is int:
        raise OpTypeError(f"{name}: dtype={dtype} is not a type; a shape is one tuple: shape=(2, 3)")
    for value in params.values():
        if type(value) not in _PLAIN:
            break
    else:
        return False
    arrays = [isinstance(value, kind) for value in params.values()]
    if many and all(arrays):
        return True
    for key, value in params.items():
        if not isinstance(value, Number):
            expected = f"numbers alone, or {kind.__name__}s alone" if many else "a number"
            raise OpTypeError(f"{name}: {key} is a {type(value).__name__}; expected {expected}")
    return False


def on_arrays(operator: Callable[[str], Callable], kind: type) -> Draw:
    """Return what draws arrays, given the function of a registered name, and NDArray."""

    def draw(name: str, params: dict[str, Any], shape: Any, dtype: Any, ctx: Any, out: Any, options: dict[str, Any]) -> Any:
        if out is not None:
            options["out"] = out
        shape, dtype = (None if shape is NULL else shape), (None if dtype is NULL else dtype)
        if dtype is None:
            dtype = getattr(out, "dtype", None)
        if _of_arrays(f"nd.random.{name}", params, dtype, kind, name != "randint"):
            shape = () if shape is None else shape
            return operator(f"_sample_{name}")(*params.values(), shape=shape, dtype=dtype, **options)
        if shape is None:
            shape = getattr(out, "shape", (1,))
        place = current_context() if ctx is None else ctx
        if out is None and not is_first(place):
            options["ctx"] = str(place)
        return operator(f"_random_{name}")(**params, shape=shape, dtype=dtype, **options)

    return draw


def on_symbols(operator: Callable[[str], Callable], kind: type) -> Draw:
    """Return what makes symbols, given the function of a registered name, and Symbol."""

    def draw(name: str, params: dict[str, Any], shape: Any, dtype: Any, ctx: Any, out: Any, options: dict[str, Any]) -> Any:
        given = {"shape": shape, "dtype": dtype, "ctx": None if ctx is None else str(ctx), "out": out}
        options |= {key: value for key, value in given.items() if value is not None}
        if _of_arrays(f"sym.random.{name}", params, dtype, kind, name != "randint"):
            return operator(f"_sample_{name}")(*params.values(), **options)
        return operator(f"_random_{name}")(**params, **options)

    return draw


def functions(operator: Callable[[str], Callable], draw: Draw, get_prob: bool) -> dict[str, Callable]:
    """Return the functions of a namespace; `get_prob` is what ``multinomial`` does there when it is not told."""

    def uniform(low=0, high=1, shape=None, dtype=None, ctx=None, out=None, **options):
        """Draw numbers of a uniform distribution from `low` to below `high`.

        Parameters
        ----------
        low, high : float, or NDArray or Symbol
            Arrays, of one shape, hold the parameters of many distributions.
        shape : int or tuple of int, optional
            Of the result; with arrays, what is drawn for each of their elements, and follows their shape.
        dtype : {'float16', 'float32', 'float64'}, optional
            By default that of `out`, or float32.
        ctx : Context, optional
            The device, by default the current one; parameters that are arrays have theirs.
        out : NDArray, optional
            Write there.
        **options
            Of symbols `name` and `attr`.

        Examples
        --------
        >>> mx.nd.random.uniform(0, 1, shape=(2, 3)).shape
        (2, 3)
        >>> mx.nd.random.uniform(mx.nd.array([0, 10]), mx.nd.array([1, 11]), shape=3).shape
        (2, 3)
        """
        return draw("uniform", {"low": low, "high": high}, shape, dtype, ctx, out, options)

    def normal(loc=0, scale=1, shape=None, dtype=None, ctx=None, out=None, **options):
        """Draw numbers of a normal distribution of mean `loc` and standard deviation `scale`.

        The other parameters are those of :func:`uniform`.

        >>> mx.nd.random.normal(0, 1, shape=(2, 3)).shape
        (2, 3)
        """
        return draw("normal", {"loc": loc, "scale": scale}, shape, dtype, ctx, out, options)

    def randn(*shape, loc=0, scale=1, dtype=None, ctx=None, out=None, **options):
        """Draw numbers of a normal distribution; the arguments are the shape.

        Examples
        --------
        >>> mx.nd.random.randn(2, 3, loc=5).shape
        (2, 3)
        """
        return draw("normal", {"loc": loc, "scale": scale}, shape or None, dtype, ctx, out, options)

    def exponential(scale=1, shape=None, dtype=None, ctx=None, out=None, **options):
        """Draw numbers of an exponential distribution of mean `scale`; its rate, `lam`, may be given instead.

        The other parameters are those of :func:`uniform`.

        >>> mx.nd.random.exponential(mx.nd.array([1, 100])).shape
        (2,)
        """
        lam = options.pop("lam", None)
        if lam is None and not hasattr(scale, "__rtruediv__"):
            return draw("exponential", {"scale": scale}, shape, dtype, ctx, out, options)  # which is refused
        if lam is None:
            lam = 0 if isinstance(scale, Number) and not scale else 1 / scale
        return draw("exponential", {"lam": lam}, shape, dtype, ctx, out, options)

    def gamma(alpha=1, beta=1, shape=None, dtype=None, ctx=None, out=None, **options):
        """Draw numbers of a gamma distribution of shape `alpha` and scale `beta`.

        The other parameters are those of :func:`uniform`.

        >>> mx.nd.random.gamma(9, 0.5, shape=(2, 2)).shape
        (2, 2)
        """
        return draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, ctx, out, options)

    def poisson(lam=1, shape=None, dtype=None, ctx=None, out=None, **options):
        """Draw numbers of a Poisson distribution of mean `lam`, as floating-point numbers.

        The other parameters are those of :func:`uniform`.

        >>> mx.nd.random.poisson(4, shape=(2, 2)).dtype.__name__
        'float32'
        """
        return draw("poisson", {"lam": lam}, shape, dtype, ctx, out, options)

    def negative_binomial(k=1, p=1, shape=None, dtype=None, ctx=None, out=None, **options):
        """Draw how many trials fail before `k` succeed, each with probability `p`.

        The other parameters are those of :func:`uniform`.

        >>> mx.nd.random.negative_binomial(10, 0.5, shape=(2, 2)).shape
        (2, 2)
        """
        return draw("negative_binomial", {"k": k, "p": p}, shape, dtype, ctx, out, options)

    def generalized_negative_binomial(mu=1, alpha=1, shape=None, dtype=None, ctx=None, out=None, **options):
        """Draw numbers of a negative binomial distribution of mean `mu` and dispersion `alpha`.

        The other parameters are those of :func:`uniform`.

        >>> mx.nd.random.generalized_negative_binomial(10, 0.5, shape=(2, 2)).shape
        (2, 2)
        """
        return draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, ctx, out, options)

    def randint(low, high, shape=None, dtype=None, ctx=None, out=None, **options):
        """Draw integers from `low` to below `high`.

        Examples
        --------
        >>> mx.nd.random.randint(5, 100, shape=(2, 2)).dtype.__name__
        'int32'
        """
        return draw("randint", {"low": low, "high": high}, shape, dtype, ctx, out, options)

    def multinomial(data, shape=None, get_prob=get_prob, out=None, dtype="int32", **options):
        """Choose positions along the last axis of `data`, which holds their probabilities.

        Parameters
        ----------
        data : NDArray or Symbol
        shape : int or tuple of int, optional
            How many choices are made of each row of `data`; by default one, without a dimension of its own.
        get_prob : bool
            Return the logarithms of the probabilities of the choices, too, which have a gradient.  As in MXNet, arrays do
            not by default, and symbols do.
        dtype : str
            Of the positions; `out` is that of :func:`uniform`.

        Examples
        --------
        >>> mx.nd.random.multinomial(mx.nd.array([[0, 1], [1, 0]]), shape=3).asnumpy().tolist()
        [[1, 1, 1], [0, 0, 0]]
        """
        given = {"shape": () if shape is None else shape, "get_prob": get_prob}
        given |= {"dtype": out} if isinstance(out, str) else {"dtype": dtype, "out": out}  # by position, symbols have the type
        return operator("_sample_multinomial")(data, **given, **options)

    def shuffle(data, **options):
        """Put what lies along the first axis into a random order.

        Examples
        --------
        >>> sorted(mx.nd.random.shuffle(mx.nd.array([1, 2, 3])).asnumpy().tolist())
        [1.0, 2.0, 3.0]
        """
        return operator("_shuffle")(data, **options)

    return {f.__name__: ends_at_caller(f) for f in (
        uniform, normal, randn, exponential, gamma, poisson, negative_binomial, generalized_negative_binomial, randint,
        multinomial, shuffle,
    )}  # fmt: skip


def contrib_functions(draw: Draw) -> dict[str, Callable]:
    """Return the functions of the namespace ``contrib`` that draw."""

    def rand_zipfian(true_classes: Any, num_sampled: int, range_max: int, ctx: Any = None) -> tuple[Any, Any, Any]:
        """Draw classes of an approximately Zipfian distribution, for a sampled softmax.

        The probability of class ``c`` is ``(log(c + 2) - log(c + 1)) / log(range_max + 1)``, with replacement: classes
        are numbered by how frequent they are.

        Parameters
        ----------
        true_classes : NDArray or Symbol
            The classes to tell from those drawn.
        num_sampled : int
            How many are drawn.
        range_max : int
            How many classes there are.
        ctx : Context, optional
            The device.

        Returns
        -------
        sampled, expected_true, expected_sampled : NDArray or Symbol
            The classes drawn (int64), and how often the true classes and those drawn are expected to be drawn (float64).

        Examples
        --------
        >>> sampled, true, _ = mx.nd.contrib.rand_zipfian(mx.nd.array([0, 3]), 4, 5)
        >>> print(sampled.shape, true.asnumpy().round(4))
        (4,) [1.5474 0.4982]
        """
        whole = math.log(range_max + 1)
        drawn = draw("uniform", {"low": 0, "high": whole}, (num_sampled,), "float64", ctx, None, {})
        sampled = (drawn.exp() - 1).astype("int64") % range_max
        if ctx is not None:
            true_classes = true_classes.as_in_context(ctx)

        def expected(classes: Any) -> Any:
            classes = classes.astype("float64")
            return ((classes + 2) / (classes + 1)).log() / whole * num_sampled

        return sampled, expected(true_classes), expected(sampled)

    return {"rand_zipfian": rand_zipfian}
