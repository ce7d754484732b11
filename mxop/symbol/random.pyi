# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import Symbol

def exponential_like(
    data: Symbol | None = ...,
    lam: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def gamma_like(
    data: Symbol | None = ...,
    alpha: float = ...,
    beta: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def generalized_negative_binomial_like(
    data: Symbol | None = ...,
    mu: float = ...,
    alpha: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def negative_binomial_like(
    data: Symbol | None = ...,
    k: int = ...,
    p: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def normal_like(
    data: Symbol | None = ...,
    loc: float = ...,
    scale: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def pdf_dirichlet(
    sample: Symbol | None = ...,
    alpha: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def pdf_exponential(
    sample: Symbol | None = ...,
    lam: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def pdf_gamma(
    sample: Symbol | None = ...,
    alpha: Symbol | None = ...,
    beta: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def pdf_generalized_negative_binomial(
    sample: Symbol | None = ...,
    mu: Symbol | None = ...,
    alpha: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def pdf_negative_binomial(
    sample: Symbol | None = ...,
    k: Symbol | None = ...,
    p: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def pdf_normal(
    sample: Symbol | None = ...,
    mu: Symbol | None = ...,
    sigma: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def pdf_poisson(
    sample: Symbol | None = ...,
    lam: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def pdf_uniform(
    sample: Symbol | None = ...,
    low: Symbol | None = ...,
    high: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def poisson_like(
    data: Symbol | None = ...,
    lam: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def uniform_like(
    data: Symbol | None = ...,
    low: float = ...,
    high: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
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
