"""Resizing of images."""

import math
from typing import Annotated, Literal

import numpy as np

from ..opdef import Range, composite, infer, kernel
from ..opdef.symbolic import computed
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError
from ._shared import along, both_ways, compiled, divided, float_types, times, typed_by_first


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
    """Upsample images, by repeating pixels or by a transposed convolution.

    Parameters
    ----------
    *data : NDArray or Symbol
        ``(batch, channels, height, width)``.  For ``nearest``, of sizes that divide `scale` times those of the first; for
        ``bilinear``, one, and the weight ``(channels, 1, k, k)`` with ``k = 2 * scale - scale % 2``.
    num_filter : int
        Channels of the data, for ``bilinear``.
    multi_input_mode : {'concat', 'sum'}
        Several images are concatenated along the channels, or added.

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
            raise OpTypeError(f"operator {op.name} takes 2 inputs (data, weight) with sample_type='bilinear', {n} given")

    op.input_names, op.check_arity = names, check


_with_weight(UpSampling)
float_types(UpSampling)


# ---- along one axis -------------------------------------------------------------------------------------------------
Mode = Literal["size", "like", "odd_scale", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"]
How = Literal["bins", "corners", "pixels"]


@kernel(
    name="_resized",
    active_inputs=lambda *, mode, **params: ("data", "like") if mode == "like" else ("data",),
    shape_only=slice(1, None),
)
def resized(data, like, *, axis: int, size: int = 1, scale: float | None = None, mode: Mode = "size", how: How):
    """Give an axis another size; each new element is a weighted mean of old ones, as `how` says.

    ``bins`` cover the axis, and may overlap by an element; ``corners`` and ``pixels`` mix the two nearest elements: the first
    and the last new one lie on the first and the last old one, or all are of one width.  A single one is the first.
    """


@kernel(name="_resized_grad", shape_only=(1,))
def resized_grad(head, like, *, axis: int, how: How):
    """Spread elements over those of which they are means, in zeros of the shape of `like`: the gradient of ``_resized``."""


def _resized_shape(data, like=None, *, axis, size, scale, mode, how):
    if data is None:
        return None
    n = data[axis]
    if n == 0:
        raise OpValueError(f"operator _resized: data of shape {infer.show(data)} have no elements along axis {axis}")
    if mode == "like":
        size = None if like is None else like[axis]
    elif mode != "size" or scale is not None:
        size = None if n is None else _size(n, mode, scale)
    return (*data[:axis], size, *data[axis + 1 :])


def _size(n, mode, scale):
    """Return the new size of an axis of `n` elements."""
    if mode == "size":
        return _times(n, scale)
    if mode == "odd_scale":
        return _times(n, scale) if n % 2 == 0 else _times(n - 1, scale) + 1
    wrong = n % 2 == (1 if "even" in mode else 0)
    return n + (1 if mode.endswith("up") else -1) * wrong


def _times(n, scale):
    """Return ``n * scale``, rounded as MXNet does, which has numbers of 32 bits."""
    return math.trunc(computed(_product, n, scale))


def _product(n, scale):
    return float(np.float32(n) * np.float32(scale))


def _means(n, size, how):
    """Return of which of `n` old elements each of `size` new ones is made: where its places begin, all places, and weights."""
    new = np.arange(size, dtype=np.intp)
    if how == "bins":
        first = new * n // size
        counts = -(-(new + 1) * n // size) - first
        starts = np.append(0, np.cumsum(counts))
        return starts, np.arange(starts[-1]) - np.repeat(starts[:-1] - first, counts), np.repeat(1 / counts, counts)
    step = (n - 1) / max(size - 1, 1) if how == "corners" else n / max(size, 1)
    at = new * step if how == "corners" or size == 1 else np.maximum((new + 0.5) * step - 0.5, 0)
    low = np.minimum(at.astype(np.intp), n - 1)
    rest = np.where(low < n - 1, at - low, 0)
    read = np.stack([np.ones(size, bool), rest != 0], axis=1)  # what has no weight is not read: it may be infinite
    places, weights = np.stack([low, low + 1], axis=1)[read], np.stack([1 - rest, rest], axis=1)[read]
    return np.append(0, np.cumsum(read.sum(axis=1))), places, weights


both_ways(resized, _resized_shape)
both_ways(resized_grad, lambda head, like, **params: like)
for _op in (resized, resized_grad):
    float_types(_op, like=None)


@resized_grad.shape
def _(head, like, *, axis, how):
    if (*head[:axis], *head[axis + 1 :]) != (*like[:axis], *like[axis + 1 :]) or 0 in (head[axis], like[axis]):
        raise OpValueError(f"operator _resized_grad: head has shape {head}, like {like}; only axis {axis} may differ, and has "
                           "elements")  # fmt: skip
    return like


def _mixes(op, table):
    """Give `op` the functions that mix elements of its first input along an axis, as ``table(old, new, how)`` says."""

    @op.cpu(prepared=True)
    def _(steps, inputs, outputs, *, axis, how, **params):
        data, out = inputs[0], outputs[0]
        code = dtypes.COMPUTED_AS.get(data.dtype_code, data.dtype_code)
        found = steps.room(out, code)
        starts, places, weights = table(data.shape[axis], out.shape[axis], how)
        even = not (weights[1:] != weights[:-1])[_inside(starts, len(places))].any()
        work = compiled("along").Mixture(along(data.shape, axis), code, starts, places, weights, even)
        steps.work(work, steps.converted(data, code), found)
        steps.move(found, out)

    @op.gpu
    def _(xp, inputs, outputs, *, axis, how, **params):
        from .._gpu.images import mix

        mix(inputs[0], outputs[0], axis, *table(inputs[0].shape[axis], outputs[0].shape[axis], how))


def _inside(starts, count):
    """Return which of all places but the first belong to the same element as the one before."""
    found = np.ones(max(count, 1), bool)
    found[starts[starts < count]] = False
    return found[1:]


def _spread(n, size, how):
    """Return which of `n` new elements are made of each of `size` old ones, and their weights, as :func:`_means` does."""
    starts, places, weights = _means(size, n, how)
    order = np.argsort(places, kind="stable")
    owners = np.repeat(np.arange(n, dtype=np.intp), np.diff(starts))
    return np.append(0, np.cumsum(np.bincount(places, minlength=size))), owners[order], weights[order]


_mixes(resized, _means)
_mixes(resized_grad, _spread)


@resized.gradient
def _(F, heads, inputs, outputs, *, axis, how, **params):
    return [F._resized_grad(heads[0], inputs[0], axis=axis, how=how)] + [None] * (len(inputs) - 1)


@resized_grad.gradient
def _(F, heads, inputs, outputs, *, axis, how):
    return [F._resized(heads[0], inputs[0], mode="like", axis=axis, how=how), None]


# ---- bilinear -------------------------------------------------------------------------------------------------------
@float_types
@composite(
    name="_contrib_BilinearResize2D",
    active_inputs=lambda *, mode, **params: ("data", "like") if mode == "like" else ("data",),
)
def BilinearResize2D(
    F, data, like=None, *, height: Annotated[int, Range(1)] = 1, width: Annotated[int, Range(1)] = 1,
    scale_height: float | None = None, scale_width: float | None = None, mode: Mode = "size", align_corners: bool = True,
):  # fmt: skip
    """Resize images, by interpolation between the nearest pixels.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, height, width)``.
    like : NDArray or Symbol
        Only with ``mode='like'``: images with the size of the result.
    height, width : int
        Of the result, for ``mode='size'`` without scales.
    scale_height, scale_width : float, optional
        Both or none: sizes of the result, divided by those of the data.
    mode : str
        ``size``; ``like``; ``odd_scale`` scales, and keeps odd sizes odd; ``to_even_down``, ``to_even_up``, ``to_odd_down``,
        ``to_odd_up`` change a size by one at most.
    align_corners : bool
        Whether corner pixels of the result are those of the data; otherwise pixels are areas of equal size.

    >>> mx.nd.contrib.BilinearResize2D(mx.nd.array([[[[1, 4]]]]), height=1, width=4).asnumpy().tolist()
    [[[[1.0, 2.0, 3.0, 4.0]]]]
    """
    others = (like,) if mode == "like" else ()
    params = {"mode": mode, "how": "corners" if align_corners else "pixels"}
    data = F._resized(data, *others, axis=2, size=height, scale=scale_height, **params)
    return F._resized(data, *others, axis=3, size=width, scale=scale_width, **params)


@BilinearResize2D.infer
def _(ins, outs, *, height, width, scale_height, scale_width, mode, align_corners):
    name = "_contrib_BilinearResize2D"
    scales = (scale_height, scale_width)
    if (mode == "odd_scale" and None in scales) or scales.count(None) == 1 or any(s is not None and s <= 0 for s in scales):
        raise OpValueError(f"operator {name}: scale_height={scale_height} and scale_width={scale_width} with mode={mode!r}; "
                           f"expected two numbers above 0{'' if mode == 'odd_scale' else ', or none'}")  # fmt: skip
    images = ("data", "batch, channels, height, width")
    found = [infer.same_shape(name, images, [s, (None,) * 4])[0] for s in ins]
    like, wanted = found[-1], [*found[0][:2]]
    if 0 in found[0][2:]:
        raise OpValueError(f"operator {name}: data of shape {infer.show(found[0])} have images without elements")
    for axis, size, scale in ((2, height, scale_height), (3, width, scale_width)):
        shape = _resized_shape(found[0], like, axis=axis, size=size, scale=scale, mode=mode, how="corners")
        wanted.append(shape[axis])
    if 0 in wanted[2:]:
        raise OpValueError(f"operator {name}: the result has sizes {tuple(wanted[2:])}; expected sizes above 0")
    out = infer.same_shape(name, ("output", "expected by data and parameters"), [outs[0], tuple(wanted)])[0]
    found[0] = (*out[:2], *found[0][2:])
    return found, [out]
