"""Layers of int8 data with int32 results: fully connected, convolution; and the lookup of int8 rows."""

from ..opdef import composite, infer, kernel
from ..support import dtypes
from ..support.errors import OpTypeError
from ._shared import Count, names_of, reviewed, size_of, zero_gradient
from .convolution import Convolution
from .gather import Embedding
from .matrix import matrix_of, product
from .nn import layer_matrix, layer_shapes
from .quantize import CUT, INT32, ROUNDED, reach_of
from .windows import channels_second


# ---- the product -----------------------------------------------------------------------------------------------------
@zero_gradient
@kernel(name="_integer_layer", strided=True)
def integer_layer(data, weight, *, num_hidden: Count, flatten: bool = True):
    """``data @ weight.T`` of int8 or uint8, in int32."""


@integer_layer.infer
def _(ins, outs, *, num_hidden, flatten):
    return layer_shapes("_integer_layer", ins, outs, num_hidden=num_hidden, no_bias=True, flatten=flatten)


@integer_layer.cpu(prepared=True)
def _(steps, inputs, outputs, *, num_hidden, flatten):
    """In float64, which holds sums of 2**37 products; what int32 does not hold wraps around."""
    data, weight = (steps.converted(x, dtypes.FLOAT64) for x in inputs)
    rows, inner = layer_matrix(data.shape, flatten)
    exact = steps.temporary((rows, num_hidden), dtypes.FLOAT64)
    product(steps, matrix_of(steps, data, (rows, inner)), matrix_of(steps, weight, (num_hidden, inner)), exact, False, True)
    steps.move(reviewed(steps.converted(exact, dtypes.INT64), outputs[0].shape), outputs[0])


@integer_layer.gpu
def _(xp, inputs, outputs, *, num_hidden, flatten):
    data, weight = (x.astype(xp.int32) for x in inputs)
    outputs[0][...] = xp.matmul(data.reshape(layer_matrix(data.shape, flatten)), weight.T).reshape(outputs[0].shape)


def types(op, wanted, result):
    """Let inputs have one of the types that ``wanted(**params)`` lists for each, None: any.

    Outputs have those of `result`, or of ``result(types_of_the_inputs, **params)``.
    """

    @op.infer_types
    def _(ins, outs, **params):
        names, found = names_of(op, len(ins), params), []
        for name, given, allowed in zip(names, ins, wanted(**params), strict=False):
            if allowed is not None and given != dtypes.UNKNOWN and given not in allowed:
                expected = " or ".join(dtypes.NAMES[t] for t in allowed)
                raise OpTypeError(f"operator {op.name}: {name} has dtype {dtypes.NAMES[given]}; expected {expected}")
            found.append(allowed[0] if allowed and given == dtypes.UNKNOWN and len(allowed) == 1 else given)
        return found, list(result(found, **params) if callable(result) else result)


def shapes_of(op, layer, n):
    """Let data and the first output have the shapes that another operator gives them, and limits one element each.

    ``n(**params)`` of the inputs are those of `layer`, the first ones.
    """

    @op.infer
    def _(ins, outs, **params):
        given = n(**params)
        done, output = layer.infer_shape(layer.spec.filled(params), list(ins[:given]), list(outs[:1]))
        names = names_of(op, len(ins), params)
        limits = [*ins[given:], *outs[1:]]
        names = [*names[given : len(ins)], *names[len(ins) + 1 :]]
        limits = [infer.same_shape(op.name, (of, "a limit"), [s, (1,)])[0] for of, s in zip(names, limits, strict=True)]
        return [*done, *limits[: len(ins) - given]], [*output, *limits[len(ins) - given :]]


EIGHT, FLOAT = (dtypes.INT8, dtypes.UINT8), (dtypes.FLOAT32,)
OUTPUTS = ("output", "min_output", "max_output")
types(integer_layer, lambda **params: (EIGHT, EIGHT), (dtypes.INT32,))


# ---- the layer -------------------------------------------------------------------------------------------------------
def _inputs(*, no_bias, **params):
    limits = [f"{which}_{of}" for of in ("data", "weight", "bias") for which in ("min", "max")]
    return ("data", "weight", *limits[:4]) if no_bias else ("data", "weight", "bias", *limits)


def _n_arrays(*, no_bias, **params):
    return 2 if no_bias else 3


def _types_of_layer(op):
    types(
        op,
        lambda *, no_bias, **params: (EIGHT, *[(dtypes.INT8,)] * (1 if no_bias else 2), *[FLOAT] * (4 if no_bias else 6)),
        (dtypes.INT32, dtypes.FLOAT32, dtypes.FLOAT32),
    )


def reach(F, low, high):
    return F.BlockGrad(reach_of(F, low, high))


def _bias_levels(F, code, of_data, of_weight, bias, of_bias):
    """Return a bias in the levels of a product, cut to whole ones as MXNet does."""
    scale = (ROUNDED[code] / of_data) * (ROUNDED[dtypes.INT8] / of_weight) * (of_bias / ROUNDED[dtypes.INT8])
    return F.Cast(F.broadcast_mul(F.Cast(F.BlockGrad(bias), dtype="float32"), scale), dtype="int32")


def of_products(F, code, of_data, of_weight):
    """Return what the smallest and the largest int32 stand for, where levels are products of others."""
    high = (of_data / CUT[code]) * (of_weight / CUT[dtypes.INT8]) * INT32
    return F.negative(high), high


@composite(
    name="_contrib_quantized_fully_connected",
    num_outputs=3,
    output_names=OUTPUTS,
    active_inputs=_inputs,
)
def quantized_fully_connected(
    F, data, weight, bias, min_data, max_data, min_weight, max_weight, min_bias, max_bias,
    *, num_hidden: Count, no_bias: bool = False, flatten: bool = True,
):  # fmt: skip
    """Apply a linear layer to int8 levels, ``data @ weight.T + bias``; the result has int32 levels.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, ...)``, of int8 or uint8.
    weight : NDArray or Symbol
        ``(num_hidden, inputs)``, of int8.
    bias : NDArray or Symbol
        ``(num_hidden,)``, of int8; not taken with `no_bias`.
    min_data, max_data, min_weight, max_weight, min_bias, max_bias : NDArray or Symbol
        The limits of the levels, one float32 number each.
    num_hidden : int
        Number of outputs.
    flatten : bool
        Merge all dimensions of the data but the first; otherwise the layer is applied to the last one.

    Returns
    -------
    output, min_output, max_output : tuple of NDArray or Symbol
        int32 levels, and the values of the smallest and the largest int32.  Sums beyond these wrap around.

    >>> one = mx.nd.array([1])
    >>> x, w = mx.nd.array([[100, -20]], dtype="int8"), mx.nd.array([[3, 4], [5, 6]], dtype="int8")
    >>> out, low, high = mx.nd.contrib.quantized_fully_connected(x, w, -one, one, -one, one, num_hidden=2, no_bias=True)
    >>> out.asnumpy().tolist()
    [[220, 380]]
    >>> mx.nd.contrib.requantize(out, low, high)[0].asnumpy().tolist()
    [[74, 127]]
    """
    code, of_data, of_weight = dtypes.code_of(data.dtype), reach(F, min_data, max_data), reach(F, min_weight, max_weight)
    found = F._integer_layer(data, weight, num_hidden=num_hidden, flatten=flatten)
    if not no_bias:
        levels = _bias_levels(F, code, of_data, of_weight, bias, reach(F, min_bias, max_bias))
        found = F.broadcast_add(found, levels)
    return [found, *of_products(F, code, of_data, of_weight)]


@quantized_fully_connected.infer
def _(ins, outs, **params):
    name, n = "_contrib_quantized_fully_connected", _n_arrays(**params)
    layer, output = layer_shapes(name, ins[:n], outs[:1], **params)
    names = [*_inputs(**params)[n:], "min_output", "max_output"]
    limits = [infer.same_shape(name, (of, "a limit"), [s, (1,)])[0] for of, s in zip(names, [*ins[n:], *outs[1:]], strict=True)]
    return [*layer, *limits[:-2]], [*output, *limits[-2:]]


_types_of_layer(quantized_fully_connected)


# ---- convolution -----------------------------------------------------------------------------------------------------
def _exact_in(terms, code):
    """Return the type that holds sums of so many products of levels and weights: float32 does up to 2**24."""
    return "float32" if terms * 128 * (255 if code == dtypes.UINT8 else 128) <= 1 << 24 else "float64"


@composite(
    name="_contrib_quantized_conv", num_outputs=3, output_names=OUTPUTS, active_inputs=_inputs,
    extra_params=Convolution.spec.params,
)  # fmt: skip
def quantized_conv(F, data, weight, bias, min_data, max_data, min_weight, max_weight, min_bias, max_bias, **params):
    """Apply ``Convolution`` to int8 levels; the result has int32 levels.

    Parameters
    ----------
    data : NDArray or Symbol
        Images as ``Convolution`` takes them, of int8 or uint8.
    weight, bias : NDArray or Symbol
        Of int8; no bias is taken with `no_bias`.
    min_data, max_data, min_weight, max_weight, min_bias, max_bias : NDArray or Symbol
        The limits of the levels, one float32 number each.

    Returns
    -------
    output, min_output, max_output : tuple of NDArray or Symbol
        int32 levels, and the values of the smallest and the largest int32.  Sums beyond these wrap around.

    >>> one = mx.nd.array([1])
    >>> x, w = mx.nd.array([[[100, -20, 7]]], dtype="int8"), mx.nd.array([[[3, 4]]], dtype="int8")
    >>> out, low, high = mx.nd.contrib.quantized_conv(x, w, -one, one, -one, one, kernel=(2,), num_filter=1, no_bias=True)
    >>> out.asnumpy().tolist()
    [[[220, -32]]]
    """
    code, of_data, of_weight = dtypes.code_of(data.dtype), reach(F, min_data, max_data), reach(F, min_weight, max_weight)
    exact = _exact_in(size_of(weight.shape[1:]), code)
    arrays = [F.Cast(a, dtype=exact) for a in (data, weight)]
    found = F.Convolution(*arrays, **params | {"no_bias": True})
    found = F.Cast(found if exact == "float32" else F.Cast(found, dtype="int64"), dtype="int32")
    if not params["no_bias"]:
        levels = _bias_levels(F, code, of_data, of_weight, bias, reach(F, min_bias, max_bias))
        places = (1,) * len(params["kernel"])
        last = channels_second("_contrib_quantized_conv", params["layout"], params["kernel"]) is not None
        found = F.broadcast_add(found, F.Reshape(levels, shape=(1, *places, -1) if last else (1, -1, *places)))
    return [found, *of_products(F, code, of_data, of_weight)]


shapes_of(quantized_conv, Convolution, _n_arrays)
_types_of_layer(quantized_conv)
zero_gradient(quantized_conv)


# ---- lookup ----------------------------------------------------------------------------------------------------------
@composite(
    name="_contrib_quantized_embedding", num_outputs=3, output_names=OUTPUTS, extra_params=[
        p for p in Embedding.spec.params if p.name != "deterministic"],
)  # fmt: skip
def quantized_embedding(F, data, weight, min_weight, max_weight, **params):
    """Look up rows of a table of int8 levels, as ``Embedding`` does.

    Parameters
    ----------
    data : NDArray or Symbol
        Numbers of rows, of any shape and type.
    weight : NDArray or Symbol
        ``(input_dim, output_dim)``, of int8.
    min_weight, max_weight : NDArray or Symbol
        The limits of the levels, one float32 number each, which are returned.
    dtype, sparse_grad
        Have no effect.

    >>> table, one = mx.nd.array([[1, 2], [3, 4], [5, 6]], dtype="int8"), mx.nd.array([1])
    >>> rows, low, high = mx.nd.contrib.quantized_embedding(mx.nd.array([2, 0]), table, -one, one, input_dim=3, output_dim=2)
    >>> rows.asnumpy().tolist()
    [[5, 6], [1, 2]]
    """
    return [F.take(weight, data), F.identity(min_weight), F.identity(max_weight)]


shapes_of(quantized_embedding, Embedding, lambda **params: 2)
types(quantized_embedding, lambda **params: (None, (dtypes.INT8,), FLOAT, FLOAT), (dtypes.INT8, *FLOAT, *FLOAT))
zero_gradient(quantized_embedding)
