# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import Symbol

def extractdiag(
    A: Symbol | None = ...,
    offset: int = ...,
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
