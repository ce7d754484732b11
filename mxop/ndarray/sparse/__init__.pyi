# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .. import NDArray
from .arrays import BaseSparseNDArray as BaseSparseNDArray
from .arrays import CSRNDArray as CSRNDArray
from .arrays import RowSparseNDArray as RowSparseNDArray
from .operators import add as add
from .creation import array as array
from .arrays import cast_storage as cast_storage
from .creation import csr_matrix as csr_matrix
from .operators import divide as divide
from .creation import empty as empty
from .operators import multiply as multiply
from .operators import retain as retain
from .creation import row_sparse_array as row_sparse_array
from .operators import subtract as subtract
from .creation import zeros as zeros

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
def _contrib_round_ste(
    data: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def _contrib_sign_ste(
    data: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def abs(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def adagrad_update(
    weight: NDArray,
    grad: NDArray,
    history: NDArray,
    lr: float,
    epsilon: float = ...,
    wd: float = ...,
    rescale_grad: float = ...,
    clip_gradient: float = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
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
def arccos(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def arccosh(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def arcsin(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def arcsinh(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def arctan(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def arctanh(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def broadcast_add(
    lhs: NDArray,
    rhs: NDArray,
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
def broadcast_minus(
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
def broadcast_plus(
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
def cbrt(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def ceil(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def clip(
    data: NDArray,
    a_min: float,
    a_max: float,
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
def degrees(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
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
def exp(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def expm1(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def fix(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def floor(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
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
def log(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def log10(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def log1p(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def log2(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def make_loss(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def mean(
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
def radians(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def relu(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def rint(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def round(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def rsqrt(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
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
def sigmoid(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def sign(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def sin(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def sinh(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def slice(
    data: NDArray,
    begin: int | Sequence[int],
    end: int | Sequence[int],
    step: int | Sequence[int] = ...,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def sqrt(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def square(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
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
def tan(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def tanh(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def trunc(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
def where(
    condition: NDArray,
    x: NDArray,
    y: NDArray,
    *,
    out: NDArray | Sequence[NDArray] | None = ...,
    name: str | None = ...,
) -> NDArray: ...
def zeros_like(data: NDArray, *, out: NDArray | Sequence[NDArray] | None = ..., name: str | None = ...) -> NDArray: ...
