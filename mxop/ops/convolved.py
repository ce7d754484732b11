"""Convolution without its bias: images, filters and results, each of which follows from the other two.

The three operators are linear in both inputs, and are each other's gradients.  Images are taken a few at a time: their windows
are multiplied while they lie in the cache, and the memory for them does not grow with the batch.
Examples assume ``import mxop as mx``.  May import :mod:`mxop.opdef` and :mod:`mxop.dtypes` only.
"""

from .. import dtypes
from ..errors import OpValueError
from ..opdef import Shape, infer, kernel
from ..opdef.parts import Part, contiguous_strides
from ._shared import Count, both_ways, float_types, size_of, summed_in
from .matrix import product, product_gpu
from .windows import add_windows, counts, frame, put_windows

CACHED = 4 << 20  # bytes of windows at a time
LONG = 192  # results in a row from which on an image has a product of its own
PARTS = 32  # parts of a batch, at most


@kernel(name="_convolved")
def convolved(
    data, weight, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), num_group: Count = 1
):
    """``Convolution`` of ``(batch, channels, ...)``, without a bias.

    >>> x, w = mx.nd.array([[[1, 2, 4, 8]]]), mx.nd.array([[[1, -1]]])
    >>> mx.nd._internal._convolved(x, w, kernel=(2,)).asnumpy().tolist()
    [[[-1.0, -2.0, -4.0]]]
    """


@kernel(name="_convolved_data")
def convolved_data(
    head,
    weight,
    *,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    num_group: Count = 1,
    size: Shape,
):
    """Add up filters in images of a size, each multiplied by an element of `head`: the gradient of the data of ``_convolved``.

    >>> head, w = mx.nd.array([[[1, 2]]]), mx.nd.array([[[1, 10]]])
    >>> mx.nd._internal._convolved_data(head, w, kernel=(2,), size=(3,)).asnumpy().tolist()
    [[[1.0, 12.0, 20.0]]]
    """


@kernel(name="_convolved_weight")
def convolved_weight(
    data, head, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), num_group: Count = 1
):
    """Add up windows, each multiplied by an element of `head`: the gradient of the filters of ``_convolved``.

    >>> x, head = mx.nd.array([[[1, 2, 4]]]), mx.nd.array([[[1, 10]]])
    >>> mx.nd._internal._convolved_weight(x, head, kernel=(2,)).asnumpy().tolist()
    [[[21.0, 42.0]]]
    """


# ---- shapes ---------------------------------------------------------------------------------------------------------
def _checked(name, shape, n, what):
    if len(shape) != n + 2:
        raise OpValueError(f"operator {name}: {what} has shape {infer.show(shape)}; expected {n + 2} dimensions")
    return shape


def _results_shape(data, weight, *, kernel, stride, dilate, pad, num_group):
    if data is None or weight is None:
        return None
    at, name, n = frame("_convolved", kernel, stride, dilate, pad), "_convolved", len(kernel)
    batch, channels, *sizes = _checked(name, data, n, "data")
    filters, each = _checked(name, weight, n, "weight")[:2]
    if None not in (channels, each) and channels != each * num_group:
        raise OpValueError(
            f"operator {name}: data has {channels} channels, weight {each} for each of {num_group} groups"
        )
    _filters_divide(name, filters, num_group, weight, kernel)
    return (batch, filters, *counts(name, sizes, at))


def _filters_divide(name, filters, num_group, weight, kernel):
    if filters is not None and filters % num_group:
        raise OpValueError(f"operator {name}: num_group={num_group} does not divide {filters} filters")
    if weight is not None and not infer.compatible(weight[2:], kernel):
        raise OpValueError(f"operator {name}: weight has shape {infer.show(weight)}, kernel={kernel}")


def _data_shape(head, weight, *, kernel, stride, dilate, pad, num_group, size):
    if head is None or weight is None:
        return None
    at, name, n = frame("_convolved_data", kernel, stride, dilate, pad), "_convolved_data", len(kernel)
    batch, filters, *found = _checked(name, head, n, "head")
    count, each = _checked(name, weight, n, "weight")[:2]
    _filters_divide(name, count, num_group, weight, kernel)
    if (
        (None not in (filters, count) and filters != count)
        or len(size) != n
        or not infer.compatible(found, counts(name, size, at))
    ):
        raise OpValueError(f"operator {name}: head has shape {infer.show(head)} and weight {infer.show(weight)}; they do not "
                           f"fit each other and images of size={size}")  # fmt: skip
    return (batch, None if each is None else each * num_group, *size)


def _weight_shape(data, head, *, kernel, stride, dilate, pad, num_group):
    if data is None or head is None:
        return None
    at, name, n = frame("_convolved_weight", kernel, stride, dilate, pad), "_convolved_weight", len(kernel)
    batch, channels, *sizes = _checked(name, data, n, "data")
    also, filters, *found = _checked(name, head, n, "head")
    _filters_divide(name, filters, num_group, None, kernel)
    fits = infer.compatible((batch, *counts(name, sizes, at)), (also, *found))
    if not fits or (channels is not None and channels % num_group):
        raise OpValueError(f"operator {name}: data has shape {infer.show(data)} and head {infer.show(head)}; they do not fit "
                           f"each other, kernel={kernel} and num_group={num_group}")  # fmt: skip
    return (filters, None if channels is None else channels // num_group, *kernel)


for _op, _rule in ((convolved, _results_shape), (convolved_data, _data_shape), (convolved_weight, _weight_shape)):
    _op.shape(_rule)
    both_ways(_op, _rule)
    float_types(_op)


# ---- gradients ------------------------------------------------------------------------------------------------------
@convolved.gradient
def _(F, heads, inputs, outputs, **params):
    data, weight = inputs
    return [lambda: F._convolved_data(heads[0], weight, size=data.shape[2:], **params),
            lambda: F._convolved_weight(data, heads[0], **params)]  # fmt: skip


@convolved_data.gradient
def _(F, heads, inputs, outputs, *, size, **params):
    head, weight = inputs
    return [lambda: F._convolved(heads[0], weight, **params), lambda: F._convolved_weight(heads[0], head, **params)]


@convolved_weight.gradient
def _(F, heads, inputs, outputs, **params):
    data, head = inputs
    return [lambda: F._convolved_data(head, heads[0], size=data.shape[2:], **params),
            lambda: F._convolved(data, heads[0], **params)]  # fmt: skip


# ---- on the CPU -----------------------------------------------------------------------------------------------------
class _Batch:
    """A batch of images that is gone through in parts.

    Parameters
    ----------
    steps : mxop._core.steps.Steps
    at : Frame
    groups : int
    data, head : NDArray
        ``(batch, channels, ...)`` and ``(batch, filters, ...)``.
    code : int
        The type of the windows.
    together : bool
        Whether the images of a part share one product; so they do where they are small, or there are groups.
    """

    def __init__(self, steps, at, groups, data, head, code, together=False):
        self.steps, self.at, self.groups, self.data, self.head = steps, at, groups, data, head
        self.batch, self.channels = data.shape[:2]
        self.filters, self.found, self.places = head.shape[1], head.shape[2:], size_of(at.kernel)
        self.n = size_of(self.found)
        self.together = together or groups > 1 or self.n < LONG
        self.images_themselves = not self.together and at == frame("", (1,) * len(at.kernel))
        self.part = self.batch
        if not self.images_themselves:
            image = self.channels * self.places * self.n
            least = -(-LONG // max(self.n, 1)) if self.together else 1
            fitting = CACHED // max(1, image * dtypes.SIZES[code])
            self.part = min(self.batch, max(fitting, -(-self.batch // PARTS), least))
            self.columns = steps.temporary((self.part * image,), code)
        if self.together:
            self.rows = steps.temporary((self.part * self.filters * self.n,), head.dtype_code)

    def parts(self):
        """Yield the first image of each part, and how many it has."""
        for first in range(0, self.batch, max(self.part, 1)):
            yield first, min(self.part, self.batch - first)

    def images(self, array, first, n):
        """Return a part of ``(batch, ...)``."""
        return Part(self.steps, array)[first : first + n]

    def windows(self, n):
        """Return the memory for the windows of `n` images, ``(batch, channels, places, ...)``."""
        size = (self.channels, self.places)
        if self.together:
            return batch_in_front(_seen(self.steps, self.columns, (*size, n, *self.found)))
        return _seen(self.steps, self.columns, (n, *size, *self.found))

    def filled(self, first, n):
        """Put the windows of a part where they are multiplied, and return that; what lies beside images is filled once."""
        if self.images_themselves:
            return self.matrices(self.data, first, n)
        fill = 0 if first == 0 or (self.together and n != self.part) else None
        put_windows(self.images(self.data, first, n), self.windows(n), self.at, fill)
        return self.matrices(self.columns, 0, n)

    def matrices(self, windows, first, n):
        """Return windows of a part as matrices, a row for each element of a window."""
        if self.together:
            return _dense(windows, (self.groups, self.channels // self.groups * self.places, n * self.n))
        size = self.channels * self.places
        return windows._view((n, size, self.n), (size * self.n, self.n, 1), first * size * self.n)

    def heads(self, first, n):
        """Return results of a part as matrices, a row for each filter: memory for them, where the images are together."""
        if self.together:
            return _dense(self.rows, (self.groups, self.filters // self.groups, n * self.n))
        return self.head._view(
            (n, self.filters, self.n), (self.filters * self.n, self.n, 1), first * self.filters * self.n
        )

    def head_rows(self, n):
        """Return that memory as ``(batch, filters, ...)``."""
        rows = _seen(self.steps, self.rows, (self.filters, n, *self.found))
        return rows.transpose(1, 0, *range(2, rows.ndim))

    def taken(self, first, n):
        """Return the results of a part, brought together where the images are."""
        if self.together:
            self.head_rows(n)[...] = self.images(self.head, first, n)
        return self.heads(first, n)

    def filters_of(self, weight, n):
        """Return the filters, one for all images of a part or one for each group."""
        size = size_of(weight.shape[1:])
        if self.together:
            return weight._view(
                (self.groups, self.filters // self.groups, size), (self.filters // self.groups * size, size, 1), 0
            )
        return weight._view((n, self.filters, size), (0, size, 1), 0)


def batch_in_front(windows):
    """Return ``(channels, places in a window, batch, ...)`` as ``(batch, channels, places in a window, ...)``."""
    return windows.transpose(2, 0, 1, *range(3, windows.ndim))


def _seen(steps, memory, shape):
    return Part(steps, _dense(memory, shape))


def _dense(memory, shape):
    """Return the beginning of an array as one of this shape, in C order."""
    return memory._view(shape, contiguous_strides(shape), 0)


@convolved.cpu(prepared=True)
def _(steps, inputs, outputs, *, kernel, stride, dilate, pad, num_group):
    (data, weight), (out,) = inputs, outputs
    batch = _Batch(steps, frame("_convolved", kernel, stride, dilate, pad), num_group, data, out, data.dtype_code)
    for first, n in batch.parts():
        product(steps, batch.filters_of(weight, n), batch.filled(first, n), batch.heads(first, n), False, False)
        if batch.together:
            batch.images(out, first, n)[...] = batch.head_rows(n)


@convolved_data.cpu(prepared=True)
def _(steps, inputs, outputs, *, kernel, stride, dilate, pad, num_group, size):
    (head, weight), (out,) = inputs, outputs
    at, total = frame("_convolved_data", kernel, stride, dilate, pad), steps.room(out, summed_in(out.dtype_code))
    batch = _Batch(steps, at, num_group, total, head, total.dtype_code)
    for first, n in batch.parts():
        columns = batch.matrices(total, first, n) if batch.images_themselves else batch.matrices(batch.columns, 0, n)
        product(steps, batch.filters_of(weight, n), batch.taken(first, n), columns, True, False)
        if not batch.images_themselves:
            add_windows(batch.windows(n), batch.images(total, first, n), at)
    steps.move(total, out)


@convolved_weight.cpu(prepared=True)
def _(steps, inputs, outputs, *, kernel, stride, dilate, pad, num_group):
    (data, head), (out,) = inputs, outputs
    total = steps.room(out, summed_in(out.dtype_code))
    batch = _Batch(
        steps, frame("_convolved_weight", kernel, stride, dilate, pad), num_group, data, head, data.dtype_code, True
    )
    found = batch.filters_of(total, 0)
    if not batch.batch:
        steps.fill(total, 0)
    for first, n in batch.parts():
        product(steps, batch.taken(first, n), batch.filled(first, n), found, False, True, add=first > 0)
    steps.move(total, out)


# ---- on the GPU -----------------------------------------------------------------------------------------------------
def _columns(xp, data, at, found, groups):
    """Return the windows of all images, a row for each element of a window: of each group."""
    columns = xp.zeros((data.shape[1], size_of(at.kernel), data.shape[0], *found), data.dtype)
    put_windows(data, batch_in_front(columns), at, None)
    return columns.reshape(groups, -1, data.shape[0] * size_of(found))


def _rows(head, groups):
    return head.swapaxes(0, 1).reshape(groups, head.shape[1] // groups, -1)


@convolved.gpu
def _(xp, inputs, outputs, *, kernel, stride, dilate, pad, num_group):
    (data, weight), (out,) = inputs, outputs
    columns = _columns(xp, data, frame("_convolved", kernel, stride, dilate, pad), out.shape[2:], num_group)
    found = product_gpu(xp, weight.reshape(num_group, len(weight) // num_group, -1), columns, False, False)
    out[...] = found.reshape(out.shape[1], out.shape[0], *out.shape[2:]).swapaxes(0, 1)


@convolved_data.gpu
def _(xp, inputs, outputs, *, kernel, stride, dilate, pad, num_group, size):
    (head, weight), (out,) = inputs, outputs
    rows = weight.reshape(num_group, len(weight) // num_group, -1)
    columns = product_gpu(xp, rows, _rows(head, num_group), True, False)
    columns = columns.reshape(out.shape[1], -1, out.shape[0], *head.shape[2:])
    total = xp.empty(out.shape, dtypes.numpy_dtype(summed_in(dtypes.code_of(out.dtype))))
    add_windows(batch_in_front(columns), total, frame("_convolved_data", kernel, stride, dilate, pad))
    out[...] = total


@convolved_weight.gpu
def _(xp, inputs, outputs, *, kernel, stride, dilate, pad, num_group):
    (data, head), (out,) = inputs, outputs
    columns = _columns(xp, data, frame("_convolved_weight", kernel, stride, dilate, pad), head.shape[2:], num_group)
    out[...] = product_gpu(xp, _rows(head, num_group), columns, False, True).reshape(out.shape)
