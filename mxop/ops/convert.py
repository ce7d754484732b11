"""Copies, conversions of the element type, and changes of the gradient alone."""

from ..opdef import DType, F, Scalar, elementwise, infer, kernel
from ..support import dtypes
from ._shared import in_steps


# ---- copies, some with a gradient of their own -----------------------------------------------------------------------
@elementwise(name="_copy", aliases=("identity",))
def copy(data):
    """Copy of the data; the gradient passes through.

    >>> mx.nd.identity(mx.nd.array([1, 2])).asnumpy().tolist()
    [1.0, 2.0]
    """
    return data


@elementwise(name="_copyto", aliases=("_npi_copyto",))
def copyto(data):
    """Copy of the data, written to ``out=``; the gradient passes through.

    >>> mx.nd._internal._copyto(mx.nd.array([1, 2])).asnumpy().tolist()
    [1.0, 2.0]
    """
    return data


@elementwise(name="BlockGrad", aliases=("_sparse_stop_gradient", "stop_gradient"), rule=lambda g, data, out: None)
def block_grad(data):
    """Copy of the data that stops the gradient.

    >>> mx.nd.stop_gradient(mx.nd.array([1, 2])).asnumpy().tolist()
    [1.0, 2.0]
    """
    return data


@elementwise(name="_contrib_gradientmultiplier", rule=lambda g, data, out, *, scalar, is_int: scalar * g)
def gradientmultiplier(data, *, scalar: Scalar = 1.0, is_int: bool = True):
    """Copy of the data whose gradient is multiplied by `scalar` (a negative one reverses it).

    >>> mx.nd.contrib.gradientmultiplier(mx.nd.array([1, 2]), scalar=-0.5).asnumpy().tolist()
    [1.0, 2.0]
    """
    return data


@elementwise(name="_round_half_even")
def round_half_even(data):
    """Nearest integer; halves go to the even neighbour, as in NumPy and Python.

    >>> mx.nd._internal._round_half_even(mx.nd.array([-2.5, 0.5, 1.5])).asnumpy().tolist()
    [-2.0, 0.0, 2.0]
    """
    return F.where(F.abs(data - F.trunc(data)) == 0.5, 2 * F.round(data * 0.5), F.round(data))


@elementwise(name="_contrib_round_ste", aliases=("_sparse__contrib_round_ste",), rule=lambda g, data, out: g)
def round_ste(data):
    """Nearest integer (halves away from zero), with the gradient of the identity: a straight-through estimator.

    >>> mx.nd.contrib.round_ste(mx.nd.array([-2.5, 1.4])).asnumpy().tolist()
    [-3.0, 1.0]
    """
    return F.round(data)


@elementwise(name="_contrib_sign_ste", aliases=("_sparse__contrib_sign_ste",), rule=lambda g, data, out: g)
def sign_ste(data):
    """Sign, with the gradient of the identity: a straight-through estimator.

    >>> mx.nd.contrib.sign_ste(mx.nd.array([-2, 0, 3])).asnumpy().tolist()
    [-1.0, 0.0, 1.0]
    """
    return F.sign(data)


# ---- types -----------------------------------------------------------------------------------------------------------
# Conversions are not computed in place: the result's elements may have another size.
@elementwise(name="Cast", aliases=("_npi_cast", "_npx_cast", "cast"), out_dtype=lambda data, *, dtype: dtype)
def cast(data, *, dtype: DType):
    """Convert to another element type; conversion to integers truncates.

    The gradient is converted back to the type of the data.

    >>> mx.nd.cast(mx.nd.array([1.7, -1.7]), dtype='int32').asnumpy().tolist()
    [1, -1]
    """
    return data


@elementwise(name="_cast_like", out_dtype=lambda data, like: like)
def cast_like(data, like):
    """Convert `data` to the element type of `like`: the gradient of a conversion."""
    return data


#: The types that automatic mixed precision converts; it leaves others as they are.
_AMP_TYPES = (dtypes.FLOAT16, dtypes.BFLOAT16, dtypes.FLOAT32)


@elementwise(out_dtype=lambda data, *, dtype: dtype if data in _AMP_TYPES else data)
def amp_cast(data, *, dtype: DType):
    """Convert float16, bfloat16 and float32 data to another type; data of other types are copied.

    >>> mx.nd.amp_cast(mx.nd.array([1.5]), dtype='float16').dtype.__name__
    'float16'
    """
    return data


@cast.gradient
@amp_cast.gradient
@cast_like.gradient
def _(F, heads, inputs, outputs, **params):
    return [F._cast_like(heads[0], inputs[0])] + [None] * (len(inputs) - 1)


@kernel(num_args_param="num_outputs", stem="data_", num_outputs=lambda *, num_outputs, cast_narrow: num_outputs)
def amp_multicast(*data, num_outputs: int, cast_narrow: bool = False):
    """Convert float16, bfloat16 and float32 arrays to the widest type among them (the narrowest with `cast_narrow`).

    Arrays of other types are copied.  Shapes may differ.

    >>> a, b = mx.nd.ones((2,)), mx.nd.ones((3,), dtype='float16')
    >>> [x.dtype.__name__ for x in mx.nd.amp_multicast(a, b, num_outputs=2)]
    ['float32', 'float32']
    """


@amp_multicast.infer
def _(ins, outs, **params):
    joined = [
        infer.same_shape("amp_multicast", (f"arg{k}", f"output{k}"), [i, o])[0]
        for k, (i, o) in enumerate(zip(ins, outs, strict=True))
    ]
    return joined, list(joined)


@amp_multicast.infer_types
def _(ins, outs, *, num_outputs, cast_narrow):
    if dtypes.UNKNOWN in ins:  # any type may be meant
        return ins, outs
    floats = [t for t in ins if t in _AMP_TYPES]
    common = (min if cast_narrow else max)(floats, key=_AMP_TYPES.index, default=None)
    return ins, [common if t in _AMP_TYPES else t for t in ins]


@in_steps(amp_multicast)
def _(steps, inputs, outputs, **params):
    for source, target in zip(inputs, outputs, strict=True):
        steps.move(source, target)


@amp_multicast.gradient
def _(F, heads, inputs, outputs, **params):
    return [F._cast_like(head, data) for head, data in zip(heads, inputs, strict=True)]
