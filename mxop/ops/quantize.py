"""Quantization: conversion between floating point and int8, and calibration of the range.

A level is a number times how many levels the largest one takes; which halves are rounded to even, as processors do.  The
gradient is zero.
"""

from typing import Literal

from ..opdef import DType, F, composite, elementwise, infer, kernel
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError
from ._shared import device_of, names_of, on_both, zero_gradient
from .convert import round_half_even

_BITS = {"int8": dtypes.INT8, "uint8": dtypes.UINT8}

#: Levels of the largest number, as MXNet has them: of what is cut at 127 or 255, and of what is rounded to them.
CUT = {dtypes.INT8: 127.0, dtypes.UINT8: 255.0}
ROUNDED = {dtypes.INT8: 127.5, dtypes.UINT8: 255.5}
INT32 = float(2**31 - 1)


# ---- parts -----------------------------------------------------------------------------------------------------------
@elementwise(
    name="_to_levels", broadcast=True, out_dtype=lambda data, reach, *, dtype, **params: dtype,
    rule=lambda g, data, reach, out, **params: (None, None),
)  # fmt: skip
def to_levels(data, reach, *, levels: float, dtype: DType):
    """Levels of data of which `reach` has as many as `levels`; 0 where `reach` is 0."""
    low, high = (0, 255) if dtype == dtypes.UINT8 else (-128, 127)
    found = round_half_even(data * F.where(reach > 0, levels / F.maximum(reach, 1e-38), 0.0))
    return F.minimum(F.maximum(found, low), high)


@elementwise(name="_of_levels", broadcast=True, out_dtype=lambda data, reach, **params: reach)
def of_levels(data, reach, *, levels: float):
    """The numbers that levels stand for, of which `reach` has as many as `levels`."""
    return data * reach / levels


def reach_of(F, low, high):
    """Return the larger of two limits, without their signs."""
    return F.broadcast_maximum(F.abs(low), F.abs(high))


def _range_of(F, dtype, low, high):
    """Return the least and the largest number: of signed levels, zero is in the middle."""
    if dtype == dtypes.UINT8:
        return low, high
    found = reach_of(F, low, high)
    return F.negative(found), found


def calibrated(F, data, low, high):
    """Return given limits as arrays of one element."""
    return [F.full(shape=(1,), value=v, ctx=device_of(data)) for v in (low, high)]


def typed_levels(op, given, result):
    """Let the data have one of the types `given`, the ranges float32, and the first output ``result(data, **params)``."""

    @op.infer_types
    def _(ins, outs, **params):
        if ins[0] not in given and ins[0] != dtypes.UNKNOWN:
            names = ", ".join(dtypes.NAMES[t] for t in given)
            raise OpTypeError(f"operator {op.name}: data has dtype {dtypes.NAMES[ins[0]]}; expected {names}")
        data = given[0] if ins[0] == dtypes.UNKNOWN and len(given) == 1 else ins[0]
        ranges = [dtypes.FLOAT32] * (len(ins) - 1)
        for name, t in zip(names_of(op, len(ins), params)[1:], ins[1:], strict=False):
            infer.same_type(op.name, (name, "ranges"), [t, dtypes.FLOAT32])
        return [data, *ranges], [result(data, **params)] + [dtypes.FLOAT32] * (len(outs) - 1)


def shaped_levels(op):
    """Let the first output have the data's shape, and ranges one element each."""

    @op.infer
    def _(ins, outs, **params):
        data, out = infer.same_shape(op.name, ("data", "output"), [ins[0], outs[0]])
        names = op.input_names(params, len(ins))[1:] + op.output_names(params, len(ins))[1:]
        ranges = [*ins[1:], *outs[1:]]
        for name, shape in zip(names, ranges, strict=True):
            if infer.known(shape) and shape not in ((1,), ()):
                raise OpValueError(f"operator {op.name}: {name} has shape {shape}; expected (1,)")
        given = [(1,) if s is None else s for s in ins[1:]]
        return [data, *given], [out] + [(1,)] * (len(outs) - 1)

    return op


# ---- to eight bits ---------------------------------------------------------------------------------------------------
@composite(name="_contrib_quantize", num_outputs=3)
def quantize(F, data, min_range, max_range, *, out_type: Literal["int8", "uint8"] = "uint8"):
    """Convert float32 to int8 or uint8 levels; the larger limit is level 127, or 255.

    Parameters
    ----------
    data : NDArray or Symbol
        Of float32.
    min_range, max_range : NDArray or Symbol
        The limits, one number each.  Values beyond them are clipped; for uint8, negative values become 0.

    Returns
    -------
    levels, limits : tuple of NDArray or Symbol
        The levels, and the smallest and the largest value that they represent.

    >>> x = mx.nd.array([-1, 0.5, 2])
    >>> levels, low, high = mx.nd.contrib.quantize(x, mx.nd.array([-2]), mx.nd.array([1]), out_type="int8")
    >>> levels.asnumpy().tolist(), low.item(), high.item()
    ([-64, 32, 127], -2.0, 2.0)
    """
    code = _BITS[out_type]
    found = F._to_levels(data, reach_of(F, min_range, max_range), levels=CUT[code], dtype=code)
    return [found, *(F.BlockGrad(F.reshape(a, shape=(1,))) for a in _range_of(F, code, min_range, max_range))]


shaped_levels(quantize)
typed_levels(quantize, (dtypes.FLOAT32,), lambda data, *, out_type, **params: _BITS[out_type])


def _levels_of(out_type, low):
    """Return the type of the levels: without a sign where ``auto`` knows that no number has one."""
    if out_type == "auto":
        return dtypes.UINT8 if low is not None and low >= 0 else dtypes.INT8
    return _BITS[out_type]


def both_or_none(op, low, high):
    if (low is None) != (high is None):
        raise OpValueError(f"operator {op}: min_calib_range={low}, max_calib_range={high}; expected both or none")


@composite(name="_contrib_quantize_v2", num_outputs=3)
def quantize_v2(F, data, *, out_type: Literal["auto", "int8", "uint8"] = "int8", min_calib_range: float | None = None,
                max_calib_range: float | None = None):  # fmt: skip
    """Convert float32 to int8 or uint8 levels, with given limits or those of the data.

    The larger limit corresponds to 127.5 or 255.5 levels, so that it rounds to the last one.

    Parameters
    ----------
    data : NDArray or Symbol
        Of float32; levels of int8 and uint8 are copied.
    out_type : {'int8', 'uint8', 'auto'}
        ``auto`` chooses uint8 if `min_calib_range` excludes negative values.
    min_calib_range, max_calib_range : float, optional
        The limits, both or none.

    >>> levels, low, high = mx.nd.contrib.quantize_v2(mx.nd.array([-1, 0.5, 2]))
    >>> levels.asnumpy().tolist(), low.item(), high.item()
    ([-64, 32, 127], -2.0, 2.0)
    """
    both_or_none("_contrib_quantize_v2", min_calib_range, max_calib_range)
    kept = {"int8": (-127.5, 127.5), "uint8": (0.0, 255.5)}.get(dtypes.NAMES[dtypes.code_of(data.dtype)])
    if kept is not None:
        low, high = kept if min_calib_range is None else (min_calib_range, max_calib_range)
        return [F.BlockGrad(data), *calibrated(F, data, low, high)]
    code = _levels_of(out_type, min_calib_range)
    if min_calib_range is None:
        low, high = F.reshape(F.min(data), shape=(1,)), F.reshape(F.max(data), shape=(1,))
    else:
        low, high = calibrated(F, data, min_calib_range, max_calib_range)
    found = F._to_levels(data, reach_of(F, low, high), levels=ROUNDED[code], dtype=code)
    return [found, *map(F.BlockGrad, _range_of(F, code, low, high))]


shaped_levels(quantize_v2)
typed_levels(quantize_v2, (dtypes.FLOAT32, dtypes.INT8, dtypes.UINT8), lambda data, *, out_type, min_calib_range, **params: (
    data if data in CUT else _levels_of(out_type, min_calib_range)))  # fmt: skip


@composite(name="_contrib_requantize", num_outputs=3)
def requantize(F, data, min_range, max_range, *, out_type: Literal["auto", "int8", "uint8"] = "int8",
               min_calib_range: float | None = None, max_calib_range: float | None = None):  # fmt: skip
    """Convert int32 levels to int8 or uint8, with given limits or those of the data.

    Parameters
    ----------
    data : NDArray or Symbol
        Of int32.
    min_range, max_range : NDArray or Symbol
        The limits of int32, one number each.
    out_type : {'int8', 'uint8', 'auto'}
        As of ``quantize_v2``.
    min_calib_range, max_calib_range : float, optional
        The limits of the result, both or none.

    >>> x = mx.nd.array([-2**30, 2**29], dtype="int32")
    >>> levels, low, high = mx.nd.contrib.requantize(x, mx.nd.array([-2]), mx.nd.array([2]))
    >>> levels.asnumpy().tolist(), low.item(), high.item()
    ([-127, 64], -1.0, 1.0)
    """
    both_or_none("_contrib_requantize", min_calib_range, max_calib_range)
    code, values = (
        _levels_of(out_type, min_calib_range),
        F._of_levels(data, reach_of(F, min_range, max_range), levels=INT32),
    )
    if min_calib_range is None:
        reach = F.reshape(F.max(F.abs(values)), shape=(1,))
        low, high = F.negative(reach), reach
    else:
        low, high = calibrated(F, data, min_calib_range, max_calib_range)
    found = F._to_levels(values, reach_of(F, low, high), levels=CUT[code], dtype=code)
    if code == dtypes.UINT8:
        return [found, *map(F.BlockGrad, (F.zeros_like(high), high))]
    return [found, *map(F.BlockGrad, _range_of(F, code, low, high))]


shaped_levels(requantize)
typed_levels(requantize, (dtypes.INT32,), lambda data, *, out_type, min_calib_range, **params: (
    _levels_of(out_type, min_calib_range)))  # fmt: skip


@composite(name="_contrib_quantize_asym", num_outputs=3, output_names=("output", "scale", "shift"))
def quantize_asym(F, data, *, min_calib_range: float | None = None, max_calib_range: float | None = None):
    """Convert float32 to 256 levels between two limits (asymmetric quantization).

    Parameters
    ----------
    data : NDArray or Symbol
        Of float32; int8 and uint8 data are used as levels.
    min_calib_range, max_calib_range : float, optional
        The limits, both or none; by default those of the data.

    Returns
    -------
    levels, scale, shift : tuple of NDArray or Symbol
        ``data * scale + shift``, rounded, as uint8.

    >>> levels, scale, shift = mx.nd.contrib.quantize_asym(mx.nd.array([-1, 0, 4]))
    >>> levels.asnumpy().tolist(), scale.item(), shift.item()
    ([0, 51, 255], 51.0, 51.0)
    """
    both_or_none("_contrib_quantize_asym", min_calib_range, max_calib_range)
    type_ = dtypes.NAMES[dtypes.code_of(data.dtype)]
    if type_ in _BITS:
        shift = 0.0 if type_ == "uint8" else 128.0
        moved = F.Cast(F.Cast(data, dtype="int32") + shift, dtype="uint8")
        return [F.BlockGrad(moved), *calibrated(F, data, 1.0, shift)]
    if min_calib_range is None:
        low, high = F.reshape(F.min(data), shape=(1,)), F.reshape(F.max(data), shape=(1,))
    else:
        low, high = calibrated(F, data, min_calib_range, max_calib_range)
    scale = F._asymmetric_scale(low, high)
    shift = 255.0 - high * scale
    found = F._asymmetric_levels(data, scale, shift)
    return [found, F.BlockGrad(scale), F.BlockGrad(shift)]


@elementwise(name="_asymmetric_scale")
def asymmetric_scale(low, high):
    """How many of 256 levels a unit has; 1 where the limits are one."""
    return F.where(high > low, 255.0 / F.where(high > low, high - low, 1.0), 1.0)


@elementwise(
    name="_asymmetric_levels", broadcast=True, out_dtype=lambda data, scale, shift: dtypes.UINT8,
    rule=lambda g, data, scale, shift, out: (None, None, None),
)  # fmt: skip
def asymmetric_levels(data, scale, shift):
    """Levels of real numbers: halves are rounded upwards."""
    return F.minimum(F.maximum(F.floor(data * scale + shift + 0.5), 0), 255)


shaped_levels(quantize_asym)
typed_levels(quantize_asym, (dtypes.FLOAT32, dtypes.INT8, dtypes.UINT8), lambda data, **params: dtypes.UINT8)


# ---- and back --------------------------------------------------------------------------------------------------------
@composite(name="_contrib_dequantize")
def dequantize(F, data, min_range, max_range, *, out_type: Literal["float32"] = "float32"):
    """Convert int8 or uint8 levels to float32.

    Parameters
    ----------
    data : NDArray or Symbol
        Of int8 or uint8.
    min_range, max_range : NDArray or Symbol
        The limits, one number each; the larger one corresponds to 127.5 or 255.5 levels.

    >>> x = mx.nd.array([-127, 51], dtype="int8")
    >>> mx.nd.contrib.dequantize(x, mx.nd.array([-255]), mx.nd.array([1])).asnumpy().tolist()
    [-254.0, 102.0]
    """
    code = dtypes.code_of(data.dtype)
    return F.BlockGrad(F._of_levels(data, reach_of(F, min_range, max_range), levels=ROUNDED[code]))


shaped_levels(dequantize)
typed_levels(dequantize, (dtypes.INT8, dtypes.UINT8), lambda data, **params: dtypes.FLOAT32)


# ---- the range that loses least ----------------------------------------------------------------------------------------
@zero_gradient
@kernel(name="_contrib_calibrate_entropy", num_outputs=2, output_names=("threshold", "divergence"))
def calibrate_entropy(hist, hist_edges, *, num_quantized_bins: int = 255):
    """Find the range for quantization with the least Kullback-Leibler divergence from a distribution.

    Parameters
    ----------
    hist : NDArray or Symbol
        Counts of an odd number of bins, centred on zero.
    hist_edges : NDArray or Symbol
        Edges of the bins, one more.
    num_quantized_bins : int
        Number of levels.

    Returns
    -------
    limit, divergence : tuple of NDArray or Symbol

    >>> hist, edges = mx.nd.array([1, 0, 2, 3, 9, 3, 2, 0, 1]), mx.nd.arange(-4.5, 5)
    >>> limit, divergence = mx.nd.contrib.calibrate_entropy(hist, edges, num_quantized_bins=3)
    >>> limit.item(), round(divergence.item(), 3)
    (3.5, 0.115)
    """


@calibrate_entropy.infer
def _(ins, outs, *, num_quantized_bins):
    hist, edges = ins
    known = infer.known(hist) and infer.known(edges)
    if known and (len(hist) != 1 or edges != (hist[0] + 1,) or not hist[0] % 2 or not 3 <= num_quantized_bins <= hist[0]):
        raise OpValueError(
            f"operator _contrib_calibrate_entropy: hist has shape {hist}, hist_edges {edges}, num_quantized_bins="
            f"{num_quantized_bins}; expected an odd number of bins, one edge more, and no more levels than bins"
        )
    names = calibrate_entropy.output_names(None)
    return ins, [infer.same_shape("_contrib_calibrate_entropy", (name, "one number"), [s, (1,)])[0]
                 for name, s in zip(names, outs, strict=True)]  # fmt: skip


@on_both(calibrate_entropy, waits="the counts")
def _(xp, inputs, outputs, *, num_quantized_bins):
    import numpy as np

    hist, edges = (np.asarray(a if xp is np else a.get(), np.float64) for a in inputs)
    middle, half = hist.size // 2, num_quantized_bins // 2
    limits = [edges[min(middle + i + 1, hist.size)] for i in range(half, middle + 1)]
    losses = [_divergence(np, hist, middle - i, min(middle + i + 1, hist.size), num_quantized_bins)
              for i in range(half, middle + 1)]  # fmt: skip
    best = int(np.argmin(losses))
    outputs[0][...], outputs[1][...] = limits[best], losses[best]


def _divergence(np, hist, start, stop, levels):
    """Return what is lost when bins from `start` to `stop` are merged to levels, and those beyond to the outermost."""
    inside = hist[start:stop].copy()
    inside[0] = 0  # its bin counts as beyond
    p = inside.copy()
    p[0], p[-1] = hist[: start + 1].sum(), hist[stop - 1 :].sum()
    width = inside.size // levels
    cuts = np.arange(levels) * width
    merged = np.add.reduceat(inside, cuts)
    filled = np.add.reduceat((inside != 0).astype(float), cuts)
    share = np.divide(merged, filled, out=np.zeros(levels), where=filled > 0)
    q = np.repeat(share, np.diff(np.append(cuts, inside.size))) * (p != 0)
    p, q = _smoothed(np, p), _smoothed(np, q)
    if p is None or q is None:
        return np.inf
    p, q = p / p.sum(), q / q.sum()
    return float((p * np.log(p / q)).sum())


def _smoothed(np, counts, eps=1e-4):
    """Take a little from what is there for what is not; None where there is not enough."""
    zeros = counts == 0
    n = counts.size - zeros.sum()
    if not n or eps * zeros.sum() / n >= 1:
        return None
    return counts + np.where(zeros, eps, -eps * zeros.sum() / n)
