# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import Symbol

def det(
    A: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def extractdiag(
    A: Symbol | None = ...,
    offset: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def extracttrian(
    A: Symbol | None = ...,
    offset: int = ...,
    lower: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def gelqf(
    A: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def gemm(
    A: Symbol | None = ...,
    B: Symbol | None = ...,
    C: Symbol | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    alpha: float = ...,
    beta: float = ...,
    axis: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def gemm2(
    A: Symbol | None = ...,
    B: Symbol | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    alpha: float = ...,
    axis: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def inverse(
    A: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def makediag(
    A: Symbol | None = ...,
    offset: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def maketrian(
    A: Symbol | None = ...,
    offset: int = ...,
    lower: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def potrf(
    A: Symbol | None = ...,
    lower: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def potri(
    A: Symbol | None = ...,
    lower: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def slogdet(
    A: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sumlogdiag(
    A: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def syevd(
    A: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def syrk(
    A: Symbol | None = ...,
    transpose: bool = ...,
    alpha: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def trmm(
    A: Symbol | None = ...,
    B: Symbol | None = ...,
    transpose: bool = ...,
    rightside: bool = ...,
    lower: bool = ...,
    alpha: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def trsm(
    A: Symbol | None = ...,
    B: Symbol | None = ...,
    transpose: bool = ...,
    rightside: bool = ...,
    lower: bool = ...,
    alpha: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
