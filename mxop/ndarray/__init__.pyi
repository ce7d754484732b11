# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mxop._core.core import NDArray as NDArray

from . import contrib as contrib
from . import image as image
from . import linalg as linalg
from . import random as random
from . import sparse as sparse
from .updates import all_finite as all_finite
from .creation import arange as arange
from .creation import array as array
from .sparse.arrays import cast_storage as cast_storage
from .creation import concatenate as concatenate
from .creation import empty as empty
from .creation import eye as eye
from .interop import from_dlpack as from_dlpack
from .creation import from_numpy as from_numpy
from .creation import full as full
from .creation import full_like as full_like
from .creation import histogram as histogram
from .creation import linspace as linspace
from .io import load as load
from .io import load_frombuffer as load_frombuffer
from .creation import moveaxis as moveaxis
from .updates import multi_all_finite as multi_all_finite
from .creation import onehot_encode as onehot_encode
from .creation import ones as ones
from .io import save as save
from .io import save_tobuffer as save_tobuffer
from .creation import split_v2 as split_v2
from .interop import to_dlpack_for_read as to_dlpack_for_read
from .interop import to_dlpack_for_write as to_dlpack_for_write
from .creation import zeros as zeros

def add(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def divide(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def equal(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def greater(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def greater_equal(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def hypot(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def lesser(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def lesser_equal(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def logical_and(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def logical_or(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def logical_xor(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def maximum(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def minimum(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def modulo(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def multiply(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def not_equal(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def pow(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def power(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def subtract(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def true_divide(lhs: NDArray | float, rhs: NDArray | float) -> NDArray: ...
def waitall() -> None: ...
def Activation(
    data: NDArray,
    act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'],
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def BatchNorm(
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
def BatchNorm_v1(
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
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def BlockGrad(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
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
def Cast(
    data: NDArray,
    dtype: DTypeLike | int,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def Concat(
    *data: NDArray | Sequence[NDArray],
    num_args: int = ...,
    dim: int = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def Convolution(
    data: NDArray | None = ...,
    weight: NDArray | None = ...,
    bias: NDArray | None = ...,
    *,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = ...,
    dilate: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    num_filter: int,
    num_group: int = ...,
    workspace: int = ...,
    no_bias: bool = ...,
    cudnn_tune: Literal['fastest', 'limited_workspace', 'off'] | None = ...,
    cudnn_off: bool = ...,
    layout: Literal['NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC'] | None = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def Convolution_v1(
    data: NDArray | None = ...,
    weight: NDArray | None = ...,
    bias: NDArray | None = ...,
    *,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = ...,
    dilate: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    num_filter: int,
    num_group: int = ...,
    workspace: int = ...,
    no_bias: bool = ...,
    cudnn_tune: Literal['fastest', 'limited_workspace', 'off'] | None = ...,
    cudnn_off: bool = ...,
    layout: Literal['NCDHW', 'NCHW', 'NDHWC', 'NHWC'] | None = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def Crop(
    *data: NDArray | Sequence[NDArray],
    num_args: int = ...,
    offset: int | Sequence[int] = ...,
    h_w: int | Sequence[int] = ...,
    center_crop: bool = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def Custom(
    *data: NDArray | Sequence[NDArray],
    op_type: str,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def Deconvolution(
    data: NDArray | None = ...,
    weight: NDArray | None = ...,
    bias: NDArray | None = ...,
    *,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = ...,
    dilate: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    adj: int | Sequence[int] = ...,
    target_shape: int | Sequence[int] = ...,
    num_filter: int,
    num_group: int = ...,
    workspace: int = ...,
    no_bias: bool = ...,
    cudnn_tune: Literal['fastest', 'limited_workspace', 'off'] | None = ...,
    cudnn_off: bool = ...,
    layout: Literal['NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC'] | None = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def Dropout(
    data: NDArray,
    p: float = ...,
    mode: Literal['training', 'always'] = ...,
    axes: int | Sequence[int] = ...,
    cudnn_off: bool | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def ElementWiseSum(
    *args: NDArray | Sequence[NDArray],
    num_args: int = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def Embedding(
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
def Flatten(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def FullyConnected(
    data: NDArray | None = ...,
    weight: NDArray | None = ...,
    bias: NDArray | None = ...,
    *,
    num_hidden: int,
    no_bias: bool = ...,
    flatten: bool = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def GroupNorm(
    data: NDArray,
    gamma: NDArray,
    beta: NDArray,
    num_groups: int = ...,
    eps: float = ...,
    output_mean_var: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def IdentityAttachKLSparseReg(
    data: NDArray,
    moving_avg: NDArray,
    sparseness_target: float = ...,
    penalty: float = ...,
    momentum: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def InstanceNorm(
    data: NDArray,
    gamma: NDArray,
    beta: NDArray,
    eps: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def L2Normalization(
    data: NDArray,
    eps: float = ...,
    mode: Literal['channel', 'instance', 'spatial'] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def LRN(
    data: NDArray,
    alpha: float = ...,
    beta: float = ...,
    knorm: float = ...,
    *,
    nsize: int,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def LayerNorm(
    data: NDArray,
    gamma: NDArray,
    beta: NDArray,
    axis: int = ...,
    eps: float = ...,
    output_mean_var: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def LeakyReLU(
    data: NDArray | None = ...,
    gamma: NDArray | None = ...,
    act_type: Literal['elu', 'gelu', 'leaky', 'prelu', 'rrelu', 'selu'] = ...,
    slope: float = ...,
    lower_bound: float = ...,
    upper_bound: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def LinearRegressionOutput(
    data: NDArray,
    label: NDArray,
    grad_scale: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def LogisticRegressionOutput(
    data: NDArray,
    label: NDArray,
    grad_scale: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def MAERegressionOutput(
    data: NDArray,
    label: NDArray,
    grad_scale: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def MakeLoss(
    data: NDArray,
    grad_scale: float = ...,
    valid_thresh: float = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def Pad(
    data: NDArray,
    mode: Literal['constant', 'edge', 'reflect'],
    pad_width: int | Sequence[int],
    constant_value: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def Pooling(
    data: NDArray,
    kernel: int | Sequence[int] = ...,
    pool_type: Literal['avg', 'lp', 'max', 'sum'] = ...,
    global_pool: bool = ...,
    cudnn_off: bool = ...,
    pooling_convention: Literal['full', 'same', 'valid'] = ...,
    stride: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    p_value: int | None = ...,
    count_include_pad: bool | None = ...,
    layout: Literal['NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC', 'NWC'] | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def Pooling_v1(
    data: NDArray,
    kernel: int | Sequence[int] = ...,
    pool_type: Literal['avg', 'max', 'sum'] = ...,
    global_pool: bool = ...,
    pooling_convention: Literal['full', 'valid'] = ...,
    stride: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def RNN(
    data: NDArray | None = ...,
    parameters: NDArray | None = ...,
    state: NDArray | None = ...,
    state_cell: NDArray | None = ...,
    sequence_length: NDArray | None = ...,
    *,
    state_size: int,
    num_layers: int,
    bidirectional: bool = ...,
    mode: Literal['gru', 'lstm', 'rnn_relu', 'rnn_tanh'],
    p: float = ...,
    state_outputs: bool = ...,
    projection_size: int | None = ...,
    lstm_state_clip_min: float | None = ...,
    lstm_state_clip_max: float | None = ...,
    lstm_state_clip_nan: bool = ...,
    use_sequence_length: bool = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def Reshape(
    data: NDArray,
    shape: int | Sequence[int] = ...,
    reverse: bool = ...,
    target_shape: int | Sequence[int] = ...,
    keep_highest: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def SVMOutput(
    data: NDArray,
    label: NDArray,
    margin: float = ...,
    regularization_coefficient: float = ...,
    use_linear: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def SequenceLast(
    data: NDArray | None = ...,
    sequence_length: NDArray | None = ...,
    use_sequence_length: bool = ...,
    axis: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def SequenceMask(
    data: NDArray | None = ...,
    sequence_length: NDArray | None = ...,
    use_sequence_length: bool = ...,
    value: float = ...,
    axis: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def SequenceReverse(
    data: NDArray | None = ...,
    sequence_length: NDArray | None = ...,
    use_sequence_length: bool = ...,
    axis: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
@overload
def SliceChannel(  # type: ignore[overload-overlap]
    data: NDArray,
    num_outputs: Literal[1],
    axis: int = ...,
    squeeze_axis: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
@overload
def SliceChannel(
    data: NDArray,
    num_outputs: int,
    axis: int = ...,
    squeeze_axis: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def Softmax(
    data: NDArray,
    label: NDArray,
    grad_scale: float = ...,
    ignore_label: float = ...,
    multi_output: bool = ...,
    use_ignore: bool = ...,
    preserve_shape: bool = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    out_grad: bool = ...,
    smooth_alpha: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def SoftmaxActivation(
    data: NDArray,
    mode: Literal['channel', 'instance'] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def SoftmaxOutput(
    data: NDArray,
    label: NDArray,
    grad_scale: float = ...,
    ignore_label: float = ...,
    multi_output: bool = ...,
    use_ignore: bool = ...,
    preserve_shape: bool = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    out_grad: bool = ...,
    smooth_alpha: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def SwapAxis(
    data: NDArray,
    dim1: int = ...,
    dim2: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def UpSampling(
    *data: NDArray | Sequence[NDArray],
    scale: int,
    num_filter: int = ...,
    sample_type: Literal['bilinear', 'nearest'],
    multi_input_mode: Literal['concat', 'sum'] = ...,
    num_args: int = ...,
    workspace: int = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def abs(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def adam_update(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    lr: float,
    beta1: float = ...,
    beta2: float = ...,
    epsilon: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    lazy_update: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def add_n(
    *args: NDArray | Sequence[NDArray],
    num_args: int = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def amp_cast(
    data: NDArray,
    dtype: DTypeLike | int,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
@overload
def amp_multicast(  # type: ignore[overload-overlap]
    *data: NDArray | Sequence[NDArray],
    num_outputs: Literal[1],
    cast_narrow: bool = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
@overload
def amp_multicast(
    *data: NDArray | Sequence[NDArray],
    num_outputs: int,
    cast_narrow: bool = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def arccos(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def arccosh(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def arcsin(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def arcsinh(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def arctan(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def arctanh(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def argmax(
    data: NDArray,
    axis: int | None = ...,
    keepdims: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def argmax_channel(
    data: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def argmin(
    data: NDArray,
    axis: int | None = ...,
    keepdims: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def argsort(
    data: NDArray,
    axis: int | None = ...,
    is_ascend: bool = ...,
    dtype: DTypeLike | int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def batch_dot(
    lhs: NDArray,
    rhs: NDArray,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    forward_stype: Literal['csr', 'default', 'row_sparse'] | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def batch_take(
    a: NDArray,
    indices: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_add(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_axes(
    data: NDArray,
    axis: int | Sequence[int] = ...,
    size: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_axis(
    data: NDArray,
    axis: int | Sequence[int] = ...,
    size: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_div(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_equal(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_greater(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_greater_equal(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_hypot(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_lesser(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_lesser_equal(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_like(
    lhs: NDArray,
    rhs: NDArray,
    lhs_axes: int | Sequence[int] | None = ...,
    rhs_axes: int | Sequence[int] | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_logical_and(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_logical_or(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_logical_xor(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_maximum(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_minimum(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_minus(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_mod(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_mul(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_not_equal(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_plus(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_power(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_sub(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def broadcast_to(
    data: NDArray,
    shape: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def cast(
    data: NDArray,
    dtype: DTypeLike | int,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def cbrt(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def ceil(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def choose_element_0index(
    data: NDArray,
    index: NDArray,
    axis: int | None = ...,
    keepdims: bool = ...,
    mode: Literal['clip', 'wrap'] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def clip(
    data: NDArray,
    a_min: float,
    a_max: float,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def col2im(
    data: NDArray,
    output_size: int | Sequence[int],
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = ...,
    dilate: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def concat(
    *data: NDArray | Sequence[NDArray],
    num_args: int = ...,
    dim: int = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def cos(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def cosh(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def crop(
    data: NDArray,
    begin: int | Sequence[int],
    end: int | Sequence[int],
    step: int | Sequence[int] = ...,
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
def cumsum(
    a: NDArray,
    axis: int | None = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def degrees(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def depth_to_space(
    data: NDArray,
    block_size: int,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def diag(
    data: NDArray,
    k: int = ...,
    axis1: int = ...,
    axis2: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def digamma(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def dot(
    lhs: NDArray,
    rhs: NDArray,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    forward_stype: Literal['csr', 'default', 'row_sparse'] | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def elemwise_add(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def elemwise_div(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def elemwise_mul(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def elemwise_sub(
    lhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def erf(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def erfinv(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def exp(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def expand_dims(
    data: NDArray,
    axis: int,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def expm1(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def fill_element_0index(
    lhs: NDArray,
    mhs: NDArray,
    rhs: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def fix(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def flatten(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def flip(
    data: NDArray,
    axis: int | Sequence[int],
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def floor(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def ftml_update(
    weight: NDArray,
    grad: NDArray,
    d: NDArray,
    v: NDArray,
    z: NDArray,
    lr: float,
    beta1: float = ...,
    beta2: float = ...,
    epsilon: float = ...,
    *,
    t: int,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_grad: float = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def ftrl_update(
    weight: NDArray,
    grad: NDArray,
    z: NDArray,
    n: NDArray,
    lr: float,
    lamda1: float = ...,
    beta: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def gamma(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def gammaln(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def gather_nd(
    data: NDArray,
    indices: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def hard_sigmoid(
    data: NDArray,
    alpha: float = ...,
    beta: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def identity(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def im2col(
    data: NDArray,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = ...,
    dilate: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def khatri_rao(
    *args: NDArray | Sequence[NDArray],
    num_args: int = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def lamb_update_phase1(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    beta1: float = ...,
    beta2: float = ...,
    epsilon: float = ...,
    *,
    t: int,
    bias_correction: bool = ...,
    wd: float,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def lamb_update_phase2(
    weight: NDArray,
    g: NDArray,
    r1: NDArray,
    r2: NDArray,
    lr: float,
    lower_bound: float = ...,
    upper_bound: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def linalg_det(A: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def linalg_extractdiag(
    A: NDArray,
    offset: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def linalg_extracttrian(
    A: NDArray,
    offset: int = ...,
    lower: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def linalg_gelqf(
    A: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def linalg_gemm(
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
def linalg_gemm2(
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
def linalg_inverse(A: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def linalg_makediag(
    A: NDArray,
    offset: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def linalg_maketrian(
    A: NDArray,
    offset: int = ...,
    lower: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def linalg_potrf(
    A: NDArray,
    lower: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def linalg_potri(
    A: NDArray,
    lower: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def linalg_slogdet(
    A: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def linalg_sumlogdiag(
    A: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def linalg_syrk(
    A: NDArray,
    transpose: bool = ...,
    alpha: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def linalg_trmm(
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
def linalg_trsm(
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
def log(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def log10(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def log1p(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def log2(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def log_sigmoid(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def log_softmax(
    data: NDArray | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: DTypeLike | int | None = ...,
    use_length: bool | None = ...,
    *,
    length: NDArray | None = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def logical_not(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def make_loss(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def max(
    data: NDArray,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def max_axis(
    data: NDArray,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def mean(
    data: NDArray,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def min(
    data: NDArray,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def min_axis(
    data: NDArray,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def moments(
    data: NDArray,
    axes: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def mp_lamb_update_phase1(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    weight32: NDArray,
    beta1: float = ...,
    beta2: float = ...,
    epsilon: float = ...,
    *,
    t: int,
    bias_correction: bool = ...,
    wd: float,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def mp_lamb_update_phase2(
    weight: NDArray,
    g: NDArray,
    r1: NDArray,
    r2: NDArray,
    weight32: NDArray,
    lr: float,
    lower_bound: float = ...,
    upper_bound: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def mp_nag_mom_update(
    weight: NDArray,
    grad: NDArray,
    mom: NDArray,
    weight32: NDArray,
    lr: float,
    momentum: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def mp_sgd_mom_update(
    weight: NDArray,
    grad: NDArray,
    mom: NDArray,
    weight32: NDArray,
    lr: float,
    momentum: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    lazy_update: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def mp_sgd_update(
    weight: NDArray,
    grad: NDArray,
    weight32: NDArray,
    lr: float,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    lazy_update: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def multi_lars(
    lrs: NDArray,
    weights_sum_sq: NDArray,
    grads_sum_sq: NDArray,
    wds: NDArray,
    eta: float,
    eps: float,
    rescale_grad: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def multi_mp_sgd_mom_update(
    *data: NDArray | Sequence[NDArray],
    lrs: float | Sequence[float],
    wds: float | Sequence[float],
    num_weights: int = ...,
    momentum: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def multi_mp_sgd_update(
    *data: NDArray | Sequence[NDArray],
    lrs: float | Sequence[float],
    wds: float | Sequence[float],
    num_weights: int = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def multi_sgd_mom_update(
    *data: NDArray | Sequence[NDArray],
    lrs: float | Sequence[float],
    wds: float | Sequence[float],
    num_weights: int = ...,
    momentum: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def multi_sgd_update(
    *data: NDArray | Sequence[NDArray],
    lrs: float | Sequence[float],
    wds: float | Sequence[float],
    num_weights: int = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def multi_sum_sq(
    *data: NDArray | Sequence[NDArray],
    num_arrays: int,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def nag_mom_update(
    weight: NDArray,
    grad: NDArray,
    mom: NDArray,
    lr: float,
    momentum: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def nanprod(
    data: NDArray,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def nansum(
    data: NDArray,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def negative(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def norm(
    data: NDArray,
    ord: Literal[1, 2] = ...,
    axis: int | Sequence[int] | None = ...,
    out_dtype: DTypeLike | int | None = ...,
    keepdims: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def normal(
    loc: float = ...,
    scale: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def one_hot(
    indices: NDArray,
    depth: int,
    on_value: float = ...,
    off_value: float = ...,
    dtype: DTypeLike | int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def ones_like(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def pad(
    data: NDArray,
    mode: Literal['constant', 'edge', 'reflect'],
    pad_width: int | Sequence[int],
    constant_value: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def pick(
    data: NDArray,
    index: NDArray,
    axis: int | None = ...,
    keepdims: bool = ...,
    mode: Literal['clip', 'wrap'] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def preloaded_multi_mp_sgd_mom_update(
    *data: NDArray | Sequence[NDArray],
    num_weights: int = ...,
    momentum: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def preloaded_multi_mp_sgd_update(
    *data: NDArray | Sequence[NDArray],
    num_weights: int = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def preloaded_multi_sgd_mom_update(
    *data: NDArray | Sequence[NDArray],
    num_weights: int = ...,
    momentum: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def preloaded_multi_sgd_update(
    *data: NDArray | Sequence[NDArray],
    num_weights: int = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def prod(
    data: NDArray,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
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
def radians(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def random_exponential(
    lam: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_gamma(
    alpha: float = ...,
    beta: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_generalized_negative_binomial(
    mu: float = ...,
    alpha: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_negative_binomial(
    k: int = ...,
    p: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_normal(
    loc: float = ...,
    scale: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_pdf_dirichlet(
    sample: NDArray,
    alpha: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_pdf_exponential(
    sample: NDArray,
    lam: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_pdf_gamma(
    sample: NDArray,
    alpha: NDArray,
    beta: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_pdf_generalized_negative_binomial(
    sample: NDArray,
    mu: NDArray,
    alpha: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_pdf_negative_binomial(
    sample: NDArray,
    k: NDArray,
    p: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_pdf_normal(
    sample: NDArray,
    mu: NDArray,
    sigma: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_pdf_poisson(
    sample: NDArray,
    lam: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_pdf_uniform(
    sample: NDArray,
    low: NDArray,
    high: NDArray,
    is_log: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_poisson(
    lam: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_randint(
    low: float,
    high: float,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def random_uniform(
    low: float = ...,
    high: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def ravel_multi_index(
    data: NDArray,
    shape: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def rcbrt(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def reciprocal(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def relu(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def repeat(
    data: NDArray,
    repeats: int,
    axis: int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def reset_arrays(
    *data: NDArray | Sequence[NDArray],
    num_arrays: int,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def reshape(
    data: NDArray,
    shape: int | Sequence[int] = ...,
    reverse: bool = ...,
    target_shape: int | Sequence[int] = ...,
    keep_highest: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def reshape_like(
    lhs: NDArray,
    rhs: NDArray,
    lhs_begin: int | None = ...,
    lhs_end: int | None = ...,
    rhs_begin: int | None = ...,
    rhs_end: int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def reverse(
    data: NDArray,
    axis: int | Sequence[int],
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def rint(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def rmsprop_update(
    weight: NDArray,
    grad: NDArray,
    n: NDArray,
    lr: float,
    gamma1: float = ...,
    epsilon: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    clip_weights: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def rmspropalex_update(
    weight: NDArray,
    grad: NDArray,
    n: NDArray,
    g: NDArray,
    delta: NDArray,
    lr: float,
    gamma1: float = ...,
    gamma2: float = ...,
    epsilon: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    clip_weights: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def round(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def rsqrt(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def sample_exponential(
    lam: NDArray,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sample_gamma(
    alpha: NDArray,
    beta: NDArray,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sample_generalized_negative_binomial(
    mu: NDArray,
    alpha: NDArray,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sample_multinomial(
    data: NDArray,
    shape: int | Sequence[int] = ...,
    get_prob: bool = ...,
    dtype: DTypeLike | int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def sample_negative_binomial(
    k: NDArray,
    p: NDArray,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sample_normal(
    mu: NDArray,
    sigma: NDArray,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sample_poisson(
    lam: NDArray,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sample_uniform(
    low: NDArray,
    high: NDArray,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def scatter_nd(
    data: NDArray,
    indices: NDArray,
    shape: int | Sequence[int],
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sgd_mom_update(
    weight: NDArray,
    grad: NDArray,
    mom: NDArray,
    lr: float,
    momentum: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    lazy_update: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sgd_update(
    weight: NDArray,
    grad: NDArray,
    lr: float,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    lazy_update: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def shape_array(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def shuffle(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def sigmoid(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def sign(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def signsgd_update(
    weight: NDArray,
    grad: NDArray,
    lr: float,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def signum_update(
    weight: NDArray,
    grad: NDArray,
    mom: NDArray,
    lr: float,
    momentum: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    wd_lh: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sin(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def sinh(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def size_array(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def slice(
    data: NDArray,
    begin: int | Sequence[int],
    end: int | Sequence[int],
    step: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def slice_axis(
    data: NDArray,
    axis: int,
    begin: int,
    end: int | None,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def slice_like(
    data: NDArray,
    shape_like: NDArray,
    axes: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def smooth_l1(
    data: NDArray,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def softmax(
    data: NDArray | None = ...,
    length: NDArray | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: DTypeLike | int | None = ...,
    use_length: bool | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def softmax_cross_entropy(
    data: NDArray,
    label: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def softmin(
    data: NDArray | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: DTypeLike | int | None = ...,
    use_length: bool | None = ...,
    *,
    length: NDArray | None = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def softsign(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def sort(
    data: NDArray,
    axis: int | None = ...,
    is_ascend: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def space_to_depth(
    data: NDArray,
    block_size: int,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
@overload
def split(  # type: ignore[overload-overlap]
    data: NDArray,
    num_outputs: Literal[1],
    axis: int = ...,
    squeeze_axis: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
@overload
def split(
    data: NDArray,
    num_outputs: int,
    axis: int = ...,
    squeeze_axis: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> list[NDArray]: ...
def sqrt(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def square(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def squeeze(
    data: NDArray,
    axis: int | Sequence[int] | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def stack(
    *data: NDArray | Sequence[NDArray],
    axis: int = ...,
    num_args: int = ...,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def stop_gradient(
    data: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sum(
    data: NDArray,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sum_axis(
    data: NDArray,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def swapaxes(
    data: NDArray,
    dim1: int = ...,
    dim2: int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def take(
    a: NDArray,
    indices: NDArray,
    axis: int = ...,
    mode: Literal['clip', 'raise', 'wrap'] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def tan(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def tanh(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def tile(
    data: NDArray,
    reps: int | Sequence[int],
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def topk(
    data: NDArray,
    axis: int | None = ...,
    k: int = ...,
    ret_typ: Literal['both', 'indices', 'mask', 'value'] = ...,
    is_ascend: bool = ...,
    dtype: DTypeLike | int = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> Any: ...
def transpose(
    data: NDArray,
    axes: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def trunc(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def uniform(
    low: float = ...,
    high: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def unravel_index(
    data: NDArray,
    shape: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def where(
    condition: NDArray,
    x: NDArray,
    y: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def zeros_like(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...

_internal: Any
op: Any

def __getattr__(name: str) -> Any: ...  # operators that users and other packages register
