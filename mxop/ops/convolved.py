"""Convolution without its bias: images, filters and results, each of which follows from the other two.

The three operators are linear in both inputs, and are each other's gradients.  Products read windows from the images: there is
no other memory for them.
"""

from itertools import product as combinations
from math import gcd

from ..opdef import Shape, infer, kernel
from ..opdef.parts import Part
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import Count, both_ways, compiled, float_types, size_of
from .matrix import product_gpu
from .windows import Frame, add_windows, counts, frame, put_windows

VECTOR, FILLED = 16, 0.7  # results in a vector, and how many of them should be wanted


@kernel(name="_convolved")
def convolved(data, weight, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), num_group: Count = 1):
    """``Convolution`` of ``(batch, channels, ...)``, without a bias.

    >>> x, w = mx.nd.array([[[1, 2, 4, 8]]]), mx.nd.array([[[1, -1]]])
    >>> mx.nd._internal._convolved(x, w, kernel=(2,)).asnumpy().tolist()
    [[[-1.0, -2.0, -4.0]]]
    """


@kernel(name="_convolved_data")
def convolved_data(head, weight, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (),
                   num_group: Count = 1, size: Shape):  # fmt: skip
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
        raise OpValueError(f"operator {name}: data has {channels} channels, weight {each} for each of {num_group} groups")
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
def _windows(images, found, at):
    """Return how windows lie in images, as compiled products are told."""

    def three(numbers, fill):
        return (fill,) * (3 - len(numbers)) + tuple(numbers)

    image, channel, *element = images._strides
    sizes = (images.shape[2:], found, at.kernel, at.stride, at.dilate)
    return (image, channel, *three(element, 0)), *(three(numbers, 1) for numbers in sizes), three(at.pad, 0)


def _are_windows(at, sizes, found):
    """Return whether images are their windows: of one element each, as many as the images have."""
    return at == frame("", (1,) * len(at.kernel)) and sizes == found


def _few(at, groups, images, head, weight, steps_of_weight=(0, 0, 0), sums=False):
    """Return compiled work for groups of few filters, if windows had better not be made: lines of results fill vectors."""
    (_, channels, *_), filters, width = images.shape, head.shape[1] // groups, head.shape[-1]
    machine = compiled("machine")
    most = machine.MX_FEW_SUMS if sums else 4 * machine.MX_SUM_CHUNK
    lines, rows = size_of(head.shape[2:-1]), size_of(at.reach(axis) for axis in range(len(at.kernel) - 1))
    are_windows = _are_windows(at, images.shape[2:], head.shape[2:])
    fills = channels == groups or (width >= FILLED * (-(-width // VECTOR) * VECTOR) and not are_windows)
    small = size_of(weight.shape) <= groups * most and size_of(weight.shape[1:]) <= machine.MX_FEW_SUMMANDS
    near = channels // groups * rows * (width + at.reach(-1)) * at.stride[-1] <= 2 * machine.MX_SUM_CHUNK
    many = images.shape[0] * groups * lines >= machine.MX_SUM_TASKS
    if filters <= machine.MX_FEW_FILTERS and fills and small and near and many:
        return _direct(at, groups, images, head, weight, steps_of_weight, sums)
    return None


def _direct(at, groups, images, head, weight, steps_of_weight, sums=False):
    """Return a direct convolution, or the gradient of its filters."""
    sizes = images.shape[0], groups, images.shape[1] // groups, head.shape[1] // groups
    types = (x.dtype_code for x in (images, weight, head))
    return compiled("few").FewFilters(sizes, *types, _windows(images, head.shape[2:], at), steps_of_weight, sums)


def _product(sizes, arrays, strides, windows, places=False):
    """Return a product of arrays; where lengths of parts are given, they come after the strides of one."""
    parts = [(x.dtype_code, *where) for x, where in zip(arrays, strides, strict=True)]
    return compiled("gemm").Product(sizes, *parts, windows=windows, places=places)


def _is_one_window(images, at):
    """Return whether windows are whole images: then filters are a matrix."""
    return images.shape[2:] == at.kernel and not any(at.pad)


def _multiply(steps, groups, sizes, arrays, strides):
    """Add the product of two of images, filters and results, of one window each; strides are those of groups and matrices."""
    steps.work(_product((1, groups, *sizes), arrays, [((0, *each),) for each in strides], None), *arrays)


def _convolve(steps, at, groups, images, filters, steps_of_filters, out, finite=False):
    """Multiply filters by windows.

    From group to group, filter to filter and channel to channel, filters lie so far apart; places lie side by side.  What lies
    beside an image is 0; `finite`: it meets no filter, which may be infinite.
    """
    work = _few(at, groups, images, out, filters, steps_of_filters)
    if work is None:
        work = _product_of_windows(at, groups, images, filters, steps_of_filters, out)
        if finite and _go_beyond(at, images.shape[2:], out.shape[2:]):
            direct = _direct(at, groups, images, out, filters, steps_of_filters)
            work = compiled("few").OfFinite(work, direct, size_of(filters.shape))
    steps.work(work, filters, images, out)


def _go_beyond(at, sizes, found):
    """Return whether windows go beyond images."""
    for k, step, dilate, pad, size, n in zip(*at, sizes, found, strict=True):
        last = (k - 1) * dilate
        if min(0, last) < pad or (n - 1) * step + max(0, last) - pad >= size:
            return True
    return False


def _product_of_windows(at, groups, images, filters, steps_of_filters, out):
    """Return the product of filters and windows."""
    (batch, channels, *_), (each, *found) = images.shape, (out.shape[1] // groups, *out.shape[2:])
    n, places, channels, (image, channel) = size_of(found), size_of(at.kernel), channels // groups, images._strides[:2]
    *of_filters, step = steps_of_filters
    lie_apart = places > 1 and step != places
    of_filters = ((0, *of_filters, 1), (places, step)) if lie_apart else ((0, *of_filters, step // places),)
    group, result, windows = channels * channel, groups * each * n, _windows(images, found, at)
    if n < compiled("machine").MX_LONG_ROW:  # windows of all images are columns of one product
        sizes, of_images, of_results = (1, groups), (0, group, 0, 0), ((0, each * n, n, 1), (n, result))
    else:
        sizes, of_images, of_results = (batch, groups), (image, group, channel, 1), ((result, each * n, n, 1),)
        windows = None if _are_windows(at, images.shape[2:], out.shape[2:]) else windows
    sizes = (*sizes, each, n * batch // sizes[0] if batch else 0, channels * places)
    return _product(sizes, (filters, images, out), (of_filters, (of_images,), of_results), windows)


@convolved.cpu(prepared=True)
def _(steps, inputs, outputs, *, kernel, stride, dilate, pad, num_group):
    (data, weight), (out,) = inputs, outputs
    at = frame("_convolved", kernel, stride, dilate, pad)
    each, k = weight.shape[0] // num_group, size_of(weight.shape[1:])
    if _is_one_window(data, at):
        strides = (k, num_group * k, 1), (each * k, 1, k), (each, weight.shape[0], 1)
        _multiply(steps, num_group, (data.shape[0], each, k), (data, weight, out), strides)
    else:
        _convolve(steps, at, num_group, data, weight, (each * k, k, size_of(kernel)), out)


def _phases(sizes, at):
    """Yield which elements of images have the same places of windows, and these: slices of images, and of filters.

    With a stride, neighbours have others; what the elements of one phase are made of are windows of the results, in a frame
    that comes third.  That is None for elements that no window has.
    """
    axes = []
    for size, k, step, dilate, pad in zip(sizes, *at, strict=True):
        jump = step // gcd(step, dilate)  # from one place of a phase to the next
        axis = []
        for first in range(min(step, size)):
            places = [p for p in range(k) if (p * dilate - first - pad) % step == 0]
            if places:  # the later its place in a window, the earlier that window
                start, apart = (first + pad - places[0] * dilate) // step, -jump * dilate // step if places[1:] else 1
                axis.append((slice(first, None, step), slice(places[0], None, jump), (len(places), 1, apart, -start)))
            else:
                axis.append((slice(first, None, step), None, None))
        axes.append(axis)
    for phase in combinations(*axes):
        elements, places, frames = zip(*phase, strict=True)
        yield elements, places, None if None in frames else Frame(*zip(*frames, strict=True))


@convolved_data.cpu(prepared=True)
def _(steps, inputs, outputs, *, kernel, stride, dilate, pad, num_group, size):
    (head, weight), (out,) = inputs, outputs
    at, everything, n = frame("_convolved_data", kernel, stride, dilate, pad), slice(None), size_of(weight.shape[1:])
    filters, channels = weight.shape[0] // num_group, weight.shape[1]
    if _is_one_window(out, at):
        strides = (filters, weight.shape[0], 1), (filters * n, n, 1), (n, num_group * n, 1)
        _multiply(steps, num_group, (out.shape[0], n, filters), (head, weight, out), strides)
        return
    for elements, places, found in _phases(size, at):
        part = Part(steps, out)[(everything, everything, *elements)]
        if found is None:
            part[...] = 0
            continue
        k = size_of(found.kernel)
        if found.kernel == at.kernel:
            some = weight
        else:
            some = steps.temporary((*weight.shape[:2], *found.kernel), weight.dtype_code)
            Part(steps, some)[...] = Part(steps, weight)[(everything, everything, *places)]
        result = out if part.shape == out.shape else steps.temporary(part.shape, out.dtype_code)
        _convolve(steps, found, num_group, head, some, (filters * channels * k, k, channels * k), result, finite=True)
        if result is not out:
            part[...] = Part(steps, result)


@convolved_weight.cpu(prepared=True)
def _(steps, inputs, outputs, *, kernel, stride, dilate, pad, num_group):
    (data, head), (out,) = inputs, outputs
    at, found = frame("_convolved_weight", kernel, stride, dilate, pad), head.shape[2:]
    batch, channels, each = data.shape[0], data.shape[1] // num_group, head.shape[1] // num_group
    n, k = size_of(found), size_of(out.shape[1:])
    if _is_one_window(data, at):
        strides = (each, 1, head.shape[1]), (k, num_group * k, 1), (each * k, k, 1)
        _multiply(steps, num_group, (each, k, batch), (head, data, out), strides)
        return
    few = _few(at, num_group, data, head, out, sums=True)
    if few is not None:
        steps.work(few, head, data, out)
        return
    of_head = ((0, each * n, n, 1), (n, head.shape[1] * n)) if batch > 1 else ((0, each * n, n, 1),)
    of_data, of_results = (0, channels * data._strides[1], 0, 0), (0, each * k, k, 1)
    strides = (of_head, (of_data,), (of_results,))
    arrays = head, data, out
    steps.work(_product((1, num_group, each, k, batch * n), arrays, strides, _windows(data, found, at), True), *arrays)


# ---- on the GPU -----------------------------------------------------------------------------------------------------
def batch_in_front(windows):
    """Return ``(channels, places in a window, batch, ...)`` as ``(batch, channels, places in a window, ...)``."""
    return windows.transpose(2, 0, 1, *range(3, windows.ndim))


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
    total = xp.empty(out.shape, dtypes.numpy_dtype(dtypes.summed_in(dtypes.code_of(out.dtype))))
    add_windows(batch_in_front(columns), total, frame("_convolved_data", kernel, stride, dilate, pad))
    out[...] = total


@convolved_weight.gpu
def _(xp, inputs, outputs, *, kernel, stride, dilate, pad, num_group):
    (data, head), (out,) = inputs, outputs
    columns = _columns(xp, data, frame("_convolved_weight", kernel, stride, dilate, pad), head.shape[2:], num_group)
    out[...] = product_gpu(xp, _rows(head, num_group), columns, False, True).reshape(out.shape)
