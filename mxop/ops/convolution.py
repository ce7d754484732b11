"""Convolution and transposed convolution, in every layout, with a bias."""

from typing import Literal

from ..opdef import Of, Shape, composite
from ..support.errors import OpValueError
from ._shared import Count, divided, float_types
from .windows import channels_second, fitting, frame, moved, spanned, transposed

Layout = Literal[None, "NCDHW", "NCHW", "NCW", "NDHWC", "NHWC"]
Tuning = Literal[None, "fastest", "limited_workspace", "off"]


def _inputs(*, no_bias, **params):
    return ("data", "weight") if no_bias else ("data", "weight", "bias")


def _finished(F, out, bias, axes, kernel):
    """Add the bias to ``(batch, filters, ...)``, and give that the layout asked for."""
    if bias is not None:
        out = F.broadcast_add(out, F.Reshape(bias, shape=(1, -1) + (1,) * len(kernel)))
    return transposed(F, out, axes, back=True)


def _shares(op, num_group, n, what="the channels of the data, "):
    """Return how many of them each group has."""
    if n % num_group:
        raise OpValueError(f"operator {op}: num_group={num_group} does not divide {what}{n}")
    return n // num_group


def _dims(op, weight, size):
    """Let shapes follow from each other; ``size0``... are the sizes of the images that come in.

    Parameters
    ----------
    weight : callable
        ``weight(op_name, num_filter, num_group)``: the first two dimensions of the weight.
    size : callable
        ``size(op_name, at, axis, **params)``: a size of the images that come out.
    """

    @op.dims
    def _(*, kernel, stride, dilate, pad, num_filter, num_group, no_bias, layout, **params):
        at, axes = frame(op.name, kernel, stride, dilate, pad), channels_second(op.name, layout, kernel)
        _shares(op.name, num_group, num_filter, "num_filter=")
        table = {
            "data": ("batch", "channels", *(f"size{k}" for k in range(len(kernel)))),
            "weight": (*weight(op.name, num_filter, num_group), *kernel),
            "output": ("batch", num_filter, *(size(op.name, at, k, **params) for k in range(len(kernel)))),
        }
        return {"bias": (num_filter,)} | {name: moved(dims, axes, back=True) for name, dims in table.items()}


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
        ``(num_filter, channels / num_group, *kernel)``; its channel axis is where the data has it.
    bias : NDArray or Symbol
        ``(num_filter,)``; not taken with `no_bias`.
    kernel : tuple of int
        Size of the window: one number for each spatial dimension, one to three.
    stride : tuple of int, optional
        Distance between neighbouring windows, 1 by default.
    dilate : tuple of int, optional
        Distance between the elements of a window, 1 by default.
    pad : tuple of int, optional
        Zero padding on both sides of the image, 0 by default.
    num_filter : int
        Channels of the result.
    num_group : int
        Number of groups of channels and filters; each group of filters sees its own channels only.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NHWC', 'NDHWC'}, optional
        Order of the dimensions; channels are the second one by default.

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
    long = [i for i, k in enumerate(kernel) if data.shape[i + 2] == k and not at.pad[i]][: len(kernel) - 1]
    for i in reversed(long):  # one result: as windows, the gradient of the data would mostly multiply zeros beside it
        data, weight = _places_as_channels(F, data, i + 2), _places_as_channels(F, weight, i + 2)
    at = {name: tuple([v for i, v in enumerate(values) if i not in long]) for name, values in at._asdict().items()}
    out = F._convolved(data, weight, num_group=num_group, **at)
    for i in long:
        out = F.expand_dims(out, axis=i + 2)
    return _finished(F, out, bias, axes, kernel)


def _places_as_channels(F, x, axis):
    """Return images or filters whose places along an axis are channels."""
    order = [0, 1, axis, *(k for k in range(2, x.ndim) if k != axis)]
    return F.Reshape(x if axis == 2 else F.transpose(x, axes=order), shape=(0, -3, -2))


@composite(active_inputs=_inputs)
def Convolution_v1(
    F, data, weight, bias=None, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), num_filter: Count,
    num_group: Count = 1, workspace: int = 1024, no_bias: bool = False, cudnn_tune: Tuning = None, cudnn_off: bool = False,
    layout: Literal[None, "NCDHW", "NCHW", "NDHWC", "NHWC"] = None,
):  # fmt: skip
    """The name of ``Convolution`` in old files.

    >>> x, w = mx.nd.ones((1, 1, 3, 3)), mx.nd.ones((1, 1, 2, 2))
    >>> mx.nd.Convolution_v1(x, w, kernel=(2, 2), num_filter=1, no_bias=True).shape
    (1, 1, 2, 2)
    """
    return Convolution.function(F, data, weight, bias, kernel=kernel, stride=stride, dilate=dilate, pad=pad,
                                num_filter=num_filter, num_group=num_group, no_bias=no_bias, layout=layout)  # fmt: skip


def _filters(name, num_filter, num_group):
    return num_filter, Of("channels", lambda n: _shares(name, num_group, n), lambda n: n * num_group)


for _op in (Convolution, Convolution_v1):
    _dims(_op, _filters, lambda name, at, axis, **params: fitting(name, at, axis))


# ---- its transpose --------------------------------------------------------------------------------------------------
@composite(aliases=("_npx_deconvolution",), active_inputs=_inputs)
def Deconvolution(
    F, data, weight, bias=None, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), adj: Shape = (),
    target_shape: Shape = (), num_filter: Count, num_group: Count = 1, workspace: int = 512, no_bias: bool = True,
    cudnn_tune: Tuning = None, cudnn_off: bool = False, layout: Layout = None,
):  # fmt: skip
    """Transposed convolution: for each element of the data, add the filter times the element to a window of the result.

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
        Elements cropped on both sides of the result.
    adj : tuple of int, optional
        Elements added at the end of the result; less than the stride.
    target_shape : tuple of int, optional
        Sizes of the result, instead of `pad` and `adj`; the result is cropped on both sides.

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
    size = spanned(data.shape[2:], at, () if target else adj)
    long = [i for i, k in enumerate(kernel) if size[i] == k and not at.pad[i]][: len(kernel) - 1]
    for i in reversed(long):  # as above: the data have one element there
        data, weight = F.squeeze(data, axis=i + 2), _places_as_channels(F, weight, i + 2)
    at = {name: tuple([v for i, v in enumerate(values) if i not in long]) for name, values in at._asdict().items()}
    out = F._convolved_data(data, weight, num_group=num_group, size=[n for i, n in enumerate(size) if i not in long], **at)
    for i in long:
        out = F.Reshape(out, shape=(0, -4, -1, kernel[i], -2))
        out = F.transpose(out, axes=[0, 1, *range(3, i + 3), 2, *range(i + 3, out.ndim)])
    if target:
        out = F._centre(out, size=target_shape)
    return _finished(F, out, bias, axes, kernel)


def _filters_of_channels(name, num_filter, num_group):
    return Of("channels", lambda n: _shares(name, num_group, n) * num_group, lambda n: n), num_filter // num_group


def _deconvolved(name, at, axis, *, adj, target_shape, **params):
    n = len(at.kernel)
    for param, value in (("adj", adj), ("target_shape", target_shape)):
        if len(value) not in (0, n) or any(v is None or v < 0 for v in value):
            raise OpValueError(f"operator {name}: {param}={value}; expected {n} numbers of at least 0")
    if any(target_shape):
        return _cut_to(name, at, axis, target_shape)
    more = adj[axis] if adj else 0
    if more >= at.stride[axis]:
        raise OpValueError(f"operator {name}: adj={adj}; expected less than stride={at.stride}")

    def there(size):
        found = at.span(axis, size) + more
        if size == 0 or found < 1:
            raise OpValueError(f"operator {name}: of {size} windows along dimension {axis}, pad={at.pad} leaves nothing")
        return found

    def back(size):
        before = divided(size - more - at.span(axis, 1), at.stride[axis])
        return None if before is None else before + 1

    return Of(f"size{axis}", there, back)


def _cut_to(name, at, axis, target):
    """Return a dimension that is given, and the result large enough for it."""
    if 0 in target:
        raise OpValueError(f"operator {name}: target_shape={target}; expected sizes from 1 on")

    def there(size):
        whole = at.span(axis, size) + 2 * at.pad[axis] if size else 0
        if target[axis] > whole:
            raise OpValueError(f"operator {name}: target_shape={target}; expected sizes from 1 to those of the whole result, "
                               f"which has {whole} along dimension {axis}")  # fmt: skip
        return target[axis]

    return Of(f"size{axis}", there, lambda size: None, otherwise=target[axis])


_dims(Deconvolution, _filters_of_channels, _deconvolved)
for _op in (Convolution, Deconvolution, Convolution_v1):
    float_types(_op)
