"""Records of what lies between layers of eight-bit numbers (``mxop/ops/quantized_parts.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal
from .quantize import ROUNDED
from .quantized import of_products

_ONE = (1,)
_BOUNDS = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 128), "float32": (-np.inf, np.inf)}
_LEVELS = ROUNDED | {"int32": 2.0**31 - 1}


def _near(values, dtype):
    return np.clip(np.rint(values), *_BOUNDS[dtype]).astype(dtype)


def _rescaled(data, of_data, of_output, before, levels, dtype):
    return _near(data * ((np.float32(levels) / of_output) / (np.float32(before) / of_data)), dtype)


def _sum(lhs, rhs, of_lhs, of_rhs, of_output, of_left, of_right, levels, dtype):
    of_lhs, of_rhs, of_output = (v.astype(np.float64) for v in (of_lhs, of_rhs, of_output))  # MXNet: float32, in int32, too
    return _near((lhs * of_lhs / of_left + rhs * of_rhs / of_right) * levels / of_output, dtype)


def _multiplied(lhs, rhs, of_lhs, of_rhs, of_output, dtype):
    each, product = np.float32(127.5), lhs.astype(np.float32) * rhs.astype(np.float32)
    unit = np.float32(1) if dtype == "float32" else each / of_output
    found = product * (unit / (each / of_lhs) / (each / of_rhs))
    return found if dtype == "float32" else np.clip(np.trunc(found), -128, 127).astype(dtype)


def _reach(low, high):
    return np.maximum(np.abs(low), np.abs(high))


def _calibrated(low, high):
    return [np.array([v], np.float32) for v in (low, high)]


def _limited(op):
    """Return the reference of an operator that returns the limits of its data."""
    return lambda data, low, high, **params: (op(data, **params), low, high)


def _pooled(data, kernel, pool_type="max"):
    """Reduce windows side by side in one dimension."""
    windows = data[..., : data.shape[-1] // kernel[0] * kernel[0]].reshape(*data.shape[:-1], -1, kernel[0])
    return windows.max(axis=-1) if pool_type == "max" else _near(windows.mean(axis=-1), data.dtype.name)


def _concat(*data, num_args, dim=1):
    arrays, lows, highs = data[:num_args], data[num_args::2], data[num_args + 1 :: 2]
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    type_ = "uint8" if all(a.dtype == np.uint8 for a in arrays) else "int8"
    parts = [_rescaled(a, _reach(*limits), _reach(low, high), ROUNDED[a.dtype.name], ROUNDED[type_], type_)
             for a, *limits in zip(arrays, lows, highs, strict=True)]  # fmt: skip
    return np.concatenate(parts, axis=dim), low, high


def _added(lhs, rhs, *limits, min_calib_range=None, max_calib_range=None):
    left, right = _reach(*limits[:2]), _reach(*limits[2:])
    low, high = (-left - right, left + right) if min_calib_range is None else _calibrated(min_calib_range, max_calib_range)
    type_ = "int32" if min_calib_range is None else "int8"
    counts = [ROUNDED[lhs.dtype.name], ROUNDED[rhs.dtype.name], _LEVELS[type_]]
    return _sum(lhs, rhs, left, right, _reach(low, high), *counts, type_), low, high


def _product(lhs, rhs, *limits, min_calib_range=None, max_calib_range=None, enable_float_output=False):
    left, right = _reach(*limits[:2]), _reach(*limits[2:])
    if enable_float_output:
        return _multiplied(lhs, rhs, left, right, None, "float32")
    if min_calib_range is None:
        return lhs.astype(np.int32) * rhs.astype(np.int32), *of_products(lhs, left, right)
    low, high = _calibrated(min_calib_range, max_calib_range)
    return _multiplied(lhs, rhs, left, right, _reach(low, high), "int8"), low, high


def _normalized(data, gamma, beta, mean, var, low, high, min_calib_range, max_calib_range, eps=1e-3, fix_gamma=True):
    limits = _calibrated(min_calib_range, max_calib_range)
    scale = (1 if fix_gamma else gamma.astype(np.float64)) / np.sqrt(var + eps)
    out, (scale, shift) = _reach(*limits), ([v.reshape(-1, *[1] * (data.ndim - 2)) for v in (scale, beta - mean * scale)])
    found = data * (scale * _reach(low, high) / out) / np.sqrt(1 + eps) + shift / out * 127.5
    return _near(found, "int8"), *limits, mean, var


_FLAT = {"order": 0, "grad_inputs": (), "reference_dtype": True}
_ONE_TYPE = {"types back": "its types do not follow from those of the results",
             "gradient dtypes": "levels have eight bits", "grad_req": "levels have eight bits"}  # fmt: skip
_CALIBRATED = {"min_calib_range": -1.25, "max_calib_range": 2.0}
_TWO_TYPES = {0: "int8", 1: "int8"} | dict.fromkeys(range(2, 6), "float32")
_KEPT = {
    "domain": ((-128, 127), (-1.5, -0.5), (0.5, 1.5)), "dtypes": "i", "input_types": {0: "int8", 1: "float32", 2: "float32"},
    "returns": ("int8", "float32", "float32"), "unchecked": _ONE_TYPE, **_FLAT,
}  # fmt: skip
_PAIR = {
    "shapes": [((3, 4), (3, 4), *[_ONE] * 4)], "domain": ((-128, 127), (-128, 127), *[(-1.5, -0.5), (0.5, 1.5)] * 2),
    "dtypes": "i", "input_types": _TWO_TYPES, "unchecked": _ONE_TYPE, **_FLAT,
}  # fmt: skip
_REACHES = {"shapes": [((3, 4), (3, 4), *[(1, 1)] * 3)], "domain": ((-128, 127), (-128, 127), *[(0.5, 1.5)] * 3)}
_WINDOW = {"kernel": (2,), "stride": (2,)}


def _as_calibrated(code):
    return lambda given, min_calib_range=None, **params: ("int8" if min_calib_range else code, "float32", "float32")


RECORDS: dict[str, Record] = {
    "_nearest_levels": Record(
        _near, params=[{"dtype": "int8"}, {"dtype": "uint8"}], domain=(-200.0, 300.0), dtypes="n", input_types={0: "float32"},
        returns=lambda given, dtype: dtype, unchecked=_ONE_TYPE | {"special": "levels are finite"}, **_FLAT,
    ),
    "_rescaled_levels": Record(
        _rescaled, params=[{"before": 127.5, "levels": 255.5, "dtype": "uint8"}],
        shapes=[((3, 4),) * 3, ((3, 4), (1, 4), (1, 4))],
        domain=((-128, 127), (0.5, 1.5), (0.5, 1.5)), dtypes="i", input_types={0: "int8", 1: "float32", 2: "float32"},
        returns="uint8", unchecked=_ONE_TYPE, **_FLAT,
    ),
    "_added_levels": Record(
        _sum, params=[{"of_left": 127.5, "of_right": 127.5, "levels": 127.5, "dtype": "int8"}], dtypes="i",
        input_types={0: "int8", 1: "int8"} | dict.fromkeys(range(2, 5), "float32"), returns="int8", unchecked=_ONE_TYPE,
        **_REACHES, **_FLAT,
    ),
    "_multiplied_levels": Record(
        _multiplied, params=[{"dtype": "int8"}, {"dtype": "float32"}], dtypes="i",
        input_types={0: "int8", 1: "int8"} | dict.fromkeys(range(2, 5), "float32"), returns=lambda given, dtype: dtype,
        unchecked=_ONE_TYPE, **_REACHES, **_FLAT,
    ),
    "_contrib_quantized_act": Record(
        _limited(lambda data, act_type: np.maximum(data, 0)), params=[{"act_type": "relu"}], shapes=[((3, 4), _ONE, _ONE)],
        refuses=[Refusal("act_type='tanh'; expected 'relu'", params={"act_type": "tanh"}, shapes=((3, 4), _ONE, _ONE)),
                 Refusal("data has dtype int32; expected int8, uint8", params={"act_type": "relu"},
                         dtypes=("int32", "float32", "float32"), shapes=((3, 4), _ONE, _ONE))],
        **_KEPT,
    ),
    "_contrib_quantized_flatten": Record(
        _limited(lambda data: data.reshape(len(data), -1)), shapes=[((2, 3, 2), _ONE, _ONE)], **_KEPT,
        refuses=[Refusal("min_data", shapes=((2, 3), (2,), _ONE))],
    ),
    "_contrib_quantized_pooling": Record(
        _limited(lambda data, stride, **params: _pooled(data, **params)), params=[_WINDOW, _WINDOW | {"pool_type": "avg"}],
        shapes=[((2, 3, 5), _ONE, _ONE)], **_KEPT,
        refuses=[Refusal("pool_type='sum'; expected 'max' or 'avg'", params=_WINDOW | {"pool_type": "sum"},
                         shapes=((2, 3, 5), _ONE, _ONE))],
    ),
    "_contrib_quantized_concat": Record(
        _concat, params=[{"num_args": 2}, {"num_args": 2, "dim": 0}],
        shapes=[((3, 2), (3, 4), *[_ONE] * 4), ((3, 2), (1, 2), *[_ONE] * 4)], domain=_PAIR["domain"], dtypes="i",
        input_types=_TWO_TYPES, returns=("int8", "float32", "float32"), unchecked=_ONE_TYPE, **_FLAT,
        refuses=[Refusal("6 inputs, but num_args=3", params={"num_args": 3}, shapes=((3, 2), (3, 4), *[_ONE] * 4))],
    ),
    "_contrib_quantized_elemwise_add": Record(
        _added, params=[{}, _CALIBRATED], returns=_as_calibrated("int32"), **_PAIR,
        refuses=[Refusal("expected both or none", params={"max_calib_range": 1.0}, shapes=_PAIR["shapes"][0])],
    ),
    "_contrib_quantized_elemwise_mul": Record(
        _product, params=[{}, _CALIBRATED],  # with enable_float_output: tests/test_quantized.py
        returns=_as_calibrated("int32"), **_PAIR,
        refuses=[Refusal("lhs has dtype uint8; expected int8", dtypes=("uint8", "int8", *["float32"] * 4),
                         shapes=_PAIR["shapes"][0])],
    ),
    "_contrib_quantized_batch_norm": Record(
        _normalized, params=[_CALIBRATED, _CALIBRATED | {"fix_gamma": False, "eps": 0.01}],
        shapes=[((3, 4), *[(4,)] * 4, _ONE, _ONE), ((2, 3, 2), *[(3,)] * 4, _ONE, _ONE)],
        domain=((-128, 127), (0.5, 1.5), (-1.0, 1.0), (-1.0, 1.0), (0.5, 1.5), (-1.5, -0.5), (0.5, 1.5)), dtypes="i",
        input_types={0: "int8"} | dict.fromkeys(range(1, 7), "float32"), returns=("int8", "float32", "float32"),
        unchecked=_ONE_TYPE, **_FLAT,
        refuses=[Refusal("expected both", params={}, shapes=((3, 4), *[(4,)] * 4, _ONE, _ONE)),
                 Refusal("axis=2; expected 1", params=_CALIBRATED | {"axis": 2}, shapes=((3, 4), *[(4,)] * 4, _ONE, _ONE))],
    ),
}  # fmt: skip
