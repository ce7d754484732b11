"""Layers of int8 data with int32 results."""

from ..opdef import composite, infer, kernel
from ..support import dtypes
from ..support.errors import OpTypeError
from ._shared import Count, names_of, reviewed, zero_gradient
from .matrix import matrix_of, product
from .nn import layer_matrix, layer_shapes
from .quantize import CUT, INT32, ROUNDED, reach_of


# ---- the product -----------------------------------------------------------------------------------------------------
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


zero_gradient(integer_layer)


def _types(op, wanted, result):
    """Let inputs have one of the types that ``wanted(**params)`` lists for each; outputs have those of `result`."""

    @op.infer_types
    def _(ins, outs, **params):
        names, found = names_of(op, len(ins), params), []
        for name, given, allowed in zip(names, ins, wanted(**params), strict=False):
            if given != dtypes.UNKNOWN and given not in allowed:
                expected = " or ".join(dtypes.NAMES[t] for t in allowed)
                raise OpTypeError(f"operator {op.name}: {name} has dtype {dtypes.NAMES[given]}; expected {expected}")
            found.append(allowed[0] if given == dtypes.UNKNOWN and len(allowed) == 1 else given)
        return found, list(result)


_EIGHT, _FLOAT = (dtypes.INT8, dtypes.UINT8), (dtypes.FLOAT32,)
_types(integer_layer, lambda **params: (_EIGHT, _EIGHT), (dtypes.INT32,))


# ---- the layer -------------------------------------------------------------------------------------------------------
def _inputs(*, no_bias, **params):
    limits = [f"{which}_{of}" for of in ("data", "weight", "bias") for which in ("min", "max")]
    return ("data", "weight", *limits[:4]) if no_bias else ("data", "weight", "bias", *limits)


def _reach(F, low, high):
    return F.BlockGrad(reach_of(F, low, high))


@composite(
    name="_contrib_quantized_fully_connected",
    num_outputs=3,
    output_names=("output", "min_output", "max_output"),
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
    code, of_data = dtypes.code_of(data.dtype), _reach(F, min_data, max_data)
    of_weight = _reach(F, min_weight, max_weight)
    found = F._integer_layer(data, weight, num_hidden=num_hidden, flatten=flatten)
    if not no_bias:
        scale = (
            (ROUNDED[code] / of_data)
            * (ROUNDED[dtypes.INT8] / of_weight)
            * (_reach(F, min_bias, max_bias) / ROUNDED[dtypes.INT8])
        )
        levels = F.broadcast_mul(F.Cast(F.BlockGrad(bias), dtype="float32"), scale)
        found = F.broadcast_add(found, F.Cast(levels, dtype="int32"))  # cut, as MXNet does
    high = (of_data / CUT[code]) * (of_weight / CUT[dtypes.INT8]) * INT32
    return [found, F.negative(high), high]


@quantized_fully_connected.infer
def _(ins, outs, **params):
    name, n = "_contrib_quantized_fully_connected", 2 if params["no_bias"] else 3
    layer, output = layer_shapes(name, ins[:n], outs[:1], **params)
    names = [*_inputs(**params)[n:], "min_output", "max_output"]
    limits = [infer.same_shape(name, (of, "a limit"), [s, (1,)])[0] for of, s in zip(names, [*ins[n:], *outs[1:]], strict=True)]
    return [*layer, *limits[:-2]], [*output, *limits[-2:]]


_types(
    quantized_fully_connected,
    lambda *, no_bias, **params: (_EIGHT, *[(dtypes.INT8,)] * (1 if no_bias else 2), *[_FLOAT] * (4 if no_bias else 6)),
    (dtypes.INT32, dtypes.FLOAT32, dtypes.FLOAT32),
)
