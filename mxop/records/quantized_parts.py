"""Records of what lies between layers of eight-bit numbers (``mxop/ops/quantized_parts.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal
from .quantize import ROUNDED
from .quantized import of_products

_ONE = (1,)
_BOUNDS = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 128)}
_LEVELS = ROUNDED | {"int32": 2.0**31 - 1}


def _near(values, dtype, low=None, high=None):
    return np.clip(np.rint(values), *_BOUNDS[dtype]).astype(dtype)


def _rescaled(data, reach, unit):
    return data * (unit / (np.float32(ROUNDED[data.dtype.name]) / reach))


def _multiplied(lhs, rhs, of_lhs, of_rhs, unit):
    each = np.float32(127.5)
    return lhs.astype(np.float32) * rhs.astype(np.float32) * (unit / (each / of_lhs) / (each / of_rhs))


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
    unit = np.float32(ROUNDED[type_]) / _reach(low, high)
    parts = [_near(_rescaled(a, _reach(*limits), unit), type_) for a, *limits in zip(arrays, lows, highs, strict=True)]
    return np.concatenate(parts, axis=dim), low, high


def _added(lhs, rhs, *limits, min_calib_range=None, max_calib_range=None):
    left, right = _reach(*limits[:2]), _reach(*limits[2:])
    low, high = (-left - right, left + right) if min_calib_range is None else _calibrated(min_calib_range, max_calib_range)
    type_ = "int32" if min_calib_range is None else "int8"
    unit = np.float32(_LEVELS[type_]) / _reach(low, high)
    return _near(_rescaled(lhs, left, unit) + _rescaled(rhs, right, unit), type_), low, high


def _product(lhs, rhs, *limits, min_calib_range=None, max_calib_range=None, enable_float_output=False):
    left, right = _reach(*limits[:2]), _reach(*limits[2:])
    if enable_float_output:
        return _multiplied(lhs, rhs, left, right, np.float32(1))
    if min_calib_range is None:
        return lhs.astype(np.int32) * rhs.astype(np.int32), *of_products(lhs, left, right)
    low, high = _calibrated(min_calib_range, max_calib_range)
    unit = np.float32(127.5) / _reach(low, high)
    return np.clip(np.trunc(_multiplied(lhs, rhs, left, right, unit)), -128, 127).astype(np.int8), low, high


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
_WINDOW = {"kernel": (2,), "stride": (2,)}
_INT8 = {"low": -128, "high": 127, "dtype": "int8"}


def _as_calibrated(code):
    return lambda given, min_calib_range=None, **params: ("int8" if min_calib_range else code, "float32", "float32")


RECORDS: dict[str, Record] = {
    "_nearest_levels": Record(
        _near, params=[_INT8, {"low": 0, "high": 255, "dtype": "uint8"}], domain=(-200.0, 300.0), dtypes="n",
        input_types={0: "float32"}, returns=lambda given, dtype, **_: dtype,
        unchecked=_ONE_TYPE | {"special": "levels are finite"}, **_FLAT,
    ),
    "_levels_per_unit": Record(
        lambda reach, levels: levels / reach, params=[{"levels": 127.5}], domain=(0.5, 2.0), dtypes="f", order=0,
        grad_inputs=(), unchecked={"special": "limits are finite, and a range of width 0 gives 0"},
    ),
    "_for_each_level": Record(
        lambda unit, reach, levels: unit / (levels / reach), params=[{"levels": 127.5}], domain=(0.5, 2.0), dtypes="f", order=0,
        grad_inputs=(), unchecked={"special": "limits are finite"},
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
