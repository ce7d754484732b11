"""Sliding windows over images, and sums of windows: two linear operators, each the gradient of the other.

What convolutions and pooling are made of; ``im2col`` and ``col2im`` are this pair in MXNet's layout.
"""

from itertools import product
from typing import Literal, NamedTuple

from ..opdef import Of, Shape, composite, infer, kernel
from ..opdef.parts import Part
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import both_ways, divided, float_types, in_steps, product_of, size_of, times, typed_by_first
from .shape import inverse
from .slicing import _slice_operator


# ---- where windows lie ----------------------------------------------------------------------------------------------
class Frame(NamedTuple):
    """How windows lie, one number for each dimension of an image; the fields are parameters of the operators below."""

    kernel: tuple
    stride: tuple
    dilate: tuple
    pad: tuple

    def reach(self, axis):
        """Return how many elements a window spans; its places may go backwards."""
        return abs(self.dilate[axis]) * (self.kernel[axis] - 1) + 1

    def span(self, axis, n):
        """Return how many elements `n` windows span, without padding."""
        return (n - 1) * self.stride[axis] + self.reach(axis) - 2 * self.pad[axis]

    def along(self, axis):
        """Return the same along one axis, with windows of one element along the others."""
        none = zip(self, (1, 1, 1, 0), strict=True)
        return Frame(*[(*(one,) * axis, v[axis], *(one,) * (len(v) - axis - 1)) for v, one in none])


def frame(op, kernel, stride=(), dilate=(), pad=()):
    """Return the frame that an operator's parameters describe; each may be left empty, all but the kernel."""
    n = len(kernel)
    if not 1 <= n <= 3 or not all(k and k > 0 for k in kernel):
        raise OpValueError(f"operator {op}: kernel={kernel}; expected one to three sizes above 0")
    found = [kernel]
    for name, value, default, least in (("stride", stride, 1, 1), ("dilate", dilate, 1, 1), ("pad", pad, 0, 0)):
        value = value or (default,) * n
        if len(value) != n or not all(v is not None and v >= least for v in value):
            raise OpValueError(f"operator {op}: {name}={value}; expected {n} numbers of at least {least}, as "
                               f"kernel={kernel} has {n} dimensions")  # fmt: skip
        found.append(value)
    return Frame(*found)


Count = Literal["valid", "full", "same"]


def counts(op, sizes, at, count="valid"):
    """Return how many windows fit along each dimension of an image; None where its size is not known.

    ``valid`` windows lie inside the padded image, ``full`` ones go on until it is covered, ``same`` ones start at all
    multiples of the stride.
    """
    return tuple(_count(op, size, at, axis, count) for axis, size in enumerate(sizes))


def _count(op, size, at, axis, count):
    if size is None:
        return None
    stride, padded = at.stride[axis], size + 2 * at.pad[axis]
    if count == "same":
        return -(-size // stride)
    spare = padded - at.reach(axis)
    if spare < 0:
        raise OpValueError(f"operator {op}: a window spans {at.reach(axis)} elements (kernel={at.kernel}, dilate={at.dilate}) "
                           f"of dimension {axis} of the image, which has {size}, and {padded} with padding")  # fmt: skip
    return (spare // stride if count == "valid" else -(-spare // stride)) + 1


def spanned(sizes, at, adj=None):
    """Return the sizes of images of which just so many windows fit, without padding; `adj` elements are added."""
    return tuple(None if n is None else at.span(i, n) + (adj[i] if adj else 0) for i, n in enumerate(sizes))


def before(sizes, at, count="valid"):
    """Return the sizes of images in which there are so many windows, where one size alone fits."""
    fits = sizes if count == "same" else spanned(sizes, at)
    return [n if s == 1 else None for n, s in zip(fits, at.stride, strict=True)]


def fitting(op, at, axis):
    """Return the dimension that counts windows along an axis of images whose sizes are called ``size0``..."""
    back = at.span if at.stride[axis] == 1 else lambda axis, n: None
    return Of(f"size{axis}", lambda n: _count(op, n, at, axis, "valid"), lambda n: back(axis, n))


def image(op, shape, at, name="data"):
    """Refuse a shape that is no batch of images of channels, of the kernel's dimensions."""
    if shape is not None and len(shape) != len(at.kernel) + 2:
        raise OpValueError(f"operator {op}: {name} has shape {infer.show(shape)}; expected {len(at.kernel) + 2} dimensions, "
                           f"batch, channels and {len(at.kernel)} for kernel={at.kernel}")  # fmt: skip
    return shape


# ---- layouts --------------------------------------------------------------------------------------------------------
def channels_second(op, layout, kernel):
    """Return the axes that bring a layout such as ``NHWC`` to ``NCHW``; None: they are so already."""
    n = len(kernel)
    if layout is None or (layout[1] == "C" and len(layout) == n + 2):
        return None
    if len(layout) != n + 2:
        raise OpValueError(f"operator {op}: layout={layout!r} does not fit kernel={kernel}, which has {n} dimensions")
    return (0, n + 1, *range(1, n + 1))


def moved(shape, axes, back=False):
    """Return a shape whose dimensions were exchanged as ``transpose`` does with `axes`, or were not yet."""
    if axes is None or shape is None or len(shape) != len(axes):
        return shape
    return tuple(shape[i] for i in (inverse(axes) if back else axes))


def transposed(F, data, axes, back=False):
    """Return data in another layout."""
    return data if axes is None else F.transpose(data, axes=inverse(axes) if back else axes)


# ---- the pair -------------------------------------------------------------------------------------------------------
@kernel(name="_windows", made_again=True)  # a window for each element: as many times larger as the kernel has elements
def windows(
    data, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), count: Count = "valid",
    fill: float = 0.0,
):  # fmt: skip
    """Take windows of images ``(batch, channels, ...)``, which are surrounded by `fill`.

    The result is ``(batch, channels, places in a window, windows...)``.

    >>> mx.nd._internal._windows(mx.nd.array([[[1, 2, 3]]]), kernel=(2,)).asnumpy()[0, 0].tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """


@kernel(name="_windows_sum")
def windows_sum(
    data, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), count: Count = "valid", size: Shape = ()
):
    """Add windows up in images of a given size, or of that which they span: the gradient of ``_windows``.

    >>> x = mx.nd.array([[1, 2], [3, 4]]).reshape((1, 1, 2, 2))
    >>> mx.nd._internal._windows_sum(x, kernel=(2,)).asnumpy().tolist()
    [[[1.0, 5.0, 4.0]]]
    """


def _windows_shape(data, *, kernel, stride, dilate, pad, count, fill=0.0):
    if data is None:
        return None
    at = frame("_windows", kernel, stride, dilate, pad)
    batch, channels, *sizes = image("_windows", data, at)
    found, places = counts("_windows", sizes, at, count), size_of(kernel)
    return (batch, channels, places, *found)


both_ways(windows, _windows_shape)


def _sum_shape(data, *, kernel, stride, dilate, pad, count, size):
    if data is None:
        return None
    at = frame("_windows_sum", kernel, stride, dilate, pad)
    places = data[2] if len(data) == len(kernel) + 3 else -1
    if places not in (None, size_of(kernel)):
        raise OpValueError(f"operator _windows_sum: data has shape {infer.show(data)}; expected {len(kernel) + 3} dimensions, "
                           f"one of them of size {size_of(kernel)} for kernel={kernel}")  # fmt: skip
    if size and not infer.compatible(counts("_windows_sum", size, at, count), data[3:]):
        raise OpValueError(f"operator _windows_sum: data has shape {infer.show(data)}; "
                           f"{counts('_windows_sum', size, at, count)} windows fit into images of size={size}")  # fmt: skip
    found = size or spanned(data[3:], at)
    if not size and (0 in data[3:] or any(d is not None and d < 1 for d in found)):
        raise OpValueError(f"operator _windows_sum: {data[3:]} windows within pad={pad} are images of sizes {found}")
    return (*data[:2], *found)


both_ways(windows_sum, _sum_shape)
for _op in (windows, windows_sum):
    typed_by_first(_op)


@windows.gradient
def _(F, heads, inputs, outputs, *, fill, **params):
    return [F._windows_sum(heads[0], size=inputs[0].shape[2:], **params)]


@windows_sum.gradient
def _(F, heads, inputs, outputs, *, size, **params):
    return [F._windows(heads[0], **params)]


# ---- both devices ---------------------------------------------------------------------------------------------------
def _meetings(sizes, found, at):
    """Yield each place in a window, where images have an element there: slices of images, and of windows."""
    for place in product(*map(range, at.kernel)):
        images, inside = [], []
        for p, size, n, (_, step, dilate, pad) in zip(place, sizes, found, zip(*at, strict=True), strict=True):
            start = p * dilate - pad  # of the first window
            first = max(0, -(start // step))
            stop = max(first, min(n, (size - 1 - start) // step + 1))
            inside.append(slice(first, stop))
            images.append(slice(first * step + start, (stop - 1) * step + start + 1, step) if stop > first else slice(0, 0))
        yield tuple(images), tuple(inside)


def put_windows(data, out, at, fill):
    """Put the windows of images into ``(batch, channels, places in a window, ...)``, and what lies beside unless it is None."""
    everything, found = slice(None), out.shape[3:]
    for k, (images, inside) in enumerate(_meetings(data.shape[2:], found, at)):
        there = (everything, everything, k)
        for axis, (part, n) in enumerate(zip(inside, found, strict=True)):
            for edge in (slice(0, part.start), slice(part.stop, n)):
                if fill is not None and edge.start < edge.stop:
                    out[(*there, *inside[:axis], edge)] = fill
        out[(*there, *inside)] = data[(everything, everything, *images)]


def add_windows(data, total, at):
    """Set images to what their windows, as above, add up to."""
    total[...] = 0
    for k, (images, inside) in enumerate(_meetings(total.shape[2:], data.shape[3:], at)):
        total[(slice(None), slice(None), *images)] += data[(slice(None), slice(None), k, *inside)]


@windows.rearrange
def _(xp, inputs, outputs, *, kernel, stride, dilate, pad, count, fill):
    put_windows(inputs[0], outputs[0], frame("_windows", kernel, stride, dilate, pad), fill)


@in_steps(windows_sum)
def _(steps, inputs, outputs, *, kernel, stride, dilate, pad, **params):
    total = steps.room(outputs[0], dtypes.summed_in(outputs[0].dtype_code))
    add_windows(Part(steps, inputs[0]), Part(steps, total), frame("_windows_sum", kernel, stride, dilate, pad))
    steps.move(total, outputs[0])


# ---- the middle of an image -----------------------------------------------------------------------------------------
@kernel(name="_centre")
def centre(data, *, size: Shape):
    """Cut images ``(batch, channels, ...)`` down to a size, as much from either side, an odd element from the front."""


@kernel(name="_centre_grad", shape_only=(1,))
def centre_grad(head, like, *, size: Shape):
    """Put the middle of images back into zeros of the shape of `like`: the gradient of ``_centre``."""


def _middle(op, shape, size):
    result = [(0, 1, d) for d in shape[:2]]
    for d, n in zip(shape[2:], size, strict=True):
        if d is not None and not 0 < n <= d:
            raise OpValueError(f"operator {op}: size={size} is larger than {infer.show(shape[2:])}, what there is")
        result.append((0 if d is None else (d - n + 1) // 2, 1, n))
    return result


_slice_operator(centre, centre_grad, _middle, False)


# ---- MXNet's layout -------------------------------------------------------------------------------------------------
@float_types
@composite
def im2col(F, data, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = ()):
    """Arrange the windows of images as columns.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, ...)``, of one to three dimensions.
    kernel, stride, dilate, pad : tuple of int
        As for ``Convolution``.

    Returns
    -------
    NDArray or Symbol
        ``(batch, channels * elements of a window, windows)``.

    >>> mx.nd.im2col(mx.nd.array([[[1, 2, 3]]]), kernel=(2,)).asnumpy().tolist()
    [[[1.0, 2.0], [2.0, 3.0]]]
    """
    at = frame("im2col", kernel, stride, dilate, pad)
    columns = F._windows(data, **at._asdict())
    return F.Reshape(F.Reshape(columns, shape=(0, -3, -2)), shape=(0, 0, -1))


@im2col.infer
def _(ins, outs, **where):
    at, places = frame("im2col", **where), size_of(where["kernel"])
    batch, channels, *sizes = image("im2col", ins[0], at) or (None,) * (len(at.kernel) + 2)
    wanted = (batch, times(channels, places), product_of(counts("im2col", sizes, at)))
    out = infer.same_shape("im2col", ("output", "expected by the data"), [outs[0], wanted])[0]
    return [(out[0], divided(out[1], places) if channels is None else channels, *sizes)], [out]


@float_types
@composite
def col2im(F, data, *, output_size: Shape, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = ()):
    """Sum columns into images, at the positions from which ``im2col`` takes them.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels * elements of a window, windows)``.
    output_size : tuple of int
        Of the images.
    kernel, stride, dilate, pad : tuple of int
        As for ``Convolution``.

    >>> mx.nd.col2im(mx.nd.array([[[1, 2], [2, 3]]]), output_size=(3,), kernel=(2,)).asnumpy().tolist()
    [[[1.0, 4.0, 3.0]]]
    """
    at = frame("col2im", kernel, stride, dilate, pad)
    columns = F.Reshape(data, shape=(0, -4, -1, size_of(kernel), *counts("col2im", output_size, at)))
    return F._windows_sum(columns, size=output_size, **at._asdict())


@col2im.infer
def _(ins, outs, *, output_size, **where):
    at, data = frame("col2im", **where), ins[0]
    if len(output_size) != len(at.kernel):
        raise OpValueError(f"operator col2im: output_size={output_size}; expected {len(at.kernel)} sizes, as "
                           f"kernel={at.kernel} has")  # fmt: skip
    found, places = size_of(counts("col2im", output_size, at)), size_of(at.kernel)
    data = (None, None, found) if data is None else data
    if len(data) != 3 or data[2] not in (None, found) or (data[1] or 0) % places:
        raise OpValueError(f"operator col2im: data has shape {infer.show(data)}; expected (batch, channels * {places}, "
                           f"{found}), columns for kernel={at.kernel} and output_size={output_size}")  # fmt: skip
    made = (data[0], divided(data[1], places), *output_size)
    out = infer.same_shape("col2im", ("output", "expected by the data"), [outs[0], made])[0]
    return [(out[0], times(out[1], places), found)], [out]
