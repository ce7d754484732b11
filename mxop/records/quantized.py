"""Records of layers of eight-bit numbers (``mxop/ops/quantized.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal
from .quantize import CUT, ROUNDED

_ONE = (1,)


def _product(data, weight, num_hidden, flatten=True):
    rows = data.shape[:1] if flatten else data.shape[:-1]
    found = data.astype(np.int64).reshape(*rows, weight.shape[1]) @ weight.astype(np.int64).T
    return found.astype(np.int32)


def _reaches(limits):
    return [np.maximum(np.abs(low), np.abs(high)) for low, high in zip(limits[::2], limits[1::2], strict=True)]


def _bias_levels(data, bias, of_data, of_weight, of_bias):
    half = np.float32(127.5)
    scale = (np.float32(ROUNDED[data.dtype.name]) / of_data) * (half / of_weight) * (of_bias / half)
    return np.trunc(bias.astype(np.float32) * scale).astype(np.int32)


def of_products(data, of_data, of_weight):
    high = of_data / CUT[data.dtype.name] * (of_weight / 127) * np.float64(2**31 - 1)
    return -high, high


def _layer(data, weight, bias, *limits, num_hidden, flatten=True):
    reaches = _reaches(limits)
    found = _product(data, weight, num_hidden, flatten) + _bias_levels(data, bias, *reaches)
    return found, *of_products(data, *reaches[:2])


def _convolution(data, weight, bias, *limits, stride=(1, 1), pad=(0, 0), dilate=(1, 1), num_group=1, layout=None, **params):
    reaches = _reaches(limits)
    if layout == "NHWC":
        data, weight = (np.moveaxis(a, -1, 1) for a in (data, weight))
    padded = np.pad(data.astype(np.int64), ((0, 0), (0, 0), *((p, p) for p in pad)))
    reach = [d * (k - 1) + 1 for d, k in zip(dilate, weight.shape[2:], strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    windows = windows[:, :, :: stride[0], :: stride[1], :: dilate[0], :: dilate[1]]
    batch, channels = data.shape[:2]
    windows = windows.reshape(batch, num_group, channels // num_group, *windows.shape[2:])
    filters = weight.astype(np.int64).reshape(num_group, -1, *weight.shape[1:])
    found = np.einsum("bgcyxij,gfcij->bgfyx", windows, filters)
    found = found.reshape(batch, len(weight), *found.shape[3:]).astype(np.int32)
    found = found + _bias_levels(data, bias, *reaches).reshape(-1, 1, 1)
    return np.moveaxis(found, 1, -1) if layout == "NHWC" else found, *of_products(data, *reaches[:2])


_FLAT = {"order": 0, "grad_inputs": (), "reference_dtype": True}
_ONE_TYPE = {"types back": "its types do not follow from those of the results",
             "gradient dtypes": "levels have eight bits", "grad_req": "levels have eight bits"}  # fmt: skip
_WRONG = ("float32", "int8")
_SIX = [_ONE] * 6
_LAYER = {
    "domain": (*[(-128, 127)] * 3, *[(0.5, 1.5)] * 6), "dtypes": "i",
    "input_types": {**dict.fromkeys(range(3), "int8"), **dict.fromkeys(range(3, 9), "float32")},
    "returns": ("int32", "float32", "float32"), "unchecked": _ONE_TYPE, **_FLAT,
}  # fmt: skip
_WINDOW = {"kernel": (2, 2), "num_filter": 2}

RECORDS: dict[str, Record] = {
    "_integer_layer": Record(
        _product, params=[{"num_hidden": 2}, {"num_hidden": 2}, {"num_hidden": 2, "flatten": False}, {"num_hidden": 3}],
        shapes=[((3, 5), (2, 5)), ((2, 2, 3), (2, 6)), ((2, 2, 3), (2, 3)), ((5, 70), (3, 70))], domain=(-128, 127),
        dtypes="i", input_types={0: "int8", 1: "int8"}, returns="int32", unchecked=_ONE_TYPE,
        refuses=[Refusal("data has dtype float32; expected int8 or uint8", dtypes=_WRONG)], **_FLAT,
    ),
    "_contrib_quantized_fully_connected": Record(  # without a bias: tests/test_quantized.py
        _layer, params=[{"num_hidden": 2}, {"num_hidden": 2, "flatten": False}],
        shapes=[((3, 5), (2, 5), (2,), *_SIX), ((2, 2, 3), (2, 3), (2,), *_SIX)], **_LAYER,
    ),
    "_contrib_quantized_conv": Record(  # without a bias, and in one and three dimensions: tests/test_quantized.py
        _convolution,
        params=[_WINDOW, _WINDOW | {"num_group": 2, "stride": (2, 1), "pad": (1, 0), "dilate": (1, 2)},
                _WINDOW | {"layout": "NHWC"}, _WINDOW],
        shapes=[((2, 3, 4, 3), (2, 3, 2, 2), (2,), *_SIX), ((1, 4, 4, 4), (2, 2, 2, 2), (2,), *_SIX),
                ((2, 4, 3, 3), (2, 2, 2, 3), (2,), *_SIX), ((1, 300, 3, 3), (2, 300, 2, 2), (2,), *_SIX)],
        **_LAYER,
        refuses=[Refusal("data has dtype float32; expected int8 or uint8", params=_WINDOW,
                         dtypes=("float32", "int8", "int8", *["float32"] * 6),
                         shapes=((2, 3, 4, 3), (2, 3, 2, 2), (2,), *_SIX))],
    ),
    "_contrib_quantized_embedding": Record(
        lambda data, weight, low, high, **params: (weight[data.astype(int)], low, high),
        params=[{"input_dim": 4, "output_dim": 2}], shapes=[((2, 3), (4, 2), _ONE, _ONE)],
        domain=((0, 3), (-128, 127), (-1.0, 0.0), (0.5, 1.5)), whole=(0,), dtypes="fi",
        input_types={1: "int8", 2: "float32", 3: "float32"}, returns=("int8", "float32", "float32"), unchecked=_ONE_TYPE,
        **_FLAT,
    ),
}  # fmt: skip
