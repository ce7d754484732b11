"""What lies between the layers of a quantized network, on int8 and uint8 levels.

All gradients are zero.
"""

from typing import Literal

from ..opdef import DType, F, composite, elementwise, get, infer
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError
from ._shared import Count, zero_gradient
from .convert import round_half_even
from .norm import BatchNorm
from .pooling import Pooling
from .quantize import INT32, ROUNDED, both_or_none, calibrated, shaped_levels, typed_levels
from .quantized import EIGHT, FLOAT, OUTPUTS, of_products, reach, shapes_of, types
from .shape import flatten

_INT8, _UINT8, _INT32 = dtypes.INT8, dtypes.UINT8, dtypes.INT32
_BOUNDS = {_INT8: (-128, 127), _UINT8: (0, 255), _INT32: (-(2.0**31), 2.0**31 - 128)}  # those of int32 are float32 numbers
_LEVELS = ROUNDED | {_INT32: INT32}


# ---- parts -----------------------------------------------------------------------------------------------------------
@elementwise(name="_nearest_levels", out_dtype=lambda data, *, dtype, **params: dtype, rule=lambda g, data, out, **params: None)
def nearest_levels(data, *, low: float, high: float, dtype: DType):
    """Round numbers to levels between two; halves go to the even ones."""
    return F.minimum(F.maximum(round_half_even(data), low), high)


@elementwise(name="_levels_per_unit", rule=lambda g, reach, out, **params: None)
def levels_per_unit(reach, *, levels: float):
    """How many levels the number 1 has in a range whose largest number has as many as `levels`; 0 in one of width 0."""
    return F.where(reach > 0, levels / F.where(reach > 0, reach, 1.0), 0.0)


@elementwise(name="_for_each_level", rule=lambda g, unit, reach, out, **params: (None, None))
def for_each_level(unit, reach, *, levels: float):
    """What a level stands for, where 1 stands for `unit`, in a range whose largest number has as many levels as `levels`."""
    return unit / (levels / reach)


def _nearest(F, data, code):
    low, high = _BOUNDS[code]
    return F._nearest_levels(data, low=low, high=high, dtype=code)


def _times(F, data, factor):
    return F.broadcast_mul(F.Cast(data, dtype="float32"), F.Reshape(factor, shape=(1,) * data.ndim))


def _rescaled(F, data, reach, unit):
    """Return levels times what each stands for; MXNet divides in this order."""
    return _times(F, data, F._for_each_level(unit, reach, levels=ROUNDED[dtypes.code_of(data.dtype)]))


# ---- one array -------------------------------------------------------------------------------------------------------
@composite(name="_contrib_quantized_act", num_outputs=3, output_names=OUTPUTS)
def quantized_act(F, data, min_data, max_data, *, act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"]):
    """Apply ``Activation`` to int8 or uint8 levels.

    Parameters
    ----------
    data : NDArray or Symbol
        Of int8 or uint8.
    min_data, max_data : NDArray or Symbol
        The limits of the levels, which are returned.
    act_type : str
        ``relu``: others are errors.

    >>> x, one = mx.nd.array([-3, 5], dtype="int8"), mx.nd.array([1])
    >>> mx.nd.contrib.quantized_act(x, -one, one, act_type="relu")[0].asnumpy().tolist()
    [0, 5]
    """
    if act_type != "relu":
        raise OpValueError(f"operator _contrib_quantized_act: act_type={act_type!r}; expected 'relu'")
    return [F.relu(data), F.identity(min_data), F.identity(max_data)]


shaped_levels(quantized_act)
typed_levels(quantized_act, EIGHT, lambda data, **params: data)


@composite(name="_contrib_quantized_flatten", num_outputs=3, output_names=OUTPUTS)
def quantized_flatten(F, data, min_data, max_data):
    """Merge all dimensions but the first, of levels, and return their limits.

    >>> x, one = mx.nd.ones((2, 3, 4), dtype="int8"), mx.nd.array([1])
    >>> mx.nd.contrib.quantized_flatten(x, -one, one)[0].shape
    (2, 12)
    """
    return [F.Flatten(data), F.identity(min_data), F.identity(max_data)]


shapes_of(quantized_flatten, flatten, lambda: 1)
typed_levels(quantized_flatten, (*EIGHT, dtypes.INT32, dtypes.FLOAT32), lambda data: data)


@composite(name="_contrib_quantized_pooling", num_outputs=3, output_names=OUTPUTS, extra_params=Pooling.spec.params)
def quantized_pooling(F, data, min_data, max_data, **params):
    """Apply ``Pooling`` of type ``max`` or ``avg`` to int8 or uint8 levels; means are rounded, halves to even levels.

    Parameters
    ----------
    data : NDArray or Symbol
        Of int8 or uint8.
    min_data, max_data : NDArray or Symbol
        The limits of the levels, which are returned.

    >>> x, one = mx.nd.array([[[1, 2, 4, 9]]], dtype="int8"), mx.nd.array([1])
    >>> mx.nd.contrib.quantized_pooling(x, -one, one, kernel=(2,), stride=(2,), pool_type="avg")[0].asnumpy().tolist()
    [[[2, 6]]]
    """
    if params["pool_type"] not in ("max", "avg"):
        raise OpValueError(f"operator _contrib_quantized_pooling: pool_type={params['pool_type']!r}; expected 'max' or 'avg'")
    found = F.Pooling(F.Cast(data, dtype="float32"), **params)
    return [_nearest(F, found, dtypes.code_of(data.dtype)), F.identity(min_data), F.identity(max_data)]


shapes_of(quantized_pooling, Pooling, lambda **params: 1)
typed_levels(quantized_pooling, EIGHT, lambda data, **params: data)


# ---- several arrays --------------------------------------------------------------------------------------------------
@composite(name="_contrib_quantized_concat", num_outputs=3, output_names=OUTPUTS)
def quantized_concat(F, *data, num_args: Count, dim: int = 1):
    """Concatenate levels; the result has the widest range, and is of uint8 if all of them are.

    Parameters
    ----------
    *data : NDArray or Symbol
        `num_args` arrays of int8 or uint8, then the two limits of each.
    dim : int
        The dimension along which they are joined.

    >>> x, y = mx.nd.array([[100, -50]], dtype="int8"), mx.nd.array([[100]], dtype="int8")
    >>> limits = [mx.nd.array([v]) for v in (-1, 1, -2, 2)]
    >>> joined, low, high = mx.nd.contrib.quantized_concat(x, y, *limits, num_args=2)
    >>> joined.asnumpy().tolist(), low.item(), high.item()
    ([[50, -25, 100]], -2.0, 2.0)
    """
    arrays, lows, highs = data[:num_args], data[num_args::2], data[num_args + 1 :: 2]
    code = _joined([dtypes.code_of(a.dtype) for a in arrays])
    low = F.min(F.Concat(*lows, dim=0), axis=0, keepdims=True)
    high = F.max(F.Concat(*highs, dim=0), axis=0, keepdims=True)
    unit = F._levels_per_unit(reach(F, low, high), levels=ROUNDED[code])
    each = zip(arrays, lows, highs, strict=True)
    parts = [_nearest(F, _rescaled(F, a, reach(F, *limits), unit), code) for a, *limits in each]
    return [F.Concat(*parts, dim=dim), low, high]


def _joined(codes):
    """Return the type of several arrays' levels together."""
    return _UINT8 if set(codes) == {_UINT8} else _INT8


def _concat_names(attrs, n=None):
    numbers = range(attrs["num_args"])
    return (*(f"arg{i}" for i in numbers), *(f"arg{i}_{limit}" for i in numbers for limit in ("min", "max")))


def _check_concat(attrs, n):
    if n != 3 * attrs["num_args"]:
        raise OpTypeError(f"operator _contrib_quantized_concat: {n} inputs, but num_args={attrs['num_args']}; expected so many "
                          "arrays, and two limits of each")  # fmt: skip


quantized_concat.input_names, quantized_concat.check_arity = _concat_names, _check_concat
_concat = get("Concat")
shapes_of(quantized_concat, _concat, lambda *, num_args, dim: num_args)
types(quantized_concat, lambda *, num_args, dim: [EIGHT] * num_args + [FLOAT] * (2 * num_args),
      lambda given, *, num_args, dim: (_joined(given[:num_args]), *FLOAT, *FLOAT))  # fmt: skip


def _two_arrays(op, allowed, result):
    """Let two arrays of levels and the first output have one shape, limits one element each."""
    shapes_of(op, get("elemwise_add"), lambda **params: 2)
    types(op, lambda **params: (allowed, allowed, *[FLOAT] * 4), result)


def _calibrated_type(given, code, low):
    return code if low is None else _joined(given[:2])


@composite(name="_contrib_quantized_elemwise_add", num_outputs=3, output_names=OUTPUTS)
def quantized_elemwise_add(
    F, lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range: float | None = None,
    max_calib_range: float | None = None,
):  # fmt: skip
    """Add two arrays of int8 or uint8 levels.

    Parameters
    ----------
    lhs, rhs : NDArray or Symbol
        Of int8 or uint8, and of one shape.
    lhs_min, lhs_max, rhs_min, rhs_max : NDArray or Symbol
        The limits of the levels, one float32 number each.
    min_calib_range, max_calib_range : float, optional
        The limits of the result, both or none.  The result is then of int8, or of uint8 if both arrays are; otherwise of int32.

    >>> x, y, one = (mx.nd.array(v, dtype=t) for v, t in (([100, -60], "int8"), ([10, -127], "int8"), ([1], "float32")))
    >>> mx.nd.contrib.quantized_elemwise_add(x, y, -one, one, -one, one, min_calib_range=-2, max_calib_range=2)[0].asnumpy()
    array([ 55, -94], dtype=int8)
    """
    both_or_none("_contrib_quantized_elemwise_add", min_calib_range, max_calib_range)
    of_lhs, of_rhs = reach(F, lhs_min, lhs_max), reach(F, rhs_min, rhs_max)
    code = _calibrated_type([dtypes.code_of(a.dtype) for a in (lhs, rhs)], _INT32, min_calib_range)
    if min_calib_range is None:
        low, high = F.negative(of_lhs + of_rhs), of_lhs + of_rhs
    else:
        low, high = calibrated(F, lhs, min_calib_range, max_calib_range)
    unit = F._levels_per_unit(reach(F, low, high), levels=_LEVELS[code])
    return [_nearest(F, _rescaled(F, lhs, of_lhs, unit) + _rescaled(F, rhs, of_rhs, unit), code), low, high]


_two_arrays(quantized_elemwise_add, EIGHT, lambda given, *, min_calib_range, **params: (
    _calibrated_type(given, _INT32, min_calib_range), *FLOAT, *FLOAT))  # fmt: skip


@composite(
    name="_contrib_quantized_elemwise_mul", output_names=OUTPUTS,
    num_outputs=lambda *, enable_float_output, **params: 1 if enable_float_output else 3,
)  # fmt: skip
def quantized_elemwise_mul(
    F, lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range: float | None = None,
    max_calib_range: float | None = None, enable_float_output: bool = False,
):  # fmt: skip
    """Multiply two arrays of int8 levels.

    Parameters
    ----------
    lhs, rhs : NDArray or Symbol
        Of int8, and of one shape.
    lhs_min, lhs_max, rhs_min, rhs_max : NDArray or Symbol
        The limits of the levels, one float32 number each.
    min_calib_range, max_calib_range : float, optional
        The limits of the result, both or none.  The result is then of int8, cut to whole levels; otherwise of int32.
    enable_float_output : bool
        Return the numbers that the products stand for, in float32, and no limits.

    >>> x, y, one = (mx.nd.array(v, dtype=t) for v, t in (([100, -60], "int8"), ([10, -127], "int8"), ([1], "float32")))
    >>> mx.nd.contrib.quantized_elemwise_mul(x, y, -one, one, -one, one)[0].asnumpy().tolist()
    [1000, 7620]
    """
    both_or_none("_contrib_quantized_elemwise_mul", min_calib_range, max_calib_range)
    of_lhs, of_rhs = reach(F, lhs_min, lhs_max), reach(F, rhs_min, rhs_max)
    found, each = F.elemwise_mul(*(F.Cast(a, dtype="int32") for a in (lhs, rhs))), ROUNDED[_INT8]
    if min_calib_range is None and not enable_float_output:
        return [found, *of_products(F, _INT8, of_lhs, of_rhs)]
    low, high = calibrated(F, lhs, min_calib_range or 0.0, max_calib_range or 0.0)
    unit = F.ones_like(of_lhs) if enable_float_output else F._levels_per_unit(reach(F, low, high), levels=each)
    found = _times(F, found, F._for_each_level(F._for_each_level(unit, of_lhs, levels=each), of_rhs, levels=each))
    return found if enable_float_output else [F.Cast(F.clip(found, a_min=-128, a_max=127), dtype="int8"), low, high]


_two_arrays(quantized_elemwise_mul, (_INT8,), lambda given, *, min_calib_range, enable_float_output, **params: (
    FLOAT if enable_float_output else (_INT32 if min_calib_range is None else _INT8, *FLOAT, *FLOAT)))  # fmt: skip


# ---- batch normalisation ---------------------------------------------------------------------------------------------
@composite(
    name="_contrib_quantized_batch_norm", num_outputs=5, writes={"moving_mean": 3, "moving_var": 4},
    output_names=(*OUTPUTS, "new_moving_mean", "new_moving_var"), extra_params=BatchNorm.spec.params,
)  # fmt: skip
def quantized_batch_norm(F, data, gamma, beta, moving_mean, moving_var, min_data, max_data, **params):
    """Apply ``BatchNorm`` with its moving mean and variance to int8 or uint8 levels; the result is of int8.

    Parameters
    ----------
    data : NDArray or Symbol
        Of int8 or uint8, with channels along axis 1; uint8 is rounded to int8 first.
    gamma, beta, moving_mean, moving_var : NDArray or Symbol
        One float32 number for each channel.
    min_data, max_data : NDArray or Symbol
        The limits of the levels, one float32 number each.
    min_calib_range, max_calib_range : float
        The limits of the result; both are needed.
    eps : float
        As in MXNet, the variance that is divided by is ``(moving_var + eps) * (1 + eps)``.

    >>> x, one, zero = mx.nd.array([[100, -50]], dtype="int8"), mx.nd.ones((2,)), mx.nd.zeros((2,))
    >>> low, high = mx.nd.array([-1]), mx.nd.array([1])
    >>> calibrated = {"min_calib_range": -2, "max_calib_range": 2}
    >>> mx.nd.contrib.quantized_batch_norm(x, one, one, zero, one, low, high, eps=0, **calibrated)[0].asnumpy().tolist()
    [[114, 39]]
    """
    eps, code = params["eps"], dtypes.code_of(data.dtype)
    limits = calibrated(F, data, *_limits_of_norm(**params))
    of_data, of_output, each = reach(F, min_data, max_data), reach(F, *limits), ROUNDED[_INT8]
    if code == _UINT8:
        data = _nearest(F, F.Cast(data, dtype="float32") * (each / ROUNDED[code]), _INT8)
    gamma = F.ones_like(gamma) if params["fix_gamma"] else gamma
    scale = gamma * F.rsqrt(moving_var + eps)
    factor = F.broadcast_mul(scale, of_data / of_output) * (1 + eps) ** -0.5
    shift = F.broadcast_mul(beta - moving_mean * scale, each / of_output)
    along = [F._along_channels(v, data, axis=1) for v in (factor, shift)]
    found = F.broadcast_add(F.broadcast_mul(F.Cast(data, dtype="float32"), along[0]), along[1])
    return [_nearest(F, found, _INT8), *limits, moving_mean, moving_var]


def _limits_of_norm(*, min_calib_range, max_calib_range, axis, **params):
    name = "operator _contrib_quantized_batch_norm"
    if min_calib_range is None or max_calib_range is None:
        raise OpValueError(f"{name}: min_calib_range={min_calib_range}, max_calib_range={max_calib_range}; expected both: it "
                           "does not run without calibration")  # fmt: skip
    if axis != 1:
        raise OpValueError(f"{name}: axis={axis}; expected 1")
    return min_calib_range, max_calib_range


@quantized_batch_norm.infer
def _(ins, outs, **params):
    data, *others = ins
    _limits_of_norm(**params)
    name = quantized_batch_norm.name
    data = infer.same_shape(name, ("data", "output"), [data, outs[0]])[0]
    if data is not None and len(data) < 2:
        raise OpValueError(f"operator {name}: data has shape {infer.show(data)}; expected channels along axis 1")
    vectors = [*others[:4], *outs[3:]]
    names = ("gamma", "beta", "moving_mean", "moving_var", "new_moving_mean", "new_moving_var", "the data's axis 1")
    vector = infer.same_shape(name, names, [*vectors, (None if data is None else data[1],)])[0]
    limits = infer.same_shape(name, ("min_data", "max_data", "min_output", "max_output", "a limit"),
                              [*others[4:], *outs[1:3], (1,)])  # fmt: skip
    data = None if data is None else (data[0], *vector, *data[2:])
    return [data, *[vector] * 4, *limits[:2]], [data, *limits[2:4], vector, vector]


types(quantized_batch_norm, lambda **params: (EIGHT, *[FLOAT] * 6), (_INT8, *FLOAT * 4))

for _op in (quantized_act, quantized_flatten, quantized_pooling, quantized_concat, quantized_elemwise_add,
            quantized_elemwise_mul, quantized_batch_norm):  # fmt: skip
    zero_gradient(_op)
