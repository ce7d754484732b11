"""Records of sorting (``mxop/ops/order.py``)."""

from __future__ import annotations

import numpy as np

from . import Record

# Real values are all different, or differences would find kinks; integers have ties.


def _order(data, axis=-1, k=0, is_ascend=True):
    if axis is None:
        data, axis = data.ravel(), 0
    if data.dtype.kind not in "iub":
        data = data.astype(np.float64)  # NumPy does not know where bfloat16's NaN belongs
    if is_ascend:
        found = np.argsort(data, axis, kind="stable")
    else:  # the last of the reversed is the first of equals
        n = data.shape[axis]
        found = np.flip(n - 1 - np.argsort(np.flip(data, axis), axis, kind="stable"), axis)
    return np.take(found, np.arange(k if k > 0 else data.shape[axis]), axis)


def _values(data, axis, places):
    return np.take_along_axis(*((data.ravel(), places, 0) if axis is None else (data, places, axis)))


def _ones_at(places, like, axis):
    result = np.zeros_like(like)
    np.put_along_axis(result, places.astype(np.int64), 1, axis)
    return result


def _topk(data, axis=-1, k=1, ret_typ="indices", is_ascend=False, dtype="float32"):
    places = _order(data, axis, k, is_ascend)
    if ret_typ == "mask":
        flat = data.ravel() if axis is None else data
        return _ones_at(places, flat, 0 if axis is None else axis).reshape(data.shape)
    values, indices = _values(data, axis, places), places.astype(dtype)
    return {"indices": indices, "value": values, "both": (values, indices)}[ret_typ]


def _asked(given, dtype="float32", **params):
    return dtype


def _topk_types(given, ret_typ="indices", dtype="float32", **params):
    return {"indices": dtype, "value": given, "mask": given, "both": (given, dtype)}[ret_typ]


_BACK = {"shapes back": "forward alone: without an axis, or with a k, the output does not say the input's shape"}
_SORTED = [{}, {"axis": 0, "is_ascend": False}, {"axis": None}, {"axis": 1, "is_ascend": False}]

RECORDS: dict[str, Record] = {
    "_sort_order": Record(_order, params=[*_SORTED[:2], {"k": 2, "is_ascend": False}], shapes=[((3, 4),)] * 3,
                     order=0, grad_inputs=(), reference_dtype=True, returns="int64", unchecked=_BACK),
    "_sorted": Record(lambda data, axis=-1, is_ascend=True: _values(data, axis, _order(data, axis, 0, is_ascend)),
                   params=_SORTED[:2], shapes=[((3, 4),)] * 2, distinct=True),
    "sort": Record(lambda data, axis=-1, is_ascend=True: _values(data, axis, _order(data, axis, 0, is_ascend)),
                   params=_SORTED, shapes=[((3, 4),)] * 4, unchecked=_BACK, distinct=True),
    "argsort": Record(lambda data, axis=-1, is_ascend=True, dtype="float32": _order(data, axis, 0, is_ascend).astype(dtype),
                      params=[*_SORTED[:3], {"dtype": "int32"}], shapes=[((3, 4),)] * 4,
                      order=0, grad_inputs=(), reference_dtype=True, returns=_asked, unchecked=_BACK),
    "topk": Record(
        _topk,
        params=[
            {"ret_typ": "value", "k": 2}, {"k": 2, "dtype": "int64"}, {"ret_typ": "mask", "k": 2, "axis": 0},
            {"ret_typ": "both", "k": 3, "is_ascend": True, "dtype": "float64"}, {"ret_typ": "value", "axis": None, "k": 5},
            {"ret_typ": "mask", "axis": None, "k": 3},
        ],
        shapes=[((3, 4),)] * 6, reference_dtype=True, distinct=True, returns=_topk_types, unchecked=_BACK,
    ),
}  # fmt: skip
