"""Records of counts and comparisons of whole arrays (``mxop/ops/counting.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal


def _histogram(data, *bins, bin_cnt=None, range=None):
    edges = bins[0].astype(np.float64) if bins else np.linspace(*range, bin_cnt + 1)
    inside = data[(data >= edges[0]) & (data <= edges[-1])]
    return np.histogram(inside, edges if bins else bin_cnt, range)[0], edges.astype(data.dtype)


def _close(a, b, rtol, atol, equal_nan):
    return np.isclose(a, b, rtol, atol, equal_nan).astype(np.uint8)


_FLAT = {"order": 0, "grad_inputs": ()}
_NEAR = {"rtol": 0.5, "atol": 0.25, "equal_nan": True}

RECORDS: dict[str, Record] = {
    "_histogram": Record(
        _histogram, shapes=[((4, 5),), ((4, 5), (3,)), ((0,),)],
        params=[{"bin_cnt": 4, "range": (-1.0, 2.0)}, {}, {"bin_cnt": 2, "range": (0.0, 4.0)}],
        prepare=lambda data, *bins: (data, *(np.sort(b) for b in bins)), dtypes="fi",
        returns=lambda given, **_: ("int64", given), **_FLAT,
        refuses=[Refusal("at least one bin", params={"bin_cnt": 0, "range": (0.0, 1.0)}),
                 Refusal("least, largest", params={"bin_cnt": 2})],
        unchecked={"special": "edges are numbers, in order",
                   "shapes back": "counts do not say of how many numbers", "types back": "forward alone"},
    ),
    "_contrib_isnan": Record(lambda data: np.isnan(data).astype(data.dtype), **_FLAT),
    "_contrib_isinf": Record(lambda data: np.isinf(data).astype(data.dtype), **_FLAT),
    "_contrib_isfinite": Record(lambda data: np.isfinite(data).astype(data.dtype), **_FLAT),
    "_is_close": Record(
        _close, params=[_NEAR, {**_NEAR, "equal_nan": False}], returns="uint8", **_FLAT,
    ),
    "_contrib_allclose": Record(
        lambda a, b, **params: np.reshape(_close(a, b, **{"rtol": 1e-5, "atol": 1e-8, "equal_nan": True, **params}).min(), 1),
        params=[{}, _NEAR, {"rtol": 2.0, "atol": 4.0}], returns="uint8", shapes=[((2, 3), (2, 3)), ((1,), (1,)), ((2,), (2,))],
        unchecked={"shapes back": "forward alone"}, **_FLAT,
    ),
}  # fmt: skip
