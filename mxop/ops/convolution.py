"""Convolution and its transpose: products of matrices with the windows of images.

Examples assume ``import mxop as mx``.  May import :mod:`mxop.opdef` only.
"""

from typing import Annotated, Literal

from ..errors import OpValueError
from ..opdef import Range, Shape, composite, infer
from ._shared import size_of
from .windows import before, channels_second, counts, float_types, frame, image, moved, spanned, transposed

Layout = Literal[None, "NCDHW", "NCHW", "NCW", "NDHWC", "NHWC"]
Tuning = Literal[None, "fastest", "limited_workspace", "off"]
Count = Annotated[int, Range(1)]


def _inputs(*, no_bias, **params):
    return ("data", "weight") if no_bias else ("data", "weight", "bias")


def _finished(F, out, bias, axes, kernel):
    """Add the bias to ``(batch, filters, ...)``, and give that the layout asked for."""
    if bias is not None:
        out = F.broadcast_add(out, F.Reshape(bias, shape=(1, -1) + (1,) * len(kernel)))
    return transposed(F, out, axes, back=True)


# ---- shapes ---------------------------------------------------------------------------------------------------------
def _both_ways(op, weight_of, channels_of, ahead, back):
    """Let shapes follow from each other in both directions.

    Parameters
    ----------
    weight_of : callable
        ``weight_of(channels, num_filter, num_group)``: the first two dimensions of the weight.
    channels_of : callable
        ``channels_of(weight, num_group)``: the channels of the data.
    ahead, back : callable
        ``ahead(op_name, sizes, at, **params)``: the sizes of the images that come out; ``back``: of those that come in.
    """

    @op.infer
    def _(ins, outs, *, kernel, stride, dilate, pad, num_filter, num_group, no_bias, layout, **params):
        at, axes = frame(op.name, kernel, stride, dilate, pad), channels_second(op.name, layout, kernel)

        def agreed(name, given, wanted):
            shown = [given, moved(wanted, axes, back=True)]
            names = (name, f"the {name} by data and parameters")
            return moved(infer.same_shape(op.name, names, shown)[0], axes)

        batch, channels, *sizes = moved(image(op.name, ins[0], at), axes) or (None,) * (len(kernel) + 2)
        for what, size in (("num_filter=", num_filter), ("the channels of the data, ", channels or 0)):
            if size % num_group:
                raise OpValueError(f"operator {op.name}: num_group={num_group} does not divide {what}{size}")
        weight = agreed("weight", ins[1], (*weight_of(channels, num_filter, num_group), *kernel))
        out = agreed("output", outs[0], (batch, num_filter, *ahead(op.name, sizes, at, **params)))
        found = back(op.name, out[2:], at, **params)
        sizes = [f if d is None else d for d, f in zip(sizes, found, strict=True)]
        data = (out[0], channels_of(weight, num_group), *sizes)
        done = [moved(s, axes, back=True) for s in (data, weight, out)]
        bias = [] if no_bias else infer.same_shape(op.name, ("bias", "num_filter"), [ins[2], (num_filter,)])[:1]
        return [*done[:2], *bias], done[2:]


# ---- convolution ----------------------------------------------------------------------------------------------------
@composite(aliases=("_npx_convolution",), active_inputs=_inputs)
def Convolution(
    F, data, weight, bias=None, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), num_filter: Count,
    num_group: Count = 1, workspace: int = 1024, no_bias: bool = False, cudnn_tune: Tuning = None, cudnn_off: bool = False,
    layout: Layout = None,
):  # fmt: skip
    """Convolve images with filters, in one to three dimensions.

    Each result is the product of a filter and a window of the image, summed over channels, plus the bias of the filter.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, ...)``, or as `layout` says.
    weight : NDArray or Symbol
        ``(num_filter, channels / num_group, *kernel)``; its channels lie where those of the data do.
    bias : NDArray or Symbol
        ``(num_filter,)``; not taken with `no_bias`.
    kernel : tuple of int
        Size of a window; one to three numbers, for as many dimensions of the data.
    stride : tuple of int, optional
        How far each window is from the next, 1 by default.
    dilate : tuple of int, optional
        How far the elements of a window are from each other, 1 by default.
    pad : tuple of int, optional
        Zeros on either side of the image, 0 by default.
    num_filter : int
        Channels of the result.
    num_group : int
        Groups, of equally many channels and filters each, that have nothing to do with each other.
    no_bias : bool
    layout : {'NCW', 'NCHW', 'NCDHW', 'NHWC', 'NDHWC'}, optional
        Order of the dimensions; channels are the second one by default.
    workspace, cudnn_tune, cudnn_off
        Taken for MXNet's sake.

    Returns
    -------
    NDArray or Symbol
        ``(batch, num_filter, ...)``, of sizes ``(size + 2 * pad - dilate * (kernel - 1) - 1) // stride + 1``.

    >>> x, w, b = mx.nd.array([[[1, 2, 4, 8]]]), mx.nd.array([[[1, -1]]]), mx.nd.array([10])
    >>> mx.nd.Convolution(x, w, b, kernel=(2,), num_filter=1).asnumpy().tolist()
    [[[9.0, 8.0, 6.0]]]
    """
    at, axes = frame("Convolution", kernel, stride, dilate, pad), channels_second("Convolution", layout, kernel)
    data, weight = transposed(F, data, axes), transposed(F, weight, axes)
    if at == frame("Convolution", (1,) * len(kernel)):  # windows of one element: the image itself
        columns = F.SwapAxis(data, dim1=0, dim2=1)
    else:
        columns = F.Reshape(F._windows(data, **at._asdict()), shape=(-3, -2))
    columns = F.Reshape(columns, shape=(-4, num_group, -1, -2))  # groups, elements of a window, batch, windows...
    rows = F.Reshape(weight, shape=(num_group, num_filter // num_group, -1))
    out = F.batch_dot(rows, F.Reshape(columns, shape=(0, 0, -1)))
    out = F.reshape_like(out, columns, lhs_begin=2, rhs_begin=2)
    out = F.SwapAxis(F.Reshape(out, shape=(-3, -2)), dim1=0, dim2=1)
    return _finished(F, out, bias, axes, kernel)


#: How the shapes of a convolution follow from each other.
_RULES = (
    lambda channels, filters, groups: (filters, None if channels is None else channels // groups),
    lambda weight, groups: None if weight[1] is None else weight[1] * groups,
    lambda name, sizes, at, **params: counts(name, sizes, at),
    lambda name, sizes, at, **params: before(sizes, at),
)
_both_ways(Convolution, *_RULES)


# ---- its transpose --------------------------------------------------------------------------------------------------
@composite(aliases=("_npx_deconvolution",), active_inputs=_inputs)
def Deconvolution(
    F, data, weight, bias=None, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), adj: Shape = (),
    target_shape: Shape = (), num_filter: Count, num_group: Count = 1, workspace: int = 512, no_bias: bool = True,
    cudnn_tune: Tuning = None, cudnn_off: bool = False, layout: Layout = None,
):  # fmt: skip
    """Transposed convolution: add up filters, each multiplied by an element of the data, one window an element.

    It is the gradient of ``Convolution`` with respect to its data, from the gradient of its result.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, ...)``, or as `layout` says.
    weight : NDArray or Symbol
        ``(channels, num_filter / num_group, *kernel)``.
    bias : NDArray or Symbol
        ``(num_filter,)``; only with ``no_bias=False``.
    kernel, stride, dilate, num_filter, num_group, layout
        As for ``Convolution``.
    pad : tuple of int, optional
        What is cut off on either side of the result.
    adj : tuple of int, optional
        What is added at the end of the result, less than the stride.
    target_shape : tuple of int, optional
        Sizes of the result, in the place of `pad` and `adj`: what is too much is cut off on both sides.
    no_bias : bool
    workspace, cudnn_tune, cudnn_off
        Taken for MXNet's sake.

    Returns
    -------
    NDArray or Symbol
        ``(batch, num_filter, ...)``, of sizes ``(size - 1) * stride + dilate * (kernel - 1) + 1 - 2 * pad + adj``.

    >>> x, w = mx.nd.array([[[1, 2]]]), mx.nd.array([[[1, 10, 100]]])
    >>> mx.nd.Deconvolution(x, w, kernel=(3,), stride=(2,), num_filter=1).asnumpy().tolist()
    [[[1.0, 10.0, 102.0, 20.0, 200.0]]]
    """
    target, name = any(target_shape), "Deconvolution"
    at, axes = frame(name, kernel, stride, dilate, () if target else pad), channels_second(name, layout, kernel)
    data, weight = transposed(F, data, axes), transposed(F, weight, axes)
    data = F.Reshape(F.SwapAxis(data, dim1=0, dim2=1), shape=(-4, num_group, -1, -2))  # groups, channels, batch, ...
    rows = F.Reshape(weight, shape=(num_group, -1, num_filter // num_group * size_of(kernel)))
    out = F.batch_dot(rows, F.Reshape(data, shape=(0, 0, -1)), transpose_a=True)
    out = F.Reshape(out, shape=(num_filter, size_of(kernel), -1))
    out = F.reshape_like(out, data, lhs_begin=2, rhs_begin=2)
    out = F._windows_sum(out, adj=() if target else adj, **at._asdict())
    if target:
        out = F._centre(out, size=target_shape)
    return _finished(F, out, bias, axes, kernel)


def _deconvolved(name, sizes, at, *, adj, target_shape, **params):
    """Return the sizes of the result."""
    n = len(sizes)
    for param, value in (("adj", adj), ("target_shape", target_shape)):
        if len(value) not in (0, n) or any(v is None or v < 0 for v in value):
            raise OpValueError(f"operator {name}: {param}={value}; expected {n} numbers of at least 0")
    if 0 in sizes:
        raise OpValueError(f"operator {name}: data of sizes {tuple(sizes)} have no elements")
    whole = spanned(sizes, at._replace(pad=(0,) * n))
    if any(target_shape):
        if any(t < 1 or (d is not None and d < t) for t, d in zip(target_shape, whole, strict=True)):
            raise OpValueError(f"operator {name}: target_shape={target_shape}; expected sizes from 1 to those of the whole "
                               f"result, {infer.show(whole)}")  # fmt: skip
        return target_shape
    if any(a >= s for a, s in zip(adj, at.stride, strict=False)):
        raise OpValueError(f"operator {name}: adj={adj}; expected less than stride={at.stride}")
    found = spanned(sizes, at, adj)
    if any(d is not None and d < 1 for d in found):
        raise OpValueError(f"operator {name}: of a result of sizes {infer.show(whole)}, pad={at.pad} leaves nothing")
    return found


def _deconvolved_from(name, sizes, at, *, adj, target_shape, **params):
    """Return the sizes of the data, where they follow."""
    if any(target_shape):
        return [None] * len(sizes)
    spare = [
        None if d is None else d + 2 * at.pad[i] - at.reach(i) - (adj[i] if adj else 0) for i, d in enumerate(sizes)
    ]
    return [None if d is None or d % s else d // s + 1 for d, s in zip(spare, at.stride, strict=True)]


_both_ways(
    Deconvolution,
    lambda channels, filters, groups: (channels, filters // groups),
    lambda weight, groups: weight[0],
    _deconvolved,
    _deconvolved_from,
)


# ---- MXNet's first version ------------------------------------------------------------------------------------------
@composite(active_inputs=_inputs)
def Convolution_v1(
    F, data, weight, bias=None, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), num_filter: Count,
    num_group: Count = 1, workspace: int = 1024, no_bias: bool = False, cudnn_tune: Tuning = None, cudnn_off: bool = False,
    layout: Literal[None, "NCDHW", "NCHW", "NDHWC", "NHWC"] = None,
):  # fmt: skip
    """``Convolution``, by another name that old files have; parameters as there.

    >>> x, w = mx.nd.ones((1, 1, 3, 3)), mx.nd.ones((1, 1, 2, 2))
    >>> mx.nd.Convolution_v1(x, w, kernel=(2, 2), num_filter=1, no_bias=True).shape
    (1, 1, 2, 2)
    """
    return Convolution.function(F, data, weight, bias, kernel=kernel, stride=stride, dilate=dilate, pad=pad,
                                num_filter=num_filter, num_group=num_group, no_bias=no_bias, layout=layout)  # fmt: skip


_both_ways(Convolution_v1, *_RULES)
for _op in (Convolution, Deconvolution, Convolution_v1):
    float_types(_op)
