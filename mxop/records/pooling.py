"""Records of pooling (``mxop/ops/pooling.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal, record_of
from .convolution import counts, each_window, padded


# ---- pooling ---------------------------------------------------------------------------------------------------------
def _reduced(window, pool_type, p_value):
    if pool_type == "lp":
        total = np.sum(window**p_value, -1)
        return {1: total, 2: np.sqrt(total), 3: np.cbrt(total)}[p_value]
    return {"max": np.max, "avg": np.mean, "sum": np.sum}[pool_type](window, -1)


def _pooling(
    data, kernel=(), pool_type="max", global_pool=False, pooling_convention="valid", stride=(), pad=(), p_value=None,
    count_include_pad=None, layout=None,
):  # fmt: skip
    last = layout is not None and layout.endswith("C")
    data = np.moveaxis(data, -1, 1) if last else data
    if global_pool:
        result = _reduced(data.reshape(*data.shape[:2], -1), pool_type, p_value).reshape(
            *data.shape[:2], *(1,) * (data.ndim - 2)
        )
    else:
        result = _windowed(data, kernel, stride, pad, pool_type, pooling_convention, p_value, count_include_pad is not False)
    return np.moveaxis(result, 1, -1) if last else result


def _frame(kernel, stride, pad):
    n = len(kernel)
    return kernel, stride or (1,) * n, (1,) * n, pad or (0,) * n


def _windowed(data, kernel, stride, pad, pool_type, convention, p_value, include):
    at = _frame(kernel, stride, pad)
    found = counts(data.shape[2:], *at, convention)
    whole = padded(data, *at, -np.inf if pool_type == "max" else 0)
    # what counts in an average: the image, and its padding
    marks = padded(np.ones((1, 1, *data.shape[2:])), *at)
    if include:
        marks[(0, 0, *(slice(0, n + 2 * p) for n, p in zip(data.shape[2:], at[3], strict=True)))] = 1
    result = np.zeros((*data.shape[:2], *found))
    for place, part in each_window(found, *at):
        window = whole[part].reshape(*data.shape[:2], -1)
        if pool_type == "avg":
            result[place] = window.sum(-1) / max(marks[part].sum(), 1)
        else:
            result[place] = _reduced(window, pool_type, p_value)
    return result


def _largest_in_windows(data, kernel, stride=(), pad=(), count="valid"):
    at = _frame(kernel, stride, pad)
    sizes, found = data.shape[2:], counts(data.shape[2:], *at, count)
    whole, places = padded(np.float64(data), *at, -np.inf), padded(np.arange(np.prod(sizes)).reshape(1, 1, *sizes), *at)
    result = np.zeros((*data.shape[:2], *found), np.int64)
    for place, part in each_window(found, *at):
        result[place] = places[part].ravel()[whole[part].reshape(*data.shape[:2], -1).argmax(-1)]
    return result


def _largest_of_windows(data, **params):
    at = _largest_in_windows(data, **params)
    flat = np.take_along_axis(data.reshape(*data.shape[:2], -1), at.reshape(*at.shape[:2], -1), 2)
    return flat.reshape(at.shape)


def _window_shares(data, kernel, stride=(), dilate=(), pad=(), count="valid", padded=True):
    at = _frame(kernel, stride, pad)
    result = np.ones(1)
    for size, k, s, p, n in zip(data.shape[2:], kernel, at[1], at[3], counts(data.shape[2:], *at, count), strict=True):
        inside = range(size + 2 * p) if padded else range(p, p + size)
        elements = [sum(e in inside for e in range(i * s, i * s + k)) for i in range(n)]
        result = np.multiply.outer(result, [k / e if e else 1 for e in elements])
    return result[0]


def _pooling_v1(data, kernel=(), pool_type="max", global_pool=False, pooling_convention="valid", stride=(), pad=()):
    if global_pool:
        return _pooling(data, kernel, pool_type, True)
    if pool_type == "max" and pad:
        data = np.pad(data, [(0, 0), (0, 0), *((p, p) for p in pad)])
        return _pooling(data, kernel, "max", False, pooling_convention, stride)
    total = _pooling(data, kernel, "sum" if pool_type == "avg" else pool_type, False, pooling_convention, stride, pad)
    return total / np.prod(kernel) if pool_type == "avg" else total


# ---- bins ------------------------------------------------------------------------------------------------------------
def bins(n, size):
    return [(int(np.floor(i * n / size)), int(np.ceil((i + 1) * n / size))) for i in range(size)]


def _adaptive(data, output_size=()):
    height, width = (output_size or (1,)) * (1 if len(output_size) == 2 else 2)
    found = np.zeros((*data.shape[:2], height, width))
    for i, (a, b) in enumerate(bins(data.shape[2], height)):
        for j, (c, d) in enumerate(bins(data.shape[3], width)):
            found[:, :, i, j] = data[:, :, a:b, c:d].mean((2, 3))
    return found


# ---- the records -----------------------------------------------------------------------------------------------------
_SQUARE, _LINE = [(2, 2, 4, 3)], [(1, 2, 5)]
_SHARED = (
    ({"kernel": (2, 2), "stride": (2, 1)}, _SQUARE),
    ({"kernel": (2, 3), "pad": (1, 1), "stride": (2, 2)}, _SQUARE),
    ({"kernel": (3, 2), "pad": (1, 0), "stride": (2, 2), "pooling_convention": "full"}, _SQUARE),
    ({"global_pool": True}, _SQUARE),
    ({"kernel": (2, 2), "global_pool": True}, _SQUARE),
)
_FULL = {"kernel": (2,), "stride": (2,), "pooling_convention": "full"}

RECORDS: dict[str, Record] = {
    "Pooling": record_of(
        _pooling,
        *(({**p, "pool_type": t}, s) for p, s in _SHARED for t in ("max", "avg", "sum")),
        *(({**p, "pool_type": "lp", "p_value": 2}, s) for p, s in _SHARED[:1] + _SHARED[3:]),
        ({**_FULL, "pool_type": "lp", "p_value": 1}, _LINE), ({**_FULL, "pool_type": "lp", "p_value": 3}, _LINE),
        ({**_FULL, "pad": (1,), "pool_type": "avg", "count_include_pad": False}, _LINE),
        ({**_FULL, "pad": (1,), "pool_type": "avg", "count_include_pad": True}, _LINE),
        ({"kernel": (3,), "pad": (1,), "pool_type": "avg", "count_include_pad": False}, _LINE),
        ({"kernel": (3,), "stride": (2,), "pooling_convention": "same", "pool_type": "avg"}, _LINE),
        ({"kernel": (3,), "stride": (2,), "pooling_convention": "same"}, _LINE),
        ({"kernel": (2, 1, 2), "stride": (1, 1, 2)}, [(1, 1, 2, 2, 4)]),
        ({"kernel": (2, 1, 2), "pool_type": "avg"}, [(1, 1, 2, 2, 3)]), ({"kernel": (2,), "layout": "NWC"}, [(1, 4, 2)]),
        ({"kernel": (2, 2), "layout": "NHWC", "pool_type": "avg", "pad": (1, 0), "count_include_pad": False}, [(1, 3, 2, 2)]),
        ({"layout": "NDHWC", "global_pool": True}, [(1, 2, 1, 2, 2)]), dtypes="f", distinct=True,
        refuses=[
            Refusal("spans 5", params={"kernel": (5, 5)}), Refusal("one to three sizes", params={}),
            Refusal("one to three dimensions", params={"global_pool": True}, shapes=((2, 3),)),
            Refusal("as layout='NWC' says", params={"global_pool": True, "layout": "NWC"}),
            Refusal("expected 2 numbers", params={"kernel": (2, 2), "stride": (1, 0)}),
            Refusal("expected 3 dimensions", params={"kernel": (2,)}),
            Refusal("expected 1, 2 or 3", params={"kernel": (2, 2), "pool_type": "lp"}),
            Refusal("takes no padding", params={"kernel": (2, 2), "pad": (1, 1), "pooling_convention": "same"}),
            Refusal("does not fit kernel", params={"kernel": (2, 2), "layout": "NWC"}),
            Refusal("floating-point", params={"kernel": (2, 2)}, dtypes=("int32",)),
        ],
    ),
    "Pooling_v1": record_of(
        _pooling_v1,
        *(({**p, "pool_type": t}, s) for p, s in _SHARED for t in ("max", "avg", "sum")),
        dtypes="f", distinct=True, avoid=(0,),
        refuses=[Refusal("spans 5", params={"kernel": (5, 5)}), Refusal("floating-point", dtypes=("int32",))],
    ),
    "_largest_in_windows": record_of(
        _largest_in_windows, *_SHARED[:2], ({"kernel": (3, 2), "pad": (1, 0), "stride": (2, 2), "count": "full"}, _SQUARE),
        ({"kernel": (3,), "stride": (2,), "count": "same"}, _LINE), order=0, grad_inputs=(), returns="int64",
        distinct=True, unchecked={"shapes back": "pooling calls it with its data, whose shape is known"},
    ),
    "_largest_of_windows": record_of(
        _largest_of_windows, *_SHARED[:2], ({"kernel": (3, 2), "pad": (1, 0), "stride": (2, 2), "count": "full"}, _SQUARE),
        ({"kernel": (3,), "stride": (2,), "count": "same"}, _LINE), ({"kernel": (5,), "pad": (2,)}, _LINE), distinct=True,
        unchecked={"shapes back": "pooling calls it with its data, whose shape is known"},
    ),
    "_window_shares": record_of(
        _window_shares, ({"kernel": (2, 2), "pad": (1, 0), "padded": False}, _SQUARE),
        ({"kernel": (2, 3), "stride": (2, 2), "count": "full"}, _SQUARE),
        ({"kernel": (2,), "stride": (3,), "count": "same"}, _LINE), dtypes="f", grad_inputs=(),
        unchecked={"shapes back": "pooling calls it with its data, whose shape is known"},
    ),
    "_cube": Record(lambda data: data**3),
    "_root3": Record(lambda data: np.where(data == 0, 0, np.cbrt(data)), avoid=(0,), dtypes="f"),  # no sign of zeros
    "_contrib_AdaptiveAvgPooling2D": record_of(
        _adaptive, ({}, _SQUARE), ({"output_size": (2,)}, _SQUARE), ({"output_size": (3, 2)}, _SQUARE),
        ({"output_size": (5, 4)}, [(1, 1, 2, 3)]), dtypes="f",
        refuses=[
            Refusal("one or two sizes", params={"output_size": (2, 0)}), Refusal("height, width", shapes=((2, 2, 4),)),
            Refusal("floating-point", dtypes=("int32",)),
        ],
    ),
}  # fmt: skip
