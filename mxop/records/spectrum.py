"""Records of transforms of the last axis (``mxop/ops/spectrum.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal


def _fft(data, compute_size=128):
    n = data.shape[-1]
    angle = 2 * np.pi * np.outer(np.arange(n), np.arange(n)) / max(n, 1)
    return np.stack([data @ np.cos(angle), -data @ np.sin(angle)], axis=-1).reshape(*data.shape[:-1], 2 * n)


def _ifft(data, compute_size=128):
    real, imaginary, n = data[..., 0::2], data[..., 1::2], data.shape[-1] // 2
    angle = 2 * np.pi * np.outer(np.arange(n), np.arange(n)) / max(n, 1)
    return real @ np.cos(angle) - imaginary @ np.sin(angle)


def _sketch(data, h, s, out_dim, processing_batch_size=32):
    result = np.zeros((*data.shape[:-1], out_dim), data.dtype)
    for k, (place, sign) in enumerate(zip(h[0].astype(int), s[0], strict=True)):
        result[..., place] += sign * data[..., k]
    return result


_SUMS = {"special": "products with 0 are left out of some sums: NaN may be 0 there"}

RECORDS: dict[str, Record] = {
    "_contrib_fft": Record(_fft, shapes=[((2, 3),), ((4,),), ((2, 2, 5),)], dtypes="f", order=2, unchecked=_SUMS),
    "_contrib_ifft": Record(
        _ifft, shapes=[((2, 6),), ((4,),), ((2, 2, 10),)], dtypes="f", order=2, unchecked=_SUMS,
        refuses=[Refusal("expected pairs", shapes=((2, 3),))],
    ),
    "_contrib_count_sketch": Record(
        _sketch, shapes=[((2, 5), (1, 5), (1, 5)), ((2, 2, 3), (1, 3), (1, 3)), ((2, 0, 3), (1, 3), (1, 3))], whole=(1,),
        params=[{"out_dim": 3}],
        domain=((-2.0, 2.0), (0, 2), (-1.0, 1.0)), grad_inputs=(0, 2), order=2, dtypes="f",
        refuses=[Refusal("h has shape", shapes=((2, 5), (1, 4), (1, 5)))],
        unchecked={"shapes back": "forward: sums do not say of how many elements"},
    ),
}  # fmt: skip
