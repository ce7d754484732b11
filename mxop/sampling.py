"""MXNet's Python functions that draw random numbers: ``mx.nd.random.uniform``, ``mx.sym.random.randn``...

They differ from the operators in defaults and in names of parameters.  May import :mod:`.context` and :mod:`.errors`.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from .context import current_context
from .errors import OpTypeError

Draw = Callable[[str, dict, Any, Any, dict], Any]
_CPU0 = "cpu(0)"


def _numbers(name: str, params: dict[str, Any]) -> None:
    for key, value in params.items():
        if not isinstance(value, Number):
            raise OpTypeError(f"{name}: {key} is a {type(value).__name__}; expected a number (a parameter for "
                              "each element is not supported yet)")  # fmt: skip


def on_arrays(operator: Callable[[str], Callable]) -> Draw:
    """Return what draws arrays, given the function of a registered name."""

    def draw(name: str, params: dict[str, Any], shape: Any, dtype: Any, options: dict[str, Any]) -> Any:
        _numbers(f"nd.random.{name}", params)
        ctx, out = options.pop("ctx", None), options.get("out")
        if shape is None:
            shape = getattr(out, "shape", (1,))
        if dtype is None:
            dtype = getattr(out, "dtype", None)
        place = str(current_context() if ctx is None else ctx)
        if out is None and place != _CPU0:
            options["ctx"] = place
        return operator(f"_random_{name}")(**params, shape=shape, dtype=dtype, **options)

    return draw


def on_symbols(operator: Callable[[str], Callable]) -> Draw:
    """Return what makes symbols, given the function of a registered name."""

    def draw(name: str, params: dict[str, Any], shape: Any, dtype: Any, options: dict[str, Any]) -> Any:
        _numbers(f"sym.random.{name}", params)
        if shape is not None:
            options["shape"] = shape
        if dtype is not None:
            options["dtype"] = dtype
        return operator(f"_random_{name}")(**params, **options)

    return draw


def functions(draw: Draw) -> dict[str, Callable]:
    """Return the functions of a namespace."""

    def uniform(low: float = 0, high: float = 1, shape: Any = None, dtype: Any = None, **options: Any) -> Any:
        """Draw numbers of a uniform distribution from `low` to below `high`."""
        return draw("uniform", {"low": low, "high": high}, shape, dtype, options)

    def normal(loc: float = 0, scale: float = 1, shape: Any = None, dtype: Any = None, **options: Any) -> Any:
        """Draw numbers of a normal distribution of mean `loc` and standard deviation `scale`."""
        return draw("normal", {"loc": loc, "scale": scale}, shape, dtype, options)

    def randn(*shape: int, loc: float = 0, scale: float = 1, dtype: Any = None, **options: Any) -> Any:
        """Draw numbers of a normal distribution; the arguments are the shape."""
        return draw("normal", {"loc": loc, "scale": scale}, shape or None, dtype, options)

    def exponential(scale: float = 1, shape: Any = None, dtype: Any = None, **options: Any) -> Any:
        """Draw numbers of an exponential distribution of mean `scale`; its rate, `lam`, may be given instead."""
        _numbers("random.exponential", {"scale": scale})
        lam = options.pop("lam", None)
        return draw(
            "exponential", {"lam": lam if lam is not None else 1 / scale if scale else 0}, shape, dtype, options
        )

    def randint(low: int, high: int, shape: Any = None, dtype: Any = None, **options: Any) -> Any:
        """Draw integers from `low` to below `high`."""
        return draw("randint", {"low": low, "high": high}, shape, dtype, options)

    return {f.__name__: f for f in (uniform, normal, randn, exponential, randint)}
