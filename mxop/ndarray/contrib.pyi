# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import NDArray

def AdaptiveAvgPooling2D(
    data: NDArray,
    output_size: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def BilinearResize2D(
    data: NDArray | None = ...,
    like: NDArray | None = ...,
    height: int = ...,
    width: int = ...,
    scale_height: float | None = ...,
    scale_width: float | None = ...,
    mode: Literal['size', 'like', 'odd_scale', 'to_even_down', 'to_even_up', 'to_odd_down', 'to_odd_up'] = ...,
    align_corners: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def arange_like(
    data: NDArray,
    start: float = ...,
    step: float = ...,
    repeat: int = ...,
    ctx: str = ...,
    axis: int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def boolean_mask(
    data: NDArray,
    index: NDArray,
    axis: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def div_sqrt_dim(
    data: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def gradientmultiplier(
    data: NDArray,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def quadratic(
    data: NDArray,
    a: float = ...,
    b: float = ...,
    c: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def round_ste(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def sign_ste(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def cond(pred: Any, then_func: Callable, else_func: Callable) -> Any: ...
def foreach(body: Callable, data: Any, init_states: Any) -> tuple[Any, Any]: ...
def rand_zipfian(true_classes: Any, num_sampled: int, range_max: int, ctx: Any = ...) -> tuple[Any, Any, Any]: ...
def while_loop(cond: Callable, func: Callable, loop_vars: Any, max_iterations: int | None = ...) -> tuple[Any, Any]: ...
