"""Creation of arrays: constants, ranges, and arrays like another."""

import math
from functools import lru_cache
from numbers import Integral

from ..opdef import DType, Scalar, Shape, elementwise, infer, kernel
from ..support import dtypes
from ..support.errors import OpValueError
from ..support.shape_mode import numpy_shape
from ._shared import both_ways, element, on_both, zero_gradient


# ---- filled arrays --------------------------------------------------------------------------------------------------
def _filled(op, value=None):
    """Give `op` its inference and the function that fills its output, with `value` or its parameter of this name."""

    @op.infer
    def _(ins, outs, *, shape, **params):
        asked = infer.from_legacy(shape, numpy_shape())  # 0 is unknown: the operator's user says what it is
        return ins, infer.same_shape(op.name, ("the shape asked for", "output"), [asked, outs[0]])[1:]

    @op.infer_types
    def _(ins, outs, *, dtype, **params):
        asked = dtypes.UNKNOWN if dtype < 0 else dtypes.code_of(dtype)
        return ins, infer.same_type(op.name, ("the dtype asked for", "output"), [asked, outs[0]])[1:]

    @op.rearrange
    def _(xp, inputs, outputs, **params):
        outputs[0][...] = element(params["value"] if value is None else value, outputs[0].dtype, op.name)

    zero_gradient(op)


@kernel(name="_zeros", zero_is_unknown=("shape",))
def zeros(*, shape: Shape = (), ctx: str = "", dtype: DType = dtypes.FLOAT32):
    """Make an array of zeros; ``mx.nd.zeros`` calls it.

    >>> mx.nd._internal._zeros(shape=(2,)).asnumpy().tolist()
    [0.0, 0.0]
    """


@kernel(name="_zeros_without_dtype", zero_is_unknown=("shape",))
def zeros_without_dtype(*, shape: Shape = (), ctx: str = "", dtype: int = -1):
    """Make an array of zeros whose type follows from its use (float32 otherwise)."""


@kernel(name="_ones", zero_is_unknown=("shape",))
def ones(*, shape: Shape = (), ctx: str = "", dtype: DType = dtypes.FLOAT32):
    """Make an array of ones; ``mx.nd.ones`` calls it.

    >>> mx.nd._internal._ones(shape=(2,)).asnumpy().tolist()
    [1.0, 1.0]
    """


@kernel(name="_full", aliases=("_npi_full",), zero_is_unknown=("shape",))
def full(*, shape: Shape = (), ctx: str = "", dtype: DType = dtypes.FLOAT32, value: Scalar):
    """Make an array filled with one number; ``mx.nd.full`` calls it.

    >>> mx.nd._internal._full(shape=(2,), value=7).asnumpy().tolist()
    [7.0, 7.0]
    """


@kernel(name="_constant")
def constant(*, shape: Shape, dtype: DType, data: str):
    """An array that is written down with the graph: `data` are its bytes, in C order and little-endian, in base64.

    ``mx.graph.constant`` makes one of an array.

    >>> mx.nd._internal._constant(shape=(2,), dtype='uint8', data='BQc=').asnumpy().tolist()
    [5, 7]
    """


@constant.infer
def _(ins, outs, *, shape, dtype, data):
    return ins, infer.same_shape("_constant", ("the constant", "output"), [shape, outs[0]])[1:]


@on_both(constant)
def _(xp, inputs, outputs, *, shape, dtype, data):
    outputs[0][...] = xp.asarray(decoded(shape, dtype, data))


@lru_cache(256)
def decoded(shape, dtype, data):
    """Return the array of a ``_constant``, which must not be written to."""
    import base64

    import numpy as np

    try:
        found = np.frombuffer(base64.b64decode(data, validate=True), dtypes.numpy_dtype(dtype).newbyteorder("<"))
        return found.reshape(shape)
    except ValueError as problem:
        raise OpValueError(
            f"operator _constant: data are not those of an array of shape {shape} and dtype {dtypes.NAMES[dtype]}: {problem}"
        ) from None


_filled(zeros, 0)
_filled(zeros_without_dtype, 0)
_filled(ones, 1)
_filled(full)


@elementwise(aliases=("_sparse_zeros_like",))
def zeros_like(data):
    """Zeros of the shape and type of the data.

    >>> mx.nd.zeros_like(mx.nd.array([1, 2])).asnumpy().tolist()
    [0.0, 0.0]
    """
    return 0


@elementwise
def ones_like(data):
    """Ones of the shape and type of the data.

    >>> mx.nd.ones_like(mx.nd.array([1, 2])).asnumpy().tolist()
    [1.0, 1.0]
    """
    return 1


# ---- ranges ---------------------------------------------------------------------------------------------------------
@kernel(name="_arange")
def arange(*, start: Scalar, stop: Scalar | None = None, step: Scalar = 1.0, repeat: int = 1, infer_range: bool = False,
           ctx: str = "", dtype: DType = dtypes.FLOAT32):  # fmt: skip
    """Make evenly spaced numbers, as ``mx.nd.arange`` does.

    Parameters
    ----------
    start, stop : float
        The interval, without its end; ``0, start`` when `stop` is not given.
    repeat : int
        How often each number stands in the result.
    infer_range : bool
        Without `stop`: count from `start` and take the length from the use of the result.
    ctx, dtype
        Device and element type.  Integers are spaced as NumPy's: the first two are cut to integers, and the others follow
        in steps of their difference.

    >>> mx.nd._internal._arange(start=1, stop=3, repeat=2).asnumpy().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """


def _exact(value):
    """Return a whole number as an integer: sums and quotients of such do not round."""
    if isinstance(value, Integral):
        return value if isinstance(value, int) else int(value)  # a symbolic size remains one
    real = value + 0.0
    return int(real) if real.is_integer() else real


def range_length(who, start, stop, step):
    """Return how many numbers lie from `start` to before `stop`, at least one; `who` asks, for messages."""
    start, stop, step = _exact(start), _exact(stop), _exact(step)
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        length = stop - start if step == 1 else -((start - stop) // step)
    else:
        length = (stop - start) / step
        length = math.ceil(length) if math.isfinite(length) else None
    if length is None or length <= 0:
        raise OpValueError(
            f"{who}: the range from {start} to {stop} by {step} has no {'finite length' if length is None else 'numbers'}"
        )
    return length


def spaced(xp, count, start, step, whole):
    """Return `count` numbers from `start` on: float64, or int64 where the result is `whole`."""
    if not whole:
        return xp.arange(count) * float(step) + float(start)
    first = int(start)
    return xp.arange(count) * (int(_exact(start) + _exact(step)) - first) + first


@arange.infer
def _(ins, outs, *, start, stop, step, repeat, infer_range, **params):
    if stop is None and infer_range:
        return ins, outs
    first, last = (0.0, start) if stop is None else (start, stop)
    if step == 0 or repeat < 1:
        raise OpValueError(f"operator _arange: step={step} and repeat={repeat}; expected a step other than 0 and repeat >= 1")
    shape = (range_length("operator _arange", first, last, step) * repeat,)
    return ins, infer.same_shape("_arange", ("the range", "output"), [shape, outs[0]])[1:]


def _count_up(xp, out, start, step, repeat):
    """Write evenly spaced numbers, each `repeat` times."""
    values = spaced(xp, -(-out.size // repeat), start, step, out.dtype.kind in "iu")
    out.reshape(-1)[...] = (xp.repeat(values, repeat)[: out.size] if repeat > 1 else values).astype(out.dtype)


@on_both(arange)
def _(xp, inputs, outputs, *, start, stop, step, repeat, infer_range, **params):
    _count_up(xp, outputs[0], 0.0 if stop is None and not infer_range else start, step, repeat)


@kernel(name="_contrib_arange_like", aliases=("_npx_arange_like",), shape_only=(0,))
def arange_like(data, *, start: Scalar = 0.0, step: Scalar = 1.0, repeat: int = 1, ctx: str = "", axis: int | None = None):
    """Evenly spaced numbers: in the shape of the data, or a vector as long as one axis.

    >>> mx.nd.contrib.arange_like(mx.nd.zeros((2, 3)), axis=1).asnumpy().tolist()
    [0.0, 1.0, 2.0]
    """


@arange_like.shape
def _(data, *, axis, repeat, **params):
    if repeat < 1:
        raise OpValueError(f"operator _contrib_arange_like: repeat={repeat}; expected at least 1")
    return data if axis is None else (data[infer.normal_axis("_contrib_arange_like", axis, len(data))],)


def _arange_like_forward(data, *, axis, **params):
    if data is None:
        return None if axis is None else (None,)
    return arange_like._shape(data, axis=axis, **params)


both_ways(arange_like, _arange_like_forward)


@on_both(arange_like)
def _(xp, inputs, outputs, *, start, step, repeat, **params):
    _count_up(xp, outputs[0], start, step, repeat)


@kernel(name="_linspace", aliases=("_npi_linspace",))
def linspace(*, start: float, stop: float | None = None, num: int = 50, endpoint: bool = True, ctx: str = "",
             dtype: DType = dtypes.FLOAT32):  # fmt: skip
    """Make `num` numbers from `start` to `stop`, with or without the end; ``mx.nd.linspace`` calls it.

    >>> mx.nd._internal._linspace(start=0, stop=1, num=3).asnumpy().tolist()
    [0.0, 0.5, 1.0]
    """


@linspace.infer
def _(ins, outs, *, num, **params):
    if num < 0:
        raise OpValueError(f"operator _linspace: num={num} is negative")
    return ins, infer.same_shape("_linspace", ("the numbers", "output"), [(num,), outs[0]])[1:]


@on_both(linspace)
def _(xp, inputs, outputs, *, start, stop, num, endpoint, **params):
    values = xp.linspace(0.0 if stop is None else start, start if stop is None else stop, num, endpoint)
    dtypes.check_numbers(values, dtypes.code_of(outputs[0].dtype), "operator _linspace")
    outputs[0][...] = values.astype(outputs[0].dtype)


@kernel(name="_eye")
def eye(*, N: int, M: int = 0, k: int = 0, ctx: str = "", dtype: DType = dtypes.FLOAT32):
    """Make a matrix of `N` rows and `M` columns (unless positive: `N`) with ones on its diagonal `k`; ``mx.nd.eye`` calls it.

    >>> mx.nd._internal._eye(N=2, M=3, k=1).asnumpy().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """


@eye.infer
def _(ins, outs, *, N, M, **params):
    return ins, infer.same_shape("_eye", ("the matrix", "output"), [(N, M if M > 0 else N), outs[0]])[1:]


@eye.rearrange
def _(xp, inputs, outputs, *, k, **params):
    (out,), (rows, columns) = outputs, outputs[0].shape
    n = max(0, min(rows - max(-k, 0), columns - max(k, 0)))
    first, step = max(-k, 0) * columns + max(k, 0), columns + 1
    out[...] = 0
    out.reshape(rows * columns)[slice(first, first + n * step, step) if n else slice(0)] = 1


for _op in (arange, linspace, eye, constant):
    _op.dtype(lambda *, dtype, **params: dtype)
for _op in (arange, arange_like, linspace, eye, constant):
    zero_gradient(_op)
