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
def BatchNormWithReLU(
    data: NDArray,
    gamma: NDArray,
    beta: NDArray,
    moving_mean: NDArray,
    moving_var: NDArray,
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
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
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
def CTCLoss(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    data_lengths: NDArray | None = ...,
    label_lengths: NDArray | None = ...,
    use_data_lengths: bool = ...,
    use_label_lengths: bool = ...,
    blank_label: Literal['first', 'last'] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def SparseEmbedding(
    data: NDArray,
    weight: NDArray,
    input_dim: int,
    output_dim: int,
    dtype: DTypeLike | int = ...,
    sparse_grad: bool = ...,
    deterministic: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def SyncBatchNorm(
    data: NDArray,
    gamma: NDArray,
    beta: NDArray,
    moving_mean: NDArray,
    moving_var: NDArray,
    eps: float = ...,
    momentum: float = ...,
    fix_gamma: bool = ...,
    use_global_stats: bool = ...,
    output_mean_var: bool = ...,
    ndev: int = ...,
    *,
    key: str,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def allclose(
    a: NDArray,
    b: NDArray,
    rtol: float = ...,
    atol: float = ...,
    equal_nan: bool = ...,
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
def calibrate_entropy(
    hist: NDArray,
    hist_edges: NDArray,
    num_quantized_bins: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def count_sketch(
    data: NDArray,
    h: NDArray,
    s: NDArray,
    out_dim: int,
    processing_batch_size: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def ctc_loss(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    data_lengths: NDArray | None = ...,
    label_lengths: NDArray | None = ...,
    use_data_lengths: bool = ...,
    use_label_lengths: bool = ...,
    blank_label: Literal['first', 'last'] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def dequantize(
    data: NDArray,
    min_range: NDArray,
    max_range: NDArray,
    out_type: Literal['float32'] = ...,
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
def edge_id(
    data: NDArray,
    u: NDArray,
    v: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def fft(
    data: NDArray,
    compute_size: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def getnnz(
    data: NDArray,
    axis: int | None = ...,
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
def group_adagrad_update(
    weight: NDArray,
    grad: NDArray,
    history: NDArray,
    lr: float,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    epsilon: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def hawkesll(
    lda: NDArray,
    alpha: NDArray,
    beta: NDArray,
    state: NDArray,
    lags: NDArray,
    marks: NDArray,
    valid_length: NDArray,
    max_time: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def ifft(
    data: NDArray,
    compute_size: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def index_array(
    data: NDArray,
    axes: int | Sequence[int] | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def index_copy(
    old_tensor: NDArray,
    index_vector: NDArray,
    new_tensor: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def interleaved_matmul_encdec_qk(
    queries: NDArray,
    keys_values: NDArray,
    heads: int,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def interleaved_matmul_encdec_valatt(
    keys_values: NDArray,
    attention: NDArray,
    heads: int,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def interleaved_matmul_selfatt_qk(
    queries_keys_values: NDArray,
    heads: int,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def interleaved_matmul_selfatt_valatt(
    queries_keys_values: NDArray,
    attention: NDArray,
    heads: int,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def isfinite(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def isinf(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def isnan(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def quadratic(
    data: NDArray,
    a: float = ...,
    b: float = ...,
    c: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def quantize(
    data: NDArray,
    min_range: NDArray,
    max_range: NDArray,
    out_type: Literal['int8', 'uint8'] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def quantize_asym(
    data: NDArray,
    min_calib_range: float | None = ...,
    max_calib_range: float | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def quantize_v2(
    data: NDArray,
    out_type: Literal['auto', 'int8', 'uint8'] = ...,
    min_calib_range: float | None = ...,
    max_calib_range: float | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def quantized_fully_connected(
    data: NDArray | None = ...,
    weight: NDArray | None = ...,
    bias: NDArray | None = ...,
    min_data: NDArray | None = ...,
    max_data: NDArray | None = ...,
    min_weight: NDArray | None = ...,
    max_weight: NDArray | None = ...,
    min_bias: NDArray | None = ...,
    max_bias: NDArray | None = ...,
    *,
    num_hidden: int,
    no_bias: bool = ...,
    flatten: bool = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def requantize(
    data: NDArray,
    min_range: NDArray,
    max_range: NDArray,
    out_type: Literal['auto', 'int8', 'uint8'] = ...,
    min_calib_range: float | None = ...,
    max_calib_range: float | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def round_ste(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def sign_ste(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def adamw_update(
    weight: Any,
    grad: Any,
    mean: Any,
    var: Any,
    rescale_grad: Any,
    lr: float,
    eta: float,
    **params: Any,
) -> Any: ...
def cond(pred: Any, then_func: Callable, else_func: Callable) -> Any: ...
def foreach(body: Callable, data: Any, init_states: Any) -> tuple[Any, Any]: ...
def mp_adamw_update(
    weight: Any,
    grad: Any,
    mean: Any,
    var: Any,
    weight32: Any,
    rescale_grad: Any,
    lr: float,
    eta: float,
    **params: Any,
) -> Any: ...
def multi_adamw_update(
    weights: Sequence[Any],
    grads: Sequence[Any],
    mean: Sequence[Any],
    var: Sequence[Any],
    rescale_grad: Any,
    lrs: Any,
    wds: Any,
    etas: Any,
    size: int = ...,
    **params: Any,
) -> Any: ...
def multi_lamb_update(
    weights: Sequence[Any],
    grads: Sequence[Any],
    mean: Sequence[Any],
    var: Sequence[Any],
    step_count: Any,
    lrs: Any,
    wds: Any,
    num_tensors: int = ...,
    **params: Any,
) -> Any: ...
def multi_mp_adamw_update(
    weights: Sequence[Any],
    grads: Sequence[Any],
    mean: Sequence[Any],
    var: Sequence[Any],
    weights32: Sequence[Any],
    rescale_grad: Any,
    lrs: Any,
    wds: Any,
    etas: Any,
    size: int = ...,
    **params: Any,
) -> Any: ...
def multi_mp_lamb_update(
    weights: Sequence[Any],
    grads: Sequence[Any],
    mean: Sequence[Any],
    var: Sequence[Any],
    weights32: Sequence[Any],
    step_count: Any,
    lrs: Any,
    wds: Any,
    num_tensors: int = ...,
    **params: Any,
) -> Any: ...
def rand_zipfian(true_classes: Any, num_sampled: int, range_max: int, ctx: Any = ...) -> tuple[Any, Any, Any]: ...
def while_loop(cond: Callable, func: Callable, loop_vars: Any, max_iterations: int | None = ...) -> tuple[Any, Any]: ...
