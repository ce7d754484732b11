"""Unary elementwise functions, and a few operators with several operands.

A function of a number is a row of :data:`TABLE`, or an entry below if it has parameters or a gradient rule.  It is traced;
shapes, types, kernels for both devices and gradients of every order follow from it.  To add one, add a row, and its record to
``mxop/records/math.py``.  Integer data are computed in float64, and truncated, where a formula needs reals.
"""

import math
from collections.abc import Callable

from ..opdef import Bound, DType, F, elementwise, infer, kernel
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import adjoint, along, compiled, on_both

#: Name, namespaces of aliases (``_sparse`` of ``_sparse_sin``), formula, summary, an example's data and what it gives.
TABLE = (
    # ---- arithmetic --------------------------------------------------------------------------------------------------
    ("negative", "_sparse", lambda x: -x, "Numerical negative, ``-data``.", "[1, -2]", "[-1.  2.]"),
    ("abs", "_sparse", F.abs, "Absolute value, ``|data|``; its gradient at 0 is 0.", "[-2, 0, 3]", "[2. 0. 3.]"),
    ("sign", "_sparse", F.sign, "Sign: -1, 0 or 1; its gradient is zero.", "[-2, 0, 3]", "[-1.  0.  1.]"),
    ("square", "_sparse", F.square, "Square, ``data**2``.", "[2, -3]", "[4. 9.]"),
    ("reciprocal", "", F.reciprocal, "Reciprocal, ``1 / data``; infinite at 0.", "[2, -4]", "[ 0.5  -0.25]"),
    ("degrees", "_sparse", lambda x: x * (180 / math.pi),
     "Convert radians to degrees, ``data * 180 / pi``.", "[0, 3.14159265]", "[  0. 180.]"),
    ("radians", "_sparse", lambda x: x * (math.pi / 180),
     "Convert degrees to radians, ``data * pi / 180``.", "[0, 180]", "[0.    3.142]"),
    # ---- powers, exponentials, logarithms ----------------------------------------------------------------------------
    ("sqrt", "_sparse", F.sqrt, "Square root; NaN below 0, and its gradient is infinite at 0.", "[4, 9]", "[2. 3.]"),
    ("rsqrt", "_sparse", F.rsqrt, "Reciprocal square root, ``1 / sqrt(data)``.", "[4, 16]", "[0.5  0.25]"),
    ("cbrt", "_sparse", F.cbrt, "Cube root, for negative numbers too; its gradient is infinite at 0.", "[8, -27]", "[ 2. -3.]"),
    ("rcbrt", "", F.rcbrt, "Reciprocal cube root, ``1 / cbrt(data)``.", "[8, -64]", "[ 0.5  -0.25]"),
    ("exp", "_sparse", F.exp, "Exponential, ``e**data``.", "[0, 1]", "[1.    2.718]"),
    ("expm1", "_sparse", F.expm1, "Exponential minus one, ``exp(data) - 1``, exact near 0.", "[0, 1]", "[0.    1.718]"),
    ("log", "_sparse", F.log, "Natural logarithm; -inf at 0, NaN below.", "[1, 10]", "[0.    2.303]"),
    ("log2", "_sparse", F.log2, "Logarithm to base 2; -inf at 0, NaN below.", "[1, 8]", "[0. 3.]"),
    ("log10", "_sparse", F.log10, "Logarithm to base 10; -inf at 0, NaN below.", "[1, 20]", "[0.    1.301]"),
    ("log1p", "_sparse", F.log1p,
     "Logarithm of one plus, ``log(1 + data)``, exact near 0; -inf at -1, NaN below.", "[0, 1]", "[0.    0.693]"),
    # ---- trigonometric and hyperbolic --------------------------------------------------------------------------------
    ("sin", "_sparse", F.sin, "Sine of an angle in radians.", "[0, 1]", "[0.    0.841]"),
    ("cos", "_sparse", F.cos, "Cosine of an angle in radians.", "[0, 1]", "[1.   0.54]"),
    ("tan", "_sparse", F.tan, "Tangent of an angle in radians.", "[0, 1]", "[0.    1.557]"),
    ("arcsin", "_sparse", F.arcsin, "Inverse sine, from -pi/2 to pi/2; NaN outside of [-1, 1].", "[0, 1]", "[0.    1.571]"),
    ("arccos", "_sparse", F.arccos, "Inverse cosine, from 0 to pi; NaN outside of [-1, 1].", "[1, 0]", "[0.    1.571]"),
    ("arctan", "_sparse", F.arctan, "Inverse tangent, from -pi/2 to pi/2.", "[0, 1]", "[0.    0.785]"),
    ("sinh", "_sparse", F.sinh, "Hyperbolic sine, ``(exp(data) - exp(-data)) / 2``.", "[0, 1]", "[0.    1.175]"),
    ("cosh", "_sparse", F.cosh, "Hyperbolic cosine, ``(exp(data) + exp(-data)) / 2``.", "[0, 1]", "[1.    1.543]"),
    ("tanh", "_sparse", F.tanh, "Hyperbolic tangent, from -1 to 1.", "[0, 1]", "[0.    0.762]"),
    ("arcsinh", "_sparse", F.arcsinh, "Inverse hyperbolic sine.", "[0, 1]", "[0.    0.881]"),
    ("arccosh", "_sparse", F.arccosh, "Inverse hyperbolic cosine; NaN below 1.", "[1, 2]", "[0.    1.317]"),
    ("arctanh", "_sparse", F.arctanh,
     "Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.", "[0, 0.5]", "[0.    0.549]"),
    # ---- special functions -------------------------------------------------------------------------------------------
    ("erf", "_npx", F.erf,
     "Error function, ``2/sqrt(pi) * integral of exp(-t**2) from 0 to data``.", "[0, 1]", "[0.    0.843]"),
    ("erfinv", "_npx", F.erfinv, "Inverse error function; infinite at -1 and 1, NaN beyond.", "[0, 0.5]", "[0.    0.477]"),
    ("gamma", "_npx _sparse", F.gamma, "Gamma function; ``gamma(n) = (n - 1)!``.", "[1, 5]", "[ 1. 24.]"),
    ("gammaln", "_npx _sparse", F.gammaln, "Logarithm of the absolute value of the gamma function.", "[1, 5]", "[0.    3.178]"),
    ("digamma", "", F.digamma, "Derivative of :func:`gammaln`.", "[1, 2]", "[-0.577  0.423]"),
    # ---- rounding: the gradient is zero ------------------------------------------------------------------------------
    ("round", "_sparse", F.round, "Nearest integer; halves round away from zero.", "[-2.5, 0.5, 1.4]", "[-3.  1.  1.]"),
    ("rint", "_sparse", F.rint, "Nearest integer; halves round down, as in MXNet.", "[-2.5, 0.5, 1.6]", "[-3.  0.  2.]"),
    ("ceil", "_sparse", F.ceil, "Smallest integer that is not below the value.", "[-1.5, 1.5]", "[-1.  2.]"),
    ("floor", "_sparse", F.floor, "Largest integer that is not above the value.", "[-1.5, 1.5]", "[-2.  1.]"),
    ("trunc", "_sparse", F.trunc, "Integer part: the value without its fraction.", "[-1.5, 1.5]", "[-1.  1.]"),
    ("fix", "_sparse", F.trunc, "Nearest integer towards zero (the same as ``trunc``).", "[-1.5, 1.5]", "[-1.  1.]"),
    ("logical_not", "", F.lnot,
     "1 where the value is zero, otherwise 0, in the data's type; the gradient is zero.", "[0, 2]", "[1. 0.]"),
    # ---- activations -------------------------------------------------------------------------------------------------
    ("sigmoid", "_sparse", F.sigmoid, "Logistic function, ``1 / (1 + exp(-data))``.", "[0, 1]", "[0.5   0.731]"),
    ("log_sigmoid", "", F.log_sigmoid,
     "Logarithm of the logistic function, ``-log(1 + exp(-data))``, without overflow.", "[0, 1]", "[-0.693 -0.313]"),
    ("softsign", "", F.softsign, "Softsign activation, ``data / (1 + |data|)``.", "[-1, 0, 3]", "[-0.5   0.    0.75]"),
)  # fmt: skip


def _register(name: str, spaces: str, formula: Callable, summary: str, data: str, result: str) -> None:
    def function(data):
        return formula(data)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    >>> print(mx.nd.{name}(mx.nd.array({data})).asnumpy().round(3))
    {result}
    """
    elementwise(function, aliases=[f"{space}_{name}" for space in spaces.split()])


for _row in TABLE:
    _register(*_row)


# ---- with parameters, or a gradient rule -----------------------------------------------------------------------------
@elementwise(aliases=("_npi_clip", "_sparse_clip"))
def clip(data, *, a_min: Bound, a_max: Bound):
    """Limit values to the interval from `a_min` to `a_max`: ``min(max(data, a_min), a_max)``.

    Integers stay integers: a limit is truncated to one.  The gradient is 1 inside the interval and at its bounds,
    0 outside.

    >>> mx.nd.clip(mx.nd.array([0, 2, 5]), a_min=1, a_max=4).asnumpy().tolist()
    [1.0, 2.0, 4.0]
    """
    return F.minimum(F.maximum(data, a_min), a_max)  # data first: a tie, hence the gradient at a bound, is its own


@elementwise(name="_contrib_quadratic", aliases=("quadratic",))
def quadratic(data, *, a: float = 0.0, b: float = 0.0, c: float = 0.0):
    """Evaluate ``a*data**2 + b*data + c`` element by element.

    >>> mx.nd.contrib.quadratic(mx.nd.array([[1, 2], [3, 4]]), a=1, b=2, c=3).asnumpy().tolist()
    [[6.0, 11.0], [18.0, 27.0]]
    """
    return data * (a * data + b) + c


@elementwise(aliases=("_sparse_relu",), rule=lambda g, data, output: F.where(output > 0, g, output))
def relu(data):
    """Rectified linear unit, ``max(0, data)``; NaN stays NaN, in the gradient too, and the gradient at 0 is 0.

    >>> mx.nd.relu(mx.nd.array([-2, 0, 3])).asnumpy().tolist()
    [0.0, 0.0, 3.0]
    """
    return F.maximum(0.0, data)


@elementwise
def hard_sigmoid(data, *, alpha: float = 0.2, beta: float = 0.5):
    """Piecewise linear sigmoid, ``max(0, min(1, alpha*data + beta))``; the gradient at both bends is 0.

    >>> mx.nd.hard_sigmoid(mx.nd.array([-3, 0, 3])).asnumpy().tolist()
    [0.0, 0.5, 1.0]
    """
    return F.maximum(0.0, F.minimum(1.0, F.fma(alpha, data, beta)))  # one rounding, where the sum cancels


# The rule keeps infinite data from meeting the zero of the branch that is not taken.
@elementwise(
    aliases=("_npx_smooth_l1",),
    rule=lambda g, data, out, *, scalar, is_int: (
        g * F.where(F.abs(data) < 1.0 / F.square(scalar), F.square(scalar) * data, F.sign(data))
    ),
)
def smooth_l1(data, *, scalar: float = 1.0, is_int: bool = True):
    """Smooth L1 loss: ``(scalar*data)**2 / 2`` where ``|data| < 1/scalar**2``, otherwise ``|data| - 0.5/scalar**2``.

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


@on_both(div_sqrt_dim)
def _(xp, inputs, outputs):
    wide = xp.result_type(inputs[0].dtype, xp.float32)  # as in formulas: float16 in float32, integers in float64
    xp.divide(inputs[0], math.sqrt(inputs[0].shape[-1]), out=outputs[0], dtype=wide, casting="unsafe")


adjoint(div_sqrt_dim, div_sqrt_dim)


@kernel(name="_np_cumsum", aliases=("cumsum",))
def cumsum(a, *, axis: int | None = None, dtype: DType | None = None):
    """Cumulative sum along `axis`, of the flattened array by default.

    Elements are converted to `dtype` (the type of `a` by default, int64 for bool) before they are added; float16 is
    summed in float32.  The gradient is the reversed cumulative sum of the output gradient.

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
    code = dtypes.summed_in(out.dtype_code)
    if out.dtype_code == dtypes.BOOL:  # counts how many there were
        a = steps.converted(a, dtypes.BOOL)
    found = steps.room(out, code)
    steps.work(compiled("along").RunningSum(along(a.shape, axis), code), steps.converted(a, code), found)
    steps.move(found, out)


@cumsum.gpu
def _(xp, inputs, outputs, *, axis, dtype):
    from .._gpu.elements import running_sums

    running_sums(xp.ascontiguousarray(inputs[0]), outputs[0], *along(inputs[0].shape, axis))


@cumsum.gradient
def _(F, heads, inputs, outputs, *, axis, dtype):
    along = 0 if axis is None else axis
    grad = F.reverse(F._np_cumsum(F.reverse(heads[0], axis=along), axis=along), axis=along)
    if axis is None:
        grad = F.reshape_like(grad, inputs[0])
    return [F._cast_like(grad, inputs[0])]
