# Written by `python -m mxop stubs` from the operators' definitions; change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

import builtins
from collections.abc import Iterable
from .._core.core import NDArray
from ..errors import MXNetError
from ..graph.arithmetic import Arithmetic, Row
from ..graph.executor import Executor
from ..graph.ir import Entry, Node
from ..opdef import Operator

class Symbol(Arithmetic):
    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __bool__(self) -> bool: ...
    def __call__(self, *args: Any, name: str | None = ..., **kwargs: Symbol) -> Symbol: ...
    def __copy__(self) -> Symbol: ...
    def __deepcopy__(self, memo: Any) -> Symbol: ...
    def __dir__(self) -> list[str]: ...
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, index: int | str | builtins.slice) -> Symbol: ...
    def __iadd__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __imul__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __init__(self, entries: Sequence[Entry]) -> None: ...
    def __isub__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __iter__(self) -> Iterator[Symbol]: ...
    def __itruediv__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple: ...
    def __repr__(self) -> str: ...
    def _gen_atomic_symbol(self) -> Symbol: ...
    @property
    def _head(self) -> Node | None: ...
    def _operate(self, op_name: str, hint: str, inputs: list, params: dict[str, Any]) -> Symbol: ...
    def _repr_svg_(self) -> str | None: ...
    def _set_attr(self, **kwargs: str) -> None: ...
    def _two_op(self, row: Row) -> str: ...
    def abs(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def after(self, *before: Any) -> Symbol: ...
    def arccos(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def arccosh(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def arcsin(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def arcsinh(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def arctan(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def arctanh(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def argmax(
        self,
        axis: int | None = ...,
        keepdims: bool = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def argmax_channel(
        self,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def argmin(
        self,
        axis: int | None = ...,
        keepdims: bool = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def argsort(
        self,
        axis: int | None = ...,
        is_ascend: bool = ...,
        dtype: DTypeLike | int = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def as_in_context(self, *args: Any, **kwargs: Any) -> Any: ...
    def as_nd_ndarray(self) -> Symbol: ...
    def asnumpy(self, *args: Any, **kwargs: Any) -> Any: ...
    def asscalar(self, *args: Any, **kwargs: Any) -> Any: ...
    def astype(self, dtype: Any, **kwargs: Any) -> Symbol: ...
    def attr(self, key: str) -> str | None: ...
    def attr_dict(self) -> dict[str, dict[str, str]]: ...
    def backward(self, *args: Any, **kwargs: Any) -> Any: ...
    def bind(
        self,
        ctx: Any,
        args: Any,
        args_grad: Any = ...,
        grad_req: Any = ...,
        aux_states: Any = ...,
        group2ctx: Any = ...,
        shared_exec: Any = ...,
        passes: Any = ...,
    ) -> Executor: ...
    def broadcast_axes(
        self,
        axis: int | Sequence[int] = ...,
        size: int | Sequence[int] = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def broadcast_axis(
        self,
        axis: int | Sequence[int] = ...,
        size: int | Sequence[int] = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def broadcast_like(
        self,
        rhs: Symbol | None = ...,
        lhs_axes: int | Sequence[int] | None = ...,
        rhs_axes: int | Sequence[int] | None = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def broadcast_to(
        self,
        shape: int | Sequence[int] = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def cbrt(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def ceil(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def clip(
        self,
        *,
        a_min: float,
        a_max: float,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def copy(self, *args: Any, **kwargs: Any) -> Any: ...
    def cos(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def cosh(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def debug_str(self) -> str: ...
    def degrees(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def depth_to_space(
        self,
        *,
        block_size: int,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def detach(self, *args: Any, **kwargs: Any) -> Any: ...
    def diag(
        self,
        k: int = ...,
        axis1: int = ...,
        axis2: int = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def dot(
        self,
        rhs: Symbol | None = ...,
        transpose_a: bool = ...,
        transpose_b: bool = ...,
        forward_stype: Literal['csr', 'default', 'row_sparse'] | None = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def erf(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def eval(self, ctx: Any = ..., **kwargs: Any) -> list[NDArray]: ...
    def exp(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def expand_dims(
        self,
        *,
        axis: int,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def expm1(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def fix(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def flatten(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def flip(
        self,
        *,
        axis: int | Sequence[int],
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def floor(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def gamma(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def gammaln(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def get_children(self) -> Symbol | None: ...
    def get_internals(self) -> Symbol: ...
    def grad(self, wrt: Sequence[str]) -> Symbol: ...
    def gradient(self, wrt: Sequence[str]) -> Symbol: ...
    @property
    def handle(self) -> Any: ...
    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple[list | None, list | None, list | None]: ...
    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple[list, list, list]: ...
    def infer_type(self, *args: Any, **kwargs: Any) -> tuple[list | None, list | None, list | None]: ...
    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple[list, list, list]: ...
    def list_arguments(self) -> list[str]: ...
    def list_attr(self, recursive: bool = ...) -> dict[str, str]: ...
    def list_auxiliary_states(self) -> list[str]: ...
    def list_inputs(self) -> list[str]: ...
    def list_outputs(self) -> list[str]: ...
    def log(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def log10(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def log1p(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def log2(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def log_sigmoid(
        self,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def log_softmax(
        self,
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
        self,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def max(
        self,
        axis: int | Sequence[int] | None = ...,
        keepdims: bool = ...,
        exclude: bool = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def mean(
        self,
        axis: int | Sequence[int] | None = ...,
        keepdims: bool = ...,
        exclude: bool = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def min(
        self,
        axis: int | Sequence[int] | None = ...,
        keepdims: bool = ...,
        exclude: bool = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    @property
    def name(self) -> str | None: ...
    def nanprod(
        self,
        axis: int | Sequence[int] | None = ...,
        keepdims: bool = ...,
        exclude: bool = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def nansum(
        self,
        axis: int | Sequence[int] | None = ...,
        keepdims: bool = ...,
        exclude: bool = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def norm(
        self,
        ord: Literal[1, 2] = ...,
        axis: int | Sequence[int] | None = ...,
        out_dtype: DTypeLike | int | None = ...,
        keepdims: bool = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def one_hot(
        self,
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
        self,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def optimize(self, passes: Any = ..., type_dict: Any = ..., **shapes: Any) -> Symbol: ...
    def optimize_for(self, backend: str, args: Any = ..., aux: Any = ..., ctx: Any = ..., **options: Any) -> Symbol: ...
    def pad(
        self,
        *,
        mode: Literal['constant', 'edge', 'reflect'],
        pad_width: int | Sequence[int],
        constant_value: float = ...,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def pick(
        self,
        index: Symbol | None = ...,
        axis: int | None = ...,
        keepdims: bool = ...,
        mode: Literal['clip', 'wrap'] = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def prod(
        self,
        axis: int | Sequence[int] | None = ...,
        keepdims: bool = ...,
        exclude: bool = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def radians(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def rcbrt(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def reciprocal(
        self,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def relu(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def repeat(
        self,
        *,
        repeats: int,
        axis: int | None = ...,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def reshape(self, *shape: Any, **kwargs: Any) -> Symbol: ...
    def reshape_like(
        self,
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
    def rint(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def round(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def rsqrt(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def save(self, fname: str, remove_amp_cast: bool = ...) -> None: ...
    def shape_array(
        self,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def sigmoid(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def sign(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def simple_bind(
        self,
        ctx: Any,
        grad_req: Any = ...,
        type_dict: Any = ...,
        stype_dict: Any = ...,
        group2ctx: Any = ...,
        shared_arg_names: Any = ...,
        shared_exec: Any = ...,
        shared_buffer: Any = ...,
        passes: Any = ...,
        **kwargs: Any,
    ) -> Executor: ...
    def sin(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def sinh(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def size_array(
        self,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def slice(
        self,
        *,
        begin: int | Sequence[int],
        end: int | Sequence[int],
        step: int | Sequence[int] = ...,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def slice_axis(
        self,
        *,
        axis: int,
        begin: int,
        end: int | None,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def slice_like(
        self,
        shape_like: Symbol | None = ...,
        axes: int | Sequence[int] = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def softmax(
        self,
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
    def softmin(
        self,
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
    def softsign(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def sort(
        self,
        axis: int | None = ...,
        is_ascend: bool = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def space_to_depth(
        self,
        *,
        block_size: int,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def split(
        self,
        *,
        num_outputs: int,
        axis: int = ...,
        squeeze_axis: bool = ...,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def split_v2(
        self,
        indices_or_sections: Any,
        axis: int = ...,
        squeeze_axis: bool = ...,
        name: str | None = ...,
    ) -> Symbol: ...
    def sqrt(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def square(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def squeeze(
        self,
        axis: int | Sequence[int] | None = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def sum(
        self,
        axis: int | Sequence[int] | None = ...,
        keepdims: bool = ...,
        exclude: bool = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def swapaxes(
        self,
        dim1: int = ...,
        dim2: int = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def take(
        self,
        indices: Symbol | None = ...,
        axis: int = ...,
        mode: Literal['clip', 'raise', 'wrap'] = ...,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def tan(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def tanh(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def tile(
        self,
        *,
        reps: int | Sequence[int],
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
    def tojson(self, remove_amp_cast: bool = ...) -> str: ...
    def topk(
        self,
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
    def transpose(self, *axes: Any, **kwargs: Any) -> Symbol: ...
    def trunc(self, *, name: str | None = ..., attr: Mapping[str, str] | None = ..., **kwargs: Symbol) -> Symbol: ...
    def wait_to_read(self, *args: Any, **kwargs: Any) -> Any: ...
    def zeros_like(
        self,
        *,
        name: str | None = ...,
        attr: Mapping[str, str] | None = ...,
        **kwargs: Symbol,
    ) -> Symbol: ...
def create(
    op: Operator,
    hint: str,
    inputs: Sequence[Any],
    params: dict[str, Any],
    name: str | None = ...,
    attr: dict[str, str] | None = ...,
) -> Symbol: ...
def among(values: Iterable[Any]) -> bool: ...
def invoke(
    op: Operator,
    hint: str,
    *args: Any,
    name: str | None = ...,
    attr: dict[str, str] | None = ...,
    out: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def var(
    name: str,
    attr: dict[str, str] | None = ...,
    shape: Any = ...,
    lr_mult: Any = ...,
    wd_mult: Any = ...,
    dtype: Any = ...,
    init: Any = ...,
    stype: str | None = ...,
    profiler_scope: str | None = ...,
    **kwargs: Any,
) -> Symbol: ...
def Group(symbols: Sequence[Symbol]) -> Symbol: ...
def load_json(json_str: str, allow_missing: bool = ...) -> Symbol: ...
def load(fname: str, allow_missing: bool = ...) -> Symbol: ...
Variable = var
fromjson = load_json
class NotImplementedForSymbol(MXNetError, NotImplementedError):
    def __init__(self, what: str) -> None: ...
