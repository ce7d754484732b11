"""Sorting: sort, argsort, topk."""

from typing import Literal

from ..opdef import DType, composite, infer, kernel
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError
from ._shared import both_ways, equal_shapes, zero_gradient

#: Indices of the result: those that MXNet has.
_INDEX_TYPES = (dtypes.UINT8, dtypes.INT32, dtypes.INT64, dtypes.FLOAT16, dtypes.FLOAT32, dtypes.FLOAT64)


# ---- the order ------------------------------------------------------------------------------------------------------
@kernel(name="_sort_order", strided=True)
def order(data, *, axis: int = -1, k: int = 0, is_ascend: bool = True, dtype: DType = dtypes.INT64):
    """Positions of the first `k` elements along an axis (all, when it is below 1) in order of value.

    Equal elements keep their order, both ways; NaN counts as the largest number.

    >>> mx.nd._internal._sort_order(mx.nd.array([3, 1, 2, 3]), k=3, is_ascend=False).asnumpy().tolist()
    [0, 3, 2]
    """


@kernel(name="_sorted")
def in_order(data, *, axis: int = -1, is_ascend: bool = True):
    """The elements along an axis in order of value; NaN counts as the largest number.

    >>> mx.nd._internal._sorted(mx.nd.array([3, 1, 2]), is_ascend=False).asnumpy().tolist()
    [3.0, 2.0, 1.0]
    """


def _order_forward(data, *, axis, k=0, is_ascend, dtype=None):
    if data is None:
        return None
    at = infer.normal_axis("topk" if k > 0 else "sort", axis, len(data))  # what users call
    if data[at] is not None and k > data[at]:
        raise OpValueError(f"operator topk: k={k} is more than the {data[at]} elements of axis {at} of data of shape "
                           f"{infer.show(data)}")  # fmt: skip
    return (*data[:at], k if k > 0 else data[at], *data[at + 1 :])


both_ways(order, _order_forward)
order.infer_types(lambda ins, outs, *, dtype, **params: (ins, [dtype]))
zero_gradient(order)
equal_shapes(in_order)
in_order.shape(_order_forward)


@in_order.gradient
def _(F, heads, inputs, outputs, *, axis, is_ascend):
    places = F._sort_order(inputs[0], axis=axis, is_ascend=is_ascend)
    return [F._take_lanes_grad(heads[0], places, inputs[0], axis=axis)]


def _words(xp, x):
    """Return signed integers, or integers as they are, that are ordered as the elements are."""
    if x.dtype.kind in "iub":
        return x
    x = xp.where(x != x, xp.asarray(xp.nan, x.dtype), x + xp.asarray(0, x.dtype))  # one NaN, and one zero
    bits = x.view(f"i{x.dtype.itemsize}")
    return xp.where(bits < 0, bits ^ xp.iinfo(bits.dtype).max, bits)


def _keys(xp, x):
    """Return what a library orders as the elements are: NumPy knows where NaN belongs, and has no quick order of halves."""
    return x if xp.__name__ == "numpy" and x.dtype.kind == "f" and x.dtype.itemsize > 2 else _words(xp, x)


def _places(xp, keys, axis, is_ascend):
    """Return the positions of elements in order of their keys; equal ones keep their order, both ways."""
    if is_ascend:
        return xp.argsort(keys, axis=axis, kind="stable")
    from_behind = xp.argsort(xp.flip(keys, axis), axis=axis, kind="stable")
    return keys.shape[axis] - 1 - xp.flip(from_behind, axis)


def _first_places(np, x, k, is_ascend):
    """Return the positions of the first `k` elements of each row, in order: `k` of those that are no further than the last."""
    keys = _keys(np, x.reshape(-1, x.shape[-1]))
    at = k - 1 if is_ascend else keys.shape[-1] - k
    last = np.partition(keys, at, axis=-1)[:, at : at + 1]
    chosen = keys <= last if is_ascend else ~(keys < last)  # NaN is the largest number
    unsure = np.count_nonzero(chosen, axis=-1) != k  # there are equals of the last, or NaN, which nothing equals
    if unsure.any():
        chosen[unsure] = _first_of_equals(np, _words(np, keys[unsure]), k, is_ascend)
    places = (np.flatnonzero(chosen) % chosen.shape[-1]).reshape(-1, k)
    ranks = _places(np, np.take_along_axis(keys, places, -1), -1, is_ascend)
    return np.take_along_axis(places, ranks, -1).reshape(*x.shape[:-1], k)


def _first_of_equals(np, words, k, is_ascend):
    """Tell which elements of each row are the first `k`: all before the last of them, and of its equals the first."""
    words = words if is_ascend else ~words
    last = np.partition(words, k - 1, axis=-1)[:, k - 1 : k]
    chosen, equal = words < last, words == last
    chosen |= equal & (np.cumsum(equal, axis=-1) <= k - np.count_nonzero(chosen, axis=-1)[:, None])
    return chosen


@order.cpu
def _(inputs, outputs, *, axis, k, is_ascend, dtype):
    import numpy as np

    x, out = (np.moveaxis(np.asarray(a), axis, -1) for a in (inputs[0], outputs[0]))
    n = out.shape[-1]
    if 0 < 2 * n <= x.shape[-1] and x.size:  # partition takes half as long as order, or less
        out[...] = _first_places(np, x, n, is_ascend)
    else:
        out[...] = _places(np, _keys(np, x), -1, is_ascend)[..., :n]


@order.gpu
def _(xp, inputs, outputs, *, axis, k, is_ascend, dtype):
    x, out = (xp.moveaxis(a, axis, -1) for a in (inputs[0], outputs[0]))
    if not _sorted_by_blocks(xp, x, out, is_ascend, False):
        out[...] = _places(xp, _words(xp, x), -1, is_ascend)[..., : out.shape[-1]]


def _sorted_by_blocks(xp, x, out, is_ascend, elements):
    """Sort along the last axis by a kernel, which has rows that are not too long; return whether it did."""
    from .._gpu import sorting

    n, k = x.shape[-1], out.shape[-1]
    if not sorting.fits(n, dtypes.code_of(x.dtype)):
        return False
    found = out if out.flags.c_contiguous else xp.empty(out.shape, out.dtype)
    sorting.in_order(xp.ascontiguousarray(x).reshape(-1, n), found.reshape(-1, k), not is_ascend, elements)
    if found is not out:
        out[...] = found
    return True


@in_order.both
def _(xp, inputs, outputs, *, axis, is_ascend):
    if xp.__name__ != "numpy" and _sorted_by_blocks(
        xp, *(xp.moveaxis(a, axis, -1) for a in (inputs[0], outputs[0])), is_ascend, True
    ):
        return
    x, keys = inputs[0], _keys(xp, inputs[0])
    if keys is not x:
        outputs[0][...] = xp.take_along_axis(x, _places(xp, keys, axis, is_ascend), axis)
    else:
        found = xp.sort(x, axis=axis)
        outputs[0][...] = found if is_ascend else xp.flip(found, axis)


# ---- what MXNet has -------------------------------------------------------------------------------------------------
def _flat(F, data, axis):
    """Return the data (flat, without an axis) and the axis."""
    return (F.Reshape(data, shape=(-1,)), 0) if axis is None else (data, axis)


def _index_type(name, dtype):
    if dtype not in _INDEX_TYPES:
        names = ", ".join(dtypes.NAMES[t] for t in _INDEX_TYPES)
        raise OpTypeError(f"operator {name}: dtype={dtypes.NAMES[dtype]} is not a type for indices; expected one of {names}")
    return dtype


def _topk_names(*, ret_typ, **params):
    """MXNet hides the places, and counts them."""
    return ("output0", "output1") if ret_typ in ("value", "both") else ("output",)


@composite(
    aliases=("_npx_topk",),
    num_outputs=lambda *, ret_typ, **params: 2 if ret_typ == "both" else 1,
    output_names=_topk_names,
)
def topk(F, data, *, axis: int | None = -1, k: int = 1, ret_typ: Literal["both", "indices", "mask", "value"] = "indices",
         is_ascend: bool = False, dtype: DType = dtypes.FLOAT32):  # fmt: skip
    """Find the `k` largest elements along an axis, sorted.

    Equal elements keep their order, and NaN counts as the largest number.  The gradient goes to the elements whose
    values are returned; that of indices and masks is zero.

    Parameters
    ----------
    axis : int or None
        None: among all elements.
    k : int
        Number of elements; all if below 1.
    ret_typ : str
        The result: ``indices``, ``value``, ``both`` (values, then indices), or a ``mask`` of the data's shape with
        ones at the elements.
    is_ascend : bool
        Find the smallest instead.
    dtype : str or type
        Of indices.  float32 is exact up to 2**24 only: use ``int64`` for longer axes.

    >>> x = mx.nd.array([[0.3, 0.2, 0.4], [0.1, 0.3, 0.2]])
    >>> mx.nd.topk(x, k=2).asnumpy().tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    >>> mx.nd.topk(x, k=2, ret_typ='mask').asnumpy().tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    flat, axis = _flat(F, data, axis)
    if ret_typ == "indices":
        return F._sort_order(flat, axis=axis, k=k, is_ascend=is_ascend, dtype=_index_type("topk", dtype))
    places = F._sort_order(flat, axis=axis, k=k, is_ascend=is_ascend)
    values = F._take_lanes(flat, places, axis=axis)
    if ret_typ == "value":
        return values
    if ret_typ == "mask":
        return F.reshape_like(F._take_lanes_grad(F.ones_like(values), places, flat, axis=axis), data)
    return [values, F.Cast(places, dtype=_index_type("topk", dtype))]


@composite(aliases=("_npi_sort",), output_names=("output0",))  # MXNet computes the places, too
def sort(F, data, *, axis: int | None = -1, is_ascend: bool = True):
    """Sort along an axis; NaN counts as the largest number.

    Parameters
    ----------
    axis : int or None
        None: sort all elements, into a vector.

    >>> mx.nd.sort(mx.nd.array([[3, 1, 2]]), is_ascend=False).asnumpy().tolist()
    [[3.0, 2.0, 1.0]]
    """
    data, axis = _flat(F, data, axis)
    return F._sorted(data, axis=axis, is_ascend=is_ascend)


@composite(aliases=("_npi_argsort",))
def argsort(F, data, *, axis: int | None = -1, is_ascend: bool = True, dtype: DType = dtypes.FLOAT32):
    """Indices that sort the elements along an axis; equal ones keep their order, and NaN counts as the largest number.

    Parameters
    ----------
    axis : int or None
        None: of all elements, as a vector.
    dtype : str or type
        Of the indices.  float32 is exact up to 2**24 only: use ``int64`` for longer axes.

    >>> mx.nd.argsort(mx.nd.array([3, 1, 2])).asnumpy().tolist()
    [1.0, 2.0, 0.0]
    """
    data, axis = _flat(F, data, axis)
    return F._sort_order(data, axis=axis, is_ascend=is_ascend, dtype=_index_type("argsort", dtype))
