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


def _layer(data, weight, bias, *limits, num_hidden, flatten=True):
    of_data, of_weight, of_bias = (np.maximum(np.abs(limits[k]), np.abs(limits[k + 1])) for k in (0, 2, 4))
    type_, half = data.dtype.name, np.float32(127.5)
    scale = (np.float32(ROUNDED[type_]) / of_data) * (half / of_weight) * (of_bias / half)
    found = _product(data, weight, num_hidden, flatten) + np.trunc(bias.astype(np.float32) * scale).astype(np.int32)
    high = of_data / CUT[type_] * (of_weight / 127) * np.float64(2**31 - 1)
    return found, -high, high


_FLAT = {"order": 0, "grad_inputs": (), "reference_dtype": True}
_ONE_TYPE = {"types back": "its types do not follow from those of the results",
             "gradient dtypes": "levels have eight bits", "grad_req": "levels have eight bits"}  # fmt: skip
_WRONG = ("float32", "int8")

RECORDS: dict[str, Record] = {
    "_integer_layer": Record(
        _product, params=[{"num_hidden": 2}, {"num_hidden": 2}, {"num_hidden": 2, "flatten": False}, {"num_hidden": 3}],
        shapes=[((3, 5), (2, 5)), ((2, 2, 3), (2, 6)), ((2, 2, 3), (2, 3)), ((5, 70), (3, 70))], domain=(-128, 127),
        dtypes="i", input_types={0: "int8", 1: "int8"}, returns="int32", unchecked=_ONE_TYPE,
        refuses=[Refusal("data has dtype float32; expected int8 or uint8", dtypes=_WRONG)], **_FLAT,
    ),
    "_contrib_quantized_fully_connected": Record(  # without a bias: tests/test_quantized.py
        _layer, params=[{"num_hidden": 2}, {"num_hidden": 2, "flatten": False}],
        shapes=[((3, 5), (2, 5), (2,), *[_ONE] * 6), ((2, 2, 3), (2, 3), (2,), *[_ONE] * 6)],
        domain=(*[(-128, 127)] * 3, *[(0.5, 1.5)] * 6), dtypes="i",
        input_types={**dict.fromkeys(range(3), "int8"), **dict.fromkeys(range(3, 9), "float32")},
        returns=("int32", "float32", "float32"), unchecked=_ONE_TYPE, **_FLAT,
    ),
}  # fmt: skip
