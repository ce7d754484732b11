"""Reductions: sums, products, extrema, norms, and the positions of extrema.

Each sum is its element's formula; its gradient follows.
"""

from typing import Literal

from ..opdef import DType, F, Shape, composite, elementwise, infer, kernel, reduction
from ..support import dtypes
from ..support.errors import OpValueError
from ..support.shape_mode import numpy_shape
from ._shared import (
    along,
    both_ways,
    compiled,
    equal_shapes,
    float_types,
    in_steps,
    reviewed,
    size_of,
    typed_by_first,
    zero_gradient,
)


# ---- sums -----------------------------------------------------------------------------------------------------------
@reduction("add", name="sum", aliases=("_sparse_sum", "sum_axis"))
def sum_(data):
    """Sum along axes.

    Parameters
    ----------
    axis : int or tuple of int, optional
        Axes to sum over, counted from the end when negative; all when none is given.
    keepdims : bool
        Keep the summed axes, with size 1.
    exclude : bool
        Sum over the axes that `axis` does not name.

    Returns
    -------
    NDArray or Symbol
        A full reduction has shape ``(1,)``, or ``()`` under ``mx.util.np_shape``.  float16 is summed in float32.

    >>> mx.nd.sum(mx.nd.array([[1, 2], [3, 4]]), axis=1).asnumpy().tolist()
    [3.0, 7.0]
    """
    return data


@reduction("add", aliases=("_sparse_mean",), final=lambda value, count: value / count)
def mean(data):
    """Arithmetic mean along axes; for integers it is truncated to an integer.  Parameters as for ``sum``.

    >>> mx.nd.mean(mx.nd.array([[1, 2], [3, 5]]), axis=0).asnumpy().tolist()
    [2.0, 3.5]
    """
    return data


@mean.gradient
def _(F, heads, inputs, outputs, *, axis, keepdims, exclude):
    g = F._divide_by_count(heads[0], inputs[0], axis=axis, exclude=exclude)
    return [F._broadcast_reduced(g, inputs[0], axis=axis, keepdims=keepdims, exclude=exclude)]


@reduction("add")
def nansum(data):
    """Sum along axes, with NaN counted as 0 (and getting gradient 0).  Parameters as for ``sum``.

    >>> mx.nd.nansum(mx.nd.array([1, float('nan'), 3])).asnumpy().tolist()
    [4.0]
    """
    return F.where(F.isnan(data), 0, data)


@reduction("add", name="_square_sum")
def square_sum(data):
    """Sum of squares along axes.  Parameters as for ``sum``.

    >>> mx.nd._internal._square_sum(mx.nd.array([[1, 2], [3, 4]]), axis=1).asnumpy().tolist()
    [5.0, 25.0]
    """
    return F.square(data)


@reduction(
    lambda *, ord, out_dtype: "add" if ord == 1 else "hypot",
    exclude=False,
    wide=True,
    aliases=("_sparse_norm",),
    param_order=("ord", "axis", "out_dtype", "keepdims"),  # MXNet's, for those who give them by place
)
def norm(data, *, ord: Literal[1, 2] = 2, out_dtype: DType | None = None):
    """Norm along axes: the square root of the sum of squares, or the sum of magnitudes.

    Parameters
    ----------
    axis : int or tuple of int, optional
        All axes when none is given.
    keepdims : bool
        Keep the reduced axes, with size 1.
    out_dtype : str or type, optional
        Element type of the result; the data's by default.

    Notes
    -----
    Squares of large and small elements do not overflow or underflow.  The gradient at 0 is 0, where MXNet 1.x
    gives NaN.

    >>> mx.nd.norm(mx.nd.array([[3, 4], [0, -2]]), axis=1).asnumpy().tolist()
    [5.0, 2.0]
    """
    return F.abs(data) if ord == 1 else data


@norm.gradient  # not the derivative of the magnitudes, which loses the second order where an element is 0
def _(F, heads, inputs, outputs, *, ord, axis, out_dtype, keepdims):
    g, y = heads[0], outputs[0]
    data = inputs[0] if out_dtype is None else F.cast(inputs[0], dtype=out_dtype)
    if not keepdims:  # the small arrays get their axes back, so that they broadcast
        g, y = (F._restore_dims(a, data, axis=axis) for a in (g, y))
    slopes = F.broadcast_mul(F.sign(data), g) if ord == 1 else F._norm_slope(g, data, y)
    return [slopes if out_dtype is None else F._cast_like(slopes, inputs[0])]


@elementwise(name="_norm_slope", broadcast=True)
def norm_slope(head, data, norm):
    """Evaluate ``head * data / norm``, whose factors do not overflow; 0 where the norm is 0, with derivatives that are 0."""
    return F.where(norm == 0, 0, head * (data / F.where(norm == 0, 1, norm)))


# ---- products -------------------------------------------------------------------------------------------------------
@reduction("mul")
def prod(data):
    """Product along axes.  Parameters as for ``sum``.

    The gradient is right where elements are 0 too, at every order (MXNet 1.x gives NaN there).

    >>> mx.nd.prod(mx.nd.array([[1, 2], [3, 4]]), axis=1).asnumpy().tolist()
    [2.0, 12.0]
    """
    return data


@reduction("mul")
def nanprod(data):
    """Product along axes, with NaN counted as 1 (and getting gradient 0).  Parameters as for ``sum``.

    >>> mx.nd.nanprod(mx.nd.array([2, float('nan'), 3])).asnumpy().tolist()
    [6.0]
    """
    return F.where(F.isnan(data), 1, data)


@equal_shapes
@kernel(name="_product_of_others")
def product_of_others(*data, axis: Shape | None = None, exclude: bool = False):
    """Multiply, for each element, all other elements along axes: the derivative of ``prod``.

    With more inputs, ``(x, g1, ... gm)``, it sums over all choices of `m` further elements the products in which the
    element chosen for `gk` is replaced by that of `gk`.  This family is closed under differentiation, so zeros need no
    special case at any order: no step divides.
    """


@product_of_others.cpu
def _(inputs, outputs, *, axis, exclude):
    import numpy as np

    arrays = [np.asarray(a) for a in inputs]
    result = np.asarray(outputs[0])
    axes = infer.reduced_axes("_product_of_others", axis, exclude, result.ndim)
    # reduced axes last, as rows of a matrix: the kernel walks along rows
    order = [i for i in range(result.ndim) if i not in axes] + list(axes)
    moved = result.transpose(order)
    lead = result.ndim - len(axes)
    rows = (size_of(moved.shape[:lead]), size_of(moved.shape[lead:]))
    wide = np.float32 if result.dtype.kind in "fV" and result.itemsize <= 4 else np.float64
    matrices = [np.ascontiguousarray(a.transpose(order), dtype=wide).reshape(rows) for a in arrays]
    found = np.empty_like(matrices[0])
    compiled("products").product_of_others(matrices, found, compiled("team").get_num_threads())
    np.copyto(moved, found.reshape(moved.shape), casting="unsafe")


@product_of_others.gpu
def _(xp, inputs, outputs, *, axis, exclude):
    rank = outputs[0].ndim
    axes = infer.reduced_axes("_product_of_others", axis, exclude, rank)
    order = [i for i in range(rank) if i not in axes] + list(axes)
    moved = outputs[0].transpose(order)
    rows = size_of(moved.shape[: rank - len(axes)])
    x, *tangents = [a.transpose(order).reshape(rows, -1) for a in inputs] if outputs[0].size else inputs
    if not outputs[0].size:
        return
    n, subsets = x.shape[1], 1 << len(tangents)

    def running(step):
        """Return, for every subset of tangents, the products of the elements before each one."""
        found = xp.zeros((subsets, rows, n), x.dtype)
        state = xp.zeros((subsets, rows), x.dtype)
        state[0] = 1
        for k in range(n) if step > 0 else range(n - 1, -1, -1):
            found[:, :, k] = state
            state = xp.stack([
                state[s] * x[:, k] + sum(state[s & ~(1 << t)] * g[:, k] for t, g in enumerate(tangents) if s >> t & 1)
                for s in range(subsets)
            ])  # fmt: skip
        return found

    before, after = running(1), running(-1)
    total = sum(before[s] * after[subsets - 1 - s] for s in range(subsets))
    moved[...] = total.reshape(moved.shape)


@product_of_others.gradient
def _(F, heads, inputs, outputs, **params):
    x, tangents = inputs[0], list(inputs[1:])
    grads = [F._product_of_others(x, *tangents, heads[0], **params)]
    for k in range(len(tangents)):
        rest = tangents[:k] + tangents[k + 1 :]
        grads.append(F._product_of_others(x, *rest, heads[0], **params))
    return grads


# ---- extrema --------------------------------------------------------------------------------------------------------
@reduction("max", name="max", aliases=("max_axis",))
def max_(data):
    """Largest element along axes; NaN if one is NaN, an error for empty data.  Parameters as for ``sum``.

    Every element equal to the largest gets the full gradient.

    >>> mx.nd.max(mx.nd.array([[1, 2], [4, 3]]), axis=1).asnumpy().tolist()
    [2.0, 4.0]
    """
    return data


@reduction("max", name="_highest", empty=True)
def highest(data):
    """Largest element along axes, and -inf (or the least integer) of nothing."""
    return data


@reduction("min", name="min", aliases=("min_axis",))
def min_(data):
    """Smallest element along axes; NaN if one is NaN, an error for empty data.  Parameters as for ``sum``.

    Every element equal to the smallest gets the full gradient.

    >>> mx.nd.min(mx.nd.array([[1, 2], [4, 3]]), axis=1).asnumpy().tolist()
    [1.0, 3.0]
    """
    return data


# ---- truths ---------------------------------------------------------------------------------------------------------
@reduction("mul", name="all")
def all_(data):
    """1 where no element along axes is 0, otherwise 0, in the type of the data; 1 for empty data.

    Parameters as for ``sum``.  The gradient is zero.  The result is a mask, as that of a comparison.

    >>> mx.nd.all(mx.nd.array([[1, 2], [0, 3]]), axis=1).asnumpy().tolist()
    [1.0, 0.0]
    """
    return data != 0


@reduction("mul", name="any", final=lambda value, count: value == 0)
def any_(data):
    """1 where an element along axes is not 0, otherwise 0, in the type of the data; 0 for empty data.

    Parameters as for ``sum``.  The gradient is zero.  The result is a mask, as that of a comparison.

    >>> mx.nd.any(mx.nd.array([[1, 0], [0, 0]]), axis=1).asnumpy().tolist()
    [1.0, 0.0]
    """
    return data == 0


for _op in (all_, any_):
    _op.gives_mask = True
    zero_gradient(_op)


@elementwise(name="_select_equal", broadcast=True)
def select_equal(head, data, value):
    """Keep `head` where `data` equals `value`; 0 elsewhere."""
    return F.where(data == value, head, 0)


def _position_shape(name, shape, axis, keepdims):
    if axis is None:
        if keepdims:
            return (1,) * len(shape)
        return () if numpy_shape() else (1,)
    at = infer.normal_axis(name, axis, len(shape))
    result = (*shape[:at], *((1,) if keepdims else ()), *shape[at + 1 :])
    return result if result or numpy_shape() else (1,)


def _position(op, find):
    """Give `op` the shape rule and the device functions of a search along one axis."""

    @op.shape
    def _(data, *, axis=1, keepdims=False):
        result = _position_shape(op.name, data, axis, keepdims)
        along = size_of(data) if axis is None else data[axis]
        if along == 0 and size_of(result):
            raise OpValueError(f"operator {op.name}: data of shape {data} have no elements along axis={axis}")
        return result

    both_ways(
        op,
        lambda data, *, axis=1, keepdims=False: None if data is None else _position_shape(op.name, data, axis, keepdims),
    )

    @op.cpu(prepared=True)
    def _(steps, inputs, outputs, *, axis=1, keepdims=False):
        (data,), (out,) = inputs, outputs
        if not size_of(out.shape):
            return
        code = dtypes.COMPUTED_AS.get(data.dtype_code, data.dtype_code)
        lanes = along(data.shape, axis)
        real = out.dtype_code == dtypes.FLOAT32
        found = steps.room(out, dtypes.FLOAT32 if real else dtypes.INT64)
        steps.work(compiled("along").Find(lanes, code, find == "argmax", real), steps.converted(data, code), found)
        steps.move(found, out)

    @op.gpu
    def _(xp, inputs, outputs, *, axis=1, keepdims=False):
        if outputs[0].size:
            outputs[0][...] = getattr(xp, find)(inputs[0], axis=axis).reshape(outputs[0].shape)

    zero_gradient(op)


@kernel
def argmax(data, *, axis: int | None = None, keepdims: bool = False):
    """Position of the largest element along an axis (the first of equals, or of NaN), in the data's type.

    Parameters
    ----------
    axis : int, optional
        The flattened array is searched when none is given.
    keepdims : bool
        Keep the axis, with size 1.

    >>> mx.nd.argmax(mx.nd.array([[1, 3], [4, 2]]), axis=1).asnumpy().tolist()
    [1.0, 0.0]
    """


@kernel
def argmin(data, *, axis: int | None = None, keepdims: bool = False):
    """Position of the smallest element along an axis (the first of equals, or of NaN), in the data's type.

    Parameters as for ``argmax``.

    >>> mx.nd.argmin(mx.nd.array([[1, 3], [4, 2]]), axis=1).asnumpy().tolist()
    [0.0, 1.0]
    """


@kernel
def argmax_channel(data):
    """Position of the largest element along axis 1, in the data's type.

    >>> mx.nd.argmax_channel(mx.nd.array([[1, 3], [4, 2]])).asnumpy().tolist()
    [1.0, 0.0]
    """


@kernel(name="_largest_at")
def largest_at(data, *, axis: int):
    """Position of the largest element along an axis, as int64: no position is rounded, as the data's type may do.

    >>> mx.nd._internal._largest_at(mx.nd.array([[1, 3], [4, 2]]), axis=1).asnumpy().tolist()
    [1, 0]
    """


largest_at.infer_types(lambda ins, outs, **params: (ins, [dtypes.INT64]))
_position(largest_at, "argmax")
_position(argmax, "argmax")
_position(argmin, "argmin")
_position(argmax_channel, "argmax")


@composite(num_outputs=2)
def moments(F, data, *, axes: Shape | None = None, keepdims: bool = False):
    """Mean and variance along axes.

    Parameters
    ----------
    axes : int or tuple of int, optional
        All axes when none is given.
    keepdims : bool
        Keep the reduced axes, with size 1.

    Returns
    -------
    tuple
        The mean and the (biased) variance.

    >>> [m.asnumpy().tolist() for m in mx.nd.moments(mx.nd.array([[1, 3], [4, 8]]), axes=1)]
    [[2.0, 6.0], [1.0, 4.0]]
    """
    center = F.mean(data, axis=axes, keepdims=True)
    variance = F.mean(F.square(F.broadcast_sub(data, center)), axis=axes, keepdims=keepdims)
    return [center if keepdims else F.reshape_like(center, variance), variance]


@composite(name="_var", aliases=("_npi_var",))
def variance(F, data, *, axis: Shape | None = None, ddof: float = 0.0, keepdims: bool = False):
    """Variance along axes: the mean of squared differences from the mean.

    Parameters
    ----------
    axis : int or tuple of int, optional
        All axes when none is given.
    ddof : float
        The sum of squares is divided by the count less this number: 1 gives the unbiased estimate.
    keepdims : bool
        Keep the reduced axes, with size 1.

    >>> x = mx.nd.array([[1, 3], [4, 8]])
    >>> x.var(axis=1).asnumpy().tolist(), x.var(axis=1, ddof=1).asnumpy().tolist()
    ([1.0, 4.0], [2.0, 8.0])
    """
    centred = F.broadcast_sub(data, F.mean(data, axis=axis, keepdims=True))
    return F.sum(F.square(centred), axis=axis, keepdims=keepdims) / _degrees(data.shape, axis, ddof)


def _degrees(shape, axis, ddof):
    """Return how many degrees of freedom a sum of squares over axes has, NaN for none."""
    count = size_of([shape[k] for k in infer.reduced_axes("_var", axis, False, len(shape))]) - ddof
    return count if count > 0 else float("nan")


@composite(name="_std", aliases=("_npi_std",))
def deviation(F, data, *, axis: Shape | None = None, ddof: float = 0.0, keepdims: bool = False):
    """Standard deviation along axes: the square root of the variance; its gradient at 0 is 0.  Parameters as for ``_var``.

    >>> mx.nd.array([[1, 3], [4, 8]]).std(axis=1).asnumpy().tolist()
    [1.0, 2.0]
    """
    centred = F.broadcast_sub(data, F.mean(data, axis=axis, keepdims=True))
    return F.norm(centred, axis=axis, keepdims=keepdims) / _degrees(data.shape, axis, ddof) ** 0.5


for _op in (variance, deviation):
    float_types(_op)


@zero_gradient
@elementwise(name="_finite_or_zero")
def finite_or_zero(data):
    """The data where they are finite, otherwise 0; the gradient is zero."""
    return F.where(F.abs(data) < float("inf"), data, 0)


@composite(name="_logsumexp", in_float32=False)
def logsumexp(F, data, *, axis: Shape | None = None, keepdims: bool = False, exclude: bool = False):
    """Logarithm of the sum of exponentials along axes, without overflow.  Parameters as for ``sum``."""
    top = F._finite_or_zero(F._highest(data, axis=axis, keepdims=True, exclude=exclude))
    total = F.sum(F.exp(F.broadcast_sub(data, top)), axis=axis, keepdims=keepdims, exclude=exclude)
    return F.elemwise_add(F.log(total), top if keepdims else F.reshape_like(top, total))


# ---- the way back: from a reduction's result to its data's shape ----------------------------------------------------
def _kept(name, shape, axis, exclude):
    axes = infer.reduced_axes(name, axis, exclude, len(shape))
    return tuple(1 if i in axes else d for i, d in enumerate(shape))


@kernel(name="_broadcast_reduced")
def broadcast_reduced(data, like, *, axis: Shape | None = None, keepdims: bool = False, exclude: bool = False):
    """Repeat the result of a reduction of `like` along the axes that were reduced: the gradient of ``sum``."""


@kernel(name="_restore_dims")
def restore_dims(data, like, *, axis: Shape | None = None, exclude: bool = False):
    """Give the result of a reduction of `like` its reduced axes back, with size 1."""


@broadcast_reduced.view
def _(shape, strides, like, *, axis, keepdims, exclude):
    kept = _kept("_broadcast_reduced", like, axis, exclude)
    rest = list(_strides_of_kept(shape, strides, kept, like, "_broadcast_reduced"))
    return like, tuple(0 if k == 1 and d != 1 else s for k, d, s in zip(kept, like, rest, strict=True)), 0


@restore_dims.view
def _(shape, strides, like, *, axis, exclude):
    kept = _kept("_restore_dims", like, axis, exclude)
    return kept, _strides_of_kept(shape, strides, kept, like, "_restore_dims"), 0


def _strides_of_kept(shape, strides, kept, like, name):
    """Return the strides of `data` of `shape` once it has the shape `kept`; sizes 1 may come and go."""
    given = [(d, s) for d, s in zip(shape, strides, strict=True) if d != 1]
    if [d for d, _ in given] != [d for d in kept if d != 1]:
        raise OpValueError(f"operator {name}: shape {shape} is not a reduction of shape {like}; expected {kept}")
    remaining = iter(given)
    return tuple(1 if d == 1 else next(remaining)[1] for d in kept)


# The result has the type of `like` where the reduction changed it (norm with out_dtype).
typed_by_first(broadcast_reduced, 1)
typed_by_first(restore_dims)


@broadcast_reduced.gradient
def _(F, heads, inputs, outputs, *, axis, keepdims, exclude):
    return [F._reduce_like(heads[0], inputs[0], axis=axis, exclude=exclude), None]


@restore_dims.gradient
def _(F, heads, inputs, outputs, *, axis, exclude):
    return [F.reshape_like(heads[0], inputs[0]), None]


@kernel(name="_reduce_like", shape_only=(1,))
def reduce_like(data, like, *, axis: Shape | None = None, exclude: bool = False):
    """Sum along axes into the shape and type of `like`."""


@reduce_like.shape
def _(data, like, *, axis, exclude):
    kept = _kept("_reduce_like", data, axis, exclude)
    if [d for d in kept if d != 1] != [d for d in like if d != 1]:
        raise OpValueError(f"operator _reduce_like: shape {like} is not that of {data} reduced; expected {kept}")
    return like


typed_by_first(reduce_like, 1)


@in_steps(reduce_like)
def _(steps, inputs, outputs, *, axis, exclude):
    data, out = inputs[0], outputs[0]
    wide = data.dtype_code if data.dtype_code == out.dtype_code else dtypes.FLOAT64
    total = steps.room(out, wide)
    kept = reviewed(total, _kept("_reduce_like", data.shape, axis, exclude))
    steps.call("sum", {"axis": axis, "exclude": exclude, "keepdims": True}, [steps.converted(data, wide)], [kept])
    steps.move(total, out)


@reduce_like.gradient
def _(F, heads, inputs, outputs, *, axis, exclude):
    g = F._restore_dims(heads[0], inputs[0], axis=axis, exclude=exclude)
    return [F._broadcast_reduced(g, inputs[0], axis=axis, keepdims=True, exclude=exclude), None]


@typed_by_first
@equal_shapes
@kernel(name="_divide_by_count", shape_only=(1,))
def divide_by_count(data, like, *, axis: Shape | None = None, exclude: bool = False):
    """Divide by the number of elements of `like` that its reduction combines into one."""


def _count(like, axis, exclude):
    return size_of(like[a] for a in infer.reduced_axes("_divide_by_count", axis, exclude, len(like)))


@in_steps(divide_by_count)
def _(steps, inputs, outputs, *, axis, exclude):
    count = max(_count(inputs[1].shape, axis, exclude), 1)
    steps.call("_div_scalar", {"scalar": count}, inputs[:1], outputs)


@divide_by_count.gradient
def _(F, heads, inputs, outputs, **params):
    return [F._divide_by_count(heads[0], inputs[1], **params), None]


# ---- the way back from broadcasting ---------------------------------------------------------------------------------
@typed_by_first
@kernel(name="_unbroadcast", shape_only=(1,))
def unbroadcast(data, like):
    """Sum to the shape of `like`, which was broadcast to that of `data`: the gradient of broadcasting."""


def broadcast_axes_between(small, big):
    """Return the axes of `big` along which `small` was broadcast, aligned at the end as NumPy does."""
    lead = len(big) - len(small)
    if lead < 0 or any(s != 1 and s != b for s, b in zip(small, big[lead:], strict=True)):
        raise OpValueError(f"operator _unbroadcast: shape {small} does not broadcast to {big}")
    return tuple(range(lead)) + tuple(lead + i for i, s in enumerate(small) if s == 1 and big[lead + i] != 1)


@unbroadcast.shape
def _(data, like):
    broadcast_axes_between(like, data)
    return like


@in_steps(unbroadcast)
def _(steps, inputs, outputs):
    data, like = inputs
    axes = broadcast_axes_between(like.shape, data.shape)
    lead = (1,) * (len(data.shape) - len(like.shape))
    if axes:
        target = reviewed(outputs[0], (*lead, *like.shape))
        steps.call("sum", {"axis": axes, "keepdims": True}, [data], [target])
    else:
        steps.move(data, reviewed(outputs[0], data.shape))


@unbroadcast.gradient
def _(F, heads, inputs, outputs):
    return [F.broadcast_like(heads[0], inputs[0]), None]
