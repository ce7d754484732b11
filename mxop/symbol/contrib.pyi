# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import Symbol

def AdaptiveAvgPooling2D(
    data: Symbol | None = ...,
    output_size: int | Sequence[int] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def BatchNormWithReLU(
    data: Symbol | None = ...,
    gamma: Symbol | None = ...,
    beta: Symbol | None = ...,
    moving_mean: Symbol | None = ...,
    moving_var: Symbol | None = ...,
    eps: float = ...,
    momentum: float = ...,
    fix_gamma: bool = ...,
    use_global_stats: bool = ...,
    output_mean_var: bool = ...,
    axis: int = ...,
    cudnn_off: bool = ...,
    min_calib_range: float | None = ...,
    max_calib_range: float | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def BilinearResize2D(
    data: Symbol | None = ...,
    like: Symbol | None = ...,
    height: int = ...,
    width: int = ...,
    scale_height: float | None = ...,
    scale_width: float | None = ...,
    mode: Literal['size', 'like', 'odd_scale', 'to_even_down', 'to_even_up', 'to_odd_down', 'to_odd_up'] = ...,
    align_corners: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def SyncBatchNorm(
    data: Symbol | None = ...,
    gamma: Symbol | None = ...,
    beta: Symbol | None = ...,
    moving_mean: Symbol | None = ...,
    moving_var: Symbol | None = ...,
    eps: float = ...,
    momentum: float = ...,
    fix_gamma: bool = ...,
    use_global_stats: bool = ...,
    output_mean_var: bool = ...,
    ndev: int = ...,
    *,
    key: str,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def arange_like(
    data: Symbol | None = ...,
    start: float = ...,
    step: float = ...,
    repeat: int = ...,
    ctx: str = ...,
    axis: int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def boolean_mask(
    data: Symbol | None = ...,
    index: Symbol | None = ...,
    axis: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def div_sqrt_dim(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def gradientmultiplier(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def group_adagrad_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    history: Symbol | None = ...,
    *,
    lr: float,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    epsilon: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def index_array(
    data: Symbol | None = ...,
    axes: int | Sequence[int] | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def index_copy(
    old_tensor: Symbol | None = ...,
    index_vector: Symbol | None = ...,
    new_tensor: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def quadratic(
    data: Symbol | None = ...,
    a: float = ...,
    b: float = ...,
    c: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def round_ste(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sign_ste(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def cond(pred: Any, then_func: Callable, else_func: Callable, name: str = ...) -> Any: ...
def foreach(body: Callable, data: Any, init_states: Any, name: str = ...) -> tuple[Any, Any]: ...
def rand_zipfian(true_classes: Any, num_sampled: int, range_max: int, ctx: Any = ...) -> tuple[Any, Any, Any]: ...
def while_loop(
    cond: Callable,
    func: Callable,
    loop_vars: Any,
    max_iterations: int | None = ...,
    name: str = ...,
) -> tuple[Any, Any]: ...
