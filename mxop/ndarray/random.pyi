# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import NDArray

def exponential(
    lam: float = ...,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    ctx: str = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def normal(
    loc: float = ...,
    scale: float = ...,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    ctx: str = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def randint(
    low: float,
    high: float,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    ctx: str = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def uniform(
    low: float = ...,
    high: float = ...,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    ctx: str = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
