"""Records of eight-bit numbers (``mxop/ops/quantize.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal

_LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}
CUT, ROUNDED = {"int8": 127.0, "uint8": 255.0}, {"int8": 127.5, "uint8": 255.5}
_ONE = (1,)


def _levels(data, reach, levels, dtype):
    reach = reach.astype(np.result_type(reach, np.float32))
    scale = np.divide(np.float32(levels), reach, out=np.zeros_like(reach), where=reach > 0)
    return np.clip(np.rint(data * scale), *_LIMITS[dtype]).astype(dtype)


def _range(low, high, dtype):
    reach = np.maximum(np.abs(low), np.abs(high))
    return (low, high) if dtype == "uint8" else (-reach, reach)


def _three(data, low, high, levels, dtype):
    reach = np.maximum(np.abs(low), np.abs(high))
    return _levels(data, reach, levels, dtype), *_range(low, high, dtype)


def _quantize(data, low, high, out_type="uint8"):
    return _three(data, low, high, CUT[out_type], out_type)


def _limits(values, low, high):
    given = (values.min(), values.max()) if low is None else (low, high)
    return [np.reshape(np.asarray(v, values.dtype), _ONE) for v in given]


def _type(out_type, low):
    return ("uint8" if low is not None and low >= 0 else "int8") if out_type == "auto" else out_type


def _quantize_v2(data, out_type="int8", min_calib_range=None, max_calib_range=None):
    type_ = _type(out_type, min_calib_range)
    return _three(data, *_limits(data, min_calib_range, max_calib_range), ROUNDED[type_], type_)


def _requantize(data, low, high, out_type="int8", min_calib_range=None, max_calib_range=None):
    type_ = _type(out_type, min_calib_range)
    values = data.astype(np.float64) * (np.maximum(np.abs(low), np.abs(high)) / np.float64(2**31 - 1))
    found = _limits(values, min_calib_range, max_calib_range)
    if min_calib_range is None:
        reach = np.maximum(np.abs(found[0]), np.abs(found[1]))
        found = [0 * reach if type_ == "uint8" else -reach, reach]
    elif type_ == "uint8":
        found[0] = 0 * found[0]
    return _three(values, *found, CUT[type_], type_)


def _asymmetric(data, min_calib_range=None, max_calib_range=None):
    low, high = _limits(data, min_calib_range, max_calib_range)
    scale = np.where(high > low, 255 / np.where(high > low, high - low, 1), 1).astype(data.dtype)
    shift = 255 - high * scale
    return np.clip(np.floor(data * scale + shift + np.float32(0.5)), 0, 255).astype("uint8"), scale, shift


def _dequantize(data, low, high, out_type="float32"):
    return data * (np.maximum(np.abs(low), np.abs(high)) / ROUNDED[data.dtype.name]).astype("float32")


def _smooth(counts):
    zeros = sum(c == 0 for c in counts)
    taken = 1e-4 * zeros / (len(counts) - zeros)
    return [1e-4 if c == 0 else c - taken for c in counts]


def _loss(hist, start, stop, levels):
    """Merge the bins from `start` to `stop` to levels, one bin after the other, and say what is lost."""
    p = [*hist[start:stop]]
    p[0], p[-1], given = sum(hist[: start + 1]), sum(hist[stop - 1 :]), [0, *hist[start + 1 : stop]]
    width, q = len(p) // levels, []
    for k in range(levels):
        part = slice(k * width, (k + 1) * width if k < levels - 1 else None)
        filled = sum(c != 0 for c in given[part])
        q += [sum(given[part]) / filled if filled and c else 0 for c in p[part]]
    if not any(p) or not any(q):
        return np.inf
    p, q = _smooth(p), _smooth(q)
    return sum(a / sum(p) * np.log(a / sum(p) * sum(q) / b) for a, b in zip(p, q, strict=True))


def _least_loss(hist, edges, num_quantized_bins):
    middle = len(hist) // 2
    ends = range(num_quantized_bins // 2, middle + 1)
    found = [_loss([*hist], middle - i, middle + i + 1, num_quantized_bins) for i in ends]
    best = int(np.argmin(found))
    return np.reshape(edges[middle + ends[best] + 1], _ONE), np.reshape(found[best], _ONE)


_FLOAT = {1: "float32", 2: "float32"}
_RANGED = {"shapes": [((3, 4), _ONE, _ONE)], "domain": ((-2.0, 2.0), (-2.0, -1.0), (0.5, 1.5))}
_FLAT = {"order": 0, "grad_inputs": (), "reference_dtype": True}
_32 = {0: "float32", **_FLOAT}
_CALIBRATED = {"min_calib_range": -0.75, "max_calib_range": 1.5}
_BOTH = Refusal("expected both or none", params={"min_calib_range": -1.0})
_ONE_TYPE = {"types back": "its types do not follow from those of the results",
             "gradient dtypes": "data have one type", "grad_req": "data have one type"}  # fmt: skip


def _returned(first):
    return lambda given, **params: (first(given, **params), "float32", "float32")


def _chosen(given, out_type="int8", min_calib_range=None, **_):
    return _type(out_type, min_calib_range)


RECORDS: dict[str, Record] = {
    "_to_levels": Record(
        _levels, params=[{"levels": 127.5, "dtype": "int8"}, {"levels": 255.0, "dtype": "uint8"}],
        shapes=[((3, 4), (3, 4)), ((3, 4), (1, 4))], domain=((-2.0, 2.0), (0.5, 2.0)), dtypes="n",
        input_types={0: "float32", 1: "float32"}, returns=lambda given, dtype, **_: dtype, **_FLAT,
    ),
    "_of_levels": Record(
        lambda data, reach, levels: data * (reach / levels), params=[{"levels": 127.5}], shapes=[((3, 4), (3, 4))],
        domain=((-100, 100), (0.5, 2.0)), dtypes="n", order=2, unchecked={"types back": "levels may have any type"},
    ),
    "_contrib_quantize": Record(
        _quantize, params=[{}, {"out_type": "int8"}], dtypes="n", input_types=_32,
        returns=_returned(lambda given, out_type="uint8": out_type), unchecked=_ONE_TYPE,
        refuses=[Refusal("min_range has shape", shapes=((2, 3), (2,), _ONE))], **_RANGED, **_FLAT,
    ),
    "_contrib_quantize_v2": Record(
        _quantize_v2,
        params=[{}, {"out_type": "uint8"}, {"out_type": "auto", **_CALIBRATED}, _CALIBRATED,
                {"out_type": "auto", "min_calib_range": 0.0, "max_calib_range": 1.5}],
        shapes=[((3, 4),)], dtypes="n", input_types={0: "float32"}, returns=_returned(_chosen), unchecked=_ONE_TYPE,
        refuses=[_BOTH], **_FLAT,
    ),
    "_contrib_requantize": Record(
        _requantize, params=[{}, {"out_type": "uint8"}, _CALIBRATED, {"out_type": "auto", **_CALIBRATED}],
        dtypes="i", input_types={0: "int32", **_FLOAT}, returns=_returned(_chosen), unchecked=_ONE_TYPE, refuses=[_BOTH],
        shapes=[((3, 4), _ONE, _ONE)], domain=((-(2**30), 2**30), (-2.0, -1.0), (0.5, 1.5)), **_FLAT,
    ),
    "_asymmetric_scale": Record(
        lambda low, high: np.where(high > low, 255 / (high - low), 1), domain=((-2.0, -1.0), (1.0, 2.0)), dtypes="f",
        unchecked={"special": "the difference of the limits is a number"},
    ),
    "_asymmetric_levels": Record(
        lambda data, scale, shift: np.clip(np.floor(data * scale + shift + np.float32(0.5)), 0, 255).astype("uint8"),
        shapes=[((3, 4), (3, 4), (3, 4))], domain=((-1.0, 1.0), (50.0, 100.0), (50.0, 100.0)), dtypes="n", input_types=_32,
        returns="uint8", **_FLAT,
    ),
    "_contrib_quantize_asym": Record(
        _asymmetric, params=[{}, _CALIBRATED], shapes=[((3, 4),)], dtypes="n", input_types={0: "float32"},
        returns=("uint8", "float32", "float32"), unchecked=_ONE_TYPE, refuses=[_BOTH], **_FLAT,
    ),
    "_contrib_dequantize": Record(
        _dequantize, dtypes="i", input_types={0: "int8", **_FLOAT}, returns="float32", unchecked=_ONE_TYPE,
        shapes=[((3, 4), _ONE, _ONE)], domain=((-128, 127), (-2.0, -1.0), (0.5, 1.5)), **_FLAT,
    ),
    # its limits and divergences: tests/test_mxnet_answers.py
    "_contrib_calibrate_entropy": Record(
        _least_loss, params=[{"num_quantized_bins": 5}, {"num_quantized_bins": 3}], shapes=[((15,), (16,)), ((9,), (10,))],
        domain=((0.0, 9.0), (-4.0, 4.0)), whole=(0,), dtypes="n", order=0, grad_inputs=(),
        unchecked={"special": "counts are finite", "small shapes": "there are more bins than levels",
                   "small gradients": "the same",
                   "shapes back": "one limit, of any number of bins"},
        refuses=[Refusal("an odd number of bins", shapes=((6,), (7,)))],
    ),
}  # fmt: skip
