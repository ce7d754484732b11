# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import NDArray

def det(A: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def extractdiag(
    A: NDArray,
    offset: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def extracttrian(
    A: NDArray,
    offset: int = ...,
    lower: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def gelqf(A: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> list[NDArray]: ...
def gemm(
    A: NDArray,
    B: NDArray,
    C: NDArray,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    alpha: float = ...,
    beta: float = ...,
    axis: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def gemm2(
    A: NDArray,
    B: NDArray,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    alpha: float = ...,
    axis: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def inverse(A: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def makediag(
    A: NDArray,
    offset: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def maketrian(
    A: NDArray,
    offset: int = ...,
    lower: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def potrf(
    A: NDArray,
    lower: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def potri(
    A: NDArray,
    lower: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def slogdet(A: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> list[NDArray]: ...
def sumlogdiag(A: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def syevd(A: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> list[NDArray]: ...
def syrk(
    A: NDArray,
    transpose: bool = ...,
    alpha: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def trmm(
    A: NDArray,
    B: NDArray,
    transpose: bool = ...,
    rightside: bool = ...,
    lower: bool = ...,
    alpha: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def trsm(
    A: NDArray,
    B: NDArray,
    transpose: bool = ...,
    rightside: bool = ...,
    lower: bool = ...,
    alpha: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
