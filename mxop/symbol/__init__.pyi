# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import contrib as contrib
from . import image as image
from . import linalg as linalg
from . import random as random
from . import sparse as sparse
from .symbol import Group as Group
from .symbol import Symbol as Symbol
from .symbol import Variable as Variable
from .creation import arange as arange
from .creation import eye as eye
from .symbol import fromjson as fromjson
from .creation import full as full
from .creation import histogram as histogram
from .creation import linspace as linspace
from .symbol import load as load
from .symbol import load_json as load_json
from .creation import ones as ones
from .creation import split_v2 as split_v2
from .symbol import var as var
from .creation import zeros as zeros

def add(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def divide(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def equal(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def greater(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def greater_equal(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def hypot(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def lesser(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def lesser_equal(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def logical_and(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def logical_or(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def logical_xor(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def maximum(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def minimum(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def modulo(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def multiply(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def not_equal(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def pow(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def power(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def subtract(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def true_divide(lhs: Symbol | float, rhs: Symbol | float, name: str | None = ...) -> Symbol: ...
def Activation(
    data: Symbol | None = ...,
    *,
    act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'],
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def BatchNorm(
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
def BatchNorm_v1(
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
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def BlockGrad(
    data: Symbol | None = ...,
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
def Cast(
    data: Symbol | None = ...,
    *,
    dtype: DTypeLike | int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def Concat(
    *data: Symbol | Sequence[Symbol],
    num_args: int = ...,
    dim: int = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def Convolution(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    bias: Symbol | None = ...,
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
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def Convolution_v1(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    bias: Symbol | None = ...,
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
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def Crop(
    *data: Symbol | Sequence[Symbol],
    num_args: int = ...,
    offset: int | Sequence[int] = ...,
    h_w: int | Sequence[int] = ...,
    center_crop: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def Custom(
    *data: Symbol | Sequence[Symbol],
    op_type: str,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def Deconvolution(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    bias: Symbol | None = ...,
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
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def Dropout(
    data: Symbol | None = ...,
    p: float = ...,
    mode: Literal['training', 'always'] = ...,
    axes: int | Sequence[int] = ...,
    cudnn_off: bool | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def ElementWiseSum(
    *args: Symbol | Sequence[Symbol],
    num_args: int = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def Embedding(
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
def Flatten(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def FullyConnected(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    bias: Symbol | None = ...,
    *,
    num_hidden: int,
    no_bias: bool = ...,
    flatten: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def GroupNorm(
    data: Symbol | None = ...,
    gamma: Symbol | None = ...,
    beta: Symbol | None = ...,
    num_groups: int = ...,
    eps: float = ...,
    output_mean_var: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def IdentityAttachKLSparseReg(
    data: Symbol | None = ...,
    moving_avg: Symbol | None = ...,
    sparseness_target: float = ...,
    penalty: float = ...,
    momentum: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def InstanceNorm(
    data: Symbol | None = ...,
    gamma: Symbol | None = ...,
    beta: Symbol | None = ...,
    eps: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def L2Normalization(
    data: Symbol | None = ...,
    eps: float = ...,
    mode: Literal['channel', 'instance', 'spatial'] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def LRN(
    data: Symbol | None = ...,
    alpha: float = ...,
    beta: float = ...,
    knorm: float = ...,
    *,
    nsize: int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def LayerNorm(
    data: Symbol | None = ...,
    gamma: Symbol | None = ...,
    beta: Symbol | None = ...,
    axis: int = ...,
    eps: float = ...,
    output_mean_var: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def LeakyReLU(
    data: Symbol | None = ...,
    gamma: Symbol | None = ...,
    act_type: Literal['elu', 'gelu', 'leaky', 'prelu', 'rrelu', 'selu'] = ...,
    slope: float = ...,
    lower_bound: float = ...,
    upper_bound: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def LinearRegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def LogisticRegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def MAERegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def MakeLoss(
    data: Symbol | None = ...,
    grad_scale: float = ...,
    valid_thresh: float = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def Pad(
    data: Symbol | None = ...,
    *,
    mode: Literal['constant', 'edge', 'reflect'],
    pad_width: int | Sequence[int],
    constant_value: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def Pooling(
    data: Symbol | None = ...,
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
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def Pooling_v1(
    data: Symbol | None = ...,
    kernel: int | Sequence[int] = ...,
    pool_type: Literal['avg', 'max', 'sum'] = ...,
    global_pool: bool = ...,
    pooling_convention: Literal['full', 'valid'] = ...,
    stride: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def RNN(
    data: Symbol | None = ...,
    parameters: Symbol | None = ...,
    state: Symbol | None = ...,
    state_cell: Symbol | None = ...,
    sequence_length: Symbol | None = ...,
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
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def Reshape(
    data: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    reverse: bool = ...,
    target_shape: int | Sequence[int] = ...,
    keep_highest: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def SVMOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    margin: float = ...,
    regularization_coefficient: float = ...,
    use_linear: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def SequenceLast(
    data: Symbol | None = ...,
    sequence_length: Symbol | None = ...,
    use_sequence_length: bool = ...,
    axis: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def SequenceMask(
    data: Symbol | None = ...,
    sequence_length: Symbol | None = ...,
    use_sequence_length: bool = ...,
    value: float = ...,
    axis: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def SequenceReverse(
    data: Symbol | None = ...,
    sequence_length: Symbol | None = ...,
    use_sequence_length: bool = ...,
    axis: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def SliceChannel(
    data: Symbol | None = ...,
    *,
    num_outputs: int,
    axis: int = ...,
    squeeze_axis: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def Softmax(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    ignore_label: float = ...,
    multi_output: bool = ...,
    use_ignore: bool = ...,
    preserve_shape: bool = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    out_grad: bool = ...,
    smooth_alpha: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def SoftmaxActivation(
    data: Symbol | None = ...,
    mode: Literal['channel', 'instance'] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def SoftmaxOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    ignore_label: float = ...,
    multi_output: bool = ...,
    use_ignore: bool = ...,
    preserve_shape: bool = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    out_grad: bool = ...,
    smooth_alpha: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def SwapAxis(
    data: Symbol | None = ...,
    dim1: int = ...,
    dim2: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def UpSampling(
    *data: Symbol | Sequence[Symbol],
    scale: int,
    num_filter: int = ...,
    sample_type: Literal['bilinear', 'nearest'],
    multi_input_mode: Literal['concat', 'sum'] = ...,
    num_args: int = ...,
    workspace: int = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def abs(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def adam_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    mean: Symbol | None = ...,
    var: Symbol | None = ...,
    *,
    lr: float,
    beta1: float = ...,
    beta2: float = ...,
    epsilon: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    lazy_update: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def add_n(
    *args: Symbol | Sequence[Symbol],
    num_args: int = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def all_finite(
    data: Symbol | None = ...,
    init_output: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def amp_cast(
    data: Symbol | None = ...,
    *,
    dtype: DTypeLike | int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def amp_multicast(
    *data: Symbol | Sequence[Symbol],
    num_outputs: int,
    cast_narrow: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def arccos(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def arccosh(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def arcsin(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def arcsinh(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def arctan(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def arctanh(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def argmax(
    data: Symbol | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def argmax_channel(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def argmin(
    data: Symbol | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def argsort(
    data: Symbol | None = ...,
    axis: int | None = ...,
    is_ascend: bool = ...,
    dtype: DTypeLike | int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def batch_dot(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    forward_stype: Literal['csr', 'default', 'row_sparse'] | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def batch_take(
    a: Symbol | None = ...,
    indices: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_add(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_axes(
    data: Symbol | None = ...,
    axis: int | Sequence[int] = ...,
    size: int | Sequence[int] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_axis(
    data: Symbol | None = ...,
    axis: int | Sequence[int] = ...,
    size: int | Sequence[int] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_div(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_greater(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_greater_equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_hypot(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_lesser(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_lesser_equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_like(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    lhs_axes: int | Sequence[int] | None = ...,
    rhs_axes: int | Sequence[int] | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_logical_and(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_logical_or(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_logical_xor(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_maximum(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_minimum(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_minus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_mod(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_mul(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_not_equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_plus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_power(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_sub(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def broadcast_to(
    data: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def cast(
    data: Symbol | None = ...,
    *,
    dtype: DTypeLike | int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def cast_storage(
    data: Symbol | None = ...,
    *,
    stype: Literal['csr', 'default', 'row_sparse'],
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def cbrt(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def ceil(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def choose_element_0index(
    data: Symbol | None = ...,
    index: Symbol | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    mode: Literal['clip', 'wrap'] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def clip(
    data: Symbol | None = ...,
    *,
    a_min: float,
    a_max: float,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def col2im(
    data: Symbol | None = ...,
    *,
    output_size: int | Sequence[int],
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = ...,
    dilate: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def concat(
    *data: Symbol | Sequence[Symbol],
    num_args: int = ...,
    dim: int = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def cos(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def cosh(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def crop(
    data: Symbol | None = ...,
    *,
    begin: int | Sequence[int],
    end: int | Sequence[int],
    step: int | Sequence[int] = ...,
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
def cumsum(
    a: Symbol | None = ...,
    axis: int | None = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def degrees(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def depth_to_space(
    data: Symbol | None = ...,
    *,
    block_size: int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def diag(
    data: Symbol | None = ...,
    k: int = ...,
    axis1: int = ...,
    axis2: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def digamma(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def dot(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    forward_stype: Literal['csr', 'default', 'row_sparse'] | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def elemwise_add(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def elemwise_div(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def elemwise_mul(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def elemwise_sub(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def erf(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def erfinv(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def exp(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def expand_dims(
    data: Symbol | None = ...,
    *,
    axis: int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def expm1(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def fill_element_0index(
    lhs: Symbol | None = ...,
    mhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def fix(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def flatten(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def flip(
    data: Symbol | None = ...,
    *,
    axis: int | Sequence[int],
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def floor(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def ftml_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    d: Symbol | None = ...,
    v: Symbol | None = ...,
    z: Symbol | None = ...,
    *,
    lr: float,
    beta1: float = ...,
    beta2: float = ...,
    epsilon: float = ...,
    t: int,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_grad: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def ftrl_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    z: Symbol | None = ...,
    n: Symbol | None = ...,
    *,
    lr: float,
    lamda1: float = ...,
    beta: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def gamma(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def gammaln(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def gather_nd(
    data: Symbol | None = ...,
    indices: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def hard_sigmoid(
    data: Symbol | None = ...,
    alpha: float = ...,
    beta: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def identity(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def im2col(
    data: Symbol | None = ...,
    *,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = ...,
    dilate: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def khatri_rao(
    *args: Symbol | Sequence[Symbol],
    num_args: int = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def lamb_update_phase1(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    mean: Symbol | None = ...,
    var: Symbol | None = ...,
    beta1: float = ...,
    beta2: float = ...,
    epsilon: float = ...,
    *,
    t: int,
    bias_correction: bool = ...,
    wd: float,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def lamb_update_phase2(
    weight: Symbol | None = ...,
    g: Symbol | None = ...,
    r1: Symbol | None = ...,
    r2: Symbol | None = ...,
    *,
    lr: float,
    lower_bound: float = ...,
    upper_bound: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_det(
    A: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_extractdiag(
    A: Symbol | None = ...,
    offset: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_extracttrian(
    A: Symbol | None = ...,
    offset: int = ...,
    lower: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_gelqf(
    A: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_gemm(
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
def linalg_gemm2(
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
def linalg_inverse(
    A: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_makediag(
    A: Symbol | None = ...,
    offset: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_maketrian(
    A: Symbol | None = ...,
    offset: int = ...,
    lower: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_potrf(
    A: Symbol | None = ...,
    lower: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_potri(
    A: Symbol | None = ...,
    lower: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_slogdet(
    A: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_sumlogdiag(
    A: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_syrk(
    A: Symbol | None = ...,
    transpose: bool = ...,
    alpha: float = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def linalg_trmm(
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
def linalg_trsm(
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
def log(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def log10(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def log1p(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def log2(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def log_sigmoid(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def log_softmax(
    data: Symbol | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: DTypeLike | int | None = ...,
    use_length: bool | None = ...,
    *,
    length: Symbol | None = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def logical_not(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def make_loss(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def max(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def max_axis(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def mean(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def min(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def min_axis(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def moments(
    data: Symbol | None = ...,
    axes: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def mp_lamb_update_phase1(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    mean: Symbol | None = ...,
    var: Symbol | None = ...,
    weight32: Symbol | None = ...,
    beta1: float = ...,
    beta2: float = ...,
    epsilon: float = ...,
    *,
    t: int,
    bias_correction: bool = ...,
    wd: float,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def mp_lamb_update_phase2(
    weight: Symbol | None = ...,
    g: Symbol | None = ...,
    r1: Symbol | None = ...,
    r2: Symbol | None = ...,
    weight32: Symbol | None = ...,
    *,
    lr: float,
    lower_bound: float = ...,
    upper_bound: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def mp_nag_mom_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    mom: Symbol | None = ...,
    weight32: Symbol | None = ...,
    *,
    lr: float,
    momentum: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def mp_sgd_mom_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    mom: Symbol | None = ...,
    weight32: Symbol | None = ...,
    *,
    lr: float,
    momentum: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    lazy_update: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def mp_sgd_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    weight32: Symbol | None = ...,
    *,
    lr: float,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    lazy_update: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def multi_all_finite(
    *data: Symbol | Sequence[Symbol],
    num_arrays: int = ...,
    init_output: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def multi_lars(
    lrs: Symbol | None = ...,
    weights_sum_sq: Symbol | None = ...,
    grads_sum_sq: Symbol | None = ...,
    wds: Symbol | None = ...,
    *,
    eta: float,
    eps: float,
    rescale_grad: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def multi_mp_sgd_mom_update(
    *data: Symbol | Sequence[Symbol],
    lrs: float | Sequence[float],
    wds: float | Sequence[float],
    num_weights: int = ...,
    momentum: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def multi_mp_sgd_update(
    *data: Symbol | Sequence[Symbol],
    lrs: float | Sequence[float],
    wds: float | Sequence[float],
    num_weights: int = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def multi_sgd_mom_update(
    *data: Symbol | Sequence[Symbol],
    lrs: float | Sequence[float],
    wds: float | Sequence[float],
    num_weights: int = ...,
    momentum: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def multi_sgd_update(
    *data: Symbol | Sequence[Symbol],
    lrs: float | Sequence[float],
    wds: float | Sequence[float],
    num_weights: int = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def multi_sum_sq(
    *data: Symbol | Sequence[Symbol],
    num_arrays: int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def nag_mom_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    mom: Symbol | None = ...,
    *,
    lr: float,
    momentum: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def nanprod(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def nansum(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def negative(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def norm(
    data: Symbol | None = ...,
    ord: Literal[1, 2] = ...,
    axis: int | Sequence[int] | None = ...,
    out_dtype: DTypeLike | int | None = ...,
    keepdims: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def normal(
    loc: float = ...,
    scale: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def one_hot(
    indices: Symbol | None = ...,
    *,
    depth: int,
    on_value: float = ...,
    off_value: float = ...,
    dtype: DTypeLike | int = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def ones_like(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def pad(
    data: Symbol | None = ...,
    *,
    mode: Literal['constant', 'edge', 'reflect'],
    pad_width: int | Sequence[int],
    constant_value: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def pick(
    data: Symbol | None = ...,
    index: Symbol | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    mode: Literal['clip', 'wrap'] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def preloaded_multi_mp_sgd_mom_update(
    *data: Symbol | Sequence[Symbol],
    num_weights: int = ...,
    momentum: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def preloaded_multi_mp_sgd_update(
    *data: Symbol | Sequence[Symbol],
    num_weights: int = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def preloaded_multi_sgd_mom_update(
    *data: Symbol | Sequence[Symbol],
    num_weights: int = ...,
    momentum: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def preloaded_multi_sgd_update(
    *data: Symbol | Sequence[Symbol],
    num_weights: int = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def prod(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
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
def radians(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_exponential(
    lam: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_gamma(
    alpha: float = ...,
    beta: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_generalized_negative_binomial(
    mu: float = ...,
    alpha: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_negative_binomial(
    k: int = ...,
    p: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_normal(
    loc: float = ...,
    scale: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_pdf_dirichlet(
    sample: Symbol | None = ...,
    alpha: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_pdf_exponential(
    sample: Symbol | None = ...,
    lam: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_pdf_gamma(
    sample: Symbol | None = ...,
    alpha: Symbol | None = ...,
    beta: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_pdf_generalized_negative_binomial(
    sample: Symbol | None = ...,
    mu: Symbol | None = ...,
    alpha: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_pdf_negative_binomial(
    sample: Symbol | None = ...,
    k: Symbol | None = ...,
    p: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_pdf_normal(
    sample: Symbol | None = ...,
    mu: Symbol | None = ...,
    sigma: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_pdf_poisson(
    sample: Symbol | None = ...,
    lam: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_pdf_uniform(
    sample: Symbol | None = ...,
    low: Symbol | None = ...,
    high: Symbol | None = ...,
    is_log: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_poisson(
    lam: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_randint(
    low: float,
    high: float,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def random_uniform(
    low: float = ...,
    high: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def ravel_multi_index(
    data: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def rcbrt(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def reciprocal(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def relu(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def repeat(
    data: Symbol | None = ...,
    *,
    repeats: int,
    axis: int | None = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def reset_arrays(
    *data: Symbol | Sequence[Symbol],
    num_arrays: int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def reshape(
    data: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    reverse: bool = ...,
    target_shape: int | Sequence[int] = ...,
    keep_highest: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def reshape_like(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    lhs_begin: int | None = ...,
    lhs_end: int | None = ...,
    rhs_begin: int | None = ...,
    rhs_end: int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def reverse(
    data: Symbol | None = ...,
    *,
    axis: int | Sequence[int],
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def rint(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def rmsprop_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    n: Symbol | None = ...,
    *,
    lr: float,
    gamma1: float = ...,
    epsilon: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    clip_weights: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def rmspropalex_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    n: Symbol | None = ...,
    g: Symbol | None = ...,
    delta: Symbol | None = ...,
    *,
    lr: float,
    gamma1: float = ...,
    gamma2: float = ...,
    epsilon: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    clip_weights: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def round(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def rsqrt(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sample_exponential(
    lam: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sample_gamma(
    alpha: Symbol | None = ...,
    beta: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sample_generalized_negative_binomial(
    mu: Symbol | None = ...,
    alpha: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sample_multinomial(
    data: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    get_prob: bool = ...,
    dtype: DTypeLike | int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sample_negative_binomial(
    k: Symbol | None = ...,
    p: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sample_normal(
    mu: Symbol | None = ...,
    sigma: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sample_poisson(
    lam: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sample_uniform(
    low: Symbol | None = ...,
    high: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def scatter_nd(
    data: Symbol | None = ...,
    indices: Symbol | None = ...,
    *,
    shape: int | Sequence[int],
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sgd_mom_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    mom: Symbol | None = ...,
    *,
    lr: float,
    momentum: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    lazy_update: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sgd_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    *,
    lr: float,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    lazy_update: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def shape_array(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def shuffle(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sigmoid(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sign(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def signsgd_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    *,
    lr: float,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def signum_update(
    weight: Symbol | None = ...,
    grad: Symbol | None = ...,
    mom: Symbol | None = ...,
    *,
    lr: float,
    momentum: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    wd_lh: float = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sin(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sinh(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def size_array(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def slice(
    data: Symbol | None = ...,
    *,
    begin: int | Sequence[int],
    end: int | Sequence[int],
    step: int | Sequence[int] = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def slice_axis(
    data: Symbol | None = ...,
    *,
    axis: int,
    begin: int,
    end: int | None,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def slice_like(
    data: Symbol | None = ...,
    shape_like: Symbol | None = ...,
    axes: int | Sequence[int] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def smooth_l1(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def softmax(
    data: Symbol | None = ...,
    length: Symbol | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: DTypeLike | int | None = ...,
    use_length: bool | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def softmax_cross_entropy(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def softmin(
    data: Symbol | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: DTypeLike | int | None = ...,
    use_length: bool | None = ...,
    *,
    length: Symbol | None = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def softsign(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sort(
    data: Symbol | None = ...,
    axis: int | None = ...,
    is_ascend: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def space_to_depth(
    data: Symbol | None = ...,
    *,
    block_size: int,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def split(
    data: Symbol | None = ...,
    *,
    num_outputs: int,
    axis: int = ...,
    squeeze_axis: bool = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sqrt(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def square(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def squeeze(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def stack(
    *data: Symbol | Sequence[Symbol],
    axis: int = ...,
    num_args: int = ...,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
) -> Symbol: ...
def stop_gradient(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sum(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def sum_axis(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def swapaxes(
    data: Symbol | None = ...,
    dim1: int = ...,
    dim2: int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def take(
    a: Symbol | None = ...,
    indices: Symbol | None = ...,
    axis: int = ...,
    mode: Literal['clip', 'raise', 'wrap'] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def tan(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def tanh(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def tile(
    data: Symbol | None = ...,
    *,
    reps: int | Sequence[int],
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def topk(
    data: Symbol | None = ...,
    axis: int | None = ...,
    k: int = ...,
    ret_typ: Literal['both', 'indices', 'mask', 'value'] = ...,
    is_ascend: bool = ...,
    dtype: DTypeLike | int = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def transpose(
    data: Symbol | None = ...,
    axes: int | Sequence[int] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def trunc(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def uniform(
    low: float = ...,
    high: float = ...,
    shape: int | Sequence[int] = ...,
    ctx: str = ...,
    dtype: DTypeLike | int | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def unravel_index(
    data: Symbol | None = ...,
    shape: int | Sequence[int] = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def where(
    condition: Symbol | None = ...,
    x: Symbol | None = ...,
    y: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...
def zeros_like(
    data: Symbol | None = ...,
    *,
    name: str | None = ...,
    attr: Mapping[str, str] | None = ...,
    **kwargs: Symbol,
) -> Symbol: ...

_internal: Any
op: Any

def __getattr__(name: str) -> Any: ...  # operators that users and other packages register
