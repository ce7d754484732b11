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
def CTCLoss(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    data_lengths: Symbol | None = ...,
    label_lengths: Symbol | None = ...,
    use_data_lengths: bool = ...,
    use_label_lengths: bool = ...,
    blank_label: Literal['first', 'last'] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def SparseEmbedding(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    *,
    input_dim: int,
    output_dim: int,
    dtype: DTypeLike | int = ...,
    sparse_grad: bool = ...,
    deterministic: bool = ...,
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
def allclose(
    a: Symbol | None = ...,
    b: Symbol | None = ...,
    rtol: float = ...,
    atol: float = ...,
    equal_nan: bool = ...,
    *,
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
def calibrate_entropy(
    hist: Symbol | None = ...,
    hist_edges: Symbol | None = ...,
    num_quantized_bins: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def count_sketch(
    data: Symbol | None = ...,
    h: Symbol | None = ...,
    s: Symbol | None = ...,
    *,
    out_dim: int,
    processing_batch_size: int = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def ctc_loss(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    data_lengths: Symbol | None = ...,
    label_lengths: Symbol | None = ...,
    use_data_lengths: bool = ...,
    use_label_lengths: bool = ...,
    blank_label: Literal['first', 'last'] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def dequantize(
    data: Symbol | None = ...,
    min_range: Symbol | None = ...,
    max_range: Symbol | None = ...,
    out_type: Literal['float32'] = ...,
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
def edge_id(
    data: Symbol | None = ...,
    u: Symbol | None = ...,
    v: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def fft(
    data: Symbol | None = ...,
    compute_size: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def getnnz(
    data: Symbol | None = ...,
    axis: int | None = ...,
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
def hawkesll(
    lda: Symbol | None = ...,
    alpha: Symbol | None = ...,
    beta: Symbol | None = ...,
    state: Symbol | None = ...,
    lags: Symbol | None = ...,
    marks: Symbol | None = ...,
    valid_length: Symbol | None = ...,
    max_time: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def ifft(
    data: Symbol | None = ...,
    compute_size: int = ...,
    *,
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
def interleaved_matmul_encdec_qk(
    queries: Symbol | None = ...,
    keys_values: Symbol | None = ...,
    *,
    heads: int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def interleaved_matmul_encdec_valatt(
    keys_values: Symbol | None = ...,
    attention: Symbol | None = ...,
    *,
    heads: int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def interleaved_matmul_selfatt_qk(
    queries_keys_values: Symbol | None = ...,
    *,
    heads: int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def interleaved_matmul_selfatt_valatt(
    queries_keys_values: Symbol | None = ...,
    attention: Symbol | None = ...,
    *,
    heads: int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def isfinite(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def isinf(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def isnan(
    data: Symbol | None = ...,
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
def quantize(
    data: Symbol | None = ...,
    min_range: Symbol | None = ...,
    max_range: Symbol | None = ...,
    out_type: Literal['int8', 'uint8'] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def quantize_asym(
    data: Symbol | None = ...,
    min_calib_range: float | None = ...,
    max_calib_range: float | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def quantize_v2(
    data: Symbol | None = ...,
    out_type: Literal['auto', 'int8', 'uint8'] = ...,
    min_calib_range: float | None = ...,
    max_calib_range: float | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def quantized_fully_connected(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    bias: Symbol | None = ...,
    min_data: Symbol | None = ...,
    max_data: Symbol | None = ...,
    min_weight: Symbol | None = ...,
    max_weight: Symbol | None = ...,
    min_bias: Symbol | None = ...,
    max_bias: Symbol | None = ...,
    *,
    num_hidden: int,
    no_bias: bool = ...,
    flatten: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def requantize(
    data: Symbol | None = ...,
    min_range: Symbol | None = ...,
    max_range: Symbol | None = ...,
    out_type: Literal['auto', 'int8', 'uint8'] = ...,
    min_calib_range: float | None = ...,
    max_calib_range: float | None = ...,
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
