# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import NDArray

def extractdiag(
    A: NDArray,
    offset: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def makediag(
    A: NDArray,
    offset: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
