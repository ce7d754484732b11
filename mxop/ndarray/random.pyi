# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import NDArray

def exponential_like(
    data: NDArray,
    lam: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def gamma_like(
    data: NDArray,
    alpha: float = ...,
    beta: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def generalized_negative_binomial_like(
    data: NDArray,
    mu: float = ...,
    alpha: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def negative_binomial_like(
    data: NDArray,
    k: int = ...,
    p: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def normal_like(
    data: NDArray,
    loc: float = ...,
    scale: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def pdf_dirichlet(
    sample: NDArray,
    alpha: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def pdf_exponential(
    sample: NDArray,
    lam: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def pdf_gamma(
    sample: NDArray,
    alpha: NDArray,
    beta: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def pdf_generalized_negative_binomial(
    sample: NDArray,
    mu: NDArray,
    alpha: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def pdf_negative_binomial(
    sample: NDArray,
    k: NDArray,
    p: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def pdf_normal(
    sample: NDArray,
    mu: NDArray,
    sigma: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def pdf_poisson(
    sample: NDArray,
    lam: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def pdf_uniform(
    sample: NDArray,
    low: NDArray,
    high: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def poisson_like(
    data: NDArray,
    lam: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def uniform_like(
    data: NDArray,
    low: float = ...,
    high: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def exponential(
    scale: Any = ...,
    shape: Any = ...,
    dtype: Any = ...,
    ctx: Any = ...,
    out: Any = ...,
    **options: Any,
) -> Any: ...
def gamma(
    alpha: Any = ...,
    beta: Any = ...,
    shape: Any = ...,
    dtype: Any = ...,
    ctx: Any = ...,
    out: Any = ...,
    **options: Any,
) -> Any: ...
def generalized_negative_binomial(
    mu: Any = ...,
    alpha: Any = ...,
    shape: Any = ...,
    dtype: Any = ...,
    ctx: Any = ...,
    out: Any = ...,
    **options: Any,
) -> Any: ...
def multinomial(data: Any, shape: Any = ..., get_prob: bool = ..., dtype: Any = ..., **options: Any) -> Any: ...
def negative_binomial(
    k: Any = ...,
    p: Any = ...,
    shape: Any = ...,
    dtype: Any = ...,
    ctx: Any = ...,
    out: Any = ...,
    **options: Any,
) -> Any: ...
def normal(
    loc: Any = ...,
    scale: Any = ...,
    shape: Any = ...,
    dtype: Any = ...,
    ctx: Any = ...,
    out: Any = ...,
    **options: Any,
) -> Any: ...
def poisson(
    lam: Any = ...,
    shape: Any = ...,
    dtype: Any = ...,
    ctx: Any = ...,
    out: Any = ...,
    **options: Any,
) -> Any: ...
def randint(
    low: int,
    high: int,
    shape: Any = ...,
    dtype: Any = ...,
    ctx: Any = ...,
    out: Any = ...,
    **options: Any,
) -> Any: ...
def randn(
    *shape: int,
    loc: Any = ...,
    scale: Any = ...,
    dtype: Any = ...,
    ctx: Any = ...,
    out: Any = ...,
    **options: Any,
) -> Any: ...
def shuffle(data: Any, **options: Any) -> Any: ...
def uniform(
    low: Any = ...,
    high: Any = ...,
    shape: Any = ...,
    dtype: Any = ...,
    ctx: Any = ...,
    out: Any = ...,
    **options: Any,
) -> Any: ...
