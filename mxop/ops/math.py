"""Unary mathematics: one entry an operator, and the entry is the whole operator.

A function of scalars is traced; shapes, types, kernels for both devices and gradients of every order follow from it.
To add an operator, copy an entry, write its formula with Python's arithmetic and the functions of ``F``, and give it a
record in ``mxop/records/math.py``.  Integer data are computed in float64, and truncated, where a formula needs reals.
Examples assume ``import mxop as mx``.
"""

import math

from ..opdef import Bound, DType, F, elementwise, infer, kernel
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import along, compiled, summed_in

# In this module `abs` and `round` are operators: formulas write F.abs and F.round.


# ---- arithmetic ------------------------------------------------------------------------------------------------------
@elementwise(aliases=("_sparse_negative",))
def negative(data):
    """Numerical negative, ``-data``.

    >>> mx.nd.negative(mx.nd.array([1, -2])).asnumpy().tolist()
    [-1.0, 2.0]
    """
    return -data


@elementwise(aliases=("_sparse_abs",))
def abs(data):
    """Absolute value, ``|data|``; its gradient at 0 is 0.

    >>> mx.nd.abs(mx.nd.array([-2, 0, 3])).asnumpy().tolist()
    [2.0, 0.0, 3.0]
    """
    return F.abs(data)


@elementwise(aliases=("_sparse_sign",))
def sign(data):
    """Sign: -1, 0 or 1; its gradient is zero.

    >>> mx.nd.sign(mx.nd.array([-2, 0, 3])).asnumpy().tolist()
    [-1.0, 0.0, 1.0]
    """
    return F.sign(data)


@elementwise(aliases=("_sparse_square",))
def square(data):
    """Square, ``data**2``.

    >>> mx.nd.square(mx.nd.array([2, -3])).asnumpy().tolist()
    [4.0, 9.0]
    """
    return F.square(data)


@elementwise
def reciprocal(data):
    """Reciprocal, ``1 / data``; infinite at 0.

    >>> mx.nd.reciprocal(mx.nd.array([2, -4])).asnumpy().tolist()
    [0.5, -0.25]
    """
    return F.reciprocal(data)


@elementwise(aliases=("_npi_clip", "_sparse_clip"))
def clip(data, *, a_min: Bound, a_max: Bound):
    """Limit values to the interval from `a_min` to `a_max`: ``min(max(data, a_min), a_max)``.

    Integers stay integers: a bound is cut to one, towards zero.  The gradient is 1 inside the interval and at its bounds,
    0 outside.

    >>> mx.nd.clip(mx.nd.array([0, 2, 5]), a_min=1, a_max=4).asnumpy().tolist()
    [1.0, 2.0, 4.0]
    """
    return F.minimum(F.maximum(data, a_min), a_max)  # data first: a tie, hence the gradient at a bound, is its own


@elementwise(aliases=("_sparse_degrees",))
def degrees(data):
    """Convert radians to degrees, ``data * 180 / pi``.

    >>> print(mx.nd.degrees(mx.nd.array([0, 3.14159265])).asnumpy().round(3))
    [  0. 180.]
    """
    return data * (180 / math.pi)


@elementwise(aliases=("_sparse_radians",))
def radians(data):
    """Convert degrees to radians, ``data * pi / 180``.

    >>> print(mx.nd.radians(mx.nd.array([0, 180])).asnumpy().round(3))
    [0.    3.142]
    """
    return data * (math.pi / 180)


@elementwise(name="_contrib_quadratic", aliases=("quadratic",))
def quadratic(data, *, a: float = 0.0, b: float = 0.0, c: float = 0.0):
    """Evaluate ``a*data**2 + b*data + c`` element by element.

    >>> mx.nd.contrib.quadratic(mx.nd.array([[1, 2], [3, 4]]), a=1, b=2, c=3).asnumpy().tolist()
    [[6.0, 11.0], [18.0, 27.0]]
    """
    return data * (a * data + b) + c


# ---- powers, exponentials, logarithms --------------------------------------------------------------------------------
@elementwise(aliases=("_sparse_sqrt",))
def sqrt(data):
    """Square root; NaN below 0, and its gradient is infinite at 0.

    >>> mx.nd.sqrt(mx.nd.array([4, 9])).asnumpy().tolist()
    [2.0, 3.0]
    """
    return F.sqrt(data)


@elementwise(aliases=("_sparse_rsqrt",))
def rsqrt(data):
    """Reciprocal square root, ``1 / sqrt(data)``.

    >>> mx.nd.rsqrt(mx.nd.array([4, 16])).asnumpy().tolist()
    [0.5, 0.25]
    """
    return F.rsqrt(data)


@elementwise(aliases=("_sparse_cbrt",))
def cbrt(data):
    """Cube root, for negative numbers too; its gradient is infinite at 0.

    >>> mx.nd.cbrt(mx.nd.array([8, -27])).asnumpy().tolist()
    [2.0, -3.0]
    """
    return F.cbrt(data)


@elementwise
def rcbrt(data):
    """Reciprocal cube root, ``1 / cbrt(data)``.

    >>> mx.nd.rcbrt(mx.nd.array([8, -64])).asnumpy().tolist()
    [0.5, -0.25]
    """
    return F.rcbrt(data)


@elementwise(aliases=("_sparse_exp",))
def exp(data):
    """Exponential, ``e**data``.

    >>> print(mx.nd.exp(mx.nd.array([0, 1])).asnumpy().round(3))
    [1.    2.718]
    """
    return F.exp(data)


@elementwise(aliases=("_sparse_expm1",))
def expm1(data):
    """Exponential minus one, ``exp(data) - 1``, exact near 0.

    >>> print(mx.nd.expm1(mx.nd.array([0, 1])).asnumpy().round(3))
    [0.    1.718]
    """
    return F.expm1(data)


@elementwise(aliases=("_sparse_log",))
def log(data):
    """Natural logarithm; -inf at 0, NaN below.

    >>> print(mx.nd.log(mx.nd.array([1, 10])).asnumpy().round(3))
    [0.    2.303]
    """
    return F.log(data)


@elementwise(aliases=("_sparse_log2",))
def log2(data):
    """Logarithm to base 2; -inf at 0, NaN below.

    >>> mx.nd.log2(mx.nd.array([1, 8])).asnumpy().tolist()
    [0.0, 3.0]
    """
    return F.log2(data)


@elementwise(aliases=("_sparse_log10",))
def log10(data):
    """Logarithm to base 10; -inf at 0, NaN below.

    >>> print(mx.nd.log10(mx.nd.array([1, 20])).asnumpy().round(3))
    [0.    1.301]
    """
    return F.log10(data)


@elementwise(aliases=("_sparse_log1p",))
def log1p(data):
    """Logarithm of one plus, ``log(1 + data)``, exact near 0; -inf at -1, NaN below.

    >>> print(mx.nd.log1p(mx.nd.array([0, 1])).asnumpy().round(3))
    [0.    0.693]
    """
    return F.log1p(data)


# ---- trigonometric and hyperbolic ------------------------------------------------------------------------------------
@elementwise(aliases=("_sparse_sin",))
def sin(data):
    """Sine of an angle in radians.

    >>> print(mx.nd.sin(mx.nd.array([0, 1])).asnumpy().round(3))
    [0.    0.841]
    """
    return F.sin(data)


@elementwise(aliases=("_sparse_cos",))
def cos(data):
    """Cosine of an angle in radians.

    >>> print(mx.nd.cos(mx.nd.array([0, 1])).asnumpy().round(3))
    [1.   0.54]
    """
    return F.cos(data)


@elementwise(aliases=("_sparse_tan",))
def tan(data):
    """Tangent of an angle in radians.

    >>> print(mx.nd.tan(mx.nd.array([0, 1])).asnumpy().round(3))
    [0.    1.557]
    """
    return F.tan(data)


@elementwise(aliases=("_sparse_arcsin",))
def arcsin(data):
    """Inverse sine, from -pi/2 to pi/2; NaN outside of [-1, 1].

    >>> print(mx.nd.arcsin(mx.nd.array([0, 1])).asnumpy().round(3))
    [0.    1.571]
    """
    return F.arcsin(data)


@elementwise(aliases=("_sparse_arccos",))
def arccos(data):
    """Inverse cosine, from 0 to pi; NaN outside of [-1, 1].

    >>> print(mx.nd.arccos(mx.nd.array([1, 0])).asnumpy().round(3))
    [0.    1.571]
    """
    return F.arccos(data)


@elementwise(aliases=("_sparse_arctan",))
def arctan(data):
    """Inverse tangent, from -pi/2 to pi/2.

    >>> print(mx.nd.arctan(mx.nd.array([0, 1])).asnumpy().round(3))
    [0.    0.785]
    """
    return F.arctan(data)


@elementwise(aliases=("_sparse_sinh",))
def sinh(data):
    """Hyperbolic sine, ``(exp(data) - exp(-data)) / 2``.

    >>> print(mx.nd.sinh(mx.nd.array([0, 1])).asnumpy().round(3))
    [0.    1.175]
    """
    return F.sinh(data)


@elementwise(aliases=("_sparse_cosh",))
def cosh(data):
    """Hyperbolic cosine, ``(exp(data) + exp(-data)) / 2``.

    >>> print(mx.nd.cosh(mx.nd.array([0, 1])).asnumpy().round(3))
    [1.    1.543]
    """
    return F.cosh(data)


@elementwise(aliases=("_sparse_tanh",))
def tanh(data):
    """Hyperbolic tangent, from -1 to 1.

    >>> print(mx.nd.tanh(mx.nd.array([0, 1])).asnumpy().round(3))
    [0.    0.762]
    """
    return F.tanh(data)


@elementwise(aliases=("_sparse_arcsinh",))
def arcsinh(data):
    """Inverse hyperbolic sine.

    >>> print(mx.nd.arcsinh(mx.nd.array([0, 1])).asnumpy().round(3))
    [0.    0.881]
    """
    return F.arcsinh(data)


@elementwise(aliases=("_sparse_arccosh",))
def arccosh(data):
    """Inverse hyperbolic cosine; NaN below 1.

    >>> print(mx.nd.arccosh(mx.nd.array([1, 2])).asnumpy().round(3))
    [0.    1.317]
    """
    return F.arccosh(data)


@elementwise(aliases=("_sparse_arctanh",))
def arctanh(data):
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.

    >>> print(mx.nd.arctanh(mx.nd.array([0, 0.5])).asnumpy().round(3))
    [0.    0.549]
    """
    return F.arctanh(data)


# ---- special functions -----------------------------------------------------------------------------------------------
@elementwise(aliases=("_npx_erf",))
def erf(data):
    """Error function, ``2/sqrt(pi) * integral of exp(-t**2) from 0 to data``.

    >>> print(mx.nd.erf(mx.nd.array([0, 1])).asnumpy().round(3))
    [0.    0.843]
    """
    return F.erf(data)


@elementwise(aliases=("_npx_erfinv",))
def erfinv(data):
    """Inverse error function; infinite at -1 and 1, NaN beyond.

    >>> print(mx.nd.erfinv(mx.nd.array([0, 0.5])).asnumpy().round(3))
    [0.    0.477]
    """
    return F.erfinv(data)


@elementwise(aliases=("_npx_gamma", "_sparse_gamma"))
def gamma(data):
    """Gamma function; ``gamma(n) = (n - 1)!``.

    >>> print(mx.nd.gamma(mx.nd.array([1, 5])).asnumpy().round(3))
    [ 1. 24.]
    """
    return F.gamma(data)


@elementwise(aliases=("_npx_gammaln", "_sparse_gammaln"))
def gammaln(data):
    """Logarithm of the absolute value of the gamma function.

    >>> print(mx.nd.gammaln(mx.nd.array([1, 5])).asnumpy().round(3))
    [0.    3.178]
    """
    return F.gammaln(data)


@elementwise
def digamma(data):
    """Derivative of :func:`gammaln`.

    >>> print(mx.nd.digamma(mx.nd.array([1, 2])).asnumpy().round(3))
    [-0.577  0.423]
    """
    return F.digamma(data)


# ---- rounding: the gradient is zero ----------------------------------------------------------------------------------
@elementwise(aliases=("_sparse_round",))
def round(data):
    """Nearest integer; halves go away from zero.

    >>> mx.nd.round(mx.nd.array([-2.5, 0.5, 1.4])).asnumpy().tolist()
    [-3.0, 1.0, 1.0]
    """
    return F.round(data)


@elementwise(aliases=("_sparse_rint",))
def rint(data):
    """Nearest integer; halves go down, as in MXNet.

    >>> mx.nd.rint(mx.nd.array([-2.5, 0.5, 1.6])).asnumpy().tolist()
    [-3.0, 0.0, 2.0]
    """
    return F.rint(data)


@elementwise(aliases=("_sparse_ceil",))
def ceil(data):
    """Smallest integer that is not below the value.

    >>> mx.nd.ceil(mx.nd.array([-1.5, 1.5])).asnumpy().tolist()
    [-1.0, 2.0]
    """
    return F.ceil(data)


@elementwise(aliases=("_sparse_floor",))
def floor(data):
    """Largest integer that is not above the value.

    >>> mx.nd.floor(mx.nd.array([-1.5, 1.5])).asnumpy().tolist()
    [-2.0, 1.0]
    """
    return F.floor(data)


@elementwise(aliases=("_sparse_trunc",))
def trunc(data):
    """Integer part: the value without its fraction.

    >>> mx.nd.trunc(mx.nd.array([-1.5, 1.5])).asnumpy().tolist()
    [-1.0, 1.0]
    """
    return F.trunc(data)


@elementwise(aliases=("_sparse_fix",))
def fix(data):
    """Nearest integer towards zero (the same as ``trunc``).

    >>> mx.nd.fix(mx.nd.array([-1.5, 1.5])).asnumpy().tolist()
    [-1.0, 1.0]
    """
    return F.trunc(data)


@elementwise
def logical_not(data):
    """1 where the value is zero, otherwise 0, in the data's type; the gradient is zero.

    >>> mx.nd.logical_not(mx.nd.array([0, 2])).asnumpy().tolist()
    [1.0, 0.0]
    """
    return F.lnot(data)


# ---- activations -----------------------------------------------------------------------------------------------------
@elementwise(aliases=("_sparse_relu",), rule=lambda g, data, output: F.where(output > 0, g, output))
def relu(data):
    """Rectified linear unit, ``max(0, data)``; NaN stays NaN, in the gradient too, and the gradient at 0 is 0.

    >>> mx.nd.relu(mx.nd.array([-2, 0, 3])).asnumpy().tolist()
    [0.0, 0.0, 3.0]
    """
    return F.maximum(0.0, data)


@elementwise(aliases=("_sparse_sigmoid",))
def sigmoid(data):
    """Logistic function, ``1 / (1 + exp(-data))``.

    >>> print(mx.nd.sigmoid(mx.nd.array([0, 1])).asnumpy().round(3))
    [0.5   0.731]
    """
    return F.sigmoid(data)


@elementwise
def log_sigmoid(data):
    """Logarithm of the logistic function, ``-log(1 + exp(-data))``, without overflow.

    >>> print(mx.nd.log_sigmoid(mx.nd.array([0, 1])).asnumpy().round(3))
    [-0.693 -0.313]
    """
    return F.log_sigmoid(data)


@elementwise
def hard_sigmoid(data, *, alpha: float = 0.2, beta: float = 0.5):
    """Piecewise linear sigmoid, ``max(0, min(1, alpha*data + beta))``; the gradient at both bends is 0.

    >>> mx.nd.hard_sigmoid(mx.nd.array([-3, 0, 3])).asnumpy().tolist()
    [0.0, 0.5, 1.0]
    """
    return F.maximum(0.0, F.minimum(1.0, F.fma(alpha, data, beta)))  # one rounding, where the sum cancels


@elementwise
def softsign(data):
    """Softsign activation, ``data / (1 + |data|)``.

    >>> mx.nd.softsign(mx.nd.array([-1, 0, 3])).asnumpy().tolist()
    [-0.5, 0.0, 0.75]
    """
    return F.softsign(data)


# The rule keeps infinite data from meeting the zero of the branch that is not taken.
@elementwise(
    aliases=("_npx_smooth_l1",),
    rule=lambda g, data, out, *, scalar, is_int: (
        g * F.where(F.abs(data) < 1.0 / F.square(scalar), F.square(scalar) * data, F.sign(data))
    ),
)
def smooth_l1(data, *, scalar: float = 1.0, is_int: bool = True):
    """Smooth L1 loss: ``(scalar*data)**2 / 2`` where ``|data| < 1/scalar**2``, otherwise ``|data| - 0.5/scalar**2``.

    `is_int` has no effect.

    >>> mx.nd.smooth_l1(mx.nd.array([-3, 0.5, 1])).asnumpy().tolist()
    [2.5, 0.125, 0.5]
    """
    beta = 1.0 / F.square(scalar)
    size = F.abs(data)
    return F.where(size < beta, 0.5 * F.square(scalar * data), size - 0.5 * beta)


# ---- operators that look beyond one element --------------------------------------------------------------------------
@kernel(name="_contrib_div_sqrt_dim")
def div_sqrt_dim(data):
    """Divide by the square root of the size of the last axis, as attention scores are scaled.

    >>> mx.nd.contrib.div_sqrt_dim(mx.nd.ones((1, 4))).asnumpy().tolist()
    [[0.5, 0.5, 0.5, 0.5]]
    """


@div_sqrt_dim.infer
def _(ins, outs):
    shape, _ = infer.same_shape("_contrib_div_sqrt_dim", ("data", "output"), [*ins, *outs])
    if shape == ():
        raise OpValueError("operator _contrib_div_sqrt_dim: data needs at least one axis, got shape ()")
    return [shape], [shape]


def _divide_by_sqrt_dim(xp, data, out):
    # float16 is divided in float32, integers in float64, as in formulas
    xp.divide(data, math.sqrt(data.shape[-1]), out=out, dtype=xp.result_type(data.dtype, xp.float32), casting="unsafe")


@div_sqrt_dim.cpu
def _(inputs, outputs):
    import numpy as np

    _divide_by_sqrt_dim(np, np.asarray(inputs[0]), np.asarray(outputs[0]))


@div_sqrt_dim.gpu
def _(xp, inputs, outputs):
    _divide_by_sqrt_dim(xp, inputs[0], outputs[0])


@div_sqrt_dim.gradient
def _(F, heads, inputs, outputs):
    return [F._contrib_div_sqrt_dim(heads[0])]


@kernel(name="_np_cumsum", aliases=("cumsum",))
def cumsum(a, *, axis: int | None = None, dtype: DType | None = None):
    """Cumulative sum along `axis`, of the flattened array by default.

    Elements are converted to `dtype` (the type of `a` by default, int64 for bool) before they are added; float16 is
    summed in float32.  The gradient is the cumulative sum of the head gradient from the other end.

    >>> mx.nd.cumsum(mx.nd.array([[1, 2], [3, 4]]), axis=1).asnumpy().tolist()
    [[1.0, 3.0], [3.0, 7.0]]
    """


@cumsum.infer
def _(ins, outs, *, axis, dtype):
    if axis is not None:
        shape, _ = infer.same_shape("_np_cumsum", ("a", "output"), [*ins, *outs])
        if shape is not None:
            infer.normal_axis("_np_cumsum", axis, len(shape))  # raises when out of range
        return [shape], [shape]
    size = math.prod(ins[0]) if infer.known(ins[0]) else None
    return ins, infer.same_shape("_np_cumsum", ("the flattened a", "output"), [(size,), *outs])[1:]


@cumsum.infer_types
def _(ins, outs, *, dtype, **params):
    """The result has the type that is asked for, or that of `a`, known in both directions; of bool it is int64."""
    if dtype is not None or ins[0] == dtypes.BOOL:
        wanted = dtype if dtype is not None else dtypes.INT64
        return ins, infer.same_type("_np_cumsum", ("dtype", "output"), [wanted, *outs])[1:]
    if ins[0] == dtypes.UNKNOWN and outs[0] == dtypes.INT64:
        return ins, outs  # of int64 or of bool
    done = infer.same_type("_np_cumsum", ("a", "output"), [*ins, *outs])
    return done[:1], done[1:]


@cumsum.cpu(prepared=True)
def _(steps, inputs, outputs, *, axis, dtype):
    (a,), (out,) = inputs, outputs
    code = summed_in(out.dtype_code)
    if out.dtype_code == dtypes.BOOL:  # counts how many there were
        a = steps.converted(a, dtypes.BOOL)
    found = steps.room(out, code)
    steps.work(compiled("along").RunningSum(along(a.shape, axis), code), steps.converted(a, code), found)
    steps.move(found, out)


@cumsum.gpu
def _(xp, inputs, outputs, *, axis, dtype):
    a, out = inputs[0], outputs[0]
    half = out.dtype.itemsize == 2  # float16, bfloat16
    if half:
        out[...] = xp.cumsum(a.astype(xp.float32), axis=axis).reshape(out.shape)
    else:
        out[...] = xp.cumsum(a, axis=axis, dtype=out.dtype).reshape(out.shape)


@cumsum.gradient
def _(F, heads, inputs, outputs, *, axis, dtype):
    along = 0 if axis is None else axis
    grad = F.reverse(F._np_cumsum(F.reverse(heads[0], axis=along), axis=along), axis=along)
    if axis is None:
        grad = F.reshape_like(grad, inputs[0])
    return [F._cast_like(grad, inputs[0])]
