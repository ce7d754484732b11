# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike


class Scope:
    def __init__(self, record: bool | None, train: bool | None) -> None: ...
    def __enter__(self) -> Scope: ...
    def __exit__(self, *exception: object) -> None: ...


def __getattr__(name: str) -> Any: ...  # what only mxop itself uses
