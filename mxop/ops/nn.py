"""Neural network layers: activations, fully connected, softmax."""

from typing import Literal

from ..opdef import DType, F, composite, elementwise, infer, kernel
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError, UnknownShapeError
from ..support.shape_mode import numpy_shape
from ._shared import Count, equal_shapes, float_types, floats, reviewed, size_of, typed_by_first
from .matrix import matrix_of, product, product_gpu


# ---- activations ----------------------------------------------------------------------------------------------------
@elementwise(aliases=("_npx_activation",))
def Activation(data, *, act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"]):
    """Apply an activation function, element by element.

    Parameters
    ----------
    act_type : {'relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'}
        ``max(x, 0)``, ``1 / (1 + exp(-x))``, ``log(1 + exp(x))``, ``x / (1 + abs(x))`` or ``tanh(x)``.

    >>> mx.nd.Activation(mx.nd.array([-1, 2]), act_type='relu').asnumpy().tolist()
    [0.0, 2.0]
    """
    if act_type == "relu":
        return F.maximum(0, data)  # a tie goes to the constant: slope 0 at 0
    functions = {"sigmoid": F.sigmoid, "softrelu": F.softplus, "softsign": F.softsign, "tanh": F.tanh}
    return functions[act_type](data)


# The constants of SELU, 1.0507009873554804934 and its product with 1.6732632423543772848, as a float32 and the rest: their own
# rounding would be half of the error.  No rest is negative, so that infinity times both is infinity.
_SELU_ABOVE, _SELU_BELOW = (1.0507009029388428, 8.441663771998183e-08), (1.7580993175506592, 2.3296717680252718e-08)


@elementwise(name="_leaky")
def leaky(data, *, act_type: Literal["leaky", "elu", "selu", "gelu"], slope: float = 0.25):
    """Apply one of the functions of ``LeakyReLU`` that need no second input."""
    if act_type == "leaky":
        return F.where(data > 0, data, slope * data)
    # exp of a large number is infinite, and 0 (the slope of the other branch) times it NaN
    below = F.where(data > 0, 0, data)
    if act_type == "elu":
        return F.where(data > 0, data, slope * F.expm1(below))
    if act_type == "selu":
        rise = F.expm1(below)
        (a, more), (b, rest) = _SELU_ABOVE, _SELU_BELOW
        return F.where(data > 0, F.fma(a, data, more * data), F.fma(b, rise, rest * rise))
    return F.gelu(data)


@elementwise(name="_prelu", broadcast=True)
def prelu(data, gamma):
    """Evaluate ``data`` where it is positive and ``gamma * data`` elsewhere."""
    return F.where(data > 0, data, gamma * data)


@typed_by_first
@kernel(name="_along_channels")
def along_channels(gamma, data, *, axis: int | None = None):
    """Give a vector the rank of `data`, its elements along `axis`; without one, as ``prelu`` has it."""


@along_channels.view
def _(shape, strides, data, *, axis):
    if len(shape) == len(data):
        return shape, strides, 0
    if axis is not None:
        places = [int(axis) % len(data)] if len(shape) == 1 and data and data[axis] == shape[0] else None
    else:
        places = _of_slopes(shape, data)
    if places is None:
        raise OpValueError(
            f"operator LeakyReLU: gamma has shape {shape}, which does not fit "
            f"{'axes 0 and 1' if axis is None else f'axis {axis}'} of data of shape {data}"
        )
    given = dict(zip(places, zip(shape, strides, strict=True), strict=True))
    sizes, steps = zip(*(given.get(a, (1, 1)) for a in range(len(data))), strict=True)
    return sizes, steps, 0


def _of_slopes(shape, data):
    """Return the axis of `data` for each of ``gamma``: from the last on, the next of 1 and 0 that has its size."""
    left, places = [a for a in (0, 1) if a < len(data)], []
    for size in reversed(shape):
        while left and size not in (1, data[left[-1]]):
            left.pop()
        if not left:
            return None
        places.insert(0, left.pop())
    return places


@along_channels.gradient
def _(F, heads, inputs, outputs, **params):
    return [F.reshape_like(heads[0], inputs[0]), None]


@composite(
    aliases=("_npx_leaky_relu",),
    random=True,
    num_outputs=lambda *, act_type, **params: 1 + (act_type == "rrelu"),
    output_names=("output", "mask"),
    active_inputs=lambda *, act_type, **params: ("data", "gamma") if act_type == "prelu" else ("data",),
)
def LeakyReLU(F, data, gamma=None, *, act_type: Literal["elu", "gelu", "leaky", "prelu", "rrelu", "selu"] = "leaky",
              slope: float = 0.25, lower_bound: float = 0.125, upper_bound: float = 0.334, is_train):  # fmt: skip
    """Activation functions with a nonzero output for negative data.

    Parameters
    ----------
    gamma : NDArray or Symbol
        Only for ``prelu``: the learned slope, one number, one for each channel (axis 1; axis 0 of a vector), or a matrix with
        one for each sample and channel.
    act_type : str
        For negative ``x``: ``leaky`` gives ``slope * x``, ``elu`` ``slope * (exp(x) - 1)``, ``selu`` the
        self-normalizing ELU, ``prelu`` ``gamma * x``, ``rrelu`` a slope between the bounds times ``x``; ``gelu`` is ``x``
        times the normal distribution function, everywhere.
    lower_bound, upper_bound : float
        While training, the slope of ``rrelu`` is drawn between them for each element; otherwise it is their mean.

    Returns
    -------
    NDArray or Symbol
        The data; ``rrelu`` returns also the slopes that were drawn.

    >>> mx.nd.LeakyReLU(mx.nd.array([-2, 2]), slope=0.5).asnumpy().tolist()
    [-1.0, 2.0]
    """
    if act_type == "prelu":
        return F._prelu(data, F._along_channels(gamma, data))
    if act_type == "rrelu" and is_train:
        slopes = F.BlockGrad(F._random_uniform_like(data, low=lower_bound, high=upper_bound))
        return [F._prelu(data, slopes), slopes]
    if act_type == "rrelu":
        return [F._leaky(data, act_type="leaky", slope=(lower_bound + upper_bound) / 2), F.zeros_like(data)]
    return F._leaky(data, act_type=act_type, slope=slope)


@LeakyReLU.infer
def _(ins, outs, *, act_type, **params):
    data = infer.same_shape("LeakyReLU", ("data", "output", "mask")[: 1 + len(outs)], [ins[0], *outs])[0]
    ins = [data, *ins[1:]]
    if act_type == "prelu" and ins[1] is None and data is not None and len(data) > 1:
        ins[1] = (data[1],)
    return ins, [data] * len(outs)


# ---- the fully connected layer --------------------------------------------------------------------------------------
@float_types
@kernel(
    strided=True,
    adds=True,
    aliases=("_npx_fully_connected", "_sparse_FullyConnected"),
    active_inputs=lambda *, no_bias, **params: ("data", "weight") if no_bias else ("data", "weight", "bias"),
)
def FullyConnected(data, weight, bias, *, num_hidden: Count, no_bias: bool = False, flatten: bool = True):
    """Apply a linear layer, ``data @ weight.T + bias``.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, ...)``.
    weight : NDArray or Symbol
        ``(num_hidden, inputs)``.
    bias : NDArray or Symbol
        ``(num_hidden,)`` or ``(num_hidden, 1)``; not taken with `no_bias`.
    num_hidden : int
        Number of outputs.
    flatten : bool
        Merge all dimensions of the data but the first; otherwise the layer is applied to the last one.

    >>> x, w, b = mx.nd.array([[1, 2]]), mx.nd.array([[3, 4], [5, 6]]), mx.nd.array([1, 0])
    >>> mx.nd.FullyConnected(x, w, b, num_hidden=2).asnumpy().tolist()
    [[12.0, 17.0]]
    """


@FullyConnected.infer
def _(ins, outs, **params):
    return layer_shapes("FullyConnected", ins, outs, **params)


def layer_shapes(name, ins, outs, *, num_hidden, no_bias, flatten):
    """Complete the shapes of data, weight and bias of a linear layer, and of its result."""
    data, out = ins[0], outs[0]
    weight = infer.same_shape(name, ("weight", "expected by num_hidden"), [ins[1], (num_hidden, None)])[0]
    if data == ():
        raise OpValueError(f"operator {name}: data has no dimensions; expected at least one")
    if data is not None:
        rest = data[1:] if flatten else data[-1:]
        inputs = None if None in rest else size_of(rest)
        weight = infer.same_shape(name, ("weight", "expected by the data"), [weight, (num_hidden, inputs)])[0]
        if weight[1] is not None:  # one unknown size of the data follows
            if flatten and data[1:].count(None) == 1:
                known = size_of(d for d in data[1:] if d is not None)
                if known and weight[1] % known == 0:
                    data = (data[0], *(weight[1] // known if d is None else d for d in data[1:]))
            elif not flatten:
                data = (*data[:-1], weight[1])
        result = (data[0], num_hidden) if flatten else (*data[:-1], num_hidden)
        out = infer.same_shape(name, ("output", "expected by data and num_hidden"), [out, result])[0]
    elif out is not None and not flatten:
        data = (*out[:-1], weight[1])
    if data is not None and out is not None:
        data = (out[0], *data[1:]) if flatten else (*out[:-1], data[-1])
    done = [data, ins[1] if data is None and ins[1] is None else weight]  # MXNet: of unknown data, nothing is known
    if not no_bias:
        column = ins[2] is not None and len(ins[2]) == 2 and ins[2][1] in (1, None)
        wanted = (num_hidden, 1) if column else (num_hidden,)
        done += infer.same_shape(name, ("bias", "expected by num_hidden"), [ins[2], wanted])[:1]
    return done, [out]


def layer_matrix(data, flatten):
    """Return the shape of the data as a matrix."""
    rows = data[:1] if flatten else data[:-1]
    return size_of(rows), size_of(data[len(rows) :])


@FullyConnected.cpu(prepared=True)
def _(steps, inputs, outputs, *, num_hidden, no_bias, flatten):
    data, weight, *bias = inputs
    matrix = matrix_of(steps, data, layer_matrix(data.shape, flatten))
    bias = [b if b.ndim == 1 else reviewed(b, (num_hidden,)) for b in bias]
    product(steps, matrix, weight, reviewed(outputs[0], (matrix.shape[0], num_hidden)), False, True, 1.0, *bias)


@FullyConnected.gpu
def _(xp, inputs, outputs, *, num_hidden, no_bias, flatten):
    data, weight, *bias = inputs
    at_once = not bias or data.dtype.name != "bfloat16"  # rounded once, as on the CPU
    found = product_gpu(
        xp, data.reshape(layer_matrix(data.shape, flatten)), weight, False, True, outputs[0] if at_once else None
    )
    if bias:
        found += bias[0].reshape(-1)
    if not at_once:
        outputs[0][...] = found.reshape(outputs[0].shape)


@FullyConnected.gradient
def _(F, heads, inputs, outputs, *, num_hidden, no_bias, flatten):
    data, weight = inputs[:2]
    if flatten:
        g, matrix = heads[0], F.Flatten(data)
    else:  # all dimensions but the last in one
        g, matrix = (F.Reshape(a, shape=(-1, 0), reverse=True) for a in (heads[0], data))
    grads = [lambda: F.reshape_like(F.dot(g, weight), data), lambda: F.dot(g, matrix, transpose_a=True)]
    return grads if no_bias else [*grads, lambda: _bias_gradient(F, g, inputs[2])]


def _bias_gradient(F, g, bias):
    total = F.sum(g, axis=0)
    try:
        row = bias.ndim == 1
    except UnknownShapeError:  # of a symbol that is not bound
        row = False
    return total if row else F.reshape_like(total, bias)


# ---- softmax --------------------------------------------------------------------------------------------------------
def _softmax_inputs(*, use_length, **params):
    return ("data", "length") if use_length else ("data",)


def _softmax_rules(op):
    """Give `op` what is asked of shapes and types before anything is computed."""

    def without_axis(data, axis):
        at = infer.normal_axis(op.name, axis, len(data))
        return (*data[:at], *data[at + 1 :])

    @op.infer
    def _(ins, outs, *, axis, **params):
        data, out = infer.same_shape(op.name, ("data", "output"), [ins[0], outs[0]])
        length = ins[1:]
        if data is not None and infer.known(data):
            rows = without_axis(data, axis)
            if length and infer.known(length[0]) and length[0] != rows:
                raise OpValueError(
                    f"operator {op.name}: length has shape {infer.show(length[0])} but the data {infer.show(data)}; "
                    f"expected the data's shape without axis {axis}"
                )
            length = length and [rows]
        return [data, *length], [out]

    @op.infer_types
    def _(ins, outs, *, dtype, **params):
        result = infer.same_type(op.name, ("data", "output"), [ins[0], outs[0]]) if dtype is None else [ins[0], dtype]
        for t in result:
            floats(op, t)
        if len(ins) > 1 and ins[1] in dtypes.FLOATS:
            raise OpTypeError(f"operator {op.name}: length has dtype {dtypes.NAMES[ins[1]]}; expected an integer type")
        length = [dtypes.INT32 if t == dtypes.UNKNOWN and result[0] != t else t for t in ins[1:]]
        return [result[0], *length], result[1:]


def _normalized(F, data, length, axis, temperature, dtype, *, negate=False, logarithm=False):
    """Return the softmax of the data, or its logarithm: what the family has in common."""
    x = F.cast(data, dtype=dtype) if dtype == dtypes.FLOAT64 else data
    if dtype == dtypes.FLOAT32 or temperature is not None:
        x = F._widened(x)
    if negate:
        x = F.negative(x)
    if temperature is not None:
        x = F._div_scalar(x, scalar=temperature)
    inside = None
    if length is not None:
        inside = F.cast(_inside(F, data, length, axis), dtype=x.dtype)
        x = F._filled(x, inside, value=float("-inf"))
    y = F._log_softmaxed(x, axis=axis) if logarithm else F._softmaxed(x, axis=axis)
    if inside is not None:
        y = F._filled(y, inside, value=0.0)
    if dtype is None:
        return y if temperature is None else F._cast_like(y, data)
    return y if dtype == dtypes.FLOAT64 else F.cast(y, dtype=dtype)


def _below_highest(F, data, axis):
    return F.broadcast_sub(data, F.BlockGrad(F._highest(data, axis=axis, keepdims=True)))  # on which nothing depends


# Their gradients are told from their results: nothing else is kept.
@composite(name="_softmaxed")
def softmaxed(F, data, *, axis: int):
    """Softmax: exponentials along an axis, divided by their sum."""
    e = F.exp(_below_highest(F, data, axis))
    return F.broadcast_mul(e, F.reciprocal(F.sum(e, axis=axis, keepdims=True)))  # a division for each would take longer


@softmaxed.gradient
def _(F, heads, inputs, outputs, *, axis):
    g, y = heads[0], outputs[0]
    return [y * F.broadcast_sub(g, F.sum(g * y, axis=axis, keepdims=True))]


@composite(name="_log_softmaxed")
def log_softmaxed(F, data, *, axis: int):
    """The logarithm of what ``_softmaxed`` gives, without its loss of accuracy."""
    x = _below_highest(F, data, axis)
    return F.broadcast_sub(x, F.log(F.sum(F.exp(x), axis=axis, keepdims=True)))


@log_softmaxed.gradient
def _(F, heads, inputs, outputs, *, axis):
    g = heads[0]
    return [F.broadcast_sub(g, F.broadcast_mul(F.exp(outputs[0]), F.sum(g, axis=axis, keepdims=True)))]


def _inside(F, data, length, axis):
    """Return 1 for the elements of each row before its length, 0 for the others."""
    shape = data.shape
    at = axis % len(shape)
    row = F.slice(data, begin=(0,) * len(shape), end=tuple([n if i == at else 1 for i, n in enumerate(shape)]))
    place = F._contrib_arange_like(F.cast(row, dtype="int64"))  # on the data's device
    return F.broadcast_lesser(place, F.expand_dims(F.cast(length, dtype="int64"), axis=at))


@elementwise(name="_filled", broadcast=True)
def filled(data, inside, *, value: float):
    """Keep the data where `inside` is not 0; a value elsewhere."""
    return F.where(inside, data, value)


@composite(aliases=("_npx_softmax",), active_inputs=_softmax_inputs)
def softmax(F, data, length=None, *, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
            use_length: bool | None = False):  # fmt: skip
    """Softmax: exponentials along an axis, divided by their sum.

    Parameters
    ----------
    data : NDArray or Symbol
        Floating-point data.
    length : NDArray or Symbol
        Only with `use_length`: number of leading elements of each row that count, as integers, in the data's shape without
        `axis`.  The others give 0.
    temperature : float, optional
        Divides the data first.
    dtype : str or type, optional
        Element type of the result; the data's by default.  float16 is computed in float32.

    >>> mx.nd.softmax(mx.nd.array([[0, 0], [7, 7]])).asnumpy().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    return _normalized(F, data, length, axis, temperature, dtype)


@composite(active_inputs=_softmax_inputs, by_keyword=("length",))  # in MXNet it has no length: softmin(x, -1) gives the axis
def softmin(F, data, length=None, *, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
            use_length: bool | None = False):  # fmt: skip
    """Softmax of the negated data.  Parameters as for ``softmax``.

    >>> mx.nd.softmin(mx.nd.array([[0, 0], [7, 7]])).asnumpy().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    return _normalized(F, data, length, axis, temperature, dtype, negate=True)


@composite(aliases=("_npx_log_softmax",), active_inputs=_softmax_inputs, by_keyword=("length",))
def log_softmax(F, data, length=None, *, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
                use_length: bool | None = False):  # fmt: skip
    """Logarithm of ``softmax``, computed without cancellation.  Parameters as for ``softmax``.

    >>> mx.nd.log_softmax(mx.nd.array([[0, 0]])).asnumpy().round(4).tolist()
    [[-0.6930999755859375, -0.6930999755859375]]
    """
    return _normalized(F, data, length, axis, temperature, dtype, logarithm=True)


for _op in (softmaxed, log_softmaxed):
    equal_shapes(_op)
for _op in (softmax, softmin, log_softmax):
    _softmax_rules(_op)


@composite
def SoftmaxActivation(F, data, *, mode: Literal["channel", "instance"] = "instance"):
    """Softmax along the last axis, or along the channels (axis 1).  Use ``softmax`` in new code.

    >>> mx.nd.SoftmaxActivation(mx.nd.array([[0, 0]])).asnumpy().tolist()
    [[0.5, 0.5]]
    """
    return F.softmax(data, axis=1 if mode == "channel" else -1)


@composite
def softmax_cross_entropy(F, data, label):
    """Sum over rows of the cross entropy between ``softmax(data)`` and class labels.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, classes)``.
    label : NDArray or Symbol
        ``(batch,)``, class indices in the data's type; a row with an invalid label adds 0.

    >>> mx.nd.softmax_cross_entropy(mx.nd.array([[0, 0]]), mx.nd.array([1])).asnumpy().round(4).tolist()
    [0.6930999755859375]
    """
    classes = F._contrib_arange_like(data, axis=1)
    chosen = F.broadcast_equal(F.expand_dims(F.trunc(label), axis=1), classes)
    return F._mul_scalar(F.sum(F._keep_where(F.log_softmax(data), chosen)), scalar=-1.0)


@softmax_cross_entropy.infer
def _(ins, outs):
    data, label = ins
    if data is not None and len(data) != 2:
        raise OpValueError(f"operator softmax_cross_entropy: data has shape {infer.show(data)}; expected (batch, classes)")
    fitting = None if data is None else data[:1]
    label = infer.same_shape("softmax_cross_entropy", ("label", "expected by the data"), [label, fitting])[0]
    total = () if numpy_shape() else (1,)
    return [data, label], infer.same_shape("softmax_cross_entropy", ("output", "a sum"), [outs[0], total])[:1]


@elementwise(name="_keep_where")
def keep_where(data, condition):
    """Keep the data where the condition is not 0; 0 elsewhere."""
    return F.where(condition, data, 0)
