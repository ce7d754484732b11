"""Pooling: windows or bins of images, reduced to one element each."""

from functools import reduce
from typing import Literal

from ..opdef import F, Shape, composite, elementwise, infer, kernel
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import both_ways, compiled, device_of, float_types, on_both, size_of, typed_by_first, zero_gradient
from .windows import Frame, before, channels_second, counts, frame, image, moved, transposed

SMALL_WINDOW = 4  # along an axis: windows of 5x5 take 0.25 ms at once, 0.23 one axis after the other; of 7x7 0.31, 0.21
Layout = Literal[None, "NCDHW", "NCHW", "NCW", "NDHWC", "NHWC", "NWC"]


# ---- pooling --------------------------------------------------------------------------------------------------------
@composite(aliases=("_npx_pooling",))
def Pooling(
    F, data, *, kernel: Shape = (), pool_type: Literal["avg", "lp", "max", "sum"] = "max", global_pool: bool = False,
    cudnn_off: bool = False, pooling_convention: Literal["full", "same", "valid"] = "valid", stride: Shape = (),
    pad: Shape = (), p_value: int | None = None, count_include_pad: bool | None = None, layout: Layout = None,
):  # fmt: skip
    """Reduce each window of images to one element, in one to three dimensions.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, ...)``, or as `layout` says.
    kernel : tuple of int
        Size of the window; optional with `global_pool`.
    pool_type : {'max', 'avg', 'sum', 'lp'}
        ``max`` is NaN if the window holds one; of equal elements the first gets the gradient.
    global_pool : bool
        Whether the window is the whole image; `stride` and `pad` are then ignored.
    pooling_convention : {'valid', 'full', 'same'}
        Which windows there are: those inside the padded image; also a last one that reaches beyond it; one for each `stride`
        elements, from the first on, without padding.
    stride, pad : tuple of int, optional
        1 and 0 by default; numbers beyond those of `kernel` are ignored.  Padding never counts as the largest element; a
        window of padding only gives ``-inf``.
    p_value : {1, 2, 3}
        For ``lp``: the exponent; powers are of the values, not of their magnitudes.
    count_include_pad : bool, optional
        Whether ``avg`` divides by the number of elements with padding (the default) or without.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'}, optional
        Order of the dimensions; channels are the second one by default.

    >>> x = mx.nd.array([[[1, 2, 4, 8, 16]]])
    >>> mx.nd.Pooling(x, kernel=(2,), stride=(2,)).asnumpy().tolist()
    [[[2.0, 8.0]]]
    >>> mx.nd.Pooling(x, kernel=(2,), stride=(2,), pool_type='avg', pooling_convention='full').asnumpy().tolist()
    [[[1.5, 6.0, 16.0]]]
    """
    axes = _layout_axes(kernel, layout)
    data = transposed(F, data, axes)
    if global_pool:
        out = _reduced(F, F.Reshape(data, shape=(0, 0, -1)), pool_type, p_value)
        out = _one_each(F, out, data, len(kernel) or len(layout or "  ") - 2)
    else:
        at = frame("Pooling", kernel, *_of_kernel(kernel, stride, (), pad))
        places = {"count": pooling_convention, **at._asdict()}
        if pool_type == "max" and _all_meet_images(at, pooling_convention):
            out = _largest(F, data, at, pooling_convention)
        elif pool_type in ("avg", "sum") and pooling_convention == "valid" and data.shape[1]:
            out = _summed(F, data, at)
            out = out / size_of(kernel) if pool_type == "avg" else out
        else:
            fill = float("-inf") if pool_type == "max" else 0.0
            out = _reduced(F, F._windows(data, fill=fill, **places), pool_type, p_value)
        if pool_type == "avg" and (pooling_convention != "valid" or (count_include_pad is False and any(at.pad))):
            out = F.broadcast_mul(out, F._window_shares(data, padded=count_include_pad is not False, **places))
    return transposed(F, out, axes, back=True)


def _of_kernel(kernel, *params):
    """Return parameters without what they say of more dimensions than the kernel has, which MXNet ignores, too."""
    return [value[: len(kernel)] for value in params]


def _layout_axes(kernel, layout):
    """Return how to transpose the data; a global pooling may leave the kernel out."""
    return channels_second("Pooling", layout, kernel or (1,) * (len(layout or "  ") - 2))


def _reduced(F, windows, pool_type, p_value):
    """Reduce axis 2."""
    if pool_type == "max":  # the first of equal elements
        return F.pick(windows, F._largest_at(windows, axis=2), axis=2)
    if pool_type == "avg":
        return F.mean(windows, axis=2)
    if pool_type == "sum" or p_value == 1:
        return F.sum(windows, axis=2)
    if p_value == 2:
        return F.norm(windows, axis=2)
    if p_value == 3:
        return F._root3(F.sum(F._cube(windows), axis=2))
    raise OpValueError(f"operator Pooling: p_value={p_value}; expected 1, 2 or 3 for pool_type='lp'")


def _all_meet_images(at, count):
    """Return whether each window has an element of its image, whatever the image's size."""
    overhang = [step - 1 if count == "full" else 0 for step in at.stride]
    return all(p + more < k for p, more, k in zip(at.pad, overhang, at.kernel, strict=True))


def _largest(F, data, at, count):
    """Return the largest element of each window, of three dimensions those of its planes first; no windows are made."""
    if len(at.kernel) == 3:
        planes = _largest(F, F.Reshape(data, shape=(0, -3, 0, 0)), Frame(*[v[1:] for v in at]), count)
        columns = F.Reshape(planes, shape=(0, -4, -1, data.shape[2], -3))
        found = _largest(F, columns, Frame(*[v[:2] for v in at.along(0)]), count)
        return F.Reshape(found, shape=(0, 0, 0, -4, -1, planes.shape[3]))
    return F._largest_of_windows(data, kernel=at.kernel, stride=at.stride, pad=at.pad, count=count)


def _summed(F, data, at):
    """Return the sum of each window, by filters of ones; no windows are made.

    Large ones are summed up along one axis after the other, which is faster, and rounds less; but not one for a whole image.
    """
    at_once = max(at.kernel) <= SMALL_WINDOW or (not any(at.pad) and tuple(data.shape[2:]) == at.kernel)
    for part in [at] if at_once else [at.along(axis) for axis in range(len(at.kernel))]:
        ones = F.ones(shape=(data.shape[1], 1, *part.kernel), dtype=data.dtype, ctx=device_of(data))
        data = F._convolved(data, ones, num_group=data.shape[1], **part._asdict())
    return data


def _one_each(F, pooled, data, n):
    """Give ``(batch, channels)`` the dimensions of images of one element, of which there are `n`; 0: as many as the data's."""
    if n:
        return F.Reshape(pooled, shape=(0, 0) + (1,) * n)
    return F.reshape_like(pooled, F.sum(data, axis=(0, 1), exclude=True, keepdims=True))


@elementwise(name="_cube")
def cube(data):
    """Third power."""
    return data * data * data


@elementwise(name="_root3")
def root3(data):
    """Third root, whose derivatives at 0 are 0: an image may have a region of zeros."""
    return F.where(data == 0, 0, F.cbrt(F.where(data == 0, 1, data)))


@Pooling.infer
def _(ins, outs, *, kernel, global_pool, pooling_convention, stride, pad, layout, pool_type, p_value, **params):
    if pooling_convention == "same" and any(pad):
        raise OpValueError(f"operator Pooling: pad={pad}; pooling_convention='same' takes no padding")
    if pool_type == "lp" and p_value not in (1, 2, 3):
        raise OpValueError(f"operator Pooling: p_value={p_value}; expected 1, 2 or 3 for pool_type='lp'")
    stride, pad = _of_kernel(kernel, stride, pad)
    return _pooled_shapes("Pooling", ins, outs, kernel, stride, pad, pooling_convention, global_pool, layout)


def _pooled_shapes(op, ins, outs, kernel, stride, pad, count, global_pool, layout=None):
    """Return the shapes of data and output, completed from each other; batch and channels are the same."""
    if global_pool:
        kernel, stride, pad = kernel or (1,) * _rank(op, layout, *ins, *outs), (), ()
        if not kernel:
            return ins, outs
    at, axes = frame(op, kernel, stride, (), pad), channels_second(op, layout, kernel)
    n = len(kernel)
    data = moved(image(op, ins[0], at), axes) or (None,) * (n + 2)
    found = (1,) * n if global_pool else counts(op, data[2:], at, count)
    wanted = moved((*data[:2], *found), axes, back=True)
    out = infer.same_shape(op, ("output", "expected by data and parameters"), [outs[0], wanted])[0]
    pooled, sizes = moved(out, axes), data[2:]
    if not global_pool:
        sizes = [b if d is None else d for d, b in zip(sizes, before(pooled[2:], at, count), strict=True)]
    data = (*pooled[:2], *sizes)
    return [moved(data, axes, back=True)], [out]


def _rank(op, layout, *shapes):
    """Return the number of dimensions of an image where no kernel says it; 0: it is unknown."""
    known = next((s for s in shapes if s is not None), None)
    rank = len(layout or known or "  ")
    if known is not None and (rank not in (3, 4, 5) or len(known) != rank):
        raise OpValueError(f"operator {op}: data has shape {infer.show(known)}; expected batch, channels and one to three "
                           f"dimensions{f', as layout={layout!r} says' if layout else ''}")  # fmt: skip
    return rank - 2


# ---- the largest element of a window --------------------------------------------------------------------------------
@composite(name="_largest_of_windows", in_float32=False)
def largest_of_windows(
    F, data, *, kernel: Shape, stride: Shape = (), pad: Shape = (), count: Literal["full", "same", "valid"] = "valid"
):  # fmt: skip
    """The largest element of each window, or NaN; the first of equal ones gets the gradient.

    >>> mx.nd._internal._largest_of_windows(mx.nd.array([[[1, 3, 2]]]), kernel=(2,), pad=(1,)).asnumpy().tolist()
    [[[1.0, 3.0, 3.0, 2.0]]]
    """
    at = frame("_largest_of_windows", kernel, stride, (), pad)
    found = _places_shape(data.shape, kernel=kernel, stride=stride, pad=pad, count=count)[2:]
    for axis in reversed(range(len(kernel))):
        data = _largest_along(F, data, axis, found[axis], at, count)
    return data


def _largest_along(F, data, axis, n, at, count):
    """Return the largest of the elements that windows have along an axis of images."""
    size, step, before = at.kernel[axis], at.stride[axis], at.pad[axis]
    after = before + {"valid": 0, "full": step - 1, "same": size - 1}[count]
    if before or after:  # by the nearest element, which each window has that reaches beyond it
        margins = (0, 0) * (axis + 2) + (before, after) + (0, 0) * (len(at.kernel) - axis - 1)
        data = F._pad_border(data, mode="edge", pad_width=margins)

    def part(x, first, n, step=1):
        none = (None,) * (axis + 2)
        return F.slice(x, begin=(*none, first), end=(*none, first + (n - 1) * step + 1), step=(*none, step))

    reach, long = 1, (n - 1) * step + 1  # elements of which each is the largest of; windows at all places
    while size > max(2 * reach, SMALL_WINDOW):
        width = long + size - 2 * reach
        data = F._maximum(part(data, 0, width), part(data, reach, width))
        reach *= 2
    places = [*range(0, size - reach, reach), size - reach]
    return reduce(F._maximum, [part(data, k, n, step) for k in places])


@largest_of_windows.gradient
def _(F, heads, inputs, outputs, **params):
    at = F._largest_in_windows(inputs[0], **params)
    flat = [F.Reshape(x, shape=(0, 0, -1)) for x in (heads[0], at, inputs[0])]
    return [F.reshape_like(F._take_lanes_grad(*flat, axis=2), inputs[0])]


@kernel(name="_largest_in_windows")
def largest_in_windows(
    data, *, kernel: Shape, stride: Shape = (), pad: Shape = (), count: Literal["full", "same", "valid"] = "valid"
):  # fmt: skip
    """Where the largest element of each window is in its image, the first of equal ones or of NaN, as int64.

    >>> mx.nd._internal._largest_in_windows(mx.nd.array([[[1, 3, 2]]]), kernel=(2,), pad=(1,)).asnumpy().tolist()
    [[[0, 1, 1, 2]]]
    """


def _places_shape(data, *, kernel, stride, pad, count):
    if data is None:
        return None
    at = frame("_largest_in_windows", kernel, stride, (), pad)
    found = counts("_largest_in_windows", data[2:], at, count)
    if 0 in data[2:] and 0 not in (*data[:2], *found):
        raise OpValueError(
            f"operator Pooling: data has shape {infer.show(data)}; windows of padding only have no largest element"
        )
    return (*data[:2], *found)


for _op in (largest_in_windows, largest_of_windows):
    both_ways(_op, _places_shape)
largest_in_windows.infer_types(lambda ins, outs, **params: (ins, [dtypes.INT64]))
zero_gradient(largest_in_windows)


def _inside(xp, size, found, window, step, pad):
    """Return the index along an axis of each place of each window, ``(places, windows)``; that next to it for padding.

    So windows have no other elements than before, and the first of equal ones stays the first.
    """
    return xp.clip(xp.arange(window)[:, None] + xp.arange(found) * step - pad, 0, size - 1)


def _axes_of_windows(xp, op, data, found, kernel, stride, pad):
    """Return the size of each axis of images, and what :func:`_inside` says of it."""
    at = frame(op, kernel, stride, (), pad)
    return [(n, _inside(xp, n, *each)) for n, *each in zip(data.shape[2:], found, at.kernel, at.stride, at.pad, strict=True)]


@largest_in_windows.cpu(prepared=True)
def _(steps, inputs, outputs, *, count, **params):
    import numpy as np

    (data,), (out,) = inputs, outputs
    if size_of(out.shape):
        axes = _axes_of_windows(np, "_largest_in_windows", data, out.shape[2:], **params)
        (height, rows), (width, columns) = [(1, np.zeros((1, 1), np.int64)), *axes][-2:]
        code = dtypes.COMPUTED_AS.get(data.dtype_code, data.dtype_code)
        search = compiled("along").FindInWindows(size_of(data.shape[:2]), height, width, rows, columns, code)
        steps.work(search, steps.converted(data, code), out)


@largest_in_windows.gpu
def _(xp, inputs, outputs, *, count, **params):
    (data,), (out,) = inputs, outputs
    if out.size:
        place = xp.zeros((1, 1), xp.int64)
        for size, inside in _axes_of_windows(xp, "_largest_in_windows", data, out.shape[2:], **params):
            place = (place[:, None, :, None] * size + inside[None, :, None]).reshape(len(place) * len(inside), -1)
        windows = data.reshape(*data.shape[:2], -1)[:, :, place]
        first = windows.argmax(2)
        out[...] = xp.take_along_axis(place, first.reshape(-1, place.shape[1]), 0).reshape(out.shape)


# ---- what part of a window counts -----------------------------------------------------------------------------------
@kernel(name="_window_shares", shape_only=(0,))
def window_shares(
    data, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (),
    count: Literal["full", "same", "valid"] = "valid", padded: bool = True,
):  # fmt: skip
    """Size of a window divided by the number of its elements in the image, padded or not; along a dimension with none, 1.

    >>> mx.nd._internal._window_shares(mx.nd.zeros((1, 1, 3)), kernel=(2,), stride=(2,), count='full').asnumpy().tolist()
    [1.0, 2.0]
    """


def _shares_shape(data, *, kernel, stride, dilate, pad, count, padded):
    return None if data is None else counts("_window_shares", data[2:], frame("_window_shares", kernel, stride, (), pad), count)


both_ways(window_shares, _shares_shape)
typed_by_first(window_shares)
window_shares.gradient(lambda F, heads, inputs, outputs, **params: [None])


@on_both(window_shares)
def _(xp, inputs, outputs, *, kernel, stride, dilate, pad, count, padded):
    at = frame("_window_shares", kernel, stride, (), pad)
    total = xp.ones(outputs[0].shape, xp.float64)
    for axis, (size, n) in enumerate(zip(inputs[0].shape[2:], outputs[0].shape, strict=True)):
        first, last = (0, size + 2 * at.pad[axis]) if padded else (at.pad[axis], at.pad[axis] + size)
        start = xp.arange(n) * at.stride[axis]
        inside = xp.clip(start + at.kernel[axis], first, last) - xp.clip(start, first, last)
        share = xp.where(inside == 0, 1, at.kernel[axis] / xp.maximum(inside, 1))
        total = total * share.reshape([-1 if i == axis else 1 for i in range(total.ndim)])
    outputs[0][...] = total


# ---- MXNet's first version ------------------------------------------------------------------------------------------
@composite
def Pooling_v1(
    F, data, *, kernel: Shape = (), pool_type: Literal["avg", "max", "sum"] = "max", global_pool: bool = False,
    pooling_convention: Literal["full", "valid"] = "valid", stride: Shape = (), pad: Shape = (),
):  # fmt: skip
    """Pooling of MXNet before 1.0, for old files.

    Unlike ``Pooling``, ``max`` counts padding as zeros and gives the gradient to all equal elements, and ``avg`` always divides
    by the size of the kernel.

    >>> x = mx.nd.array([[[[-1, -2], [-3, -4]]]])
    >>> mx.nd.Pooling_v1(x, kernel=(1, 2), stride=(1, 2), pad=(0, 1)).asnumpy().tolist()
    [[[[0.0, 0.0], [0.0, 0.0]]]]
    """
    if global_pool:
        out = _reduced_v1(F, F.Reshape(data, shape=(0, 0, -1)), pool_type)
        return _one_each(F, out, data, len(kernel))
    at, fill = frame("Pooling_v1", kernel, stride, (), pad), 0.0
    if pool_type == "max":
        if any(at.pad):
            ones = (1,) * len(kernel)
            data = F.squeeze(F._windows(data, kernel=ones, pad=pad), axis=2)
        at, fill = at._replace(pad=(0,) * len(kernel)), float("-inf")
    return _reduced_v1(F, F._windows(data, count=pooling_convention, fill=fill, **at._asdict()), pool_type)


def _reduced_v1(F, windows, pool_type):
    return {"max": F.max, "avg": F.mean, "sum": F.sum}[pool_type](windows, axis=2)


@Pooling_v1.infer
def _(ins, outs, *, kernel, global_pool, pooling_convention, stride, pad, **params):
    return _pooled_shapes("Pooling_v1", ins, outs, kernel, stride, pad, pooling_convention, global_pool)


# ---- bins -----------------------------------------------------------------------------------------------------------
@composite(name="_contrib_AdaptiveAvgPooling2D")
def AdaptiveAvgPooling2D(F, data, *, output_size: Shape = ()):
    """Average images over a grid of bins that cover them; neighbouring bins may overlap by one element.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, height, width)``.
    output_size : tuple of int, optional
        Height and width of the result, or one number for both; 1 by default.

    >>> x = mx.nd.array([[[[1, 2, 3], [5, 6, 7]]]])
    >>> mx.nd.contrib.AdaptiveAvgPooling2D(x, output_size=(1, 2)).asnumpy().tolist()
    [[[[3.5, 4.5]]]]
    """
    height, width = _grid(output_size)
    data = F._resized(data, axis=2, size=height, how="bins")
    return F._resized(data, axis=3, size=width, how="bins")


def _grid(output_size):
    found = (output_size or (1,)) * (1 if len(output_size) == 2 else 2)
    if len(found) != 2 or not all(d and d > 0 for d in found):
        raise OpValueError(f"operator _contrib_AdaptiveAvgPooling2D: output_size={output_size}; expected one or two sizes "
                           "above 0")  # fmt: skip
    return found


@AdaptiveAvgPooling2D.infer
def _(ins, outs, *, output_size):
    name, grid, names = "_contrib_AdaptiveAvgPooling2D", _grid(output_size), ("data", "the output")
    ins = infer.same_shape(name, ("data", "batch, channels, height, width"), [ins[0], (None,) * 4])[:1]
    if 0 in ins[0][2:]:
        raise OpValueError(f"operator {name}: data of shape {infer.show(ins[0])} have images without elements")
    out = infer.same_shape(name, ("output", "expected by data and output_size"), [outs[0], (*ins[0][:2], *grid)])[0]
    return [infer.same_shape(name, names, [ins[0], (*out[:2], None, None)])[0]], [out]


for _op in (Pooling, Pooling_v1, AdaptiveAvgPooling2D):
    float_types(_op)
