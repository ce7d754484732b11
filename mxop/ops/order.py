"""Sorting: one kernel finds the order, the rest takes or marks the elements that it names.

Examples assume ``import mxop as mx``.  May import :mod:`mxop.opdef` and :mod:`mxop.dtypes` only.
"""

from typing import Literal

from .. import dtypes
from ..errors import OpTypeError, OpValueError
from ..opdef import DType, composite, infer, kernel
from ._shared import both_ways, on_both, zero_gradient

#: Indices of the result: those that MXNet has.
_INDEX_TYPES = (dtypes.UINT8, dtypes.INT32, dtypes.INT64, dtypes.FLOAT16, dtypes.FLOAT32, dtypes.FLOAT64)


# ---- the order ------------------------------------------------------------------------------------------------------
@kernel(name="_sort_order")
def order(data, *, axis: int = -1, k: int = 0, is_ascend: bool = True):
    """Positions of the first `k` elements along an axis (all, when it is below 1) in order of value, as int64.

    Equal elements keep their order, both ways; NaN counts as the largest number.

    >>> mx.nd._internal._sort_order(mx.nd.array([3, 1, 2, 3]), k=3, is_ascend=False).asnumpy().tolist()
    [0, 3, 2]
    """


def _order_forward(data, *, axis, k, is_ascend):
    if data is None:
        return None
    at = infer.normal_axis("topk" if k > 0 else "sort", axis, len(data))  # what users call
    if data[at] is not None and k > data[at]:
        raise OpValueError(f"operator topk: k={k} is more than the {data[at]} elements of axis {at} of data of shape "
                           f"{infer.show(data)}")  # fmt: skip
    return (*data[:at], k if k > 0 else data[at], *data[at + 1 :])


order.shape(_order_forward)
both_ways(order, _order_forward)
order.infer_type = lambda attrs, ins, outs: (ins, [dtypes.INT64])
zero_gradient(order)


def _keys(xp, x):
    """Return signed integers that are ordered as the elements are."""
    if x.dtype.kind in "iub":
        return x
    x = xp.where(x != x, xp.asarray(xp.nan, x.dtype), x + xp.asarray(0, x.dtype))  # one NaN, and one zero
    bits = x.view(f"i{x.dtype.itemsize}")
    return xp.where(bits < 0, bits ^ xp.iinfo(bits.dtype).max, bits)


@on_both(order)
def _(xp, inputs, outputs, *, axis, k, is_ascend):
    x, out = xp.moveaxis(inputs[0], axis, -1), xp.moveaxis(outputs[0], axis, -1)
    n, k = x.shape[-1], out.shape[-1]
    keys = _keys(xp, x)
    if not is_ascend:
        keys = ~keys
    if keys.dtype.itemsize > 4 or n > 1 << 31:
        out[...] = xp.argsort(keys, axis=-1, kind="stable")[..., :k]
        return
    keys = (keys.astype(xp.int64) << 31) | xp.arange(n)  # all different, so that any way of sorting gives this order
    if k < n // 4:  # measured at rows of 1000 to 1e6: beyond that, sorting all is as quick
        keys = xp.partition(keys, k - 1, axis=-1)[..., :k] if k else keys[..., :0]
    out[...] = xp.sort(keys, axis=-1)[..., :k] & (1 << 31) - 1


# ---- what MXNet has -------------------------------------------------------------------------------------------------
def _ordered(F, data, axis, k, is_ascend):
    """Return the data (flat, without an axis), the axis, and the order."""
    if axis is None:
        data, axis = F.Reshape(data, shape=(-1,)), 0
    return data, axis, F._sort_order(data, axis=axis, k=k, is_ascend=is_ascend)


def _index_type(name, dtype):
    if dtype not in _INDEX_TYPES:
        names = ", ".join(dtypes.NAMES[t] for t in _INDEX_TYPES)
        raise OpTypeError(
            f"operator {name}: dtype={dtypes.NAMES[dtype]} is no type for indices; expected one of {names}"
        )
    return dtype


@composite(aliases=("_npx_topk",), num_outputs=lambda *, ret_typ, **params: 2 if ret_typ == "both" else 1)
def topk(
    F,
    data,
    *,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: Literal["both", "indices", "mask", "value"] = "indices",
    is_ascend: bool = False,
    dtype: DType = dtypes.FLOAT32,
):
    """Find the `k` largest elements along an axis, in their order.

    Equal elements keep their order, and NaN counts as the largest number.  The gradient goes to the elements whose
    values are returned; that of indices and masks is zero.

    Parameters
    ----------
    data : NDArray or Symbol
    axis : int or None
        None: among all elements.
    k : int
        How many; all, when it is below 1.
    ret_typ : str
        What to return: ``indices``, ``value``, ``both`` (values, then indices), or a ``mask`` of the data's shape with
        ones at the elements.
    is_ascend : bool
        Find the smallest instead.
    dtype : str or type
        Of indices.  float32 counts to 2**24 only, so ask for ``int64`` on longer axes.

    >>> x = mx.nd.array([[0.3, 0.2, 0.4], [0.1, 0.3, 0.2]])
    >>> mx.nd.topk(x, k=2).asnumpy().tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    >>> mx.nd.topk(x, k=2, ret_typ='mask').asnumpy().tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    flat, axis, places = _ordered(F, data, axis, k, is_ascend)
    values = F._take_lanes(flat, places, axis=axis)
    if ret_typ == "value":
        return values
    if ret_typ == "mask":
        return F.reshape_like(F._take_lanes_grad(F.ones_like(values), places, flat, axis=axis), data)
    indices = F.Cast(places, dtype=_index_type("topk", dtype))
    return indices if ret_typ == "indices" else [values, indices]


@composite(aliases=("_npi_sort",))
def sort(F, data, *, axis: int | None = -1, is_ascend: bool = True):
    """Sort along an axis; NaN counts as the largest number.

    Parameters
    ----------
    data : NDArray or Symbol
    axis : int or None
        None: sort all elements, into a vector.
    is_ascend : bool

    >>> mx.nd.sort(mx.nd.array([[3, 1, 2]]), is_ascend=False).asnumpy().tolist()
    [[3.0, 2.0, 1.0]]
    """
    data, axis, places = _ordered(F, data, axis, 0, is_ascend)
    return F._take_lanes(data, places, axis=axis)


@composite(aliases=("_npi_argsort",))
def argsort(F, data, *, axis: int | None = -1, is_ascend: bool = True, dtype: DType = dtypes.FLOAT32):
    """Find the order of the elements along an axis; equal ones keep their order, and NaN counts as the largest number.

    Parameters
    ----------
    data : NDArray or Symbol
    axis : int or None
        None: of all elements, as a vector.
    is_ascend : bool
    dtype : str or type
        Of the indices.  float32 counts to 2**24 only, so ask for ``int64`` on longer axes.

    >>> mx.nd.argsort(mx.nd.array([3, 1, 2])).asnumpy().tolist()
    [1.0, 2.0, 0.0]
    """
    places = _ordered(F, data, axis, 0, is_ascend)[2]
    return F.Cast(places, dtype=_index_type("argsort", dtype))
