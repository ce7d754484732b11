"""Images made larger.

Examples assume ``import mxop as mx``.  May import :mod:`mxop.opdef` only.
"""

from typing import Annotated, Literal

from ..errors import OpTypeError, OpValueError
from ..opdef import Range, composite, infer, kernel
from ._shared import both_ways, divided, times, typed_by_first
from .windows import float_types


# ---- nearest --------------------------------------------------------------------------------------------------------
@kernel(name="_repeated_to")
def repeated_to(data, like, *, scale: int):
    """Repeat the pixels of images until they are `scale` times as large as those of `like`.

    The result is ``(batch, channels, height, times, width, times)``.
    """


def _repeated_shape(data, like, *, scale):
    if data is None or like is None:
        return None
    if len(data) != 4 or len(like) != 4:
        raise OpValueError(f"operator UpSampling: data have shapes {infer.show(like)} and {infer.show(data)}; expected four "
                           "dimensions: batch, channels, height, width")  # fmt: skip
    found = []
    for axis in (2, 3):
        wanted, size = times(like[axis], scale), data[axis]
        if None not in (wanted, size) and (not size or wanted % size):
            raise OpValueError(f"operator UpSampling: axis {axis} of data of shape {infer.show(data)} does not divide "
                               f"{wanted}, the size for scale={scale} and the first data, {infer.show(like)}")  # fmt: skip
        found += [size, divided(wanted, size)]
    return (*data[:2], *found)


@repeated_to.view
def _(shape, strides, like, *, scale):
    found = _repeated_shape(shape, like, scale=scale)
    batch, channels, down, right = strides
    return found, (batch, channels, down, 0, right, 0), 0


both_ways(repeated_to, _repeated_shape, lambda out, data, like, *, scale: (*out[:3], out[4]) if len(out) == 6 else None)
typed_by_first(repeated_to)


@repeated_to.gradient
def _(F, heads, inputs, outputs, *, scale):
    return [F.sum(heads[0], axis=(3, 5)), None]


@composite(num_args_param="num_args")
def UpSampling(
    F, *data, scale: Annotated[int, Range(1)], num_filter: int = 0, sample_type: Literal["bilinear", "nearest"],
    multi_input_mode: Literal["concat", "sum"] = "concat", num_args: int = 1, workspace: int = 512,
):  # fmt: skip
    """Make images larger, by repeating pixels or by a transposed convolution.

    Parameters
    ----------
    *data : NDArray or Symbol
        ``(batch, channels, height, width)``.  For ``nearest``, of sizes that divide `scale` times those of the first; for
        ``bilinear``, one, and the weight ``(channels, 1, k, k)`` with ``k = 2 * scale - scale % 2``.
    scale : int
    num_filter : int
        Channels of the data, for ``bilinear``.
    sample_type : {'nearest', 'bilinear'}
    multi_input_mode : {'concat', 'sum'}
        What becomes of several images: they are joined along the channels, or added.
    num_args : int
        Number of inputs; a call need not give it.
    workspace
        Taken for MXNet's sake.

    >>> mx.nd.UpSampling(mx.nd.array([[[[1, 2]]]]), scale=2, sample_type='nearest').asnumpy().tolist()
    [[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]]]
    """
    if sample_type == "bilinear":
        size = (2 * scale - scale % 2,) * 2
        return F.Deconvolution(*data, kernel=size, stride=(scale, scale), pad=(scale // 2, scale // 2), num_filter=num_filter,
                               num_group=num_filter, no_bias=True)  # fmt: skip
    large = [F.Reshape(F._repeated_to(x, data[0], scale=scale), shape=(0, 0, -3, -3)) for x in data]
    if len(large) == 1:
        return large[0]
    return F.Concat(*large, dim=1) if multi_input_mode == "concat" else F.add_n(*large)


@UpSampling.infer
def _(ins, outs, *, scale, sample_type, num_filter, multi_input_mode, **params):
    def agreed(name, *shapes):
        return infer.same_shape("UpSampling", (name, f"the {name} by the other shapes"), shapes)[0]

    batch, channels, height, width = agreed("data", ins[0], (None,) * 4)
    if sample_type == "bilinear":
        channels = num_filter
        ins[1] = agreed("weight", ins[1], (num_filter, 1) + (2 * scale - scale % 2,) * 2)
    elif len(ins) > 1 and multi_input_mode == "concat":
        counts = [agreed("data", s, (None,) * 4)[1] for s in ins]
        channels = None if None in counts else sum(counts)
    out = agreed("output", outs[0], (batch, channels, times(height, scale), times(width, scale)))
    alone = len(ins) == 1 or sample_type == "bilinear"
    ins[0] = agreed("data", ins[0], (out[0], out[1] if alone else None, *(divided(d, scale) for d in out[2:])))
    return ins, [out]


def _with_weight(op):
    """Let the bilinear form have two inputs of its own, whatever `num_args` says."""
    input_names, check_arity = op.input_names, op.check_arity

    def names(attrs, n=None):
        return ("data", "weight") if attrs["sample_type"] == "bilinear" else input_names(attrs, n)

    def check(attrs, n):
        if attrs["sample_type"] == "nearest":
            check_arity(attrs, n)
        elif n != 2:
            raise OpTypeError(
                f"operator {op.name} takes 2 inputs (data, weight) with sample_type='bilinear', {n} given"
            )

    op.input_names, op.check_arity = names, check


_with_weight(UpSampling)
float_types(UpSampling)
